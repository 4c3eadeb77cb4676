"""The explanation of a decision in words that a support agent can pass on: the reason, the rule, and the facts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from gate.rulebooks.explanation import Tree
from gate.verify.members import at
from workbench.dashboard.store.ledger import Story
from workbench.dashboard.views.decided.checks import value
from workbench.engines.rendering import cut

_MOST: Final = 20
"""How many tests are shown, the first of the rule."""

_NOTES: Final = ("description", "outcome")
_ANSWERS: Final = {"yes": "The answer is yes", "no": "The answer is no", "review": "A person must review this"}


def why(story: Story) -> dict[str, Any]:
    """What the top of the page says of the reason.

    Args:
        story: The decision.
    """
    record = story.record
    rule_id = record["matched_rule_id"]
    matched = next((each for each in story.rules if each.matched and each.rule["rule_id"] == rule_id), None)
    answer = _ANSWERS.get(record["verdict"], f"The answer is {cut(record['verdict'])}")
    note = at(story.annotations, "default_outcome") if rule_id is None else at(story.annotations, "rules", rule_id)
    tests = [] if matched is None else [(value(test.text), value(test.reason)) for test in _decided(matched.tree)]
    return {
        "answer": answer,
        "reason": record["reason_code"],
        "because": _because(story),
        "tests": tests[:_MOST],
        "more": max(0, len(tests) - _MOST),
        "notes": [str(note)] if isinstance(note, str) else [str(at(note, name)) for name in _NOTES if at(note, name)],
    }


def _because(story: Story) -> str:
    rule_id = story.record["matched_rule_id"]
    if rule_id is not None:
        return f"the rule {cut(rule_id)} matched"
    if "schema:failed" in story.record["evidence"]:
        return "the facts that were sent are incomplete or of the wrong type"
    return "no rule matched, and the default outcome decided"


def _decided(tree: Tree) -> Iterator[Tree]:
    """The tests for which a rule matched."""
    if tree.children:
        for child in tree.children:
            yield from _decided(child)
    elif tree.supports:
        yield tree
