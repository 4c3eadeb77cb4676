"""The refund workflow of help desks: information without a key, a Decision Record with one."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import jsonschema
import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from gate.clock import utc_now
from gate.encoding import resources
from gate.encoding.canonical import content_hash
from gate.instance.instance import Instance
from gate.ledger.access.authority import Scope
from gate.services.policies import in_force
from tests.api.deciding import chain_size
from tests.support.samples import cases

DAYS: Final = 12


@pytest.fixture(autouse=True)
def table(instance: Instance, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An operator's table of refunds, whose one vendor refunds for 30 days."""
    monkeypatch.setattr(in_force, "LOOK_SECONDS", 0.0)
    file = instance.settings.policy_tables_directory / "refund.json"
    file.parent.mkdir(exist_ok=True)
    write(file, 30)
    return file


def write(file: Path, days: int | str) -> None:
    entry = {
        "vendor": "example-store",
        "name": "Example Store",
        "region": "*",
        "plan": "*",
        "decision_mode": "deterministic",
        "windows": {"refund_days": days},
        "source": "https://example.com/refunds",
        "last_verified": (utc_now() - timedelta(days=1)).date().isoformat(),
    }
    file.write_text(json.dumps({"policy_table_version": "policy_table_v1", "service": "refund", "entries": [entry]}))


def ticket(**members: Any) -> dict[str, Any]:
    return {"vendor": "Example Store", "days_since_purchase": DAYS, "ticket_id": "T-1", **members}


def post(client: FlaskClient, body: Any, system: str = "zendesk", **headers: str) -> TestResponse:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return client.post(f"/api/v1/workflows/{system}/refund", json=body, headers=sent)


def answered(response: TestResponse) -> dict[str, Any]:
    assert response.status_code == 200, response.get_data(as_text=True)
    body: dict[str, Any] = response.get_json()
    jsonschema.Draft202012Validator(resources.schema("workflow-answer")).validate(body)
    jsonschema.Draft202012Validator(resources.schema("policy-answer")).validate(body["policy"])
    return body


