"""The rate limit of decide requests, and the headers that tell callers of it and of the monthly cap."""

from __future__ import annotations

from flask import g

from api.http.state import state
from gate.errors import LimitReached
from gate.ledger.access.authority import PLANS, Authority


def require_rate(authority: Authority) -> None:
    """Counts the request against its key's sliding minute; a plan without a limit counts nothing.

    Raises:
        LimitReached: SVC_API_RATE_LIMITED.
        ServiceUnavailable: SVC_STORAGE_UNAVAILABLE: it cannot be counted.
    """
    limit = PLANS[authority.plan].requests_per_minute
    if limit is None:
        return
    rate = state().limiter.admit(authority.scope_id, authority.key_id, limit)
    g.limit_headers = {"x-ratelimit-limit": str(rate.limit), "x-ratelimit-remaining": str(rate.remaining)}
    if not rate.admitted:
        raise LimitReached(
            "SVC_API_RATE_LIMITED",
            f"The key {authority.key_id} may make {rate.limit} decide requests a minute; hold the action, and try "
            f"again in {rate.retry_after} seconds.",
            details={"retry_after": rate.retry_after},
        )


def tell_remaining(remaining: int | None) -> None:
    """Puts what is left of the monthly cap into the response; nothing where there is no cap."""
    if remaining is not None:
        g.limit_headers = {**g.get("limit_headers", {}), "x-usage-monthly-remaining": str(remaining)}
