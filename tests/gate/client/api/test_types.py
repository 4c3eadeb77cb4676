"""The client's types say what the schemas say, member by member."""

from __future__ import annotations

import types as builtin
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

import pytest

from gate.client.api import types
from gate.encoding import resources
from tests.gate.client.api.documents import ROOTS
from tests.support.sources import imports

# What the service stores or signs elsewhere, and a schema therefore shows from afar: as some object, or in part.
ALONE = {*ROOTS}

# Of one case, what each schema of it says.
Schemas = list[Any]
KINDS = {
    type(None): "null",
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
    Mapping: "object",
}


@dataclass(frozen=True)
class Document:
    """A schema file, and how its schemas are read."""

    root: dict[str, Any]

    def at(self, pointer: str) -> Any:
        found: Any = self.root
        for step in pointer.split("/")[1:]:
            found = found[step]
        return found

    def plain(self, schema: Any) -> Schemas:
        """The alternatives of a schema, without references; `True` stands for anything."""
        if not isinstance(schema, dict):
            return [schema]
        if "$ref" in schema and "properties" not in schema:
            return self.plain(self.at(schema["$ref"][1:]))
        if "anyOf" in schema and "properties" not in schema and "type" not in schema:
            return [plain for one in schema["anyOf"] for plain in self.plain(one)]
        return [schema if schema.keys() - {"description"} else True]

    def members(self, schema: Any) -> tuple[dict[str, Schemas], set[str]]:
        """What an object may have, each with the schemas of it, and what it always has."""
        found: dict[str, Schemas] = {}
        always: set[str] = set()
        if not isinstance(schema, dict):
            return found, always
        always |= set(schema.get("required", ()))
        for name in always:
            found.setdefault(name, [])
        for name, member in schema.get("properties", {}).items():
            found.setdefault(name, []).extend(self.plain(member))
        every = [self.at(schema["$ref"][1:])] if "$ref" in schema else []
        for part in [*every, *schema.get("allOf", ())]:
            more, needed = self.members(part)
            merge(found, more)
            always |= needed
        if "if" in schema:
            more, needed = self.alternatives([schema.get("then", True), schema.get("else", True)])
            merge(found, more)
            always |= needed
        return found, always

    def alternatives(self, schemas: Schemas) -> tuple[dict[str, Schemas], set[str]]:
        """As `members`, where one of the schemas holds: whatever one may have, and what all have."""
        found: dict[str, Schemas] = {}
        needed: list[set[str]] = []
        for schema in schemas:
            more, always = self.members(schema)
            merge(found, more)
            needed.append(always)
        return found, set.intersection(*needed)


def merge(found: dict[str, Schemas], more: dict[str, Schemas]) -> None:
    for name, schemas in more.items():
        found.setdefault(name, []).extend(schemas)


def kinds(schema: dict[str, Any]) -> set[str]:
    """The JSON types that a schema admits."""
    if "type" in schema:
        return {schema["type"]} if isinstance(schema["type"], str) else set(schema["type"])
    listed = schema["enum"] if "enum" in schema else [schema["const"]]
    return {KINDS[type(value)] for value in listed}


def parts(hint: Any) -> Iterator[Any]:
    """The alternatives of an annotation."""
    if get_origin(hint) is NotRequired:
        yield from parts(get_args(hint)[0])
    elif get_origin(hint) in (Union, builtin.UnionType):
        for part in get_args(hint):
            yield from parts(part)
    else:
        yield hint


def hint_kinds(hint: Any) -> set[str]:
    found = set()
    for part in parts(hint):
        if get_origin(part) is Literal:
            found |= {KINDS[type(word)] for word in get_args(part)}
        else:
            found.add("object" if is_typeddict(part) else KINDS[get_origin(part) or part])
    return found


def words(hint: Any) -> set[Any]:
    return {word for part in parts(hint) if get_origin(part) is Literal for word in get_args(part)}


