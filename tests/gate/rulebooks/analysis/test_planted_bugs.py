"""Bugs planted in the analysis break the laws that hold it against brute force: the laws would notice such a bug."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeAlias

import pytest

from gate.rulebooks.analysis.formulas import classes, encoding, space
from gate.rulebooks.analysis.formulas.classes import FieldClasses, ValueClass
from gate.rulebooks.analysis.formulas.numbers import Span, spans
from gate.rulebooks.analysis.formulas.space import FieldVariables, Space
from gate.rulebooks.evaluation import is_of_type
from tests.gate.rulebooks.analysis.laws import hold_the_difference, hold_the_findings
from tests.support.rulebooks import compare, outcome, rule, rulebook

Patch: TypeAlias = pytest.MonkeyPatch


def an_open_bound_is_closed(patch: Patch) -> None:
    """The constant belongs to the interval below it."""

    def closed(cuts: Sequence[float], *, split: bool) -> list[Span]:
        made = spans(cuts, split=split)
        below = [span for span in made if not span.is_point]
        return [
            Span(one.low, one.high, one.whole, one.high if math.isfinite(one.high) else one.sample) for one in below
        ]

    patch.setattr(classes, "spans", closed)


def an_interval_is_forgotten(patch: Patch) -> None:
    patch.setattr(
        classes,
        "spans",
        lambda cuts, *, split: [s for s in spans(cuts, split=split) if s.is_point or math.isinf(s.low)],
    )


def whole_numbers_are_not_told_apart(patch: Patch) -> None:
    patch.setattr(classes, "spans", lambda cuts, *, split: spans(cuts, split=False))


def _without(patch: Patch, forgotten: Callable[[ValueClass], bool]) -> None:
    build = FieldClasses._build

    def building(self: FieldClasses, *, has_members: bool) -> Iterator[ValueClass]:
        return (one for one in build(self, has_members=has_members) if not forgotten(one))

    patch.setattr(FieldClasses, "_build", building)


def null_is_forgotten(patch: Patch) -> None:
    _without(patch, lambda one: one.kind == "null")


def false_is_forgotten(patch: Patch) -> None:
    _without(patch, lambda one: one.values == (False,))


def other_strings_are_forgotten(patch: Patch) -> None:
    _without(patch, lambda one: one.is_open and one.kind == "string")


def other_arrays_are_forgotten(patch: Patch) -> None:
    _without(patch, lambda one: one.is_open and one.kind == "array")


def other_objects_are_forgotten(patch: Patch) -> None:
    _without(patch, lambda one: one.is_open and one.kind == "object")


def objects_with_fields_are_one_class(patch: Patch) -> None:
    build = FieldClasses._build
    patch.setattr(FieldClasses, "_build", lambda self, *, has_members: build(self, has_members=False))


def a_part_of_a_part_is_no_part(patch: Patch) -> None:
    """The clauses that say so are left out."""
    make = FieldVariables.__init__

    class Recorder:
        def __init__(self, solver: Any) -> None:
            self.variable, self.prefer = solver.variable, solver.prefer
            self.clauses: list[list[int]] = []

        def add(self, clause: list[int]) -> None:
            self.clauses.append(clause)

    def loose(self: FieldVariables, name: str, of: FieldClasses, parent: Any, solver: Any) -> None:
        recorder: Any = Recorder(solver)
        make(self, name, of, parent, recorder)
        for clause in recorder.clauses:
            if not {abs(literal) for literal in clause} <= set(self.parts):
                solver.add(clause)

    patch.setattr(FieldVariables, "__init__", loose)


def fields_below_one_another_are_free(patch: Patch) -> None:
    patch.setattr(Space, "_bind", lambda self, field: None)


def equal_priorities_go_by_the_file(patch: Patch) -> None:
    patch.setattr(encoding, "_order", lambda rule: -rule.get("priority", 0))


def priorities_are_turned_around(patch: Patch) -> None:
    patch.setattr(encoding, "_order", lambda rule: (rule.get("priority", 0), rule["rule_id"]))


def any_number_is_an_integer(patch: Patch) -> None:
    patch.setattr(
        space, "is_of_type", lambda value, type_: is_of_type(value, "number" if type_ == "integer" else type_)
    )


def required_fields_may_be_absent(patch: Patch) -> None:
    valid = encoding.Encoder._valid

    def lenient(self: Any, body: Any, fixed: Any) -> int:
        changed: Any = {**body, "input_schema": {**body["input_schema"], "required": []}}
        return valid(self, changed, fixed)

    patch.setattr(encoding.Encoder, "_valid", lenient)


def negative_operators_hold_for_absence(patch: Patch) -> None:
    truths = FieldClasses.truths

    def wrong(self: FieldClasses, test: Any) -> Any:
        absent, *others = truths(self, test)
        return [absent or test["operator"] in ("neq", "not_in"), *others]

    patch.setattr(FieldClasses, "truths", wrong)


BUGS: Final = (
    an_open_bound_is_closed,
    an_interval_is_forgotten,
    whole_numbers_are_not_told_apart,
    null_is_forgotten,
    false_is_forgotten,
    other_strings_are_forgotten,
    other_arrays_are_forgotten,
    other_objects_are_forgotten,
    objects_with_fields_are_one_class,
    a_part_of_a_part_is_no_part,
    fields_below_one_another_are_free,
    equal_priorities_go_by_the_file,
    priorities_are_turned_around,
    any_number_is_an_integer,
    required_fields_may_be_absent,
    negative_operators_hold_for_absence,
)


def pair(*conditions: Any, **schema: Any) -> tuple[Any, Any]:
    """A rulebook with a rule for each condition, and the same with the last one denied."""
    outcomes = ("yes", "no", "review")
    rules = [
        rule(f"r{at}", condition) | {"outcome": outcome(f"a{at}", outcomes[at % 3])}
        for at, condition in enumerate(conditions)
    ]
    before = rulebook(*rules, **schema)
    after = copy.deepcopy(before)
    after["rules"][-1]["condition"] = {"not": conditions[-1]}
    return before, after


def both(*conditions: Any) -> Any:
    return {"all": list(conditions)}


def ordered() -> tuple[Any, Any]:
    """Rules whose order is not that of the file, nor of their ids alone."""
    body = rulebook(
        rule("c", compare("a", "exists"), priority=1),
        rule("b", compare("a", "exists")),
        rule("d", compare("a", "not_exists"), priority=-1),
        rule("a", compare("a", "not_exists"), priority=-1) | {"outcome": outcome("other", "no")},
    )
    return body, {**body, "rules": list(reversed(body["rules"][:2])) + body["rules"][2:]}


def retyped() -> tuple[Any, Any]:
    """An integer that becomes a number."""
    before, _ = pair(compare("a", "gt", 1), a="integer")
    return before, {**before, "input_schema": {"required": [], "properties": {"a": {"type": "number"}}}}


TRAPS: Final = (
    pair(compare("a", "gte", 5), compare("a", "gt", 4), compare("a", "lt", 4)),
    pair(both(compare("a", "gt", 1), compare("a", "lt", 2)), a="integer"),
    pair(compare("a", "exists"), a="integer"),
    pair(compare("a", "eq", None), compare("a", "neq", 1)),
    pair(compare("a", "eq", False), compare("a", "exists")),
    pair(compare("a", "eq", "x"), compare("a", "neq", "x"), a="string"),
    pair(compare("a", "eq", [1]), compare("a", "neq", [1]), a="array"),
    pair(compare("a", "eq", {"b": 1}), compare("a", "neq", {"b": 1}), a="object"),
    pair(both(compare("a", "in", [{"b": 1}, {"b": 2}]), compare("a.b", "eq", 2)), compare("a.b", "eq", 1)),
    pair(both(compare("a", "contains", "ab"), compare("a", "not_contains", "b")), a="string"),
    pair(both(compare("a", "eq", "ab"), compare("a", "not_contains", "b")), compare("a", "contains", "b"), a="string"),
    pair(both(compare("a", "eq", 1), compare("a.b", "exists")), compare("a.b", "exists")),
    pair(compare("a", "not_exists"), compare("a", "exists"), required=["a"]),
    ordered(),
    retyped(),
)
"""Pairs of rulebooks that are right or wrong by what the bugs spoil."""


def broken(before: Any, after: Any) -> bool:
    """Whether a law does not hold, or the analysis stumbles."""
    try:
        hold_the_findings(before, most=300)
        hold_the_findings(after, most=300)
        hold_the_difference(before, after, (), most=300)
    except (AssertionError, LookupError, RuntimeError, StopIteration, TypeError, ValueError):
        return True
    return False


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_a_planted_bug_is_noticed(bug: Callable[[Patch], None], monkeypatch: Patch) -> None:
    bug(monkeypatch)
    assert any(broken(*trap) for trap in TRAPS)


def test_without_a_bug_every_law_holds() -> None:
    assert [trap for trap in TRAPS if broken(*trap)] == []
