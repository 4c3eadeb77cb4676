"""The three views of a stored record: minimal, standard, and full.

A view omits fields, but never changes them. Only the full view can be verified.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from gate.records.envelope import erased_members

_MINIMAL: Final = (
    "decision_record_version",
    "decision_id",
    "request_id",
    "idempotency_key",
    "c",
    "v",
    "verdict",
    "application_verdict",
    "reason_code",
    "matched_rule_id",
    "action",
    "rulebook",
    "evaluator_version",
    "decision_contract",
    "policy_hash",
    "policy_bundle_hash",
    "record_hash",
    "receipt_hash",
    "receipt_key_id",
    "receipt_signature",
    "receipt_signature_algorithm",
    "receipt_public_key_fingerprint",
    "decision_confidence",
    "confidence_hash",
    "erased",
    "verify_url",
    "decision_url",
    "replay_url",
    "audit_chain",
)

_STANDARD: Final = (
    *_MINIMAL,
    "evidence",
    "policy_id",
    "policy_version",
    "source_hash",
    "policy_bundle",
    "action_binding",
    "rulebook_contract",
    "runtime_binding",
    "rulebook_registry",
    "registry_attestation",
    "rulebook_attestation",
    "trusted_adapter",
    "adapter_facts",
    "input_hash",
    "output_hash",
    "created_at",
)

_MEMBERS: Final = {"minimal": frozenset(_MINIMAL), "standard": frozenset(_STANDARD)}


def project(record: Mapping[str, object], view: str) -> dict[str, object]:
    """The record in a view, with its fields in their order.

    Args:
        record: The full record.
        view: `minimal`, `standard` or `full`.
    """
    if view == "full":
        return dict(record)
    shown = _MEMBERS[view]
    if gone := erased_members(record):
        shown -= gone
    return {name: record[name] for name in filter(shown.__contains__, record)}