class Comparison:
    """Walks annotations and schemas side by side."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.held: set[Any] = set()
        self.in_condition = False
        self.faults: list[str] = []

    def typed(self, where: str, typed: Any, schemas: Schemas, *, root: bool = False) -> None:
        """Compares a TypedDict with the objects that one of some schemas describes."""
        if typed is types.RulebookCondition:
            # It holds itself.
            if self.in_condition:
                return
            self.in_condition = True
        found, always = self.document.alternatives(schemas)
        if found and (root or typed not in ALONE):
            self.held.add(typed)
            self.expect(where, "required", typed.__required_keys__, always)
            self.expect(where, "all", typed.__required_keys__ | typed.__optional_keys__, set(found))
        elif not found.keys() <= typed.__annotations__.keys():
            self.faults.append(f"{where}: {found.keys() - typed.__annotations__.keys()} missing")
        # What a schema shows from afar is looked through as well, for the types in it.
        for name, hint in get_type_hints(typed, vars(types), include_extras=True).items():
            self.member(f"{where}.{name}", hint, found.get(name, []))

    def member(self, where: str, hint: Any, schemas: Schemas) -> None:
        """Compares an annotation with what some schemas say of one value."""
        constrained = [schema for schema in schemas if isinstance(schema, dict)]
        if hint in (Any, NotRequired[Any]):
            self.expect(where, "constraints", len(constrained) < len(schemas) or not schemas, True)
            return
        if constrained:
            self.expect(where, "types", hint_kinds(hint), set.union(*map(kinds, constrained)))
            listed = {word for schema in constrained for word in schema.get("enum", ()) if word is not None}
            if listed:
                self.expect(where, "words", words(hint), listed)
            elif fixed := [schema["const"] for schema in constrained if "const" in schema]:
                self.expect(where, "word", not words(hint) or words(hint) >= set(map(str, fixed)), True)
        several = sum(map(is_typeddict, parts(hint))) > 1
        for part in parts(hint):
            own = self.of_type(part, constrained) if several and is_typeddict(part) else constrained
            self.inside(where, part, own)

    def of_type(self, typed: Any, schemas: Schemas) -> Schemas:
        """Those of some schemas that have the members of a TypedDict, where it is one of several."""
        return [schema for schema in schemas if self.document.members(schema)[0].keys() == typed.__annotations__.keys()]

    def inside(self, where: str, part: Any, schemas: Schemas) -> None:
        plain = self.document.plain
        objects = [schema for schema in schemas if "object" in kinds(schema)]
        if is_typeddict(part):
            self.typed(where, part, objects or [True])
        elif get_origin(part) is list:
            items = [item for schema in schemas if "items" in schema for item in plain(schema["items"])]
            self.member(f"{where}[]", get_args(part)[0], items)
        elif get_origin(part) in (dict, Mapping):
            fixed = [name for schema in objects for name in schema.get("properties", {})]
            self.expect(where, "members that a TypedDict should name", fixed, [])
            values = [
                value
                for schema in objects
                if isinstance(schema.get("additionalProperties"), dict)
                for value in plain(schema["additionalProperties"])
            ]
            self.member(f"{where}{{}}", get_args(part)[1], values)

    def expect(self, where: str, what: str, told: Any, meant: Any) -> None:
        if told != meant:
            self.faults.append(f"{where}: {what}: {told} in the types, {meant} in the schema")


def compared(root: Any) -> Comparison:
    name, pointers = ROOTS[root]
    document = Document(resources.schema(name))
    comparison = Comparison(document)
    comparison.typed(root.__name__, root, [document.at(pointer) for pointer in pointers], root=True)
    return comparison


@pytest.mark.parametrize("root", ROOTS, ids=lambda root: root.__name__)
def test_a_type_and_all_within_say_what_the_schema_says(root: Any) -> None:
    assert compared(root).faults == []


def test_a_record_always_has_what_every_view_has() -> None:
    definitions = resources.schema("decision-record-v1")["$defs"]
    views = [definitions[view] for view in ("full", "standard", "minimal", "advisory")]
    shared = set.intersection(*(set(view["required"]) for view in views))
    assert types.DecisionRecord.__required_keys__ == shared
    assert {"verdict", "record_hash", "audit_chain"} <= shared
    assert types.DecisionRecord.__annotations__.keys() == views[0]["properties"].keys() | views[-1]["properties"].keys()


def test_every_type_is_held_against_a_schema() -> None:
    declared = {found for found in vars(types).values() if is_typeddict(found)}
    reached = set().union(*(compared(root).held for root in ROOTS))
    assert declared == reached


def test_every_schema_but_those_of_errors_and_files_has_a_type() -> None:
    files = {file.name.removesuffix(".schema.json") for file in resources.path("schemas").glob("*.schema.json")}
    # Errors are raised, and the others are for files, the command line and tools: no endpoint takes or gives them.
    without = {"error", "rulebook-analysis", "rulebook-authoring-v1", "rulebook-cases-v1", "rulebook-test-report"}
    without |= {"rulebook-migration-v1", "history-map-v1", "policy-answer"}
    without |= {"mcp-message", "mcp-answer", "decision-explanation", "registered-rulebooks"}
    # The client decides one by one.
    without |= {"decide-batch-request"}
    # What receivers of webhooks get.
    without |= {"webhook-event"}
    assert files - {name for name, _ in ROOTS.values()} == without


def test_every_type_says_what_it_is() -> None:
    declared = [found for found in vars(types).values() if is_typeddict(found)]
    written = [found for found in declared if (found.__doc__ or "").rstrip().endswith(".")]
    # A class statement cannot name the members of these, so that they say it below.
    below = {"Coverage", "EffectivenessCoverage", "BenchmarkCoverage", "CrossCustomer", "RulebookCondition"}
    below |= {"AnomalyCoverage", "AnomalyWindow", "DriftedFact", "ShiftedMetric", "ShiftedRate", "Route"}
    below |= {f"MigrationEvidence{of}" for of in ("Region", "Transition", "HistoryFactsClasses")}
    assert {found.__name__ for found in declared if found not in written} == below


def test_the_types_need_nothing_that_is_installed() -> None:
    needed = {name.partition(".")[0] for name in imports(Path(types.__file__))}
    assert needed == {"collections", "typing"}
