"""The rate limits of keys and of clients without a key, and the response headers about these limits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from flask import g, request

from api.http.state import state
from gate.errors import GateError, LimitReached
from gate.ledger.access.authority import PLANS, Authority
from gate.ledger.access.caller import Caller
from gate.ledger.access.limits import Rate

Read = TypeVar("Read")

PILOT_REQUESTS_PER_MINUTE: Final = 5
"""The number of pilot submissions, and of confirmations, that one address may send in a minute."""


def within_rate(caller: Caller, read: Callable[[], Read]) -> Read:
    """Reads a request within the rate of its key.

    A request is refused only after the key was looked up. If its scope has another plan now, the rate of this plan
    counts.

    Args:
        caller: The caller, from this process's cache of keys.
        read: Reads the request; raises `GateError` if it cannot be read.

    Raises:
        LimitReached: `SVC_API_RATE_LIMITED`.
        GateError: As from `read` or `Caller.confirm`.
    """
    try:
        require_rate(caller.authority)
        return read()
    except GateError:
        plan = caller.authority.plan
        if caller.confirm().plan == plan:
            raise
        g.pop("limit_headers", None)
        require_rate(caller.authority)
        return read()


def require_rate(authority: Authority) -> None:
    """Counts the request against its key's sliding minute; a plan without a limit counts nothing.

    Raises:
        LimitReached: `SVC_API_RATE_LIMITED`.
        ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`: the request cannot be counted.
    """
    (refusal,) = count_requests(authority, 1)
    if refusal is not None:
        raise refusal


def count_requests(authority: Authority, requests: int) -> list[LimitReached | None]:
    """Counts requests of one batch against their key's sliding minute.

    Returns:
        For each request in order: None if it is admitted, or else the refusal.

    Raises:
        ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`: the requests cannot be counted.
    """
    limit = PLANS[authority.plan].requests_per_minute
    if limit is None:
        return [None] * requests
    rates = state().limiter.admit_all(authority.scope_id, authority.key_id, limit, requests)
    g.limit_headers = {"x-ratelimit-limit": str(limit), "x-ratelimit-remaining": str(rates[-1].remaining)}
    return [None if rate.admitted else _rate_limited(authority, rate) for rate in rates]


def counted_within_rate(caller: Caller, requests: int) -> list[LimitReached | None]:
    """The same as `count_requests`, but refuses only after the key was looked up.

    If its scope has another plan now, the rate of this plan counts for the refused requests.

    Raises:
        GateError: As from `count_requests` or `Caller.confirm`.
    """
    with caller.confirming():
        refusals = count_requests(caller.authority, requests)
    # The first ones are admitted, and are counted by now.
    admitted = refusals.count(None)
    plan = caller.authority.plan
    if admitted < requests and caller.confirm().plan != plan:
        g.pop("limit_headers", None)
        return [None] * admitted + count_requests(caller.authority, requests - admitted)
    return refusals


def _rate_limited(authority: Authority, rate: Rate) -> LimitReached:
    return LimitReached(
        "SVC_API_RATE_LIMITED",
        f"The key {authority.key_id} is limited to {rate.limit} decide requests a minute. Hold the "
        f"action and retry in {rate.retry_after} seconds.",
        details={"retry_after": rate.retry_after},
    )


def require_client_rate(purpose: str, limit: int) -> None:
    """Counts the request against the limit of its address.

    Args:
        purpose: The purpose of the request, as a word; each purpose has separate counts.
        limit: The number of requests in a minute.

    Raises:
        LimitReached: `SVC_API_RATE_LIMITED`.
    """
    address = state().origins.of(request.environ.get("REMOTE_ADDR", ""), request.headers.get("x-forwarded-for", ""))
    if (seconds := state().clients.wait(purpose, address, limit)) == 0:
        return
    g.limit_headers = {"x-ratelimit-limit": str(limit), "x-ratelimit-remaining": "0"}
    raise LimitReached(
        "SVC_API_RATE_LIMITED",
        f"This address is limited to {limit} of these requests a minute; retry in {seconds} seconds.",
        details={"retry_after": seconds},
    )


def tell_remaining(remaining: int | None) -> None:
    """Adds the rest of the monthly cap to the response headers, if the scope has a cap."""
    if remaining is not None:
        g.limit_headers = {**g.get("limit_headers", {}), "x-usage-monthly-remaining": str(remaining)}
