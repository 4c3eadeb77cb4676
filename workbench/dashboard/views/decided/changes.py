"""The changes of a policy version compared with the version before it, part by part and side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from gate.rulebooks.comparison import Change, Comparison, Field
from gate.rulebooks.documents import DeclaredOutcome
from gate.rulebooks.explanation import ExplainedRule
from workbench.dashboard.store.ledger import VersionChange
from workbench.dashboard.views.decided.rules import outcome, tree
from workbench.engines.rendering import cut
from workbench.engines.wording import counted, joined

_MOST: Final = 200
"""How many rules and how many fields are shown."""


def changes(found: VersionChange) -> dict[str, Any]:
    """What `changes.html` shows.

    Args:
        found: What the version changed.
    """
    comparison = found.comparison
    rules = () if comparison is None else comparison.rules
    fields = () if comparison is None else comparison.fields
    default = None if comparison is None else comparison.default
    return {
        "title": _nothing(found) if comparison is None else _title(found, comparison),
        "before": found.before,
        "version": found.version,
        "rules": [_rule(each) for each in rules[:_MOST]],
        "fields": [(each.name, _did(each), _field(each.before), _field(each.after)) for each in fields[:_MOST]],
        "default": None if default is None else (_outcome(default.before), _outcome(default.after)),
        "more": max(0, len(rules) - _MOST) + max(0, len(fields) - _MOST),
    }


def _nothing(found: VersionChange) -> str:
    version = cut(found.version)
    if found.before is None:
        return f"No version before {version} to compare with"
    return f"What {version} changed cannot be shown: the ledger does not hold it or {cut(found.before)} as registered"


def _title(found: VersionChange, comparison: Comparison) -> str:
    parts = [*_counts(comparison.rules, "rule"), *_counts(comparison.fields, "input field")]
    parts += ["the default outcome changed"] if comparison.default is not None else []
    versions = f"From version {cut(found.before or '')} to {cut(found.version)}"
    return f"{versions}, {joined(parts)}" if parts else f"{versions}, no rule, input field or default outcome changed"


def _counts(changed: Sequence[Change[Any]], noun: str) -> list[str]:
    counts = {did: sum(_did(each) == did for each in changed) for did in ("added", "removed", "changed")}
    return [
        f"{counted(number, noun)} {'was' if number == 1 else 'were'} {did}" for did, number in counts.items() if number
    ]


def _did(change: Change[Any]) -> str:
    return "added" if change.before is None else "removed" if change.after is None else "changed"


def _rule(change: Change[ExplainedRule]) -> dict[str, Any]:
    did = _did(change)
    return {
        "id": change.name,
        "did": f"changed: {joined(change.differs)}" if did == "changed" else did,
        "sides": [_side(change.before), _side(change.after)],
    }


def _side(rule: ExplainedRule | None) -> dict[str, Any] | None:
    if rule is None:
        return None
    return {"priority": rule.priority, "outcome": outcome(rule.rule["outcome"]), "tree": tree(rule.tree)}


def _outcome(of: DeclaredOutcome | None) -> str:
    return "-" if of is None else outcome(of)


def _field(of: Field | None) -> str:
    if of is None:
        return "missing"
    return f"{of.type or 'any type'}, {'required' if of.required else 'optional'}"
