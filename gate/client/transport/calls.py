"""One request to the service and how its answer is read. Pure: nothing is sent from here.

    call = operations.decide(request, idempotency_key="order-77")
    answer = read_answer(call, raw, tries=1)
    answer.body["verdict"]

An answer is strict JSON of bounded size, or it is an error.
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
"""The largest answer that is read, in bytes; the largest export has 16 MiB."""

_MAX_WAIT: Final = 7 * 24 * 3600.0
_LONGEST_TEXT: Final = 2000
_CODE: Final = re.compile(r"[A-Z][A-Z0-9_]{1,99}")
_SAFE_ID: Final = re.compile(r"[A-Za-z0-9._:/+=@-]{1,160}")


@dataclass(frozen=True, slots=True)
class Call(Generic[T_co]):
    """One request.

    Attributes:
        operation: Its operationId in the OpenAPI document.
        method: GET or POST.
        path: The path, percent-encoded.
        query: The query parameters.
        body: The JSON body; None where there is none.
        idempotency_key: The retry handle of a write.
        headers: Further headers, in small letters.
        credential: What it is sent with: `key`, `metrics` (the metrics token), or nothing.
        repeatable: Whether sending it again can do no harm: it reads, or it writes under an idempotency key.
        accepts: The statuses whose body is the answer.
        read: Reads the answer's body.
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
    """What came over the wire: the status, the headers by their names in small letters, the whole body."""

    status: int
    headers: Mapping[str, str]
    content: bytes


@dataclass(frozen=True, slots=True)
class Answer(Generic[T_co]):
    """What the service answered.

    Attributes:
        body: The answer.
        status: The HTTP status.
        headers: The headers, by their names in small letters.
        content: The body, byte for byte.
        tries: How often the request was sent.
    """

    body: T_co
    status: int
    headers: Mapping[str, str]
    content: bytes
    tries: int

    @property
    def request_id(self) -> str | None:
        """The handle under which the service's log knows the request."""
        return _request_id(self.headers)

    @property
    def replayed(self) -> bool:
        """Whether the service had answered this idempotency key before."""
        return self.headers.get("x-idempotency-status") == "replayed"


def read_answer(call: Call[T], raw: RawAnswer, *, tries: int) -> Answer[T]:
    """The answer to a call.

    Raises:
        ApiError: By its status, or AnswerUnusable where the body is not what the service answers.
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
    """The JSON object in an answer's body.

    Raises:
        MaterialRefused: SVC_API_JSON_INVALID.
    """
    value = parse_document(content)
    if not isinstance(value, dict):
        raise MaterialRefused("SVC_API_JSON_INVALID", "The body is not a JSON object.")
    return value


def text(content: bytes) -> str:
    """The text in an answer's body; what is no UTF-8 is shown as U+FFFD."""
    return content.decode("utf-8", "replace")


def may_be_sent_again(call: Call[object], error: ApiError) -> bool:
    """Whether the specification lets a failed call be sent again: after network errors and 5xx, under the same
    idempotency key. Refusals, limits and conflicts are the caller's to act on.
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
        return _unusable(call, raw, f"It answered {raw.status}, which this endpoint never does.", tries)
    kind = _BY_STATUS.get(raw.status, ServiceFailed if raw.status >= 500 else Refused)
    told = _told(raw.content)
    code, message = told.get("error"), told.get("message")
    if not isinstance(code, str) or not _CODE.fullmatch(code) or not isinstance(message, str):
        # A proxy in between, most likely.
        code, message = f"HTTP_{raw.status}", f"{call.method} {call.path} answered {raw.status} without an error body."
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
    """A text that came over the wire, for logs and terminals: on one line, and nothing in it is obeyed."""
    return "".join(each if each.isprintable() else " " for each in text[:_LONGEST_TEXT])


def _unusable(call: Call[object], raw: RawAnswer, why: str, tries: int) -> AnswerUnusable:
    return AnswerUnusable(
        "ANSWER_UNUSABLE",
        f"The answer to {call.method} {call.path} is not a valid answer of the service. {why}",
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
