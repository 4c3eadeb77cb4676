"""Two versions of a rulebook side by side: the rules, fields, and default outcomes that differ.

For example:

    found = compare(before, after)
    [(rule.rule_id, rule.differs) for rule in found.rules]      # [("approve_small", ("condition",))]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from gate.encoding.canonical import canonical
from gate.rulebooks.documents import DeclaredOutcome, InputSchema, RulebookBody
from gate.rulebooks.explanation import ExplainedRule, explain_rules

Part = TypeVar("Part")


@dataclass(frozen=True, slots=True)
class Change(Generic[Part]):
    """A part of a rulebook that two versions of it do not have alike.

    Attributes:
        name: The rule's id, or the field's name; "" of the default outcome.
        before: The part in the first version; None where the second added it.
        after: The part in the second version; None where that removed it.
        differs: The differing parts of a rule that both versions have: `condition`, `outcome`, and `priority`. Else
            empty.
    """

    name: str
    before: Part | None
    after: Part | None
    differs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Field:
    """A field of an input schema.

    Attributes:
        type: Its type; None where only the list of required fields names it.
        required: Whether facts must have it.
    """

    type: str | None
    required: bool


@dataclass(frozen=True, slots=True)
class Comparison:
    """How two versions of a rulebook differ.

    Attributes:
        rules: The rules that differ: first those of the second version as they are tried, then those that it removed.
        fields: The fields of the input schema that differ, by name.
        default: The default outcomes; None where they are the same.
    """

    rules: tuple[Change[ExplainedRule], ...]
    fields: tuple[Change[Field], ...]
    default: Change[DeclaredOutcome] | None


def compare(before: RulebookBody, after: RulebookBody) -> Comparison:
    """How a version of a rulebook differs from one before it.

    Args:
        before: The earlier version, valid.
        after: The later one.
    """
    old, new = before["default_outcome"], after["default_outcome"]
    return Comparison(
        _rules(before, after),
        _fields(before["input_schema"], after["input_schema"]),
        None if same(old, new) else Change("", old, new),
    )


def _rules(before: RulebookBody, after: RulebookBody) -> tuple[Change[ExplainedRule], ...]:
    old, new = ({each.rule["rule_id"]: each for each in explain_rules(body)} for body in (before, after))
    every = [
        Change(rule_id, old.get(rule_id), new.get(rule_id), _differs(old.get(rule_id), new.get(rule_id)))
        for rule_id in dict.fromkeys([*new, *old])
    ]
    return tuple(each for each in every if each.before is None or each.after is None or each.differs)


def _differs(before: ExplainedRule | None, after: ExplainedRule | None) -> tuple[str, ...]:
    if before is None or after is None:
        return ()
    alike = {
        "condition": same(before.rule["condition"], after.rule["condition"]),
        "outcome": same(before.rule["outcome"], after.rule["outcome"]),
        "priority": before.priority == after.priority,
    }
    return tuple(name for name, is_alike in alike.items() if not is_alike)


def _fields(before: InputSchema, after: InputSchema) -> tuple[Change[Field], ...]:
    names = sorted({*before["required"], *before["properties"], *after["required"], *after["properties"]})
    every = [Change(name, _field(before, name), _field(after, name)) for name in names]
    return tuple(each for each in every if each.before != each.after)


def _field(schema: InputSchema, name: str) -> Field | None:
    declared, required = schema["properties"].get(name), name in schema["required"]
    if declared is None and not required:
        return None
    return Field(None if declared is None else declared["type"], required)


def same(one: object, other: object) -> bool:
    """Whether two JSON values are hashed alike: 1 is 1.0 there, and no true."""
    return canonical(one) == canonical(other)
