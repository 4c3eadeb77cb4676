"""Verification of packets: a true one verifies, no change to one stays hidden that a signature covers, and what none
covers is told.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gate.encoding.canonical import canonical, with_integers
from gate.ids import timestamp
from gate.proof import chain
from gate.proof.chain import Head
from gate.proof.checkpoint import sign_checkpoint
from gate.proof.signing import Ed25519Signer, HmacSigner, KeyRegistry
from gate.records.changes import MIGRATIONS, ROUTES, entry_link
from gate.records.packet import packet_hash
from gate.records.record import Signers
from gate.verify import PacketVerification, Trust, verify_packet
from gate.verify.packets.packet_result import MAX_FAILURES, STEPS
from tests.independent import verifier
from tests.reference.strategies import json_values
from tests.support.migrations import Example
from tests.support.samples import (
    ATTESTATION_KEYS,
    GRANT,
    NOW,
    RECEIPT_KEYS,
    RECEIPT_SIGNER,
    REGISTRY_SIGNER,
    SIGNERS,
    TRUST,
    cases,
    make_packet,
    make_record,
    public_key,
    sample_request,
)
from tests.support.tampering import COLLECTIONS, Forger, as_doubles, at, changed_likely, places, with_value, without
from tests.support.tampering import Path as Place
from tests.support.tiers import examples
from tests.support.torture import LONG, size

ROOT = Path(__file__).parents[3]
ATTACKS = cases("packet_attacks")
CHECKPOINT = "audit_chain.verification_hints.checkpoint"
CHECKPOINT_PATH = tuple(CHECKPOINT.split("."))

HMAC_SECRET = b"a secret of at least 32 bytes, yes"
HMAC_SIGNER = HmacSigner("h", HMAC_SECRET)
HMAC_TRUST = Trust(hmac_secret=HMAC_SECRET, attestation_keys=ATTESTATION_KEYS, source="hmac_secret")
OTHER = Ed25519Signer("receipt_other", b"o" * 32)
LATER = "2026-06-12T00:00:00.000Z"


def hmac_packet() -> Any:
    return make_packet(record=make_record(signers=SIGNERS._replace(receipt=HMAC_SIGNER)), signer=HMAC_SIGNER)


VARIANTS: dict[str, tuple[dict[str, Any], Trust]] = {
    "whole": (make_packet(), TRUST),
    "few links": (make_packet(chain_limit=3), TRUST),
    "one link, no input": (make_packet(chain_limit=1, with_input=False), TRUST),
    "held": (
        make_packet(record=make_record(sample_request(discount_percent=30, margin_percent=22)), with_input=False),
        TRUST,
    ),
    "granted": (make_packet(resolved=GRANT), TRUST),
    "refused": (make_packet(resolved={"resolution": "refused", "resolved_by": "Maya Lindqvist"}), TRUST),
    "no checkpoint": (make_packet(signer=None), TRUST),
    "hmac": (hmac_packet(), HMAC_TRUST),
}


def independent_failures(packet: Any) -> list[str]:
    return verifier.packet_failures(packet, RECEIPT_KEYS.to_dict(), attestation_keys=ATTESTATION_KEYS.to_dict())


def failing(result: PacketVerification) -> set[str]:
    return {name for name, holds in result.checks.items() if holds is False}


def unchecked(result: PacketVerification) -> set[str]:
    return {name for name, holds in result.checks.items() if holds is None}


def rehashed(packet: Any) -> dict[str, Any]:
    return {**packet, "packet_hash": packet_hash(packet)}


@pytest.mark.parametrize("name", VARIANTS)
def test_a_true_packet_verifies_here_and_in_an_independent_verifier(name: str) -> None:
    packet, trust = VARIANTS[name]
    result = verify_packet(packet, trust)
    notice = "REPORTS_UNSIGNED" if name in ("few links", "one link, no input", "no checkpoint") else None
    assert (result.verified, result.error, failing(result)) == (True, notice, set())
    assert [(step, found.holds, found.failed) for step, found in result.steps.items()] == [
        (step, True, []) for step in STEPS
    ]
    assert (
        verifier.packet_failures(
            packet,
            RECEIPT_KEYS.to_dict() if trust is TRUST else None,
            attestation_keys=ATTESTATION_KEYS.to_dict(),
            hmac_secret=trust.hmac_secret,
        )
        == []
    )


def test_what_no_link_and_no_checkpoint_speaks_for_is_told() -> None:
    assert unchecked(verify_packet(VARIANTS["whole"][0], TRUST)) == set()
    few = verify_packet(VARIANTS["few links"][0], TRUST)
    assert few.unlinked == ["execution_receipts[0]", "outcome_records[0]"]
    assert unchecked(few) == {
        "execution_receipts.links",
        "execution_receipts[0].audit_chain.link",
        "outcome_records.links",
        "outcome_records[0].audit_chain.link",
        "reports_signed",
    }
    assert unchecked(verify_packet(VARIANTS["no checkpoint"][0], TRUST)) == {
        CHECKPOINT,
        "reports_signed",
        "exported_at",
        *(f"{collection}.complete" for collection in COLLECTIONS),
    }


@pytest.mark.parametrize("name", VARIANTS)
def test_reports_that_no_signed_checkpoint_covers_are_named_and_can_be_refused(name: str) -> None:
    packet, trust = VARIANTS[name]
    result = verify_packet(packet, trust)
    required = verify_packet(packet, trust, require_signed_reports=True)
    if result.error is None:
        assert (result.unsigned, result.checks["reports_signed"], required.verified) == ([], True, True)
    else:
        assert result.to_dict()["notice"] == "REPORTS_UNSIGNED"
        assert result.unsigned
        assert all(place in (result.message or "") for place in result.unsigned)
        assert (required.verified, required.to_dict()["error"]) == (False, "REPORTS_UNSIGNED")


def test_a_checkpoint_that_the_verifier_kept_signs_the_reports_up_to_it() -> None:
    packet = VARIANTS["no checkpoint"][0]
    links = packet["audit_chain"]["retained_links"]
    last = {collection: packet[collection][0]["audit_chain"]["chain_position"] for collection in COLLECTIONS}
    for link in links:
        head = Head("chain_test", link["chain_position"], link["merkle_root"], link["link_hash"])
        result = verify_packet(packet, TRUST, checkpoint=sign_checkpoint(head, LATER, RECEIPT_SIGNER))
        assert result.verified
        covered = {name: position <= link["chain_position"] for name, position in last.items()}
        assert {name: f"{name}[0]" not in result.unsigned for name in last} == covered
        assert result.checks["reports_signed"] is (True if all(covered.values()) else None)


def test_without_any_report_there_must_still_be_a_checkpoint_where_signed_reports_are_required() -> None:
    packet = make_packet(signer=None)
    bare = rehashed({**packet, **{collection: [] for collection in COLLECTIONS}, "audit_chain": None})
    del bare["audit_chain"]
    bare = rehashed(bare)
    stripped = verify_packet(bare, TRUST)
    assert (stripped.verified, stripped.to_dict()["notice"]) == (True, "REPORTS_UNSIGNED")
    result = verify_packet(bare, TRUST, require_signed_reports=True)
    assert (result.verified, result.error) == (False, "REPORTS_UNSIGNED")


def test_links_that_no_checkpoint_covers_confirm_nothing() -> None:
    record = {**make_record(), "evaluation": None}
    record["erased"] = {"erasure_id": "era_1", "erased_at": timestamp(NOW), "members": ["evaluation"]}
    packet = make_packet(signer=None)
    links = packet["audit_chain"]["retained_links"]
    entry = chain.entry_of(links[-1])._replace(entry_type="erasure", decision_id=record["decision_id"])
    entry = entry._replace(receipt_hash=None, created_at=timestamp(NOW))
    invented = chain.append(chain.head_of(links[-1]), entry)
    packet["audit_chain"] |= {
        "retained_links": [*links, invented],
        "chain_size": invented["chain_position"],
        "merkle_root": invented["merkle_root"],
    }
    packet["decision_record"] = {**record, "audit_chain": packet["decision_record"]["audit_chain"]}
    result = verify_packet(rehashed(packet), TRUST)
    assert (result.verified, result.error) == (True, "REPORTS_UNSIGNED")
    assert (result.checks["audit_chain.erasure"], result.checks["record.erasure"]) == (None, None)
    assert "evaluation was erased; no retained link confirms it." in (result.message or "")


def grown(*more: chain.Entry) -> dict[str, Any]:
    """A packet whose retained links go on with further entries, up to a checkpoint of the last."""
    packet: dict[str, Any] = make_packet()
    links = packet["audit_chain"]["retained_links"]
    for entry in more:
        links.append(chain.append(chain.head_of(links[-1]), entry))
    last = links[-1]
    packet["audit_chain"] |= {"chain_size": last["chain_position"], "merkle_root": last["merkle_root"]}
    checkpoint = sign_checkpoint(chain.head_of(last), timestamp(NOW), RECEIPT_SIGNER)
    return rehashed(with_value(packet, CHECKPOINT_PATH, checkpoint))


APPROVED, ROUTED = Example().changes[-2:]
CHANGES = {"migration": entry_link(MIGRATIONS, APPROVED), "route": entry_link(ROUTES, ROUTED)}
OF_LATER = {
    "unsigned": chain.Entry("delegation", "dec_1", "a" * 64, None, "pricing_exception", "1", timestamp(NOW)),
    "with a receipt": chain.Entry("import", "imp_1", "b" * 64, "c" * 64, None, None, timestamp(NOW)),
}


@pytest.mark.parametrize("known", [*CHANGES, "both"])
def test_links_of_migrations_and_routes_are_links_like_any_other(known: str) -> None:
    packet = grown(*(CHANGES.values() if known == "both" else [CHANGES[known]]))
    result = verify_packet(packet, TRUST)
    assert (result.verified, result.error, failing(result), unchecked(result)) == (True, None, set(), set())
    assert "audit_chain.entry_types" not in result.checks
    assert independent_failures(packet) == []
    assert verifier.unknown_types(packet["audit_chain"]["retained_links"]) == set()


@pytest.mark.parametrize("unknown", OF_LATER)
def test_links_of_a_type_that_this_release_does_not_know_are_noted_and_fail_nothing(unknown: str) -> None:
    # Between links that it knows, so that these are checked through it.
    packet = grown(CHANGES["migration"], OF_LATER[unknown], CHANGES["route"])
    result = verify_packet(packet, TRUST)
    assert (result.verified, result.error, failing(result)) == (True, None, set())
    assert unchecked(result) == {"audit_chain.entry_types"}
    assert independent_failures(packet) == []
    assert verifier.unknown_types(packet["audit_chain"]["retained_links"]) == {OF_LATER[unknown].entry_type}
    place = ("audit_chain", "retained_links", -2)
    for name in ("entry_type", "decision_id", "record_hash", "created_at", "leaf_hash", "link_hash"):
        forged = rehashed(with_value(packet, (*place, name), "0" * 64))
        assert not verify_packet(forged, TRUST).verified, name
        assert independent_failures(forged) != [], name


def test_a_checkpoint_that_nobody_trusted_signed_accuses_no_packet() -> None:
    packet = make_packet()
    kept = {**at(packet, CHECKPOINT_PATH), "merkle_root": "0" * 64}
    result = verify_packet(packet, TRUST, checkpoint=kept)
    assert (result.verified, result.error) == (False, "PACKET_SIGNATURE_INVALID")
    assert failing(result) == {"checkpoint.signature"}


def test_a_packet_verifies_without_the_parts_that_can_be_left_out() -> None:
    packet = VARIANTS["whole"][0]
    bare = {
        name: value for name, value in packet.items() if name not in ("input", "policy_intelligence", "audit_chain")
    }
    result = verify_packet(rehashed(bare), TRUST)
    assert result.verified
    assert result.steps["intelligence_and_chain"].holds is None
    assert unchecked(result) == {
        "policy_intelligence",
        "audit_chain",
        "reports_signed",
        *(f"{name}[{index}].audit_chain.link" for name in COLLECTIONS for index in (0, 1)),
        "record.facts_hash",
        "record.input_hash",
        "record.rulebook_hash",
    }


def attacked(attack: dict[str, Any]) -> tuple[dict[str, Any], PacketVerification]:
    packet = make_packet(chain_limit=attack.get("chain_limit", 1000))
    kept = at(packet, CHECKPOINT_PATH) if attack.get("kept") else None
    forger = Forger(packet)
    for edit in attack["edits"]:
        forger.edit(edit)
    name = RECEIPT_SIGNER.key_id if attack.get("signer") == "trusted name" else "receipt_forged"
    forger.recompute(attack["recompute"], Ed25519Signer(name, b"f" * 32))
    return forger.packet, verify_packet(forger.packet, TRUST, checkpoint=kept)


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: f"{attack['changed']}; {attack['attacker']}")
def test_an_attack_is_found_as_the_reference_says(attack: dict[str, Any]) -> None:
    packet, result = attacked(attack)
    assert result.verified is (not attack["finds"])
    # What nothing finds in a report is never passed over in silence.
    assert attack["finds"] or not result.unsigned or result.error == "REPORTS_UNSIGNED"
    assert set(attack["finds"]) <= failing(result)
    assert set(attack["tells"]) <= unchecked(result)
    if not attack.get("kept"):
        independent = verifier.packet_failures(
            packet, RECEIPT_KEYS.to_dict(), attestation_keys=ATTESTATION_KEYS.to_dict()
        )
        assert bool(independent) is bool(attack["finds"])


def test_the_table_of_attacks_in_the_reference_is_the_table_of_these_attacks() -> None:
    page = (ROOT / "docs" / "reference" / "packet-attacks.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("|")][2:]
    assert rows == [table_row(attack) for attack in ATTACKS]


def table_row(attack: dict[str, Any]) -> str:
    found = ", ".join(f"`{name}`" for name in attack["finds"])
    if not found:
        told = ", ".join(f"`{name}`" for name in attack["tells"])
        found = f"not found; `null`: {told}" if told else "not found"
    return f"| {attack['changed']} | {attack['attacker']} | {found} |"


def small_changes(
    document: dict[str, Any], *, one_each: Callable[[Place], bool] = lambda _: False
) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """For every place a likely other value, its removal and, in objects and lists, an addition.

    In turn one of them where `one_each` says so, but in the long form.
    """
    for number, path in enumerate(places(document)):
        changes = [tampered for _, tampered in changed_likely(document, path)]
        if one_each(path) and not LONG:
            changes = [changes[number % len(changes)]]
        for tampered in changes:
            yield path, tampered


@pytest.mark.heavy
def test_a_change_to_any_member_is_found() -> None:
    packet, tried = VARIANTS["whole"][0], 0
    # The packet's own hash finds each of them; the tests below try them all without it.
    for path, tampered in small_changes(packet, one_each=lambda _: True):
        tried += 1
        result = verify_packet(tampered, TRUST)
        assert not result.verified, path
        assert {"packet_hash", "members"} & failing(result), path
    assert tried > size(800, 2000)


def is_hashed_as_it_is(path: Place) -> bool:
    """Whether a place is within what is covered whole, by one hash, and otherwise not looked at."""
    return len(path) > {"policy_intelligence": 3, "input": 2}.get(path[0], 100)


def survivors(packet: dict[str, Any], parts: list[str], within: tuple[str, ...]) -> dict[Place, bool]:
    """Where a change verifies once a forger has recomputed what hashes can be, and whether a check tells of it."""
    found: dict[Place, bool] = {}
    for path, tampered in small_changes(packet, one_each=is_hashed_as_it_is):
        if path[0] not in within:
            continue
        forger = Forger(tampered)
        try:
            forger.recompute(parts, OTHER)
        except (KeyError, TypeError, AttributeError, IndexError):
            # It is too broken to be hashed anew whole.
            forger.packet_hash()
        result = verify_packet(forger.packet, TRUST)
        if result.verified and forger.packet != packet:
            found[path] = found.get(path, True) and bool(unchecked(result))
    return found


@pytest.mark.heavy
def test_a_change_to_any_member_is_found_where_the_packet_is_hashed_anew() -> None:
    """But for guidance, additions that no release knows, and parts that a caller may leave out; nearly all of them are
    told of.
    """
    packet = VARIANTS["whole"][0]
    found = survivors(packet, ["packet_hash"], tuple(packet))
    hints = ("audit_chain", "verification_hints")
    intelligence = ("policy_intelligence",)
    said = {(*intelligence, name) for name in ("effectiveness", "confidence", "anomalies", "benchmarks")}
    left_out = {intelligence, *said, ("audit_chain",), ("input",)}
    added_to = {("decision_record",), ("execution_receipts", 0), ("outcome_records", 0)}
    guidance = {path for path in places(packet) if path[:2] == hints and path[2:] not in CHECKPOINT_MEMBERS}
    oldest = {(name, 1) for name in COLLECTIONS}
    assert {path for path, told in found.items() if told} == left_out | added_to | guidance | oldest
    assert {path for path, told in found.items() if not told} == SMALLER


# As a release with fewer patterns would have made it.
SMALLER = {
    ("policy_intelligence", "patterns"),
    ("policy_intelligence", "patterns", 0),
}
CHECKPOINT_MEMBERS = {("checkpoint", name) for name in at(VARIANTS["whole"][0], CHECKPOINT_PATH)}


@pytest.mark.heavy
def test_a_change_to_any_report_or_link_is_found_where_every_hash_is_made_anew() -> None:
    """The checkpoint speaks for them."""
    within = ("execution_receipts", "outcome_records", "audit_chain")
    found = survivors(VARIANTS["whole"][0], ["reports", "links", "packet_hash"], within)
    assert {path for path, told in found.items() if not told} == set()
    assert {path[:2] for path, told in found.items() if told} == {
        ("audit_chain",),
        ("audit_chain", "verification_hints"),
        *((name, index) for name in COLLECTIONS for index in (0, 1)),
    }


@pytest.mark.parametrize("collection", COLLECTIONS)
@pytest.mark.parametrize("kept", [False, True], ids=["its own checkpoint", "a kept checkpoint"])
@pytest.mark.parametrize("position", [9, 999, 2**53 - 1])
def test_a_report_cannot_be_moved_away_from_the_link_that_speaks_for_it(
    collection: str, kept: bool, position: int
) -> None:
    packet = VARIANTS["whole"][0]
    forger = Forger(packet)
    forger.edit({"set": [collection, 0, "external_ref"], "to": "invented"})
    forger.edit({"set": [collection, 0, "audit_chain", "chain_position"], "to": position})
    forger.recompute(["reports", "packet_hash"], OTHER)
    result = verify_packet(forger.packet, TRUST, checkpoint=at(packet, CHECKPOINT_PATH) if kept else None)
    assert (result.verified, result.error) == (False, "PACKET_INTEGRITY_FAILED")
    assert failing(result) == {f"{collection}.complete"}
    assert result.unlinked == [f"{collection}[0]"]


def test_an_invented_report_cannot_stand_in_for_an_older_one_that_a_limit_left_out() -> None:
    packet = make_packet()
    one_each = rehashed({**packet, **{name: packet[name][:1] for name in COLLECTIONS}})
    result = verify_packet(one_each, TRUST)
    assert (result.verified, unchecked(result)) == (True, {f"{name}.complete" for name in COLLECTIONS})
    forger = Forger(one_each)
    forger.edit({"repeat": ["outcome_records", 0], "with": {"outcome_id": "out_0"}})
    forger.edit({"set": ["outcome_records", 0, "audit_chain", "chain_position"], "to": 9})
    forger.recompute(["reports", "packet_hash"], OTHER)
    assert failing(verify_packet(forger.packet, TRUST)) == {"outcome_records.complete"}


def packet_with(**members: Any) -> Any:
    """A packet whose latest receipt says otherwise, and is signed as if the service had made it so."""
    forger = Forger(make_packet())
    for name, value in members.items():
        forger.edit({"set": ["execution_receipts", 0, name], "to": value})
    forger.recompute(["reports", "links", "checkpoint", "packet_hash"], RECEIPT_SIGNER)
    return forger.packet


def fails_elsewhere(packet: Any) -> bool:
    return bool(independent_failures(packet))


FLAGS: Place = ("execution_receipts", 0, "flags")


def test_the_flag_of_another_action_follows_from_the_receipt() -> None:
    packet = packet_with(action_taken="wire_money")
    assert at(packet, FLAGS) == ["ACTION_TAKEN_MISMATCH"]
    result = verify_packet(packet, TRUST)
    assert (result.verified, result.unflagged, unchecked(result)) == (True, [], set())
    assert not fails_elsewhere(packet)
    flagged = rehashed(with_value(make_packet(), FLAGS, ["ACTION_TAKEN_MISMATCH"]))
    assert failing(verify_packet(flagged, TRUST)) == {"execution_receipts", "execution_receipts[0].flags"}
    assert fails_elsewhere(flagged)


def test_a_receipt_of_an_earlier_release_without_that_flag_is_noted_and_verified() -> None:
    packet = rehashed(with_value(packet_with(action_taken="wire_money"), FLAGS, []))
    result = verify_packet(packet, TRUST)
    assert (result.verified, result.error, failing(result)) == (True, None, set())
    assert unchecked(result) == {"execution_receipts[0].flags"}
    assert result.unflagged == ["execution_receipts[0]"]
    assert not fails_elsewhere(packet)


@pytest.mark.parametrize("flags", [["ACTION_BINDING_MISMATCH"], ["DECISION_NOT_APPROVED", "ACTION_TAKEN_MISMATCH"]])
def test_any_other_flag_is_a_fault_beside_it(flags: list[str]) -> None:
    packet = rehashed(with_value(packet_with(action_taken="wire_money"), FLAGS, flags))
    assert "execution_receipts[0].flags" in failing(verify_packet(packet, TRUST))
    assert fails_elsewhere(packet)


@pytest.mark.parametrize(
    ("members", "match"),
    [
        ({"target_system": "erp"}, False),
        ({"target_system": "erp"}, True),
        ({"action_binding": {"system": "crm", "resource": "deal-1042", "proposed_action": "approve_discount"}}, False),
        ({"action_binding": {"system": "crm"}, "action_taken": "wire_money"}, False),
        ({"mutation": "discount.delete", "target_object_id": "deal-9"}, False),
    ],
    ids=str,
)
def test_a_receipt_that_an_earlier_release_bound_by_its_own_rule_still_verifies(
    members: dict[str, Any], match: bool
) -> None:
    """It kept the binding that was sent, else the decision's, and compared them whole."""
    packet = packet_with(**members, action_binding_match=match)
    packet = rehashed(with_value(packet, FLAGS, [] if match else ["ACTION_BINDING_MISMATCH"]))
    result = verify_packet(packet, TRUST)
    assert (result.verified, failing(result)) == (True, set())
    assert not fails_elsewhere(packet)


