"""Describes how the values of a metric differ: by their median, else a quartile, else the share above or below it.

    Differing("upper_quartile", 0.0, 12.5)

If at least half of the values are equal, such as cases without a loss, the median stays although others moved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from gate.policy.anomalies.weekly.levels import SPREAD
from gate.policy.anomalies.weekly.tails import ABOVE, TAILS

MEDIAN: Final = "median"
ORDER: Final = "order"
SHARES: Final = ("above", "below")
"""The number of values above, or below, the earlier median."""

QUARTILES: Final[Mapping[str, str]] = {"upper_quartile": "upper quartile", "lower_quartile": "lower quartile"}


class Differing(NamedTuple):
    """The figure that best shows how values differ.

    Attributes:
        name: `median`, `upper_quartile`, or `lower_quartile` for these values; `above` or `below` for the share above
            or below the earlier median; `order` if only the ranks of single values differ.
        before: Its value before.
        within: Its value in the window.
    """

    name: str
    before: float
    within: float


def differing(level: Mapping[str, Any]) -> Differing:
    """The figure that best shows how the values of a level differ, from its numbers in the report."""
    then, now = level["before"], level["within"]
    rose = level["cliffs_delta"] > 0
    quartiles, shares = (list(QUARTILES), SHARES) if rose else (list(QUARTILES)[::-1], SHARES[::-1])
    for name in (MEDIAN, *quartiles):
        if _moved(then[name], now[name], rose=rose):
            return Differing(name, then[name], now[name])
    for name in shares:
        ends = then[name] / then["values"], now[name] / now["values"]
        if _moved(*ends, rose=rose == (name == SHARES[0])):
            return Differing(name, *ends)
    return Differing(ORDER, then[MEDIAN], now[MEDIAN])


def called(metric: str, level: Mapping[str, Any], versions: Sequence[str]) -> str:
    """A level in a sentence, without its end.

    Args:
        metric: The name of the metric.
        level: Its numbers in the report.
        versions: The versions that came with it.
    """
    since = f" with version {', '.join(versions)}" if versions else ""
    if level["version"] is not None:
        return _beside_others(metric, level)
    if level["of"] == SPREAD:
        return _spread(metric, level, since)
    if level["of"] in TAILS:
        return _tail(metric, level, since)
    found, moved = differing(level), "rose" if level["cliffs_delta"] > 0 else "fell"
    then, now = level["before"][MEDIAN], level["within"][MEDIAN]
    if found.name == MEDIAN:
        return f"The metric {metric} {moved} from a median of {then:,.6g} to {now:,.6g}{since}"
    stayed = f"its median {'stayed at' if then == now else f'went from {then:,.6g} to'} {now:,.6g}"
    if found.name in QUARTILES:
        told = f"its {QUARTILES[found.name]} went from {found.before:,.6g} to {found.within:,.6g}"
    elif found.name == ORDER:
        told = f"more of its values lie {'above' if moved == 'rose' else 'below'} the earlier ones than the reverse"
    else:
        told = f"the share of values {found.name} {then:,.6g} went from {found.before:.1%} to {found.within:.1%}"
    return f"The metric {metric} {moved}{since}: {told}, {stayed}"


def _moved(then: float, now: float, *, rose: bool) -> bool:
    return now > then if rose else now < then


def _tail(metric: str, level: Mapping[str, Any], since: str) -> str:
    tail, where = level["tail"], "above" if level["of"] == ABOVE else "of at most"
    then, now = tail["before"]["rate"], tail["within"]["rate"]
    moved = f"{'rose' if now > then else 'fell'} from {then:.1%} to {now:.1%}{since}"
    return f"The share of values of the metric {metric} {where} {tail['cut']:,.6g} {moved}"


def _beside_others(metric: str, level: Mapping[str, Any]) -> str:
    rose, found = level["cliffs_delta"] > 0, differing(level)
    if found.name in SHARES:
        middle = level["before"][MEDIAN]
        told = f"{found.within:.1%} of its values lie {found.name} {middle:,.6g}, {found.before:.1%} of theirs"
    elif found.name == ORDER:
        told = f"more of its values lie {'above' if rose else 'below'} theirs than the reverse"
    else:
        name = QUARTILES.get(found.name, found.name)
        told = f"its {name} is {found.within:,.6g}, theirs {found.before:,.6g}"
    return (
        f"The metric {metric} is {'higher' if rose else 'lower'} with version {level['version']} than with others "
        f"in the same weeks: {told}"
    )


def _spread(metric: str, level: Mapping[str, Any], since: str) -> str:
    then, now = level["before"], level["within"]
    ratios = ", measured by ratios" if level["scale"] == "ratio" else ""
    return (
        f"Values of the metric {metric} lie {'farther apart' if level['cliffs_delta'] > 0 else 'closer together'} than "
        f"before{since}{ratios}: the middle half of the values lay between {then['lower_quartile']:,.6g} and "
        f"{then['upper_quartile']:,.6g} before{_times(then, level)}, and lies between {now['lower_quartile']:,.6g} and "
        f"{now['upper_quartile']:,.6g} in the window{_times(now, level)}"
    )


def _times(of: Mapping[str, Any], level: Mapping[str, Any]) -> str:
    """How many times as great the upper quartile is as the lower one, where that is what is compared."""
    low, high = of["lower_quartile"], of["upper_quartile"]
    return f" ({high / low:,.4g} times)" if level["scale"] == "ratio" and low > 0 else ""
