"""What a dry run keeps: exact sums, and no more names and outcomes than it has room for, those that occur first."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from gate.policy.means import Sums, sums_of
from tests.support.rulebooks import compare, rule, rulebook
from tests.support.tiers import examples
from workbench.evaluator import FAILED
from workbench.facts import fact_series
from workbench.migration import values
from workbench.migration.deciding import APPROVED, SAME, told_result
from workbench.migration.source import OUTCOME
from workbench.migration.tally import EXAMPLES, Names, Outcomes
from workbench.migration.values import ValueTally
from workbench.values import exact_sums

finite = st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=examples(60))
@given(st.lists(st.tuples(st.sampled_from(["yes", "no"]), finite | st.sampled_from([0.0, -0.0, 5e-324])), min_size=1))
def test_sums_are_exact_whatever_the_values(given_: list[tuple[str, float]]) -> None:
    frame = pl.DataFrame(given_, schema={"of": pl.String, "value": pl.Float64}, orient="row")
    expected = {(of,): sums_of(value for name, value in given_ if name == of) for of, _ in given_}
    assert exact_sums(frame, ["of"]) == expected


def test_sums_of_parts_are_those_of_the_whole() -> None:
    parts = [[1e300, 0.1], [-1e300, 0.2], []]
    assert sum(map(sums_of, parts), Sums()) == sums_of(value for part in parts for value in part)
    assert sums_of([1e300, 0.1, -1e300]).total == Fraction(0.1)


@settings(max_examples=examples(60))
@given(
    st.lists(st.lists(st.tuples(st.sampled_from("abcdef") | st.none(), st.integers(0, 2)), max_size=30), max_size=4),
    st.integers(1, 4),
)
def test_names_are_told_apart_in_the_order_in_which_they_occur(stretches: list[list[Any]], most: int) -> None:
    names, position, seen = Names(most), 0, []
    for stretch in stretches:
        rows = [(name, number, position + at) for at, (name, number) in enumerate(stretch, 1)]
        position += len(rows)
        seen += rows
        names.add(
            pl.DataFrame(rows, schema={"name": pl.String, "number": pl.UInt8, "position": pl.Int64}, orient="row")
        )
    kept = list(dict.fromkeys(name for name, _, _ in seen))[:most]
    told = {(name, number): (decisions, list(at)) for name, number, decisions, at in names.frame.iter_rows()}
    expected: dict[Any, list[int]] = {}
    for name, number, at in seen:
        if name in kept:
            expected.setdefault((name, number), []).append(at)
    assert told == {key: (len(at), at[-EXAMPLES:]) for key, at in expected.items()}
    beyond = Counter(number for name, number, _ in seen if name not in kept)
    assert dict(names.beyond.select("number", "decisions").iter_rows()) == beyond


def test_outcomes_beyond_the_bound_are_told_by_their_verdict_alone() -> None:
    def rows(*reasons: str) -> pl.DataFrame:
        return pl.DataFrame(
            [("no" if reason in "bd" else "yes", "V", "act", reason, "rule:r") for reason in reasons],
            schema=dict.fromkeys(OUTCOME, pl.String),
            orient="row",
        )

    outcomes = Outcomes(most=3)
    found = [outcomes.numbers(rows(*stretch)).to_list() for stretch in ("ab", "bca", "dcea")]
    assert found == [[0, 1], [1, 2, 0], [4, 2, 3, 0]]
    told = outcomes.told
    assert [told[at][3] for at in (0, 1, 2)] == ["a", "b", "c"]
    assert [told[at] for at in (3, 4)] == [("yes", *[None] * 4), ("no", *[None] * 4)]


def test_a_default_outcome_that_reads_as_that_of_refused_facts_is_the_same_outcome() -> None:
    needs = ("review", "NEEDS_INPUT", "collect_required_input", "INPUT_SCHEMA_FAILED")
    outcomes = Outcomes()
    frame = pl.DataFrame([(*needs, "rule:default"), (*needs, FAILED)], schema=list(OUTCOME), orient="row")
    outcomes.numbers(frame)
    assert outcomes.told[0] == outcomes.told[1] == (*needs, FAILED)


def counted(groups: pl.DataFrame) -> dict[str, int]:
    """How many decisions some groups have."""
    return {"decisions": int(groups["decisions"].sum())}


def by_class(field: str, body: Any, facts: list[dict[str, Any]]) -> list[tuple[str, int]]:
    """The decisions by the classes of a field."""
    tally = ValueTally(field, [body])
    fates = pl.Series("fate", [(SAME, APPROVED)[at % 2] for at in range(len(facts))], pl.UInt8)
    tally.add(pl.DataFrame([fates, pl.Series("position", range(1, len(facts) + 1)), *fact_series(facts, [field])]))
    return [(each["class"], each["decisions"]) for each in tally.classes(counted)]


def test_the_most_frequent_values_are_told_and_the_others_together(monkeypatch: Any) -> None:
    monkeypatch.setattr(values, "MAX_VALUES", 2)
    facts: list[dict[str, Any]] = (
        [{"f": "b"}] * 3 + [{"f": ["x"]}] * 4 + [{"f": "a"}] * 3 + [{"f": "y" * 201}, {}, {"f": 7}]
    )
    assert by_class("f", rulebook(), facts) == [
        ("f is absent", 1),
        ("f is a number", 1),
        ('f is ["x"]', 4),
        ('f is "a"', 3),
        ("f is another value", 4),
    ]
    assert by_class("f", rulebook(), [{"f": "y" * 201}]) == [("f is a long value", 1)]


def test_values_of_a_type_that_is_not_declared_are_told_as_such() -> None:
    facts: list[dict[str, Any]] = [{"f": value} for value in (1, 2.5, "1", "2", None, True, [1], {"a": 1})]
    body = rulebook(rule("r", compare("f", "gte", 2)), f="integer")
    assert by_class("f", body, facts) == [
        ("f is null (wrong type)", 1),
        ("f is true (wrong type)", 1),
        ("f < 2 (a whole number)", 1),
        ("f > 2 (a number with a fraction)", 1),
        ("f is a string (wrong type)", 2),
        ("f is an array (wrong type)", 1),
        ("f is an object (wrong type)", 1),
    ]


def test_classes_of_numbers_beyond_the_bound_are_one(monkeypatch: Any) -> None:
    monkeypatch.setattr(values, "MAX_NUMBERS", 2)
    body = rulebook(*(rule(f"r{cut}", compare("f", "lt", cut)) for cut in (10, 20, 30)), f="number")
    facts = [{"f": number} for number in (5, 15, 15, 25, 35, 35)]
    assert by_class("f", body, facts) == [("10 <= f < 20", 2), ("f >= 30", 2), ("f is another number", 2)]


def test_results_of_the_analysis_are_compared_as_outcomes_are() -> None:
    from gate.rulebooks.analysis.formulas.encoding import REFUSED, Result

    assert told_result(REFUSED)[-1] == FAILED
    assert told_result(Result("no", "V", "a", "R", "x"))[-1] == "rule:x"
