"""Verification: a true record verifies, and no record does after a change to any one of its members."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from typing import Any, Final

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gate.decisions.erasure import build, left_of
from gate.encoding import resources
from gate.encoding.canonical import canonical, content_hash, is_plain
from gate.encoding.strict_json import MAX_VERIFY_DEPTH, parse
from gate.proof import chain
from gate.proof.chain import link_material
from gate.proof.signing import Ed25519Signer, HmacSigner, KeyRegistry
from gate.records.attestation import registration_hash
from gate.records.envelope import envelope, receipt_material, receipt_payload
from gate.records.record import Signers
from gate.records.views import project
from gate.rulebooks.documents import TrustedAdapter
from gate.rulebooks.facts import Facts
from gate.verify import FULL_RECORD, OPTIONAL_MEMBERS, Trust, verify_record
from tests.independent import verifier
from tests.reference.strategies import json_values
from tests.support.samples import (
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
from tests.support.tampering import at, changed, changed_likely, places, with_value
from tests.support.tiers import examples
from tests.support.torture import size

HMAC_SECRET = b"a secret of at least 32 bytes, yes"
HMAC_TRUST = Trust(hmac_secret=HMAC_SECRET, attestation_keys=ATTESTATION_KEYS, source="hmac_secret")


def make_erased(record: Any) -> dict[str, Any]:
    """What is left of a record once it was erased."""
    return left_of(record, build(record, True, "asked for", "era_1", record["created_at"]))


ADAPTER_INPUT = {"list_price": 100, "price": 90.5, "cost": 70}
ADAPTER_REQUEST: dict[str, Any] = {
    **sample_request(),
    "context": {name: value for name, value in sample_request()["context"].items() if name != "inputs"},
    "adapter": {
        "adapter_id": "margins",
        "version": "1.0.0",
        "manifest_hash": content_hash("the manifest"),
        "input": ADAPTER_INPUT,
    },
}


def make_adapter_record(**facts: Any) -> dict[str, Any]:
    """A record whose facts an adapter emitted; by default they are approved."""
    values = facts or sample_request()["context"]["inputs"]
    invocation: TrustedAdapter = {
        "manifest_version": "trusted_adapter_manifest_v1",
        "adapter_id": "margins",
        "version": "1.0.0",
        "implementation_revision": "1",
        "implementation_hash": content_hash("the source"),
        "manifest_hash": content_hash("the manifest"),
        "input_hash": content_hash(ADAPTER_INPUT),
        "output_hash": content_hash(values),
        "execution_isolation": "process_one_shot_v1",
        "capability_enforcement": "seccomp_allow_list_v1",
        "execution_timeout_ms": 1000,
    }
    # Read again as it is sent, so that what it says twice is there twice, and can be changed in one place.
    record = make_record(ADAPTER_REQUEST, facts=Facts(values, is_plain(values), invocation))
    sent: dict[str, Any] = parse(canonical(record), max_depth=MAX_VERIFY_DEPTH)
    return sent


VARIANTS: dict[str, tuple[dict[str, Any], Trust]] = {
    "approved": (make_record(), TRUST),
    "default outcome, no idempotency key": (
        make_record(sample_request(discount_percent=30, margin_percent=22), idempotency_key=None),
        TRUST,
    ),
    "needs input": (make_record(sample_request(margin_percent="22")), TRUST),
    "no registry signing": (make_record(signers=SIGNERS._replace(registry=None)), TRUST),
    "hmac receipt": (make_record(signers=SIGNERS._replace(receipt=HmacSigner("h", HMAC_SECRET))), HMAC_TRUST),
}

ADAPTER_VARIANTS: dict[str, tuple[dict[str, Any], Trust]] = {
    "facts of an adapter": (make_adapter_record(), TRUST),
    "facts of an adapter with empty values, doubles and other names": (
        make_adapter_record(discount_percent=1e-7, margin_percent=1e21, note="", é=[], deep={"x": None}, none=0.0),
        TRUST,
    ),
    "facts of an adapter that need input": (make_adapter_record(margin_percent=None), TRUST),
}

# They stand outside the signature: the first is checked against its own hash, the others against the chain.
OUTSIDE = ("decision_confidence", "audit_chain", "erased")


@pytest.mark.parametrize("name", [*VARIANTS, *ADAPTER_VARIANTS])
def test_a_true_record_verifies_here_and_in_an_independent_verifier(name: str) -> None:
    record, trust = (VARIANTS | ADAPTER_VARIANTS)[name]
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


ERASED = {f"{name}, erased": (make_erased(record), trust) for name, (record, trust) in VARIANTS.items()}


FULL: Final = ("approved", "facts of an adapter", "approved, erased")
"""The kinds that every value is tried on; on the others a third of them at every place, all in the long form."""


@pytest.mark.parametrize(
    "name",
    [
        *FULL,
        *(pytest.param(name, marks=pytest.mark.heavy) for name in (*VARIANTS, *ADAPTER_VARIANTS) if name not in FULL),
    ],
)
def test_no_record_verifies_after_a_change_to_any_one_of_its_members(name: str) -> None:
    record, trust = (VARIANTS | ADAPTER_VARIANTS | ERASED)[name]
    tried, survived = 0, []
    each = 1 if name in FULL else size(3, 1)
    for number, path in enumerate(places({name: value for name, value in record.items() if name not in OUTSIDE})):
        for what, tampered in islice(changed(record, path), number % each, None, each):
            tried += 1
            if verify_record(tampered, trust).verified:
                survived.append(what)
    assert survived == []
    assert tried > 1000 // each


@pytest.mark.parametrize("name", [name for name in (*VARIANTS, *ADAPTER_VARIANTS) if name not in FULL])
def test_no_record_of_another_kind_verifies_after_a_likely_change_to_any_one_of_its_members(name: str) -> None:
    """These differ from those above in what some members hold; at every place what is likely, not whatever JSON has."""
    record, trust = (VARIANTS | ADAPTER_VARIANTS)[name]
    tried, survived = 0, []
    for path in places({name: value for name, value in record.items() if name not in OUTSIDE}):
        for what, tampered in changed_likely(record, path):
            tried += 1
            if verify_record(tampered, trust).verified:
                survived.append(what)
    assert survived == []
    assert tried > 400


OF_AN_ADAPTER = (
    ("trusted_adapter",),
    ("adapter_facts",),
    ("rulebook_attestation", "bundle", "trusted_adapter"),
    ("rulebook_registry", "adapter_dependency"),
    ("evidence_manifest", "sources", 2),
    ("runtime_binding", "adapter_authority"),
    ("runtime_binding", "binding_mode"),
)


def remade(record: dict[str, Any]) -> Any:
    """A record whose hashes were computed anew, as far as that goes without the registry key, and signed."""
    bundle = record["rulebook_attestation"]["bundle"]
    made: Any = with_value(record, ("rulebook_attestation", "bundle_hash"), content_hash(bundle))
    registered = registration_hash(made["rulebook_registry"])
    for path in (("registry_attestation",), ("rulebook_registry", "registry_attestation")):
        made = with_value(made, (*path, "attestation_hash"), registered)
    made["record_hash"] = content_hash(envelope(made))
    made["receipt_hash"] = content_hash(receipt_material(made))
    made["receipt_signature"] = RECEIPT_SIGNER.sign(receipt_payload(made, RECEIPT_SIGNER.key_id))
    made["audit_chain"] = chain.record_link(chain.append(chain.Head("chain_test"), link_material(made)))
    return made


@pytest.mark.parametrize("path", OF_AN_ADAPTER, ids=lambda path: ".".join(map(str, path)))
def test_what_a_record_says_of_an_adapter_is_bound_in_more_than_one_place(path: tuple[Any, ...]) -> None:
    """Even where whoever changed one place computed every hash anew, and has the key that signs receipts."""
    record = make_adapter_record()
    assert verify_record(remade(record), TRUST).verified
    found = [path, *((*path, *inner) for inner in places(at(record, path)))]
    survived = [
        what
        for place in found
        for what, tampered in changed(record, place)
        if verify_record(remade(tampered), replace(TRUST, attestation_keys=KeyRegistry())).verified
    ]
    assert survived == []


def test_every_member_of_an_invocation_is_among_what_is_tampered_with() -> None:
    tried = set(places(ADAPTER_VARIANTS["facts of an adapter"][0]))
    for holder in (("trusted_adapter",), ("rulebook_attestation", "bundle", "trusted_adapter")):
        assert len([path for path in tried if path[:-1] == holder]) == 11
    assert len([path for path in tried if path[:-1] == ("rulebook_registry", "adapter_dependency")]) == 4
    assert len([path for path in tried if path[:-1] == ("evidence_manifest", "sources", 2)]) == 3


def test_a_record_verifies_with_the_request_that_invoked_its_adapter() -> None:
    record = make_adapter_record()
    result = verify_record(record, TRUST, request_body=ADAPTER_REQUEST)
    assert (result.verified, result.error) == (True, None)
    names = ("input_hash", "adapter_input_hash", "facts_hash", "rulebook_hash")
    assert [result.checks[name] for name in names] == [True] * 4
    failures = verifier.record_failures(
        record,
        RECEIPT_KEYS.to_dict(),
        attestation_keys=ATTESTATION_KEYS.to_dict(),
        request_body=ADAPTER_REQUEST,
    )
    assert failures == []
    alone = verify_record(record, TRUST)
    assert [alone.checks[name] for name in names] == [None, None, True, None]


@pytest.mark.parametrize(
    ("path", "value", "failing"),
    [
        (("adapter", "input", "price"), 91, {"input_hash", "adapter_input_hash"}),
        (("adapter", "manifest_hash"), "0" * 64, {"input_hash"}),
        (("adapter", "version"), "1.0.1", {"input_hash"}),
        (("adapter",), {}, {"input_hash", "adapter_input_hash"}),
        (("context", "workflow"), "other", {"input_hash"}),
        (("rulebook", "version"), "other", {"input_hash", "rulebook_hash"}),
    ],
    ids=lambda value: ".".join(value) if isinstance(value, tuple) else None,
)
def test_a_record_does_not_verify_with_another_invocation(path: tuple[str, ...], value: Any, failing: set[str]) -> None:
    other = with_value(ADAPTER_REQUEST, path, value)
    result = verify_record(make_adapter_record(), TRUST, request_body=other)
    assert {name for name, holds in result.checks.items() if holds is False} == failing
    assert (result.verified, result.error) == (False, "INPUT_MISMATCH")


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


@settings(max_examples=examples(size(100, 300)), deadline=None)
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


@settings(max_examples=examples(size(60, 100)), deadline=None)
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


def test_another_request_is_told_apart_from_another_record() -> None:
    record, other = make_record(), sample_request(margin_percent=1)
    result = verify_record(record, TRUST, request_body=other)
    assert (result.verified, result.error) == (False, "INPUT_MISMATCH")
    assert verify_record(record, Trust(), request_body=other).error == "RECORD_INTEGRITY_FAILED"
    forged = {**record, "input_hash": content_hash("another")}
    forged["record_hash"] = content_hash(envelope(forged))
    forged["receipt_hash"] = content_hash(receipt_material(forged))
    result = verify_record(forged, TRUST, request_body=other)
    assert (result.verified, result.error) == (False, "RECORD_INTEGRITY_FAILED")
    assert "receipt_signature" in (result.message or "")


def test_facts_that_are_not_those_of_the_right_request_are_the_record_s_fault() -> None:
    bundle = ("rulebook_attestation", "bundle", "input_hash")
    forged = with_value(make_record(), bundle, content_hash({"margin_percent": 90}))
    result = verify_record(forged, TRUST, request_body=sample_request())
    assert (result.verified, result.error) == (False, "RECORD_INTEGRITY_FAILED")


def test_a_single_key_that_is_not_the_record_s_accuses_no_record() -> None:
    trust = Trust(public_key=OTHER.public_key, source="public_key")
    result = verify_record(make_record(), trust)
    assert (result.verified, result.integrity_valid, result.error) == (False, True, "SIGNING_KEY_UNKNOWN")
    changed = verify_record({**make_record(), "action": "approve_anything"}, trust)
    assert (changed.integrity_valid, changed.error) == (False, "RECORD_INTEGRITY_FAILED")


def test_members_that_no_release_made_are_named_also_within_the_audit_chain() -> None:
    record = make_record()
    record = {**record, "stamp": "x", "audit_chain": {**record["audit_chain"], "approved": "by the board"}}
    result = verify_record(record, TRUST)
    assert (result.verified, result.unknown) == (True, ["stamp", "audit_chain.approved"])
    assert result.to_dict()["unknown_members"] == result.unknown


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
        (Trust(public_key=OTHER.public_key, source="public_key"), "SIGNING_KEY_UNKNOWN", "none", None, False),
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


class TestErased:
    """Records of which something was erased."""

    @pytest.mark.parametrize("name", ERASED)
    def test_what_is_left_of_a_record_verifies_and_says_what_was_erased(self, name: str) -> None:
        record, trust = ERASED[name]
        result = verify_record(record, trust)
        assert (result.verified, result.error) == (True, "MATERIAL_ERASED")
        unchecked = {check for check, holds in result.checks.items() if holds is None}
        assert {"evaluation", "facts_hash", "input_hash", "erasure"} <= unchecked
        assert [result.checks[check] for check in ("record_hash", "receipt_hash", "receipt_signature")] == [True] * 3
        shown = result.to_dict()
        assert (shown["notice"], "error" in shown) == ("MATERIAL_ERASED", False)
        assert "evaluation, input" in (shown["message"] or "")
        if trust is TRUST and record["registry_attestation"]["status"] == "signed":
            keys = RECEIPT_KEYS.to_dict(), ATTESTATION_KEYS.to_dict()
            assert verifier.record_failures(record, keys[0], attestation_keys=keys[1]) == []

    def test_who_kept_the_request_can_still_check_it(self) -> None:
        record = make_erased(make_record())
        result = verify_record(record, TRUST, request_body=sample_request())
        assert [result.checks[name] for name in ("input_hash", "facts_hash", "rulebook_hash")] == [True] * 3
        other = verify_record(record, TRUST, request_body=sample_request(margin_percent=1))
        assert (other.verified, other.error) == (False, "INPUT_MISMATCH")

    def test_who_says_that_facts_were_erased_makes_no_other_adapter_authentic(self) -> None:
        erased = make_erased(make_adapter_record())
        assert verify_record(erased, TRUST).authenticity_valid
        lineage = {"implementation_hash": "0" * 64}
        forged = {**erased, "trusted_adapter": erased["trusted_adapter"] | lineage}
        registry = forged["rulebook_registry"] = dict(erased["rulebook_registry"])
        registry["adapter_dependency"] = registry["adapter_dependency"] | lineage
        unsigned = {"status": "unsigned", "key_id": None, "signature": None}
        registry["registry_attestation"] = forged["registry_attestation"] = {
            **registry["registry_attestation"],
            "attestation_hash": registration_hash(registry),
            **unsigned,
        }
        bundle = {**erased["rulebook_attestation"]["bundle"], "trusted_adapter": forged["trusted_adapter"]}
        forged["rulebook_attestation"] = {
            **erased["rulebook_attestation"],
            "bundle": bundle,
            "bundle_hash": content_hash(bundle),
            "signature": erased["rulebook_attestation"]["signature"] | unsigned,
        }
        result = verify_record(forged, TRUST)
        assert [name for name, holds in result.checks.items() if holds is False] == []
        assert (result.verified, result.authenticity_valid) == (False, False)

    def test_without_the_facts_of_an_adapter_integrity_is_not_established(self) -> None:
        whole = make_adapter_record()
        assert verify_record(whole, TRUST).verified
        result = verify_record(make_erased(whole), TRUST)
        assert (result.verified, result.integrity_valid, result.authenticity_valid) == (False, False, True)
        assert (result.error, result.to_dict()["error"]) == ("MATERIAL_ERASED", "MATERIAL_ERASED")
        assert False not in result.checks.values()
        for name in ("record_hash", "evaluation", "facts_hash"):
            assert result.checks[name] is None
        for name in ("receipt_hash", "receipt_signature", "audit_chain.leaf_hash", "rulebook_attestation"):
            assert result.checks[name] is True
        assert verify_record(make_erased(whole), Trust()).error == "SIGNING_KEY_UNKNOWN"

    @pytest.mark.parametrize("make", [make_record, make_adapter_record])
    def test_what_is_left_out_without_being_marked_as_erased_does_not_verify(self, make: Callable[[], Any]) -> None:
        record = make_erased(make())
        unmarked = {name: value for name, value in record.items() if name != "erased"}
        assert verify_record(unmarked, TRUST).error == "RECORD_INVALID"
        del unmarked["evaluation"]
        assert verify_record(unmarked, TRUST).error == "RECORD_INCOMPLETE"

    @pytest.mark.parametrize(
        "note",
        [
            {},
            {"members": ["evaluation", "input"]},
            {"erasure_id": "era_1", "erased_at": "x", "members": []},
            {"erasure_id": "era_1", "erased_at": "x", "members": ["input"]},
            {"erasure_id": "era_1", "erased_at": "x", "members": ["input", "evaluation"]},
            {"erasure_id": "era_1", "erased_at": "x", "members": ["evaluation", "evaluation"]},
            {"erasure_id": "era_1", "erased_at": "x", "members": ["evaluation", "verdict"]},
            {"erasure_id": "era_1", "erased_at": "x", "members": ["evaluation", {}]},
            {"erasure_id": "era_1", "erased_at": "x", "members": "evaluation"},
            {"erasure_id": "", "erased_at": "x", "members": ["evaluation"]},
            {"erasure_id": "era_1", "erased_at": None, "members": ["evaluation"]},
            {"erasure_id": "era_1", "erased_at": "x", "members": ["evaluation"], "more": 1},
            [],
            None,
            "evaluation",
        ],
    )
    def test_a_malformed_note_does_not_verify(self, note: Any) -> None:
        result = verify_record(make_erased(make_record()) | {"erased": note}, TRUST)
        assert (result.verified, result.error in ("RECORD_INTEGRITY_FAILED", "RECORD_INVALID")) == (False, True)

    def test_marking_a_record_as_erased_hides_nothing_but_what_is_gone(self) -> None:
        """An attacker can drop the explanation, and that is all: what is there is checked as ever."""
        record = make_record()
        note = make_erased(record)["erased"]
        for forged in (
            record | {"erased": note},
            record | {"erased": note, "evaluation": {}},
            make_erased(record) | {"reason_code": "OTHER"},
            make_erased(record) | {"adapter_facts": None},
            make_erased(record) | {"erased": note | {"members": ["adapter_facts", "evaluation", "input"]}},
            make_erased(make_adapter_record()) | {"verdict": "no"},
            make_erased(make_adapter_record()) | {"input_hash": "0" * 64},
        ):
            assert not verify_record(forged, TRUST).verified
        told = make_erased(record) | {"erased": note | {"erasure_id": "era_2"}}
        assert verify_record(told, TRUST).checks["erasure"] is None

    @pytest.mark.parametrize("view", ["minimal", "standard", "full"])
    def test_every_view_says_that_it_was_erased(self, view: str) -> None:
        record = make_erased(make_adapter_record())
        shown = project(record, view)
        assert shown["erased"] == record["erased"]
        schema = resources.schema("decision-record-v1")
        named = {"full": "after_erasure"}.get(view, view)
        jsonschema.Draft202012Validator({**schema, "$ref": f"#/$defs/{named}"}).validate(shown)
