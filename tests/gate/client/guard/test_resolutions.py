"""What opens a held action, and what never does: resolutions that are true, and all the others."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from flask.testing import FlaskClient
from hypothesis import given
from hypothesis import strategies as st

from gate.client import Client, HeldForReview, Intent, SqliteStore, State
from gate.client.guard.held.judging import Finding, in_time, judge
from gate.client.guard.held.resuming import proposal_of
from gate.client.guard.permit import BasePermit
from gate.client.guard.proposal import propose
from gate.client.guard.terms import MAX_AGE
from gate.clock import utc_now
from gate.ids import parse_timestamp, timestamp
from gate.instance.instance import Instance
from gate.ledger.access.authority import Scope
from gate.proof.signing import Ed25519Signer, HmacSigner, KeyRegistry
from gate.records.reports.receipts import report_hash
from gate.records.reports.resolution import RESOLUTIONS, signed_payload
from gate.verify.resolution import verify_resolution
from tests.gate.client.guard.guarded_program import CALLERS, PATIENT, Caller, Effects
from tests.support.faulty_gate import Fault, FaultyApplication, Message, answering, spoilt
from tests.support.samples import (
    HELD,
    NOW,
    RECEIPT_SIGNER,
    TRUST,
    cases,
    make_record,
    make_resolution,
    sample_request,
    sample_rulebook,
)
from tests.support.samples import public_key as published
from tests.support.tampering import changed_likely, places

ROWS: Final = cases("guard_resolutions")
REVIEW: Final[dict[str, Any]] = {"discount_percent": 40, "margin_percent": 22}
OTHER_REVIEW: Final[dict[str, Any]] = {"discount_percent": 41, "margin_percent": 22}
ACTION: Final = "approve_discount"
STRANGER: Final = Ed25519Signer("receipt_of_a_stranger", bytes(range(32)))
SECOND: Final = Ed25519Signer("receipt_second", b"2" * 32)
LONG_AGO: Final = "2020-01-01T00:00:00.000Z"
MOMENTS: Final = {
    "now": timedelta(0),
    "an hour ahead": timedelta(hours=1),
    "a day ahead": timedelta(days=1),
    "an hour ago": timedelta(hours=-1),
    "two hours ago": timedelta(hours=-2),
}


class World:
    """The application with somebody in the line, an owner with a key, and a caller with a guard."""

    def __init__(self, client: FlaskClient, instance: Instance, key: str, scope: Scope, folder: Path) -> None:
        self.instance = instance
        self.key = key
        self.line = FaultyApplication(client.application)
        self.path = folder / "intents.db"
        self.registry = folder / "keys.json"
        self.effects = Effects(folder / "effects")
        self.publish()
        owner = instance.ledger.directory.create_key(scope, frozenset({"resolve"}), None, utc_now())[0]
        transport = httpx.WSGITransport(client.application)
        self.owner = Client("http://gate.example", key=owner, transport=transport)
        self.plain = Client("http://gate.example", key=key, transport=transport)
        receipt = instance.signers().receipt
        assert isinstance(receipt, Ed25519Signer)
        self.signer = receipt

    def publish(self, own: Mapping[str, Any] | None = None, second: Mapping[str, Any] | None = None) -> None:
        """Publishes the service's receipt keys: with another state of its own, and with a second key."""
        found = self.instance.trust().receipt_keys
        assert isinstance(found, KeyRegistry)
        document: dict[str, Any] = found.to_dict()  # type: ignore[assignment]
        times = {"not_after": None if own is None else moment(own["not_after"])}
        # A key that was in use long before this test began.
        document["keys"] = [{**each, "not_before": LONG_AGO, **(own or {}), **times} for each in document["keys"]]
        if second is not None:
            key = {**published(SECOND).to_dict(), "not_before": LONG_AGO, **second}
            document["keys"].append({**key, "not_after": moment(second["not_after"])})
        if own is not None:
            document["active_key_id"] = None
        self.registry.write_text(json.dumps(document))

    @contextmanager
    def calling(self, kind: str = "Client") -> Iterator[Caller]:
        """A client while the block runs."""
        with SqliteStore(self.path) as store:
            transport = self.line.transport
            caller = CALLERS[kind](
                self.line.url,
                key=self.key,
                registry=str(self.registry),
                timeout=PATIENT,
                tries=1,
                store=store,
                transport=transport,
                delivery_transport=transport,
            )
            try:
                yield caller
            finally:
                caller.close()

    def said(self, target: str = "deal", facts: Mapping[str, Any] = REVIEW, **more: Any) -> dict[str, Any]:
        """What a guard is made of."""
        return {"rulebook": sample_rulebook(), "facts": facts, "action": ACTION, "target": ("crm", target), **more}

    def hold(self, caller: Caller, target: str = "deal", facts: Mapping[str, Any] = REVIEW, **more: Any) -> Any:
        """Has an action held; its record."""
        error = caller.attempt(self.body, **self.said(target, facts, **more))
        assert isinstance(error, HeldForReview)
        assert error.code == "ACTION_HELD"
        return error.record

    def resolve(self, record: Mapping[str, Any], resolution: str = "granted", **more: Any) -> Any:
        """The owner answers."""
        said = {"resolution": resolution, "resolved_by": "Maya Lindqvist", **more}
        return self.owner.resolve_decision(record["decision_id"], said)

    def body(self, permit: BasePermit) -> None:
        """Does the action; it is granted, or the test fails."""
        assert permit.resolution is not None
        assert permit.resolution["resolution"] == "granted"
        trust = self.instance.trust()
        assert verify_resolution(permit.resolution, permit.record, trust).verified  # type: ignore[arg-type]
        assert (permit.record["verdict"], permit.action) == ("review", ACTION)
        self.effects.do(permit)

    def intent(self, intent_id: str) -> Intent:
        """The latest attempt in the store."""
        with SqliteStore(self.path) as store:
            found = store.find(intent_id)
        assert found is not None
        return found


