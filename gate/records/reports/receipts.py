"""The reports of callers after a decision: execution receipts, outcome records, and CRM sync records.

    receipt = build(EXECUTIONS, record, body, "exe_...", idempotency_key=None, reported_at="...")
    receipt["execution_hash"] == report_hash(EXECUTIONS, receipt)

The page `docs/reference/wire-format/reports.md` lists the hashed fields. Empty fields are not hashed, so a missing
field and an empty one result in the same hash. A report omits the fields that were not sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from gate.encoding.canonical import compact, content_hash
from gate.errors import FieldError, RequestRefused
from gate.ids import parse_timestamp, timestamp
from gate.labels import CRM_SYNC, EXECUTION, OUTCOME, PROTOCOL
from gate.proof import chain
from gate.records.advisory import is_advisory

if TYPE_CHECKING:
    from gate.records.documents import Cited, Report

NOT_APPROVED: Final = "DECISION_NOT_APPROVED"
"""The flag of a receipt whose decision was neither `yes` nor a granted review."""

BINDING_MISMATCH: Final = "ACTION_BINDING_MISMATCH"
"""The flag of a receipt with an action binding that differs from the decision's."""

ACTION_TAKEN_MISMATCH: Final = "ACTION_TAKEN_MISMATCH"
"""The flag of a receipt whose `action_taken` is neither the decision's action nor, after a grant, the proposed one."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of document that is recorded after a decision.

    Attributes:
        name: The last part of its path and headers, such as `execution`, `outcome` or `crm-sync`.
        called: Its name in a sentence, with an article.
        noun: Its name without an article.
        entry_type: The type of its chain entries.
        code: The part of its error codes: `SVC_<code>_...`
        version_member: The field with its version.
        version: The version.
        id_member: The field with its id.
        id_prefix: The prefix of its ids.
        status_member: The field with its status.
        hash_member: The field with its hash.
        input_hash_member: The field with H of the request body.
        collection: The name of a list of them.
        request: The schema of its request body.
        must_match: Fields of a request that must equal those of the record, each with its name in the record.
        hashed: The fields that its hash covers.
        beside: Other fields, which follow from these or sign them.
    """

    name: str
    called: str
    noun: str
    entry_type: str
    code: str
    version_member: str
    version: str
    id_member: str
    id_prefix: str
    status_member: str
    hash_member: str
    input_hash_member: str
    collection: str
    request: str
    must_match: Mapping[str, str]
    hashed: tuple[str, ...]
    beside: tuple[str, ...] = ()


DECISION_HASHES: Final = {"decision_record_hash": "record_hash", "decision_receipt_hash": "receipt_hash"}
"""The hashes of a decision's record that a request may cite, each with its name in the record."""

_POLICY: Final = {
    "decision_verdict": "verdict",
    "decision_action": "action",
    "policy_id": "policy_id",
    "policy_version": "policy_version",
}

EXECUTIONS: Final = Kind(
    name="execution",
    called="an execution receipt",
    noun="report",
    entry_type="execution",
    code="EXECUTION",
    version_member="decision_execution_version",
    version=EXECUTION,
    id_member="execution_receipt_id",
    id_prefix="exe",
    status_member="execution_status",
    hash_member="execution_hash",
    input_hash_member="execution_input_hash",
    collection="executions",
    request="execution-request",
    must_match=DECISION_HASHES,
    hashed=(
        "decision_protocol_version",
        "decision_execution_version",
        "execution_receipt_id",
        "decision_id",
        "idempotency_key",
        "execution_status",
        "execution_result",
        "action_taken",
        "target_system",
        "target_object_id",
        "mutation",
        "external_ref",
        "execution_id",
        "executor",
        "decision_record_hash",
        "decision_receipt_hash",
        "decision_verdict",
        "decision_action",
        "policy_id",
        "policy_version",
        "policy_bundle_hash",
        "action_binding",
        "action_binding_hash",
        "action_binding_match",
        "state_before_hash",
        "state_after_hash",
        "state_before_ref",
        "state_after_ref",
        "evidence_refs",
        "execution_input_hash",
        "executed_at",
        "reported_at",
        "decision_found",
    ),
    beside=("flags",),
)

OUTCOMES: Final = Kind(
    name="outcome",
    called="an outcome",
    noun="report",
    entry_type="outcome",
    code="OUTCOME",
    version_member="decision_outcome_version",
    version=OUTCOME,
    id_member="outcome_id",
    id_prefix="out",
    status_member="outcome_status",
    hash_member="outcome_hash",
    input_hash_member="outcome_input_hash",
    collection="outcomes",
    request="outcome-request",
    must_match=DECISION_HASHES,
    hashed=(
        "decision_protocol_version",
        "decision_outcome_version",
        "outcome_id",
        "decision_id",
        "idempotency_key",
        "outcome_status",
        "action_executed",
        "action_taken",
        "target_system",
        "target_object_id",
        "mutation",
        "external_ref",
        "decision_record_hash",
        "decision_receipt_hash",
        "decision_verdict",
        "decision_action",
        "policy_id",
        "policy_version",
        "policy_bundle_hash",
        "action_binding",
        "observed_metrics",
        "evidence_refs",
        "outcome_input_hash",
        "executed_at",
        "reported_at",
        "decision_found",
    ),
)

