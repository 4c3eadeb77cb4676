"""The anomaly report in a notebook: what was planted is found with the decisions that show it, at the edges of what can
be counted as well; and every kind can be shown, whatever names are in it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import polars as pl
import pytest

from gate.errors import OperatorError
from gate.ids import timestamp
from gate.instance.instance import Instance, create_instance, open_instance
from gate.instance.settings import load_settings
from gate.ledger.access.authority import FULL_ACCESS, Authority
from gate.policy.anomalies.breaks import RULES
from gate.policy.questions import AnomaliesQuestion
from gate.records.reports.receipts import EXECUTIONS, OUTCOMES
from tests.independent import anomalies as independent
from tests.support.samples import sample_request
from tests.workbench.engines.edges import HOSTILE, TAGS, Seen, refused
from tests.workbench.made_up import DAY, HOUR, MONDAY, POLICY, WEEK, MadeUp, rulebook_of
from workbench.charts.svg import titles
from workbench.engines.anomalies.alerts import policy_alerts
from workbench.engines.anomalies.report import AnomalyReport, anomalies, answer
from workbench.lake.entries import Personal
from workbench.lake.export import Exporter
from workbench.lake.fresh import fresh
from workbench.lake.reader import Lake, Snapshot

SINCE: Final = datetime(2025, 1, 1, tzinfo=UTC)
START: Final = datetime(2026, 1, 5, tzinfo=UTC)
WEEKS: Final = 10
A_WEEK: Final = 14
MINUTE: Final = timedelta(minutes=1)
MILLISECOND: Final = timedelta(milliseconds=1)
GRANT: Final = timedelta(days=1)
"""How long a grant opens an action where nothing else is set."""
PROPOSED: Final = "approve_discount"
"""The action that every request proposes."""
LISTED: Final = 10
"""How many anomalies a report shows at the prompt."""


class Planted:
    """A scope in which everything is as it should be, but for what is planted in it.

    Attributes:
        ids: The decisions with each thing that was planted.
        snapshot: The scope, half of it in the lake.
        reports: The reports about it by policy, each made once.
    """

    def __init__(self, instance: Instance, lake: Path) -> None:
        self.now = SINCE
        self.ids: dict[str, list[str]] = {}
        self.reports: dict[str, AnomalyReport] = {}
        scope = instance.ledger.directory.create_scope("planted", "unlimited", SINCE)
        key, _ = instance.ledger.directory.create_key(scope, FULL_ACCESS, None, SINCE)
        self._authority: Authority = instance.ledger.directory.authenticate(key, SINCE)
        self._gate = instance.gate(lambda: self.now)
        self._lifecycle = instance.lifecycle(lambda: self.now)
        self._resolutions = instance.resolutions(lambda: self.now)
        key, _ = instance.ledger.directory.create_key(scope, frozenset({"resolve"}), None, SINCE)
        self._owner = instance.ledger.directory.authenticate(key, SINCE)
        self._breaks()
        followed = instance.ledger.tail.scope(scope.scope_id)
        assert followed is not None
        for _ in Exporter(instance.ledger, lake, batch=50).export(followed):
            pass
        self._shifts()
        self._volume()
        self.snapshot = fresh(instance.ledger, lake, scope.scope_id, Personal())

    def decide(self, policy_id: str, at: datetime, version: str = "1", **facts: Any) -> str:
        self.now = at
        request = sample_request(**{"discount_percent": 10, "margin_percent": 22, **facts})
        request["rulebook"] |= {"rulebook_id": policy_id, "version": version}
        record = self._gate.decide(self._authority, request, request_id="req_1").record
        return str(record["decision_id"])

    def receipt(self, decision_id: str, after: timedelta, status: str = "executed", **more: Any) -> None:
        self.now += after
        self._lifecycle.report(self._authority, EXECUTIONS, decision_id, {"execution_status": status, **more})

    def resolve(self, decision_id: str, after: timedelta, answer: str = "granted") -> None:
        self.now += after
        body = {"resolution": answer, "resolved_by": "risk desk"}
        self._resolutions.resolve(self._owner, decision_id, body)

    def outcome(self, decision_id: str, after: timedelta, status: str = "succeeded", **more: Any) -> None:
        self.now += after
        self._lifecycle.report(self._authority, OUTCOMES, decision_id, {"outcome_status": status, **more})

    def _plant(self, name: str, decision_id: str) -> None:
        self.ids.setdefault(name, []).append(decision_id)

    def _breaks(self) -> None:
        """Two of each kind of break among decisions that have none."""
        for number in range(20):
            at = START + number * 7 * HOUR
            no = self.decide("broken", at, margin_percent=3)
            self.receipt(no, HOUR, "blocked")
            yes = self.decide("broken", at + 2 * HOUR)
            self.receipt(yes, HOUR, state_before_hash="a" * 64, state_after_hash="b" * 64)
            self.outcome(yes, HOUR, "pending")
            self.outcome(yes, HOUR)
            if number % 10:
                continue
            queued = self.decide("broken", at, discount_percent=40)
            self.receipt(queued, HOUR, "queued", action_taken=PROPOSED)
            self._plant("executed_without_yes", queued)
            for name, told in (("executed_though_refused", "refused"), ("executed_though_expired", "expired")):
                held = self.decide("broken", at, discount_percent=40)
                self.resolve(held, HOUR, told)
                self.receipt(held, HOUR, action_taken=PROPOSED)
                self._plant(name, held)
                self.outcome(held, HOUR)
            early = self.decide("broken", at, discount_percent=40)
            self.receipt(early, HOUR, action_taken=PROPOSED)
            self.resolve(early, HOUR)
            self._plant("executed_before_grant", early)
            self.outcome(early, HOUR)
            self._behind_grants(at)
            twice = self.decide("broken", at)
            for status in ("executed", "reverted", "executed", "executed"):
                self.receipt(twice, HOUR, status)
            self.outcome(twice, HOUR, "partial")
            self._plant("duplicate_execution", twice)
            elsewhere = self.decide("broken", at)
            self.receipt(elsewhere, HOUR, target_object_id="deal-9")
            self.outcome(elsewhere, HOUR)
            self._plant("binding_mismatch", elsewhere)
            otherwise = self.decide("broken", at)
            self.receipt(otherwise, HOUR, "queued", action_taken="wire_money", target_object_id="deal-1042")
            self.outcome(otherwise, HOUR)
            self._plant("action_mismatch", otherwise)
            neither = self.decide("broken", at, discount_percent=40)
            self.receipt(neither, HOUR, action_taken="wire_money")
            self.outcome(neither, HOUR)
            self._plant("action_mismatch", neither)
            self._plant("executed_without_yes", neither)
            unchanged = self.decide("broken", at)
            self.receipt(unchanged, HOUR, state_before_hash="a" * 64, state_after_hash="a" * 64)
            self.outcome(unchanged, HOUR)
            self._plant("state_mismatch", unchanged)
            self._plant("approved_without_receipt", self.decide("broken", at))
            overdue = self.decide("broken", at)
            self.receipt(overdue, HOUR)
            self.outcome(overdue, HOUR, "pending")
            self._plant("outcome_overdue", overdue)
            back = self.decide("broken", at)
            self.receipt(back, HOUR)
            self.outcome(back, HOUR)
            self.outcome(back, 40 * DAY, "failed")
            self._plant("outcome_reversed", back)

    def _behind_grants(self, at: datetime) -> None:
        """Granted decisions: some that were carried out after the end of the grant, and some that were not, however
        late they were reported.
        """
        soon, slack = GRANT - HOUR, GRANT + 5 * MINUTE
        for reported, executed, is_late in (
            (HOUR, None, False),
            (slack, None, False),
            (slack + MILLISECOND, None, True),
            (5 * GRANT, soon, False),
            (5 * GRANT, slack, False),
            (5 * GRANT, slack + MILLISECOND, True),
            # A date that had not come when it was reported says nothing.
            (HOUR, 400 * DAY, False),
        ):
            granted = self.decide("broken", at, discount_percent=40)
            self.resolve(granted, HOUR)
            said = {} if executed is None else {"executed_at": timestamp(self.now + executed)}
            self.receipt(granted, reported, action_taken=PROPOSED, **said)
            self.outcome(granted, HOUR)
            if is_late:
                self._plant("executed_after_grant_ended", granted)
        for first, is_late in ((soon, False), (slack + MILLISECOND, True)):
            granted = self.decide("broken", at, discount_percent=40)
            self.resolve(granted, HOUR)
            self.receipt(granted, first, "queued")
            self.receipt(granted, GRANT)
            self.outcome(granted, HOUR)
            if is_late:
                self._plant("executed_after_grant_ended", granted)
        again = self.decide("broken", at, discount_percent=40)
        self.resolve(again, HOUR)
        for status, after in (("executed", HOUR), ("reverted", HOUR), ("executed", GRANT)):
            self.receipt(again, after, status)
        self.outcome(again, HOUR)
        self._plant("executed_after_grant_ended", again)
        both = self.decide("broken", at, discount_percent=40)
        self.receipt(both, HOUR, "queued")
        self.resolve(both, HOUR)
        self.receipt(both, 2 * GRANT)
        self.outcome(both, HOUR)
        self._plant("executed_before_grant", both)

    def _shifts(self) -> None:
        """Verdicts, outcomes, facts and a metric that are others in the last week but one than before."""
        for week in range(WEEKS):
            for number in range(A_WEEK):
                at = START + week * WEEK + number * 11 * HOUR
                last = week == WEEKS - 2
                margin = 3 if last and number % 2 else 30
                discount = 5 if number < (13 if last else 4) else 9
                decision_id = self.decide("shifted", at, margin_percent=margin, discount_percent=discount)
                if margin == 3:
                    self._plant("verdict_shift", decision_id)
                if last:
                    self._plant("fact_drift", decision_id)
                failed = last and number % 4 != 1
                days = 90_000 if (week, number) == (4, 5) else 1 + (number * 5 + week) % 13
                self.outcome(
                    decision_id,
                    DAY,
                    "failed" if failed else "succeeded",
                    action_executed=True,
                    observed_metrics={"days": days},
                )
                if failed:
                    self._plant("outcome_shift", decision_id)
                if days == 90_000:
                    self._plant("metric_outlier", decision_id)

    def _volume(self) -> None:
        """A week with six times as many decisions."""
        for week in range(WEEKS):
            for number in range(60 if week == 7 else 6):
                decision_id = self.decide("busy", START + week * WEEK + number * 2 * HOUR, margin_percent=3)
                if week == 7:
                    self._plant("volume", decision_id)
        self.decide("quiet", START + WEEKS * WEEK)


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Planted]:
    home = tmp_path_factory.mktemp("planted") / "home"
    create_instance(home, base_url="http://gate.example", now=SINCE)
    opened = open_instance(load_settings(home))
    yield Planted(opened, tmp_path_factory.mktemp("lake"))
    opened.close()


def asked(planted: Planted, policy_id: str) -> AnomalyReport:
    if policy_id not in planted.reports:
        planted.reports[policy_id] = anomalies(planted.snapshot, policy_id, min_sample=10, max_items=200)
    return planted.reports[policy_id]


def place(report: AnomalyReport, kind: str, subject: str | None = None) -> int:
    """Where the only anomaly of a kind stands."""
    (found,) = (
        at for at, of in enumerate(report.body["anomalies"]) if of["kind"] == kind and subject in (None, of["subject"])
    )
    return found


def shown(report: AnomalyReport, at: int) -> list[str]:
    """The ids of the decisions that show an anomaly, the latest first."""
    cases = report.decisions(at).collect().sort("position", descending=True)
    ids: list[str] = cases["decision_id"].to_list()
    return ids


PLACES: Final = {
    **{kind: ("broken", "lifecycle_break", kind) for kind in RULES},
    "verdict_shift": ("shifted", "verdict_shift", None),
    "outcome_shift": ("shifted", "outcome_shift", None),
    "fact_drift": ("shifted", "fact_drift", None),
    "metric_outlier": ("shifted", "metric_outlier", "days"),
    "volume": ("busy", "volume", "week"),
}


def test_the_numbers_beside_an_anomaly_are_those_of_its_chart(planted: Planted) -> None:
    report = asked(planted, "busy")
    beside = report.beside(place(report, "volume"))
    assert beside["unit"].unique().to_list() == ["week"]
    assert beside["decisions"].to_list() == [6] * 7 + [60] + [6] * 2
    report = asked(planted, "shifted")
    rates = report.beside(place(report, "outcome_shift")).filter(pl.col("value") == "failed")
    assert rates["week"].n_unique() == rates.height == WEEKS
    assert rates["rate"].to_list()[-2] == max(rates["rate"])
    assert report.beside(place(report, "fact_drift")).is_empty()
    broken = asked(planted, "broken")
    assert broken.beside(place(broken, "lifecycle_break", "outcome_overdue"))["decisions"].sum() == 2


def test_only_some_anomalies_are_plotted(planted: Planted) -> None:
    report = asked(planted, "broken")
    names = {row["summary"] for row in _plotted(report.plot(only=[2, 0]))}
    assert names == {report.body["anomalies"][at]["summary"] for at in (0, 2)}
    assert titles(report.plot(only=[2, 0])).finding.startswith("2 anomalies in broken: ")
    assert refused(lambda: report.plot(only=[99])).startswith("The report has no anomaly 99")


def _plotted(chart: Any) -> list[dict[str, Any]]:
    """The rows of a chart's data."""
    return [row for rows in chart.to_dict()["datasets"].values() for row in rows]


