"""Effectiveness: its formulas against counts told one by one, the laws they keep, and what is recommended when."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.policy.anomalies.statistics import Share
from gate.policy.confidence import HIGH, MEDIUM, Counts, wilson_interval
from gate.policy.effectiveness import (
    Counted,
    Group,
    Standing,
    assess,
    below_others,
    bounds,
    confidence,
    recommendation,
    share,
    together,
)
from gate.policy.versions import compare_versions
from tests.gate.policy.counting import AT, MONDAY, STATUSES, counted, decisions, standing, standings, tried
from tests.support.samples import cases

HALF_A_DIGIT = Fraction(1, 1_999_999)

samples = st.integers(1, 500)


class TestStanding:
    @tried
    @given(decisions())
    def test_it_is_what_counting_one_by_one_gives(self, made: list[tuple[str, str, str, str, bool]]) -> None:
        of, told = standing(made), [decision[3] for decision in made]
        terminal = [status for status in told if status in ("succeeded", "partial", "failed", "reverted")]
        reported = [status for status in told if status != "unreported"]
        assert (of.decisions, of.reported, of.terminal) == (len(told), len(reported), len(terminal))
        assert of.counts == Counts(*(told.count(status) for status in Counts._fields))
        worth = {"succeeded": Fraction(1), "partial": Fraction(1, 2)}
        for found, part, whole in (
            (of.score, sum(worth.get(status, Fraction(0)) for status in terminal), terminal),
            (of.success_rate, terminal.count("succeeded"), terminal),
            (of.failure_rate, terminal.count("failed") + terminal.count("reverted"), terminal),
            (of.review_rate, told.count("review"), reported),
            (of.terminal_coverage, len(terminal), told),
        ):
            if not whole:
                assert found is None
                continue
            assert found is not None
            assert abs(Fraction(found) - Fraction(part) / len(whole)) <= HALF_A_DIGIT
            assert found == round(found, 6)
        assert of.interval == wilson_interval(terminal.count("succeeded"), len(terminal))
        assert (of.success_rate, of.interval) == (of.counts.success_rate, of.counts.interval)

    @tried
    @given(st.lists(standings, max_size=6))
    def test_standings_add_up(self, several: list[Standing]) -> None:
        whole = together(several)
        for status in STATUSES:
            assert getattr(whole, status) == sum(getattr(of, status) for of in several)
        assert whole.decisions == sum(map(sum, several))

    def test_nothing_has_no_shares(self) -> None:
        none = together([])
        assert none == Standing()
        assert (none.score, none.success_rate, none.failure_rate, none.review_rate, none.terminal_coverage) == (
            None,
        ) * 5
        assert none.interval == (0.0, 1.0)
        assert share(0, 0) is None


class TestAssessment:
    @pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in cases("effectiveness")])
    def test_counts_lead_to_what_the_documentation_says(self, case: dict[str, Any]) -> None:
        by_version = {str(number): Standing(**of) for number, of in enumerate(case["versions"])}
        whole = together(by_version.values())
        approved = Standing(**case.get("approved", {}))
        let_through = Standing(**case.get("let_through", case.get("approved", {})))
        # Versions are beside each other where all that was reported was let through.
        shares = {version: {"": Share(of.succeeded, of.terminal)} for version, of in by_version.items()}
        all_through = let_through.terminal == whole.terminal
        rest = Standing(*(all_ - yes for all_, yes in zip(whole, approved, strict=True)))
        assert min(rest) >= 0, "More were approved than were decided."
        of = Counted(
            by_version={version: Group(of, AT, AT) for version, of in by_version.items()},
            by_verdict={"yes": approved, "no": rest} if "approved" in case else {"no": rest},
            by_rule={"rule:default": whole},
            by_week={MONDAY: whole},
            by_disposition={"let_through": let_through},
            compared=compare_versions(shares if all_through else {}, 1.0, min_sample=case.get("min_sample", 20)),
            metrics=(),
            first=AT,
            last=AT,
            chain_position=1,
            merkle_root=None,
            truncated=False,
        )
        found = assess(of, min_sample=case.get("min_sample", 20))
        assert (found.score, found.confidence, found.recommendation, sorted(found.below_others)) == (
            case["score"],
            case["confidence"],
            case["recommendation"],
            [str(number) for number in case["below"]],
        )

    @tried
    @given(decisions(), samples)
    def test_it_is_made_of_its_parts(self, made: list[tuple[str, str, str, str, bool]], min_sample: int) -> None:
        of = counted(made)
        assert of.standing == standing(made)
        approved = standing([decision for decision in made if decision[1] == "yes"])
        acted = standing([decision for decision in made if decision[4]])
        found = assess(of, min_sample=min_sample)
        below = frozenset(version for version, each in of.compared.items() if each.is_below)
        assert (found.score, found.below_others) == (of.standing.score, below)
        assert found.confidence == confidence(of.standing, approved)
        advice = recommendation(acted, approved, min_sample=min_sample, version_below=bool(below))
        assert found.recommendation == (advice if made else "no_decisions")

    @tried
    @given(decisions(), samples)
    def test_what_came_of_actions_that_were_not_let_through_changes_no_recommendation(
        self, made: list[tuple[str, str, str, str, bool]], min_sample: int
    ) -> None:
        stopped = [("a", "no", "rule:x", "failed", False)] * 30 + [("b", "review", "rule:x", "succeeded", False)] * 30
        before, after = (assess(counted(of), min_sample=min_sample) for of in (made, [*made, *stopped]))
        assert before.below_others == after.below_others
        assert before.recommendation == after.recommendation or not made

    @tried
    @given(standings, standings)
    def test_confidence_is_between_0_and_1_and_grows_with_what_is_reported(
        self, approved: Standing, others: Standing
    ) -> None:
        whole = together([approved, others])
        found = confidence(whole, approved)
        assert 0 <= found <= 1
        if not whole.terminal:
            assert found == 0
        heard = approved._replace(unreported=0)
        assert confidence(together([heard, others]), heard) >= found

    @tried
    @given(standings, standings, samples, st.booleans())
    def test_healthy_needs_the_sample_the_rate_the_coverage_and_no_version_below(
        self, approved: Standing, others: Standing, min_sample: int, version_below: bool
    ) -> None:
        whole = together([approved, others])
        said = recommendation(whole, approved, min_sample=min_sample, version_below=version_below)
        low, _ = whole.interval
        enough = whole.terminal >= min_sample
        covered = 2 * approved.terminal >= approved.decisions
        assert (said == "healthy") == (enough and not version_below and covered and low >= HIGH)
        assert (said == "monitor_outcomes") == (enough and not version_below and covered and MEDIUM <= low < HIGH)
        assert (said == "review_version") == (enough and version_below)
        assert (said in ("no_decisions", "collect_outcomes")) == (not enough)


class TestBelowOthers:
    @tried
    @given(st.lists(standings, min_size=1, max_size=8), samples)
    def test_each_is_compared_with_all_others_together(self, versions: list[Standing], min_sample: int) -> None:
        by_version = {str(number): of for number, of in enumerate(versions)}
        found = below_others(by_version, min_sample)
        for version, of in by_version.items():
            others = together(other for name, other in by_version.items() if name != version)
            known = of.terminal >= min_sample and others.terminal >= min_sample
            assert (version in found) == (known and of.interval[1] < others.interval[0])

    @tried
    @given(standings, st.integers(1, 20))
    def test_versions_that_do_alike_are_never_below(self, of: Standing, number: int) -> None:
        assert below_others({str(version): of for version in range(number)}, 1) == frozenset()

    def test_there_is_no_bound_to_the_versions(self) -> None:
        many = {f"v{number}": Standing(succeeded=40, failed=number % 2) for number in range(10_000)}
        assert below_others({**many, "bad": Standing(failed=20)}, 20) == {"bad"}


class TestBounds:
    @tried
    @given(decisions())
    def test_they_hold_whatever_would_have_come_of_the_rest(self, made: list[tuple[str, str, str, str, bool]]) -> None:
        found = bounds(standing(made), standing([decision for decision in made if decision[4]]))
        assert found.decisions == found.observed + found.unknown + found.unobservable == len(made)
        if not made:
            assert (found.low, found.high) == (0, 1)
            return
        observed = [status for *_, status, acted in made if acted and status in Counts._fields[:4]]
        assert (found.observed, found.succeeded) == (len(observed), observed.count("succeeded"))
        for of_the_rest in range(len(made) - len(observed) + 1):
            share_then = Fraction(found.succeeded + of_the_rest, len(made))
            assert found.low - HALF_A_DIGIT <= share_then <= found.high + HALF_A_DIGIT

    def test_nothing_is_left_open_where_everything_was_let_through_and_reported(self) -> None:
        of = Standing(succeeded=3, partial=1)
        assert bounds(of, of)[-2:] == (0.75, 0.75)

    def test_everything_is_left_open_where_nothing_was_let_through(self) -> None:
        assert bounds(Standing(succeeded=3, unreported=5), Standing())[-2:] == (0, 1)
