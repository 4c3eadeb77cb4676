"""`gate adapters`: list the trusted adapters of this release, and run one on a file. Needs no instance."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, TypedDict, cast

import typer

from api.cli.options import DEFAULT_HOME, Json, read_json
from api.cli.output import note, print_json, say, table
from gate.adapters.containment import BASELINE, MEASURES
from gate.adapters.invocation import TrustedAdapters, accepted_invocation
from gate.adapters.manifest import Adapter
from gate.adapters.registry import damaged, registered
from gate.adapters.worker import Workers
from gate.encoding.shapes import FORMATS, FORMS
from gate.errors import OperatorError
from gate.instance.instance import require_instance
from gate.instance.settings import load_settings

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="List the trusted adapters of this release, and run one. No instance is needed.",
)

Name = Annotated[str, typer.Argument(metavar="ADAPTER", help="The adapter, by its id or as adapter_id@version.")]
Heeded = Annotated[
    Path | None,
    typer.Option(
        "--home",
        envvar="GATE_HOME",
        help="The instance whose setting adapter_isolation applies. Default: the instance in var, if there is one.",
        show_default=False,
    ),
]
# Every command takes the options of an instance, so that one line of options serves them all.
UnusedHome = Annotated[Path | None, typer.Option("--home", hidden=True)]
UnusedDatabaseUrl = Annotated[str | None, typer.Option("--database-url", hidden=True)]


@app.command("list")
def list_(home: Heeded = None, database_url: UnusedDatabaseUrl = None, as_json: Json = False) -> None:
    """List the adapters, and the measures that contain their workers on this machine."""
    required = _isolation(home)
    adapters = TrustedAdapters(registered(), Workers(registered(), required=required))
    try:
        measures = adapters.measures()
    finally:
        adapters.close()
    if as_json:
        names = ("adapter_id", "version", "title", "manifest_hash", "implementation_hash")
        manifests: list[Mapping[str, object]] = [*adapters.manifests()]
        listed = [{name: manifest[name] for name in names} for manifest in manifests]
        print_json(
            {
                "adapters": listed,
                "required": [*BASELINE, *(measure for measure in required if measure not in BASELINE)],
                "in_force": list(measures.in_force),
                "reason": measures.reason,
            }
        )
        return
    table(
        ["adapter", "version", "what it is", "manifest_hash"],
        [
            [manifest["adapter_id"], manifest["version"], manifest["title"], manifest["manifest_hash"]]
            for manifest in adapters.manifests()
        ],
        wraps=("what it is",),
    )
    for error in damaged().values():
        note(f"gate: {error.message}")
    if measures.reason is not None:
        note(f"gate: Adapters cannot run here: {measures.reason}.")
    if measures.in_force:
        say(f"Workers on this machine are contained by {', '.join(measures.in_force)}.")
        if missing := [measure for measure in MEASURES if measure not in measures.in_force]:
            say(f"Not available here: {', '.join(missing)}. docs/reference/adapters.md lists what each one needs.")


@app.command()
def show(
    name: Name,
    source: Annotated[bool, typer.Option("--source", help="Print only the source, as it is hashed.")] = False,
    home: UnusedHome = None,
    database_url: UnusedDatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Show an adapter with its input and its facts. `--json` shows its manifest, and `--source` its source."""
    if source and as_json:
        raise OperatorError(
            "USAGE_INVALID", "--json prints the manifest and --source the source; give only one of them."
        )
    adapter = adapter_named(name)
    if as_json:
        print_json(adapter.manifest)
    elif source:
        for line in adapter.source.decode().splitlines():
            say(line)
    else:
        _show(adapter)


