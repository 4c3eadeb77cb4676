"""The protocol of `intents` as SQL that both SQLite and PostgreSQL run. It is the only definition of the transitions.

Every transition is an `UPDATE` with the old state in its condition, so that only one of two racing writes changes rows.
A method writes before it reads, so that no other process can write in between.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from gate.client.store.intents import EXECUTION, Intent, Report, State, StoreUnavailable, damaged
from gate.clock import new_id, utc_now
from gate.ids import parse_timestamp, timestamp

VERSION: Final = 2
"""The version of the tables."""

WITHOUT_RESOLUTIONS: Final = 1
"""The version before `gate_intents` had the column `resolved`. The stores update such tables in place."""

Values: TypeAlias = Mapping[str, str | int | bytes | None]
# Drivers do not know the types; the columns do, and only this module writes these tables.
Row: TypeAlias = Sequence[Any]


@dataclass(frozen=True, slots=True)
class Step:
    """One statement of a transaction.

    Attributes:
        sql: The statement, with its values as `:name`.
        values: The values.
        needed: Whether to roll back the transaction if the statement changes no row.
    """

    sql: str
    values: Values
    needed: bool = True


class SqlStore(ABC):
    """A guard's store in a database that runs SQL."""

    @abstractmethod
    def _read(self, sql: str, values: Values) -> Sequence[Row]:
        """The rows that a query finds."""

    @abstractmethod
    def _write(self, *steps: Step) -> int:
        """Runs steps in one transaction. Returns how many rows they changed, or 0 without any change if a needed step
        changed no row.
        """

    def _write_soon(self, *steps: Step) -> int:
        """As `_write`, for data that a power failure may lose unless a later durable write follows."""
        return self._write(*steps)

    def _write_of_body(self, *steps: Step) -> int:
        """As `_write`, for data that is true only together with the effects of the body."""
        return self._write(*steps)

    @property
    def follows_session(self) -> bool:
        """See `Store.follows_session`."""
        return False

    def when_kept(self, then: Callable[[], None]) -> None:
        """See `Store.when_kept`. It calls the function immediately."""
        then()

    def find(self, intent_id: str) -> Intent | None:
        """See `Store.find`."""
        found = self.attempts(intent_id, 1)
        return found[0] if found else None

    def attempts(self, intent_id: str, limit: int) -> Sequence[Intent]:
        """See `Store.attempts`."""
        return [_intent(row) for row in self._read(_ATTEMPTS, {"intent_id": intent_id, "limit": limit})]

    def hold(self, intent: Intent, *, instead_of: Intent | None = None) -> bool:
        """See `Store.hold`.

        Raises:
            ValueError: The attempt is not the one that comes after `instead_of`.
        """
        before = (intent.intent_id, 0) if instead_of is None else (instead_of.intent_id, instead_of.attempt)
        if (intent.intent_id, intent.attempt - 1) != before:
            raise ValueError(f"Attempt {intent.attempt} at {intent.intent_id} does not come after {before}.")
        steps = []
        if instead_of is not None:
            was = {**_now(instead_of), "was": instead_of.state.value}
            told = instead_of.told
            # It may have been reported as done since it was read.
            steps.append(
                Step(_SUPERSEDE_UNTOLD, was) if told is None else Step(_SUPERSEDE_TOLD, {**was, "was_told": told})
            )
        held: Values = {"asked": intent.asked, "asked_hash": intent.asked_hash, "asked_at": intent.asked_at}
        return self._write(*steps, Step(_HOLD, {**_now(intent), **held})) > 0

    def answer(self, intent: Intent, record: bytes, state: State) -> bool:
        """See `Store.answer`."""
        # An answer can be had again; and before the body begins, `start` is on disk with everything before it.
        return self._write_soon(Step(_ANSWER, {**_now(intent), "answered": record, "state": state.value})) > 0

    def resolve(self, intent: Intent, resolution: bytes, state: State) -> bool:
        """See `Store.resolve`."""
        resolved = {**_now(intent), "resolved": resolution, "state": state.value, "was_answered": intent.answered}
        return self._write(Step(_RESOLVE, resolved)) > 0

    def start(self, intent: Intent, at: str, by: str) -> bool:
        """See `Store.start`."""
        return self._write_of_body(Step(_START, {**_now(intent), "at": at, "by": by})) > 0

    def unstart(self, intent: Intent) -> None:
        """See `Store.unstart`."""
        self._write_of_body(Step(_UNSTART, {**_now(intent), "by": intent.started_by}))

    def finish(self, intent: Intent, report: Report) -> bool:
        """See `Store.finish`."""
        return self._write_of_body(*_end(intent, report)) > 0

    def settle(self, intent: Intent, report: Report) -> bool:
        """See `Store.settle`."""
        return self._write(*_end(intent, report)) > 0

    def tell(self, report: Report) -> None:
        """See `Store.tell`."""
        self._write_of_body(_tell(report))

    def undelivered(self, limit: int, scope_hash: str | None = None) -> Sequence[Report]:
        """See `Store.undelivered`."""
        return self._reports(_UNDELIVERED, _UNDELIVERED_OF, limit, scope_hash)

    def delivered(self, report: Report) -> None:
        """See `Store.delivered`."""
        steps = [Step(_DELIVERED, {"report_id": report.report_id})]
        if report.kind == EXECUTION:
            # Its attempt may be superseded by now.
            steps.append(Step(_REPORTED, _now(report), needed=False))
        # The service knows a delivered report, and delivering it again changes nothing.
        self._write_soon(*steps)

    def refused(self, report: Report, why: str) -> None:
        """See `Store.refused`."""
        # The sentence may be the service's, and PostgreSQL's text cannot hold U+0000.
        self._write(Step(_REFUSED, {"report_id": report.report_id, "refused": why.encode("utf-8", "replace")}))

    def set_aside(self, limit: int, scope_hash: str | None = None) -> Sequence[Report]:
        """See `Store.set_aside`."""
        return self._reports(_SET_ASIDE, _SET_ASIDE_OF, limit, scope_hash)

    def _reports(self, every: str, of_scope: str, limit: int, scope_hash: str | None) -> Sequence[Report]:
        if scope_hash is None:
            rows = self._read(every, {"limit": limit})
        else:
            rows = self._read(of_scope, {"limit": limit, "scope_hash": scope_hash})
        return [_report(row) for row in rows]

    def listed(self, states: Sequence[State], limit: int) -> Sequence[Intent]:
        """See `Store.listed`. The oldest request comes first."""
        sought = {state.value: state.value if state in states else None for state in State}
        return [_intent(row) for row in self._read(_LISTED, {**sought, "limit": limit})]

    def forget(self, before: str) -> int:
        """See `Store.forget`. It keeps all data of attempts with an undelivered or refused report."""
        return self._write(Step(_FORGET, {"before": before, "nothing": b""}))


