"""Which decisions a page asks about: a slice of them, a page of a list, those that show an anomaly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import product
from typing import Final

from workbench.lake.reader import RECORDED


@dataclass(frozen=True, slots=True)
class Slice:
    """Which decisions a page looks at; None narrows nothing.

    Attributes:
        policy_version: One version of the policy.
        verdict: One verdict.
        since: From when, UTC.
        until: Until before when.
        clock: Which dates count: `recorded` or `occurred`.
    """

    policy_version: str | None = None
    verdict: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    clock: str = RECORDED


EVERYTHING: Final = Slice()


@dataclass(frozen=True, slots=True)
class Part:
    """Which page of a list.

    Attributes:
        limit: How many decisions it has at most.
        before: Only decisions before this chain position.
        after: Only decisions after this chain position.
        oldest_first: Whether the list begins with the oldest.
    """

    limit: int = 50
    before: int | None = None
    after: int | None = None
    oldest_first: bool = False


FIRST: Final = Part()


@dataclass(frozen=True, slots=True)
class Shown:
    """An anomaly whose decisions are listed.

    Attributes:
        policy_id: The policy.
        of: The decisions that the report is on.
        anomaly_id: The anomaly.
    """

    policy_id: str
    of: Slice
    anomaly_id: str


def wider(of: Slice) -> Iterator[Slice]:
    """Some decisions, then more and more of them: of all verdicts, of all versions, by the dates of the record."""
    each = ((of.clock, RECORDED), (of.policy_version, None), (of.verdict, None))
    for clock, version, verdict in dict.fromkeys(product(*each)):
        yield Slice(version, verdict, of.since, of.until, clock)
