"""Checks that a record has the fields that verification reads: those of the full view, with their types.

A `Readable...` type describes only the checked parts of a document. Values of its nested objects stay `Json` values
until a check compares them.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Final, NotRequired, TypedDict, TypeGuard

from gate.encoding.strict_json import Json, JsonObject
from gate.labels import DECISION_CONTRACT
from gate.proof.chain import Link
from gate.records.advisory import BINDING_PARTS, is_advisory
from gate.records.documents import (
    AttestationSignature,
    ErasureNote,
    Integrity,
    IntegritySignature,
    RecordHashes,
    RecordTexts,
    Registration,
    RegistryAttestation,
    RulebookAttestation,
    RulebookContract,
    RuntimeBinding,
)
from gate.records.envelope import ERASABLE, erased_members
from gate.rulebooks.documents import AdapterDependency, RulebookReference, TrustedAdapter
from gate.verify.material import incomplete
from gate.verify.result import Verification


class ReadableManifest(TypedDict):
    """An `evidence_manifest` whose sources are a list."""

    sources: list[Json]


class ReadableBundle(TypedDict):
    """An attestation's bundle whose outcome is an object."""

    outcome: JsonObject
    input_hash: NotRequired[Json]


class ReadableAttestation(TypedDict):
    """A `rulebook_attestation` whose bundle and signature are objects."""

    bundle: ReadableBundle
    bundle_hash: NotRequired[Json]
    signature: JsonObject


class ReadableRegistry(TypedDict):
    """A `rulebook_registry` whose attestation is an object."""

    registry_attestation: JsonObject
    registered_at: NotRequired[Json]
    adapter_dependency: NotRequired[Json]


class ReadableRecord(RecordTexts, RecordHashes):
    """A record whose fields have the types of the full view.

    An advisory record has a `decision_contract` and none of the fields about a rulebook. Every other record has all of
    them.
    """

    decision_protocol_version: NotRequired[str]
    action_binding: JsonObject
    evidence: list[Json]
    evidence_manifest: ReadableManifest
    evaluation: JsonObject | None
    policy_bundle: JsonObject
    decision_contract: NotRequired[JsonObject]
    rulebook: NotRequired[JsonObject]
    rulebook_contract: NotRequired[JsonObject]
    runtime_binding: NotRequired[JsonObject]
    rulebook_registry: NotRequired[ReadableRegistry]
    registry_attestation: NotRequired[JsonObject]
    rulebook_attestation: NotRequired[ReadableAttestation]
    trusted_adapter: NotRequired[JsonObject]
    adapter_facts: NotRequired[JsonObject | None]
    integrity: JsonObject
    audit_chain: NotRequired[JsonObject]
    decision_confidence: NotRequired[JsonObject]
    erased: NotRequired[JsonObject]


class ReadablePacket(TypedDict):
    """A packet whose fields have the right types."""

    packet_hash: str
    decision_packet_version: str
    decision_id: str
    record_hash: str
    receipt_hash: str
    decision_record: JsonObject
    execution_receipts: list[Json]
    outcome_records: list[Json]
    resolution: NotRequired[JsonObject]
    policy_intelligence: NotRequired[JsonObject]
    audit_chain: NotRequired[JsonObject]
    input: NotRequired[Json]
    exported_at: str


class ReadableChain(TypedDict):
    """The `audit_chain` of a packet whose links all have the fields of a link."""

    chain_id: str
    chain_size: int
    merkle_root: str
    retained_links: list[Link]
    verification_hints: JsonObject


FULL_RECORD: Final[Mapping[str, type | tuple[type, ...]]] = {
    "decision_record_version": str,
    "decision_id": str,
    "request_id": str,
    "c": str,
    "v": str,
    "verdict": str,
    "application_verdict": str,
    "reason_code": str,
    "matched_rule_id": (str, type(None)),
    "action": str,
    "action_binding": dict,
    "evidence": list,
    "evidence_manifest": dict,
    "evaluation": dict,
    "policy_id": str,
    "policy_version": str,
    "policy_hash": str,
    "source_hash": str,
    "policy_bundle": dict,
    "policy_bundle_hash": str,
    "rulebook": dict,
    "rulebook_contract": dict,
    "evaluator_version": str,
    "runtime_binding": dict,
    "rulebook_registry": dict,
    "registry_attestation": dict,
    "rulebook_attestation": dict,
    "input_hash": str,
    "output_hash": str,
    "record_hash": str,
    "receipt_hash": str,
    "replay_url": str,
    "verify_url": str,
    "decision_url": str,
    "integrity": dict,
    "created_at": str,
}
"""The fields of every full record of a binding decision, with their JSON types."""

ADVISORY_RECORD: Final[Mapping[str, type | tuple[type, ...]]] = {
    **{name: kind for name, kind in FULL_RECORD.items() if name not in BINDING_PARTS},
    "decision_contract": dict,
}
"""The fields of every full advisory record, with their JSON types."""


OPTIONAL_MEMBERS: Final[Mapping[str, type | tuple[type, ...]]] = {
    "decision_protocol_version": str,
    "idempotency_key": str,
    "trusted_adapter": dict,
    "adapter_facts": dict,
    "decision_confidence": dict,
    "confidence_hash": str,
    "receipt_key_id": str,
    "receipt_signature": str,
    "receipt_signature_algorithm": str,
    "receipt_public_key_fingerprint": (str, type(None)),
    "audit_chain": dict,
    "erased": dict,
}
"""The optional fields of a full record, with their JSON types."""


