"""Confidence: the interval against an exact reference, the laws it keeps, and what it calls which counts."""

from __future__ import annotations

from dataclasses import asdict
from decimal import Decimal, localcontext
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.encoding.canonical import content_hash
from gate.policy.confidence import MIN_SAMPLE, Counts, add, assess, decision_confidence, wilson_interval
from tests.gate.policy.counting import counts, tried, verdicts
from tests.support.samples import cases

# The 0.975 quantile of the standard normal distribution, as tables give it.
QUANTILE = Decimal("1.959963984540054235524594430520551527955550077447")
HALF_A_DIGIT = Decimal("0.00000050000001")

trials = st.integers(0, 10**7).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


def exact_interval(successes: int, number: int) -> tuple[Decimal, Decimal]:
    """The two rates p at which a score test just does not reject: (successes/number - p)^2 = z^2 p (1 - p) / number."""
    with localcontext(prec=60):
        rate, weight = Decimal(successes) / number, QUANTILE**2 / number
        a, b, c = 1 + weight, -(2 * rate + weight), rate**2
        root = (b * b - 4 * a * c).sqrt()
        return (-b - root) / (2 * a), (-b + root) / (2 * a)


class TestInterval:
    @tried
    @given(trials)
    def test_it_is_the_exact_one_to_six_decimals(self, tried: tuple[int, int]) -> None:
        successes, number = tried
        if number == 0:
            assert wilson_interval(0, 0) == (0.0, 1.0)
            return
        for found, exact in zip(wilson_interval(successes, number), exact_interval(successes, number), strict=True):
            assert abs(Decimal(found) - exact) <= HALF_A_DIGIT
            assert found == round(found, 6)

    @pytest.mark.parametrize(
        ("successes", "number", "low", "high"),
        [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0, 0.1611), (1, 29, 0.0061, 0.1718)],
    )
    def test_published_values(self, successes: int, number: int, low: float, high: float) -> None:
        """R. G. Newcombe, "Two-sided confidence intervals for the single proportion", 1998, table I."""
        assert wilson_interval(successes, number) == pytest.approx((low, high), abs=5e-5)

    @tried
    @given(trials)
    def test_it_holds_the_rate_within_0_and_1_and_mirrors_failures(self, tried: tuple[int, int]) -> None:
        successes, number = tried
        low, high = wilson_interval(successes, number)
        assert 0 <= low <= high <= 1
        if number:
            assert low - 1e-6 <= successes / number <= high + 1e-6
        mirrored = wilson_interval(number - successes, number)
        assert mirrored == pytest.approx((1 - high, 1 - low), abs=1.1e-6)

    @tried
    @given(trials.filter(lambda tried: tried[0] < tried[1]))
    def test_a_success_more_among_as_many_never_lowers_it(self, tried: tuple[int, int]) -> None:
        successes, number = tried
        low, high = wilson_interval(successes, number)
        lower, higher = wilson_interval(successes + 1, number)
        assert lower >= low
        assert higher >= high

    @tried
    @given(trials.filter(lambda tried: 0 < tried[1] <= 10_000), st.integers(2, 50))
    def test_more_outcomes_of_the_same_rate_narrow_it(self, tried: tuple[int, int], times: int) -> None:
        successes, number = tried
        low, high = wilson_interval(successes, number)
        lower, higher = wilson_interval(times * successes, times * number)
        assert higher - lower < high - low
        assert low <= lower
        assert higher <= high


