"""What the command line prints: JSON for machines on stdout, tables and sentences for people."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any, Final

import orjson
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from gate.errors import GateError

_WIDE: Final = 1000


def print_json(value: Any) -> None:
    """A JSON value on stdout, indented."""
    sys.stdout.write(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode() + "\n")


def say(text: str, *, style: str | None = None) -> None:
    """A sentence for a person on stdout; markup in it is shown, not obeyed."""
    Console(highlight=False, soft_wrap=True).print(escape(text), style=style)


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table for a person on stdout."""
    shown = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        shown.add_column(column)
    for row in rows:
        shown.add_row(*(escape("" if cell is None else str(cell)) for cell in row))
    # As wide as it needs: a folded id cannot be copied, and a terminal wraps long lines by itself.
    Console(highlight=False, width=_WIDE, soft_wrap=True).print(shown)


def fail(error: GateError, *, as_json: bool) -> None:
    """An error on stderr: {error, message, errors} for machines, the sentence for people."""
    if as_json:
        faults = [fault.to_dict() for fault in error.errors]
        document = {"error": error.code, "message": error.message, "errors": faults}
        sys.stderr.write(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode() + "\n")
        return
    sys.stderr.write(f"gate: {error.message} ({error.code})\n")
    for fault in error.errors:
        sys.stderr.write(f"  {fault.field}: {fault.message}\n")
