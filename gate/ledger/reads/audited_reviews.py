"""What the audit of a chain reads of reviews: their rows, and the resolutions and receipts that they follow from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, bindparam, func

from gate.ledger.packing import unpack
from gate.ledger.reads.raw import EACH, every, raw, scoped
from gate.ledger.tables import entries, reviews

# Receipts may be as large as a request.
_AT_ONCE: Final = 16


class ReviewPlace(NamedTuple):
    """A row of the reviews: its decision, and the position that it names."""

    decision_id: Any
    position: Any


class SeenReviews:
    """The reviews of a scope at one moment."""

    def __init__(self, connection: Connection, scope_id: str) -> None:
        """Reads over a connection whose statements all see one snapshot."""
        self._connection = connection
        self._scope = {"scope": scope_id}

    def of(self, decision_ids: Sequence[str]) -> dict[str, Mapping[str, Any]]:
        """The rows of these decisions."""
        if not decision_ids:
            return {}
        rows = self._connection.execute(_ROWS, {**self._scope, "each": decision_ids})
        return {row["decision_id"]: dict(row) for row in rows.mappings()}

    def resolutions(self, positions: Sequence[int]) -> dict[int, str]:
        """Of these positions, those of resolutions, each with the decision that it says it is about."""
        if not positions:
            return {}
        rows = self._connection.execute(_RESOLUTIONS, {**self._scope, "each": positions})
        return {row.position: row.decision_id for row in rows}

    def receipts(self, decision_ids: Sequence[str]) -> Iterator[tuple[str, int, bytes]]:
        """The execution receipts of these decisions, one after another: decision, position, and body."""
        if not decision_ids:
            return
        reading = self._connection.execution_options(yield_per=_AT_ONCE)
        with closing(reading.execute(_RECEIPTS, {**self._scope, "each": decision_ids})) as rows:
            for decision_id, position, body in rows:
                yield decision_id, position, unpack(body)

    def count(self, up_to: int) -> int:
        """How many rows name a position up to this one."""
        return int(self._connection.execute(_COUNT, {**self._scope, "to": up_to}).scalar_one())

    def places(self, after: str, limit: int) -> list[ReviewPlace]:
        """The next rows in the order of their decisions' ids, after one of them or after ""."""
        rows = self._connection.execute(_PLACES, {**self._scope, "after": after, "limit": limit})
        return [ReviewPlace(*row) for row in rows]


_ROWS: Final = scoped(reviews, *every(reviews)).where(reviews.c.decision_id.in_(EACH))
_RESOLUTIONS: Final = scoped(entries, entries.c.position, entries.c.decision_id).where(
    entries.c.position.in_(EACH), entries.c.entry_type == "resolution"
)
_RECEIPTS: Final = scoped(entries, entries.c.decision_id, entries.c.position, raw(entries.c.body)).where(
    entries.c.decision_id.in_(EACH), entries.c.entry_type == "execution"
)
_COUNT: Final = scoped(reviews, func.count()).where(reviews.c.position <= bindparam("to"))
_PLACES: Final = (
    scoped(reviews, reviews.c.decision_id, reviews.c.position)
    .where(reviews.c.decision_id > bindparam("after"))
    .order_by(reviews.c.decision_id)
    .limit(bindparam("limit"))
)
