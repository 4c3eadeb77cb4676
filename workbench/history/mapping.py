"""The map of a history: the source column of each field.

    history_map_version: decision_history_map_v1
    id: {column: booking}
    occurred_at: {column: decided, format: date}
    policy_id: refund_policy
    outcome: {column: result, values: {ok: succeeded, lost: failed}}
    facts:
      order_total: {column: total, type: number}

`{column: NAME}` is read from the row. Where a constant is allowed, a plain value is one. The schema is
`schemas/history-map-v1.schema.json`; this module adds the rules that a schema cannot express.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from gate.encoding.canonical import content_hash
from gate.encoding.shapes import shape
from gate.encoding.yaml_text import read_yaml
from gate.errors import FieldError, MaterialRefused, OperatorError, member
from workbench.columns import IMPORTED
from workbench.history.times import TYPED, TimeFormat, fault_of

MAP_VERSION: Final = "decision_history_map_v1"


@dataclass(frozen=True, slots=True)
class Member:
    """A field that is read from a column.

    Attributes:
        name: Its path in the map: `outcome`, `facts.order_total`.
        column: The column.
        kind: id, time, text, choice, boolean, number, integer, or string.
        values: The meaning of each cell, for a choice or a boolean; None if cells are true and false.
        time: The format of times.
    """

    name: str
    column: str
    kind: str
    values: Mapping[str, Any] | None = None
    time: TimeFormat | None = None


@dataclass(frozen=True, slots=True)
class Map:
    """A map that was read.

    Attributes:
        document: The map as JSON.
        members: What is read from columns, in the map's order: id first, facts last.
        null_values: The cells that mean nothing.
        format: The kind of the files; None where the suffixes tell.
        policy_id: The policy.
        policy_version: The constant version; None where a column has it.
        verdict: The constant verdict; None where a column has it, or nothing does.
        action: The constant action; None where a column has it, or nothing does.
        executed: The constant action_executed; None where a column has it, or nothing does.
    """

    document: Mapping[str, Any]
    members: tuple[Member, ...]
    null_values: tuple[str, ...]
    format: str | None
    policy_id: str
    policy_version: str | None
    verdict: str | None
    action: str | None
    executed: bool | None

    @property
    def hash(self) -> str:
        """map_hash: the content hash of the document."""
        return content_hash(self.document)

    @property
    def columns(self) -> list[str]:
        """The columns that are read, each once."""
        return list(dict.fromkeys(of.column for of in self.members))

    @property
    def facts(self) -> list[str]:
        """The paths of the facts."""
        return [of.name.removeprefix(FACTS) for of in self.members if of.name.startswith(FACTS)]

    def typed(self, columns: Collection[str]) -> Map:
        """The map of a file that has some columns as dates or times: how these are written is known."""
        members = (
            replace(of, time=TimeFormat(TYPED, of.time.zone)) if of.time is not None and of.column in columns else of
            for of in self.members
        )
        return replace(self, members=tuple(members)) if columns else self

    def has(self, name: str) -> bool:
        """Whether a member is read from a column."""
        return any(of.name == name for of in self.members)


FACTS: Final = "facts."
METRICS: Final = "metrics."

_TIMES: Final = ("occurred_at", "outcome_at")
_CHOICES: Final = ("verdict", "outcome")
_TEXTS: Final = ("policy_version", "reason", "action")


def read_map(content: bytes, where: str) -> Map:
    """Reads a map.

    Args:
        content: The file, YAML 1.2 or JSON.
        where: What to call it.

    Raises:
        OperatorError: `HISTORY_MAP_INVALID`, with the path of each member at fault.
    """
    try:
        document = read_yaml(content).value
    except MaterialRefused as error:
        line = f", line {error.details['line']}" if "line" in error.details else ""
        raise OperatorError("HISTORY_MAP_INVALID", f"{where}{line} cannot be read as a map. {error.message}") from error
    return load_map(document, where)


def load_map(document: Any, where: str) -> Map:
    """The map that a JSON value is.

    Raises:
        OperatorError: `HISTORY_MAP_INVALID`.
    """
    errors = shape("history-map-v1").errors(document) or list(_faults(document))
    if errors:
        raise OperatorError("HISTORY_MAP_INVALID", f"{where} is not a valid map of a history.", errors=errors)
    return Map(
        document=document,
        members=tuple(_members(document)),
        null_values=tuple(document.get("null_values", [""])),
        format=document.get("format"),
        policy_id=document["policy_id"],
        policy_version=_constant(document.get("policy_version", IMPORTED)),
        verdict=_constant(document.get("verdict")),
        action=_constant(document.get("action")),
        executed=_constant(document.get("action_executed")),
    )


def _constant(value: Any) -> Any:
    return None if isinstance(value, Mapping) else value


def _members(document: Mapping[str, Any]) -> Iterator[Member]:
    yield Member("id", document["id"]["column"], "id")
    for name in (*_TIMES, *_TEXTS, *_CHOICES, "action_executed"):
        of = document.get(name)
        if not isinstance(of, Mapping):
            continue
        if name in _TIMES:
            written = TimeFormat(of.get("format", "iso8601"), of.get("zone", "UTC"))
            yield Member(name, of["column"], "time", time=written)
        elif name == "action_executed":
            yield Member(name, of["column"], "boolean", of.get("values"))
        else:
            yield Member(name, of["column"], "choice" if name in _CHOICES else "text", of.get("values"))
    for name, of in document.get("metrics", {}).items():
        yield Member(f"{METRICS}{name}", of["column"], "number")
    for path, of in document["facts"].items():
        yield Member(f"{FACTS}{path}", of["column"], of["type"], of.get("values"))


def _faults(document: Mapping[str, Any]) -> Iterator[FieldError]:
    """What a schema cannot say."""
    for name in _TIMES:
        of = document.get(name)
        if isinstance(of, Mapping):
            where, fault = fault_of(of.get("format", "iso8601"), of.get("zone", "UTC"))
            if fault:
                yield FieldError(f"{name}.{where}", "format", fault)
    paths = sorted(document["facts"])
    for path in paths:
        at = member("facts", path)
        if not all(path.split(".")):
            yield FieldError(at, "pattern", "It is not a path: a name is missing before or after a dot.")
        if any(other.startswith(f"{path}.") for other in paths):
            yield FieldError(at, "conflict", "Another fact lies inside it; a fact from a column holds one value.")
        of = document["facts"][path]
        if "values" in of and of["type"] != "boolean":
            yield FieldError(f"{at}.values", "unknown_field", "Only a boolean can have values; remove them.")
