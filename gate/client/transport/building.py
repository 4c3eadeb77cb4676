"""How an operation's arguments become a call: what is left out, what is checked, what is encoded how."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import Any, Final, TypeVar
from urllib.parse import quote

from gate.client.transport.calls import Call, json_object
from gate.clock import new_id, utc_now
from gate.encoding.canonical import canonical
from gate.errors import FieldError, MaterialRefused, RequestRefused
from gate.ids import not_before
from gate.labels import VIEWS

T = TypeVar("T")

Query = Mapping[str, str | int | float | datetime | None]

_MAX_IDEMPOTENCY_KEY: Final = 300
_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9._:/+=@-]{1,160}")


def call(
    operation: str,
    method: str,
    path: str,
    *,
    query: Query | None = None,
    body: Mapping[str, object] | None = None,
    view: str | None = None,
    request_id: str | None = None,
    idempotency_key: str | None = None,
    credential: str | None = "key",
    accepts: tuple[int, ...] = (200,),
    read: Callable[[bytes], T] = json_object,
    media_type: str | None = None,
) -> Call[T]:
    """The call of an operation.

    Args:
        operation: Its operationId.
        method: GET or POST.
        path: Its path, percent-encoded.
        query: Its query parameters; those that are None are left out.
        body: Its JSON body; None where there is none.
        view: The view of the answer; None for the service's choice.
        request_id: The caller's trace id.
        idempotency_key: The retry handle of a write.
        credential: What it is sent with.
        accepts: The statuses whose body is the answer.
        read: Reads the answer's body.
        media_type: What is answered, where it is no JSON.

    Raises:
        MaterialRefused: SVC_API_JSON_INVALID: the body is no JSON object.
        RequestRefused: SVC_API_REQUEST_INVALID: another argument cannot be sent.
    """
    encoded = None if body is None else _encoded(body)
    headers = _headers(view, request_id)
    if media_type is not None:
        headers["accept"] = media_type
    return Call(
        operation,
        method,
        path,
        read,
        query={name: _shown(name, value) for name, value in (query or {}).items() if value is not None},
        body=encoded,
        idempotency_key=idempotency_key,
        headers=headers,
        credential=credential,
        accepts=accepts,
    )


def member(name: str, value: str, elsewhere: Collection[str] = ()) -> str:
    """A member of a path, percent-encoded.

    Args:
        name: The parameter that it is.
        value: Its value.
        elsewhere: The words that lead to other endpoints in its place.

    Raises:
        RequestRefused: SVC_API_REQUEST_INVALID: it would lead elsewhere, or it cannot be encoded.
    """
    if value in elsewhere:
        noun = name.removesuffix("_id")
        raise _refused(name, "path", f"{value!r} is not an id of a {noun} but the name of another endpoint")
    # Servers and proxies decode paths before they look where these lead, so that %2F is a slash to them.
    if value in ("", ".", "..") or "/" in value:
        raise _refused(name, "path", f"{value!r} leads elsewhere in a path")
    try:
        return quote(value, safe="")
    except UnicodeEncodeError as error:
        raise _refused(name, "encoding", "It holds half a character, a lone surrogate") from error


def retry_handle(key: str | None) -> str:
    """An idempotency key: the caller's own, or a fresh one.

    Raises:
        RequestRefused: SVC_API_REQUEST_INVALID: it cannot be sent as it is.
    """
    if key is None:
        return new_id("idem", utc_now())
    # Spaces at the ends of a header are lost on the way.
    if not 1 <= len(key) <= _MAX_IDEMPOTENCY_KEY or not key.isascii() or not key.isprintable() or key != key.strip():
        raise _refused(
            "idempotency_key",
            "pattern",
            f"It must be 1 to {_MAX_IDEMPOTENCY_KEY} printable ASCII characters without spaces at the ends",
        )
    return key


def readiness(content: bytes) -> Any:
    """The report of readiness in an answer's body.

    Raises:
        MaterialRefused: SVC_API_JSON_INVALID: it is none, so that whoever answered 503 was not asked for readiness.
    """
    told = json_object(content)
    if "status" not in told:
        raise MaterialRefused("SVC_API_JSON_INVALID", "The body does not report readiness.")
    return told


def _headers(view: str | None, request_id: str | None) -> dict[str, str]:
    headers = {}
    if view is not None:
        if view not in VIEWS:
            raise _refused("view", "enum", f"{view!r} is not one of {', '.join(VIEWS)}")
        headers["x-decision-response-view"] = view
    if request_id is not None:
        if not _REQUEST_ID.fullmatch(request_id):
            raise _refused("request_id", "pattern", "It must be 1 to 160 characters of A-Z a-z 0-9 . _ : / + = @ -")
        headers["x-request-id"] = request_id
    return headers


def _shown(name: str, value: str | int | float | datetime) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return _time(name, value)
    shown = str(value)
    try:
        shown.encode()
    except UnicodeEncodeError as error:
        raise _refused(name, "encoding", "It holds half a character, a lone surrogate") from error
    return shown


def _time(name: str, moment: datetime) -> str:
    if moment.utcoffset() is None:
        raise _refused(
            name, "format", f"{moment.isoformat()} has no time zone; pass an aware datetime, for example in UTC"
        )
    try:
        # Nothing made at that moment or later has an earlier timestamp.
        return not_before(moment)
    except OverflowError as error:
        raise _refused(name, "range", f"{moment.isoformat()} is outside the years 1 to 9999 in UTC") from error


def _encoded(body: Mapping[str, object]) -> bytes:
    if not isinstance(body, Mapping):
        raise MaterialRefused("SVC_API_JSON_INVALID", f"The body is of type {type(body).__name__}; pass a mapping.")
    return canonical(dict(body))


def _refused(name: str, code: str, what: str) -> RequestRefused:
    fault = FieldError(name, code, f"{what}.")
    return RequestRefused("SVC_API_REQUEST_INVALID", f"The call cannot be made with this {name}. {what}.", [fault])