def run_steps(execute: Callable[[str, Values], int], steps: Sequence[Step]) -> int:
    """Runs steps until a needed one changes no row.

    Args:
        execute: Runs a statement, and returns how many rows it changed.
        steps: The steps.

    Returns:
        How many rows the steps changed. 0 if a needed step changed none; the caller must then roll back.
    """
    changed = 0
    for step in steps:
        rows = execute(step.sql, step.values)
        if step.needed and not rows:
            return 0
        changed += rows
    return changed


def new_identity() -> str:
    """A unique id for a store."""
    return new_id("store", utc_now())


def unavailable(where: str, why: str, do: str) -> StoreUnavailable:
    """The error `INTENTS_UNAVAILABLE`.

    Args:
        where: The file or database.
        why: The reason in a few words.
        do: A sentence that says what to do.
    """
    return StoreUnavailable("INTENTS_UNAVAILABLE", f"The guard's store {where} cannot be used now ({why}). {do}")


def of_another_release(where: str, version: object) -> StoreUnavailable:
    """The error `INTENTS_VERSION`: this release does not support the version of the tables."""
    return StoreUnavailable(
        "INTENTS_VERSION",
        f"The guard's store {where} has version {version}, but this release supports version "
        f"{VERSION}. Use the release that wrote it, or a later one; with an empty store, every "
        "action could happen again.",
    )


