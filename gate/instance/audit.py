"""Checking a whole chain against the records that are stored, and against a checkpoint that someone else kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, cast

from cachetools import LRUCache

from gate.decisions.erasure import ERASURE_MEMBERS, erasure_hash, erasure_link, is_confirmed, stored_erasure
from gate.decisions.stored import is_link_of, stored_record, stored_request
from gate.errors import GateError
from gate.instance.instance import Instance
from gate.labels import PROTOCOL
from gate.ledger import Ledger
from gate.ledger.chain.entries import StoredEntry
from gate.ledger.chain.writer import SEARCHABLE, Claim, Claimed
from gate.ledger.stores.store import read_object
from gate.proof import chain
from gate.proof.chain import Break
from gate.proof.checkpoint import Checkpoint, contradicts
from gate.records.documents import DecisionBody, OutcomeRecord, Record, Report
from gate.records.envelope import erased_members
from gate.records.receipts import CITED, CRM_SYNCS, KINDS, OUTCOMES, Kind, report_hash, report_link, text
from gate.verify import AUTHENTICITY, Trust, verify_record
from gate.verify.checkpoint import is_checkpoint, judge_checkpoint
from gate.verify.reports import ReportedOn, has_no_empty_part, member_faults, report_faults, unknown_members


def check_chain(instance: Instance, scope_id: str) -> tuple[int, Break | None]:
    """Recomputes every hash, link and root of a scope's chain from its stored records, and what is derived from them.

    An entry must hold in itself (its hashes, its derived members, a record's signature and the stored request behind
    its input hash), must be what its link says, must agree with the decision that it is about, and must be what its
    idempotency key is claimed by. What is missing of a decision must have been erased, and what was erased be missing.
    The state of the key that signed a record is no matter of the chain.

    The rows that decisions are searched by, the latest outcomes and the counts of these must be what the entries give.

    Returns:
        How many entries were read, and where the chain breaks; None where it is whole.
    """
    head = instance.ledger.entries.head(scope_id)
    audited = _Chain(instance.ledger, scope_id, instance.trust())
    read = 0
    unsound: Break | None = None

    def links() -> Iterator[chain.Link]:
        nonlocal read, unsound
        entries = instance.ledger.entries.walk(scope_id, up_to=head.size)
        while True:
            try:
                entry = next(entries, None)
            except (UnicodeDecodeError, TypeError):
                unsound = Break(read + 1, "The link there, or one soon after it, holds what is no text.")
                return
            if entry is None:
                return
            read += 1
            reason = _unsound(audited, entry)
            if reason is not None:
                unsound = Break(entry.link["chain_position"], reason)
                return
            yield entry.link

    broken = chain.find_break(links(), start=chain.Head(head.chain_id), end=head)
    return read, unsound or broken or _derived_break(audited)


def check_checkpoint(instance: Instance, scope_id: str, document: object) -> str | None:
    """Why a scope's chain is not the one that a checkpoint of this instance saw; None where it is.

    Args:
        instance: The instance.
        scope_id: The scope.
        document: The checkpoint.
    """
    if not is_checkpoint(document):
        return "It is no checkpoint: its members are not those of decision_checkpoint_v1."
    fault = _signature_fault(instance.trust(), document)
    if fault is not None:
        return fault
    entry = instance.ledger.entries.at(scope_id, document["chain_size"])
    contradicted = contradicts(document, None if entry is None else chain.head_of(entry.link))
    if contradicted:
        return f"The chain no longer has what it saw: {', '.join(contradicted)} at position {document['chain_size']}."
    return None


def _signature_fault(trust: Trust, document: Checkpoint) -> str | None:
    found = judge_checkpoint(document, trust, None)
    if found.holds is None:
        return f"Its key {document['key_id']} is none of this instance's receipt keys."
    if found.message is not None:
        return found.message
    return None if found.holds else "Its signature does not hold; it was changed after it was signed."


@dataclass(slots=True)
class _Chain:
    """A chain under audit: its ledger and scope, what its records are verified against, and decisions seen lately."""

    ledger: Ledger
    scope_id: str
    trust: Trust
    cited: LRUCache[str, tuple[int, ReportedOn]] = field(default_factory=lambda: LRUCache(_CITED_DECISIONS))

    def decision(self, decision_id: str) -> tuple[int, ReportedOn] | None:
        """The position of a decision, and what reports about it cite of its record."""
        found = self.cited.get(decision_id)
        if found is None:
            entry = self.ledger.entries.decision(self.scope_id, decision_id)
            if entry is None:
                return None
            record = read_object(entry.body, decision_id)
            cited = cast("ReportedOn", {name: record.get(name) for name in CITED})
            found = entry.link["chain_position"], cited
            self.cited[decision_id] = found
        return found


def _unsound(audited: _Chain, entry: StoredEntry) -> str | None:
    entry_type = entry.link["entry_type"]
    kind = _KINDS.get(entry_type)
    try:
        if entry_type == "decision":
            return _decision_fault(audited, entry)
        if entry.request is not None or entry.confidence is not None:
            return f"It is of type {entry_type}, and has a request or a confidence, which only decisions have."
        if entry_type == "erasure":
            return _erasure_fault(audited, entry)
        return f"No entry is of type {entry_type!r}." if kind is None else _report_fault(audited, entry, kind)
    except GateError as error:
        return error.message
    except (KeyError, TypeError, AttributeError):
        return f"The stored {entry_type} lacks members that every one has, or they have a type that none has."


def _decision_fault(audited: _Chain, entry: StoredEntry) -> str | None:
    record = stored_record(entry)
    request = stored_request(audited.ledger, audited.scope_id, entry)
    result = verify_record(record, audited.trust, request_body=request)
    if not result.checks.get("members"):
        return f"The stored record does not hold. {result.message}"
    failed = [name for name, holds in result.checks.items() if holds is False]
    forged = "receipt_signature" in record and "receipt_signature" in failed
    if forged or set(failed) - set(AUTHENTICITY):
        return f"The stored record does not hold; these checks fail: {', '.join(failed)}."
    if entry.entry_id != record["decision_id"] or not is_link_of(entry.link, record):
        return "The link is not that of the stored record."
    return (
        _erased_fault(audited, record, request)
        or _claim_fault(audited, entry, Claim("decide", "", record.get("idempotency_key", ""), record["input_hash"]))
        or _search_fault(audited, entry, record)
    )


def _erased_fault(audited: _Chain, record: Record, request: DecisionBody | None) -> str | None:
    """An erasure of the chain and what is missing of a decision have to be the same."""
    said = "erased" in record
    if said and not is_confirmed(record, stored_erasure(audited.ledger, audited.scope_id, record["decision_id"])):
        return "The record says that it was erased, and the chain has no such erasure."
    if (request is None) != ("input" in erased_members(record)):
        return (
            "Its request is there, though it was erased."
            if said
            else "Its request is missing, and no erasure of it is in the chain."
        )
    return None


def _erasure_fault(audited: _Chain, entry: StoredEntry) -> str | None:
    erasure = read_object(entry.body, entry.entry_id)
    if set(erasure) != ERASURE_MEMBERS or erasure["erasure_hash"] != erasure_hash(erasure):
        return "The stored erasure does not hold: its erasure_hash is not that of its members."
    decision = audited.ledger.entries.decision(audited.scope_id, erasure["decision_id"])
    if decision is None or decision.link["chain_position"] >= entry.link["chain_position"]:
        return "It is about a decision that is not before it in the chain."
    record = read_object(decision.body, decision.entry_id)
    if entry.entry_id != erasure["erasure_id"] or not _is_link(entry.link, erasure_link(erasure, record)):
        return "The link is not that of the stored erasure."
    left = decision.request is not None and "input" in erasure["erased"]
    if left or not is_confirmed(record, erasure):
        return "It says that its decision was erased, and the decision says otherwise, or still has what was erased."
    return None


def _report_fault(audited: _Chain, entry: StoredEntry, kind: Kind) -> str | None:
    report = read_object(entry.body, entry.entry_id)
    if report.get(kind.hash_member) != report_hash(kind, report):
        return f"The stored {kind.name} does not hold: its {kind.hash_member} is not that of its members."
    if entry.entry_id != report[kind.id_member] or not _is_link(entry.link, report_link(kind, report)):
        return f"The link is not that of the stored {kind.name}."
    decision = audited.decision(report["decision_id"])
    if decision is None or decision[0] >= entry.link["chain_position"]:
        return "It is about a decision that is not before it in the chain."
    wrong = _wrong_members(kind, {**report, "audit_chain": chain.record_link(entry.link)}, decision[1])
    if wrong:
        return f"The stored {kind.name} does not agree with its decision, or with itself, in {', '.join(wrong)}."
    claim = Claim(kind.name, report["decision_id"], report.get("idempotency_key", ""), report[kind.input_hash_member])
    return _claim_fault(audited, entry, claim) or (
        _latest_fault(audited, entry, report, decision[1]) if kind is OUTCOMES else None
    )


def _wrong_members(kind: Kind, report: Mapping[str, object], record: ReportedOn) -> list[str]:
    """The members of a report that are not what its decision's record, or its other members, make them."""
    if kind is CRM_SYNCS:
        expected = {"decision_protocol_version": PROTOCOL, kind.version_member: kind.version}
        expected |= {name: text(record, of_record) for name, of_record in kind.must_match.items()}
        unhashed = sorted(set(report) - {*kind.hashed, kind.hash_member, "audit_chain"})
        empty = [name for name in report if not has_no_empty_part(name, report[name])]
        return [name for name, value in expected.items() if report.get(name) != value] + unhashed + empty
    if unknown_members(kind, report):
        return ["members that no report has"]
    faults = member_faults(kind, report, kind.name) or [*report_faults(kind, cast("Report", report), record, kind.name)]
    return [fault.place for fault in faults]