_TYPES: Final = {**FULL_RECORD, **OPTIONAL_MEMBERS, **ADVISORY_RECORD}

_NESTED: Final[Mapping[tuple[str, ...], type]] = {
    ("evidence_manifest", "sources"): list,
    ("rulebook_attestation", "bundle"): dict,
    ("rulebook_attestation", "bundle", "outcome"): dict,
    ("rulebook_attestation", "signature"): dict,
    ("rulebook_registry", "registry_attestation"): dict,
}


def check_members(record: object, result: Verification) -> TypeGuard[ReadableRecord]:
    """Whether other checks can read the record: it has all fields of the full view, with their types, and all nested
    fields that the checks read.
    """
    if not isinstance(record, dict):
        result.checks["members"] = False
        result.error, result.message = (
            "RECORD_INVALID",
            "The record is not a JSON object; export it again in full.",
        )
        return False
    advisory = is_advisory(record)
    missing = sorted(name for name in (ADVISORY_RECORD if advisory else FULL_RECORD) if name not in record)
    known = _TYPES
    gone = {name for name in erased_members(record) if record.get(name, "") is None}
    mistyped = [
        name for name in record if name in known and name not in gone and not isinstance(record[name], known[name])
    ]
    mistyped += [
        ".".join(path)
        for path, type_ in _NESTED.items()
        if not (advisory and path[0] in BINDING_PARTS) and not isinstance(at(record, *path), type_)
    ]
    result.checks["members"] = not missing and not mistyped
    result.note_unknown("unknown_members", "", record.keys() - known.keys())
    if missing:
        result.error = "RECORD_INCOMPLETE"
        result.message = incomplete(record, missing, "Decision Record")
    elif mistyped:
        result.error = "RECORD_INVALID"
        result.message = f"These fields have the wrong type: {', '.join(mistyped)}."
    return not missing and not mistyped


def _names(document: type) -> frozenset[str]:
    """The names of the required and optional fields of a typed document."""
    return frozenset(document.__annotations__)


_KNOWN: Final = frozenset(FULL_RECORD) | frozenset(OPTIONAL_MEMBERS)
_KNOWN_ADVISORY: Final = frozenset(ADVISORY_RECORD) | frozenset(OPTIONAL_MEMBERS) - frozenset(BINDING_PARTS)

# The objects that are not hashed field by field: they are derived, or record_hash omits their empty fields.
_CLOSED: Final[Mapping[tuple[str, ...], frozenset[str]]] = {
    ("rulebook",): _names(RulebookReference),
    ("rulebook_contract",): _names(RulebookContract),
    ("runtime_binding",): _names(RuntimeBinding),
    ("rulebook_registry",): _names(Registration),
    ("rulebook_registry", "registry_attestation"): _names(RegistryAttestation),
    ("rulebook_registry", "adapter_dependency"): _names(AdapterDependency),
    ("registry_attestation",): _names(RegistryAttestation),
    ("rulebook_attestation",): _names(RulebookAttestation),
    ("rulebook_attestation", "signature"): _names(AttestationSignature),
    ("trusted_adapter",): _names(TrustedAdapter),
    ("integrity",): _names(Integrity),
    ("integrity", "signature"): _names(IntegritySignature),
    ("erased",): _names(ErasureNote),
}


def uncovered_members(record: Mapping[str, object]) -> list[str]:
    """The fields of a stored record that somebody added: no hash covers them, and they follow from no other field.

    `verify_record` checks the known fields. `decision_confidence` and `audit_chain`, which the signature does not
    cover, and `erased` count as known.

    Args:
        record: The record, as it is stored or shown.

    Returns:
        Their dotted paths, sorted.
    """
    inside = (
        f"{'.'.join(path)}.{name}"
        for path, known in _CLOSED.items()
        if isinstance(value := at(record, *path), dict)
        for name in value.keys() - known
    )
    if not is_advisory(record):
        return sorted(chain(record.keys() - _KNOWN, inside))
    # No hash covers the contract. It is the same in every advisory record, and every view has it.
    contract = [] if record.get("decision_contract") == DECISION_CONTRACT else ["decision_contract"]
    return sorted({*(record.keys() - _KNOWN_ADVISORY), *inside, *contract})


def is_erasure_note(record: ReadableRecord) -> bool:
    """Whether a record's note of its erasure is well-formed, and exactly the fields that it lists are null."""
    note, gone = record["erased"], [name for name in ERASABLE if name in erased_members(record)]
    return (
        set(note) == {"erasure_id", "erased_at", "members"}
        and all(isinstance(note[name], str) and note[name] for name in ("erasure_id", "erased_at"))
        and bool(gone)
        and note["members"] == gone
        and all(record.get(name) is None for name in gone)
    )


def receipt_members_agree(record: Mapping[str, object]) -> bool:
    """Whether a record has all four receipt fields, or none of them."""
    names = (
        "receipt_key_id",
        "receipt_signature",
        "receipt_signature_algorithm",
        "receipt_public_key_fingerprint",
    )
    present = [name in record for name in names]
    return all(present) or not any(present)


def at(value: object, *names: str) -> object:
    """The value at a path of names, or None if there is none."""
    for name in names:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value
