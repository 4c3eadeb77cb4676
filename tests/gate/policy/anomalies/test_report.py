"""What is made of counts: which anomalies are told together, how they are called, sorted and listed, and what a report
says beside them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gate.encoding import resources
from gate.encoding.canonical import content_hash
from gate.policy.anomalies.anomaly import KINDS, Anomaly, Effect, Order, Shown, order
from gate.policy.anomalies.breaks import RULES, Broken
from gate.policy.anomalies.counted import Cells, Counted
from gate.policy.anomalies.drift import Histogram
from gate.policy.anomalies.outliers import Far, Outliers
from gate.policy.anomalies.report import find
from gate.policy.anomalies.scores import severity
from gate.policy.anomalies.weekly.levels import LOCATION, MetricShift
from gate.policy.anomalies.weekly.values import Middle
from gate.policy.anomalies.weekly.windows import Windows
from gate.policy.questions import AnomaliesQuestion
from tests.gate.policy.anomalies.support import MONDAY, NOTHING, POLICY, counted, found, report_of, weeks_of

WEEKS = 12
AS_OF = "2026-12-31T00:00:00.000Z"


def steady(before: int, after: int, changed: int = 1) -> list[int]:
    """A number a week, which is another in the last ones."""
    return [before] * (WEEKS - changed) + [after] * changed


def broken(kind: str = "duplicate_execution", first: str = "2026-01-05T00:00:00.000Z", **more: Any) -> Broken:
    return Broken(**{"kind": kind, "count": 1, "of": 9, "first": first, "last": first, "positions": (7,), **more})


def outlier(metric: str = "days", z: float = 20.0) -> Outliers:
    return Outliers(
        metric, 90, 5.0, 1.0, False, None, 5.0, 1, "2026-02-02T00:00:00.000Z", "2026-02-02T00:00:00.000Z",
        [Far(9, 35.0, 5.0, z)],
    )  # fmt: skip


def only(of: Counted) -> Anomaly:
    (anomaly,) = found(of)
    return anomaly


def placed(anomaly: Anomaly) -> Order:
    return order(anomaly.to_dict(POLICY, ()))


def verdicts(no: Sequence[int], **more: Any) -> Counted:
    """Forty decisions a week, some of them no."""
    yes = [40 - number for number in no]
    return counted(weeks_of([40] * len(no), verdicts={"yes": yes, "no": no}, **more), as_of=AS_OF)


def outcomes(**statuses: Sequence[int]) -> Counted:
    return counted(weeks_of([60] * WEEKS, outcomes=statuses), as_of=AS_OF)


class TestVerdicts:
    def test_rates_that_moved_together_are_one_anomaly_led_by_the_greatest_effect(self) -> None:
        weeks = weeks_of(
            [40] * WEEKS,
            verdicts={"yes": steady(32, 14), "no": steady(4, 20), "review": steady(4, 6)},
            reasons={"A": steady(32, 14), "B": steady(8, 27)},
        )
        anomaly = only(counted(weeks, as_of=AS_OF))
        changes = anomaly.numbers["changes"]
        assert [(of["of"], of["value"]) for of in changes] == [
            ("reason", "B"),
            ("reason", "A"),
            ("verdict", "yes"),
            ("verdict", "no"),
        ]
        assert [abs(of["cohens_h"]) for of in changes] == sorted((abs(of["cohens_h"]) for of in changes), reverse=True)
        assert anomaly.reasons == ["reason_rose:B", "reason_fell:A", "verdict_fell:yes", "verdict_rose:no"]
        assert anomaly.summary == "The share of reason B rose from 20.0% to 67.5%."
        assert (anomaly.kind, anomaly.subject, anomaly.decisions) == ("verdict_shift", "", 40)

    def test_what_moved_at_another_time_is_another_anomaly(self) -> None:
        weeks = weeks_of(
            [40] * 16,
            reasons={"A": [36] * 8 + [16] + [36] * 7, "B": [4] * 8 + [4] * 7 + [20]},
        )
        first, second = sorted(found(counted(weeks, as_of=AS_OF)), key=lambda of: of.first)
        assert (first.first, second.first) == ("2026-03-02T00:00:00.000Z", "2026-04-20T00:00:00.000Z")

    def test_what_began_with_the_same_week_is_one_anomaly_however_long_it_lasts(self) -> None:
        weeks = weeks_of(
            [40] * 17,
            reasons={"A": [4] * 8 + [30] + [4] * 8, "B": [4] * 8 + [12] * 9, "C": [32] * 8 + [0] + [24] * 8},
        )
        every = found(counted(weeks, as_of=AS_OF))
        ids = [anomaly.identity(POLICY) for anomaly in every]
        assert len({*ids}) == len(ids)
        assert any({of["to"] for of in anomaly.numbers["changes"]} > {anomaly.last} for anomaly in every), (
            "Windows of several lengths are told together."
        )

    def test_the_decisions_that_show_it_have_a_verdict_that_rose_else_a_reason_that_did(self) -> None:
        assert only(verdicts(steady(4, 20))).shown == Shown(
            first="2026-03-23T00:00:00.000Z", last="2026-03-30T00:00:00.000Z", column="verdict", values=("no",)
        )
        reasons = counted(weeks_of([40] * WEEKS, reasons={"A": steady(36, 20), "B": steady(4, 20)}), as_of=AS_OF)
        shown = only(reasons).shown
        assert (shown.column, shown.values) == ("reason_code", ("B",))
        fell = counted(weeks_of([40] * WEEKS, reasons={"A": steady(36, 20)}), as_of=AS_OF)
        shown = only(fell).shown
        assert (shown.column, shown.values) == (None, ())

    @pytest.mark.parametrize(
        ("old", "new", "told"),
        [
            (steady(40, 0), steady(0, 40), ["2"]),
            (steady(40, 20), steady(0, 20), ["2"]),
            (steady(40, 21), steady(0, 19), None),
            (steady(32, 12), steady(8, 28), ["2"]),
            (steady(32, 13), steady(8, 27), None),
            (steady(40, 40), steady(0, 0), None),
        ],
    )
    def test_a_version_is_told_of_where_it_took_over_half(
        self, old: list[int], new: list[int], told: list[str] | None
    ) -> None:
        anomaly = only(verdicts(steady(4, 20), versions={"1": old, "2": new}))
        assert anomaly.numbers.get("new_versions") == told
        assert ("policy_version_changed" in anomaly.reasons) is (told is not None)
        assert (" with version 2." in anomaly.summary) is (told is not None)

    def test_versions_that_took_over_half_together_are_all_told_of(self) -> None:
        versions = {"1": steady(40, 15), "b": steady(0, 10), "a": steady(0, 15)}
        anomaly = only(verdicts(steady(4, 20), versions=versions))
        assert anomaly.numbers["new_versions"] == ["a", "b"]
        steps = [step.what for step in anomaly.next]
        assert steps[:2] == [
            f"Read what version {of} changed, and check whether this effect was intended." for of in "ab"
        ]

    def test_a_new_version_is_made_to_decide_otherwise_and_keeps_it_below_high(self) -> None:
        alone = only(verdicts(steady(0, 40)))
        changed = only(verdicts(steady(0, 40), versions={"1": steady(40, 0), "2": steady(0, 40)}))
        assert (alone.score, changed.score) == (0.943119, 0.79)

    @pytest.mark.parametrize(
        ("versions", "step"),
        [
            (
                {"1": [40] * WEEKS},
                "No version changed at the same time: check the facts that callers send, and fact_drift.",
            ),
            (
                {"1": steady(30, 12), "2": steady(10, 28)},
                "No version gained half of the decisions. Version 2 gained most, from 25.0% to 70.0% of them. "
                "Check what it changed, the facts that callers send, and fact_drift.",
            ),
            (
                {"1": steady(40, 20), "2": steady(0, 20)},
                "Read what version 2 changed, and check whether this effect was intended.",
            ),
        ],
    )
    def test_the_step_says_which_version_gained_decisions(self, versions: dict[str, list[int]], step: str) -> None:
        assert only(verdicts(steady(0, 40), versions=versions)).next[0].what == step


class TestOutcomes:
    @pytest.mark.parametrize(("left", "told"), [(36, "high"), (40, "medium"), (46, "low")])
    def test_fewer_successes_are_harm_and_high_where_the_effect_is_medium_at_least(self, left: int, told: str) -> None:
        # h of succeeded, from 0.9, is -0.73, -0.55 and -0.36; 0.15 less at the near end of its interval.
        anomaly = only(outcomes(succeeded=steady(54, 4 * left), failed=steady(6, 4 * (60 - left))))
        assert severity(anomaly.score) == told

    def test_of_few_decisions_the_same_effect_scores_less(self) -> None:
        many = only(outcomes(succeeded=steady(54, 4 * 36), failed=steady(6, 4 * 24)))
        few = only(outcomes(succeeded=steady(18, 4 * 12), failed=steady(2, 4 * 8)))
        assert few.numbers["changes"][0]["cohens_h"] == many.numbers["changes"][0]["cohens_h"]
        assert (severity(many.score), severity(few.score)) == ("high", "medium")

    def test_what_got_worse_shows_the_status_that_rose(self) -> None:
        anomaly = only(outcomes(succeeded=steady(54, 42, 2), failed=steady(6, 18, 2)))
        assert anomaly.kind == "outcome_shift"
        # Of changes that are as great, being each other's rest, the names decide, and not the last digit of a float.
        assert anomaly.reasons == ["outcome_rose:failed", "outcome_fell:succeeded"]
        assert (anomaly.shown.column, anomaly.shown.values) == ("outcome_status", ("failed",))

    def test_more_successes_stay_below_medium_however_many(self) -> None:
        anomaly = only(outcomes(succeeded=steady(6, 60), failed=steady(54, 0)))
        assert anomaly.score == 0.59
        assert anomaly.reasons == ["outcome_fell:failed", "outcome_rose:succeeded"]

    @pytest.mark.parametrize("status", ["partial", "failed", "reverted"])
    def test_any_other_result_that_rises_is_harm(self, status: str) -> None:
        worse = only(outcomes(**{"succeeded": steady(57, 40), status: steady(3, 20)}))
        better = only(outcomes(**{"succeeded": steady(40, 59), status: steady(20, 1)}))
        assert worse.score > 0.8
        assert better.score == 0.59

    @pytest.mark.parametrize(
        ("left", "changed", "severities"),
        [
            (47, 4, ("low", "low")),
            (46, 4, ("high", "high")),
            (41, 4, ("high", "high")),
            (35, 1, ("medium", "high")),
        ],
    )
    def test_what_got_considerably_worse_is_high_if_it_lasts_or_came_with_a_new_version(
        self, left: int, changed: int, severities: tuple[str, str]
    ) -> None:
        # h of succeeded, from 0.9, is -0.33, -0.36, -0.56 and -0.76; the less weeks, the farther the near end.
        of = outcomes(succeeded=steady(54, left, changed), failed=steady(6, 60 - left, changed))
        assert of.weeks is not None
        versions = {"1": steady(60, 0, changed), "2": steady(0, 60, changed)}
        found_alone, found_changed = only(of), only(replace(of, weeks=replace(of.weeks, versions=versions)))
        assert (severity(found_alone.score), severity(found_changed.score)) == severities

    @pytest.mark.parametrize("versions", [{}, {"1": steady(60, 0, 2), "2": steady(0, 60, 2)}])
    def test_what_others_vouch_for_and_chance_alone_could_make_stays_below_high(
        self, versions: dict[str, list[int]]
    ) -> None:
        # h of failed is 1.02, 0.55 at the near end of its interval; of so few its p is 0.0000056.
        many = {f"v{at}": steady(4, 56) if at < 8 else [9] * WEEKS for at in range(40)}
        faint = {"failed": steady(1, 9), "succeeded": steady(19, 11)}
        few = counted(weeks_of([60] * WEEKS, verdicts=many, versions=versions, outcomes=faint), as_of=AS_OF)
        (anomaly,) = (of for of in found(few) if of.kind == "outcome_shift")
        assert anomaly.score == 0.79
        assert all(change["p_value"] > change["required_p"] for change in anomaly.numbers["changes"])

    def test_of_some_that_got_better_and_some_that_got_worse_the_worst_counts(self) -> None:
        anomaly = only(outcomes(succeeded=steady(10, 20), partial=steady(45, 10), failed=steady(5, 30)))
        assert anomaly.score == max(0.59, anomaly.score) > 0.8

    def test_an_age_is_told_until_all_outcomes_count(self) -> None:
        of = outcomes(succeeded=steady(54, 20), failed=steady(6, 40))
        assert of.weeks is not None
        for horizon, told in ((0, 1), (8, 9), (55, 56), (56, None)):
            young = replace(of, weeks=replace(of.weeks, horizons=[horizon] * WEEKS))
            assert {change["age_days"] for change in only(young).numbers["changes"]} == {told}
        none = replace(of, weeks=replace(of.weeks, horizons=[-1] * WEEKS))
        assert found(none) == []

    def test_verdicts_have_no_age(self) -> None:
        assert all("age_days" not in change for change in only(verdicts(steady(4, 20))).numbers["changes"])


def test_reports_over_imported_cases_point_at_no_record_of_the_service() -> None:
    of = replace(outcomes(succeeded=steady(54, 20), failed=steady(6, 40)), imported=True)
    chain, imported = report_of(replace(of, imported=False)), report_of(of)
    assert any("the first of these decisions" in step["what"] for step in chain["anomalies"][0]["look_at_next"])
    steps = imported["anomalies"][0]["look_at_next"]
    assert steps
    assert {step["href"] for step in steps} == {None}
    assert not any("packet" in step["what"] or "proof" in step["what"] for step in steps)
    assert [note for note in chain["notes"] if note not in imported["notes"]] == [
        "Outcomes and receipts are overdue by the date of the chain's last entry, not by the clock: in a scope "
        "without new entries, nothing becomes overdue."
    ]


def test_single_values_do_not_last_however_far_apart_they_are() -> None:
    far = replace(outlier(), first="2026-01-06T00:00:00.000Z", last="2026-06-02T00:00:00.000Z")
    assert not only(counted(outliers=[far])).effect.lasting
    assert only(counted(broken=[broken(last="2026-06-02T00:00:00.000Z")])).effect.lasting


class TestTimes:
    def test_a_window_that_goes_on_ends_with_the_chain(self) -> None:
        of = verdicts(steady(4, 20))
        for as_of, ends in ((AS_OF, "2026-03-30T00:00:00.000Z"), ("2026-03-25T08:00:00.000Z",) * 2):
            anomaly = only(replace(of, as_of=as_of))
            assert (anomaly.first, anomaly.last) == ("2026-03-23T00:00:00.000Z", ends)
            # The chain's last entry can be one of its decisions.
            assert anomaly.shown.last == "2026-03-30T00:00:00.000Z"

    def test_where_a_clock_ran_backwards_it_ends_with_its_decisions(self) -> None:
        of = verdicts(steady(4, 20))
        anomaly = only(replace(of, as_of="2026-02-01T00:00:00.000Z", last="2026-03-24T10:00:00.000Z"))
        assert (anomaly.first, anomaly.last) == ("2026-03-23T00:00:00.000Z", "2026-03-24T10:00:00.000Z")


class TestDrift:
    def drifted(self, facts: int, to: int = 100) -> Counted:
        weeks = [[100, 0]] * 11 + [[100 - to, to]]
        return counted(
            weeks_of([100] * WEEKS),
            as_of=AS_OF,
            histograms=[Histogram(f"fact {number}", ["a", "b"], weeks) for number in range(facts)],
        )

    def test_it_scores_by_the_index_less_what_chance_adds(self) -> None:
        assert only(self.drifted(1)).score == 0.992047
        some = replace(self.drifted(1), histograms=[Histogram("f", ["a", "b"], [[50, 50]] * 11 + [[30, 70]])])
        (fact,) = only(some).numbers["facts"]
        # Two bins, 800 decisions before and 100 within.
        assert fact["stability_index"] - fact["least_index"] == pytest.approx(
            1.644854 * 2**0.5 * (1 / 800 + 1 / 100), abs=2e-6
        )
        assert only(some).score == round(0.35 + 0.25 * (fact["least_index"] - 0.1) / 0.15, 6)

    def test_what_chance_alone_could_make_among_so_many_stays_below_high(self) -> None:
        of = self.drifted(8)
        faint = Histogram("faint", ["a", "b"], [[26, 4]] * 5 + [[14, 16]] + [[26, 4]] * 6)
        idle = [Histogram(f"idle {at}", ["a", "b"], [[10, 10]] * WEEKS) for at in range(100)]
        every = found(replace(of, histograms=[*of.histograms, faint, *idle]))
        (anomaly,) = (each for each in every if each.reasons == ["fact_drifted:faint"])
        (fact,) = anomaly.numbers["facts"]
        assert fact["least_index"] > 0.5
        assert fact["p_value"] > fact["required_p"]
        assert anomaly.score == 0.79

    @pytest.mark.parametrize(
        ("facts", "told"),
        [(1, "fact 0"), (3, "fact 0, fact 1, fact 2"), (5, "fact 0, fact 1, fact 2 and 2 more")],
    )
    def test_facts_that_drifted_together_are_told_together(self, facts: int, told: str) -> None:
        anomaly = only(self.drifted(facts))
        assert anomaly.summary == f"The facts of decisions differ from those of the weeks before: {told}."
        assert anomaly.reasons == [f"fact_drifted:fact {number}" for number in range(facts)]
        assert anomaly.numbers["facts"][0]["bins"] == [
            {"holds": "a", "before": 800, "within": 0},
            {"holds": "b", "before": 0, "within": 100},
        ]

    def test_a_bin_that_neither_has_is_left_out(self) -> None:
        weeks = [[0, 100, 0]] * 11 + [[0, 0, 100]]
        of = replace(self.drifted(1), histograms=[Histogram("f", ["x", "y", "z"], weeks)])
        assert [held["holds"] for held in only(of).numbers["facts"][0]["bins"]] == ["y", "z"]


class TestVolume:
    def surging(self, counts: list[int]) -> Counted:
        # Nothing of hours and days, so that weeks are the grain.
        weeks = weeks_of([max(1, number) for number in counts])
        cells = [Cells(weeks.starts(0), of) for of in ([0], [0], counts)]
        return counted(weeks, as_of=AS_OF, cells=cells)

    def test_many_more_and_many_fewer_are_high(self) -> None:
        more = only(self.surging([20] * 14 + [400]))
        assert (more.subject, more.score, more.reasons) == ("week", 0.95, ["more_decisions_than_usual"])
        assert more.summary == "400 decisions in 1 week, where 20 are usual."
        fewer = only(self.surging([90] * 14 + [0]))
        assert (fewer.score, fewer.reasons) == (0.9, ["fewer_decisions_than_usual"])
        assert fewer.summary == "0 decisions in 1 week, where 90 are usual."

    def test_several_cells_are_told_with_what_is_usual_of_all_of_them(self) -> None:
        (gap,) = found(self.surging([30] * 14 + [0, 0, 0]))
        assert gap.summary == "0 decisions in 3 weeks, where 90 are usual."
        (one,) = found(self.surging([40] * 14 + [1]))
        assert one.summary == "1 decision in 1 week, where 40 are usual."

    def test_as_many_times_as_many_of_few_decisions_a_week_is_little(self) -> None:
        weeks = weeks_of([1_000] * 9)
        days = [Cells(weeks.starts(0), of) for of in ([0], [6] * 56 + [60], [0])]
        anomaly = only(counted(weeks, as_of=AS_OF, cells=days))
        assert (anomaly.subject, anomaly.numbers["times"], anomaly.numbers["usual_week"]) == ("day", 10, 1_000)
        assert severity(anomaly.score) == "low"

    def test_a_burst_of_one_minute_counts_as_few_arrivals(self) -> None:
        weeks = weeks_of([40] * 9)
        counts = [6] * 56 + [600]
        scattered, together = (
            counted(weeks, as_of=AS_OF, cells=[Cells(weeks.starts(0), [0]), Cells(weeks.starts(0), counts, arrivals)])
            for arrivals in (None, [6] * 56 + [1])
        )
        assert severity(only(scattered).score) == "high"
        assert found(together) == []

    def test_what_comes_together_and_stands_out_all_the_same_is_told_by_its_decisions(self) -> None:
        weeks = weeks_of([40] * 9)
        counts, arrivals = [6] * 56 + [600], [6] * 56 + [425]
        anomaly = only(
            counted(weeks, as_of=AS_OF, cells=[Cells(weeks.starts(0), [0]), Cells(weeks.starts(0), counts, arrivals)])
        )
        assert (anomaly.numbers["decisions"], anomaly.numbers["arrivals"]) == (600, 425)
        assert anomaly.effect == Effect(594, None, False, None, until=anomaly.last)

    def test_an_empty_week_that_chance_alone_can_make_is_no_alarm(self) -> None:
        # One of a thousand weeks that have 7 has none; in a year one of them is no certainty.
        (empty,) = found(self.surging([7, 6, 8, 7, 6, 8, 7, 6, 8, 7] * 5 + [0]))
        assert empty.score == 0.79
        assert empty.numbers["p_value"] > empty.numbers["required_p"]

    def test_several_are_told_in_the_plural(self) -> None:
        assert only(self.surging([20] * 14 + [400, 400])).summary == "800 decisions in 2 weeks, where 40 are usual."

    def test_a_grain_with_too_few_is_not_looked_at(self) -> None:
        assert found(self.surging([4] * 14 + [400])) == []


class TestMetrics:
    @pytest.mark.parametrize(("z", "score"), [(5.1, 0.355), (10, 0.6), (19, 0.78), (20, 0.79), (1.7e308, 0.79)])
    def test_one_value_scores_by_how_many_times_as_far_as_required_it_lies_and_stays_below_high(
        self, z: float, score: float
    ) -> None:
        assert only(counted(outliers=[outlier(z=z)])).score == score

    # Of 90 values, 15 are certainly a tenth: the Wilson interval begins at 0.104, and that of 14 at 0.096.
    @pytest.mark.parametrize(("count", "score"), [(9, 0.79), (14, 0.79), (15, 0.9), (40, 0.9)])
    def test_certainly_a_tenth_of_all_values_far_out_is_high(self, count: int, score: float) -> None:
        assert only(counted(outliers=[replace(outlier(z=40), count=count)])).score == score

    def test_a_small_mad_is_told_by_its_digits(self) -> None:
        anomaly = only(counted(outliers=[replace(outlier(), mad=1.23456789e-9)]))
        assert anomaly.numbers["mad"] == 1.23457e-09


class TestReport:
    KINDS_OF_ALL = counted(
        weeks_of(
            [60] * WEEKS,
            verdicts={"yes": steady(54, 30), "no": steady(6, 30)},
            outcomes={"succeeded": steady(54, 20), "failed": steady(6, 40)},
        ),
        as_of=AS_OF,
        first="2026-01-05T00:00:00.000Z",
        last="2026-03-29T00:00:00.000Z",
        histograms=[Histogram("f", ["a", "b"], [[60, 0]] * 11 + [[0, 60]])],
        cells=[Cells(weeks_of([1]).starts(0), of) for of in ([0], [0], [20] * 11 + [900])],
        outliers=[outlier()],
        metric_shifts=[
            MetricShift(
                "days",
                LOCATION,
                Windows(10, 11, 2),
                56,
                None,
                Middle(400, 4.0, 5.0, 6.0),
                Middle(100, 8.0, 9.0, 10.0),
                (400, 100),
                (1.0, 1.0),
                0.8,
                0.7,
                1e-20,
                1e-6,
                100,
            )
        ],
        broken=[broken()],
        metrics=3,
        chain_position=2_000,
        merkle_root="a" * 64,
    )

    def test_it_keeps_the_contract_and_carries_its_hash(self) -> None:
        for of, chosen in ((self.KINDS_OF_ALL, {"threshold": 0, "max_items": 200}), (NOTHING, {})):
            report = report_of(of, **chosen)
            jsonschema.Draft202012Validator(resources.schema("anomaly-report")).validate(report)
            assert report.pop("anomaly_hash") == content_hash(report)
        assert {of["kind"] for of in report_of(self.KINDS_OF_ALL)["anomalies"]} == {*KINDS}

    def test_the_same_counts_give_the_same_report(self) -> None:
        assert report_of(self.KINDS_OF_ALL) == report_of(self.KINDS_OF_ALL)

    @pytest.mark.parametrize(
        ("kinds", "decisions", "told"),
        [
            (["outcome_overdue", "state_mismatch", "duplicate_execution"], 5, "investigate"),
            (["outcome_overdue", "state_mismatch"], 5, "review"),
            (["outcome_overdue"], 5, "watch"),
            ([], 20, "stable"),
            ([], 19, "insufficient_data"),
            ([], 0, "insufficient_data"),
        ],
    )
    def test_it_recommends_by_the_strongest(self, kinds: list[str], decisions: int, told: str) -> None:
        of = counted(broken=[broken(kind, of=1000) for kind in kinds], decisions=decisions)
        report = report_of(of)
        assert report["recommendation"] == told
        assert report["severities"] == {
            "high": sum(kind == "duplicate_execution" for kind in kinds),
            "medium": sum(kind == "state_mismatch" for kind in kinds),
            "low": sum(kind == "outcome_overdue" for kind in kinds),
        }

    def test_what_is_below_the_threshold_is_neither_listed_nor_counted_nor_recommended_by(self) -> None:
        of = counted(broken=[broken(kind, of=1000) for kind in RULES], decisions=30)
        for threshold, number, told in (
            (0, 12, "investigate"),
            (0.35, 12, "investigate"),
            (0.350001, 9, "investigate"),
            (0.7, 9, "investigate"),
            (0.700001, 8, "investigate"),
            (1, 3, "investigate"),
        ):
            report = report_of(of, threshold=threshold)
            assert (report["anomaly_count"], sum(report["severities"].values())) == (number, number)
            assert (len(report["anomalies"]), report["recommendation"]) == (number, told)
        low = counted(broken=[broken("outcome_overdue", of=1000)], decisions=30)
        assert report_of(low, threshold=0.36)["recommendation"] == "stable"

    def test_no_more_are_listed_than_asked_for_and_all_are_counted(self) -> None:
        of = counted(broken=[broken(kind, of=1000) for kind in RULES], decisions=30)
        for most in (1, 11, 12, 200):
            report = report_of(of, max_items=most)
            assert (report["anomaly_count"], len(report["anomalies"])) == (12, min(12, most))
            noted = [note for note in report["notes"] if note.startswith("More anomalies were found")]
            assert len(noted) == (most < 12)

    def test_of_equal_costs_the_strongest_stand_first_then_the_kind_decides_then_the_later(self) -> None:
        def made(score: float, kind: str, first: str, subject: str = "") -> Anomaly:
            return Anomaly(kind, subject, score, [], "", first, first, 0, Shown(), Effect(1), {}, [])

        early, late = "2026-01-05T00:00:00.000Z", "2026-11-09T00:00:00.000Z"
        ordered = [
            made(0.95, "fact_drift", early),
            *(made(0.8, kind, late) for kind in KINDS),
            made(0.7, "metric_outlier", late, "z"),
            made(0.7, "metric_outlier", early, "a"),
            made(0.7, "metric_outlier", early, "b"),
        ]
        mixed = [*ordered[5:], *ordered[:5]]
        assert sorted(mixed, key=placed) == ordered

    def test_severity_comes_first_then_harm_then_what_lasts_then_what_it_costs(self) -> None:
        def made(score: float, *effect: Any) -> Anomaly:
            at = "2026-01-05T00:00:00.000Z"
            return Anomaly("volume", "", score, [], "", at, at, 0, Shown(), Effect(*effect), {}, [])

        ordered = [
            made(0.8, 2, None, True, True),
            made(0.83, 800, 2e6, False, True),
            made(0.85, 90, None, False, True),
            made(0.81, 900, -4e6, True, None),
            made(0.82, 7, 3e6, True, False),
            made(0.99, 900, None, True, None),
            made(0.84, 900, 9e6, False, None),
            made(0.86, 9999),
            made(0.79, 10_000, -9e9, True, True),
            made(0.59, 10_000, -9e9, True, True),
        ]
        assert sorted([*ordered[4:], *ordered[:4]], key=placed) == ordered

    def test_notes_say_what_this_report_lacks(self) -> None:
        plain = report_of(counted(decisions=20))["notes"]
        assert len(plain) == 5
        lacking: list[tuple[dict[str, Any], str]] = [
            ({"decisions": 19}, "too few decisions"),
            ({"decisions": 20, "truncated": True}, "because of limit"),
            ({"decisions": 20, "sampled_one_of": 8}, "one in 8 decisions"),
        ]
        for changes, told in lacking:
            (more,) = [note for note in report_of(counted(**changes))["notes"] if note not in plain]
            assert told in more

    def test_an_id_stays_while_a_thing_goes_on_and_is_anothers_where_something_else_is(self) -> None:
        anomaly = only(verdicts(steady(4, 20)))
        own = anomaly.identity(POLICY)
        assert re.fullmatch("ano_[0-9a-f]{24}", own)
        # It lasted longer, and got stronger.
        later = verdicts([*steady(4, 20), 30])
        assert {of.first: of.identity(POLICY) for of in found(later)}[anomaly.first] == own
        others = [
            anomaly.identity("another"),
            replace(anomaly, kind="outcome_shift").identity(POLICY),
            replace(anomaly, subject="week").identity(POLICY),
            replace(anomaly, first="2026-03-16T00:00:00.000Z").identity(POLICY),
        ]
        assert len({own, *others}) == 5

    def test_every_path_leads_to_where_it_says(self) -> None:
        name = "p/ä?x=1&y"
        every = find(self.KINDS_OF_ALL, AnomaliesQuestion(name))
        hrefs = [step.href for anomaly in every for step in anomaly.next if step.href is not None]
        assert hrefs
        for href in hrefs:
            at = urlsplit(href)
            if at.path == "/api/decisions":
                asked = parse_qs(at.query, strict_parsing=True)
                assert asked.keys() <= {"policy_id", "from", "to", "verdict", "reason_code"}
                assert asked["policy_id"] == [name]
            else:
                assert at.path == "/api/decision/policies/p%2F%C3%A4%3Fx%3D1%26y/effectiveness"


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60), st.integers(0, 60)), max_size=20),
    st.integers(1, 30),
    st.lists(st.integers(-1, 56), min_size=20, max_size=20),
)
def test_whatever_the_weeks_are_every_anomaly_follows_the_contract(
    weeks: list[tuple[int, int, int]], min_sample: int, horizons: list[int]
) -> None:
    decisions = [sum(of) for of in weeks]
    columns = [list(of) for of in zip(*weeks, strict=True)] or [[]] * 3
    values = dict(zip(("yes", "no", "review"), columns, strict=True))
    statuses = dict(zip(("succeeded", "failed", "partial"), columns, strict=True))
    of = counted(
        weeks_of(decisions, verdicts=values, reasons=values, outcomes=statuses, horizons=horizons[: len(weeks)]),
        as_of=AS_OF,
    )
    report = report_of(of, min_sample=min_sample, threshold=0, max_items=200)
    jsonschema.Draft202012Validator(resources.schema("anomaly-report")).validate(report)
    ids = [anomaly["anomaly_id"] for anomaly in report["anomalies"]]
    assert len({*ids}) == len(ids)
    for anomaly in report["anomalies"]:
        assert MONDAY.isoformat() <= anomaly["window"]["from"] < anomaly["window"]["to"] <= AS_OF
        for change in anomaly["numbers"]["changes"]:
            assert min(change["before"]["of"], change["within"]["of"]) >= min_sample
            assert abs(change["cohens_h"]) >= 0.1
            assert change["p_value"] <= 0.05
