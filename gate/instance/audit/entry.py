"""One entry under audit: read from its row, and held against everything that has to agree with it.

Pure but for what is passed in: an entry is judged by its own bytes and by the `Material` that was read with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, cast

from gate.decisions.erasure import ERASURE_MEMBERS, erasure_hash, erasure_link, is_confirmed
from gate.decisions.stored import is_link_of, whole_record
from gate.errors import GateError
from gate.instance.audit.finding import Finding, beside, read_stored, tampered
from gate.instance.audit.registrations import Registration, signature_holds
from gate.labels import CHAIN, MERKLE_STRATEGY, PROTOCOL
from gate.ledger.chain.writer import SEARCHABLE, Claim
from gate.ledger.reads.audited import AuditedEntry, ClaimRow
from gate.ledger.tables import claims, decisions, latest_outcomes, rulebooks
from gate.proof import chain
from gate.proof.chain import Head, Link
from gate.proof.signing import ED25519
from gate.records.documents import Erasure, Record, Report
from gate.records.envelope import erased_members
from gate.records.receipts import CRM_SYNCS, KINDS, OUTCOMES, Kind, report_hash, report_link, text
from gate.verify import AUTHENTICITY, Trust, verify_record
from gate.verify.members import uncovered_members
from gate.verify.reports import ReportedOn, member_faults, report_faults, unknown_members
from gate.verify.reports import uncovered_members as uncovered_members_of

KIND_OF: Final = {kind.entry_type: kind for kind in KINDS}
"""The kinds of reports, by the type of their entries."""

DECISION: Final = "decision"
ERASURE: Final = "erasure"


class About(NamedTuple):
    """A decision that an entry is about: where it stands, whether its request is kept, and what is cited of it."""

    position: int
    has_request: bool
    record: Mapping[str, Any]


@dataclass(slots=True)
class Material:
    """What the entries of a stretch are held against, read in the same snapshot as they.

    Attributes:
        scope_id: The scope.
        trust: What signatures are verified against.
        decisions: The decisions that reports and erasures are about, by their ids; None for one that is unreadable.
        erasures: The last erasure of decisions that say that they were erased.
        registrations: The registrations of the rulebooks that decided, by their hashes.
        claims: The rows of the idempotency keys that entries were made with, by their digests.
        searchable: What decisions are searched by, by their positions.
        latest: The rows of latest outcomes, by their decisions.
        dates: When the first and the last outcome of a decision was reported, of those whose latest is in the stretch.
    """

    scope_id: str
    trust: Trust
    decisions: dict[str, About | None] = field(default_factory=dict)
    erasures: dict[str, Erasure] = field(default_factory=dict)
    registrations: dict[str, Registration] = field(default_factory=dict)
    claims: dict[bytes, ClaimRow] = field(default_factory=dict)
    searchable: dict[Any, Mapping[str, Any]] = field(default_factory=dict)
    latest: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    dates: dict[str, tuple[Any, Any]] = field(default_factory=dict)


@dataclass(slots=True)
class Entry:
    """An entry as it was read.

    Attributes:
        row: Its row.
        document: The JSON object in its body; None where it cannot be read.
        plain: Whether that is known to be plain, as `canonical.is_plain` has it.
        request: The request of a decision, as it is stored.
        claim: The idempotency key that it was made with.
        digest: The digest of the claim.
        fault: Why it cannot be looked at further, as a sentence.
    """

    row: AuditedEntry
    document: Any = None
    plain: bool = False
    request: Any = None
    claim: Claim | None = None
    digest: bytes | None = None
    fault: str | None = None


def read_entry(scope_id: str, row: AuditedEntry) -> Entry:
    """Reads the documents of an entry; what is wrong with them is its fault."""
    entry = Entry(row)
    try:
        entry.document, entry.plain = read_stored(row.body, "body")
        if row.request is not None:
            entry.request, plain = read_stored(row.request, "request")
            entry.plain = entry.plain and plain
        entry.claim = claim_of(row.entry_type, entry.document)
        entry.digest = None if entry.claim is None else entry.claim.digest(scope_id)
    except GateError as error:
        entry.fault = error.message
    except (KeyError, TypeError, AttributeError):
        entry.fault = _misshapen(row)
    return entry


def claim_of(entry_type: str, document: Any) -> Claim | None:
    """The idempotency key that an entry says it was made with; None where it names none.

    Raises:
        KeyError, TypeError: It has not the fields that every entry of its type has.
    """
    key = document.get("idempotency_key", "")
    if not isinstance(key, str):
        raise TypeError(key)
    if not key:
        return None
    if entry_type == DECISION:
        return Claim("decide", "", key, document["input_hash"])
    kind = KIND_OF.get(entry_type)
    return None if kind is None else Claim(kind.name, document["decision_id"], key, document[kind.input_hash_member])


def link_of(row: AuditedEntry, before: Head) -> Link | None:
    """The link that a row says it has, after what came before it; None where it holds what is no text."""
    texts = (*row[1:7], *row[8:12])
    if not all(text is None or type(text) is str for text in texts):
        return None
    try:
        version = None if row.policy_version is None else row.policy_version.decode()
    except (UnicodeDecodeError, AttributeError):
        return None
    return {
        "decision_chain_version": CHAIN,
        "chain_id": before.chain_id,
        "chain_position": row.position,
        "previous_link_hash": before.link_hash,
        "previous_merkle_root": before.merkle_root,
        "leaf_hash": row.leaf_hash,
        "merkle_root": row.merkle_root,
        "merkle_strategy": MERKLE_STRATEGY,
        "entry_type": row.entry_type,
        "decision_id": row.decision_id,
        "record_hash": row.record_hash,
        "receipt_hash": row.receipt_hash,
        "policy_id": row.policy_id,
        "policy_version": version,
        "created_at": row.created_at,
        "link_hash": row.link_hash,
    }


def entry_finding(entry: Entry, before: Head, material: Material) -> Finding | None:
    """What is wrong with an entry, with its link, or with a row that follows from it; None where all agree.

    Args:
        entry: The entry.
        before: The end of the chain before it.
        material: What it is held against.
    """
    row = entry.row
    if row.position != before.size + 1:
        missing = before.size + 1
        return tampered(missing, f"The entry at position {missing} is missing; {row.position} follows.", missing)
    link = link_of(row, before)
    if link is None:
        return _entry_tampered(row, "Its link holds what is no text.")
    try:
        found = _finding(entry, link, material)
        if found is not None:
            return found
    except GateError as error:
        return _entry_tampered(row, error.message)
    except (KeyError, TypeError, AttributeError):
        return _entry_tampered(row, _misshapen(row))
    expected = chain.append(before, chain.entry_of(link), plain=True)
    members: Mapping[str, object] = link
    if wrong := [name for name, value in expected.items() if value != members[name]]:
        return _entry_tampered(row, f"Its {', '.join(wrong)} is not what its entry and the link before it give.")
    return None


def _finding(entry: Entry, link: Link, material: Material) -> Finding | None:
    row = entry.row
    if entry.fault is not None:
        return _entry_tampered(row, entry.fault)
    if row.entry_type == DECISION:
        return _decision_finding(entry, link, material)
    kind = KIND_OF.get(row.entry_type)
    if row.request is not None or row.confidence is not None:
        fault: str | None = f"It is of type {row.entry_type}, and has a request or a confidence, which only decisions have."
    elif row.entry_type == ERASURE:
        fault = _erasure_fault(entry, link, material)
    elif kind is None:
        fault = f"No entry is of type {row.entry_type!r}."
    else:
        fault = _report_fault(entry, link, material, kind)
    if fault is not None:
        return _entry_tampered(row, fault)
    if row.position in material.searchable:
        what = f"The table decisions has a row for position {row.position}, and no decision is there."
        return beside(row.position, what, row.position, table=decisions.name)
    return _claim_finding(entry, material) or (_latest_finding(entry, material) if kind is OUTCOMES else None)


def _decision_finding(entry: Entry, link: Link, material: Material) -> Finding | None:
    row = entry.row
    confidence = None if row.confidence is None else read_stored(row.confidence, "confidence")[0]
    record = whole_record(entry.document, confidence, link)
    cited = record.get("policy_hash")
    registration = material.registrations.get(cited) if isinstance(cited, str) else None
    request, plain = _whole_request(entry, registration)
    fault = _record_fault(entry, record, request, material, plain=plain) or _erased_fault(record, request, material)
    if fault is not None:
        return _entry_tampered(row, fault)
    if row.entry_id != record["decision_id"] or not is_link_of(link, record):
        return _entry_tampered(row, "The link is not that of the stored record.")
    return (
        _registration_finding(row, record, registration)
        or _claim_finding(entry, material)
        or _search_finding(row, record, material)
    )


def _whole_request(entry: Entry, registration: Registration | None) -> tuple[Any, bool]:
    """The request of a decision as it was sent, and whether it and the record are plain. An inline rulebook is kept
    once, with its registration.
    """
    if entry.request is None or "rulebook_ref" in entry.request:
        return entry.request, entry.plain
    if registration is None:
        return {**entry.request, "rulebook": None}, entry.plain
    return {**entry.request, "rulebook": registration.body}, entry.plain and registration.plain


def _record_fault(entry: Entry, record: Record, request: Any, material: Material, *, plain: bool) -> str | None:
    result = verify_record(record, material.trust, request_body=request, plain=plain)
    if not result.checks.get("members"):
        return f"The stored record does not hold. {result.message}"
    if added := _added(entry, record):
        return (
            f"The stored record has fields that no hash covers, and that no record has there: {', '.join(added)}. They "
            f"were added after it was made."
        )
    failed = [name for name, holds in result.checks.items() if holds is False]
    if set(failed) <= set(AUTHENTICITY):
        # The state of a key is no matter of the chain; that it made the signature is.
        failed = [name for name in failed if name == "receipt_signature" and name in record]
        if result.checks["attestation_signature"] is not True and not _attested(record, material.trust):
            failed.append("attestation_signature")
    return f"The stored record does not hold; these checks fail: {', '.join(failed)}." if failed else None


def _added(entry: Entry, record: Record) -> list[str]:
    """The fields of a stored decision that its hashes do not cover, but for those that stand outside by design."""
    kept_elsewhere = sorted(_KEPT_ELSEWHERE & entry.document.keys())
    of_request = sorted(_NOT_STORED & entry.request.keys()) if entry.request is not None else []
    return [*uncovered_members(record), *kept_elsewhere, *(f"request.{name}" for name in of_request)]


# Columns of their own, from which they are added to a record when it is shown.
_KEPT_ELSEWHERE: Final = {"audit_chain", "decision_confidence", "confidence_hash"}
# The view is no part of the request, and the rulebook is kept with its registration.
_NOT_STORED: Final = {"response_view", "rulebook"}


def _attested(record: Record, trust: Trust) -> bool:
    attestation = record["rulebook_attestation"]
    key_id, signature = attestation["signature"]["key_id"], attestation["signature"]["signature"]
    return key_id is None or signature_holds(trust, key_id, f"{ED25519}:{signature}", attestation["bundle_hash"])


def _erased_fault(record: Record, request: Any, material: Material) -> str | None:
    """An erasure of the chain and what is missing of a decision have to be the same."""
    said = "erased" in record
    if said and not is_confirmed(record, material.erasures.get(record["decision_id"])):
        return "The record says that it was erased, and the chain has no such erasure."
    if (request is None) != ("input" in erased_members(record)):
        return (
            "Its request is there, though it was erased."
            if said
            else "Its request is missing, and no erasure of it is in the chain."
        )
    return None


def _registration_finding(row: AuditedEntry, record: Record, registration: Registration | None) -> Finding | None:
    policy = f"{record['policy_id']} {record['policy_version']}"
    if registration is None:
        fault: str | None = f"The table rulebooks lacks the rulebook {policy}, which decided at position {row.position}."
    elif registration.fault is not None:
        fault = registration.fault
    elif record["rulebook_registry"] != registration.metadata:
        fault = (
            f"The table rulebooks has another registration of the rulebook {registration.name} than the record at "
            f"position {row.position} cites."
        )
    else:
        return None
    return tampered(row.position, fault, policy, table=rulebooks.name)


def _erasure_fault(entry: Entry, link: Link, material: Material) -> str | None:
    erasure = entry.document
    if set(erasure) != ERASURE_MEMBERS or erasure["erasure_hash"] != erasure_hash(erasure):
        return "The stored erasure does not hold: its erasure_hash is not that of its fields."
    decision = material.decisions.get(erasure["decision_id"])
    if decision is None or decision.position >= entry.row.position:
        return _NOT_BEFORE
    record = cast("Record", decision.record)
    if entry.row.entry_id != erasure["erasure_id"] or not _is_link(link, erasure_link(erasure, record)):
        return "The link is not that of the stored erasure."
    left = decision.has_request and "input" in erasure["erased"]
    if left or not is_confirmed(record, erasure):
        return "It says that its decision was erased, and the decision says otherwise, or still has what was erased."
    return None


def _report_fault(entry: Entry, link: Link, material: Material, kind: Kind) -> str | None:
    report, row = entry.document, entry.row
    if "audit_chain" in report:
        return f"The stored {kind.name} has a field that its hash does not cover: audit_chain. It was added later."
    if row.entry_id != report[kind.id_member] or not _is_link(link, report_link(kind, report)):
        return f"The link is not that of the stored {kind.name}."
    decision = material.decisions.get(report["decision_id"])
    if decision is None or decision.position >= row.position:
        return _NOT_BEFORE
    linked = {**report, "audit_chain": chain.record_link(link)}
    wrong = _wrong_members(kind, linked, cast("ReportedOn", decision.record), plain=entry.plain)
    if not wrong:
        return None
    if kind.hash_member in wrong:
        return f"The stored {kind.name} does not hold: its {kind.hash_member} is not that of its fields."
    if added := [name for name in uncovered_members_of(kind, linked) if name in wrong]:
        return (
            f"The stored {kind.name} has fields that its hash does not cover: {', '.join(added)}. They were added after "
            f"it was made."
        )
    return f"The stored {kind.name} does not agree with its decision, or with itself, in {', '.join(wrong)}."


def _wrong_members(kind: Kind, report: Mapping[str, object], record: ReportedOn, *, plain: bool) -> list[str]:
    """The members of a report that are not what its decision's record, or its other members, make them."""
    if kind is CRM_SYNCS:
        expected = {"decision_protocol_version": PROTOCOL, kind.version_member: kind.version}
        expected |= {kind.hash_member: report_hash(kind, report, plain=plain)}
        expected |= {name: text(record, of_record) for name, of_record in kind.must_match.items()}
        added = uncovered_members_of(kind, report)
        return [name for name, value in expected.items() if report.get(name) != value] + added
    if unknown := unknown_members(kind, report):
        return sorted(unknown)
    faults = member_faults(kind, report, kind.name)
    faults = faults or [*report_faults(kind, cast("Report", report), record, kind.name, plain=plain)]
    return [fault.place.removeprefix(f"{kind.name}.") for fault in faults]


