"""Versions among like cases through the whole engine: what a report must say of a planted ledger, what it must not, and
that all of it is the recount.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from gate.encoding.canonical import canonical
from gate.policy.questions import EffectivenessQuestion
from tests.independent import recount
from tests.support.torture import size
from tests.workbench.made_up import MONDAY, POLICY, MadeUp, rulebook_of
from workbench.engines import findings, slicing
from workbench.engines.confidence import confidence
from workbench.engines.effectiveness import EffectivenessReport, answer, effectiveness
from workbench.lake.entries import Personal

DAY: Final = timedelta(days=1)
MINUTE: Final = timedelta(minutes=1)

# A version, facts, how many let-through decisions, and how many of them succeeded.
Planted = Sequence[tuple[str, Mapping[str, Any], int, int]]
# B succeeds more often with either kind of booking, and met mostly those made long before.
SIMPSON: Final[Planted] = (
    ("A", {"lead_days": 3}, 840, 756),
    ("A", {"lead_days": 200}, 160, 92),
    ("B", {"lead_days": 3}, 400, 376),
    ("B", {"lead_days": 200}, 600, 426),
)


def rulebook_with(version: str, *tests: tuple[str, str, Any]) -> dict[str, Any]:
    """A rulebook with a rule for each test."""
    body = rulebook_of(*{field for field, _, _ in tests}, version=version)
    rules = [
        {
            "rule_id": f"r{at}",
            "priority": 10 + at,
            "condition": {"all": [{"field": field, "operator": operator, "value": value}]},
            "outcome": {"decision": "yes", "verdict": "YES", "action": "refund", "reason_code": "ALLOWED"},
        }
        for at, (field, operator, value) in enumerate(tests)
    ]
    return {**body, "rules": rules}


def planted(of: Planted, *tests: tuple[str, str, Any], minutes: int = 1) -> MadeUp:
    """A chain in which so many decisions were made, so many minutes apart."""
    chain, number = MadeUp(), 0
    for version, facts, decisions, succeeded in of:
        rulebook = rulebook_with(version, *tests)
        for at in range(decisions):
            number += 1
            made = MONDAY + number * minutes * MINUTE
            decision_id = chain.decide(made, version=version, facts=dict(facts), rulebook=rulebook)
            chain.outcome(decision_id, made + DAY, "succeeded" if at < succeeded else "failed")
    return chain


def recounted(chain: MadeUp, lake: Path, personal: Sequence[str] = (), **chosen: Any) -> EffectivenessReport:
    """The report over a chain, of which the lake holds some, and which is the recount."""
    snapshot = chain.snapshot(
        lake, Personal(facts=frozenset(personal)), exported=len(chain.entries) // 2, compacted=len(chain.entries) // 4
    )
    report = answer(snapshot, EffectivenessQuestion(POLICY, **chosen))
    asked: dict[str, Any] = {name: written(of) if name in ("since", "until") else of for name, of in chosen.items()}
    expected = recount.effectiveness(
        chain.entries,
        POLICY,
        requests=chain.requests,
        withheld=personal,
        most_sampled=slicing.MAX_SAMPLED,
        **asked,
    )
    assert report.body == expected
    assert canonical(report.body) == canonical(expected)
    return report


def written(moment: Any) -> str:
    """A moment as records have it."""
    return f"{moment:%Y-%m-%dT%H:%M:%S}.000Z"


def below(report: EffectivenessReport) -> list[str]:
    return [of["policy_version"] for of in report.body["versions"] if of["below_others"]]


class TestSimpson:
    TEST: Final = ("lead_days", "gt", 60)

    def test_the_reversal_is_named_and_the_better_version_is_not_blamed(self, tmp_path: Path) -> None:
        report = recounted(planted(SIMPSON, self.TEST), tmp_path)
        body = report.body
        assert (below(report), body["recommendation"]) == (["A"], "review_version")
        raw = {of["policy_version"]: of["let_through"]["success_rate"]["rate"] for of in body["versions"]}
        assert raw == {"A": 0.848, "B": 0.802}
        assert body["comparison"]["facts"] == ["lead_days"]
        assert all(of["compared"]["disagrees"] for of in body["versions"])
        assert len(body["comparison"]["sentences"]) == 1
        assert body["comparison"]["sentences"][0].startswith("Version A succeeded in 84.8%")
        assert body["comparison"]["sentences"][0].endswith("it does worse, which the raw rates hide.")

    def test_pages_charts_and_the_document_say_the_same(self, tmp_path: Path) -> None:
        report = recounted(planted(SIMPSON, self.TEST), tmp_path)
        assert report.finding() == (
            "Version A succeeded in 80% and the others in 87%, adjusted to one mix of cases (unadjusted: 85% of 1,000 "
            "let-through cases and 80% of 1,000)"
        )
        assert report.body["comparison"]["sentences"][0] in str(report)
        assert findings.versions(report.body) == "1 of 2 versions does worse than the others: A"
        assert "below the other versions: A" in repr(report)
        html = report._repr_html_()
        assert report.body["comparison"]["sentences"][0] in html
        marked = str(report.plot("version").to_dict())
        assert "84.8% of 1,000, below the others" in marked
        assert "80.2% of 1,000, below" not in marked

    def test_equally_good_versions_that_met_different_cases_are_both_left_alone(self, tmp_path: Path) -> None:
        of = (
            ("A", {"lead_days": 3}, 420, 378),
            ("A", {"lead_days": 200}, 80, 48),
            ("B", {"lead_days": 3}, 100, 90),
            ("B", {"lead_days": 200}, 400, 240),
        )
        report = recounted(planted(of, self.TEST), tmp_path)
        (worse,) = [each for each in report.body["versions"] if each["compared"]["raw_below_others"]]
        assert worse["policy_version"] == "B"
        assert (below(report), report.body["versions_below_others"]) == ([], 0)
        assert report.body["recommendation"] != "review_version"
        assert len(report.body["comparison"]["sentences"]) == 1

    def test_what_came_of_blocked_and_held_actions_is_not_compared(self, tmp_path: Path) -> None:
        chain = planted((("A", {"lead_days": 3}, 60, 54), ("B", {"lead_days": 3}, 60, 54)), self.TEST)
        for number in range(100):
            made = MONDAY + 3 * DAY + number * MINUTE
            verdict = ("no", "review")[number % 2]
            decision_id = chain.decide(made, version="B", verdict=verdict, facts={"lead_days": 3})
            chain.outcome(decision_id, made, "failed")
        report = recounted(chain, tmp_path)
        assert (below(report), report.body["recommendation"]) == ([], "healthy")
        (b,) = [of for of in report.body["versions"] if of["policy_version"] == "B"]
        assert b["success_rate"]["rate"] < 0.4 < 0.9 == b["let_through"]["success_rate"]["rate"]
        held = {of["disposition"]: of["decisions"] for of in report.body["dispositions"]}
        assert held == {"let_through": 120, "blocked": 50, "held": 50}
        by_verdict = {(of["policy_version"], of["verdict"]): of for of in report.body["versions_by_verdict"]}
        assert [by_verdict["B", verdict]["decisions"] for verdict in recount.VERDICTS] == [60, 50, 50]
        assert by_verdict["B", "no"]["failure_rate"] == 1

    def test_a_burst_of_one_group_makes_no_version_worse(self, tmp_path: Path) -> None:
        chain = planted((("A", {"lead_days": 3}, 200, 190), ("B", {"lead_days": 3}, 60, 57)), self.TEST)
        rulebook = rulebook_with("B", self.TEST)
        for _ in range(40):
            made = MONDAY + 5 * DAY
            chain.outcome(chain.decide(made, version="B", facts={"lead_days": 3}, rulebook=rulebook), made, "failed")
        report = recounted(chain, tmp_path)
        assert report.body["comparison"]["design_effect"] > 5
        assert below(report) == []


class TestALooserVersion:
    """B lets through the refunds of more than 60 days, which A blocks; most of these go wrong."""

    TEST: Final = ("lead_days", "gt", 60)

    def ledger(self, lost: int) -> MadeUp:
        chain = planted(
            (("A", {"lead_days": 3}, 200, 180), ("B", {"lead_days": 3}, 100, 90), ("B", {"lead_days": 200}, 30, lost)),
            self.TEST,
        )
        for number in range(40):
            made = MONDAY + 3 * DAY + number * MINUTE
            chain.decide(made, version="A", verdict="no", facts={"lead_days": 150 + number})
        return chain

    def test_it_is_blamed_for_what_it_alone_lets_through(self, tmp_path: Path) -> None:
        report = recounted(self.ledger(9), tmp_path)
        assert (below(report), report.body["recommendation"]) == (["B"], "review_version")
        (b,) = [of["compared"] for of in report.body["versions"] if of["policy_version"] == "B"]
        assert (b["like_below_others"], b["admits_worse"], b["disagrees"]) == (False, True, False)
        assert (b["admitted"]["cases"], b["admitted"]["success_rate"], b["admitted"]["others"]) == (30, 0.3, 0.9)
        said = "Version B let through 30 cases of a kind that the other"
        assert report.body["comparison"]["sentences"] == [
            f"{said} versions mostly stop: 9 of them succeeded (30.0%). Of the cases that the others let through, "
            "90.0% succeeded."
        ]
        assert report.finding() == f"{said}s mostly stop: 9 succeeded; of the others' cases, 90% did"
        assert findings.version(report.body, "B", report.parts("version")["B"]).startswith(f"V{report.finding()[1:8]}")

    def test_it_is_also_where_only_what_was_let_through_is_asked_for(self, tmp_path: Path) -> None:
        report = recounted(self.ledger(9), tmp_path, verdict="yes")
        assert below(report) == ["B"]
        assert report.body["comparison"] == recounted(self.ledger(9), tmp_path / "whole").body["comparison"]
        # Of the latest hundred, version A has none.
        assert (
            recounted(self.ledger(9), tmp_path / "latest", verdict="yes", limit=100).body["versions_below_others"] == 0
        )

    def test_it_is_not_where_these_go_well(self, tmp_path: Path) -> None:
        report = recounted(self.ledger(26), tmp_path)
        assert (below(report), report.body["comparison"]["sentences"]) == ([], [])


class TestQuestions:
    @pytest.mark.parametrize("seed", range(size(3, 10)))
    def test_a_verdict_and_a_period_give_the_report_of_these_decisions(self, seed: int, tmp_path: Path) -> None:
        chance = random.Random(seed)  # noqa: S311 - for tests to be the same each time
        chain = odd(chance, 160)
        since, until = sorted(MONDAY + day * DAY for day in chance.sample(range(40), 2))
        chosen: dict[str, Any] = {
            "verdict": chance.choice(recount.VERDICTS),
            "since": since,
            "until": until,
            "min_sample": 3,
        }
        report = recounted(chain, tmp_path, **chosen)
        assert [of["verdict"] for of in report.body["verdicts"]] in ([chosen["verdict"]], [])
        asked: dict[str, Any] = {"policy_version": "1", "since": since, "min_sample": 1}
        assert recounted(chain, tmp_path / "other", **asked).body["comparison"]["facts"] == []

    def test_confidence_takes_the_same_period(self, tmp_path: Path) -> None:
        chain = odd(random.Random(1), 120)  # noqa: S311 - for tests to be the same each time
        since, until = MONDAY + 5 * DAY, MONDAY + 20 * DAY
        body = confidence(chain.snapshot(tmp_path), POLICY, verdict="yes", since=since, until=until).to_dict()
        assert body == recount.confidence(
            chain.entries, POLICY, verdict="yes", since=written(since), until=written(until)
        )
        assert body["similar_decisions"] > 0


# Values of every JSON type, and facts whose names the engine might have for itself.
ODD: Final[Sequence[Any]] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    2.5,
    1e308,
    "",
    "1",
    "é",
    "gold",
    "x" * 90,
    [],
    [1],
    {},
    {"a": 1},
)
FIELDS: Final = ("succeeded", "minute", "policy_version", "order.total", "position", "a.b.c")
TESTS: Final = (
    ("succeeded", "eq", True),
    ("minute", "gte", 0),
    ("minute", "in", [1, "gold", False, None]),
    ("policy_version", "eq", "gold"),
    ("order.total", "lt", 1),
    ("position", "exists", True),
    ("a.b.c", "neq", "é"),
)


def nested(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Facts of dotted paths, as objects."""
    found: dict[str, Any] = {}
    for path, value in facts.items():
        *heads, last = path.split(".")
        here = found
        for head in heads:
            here = here.setdefault(head, {})
        here[last] = value
    return found