def test_a_packet_whose_integers_were_written_as_doubles_is_the_same_packet() -> None:
    packet = VARIANTS["whole"][0]
    doubles = as_doubles(packet)
    assert type(doubles["audit_chain"]["chain_size"]) is float
    checkpoint_ = with_integers(at(doubles, CHECKPOINT_PATH))
    result = verify_packet(with_integers(doubles), TRUST, checkpoint=checkpoint_)
    assert (result.verified, result.to_dict()) == (
        True,
        verify_packet(packet, TRUST, checkpoint=at(packet, CHECKPOINT_PATH)).to_dict(),
    )


@pytest.mark.parametrize(
    ("trust", "error"),
    [
        (Trust(), "SIGNING_KEY_UNKNOWN"),
        (Trust(receipt_keys=KeyRegistry(), source="registry"), "SIGNING_KEY_UNKNOWN"),
        (HMAC_TRUST, "SIGNING_KEY_UNKNOWN"),
        (Trust(public_key=RECEIPT_SIGNER.public_key, source="public_key"), None),
        (Trust(public_key=OTHER.public_key, source="public_key"), "SIGNING_KEY_UNKNOWN"),
    ],
    ids=["nothing", "empty registry", "hmac secret", "its key", "another key"],
)
def test_authenticity_needs_the_right_trusted_key(trust: Trust, error: str | None) -> None:
    result = verify_packet(make_packet(), trust)
    assert (result.verified, result.error) == (error is None, error)
    assert result.steps["decision_record"].holds is (error is None)
    assert result.steps["execution_and_outcome_hashes"].holds


