"""The output of the command line: JSON for machines on stdout, tables and sentences for people.

Records, packets, files, and arguments can contain characters that control a terminal. So commands print only with these
functions. They show characters that do not print, such as escape characters, line breaks, and changes of direction, as
escapes.
"""

from __future__ import annotations

import io
import json
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, TextIO

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gate.errors import GateError

WIDTH: Final = 100
"""The width that a table may have on every terminal, in columns."""

_GAP: Final = 2
_WRAPPED: Final = 12
_SECONDS_BETWEEN_LINES: Final = 5


def show_everything() -> None:
    """Makes stdout and stderr print an escape for a character that the terminal's encoding lacks."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def visible(text: str) -> str:
    r"""Returns a text with unprintable characters and line breaks as escapes, such as `\x1b` or `\u202e`."""
    return _escaped(text, _escape)


def print_json(value: object) -> None:
    """Prints a JSON value to stdout, indented."""
    _write_json(sys.stdout, value)


def compact(value: object) -> str:
    """A JSON value on one line, for people to copy."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def print_text(text: str) -> None:
    """Prints a text of several lines to stdout. Unprintable characters other than tabs become escapes."""
    lines = text.removesuffix("\n").split("\n")
    sys.stdout.writelines("\t".join(map(visible, line.split("\t"))) + "\n" for line in lines)


def say(text: str, *, style: str | None = None) -> None:
    """Prints a sentence for a person to stdout, on one line. Characters that control the terminal become escapes."""
    Console(soft_wrap=True).print(Text(visible(text), style=style or ""))


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, wraps: Collection[str] = ()) -> None:
    """Prints a table for a person to stdout, as wide as the terminal but at least `WIDTH` columns.

    Args:
        columns: The headings.
        rows: The cells of each row; None is shown as an empty cell.
        wraps: The columns of prose, which may continue on the next line. Other cells are never wrapped, because a
            wrapped id cannot be copied. They can make the table wider than the terminal.
    """
    cells = [["" if cell is None else visible(str(cell)) for cell in row] for row in rows]
    shown = Table(box=None, pad_edge=False, header_style="bold", padding=(0, _GAP, 0, 0))
    least = _GAP * (len(columns) - 1)
    for place, column in enumerate(columns):
        shown.add_column(column, no_wrap=column not in wraps, overflow="fold")
        natural = max(map(cell_len, (column, *(row[place] for row in cells))))
        least += min(natural, _WRAPPED) if column in wraps else natural
    for row in cells:
        shown.add_row(*map(Text, row))
    Console(width=max(WIDTH, Console().width if sys.stdout.isatty() else 0, least), soft_wrap=True).print(shown)


def records(names: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Prints rows that are too wide for a table: one block of `name  value` lines per row, separated by empty lines."""
    width = max(map(len, names))
    for number, row in enumerate(rows):
        if number:
            say("")
        for name, value in zip(names, row, strict=True):
            if value is not None and value != "":
                say(f"{name:<{width}}  {value}")


def minute(moment: str | None) -> str:
    """Formats a timestamp for a table, to the minute and in UTC, such as `2026-11-21 11:38`; empty for None."""
    return "" if moment is None else moment[:16].replace("T", " ")


def counted(number: int, one: str, many: str = "") -> str:
    """Formats a number with its noun, such as `1 entry` or `2,000 entries`.

    Args:
        number: The number.
        one: The singular.
        many: The plural; by default the singular with a final `s`.
    """
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def note(text: str) -> None:
    """Prints a sentence for a person to stderr, on one line, because stdout may be for machines."""
    sys.stderr.write(f"{visible(text)}\n")


def ask(question: str) -> bool | None:
    """Asks a yes-or-no question on the terminal; None without a terminal."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return None
    return typer.confirm(visible(question), err=True)


def ask_secret(question: str, *, twice: bool = True) -> str | None:
    """Asks for a secret on the terminal, which does not show it; None without a terminal.

    Args:
        question: The prompt.
        twice: Whether the secret is new and must be typed twice.
    """
    if not sys.stdin.isatty():
        return None
    return str(typer.prompt(visible(question), hide_input=True, confirmation_prompt=twice, err=True))


@contextmanager
def progress(
    text: str, total: int, *, as_json: bool = False, asked: bool | None = None
) -> Iterator[Callable[[int], None]]:
    """Shows progress on stderr while the block runs: a bar on a terminal, otherwise a line at intervals.

    Args:
        text: The label.
        total: The number of steps.
        as_json: Whether the command prints JSON, which turns progress off.
        asked: Whether to show progress; None shows it on a terminal.

    Returns:
        A function to call with the number of finished steps.
    """
    watched = sys.stderr.isatty()
    if as_json or not (watched if asked is None else asked):
        yield lambda done: None
        return
    if not watched:
        yield _lines(text, total)
        return
    # Loaded where it is used: no other command shows a progress bar.
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(visible(text), total=total)
        yield lambda done: bar.update(task, completed=done)


def _lines(text: str, total: int) -> Callable[[int], None]:
    """What notes on stderr how many are done, every few seconds and at the end."""
    told = time.monotonic()

    def tell(done: int) -> None:
        nonlocal told
        if done >= total or time.monotonic() - told >= _SECONDS_BETWEEN_LINES:
            told = time.monotonic()
            note(f"{text}: {done:,} of {total:,}")

    return tell


def fail(error: GateError, *, as_json: bool) -> None:
    """Prints an error to stderr: `{error, message, errors}` for machines, a sentence for people."""
    if as_json:
        faults = [fault.to_dict() for fault in error.errors]
        _write_json(sys.stderr, {"error": error.code, "message": error.message, "errors": faults})
        return
    note(f"gate: {error.message} ({error.code})")
    for fault in error.errors:
        note(f"  {fault.field}: {fault.message}")


def _write_json(stream: TextIO, value: object) -> None:
    lines = json.dumps(value, indent=2, ensure_ascii=False).split("\n")
    stream.writelines(f"{_escaped(line, _json_escape)}\n" for line in lines)


def _escaped(text: str, escape: Callable[[str], str]) -> str:
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else escape(character) for character in text)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode()


def _json_escape(character: str) -> str:
    """As JSON escapes it; half of a surrogate pair, which strict readers refuse even so, becomes text."""
    known = character if character.encode("utf-8", "ignore") else _escape(character)
    return json.dumps(known)[1:-1]
