"""Assembles the OpenAPI document from the files in `schemas/`.

`schemas/openapi.json` is written by hand. It has the name, parameters, and responses of each operation, and relative
references such as `decision-record-v1.schema.json#/$defs/full` or `examples/decide-request.json`. Generators of clients
need one document, with flat, named components. So this module replaces references:

    examples/...json                             the example itself
    chain.schema.json, titled "Audit chain"      #/components/schemas/AuditChain
    chain.schema.json#/$defs/link                #/components/schemas/AuditChainLink
    chain.schema.json#/$defs/hash                the definition itself, because it is a plain string

Each operation's `x-error-codes` become its error responses. The schemas stay the single source.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from api.description.spec import Document, ErrorCode, Header, MediaType, Operation, Response, Schema
from api.errors import DECIDE_PATHS
from gate.encoding.strict_json import Json, JsonObject

Read = Callable[[str], Any]
"""Returns the JSON value of a file, by its path within `schemas/`. The caller states its type."""

_SKELETON: Final = "openapi.json"
_ERROR: Final = "error.schema.json"

# What tells a definition that deserves a name from a plain string, number, list or open object.
_STRUCTURE: Final = frozenset({"properties", "enum", "if", "allOf", "anyOf", "oneOf"})
_ANNOTATIONS: Final = frozenset({"$schema", "$id", "$defs", "$comment", "title", "description"})
# The code samples are those of the reference pages: they call the demo instance. /docs makes its own for each instance.
_DROPPED: Final = frozenset({"$schema", "$id", "$defs", "$comment", "x-codeSamples"})

_KEY: Final[Mapping[str, list[str]]] = {"apiKey": []}
_TOKEN: Final[Mapping[str, list[str]]] = {"metricsToken": []}
_FORBIDDEN: Final = 403
_HEADERS: Final[Mapping[int, tuple[str, ...]]] = {
    429: ("retry-after", "x-ratelimit-limit", "x-ratelimit-remaining", "x-usage-monthly-remaining")
}


def assemble(read: Read, codes: Mapping[str, tuple[int, str]], *, base_url: str) -> Document:
    """The OpenAPI 3.1 document without external references.

    Args:
        read: Returns the files of `schemas/`.
        codes: Each error code with its status and the word for `v` in the error.
        base_url: Where callers reach the service, without a trailing slash.

    Raises:
        KeyError: A reference leads nowhere, or an operation has an unknown error code.
        ValueError: Two definitions would have the same name.
    """
    skeleton: JsonObject = read(_SKELETON)
    components = Components(read, cast("Mapping[str, Mapping[str, JsonObject]]", skeleton["x-members"]))
    written = {name: value for name, value in skeleton.items() if name != "x-members"}
    document = cast("Document", components.rewrite(written, _SKELETON))
    document["servers"] = [{"url": base_url, "description": "This instance."}]
    catalogue = document["x-error-codes"]
    errors = _Errors(codes, catalogue, components.reference(_ERROR, ""))
    for path, item in document["paths"].items():
        for operation in item.values():
            operation["responses"] = errors.responses(path, operation)
            for response in operation["responses"].values():
                # First in every answer; one that describes it keeps its own words.
                response["headers"] = {"x-request-id": _header("x-request-id"), **response.get("headers", {})}
    document["x-error-codes"] = {code: _with_status(codes[code], entry) for code, entry in catalogue.items()}
    document["components"]["schemas"] = cast("dict[str, Schema]", dict(sorted(components.schemas.items())))
    return document


def _with_status(known: tuple[int, str], entry: ErrorCode) -> ErrorCode:
    status, word = known
    first: JsonObject = {"status": status, "v": word}
    return cast("ErrorCode", {**first, **entry})


class Components:
    """The named schemas that a document refers to, collected while it is rewritten.

    Attributes:
        schemas: Each schema by its name.
        sources: The file and JSON pointer that each name was given to.
    """

    def __init__(self, read: Read, members: Mapping[str, Mapping[str, JsonObject]]) -> None:
        """Begins without any.

        Args:
            read: Gives the files.
            members: What to add to the members of a component: {component: {dotted path of a member: keywords}};
                a step `*` leads to what additional members are, and no path to the component itself.
        """
        self.schemas: JsonObject = {}
        self._read = read
        self._members = members
        self.sources: dict[str, tuple[str, str]] = {}

    def rewrite(self, node: Json, file: str) -> Json:
        """A copy of a value of `file`, its references led into the document."""
        if isinstance(node, list):
            return [self.rewrite(item, file) for item in node]
        return self._rewritten(node, file) if isinstance(node, dict) else node

    def _rewritten(self, node: JsonObject, file: str) -> JsonObject:
        if isinstance(target := node.get("$ref"), str) and not target.startswith("#/components/"):
            beside = {name: value for name, value in node.items() if name != "$ref"}
            return self._resolve(target, file) | self._rewritten(beside, file)
        return {name: self.rewrite(value, file) for name, value in node.items() if name not in _DROPPED}

    def reference(self, file: str, pointer: str) -> str:
        """The reference to the component of a definition, which is added where it is new."""
        name = self._name(file, pointer)
        source = self.sources.setdefault(name, (file, pointer))
        if source != (file, pointer):
            raise ValueError(f"{source} and {(file, pointer)} would both be the component {name}; rename one of them.")
        if name not in self.schemas:
            # Present before it is complete, so that a definition may refer to itself.
            self.schemas[name] = {}
            self.schemas[name] = self._enriched(name, self._rewritten(_at(self._read(file), pointer), file))
        return f"#/components/schemas/{name}"

    def _resolve(self, target: str, file: str) -> JsonObject:
        named, _, pointer = target.partition("#")
        file = named or file
        if not file.endswith(".schema.json"):
            return dict(self._read(file))
        while set(node := _at(self._read(file), pointer)) - (_ANNOTATIONS if not pointer else set()) == {"$ref"}:
            pointer = str(node["$ref"]).removeprefix("#")
        if pointer and not _STRUCTURE & node.keys():
            return self._rewritten(node, file)
        return {"$ref": self.reference(file, pointer)}

    def _name(self, file: str, pointer: str) -> str:
        root: Schema = self._read(file)
        title = _pascal(root["title"])
        if not pointer or root.get("$ref") == f"#{pointer}":
            return title
        return title + _pascal(pointer.rpartition("/")[2])

    def _enriched(self, name: str, schema: JsonObject) -> JsonObject:
        for path, keywords in self._members.get(name, {}).items():
            if not path:
                schema = keywords | schema
                continue
            node = schema
            *outer, last = path.split(".")
            for step in outer:
                node = _object(node["additionalProperties"] if step == "*" else _object(node["properties"])[step])
            members = _object(node.setdefault("properties", {}))
            known = _object(members.get(last, {}))
            # A schema of its own replaces all but the member's description.
            kept = {"description"} & known.keys() if {"$ref", "anyOf"} & keywords.keys() else known.keys()
            members[last] = self._rewritten(keywords, _SKELETON) | {keyword: known[keyword] for keyword in kept}
        return schema


class _Errors:
    """The error responses of operations."""

    def __init__(self, codes: Mapping[str, tuple[int, str]], catalogue: Mapping[str, ErrorCode], schema: str) -> None:
        self._codes = codes
        self._catalogue = catalogue
        self._schema = schema

    def responses(self, path: str, operation: Operation) -> dict[str, Response]:
        """The responses of an operation with those of its error codes, by status."""
        responses = dict(operation["responses"])
        for status, named in self._by_status(operation).items():
            answer = self._response(path, operation, status, named)
            responses[str(status)] = _either(responses[str(status)], answer) if str(status) in responses else answer
        return dict(sorted(responses.items()))

    def _by_status(self, operation: Operation) -> dict[int, list[str]]:
        """The codes of each status; a known key that may not do this is refused with 403 under the code of 401."""
        found: dict[int, list[str]] = {}
        for code in operation["x-error-codes"]:
            found.setdefault(self._codes[code][0], []).append(code)
            if _KEY in operation["security"] and "forbidden" in self._catalogue[code]:
                found.setdefault(_FORBIDDEN, []).append(code)
        return found

    def _response(self, path: str, operation: Operation, status: int, named: list[str]) -> Response:
        entries = {code: self._entry(code, operation, status) for code in named}
        decides: JsonObject = {"c": "unclear"} if path in DECIDE_PATHS else {}
        response: Response = {
            "description": "\n\n".join(f"`{code}`: {entry['meaning']}" for code, entry in entries.items()),
            "content": {
                "application/json": {
                    "schema": {"$ref": self._schema},
                    "examples": {
                        code: {
                            "summary": entry["action"],
                            "description": entry["meaning"],
                            "value": decides | entry["example"],
                        }
                        for code, entry in entries.items()
                    },
                }
            },
        }
        names = list(_HEADERS.get(status, ()))
        if any("retry_after" in entry["example"] for entry in entries.values()) and "retry-after" not in names:
            names.append("retry-after")
        if names:
            response["headers"] = {name: _header(name) for name in names}
        return response

    def _entry(self, code: str, operation: Operation, status: int) -> ErrorCode:
        """What the catalogue says of a code: of a key that may not, of a token, of an address, or in general."""
        entry = self._catalogue[code]
        if status == _FORBIDDEN:
            return {**entry, **entry.get("forbidden", {})}
        if _TOKEN in operation["security"]:
            return {**entry, **entry.get("token", {})}
        if not operation["security"]:
            return {**entry, **entry.get("address", {})}
        return entry


def _either(first: Response, second: Response) -> Response:
    """A response that is one of two JSON answers of the same status."""
    (one,), (other,) = (list(response["content"].values()) for response in (first, second))
    both: MediaType = {
        "schema": {"anyOf": [one["schema"], other["schema"]]},
        "examples": one.get("examples", {}) | other["examples"],
    }
    return {
        **first,
        "description": f"{first['description']}\n\n{second['description']}",
        "content": {"application/json": both},
    }


def _header(name: str) -> Header:
    return {"$ref": f"#/components/headers/{name}"}


def _at(document: JsonObject, pointer: str) -> JsonObject:
    """The object that stands at a JSON pointer."""
    for step in pointer.split("/")[1:]:
        document = _object(document[step])
    return document


def _object(value: Json) -> JsonObject:
    # The files are the product's own: they have an object wherever one is expected.
    return cast("JsonObject", value)


def _pascal(words: str) -> str:
    return "".join(word[:1].upper() + word[1:] for word in words.replace("-", " ").replace("_", " ").split())
