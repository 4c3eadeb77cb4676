"""The reports over HTTP, and what outcomes make of the records that follow them."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import jsonschema
import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from api.app import create_app
from api.http.state import NO_REPORTS
from gate.clock import utc_now
from gate.encoding import resources
from gate.encoding.canonical import content_hash
from gate.instance.instance import Instance
from gate.ledger.access.authority import FULL_ACCESS, Scope
from gate.policy.effectiveness_report import effectiveness_report
from gate.policy.questions import EffectivenessQuestion
from tests.api.routes.reports import PATH, get, other_key
from tests.independent import verifier
from tests.support.reports import COUNTED, EMPTY, AskedReports, FixedReports, LateReports, give_reports
from tests.support.samples import sample_request

MEMBERS = ("score", "level", "hash")
EFFECTIVENESS = "/api/decision/policies/pricing_exception/effectiveness"
ANOMALIES = "/api/decision/policies/pricing_exception/anomalies"
BENCHMARKS = "/api/decision/policies/pricing_exception/benchmarks"
# A moment is a time with its zone.
MOMENTS_REFUSED = ("", "2026-06-08", "2026-06-08T00:00:00", "yesterday", "2026-02-30T00:00:00Z", "1780000000", "\0")


def report(client: FlaskClient, key: str, path: str = PATH, **query: Any) -> dict[str, Any]:
    response = get(client, key, path, **query)
    body: dict[str, Any] = response.get_json()
    assert response.status_code == 200, body
    jsonschema.Draft202012Validator(resources.schema("confidence-report")).validate(body)
    return body


def decide(client: FlaskClient, key: str, request: dict[str, Any] | None = None, **headers: str) -> TestResponse:
    sent = {"x-api-key": key, **{name.replace("_", "-"): value for name, value in headers.items()}}
    response = client.post("/api/decide", json=request or sample_request(), headers=sent)
    assert response.status_code == 200, response.get_json()
    return response


def tell(client: FlaskClient, key: str, decision_id: str, status: str) -> None:
    response = client.post(
        f"/api/decision/{decision_id}/outcome", json={"outcome_status": status}, headers={"x-api-key": key}
    )
    assert response.status_code == 201, response.get_json()


def decided(client: FlaskClient, key: str, *statuses: str, version: str | None = None, **inputs: Any) -> None:
    """Decides once for each status, and reports it."""
    request = sample_request(**inputs)
    if version is not None:
        request["rulebook"]["version"] = version
    for status in statuses:
        tell(client, key, decide(client, key, request).get_json()["decision_id"], status)


class TestReport:
    def test_an_outcome_counts_at_once_and_a_later_one_takes_its_place(self, client: FlaskClient, key: str) -> None:
        decision_id = decide(client, key).get_json()["decision_id"]
        assert report(client, key)["coverage"]["decisions"] == 0
        for status in ("pending", "succeeded", "review", "failed", "reverted", "partial", "succeeded"):
            tell(client, key, decision_id, status)
            outcomes = report(client, key)["outcomes"]
            assert outcomes == dict.fromkeys(outcomes, 0) | {status: 1}

    def test_it_covers_what_was_asked_for(self, client: FlaskClient, key: str) -> None:
        decided(client, key, *["succeeded"] * 3, "pending")
        decided(client, key, "succeeded", "failed", discount_percent=10, margin_percent=9)
        decided(client, key, "failed", "partial", version="2026 é/1")

        def seen(**query: Any) -> tuple[int, int, int]:
            found = report(client, key, **query)
            for name, value in query.items():
                assert found[name] == value
            return found["similar_decisions"], found["outcomes"]["succeeded"], found["coverage"]["versions"]

        assert seen() == (8, 4, 2)
        assert seen(verdict="yes") == (6, 3, 2)
        assert seen(verdict="no") == (2, 1, 1)
        assert seen(verdict="review") == (0, 0, 0)
        assert seen(policy_version="2026-06-11") == (6, 4, 1)
        assert seen(policy_version="2026 é/1") == (2, 0, 1)
        assert seen(policy_version="2026 é/1", verdict="no") == (0, 0, 0)
        assert seen(action="approve_discount") == (6, 3, 2)
        assert seen(action="reject_discount", verdict="no", policy_version="2026-06-11") == (2, 1, 1)
        assert seen(action="unheard of \0") == (0, 0, 0)
        assert seen(limit=3) == (3, 0, 2)
        assert seen(limit=2, policy_version="2026-06-11") == (2, 1, 1)

    def test_a_limit_is_told_where_it_left_something_out(self, client: FlaskClient, key: str) -> None:
        decided(client, key, "failed", "succeeded", "succeeded")
        everything = report(client, key)
        assert everything["coverage"]["truncated"] is False
        for limit in (3, 1_000_000):
            found = report(client, key, limit=limit)
            assert found["coverage"] == everything["coverage"]
            assert found["notes"] == everything["notes"]
        last = report(client, key, limit=2)
        assert (last["coverage"]["truncated"], last["outcomes"]["failed"]) == (True, 0)
        assert everything["coverage"]["from"] < last["coverage"]["from"] <= last["coverage"]["to"]
        assert last["coverage"]["to"] == everything["coverage"]["to"]
        assert last["policy_success_rate"] == everything["success_rate"]

    def test_a_level_needs_the_sample_that_was_asked_for(self, client: FlaskClient, key: str) -> None:
        decided(client, key, *["succeeded"] * 20, "pending")
        found = report(client, key, verdict="yes")
        assert (found["min_sample"], found["level"], found["recommendation"]) == (20, "high", "high_confidence_proceed")
        assert (found["score"], found["policy_stability"], found["similar_decisions"]) == (0.838875, 1, 21)
        assert report(client, key, min_sample=21)["level"] == "insufficient"
        assert report(client, key, min_sample=1, limit=2)["level"] == "low"

    def test_it_carries_its_own_hash_and_its_headers_say_the_same(self, client: FlaskClient, key: str) -> None:
        for statuses in ((), ("succeeded",) * 5):
            decided(client, key, *statuses)
            response = get(client, key)
            body = response.get_json()
            told = [response.headers[f"x-decision-confidence-{name}"] for name in MEMBERS]
            assert told == [str(body["score"]), body["level"], body["confidence_hash"]]
            assert body.pop("confidence_hash") == content_hash(body)
            assert get(client, key).data == response.data

    def test_the_same_ledger_gives_the_same_bytes_to_every_process(
        self, client: FlaskClient, key: str, instance: Instance
    ) -> None:
        decided(client, key, "succeeded", "failed")
        assert get(create_app(instance).test_client(), key).data == get(client, key).data

    def test_another_scopes_policy_looks_like_an_unknown_one(
        self, client: FlaskClient, key: str, instance: Instance
    ) -> None:
        stranger = other_key(instance)
        before = get(client, stranger, verdict="yes", limit=5)
        decided(client, key, *["succeeded"] * 3)
        after = get(client, stranger, verdict="yes", limit=5)
        assert before.data == after.data
        assert (after.get_json()["level"], after.get_json()["coverage"]["decisions"]) == ("insufficient", 0)
        unknown = report(client, key, PATH.replace("pricing_exception", "unknown"), verdict="yes", limit=5)
        foreign = after.get_json()
        for body in (unknown, foreign):
            del body["policy_id"], body["confidence_hash"]
        assert unknown == foreign

    @pytest.mark.parametrize(
        "policy_id",
        ["a b", "é", "%", "a%2Fb", "..", "x" * 3000, "\0", "'; --", "PRICING", "pricing_exception\n"],
    )
    def test_an_id_that_no_policy_can_have_is_an_unknown_one(
        self, client: FlaskClient, key: str, policy_id: str
    ) -> None:
        decided(client, key, "succeeded")
        found = report(client, key, f"/api/decision/policies/{quote(policy_id, safe='')}/confidence")
        assert (found["policy_id"], found["level"], found["similar_decisions"]) == (policy_id, "insufficient", 0)

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            *(("limit", value) for value in ("0", "1000001", "-1", "x", "", "1.0", "٣", "1e3", "9" * 30)),
            *(("min_sample", value) for value in ("0", "10001", "-1", "x", "", "2.5")),
            *(("verdict", value) for value in ("", "YES", "unclear", "yes,no", "yes ")),
            ("policy_version", ""),
            ("action", ""),
        ],
    )
    def test_a_parameter_out_of_bounds_is_refused(self, client: FlaskClient, key: str, name: str, value: str) -> None:
        response = get(client, key, **{name: value})
        assert (response.status_code, response.get_json()["error"]) == (400, "SVC_API_QUERY_INVALID")
        assert [fault["field"] for fault in response.get_json()["errors"]] == [name]

    def test_of_several_faults_the_first_text_is_told_of_then_the_first_of_the_others(
        self, client: FlaskClient, key: str
    ) -> None:
        faults = {"min_sample": "0", "limit": "0", "verdict": "x", "action": "", "policy_version": ""}
        for first in ("policy_version", "action", "verdict", "limit", "min_sample"):
            response = get(client, key, PATH, **faults)
            assert [fault["field"] for fault in response.get_json()["errors"]] == [first]
            del faults[first]

    @pytest.mark.parametrize("name", ["limit", "min_sample", "verdict", "policy_version", "action"])
    def test_a_parameter_sent_twice_is_refused(self, client: FlaskClient, key: str, name: str) -> None:
        value = {"verdict": "yes"}.get(name, "1")
        response = client.get(f"{PATH}?{name}={value}&{name}={value}", headers={"x-api-key": key})
        assert (response.status_code, response.get_json()["errors"][0]["code"]) == (400, "duplicate")

    @pytest.mark.parametrize("query", [{"limit": 1}, {"limit": 1_000_000}, {"min_sample": 1}, {"min_sample": 10_000}])
    def test_bounds_are_within(self, client: FlaskClient, key: str, query: dict[str, Any]) -> None:
        assert report(client, key, **query).items() >= query.items()

    def test_it_needs_a_key_with_read_under_its_own_code_before_anything_is_said_of_the_query(
        self, client: FlaskClient, key: str, scope: Scope, instance: Instance
    ) -> None:
        code = "SVC_POLICY_CONFIDENCE_UNAUTHORIZED"
        reporter, _ = instance.ledger.directory.create_key(scope, FULL_ACCESS - {"read"}, None, utc_now())
        for sent, status in (("", 401), (key + "x", 401), (reporter, 403)):
            response = get(client, sent, limit=0)
            assert (response.status_code, response.get_json()["error"]) == (status, code)
            assert not [name for name, _ in response.headers if name.lower().startswith("x-decision")]
        reader, _ = instance.ledger.directory.create_key(scope, {"read"}, None, utc_now())
        assert get(client, reader).status_code == 200

    def test_other_methods_and_reports_that_do_not_exist_are_told(self, client: FlaskClient, key: str) -> None:
        assert client.post(PATH, json={}, headers={"x-api-key": key}).status_code == 405
        for path in (PATH.replace("confidence", "prophecy"), PATH + "/", "/api/decision/policies//confidence"):
            assert get(client, key, path).status_code == 404


class TestRecords:
    def test_a_record_has_confidence_once_its_policy_has_an_outcome(
        self, client: FlaskClient, key: str, instance: Instance
    ) -> None:
        first = decide(client, key)
        assert not {"decision_confidence", "confidence_hash"} & first.get_json().keys()
        assert not [name for name, _ in first.headers if "confidence" in name.lower()]
        tell(client, key, first.get_json()["decision_id"], "succeeded")
        second = decide(client, key)
        record = second.get_json()
        confidence = dict(record["decision_confidence"])
        assert record["confidence_hash"] == confidence.pop("confidence_hash") == content_hash(confidence)
        assert confidence == {
            "decision_confidence_version": "decision_confidence_v1",
            "score": 0.206549,
            "level": "insufficient",
            "similar_decisions": 1,
            "policy_stability": None,
            "recommendation": "collect_outcomes",
        }
        assert [second.headers[f"x-decision-confidence-{name}"] for name in MEMBERS] == [
            "0.206549",
            "insufficient",
            record["confidence_hash"],
        ]
        assert "decision_confidence" not in decide(client, other_key(instance)).get_json()

    def test_it_speaks_of_decisions_with_the_same_version_verdict_and_action(
        self, client: FlaskClient, key: str
    ) -> None:
        decided(client, key, *["succeeded"] * 20)

        def told(version: str | None = None, **inputs: Any) -> tuple[Any, ...]:
            request = sample_request(**inputs)
            if version is not None:
                request["rulebook"]["version"] = version
            found = decide(client, key, request).get_json()["decision_confidence"]
            return found["level"], found["similar_decisions"], found["recommendation"]

        assert told() == ("high", 20, "high_confidence_proceed")
        assert told(discount_percent=10, margin_percent=9) == ("insufficient", 0, "collect_outcomes")
        assert told(version="2") == ("insufficient", 0, "collect_outcomes")

    def test_every_view_carries_it_and_every_verification_holds(
        self, client: FlaskClient, key: str, instance: Instance
    ) -> None:
        decided(client, key, *["succeeded"] * 20)
        full = decide(client, key).get_json()
        keys = [ring.registry().to_dict() for ring in (instance.receipt_keys, instance.registry_keys)]
        assert verifier.record_failures(full, keys[0], attestation_keys=keys[1], request_body=sample_request()) == []
        where = f"/api/decision/{full['decision_id']}"
        headers = {"x-api-key": key}
        for result in (
            client.get(f"{where}/verify", headers=headers),
            client.post(f"{where}/verify", json=full, headers=headers),
            client.post("/api/decision/verify", json=full),
        ):
            body = result.get_json()
            assert (body["verified"], body["checks"]["confidence_hash"]) == (True, True)
        changed = full | {"decision_confidence": full["decision_confidence"] | {"level": "low"}}
        assert client.post("/api/decision/verify", json=changed).get_json()["checks"]["confidence_hash"] is False
        for view in ("minimal", "standard", "full"):
            shown = client.get(where, headers={**headers, "x-decision-response-view": view}).get_json()
            assert shown["decision_confidence"] == full["decision_confidence"]
            assert shown["confidence_hash"] == full["confidence_hash"]
            fresh = decide(client, key, x_decision_response_view=view).get_json()
            assert fresh["decision_confidence"] == full["decision_confidence"]
            schema = {**resources.schema("decision-record-v1"), "$ref": f"#/$defs/{view}"}
            jsonschema.Draft202012Validator(schema).validate(fresh)

    def test_it_stays_what_it_was_when_the_record_was_made(self, client: FlaskClient, key: str) -> None:
        before = decide(client, key, x_idempotency_key="before").get_json()
        decided(client, key, "succeeded")
        response = decide(client, key, x_idempotency_key="k")
        record = response.get_json()
        for _ in range(2):
            decided(client, key, "failed", "failed")
            again = decide(client, key, x_idempotency_key="k")
            assert (again.headers["x-idempotency-status"], again.data) == ("replayed", response.data)
            assert [again.headers[f"x-decision-confidence-{name}"] for name in MEMBERS] == [
                response.headers[f"x-decision-confidence-{name}"] for name in MEMBERS
            ]
            stored = client.get(f"/api/decision/{record['decision_id']}", headers={"x-api-key": key})
            assert stored.get_json() == record
        assert decide(client, key, x_idempotency_key="before").get_json() == before
        assert "decision_confidence" not in before
        assert decide(client, key).get_json()["decision_confidence"]["similar_decisions"] == 5


class TestEffectiveness:
    def test_it_is_asked_for_in_the_callers_scope_and_answered_as_it_is_made(
        self, client: FlaskClient, key: str, scope: Scope
    ) -> None:
        reports = AskedReports(COUNTED)
        give_reports(client.application, reports)
        asked = EffectivenessQuestion("pricing_exception")
        assert get(client, key, EFFECTIVENESS).get_json() == effectiveness_report(COUNTED, asked)
        narrowed: dict[str, Any] = {"policy_version": "2026 é/1", "limit": 7, "min_sample": 3}
        assert get(client, key, EFFECTIVENESS, **narrowed).get_json().items() >= narrowed.items()
        defaults: dict[str, Any] = {"policy_version": None, "limit": None, "min_sample": 20}
        assert reports.questions == [
            (scope.scope_id, EffectivenessQuestion("pricing_exception", **chosen)) for chosen in (defaults, narrowed)
        ]

    def test_it_carries_its_own_hash_and_its_headers_say_the_same(self, client: FlaskClient, key: str) -> None:
        for counted in (COUNTED, EMPTY):
            give_reports(client.application, FixedReports(counted))
            response = get(client, key, EFFECTIVENESS)
            body = response.get_json()
            jsonschema.Draft202012Validator(resources.schema("effectiveness-report")).validate(body)
            told = {name.lower(): value for name, value in response.headers if name.lower().startswith("x-policy")}
            score = {} if counted is EMPTY else {"x-policy-effectiveness-score": "0.930162"}
            assert told == score | {
                "x-policy-effectiveness-recommendation": body["recommendation"],
                "x-policy-effectiveness-hash": body["effectiveness_hash"],
            }
            assert body.pop("effectiveness_hash") == content_hash(body)

    def test_while_it_cannot_be_counted_it_says_when_to_come_again_and_deciding_goes_on(
        self, client: FlaskClient, key: str
    ) -> None:
        for details, told in (({}, None), ({"retry_after": 5}, "5")):
            give_reports(client.application, LateReports(details=details))
            response = get(client, key, EFFECTIVENESS)
            body = response.get_json()
            jsonschema.Draft202012Validator(resources.schema("error")).validate(body)
            assert (response.status_code, body["error"]) == (503, "SVC_REPORT_UNAVAILABLE")
            assert body["v"] == "service_unavailable"
            assert (response.headers.get("retry-after"), body.items() >= details.items()) == (told, True)
            assert not [name for name, _ in response.headers if name.lower().startswith("x-policy")]
            decide(client, key)
            report(client, key)

    def test_an_application_that_was_given_nothing_that_counts_says_so(self, client: FlaskClient, key: str) -> None:
        give_reports(client.application, NO_REPORTS)
        body = get(client, key, EFFECTIVENESS).get_json()
        assert (body["error"], "retry_after" in body) == ("SVC_REPORT_UNAVAILABLE", False)
        assert "Decisions are not affected" in body["message"]
        assert "key" not in body["message"]

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            *(("limit", value) for value in ("0", "1000001", "-1", "x", "", "1.0", "٣", "1e3", "9" * 30)),
            *(("min_sample", value) for value in ("0", "10001", "-1", "x", "", "2.5")),
            *(("verdict", value) for value in ("", "YES", "unclear", "yes,no")),
            *(("clock", value) for value in ("", "Recorded", "event", "recorded,occurred")),
            *((name, value) for name in ("since", "until") for value in MOMENTS_REFUSED),
            ("policy_version", ""),
            ("action", "x"),
        ],
    )
    def test_a_parameter_out_of_bounds_is_refused(self, client: FlaskClient, key: str, name: str, value: str) -> None:
        give_reports(client.application, FixedReports())
        response = get(client, key, EFFECTIVENESS, **{name: value})
        assert (response.status_code, response.get_json()["error"]) == (400, "SVC_API_QUERY_INVALID")
        assert [fault["field"] for fault in response.get_json()["errors"]] == [name]

    @pytest.mark.parametrize("query", [{"limit": 1}, {"limit": 1_000_000}, {"min_sample": 1}, {"min_sample": 10_000}])
    def test_bounds_are_within(self, client: FlaskClient, key: str, query: dict[str, Any]) -> None:
        give_reports(client.application, FixedReports())
        assert get(client, key, EFFECTIVENESS, **query).get_json().items() >= query.items()

    @pytest.mark.parametrize("path", [PATH, EFFECTIVENESS, ANOMALIES, BENCHMARKS])
    def test_every_report_is_asked_for_a_verdict_and_a_period_and_repeats_them(
        self, client: FlaskClient, key: str, path: str
    ) -> None:
        give_reports(client.application, FixedReports())
        query = {"verdict": "yes", "since": "2026-06-08T02:00:00+02:00", "until": "2026-07-01T00:00:00Z"}
        body = get(client, key, path, **query, clock="recorded").get_json()
        asked = {
            "verdict": "yes",
            "since": "2026-06-08T00:00:00.000Z",
            "until": "2026-07-01T00:00:00.000Z",
            "clock": "recorded",
        }
        assert body.items() >= asked.items()

    @pytest.mark.parametrize("path", [PATH, EFFECTIVENESS, ANOMALIES, BENCHMARKS])
    @pytest.mark.parametrize("until", ["2026-06-30T23:59:59Z", "2026-07-01T02:00:00+02:00"])
    def test_a_period_in_which_no_moment_lies_is_refused(
        self, client: FlaskClient, key: str, path: str, until: str
    ) -> None:
        give_reports(client.application, FixedReports())
        response = get(client, key, path, since="2026-07-01T00:00:00Z", until=until)
        assert (response.status_code, response.get_json()["error"]) == (400, "SVC_API_QUERY_INVALID")
        assert [fault["field"] for fault in response.get_json()["errors"]] == ["until"]

    def test_benchmarks_have_the_recorded_clock_alone(self, client: FlaskClient, key: str) -> None:
        give_reports(client.application, FixedReports())
        response = get(client, key, BENCHMARKS, clock="occurred")
        assert [fault["field"] for fault in response.get_json()["errors"]] == ["clock"]
        assert "must be recorded here; send that, or leave it out." in response.get_json()["message"]

    @pytest.mark.parametrize(
        "query", [{"since": "2026-06-08T00:00:00Z"}, {"until": "2026-06-08T00:00:00Z"}, {"clock": "occurred"}]
    )
    def test_confidence_of_a_period_or_by_another_clock_is_counted_in_the_lake(
        self, client: FlaskClient, key: str, query: dict[str, str]
    ) -> None:
        reports = AskedReports()
        give_reports(client.application, reports)
        assert get(client, key, PATH, verdict="yes").status_code == 200
        assert reports.questions == []
        response = get(client, key, PATH, **query)
        assert (response.status_code, len(reports.questions)) == (200, 1)
        assert response.headers["x-decision-confidence-hash"] == response.get_json()["confidence_hash"]
        give_reports(client.application, LateReports())
        assert get(client, key, PATH, **query).get_json()["error"] == "SVC_REPORT_UNAVAILABLE"
        assert get(client, key, PATH).status_code == 200

    def test_it_needs_a_key_with_read_under_its_own_code_before_anything_is_counted(
        self, client: FlaskClient, key: str, scope: Scope, instance: Instance
    ) -> None:
        reports = AskedReports()
        give_reports(client.application, reports)
        code = "SVC_POLICY_EFFECTIVENESS_UNAUTHORIZED"
        reporter, _ = instance.ledger.directory.create_key(scope, FULL_ACCESS - {"read"}, None, utc_now())
        for sent, status in (("", 401), (key + "x", 401), (reporter, 403)):
            response = get(client, sent, EFFECTIVENESS, limit=0)
            assert (response.status_code, response.get_json()["error"]) == (status, code)
        assert reports.questions == []
        reader, _ = instance.ledger.directory.create_key(scope, {"read"}, None, utc_now())
        assert get(client, reader, EFFECTIVENESS).status_code == 200

    def test_a_policy_of_another_scope_is_one_without_decisions(
        self, client: FlaskClient, key: str, instance: Instance
    ) -> None:
        reports = AskedReports()
        give_reports(client.application, reports)
        for sent in (key, other_key(instance)):
            assert get(client, sent, EFFECTIVENESS).get_json()["recommendation"] == "no_decisions"
        assert len({scope_id for scope_id, *_ in reports.questions}) == 2
