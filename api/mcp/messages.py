"""Reads a JSON value as a message of JSON-RPC 2.0, with the restrictions of the protocol.

A message with a method and an id is a request, and gets an answer. A message without an id is a notification, and gets
none. The id of a request is a string or an integer within 2^53-1, and the answer repeats it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

from api.mcp.versions import Code
from gate.encoding.strict_json import MAX_SAFE_INTEGER, Json, JsonObject

Id: TypeAlias = str | int

_ABSENT: Final = object()


class ProtocolError(Exception):
    """A message that gets an error as its answer.

    Attributes:
        code: The error's code.
        message: The fault, its place, and the correction.
        data: More about it, as the protocol defines for the code.
        id: The id of the request; None without an id that can be repeated.
    """

    def __init__(self, code: Code, message: str, *, data: JsonObject | None = None, id_: Id | None = None) -> None:
        """Takes the attributes."""
        super().__init__(message)
        self.code: Final = code
        self.message: Final = message
        self.data: Final = data
        self.id = id_


@dataclass(frozen=True, slots=True)
class Request:
    """A message that is answered.

    Attributes:
        id: Its id.
        method: Its method.
        params: Its parameters; `{}` without any.
    """

    id: Id
    method: str
    params: JsonObject


def read_message(value: Json) -> Request | None:
    """Reads a message; None for a notification or a response, which get no answer.

    Raises:
        ProtocolError: `INVALID_REQUEST`, or `INVALID_PARAMS` if `params` is not an object.
    """
    if not isinstance(value, dict):
        raise ProtocolError(Code.INVALID_REQUEST, "A message is a JSON object; send one.")
    if value.get("jsonrpc") != "2.0":
        raise _invalid("The message has no field jsonrpc with the value 2.0; add it.", value)
    if "method" not in value and ("result" in value or "error" in value):
        return None
    method = value.get("method")
    if not isinstance(method, str):
        raise _invalid("The message has no method, or it is not a string; send the method's name.", value)
    if "id" not in value:
        return None
    id_ = _id(value)
    if id_ is None:
        raise _invalid("The id must be a string or an integer within 2^53-1; leave it out in a notification.", value)
    params = value.get("params", _ABSENT)
    if params is _ABSENT:
        return Request(id_, method, {})
    if not isinstance(params, dict):
        raise ProtocolError(
            Code.INVALID_PARAMS, "The params must be an object; send one, or leave params out.", id_=id_
        )
    return Request(id_, method, params)


def _invalid(message: str, value: JsonObject) -> ProtocolError:
    return ProtocolError(Code.INVALID_REQUEST, message, id_=_id(value))


def _id(value: JsonObject) -> Id | None:
    sent = value.get("id")
    if isinstance(sent, str):
        return sent
    if not isinstance(sent, int) or isinstance(sent, bool):
        return None
    return sent if abs(sent) <= MAX_SAFE_INTEGER else None
