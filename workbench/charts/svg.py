"""A chart as SVG within a page: no script, no style, no foreign address, and every mark that leads somewhere is a link.

    to_svg(report.plot(link=shows), width=880, titled=False)
    titles(report.plot())                                      # what the page writes above and below instead
    plan(report.plot(link=shows), width=880)                   # the same still to be drawn, in any process

Colors are CSS variables (`workbench.charts.colours.stylesheet`). The same chart makes the same text.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import altair as alt
import orjson

from workbench.charts.drawing import Drawn
from workbench.charts.inline.addresses import path_of
from workbench.charts.inline.fitting import fitted, widened
from workbench.charts.inline.plans import Plan, drawn


class Titles(NamedTuple):
    """The texts of a chart.

    Attributes:
        finding: The sentence that says what it shows.
        notes: What was looked at, and how to read it.
    """

    finding: str
    notes: tuple[str, ...]


def titles(chart: Drawn) -> Titles:
    """What a page writes above and below a chart that is drawn without its titles."""
    finding, *notes = ("" if chart.description is alt.Undefined else chart.description).split("\n")
    return Titles(finding, tuple(notes))


def to_svg(chart: Drawn, *, width: int | None = None, titled: bool = True) -> str:
    """A chart as an <svg> element.

    Args:
        chart: A chart of this package.
        width: How wide everything is, in pixels; None for the width that the chart has in a notebook.
        titled: Whether its titles are drawn too. Without them it is still labeled with them.

    Raises:
        ValueError: The chart has facets, or cannot be drawn.
    """
    return drawn(plan(chart, width=width, titled=titled))


def plan(chart: Drawn, *, width: int | None = None, titled: bool = True) -> Plan:
    """What `to_svg` draws.

    Args:
        chart: As there.
        width: As there.
        titled: As there.

    Raises:
        ValueError: The chart has facets.
    """
    if isinstance(chart, alt.FacetChart):
        raise ValueError("A faceted chart has no width of its own; draw each of its parts.")
    # Holding it against the schema takes as long as drawing it, and the renderer refuses what it cannot draw.
    spec: dict[str, Any] = chart.to_dict(validate=False)
    spec["background"] = None
    if not titled:
        spec.pop("title", None)
    for rows in spec.get("datasets", {}).values():
        _without_foreign_links(rows)
    spec = widened(spec if width is None else fitted(spec, width))
    about = titles(chart)
    label = ". ".join(text.removesuffix(".") for text in (about.finding, *about.notes) if text)
    return Plan(orjson.dumps(spec), f"{label}.")


def _without_foreign_links(rows: list[dict[str, Any]]) -> None:
    # Vega fails at an address that it does not trust.
    for row in rows:
        if "href" in row and path_of(str(row["href"])) is None:
            row["href"] = None
