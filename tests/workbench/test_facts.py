"""Facts in columns: their types and values, what is withheld or unknown, what is read from JSON, and patches."""

from __future__ import annotations

import copy
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from gate.decisions.again.counterfactuals import merge_patch
from gate.encoding.canonical import canonical
from gate.encoding.strict_json import parse
from tests.reference.strategies import FIELDS, json_values, rulebooks
from tests.reference.strategies import facts as any_facts
from tests.support.rulebooks import compare, rule, rulebook
from tests.support.tiers import examples
from tests.support.torture import size
from workbench.facts import (
    FACT_TYPE,
    INPUTS,
    columns_of,
    fact_series,
    fields_of,
    find_typed,
    is_withheld,
    patched,
    with_fields,
    without,
)

ROWS: Sequence[dict[str, Any] | None] = (
    {"f": 1, "o": {"p": "x", "q": [1.0]}},
    {"f": -0.0, "o": None},
    {"f": "s", "o": "text"},
    {"f": None, "o": {}},
    {"f": True, "o": {"p": {"z": float(2**60)}, "q": 1e21}},
    {},
    None,
)


def stored(
    rows: Sequence[dict[str, Any] | None], fields: Collection[str] = (), withheld: Collection[str] = ()
) -> pl.DataFrame:
    """Decisions as they are written."""
    texts = [None if row is None else canonical(without(row, withheld)).decode() for row in rows]
    return pl.DataFrame([pl.Series(INPUTS, texts, pl.String), *fact_series(rows, fields, withheld)])


def typed(
    rows: Sequence[dict[str, Any] | None], fields: Collection[str], withheld: Collection[str] = ()
) -> pl.DataFrame:
    """The columns that the fields of these facts have."""
    return pl.DataFrame(fact_series(rows, fields, withheld))


def extracted(frame: pl.LazyFrame, fields: Collection[str], *options: Any, **named: Any) -> pl.DataFrame:
    """What `with_fields` makes of a frame, without `inputs`."""
    names = [name for field in fields for name in columns_of(field)]
    return with_fields(frame, fields, *options, **named).select(names).collect()


def as_read(value: Any) -> Any:
    """A value as the service reads it: integers and doubles as their canonical text tells them apart."""
    return parse(canonical(value))


def test_a_field_takes_four_columns() -> None:
    frame = typed(ROWS, ["f", "o", "o.q"])
    assert dict(frame.schema) == {**columns_of("f"), **columns_of("o"), **columns_of("o.q")}
    assert frame["f:type"].to_list() == ["number", "number", "string", "null", "boolean", "absent", None]
    assert frame["f:number"].to_list() == [1.0, 0.0, None, None, 1.0, None, None]
    assert str(frame["f:number"][1]) == "0.0"
    assert frame["f:string"].to_list() == [None, None, "s", None, None, None, None]
    assert frame["f:json"].to_list() == [None] * 7
    assert frame["o:type"].to_list() == ["object", "null", "string", "object", "object", "absent", None]
    assert frame["o:json"].to_list() == [
        '{"p":"x","q":[1]}',
        None,
        None,
        "{}",
        '{"p":{"z":1152921504606847000},"q":1e+21}',
        None,
        None,
    ]
    assert frame["o.q:type"].to_list() == ["array", "absent", "absent", "absent", "number", "absent", None]
    assert frame["o.q:json"].to_list() == ["[1]", *[None] * 6]


def test_no_decisions_take_columns_without_rows() -> None:
    frame = typed([], ["f"])
    assert (frame.height, dict(frame.schema)) == (0, columns_of("f"))
    assert extracted(stored([]).lazy(), ["f"]).height == 0


