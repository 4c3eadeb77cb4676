"""gate adapters: look at the trusted adapters of this release, and run one on a file. No instance is needed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from api.cli.options import DEFAULT_HOME, DatabaseUrl, Home, Json, read_json
from api.cli.output import note, print_json, say, table
from gate.adapters.containment import MEASURES
from gate.adapters.invocation import TrustedAdapters, accepted_invocation
from gate.adapters.manifest import Adapter
from gate.adapters.registry import registered
from gate.adapters.worker import Workers
from gate.errors import OperatorError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Look at the trusted adapters of this release, and run one. They need no instance.",
)

Name = Annotated[str, typer.Argument(metavar="ADAPTER", help="An adapter: its id, or adapter_id@version.")]


@app.command("list")
def list_(home: Home = DEFAULT_HOME, database_url: DatabaseUrl = None, as_json: Json = False) -> None:
    """List the adapters, and say what holds their workers on this machine."""
    adapters = TrustedAdapters(registered(), Workers(registered()))
    try:
        measures = adapters.measures()
    finally:
        adapters.close()
    if as_json:
        names = ("adapter_id", "version", "title", "manifest_hash", "implementation_hash")
        listed = [{name: manifest[name] for name in names} for manifest in adapters.manifests()]
        print_json({"adapters": listed, "in_force": list(measures.in_force), "reason": measures.reason})
        return
    table(
        ["adapter", "version", "what it is", "manifest_hash"],
        [
            [manifest["adapter_id"], manifest["version"], manifest["title"], manifest["manifest_hash"]]
            for manifest in adapters.manifests()
        ],
    )
    if measures.reason is not None:
        note(f"gate: No adapter can run on this machine, for {measures.reason}.")
        return
    say(f"Workers are held here by {', '.join(measures.in_force)}.")
    if missing := [measure for measure in MEASURES if measure not in measures.in_force]:
        say(f"Not in force here: {', '.join(missing)}. docs/adapters.md tells what each needs.")


@app.command()
def show(name: Name, home: Home = DEFAULT_HOME, database_url: DatabaseUrl = None, as_json: Json = False) -> None:
    """Show an adapter's manifest and, for people, the source that it is the manifest of."""
    adapter = _named(name)
    print_json(adapter.manifest)
    if not as_json:
        for line in adapter.source.decode().splitlines():
            say(line)


@app.command()
def run(
    name: Name,
    input_: Annotated[Path, typer.Option("--input", help="A file with the adapter's input in JSON; - for stdin.")],
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Run an adapter on an input, in a worker as a decision would, and print its facts. Nothing is recorded."""
    adapter = _named(name)
    adapters = TrustedAdapters(registered(), Workers(registered()))
    try:
        made = adapters.facts(accepted_invocation(adapter, read_json(input_), root=""))
    finally:
        adapters.close()
    if as_json:
        print_json({"adapter_facts": made.values, "trusted_adapter": made.trusted_adapter})
        return
    table(["fact", "value"], [[fact, _shown(value)] for fact, value in made.values.items()])
    told = made.trusted_adapter or {}
    say(f"input_hash {told['input_hash']}, output_hash {told['output_hash']}")


def _named(name: str) -> Adapter:
    """The adapter of that name; where it names no version, the one that is registered last."""
    found = [adapter for adapter in registered() if name in (adapter.adapter_id, adapter.name)]
    if not found:
        known = ", ".join(adapter.name for adapter in registered())
        raise OperatorError("ADAPTER_UNKNOWN", f"There is no adapter {name}; there are {known}.")
    return found[-1]


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
