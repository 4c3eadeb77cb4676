"""A permit: the verified yes, or the owner's verified grant, under which the body runs, and tells what it did."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypedDict, Unpack, cast

from gate.client.guard.proposal import idempotency_key
from gate.client.store.intents import EXECUTION, OUTCOME, Intent, Report, Store
from gate.client.transport.flow import Do, Flow
from gate.clock import utc_now
from gate.encoding.canonical import canonical
from gate.encoding.strict_json import MAX_SAFE_INTEGER
from gate.errors import FieldError, RequestRefused
from gate.ids import timestamp
from gate.records.envelope import action_binding

if TYPE_CHECKING:
    from gate.client.api.types import DecisionRecord
    from gate.client.transport.async_engine import AsyncEngine
    from gate.client.transport.engine import Engine

EXECUTION_STATUSES: Final = ("executed", "queued", "skipped", "failed", "blocked", "reviewed", "reverted")
OUTCOME_STATUSES: Final = ("succeeded", "failed", "partial", "reverted", "pending", "review")

LONGEST_RESULT: Final = 2000
"""How many characters the result of an execution receipt has at most."""

_MAX_METRICS: Final = 64
_LONGEST_METRIC: Final = 120


class Outcome(TypedDict, total=False):
    """What can be said of an outcome besides its status.

    Attributes:
        metrics: What was measured, by name; at most 64 finite numbers, integers within 2^53-1.
        executed: Whether the action was executed.
        external_ref: The caller's reference.
        evidence_refs: References to evidence that is kept elsewhere.
    """

    metrics: Mapping[str, int | float]
    executed: bool
    external_ref: str
    evidence_refs: Sequence[str]


class BasePermit:
    """A verified yes for one action, or a verified grant of its review, to be used once and now.

    Attributes:
        record: The full Decision Record; it is in the store as well.
        resolution: The owner's grant, where the verdict was review; None for a yes. It is in the store as well.
        intent: The attempt at the intent, as it was kept.
    """

    def __init__(self, store: Store, intent: Intent, record: DecisionRecord, *, ended: bool = False) -> None:
        """Takes where it is kept, the started attempt, its record, and whether the body has ended."""
        # Open, as its owner reads it: no type knows the members that rulebooks and adapters put into it.
        self.record: Final[Mapping[str, Any]] = record
        self.resolution: Final[Mapping[str, Any] | None] = cast("Mapping[str, Any] | None", intent.resolution)
        self.intent: Final = intent
        # The record is the body's to do with as it likes.
        self._cited: Final = cited(record)
        self._store = store
        self._said: dict[str, object] = {}
        self._ended = ended

    def __repr__(self) -> str:
        """The permit by its decision and action."""
        return f"<{type(self).__name__} {self.decision_id}: {self.action}>"

    @property
    def intent_id(self) -> str:
        """The name of the intent in the guard's store."""
        return self.intent.intent_id

    @property
    def decision_id(self) -> str:
        """The decision's id."""
        return self._cited.decision_id

    @property
    def action(self) -> str:
        """The action label that the rulebook's outcome gave; of a granted review the proposed action."""
        return self._cited.action

    def describe(
        self,
        *,
        status: str | None = None,
        result: str | None = None,
        action_taken: str | None = None,
        external_ref: str | None = None,
        state_before_hash: str | None = None,
        state_after_hash: str | None = None,
        state_before_ref: str | None = None,
        state_after_ref: str | None = None,
        evidence_refs: Sequence[str] | None = None,
        executor: Mapping[str, str] | None = None,
    ) -> None:
        """Says more of the run than that it ended well; it goes into the execution receipt. What is said last counts.

        Args:
            status: What became of the action where it is not `executed`: `queued`, `skipped` and so on.
            result: The result in the caller's words, at most 2,000 characters.
            action_taken: The action that was performed, where it is not the decision's; the receipt then has the flag
                ACTION_TAKEN_MISMATCH, and is reported as an anomaly.
            external_ref: The caller's reference to the transaction.
            state_before_hash: A hash of the target's state before the action, with its algorithm: sha256:...
            state_after_hash: The same after it.
            state_before_ref: Where the state before is kept.
            state_after_ref: Where the state after is kept.
            evidence_refs: References to evidence that is kept elsewhere.
            executor: Who performed it: {type, id}.

        Raises:
            RequestRefused: SVC_API_REQUEST_INVALID, naming the argument at fault.
            RuntimeError: The body has ended.
        """
        if self._ended:
            raise RuntimeError(
                "The block has ended and its receipt is made; report what came of it with permit.outcome()."
            )
        if status is not None and status not in EXECUTION_STATUSES:
            raise _invalid("status", f"must be one of {', '.join(EXECUTION_STATUSES)}")
        given = {
            "execution_status": status,
            "execution_result": result,
            "action_taken": action_taken,
            "external_ref": external_ref,
            "state_before_hash": state_before_hash,
            "state_after_hash": state_after_hash,
            "state_before_ref": state_before_ref,
            "state_after_ref": state_after_ref,
            "evidence_refs": evidence_refs,
            "executor": executor,
        }
        for name, value in given.items():
            if value is not None:
                _check(name, value)
                self._said[name] = _copied(value)

    def execution_report(self, error: BaseException | None) -> Report:
        """The execution receipt to be: what was described, or that the body failed and by which exception.

        The exception's type is told and not its text, which may hold what belongs to nobody else.
        """
        self._ended = True
        body: dict[str, object] = {"execution_status": "executed", **self._cited.taken, **self._said}
        if error is not None:
            body |= {"execution_status": "failed", "execution_result": f"raised {name_of(error)}"}
            body.pop("action_taken", None)
        return execution_report(self.intent, self._cited, body)

    def _outcome(self, status: str, said: Outcome) -> Flow[None]:
        if self._ended and (yield from Do(lambda: self._store.follows_session)):
            raise RuntimeError(
                "The block has ended, and its session may not be committed yet; report the outcome after the commit."
            )
        if status not in OUTCOME_STATUSES:
            raise _invalid("status", f"must be one of {', '.join(OUTCOME_STATUSES)}")
        metrics = said.get("metrics")
        if metrics is not None and not isinstance(metrics, Mapping):
            raise _invalid("metrics", "must be a mapping from names to numbers")
        measured = dict(metrics or {})
        if unknown := sorted(said.keys() - Outcome.__optional_keys__):
            known = ", ".join(sorted(Outcome.__optional_keys__))
            raise _invalid(unknown[0], f"is unknown; an outcome can have {known}")
        if len(measured) > _MAX_METRICS:
            raise _invalid("metrics", f"has more than {_MAX_METRICS} numbers; report the ones that matter")
        for name, value in measured.items():
            if not is_text(name, _LONGEST_METRIC):
                raise _invalid("metrics", f"must have names of 1 to {_LONGEST_METRIC} characters")
            if not _is_number(value):
                raise _invalid(f"metrics.{name}", "must be a finite number, and within 2^53-1 if it is an integer")
        body: dict[str, object] = {"outcome_status": status, **self._cited.taken}
        if measured:
            body["observed_metrics"] = measured
        executed = said.get("executed")
        if executed is not None:
            if not isinstance(executed, bool):
                raise _invalid("executed", "must be True or False")
            body["action_executed"] = executed
        for name in ("external_ref", "evidence_refs"):
            reference = dict(said).get(name)
            if reference is not None:
                _check(name, reference)
                body[name] = _copied(reference)
        _require_no_credential(body)
        report = _report(OUTCOME, self.intent, self._cited, self.intent.request["context"], body)
        yield from Do(partial(self._store.tell, report))


