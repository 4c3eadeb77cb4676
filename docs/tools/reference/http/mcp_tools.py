"""docs/reference/mcp-tools.md, from the tools and the texts that agents see."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from api.mcp.agents.server import agents_server
from api.mcp.policies import ALL, policy_server
from api.mcp.servers import Tool
from api.mcp.versions import BATCH_VERSION, HANDSHAKE_VERSIONS, MAX_BATCH, PER_REQUEST_VERSIONS, Code
from docs.tools.reference.http import fields
from docs.tools.reference.http.api import WHO
from docs.tools.reference.http.operations import operations
from docs.tools.reference.markdown import anchor, choice, code, link, page, table
from gate.services.policies.questions import QUESTIONS, UNKNOWN, Question

SOURCE: Final = "api/mcp"

_ENDPOINTS: Final[Mapping[str, tuple[str, ...]]] = {
    "decide": ("POST /api/decide",),
    "report_execution": ("POST /api/decision/{decision_id}/execution",),
    "report_outcome": ("POST /api/decision/{decision_id}/outcome",),
    "verify": (
        "GET /api/decision/{decision_id}/verify",
        "POST /api/decision/{decision_id}/verify",
        "POST /api/decision/verify",
    ),
    "explain": (),
    "replay": ("POST /api/decision/{decision_id}/replay",),
    "list_rulebooks": (),
}
"""The endpoints that do the same as each tool."""
_OTHERWISE: Final = "read"
"""The access for tools that no endpoint is like."""


def pages() -> dict[str, str]:
    """The one page."""
    tools = agents_server().tools
    return {
        "mcp-tools.md": page(
            "# MCP tools",
            "This page lists the tools that the gate offers to agents over the Model Context Protocol, with their "
            "arguments. [Connect an agent](../guides/connect-an-agent.md) shows how to use them, and which answers "
            "permit an action.",
            "## Tools",
            "The server at `{base_url}/api/mcp` needs an API key in the header `x-api-key`. A tool has the same "
            "checks, limits, and records as its endpoint, and `tools/list` returns the JSON Schemas. A result contains "
            "the answer as text and as `structuredContent`. If `isError` is true, that is the "
            "[error](errors/README.md) with its `http_status`. Further texts are notes. An idempotency key that was "
            "used over HTTP returns the same record here.",
            table(("tool", "callers", "the same endpoint"), map(_row, tools)),
            *(block for tool in tools for block in _tool(tool)),
            "## Policy services",
            "These servers need no key. [Answer refund questions](../guides/answer-refund-questions.md) explains their "
            f"answers. Every verdict can also be `{UNKNOWN}`.",
            table(("address", "tool", "answers", "days argument", "verdicts"), map(_policy_row, QUESTIONS)),
            f"`{{base_url}}/{ALL}/api/mcp` has all of them. They take these arguments, and the days argument of the "
            "table:",
            _arguments(policy_server("trial").tools[0].input_schema),
            "## Protocol",
            "Streamable HTTP without state: each POST has one message and one JSON answer. GET and DELETE answer 405, "
            "and notifications 202.",
            f"- {', '.join(sorted(HANDSHAKE_VERSIONS))}: `initialize`, `ping`, `tools/list`, and `tools/call`. Only "
            f"{BATCH_VERSION} has batches, of at most {MAX_BATCH} messages.\n"
            f"- {', '.join(PER_REQUEST_VERSIONS)}: `server/discover`, `tools/list`, and `tools/call`. Each request "
            "states its version in `_meta` and in the headers `MCP-Protocol-Version`, `Mcp-Method`, and `Mcp-Name`.",
            f"JSON-RPC errors have the standard codes. After {Code.INTERNAL.value}, the gate acknowledged nothing. "
            f"{Code.HEADER_MISMATCH.value}: the headers contradict the message. {Code.UNSUPPORTED_VERSION.value}: the "
            "version is not one of `data.supported`. Faults of the HTTP request are [service "
            "errors](errors/README.md).",
        )
    }


def _row(tool: Tool) -> tuple[str, str, str]:
    same = [operations()[key] for key in _ENDPOINTS[tool.name]]
    access = same[0].written["x-access"] if same else _OTHERWISE
    links = [link(code(each.key), f"api/{each.page}#{anchor(each.key)}") for each in same]
    caller = f"{WHO[access]}; with a new rulebook, also `register`" if tool.decides else WHO[access]
    return link(code(tool.name), f"#{tool.name}"), caller, choice(links) if links else "none"


def _tool(tool: Tool) -> Iterator[str]:
    yield f"### `{tool.name}`"
    yield f"{tool.title}. {_marked(tool.description)}"
    yield _arguments(tool.input_schema)


def _arguments(schema: Mapping[str, Any]) -> str:
    rows = (
        (code(name), _type(member), "yes" if name in schema["required"] else "no", _marked(member["description"]))
        for name, member in schema["properties"].items()
    )
    return table(("argument", "type", "required", "meaning"), rows)


def _marked(text: str) -> str:
    """A text for agents with names such as `decision_id` as code."""
    return re.sub(r"(?<![\w./])[a-z]+(?:[._][a-z]+)+", lambda found: code(found[0]), text)


def _type(member: Mapping[str, Any]) -> str:
    """The type of an argument, or the format that it is."""
    if "allOf" not in member:
        return fields.type_of(dict(member))
    name = member["allOf"][0]["$ref"].rpartition("/")[2]
    return link(fields.title_of(f"{name}.schema.json"), f"formats/{name}.md")


def _policy_row(question: Question) -> tuple[str, str, str, str, str]:
    verdicts = ", ".join(code(verdict) for verdict in question.verdicts if verdict != UNKNOWN)
    days = code(question.days[0]) if question.days else "none"
    address = f"{{base_url}}/{question.service}/api/mcp"
    return code(address), code(question.tool), question.description, days, verdicts
