"""The arguments of a call, read: the members of a tool's input schema, each of its type."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final, cast

from gate.encoding.shapes import Shape, to_mend
from gate.encoding.strict_json import JsonObject
from gate.errors import RequestRefused
from gate.labels import VIEWS

_KEY: Final[JsonObject] = {"type": "string"}
_DECISION: Final[JsonObject] = {"type": "string", "minLength": 1, "maxLength": 200}
_VIEW: Final[JsonObject] = {"enum": list(VIEWS)}
_OBJECT: Final[JsonObject] = {"type": "object"}

MEMBERS: Final[Mapping[str, tuple[Mapping[str, JsonObject], tuple[str, ...]]]] = {
    "decide": ({"request": _OBJECT, "idempotency_key": _KEY, "response_view": _VIEW}, ("request",)),
    "report": ({"decision_id": _DECISION, "report": _OBJECT, "idempotency_key": _KEY}, ("decision_id", "report")),
    "verify": (
        {"decision_id": _DECISION, "record": _OBJECT, "input": _OBJECT, "public_key": {"type": "string"}},
        (),
    ),
    "explain": ({"decision_id": _DECISION}, ("decision_id",)),
    "replay": (
        {"decision_id": _DECISION, "replay_mode": {"type": "string"}, "input": _OBJECT, "response_view": _VIEW},
        ("decision_id",),
    ),
    "list_rulebooks": ({"limit": {"type": "integer", "minimum": 1, "maximum": 1000}}, ()),
}
"""The members of each kind of arguments, by the kind, and those that must be there."""


@cache
def _shape(kind: str) -> Shape:
    members, required = MEMBERS[kind]
    return Shape({"type": "object", "properties": members, "required": list(required), "additionalProperties": False})


def fault(kind: str, arguments: JsonObject) -> RequestRefused | None:
    """What is wrong with arguments; None where nothing is."""
    errors = _shape(kind).errors(arguments)
    if not errors:
        return None
    return RequestRefused("SVC_API_REQUEST_INVALID", to_mend("These are no arguments of this tool", errors), errors)


def require(kind: str, arguments: JsonObject) -> None:
    """Requires that arguments are of a kind.

    Raises:
        RequestRefused: SVC_API_REQUEST_INVALID.
    """
    if (found := fault(kind, arguments)) is not None:
        raise found


def text(arguments: JsonObject, name: str) -> str | None:
    """An argument that is text; None where it is none."""
    value = arguments.get(name)
    return value if isinstance(value, str) else None


def decision_id(arguments: JsonObject) -> str:
    """The decision that arguments of a kind are about, which is there."""
    return cast("str", arguments["decision_id"])
