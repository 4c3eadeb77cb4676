"""Dispatches and answers a message. An answer depends only on the message and its headers.

    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "time", "arguments": {}}}
    answer(server, body, Head(), call).body
    # {"jsonrpc": "2.0", "id": 1, "result": {"content": [...], "structuredContent": {"time": "12:00"}, ...}}

Nothing is kept between two messages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import orjson

from api.mcp.headers import Head, decoded
from api.mcp.messages import Id, ProtocolError, Request, read_message
from api.mcp.servers import TTL_MS, Result, Server, Tool
from api.mcp.versions import (
    BATCH_VERSION,
    HANDSHAKE_VERSIONS,
    MAX_BATCH,
    PER_REQUEST_VERSIONS,
    STATUSES,
    VERSIONS,
    Code,
    negotiated,
)
from gate.encoding.strict_json import Json, JsonObject

PREFIX: Final = "io.modelcontextprotocol/"
"""The prefix of the fields of `_meta` that the protocol defines."""

_VERSION: Final = f"{PREFIX}protocolVersion"
_CAPABILITIES: Final = f"{PREFIX}clientCapabilities"
_CLIENT: Final = f"{PREFIX}clientInfo"
_SHOWN: Final = 80


@dataclass(frozen=True, slots=True)
class Refusal:
    """The refusal of a tool.

    Attributes:
        sentence: The reason, for a model to read.
        body: The error as an object.
    """

    sentence: str
    body: Mapping[str, object]


Call: TypeAlias = Callable[[Tool, JsonObject], Result | Refusal]


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer to a POST.

    Attributes:
        status: Its status.
        body: Its body; None without one.
        called: Whether every message in it called a tool, which checked the caller's key itself.
    """

    status: int
    body: bytes | None
    called: bool = False


def answer(server: Server, value: Json, head: Head, call: Call) -> Reply:
    """Answers a message, or a batch of messages if the version has batches.

    Args:
        server: The server that answers.
        value: The body's JSON value.
        head: The headers.
        call: Calls a tool with arguments; raises `ProtocolError` (INTERNAL) if the tool fails unexpectedly.
    """
    if not isinstance(value, list):
        return _Exchange(server, head, call).reply(value)
    if head.version not in (None, BATCH_VERSION):
        return refuse(Code.INVALID_REQUEST, "This version has no batches; send each message in a separate request.")
    if not 0 < len(value) <= MAX_BATCH:
        return refuse(Code.INVALID_REQUEST, f"A batch holds 1 to {MAX_BATCH} messages; split it.")
    exchange = _Exchange(server, head, call, is_batch=True)
    replies = [exchange.reply(message) for message in value]
    bodies = [orjson.Fragment(reply.body) for reply in replies if reply.body is not None]
    called = all(reply.called for reply in replies)
    return Reply(200, orjson.dumps(bodies), called) if bodies else Reply(202, None)


def refuse(code: Code, message: str) -> Reply:
    """The answer to a body that is not a message."""
    return Reply(STATUSES[False].get(code, 200), _error(ProtocolError(code, message)))


