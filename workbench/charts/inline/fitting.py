"""Fits a chart's specification to a width in pixels, including axes, legends, and full-size texts.

Vega makes the plot as wide as its axes and its legend allow. If there is too little room, names move above their rows,
the legend moves below the plot, and long names are shortened in the middle.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from textwrap import wrap
from typing import Any, Final

Spec = dict[str, Any]

BESIDE: Final = "beside"
"""The style of texts to the right of the plot, each next to its row."""

WIDER: Final = 1.18
"""By how much the widest of usual fonts exceeds the one that Vega measures with: texts are laid out so much larger than
they are shown.
"""

# Pixels that a character takes on average: in the type of axes, in bold, and in that of titles.
_CHARACTER: Final = 6.8
_BOLD: Final = 7.7
_LARGE: Final = 9.8
_SIZES: Final = ("fontSize", "subtitleFontSize", "labelFontSize", "titleFontSize")
_SHOWN: Final = 11
_TEXT: Final = _SHOWN * WIDER
_LINE: Final = 16
# A plot is at least this part of the whole.
_LEAST: Final = 0.45
_LONG_NAME: Final = 28
_NARROW: Final = 600
_LOW: Final = 240
_TAIL: Final = 12
# The width of legends and axes without their texts.
_SYMBOL: Final = 30
_MARGIN: Final = 24
_GROUP: Final = 60
_ABOVE: Final = 18
_ABOVE_GROUP: Final = 24
_CONFIG: Final[Mapping[str, Any]] = {
    "axis": {"labelFontSize": _TEXT, "titleFontSize": _TEXT, "titleFontWeight": 600, "labelSeparation": 8},
    # Vega chooses the plot's width before it chooses which labels overlap: a date at the end may come back too late.
    "axisXTemporal": {"labelBound": True, "labelFlush": 12},
    "legend": {"labelFontSize": _TEXT, "titleFontSize": _TEXT, "titleFontWeight": 600},
    "text": {"fontSize": _TEXT},
    "title": {"subtitleFontSize": _TEXT},
    "view": {"stroke": None},
}


def widened(spec: Spec) -> Spec:
    """The same chart with room for texts in the reader's font, which are shown `WIDER` times smaller than it says."""
    of = deepcopy(spec)
    of["config"] = {**of.get("config", {}), **_CONFIG}
    _enlarge(of.get("title"))
    for view in _views(of):
        _enlarge(view["mark"])
    for channel in _channels(of):
        _enlarge(channel.get("axis"))
    return of


def _enlarge(part: Any) -> None:
    if isinstance(part, dict):
        part |= {name: part[name] * WIDER for name in _SIZES if name in part}


def fitted(spec: Spec, width: int) -> Spec:
    """The same chart, so wide.

    Args:
        spec: A specification in Vega-Lite of one view, or of several layers.
        width: The width of everything, in pixels.
    """
    of = deepcopy(spec)
    of["width"], of["autosize"] = width, {"type": "fit-x", "contains": "padding"}
    if width < _NARROW and isinstance(of.get("height"), int):
        of["height"] = min(of["height"], _LOW)
    if "title" in of:
        _wrap_title(of["title"], width)
    for channel in _channels(of, "x"):
        _wrap_axis(channel, width)
    for channel in _channels(of, "y"):
        _lay_title(channel, width)
    beside = _place_names(of, width)
    _place_legends(of, width, int(width - beside))
    return of


def _views(spec: Spec) -> Iterator[Spec]:
    if "layer" in spec:
        for layer in spec["layer"]:
            yield from _views(layer)
    else:
        yield spec


def _channels(spec: Spec, *names: str) -> Iterator[Spec]:
    """The channels of all views, or those so named."""
    for view in _views(spec):
        for name, channel in view.get("encoding", {}).items():
            if isinstance(channel, dict) and (not names or name in names):
                yield channel


def _wrap_title(title: Spec, width: int) -> None:
    title["text"] = wrap(" ".join(title["text"]), int(width / _LARGE)) or [""]
    title["subtitle"] = wrap(" ".join(title.get("subtitle", [])), int(width / _CHARACTER))


def _wrap_axis(channel: Spec, width: int) -> list[str]:
    """Breaks the title of an axis into lines where it is wider than the chart."""
    lines = wrap(channel.get("title") or "", int((width - 2 * _MARGIN) / _BOLD))
    if lines:
        channel["title"] = lines
    return lines


def _lay_title(channel: Spec, width: int) -> None:
    """Puts the title of a vertical axis above it: along it, a title may be longer than the plot is high."""
    if channel.get("type") != "quantitative" or not (lines := _wrap_axis(channel, width)):
        return
    over = {"titleAngle": 0, "titleAlign": "left", "titleX": 0, "titleBaseline": "bottom"}
    channel["axis"] = {**(channel.get("axis") or {}), **over, "titleY": -10 - _LINE * (len(lines) - 1)}


