"""Figures and how they are taken: subjects in turn, round by round, so that what else the machine does meets them all.

A ratio is formed within each round, and its median reported: it holds where the machine's speed drifts.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from timeit import Timer
from typing import Any, Final, TypeVar

Figure = TypeVar("Figure")

# timeit switches the garbage collector off; production does not.
_SETUP: Final = "import gc; gc.enable()"


class Mismatch(Exception):
    """A subject gave a wrong answer, so that its time means nothing."""


@dataclass(frozen=True, slots=True)
class Spread:
    """The figures of several rounds: their median, lowest and highest."""

    median: float
    lowest: float
    highest: float

    def to_dict(self, unit: str = "") -> dict[str, float]:
        """{median, min, max}, each name with `_<unit>` where there is one."""
        suffix = f"_{unit}" if unit else ""
        named = {"median": self.median, "min": self.lowest, "max": self.highest}
        return {f"{name}{suffix}": round(value, 4) for name, value in named.items()}

    @classmethod
    def from_dict(cls, figures: Mapping[str, float], unit: str = "") -> Spread:
        """What `to_dict` was called on."""
        suffix = f"_{unit}" if unit else ""
        return cls(*(figures[f"{name}{suffix}"] for name in ("median", "min", "max")))

    def cells(self, form: str = ".2f") -> list[str]:
        """The median and, as `min..max`, the rest, for a table."""
        return [f"{self.median:{form}}", f"{self.lowest:{form}}..{self.highest:{form}}"]


def spread(figures: Sequence[float]) -> Spread:
    """The spread of at least one figure."""
    return Spread(statistics.median(figures), min(figures), max(figures))


def ratio(numerators: Sequence[float], denominators: Sequence[float]) -> Spread:
    """The spread of the ratios of two subjects, round by round."""
    return spread([over / under for over, under in zip(numerators, denominators, strict=True)])


def percentile(ordered: Sequence[float], percent: float) -> float:
    """The value that so many percent of ascending values do not exceed."""
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def alternate(subjects: Mapping[str, Callable[[], Figure]], rounds: int) -> dict[str, list[Figure]]:
    """A figure of each subject in turn, and so on for all rounds.

    Every other round goes the other way, so that none gains or loses by what comes before it, or by coming late.
    """
    taken: dict[str, list[Figure]] = {name: [] for name in subjects}
    for number in range(rounds):
        for name in list(subjects)[:: 1 if number % 2 == 0 else -1]:
            taken[name].append(subjects[name]())
    return taken


def stopwatch(statement: str, names: Mapping[str, Any], seconds: float) -> Callable[[], float]:
    """What times a statement: each call runs it for about so many seconds and gives the microseconds of one run.

    Args:
        statement: The Python statement.
        names: What its names mean.
        seconds: How long one round takes.
    """
    timer = Timer(statement, _SETUP, globals=dict(names))
    number = 1
    while (taken := timer.timeit(number)) < seconds:
        number *= 2
    number = max(1, int(number * seconds / taken))
    return lambda: timer.timeit(number) / number * 1e6
