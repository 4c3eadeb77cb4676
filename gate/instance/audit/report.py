"""A report about a decision, or its erasure, under audit; and the row of a decision's latest outcome."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from gate.decisions.erasure import ERASURE_MEMBERS, erasure_hash, erasure_link, is_confirmed
from gate.instance.audit.finding import Finding, beside
from gate.instance.audit.material import About, Entry, Material
from gate.instance.audit.reviews import granted_at
from gate.labels import PROTOCOL
from gate.ledger.tables import latest_outcomes
from gate.proof import chain
from gate.proof.chain import Link
from gate.records.advisory import is_advisory
from gate.records.documents import Record, Report
from gate.records.reports.receipts import (
    CRM_SYNCS,
    EXECUTIONS,
    OUTCOMES,
    Kind,
    event_time_fault,
    report_hash,
    report_link,
    text,
)
from gate.verify.reports import ReportedOn, member_faults, report_faults, uncovered_members, unknown_members


def report_fault(entry: Entry, link: Link, material: Material, kind: Kind) -> str | None:
    """The fault of a report, as a sentence; None if it is valid and agrees with its decision.

    Raises:
        GateError, KeyError, TypeError, AttributeError: It has not the fields that every report of its kind has.
    """
    report, row = entry.document, entry.row
    if "audit_chain" in report:
        return f"The stored {kind.name} has a field that its hash does not cover: audit_chain. It was added later."
    if row.entry_id != report[kind.id_member] or not _is_link(link, report_link(kind, report)):
        return f"The link does not match the stored {kind.name}."
    decision = material.decisions.get(report["decision_id"])
    if decision is None or decision.position >= row.position:
        return _NOT_BEFORE
    if kind is OUTCOMES and (fault := _request_fault(entry, material)) is not None:
        return fault
    linked = {**report, "audit_chain": chain.record_link(link)}
    granted = granted_at(report["decision_id"], material) if kind is EXECUTIONS else None
    wrong = _wrong_members(kind, linked, cast("ReportedOn", decision.record), plain=entry.plain, granted=granted)
    if not wrong:
        return None
    if kind.hash_member in wrong:
        return f"The stored {kind.name} is not valid: its {kind.hash_member} does not match its fields."
    if added := [name for name in uncovered_members(kind, linked) if name in wrong]:
        return (
            f"The stored {kind.name} has fields that its hash does not cover: {', '.join(added)}. They were added "
            f"after it was made."
        )
    return f"The stored {kind.name} contradicts its decision, or itself, in {', '.join(wrong)}."


def _request_fault(entry: Entry, material: Material) -> str | None:
    """What is wrong with the request that is kept of an outcome, and with what the outcome repeats of it alone."""
    outcome, position = entry.document, entry.row.position
    erased_at = material.erased_at.get(outcome["decision_id"], 0)
    if entry.request is not None and position < erased_at:
        return f"Its request still exists, though its decision was erased at position {erased_at}."
    fault = event_time_fault(outcome, entry.request)
    return None if fault is None else f"The stored outcome contradicts its request. {fault}"


def _wrong_members(
    kind: Kind, report: Mapping[str, object], record: ReportedOn, *, plain: bool, granted: int | None
) -> list[str]:
    """The members of a report that are not what its decision's record, or its other members, make them."""
    if kind is CRM_SYNCS:
        expected = {"decision_protocol_version": PROTOCOL, kind.version_member: kind.version}
        expected |= {kind.hash_member: report_hash(kind, report, plain=plain)}
        expected |= {name: text(record, of_record) for name, of_record in kind.must_match.items()}
        added = uncovered_members(kind, report)
        return [name for name, value in expected.items() if report.get(name) != value] + added
    if unknown := unknown_members(kind, report):
        return sorted(unknown)
    faults = member_faults(kind, report, kind.name)
    read = cast("Report", report)
    faults = faults or [*report_faults(kind, read, record, kind.name, plain=plain, granted_at=granted)]
    return [fault.place.removeprefix(f"{kind.name}.") for fault in faults]


def erasure_fault(entry: Entry, link: Link, material: Material) -> str | None:
    """The fault of an erasure, as a sentence; None if it is valid and its decision was erased.

    Raises:
        GateError, KeyError, TypeError, AttributeError: It has not the fields that every erasure has.
    """
    erasure = entry.document
    if set(erasure) != ERASURE_MEMBERS or erasure["erasure_hash"] != erasure_hash(erasure):
        return "The stored erasure is not valid: its erasure_hash does not match its fields."
    decision = material.decisions.get(erasure["decision_id"])
    if decision is None or decision.position >= entry.row.position:
        return _NOT_BEFORE
    record = cast("Record", decision.record)
    if entry.row.entry_id != erasure["erasure_id"] or not _is_link(link, erasure_link(erasure, record)):
        return "The link does not match the stored erasure."
    left = decision.has_request and "input" in erasure["erased"]
    if left or not is_confirmed(record, erasure):
        return "It says that its decision was erased, but the decision does not say so, or still holds the erased data."
    return None


def latest_finding(entry: Entry, material: Material) -> Finding | None:
    """The fault of the row of the latest outcome, if this is the latest."""
    position, outcome = entry.row.position, entry.document
    decision_id = outcome["decision_id"]
    found, decision = material.latest.get(decision_id), material.decisions[decision_id]
    # Only the last outcome of a decision has a row; an earlier one is passed over.
    if found is not None and isinstance(found["position"], int) and found["position"] > position:
        return None
    record = cast("About", decision).record
    if is_advisory(record):
        what = "The table latest_outcomes has a row for it, though outcomes of advisory decisions are not counted."
        return None if found is None else beside(position, what, decision_id, table=latest_outcomes.name)
    first, last = material.dates.get(decision_id, (None, None))
    expected = {
        "scope_id": material.scope_id,
        "decision_id": decision_id,
        "position": position,
        "outcome_status": outcome["outcome_status"],
        "policy_id": record["policy_id"],
        "policy_version": record["policy_version"].encode(),
        "verdict": record["verdict"],
        "action": record["action"].encode(),
        "first_reported_at": first,
        "last_reported_at": last,
    }
    if found == expected:
        return None
    what = "The table latest_outcomes does not list it as the latest outcome of its decision."
    return beside(position, what, decision_id, table=latest_outcomes.name)


def _is_link(link: Mapping[str, object], material: chain.Entry) -> bool:
    return all(link[name] == getattr(material, name) for name in material._fields)


_NOT_BEFORE: Final = "Its decision does not come before it in the chain."