@settings(max_examples=examples(size(10, 40)))
@given(rulebooks())
def test_the_fields_of_a_rulebook_are_those_it_declares_requires_or_tests(body: Any) -> None:
    found: set[str] = set(body["input_schema"]["required"]) | set(body["input_schema"]["properties"])
    open_: list[Any] = [body["rules"]]
    while open_:
        value = open_.pop()
        if isinstance(value, dict) and "operator" in value:
            found.add(value["field"])
        elif isinstance(value, dict):
            open_ += [item for name, item in value.items() if name != "outcome"]
        elif isinstance(value, list):
            open_ += value
    assert fields_of(body) == tuple(sorted(found))


def test_a_field_within_nested_conditions_is_among_the_fields() -> None:
    condition = {"not": {"any": [{"all": [compare("z", "exists")]}, compare("a.b", "eq", 1)]}}
    assert fields_of(rulebook(rule("r", condition), required=["m"], n="number")) == ("a.b", "m", "n", "z")


@pytest.mark.parametrize(
    ("field", "paths", "answer"),
    [
        ("a", ["a"], True),
        ("a.b", ["a"], True),
        ("a", ["a.b.c"], True),
        ("ab", ["a"], False),
        ("a", ["ab"], False),
        ("a.c", ["a.b"], False),
        ("a", [], False),
        ("a", ["b", "a.c"], True),
    ],
)
def test_a_field_is_withheld_with_what_it_lies_beneath_or_holds(field: str, paths: list[str], answer: bool) -> None:
    assert is_withheld(field, paths) is answer


def test_a_withheld_field_shows_only_whether_it_is_there() -> None:
    frame = typed(ROWS, ["f", "o", "o.p", "o.q"], ["o.p", "f"])
    there = ["withheld"] * 5 + ["absent", None]
    assert frame["f:type"].to_list() == there
    assert frame["o:type"].to_list() == there
    assert frame["o.p:type"].to_list() == ["withheld", "absent", "absent", "absent", "withheld", "absent", None]
    assert frame["o.q:type"].to_list() == ["array", "absent", "absent", "absent", "number", "absent", None]
    for field in ("f", "o", "o.p"):
        for suffix in ("number", "string", "json"):
            assert frame[f"{field}:{suffix}"].null_count() == 7


@pytest.mark.parametrize(
    ("facts", "paths", "left"),
    [
        ({"a": {"b": 1, "c": {"d": 2}}, "e": "x"}, ["a.b", "a.c.d", "a.nowhere", "e", "f.g"], {"a": {"c": {}}}),
        ({"a": {"b": 1}, "l": 2, "ab": 3}, ["a"], {"l": 2, "ab": 3}),
        ({"a": {"b": 1}}, [], {"a": {"b": 1}}),
        # Scalars hold nothing that a path could reach.
        ({"a": "x", "b": None, "c": {"d": 1}}, ["a.b", "b.c.d", "c.d.e"], {"a": "x", "b": None, "c": {"d": 1}}),
        # An array may hold anything.
        ({"a": [{"b": 1}], "c": {"d": [[]], "e": 1}, "f": ["b"]}, ["a.b", "c.d.b"], {"c": {"e": 1}, "f": ["b"]}),
        ({"a": [1]}, ["a"], {}),
        # A name may have dots.
        ({"a.b": 1, "a.c": 2, "a": {"b": 3}}, ["a.b"], {"a.c": 2, "a": {}}),
        (
            {"a.b": {"c": 1, "d": 2}, "a": {"b.c": 3, "b.d": 4}, "a.b.c": 5},
            ["a.b.c"],
            {"a.b": {"d": 2}, "a": {"b.d": 4}},
        ),
        ({"a.b.c": 1, "a": {"b.c": 2}, "a.bc": 3}, ["a.b"], {"a": {}, "a.bc": 3}),
        ({"a.b": [1], "a": {"b.c": 1}}, ["a.b.c.d"], {"a": {"b.c": 1}}),
        ({"": 1, ".a": 2, "a": {"": 3}}, [".a", "a."], {"": 1, "a": {}}),
    ],
)
def test_withheld_paths_are_taken_out_of_the_facts(
    facts: dict[str, Any], paths: list[str], left: dict[str, Any]
) -> None:
    before = copy.deepcopy(facts)
    assert without(facts, paths) == left
    assert facts == before


