"""All facts that matter to some rulebooks: one representative of each class that the rulebooks can tell apart.

    axes = Axes([before, after])
    axes.grid(most=2_000)           # a list of facts

Two facts are of one class if they agree on the result of every test, on the types of declared fields, and on the
fields that are present. The fields below one top-level name (`a`, `a.b`) are looked at together: values of the name are
made from the cut points of its tests, and the classes of all names are multiplied out. Nothing here knows how rulebooks
are analysed. The evaluator alone says which values differ.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from gate.encoding.strict_json import MAX_SAFE_INTEGER
from gate.rulebooks.conditions import tests_of
from gate.rulebooks.evaluation import compile_rulebook

ABSENT: Final = object()
"""Stands among the values of a field for its absence."""


# From here on every double is integral.
_INTEGRAL: Final = 2.0**52
_MOST_PARTS: Final = 6

_Signature = Callable[[dict[str, Any]], Hashable]


class TooLarge(Exception):
    """There are more classes than a test has time for."""


@dataclass
class Node:
    """A field or a beginning of one.

    Attributes:
        compared: The constants of its tests, the items of lists included.
        contained: The constants of `contains` and `not_contains`.
        below: The fields below it, by name.
    """

    compared: list[Any] = field(default_factory=list)
    contained: list[Any] = field(default_factory=list)
    below: dict[str, Node] = field(default_factory=dict)


class Axes:
    """The top-level names that rulebooks read, each with values of every class.

    Attributes:
        signature: The class of facts.
        raw: For each name, more values than classes: also several of one class.
        classes: For each name, one value of each class.
    """

    def __init__(self, bodies: Sequence[Any], *, most: int = 5_000) -> None:
        """Raises TooLarge where a name would have more than `most` values."""
        self.signature: Final = _signatures(bodies)
        self._values: Final = _Values(bodies, self.signature, most)
        self.raw: Final = {name: self._values.of(name) for name in self._values.nodes}
        self.classes: Final = {
            name: _one_of_each(values, partial(_put, (name,), fresh=None), self.signature)
            for name, values in self.raw.items()
        }

    def values_of(self, path: str) -> list[Any]:
        """Values of a field, one of each class; its absence among them."""
        return self._values.classes_of(path)

    def grid(self, *, most: int, names: Iterable[str] | None = None) -> list[dict[str, Any]]:
        """Facts of every class; only of some names, where these are given.

        Raises:
            TooLarge: They are more than `most`.
        """
        chosen = self.classes if names is None else {name: self.classes[name] for name in names}
        if math.prod(map(len, chosen.values())) > most:
            raise TooLarge
        return [facts_of(chosen, values) for values in itertools.product(*chosen.values())]


def facts_of(names: Iterable[str], values: Iterable[Any]) -> dict[str, Any]:
    """Facts of names and their values, those that are absent left out."""
    return {name: value for name, value in zip(names, values, strict=True) if value is not ABSENT}


def fields_of(body: Any) -> set[str]:
    """The fields that a rulebook reads: tested, required or declared."""
    schema = body["input_schema"]
    return {node.condition["field"] for _, node in tests_of(body)} | {*schema["required"], *schema["properties"]}


def look_up(facts: Mapping[str, Any], path: str) -> Any:
    """The value of a field, or ABSENT."""
    value: Any = facts
    for name in path.split("."):
        if not isinstance(value, dict) or name not in value:
            return ABSENT
        value = value[name]
    return value


def _signatures(bodies: Sequence[Any]) -> _Signature:
    fields = sorted({path for body in bodies for path in fields_of(body)})
    tests: list[Any] = [node.condition for body in bodies for _, node in tests_of(body)]
    tests += [{"field": path, "operator": "exists"} for path in fields]
    rule = {"rule_id": "all_tests", "condition": {"any": tests}, "outcome": bodies[0]["default_outcome"]}
    without_schema: Any = {**bodies[0], "input_schema": {"required": [], "properties": {}}, "rules": [rule]}
    tested = compile_rulebook(without_schema)
    schemas = [compile_rulebook(body) for body in bodies]

    def signature(facts: dict[str, Any]) -> Hashable:
        (tried,) = tested.explain(facts).evaluation["rules"]
        mistyped = [schema.explain(facts).evaluation["invalid_fields"] for schema in schemas]
        return (
            tuple(test["passed"] for test in tried["tests"]),
            tuple(tuple(invalid["field"] for invalid in each) for each in mistyped),
        )

    return signature


def _one_of_each(values: Iterable[Any], facts: Callable[[Any], dict[str, Any]], signature: _Signature) -> list[Any]:
    """The first value of each class."""
    found: dict[Hashable, Any] = {}
    for value in values:
        found.setdefault(signature(facts(value)), value)
    return list(found.values())


def _put(names: Sequence[str], value: Any, *, fresh: str | None) -> dict[str, Any]:
    """An object that has a value below so many names, and a fresh member on every level."""
    *above, last = names
    made: dict[str, Any] = {} if value is ABSENT else {last: value}
    for name in reversed(above):
        made = {name: made if fresh is None else {**made, fresh: None}}
    return made


class _Values:
    """Values of the fields of some rulebooks."""

    def __init__(self, bodies: Sequence[Any], signature: _Signature, most: int) -> None:
        self._signature = signature
        self._most = most
        # A character that no rulebook has: as text it is, contains and is contained in no constant.
        written = json.dumps(bodies, ensure_ascii=False)
        self._fresh = next(character for character in map(chr, range(0x2600, 0x10000)) if character not in written)
        root = Node()
        for body in bodies:
            _grow(root, body)
        self.nodes = root.below
        self._classes: dict[str, list[Any]] = {}

    def of(self, path: str) -> list[Any]:
        """Values of a field: of every class, and several of some."""
        node = self._node(path)
        made = [
            ABSENT,
            *node.compared,
            *(None, True, False),
            *numbers(value for value in node.compared if type(value) in (int, float)),
            *self._strings(node),
            *self._arrays(node),
            *self._objects(path, node),
        ]
        if len(made) > self._most:
            raise TooLarge
        return made

    def classes_of(self, path: str) -> list[Any]:
        """Values of a field, one of each class that can be told apart where no object around it equals a constant."""
        if path not in self._classes:
            facts = partial(_put, path.split("."), fresh=self._fresh)
            self._classes[path] = _one_of_each(self.of(path), facts, self._signature)
        return self._classes[path]

    def _node(self, path: str) -> Node:
        first, *rest = path.split(".")
        node = self.nodes[first]
        for name in rest:
            node = node.below[name]
        return node

    def _strings(self, node: Node) -> Iterator[str]:
        parts = [value for value in node.contained if isinstance(value, str)]
        for chosen in _subsets(parts):
            # No part crosses the fresh character, so it contains these parts and the parts of them.
            yield self._fresh.join([*chosen, ""]) or self._fresh

    def _arrays(self, node: Node) -> Iterator[list[Any]]:
        for chosen in _subsets(node.contained):
            yield [*chosen, self._fresh]
            yield chosen

    def _objects(self, path: str, node: Node) -> Iterator[dict[str, Any]]:
        axes = {name: self.classes_of(f"{path}.{name}") for name in node.below}
        constants = [value for value in node.compared if isinstance(value, dict)]
        if math.prod(map(len, axes.values())) * (2 + len(constants)) > self._most:
            raise TooLarge
        for values in itertools.product(*axes.values()):
            made = facts_of(axes, values)
            yield {**made, self._fresh: None}
            yield made
            for constant in constants:
                others = {name: value for name, value in constant.items() if name not in axes}
                yield {**others, **made}
        # The constants with one field as they have it, and another changed.
        for constant, (name, values) in itertools.product(constants, axes.items()):
            for value in values:
                changed = {other: held for other, held in constant.items() if other != name}
                yield changed if value is ABSENT else {**changed, name: value}


def _grow(root: Node, body: Any) -> None:
    for path in sorted(fields_of(body)):
        _at(root, path)
    for _, tested in tests_of(body):
        test: Mapping[str, Any] = tested.condition
        node = _at(root, test["field"])
        if test["operator"] in ("in", "not_in"):
            node.compared += test["value"]
        elif test["operator"] in ("contains", "not_contains"):
            node.contained.append(test["value"])
        elif "value" in test:
            node.compared.append(test["value"])


def _at(node: Node, path: str) -> Node:
    for name in path.split("."):
        node = node.below.setdefault(name, Node())
    return node


def _subsets(constants: Sequence[Any]) -> Iterator[list[Any]]:
    """Every choice of some of the constants, those that are written alike taken once."""
    distinct = list({json.dumps(constant): constant for constant in constants}.values())
    if len(distinct) > _MOST_PARTS:
        raise TooLarge
    for length in range(len(distinct) + 1):
        yield from map(list, itertools.combinations(distinct, length))


# --- Numbers ----------------------------------------------------------------------------------------------------------


def numbers(constants: Iterable[float]) -> Iterator[float]:
    """Each constant, and from each interval between them its ends, an integral and another number, where it has them.

    -0.0 is 0, and integers beyond 2^53-1 are doubles, as on the wire.
    """
    cuts = sorted({float(constant) for constant in constants})
    yield from map(written, cuts)
    for low, high in itertools.pairwise([-math.inf, *cuts, math.inf]):
        first, last = _after(low), _before(high)
        if first <= last:
            found = (first, last, _integral(first, last), _fractional(first, last))
            yield from (written(value) for value in found if value is not None)


def _after(value: float) -> float:
    return math.nextafter(value, math.inf)


def _before(value: float) -> float:
    return math.nextafter(value, -math.inf)


def _integral(first: float, last: float) -> float | None:
    """An integral double of a closed interval: the one nearest to zero, which has them if any has."""
    nearest = max(first, min(last, 0.0))
    found = nearest if nearest.is_integer() else float(math.ceil(nearest) if nearest > 0 else math.floor(nearest))
    return found if first <= found <= last else None


def _fractional(first: float, last: float) -> float | None:
    """A double of a closed interval that is not integral."""
    low, high = max(first, -_INTEGRAL), min(last, _INTEGRAL)
    # Of two neighbours below 2^52 at least one is not integral.
    return next((value for value in (low, _after(low)) if value <= high and not value.is_integer()), None)


def written(value: float) -> float:
    """A number as it is read from the wire: an integer within 2^53-1, else a double."""
    return int(value) if value.is_integer() and abs(value) <= MAX_SAFE_INTEGER else value
