"""Authenticates the caller by the header `x-api-key`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from flask import g, request

from api.http.state import current_request, noted, state
from gate.clock import utc_now
from gate.errors import AccessForbidden, AccessRefused
from gate.ledger.access.authority import Authority
from gate.ledger.access.caller import Caller
from gate.ledger.access.scopes import holder


def authenticate(access: str, *, code: str = "SVC_API_UNAUTHORIZED") -> Authority:
    """Returns the caller, whose key must have the access.

    Args:
        access: One of `decide`, `report`, `read`, and `register`.
        code: The error code of this endpoint's refusals.

    Raises:
        AccessRefused: There is no key, or an unknown one.
        AccessForbidden: The key is disabled, expired, or lacks the access.
    """
    return _admitted(state().instance.ledger.directory.authenticate, access, code)


def recognize(access: str, *, code: str = "SVC_API_UNAUTHORIZED") -> Caller:
    """The same as `authenticate`, from this process's cache of keys. The result must be confirmed before it is used."""
    directory = state().instance.ledger.directory
    return Caller(directory, _admitted(directory.recognize, access, code), access, utc_now)


def identify() -> Authority:
    """Returns the caller from this process's cache of keys, for any access.

    Raises:
        AccessRefused: `SVC_API_UNAUTHORIZED`: there is no key, or an unknown one.
        AccessForbidden: `SVC_API_UNAUTHORIZED`: the key is disabled or expired.
    """
    return _found(state().instance.ledger.directory.recognize, "SVC_API_UNAUTHORIZED")


def confirm_identity() -> None:
    """Looks up the key that `identify` remembered.

    Raises:
        AccessForbidden: `SVC_API_UNAUTHORIZED`: the key is now disabled, expired, or gone.
        ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
    """
    state().instance.ledger.directory.confirm(g.authority, utc_now())


def _admitted(find: Callable[[str, datetime], Authority], access: str, code: str) -> Authority:
    with refusing(code):
        authority = _found(find, code)
        authority.require(access)
    return authority


def _found(find: Callable[[str, datetime], Authority], code: str) -> Authority:
    key = current_request().environ.get("HTTP_X_API_KEY")
    if not key:
        raise AccessRefused(code, _missing_key())
    try:
        authority = noted()["authority"] = find(key, utc_now())
    except AccessForbidden:
        # The log tells the operator whose key was disabled or has expired.
        noted()["forbidden"] = holder(key)
        raise
    return authority


def _missing_key() -> str:
    # It is read for this hint only: a key that is sent there is not tried.
    if request.headers.get("authorization"):
        return "The request has no header x-api-key; send the API key alone in this header, not in Authorization."
    return "The request has no API key; send one in the header x-api-key."


class refusing:  # noqa: N801 - read as a verb: `with refusing(code):`
    """Gives every refusal of a key the error code of this endpoint."""

    __slots__ = ("_code",)

    def __init__(self, code: str) -> None:
        """Takes the code."""
        self._code = code

    def __enter__(self) -> None:
        return

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, AccessRefused):
            # Of its own kind: one that is forbidden is answered with another status.
            raise type(error)(self._code, error.message) from error
