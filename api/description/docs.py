"""The OpenAPI document as a summary (`summary`), and laid out for readers (`page`).

Pure: both are made from the document and the service's constants, so there is no second list of endpoints.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar, cast

from markupsafe import Markup, escape

from api.description import spec
from api.http.limits import PILOT_REQUESTS_PER_MINUTE
from api.http.requests import MAX_BODY, MAX_PILOT_BODY, MAX_SANDBOX_BODY, MAX_VERIFY_BODY
from gate.decisions.claims import MAX_IDEMPOTENCY_KEY
from gate.encoding.shapes import MAX_ERRORS
from gate.encoding.strict_json import (
    MAX_REQUEST_DEPTH,
    MAX_REQUEST_VALUES,
    MAX_SAFE_INTEGER,
    MAX_VALUES,
    MAX_VERIFY_DEPTH,
)
from gate.ledger.access.authority import PLANS
from gate.rulebooks.rulebook import MAX_CONDITION_DEPTH, MAX_CONDITION_NODES

_SCHEMA: Final = ".schema.json"
_HEADING: Final = "### "
OPENAPI_URL: Final = "/openapi.json"
DOCS_URL: Final = "/docs"

LIMITS: Final[Mapping[str, int]] = {
    "request_body_bytes": MAX_BODY,
    "verify_body_bytes": MAX_VERIFY_BODY,
    "sandbox_body_bytes": MAX_SANDBOX_BODY,
    "pilot_body_bytes": MAX_PILOT_BODY,
    "pilot_requests_per_minute": PILOT_REQUESTS_PER_MINUTE,
    "nesting": MAX_REQUEST_DEPTH,
    "verify_nesting": MAX_VERIFY_DEPTH,
    "commas_and_brackets": MAX_REQUEST_VALUES,
    "verify_commas_and_brackets": MAX_VALUES,
    "integer": MAX_SAFE_INTEGER,
    "idempotency_key_characters": MAX_IDEMPOTENCY_KEY,
    "rulebook_condition_nodes": MAX_CONDITION_NODES,
    "rulebook_condition_depth": MAX_CONDITION_DEPTH,
    "errors_listed": MAX_ERRORS,
}
"""The limits of the service: bytes, depths, and counts."""

_RATE_SCOPE: Final = (
    "A plan limits two things: POST /api/decide requests per key in a sliding minute, and new records per scope in a "
    "UTC month. Replays and refused requests create no record. Without a key, the service limits the requests of each "
    "address to the sandbox and to the intake of pilots; /api/runtime-config has both limits."
)
_RATE_HEADERS: Final = ("x-ratelimit-limit", "x-ratelimit-remaining", "x-usage-monthly-remaining", "retry-after")

_FORBIDDEN: Final = 403

# Longer than this, an example is sent from a file.
_INLINE_LINES: Final = 150
# What a bound counts, and the keywords of its two ends.
_BOUNDS: Final = (
    ("", "minimum", "maximum"),
    (" characters", "minLength", "maxLength"),
    (" items", "minItems", "maxItems"),
)


def summary(document: spec.Document, published: Iterable[str]) -> dict[str, object]:
    """The body of `/docs.json`.

    Args:
        document: The OpenAPI document.
        published: The paths of the published contract.
    """
    return {
        "ok": True,
        "interface_version": document["info"]["version"],
        "openapi_url": OPENAPI_URL,
        "docs_url": DOCS_URL,
        "endpoints": [
            {
                "method": method.upper(),
                "path": path,
                "summary": operation["summary"],
                "auth": _auth(operation),
                "access": operation["x-access"],
                "rate_limited": operation.get("x-rate-limited", False),
                "statuses": sorted(int(status) for status in operation["responses"]),
            }
            for path, method, operation in _operations(document)
        ],
        "schemas": [
            {"name": url.removeprefix("/schemas/").removesuffix(_SCHEMA), "url": url}
            for url in published
            if url.endswith(_SCHEMA)
        ],
        "rate_limits": {
            "scope": _RATE_SCOPE,
            "headers": list(_RATE_HEADERS),
            "plans": [
                {
                    "plan": name,
                    "requests_per_minute": plan.requests_per_minute,
                    "records_per_month": plan.records_per_month,
                }
                for name, plan in PLANS.items()
            ],
        },
        "limits": dict(LIMITS),
    }


@dataclass(frozen=True, slots=True)
class Member:
    """A field of an object, a parameter, or a header, as a row of a table.

    Attributes:
        name: Its name.
        type: Its type, with links to its components.
        required: Whether it is always present.
        description: Its description.
        marks: Its bounds and default.
        members: The fields of an object without its own name.
        place: The place of a parameter: `header`, `path`, or `query`.
    """

    name: str
    type: Markup
    required: bool
    description: Markup
    marks: tuple[Markup, ...] = ()
    members: tuple[Member, ...] = ()
    place: str = ""


@dataclass(frozen=True, slots=True)
class Schema:
    """The fields of an object under its name, or only `type` for other values."""

    name: str
    anchor: str
    type: Markup
    description: Markup
    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class Example:
    """An example body."""

    title: str
    json: Markup


@dataclass(frozen=True, slots=True)
class Body:
    """The body of a request or a response in one media type."""

    media_type: str
    schemas: tuple[Schema, ...]
    examples: tuple[Example, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """A response without an error."""

    status: str
    description: Markup
    headers: tuple[Member, ...]
    bodies: tuple[Body, ...]


@dataclass(frozen=True, slots=True)
class Failure:
    """An error code of an operation."""

    status: str
    code: str
    meaning: Markup
    action: Markup
    example: Markup


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path."""

    id: str
    method: str
    path: str
    auth: str
    access: str
    rate_limited: bool
    summary: str
    description: Markup
    parameters: tuple[Member, ...]
    request: Body | None
    request_note: Markup
    request_required: bool
    curl: str
    answers: tuple[Answer, ...]
    failures: tuple[Failure, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """The operations of one tag."""

    name: str
    anchor: str
    description: str
    operations: tuple[Operation, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """The whole document, laid out."""

    title: str
    version: str
    tagline: str
    description: Markup
    base_url: str
    groups: tuple[Group, ...]
    schemas: tuple[Schema, ...]
    errors: tuple[Failure, ...]
    decide: Operation


def page(document: spec.Document) -> Page:
    """The OpenAPI document, laid out for the template."""
    layout = _Layout(document)
    info = document["info"]
    operations = [
        (operation["tags"][0], layout.operation(path, method, operation))
        for path, method, operation in _operations(document)
    ]
    groups = tuple(
        Group(
            name=tag["name"],
            anchor=_anchor("tag", tag["name"]),
            description=tag["description"],
            operations=tuple(operation for named, operation in operations if named == tag["name"]),
        )
        for tag in document["tags"]
    )
    return Page(
        title=info["title"],
        version=info["version"],
        tagline=info["summary"],
        description=prose(info["description"]),
        base_url=layout.base_url,
        groups=tuple(group for group in groups if group.operations),
        schemas=tuple(layout.component(name, schema) for name, schema in document["components"]["schemas"].items()),
        errors=tuple(layout.failures()),
        decide=next(operation for _, operation in operations if operation.id == "decide"),
    )


def prose(text: str) -> Markup:
    """Text as HTML: paragraphs at blank lines, headings after `###`, `code` in backticks, everything else escaped."""
    return Markup().join(map(_block, text.split("\n\n")))


def _block(text: str) -> Markup:
    if text.startswith(_HEADING):
        return Markup("<h3>{}</h3>").format(inline(text.removeprefix(_HEADING)))
    return Markup("<p>{}</p>").format(inline(text))


def inline(text: str) -> Markup:
    """A sentence as HTML: `code` in backticks, everything else escaped."""
    plain_and_code = text.split("`")
    return Markup().join(
        Markup("<code>{}</code>").format(piece) if index % 2 else escape(piece)
        for index, piece in enumerate(plain_and_code)
    )


def pretty(value: object) -> Markup:
    """A JSON value as HTML, indented, its tokens marked for the style."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return Markup().join(_token(found) for found in _TOKEN.finditer(text))


_TOKEN: Final = re.compile(
    r'(?P<key>"(?:[^"\\]|\\.)*")(?=:)|(?P<string>"(?:[^"\\]|\\.)*")|(?P<word>-?\d[\d.eE+-]*|true|false|null)'
    r"|(?P<rest>[^\"\d\-tfn]+|.)"
)


def _token(found: re.Match[str]) -> Markup:
    kind, text = found.lastgroup, found.group()
    return escape(text) if kind == "rest" else Markup('<span class="{}">{}</span>').format(kind, text)


_Node = TypeVar("_Node", spec.Schema, spec.Parameter, spec.Header)


class _Layout:
    """Lays out the parts of one document."""

    def __init__(self, document: spec.Document) -> None:
        self._document = document
        self._catalogue = document["x-error-codes"]
        self.base_url = document["servers"][0]["url"]

    def operation(self, path: str, method: str, operation: spec.Operation) -> Operation:
        """One operation."""
        request = operation.get("requestBody")
        parameters = [self._resolved(parameter) for parameter in operation["parameters"]]
        return Operation(
            id=operation["operationId"],
            method=method.upper(),
            path=path,
            auth=_auth(operation),
            access=operation["x-access"],
            rate_limited=operation.get("x-rate-limited", False),
            summary=operation["summary"],
            description=prose(operation["description"]),
            parameters=tuple(self._parameter(parameter) for parameter in parameters),
            request=self._bodies(request["content"])[0] if request else None,
            request_note=inline(request["description"]) if request else Markup(),
            request_required=bool(request and request["required"]),
            curl=self._curl(path, method, operation, parameters),
            answers=tuple(self._answers(operation)),
            failures=tuple(self._failures(operation)),
        )

    def component(self, name: str, schema: spec.Schema) -> Schema:
        """A named schema."""
        return Schema(
            name=name,
            anchor=_anchor("schema", name),
            type=self._type(schema),
            description=inline(schema.get("description", "")),
            members=tuple(self._members(schema)),
        )

    def failures(self) -> Iterator[Failure]:
        """Every error code, in general; those of keys also as they refuse a key that may not."""
        for code, entry in self._catalogue.items():
            yield _failure(entry["status"], code, entry)
            if "forbidden" in entry:
                yield _failure(_FORBIDDEN, code, {**entry, **entry["forbidden"]})

    def _failures(self, operation: spec.Operation) -> Iterator[Failure]:
        for status, response in operation["responses"].items():
            for content in response.get("content", {}).values():
                for code, example in content.get("examples", {}).items():
                    if code in self._catalogue:
                        meaning, action = inline(example["description"]), inline(example["summary"])
                        yield Failure(status, code, meaning, action, pretty(example["value"]))

    def _answers(self, operation: spec.Operation) -> Iterator[Answer]:
        for status, response in operation["responses"].items():
            bodies = self._bodies(response.get("content", {}))
            if any(not body.examples and body.schemas and body.schemas[0].name == "Error" for body in bodies):
                continue
            headers = {name: self._resolved(header) for name, header in response["headers"].items()}
            yield Answer(
                status=status,
                description=inline(response["description"].split("\n\n")[0]),
                headers=tuple(self._member(name, header, required=False) for name, header in headers.items()),
                bodies=bodies,
            )

    def _bodies(self, content: Mapping[str, spec.MediaType]) -> tuple[Body, ...]:
        """The bodies that an answer may have, one a media type; a request has one."""
        return tuple(self._body(media_type, media) for media_type, media in content.items())

    def _body(self, media_type: str, media: spec.MediaType) -> Body:
        schema = media["schema"]
        parts = self._resolved(schema).get("anyOf", [schema])
        return Body(
            media_type=media_type,
            schemas=tuple(self._part(part) for part in parts),
            examples=tuple(
                Example(example["summary"], pretty(example["value"]))
                for name, example in media.get("examples", {}).items()
                if name not in self._catalogue
            ),
        )

    def _part(self, schema: spec.Schema) -> Schema:
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            return self.component(name, self._document["components"]["schemas"][name])
        return self.component("", schema)

    def _parameter(self, parameter: spec.Parameter) -> Member:
        return self._member(
            parameter["name"], parameter, required=parameter.get("required", False), place=parameter["in"]
        )

    def _members(self, schema: spec.Schema) -> Iterator[Member]:
        required = schema.get("required", [])
        for name, member in schema.get("properties", {}).items():
            if member is not False:
                holder: spec.Header = {"schema": {} if member is True else member}
                yield self._member(name, holder, required=name in required)

    def _member(self, name: str, holder: spec.Parameter | spec.Header, *, required: bool, place: str = "") -> Member:
        schema = holder["schema"]
        return Member(
            name=name,
            type=self._type(schema),
            required=required,
            description=inline(holder.get("description") or self._described(schema)),
            marks=tuple(_marks(schema)),
            members=tuple(self._members(_innermost(schema))),
            place=place,
        )

    def _described(self, schema: spec.Schema) -> str:
        return str(schema.get("description") or self._resolved(schema).get("description", ""))

    def _type(self, schema: spec.Schema) -> Markup:
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            named = self._resolved(schema)
            if "enum" in named:
                return self._type(named)
            return Markup('<a href="#{}">{}</a>').format(_anchor("schema", name), name)
        if "const" in schema:
            return Markup("<code>{}</code>").format(json.dumps(schema["const"]))
        if "enum" in schema:
            return Markup(" | ").join(Markup("<code>{}</code>").format(value) for value in schema["enum"])
        if "anyOf" in schema:
            return Markup(" or ").join(self._type(part) for part in schema["anyOf"])
        kinds = schema.get("type", "any")
        text = kinds if isinstance(kinds, str) else " or ".join(kinds)
        if text == "array" and "items" in schema:
            return Markup("array of {}").format(self._type(schema["items"]))
        return escape(text)

    def _resolved(self, node: _Node) -> _Node:
        """What a node refers to, or itself; a reference leads to what is of its kind."""
        if (reference := node.get("$ref")) is None:
            return node
        found: object = self._document
        for step in reference.split("/")[1:]:
            found = cast("Mapping[str, object]", found)[step]
        return cast("_Node", found)

    def _curl(self, path: str, method: str, operation: spec.Operation, parameters: Sequence[spec.Parameter]) -> str:
        for parameter in parameters:
            if parameter["in"] == "path":
                path = path.replace(f"{{{parameter['name']}}}", parameter["example"])
        query = "&".join(
            f"{parameter['name']}={parameter['example']}"
            for parameter in parameters
            if parameter["in"] == "query" and "example" in parameter
        )
        url = f"{self.base_url}{path}"
        lines = [f"curl -sS '{url}?{query}'" if query else f"curl -sS {url}"]
        if _auth(operation) in ("key", "optional key"):
            lines.append('-H "x-api-key: $GATE_API_KEY"')
        elif _auth(operation) == "metrics token":
            lines.append('-H "x-metrics-token: $GATE_METRICS_TOKEN"')
        after = ""
        if method == "post":
            media = operation["requestBody"]["content"]["application/json"]
            example = next(iter(media["examples"].values()))["value"]
            body = json.dumps(example, indent=2, ensure_ascii=False)
            if operation.get("x-rate-limited"):
                lines.append("-H 'x-idempotency-key: order-1'")
            lines.append("-H 'content-type: application/json'")
            if body.count("\n") > _INLINE_LINES:
                lines.append("--data-binary @request.json")
            else:
                lines.append("--data-binary @- <<'JSON'")
                after = f"\n{body}\nJSON"
        return " \\\n  ".join(lines) + after


def _failure(status: int, code: str, entry: spec.ErrorCode) -> Failure:
    meaning, action = inline(entry["meaning"]), inline(entry["action"])
    return Failure(str(status), code, meaning, action, pretty(entry["example"]))


def _operations(document: spec.Document) -> Iterator[tuple[str, str, spec.Operation]]:
    for path, item in document["paths"].items():
        for method, operation in item.items():
            yield path, method, operation


def _auth(operation: spec.Operation) -> str:
    needed = {name for requirement in operation["security"] for name in requirement}
    if {} in operation["security"]:
        return "optional key"
    return "key" if "apiKey" in needed else "metrics token" if "metricsToken" in needed else "public"


def _innermost(schema: spec.Schema) -> spec.Schema:
    """The object of whose members a member's table tells: its own, or that of its array's items."""
    while "items" in schema:
        schema = schema["items"]
    return schema


def _marks(schema: spec.Schema) -> Iterator[Markup]:
    for counted, lowest, highest in _BOUNDS:
        low, high = schema.get(lowest), schema.get(highest)
        if counted and low == 1 and high is None:
            yield Markup("not empty")
        elif low is not None and high is not None:
            yield Markup("{} to {}{}").format(low, high, counted)
        elif low is not None:
            yield Markup("at least {}{}").format(low, counted)
        elif high is not None:
            yield Markup("at most {}{}").format(high, counted)
    if "pattern" in schema:
        yield Markup("matches <code>{}</code>").format(schema["pattern"])
    if "default" in schema:
        yield Markup("default <code>{}</code>").format(_plain(schema["default"]))


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _anchor(kind: str, name: str) -> str:
    return f"{kind}-{re.sub('[^A-Za-z0-9]+', '-', name).strip('-').lower()}"
