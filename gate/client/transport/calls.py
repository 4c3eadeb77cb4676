"""One request to the service, and how its response is read. Pure: this module sends nothing.

    call = operations.decide(request, idempotency_key="order-77")
    answer = read_answer(call, raw, tries=1)
    answer.body["verdict"]

A response is strict JSON of limited size, or an error.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from gate.client.errors import (
    AnswerUnusable,
    ApiError,
    Conflict,
    Forbidden,
    LimitReached,
    NotFound,
    Refused,
    ServiceFailed,
    Unauthorized,
    Unreachable,
)
from gate.encoding.strict_json import parse_document
from gate.errors import FieldError, MaterialRefused

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

MAX_ANSWER: Final = 17 * 1024 * 1024
"""The size limit of a response, in bytes. The largest export has 16 MiB."""

_MAX_WAIT: Final = 7 * 24 * 3600.0
_LONGEST_TEXT: Final = 2000
_CODE: Final = re.compile(r"[A-Z][A-Z0-9_]{1,99}")
_SAFE_ID: Final = re.compile(r"[A-Za-z0-9._:/+=@-]{1,160}")


@dataclass(frozen=True, slots=True)
class Call(Generic[T_co]):
    """One request to the service. The functions of `gate.client.operations` create it, and `Client.send` sends it.

    Attributes:
        operation: The `operationId` in `schemas/openapi.json`.
        method: The HTTP method, `GET` or `POST`.
        path: The path, percent-encoded.
        query: The query parameters.
        body: The JSON body, or None.
        idempotency_key: The idempotency key of a write, or None.
        headers: Other headers, with names in lower case.
        credential: The key to send: `key` for the API key, `metrics` for the metrics token, or None.
        repeatable: Whether the client may repeat the request, as it does for every published operation.
        accepts: The statuses of a successful response.
        read: Parses the body of the response.
    """

    operation: str
    method: str
    path: str
    read: Callable[[bytes], T_co]
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    idempotency_key: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    credential: str | None = "key"
    repeatable: bool = True
    accepts: tuple[int, ...] = (200,)


@dataclass(frozen=True, slots=True)
class RawAnswer:
    """The response as received: the status, the headers with names in lower case, and the complete body."""

    status: int
    headers: Mapping[str, str]
    content: bytes


@dataclass(frozen=True, slots=True)
class Answer(Generic[T_co]):
    """The response of the service, as `Client.send` returns it.

    Attributes:
        body: The parsed body.
        status: The HTTP status.
        headers: The headers, with names in lower case.
        content: The body as bytes.
        tries: How often the client sent the request.
    """

    body: T_co
    status: int
    headers: Mapping[str, str]
    content: bytes
    tries: int

    @property
    def request_id(self) -> str | None:
        """The id of the request in the service's log, or None."""
        return _request_id(self.headers)

    @property
    def replayed(self) -> bool:
        """Whether the service repeated its first response to this idempotency key."""
        return self.headers.get("x-idempotency-status") == "replayed"


def read_answer(call: Call[T], raw: RawAnswer, *, tries: int) -> Answer[T]:
    """Reads the response to a call.

    Raises:
        ApiError: The error for its status, or `AnswerUnusable` if the body is not a response of the service.
    """
    if raw.status not in call.accepts:
        raise _error(call, raw, tries)
    try:
        body = call.read(raw.content)
    except MaterialRefused as error:
        why = error.message.replace("The body", "Its body", 1)
        raise _unusable(call, raw, why, tries) from error
    return Answer(body, raw.status, raw.headers, raw.content, tries)


def json_object(content: bytes) -> Any:
    """The JSON object in the body of a response.

    Raises:
        MaterialRefused: `SVC_API_JSON_INVALID`.
    """
    value = parse_document(content)
    if not isinstance(value, dict):
        raise MaterialRefused("SVC_API_JSON_INVALID", "The body is not a JSON object.")
    return value


def text(content: bytes) -> str:
    """The text in the body of a response. `U+FFFD` replaces invalid UTF-8."""
    return content.decode("utf-8", "replace")


def may_be_sent_again(call: Call[object], error: ApiError) -> bool:
    """Whether the client may send a failed call again: after network errors and 5xx, with the same idempotency key.

    The caller must handle refusals, limits, and conflicts.
    """
    return call.repeatable and isinstance(error, Unreachable | ServiceFailed)


_BY_STATUS: Final[Mapping[int, type[ApiError]]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    429: LimitReached,
}


def _error(call: Call[object], raw: RawAnswer, tries: int) -> ApiError:
    if raw.status < 400:
        return _unusable(call, raw, f"Its status is {raw.status}, which this endpoint never returns.", tries)
    kind = _BY_STATUS.get(raw.status, ServiceFailed if raw.status >= 500 else Refused)
    told = _told(raw.content)
    code, message = told.get("error"), told.get("message")
    if not isinstance(code, str) or not _CODE.fullmatch(code) or not isinstance(message, str):
        # A proxy in between, most likely.
        code, message = f"HTTP_{raw.status}", f"{call.method} {call.path} returned {raw.status} without an error body."
    usual = ("c", "v", "error", "message", "request_id", "errors")
    return kind(
        code,
        one_line(message),
        _faults(told.get("errors")),
        {name: value for name, value in told.items() if name not in usual},
        status=raw.status,
        retry_after=_retry_after(raw.headers, told),
        request_id=_request_id(raw.headers),
        tries=tries,
    )


def one_line(text: str) -> str:
    """A received text for logs and terminals: on one line, without control characters, and of limited length."""
    return "".join(each if each.isprintable() else " " for each in text[:_LONGEST_TEXT])


def _unusable(call: Call[object], raw: RawAnswer, why: str, tries: int) -> AnswerUnusable:
    return AnswerUnusable(
        "ANSWER_UNUSABLE",
        f"The response to {call.method} {call.path} is not a valid response of the service. {why}",
        status=raw.status,
        request_id=_request_id(raw.headers),
        tries=tries,
    )


def _told(content: bytes) -> Mapping[str, object]:
    try:
        value: Mapping[str, object] = json_object(content)
    except MaterialRefused:
        return {}
    return value


def _faults(listed: object) -> list[FieldError]:
    found = []
    for fault in listed if isinstance(listed, list) else ():
        if isinstance(fault, dict):
            found.append(FieldError(*(one_line(str(fault.get(name, ""))) for name in ("field", "code", "message"))))
    return found


def _retry_after(headers: Mapping[str, str], told: Mapping[str, object]) -> float | None:
    said = headers.get("retry-after", "").strip()
    if said.isascii() and said.isdecimal() and len(said) < 10:
        return min(float(said), _MAX_WAIT)
    value = told.get("retry_after")
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0:
        return min(float(value), _MAX_WAIT)
    return None


def _request_id(headers: Mapping[str, str]) -> str | None:
    said = headers.get("x-request-id", "")
    return said if _SAFE_ID.fullmatch(said) else None
