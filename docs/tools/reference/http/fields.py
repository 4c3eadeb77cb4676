"""The fields that a JSON Schema of `schemas/` describes, one row each, nested ones by their dotted path."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final, cast

from api.description.openapi import Components
from docs.tools.reference.http import parts
from docs.tools.reference.markdown import choice, code, link
from gate.encoding import resources
from gate.encoding.strict_json import parse

Schema = dict[str, Any]

_SUFFIX: Final = ".schema.json"
_HASH: Final = "^[0-9a-f]{64}$"
_TIME: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$"
_WRITTEN: Final = {_HASH: "hash: 64 hex digits", _TIME: "UTC time: `2026-01-31T12:00:00.000Z`"}
"""Patterns that are better told than shown."""
_BOUNDS: Final = (
    ("", "minimum", "maximum"),
    (" characters", "minLength", "maxLength"),
    (" items", "minItems", "maxItems"),
    (" fields", "minProperties", "maxProperties"),
)
_PARTS: Final = ("allOf", "anyOf", "oneOf")
_CONDITIONS: Final = ("then", "else")
_STRUCTURE: Final = frozenset({"properties", "allOf", "anyOf", "oneOf", "if"})


@dataclass(frozen=True, slots=True)
class Field:
    """A row of a table.

    Attributes:
        path: Where the field is, with `[]` for the items of an array and `*` for names that callers choose.
        type: Its type and what it may be.
        required: Whether its object always has it.
        meaning: What it means.
    """

    path: str
    type: str
    required: bool
    meaning: str


@dataclass(frozen=True, slots=True)
class Table:
    """The fields of a schema, or of one of its definitions.

    Attributes:
        name: The definition; empty for the schema itself.
        meaning: What it is.
        fields: Its fields.
        also: The definitions whose fields it has as well.
        closed: Whether other fields are rejected.
    """

    name: str
    meaning: str
    fields: tuple[Field, ...]
    also: tuple[str, ...]
    closed: bool


@dataclass(frozen=True, slots=True)
class Format:
    """A schema.

    Attributes:
        name: Its name, as in its file's.
        title: Its title.
        tables: The tables of its fields; the first is that of the schema itself.
    """

    name: str
    title: str
    tables: tuple[Table, ...]


@cache
def read(path: str) -> Any:
    """The JSON value of a file in `schemas/`."""
    return parse(resources.path("schemas", *path.split("/")).read_bytes(), max_depth=64)


@cache
def names() -> tuple[str, ...]:
    """The names of all schemas."""
    folder = resources.path("schemas")
    return tuple(sorted(path.name.removesuffix(_SUFFIX) for path in folder.iterdir() if path.name.endswith(_SUFFIX)))


@cache
def sections() -> frozenset[tuple[str, str]]:
    """The definitions that an operation refers to by themselves, by file and JSON pointer: each has a section."""
    found = (reference.partition("#") for reference in _references(read("openapi.json")["paths"]))
    return frozenset((file, pointer) for file, _, pointer in found if pointer and not _is_root(file, pointer))


@cache
def formats() -> tuple[Format, ...]:
    """Every schema with its fields."""
    return tuple(_Reader(name).format() for name in names())


def title_of(file: str, pointer: str = "") -> str:
    """What a schema or a definition is called in a link."""
    title = _title(read(file))
    named = pointer.rpartition("/")[2]
    return f"{title}: {_spaced(named)}" if named and not _is_root(file, pointer) else title


def target_of(file: str, pointer: str = "") -> str:
    """The page of a schema, with the anchor of a definition that has a section of its own."""
    name = pointer.rpartition("/")[2]
    has_section = (file, pointer) in sections() or pointer in _kinds(file)
    format_name = file.removesuffix(_SUFFIX)
    return f"{parts.of_section(format_name, name)}.md#{name}" if has_section else f"{format_name}.md"


def type_of(schema: Schema) -> str:
    """The type of a value that refers to nothing, and what it may be."""
    return _Reader("").type(schema)


def fields_of(schema: Schema) -> tuple[Field, ...]:
    """The fields of a schema that stands in `openapi.json` itself."""
    return _Reader("").inline(schema)


class _Reader:
    """Reads one schema; without a name, those that stand in `openapi.json` itself."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._file = f"{name}{_SUFFIX}"
        self._components = Components(read, read("openapi.json")["x-members"])
        kinds = _kinds(self._file) if name else set()
        self._sections = {pointer for file, pointer in sections() if file == self._file} | kinds
        self._shown: dict[str, str] = {}

    def format(self) -> Format:
        """The schema: its own table, then those of its sections and of definitions that nothing refers to."""
        written = read(self._file)
        root = self._named("")
        first = replace(self._table("", root), meaning=written["description"])
        tables = [first]
        for pointer in self._definitions():
            name = self._named(pointer)
            if pointer in self._sections or (name not in self._shown and name != root):
                tables.append(self._table(_label(written, pointer), name))
        return Format(self._name, _title(written), tuple(tables))

    def inline(self, schema: Schema) -> tuple[Field, ...]:
        """The fields of a schema without a name."""
        return tuple(self._fields(cast("Schema", self._components.rewrite(schema, "openapi.json")), ""))

    def _definitions(self) -> Iterator[str]:
        """The JSON pointers of the definitions that have fields."""
        for name, schema in read(self._file).get("$defs", {}).items():
            if _STRUCTURE & schema.keys():
                yield f"/$defs/{name}"

    def _named(self, pointer: str) -> str:
        rewritten = self._components.rewrite({"$ref": f"{self._file}#{pointer}"}, self._file)
        return str(cast("Schema", rewritten)["$ref"]).rpartition("/")[2]

    def _table(self, name: str, component: str) -> Table:
        schema = self._component(component)
        self._shown.setdefault(component, f"`{name}`" if name else "the document itself")
        fields: dict[str, Field] = {}
        for field in self._fields(schema, ""):
            fields.setdefault(field.path, field)
        also = tuple(self._section(part["$ref"]) for part in schema.get("allOf", ()) if "$ref" in part)
        closed = schema.get("additionalProperties") is False
        return Table(name, schema.get("description", ""), tuple(fields.values()), tuple(filter(None, also)), closed)

    def _section(self, reference: str) -> str:
        """The section that a reference leads to; empty where it leads elsewhere."""
        file, pointer = self._components.sources[reference.rpartition("/")[2]]
        return pointer.rpartition("/")[2] if file == self._file and pointer in self._sections else ""

    def _fields(self, schema: Schema, path: str) -> Iterator[Field]:
        for name, member in schema.get("properties", {}).items():
            if member is not False:
                yield from self._field(name, member, path, name in schema.get("required", ()))
        for always, part in _parts(schema):
            for field in self._inner(part, path):
                yield field if always else replace(field, required=False)
        others = schema.get("additionalProperties")
        if isinstance(others, dict) and path:
            yield from self._inner(others, f"{path}.*")

    def _field(self, name: str, member: Schema | bool, outer: str, required: bool) -> Iterator[Field]:
        schema = member if isinstance(member, dict) else {}
        path = f"{outer}.{name}" if outer else name
        yield Field(path, self.type(schema), required, self._meaning(schema))
        yield from self._inner(schema, path)

    def _inner(self, schema: Schema, path: str) -> Iterator[Field]:
        """The fields inside a value at a path, unless they were listed before."""
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            if self._is_own(name) and name not in self._shown:
                self._shown[name] = f"`{path}`"
                yield from self._inner(self._component(name), path)
        elif "items" in schema:
            yield from self._inner(schema["items"], f"{path}[]")
        else:
            yield from self._fields(schema, path)

    def _is_own(self, name: str) -> bool:
        file, pointer = self._components.sources[name]
        return file == self._file and pointer not in self._sections

    def _component(self, name: str) -> Schema:
        return cast("Schema", self._components.schemas[name])

    def _meaning(self, schema: Schema) -> str:
        if "description" in schema:
            return str(schema["description"])
        if "$ref" in schema:
            return str(self._component(schema["$ref"].rpartition("/")[2]).get("description", ""))
        return ""

    def type(self, schema: Schema) -> str:
        """The type of a value and what it may be."""
        if "$ref" in schema:
            return self._reference(schema["$ref"].rpartition("/")[2])
        if "const" in schema:
            return code(_plain(schema["const"]))
        if "enum" in schema:
            return _with_default(choice([code(_plain(value)) for value in schema["enum"]]), schema)
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema and not any("required" in part for part in schema[keyword] if "type" not in part):
                return choice(list(dict.fromkeys(self.type(part) for part in schema[keyword])))
        if "items" in schema:
            kind = "array or null of" if "null" in schema.get("type", "") else "array of"
            return _with_marks(f"{kind} {_many(self.type(schema['items']))}", schema)
        return _with_marks(_kind(schema), schema)

    def _reference(self, name: str) -> str:
        file, pointer = self._components.sources[name]
        schema = self._component(name)
        if "enum" in schema:
            return self.type(schema)
        if file != self._file or pointer in self._sections:
            return link(title_of(file, pointer), target_of(file, pointer))
        if name in self._shown:
            return f"object with the fields of {self._shown[name]}"
        return self.type({key: value for key, value in schema.items() if key != "description"})