def _now(of: Intent | Report) -> Values:
    return {"intent_id": of.intent_id, "attempt": of.attempt, "now": timestamp(utc_now())}


def _end(intent: Intent, report: Report) -> tuple[Step, Step]:
    told = {**_now(intent), "told": report.body, "by": intent.started_by}
    end = Step(_FINISH, told) if intent.told is None else Step(_AMEND, {**told, "was": intent.told})
    return end, _tell(report)


def _tell(report: Report) -> Step:
    return Step(
        _TELL,
        {
            "intent_id": report.intent_id,
            "attempt": report.attempt,
            "kind": report.kind,
            "decision_id": report.decision_id,
            "scope_hash": report.scope_hash,
            "idempotency_key": report.idempotency_key,
            "told_at": report.told_at,
            "body": report.body,
        },
    )


def _intent(row: Row) -> Intent:
    intent_id, attempt, state, asked_hash, asked_at, started_at, started_by, *contents = row
    try:
        asked, answered, told, resolved = map(_bytes, contents)
        parse_timestamp(asked_at)
        return Intent(
            intent_id=intent_id,
            attempt=attempt,
            state=State(state),
            asked=asked or b"",
            asked_hash=asked_hash,
            asked_at=asked_at,
            answered=answered,
            started_at=started_at,
            started_by=started_by,
            told=told,
            resolved=resolved,
        )
    except (TypeError, ValueError) as error:
        raise damaged(intent_id) from error


def _report(row: Row) -> Report:
    report_id, intent_id, attempt, kind, decision_id, scope_hash, idempotency_key, told_at, refused, body = row
    return Report(
        intent_id=intent_id,
        attempt=attempt,
        kind=kind,
        decision_id=decision_id,
        scope_hash=scope_hash,
        idempotency_key=idempotency_key,
        body=bytes(body),
        told_at=told_at,
        report_id=report_id,
        refused=None if refused is None else bytes(refused).decode(),
    )


def _bytes(value: bytes | memoryview | None) -> bytes | None:
    # Some drivers return a memoryview.
    return None if value is None else bytes(value)


IDENTIFY: Final = "INSERT INTO gate_store (name, value) VALUES (:name, :value) ON CONFLICT DO NOTHING"
"""Adds a property of the whole store, unless it exists."""

IDENTITY: Final = "SELECT name, value FROM gate_store"
"""Reads the properties of the whole store."""

