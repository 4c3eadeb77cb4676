"""What a verifier trusts, and what it found."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final, NotRequired, TypedDict

from gate.encoding.canonical import canonical
from gate.proof.signing import KeyRegistry

MAX_UNKNOWN: Final = 50
"""How many unknown members a result names."""

_SHOWN: Final = 160


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


class VerificationResult(TypedDict):
    """A verification as services and commands answer it.

    `ok` equals `verified`, so that nobody who reads only the one is misled. An error keeps a record from being
    verified; a notice does not.
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
        unknown: The members that this release does not know, by their place, at most `MAX_UNKNOWN` of them.
        plain: Whether all that is compared is known to be as `canonical.is_plain` has it.
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
        """Integrity and authenticity both hold."""
        return self.integrity_valid and self.authenticity_valid

    def to_dict(self) -> VerificationResult:
        """The result as a JSON object."""
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
        """Records a further check that a caller made, which the record must pass to be verified."""
        self.checks[name] = holds
        if holds is False:
            self.integrity_valid = False
            self.error, self.message = "RECORD_MISMATCH", f"The record is not the one asked for; {name} does not hold."

    def note_unknown(self, check: str, place: str, names: Collection[str]) -> None:
        """Records under a check the members of a place that this release does not know.

        Later versions of the protocol may add members, so that they fail nothing; and nothing here can vouch for them.
        """
        if names or check not in self.checks:
            self.checks[check] = None if names else True
        for name in sorted(names):
            if len(self.unknown) == MAX_UNKNOWN:
                break
            shown = name if len(name) <= _SHOWN else f"{name[:_SHOWN]}..."
            self.unknown.append(f"{place}.{shown}" if place else shown)

    def compare(self, name: str, expected: object, actual: object) -> None:
        """Records a check that two JSON values are the same value."""
        same = _same_text(expected, actual) or (
            canonical(expected, plain=self.plain) == canonical(actual, plain=self.plain)
        )
        self.checks[name] = same
        if not same:
            self.expected[name] = expected
            self.actual[name] = actual


def _same_text(one: object, other: object) -> bool:
    """Whether two values are one ASCII text, as most that are compared are; no canonical bytes are needed for that."""
    return type(one) is str and type(other) is str and one == other and one.isascii()
