"""Conditions as trees of sentences: every `all`, `any`, `not` and test, with its result over facts and the reason.

    for rule in explain_rules(body, explained.evaluation):
        rule.tree.text, rule.tree.holds, rule.tree.reason       # "any", False, "both inside are false"

A node supports its rule where the rule needs the result that it has. Inside a `not` the rule needs false, so there a
false test supports it, and `supports` never contradicts the result of the rule above.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import orjson

from gate.encoding.shapes import json_type
from gate.rulebooks.documents import Condition, DeclaredRule, Evaluation, RulebookBody, TriedTest


@dataclass(frozen=True, slots=True)
class Tree:
    """A node of a condition.

    Attributes:
        path: Its place in the rule, as evaluations name tests: `condition.all[0]`.
        text: `all`, `any`, `not`, or the test in words.
        holds: Whether it holds over the facts; None without facts.
        supports: Whether its result is the one that makes its rule match; None without facts.
        reason: Why it holds or does not; "" without facts.
        children: What stands in it.
    """

    path: str
    text: str
    holds: bool | None
    supports: bool | None
    reason: str
    children: tuple[Tree, ...] = ()


@dataclass(frozen=True, slots=True)
class ExplainedRule:
    """A rule and its condition.

    Attributes:
        rule: The rule as its author wrote it.
        priority: Its priority.
        matched: Whether it matched; None where it was not tried.
        tree: Its condition.
    """

    rule: DeclaredRule
    priority: int
    matched: bool | None
    tree: Tree


def explain_rules(body: RulebookBody, evaluation: Evaluation | None = None) -> list[ExplainedRule]:
    """The rules of a valid rulebook in the order in which they are tried.

    Args:
        body: The rulebook.
        evaluation: What the rulebook made of facts; only the rules that it tried are then given. None without facts.
    """
    rules = sorted(body["rules"], key=lambda rule: (-rule.get("priority", 0), rule["rule_id"]))
    if evaluation is None:
        return [_explained(rule, None, None) for rule in rules]
    tried = {rule["rule_id"]: rule for rule in evaluation["rules"]}
    return [
        _explained(rule, found["passed"], {test["path"]: test for test in found["tests"]})
        for rule in rules
        if (found := tried.get(rule["rule_id"])) is not None
    ]


def _explained(rule: DeclaredRule, matched: bool | None, tests: Mapping[str, TriedTest] | None) -> ExplainedRule:
    tree = _tree(rule["condition"], "condition", tests, needed=True)
    return ExplainedRule(rule, int(rule.get("priority", 0)), matched, tree)


def _tree(condition: Condition, path: str, tests: Mapping[str, TriedTest] | None, *, needed: bool) -> Tree:
    """The tree of a condition; `needed` is the result of it that makes the rule match."""
    if "not" in condition:
        child = _tree(condition["not"], f"{path}.not", tests, needed=not needed)
        holds = None if child.holds is None else not child.holds
        reason = "" if holds is None else f"the condition inside is {_word(not holds)}"
        return Tree(path, "not", holds, _supports(holds, needed), reason, (child,))
    for name, among in (("all", condition.get("all")), ("any", condition.get("any"))):
        if among is not None:
            children = tuple(
                _tree(child, f"{path}.{name}[{index}]", tests, needed=needed) for index, child in enumerate(among)
            )
            holds = None if tests is None else (all if name == "all" else any)(bool(child.holds) for child in children)
            return Tree(path, name, holds, _supports(holds, needed), _count(name, children, tests), children)
    test = None if tests is None else tests[path]
    holds = None if test is None else test["passed"]
    return Tree(path, test_words(condition), holds, _supports(holds, needed), "" if test is None else _observed(test))


def _supports(holds: bool | None, needed: bool) -> bool | None:
    return None if holds is None else holds is needed


def _count(name: str, children: tuple[Tree, ...], tests: Mapping[str, TriedTest] | None) -> str:
    if tests is None:
        return ""
    number, true = len(children), sum(bool(child.holds) for child in children)
    if number == 1:
        return f"the one condition inside is {_word(true == 1)}"
    if true in (0, number):
        return f"{'both' if number == 2 else f'all {number}'} inside are {_word(true == number)}"
    told, word = (number - true, "false") if name == "all" else (true, "true")
    return f"{told} of {number} inside {'is' if told == 1 else 'are'} {word}"


def test_words(test: Condition) -> str:
    """A test as people read it: `amount lte 50`."""
    value = f" {shown(test['value'])}" if "value" in test else ""
    return f"{test['field']} {test['operator']}{value}"


def tried_words(test: TriedTest) -> tuple[str, str]:
    """A test that was tried as people read it, and what it found: `amount lte 50`, `the fact is 20`."""
    value = f" {shown(test['expected'])}" if "expected" in test else ""
    return f"{test['field']} {test['operator']}{value}", _observed(test)


def condition_words(condition: Condition) -> str:
    """A condition in a few words: a test as people read it, a combinator as `all of 3 conditions`."""
    if "operator" in condition:
        return test_words(condition)
    if "not" in condition:
        return f"not {condition_words(condition['not'])}"
    name, children = ("all", condition["all"]) if "all" in condition else ("any", condition["any"])
    return f"{name} of {len(children)} {'condition' if len(children) == 1 else 'conditions'}"


def _observed(test: TriedTest) -> str:
    if "observed" not in test:
        return "the field is absent"
    observed = test["observed"]
    number = json_type(observed) in ("integer", "number")
    not_ordered = test["operator"] in ("gt", "gte", "lt", "lte") and not number
    return f"the fact is {shown(observed)}{', which is not a number' if not_ordered else ''}"


def _word(holds: bool) -> str:
    return "true" if holds else "false"


_LONGEST: Final = 120


def shown(value: object) -> str:
    """A JSON value for people; only the beginning of a long one."""
    text = orjson.dumps(value).decode()
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
