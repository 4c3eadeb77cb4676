"""A server and its tools, as values.

    Server(name="clock", title="Clock", version="1", instructions="Ask for the time.", tools=(
        Tool(
            name="time", title="The time", description="Says what time it is.",
            input_schema={"type": "object", "additionalProperties": False},
            output_schema={"type": "object", "required": ["time"], "properties": {"time": {"type": "string"}}},
            annotations=READS, call=lambda arguments: Result({"time": "12:00"}),
        ),
    ))

The answer of a tool fits its `output_schema`, including refusals: `schemas.with_refusals` adds them to a schema. A new
server also needs a route that calls `api.mcp.endpoint.answer`, both MCP tests, and `x-client: false` in its operation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

import orjson

from gate.encoding.strict_json import Json, JsonObject, parse

JsonSchema: TypeAlias = Mapping[str, object]

READS: Final[Mapping[str, bool]] = MappingProxyType(
    {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}
)
"""The annotations of a tool that changes nothing."""

ADDS: Final[Mapping[str, bool]] = MappingProxyType(
    {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": False, "openWorldHint": False}
)
"""The annotations of a tool that adds a record with every call, and changes no existing record."""

TTL_MS: Final = 300_000
"""How long a client may cache the description of a server and its tools, in milliseconds."""


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a call of a tool.

    Attributes:
        structured: A JSON object that fits the tool's output schema.
        notes: Additional sentences for a model to read.
    """

    structured: Mapping[str, object]
    notes: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A tool of a server.

    Attributes:
        name: Its name, unique in the server.
        title: Its name for people.
        description: Its function, and the meaning of its answer.
        input_schema: The JSON Schema of its arguments, an object.
        output_schema: The JSON Schema of `Result.structured` and of refusals, an object.
        annotations: Hints for clients: `READS`, `ADDS`, or others.
        call: Answers the arguments; raises `GateError` to refuse them.
        decides: Whether it creates decisions, so that its refusals have `c`, as in `POST /api/decide`.
    """

    name: str
    title: str
    description: str
    input_schema: JsonSchema
    output_schema: JsonSchema
    annotations: Mapping[str, bool]
    call: Callable[[JsonObject], Result]
    decides: bool = False

    def described(self) -> dict[str, object]:
        """The tool as `tools/list` shows it."""
        return {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": self.input_schema,
            "outputSchema": self.output_schema,
            "annotations": {"title": self.title, **self.annotations},
        }


@dataclass(frozen=True, kw_only=True)
class Server:
    """A server.

    Attributes:
        name: Its name.
        title: Its name for people.
        version: Its version.
        instructions: The instructions for a model that uses the tools.
        tools: Its tools, in the order in which they are listed.
        cache_scope: Whether its description may be cached for one caller only, or for everyone.
        parse: Reads a body; raises `MaterialRefused`. No string that it accepts has half of a surrogate pair.
    """

    name: str
    title: str
    version: str
    instructions: str
    tools: Sequence[Tool]
    cache_scope: Literal["private", "public"] = "private"
    parse: Callable[[bytes], Json] = parse

    @cached_property
    def by_name(self) -> Mapping[str, Tool]:
        """The tools by their names."""
        return {tool.name: tool for tool in self.tools}

    @cached_property
    def info(self) -> Mapping[str, str]:
        """The name and version of the server, as clients see it."""
        return {"name": self.name, "title": self.title, "version": self.version}

    @cached_property
    def listed(self) -> orjson.Fragment:
        """The tools as JSON, written once."""
        return orjson.Fragment(orjson.dumps([tool.described() for tool in self.tools], default=dict))
