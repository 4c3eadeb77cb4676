"""Renders reports in a notebook: small HTML tables, with everything escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from html import escape
from typing import Final

import polars as pl

from workbench.engines.wording import day, heading, moment

_ROWS: Final = 60
_LONGEST: Final = 80
_NAME: Final = 60
_NAMES: Final = 5
# On the page as well as on paper, where each page repeats the head of a table and no row is torn in two.
_STYLE: Final = """<style>
.gate-report { line-height: 1.4; }
.gate-report h3, .gate-report h4 { margin: 1em 0 0.4em; break-after: avoid; }
.gate-report table { border-collapse: collapse; margin: 0.4em 0; }
.gate-report th, .gate-report td { padding: 0.2em 0.8em; text-align: left; vertical-align: top; }
.gate-report thead th { border-bottom: 2px solid currentColor; vertical-align: bottom; }
.gate-report tbody td, .gate-report .facts th, .gate-report .facts td { border-bottom: 1px solid #cccccc; }
.gate-report td.number { text-align: right; font-variant-numeric: tabular-nums; }
.gate-report .facts th { font-weight: 600; }
@media print {
  .gate-report { color: black; font-size: 10pt; }
  .gate-report tr { break-inside: avoid; }
  .gate-report thead { display: table-header-group; }
}
</style>"""
_SHARES: Final = ("effectiveness_score", "failure_rate", "terminal_coverage")


def page(
    title: str,
    facts: Sequence[tuple[str, object]],
    *frames: tuple[str, pl.DataFrame],
    said: Sequence[str] = (),
    small: Sequence[str] = (),
) -> str:
    """A report as HTML.

    Args:
        title: Its heading.
        facts: Fields of the report by name; they are shown in words, and moments as dates.
        frames: Tables by their captions; the columns are shown in words.
        said: Sentences under the heading, the finding first.
        small: Sentences in small print at the end.
    """
    sentences = "".join(f"<p>{escape(sentence)}</p>" for sentence in said if sentence)
    named = "".join(f"<tr><th>{_cell(heading(name))}</th><td>{_cell(value)}</td></tr>" for name, value in facts)
    tables = "".join(f"<h4>{escape(caption)}</h4>{table(frame)}" for caption, frame in frames if frame.height)
    notes = "".join(f"<p><small>{escape(sentence)}</small></p>" for sentence in small)
    return (
        f'<div class="gate-report">{_STYLE}<h3>{escape(title)}</h3>{sentences}'
        f'<table class="facts">{named}</table>{tables}{notes}</div>'
    )


def prompt(kind: str, of: str, scope: str, asked: str, *lines: str) -> str:
    """A report in a plain prompt: its subject and its results, in a few lines of text."""
    about = ", ".join(part for part in (f"{kind} of {cut(of)} in {cut(scope)}", asked) if part)
    return "\n  ".join([about, *(line for line in lines if line)])


def cut(text: str) -> str:
    """A name for use in a sentence: on one line, and shortened if it is too long to read."""
    line = on_one_line(text)
    return line if len(line) <= _NAME else f"{line[:_NAME]}..."


def on_one_line(text: str) -> str:
    """A text without characters that would start another line or control a terminal."""
    return "".join(character if character.isprintable() else "\ufffd" for character in text)


def listed(names: Sequence[str]) -> str:
    """The first few names, and the number of further ones."""
    more = f" and {len(names) - _NAMES:,} more" if len(names) > _NAMES else ""
    return f"{', '.join(map(cut, names[:_NAMES]))}{more}"


def percent(share: float | None) -> str:
    """A share of a whole, in percent with one decimal; a dash where there is none."""
    return "-" if share is None else f"{share:.1%}"


def interval(rate: float | None, low: float | None, high: float | None) -> str:
    """A rate with its interval, `84.5% (83.0-85.9%)`; a dash where there is none."""
    return "-" if rate is None or low is None or high is None else f"{rate:.1%} ({low * 100:.1f}-{high * 100:.1f}%)"


def of_terminal(rate: Mapping[str, float | None], terminal: int) -> str:
    """A success rate `{rate, low, high}`, and the number of its terminal outcomes."""
    return f"{interval(**rate)} of {terminal:,} terminal outcomes" if terminal else "no terminal outcomes"


def readable(frame: pl.DataFrame) -> pl.DataFrame:
    """A frame with `success_rate`, `low`, and `high` in one column, and every rate as a percentage."""
    told = [interval(*row) for row in frame.select("success_rate", "low", "high").rows()]
    shares = [pl.Series(name, list(map(percent, frame[name])), pl.String) for name in _SHARES if name in frame.columns]
    read = frame.with_columns(pl.Series("success_rate", told, pl.String), *shares).drop("low", "high")
    return read.rename({"success_rate": "success rate (95% interval)"})


def table(frame: pl.DataFrame) -> str:
    """The first 60 rows of a frame as an HTML table; a line says how many more there are."""
    head = "".join(f"<th>{_cell(heading(name))}</th>" for name in frame.columns)
    body = "".join(f"<tr>{''.join(map(_data, row))}</tr>" for row in frame.head(_ROWS).rows())
    more = f"<p>and {frame.height - _ROWS:,} more</p>" if frame.height > _ROWS else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _data(value: object) -> str:
    # Numbers are compared from the right.
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return f'<td class="number">{_cell(value)}</td>' if number else f"<td>{_cell(value)}</td>"


def _cell(value: object) -> str:
    text = _text(value)
    return escape(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}...")


def _text(value: object) -> str:
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case datetime():
            return moment(value)
        case date():
            return day(value)
        case int():
            return f"{value:,}"
        case float():
            return f"{value:,.6g}"
    return on_one_line(str(value))
