"""The current facts as a form: a line for each fact that a rulebook declares or tests, with its value.

fields = fields_of(body, facts)
given = read_given(fields, {"amount": {"is": "value", "text": "12.5"}})
given.facts, given.faults
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from gate.drafting.splicing import one_line
from gate.encoding.strict_json import Json, JsonObject, parse
from gate.errors import MaterialRefused
from gate.rulebooks.conditions import tests_of
from gate.rulebooks.documents import RulebookBody
from gate.rulebooks.evaluation import ABSENT, value_at
from gate.rulebooks.facts import set_value

MAX_FACTS: Final = 256 * 1024
"""How many characters all facts at hand may take together."""

_SAID: Final = {
    "integer": "an integer",
    "array": "a list, such as [1, 2]",
    "object": "an object, such as {}",
    "null": "null",
}
_TRUTHS: Final = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class FactField:
    """A fact in the form.

    Attributes:
        name: The field, a dotted path.
        type: Its declared type; None where it is not declared.
        required: Whether the rulebook asks for it.
        state: `absent`, `null` or `value`.
        text: Its value as it is typed; empty where there is none.
    """

    name: str
    type: str | None
    required: bool
    state: str
    text: str


@dataclass(frozen=True, slots=True)
class Given:
    """What a form gives.

    Attributes:
        facts: The facts.
        faults: The faults of lines, by field. A fact with a fault is absent.
    """

    facts: JsonObject
    faults: Mapping[str, str]


def fields_of(body: RulebookBody, facts: Mapping[str, object]) -> list[FactField]:
    """The facts that a rulebook declares, asks for or tests, in this order, with what they are.

    Args:
        body: A valid rulebook.
        facts: The current facts.
    """
    schema = body["input_schema"]
    names = [*schema["properties"], *schema["required"], *(node.condition["field"] for _, node in tests_of(body))]
    return [_field(name, declared_type(body, name), body, facts) for name in dict.fromkeys(names)]


def declared_type(body: RulebookBody, field: str) -> str | None:
    """The type that a rulebook declares for a field; None where it declares none."""
    declared = body["input_schema"]["properties"].get(field)
    return None if declared is None else declared["type"]


def _field(name: str, type_: str | None, body: RulebookBody, facts: Mapping[str, object]) -> FactField:
    value = value_at(facts, name)
    state = "absent" if value is ABSENT else "null" if value is None else "value"
    text = "" if state != "value" else _shown(cast("Json", value), type_)
    return FactField(name, type_, name in body["input_schema"]["required"], state, text)


def _shown(value: Json, type_: str | None) -> str:
    return value if isinstance(value, str) and type_ == "string" else one_line(value)


def read_given(fields: Sequence[FactField], lines: Mapping[str, Any], beside: Mapping[str, object]) -> Given:
    """The facts of a form as it is filled in.

    Args:
        fields: The facts of the form.
        lines: The content of each line, by field: `{"is": "absent" | "null" | "value", "text": ...}`.
        beside: The earlier facts. Those without a line stay.
    """
    facts: JsonObject = {name: cast("Json", value) for name, value in beside.items() if not _is_shown(name, fields)}
    faults: dict[str, str] = {}
    for field in fields:
        line = lines.get(field.name)
        state, text = (line.get("is"), line.get("text")) if isinstance(line, dict) else ("absent", "")
        if state == "absent" or not isinstance(text, str):
            continue
        try:
            value = None if state == "null" else _value(text, field.type)
        except MaterialRefused as error:
            faults[field.name] = error.message
            continue
        try:
            set_value(facts, field.name, value)
        except (AttributeError, TypeError):
            faults[field.name] = "Another fact conflicts with this one. Leave out one of the two."
    return Given(facts, faults)


def _is_shown(name: str, fields: Sequence[FactField]) -> bool:
    return any(field.name == name or field.name.startswith(f"{name}.") for field in fields)


def _value(text: str, type_: str | None) -> Json:
    if type_ == "string":
        return text
    if type_ == "boolean" and text in _TRUTHS:
        return _TRUTHS[text]
    try:
        return cast("Json", parse(text.encode()))
    except (MaterialRefused, UnicodeEncodeError) as error:
        if type_ is None:
            return text
        kind = _SAID.get(type_, f"a {type_}")
        raise MaterialRefused("FACT_INVALID", f"This is not {kind}.") from error
