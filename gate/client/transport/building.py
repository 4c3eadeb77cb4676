"""Builds the call of an operation from its arguments: checks and encodes them, and omits those that are None."""

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
_LONE_SURROGATE: Final = "It contains half of a surrogate pair, which UTF-8 cannot encode"


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
        operation: The operation's `operationId`.
        method: GET or POST.
        path: The path, percent-encoded.
        query: The query parameters. Those that are None are omitted.
        body: The JSON body, or None.
        view: The view of the response, or None for the service's default.
        request_id: The caller's trace id.
        idempotency_key: The idempotency key of a write.
        credential: The key to send: `key`, `metrics` or None.
        accepts: The statuses of a successful response.
        read: Parses the body of the response.
        media_type: The media type of the response, if it is not JSON.

    Raises:
        MaterialRefused: `SVC_API_JSON_INVALID`: the body is not a JSON object.
        RequestRefused: `SVC_API_REQUEST_INVALID`: another argument is invalid.
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
    """A parameter of a path, percent-encoded.

    Args:
        name: The name of the parameter.
        value: Its value.
        elsewhere: Values that are the names of other endpoints.

    Raises:
        RequestRefused: `SVC_API_REQUEST_INVALID`: the value would change the path, or UTF-8 cannot encode it.
    """
    if value in elsewhere:
        noun = name.removesuffix("_id")
        raise _refused(name, "path", f"{value!r} is the name of another endpoint, not the id of a {noun}")
    # Servers and proxies decode a path before they route it, so %2F is a slash to them.
    if value in ("", ".", "..") or "/" in value:
        raise _refused(name, "path", f"{value!r} would change the path of the request")
    try:
        return quote(value, safe="")
    except UnicodeEncodeError as error:
        raise _refused(name, "encoding", _LONE_SURROGATE) from error


def retry_handle(key: str | None) -> str:
    """An idempotency key: the caller's own, or a new one.

    Raises:
        RequestRefused: `SVC_API_REQUEST_INVALID`: the key is invalid.
    """
    if key is None:
        return new_id("idem", utc_now())
    # HTTP drops spaces at the ends of a header.
    if not 1 <= len(key) <= _MAX_IDEMPOTENCY_KEY or not key.isascii() or not key.isprintable() or key != key.strip():
        raise _refused(
            "idempotency_key",
            "pattern",
            f"It must be 1 to {_MAX_IDEMPOTENCY_KEY} printable ASCII characters without spaces at the ends",
        )
    return key


def readiness(content: bytes) -> Any:
    """The readiness report in the body of a response.

    Raises:
        MaterialRefused: `SVC_API_JSON_INVALID`: the body is not a readiness report, so a proxy sent the 503.
    """
    told = json_object(content)
    if "status" not in told:
        raise MaterialRefused("SVC_API_JSON_INVALID", "The body is not a readiness report.")
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
        raise _refused(name, "encoding", _LONE_SURROGATE) from error
    return shown


def _time(name: str, moment: datetime) -> str:
    if moment.utcoffset() is None:
        raise _refused(
            name, "format", f"{moment.isoformat()} has no time zone; pass an aware datetime, for example in UTC"
        )
    try:
        # Nothing created at that moment or later has an earlier timestamp.
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
