"""Reads and checks the arguments of a call: the fields of a tool's input schema, each of its type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Final, cast

from gate.decisions.claims import MAX_IDEMPOTENCY_KEY, is_usable_key
from gate.encoding import resources
from gate.encoding.shapes import Shape
from gate.encoding.strict_json import JsonObject
from gate.errors import FieldError, RequestRefused
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
"""The fields of each kind of arguments, and the required ones."""


@cache
def _shape(kind: str) -> Shape:
    members, required = MEMBERS[kind]
    return Shape({"type": "object", "properties": members, "required": list(required), "additionalProperties": False})


def fault(kind: str, arguments: JsonObject) -> RequestRefused | None:
    """The errors of arguments; None without errors."""
    errors = list(_shape(kind).errors(arguments))
    key = text(arguments, "idempotency_key")
    if key is not None and "idempotency_key" in MEMBERS[kind][0] and not is_usable_key(key):
        errors.append(FieldError("idempotency_key", "invalid", _KEY_RULE))
    if not errors:
        return None
    if flat := _flat(kind, arguments):
        whole, _ = _WHOLE[kind]
        there = f"It belongs in {whole}; move it there."
        errors = [replace(error, message=there) if error.field in flat else error for error in errors]
        return refused(f"move {_listed(flat)} into {whole}.", errors)
    named = " ".join(f"{error.field}: {error.message}" for error in errors[:_NAMED])
    more = len(errors) - _NAMED
    return refused(f"{named} {more} more are in errors." if more > 0 else named, errors)


def refused(what: str, errors: Sequence[FieldError]) -> RequestRefused:
    """The error for arguments that do not fit their tool; `what` states in sentences what to change."""
    return RequestRefused("SVC_API_REQUEST_INVALID", f"The arguments do not fit this tool: {what}", errors)


_KEY_RULE: Final = f"It must be 1 to {MAX_IDEMPOTENCY_KEY} printable ASCII characters; use a simpler key."
_NAMED: Final = 3
_WHOLE: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "decide": ("request", ("decision-request",)),
    "report": ("report", ("execution-request", "outcome-request")),
}
"""The argument of a kind that contains a document, and the possible schemas of the document."""


def _flat(kind: str, arguments: JsonObject) -> list[str]:
    """The arguments that are fields of the document in another argument."""
    if kind not in _WHOLE:
        return []
    _, schemas = _WHOLE[kind]
    inner = {name for schema in schemas for name in resources.schema(schema)["properties"]}
    return [name for name in arguments if name in inner and name not in MEMBERS[kind][0]]


def _listed(names: Sequence[str]) -> str:
    *most, last = names if len(names) <= _NAMED else [*names[:_NAMED], f"{len(names) - _NAMED} more"]
    return f"{', '.join(most)}{' and ' if most else ''}{last}"


def require(kind: str, arguments: JsonObject) -> None:
    """Requires that arguments fit a kind.

    Raises:
        RequestRefused: `SVC_API_REQUEST_INVALID`.
    """
    if (found := fault(kind, arguments)) is not None:
        raise found


def text(arguments: JsonObject, name: str) -> str | None:
    """An argument that is text; None if it is missing or something else."""
    value = arguments.get(name)
    return value if isinstance(value, str) else None


def decision_id(arguments: JsonObject) -> str:
    """The id of the decision in arguments that require one."""
    return cast("str", arguments["decision_id"])
