"""Where a migration stands: what its entries in the chain, one after the other, have made of it.

A migration may be proposed again, with new evidence, until it is applied. Approval and rejection are about the latest
proposal alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

from gate.errors import OperatorError
from gate.records.changes import Event, MigrationEntry, RouteEntry

Status: TypeAlias = Event
"""proposed, approved, rejected or superseded, as the manifest has it."""

State: TypeAlias = Literal["proposed", "approved", "rejected", "superseded", "applied", "rolled_back"]

STATES: Final[tuple[State, ...]] = get_args(State)
"""All states, in the order of a migration's life."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a migration stands.

    Attributes:
        proposed: Its latest proposal.
        decided: The decision about that proposal; None without one.
        applied: Whether it was applied.
        rolled_back: The rollback that took that back last; None where it was not.
    """

    proposed: MigrationEntry
    decided: MigrationEntry | None
    applied: bool
    rolled_back: RouteEntry | None = None

    @property
    def migration_id(self) -> str:
        """The migration."""
        return self.proposed["migration_id"]

    @property
    def status(self) -> Status:
        """The event of its last entry."""
        return self.proposed["event"] if self.decided is None else self.decided["event"]

    @property
    def state(self) -> State:
        """Its status until it is applied; then `applied`, or `rolled_back` once a rollback took that back."""
        if self.rolled_back is not None:
            return "rolled_back"
        return "applied" if self.applied else self.status

    @property
    def author(self) -> str:
        """The name of the user who proposed it."""
        return self.proposed["actor"]["id"]

    @property
    def evidence_hash(self) -> str:
        """The evidence of the latest proposal."""
        return self.proposed["evidence_hash"]

    @property
    def approval(self) -> MigrationEntry | None:
        """The approval of the latest proposal."""
        return self.decided if self.status == "approved" else None

    def instead_of_another_apply(self) -> str:
        """The advice for a person who wants to apply it once more."""
        if self.rolled_back is not None:
            return "To apply its candidates again, propose them in a migration with another id."
        return "To change something else, propose another migration."

    def sentence(self) -> str:
        """Its state for a person: `approved by ada at 2026-11-25T12:00:00.000Z`."""
        entry = self.decided or self.proposed
        done = f"{entry['event']} by {entry['actor']['id']} at {entry['recorded_at']}"
        if self.rolled_back is not None:
            back = f"rolled back by {self.rolled_back['actor']['id']} at {self.rolled_back['recorded_at']}"
            return f"{done}, applied, and {back}"
        return f"{done}, and applied" if self.applied else done


def standing(entries: Sequence[MigrationEntry], routes: Sequence[RouteEntry]) -> Standing | None:
    """Where a migration stands; None where it was never proposed.

    Args:
        entries: The entries about it, in the order of the chain.
        routes: The route entries that cite it, and the rollbacks that took it back, in the order of the chain.
    """
    proposed = decided = None
    for entry in entries:
        if entry["event"] == "proposed":
            proposed, decided = entry, None
        else:
            decided = entry
    if proposed is None:
        return None
    back = [route for route in routes if route["migration_id"] != proposed["migration_id"]]
    applied = any(route["cause"] == "apply" for route in routes)
    return Standing(proposed, decided, applied, back[-1] if back else None)


def require_open(found: Standing | None, migration_id: str, *, to: Event) -> Standing:
    """Requires that an event may come next.

    Args:
        found: Where the migration stands.
        migration_id: Its id, for the sentence.
        to: The event.

    Raises:
        OperatorError: `MIGRATION_UNKNOWN` or `MIGRATION_NOT_OPEN`.
    """
    if found is None:
        raise unknown(migration_id)
    allowed: dict[Event, tuple[State, ...]] = {
        "proposed": ("proposed", "approved", "rejected", "superseded"),
        "approved": ("proposed",),
        "rejected": ("proposed", "approved"),
        "superseded": ("proposed", "approved"),
    }
    if found.state not in allowed[to]:
        raise OperatorError(
            "MIGRATION_NOT_OPEN",
            f"The migration {migration_id} was {found.sentence()}, so it cannot be {to} now. {_instead(found, to)}",
        )
    return found


def _instead(found: Standing, to: Event) -> str:
    """What to do where an event may not come next."""
    if found.applied:
        return found.instead_of_another_apply()
    if to == "approved" and found.status == "approved":
        return "There is nothing left to approve. `gate migrate apply` applies it."
    if to == found.status:
        return "There is nothing left to do."
    return f"Propose it again with `gate migrate propose` before it can be {to}."


def unknown(migration_id: str) -> OperatorError:
    """The error where a scope has no migration of that id."""
    return OperatorError(
        "MIGRATION_UNKNOWN",
        f"The scope has no migration {migration_id!r}. `gate migrate list` shows all migrations; `gate migrate "
        "propose` adds one.",
    )
