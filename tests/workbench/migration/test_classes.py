"""Classes and regions as columns: row by row what the exact analysis says of single facts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gate.encoding.canonical import canonical
from gate.rulebooks.analysis import compare
from gate.rulebooks.analysis.formulas.classes import FieldClasses
from gate.rulebooks.evaluation import ABSENT
from tests.reference.strategies import facts as any_facts
from tests.reference.strategies import json_values, rulebooks_and_facts
from tests.support.rulebooks import compare as comparison
from tests.support.rulebooks import rule, rulebook
from tests.support.tiers import examples
from workbench.facts import fact_series
from workbench.migration.classes import class_code, class_words, classes_of, region_columns

NUMBERS: Sequence[Any] = (
    *(-1e300, -5, -0.0, 0, 5e-324, 1, 1.0, 1.5, 2, 2.0000000000000004, 2.5, 3, 9.99, 10, 11, 2**53 - 1, 1e20, 1.7e308),
)
VALUES: Sequence[Any] = (
    ABSENT,
    None,
    True,
    False,
    *NUMBERS,
    *("", "a", "ab", "b", "1", "[1]", "é", "\u0000"),
    *([], [1], [1.0, "a"], ["a"], [["a"]], [None], [True], [1e16], [{"a": 1.0}]),
    *({}, {"a": 1}, {"a": 1.0, "b": [0.0]}, {"b": [0], "a": 1}),
)
CONSTANTS: Sequence[Any] = [value for value in VALUES if value is not ABSENT]


def rows_of(field: str, values: Sequence[Any]) -> tuple[list[dict[str, Any]], pl.LazyFrame]:
    """Facts with these values of a field, and their columns."""
    facts = [{} if value is ABSENT else {field: value} for value in values]
    return facts, pl.DataFrame(fact_series(facts, [field])).lazy()


def codes(field: str, of: FieldClasses, values: Sequence[Any]) -> list[int | None]:
    """The classes of values, from their columns."""
    return rows_of(field, values)[1].select(class_code(field, of)).collect().to_series().to_list()


def places(of: FieldClasses, values: Sequence[Any]) -> list[int]:
    """The same, one by one."""
    return [of.place(value).index for value in values]


def conditions() -> st.SearchStrategy[dict[str, Any]]:
    """A test of the field f against one of the constants."""
    constant = st.sampled_from(CONSTANTS)
    ordering = st.builds(
        lambda op, value: comparison("f", op, value),
        st.sampled_from(["lt", "lte", "gt", "gte"]),
        st.sampled_from(NUMBERS),
    )
    equality = st.builds(
        lambda op, value: comparison("f", op, value),
        st.sampled_from(["eq", "neq", "contains", "not_contains"]),
        constant,
    )
    lists = st.builds(
        lambda op, value: comparison("f", op, value),
        st.sampled_from(["in", "not_in"]),
        st.lists(constant, min_size=1, max_size=4),
    )
    return st.one_of(ordering, equality, lists, st.just(comparison("f", "exists")))


@settings(max_examples=examples(60))
@given(st.lists(conditions(), min_size=1, max_size=12), st.sampled_from([None, "number", "integer", "string"]))
def test_every_value_is_in_the_class_that_the_analysis_has_for_it(found: list[Any], declared: str | None) -> None:
    types: dict[str, Any] = {} if declared is None else {"f": declared}
    body = rulebook(
        *(rule(f"r{number}", condition) for number, condition in enumerate(found)),
        **types,
    )
    of = classes_of("f", [body])
    assert codes("f", of, VALUES) == places(of, VALUES)


@pytest.mark.parametrize("declared", ["number", "integer"])
def test_numbers_among_many_constants_are_in_their_classes(declared: str) -> None:
    cuts = [1, 1.5, 2, 2.0000000000000004, 2.5, *range(3, 40, 3), 5e-324, 0, -1e300, 2**53 - 1, 1e20]
    operators = ("lt", "lte", "gt", "gte", "eq")
    tests_ = [comparison("f", operators[at % 5], cut) for at, cut in enumerate(cuts)]
    of = classes_of("f", [rulebook(*(rule(f"r{at}", test) for at, test in enumerate(tests_)), f=declared)])
    values = [*NUMBERS, *cuts, *(cut + 0.5 for cut in range(41)), None, "3"]
    assert codes("f", of, values) == places(of, values)


def test_what_is_withheld_or_not_known_has_no_class() -> None:
    of = classes_of("f", [rulebook(rule("r", comparison("f", "gt", 1)), f="integer")])
    columns = [
        pl.DataFrame(fact_series(facts, ["f"], withheld)) for facts, withheld in (([{"f": 2}], ["f"]), ([None], []))
    ]
    for frame in columns:
        assert frame.lazy().select(class_code("f", of)).collect().to_series().to_list() == [None]


def test_a_class_of_numbers_is_told_in_words() -> None:
    tests_ = [comparison("f", "lt", 10), comparison("f", "gte", 50)]
    of = classes_of("f", [rulebook(*(rule(f"r{at}", test) for at, test in enumerate(tests_)), f="number")])
    words = {value: class_words("f", of, of.place(value).index) for value in (9.5, 10, 50)}
    assert words == {9.5: "f < 10", 10: "10 <= f < 50", 50: "f >= 50"}


def held(before: Any, after: Any, rows: Sequence[dict[str, Any]]) -> int:
    """Holds the regions of a difference against single facts; how many of these lie in one."""
    regions = [changed.region for changed in compare(before, after).regions]
    columns = region_columns(regions)
    if not regions:
        return 0
    fields = sorted({limit.name for region in regions for limit in region.limits})
    frame = pl.DataFrame([pl.Series("at", range(len(rows))), *fact_series(rows, fields)]).lazy()
    # Each as a column of its own length, also where a region has no limits.
    holds = [(pl.col("at") >= 0) & each.alias(str(at)) for at, each in enumerate(columns.holds)]
    found = frame.with_columns(columns.columns).select(h.alias(str(at)) for at, h in enumerate(holds)).collect()
    expected = [[region.holds(facts) for region in regions] for facts in rows]
    assert [list(row) for row in found.rows()] == expected
    return sum(map(any, expected))


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(conditions(), min_size=2, max_size=6), st.data())
def test_a_fact_lies_in_the_regions_that_the_analysis_has_for_it(found: list[Any], data: st.DataObject) -> None:
    rules = [rule(f"r{number}", condition) for number, condition in enumerate(found)]
    kept = data.draw(st.integers(1, len(rules) - 1))
    before, after = rulebook(*rules), rulebook(*rules[kept:])
    facts, _ = rows_of("f", VALUES)
    held(before, after, facts)


@settings(max_examples=examples(40), deadline=None)
@given(rulebooks_and_facts(), st.lists(any_facts(), max_size=6), st.lists(json_values(2), max_size=4))
def test_facts_of_every_shape_lie_in_the_regions_of_any_rulebooks(
    given_: Any, more: list[Any], others: list[Any]
) -> None:
    body, facts = given_
    assume(len(canonical(body)) < 20_000)
    after = {**body, "rules": body["rules"][1:] or body["rules"], "default_outcome": body["rules"][0]["outcome"]}
    rows = [facts, *more, *({**facts, name: value} for name, value in zip(facts, others, strict=False))]
    held(body, after, rows)


def test_a_region_asks_what_texts_and_arrays_contain() -> None:
    before = rulebook(
        rule("text", {"all": [comparison("f", "contains", "a"), comparison("f", "not_contains", "ab")]}),
        rule("item", {"all": [comparison("f", "contains", 1), comparison("f", "not_contains", "a")]}),
    )
    facts, _ = rows_of("f", VALUES)
    # The text a, and the arrays with a; and the array with 1 alone.
    assert held(before, rulebook(), facts) == 4