@pytest.mark.parametrize("name", PLACES)
def test_what_was_planted_is_found_with_the_decisions_that_show_it(planted: Planted, name: str) -> None:
    policy_id, kind, subject = PLACES[name]
    report = asked(planted, policy_id)
    at = place(report, kind, subject)
    expected = set(planted.ids[name])
    anomaly = report.body["anomalies"][at]
    # Of a shift all that were compared are counted, and those whose rate rose are named.
    latest = [of for of in shown(report, at) if of in expected]
    assert {*latest} == expected
    assert {*shown(report, at)} == expected or kind in ("verdict_shift", "outcome_shift")
    # Ids sort by when they were made, and the chain has them in another order.
    assert anomaly["decision_ids"] == latest[:10]


@pytest.mark.parametrize("name", PLACES)
def test_as_many_decisions_are_given_as_an_anomaly_counts(planted: Planted, name: str) -> None:
    policy_id, kind, subject = PLACES[name]
    report = asked(planted, policy_id)
    at = place(report, kind, subject)
    cases = report.decisions(at).collect()
    assert cases["decision_id"].n_unique() == cases.height == report.body["anomalies"][at]["decisions"]


def test_nothing_else_is_found(planted: Planted) -> None:
    assert {of["subject"] for of in asked(planted, "broken").body["anomalies"]} == {*RULES}
    kinds = sorted(of["kind"] for of in asked(planted, "shifted").body["anomalies"] if of["kind"] != "lifecycle_break")
    assert kinds == ["fact_drift", "metric_outlier", "outcome_shift", "verdict_shift"]
    assert [of["kind"] for of in asked(planted, "busy").body["anomalies"]] == ["volume"]
    assert asked(planted, "quiet").body["recommendation"] == "insufficient_data"


