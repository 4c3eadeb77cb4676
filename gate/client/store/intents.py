"""What the guard keeps on the caller's side: intents, how far each has come, and reports that are not yet delivered.

    held -> permitted -> started -> reported

and `superseded`, where another attempt took its place: before it was started, or after a person said that it may.
From `held` an attempt becomes `permitted` by a yes, or by the owner's grant, which is kept with the same write.

Only `started` is followed by the body, and only `permitted` by `started`, each by a single conditional write: of two
processes that race, one goes on. What is kept here is what makes a retry after a crash safe, so it must outlive the
process: a file that is not removed with the container, or a database.
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
    """The guard's store cannot be read or written now."""


EXECUTION: Final = "execution"
OUTCOME: Final = "outcome"


class State(StrEnum):
    """How far an attempt at an intent has come."""

    HELD = "held"
    PERMITTED = "permitted"
    STARTED = "started"
    REPORTED = "reported"
    SUPERSEDED = "superseded"


@dataclass(frozen=True, slots=True)
class Intent:
    """One attempt at an action that is meant to happen once.

    Attributes:
        intent_id: The name of the intent, the same for every attempt.
        attempt: 1 for the first.
        state: How far it has come.
        asked: The Decision Request, as it was sent.
        asked_hash: H of the request without what differs between attempts.
        asked_at: When it was first asked; UTC timestamp.
        answered: The full Decision Record, as it was answered; None before that.
        started_at: When the body was let begin; UTC timestamp, None before that.
        started_by: Which entering of a guard let it; None before that.
        told: The execution report about the body; None before its end is known.
        resolved: The owner's resolution of a review, as it was answered; None where none is kept.
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
        """The full Decision Record; None before it was answered."""
        record: DecisionRecord | None = None if self.answered is None else _document(self, self.answered)
        return record

    @property
    def resolution(self) -> Resolution | None:
        """The owner's resolution of a review; None where none is kept."""
        resolution: Resolution | None = None if self.resolved is None else _document(self, self.resolved)
        return resolution

    @property
    def execution(self) -> ExecutionReport | None:
        """The execution report; None before the body's end is known."""
        execution: ExecutionReport | None = None if self.told is None else _document(self, self.told)
        return execution


@dataclass(frozen=True, slots=True)
class Report:
    """An execution receipt or an outcome on its way to the service.

    Attributes:
        intent_id: Which intent it is about.
        attempt: Which attempt.
        kind: execution or outcome.
        decision_id: The decision.
        scope_hash: The scope that decided; only its own keys may report.
        idempotency_key: Its retry handle.
        body: The request body.
        told_at: When it was told; UTC timestamp.
        report_id: Its place in the spool, given by the store.
        refused: Why the service will never take it, as a sentence; None while it may.
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
    """Where intents and undelivered reports are kept. Every method is one durable transaction.

    All methods raise `gate.client.StoreUnavailable` where the store cannot be used; then nothing was written, or,
    where it failed while it committed, perhaps all of it: `find` tells.
    """

    @property
    def identity(self) -> str:
        """A name that no other store has, the same for all processes that share this one."""

    @property
    def follows_session(self) -> bool:
        """Whether `start`, `unstart`, `finish` and `tell` are part of a transaction of the caller's, which is not yet
        committed. It may have to be looked up.
        """

    def find(self, intent_id: str) -> Intent | None:
        """The latest attempt at an intent; None where there was none."""

    def attempts(self, intent_id: str, limit: int) -> Sequence[Intent]:
        """The attempts at an intent, the latest one first; none where there was none."""

    def hold(self, intent: Intent, *, instead_of: Intent | None = None) -> bool:
        """Keeps a new attempt, in state held, and makes the one before it superseded.

        Args:
            intent: The new attempt.
            instead_of: The attempt before it, of which the store must still say what is said here: its state, and
                what was told of its end; None for a first attempt.

        Returns:
            False, and nothing is written, where another was quicker.
        """

    def answer(self, intent: Intent, record: bytes, state: State) -> bool:
        """Keeps the record of a held attempt and sets its state: held for no and review, permitted for yes. False where
        it is held no longer, or was resolved.
        """

    def resolve(self, intent: Intent, resolution: bytes, state: State) -> bool:
        """Keeps the owner's resolution of a held attempt and sets its state: permitted for a grant, held otherwise.
        False where it is held no longer, is resolved already, or has another record than `intent.answered`.
        """

    def start(self, intent: Intent, at: str, by: str) -> bool:
        """From permitted to started, at a time and by an entering that has a name of its own. False where it is
        permitted no longer: another process started it.
        """

    def unstart(self, intent: Intent) -> None:
        """From started back to permitted, by whoever started it, as `intent.started_by` says, and knows that the body
        did not begin.
        """

    def finish(self, intent: Intent, report: Report) -> bool:
        """Keeps what became of a started attempt, and the report for delivery; in place of `intent.told`, where that is
        not None. False where something else was told by now, or it was not started, or not by `intent.started_by`.
        """

    def settle(self, intent: Intent, report: Report) -> bool:
        """As `finish`, by somebody who found out what became of it; never part of a transaction of the caller's."""

    def tell(self, report: Report) -> None:
        """Keeps a further report for delivery."""

    def when_kept(self, then: Callable[[], None]) -> None:
        """Calls a function once what was written so far is there for others: at once, or when a transaction of the
        caller's is committed.
        """

    def undelivered(self, limit: int, scope_hash: str | None = None) -> Sequence[Report]:
        """The reports that are to be delivered, oldest first; refused ones are left out. Those of one scope, or all."""

    def delivered(self, report: Report) -> None:
        """Removes a delivered report; an execution makes its attempt reported."""

    def refused(self, report: Report, why: str) -> None:
        """Sets a report aside that the service will never take, with the sentence why. It stays."""

    def set_aside(self, limit: int, scope_hash: str | None = None) -> Sequence[Report]:
        """The refused reports, oldest first. Those of one scope, or all."""

    def listed(self, states: Sequence[State], limit: int) -> Sequence[Intent]:
        """The latest attempts that are in one of the states, the longest-waiting first."""

    def forget(self, before: str) -> int:
        """Removes requests, records and reports of what was reported or superseded before a UTC timestamp, and keeps
        that it was: an intent that is forgotten altogether could run again. How many attempts.
        """


@runtime_checkable
class SharesTransactions(Protocol):
    """A store whose body's part can be written in a transaction of the caller's."""

    def within(self, session: Session | scoped_session[Session]) -> Store:
        """The store, with `start`, `unstart`, `finish` and `tell` in the session's transaction."""


def damaged(intent_id: object) -> StoreUnavailable:
    """INTENTS_DAMAGED: what the store says of an intent cannot be read."""
    return StoreUnavailable(
        "INTENTS_DAMAGED",
        f"The guard's store holds damaged data about {intent_id}, so the action stays held. Check "
        "the disk, find out what became of the action, and repair the store.",
    )


def _document(intent: Intent, content: bytes) -> Any:
    # The column tells which document it is; only the guard writes there.
    try:
        return parse_document(content)
    except MaterialRefused as error:
        raise damaged(intent.intent_id) from error
