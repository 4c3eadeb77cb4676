"""The parts of every chart: `rows` for its data, `name` for its texts, `titled` for the whole, and `with_links` and
`linked` for marks with a link.

Chart libraries trust a specification. Altair writes it unescaped into a <script>, and the menu of a drawn chart writes
it unescaped into a page ("View Source"). But callers choose the names of versions, reasons, and metrics. So no text of
a chart contains `<`, which starts every tag: a quotation mark of the same shape replaces it. That is true in every
format and renderer, also if the chart becomes part of another. Line breaks and unprintable characters are replaced too,
because they would break Vega's expressions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from itertools import count
from textwrap import wrap
from typing import Any, Final

import altair as alt
import polars as pl
import polars.selectors as cs

from workbench.charts.inline.addresses import ORIGIN, PATH
from workbench.charts.inline.fitting import BESIDE
from workbench.engines.rendering import on_one_line
from workbench.engines.wording import heading

Drawn = alt.LayerChart | alt.FacetChart

Link = Callable[[Mapping[str, Any]], str | None]
"""What a mark leads to: from the row that it shows to a path of the page's server; None where it leads nowhere."""

PERCENT: Final = alt.Axis(format="%")
# Small charts have ticks between whole numbers, also with `tickMinStep`.
COUNT: Final = alt.Axis(labelExpr="datum.value % 1 ? '' : format(datum.value, ',d')")
SHARE: Final = alt.Scale(domain=[0, 1])

# A quotation mark, which every font has.
_LESS_THAN: Final = "\u2039"
_LONGEST: Final = 80
_FEW_DAYS: Final = 60
_TAIL: Final = 24
# Pixels that a character takes on average, in bold type and in plain.
_BOLD: Final = 7.2
_PLAIN: Final = 5.6
_RATES: Final = ("rate", "success_rate", "low", "high", "terminal_coverage", "share", "yours", "delta")
_PERCENTILES: Final = ("p10", "p25", "p50", "p75", "p90")
_FORMATS: Final = {
    **dict.fromkeys((*_RATES, *_PERCENTILES), ".1%"),
    **dict.fromkeys(("score", "modified_z"), ".2f"),
    **dict.fromkeys(("value", "usual"), ",.6~g"),
    **dict.fromkeys(("median_hours", "p90_hours"), ",.1f"),
}
_DATES: Final = ("week", "start", "from", "to", "last_hit_at", "in_force_since")


def name(text: str) -> str:
    """A text of a chart, on one line and without markup."""
    return on_one_line(text).replace("<", _LESS_THAN)


def labels(names: Sequence[str]) -> list[str]:
    """Names as axes and legends show them: whole up to 80 characters, and no two the same.

    A longer one is shown with its beginning and its end, where long names differ.
    """
    shown: dict[str, None] = {}
    for text in map(name, names):
        short = text if len(text) <= _LONGEST else f"{text[: _LONGEST - _TAIL - 1]}…{text[-_TAIL:]}"
        numbered = (short if number == 1 else f"{short} ({number})" for number in count(1))
        shown[next(each for each in numbered if each not in shown)] = None
    return list(shown)


def rows(frame: pl.DataFrame) -> alt.Chart:
    """A chart of a frame's rows, with each text as `name` writes it, and each moment in UTC wherever it is drawn."""
    texts = [column for column, dtype in frame.schema.items() if dtype == pl.String or dtype == pl.Enum]
    return alt.Chart(
        frame.with_columns(
            *(
                pl.Series(column, [None if text is None else name(text) for text in frame[column]], pl.String)
                for column in texts
            ),
            # Vega would move a moment with a time zone to that of the machine or of the reader.
            cs.datetime(time_zone="*").dt.convert_time_zone("UTC").dt.replace_time_zone(None),
        )
    )


def with_links(
    frame: pl.DataFrame,
    link: Link | None,
    says: Callable[[Mapping[str, Any]], str],
    *,
    shows: str = "these decisions",
) -> pl.DataFrame:
    """A frame whose rows know what their marks lead to and say; the same frame without a link.

    Args:
        frame: The rows.
        link: From a row to a path.
        says: From a row to a sentence: what its mark shows, for a reader who does not see it.
        shows: What the link shows, for the same reader.

    Raises:
        ValueError: A link is no path.
    """
    if link is None:
        return frame
    shown = list(frame.iter_rows(named=True))
    return frame.with_columns(
        pl.Series("href", [_address(link(row)) for row in shown], pl.String),
        pl.Series("says", [f"{says(row)}; shows {shows}" for row in shown], pl.String),
    )


