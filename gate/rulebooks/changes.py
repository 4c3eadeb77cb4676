"""What a rulebook changes against another one of the same policy: rules, tests, outcomes, priorities and fields.

    changes(before, after)     # [Change("rule block_below_margin_floor", "test", "margin_percent lt 15", "... lt 8")]

What is written is compared, not what it means: two conditions that hold for the same facts are a change if they differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gate.rulebooks.conditions import walk
from gate.rulebooks.documents import Condition, DeclaredOutcome, DeclaredRule, RulebookBody
from gate.rulebooks.explanation import shown


@dataclass(frozen=True, slots=True)
class Change:
    """One difference between two rulebooks.

    Attributes:
        where: `rule <id>`, `default outcome`, or `field <name>`.
        what: `rule`, `test`, `condition`, `priority`, `field`, or a member of an outcome.
        before: How it was; None where it was not there.
        after: How it is; None where it is no more.
    """

    where: str
    what: str
    before: str | None
    after: str | None


def changes(before: RulebookBody, after: RulebookBody) -> list[Change]:
    """The differences between two valid rulebooks: of their rules, in the order of the later one, and of the rest.

    Args:
        before: The earlier one.
        after: The later one.
    """
    default = _outcome("default outcome", before["default_outcome"], after["default_outcome"])
    return [*_rules(before, after), *default, *_fields(before, after)]


def words(condition: Condition) -> str:
    """A condition on one line, as authors would say it: `discount_percent lte 12 and margin_percent gte 18`."""
    if "not" in condition:
        return f"not ({words(condition['not'])})"
    for name, word in (("all", " and "), ("any", " or ")):
        among = condition.get(name)
        if isinstance(among, list):
            return word.join(f"({words(each)})" if "operator" not in each else words(each) for each in among)
    value = f" {shown(condition['value'])}" if "value" in condition else ""
    return f"{condition['field']} {condition['operator']}{value}"


def _rules(before: RulebookBody, after: RulebookBody) -> Iterator[Change]:
    old, new = ({rule["rule_id"]: rule for rule in body["rules"]} for body in (before, after))
    for rule_id in [*new, *(each for each in old if each not in new)]:
        where, was, now = f"rule {rule_id}", old.get(rule_id), new.get(rule_id)
        if was is None or now is None:
            yield Change(where, "rule", _whole(was), _whole(now))
        else:
            yield from _tests(where, was["condition"], now["condition"])
            yield from _outcome(where, was["outcome"], now["outcome"])
            yield from _change(where, "priority", _priority(was), _priority(now))


def _whole(rule: DeclaredRule | None) -> str | None:
    if rule is None:
        return None
    outcome = rule["outcome"]
    return f"{words(rule['condition'])}: {outcome['decision']}, {outcome['reason_code']}, {outcome['action']}"


def _tests(where: str, before: Condition, after: Condition) -> Iterator[Change]:
    """The tests that changed; the whole conditions where they are built differently."""
    old, new = ({node.path: node.condition for node in walk(each)} for each in (before, after))
    if {path: _built(each) for path, each in old.items()} != {path: _built(each) for path, each in new.items()}:
        yield Change(where, "condition", words(before), words(after))
        return
    for path, was in old.items():
        if "operator" in was:
            yield from _change(where, "test", words(was), words(new[path]))


def _built(condition: Condition) -> str:
    return next((name for name in ("all", "any", "not") if name in condition), "test")


def _outcome(where: str, before: DeclaredOutcome, after: DeclaredOutcome) -> Iterator[Change]:
    for name in ("decision", "verdict", "action", "reason_code"):
        yield from _change(where, name, before[name], after[name])


def _fields(before: RulebookBody, after: RulebookBody) -> Iterator[Change]:
    old, new = _declared(before), _declared(after)
    for name in [*new, *(each for each in old if each not in new)]:
        yield from _change(f"field {name}", "field", old.get(name), new.get(name))


def _declared(body: RulebookBody) -> Mapping[str, str]:
    """Each field with its type, and whether it is required."""
    schema = body["input_schema"]
    types = {name: of["type"] for name, of in schema["properties"].items()}
    every = dict.fromkeys([*types, *schema["required"]])
    return {
        name: f"{types.get(name, 'any type')}, {'required' if name in schema['required'] else 'may be absent'}"
        for name in every
    }


def _priority(rule: DeclaredRule) -> str:
    return str(int(rule.get("priority", 0)))


def _change(where: str, what: str, before: str | None, after: str | None) -> Iterator[Change]:
    if before != after:
        yield Change(where, what, before, after)
