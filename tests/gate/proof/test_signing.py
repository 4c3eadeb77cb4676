"""Signatures and keys: round trips, tampering, a second implementation, and weak keys."""

from __future__ import annotations

import base64
import hashlib

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)
from hypothesis import given
from hypothesis import strategies as st

from gate.errors import MaterialRefused
from gate.proof.signing import (
    Ed25519Signer,
    HmacSigner,
    KeyRegistry,
    PublicKey,
    fingerprint,
    load_registry,
    private_key_pem,
    public_key_pem,
    raw_public_key,
    seed_of_private_key,
    verify_ed25519,
    verify_hmac,
)
from tests.support.samples import RECEIPT_KEYS, RECEIPT_SIGNER, public_key

# Points of small order, and encodings beyond the field's prime, of edwards25519 (RFC 7748 and libsodium's blocklist).
WEAK_POINTS = [
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0100000000000000000000000000000000000000000000000000000000000000",
    "0000000000000000000000000000000000000000000000000000000000000080",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "f0ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
]


@given(st.binary(min_size=32, max_size=32), st.binary(max_size=200))
def test_what_is_signed_verifies_and_a_second_implementation_agrees(seed: bytes, payload: bytes) -> None:
    signer = Ed25519Signer("k", seed)
    signature = signer.sign(payload)
    assert verify_ed25519(signer.public_key, payload, signature)
    raw = base64.urlsafe_b64decode(signature.removeprefix("ed25519:") + "==")
    key = load_pem_public_key(signer.public_key.encode())
    assert isinstance(key, Ed25519PublicKey)
    key.verify(raw, payload)
    assert Ed25519PrivateKey.from_private_bytes(seed).sign(payload) == raw


@given(st.binary(min_size=1, max_size=60), st.integers(min_value=0), st.integers(min_value=1, max_value=255))
def test_a_changed_payload_or_signature_does_not_verify(payload: bytes, where: int, flip: int) -> None:
    signature = RECEIPT_SIGNER.sign(payload)
    changed = bytearray(payload)
    changed[where % len(payload)] ^= flip
    assert not verify_ed25519(RECEIPT_SIGNER.public_key, bytes(changed), signature)
    raw = bytearray(base64.urlsafe_b64decode(signature.removeprefix("ed25519:") + "=="))
    raw[where % 64] ^= flip
    forged = "ed25519:" + base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
    assert not verify_ed25519(RECEIPT_SIGNER.public_key, payload, forged)


def test_a_signature_has_one_spelling() -> None:
    signature = RECEIPT_SIGNER.sign(b"payload")
    body = signature.removeprefix("ed25519:")
    # 64 bytes leave four unused bits in the last of 86 characters: other characters there decode to the same bytes.
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    twin = body[:-1] + alphabet[alphabet.index(body[-1]) ^ 1]
    spellings = [
        body,
        f"Ed25519:{body}",
        f"ed25519: {body}",
        f"ed25519:{body}==",
        f"ed25519:{body}\n",
        f"ed25519:{twin}",
        f"ed25519:{body.replace('-', '+').replace('_', '/')}{'' if '-' in body or '_' in body else '='}",
        f"hmac-sha256:{body}",
        "ed25519:",
        "",
        "ed25519:é",
    ]
    assert verify_ed25519(RECEIPT_SIGNER.public_key, b"payload", signature)
    assert [s for s in spellings if verify_ed25519(RECEIPT_SIGNER.public_key, b"payload", s)] == []


def test_another_key_does_not_verify() -> None:
    other = Ed25519Signer("receipt_test", b"o" * 32)
    assert not verify_ed25519(other.public_key, b"payload", RECEIPT_SIGNER.sign(b"payload"))


def test_hmac_round_trip_and_tampering() -> None:
    signer = HmacSigner("h", b"s" * 32)
    signature = signer.sign(b"payload")
    assert signature.startswith("hmac-sha256:")
    assert len(signature) == len("hmac-sha256:") + 64
    assert verify_hmac(b"s" * 32, b"payload", signature)
    assert not verify_hmac(b"t" * 32, b"payload", signature)
    assert not verify_hmac(b"s" * 32, b"payloae", signature)
    assert not verify_hmac(b"s" * 32, b"payload", signature.upper())
    assert not verify_hmac(b"s" * 32, b"payload", "\ud800")


def test_pem_is_what_a_second_implementation_writes_and_reads() -> None:
    seed = bytes(range(32))
    private = Ed25519PrivateKey.from_private_bytes(seed)
    public_pem = private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    private_pem = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    signer = Ed25519Signer("k", seed)
    assert signer.public_key == public_pem
    assert private_key_pem(seed) == private_pem
    assert seed_of_private_key(private_pem) == seed
    assert raw_public_key(public_pem) == private.public_key().public_bytes_raw()
    assert load_pem_private_key(private_key_pem(seed).encode(), None) is not None


def test_a_fingerprint_is_the_hash_of_the_pem_text_without_surrounding_white_space() -> None:
    pem = RECEIPT_SIGNER.public_key
    assert fingerprint(pem) == hashlib.sha256(pem.strip().encode()).hexdigest()
    assert fingerprint(f"\n {pem}\n\n") == fingerprint(pem)


