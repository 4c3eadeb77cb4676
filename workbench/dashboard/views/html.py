"""How views become HTML: templates that escape whatever is put into them, and the few forms that numbers take.

Every name in a ledger was chosen by a caller. No view joins text to HTML by hand: templates escape it, and what is
`Markup` already was made by a template or by `workbench.charts.svg`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from workbench.engines.rendering import cut, interval, on_one_line, percent
from workbench.engines.wording import amount, counted, day, decided_by, described, phrase, stated
from workbench.engines.wording import moment as shown_moment

_WHOLE: Final = 24
_TEMPLATES: Final = Path(__file__).parent / "templates"


def render(template: str, context: Mapping[str, Any]) -> Markup:
    """A template of `templates/` with its context.

    Args:
        template: The template's file name.
        context: What it shows, by name; a name that is missing is an error.
    """
    return Markup(_environment().get_template(template).render(context))  # noqa: S704


def compile_templates() -> None:
    """Compiles every template, which otherwise happens when it is first used."""
    environment = _environment()
    for name in environment.list_templates():
        environment.get_template(name)


def ago(moment: datetime, now: datetime) -> str:
    """How long ago a moment was: `3 hours`, `12 days`."""
    minutes = max(0, int((now - moment).total_seconds() // 60))
    for unit, size in (("day", 1440), ("hour", 60)):
        if minutes >= size:
            return counted(minutes // size, unit)
    return counted(minutes, "minute") if minutes else "less than a minute"


def lasting(span: timedelta) -> str:
    """How long something lasts, in its two largest units and rounded to the nearer of the lesser: `3 h 59 min`,
    `2 days 4 h`; `4 hours` where nothing is left over.
    """
    minutes = max(0, round(span.total_seconds() / 60))
    if minutes < 60:
        return counted(minutes, "minute") if minutes else "less than a minute"
    if minutes < 1440:
        hours_, rest = divmod(minutes, 60)
        return f"{hours_} h {rest} min" if rest else counted(hours_, "hour")
    days, rest = divmod(round(minutes / 60), 24)
    return f"{counted(days, 'day')} {rest} h" if rest else counted(days, "day")


def number(value: float | None) -> str:
    """A number with thousands separated; a dash where there is none."""
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else amount(value)


def hours(value: float | None) -> str:
    """A time in hours, in the unit that reads best; a dash where there is none."""
    if value is None:
        return "-"
    if value < 1:
        return f"{value * 60:.0f} min"
    return f"{value:.1f} h" if value < 48 else f"{value / 24:.1f} days"


def points(share: float | None) -> str:
    """A difference of two shares in percentage points, with its sign; a dash where there is none."""
    return "-" if share is None else f"{share * 100:+.1f}"


def line(text: object) -> str:
    """A caller's text on one line, with a sign in the place of what would not show; a dash where there is none."""
    return "-" if text is None else on_one_line(str(text))


def short(text: object) -> str:
    """A caller's text on one line, as long as it can be read in a table; a dash where there is none."""
    return "-" if text is None else cut(str(text))


def breaking(text: object) -> Markup:
    """As `short`, and where a line may end within a name; names in code have no spaces."""
    shown = escape(short(text))
    for sign in "_/":
        shown = shown.replace(sign, Markup("{}<wbr>").format(sign))
    return shown


def whole(text: object) -> Markup:
    """As `short`, and on one line where it is no longer than most ids: a hyphen in one ends no line."""
    shown = short(text)
    return Markup('<span class="unbroken">{}</span>').format(shown) if len(shown) <= _WHOLE else escape(shown)


def clock(moment: datetime) -> str:
    """A moment in a list, to the minute in UTC: `2026-07-14 05:20`."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M}"


def prose(text: str) -> Markup:
    """A sentence in which commands stand between backticks."""
    parts = [escape(part) for part in text.split("`")]
    if len(parts) % 2 == 0:
        return escape(text)
    return Markup("").join(Markup("<code>{}</code>").format(part) if at % 2 else part for at, part in enumerate(parts))


def when(moment: datetime | str | None) -> str:
    """A moment or a timestamp to the minute, in UTC; a dash where there is none."""
    if moment is None:
        return "-"
    if isinstance(moment, str):
        return stated(moment)
    return shown_moment(moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment)


_FILTERS: Final[Mapping[str, Callable[..., object]]] = {
    "breaking": breaking,
    "clock": clock,
    "counted": counted,
    "cut": short,
    "day": day,
    "decided_by": decided_by,
    "described": described,
    "hours": hours,
    "interval": interval,
    "line": line,
    "number": number,
    "percent": percent,
    "phrase": phrase,
    "points": points,
    "prose": prose,
    "when": when,
    "whole": whole,
}


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters.update(_FILTERS)
    return made
