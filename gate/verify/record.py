"""Verification of one record, check by check."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, cast

from gate.encoding.canonical import compact, content_hash, is_plain
from gate.errors import MaterialRefused
from gate.labels import (
    ADAPTER_AUTHORITY,
    ADVISORY_EVALUATOR,
    BINDING_ADAPTER,
    CHAIN,
    DECISION_CONTRACT,
    EVALUATOR,
    PROTOCOL,
    RECORD,
)
from gate.proof.chain import RECORD_LINK_MEMBERS, leaf
from gate.records.advisory import (
    ADVISORY_ACTION,
    ADVISORY_VERDICT,
    ANSWER_SOURCE,
    BINDING_PARTS,
    advised,
    advised_by_code,
    advisory_evidence,
    advisory_sources,
    is_advisory,
    policy_of,
)
from gate.records.envelope import (
    ERASABLE,
    adapter_source,
    compact_verdict,
    decision_url,
    envelope,
    erased_members,
    evidence_codes,
    input_material,
    integrity,
    output_material,
    receipt_material,
)
from gate.rulebooks.facts import dependency_of
from gate.verify.attestations import check_attestations
from gate.verify.members import ReadableRecord, at, check_members, is_erasure_note, receipt_members_agree
from gate.verify.receipt import check_receipt
from gate.verify.result import Trust, Verification

if TYPE_CHECKING:
    from gate.rulebooks.documents import TrustedAdapter


def verify_record(
    record: object,
    trust: Trust,
    *,
    request_body: object = None,
    untrusted_key: str | None = None,
    plain: bool = False,
) -> Verification:
    """Verifies an exported full record.

    Args:
        record: The parsed record, with its integers as such (`canonical.with_integers`).
        trust: What the verifier trusts.
        request_body: The original Decision Request. If you pass it, its hashes are checked too.
        untrusted_key: A PEM key that came with the record. It helps to find the cause if no trusted key is known, and
            never makes a record verified.
        plain: Whether record and request are known to be plain, as `canonical.is_plain` defines it, except for
            `decision_confidence`.

    Returns:
        The result. No content of a record raises an exception.
    """
    result = Verification()
    readable: ReadableRecord | None = None
    try:
        if check_members(record, result):
            readable = record
            # Looked through once: every hash and comparison below is of the record's parts, but for the request's. The
            # score of decision_confidence is often 0.0 or 1.0, and nothing but its own hash is made over it.
            result.plain = plain or is_plain([value for name, value in record.items() if name != _CONFIDENCE])
            _check_hashes(result, readable)
            _check_repeated(result, readable)
            if is_advisory(readable):
                _check_advice(result, readable)
                _check_request(result, readable, request_body, plain=plain)
            else:
                _check_derived(result, readable)
                check_attestations(result, readable, trust)
                _check_input(result, readable, request_body, plain=plain)
            _check_erasure(result, readable)
            _check_outside_signature(result, readable)
            check_receipt(result, readable, trust, untrusted_key)
    except MaterialRefused as error:
        result.checks["material"] = False
        result.error, result.message = error.code, error.message
    failed = [name for name, holds in result.checks.items() if holds is False]
    changed = not set(failed) <= set(AUTHENTICITY)
    result.integrity_valid = not changed and result.checks.get("record_hash") is not None
    result.authenticity_valid = (
        result.checks.get("receipt_signature") is True
        and result.checks.get("receipt_key") is True
        and not [name for name in failed if name in AUTHENTICITY]
        and (readable is None or _vouched_for(result, readable))
    )
    if failed and (result.error is None or (changed and result.error not in _UNREADABLE)):
        result.error, result.message = _verdict_on(failed)
    if readable is None:
        return result
    if request_body is not None and result.authenticity_valid and _is_another_input(result, readable, failed):
        result.error, result.message = "INPUT_MISMATCH", _ANOTHER_INPUT
    if result.error is None and "erased" in result.checks:
        result.error, result.message = "MATERIAL_ERASED", _erased_message(readable)
    return result


def _vouched_for(result: Verification, record: ReadableRecord) -> bool:
    """Whether a signature covers the source of the facts.

    The receipt's signature covers it by `record_hash`. If the facts were erased, nobody can recompute that hash, and
    the signatures of both attestations must cover it.
    """
    if "adapter_facts" not in erased_members(record):
        return True
    signatures = ("attestation_signature", "registry_attestation_signature")
    return all(result.checks.get(name) is True for name in signatures)


def _erased_message(record: ReadableRecord) -> str:
    erased = erased_members(record)
    named = ", ".join(name for name in ERASABLE if name in erased)
    if "adapter_facts" in erased:
        return (
            f"The record says that these fields were erased: {named}. Without adapter_facts, record_hash cannot be "
            f"recomputed: the signature covers its original value, and the attestations cover the decision, its facts "
            f"and its rulebook. Nothing shows whether {', '.join(_ONLY_BY_RECORD_HASH)} were changed."
        )
    return f"The record says that these fields were erased: {named}. The rest of the record is as it was signed."


# The fields of the envelope that neither the receipt nor an attestation repeats.
_ONLY_BY_RECORD_HASH: Final = ("request_id", "idempotency_key", "created_at", "rulebook_contract")

AUTHENTICITY: Final = (
    "receipt_signature",
    "receipt_key",
    "attestation_signature",
    "registry_attestation_signature",
)


_CONFIDENCE: Final = "decision_confidence"

_ANOTHER_INPUT: Final = (
    "The record is intact, but it was made from a different request; give the original Decision Request, or none."
)

# Unreadable parts are reported as such; otherwise a change weighs more than an unknown key.
_UNREADABLE: Final = ("RECORD_INVALID", "RECORD_INCOMPLETE", "SVC_API_JSON_INVALID", "PUBLIC_KEY_INVALID")


def _verdict_on(failed: list[str]) -> tuple[str, str]:
    named = ", ".join(failed)
    if all(name in AUTHENTICITY for name in failed):
        return "RECORD_SIGNATURE_INVALID", f"The record is not authentic; these checks fail: {named}."
    return "RECORD_INTEGRITY_FAILED", f"The record was changed after it was made; these checks fail: {named}."


def _is_another_input(result: Verification, record: ReadableRecord, failed: list[str]) -> bool:
    """Whether the only fault is that the record was made from a request other than the given one."""
    of_input = {"input_hash", "adapter_input_hash", "facts_hash", "rulebook_hash"}
    if _is_by_adapter(record):
        # These are the record's own, not the request's.
        of_input.remove("facts_hash")
    return "input_hash" in failed and set(failed) <= of_input and result.checks["record_hash"] is True


def _check_hashes(result: Verification, record: ReadableRecord) -> None:
    erased, hash_of = erased_members(record), partial(content_hash, plain=result.plain)
    if "adapter_facts" in erased:
        result.checks["record_hash"] = None
    else:
        result.compare("record_hash", hash_of(envelope(record)), record["record_hash"])
    result.compare("receipt_hash", hash_of(receipt_material(record, plain=result.plain)), record["receipt_hash"])
    result.compare("policy_bundle_hash", hash_of(record["policy_bundle"]), record["policy_bundle_hash"])
    status = None if is_advisory(record) else record["rulebook_attestation"]["bundle"]["outcome"].get("status")
    result.compare("output_hash", hash_of(output_material(record, status)), record["output_hash"])
    if "evaluation" in erased:
        result.checks["evaluation"] = None
        return
    bound = [source for source in record["evidence_manifest"]["sources"] if at(source, "id") == "evaluation"]
    result.compare(
        "evaluation",
        hash_of(record["evaluation"]),
        at(bound[0], "snapshot_hash") if len(bound) == 1 else None,
    )


def _check_repeated(result: Verification, record: ReadableRecord) -> None:
    """Derives the fields again that repeat other fields in every record, and compares them."""
    hash_, url = record["policy_hash"], decision_url(record["decision_id"])
    derived: dict[str, tuple[object, object]] = {
        "decision_record_version": (RECORD, record["decision_record_version"]),
        "decision_protocol_version": (PROTOCOL, record.get("decision_protocol_version", PROTOCOL)),
        "c": (compact_verdict(record["verdict"]), record["c"]),
        "evidence_manifest.codes": (record["evidence"], at(record, "evidence_manifest", "codes")),
        "source_hash": (hash_, record["source_hash"]),
        "policy_bundle": (
            [record["policy_id"], record["policy_version"], hash_],
            [at(record, "policy_bundle", name) for name in ("id", "version", "hash")],
        ),
        "urls": (
            [url, f"{url}/replay", f"{url}/verify"],
            [record["decision_url"], record["replay_url"], record["verify_url"]],
        ),
        "integrity": (integrity(record) if receipt_members_agree(record) else None, record["integrity"]),
    }
    for name, (expected, actual) in derived.items():
        result.compare(name, expected, actual)
    result.checks["verdict"] = record["verdict"] in ("yes", "no", "review")
    # The envelope hashes "" like an absent key, and a record without a key must omit the field.
    result.checks["idempotency_key"] = record.get("idempotency_key") != ""


def _check_advice(result: Verification, record: ReadableRecord) -> None:
    """Derives the fields again that an advisory record repeats from its upstream's answer, and compares them."""
    result.compare("decision_contract", DECISION_CONTRACT, record.get("decision_contract"))
    # The envelope drops empty fields, so an empty one would not change record_hash.
    result.checks["binding_members"] = not any(name in record for name in BINDING_PARTS)
    sources, evaluation = record["evidence_manifest"]["sources"], record["evaluation"]
    hashes = {str(at(source, "id")): at(source, "snapshot_hash") for source in sources}
    answer_hash = hashes.get(ANSWER_SOURCE)
    if "evaluation" in erased_members(record):
        said = advised_by_code(record["policy_id"], record["reason_code"])
    else:
        mode, answer = at(evaluation, "mode"), at(evaluation, "answer")
        said = advised(mode, answer) if record["policy_id"] == policy_of(str(mode)) else None
        answer_hash = content_hash(answer, plain=result.plain)
    policy = {"id": record["policy_id"], "version": record["policy_version"], "hash": record["policy_hash"]}
    derived: dict[str, tuple[object, object]] = {
        "evaluator_version": (ADVISORY_EVALUATOR, record["evaluator_version"]),
        "evidence": (advisory_evidence(record["reason_code"], answer_hash), record["evidence"]),
        "evidence_manifest.sources": (advisory_sources(policy, hashes.get("evaluation"), answer_hash), sources),
        "advice": (None if said is None else [*said, *_SAID.values()], [record.get(name) for name in _SAYS]),
    }
    for name, (expected, actual) in derived.items():
        result.compare(name, expected, actual)


