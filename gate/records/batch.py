"""Reads a batch of Decision Requests from the body of `POST /api/decide/batch`.

A fault of the batch itself refuses all of it. The faults of its single requests are found when they are decided.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, cast

import orjson

from gate.encoding.canonical import plain_depth
from gate.encoding.shapes import shape, to_mend
from gate.encoding.strict_json import MAX_REQUEST_DEPTH, MAX_REQUEST_VALUES, exceeds_values, nests_deeper
from gate.errors import FieldError, RequestRefused

if TYPE_CHECKING:
    from gate.encoding.strict_json import JsonObject

MAX_REQUESTS: Final = 500
"""The maximum number of requests in a batch, as in its schema."""

MAX_WITH_ADAPTERS: Final = 20
"""The maximum number of requests that invoke an adapter, because each may take up to the adapter's time limit."""

MAX_REQUEST: Final = 1024 * 1024
"""The maximum size of a request in a batch, in bytes of JSON without spaces."""


# The body, its list, and the item.
_ABOVE_REQUESTS: Final = 3


class Question(NamedTuple):
    """A requested decision.

    Attributes:
        body: The parsed Decision Request.
        idempotency_key: The caller's idempotency key.
        refusal: A fault of the request outside its body. A used key still replays.
        may_advise: Whether the gate may ask an upstream for advice. Otherwise, only rulebooks decide.
        plain: Whether the body is plain, as `canonical.is_plain` defines it, or None if it is unknown.
    """

    body: object
    idempotency_key: str | None = None
    refusal: RequestRefused | None = None
    may_advise: bool = True
    plain: bool | None = None


class Batch(NamedTuple):
    """A batch with a valid shape.

    Attributes:
        questions: The requested decisions, in order.
        response_view: The view of records whose requests have no `response_view`, or None.
    """

    questions: list[Question]
    response_view: str | None


def read_batch(body: object) -> Batch:
    """Reads the parsed body of a batch.

    Raises:
        RequestRefused: `SVC_API_BATCH_INVALID`: the body is not a batch, one of its requests is too large, or too many
            of them invoke adapters.
    """
    if errors := shape("decide-batch-request").errors(body):
        raise invalid(errors)
    batch = cast("JsonObject", body)
    # If the whole body is plain, and no deeper than with the deepest request, no single request needs a check.
    depth = plain_depth(batch)
    most = MAX_REQUEST_DEPTH + _ABOVE_REQUESTS
    deep = nests_deeper(batch, most) if depth is None else depth > most
    plain = None if depth is None else True
    questions = [
        Question(item["request"], cast("str | None", item.get("idempotency_key")), may_advise=False, plain=plain)
        for item in cast("list[JsonObject]", batch["requests"])
    ]
    errors = [
        fault for at, each in enumerate(questions) if (fault := _size_fault(each.body, at, deep=deep)) is not None
    ]
    with_adapters = [at for at, each in enumerate(questions) if "adapter" in cast("JsonObject", each.body)]
    if len(with_adapters) > MAX_WITH_ADAPTERS:
        what = f"A batch may invoke adapters in {MAX_WITH_ADAPTERS} of its requests; send the others in another batch."
        errors.append(FieldError(f"requests[{with_adapters[MAX_WITH_ADAPTERS]}].request.adapter", "too_many", what))
    if errors:
        raise invalid(errors)
    return Batch(questions, cast("str | None", batch.get("response_view")))


def invalid(errors: list[FieldError]) -> RequestRefused:
    """The refusal of a whole batch."""
    return RequestRefused("SVC_API_BATCH_INVALID", to_mend("The body is not a batch of requests", errors), errors)


def no_advice() -> RequestRefused:
    """The refusal of a request of an advisory mode, whose upstream may take minutes."""
    what = 'A batch accepts only mode rulebook; send "mode": "rulebook", or ask for advice at /api/decide.'
    fault = FieldError("mode", "enum", what)
    return RequestRefused("SVC_API_REQUEST_INVALID", f"Field mode: {what}", [fault])


def _size_fault(request: object, at: int, *, deep: bool) -> FieldError | None:
    text = orjson.dumps(request)
    what = None
    if len(text) > MAX_REQUEST:
        what = "too_long", f"It is larger than {MAX_REQUEST} bytes; send a smaller one."
    elif deep and nests_deeper(cast("JsonObject", request), MAX_REQUEST_DEPTH):
        what = "too_deep", f"It nests deeper than {MAX_REQUEST_DEPTH} levels of arrays and objects; flatten it."
    elif exceeds_values(text, most=MAX_REQUEST_VALUES):
        what = "too_many", f"It contains more than {MAX_REQUEST_VALUES} commas and brackets; send fewer values."
    return None if what is None else FieldError(f"requests[{at}].request", *what)
