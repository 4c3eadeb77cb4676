"""Anomalies that users of the workbench dismissed, with a note, and those that they reopened. No act is ever taken out.

A dismissal hides an anomaly of a report; it changes no decision and no report.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, Row, Select, insert, select

from gate.errors import RequestRefused
from gate.ids import timestamp
from gate.ledger.access.authority import Scope
from gate.ledger.access.operator_log import in_workbench, lock, record
from gate.ledger.stores.store import Store, has_utf8, unheard_of
from gate.ledger.tables import anomaly_dismissals

NOTE_LENGTH: Final = 1000
"""How many characters a note may have."""


@dataclass(frozen=True, slots=True)
class FlaggedAnomaly:
    """An anomaly as a report lists it, as far as a dismissal keeps it.

    Attributes:
        anomaly_id: Its id.
        policy_id: The policy of the report.
        severity: `high`, `medium`, or `low`.
        score: Its score, 0 to 1.
    """

    anomaly_id: str
    policy_id: str
    severity: str
    score: float


@dataclass(frozen=True, slots=True)
class Dismissal:
    """An act on an anomaly: dismissed, or reopened.

    Attributes:
        anomaly: The anomaly, as the report listed it when it was dismissed.
        number: Its place among the acts on this anomaly, from 1.
        dismissed: False where it was reopened.
        note: Why, in the user's words.
        acted_by: The user's name.
        acted_at: UTC timestamp.
    """

    anomaly: FlaggedAnomaly
    number: int
    dismissed: bool
    note: str
    acted_by: str
    acted_at: str


class Dismissals:
    """The dismissals of a ledger."""

    def __init__(self, store: Store) -> None:
        """Works on the given store."""
        self._store = store

    def dismiss(self, scope: Scope, anomaly: FlaggedAnomaly, note: str, user_name: str, now: datetime) -> Dismissal:
        """Dismisses an open anomaly.

        Args:
            scope: The scope of the report.
            anomaly: The anomaly.
            note: Why, in 1 to `NOTE_LENGTH` characters; white space around them is dropped.
            user_name: The user.
            now: The current moment.

        Raises:
            RequestRefused: `ANOMALY_NOTE_INVALID`, or `ANOMALY_DISMISSED`: it is dismissed already.
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        note = _note(note)
        with self._store.write() as connection:
            # Two users who act at once come one after the other.
            lock(connection)
            last = _last(connection, scope.scope_id, anomaly.anomaly_id)
            if last is not None and last.dismissed:
                raise RequestRefused(
                    "ANOMALY_DISMISSED",
                    f"{last.acted_by} dismissed this anomaly at {last.acted_at}. To dismiss it again, reopen it first.",
                )
            number = 1 if last is None else last.number + 1
            act = Dismissal(anomaly, number, True, note, user_name, timestamp(now))
            _add(connection, "anomaly.dismissed", scope, act, now)
            return act

    def reopen(self, scope: Scope, anomaly_id: str, note: str, user_name: str, now: datetime) -> Dismissal:
        """Reopens a dismissed anomaly.

        Args:
            scope: The scope of the report.
            anomaly_id: The anomaly's id.
            note: As `dismiss`.
            user_name: The user.
            now: The current moment.

        Raises:
            RequestRefused: `ANOMALY_NOTE_INVALID`, or `ANOMALY_OPEN`: it is not dismissed.
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        note = _note(note)
        with self._store.write() as connection:
            lock(connection)
            last = _last(connection, scope.scope_id, anomaly_id)
            if last is None or not last.dismissed:
                raise RequestRefused("ANOMALY_OPEN", "This anomaly is already open. Reload the list.")
            act = Dismissal(last.anomaly, last.number + 1, False, note, user_name, timestamp(now))
            _add(connection, "anomaly.reopened", scope, act, now)
            return act

    def latest(self, scope_id: str, anomaly_ids: Collection[str] | None = None) -> dict[str, Dismissal]:
        """The last act on each anomaly of a scope that any was on, by the anomaly's id.

        Args:
            scope_id: The scope.
            anomaly_ids: Only these anomalies; all where None.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        query = select(anomaly_dismissals).where(anomaly_dismissals.c.scope_id == scope_id)
        if anomaly_ids is not None:
            asked = [anomaly_id for anomaly_id in anomaly_ids if not unheard_of(anomaly_id)]
            query = query.where(anomaly_dismissals.c.anomaly_id.in_(asked))
        with self._store.read() as connection:
            rows = connection.execute(query.order_by(anomaly_dismissals.c.number))
            # A later act of an anomaly takes the place of an earlier one.
            return {row.anomaly_id: _dismissal(row) for row in rows}

    def history(self, scope_id: str, anomaly_id: str) -> list[Dismissal]:
        """Every act on an anomaly, from the first on.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        if unheard_of(anomaly_id):
            return []
        with self._store.read() as connection:
            rows = connection.execute(_acts_on(scope_id, anomaly_id).order_by(anomaly_dismissals.c.number))
            return list(map(_dismissal, rows))


def _note(text: str) -> str:
    """A note, without the white space around it."""
    note = text.strip()
    if not 1 <= len(note) <= NOTE_LENGTH or not has_utf8(note):
        raise RequestRefused(
            "ANOMALY_NOTE_INVALID", f"A note has 1 to {NOTE_LENGTH:,} characters. Write why you do this."
        )
    return note


def _acts_on(scope_id: str, anomaly_id: str) -> Select[Any]:
    return select(anomaly_dismissals).where(
        anomaly_dismissals.c.scope_id == scope_id, anomaly_dismissals.c.anomaly_id == anomaly_id
    )


def _last(connection: Connection, scope_id: str, anomaly_id: str) -> Dismissal | None:
    if unheard_of(anomaly_id):
        return None
    query = _acts_on(scope_id, anomaly_id).order_by(anomaly_dismissals.c.number.desc()).limit(1)
    row = connection.execute(query).one_or_none()
    return None if row is None else _dismissal(row)


def _add(connection: Connection, action: str, scope: Scope, act: Dismissal, now: datetime) -> None:
    anomaly = act.anomaly
    connection.execute(
        insert(anomaly_dismissals).values(
            scope_id=scope.scope_id,
            anomaly_id=anomaly.anomaly_id,
            number=act.number,
            policy_id=anomaly.policy_id,
            dismissed=act.dismissed,
            note=act.note,
            severity=anomaly.severity,
            score=anomaly.score,
            acted_by=act.acted_by,
            acted_at=act.acted_at,
        )
    )
    # Without the note, in which a person may be named.
    details = {"scope": scope.name, "policy_id": anomaly.policy_id, "severity": anomaly.severity, "number": act.number}
    record(connection, action, anomaly.anomaly_id, details, now, operator=in_workbench(act.acted_by))


def _dismissal(row: Row[Any]) -> Dismissal:
    anomaly = FlaggedAnomaly(row.anomaly_id, row.policy_id, row.severity, row.score)
    return Dismissal(anomaly, row.number, row.dismissed, row.note, row.acted_by, row.acted_at)
