"""The owner's final resolution of a held decision: granted, refused, or expired.

    resolution = build_resolution(record, resolving, "res_...", signer)
    resolution["resolution_hash"] == report_hash(RESOLUTIONS, resolution)

The hash covers every field except itself, `key_id` and `signature`. The receipt key signs the decision's id, its
`record_hash` and the `resolution_hash`. The decision's record never changes. See "Resolutions" in
`docs/reference/wire-format/reports.md`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from gate.encoding.canonical import canonical, content_hash
from gate.labels import PROTOCOL, RESOLUTION
from gate.proof import chain
from gate.records.reports.receipts import DECISION_HASHES, Kind, check_record, report_hash

if TYPE_CHECKING:
    from gate.proof.signing import Signer
    from gate.records.changes import Actor
    from gate.records.documents import Answer, Cited, Resolution

GRANTED: Final = "granted"
REFUSED: Final = "refused"
EXPIRED: Final = "expired"
ANSWERS: Final[tuple[Answer, ...]] = (GRANTED, REFUSED, EXPIRED)

SERVICE: Final[Actor] = {"type": "service", "id": "gate"}
"""The actor of a resolution that the service made itself, after the time limit of a review."""

HASHED: Final = (
    "decision_protocol_version",
    "decision_resolution_version",
    "resolution_entry_id",
    "decision_id",
    "decision_record_hash",
    "decision_receipt_hash",
    "action_binding_hash",
    "resolution",
    "resolved_by",
    "evidence_refs",
    "note",
    "idempotency_key",
    "resolution_input_hash",
    "expires_at",
    "actor",
    "recorded_at",
)
"""The fields that a resolution's hash covers."""

SIGNED: Final = ("key_id", "signature")
"""The fields of its signature, which are absent if receipt signing is off."""

RESOLUTIONS: Final = Kind(
    name="resolution",
    called="a resolution",
    noun="resolution",
    entry_type="resolution",
    code="RESOLUTION",
    version_member="decision_resolution_version",
    version=RESOLUTION,
    id_member="resolution_entry_id",
    id_prefix="res",
    status_member="resolution",
    hash_member="resolution_hash",
    input_hash_member="resolution_input_hash",
    collection="resolutions",
    request="resolution-request",
    must_match=DECISION_HASHES,
    hashed=HASHED,
    beside=SIGNED,
)


@dataclass(frozen=True, slots=True)
class Resolving:
    """The content of a resolution.

    Attributes:
        answer: `granted`, `refused` or `expired`.
        actor: The authenticated key or user, or the service.
        recorded_at: The UTC timestamp.
        expires_at: The end of a grant, or the end of an expired review's time limit; None for a refusal.
        sent: The request body, or None if the service itself resolves.
        idempotency_key: The caller's idempotency key, or None.
    """

    answer: Answer
    actor: Actor
    recorded_at: str
    expires_at: str | None = None
    sent: Mapping[str, object] | None = None
    idempotency_key: str | None = None


def build_resolution(record: Cited, resolving: Resolving, entry_id: str, signer: Signer | None) -> Resolution:
    """Builds the resolution of a decision without `audit_chain`, which is known after it is appended to the chain.

    Args:
        record: The decision's record, or at least its fields in `receipts.CITED`.
        resolving: The content of the resolution.
        entry_id: The id of the resolution.
        signer: The receipt key, or None if receipt signing is off.

    Raises:
        RequestRefused: `SVC_RESOLUTION_RECORD_MISMATCH`: the body cites a record other than the stored one.
    """
    sent = resolving.sent or {}
    check_record(RESOLUTIONS, record, sent)
    made: dict[str, object] = {
        "decision_protocol_version": PROTOCOL,
        "decision_resolution_version": RESOLUTION,
        "resolution_entry_id": entry_id,
        "decision_id": record["decision_id"],
        "decision_record_hash": record["record_hash"],
        "decision_receipt_hash": record["receipt_hash"],
        "action_binding_hash": content_hash(record["action_binding"]),
        "resolution": resolving.answer,
        "resolved_by": sent.get("resolved_by"),
        "evidence_refs": sent.get("evidence"),
        "note": sent.get("note"),
        "idempotency_key": resolving.idempotency_key,
        "resolution_input_hash": None if resolving.sent is None else content_hash(resolving.sent),
        "expires_at": resolving.expires_at,
        "actor": dict(resolving.actor),
        "recorded_at": resolving.recorded_at,
    }
    made = {name: value for name, value in made.items() if value is not None}
    made["resolution_hash"] = report_hash(RESOLUTIONS, made)
    resolution = cast("Resolution", made)
    if signer is not None:
        resolution["key_id"] = signer.key_id
        resolution["signature"] = signer.sign(signed_payload(resolution, signer.key_id))
    return resolution


def signed_payload(resolution: Resolution, key_id: str) -> bytes:
    """The bytes that a resolution's signature covers."""
    return canonical(
        {
            "decision_id": resolution["decision_id"],
            "key_id": key_id,
            "record_hash": resolution["decision_record_hash"],
            "resolution_hash": resolution["resolution_hash"],
        }
    )


def resolution_link(resolution: Resolution, record: Cited) -> chain.Entry:
    """The material of a resolution's chain link."""
    return chain.Entry(
        entry_type=RESOLUTIONS.entry_type,
        decision_id=resolution["decision_id"],
        record_hash=resolution["resolution_hash"],
        receipt_hash=None,
        policy_id=record["policy_id"],
        policy_version=record["policy_version"],
        created_at=resolution["recorded_at"],
    )
