"""The owner's resolution of a held decision: granted, refused or expired, once and for all.

    resolution = build_resolution(record, sent, "res_...", actor, ..., signer)
    resolution["resolution_hash"] == report_hash(RESOLUTIONS, resolution)

docs/wire-format.md, "Resolutions". The hash covers every member but itself, `key_id` and `signature`; the signature is
the receipt key's, over the decision, its record_hash and the resolution_hash. The decision's record never changes.
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
"""The actor of a resolution that the service made itself, when the time limit of a review was over."""

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
"""The members that a resolution's hash covers."""

SIGNED: Final = ("key_id", "signature")
"""The members of its signature, absent where receipt signing is off."""

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
    """What is resolved, and how.

    Attributes:
        answer: granted, refused or expired.
        actor: The authenticated key or user, or the service.
        recorded_at: UTC timestamp.
        expires_at: Until when a grant opens the action, or when the time limit of an expired review was over; None
            for a refusal.
        sent: The request body; None where the service itself resolves.
        idempotency_key: The caller's retry handle.
    """

    answer: Answer
    actor: Actor
    recorded_at: str
    expires_at: str | None = None
    sent: Mapping[str, object] | None = None
    idempotency_key: str | None = None


def build_resolution(record: Cited, resolving: Resolving, entry_id: str, signer: Signer | None) -> Resolution:
    """The resolution of a decision; all but `audit_chain`, which is known once it is appended.

    Args:
        record: The decision's record, or at least its members in `receipts.CITED`.
        resolving: What is resolved, and how.
        entry_id: The resolution's own id.
        signer: Signs it with the receipt key; None where receipt signing is off.

    Raises:
        RequestRefused: SVC_RESOLUTION_RECORD_MISMATCH: the body cites another record than the one that is stored.
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
    """The bytes that a resolution's signature is over."""
    return canonical(
        {
            "decision_id": resolution["decision_id"],
            "key_id": key_id,
            "record_hash": resolution["decision_record_hash"],
            "resolution_hash": resolution["resolution_hash"],
        }
    )


def resolution_link(resolution: Resolution, record: Cited) -> chain.Entry:
    """What the chain link of a resolution is made of."""
    return chain.Entry(
        entry_type=RESOLUTIONS.entry_type,
        decision_id=resolution["decision_id"],
        record_hash=resolution["resolution_hash"],
        receipt_hash=None,
        policy_id=record["policy_id"],
        policy_version=record["policy_version"],
        created_at=resolution["recorded_at"],
    )
