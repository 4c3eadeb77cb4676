"""Held decisions under audit: their resolutions, and the rows that tell where their reviews stand.

A decision, its resolution and its receipts each hold the one row of the review against themselves. So a row that agrees
with all of them is right, and no two resolutions of a decision agree with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from gate.errors import GateError
from gate.ids import parse_timestamp, timestamp
from gate.instance.audit.finding import Finding, beside, read_stored, tampered
from gate.instance.audit.material import Entry, Material, ids_in_order, is_held, misshapen
from gate.ledger.chain.reviews import EXECUTED, GRANTED, HELD
from gate.ledger.reads.audited import AuditedLedger, Snapshot
from gate.ledger.tables import reviews
from gate.proof import chain
from gate.proof.chain import Link
from gate.proof.signing import HMAC_SHA256
from gate.records.reports.receipts import EXECUTIONS, flags, says_executed
from gate.records.reports.resolution import RESOLUTIONS, resolution_link
from gate.verify import Trust
from gate.verify.reports import ReportedOn, uncovered_members
from gate.verify.resolution import is_resolution, judge_resolution, resolution_faults

_PAGE: Final = 256


def read_reviews(seen: Snapshot, page: Sequence[Entry], material: Material) -> None:
    """Reads the reviews that a page is about; a page without held decisions asks for nothing.

    Args:
        seen: The scope at one moment.
        page: The entries.
        material: Takes what is read; it has the decisions that the entries are about.
    """
    begun = {entry.row.decision_id for entry in page if entry.held}
    resolved = {entry.row.decision_id for entry in page if entry.row.entry_type == RESOLUTIONS.entry_type}
    held = {id_ for id_, decision in material.decisions.items() if decision is not None and is_held(decision.record)}
    reported = {
        entry.row.decision_id
        for entry in page
        if entry.row.entry_type == EXECUTIONS.entry_type and entry.row.decision_id in held
    }
    if not (begun or resolved or reported):
        return
    rows = material.reviews = seen.reviews.of(ids_in_order(begun | resolved | reported))
    named = {rows[id_]["resolved_position"] for id_ in begun | resolved if id_ in rows}
    material.resolutions = seen.reviews.resolutions(sorted(at for at in named if _is_position(at)))
    for decision_id, position, body in seen.reviews.receipts(
        ids_in_order(id_ for id_ in resolved & rows.keys() if rows[id_]["state"] == EXECUTED)
    ):
        at = rows[decision_id]["resolved_position"]
        if decision_id in material.executed or not _is_position(at) or position <= at:
            continue
        decision = material.decisions.get(decision_id)
        if decision is not None and _says_executed(body, decision.record):
            material.executed.add(decision_id)


def granted_at(decision_id: str, material: Material) -> int | None:
    """The position at which the owner of a held decision granted it; None where nobody did.

    The row says so; where it is wrong, that is found at the decision or at the resolution, which are before a receipt
    that could gain by it.
    """
    row = material.reviews.get(decision_id)
    if row is None or row["state"] not in (GRANTED, EXECUTED) or not _is_position(row["resolved_position"]):
        return None
    return int(row["resolved_position"])


def resolution_fault(entry: Entry, link: Link, material: Material) -> str | None:
    """The fault of a resolution, as a sentence; None if it is valid and agrees with its decision.

    Raises:
        GateError, KeyError, TypeError, AttributeError: It has not the fields that every resolution has.
    """
    resolution, row = entry.document, entry.row
    added = {*uncovered_members(RESOLUTIONS, resolution), *({"audit_chain"} & resolution.keys())}
    if added:
        return (
            f"The stored resolution has fields that its hash does not cover: {', '.join(sorted(added))}. They were "
            f"added after it was made."
        )
    if not is_resolution(resolution):
        return misshapen(row)
    decision = material.decisions.get(resolution["decision_id"])
    if decision is None or decision.position >= row.position:
        return "Its decision does not come before it in the chain."
    record: Any = decision.record
    if not is_held(record):
        return "It resolves a decision that was never held for an owner. Only reviews that are not advisory are held."
    expected = resolution_link(resolution, record)
    members: Mapping[str, object] = link
    linked = all(members[name] == getattr(expected, name) for name in chain.Entry._fields)
    if row.entry_id != resolution["resolution_entry_id"] or not linked:
        return "The link does not match the stored resolution."
    faults = resolution_faults(cast("Any", resolution), cast("ReportedOn", record), "resolution")
    wrong = [fault.place.removeprefix("resolution.") for fault in faults]
    if "resolution_hash" in wrong:
        return "The stored resolution is not valid: its resolution_hash does not match its fields."
    if wrong:
        return f"The stored resolution contradicts its decision, or itself, in {', '.join(wrong)}."
    return _signature_fault(resolution, material.trust)


def _signature_fault(resolution: Any, trust: Trust) -> str | None:
    """What is wrong with the signature of a resolution, as a sentence.

    The state of the key is no matter of the chain. Nothing keeps past HMAC secrets, so that what was signed under one
    of them cannot be checked; a receipt key is never forgotten.
    """
    found = judge_resolution(resolution, trust, None)
    if found is None:
        if resolution["resolution"] != GRANTED:
            return None
        return "It grants the action without a signature, and the service never makes such a grant."
    if found.holds is False:
        return "The stored resolution is not valid: its signature does not verify with its key."
    if found.holds is None and not resolution["signature"].startswith(f"{HMAC_SHA256}:"):
        return f"It is signed with the key {resolution['key_id']}, which is not a receipt key of this instance."
    return None


def begun_finding(entry: Entry, material: Material) -> Finding | None:
    """The fault of the review row that a held decision begins."""
    record, position = entry.document, entry.row.position
    decision_id = record["decision_id"]
    row = material.reviews.get(decision_id)
    if row is None:
        what = "The table reviews lacks it, so its owner can neither find nor resolve it."
        return tampered(position, what, decision_id, table=reviews.name)
    expected = {
        "scope_id": material.scope_id,
        "position": position,
        "policy_id": record["policy_id"],
        "action": record["action"].encode(),
        "created_at": record["created_at"],
    }
    wrong = [name for name, value in expected.items() if row[name] != value or type(row[name]) is not type(value)]
    if wrong:
        what = f"Its row in the table reviews does not match its record, in {', '.join(wrong)}."
        return beside(position, what, decision_id, table=reviews.name)
    if unreadable := _unreadable(row):
        what = f"Its row in the table reviews has invalid values in {', '.join(unreadable)}."
        return beside(position, what, decision_id, table=reviews.name)
    resolved_at = row["resolved_position"]
    if resolved_at is None:
        whole = (row["state"], row["resolved_at"]) == (HELD, None)
    else:
        # What the resolution says is compared when its own turn comes.
        whole = _is_position(resolved_at) and material.resolutions.get(resolved_at) == decision_id
    if whole:
        return None
    by = "without a resolution" if resolved_at is None else f"by a different entry, at position {resolved_at}"
    what = f"The table reviews lists it as {row['state']} {by}, so its action may wrongly appear resolved."
    return tampered(position, what, decision_id, table=reviews.name)


def resolved_finding(entry: Entry, material: Material) -> Finding | None:
    """The fault of the review row that a resolution ends."""
    resolution, position = entry.document, entry.row.position
    decision_id, answer = resolution["decision_id"], resolution["resolution"]
    row: Mapping[str, Any] = material.reviews.get(decision_id, {})
    named, state = row.get("resolved_position"), row.get("state")
    if named != position and material.resolutions.get(cast("int", named)) == decision_id:
        what = f"Its decision has another resolution at position {named}, but a resolution is final."
        return tampered(position, what, entry.row.entry_id)
    executed = decision_id in material.executed
    # A granted one whose action was executed is compared with its receipts, of which each has its turn.
    expected = EXECUTED if answer == GRANTED and executed else answer
    if (named, row.get("resolved_at")) != (position, resolution["recorded_at"]) or state != expected:
        if (named, state, expected) == (position, EXECUTED, GRANTED):
            what = "The table reviews says that its action was executed, but no later receipt in the chain says so."
            return beside(position, what, decision_id, table=reviews.name)
        what = f"The table reviews does not list it as the resolution of its decision, which it made {answer}."
        return tampered(position, what, decision_id, table=reviews.name)
    return None


def executed_finding(entry: Entry, material: Material) -> Finding | None:
    """The fault of the review row, if a receipt after a grant says that the action was executed."""
    decision_id, position = entry.document["decision_id"], entry.row.position
    at = granted_at(decision_id, material)
    if at is None or position < at or not says_executed(entry.document):
        return None
    if material.reviews[decision_id]["state"] == EXECUTED:
        return None
    what = (
        "The table reviews says that its decision was granted and not executed, but it says that the action was "
        "executed."
    )
    return beside(position, what, decision_id, table=reviews.name)


def find_stray_review(ledger: AuditedLedger, scope_id: str, size: int) -> Finding | None:
    """The first row, in the order of their decisions, that is none of a held decision.

    Args:
        ledger: The ledger.
        scope_id: The scope.
        size: How many entries of the chain were judged; each held decision among them has its row.

    Raises:
        ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
    """
    after = ""
    while True:
        with ledger.snapshot(scope_id) as seen:
            page = seen.reviews.places(after, _PAGE)
            held = {
                found.decision_id: found.position if _reads_held(found.body) else None
                for found in seen.decisions([row.decision_id for row in page])
            }
        for decision_id, position in page:
            if position > size or held.get(decision_id) == position:
                continue
            if decision_id in held and held[decision_id] is None:
                what = "The table reviews has a row for it, so somebody could grant it, but it was never held."
                return tampered(position, what, decision_id, table=reviews.name)
            what = "The table reviews has a row for it, but there is no such decision."
            return beside(position, what, decision_id, table=reviews.name)
        if len(page) < _PAGE:
            return None
        after = page[-1].decision_id


def _unreadable(row: Mapping[str, Any]) -> list[str]:
    """The settings of a review that have a type or a form that none has. Which they are, the chain does not say."""
    readable = {
        "owner": _is_text(row["owner"]),
        "due_at": row["due_at"] is None or _is_time(row["due_at"]),
        "grant_seconds": type(row["grant_seconds"]) is int,
    }
    return [name for name, holds in readable.items() if not holds]


def _is_text(stored: object) -> bool:
    if not isinstance(stored, bytes):
        return False
    try:
        stored.decode()
    except UnicodeDecodeError:
        return False
    return True


def _is_time(stored: object) -> bool:
    try:
        return isinstance(stored, str) and timestamp(parse_timestamp(stored)) == stored
    except ValueError:
        return False


def _is_position(stored: object) -> bool:
    return type(stored) is int


def _says_executed(body: bytes, record: Mapping[str, Any]) -> bool:
    """Whether a receipt behind a grant says that the granted action was executed. Its flags follow from its other
    members: those that are stored may be wrong, which is found when its own turn comes.
    """
    try:
        receipt, _ = read_stored(body, "receipt")
        return says_executed({**receipt, "flags": flags(receipt, record, granted=True)})
    except (GateError, KeyError, TypeError, AttributeError):
        return False


def _reads_held(body: bytes) -> bool:
    try:
        return is_held(read_stored(body, "record")[0])
    except GateError:
        return False