@pytest.fixture
def world(client: FlaskClient, instance: Instance, key: str, scope: Scope, tmp_path: Path) -> Iterator[World]:
    made = World(client, instance, key, scope, tmp_path)
    with closing(made.owner), closing(made.plain):
        yield made


def moment(said: str) -> str:
    """A moment in words as a timestamp; any other text as it is."""
    return timestamp(utc_now() + MOMENTS[said]) if said in MOMENTS else said


def altered(world: World, row: Mapping[str, Any], record: Mapping[str, Any], resolution: Any) -> Any:
    """A resolution as somebody changed it, with its hash and signature where he has a key."""
    made = dict(resolution)
    for name, value in row.get("set", {}).items():
        if value == "of the record":
            value = record["receipt_signature"] if name == "signature" else record[name]
        elif value == "a digit":
            value = made[name][:-1] + ("0" if made[name][-1] != "0" else "1")
        made[name] = moment(value)
    for name in row.get("remove", ()):
        del made[name]
    if "signer" not in row and not row.get("rehash"):
        return made
    made["resolution_hash"] = report_hash(RESOLUTIONS, made)
    # Its link would still name the hash of before.
    made.pop("audit_chain", None)
    key_id = world.signer.key_id
    signers: dict[str, Any] = {
        "service": world.signer,
        "second": SECOND,
        "stranger": STRANGER,
        "impostor": Ed25519Signer(key_id, bytes(range(32))),
        "secret": HmacSigner(key_id, b"s" * 32),
    }
    if "signer" in row:
        signer = signers[row["signer"]]
        made["key_id"] = signer.key_id
        made["signature"] = signer.sign(signed_payload(made, signer.key_id))  # type: ignore[arg-type]
    return made


