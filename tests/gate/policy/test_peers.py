"""What benchmarks reveal about a scope, compared with docs/reference/formulas/benchmarks.md, and the report."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import pairwise
from typing import Any, Final

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.encoding import resources
from gate.encoding.canonical import content_hash
from gate.policy.peers import (
    METRICS,
    MIN_OUTCOMES,
    POSSIBLE_OUTCOMES,
    Coded,
    Cohort,
    MonthCounts,
    Own,
    beginning,
    benchmark_report,
    code,
    decided_in,
    earlier,
    folded,
    interval,
    month_of,
    most_outcomes,
    percentile,
    told,
)
from gate.policy.questions import BenchmarksQuestion
from tests.end_to_end.support import ROOT
from tests.gate.policy.counting import tried
from tests.independent import benchmarks as independent
from tests.support.documentation import notes, rows, section
from tests.support.reports import OTHERS, OWN, benchmark_example

PAGE: Final = (ROOT / "docs" / "reference" / "formulas" / "benchmarks.md").read_text()
NOTES_PAGE: Final = (ROOT / "docs" / "reference" / "formulas" / "notes.md").read_text()
TOLD: Final = [number / 20 for number in range(1, 20)]
WIDTH: Final = Fraction(1, 20)


@st.composite
def month_counts(draw: st.DrawFn, *, most: int = 3000) -> MonthCounts:
    decisions = draw(st.integers(0, most))
    terminal = draw(st.integers(0, decisions))
    return MonthCounts(decisions, draw(st.integers(0, decisions)), terminal, draw(st.integers(0, terminal)))


coded = st.builds(
    Coded, st.integers(20, 10**7).map(folded), st.sampled_from(TOLD), st.sampled_from(TOLD), st.sampled_from(TOLD)
)


class TestTold:
    def test_every_told_value_stands_for_an_interval_at_least_as_wide_as_the_rounding(self) -> None:
        bounds = [interval(value) for value in TOLD]
        assert (bounds[0][0], bounds[-1][1]) == (Fraction(0), Fraction(1))
        assert all(before[1] == after[0] for before, after in pairwise(bounds))
        assert {high - low for low, high in bounds[1:-1]} == {WIDTH}
        assert {high - low for low, high in (bounds[0], bounds[-1])} == {Fraction(3, 40)}

    def test_a_share_is_told_as_the_nearest_of_the_values_and_a_half_as_the_higher(self) -> None:
        for whole in range(1, 250):
            for part in range(whole + 1):
                value = told(part, whole)
                low, high = interval(value)
                share = Fraction(part, whole)
                assert low <= share < high or (share == high == 1), (part, whole)
        assert [told(*of) for of in ((0, 9), (3, 40), (1, 8), (37, 40), (36999, 40000), (9, 9))] == [
            *(0.05, 0.1, 0.15, 0.95, 0.9, 0.95)
        ]

    @tried
    @given(st.integers(20, 10**18), st.data())
    def test_a_bound_is_no_matter_of_floating_point(self, whole: int, data: st.DataObject) -> None:
        steps = data.draw(st.integers(1, 18))
        # The first share that is told as the next value, and the last that is not.
        first = -((2 * steps + 1) * whole // -40)
        assert told(first, whole) == TOLD[steps]
        assert told(first - 1, whole) == TOLD[steps - 1]

    @tried
    @given(st.integers(0, 10**15))
    def test_a_number_is_rounded_down_to_a_step_and_never_by_more_than_three_fifths(self, number: int) -> None:
        step = folded(number)
        assert str(step).rstrip("0") in ("", "1", "2", "5")
        assert step <= number
        assert number == 0 or 5 * step > 2 * number

    def test_the_steps(self) -> None:
        assert [folded(number) for number in (0, 1, 4, 5, 9, 10, 19, 20, 49, 50, 99, 100, 199, 999)] == [
            *(0, 1, 2, 5, 5, 10, 10, 20, 20, 50, 50, 100, 100, 500)
        ]


class TestCode:
    @tried
    @given(month_counts())
    def test_a_scope_with_few_outcomes_does_not_count_and_one_with_more_is_told_rounded(
        self, counts: MonthCounts
    ) -> None:
        found = code(counts)
        assert found == independent.told_of(*counts)
        if counts.terminal < MIN_OUTCOMES:
            assert found is None
        elif counts.terminal >= POSSIBLE_OUTCOMES:
            assert found is not None

    @pytest.mark.heavy
    def test_what_is_told_leaves_the_rates_open_over_the_whole_of_their_interval(self) -> None:
        """All at once that is told of a scope, held against every history that is told so: for each rate the possible
        ones reach from one end of its interval to within 0.004 of the other. They are fractions of whole numbers, of
        which none need lie just below the upper end; of larger scopes there are more.
        """
        possible: dict[tuple[int, float], tuple[set[int], set[int]]] = defaultdict(lambda: (set(), set()))
        coverages: dict[tuple[int, float], set[Fraction]] = defaultdict(set)
        for decisions in range(MIN_OUTCOMES, 500):
            for terminal in range(MIN_OUTCOMES, decisions + 1):
                if (found := code(MonthCounts(decisions, 0, terminal, 0))) is not None:
                    where = (found.decisions, found.terminal_coverage)
                    possible[where][0].add(terminal)
                    possible[where][1].add(decisions)
                    coverages[where].add(Fraction(terminal, decisions))
        assert {step for step, _ in possible} == {20, 50, 100, 200}
        least = WIDTH - Fraction(4, 1000)
        for (step, coverage), numbers in possible.items():
            assert max(numbers[0]) == most_outcomes(Coded(step, 0.5, 0.5, coverage))
            assert max(coverages[step, coverage]) - min(coverages[step, coverage]) > least
            # Which success rates and approval rates there are depends on nothing but these numbers: every number has a
            # fraction in every interval, since none is below 20.
            for wholes in numbers:
                for value in TOLD:
                    assert spread_of(wholes, value) > least, (step, coverage, value)

    def test_without_the_rule_of_possible_outcomes_a_rate_could_be_worked_out(self) -> None:
        """Of 49 decisions, of which between 37.5 and 42.5 % have an outcome, and at least 20: these are exactly 20, and
        their success rate is a multiple of 0.05.
        """
        counts = MonthCounts(decisions=49, approved=49, terminal=20, succeeded=17)
        step, coverage = folded(49), told(20, 49)
        alike = {
            terminal
            for decisions in range(step, 50)
            for terminal in range(MIN_OUTCOMES, decisions + 1)
            if told(terminal, decisions) == coverage
        }
        assert alike == {20}
        assert code(counts) is None

    @pytest.mark.parametrize(
        ("decisions", "least"),
        [(45, 0.875), (49, 0.875), (60, 0.425), (100, 0.225), (199, 0.225), (200, 0.075), (500, 0.0), (10**6, 0.0)],
    )
    def test_from_which_coverage_on_a_scope_counts(self, decisions: int, least: float) -> None:
        counting = [
            terminal
            for terminal in range(MIN_OUTCOMES, min(decisions, 2000) + 1)
            if code(MonthCounts(decisions, 0, terminal, 0)) is not None
        ]
        assert counting == list(range(counting[0], counting[-1] + 1))
        assert counting[0] == max(MIN_OUTCOMES, -int(-least * decisions // 1))


def spread_of(wholes: Iterable[int], value: float) -> Fraction:
    """How far apart the fractions of some whole numbers lie that are told as a value."""
    low, high = interval(value)
    found: list[Fraction] = []
    for whole in wholes:
        first = -(-low.numerator * whole // low.denominator)
        last = whole if high == 1 else -(-high.numerator * whole // high.denominator) - 1
        assert first <= last
        found += [Fraction(first, whole), Fraction(last, whole)]
    return max(found) - min(found)


class TestPercentile:
    @tried
    @given(st.lists(st.sampled_from(TOLD), min_size=1, max_size=60), st.integers(1, 100))
    def test_it_is_the_least_value_that_so_many_percent_do_not_exceed(self, values: list[float], percent: int) -> None:
        found = percentile(values, percent)
        assert found in values
        assert 100 * sum(value <= found for value in values) >= percent * len(values)
        assert 100 * sum(value < found for value in values) < percent * len(values)

    def test_of_five_they_are_the_second_the_third_and_the_fourth(self) -> None:
        values = [0.5, 0.1, 0.4, 0.2, 0.3]
        assert [percentile(values, percent) for percent in (25, 50, 75)] == [0.2, 0.3, 0.4]


class TestMonths:
    @tried
    @given(st.datetimes(datetime(1971, 1, 1), datetime(9990, 1, 1), timezones=st.just(UTC)), st.integers(-40, 40))  # noqa: DTZ001
    def test_a_month_has_its_beginning_and_others_before_and_after_it(self, moment: datetime, months: int) -> None:
        month = month_of(moment)
        assert beginning(month) <= moment < beginning(earlier(month, -1))
        assert earlier(earlier(month, months), -months) == month
        assert (earlier(month, 1) < month) is True

    def test_a_year_ends_with_december(self) -> None:
        assert [earlier("2026-01", months) for months in (0, 1, 2, 13, -12)] == [
            *("2026-01", "2025-12", "2025-11", "2024-12", "2027-01")
        ]
        assert decided_in("2027-01") == "2026-11"
        assert month_of(datetime.fromisoformat("2026-12-01T00:30:00+01:00")) == "2026-11"


def report(others: Iterable[Coded] = OTHERS, own: MonthCounts = OWN.counts, **chosen: Any) -> dict[str, Any]:
    cohort = Cohort("2026-11", member=True, others=list(others))
    return benchmark_report(own_of(own), cohort, BenchmarksQuestion("p", **chosen), month="2026-11")


def own_of(counts: MonthCounts) -> Own:
    return Own(counts, OWN.present, OWN.first, OWN.last, OWN.chain_position, OWN.merkle_root, truncated=False)


class TestReport:
    def test_the_published_examples_are_what_their_counts_give(self) -> None:
        for member, name in ((True, "benchmark-report"), (False, "benchmark-report-withheld")):
            published = json.loads(resources.path("schemas", "examples", f"{name}.json").read_bytes())
            assert benchmark_example(member=member) == published
        assert all(code_of_some(of) == of for of in OTHERS)

    @tried
    @given(
        month_counts(),
        st.none() | st.builds(Cohort, st.just("2026-11"), st.booleans(), st.lists(coded, max_size=30)),
        st.none() | st.text(),
        st.none() | st.integers(1, 1_000_000),
        st.integers(5, 1000),
        st.integers(50, 1_000_000),
        st.booleans(),
    )
    def test_it_fits_its_schema_carries_its_hash_and_is_the_recount(
        self,
        counts: MonthCounts,
        cohort: Cohort | None,
        version: str | None,
        limit: int | None,
        min_scopes: int,
        min_decisions: int,
        truncated: bool,
    ) -> None:
        own = Own(counts, OWN.present, None, None, 7, "0" * 64, truncated)
        question = BenchmarksQuestion(
            "é \0",
            policy_version=version,
            limit=limit,
            min_cohort_scopes=min_scopes,
            min_cohort_decisions=min_decisions,
        )
        body = benchmark_report(own, cohort, question, month="2026-11")
        jsonschema.Draft202012Validator(resources.schema("benchmark-report")).validate(body)
        expected = independent.report(
            {
                **counts._asdict(),
                "present": tuple(OWN.present),
                "from": None,
                "to": None,
                "position": 7,
                "root": "0" * 64,
                "truncated": truncated,
            },
            None if cohort is None else ("2026-11", cohort.member, [(*of,) for of in cohort.others]),
            "é \0",
            month="2026-11",
            policy_version=version,
            limit=limit,
            min_cohort_scopes=min_scopes,
            min_cohort_decisions=min_decisions,
        )
        assert body == expected
        assert body.pop("benchmark_hash") == content_hash(body)

    @tried
    @given(st.lists(coded, min_size=5, max_size=40), st.randoms(use_true_random=False))
    def test_the_order_of_the_others_is_no_matter(self, others: list[Coded], chance: Any) -> None:
        shuffled = list(others)
        chance.shuffle(shuffled)
        assert report(others) == report(shuffled)

    def test_the_outer_percentiles_are_told_of_twenty_others(self) -> None:
        others = [OTHERS[number % len(OTHERS)] for number in range(25)]
        for number in range(5, 25):
            told_of = report(others[:number])["cross_customer"]["percentiles"]["success_rate"]
            assert list(told_of) == (["p10", "p25", "p50", "p75", "p90"] if number >= 20 else ["p25", "p50", "p75"])

    @pytest.mark.parametrize("number", range(5))
    def test_of_fewer_than_five_others_nothing_is_told_whatever_is_asked(self, number: int) -> None:
        bodies = [
            report(others, min_cohort_decisions=decisions)
            for others in (OTHERS[:number], OTHERS[-number:] if number else ())
            for decisions in (50, 10**6)
        ]
        for body in bodies:
            assert told_of_others(body) == told_of_others(bodies[0]) | {
                "explanation": body["cross_customer"]["explanation"]
            }
            assert body["cross_customer"]["reason"] == "too_few_scopes"
            assert body["recommendation"] == "not_compared"
        assert bodies[0] == bodies[2]

    def test_of_too_few_decisions_nothing_is_told_but_that(self) -> None:
        cohorts = ([Coded(20, 0.05, 0.5, 0.95)] * 5, [Coded(100, 0.95, 0.5, 0.9)] * 9, OTHERS)
        withheld = [report(others, min_cohort_decisions=5000) for others in cohorts]
        assert withheld[0]["cross_customer"]["reason"] == "too_few_decisions"
        assert withheld.count(withheld[0]) == len(cohorts)

    def test_thresholds_below_the_least_are_taken_for_the_least(self) -> None:
        """Whoever computes a report with lower ones, past those who refuse them, is told no more."""
        question = BenchmarksQuestion("p")
        for name in ("min_cohort_scopes", "min_cohort_decisions"):
            object.__setattr__(question, name, 1)
        for others, reason in ((OTHERS[:4], "too_few_scopes"), ([Coded(5, 0.5, 0.5, 0.95)] * 5, "too_few_decisions")):
            cohort = Cohort("2026-11", member=True, others=others)
            across = benchmark_report(OWN, cohort, question, month="2026-11")["cross_customer"]
            assert (across["reason"], across["percentiles"]) == (reason, None)

    def test_thresholds_are_compared_with_numbers_rounded_down(self) -> None:
        nine = [Coded(100, 0.5, 0.5, 0.9)] * 9
        for wanted, reason in ((5, None), (6, "too_few_scopes"), (9, "too_few_scopes")):
            assert report(nine, min_cohort_scopes=wanted)["cross_customer"]["reason"] == reason
        for wanted, reason in ((500, None), (501, "too_few_decisions"), (900, "too_few_decisions")):
            assert report(nine, min_cohort_decisions=wanted)["cross_customer"]["reason"] == reason
        shown = report(nine)["cross_customer"]
        assert (shown["scopes_at_least"], shown["decisions_at_least"]) == (5, 500)

    def test_every_state_that_tells_nothing_says_why_and_what_would_change_it(self) -> None:
        def withheld(cohort: Cohort | None, **chosen: Any) -> dict[str, Any]:
            body = benchmark_report(OWN, cohort, BenchmarksQuestion("p", **chosen), month="2026-11")
            across: dict[str, Any] = body["cross_customer"]
            assert (across["status"], body["recommendation"]) == ("withheld", "not_compared")
            told_names = ("scopes_at_least", "decisions_at_least", "percentiles", "deltas")
            assert {across[name] for name in told_names} == {None}
            assert (across["from"], across["to"]) == ("2026-09-01T00:00:00.000Z", "2026-09-30T23:59:59.999Z")
            assert across["month"] == (None if cohort is None else "2026-11")
            assert body["your_metrics"]["decisions"] == 148
            return across

        member = Cohort("2026-11", member=True, others=OTHERS)
        found = [
            withheld(None),
            withheld(Cohort("2026-11", member=False, others=OTHERS)),
            withheld(member, min_cohort_scopes=20),
            withheld(member, min_cohort_decisions=5000),
        ]
        assert [across["reason"] for across in found] == [
            *("not_frozen", "not_opted_in", "too_few_scopes", "too_few_decisions")
        ]
        for across, change in zip(
            found, ("ask again", "opt your scope in", "lower min_cohort_scopes", "more decisions"), strict=True
        ):
            assert change in across["explanation"]
            assert across["explanation"].endswith(".")

    @pytest.mark.parametrize(
        ("succeeded", "recommendation"),
        [(77, "below_cohort"), (78, "within_cohort"), (92, "within_cohort"), (93, "above_cohort")],
    )
    def test_the_callers_rate_is_compared_as_the_others_are_told(self, succeeded: int, recommendation: str) -> None:
        others = [Coded(100, rate, 0.5, 0.9) for rate in (0.1, 0.8, 0.85, 0.9, 0.95)]
        own = MonthCounts(100, 50, 100, succeeded)
        assert report(others, own)["recommendation"] == recommendation

    def test_with_few_outcomes_of_ones_own_the_others_are_told_and_nothing_is_made_of_it(self) -> None:
        body = report(own=MonthCounts(40, 20, 19, 1))
        assert (body["cross_customer"]["status"], body["recommendation"]) == ("available", "insufficient_outcomes")
        body = report(own=MonthCounts())
        assert body["cross_customer"]["deltas"] == dict.fromkeys(METRICS)
        assert body["recommendation"] == "insufficient_outcomes"

    def test_deltas_are_ones_own_rates_less_the_median(self) -> None:
        body = benchmark_example()
        assert body["cross_customer"]["deltas"] == {
            "success_rate": round(66 / 90 - 0.85, 6),
            "approval_rate": round(97 / 148 - 0.7, 6),
            "terminal_coverage": round(90 / 148 - 0.65, 6),
        }

    def test_it_is_the_same_bytes_in_another_process(self) -> None:
        program = (
            "import sys; from gate.encoding.canonical import canonical; from tests.support import reports; "
            "sys.stdout.buffer.write(canonical(reports.benchmark_example()))"
        )
        made = {
            subprocess.run(
                [sys.executable, "-c", program],
                env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
                capture_output=True,
                check=True,
                cwd=ROOT,
            ).stdout
            for seed in ("1", "2")
        }
        assert len(made) == 1


def told_of_others(body: dict[str, Any]) -> dict[str, Any]:
    across: dict[str, Any] = body["cross_customer"]
    return across


def code_of_some(wanted: Coded) -> Coded | None:
    """What is told of some counts that are told as wanted; None where there are none."""
    for decisions in range(wanted.decisions, wanted.decisions * 2):
        terminal = round(wanted.terminal_coverage * decisions)
        counts = MonthCounts(
            decisions, round(wanted.approval_rate * decisions), terminal, round(wanted.success_rate * terminal)
        )
        if code(counts) == wanted:
            return wanted
    return None


class TestPage:
    """docs/reference/formulas/benchmarks.md says what is done."""

    def test_the_notes_reasons_and_recommendations_are_those_of_reports(self) -> None:
        own = replace(OWN, truncated=True, advisory=4)
        every = benchmark_report(own, None, BenchmarksQuestion("p", verdict="yes"), month="2026-11")
        assert notes(section(NOTES_PAGE, "## Benchmarks")) == every["notes"]
        schema = resources.schema("benchmark-report")["properties"]
        reasons = [row[0].strip("`") for row in rows(section(PAGE, "## Why nothing is shown"))]
        assert [*reasons, None] == schema["cross_customer"]["properties"]["reason"]["enum"]
        named = [row[0].strip("`") for row in rows(section(PAGE, "## The recommendation"))]
        assert sorted(named) == sorted(schema["recommendation"]["enum"])

    def test_the_coverages_from_which_scopes_count_are_true(self) -> None:
        _, table = section(PAGE, "## What is frozen").split("| decisions made |")
        told_of = [line.strip("|").split("|") for line in table.splitlines() if re.match(r"\| \d", line)]
        assert len(told_of) == 5
        for steps, least in ((first.split()[0], least.strip()) for first, least in told_of):
            low = Fraction(0) if least == "any" else Fraction(least)
            for decisions in (int(steps), 2 * int(steps) - 1):
                for terminal in range(MIN_OUTCOMES, min(decisions, 60) + 1):
                    counted = code(MonthCounts(decisions, 0, terminal, 0)) is not None
                    assert counted is (Fraction(terminal, decisions) >= low), (decisions, terminal)

    def test_the_worked_example_is_that_of_the_report(self) -> None:
        listed = rows(section(PAGE, "## A worked example"))
        assert [tuple(map(float, row)) for row in listed] == [tuple(map(float, of)) for of in OTHERS]
        text = " ".join(section(PAGE, "## A worked example").split())
        own = benchmark_example()["your_metrics"]
        assert f"66 / 90 = {own['success_rate']}" in text
        assert f"{-benchmark_example()['cross_customer']['deltas']['success_rate']} below the median" in text


def test_a_moment_of_the_period_is_in_it_and_none_of_the_next_month() -> None:
    across = benchmark_example()["cross_customer"]
    last = datetime.fromisoformat(across["to"])
    assert month_of(last) == "2026-09"
    assert month_of(last + timedelta(milliseconds=1)) == "2026-10"
