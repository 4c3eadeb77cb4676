"""Verifies one execution receipt or outcome by comparing it with its record.

A report's hash omits empty fields. Fields that the protocol omits must therefore not be present as empty values:
somebody could add them without changing the hash.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, NotRequired, TypedDict, cast

from gate.encoding.canonical import compact, content_hash, is_empty
from gate.labels import CHAIN, PROTOCOL
from gate.proof import chain
from gate.records.reports.receipts import (
    ACTION_TAKEN_MISMATCH,
    CRM_SYNCS,
    EXECUTIONS,
    OUTCOMES,
    REPEATED,
    Kind,
    flags,
    names_decided_target,
    report_hash,
    text,
)
from gate.verify.faults import Fault, differing, is_same

if TYPE_CHECKING:
    from gate.encoding.strict_json import JsonObject
    from gate.records.documents import Report


class ReportedOn(TypedDict):
    """The fields of a readable record that its reports are compared with."""

    decision_id: str
    record_hash: str
    receipt_hash: str
    verdict: str
    action: str
    policy_id: str
    policy_version: str
    policy_bundle_hash: str
    action_binding: JsonObject
    evaluator_version: str
    audit_chain: NotRequired[JsonObject]


_Types = Mapping[str, type | tuple[type, ...]]

_NULLABLE: Final = (str, type(None))
_COMMON: Final[_Types] = {
    "decision_protocol_version": str,
    "decision_id": str,
    "decision_record_hash": str,
    "decision_receipt_hash": str,
    "decision_verdict": str,
    "decision_action": str,
    "policy_id": str,
    "policy_version": str,
    "policy_bundle_hash": str,
    "action_binding": dict,
    "decision_found": bool,
    "reported_at": str,
    "audit_chain": dict,
}
_COMMON_OPTIONAL: Final[_Types] = {
    "idempotency_key": str,
    "action_taken": str,
    "target_system": str,
    "target_object_id": str,
    "mutation": str,
    "external_ref": str,
    "evidence_refs": list,
    "executed_at": str,
}

REQUIRED: Final[Mapping[str, _Types]] = {
    EXECUTIONS.name: {
        **_COMMON,
        "decision_execution_version": str,
        "execution_receipt_id": str,
        "execution_status": str,
        "execution_input_hash": str,
        "execution_hash": str,
        "action_binding_hash": str,
        "action_binding_match": bool,
        "state_before_hash": _NULLABLE,
        "state_after_hash": _NULLABLE,
        "flags": list,
    },
    OUTCOMES.name: {
        **_COMMON,
        "decision_outcome_version": str,
        "outcome_id": str,
        "outcome_status": str,
        "outcome_input_hash": str,
        "outcome_hash": str,
    },
}
"""The fields of every stored report of a kind, with their JSON types."""

OPTIONAL: Final[Mapping[str, _Types]] = {
    EXECUTIONS.name: {
        **_COMMON_OPTIONAL,
        "execution_result": str,
        "execution_id": str,
        "executor": dict,
        "state_before_ref": str,
        "state_after_ref": str,
    },
    OUTCOMES.name: {**_COMMON_OPTIONAL, "action_executed": bool, "observed_metrics": dict},
}
"""The optional fields of a stored report of a kind, with their JSON types."""

UNBOUND: Final[Mapping[str, frozenset[str]]] = {
    EXECUTIONS.name: frozenset(),
    OUTCOMES.name: frozenset({"occurred_at"}),
    CRM_SYNCS.name: frozenset(),
}
"""The optional fields of a report that only the hash of its request covers.