class Permit(BasePermit):
    """A verified yes, in a thread."""

    def __init__(
        self,
        engine: Engine,
        wake: Callable[[], None],
        store: Store,
        intent: Intent,
        record: DecisionRecord,
        *,
        ended: bool = False,
    ) -> None:
        """Takes what performs flows, what wakes the delivery of reports, and what a permit is made of."""
        super().__init__(store, intent, record, ended=ended)
        self._engine = engine
        self._wake = wake

    def outcome(self, status: str, **said: Unpack[Outcome]) -> None:
        """Reports what came of the action, in the body or at any time after it: it is kept at once, and delivered.

        Args:
            status: succeeded, failed, partial, reverted, pending or review.
            said: What else is known: see `Outcome`.

        Raises:
            RequestRefused: SVC_API_REQUEST_INVALID, naming the argument at fault.
            StoreUnavailable: It could not be kept.
            RuntimeError: With a session: the block has ended, and it is not committed.
        """
        with _telling(self._store, self._wake):
            self._engine.run(self._outcome(status, said))


class AsyncPermit(BasePermit):
    """A verified yes, in an event loop."""

    def __init__(
        self,
        engine: AsyncEngine,
        wake: Callable[[], None],
        store: Store,
        intent: Intent,
        record: DecisionRecord,
        *,
        ended: bool = False,
    ) -> None:
        """Takes what performs flows, what wakes the delivery of reports, and what a permit is made of."""
        super().__init__(store, intent, record, ended=ended)
        self._engine = engine
        self._wake = wake

    async def outcome(self, status: str, **said: Unpack[Outcome]) -> None:
        """As `Permit.outcome`."""
        with _telling(self._store, self._wake):
            await self._engine.run(self._outcome(status, said))


@contextmanager
def _telling(store: Store, wake: Callable[[], None]) -> Iterator[None]:
    """Has what is told within delivered: also where that was interrupted or cancelled, for it may have been kept."""
    refused = False
    try:
        yield
    except Exception:
        refused = True
        raise
    finally:
        if not refused:
            store.when_kept(wake)


class Cited(NamedTuple):
    """What a report repeats of its record."""

    decision_id: str
    record_hash: str
    receipt_hash: str
    scope_hash: str
    action: str
    taken: Mapping[str, str]


