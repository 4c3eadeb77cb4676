"""Signatures of receipts, checkpoints, and attestations, and the public keys that verify them.

An Ed25519 signature is the text `ed25519:` + base64url without padding, and an HMAC one is `hmac-sha256:` + hex. Public
keys are PEM (`SPKI`) texts. A key's fingerprint is the SHA-256 hex of its PEM text without surrounding white space.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, Protocol, TypedDict

from nacl.bindings import (
    crypto_core_ed25519_is_valid_point,
    crypto_sign,
    crypto_sign_BYTES,
    crypto_sign_seed_keypair,
)
from nacl.exceptions import BadSignatureError
from nacl.signing import VerifyKey

from gate.errors import MaterialRefused
from gate.ids import parse_timestamp

ED25519: Final = "ed25519"
HMAC_SHA256: Final = "hmac-sha256"
KEY_STATUSES: Final = ("active", "retired", "compromised")

# DER headers of RFC 8410: SubjectPublicKeyInfo and PKCS #8 for Ed25519, each followed by the 32 raw bytes.
_SPKI: Final = bytes.fromhex("302a300506032b6570032100")
_PKCS8: Final = bytes.fromhex("302e020100300506032b657004220420")


class Signer(Protocol):
    """Signs bytes with a key."""

    @property
    def key_id(self) -> str:
        """The id of the key."""

    @property
    def algorithm(self) -> str:
        """`ed25519` or `hmac-sha256`."""

    @property
    def fingerprint(self) -> str | None:
        """The public key's fingerprint, or None without a public key."""

    @property
    def not_before(self) -> str | None:
        """The UTC timestamp from which its signatures are valid, or None if they always are."""

    def sign(self, payload: bytes) -> str:
        """The signature in the protocol's text form."""


class Ed25519Signer:
    """Signs with an Ed25519 private key."""

    algorithm: Final = ED25519

    def __init__(self, key_id: str, seed: bytes, not_before: str | None = None) -> None:
        """Takes the key's id, its 32-byte seed, and the timestamp from which its signatures are valid."""
        self.key_id: Final = key_id
        self.not_before: Final = not_before
        public, self._secret = crypto_sign_seed_keypair(seed)
        self.public_key: Final = public_key_pem(public)
        self.fingerprint: Final = fingerprint(self.public_key)

    def sign(self, payload: bytes) -> str:
        """`ed25519:` and the base64url of the 64-byte signature."""
        return f"{ED25519}:{_base64url(crypto_sign(payload, self._secret)[:crypto_sign_BYTES])}"


class HmacSigner:
    """Signs with HMAC-SHA256 and a secret. Only holders of the secret can verify."""

    algorithm: Final = HMAC_SHA256
    fingerprint: Final = None
    not_before: Final = None

    def __init__(self, key_id: str, secret: bytes) -> None:
        """Takes the key's id and the secret, at least 32 bytes."""
        self.key_id: Final = key_id
        self.secret: Final = secret

    def sign(self, payload: bytes) -> str:
        """`hmac-sha256:` and the hex digest."""
        return f"{HMAC_SHA256}:{hmac.new(self.secret, payload, hashlib.sha256).hexdigest()}"


def verify_ed25519(public_key: str, payload: bytes, signature: str) -> bool:
    """Whether an `ed25519:` signature of the payload is valid for a PEM public key. A bad signature raises nothing.

    Raises:
        MaterialRefused: `PUBLIC_KEY_INVALID`: the key itself is unusable.
    """
    key = VerifyKey(raw_public_key(public_key))
    scheme, _, text = signature.partition(":")
    raw = _from_base64url(text)
    if scheme != ED25519 or raw is None or len(raw) != 64:
        return False
    try:
        key.verify(payload, raw)
    except BadSignatureError:
        return False
    return True


def verify_hmac(secret: bytes, payload: bytes, signature: str) -> bool:
    """Whether an `hmac-sha256:` signature of the payload is valid for the secret, compared in constant time."""
    expected = HmacSigner("", secret).sign(payload)
    # A hostile signature can contain half of a surrogate pair: it is a wrong signature, not an error.
    return hmac.compare_digest(expected.encode(), signature.encode("utf-8", "surrogatepass"))


def public_key_pem(raw: bytes) -> str:
    """A raw 32-byte Ed25519 public key as PEM (`SPKI`)."""
    return _pem("PUBLIC KEY", _SPKI + raw)