@pytest.mark.parametrize(
    ("status", "not_after", "verified"),
    [
        ("active", None, True),
        ("retired", "2026-06-11T12:30:45.678Z", True),
        ("retired", "2026-06-11T12:30:45.677Z", False),
        ("compromised", None, False),
    ],
)
def test_the_state_of_a_key_decides(status: str, not_after: str | None, verified: bool) -> None:
    keys = KeyRegistry((public_key(RECEIPT_SIGNER, status=status, not_after=not_after),), None)
    result = verify_packet(make_packet(), replace(TRUST, receipt_keys=keys))
    assert (result.verified, result.integrity_valid) == (verified, True)
    assert result.error == (None if verified else "SIGNING_KEY_NOT_TRUSTED")
    assert result.checks[f"{CHECKPOINT}.key"] is verified


def test_a_record_of_a_retired_key_verifies_in_a_packet_whose_checkpoint_a_later_key_signed() -> None:
    keys = (public_key(RECEIPT_SIGNER, status="retired", not_after="2026-06-11T12:30:45.678Z"), public_key(OTHER))
    result = verify_packet(make_packet(signer=OTHER), replace(TRUST, receipt_keys=KeyRegistry(keys, OTHER.key_id)))
    assert result.verified
    compromised = (keys[0], public_key(OTHER, status="compromised"))
    result = verify_packet(make_packet(signer=OTHER), replace(TRUST, receipt_keys=KeyRegistry(compromised, None)))
    assert (result.verified, result.error) == (False, "SIGNING_KEY_NOT_TRUSTED")
    assert failing(result) == {f"{CHECKPOINT}.key"}


