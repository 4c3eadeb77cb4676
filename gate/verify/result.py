"""What a verifier trusts, and what it found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from gate.canonical import canonical
from gate.signing import KeyRegistry


@dataclass(frozen=True, slots=True)
class Trust:
    """What a verifier trusts.

    Attributes:
        receipt_keys: Receipt keys by id, with their states.
        public_key: A single trusted receipt key (PEM), for whatever key_id a record names.
        hmac_secret: The secret of hmac-sha256 receipts.
        hmac_key_id: The key_id that the secret goes by; None for whatever key_id a record names.
        attestation_keys: Registry keys by id, for the attestations inside a record.
        source: What to report as `key_source` when one of these verified: server, registry, public_key, hmac_secret.
    """

    receipt_keys: KeyRegistry | None = None
    public_key: str | None = None
    hmac_secret: bytes | None = None
    hmac_key_id: str | None = None
    attestation_keys: KeyRegistry | None = None
    source: str = "none"


@dataclass(slots=True)
class Verification:
    """What verification found.

    Attributes:
        checks: Each check by name: True it holds, False it does not, None it could not be made for want of material.
        expected: For each failed comparison, what it should be.
        actual: For each failed comparison, what the record says.
        integrity_valid: Nothing was changed since the record was hashed.
        authenticity_valid: A trusted key signed it.
        key_source: Where the key came from: server, registry, public_key, hmac_secret, request, or none.
        error: A code where the record is not verified; MATERIAL_ERASED also where it is, but for what was erased.
        message: The same as a sentence.
    """

    checks: dict[str, bool | None] = field(default_factory=dict)
    expected: dict[str, Any] = field(default_factory=dict)
    actual: dict[str, Any] = field(default_factory=dict)
    integrity_valid: bool = False
    authenticity_valid: bool = False
    key_source: str = "none"
    error: str | None = None
    message: str | None = None

    @property
    def verified(self) -> bool:
        """Integrity and authenticity both hold."""
        return self.integrity_valid and self.authenticity_valid

    def to_dict(self) -> dict[str, Any]:
        """{ok, verified, integrity_valid, authenticity_valid, key_source, checks, expected, actual, error?, notice?,
        message?}.

        `ok` equals `verified`, so that nobody who reads only the one is misled.
        """
        result = {
            "ok": self.verified,
            "verified": self.verified,
            "integrity_valid": self.integrity_valid,
            "authenticity_valid": self.authenticity_valid,
            "key_source": self.key_source,
            "checks": self.checks,
            "expected": self.expected,
            "actual": self.actual,
        }
        if self.error is not None:
            # An error is what keeps a record from being verified, and nothing else.
            result |= {"notice" if self.verified else "error": self.error, "message": self.message}
        return result

    def require(self, name: str, holds: bool | None) -> None:
        """Records a further check that a caller made, which the record must pass to be verified."""
        self.checks[name] = holds
        if holds is False:
            self.integrity_valid = False
            self.error, self.message = "RECORD_MISMATCH", f"The record is not the one asked for; {name} does not hold."

    def compare(self, name: str, expected: Any, actual: Any) -> None:
        """Records a check that two JSON values are the same value."""
        same = canonical(expected) == canonical(actual)
        self.checks[name] = same
        if not same:
            self.expected[name] = expected
            self.actual[name] = actual
