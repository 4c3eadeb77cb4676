"""The permit of a guarded body: the verified yes or grant, and the methods with which the body reports what it did."""

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
    """A verified yes for one action, or a verified grant after its review. The body uses it once, now.

    Attributes:
        record: The full Decision Record, which the store keeps too.
        resolution: The owner's grant if the verdict was review, or None for a yes. The store keeps it too.
        intent: The attempt at the intent, as the store has it.
    """

    def __init__(self, store: Store, intent: Intent, record: DecisionRecord, *, ended: bool = False) -> None:
        """Takes the store, the started attempt, its record, and whether the body has ended."""
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
        """The class, the decision and the action."""
        return f"<{type(self).__name__} {self.decision_id}: {self.action}>"

    @property
    def intent_id(self) -> str:
        """The id of the intent in the guard's store. It is a good idempotency key for the target system."""
        return self.intent.intent_id

    @property
    def decision_id(self) -> str:
        """The id of the decision."""
        return self._cited.decision_id

    @property
    def action(self) -> str:
        """The action label of the rulebook's outcome. After a granted review, it is the proposed action."""
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
        """Adds details about the run to the execution receipt. You may call it again to change or add details.

        Args:
            status: The status of the action, if it is not `executed`: `queued`, `skipped`, `failed`, `blocked`,
                `reviewed` or `reverted`.
            result: The result in your own words, at most 2,000 characters.
            action_taken: The action that you performed, if it is not the decision's action. The receipt then has the
                flag `ACTION_TAKEN_MISMATCH`, and the service reports it as an anomaly.
            external_ref: Your reference to the transaction.
            state_before_hash: A hash of the target's state before the action, with its algorithm: `sha256:...`
            state_after_hash: A hash of the target's state after the action.
            state_before_ref: A reference to the stored state before the action.
            state_after_ref: A reference to the stored state after the action.
            evidence_refs: References to evidence that you keep elsewhere.
            executor: The person or system that performed the action: {type, id}.

        Raises:
            RequestRefused: `SVC_API_REQUEST_INVALID`: an argument is invalid; `errors` names it.
            RuntimeError: The body has ended.
        """
        if self._ended:
            raise RuntimeError(
                "The block has ended and its receipt is complete; report the result with permit.outcome()."
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
        """The report for the execution receipt: what the body described, or the type of the exception that ended it.

        It does not contain the exception's text, which may be confidential.
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
    """The permit of a guarded body: a verified yes for one action, or a verified grant after its review.

    Attributes:
        record: The full Decision Record, which the store keeps too.
        resolution: The owner's grant if the verdict was review, or None for a yes. The store keeps it too.
        intent: The attempt at the intent, as the store has it.
    """

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
        """Takes the engine, the function that wakes the courier, and the arguments of `BasePermit`."""
        super().__init__(store, intent, record, ended=ended)
        self._engine = engine
        self._wake = wake

    def outcome(self, status: str, **said: Unpack[Outcome]) -> None:
        """Reports the outcome of the action, in the body or at any later time.

        The store keeps the report immediately, and the client delivers it in the background.

        Args:
            status: `succeeded`, `failed`, `partial`, `reverted`, `pending` or `review`.
            said: Optional arguments: `metrics` (measured numbers by name), `executed` (whether the action was
                executed), `external_ref` (your reference), `evidence_refs` (references to evidence).

        Raises:
            RequestRefused: `SVC_API_REQUEST_INVALID`: an argument is invalid; `errors` names it.
            StoreUnavailable: The store could not keep the report.
            RuntimeError: With a session: the block has ended, and the session is not committed.
        """
        with _telling(self._store, self._wake):
            self._engine.run(self._outcome(status, said))


class AsyncPermit(BasePermit):
    """The permit of a guarded body for asyncio, with the attributes of `Permit`. `outcome` is a coroutine method."""

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
        """Takes the engine, the function that wakes the courier, and the arguments of `BasePermit`."""
        super().__init__(store, intent, record, ended=ended)
        self._engine = engine
        self._wake = wake

    async def outcome(self, status: str, **said: Unpack[Outcome]) -> None:
        """As `Permit.outcome`."""
        with _telling(self._store, self._wake):
            await self._engine.run(self._outcome(status, said))


@contextmanager
def _telling(store: Store, wake: Callable[[], None]) -> Iterator[None]:
    """Delivers what is reported within, even after an interruption or cancellation, because it may have been stored."""
    refused = False
    try:
        yield
    except Exception:
        refused = True
        raise
    finally:
        if not refused:
            store.when_kept(wake)