def test_the_shift_is_where_it_was_planted(planted: Planted) -> None:
    report = asked(planted, "shifted")
    for kind in ("verdict_shift", "outcome_shift", "fact_drift"):
        window = report.body["anomalies"][place(report, kind)]["window"]
        assert window == {"from": "2026-03-02T00:00:00.000Z", "to": "2026-03-09T00:00:00.000Z"}


def test_alerts_are_what_is_high_in_the_reports_of_all_policies(planted: Planted) -> None:
    alerts = policy_alerts(planted.snapshot, open_days=400)
    named = {(of["policy_id"], of["anomaly"]["anomaly_id"]) for of in alerts["alerts"]}
    expected = {
        (policy_id, of["anomaly_id"])
        for policy_id in ("broken", "shifted", "busy", "quiet")
        for of in anomalies(planted.snapshot, policy_id).body["anomalies"]
        if of["severity"] == "high"
    }
    assert named == expected
    assert alerts["coverage"]["policies"] == 4
    assert {of["anomaly"]["severity"] for of in alerts["alerts"]} == {"high"}
    as_of = datetime.fromisoformat(alerts["coverage"]["as_of"])
    numbers = set()
    for open_days in (1, 14, 90):
        still = policy_alerts(planted.snapshot, open_days=open_days)["alerts"]
        numbers.add(len(still))
        assert still == [
            of
            for of in alerts["alerts"]
            if as_of - datetime.fromisoformat(of["anomaly"]["window"]["to"]) <= open_days * DAY
        ]
    assert len(numbers) == 3