NAMES = ("a", "b", "c")
INNER = st.dictionaries(
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map(".".join), json_values(1), max_size=3
)
NESTED = st.recursive(
    INNER, lambda inner: st.dictionaries(st.sampled_from(NAMES), inner | st.lists(inner, max_size=2), max_size=3)
)
PATHS = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4)
SECRET = "keep this to yourself"


@st.composite
def planted(draw: st.DrawFn) -> tuple[dict[str, Any], list[str]]:
    """Facts, and paths with a secret beneath each of them, however their dots are meant."""
    facts: dict[str, Any] = copy.deepcopy(draw(NESTED))
    paths = draw(st.lists(PATHS, min_size=1, max_size=3))
    for path in paths:
        here: Any = facts
        names = path
        while True:
            taken = draw(st.integers(1, len(names)))
            name, names = ".".join(names[:taken]), names[taken:]
            if not names:
                here[name + draw(st.sampled_from(["", ".a", ".b.c"]))] = draw(
                    st.sampled_from([SECRET, [SECRET], {"a": [{"b": SECRET}]}, {SECRET: 1}])
                )
                break
            inner = here.get(name)
            if draw(st.sampled_from([True, False, False])):
                member: dict[str, Any] = {}
                here[name] = [*(inner if type(inner) is list else [inner]), [member] if draw(st.booleans()) else member]
                here = member
            else:
                here[name] = here = inner if type(inner) is dict else {}
    return facts, [".".join(path) for path in paths]


@settings(max_examples=examples(size(25, 120)))
@given(planted(), st.lists(PATHS.map(".".join), max_size=6))
def test_nothing_beneath_a_withheld_path_is_left(drawn: tuple[dict[str, Any], list[str]], others: list[str]) -> None:
    facts, paths = drawn
    left = without(facts, paths)
    assert SECRET not in canonical(left).decode()
    fields = list(dict.fromkeys([*NAMES, *paths, *(f"{path}.a" for path in paths), *others]))
    frame = typed([facts], fields, paths)
    assert SECRET not in str(frame.rows())
    # What columns tell of other fields is what is left of the facts.
    known = [field for field in fields if not is_withheld(field, paths)]
    assert_frame_equal(typed([left], known), typed([facts], known))
    there = typed([facts], fields)
    for field in set(fields) - set(known):
        type_ = there[f"{field}:type"].item()
        assert frame.select(*columns_of(field)).row(0) == (type_ if type_ == "absent" else "withheld", None, None, None)
    # Written so, and read again where no column tells, it is as little.
    assert SECRET not in str(extracted(stored([facts], (), paths).lazy(), fields, paths).rows())


@settings(max_examples=examples(size(15, 30)))
@given(st.lists(st.none() | any_facts(), max_size=6), st.sets(st.sampled_from(FIELDS)))
def test_columns_that_are_missing_are_read_from_the_json(rows: list[dict[str, Any] | None], already: set[str]) -> None:
    rows = [as_read(row) for row in rows]
    frame = stored(rows, sorted(already))
    assert_frame_equal(extracted(frame.lazy(), FIELDS), typed(rows, FIELDS))


def test_rows_that_were_not_extracted_are_read_from_the_json() -> None:
    halves = [stored(ROWS, ["f", "o.p"]), stored(ROWS, ["o.p", "o"])]
    frame = pl.concat(halves, how="diagonal").lazy()
    fields = ["f", "o", "o.p", "n"]
    assert_frame_equal(extracted(frame, fields), typed([*ROWS, *ROWS], fields))
    # What stands in a column is not read again.
    changed = frame.with_columns(pl.col("f:number") + 1)
    assert extracted(changed, ["f"])["f:number"].to_list()[:2] == [2.0, 1.0]


