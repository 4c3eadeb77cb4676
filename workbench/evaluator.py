"""Rulebook v1 over columns: a rulebook as one expression, equal to `gate.rulebooks.evaluation` on every row.

    evaluator = compile_frame_evaluator(body)
    frame = with_fields(pl.scan_parquet(path), evaluator.fields)
    frame.select(evaluator.index)                 # which of evaluator.outcomes
    evaluator.decide(frame, prefix="then_")       # the outcome in columns

A rule is only evaluated if the facts are known and fit the declared types. A test is then true or false, and never
null. It checks the JSON type first, and `false and null`, without a value of that type, is false. Tests that the
declared types already decide are skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial, reduce
from operator import and_, ge, gt, le, lt, or_
from typing import Final, TypeAlias, cast

import msgspec
import polars as pl

from gate.encoding.canonical import canonical
from gate.encoding.strict_json import Json
from gate.rulebooks.documents import Condition, DeclaredOutcome, RulebookBody
from gate.rulebooks.evaluation import NEEDS_INPUT, Outcome
from workbench.facts import ABSENT, WITHHELD, fields_of, json_of, number_of, string_of, type_of, where

_Holds: TypeAlias = pl.Expr | bool
"""Whether something holds, where it can be told without looking: a bool."""

_KNOWN: Final = frozenset({ABSENT, "null", "boolean", "number", "string", "array", "object"})

FAILED: Final = "schema:failed"
"""What decided, as evidence names it, where the input schema refused the facts."""

DEFAULT: Final = "rule:default"
"""The same where no rule matched."""

STATUSES: Final = pl.Enum(["ok", "needs_input"])
VERDICTS: Final = pl.Enum(["yes", "no", "review"])
_LABELS: Final = pl.Categorical()
# The columns of an outcome, and the attribute each is.
_COLUMNS: Final[Mapping[str, tuple[str, pl.DataType]]] = {
    "status": ("status", STATUSES),
    "verdict": ("decision", VERDICTS),
    "application_verdict": ("verdict", _LABELS),
    "action": ("action", _LABELS),
    "reason_code": ("reason_code", _LABELS),
    "matched_rule_id": ("matched_rule_id", _LABELS),
}
# No field or column name begins with a colon.
_INDEX: Final = ":index"

_ARRAY: Final = msgspec.json.Decoder(list[msgspec.Raw])


@dataclass(frozen=True, slots=True, eq=False)
class VectorEvaluator:
    """A rulebook as an expression over the columns of its fields.

    Attributes:
        fields: The fields that it reads, sorted.
        outcomes: Its possible results: each rule in the order of evaluation, the default, and `NEEDS_INPUT`.
        index: The index in `outcomes` of a row's result (`Int16`); null if a field is unknown or withheld.
        unfit: By field, whether a row fails the input schema because of it; false if any field is unknown or withheld.
    """

    fields: tuple[str, ...]
    outcomes: tuple[Outcome, ...]
    index: pl.Expr
    unfit: Mapping[str, pl.Expr]

    def decide(self, frame: pl.LazyFrame, prefix: str = "") -> pl.LazyFrame:
        """The frame with the outcome in columns.

        Args:
            frame: A frame with the columns of `fields`, from `with_fields` or `patched`.
            prefix: The prefix of the names of the columns.

        Returns:
            The frame with `status` (Enum), `verdict` (yes, no, or review, Enum), `application_verdict`, `action`,
            `reason_code`, and `matched_rule_id` (Categorical). All are null if the outcome is unknown.
            `matched_rule_id` is also null if no rule matched.
        """
        index = f"{_INDEX}:{prefix}"
        told = [
            pl.lit(pl.Series([getattr(outcome, attribute) for outcome in self.outcomes], dtype=dtype))
            .gather(pl.col(index))
            .alias(f"{prefix}{name}")
            for name, (attribute, dtype) in _COLUMNS.items()
        ]
        return frame.with_columns(self.index.alias(index)).with_columns(told).drop(index)


def compile_frame_evaluator(body: RulebookBody) -> VectorEvaluator:
    """Compiles a valid rulebook body; `gate.rulebooks.rulebook.load` validates first."""
    rules = sorted(body["rules"], key=lambda rule: (-rule.get("priority", 0), rule["rule_id"]))
    outcomes = (
        *(_outcome(rule["outcome"], rule["rule_id"]) for rule in rules),
        _outcome(body["default_outcome"], None),
        NEEDS_INPUT,
    )
    fields = fields_of(body)
    schema = body["input_schema"]
    declared = {name: property_["type"] for name, property_ in schema["properties"].items()}
    facts = {name: _Fact(name, _possible(declared.get(name), name in schema["required"])) for name in fields}
    fits = {name: _fits(fact, declared.get(name)) for name, fact in facts.items()}
    fit = pl.all_horizontal(fits.values())
    known = pl.all_horizontal(type_of(name) != WITHHELD for name in fields)
    matched = _first([_condition(rule["condition"], facts) for rule in rules])
    needs_input = where(known, len(outcomes) - 1, pl.Int16)
    # A row whose facts are not known never fits.
    index = pl.when(fit).then(matched).otherwise(needs_input).alias("outcome")
    unfit = {name: (known & ~of.fill_null(value=False)).fill_null(value=False) for name, of in fits.items()}
    return VectorEvaluator(fields, outcomes, index, unfit)


def _outcome(body: DeclaredOutcome, rule_id: str | None) -> Outcome:
    return Outcome("ok", body["decision"], body["verdict"], body["action"], body["reason_code"], rule_id)


def _first(conditions: Sequence[_Holds]) -> pl.Expr:
    """The position of the first condition that holds, or their count."""
    found = pl.lit(len(conditions), pl.Int16)
    for position in reversed(range(len(conditions))):
        holds, here = conditions[position], pl.lit(position, pl.Int16)
        if holds is True:
            found = here
        elif holds is not False:
            found = pl.when(holds).then(here).otherwise(found)
    return found


@dataclass(frozen=True, slots=True)
class _Fact:
    """A field as the rules see it: the types that it can have where the facts fit."""

    field: str
    possible: frozenset[str]

    def is_of(self, *types: str) -> _Holds:
        """Whether it is of one of the types."""
        asked = self.possible.intersection(types)
        if asked == self.possible:
            return True
        return _any(type_of(self.field) == type_ for type_ in sorted(asked))

    @property
    def is_there(self) -> _Holds:
        return _not(self.is_of(ABSENT))


_Operator: TypeAlias = Callable[[_Fact, Json], _Holds]
"""A test of a fact against the value of a rule."""


def _possible(declared: str | None, required: bool) -> frozenset[str]:
    types = _KNOWN if declared is None else frozenset({ABSENT, "number" if declared == "integer" else declared})
    return types - {ABSENT} if required else types


def _fits(fact: _Fact, declared: str | None) -> pl.Expr:
    """Whether the fact is known, there if it is required, and of its declared type; at times null for no."""
    types = type_of(fact.field)
    if fact.possible >= _KNOWN - {ABSENT}:
        excluded = sorted({ABSENT, WITHHELD} - fact.possible)
        return reduce(and_, [types != type_ for type_ in excluded])
    fits = reduce(or_, [types == type_ for type_ in sorted(fact.possible)])
    if declared == "integer":
        number = number_of(fact.field)
        # Where it is absent, its number is null.
        return fits & (number == number.floor()).fill_null(value=True)
    return fits


def _condition(condition: Condition, facts: Mapping[str, _Fact]) -> _Holds:
    if "not" in condition:
        return _not(_condition(condition["not"], facts))
    if "all" in condition:
        return _all(_condition(child, facts) for child in condition["all"])
    if "any" in condition:
        return _any(_condition(child, facts) for child in condition["any"])
    return _OPERATORS[condition["operator"]](facts[condition["field"]], condition.get("value"))


def _all(parts: Iterable[_Holds]) -> _Holds:
    asked = list(parts)
    if any(part is False for part in asked):
        return False
    open_ = [part for part in asked if not isinstance(part, bool)]
    return _joined(and_, pl.all_horizontal, open_) if open_ else True


def _any(parts: Iterable[_Holds]) -> _Holds:
    asked = list(parts)
    if any(part is True for part in asked):
        return True
    open_ = [part for part in asked if not isinstance(part, bool)]
    return _joined(or_, pl.any_horizontal, open_) if open_ else False


# Beyond it a chain of operators would nest too deep.
_MOST_OPERANDS: Final = 8


def _joined(
    operator: Callable[[pl.Expr, pl.Expr], pl.Expr], joined: Callable[[list[pl.Expr]], pl.Expr], parts: list[pl.Expr]
) -> pl.Expr:
    return reduce(operator, parts) if len(parts) <= _MOST_OPERANDS else joined(parts)


def _not(holds: _Holds) -> _Holds:
    # Where the facts are known, whatever is negated here is true or false and never null: of null `~` would make null,
    # and neither a test nor its negation would hold.
    return (not holds) if isinstance(holds, bool) else ~holds


def _number(value: float) -> float:
    # The columns have no -0 either.
    return float(value) + 0.0


def _text(value: Json) -> str:
    # Arrays and objects are equal where their canonical texts are: members in any order, 1 and 1.0 alike, true and 1
    # apart, as the scalar evaluator has it.
    return canonical(value).decode()


def _type_of_value(value: Json) -> str:
    if value is None:
        return "null"
    return {bool: "boolean", int: "number", float: "number", str: "string", list: "array", dict: "object"}[type(value)]


def _among(fact: _Fact, values: Sequence[Json]) -> _Holds:
    """Whether the fact is one of the values."""
    by_type: dict[str, list[Json]] = {}
    for value in values:
        by_type.setdefault(_type_of_value(value), []).append(value)
    return _any(
        _all([is_of, _values_among(fact.field, type_, of_type)])
        for type_, of_type in sorted(by_type.items())
        if (is_of := fact.is_of(type_)) is not False
    )


def _values_among(field: str, type_: str, values: Sequence[Json]) -> _Holds:
    """Whether a field's value, which is of that type, is one of the values."""
    if type_ == "null":
        return True
    if type_ == "boolean":
        truths = cast("Sequence[bool]", values)
        return True if len(set(truths)) > 1 else number_of(field) == float(truths[0])
    if type_ == "number":
        return _one_of(number_of(field), [_number(value) for value in cast("Sequence[float]", values)])
    if type_ == "string":
        return _one_of(string_of(field), cast("Sequence[str]", values))
    return _one_of(json_of(field), [_text(value) for value in values])


