"""The reference pages of the JSON documents: the fields of each, from its schema."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

from docs.tools.reference.http import fields, parts
from docs.tools.reference.http.api import linked
from docs.tools.reference.http.fields import Field, Format, Table
from docs.tools.reference.http.operations import operations
from docs.tools.reference.http.parts import Part
from docs.tools.reference.markdown import anchor, choice, code, example, fence, link, page, shortened, table

SOURCE: Final = "schemas/*.schema.json"
_EXAMPLES: Final = {"rulebook-migration-v1": "examples/rulebook-migration.json"}
"""Examples of documents that no operation takes or answers."""
_GROUPS: Final = ("Requests", "Responses", "Files and other documents")


def pages() -> dict[str, str]:
    """The page of each format and of each part of a long one, and their index."""
    made = {f"formats/{each.name}.md": _page(each) for each in fields.formats()}
    more = {
        f"formats/{parts.page_of(each.name, part)}.md": _part(each, part)
        for each in fields.formats()
        for part in parts.PARTS.get(each.name, ())
    }
    return {"formats/README.md": _index()} | made | more


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
    own = [other for other in others if parts.of_section(each.name, other.name) == each.name]
    further = [
        link(_title(each, part), f"{parts.page_of(each.name, part)}.md") for part in parts.PARTS.get(each.name, ())
    ]
    return page(
        f"# {each.title}",
        linked(first.meaning, api="../api/"),
        f"This format has more pages: {choice(further, 'and')}." if further else "",
        _used(each.name),
        f"Schema: [`{each.name}.schema.json`](../../../schemas/{each.name}.schema.json).",
        "## Fields" if first.fields else "",
        _fields(each.name, each.name, first),
        *_sections(each.name, each.name, own),
        *_example(each.name),
    )


def _part(each: Format, part: Part) -> str:
    first, *others = each.tables
    here = parts.page_of(each.name, part)
    own = [other for other in others if other.name in part.sections]
    return page(
        f"# {_title(each, part)}",
        f"This page lists a part of the format [{each.title}]({each.name}.md).",
        *(("## Fields", _fields(each.name, here, first)) if part.fields else ()),
        *_sections(each.name, here, own),
    )


def _title(each: Format, part: Part) -> str:
    return f"{each.title}: {part.title}"


def _sections(name: str, here: str, shown: list[Table]) -> Iterator[str]:
    for each in shown:
        yield f"## {each.name}"
        yield linked(each.meaning, api="../api/")
        yield _fields(name, here, each)


def _fields(name: str, here: str, shown: Table) -> str:
    """The table of those fields of a format that a page lists."""
    rows = [
        (
            code(field.path),
            _elsewhere(name, here, field.type),
            "yes" if field.required else "no",
            _and_inside(name, here, field),
        )
        for field in shown.fields
        if shown.name or parts.of_field(name, field.path) == here
    ]
    also = choice([link(code(other), _section(name, here, other)) for other in shown.also], "and") if shown.also else ""
    closed = "Other fields are rejected." if shown.closed and rows and (shown.name or name == here) else ""
    return page(
        f"All fields of {also}, and these:" if also else "",
        table(("field", "type", "required", "meaning"), rows),
        closed,
    )


def _section(name: str, here: str, section: str) -> str:
    there = parts.of_section(name, section)
    return f"#{section}" if there == here else f"{there}.md#{section}"


def _elsewhere(name: str, here: str, kind: str) -> str:
    """A type, with a link to the fields that it shares with a field of another page."""

    def replaced(found: re.Match[str]) -> str:
        there = parts.of_fields_in(name, found[1])
        return found[0] if there == here else f"the fields of {link(code(found[1]), f'{there}.md')}"

    return re.sub(r"the fields of `([^`]+)`", replaced, kind)


def _and_inside(name: str, here: str, field: Field) -> str:
    """The meaning of a field, with a link to the page of the fields in it if that is another one."""
    has_page = any(field.path in part.fields for part in parts.PARTS.get(name, ()))
    there = parts.of_fields_in(name, field.path)
    return f"{field.meaning} Fields: {link(there, f'{there}.md')}." if has_page and there != here else field.meaning


def _used(name: str) -> str:
    """Which operations take or answer it."""
    if name == "error":
        return "Returned by every endpoint. [Error codes](../errors/README.md) says what each code means."
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
