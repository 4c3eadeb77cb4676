"""Signing keys on disk: private keys as PEM files of mode 0600, public keys in one registry file a purpose.

    keys/receipt.json        the public receipt keys, as /api/decision/receipt-keys publishes them
    keys/registry.json       the public registry keys, which sign attestations
    keys/<key_id>.pem        a private key

A registry file is replaced as a whole, and every process notices the new one before its next signature.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from threading import RLock
from typing import Final

import orjson

from gate.encoding.strict_json import parse
from gate.errors import GateError, MaterialRefused, OperatorError, ServiceUnavailable
from gate.ids import timestamp
from gate.proof.signing import (
    ED25519,
    Ed25519Signer,
    HmacSigner,
    KeyRegistry,
    PublicKey,
    load_registry,
    private_key_pem,
    seed_of_private_key,
)

PURPOSES: Final = ("receipt", "registry")

MIN_HMAC_SECRET: Final = 32
"""The shortest HMAC secret that is accepted, in bytes."""

# Clocks are corrected by small steps; a record dated just before its key was made, or just after it was retired, by a
# process that had not noticed yet, must still verify.
CLOCK_TOLERANCE: Final = timedelta(minutes=5)


class KeyRing:
    """The signing keys of one purpose."""

    def __init__(self, directory: Path, purpose: str) -> None:
        """Works on the keys in a directory; `create` lays them out."""
        self._directory = directory
        self._file = directory / f"{purpose}.json"
        self._path = str(self._file)
        self._purpose = purpose
        self._seen: tuple[int, int, int] | None = None
        self._registry = KeyRegistry()
        self._signer: Ed25519Signer | None = None
        # Registry and signer change together, or a thread that read the old registry could restore its signer.
        self._lock = RLock()

    def create(self, now: datetime) -> None:
        """Makes the first key where there is none."""
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._locked():
            if not self._file.exists():
                self._save(self._with_new_key(KeyRegistry(), now))

    def registry(self) -> KeyRegistry:
        """The public keys, as they stand on disk now.

        Raises:
            ServiceUnavailable: `SVC_SIGNING_UNAVAILABLE`: the registry file is missing or unusable.
        """
        with self._lock:
            try:
                # The stat comes before the read: a file replaced in between is read once more, and never missed.
                stat = os.stat(self._path)  # noqa: PTH116 - asked at every signature, and Path.stat takes twice as long
                seen = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
                if seen != self._seen:
                    self._registry = load_registry(parse(self._file.read_bytes()))
                    self._signer, self._seen = None, seen
            except (OSError, GateError) as error:
                self._signer, self._seen = None, None
                raise self._unavailable(error) from error
            return self._registry

    def probe(self) -> None:
        """Requires that the active private key can be loaded now; one that was loaded before stays in use without it.

        Raises:
            ServiceUnavailable: `SVC_SIGNING_UNAVAILABLE`.
        """
        with self._lock:
            try:
                self._load_signer(self.registry())
            except (OSError, MaterialRefused) as error:
                raise self._unavailable(error) from error

    def signer(self) -> Ed25519Signer:
        """What signs now.

        Raises:
            ServiceUnavailable: `SVC_SIGNING_UNAVAILABLE`: there is no active key, or its file is missing or unusable.
        """
        with self._lock:
            registry = self.registry()
            if self._signer is None:
                try:
                    self._signer = self._load_signer(registry)
                except (OSError, GateError) as error:
                    raise self._unavailable(error) from error
            return self._signer

    def find(self, key_id: str) -> PublicKey:
        """The key of that id.

        Raises:
            OperatorError: `SIGNING_KEY_UNKNOWN`.
        """
        return self._known(self.registry(), key_id)

    def rotate(self, now: datetime) -> PublicKey:
        """Makes a new key that signs from now on; the key that signed so far is retired.

        Raises:
            OperatorError: `INSTANCE_MISSING`.
        """
        with self._changed() as registry:
            rotated = self._with_new_key(self._retired(registry, registry.active_key_id, now + CLOCK_TOLERANCE), now)
            self._save(rotated)
        return rotated.keys[-1]

    def retire(self, key_id: str, not_after: datetime) -> PublicKey:
        """Ends the validity of a key that no longer signs. Records dated later than `not_after` do not verify.

        Raises:
            OperatorError: `SIGNING_KEY_UNKNOWN`, `SIGNING_KEY_ACTIVE`, `SIGNING_KEY_COMPROMISED`.
        """
        with self._changed() as registry:
            key = self._known(registry, key_id)
            if key_id == registry.active_key_id:
                raise OperatorError(
                    "SIGNING_KEY_ACTIVE", (f"The key {key_id} is active. Rotate first, then retire it.")
                )
            if key.status == "compromised":
                raise OperatorError(
                    "SIGNING_KEY_COMPROMISED", f"The key {key_id} is compromised, and retiring it cannot undo that."
                )
            changed = self._retired(registry, key_id, not_after)
            self._save(changed)
        return self._known(changed, key_id)

    def compromise(self, key_id: str, moment: datetime, now: datetime) -> PublicKey:
        """Marks a key as known to others since `moment`, or an earlier moment that it was marked with before. Nothing
        signed with it verifies any more.

        A compromised key that was the active one is replaced at once by a new key.

        Raises:
            OperatorError: `SIGNING_KEY_UNKNOWN`.
        """
        with self._changed() as registry:
            known, since = self._known(registry, key_id), timestamp(moment)
            if known.status == "compromised" and known.not_after is not None:
                since = min(since, known.not_after)
            changed = _changed_key(registry, key_id, lambda key: replace(key, status="compromised", not_after=since))
            if registry.active_key_id == key_id:
                changed = self._with_new_key(changed, now)
            self._save(changed)
        return self._known(changed, key_id)

    def _load_signer(self, registry: KeyRegistry) -> Ed25519Signer:
        key = registry.find(registry.active_key_id) if registry.active_key_id is not None else None
        if key is None or key.status != "active":
            raise MaterialRefused("SIGNING_KEY_INACTIVE", "No key is active.")
        signer = Ed25519Signer(
            key.key_id, seed_of_private_key(self._private_file(key.key_id).read_text("latin-1")), key.not_before
        )
        # Nobody could verify a signature that the published key did not make.
        if signer.fingerprint != key.fingerprint:
            raise MaterialRefused(
                "PRIVATE_KEY_INVALID", f"The private key of {key.key_id} does not match its public key."
            )
        return signer

    def _with_new_key(self, registry: KeyRegistry, now: datetime) -> KeyRegistry:
        seed = secrets.token_bytes(32)
        key_id = f"{self._purpose}_{now:%Y%m%d}_{secrets.token_hex(4)}"
        signer = Ed25519Signer(key_id, seed)
        # On disk before any registry names it: a crash in between leaves a key that nobody uses, and never a registry
        # whose active key is missing.
        write_private(self._private_file(key_id), private_key_pem(seed).encode())
        key = PublicKey(key_id, ED25519, signer.public_key, "active", timestamp(now - CLOCK_TOLERANCE), None)
        return KeyRegistry((*registry.keys, key), key_id)

    def _retired(self, registry: KeyRegistry, key_id: str | None, not_after: datetime) -> KeyRegistry:
        return _changed_key(
            registry, key_id, lambda key: replace(key, status="retired", not_after=timestamp(not_after))
        )

    def _known(self, registry: KeyRegistry, key_id: str) -> PublicKey:
        key = registry.find(key_id)
        if key is None:
            raise OperatorError(
                "SIGNING_KEY_UNKNOWN",
                f"There is no {self._purpose} key {key_id!r}. `gate signing-keys list` shows all keys.",
            )
        return key

    @contextmanager
    def _changed(self) -> Iterator[KeyRegistry]:
        if not self._file.exists():
            raise OperatorError(
                "INSTANCE_MISSING", f"The directory {self._directory} holds no keys. Restore them from a backup."
            )
        with self._locked():
            # Read again under the lock: of two commands at once, the second must not undo the first.
            yield load_registry(parse(self._file.read_bytes()))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        descriptor = os.open(self._directory, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _save(self, registry: KeyRegistry) -> None:
        write_private(self._file, orjson.dumps(registry.to_dict(), option=orjson.OPT_INDENT_2) + b"\n")

    def _private_file(self, key_id: str) -> Path:
        return self._directory / f"{key_id}.pem"

    def _unavailable(self, error: OSError | GateError) -> ServiceUnavailable:
        # Callers read this sentence: it names the file that the operator must restore, and not where it lies.
        why = f"{Path(error.filename).name}: {error.strerror}" if isinstance(error, OSError) else error.message
        return ServiceUnavailable(
            "SVC_SIGNING_UNAVAILABLE",
            f"The {self._purpose} signing keys cannot be used ({why.rstrip('.')}). The gate decides nothing "
            "until the operator restores them.",
        )


def hmac_signer(secret_file: Path | None) -> HmacSigner:
    """The signer of `hmac-sha256` receipts. Its `key_id` is derived from the secret, so that a changed secret shows.

    Raises:
        OperatorError: `HMAC_SECRET_UNUSABLE`: no file is set, it cannot be read, or its secret is too short.
    """
    secret = read_hmac_secret(secret_file)
    # A MAC of a fixed text names the secret without giving any of it away.
    key_id = hmac.new(secret, b"decision gate receipt key id", hashlib.sha256).hexdigest()[:16]
    return HmacSigner(f"receipt_hmac_{key_id}", secret)


def read_hmac_secret(secret_file: Path | None) -> bytes:
    """The secret in a file, without surrounding white space.

    Raises:
        OperatorError: `HMAC_SECRET_UNUSABLE`.
    """
    if secret_file is None:
        raise OperatorError(
            "HMAC_SECRET_UNUSABLE", "The setting receipt_signing is hmac-sha256. Set receipt_hmac_secret_file, too."
        )
    try:
        secret = secret_file.read_bytes().strip()
    except OSError as error:
        raise OperatorError(
            "HMAC_SECRET_UNUSABLE", f"The HMAC secret {secret_file} cannot be read: {error.strerror}."
        ) from error
    if len(secret) < MIN_HMAC_SECRET:
        raise OperatorError(
            "HMAC_SECRET_UNUSABLE",
            f"The HMAC secret in {secret_file} has {len(secret)} bytes, but needs at least {MIN_HMAC_SECRET}.",
        )
    return secret


def _changed_key(registry: KeyRegistry, key_id: str | None, change: Callable[[PublicKey], PublicKey]) -> KeyRegistry:
    keys = tuple(change(key) if key.key_id == key_id else key for key in registry.keys)
    active = registry.find(key_id) if key_id is not None and key_id == registry.active_key_id else None
    return KeyRegistry(keys, None if active is not None else registry.active_key_id)


def write_private(path: Path, content: bytes) -> None:
    """Writes a file whole or not at all, mode 0600, and on disk when it returns."""
    scratch = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        # The content before the name: otherwise a crash of the machine could leave the name with nothing behind it.
        os.fsync(file.fileno())
    scratch.replace(path)
    # The name itself is in the directory.
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
