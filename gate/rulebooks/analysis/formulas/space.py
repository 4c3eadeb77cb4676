"""All facts that rulebooks can be given, as variables of a solver: classes of fields, and the bonds between fields.

A solution of the solver is a point of the space, and `facts` makes the JSON of it. Fields below one another are bound:
`a.b` is there only where `a` is an object, and where `a` equals a constant, `a.b` is the constant's.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, cast

from gate.encoding.canonical import canonical
from gate.encoding.strict_json import Json, JsonObject
from gate.rulebooks.analysis.formulas.classes import Asked, FieldClasses, Place
from gate.rulebooks.analysis.formulas.solver import TRUE, NotDecided, Solver
from gate.rulebooks.conditions import tests_of
from gate.rulebooks.documents import Condition, RulebookBody
from gate.rulebooks.evaluation import is_of_type, value_at
from gate.rulebooks.facts import set_value

MAX_FIELDS: Final = 2_000
"""How many fields rulebooks may name together."""

# Up to here, pairs keep classes apart with fewer clauses than a chain.
_PAIRS: Final = 12


class FieldVariables:
    """The variables of a field.

    Attributes:
        name: The field.
        of: Its classes.
        classes: A literal for each class; exactly one holds.
        parts: A literal for each part: the field is a string that contains it.
        items: A literal for each item: the field is an array that has it.
        truths: The classes with which a variable holds, as bits, of each variable that they alone decide.
        parent: The nearest field above it; None where there is none.
    """

    def __init__(self, name: str, of: FieldClasses, parent: FieldVariables | None, solver: Solver) -> None:
        """Makes the variables, and the clauses that bind them to one another."""
        self.name: Final = name
        self.of: Final = of
        self.parent: Final = parent
        self.classes: Final = [solver.variable() for _ in of.classes]
        self.parts: Final = [solver.variable() for _ in of.parts]
        self.items: Final = [solver.variable() for _ in of.items]
        self.truths: Final = {literal: 1 << index for index, literal in enumerate(self.classes)}
        _exactly_one(self.classes, solver)
        # Facts are the easier to read, the fewer there are.
        solver.prefer(self.absent)
        for index in range(len(self.classes)):
            self._bind(index, solver)
        for long, text in enumerate(of.parts):
            for short, other in enumerate(of.parts):
                if short != long and other in text:
                    solver.add([-self.parts[long], self.parts[short]])

    @property
    def absent(self) -> int:
        """The literal of absence."""
        return self.classes[0]

    def of_kinds(self, *kinds: str) -> list[int]:
        """The literals of the classes of some JSON types."""
        return [lit for lit, one in zip(self.classes, self.of.classes, strict=True) if one.kind in kinds]

    def literals(self, place: Place) -> list[int]:
        """The literals that are true for a value."""
        return [
            self.classes[place.index],
            *(lit if index in place.parts else -lit for index, lit in enumerate(self.parts)),
            *(lit if index in place.items else -lit for index, lit in enumerate(self.items)),
        ]

    def chosen(self, solver: Solver) -> Place:
        """The place of the field in the solution found last."""
        index = next(index for index, literal in enumerate(self.classes) if solver.holds(literal))
        parts = frozenset(part for part, literal in enumerate(self.parts) if solver.holds(literal))
        items = frozenset(item for item, literal in enumerate(self.items) if solver.holds(literal))
        return Place(index, parts, items)

    def _bind(self, index: int, solver: Solver) -> None:
        """Says which parts and items the values of a class have, except those of an open class."""
        one, literal = self.of.classes[index], self.classes[index]
        known = Place(index, frozenset(), frozenset()) if one.is_open else self.of.place(one.sample)
        if not (one.is_open and one.kind == "string"):
            for part, contains in enumerate(self.parts):
                solver.add([-literal, contains if part in known.parts else -contains])
        if not (one.is_open and one.kind == "array"):
            for item, contains in enumerate(self.items):
                solver.add([-literal, contains if item in known.items else -contains])


class Space:
    """The facts of some rulebooks.

    Attributes:
        fields: The fields that the rulebooks read, declare or require, those above others first.
    """

    def __init__(self, bodies: Sequence[RulebookBody], solver: Solver) -> None:
        """Makes the variables of every field of valid rulebooks.

        Raises:
            NotDecided: The tests of a field have too many constants.
        """
        self.solver: Final = solver
        self.fields: Final[dict[str, FieldVariables]] = {}
        self._tests: Final[dict[tuple[str, str, bytes], int]] = {}
        tests = _tests_by_field(bodies)
        types = _types_by_field(bodies)
        names = {*tests, *types}
        if len(names) > MAX_FIELDS:
            raise NotDecided(f"the rulebooks name {len(names)} fields, more than {MAX_FIELDS}")
        self._below: Final[dict[str, list[str]]] = {name: [] for name in names}
        for name in sorted(names, key=lambda name: (name.count("."), name)):
            for above in _above(name):
                if above in names:
                    self._below[above].append(name)
        for name in sorted(names, key=lambda name: (name.count("."), name)):
            parent = next((self.fields[above] for above in _above(name) if above in names), None)
            try:
                of = FieldClasses(tests[name], types[name], has_members=bool(self._below[name]))
            except NotDecided as error:
                raise NotDecided(f"of the field {name} the {error}") from error
            self.fields[name] = FieldVariables(name, of, parent, solver)
        for field in self.fields.values():
            self._bind(field)

    def test(self, test: Condition) -> int:
        """The literal of a test: it holds where the test does."""
        key = (test["field"], test["operator"], canonical(test["value"]) if "value" in test else b"")
        if key not in self._tests:
            field = self.fields[test["field"]]
            self._tests[key] = self._literal(field, field.of.truths(test))
        return self._tests[key]

    def of_type(self, name: str, type_: str) -> int:
        """The literal of a field that is there and has a declared type."""
        field = self.fields[name]
        key = (name, f"of type {type_}", b"")
        if key not in self._tests:
            truths = [one.kind != "absent" and is_of_type(one.sample, type_) for one in field.of.classes]
            self._tests[key] = self._literal(field, truths)
        return self._tests[key]

    def below(self, name: str) -> list[FieldVariables]:
        """The fields below a field."""
        return [self.fields[below] for below in self._below[name]]

    def is_alone(self, field: FieldVariables) -> bool:
        """Whether a field may have any of its classes whatever else holds, and nothing is asked of it but its class."""
        return not (field.parts or field.items or field.parent or self._below[field.name])

    def facts(self) -> JsonObject:
        """Facts at the point that the solver found last."""
        facts: JsonObject = {}
        places = {name: field.chosen(self.solver) for name, field in self.fields.items()}
        fixed: set[str] = set()
        others = []
        for name, field in self.fields.items():
            place = places[name]
            one = field.of.classes[place.index]
            above = field.parent
            if above is not None and above.name in fixed:
                fixed.add(name)
            elif one.kind == "object" and one.is_open:
                others.append(field)
                set_value(facts, name, {})
            elif one.kind != "absent":
                fixed.add(name)
                set_value(facts, name, _value(field.of, place))
        for field in reversed(others):
            value = cast("JsonObject", value_at(facts, field.name))
            taken = {other.name.removeprefix(f"{field.name}.").split(".")[0] for other in self.below(field.name)}
            field.of.make_other(value, frozenset(taken))
        return facts

    def _literal(self, field: FieldVariables, truths: Sequence[bool | Asked]) -> int:
        holding = [index for index, truth in enumerate(truths) if truth is True]
        failing = [index for index, truth in enumerate(truths) if truth is False]
        if len(failing) == len(truths):
            return -TRUE
        if len(holding) == len(truths):
            return TRUE
        if len(holding) == 1 and len(failing) == len(truths) - 1:
            return field.classes[holding[0]]
        if len(failing) == 1 and len(holding) == len(truths) - 1:
            return -field.classes[failing[0]]
        literal = self.solver.variable()
        for index, truth in enumerate(truths):
            one = field.classes[index]
            if isinstance(truth, Asked):
                asked = (field.parts if truth.kind == "part" else field.items)[truth.index]
                answer = asked if truth.answer else -asked
                self.solver.add([-one, -answer, literal])
                self.solver.add([-one, answer, -literal])
            else:
                self.solver.add([-one, literal if truth else -literal])
        if len(holding) + len(failing) == len(truths):
            field.truths[literal] = sum(1 << index for index in holding)
        return literal

    def _bind(self, field: FieldVariables) -> None:
        if field.parent is not None:
            self.solver.add([field.absent, *field.parent.of_kinds("object")])
        for member in self.below(field.name):
            rest = member.name.removeprefix(f"{field.name}.")
            for literal, one in zip(field.classes, field.of.classes, strict=True):
                if one.kind == "object" and not one.is_open:
                    place = member.of.place(value_at(cast("JsonObject", one.sample), rest))
                    for implied in member.literals(place):
                        self.solver.add([-literal, implied])


def _above(name: str) -> Iterator[str]:
    """The paths above a field, the nearest first."""
    while "." in name:
        name = name.rpartition(".")[0]
        yield name


def _value(of: FieldClasses, place: Place) -> Json:
    one = of.classes[place.index]
    if one.is_open and one.kind == "string":
        return of.string(place.parts)
    if one.is_open and one.kind == "array":
        return of.array(place.items)
    return copy.deepcopy(cast("Json", one.sample))


def _exactly_one(literals: Sequence[int], solver: Solver) -> None:
    solver.add(literals)
    if len(literals) <= _PAIRS:
        for index, literal in enumerate(literals):
            for other in literals[index + 1 :]:
                solver.add([-literal, -other])
        return
    # A chain: once a literal holds, a mark is carried on past it, which no later one may meet.
    mark: int | None = None
    for literal in literals:
        carried = solver.variable()
        solver.add([-literal, carried])
        if mark is not None:
            solver.add([-mark, carried])
            solver.add([-mark, -literal])
        mark = carried


def _tests_by_field(bodies: Iterable[RulebookBody]) -> dict[str, list[Condition]]:
    found: dict[str, list[Condition]] = defaultdict(list)
    for body in bodies:
        for _, node in tests_of(body):
            found[node.condition["field"]].append(node.condition)
    return found


def _types_by_field(bodies: Iterable[RulebookBody]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for body in bodies:
        schema = body["input_schema"]
        for name in schema["required"]:
            found[name].extend(())
        for name, declared in schema["properties"].items():
            found[name].append(declared["type"])
    return found
