"""Checks the receipt's signature, and whether its key is trusted for it."""

from __future__ import annotations

from typing import Final

from gate.proof.signing import ED25519, HMAC_SHA256, fingerprint
from gate.records.documents import Signable
from gate.records.envelope import receipt_payload
from gate.verify.members import receipt_members_agree
from gate.verify.result import Trust, Verification
from gate.verify.signature import Judgement, Signed, judge


def check_receipt(result: Verification, record: Signable, trust: Trust, untrusted_key: str | None) -> None:
    """Checks the receipt's signature (`receipt_signature`), and whether its key is trusted for it (`receipt_key`)."""
    result.checks["receipt_signature"] = None
    result.checks["receipt_key"] = None
    if not receipt_members_agree(record):
        result.checks["receipt_members"] = False
        return
    if "receipt_signature" not in record:
        result.checks["receipt_signature"] = False
        result.error, result.message = "RECORD_UNSIGNED", "The record has no receipt signature."
        return
    algorithm, signature = record["receipt_signature_algorithm"], record["receipt_signature"]
    if algorithm in (ED25519, HMAC_SHA256):
        key_id = record["receipt_key_id"]
        signed = Signed("record", key_id, algorithm, signature, receipt_payload(record, key_id), record["created_at"])
        _check_signed(result, record, signed, trust, untrusted_key)
    else:
        result.checks["receipt_signature"] = False
        result.error = "RECORD_SIGNATURE_INVALID"
        result.message = f"The signature algorithm {algorithm!r} is not one of ed25519 and hmac-sha256."
    result.checks["receipt_signature_scheme"] = signature.startswith(f"{algorithm}:")


_ANOTHER_KEY: Final = (
    "The record has the fingerprint of a different key from the given one; verify with the publisher's key registry."
)


def _is_of_another_key(record: Signable, found: Judgement) -> bool:
    given = None if found.public_key is None else fingerprint(found.public_key)
    return found.holds is False and given not in (None, record["receipt_public_key_fingerprint"])


def _check_signed(
    result: Verification, record: Signable, signed: Signed, trust: Trust, untrusted_key: str | None
) -> None:
    found = judge(signed, trust, untrusted_key)
    by_id = trust.receipt_keys is not None and trust.receipt_keys.find(signed.key_id) is not None
    if not by_id and _is_of_another_key(record, found):
        # A key without an id may be any key: that it is not the record's key says nothing about the record.
        found = Judgement(None, False, error="SIGNING_KEY_UNKNOWN", message=_ANOTHER_KEY)
    result.checks["receipt_signature"], result.checks["receipt_key"] = found.holds, found.trusted
    result.key_source = found.key_source
    if found.error is not None:
        result.error, result.message = found.error, found.message
    if signed.algorithm == HMAC_SHA256:
        result.compare("receipt_public_key_fingerprint", None, record["receipt_public_key_fingerprint"])
    elif found.public_key is not None:
        expected = fingerprint(found.public_key)
        result.compare("receipt_public_key_fingerprint", expected, record["receipt_public_key_fingerprint"])