def odd(chance: random.Random, decisions: int, versions: int = 4) -> MadeUp:
    """A chain of odd facts, versions that test other facts, groups that arrive together, metrics and erasures."""
    chain, made = MadeUp(), MONDAY
    few = chance.sample(ODD, chance.choice([2, 4, len(ODD)]))
    rulebooks = [rulebook_with(str(at), *chance.sample(TESTS, chance.randrange(len(TESTS)))) for at in range(versions)]
    for _ in range(decisions):
        made += chance.choice([0, 0, 1, 300]) * MINUTE
        version = chance.randrange(versions)
        facts = nested({field: chance.choice(few) for field in FIELDS if chance.random() < 0.8})
        decision_id = chain.decide(
            made,
            version=str(version),
            verdict=chance.choice(["yes", "yes", "yes", "no", "review"]),
            facts=facts,
            rulebook=rulebooks[version],
        )
        for _ in range(chance.choice([0, 1, 1, 1, 2])):
            body: dict[str, Any] = {"observed_metrics": {name: chance.choice([1, 2.5, -3, 7]) for name in "mn"}}
            if chance.random() < 0.2:
                body["action_executed"] = chance.random() < 0.5
            chain.outcome(
                decision_id, made, chance.choice(["succeeded"] * (1 + version) + ["failed", "pending"]), **body
            )
        if chance.random() < 0.05:
            chain.erase(decision_id, made)
    return chain


