"""Converts JSON Schemas to Python types: objects with fields to a TypedDict, all others to an annotation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from api.description.client.components import Components, Members, Placed, Unsupported
from api.description.client.names import Names
from api.description.spec import Schema
from gate.encoding.strict_json import Json

_SCALARS: Final = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}

_VIEWS: Final = "Views may have fewer fields, so fields that only some views have are not required."


@dataclass(frozen=True, slots=True)
class Use:
    """The use of a type.

    Attributes:
        heading: The heading of its section.
        is_sent: Whether callers create the value. They may then use any mapping for an open object.
    """

    heading: str = ""
    is_sent: bool = False


@dataclass(frozen=True, slots=True)
class Member:
    """A field of a TypedDict."""

    name: str
    annotation: str
    is_required: bool
    description: str


@dataclass(frozen=True, slots=True)
class Shape:
    """A TypedDict."""

    name: str
    heading: str
    description: str
    members: tuple[Member, ...]


class Types:
    """Collects the types that a document needs while it makes annotations."""

    def __init__(self, schemas: Mapping[str, Schema], names: Names) -> None:
        """Starts with the named enums.

        Args:
            schemas: The document's components.
            names: The vocabulary of the client.

        Raises:
            Unsupported: The vocabulary has a place that the document does not have.
        """
        self._components = Components(schemas, names)
        enums = {name: _words(self._components.at(place)) for place, name in names.types.items()}
        self.words: Final = {name: _literal(words) for name, words in sorted(enums.items()) if words}
        self._named = {_together(words): name for name, words in enums.items() if words}
        self._known: dict[str, Placed] = {name: ("an enum", {}) for name in self.words}
        self._shapes: dict[str, Shape] = {}

    @property
    def shapes(self) -> list[Shape]:
        """The TypedDicts in order, each after the ones it contains."""
        return list(self._shapes.values())

    def annotation(self, place: str, schema: Schema | bool, use: Use) -> str:
        """The annotation of a value. Every TypedDict in it is collected.

        Args:
            place: The place of its schema in the document.
            schema: Its schema.
            use: Its use.

        Raises:
            Unsupported: The schema, or one in it, has something that the generator does not know.
        """
        return self._union([(place, schema)], use)

    def always_has(self, schema: Schema, member: str) -> bool:
        """Whether every object of a schema has a member."""
        return member in self._components.members(*self._components.resolved("", schema))[1]

    def _union(self, told: Iterable[Placed], use: Use) -> str:
        parts = dict.fromkeys(part for place, schema in told for part in self._parts(place, schema, use))
        return "Json" if "Json" in parts else " | ".join(sorted(parts, key=lambda part: part == "None"))

    def _parts(self, place: str, schema: Schema | bool, use: Use) -> Iterator[str]:
        """The alternatives of a value."""
        place, schema = self._components.resolved(place, schema)
        if "enum" in schema:
            words = _words(schema)
            yield self._named.get(_together(words)) or _literal(words)
            if None in schema["enum"]:
                yield "None"
        elif "const" in schema:
            yield self._constant(place, schema["const"])
        elif "anyOf" in schema and not _only_requires(schema["anyOf"]):
            if beside := schema.keys() & {"type", "properties", "allOf", "then", "else"}:
                raise Unsupported(f"{place} has {', '.join(sorted(beside))} next to anyOf.")
            for number, one in enumerate(self._components.without_views(schema["anyOf"]), 1):
                yield from self._parts(f"{place}.alternative_{number}", one, use)
        elif schema.keys() & {"type", "properties", "allOf", "then", "else"}:
            kinds = schema.get("type", "object")
            for kind in [kinds] if isinstance(kinds, str) else kinds:
                yield self._kind(kind, place, schema, use)
        else:
            yield "Json"

    def _kind(self, kind: str, place: str, schema: Schema, use: Use) -> str:
        """A value of one of the types of JSON."""
        if kind in _SCALARS:
            return _SCALARS[kind]
        if kind == "array":
            return f"list[{self._union([(f'{place}[]', schema.get('items', True))], use)}]"
        if kind != "object":
            raise Unsupported(f"{place} is of type {kind}, which JSON does not have.")
        members = self._components.members(place, schema)
        if members[0]:
            # A TypedDict cannot give the type of further members.
            return self._shape(place, schema, members, use)
        values = schema.get("additionalProperties", True)
        if isinstance(values, Mapping):
            return f"dict[str, {self._union([(f'{place}{{}}', values)], use)}]"
        return "Mapping[str, Json]" if use.is_sent else "dict[str, Json]"

    def _shape(self, place: str, schema: Schema, members: Members, use: Use) -> str:
        """The name of the TypedDict of an object."""
        name = self._components.name(place)
        if name not in self._known:
            # Registered before it is complete, so that it may contain itself.
            self._known[name] = place, schema
            made = tuple(
                Member(member, self._union(told, use), member in members[1], self._description(told))
                for member, told in members[0].items()
            )
            self._shapes[name] = Shape(name, use.heading, self._told(place, schema), made)
        elif self._known[name] != (place, schema):
            raise Unsupported(
                f"{place} would be the type {name}, which is already {self._known[name][0]}; add a name to names.py."
            )
        return name

    def _told(self, place: str, schema: Schema) -> str:
        """The description of a TypedDict."""
        parent, _, member = place.rstrip("[]{}").rpartition(".")
        # The document describes some arrays without their items.
        entry = f"An entry of `{member}` in {self._components.name(parent)}." if parent else f"The component {place}."
        told = schema.get("description") or schema.get("title") or entry
        return f"{told} {_VIEWS}" if self._components.has_views(place) else str(told)

    def _description(self, told: list[Placed]) -> str:
        """A member's description, or else that of its words; a TypedDict describes itself."""
        place, schema = told[0]
        if isinstance(schema, Mapping) and "description" in schema:
            return str(schema["description"])
        _, schema = self._components.resolved(place, schema)
        return "" if "properties" in schema else str(schema.get("description", ""))

    def _constant(self, place: str, value: Json) -> str:
        if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
            return "list[str]"
        if not isinstance(value, str | int | float):
            raise Unsupported(f"{place} is always {value!r}, which has no type here.")
        return _literal([value]) if self._components.is_fixed(place) else type(value).__name__


def _only_requires(branches: Iterable[Schema]) -> bool:
    """Whether branches say no more than which members go together, which a TypedDict cannot say."""
    return all({"required"} <= branch.keys() <= {"description", "required", "not"} for branch in branches)


def _words(schema: Schema) -> list[Json]:
    """The words of an enum, without null."""
    return [word for word in schema.get("enum", ()) if word is not None]


def _together(words: list[Json]) -> frozenset[str]:
    """Words that are the same enum in any order."""
    return frozenset(map(repr, words))


def _literal(words: list[Json]) -> str:
    if not words or not all(isinstance(word, str | int) for word in words):
        raise Unsupported(f"An enum or a constant of {words!r} has no type here.")
    return f"Literal[{', '.join(map(repr, words))}]"
