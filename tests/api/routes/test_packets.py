"""Packets over HTTP: the export with its parameters, and the verification of what was exported, by anyone."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from flask.testing import FlaskClient
from sqlalchemy import select, update
from typer.testing import CliRunner
from werkzeug.test import TestResponse

from api.app import create_app
from api.cli.main import app
from api.http.requests import MAX_VERIFY_BODY
from gate.clock import utc_now
from gate.decisions import export
from gate.decisions.erasure import erase
from gate.encoding import resources
from gate.encoding.strict_json import MAX_REQUEST_VALUES, MAX_VALUES
from gate.instance.instance import Instance, open_instance
from gate.instance.settings import load_settings
from gate.ledger.access.authority import FULL_ACCESS
from gate.ledger.packing import pack, unpack
from gate.ledger.tables import entries, outcome_counts, rulebooks
from gate.proof.signing import public_key_pem
from gate.records.packet import packet_hash
from tests.contract.frozen import current
from tests.independent import verifier
from tests.support.samples import EXECUTED, RECEIPT_SIGNER, SUCCEEDED, make_packet, sample_request
from tests.support.tampering import COLLECTIONS, as_doubles, with_value, without
from tests.support.torture import size
from workbench.analytics import Analytics
from workbench.lake.entries import Personal

Packet = dict[str, Any]


def counting(instance: Instance) -> FlaskClient:
    """A client of an application of its own, which makes the reports that packets hold."""
    analytics = Analytics(instance.ledger, instance.settings.lake_directory, Personal(), instance.migrations())
    return create_app(instance, analytics=analytics).test_client()


class Caller:
    """Whoever has a key: makes a decision, reports of it, and exports packets of it."""

    def __init__(self, client: FlaskClient, key: str) -> None:
        self.client = client
        self.headers = {"x-api-key": key}
        self.record: dict[str, Any] = self.sent("/api/decide", sample_request())
        self.path = f"/api/decision/{self.record['decision_id']}"

    def sent(self, path: str, body: Any) -> dict[str, Any]:
        """The answer to a request that succeeds."""
        response = self.client.post(path, json=body, headers=self.headers)
        assert response.status_code in (200, 201), response.data
        answer: dict[str, Any] = response.get_json()
        return answer

    def report(self, executions: int = 0, outcomes: int = 0) -> None:
        """Reports of the decision."""
        for number in range(executions):
            self.sent(f"{self.path}/execution", {**EXECUTED, "external_ref": f"tx-{number}"})
        for _ in range(outcomes):
            self.sent(f"{self.path}/outcome", SUCCEEDED)

    def get(self, query: str = "") -> TestResponse:
        """The answer to an export."""
        return self.client.get(f"{self.path}/packet{query}", headers=self.headers)

    def packet(self, query: str = "") -> Packet:
        """An exported packet."""
        response = self.get(query)
        assert response.status_code == 200, response.data
        exported: Packet = response.get_json()
        return exported


@pytest.fixture
def caller(client: FlaskClient, key: str) -> Caller:
    return Caller(client, key)


def result_of(response: TestResponse) -> dict[str, Any]:
    assert response.status_code == 200, response.data
    body: dict[str, Any] = response.get_json()
    jsonschema.Draft202012Validator(resources.schema("packet-verification-result")).validate(body)
    assert body["ok"] is body["verified"]
    return body


def verify(client: FlaskClient, body: Any) -> dict[str, Any]:
    return result_of(client.post("/api/decision/packet/verify", json=body))


class TestExport:
    """GET /api/decision/{id}/packet."""

    def test_a_packet_verifies_at_the_service_and_in_an_independent_verifier(
        self, client: FlaskClient, caller: Caller
    ) -> None:
        caller.report(executions=2, outcomes=2)
        packet = caller.packet("?include_input=true")
        for body in (packet, {"packet": packet}):
            result = verify(client, body)
            assert (result["verified"], result["key_source"]) == (True, "server")
            assert [step["holds"] for step in result["steps"].values()] == [True] * 4
        keys = client.get("/api/decision/receipt-keys").get_json()
        attesting = client.get("/.well-known/rulebook-attestation-keys.json").get_json()
        assert verifier.packet_failures(packet, keys, attestation_keys=attesting) == []

    def test_the_headers_name_the_version_and_the_hash(self, caller: Caller) -> None:
        response = caller.get()
        assert response.headers["x-decision-packet-version"] == "decision_packet_v1"
        assert response.headers["x-decision-packet-hash"] == response.get_json()["packet_hash"]

    def test_a_packet_is_as_the_document_describes(self, caller: Caller) -> None:
        caller.report(executions=1, outcomes=1)
        document = current()
        schema = {"$ref": "#/components/schemas/DecisionPacket", "components": document["components"]}
        validator = jsonschema.Draft202012Validator(schema)
        for query in ("?include_input=true", "?include_chain=false&include_intelligence=false"):
            validator.validate(caller.packet(query))

    def test_parts_are_what_the_service_answers_elsewhere(self, client: FlaskClient, caller: Caller) -> None:
        caller.report(executions=2, outcomes=2)
        packet = caller.packet()
        assert packet["decision_record"] == client.get(caller.path, headers=caller.headers).get_json()
        for name, kind in (("execution_receipts", "execution"), ("outcome_records", "outcome")):
            listed = client.get(f"{caller.path}/{kind}", headers=caller.headers).get_json()
            assert packet[name] == listed["executions" if kind == "execution" else "outcomes"]
        intelligence = packet["policy_intelligence"]
        query = "?policy_version=2026-06-11&verdict=yes&action=approve_discount"
        report = client.get(f"/api/decision/policies/pricing_exception/confidence{query}", headers=caller.headers)
        assert intelligence["confidence"] == report.get_json()
        query = "?policy_version=2026-06-11"
        report = client.get(f"/api/decision/policies/pricing_exception/effectiveness{query}", headers=caller.headers)
        assert intelligence["effectiveness"] == report.get_json()
        assert intelligence["effectiveness"]["outcomes"]["succeeded"] == 1
        # Of all versions.
        for name in ("anomalies", "benchmarks"):
            report = client.get(f"/api/decision/policies/pricing_exception/{name}", headers=caller.headers)
            assert intelligence[name] == report.get_json()
            assert intelligence[name]["policy_version"] is None
        (pattern,) = intelligence["patterns"]
        shipped = client.get("/api/decision/policy-patterns?pattern_id=pricing_exception").get_json()
        assert pattern == shipped["policy_pattern"]

    def test_links_begin_with_the_decision_and_a_checkpoint_speaks_for_them(
        self, client: FlaskClient, caller: Caller
    ) -> None:
        later = Caller(client, caller.headers["x-api-key"])
        later.report(executions=3, outcomes=1)
        caller.report(executions=1)
        for limit, positions in ((1, [2]), (3, [2, 3, 4]), (1000, [2, 3, 4, 5, 6, 7])):
            part = later.packet(f"?chain_limit={limit}")["audit_chain"]
            assert [link["chain_position"] for link in part["retained_links"]] == positions
            checkpoint = part["verification_hints"]["checkpoint"]
            assert (part["chain_size"], checkpoint["chain_size"]) == (positions[-1], positions[-1])
            keys = client.get("/api/decision/receipt-keys").get_json()
            assert verifier.checkpoint_failures(checkpoint, keys) == []

    @pytest.mark.parametrize("limit", [1, 2, 20])
    def test_limits_take_the_newest_reports(self, caller: Caller, limit: int) -> None:
        caller.report(executions=3, outcomes=3)
        packet = caller.packet(f"?execution_limit={limit}&outcome_limit={limit}&include_intelligence=false")
        told = [receipt["external_ref"] for receipt in packet["execution_receipts"]]
        assert told == ["tx-2", "tx-1", "tx-0"][:limit]
        assert len(packet["outcome_records"]) == min(limit, 3)

    def test_limits_are_20_where_none_is_asked_for(self, client: FlaskClient, caller: Caller) -> None:
        later = Caller(client, caller.headers["x-api-key"])
        later.report(executions=21, outcomes=21)
        packet = later.packet("?include_intelligence=false")
        assert (len(packet["execution_receipts"]), len(packet["outcome_records"])) == (20, 20)
        assert len(caller.packet("?include_intelligence=false")["audit_chain"]["retained_links"]) == 20

    def test_the_links_end_where_they_could_not_tell_an_invented_report_from_a_newer_one(
        self, client: FlaskClient, caller: Caller
    ) -> None:
        foreign = Caller(client, caller.headers["x-api-key"])
        for executions, outcomes in ((1, 0), (0, 2), (2, 0), (0, 1)):
            caller.report(executions, outcomes)
            foreign.report(executions=1)
        for limit, links in product(((1, 1), (1, 3), (2, 2), (3, 1), (20, 20)), (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 1000)):
            query = f"?execution_limit={limit[0]}&outcome_limit={limit[1]}&chain_limit={links}"
            packet = caller.packet(f"{query}&include_intelligence=false")
            result = verify(client, packet)
            assert result["verified"]
            retained = {link["chain_position"]: link for link in packet["audit_chain"]["retained_links"]}
            assert min(retained) == caller.record["audit_chain"]["chain_position"]
            for collection, kind in COLLECTIONS.items():
                shown = {report["audit_chain"]["chain_position"] for report in packet[collection]}
                told = {
                    position
                    for position, link in retained.items()
                    if (link["entry_type"], link["decision_id"]) == (kind.entry_type, packet["decision_id"])
                }
                assert told <= shown or shown <= told
                assert result["checks"][f"{collection}.complete"] is (True if told <= shown else None)
                unlinked = re.compile(rf"{collection}\[\d+\]\.audit_chain\.link")
                assert sum(map(bool, map(unlinked.fullmatch, result["checks"]))) == len(shown - told)

    def test_parts_are_there_as_asked(self, caller: Caller) -> None:
        optional = {"input", "audit_chain", "policy_intelligence"}
        assert caller.packet().keys() & optional == {"audit_chain", "policy_intelligence"}
        whole = caller.packet("?include_input=true&include_chain=true&include_intelligence=true")
        assert whole.keys() >= optional
        assert whole["input"] == sample_request()
        bare = caller.packet("?include_input=false&include_chain=false&include_intelligence=false")
        assert bare.keys() & optional == set()

    @pytest.mark.parametrize("name", ["execution_limit", "outcome_limit", "chain_limit"])
    @pytest.mark.parametrize("value", ["0", "1001", "-1", "1.5", "x", "", "1e2", "%D9%A1"])
    def test_limits_have_bounds(self, caller: Caller, name: str, value: str) -> None:
        self.assert_unusable(caller.get(f"?{name}={value}"), name)

    @pytest.mark.parametrize("name", ["include_input", "include_chain", "include_intelligence"])
    @pytest.mark.parametrize("value", ["1", "0", "yes", "True", "FALSE", "", "null"])
    def test_what_is_asked_for_is_true_or_false(self, caller: Caller, name: str, value: str) -> None:
        self.assert_unusable(caller.get(f"?{name}={value}"), name)

    @pytest.mark.parametrize("name", ["chain_limit", "include_input"])
    def test_no_parameter_is_sent_twice(self, caller: Caller, name: str) -> None:
        self.assert_unusable(caller.get(f"?{name}=1&{name}=1"), name)

    @staticmethod
    def assert_unusable(response: TestResponse, name: str) -> None:
        body = response.get_json()
        assert (response.status_code, body["error"]) == (400, "SVC_API_QUERY_INVALID")
        assert [fault["field"] for fault in body["errors"]] == [name]

    def test_exporting_needs_a_key_with_read(self, client: FlaskClient, caller: Caller, instance: Instance) -> None:
        unknown = client.get(f"{caller.path}/packet")
        assert (unknown.status_code, unknown.get_json()["error"]) == (401, "SVC_API_UNAUTHORIZED")
        scope = instance.ledger.directory.scope("acme")
        deciding, _ = instance.ledger.directory.create_key(scope, {"decide"}, None, utc_now())
        refused = client.get(f"{caller.path}/packet", headers={"x-api-key": deciding})
        assert (refused.status_code, refused.get_json()["error"]) == (403, "SVC_API_UNAUTHORIZED")

    def test_foreign_and_unknown_decisions_look_alike(
        self, client: FlaskClient, caller: Caller, instance: Instance
    ) -> None:
        other = instance.ledger.directory.create_scope("other", "starter", utc_now())
        foreign, _ = instance.ledger.directory.create_key(other, FULL_ACCESS, None, utc_now())
        answers = []
        for path in (caller.path, "/api/decision/dec_unknown", "/api/decision/%00"):
            response = client.get(f"{path}/packet", headers={"x-api-key": foreign})
            body = response.get_json()
            body.pop("request_id")
            answers.append((response.status_code, body))
        assert answers[0] == answers[1] == answers[2]
        assert (answers[0][0], answers[0][1]["error"]) == (404, "SVC_DECISION_NOT_FOUND")

    @pytest.mark.heavy
    def test_a_packet_that_could_not_be_verified_at_once_is_not_made(
        self, caller: Caller, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert export.MAX_BYTES == MAX_VERIFY_BODY
        # A search for credentials takes most of the time, so that the texts and the bound are small together.
        smaller = size(4, 1)
        monkeypatch.setattr(export, "MAX_BYTES", MAX_VERIFY_BODY // smaller)
        for _ in range(18):
            # Of no letters, which that search would try one by one.
            binding = {"note": "!" * (1_000_000 // smaller)}
            caller.sent(f"{caller.path}/execution", {"execution_status": "executed", "action_binding": binding})
        response = caller.get()
        assert (response.status_code, response.get_json()["error"]) == (400, "SVC_API_QUERY_INVALID")
        assert f"({MAX_VERIFY_BODY // smaller} bytes" in response.get_json()["message"]
        assert caller.get("?execution_limit=16").status_code == 200

    @pytest.mark.heavy
    def test_no_packet_holds_more_values_than_a_verifier_reads(
        self, client: FlaskClient, caller: Caller, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        # Those in strings are counted as well, and take less time.
        for values in ([1] * 95_000, *["," * 95_000] * 10):
            caller.sent(f"{caller.path}/execution", {**EXECUTED, "action_binding": {"a": values}})
        with monkeypatch.context() as patched:
            # What is read takes fifty times the memory: it is counted before.
            patched.setattr("gate.decisions.stored.read_object", None)
            self.assert_too_many_values(caller.get())
        packet = caller.get("?execution_limit=10&include_intelligence=false")
        sent = client.post("/api/decision/packet/verify", data=packet.data, content_type="application/json")
        assert sent.get_json()["verified"]
        file = tmp_path / "packet.json"
        file.write_bytes(packet.data)
        keys = tmp_path / "keys.json"
        keys.write_bytes(client.get("/api/decision/receipt-keys").data)
        told = CliRunner().invoke(app, ["verify-packet", str(file), "--registry", str(keys)])
        assert told.exit_code == 0, told.output

    @pytest.mark.heavy
    @pytest.mark.parametrize("query", ["", "&include_input=true", "&include_intelligence=false&include_chain=false"])
    def test_the_most_values_that_are_exported_are_the_most_that_a_verifier_reads(
        self, client: FlaskClient, caller: Caller, query: str
    ) -> None:
        query = f"?outcome_limit=1&chain_limit=1{query}&execution_limit="
        caller.sent(f"{caller.path}/outcome", {**SUCCEEDED, "external_ref": ",[{" * 60})

        def report(commas: int) -> None:
            # Those in strings are counted as well.
            caller.sent(f"{caller.path}/execution", {**EXECUTED, "action_binding": {"a": "," * commas}})

        def values(receipts: int) -> int:
            return sum(map(caller.get(f"{query}{receipts}").data.count, (b",", b"[", b"{")))

        for _ in range(9):
            report(98_000)
        report(0)
        held = values(10)
        report(MAX_VALUES - held - (held - values(9) - 98_000) - 1)
        assert values(11) == MAX_VALUES - 1
        report(0)
        most = caller.get(f"{query}11")
        read = client.post("/api/decision/packet/verify", data=most.data, content_type="application/json")
        assert (read.status_code, read.get_json()["verified"]) == (200, True)
        self.assert_too_many_values(caller.get(f"{query}12"))

    def test_what_is_accepted_can_be_read_again_listed_and_exported(self, client: FlaskClient, key: str) -> None:
        request = sample_request()
        request["context"]["actor"] = {"id": ""}
        room = MAX_REQUEST_VALUES - sum(map(json.dumps(request).count, ",[{"))
        request["context"]["actor"]["id"] = "," * room
        headers = {"x-api-key": key}
        record = client.post("/api/decide", json=request, headers=headers).get_json()
        path = f"/api/decision/{record['decision_id']}"
        binding = {**EXECUTED, "action_binding": {"a": ""}}
        binding["action_binding"]["a"] = "," * (MAX_REQUEST_VALUES - sum(map(json.dumps(binding).count, ",[{")))
        assert client.post(f"{path}/execution", json=binding, headers=headers).status_code == 201
        for url in (path, f"{path}/execution", f"{path}/packet?include_input=true", f"{path}/verify"):
            assert client.get(url, headers=headers).status_code == 200, url
        request["context"]["actor"]["id"] += ","
        refused = client.post("/api/decide", json=request, headers=headers)
        assert (refused.status_code, refused.get_json()["error"]) == (400, "SVC_API_JSON_INVALID")

    @staticmethod
    def assert_too_many_values(response: TestResponse) -> None:
        body = response.get_json()
        assert (response.status_code, body["error"]) == (400, "SVC_API_QUERY_INVALID")
        assert f"{MAX_VALUES} commas and brackets). Request fewer receipts" in body["message"]

    def test_without_receipt_signing_there_is_no_checkpoint(self, home: Path) -> None:
        (home / "settings.toml").write_text('receipt_signing = "off"\n')
        instance = open_instance(load_settings(home))
        scope = instance.ledger.directory.create_scope("acme", "unlimited", utc_now())
        key, _ = instance.ledger.directory.create_key(scope, FULL_ACCESS, None, utc_now())
        client = counting(instance)
        packet = Caller(client, key).packet()
        assert "checkpoint" not in packet["audit_chain"]["verification_hints"]
        result = verify(client, packet)
        assert (result["error"], result["integrity_valid"]) == ("RECORD_UNSIGNED", True)
        instance.close()

    def test_what_was_erased_is_null_and_the_rest_verifies(
        self, client: FlaskClient, caller: Caller, instance: Instance
    ) -> None:
        caller.report(executions=1, outcomes=1)
        erase(instance.ledger, caller.record["decision_id"], "asked for by the person", utc_now())
        packet = caller.packet("?include_input=true")
        assert packet["input"] is packet["decision_record"]["evaluation"] is None
        result = verify(client, packet)
        assert (result["verified"], result["notice"]) == (True, "MATERIAL_ERASED")
        assert (result["checks"]["audit_chain.erasure"], result["checks"]["record.evaluation"]) == (True, None)


Damage = Callable[[Instance], None]


def stored(column: str, position: int, change: Callable[[Any], Any]) -> Damage:
    """What is stored of the entry at a position is something else."""

    def damage(instance: Instance) -> None:
        with instance.ledger.store.write() as connection:
            where = entries.c.position == position
            value = connection.execute(select(entries.c[column]).where(where)).scalar_one()
            connection.execute(update(entries).where(where).values({column: change(value)}))

    return damage


def exchanged(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    def change(packed: bytes) -> bytes:
        body = unpack(packed)
        assert old in body
        return pack(body.replace(old, new))

    return change


def rulebook_of_other_rules(instance: Instance) -> None:
    with instance.ledger.store.write() as connection:
        body = connection.execute(select(rulebooks.c.body)).scalar_one()
        connection.execute(update(rulebooks).values(body=pack(unpack(body).replace(b'"value":15', b'"value":25'))))


def rulebook_gone(instance: Instance) -> None:
    with instance.ledger.store.write() as connection:
        connection.execute(rulebooks.delete())


def link_gone(instance: Instance) -> None:
    with instance.ledger.store.write() as connection:
        connection.execute(entries.delete().where(entries.c.position == 3))


def counts_gone(instance: Instance) -> None:
    with instance.ledger.store.write() as connection:
        outcome_counts.drop(connection)


def entries_gone(instance: Instance) -> None:
    with instance.ledger.store.write() as connection:
        connection.exec_driver_sql("ALTER TABLE entries RENAME TO gone")


def keys_gone(instance: Instance) -> None:
    (instance.settings.home / "keys" / "receipt.json").unlink()


# Position 1 is the decision, 2 and 3 are its execution receipts, 4 is its outcome.
DAMAGES: dict[str, Damage] = {
    "record unreadable": stored("body", 1, lambda body: body[:-1]),
    "record of another verdict": stored("body", 1, exchanged(b'"verdict":"yes"', b'"verdict":"no"')),
    "record without members": stored("body", 1, lambda _: b"{}"),
    "record with another signature": stored("body", 1, exchanged(b'signature":"ed25519:', b'signature":"ed25519:AA')),
    "request changed": stored("request", 1, exchanged(b"deal-1042", b"deal-1043")),
    "request gone": stored("request", 1, lambda _: None),
    "receipt unreadable": stored("body", 3, lambda _: b"x"),
    "receipt of another status": stored("body", 3, exchanged(b'"executed"', b'"failed"')),
    "receipt with other flags": stored("body", 3, exchanged(b'"flags":[]', b'"flags":["X"]')),
    "receipt with an empty member": stored("body", 3, exchanged(b'"flags":[]', b'"flags":[],"idempotency_key":""')),
    "outcome of another status": stored("body", 4, exchanged(b'"succeeded"', b'"failed"')),
    "outcome of another decision": stored("body", 4, exchanged(b'"policy_id":"pricing', b'"policy_id":"prizing')),
    "link hash changed": stored("link_hash", 3, lambda text: text[::-1]),
    "root changed": stored("merkle_root", 3, lambda text: text[::-1]),
    "leaf changed": stored("leaf_hash", 4, lambda text: text[::-1]),
    "link of another type": stored("entry_type", 3, lambda _: "crm_sync"),
    "link of another date": stored("created_at", 3, lambda _: "2026-01-01T00:00:00.000Z"),
    "link gone": link_gone,
    "rulebook of other rules": rulebook_of_other_rules,
    "rulebook gone": rulebook_gone,
    "counts of outcomes gone": counts_gone,
    "ledger gone": entries_gone,
}


@pytest.mark.parametrize("name", DAMAGES)
def test_there_is_no_packet_where_a_part_is_not_as_it_was_made(caller: Caller, instance: Instance, name: str) -> None:
    caller.report(executions=2, outcomes=1)
    # Only of the reports about its policy is this one a part.
    intelligence = str(name == "counts of outcomes gone").lower()
    query = f"?include_input=true&include_intelligence={intelligence}"
    assert caller.get(query).status_code == 200
    DAMAGES[name](instance)
    response = caller.get(query)
    body = response.get_json()
    assert (response.status_code, body["error"]) == (503, "SVC_STORAGE_UNAVAILABLE")
    assert body.keys() == {"v", "error", "message", "request_id"}


def test_there_is_no_packet_without_the_keys(caller: Caller, instance: Instance) -> None:
    keys_gone(instance)
    response = caller.get()
    assert (response.status_code, response.get_json()["error"]) == (503, "SVC_SIGNING_UNAVAILABLE")


def test_a_part_that_is_not_asked_for_can_be_broken(caller: Caller, instance: Instance) -> None:
    caller.report(outcomes=1)
    counts_gone(instance)
    rulebook_gone(instance)
    assert caller.get("?include_intelligence=false").status_code == 200
    assert caller.get().status_code == 503


def test_a_packet_without_intelligence_needs_nothing_that_counts(caller: Caller, instance: Instance) -> None:
    caller.report(outcomes=1)
    caller.client = create_app(instance).test_client()
    response = caller.get()
    assert (response.status_code, response.get_json()["error"]) == (503, "SVC_REPORT_UNAVAILABLE")
    bare = caller.packet("?include_intelligence=false")
    assert verify(caller.client, bare)["verified"]


def test_a_packet_is_made_where_the_secret_that_signed_the_record_is_no_longer_known(home: Path) -> None:
    secret = home / "secret"
    secret.write_text("a secret of at least 32 bytes, yes")
    secret.chmod(0o600)
    hmac = f'receipt_signing = "hmac-sha256"\nreceipt_hmac_secret_file = "{secret}"\n'
    (home / "settings.toml").write_text(hmac)
    instance = open_instance(load_settings(home))
    scope = instance.ledger.directory.create_scope("acme", "unlimited", utc_now())
    key, _ = instance.ledger.directory.create_key(scope, FULL_ACCESS, None, utc_now())
    caller = Caller(counting(instance), key)
    assert verify(caller.client, caller.packet())["verified"]
    instance.close()
    (home / "settings.toml").write_text("")
    instance = open_instance(load_settings(home))
    caller.client = counting(instance)
    result = verify(caller.client, caller.packet())
    assert (result["verified"], result["integrity_valid"], result["error"]) == (False, True, "SIGNING_KEY_UNKNOWN")
    instance.close()


class TestVerify:
    """GET and POST /api/decision/packet/verify."""

    def test_the_endpoint_describes_itself_to_anyone(self, client: FlaskClient) -> None:
        body = client.get("/api/decision/packet/verify").get_json()
        jsonschema.Draft202012Validator(resources.schema("verification-endpoint")).validate(body)
        assert body["endpoint"] == "/api/decision/packet/verify"
        assert body["decision_packet_version"] == "decision_packet_v1"
        assert body["accepts"].keys() == {"packet", "input", "public_key", "checkpoint"}

    def test_a_changed_packet_is_not_verified_and_step_and_place_are_named(
        self, client: FlaskClient, caller: Caller
    ) -> None:
        caller.report(executions=1, outcomes=2)
        tampered = with_value(caller.packet(), ("outcome_records", 1, "outcome_status"), "failed")
        result = verify(client, tampered)
        assert (result["verified"], result["error"]) == (False, "PACKET_INTEGRITY_FAILED")
        failed = {name: step["failed"] for name, step in result["steps"].items() if not step["holds"]}
        assert failed == {
            "packet_hash": ["packet_hash"],
            "execution_and_outcome_hashes": ["outcome_records[1].outcome_hash"],
        }
        assert "outcome_records[1].outcome_hash" in result["expected"]

    def test_the_original_input_is_checked_when_it_is_sent(self, client: FlaskClient, caller: Caller) -> None:
        packet = caller.packet()
        assert verify(client, {"packet": packet, "input": sample_request()})["checks"]["record.input_hash"] is True
        other = verify(client, {"packet": packet, "input": sample_request(margin_percent=1)})
        assert set(other["steps"]["decision_record"]["failed"]) == {"record.input_hash", "record.facts_hash"}

    def test_integers_can_be_written_as_doubles(self, client: FlaskClient, caller: Caller) -> None:
        caller.report(executions=1, outcomes=1)
        packet = as_doubles(caller.packet("?include_input=true"))
        kept = packet["audit_chain"]["verification_hints"]["checkpoint"]
        assert '"chain_size": 3.0' in json.dumps(kept)
        for body in (packet, {"packet": packet, "checkpoint": kept, "input": as_doubles(sample_request())}):
            result = verify(client, body)
            assert (result["verified"], set(result["checks"].values()) <= {True, None}) == (True, True)

    def test_a_kept_checkpoint_is_held_against_the_packet(self, client: FlaskClient, caller: Caller) -> None:
        caller.report(outcomes=1)
        path = f"/api/decision/chains/{caller.record['audit_chain']['chain_id']}/checkpoint"
        kept = client.get(path, headers=caller.headers).get_json()
        caller.report(outcomes=1)
        result = verify(client, {"packet": caller.packet(), "checkpoint": kept})
        assert (result["verified"], result["checks"]["checkpoint.chain"]) == (True, True)
        other = verify(client, {"packet": caller.packet(), "checkpoint": {**kept, "merkle_root": "0" * 64}})
        assert (other["verified"], other["checks"]["checkpoint.signature"]) == (False, False)
        beyond = verify(client, {"packet": caller.packet("?chain_limit=1"), "checkpoint": kept})
        assert (beyond["verified"], beyond["error"]) == (False, "CHECKPOINT_NOT_COMPARABLE")

    def test_reports_that_no_checkpoint_covers_are_told(self, client: FlaskClient, caller: Caller) -> None:
        caller.report(outcomes=1)
        whole, few = (verify(client, caller.packet(f"?chain_limit={limit}")) for limit in (20, 1))
        assert (whole["verified"], whole["checks"]["reports_signed"], "notice" in whole) == (True, True, False)
        assert (few["verified"], few["checks"]["reports_signed"], few["notice"]) == (True, None, "REPORTS_UNSIGNED")
        assert "outcome_records[0]" in few["message"]

    def test_members_that_no_release_made_are_named(self, client: FlaskClient, caller: Caller) -> None:
        packet = {**caller.packet(), "note": "hello"}
        packet["decision_record"] = {**packet["decision_record"], "stamp": "approved"}
        result = verify(client, {**packet, "packet_hash": packet_hash(packet)})
        assert (result["verified"], result["unknown_members"]) == (True, ["note", "decision_record.stamp"])

    def test_a_packet_of_another_service_is_not_verified(self, client: FlaskClient) -> None:
        result = verify(client, make_packet())
        assert (result["verified"], result["integrity_valid"]) == (False, True)
        assert result["error"] == "SIGNING_KEY_UNKNOWN"

    def test_a_key_that_the_request_supplies_shows_integrity_only(self, client: FlaskClient) -> None:
        result = verify(client, {"packet": make_packet(), "public_key": RECEIPT_SIGNER.public_key})
        assert (result["verified"], result["integrity_valid"], result["key_source"]) == (False, True, "request")
        assert result["error"] == "SIGNING_KEY_NOT_TRUSTED"

    def test_packets_of_before_a_rotation_still_verify_and_compromise_ends_that(
        self, client: FlaskClient, caller: Caller, instance: Instance
    ) -> None:
        packet = caller.packet()
        instance.receipt_keys.rotate(utc_now())
        assert verify(client, packet)["verified"]
        exported = caller.packet()
        checkpoint = exported["audit_chain"]["verification_hints"]["checkpoint"]
        assert checkpoint["key_id"] != caller.record["receipt_key_id"]
        assert verify(client, exported)["verified"]
        instance.receipt_keys.compromise(caller.record["receipt_key_id"], utc_now(), utc_now())
        for old in (packet, exported, caller.packet()):
            result = verify(client, old)
            assert (result["verified"], result["error"]) == (False, "SIGNING_KEY_NOT_TRUSTED")

    @pytest.mark.parametrize(
        ("body", "error"),
        [
            ([], "SVC_API_REQUEST_INVALID"),
            ("packet", "SVC_API_REQUEST_INVALID"),
            ({}, "SVC_API_REQUEST_INVALID"),
            ({"packet": "x"}, "SVC_API_REQUEST_INVALID"),
            ({"packet": None}, "SVC_API_REQUEST_INVALID"),
            ({"input": {}}, "SVC_API_REQUEST_INVALID"),
            ({"packet": {}, "inptu": {}}, "SVC_API_REQUEST_INVALID"),
            ({"packet": {}, "public_key": 1}, "SVC_API_REQUEST_INVALID"),
            ({"packet": {}, "public_key": "x"}, "PUBLIC_KEY_INVALID"),
            ({"packet": {}, "public_key": public_key_pem(bytes(32))}, "PUBLIC_KEY_INVALID"),
            ({"packet": {}, "checkpoint": {}}, "SVC_API_REQUEST_INVALID"),
            ({"packet": {}, "checkpoint": "x"}, "SVC_API_REQUEST_INVALID"),
        ],
    )
    def test_what_holds_no_packet_is_refused(self, client: FlaskClient, body: Any, error: str) -> None:
        response = client.post("/api/decision/packet/verify", json=body)
        assert (response.status_code, response.get_json()["error"]) == (422, error)

    @pytest.mark.parametrize("wrapped", [True, False])
    def test_an_incomplete_packet_is_told_as_such(self, client: FlaskClient, wrapped: bool) -> None:
        lacking = without(make_packet(), ("decision_packet_version",))
        result = verify(client, {"packet": lacking} if wrapped else lacking)
        assert (result["verified"], result["error"]) == (False, "PACKET_INCOMPLETE")

    def test_bodies_have_limits(self, client: FlaskClient) -> None:
        path = "/api/decision/packet/verify"
        huge = b" " * (MAX_VERIFY_BODY + 1)
        assert client.post(path, data=huge, content_type="application/json").status_code == 413
        assert client.post(path, data=b"{}", content_type="text/plain").status_code == 415
        assert client.post(path, data=b"{", content_type="application/json").status_code == 400

    def test_the_deepest_request_fits_into_the_depth_that_is_read(self, client: FlaskClient, key: str) -> None:
        deep: Any = "x"
        for _ in range(29):
            deep = [deep]
        request = sample_request()
        request["context"]["actor"] = {"type": deep[0]}
        caller = Caller(client, key)
        caller.record = caller.sent("/api/decide", request)
        caller.path = caller.record["decision_url"]
        binding = {"actor": deep[0][0]}
        caller.sent(f"{caller.path}/execution", {"execution_status": "executed", "action_binding": binding})
        packet = caller.packet("?include_input=true")
        assert verify(client, {"packet": packet, "input": request})["verified"]

    def test_a_hostile_packet_is_answered_in_few_words(self, client: FlaskClient) -> None:
        packet = make_packet()
        packet["decision_record"]["action_binding"]["subject"] = "x" * 1_000_000
        packet["execution_receipts"] = packet["execution_receipts"] * 500
        packet["outcome_records"] = [{}] * 1000
        sent = json.dumps({**packet, "packet_hash": packet_hash(packet)})
        response = client.post("/api/decision/packet/verify", data=sent, content_type="application/json")
        assert not result_of(response)["verified"]
        assert len(response.data) < 100_000