def test_facts_without_json_stay_unknown_where_they_have_no_columns() -> None:
    frame = stored(ROWS, ["f"]).drop(INPUTS).lazy()
    assert_frame_equal(extracted(frame, ["f", "o"]), typed(ROWS, ["f"]).hstack(typed([None] * 7, ["o"])))


@pytest.mark.heavy
def test_a_file_is_read_and_streamed_as_a_frame_is(tmp_path: Path) -> None:
    many = 8_000
    path = tmp_path / "facts.parquet"
    pl.concat([stored(ROWS, ["f"])] * many).write_parquet(path, row_group_size=20_000)
    lazy = with_fields(pl.scan_parquet(path), ["o.p", "f"]).drop(INPUTS)
    expected = pl.concat([typed(ROWS, ["f", "o.p"])] * many)
    assert_frame_equal(lazy.collect(engine="streaming"), expected)
    assert_frame_equal(lazy.collect(engine="in-memory"), expected)


def test_the_json_is_not_read_where_every_field_is_typed(tmp_path: Path) -> None:
    path = tmp_path / "facts.parquet"
    stored(ROWS, ["f", "o"]).with_columns(known=pl.Series([row is not None for row in ROWS])).write_parquet(path)
    scan = pl.scan_parquet(path)
    known = find_typed(scan, ["f", "o", "n"], pl.col("known"))
    assert known == find_typed(scan, ["f", "o", "n"]) == {"f", "o"}
    names = [*columns_of("f"), *columns_of("o")]
    for frame in (
        with_fields(scan, ["f", "o"], typed=known),
        with_fields(scan, ["f", "o"], ["o"], typed=known),
        patched(scan, {"f": 1}, ["f", "o"], typed=known),
    ):
        assert "python_udf" not in frame.select(names).explain()
        assert f"PROJECT {len(names)}/" in with_fields(scan, ["f", "o"], typed=known).select(names).explain()
        assert INPUTS not in frame.select(names).explain()
    assert "python_udf" in with_fields(scan, ["f", "n"], typed=known).select("n:type").explain()


def test_a_field_that_some_rows_lack_is_not_typed() -> None:
    frame = pl.concat([stored(ROWS, ["f"]), stored([None], ["f", "o"]), stored([{}], ["o"])], how="diagonal").lazy()
    assert find_typed(frame, ["f", "o"]) == frozenset()
    assert find_typed(frame.head(8), ["f", "o"]) == {"f"}
    assert find_typed(frame.drop(INPUTS), ["f", "o", "n"]) == {"f", "o"}


def test_what_the_json_no_longer_has_is_withheld_where_no_column_tells() -> None:
    fields = ["f", "o", "o.p", "o.q"]
    written = stored(ROWS, fields, ["o.p"])
    assert '"p"' not in "".join(written[INPUTS].drop_nulls())
    assert_frame_equal(extracted(written.lazy(), fields, ["o.p"]), typed(ROWS, fields, ["o.p"]))
    told = extracted(stored(ROWS, (), ["o.p"]).lazy(), fields, ["o.p"])
    assert_frame_equal(told.select(*columns_of("f")), typed(ROWS, ["f"]))
    assert_frame_equal(told.select(*columns_of("o.q")), typed(ROWS, ["o.q"]))
    for field in ("o", "o.p"):
        assert told[f"{field}:type"].to_list() == ["withheld"] * 6 + [None]
        assert told[f"{field}:json"].null_count() == told[f"{field}:string"].null_count() == 7


PATCHES = st.recursive(
    json_values(1),
    lambda inner: st.dictionaries(
        st.sampled_from([name for field in FIELDS for name in field.split(".")]), inner, max_size=4
    ),
    max_leaves=12,
)