def _claim_fault(audited: _Chain, entry: StoredEntry, claim: Claim) -> str | None:
    if not claim.key:
        return None
    claimed = audited.ledger.entries.claimed(audited.scope_id, claim)
    if claimed == Claimed(entry.link["chain_position"], claim.input_hash):
        return None
    return "Its idempotency key is not claimed by it: a retry would be answered with another record, or anew."


def _search_fault(audited: _Chain, entry: StoredEntry, record: Record) -> str | None:
    expected = {
        "scope_id": audited.scope_id,
        "position": entry.link["chain_position"],
        "verdict": record["verdict"],
        "policy_id": record["policy_id"],
        "policy_version": record["policy_version"].encode(),
        "reason_code": record["reason_code"],
        "target_object_id": record["action_binding"]["resource"][:SEARCHABLE].encode(),
        "created_at": record["created_at"],
    }
    if audited.ledger.derived.decision(audited.scope_id, entry.link["chain_position"]) == expected:
        return None
    return f"The table decisions does not say of it what its record says, so that searches go wrong. {_DERIVED}"


def _latest_fault(audited: _Chain, entry: StoredEntry, outcome: OutcomeRecord, record: ReportedOn) -> str | None:
    position = entry.link["chain_position"]
    found = audited.ledger.derived.latest_outcome(audited.scope_id, outcome["decision_id"])
    # Only the last outcome of a decision has a row; an earlier one is passed over.
    if found is not None and found["position"] > position:
        return None
    first, last = audited.ledger.derived.outcome_dates(audited.scope_id, outcome["decision_id"], position)
    expected = {
        "scope_id": audited.scope_id,
        "decision_id": outcome["decision_id"],
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
    return f"The table latest_outcomes does not have it as the latest outcome of its decision. {_DERIVED}"


def _derived_break(audited: _Chain) -> Break | None:
    """What is kept beside a chain that is whole, and does not follow from it."""
    stray = audited.ledger.derived.stray(audited.scope_id)
    if stray is not None:
        table, position = stray
        return Break(position, f"The table {table} has a row for it, and no such entry is there. {_DERIVED}")
    miscounted = audited.ledger.derived.miscounted(audited.scope_id)
    if miscounted is not None:
        named = ", ".join(f"{name} {value!r}" for name, value in miscounted.items())
        return Break(
            None,
            f"The table outcome_counts does not count what the outcomes are, for {named}, so that decision_confidence "
            f"goes wrong. {_DERIVED}",
        )
    return None


def _is_link(link: Mapping[str, object], material: chain.Entry) -> bool:
    return all(link[name] == getattr(material, name) for name in material.__slots__)


_KINDS: Final = {kind.entry_type: kind for kind in KINDS}
_DERIVED: Final = (
    "The records and the chain are not touched by that; restore a backup that `gate chain check` finds whole."
)
_CITED_DECISIONS: Final = 1024
