"""What a ledger keeps beside its entries and could be made anew from them: search rows, latest outcomes and counts.

Here they are read for whoever holds them against the entries; a difference means that something else wrote them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from sqlalchemy import Column, Connection, Table, TypeCoerce, case, func, or_, select, type_coerce
from sqlalchemy.types import NullType

from gate.ledger.chain.outcomes import STATUSES
from gate.ledger.stores.store import Store
from gate.ledger.tables import Utf8, decisions, entries, latest_outcomes, outcome_counts

_COUNTED: Final = (*STATUSES, "first_reported_at", "last_reported_at")

_COHORT: Final = ("policy_id", "policy_version", "verdict", "action")


class Derived:
    """Reads the derived tables of a ledger."""

    def __init__(self, store: Store) -> None:
        """Works on the given store."""
        self._store = store

    def decision(self, scope_id: str, position: int) -> Mapping[str, object] | None:
        """What the decision at a position is searched by; text that callers chose as bytes."""
        with self._store.read() as connection:
            return _row(connection, decisions, scope_id=scope_id, position=position)

    def latest_outcome(self, scope_id: str, decision_id: str) -> Mapping[str, Any] | None:
        """What is kept of a decision's latest outcome; text that callers chose as bytes."""
        with self._store.read() as connection:
            return _row(connection, latest_outcomes, scope_id=scope_id, decision_id=decision_id)

    def outcome_dates(self, scope_id: str, decision_id: str, up_to: int) -> tuple[str, str]:
        """When the first and the last outcome of a decision, up to a chain position, were reported."""
        with self._store.read() as connection:
            first, last = connection.execute(
                select(func.min(entries.c.created_at), func.max(entries.c.created_at)).where(
                    entries.c.scope_id == scope_id,
                    entries.c.decision_id == decision_id,
                    entries.c.entry_type == "outcome",
                    entries.c.position <= up_to,
                )
            ).one()
        return first, last

    def stray(self, scope_id: str) -> tuple[str, int] | None:
        """A row that belongs to no entry: the name of its table, and the chain position that it claims."""
        with self._unhurried() as connection:
            for table, entry_type in ((decisions, "decision"), (latest_outcomes, "outcome")):
                same = (entries.c.scope_id == table.c.scope_id) & (entries.c.position == table.c.position)
                wrong = [entries.c.position.is_(None), entries.c.entry_type != entry_type]
                if table is latest_outcomes:
                    wrong.append(entries.c.decision_id != table.c.decision_id)
                found = connection.execute(
                    select(table.c.position)
                    .select_from(table.outerjoin(entries, same))
                    .where(table.c.scope_id == scope_id, or_(*wrong))
                    .order_by(table.c.position)
                    .limit(1)
                ).scalar_one_or_none()
                if found is not None:
                    return table.name, found
        return None

    def miscounted(self, scope_id: str) -> Mapping[str, object] | None:
        """A row of the counts that differs from a recount over the outcomes, or that is missing: what it is for."""
        with self._unhurried() as connection:
            expected = _recount(connection, scope_id)
            columns = (_raw(outcome_counts.c[name]) for name in (*_COHORT, *_COUNTED))
            for row in connection.execute(select(*columns).where(outcome_counts.c.scope_id == scope_id)):
                cohort, counted = tuple(row[: len(_COHORT)]), tuple(row[len(_COHORT) :])
                if expected.pop(cohort, None) != counted:
                    return _named(cohort)
        return _named(next(iter(expected))) if expected else None

    @contextmanager
    def _unhurried(self) -> Iterator[Connection]:
        with self._store.read() as connection:
            if connection.dialect.name == "postgresql":
                # It reads all outcomes of a scope, which takes longer than a request may.
                connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
            yield connection


def _raw(column: Column[Any]) -> Column[Any] | TypeCoerce[Any]:
    """A column as it is stored: what callers chose as bytes, which may be no text any more."""
    return type_coerce(column, NullType()) if isinstance(column.type, Utf8) else column


def _row(connection: Connection, table: Table, **key: object) -> dict[str, object] | None:
    columns = (_raw(column).label(column.name) for column in table.c)
    row = connection.execute(select(*columns).where(*(table.c[name] == value for name, value in key.items())))
    found = row.mappings().one_or_none()
    return None if found is None else dict(found)


def _recount(connection: Connection, scope_id: str) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """The counts as the latest outcomes give them, by policy, version, verdict and action, and by what is wider."""
    latest = latest_outcomes.c
    rows = connection.execute(
        select(
            *(_raw(latest[name]) for name in _COHORT),
            *(func.sum(case((latest.outcome_status == status, 1), else_=0)) for status in STATUSES),
            func.min(latest.first_reported_at),
            func.max(latest.last_reported_at),
        )
        .where(latest.scope_id == scope_id)
        .group_by(*(latest[name] for name in _COHORT))
    )
    counts: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for row in rows:
        policy_id, version, verdict, action, *numbers, first, last = row
        found = tuple(map(int, numbers))
        for wider in (
            (policy_id, version, verdict, action),
            (policy_id, b"", verdict, action),
            (policy_id, b"", "", b""),
        ):
            *before, earliest, latest_date = counts.get(wider, (*(0 for _ in found), first, last))
            together = (one + other for one, other in zip(before, found, strict=True))
            counts[wider] = (*together, min(earliest, first), max(latest_date, last))
    return counts


def _named(cohort: tuple[Any, ...]) -> dict[str, object]:
    texts = (bytes(part).decode("utf-8", "replace") if isinstance(part, bytes) else part for part in cohort)
    return dict(zip(_COHORT, texts, strict=True))
