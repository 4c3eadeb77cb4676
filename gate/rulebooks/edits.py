"""What an author changed between two versions of a rulebook, in sentences: one for each edit.

    [edit.text for edit in find_edits(before, after)]       # ["In the rule approve_small, amount lte 50 is now ..."]

It tells what was written, not what comes of it: `analysis.difference` proves that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from gate.encoding.canonical import canonical
from gate.rulebooks.comparison import Change, Field, compare, same
from gate.rulebooks.documents import Condition, DeclaredOutcome, RulebookBody
from gate.rulebooks.explanation import ExplainedRule, shown, test_words

Kind: TypeAlias = Literal[
    "rule_added", "rule_removed", "condition", "priority", "outcome", "default_outcome", "field_added", "field_removed",
    "field_changed",
]  # fmt: skip

_LONGEST: Final = 400
_PARTS: Final[tuple[Literal["decision", "verdict", "action", "reason_code"], ...]] = (
    "decision",
    "verdict",
    "action",
    "reason_code",
)


@dataclass(frozen=True, slots=True)
class Edit:
    """One thing that was changed.

    Attributes:
        kind: What kind of thing.
        name: The rule's id or the field's name; "" for the default outcome.
        text: A sentence for people; a long condition is cut.
    """

    kind: Kind
    name: str
    text: str


def find_edits(before: RulebookBody, after: RulebookBody) -> list[Edit]:
    """The edits that lead from one version of a rulebook to another: of rules, the default outcome, then of fields.

    Two versions that differ in their version label, in the order of their rules or in how a number is written only
    have none.

    Args:
        before: The earlier version, valid.
        after: The later one, valid.
    """
    found = compare(before, after)
    rules = [edit for change in found.rules for edit in _rule_edits(change)]
    fields = [_field_edit(change) for change in found.fields]
    if found.default is None or found.default.before is None or found.default.after is None:
        return [*rules, *fields]
    told = _outcome_words(found.default.before, found.default.after)
    return [*rules, Edit("default_outcome", "", f"Where no rule matches, {told}."), *fields]


def condition_in_words(condition: Condition) -> str:
    """A whole condition in words: `amount lte 50 and (risk eq "low" or not quarantined eq true)`; a long one is cut."""
    return _cut(_words(condition))


def _rule_edits(change: Change[ExplainedRule]) -> Iterator[Edit]:
    before, after, name = change.before, change.after, change.name
    if before is None and after is not None:
        condition = condition_in_words(after.rule["condition"])
        yield Edit(
            "rule_added",
            name,
            f"The rule {name} is new: {_outcome(after.rule['outcome'])} at priority {after.priority}, "
            f"where {condition}.",
        )
    elif after is None and before is not None:
        condition = condition_in_words(before.rule["condition"])
        yield Edit(
            "rule_removed",
            name,
            f"The rule {name} was removed: it gave {_outcome(before.rule['outcome'])} where {condition}.",
        )
    elif before is not None and after is not None:
        yield from _kept_rule_edits(name, before, after, change.differs)


def _kept_rule_edits(name: str, before: ExplainedRule, after: ExplainedRule, differs: Sequence[str]) -> Iterator[Edit]:
    if "condition" in differs:
        told = _cut("; ".join(_condition_edits(before.rule["condition"], after.rule["condition"])))
        yield Edit("condition", name, f"In the rule {name}, {told}.")
    if "priority" in differs:
        yield Edit("priority", name, f"The rule {name} has priority {after.priority} (it was {before.priority}).")
    if "outcome" in differs:
        told = _outcome_words(before.rule["outcome"], after.rule["outcome"])
        yield Edit("outcome", name, f"Where the rule {name} matches, {told}.")


def _condition_edits(before: Condition, after: Condition) -> Iterator[str]:
    """What changed in a condition, told of single tests as far as both have the same shape."""
    if same(before, after):
        return
    if "not" in before and "not" in after:
        yield from _condition_edits(before["not"], after["not"])
        return
    for old, new, joined in (
        (before.get("all"), after.get("all"), "required"),
        (before.get("any"), after.get("any"), "enough"),
    ):
        if old is not None and new is not None:
            yield from _children_edits(old, new, joined)
            return
    yield f"{_part(before)} is now {_part(after)}"


def _children_edits(before: Sequence[Condition], after: Sequence[Condition], joined: str) -> Iterator[str]:
    """What changed among the children of an `all`, each of which is required, or of an `any`, where each is enough."""
    kept = {canonical(child) for child in before} & {canonical(child) for child in after}
    old = [child for child in before if canonical(child) not in kept]
    new = [child for child in after if canonical(child) not in kept]
    if not old and not new:
        yield "the order or number of its conditions changed"
        return
    # A test is the successor of the one about the same field, else of the one in its turn.
    for child in list(old):
        successor = next((other for other in new if _about(child) and _about(child) == _about(other)), None)
        if successor is not None:
            old.remove(child)
            new.remove(successor)
            yield from _condition_edits(child, successor)
    if len(old) == len(new):
        for one, other in zip(old, new, strict=True):
            yield from _condition_edits(one, other)
        return
    for child in old:
        yield f"{_part(child)} is no longer {joined}"
    for child in new:
        yield f"{_part(child)} is now also {joined}"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _about(condition: Condition) -> str | None:
    return condition.get("field")


def _words(condition: Condition) -> str:
    for name, children in (("and", condition.get("all")), ("or", condition.get("any"))):
        if children is not None:
            return f" {name} ".join(_part(child) if len(children) > 1 else _words(child) for child in children)
    if "not" in condition:
        return f"not {_part(condition['not'])}"
    return test_words(condition)


def _part(condition: Condition) -> str:
    """A condition as a part of a sentence, in brackets where it is more than one test."""
    words = _words(condition)
    return f"({words})" if "all" in condition or "any" in condition else words


def _outcome(outcome: DeclaredOutcome) -> str:
    return f"{outcome['decision']} ({outcome['reason_code']})"


def _outcome_words(before: DeclaredOutcome, after: DeclaredOutcome) -> str:
    return " and ".join(
        f"the {part.replace('_', ' ')} is {_plain(after[part])} (it was {_plain(before[part])})"
        for part in _PARTS
        if before[part] != after[part]
    )


def _plain(value: str) -> str:
    # Codes need no quotes; an action is any text.
    return value if value.replace("_", "").isalnum() else shown(value)


def _field_edit(change: Change[Field]) -> Edit:
    before, after, name = change.before, change.after, change.name
    if before is None and after is not None:
        return Edit("field_added", name, f"The fact {name} is declared: {_type(after)}, {_need(after)}.")
    if after is None or before is None:
        return Edit("field_removed", name, f"The fact {name} is no longer declared.")
    told = [
        f"{new} (it was {old})"
        for old, new in ((_type(before), _type(after)), (_need(before), _need(after)))
        if old != new
    ]
    return Edit("field_changed", name, f"The fact {name} is {' and '.join(told)}.")


def _type(field: Field) -> str:
    return "of any type" if field.type is None else f"of type {field.type}"


def _need(field: Field) -> str:
    return "required" if field.required else "optional"