def test_a_key_that_came_with_the_packet_shows_integrity_and_never_verifies() -> None:
    result = verify_packet(make_packet(), Trust(), untrusted_key=RECEIPT_SIGNER.public_key)
    assert (result.verified, result.integrity_valid, result.authenticity_valid) == (False, True, False)
    assert (result.key_source, result.error) == ("request", "SIGNING_KEY_NOT_TRUSTED")
    assert result.checks["record.receipt_signature"] is result.checks[f"{CHECKPOINT}.signature"] is True


def test_a_packet_made_whole_with_another_key_is_not_verified() -> None:
    forged = make_packet(record=make_record(signers=Signers(OTHER, REGISTRY_SIGNER)), signer=OTHER)
    assert verify_packet(forged, TRUST, untrusted_key=OTHER.public_key).error == "SIGNING_KEY_NOT_TRUSTED"
    assert verify_packet(forged, TRUST).error == "SIGNING_KEY_UNKNOWN"


def test_an_unsigned_packet_is_not_verified() -> None:
    result = verify_packet(make_packet(record=make_record(signers=Signers(None, None)), signer=None), TRUST)
    assert (result.verified, result.integrity_valid, result.error) == (False, True, "RECORD_UNSIGNED")


def test_an_hmac_checkpoint_needs_the_secret() -> None:
    packet = make_packet(signer=HMAC_SIGNER)
    result = verify_packet(packet, TRUST)
    assert (result.verified, result.error, failing(result)) == (False, "SIGNING_KEY_UNKNOWN", {f"{CHECKPOINT}.key"})
    assert verify_packet(packet, replace(TRUST, hmac_secret=HMAC_SECRET)).verified
    wrong = verify_packet(packet, replace(TRUST, hmac_secret=b"z" * 32))
    assert (wrong.error, failing(wrong)) == ("PACKET_SIGNATURE_INVALID", {f"{CHECKPOINT}.signature"})