def private_key_pem(seed: bytes) -> str:
    """A 32-byte Ed25519 seed as PEM (PKCS #8)."""
    return _pem("PRIVATE KEY", _PKCS8 + seed)


def raw_public_key(pem: str) -> bytes:
    """The 32 bytes of an Ed25519 public key in PEM.

    Raises:
        MaterialRefused: `PUBLIC_KEY_INVALID`: the text is not an Ed25519 key in PEM (`SPKI`), or its point is
            non-canonical, of low order or outside the main subgroup. Such keys accept signatures that nobody made.
    """
    # Only texts no longer than a key are remembered, so that senders of keys cannot fill the memory.
    return _known_public_key(pem) if len(pem) <= _LONGEST_PEM else _public_key_in(pem)


def _public_key_in(pem: str) -> bytes:
    raw = _from_pem("PUBLIC KEY", _SPKI, pem)
    if raw is None:
        raise MaterialRefused(
            "PUBLIC_KEY_INVALID",
            "The public key is not an Ed25519 key in PEM (SPKI); export it in that form.",
        )
    if not crypto_core_ed25519_is_valid_point(raw):
        raise MaterialRefused(
            "PUBLIC_KEY_INVALID",
            "The public key is weak: its point is non-canonical or of low order; use another key.",
        )
    return raw


# A verifier sees few keys, each with every record; checking a key's point takes half as long as checking a signature.
_known_public_key: Final = lru_cache(maxsize=256)(_public_key_in)
_LONGEST_PEM: Final = 200


def seed_of_private_key(pem: str) -> bytes:
    """The 32-byte seed of an Ed25519 private key in PEM (PKCS #8).

    Raises:
        MaterialRefused: `PRIVATE_KEY_INVALID`.
    """
    seed = _from_pem("PRIVATE KEY", _PKCS8, pem)
    if seed is None:
        raise MaterialRefused(
            "PRIVATE_KEY_INVALID",
            "The private key is not an Ed25519 key in PEM (PKCS #8); restore it from a backup.",
        )
    return seed


def fingerprint(pem: str) -> str:
    """SHA-256 hex of the PEM text without surrounding white space."""
    return hashlib.sha256(pem.strip().encode()).hexdigest()


class PublishedKey(TypedDict):
    """A key as registries publish it. See "Public keys" in `docs/reference/wire-format/record.md`."""

    key_id: str
    algorithm: str
    public_key: str
    public_key_fingerprint: str
    status: str
    not_before: str
    not_after: str | None


class PublishedRegistry(TypedDict):
    """The document of a key registry."""

    keys: list[PublishedKey]
    active_key_id: str | None


_WITHOUT_END: Final = "retired but has no not_after, so late signatures cannot be detected"


