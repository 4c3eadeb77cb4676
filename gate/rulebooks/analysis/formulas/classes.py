"""The values of a field, divided into classes that no test of the field tells apart.

Absence, null, true, and false are their own values. Numbers are cut at the constants of tests. Strings, arrays, and
objects are the constants of tests, and one class for all others. Whether another string contains a text, or another
array an item, is a separate question instead of a class. Otherwise, ten substring tests would make a thousand classes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, Literal, TypeAlias, TypeVar, cast

from gate.encoding.canonical import canonical
from gate.encoding.strict_json import Json
from gate.rulebooks.analysis.formulas.numbers import Span, spans
from gate.rulebooks.analysis.formulas.solver import NotDecided
from gate.rulebooks.documents import Condition
from gate.rulebooks.evaluation import ABSENT, is_of_type, predicate_of

Value = TypeVar("Value")

Kind: TypeAlias = Literal["absent", "null", "boolean", "number", "string", "array", "object"]

# How often a constant is held against a test of its field, at most: beyond it the classes alone would take a minute.
MAX_COMPARISONS: Final = 2_000_000


MAX_CLASSES: Final = 2_000
"""How many classes the values of a field may have."""


@dataclass(frozen=True, slots=True)
class ValueClass:
    """Values of one JSON type that no test of a field tells apart.

    Attributes:
        kind: Their JSON type, or `absent`.
        values: The values, where they are counted out: true or false, and constants; empty elsewhere.
        spans: The numbers.
        is_open: Whether it is every string, array, or object that is not a constant.
        sample: A value of the class; of an open one, a value that contains nothing that a test asks for.
    """

    kind: Kind
    values: tuple[Json, ...]
    spans: tuple[Span, ...]
    is_open: bool
    sample: object


@dataclass(frozen=True, slots=True)
class Asked:
    """What a test says of an open class: it holds if a question is answered so.

    Attributes:
        kind: `part` for a text that a string may contain, `item` for an item that an array may have.
        index: Which of the field's parts or items.
        answer: The answer with which the test holds.
    """

    kind: Literal["part", "item"]
    index: int
    answer: bool


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value stands: its class, and the parts and items that it contains."""

    index: int
    parts: frozenset[int]
    items: frozenset[int]