@settings(max_examples=examples(size(13, 50)))
@given(
    st.lists(st.none() | any_facts(), max_size=5),
    st.dictionaries(st.sampled_from(["amount", "owner", "order", "deep", "tags", "risk", "nothing"]), PATCHES)
    | any_facts(),
    st.sets(st.sampled_from(FIELDS)),
)
def test_patched_columns_are_those_of_patched_facts(
    rows: list[dict[str, Any] | None], patch: dict[str, Any], already: set[str]
) -> None:
    rows, patch = [as_read(row) for row in rows], as_read(patch)
    names = [name for field in FIELDS for name in columns_of(field)]
    found = patched(stored(rows, sorted(already)).lazy(), patch, FIELDS).select(names).collect()
    assert_frame_equal(found, typed([None if row is None else merge_patch(row, patch) for row in rows], FIELDS))


@pytest.mark.parametrize(
    "patch",
    [
        {},
        {"f": 2},
        {"f": None},
        {"f": [None, -0.0]},
        {"o": {}},
        {"o": {"p": None}},
        {"o": {"p": {"y": 1, "z": None}}},
        {"o": {"q": {"r": {"s": None}}}},
        {"o": 5},
        {"o": None, "f": {"p": 1}},
        {"o.p": 1},
        {"f": "\u00e9\u0000", "o": {"p": True, "q": 1e21}},
    ],
)
def test_a_patch_replaces_removes_and_merges(patch: dict[str, Any]) -> None:
    fields = ["f", "o", "o.p", "o.q"]
    expected = typed([None if row is None else merge_patch(row, patch) for row in ROWS], fields)
    frames = [stored(ROWS), stored(ROWS, fields), stored(ROWS, ["f", "o.q"])]
    for frame in frames:
        found = patched(frame.lazy(), patch, fields).collect()
        assert_frame_equal(found, expected, check_column_order=False)
    together = patched(pl.concat(frames, how="diagonal").lazy(), patch, fields).collect(engine="streaming")
    assert_frame_equal(together, pl.concat([expected] * 3), check_column_order=False)
    # Where every field is typed, the JSON of the facts is not needed.
    alone = patched(stored(ROWS, fields).drop(INPUTS).lazy(), patch, fields).collect()
    assert_frame_equal(alone, expected, check_column_order=False)


def test_a_patched_frame_has_nothing_that_the_patch_made_stale() -> None:
    frame = stored(ROWS, ["f", "o", "o.p", "o.q", "n"]).with_columns(position=pl.int_range(pl.len()))
    found = patched(frame.lazy(), {"o": {"p": 1}, "n": {}}, ["f"]).collect()
    assert found.columns == [*columns_of("f"), *columns_of("o.q"), "position"]


def test_a_patch_makes_known_what_it_replaces_but_not_what_it_merges_into() -> None:
    fields = ["o", "o.p", "o.q"]
    frame = stored(ROWS, fields, ["o.p"]).lazy()
    replaced = patched(frame, {"o": {"p": 7}}, fields, ["o.p"]).collect()
    assert replaced["o.p:type"].to_list() == ["number"] * 6 + [None]
    assert replaced["o:type"].to_list() == ["withheld"] * 5 + ["object", None]
    assert replaced["o:json"].to_list() == [None] * 5 + ['{"p":7}', None]
    merged = patched(frame, {"o": {"p": {"x": 1}}}, ["o.p"], ["o.p"]).collect()
    assert merged["o.p:type"].to_list() == ["withheld", "object", "object", "object", "withheld", "object", None]
    removed = patched(stored(ROWS, (), ["o.p"]).lazy(), {"o": None}, fields, ["o.p"]).collect()
    assert removed["o.p:type"].to_list() == ["absent"] * 6 + [None]


def test_the_types_of_facts_are_those_of_json_and_two_more() -> None:
    assert FACT_TYPE.categories.to_list() == [
        "absent",
        "null",
        "boolean",
        "number",
        "string",
        "array",
        "object",
        "withheld",
    ]
