"""The server for agents, and the schemas and annotations of its tools."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Final

from api.mcp.agents import arguments, texts
from api.mcp.agents.tools import CALLS
from api.mcp.schemas import embedded, with_refusals
from api.mcp.servers import ADDS, READS, Server, Tool
from gate.encoding.strict_json import MAX_REQUEST_DEPTH, MAX_VERIFY_DEPTH, JsonObject, parse
from gate.labels import INTERFACE_VERSION

# A record to verify stands three levels down in a message: in params, in its arguments, in record.
_MAX_DEPTH: Final = max(MAX_REQUEST_DEPTH, MAX_VERIFY_DEPTH) + 3

_RECORD: Final = "decision-record-v1"
_VIEWS: Final = tuple(
    f"{_RECORD}/$defs/{view}" for view in ("full", "standard", "minimal", "after_erasure", "advisory")
)


@dataclass(frozen=True, slots=True)
class _Kind:
    """The properties of a tool, without its texts and its call.

    Attributes:
        arguments: The kind of its arguments, from `arguments.MEMBERS`.
        takes: The arguments with a schema in `schemas/`, by their names.
        answers: The schemas of its result: files in `schemas/`, or places in them.
        hints: Its annotations.
    """

    arguments: str
    takes: Mapping[str, str]
    answers: tuple[str, ...]
    hints: Mapping[str, bool]


_KINDS: Final[Mapping[str, _Kind]] = {
    "decide": _Kind("decide", {"request": "decision-request"}, _VIEWS, ADDS),
    "report_execution": _Kind("report", {"report": "execution-request"}, ("execution-receipt",), ADDS),
    "report_outcome": _Kind("report", {"report": "outcome-request"}, ("outcome-record",), ADDS),
    "verify": _Kind("verify", {}, ("verification-result",), READS),
    "explain": _Kind("explain", {}, ("decision-explanation",), READS),
    "replay": _Kind("replay", {"input": "decision-request"}, ("replay-result",), READS),
    "list_rulebooks": _Kind("list_rulebooks", {}, ("registered-rulebooks",), READS),
}


@cache
def agents_server() -> Server:
    """The gate as a server for agents."""
    return Server(
        name="decision-gate",
        title="Decision Gate",
        version=INTERFACE_VERSION,
        instructions=texts.INSTRUCTIONS,
        tools=[_tool(name, kind) for name, kind in _KINDS.items()],
        parse=partial(parse, max_depth=_MAX_DEPTH),
    )


def _tool(name: str, kind: _Kind) -> Tool:
    title, description = texts.TEXTS[name]
    return Tool(
        name=name,
        title=title,
        description=description,
        input_schema=_input_schema(kind),
        output_schema=_output_schema(kind),
        annotations=kind.hints,
        call=CALLS[name],
        decides=name == "decide",
    )


def _input_schema(kind: _Kind) -> JsonObject:
    members, required = arguments.MEMBERS[kind.arguments]
    described: JsonObject = {}
    for name, schema in members.items():
        refers: JsonObject = {"allOf": [{"$ref": f"#/$defs/{kind.takes[name]}"}]} if name in kind.takes else {}
        described[name] = schema | refers | {"description": texts.MEMBERS[name]}
    whole: JsonObject = {
        "type": "object",
        "properties": described,
        "required": list(required),
        "additionalProperties": False,
    }
    if kind.takes:
        whole["$defs"] = embedded(kind.takes.values(), in_words=True)
    return whole


def _output_schema(kind: _Kind) -> JsonObject:
    names = dict.fromkeys(answer.partition("/")[0] for answer in kind.answers)
    results: list[JsonObject] = [{"$ref": f"#/$defs/{answer}"} for answer in kind.answers]
    return with_refusals(*results, names=names)
