"""Changes of a draft as a table makes them, and as `gate drafts set` does: by the path of a member, with what is typed.

    text = set_value(text, "rules[0].condition.value", "50")
    text = remove(text, "rules[0]")
    text = add_rule(text, like="approve_small")

All else in the text stays as its author wrote it (`splicing`).
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from typing import Any, Final, cast

from gate.drafting import splicing
from gate.drafting.splicing import Text, read
from gate.encoding.positions import Steps
from gate.encoding.strict_json import Json, JsonObject, parse
from gate.errors import MaterialRefused

PRESENCE: Final = ("exists", "not_exists")
"""The operators of tests that have no value."""

_LISTS: Final = ("in", "not_in")
_STEP: Final = re.compile(r"(?:^|\.)([^.\[\]]+)|\[([0-9]{1,6})\]")
_TEST: Final[JsonObject] = {"field": "amount", "operator": "exists"}
_NEW_RULE: Final[JsonObject] = {
    "rule_id": "new_rule",
    "priority": 0,
    "condition": _TEST,
    "outcome": {"decision": "review", "verdict": "REVIEW", "action": "ask_the_owner", "reason_code": "NEW_RULE"},
}


def set_value(text: str, path: str, typed: str) -> str:
    """The text with another value of a member, which may be missing yet.

    Args:
        text: The text.
        path: The member, as errors name it: `rules[0].condition.value`.
        typed: The value as an author types it: a word, a number, JSON, or `a, b` for a list of texts.

    Raises:
        MaterialRefused: The text is none; `DRAFT_EDIT_REFUSED`; or `DRAFT_VALUE_INVALID`: the member cannot have it.
    """
    of = read(text)
    steps = _steps(of, path, may_lack_last=True)
    name, holder = steps[-1], _at(of, steps[:-1])
    value = _value(of, steps, holder, typed)
    if isinstance(name, str):
        text = splicing.set_member(of.text, steps[:-1], name, value)
    else:
        text = splicing.replace(of.text, steps, value)
    return _fit_value(text, steps[:-1], str(value)) if name == "operator" else text


def remove(text: str, path: str) -> str:
    """The text without a member, or an item of a list.

    Raises:
        MaterialRefused: As `set_value`.
    """
    of = read(text)
    steps = _steps(of, path)
    last = steps[-1]
    if isinstance(last, int):
        return splicing.remove(of.text, steps[:-1], last)
    return splicing.remove_member(of.text, steps)


def add_rule(text: str, *, like: str | None = None) -> str:
    """The text with another rule: one like a rule behind that one, or the simplest one behind the last.

    Raises:
        MaterialRefused: As `set_value`.
    """
    of = read(text)
    rules = cast("list[Any]", _member(of.value, "rules", list))
    ids = [rule.get("rule_id") if isinstance(rule, dict) else None for rule in rules]
    if like is None:
        made, index = copy.deepcopy(_NEW_RULE), len(rules)
        if names := _fields(of):
            cast("JsonObject", made["condition"])["field"] = names[0]
    elif like in ids:
        index = ids.index(like) + 1
        made = copy.deepcopy(rules[index - 1])
    else:
        raise _unknown(f"the rule {like}")
    made["rule_id"] = _free(str(made["rule_id"]), ids)
    return splicing.insert(of.text, ("rules",), index, made)


def add_test(text: str, path: str) -> str:
    """The text with another test in a condition: in an existing `all` or `any`, or with a single test, which then moves
    into an `all`.

    The new test repeats the one before it, so it changes no decision until it is edited. In an `any`, a test that most
    facts pass would make a rule match nearly all of them.

    Args:
        text: The text.
        path: The condition: `rules[0].condition`.

    Raises:
        MaterialRefused: As `set_value`.
    """
    of = read(text)
    steps = _steps(of, path)
    condition = _at(of, steps)
    for name in ("all", "any"):
        if isinstance(condition, dict) and isinstance(condition.get(name), list):
            tests = cast("list[Json]", condition[name])
            plain = [each for each in tests if isinstance(each, dict) and "operator" in each]
            return splicing.insert(of.text, (*steps, name), len(tests), [_TEST, *tests[-1:], *plain][-1])
    return splicing.gather(of.text, steps, "all", condition)


def typed_value(value: Json, operator: str, declared: str | None) -> str:
    """The value of a test as `set_value` reads it again: as a word where that is enough, else as JSON.

    A value that the declared type does not allow may be read as another.

    Args:
        value: The value.
        operator: The operator of the test.
        declared: The type of its field; None where it has none.
    """
    shown = splicing.one_line(value)
    if isinstance(value, str):
        shown = value if _same(_read_one(value.strip(), declared), value) else shown
    elif isinstance(value, list) and operator in _LISTS and all(isinstance(item, str) for item in value):
        listed = ", ".join(cast("list[str]", value))
        shown = listed if _same(_read_list(listed.strip(), declared), value) else shown
    return shown


def _same(one: Json, other: Json) -> bool:
    return splicing.one_line(one) == splicing.one_line(other)


def _value(of: Text, steps: Steps, holder: Json, typed: str) -> Json:
    name, typed = steps[-1], typed.strip()
    if name == "priority":
        try:
            priority = parse(typed.encode())
        except MaterialRefused:
            priority = None
        if not isinstance(priority, int) or isinstance(priority, bool):
            raise MaterialRefused("DRAFT_VALUE_INVALID", f"A priority must be a whole number, not {typed[:40]!r}.")
        return priority
    if name != "value" or not isinstance(holder, dict):
        return typed
    declared = _declared(of, holder.get("field"))
    return _read_list(typed, declared) if holder.get("operator") in _LISTS else _read_one(typed, declared)


def _read_one(typed: str, declared: object) -> Json:
    if declared == "string" and not typed.startswith('"'):
        return typed
    try:
        return cast("Json", parse(typed.encode()))
    except (MaterialRefused, UnicodeEncodeError):
        return typed


def _read_list(typed: str, declared: object) -> Json:
    if typed.startswith("["):
        return _read_one(typed, None)
    return [_read_one(item.strip(), declared) for item in typed.split(",") if item.strip()]


def _fit_value(text: str, steps: Steps, operator: str) -> str:
    """A test of presence has no value, and each other one has."""
    test = _at(read(text), steps)
    if not isinstance(test, dict):
        return text
    if operator in PRESENCE:
        return splicing.remove_member(text, (*steps, "value")) if "value" in test else text
    if "value" not in test:
        return splicing.set_member(text, steps, "value", [] if operator in _LISTS else 0)
    value = test["value"]
    if operator in _LISTS and not isinstance(value, list):
        return splicing.replace(text, (*steps, "value"), [value])
    if operator not in _LISTS and isinstance(value, list) and len(value) == 1:
        return splicing.replace(text, (*steps, "value"), value[0])
    return text


def _steps(of: Text, path: str, *, may_lack_last: bool = False) -> Steps:
    found: Steps = tuple(int(at) if at else name for name, at in _STEP.findall(path))
    if _STEP.sub("", path) or not found:
        raise _unknown(path)
    known = found[:-1] if may_lack_last and isinstance(found[-1], str) else found
    if known not in of.spans or (known != found and not isinstance(_at(of, known), dict)):
        raise _unknown(path)
    return found


def _unknown(what: str) -> MaterialRefused:
    return MaterialRefused(
        "DRAFT_PATH_UNKNOWN", f"The draft has no {what[:200]}. Somebody may have changed it meanwhile."
    )


def _at(of: Text, steps: Steps) -> Json:
    value: Any = of.value
    for step in steps:
        value = value[step]
    return cast("Json", value)


def _member(value: object, name: str, type_: type) -> object:
    found = value.get(name) if isinstance(value, Mapping) else None
    if not isinstance(found, type_):
        raise _unknown(f"list of {name}")
    return found


def _properties(of: Text) -> Mapping[str, Any]:
    schema = of.value.get("input_schema") if isinstance(of.value, dict) else None
    properties = schema.get("properties") if isinstance(schema, dict) else None
    return properties if isinstance(properties, dict) else {}


def _fields(of: Text) -> list[str]:
    return list(_properties(of))


def _declared(of: Text, name: object) -> object:
    declared = _properties(of).get(str(name))
    return declared.get("type") if isinstance(declared, dict) else None


def _free(name: str, taken: list[Any]) -> str:
    if name not in taken:
        return name
    number = 2
    while f"{name}_{number}" in taken:
        number += 1
    return f"{name}_{number}"
