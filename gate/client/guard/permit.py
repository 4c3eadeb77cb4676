"""A permit: the verified yes, or the owner's verified grant, under which the body runs, and tells what it did."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Unpack, cast

from gate.client.guard.reporting import cited, execution_report, name_of, outcome_report
from gate.client.guard.saying import Outcome, described, outcome_said
from gate.client.store.intents import Intent, Report, Store
from gate.client.transport.flow import Do, Flow

if TYPE_CHECKING:
    from gate.client.api.types import DecisionRecord
    from gate.client.transport.async_engine import AsyncEngine
    from gate.client.transport.engine import Engine


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
        self._said |= described(given)

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
        report = outcome_report(self.intent, self._cited, outcome_said(status, said))
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
