"""The vectorized evaluator: equal to the scalar one and to a naive one, on every JSON type, from memory and file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gate.encoding import resources
from gate.encoding.canonical import canonical
from gate.encoding.strict_json import parse
from gate.rulebooks.evaluation import Outcome
from gate.rulebooks.rulebook import load
from tests.reference import evaluator as reference
from tests.reference.strategies import facts as any_facts
from tests.reference.strategies import json_values, rulebooks_and_facts
from tests.support.rulebooks import compare, rule, rulebook
from tests.support.samples import cases, sample_rulebook
from tests.support.tiers import examples
from tests.support.torture import size
from workbench.evaluator import VectorEvaluator, compile_frame_evaluator
from workbench.facts import INPUTS, fact_series, type_of, with_fields

VALUES: Sequence[Any] = (
    None,
    True,
    False,
    0,
    -0.0,
    1,
    1.0,
    -1,
    1.5,
    1e21,
    float(2**53),
    "",
    "a",
    "ab",
    "1",
    "true",
    "[1]",
    '["a"]',
    [],
    [1],
    [1.0, "a"],
    [[1]],
    ["a,b", True],
    [float(2**53), None],
    [{"a": [1]}],
    {},
    {"a": 1},
    {"a": 1.0, "b": [0.0]},
)
ROWS: Sequence[dict[str, Any]] = ({}, *({"f": value} for value in VALUES))


def stored(rows: Sequence[dict[str, Any] | None], fields: Sequence[str] = (), **options: Any) -> pl.DataFrame:
    """Decisions as they are written."""
    texts = [None if row is None else canonical(row).decode() for row in rows]
    return pl.DataFrame([pl.Series(INPUTS, texts, pl.String), *fact_series(rows, fields, **options)])


COLUMNS = stored(ROWS, ["f"])


def decided(evaluator: VectorEvaluator, frame: pl.LazyFrame) -> list[Outcome | None]:
    """What it says of each row; None where that is not known."""
    (told,) = each_decided([evaluator], frame)
    return told


def each_decided(evaluators: Sequence[VectorEvaluator], frame: pl.LazyFrame) -> list[list[Outcome | None]]:
    """What each of them says of each row, in one query: made one by one, most of the time goes into making queries."""
    fields = sorted({field for evaluator in evaluators for field in evaluator.fields})
    indexes = [evaluator.index.alias(f"{number}") for number, evaluator in enumerate(evaluators)]
    told = with_fields(frame, fields).select(indexes).collect()
    assert set(told.dtypes) == {pl.Int16}
    return [
        [None if position is None else evaluator.outcomes[position] for position in index]
        for evaluator, index in zip(evaluators, told, strict=True)
    ]


def same(body: Any, rows: Sequence[dict[str, Any]]) -> None:
    """Asserts that both evaluators say the same of facts, whether they lie in columns or in JSON."""
    scalar, vector = load(body).evaluator, compile_frame_evaluator(body)
    expected = [scalar.decide(row) for row in rows]
    assert decided(vector, stored(rows, vector.fields).lazy()) == expected
    assert decided(vector, stored(rows).lazy()) == expected


@pytest.mark.parametrize(("operator", "expected", "facts", "holds"), cases("operators"))
def test_an_operator_holds_or_not(operator: str, expected: Any, facts: dict[str, Any], holds: bool) -> None:
    value = () if operator in ("exists", "not_exists") else (expected,)
    evaluator = compile_frame_evaluator(rulebook(rule("hit", compare("f", operator, *value))))
    (told,) = decided(evaluator, stored([facts], ["f"]).lazy())
    assert told is not None
    assert (told.matched_rule_id == "hit") is holds


@pytest.mark.parametrize(
    "operator",
    ["exists", "not_exists", "eq", "neq", "gt", "gte", "lt", "lte", "in", "not_in", "contains", "not_contains"],
)
def test_an_operator_says_of_every_pair_of_values_what_the_scalar_one_says(operator: str) -> None:
    given_values: Sequence[Any] = VALUES
    if operator in ("exists", "not_exists"):
        given_values = VALUES[:1]
    elif operator in ("in", "not_in"):
        given_values = ([], [1, "a", None, {"a": 1}, True], [[1], 0, -0.0, "", {}], [True, False], [1.5, 1e21, "ab"])
    bodies = []
    for value in given_values:
        told = () if operator in ("exists", "not_exists") else (value,)
        test = compare("f", operator, *told)
        bodies += [
            rulebook(rule("hit", test)),
            rulebook(rule("hit", {"not": test})),
            rulebook(rule("hit", test), required=["f"]),
            *(rulebook(rule("hit", test), f=type_) for type_ in ("number", "string", "boolean", "array")),
        ]
    each = each_decided([compile_frame_evaluator(body) for body in bodies], COLUMNS.lazy())
    for body, vectors in zip(bodies, each, strict=True):
        scalar = load(body).evaluator
        assert vectors == [scalar.decide(row) for row in ROWS], body


@pytest.mark.parametrize("required", [[], ["f"], ["f.a"]])
@pytest.mark.parametrize("type_", ["number", "integer", "string", "boolean", "array", "object", "null", None])
def test_declared_types_accept_what_the_scalar_evaluator_accepts(type_: str | None, required: list[str]) -> None:
    declared = {} if type_ is None else {"f": type_}
    conditions = [
        compare("f", "exists"),
        compare("f", "eq", 1),
        compare("f", "neq", None),
        {"not": {"any": [compare("f", "lt", 1), compare("f", "in", [True, "a", [], {}, None])]}},
        {"all": [compare("f", "contains", "a"), {"not": compare("f.a", "exists")}]},
    ]
    for condition in conditions:
        same(rulebook(rule("hit", condition), required=required, **declared), ROWS)


@settings(max_examples=examples(size(15, 60)))
@given(rulebooks_and_facts(), st.lists(any_facts(), max_size=6), st.booleans())
def test_it_says_of_every_row_what_the_scalar_and_the_naive_one_say(
    drawn: tuple[dict[str, Any], dict[str, Any]], others: list[dict[str, Any]], in_columns: bool
) -> None:
    body, *rows = (parse(canonical(value)) for value in (*drawn, *others))
    scalar, vector = load(body).evaluator, compile_frame_evaluator(body)
    frame = stored(rows, vector.fields if in_columns else ()).lazy()
    found = decided(vector, frame)
    assert found == [scalar.decide(row) for row in rows]
    for told, row in zip(found, rows, strict=True):
        naive = reference.evaluate(body, row)
        assert told is not None
        assert [told.status, told.decision, told.verdict, told.action, told.reason_code, told.matched_rule_id] == [
            naive[name] for name in ("status", "decision", "verdict", "action", "reason_code", "matched_rule_id")
        ]


@settings(max_examples=examples(size(20, 40)))
@given(st.lists(json_values(2), min_size=1, max_size=12), json_values(1))
def test_an_array_contains_its_members_and_nothing_else(values: list[Any], value: Any) -> None:
    drawn = [*values, [value], [values, value], [[value]], [*values, value]]
    rows = [parse(canonical({"f": item})) for item in drawn]
    same(rulebook(rule("hit", compare("f", "contains", parse(canonical([value]))[0]))), rows)


@pytest.mark.parametrize(
    "path", sorted(Path(str(resources.path("data"))).glob("rulebooks/**/*.json")), ids=lambda path: path.stem
)
def test_the_products_own_rulebooks_say_the_same_in_columns(path: Path) -> None:
    body = json.loads(path.read_text())
    base: dict[str, Any] = next(
        (own["base"] for own in cases("own_rulebooks") if own["policy_id"] == body["rulebook_id"]), {}
    )
    fields = compile_frame_evaluator(body).fields
    odd = [base, {}, *({**base, field: value} for field in fields for value in VALUES)]
    absent = [{name: value for name, value in base.items() if name != field} for field in fields]
    usual = [
        {**base, **given_["facts"]}
        for own in cases("own_rulebooks")
        if own["policy_id"] == body["rulebook_id"]
        for given_ in own["cases"]
    ]
    same(body, [*odd, *absent, *usual])


@pytest.mark.parametrize("through_arrow", [False, True])
def test_it_says_the_same_from_a_parquet_file(tmp_path: Path, through_arrow: bool) -> None:
    condition = {"any": [compare("f", "contains", "a"), compare("f", "gte", 1), compare("f", "eq", {"a": 1})]}
    body = rulebook(rule("hit", condition), required=["f"])
    evaluator = compile_frame_evaluator(body)
    frame = pl.concat([stored(ROWS, evaluator.fields)] * 2_000)
    path = tmp_path / "facts.parquet"
    if through_arrow:
        pq.write_table(frame.to_arrow(compat_level=pl.CompatLevel.oldest()), path, row_group_size=20_000)
    else:
        frame.write_parquet(path, row_group_size=20_000)
    expected = [load(body).evaluator.decide(row) for row in ROWS] * 2_000
    scan = pl.scan_parquet(path)
    # Several row groups and nothing else selected: they must not come in another order.
    assert decided(evaluator, scan) == expected
    told = evaluator.decide(scan).select("status", "action", "matched_rule_id").collect(engine="streaming")
    assert told.rows() == [(outcome.status, outcome.action, outcome.matched_rule_id) for outcome in expected]


def test_what_is_unknown_or_withheld_in_any_field_has_no_outcome() -> None:
    body = rulebook(rule("hit", compare("g", "exists"), priority=1), rule("other", compare("f", "eq", 1)))
    evaluator = compile_frame_evaluator(body)
    assert evaluator.fields == ("f", "g")
    rows = [{"f": 1, "g": 1}, {"f": 1}, {"g": 2}, None]
    frame = stored(rows, ["f", "g"], withheld=["f"]).lazy()
    assert [told and told.matched_rule_id for told in decided(evaluator, frame)] == [None, None, "hit", None]
    index = with_fields(frame, evaluator.fields).select(evaluator.index).collect().to_series()
    assert index.to_list() == [None, None, 0, None]


def test_facts_that_need_input_have_no_outcome_where_another_field_is_unknown() -> None:
    evaluator = compile_frame_evaluator(rulebook(rule("hit", compare("g", "exists")), required=["f"]))
    frame = stored([{}, {}], ["f", "g"]).with_columns(
        pl.when(pl.int_range(pl.len()) == 0).then(type_of("g")).alias("g:type")
    )
    index = frame.lazy().select(evaluator.index).collect().to_series()
    assert index.to_list() == [len(evaluator.outcomes) - 1, None]


def test_the_outcome_is_told_in_columns_beside_another_rulebooks() -> None:
    body: Any = sample_rulebook()
    stricter: Any = {**body, "rules": body["rules"][:1]}
    rows = [
        {"discount_percent": 10, "margin_percent": 22},
        {"discount_percent": 10, "margin_percent": 5},
        {"discount_percent": 10},
        None,
    ]
    first, second = compile_frame_evaluator(body), compile_frame_evaluator(stricter)
    frame = stored(rows, first.fields).lazy()
    told = second.decide(first.decide(frame), prefix="then_").collect()
    names = ("status", "verdict", "application_verdict", "action", "reason_code", "matched_rule_id")
    assert told.columns == [*frame.collect_schema(), *names, *(f"then_{name}" for name in names)]
    assert told.select(names).rows() == [
        ("ok", "yes", "APPROVE", "approve_discount", "STANDARD_EXCEPTION_ALLOWED", "approve_standard_exception"),
        ("ok", "no", "BLOCK", "reject_discount", "MARGIN_FLOOR_BREACH", "block_below_margin_floor"),
        ("needs_input", "review", "NEEDS_INPUT", "collect_required_input", "INPUT_SCHEMA_FAILED", None),
        (None,) * 6,
    ]
    changed = told.select(pl.col(name).ne_missing(pl.col(f"then_{name}")) for name in names)
    assert changed.rows() == [(False, *(True,) * 5), *((False,) * 6,) * 3]


def test_a_rulebook_at_its_limits_has_an_outcome() -> None:
    nested = compare("f", "eq", 99)
    for _ in range(3):
        nested = {"not": {"any": [nested]}}
    rules = [
        rule(f"r{number:03}", {"any": [nested] if number == 99 else [compare("f", "eq", number)]})
        for number in range(100)
    ]
    wide = rule("wide", {"any": [compare("f", "eq", -number) for number in range(1, 33)]}, priority=1)
    same(rulebook(*rules[1:], wide), [{"f": value} for value in (-32, -33, 1, 50, 98, 99, 100)])


def test_a_test_that_several_rules_share_is_worked_out_once() -> None:
    shared = compare("f", "contains", "a")
    rules = [rule(f"r{number}", {"all": [shared, compare("g", "eq", number)]}) for number in range(5)]
    evaluator = compile_frame_evaluator(rulebook(*rules))
    assert stored([{}], evaluator.fields).lazy().select(evaluator.index).explain().count("python_udf") == 1
