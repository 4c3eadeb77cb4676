"""The authoring form of a rulebook: Rulebook v1 with comments, as authors keep it in files.

    authored = read_authored(parse(path.read_bytes()))
    authored.body            # Rulebook v1: what is hashed, registered and sent
    authored.annotations     # {"description": ..., "rules": {"block_fraud": {"description": ...}}}

`$schema` at the root and `description` at the root, in a rule and in an outcome are annotations. They are taken out
before anything is hashed, so that a comment changes no hash. Nothing authenticates them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, cast

from gate.encoding.canonical import canonical
from gate.encoding.shapes import shape
from gate.encoding.strict_json import Json, JsonObject
from gate.errors import FieldError
from gate.rulebooks.documents import Annotations, RuleAnnotations, RulebookBody
from gate.rulebooks.rulebook import find_errors

MAX_RULEBOOK: Final = 1024 * 1024
"""How many canonical bytes a rulebook may take: no request could send a larger one."""

MAX_ANNOTATIONS: Final = 65_536
"""How many canonical bytes the annotations of a rulebook may take together."""


@dataclass(frozen=True, slots=True)
class Authored:
    """A rulebook as it was read from a file.

    Attributes:
        body: The rulebook without its annotations; a valid Rulebook v1 where there are no errors.
        annotations: Its annotations; {} where it has none or is not valid.
        errors: What makes it no valid rulebook, by places in the file.
    """

    body: RulebookBody
    annotations: Annotations
    errors: list[FieldError]


def read_authored(document: object) -> Authored:
    """Reads a rulebook in its authoring form. Rulebook v1 is a part of that form."""
    body = cast("RulebookBody", _stripped(document))
    errors = shape("rulebook-authoring-v1").errors(document) or find_errors(body)
    if isinstance(document, dict) and "cases" in document and "rules" not in document:
        message = "This is a file of cases. Give its rulebook instead, or run `gate rulebook test` on the file."
        errors = [FieldError("", "cases", message)]
    if errors:
        return Authored(body, {}, errors)
    annotations = _annotations_of(cast("JsonObject", document))
    oversize = [
        FieldError("", "too_long", f"{what} {size} bytes; at most {most} are allowed.")
        for what, size, most in (
            ("Without descriptions it takes", len(canonical(body)), MAX_RULEBOOK),
            ("All descriptions together take", len(canonical(annotations)), MAX_ANNOTATIONS),
        )
        if size > most
    ]
    return Authored(body, {} if oversize else annotations, oversize)


def annotated(body: RulebookBody, annotations: Annotations) -> JsonObject:
    """The authoring form of a rulebook: what `read_authored` reads as this body with these annotations.

    Its members stand in the order in which authors write them.
    """
    document = cast("JsonObject", _in_order(cast("Json", body)))
    about = annotations.get("rules", {})
    for rule in cast("list[JsonObject]", document["rules"]):
        described = about.get(cast("str", rule["rule_id"]), {})
        _describe(rule, described.get("description"))
        _describe(cast("JsonObject", rule["outcome"]), described.get("outcome"))
    _describe(cast("JsonObject", document["default_outcome"]), annotations.get("default_outcome"))
    _describe(document, annotations.get("description"))
    return {"$schema": annotations["schema"], **document} if "schema" in annotations else document


_ORDER: Final = (
    "$schema", "schema_version", "rulebook_id", "rule_id", "version", "description", "input_schema", "rules",
    "default_outcome", "priority", "condition", "outcome", "required", "properties", "decision", "verdict", "action",
    "reason_code", "field", "operator", "type", "value",
)  # fmt: skip


def _in_order(value: Json) -> Json:
    """A copy of a value, with the members of its objects in the order of `_ORDER`, and others behind these."""
    if isinstance(value, list):
        return [_in_order(item) for item in value]
    if not isinstance(value, dict):
        return value
    return _sorted({name: _in_order(item) for name, item in value.items()})


def _sorted(value: JsonObject) -> JsonObject:
    names = [name for name in _ORDER if name in value]
    return {name: value[name] for name in (*names, *(name for name in value if name not in names))}


def _describe(document: JsonObject, description: str | None) -> None:
    """Puts a description where authors write it: behind what names the thing."""
    if description is not None:
        members = _sorted({"description": description, **document})
        document.clear()
        document.update(members)


def _stripped(document: object) -> object:
    if not isinstance(document, dict):
        return document
    body = _without(document, "$schema", "description")
    if "default_outcome" in body:
        body["default_outcome"] = _described(body["default_outcome"])
    rules = body.get("rules")
    if isinstance(rules, list):
        body["rules"] = [_stripped_rule(rule) for rule in rules]
    return body


def _stripped_rule(rule: Json) -> Json:
    if not isinstance(rule, dict):
        return rule
    rule = _without(rule, "description")
    return rule | {"outcome": _described(rule["outcome"])} if "outcome" in rule else rule


def _described(outcome: Json) -> Json:
    return _without(outcome, "description") if isinstance(outcome, dict) else outcome


def _without(value: JsonObject, *names: str) -> JsonObject:
    return {name: item for name, item in value.items() if name not in names}


def _annotations_of(document: JsonObject) -> Annotations:
    """The annotations of a valid document, those that it has."""
    valid = cast("RulebookBody", document)
    found: Annotations = {}
    if "$schema" in document:
        found["schema"] = cast("str", document["$schema"])
    if (text := _text(document)) is not None:
        found["description"] = text
    rules: dict[str, RuleAnnotations] = {}
    for rule in valid["rules"]:
        about: RuleAnnotations = {}
        if (text := _text(rule)) is not None:
            about["description"] = text
        if (text := _text(rule["outcome"])) is not None:
            about["outcome"] = text
        if about:
            rules[rule["rule_id"]] = about
    if rules:
        found["rules"] = rules
    if (text := _text(valid["default_outcome"])) is not None:
        found["default_outcome"] = text
    return found


def _text(described: Mapping[str, object]) -> str | None:
    return cast("str | None", described.get("description"))
