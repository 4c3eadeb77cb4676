"""The data of the guard's store: intents with their states, and reports that are not yet delivered.

    held -> permitted -> started -> reported

An attempt becomes `superseded` if another attempt replaces it: before it was started, or after a person allowed that.
An attempt becomes `permitted` by a yes or by the owner's grant, which the same write stores.

The body runs only after `started`, and `started` follows only `permitted`. Each transition is a single conditional
write, so that only one of two racing processes continues. This data makes a retry after a crash safe, so it must
outlive the process: use a database, or a file that is not removed with the container.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Protocol, runtime_checkable

from gate.encoding.strict_json import parse_document
from gate.errors import GateError, MaterialRefused

if TYPE_CHECKING:
    from sqlalchemy.orm import Session, scoped_session

    from gate.client.api.types import DecisionRecord, ExecutionReport, Resolution
    from gate.records.documents import DecisionBody


@dataclass(eq=False)
class StoreUnavailable(GateError):
    """The guard cannot read or write its store now."""


EXECUTION: Final = "execution"
OUTCOME: Final = "outcome"


class State(StrEnum):
    """The state of an attempt at an intent.

    Attributes:
        HELD: The guard has not permitted the action, or not yet.
        PERMITTED: A verified yes or grant permits the action, and the body has not started.
        STARTED: The body was started.
        REPORTED: The body ended, and the service has its execution receipt.
        SUPERSEDED: Another attempt replaced this one.
    """

    HELD = "held"
    PERMITTED = "permitted"
    STARTED = "started"
    REPORTED = "reported"
    SUPERSEDED = "superseded"


@dataclass(frozen=True, slots=True)
class Intent:
    """One attempt at an action that must happen at most once.

    Attributes:
        intent_id: The id of the intent, which all its attempts share.
        attempt: The number of the attempt, from 1.
        state: The state of the attempt.
        asked: The Decision Request, as the guard sent it.
        asked_hash: H of the request without the fields that differ between attempts.
        asked_at: When the attempt was created, as a UTC timestamp.
        answered: The full Decision Record, as the service sent it, or None.
        started_at: When the guard started the body, as a UTC timestamp, or None.
        started_by: The id of the guard's entering that started the body, or None.
        told: The execution report of the body, or None while its end is unknown.
        resolved: The owner's resolution of a review, as the service sent it, or None.
    """

    intent_id: str
    attempt: int
    state: State
    asked: bytes
    asked_hash: str
    asked_at: str
    answered: bytes | None = None
    started_at: str | None = None
    started_by: str | None = None
    told: bytes | None = None
    resolved: bytes | None = None

    @property
    def request(self) -> DecisionBody:
        """The Decision Request."""
        request: DecisionBody = _document(self, self.asked)
        return request

    @property
    def record(self) -> DecisionRecord | None:
        """The full Decision Record, or None before the service has decided."""
        record: DecisionRecord | None = None if self.answered is None else _document(self, self.answered)
        return record

    @property
    def resolution(self) -> Resolution | None:
        """The owner's resolution of a review, or None if the store has none."""
        resolution: Resolution | None = None if self.resolved is None else _document(self, self.resolved)
        return resolution

    @property
    def execution(self) -> ExecutionReport | None:
        """The execution report, or None while the end of the body is unknown."""
        execution: ExecutionReport | None = None if self.told is None else _document(self, self.told)
        return execution


@dataclass(frozen=True, slots=True)
class Report:
    """An execution report or an outcome that the client has to deliver to the service.

    Attributes:
        intent_id: The id of its intent.
        attempt: The number of its attempt.
        kind: `execution` or `outcome`.
        decision_id: The id of its decision.
        scope_hash: The scope that decided. Only keys of this scope may report.
        idempotency_key: The idempotency key of the report.
        body: The request body.
        told_at: When the report was stored, as a UTC timestamp.
        report_id: The report's number in the store, which the store assigns.
        refused: Why the service permanently refused the report, or None.
    """

    intent_id: str
    attempt: int
    kind: str
    decision_id: str
    scope_hash: str
    idempotency_key: str
    body: bytes
    told_at: str
    report_id: int = 0
    refused: str | None = None


