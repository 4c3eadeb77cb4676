"""Verification: a true record verifies, and no record does after a change to any one of its members."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gate.canonical import content_hash
from gate.record import Signers
from gate.signing import Ed25519Signer, HmacSigner, KeyRegistry
from gate.verify import FULL_RECORD, OPTIONAL_MEMBERS, Trust, verify_record
from gate.views import project
from tests.independent import verifier
from tests.reference.strategies import json_values
from tests.support import (
    ATTESTATION_KEYS,
    RECEIPT_KEYS,
    RECEIPT_SIGNER,
    REGISTRY_SIGNER,
    SIGNERS,
    TRUST,
    make_record,
    public_key,
    sample_request,
)

HMAC_SECRET = b"a secret of at least 32 bytes, yes"
HMAC_TRUST = Trust(hmac_secret=HMAC_SECRET, attestation_keys=ATTESTATION_KEYS, source="hmac_secret")

VARIANTS: dict[str, tuple[dict[str, Any], Trust]] = {
    "approved": (make_record(), TRUST),
    "default outcome, no idempotency key": (
        make_record(sample_request(discount_percent=30, margin_percent=22), idempotency_key=None),
        TRUST,
    ),
    "needs input": (make_record(sample_request(margin_percent="22")), TRUST),
    "no registry signing": (make_record(signers=replace(SIGNERS, registry=None)), TRUST),
    "hmac receipt": (make_record(signers=replace(SIGNERS, receipt=HmacSigner("h", HMAC_SECRET))), HMAC_TRUST),
}

# They stand outside the signature: the one is checked against its own hash, the other against the chain.
OUTSIDE = ("decision_confidence", "audit_chain")


@pytest.mark.parametrize("name", VARIANTS)
def test_a_true_record_verifies_here_and_in_an_independent_verifier(name: str) -> None:
    record, trust = VARIANTS[name]
    result = verify_record(record, trust)
    assert result.verified
    assert result.error is None
    assert False not in result.checks.values()
    assert result.to_dict().keys() == {
        "ok",
        "verified",
        "integrity_valid",
        "authenticity_valid",
        "key_source",
        "checks",
        "expected",
        "actual",
    }
    signs = record["registry_attestation"]["status"] == "signed"
    failures = verifier.record_failures(
        record,
        RECEIPT_KEYS.to_dict() if trust is TRUST else None,
        attestation_keys=ATTESTATION_KEYS.to_dict() if signs else None,
        hmac_secret=trust.hmac_secret,
    )
    assert failures == []


def test_a_record_verifies_with_its_request() -> None:
    request = sample_request()
    result = verify_record(make_record(request), TRUST, request_body=request)
    assert result.verified
    assert [result.checks[name] for name in ("input_hash", "facts_hash", "rulebook_hash")] == [True] * 3
    viewed = verify_record(make_record(request), TRUST, request_body=request | {"response_view": "minimal"})
    assert viewed.verified
    failures = verifier.record_failures(
        make_record(request),
        RECEIPT_KEYS.to_dict(),
        attestation_keys=ATTESTATION_KEYS.to_dict(),
        request_body=request,
    )
    assert failures == []


@pytest.mark.parametrize(
    ("change", "failing"),
    [
        (lambda r: r["context"].update(workflow="other"), {"input_hash"}),
        (lambda r: r["context"]["inputs"].update(discount_percent=9), {"input_hash", "facts_hash"}),
        (lambda r: r["rulebook"].update(version="other"), {"input_hash", "rulebook_hash"}),
        (lambda r: r.clear(), {"input_hash", "facts_hash"}),
    ],
)
def test_a_record_does_not_verify_with_another_request(change: Callable[[Any], Any], failing: set[str]) -> None:
    request = sample_request()
    record = make_record(request)
    change(request)
    result = verify_record(record, TRUST, request_body=request)
    assert not result.verified
    assert {name for name, holds in result.checks.items() if holds is False} == failing


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, item in items:
        if not path and step in OUTSIDE:
            continue
        yield (*path, step)
        yield from places(item, (*path, step))


def other_values(value: Any) -> list[Any]:
    """Values that differ from one: empty ones, other types, and neighbours."""
    others: list[Any] = [None, "", {}, [], 0, False, True, 1, "x", {"x": 1}, [1]]
    if isinstance(value, str):
        others += [f"{value}x", f"{value} ", value[:-1], value.upper(), value[:-1] + chr(ord(value[-1:] or "a") ^ 1)]
    if isinstance(value, int | float):
        others += [value + 1, -value - 1, value + 0.5, str(value)]
    if isinstance(value, list):
        others += [[*value, "x"], [*value, None], value[1:], value[::-1], [*value, *value[:1]]]
    if isinstance(value, dict):
        others += [{**value, "x": 1}, {**value, "x": None}, {**value, "x": ""}, {**value, "x": {}}]
    return [other for other in others if content_hash(other) != content_hash(value)]


def changed(record: dict[str, Any], path: tuple[Any, ...]) -> Iterator[tuple[str, dict[str, Any]]]:
    def holder(copied: dict[str, Any]) -> Any:
        place: Any = copied
        for step in path[:-1]:
            place = place[step]
        return place

    for other in other_values(holder(record)[path[-1]]):
        copied = copy.deepcopy(record)
        holder(copied)[path[-1]] = other
        yield f"{path} = {other!r}", copied
    copied = copy.deepcopy(record)
    del holder(copied)[path[-1]]
    yield f"{path} removed", copied


@pytest.mark.parametrize("name", VARIANTS)
def test_no_record_verifies_after_a_change_to_any_one_of_its_members(name: str) -> None:
    record, trust = VARIANTS[name]
    tried, survived = 0, []
    for path in places(record):
        for what, tampered in changed(record, path):
            tried += 1
            if verify_record(tampered, trust).verified:
                survived.append(what)
    assert survived == []
    assert tried > 1500


def test_a_member_that_was_never_there_cannot_be_added() -> None:
    record = VARIANTS["default outcome, no idempotency key"][0]
    additions: dict[str, list[Any]] = {
        "idempotency_key": ["", "k"],
        "decision_contract": [{"authority": "advisory_only"}, {}],
        "trusted_adapter": [{}, {"adapter_id": "x"}],
        "adapter_facts": [{}, {"x": 1}],
        "confidence_hash": ["0" * 64, ""],
        "decision_confidence": [{}, {"score": 1}],
    }
    for name, values in additions.items():
        for value in values:
            assert not verify_record({**record, name: value}, TRUST).verified, (name, value)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(sorted({**FULL_RECORD, **OPTIONAL_MEMBERS})), json_values())
def test_verification_never_raises_and_never_believes(name: str, value: Any) -> None:
    record = {**make_record(), name: value}
    result = verify_record(record, TRUST)
    if name not in OUTSIDE:
        assert result.verified is (content_hash(value) == content_hash(make_record().get(name, "\u0000absent")))
    result.to_dict()


@pytest.mark.parametrize("date", ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "", "2026", "\u0000"])
def test_odd_dates_are_no_dates(date: str) -> None:
    record = make_record()
    assert not verify_record({**record, "created_at": date}, TRUST).verified
    registry = {**record["rulebook_registry"], "registered_at": date}
    assert not verify_record({**record, "rulebook_registry": registry}, TRUST).verified


@settings(max_examples=100, deadline=None)
@given(json_values())
def test_what_is_no_record_is_not_verified(value: Any) -> None:
    result = verify_record(value, TRUST, request_body=value)
    assert not result.verified
    assert result.error in ("RECORD_INVALID", "RECORD_INCOMPLETE")


@pytest.mark.parametrize("view", ["minimal", "standard"])
def test_a_partial_view_is_incomplete(view: str) -> None:
    result = verify_record(project(make_record(), view), TRUST)
    assert (result.verified, result.error) == (False, "RECORD_INCOMPLETE")
    assert "evaluation" in (result.message or "")


def test_audit_chain_must_be_that_of_the_record_as_far_as_a_record_can_tell() -> None:
    record = make_record()
    for name in ("decision_chain_version", "entry_type", "leaf_hash"):
        tampered = {**record, "audit_chain": record["audit_chain"] | {name: "0" * 64}}
        assert verify_record(tampered, TRUST).checks["audit_chain.leaf_hash"] is False
    without = {name: value for name, value in record.items() if name != "audit_chain"}
    assert "audit_chain.leaf_hash" not in verify_record(without, TRUST).checks


def test_decision_confidence_must_match_its_own_hash() -> None:
    confidence = {"decision_confidence_version": "decision_confidence_v1", "score": 0.9, "level": "high"}
    confidence["confidence_hash"] = content_hash(confidence)
    record = make_record() | {"decision_confidence": confidence, "confidence_hash": confidence["confidence_hash"]}
    assert verify_record(record, TRUST).verified
    for tampered in (
        record | {"decision_confidence": confidence | {"score": 1.0}},
        record | {"confidence_hash": "0" * 64},
        {name: value for name, value in record.items() if name != "decision_confidence"},
    ):
        assert verify_record(tampered, TRUST).checks["confidence_hash"] is False


OTHER = Ed25519Signer("receipt_test", b"x" * 32)


@pytest.mark.parametrize(
    ("trust", "error", "source", "signature", "key"),
    [
        (Trust(), "SIGNING_KEY_UNKNOWN", "none", None, False),
        (Trust(receipt_keys=KeyRegistry(), source="registry"), "SIGNING_KEY_UNKNOWN", "none", None, False),
        (
            Trust(receipt_keys=KeyRegistry((public_key(OTHER),), None), source="registry"),
            "RECORD_INTEGRITY_FAILED",
            "registry",
            False,
            True,
        ),
        (Trust(public_key=RECEIPT_SIGNER.public_key, source="public_key"), None, "public_key", True, True),
        (Trust(public_key=OTHER.public_key, source="public_key"), "RECORD_INTEGRITY_FAILED", "public_key", False, True),
        (HMAC_TRUST, "SIGNING_KEY_UNKNOWN", "none", None, False),
    ],
    ids=["nothing", "empty registry", "another key of that name", "its key", "another key", "hmac secret"],
)
def test_authenticity_needs_the_right_trusted_key(
    trust: Trust, error: str | None, source: str, signature: bool | None, key: bool
) -> None:
    result = verify_record(make_record(), trust)
    assert result.verified is (error is None)
    assert (result.error, result.key_source) == (error, source)
    assert (result.checks["receipt_signature"], result.checks["receipt_key"]) == (signature, key)


@pytest.mark.parametrize(
    ("status", "not_after", "verified"),
    [
        ("active", None, True),
        ("retired", "2026-06-11T12:30:45.678Z", True),
        ("retired", "2026-06-11T12:30:45.677Z", False),
        ("compromised", "2026-06-12T00:00:00.000Z", False),
        ("compromised", None, False),
    ],
)
def test_the_state_of_a_key_decides(status: str, not_after: str | None, verified: bool) -> None:
    keys = KeyRegistry((public_key(RECEIPT_SIGNER, status=status, not_after=not_after),), None)
    result = verify_record(make_record(), replace(TRUST, receipt_keys=keys))
    assert result.verified is verified
    assert result.integrity_valid
    assert result.checks["receipt_signature"] is True
    if not verified:
        assert result.error == "SIGNING_KEY_NOT_TRUSTED"
        assert "receipt_test" in (result.message or "")


def test_a_key_that_came_with_the_record_shows_integrity_and_never_verifies() -> None:
    result = verify_record(make_record(), Trust(), untrusted_key=RECEIPT_SIGNER.public_key)
    assert (result.verified, result.integrity_valid, result.authenticity_valid) == (False, True, False)
    assert (result.key_source, result.error) == ("request", "SIGNING_KEY_NOT_TRUSTED")
    assert result.checks["receipt_signature"] is True
    known = verify_record(make_record(), TRUST, untrusted_key=OTHER.public_key)
    assert known.verified, "a known key is used whatever came with the record"


def test_a_record_forged_with_its_own_key_is_not_verified() -> None:
    forged = make_record(signers=Signers(OTHER, REGISTRY_SIGNER))
    result = verify_record(forged, TRUST, untrusted_key=OTHER.public_key)
    assert not result.verified
    assert result.key_source == "registry"


def test_an_unsigned_record_is_not_verified() -> None:
    result = verify_record(make_record(signers=Signers(None, None)), TRUST)
    assert (result.verified, result.integrity_valid, result.error) == (False, True, "RECORD_UNSIGNED")
    stripped = {name: value for name, value in make_record().items() if not name.startswith("receipt_s")}
    assert not verify_record(stripped, TRUST).verified


def test_hmac_needs_the_secret() -> None:
    record = VARIANTS["hmac receipt"][0]
    assert verify_record(record, HMAC_TRUST).key_source == "hmac_secret"
    assert not verify_record(record, replace(HMAC_TRUST, hmac_secret=b"z" * 32)).verified
    assert verify_record(record, TRUST).error == "SIGNING_KEY_UNKNOWN"


def test_attestations_are_checked_where_their_keys_are_known() -> None:
    names = ("attestation_signature", "registry_attestation_signature")
    record = make_record()
    assert [verify_record(record, TRUST).checks[name] for name in names] == [True, True]
    unknown = verify_record(record, replace(TRUST, attestation_keys=KeyRegistry()))
    assert ([unknown.checks[name] for name in names], unknown.verified) == ([None, None], True)
    forged = Ed25519Signer(REGISTRY_SIGNER.key_id, b"y" * 32)
    wrong = verify_record(record, replace(TRUST, attestation_keys=KeyRegistry((public_key(forged),), None)))
    assert ([wrong.checks[name] for name in names], wrong.verified) == ([False, False], False)
    assert wrong.error == "RECORD_SIGNATURE_INVALID"
    late = public_key(REGISTRY_SIGNER, status="retired", not_after="2026-06-01T00:00:00.000Z")
    retired = verify_record(record, replace(TRUST, attestation_keys=KeyRegistry((late,), None)))
    assert not retired.verified
    known = public_key(REGISTRY_SIGNER, status="compromised")
    compromised = verify_record(record, replace(TRUST, attestation_keys=KeyRegistry((known,), None)))
    assert ([compromised.checks[name] for name in names], compromised.verified) == ([None, None], True)


def test_a_change_weighs_more_than_an_unknown_key() -> None:
    for trust in (Trust(), TRUST):
        assert verify_record(make_record() | {"v": "DENY"}, trust).error == "RECORD_INTEGRITY_FAILED"


def test_members_that_nothing_vouches_for_are_named_unchecked() -> None:
    result = verify_record(make_record() | {"approved_by": "the chief"}, TRUST)
    assert (result.verified, result.checks["unknown_members"]) == (True, None)
    assert verify_record(make_record(), TRUST).checks["unknown_members"] is True


def test_an_hmac_receipt_under_an_earlier_secret_is_unknown_rather_than_false() -> None:
    record = VARIANTS["hmac receipt"][0]
    result = verify_record(record, replace(HMAC_TRUST, hmac_secret=b"n" * 32, hmac_key_id="another"))
    assert (result.verified, result.error) == (False, "SIGNING_KEY_UNKNOWN")
    assert result.checks["receipt_signature"] is None


def test_what_differs_is_shown() -> None:
    result = verify_record(make_record() | {"v": "DENY"}, TRUST)
    assert (result.expected["v"], result.actual["v"]) == ("APPROVE", "DENY")
    assert result.error == "RECORD_INTEGRITY_FAILED"
    assert "v" in (result.message or "")
    assert result.to_dict()["ok"] is False
