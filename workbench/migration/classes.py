"""Classes of values as columns: where a fact stands among the constants of rulebooks, for every row at once.

The exact analysis divides the values of a field into classes that no test tells apart (`gate.rulebooks.analysis`). Here
a class is a number in a column, and a region of the analysis an expression over such columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import polars as pl

from gate.encoding.canonical import canonical
from gate.encoding.strict_json import Json
from gate.rulebooks.analysis.formulas.classes import FieldClasses
from gate.rulebooks.analysis.regions import Limit, Region
from gate.rulebooks.analysis.wording import condition_words
from gate.rulebooks.conditions import tests_of
from gate.rulebooks.documents import RulebookBody
from workbench.evaluator import has_member
from workbench.facts import json_of, number_of, string_of, type_of

CODE: Final = pl.Int16


def class_column(field: str) -> str:
    """The name of the column with the class of a field."""
    return f"{field}:class"


def classes_of(field: str, bodies: Iterable[RulebookBody]) -> FieldClasses:
    """The classes of a field, as the tests and declarations of some rulebooks divide its values.

    Raises:
        NotDecided: The tests have too many constants.
    """
    bodies = list(bodies)
    tests = [node.condition for body in bodies for _, node in tests_of(body)]
    return FieldClasses([test for test in tests if test["field"] == field], types_of(field, bodies), has_members=False)


def types_of(field: str, bodies: Iterable[RulebookBody]) -> list[str]:
    """The types that some rulebooks declare for a field."""
    declared = (body["input_schema"]["properties"].get(field) for body in bodies)
    return [property_["type"] for property_ in declared if property_ is not None]


def class_words(field: str, of: FieldClasses, index: int) -> str:
    """A class of a field in words: `50 < amount <= 100`."""
    every = frozenset(range(len(of.classes)))
    return condition_words([Limit(field, of, frozenset({index}), every, {}, {})])


def class_code(field: str, of: FieldClasses) -> pl.Expr:
    """The class of a field, as its place in `of.classes`; null where the fact is not known or was withheld."""
    constants: dict[str, dict[str, int]] = {"string": {}, "array": {}, "object": {}}
    others: dict[str, int] = {}
    for index, one in enumerate(of.classes):
        if one.kind in constants:
            for value in one.values:
                constants[one.kind][value if isinstance(value, str) else canonical(value).decode()] = index
            if one.is_open:
                others[one.kind] = index
        elif one.kind == "boolean":
            others[f"boolean {one.values[0]}"] = index
        elif one.kind in ("absent", "null"):
            others[one.kind] = index
    kind, number = type_of(field), number_of(field)
    at = {name: pl.lit(index, CODE) for name, index in others.items()}
    return (
        pl.when(kind == "number")
        .then(number_class(field, of))
        .when(kind == "string")
        .then(_constant(string_of(field), constants["string"], others["string"]))
        .when(kind == "absent")
        .then(at["absent"])
        .when(kind == "boolean")
        .then(pl.when(number == 1).then(at["boolean True"]).otherwise(at["boolean False"]))
        .when(kind == "null")
        .then(at["null"])
        .when(kind == "array")
        .then(_constant(json_of(field), constants["array"], others["array"]))
        .when(kind == "object")
        .then(_constant(json_of(field), constants["object"], others["object"]))
        .otherwise(None)
        .cast(CODE)
        .alias(class_column(field))
    )


def _constant(text: pl.Expr, codes: Mapping[str, int], other: int) -> pl.Expr:
    if not codes:
        return pl.lit(other, CODE)
    return text.replace_strict(list(codes), list(codes.values()), default=other, return_dtype=CODE)


def number_class(field: str, of: FieldClasses) -> pl.Expr:
    """The class of a field that is a number, as its place in `of.classes`; of another it means nothing."""
    number = number_of(field)
    cuts, line = _number_line(of)
    # Where two stretches of the line that meet are of one class, there is nothing to ask.
    runs, asked = [line[0]], []
    for at, classes in enumerate(line[1:]):
        if classes not in (runs[-1], _NOWHERE):
            runs.append(classes)
            asked.append(number >= cuts[at // 2] if at % 2 == 0 else number > cuts[at // 2])
    if len(asked) <= _FEW:
        # No branch of it depends on the value, so that it is faster than a search.
        place = pl.sum_horizontal(pl.lit(0, pl.UInt8), *(passed.cast(pl.UInt8) for passed in asked)).cast(pl.UInt32)
    else:
        runs, searched = line, pl.lit(pl.Series(cuts, dtype=pl.Float64))
        place = searched.search_sorted(number, "left") + searched.search_sorted(number, "right")
    if all(broken == whole for broken, whole in runs):
        return pl.lit(pl.Series([broken for broken, _ in runs], dtype=CODE)).gather(place)
    # Where it is no number it is null.
    is_whole = (number == number.floor()).fill_null(value=False).cast(pl.UInt32)
    return pl.lit(pl.Series([one for run in runs for one in run], dtype=CODE)).gather(2 * place + is_whole)


# How many comparisons take less time than a search.
_FEW: Final = 16
_NOWHERE: Final = (-1, -1)


def _number_line(of: FieldClasses) -> tuple[list[float], list[tuple[int, int]]]:
    """The points at which numbers are cut; and of the interval below the first, the point itself, the next interval and
    so on the class of numbers with a fraction, and that of whole ones: `_NOWHERE` of an interval without any double.
    """
    spans = [(index, span) for index, one in enumerate(of.classes) for span in one.spans]
    cuts = sorted({float(span.low) for _, span in spans if span.is_point})
    place = {cut: at for at, cut in enumerate(cuts)}
    line = [list(_NOWHERE) for _ in range(2 * len(cuts) + 1)]
    for index, span in spans:
        if span.is_point:
            classes = line[2 * place[span.low] + 1]
        else:
            classes = line[0 if span.low == -math.inf else 2 * (place[span.low] + 1)]
        if span.whole is not True:
            classes[0] = index
        if span.whole is not False:
            classes[1] = index
    # Of an interval that has only the one or the other, the class of what it has not is never asked for.
    told = [(broken if whole < 0 else whole, whole) if broken < 0 else (broken, whole) for broken, whole in line]
    return cuts, [(broken, broken if whole < 0 else whole) for broken, whole in told]


@dataclass(frozen=True, slots=True, eq=False)
class RegionColumns:
    """The regions of a difference as expressions over columns of classes.

    Attributes:
        columns: The columns that they need, derived from the columns of the facts.
        holds: For each region, whether the facts of a row lie within its limits. It uses these columns alone. It is
            null instead of false if a fact is unknown.
    """

    columns: Sequence[pl.Expr]
    holds: Sequence[pl.Expr]

    @property
    def read(self) -> set[str]:
        """The columns of facts that `columns` needs."""
        return {name for of in self.columns for name in of.meta.root_names()}


def region_columns(regions: Sequence[Region]) -> RegionColumns:
    """The regions of a difference as expressions; they may overlap."""
    columns: dict[str, pl.Expr] = {}
    holds = []
    for region in regions:
        conditions = [condition for limit in region.limits for condition in _within(limit, columns)]
        holds.append(pl.all_horizontal(conditions) if conditions else pl.lit(value=True))
    return RegionColumns(list(columns.values()), holds)


def _within(limit: Limit, columns: dict[str, pl.Expr]) -> Iterator[pl.Expr]:
    """Whether a limit holds; the columns that it needs are added to those that are there."""
    field = limit.name

    def column(name: str, made: Callable[[], pl.Expr]) -> pl.Expr:
        # No field's name has a colon.
        if name not in columns:
            columns[name] = made().alias(name)
        return pl.col(name)

    code = column(f"{field}:region", lambda: class_code(field, limit.of))
    allowed = [index in limit.allowed for index in range(len(limit.of.classes))]
    yield pl.lit(pl.Series(allowed, dtype=pl.Boolean)).gather(code)
    for index, wanted in limit.parts.items():
        yield column(f"{field}:part:{index}", partial(_contains, field, limit.of.parts[index])) == wanted
    for index, wanted in limit.items.items():
        yield column(f"{field}:item:{index}", partial(_has, field, limit.of.items[index])) == wanted


def _contains(field: str, part: str) -> pl.Expr:
    return string_of(field).str.contains(pl.lit(part), literal=True).fill_null(value=False)


def _has(field: str, item: Json) -> pl.Expr:
    has = has_member(field, canonical(item).decode()) & (type_of(field) == "array")
    return has.fill_null(value=False)