@pytest.mark.parametrize("size", range(1, 10))
def test_a_checkpoint_that_the_verifier_kept_counts_where_its_link_is_retained(size: int) -> None:
    packet = make_packet()
    links = {link["chain_position"]: link for link in packet["audit_chain"]["retained_links"]}
    link = links.get(size, packet["audit_chain"]["retained_links"][0])
    kept = sign_checkpoint(Head("chain_test", size, link["merkle_root"], link["link_hash"]), LATER, OTHER)
    trust = replace(TRUST, receipt_keys=KeyRegistry((*RECEIPT_KEYS.keys, public_key(OTHER)), None))
    result = verify_packet(packet, trust, checkpoint=kept)
    assert result.verified is (size in links)
    assert result.checks["checkpoint.chain"] is (size in links)
    assert result.error == (None if size in links else "CHECKPOINT_NOT_COMPARABLE")
    unknown = verify_packet(packet, TRUST, checkpoint=kept)
    assert (unknown.verified, "checkpoint.key" in failing(unknown)) == (False, True)


def test_a_checkpoint_of_another_chain_is_told_apart_from_a_changed_packet() -> None:
    packet = make_packet()
    last = packet["audit_chain"]["retained_links"][-1]
    foreign = sign_checkpoint(
        Head("chain_other", last["chain_position"], last["merkle_root"], last["link_hash"]), LATER, RECEIPT_SIGNER
    )
    result = verify_packet(packet, TRUST, checkpoint=foreign)
    assert (result.verified, result.error) == (False, "CHECKPOINT_FOREIGN")
    assert result.steps["intelligence_and_chain"].failed == ["checkpoint.chain_id"]