def _claim_finding(entry: Entry, material: Material) -> Finding | None:
    row, claim, digest = entry.row, entry.claim, entry.digest
    if claim is None or digest is None:
        return None
    found = material.claims.get(digest)
    if found is not None and (found.position, found.input_hash) == (row.position, claim.input_hash):
        return None
    stands = "has none" if found is None else f"lets it stand for position {found.position}, or for another payload"
    return beside(
        row.position,
        f"Its idempotency key is not claimed by it: the table claims {stands}, and a retry would be answered with "
        f"another record, or anew.",
        digest.hex(),
        table=claims.name,
    )


def _search_finding(row: AuditedEntry, record: Record, material: Material) -> Finding | None:
    expected = {
        "scope_id": material.scope_id,
        "position": row.position,
        "verdict": record["verdict"],
        "policy_id": record["policy_id"],
        "policy_version": record["policy_version"].encode(),
        "reason_code": record["reason_code"],
        "target_object_id": record["action_binding"]["resource"][:SEARCHABLE].encode(),
        "created_at": record["created_at"],
    }
    if material.searchable.get(row.position) == expected:
        return None
    what = "The table decisions does not say of it what its record says, so that searches go wrong."
    return beside(row.position, what, row.position, table=decisions.name)


def _latest_finding(entry: Entry, material: Material) -> Finding | None:
    position, outcome = entry.row.position, entry.document
    decision_id = outcome["decision_id"]
    found, decision = material.latest.get(decision_id), material.decisions[decision_id]
    # Only the last outcome of a decision has a row; an earlier one is passed over.
    if found is not None and isinstance(found["position"], int) and found["position"] > position:
        return None
    record = cast("About", decision).record
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
    what = "The table latest_outcomes does not have it as the latest outcome of its decision."
    return beside(position, what, decision_id, table=latest_outcomes.name)


def _is_link(link: Mapping[str, object], material: chain.Entry) -> bool:
    return all(link[name] == getattr(material, name) for name in material.__slots__)


def _entry_tampered(row: AuditedEntry, what: str) -> Finding:
    return tampered(row.position, what, row.entry_id)


def _misshapen(row: AuditedEntry) -> str:
    return f"The stored {row.entry_type} lacks fields that every one has, or they have a type that none has."


_NOT_BEFORE: Final = "It is about a decision that is not before it in the chain."
