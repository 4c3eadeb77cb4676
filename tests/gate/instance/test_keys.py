"""Signing keys on disk: modes, rotation, retirement, compromise, and what happens when files are wrong."""

from __future__ import annotations

import json
import stat
import sys
import threading
from datetime import timedelta
from pathlib import Path

import pytest

from gate.errors import OperatorError, ServiceUnavailable
from gate.ids import timestamp
from gate.instance.keys import KeyRing, hmac_signer, read_hmac_secret
from gate.proof.signing import Ed25519Signer, private_key_pem, verify_ed25519
from tests.support.samples import NOW

LATER = NOW + timedelta(days=30)


@pytest.fixture
def ring(tmp_path: Path) -> KeyRing:
    made = KeyRing(tmp_path / "keys", "receipt")
    made.create(NOW)
    return made


def test_a_first_key_is_made_once_and_only_its_owner_can_read_it(ring: KeyRing, tmp_path: Path) -> None:
    signer = ring.signer()
    ring.create(LATER)
    assert ring.signer().key_id == signer.key_id
    assert stat.S_IMODE((tmp_path / "keys").stat().st_mode) == 0o700
    files = sorted((tmp_path / "keys").iterdir())
    assert [file.name for file in files] == ["receipt.json", f"{signer.key_id}.pem"]
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert "PRIVATE" not in (tmp_path / "keys" / "receipt.json").read_text()


def test_what_the_ring_signs_verifies_under_its_published_key(ring: KeyRing) -> None:
    registry = ring.registry()
    assert registry.active_key_id == ring.signer().key_id
    (key,) = registry.keys
    assert verify_ed25519(key.public_key, b"x", ring.signer().sign(b"x"))
    assert (key.status, key.not_after) == ("active", None)
    assert key.objection(timestamp(NOW)) is None


def test_rotation_signs_with_a_new_key_and_keeps_the_old_one_for_what_it_signed(ring: KeyRing) -> None:
    old = ring.signer()
    new = ring.rotate(LATER)
    assert ring.signer().key_id == new.key_id != old.key_id
    kept = ring.registry().find(old.key_id)
    assert kept is not None
    assert kept.status == "retired"
    assert kept.objection(timestamp(NOW)) is None
    assert kept.objection(timestamp(LATER)) is None, "what was dated at the moment of rotation counts"
    assert kept.objection(timestamp(LATER + timedelta(minutes=6))) is not None
    assert new.objection(timestamp(LATER)) is None


def test_no_thread_keeps_signing_with_a_key_that_was_rotated_away(ring: KeyRing) -> None:
    stop = threading.Event()

    def sign() -> None:
        while not stop.is_set():
            ring.signer()

    threads = [threading.Thread(target=sign) for _ in range(6)]
    switching = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for number in range(60):
            new = ring.rotate(NOW + timedelta(minutes=number))
            assert ring.signer().key_id == new.key_id
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(switching)


def test_another_process_notices_a_rotation_at_its_next_signature(ring: KeyRing, tmp_path: Path) -> None:
    other = KeyRing(tmp_path / "keys", "receipt")
    assert other.signer().key_id == ring.signer().key_id
    new = ring.rotate(LATER)
    assert other.signer().key_id == new.key_id


def test_a_key_that_no_longer_signs_can_be_retired_earlier(ring: KeyRing) -> None:
    old = ring.signer().key_id
    ring.rotate(LATER)
    assert ring.retire(old, NOW).not_after == timestamp(NOW)
    with pytest.raises(OperatorError) as refusal:
        ring.retire(ring.signer().key_id, NOW)
    assert refusal.value.code == "SIGNING_KEY_ACTIVE"
    with pytest.raises(OperatorError) as refusal:
        ring.retire("receipt_unknown", NOW)
    assert refusal.value.code == "SIGNING_KEY_UNKNOWN"