def test_a_kept_checkpoint_cannot_be_compared_with_a_packet_without_links() -> None:
    packet = make_packet()
    kept = at(packet, CHECKPOINT_PATH)
    bare = rehashed({name: value for name, value in packet.items() if name != "audit_chain"})
    result = verify_packet(bare, TRUST, checkpoint=kept)
    assert (result.verified, result.error) == (False, "CHECKPOINT_NOT_COMPARABLE")


def test_a_single_key_says_nothing_of_a_checkpoint_that_a_later_key_signed() -> None:
    packet = make_packet(signer=OTHER)
    trust = replace(TRUST, receipt_keys=None, public_key=RECEIPT_SIGNER.public_key)
    result = verify_packet(packet, trust)
    assert (result.verified, result.error) == (False, "SIGNING_KEY_UNKNOWN")
    assert result.checks[f"{CHECKPOINT}.signature"] is None


@pytest.mark.parametrize("name", ["merkle_root", "link_hash"])
def test_a_packet_that_contradicts_a_kept_checkpoint_is_not_verified(name: str) -> None:
    packet = make_packet()
    last = packet["audit_chain"]["retained_links"][-1]
    seen = {**last, name: "0" * 64}
    head = Head(seen["chain_id"], seen["chain_position"], seen["merkle_root"], seen["link_hash"])
    result = verify_packet(packet, TRUST, checkpoint=sign_checkpoint(head, LATER, RECEIPT_SIGNER))
    assert (result.verified, result.error) == (False, "PACKET_INTEGRITY_FAILED")
    assert result.steps["intelligence_and_chain"].failed == [f"checkpoint.{name}"]


