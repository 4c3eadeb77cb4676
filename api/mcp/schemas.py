"""The schemas of tools, made from those in `schemas/`. Each is one complete document, so that clients can validate.

A schema is placed under `$defs` by its name, and its references lead to this place. The schemas use nothing that draft
7 and 2020-12 of JSON Schema read differently, because clients validate with either.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, cast

from gate.encoding import resources
from gate.encoding.strict_json import Json, JsonObject

REFUSAL: Final = "refusal"
"""The name of the definition that refusals fit."""

_ERROR: Final = "error"
_DROPPED: Final = frozenset({"$schema", "$id"})
_WORDS: Final = frozenset({"title", "description"})


def embedded(names: Iterable[str], *, in_words: bool) -> JsonObject:
    """Schemas of `schemas/` as definitions, by their names.

    Args:
        names: The names, without `.schema.json`.
        in_words: Whether they keep their descriptions. Models read lists of tools, and pay for each word.
    """
    dropped = _DROPPED if in_words else _DROPPED | _WORDS
    return {name: _moved(resources.schema(name), f"#/$defs/{name}", dropped, is_schema=True) for name in names}


def with_refusals(*results: JsonObject, names: Iterable[str] = ()) -> JsonObject:
    """The output schema of a tool: one of its results, or a refusal.

    Args:
        results: Schemas of the results; they may refer to `#/$defs/<name>`.
        names: The schemas that they refer to.
    """
    status: JsonObject = {"type": "integer", "minimum": 400, "maximum": 599}
    refusal: JsonObject = {
        "description": "An error, which never approves anything. With isError: true.",
        "allOf": [{"$ref": f"#/$defs/{_ERROR}"}],
        "type": "object",
        "required": ["http_status"],
        "properties": {"http_status": status},
    }
    definitions = embedded([*names, _ERROR], in_words=False)
    return {
        "type": "object",
        "anyOf": [*results, {"$ref": f"#/$defs/{REFUSAL}"}],
        "$defs": {**definitions, REFUSAL: refusal},
    }


def _moved(node: Json, to: str, dropped: frozenset[str], *, is_schema: bool) -> JsonObject:
    """A copy of a schema, or of an object with schemas as its fields, for another place."""
    moved: JsonObject = {}
    for name, value in cast("JsonObject", node).items():
        if is_schema and name in dropped and not isinstance(value, dict):
            continue
        if is_schema and name == "$ref":
            moved[name] = f"{to}{str(value).removeprefix('#')}"
        elif isinstance(value, dict):
            inner = not (is_schema and name in _MAPS)
            moved[name] = _moved(value, to, dropped, is_schema=inner)
        elif isinstance(value, list):
            moved[name] = [
                _moved(item, to, dropped, is_schema=True) if isinstance(item, dict) else item for item in value
            ]
        else:
            moved[name] = value
    return moved


# Keywords whose members have names of their own, which may be those of keywords.
_MAPS: Final = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