@dataclass(frozen=True, slots=True)
class PublicKey:
    """One key of a registry.

    Attributes:
        key_id: The id of the key.
        algorithm: `ed25519`.
        public_key: The key in PEM (`SPKI`).
        status: `active`, `retired` or `compromised`.
        not_before: The UTC timestamp from which its signatures are valid.
        not_after: The UTC timestamp until which its signatures are valid, or None. A retired key has one. For a
            compromised key, it is the time of the compromise.
    """

    key_id: str
    algorithm: str
    public_key: str
    status: str
    not_before: str
    not_after: str | None

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the PEM text."""
        return fingerprint(self.public_key)

    def objection(self, signed_at: str) -> str | None:
        """Why a signature dated `signed_at` is not valid for this key, or None if it is.

        A compromised key's signatures are never valid, because its holder can date a record freely.
        """
        if self.status == "compromised":
            return f"The key {self.key_id} is compromised; nothing signed with it can be trusted."
        if self.status == "retired" and self.not_after is None:
            return f"The key {self.key_id} is {_WITHOUT_END}."
        try:
            moment = parse_timestamp(signed_at)
        except ValueError:
            return f"Its date {signed_at!r} is not a timestamp."
        if moment < parse_timestamp(self.not_before):
            return f"It is dated {signed_at}, before its key {self.key_id} was in use ({self.not_before})."
        if self.not_after is not None and moment > parse_timestamp(self.not_after):
            return f"It is dated {signed_at}, after its key {self.key_id} was retired ({self.not_after})."
        return None

    def to_dict(self) -> PublishedKey:
        """Returns the key as registries publish it."""
        return {
            "key_id": self.key_id,
            "algorithm": self.algorithm,
            "public_key": self.public_key,
            "public_key_fingerprint": self.fingerprint,
            "status": self.status,
            "not_before": self.not_before,
            "not_after": self.not_after,
        }


@dataclass(frozen=True, slots=True)
class KeyRegistry:
    """The active and past public keys for one purpose.

    Attributes:
        keys: The keys.
        active_key_id: The id of the key that signs now, or None.
    """

    keys: tuple[PublicKey, ...] = ()
    active_key_id: str | None = None

    def find(self, key_id: str) -> PublicKey | None:
        """Returns the key with an id, or None."""
        return next((key for key in self.keys if key.key_id == key_id), None)

    def unused(self, at: str) -> KeyRegistry:
        """Returns the registry with its active key retired at a UTC timestamp, because none of its keys signs.

        Earlier signatures of the key still verify, and no verifier accepts later ones.
        """
        keys = (replace(key, status="retired", not_after=at) if key.status == "active" else key for key in self.keys)
        return KeyRegistry(tuple(keys))

    def to_dict(self) -> PublishedRegistry:
        """Returns {keys: [...], active_key_id}."""
        return {"keys": [key.to_dict() for key in self.keys], "active_key_id": self.active_key_id}


def load_registry(document: object) -> KeyRegistry:
    """Reads a published registry {keys: [...], active_key_id}.

    Raises:
        MaterialRefused: `KEY_REGISTRY_INVALID`: the document is not a registry. `PUBLIC_KEY_INVALID`: a key is weak.
    """
    if not isinstance(document, dict) or not isinstance(document.get("keys"), list):
        raise _registry_invalid("it is not an object with a list `keys`")
    keys = tuple(map(_load_key, document["keys"]))
    if len({key.key_id for key in keys}) != len(keys):
        raise _registry_invalid("two of its keys share a key_id")
    active = document.get("active_key_id")
    return KeyRegistry(keys, active if isinstance(active, str) else None)


def _load_key(entry: object) -> PublicKey:
    if not isinstance(entry, Mapping):
        raise _registry_invalid("one of its keys is not an object")
    names = ("key_id", "algorithm", "public_key", "status", "not_before")
    texts = {name: text for name in names if isinstance(text := entry.get(name), str)}
    if len(texts) < len(names):
        raise _registry_invalid("a key lacks a text in key_id, algorithm, public_key, status or not_before")
    key = PublicKey(**texts, not_after=entry.get("not_after"))
    if key.algorithm != ED25519 or key.status not in KEY_STATUSES:
        raise _registry_invalid(f"the key {key.key_id} has an unknown algorithm or status")
    if key.status == "retired" and key.not_after is None:
        raise _registry_invalid(f"the key {key.key_id} is {_WITHOUT_END}")
    try:
        for moment in (key.not_before, key.not_after):
            if moment is not None:
                parse_timestamp(moment)
    except (TypeError, ValueError) as error:
        raise _registry_invalid(f"the dates of the key {key.key_id} are not UTC timestamps") from error
    raw_public_key(key.public_key)
    if entry.get("public_key_fingerprint", key.fingerprint) != key.fingerprint:
        raise _registry_invalid(f"the fingerprint of the key {key.key_id} is not that of its public_key")
    return key


def _registry_invalid(why: str) -> MaterialRefused:
    return MaterialRefused(
        "KEY_REGISTRY_INVALID", f"The key registry is unusable: {why}. Fetch it again from its publisher."
    )


def _base64url(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _from_base64url(text: str) -> bytes | None:
    """The bytes of canonical base64url without padding; None for any other text, including equivalent spellings."""
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
    # The last character has unused bits. If any value were allowed, one signature could be written in many ways.
    return raw if _base64url(raw) == text else None


def _pem(label: str, der: bytes) -> str:
    return f"-----BEGIN {label}-----\n{base64.b64encode(der).decode()}\n-----END {label}-----\n"


def _from_pem(label: str, header: bytes, pem: str) -> bytes | None:
    lines = [line.strip() for line in pem.strip().splitlines()]
    if len(lines) < 3 or lines[0] != f"-----BEGIN {label}-----" or lines[-1] != f"-----END {label}-----":
        return None
    try:
        der = base64.b64decode("".join(lines[1:-1]), validate=True)
    except (binascii.Error, ValueError):
        return None
    return der[len(header) :] if der.startswith(header) and len(der) == len(header) + 32 else None
