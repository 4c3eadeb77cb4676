"""How strong an anomaly is: the marks, what lies between them, and what each kind of break scores."""

from __future__ import annotations

import math
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.policy.anomalies import scores
from gate.policy.anomalies.breaks import RULES, Broken
from gate.policy.anomalies.scores import Marks, score, severity
from tests.gate.policy.counting import tried
from tests.support.samples import cases

CASES: Final = cases("anomalies")
MEASURES: Final = {name: marks for name, marks in vars(scores).items() if isinstance(marks, Marks)}


def named(member: str) -> list[Any]:
    return [pytest.param(case, id=case["name"]) for case in CASES if member in case]


@pytest.mark.parametrize("case", named("measure"))
def test_a_strength_scores_by_its_marks(case: dict[str, Any]) -> None:
    found = score(case["strength"], MEASURES[case["measure"]])
    assert (found, severity(found)) == (case["score"], case["severity"])


@pytest.mark.parametrize("case", named("break"))
def test_a_break_scores_by_its_kind_and_some_by_their_share(case: dict[str, Any]) -> None:
    broken = Broken(case["break"], case["count"], case["of"], "", "", ())
    assert (broken.score, severity(broken.score)) == (case["score"], case["severity"])


def test_every_kind_of_break_and_every_measure_has_a_case() -> None:
    assert {case["break"] for case in CASES if "break" in case} == RULES.keys()
    assert {case["measure"] for case in CASES if "measure" in case} == MEASURES.keys()


strengths = st.floats(0, 1e6) | st.floats(0, 2)
measures = st.sampled_from(sorted(MEASURES))


@tried
@given(strengths, strengths, measures)
def test_a_greater_strength_never_scores_less(one: float, other: float, measure: str) -> None:
    less, more = sorted((one, other))
    assert 0 <= score(less, MEASURES[measure]) <= score(more, MEASURES[measure]) <= 1


@tried
@given(strengths, measures)
def test_a_score_does_not_jump(strength: float, measure: str) -> None:
    marks = MEASURES[measure]
    # Nowhere is it steeper than from nothing to the first mark, or from there to the next.
    steepest = max(0.35 / marks.noticeable, 0.25 / (marks.considerable - marks.noticeable))
    steepest = max(steepest, 0.2 / (marks.great - marks.considerable))
    further = strength + 1e-4
    assert score(further, marks) - score(strength, marks) <= steepest * 1e-4 + 2e-6


@pytest.mark.parametrize("measure", sorted(MEASURES))
def test_the_marks_score_where_severities_begin(measure: str) -> None:
    marks = MEASURES[measure]
    for mark, told in zip(marks, (0.35, 0.6, 0.8), strict=True):
        assert score(mark, marks) == pytest.approx(told, abs=0)
        assert score(math.nextafter(mark, 0), marks) <= told


@pytest.mark.parametrize(
    ("of", "told"),
    [(0, "low"), (0.35, "low"), (0.599999, "low"), (0.6, "medium"), (0.799999, "medium"), (0.8, "high"), (1, "high")],
)
def test_a_severity_begins_at_its_edge(of: float, told: str) -> None:
    assert severity(of) == told


@tried
@given(st.sampled_from(sorted(RULES)), st.integers(1, 10**6), st.integers(0, 10**6))
def test_a_break_is_always_listed_and_more_of_it_never_scores_less(kind: str, count: int, others: int) -> None:
    of = count + others
    broken = Broken(kind, count, of, "", "", ())
    assert 0.35 <= broken.score <= Broken(kind, min(of, count + 1), of, "", "", ()).score <= 1
    if kind in ("approved_without_receipt", "outcome_overdue"):
        assert severity(broken.score) != "high"