def _title(written: Schema) -> str:
    """The title of a schema. It names a component of the contract, and so has `Mcp` where people write MCP."""
    return str(written["title"]).replace("Mcp ", "MCP ")


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str) and _SUFFIX in node["$ref"]:
            yield node["$ref"]
        for value in node.values():
            yield from _references(value)
    elif isinstance(node, list):
        for item in node:
            yield from _references(item)


def _kinds(file: str) -> set[str]:
    """The definitions of which a whole document is one: each has a section."""
    written = read(file)
    parts = [] if "properties" in written else [*written.get("oneOf", ()), *written.get("anyOf", ())]
    return {part["$ref"].removeprefix("#") for part in parts if part.get("$ref", "").startswith("#")}


def _label(written: Schema, pointer: str) -> str:
    """What a definition is called in a heading: the type of an event, else its name."""
    name = pointer.rpartition("/")[2]
    kind = written["$defs"][name].get("properties", {}).get("type", {})
    return str(kind["const"]) if isinstance(kind, dict) and "const" in kind else name


def _is_root(file: str, pointer: str) -> bool:
    return bool(read(file).get("$ref") == f"#{pointer}")


def _parts(schema: Schema) -> Iterator[tuple[bool, Schema]]:
    """What a schema demands in addition to its own properties, and whether it always does."""
    for keyword in _PARTS:
        for part in schema.get(keyword, ()):
            yield keyword == "allOf", part
    for keyword in _CONDITIONS:
        if keyword in schema:
            yield False, schema[keyword]


