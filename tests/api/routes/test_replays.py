"""POST .../replay, .../diff and .../counterfactuals: every status, code, header and view; and none of them writes."""

from __future__ import annotations

import copy
import json
from typing import Any

import jsonschema
import pytest
from flask.testing import FlaskClient
from hypothesis import HealthCheck, given, settings
from sqlalchemy import update
from werkzeug.test import TestResponse

from api.app import create_app
from api.http.requests import MAX_BODY
from gate.clock import utc_now
from gate.contract.published import golden_cases
from gate.encoding import resources
from gate.encoding.canonical import content_hash
from gate.instance.instance import Instance
from gate.instance.settings import load_settings
from gate.labels import VIEWS
from gate.ledger.access.authority import FULL_ACCESS, Scope
from gate.ledger.tables import entries
from gate.proof import chain
from gate.proof.chain import link_material
from gate.records.advisory import ADVISORY_MODES
from gate.records.envelope import envelope, receipt_material
from gate.records.views import project
from tests.reference.strategies import rulebooks_and_facts
from tests.support.rulebooks import change, rehashed, stricter_rulebook
from tests.support.samples import cases, rows_of, sample_request, sample_rulebook
from tests.support.torture import size

ENDPOINTS = ("replay", "diff", "counterfactuals")
SCENARIOS = {
    "scenarios": [{"scenario_id": "thin", "label": "Thin", "context_patch": {"inputs": {"margin_percent": 1}}}]
}
NEVER_OF_A_REPLAY = {
    "receipt_key_id",
    "receipt_signature",
    "receipt_signature_algorithm",
    "receipt_public_key_fingerprint",
    "audit_chain",
    "decision_confidence",
    "confidence_hash",
}


class Caller:
    """Calls the service with one key."""

    def __init__(self, client: FlaskClient, key: str) -> None:
        self.client = client
        self.headers = {"x-api-key": key}

    def decide(self, body: Any = None, **headers: str) -> dict[str, Any]:
        """The record of a decision, by default about the sample."""
        sent = self.headers | {name.replace("_", "-"): value for name, value in headers.items()}
        response = self.client.post("/api/decide", json=sample_request() if body is None else body, headers=sent)
        assert response.status_code == 200, response.text
        record: dict[str, Any] = response.get_json()
        return record

    def ask(self, record: dict[str, Any], endpoint: str, body: Any = None, **headers: str) -> TestResponse:
        """Asks about a decision; without a body where it is None."""
        sent = self.headers | {name.replace("_", "-"): value for name, value in headers.items()}
        more = {} if body is None else {"data": json.dumps(body).encode(), "content_type": "application/json"}
        return self.client.post(f"{record['decision_url']}/{endpoint}", headers=sent, **more)

    def answer(self, record: dict[str, Any], endpoint: str, body: Any = None, **headers: str) -> dict[str, Any]:
        """What is answered, where that is a 200 that follows its schema."""
        response = self.ask(record, endpoint, body, **headers)
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.get_json()
        name = "counterfactuals" if endpoint == "counterfactuals" else "replay"
        jsonschema.Draft202012Validator(resources.schema(f"{name}-result")).validate(answer)
        return answer


@pytest.fixture
def caller(client: FlaskClient, key: str) -> Caller:
    return Caller(client, key)


def refused(response: TestResponse, status: int, error: str) -> dict[str, Any]:
    body: dict[str, Any] = response.get_json()
    assert (response.status_code, body["error"]) == (status, error), body
    jsonschema.Draft202012Validator(resources.schema("error")).validate(body)
    assert not {"c", "verdict", "decision"} & body.keys()
    return body


def by_reference(**inputs: Any) -> dict[str, Any]:
    """The sample request with a reference instead of the rulebook."""
    request = sample_request(**inputs)
    rulebook = request.pop("rulebook")
    return request | {"rulebook_ref": {"rulebook_id": rulebook["rulebook_id"], "version": rulebook["version"]}}


def store(instance: Instance, record: dict[str, Any], **columns: Any) -> None:
    """Writes over columns of a decision's entry, as somebody with the database at hand could."""
    with instance.ledger.store.write() as connection:
        connection.execute(update(entries).where(entries.c.entry_id == record["decision_id"]).values(columns))


def store_as(instance: Instance, record: dict[str, Any], **members: Any) -> None:
    """Stores the first decision of a chain as another release could have made it, its hashes and link all in order."""
    made: Any = rehashed({name: value for name, value in record.items() if name != "audit_chain"}, **members)
    made["receipt_hash"] = content_hash(receipt_material(made))
    assert made["record_hash"] == content_hash(envelope(made))
    link = chain.append(chain.Head(record["audit_chain"]["chain_id"]), link_material(made))
    linked = {name: link[name] for name in ("record_hash", "receipt_hash", "leaf_hash", "merkle_root", "link_hash")}
    store(instance, record, body=json.dumps(made).encode(), **linked)