def cited(record: DecisionRecord) -> Cited:
    """What a report repeats of a record.

    The label of a review's outcome names what to do instead of the action; the action that is granted is the proposed
    one. A proposed action may be longer than the service takes besides the binding, which every report repeats.
    """
    scope_hash = record["rulebook_registry"]["scope_hash"]
    action = record["action"]
    if record["verdict"] == "review":
        action = str(record["action_binding"]["proposed_action"])
    taken = {"action_taken": action} if is_text(action, _LONGEST["action_taken"]) else {}
    return Cited(record["decision_id"], record["record_hash"], record["receipt_hash"], scope_hash, action, taken)


def execution_report(intent: Intent, of: Cited, body: Mapping[str, object]) -> Report:
    """An execution receipt to be, about an attempt.

    Args:
        intent: The attempt.
        of: What it repeats of its record.
        body: What became of it: execution_status and whatever else is known.
    """
    context = intent.request["context"]
    known = {
        "action_binding": action_binding(context),
        "execution_id": f"{intent.intent_id}-{intent.attempt}",
        # Not its end: a grant opens what begins before it ends, and an end may be found out days later.
        "executed_at": intent.started_at or timestamp(utc_now()),
    }
    return _report(EXECUTION, intent, of, context, known | dict(body))


def name_of(error: BaseException) -> str:
    """The name of an exception's type, with its module where that says more."""
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    return name[:_LONGEST_NAME].encode("utf-8", "replace").decode()


def _report(kind: str, intent: Intent, of: Cited, context: Mapping[str, object], body: Mapping[str, object]) -> Report:
    target = {name: context[name] for name in ("target_system", "target_object_id", "mutation") if name in context}
    hashes = {"decision_record_hash": of.record_hash, "decision_receipt_hash": of.receipt_hash}
    key = idempotency_key(intent.intent_id, intent.attempt)
    return Report(
        intent_id=intent.intent_id,
        attempt=intent.attempt,
        kind=kind,
        decision_id=of.decision_id,
        scope_hash=of.scope_hash,
        # An attempt has one execution, and any number of outcomes.
        idempotency_key=f"{key}-{kind}" if kind == EXECUTION else f"{key}-{kind}-{secrets.token_hex(8)}",
        body=canonical(target | hashes | dict(body)),
        told_at=timestamp(utc_now()),
    )


# What the service takes of an execution receipt, so that none is refused after the action was done.
_LONGEST: Final = {
    "execution_result": LONGEST_RESULT,
    "action_taken": 200,
    "external_ref": 200,
    "state_before_hash": 200,
    "state_after_hash": 200,
    "state_before_ref": 500,
    "state_after_ref": 500,
}
_MAX_REFS: Final = 64
_LONGEST_REF: Final = 500
_LONGEST_NAME: Final = 200


# For names that differ between the caller and the receipt.
_ARGUMENTS: Final = {"execution_result": "result", "observed_metrics": "metrics"}


def _check(name: str, value: object) -> None:
    argument = _ARGUMENTS.get(name, name)
    if name == "evidence_refs":
        refs = value if isinstance(value, list | tuple) and len(value) <= _MAX_REFS else ()
        if not refs or not all(is_text(ref, _LONGEST_REF) for ref in refs):
            raise _invalid(argument, f"must be a list of 1 to {_MAX_REFS} strings of 1 to {_LONGEST_REF} characters")
    elif name == "executor":
        parts = value if isinstance(value, Mapping) and value.keys() == {"type", "id"} else {}
        if not parts or not all(is_text(part, _LONGEST_NAME) for part in parts.values()):
            raise _invalid(argument, f"must be a type and an id, each of 1 to {_LONGEST_NAME} characters")
    elif name in _LONGEST and not is_text(value, _LONGEST[name]):
        raise _invalid(argument, f"must be a string of 1 to {_LONGEST[name]} characters")
    _require_no_credential({name: value})


def holds_credential(body: Mapping[str, object]) -> bool:
    """Whether the service would refuse a report for what looks like a credential in it."""
    return bool(_faults(body))


def _faults(body: Mapping[str, object]) -> Sequence[FieldError]:
    # Loaded with the first: its patterns take a while to make.
    from gate.encoding.credentials import credentials

    return list(credentials(body))


def _require_no_credential(body: Mapping[str, object]) -> None:
    for fault in _faults(body):
        name, _, inner = fault.field.partition(".")
        path = ".".join(filter(None, (_ARGUMENTS.get(name, name), inner)))
        raise _invalid(path, "looks like a credential, which is never stored; remove it")


def _copied(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, list | tuple) else value


def is_text(value: object, longest: int) -> bool:
    """Whether a value is a text of 1 to so many characters that UTF-8 can carry."""
    return isinstance(value, str) and 1 <= len(value) <= longest and value.encode("utf-8", "ignore").decode() == value


def _is_number(value: object) -> bool:
    """Whether a value is a number that I-JSON can carry."""
    if isinstance(value, int):
        return not isinstance(value, bool) and abs(value) <= MAX_SAFE_INTEGER
    return isinstance(value, float) and math.isfinite(value)


def _invalid(field: str, why: str) -> RequestRefused:
    return RequestRefused(
        "SVC_API_REQUEST_INVALID",
        f"The report cannot be made: {field} {why}.",
        [FieldError(field, "invalid", f"It {why}.")],
    )
