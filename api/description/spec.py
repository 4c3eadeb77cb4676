"""The types of the parts of the OpenAPI document that this package reads.

They describe the document in `schemas/`, as the contract's tests check it. Other documents may differ. Some types are
written as calls, because a field has the name `in` or `$ref`, or a dash in its name.
"""

from __future__ import annotations

from typing import NotRequired, TypedDict

from gate.encoding.strict_json import Json, JsonObject

Schema = TypedDict(
    "Schema",
    {
        "$ref": str,
        "title": str,
        "description": str,
        "type": str | list[str],
        "enum": list[Json],
        "const": Json,
        "format": str,
        "pattern": str,
        "default": Json,
        "properties": dict[str, "Schema | bool"],
        "required": list[str],
        "additionalProperties": "bool | Schema",
        "items": "Schema",
        "anyOf": list["Schema"],
        "allOf": list["Schema"],
        "then": "Schema",
        "else": "Schema",
    },
    total=False,
)
"""A JSON Schema. The schema of a field with any value is `true`, and of a forbidden field `false`."""


class Example(TypedDict):
    """An example of a body."""

    summary: str
    description: NotRequired[str]
    value: JsonObject


class MediaType(TypedDict):
    """A body of one media type."""

    schema: Schema
    examples: NotRequired[dict[str, Example]]


Header = TypedDict("Header", {"$ref": str, "description": str, "schema": Schema}, total=False)
"""A header of an answer, or a reference to one."""

Parameter = TypedDict(
    "Parameter",
    {
        "$ref": str,
        "name": str,
        "in": str,
        "required": bool,
        "description": str,
        "schema": Schema,
        "example": str,
    },
    total=False,
)
"""A parameter, or a reference to one."""


class RequestBody(TypedDict):
    """The body of a request."""

    description: str
    required: bool
    content: dict[str, MediaType]


class Response(TypedDict):
    """An answer."""

    description: str
    headers: NotRequired[dict[str, Header]]
    content: NotRequired[dict[str, MediaType]]


Operation = TypedDict(
    "Operation",
    {
        "operationId": str,
        "tags": list[str],
        "summary": str,
        "description": str,
        "parameters": list[Parameter],
        "requestBody": NotRequired[RequestBody],
        "responses": dict[str, Response],
        "security": list[dict[str, list[str]]],
        "x-access": str,
        "x-error-codes": list[str],
        "x-rate-limited": NotRequired[bool],
        "x-client": NotRequired[bool],
    },
)
"""One method of one path."""


class Wording(TypedDict, total=False):
    """The meaning of an error code in a special case: a key without the access, or a token."""

    meaning: str
    action: str
    example: JsonObject


class ErrorCode(TypedDict):
    """An entry of the catalog of error codes. Its status and `v` come from the table of errors."""

    meaning: str
    action: str
    example: JsonObject
    forbidden: NotRequired[Wording]
    token: NotRequired[Wording]
    address: NotRequired[Wording]
    status: NotRequired[int]
    v: NotRequired[str]


class Info(TypedDict):
    """The title, version, and description of the document."""

    title: str
    version: str
    summary: str
    description: str


class Tag(TypedDict):
    """A group of operations."""

    name: str
    description: str


class Server(TypedDict):
    """Where callers reach the service."""

    url: str
    description: str


class Components(TypedDict):
    """The components that the rest of the document refers to."""

    schemas: dict[str, Schema]
    parameters: dict[str, Parameter]
    headers: dict[str, Header]


Document = TypedDict(
    "Document",
    {
        "openapi": str,
        "info": Info,
        "servers": list[Server],
        "tags": list[Tag],
        "paths": dict[str, dict[str, Operation]],
        "components": Components,
        "x-error-codes": dict[str, ErrorCode],
    },
)
"""An OpenAPI 3.1 document."""
