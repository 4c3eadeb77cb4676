"""A server of the protocol over Flask: the answer to a POST at its address.

    @blueprint.post("/clock/api/mcp")
    def clock() -> Response:
        return answer(clock_server(), admit=lambda: require_client_rate("clock", 300))

Errors of the HTTP request get an error of `api.errors`, as everywhere in this service. Examples are a forbidden origin,
an unsupported media type, a body that is too large or not JSON, a missing key, and a limit. Errors of the message get
an error of the protocol.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from flask import Response, g, request

from api import errors
from api.http.requests import accepts, read_body
from api.http.state import state
from api.mcp import answers
from api.mcp.answers import Refusal, Reply
from api.mcp.headers import Head, is_allowed_origin
from api.mcp.messages import ProtocolError
from api.mcp.servers import Result, Server, Tool
from api.mcp.versions import Code
from gate.encoding.strict_json import JsonObject
from gate.errors import AccessForbidden, GateError, MaterialRefused, RequestRefused

NO_APPROVAL: Final = "This is an error, not an approval: do not act on it."
"""The beginning of the text of every refusal."""


def answer(server: Server, *, admit: Callable[[], object], confirm: Callable[[], object] = lambda: None) -> Response:
    """Answers the current request, a POST.

    Args:
        server: The server that answers.
        admit: Checks the caller before the body is read; raises `GateError` to refuse the caller.
        confirm: Checks the caller for certain before any answer other than a tool's; raises `GateError`.

    Raises:
        GateError: The server does not accept the HTTP request.
    """
    _require_allowed_origin()
    if not accepts("application/json"):
        raise RequestRefused(
            "SVC_API_NOT_ACCEPTABLE",
            "This endpoint answers only application/json; accept it in the header accept, or leave the header out.",
        )
    unreadable, sent = None, b""
    try:
        sent = read_body()
    except MaterialRefused as error:
        if error.code != "SVC_API_JSON_INVALID":
            raise
        unreadable = error
    admit()
    calls: list[dict[str, object]] = []
    reply = answers.refuse(Code.PARSE, unreadable.message) if unreadable else _reply(server, sent, calls)
    if not reply.called:
        confirm()
    if calls:
        g.observed = calls[0] if len(calls) == 1 else {"calls": calls}
    response = Response(reply.body or b"", reply.status, content_type="application/json")
    if reply.body is None:
        del response.headers["content-type"]
    return response


def _require_allowed_origin() -> None:
    origin = request.headers.get("origin")
    if origin is not None and not is_allowed_origin(origin, state().instance.settings.allowed_origins):
        raise AccessForbidden(
            "SVC_API_ORIGIN_FORBIDDEN",
            "Pages of this origin may not use this endpoint; the operator can add it to the setting allowed_origins.",
        )


def _reply(server: Server, sent: bytes, calls: list[dict[str, object]]) -> Reply:
    head = Head(
        request.headers.get("mcp-protocol-version"),
        request.headers.get("mcp-method"),
        request.headers.get("mcp-name"),
    )
    try:
        value = server.parse(sent)
    except MaterialRefused as error:
        return answers.refuse(Code.PARSE, error.message)

    def call(tool: Tool, arguments: JsonObject) -> Result | Refusal:
        try:
            found = _called(tool, arguments)
        finally:
            # What the log says of a call; a batch has several.
            calls.append({"tool": tool.name, **(g.pop("observed", None) or g.pop("refused", {}))})
        return found

    return answers.answer(server, value, head, call)


def _called(tool: Tool, arguments: JsonObject) -> Result | Refusal:
    try:
        return tool.call(arguments)
    except GateError as error:
        status, body = errors.described(error, decides=tool.decides)
        g.refused = g.error
        return Refusal(f"{NO_APPROVAL} {error.message}", {**body, "http_status": status})
    except Exception as error:
        message = errors.unexpected(error).message
        g.refused = g.error
        raise ProtocolError(Code.INTERNAL, message) from error