@pytest.mark.parametrize("kept", [{}, [], "x", {"chain_size": 1}, True])
def test_what_is_no_checkpoint_is_none(kept: Any) -> None:
    assert "checkpoint.members" in failing(verify_packet(make_packet(), TRUST, checkpoint=kept))


def test_the_request_is_that_of_the_packet_or_of_the_verifier() -> None:
    packet = make_packet()
    assert verify_packet(packet, TRUST).checks["record.input_hash"]
    other = verify_packet(packet, TRUST, request_body=sample_request(margin_percent=1))
    assert (other.verified, "record.input_hash" in failing(other), other.checks["input"]) == (False, True, True)
    given = verify_packet(make_packet(with_input=False), TRUST, request_body=sample_request())
    assert (given.verified, given.checks["record.input_hash"]) == (True, True)


def test_a_packet_of_an_erased_decision_verifies_as_far_as_it_can() -> None:
    packet = make_packet()
    note = {"erasure_id": "era_1", "erased_at": "2026-06-12T00:00:00.000Z", "members": ["evaluation", "input"]}
    record = {**packet["decision_record"], "evaluation": None, "erased": note}
    erased = rehashed({**packet, "decision_record": record, "input": None})
    result = verify_packet(erased, TRUST)
    assert (result.verified, failing(result)) == (True, set())
    assert (result.error, result.to_dict()["notice"]) == ("MATERIAL_ERASED", "MATERIAL_ERASED")
    assert {"record.evaluation", "record.input_hash", "audit_chain.erasure"} <= unchecked(result)
    assert result.message == "The record says that evaluation and input were erased; no retained link confirms it."