class FieldClasses:
    """The classes of a field, and the questions about its open ones.

    Attributes:
        classes: The classes: every JSON value, and absence, is in exactly one of them.
        parts: The texts that tests look for in strings.
        items: The values that tests look for in arrays.
    """

    def __init__(self, tests: Iterable[Condition], types: Iterable[str], *, has_members: bool) -> None:
        """Builds the classes.

        Args:
            tests: Every test of the field.
            types: Every type that an input schema declares for it.
            has_members: Whether rulebooks read fields below this one, so that each object constant is a class.

        Raises:
            NotDecided: The tests have too many constants.
        """
        self._tests: Final = list(_distinct(tests))
        self._types: Final = sorted(set(types))
        sought = [test["value"] for test in self._tests if test["operator"] in ("contains", "not_contains")]
        # Every string contains the empty one, so that is no question.
        self.parts: Final = tuple(dict.fromkeys(text for text in sought if isinstance(text, str) and text))
        self.items: Final = tuple({canonical(item): item for item in sought}.values())
        self._part_at: Final = {text: index for index, text in enumerate(self.parts)}
        self._item_at: Final = {canonical(item): index for index, item in enumerate(self.items)}
        self._holds_item: Final = [predicate_of(_contains(item)) for item in self.items]
        self._predicates: Final = [predicate_of(test) for test in self._tests]
        self._constants: Final = _Constants(self._tests)
        if len(self._constants) * len(self._tests) > MAX_COMPARISONS:
            raise NotDecided(
                f"tests name {len(self._constants)} values, too many to hold each against {len(self._tests)} tests"
            )
        # With a character between them that no constant has, parts make no part that is not asked for.
        taken = frozenset().union(*self._constants.strings, *self.parts)
        self._apart: Final = next(mark for mark in _marks() if mark not in taken)
        self.classes: Final = tuple(islice(self._build(has_members=has_members), MAX_CLASSES + 1))
        if len(self.classes) > MAX_CLASSES:
            raise NotDecided(f"tests tell more than {MAX_CLASSES} kinds of values apart")
        self._of_constant: Final = {
            (one.kind, canonical(value)): index for index, one in enumerate(self.classes) for value in one.values
        }

    def string(self, parts: frozenset[int]) -> str:
        """A string that is no constant and contains exactly these parts, and the parts of them."""
        wanted = [self.parts[index] for index in sorted(parts)]
        # A part of another part comes with it.
        needed = [text for text in wanted if not any(text != other and text in other for other in wanted)]
        for candidate in self._strings(needed):
            if candidate not in self._constants.strings and self._parts_of(candidate) == parts:
                return candidate
        raise AssertionError("A character that no test names keeps the parts of a string apart.")

    def array(self, items: frozenset[int]) -> list[Json]:
        """An array that is no constant and has exactly these items, of those that tests look for."""
        made: list[Json] = [self.items[index] for index in sorted(items)]
        if canonical(made) not in self._constants.arrays:
            return made
        spare = _spare_names(lambda name: canonical(name) not in self._item_at)
        while canonical(made) in self._constants.arrays:
            made.append(next(spare))
        return made

    def make_other(self, value: dict[str, Json], taken: frozenset[str]) -> None:
        """Gives an object a member of no importance until it is no constant.

        Args:
            value: The object, which is changed.
            taken: Names that the member must not have.
        """
        spare = _spare_names(lambda name: name not in taken and name not in value)
        while canonical(value) in self._constants.objects:
            value[next(spare)] = True

    def place(self, value: object) -> Place:
        """The place of a JSON value, or of `ABSENT`."""
        kind = kind_of(value)
        if kind == "string":
            parts = self._parts_of(cast("str", value))
            return Place(self._class_of(kind, value), parts, frozenset())
        if kind == "array":
            items = frozenset(index for index, holds in enumerate(self._holds_item) if holds(value))
            return Place(self._class_of(kind, value), frozenset(), items)
        return Place(self._class_of(kind, value), frozenset(), frozenset())

    def truths(self, test: Condition) -> list[bool | Asked]:
        """Whether a test holds for the values of each class; for an open one it may be a question."""
        predicate = predicate_of(test)
        return [self._truth(test, predicate, one) for one in self.classes]

    def _truth(self, test: Condition, predicate: Callable[[object], bool], one: ValueClass) -> bool | Asked:
        if one.is_open and test["operator"] in ("contains", "not_contains"):
            answer = test["operator"] == "contains"
            if one.kind == "string" and isinstance(test["value"], str) and test["value"]:
                return Asked("part", self._part_at[test["value"]], answer)
            if one.kind == "array":
                return Asked("item", self._item_at[canonical(test["value"])], answer)
        return predicate(one.sample)

    def _class_of(self, kind: Kind, value: object) -> int:
        if kind == "number":
            return next(index for index, one in enumerate(self.classes) if any(_within(value, s) for s in one.spans))
        if kind in ("boolean", "string", "array", "object"):
            found = self._of_constant.get((kind, canonical(value)))
            if found is not None:
                return found
        return next(index for index, one in enumerate(self.classes) if one.kind == kind and not one.values)

    def _build(self, *, has_members: bool) -> Iterator[ValueClass]:
        yield ValueClass("absent", (), (), is_open=False, sample=ABSENT)
        yield ValueClass("null", (), (), is_open=False, sample=None)
        for truth in (False, True):
            yield ValueClass("boolean", (truth,), (), is_open=False, sample=truth)
        numbers = spans(self._constants.numbers, split="integer" in self._types)
        for cut in _grouped(numbers, lambda span: self._signature(span.sample)):
            yield ValueClass("number", (), tuple(cut), is_open=False, sample=cut[0].sample)
        for text in _grouped(self._constants.strings, self._signature):
            yield ValueClass("string", tuple(text), (), is_open=False, sample=text[0])
        yield ValueClass("string", (), (), is_open=True, sample=self.string(frozenset()))
        for array in _grouped(self._constants.arrays.values(), self._signature):
            yield ValueClass("array", tuple(array), (), is_open=False, sample=array[0])
        yield ValueClass("array", (), (), is_open=True, sample=self.array(frozenset()))
        objects = self._constants.objects.values()
        for group in [[one] for one in objects] if has_members else _grouped(objects, self._signature):
            yield ValueClass("object", tuple(group), (), is_open=False, sample=group[0])
        other: dict[str, Json] = {}
        self.make_other(other, frozenset())
        yield ValueClass("object", (), (), is_open=True, sample=other)

    def _signature(self, value: object) -> tuple[bool, ...]:
        return (
            *(predicate(value) for predicate in self._predicates),
            *(is_of_type(value, type_) for type_ in self._types),
        )

    def _parts_of(self, text: str) -> frozenset[int]:
        return frozenset(index for index, part in enumerate(self.parts) if part in text)

    def _strings(self, needed: Sequence[str]) -> Iterator[str]:
        if len(needed) == 1:
            yield needed[0]
        if not needed:
            yield from ("other", "something else")
        for mark in (" ", self._apart):
            yield mark.join(needed)
            yield mark.join([*needed, "other"])
        yield self._apart.join([*needed, "", ""])


