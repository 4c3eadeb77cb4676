"""The option `--adapter`: the trusted adapter that makes the facts of a rulebook."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from gate.encoding.strict_json import JsonObject

# Loaded where an adapter is named; most rulebooks have none.
if TYPE_CHECKING:
    from gate.adapters.manifest import Adapter

AdapterName = Annotated[
    str | None,
    typer.Option("--adapter", help="The trusted adapter that makes the facts, by its id or as adapter_id@version."),
]


def facts_of(name: str | None) -> JsonObject | None:
    """The schema of the facts that an adapter makes; None without an adapter."""
    return None if name is None else adapter_of(name).facts_schema


def adapter_of(name: str) -> Adapter:
    """Finds an adapter of this release by its name.

    Raises:
        OperatorError: There is no adapter with this name.
    """
    from api.cli.adapters import adapter_named

    return adapter_named(name)
