"""Benchmarks over HTTP: as they are asked for, and over the real ledgers, lakes and freezes of some scopes."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

import jsonschema
import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from api.app import create_app
from api.http.state import NO_REPORTS
from gate.clock import utc_now
from gate.encoding import resources
from gate.encoding.canonical import content_hash
from gate.ids import timestamp
from gate.instance.instance import Instance
from gate.ledger.access.authority import FULL_ACCESS, Scope
from gate.policy.peers import Cohort, beginning, benchmark_report, earlier, month_of
from gate.policy.questions import BenchmarksQuestion
from gate.records.reports.receipts import OUTCOMES
from tests.independent import benchmarks as recount
from tests.support.reports import OTHERS, OWN, AskedReports, FixedReports, LateReports, give_reports
from tests.support.samples import sample_request
from workbench.analytics import Analytics
from workbench.lake.cohorts import keep_frozen
from workbench.lake.entries import Personal

PATH: Final = "/api/decision/policies/pricing_exception/benchmarks"
AN_HOUR: Final = timedelta(hours=1)


def get(client: FlaskClient, key: str, path: str = PATH, **query: Any) -> TestResponse:
    return client.get(path, query_string=query, headers={"x-api-key": key})


class TestAsking:
    def test_it_is_asked_for_in_the_callers_scope_and_answered_as_it_is_made(
        self, client: FlaskClient, key: str, scope: Scope
    ) -> None:
        cohort = Cohort("2026-11", member=True, others=OTHERS)
        reports = AskedReports(own=OWN, cohort=cohort)
        give_reports(client.application, reports)
        expected = benchmark_report(OWN, cohort, BenchmarksQuestion("pricing_exception"), month="2026-11")
        assert get(client, key).get_json() == expected
        narrowed: dict[str, Any] = {
            "policy_version": "2026 é/1",
            "limit": 7,
            "min_cohort_scopes": 6,
            "min_cohort_decisions": 60,
        }
        assert get(client, key, **narrowed).get_json().items() >= narrowed.items()
        defaults: dict[str, Any] = {
            "policy_version": None,
            "limit": None,
            "min_cohort_scopes": 5,
            "min_cohort_decisions": 50,
        }
        assert reports.questions == [
            (scope.scope_id, BenchmarksQuestion("pricing_exception", **chosen)) for chosen in (defaults, narrowed)
        ]

    def test_it_carries_its_own_hash_and_its_headers_say_the_same(self, client: FlaskClient, key: str) -> None:
        for cohort in (None, Cohort("2026-11", member=True, others=OTHERS)):
            give_reports(client.application, FixedReports(cohort=cohort))
            response = get(client, key)
            body = response.get_json()
            jsonschema.Draft202012Validator(resources.schema("benchmark-report")).validate(body)
            assert {name.lower(): value for name, value in response.headers if name.lower().startswith("x-policy")} == {
                "x-policy-benchmarks-recommendation": body["recommendation"],
                "x-policy-benchmarks-hash": body["benchmark_hash"],
            }
            assert body.pop("benchmark_hash") == content_hash(body)

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            *(("limit", value) for value in ("0", "1000001", "x", "", "1.0")),
            *(("min_cohort_scopes", value) for value in ("4", "0", "-5", "1001", "x", "", "5.0")),
            *(("min_cohort_decisions", value) for value in ("49", "0", "1000001", "x", "")),
            ("policy_version", ""),
            ("min_sample", "20"),
        ],
    )
    def test_a_parameter_out_of_bounds_is_refused(self, client: FlaskClient, key: str, name: str, value: str) -> None:
        give_reports(client.application, FixedReports())
        response = get(client, key, **{name: value})
        assert (response.status_code, response.get_json()["error"]) == (400, "SVC_API_QUERY_INVALID")
        assert [fault["field"] for fault in response.get_json()["errors"]] == [name]

    @pytest.mark.parametrize(
        "query",
        [
            {"limit": 1},
            {"limit": 1_000_000},
            {"min_cohort_scopes": 5},
            {"min_cohort_scopes": 1000},
            {"min_cohort_decisions": 50},
            {"min_cohort_decisions": 1_000_000},
        ],
    )
    def test_bounds_are_within(self, client: FlaskClient, key: str, query: dict[str, Any]) -> None:
        give_reports(client.application, FixedReports())
        assert get(client, key, **query).get_json().items() >= query.items()

    def test_it_needs_a_key_with_read_under_its_own_code_before_anything_is_counted(
        self, client: FlaskClient, key: str, scope: Scope, instance: Instance
    ) -> None:
        reports = AskedReports()
        give_reports(client.application, reports)
        reporter, _ = instance.ledger.directory.create_key(scope, FULL_ACCESS - {"read"}, None, utc_now())
        for sent, status in (("", 401), (key + "x", 401), (reporter, 403)):
            response = get(client, sent, limit=0)
            told = (response.status_code, response.get_json()["error"])
            assert told == (status, "SVC_POLICY_BENCHMARKS_UNAUTHORIZED")
        assert reports.questions == []
        reader, _ = instance.ledger.directory.create_key(scope, {"read"}, None, utc_now())
        assert get(client, reader).status_code == 200

    def test_while_it_cannot_be_made_it_says_so_and_deciding_goes_on(self, client: FlaskClient, key: str) -> None:
        for reports, told in ((NO_REPORTS, None), (LateReports(), "5")):
            give_reports(client.application, reports)
            response = get(client, key)
            assert (response.status_code, response.get_json()["error"]) == (503, "SVC_REPORT_UNAVAILABLE")
            assert response.headers.get("retry-after") == told
            decided = client.post("/api/decide", json=sample_request(), headers={"x-api-key": key})
            assert decided.status_code == 200


class Members:
    """Scopes that decide by one policy this month, and what the service answered of each."""

    def __init__(self, instance: Instance, number: int) -> None:
        self.instance = instance
        # It stands still, so that no month ends meanwhile.
        self.now = utc_now()
        self.month = month_of(self.now)
        self.frozen_in = earlier(self.month, -2)
        self.keys: list[str] = []
        self.scopes: dict[str, Scope] = {}
        self.entries: dict[str, list[dict[str, Any]]] = {}
        self.choices: list[tuple[str, bool, str]] = []
        directory = instance.ledger.directory
        for of in range(number):
            name = f"scope-{of}"
            self.scopes[name] = directory.create_scope(name, "unlimited", utc_now())
            key, _ = directory.create_key(self.scopes[name], FULL_ACCESS, None, utc_now())
            self.keys.append(key)
            self.entries[name] = []

    def live(self, number: int, decisions: int, succeeded: int) -> None:
        """Lets a scope decide, and report what came of all but two."""
        authority = self.instance.ledger.directory.authenticate(self.keys[number], self.now)
        gate, lifecycle = self.instance.gate(lambda: self.now), self.instance.lifecycle(lambda: self.now)
        made = [
            gate.decide(authority, sample_request(), request_id="req_1").record["decision_id"] for _ in range(decisions)
        ]
        for at, decision_id in enumerate(made[2:]):
            status = {"outcome_status": "succeeded" if at < succeeded else "failed"}
            lifecycle.report(authority, OUTCOMES, decision_id, status)

    def opt_in(self, name: str, moment: datetime) -> None:
        """Lets a scope take part."""
        self.instance.ledger.benchmarks.choose(self.scopes[name], moment, opted_in=True)
        self.choices.append((name, True, timestamp(moment)))

    def freeze(self, month: str | None = None) -> None:
        """Freezes the month in which this month's decisions count, or another."""
        keep_frozen(
            self.instance.ledger,
            self.instance.settings.lake_directory,
            Personal(),
            beginning(month or self.frozen_in) + AN_HOUR,
        )