_ATTEMPTS: Final = """
    SELECT intent_id, attempt, state, asked_hash, asked_at, started_at, started_by, asked, answered, told, resolved
    FROM gate_intents
    WHERE intent_id = :intent_id ORDER BY attempt DESC LIMIT :limit
"""
# The primary key decides a race for the first attempt: there is no row yet whose state an UPDATE could name.
_HOLD: Final = """
    INSERT INTO gate_intents (intent_id, attempt, state, asked_hash, asked_at, changed_at, asked)
    VALUES (:intent_id, :attempt, 'held', :asked_hash, :asked_at, :now, :asked) ON CONFLICT DO NOTHING
"""
_SUPERSEDE_UNTOLD: Final = """
    UPDATE gate_intents SET state = 'superseded', changed_at = :now
    WHERE intent_id = :intent_id AND attempt = :attempt AND state = :was AND told IS NULL
"""
_SUPERSEDE_TOLD: Final = """
    UPDATE gate_intents SET state = 'superseded', changed_at = :now
    WHERE intent_id = :intent_id AND attempt = :attempt AND state = :was AND told = :was_told
"""
_ANSWER: Final = """
    UPDATE gate_intents SET state = :state, answered = :answered, changed_at = :now
    WHERE intent_id = :intent_id AND attempt = :attempt AND state = 'held' AND resolved IS NULL
"""
# A resolution is final, and about one record: it opens an attempt with no other.
_RESOLVE: Final = """
    UPDATE gate_intents SET state = :state, resolved = :resolved, changed_at = :now
    WHERE intent_id = :intent_id AND attempt = :attempt AND state = 'held'
        AND answered = :was_answered AND resolved IS NULL
"""
_START: Final = """
    UPDATE gate_intents SET state = 'started', started_at = :at, started_by = :by, changed_at = :now
    WHERE intent_id = :intent_id AND attempt = :attempt AND state = 'permitted'
"""
# Not if an end was reported: somebody settled it meanwhile, and that stays.
_UNSTART: Final = """
    UPDATE gate_intents SET state = 'permitted', started_at = NULL, started_by = NULL, changed_at = :now
    WHERE intent_id = :intent_id AND attempt = :attempt AND state = 'started' AND started_by = :by AND told IS NULL
"""
# Only the entering that started an attempt ends it. If it was undone and started again, the late end of the first run
# must not count for the second. And only if nothing was reported: what somebody found out meanwhile stays.
_FINISH: Final = """
    UPDATE gate_intents SET told = :told, changed_at = :now
    WHERE intent_id = :intent_id AND attempt = :attempt AND state = 'started' AND started_by = :by AND told IS NULL
"""
_AMEND: Final = """
    UPDATE gate_intents SET told = :told, changed_at = :now
    WHERE intent_id = :intent_id AND attempt = :attempt AND state IN ('started', 'reported')
        AND started_by = :by AND told = :was
"""
_REPORTED: Final = """
    UPDATE gate_intents SET state = 'reported', changed_at = :now
    WHERE intent_id = :intent_id AND attempt = :attempt AND state = 'started'
"""
_TELL: Final = """
    INSERT INTO gate_reports (intent_id, attempt, kind, decision_id, scope_hash, idempotency_key, told_at, body)
    VALUES (:intent_id, :attempt, :kind, :decision_id, :scope_hash, :idempotency_key, :told_at, :body)
"""
_REPORTS: Final = """
    SELECT report_id, intent_id, attempt, kind, decision_id, scope_hash, idempotency_key, told_at, refused, body
    FROM gate_reports
"""
_IN_ORDER: Final = "ORDER BY report_id LIMIT :limit"
_UNDELIVERED: Final = f"{_REPORTS} WHERE refused IS NULL {_IN_ORDER}"
_UNDELIVERED_OF: Final = f"{_REPORTS} WHERE refused IS NULL AND scope_hash = :scope_hash {_IN_ORDER}"
_SET_ASIDE: Final = f"{_REPORTS} WHERE refused IS NOT NULL {_IN_ORDER}"
_SET_ASIDE_OF: Final = f"{_REPORTS} WHERE refused IS NOT NULL AND scope_hash = :scope_hash {_IN_ORDER}"
_DELIVERED: Final = "DELETE FROM gate_reports WHERE report_id = :report_id"
_REFUSED: Final = "UPDATE gate_reports SET refused = :refused WHERE report_id = :report_id"
_LISTED: Final = """
    SELECT intent_id, attempt, state, asked_hash, asked_at, started_at, started_by, asked, answered, told, resolved
    FROM gate_intents latest
    WHERE state IN (:held, :permitted, :started, :reported, :superseded) AND NOT EXISTS (
        SELECT 1 FROM gate_intents later WHERE later.intent_id = latest.intent_id AND later.attempt > latest.attempt
    )
    ORDER BY asked_at, intent_id LIMIT :limit
"""
_FORGET: Final = """
    UPDATE gate_intents SET asked = :nothing, answered = NULL, told = NULL, resolved = NULL
    WHERE state IN ('reported', 'superseded') AND changed_at < :before AND asked <> :nothing AND NOT EXISTS (
        SELECT 1 FROM gate_reports
        WHERE gate_reports.intent_id = gate_intents.intent_id AND gate_reports.attempt = gate_intents.attempt
    )
"""
