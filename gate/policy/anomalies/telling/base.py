"""The parts of every kind of anomaly: its windows, decisions, effects, and versions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from gate.ids import parse_timestamp, timestamp
from gate.policy.anomalies.anomaly import Anomaly, Effect, Next, Shown, decisions_of
from gate.policy.anomalies.counted import MAX_AGE, Counted, Weeks
from gate.policy.anomalies.statistics import Share
from gate.policy.anomalies.weekly.windows import Windows

LASTING: Final = timedelta(weeks=2)
"""The duration from which an effect is lasting."""

_DIGITS: Final = 6


class Base:
    """The counts, and what any anomaly derives from them."""

    def __init__(self, counted: Counted, policy_id: str) -> None:
        self._counted = counted
        self._policy_id = policy_id

    def _effect(self, cases: int, first: str, last: str, *, harm: bool | None = None) -> Effect:
        """What something costs that was from one moment to another."""
        began, ended = parse_timestamp(first), parse_timestamp(last)
        return Effect(cases, self._value(cases, began, ended), ended - began >= LASTING, harm, last)

    def _lasting_effect(
        self, windows: Windows, until: int | None, cases: int, *, harm: bool | None = None, of: str = ""
    ) -> Effect:
        """What a shift costs that lasts to a week, its window's last one where None.

        Args:
            windows: Its weeks.
            until: The week.
            cases: How many decisions went otherwise.
            harm: Whether it is for the worse.
            of: The metric whose values shifted, where they did.
        """
        last = windows.last if until is None else until
        first, _ = self._ends(windows)
        end, as_of = self._end(last), self._counted.as_of
        goes_on = as_of is not None and timestamp(self._weeks.starts(last + 1)) >= as_of
        lasting = goes_on or parse_timestamp(end) - parse_timestamp(first) >= LASTING
        costs = [self._cost(windows, last, of)]
        if self._counted.measured is not None and of != self._counted.measured.metric:
            # What cases are worth that went otherwise need not be another sum: of the two the one that tells more.
            costs.append(self._value(cases, parse_timestamp(first), parse_timestamp(end)))
        value = max((cost for cost in costs if cost is not None), key=abs, default=None)
        return Effect(cases, value, lasting, harm, end)

    def _cost(self, windows: Windows, until: int, of: str) -> float | None:
        """What the metric that was asked for came to in the weeks of a shift, less what it would have come to by its
        mean before: that of a value where its own values shifted, else that of a decision.
        """
        measured, weeks = self._counted.measured, self._weeks
        if measured is None:
            return None
        cost = measured.cost(windows, until, weeks.horizons, None if of == measured.metric else weeks.decisions)
        try:
            return None if cost is None else rounded(float(cost))
        except OverflowError:
            return None

    def _value(self, cases: int, began: datetime, ended: datetime) -> float | None:
        """What the metric comes to in so many cases: its mean in the weeks of that time, so many times."""
        if self._counted.value is None or self._counted.weeks is None:
            return None
        weeks, values = self._weeks, 0
        sums = []
        for at, (number, total) in enumerate(self._counted.value):
            if weeks.starts(at) <= ended and began < weeks.starts(at + 1):
                values += number
                sums.append(total)
        return rounded(cases * math.fsum(sums) / values) if values else None

    def _decided(self, windows: Windows) -> int:
        return sum(self._weeks.decisions[windows.first : windows.last + 1])

    def _reference(self, windows: Windows) -> dict[str, object]:
        """Where the weeks begin and end with which a window is compared."""
        first, last = self._weeks.starts(windows.reference), self._weeks.starts(windows.before + 1)
        return {"reference_from": timestamp(first), "reference_to": timestamp(last)}

    @property
    def _weeks(self) -> Weeks:
        weeks = self._counted.weeks
        assert weeks is not None  # noqa: S101 - what was found in weeks was counted in weeks
        return weeks

    def _ends(self, windows: Windows) -> tuple[str, str]:
        """Where a window begins and ends."""
        return timestamp(self._weeks.starts(windows.first)), self._end(windows.last)

    def _end(self, week: int) -> str:
        """Where a week ends; the last one with the chain, or with the last decision where a clock that ran backwards
        dated that later.
        """
        last = timestamp(self._weeks.starts(week + 1))
        latest = self._weeks.last or self._counted.last
        known = [moment for moment in (self._counted.as_of, latest) if moment is not None]
        return min(last, max(known, default=last))

    def _shown(self, windows: Windows) -> Shown:
        """The decisions of a window: those of whole weeks, for the chain's last entry can be one of them."""
        return Shown(
            first=timestamp(self._weeks.starts(windows.first)), last=timestamp(self._weeks.starts(windows.last + 1))
        )

    def _new_versions(self, windows: Windows) -> list[str]:
        """The versions that decided more often than in the weeks before, where they took over at least half of it."""
        first, last, reference, _ = windows
        until, weeks = windows.before + 1, self._weeks
        within, before = sum(weeks.decisions[first : last + 1]), sum(weeks.decisions[reference:until])
        # Whole numbers, for a gain of exactly half is half: of floats 0.7 - 0.2 is less.
        gains = {
            version: sum(counts[first : last + 1]) * before - sum(counts[reference:until]) * within
            for version, counts in weeks.versions.items()
        }
        grown = sorted(version for version, gain in gains.items() if gain > 0)
        return grown if 2 * sum(gains[version] for version in grown) >= within * before else []

    def _most_gained(self, windows: Windows) -> tuple[str, Share, Share] | None:
        """The version whose share of the decisions grew most, before and within; None where no share changed."""
        shares = {
            version: (
                self._share(counts, windows.reference, windows.before),
                self._share(counts, windows.first, windows.last),
            )
            for version, counts in self._weeks.versions.items()
        }
        # Whole numbers: of two that gained equally the first by name is taken.
        gains = {of: now.part * then.whole - then.part * now.whole for of, (then, now) in shares.items()}
        most = min(gains, key=lambda of: (-gains[of], of))
        then, now = shares[most]
        return (most, then, now) if gains[most] > 0 else None

    def _share(self, counts: Sequence[int], first: int, last: int) -> Share:
        return Share(sum(counts[first : last + 1]), sum(self._weeks.decisions[first : last + 1]))

    def _searches(self, shown: Shown, **conditions: str) -> list[Next]:
        search = decisions_of(self._policy_id, **{"from": shown.first, "to": shown.last}, **conditions)
        return [Next("Read the decisions of that time.", search)]


def with_steps(
    anomaly: Anomaly, steps: Sequence[Next], *, score: float | None = None, shown: Shown | None = None
) -> Anomaly:
    """An anomaly with further steps, and perhaps another score or other decisions that show it."""
    return replace(
        anomaly,
        next=[*anomaly.next, *steps],
        score=anomaly.score if score is None else score,
        shown=anomaly.shown if shown is None else shown,
    )


def rounded(value: float) -> float:
    """Six decimals."""
    return round(value, _DIGITS)


def significant(value: float) -> float:
    """Six digits: of rates in a thousandth six decimals would be nothing."""
    return float(f"{value:.6g}")


def since_half_a_year(windows: Windows) -> str:
    """What a sentence adds of what creeps."""
    return ", compared with half a year earlier" if windows.slow else ""


def days_of(horizon: int) -> int | None:
    """Within how many days outcomes came that a horizon has; None for all."""
    return None if horizon == MAX_AGE else horizon + 1
