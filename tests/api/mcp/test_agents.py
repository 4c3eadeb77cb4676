"""The gate as a server for agents does what the HTTP API does: the same records, hashes, limits, errors and metrics."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from io import BytesIO
from typing import Any, Final

import pytest
from flask.testing import FlaskClient

from api.mcp.agents.server import agents_server
from gate.clock import utc_now
from gate.encoding.canonical import content_hash
from gate.instance.instance import Instance
from gate.ledger.access.authority import Scope
from tests.api.deciding import chain_size, decide
from tests.api.mcp.messages import call, post, send
from tests.support.rulebooks import change
from tests.support.samples import LimitClock, cases, sample_request, sample_rulebook

# Of one record they cannot be the same in another.
_OWN: Final = frozenset({"request_id"})

REFUSALS: Final = [case for case in cases("decide_refusals") if isinstance(case.get("body", {}), dict)]
"""What is refused over HTTP. What is no object there is no argument here."""


def refusal(client: FlaskClient, key: str, tool: str, arguments: Any) -> dict[str, Any]:
    """What a tool refuses with, without what is different each time."""
    found = call(client, key, tool, arguments, refused=True)
    return {name: value for name, value in found.items() if name not in _OWN}


def over_http(response: Any) -> dict[str, Any]:
    """The same of an answer over HTTP."""
    body = {name: value for name, value in response.get_json().items() if name not in _OWN}
    return {**body, "http_status": response.status_code}


class TestDecide:
    def test_it_hashes_the_request_as_over_http(self, client: FlaskClient, key: str) -> None:
        record = call(client, key, "decide", {"request": {**sample_request(), "response_view": "full"}})
        assert record["input_hash"] == content_hash(sample_request())
        assert record["verdict"] == "yes"

    def test_a_key_that_was_used_over_http_stands_for_its_record(self, client: FlaskClient, key: str) -> None:
        made = decide(client, key, sample_request(), x_idempotency_key="order-1").get_json()
        assert call(client, key, "decide", {"request": sample_request(), "idempotency_key": "order-1"}) == made
        again = decide(client, key, sample_request(), x_idempotency_key="order-1")
        assert (again.get_json(), again.headers["x-idempotency-status"]) == (made, "replayed")

    def test_a_key_that_was_used_stands_for_its_record_whatever_else_is_sent(
        self, client: FlaskClient, key: str
    ) -> None:
        made = call(client, key, "decide", {"request": sample_request(), "idempotency_key": "order-1"})
        wrong = {"request": sample_request(), "idempotency_key": "order-1", "response_view": "none", "more": 1}
        assert call(client, key, "decide", wrong) == made

    @pytest.mark.parametrize("view", ["minimal", "standard", "full"])
    def test_it_shows_the_record_in_the_view_that_is_asked_for(self, client: FlaskClient, key: str, view: str) -> None:
        beside = call(client, key, "decide", {"request": sample_request(), "response_view": view})
        inside = call(client, key, "decide", {"request": {**sample_request(), "response_view": view}})
        shown = decide(client, key, sample_request(), x_decision_response_view=view).get_json()
        assert beside.keys() == inside.keys() == shown.keys()

    @pytest.mark.parametrize("case", REFUSALS, ids=lambda case: str(case["name"]))
    def test_it_refuses_as_over_http(
        self, client: FlaskClient, key: str, instance: Instance, scope: Scope, case: dict[str, Any]
    ) -> None:
        body = case.get("body", sample_request())
        for name in case.get("unset", []):
            del body[name]
        for path, value in case.get("set", {}).items():
            change(body, path, value)
        expected = over_http(decide(client, key, body))
        assert (expected["http_status"], expected["error"]) == (case["status"], case["error"])
        assert refusal(client, key, "decide", {"request": body}) == expected
        assert chain_size(instance, scope) == 0

    @pytest.mark.parametrize(
        "arguments",
        [
            {},
            {"request": None},
            {"request": "yes"},
            {"request": []},
            {"request": sample_request(), "idempotency_key": 7},
            {"request": sample_request(), "response_view": "all"},
            {"request": sample_request(), "verdict": "yes"},
        ],
        ids=str,
    )
    def test_arguments_of_another_form_are_refused(
        self, client: FlaskClient, key: str, instance: Instance, scope: Scope, arguments: Any
    ) -> None:
        found = refusal(client, key, "decide", arguments)
        assert (found["error"], found["http_status"], found["c"]) == ("SVC_API_REQUEST_INVALID", 422, "unclear")
        assert chain_size(instance, scope) == 0

    def test_a_request_may_nest_as_deep_as_over_http_and_no_deeper(self, client: FlaskClient, key: str) -> None:
        def nested(depth: int) -> dict[str, Any]:
            value: Any = 1
            for _ in range(depth - 3):
                value = [value]
            request = sample_request()
            request["context"]["inputs"]["note"] = value
            return request

        call(client, key, "decide", {"request": nested(32)})
        expected = over_http(decide(client, key, nested(33)))
        assert expected["http_status"] == 400
        assert refusal(client, key, "decide", {"request": nested(33)}) == expected

    def test_the_rate_of_a_key_is_one_for_both(
        self, client: FlaskClient, key: str, instance: Instance, scope: Scope, limit_clock: LimitClock
    ) -> None:
        instance.ledger.directory.set_plan(scope, "starter", utc_now())
        for number in range(20):
            if number % 2:
                call(client, key, "decide", {"request": sample_request()})
            else:
                assert decide(client, key, sample_request()).status_code == 200
        expected = over_http(decide(client, key, sample_request()))
        assert expected["error"] == "SVC_API_RATE_LIMITED"
        assert refusal(client, key, "decide", {"request": sample_request()}) == expected

    def test_the_monthly_cap_is_one_for_both(
        self, client: FlaskClient, key: str, instance: Instance, scope: Scope
    ) -> None:
        instance.ledger.directory.set_plan(scope, "team", utc_now(), monthly_cap=1)
        call(client, key, "decide", {"request": sample_request()})
        found = refusal(client, key, "decide", {"request": sample_request()})
        assert (found["error"], found["monthly_remaining"]) == ("SVC_API_MONTHLY_CAP_EXCEEDED", 0)

    def test_it_says_what_a_caller_may_have_overlooked(self, client: FlaskClient, key: str) -> None:
        request = sample_request()
        request["context"]["facts"] = request["context"].pop("inputs")
        arguments = {"request": request}
        message = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": "decide", "arguments": arguments},
        }
        texts = [each["text"] for each in send(client, key, message).get_json()["result"]["content"]]
        assert "context.facts is not read; the facts belong in context.inputs." in texts

    def test_it_is_counted_and_logged_as_over_http(
        self, client: FlaskClient, key: str, instance: Instance, log: BytesIO
    ) -> None:
        record = call(client, key, "decide", {"request": sample_request()})
        call(client, key, "decide", {"request": {"mode": "rulebook"}}, refused=True)
        token = instance.settings.metrics_token.read_text().strip()
        metrics = client.get("/metrics", headers={"x-metrics-token": token}).get_data(as_text=True)
        assert re.search(r'gate_decisions_total{(?=.*status="created")(?=.*verdict="yes").*} 1\b', metrics)
        assert re.search(r'gate_http_errors_total{error="SVC_API_REQUEST_INVALID"} 1\b', metrics)
        lines = [json.loads(line) for line in log.getvalue().splitlines()]
        made, refused = [line for line in lines if line.get("route") == "/api/mcp"]
        assert (made["tool"], made["decision_id"], made["verdict"]) == ("decide", record["decision_id"], "yes")
        assert (refused["tool"], refused["error"]) == ("decide", "SVC_API_REQUEST_INVALID")
        assert key.rpartition("_")[2].encode() not in log.getvalue()


@pytest.fixture
def decided(client: FlaskClient, key: str) -> dict[str, Any]:
    """A record."""
    made: dict[str, Any] = decide(client, key, sample_request()).get_json()
    return made


class TestReports:
    @pytest.mark.parametrize(
        ("tool", "path", "report"),
        [
            ("report_execution", "execution", {"execution_status": "executed", "external_ref": "tx-1"}),
            ("report_outcome", "outcome", {"outcome_status": "succeeded", "observed_metrics": {"margin": 0.2}}),
        ],
    )
    def test_a_report_is_one_whichever_way_it_came(
        self, client: FlaskClient, key: str, decided: Mapping[str, Any], tool: str, path: str, report: dict[str, Any]
    ) -> None:
        id_ = decided["decision_id"]
        arguments = {"decision_id": id_, "report": report, "idempotency_key": "r-1"}
        made = call(client, key, tool, arguments)
        headers = {"x-api-key": key, "x-idempotency-key": "r-1"}
        again = client.post(f"/api/decision/{id_}/{path}", json=report, headers=headers)
        assert (again.status_code, again.get_json()) == (200, made)
        other = {**arguments, "report": {**report, f"{path}_status": "failed"}}
        assert refusal(client, key, tool, other)["http_status"] == 409

    @pytest.mark.parametrize("report", [{}, {"execution_status": "done"}, {"execution_status": 1}], ids=str)
    def test_a_report_is_refused_as_over_http(
        self, client: FlaskClient, key: str, decided: Mapping[str, Any], report: dict[str, Any]
    ) -> None:
        id_ = decided["decision_id"]
        expected = over_http(client.post(f"/api/decision/{id_}/execution", json=report, headers={"x-api-key": key}))
        assert refusal(client, key, "report_execution", {"decision_id": id_, "report": report}) == expected

    def test_an_unknown_decision_has_no_report(self, client: FlaskClient, key: str) -> None:
        arguments = {"decision_id": "dec_1", "report": {"execution_status": "executed"}}
        assert refusal(client, key, "report_execution", arguments)["error"] == "SVC_DECISION_NOT_FOUND"


class TestReading:
    def test_a_stored_and_a_supplied_record_verify_as_over_http(
        self, client: FlaskClient, key: str, decided: dict[str, Any]
    ) -> None:
        id_, headers = decided["decision_id"], {"x-api-key": key}
        tampered = {**decided, "verdict": "no"}
        path = f"/api/decision/{id_}/verify"
        assert call(client, key, "verify", {"decision_id": id_}) == client.get(path, headers=headers).get_json()
        for record in (decided, tampered):
            body = {"record": record, "input": sample_request()}
            alone = client.post("/api/decision/verify", json=body).get_json()
            of_it = client.post(path, json=body, headers=headers).get_json()
            assert alone["verified"] is of_it["verified"] is (record is decided)
            assert call(client, key, "verify", body) == alone
            assert call(client, key, "verify", {"decision_id": id_, **body}) == of_it

    def test_a_replay_is_that_of_http(self, client: FlaskClient, key: str, decided: dict[str, Any]) -> None:
        id_, headers = decided["decision_id"], {"x-api-key": key}
        for body in ({}, {"replay_mode": "current", "response_view": "minimal"}):
            made = client.post(f"/api/decision/{id_}/replay", json=body, headers=headers).get_json()
            assert call(client, key, "replay", {"decision_id": id_, **body}) == made
        wrong = {"decision_id": id_, "replay_mode": "tomorrow"}
        assert refusal(client, key, "replay", wrong)["error"] == "REPLAY_MODE_INVALID"

    def test_an_explanation_says_which_rule_matched_and_why(
        self, client: FlaskClient, key: str, decided: dict[str, Any]
    ) -> None:
        found = call(client, key, "explain", {"decision_id": decided["decision_id"]})
        assert found["sentences"][0] == "The verdict is yes: the rule approve_standard_exception matched."
        assert found["rules"][-1]["tests"][0] == {
            "path": "condition.all[0]",
            "test": "discount_percent lte 15",
            "holds": True,
            "reason": "the fact is 10",
        }
        for name in ("verdict", "action", "reason_code", "matched_rule_id", "record_hash", "rulebook"):
            assert found[name] == decided[name]

    def test_an_explanation_names_the_facts_that_are_missing(self, client: FlaskClient, key: str) -> None:
        request = sample_request()
        del request["context"]["inputs"]["discount_percent"]
        made = call(client, key, "decide", {"request": request})
        found = call(client, key, "explain", {"decision_id": made["decision_id"]})
        assert found["missing_fields"] == ["discount_percent"]
        assert "The fact discount_percent is missing." in found["sentences"]
        assert found["sentences"][-1].endswith("It holds the action for its owner: do not perform it.")

    def test_the_registered_rulebooks_are_those_of_the_scope(
        self, client: FlaskClient, key: str, instance: Instance, decided: dict[str, Any]
    ) -> None:
        found = call(client, key, "list_rulebooks", {})
        (listed,) = found["rulebooks"]
        assert (found["count"], found["more"]) == (1, False)
        assert listed["rulebook_id"] == sample_rulebook()["rulebook_id"]
        assert (listed["hash"], listed["active_route"]) == (decided["policy_hash"], False)
        other = instance.ledger.directory.create_scope("other", "unlimited", utc_now())
        stranger, _ = instance.ledger.directory.create_key(other, frozenset({"read"}), None, utc_now())
        assert call(client, stranger, "list_rulebooks", {})["count"] == 0

    @pytest.mark.parametrize("limit", [0, 1001, "2", 1.5, None])
    def test_a_limit_is_a_number_in_its_bounds(self, client: FlaskClient, key: str, limit: object) -> None:
        assert refusal(client, key, "list_rulebooks", {"limit": limit})["http_status"] == 422

    def test_another_scope_reads_nothing(
        self, client: FlaskClient, instance: Instance, decided: dict[str, Any]
    ) -> None:
        other = instance.ledger.directory.create_scope("other", "unlimited", utc_now())
        stranger, _ = instance.ledger.directory.create_key(other, frozenset({"read"}), None, utc_now())
        for tool in ("verify", "explain", "replay"):
            found = refusal(client, stranger, tool, {"decision_id": decided["decision_id"]})
            assert found["error"] == "SVC_DECISION_NOT_FOUND"


class TestDescriptions:
    def test_the_schemas_of_every_tool_are_schemas_and_whole(self) -> None:
        from jsonschema import Draft7Validator, Draft202012Validator

        for tool in agents_server().tools:
            for schema in (tool.input_schema, tool.output_schema):
                assert schema["type"] == "object"
                Draft202012Validator.check_schema(schema)
                Draft7Validator.check_schema(schema)
                for reference in _references(schema):
                    assert _leads(schema, reference), (tool.name, reference)

    def test_every_description_says_what_approves_nothing(self) -> None:
        for tool in agents_server().tools:
            assert tool.description.endswith("Errors never approve anything.")
        decides = agents_server().by_name["decide"].description
        for word in ("yes", "no", "review", "single", "multi", "runtime"):
            assert word in decides

    def test_only_tools_that_add_something_say_so(self) -> None:
        adding = {tool.name for tool in agents_server().tools if not tool.annotations["readOnlyHint"]}
        assert adding == {"decide", "report_execution", "report_outcome"}
        assert not any(tool.annotations["destructiveHint"] for tool in agents_server().tools)

    def test_what_fails_unexpectedly_is_answered_and_approves_nothing(
        self, client: FlaskClient, key: str, instance: Instance, log: BytesIO, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: object, **__: object) -> None:
            raise RuntimeError("a secret")

        monkeypatch.setattr(instance.ledger.rulebooks, "listed", fail)
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "list_rulebooks"}})
        answer = post(client, key, body.encode())
        error = answer.get_json()["error"]
        assert error["code"] == -32603
        assert "nothing was acknowledged" in error["message"]
        assert b"a secret" not in answer.data + log.getvalue()
        assert b'"event":"unexpected"' in log.getvalue()


def _references(node: Any) -> list[str]:
    if isinstance(node, dict):
        own = [node["$ref"]] if isinstance(node.get("$ref"), str) else []
        return own + [found for value in node.values() for found in _references(value)]
    return [found for item in node for found in _references(item)] if isinstance(node, list) else []


def _leads(schema: Any, reference: str) -> bool:
    node = schema
    for step in reference.removeprefix("#/").split("/"):
        if step not in node:
            return False
        node = node[step]
    return True