def test_a_compromised_active_key_is_replaced_at_once(ring: KeyRing) -> None:
    old = ring.signer().key_id
    key = ring.compromise(old, NOW, LATER)
    assert (key.status, key.not_after) == ("compromised", timestamp(NOW))
    assert key.objection(timestamp(NOW - timedelta(days=1))) is not None
    assert ring.signer().key_id != old
    with pytest.raises(OperatorError) as refusal:
        ring.retire(old, NOW)
    assert refusal.value.code == "SIGNING_KEY_COMPROMISED"


def test_a_compromised_past_key_leaves_the_active_one_alone(ring: KeyRing) -> None:
    old = ring.signer().key_id
    new = ring.rotate(LATER)
    ring.compromise(old, NOW, LATER)
    assert ring.signer().key_id == new.key_id
    assert len(ring.registry().keys) == 2


def test_without_usable_files_nothing_is_signed(ring: KeyRing, tmp_path: Path) -> None:
    file = tmp_path / "keys" / "receipt.json"
    private = tmp_path / "keys" / f"{ring.signer().key_id}.pem"
    good_registry, good_key = file.read_bytes(), private.read_bytes()

    def refused(why: str) -> None:
        with pytest.raises(ServiceUnavailable, match=why) as refusal:
            KeyRing(tmp_path / "keys", "receipt").signer()
        assert refusal.value.code == "SVC_SIGNING_UNAVAILABLE"
        assert str(tmp_path) not in str(refusal.value)

    file.unlink()
    refused("No such file")
    with pytest.raises(ServiceUnavailable):
        ring.signer()
    file.write_bytes(b"{")
    refused("not JSON")
    document = json.loads(good_registry)
    document["keys"][0] |= {"status": "retired", "not_after": "2026-06-11T12:30:45.678Z"}
    file.write_text(json.dumps(document))
    refused("No key is active")
    document["active_key_id"] = None
    file.write_text(json.dumps(document))
    refused("No key is active")
    file.write_bytes(good_registry)
    private.write_text(private_key_pem(b"z" * 32))
    refused("does not match its public key")
    private.write_text("nonsense")
    refused("not an Ed25519 key")
    private.unlink()
    refused("No such file")
    private.write_bytes(good_key)
    assert isinstance(ring.signer(), Ed25519Signer), "a ring recovers once its files are whole again"


def test_keys_of_an_instance_that_is_not_there_cannot_be_changed(tmp_path: Path) -> None:
    with pytest.raises(OperatorError) as refusal:
        KeyRing(tmp_path / "nowhere", "receipt").rotate(NOW)
    assert refusal.value.code == "INSTANCE_MISSING"


def test_an_hmac_signer_is_named_after_its_secret(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_bytes(b"s" * 32 + b"\n")
    second.write_bytes(b"t" * 32)
    assert read_hmac_secret(first) == b"s" * 32
    assert hmac_signer(first).key_id != hmac_signer(second).key_id
    assert "s" * 8 not in hmac_signer(first).key_id


def test_an_unusable_hmac_secret_is_refused(tmp_path: Path) -> None:
    short = tmp_path / "short"
    short.write_bytes(b"s" * 31)
    for file, why in (
        (None, "Set receipt_hmac_secret_file"),
        (short, "31 bytes"),
        (tmp_path / "none", "cannot be read"),
    ):
        with pytest.raises(OperatorError, match=why) as refusal:
            hmac_signer(file)
        assert refusal.value.code == "HMAC_SECRET_UNUSABLE"


def test_a_key_that_is_compromised_twice_keeps_the_earlier_moment(ring: KeyRing) -> None:
    old = ring.signer().key_id
    ring.compromise(old, NOW, LATER)
    assert ring.compromise(old, LATER, LATER).not_after == timestamp(NOW)
    earlier = NOW - timedelta(days=1)
    assert ring.compromise(old, earlier, LATER).not_after == timestamp(earlier)