@pytest.mark.heavy
@pytest.mark.parametrize("name", PLACES)
def test_every_kind_can_be_plotted_and_shown(planted: Planted, name: str) -> None:
    policy_id, kind, subject = PLACES[name]
    report = asked(planted, policy_id)
    at = place(report, kind, subject)
    chart = report.plot(at).to_dict()
    assert chart["layer"]
    assert any(chart["datasets"].values())
    anomaly = report.body["anomalies"][at]
    severity = f"{anomaly['severity'].capitalize()} severity, score {anomaly['anomaly_score']:.2f}. "
    assert chart["title"]["subtitle"][0].startswith(severity)
    # The numbers of the summary are those of the title.
    assert re.findall(r"[\d,]+", " ".join(chart["title"]["text"]))
    assert anomaly["summary"] in repr(report) or at >= LISTED
    assert kind.replace("_", " ").capitalize() in report._repr_html_()
    assert len(report.plot().to_dict()["layer"]) == 2


class TestArguments:
    @pytest.mark.parametrize(
        ("name", "wrong", "told"),
        [
            *(("limit", wrong, "1,000,000") for wrong in (0, -1, 1_000_001, 1.0, "5", True)),
            *(("min_sample", wrong, "10,000") for wrong in (0, 10_001, None, 2.5, False)),
            *(("threshold", wrong, "0 to 1") for wrong in (-0.01, 1.01, "0.5", None, True, float("nan"), float("inf"))),
            *(("max_items", wrong, "1 to 200") for wrong in (0, 201, None, 3.0, True)),
            *(("policy_version", wrong, "string") for wrong in (1, ["1"])),
        ],
    )
    def test_a_wrong_one_is_told_of_by_its_name(self, name: str, wrong: Any, told: str, tmp_path: Path) -> None:
        snapshot = MadeUp().snapshot(tmp_path)
        sentence = refused(lambda: anomalies(snapshot, POLICY, **{name: wrong}))
        assert sentence.startswith(name)
        assert told in sentence

    def test_what_is_no_scope_and_no_policy_is_refused(self, tmp_path: Path) -> None:
        snapshot = MadeUp().snapshot(tmp_path)
        assert "This lake has acme" in refused(lambda: anomalies(Lake(tmp_path, [snapshot.manifest]), POLICY))  # type: ignore[arg-type]
        assert "policy_id" in refused(lambda: anomalies(snapshot, None))  # type: ignore[arg-type]
        assert "snapshot" in refused(lambda: policy_alerts("acme"))  # type: ignore[arg-type]
        for wrong in (0, 401, 1.5, None, True):
            sentence = refused(lambda wrong=wrong: policy_alerts(snapshot, open_days=wrong))  # type: ignore[misc]
            assert "open_days" in sentence
            assert "1 to 400" in sentence

    def test_the_ends_of_what_is_taken_are_taken(self, tmp_path: Path) -> None:
        snapshot = MadeUp().snapshot(tmp_path)
        for chosen in (
            {"limit": 1, "min_sample": 1, "threshold": 0, "max_items": 1},
            {"limit": 1_000_000, "min_sample": 10_000, "threshold": 1, "max_items": 200},
        ):
            body = anomalies(snapshot, POLICY, **chosen).body  # type: ignore[arg-type]
            assert {name: body[name] for name in chosen} == chosen

    @pytest.mark.parametrize("wrong", [-1, len(RULES), 1.0, "0", True, None])
    def test_an_anomaly_that_is_not_listed_is_refused(self, planted: Planted, wrong: Any) -> None:
        report = asked(planted, "broken")
        sentence = refused(lambda: report.decisions(wrong))
        assert f"{wrong!r}: its anomalies are numbered from 0 to {len(RULES) - 1}" in sentence
        if wrong is not None:
            assert refused(lambda: report.plot(wrong)) == sentence

    def test_a_report_that_lists_none_says_so(self, tmp_path: Path) -> None:
        report = anomalies(MadeUp().snapshot(tmp_path), POLICY)
        assert refused(lambda: report.decisions(0)).endswith("it lists none.")


