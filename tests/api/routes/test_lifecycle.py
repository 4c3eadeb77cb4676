"""Execution receipts, outcomes and CRM syncs over HTTP: every status, code and header, and the lists."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any, Final

import jsonschema
import pytest
from flask.testing import FlaskClient
from sqlalchemy import select
from werkzeug.test import TestResponse

from api.app import create_app
from gate.clock import utc_now
from gate.decisions import lifecycle
from gate.decisions.claims import MAX_IDEMPOTENCY_KEY
from gate.encoding import resources
from gate.encoding.strict_json import parse
from gate.ids import timestamp
from gate.instance.instance import Instance
from gate.ledger.access.authority import ACCESS, FULL_ACCESS, Scope
from gate.ledger.tables import latest_outcomes
from gate.proof import chain
from gate.proof.chain import link_material
from gate.records.reports.receipts import CRM_SYNCS, KINDS, OUTCOMES, Kind, build, report_link
from gate.rulebooks.patterns import patterns
from tests.api.deciding import decide
from tests.api.reporting import Caller, refused
from tests.contract.frozen import current
from tests.independent import verifier
from tests.support.receipts import ELSEWHERE, MEMBERS, SCHEMAS
from tests.support.samples import NOW, REPORTS, case_text, cases, in_threads, sample_request

REFUSED: Final = {"discount_percent": 10, "margin_percent": 2}
HELD: Final = {"discount_percent": 40, "margin_percent": 22}
STATUSES: Final = {
    "execution": ["executed", "queued", "skipped", "failed", "blocked", "reviewed", "reverted"],
    "outcome": ["succeeded", "failed", "partial", "reverted", "pending", "review"],
    "crm-sync": ["written", "pending", "failed", "skipped"],
}

each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


@pytest.fixture
def caller(client: FlaskClient, key: str, instance: Instance, scope: Scope) -> Caller:
    return Caller(client, key, instance, scope)


def report_of(kind: Kind, response: TestResponse) -> dict[str, Any]:
    """The report in an answer to a POST."""
    body: dict[str, Any] = response.get_json()
    if kind is CRM_SYNCS:
        assert body.keys() == {"decision_id", "crm_sync"}
        assert body["decision_id"] == body["crm_sync"]["decision_id"]
        return dict(body["crm_sync"])
    return body


def described(kind: Kind, method: str, status: int) -> jsonschema.Draft202012Validator:
    """What the interface description says of an answer."""
    document = current()
    answer = document["paths"][f"/api/decision/{{decision_id}}/{kind.name}"][method]["responses"][str(status)]
    schema = answer["content"]["application/json"]["schema"]
    return jsonschema.Draft202012Validator({**schema, "components": document["components"]})


@each_kind
def test_a_report_is_stored_hashed_and_chained(caller: Caller, kind: Kind) -> None:
    record, told = caller.decide(), MEMBERS[kind.name]
    response = caller.report(kind, record["decision_id"], told["request"], used="job-1")
    assert response.status_code == 201
    report = report_of(kind, response)
    described(kind, "post", 201).validate(response.get_json())
    assert report.keys() == resources.schema(SCHEMAS[kind.name])["properties"].keys()
    assert report["decision_id"] == record["decision_id"]
    assert report["idempotency_key"] == "job-1"
    for member, of_record in {
        "decision_record_hash": "record_hash",
        "decision_receipt_hash": "receipt_hash",
        "decision_verdict": "verdict",
        "decision_action": "action",
        "policy_id": "policy_id",
        "policy_version": "policy_version",
    }.items():
        assert report[member] == record[of_record]
    assert report[kind.input_hash_member] == verifier.canonical_hash(told["request"])
    assert report[told["hash"]] == ELSEWHERE[kind.name](report)
    _, links = caller.instance.ledger.entries.latest_links(caller.scope.scope_id, 10)
    assert verifier.link_failures(links) == []
    link: Any = links[-1]
    assert report["audit_chain"] == {name: link[name] for name in report["audit_chain"]}
    assert (link["entry_type"], link["record_hash"], link["receipt_hash"]) == (
        kind.entry_type,
        report[told["hash"]],
        None,
    )
    assert (link["decision_id"], link["created_at"]) == (record["decision_id"], report["reported_at"])
    assert (link["policy_id"], link["policy_version"]) == (record["policy_id"], record["policy_version"])


@each_kind
def test_every_response_header_of_a_report(caller: Caller, kind: Kind) -> None:
    decision_id = caller.decide()["decision_id"]
    response = caller.client.post(
        f"/api/decision/{decision_id}/{kind.name}",
        json=REPORTS[kind.name],
        headers={"x-api-key": caller.key, "x-idempotency-key": "job-1", "x-request-id": "trace-1"},
    )
    report = report_of(kind, response)
    assert {name: value for name, value in response.headers.items() if name.startswith("x-")} == {
        f"x-decision-{kind.name}-id": report[kind.id_member],
        f"x-decision-{kind.name}-hash": report[MEMBERS[kind.name]["hash"]],
        "x-idempotency-status": "created",
        "x-request-id": "trace-1",
        "x-content-type-options": "nosniff",
    }
    assert response.headers["content-type"] == "application/json"
    assert response.headers["cache-control"] == "no-store"
    assert caller.report(kind, decision_id).headers["x-idempotency-status"] == "created"


@each_kind
def test_a_used_key_answers_the_same_bytes_again(caller: Caller, kind: Kind) -> None:
    decision_id, body = caller.decide()["decision_id"], dict(MEMBERS[kind.name]["request"])
    if kind.name == "outcome":
        body["observed_metrics"] = {"big": 1e21, "small": 1e-9, "whole": 10.0, "zero": -0.0, "exact": 9007199254740992}
    first = caller.report(kind, decision_id, body, used="job-1")
    assert first.status_code == 201
    size = caller.size()
    # The same payload may be spelt in another order, and by another process.
    respelt = json.dumps(dict(reversed(body.items())), indent=3).encode()
    caller.client = create_app(caller.instance).test_client()
    for sent in (body, respelt):
        again = caller.report(kind, decision_id, sent, used="job-1")
        assert (again.status_code, again.data) == (200, first.data)
        assert again.headers["x-idempotency-status"] == "replayed"
        for name in (f"x-decision-{kind.name}-id", f"x-decision-{kind.name}-hash"):
            assert again.headers[name] == first.headers[name]
    assert caller.size() == size


@each_kind
def test_a_used_key_with_another_payload_is_a_conflict(caller: Caller, kind: Kind) -> None:
    record = caller.decide()
    first = report_of(kind, caller.report(kind, record["decision_id"], used="job-1"))
    size = caller.size()
    other = {**REPORTS[kind.name], "decision_record_hash": record["record_hash"]}
    answer = refused(
        caller.report(kind, record["decision_id"], other, used="job-1"), 409, f"SVC_{kind.code}_IDEMPOTENCY_CONFLICT"
    )
    assert answer["v"] == "idempotency_conflict"
    assert answer["idempotency_key"] == "job-1"
    assert answer[kind.id_member] == first[kind.id_member]
    assert answer["input_hash"] == verifier.canonical_hash(other)
    assert answer["existing_input_hash"] == first[kind.input_hash_member]
    assert caller.size() == size


class Held:
    """Holds the first append up until it is let go of."""

    def __init__(self, instance: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
        self.entered = threading.Event()
        self.release = threading.Event()
        self._append = instance.ledger.entries.append
        monkeypatch.setattr(instance.ledger.entries, "append", self._held)

    def _held(self, entry: Any) -> Any:
        if not self.entered.is_set():
            self.entered.set()
            assert self.release.wait(60)
        return self._append(entry)


@each_kind
def test_a_key_in_use_is_in_progress_until_the_first_request_has_ended(
    caller: Caller, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = caller.decide()
    decision_id, cited = record["decision_id"], {"decision_record_hash": record["record_hash"]}
    code = f"SVC_{kind.code}_IDEMPOTENCY_IN_PROGRESS"
    held = Held(caller.instance, monkeypatch)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(caller.report, kind, decision_id, used="job-1")
        assert held.entered.wait(60)
        try:
            answer = refused(caller.report(kind, decision_id, used="job-1"), 409, code)
            assert (answer["v"], answer["idempotency_key"]) == ("idempotency_in_progress", "job-1")
            refused(caller.report(kind, decision_id, {**REPORTS[kind.name], **cited}, used="job-1"), 409, code)
            # What is wrong with the request comes after its key, and what is wrong with the caller before it.
            refused(caller.report(kind, decision_id, {}, used="job-1"), 409, code)
            refused(caller.report(kind, decision_id, b"{", used="job-1"), 400, "SVC_API_JSON_INVALID")
            reader = caller.new_key("read")
            refused(caller.report(kind, decision_id, key=reader, used="job-1"), 403, f"SVC_{kind.code}_UNAUTHORIZED")
            # Nobody else has to wait: not another key, another kind, another decision, nor a report without a key.
            others = [other for other in KINDS if other is not kind]
            for other, about, used in [(kind, decision_id, "job-2"), (kind, decision_id, None)] + [
                (other, decision_id, "job-1") for other in others
            ]:
                assert caller.report(other, about, used=used).status_code == 201
        finally:
            held.release.set()
        assert first.result(60).status_code == 201
    again = caller.report(kind, decision_id, used="job-1")
    assert (again.status_code, again.data) == (200, first.result().data)


@each_kind
def test_a_key_disabled_while_another_request_is_in_progress_hears_of_nothing(
    caller: Caller, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    decision_id, revoked = caller.decide()["decision_id"], caller.new_key("report")
    assert caller.report(kind, decision_id, key=revoked).status_code == 201
    held = Held(caller.instance, monkeypatch)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(caller.report, kind, decision_id, used="job-1")
        assert held.entered.wait(60)
        caller.disable(revoked)
        try:
            answer = caller.report(kind, decision_id, key=revoked, used="job-1")
            refused(answer, 403, f"SVC_{kind.code}_UNAUTHORIZED")
        finally:
            held.release.set()
        assert first.result(60).status_code == 201


@each_kind
def test_one_key_at_once_makes_one_report(caller: Caller, kind: Kind) -> None:
    decision_id = caller.decide()["decision_id"]
    app = caller.client.application
    answers = in_threads(
        12,
        lambda _: Caller(app.test_client(), caller.key, caller.instance, caller.scope).report(
            kind, decision_id, used="job-1"
        ),
    )
    statuses = [answer.status_code for answer in answers]
    assert statuses.count(201) == 1
    assert set(statuses) <= {200, 201, 409}
    assert len({answer.data for answer in answers if answer.status_code != 409}) == 1
    for answer in answers:
        if answer.status_code == 409:
            refused(answer, 409, f"SVC_{kind.code}_IDEMPOTENCY_IN_PROGRESS")
    assert caller.list(kind, decision_id).get_json()["count"] == 1


@pytest.mark.parametrize("case", cases("report_refusals"), ids=json.dumps)
def test_a_body_that_is_no_report_is_refused_and_uses_no_key(caller: Caller, case: dict[str, Any]) -> None:
    kind = next(kind for kind in KINDS if kind.name == case["kind"])
    decision_id = caller.decide()["decision_id"]
    size = caller.size()
    if "long" in case:
        longest = "é" * case["most"]
        body = {**REPORTS[kind.name], case["long"]: f"{longest}é"}
        fields = [[case["long"], "too_long"]]
        assert caller.report(kind, decision_id, {**REPORTS[kind.name], case["long"]: longest}).status_code == 201
        size += 1
    else:
        body = case.get("body", {**REPORTS[kind.name], **case.get("set", {})})
        fields = case["fields"]
    answer = refused(caller.report(kind, decision_id, body, used="job-1"), 422, "SVC_API_REQUEST_INVALID")
    assert [[error["field"], error["code"]] for error in answer["errors"]] == fields
    assert caller.size() == size
    assert caller.report(kind, decision_id, used="job-1").status_code == 201


@pytest.mark.parametrize(("number", "status"), [(64, 201), (65, 422)])
def test_an_outcome_holds_at_most_64_metrics(caller: Caller, number: int, status: int) -> None:
    metrics = {f"m{index}": index for index in range(number)}
    body = {**REPORTS["outcome"], "observed_metrics": metrics}
    outcome = next(kind for kind in KINDS if kind.name == "outcome")
    response = caller.report(outcome, caller.decide()["decision_id"], body)
    assert response.status_code == status
    if status == 422:
        (fault,) = refused(response, 422, "SVC_API_REQUEST_INVALID")["errors"]
        assert (fault["field"], fault["code"]) == ("observed_metrics", "too_many")
        assert fault["message"] == "It must have at most 64 fields."


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (KINDS[0], "The body is not an execution receipt; correct colour and execution_status (see errors)."),
        (KINDS[1], "The body is not an outcome; correct colour and outcome_status (see errors)."),
        (KINDS[2], "The body is not a CRM sync; correct colour and sync_status (see errors)."),
    ],
)
def test_a_refusal_says_what_the_body_is_not_and_what_to_mend(caller: Caller, kind: Kind, message: str) -> None:
    answer = refused(
        caller.report(kind, caller.decide()["decision_id"], {"colour": "red"}), 422, "SVC_API_REQUEST_INVALID"
    )
    assert answer["message"] == message


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999", "9007199254740993"])
def test_a_metric_is_a_finite_number(caller: Caller, number: str) -> None:
    outcome = next(kind for kind in KINDS if kind.name == "outcome")
    body = f'{{"outcome_status": "succeeded", "observed_metrics": {{"margin": {number}}}}}'.encode()
    refused(caller.report(outcome, caller.decide()["decision_id"], body), 400, "SVC_API_JSON_INVALID")


@pytest.mark.parametrize(("kind", "member"), [(kind, member) for kind in KINDS for member in kind.must_match])
def test_a_report_that_cites_another_record_is_a_mismatch(caller: Caller, kind: Kind, member: str) -> None:
    record, other = caller.decide(), caller.decide(**REFUSED)
    wrong = {member: other[kind.must_match[member]]}
    if member in ("policy_id", "policy_version"):
        wrong[member] = f"{wrong[member]}x"
    answer = refused(
        caller.report(kind, record["decision_id"], {**REPORTS[kind.name], **wrong}, used="job-1"),
        422,
        f"SVC_{kind.code}_RECORD_MISMATCH",
    )
    assert [(error["field"], error["code"]) for error in answer["errors"]] == [(member, "mismatch")]
    assert answer["v"] == "record_mismatch"
    true = {member: record[kind.must_match[member]]}
    assert caller.report(kind, record["decision_id"], {**REPORTS[kind.name], **true}, used="job-1").status_code == 201


@each_kind
@pytest.mark.parametrize("used", ["", "é", "x" * (MAX_IDEMPOTENCY_KEY + 1), "a\tb"])
def test_an_unusable_key_is_refused(caller: Caller, kind: Kind, used: str) -> None:
    decision_id = caller.decide()["decision_id"]
    refused(caller.report(kind, decision_id, used=used), 422, "SVC_API_REQUEST_INVALID")
    assert caller.list(kind, decision_id).get_json()["count"] == 0


@each_kind
def test_checks_come_in_order(caller: Caller, kind: Kind) -> None:
    record = caller.decide()
    used = caller.report(kind, record["decision_id"], used="job-1")
    big, path = b"x" * (1024 * 1024 + 1), f"/api/decision/{record['decision_id']}/{kind.name}"

    def post(data: bytes, type_: str, key: str | None, about: str = path) -> TestResponse:
        headers = {"x-idempotency-key": "job-1", **({} if key is None else {"x-api-key": key})}
        return caller.client.post(about, data=data, content_type=type_, headers=headers)

    unauthorized, nowhere = f"SVC_{kind.code}_UNAUTHORIZED", f"/api/decision/dec_0/{kind.name}"
    reader = caller.new_key("read", "decide", "register")
    for method in ("put", "delete", "patch"):
        response = getattr(caller.client, method)(path, data=big, content_type="text/plain")
        refused(response, 405, "SVC_API_METHOD_NOT_ALLOWED")
        assert response.headers["allow"] == "GET, HEAD, OPTIONS, POST"
    refused(post(big, "text/plain", None), 413, "SVC_API_PAYLOAD_TOO_LARGE")
    refused(post(b"{", "text/plain", None), 415, "SVC_API_MEDIA_TYPE_UNSUPPORTED")
    refused(post(b"{", "application/json", None, nowhere), 401, unauthorized)
    refused(post(b"{", "application/json", f"{caller.key}x", nowhere), 401, unauthorized)
    refused(post(b"{", "application/json", reader, nowhere), 403, unauthorized)
    refused(post(b"{", "application/json", caller.key, nowhere), 400, "SVC_API_JSON_INVALID")
    refused(post(b"", "application/json", caller.key, nowhere), 400, "SVC_API_JSON_INVALID")
    refused(post(b"{}", "application/json", caller.key, nowhere), 404, "SVC_DECISION_NOT_FOUND")
    # The decision, then its key, then the body.
    conflict = f"SVC_{kind.code}_IDEMPOTENCY_CONFLICT"
    refused(post(b"{}", "application/json", caller.key), 409, conflict)
    refused(post(b'"no report"', "application/json", caller.key), 409, conflict)
    mismatch = json.dumps({**REPORTS[kind.name], "decision_record_hash": "x"}).encode()
    refused(post(mismatch, "application/json", caller.key), 409, conflict)
    refused(caller.report(kind, record["decision_id"], {"decision_record_hash": "x"}), 422, "SVC_API_REQUEST_INVALID")
    again = post(json.dumps(REPORTS[kind.name]).encode(), "application/json", caller.key)
    assert (again.status_code, again.data) == (200, used.data)


@each_kind
def test_a_body_at_the_limit_is_read(caller: Caller, kind: Kind) -> None:
    decision_id = caller.decide()["decision_id"]
    body = json.dumps(REPORTS[kind.name]).encode()
    assert caller.report(kind, decision_id, body.ljust(1024 * 1024)).status_code == 201
    refused(caller.report(kind, decision_id, body.ljust(1024 * 1024 + 1)), 413, "SVC_API_PAYLOAD_TOO_LARGE")


@each_kind
@pytest.mark.parametrize("access", ACCESS)
def test_reporting_needs_report_and_listing_needs_read(caller: Caller, kind: Kind, access: str) -> None:
    decision_id, key = caller.decide()["decision_id"], caller.new_key(access)
    answers = {
        "report": (caller.report(kind, decision_id, key=key), 201),
        "read": (caller.list(kind, decision_id, key=key), 200),
    }
    for needed, (answer, status) in answers.items():
        if access == needed:
            assert answer.status_code == status
        else:
            body = refused(answer, 403, f"SVC_{kind.code}_UNAUTHORIZED")
            assert body["v"] == "unauthorized"
            assert f"'{needed}'" in body["message"]


@each_kind
def test_no_key_and_unknown_keys_are_unauthorized(caller: Caller, kind: Kind) -> None:
    decision_id = caller.decide()["decision_id"]
    size = caller.size()
    for key in ("", "x", caller.key[:-1], f"{caller.key}x", "dgk_0_0"):
        for answer in (caller.report(kind, decision_id, key=key), caller.list(kind, decision_id, key=key)):
            assert refused(answer, 401, f"SVC_{kind.code}_UNAUTHORIZED")["v"] == "unauthorized"
    assert caller.size() == size


@each_kind
def test_disabled_and_expired_keys_are_forbidden(caller: Caller, kind: Kind) -> None:
    decision_id, disabled = caller.decide()["decision_id"], caller.new_key(*FULL_ACCESS)
    caller.disable(disabled)
    directory, now = caller.instance.ledger.directory, utc_now()
    expired, _ = directory.create_key(caller.scope, FULL_ACCESS, now - timedelta(hours=1), now - timedelta(hours=2))
    for key in (disabled, expired):
        refused(caller.report(kind, decision_id, key=key), 403, f"SVC_{kind.code}_UNAUTHORIZED")
        refused(caller.list(kind, decision_id, key=key), 403, f"SVC_{kind.code}_UNAUTHORIZED")


@each_kind
def test_a_key_that_was_disabled_reports_and_hears_nothing_more(caller: Caller, kind: Kind) -> None:
    record, revoked = caller.decide(), caller.new_key(*FULL_ACCESS)
    decision_id, code = record["decision_id"], f"SVC_{kind.code}_UNAUTHORIZED"
    assert caller.report(kind, decision_id, key=revoked, used="job-1").status_code == 201
    caller.disable(revoked)
    size = caller.size()
    refused(caller.report(kind, decision_id, key=revoked), 403, code)
    refused(caller.report(kind, decision_id, key=revoked, used="job-2"), 403, code)
    refused(caller.report(kind, decision_id, key=revoked, used="job-1"), 403, code)
    refused(caller.report(kind, decision_id, {}, key=revoked, used="job-1"), 403, code)
    refused(caller.report(kind, decision_id, {}, key=revoked), 403, code)
    refused(caller.report(kind, decision_id, key=revoked, used="é"), 403, code)
    refused(caller.report(kind, decision_id, b"{", key=revoked), 403, code)
    refused(caller.report(kind, "dec_0", key=revoked), 403, code)
    refused(
        caller.report(kind, decision_id, {**REPORTS[kind.name], "decision_record_hash": "x"}, key=revoked), 403, code
    )
    refused(caller.list(kind, decision_id, key=revoked), 403, code)
    assert caller.size() == size


@each_kind
def test_a_plan_that_changes_stops_no_report(caller: Caller, kind: Kind) -> None:
    decision_id = caller.decide()["decision_id"]
    assert caller.report(kind, decision_id).status_code == 201
    caller.instance.ledger.directory.set_plan(caller.scope, "starter", utc_now(), monthly_cap=1)
    # Rate and cap hold for decisions alone.
    for _ in range(25):
        assert caller.report(kind, decision_id).status_code == 201


def test_a_key_is_unique_for_one_kind_on_one_decision(caller: Caller, instance: Instance) -> None:
    one, two = caller.decide()["decision_id"], caller.decide(**REFUSED)["decision_id"]
    assert decide(caller.client, caller.key, sample_request(**HELD), x_idempotency_key="job-1").status_code == 200
    ids = [
        report_of(kind, response)[kind.id_member]
        for kind in KINDS
        for response in (caller.report(kind, one, used="job-1"), caller.report(kind, two, used="job-1"))
        if response.status_code == 201
    ]
    assert len(set(ids)) == 2 * len(KINDS)
    other = instance.ledger.directory.create_scope("other", "unlimited", utc_now())
    key, _ = instance.ledger.directory.create_key(other, FULL_ACCESS, None, utc_now())
    elsewhere = Caller(caller.client, key, instance, other)
    assert elsewhere.report(KINDS[0], elsewhere.decide()["decision_id"], used="job-1").status_code == 201


@each_kind
def test_without_a_key_every_call_reports_anew(caller: Caller, kind: Kind) -> None:
    decision_id = caller.decide()["decision_id"]
    answers = [caller.report(kind, decision_id) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [201] * 3
    assert len({report_of(kind, answer)[kind.id_member] for answer in answers}) == 3
    assert all("idempotency_key" not in report_of(kind, answer) for answer in answers)


@pytest.mark.parametrize(
    ("kind", "status"), [(kind, status) for kind in KINDS for status in STATUSES[kind.name]], ids=str
)
def test_every_status_is_taken_on_any_decision_any_number_of_times(caller: Caller, kind: Kind, status: str) -> None:
    (member,) = REPORTS[kind.name]
    for inputs in ({}, REFUSED, HELD):
        decision_id = caller.decide(**inputs)["decision_id"]
        for _ in range(2):
            response = caller.report(kind, decision_id, {member: status})
            assert (response.status_code, report_of(kind, response)[member]) == (201, status)


@pytest.mark.parametrize("direction", ["writeback", "inbound"])
def test_a_sync_goes_either_way(caller: Caller, direction: str) -> None:
    response = caller.report(
        CRM_SYNCS, caller.decide()["decision_id"], {"sync_status": "written", "sync_direction": direction}
    )
    assert response.get_json()["crm_sync"]["sync_direction"] == direction


@pytest.mark.parametrize(("inputs", "verdict"), [({}, "yes"), (REFUSED, "no"), (HELD, "review")])
@pytest.mark.parametrize("target", ["crm", "erp"])
def test_a_receipt_says_where_it_contradicts_its_decision(
    caller: Caller, inputs: dict[str, Any], verdict: str, target: str
) -> None:
    body = {"execution_status": "executed", "target_system": target}
    decision_id = caller.decide(**inputs)["decision_id"]
    receipt = caller.report(KINDS[0], decision_id, body).get_json()
    assert receipt["decision_verdict"] == verdict
    assert receipt["action_binding_match"] is (target == "crm")
    assert receipt["flags"] == [
        *([] if verdict == "yes" else ["DECISION_NOT_APPROVED"]),
        *([] if target == "crm" else ["ACTION_BINDING_MISMATCH"]),
    ]
    assert caller.list(KINDS[0], decision_id).get_json()["executions"] == [receipt]


@pytest.mark.parametrize(
    ("sent", "match", "flags"),
    [
        (
            {"action_binding": {"system": "crm", "resource": "deal-1042", "proposed_action": "approve_discount"}},
            True,
            [],
        ),
        ({"target_system": "crm", "action_taken": "wire_money"}, True, ["ACTION_TAKEN_MISMATCH"]),
        ({"action_taken": "approve_discount"}, False, []),
        (
            {"action_binding": {"amount": 1}, "action_taken": "wire_money"},
            False,
            ["ACTION_BINDING_MISMATCH", "ACTION_TAKEN_MISMATCH"],
        ),
    ],
    ids=str,
)
def test_a_receipt_is_compared_in_what_it_names_and_an_action_is_a_flag_of_its_own(
    caller: Caller, sent: dict[str, Any], match: bool, flags: list[str]
) -> None:
    record = caller.decide()
    response = caller.report(KINDS[0], record["decision_id"], {"execution_status": "executed", **sent})
    receipt = response.get_json()
    assert (receipt["action_binding_match"], receipt["flags"]) == (match, flags)
    assert receipt["action_binding"] == record["action_binding"] | sent.get("action_binding", {})
    schema = resources.schema("execution-receipt")
    jsonschema.Draft202012Validator(schema).validate(receipt)


@each_kind
def test_a_decision_without_reports_has_an_empty_list(caller: Caller, kind: Kind) -> None:
    decision_id = caller.decide()["decision_id"]
    response = caller.list(kind, decision_id)
    assert (response.status_code, response.get_json()) == (
        200,
        {"decision_id": decision_id, "count": 0, kind.collection: [], "next_cursor": None},
    )


@each_kind
@pytest.mark.parametrize(("limit", "pages"), [(1, 7), (3, 3), (6, 2), (7, 1), (1000, 1)])
def test_a_list_holds_what_was_answered_newest_first_page_by_page(
    caller: Caller, kind: Kind, limit: int, pages: int
) -> None:
    decision_id = caller.decide()["decision_id"]
    made: list[dict[str, Any]] = []
    for number in range(7):
        # Other kinds and other decisions stand between them in the chain, and not in the list.
        for other in KINDS:
            response = caller.report(other, decision_id, used=f"job-{number}")
            if other is kind:
                made.insert(0, report_of(kind, response))
        caller.report(kind, caller.decide()["decision_id"])
    found: list[dict[str, Any]] = []
    query = f"?limit={limit}"
    for page in range(pages):
        body = caller.list(kind, decision_id, query).get_json()
        described(kind, "get", 200).validate(body)
        assert body["decision_id"] == decision_id
        assert body["count"] == len(body[kind.collection]) == min(limit, 7 - page * limit)
        found += body[kind.collection]
        query = f"?limit={limit}&cursor={body['next_cursor']}"
        # Reports that arrive meanwhile shift nothing.
        assert caller.report(kind, decision_id).status_code == 201
    assert body["next_cursor"] is None
    assert found == made


@each_kind
def test_a_list_shows_20_unless_it_is_asked_for_more(caller: Caller, kind: Kind) -> None:
    decision_id = caller.decide()["decision_id"]
    for _ in range(22):
        caller.report(kind, decision_id)
    counts = [caller.list(kind, decision_id, query).get_json()["count"] for query in ("", "?limit=21", "?limit=1000")]
    assert counts == [20, 21, 22]


@each_kind
@pytest.mark.parametrize(
    "query",
    ["limit=0", "limit=1001", "limit=-1", "limit=x", "limit=", "limit=1&limit=2", "cursor=x", "cursor=", "cursor=-1"],
)
def test_a_list_within_no_bounds_is_refused(caller: Caller, kind: Kind, query: str) -> None:
    answer = refused(caller.list(kind, caller.decide()["decision_id"], f"?{query}"), 400, "SVC_API_QUERY_INVALID")
    assert [error["field"] for error in answer["errors"]] == [query.partition("=")[0]]


def test_a_list_of_large_reports_comes_in_shorter_pages(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    decision_id = caller.decide()["decision_id"]
    monkeypatch.setattr(lifecycle, "_LISTED_BYTES", 40_000)
    made = [
        report_of(
            CRM_SYNCS,
            caller.report(CRM_SYNCS, decision_id, {"sync_status": "written", "mapped_fields": {"note": "x" * 10_000}}),
        )
        for _ in range(10)
    ]
    pages: list[dict[str, Any]] = []
    query = "?limit=1000"
    while not pages or pages[-1]["next_cursor"]:
        pages.append(caller.list(CRM_SYNCS, decision_id, query).get_json())
        query = f"?limit=1000&cursor={pages[-1]['next_cursor']}"
    assert [page["count"] for page in pages] == [4, 4, 2]
    assert [report for page in pages for report in page["crm_syncs"]] == made[::-1]


@each_kind
def test_a_cursor_beyond_the_reports_finds_all_or_none(caller: Caller, kind: Kind) -> None:
    decision_id = caller.decide()["decision_id"]
    caller.report(kind, decision_id)
    counts = [caller.list(kind, decision_id, f"?cursor={at}").get_json()["count"] for at in (0, 1, 2, 3, 10**18 - 1)]
    assert counts == [0, 0, 0, 1, 1]


def with_texts(value: Any, text: str) -> Any:
    """A value in which every text, and a name of every open object, is another one."""
    if isinstance(value, str):
        return text
    if isinstance(value, list):
        return [with_texts(item, text) for item in value]
    if isinstance(value, dict):
        return {name: with_texts(item, text) for name, item in value.items()}
    return value


@each_kind
def test_any_text_is_kept_as_it_was_sent_or_refused(caller: Caller, kind: Kind) -> None:
    record = caller.decide()
    decision_id = record["decision_id"]
    fixed = {*REPORTS[kind.name], "sync_direction", "executed_at", "occurred_at", "crm_record_url"}
    open_ = {"action_binding", "mapped_fields", "observed_metrics"}
    taken = 0
    for number, text in enumerate(map(case_text, cases("hostile_strings"))):
        body = {
            name: value if name in fixed else with_texts(value, text)
            for name, value in MEMBERS[kind.name]["request"].items()
        }
        body |= {name: {**body[name], text: 1} for name in open_ & body.keys()}
        data = json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass")
        response = caller.report(kind, decision_id, data, used=f"job-{number}")
        if response.status_code != 201:
            assert response.get_json()["error"] in (
                "SVC_API_JSON_INVALID",
                "SVC_API_PAYLOAD_TOO_LARGE",
                "SVC_API_REQUEST_INVALID",
            )
            continue
        taken += 1
        report = report_of(kind, response)
        if "action_binding" in body:
            target = {"system": "target_system", "resource": "target_object_id", "mutation": "mutation"}
            named = {of_binding: body[name] for of_binding, name in target.items()}
            body["action_binding"] = record["action_binding"] | body["action_binding"] | named
        assert {name: report[name] for name in body if name != "executed_at"} == {
            name: value for name, value in body.items() if name != "executed_at"
        }
        assert report[MEMBERS[kind.name]["hash"]] == ELSEWHERE[kind.name](report)
        assert caller.report(kind, decision_id, data, used=f"job-{number}").data == response.data
        assert caller.list(kind, decision_id, "?limit=1").get_json()[kind.collection] == [report]
    assert taken > 50


@each_kind
def test_an_unknown_decision_has_no_reports(caller: Caller, kind: Kind) -> None:
    for decision_id in ("dec_0", f"dec_{0:032x}", "a%00b", "%F0%9F%92%A9", "x" * 500):
        refused(caller.report(kind, decision_id), 404, "SVC_DECISION_NOT_FOUND")
        refused(caller.list(kind, decision_id), 404, "SVC_DECISION_NOT_FOUND")
    assert caller.size() == 0


@each_kind
def test_a_report_is_no_decision(caller: Caller, kind: Kind) -> None:
    report = report_of(kind, caller.report(kind, caller.decide()["decision_id"]))
    refused(caller.report(kind, report[kind.id_member]), 404, "SVC_DECISION_NOT_FOUND")


def test_the_latest_outcome_in_chain_order_is_the_one_that_is_kept(caller: Caller) -> None:
    outcome, decision_id = KINDS[1], caller.decide()["decision_id"]

    def kept() -> tuple[str, int]:
        with caller.instance.ledger.store.read() as connection:
            row = connection.execute(
                select(latest_outcomes.c.outcome_status, latest_outcomes.c.position).where(
                    latest_outcomes.c.scope_id == caller.scope.scope_id
                )
            ).one()
        return row.outcome_status, row.position

    for status in ("pending", "succeeded", "reverted", "review"):
        report = caller.report(outcome, decision_id, {"outcome_status": status}, used=status).get_json()
        assert kept() == (status, report["audit_chain"]["chain_position"])
    # A replay is no later word.
    assert caller.report(outcome, decision_id, {"outcome_status": "pending"}, used="pending").status_code == 200
    assert kept()[0] == "review"


def test_reports_leave_their_decision_as_it_was(caller: Caller) -> None:
    record = caller.decide()
    for kind in KINDS:
        assert caller.report(kind, record["decision_id"], MEMBERS[kind.name]["request"]).status_code == 201
    headers = {"x-api-key": caller.key}
    assert caller.client.get(record["decision_url"], headers=headers).get_json() == record
    verified = caller.client.get(record["verify_url"], headers=headers).get_json()
    assert verified["verified"] is True


def example(name: str) -> Any:
    return parse(resources.path("schemas", "examples", f"{name}.json").read_bytes(), max_depth=64)


def test_the_examples_are_reports_that_anyone_can_make_again() -> None:
    record = example("decide-record")
    head = chain.head_of(chain.append(chain.Head("chain_test"), link_material(record)))
    names = {"execution": "execution-receipt", "outcome": "outcome-record", "crm-sync": "crm-sync-answer"}
    for at, kind in enumerate(KINDS, 2):
        report = build(
            kind,
            record,
            example(f"{kind.name}-request"),
            f"{kind.id_prefix}_{at:032x}",
            idempotency_key=f"deal-1042:{kind.name}",
            reported_at=timestamp(NOW + timedelta(seconds=at - 1)),
        )
        link = chain.append(head, report_link(kind, report))
        head = chain.head_of(link)
        whole = {**report, "audit_chain": chain.record_link(link)}
        shown = example(names[kind.name])
        assert (shown["crm_sync"] if kind is CRM_SYNCS else shown) == whole
        listed = example(kind.collection.replace("_", "-"))
        assert listed == {
            "decision_id": record["decision_id"],
            "count": 1,
            kind.collection: [whole],
            "next_cursor": None,
        }


@each_kind
def test_an_example_is_taken_once_its_hashes_are_those_of_a_record(caller: Caller, kind: Kind) -> None:
    record = caller.decide()
    body = example(f"{kind.name}-request")
    body |= {"decision_record_hash": record["record_hash"], "decision_receipt_hash": record["receipt_hash"]}
    assert caller.report(kind, record["decision_id"], body).status_code == 201


@pytest.mark.parametrize("pattern", patterns(), ids=lambda pattern: pattern["pattern_id"])
def test_the_templates_of_a_pattern_are_taken_once_they_are_filled_in(caller: Caller, pattern: dict[str, Any]) -> None:
    record = decide(caller.client, caller.key, pattern["decision_request_template"]).get_json()
    for kind, template in ((OUTCOMES, pattern["outcome_template"]), (CRM_SYNCS, pattern["crm_sync_template"])):
        filled = {
            name: record[value[1:-1]] if isinstance(value, str) and value.startswith("<") else value
            for name, value in template.items()
        }
        response = caller.report(kind, record["decision_id"], filled)
        assert response.status_code == 201
        assert report_of(kind, response).items() >= filled.items()