_SAID: Final = {"application_verdict": ADVISORY_VERDICT, "action": ADVISORY_ACTION, "matched_rule_id": None}
_SAYS: Final = ("verdict", "v", "reason_code", *_SAID)


def _check_derived(result: Verification, record: ReadableRecord) -> None:
    """Derives the fields again that the record of a binding decision repeats from its rulebook, and compares them."""
    status = record["rulebook_attestation"]["bundle"]["outcome"].get("status")
    hash_ = record["policy_hash"]
    derived: dict[str, tuple[object, object]] = {
        "evaluator_version": (EVALUATOR, record["evaluator_version"]),
        "v": (record["application_verdict"], record["v"]),
        "evidence": (
            evidence_codes(record["reason_code"], record["matched_rule_id"], status),
            record["evidence"],
        ),
        "rulebook": (
            [record["policy_id"], record["policy_version"], hash_],
            [at(record, "rulebook", name) for name in ("id", "version", "hash")],
        ),
        "rulebook_registry": (
            [record["policy_id"], record["policy_version"], hash_, record["evaluator_version"]],
            [at(record, "rulebook_registry", name) for name in ("rulebook_id", "version", "hash", "evaluator_version")],
        ),
        # The envelope drops empty fields, so adding one here would not change record_hash.
        "rulebook_contract": (compact(record["rulebook_contract"]), record["rulebook_contract"]),
        "registry_attestation": (
            record["rulebook_registry"].get("registry_attestation"),
            record["registry_attestation"],
        ),
    }
    for name, (expected, actual) in derived.items():
        result.compare(name, expected, actual)
    result.checks["trusted_adapter"] = _adapter_holds(record)
    # Only advisory records have a decision contract, and no advisory record has a rulebook.
    result.checks["decision_contract"] = "decision_contract" not in record