CRM_SYNCS: Final = Kind(
    name="crm-sync",
    called="a CRM sync",
    noun="report",
    entry_type="crm_sync",
    code="CRM_SYNC",
    version_member="decision_crm_sync_version",
    version=CRM_SYNC,
    id_member="sync_id",
    id_prefix="crm",
    status_member="sync_status",
    hash_member="sync_hash",
    input_hash_member="sync_input_hash",
    collection="crm_syncs",
    request="crm-sync-request",
    must_match=DECISION_HASHES | _POLICY,
    hashed=(
        "decision_protocol_version",
        "decision_crm_sync_version",
        "sync_id",
        "decision_id",
        "idempotency_key",
        "sync_status",
        "sync_direction",
        "crm_provider",
        "crm_object_type",
        "crm_object_id",
        "crm_record_url",
        "mapped_fields",
        "decision_record_hash",
        "decision_receipt_hash",
        "decision_verdict",
        "decision_action",
        "policy_id",
        "policy_version",
        "sync_input_hash",
        "reported_at",
    ),
)

KINDS: Final = (EXECUTIONS, OUTCOMES, CRM_SYNCS)

REPEATED: Final = {**DECISION_HASHES, **_POLICY}
"""The fields that every report repeats from its decision's record, each with its name in the record."""

CITED: Final = (
    "decision_id",
    "record_hash",
    "receipt_hash",
    "verdict",
    "action",
    "policy_id",
    "policy_version",
    "policy_bundle_hash",
    "action_binding",
    "evaluator_version",
)
"""The fields of a record that its reports repeat, and the field that shows whether it is advisory."""


def report_hash(kind: Kind, report: Mapping[str, object], *, plain: bool = False) -> str:
    """The correct value of a report's own hash. `plain` is as for `canonical`."""
    return content_hash(compact({name: report.get(name) for name in kind.hashed}), plain=plain)


def build(
    kind: Kind,
    record: Cited,
    body: Mapping[str, object],
    report_id: str,
    *,
    idempotency_key: str | None,
    reported_at: str,
    granted: bool = False,
) -> Report:
    """Builds a report from its request, without `audit_chain`, which is known after it is appended to the chain.

    Args:
        kind: The kind of the report.
        record: The decision's record, or at least its fields in `CITED`.
        body: The request body, as `report_request.check_request` returns it.
        report_id: The id of the report.
        idempotency_key: The caller's idempotency key, or None.
        reported_at: The UTC timestamp.
        granted: Whether the owner of a held decision granted it before.

    Raises:
        RequestRefused: `SVC_<kind>_RECORD_MISMATCH`: the body cites a record other than the stored one.
    """
    check_record(kind, record, body)
    by_name: Mapping[str, object] = record
    # The values from the record come after the sent ones, so that nothing sent replaces them.
    report: dict[str, object] = {
        "decision_protocol_version": PROTOCOL,
        kind.version_member: kind.version,
        kind.id_member: report_id,
        "decision_id": record["decision_id"],
        **body,
        **{name: by_name[of_record] for name, of_record in REPEATED.items()},
        kind.input_hash_member: content_hash(body),
        "reported_at": reported_at,
    }
    if idempotency_key is not None:
        report["idempotency_key"] = idempotency_key
    if "executed_at" in body:
        report["executed_at"] = timestamp(parse_timestamp(text(body, "executed_at")))
    if kind is not CRM_SYNCS:
        report |= {"policy_bundle_hash": record["policy_bundle_hash"], "decision_found": True}
        report["action_binding"] = record["action_binding"]
    if kind is EXECUTIONS:
        named = _named(body)
        binding = _overlaid(record["action_binding"], named)
        binding_hash = content_hash(binding)
        report |= {
            "action_binding": binding,
            "action_binding_hash": binding_hash,
            "action_binding_match": bool(named) and binding_hash == content_hash(record["action_binding"]),
            # Always present in responses.
            "state_before_hash": body.get("state_before_hash"),
            "state_after_hash": body.get("state_after_hash"),
        }
        report["flags"] = flags(report, record, granted=granted)
    report[kind.hash_member] = report_hash(kind, report)
    # It has every field of its kind: the body was checked with the kind's schema.
    return cast("Report", report)


def event_time_fault(outcome: Mapping[str, object], request: object | None) -> str | None:
    """A sentence about the `occurred_at` of a stored outcome if it differs from its request, otherwise None.

    The field needs this check because `outcome_hash` does not cover it.

    Args:
        outcome: The outcome.
        request: Its request body, or None if it is not stored. It is stored if the outcome has `occurred_at`.
    """
    told = outcome.get("occurred_at")
    if request is None:
        return None if "occurred_at" not in outcome else f"It says occurred_at {told!r}, but its request is not stored."
    if not isinstance(request, dict) or content_hash(request) != outcome["outcome_input_hash"]:
        return "Its outcome_input_hash is not that of its stored request."
    if told != request.get("occurred_at"):
        return f"It says occurred_at {told!r}, but its request says {request.get('occurred_at')!r}."
    return None


