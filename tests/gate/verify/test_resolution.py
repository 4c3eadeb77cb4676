"""Verification of resolutions: a true one holds, and a change to any member of it is found."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from gate.ids import timestamp
from gate.proof.signing import Ed25519Signer, HmacSigner, KeyRegistry
from gate.records.packet import packet_hash
from gate.verify import Trust, verify_packet
from gate.verify.resolution import verify_resolution
from tests.independent import verifier
from tests.support.samples import (
    GRANT,
    HELD,
    NOW,
    RECEIPT_KEYS,
    RECEIPT_SIGNER,
    TRUST,
    make_packet,
    make_record,
    make_resolution,
    public_key,
    sample_request,
)
from tests.support.tampering import changed_likely, places, without

RECORD: Any = make_record(sample_request(**HELD))
OTHER = Ed25519Signer("receipt_other", b"o" * 32)
ANSWERS = {
    "granted": GRANT,
    "refused": {"resolution": "refused", "resolved_by": "Maya Lindqvist"},
    "expired": {"resolution": "expired", "resolved_by": "Maya Lindqvist", "note": "Nobody answered."},
}


def independent_failures(resolution: Any, record: Any = RECORD) -> list[str]:
    return verifier.resolution_failures(resolution, record, RECEIPT_KEYS.to_dict())


@pytest.mark.parametrize("answer", ANSWERS)
def test_a_true_resolution_verifies_here_and_in_an_independent_verifier(answer: str) -> None:
    resolution = make_resolution(RECORD, body=ANSWERS[answer])
    result = verify_resolution(resolution, RECORD, TRUST)
    assert (result.verified, result.error, set(result.checks.values())) == (True, None, {True})
    assert independent_failures(resolution) == []


def test_a_change_to_any_member_is_found_here_and_in_an_independent_verifier() -> None:
    resolution, tried = make_resolution(RECORD), 0
    for path in places(resolution):
        for what, tampered in changed_likely(resolution, path):
            tried += 1
            result = verify_resolution(tampered, RECORD, TRUST)
            if path == () and result.verified:
                # A member that no release knows is noted, and vouched for by nothing.
                assert result.checks["unknown_members"] is None, what
            elif path[:1] == ("audit_chain",) and path[1:] not in ((), ("entry_type",), ("leaf_hash",)):
                # The rest of a link is for the chain to prove.
                continue
            elif path == ("audit_chain",) and result.verified:
                continue
            else:
                assert (path, result.verified, result.error is not None) == (path, False, True), what
                assert independent_failures(tampered) != [], (path, what)
    assert tried > 60


@pytest.mark.parametrize(
    "name",
    [name for name in make_resolution(RECORD) if name != "audit_chain"],
)
def test_a_member_that_is_taken_away_is_missed(name: str) -> None:
    stripped = without(make_resolution(RECORD), (name,))
    assert not verify_resolution(stripped, RECORD, TRUST).verified
    assert independent_failures(stripped) != []


def test_a_resolution_is_about_one_decision_and_about_a_held_one() -> None:
    resolution = make_resolution(RECORD)
    for other in (make_record(sample_request(**HELD), serial=2), make_record()):
        result = verify_resolution(resolution, other, TRUST)
        assert (result.verified, result.error) == (False, "RESOLUTION_FOREIGN")
        assert independent_failures(resolution, other) != []
    # As a service would make it that resolves what was never held.
    approved = make_record()
    result = verify_resolution(make_resolution(approved), approved, TRUST)
    assert (result.verified, result.error, result.checks["held"]) == (False, "RESOLUTION_FOREIGN", False)


def test_only_a_trusted_key_makes_a_resolution_verified() -> None:
    forged = make_resolution(RECORD, signer=OTHER)
    result = verify_resolution(forged, RECORD, TRUST)
    assert (result.verified, result.integrity_valid, result.error) == (False, True, "SIGNING_KEY_UNKNOWN")
    result = verify_resolution(forged, RECORD, Trust(), untrusted_key=OTHER.public_key)
    assert (result.verified, result.key_source, result.error) == (False, "request", "SIGNING_KEY_NOT_TRUSTED")
    # The same under the trusted key's name.
    renamed = make_resolution(RECORD, signer=Ed25519Signer(RECEIPT_SIGNER.key_id, b"o" * 32))
    result = verify_resolution(renamed, RECORD, TRUST)
    assert (result.verified, result.error) == (False, "RESOLUTION_SIGNATURE_INVALID")
    unsigned = make_resolution(RECORD, signer=None)
    result = verify_resolution(unsigned, RECORD, TRUST)
    assert (result.verified, result.integrity_valid, result.error) == (False, False, "RESOLUTION_UNSIGNED")


@pytest.mark.parametrize(("status", "verified"), [("retired", False), ("compromised", False), ("active", True)])
def test_a_resolution_that_is_dated_after_its_key_s_end_does_not_count(status: str, verified: bool) -> None:
    ended = None if status == "active" else timestamp(NOW - timedelta(seconds=1))
    key = replace(public_key(RECEIPT_SIGNER), status=status, not_after=ended)
    trust = Trust(receipt_keys=KeyRegistry((key,), None), source="registry")
    assert verify_resolution(make_resolution(RECORD), RECORD, trust).verified is verified


def test_an_hmac_resolution_verifies_for_the_holder_of_the_secret() -> None:
    signer = HmacSigner("hmac_test", b"s" * 32)
    resolution = make_resolution(RECORD, signer=signer)
    assert verify_resolution(resolution, RECORD, Trust(hmac_secret=signer.secret, source="hmac_secret")).verified
    wrong = verify_resolution(resolution, RECORD, Trust(hmac_secret=b"t" * 32, source="hmac_secret"))
    assert (wrong.verified, wrong.error) == (False, "RESOLUTION_SIGNATURE_INVALID")


@pytest.mark.parametrize("document", [None, [], "granted", 1, {}, {"resolution": "granted"}])
def test_what_is_no_resolution_is_refused(document: Any) -> None:
    result = verify_resolution(document, RECORD, TRUST)
    assert (result.verified, result.error) == (False, "RESOLUTION_INVALID")


def rehashed(packet: Any) -> Any:
    return {**packet, "packet_hash": packet_hash(packet)}


def test_a_change_to_any_member_of_a_packet_s_resolution_is_found() -> None:
    packet, tried = make_packet(resolved=GRANT), 0
    for path in places(packet):
        if path[:1] != ("resolution",):
            continue
        for what, tampered in changed_likely(packet, path):
            tried += 1
            result = verify_packet(rehashed(tampered), TRUST)
            added = path in (("resolution",), ("resolution", "audit_chain")) and result.verified
            assert added or not result.verified, (path, what)
    assert tried > 60


def test_a_resolution_that_is_left_out_of_a_packet_is_missed() -> None:
    packet = make_packet(resolved=GRANT)
    left_out = rehashed({name: value for name, value in packet.items() if name != "resolution"})
    result = verify_packet(left_out, TRUST)
    failed = {name for name, holds in result.checks.items() if holds is False}
    # Its link is there, and the receipt behind it has no flag.
    assert {"resolution.link", "execution_receipts[0].flags"} <= failed
    assert result.error == "PACKET_INTEGRITY_FAILED"


def test_a_grant_without_its_signature_puts_no_receipt_in_order() -> None:
    packet = make_packet(resolved=GRANT)
    stripped = dict(packet["resolution"])
    del stripped["signature"], stripped["key_id"]
    result = verify_packet(rehashed({**packet, "resolution": stripped}), TRUST)
    failed = {name for name, holds in result.checks.items() if holds is False}
    assert failed == {"execution_receipts[0].flags", "execution_receipts"}


def test_a_grant_puts_no_receipt_in_order_that_stands_before_it() -> None:
    packet = make_packet(resolved=GRANT)
    flags = [receipt["flags"] for receipt in packet["execution_receipts"]]
    assert flags[-1] == ["DECISION_NOT_APPROVED"]
    assert "DECISION_NOT_APPROVED" not in flags[0]
    forged = [dict(receipt) for receipt in packet["execution_receipts"]]
    forged[-1]["flags"] = []
    assert not verify_packet(rehashed({**packet, "execution_receipts": forged}), TRUST).verified
