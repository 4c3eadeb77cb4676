"""Versions beside each other: what is said where raw rates mislead, and of which versions nothing is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.policy.anomalies.statistics import Share
from gate.policy.standardization import compare, total
from gate.policy.versions import LEAST_COMMON, MOST_SENTENCES, Cells, compare_versions, sentences
from tests.gate.policy.counting import tried

# B succeeds more often in every stratum, and met mostly the hard cases.
SIMPSON: Cells = {
    "A": {"easy": Share(828, 900), "hard": Share(55, 100)},
    "B": {"easy": Share(97, 100), "hard": Share(630, 900)},
}
ALIKE: Cells = {"A": {"x": Share(160, 200), "y": Share(20, 50)}, "B": {"x": Share(80, 100), "y": Share(40, 100)}}

shares = st.integers(0, 60).flatmap(lambda whole: st.builds(Share, st.integers(0, whole), st.just(whole)))
cells = st.dictionaries(
    st.sampled_from("abcdef"), st.dictionaries(st.sampled_from("stuvw"), shares, max_size=5), max_size=6
)


def below(of: Cells, effect: float = 1.0, min_sample: int = 20) -> set[str]:
    """The versions that do worse among like cases."""
    return {name for name, of in compare_versions(of, effect, min_sample=min_sample).items() if of.is_below}


class TestSimpson:
    def test_the_better_version_is_below_as_it_is_and_not_among_like_cases(self) -> None:
        compared = compare_versions(SIMPSON, 1.0, min_sample=20)
        assert (compared["A"].raw_is_below, compared["B"].raw_is_below) == (False, True)
        assert (compared["A"].is_below, compared["B"].is_below) == (True, False)
        assert all(of.disagrees and of.share == 1 for of in compared.values())

    def test_one_sentence_says_so(self) -> None:
        assert sentences(compare_versions(SIMPSON, 1.0, min_sample=20)) == [
            "Version A succeeded in 88.3% of its let-through cases and the other versions in 72.7%; among like cases, "
            "it succeeded in 73.5% and they in 83.5%: it does worse, which the raw rates hide."
        ]

    def test_a_version_that_is_as_good_and_met_harder_cases_is_not_below(self) -> None:
        of = {
            "A": {"easy": Share(810, 900), "hard": Share(60, 100)},
            "B": {"easy": Share(90, 100), "hard": Share(540, 900)},
        }
        compared = compare_versions(of, 1.0, min_sample=20)
        assert compared["B"].raw_is_below
        assert below(of) == set()
        assert len(sentences(compared)) == 1
        assert sentences(compared)[0].endswith(": it does not do worse; the versions let through different cases.")

    def test_a_version_that_is_a_little_worse_is_not_said_to_be_as_good(self) -> None:
        of = {
            "A": {"easy": Share(810, 900), "hard": Share(60, 100)},
            "B": {"easy": Share(89, 100), "hard": Share(538, 900)},
        }
        assert sentences(compare_versions(of, 1.0, min_sample=20))[0].endswith(
            ": the difference among like cases may be chance."
        )


class TestWithoutAReversal:
    def test_versions_that_do_alike_are_neither_below_nor_spoken_of(self) -> None:
        compared = compare_versions(ALIKE, 1.0, min_sample=20)
        assert below(ALIKE) == set()
        assert [of.standardized.difference.value for of in compared.values() if of.standardized] == [0, 0]

    def test_a_version_that_is_worse_either_way_is_below_without_a_word(self) -> None:
        of = {"A": {"x": Share(190, 200), "y": Share(90, 100)}, "B": {"x": Share(140, 200), "y": Share(60, 100)}}
        assert below(of) == {"B"}
        assert sentences(compare_versions(of, 1.0, min_sample=20)) == []

    @tried
    @given(cells)
    def test_one_stratum_for_all_makes_like_cases_of_all(self, of: dict[str, dict[str, Share]]) -> None:
        pooled = {version: {"": total(shares.values())} for version, shares in of.items()}
        for each in compare_versions(pooled, 1.0, min_sample=20).values():
            assert each.standardized == each.raw
            assert (each.share, each.disagrees, each.raw_is_below) == (1, False, each.is_below)

    @tried
    @given(cells, st.integers(1, 40), st.floats(1, 3))
    def test_each_is_compared_with_all_others_together(
        self, of: dict[str, dict[str, Share]], min_sample: int, effect: float
    ) -> None:
        compared = compare_versions(of, effect, min_sample=min_sample)
        for version, own in of.items():
            others = [each for name, each in of.items() if name != version]
            beside = {
                stratum: (share, total(each.get(stratum, Share(0, 0)) for each in others))
                for stratum, share in own.items()
            }
            whole = (total(own.values()), total(share for each in others for share in each.values()))
            raw = compare({"": whole}, effect)
            assert (version in compared) == (raw is not None)
            if version in compared:
                found = compared[version]
                assert (found.raw, found.standardized) == (raw, compare(beside, effect))
                assert found.is_enough == (min(whole[0].whole, whole[1].whole) >= min_sample * effect)
                if found.is_below:
                    assert found.standardized is not None
                    assert found.standardized.difference.value < 0
                    assert found.share >= LEAST_COMMON
                    assert min(found.standardized.cases, found.standardized.other_cases) >= min_sample * effect


class TestWhatAVersionAloneLetsThrough:
    """Version B lets through the hard cases, which A stops; with the easy ones both do alike."""

    CELLS: ClassVar[Cells] = {
        "A": {"easy": Share(180, 200)},
        "B": {"easy": Share(90, 100), "hard": Share(12, 40)},
    }
    MET: ClassVar[Cells] = {
        "A": {"easy": Share(210, 210), "hard": Share(4, 90)},
        "B": {"easy": Share(105, 110), "hard": Share(45, 46)},
    }

    def test_it_is_judged_by_it(self) -> None:
        compared = compare_versions(self.CELLS, 1.0, min_sample=20, met=self.MET)
        of = compared["B"]
        assert (of.admits_worse, of.like_is_below, of.is_below) == (True, False, True)
        assert of.admitted is not None
        assert (of.admitted.rate, of.admitted.cases, of.admitted.others, of.admitted.other_cases) == (0.3, 40, 0.9, 200)
        assert compared["A"].admitted is None
        assert not compared["A"].is_below

    def test_one_sentence_says_so(self) -> None:
        assert sentences(compare_versions(self.CELLS, 1.0, min_sample=20, met=self.MET)) == [
            "Version B let through 40 cases of a kind that the other versions mostly stop: 12 of them succeeded "
            "(30.0%). Of the cases that the others let through, 90.0% succeeded."
        ]

    def test_few_cases_of_a_version_that_has_enough_are_enough_where_they_all_fail(self) -> None:
        cells = {**self.CELLS, "B": {"easy": Share(90, 100), "hard": Share(0, 5)}}
        assert compare_versions(cells, 1.0, min_sample=20, met=self.MET)["B"].admits_worse
        assert not compare_versions(cells, 1.0, min_sample=106, met=self.MET)["B"].admits_worse

    def test_where_nothing_is_known_of_what_was_stopped_nothing_is_said(self) -> None:
        compared = compare_versions(self.CELLS, 1.0, min_sample=20)
        assert compared["B"].admitted is None
        assert not compared["B"].is_below

    @pytest.mark.parametrize(
        ("own", "others", "is_found"),
        [
            (Share(8, 10), Share(1, 5), True),
            (Share(7, 10), Share(1, 5), False),
            (Share(8, 10), Share(2, 5), False),
            (Share(8, 10), Share(0, 4), False),
            (Share(8, 10), Share(0, 0), False),
        ],
    )
    def test_mostly_is_four_fifths_of_at_least_five(self, own: Share, others: Share, *, is_found: bool) -> None:
        met = {"A": {**self.MET["A"], "hard": others}, "B": {**self.MET["B"], "hard": own}}
        compared = compare_versions(self.CELLS, 1.0, min_sample=20, met=met)
        assert (compared["B"].admitted is not None) == is_found

    def test_cases_that_do_a_little_worse_are_no_fault(self) -> None:
        cells = {
            "A": {"easy": Share(18_000, 20_000)},
            "B": {"easy": Share(9_000, 10_000), "hard": Share(3_240, 4_000)},
        }
        of = compare_versions(cells, 1.0, min_sample=20, met=self.MET)["B"]
        assert of.admitted is not None
        assert of.admitted.p_value < 1e-10
        assert of.admitted.difference.value > -0.1
        assert not of.admits_worse


class TestTooLittle:
    def test_a_stratum_of_one_version_alone_has_no_part(self) -> None:
        of = {"A": {"x": Share(60, 100), "only": Share(80, 80)}, "B": {"x": Share(90, 100)}}
        compared = compare_versions(of, 1.0, min_sample=20)
        like = compared["A"].standardized
        assert like is not None
        assert (like.rate, like.others, like.cases, like.strata) == (0.6, 0.9, 100, 1)
        assert (compared["A"].share, compared["B"].share) == (0.555556, 1)
        assert below(of) == {"A"}

    def test_versions_without_a_like_case_are_not_judged_and_it_is_said(self) -> None:
        of = {"A": {"x": Share(50, 100)}, "B": {"y": Share(90, 100)}}
        compared = compare_versions(of, 1.0, min_sample=20)
        assert all(each.standardized is None and each.share == 0 for each in compared.values())
        assert compared["A"].raw_is_below
        assert below(of) == set()
        assert [sentence[:44] for sentence in sentences(compared)] == [
            "Version A is not judged: 0% of its let-throu",
            "Version B is not judged: 0% of its let-throu",
        ]

    def test_a_version_most_of_whose_cases_have_no_like_one_is_not_judged(self) -> None:
        of = {"A": {"x": Share(10, 100), "only": Share(90, 101)}, "B": {"x": Share(90, 100)}}
        compared = compare_versions(of, 1.0, min_sample=20)
        assert compared["A"].share < LEAST_COMMON
        assert (compared["A"].is_below, compared["A"].disagrees) == (False, False)
        assert sentences(compared) == [
            "Version A is not judged: 50% of its let-through cases have a like one among those of the other versions.",
            "Version A does worse in one kind of case: with x, it succeeded in 10.0% of 100 cases and the others "
            "in 90.0% of 100.",
        ]

    @pytest.mark.parametrize(("cases", "found"), [(20, {"A"}), (19, set())])
    def test_a_version_needs_min_sample_cases(self, cases: int, found: set[str]) -> None:
        of = {"A": {"x": Share(2, cases)}, "B": {"x": Share(90, 100)}}
        assert below(of) == found
        assert below({"C": of["B"], "D": of["A"]}) == ({"D"} if found else set())

    def test_a_version_with_fewer_is_not_spoken_of(self) -> None:
        of = {"A": {"y": Share(2, 19)}, "B": {"x": Share(90, 100)}, "C": {"x": Share(90, 100)}}
        assert sentences(compare_versions(of, 1.0, min_sample=20)) == []

    def test_cases_that_arrive_together_count_for_fewer(self) -> None:
        of = {"A": {"x": Share(70, 100)}, "B": {"x": Share(90, 100)}}
        assert below(of) == {"A"}
        assert below(of, 5.0) == set()

    @pytest.mark.parametrize("of", [{}, {"A": {}}, {"A": {"x": Share(5, 9)}}, {"A": {"x": Share(5, 9)}, "B": {}}])
    def test_a_version_without_another_is_not_compared(self, of: Mapping[str, Mapping[str, Share]]) -> None:
        assert compare_versions(of, 1.0, min_sample=1) == {}

    @pytest.mark.parametrize("rate", [0, 1])
    def test_versions_that_all_fail_or_all_succeed_are_not_below(self, rate: int) -> None:
        of = {name: {"x": Share(rate * 50, 50), "y": Share(rate * 9, 9)} for name in "ABC"}
        assert below(of) == set()


class TestMany:
    def test_of_versions_that_do_equally_well_none_is_below(self) -> None:
        chance = np.random.default_rng(5)
        said = 0
        for _ in range(200):
            of = {
                f"v{version}": {
                    stratum: Share(int(chance.binomial(size, rate)), size)
                    for stratum, rate, size in (("x", 0.9, 40), ("y", 0.5, int(chance.integers(1, 60))))
                }
                for version in range(20)
            }
            said += bool(below(of))
        # One in two hundred is the most that is expected.
        assert said <= 4

    def test_thousands_are_each_compared_and_few_are_spoken_of(self) -> None:
        good = {
            f"v{number:04}": {f"s{at}": Share(9, 10) for at in range(number % 7, number % 7 + 4)}
            for number in range(3000)
        }
        alone = {f"w{number:04}": {f"own{number}": Share(30, 30)} for number in range(500)}
        bad = {"bad": {f"s{at}": Share(10, 40) for at in range(9)}}
        compared = compare_versions({**good, **alone, **bad}, 1.0, min_sample=20)
        assert len(compared) == 3501
        assert {name for name, of in compared.items() if of.is_below} == {"bad"}
        told = sentences(compared)
        assert len(told) == MOST_SENTENCES + 1
        assert told[-1] == "The same is true of 490 more of the versions."