def test_an_erasure_in_the_chain_must_be_told() -> None:
    packet = make_packet()
    forger = Forger(packet)
    forger.edit({"set": ["audit_chain", "retained_links", 6, "entry_type"], "to": "erasure"})
    forger.recompute(["links", "checkpoint", "packet_hash"], RECEIPT_SIGNER)
    assert failing(verify_packet(forger.packet, TRUST)) == {"audit_chain.erasure"}


@pytest.mark.parametrize(
    ("packet", "error", "named"),
    [
        ({**make_packet(), "exported_at": 1}, "PACKET_INVALID", "exported_at"),
        ({**make_packet(), "audit_chain": []}, "PACKET_INVALID", "audit_chain"),
        (without(make_packet(), ("record_hash",)), "PACKET_INCOMPLETE", "record_hash"),
        ({}, "PACKET_INCOMPLETE", "decision_record"),
        ({**make_packet(), "outcome_records": [{}] * 1001}, "PACKET_INVALID", "outcome_records"),
        (with_value(make_packet(), ("policy_intelligence", "patterns"), [{}] * 101), "PACKET_INVALID", "100 patterns"),
        ([], "PACKET_INVALID", "JSON object"),
        ({**make_packet(), "decision_record": {}}, "PACKET_INCOMPLETE", "decision_record"),
        ({**make_packet(), "decision_record": {**make_record(), "evidence": {}}}, "PACKET_INVALID", "evidence"),
    ],
)
def test_what_is_no_packet_is_told_as_such(packet: Any, error: str, named: str) -> None:
    result = verify_packet(packet, TRUST)
    assert (result.verified, result.error) == (False, error)
    assert named in (result.message or "")


def test_failures_are_named_one_by_one_up_to_a_bound() -> None:
    packet = make_packet()
    broken = {**packet, "outcome_records": [{}] * 1000}
    result = verify_packet(broken, TRUST)
    assert len(failing(result)) <= MAX_FAILURES + 10
    named = sum(len(step.failed) for step in result.steps.values())
    assert named == MAX_FAILURES
    assert re.search(r" and at least \d+ more\.", result.message or "")
    assert sum(name.startswith("outcome_records[") for name in failing(result)) < MAX_FAILURES


def test_few_failures_are_counted() -> None:
    packet = make_packet()
    broken = {**packet, "outcome_records": [without(packet["outcome_records"][0], ("outcome_id",))] * 12}
    assert re.search(r" and 4 more\.", verify_packet(broken, TRUST).message or "")


def test_a_packet_holds_at_most_1000_links() -> None:
    packet = make_packet()
    links = packet["audit_chain"]["retained_links"]
    for count, unreadable in ((1000, False), (1001, True), (0, True)):
        result = verify_packet(with_value(packet, ("audit_chain", "retained_links"), (links * 150)[:count]), TRUST)
        assert ("audit_chain.retained_links" in result.steps["intelligence_and_chain"].failed) is unreadable
        assert not result.verified


def test_long_values_are_shown_by_their_hash() -> None:
    packet = make_packet()
    binding = {**packet["outcome_records"][0]["action_binding"], "subject": "x" * 5000}
    result = verify_packet(with_value(packet, ("outcome_records", 0, "action_binding"), binding), TRUST)
    shown: Any = result.actual["outcome_records[0].action_binding"]
    assert shown.keys() == {"sha256", "bytes"}
    assert result.expected["outcome_records[0].action_binding"] == packet["outcome_records"][0]["action_binding"]


WHOLE = make_packet()


@settings(max_examples=examples(size(100, 300)), deadline=None)
@given(st.sampled_from(sorted(map(tuple, places(WHOLE)), key=str)), json_values())
def test_verification_never_raises_and_never_believes(path: Place, value: Any) -> None:
    tampered = with_integers(with_value(WHOLE, path, value))
    result = verify_packet(tampered, TRUST)
    assert result.verified is (canonical(tampered) == canonical(WHOLE))
    verify_packet(rehashed(tampered), TRUST).to_dict()


@settings(max_examples=examples(size(60, 100)), deadline=None)
@given(json_values())
def test_what_is_no_packet_is_not_verified(value: Any) -> None:
    result = verify_packet(value, TRUST, request_body=value, checkpoint=value)
    assert not result.verified
    assert result.error in ("PACKET_INVALID", "PACKET_INCOMPLETE")
