"""What the anomaly report is made of: counts of a policy's decisions by week, by time of day, by fact and by metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

from gate.policy.anomalies.breaks import Broken
from gate.policy.anomalies.drift import Histogram
from gate.policy.anomalies.outliers import Outliers
from gate.policy.anomalies.weekly.costs import Measured
from gate.policy.anomalies.weekly.groups import Groups, design_effect
from gate.policy.anomalies.weekly.levels import MetricShift
from gate.policy.anomalies.weekly.stretch import moved

MAX_WEEKS: Final = 104
"""How many weeks are looked at for shifts, drift and volume, the latest."""

MAX_REASONS: Final = 50
"""How many reason codes are looked at, those of the most decisions."""

MAX_AGE: Final = 56
"""How old an outcome is at most when outcomes of equal age are compared, in days; older ones count as this old."""

TERMINAL: Final = ("succeeded", "partial", "failed", "reverted")

WORSE: Final[Mapping[str, bool]] = {"succeeded": False, "partial": True, "failed": True, "reverted": True}
"""Whether it is worse where the rate of a status rises."""

ENDED: Final[Mapping[str, str]] = {
    "succeeded": "that succeeded",
    "partial": "that were partial",
    "failed": "that failed",
    "reverted": "that were reverted",
}
"""Outcomes of a status, after the word."""


@dataclass(frozen=True, slots=True)
class Weeks:
    """What was counted week by week, each list with one number a week.

    Attributes:
        first: The Monday of the first week.
        decisions: The decisions.
        versions: Those of each policy version.
        verdicts: Those of each verdict.
        reasons: Those of each reason code.
        outcomes: Of each terminal status, by how many days the outcome came after the decision at most (from 1 to
            `MAX_AGE`, and of any age), the let-through actions with it.
        groups: In what groups the decisions of each verdict, reason and terminal status came, by what it is of and the
            value, and by the horizon, which is 0 for verdicts and reasons; each alone where it is not there.
        horizons: Of each week, the index of the age at which outcomes of a window that ends with it are compared; -1
            where the window ended less than a day ago.
        last: When the last of the decisions was made; UTC timestamp, None where it is not known.
    """

    first: date
    decisions: Sequence[int]
    versions: Mapping[str, Sequence[int]]
    verdicts: Mapping[str, Sequence[int]]
    reasons: Mapping[str, Sequence[int]]
    outcomes: Mapping[str, Sequence[Sequence[int]]]
    horizons: Sequence[int]
    groups: Mapping[tuple[str, str], Mapping[int, Groups]] = field(default_factory=dict)
    last: str | None = None

    def has_thin(self, least: int) -> bool:
        """Whether some weeks say less than so many single decisions of the rate of which groups are most alike."""
        return any(0 < count < least * self._most_effect(at) for at, count in enumerate(self.decisions))

    def _most_effect(self, at: int) -> float:
        every = (by_horizon[max(by_horizon)].sums(at, at) for by_horizon in self.groups.values() if by_horizon)
        return max((design_effect(sums, sums.total / sums.members) for sums in every if sums.members), default=1.0)

    @property
    def usual(self) -> int:
        """The decisions of a usual week: the lower median of those that have any."""
        counts = sorted(count for count in self.decisions if count)
        return counts[(len(counts) - 1) // 2] if counts else 0

    def starts(self, week: int) -> datetime:
        """When a week begins, by its index, UTC; the last moment of the calendar where that ends before."""
        return moved(datetime.combine(self.first, time(), UTC), timedelta(weeks=week))


@dataclass(frozen=True, slots=True)
class Cells:
    """The decisions of every whole hour, day or week, in a row.

    Attributes:
        start: Where the first begins.
        counts: The decisions in each.
        arrivals: As how many decisions that came singly they count; None where each came singly.
    """

    start: datetime
    counts: Sequence[int]
    arrivals: Sequence[int] | None = None


@dataclass(frozen=True, slots=True)
class Far:
    """Decisions that lie more than 104 weeks from all others.

    Attributes:
        decisions: How many there are.
        date: The date of one of them: the last where it lies after the others, else the first; UTC timestamp.
    """

    decisions: int
    date: str


@dataclass(frozen=True, slots=True)
class Counted:
    """What was counted of some decisions of a policy.

    Attributes:
        decisions: How many there are.
        first: When the first was made; UTC timestamp, None without any.
        last: When the last was.
        as_of: The date to which everything is counted: that of the chain's last entry, or of the last decision of the
            weeks where others lie far after them; None for an empty chain.
        weeks: By week; None without decisions.
        cells: By hour, day and week, as `volume.GRAINS`.
        histograms: The facts.
        outliers: The metrics with values that lie far out.
        broken: The lifecycle breaks.
        sampled_one_of: Of so many decisions facts and metrics of one were taken to learn what is usual.
        metrics: How many metrics were looked at.
        metric_shifts: Those whose values shifted.
        chain_position: The last position of the scope's chain that was read; 0 where it is empty.
        merkle_root: The chain's rolling root there; None where it is empty.
        truncated: Whether a limit left earlier decisions out.
        advisory: How many decisions with the policy's id were left out because they are advisory.
        imported: Whether these are imported cases, of which the service has no record.
        value: Of each week the values of the metric that the question names which were reported in it, and their sum;
            None where it names none.
        measured: The same values by the week of their decision, and by age.
        far: The decisions that lie far from all others, and stand in no week.
        untimed: Whether moments say the day or the hour of decisions and not their minute.
    """

    decisions: int
    first: str | None
    last: str | None
    as_of: str | None
    weeks: Weeks | None
    cells: Sequence[Cells]
    histograms: Sequence[Histogram]
    outliers: Sequence[Outliers]
    broken: Sequence[Broken]
    sampled_one_of: int
    metrics: int
    chain_position: int
    merkle_root: str | None
    truncated: bool = field(default=False)
    advisory: int = 0
    metric_shifts: Sequence[MetricShift] = ()
    value: Sequence[tuple[int, float]] | None = None
    measured: Measured | None = None
    far: Far | None = None
    untimed: bool = False
    imported: bool = False