@app.command()
def run(
    name: Name,
    input_: Annotated[
        Path, typer.Option("--input", help="A file with the input of the adapter as JSON. Use - for stdin.")
    ],
    home: Heeded = None,
    database_url: UnusedDatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Run an adapter in a contained worker, as a decision does, and print its facts. Nothing is recorded."""
    adapter = adapter_named(name)
    adapters = TrustedAdapters(registered(), Workers(registered(), required=_isolation(home)))
    try:
        made = adapters.facts(accepted_invocation(adapter, read_json(input_), root=""))
    finally:
        adapters.close()
    if as_json:
        print_json({"adapter_facts": made.values, "trusted_adapter": made.trusted_adapter})
        return
    table(["fact", "value"], [[fact, _shown(value)] for fact, value in made.values.items()], wraps=("value",))
    if made.trusted_adapter is not None:
        say(f"input_hash {made.trusted_adapter['input_hash']}, output_hash {made.trusted_adapter['output_hash']}")


def _isolation(home: Path | None) -> tuple[str, ...]:
    """What the setting adapter_isolation asks for: that of the instance that is named, or of the usual one.

    Raises:
        OperatorError: INSTANCE_MISSING: there is none in the directory that is named; or SETTINGS_INVALID.
    """
    if home is not None:
        require_instance(home)
    return load_settings(home or DEFAULT_HOME).adapter_isolation


def adapter_named(name: str) -> Adapter:
    """Finds an adapter by its id or as `adapter_id@version`; an id alone finds the version that was registered last."""
    found = [adapter for adapter in registered() if name in (adapter.adapter_id, adapter.name)]
    for known, error in damaged().items():
        if not found and name in (known, known.partition("@")[0]):
            raise error
    if not found:
        there = ", ".join(adapter.name for adapter in registered())
        raise OperatorError("ADAPTER_UNKNOWN", f"There is no adapter {name}. The adapters are {there}.")
    return found[-1]


class Schema(TypedDict, total=False):
    """The part of JSON Schema that manifests of adapters use."""

    type: str | list[str]
    description: str
    enum: list[object]
    format: str
    pattern: str
    properties: dict[str, Schema]
    required: list[str]
    items: Schema
    exclusiveMinimum: float


def _shown(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _show(adapter: Adapter) -> None:
    manifest, limits = adapter.manifest, adapter.manifest["limits"]
    say(f"{adapter.name}: {manifest['title']}", style="bold")
    say(manifest["description"])
    say("")
    members: Mapping[str, object] = manifest
    hashes = ("manifest_hash", "implementation_hash", "implementation_revision")
    labels = ("adapter_authority", "execution_isolation", "capability_enforcement")
    table(
        ["what it is", ""],
        [
            *([name, members[name]] for name in (*hashes, *labels)),
            ["denied_capabilities", ", ".join(manifest["denied_capabilities"])],
        ],
        wraps=("",),
    )
    say("")
    table(
        ["limits of a call", ""],
        [
            ["time", f"{limits['timeout_ms']} ms"],
            ["memory", _size(limits["memory_bytes"])],
            ["facts", f"{_size(limits['output_bytes'])} of JSON"],
        ],
    )
    schemas = (("input", "required", manifest["input_schema"]), ("facts", "always made", manifest["output_schema"]))
    for title, always, schema in schemas:
        say("")
        columns = [title, "of the form", always, "what it is"]
        table(columns, _members(cast("Schema", schema)), wraps=("of the form", "what it is"))
    say("")
    say("--json prints the manifest as it is hashed, with both schemas; --source prints the source.")


def _size(count: int) -> str:
    for unit, size in (("MiB", 2**20), ("KiB", 2**10)):
        if count % size == 0:
            return f"{count // size} {unit}"
    return f"{count} bytes"


def _members(schema: Schema, within: str = "") -> Iterator[list[str]]:
    """Each member of what a schema describes, and their members: path, form, whether it has to be there, meaning."""
    for name, member in schema.get("properties", {}).items():
        path = f"{within}{name}"
        required = "yes" if name in schema.get("required", ()) else "no"
        yield [path, _form(member), required, member.get("description", "")]
        while "items" in member:
            path, member = f"{path}[]", member["items"]
        yield from _members(member, f"{path}.")


def _form(schema: Schema) -> str:
    """What a schema asks of one value, in short."""
    if "enum" in schema:
        return ", ".join(map(str, schema["enum"]))
    kind = schema.get("type")
    if kind == "boolean":
        return "true or false"
    if kind == "array":
        listed = _form(schema.get("items", {}))
        return f"list{_bounds(schema, 'minItems', 'maxItems')} of: {listed}"
    if kind == "string" and "format" in schema:
        return FORMATS.get(schema["format"], schema["format"])
    if kind == "string" and "pattern" in schema:
        return FORMS.get(schema["pattern"], f"string that matches {schema['pattern']}")
    if kind == "string":
        return f"string{_bounds(schema, 'minLength', 'maxLength')}"
    above = f", more than {schema['exclusiveMinimum']}" if "exclusiveMinimum" in schema else ""
    kinds = " or ".join(kind) if isinstance(kind, list) else kind or "any value"
    return f"{kinds}{above}{_bounds(schema, 'minimum', 'maximum')}"


def _bounds(schema: Mapping[str, object], least: str, most: str) -> str:
    unit = {"minLength": " characters", "minItems": " items"}.get(least, "")
    if least in schema and most in schema:
        return f", {schema[least]} to {schema[most]}{unit}"
    if least in schema:
        return f", {schema[least]} or more{unit}"
    return f", at most {schema[most]}{unit}" if most in schema else ""
