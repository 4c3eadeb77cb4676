"""Regions: all points at which a formula holds, as few wide conditions on single fields.

A region allows each field some of its classes, and asks of strings and arrays that they contain something or not. It is
as wide as it goes: no field could be given another class, or be left out, without leaving the formula. Regions together
cover the formula exactly, and may overlap.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gate.encoding.strict_json import JsonObject
from gate.rulebooks.analysis.formulas.classes import FieldClasses
from gate.rulebooks.analysis.formulas.encoding import Encoder
from gate.rulebooks.analysis.formulas.space import FieldVariables
from gate.rulebooks.analysis.wording import condition_words
from gate.rulebooks.evaluation import value_at


@dataclass(frozen=True, slots=True)
class Limit:
    """What a region asks of a field.

    Attributes:
        name: The field.
        of: Its classes.
        allowed: The classes that it may have.
        possible: The classes that it can have at all, where the region is looked at.
        parts: The parts that a string must contain (True) or must not (False), by their index.
        items: The same of the items of an array.
    """

    name: str
    of: FieldClasses
    allowed: frozenset[int]
    possible: frozenset[int]
    parts: Mapping[int, bool]
    items: Mapping[int, bool]

    def holds(self, value: object) -> bool:
        """Whether a value of the field, which may be `ABSENT`, is within the limit."""
        place = self.of.place(value)
        return (
            place.index in self.allowed
            and all((part in place.parts) is wanted for part, wanted in self.parts.items())
            and all((item in place.items) is wanted for item, wanted in self.items.items())
        )


@dataclass(frozen=True, slots=True)
class Region:
    """Facts within limits.

    Attributes:
        limits: The limits of fields. Facts are in the region if all limits hold. Empty for a region with all facts.
        witness: Facts in the region.
    """

    limits: tuple[Limit, ...]
    witness: JsonObject

    @property
    def condition(self) -> str:
        """The limits in words, such as `50 < amount <= 100 and country is "DE"`."""
        return condition_words(self.limits)

    def holds(self, facts: JsonObject) -> bool:
        """Whether facts are within the limits."""
        return all(limit.holds(value_at(facts, limit.name)) for limit in self.limits)


class Regions:
    """Finds the regions of formulas over a space."""

    def __init__(self, encoder: Encoder, given: Sequence[int]) -> None:
        """Looks only where some literals hold, of which no region says anything.

        Args:
            encoder: What made the formulas.
            given: The literals, for example that the facts are valid.
        """
        self._encoder: Final = encoder
        self._space: Final = encoder.space
        self._solver: Final = encoder.space.solver
        self._given: Final = list(given)
        self._possible: Final[dict[str, frozenset[int]]] = {}

    def of(self, target: int) -> Iterator[Region]:
        """The regions that together are the formula of a literal.

        Raises:
            NotDecided: Another region cost too much.
        """
        # What was found is left out by a clause that counts only here.
        here = self._solver.variable()
        while self._solver.solve([here, target, *self._given]):
            witness = self._space.facts()
            limits = self._widest(target)
            yield Region(tuple(limits), witness)
            self._solver.add([-here, *(literal for limit in limits for literal in self._outside(limit))])
        self._solver.add([-here])

    def _widest(self, target: int) -> list[Limit]:
        """The widest region around the point found last."""
        fields = [(field, field.chosen(self._solver)) for field in self._space.fields.values()]
        literals = {
            literal: field
            for field, place in fields
            for literal in field.literals(place)
        }  # fmt: skip
        always = [-target, *self._given]
        for field, place in fields:
            # That a text or an array lacks something holds of all other values too: their region is wider.
            if field.parts or field.items:
                others = [literal for literal in literals if literal != field.classes[place.index]]
                if not self._solver.solve([*always, *others]):
                    del literals[field.classes[place.index]]
        core = self._solver.smallest_core(literals, always)
        needed: dict[str, list[int]] = {}
        for literal in core:
            needed.setdefault(literals[literal].name, []).append(literal)
        return [limit for name in sorted(needed) if (limit := self._widened(name, needed, always)) is not None]

    def _widened(self, name: str, needed: dict[str, list[int]], always: Sequence[int]) -> Limit | None:
        """The limit of a field, as wide as those of the others let it be; `needed` is kept up to date."""
        field = self._space.fields[name]
        asked = [literal for literal in needed[name] if literal not in field.classes]
        others = [literal for other, literals in needed.items() if other != name for literal in literals]
        possible = self._possible_of(field)
        # Whether a class may be added does not depend on the others that are: each point has only one.
        refused = self._encoder.classes_of(field, [*always, *others, *asked])
        needed[name] = [*asked, *(-field.classes[index] for index in refused)]
        if not needed[name]:
            return None
        allowed = frozenset(range(len(field.classes))) - refused
        parts = {index: lit in asked for index, lit in enumerate(field.parts) if lit in asked or -lit in asked}
        items = {index: lit in asked for index, lit in enumerate(field.items) if lit in asked or -lit in asked}
        return Limit(name, field.of, allowed, possible, parts, items)

    def _possible_of(self, field: FieldVariables) -> frozenset[int]:
        if field.name not in self._possible:
            self._possible[field.name] = self._encoder.classes_of(field, self._given)
        return self._possible[field.name]

    def _outside(self, limit: Limit) -> Iterator[int]:
        field = self._space.fields[limit.name]
        for index, literal in enumerate(field.classes):
            if index not in limit.allowed:
                yield literal
        for index, wanted in limit.parts.items():
            yield -field.parts[index] if wanted else field.parts[index]
        for index, wanted in limit.items.items():
            yield -field.items[index] if wanted else field.items[index]
