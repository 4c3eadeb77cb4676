"""`POST /api/decide/batch`: many decisions, each with its own record or its own refusal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from threading import Lock
from typing import Final, TypeAlias, cast

from flask import Blueprint, Response, g, request

from api.errors import told, unexpected
from api.http.auth import recognize
from api.http.limits import counted_within_rate, tell_remaining
from api.http.requests import others_working, parse_body, preferred_view, read_body
from api.http.responses import json_response
from api.http.state import operations, state
from api.routes.decisions import view_of
from gate.decisions.decide import Decision
from gate.encoding.strict_json import MAX_VALUES, MAX_VERIFY_DEPTH, JsonObject
from gate.errors import FieldError, GateError, LimitReached, ServiceUnavailable
from gate.ledger.stores.store import WRITE_TIMEOUT
from gate.records.batch import Batch, Question, invalid, read_batch
from gate.records.request import hint
from gate.records.views import project

blueprint = Blueprint("batches", __name__)

MAX_BATCH_BODY: Final = 16 * 1024 * 1024
"""The largest body of a batch, in bytes."""

# Batches that are made side by side would pass the interpreter to each other at every signature.
_one_at_a_time: Final = Lock()

Outcome: TypeAlias = Decision | GateError


@blueprint.post("/api/decide/batch")
def decide_batch() -> Response:
    """Creates or replays a Decision Record for each request of a batch, in order, or returns its error."""
    sent = read_body(MAX_BATCH_BODY)
    caller = recognize("decide")
    with caller.confirming():
        batch, view = _read(sent)
    refusals = counted_within_rate(caller, len(batch.questions))
    admitted = [each for each, refusal in zip(batch.questions, refusals, strict=True) if refusal is None]
    with _in_turn(batch):
        decided = iter(
            state().gate.decide_all(caller.authority, admitted, request_id=g.request_id, unforeseen=_unforeseen)
            if admitted
            else ()
        )
    outcomes: list[Outcome] = [next(decided) if refusal is None else refusal for refusal in refusals]
    _note(outcomes)
    results = [_result(each, outcome, view) for each, outcome in zip(batch.questions, outcomes, strict=True)]
    return json_response({"results": results}, headers=_hints(batch.questions, outcomes))


@contextmanager
def _in_turn(batch: Batch) -> Iterator[None]:
    """Decides one batch of a worker at a time, except for batches that wait for adapters.

    Raises:
        ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`: its turn did not come.
    """
    if any("adapter" in cast("JsonObject", each.body) for each in batch.questions):
        yield
        return
    with others_working():
        taken = _one_at_a_time.acquire(timeout=WRITE_TIMEOUT)
    if not taken:
        raise ServiceUnavailable(
            "SVC_STORAGE_UNAVAILABLE",
            f"Nothing was acknowledged: other batches took {WRITE_TIMEOUT:g} seconds. Retry with the same idempotency "
            f"keys, or send smaller batches.",
        )
    try:
        yield
    finally:
        _one_at_a_time.release()


def _read(sent: bytes) -> tuple[Batch, str]:
    """The batch, and the view of its records where neither a request nor the batch names one."""
    # Deeper than any request of it may nest, so that the refusal of one can name it.
    body = parse_body(sent, max_depth=MAX_VERIFY_DEPTH, max_values=MAX_VALUES)
    if "x-idempotency-key" in request.headers:
        what = (
            "It identifies a single decision; leave it out, and give each request of the batch its own idempotency_key."
        )
        raise invalid([FieldError("x-idempotency-key", "unknown_field", what)])
    batch, preferred = read_batch(body), preferred_view()
    return batch, batch.response_view or preferred


def _result(question: Question, outcome: Outcome, view: str) -> dict[str, object]:
    if isinstance(outcome, GateError):
        status, body = told(outcome, decides=True)
        return {"status": "refused", "http_status": status, "error": body}
    shown = project(outcome.record, view_of(question.body, view))
    return {"status": outcome.status, "http_status": 200, "record": shown}


def _unforeseen(error: Exception) -> GateError:
    found = unexpected(error)
    # It is not the answer's, and is counted with the other refusals.
    g.pop("error", None)
    return found


def _note(outcomes: Sequence[Outcome]) -> None:
    """Counts what became of each request, and says so in the log and in the headers."""
    metrics = operations().metrics
    statuses: Counter[str] = Counter()
    reasons: dict[str, str] = {}
    remaining: list[int | None] = []
    for outcome in outcomes:
        if isinstance(outcome, GateError):
            statuses["refused"] += 1
            metrics.error(outcome.code)
            if isinstance(outcome, LimitReached):
                remaining.append(cast("int | None", outcome.details.get("monthly_remaining")))
            if told(outcome, decides=True)[0] >= HTTPStatus.INTERNAL_SERVER_ERROR:
                # Why the service could not decide stands in its log, as with a single request.
                reasons.setdefault("reason", outcome.message)
        else:
            statuses[outcome.status] += 1
            metrics.decision(outcome.record["verdict"], outcome.status)
            remaining.append(outcome.remaining)
    # The last record that was made left the fewest.
    tell_remaining(min((left for left in remaining if left is not None), default=None))
    g.observed = {"requests": len(outcomes), **statuses, **reasons}


def _hints(questions: Sequence[Question], outcomes: Sequence[Outcome]) -> Mapping[str, str]:
    """The header x-decision-hint, about the first request whose sender may have overlooked something."""
    for at, (question, outcome) in enumerate(zip(questions, outcomes, strict=True)):
        if isinstance(outcome, Decision) and (found := hint(question.body)) is not None:
            return {"x-decision-hint": f"requests[{at}]: {found}"}
    return {}
