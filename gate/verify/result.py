"""What a verifier trusts, and the result of a verification."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final, NotRequired, TypedDict

from gate.encoding.canonical import canonical
from gate.proof.signing import KeyRegistry

MAX_UNKNOWN: Final = 50
"""How many unknown fields a result lists at most."""

_SHOWN: Final = 160


@dataclass(frozen=True, slots=True)
class Trust:
    """The keys that a verifier trusts.

    Attributes:
        receipt_keys: The receipt keys by id, with their states.
        public_key: A single trusted receipt key (PEM). It applies to every key id in a record.
        hmac_secret: The secret for receipts with the algorithm `hmac-sha256`.
        hmac_key_id: The key id of the secret. None: it applies to every key id in a record.
        attestation_keys: The registry keys by id, for the attestations inside a record.
        source: The `key_source` of a result that one of these keys verified: `server`, `registry`, `public_key` or
            `hmac_secret`.
    """

    receipt_keys: KeyRegistry | None = None
    public_key: str | None = None
    hmac_secret: bytes | None = None
    hmac_key_id: str | None = None
    attestation_keys: KeyRegistry | None = None
    source: str = "none"


class VerificationResult(TypedDict):
    """The result of a verification as services and commands return it.

    `ok` always equals `verified`. A result with an `error` is not verified; a result with a `notice` is.
    """

    ok: bool
    verified: bool
    integrity_valid: bool
    authenticity_valid: bool
    key_source: str
    checks: dict[str, bool | None]
    expected: dict[str, object]
    actual: dict[str, object]
    unknown_members: NotRequired[list[str]]
    error: NotRequired[str]
    notice: NotRequired[str]
    message: NotRequired[str | None]


@dataclass(slots=True)
class Verification:
    """The result of a verification.

    Attributes:
        checks: The result of each check by name: True if it holds, False if it fails, None if it was skipped.
        expected: The expected value of each failed comparison.
        actual: The actual value of each failed comparison.
        integrity_valid: Whether the record is unchanged since it was hashed.
        authenticity_valid: Whether a trusted key signed it.
        key_source: The source of the key: `server`, `registry`, `public_key`, `hmac_secret`, `request` or `none`.
        error: The code if the record is not verified, or the code of a notice, such as `MATERIAL_ERASED`; otherwise
            None.
        message: A sentence about the code.
        unknown: The paths of fields that this release does not know, at most `MAX_UNKNOWN`.
        plain: Whether all compared values are known to be plain, as `canonical.is_plain` defines it.
    """

    checks: dict[str, bool | None] = field(default_factory=dict)
    expected: dict[str, object] = field(default_factory=dict)
    actual: dict[str, object] = field(default_factory=dict)
    integrity_valid: bool = False
    authenticity_valid: bool = False
    key_source: str = "none"
    error: str | None = None
    message: str | None = None
    unknown: list[str] = field(default_factory=list)
    plain: bool = field(default=False, repr=False, compare=False)

    @property
    def verified(self) -> bool:
        """Whether integrity and authenticity both hold."""
        return self.integrity_valid and self.authenticity_valid

    def to_dict(self) -> VerificationResult:
        """Returns the result as a JSON object."""
        result: VerificationResult = {
            "ok": self.verified,
            "verified": self.verified,
            "integrity_valid": self.integrity_valid,
            "authenticity_valid": self.authenticity_valid,
            "key_source": self.key_source,
            "checks": self.checks,
            "expected": self.expected,
            "actual": self.actual,
        }
        if self.unknown:
            result["unknown_members"] = self.unknown
        if self.error is not None:
            result["notice" if self.verified else "error"] = self.error
            result["message"] = self.message
        return result

    def require(self, name: str, holds: bool | None) -> None:
        """Adds the result of the caller's own check, which the record must pass to be verified."""
        self.checks[name] = holds
        if holds is False:
            self.integrity_valid = False
            self.error, self.message = "RECORD_MISMATCH", f"The record is not the requested one; {name} does not hold."

    def note_unknown(self, check: str, place: str, names: Collection[str]) -> None:
        """Adds a check that lists the unknown fields of an object.

        Unknown fields never fail, because later versions of the protocol may add fields. The check becomes None.
        """
        if names or check not in self.checks:
            self.checks[check] = None if names else True
        for name in sorted(names):
            if len(self.unknown) == MAX_UNKNOWN:
                break
            shown = name if len(name) <= _SHOWN else f"{name[:_SHOWN]}..."
            self.unknown.append(f"{place}.{shown}" if place else shown)

    def compare(self, name: str, expected: object, actual: object) -> None:
        """Adds a check that two JSON values are equal."""
        same = _same_text(expected, actual) or (
            canonical(expected, plain=self.plain) == canonical(actual, plain=self.plain)
        )
        self.checks[name] = same
        if not same:
            self.expected[name] = expected
            self.actual[name] = actual


def _same_text(one: object, other: object) -> bool:
    """Whether two values are the same ASCII text, so that no canonical bytes are needed to compare them."""
    return type(one) is str and type(other) is str and one == other and one.isascii()
