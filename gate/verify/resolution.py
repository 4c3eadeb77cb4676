"""Verifies the resolution of a held decision by comparing it with its record.

    result = verify_resolution(resolution, record, trust)
    result.verified       # its fields agree with the record, its hash is right, and a trusted key signed it

It does not check the time. To see whether a grant is still valid, compare `expires_at` with your own clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, TypeGuard, cast

from gate.encoding.canonical import content_hash, is_empty
from gate.errors import MaterialRefused
from gate.ids import parse_timestamp
from gate.labels import CHAIN, PROTOCOL, RESOLUTION
from gate.proof import chain
from gate.records.advisory import is_advisory
from gate.records.changes import ACTOR_TYPES
from gate.records.reports.receipts import report_hash
from gate.records.reports.resolution import ANSWERS, GRANTED, RESOLUTIONS, signed_payload
from gate.verify.faults import Fault, differing
from gate.verify.result import Trust, Verification
from gate.verify.signature import Judgement, Signed, judge

if TYPE_CHECKING:
    from gate.encoding.strict_json import JsonObject
    from gate.records.documents import Resolution
    from gate.verify.reports import ReportedOn

REQUIRED: Final[Mapping[str, type]] = {
    "decision_protocol_version": str,
    "decision_resolution_version": str,
    "resolution_entry_id": str,
    "decision_id": str,
    "decision_record_hash": str,
    "decision_receipt_hash": str,
    "action_binding_hash": str,
    "resolution": str,
    "actor": dict,
    "recorded_at": str,
    "resolution_hash": str,
}
"""The fields of every resolution, with their JSON types."""

OPTIONAL: Final[Mapping[str, type]] = {
    "resolved_by": str,
    "evidence_refs": list,
    "note": str,
    "idempotency_key": str,
    "resolution_input_hash": str,
    "expires_at": str,
    "key_id": str,
    "signature": str,
    "audit_chain": dict,
}
"""The optional fields of a resolution, with their JSON types."""


class _Words(NamedTuple):
    code: str
    message: str


_FOREIGN: Final = _Words(
    "RESOLUTION_FOREIGN",
    "The resolution is about a different decision; fetch the resolution of this record's decision.",
)
_UNSIGNED: Final = _Words("RESOLUTION_UNSIGNED", "The resolution has no signature.")


def verify_resolution(
    resolution: object, record: ReportedOn, trust: Trust, *, untrusted_key: str | None = None
) -> Verification:
    """Verifies a resolution.

    Args:
        resolution: The parsed resolution, with its integers as such (`canonical.with_integers`).
        record: The record of its decision, which you must verify separately.
        trust: What the verifier trusts.
        untrusted_key: A PEM key that came with the resolution. It helps to find the cause if no trusted key is known.

    Returns:
        The result. No content of a resolution raises an exception.
    """
    result = Verification()
    try:
        if not is_resolution(resolution):
            result.checks["members"] = False
            result.error = "RESOLUTION_INVALID"
            result.message = "This is not a resolution: fields are missing, empty, or of the wrong type."
            return result
        result.checks["members"] = True
        result.note_unknown("unknown_members", "", resolution.keys() - REQUIRED.keys() - OPTIONAL.keys())
        for name, expected, actual in _comparisons(resolution, record):
            result.compare(name, expected, actual)
        result.checks["held"] = record["verdict"] == "review" and not is_advisory(record)
        _check_signature(result, resolution, trust, untrusted_key)
    except MaterialRefused as error:
        result.checks["material"] = False
        result.error, result.message = error.code, error.message
    signed = ("signature", "key")
    failed = [name for name, holds in result.checks.items() if holds is False and name not in signed]
    result.integrity_valid = not failed and result.checks["signature"] is not False
    result.authenticity_valid = bool(result.checks["signature"] and result.checks["key"])
    if failed and set(failed) <= {*_CITED, "held"}:
        result.error, result.message = _FOREIGN
    elif failed and result.error != "PUBLIC_KEY_INVALID":
        result.error = "RESOLUTION_INTEGRITY_FAILED"
        result.message = f"The resolution was changed after it was made; these checks fail: {', '.join(failed)}."
    elif result.checks["signature"] is False and result.error is None:
        result.error = "RESOLUTION_SIGNATURE_INVALID"
        result.message = "The signature is not the key's signature of this resolution."
    return result


def resolution_faults(resolution: JsonObject, record: ReportedOn, place: str) -> Iterator[Fault]:
    """The faults of a resolution that has the right fields and types, without its signature.

    Args:
        resolution: A resolution for which `is_resolution` holds.
        record: The record of its decision.
        place: The place of the resolution in the document.
    """
    for name, expected, actual in _comparisons(cast("Resolution", resolution), record):
        yield from differing(f"{place}.{name}", expected, actual)
    if record["verdict"] != "review" or is_advisory(record):
        yield Fault(f"{place}.held")


def judge_resolution(resolution: Resolution, trust: Trust, untrusted_key: str | None) -> Judgement | None:
    """Judges the signature of a resolution, or returns None if it has none.

    Raises:
        MaterialRefused: `PUBLIC_KEY_INVALID`, or it has no canonical JSON.
    """
    if "signature" not in resolution or "key_id" not in resolution:
        return None
    key_id, signature = resolution["key_id"], resolution["signature"]
    signed = Signed(
        "resolution",
        key_id,
        signature.partition(":")[0],
        signature,
        signed_payload(resolution, key_id),
        resolution["recorded_at"],
    )
    return judge(signed, trust, untrusted_key)


def is_resolution(document: object) -> TypeGuard[Resolution]:
    """Whether a JSON value has the fields of a resolution, with their types, valid times, and no empty fields."""
    if not isinstance(document, dict) or any(name not in document for name in REQUIRED):
        return False
    for name, type_ in (*REQUIRED.items(), *OPTIONAL.items()):
        if name in document and (not isinstance(document[name], type_) or is_empty(document[name])):
            return False
    return (
        document["resolution"] in ANSWERS
        and _is_actor(document["actor"])
        and all(isinstance(each, str) and each for each in document.get("evidence_refs", ()))
        and all(_is_time(document[name]) for name in ("recorded_at", "expires_at") if name in document)
        # A grant without an end would permit the action forever.
        and (document["resolution"] != GRANTED or "expires_at" in document)
        and ("signature" in document) == ("key_id" in document)
    )


_CITED: Final = ("decision_id", "decision_record_hash", "decision_receipt_hash", "action_binding_hash")


def _comparisons(resolution: Resolution, record: ReportedOn) -> Iterator[tuple[str, object, object]]:
    """The name of each check, the expected value, and the value in the resolution."""
    members: Mapping[str, object] = resolution
    expected: dict[str, object] = {
        "decision_protocol_version": PROTOCOL,
        "decision_resolution_version": RESOLUTION,
        "resolution_hash": report_hash(RESOLUTIONS, members),
        "decision_id": record["decision_id"],
        "decision_record_hash": record["record_hash"],
        "decision_receipt_hash": record["receipt_hash"],
        "action_binding_hash": content_hash(record["action_binding"]),
    }
    yield from ((name, value, members[name]) for name, value in expected.items())
    link = resolution.get("audit_chain")
    if link is not None:
        told: Mapping[str, object] = link
        leaf = chain.leaf(RESOLUTIONS.entry_type, resolution["decision_id"], resolution["resolution_hash"], None)
        of_link: dict[str, object] = {
            "decision_chain_version": CHAIN,
            "entry_type": RESOLUTIONS.entry_type,
            "leaf_hash": leaf,
        }
        yield from ((f"audit_chain.{name}", value, told.get(name)) for name, value in of_link.items())


def _check_signature(result: Verification, resolution: Resolution, trust: Trust, untrusted_key: str | None) -> None:
    found = judge_resolution(resolution, trust, untrusted_key)
    if found is None:
        result.checks["signature"], result.checks["key"] = False, None
        result.error, result.message = _UNSIGNED
        return
    result.checks["signature"], result.checks["key"] = found.holds, found.trusted
    result.key_source = found.key_source
    if found.error is not None:
        result.error, result.message = found.error, found.message


def _is_actor(actor: Mapping[str, object]) -> bool:
    return actor.keys() == {"type", "id"} and actor["type"] in ACTOR_TYPES and isinstance(actor["id"], str)


def _is_time(text: object) -> bool:
    try:
        parse_timestamp(cast("str", text))
    except ValueError:
        return False
    return True