def _one_of(column: pl.Expr, values: Sequence[str] | Sequence[float]) -> pl.Expr:
    distinct = list(dict.fromkeys(values))
    return column == pl.lit(distinct[0]) if len(distinct) == 1 else column.is_in(distinct)


def _contains(fact: _Fact, value: Json) -> _Holds:
    """Whether the fact is an array with such a member, or a string with such a part."""
    part = string_of(fact.field).str.contains(pl.lit(value), literal=True) if isinstance(value, str) else False
    member = False if (is_array := fact.is_of("array")) is False else has_member(fact.field, _text(value))
    return _any([_all([fact.is_of("string"), part]), _all([is_array, member])])


@lru_cache(maxsize=1024)
def has_member(field: str, text: str) -> pl.Expr:
    """Whether a field, which is an array, has a member of that canonical text.

    It is the same expression whenever it is asked for: of equal ones that call Python, Polars would work out each.
    """
    return json_of(field).map_batches(partial(_arrays_with, text), pl.Boolean, is_elementwise=True)


def _arrays_with(text: str, values: pl.Series) -> pl.Series:
    """Which arrays, as canonical JSON, have a member of that canonical text."""
    # An array with the member has its text somewhere; few others do, and only those are taken apart.
    perhaps = values.filter(values.str.starts_with("[") & values.str.contains(text, literal=True)).unique().to_list()
    member = msgspec.Raw(text)
    having = [array for array in perhaps if member in _ARRAY.decode(array)]
    return values.is_in(having) if having else pl.repeat(False, len(values), eager=True).alias(values.name)