Without that request, nobody can tell whether they were changed.
"""

# Empty by design, or covered completely by something else than the report's hash.
_MAY_BE_EMPTY: Final = ("action_binding", "state_before_hash", "state_after_hash", "flags", "audit_chain")


def unknown_members(kind: Kind, report: object) -> set[str]:
    """The fields of a report that this release does not know, and that nothing authenticates."""
    known = REQUIRED[kind.name].keys() | OPTIONAL[kind.name].keys() | UNBOUND[kind.name]
    return report.keys() - known if isinstance(report, dict) else set()


def uncovered_members(kind: Kind, report: Mapping[str, object]) -> list[str]:
    """The fields of a stored report that somebody added: no hash covers them, and they follow from no other field.

    Empty fields are among them if the protocol omits them, because a report's hash omits empty fields. Fields in
    `UNBOUND` are not among them. The report may also be a CRM sync.

    Args:
        kind: The kind of the report.
        report: The report, as it is stored or shown.

    Returns:
        Their names, sorted.
    """
    known = {*kind.hashed, kind.hash_member, "audit_chain", *UNBOUND.get(kind.name, ()), *kind.beside}
    return sorted(name for name, value in report.items() if name not in known or not has_no_empty_part(name, value))


def member_faults(kind: Kind, report: object, place: str) -> list[Fault]:
    """The fields of a report that are missing, of the wrong type, or wrongly empty. If there are none, other checks
    can read it.
    """
    if not isinstance(report, dict):
        return [Fault(place)]
    required, optional = REQUIRED[kind.name], OPTIONAL[kind.name]
    wrong = [name for name in required if name not in report]
    for name, value in report.items():
        type_ = required.get(name) or optional.get(name)
        if type_ is not None and not (isinstance(value, type_) and has_no_empty_part(name, value)):
            wrong.append(name)
    faults = [Fault(f"{place}.{name}") for name in wrong]
    if "audit_chain" not in wrong and not _is_summary(cast("JsonObject", report["audit_chain"])):
        faults.append(Fault(f"{place}.audit_chain.members"))
    return faults


def has_no_empty_part(name: str, value: object) -> bool:
    """Whether a report's field has no empty part that the report's hash omits, unless that is by design.

    Args:
        name: The field's name.
        value: Its value.
    """
    if name in _MAY_BE_EMPTY or type(value) is str:
        return bool(value) or not isinstance(value, str)
    return not is_empty(value) and (not isinstance(value, dict | list) or compact(value) == value)


def _is_summary(link: JsonObject) -> bool:
    return (
        set(link) == set(chain.RECORD_LINK_MEMBERS)
        and type(link["chain_position"]) is int
        and all(isinstance(link[name], str) for name in link if name != "chain_position")
    )


def report_faults(
    kind: Kind, report: Report, record: ReportedOn, place: str, *, plain: bool = False, granted_at: int | None = None
) -> Iterator[Fault]:
    """The faults of a report that has the right fields and types.

    Args:
        kind: The kind of the report.
        report: The report.
        record: The record that it is about.
        place: The place of the report in the document.
        plain: Whether the report is known to be plain, as `canonical.is_plain` defines it.
        granted_at: The chain position at which the owner granted the held action, or None.
    """
    members: Mapping[str, object] = report
    of_decision: Mapping[str, object] = record
    expected = {
        "decision_protocol_version": PROTOCOL,
        kind.version_member: kind.version,
        kind.hash_member: report_hash(kind, report, plain=plain),
        "decision_id": record["decision_id"],
        "policy_bundle_hash": record["policy_bundle_hash"],
        **{name: of_decision[of_record] for name, of_record in REPEATED.items()},
    }
    for name, value in expected.items():
        yield from differing(f"{place}.{name}", value, members[name], plain=plain)
    if not members["decision_found"]:
        yield Fault(f"{place}.decision_found", True, False, compared=True)
    if kind is EXECUTIONS:
        yield from _binding_faults(members, record, place, granted=follows(report, granted_at))
    else:
        yield from differing(
            f"{place}.action_binding", record["action_binding"], members["action_binding"], plain=plain
        )
    yield from _summary_faults(kind, report, record, place)


def _binding_faults(receipt: Mapping[str, object], record: ReportedOn, place: str, *, granted: bool) -> Iterator[Fault]:
    binding = content_hash(receipt["action_binding"])
    yield from differing(f"{place}.action_binding_hash", binding, receipt["action_binding_hash"])
    if not is_same(record["action_binding"], receipt["action_binding"]):
        yield from differing(f"{place}.action_binding_match", False, receipt["action_binding_match"])
    elif names_decided_target(receipt, record["action_binding"]):
        yield from differing(f"{place}.action_binding_match", True, receipt["action_binding_match"])
    # Otherwise it depends on whether some of the binding was sent, which the receipt does not show; or an earlier
    # release made it, which kept the decision's own binding next to another target.
    if not lacks_action_flag(receipt, record, granted=granted):
        yield from differing(f"{place}.flags", flags(receipt, record, granted=granted), receipt["flags"])


def follows(receipt: Report, granted_at: int | None) -> bool:
    """Whether a receipt follows a grant in the chain, which approves it."""
    return granted_at is not None and receipt["audit_chain"]["chain_position"] > granted_at


def lacks_action_flag(receipt: Mapping[str, object], record: ReportedOn, *, granted: bool = False) -> bool:
    """Whether a receipt lacks only the flag `ACTION_TAKEN_MISMATCH` that follows from its fields.

    Receipts of earlier releases lack it. Somebody may also have removed the flag, because it is not hashed.

    Args:
        receipt: The receipt, with the right fields and types.
        record: The record that it is about.
        granted: Whether the owner granted the held action at an earlier chain position.
    """
    derived = flags(receipt, record, granted=granted)
    return ACTION_TAKEN_MISMATCH in derived and is_same(
        [flag for flag in derived if flag != ACTION_TAKEN_MISMATCH], receipt["flags"]
    )


def _summary_faults(kind: Kind, report: Report, record: ReportedOn, place: str) -> Iterator[Fault]:
    link = report["audit_chain"]
    leaf_hash = chain.leaf(kind.entry_type, report["decision_id"], text(report, kind.hash_member), None)
    expected: dict[str, object] = {
        "decision_chain_version": CHAIN,
        "entry_type": kind.entry_type,
        "leaf_hash": leaf_hash,
    }
    of_record = record.get("audit_chain")
    if isinstance(of_record, dict):
        expected["chain_id"] = of_record.get("chain_id")
        position = of_record.get("chain_position")
        if type(position) is int and link["chain_position"] <= position:
            yield Fault(f"{place}.audit_chain.chain_position")
    members: Mapping[str, object] = link
    for name, value in expected.items():
        yield from differing(f"{place}.audit_chain.{name}", value, members[name])
