"""The reference pages of the HTTP API: one for each tag, more for long tags, and the list of all endpoints."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from api.errors import codes
from docs.tools.reference.http import fields
from docs.tools.reference.http.families import target_of
from docs.tools.reference.http.operations import PARTS, Operation, document, operations
from docs.tools.reference.markdown import anchor, choice, code, example, fence, link, page, table

SOURCE: Final = "schemas/openapi.json"
WHO: Final = {
    "public": "anyone",
    "read": "a key with `read`",
    "decide": "a key with `decide`",
    "report": "a key with `report`",
    "resolve": "a key with `resolve`",
    "any": "any key of the scope",
    "metrics": "the metrics token",
}
EVERYWHERE: Final = frozenset({"SVC_INTERNAL_ERROR", "SVC_STORAGE_UNAVAILABLE"})
"""The error codes that every operation can answer; the index says so once."""
_EVERY_HEADER: Final = "x-request-id"
_FIRST: Final = (
    "Run the examples from the project root, against a service that you started with `make run`. Keep the order of the "
    "[list of endpoints](README.md): earlier examples save the ids that later ones read. Responses are shortened. Ids, "
    "hashes, and times differ."
)


def pages() -> dict[str, str]:
    """The page of each tag and of each part of one, and the index."""
    tags = [tag for tag in document()["tags"] if _of(tag["name"])]
    made = {f"api/{anchor(tag['name'])}.md": _tag(tag["name"], tag["description"]) for tag in tags}
    parts = {f"api/{part.page}": _page(part.title, part.about, _on(part.page)) for part in PARTS}
    return {"api/README.md": _index()} | made | parts


def linked(text: str, *, api: str = "", errors: str = "../errors/") -> str:
    """Text in which operations and error codes become links.

    Args:
        text: Markdown, with them as code.
        api: The folder of the API's pages, as its page sees it.
        errors: The folder of the error codes, likewise.
    """

    def replaced(found: re.Match[str]) -> str:
        named = found[1]
        if named in operations():
            return link(found[0], f"{api}{operations()[named].page}#{anchor(named)}")
        return link(found[0], f"{errors}{target_of(named)}") if named in codes() else found[0]

    return re.sub(r"`([^`\n]+)`", replaced, text)


def who(operation: Mapping[str, Any]) -> str:
    """Who may call an operation."""
    told = WHO[operation["x-access"]]
    return f"{told}, or anyone without a key" if {} in operation["security"] else told


def _of(tag: str) -> list[Operation]:
    return [each for each in operations().values() if each.tag == tag]


def _on(page_name: str) -> list[Operation]:
    return [each for each in operations().values() if each.page == page_name]


def _index() -> str:
    info = document()["info"]
    return page(
        "# HTTP API",
        "This page lists every endpoint, its callers, and the rules for all of them.",
        "## All endpoints",
        table(("method", "path", "callers", "summary"), map(_row, operations().values())),
        "## Rules for every endpoint",
        linked(info["description"]),
        "## Machine-readable",
        "A running service publishes this description at `/openapi.json` (OpenAPI 3.1), as a page at `/docs`, and in "
        "short at `/docs.json`. The fields of all bodies are under [JSON formats](../formats/README.md), and all error "
        "codes under [Error codes](../errors/README.md).",
    )


def _row(operation: Operation) -> tuple[str, str, str, str]:
    method, path = operation.key.split(" ")
    target = f"{operation.page}#{anchor(operation.key)}"
    return method, link(code(path), target), who(operation.written), operation.written["summary"]


def _tag(tag: str, description: str) -> str:
    own = _on(f"{anchor(tag)}.md")
    elsewhere = [each for each in _of(tag) if each not in own]
    if not own:
        return page(f"# {tag} API", linked(description), _listed(elsewhere))
    more = ("These endpoints have pages of their own:", _listed(elsewhere)) if elsewhere else ()
    return _page(f"{tag} API", description, own, *more)


def _listed(shown: list[Operation]) -> str:
    rows = ((link(code(each.key), f"{each.page}#{anchor(each.key)}"), each.written["summary"]) for each in shown)
    return table(("endpoint", "summary"), rows)


def _page(title: str, about: str, shown: list[Operation], *more: str) -> str:
    return page(
        f"# {title}",
        linked(about),
        *more,
        _FIRST,
        "[HTTP API](README.md) has the rules for all endpoints: keys, body sizes, retries. Every endpoint can also "
        f"return {choice([_error(code) for code in sorted(EVERYWHERE)])}.",
        "## Endpoints",
        *(block for each in shown for block in _operation(each)),
    )


def _operation(operation: Operation) -> Iterator[str]:
    written = operation.written
    yield f"### `{operation.key}`"
    yield f"{written['summary']}. Callers: {who(written)}."
    yield linked(written["description"])
    yield _parameters(written)
    yield from _request(written)
    yield _responses(operation)
    yield _inline(written)
    yield _headers(operation)
    yield from _samples(written)


def _parameters(written: Mapping[str, Any]) -> str:
    named = [_resolved(parameter) for parameter in written["parameters"]]
    rows = [
        (
            code(each["name"]),
            each["in"] + ("" if each["in"] == "path" or not each.get("required") else ", required"),
            fields.type_of(each["schema"]),
            linked(each["description"]),
        )
        for each in named
        if each["name"] != _EVERY_HEADER
    ]
    return table(("parameter", "in", "type", "meaning"), rows)


def _request(written: Mapping[str, Any]) -> Iterator[str]:
    if body := written.get("requestBody"):
        (media,) = body["content"].values()
        yield f"Request body: {_body(media['schema'])}. {linked(body['description'])}"


def _body(schema: Mapping[str, Any]) -> str:
    """What a JSON body is, with links to its formats."""
    if "$ref" in schema:
        file, _, pointer = schema["$ref"].partition("#")
        return link(fields.title_of(file, pointer), f"../formats/{fields.target_of(file, pointer)}")
    if "anyOf" in schema:
        return choice([_body(part) for part in schema["anyOf"]])
    return "JSON"


def _responses(operation: Operation) -> str:
    written = operation.written["responses"]
    rows = []
    for status, response in operation.published["responses"].items():
        if status in written:
            rows.append((status, _contents(written[status]), linked(written[status]["description"])))
        if named := [each for each in _failures(response) if each not in EVERYWHERE]:
            rows.append((status, link("Error", "../formats/error.md"), ", ".join(map(_error, named))))
    return table(("status", "body", "meaning"), rows)


def _inline(written: Mapping[str, Any]) -> str:
    """The fields of the answer, where it has no format of its own."""
    schemas = [media["schema"] for response in written["responses"].values() for media in _json(response)]
    rows = [
        (code(field.path), _on_page(field.type), "yes" if field.required else "no", linked(field.meaning))
        for schema in schemas
        if "properties" in schema
        for field in fields.fields_of(schema)
    ]
    return table(("response field", "type", "required", "meaning"), rows)


def _json(response: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if "application/json" in response.get("content", {}):
        yield response["content"]["application/json"]


def _on_page(text: str) -> str:
    """A type whose links lead from the pages of the formats, for a page of the API."""
    return text.replace("](", "](../formats/")


def _contents(response: Mapping[str, Any]) -> str:
    """The bodies of an answer, one for each media type; in a table."""
    bodies = [
        _body(media["schema"]) if media_type == "application/json" else code(media_type)
        for media_type, media in response.get("content", {}).items()
    ]
    return choice(bodies) if bodies else "none"


def _failures(response: Mapping[str, Any]) -> list[str]:
    """The error codes of an answer."""
    media = response.get("content", {}).get("application/json", {})
    return [name for name in media.get("examples", {}) if name in codes()]


def _error(name: str) -> str:
    return link(code(name), f"../errors/{target_of(name)}")


def _headers(operation: Operation) -> str:
    rows: dict[str, tuple[str, str]] = {}
    for response in operation.published["responses"].values():
        for name, header in response.get("headers", {}).items():
            if name != _EVERY_HEADER:
                rows.setdefault(name, (code(name), linked(_resolved(header)["description"])))
    return table(("response header", "meaning"), rows.values())


def _samples(written: Mapping[str, Any]) -> Iterator[str]:
    for sample in written["x-codeSamples"]:
        yield sample.get("label", "")
        yield fence("bash", sample["source"])
        answer = sample.get("x-sample-answer")
        if answer is not None:
            yield fence("text", answer) if isinstance(answer, str) else fence("json", example(answer))


def _resolved(node: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a parameter or header refers to, or itself."""
    found: Any = node
    if "$ref" in node:
        found = document()
        for step in node["$ref"].split("/")[1:]:
            found = found[step]
    return dict(found)