def another_scope(instance: Instance, client: FlaskClient) -> Caller:
    other = instance.ledger.directory.create_scope("other", "unlimited", utc_now())
    return Caller(client, instance.ledger.directory.create_key(other, FULL_ACCESS, None, utc_now())[0])


class TestHistorical:
    """A replay as the decision was made."""

    def test_it_is_the_default_and_matches(self, caller: Caller) -> None:
        record = caller.decide(x_idempotency_key="order-1")
        answer = caller.answer(record, "replay")
        decision = answer.pop("decision")
        assert answer == {
            "decision_id": record["decision_id"],
            "replay_contract": "historical_rulebook_replay_v1",
            "replay_against": "historical",
            "compared_fields": ["verdict", "evidence", "record_hash", "policy_bundle_hash"],
            "replay_status": "matched",
            "drift": [],
        }
        assert decision.pop("integrity")["signature"] is None
        assert not NEVER_OF_A_REPLAY & decision.keys()
        assert decision.items() <= record.items()
        assert record.keys() - decision.keys() <= NEVER_OF_A_REPLAY | {"integrity"}
        for body in ({}, {"replay_mode": "historical"}):
            assert caller.answer(record, "replay", body) == answer | {
                "decision": decision | {"integrity": {**record["integrity"], "signature": None}}
            }

    @pytest.mark.parametrize(
        "request_body",
        [
            sample_request(margin_percent=22),
            sample_request(discount_percent=10, margin_percent="22"),
            sample_request(discount_percent=10, margin_percent=3),
            sample_request(discount_percent=40, margin_percent=22),
            {"mode": "rulebook", "rulebook": sample_rulebook()},
            {**sample_request(), "question": "May this discount be given?", "response_view": "minimal"},
            {**sample_request(), "binding_mode": "direct_declarative_rulebook"},
        ],
        ids=["missing", "mistyped", "blocked", "default", "no context", "question and view", "binding mode"],
    )
    def test_every_kind_of_decision_matches(self, caller: Caller, request_body: dict[str, Any]) -> None:
        assert caller.answer(caller.decide(request_body), "replay")["replay_status"] == "matched"

    @pytest.mark.parametrize("by_hash", [True, False])
    def test_a_decision_by_reference_matches(self, caller: Caller, by_hash: bool) -> None:
        registered = caller.decide()["rulebook"]
        request = by_reference()
        if by_hash:
            request["rulebook_ref"] = {"hash": registered["hash"]}
        record = caller.decide(request)
        answer = caller.answer(record, "replay")
        assert (answer["replay_status"], answer["decision"]["rulebook"]) == ("matched", registered)
        assert answer["decision"]["input_hash"] == record["input_hash"] == content_hash(request)

    @pytest.mark.heavy
    def test_every_golden_case_matches(self, caller: Caller) -> None:
        for golden in golden_cases():
            record = caller.decide(golden.request())
            assert caller.answer(record, "replay")["drift"] == [], golden.case["case_id"]

    @pytest.mark.heavy
    @settings(max_examples=size(12, 25), suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(rulebooks_and_facts())
    def test_whatever_was_decided_matches(
        self, instance: Instance, client: FlaskClient, case: tuple[dict[str, Any], dict[str, Any]]
    ) -> None:
        # A scope a case, for the cases share ids and versions of rulebooks.
        name = f"scope-{instance.ledger.entries.totals().scopes}"
        own = instance.ledger.directory.create_scope(name, "unlimited", utc_now())
        caller = Caller(client, instance.ledger.directory.create_key(own, FULL_ACCESS, None, utc_now())[0])
        rulebook, facts = case
        request = {"mode": "rulebook", "rulebook": rulebook, "context": {"inputs": facts}}
        response = client.post("/api/decide", json=request, headers=caller.headers)
        assert response.status_code == 200, response.text
        assert caller.answer(response.get_json(), "replay")["drift"] == []
        assert caller.answer(response.get_json(), "diff")["drift"] == []

    def test_newer_versions_and_newer_keys_change_nothing(self, caller: Caller, instance: Instance) -> None:
        record = caller.decide()
        before = caller.answer(record, "replay")
        caller.decide({**sample_request(), "rulebook": stricter_rulebook()})
        instance.receipt_keys.rotate(utc_now())
        instance.registry_keys.rotate(utc_now())
        assert caller.answer(record, "replay") == before
        assert before["replay_status"] == "matched"

    def test_a_moved_service_changes_nothing(self, caller: Caller, instance: Instance, key: str) -> None:
        record = caller.decide()
        (instance.settings.home / "settings.toml").write_text('base_url = "https://moved.example"\n')
        moved = Caller(create_app(load_settings(instance.settings.home)).test_client(), key)
        assert moved.decide()["rulebook_contract"]["schema_url"].startswith("https://moved.example/")
        for endpoint in ("replay", "diff"):
            assert moved.answer(record, endpoint)["replay_status"] == "matched"

    def test_a_retry_replays_as_its_first_call_does(self, caller: Caller) -> None:
        first = caller.decide(x_idempotency_key="order-1")
        again = caller.decide(x_idempotency_key="order-1")
        assert again["decision_id"] == first["decision_id"]
        assert caller.answer(again, "replay")["decision"]["idempotency_key"] == "order-1"

    @pytest.mark.parametrize(
        "members",
        [
            {"evaluator_version": "svc_rulebook_v2"},
            {"rulebook_contract": {"evaluator_version": "svc_rulebook_v2"}},
            {"rulebook_contract": {"schema_hash": "0" * 64}},
            {"rulebook_registry": {"evaluator_version": "svc_rulebook_v2"}},
        ],
        ids=["record", "contract", "schema", "registration"],
    )
    def test_the_record_of_another_evaluator_is_not_reinterpreted(
        self, caller: Caller, instance: Instance, members: dict[str, Any]
    ) -> None:
        record = caller.decide()
        changed = {n: {**record[n], **v} if isinstance(v, dict) else v for n, v in members.items()}
        store_as(instance, record, **changed)
        body = refused(caller.ask(record, "replay"), 409, "REPLAY_LINEAGE_MISMATCH")
        assert "The operator must run `gate chain check`." in body["message"]
        # The present may still be compared with it: that reinterprets nothing.
        assert caller.answer(record, "diff")["replay_status"] == "drifted"

    @pytest.mark.parametrize(
        "members",
        [
            {"runtime_binding": {"binding_mode": "trusted_adapter_facts_then_declarative_rulebook"}},
            {"trusted_adapter": {"adapter_id": "refund_facts", "version": "1.0.0"}},
            {
                "runtime_binding": {"binding_mode": "trusted_adapter_facts_then_declarative_rulebook"},
                "trusted_adapter": {"adapter_id": "refund_facts", "version": "1.0.0"},
                "adapter_facts": {"discount_percent": 10, "margin_percent": 22},
            },
        ],
        ids=["binding mode", "invocation", "both"],
    )
    def test_the_record_of_an_adapter_is_not_replayed_without_it(
        self, caller: Caller, instance: Instance, members: dict[str, Any]
    ) -> None:
        record = caller.decide()
        store_as(instance, record, **{name: {**record.get(name, {}), **value} for name, value in members.items()})
        for endpoint in ENDPOINTS:
            body = SCENARIOS if endpoint == "counterfactuals" else None
            refused(caller.ask(record, endpoint, body), 409, "REPLAY_LINEAGE_MISMATCH")


class TestCurrent:
    """A replay by what the scope has registered by now, and diff."""

    @pytest.mark.parametrize(
        ("endpoint", "body"), [("diff", None), ("diff", {}), ("replay", {"replay_mode": "current"})]
    )
    def test_an_unchanged_rulebook_matches(self, caller: Caller, endpoint: str, body: Any) -> None:
        answer = caller.answer(caller.decide(), endpoint, body)
        assert (answer["replay_against"], answer["replay_status"]) == ("current", "matched")
        assert "replay_contract" not in answer

    def test_a_newer_version_that_decides_otherwise_drifts(self, caller: Caller) -> None:
        record = caller.decide()
        newer = caller.decide({**sample_request(), "rulebook": stricter_rulebook()})
        for endpoint, body in (("diff", {"replay_mode": "current"}), ("replay", {"replay_mode": "current"})):
            answer = caller.answer(record, endpoint, body)
            told = {entry["field"]: (entry["stored"], entry["replayed"]) for entry in answer["drift"]}
            assert answer["replay_status"] == "drifted"
            assert told.keys() == set(answer["compared_fields"])
            assert told["verdict"] == ("yes", "no")
            assert told["policy_bundle_hash"] == (record["policy_bundle_hash"], newer["policy_bundle_hash"])
            decision = answer["decision"]
            assert decision["rulebook_registry"] == newer["rulebook_registry"]
            assert [decision[name] for name in ("decision_id", "request_id", "created_at")] == [
                record[name] for name in ("decision_id", "request_id", "created_at")
            ]
            assert not NEVER_OF_A_REPLAY & decision.keys()

    def test_the_decision_of_a_newer_version_matches_while_it_is_the_latest(self, caller: Caller) -> None:
        caller.decide()
        newer = caller.decide({**sample_request(), "rulebook": stricter_rulebook()})
        assert caller.answer(newer, "diff")["replay_status"] == "matched"

    def test_versions_of_another_scope_count_for_nothing(
        self, caller: Caller, client: FlaskClient, instance: Instance
    ) -> None:
        record = caller.decide()
        another_scope(instance, client).decide({**sample_request(), "rulebook": stricter_rulebook()})
        assert caller.answer(record, "diff")["replay_status"] == "matched"

    def test_the_same_request_as_input_matches(self, caller: Caller) -> None:
        record = caller.decide()
        assert caller.answer(record, "diff", {"input": sample_request()})["replay_status"] == "matched"
        viewed = {**sample_request(), "response_view": "minimal"}
        answer = caller.answer(record, "diff", {"input": viewed})
        assert (answer["replay_status"], "evaluation" in answer["decision"]) == ("matched", True)

    def test_an_input_is_decided_as_it_would_be_now(self, caller: Caller) -> None:
        record = caller.decide()
        other = by_reference(discount_percent=10, margin_percent=3)
        decided = caller.decide(other)
        decision = caller.answer(record, "replay", {"replay_mode": "current", "input": other})["decision"]
        same = ("verdict", "evidence", "evaluation", "action_binding", "input_hash", "policy_hash", "output_hash")
        assert {name: decision[name] for name in same} == {name: decided[name] for name in same}
        assert decision["decision_id"] == record["decision_id"]

    def test_an_unregistered_rulebook_is_tried_without_being_registered(
        self, caller: Caller, instance: Instance, scope: Scope
    ) -> None:
        record = caller.decide()
        request = {**sample_request(), "rulebook": stricter_rulebook()}
        answer = caller.answer(record, "diff", {"input": request})
        registration = answer["decision"]["rulebook_registry"]
        assert (answer["decision"]["verdict"], registration["version"]) == ("no", "2026-09-01")
        assert registration["registered_at"] == record["created_at"]
        assert registration["registry_attestation"]["status"] == "unsigned"
        assert instance.ledger.rulebooks.find(scope.scope_id, registration["hash"]) is None
        assert caller.answer(record, "diff")["replay_status"] == "matched"

    def test_a_key_that_may_only_read_may_try_a_rulebook(
        self, caller: Caller, client: FlaskClient, instance: Instance, scope: Scope
    ) -> None:
        record = caller.decide()
        reader = Caller(client, instance.ledger.directory.create_key(scope, {"read"}, None, utc_now())[0])
        request = {**sample_request(), "rulebook": stricter_rulebook()}
        assert reader.answer(record, "diff", {"input": request})["decision"]["verdict"] == "no"

    @pytest.mark.parametrize("case", cases("decide_refusals"), ids=lambda case: case["name"])
    def test_an_input_is_refused_where_a_decision_would_be_and_its_place_is_named(
        self, caller: Caller, case: dict[str, Any]
    ) -> None:
        body = copy.deepcopy(case.get("body", sample_request()))
        for name in case.get("unset", []):
            del body[name]
        for path, value in case.get("set", {}).items():
            change(body, path, value)
        record = caller.decide()
        response = caller.ask(record, "diff", {"input": body})
        advisory = isinstance(body, dict) and body.get("mode", "single") in ADVISORY_MODES and "rulebook" not in body
        if case["error"] == "SVC_ADVISORY_UNCONFIGURED" or (advisory and case["error"] == "SVC_API_REQUEST_INVALID"):
            told = refused(response, 422, "SVC_API_REQUEST_INVALID")
            assert [error["field"] for error in told["errors"]] == ["input.mode"]
            return
        told = refused(response, case["status"], case["error"])
        for field, code in case.get("fields", []):
            place = f"input.{field}" if field else "input"
            assert (place, code) in [(error["field"], error["code"]) for error in told["errors"]]
        if "forbidden_fields" in case.get("details", {}):
            assert told["forbidden_fields"] == [f"input.{field}" for field in case["details"]["forbidden_fields"]]

    @pytest.mark.parametrize(
        ("body", "code"),
        [
            ({}, "required"),
            ({"margin_percent": 30}, "required"),
            ({"inputs": {"margin_percent": 30}}, "required"),
            ({"context": {"inputs": {"margin_percent": 30}}}, "required"),
            ({"mode": "single", "question": "Is it?"}, "enum"),
        ],
    )
    def test_an_input_that_names_no_rulebook_is_told_what_an_input_is(
        self, caller: Caller, body: dict[str, Any], code: str
    ) -> None:
        told = refused(caller.ask(caller.decide(), "diff", {"input": body}), 422, "SVC_API_REQUEST_INVALID")
        assert told["errors"] == [{"field": "input.mode", "code": code, "message": "It must be rulebook."}]
        assert told["message"] == (
            "A replay needs a rulebook. Send a whole Decision Request in input: mode rulebook, rulebook or "
            "rulebook_ref, and the facts in context.inputs."
        )

    def test_an_input_under_a_version_that_is_bound_to_another_body_conflicts(self, caller: Caller) -> None:
        record = caller.decide()
        changed = sample_request()
        changed["rulebook"]["default_outcome"]["action"] = "ask_the_owner"
        told = refused(caller.ask(record, "diff", {"input": changed}), 409, "RULEBOOK_VERSION_CONFLICT")
        assert told["registered_hash"] == record["policy_hash"]

    def test_diff_takes_no_other_mode(self, caller: Caller) -> None:
        told = refused(caller.ask(caller.decide(), "diff", {"replay_mode": "historical"}), 422, "REPLAY_MODE_INVALID")
        assert told["supported_replay_modes"] == ["current"]


class TestCounterfactuals:
    """What-if scenarios."""

    def test_the_headers_are_those_of_the_answer(self, caller: Caller) -> None:
        response = caller.ask(caller.decide(), "counterfactuals", SCENARIOS, x_request_id="trace-1")
        answer = response.get_json()
        assert {name: value for name, value in response.headers.items() if name.startswith("x-")} == {
            "x-decision-counterfactuals-version": "decision_counterfactuals_v1",
            "x-decision-counterfactual-hash": answer["counterfactual_hash"],
            "x-decision-counterfactual-scenarios": "1",
            "x-request-id": "trace-1",
            "x-content-type-options": "nosniff",
        }

    def test_a_scenario_is_held_against_the_stored_record(self, caller: Caller) -> None:
        record = caller.decide()
        answer = caller.answer(record, "counterfactuals", SCENARIOS)
        (told,) = answer["scenarios"]
        assert (told["scenario_id"], told["label"], told["verdict"]) == ("thin", "Thin", "no")
        assert (told["recommendation"], told["reason_code"]) == ("would_block", "MARGIN_FLOOR_BREACH")
        assert answer["base"] == {name: record[name] for name in answer["base"]}
        assert (answer["simulation_only"], answer["authorizes_mutation"]) == (True, False)
        assert answer["rulebook"] == record["rulebook"]

    def test_it_asks_the_rulebook_of_now(self, caller: Caller) -> None:
        record = caller.decide()
        newer = caller.decide({**sample_request(), "rulebook": stricter_rulebook()})
        same = {"scenarios": [{"scenario_id": "same", "label": "As it was", "context_patch": {}}]}
        answer = caller.answer(record, "counterfactuals", same)
        assert (answer["rulebook"], answer["scenarios"][0]["recommendation"]) == (newer["rulebook"], "would_block")

    def test_a_decision_by_reference_and_one_without_context_are_patched_too(self, caller: Caller) -> None:
        caller.decide()
        patch = {"inputs": {"discount_percent": 10, "margin_percent": 1}}
        body = {"scenarios": [{"scenario_id": "s", "label": "S", "context_patch": patch}]}
        bare = {"mode": "rulebook", "rulebook": sample_rulebook()}
        for request in (by_reference(), bare):
            (told,) = caller.answer(caller.decide(request), "counterfactuals", body)["scenarios"]
            assert told["verdict"] == "no"

    def test_fifty_scenarios_are_answered_in_order(self, caller: Caller) -> None:
        scenarios = [
            {"scenario_id": f"m{margin}", "label": "Margin", "context_patch": {"inputs": {"margin_percent": margin}}}
            for margin in range(50)
        ]
        answer = caller.answer(caller.decide(), "counterfactuals", {"scenarios": scenarios})
        assert [told["verdict"] for told in answer["scenarios"]] == ["no"] * 15 + ["yes"] * 35
        assert [told["scenario_id"] for told in answer["scenarios"]] == [given["scenario_id"] for given in scenarios]

    @pytest.mark.parametrize("body", [None, {}, [], {"scenarios": []}, {"scenarios": [{}]}, {"scenario": []}])
    def test_without_scenarios_there_is_no_answer(self, caller: Caller, body: Any) -> None:
        told = refused(caller.ask(caller.decide(), "counterfactuals", body), 400, "COUNTERFACTUAL_SCENARIOS_INVALID")
        assert told["errors"]

    @pytest.mark.parametrize(
        ("patch", "field"),
        [
            ({"inputs": 7}, "scenarios[0].context_patch.inputs"),
            ({"inputs": {"action": "pay"}}, "scenarios[0].context_patch.inputs.action"),
        ],
    )
    def test_a_context_that_no_decision_would_take_is_refused(self, caller: Caller, patch: Any, field: str) -> None:
        body = {"scenarios": [{"scenario_id": "s", "label": "S", "context_patch": patch}]}
        told = refused(caller.ask(caller.decide(), "counterfactuals", body), 400, "COUNTERFACTUAL_SCENARIOS_INVALID")
        assert [error["field"] for error in told["errors"]] == [field]

    def test_what_else_is_wrong_with_the_body_is_422(self, caller: Caller) -> None:
        told = refused(
            caller.ask(caller.decide(), "counterfactuals", {**SCENARIOS, "response_view": "whole"}),
            422,
            "SVC_API_REQUEST_INVALID",
        )
        assert [error["field"] for error in told["errors"]] == ["response_view"]


def body_of(endpoint: str) -> dict[str, Any]:
    return copy.deepcopy(SCENARIOS) if endpoint == "counterfactuals" else {}


def view_of(answer: dict[str, Any]) -> str | None:
    """The view that an answer is in; None where it is in none."""
    shown = answer["decision"] if "decision" in answer else answer["scenarios"][0]
    for view, members in (("minimal", set()), ("standard", {"evidence"}), ("full", {"evidence", "evaluation"})):
        if shown.keys() & {"evidence", "evaluation"} == members:
            whole = "decision" not in answer or shown == project(shown, view)
            return view if whole else None
    return None


@pytest.mark.parametrize("endpoint", ENDPOINTS)
class TestEveryEndpoint:
    """What holds for all three."""

    def test_the_view_is_that_of_the_body_else_of_the_headers_else_full(self, caller: Caller, endpoint: str) -> None:
        record, body = caller.decide(), body_of(endpoint)
        assert view_of(caller.answer(record, endpoint, body)) == "full"
        for view in VIEWS:
            assert view_of(caller.answer(record, endpoint, body, prefer=f"return={view}")) == view
            assert view_of(caller.answer(record, endpoint, body, x_decision_response_view=view)) == view
            viewed = {**body, "response_view": view}
            assert view_of(caller.answer(record, endpoint, viewed, x_decision_response_view="standard")) == view
        refused(caller.ask(record, endpoint, body, x_decision_response_view="whole"), 422, "SVC_API_REQUEST_INVALID")

    def test_nothing_is_written(self, caller: Caller, instance: Instance, endpoint: str) -> None:
        record = caller.decide()
        caller.decide({**sample_request(), "rulebook": stricter_rulebook()})
        # The key's last use is noted by whoever authenticates, so it is noted before.
        caller.ask(record, endpoint, body_of(endpoint))
        before = rows_of(instance.ledger.store)
        bodies = [body_of(endpoint)]
        if endpoint != "counterfactuals":
            unknown = {**stricter_rulebook(), "version": "2027-01-01"}
            bodies.append({"replay_mode": "current", "input": {**sample_request(), "rulebook": unknown}})
        for body in bodies:
            caller.answer(record, endpoint, body)
        assert rows_of(instance.ledger.store) == before

    def test_the_same_question_has_the_same_answer(self, caller: Caller, endpoint: str) -> None:
        record, body = caller.decide(), body_of(endpoint)
        assert caller.ask(record, endpoint, body).data == caller.ask(record, endpoint, body).data

    def test_it_needs_a_key_with_read(
        self, caller: Caller, client: FlaskClient, instance: Instance, scope: Scope, endpoint: str
    ) -> None:
        record = caller.decide()
        refused(client.post(f"{record['decision_url']}/{endpoint}"), 401, "SVC_API_UNAUTHORIZED")
        deciding = Caller(client, instance.ledger.directory.create_key(scope, {"decide"}, None, utc_now())[0])
        refused(deciding.ask(record, endpoint, body_of(endpoint)), 403, "SVC_API_UNAUTHORIZED")

    def test_a_foreign_decision_looks_like_an_unknown_one(
        self, caller: Caller, client: FlaskClient, instance: Instance, endpoint: str
    ) -> None:
        foreign, other = caller.decide(), another_scope(instance, client)
        unknown = {"decision_url": "/api/decision/dec_unknown"}
        bodies: list[Any] = [None, body_of(endpoint), {"replay_mode": "x"}, {"scenarios": 1}, []]
        for body in bodies:
            answers = []
            for record in (foreign, unknown):
                response = other.ask(record, endpoint, body)
                told = refused(response, 404, "SVC_DECISION_NOT_FOUND")
                headers = {**response.headers, "x-request-id": ""}
                answers.append((response.data.replace(told["request_id"].encode(), b""), headers))
            assert answers[0] == answers[1]

    def test_the_body_is_read_after_the_key_and_before_the_decision(
        self, caller: Caller, client: FlaskClient, endpoint: str
    ) -> None:
        path = f"/api/decision/dec_unknown/{endpoint}"
        sent: dict[str, Any] = {"data": b"{", "content_type": "application/json"}
        refused(client.post(path, **sent), 401, "SVC_API_UNAUTHORIZED")
        refused(client.post(path, headers=caller.headers, **sent), 400, "SVC_API_JSON_INVALID")
        plain = {**sent, "content_type": "text/plain"}
        refused(client.post(path, **plain), 415, "SVC_API_MEDIA_TYPE_UNSUPPORTED")
        large = {**sent, "data": b" " * (MAX_BODY + 1)}
        refused(client.post(path, **large), 413, "SVC_API_PAYLOAD_TOO_LARGE")

    def test_another_method_is_told_which_is_allowed(self, caller: Caller, client: FlaskClient, endpoint: str) -> None:
        response = client.get(f"{caller.decide()['decision_url']}/{endpoint}", headers=caller.headers)
        assert (response.status_code, response.headers["allow"]) == (405, "OPTIONS, POST")

    def test_a_decision_without_its_request_has_a_code_of_its_own(
        self, caller: Caller, instance: Instance, endpoint: str
    ) -> None:
        record = caller.decide()
        note = {"erasure_id": "era_1", "erased_at": "2026-06-11T12:30:45.678Z", "members": ["evaluation", "input"]}
        erased = {name: value for name, value in record.items() if name != "audit_chain"}
        erased |= {"evaluation": None, "erased": note}
        store(instance, record, request=None, body=json.dumps(erased).encode())
        code = "COUNTERFACTUAL_INPUT_UNAVAILABLE" if endpoint == "counterfactuals" else "REPLAY_INPUT_UNAVAILABLE"
        told = refused(caller.ask(record, endpoint, body_of(endpoint)), 422, code)
        remedy = {
            "replay": "send replay_mode current with your own input",
            "diff": "send your own input",
            "counterfactuals": "use a decision whose request is still stored",
        }[endpoint]
        assert told["message"] == f"The request of this decision was erased; {remedy}."
        if endpoint != "counterfactuals":
            body = {"replay_mode": "current", "input": sample_request()}
            assert caller.answer(record, endpoint, body)["replay_status"] == "matched"

    @pytest.mark.parametrize("column", ["body", "request"])
    def test_what_cannot_be_read_is_unavailable(
        self, caller: Caller, instance: Instance, endpoint: str, column: str
    ) -> None:
        record = caller.decide()
        store(instance, record, **{column: b"\x00 no JSON"})
        refused(caller.ask(record, endpoint, body_of(endpoint)), 503, "SVC_STORAGE_UNAVAILABLE")

    @pytest.mark.parametrize(
        "damage",
        ["record", "link", "leaf", "request", "facts"],
    )
    def test_what_does_not_hash_to_what_was_decided_is_refused(
        self, caller: Caller, instance: Instance, endpoint: str, damage: str
    ) -> None:
        record = caller.decide()
        request = sample_request()
        del request["rulebook"]
        whole = {name: value for name, value in record.items() if name != "audit_chain"}
        if damage == "record":
            store(instance, record, body=json.dumps({**whole, "verdict": "no"}).encode())
        elif damage == "link":
            store(instance, record, link_hash=record["record_hash"])
        elif damage == "leaf":
            store(instance, record, leaf_hash=record["record_hash"])
        elif damage == "request":
            store(instance, record, request=json.dumps({**request, "question": "Another?"}).encode())
        else:
            request["context"]["inputs"]["margin_percent"] = 90
            store(instance, record, request=json.dumps(request).encode())
        refused(caller.ask(record, endpoint, body_of(endpoint)), 409, "REPLAY_LINEAGE_MISMATCH")

    def test_a_record_that_lost_members_is_refused(self, caller: Caller, instance: Instance, endpoint: str) -> None:
        record = caller.decide()
        for lost in ("rulebook_contract", "policy_hash", "receipt_hash", "policy_version"):
            whole = {name: value for name, value in record.items() if name not in ("audit_chain", lost)}
            store(instance, record, body=json.dumps({**whole, "record_hash": content_hash(envelope(whole))}).encode())
            refused(caller.ask(record, endpoint, body_of(endpoint)), 409, "REPLAY_LINEAGE_MISMATCH")

    @pytest.mark.parametrize("by_ref", [True, False])
    def test_a_lost_rulebook_is_refused(self, caller: Caller, instance: Instance, endpoint: str, by_ref: bool) -> None:
        record = caller.decide()
        if by_ref:
            record = caller.decide(by_reference())
        with instance.ledger.store.write() as connection:
            connection.exec_driver_sql("DELETE FROM rulebooks")
        refused(caller.ask(record, endpoint, body_of(endpoint)), 409, "REPLAY_LINEAGE_MISMATCH")


@pytest.mark.parametrize("by_ref", [True, False])
@pytest.mark.parametrize(
    ("stored", "status", "error"),
    [(b"\x00 no JSON", 503, "SVC_STORAGE_UNAVAILABLE"), (b'{"schema_version":"x"}', 409, "REPLAY_LINEAGE_MISMATCH")],
)
def test_a_historical_replay_looks_at_the_stored_rulebook_and_not_at_a_remembered_one(
    caller: Caller, instance: Instance, by_ref: bool, stored: bytes, status: int, error: str
) -> None:
    record = caller.decide()
    if by_ref:
        record = caller.decide(by_reference())
    with instance.ledger.store.write() as connection:
        connection.exec_driver_sql("UPDATE rulebooks SET body = ?", (stored,))
    refused(caller.ask(record, "replay"), status, error)


# Each request is wrong in several ways at once; what is checked first answers.
@pytest.mark.parametrize(
    ("body", "erased", "status", "error"),
    [
        ({"mode": 1, "replay_mode": "x", "input": {}}, True, 422, "SVC_API_REQUEST_INVALID"),
        ({"replay_mode": "x", "input": {}}, True, 422, "REPLAY_MODE_INVALID"),
        ({"input": {}}, True, 422, "REPLAY_INPUT_OVERRIDE_FORBIDDEN"),
        ({}, True, 422, "REPLAY_INPUT_UNAVAILABLE"),
        ({"replay_mode": "current"}, True, 422, "REPLAY_INPUT_UNAVAILABLE"),
        ({"replay_mode": "current", "input": {}}, True, 422, "SVC_API_REQUEST_INVALID"),
        ({}, False, 409, "REPLAY_LINEAGE_MISMATCH"),
        ({"replay_mode": "current", "input": sample_request()}, True, 409, "REPLAY_LINEAGE_MISMATCH"),
    ],
)
def test_the_order_of_checks_of_a_replay(
    caller: Caller, instance: Instance, body: Any, erased: bool, status: int, error: str
) -> None:
    record = caller.decide()
    store(instance, record, link_hash=record["record_hash"], **({"request": None} if erased else {}))
    refused(caller.ask(record, "replay", body), status, error)


@pytest.mark.parametrize(
    ("body", "status", "error"),
    [
        ({"scenarios": [], "response_view": "x"}, 400, "COUNTERFACTUAL_SCENARIOS_INVALID"),
        ({**SCENARIOS, "response_view": "x"}, 422, "SVC_API_REQUEST_INVALID"),
        (
            {"scenarios": [{"scenario_id": "s", "label": "S", "context_patch": {"inputs": 1}}]},
            422,
            "COUNTERFACTUAL_INPUT_UNAVAILABLE",
        ),
    ],
)
def test_the_order_of_checks_of_counterfactuals(
    caller: Caller, instance: Instance, body: Any, status: int, error: str
) -> None:
    record = caller.decide()
    store(instance, record, link_hash=record["record_hash"], request=None)
    refused(caller.ask(record, "counterfactuals", body), status, error)


def nested(depth: int) -> Any:
    """An object that nests so deep."""
    value: Any = {}
    for _ in range(depth - 1):
        value = {"a": value}
    return value


def test_an_input_and_a_patched_context_nest_as_deep_as_what_is_decided(caller: Caller) -> None:
    record = caller.decide()
    deepest = sample_request(discount_percent=10, margin_percent=22, deep=nested(29))
    assert caller.decide(deepest)["verdict"] == "yes"
    assert caller.answer(record, "diff", {"input": deepest})["decision"]["verdict"] == "yes"
    patch = {"inputs": {"deep": nested(29)}}
    body = {"scenarios": [{"scenario_id": "s", "label": "S", "context_patch": patch}]}
    assert caller.answer(record, "counterfactuals", body)["scenarios"][0]["verdict"] == "yes"
    deepest["context"]["inputs"]["deep"] = patch["inputs"]["deep"] = nested(30)
    refused(caller.ask(record, "diff", {"input": deepest}), 400, "SVC_API_JSON_INVALID")
    refused(caller.ask(record, "counterfactuals", body), 400, "SVC_API_JSON_INVALID")
