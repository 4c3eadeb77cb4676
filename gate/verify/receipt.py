"""The receipt's signature, and whether its key is trusted for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gate.envelope import receipt_payload
from gate.signing import ED25519, HMAC_SHA256, fingerprint, verify_ed25519, verify_hmac
from gate.verify.members import receipt_members_agree
from gate.verify.result import Trust, Verification


def check_receipt(result: Verification, record: Mapping[str, Any], trust: Trust, untrusted_key: str | None) -> None:
    """Checks the receipt's signature: `receipt_signature` holds or not, `receipt_key` is trusted for it or not."""
    result.checks["receipt_signature"] = None
    result.checks["receipt_key"] = None
    if not receipt_members_agree(record):
        result.checks["receipt_members"] = False
        return
    if "receipt_signature" not in record:
        result.checks["receipt_signature"] = False
        result.error, result.message = "RECORD_UNSIGNED", "The record carries no receipt signature."
        return
    payload = receipt_payload(record, record["receipt_key_id"])
    algorithm, signature = record["receipt_signature_algorithm"], record["receipt_signature"]
    if algorithm == HMAC_SHA256:
        _check_hmac_receipt(result, record, trust, payload)
    elif algorithm == ED25519:
        _check_ed25519_receipt(result, record, trust, payload, untrusted_key)
    else:
        result.checks["receipt_signature"] = False
        result.error = "RECORD_SIGNATURE_INVALID"
        result.message = f"The signature algorithm {algorithm!r} is not one of ed25519 and hmac-sha256."
    result.checks["receipt_signature_scheme"] = signature.startswith(f"{algorithm}:")


def _check_hmac_receipt(result: Verification, record: Mapping[str, Any], trust: Trust, payload: bytes) -> None:
    result.compare("receipt_public_key_fingerprint", None, record["receipt_public_key_fingerprint"])
    if trust.hmac_secret is None or trust.hmac_key_id not in (None, record["receipt_key_id"]):
        _no_key(result, "The record is signed with HMAC; only the holder of that secret can verify it.")
        return
    result.key_source = trust.source
    result.checks["receipt_signature"] = verify_hmac(trust.hmac_secret, payload, record["receipt_signature"])
    result.checks["receipt_key"] = True


def _check_ed25519_receipt(
    result: Verification, record: Mapping[str, Any], trust: Trust, payload: bytes, untrusted_key: str | None
) -> None:
    key_id, signature = record["receipt_key_id"], record["receipt_signature"]
    known = trust.receipt_keys.find(key_id) if trust.receipt_keys is not None else None
    public_key = known.public_key if known is not None else trust.public_key
    if public_key is not None:
        result.key_source = trust.source
        result.checks["receipt_key"] = True
        objection = known.objection(record["created_at"]) if known is not None else None
        if objection is not None:
            result.checks["receipt_key"] = False
            result.error, result.message = "SIGNING_KEY_NOT_TRUSTED", objection
    elif untrusted_key is not None:
        public_key = untrusted_key
        result.key_source = "request"
        result.checks["receipt_key"] = False
        result.error = "SIGNING_KEY_NOT_TRUSTED"
        result.message = "The only key at hand came with the record; it shows integrity and proves no origin."
    else:
        given = trust.receipt_keys is not None
        why = f"is not in the key registry at hand: {key_id}" if given else "was not given"
        _no_key(result, f"The record's key {why}; verify against the publisher's key registry.")
        return
    result.checks["receipt_signature"] = verify_ed25519(public_key, payload, signature)
    expected = fingerprint(public_key)
    result.compare("receipt_public_key_fingerprint", expected, record["receipt_public_key_fingerprint"])


def _no_key(result: Verification, message: str) -> None:
    result.checks["receipt_key"] = False
    result.error, result.message = "SIGNING_KEY_UNKNOWN", message
