"""The names that a release promises beside its HTTP API: commands, exported names, settings, metrics, the lake.

Each line of surface.txt is one promise, and the lines are sorted:

    command gate chain check --checkpoint
    lake cases.created_at Datetime(time_unit='ms', time_zone='UTC')
    metric gate_decisions status verdict
    python gate.client.Client
    setting database_url

A later release may add lines. docs/reference/compatibility.md says what taking one away needs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import polars as pl
from typer.main import get_command

import gate.client
import gate.verify
import workbench
from api.cli.main import app
from api.http.figures import FAMILIES, GAUGES, INFO
from gate.instance.settings import Settings
from workbench.columns import TABLES, DataType, schema

FILE: Final = Path(__file__).parent / "surface.txt"
MODULES: Final = (gate.client, gate.verify, workbench)


def current() -> list[str]:
    """The promises of this head."""
    return sorted({*_commands(get_command(app), "gate"), *_exports(), *_settings(), *_metrics(), *_lake()})


def frozen() -> list[str]:
    """The promises that were made."""
    return FILE.read_text("utf-8").splitlines()


def taken_away(promised: Iterable[str], kept: Iterable[str]) -> list[str]:
    """A sentence for each promise that is not kept."""
    return [f"This is gone: {line}" for line in sorted(set(promised) - set(kept))]


def freeze() -> int:
    """Writes surface.txt anew; 1, and the file as it was, if a promise is not kept."""
    kept = current()
    if gone := taken_away(frozen() if FILE.exists() else [], kept):
        sys.stderr.writelines(f"{sentence}\n" for sentence in gone)
        sys.stderr.write(f"{FILE.name} stays as it is.\n")
        return 1
    FILE.write_text("".join(f"{line}\n" for line in kept), "utf-8")
    return 0


def _commands(command: Any, path: str) -> Iterator[str]:
    if hasattr(command, "list_commands"):
        for name in command.list_commands(None):
            yield from _commands(command.get_command(None, name), f"{path} {name}")
    else:
        yield f"command {path}"
    for parameter in command.params:
        # An argument has a place, and its name is only shown.
        names = parameter.opts + parameter.secondary_opts if parameter.param_type_name == "option" else ["ARGUMENT"]
        yield from (f"command {path} {name}" for name in names)


def _exports() -> Iterator[str]:
    for module in MODULES:
        yield from (f"python {module.__name__}.{name}" for name in module.__all__)


def _settings() -> Iterator[str]:
    yield from (f"setting {name}" for name in Settings.__struct_fields__)


def _metrics() -> Iterator[str]:
    for family in FAMILIES:
        yield " ".join(["metric", family.name, *sorted(family.labels)])
    yield from (f"metric {name}" for name in (f"{INFO[0]}_info", *GAUGES))


def _lake() -> Iterator[str]:
    for table in TABLES:
        yield from (f"lake {table}.{column} {_type(of)}" for column, of in schema(table).items())


def _type(of: DataType) -> str:
    # An enum may get more values.
    return "Enum" if isinstance(of, pl.Enum) else str(of)