def _adapter_holds(record: ReadableRecord) -> bool:
    """Whether a record states the same adapter everywhere, or none anywhere."""
    named = record.get("trusted_adapter")
    sources = record["evidence_manifest"]["sources"]
    of_adapter = [source for source in sources if at(source, "type") == "adapter"]
    dependency = record["rulebook_registry"].get("adapter_dependency")
    binding = record["runtime_binding"]
    if named is None:
        told = binding.get("binding_mode") == BINDING_ADAPTER or "adapter_authority" in binding
        return not told and not of_adapter and dependency is None
    return (
        binding.get("binding_mode") == BINDING_ADAPTER
        and binding.get("adapter_authority") == ADAPTER_AUTHORITY
        and of_adapter == [adapter_source(cast("TrustedAdapter", named))]
        and dependency == dependency_of(named)
        and named.get("output_hash") == record["rulebook_attestation"]["bundle"].get("input_hash")
        and "adapter_facts" in record
    )


def _check_input(result: Verification, record: ReadableRecord, request_body: object, *, plain: bool) -> None:
    facts_hash = record["rulebook_attestation"]["bundle"].get("input_hash")
    binding_mode = record["runtime_binding"].get("binding_mode")
    if binding_mode == BINDING_ADAPTER:
        result.checks["adapter_input_hash"] = None
        if "adapter_facts" in erased_members(record):
            result.checks["facts_hash"] = None
        else:
            facts = record.get("adapter_facts", {})
            result.compare("facts_hash", content_hash(facts, plain=result.plain), facts_hash)
    else:
        result.checks["facts_hash"] = None
        result.checks["adapter_facts"] = "adapter_facts" not in record and "trusted_adapter" not in record
    result.checks["rulebook_hash"] = None
    _check_request(result, record, request_body, plain=plain)
    if request_body is None:
        return
    if binding_mode == BINDING_ADAPTER:
        given = at(request_body, "adapter", "input")
        result.compare(
            "adapter_input_hash", content_hash(given, plain=plain), at(record, "trusted_adapter", "input_hash")
        )
    else:
        inputs = at(request_body, "context", "inputs")
        result.compare("facts_hash", content_hash({} if inputs is None else inputs, plain=plain), facts_hash)
    rulebook = at(request_body, "rulebook")
    if rulebook is not None:
        result.compare("rulebook_hash", content_hash(rulebook, plain=plain), record["policy_hash"])


