"""The rows of other tables about a chain whose entries are whole: rows of no entry, rows past the end, and counts.

A row for a position past the end of the chain is damage, too. An append writes all its rows in one transaction, and no
entry is ever removed. Either the row was added, or entries were cut off the end of the chain.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import Table

from gate.errors import GateError
from gate.instance.audit.finding import Finding, beside, read_stored, tampered
from gate.instance.audit.material import claim_of
from gate.instance.audit.reviews import find_stray_review
from gate.instance.audit.stretch import Rows
from gate.ledger.reads.audited import AuditedEntry, AuditedLedger, ClaimRow, Stray
from gate.ledger.tables import claims, entries, latest_outcomes, outcome_counts, reviews

_PAGE: Final = 256


def check_beside(ledger: AuditedLedger, scope_id: str, size: int, rows: Rows) -> Finding | None:
    """The first row in another table that does not follow from the chain.

    Args:
        ledger: The ledger.
        scope_id: The scope.
        size: How many entries of the chain were judged; each had the rows that it has to have.
        rows: How many rows those are.

    Raises:
        ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
    """
    with ledger.snapshot(scope_id) as seen:
        # The head of this snapshot: what was appended since the audit began has its rows as well.
        end = seen.head().size
        stray = seen.beyond(end)
        counted = Rows(seen.count_claims(size), seen.reviews.count(size))
    if stray is not None:
        return _beyond(stray, end)
    # Every keyed entry has the row of its own key, and every held decision its own, so that any other is one too many.
    if counted.claims != rows.claims:
        return _stray_claim(ledger, scope_id, size) or _moving(claims)
    if counted.reviews != rows.reviews:
        return find_stray_review(ledger, scope_id, size) or _moving(reviews)
    with ledger.snapshot(scope_id) as seen:
        stray = seen.stray_outcome()
        miscounted = seen.miscounted()
    if stray is not None:
        what = f"The table {stray.table} has a row for it, but there is no such entry."
        return beside(stray.position, what, stray.row, table=latest_outcomes.name)
    if miscounted is not None:
        named = ", ".join(f"{name} {value!r}" for name, value in miscounted.items())
        what = f"The table outcome_counts has a wrong count for {named}, so decision_confidence will be wrong."
        return beside(None, what, " ".join(miscounted.values()), table=outcome_counts.name)
    return None


def _moving(table: Table) -> Finding:
    what = f"The table {table.name} changed while it was read. Check the chain again."
    return beside(None, what, "", table=table.name)


def _beyond(stray: Stray, end: int) -> Finding:
    at, row = stray.position, stray.row
    if isinstance(at, int) and at < 1:
        what = f"The table {stray.table} has the row {row} for position {at}, which no chain has."
    elif stray.table == entries.name:
        what = (
            f"There is an entry at position {at}, but the chain ends at {end}: its head was moved back, or the "
            "entry was added."
        )
    else:
        what = (
            f"The table {stray.table} has the row {row} for position {at}, but the chain ends at {end}: entries "
            "were cut off its end, or the row was added. A checkpoint that you kept elsewhere shows which."
        )
    return tampered(at, what, row, table=stray.table)


def _stray_claim(ledger: AuditedLedger, scope_id: str, size: int) -> Finding | None:
    """The first claim, in the order of their keys, of an entry that was not made with its key."""
    after: bytes | None = None
    while True:
        with ledger.snapshot(scope_id) as seen:
            page = seen.claims(after, _PAGE)
            of_chain = [row for row in page if not _is_later(row, size)]
            positions = sorted({row.position for row in of_chain if isinstance(row.position, int)})
            made = {entry.position: _claimed(scope_id, entry) for entry in seen.entries_at(positions)}
        for row in of_chain:
            if made.get(row.position) != row.claim:
                what = (
                    f"The table claims maps the idempotency key of the row {_hex(row.claim)} to the entry at "
                    f"position {row.position}, which was not made with that key. A request with the key would "
                    "get that entry as its answer."
                )
                return beside(row.position, what, _hex(row.claim), table=claims.name)
        if len(page) < _PAGE:
            return None
        after = page[-1].claim


def _is_later(row: ClaimRow, size: int) -> bool:
    return isinstance(row.position, int) and row.position > size


def _claimed(scope_id: str, row: AuditedEntry) -> bytes | None:
    try:
        claim = claim_of(row.entry_type, read_stored(row.body, "body")[0])
    except (GateError, KeyError, TypeError):
        return None
    return None if claim is None else claim.stored_as(scope_id)


def _hex(key: object) -> str:
    return key.hex() if isinstance(key, bytes) else str(key)
