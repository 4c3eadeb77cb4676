"""Reads the components of an OpenAPI document with the client's vocabulary. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from api.description.client.names import Names
from api.description.spec import Schema

_PREFIX: Final = "#/components/schemas/"

_STRUCTURE: Final = frozenset(
    {
        *("$ref", "type", "enum", "const", "anyOf", "allOf", "if", "then", "else"),
        *("properties", "required", "additionalProperties", "items"),
    }
)
# What narrows a value without changing its type, and what describes it.
_IGNORED: Final = frozenset(
    {
        *("not", "propertyNames", "pattern", "format", "uniqueItems", "default"),
        *("minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
        *("title", "description", "example", "examples"),
    }
)

Placed = tuple[str, Schema | bool]
"""A schema with its place in the document."""

Found = tuple[str, Schema]
"""The effective schema, with its place."""

Members = tuple[dict[str, list[Placed]], set[str]]
"""The fields that an object may have, each with all its schemas, and the fields that it always has."""


class Unsupported(ValueError):
    """The document, or the vocabulary, has something that the generator cannot express in Python."""


class Components:
    """The schemas of a document by their places."""

    def __init__(self, schemas: Mapping[str, Schema], names: Names) -> None:
        """Checks the vocabulary against the document.

        Args:
            schemas: The document's components.
            names: The vocabulary of the client.

        Raises:
            Unsupported: The vocabulary has a place that the document does not have.
        """
        self._schemas = schemas
        self._names = names
        for place in (*names.types, *names.meant, *names.views, *names.fixed):
            self.at(place)

    def at(self, place: str) -> Schema:
        """The schema at a place of the document.

        Raises:
            Unsupported: There is none.
        """
        component, *steps = place.replace("[]", ".[]").replace("{}", ".{}").split(".")
        try:
            schema = self._schemas[component]
            for step in steps:
                schema = _within(schema, step)
        except KeyError as error:
            raise Unsupported(f"The document has no {place}; correct the reference, or names.py.") from error
        return schema

    def name(self, place: str) -> str:
        """The name of the type at a place, from the vocabulary or from the names of the component and its fields."""
        if place in self._names.types:
            return self._names.types[place]
        parent, _, member = place.rstrip("[]{}").rpartition(".")
        return self.name(parent) + _pascal(member) if parent else _pascal(member)

    def is_fixed(self, place: str) -> bool:
        """Whether constants there have their only word as their type."""
        return place.partition(".")[0] in self._names.fixed

    def resolved(self, place: str, schema: Schema | bool) -> Found:
        """Follows references and the vocabulary to the effective schema and its place.

        Raises:
            Unsupported: The schema has a keyword that the generator does not know.
        """
        schema = _known(place, schema)
        meant = self._names.meant.get(place)
        if isinstance(meant, str):
            if lost := schema.get("properties", {}).keys() - self.at(meant).get("properties", {}).keys():
                raise Unsupported(f"{place} has {_listed(lost)}, but its replacement {meant} does not.")
            return self.resolved(meant, self.at(meant))
        if meant is not None:
            schema = meant
        if "$ref" not in schema:
            return place, schema
        target = str(schema["$ref"]).removeprefix(_PREFIX)
        if beside := schema.keys() & _STRUCTURE - {"$ref"}:
            raise Unsupported(f"{place} has {_listed(beside)} next to its reference to {target}.")
        return self.resolved(target, self.at(target))

    def has_views(self, place: str) -> bool:
        """Whether answers may have only a part of the fields there."""
        return place in self._names.views

    def without_views(self, alternatives: list[Schema]) -> list[Schema]:
        """The alternatives without views of another alternative, whose type includes them."""
        told = [str(one.get("$ref", "")).removeprefix(_PREFIX) for one in alternatives]
        views = {view for name in told for view in self._names.views.get(name, ())}
        return [one for one, name in zip(alternatives, told, strict=True) if name not in views]

    def members(self, place: str, schema: Schema) -> Members:
        """The fields of an object, including those of its parts and of all its views.

        Raises:
            Unsupported: A condition uses or requires fields that the object does not describe.
        """
        own = self._members(place, schema)
        views = self._names.views.get(place)
        return _either([own, *(self._members(view, self.at(view)) for view in views)]) if views else own

    def _members(self, place: str, schema: Schema) -> Members:
        found = {name: [(f"{place}.{name}", member)] for name, member in schema.get("properties", {}).items()}
        always = set(schema.get("required", ()))
        for part in schema.get("allOf", ()):
            more, needed = self._members(*self.resolved(place, part))
            found = {**more, **found}
            always |= needed
        branches = [self._members(*self.resolved(place, schema[word])) for word in ("then", "else") if word in schema]
        if not found:
            # What is only required here is described by the object that this is a condition of.
            return _either(branches) if branches else ({}, always)
        if strange := always.union(*(more.keys() | needed for more, needed in branches)) - found.keys():
            raise Unsupported(f"{place} uses {_listed(strange)}, but does not describe it.")
        return found, always


def _pascal(words: str) -> str:
    """Words as the name of a type."""
    return "".join(word[:1].upper() + word[1:] for word in words.replace("-", " ").replace("_", " ").split())


def _within(schema: Schema, step: str) -> Schema:
    """The schema of a member, of items, or of additional members.

    Raises:
        KeyError: There is none.
    """
    if step == "[]":
        return schema["items"]
    # The vocabulary names no place whose schema is `true` or `false`.
    return cast("Schema", schema["additionalProperties"] if step == "{}" else schema["properties"][step])


def _known(place: str, schema: object) -> Schema:
    """A schema of which the generator knows every keyword."""
    if schema is True:
        return {}
    if not isinstance(schema, Mapping):
        raise Unsupported(f"{place} is {schema!r}, which the generator does not know as a schema.")
    if unknown := schema.keys() - _STRUCTURE - _IGNORED:
        raise Unsupported(f"{place} has {_listed(unknown)}, which the generator does not know.")
    return cast("Schema", schema)


def _either(alternatives: list[Members]) -> Members:
    """The members where one of some objects holds: those of each, and always what all of them always have."""
    found: dict[str, list[Placed]] = {}
    for members, _ in alternatives:
        for name, placed in members.items():
            found.setdefault(name, []).extend(placed)
    return found, set.intersection(*(needed for _, needed in alternatives))


def _listed(words: set[str]) -> str:
    return ", ".join(sorted(words))