class TestNothing:
    @pytest.mark.parametrize("decisions", [0, 1, 30])
    def test_a_report_without_anomalies_can_be_shown(self, decisions: int, tmp_path: Path) -> None:
        chain = MadeUp()
        for number in range(decisions):
            chain.decide(MONDAY + number * HOUR / 2)
        report = anomalies(chain.snapshot(tmp_path), POLICY)
        assert report.body["anomaly_count"] == report.frame.height == 0
        chart = report.plot().to_dict()
        assert (
            " ".join(chart["title"]["text"])
            == {
                0: f"No decisions by {POLICY}",
                1: f"Too few decisions by {POLICY} to find anomalies: 1",
                30: f"No anomalies among 30 decisions by {POLICY}",
            }[decisions]
        )
        assert Seen(report._repr_html_()).tags >= {"div", "h3", "table"}
        word = "stable" if decisions == 30 else "insufficient_data"
        assert repr(report).splitlines()[1] == f"  none, in {decisions} decisions; {word}"

    def test_a_policy_that_is_not_in_the_chain_is_answered_with_where_the_chain_ends(self, planted: Planted) -> None:
        body = answer(planted.snapshot, AnomaliesQuestion("unheard.of", min_sample=10)).body
        assert body["coverage"]["decisions"] == body["coverage"]["weeks"] == 0
        assert body["coverage"]["as_of"] == asked(planted, "busy").body["coverage"]["as_of"]


NAMES: Final = [HOSTILE, "a\nb\x1b[31m\x00", "ä " * 60, "]]><svg onload=a()>"]


@pytest.mark.parametrize("name", NAMES)
def test_names_show_as_text_whatever_is_in_them(name: str, tmp_path: Path) -> None:
    chain = MadeUp()
    for week in range(10):
        for number in range(20):
            at = MONDAY + week * WEEK + number * HOUR
            reason = name if week == 9 and number % 2 else "OTHER"
            facts = {"fact": name if week == 9 else "a"}
            decision_id = chain.decide(
                at, reason=reason, version=name, policy_id=name, facts=facts, rulebook=rulebook_of("fact")
            )
            value = 1e6 if (week, number) == (5, 5) else 1 + number % 7
            chain.outcome(decision_id, at + DAY, "succeeded", observed_metrics={name: value})
            chain.receipt(decision_id, at + DAY, flags=["ACTION_BINDING_MISMATCH"])
    report = anomalies(chain.snapshot(tmp_path), name, policy_version=name, threshold=0, max_items=200)
    kinds = [of["kind"] for of in report.body["anomalies"]]
    assert {"lifecycle_break", "verdict_shift", "metric_outlier", "fact_drift"} <= {*kinds}
    seen = Seen(report._repr_html_())
    assert seen.tags <= TAGS
    text = repr(report)
    assert len(text.splitlines()) == 2 + len(kinds)
    assert all(character.isprintable() or character == "\n" for character in text)
    assert all(len(line) < 400 for line in text.splitlines())
    assert report.plot().to_dict()
    for place_of, _ in enumerate(kinds):
        assert report.plot(place_of).to_dict()["layer"]


# The edges of what can be counted: each chain equals its recount.


def hours(chain: MadeUp) -> None:
    """An hour with eight times as many, where decisions are enough for hours."""
    for hour in range(5 * 168 + 4):
        for number in range(40 if hour == 4 * 168 + 30 else 5):
            chain.decide(MONDAY + hour * HOUR + number * timedelta(seconds=50), verdict="no")


def days(chain: MadeUp) -> None:
    """A day with none where there are eight a day, and the chain ends within a day."""
    for day in range(80):
        for number in range(0 if day == 70 else 8):
            chain.decide(MONDAY + day * DAY + number * 2 * HOUR, verdict="no")