class _Exchange:
    """One POST and its answer."""

    def __init__(self, server: Server, head: Head, call: Call, *, is_batch: bool = False) -> None:
        self._server = server
        self._head = head
        self._call = call
        self._is_batch = is_batch

    def reply(self, message: Json) -> Reply:
        """Answers one message."""
        per_request = self._head.version in PER_REQUEST_VERSIONS
        request: Request | None = None
        try:
            request = read_message(message)
            if request is None:
                self._require_known_version()
                return Reply(202, None)
            per_request = self._is_per_request(request)
            result = self._result(request, per_request=per_request)
        except ProtocolError as error:
            if request is not None:
                error.id = request.id
            return Reply(STATUSES[per_request].get(error.code, 200), _error(error))
        if per_request:
            meta = {f"{PREFIX}serverInfo": self._server.info}
            result = {"resultType": "complete", **result, "_meta": meta}
        return Reply(200, _success(request.id, result), called=request.method == "tools/call")

    def _is_per_request(self, request: Request) -> bool:
        """Whether a request names its version itself, after its version was looked at.

        Raises:
            ProtocolError: The version is not served, or the headers contradict the message.
        """
        meta = request.params.get("_meta")
        claimed = meta.get(_VERSION) if isinstance(meta, dict) else None
        if claimed is None and self._head.version not in PER_REQUEST_VERSIONS:
            self._require_known_version()
            return False
        if not isinstance(meta, dict) or not isinstance(claimed, str):
            raise _invalid_params(f"params._meta must be an object with {_VERSION}; add it.")
        if claimed != self._head.version:
            raise _mismatch("MCP-Protocol-Version", f"_meta.{_VERSION}")
        self._require_known_version()
        if claimed in HANDSHAKE_VERSIONS:
            return False
        _require_client(meta)
        self._require_matching(request)
        return True

    def _require_known_version(self) -> None:
        sent = self._head.version
        if sent is not None and sent not in VERSIONS:
            raise ProtocolError(
                Code.UNSUPPORTED_VERSION,
                "This server does not support that version of the protocol; use one of data.supported.",
                data={"supported": list(VERSIONS), "requested": sent[:_SHOWN]},
            )

    def _require_matching(self, request: Request) -> None:
        """Requires that the headers repeat what the message says, for something between may have gone by them."""
        if self._head.method != request.method:
            raise _mismatch("Mcp-Method", "method")
        named = request.params.get("name")
        if request.method == "tools/call" and isinstance(named, str) and decoded(self._head.name) != named:
            raise _mismatch("Mcp-Name", "params.name")

    def _result(self, request: Request, *, per_request: bool) -> dict[str, object]:
        methods = _PER_REQUEST if per_request else _HANDSHAKE
        method = methods.get(request.method)
        if method is None:
            raise ProtocolError(
                Code.UNKNOWN_METHOD,
                f"This server has no method {_shown(request.method)}; it has {', '.join(methods)}.",
            )
        if self._is_batch and request.method == "initialize":
            raise ProtocolError(Code.INVALID_REQUEST, "initialize cannot be part of a batch; send it alone.")
        return method(self, request.params)

    def _initialize(self, params: JsonObject) -> dict[str, object]:
        asked = params.get("protocolVersion")
        if not isinstance(asked, str):
            raise _invalid_params("protocolVersion must be a string; send the newest version that you support.")
        return {
            "protocolVersion": negotiated(asked),
            "capabilities": _CAPABILITIES_OF_SERVER,
            "serverInfo": self._server.info,
            "instructions": self._server.instructions,
        }

    def _discover(self, _: JsonObject) -> dict[str, object]:
        return {
            "supportedVersions": VERSIONS,
            "capabilities": _CAPABILITIES_OF_SERVER,
            "instructions": self._server.instructions,
            **self._cacheable(),
        }

    def _ping(self, _: JsonObject) -> dict[str, object]:
        return {}

    def _list(self, params: JsonObject) -> dict[str, object]:
        _require_no_cursor(params)
        return {"tools": self._server.listed}

    def _list_to_keep(self, params: JsonObject) -> dict[str, object]:
        return self._list(params) | self._cacheable()

    def _cacheable(self) -> dict[str, object]:
        return {"ttlMs": TTL_MS, "cacheScope": self._server.cache_scope}

    def _call_tool(self, params: JsonObject) -> dict[str, object]:
        name, arguments = params.get("name"), params.get("arguments", {})
        if not isinstance(name, str):
            fault = "must be a string" if "name" in params else "is missing"
            raise _invalid_params(f"params.name {fault}; send the name of a tool from tools/list.")
        if (tool := self._server.by_name.get(name)) is None:
            raise _invalid_params(f"There is no tool {_shown(name)}; tools/list lists the tools.")
        if not isinstance(arguments, dict):
            raise _invalid_params("arguments must be an object; send one.")
        return _content(self._call(tool, arguments))


_CAPABILITIES_OF_SERVER: Final[Mapping[str, object]] = {"tools": {"listChanged": False}}

_Method: TypeAlias = Callable[[_Exchange, JsonObject], dict[str, object]]
_HANDSHAKE: Final[Mapping[str, _Method]] = {
    "initialize": _Exchange._initialize,
    "ping": _Exchange._ping,
    "tools/list": _Exchange._list,
    "tools/call": _Exchange._call_tool,
}
_PER_REQUEST: Final[Mapping[str, _Method]] = {
    "server/discover": _Exchange._discover,
    "tools/list": _Exchange._list_to_keep,
    "tools/call": _Exchange._call_tool,
}


def _content(found: Result | Refusal) -> dict[str, object]:
    """What a tool found, as text and as data, both of the same bytes."""
    if isinstance(found, Refusal):
        written = orjson.dumps(found.body)
        texts: Sequence[str] = [f"{found.sentence}\n{written.decode()}"]
    else:
        written = orjson.dumps(found.structured)
        texts = [written.decode(), *found.notes]
    return {
        "content": [{"type": "text", "text": text} for text in texts],
        "structuredContent": orjson.Fragment(written),
        "isError": isinstance(found, Refusal),
    }


def _require_client(meta: JsonObject) -> None:
    if not isinstance(meta.get(_CAPABILITIES), dict):
        raise _invalid_params(f"params._meta must contain {_CAPABILITIES}, an object; add it.")
    client = meta.get(_CLIENT)
    if client is None and _CLIENT not in meta:
        return
    named = isinstance(client, dict) and isinstance(client.get("name"), str) and isinstance(client.get("version"), str)
    if not named:
        raise _invalid_params(f"{_CLIENT} must be an object with name and version; correct it, or leave it out.")


def _require_no_cursor(params: JsonObject) -> None:
    if "cursor" in params:
        raise _invalid_params("This list has one page and no cursors; leave cursor out.")


def _invalid_params(message: str) -> ProtocolError:
    return ProtocolError(Code.INVALID_PARAMS, message)


def _mismatch(header: str, member: str) -> ProtocolError:
    return ProtocolError(
        Code.HEADER_MISMATCH, f"Header mismatch: {header} is missing, or differs from {member}; send the same value."
    )


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")


def _success(id_: Id, result: Mapping[str, object]) -> bytes:
    return orjson.dumps({"jsonrpc": "2.0", "id": id_, "result": result})


def _error(error: ProtocolError) -> bytes:
    body: dict[str, object] = {"code": int(error.code), "message": error.message}
    if error.data is not None:
        body["data"] = error.data
    return orjson.dumps({"jsonrpc": "2.0", "id": error.id, "error": body})
