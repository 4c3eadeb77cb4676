"""Why a case does not hold: the rule that matched, the rule that was expected, and the tests that made the difference.

    explainer = Explainer(rulebook)
    for reason in explainer.reasons(result):
        reason.text      # "approve_standard_exception did not match (priority 50)"
        reason.tree      # its condition, without the parts that did not matter

A part of a condition made the difference if it has the result that its rule has. In a rule that matched, these are the
parts that support the match. In a rule that did not, these are the parts that oppose it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from gate.encoding.strict_json import JsonObject
from gate.rulebooks.documents import Condition, DeclaredRule, RulebookBody
from gate.rulebooks.evaluation import NEEDS_INPUT, Evaluator, compile_rulebook
from gate.rulebooks.explanation import ExplainedRule, Tree, explain_rules
from gate.rulebooks.rulebook import Rulebook
from gate.rulebooks.testing.runs import OUTCOME_MEMBERS, CaseResult, NamedOutcome, named, named_declared

_SHOWN: Final = 3
"""How many rules whose outcome would fit are shown."""


@dataclass(frozen=True, slots=True)
class Reason:
    """A sentence about a case that does not hold.

    Attributes:
        text: The sentence, without a full stop.
        rule_id: The rule that it is about; None where it is about none.
        tree: The parts of the rule's condition that made the difference; None where there are none to show.
    """

    text: str
    rule_id: str | None = None
    tree: Tree | None = None


class Explainer:
    """Explains the cases of a rulebook that do not hold."""

    def __init__(self, rulebook: Rulebook) -> None:
        """Prepares each rule to be evaluated alone, for the rules behind the matched one are not tried."""
        body = rulebook.body
        self._body: Final = body
        rules = sorted(body["rules"], key=lambda rule: (-rule.get("priority", 0), rule["rule_id"]))
        self._rules: Final = {rule["rule_id"]: _Alone.of(body, rule) for rule in rules}
        self._order: Final = list(self._rules)

    def reasons(self, result: CaseResult) -> list[Reason]:
        """The reasons why a case does not hold; none for a case that holds."""
        if result.held:
            return []
        differing = {difference.member for difference in result.differences}
        return [
            *self._what_happened(result),
            *(self._what_was_expected(result) if differing & set(OUTCOME_MEMBERS) else ()),
            *(self._not_missing(result) if "missing_fields" in differing else ()),
            *(self._not_invalid(result) if "invalid_fields" in differing else ()),
        ]

    def _what_happened(self, result: CaseResult) -> Iterator[Reason]:
        observed = result.observed
        matched = observed["matched_rule_id"]
        for name in observed["missing_fields"]:
            yield Reason(f"{name} is required but missing")
        for field in observed["invalid_fields"]:
            yield Reason(
                f"{field['field']} must be of type {field['expected']}, but is of type {field['observed_type']}"
            )
        if _lacks_input(result):
            yield Reason("so no rule was tried")
        elif matched is None:
            yield Reason("no rule matched, so the default outcome holds")
        else:
            rule = self._explained(matched, result)
            yield Reason(f"{matched} matched (priority {rule.priority})", matched, _decisive(rule.tree))

    def _what_was_expected(self, result: CaseResult) -> Iterator[Reason]:
        """The rules that should have matched. Where input is missing or invalid, that is the reason."""
        expect, observed = result.case.expect, result.observed
        if _lacks_input(result):
            return
        expected = expect.get("matched_rule_id")
        if expected is not None:
            if expected not in self._rules:
                yield Reason(f"the rulebook has no rule {expected}")
            elif expected != observed["matched_rule_id"]:
                yield self._about(self._explained(expected, result), result)
            return
        stated = {name: value for name, value in expect.items() if name in OUTCOME_MEMBERS}
        fitting = [rule_id for rule_id in self._order if stated.items() <= self._rules[rule_id].outcome.items()]
        nearest = sorted(fitting, key=lambda rule_id: self._rules[rule_id].distance(result.case.facts))
        for rule_id in nearest[:_SHOWN]:
            yield self._about(self._explained(rule_id, result), result)
        more = len(fitting) - _SHOWN
        if more > 0:
            yield Reason(f"{more} more {'rule has' if more == 1 else 'rules have'} a matching outcome")
        elif not fitting:
            yield Reason(self._without_rules(stated))

    def _about(self, rule: ExplainedRule, result: CaseResult) -> Reason:
        """Why a rule did not match, or would not have."""
        rule_id, matched = rule.rule["rule_id"], result.observed["matched_rule_id"]
        if rule.matched:
            text = f"{rule_id} would also have matched (priority {rule.priority}), but {matched} comes first"
            return Reason(text, rule_id)
        tried = matched is None or self._order.index(rule_id) < self._order.index(matched)
        said = "did not match" if tried else "would not have matched"
        return Reason(f"{rule_id} {said} (priority {rule.priority})", rule_id, _decisive(rule.tree))

    def _without_rules(self, stated: Mapping[str, object]) -> str:
        """Which outcome fits, where that of no rule does."""
        if stated.items() <= named_declared(self._body["default_outcome"], None).items():
            return "only the default outcome is as expected, and it applies where no rule matches"
        if stated.items() <= named(NEEDS_INPUT).items():
            return "only missing or invalid input gives the expected outcome, and no input is missing or invalid"
        return "no outcome of the rulebook is as expected"

    def _not_missing(self, result: CaseResult) -> Iterator[Reason]:
        required = self._body["input_schema"]["required"]
        for name in result.case.expect.get("missing_fields", ()):
            if name not in result.observed["missing_fields"]:
                yield Reason(f"{name} is {'not missing' if name in required else 'not required'}")

    def _not_invalid(self, result: CaseResult) -> Iterator[Reason]:
        declared = self._body["input_schema"]["properties"]
        observed = {field["field"] for field in result.observed["invalid_fields"]}
        for expected in result.case.expect.get("invalid_fields", ()):
            name = expected if isinstance(expected, str) else expected["field"]
            if name not in declared:
                yield Reason(f"no type is declared for {name}")
            elif name not in observed:
                yield Reason(f"{name} has the declared type {declared[name]['type']}")

    def _explained(self, rule_id: str, result: CaseResult) -> ExplainedRule:
        return self._rules[rule_id].explain(result.case.facts)


@dataclass(frozen=True, slots=True)
class _Alone:
    """A rule as the only one of a rulebook that asks for no input."""

    body: RulebookBody
    evaluator: Evaluator
    outcome: NamedOutcome

    @classmethod
    def of(cls, body: RulebookBody, rule: DeclaredRule) -> _Alone:
        alone: RulebookBody = {**body, "input_schema": {"required": [], "properties": {}}, "rules": [rule]}
        return cls(alone, compile_rulebook(alone), named_declared(rule["outcome"], rule["rule_id"]))

    def distance(self, facts: JsonObject) -> int:
        """How many tests must change, at least, for the rule to match."""
        (rule,), (tried,) = self.body["rules"], self.evaluator.explain(facts).evaluation["rules"]
        return _opposing(rule["condition"], (test["passed"] for test in tried["tests"]), needed=True)

    def explain(self, facts: JsonObject) -> ExplainedRule:
        (rule,) = explain_rules(self.body, self.evaluator.explain(facts).evaluation)
        return rule


def _lacks_input(result: CaseResult) -> bool:
    return bool(result.observed["missing_fields"] or result.observed["invalid_fields"])


def _decisive(tree: Tree) -> Tree:
    """A tree without the parts that have another result than the whole, seen from its rule."""
    children = tuple(_decisive(child) for child in tree.children if child.supports is tree.supports)
    return replace(tree, children=children)


def _opposing(condition: Condition, passed: Iterator[bool], needed: bool) -> int:
    """How many tests must change, at least, for a condition to have the needed result, if each could change by itself.

    Args:
        condition: The condition.
        passed: The results of its tests, in their order.
        needed: The needed result.
    """
    if "not" in condition:
        return _opposing(condition["not"], passed, not needed)
    if "all" in condition:
        counts = [_opposing(child, passed, needed) for child in condition["all"]]
        return sum(counts) if needed else min(counts)
    if "any" in condition:
        counts = [_opposing(child, passed, needed) for child in condition["any"]]
        return min(counts) if needed else sum(counts)
    return int(next(passed) is not needed)