def linked(chart: alt.Chart, link: Link | None) -> alt.Chart:
    """Marks that lead where `with_links` says; the same chart without a link."""
    if link is None:
        return chart
    leading: alt.Chart = chart.encode(href=alt.Href("href:N"), description=alt.Description("says:N"))
    return leading


def _address(path: str | None) -> str | None:
    if path is None:
        return None
    if not PATH.fullmatch(path):
        raise ValueError(f"The link {path!r} is not a path; start it with a single slash, and percent-encode names.")
    return f"{ORIGIN}{path}"


def runs(weekly: pl.DataFrame, by: str) -> pl.DataFrame:
    """The rows with `run`, which changes where a line pauses for a week or more, so that no line crosses weeks without
    values.

    `alone` says whether a run is a single week. A column identifies the line of each row.
    """
    paused = (pl.col("week").diff() != pl.duration(weeks=1)).fill_null(value=True).over(by)
    numbered = weekly.sort(by, "week").with_columns(paused.cum_sum().alias("run"))
    return numbered.with_columns((pl.len().over("run") == 1).alias("alone"))


def titled(
    layers: Sequence[alt.Chart | alt.LayerChart],
    finding: str,
    notes: Sequence[str],
    *,
    width: int,
    height: int | alt.Step,
    outside: int = 90,
) -> Drawn:
    """The whole chart, under a sentence that says what it shows.

    Args:
        layers: Its layers.
        finding: The sentence.
        notes: More sentences, in smaller type: what was looked at, and how to read the chart.
        width: The width of the plot, in pixels.
        height: Its height, or that of each of its rows.
        outside: How many pixels titles may go beyond the plot: the axis labels and the legend.
    """
    room = width + outside
    title = alt.TitleParams(
        _wrapped(finding, room / _BOLD),
        subtitle=[line for note in notes if note for line in _wrapped(note, room / _PLAIN)],
        anchor="start",
        fontSize=14,
        subtitleColor="#404040",
        subtitlePadding=4,
        offset=12,
    )
    # Line by line: neither breaks within a text. A reader who does not see the chart reads it too.
    described = "\n".join(name(text) for text in (finding, *notes) if text)
    # Given here, for `properties` copies the whole chart with its rows.
    return alt.layer(*layers, title=title, width=width, height=height, description=described)


def tooltip(*columns: str) -> list[alt.Tooltip]:
    """What a chart shows of the row under the pointer."""
    return [_tooltip(column) for column in columns]


def _tooltip(column: str) -> alt.Tooltip:
    if column in _DATES:
        return alt.Tooltip(f"{column}:T", title=heading(column), format="%-d %B %Y")
    if column in _FORMATS:
        return alt.Tooltip(f"{column}:Q", title=heading(column), format=_FORMATS[column])
    return alt.Tooltip(column, title=heading(column))


def names_axis(title: str | None) -> alt.Axis:
    """An axis of names, each of them whole, with its title above them."""
    return alt.Axis(
        title=title,
        titleAngle=0,
        titleAlign="right",
        titleAnchor="start",
        titleX=-8,
        titleY=-6,
        titleLimit=0,
        labelLimit=0,
        # Else a title is drawn over labels that are longer than this.
        maxExtent=10_000,
        grid=True,
    )


def beside_plot(base: alt.Chart) -> alt.Chart:
    """Texts to the right of the plot, each next to its row; above it if there is little room."""
    at = alt.XValue(alt.expr("width + 8"))  # type: ignore[no-untyped-call]
    texts: alt.Chart = base.mark_text(align="left", fontSize=11, style=BESIDE).encode(x=at)
    return texts


def months(moments: pl.Series) -> alt.Axis:
    """An axis with month and year; with the day too where there are too few weeks for months to tell them apart."""
    first, last = moments.min(), moments.max()
    if isinstance(first, date) and isinstance(last, date) and (last - first).days < _FEW_DAYS:
        if moments.dtype == pl.Date:
            # Weeks begin on Mondays, those of Vega on Sundays.
            weeks = [alt.DateTime(year=of.year, month=of.month, date=of.day) for of in moments.unique().sort()]
            return alt.Axis(format="%-d %b %Y", values=weeks, labelOverlap="greedy")
        return alt.Axis(
            format="%-d %b %Y", tickCount=alt.TimeIntervalStep(interval="week", step=1), labelOverlap="greedy"
        )
    return alt.Axis(format="%b %Y", tickCount=alt.TimeIntervalStep(interval="month", step=1), labelOverlap="greedy")


def legend(title: str) -> alt.Legend:
    """A legend that shows every name whole."""
    return alt.Legend(title=title, labelLimit=0, titleLimit=0, symbolSize=90, symbolOpacity=1)


def _wrapped(text: str, characters: float) -> list[str]:
    return wrap(name(text), max(40, int(characters))) or [""]