@pytest.mark.parametrize("point", WEAK_POINTS)
def test_weak_public_keys_are_refused_wherever_they_come_from(point: str) -> None:
    pem = public_key_pem(bytes.fromhex(point))
    with pytest.raises(MaterialRefused, match="weak") as refusal:
        raw_public_key(pem)
    assert refusal.value.code == "PUBLIC_KEY_INVALID"
    with pytest.raises(MaterialRefused):
        verify_ed25519(pem, b"x", RECEIPT_SIGNER.sign(b"x"))
    entry = public_key(RECEIPT_SIGNER).to_dict() | {"public_key": pem, "public_key_fingerprint": fingerprint(pem)}
    with pytest.raises(MaterialRefused):
        load_registry({"keys": [entry], "active_key_id": None})


@pytest.mark.parametrize(
    "pem", ["", "x", "-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----", private_key_pem(b"1" * 32), "é"]
)
def test_what_is_no_ed25519_public_key_is_refused(pem: str) -> None:
    with pytest.raises(MaterialRefused, match="PEM"):
        raw_public_key(pem)


def test_a_private_key_file_of_another_kind_is_refused() -> None:
    with pytest.raises(MaterialRefused) as refusal:
        seed_of_private_key(RECEIPT_SIGNER.public_key)
    assert refusal.value.code == "PRIVATE_KEY_INVALID"


def test_a_registry_is_published_and_read_back() -> None:
    document = RECEIPT_KEYS.to_dict()
    assert set(document) == {"keys", "active_key_id"}
    assert set(document["keys"][0]) == {
        "key_id",
        "algorithm",
        "public_key",
        "public_key_fingerprint",
        "status",
        "not_before",
        "not_after",
    }
    assert load_registry(document) == RECEIPT_KEYS


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"key_id": 7}, "lacks"),
        ({"algorithm": "rsa"}, "unknown algorithm"),
        ({"status": "fine"}, "unknown algorithm or status"),
        ({"status": "retired"}, "receipt_test is retired but has no not_after"),
        ({"not_before": "yesterday"}, "dates"),
        ({"not_before": "0001-01-01T00:00:00+23:59"}, "dates"),
        ({"not_before": "2026-01-01T00:00:00.000"}, "dates"),
        ({"not_after": ""}, "dates"),
        ({"not_after": 5}, "dates"),
        ({"public_key_fingerprint": "0" * 64}, "fingerprint"),
        ({"public_key": "x"}, "PEM"),
    ],
)
def test_an_unusable_registry_is_refused(change: dict[str, object], why: str) -> None:
    document = {"keys": [public_key(RECEIPT_SIGNER).to_dict() | change], "active_key_id": None}
    with pytest.raises(MaterialRefused, match=why):
        load_registry(document)


@pytest.mark.parametrize("document", [None, [], {}, {"keys": {}}, {"keys": [1]}, {"keys": [{}]}])
def test_what_is_no_registry_is_refused(document: object) -> None:
    with pytest.raises(MaterialRefused, match="registry is unusable"):
        load_registry(document)


def test_a_registry_with_two_keys_of_one_name_is_refused() -> None:
    entry = public_key(RECEIPT_SIGNER).to_dict()
    with pytest.raises(MaterialRefused, match="share a key_id"):
        load_registry({"keys": [entry, entry], "active_key_id": None})


@pytest.mark.parametrize(
    ("status", "not_after", "signed_at", "objects"),
    [
        ("active", None, "2026-01-01T00:00:00.000Z", False),
        ("active", None, "2025-12-31T23:59:59.999Z", True),
        ("active", None, "no date", True),
        ("retired", "2026-05-01T00:00:00.000Z", "2026-05-01T00:00:00.000Z", False),
        ("retired", "2026-05-01T00:00:00.000Z", "2026-05-01T00:00:00.001Z", True),
        ("retired", None, "2026-02-01T00:00:00.000Z", True),
        ("compromised", "2026-05-01T00:00:00.000Z", "2026-02-01T00:00:00.000Z", True),
        ("compromised", None, "2026-02-01T00:00:00.000Z", True),
    ],
)
def test_a_key_objects_to_what_its_state_does_not_cover(
    status: str, not_after: str | None, signed_at: str, objects: bool
) -> None:
    key = public_key(RECEIPT_SIGNER, status=status, not_after=not_after)
    assert (key.objection(signed_at) is not None) is objects


def test_a_registry_finds_keys_by_name() -> None:
    assert RECEIPT_KEYS.find("receipt_test") is RECEIPT_KEYS.keys[0]
    assert RECEIPT_KEYS.find("another") is None
    assert KeyRegistry().to_dict() == {"keys": [], "active_key_id": None}
    assert isinstance(RECEIPT_KEYS.keys[0], PublicKey)


def test_the_second_implementation_refuses_what_we_refuse() -> None:
    key = load_pem_public_key(RECEIPT_SIGNER.public_key.encode())
    assert isinstance(key, Ed25519PublicKey)
    with pytest.raises(InvalidSignature):
        key.verify(b"\0" * 64, b"payload")