def fault_of(world: World, row: Mapping[str, Any], record: Mapping[str, Any], resolution: Any) -> Fault:
    """What the line answers to the question for a resolution."""
    if "status" in row:
        return answering(Message(str(row["status"]), {"content-type": "text/html"}, row["body"].encode()))

    def change(answer: Message) -> Message:
        document = answer.document
        if "answer" in row:
            document |= row["answer"]
            document = {name: value for name, value in document.items() if value != "absent"}
        else:
            document["resolution"] = altered(world, row, record, resolution)
        return replace(answer, body=json.dumps(document).encode())

    return spoilt(change)


@pytest.mark.parametrize(("entry", "kind"), [("guard", "Client"), ("resume", "AsyncClient")])
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["resolution"])
def test_nothing_but_a_true_and_timely_grant_opens_a_held_action(
    row: dict[str, Any], entry: str, kind: str, world: World
) -> None:
    with world.calling(kind) as caller:
        before = world.hold(caller, facts=OTHER_REVIEW) if row.get("of") == "the attempt before" else None
        record = world.hold(caller)
        other = before or (world.hold(caller, "another") if "of" in row else record)
        truth = row.get("made", {}).get("resolution", "granted")
        world.resolve(record, truth)
        resolution = world.plain.get_resolution(record["decision_id"])["resolution"]
        if other is not record:
            world.resolve(other)
            resolution = world.plain.get_resolution(other["decision_id"])["resolution"]
        intent_id = propose(**world.said()).intent_id
        said = {**(world.said() if entry == "guard" else {"intent_id": intent_id}), **row.get("said", {})}
        world.publish(row.get("registry"), row.get("second"))
        asked = world.line.came["decide"]
        with world.line.striking("resolution", fault_of(world, row, record, resolution)):
            error = caller.attempt(world.body, **said)
        asks_anew = entry == "guard" and row.get("guard") == "asks anew"
        expected = ["HeldForReview", "ACTION_HELD"] if asks_anew else row["sees"]
        assert [type(error).__name__, getattr(error, "code", None)] == expected
        assert world.line.came["decide"] - asked == asks_anew
        if not asks_anew:
            assert row.get("says", "") in str(error)
        intent = world.intent(intent_id)
        assert (intent.state, intent.attempt) == (State.HELD, (2 if before else 1) + asks_anew)
        assert (intent.resolution is not None) is (row.get("kept", False) and not asks_anew)
        assert world.effects.decisions == []
        world.publish()
        require_the_truth(world, caller, record, intent_id, "open" if asks_anew else truth)


def require_the_truth(world: World, caller: Caller, record: Mapping[str, Any], intent_id: str, truth: str) -> None:
    """Requires that nothing of the lie is left: the owner's own answer counts, and a grant runs the body once."""
    seen = {
        "open": "ACTION_HELD",
        "refused": "ACTION_REFUSED",
        "expired": "REVIEW_EXPIRED",
        "granted": None,
    }[truth]
    error = caller.attempt(world.body, intent_id=intent_id)
    assert getattr(error, "code", None) == seen
    assert world.effects.decisions == ([record["decision_id"]] if truth == "granted" else [])
    if truth == "granted":
        for said in ({"intent_id": intent_id}, world.said()):
            again = caller.attempt(world.body, **said)
            assert getattr(again, "code", None) == "ACTION_ALREADY_STARTED"
        assert caller.flush().failure is None
        (receipt,) = world.plain.list_executions(record["decision_id"])["executions"]
        assert (receipt["execution_status"], receipt["flags"]) == ("executed", [])
        assert world.plain.get_resolution(record["decision_id"])["state"] == "executed"
    assert len(world.effects.decisions) == (truth == "granted")


RECORD: Final[Any] = make_record(sample_request(**HELD))
GRANTED: Final[Any] = make_resolution(RECORD)
RECORDED: Final = parse_timestamp(GRANTED["recorded_at"])


def found(resolution: object, record: Any = RECORD, now: datetime = NOW, max_age: float | None = None) -> Finding:
    return judge(resolution, record, TRUST, now=now, max_age=max_age).finding


