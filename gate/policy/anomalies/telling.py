"""Makes an anomaly of what was found: its score, its reasons, its sentence, and where to look next."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from gate.ids import parse_timestamp, timestamp
from gate.policy.anomalies.anomaly import DIFFERS, SLOW, Anomaly, Effect, Next, Shown, decisions_of, report_of
from gate.policy.anomalies.breaks import RULES, Broken
from gate.policy.anomalies.counted import MAX_AGE, WORSE, Counted, Weeks
from gate.policy.anomalies.drift import Drift
from gate.policy.anomalies.outliers import GREATEST, SEASONAL, Outliers
from gate.policy.anomalies.scores import (
    BELOW_HIGH,
    DELTA,
    EFFECT,
    FAR,
    HARM,
    HIGH,
    INDEX,
    MANY_FAR,
    SURPLUS,
    TIMES,
    Marks,
    score,
)
from gate.policy.anomalies.shifts import Shift, Windows
from gate.policy.anomalies.statistics import Share, difference_interval
from gate.policy.anomalies.volume import Surge
from gate.policy.anomalies.weekly.levels import LOCATION, SPREAD, MetricShift

_IMPROVED: Final = 0.59
"""The greatest score of outcomes that got better."""

LASTING: Final = timedelta(weeks=2)
"""From how long on something is said to last."""

_MOVED: Final = {
    (LOCATION, True): "rose",
    (LOCATION, False): "fell",
    (SPREAD, True): "spread_grew",
    (SPREAD, False): "spread_shrank",
}
_NAMED: Final = 3
_DIGITS: Final = 6
_REPLAY: Final = "Replay them under the version before: which would not have been let through?"


class Telling:
    """Makes an anomaly of what was found."""

    def __init__(self, counted: Counted, policy_id: str) -> None:
        self._counted = counted
        self._policy_id = policy_id

    def broken(self, of: Broken) -> Anomaly:
        rule = RULES[of.kind]
        return Anomaly(
            kind="lifecycle_break",
            subject=of.kind,
            score=of.score,
            reasons=[of.kind],
            summary=f"{rule.meaning}: {of.count:,} of {of.of:,} decisions.",
            first=of.first,
            last=of.last,
            decisions=of.count,
            shown=Shown(positions=of.positions),
            effect=self._effect(of.count, of.first, of.last, harm=True),
            numbers={"count": of.count, "of": of.of, "share": _rounded(Share(of.count, of.of).rate)},
            next=[Next(rule.next)],
        )

    def outcomes(self, group: Sequence[Shift]) -> Anomaly:
        worse = [shift for shift in group if shift.rose == WORSE[shift.value]]
        better = [shift for shift in group if shift.rose != WORSE[shift.value]]
        scores = [_score(shift, HARM) for shift in worse] + [min(_score(shift, EFFECT), _IMPROVED) for shift in better]
        told = self._shifted("outcome_shift", group, max(scores), "outcome_status", harm=bool(worse))
        harms = any(
            shift.is_certain and abs(shift.effect) >= HARM.considerable and shift.least_effect >= HARM.noticeable
            for shift in worse
        )
        if "new_versions" in told.numbers and harms:
            # The effect of a change of one's own can be undone today.
            told = _with(told, [], score=max(told.score, HIGH))
        return _with(
            told,
            [
                Next(
                    "Compare versions, rules and weeks of the decisions.", report_of(self._policy_id, "effectiveness")
                ),
                *self._searches(told.shown, verdict="yes"),
                *([Next(_REPLAY)] if "new_versions" in told.numbers else []),
            ],
        )

    def verdicts(self, group: Sequence[Shift]) -> Anomaly:
        strength = max(_score(shift, EFFECT) for shift in group)
        told = self._shifted("verdict_shift", group, strength, None)
        versions = self._new_versions(group[0].windows)
        if versions:
            # A new version is meant to decide differently.
            told = _with(told, [], score=min(told.score, BELOW_HIGH))
        rose = [shift for shift in group if shift.rose]
        of_reason = {shift.of for shift in rose} == {"reason"}
        column = None if not rose else "reason_code" if of_reason else "verdict"
        values = tuple(shift.value for shift in rose if shift.of == ("reason" if of_reason else "verdict"))
        steps = [Next(f"Read what version {version} changed, and whether that was meant.") for version in versions]
        if not versions:
            steps.append(Next("No version changed with it: look at the facts that callers send, and at fact_drift."))
        chosen = {"reason_code": values[0]} if of_reason else {"verdict": values[0]} if values else {}
        return _with(
            told,
            [*steps, *self._searches(told.shown, **chosen)],
            shown=replace(told.shown, column=column, values=values),
        )

    def drifted(self, group: Sequence[Drift]) -> Anomaly:
        first, last = self._ends(group[0].windows)
        shown = self._shown(group[0].windows)
        slow = group[0].windows.slow
        names = ", ".join(drift.fact for drift in group[:_NAMED])
        more = f" and {len(group) - _NAMED} more" if len(group) > _NAMED else ""
        return Anomaly(
            kind="fact_drift",
            subject="",
            score=max(_drift_score(drift) for drift in group),
            reasons=[*(f"fact_drifted:{drift.fact}" for drift in group), *([SLOW] if slow else [])],
            summary=f"The facts of decisions differ from those of {'half a year' if slow else 'the weeks'} before: "
            f"{names}{more}.",
            first=first,
            last=last,
            decisions=self._decided(group[0].windows),
            shown=shown,
            effect=self._effect(self._moved(group[0]), first, last, goes_on=self._goes_on(group[0].windows)),
            numbers={"facts": [self._fact(drift) for drift in group]},
            next=[
                Next("See which bins grew: a caller that sends something else, or other customers?"),
                *self._searches(shown),
            ],
        )

    def surge(self, surge: Surge) -> Anomaly:
        # As many times as many of few is little.
        usual = max(self._weeks.usual, 1)
        strength = min(score(surge.times, TIMES), score(surge.surplus / usual, SURPLUS))
        strength = strength if surge.is_certain else min(strength, BELOW_HIGH)
        first, last = timestamp(surge.first), timestamp(surge.last)
        shown = Shown(first=first, last=last)
        cells = f"{surge.cells:,} {surge.grain.name}{'s' if surge.cells > 1 else ''}"
        return Anomaly(
            kind="volume",
            subject=surge.grain.name,
            score=strength,
            reasons=["more_decisions_than_usual" if surge.rose else "fewer_decisions_than_usual"],
            summary=f"{surge.decisions:,} decisions in {cells}; such {surge.grain.name}s have {surge.usual:,}.",
            first=first,
            last=last,
            decisions=surge.decisions,
            shown=shown,
            effect=self._effect(abs(surge.decisions - surge.usual), first, last),
            numbers={
                "grain": surge.grain.name,
                "cells": surge.cells,
                "decisions": surge.decisions,
                "usual": surge.usual,
                "arrivals": surge.arrivals,
                "usual_arrivals": surge.usual_arrivals,
                "usual_week": usual,
                "times": _rounded(surge.times),
                "modified_z": _rounded(surge.z),
                "required_z": _rounded(surge.required),
                "p_value": _significant(surge.p_value),
                "required_p": _significant(surge.required_p),
            },
            next=[
                Next("See who asked, and for what: actor, subject and target of the decisions."),
                *self._searches(shown),
            ],
        )

    def metric(self, group: Sequence[MetricShift]) -> Anomaly:
        """A metric whose values lie elsewhere, or farther or less far apart."""
        top, windows = group[0], group[0].windows
        first, last = self._ends(windows)
        versions = [] if top.version is not None else self._new_versions(windows)
        reasons = [f"metric_{_MOVED[shift.of, shift.rose]}:{shift.metric}" for shift in group]
        reasons += ["policy_version_changed"] if versions else []
        reasons += [f"{DIFFERS}{top.version}"] if top.version is not None else []
        reasons += [SLOW] if windows.slow else []
        shown = self._shown(windows)
        search = {} if top.version is None else {"policy_version": top.version}
        return Anomaly(
            kind="metric_shift",
            subject=top.metric,
            score=max(_metric_score(shift) for shift in group),
            reasons=reasons,
            summary=f"{_metric_called(top, versions)}{_in_half_a_year(windows)}.",
            first=first,
            last=last,
            decisions=top.decisions,
            shown=shown,
            effect=self._metric_effect(top, first, last),
            numbers={
                "metric": top.metric,
                "levels": [self._level(shift) for shift in group],
                **({"new_versions": versions} if versions else {}),
            },
            next=[
                Next("See what is measured now and was not before: another source, another unit, or other cases?"),
                Next("Compare the metric's means by version.", report_of(self._policy_id, "effectiveness")),
                *self._searches(shown, **search),
            ],
        )

    def _metric_effect(self, shift: MetricShift, first: str, last: str) -> Effect:
        told = self._effect(shift.decisions, first, last, goes_on=self._goes_on(shift.windows))
        then, now = shift.before.mean, shift.within.mean
        if then is None or now is None:
            return told
        return replace(told, value=_rounded((now - then) * shift.decisions))

    def _level(self, shift: MetricShift) -> dict[str, object]:
        first, last = self._ends(shift.windows)
        before, within = (
            {
                "values": of.values,
                "lower_quartile": of.low,
                "median": of.median,
                "upper_quartile": of.high,
            }
            for of in (shift.before, shift.within)
        )
        return {
            "of": shift.of,
            "version": shift.version,
            "from": first,
            "to": last,
            **(
                self._reference(shift.windows)
                if shift.version is None
                else {"reference_from": first, "reference_to": last}
            ),
            "age_days": _days(shift.horizon),
            "before": before,
            "within": within,
            "difference": max(-GREATEST, min(GREATEST, shift.within.median - shift.before.median)),
            "cliffs_delta": _rounded(shift.effect),
            "least_delta": _rounded(shift.least_effect),
            "groups": {"before": shift.groups[0], "within": shift.groups[1]},
            "design_effect": {"before": shift.design_effects[0], "within": shift.design_effects[1]},
            "p_value": _significant(shift.p_value),
            "required_p": _significant(shift.required_p),
        }

    def outliers(self, of: Outliers) -> Anomaly:
        return Anomaly(
            kind="metric_outlier",
            subject=of.metric,
            # Single numbers can be special cases, and no test tells how values are spread.
            score=score(of.strength, FAR)
            if of.count >= MANY_FAR * of.values
            else min(BELOW_HIGH, score(of.strength, FAR)),
            reasons=["metric_far_from_usual"],
            summary=f"Values of the metric {of.metric} far from what is usual: {of.count:,} of {of.values:,}.",
            first=of.first,
            last=of.last,
            decisions=of.count,
            shown=Shown(positions=tuple(far.position for far in of.farthest)),
            effect=self._effect(of.count, of.first, of.last),
            numbers={
                "metric": of.metric,
                "values": of.values,
                "median": of.median,
                # Metrics have any scale: of rates in a thousandth six decimals would be nothing.
                "mad": _significant(of.mad),
                "scale": "ratio" if of.ratios else "difference",
                "season": of.season,
                "seasonal_p": SEASONAL,
                "required_z": _rounded(of.required),
                "farthest": [
                    {"value": far.value, "usual": far.usual, "modified_z": _rounded(far.z)} for far in of.farthest
                ],
            },
            next=[Next("Check the number with its source: a wrong unit, a wrong sign, or a case of its own?")],
        )

    def _shifted(
        self, kind: str, group: Sequence[Shift], of: float, column: str | None, *, harm: bool | None = None
    ) -> Anomaly:
        first, last = self._ends(group[0].windows)
        rose = tuple(shift.value for shift in group if shift.rose)
        reasons = [f"{shift.of}_{'rose' if shift.rose else 'fell'}:{shift.value}" for shift in group]
        versions = self._new_versions(group[0].windows)
        if versions:
            reasons.append("policy_version_changed")
        if group[0].windows.slow:
            reasons.append(SLOW)
        top = group[0]
        numbers: dict[str, object] = {"changes": [self._change(shift) for shift in group]}
        if versions:
            numbers["new_versions"] = versions
        since = f" with version {', '.join(versions)}" if versions else ""
        return Anomaly(
            kind=kind,
            subject="",
            score=of,
            reasons=reasons,
            summary=f"{_called(top)} {'rose' if top.rose else 'fell'} from {top.before.rate:.1%} to "
            f"{top.within.rate:.1%}{since}{_in_half_a_year(top.windows)}.",
            first=first,
            last=last,
            decisions=top.within.whole,
            shown=replace(self._shown(group[0].windows), column=column if rose else None, values=rose),
            effect=self._effect(
                max(round(abs(shift.within.rate - shift.before.rate) * shift.within.whole) for shift in group),
                first,
                last,
                harm=harm,
                goes_on=self._goes_on(group[0].windows),
            ),
            numbers=numbers,
            next=[],
        )

    def _change(self, shift: Shift) -> dict[str, object]:
        first, last = self._ends(shift.windows)
        low, high = difference_interval(shift.within, shift.before)
        return {
            "of": shift.of,
            "value": shift.value,
            "from": first,
            "to": last,
            **self._reference(shift.windows),
            **({"age_days": self._age(shift)} if shift.of == "outcome" else {}),
            "before": _share(shift.before),
            "within": _share(shift.within),
            "difference": {
                "rate": _rounded(shift.within.rate - shift.before.rate),
                "low": _rounded(low),
                "high": _rounded(high),
            },
            "cohens_h": _rounded(shift.effect),
            "least_h": _rounded(shift.least_effect),
            "groups": {"before": shift.then.groups, "within": shift.now.groups},
            "design_effect": {"before": shift.then.design_effect, "within": shift.now.design_effect},
            "p_value": _significant(shift.p_value),
            "required_p": _significant(shift.required_p),
        }

    def _effect(self, cases: int, first: str, last: str, *, harm: bool | None = None, goes_on: bool = False) -> Effect:
        """What something costs that was from one moment to another."""
        began, ended = parse_timestamp(first), parse_timestamp(last)
        return Effect(cases, self._value(cases, began, ended), goes_on or ended - began >= LASTING, harm)

    def _goes_on(self, windows: Windows) -> bool:
        """Whether a window has the week in which the chain ends."""
        as_of = self._counted.as_of
        return as_of is not None and timestamp(self._weeks.starts(windows.last + 1)) >= as_of

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
        return _rounded(cases * math.fsum(sums) / values) if values else None

    def _decided(self, windows: Windows) -> int:
        return sum(self._weeks.decisions[windows.first : windows.last + 1])

    def _moved(self, drift: Drift) -> int:
        """How many decisions of the window have another value of a fact than they would have had before: the total
        variation distance, so many times.
        """
        n, m = sum(drift.before), sum(drift.within)
        distance = math.fsum(abs(a / n - b / m) for a, b in zip(drift.before, drift.within, strict=True)) / 2
        return round(distance * self._decided(drift.windows))

    def _reference(self, windows: Windows) -> dict[str, object]:
        """Where the weeks begin and end with which a window is compared."""
        first, last = self._weeks.starts(windows.reference), self._weeks.starts(windows.before + 1)
        return {"reference_from": timestamp(first), "reference_to": timestamp(last)}

    def _age(self, shift: Shift) -> int | None:
        """How many days after their decision outcomes came at most that are compared; None where they are all."""
        return _days(self._weeks.horizons[shift.windows.last])

    def _fact(self, drift: Drift) -> dict[str, object]:
        first, last = self._ends(drift.windows)
        return {
            "fact": drift.fact,
            "from": first,
            "to": last,
            **self._reference(drift.windows),
            "stability_index": _rounded(drift.index),
            "least_index": _rounded(drift.least_index),
            "design_effect": drift.design_effect,
            "p_value": _significant(drift.p_value),
            "required_p": _significant(drift.required_p),
            "bins": [
                {"holds": holds, "before": before, "within": within}
                for holds, before, within in zip(drift.bins, drift.before, drift.within, strict=True)
                if before or within
            ],
        }

    @property
    def _weeks(self) -> Weeks:
        weeks = self._counted.weeks
        assert weeks is not None  # noqa: S101 - what was found in weeks was counted in weeks
        return weeks

    def _ends(self, windows: Windows) -> tuple[str, str]:
        """Where a window begins and ends; one that goes on ends with the chain, or with the last decision where a clock
        that ran backwards dated that later.
        """
        last = timestamp(self._weeks.starts(windows.last + 1))
        known = [moment for moment in (self._counted.as_of, self._counted.last) if moment is not None]
        return timestamp(self._weeks.starts(windows.first)), min(last, max(known, default=last))

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

    def _searches(self, shown: Shown, **conditions: str) -> list[Next]:
        search = decisions_of(self._policy_id, **{"from": shown.first, "to": shown.last}, **conditions)
        return [Next("Read the decisions of that time.", search)]


def _with(
    anomaly: Anomaly, steps: Sequence[Next], *, score: float | None = None, shown: Shown | None = None
) -> Anomaly:
    return replace(
        anomaly,
        next=[*anomaly.next, *steps],
        score=anomaly.score if score is None else score,
        shown=anomaly.shown if shown is None else shown,
    )


def _called(shift: Shift) -> str:
    return {
        "verdict": f"The share of {shift.value}",
        "reason": f"The share of reason {shift.value}",
        "outcome": f"The share of outcomes {shift.value}",
    }[shift.of]


def _score(shift: Shift, marks: Marks) -> float:
    """The score of a shift: below high where chance alone could have made it, among so many."""
    of = score(shift.least_effect, marks)
    return of if shift.is_certain else min(of, BELOW_HIGH)


def _metric_score(shift: MetricShift) -> float:
    of = score(shift.least_effect, DELTA)
    return of if shift.is_certain else min(of, BELOW_HIGH)


def _metric_called(shift: MetricShift, versions: Sequence[str]) -> str:
    then, now = shift.before, shift.within
    with_it = f" with version {', '.join(versions)}" if versions else ""
    if shift.version is not None:
        return (
            f"The metric {shift.metric} is {'greater' if shift.rose else 'less'} with version {shift.version} than "
            f"with others in the same weeks: its median is {now.median:,.6g}, theirs {then.median:,.6g}"
        )
    if shift.of == SPREAD:
        return (
            f"Values of the metric {shift.metric} lie {'farther apart' if shift.rose else 'closer together'} than "
            f"before{with_it}: the middle half went from {then.low:,.6g} to {then.high:,.6g}, and goes from "
            f"{now.low:,.6g} to {now.high:,.6g}"
        )
    return (
        f"The metric {shift.metric} {'rose' if shift.rose else 'fell'} from a median of {then.median:,.6g} to "
        f"{now.median:,.6g}{with_it}"
    )


def _in_half_a_year(windows: Windows) -> str:
    return " in half a year" if windows.slow else ""


def _days(horizon: int) -> int | None:
    """Within how many days outcomes came that a horizon has; None for all."""
    return None if horizon == MAX_AGE else horizon + 1


def _drift_score(drift: Drift) -> float:
    of = score(drift.least_index, INDEX)
    return of if drift.is_certain else min(of, BELOW_HIGH)


def _share(of: Share) -> dict[str, float]:
    return {"count": of.part, "of": of.whole, "rate": _rounded(of.rate)}


def _rounded(value: float) -> float:
    return round(value, _DIGITS)


def _significant(value: float) -> float:
    return float(f"{value:.6g}")