def text(report: Mapping[str, object], member: str) -> str:
    """A text field of a report, by the name that its kind has for it."""
    return cast("str", report[member])


_TARGET: Final = {"target_system": "system", "target_object_id": "resource", "mutation": "mutation"}


def _named(body: Mapping[str, object]) -> list[tuple[str, object]]:
    """The fields of an action binding in a request: those of its action_binding, and those of its target."""
    # An object by the request's schema.
    sent = cast("Mapping[str, object]", body.get("action_binding", {}))
    return [*sent.items(), *((of_binding, body[name]) for name, of_binding in _TARGET.items() if name in body)]


def _overlaid(decided: Mapping[str, object], named: Iterable[tuple[str, object]]) -> dict[str, object]:
    """The decision's action binding, with fields replaced by those of a request.

    A request can state a field twice, in action_binding and by the target. Then the value that differs from the
    decision's counts, so that no true value hides a false one.
    """
    differing = {
        name: value
        for name, value in named
        if name not in decided or content_hash(value) != content_hash(decided[name])
    }
    return {**decided, **differing}


def flags(receipt: Mapping[str, object], record: Mapping[str, object], *, granted: bool = False) -> list[str]:
    """The flags of an execution receipt. They follow from hashed fields, and are not hashed themselves.

    Args:
        receipt: The receipt.
        record: The record of its decision, or at least its `evaluator_version` and its `action_binding`.
        granted: Whether the owner granted the held action at an earlier chain position than the receipt's.
    """
    approving = ("yes", "review") if granted else ("yes",)
    # An advisory record approves nothing, and nobody can grant its review.
    found = [] if receipt["decision_verdict"] in approving and not is_advisory(record) else [NOT_APPROVED]
    decided = content_hash(record["action_binding"])
    named = bool(_TARGET.keys() & receipt.keys()) or content_hash(receipt["action_binding"]) != decided
    if named and not receipt["action_binding_match"]:
        found.append(BINDING_MISMATCH)
    if _is_another_action(receipt, record, granted=granted):
        found.append(ACTION_TAKEN_MISMATCH)
    return found


def says_executed(receipt: Mapping[str, object]) -> bool:
    """Whether an execution receipt says that an approved action was executed, so its grant permits nothing any more.

    A receipt about a different target does not count. A receipt about a different action counts: something was done to
    the target, and the action might then happen twice.
    """
    found = cast("Sequence[str]", receipt.get("flags", ()))
    return receipt.get("execution_status") == "executed" and not {NOT_APPROVED, BINDING_MISMATCH} & set(found)


def _is_another_action(receipt: Mapping[str, object], record: Mapping[str, object], *, granted: bool) -> bool:
    """Whether a receipt states an action other than the decided one.

    A grant is about the proposed action of the binding: the held decision's own action label, such as ask_the_desk, is
    what the rulebook did with the case. If the binding proposes nothing, there is no label to compare with.
    """
    taken = receipt.get("action_taken", receipt["decision_action"])
    if not granted or taken == receipt["decision_action"]:
        return taken != receipt["decision_action"]
    binding = cast("Mapping[str, object]", record["action_binding"])
    return bool(binding.get("proposed_action")) and taken != binding["proposed_action"]


def names_decided_target(receipt: Mapping[str, object], decided: Mapping[str, object]) -> bool:
    """Whether a receipt states some of the decision's target and nothing that differs from it.

    The fields are `target_system`, `target_object_id` and `mutation`.
    """
    told = [(receipt[name], decided.get(of_binding, "")) for name, of_binding in _TARGET.items() if name in receipt]
    return bool(told) and all(one == other for one, other in told)


def report_link(kind: Kind, report: Report) -> chain.Entry:
    """The material of a report's chain link."""
    return chain.Entry(
        entry_type=kind.entry_type,
        decision_id=report["decision_id"],
        record_hash=text(report, kind.hash_member),
        receipt_hash=None,
        policy_id=report["policy_id"],
        policy_version=report["policy_version"],
        created_at=report["reported_at"],
    )


def check_record(kind: Kind, record: Mapping[str, object], body: Mapping[str, object]) -> None:
    """Requires that a body cites no record other than the stored one.

    Raises:
        RequestRefused: `SVC_<kind>_RECORD_MISMATCH`.
    """
    errors = [
        FieldError(name, "mismatch", f"It is not the {of_record} of the stored record.")
        for name, of_record in kind.must_match.items()
        if name in body and body[name] != record[of_record]
    ]
    if errors:
        raise RequestRefused(
            f"SVC_{kind.code}_RECORD_MISMATCH",
            f"The {kind.noun} cites a record other than that of this decision; send the values of the stored record, "
            f"or leave them out.",
            errors,
        )
