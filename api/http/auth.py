"""Authentication of the caller by the header x-api-key."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from flask import g, request

from api.http.state import current_request, noted, state
from gate.clock import utc_now
from gate.errors import AccessRefused
from gate.ledger.access.authority import Authority
from gate.ledger.access.caller import Caller


def authenticate(access: str, *, code: str = "SVC_API_UNAUTHORIZED") -> Authority:
    """Who calls, where their key has the access.

    Args:
        access: decide, report, read or register.
        code: The code under which this endpoint refuses.

    Raises:
        AccessRefused: No key, or an unknown one.
        AccessForbidden: A key that is disabled, expired, or lacks the access.
    """
    return _admitted(state().instance.ledger.directory.authenticate, access, code)


def recognize(access: str, *, code: str = "SVC_API_UNAUTHORIZED") -> Caller:
    """As `authenticate`, by what this process remembers of the key: to be confirmed before anything rests on it."""
    directory = state().instance.ledger.directory
    return Caller(directory, _admitted(directory.recognize, access, code), access, utc_now)


def identify() -> Authority:
    """Who calls, whatever the key may do, by what this process remembers of it.

    Raises:
        AccessRefused: SVC_API_UNAUTHORIZED: no key, or an unknown one.
        AccessForbidden: SVC_API_UNAUTHORIZED: a key that is disabled or expired.
    """
    return _found(state().instance.ledger.directory.recognize, "SVC_API_UNAUTHORIZED")


def confirm_identity() -> None:
    """Looks up the key that `identify` remembered.

    Raises:
        AccessForbidden: SVC_API_UNAUTHORIZED: it is disabled, expired or gone by now.
        ServiceUnavailable: SVC_STORAGE_UNAVAILABLE.
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
    authority = noted()["authority"] = find(key, utc_now())
    return authority


def _missing_key() -> str:
    # It is read for this hint only: a key that is sent there is not tried.
    if request.headers.get("authorization"):
        return "The request has no header x-api-key; send the API key there as it is, not in the header Authorization."
    return "The request has no API key; send one in the header x-api-key."


class refusing:  # noqa: N801 - read as a verb: `with refusing(code):`
    """Gives every refusal of a key the code under which this endpoint refuses."""

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
