"""Reads requests: ids, bodies, views, and query parameters."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import datetime
from functools import cache, lru_cache
from typing import Final, TypeVar
from wsgiref.types import WSGIEnvironment

from flask import has_request_context, request
from werkzeug.datastructures import MIMEAccept
from werkzeug.exceptions import RequestTimeout
from werkzeug.http import parse_accept_header

from api.http.state import current_request, noted
from gate.clock import new_id, utc_now
from gate.encoding import resources
from gate.encoding.shapes import MAX_ERRORS
from gate.encoding.strict_json import MAX_REQUEST_DEPTH, MAX_REQUEST_VALUES, Json, parse, parse_document
from gate.errors import FieldError, MaterialRefused, NotFound, RequestRefused, member
from gate.ids import parse_timestamp
from gate.labels import VIEWS

Default = TypeVar("Default", int, None)

TURN: Final = "gate.turn"
"""The key in a request's environ whose function lets another request work while this one waits."""

MAX_BODY: Final = 1024 * 1024
"""The largest request body, in bytes."""

MAX_VERIFY_BODY: Final = 16 * 1024 * 1024
"""The largest body of the verify endpoints, in bytes."""

MAX_SANDBOX_BODY: Final = 64 * 1024
"""The largest body of the sandbox, in bytes. Callers without a key cannot have more evaluated."""

MAX_PILOT_BODY: Final = 16 * 1024
"""The largest body of the intake of pilots, in bytes."""

_PIECE: Final = 64 * 1024
_SAFE_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9._:/+=@-]{1,160}")
_HOST: Final = re.compile(r"(?:[A-Za-z0-9._~%-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]*)?")
_PREFERENCE: Final = re.compile(r"\s*return\s*=\s*\"?(minimal|standard|full)\"?\s*", re.IGNORECASE)


def assign_request_id() -> None:
    """Gives the request its id for logs, its error body, and its record, and refuses an ambiguous head.

    Raises:
        MaterialRefused: `SVC_API_JSON_INVALID`: the head does not have exactly one host, or its method is not in
            capitals. A proxy in front of the service may have understood such a head differently.
        NotFound: `SVC_API_NOT_FOUND`: the path begins with two slashes.
    """
    environ = current_request().environ
    sent = environ.get("HTTP_X_REQUEST_ID", "")
    noted().update(
        started=time.perf_counter(),
        request_id=new_id("req", utc_now()),
        # To be repeated only where it is safe to.
        caller_request_id=sent if _SAFE_REQUEST_ID.fullmatch(sent) else None,
    )
    if environ["PATH_INFO"].startswith("//"):
        # It is read as one slash here, but perhaps not by a proxy that filters paths.
        raise NotFound("SVC_API_NOT_FOUND", "Paths never begin with two slashes; /docs lists the endpoints.")
    if environ["REQUEST_METHOD"] != environ["REQUEST_METHOD"].upper():
        raise MaterialRefused("SVC_API_JSON_INVALID", "HTTP methods are upper case; send the method in capitals.")
    if environ["SERVER_PROTOCOL"] == "HTTP/1.1" and not _HOST.fullmatch(environ.get("HTTP_HOST", "")):
        raise MaterialRefused(
            "SVC_API_JSON_INVALID",
            "The request must name exactly one host; send the Host header once, as name or name:port.",
        )


def read_body(limit: int = MAX_BODY) -> bytes:
    """The bytes of the request body.

    Raises:
        MaterialRefused: `SVC_API_PAYLOAD_TOO_LARGE`, `SVC_API_MEDIA_TYPE_UNSUPPORTED` for a body that is not plain
            JSON, or `SVC_API_JSON_INVALID` for a body that ended early or was sent in chunks.
    """
    environ = current_request().environ
    incoming = environ["wsgi.input"]
    if "HTTP_TRANSFER_ENCODING" in environ:
        # The server library ends a broken chunked body as it ends a whole one. So a JSON text could be decided that its
        # sender never finished; a proxy in front that buffers bodies, as deploy/nginx does, sends their length.
        _discard(incoming.read, MAX_VERIFY_BODY)
        raise MaterialRefused(
            "SVC_API_JSON_INVALID",
            "Bodies in chunks are not accepted; send content-length, and no transfer-encoding.",
        )
    declared = declared_length(environ)
    if declared > limit:
        _discard(incoming.read, declared)
        raise _too_large(limit)
    body = b""
    while len(body) < declared and (piece := incoming.read(declared - len(body))):
        body += piece
    if len(body) != declared:
        raise MaterialRefused(
            "SVC_API_JSON_INVALID", f"The body ended after {len(body)} of {declared} bytes; send all of it."
        )
    if body and not _is_plain_json(environ):
        raise MaterialRefused(
            "SVC_API_MEDIA_TYPE_UNSUPPORTED",
            "The body must be JSON in UTF-8, uncompressed; send content-type: application/json and no"
            " content-encoding.",
        )
    return body


