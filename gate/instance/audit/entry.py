"""One entry under audit, held against its link, its decision, its idempotency key and the rows that follow from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from gate.errors import GateError
from gate.instance.audit.changes import change_fault, index_finding
from gate.instance.audit.decision import decision_finding
from gate.instance.audit.finding import Finding, beside, tampered
from gate.instance.audit.material import DECISION, ERASURE, KIND_OF, Entry, Material, entry_tampered, link_of, misshapen
from gate.instance.audit.report import erasure_fault, latest_finding, report_fault
from gate.instance.audit.reviews import begun_finding, executed_finding, resolution_fault, resolved_finding
from gate.ledger.tables import claims, decisions
from gate.proof import chain
from gate.proof.chain import Head, Link
from gate.records.changes import CHANGE_KINDS
from gate.records.reports.receipts import EXECUTIONS, OUTCOMES
from gate.records.reports.resolution import RESOLUTIONS


def entry_finding(entry: Entry, before: Head, material: Material) -> Finding | None:
    """The fault of an entry, of its link, or of a row that follows from it; None if all agree.

    Args:
        entry: The entry.
        before: The end of the chain before it.
        material: The material to compare it with.
    """
    row = entry.row
    if row.position != before.size + 1:
        missing = before.size + 1
        return tampered(
            missing, f"The entry at position {missing} is missing; the next one is {row.position}.", missing
        )
    link = link_of(row, before)
    if link is None:
        return entry_tampered(row, "Its link contains a value that is not text.")
    try:
        found = _finding(entry, link, material)
        if found is not None:
            return found
    except GateError as error:
        return entry_tampered(row, error.message)
    except (KeyError, TypeError, AttributeError):
        return entry_tampered(row, misshapen(row))
    expected = chain.append(before, chain.entry_of(link), plain=True)
    members: Mapping[str, object] = link
    if wrong := [name for name, value in expected.items() if value != members[name]]:
        return entry_tampered(row, f"Its {', '.join(wrong)} does not follow from its entry and the link before it.")
    return None


def _finding(entry: Entry, link: Link, material: Material) -> Finding | None:
    row = entry.row
    if entry.fault is not None:
        return entry_tampered(row, entry.fault)
    if row.entry_type == DECISION:
        found = decision_finding(entry, link, material)
        if entry.held:
            found = found or begun_finding(entry, material)
        found = found or _claim_finding(entry, material)
        return found or (index_finding(entry, None, material) if row.position in material.changes else None)
    kind, change = KIND_OF.get(row.entry_type), CHANGE_KINDS.get(row.entry_type)
    if row.confidence is not None or (row.request is not None and kind is not OUTCOMES):
        fault: str | None = (
            f"It has the type {row.entry_type}, and also a request or a confidence, which entries of this type "
            "do not have."
        )
    elif row.entry_type == ERASURE:
        fault = erasure_fault(entry, link, material)
    elif change is not None:
        fault = change_fault(entry, link, change)
    elif kind is None:
        fault = f"Its type {row.entry_type!r} does not exist."
    elif kind is RESOLUTIONS:
        fault = resolution_fault(entry, link, material)
    else:
        fault = report_fault(entry, link, material, kind)
    if fault is not None:
        return entry_tampered(row, fault)
    if row.position in material.searchable:
        what = f"The table decisions has a row for position {row.position}, which is not a decision."
        return beside(row.position, what, row.position, table=decisions.name)
    if change is not None or row.position in material.changes:
        return index_finding(entry, change, material)
    of_kind = _OF_KIND.get(row.entry_type)
    return _claim_finding(entry, material) or (None if of_kind is None else of_kind(entry, material))


# The checks of what else follows from an entry, by its type.
_OF_KIND: Final[Mapping[str, Callable[[Entry, Material], Finding | None]]] = {
    OUTCOMES.entry_type: latest_finding,
    EXECUTIONS.entry_type: executed_finding,
    RESOLUTIONS.entry_type: resolved_finding,
}


def _claim_finding(entry: Entry, material: Material) -> Finding | None:
    row, claim, key = entry.row, entry.claim, entry.claimed_as
    if claim is None or key is None:
        return None
    found = material.claims.get(key)
    if found is not None and (found.position, found.input_hash) == (row.position, claim.input_hash):
        return None
    stands = "has no row for it" if found is None else f"maps it to position {found.position}, or to another payload"
    return beside(
        row.position,
        f"The table claims does not map its idempotency key to it: the table {stands}. A retry would get another "
        "record, or a new decision.",
        key.hex(),
        table=claims.name,
    )