def _compared(compare: Callable[[pl.Expr, float], pl.Expr]) -> _Operator:
    def holds(fact: _Fact, value: Json) -> _Holds:
        # true is not a number in JSON, though it is in Python.
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        return _all([fact.is_of("number"), compare(number_of(fact.field), _number(value))])

    return holds


def _negated(operator: _Operator) -> _Operator:
    # An absent field has no value that could differ: `neq` of it is as false as `eq`.
    return lambda fact, value: _all([fact.is_there, _not(operator(fact, value))])


def _equals(fact: _Fact, value: Json) -> _Holds:
    return _among(fact, [value])


def _is_in(fact: _Fact, value: Json) -> _Holds:
    # Its shape says that the value of `in` is an array.
    return _among(fact, cast("list[Json]", value))


_OPERATORS: Final[Mapping[str, _Operator]] = {
    "exists": lambda fact, _: fact.is_there,
    "not_exists": lambda fact, _: fact.is_of(ABSENT),
    "eq": _equals,
    "neq": _negated(_equals),
    "gt": _compared(gt),
    "gte": _compared(ge),
    "lt": _compared(lt),
    "lte": _compared(le),
    "in": _is_in,
    "not_in": _negated(_is_in),
    "contains": _contains,
    "not_contains": _negated(_contains),
}