def test_a_change_to_any_member_of_a_grant_that_is_hashed_or_signed_opens_nothing() -> None:
    assert found(GRANTED, now=RECORDED) is Finding.GRANTED
    tried = 0
    for path in places(GRANTED):
        for what, tampered in changed_likely(GRANTED, path):
            finding = found(tampered, now=RECORDED)
            # Where a grant stands in the chain is proven by the chain, and says nothing about the action.
            if path[0] != "audit_chain":
                assert finding in (Finding.UNVERIFIED, Finding.FOREIGN), what
                tried += 1
    assert tried > 40


def test_what_somebody_adds_to_a_grant_is_not_passed_on() -> None:
    judged = judge({**GRANTED, "approved_limit": 999_999}, RECORD, TRUST, now=RECORDED, max_age=None)
    assert judged.finding is Finding.GRANTED
    assert judged.resolution == GRANTED


@given(
    now=st.floats(-2e5, 2e5),
    lasts=st.integers(1, 200_000),
    max_age=st.none() | st.floats(0.001, 2e5),
)
def test_a_grant_is_in_time_from_when_clocks_may_say_until_it_ends_or_is_too_old(
    now: float, lasts: int, max_age: float | None
) -> None:
    moment = RECORDED + timedelta(seconds=now)
    grant: Any = {**GRANTED, "expires_at": timestamp(RECORDED + timedelta(seconds=lasts))}
    after = (moment - RECORDED) / timedelta(seconds=1)
    ahead = MAX_AGE if max_age is None else min(MAX_AGE, max_age)
    latest = lasts if max_age is None else min(lasts, max_age)
    is_open = -ahead <= after < lasts and after <= latest
    assert (in_time(grant, moment, max_age) is Finding.GRANTED) is is_open
    if max_age is not None and in_time(grant, moment, max_age) is Finding.GRANTED:
        # Who allows more opens nothing less.
        assert in_time(grant, moment, None) is Finding.GRANTED


NAMES: Final = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=12)
VALUES: Final = st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-9, 9) | NAMES


@given(
    rulebook=st.sampled_from(
        [
            "prices",
            "prices@1",
            {"rulebook_id": "prices", "version": "1"},
            {"rulebook_id": "prices", "version": "1", "hash": "0" * 64},
            sample_rulebook(),
        ]
    ),
    facts=st.dictionaries(NAMES, VALUES, max_size=4),
    parts=st.tuples(NAMES, NAMES) | st.tuples(NAMES, NAMES, NAMES),
    context=st.dictionaries(st.sampled_from(["workflow", "amount", "actor", "note"]), VALUES, max_size=3),
    action=NAMES,
)
def test_a_resumed_action_is_the_one_that_was_proposed(
    rulebook: Any, facts: dict[str, Any], parts: tuple[str, ...], context: dict[str, Any], action: str
) -> None:
    proposed = propose(rulebook, facts, action=action, target=parts, context=context)
    asked = proposed.request(attempt=3, store="store_1", nonce="n", question=2)
    kept = Intent(proposed.intent_id, 3, State.HELD, asked, proposed.body_hash, "2026-06-11T12:30:45.678Z")
    resumed = proposal_of(kept)
    for name in ("intent_id", "body", "body_hash", "target", "binding"):
        assert getattr(resumed, name) == getattr(proposed, name)
    # A reference by hash goes without the names that the record was held to when it came.
    assert resumed.rulebook.items() <= proposed.rulebook.items()
    assert resumed.rulebook


def test_a_resolution_is_judged_by_the_keys_at_hand_whatever_they_are() -> None:
    now = RECORDED + timedelta(seconds=5)
    single = replace(TRUST, receipt_keys=None, public_key=RECEIPT_SIGNER.public_key)
    assert judge(GRANTED, RECORD, single, now=now, max_age=None).finding is Finding.GRANTED
    nothing = replace(TRUST, receipt_keys=KeyRegistry())
    assert judge(GRANTED, RECORD, nothing, now=now, max_age=None).finding is Finding.UNVERIFIED