class TestOddities:
    @pytest.mark.heavy
    @pytest.mark.parametrize("seed", range(size(12, 80)))
    def test_chains_of_odd_facts_are_the_recount(self, seed: int, tmp_path: Path) -> None:
        chance = random.Random(seed)  # noqa: S311 - for tests to be the same each time
        chain = odd(chance, chance.choice([5, 60, 250]), chance.choice([2, 3, 7]))
        personal = chance.choice([(), ("minute",), ("order", "a.b"), FIELDS])
        recounted(
            chain, tmp_path, personal, min_sample=chance.choice([1, 5, 20]), limit=chance.choice([None, None, 40])
        )

    def test_a_rulebook_without_tests_leaves_versions_as_they_are(self, tmp_path: Path) -> None:
        report = recounted(planted(SIMPSON), tmp_path)
        assert report.body["comparison"]["facts"] == []
        assert all(of["compared"]["raw"] == of["compared"]["standardized"] for of in report.body["versions"])
        assert any("without adjustment: no examined fact" in note for note in report.body["notes"])

    @pytest.mark.parametrize("personal", [(), ("lead_days",)])
    def test_a_fact_that_is_withheld_tells_nothing_apart(self, personal: Sequence[str], tmp_path: Path) -> None:
        report = recounted(planted(SIMPSON, TestSimpson.TEST), tmp_path, personal)
        assert report.body["comparison"]["facts"] == ([] if personal else ["lead_days"])

    def test_erased_facts_leave_their_decisions_out_and_it_is_said(self, tmp_path: Path) -> None:
        chain = planted(SIMPSON, TestSimpson.TEST)
        for number, decision_id in enumerate(list(chain.requests)):
            if number % 4 == 0:
                chain.erase(decision_id, MONDAY + 9 * DAY)
        report = recounted(chain, tmp_path / "some")
        assert (report.body["comparison"]["unknown"], below(report)) == (500, ["A"])
        assert any("whose facts are unknown." in note for note in report.body["notes"])
        for number, decision_id in enumerate(list(chain.requests)):
            if number % 4:
                chain.erase(decision_id, MONDAY + 9 * DAY)
        report = recounted(chain, tmp_path / "all")
        assert (report.body["comparison"]["unknown"], below(report)) == (2000, [])
        assert all(of["compared"] is None for of in report.body["versions"])
        assert any("not compared: fewer than two" in note for note in report.body["notes"])

    def test_many_decisions_are_sampled_and_it_is_said(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(slicing, "MAX_SAMPLED", 600)
        report = recounted(planted(SIMPSON, TestSimpson.TEST), tmp_path)
        assert report.body["comparison"]["sampled_one_of"] == 4
        assert 400 < report.body["comparison"]["decisions"] < 600
        assert report.body["coverage"]["decisions"] == 2000

    @pytest.mark.heavy
    def test_thousands_of_versions_with_facts_are_the_recount(self, tmp_path: Path) -> None:
        number = size(1_500, 5_000)
        of = [(f"v{at:04}", {"lead_days": at % 90}, 2, 1 + (at % 7 > 0)) for at in range(number)]
        report = recounted(planted([*of, ("bad", {"lead_days": 7}, 60, 20)], TestSimpson.TEST), tmp_path)
        assert (below(report), report.body["coverage"]["versions"]) == (["bad"], number + 1)
        assert len(report.body["versions_by_verdict"]) == len(report.body["versions"]) == 50


def test_metrics_by_version_and_by_week_have_the_median_and_its_interval(tmp_path: Path) -> None:
    chain = MadeUp()
    for number in range(40):
        version, made = "AB"[number % 2], MONDAY + (number // 20) * 7 * DAY + number * MINUTE
        metrics = {"margin": number, **({"rare": 1} if number < 3 else {})}
        chain.outcome(chain.decide(made, version=version), made, observed_metrics=metrics)
    body = recounted(chain, tmp_path).body
    by_version = {(of["name"], of["policy_version"]): of for of in body["metrics_by_version"]}
    # Of twenty values the sixth and the fifteenth.
    assert by_version["margin", "A"].items() >= {"decisions": 20, "median": 18, "low": 10, "high": 28}.items()
    assert by_version["rare", "B"].items() >= {"decisions": 1, "median": 1, "low": None, "high": None}.items()
    by_week = [(of["name"], of["week"], of["median"], of["low"], of["high"]) for of in body["metrics_by_week"]]
    assert by_week == [
        ("margin", f"{MONDAY:%Y-%m-%d}", 9, 5, 14),
        ("margin", f"{MONDAY + 7 * DAY:%Y-%m-%d}", 29, 25, 34),
        ("rare", f"{MONDAY:%Y-%m-%d}", 1, None, None),
    ]


def test_the_function_and_the_question_are_one(tmp_path: Path) -> None:
    chain = odd(random.Random(9), 60)  # noqa: S311 - for tests to be the same each time
    snapshot = chain.snapshot(tmp_path)
    asked: dict[str, Any] = {"verdict": "yes", "since": MONDAY + DAY, "until": MONDAY + 9 * DAY, "min_sample": 2}
    assert (
        effectiveness(snapshot, POLICY, **asked).body == answer(snapshot, EffectivenessQuestion(POLICY, **asked)).body
    )