def years(chain: MadeUp) -> None:
    """More weeks than are looked at; the first of them begins within what is left out."""
    for week in range(112):
        for number in range(40 if week in (8, 9, 20) else 6):
            verdict = "no" if number < 2 + 3 * (week > 100) else "yes"
            decision_id = chain.decide(
                MONDAY + week * WEEK + number * 4 * HOUR, verdict=verdict, version=str(week // 40)
            )
            chain.outcome(decision_id, MONDAY + (week + 1) * WEEK, "failed" if week in (8, 50) else "succeeded")


def long_ago(chain: MadeUp) -> None:
    """Before 1970."""
    for week in range(14):
        for number in range(25):
            at = datetime(1969, 10, 6, tzinfo=UTC) + week * WEEK + number * 387 * HOUR / 60
            chain.decide(at, verdict="no" if (week > 10) == (number % 5 != 0) else "yes")


def one(chain: MadeUp) -> None:
    """One decision."""
    chain.decide(MONDAY)


def backwards(chain: MadeUp) -> None:
    """The last entry is older than all others, or than most."""
    for number in range(300):
        chain.decide(MONDAY + number * 7 * HOUR, verdict="no" if number > 200 else "yes")
    chain.decide(MONDAY - 9 * WEEK)


def last_is_in_it(chain: MadeUp) -> None:
    """The chain's last entry is a decision of the window."""
    for number in range(400):
        chain.decide(MONDAY + number * 4 * HOUR, verdict="no" if number > 360 else "yes")


def due_to_the_moment(chain: MadeUp) -> None:
    """What is due a millisecond before the last entry, and with it."""
    moment = timedelta(milliseconds=1)
    end = MONDAY + 10 * WEEK
    for late in (-moment, timedelta(0), moment):
        chain.decide(end - DAY - late)
        executed = chain.decide(end - 40 * DAY - late)
        chain.receipt(executed, end - 30 * DAY - late)
        # An earlier receipt is the first, wherever it stands in the chain.
        again = chain.decide(end - 40 * DAY)
        chain.receipt(again, end - 20 * DAY)
        chain.receipt(again, end - 30 * DAY - late, "reverted")
        chain.receipt(again, end - 30 * DAY - late)
    chain.outcome(chain.decide(end - 50 * DAY), end)


def ages(chain: MadeUp) -> None:
    """Outcomes that came on the edges of the days that are compared, and windows that ended so many days ago."""
    for week in range(12):
        for number in range(24):
            at = MONDAY + week * WEEK + number * 6 * HOUR
            decision_id = chain.decide(at)
            late = (number % 8) * 8 * DAY - (number % 3) * timedelta(milliseconds=1)
            chain.outcome(decision_id, at + late, "failed" if number % 8 == (week > 8) else "succeeded")
    chain.outcome(decision_id, MONDAY + 12 * WEEK + 8 * DAY)


def many_names(chain: MadeUp) -> None:
    """Thousands of reason codes, versions, metrics and facts."""
    for number in range(1500):
        at = MONDAY + number * 2 * HOUR
        decision_id = chain.decide(
            at,
            reason=f"R{number}",
            version=f"v{number % 900}",
            facts={f"f{number % 300}": number % 7},
            rulebook=rulebook_of(f"f{number % 300}"),
        )
        measured = {f"m{(number + at) % 700}": float(number % 11) ** 9 for at in range(2)}
        chain.outcome(decision_id, at + DAY, observed_metrics=measured)


def extremes(chain: MadeUp) -> None:
    """Metrics at the ends of what a number can be."""
    chance = random.Random(3)  # noqa: S311 - for tests to be the same each time
    values: dict[str, list[float]] = {
        "apart": [1e308, -1e308, 1.7976931348623157e308],
        "tiny and huge": [5e-324, 1e-323, 1.5e-323, 1.7e308],
        "two": [5e-324, 1e308],
        "most are zero": [0, 0, 0, 1, 2],
        "around zero": [-5e-324, 0, 5e-324, 1e-323, 1e308],
        "next to each other": [0.3, 0.30000000000000004, 1e10, 10_000_000_000.000002],
        "neighbours": [1e10, 10_000_000_000.000002, 10_000_000_000.000004, 3.0],
        "nothing": [0.0, -0.0],
        "small": [1e-9, 2e-9, 3e-9, 1.0],
    }
    for number in range(250):
        at = MONDAY + number * 5 * HOUR
        measured = {name: chance.choice(of) for name, of in values.items()}
        measured["wide"] = 10.0 ** chance.randrange(-307, 308)
        chain.outcome(chain.decide(at), at, observed_metrics=measured)


def rare_facts(chain: MadeUp) -> None:
    """Numbers, of which deciles are those of whole numbers; texts that are fifty, and texts that are one more."""
    fields = ("number", "fifty", "more", "nothing", "same", "a.b", "long")
    for number in range(91):
        facts = {
            "number": number**3,
            "fifty": f"t{number % 50}",
            "more": f"t{number % 51}",
            "same": 7,
            "long": f'{"é" * (79 + number % 3)}"{number % 7}',
            "a": {"b": number % 2 == 0} if number % 3 else [number],
        }
        chain.decide(MONDAY + number * 20 * HOUR, facts=facts, rulebook=rulebook_of(*fields))


CHAINS: Final = (
    *(hours, days, years, long_ago, one, backwards, last_is_in_it),
    *(due_to_the_moment, ages, many_names, extremes, rare_facts),
)


@pytest.mark.heavy
@pytest.mark.parametrize("made", CHAINS, ids=lambda made: made.__name__)
def test_at_the_edges_of_what_can_be_counted_the_report_is_the_recount(
    made: Callable[[MadeUp], None], tmp_path: Path
) -> None:
    chain = MadeUp()
    made(chain)
    snapshot = chain.snapshot(tmp_path)
    every: dict[str, Any] = {"threshold": 0, "max_items": 200}
    several: list[dict[str, Any]] = [{"min_sample": 2}, {"limit": 77, "min_sample": 10}, {"policy_version": "1"}]
    for chosen in several:
        body = answer(snapshot, AnomaliesQuestion(POLICY, **every, **chosen)).body
        assert body == independent.anomalies(chain.entries, chain.requests, POLICY, **every, **chosen)


def report_of(made: Callable[[MadeUp], None], lake: Path) -> dict[str, Any]:
    chain = MadeUp()
    made(chain)
    return anomalies(chain.snapshot(lake), POLICY, threshold=0, max_items=200).body


def kinds_of(body: dict[str, Any]) -> list[tuple[str, str | None]]:
    return [(of["kind"], of["subject"]) for of in body["anomalies"]]


def test_the_grain_of_volume_is_the_finest_that_is_carried(tmp_path: Path) -> None:
    assert kinds_of(report_of(hours, tmp_path)) == [("volume", "hour")]
    assert kinds_of(report_of(days, tmp_path)) == [("volume", "day")]
    assert ("volume", "week") in kinds_of(report_of(years, tmp_path))


def test_what_is_due_is_overdue_a_millisecond_later(tmp_path: Path) -> None:
    chain = MadeUp()
    due_to_the_moment(chain)
    report = anomalies(chain.snapshot(tmp_path), POLICY, min_sample=1)
    overdue = report.body["anomalies"][place(report, "lifecycle_break", "outcome_overdue")]
    # One was executed once, and one a second time and reverted once.
    assert overdue["numbers"]["count"] == 2
    missing = report.body["anomalies"][place(report, "lifecycle_break", "approved_without_receipt")]
    first_late, *_ = (of["decision_id"] for of in chain.entries if of.get("created_at") == "2026-03-14T23:59:59.999Z")
    assert first_late in missing["decision_ids"]
    assert missing["numbers"]["count"] == 2


def test_a_decision_that_is_the_chains_last_entry_shows_what_it_is_in(tmp_path: Path) -> None:
    body = report_of(last_is_in_it, tmp_path)
    anomaly = next(of for of in body["anomalies"] if of["kind"] == "verdict_shift")
    assert anomaly["window"]["to"] == body["coverage"]["as_of"]
    assert anomaly["decision_ids"][0] == "dec_400"


def test_no_window_ends_before_it_begins_though_a_clock_ran_backwards(tmp_path: Path) -> None:
    body = report_of(backwards, tmp_path)
    shifts = [of for of in body["anomalies"] if of["kind"] == "verdict_shift"]
    assert shifts
    for of in shifts:
        assert body["coverage"]["as_of"] < of["window"]["from"] < of["window"]["to"] <= body["coverage"]["to"]
        assert of["decision_ids"]


def test_a_report_without_a_version_is_one_of_all(tmp_path: Path) -> None:
    chain = MadeUp()
    for number in range(300):
        chain.decide(MONDAY + number * 5 * HOUR, verdict="no" if number > 250 else "yes", version=None)  # type: ignore[arg-type]
    snapshot: Snapshot = chain.snapshot(tmp_path)
    assert ("verdict_shift", None) in kinds_of(anomalies(snapshot, POLICY).body)
    of_a_version = answer(snapshot, AnomaliesQuestion(POLICY, policy_version="1"))
    assert of_a_version.body["coverage"]["decisions"] == 0


# Signal before noise.


def found_in(chain: MadeUp, lake: Path, **chosen: Any) -> list[dict[str, Any]]:
    report = anomalies(chain.snapshot(lake), POLICY, max_items=200, **chosen)
    found: list[dict[str, Any]] = report.body["anomalies"]
    return found


def booked(chain: MadeUp, at: datetime, status: str, *, lost: float | None = None, reason: str = "ALLOWED") -> None:
    """A decision that was let through, and how it ended a day later."""
    decision_id = chain.decide(at, reason=reason)
    more = {} if lost is None else {"observed_metrics": {"lost": lost}}
    chain.receipt(decision_id, at)
    chain.outcome(decision_id, at + DAY, status, **more)


def ordered(chain: MadeUp, bookings: list[tuple[datetime, str]]) -> None:
    for at, status in sorted(bookings):
        booked(chain, at, status)


def test_a_group_booking_stands_below_failures_that_last(tmp_path: Path) -> None:
    chance = random.Random(3)  # noqa: S311 - for tests to be the same each time
    bookings = []
    for week in range(26):
        for number in range(90):
            at = MONDAY + week * WEEK + chance.randrange(6 * 24 * 60) * timedelta(minutes=1)
            # From 5 to 20 percent.
            failed = number % 20 == 0 if week < 16 else number % 5 == 0
            bookings.append((at, "failed" if failed else "succeeded"))
        # Sundays have one decision, and one of them 135 in a minute.
        sunday = MONDAY + week * WEEK + 6 * DAY + 9 * HOUR
        bookings += [(sunday, "succeeded")] * (135 if week == 12 else 1)
    chain = MadeUp()
    ordered(chain, bookings)
    found = found_in(chain, tmp_path, threshold=0)
    kinds = [(of["kind"], of["severity"]) for of in found]
    assert found[0]["kind"] == "outcome_shift"
    assert found[0]["window"]["from"] == timestamp(MONDAY + 16 * WEEK)
    assert found[0]["effect"]["lasting"]
    assert found[0]["effect"]["harm"]
    assert all(severity != "high" for kind, severity in kinds if kind != "outcome_shift"), kinds
    assert all(of["effect"]["cases"] < 135 for of in found[:1])


@pytest.mark.parametrize("seed", range(3))
def test_one_group_booking_is_no_shift_of_rates(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)  # noqa: S311 - for tests to be the same each time
    chain = MadeUp()
    for week in range(20):
        minutes = sorted(chance.sample(range(6 * 24 * 60), 80))
        for minute in minutes:
            at = MONDAY + week * WEEK + minute * timedelta(minutes=1)
            booked(chain, at, "failed" if chance.random() < 0.1 else "succeeded")
        if week == 14:
            # 90 rooms in one minute, all of one reason, and all called off.
            for _ in range(90):
                booked(chain, MONDAY + week * WEEK + 6 * DAY + 9 * HOUR, "reverted", reason="GROUP")
    found = found_in(chain, tmp_path, threshold=0)
    assert {of["kind"] for of in found} & {"outcome_shift", "verdict_shift", "metric_shift"} == set()
    assert all(of["severity"] != "high" for of in found)


@pytest.mark.parametrize("seed", range(3))
def test_thin_weeks_of_group_bookings_are_no_alarm(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)  # noqa: S311 - for tests to be the same each time
    bookings = []
    for week in range(30):
        left = chance.randrange(24, 51)
        while left > 0:
            size = min(left, chance.randrange(5, 11))
            at = MONDAY + week * WEEK + chance.randrange(7 * 24 * 60) * timedelta(minutes=1)
            bookings += [(at, "failed" if chance.random() < 0.3 else "succeeded")] * size
            left -= size
    chain = MadeUp()
    ordered(chain, bookings)
    report = anomalies(chain.snapshot(tmp_path), POLICY, max_items=200)
    assert report.body["severities"]["high"] == 0
    assert any("arrive in one minute count only as far as they differ" in note for note in report.body["notes"])


def test_what_costs_most_stands_first_where_a_metric_is_named(tmp_path: Path) -> None:
    chain = MadeUp()
    # More fail in one week; in a later one fewer do, and each costs a hundred times as much.
    for week in range(24):
        for number in range(80):
            at = MONDAY + week * WEEK + number * 2 * HOUR
            failed = number < {8: 64, 20: 60}.get(week, 4)
            booked(chain, at, "failed" if failed else "succeeded", lost=500.0 if week == 20 else 5.0)
    by_cases, by_money = (
        [of for of in found_in(chain, tmp_path / str(value), value=value) if of["kind"] == "outcome_shift"]
        for value in (None, "lost")
    )
    assert [of["window"]["from"] for of in by_cases] == [timestamp(MONDAY + week * WEEK) for week in (8, 20)]
    assert [of["window"]["from"] for of in by_money] == [timestamp(MONDAY + week * WEEK) for week in (20, 8)]
    assert [of["effect"]["value"] for of in by_cases] == [None, None]
    values = [of["effect"]["value"] / of["effect"]["cases"] for of in by_money]
    assert values[0] > 200 > 100 > values[1] > 4
    snapshot = chain.snapshot(tmp_path / "unheard")
    with pytest.raises(OperatorError) as caught:
        anomalies(snapshot, POLICY, value="lots")
    assert (caught.value.code, caught.value.message) == (
        "METRIC_UNKNOWN",
        "No outcome has the metric 'lots'. Did you mean 'lost'? There is 'lost'.",
    )
    # The service answers, and says why nothing has a value.
    body = answer(snapshot, AnomaliesQuestion(POLICY, value="lots")).body
    assert {of["effect"]["value"] for of in body["anomalies"]} == {None}
    assert body["notes"][-1].startswith("No outcome of these weeks has the metric lots ")
    assert not any(
        "measured" in note for note in answer(snapshot, AnomaliesQuestion(POLICY, value="lost")).body["notes"]
    )