def declared_length(environ: WSGIEnvironment) -> int:
    """How many bytes a request says that its body has; 0 where it does not say so."""
    length = environ.get("CONTENT_LENGTH", "")
    return int(length) if length.isascii() and length.isdigit() else 0


def _is_plain_json(environ: WSGIEnvironment) -> bool:
    """Whether a body is JSON in UTF-8 that nothing was done to."""
    if "HTTP_CONTENT_ENCODING" in environ:
        return False
    # As nearly everybody writes it.
    if environ.get("CONTENT_TYPE") == "application/json":
        return True
    return request.mimetype == "application/json" and request.mimetype_params.get("charset", "utf-8").lower() == "utf-8"


def _discard(read: Callable[[int], bytes], length: int) -> None:
    """Reads a body that nobody wants, where it is not very long: a sender that is still sending may miss its answer.

    One that waits to be told to send is not sending.
    """
    if "expect" in request.headers:
        return
    with suppress(RequestTimeout):
        while 0 < length <= MAX_VERIFY_BODY and (piece := read(_PIECE)):
            length -= len(piece)


def _too_large(limit: int) -> MaterialRefused:
    return MaterialRefused("SVC_API_PAYLOAD_TOO_LARGE", f"The body is larger than {limit} bytes; send a smaller one.")


def parse_body(body: bytes, *, max_depth: int = MAX_REQUEST_DEPTH, max_values: int = MAX_REQUEST_VALUES) -> Json:
    """The JSON value of a body.

    Raises:
        MaterialRefused: `SVC_API_JSON_INVALID`.
    """
    if not body:
        raise MaterialRefused("SVC_API_JSON_INVALID", "The body is empty; send a JSON object.")
    value: Json = parse(body, max_depth=max_depth, max_values=max_values)
    return value


def preferred_view() -> str:
    """The view that the headers ask for: x-decision-response-view, else Prefer, else full.

    Raises:
        RequestRefused: `SVC_API_REQUEST_INVALID`: `x-decision-response-view` is not a view. An unknown preference is
            ignored, as RFC 7240 requires.
    """
    environ = current_request().environ
    named: str | None = environ.get("HTTP_X_DECISION_RESPONSE_VIEW")
    if named is not None:
        if named not in VIEWS:
            must = f"must be one of {', '.join(VIEWS)}; send one of them, or leave it out."
            fault = FieldError("x-decision-response-view", "enum", f"It {must}")
            raise RequestRefused("SVC_API_REQUEST_INVALID", f"The header x-decision-response-view {must}", [fault])
        return named
    for preference in environ.get("HTTP_PREFER", "").split(","):
        if found := _PREFERENCE.fullmatch(preference.partition(";")[0]):
            return found[1].lower()
    return "full"


def query_text(name: str) -> str | None:
    """A query parameter as it was sent, or None.

    Raises:
        RequestRefused: `SVC_API_QUERY_INVALID`: the parameter is empty or was sent more than once, or an operation
            with a key got an unknown parameter.
    """
    _require_declared()
    sent = request.args.getlist(name)
    if len(sent) > 1:
        raise _unusable(name, "duplicate", "was sent more than once; send it once.")
    if sent == [""]:
        raise _unusable(name, "too_short", "is empty; give it a value or remove it.")
    return sent[0] if sent else None


def query_integer(name: str, default: Default, lowest: int, highest: int) -> int | Default:
    """An integer query parameter within its bounds, or the default if it was not sent.

    Raises:
        RequestRefused: `SVC_API_QUERY_INVALID`.
    """
    text = query_text(name)
    if text is None:
        return default
    if re.fullmatch(r"[0-9]{1,9}", text) and lowest <= int(text) <= highest:
        return int(text)
    raise _unusable(name, "range", f"must be a whole number from {lowest} to {highest}.")


def query_share(name: str) -> float | None:
    """A query parameter from 0 to 1, or None.

    Raises:
        RequestRefused: `SVC_API_QUERY_INVALID`.
    """
    text = query_text(name)
    if text is None:
        return None
    if re.fullmatch(r"(0(\.[0-9]{1,6})?|1(\.0{1,6})?)", text):
        return float(text)
    raise _unusable(name, "range", "must be a number from 0 to 1 with at most six decimals, for example 0.35.")


def query_boolean(name: str, *, default: bool) -> bool:
    """A query parameter that is true or false.

    Raises:
        RequestRefused: `SVC_API_QUERY_INVALID`.
    """
    chosen = query_choice(name, ("true", "false"))
    return default if chosen is None else chosen == "true"


def query_choice(name: str, choices: Sequence[str]) -> str | None:
    """A query parameter that is one of the choices, or None.

    Raises:
        RequestRefused: `SVC_API_QUERY_INVALID`.
    """
    text = query_text(name)
    if text is None or text in choices:
        return text
    must = f"one of {', '.join(choices)}; send one of them" if len(choices) > 1 else f"{choices[0]} here; send that"
    raise _unusable(name, "enum", f"must be {must}, or leave it out.")