class Store(Protocol):
    """The protocol of a guard's store, which keeps intents and undelivered reports.

    Every method is one durable transaction. If the store is unusable, every method raises
    `gate.client.StoreUnavailable`, and the store keeps nothing of the call. If it failed during the commit, it may
    have kept everything; `find` shows the state.
    """

    @property
    def identity(self) -> str:
        """A unique id of the store. All processes that share the store see the same id."""

    @property
    def follows_session(self) -> bool:
        """Whether `start`, `unstart`, `finish` and `tell` write in an uncommitted transaction of the caller."""

    def find(self, intent_id: str) -> Intent | None:
        """Returns the latest attempt at an intent, or None if there is none."""

    def attempts(self, intent_id: str, limit: int) -> Sequence[Intent]:
        """Returns at most `limit` attempts at an intent, the latest first."""

    def hold(self, intent: Intent, *, instead_of: Intent | None = None) -> bool:
        """Stores a new attempt in the state held, and supersedes the attempt before it.

        Args:
            intent: The new attempt.
            instead_of: The attempt before it, or None for the first attempt. Its state and its execution report must
                still be the stored ones.

        Returns:
            False if another process was faster; the store is then unchanged.
        """

    def answer(self, intent: Intent, record: bytes, state: State) -> bool:
        """Stores the record of a held attempt, and sets its state: permitted after a yes, otherwise held.

        Returns:
            False if the attempt is not held any more or already has a resolution; the store is then unchanged.
        """

    def resolve(self, intent: Intent, resolution: bytes, state: State) -> bool:
        """Stores the owner's resolution of a held attempt, and sets its state: permitted after a grant, otherwise held.

        Returns:
            False if the attempt is not held any more, already has a resolution, or has a record other than
            `intent.answered`; the store is then unchanged.
        """

    def start(self, intent: Intent, at: str, by: str) -> bool:
        """Changes an attempt from permitted to started.

        Args:
            intent: The attempt.
            at: The current time, as a UTC timestamp.
            by: A unique id of the guard's entering.

        Returns:
            False if the attempt is not permitted any more, because another process started it.
        """

    def unstart(self, intent: Intent) -> None:
        """Changes an attempt from started to permitted again, because its body did not begin.

        It changes only an attempt that `intent.started_by` started.
        """

    def finish(self, intent: Intent, report: Report) -> bool:
        """Stores the end of a started attempt, and its report for delivery. It replaces `intent.told`.

        Returns:
            False if the store has another report of the end than `intent.told`, or if `intent.started_by` did not
            start the attempt; the store is then unchanged.
        """

    def settle(self, intent: Intent, report: Report) -> bool:
        """As `finish`, after somebody found out how the attempt ended. It never writes in the caller's transaction."""

    def tell(self, report: Report) -> None:
        """Stores another report for delivery."""

    def when_kept(self, then: Callable[[], None]) -> None:
        """Calls a function when other processes can see the writes so far.

        It calls the function immediately, or after the commit of the caller's transaction.
        """

    def undelivered(self, limit: int, scope_hash: str | None = None) -> Sequence[Report]:
        """Returns at most `limit` waiting reports of one scope or of all scopes, oldest first, without refused ones."""

    def delivered(self, report: Report) -> None:
        """Removes a delivered report; an execution makes its attempt reported."""

    def refused(self, report: Report, why: str) -> None:
        """Sets a report aside that the service permanently refused, with the reason. The store keeps it."""

    def set_aside(self, limit: int, scope_hash: str | None = None) -> Sequence[Report]:
        """Returns at most `limit` refused reports of one scope or of all scopes, oldest first."""

    def listed(self, states: Sequence[State], limit: int) -> Sequence[Intent]:
        """Returns at most `limit` intents whose latest attempt is in one of the states, oldest first."""

    def forget(self, before: str) -> int:
        """Removes the contents of attempts that were reported or superseded before a UTC timestamp.

        The contents are requests, records, resolutions, and execution reports. It keeps the attempts themselves,
        because a completely removed intent could run again.

        Returns:
            The number of attempts.
        """


@runtime_checkable
class SharesTransactions(Protocol):
    """A store that can write the start and the end of a body in the caller's transaction."""

    def within(self, session: Session | scoped_session[Session]) -> Store:
        """Returns the store with `start`, `unstart`, `finish` and `tell` in the session's transaction."""


def damaged(intent_id: object) -> StoreUnavailable:
    """`INTENTS_DAMAGED`: the stored data of an intent is unreadable."""
    return StoreUnavailable(
        "INTENTS_DAMAGED",
        f"The guard's store has damaged data about {intent_id}, so the action stays held. Check "
        "the disk, find out how the action ended, and repair the store.",
    )


def _document(intent: Intent, content: bytes) -> Any:
    # The column tells which document it is; only the guard writes there.
    try:
        return parse_document(content)
    except MaterialRefused as error:
        raise damaged(intent.intent_id) from error
