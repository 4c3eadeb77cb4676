"""Registered rulebooks: whether a row of the registry is as it was made, and the ones that records cite."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from cachetools import LRUCache

from gate.encoding.canonical import content_hash
from gate.errors import GateError
from gate.instance.audit.finding import Finding, read_stored, tampered
from gate.labels import (
    CANONICALIZATION,
    EVALUATOR,
    HASH_ALGORITHM,
    REGISTRY_ATTESTATION,
    RULEBOOK_REGISTRY,
    RULEBOOK_SCHEMA,
)
from gate.ledger.reads.audited import AuditedLedger, Snapshot, StoredRegistration
from gate.ledger.tables import rulebooks
from gate.proof.signing import ED25519, verify_ed25519
from gate.records.attestation import registration_hash
from gate.rulebooks.facts import DEPENDENCY
from gate.verify import Trust

_PAGE: Final = 64
_REQUIRED: Final = {
    "rulebook_registry_version",
    "schema_version",
    "rulebook_id",
    "version",
    "hash",
    "evaluator_version",
    "hash_algorithm",
    "canonicalization",
    "scope_hash",
    "registered_at",
    "registry_attestation",
}
_ATTESTATION: Final = {
    "registry_attestation_version",
    "status",
    "attestation_hash",
    "key_id",
    "signature_algorithm",
    "signature",
}
_HELD_BYTES: Final = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Registration:
    """A registration as an audit read it.

    Attributes:
        name: The rulebook's id and version, for sentences.
        metadata: What records cite of it.
        body: The rulebook.
        plain: Whether the body is known to be plain, as `canonical.is_plain` has it.
        fault: The fault of the row, as a sentence; None if it is unchanged.
    """

    name: str
    metadata: Any
    body: Any
    plain: bool
    fault: str | None


def read_registration(scope_id: str, stored: StoredRegistration, trust: Trust) -> Registration:
    """Reads a row of the registry and holds it against its own hashes and its attestation's signature.

    Args:
        scope_id: The scope.
        stored: The row.
        trust: What the registry's signatures are verified against. The state of a key is no matter of the registry, and
            a signature by an unknown key is not checked.
    """
    name = _name(stored)
    try:
        body, plain = read_stored(stored.body, f"body of the rulebook {name}")
        metadata, _ = read_stored(stored.registration, f"registration of the rulebook {name}")
        return Registration(name, metadata, body, plain, _fault(scope_id, stored, body, metadata, trust))
    except GateError as error:
        fault = error.message
    except (KeyError, TypeError, AttributeError):
        fault = f"The registration of the rulebook {name} lacks required fields."
    return Registration(name, None, None, False, fault)


def check_registrations(ledger: AuditedLedger, scope_id: str, trust: Trust) -> Finding | None:
    """The first row of a scope's registry that is not as it was made.

    Raises:
        ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
    """
    after: tuple[str, bytes] | None = None
    while True:
        with ledger.snapshot(scope_id) as seen:
            page = seen.registrations(after, _PAGE)
        for stored in page:
            read = read_registration(scope_id, stored, trust)
            if read.fault is not None:
                return tampered(None, read.fault, read.name, table=rulebooks.name)
        if len(page) < _PAGE:
            return None
        after = page[-1].rulebook_id, page[-1].version


class Registrations:
    """The registrations that records cite, each read once for as long as there is room for it."""

    def __init__(self, trust: Trust) -> None:
        """Verifies them against what is trusted."""
        self._trust = trust
        self._held: LRUCache[tuple[str, str], Registration] = LRUCache(_HELD_BYTES, getsizeof=_size)

    def cited(self, seen: Snapshot, scope_id: str, hashes: set[str]) -> dict[str, Registration]:
        """The registrations of rulebooks by their hashes; those that are missing are left out."""
        found = {hash_: held for hash_ in hashes if (held := self._held.get((scope_id, hash_))) is not None}
        for stored in seen.registered(sorted(hashes - found.keys())):
            read = read_registration(scope_id, stored, self._trust)
            found[stored.hash] = read
            if _size(read) <= self._held.maxsize:
                self._held[scope_id, stored.hash] = read
        return found


def _size(registration: Registration) -> int:
    # Parsed bodies are several times as large as their text.
    return 2_000 + 8 * len(str(registration.body))


def _name(stored: StoredRegistration) -> str:
    version = stored.version
    try:
        shown = version.decode() if isinstance(version, bytes) else str(version)
    except UnicodeDecodeError:
        shown = version.hex()
    return f"{stored.rulebook_id} {shown}"


def _fault(scope_id: str, stored: StoredRegistration, body: Any, metadata: Any, trust: Trust) -> str | None:
    name = _name(stored)
    if content_hash(body) != stored.hash:
        return f"The stored body of the rulebook {name} differs from the registered one: its hash is different."
    # SQLite keeps text apart from bytes, and would find neither under the other.
    version = stored.version.decode() if isinstance(stored.version, bytes) else None
    if (body["rulebook_id"], body["version"], body["schema_version"]) != (stored.rulebook_id, version, RULEBOOK_SCHEMA):
        return f"The table rulebooks lists the rulebook {name} under another id or version."
    expected = {
        "rulebook_registry_version": RULEBOOK_REGISTRY,
        "schema_version": RULEBOOK_SCHEMA,
        "rulebook_id": stored.rulebook_id,
        "version": version,
        "hash": stored.hash,
        "evaluator_version": EVALUATOR,
        "hash_algorithm": HASH_ALGORITHM,
        "canonicalization": CANONICALIZATION,
        "scope_hash": content_hash({"scope": scope_id}),
        "registered_at": stored.registered_at,
    }
    wrong = [member for member, value in expected.items() if metadata.get(member) != value]
    wrong += sorted(metadata.keys() - _REQUIRED - {"adapter_dependency"})
    dependency = metadata.get("adapter_dependency")
    if "adapter_dependency" in metadata and set(dependency) != set(DEPENDENCY):
        wrong.append("adapter_dependency")
    if wrong:
        return f"The registration of the rulebook {name} was changed after it was made, in {', '.join(wrong)}."
    return _attestation_fault(name, metadata, trust)


def _attestation_fault(name: str, metadata: Any, trust: Trust) -> str | None:
    attestation = metadata["registry_attestation"]
    if attestation["attestation_hash"] != registration_hash(metadata):
        return (
            f"The registration of the rulebook {name} was changed after it was attested: its attestation_hash is "
            "different."
        )
    fixed = (attestation["registry_attestation_version"], attestation["signature_algorithm"])
    if set(attestation) != _ATTESTATION or fixed != (REGISTRY_ATTESTATION, ED25519):
        return f"The attestation of the rulebook {name} has missing or unexpected fields."
    signed = attestation["key_id"], attestation["signature"]
    if attestation["status"] == "unsigned" and signed == (None, None):
        return None
    if attestation["status"] != "signed" or not all(isinstance(text, str) for text in signed):
        return f"The attestation of the rulebook {name} is neither signed nor unsigned."
    if not signature_holds(trust, *signed, attestation["attestation_hash"]):
        return f"The attestation of the rulebook {name} has an invalid signature."
    return None


def signature_holds(trust: Trust, key_id: str, signature: str, signed: str) -> bool:
    """Whether the registry key of that id signed a hash, whatever became of the key; true where it is not known."""
    key = None if trust.attestation_keys is None else trust.attestation_keys.find(key_id)
    return key is None or verify_ed25519(key.public_key, signed.encode(), signature)
