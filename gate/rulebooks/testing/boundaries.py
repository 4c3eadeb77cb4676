"""Boundary values of a rulebook: for each test the values on either side of its edge, for each field the unusual ones.

    [value.label for value in boundary_values(body)]
    # ["amount just below 50", "amount exactly 50", "amount just above 50", ..., "amount is absent", "amount is null"]

Mistakes sit at edges. The values come from the constants of the rulebook alone; which other facts must be there for a
test to decide anything is a question for the analysis.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, cast

from gate.encoding.canonical import canonical
from gate.encoding.shapes import json_type
from gate.encoding.strict_json import Json
from gate.rulebooks.conditions import tests_of
from gate.rulebooks.documents import Condition, RulebookBody
from gate.rulebooks.evaluation import ABSENT, is_of_type, predicate_of
from gate.rulebooks.explanation import shown
from gate.rulebooks.testing.steps import Direction, beside


@dataclass(frozen=True, slots=True)
class BoundaryValue:
    """A value of a field at an edge.

    Attributes:
        field: The field, a dotted path.
        path: The test whose edge it is: `rules[2].condition.all[0]`; None for the unusual values of a field.
        label: The value in words, for the name of a case: `amount just above 50`.
        value: A JSON value, or `evaluation.ABSENT` for a field that is not there.
    """

    field: str
    path: str | None
    label: str
    value: object


def boundary_values(body: RulebookBody) -> list[BoundaryValue]:
    """The boundary values of a valid rulebook: those of each test as they are written, then those of each field."""
    fields = _Fields(body)
    found = [
        BoundaryValue(field.name, node.path, f"{field.name} {words}", value)
        for _, node in tests_of(body)
        for field in (fields[node.condition["field"]],)
        for words, value in field.values_of(node.condition)
    ]
    for field in fields:
        found += [
            BoundaryValue(field.name, None, f"{field.name} {words}", value) for words, value in field.unusual_values()
        ]
    return found


class _Fields:
    """The fields that a rulebook reads, declares or requires, by name."""

    def __init__(self, body: RulebookBody) -> None:
        tests: dict[str, list[Condition]] = defaultdict(list)
        for _, node in tests_of(body):
            tests[node.condition["field"]].append(node.condition)
        schema = body["input_schema"]
        types = {name: declared["type"] for name, declared in schema["properties"].items()}
        names = sorted({*tests, *types, *schema["required"]})
        self._fields: Final = {name: _Field(name, types.get(name), tests[name]) for name in names}

    def __getitem__(self, name: str) -> _Field:
        return self._fields[name]

    def __iter__(self) -> Iterator[_Field]:
        return iter(self._fields.values())


class _Field:
    """A field, with the constants of all its tests."""

    def __init__(self, name: str, type_: str | None, tests: Sequence[Condition]) -> None:
        self.name: Final = name
        self._type: Final = type_
        self._constants: Final = [value for test in tests for value in _constants(test)]
        self._thresholds: Final = sorted({cast("float", value) for value in self._constants if _is_number(value)})
        self._another_text: Final = _another_text(value for value in self._constants if isinstance(value, str))

    def values_of(self, test: Condition) -> Iterator[tuple[str, Json]]:
        """The values at the edge of a test, each in words; only those of the declared type."""
        seen: set[bytes] = set()
        for words, value in self._values_of(test):
            if self._type is None or is_of_type(value, self._type):
                written = canonical(value)
                if written not in seen:
                    seen.add(written)
                    yield words, value

    def _values_of(self, test: Condition) -> Iterator[tuple[str, Json]]:
        operator = test["operator"]
        if operator in ("gt", "gte", "lt", "lte"):
            if _is_number(test["value"]):
                yield from self._around_number(cast("float", test["value"]))
        elif operator in ("eq", "neq"):
            yield from self._around(test["value"])
        elif operator in ("in", "not_in"):
            yield from self._around_list(cast("list[Json]", test["value"]))
        elif operator in ("contains", "not_contains"):
            yield from self._around_part(test["value"])

    def _around(self, value: Json) -> Iterator[tuple[str, Json]]:
        """A value, and others of its type that are close to it."""
        if _is_number(value):
            yield from self._around_number(cast("float", value))
            return
        yield f"is {shown(value)}", value
        if isinstance(value, bool):
            yield f"is {shown(not value)}", not value
        elif isinstance(value, str):
            yield f"is another text, {shown(self._another_text)}", self._another_text
        elif isinstance(value, list):
            other: list[Json] = [] if value else [None]
            yield f"is another array, {shown(other)}", other
        elif isinstance(value, dict):
            another: dict[str, Json] = {} if value else {"other": None}
            yield f"is another object, {shown(another)}", another

    def _around_number(self, number: float) -> Iterator[tuple[str, Json]]:
        whole = self._type == "integer"
        sides: tuple[tuple[Direction, str], ...] = ((-1, "just below"), (1, "just above"))
        (below, above) = (
            (f"{words} {shown(number)}", beside(number, direction, self._thresholds, whole=whole))
            for direction, words in sides
        )
        for words, value in (below, (f"exactly {shown(number)}", number), above):
            if value is not None:
                yield words, value

    def _around_list(self, items: list[Json]) -> Iterator[tuple[str, Json]]:
        """The first item, and values close to it that are not listed."""
        is_listed = predicate_of({"field": self.name, "operator": "in", "value": items})
        for first in items[:1]:
            yield f"is {shown(first)}, which is listed", first
            for words, value in self._around(first):
                if not is_listed(value):
                    yield f"{words}, which is not listed", value
        if not items:
            yield f"is {shown(self._another_text)}, which is not listed", self._another_text

    def _around_part(self, part: Json) -> Iterator[tuple[str, Json]]:
        if isinstance(part, str):
            yield f"is a text that contains {shown(part)}", part
            if part:
                yield f"is a text that does not contain {shown(part)}", self._another_text
        if self._type == "array" or (self._type is None and not isinstance(part, str)):
            yield f"has the item {shown(part)}", [part]
            yield f"lacks the item {shown(part)}", []

    def unusual_values(self) -> Iterator[tuple[str, object]]:
        """Absence, null, and values of other types than the declared one, or than those of the constants."""
        yield "is absent", ABSENT
        yield "is null", None
        if self._type == "integer":
            yield "has a fraction", 0.5
        usual = {self._type} if self._type is not None else {json_type(value) for value in self._constants}
        if usual & {"number", "integer"}:
            # Systems that send numbers as text are the usual reason for a wrong type.
            yield "is a number as text", shown(self._thresholds[0] if self._thresholds else 1)
        elif "boolean" in usual:
            yield "is a boolean as text", "true"
        elif "string" in usual:
            yield "is a number", 1
        else:
            yield "is a text", self._another_text


def _constants(test: Condition) -> Iterable[Json]:
    if "value" not in test:
        return ()
    return cast("list[Json]", test["value"]) if test["operator"] in ("in", "not_in") else (test["value"],)


def _is_number(value: Json) -> bool:
    return json_type(value) in _NUMBERS


_NUMBERS: Final = ("integer", "number")


def _another_text(texts: Iterable[str]) -> str:
    """A text that is none of some, and contains none of them."""
    known = [text for text in texts if text]
    if not any(text in _OTHER for text in known):
        return _OTHER
    taken = frozenset().union(*known)
    # More characters than the largest rulebook has, and no surrogates among them.
    marks = chain(range(ord("A"), 0xD800), range(0xE000, 0x110000))
    return next(mark for mark in map(chr, marks) if mark not in taken)


_OTHER: Final = "other"
