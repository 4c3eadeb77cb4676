"""The reference pages of the JSON documents: the fields of each, from its schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

from docs.tools.reference import fields
from docs.tools.reference.api import linked
from docs.tools.reference.fields import Format, Table
from docs.tools.reference.markdown import anchor, choice, code, example, fence, link, page, shortened, table
from docs.tools.reference.operations import operations

SOURCE: Final = "schemas/*.schema.json"
_EXAMPLES: Final = {"rulebook-migration-v1": "examples/rulebook-migration.json"}
"""Examples of documents that no operation takes or answers."""
_GROUPS: Final = ("Requests", "Responses", "Files and other documents")


def pages() -> dict[str, str]:
    """The page of each format, and their index."""
    made = {f"formats/{each.name}.md": _page(each) for each in fields.formats()}
    return {"formats/README.md": _index()} | made


def _index() -> str:
    groups: dict[str, list[Format]] = {group: [] for group in _GROUPS}
    for each in fields.formats():
        groups[_group(each.name)].append(each)
    listed = [
        block
        for group, found in groups.items()
        for block in (f"## {group}", table(("format", "description"), map(_listed, found)))
    ]
    return page(
        "# JSON formats",
        "These pages list the fields of every JSON document that Decision Gate takes, returns, or stores. "
        "Each page comes from the JSON Schema that the service publishes at `/schemas/`.",
        "In the tables, `a.b` is field `b` of the object `a`, `a[].b` is that field in each item of the array `a`, and "
        "`*` is any name. A field that is not required can be absent. Later releases may add fields to responses: "
        "ignore fields that you do not know.",
        *listed,
    )


def _listed(each: Format) -> tuple[str, str]:
    first, _, rest = each.tables[0].meaning.partition(". ")
    return link(each.title, f"{each.name}.md"), linked(f"{first}." if rest else first, api="../api/")


def _group(name: str) -> str:
    found = {place for _, place in _uses().get(f"{name}.schema.json", ())}
    if "request" in found:
        return _GROUPS[0]
    return _GROUPS[1] if found else _GROUPS[2]


def _page(each: Format) -> str:
    first, *others = each.tables
    return page(
        f"# {each.title}",
        linked(first.meaning, api="../api/"),
        _used(each.name),
        f"Schema: [`{each.name}.schema.json`](../../../schemas/{each.name}.schema.json).",
        "## Fields" if first.fields else "",
        _fields(first),
        *(
            block
            for other in others
            for block in (f"## {other.name}", linked(other.meaning, api="../api/"), _fields(other))
        ),
        *_example(each.name),
    )


def _fields(shown: Table) -> str:
    rows = [(code(field.path), field.type, "yes" if field.required else "no", field.meaning) for field in shown.fields]
    also = choice([link(code(name), f"#{name}") for name in shown.also], "and") if shown.also else ""
    closed = "Other fields are rejected." if shown.closed and rows else ""
    return page(
        f"All fields of {also}, and these:" if also else "",
        table(("field", "type", "required", "meaning"), rows),
        closed,
    )


def _used(name: str) -> str:
    """Which operations take or answer it."""
    if name == "error":
        return "Returned by every endpoint. [Error codes](../errors.md) says what each code means."
    parts = []
    for place, words in (("request", "Sent to"), ("answer", "Returned by")):
        uses = [operation for operation, where in _uses().get(f"{name}.schema.json", ()) if where == place]
        if uses:
            links = (link(code(key), f"../api/{operations()[key].page}#{anchor(key)}") for key in dict.fromkeys(uses))
            parts.append(f"{words}: {', '.join(links)}.")
    return "\n\n".join(parts)


@cache
def _uses() -> Mapping[str, tuple[tuple[str, str], ...]]:
    """Where each schema's file is used: the operations that take or answer it."""
    found: dict[str, list[tuple[str, str]]] = {}
    for key, operation in operations().items():
        for place, media in operation.media():
            for file in dict.fromkeys(_files(media["schema"])):
                found.setdefault(file, []).append((key, place))
    return {file: tuple(uses) for file, uses in found.items()}


def _files(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(reference := node.get("$ref"), str) and ".schema.json" in reference:
            yield reference.partition("#")[0]
        for value in node.values():
            yield from _files(value)
    elif isinstance(node, list):
        for item in node:
            yield from _files(item)


def _example(name: str) -> tuple[str, ...]:
    """The first example that there is."""
    file = _EXAMPLES.get(name) or _examples().get(f"{name}.schema.json")
    if file is None:
        return ()
    told = link(code(file.rpartition("/")[2]), f"../../../schemas/{file}")
    value = fields.read(file)
    short = shortened(value)
    left_out = f"Some fields, items, and text are left out. In full: {told}." if short != value else ""
    return "## Example", left_out, fence("json", example(short))


@cache
def _examples() -> Mapping[str, str]:
    """The first example of each schema that an operation has."""
    found: dict[str, str] = {}
    for operation in operations().values():
        for _, media in operation.media():
            if (file := media["schema"].get("$ref", "").partition("#")[0]) or "anyOf" in media["schema"]:
                file = file or next(_files(media["schema"]), "")
                for given in media.get("examples", {}).values():
                    if set(given["value"]) == {"$ref"}:
                        found.setdefault(file, given["value"]["$ref"])
    return found