@pytest.fixture
def members(instance: Instance) -> Members:
    instance.settings.lake_directory.mkdir()
    return Members(instance, 7)


class TestOverRealLedgers:
    def test_from_opting_in_to_a_comparison(self, client: FlaskClient, members: Members) -> None:
        first, outsider = members.keys[0], members.keys[6]
        for number in range(7):
            members.live(number, 48, 23 + 4 * number)

        def told(key: str, **query: Any) -> dict[str, Any]:
            response = get(client, key, **query)
            body = response.get_json()
            assert response.status_code == 200, body
            jsonschema.Draft202012Validator(resources.schema("benchmark-report")).validate(body)
            return dict(body)

        assert told(first)["cross_customer"]["reason"] == "not_frozen"
        members.freeze(members.month)
        assert told(first)["cross_customer"]["reason"] == "not_opted_in"
        for name in list(members.scopes)[:5]:
            members.opt_in(name, members.now)
        # That takes effect with the next month.
        assert told(first)["cross_customer"]["reason"] == "not_opted_in"
        members.freeze(earlier(members.month, -1))
        body = told(first)
        assert (body["cross_customer"]["reason"], body["your_metrics"]["decisions"]) == ("too_few_scopes", 0)
        members.opt_in("scope-5", beginning(members.frozen_in) - AN_HOUR)
        members.freeze()
        body = told(first)
        across = body["cross_customer"]
        assert (across["status"], across["month"], across["scopes_at_least"]) == ("available", members.frozen_in, 5)
        assert body["your_metrics"] == {
            "decisions": 48,
            "terminal": 46,
            "success_rate": 0.5,
            "approval_rate": 1.0,
            "terminal_coverage": 0.958333,
            "present": {
                "decisions": 48,
                "terminal": 46,
                "success_rate": 0.5,
                "approval_rate": 1.0,
                "terminal_coverage": 0.958333,
            },
        }
        # 27, 31, 35, 39 and 43 of 46.
        assert across["percentiles"]["success_rate"] == {"p25": 0.65, "p50": 0.75, "p75": 0.85}
        assert body["recommendation"] == "below_cohort"
        assert told(first, min_cohort_scopes=6)["cross_customer"]["reason"] == "too_few_scopes"
        assert told(first, min_cohort_decisions=101)["cross_customer"]["reason"] == "too_few_decisions"
        assert told(first, limit=10)["your_metrics"]["decisions"] == 10
        assert told(first, policy_version="unheard of")["recommendation"] == "insufficient_outcomes"
        body = told(outsider)
        assert body["cross_customer"]["reason"] == "not_opted_in"
        assert body["your_metrics"]["success_rate"] == round(46 / 46, 6)

    @pytest.mark.heavy
    def test_it_is_the_recount_and_the_same_bytes_from_every_process(
        self, client: FlaskClient, members: Members, instance: Instance
    ) -> None:
        def read(number: int) -> list[dict[str, Any]]:
            """A scope's entries in chain order, as the service answers them."""
            headers = {"x-api-key": members.keys[number]}
            found = client.get("/api/decisions", query_string={"limit": 1000}, headers=headers).get_json()["decisions"]
            entries: list[dict[str, Any]] = []
            for decision in found:
                path = f"/api/decision/{decision['decision_id']}"
                entries.append(client.get(path, headers=headers).get_json())
                entries += client.get(f"{path}/outcome", headers=headers).get_json()["outcomes"]
            return sorted(entries, key=lambda entry: int(entry["audit_chain"]["chain_position"]))

        for number in range(6):
            members.live(number, 47, 40 - 3 * number)
            members.opt_in(f"scope-{number}", members.now)
            members.entries[f"scope-{number}"] = read(number)
        members.freeze()
        answer = get(client, members.keys[2])
        expected = recount.benchmarks(
            members.entries, members.choices, members.frozen_in, "scope-2", "pricing_exception"
        )
        assert answer.get_json() == expected
        assert expected["cross_customer"]["status"] == "available"
        analytics = Analytics(instance.ledger, instance.settings.lake_directory, Personal(), instance.migrations())
        another = create_app(instance, analytics=analytics).test_client()
        assert get(another, members.keys[2]).data == answer.data

    def test_a_month_that_cannot_be_read_is_told_without_its_place(
        self, client: FlaskClient, members: Members, instance: Instance
    ) -> None:
        members.freeze()
        (file,) = (instance.settings.lake_directory / "benchmarks").iterdir()
        file.write_bytes(b"PAR1")
        body = get(client, members.keys[0]).get_json()
        assert (body["error"], "LAKE_BENCHMARKS_INVALID" in body["message"]) == ("SVC_REPORT_UNAVAILABLE", True)
        assert str(instance.settings.home) not in body["message"]
        file.unlink()
        members.freeze()
        assert get(client, members.keys[0]).status_code == 200