def query_time(name: str) -> datetime | None:
    """A query parameter that is a time, in UTC, or None.

    Raises:
        RequestRefused: `SVC_API_QUERY_INVALID`.
    """
    text = query_text(name)
    if text is None:
        return None
    try:
        return parse_timestamp(text)
    except ValueError as error:
        plus = " In a query string, write + as %2B." if " " in text else ""
        must = f"must be a time with a time zone, for example 2026-01-31T12:00:00.000Z.{plus}"
        raise _unusable(name, "format", must) from error


def require_period(since: datetime | None, until: datetime | None) -> None:
    """Refuses a period that does not end after its beginning, because it cannot contain a decision.

    Args:
        since: The query parameter `since`.
        until: The query parameter `until`.

    Raises:
        RequestRefused: `SVC_API_QUERY_INVALID`.
    """
    if since is not None and until is not None and until <= since:
        raise _unusable("until", "range", "must be after since; send a later time, or leave one of them out.")


def query_cursor() -> int | None:
    """The chain position in the query parameter `cursor`, which is the `next_cursor` of an earlier answer, or None.

    Raises:
        RequestRefused: `SVC_API_QUERY_INVALID`.
    """
    text = query_text("cursor")
    if text is None:
        return None
    if re.fullmatch(r"[0-9]{1,18}", text):
        return int(text)
    raise _unusable("cursor", "format", "must be the next_cursor of an earlier answer.")


def query_entry_cursor(prefix: str) -> str | None:
    """The id of a chain entry in `cursor`, which is the `next_cursor` of an earlier answer, or None.

    Args:
        prefix: The prefix of such ids, before the underscore.

    Raises:
        RequestRefused: `SVC_API_QUERY_INVALID`.
    """
    text = query_text("cursor")
    if text is None or re.fullmatch(rf"{prefix}_[0-9a-f]{{32}}", text):
        return text
    raise _unusable("cursor", "format", "must be the next_cursor of an earlier answer.")


def accepted(*media_types: str) -> str:
    """The caller's preferred media type among those of an operation; the first one if the caller accepts none."""
    return _accept(request.headers.get("accept", "")).best_match(media_types, default=media_types[0])


def accepts(media_type: str) -> bool:
    """Whether the caller accepts a media type. Without the header `accept`, it does."""
    sent = request.headers.get("accept")
    if sent is None:
        return True
    return _accept(sent).quality(media_type) > 0


def _accept(header: str) -> MIMEAccept:
    """What a header Accept takes."""
    return _usual_accept(header) if len(header) <= _USUAL_ACCEPT else _usual_accept.__wrapped__(header)


# A client sends the same one with each request. Long ones are not kept.
@lru_cache(256)
def _usual_accept(header: str) -> MIMEAccept:
    # Parameters of a media type, such as a charset, choose nothing here.
    return MIMEAccept([(one.partition(";")[0].strip(), q) for one, q in parse_accept_header(header, MIMEAccept)])


_USUAL_ACCEPT: Final = 256


def _unusable(name: str, code: str, what: str) -> RequestRefused:
    """The refusal of a query parameter; `what` says of it what is wrong and what to do."""
    fault = FieldError(name, code, f"It {what}")
    return RequestRefused("SVC_API_QUERY_INVALID", f"The query parameter {name} {what}", [fault])


def _require_declared() -> None:
    """Requires that an operation for holders of a key was sent no parameter that it does not have: what is misspelt
    would narrow nothing, and its answer would be taken for narrowed.
    """
    declared = _declared_parameters().get(str(request.url_rule), ()) if request.args else ()
    unknown = sorted(request.args.keys() - set(declared))[:MAX_ERRORS] if declared else []
    if unknown:
        what = f"is unknown; check its spelling or remove it. Known parameters: {', '.join(declared)}."
        faults = [FieldError(member("", name), "unknown_parameter", f"It {what}") for name in unknown]
        raise RequestRefused("SVC_API_QUERY_INVALID", f"The query parameter {faults[0].field} {what}", faults)


@cache
def _declared_parameters() -> Mapping[str, Sequence[str]]:
    """The query parameters of each operation for holders of a key, by its route, as the OpenAPI document has them."""
    document = parse_document(resources.path("schemas", "openapi.json").read_bytes())
    shared = document["components"]["parameters"]
    found: dict[str, Sequence[str]] = {}
    for path, item in document["paths"].items():
        operation = item.get("get", {})
        if operation.get("security"):
            listed = [
                shared[one["$ref"].rpartition("/")[2]] if "$ref" in one else one for one in operation["parameters"]
            ]
            names = [one["name"] for one in listed if one["in"] == "query"]
            found[path.replace("{", "<").replace("}", ">")] = names
    return found


def others_working() -> AbstractContextManager[None]:
    """Lets other requests of the worker go on while this one waits for something."""
    waiting = current_request().environ.get(TURN) if has_request_context() else None
    found: AbstractContextManager[None] = nullcontext() if waiting is None else waiting()
    return found
