"""The nearest flips of a decision: the smallest changes of its facts that give it another verdict.

    for flip in nearest_flips(body, {"discount_percent": 20, "margin_percent": 40}):
        print(flip.text)        # discount_percent 20 -> 15 gives yes (STANDARD_EXCEPTION_ALLOWED)

Small changes come first: those with fewer facts, then those that add, remove, or retype fewer facts, and then those
with nearer numbers. The solver finds the facts, and the evaluator confirms every flip.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, TypeGuard, cast

from gate.encoding.canonical import canonical
from gate.encoding.strict_json import Json, JsonObject
from gate.rulebooks.analysis.finding import Inconsistent
from gate.rulebooks.analysis.formulas.classes import kind_of
from gate.rulebooks.analysis.formulas.encoding import Encoder, Result, result_of
from gate.rulebooks.analysis.formulas.numbers import Span
from gate.rulebooks.analysis.formulas.solver import Solver
from gate.rulebooks.analysis.formulas.space import FieldVariables, Space
from gate.rulebooks.documents import RulebookBody
from gate.rulebooks.evaluation import ABSENT, Evaluator, compile_rulebook, value_at
from gate.rulebooks.explanation import shown
from gate.rulebooks.facts import with_value

MAX_CHANGED: Final = 6
"""How many facts a flip changes at most."""

MAX_FLIPS: Final = 20
"""How many flips are found at most."""


@dataclass(frozen=True, slots=True)
class ChangedFact:
    """A fact that a flip changes.

    Attributes:
        field: The fact.
        before: Its value; `ABSENT` where it was not there.
        after: Its value then; `ABSENT` where it is to be left out.
        among: Which other values would do as well, in words: `above 50`; empty where no near one would.
    """

    field: str
    before: object
    after: object
    among: str = ""

    @property
    def text(self) -> str:
        """The change for people, such as `amount 60 -> 50`, or `amount 30 -> above 50 (such as 51)`."""
        after = f"{self.among} (such as {_said(self.after)})" if self.among else _said(self.after)
        return f"{self.field} {_said(self.before)} -> {after}"

    def to_dict(self) -> dict[str, object]:
        """{field, before, after}, each side where the fact is there."""
        sides = {"before": self.before, "after": self.after}
        return {"field": self.field, **{name: value for name, value in sides.items() if value is not ABSENT}}


@dataclass(frozen=True, slots=True)
class Flip:
    """A change of facts that gives another verdict.

    Attributes:
        changes: The facts that it changes, by name.
        facts: All facts then.
        result: The result for them.
    """

    changes: tuple[ChangedFact, ...]
    facts: JsonObject
    result: Result

    @property
    def text(self) -> str:
        """The flip for people."""
        changed = " and ".join(change.text for change in self.changes)
        give = "gives" if len(self.changes) == 1 else "give"
        return f"{changed} {give} {self.result.decision} ({self.result.reason_code})"

    def to_dict(self) -> dict[str, object]:
        """{changes: [{field, before, after}], facts, result, text}; an absent side of a change is left out."""
        return {
            "changes": [change.to_dict() for change in self.changes],
            "facts": self.facts,
            "result": self.result.to_dict(),
            "text": self.text,
        }


def nearest_flips(
    body: RulebookBody, facts: JsonObject, *, among: Collection[str] | None = None, to: str | None = None
) -> list[Flip]:
    """The smallest changes of facts after which a rulebook gives another verdict, the nearest first.

    All of them change equally many facts, and each others: of the changes of the same facts, the nearest is given.
    Where a flip changes several facts, none of them can be nearer while the others stay.

    Args:
        body: The rulebook, valid.
        facts: The current facts, valid for the rulebook or not. The facts of a flip are valid.
        among: The facts that may change; None for all that the rulebook names.
        to: The verdict to get: yes, no or review; None for any other one.

    Returns:
        At most 20 flips; none where no change of at most six facts gives such a verdict.

    Raises:
        NotDecided: It cost too much.
    """
    solver = Solver()
    try:
        return _Search(body, facts, among, to, solver).flips()
    finally:
        solver.close()


class _Search:
    """The search for the flips of one decision."""

    def __init__(
        self, body: RulebookBody, facts: JsonObject, among: Collection[str] | None, to: str | None, solver: Solver
    ) -> None:
        self._facts: Final = facts
        self._solver: Final = solver
        self._space: Final = Space([body], solver)
        self._evaluator: Final[Evaluator] = compile_rulebook(body)
        encoder = Encoder(self._space)
        encoded = encoder.encode(body)
        self._decision: Final = self._evaluator.decide(facts).decision
        self._to: Final = to
        self._wanted: Final = [
            encoded.valid,
            encoder.any_of(literal for of, literal in encoded.results.items() if self._is_wanted(of.decision)),
        ]
        self._changed: Final[dict[str, int]] = {}
        self._alike: Final[list[int]] = []
        for name, field in self._space.fields.items():
            value = value_at(facts, name)
            place = field.of.place(value)
            changed = -encoder.all_of(field.literals(place))
            self._changed[name] = changed
            if (among is not None and name not in among) or self._is_below_a_scalar(name):
                self._wanted.append(-changed)
            kind = field.of.classes[place.index].kind
            self._alike.append(encoder.any_of(field.of_kinds(*_alike(kind))))
            for literal in field.literals(place):
                solver.prefer(literal)

    def _is_below_a_scalar(self, name: str) -> bool:
        """Whether a field cannot be there, for a value above it that no test looks at is none that holds fields."""
        segments = name.split(".")
        above = [".".join(segments[:end]) for end in range(1, len(segments))]
        values = [value_at(self._facts, path) for path in above if path not in self._space.fields]
        return any(value is not ABSENT and not isinstance(value, dict) for value in values)

    def flips(self) -> list[Flip]:
        if self._to == self._decision:
            return []
        counted = _count(list(self._changed.values()), MAX_CHANGED + 1, self._solver)
        for most in range(MAX_CHANGED):
            # At most `most` + 1 facts change: one more does not.
            few = [*self._wanted, -counted[most + 1]] if most + 1 < len(counted) else self._wanted
            for assumed in ([*few, *self._alike], few):
                if found := self._found(assumed):
                    return sorted(found, key=self._size)
        return []

    def _found(self, assumed: Sequence[int]) -> list[Flip]:
        """A flip for each set of facts that can change so."""
        found: list[Flip] = []
        here = self._solver.variable()
        while len(found) < MAX_FLIPS and self._solver.solve([here, *assumed]):
            names = [name for name, changed in self._changed.items() if self._solver.holds(changed)]
            found.append(self._nearest(names))
            self._solver.add([-here, *(-self._changed[name] for name in names)])
        return found

    def _nearest(self, names: Sequence[str]) -> Flip:
        """The nearest flip that changes some facts, from the one that the solver found on."""
        there = self._space.facts()
        facts = self._moved({name: value_at(there, name) for name in names})
        self._require_wanted(facts)
        again = True
        while again:
            again = False
            for name in names:
                nearer = self._nearer(facts, self._space.fields[name])
                if nearer is not None:
                    facts, again = nearer, len(names) > 1
        changes = [self._change(name, value_at(facts, name)) for name in sorted(names)]
        return Flip(tuple(_told(changes)), facts, self._require_wanted(facts))

    def _change(self, name: str, after: object) -> ChangedFact:
        before, of = value_at(self._facts, name), self._space.fields[name].of
        one = of.classes[of.place(after).index]
        if one.is_open and one.kind == "string" and not (of.parts or before is ABSENT):
            return ChangedFact(name, before, after, "another text")
        if _is_number(after) and _is_number(before):
            for span in one.spans:
                if span.low < after < span.high:
                    return ChangedFact(name, before, after, _limit(span, before))
        return ChangedFact(name, before, after)

    def _nearer(self, facts: JsonObject, field: FieldVariables) -> JsonObject | None:
        """Facts in which one field is nearer to what it was, and the verdict still as wanted; None where none is."""
        above = field.name.rpartition(".")[0]
        if self._space.below(field.name) or (above and not isinstance(value_at(facts, above), dict)):
            return None
        before = value_at(self._facts, field.name)
        size = _distance(before, value_at(facts, field.name))
        candidates = [(_distance(before, value), value) for value in _values(field, before)]
        for distance, value in sorted(candidates, key=lambda each: each[0]):
            if distance >= size:
                return None
            moved = with_value(facts, field.name, value)
            outcome = self._evaluator.decide(moved)
            if outcome.status == "ok" and self._is_wanted(outcome.decision):
                return moved
        return None

    def _moved(self, values: Mapping[str, object]) -> JsonObject:
        """The facts at hand with other values; an object that holds others gets theirs with its own."""
        facts = copy.deepcopy(self._facts)
        # A field stands after those above it.
        for name in self._space.fields:
            if name in values:
                facts = with_value(facts, name, values[name])
        for field in reversed(self._space.fields.values()):
            value = value_at(facts, field.name)
            if isinstance(value, dict):
                taken = {
                    other.name.removeprefix(f"{field.name}.").split(".")[0] for other in self._space.below(field.name)
                }
                if field.of.classes[field.chosen(self._solver).index].is_open:
                    field.of.make_other(value, frozenset(taken))
        return facts

    def _require_wanted(self, facts: JsonObject) -> Result:
        outcome = self._evaluator.decide(facts)
        if outcome.status != "ok" or not self._is_wanted(outcome.decision):
            raise Inconsistent(f"The evaluator gives {result_of(outcome)} for {facts}, and not another verdict.")
        return result_of(outcome)

    def _is_wanted(self, decision: str) -> bool:
        return decision != self._decision and self._to in (None, decision)

    def _size(self, flip: Flip) -> tuple[float, float]:
        """How large a flip is among those that change equally many facts; numbers by how far each moved of its own."""
        sizes = [_distance(change.before, change.after) for change in flip.changes]
        scales = [abs(change.before) if _is_number(change.before) else 1 for change in flip.changes]
        moved = sum(distance / (scale or 1) for (_, distance), scale in zip(sizes, scales, strict=True))
        return sum(other for other, _ in sizes), moved


def _told(changes: Sequence[ChangedFact]) -> Iterator[ChangedFact]:
    """The changes without those of objects that change with what is in them alone."""
    for change in changes:
        inside = any(other.field.startswith(f"{change.field}.") for other in changes)
        if not (inside and isinstance(change.before, dict) and isinstance(change.after, dict)):
            yield change


def _is_number(value: object) -> TypeGuard[float]:
    return kind_of(value) == "number"


def _alike(kind: str) -> tuple[str, ...]:
    return ("boolean", "null") if kind == "null" else (kind,)


def _distance(before: object, after: object) -> tuple[bool, float]:
    """How far a value is from another: whether it is of another type, and how far numbers are apart."""
    kinds = kind_of(before), kind_of(after)
    if kinds[0] != kinds[1]:
        return True, 1 if "absent" not in kinds else 2
    if kinds[0] == "number":
        return False, abs(cast("float", after) - cast("float", before))
    return False, 0 if kinds[0] == "absent" or canonical(before) == canonical(after) else 1


def _values(field: FieldVariables, near: object) -> Iterator[object]:
    """A value of each class of a field that has one of its own, the nearest to a value."""
    for one in field.of.classes:
        if one.kind == "number":
            yield from (_nearest_in(span, near) for span in one.spans)
        elif not one.is_open:
            yield one.sample


def _nearest_in(span: Span, near: object) -> Json:
    """A number of a span near to another one, with no more decimals than that and the span's bound have."""
    if not _is_number(near) or span.is_point:
        return span.sample
    if span.low < near < span.high and span.whole in (None, float(near).is_integer()):
        return near
    above = near <= span.low
    bound = span.low if above else span.high
    if math.isinf(bound):
        return span.sample
    digits = max(_decimals(near), _decimals(bound))
    for places in range(digits, 18):
        step = 10.0**-places
        candidate = round(bound + step if above else bound - step, places)
        plain = int(candidate) if float(candidate).is_integer() and abs(candidate) < 2**53 else candidate
        if span.low < plain < span.high and span.whole in (None, float(plain).is_integer()):
            return plain
    return span.sample


def _limit(span: Span, near: float) -> str:
    """Where a span begins for who comes from a number outside of it."""
    return f"above {shown(span.low)}" if near <= span.low else f"below {shown(span.high)}"


def _decimals(number: float) -> int:
    exponent = Decimal(repr(number)).normalize().as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def _said(value: object) -> str:
    return "absent" if value is ABSENT else shown(value)


def _count(literals: Sequence[int], most: int, solver: Solver) -> list[int]:
    """Literals that hold at least where more than 0, 1, ... of some literals do, as a sequential counter.

    Args:
        literals: The literals.
        most: How far to count.
        solver: The solver.
    """
    counted: list[int] = []
    for literal in literals:
        following = [solver.variable() for _ in range(min(len(counted) + 1, most))]
        solver.add([-literal, following[0]])
        for place, before in enumerate(counted):
            solver.add([-before, following[place]])
            if place + 1 < len(following):
                solver.add([-before, -literal, following[place + 1]])
        counted = following
    return counted
