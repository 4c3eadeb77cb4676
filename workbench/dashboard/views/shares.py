"""How a whole divides into parts: a bar of shares, with a number and a link for each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gate.policy.effectiveness import share
from workbench.engines.wording import whole_percent


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a whole.

    Attributes:
        name: Its name.
        count: How many it counts.
        told: Its share, in whole percent.
        before: How many the parts before it count.
        url: Where it leads.
    """

    name: str
    count: int
    told: str
    before: int
    url: str


@dataclass(frozen=True, slots=True)
class Mix:
    """The parts of a whole.

    Attributes:
        parts: Those that count any, in their order.
        whole: How many all of them count.
    """

    parts: tuple[Part, ...]
    whole: int

    @property
    def label(self) -> str:
        """The parts in words."""
        return ", ".join(f"{part.name} {part.told}" for part in self.parts)


def mix(counts: Mapping[str, int], urls: Mapping[str, str]) -> Mix:
    """How a whole divides into parts.

    Args:
        counts: How many each part counts.
        urls: Where each part leads.
    """
    whole, before, parts = sum(counts.values()), 0, []
    for name, count in counts.items():
        if count:
            parts.append(Part(name, count, whole_percent(share(count, whole) or 0.0), before, urls[name]))
        before += count
    return Mix(tuple(parts), whole)