class TestAssessment:
    @pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in cases("confidence")])
    def test_counts_are_called_what_the_documentation_says(self, case: dict[str, Any]) -> None:
        times = case.get("times", [1] * len(case["versions"]))
        versions = [Counts(**of) for of, number in zip(case["versions"], times, strict=True) for _ in range(number)]
        policy = Counts(**case["policy"]) if "policy" in case else add(versions)
        found = assess(versions, policy, verdict=case["verdict"], min_sample=case.get("min_sample", MIN_SAMPLE))
        assert asdict(found) == {
            "score": case["score"],
            "level": case["level"],
            "similar_decisions": case["similar"],
            "policy_stability": case["stability"],
            "recommendation": case["recommendation"],
        }

    @tried
    @given(st.lists(counts, max_size=6), counts, verdicts, st.integers(1, 10_000), st.randoms(use_true_random=False))
    def test_the_order_of_versions_and_asking_again_change_nothing(
        self, versions: list[Counts], others: Counts, verdict: str | None, min_sample: int, random: Any
    ) -> None:
        policy = add([*versions, others])
        found = assess(versions, policy, verdict=verdict, min_sample=min_sample)
        shuffled = random.sample(versions, len(versions))
        assert assess(shuffled, policy, verdict=verdict, min_sample=min_sample) == found

    @tried
    @given(counts, verdicts)
    def test_a_success_in_the_place_of_another_result_never_lowers_the_score(
        self, of: Counts, verdict: str | None
    ) -> None:
        for status in ("partial", "failed", "reverted"):
            if number := getattr(of, status):
                better = of._replace(**{status: number - 1}, succeeded=of.succeeded + 1)
                assert assess([better], better, verdict=verdict).score >= assess([of], of, verdict=verdict).score

    @tried
    @given(counts, counts, st.integers(0, 50), st.integers(0, 50), verdicts)
    def test_ambiguous_outcomes_count_as_decisions_and_change_nothing_else(
        self, of: Counts, others: Counts, pending: int, review: int, verdict: str | None
    ) -> None:
        more = of._replace(pending=of.pending + pending, review=of.review + review)
        found, again = (assess([versions], add([of, others]), verdict=verdict) for versions in (of, more))
        assert again.similar_decisions == found.similar_decisions + pending + review
        assert asdict(again) | {"similar_decisions": 0} == asdict(found) | {"similar_decisions": 0}

    @tried
    @given(st.lists(counts, min_size=1, max_size=6), st.integers(1, 100))
    def test_stability_is_1_less_what_the_worst_version_lacks(self, versions: list[Counts], min_sample: int) -> None:
        policy = add(versions)
        found = assess(versions, policy, verdict="yes", min_sample=min_sample).policy_stability
        known = [of for of in versions if of.terminal >= min_sample]
        if not known:
            assert found is None
            return
        assert found is not None
        assert 0 <= found <= 1
        lacking = max(policy.interval[0] - of.interval[1] for of in known)
        assert found == pytest.approx(1 - max(0, lacking), abs=1e-9)

    @tried
    @given(st.lists(counts, min_size=1, max_size=6), verdicts, st.integers(1, 10_000))
    def test_high_needs_the_sample_the_score_and_every_known_version(
        self, versions: list[Counts], verdict: str | None, min_sample: int
    ) -> None:
        found = assess(versions, add(versions), verdict=verdict, min_sample=min_sample)
        assert (found.level == "insufficient") == (add(versions).terminal < min_sample)
        if found.level == "high":
            assert found.score >= 0.8
            assert found.policy_stability is None or found.policy_stability >= 0.95
        assert ("high_confidence" in found.recommendation) == (found.level == "high")

    @tried
    @given(st.lists(counts, max_size=6))
    def test_counts_add_up(self, several: list[Counts]) -> None:
        together = add(several)
        for status in Counts._fields:
            assert getattr(together, status) == sum(getattr(of, status) for of in several)
        assert together.total == together.terminal + together.pending + together.review == sum(map(sum, several))


class TestOnRecords:
    def test_it_has_the_members_of_the_protocol_and_its_own_hash(self) -> None:
        confidence = dict(decision_confidence("yes", Counts(succeeded=20), Counts(succeeded=20)))
        own = confidence.pop("confidence_hash")
        assert confidence == {
            "decision_confidence_version": "decision_confidence_v1",
            "score": 0.838875,
            "level": "high",
            "similar_decisions": 20,
            "policy_stability": 1.0,
            "recommendation": "high_confidence_proceed",
        }
        assert own == content_hash(confidence) == "cbb07e3f13716b55bcff855c751084b7e7862863a88efadae24a16f0e424005d"

    @tried
    @given(counts, counts, st.sampled_from(["yes", "no", "review"]))
    def test_it_is_the_assessment_of_the_records_own_version(
        self, similar: Counts, others: Counts, verdict: str
    ) -> None:
        policy = add([similar, others])
        found = decision_confidence(verdict, similar, policy)
        assert asdict(assess([similar], policy, verdict=verdict)).items() <= found.items()
