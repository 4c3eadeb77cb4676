"""The scopes that take part in benchmarks: the choices of operators, with dates. Rows are never changed or deleted."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import Connection, insert, select

from gate.ids import not_before, timestamp
from gate.ledger.access.authority import Scope
from gate.ledger.access.operator_log import lock, record
from gate.ledger.stores.store import Store
from gate.ledger.tables import benchmark_choices


@dataclass(frozen=True, slots=True)
class Choice:
    """What an operator chose for a scope.

    Attributes:
        opted_in: Whether it takes part.
        chosen_at: Since when that is chosen; UTC timestamp.
    """

    opted_in: bool
    chosen_at: str


class BenchmarkChoices:
    """The choices of a ledger."""

    def __init__(self, store: Store) -> None:
        """Works on the given store."""
        self._store = store

    def choose(self, scope: Scope, now: datetime, *, opted_in: bool) -> bool:
        """Lets a scope take part from now on, or no longer.

        Args:
            scope: The scope.
            now: The current moment.
            opted_in: Whether it takes part.

        Returns:
            Whether that was chosen otherwise before; where it was not, nothing is written.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        with self._store.write() as connection:
            # Two operators who choose at once come one after the other.
            lock(connection)
            number, before = _last(connection, scope.scope_id)
            if opted_in == (before is not None and before.opted_in):
                return False
            connection.execute(
                insert(benchmark_choices).values(
                    scope_id=scope.scope_id, number=number + 1, opted_in=opted_in, chosen_at=timestamp(now)
                )
            )
            action = "scope.benchmarks_opted_in" if opted_in else "scope.benchmarks_opted_out"
            record(connection, action, scope.name, {}, now)
        return True

    def current(self, scope_id: str) -> Choice | None:
        """The last choice for a scope. None if there never was one; then the scope takes no part.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        with self._store.read() as connection:
            return _last(connection, scope_id)[1]

    def members(self, before: datetime) -> list[str]:
        """The ids of the scopes that took part when a moment began, sorted: by what was chosen before it.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        with self._store.read() as connection:
            rows = connection.execute(_CHOICES.where(benchmark_choices.c.chosen_at < not_before(before)))
            last = {row.scope_id: row.opted_in for row in rows}
        return sorted(scope_id for scope_id, opted_in in last.items() if opted_in)


_CHOICES: Final = select(benchmark_choices).order_by(benchmark_choices.c.scope_id, benchmark_choices.c.number)


def _last(connection: Connection, scope_id: str) -> tuple[int, Choice | None]:
    """The number of a scope's last choice, and the choice; 0 and None where there is none."""
    query = select(benchmark_choices).where(benchmark_choices.c.scope_id == scope_id)
    row = connection.execute(query.order_by(benchmark_choices.c.number.desc()).limit(1)).one_or_none()
    return (0, None) if row is None else (row.number, Choice(row.opted_in, row.chosen_at))
