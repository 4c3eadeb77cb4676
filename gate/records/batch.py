"""A batch of Decision Requests, read from the body of `POST /api/decide/batch`.

What is wrong with the batch refuses all of it; what is wrong with one of its requests is found when that is decided.
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
"""How many requests a batch has at most; the schema says so too."""

MAX_WITH_ADAPTERS: Final = 20
"""How many of them may invoke an adapter, which takes up to its time limit each."""

MAX_REQUEST: Final = 1024 * 1024
"""The longest request of a batch, in bytes of JSON without spaces."""


# The body, its list, and the item.
_ABOVE_REQUESTS: Final = 3


class Question(NamedTuple):
    """A decision that is asked for.

    Attributes:
        body: The parsed Decision Request.
        idempotency_key: The caller's retry handle.
        refusal: What is wrong with the request beside its body; a used key still replays.
        may_advise: Whether an upstream may be asked for advice; otherwise only rulebooks decide.
        plain: Whether the body is plain, as `canonical.is_plain` says; None where nobody has looked.
    """

    body: object
    idempotency_key: str | None = None
    refusal: RequestRefused | None = None
    may_advise: bool = True
    plain: bool | None = None


class Batch(NamedTuple):
    """A batch whose parts have their places.

    Attributes:
        questions: What is asked, in order.
        response_view: The view of records whose requests name none; None where the batch names none either.
    """

    questions: list[Question]
    response_view: str | None


def read_batch(body: object) -> Batch:
    """Reads the parsed body of a batch.

    Raises:
        RequestRefused: SVC_API_BATCH_INVALID: it is no batch, or one of its requests is too large, or too many invoke
            adapters.
    """
    if errors := shape("decide-batch-request").errors(body):
        raise invalid(errors)
    batch = cast("JsonObject", body)
    # Where the whole is plain, and no deeper than with the deepest request, no request needs a look of its own.
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
    """The refusal of a whole batch, for what is wrong with it."""
    return RequestRefused("SVC_API_BATCH_INVALID", to_mend("The body is not a batch of requests", errors), errors)


def no_advice() -> RequestRefused:
    """The refusal of a request of an advisory mode, whose upstream may take minutes."""
    what = 'A batch decides by rulebooks alone; send "mode": "rulebook", or ask for advice at /api/decide.'
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
        what = "too_many", f"It holds more than {MAX_REQUEST_VALUES} commas and brackets; send fewer values."
    return None if what is None else FieldError(f"requests[{at}].request", *what)