class _Constants:
    """The constants of tests by their type: those that a value can be equal to, and those that numbers are cut at."""

    def __init__(self, tests: Iterable[Condition]) -> None:
        self.numbers: Final[set[float]] = set()
        self.strings: Final[dict[str, None]] = {}
        self.arrays: Final[dict[bytes, Json]] = {}
        self.objects: Final[dict[bytes, Json]] = {}
        for test in tests:
            if test["operator"] in ("in", "not_in"):
                for item in cast("list[Json]", test["value"]):
                    self._add(item)
            elif test["operator"] in ("eq", "neq"):
                self._add(test["value"])
            elif test["operator"] in ("gt", "gte", "lt", "lte") and kind_of(test["value"]) == "number":
                # Ordering holds between numbers only, so that another constant tells no values apart.
                self._add(test["value"])

    def __len__(self) -> int:
        return len(self.numbers) + len(self.strings) + len(self.arrays) + len(self.objects)

    def _add(self, value: Json) -> None:
        if isinstance(value, str):
            self.strings[value] = None
        elif isinstance(value, list):
            self.arrays[canonical(value)] = value
        elif isinstance(value, dict):
            self.objects[canonical(value)] = value
        elif isinstance(value, int | float) and not isinstance(value, bool):
            self.numbers.add(value)


def kind_of(value: object) -> Kind:
    """The JSON type of a value, 1 and 1.5 alike being numbers; `absent` for `ABSENT`."""
    if value is ABSENT:
        return "absent"
    if value is None:
        return "null"
    kinds: dict[type, Kind] = {
        bool: "boolean", int: "number", float: "number", str: "string", list: "array", dict: "object",
    }  # fmt: skip
    return kinds[type(value)]


def _within(value: object, span: Span) -> bool:
    number = cast("float", value)
    if span.is_point:
        return number == span.low
    return span.low < number < span.high and span.whole in (None, float(number).is_integer())


def _distinct(tests: Iterable[Condition]) -> Iterator[Condition]:
    seen = set()
    for test in tests:
        key = (test["operator"], canonical(test["value"]) if "value" in test else b"")
        if key not in seen:
            seen.add(key)
            yield test


def _contains(item: Json) -> Condition:
    return {"field": "", "operator": "contains", "value": item}


def _grouped(values: Iterable[Value], signature: Callable[[Value], tuple[bool, ...]]) -> list[list[Value]]:
    groups: dict[tuple[bool, ...], list[Value]] = defaultdict(list)
    for value in values:
        groups[signature(value)].append(value)
    return list(groups.values())


def _marks() -> Iterator[str]:
    """Characters, those first that people read easily; more than the constants of a rulebook can have."""
    yield from "-_/.,;:|~+*#xyz"
    yield from map(chr, range(0x10000, 0x110000))


def _spare_names(is_free: Callable[[str], bool]) -> Iterator[str]:
    number = 0
    while True:
        name = "other" if number == 0 else f"other_{number}"
        number += 1
        if is_free(name):
            yield name