def _kind(schema: Schema) -> str:
    kinds = schema.get("type")
    if kinds is None:
        return "object" if _STRUCTURE & schema.keys() else "any value"
    named = [kinds] if isinstance(kinds, str) else list(kinds)
    if (told := _WRITTEN.get(schema.get("pattern", ""))) is not None:
        named[named.index("string")] = told
    if schema.get("format") in ("date", "date-time"):
        named[named.index("string")] = schema["format"]
    return choice(named)


def _with_marks(kind: str, schema: Schema) -> str:
    return "; ".join([kind, *_marks(schema)])


def _marks(schema: Schema) -> Iterator[str]:
    for counted, lowest, highest in _BOUNDS:
        low, high = schema.get(lowest), schema.get(highest)
        if counted and low == 1 and high is None:
            yield "not empty"
        elif low is not None and high is not None:
            yield f"{low} to {high}{counted}" if low != high else f"{low}{counted}"
        elif low is not None:
            yield f"at least {low}{counted}"
        elif high is not None:
            yield f"at most {high}{counted}"
    if schema.get("uniqueItems"):
        yield "no duplicates"
    if "pattern" in schema and schema["pattern"] not in _WRITTEN:
        yield f"matches `{schema['pattern']}`"
    if "default" in schema:
        yield f"default `{_plain(schema['default'])}`"


def _with_default(kind: str, schema: Schema) -> str:
    return f"{kind}; default `{_plain(schema['default'])}`" if "default" in schema else kind


def _many(kind: str) -> str:
    """The type of an array's items: "strings (at most 9 characters)"."""
    named, _, marks = kind.partition("; ")
    first, _, rest = named.partition(" ")
    if first in ("string", "object", "integer", "number", "boolean") and not rest.startswith("or "):
        named = f"{first}s {rest}".strip()
    return f"{named} ({marks})" if marks else named


def _plain(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _spaced(name: str) -> str:
    return name.replace("_", " ")
