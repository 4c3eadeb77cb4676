"""What the first reader would otherwise wait for, done before the server listens."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Final

import polars as pl

from gate.policy.questions import VERDICTS
from workbench.charts import metrics, weekly
from workbench.charts.drawing import Drawn
from workbench.charts.inline.plans import Draw
from workbench.dashboard.views.figure import Canvas
from workbench.dashboard.views.html import compile_templates

_MONDAY: Final = date(2026, 1, 5)
_WEEKS: Final = 20
# Each renderer draws some of them, and the first ones more slowly than those after.
_TIMES: Final = 4
_VALUES: Final = {"p25": 1.0, "median": 2.0, "p75": 3.0, "min": 0.0, "max": 4.0}


def warm_up(draw: Draw) -> None:
    """Compiles the templates, and draws made-up charts until the renderers draw as fast as they will.

    Args:
        draw: What draws the charts of pages.
    """
    compile_templates()
    canvas = Canvas(880, draw)
    for wait in [canvas.begin(chart) for _ in range(_TIMES) for chart in (_over_time(), _by_name())]:
        wait()


def _over_time() -> Drawn:
    rows = [
        {"week": _MONDAY + timedelta(weeks=number), "policy_version": "v1", "verdict": verdict, "decisions": 1}
        for number in range(_WEEKS)
        for verdict in VERDICTS
    ]
    return weekly.verdicts(pl.DataFrame(rows), "", (), link=lambda row: f"/decisions?verdict={row['verdict']}")


def _by_name() -> Drawn:
    rows = [{"name": "metric", "policy_version": f"v{number}", "decisions": 20, **_VALUES} for number in range(_WEEKS)]
    return metrics.by_version(pl.DataFrame(rows), "metric", "", (), link=lambda row: "/decisions")
