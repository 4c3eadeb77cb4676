"""Packets of advisory decisions, and what is left of one that was erased: they verify offline, and no change passes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import orjson
import pytest
from flask.testing import FlaskClient
from typer.testing import CliRunner

from api.cli.main import app
from gate.clock import utc_now
from gate.decisions.erasure import erase
from gate.encoding.canonical import content_hash
from gate.instance.audit import check_chain
from gate.instance.instance import Instance
from gate.labels import DECISION_CONTRACT
from gate.ledger.access.authority import Scope
from gate.ledger.packing import pack, unpack
from gate.ledger.tables import entries
from gate.proof.signing import load_registry
from gate.records.packet import packet_hash
from gate.verify import Trust, verify_packet, verify_record
from tests.api.deciding import decide
from tests.gate.ledger.test_audit import changed, row_at
from tests.independent import verifier
from tests.support.samples import EXECUTED, SUCCEEDED
from tests.support.tampering import at, changed_likely, places, with_value, without
from tests.support.upstreams import ADVISORY_REQUESTS, Server

Packet = dict[str, Any]

MODES: Final = tuple(ADVISORY_REQUESTS)


class Published:
    """What a verifier elsewhere has: the public keys, as the service publishes them."""

    def __init__(self, client: FlaskClient) -> None:
        self.receipt_keys: dict[str, Any] = client.get("/api/decision/receipt-keys").get_json()
        self.trust = Trust(receipt_keys=load_registry(self.receipt_keys), source="registry")

    def believe(self, packet: Packet, path: tuple[Any, ...] = ()) -> bool:
        """Whether a packet verifies; for both implementations alike, but for places that the second one skips."""
        here = verify_packet(packet, self.trust).verified
        there = verifier.packet_failures(packet, self.receipt_keys) == []
        assert here == there or (not here and path[:2] in SKIPPED), path
        return here


# No null, no absence and no erasure note is looked at there as closely as here.
SKIPPED: Final = {
    ("decision_record", name) for name in ("decision_protocol_version", "matched_rule_id", "evaluation", "erased")
}


@pytest.fixture
def published(client: FlaskClient) -> Published:
    return Published(client)


def exported(client: FlaskClient, key: str, request: dict[str, Any]) -> Packet:
    """A packet of a decision that was reported about: what was done against the advice, and what came of it."""
    headers = {"x-api-key": key}
    record = decide(client, key, request).get_json()
    for kind, report in (("execution", EXECUTED), ("outcome", SUCCEEDED), ("execution", HELD)):
        made = client.post(f"{record['decision_url']}/{kind}", json=report, headers=headers)
        assert made.status_code == 201, made.get_json()
    return packet_of(client, key, record["decision_url"])


HELD: Final = {"execution_status": "skipped"}


def packet_of(client: FlaskClient, key: str, url: str, *, intelligence: bool = False) -> Packet:
    # Policy reports take most of the time to verify.
    query = f"include_input=true&include_intelligence={json.dumps(intelligence)}"
    found = client.get(f"{url}/packet?{query}", headers={"x-api-key": key})
    assert found.status_code == 200, found.get_json()
    packet: Packet = found.get_json()
    return packet


def rehashed(packet: Packet) -> Packet:
    return {**packet, "packet_hash": packet_hash(packet)}


@pytest.mark.parametrize("mode", MODES)
def test_a_packet_verifies_offline(
    client: FlaskClient, key: str, upstream: Server, published: Published, tmp_path: Path, mode: str
) -> None:
    packet = exported(client, key, ADVISORY_REQUESTS[mode])
    assert published.believe(packet)
    packet = packet_of(client, key, packet["decision_record"]["decision_url"], intelligence=True)
    assert packet["input"] == ADVISORY_REQUESTS[mode]
    assert packet["decision_record"]["decision_contract"] == DECISION_CONTRACT
    # Whatever the advice was: nothing that was done about it was approved.
    assert ["DECISION_NOT_APPROVED" in receipt["flags"] for receipt in packet["execution_receipts"]] == [True, True]
    assert published.believe(packet)
    result = verify_packet(packet, published.trust, require_signed_reports=True)
    assert (result.verified, [step.holds for step in result.steps.values()]) == (True, [True] * 4)
    file, keys = tmp_path / "packet.json", tmp_path / "keys.json"
    file.write_text(json.dumps(packet))
    keys.write_text(json.dumps(published.receipt_keys))
    for command in ("verify-packet", "verify"):
        subject = packet if command == "verify-packet" else packet["decision_record"]
        file.write_text(json.dumps(subject))
        done = CliRunner().invoke(app, [command, str(file), "--registry", str(keys), "--json"])
        assert done.exit_code == 0, done.output
        assert json.loads(done.stdout)["verified"] is True
        forged = {name: value for name, value in subject.items() if name != "decision_contract"}
        if "decision_record" in subject:
            forged = rehashed(without(packet, ("decision_record", "decision_contract")))
        file.write_text(json.dumps(forged))
        assert CliRunner().invoke(app, [command, str(file), "--registry", str(keys), "--json"]).exit_code == 1


@pytest.mark.heavy
def test_no_change_to_a_packet_passes(client: FlaskClient, key: str, upstream: Server, published: Published) -> None:
    for mode in MODES:
        packet = exported(client, key, ADVISORY_REQUESTS[mode])
        parts = WHOLE if mode == "single" else (("decision_record", "evaluation"), ("decision_record", "evidence"))
        assert set(survivors(packet, parts, published)) == (ADDED_TO if mode == "single" else set())


WHOLE: Final = (("decision_record",), ("execution_receipts",), ("outcome_records",))
# Members that no release knows are noted; the oldest receipt may be one that a limit left out; and earlier releases did
# not have the flag of another action.
ADDED_TO: Final = {
    ("decision_record",),
    ("execution_receipts", 0),
    ("execution_receipts", 1),
    ("execution_receipts", 1, "flags", 2),
    ("outcome_records", 0),
}


def survivors(packet: Packet, parts: tuple[tuple[Any, ...], ...], published: Published) -> Iterator[tuple[Any, ...]]:
    """Where a change still verifies once the packet was hashed anew, as anybody can."""
    for path in places(packet):
        if not any(path[: len(part)] == part for part in parts):
            continue
        for what, tampered in changed_likely(packet, path):
            if published.believe(rehashed(tampered), path):
                assert content_hash(tampered) != content_hash(packet), what
                yield path


def test_a_packet_with_parts_of_a_binding_record_does_not_verify(
    client: FlaskClient, key: str, upstream: Server, published: Published
) -> None:
    packet = exported(client, key, ADVISORY_REQUESTS["single"])
    for name in ("rulebook", "runtime_binding", "rulebook_registry", "rulebook_attestation", "adapter_facts"):
        for value in (None, {}, "", {"id": "x"}):
            assert not published.believe(rehashed(with_value(packet, ("decision_record", name), value))), (name, value)


@pytest.mark.parametrize("mode", MODES)
def test_an_erased_decision_verifies_as_far_as_it_can(
    client: FlaskClient, key: str, instance: Instance, scope: Scope, upstream: Server, published: Published, mode: str
) -> None:
    before = exported(client, key, ADVISORY_REQUESTS[mode])
    url = before["decision_record"]["decision_url"]
    erase(instance.ledger, before["decision_id"], "asked for by the person", utc_now())
    packet = packet_of(client, key, url)
    record = packet["decision_record"]
    assert packet["input"] is record["evaluation"] is None
    assert record["erased"]["members"] == ["evaluation", "input"]
    left = {name: value for name, value in record.items() if name not in ("evaluation", "erased")}
    assert left == {name: value for name, value in before["decision_record"].items() if name != "evaluation"}
    assert published.believe(packet)
    result = verify_packet(packet, published.trust)
    assert (result.error, result.checks["audit_chain.erasure"]) == ("MATERIAL_ERASED", True)
    assert {result.checks[f"record.{name}"] for name in ("evaluation", "input_hash")} == {None}
    alone = verify_record(record, published.trust)
    assert (alone.verified, alone.error) == (True, "MATERIAL_ERASED")
    assert (alone.checks["evaluation"], alone.checks["erasure"]) == (None, None)
    assert verifier.record_failures(record, published.receipt_keys) == []
    assert check_chain(instance, scope.scope_id) == (5, None)


@pytest.mark.heavy
def test_no_change_to_a_packet_of_an_erased_decision_passes(
    client: FlaskClient, key: str, instance: Instance, upstream: Server, published: Published
) -> None:
    before = exported(client, key, ADVISORY_REQUESTS["single"])
    erase(instance.ledger, before["decision_id"], "asked for by the person", utc_now())
    packet = packet_of(client, key, before["decision_record"]["decision_url"])
    # The entry of the erasure has its id, and a packet has no more of it than its link.
    expected = {("decision_record",), ("decision_record", "erased", "erasure_id")}
    assert set(survivors(packet, (("decision_record",),), published)) == expected
    # Nor does another answer pass for the one that is gone.
    evaluation = before["decision_record"]["evaluation"]
    for value in (evaluation, {**evaluation, "answer": {"answer": "no", "reason": "r"}}, {}):
        assert not published.believe(rehashed(with_value(packet, ("decision_record", "evaluation"), value)))


Change = Callable[[dict[str, Any]], dict[str, Any]]


def _set(*path: Any, to: Any) -> Change:
    return lambda record: with_value(record, path, to)


CHANGES: Final[dict[str, Change]] = {
    "no contract": lambda record: without(record, ("decision_contract",)),
    "another contract": _set("decision_contract", "production_verdict", to=True),
    "an empty rulebook": _set("rulebook", to={}),
    "a binding evaluator": _set("evaluator_version", to="svc_rulebook_v1"),
    "an application verdict": _set("application_verdict", to="APPROVE"),
    "an action": _set("action", to="issue_refund"),
    "another verdict": lambda record: {**record, "verdict": "no", "c": "no", "v": "denied"},
    "another reason code": _set("reason_code", to="ADVISORY_NO"),
    "another mode": _set("policy_id", to="advisory.multi"),
    "another template": _set("policy_hash", to="0" * 64),
    "another answer's hash": lambda record: with_value(
        with_value(record, ("evidence", 1), f"answer:{'0' * 64}"),
        ("evidence_manifest", "sources", 2, "snapshot_hash"),
        "0" * 64,
    ),
    "an unknown member": _set("note", to="approved"),
}
WHOLE_CHANGES: Final[dict[str, Change]] = {
    "another answer": _set("evaluation", "answer", "answer", to="no"),
    "another reason": _set("evaluation", "answer", "reason", to="Approved."),
    "another model": _set("evaluation", "model", to="model-2"),
    "no answer": _set("evaluation", to=None),
}
ERASED_CHANGES: Final[dict[str, Change]] = {
    "the answer is back": _set("evaluation", to={"mode": "single", "model": "model-1", "answer": {}}),
    "no word of the erasure": lambda record: without(record, ("erased",)),
    "another erasure": _set("erased", "erasure_id", to="era_0"),
    "less was erased": _set("erased", "members", to=["evaluation"]),
}


@pytest.mark.parametrize("erased", [False, True])
def test_a_change_to_a_stored_decision_breaks_its_chain(
    client: FlaskClient, key: str, instance: Instance, scope: Scope, upstream: Server, erased: bool
) -> None:
    exported(client, key, ADVISORY_REQUESTS["single"])
    request = row_at(instance, 1).request
    if erased:
        record = orjson.loads(unpack(row_at(instance, 1).body))
        erase(instance.ledger, record["decision_id"], "asked for by the person", utc_now())
    size = 4 + erased
    assert check_chain(instance, scope.scope_id) == (size, None)
    row = row_at(instance, 1)
    stored = orjson.loads(unpack(row.body))
    for name, change in {**CHANGES, **(ERASED_CHANGES if erased else WHOLE_CHANGES)}.items():
        with changed(instance, entries, row, {"body": pack(orjson.dumps(change(stored)))}):
            broken = check_chain(instance, scope.scope_id)[1]
        assert broken is not None, name
        assert broken.position == 1, name
    with changed(instance, entries, row, {"request": request if erased else None}):
        broken = check_chain(instance, scope.scope_id)[1]
    assert broken is not None
    assert at(stored, ("decision_contract",)) == DECISION_CONTRACT
    assert check_chain(instance, scope.scope_id) == (size, None)
