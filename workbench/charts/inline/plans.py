"""The input of a drawing, and the drawing itself: a value goes in and text comes out, in any process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import Final

from workbench.charts.colours import VARIABLES, variable
from workbench.charts.inline.addresses import path_of
from workbench.charts.inline.cleaning import cleaned
from workbench.charts.inline.fitting import WIDER

_COLOURS: Final = {colour: variable(colour) for colour in VARIABLES}


@dataclass(frozen=True, slots=True)
class Plan:
    """A drawing that is still to be made.

    Attributes:
        spec: The chart's specification in Vega-Lite, as JSON.
        label: What it shows, for a reader who does not see it.
    """

    spec: bytes
    label: str

    @property
    def id(self) -> str:
        """What every id in the drawing begins with, so that no two charts of a page share one."""
        return f"chart-{sha256(self.spec).hexdigest()[:12]}"


Draw = Callable[[Plan], Callable[[], str]]
"""Begins a drawing; what it returns waits for the <svg> element."""


def drawn(plan: Plan) -> str:
    """The <svg> element.

    Raises:
        ValueError: The specification cannot be drawn.
    """
    import vl_convert

    svg = vl_convert.vegalite_to_svg(plan.spec.decode(), allowed_base_urls=[])
    return cleaned(svg, label=plan.label, prefix=plan.id, path_of=path_of, colours=_COLOURS, larger=WIDER)


def drawn_here(plan: Plan) -> Callable[[], str]:
    """Draws in the process and the thread that waits for it."""
    return partial(drawn, plan)
