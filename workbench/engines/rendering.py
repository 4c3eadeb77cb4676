"""How reports show themselves in a notebook: small tables of HTML, with everything escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any, Final

import polars as pl

_ROWS: Final = 60
_LONGEST: Final = 80


def page(title: str, facts: Sequence[tuple[str, Any]], *frames: tuple[str, pl.DataFrame]) -> str:
    """A title, facts by name, and tables by theirs, as HTML."""
    listed = "".join(f"<tr><th>{_cell(name)}</th><td>{_cell(value)}</td></tr>" for name, value in facts)
    tables = "".join(f"<h4>{escape(name)}</h4>{table(frame)}" for name, frame in frames if frame.height)
    return f"<div><h3>{escape(title)}</h3><table>{listed}</table>{tables}</div>"


def readable(frame: pl.DataFrame) -> pl.DataFrame:
    """A frame with `success_rate`, `low`, `high` in one column, as percents; so is `terminal_coverage`."""
    rates = frame.select("success_rate", "low", "high").rows()
    told = [None if rate is None else f"{rate:.1%} ({low:.1%} to {high:.1%})" for rate, low, high in rates]
    read = frame.with_columns(pl.Series("success_rate", told, pl.String)).drop("low", "high")
    if "terminal_coverage" in frame.columns:
        covered = [None if share is None else f"{share:.1%}" for share in frame["terminal_coverage"]]
        read = read.with_columns(pl.Series("terminal_coverage", covered, pl.String))
    return read.rename({"success_rate": "success rate (95 % interval)"})


def table(frame: pl.DataFrame) -> str:
    """The first 60 rows of a frame as an HTML table; a line says how many more there are."""
    head = "".join(f"<th>{_cell(name)}</th>" for name in frame.columns)
    body = "".join(
        f"<tr>{''.join(f'<td>{_cell(value)}</td>' for value in row)}</tr>" for row in frame.head(_ROWS).rows()
    )
    more = f"<p>and {frame.height - _ROWS} more</p>" if frame.height > _ROWS else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    text = f"{value:,.6g}" if type(value) is float else f"{value:,}" if type(value) is int else str(value)
    return escape(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}...")
