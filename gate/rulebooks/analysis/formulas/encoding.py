"""Rulebooks as formulas of a solver: a literal for each node of a condition, each rule, and each outcome."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Final

from gate.rulebooks.analysis.formulas.solver import TRUE, Solver
from gate.rulebooks.analysis.formulas.space import FieldVariables, Space
from gate.rulebooks.documents import Condition, DeclaredOutcome, DeclaredRule, RulebookBody
from gate.rulebooks.evaluation import NEEDS_INPUT, Outcome, is_of_type


@dataclass(frozen=True, slots=True)
class Result:
    """An outcome as it is compared: the five members that a record has of it.

    Attributes:
        decision: yes, no or review.
        verdict: The application verdict.
        action: The action label.
        reason_code: The reason code.
        rule_id: The rule that matched; None for the default outcome, and for facts that the input schema refuses.
    """

    decision: str
    verdict: str
    action: str
    reason_code: str
    rule_id: str | None

    def to_dict(self) -> dict[str, str | None]:
        """The result as a JSON object."""
        return asdict(self)


REFUSED: Final = Result(
    NEEDS_INPUT.decision, NEEDS_INPUT.verdict, NEEDS_INPUT.action, NEEDS_INPUT.reason_code, NEEDS_INPUT.matched_rule_id
)
"""The result for facts that the input schema refuses."""


def result_of(outcome: Outcome) -> Result:
    """An outcome of the evaluator as it is compared."""
    return Result(outcome.decision, outcome.verdict, outcome.action, outcome.reason_code, outcome.matched_rule_id)


@dataclass(frozen=True, slots=True)
class EncodedRule:
    """A rule as literals.

    Attributes:
        rule: The rule.
        place: Its index in the rulebook.
        condition: Its condition holds.
        tried: It is tried: the facts are valid, and no rule before it matches.
        matches: It is tried, and its condition holds.
        nodes: Each node of its condition holds, by the node's path, as evaluations name it: `condition.all[0]`.
    """

    rule: DeclaredRule
    place: int
    condition: int
    tried: int
    matches: int
    nodes: Mapping[str, int]

    @property
    def rule_id(self) -> str:
        """Its id."""
        return self.rule["rule_id"]


@dataclass(frozen=True, slots=True)
class Encoded:
    """A rulebook as literals.

    Attributes:
        body: The rulebook.
        valid: The facts meet the input schema.
        rules: The rules, in the order in which they are tried.
        default: The facts are valid, and no rule matches.
        results: Each result that the rulebook may have, with its literal; exactly one holds.
    """

    body: RulebookBody
    valid: int
    rules: tuple[EncodedRule, ...]
    default: int
    results: Mapping[Result, int]


class Encoder:
    """Makes formulas over a space. Equal formulas are one literal, so that what two rulebooks share costs nothing."""

    def __init__(self, space: Space) -> None:
        """Encodes over a space that has the fields of every rulebook to come."""
        self.space: Final = space
        self._solver: Final[Solver] = space.solver
        self._made: Final[dict[tuple[int, ...], int]] = {}
        self._parts: Final[dict[int, tuple[int, ...]]] = {}

    def all_of(self, literals: Iterable[int]) -> int:
        """The literal that holds where all of some do."""
        wanted = {literal for literal in literals if literal != TRUE}
        if -TRUE in wanted or any(-literal in wanted for literal in wanted):
            return -TRUE
        if len(wanted) < 2:
            return next(iter(wanted), TRUE)
        key = tuple(sorted(wanted))
        if key not in self._made:
            made = self._solver.variable()
            for literal in key:
                self._solver.add([-made, literal])
            self._solver.add([made, *(-literal for literal in key)])
            self._made[key] = made
            self._parts[made] = key
        return self._made[key]

    def any_of(self, literals: Iterable[int]) -> int:
        """The literal that holds where one of some does."""
        return -self.all_of(-literal for literal in literals)

    def encode(self, body: RulebookBody, fixed: Mapping[str, int] | None = None) -> Encoded:
        """A rulebook as literals.

        Args:
            body: The rulebook, valid.
            fixed: Classes of fields, by their index, that the rulebook sees whatever the facts are.
        """
        fixed = fixed or {}
        valid = none_yet = self._valid(body, fixed)
        rules = []
        for place, rule in sorted(enumerate(body["rules"]), key=lambda each: _order(each[1])):
            nodes: dict[str, int] = {}
            condition = self._condition(rule["condition"], "condition", nodes, fixed)
            matches = self.all_of([none_yet, condition])
            rules.append(EncodedRule(rule, place, condition, none_yet, matches, nodes))
            none_yet = self.all_of([none_yet, -condition])
        results = {_result(one.rule["outcome"], one.rule_id): one.matches for one in rules}
        default = _result(body["default_outcome"], None)
        # A default outcome may read as that of facts that are refused.
        results[default] = none_yet
        results[REFUSED] = self.any_of([-valid, none_yet]) if default == REFUSED else -valid
        return Encoded(body, valid, tuple(rules), none_yet, results)

    def condition(self, condition: Condition) -> int:
        """The literal of a condition over fields of the space."""
        return self._condition(condition, "", {}, {})

    def classes_of(self, field: FieldVariables, formulas: Sequence[int]) -> frozenset[int]:
        """The classes that a field has at points where some literals of tests and formulas all hold, by their index.

        Raises:
            NotDecided: It cost too much.
        """
        found: set[int] = set()
        while self._solver.solve([*formulas, *(-field.classes[index] for index in found)]):
            found |= self._classes_here(field, formulas)
        return frozenset(found)

    def _classes_here(self, field: FieldVariables, formulas: Sequence[int]) -> set[int]:
        """Of those classes, some that the field has at the point found last, and at those that differ in it alone."""
        if not self.space.is_alone(field):
            return {field.chosen(self._solver).index}
        # Each literal is worked out once for all classes of the field, a bit each, where the solver would be asked for
        # one class after the other.
        every = (1 << len(field.classes)) - 1
        bits = dict(field.truths)
        holding = every
        for literal in formulas:
            holding &= self._bits(literal, bits, every)
        return {index for index in range(len(field.classes)) if holding >> index & 1}

    def _bits(self, literal: int, bits: dict[int, int], every: int) -> int:
        variable = abs(literal)
        if variable not in bits:
            if variable in self._parts:
                found = every
                for part in self._parts[variable]:
                    found &= self._bits(part, bits, every)
                    if not found:
                        break
            else:
                found = every if self._solver.holds(variable) else 0
            bits[variable] = found
        return bits[variable] if literal > 0 else every & ~bits[variable]

    def _valid(self, body: RulebookBody, fixed: Mapping[str, int]) -> int:
        schema = body["input_schema"]
        needed = []
        for name in schema["required"]:
            absent = self.space.fields[name].absent if name not in fixed else (TRUE if fixed[name] == 0 else -TRUE)
            needed.append(-absent)
        for name, declared in schema["properties"].items():
            field_ = self.space.fields[name]
            if name in fixed:
                needed.append(TRUE if self._fits(name, declared["type"], fixed[name]) else -TRUE)
            else:
                needed.append(self.any_of([field_.absent, self.space.of_type(name, declared["type"])]))
        return self.all_of(needed)

    def _fits(self, name: str, type_: str, index: int) -> bool:
        one = self.space.fields[name].of.classes[index]
        return one.kind == "absent" or is_of_type(one.sample, type_)

    def _condition(self, condition: Condition, path: str, nodes: dict[str, int], fixed: Mapping[str, int]) -> int:
        if "not" in condition:
            literal = -self._condition(condition["not"], f"{path}.not", nodes, fixed)
        elif "all" in condition:
            literal = self.all_of(self._children(condition["all"], f"{path}.all", nodes, fixed))
        elif "any" in condition:
            literal = self.any_of(self._children(condition["any"], f"{path}.any", nodes, fixed))
        elif condition["field"] in fixed:
            truth = self.space.fields[condition["field"]].of.truths(condition)[fixed[condition["field"]]]
            literal = TRUE if truth is True else -TRUE
        else:
            literal = self.space.test(condition)
        nodes[path] = literal
        return literal

    def _children(
        self, children: Sequence[Condition], path: str, nodes: dict[str, int], fixed: Mapping[str, int]
    ) -> list[int]:
        return [self._condition(child, f"{path}[{index}]", nodes, fixed) for index, child in enumerate(children)]


def _result(declared: DeclaredOutcome, rule_id: str | None) -> Result:
    return Result(declared["decision"], declared["verdict"], declared["action"], declared["reason_code"], rule_id)


def _order(rule: DeclaredRule) -> tuple[int, str]:
    return -rule.get("priority", 0), rule["rule_id"]