class TestWithoutAKey:
    @pytest.mark.parametrize("system", ["zendesk", "freshdesk", "intercom"])
    def test_it_says_what_the_policy_says_and_allows_nothing(
        self, client: FlaskClient, instance: Instance, scope: Scope, system: str
    ) -> None:
        size = chain_size(instance, scope)
        answer = answered(post(client, ticket(), system))
        assert (answer["policy_class"], answer["code"], answer["action"]) == ("ALLOWED", "WITHIN_WINDOW", "refund")
        assert answer["execution_allowed"] is False
        assert "decision" not in answer
        assert answer["ticketing_system"] == system
        assert answer["ticket"]["recommended_action"] == (
            "Refund the purchase only after the payment system has a binding yes."
        )
        assert "This authorizes nothing." in answer["ticket"]["private_note"]
        assert chain_size(instance, scope) == size

    def test_the_same_question_has_the_same_id_for_a_day(self, client: FlaskClient) -> None:
        answer = answered(post(client, ticket()))
        day = answer["policy"]["answered_at"][:10]
        assert answer["request_id"] == content_hash({"body": ticket(), "day": day})
        assert answered(post(client, ticket(ticket_id="T-2")))["request_id"] != answer["request_id"]

    @pytest.mark.parametrize(
        ("members", "policy_class", "code"),
        [
            ({"days_since_purchase": 31}, "DENIED", "WINDOW_PASSED"),
            ({"vendor": "Other Store"}, "UNKNOWN", "VENDOR_UNKNOWN"),
        ],
    )
    def test_what_is_not_allowed_is_tagged_as_such(
        self, client: FlaskClient, members: dict[str, Any], policy_class: str, code: str
    ) -> None:
        answer = answered(post(client, ticket(**members)))
        assert (answer["policy_class"], answer["code"]) == (policy_class, code)
        assert answer["ticket"]["tags"] == [f"refund_{policy_class.lower()}", f"policy_{code.lower()}"]

    def test_days_that_are_left_out_are_asked_for(self, client: FlaskClient) -> None:
        body = ticket()
        del body["days_since_purchase"]
        assert answered(post(client, body))["code"] == "DAYS_MISSING"

    @pytest.mark.parametrize("case", cases("workflow_refusals"), ids=lambda case: case["name"])
    def test_a_body_that_is_no_ticket_is_refused(self, client: FlaskClient, case: dict[str, Any]) -> None:
        body = {**ticket(), **case.get("set", {})}
        for name in case.get("remove", []):
            del body[name]
        response = post(client, case.get("body", body))
        assert response.status_code == 422
        assert [[error["field"], error["code"]] for error in response.get_json()["errors"]] == case["errors"]

    @pytest.mark.parametrize("system", ["Zendesk", "jira", "zendesk%2f..", ""])
    def test_another_help_desk_is_not_found(self, client: FlaskClient, system: str) -> None:
        assert post(client, ticket(), system).status_code == 404

    def test_an_address_that_asks_too_often_is_refused(
        self, client: FlaskClient, instance: Instance, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("api.routes.workflows.require_client_rate", refuse_all)
        response = post(client, ticket())
        assert response.status_code == 429
        assert response.headers["retry-after"] == "7"


def refuse_all(_purpose: str, _limit: int) -> None:
    from gate.errors import LimitReached

    raise LimitReached("SVC_API_RATE_LIMITED", "Too many.", details={"retry_after": 7})


class TestWithAKey:
    def test_a_record_that_says_yes_allows_the_refund(
        self, client: FlaskClient, key: str, instance: Instance, scope: Scope
    ) -> None:
        size = chain_size(instance, scope)
        response = post(client, ticket(), x_api_key=key)
        answer = answered(response)
        assert answer["execution_allowed"] is True
        assert chain_size(instance, scope) == size + 1
        record = client.get(f"/api/decision/{answer['decision']['decision_id']}", headers={"x-api-key": key}).get_json()
        assert answer["request_id"] == record["request_id"]
        assert record["policy_id"] == "refund_eligibility"
        assert record["application_verdict"] == "ALLOWED"
        assert (record["action_binding"]["system"], record["action_binding"]["resource"]) == ("zendesk", "T-1")
        assert record["verdict"] == answer["decision"]["verdict"] == "yes"
        verified = client.post("/api/decision/verify", json={"record": record}).get_json()
        assert verified["verified"] is True

    @pytest.mark.parametrize("members", [{"days_since_purchase": 31}, {"vendor": "Other Store"}])
    def test_any_other_record_allows_nothing(self, client: FlaskClient, key: str, members: dict[str, Any]) -> None:
        answer = answered(post(client, ticket(**members), x_api_key=key))
        assert answer["execution_allowed"] is False
        assert answer["decision"]["verdict"] in ("no", "review")

    def test_a_retry_is_answered_with_its_record_also_when_the_table_has_changed(
        self, client: FlaskClient, key: str, instance: Instance, scope: Scope, table: Path
    ) -> None:
        first = post(client, ticket(), x_api_key=key, x_idempotency_key="t-1")
        size = chain_size(instance, scope)
        write(table, "never")
        again = post(client, ticket(), x_api_key=key, x_idempotency_key="t-1")
        assert answered(again) == answered(first)
        assert (first.headers["x-idempotency-status"], again.headers["x-idempotency-status"]) == (
            "created",
            "replayed",
        )
        assert chain_size(instance, scope) == size
        assert answered(post(client, ticket(), x_api_key=key))["policy_class"] == "DENIED"

    def test_another_ticket_under_the_same_key_is_a_conflict(self, client: FlaskClient, key: str) -> None:
        post(client, ticket(), x_api_key=key, x_idempotency_key="t-2")
        response = post(client, ticket(ticket_id="T-2"), x_api_key=key, x_idempotency_key="t-2")
        assert (response.status_code, response.get_json()["error"]) == (409, "SVC_API_IDEMPOTENCY_CONFLICT")

    @pytest.mark.parametrize("wrong", ["", "dgk_unknown_unknown", "x"])
    def test_a_wrong_key_is_no_missing_key(self, client: FlaskClient, wrong: str) -> None:
        response = post(client, ticket(), x_api_key=wrong)
        assert (response.status_code, response.get_json()["error"]) == (401, "SVC_API_UNAUTHORIZED")

    @pytest.mark.parametrize("scheme", ["Bearer", "bearer"])
    def test_a_key_sent_as_a_bearer_token_is_refused(self, client: FlaskClient, key: str, scheme: str) -> None:
        response = post(client, ticket(), authorization=f"{scheme} {key}")
        assert (response.status_code, response.get_json()["error"]) == (401, "SVC_API_UNAUTHORIZED")
        assert "send the API key alone in this header, not in Authorization" in response.get_json()["message"]
        # A proxy in front may ask for a password of its own.
        assert answered(post(client, ticket(), authorization="Basic eDp5"))["execution_allowed"] is False

    def test_a_key_that_may_not_decide_is_refused(self, client: FlaskClient, instance: Instance, scope: Scope) -> None:
        reader, _ = instance.ledger.directory.create_key(scope, {"read"}, None, utc_now())
        assert post(client, ticket(), x_api_key=reader).status_code == 403

    def test_a_key_that_may_not_register_decides_once_the_rulebook_is_registered(
        self, client: FlaskClient, key: str, instance: Instance, scope: Scope
    ) -> None:
        decider, _ = instance.ledger.directory.create_key(scope, {"decide"}, None, utc_now())
        response = post(client, ticket(), x_api_key=decider)
        assert response.status_code == 403
        assert "register" in response.get_json()["message"]
        post(client, ticket(), x_api_key=key)
        assert answered(post(client, ticket(), x_api_key=decider))["execution_allowed"] is True
