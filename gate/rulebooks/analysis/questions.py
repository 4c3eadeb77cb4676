"""Facts on demand: facts for which a rule is tried and parts of its condition hold or do not, run by the evaluator.

with Questions(body) as questions:
    questions.facts("approve_small", {"condition.all[0]": True, "condition.all[1]": False})
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from gate.encoding.strict_json import JsonObject
from gate.rulebooks.analysis.finding import Inconsistent
from gate.rulebooks.analysis.formulas.encoding import Encoded, EncodedRule, Encoder, result_of
from gate.rulebooks.analysis.formulas.solver import TRUE, Solver
from gate.rulebooks.analysis.formulas.space import Space
from gate.rulebooks.conditions import test_nodes
from gate.rulebooks.documents import Condition, RulebookBody
from gate.rulebooks.evaluation import ABSENT, Evaluator, compile_rulebook, value_at
from gate.rulebooks.explanation import Tree, explain_rules
from gate.rulebooks.facts import with_value


class Questions:
    """A rulebook that is asked for facts.

    Each method raises `NotDecided` where the answer costs too much.
    """

    def __init__(self, body: RulebookBody) -> None:
        """Takes a valid rulebook.

        Raises:
            NotDecided: It is too large to ask anything.
        """
        self._solver: Final = Solver()
        self._space: Final = Space([body], self._solver)
        self._encoder: Final = Encoder(self._space)
        self._encoded: Final[Encoded] = self._encoder.encode(body)
        self._evaluator: Final[Evaluator] = compile_rulebook(body)
        self._rules: Final[Mapping[str, EncodedRule]] = {rule.rule_id: rule for rule in self._encoded.rules}
        self._body: Final = body

    def __enter__(self) -> Questions:
        """Itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Frees the solver's memory."""
        self._solver.close()

    def facts(self, rule_id: str, nodes: Mapping[str, bool]) -> JsonObject | None:
        """Valid facts for which a rule is tried, and nodes of its condition have some results; None if there are none.

        Args:
            rule_id: The rule.
            nodes: Results by the path of the node, as evaluations name it: `condition.all[0]`.
        """
        rule = self._rules[rule_id]
        wanted = [rule.nodes[path] if holds else -rule.nodes[path] for path, holds in nodes.items()]
        if not self._solver.solve([rule.tried, *wanted]):
            return None
        facts = self._space.facts()
        self._confirm(facts, rule_id, nodes)
        return facts

    def default_facts(self) -> JsonObject | None:
        """Valid facts for which no rule matches; None if there are none."""
        if not self._solver.solve([self._encoded.default]):
            return None
        facts = self._space.facts()
        outcome = self._evaluator.decide(facts)
        if outcome.status != "ok" or outcome.matched_rule_id is not None:
            raise Inconsistent(f"The evaluator gives {result_of(outcome)} for {facts}, and not the default outcome.")
        return facts

    def valid_facts(self) -> JsonObject | None:
        """Facts that meet the input schema; None if there are none."""
        return self._space.facts() if self._solver.solve([self._encoded.valid]) else None

    def deciding_facts(
        self, rule_id: str, path: str, value: object, near: JsonObject | None = None
    ) -> JsonObject | None:
        """Valid facts for which a rule is tried, and whether it matches is decided by one test that looks at a value.

        Args:
            rule_id: The rule.
            path: The test: `condition.all[0]`.
            value: The value of the test's field, or `ABSENT`.
            near: Facts that the answer should be similar to.

        Returns:
            The facts; None if there are none.
        """
        rule = self._rules[rule_id]
        test = next(test for place, test in test_nodes(rule.rule) if place == path)
        field = self._space.fields[test["field"]]
        if near is not None:
            for other in self._space.fields.values():
                for literal in other.literals(other.of.place(value_at(near, other.name))):
                    self._solver.prefer(literal)
        if not self._solver.solve([rule.tried, self._decides(rule, path), *field.literals(field.of.place(value))]):
            return None
        facts = self._space.facts()
        if value is not ABSENT:
            facts = with_value(facts, field.name, value)
        self._confirm(facts, rule_id, {})
        return facts

    def _decides(self, rule: EncodedRule, path: str) -> int:
        """The literal that holds where the result of a test is that of its rule's condition, or its opposite."""
        condition = rule.rule["condition"]
        one, other = (self._with(condition, "condition", path, literal) for literal in (TRUE, -TRUE))
        return self._encoder.any_of([self._encoder.all_of([one, -other]), self._encoder.all_of([-one, other])])

    def _with(self, condition: Condition, at: str, path: str, literal: int) -> int:
        """The literal of a condition in which the node at a path is given another one."""
        if at == path:
            return literal
        if "not" in condition:
            return -self._with(condition["not"], f"{at}.not", path, literal)
        if "all" in condition:
            children = enumerate(condition["all"])
            return self._encoder.all_of(self._with(one, f"{at}.all[{place}]", path, literal) for place, one in children)
        if "any" in condition:
            children = enumerate(condition["any"])
            return self._encoder.any_of(self._with(one, f"{at}.any[{place}]", path, literal) for place, one in children)
        return self._space.test(condition)

    def _confirm(self, facts: JsonObject, rule_id: str, nodes: Mapping[str, bool]) -> None:
        """Has the evaluator confirm that a rule is tried and that nodes of it have some results."""
        explained = self._evaluator.explain(facts)
        tried = {rule.rule["rule_id"]: rule.tree for rule in explain_rules(self._body, explained.evaluation)}
        found = {} if rule_id not in tried else dict(_results(tried[rule_id]))
        if rule_id not in tried or any(found[path] is not holds for path, holds in nodes.items()):
            raise Inconsistent(f"The evaluator does not find {dict(nodes)} in {rule_id} for {facts}.")


def _results(tree: Tree) -> Iterator[tuple[str, bool | None]]:
    yield tree.path, tree.holds
    for child in tree.children:
        yield from _results(child)
