"""The anomaly report, its alerts, and its place in packets, over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any, Final

import jsonschema
import pytest
from flask.testing import FlaskClient

from api.http.state import NO_REPORTS
from gate.clock import utc_now
from gate.decisions.erasure import erase
from gate.encoding import resources
from gate.encoding.canonical import content_hash
from gate.instance.instance import Instance
from gate.ledger.access.authority import FULL_ACCESS, Authority, Scope
from gate.policy.questions import AlertsQuestion, AnomaliesQuestion
from gate.records.packet import packet_hash
from gate.services.policies import in_force
from gate.verify import verify_packet
from tests.api.routes.reports import Caller, get, other_key
from tests.independent import anomalies as independent
from tests.support.reports import ANOMALOUS, AskedReports, FixedReports, LateReports, anomaly_example, give_reports
from tests.support.samples import CASES, sample_request
from tests.workbench.support import Chain

POLICY: Final = "pricing_exception"
ANOMALIES: Final = f"/api/decision/policies/{POLICY}/anomalies"
ALERTS: Final = "/api/policy-alerts"
EVERYTHING: Final[dict[str, Any]] = {"threshold": 0, "max_items": 200}


class TestParameters:
    def test_it_is_asked_for_in_the_callers_scope_and_answered_as_it_is_made(
        self, client: FlaskClient, key: str, scope: Scope
    ) -> None:
        reports = AskedReports(anomalous=ANOMALOUS)
        give_reports(client.application, reports)
        assert get(client, key, ANOMALIES).get_json() == anomaly_example()
        narrowed: dict[str, Any] = {
            "policy_version": "2026 é/1",
            "limit": 7,
            "min_sample": 3,
            "threshold": 0.7,
            "max_items": 1,
        }
        assert get(client, key, ANOMALIES, **narrowed).get_json().items() >= narrowed.items()
        plain: dict[str, Any] = {
            "policy_version": None,
            "limit": None,
            "min_sample": 20,
            "threshold": 0.35,
            "max_items": 20,
        }
        assert reports.questions == [
            (scope.scope_id, AnomaliesQuestion(POLICY, **chosen)) for chosen in (plain, narrowed)
        ]

    def test_a_threshold_is_a_number_from_zero_to_one(self, client: FlaskClient, key: str) -> None:
        give_reports(client.application, FixedReports())
        for text in ("0", "1", "0.35", "1.0", "1.000000", "0.0", "0.000001", "0.999999", "0.5", "0.10"):
            assert get(client, key, ANOMALIES, threshold=text).get_json()["threshold"] == float(text)

    @pytest.mark.parametrize(
        ("name", "values"),
        [
            ("limit", ["0", "1000001", "-1", "x", "", "1.0", "٣", "1e3"]),
            ("min_sample", ["0", "10001", "-1", "x", "", "2.5"]),
            ("max_items", ["0", "201", "-1", "x", "", "2.5", "1e2"]),
            (
                "threshold",
                [".5", "1.1", "1e-1", "nan", "inf", "-0", "-0.5", "+0.5", "", "x", "2", "0.3500001", "1.000001"],
            ),
            (
                "threshold",
                ["1.0000001", "01", "0,5", "0.", "1.", "0.5 ", " 0.5", "0x1", "٣", "00.5", "0.5\n", "true", "0_0"],
            ),
            ("policy_version", [""]),
            ("verdict", ["", "maybe", "Yes", "yes,no", "yes "]),
            ("open_days", ["5"]),
        ],
    )
    def test_a_parameter_out_of_bounds_is_refused(
        self, client: FlaskClient, key: str, name: str, values: list[str]
    ) -> None:
        reports = AskedReports()
        give_reports(client.application, reports)
        for value in values:
            response = get(client, key, ANOMALIES, **{name: value})
            assert (response.status_code, response.get_json()["error"]) == (400, "SVC_API_QUERY_INVALID"), value
            assert [fault["field"] for fault in response.get_json()["errors"]] == [name]
        assert reports.questions == []

    def test_bounds_are_within(self, client: FlaskClient, key: str) -> None:
        give_reports(client.application, FixedReports())
        for name, ends in {"limit": (1, 1_000_000), "min_sample": (1, 10_000), "max_items": (1, 200)}.items():
            for value in ends:
                assert get(client, key, ANOMALIES, **{name: value}).get_json()[name] == value

    def test_a_parameter_sent_twice_is_refused(self, client: FlaskClient, key: str) -> None:
        give_reports(client.application, FixedReports())
        for name in ("limit", "min_sample", "threshold", "max_items", "policy_version"):
            response = client.get(f"{ANOMALIES}?{name}=1&{name}=1", headers={"x-api-key": key})
            assert (response.status_code, response.get_json()["errors"][0]["code"]) == (400, "duplicate")

    def test_alerts_are_open_from_one_day_to_four_hundred(self, client: FlaskClient, key: str) -> None:
        reports = AskedReports()
        give_reports(client.application, reports)
        for value in ("0", "401", "-1", "", "x", "1.0", "٣", "1e2"):
            response = get(client, key, ALERTS, open_days=value)
            assert (response.status_code, response.get_json()["error"]) == (400, "SVC_API_QUERY_INVALID"), value
            assert [fault["field"] for fault in response.get_json()["errors"]] == ["open_days"]
        assert reports.questions == []
        for days in (1, 90, 400):
            assert get(client, key, ALERTS, open_days=days).get_json()["open_days"] == days

    def test_alerts_are_open_for_ninety_days_where_nothing_is_said(
        self, client: FlaskClient, key: str, scope: Scope
    ) -> None:
        reports = AskedReports()
        give_reports(client.application, reports)
        assert get(client, key, ALERTS).get_json()["open_days"] == 90
        assert reports.questions == [(scope.scope_id, AlertsQuestion(open_days=90))]


class TestCallers:
    @pytest.mark.parametrize(
        ("path", "code"), [(ANOMALIES, "SVC_POLICY_ANOMALIES_UNAUTHORIZED"), (ALERTS, "SVC_API_UNAUTHORIZED")]
    )
    def test_a_key_with_read_is_needed_before_anything_is_counted_or_said_of_the_query(
        self, client: FlaskClient, key: str, scope: Scope, instance: Instance, path: str, code: str
    ) -> None:
        reports = AskedReports()
        give_reports(client.application, reports)
        reporter, _ = instance.ledger.directory.create_key(scope, FULL_ACCESS - {"read"}, None, utc_now())
        for sent, status in (("", 401), (key + "x", 401), (reporter, 403)):
            response = get(client, sent, path, limit=0, open_days=0)
            assert (response.status_code, response.get_json()["error"]) == (status, code)
            assert not [name for name, _ in response.headers if name.lower().startswith("x-policy")]
        assert reports.questions == []
        reader, _ = instance.ledger.directory.create_key(scope, {"read"}, None, utc_now())
        assert get(client, reader, path).status_code == 200

    def test_it_carries_its_own_hash_and_its_headers_say_the_same(self, client: FlaskClient, key: str) -> None:
        for anomalous in (ANOMALOUS, FixedReports().anomalous):
            give_reports(client.application, FixedReports(anomalous=anomalous))
            response = get(client, key, ANOMALIES)
            body = response.get_json()
            jsonschema.Draft202012Validator(resources.schema("anomaly-report")).validate(body)
            told = {name.lower(): value for name, value in response.headers if name.lower().startswith("x-policy")}
            assert told == {
                "x-policy-anomalies-count": str(body["anomaly_count"]),
                "x-policy-anomalies-recommendation": body["recommendation"],
                "x-policy-anomalies-hash": body["anomaly_hash"],
            }
            assert body.pop("anomaly_hash") == content_hash(body)

    @pytest.mark.parametrize("path", [ANOMALIES, ALERTS])
    def test_while_it_cannot_be_counted_it_says_when_to_come_again_and_deciding_goes_on(
        self, client: FlaskClient, key: str, path: str
    ) -> None:
        for reports, again in ((LateReports(), "5"), (NO_REPORTS, None)):
            give_reports(client.application, reports)
            response = get(client, key, path)
            assert (response.status_code, response.get_json()["error"]) == (503, "SVC_REPORT_UNAVAILABLE")
            assert response.headers.get("retry-after") == again
            sent = client.post("/api/decide", json=sample_request(), headers={"x-api-key": key})
            assert sent.status_code == 200


class Told(Caller):
    """A caller who remembers what it asked as well."""

    def __init__(self, client: FlaskClient, key: str) -> None:
        super().__init__(client, key)
        self.requests: dict[str, dict[str, Any]] = {}

    def _sent(self, path: str, body: Any) -> dict[str, Any]:
        answer = super()._sent(path, body)
        if path == "/api/decide":
            self.requests[answer["decision_id"]] = body
        return answer

    def blocked(self) -> str:
        """Is told no; the decision's id."""
        return self.decide(discount_percent=10, margin_percent=3)

    def assert_anomalies_are_fresh(self, **query: Any) -> dict[str, Any]:
        """Requires that the report has everything that was answered so far."""
        expected = independent.anomalies(self.entries, self.requests, POLICY, **query)
        found = self.get(ANOMALIES, **query)
        assert found == expected
        return found