def _check_request(result: Verification, record: ReadableRecord, request_body: object, *, plain: bool) -> None:
    result.checks["input_hash"] = None
    if request_body is not None:
        result.compare("input_hash", content_hash(input_material(request_body), plain=plain), record["input_hash"])


def _is_by_adapter(record: ReadableRecord) -> bool:
    """Whether a record says that an adapter computed its facts."""
    return not is_advisory(record) and record["runtime_binding"].get("binding_mode") == BINDING_ADAPTER


def _check_erasure(result: Verification, record: ReadableRecord) -> None:
    """Checks a record's note of its erasure, as far as a record alone allows; only the chain can confirm it."""
    if "erased" in record:
        by_adapter = _is_by_adapter(record)
        # What was never there cannot have been erased.
        result.checks["erased"] = is_erasure_note(record) and ("adapter_facts" in erased_members(record)) == by_adapter
        result.checks["erasure"] = None


def _check_outside_signature(result: Verification, record: ReadableRecord) -> None:
    confidence = record.get(_CONFIDENCE)
    if confidence is not None:
        expected = content_hash({name: value for name, value in confidence.items() if name != "confidence_hash"})
        said = [confidence.get("confidence_hash"), record.get("confidence_hash")]
        result.compare("confidence_hash", [expected, expected], said)
    elif "confidence_hash" in record:
        result.checks["confidence_hash"] = False
    audit_chain = record.get("audit_chain")
    if audit_chain is not None:
        leaf_hash = leaf("decision", record["decision_id"], record["record_hash"], record["receipt_hash"])
        link = {"decision_chain_version": CHAIN, "entry_type": "decision", "leaf_hash": leaf_hash}
        result.compare("audit_chain.leaf_hash", link, {name: audit_chain.get(name) for name in link})
        result.note_unknown("unknown_members", "audit_chain", audit_chain.keys() - set(RECORD_LINK_MEMBERS))
