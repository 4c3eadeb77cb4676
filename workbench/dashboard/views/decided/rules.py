"""The rules of a decision, as they were tried: every condition with the fact that it saw."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from gate.rulebooks.explanation import ExplainedRule, Tree
from gate.verify.members import at
from workbench.dashboard.store.ledger import Story
from workbench.dashboard.views.decided.checks import value
from workbench.engines.rendering import cut
from workbench.engines.wording import counted


def rules(story: Story) -> dict[str, Any]:
    """The rules of a decision's rulebook, and what became of each."""
    evaluation = story.record["evaluation"]
    tried = [each for each in story.rules if each.matched is not None]
    return {
        "title": _title(story, tried),
        "rules": [_rule(each, at(story.annotations, "rules", each.rule["rule_id"])) for each in story.rules],
        "missing": [str(name) for name in _listed(evaluation, "missing_fields")],
        "invalid": [
            (at(each, "field"), at(each, "expected"), at(each, "observed_type"))
            for each in _listed(evaluation, "invalid_fields")
        ],
        "erased": evaluation is None,
        "unexplained": not story.rules,
        "default": None if story.rulebook is None else outcome(story.rulebook["default_outcome"]),
        "default_note": at(story.annotations, "default_outcome"),
        "note": at(story.annotations, "description"),
    }


def _title(story: Story, tried: list[ExplainedRule]) -> str:
    if story.record["evaluation"] is None:
        return "The evaluation of the rules was erased"
    if not story.rules:
        return "The rules cannot be shown"
    of = counted(len(story.rules), "rule")
    matched = next((each for each in tried if each.matched), None)
    if matched is not None:
        return f"{cut(matched.rule['rule_id'])} matched, rule {len(tried):,} of {len(story.rules):,}"
    if not tried:
        return f"None of {of} was tried, because the facts failed the schema check"
    return f"None of {of} matched, so the default outcome decided"


def _listed(evaluation: object, name: str) -> list[Any]:
    found = at(evaluation, name)
    return found if isinstance(found, list) else []


def _rule(explained: ExplainedRule, note: object) -> dict[str, Any]:
    tone, result = {True: ("good", "matched"), False: ("", "did not match"), None: ("few", "not tried")}[
        explained.matched
    ]
    return {
        "id": explained.rule["rule_id"],
        "priority": explained.priority,
        "tone": tone,
        "result": result,
        "open": explained.matched is not None,
        "outcome": outcome(explained.rule["outcome"]),
        "tree": tree(explained.tree),
        "notes": [str(text) for text in (at(note, "description"), at(note, "outcome")) if text],
    }


def outcome(of: Mapping[str, Any]) -> str:
    """An outcome that a rulebook declares, in words."""
    return f"{of['decision']} ({cut(of['verdict'])}), {cut(of['action'])}, {cut(of['reason_code'])}"


_WORDS: Final = {"all": "All of:", "any": "At least one of:", "not": "Not:"}


def tree(of: Tree) -> dict[str, Any]:
    """A condition as `tree.html` shows it."""
    joins = bool(of.children)
    tone, result = {
        True: ("good" if of.supports else "bad", "holds"),
        False: ("good" if of.supports else "bad", "does not hold"),
        None: ("few", ""),
    }[of.holds]
    return {
        "text": _WORDS[of.text] if joins else value(of.text),
        "code": not joins,
        "tone": tone,
        "result": result,
        "reason": value(of.reason),
        "children": [tree(child) for child in of.children],
    }