@pytest.fixture
def told(client: FlaskClient, key: str) -> Told:
    return Told(client, key)


@pytest.fixture
def broken(told: Told) -> str:
    """A decision that was executed though it was blocked, among others that were not."""
    for _ in range(3):
        told.executed(told.decide())
    decision_id = told.blocked()
    told.executed(decision_id)
    return decision_id


Change = Callable[[], None]


class TestFresh:
    @pytest.mark.heavy
    def test_what_was_reported_a_moment_ago_is_in_the_next_report(self, told: Told, changes: Sequence[Change]) -> None:
        decided: list[str] = []
        for number, change in enumerate(changes):
            change()
            decided += [told.decide(version=str(number % 2)), told.blocked()]
            told.executed(decided[number])
            told.tell(decided[number // 2], ("succeeded", "failed")[number % 2], observed_metrics={"days": number**3})
            told.assert_anomalies_are_fresh(**EVERYTHING, min_sample=1)
            told.assert_anomalies_are_fresh(policy_version="1", limit=2)
        found = told.assert_anomalies_are_fresh()
        assert found["anomalies"][0]["subject"] == "executed_without_yes"

    def test_an_erased_decision_counts_as_before_but_for_its_facts(
        self, told: Told, broken: str, instance: Instance, changes: Sequence[Change]
    ) -> None:
        told.entries.append({**erase(instance.ledger, broken, "They asked for it.", utc_now()).erasure})
        for change in changes[:4]:
            change()
            found = told.assert_anomalies_are_fresh(**EVERYTHING, min_sample=1)
            assert found["anomalies"][0]["decision_ids"] == [broken]

    def test_another_scope_sees_nothing_of_it(
        self, client: FlaskClient, told: Told, broken: str, instance: Instance
    ) -> None:
        assert told.get(ALERTS)["alert_count"] == 1
        stranger = Told(client, other_key(instance))
        assert stranger.get(ALERTS)["coverage"] == {
            **{"policies": 0, "more_policies": 0, "as_of": None, "chain_position": 0, "merkle_root": None}
        }
        stranger.decide()
        found = stranger.assert_anomalies_are_fresh(**EVERYTHING)
        assert (found["anomaly_count"], found["coverage"]["decisions"]) == (0, 1)
        assert stranger.get(ALERTS)["alerts"] == []

    def test_every_path_to_look_at_next_is_answered(self, client: FlaskClient, key: str, told: Told) -> None:
        chain = [told.blocked() for _ in range(3)]
        for decision_id in chain:
            told.executed(decision_id)
        report = told.get(ANOMALIES, **EVERYTHING)
        alerts = told.get(ALERTS)
        hrefs = [step["href"] for of in report["anomalies"] for step in of["look_at_next"] if step["href"]]
        hrefs += [alert["report"] for alert in alerts["alerts"]]
        assert hrefs
        for href in hrefs:
            assert client.get(href, headers={"x-api-key": key}).status_code == 200


class TestAlerts:
    def test_an_alert_is_an_anomaly_of_high_severity_as_its_report_lists_it(self, told: Told, broken: str) -> None:
        answer = told.get(ALERTS)
        jsonschema.Draft202012Validator(resources.schema("policy-alerts")).validate(answer)
        (alert,) = answer["alerts"]
        assert alert["policy_id"] == POLICY
        assert alert["report"] == f"{ANOMALIES}?threshold=0.8"
        assert alert["anomaly"] == told.get(ANOMALIES, threshold="0.8")["anomalies"][0]
        assert alert["anomaly"]["decision_ids"] == [broken]
        report = told.get(ANOMALIES)
        assert answer["coverage"]["as_of"] == report["coverage"]["as_of"]
        assert answer["coverage"]["merkle_root"] == report["coverage"]["merkle_root"]
        assert answer.pop("alerts_hash") == content_hash(answer)

    def test_a_change_of_a_policy_table_is_told_in_both_forms(
        self, client: FlaskClient, told: Told, key: str, instance: Instance, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(in_force, "LOOK_SECONDS", 0.0)
        assert client.get("/rules/policy-tables/refund.json").status_code == 200
        file = instance.settings.policy_tables_directory / "refund.json"
        file.parent.mkdir(exist_ok=True)
        file.write_bytes((CASES / "policy_tables" / "refund.json").read_bytes())
        assert client.get("/rules/policy-tables/refund.json").status_code == 200
        answer = told.get(ALERTS)
        jsonschema.Draft202012Validator(resources.schema("policy-alerts")).validate(answer)
        change = answer["policy_changes"][0]
        assert (change["service"], change["origin"]) == ("refund", "operator")
        assert {"vendor": "north-books", "region": "*", "plan": "*"} in change["added"]
        assert answer.pop("alerts_hash") == content_hash(answer)
        feed = client.get(f"{ALERTS}.atom", headers={"x-api-key": key})
        assert feed.content_type == "application/atom+xml; charset=utf-8"
        assert "added north-books" in feed.get_data(as_text=True)
        assert client.get(f"{ALERTS}.atom").status_code == 401

    def test_an_alert_is_open_until_so_many_days_after_what_broke_was_reported(
        self, client: FlaskClient, key: str, instance: Instance, authority: Authority
    ) -> None:
        chain = Chain(instance, authority)
        blocked = chain.decide(discount_percent=10, margin_percent=3)
        chain.now += timedelta(days=200)
        chain.execution(blocked)
        reported = chain.now
        for late, numbers in ((timedelta(0), [0, 1, 1]), (timedelta(milliseconds=1), [0, 0, 1])):
            # The chain steps by an hour before each entry.
            chain.now = reported + timedelta(days=30, hours=-1) + late
            chain.crm_sync(blocked)
            found = [get(client, key, ALERTS, open_days=days).get_json()["alert_count"] for days in (29, 30, 31)]
            assert found == numbers

    def test_alerts_of_all_policies_stand_by_their_strength(self, told: Told, broken: str) -> None:
        request = sample_request()
        request["rulebook"]["rulebook_id"] = "refunds"
        decision_id = told._sent("/api/decide", request)["decision_id"]
        for _ in range(2):
            told.executed(decision_id)
        alerts = told.get(ALERTS)["alerts"]
        assert [(of["policy_id"], of["anomaly"]["anomaly_score"]) for of in alerts] == [(POLICY, 1), ("refunds", 0.9)]


def paths(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Where every value of some JSON stands."""
    if path:
        yield path
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in members:
        yield from paths(item, (*path, name))


def changed(value: Any) -> Any:
    """Another value, of the same type where that is easy."""
    if isinstance(value, bool) or value is None:
        return 1
    if isinstance(value, int | float):
        return value + 1
    return f"{value}x" if isinstance(value, str) else [] if value else [1]


class TestPackets:
    def test_a_packet_carries_what_the_service_answers_for_all_versions_and_verifies(
        self, told: Told, broken: str, instance: Instance, changes: Sequence[Change]
    ) -> None:
        for change in changes[:4]:
            change()
            told.executed(told.decide(version="2"))
            packet = told.get(f"/api/decision/{broken}/packet")
            anomalies = packet["policy_intelligence"]["anomalies"]
            assert anomalies == told.get(ANOMALIES)
            assert (anomalies["policy_version"], anomalies["anomalies"][0]["decision_ids"]) == (None, [broken])
            assert verify_packet(packet, instance.trust()).verified

    def test_a_packet_of_which_any_part_of_it_was_changed_does_not_verify(
        self, told: Told, broken: str, instance: Instance
    ) -> None:
        packet = told.get(f"/api/decision/{broken}/packet")
        report = packet["policy_intelligence"]["anomalies"]
        places = list(paths(report))
        assert len(places) > 60
        for path in places:
            holder = report
            for name in path[:-1]:
                holder = holder[name]
            kept = holder[path[-1]]
            holder[path[-1]] = changed(kept)
            # Its own hash is wrong, though whoever changed it made the packet's anew.
            forged = {**packet, "packet_hash": packet_hash(packet)}
            assert not verify_packet(forged, instance.trust()).verified, path
            holder[path[-1]] = kept
        assert verify_packet(packet, instance.trust()).verified

    def test_a_report_about_another_policy_does_not_verify_in_a_packet(
        self, told: Told, broken: str, instance: Instance
    ) -> None:
        packet = told.get(f"/api/decision/{broken}/packet")
        for other, holds in ((POLICY, True), ("refunds", False)):
            report = told.get(f"/api/decision/policies/{other}/anomalies")
            forged = {**packet, "policy_intelligence": {**packet["policy_intelligence"], "anomalies": report}}
            forged["packet_hash"] = packet_hash(forged)
            assert verify_packet(forged, instance.trust()).verified is holds