def _place_names(spec: Spec, width: int) -> float:
    """Puts the names of rows above them, where beside them they would leave too little for the plot; how many pixels
    they take beside it.
    """
    named = [of for of in _channels(spec, "y") if (of.get("axis") or {}).get("labelLimit") == 0]
    if not named:
        return 0.0
    beside = [view for view in _views(spec) if isinstance(view["mark"], dict) and view["mark"].get("style") == BESIDE]
    names = _longest(spec, named)
    numbers = _longest(spec, [view["encoding"]["text"] for view in beside])
    if (names + numbers) * _CHARACTER + _MARGIN > (1 - _LEAST) * width:
        _put_above(spec, named, beside, names, numbers, int((width - _MARGIN) / _CHARACTER))
        left, above = 0.0, _LINE + 4
    else:
        left, above = -names * _CHARACTER - 8, 6
    for axis in (of["axis"] for of in named):
        lines = wrap(axis.get("title") or "", int((width - _MARGIN) / _BOLD))
        axis |= {"titleAlign": "left", "titleX": left, "titleY": -above - _LINE * (len(lines) - 1)}
        axis |= {"title": lines or None}
    if left and width < _NARROW:
        # A plot beside names is narrower than the title of its axis may be.
        for channel in _channels(spec, "x"):
            channel["axis"] = {**(channel.get("axis") or {}), "titleAnchor": "end"}
    return -left


def _put_above(spec: Spec, named: list[Spec], beside: list[Spec], names: int, numbers: int, room: int) -> None:
    """Puts names above their rows, and the numbers beside these at the other end of the line or on one of their own.

    Args:
        spec: The chart.
        named: The axes with names.
        beside: The views with the numbers.
        names: How many characters the longest name has.
        numbers: How many the longest number has.
        room: How many a line has room for.
    """
    apart = bool(numbers) and min(names, _LONG_NAME) + numbers > room
    lines = 2 if apart else 1
    grouped = any("yOffset" in view["encoding"] for view in _views(spec))
    spec["height"] = {"step": _GROUP if grouped else spec["height"]["step"] + lines * _LINE, "for": "position"}
    above = _ABOVE_GROUP if grouped else _ABOVE + (lines - 1) * _LINE
    for channel in named:
        if grouped:
            channel["scale"] = {**channel.get("scale", {}), "paddingInner": 0.55, "paddingOuter": 0.3}
        channel["axis"] |= {
            "labelAlign": "left",
            "labelPadding": 0,
            "labelOffset": -above,
            "labelExpr": _shortened(room if apart or not numbers else room - numbers - 2),
            "ticks": False,
            "domain": False,
            "grid": False,
        }
    for view in beside:
        view["encoding"]["x"] = {"value": 0 if apart else {"expr": "width"}}
        view["mark"] |= {"align": "left" if apart else "right", "dy": _LINE - above if apart else -above}


def _place_legends(spec: Spec, width: int, below: int) -> None:
    """Puts the legend below the plot, which is so wide, where beside it there is too little room."""
    with_legend = [of for of in _channels(spec, "color", "shape") if _has_legend(of)]
    longest = _longest(spec, with_legend)
    if not with_legend or (width >= _NARROW and longest <= _LONG_NAME):
        return
    room = int((below - _MARGIN - _SYMBOL) / _CHARACTER)
    columns = max(1, int((below - _MARGIN) / (min(longest, room) * _CHARACTER + _SYMBOL)))
    for channel in with_legend:
        channel["legend"] = {
            **channel.get("legend", {}),
            "orient": "bottom",
            "columns": columns,
            "offset": 12,
            "labelLimit": 0,
            "labelExpr": _shortened(room),
        }


def _has_legend(channel: Spec) -> bool:
    drawn = channel.get("legend", {}) is not None and channel.get("scale", {}) is not None
    return "field" in channel and drawn


def _longest(spec: Spec, channels: list[Spec]) -> int:
    """How many characters the longest value has that some channels show."""
    values = [str(value) for of in channels for value in (of.get("scale") or {}).get("domain", [])]
    fields = {of["field"] for of in channels if "field" in of}
    for rows in spec.get("datasets", {}).values():
        values += [str(row[field]) for row in rows for field in fields if row.get(field) is not None]
    return max(map(len, values), default=0)


def _shortened(characters: int) -> str:
    """An expression for labels without the middle of those that are longer."""
    most = max(characters, 2 * _TAIL)
    head = most - _TAIL - 1
    shorter = f"slice(datum.label, 0, {head}) + '…' + slice(datum.label, -{_TAIL})"
    return f"length(datum.label) > {most} ? {shorter} : datum.label"
