"""The counts that the anomaly report is made from: decisions by week, time of day, fact, and metric."""

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
"""The number of latest weeks that are examined for shifts, drift, and volume."""

MAX_REASONS: Final = 50
"""The number of reason codes that are examined, those of the most decisions."""

MAX_AGE: Final = 56
"""The greatest age in days at which outcomes are compared. Older outcomes count as this old."""

TERMINAL: Final = ("succeeded", "partial", "failed", "reverted")

WORSE: Final[Mapping[str, bool]] = {"succeeded": False, "partial": True, "failed": True, "reverted": True}
"""For each status, whether a higher rate is worse."""

ENDED: Final[Mapping[str, str]] = {
    "succeeded": "that succeeded",
    "partial": "that were partial",
    "failed": "that failed",
    "reverted": "that were reverted",
}
"""The words for outcomes of a status, after the noun."""


@dataclass(frozen=True, slots=True)
class Weeks:
    """The counts by week. Each list has one number for each week.

    Attributes:
        first: The Monday of the first week.
        decisions: The decisions.
        versions: The decisions of each policy version.
        verdicts: The decisions of each verdict.
        reasons: The decisions of each reason code.
        outcomes: For each terminal status, the let-through actions by the greatest number of days from decision to
            outcome: from 1 to `MAX_AGE`, and any age.
        groups: The groups in which decisions of a verdict, reason, or terminal status arrived, by kind, value, and
            horizon. The horizon is 0 for verdicts and reasons. Without an entry, each decision arrived alone.
        horizons: For each week, the index of the age of the outcomes that a window ending with it compares; -1
            if the window ended less than a day ago.
        last: When the last of the decisions was made, a UTC timestamp; None if unknown.
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
        """Whether some weeks carry less information than min_sample single decisions, for the rate with the most
        similar groups.
        """
        return any(0 < count < least * self._most_effect(at) for at, count in enumerate(self.decisions))

    def _most_effect(self, at: int) -> float:
        every = (by_horizon[max(by_horizon)].sums(at, at) for by_horizon in self.groups.values() if by_horizon)
        return max((design_effect(sums, sums.total / sums.members) for sums in every if sums.members), default=1.0)

    @property
    def usual(self) -> int:
        """The decisions of a usual week: the lower median of the weeks that have any."""
        counts = sorted(count for count in self.decisions if count)
        return counts[(len(counts) - 1) // 2] if counts else 0

    def starts(self, week: int) -> datetime:
        """When a week begins, by its index, UTC; the last moment of the calendar where that ends before."""
        return moved(datetime.combine(self.first, time(), UTC), timedelta(weeks=week))


@dataclass(frozen=True, slots=True)
class Cells:
    """The decisions of each whole hour, day, or week, in order.

    Attributes:
        start: The start of the first cell.
        counts: The decisions in each cell.
        arrivals: The number of single arrivals that they count as; None if each decision arrived alone.
    """

    start: datetime
    counts: Sequence[int]
    arrivals: Sequence[int] | None = None


@dataclass(frozen=True, slots=True)
class Far:
    """Decisions that lie more than 104 weeks from all others.

    Attributes:
        decisions: The number of these decisions.
        date: The date of one of them, a UTC timestamp: the last if it lies after the others, else the first.
    """

    decisions: int
    date: str


@dataclass(frozen=True, slots=True)
class Counted:
    """The counts of some decisions of a policy.

    Attributes:
        decisions: The number of decisions.
        first: When the first was made, a UTC timestamp; None without any.
        last: When the last was made.
        as_of: The date to which everything is counted. It is that of the chain's last entry, or of the last decision of
            the weeks if others lie far after them; None for an empty chain.
        weeks: The counts by week; None without decisions.
        cells: The counts by hour, day, and week, as in `volume.GRAINS`.
        histograms: The facts.
        outliers: The metrics with values that lie far out.
        broken: The breaks.
        sampled_one_of: The sampling step: facts and metrics of one in this many decisions define what is usual.
        metrics: The number of metrics examined.
        metric_shifts: The metrics whose values shifted.
        chain_position: The last position of the scope's chain that was read; 0 if it is empty.
        merkle_root: The chain's rolling root at that position; None if it is empty.
        truncated: Whether a limit left out earlier decisions.
        advisory: The number of decisions with the policy's id that were left out because they are advisory.
        imported: Whether these are imported cases, without records in the service.
        value: For each week, the number and the sum of the values of the requested metric that were reported in it;
            None if no metric was requested.
        measured: The same values by the week of their decision, and by age.
        far: The decisions that lie far from all others and belong to no week.
        untimed: Whether dates give only the day or the hour of decisions, and not their minute.
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
