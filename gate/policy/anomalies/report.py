"""The anomaly report of a policy, `policy_anomalies_v1`: what was counted is judged, sorted, and told.

    question = AnomaliesQuestion("refund_policy", threshold=0.8)
    found = find(counted, question)
    listed = strongest(found, question)
    report = anomaly_report(counted, found, ids, question)

It holds no date but those of the ledger: the same ledger gives the same report, byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final, TypeVar

from gate.encoding.canonical import content_hash
from gate.ids import timestamp
from gate.labels import ANOMALIES
from gate.policy.anomalies import breaks, shifts
from gate.policy.anomalies.anomaly import Anomaly, Next, Shown, decisions_of, order, report_of
from gate.policy.anomalies.breaks import RULES, Broken
from gate.policy.anomalies.drift import Drift, Histogram, find_drift
from gate.policy.anomalies.outliers import SEASONAL, Outliers
from gate.policy.anomalies.scores import (
    BELOW_HIGH,
    EFFECT,
    FAR,
    HARM,
    HIGH,
    INDEX,
    MEDIUM,
    TIMES,
    Marks,
    score,
    severity,
)
from gate.policy.anomalies.shifts import Rate, Shift, Windows, find_shifts, taken_over
from gate.policy.anomalies.statistics import Share, difference_interval
from gate.policy.anomalies.volume import GRAINS, Surge, find_surges, grain_of
from gate.policy.notes import by_clock, without_advice
from gate.policy.questions import AnomaliesQuestion

MAX_WEEKS: Final = 104
"""How many weeks are looked at for shifts, drift and volume, the latest."""

MAX_REASONS: Final = 50
"""How many reason codes are looked at, those of the most decisions."""

MAX_AGE: Final = 56
"""How old an outcome is at most when outcomes of equal age are compared, in days; older ones count as this old."""

TERMINAL: Final = ("succeeded", "partial", "failed", "reverted")

_IMPROVED: Final = 0.59
"""The greatest score of outcomes that got better."""

_NAMED: Final = 3
_DIGITS: Final = 6
_DAY: Final = timedelta(days=1)
WORSE: Final[Mapping[str, bool]] = {"succeeded": False, "partial": True, "failed": True, "reverted": True}
"""Whether it is worse where the rate of a status rises."""

_REPLAY: Final = "Replay them under the version before: which would not have been let through?"
_NOTES: Final = (
    "Nothing here is a model's prediction: every anomaly follows from counts by the formulas in docs/anomalies.md.",
    "An anomaly says that something is not as before, or not as the protocol asks, and not why: windows and versions "
    "met different cases.",
    "Outcomes are what callers reported, and are compared at equal age: those of the latest weeks are few, and "
    "failures often come last.",
    "What is gradual, or lasts from the first week on, does not stand out; nor does what changes less than a small "
    "effect.",
    "Overdue is counted to the date of the chain's last entry, not to the clock: a scope in which nothing happens "
    "grows no older.",
)
_TRUNCATED: Final = "Earlier decisions were left out, as limit asked."
_SAMPLED: Final = "What is usual for facts and metrics was learned from one of {one_of} decisions."
_FEW: Final = "There are too few decisions to compare anything with."
_MORE: Final = "More were found than are listed: ask with a greater max_items."


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
        horizons: Of each week, the index of the age at which outcomes of a window that ends with it are compared; -1
            where the window ended less than a day ago.
    """

    first: date
    decisions: Sequence[int]
    versions: Mapping[str, Sequence[int]]
    verdicts: Mapping[str, Sequence[int]]
    reasons: Mapping[str, Sequence[int]]
    outcomes: Mapping[str, Sequence[Sequence[int]]]
    horizons: Sequence[int]

    def starts(self, week: int) -> datetime:
        """When a week begins, by its index, UTC."""
        return datetime.combine(self.first, time(), UTC) + timedelta(weeks=week)


@dataclass(frozen=True, slots=True)
class Cells:
    """The decisions of every whole hour, day or week, in a row.

    Attributes:
        start: Where the first begins.
        counts: The decisions in each.
    """

    start: datetime
    counts: Sequence[int]


@dataclass(frozen=True, slots=True)
class Counted:
    """What was counted of some decisions of a policy.

    Attributes:
        decisions: How many there are.
        first: When the first was made; UTC timestamp, None without any.
        last: When the last was.
        as_of: The date of the chain's last entry, to which everything is counted; None for an empty chain.
        weeks: By week; None without decisions.
        cells: By hour, day and week, as `volume.GRAINS`.
        histograms: The facts.
        outliers: The metrics with values that lie far out.
        broken: The lifecycle breaks.
        sampled_one_of: Of so many decisions facts and metrics of one were taken to learn what is usual.
        metrics: How many metrics were looked at.
        chain_position: The last position of the scope's chain that was read; 0 where it is empty.
        merkle_root: The chain's rolling root there; None where it is empty.
        truncated: Whether a limit left earlier decisions out.
        advisory: How many decisions with the policy's id were left out because they are advisory.
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


def find(counted: Counted, question: AnomaliesQuestion) -> list[Anomaly]:
    """Every anomaly, the strongest first.

    Args:
        counted: What was counted.
        question: The question; its threshold is not looked at yet.
    """
    told = _Told(counted, question.policy_id)
    found = [told.broken(of) for of in counted.broken if of.count]
    if counted.weeks is not None:
        weeks = counted.weeks
        rates, number = _rates(weeks), len(weeks.decisions)
        rollouts = taken_over(weeks.decisions, weeks.versions.values())
        shifted = find_shifts(rates, number, weeks.horizons, question.min_sample, rollouts)
        outcomes = [shift for shift in shifted if shift.of == "outcome"]
        verdicts = [shift for shift in shifted if shift.of != "outcome"]
        drifts = find_drift(counted.histograms, number, question.min_sample)
        found += [told.outcomes(group) for group in _together(outcomes)]
        found += [told.verdicts(group) for group in _together(verdicts)]
        found += [told.drifted(group) for group in _together(drifts)]
        found += [told.surge(surge) for surge in _surges(counted.cells)]
    found += [told.outliers(of) for of in counted.outliers if of.count]
    return sorted(found, key=order)


def strongest(found: Iterable[Anomaly], question: AnomaliesQuestion) -> list[Anomaly]:
    """Those that are listed: with at least the score that is asked for, so many at most."""
    return [anomaly for anomaly in found if anomaly.score >= question.threshold][: question.max_items]


def anomaly_report(
    counted: Counted,
    found: Sequence[Anomaly],
    decision_ids: Sequence[Sequence[str]],
    question: AnomaliesQuestion,
) -> dict[str, Any]:
    """What is anomalous about a policy's decisions (`policy_anomalies_v1`).

    Args:
        counted: What was counted of the decisions that the question chooses.
        found: The anomalies, as `find` gives them.
        decision_ids: Of each of the `strongest`, the ids of decisions that show it.
        question: The question.

    Returns:
        The report, with `anomaly_hash` over the rest of it.
    """
    above = [anomaly for anomaly in found if anomaly.score >= question.threshold]
    listed = strongest(found, question)
    severities = [severity(anomaly.score) for anomaly in above]
    report = {
        "policy_anomalies_version": ANOMALIES,
        **question.asked(),
        "recommendation": _recommendation(counted, severities, question.min_sample),
        "anomaly_count": len(above),
        "severities": {name: severities.count(name) for name in ("high", "medium", "low")},
        "anomalies": [
            anomaly.to_dict(question.policy_id, ids) for anomaly, ids in zip(listed, decision_ids, strict=True)
        ],
        "min_sample": question.min_sample,
        "threshold": question.threshold,
        "max_items": question.max_items,
        "limit": question.limit,
        "parameters": {
            "window_weeks": list(shifts.LENGTHS),
            "reference_weeks": shifts.REFERENCE,
            "false_discovery_rate": shifts.FALSE_DISCOVERIES,
            "alarm_chance": shifts.ALARM_CHANCE,
            "rollout_chance": shifts.ROLLOUT_CHANCE,
            "receipt_due_hours": int(breaks.RECEIPT_DUE / timedelta(hours=1)),
            "outcome_due_days": int(breaks.OUTCOME_DUE / _DAY),
            "medium_score": MEDIUM,
            "high_score": HIGH,
        },
        "coverage": {
            "decisions": counted.decisions,
            "from": counted.first,
            "to": counted.last,
            "as_of": counted.as_of,
            "weeks": 0 if counted.weeks is None else len(counted.weeks.decisions),
            "sampled_one_of": counted.sampled_one_of,
            "facts": [histogram.fact for histogram in counted.histograms],
            "metrics": counted.metrics,
            "chain_position": counted.chain_position,
            "merkle_root": counted.merkle_root,
            "truncated": counted.truncated,
        },
        "notes": list(_notes(counted, above, listed, question)),
    }
    return {**report, "anomaly_hash": content_hash(report)}


def _recommendation(counted: Counted, severities: Sequence[str], min_sample: int) -> str:
    if "high" in severities:
        return "investigate"
    if "medium" in severities:
        return "review"
    if severities:
        return "watch"
    return "stable" if counted.decisions >= min_sample else "insufficient_data"


def _notes(
    counted: Counted, above: Sequence[Anomaly], listed: Sequence[Anomaly], question: AnomaliesQuestion
) -> Iterator[str]:
    yield from _NOTES
    if counted.decisions < question.min_sample:
        yield _FEW
    if counted.sampled_one_of > 1:
        yield _SAMPLED.format(one_of=counted.sampled_one_of)
    if counted.truncated:
        yield _TRUNCATED
    if len(above) > len(listed):
        yield _MORE
    yield from by_clock(question.clock)
    yield from without_advice(counted.advisory)


def _rates(weeks: Weeks) -> list[Rate]:
    decided = [weeks.decisions]
    rates = [Rate("verdict", name, [counts], decided) for name, counts in sorted(weeks.verdicts.items())]
    rates += [Rate("reason", name, [counts], decided) for name, counts in sorted(weeks.reasons.items())]
    ages = zip(*weeks.outcomes.values(), strict=True)
    terminal = [[sum(counts) for counts in zip(*statuses, strict=True)] for statuses in ages]
    return rates + [Rate("outcome", name, counts, terminal) for name, counts in sorted(weeks.outcomes.items())]


def _surges(cells: Sequence[Cells]) -> list[Surge]:
    number = grain_of([of.counts for of in cells])
    return [] if number is None else find_surges(GRAINS[number], cells[number].start, cells[number].counts)


_Found = TypeVar("_Found", Shift, Drift)


def _together(found: Iterable[_Found]) -> list[list[_Found]]:
    """What happened at about the same time, the strongest of it first: with at least a quarter of all their weeks
    in common, or from the same week on. So no two groups begin at once, and each has an id of its own.
    """
    groups: list[list[_Found]] = []
    for item in sorted(found, key=_strongest_first):
        group = next((group for group in groups if group[0].windows.goes_with(item.windows)), None)
        if group is None:
            groups.append([item])
        else:
            group.append(item)
    return groups


def _strongest_first(item: Shift | Drift) -> tuple[float, str, str]:
    # Two rates that add up to 1 change equally, except in the last digit of an arc sine.
    if isinstance(item, Shift):
        return -_rounded(abs(item.effect)), item.of, item.value
    return -_rounded(item.index), item.fact, ""


class _Told:
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
            numbers={"count": of.count, "of": of.of, "share": _rounded(Share(of.count, of.of).rate)},
            next=[Next(rule.next)],
        )

    def outcomes(self, group: Sequence[Shift]) -> Anomaly:
        worse = [shift for shift in group if shift.rose == WORSE[shift.value]]
        better = [shift for shift in group if shift.rose != WORSE[shift.value]]
        scores = [_score(shift, HARM) for shift in worse] + [min(_score(shift, EFFECT), _IMPROVED) for shift in better]
        told = self._shifted("outcome_shift", group, max(scores), "outcome_status")
        harms = any(shift.is_certain and _score(shift, HARM) >= MEDIUM for shift in worse)
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
        versions = self._new_versions(group)
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
        names = ", ".join(drift.fact for drift in group[:_NAMED])
        more = f" and {len(group) - _NAMED} more" if len(group) > _NAMED else ""
        return Anomaly(
            kind="fact_drift",
            subject="",
            score=min(BELOW_HIGH, max(score(drift.index, INDEX) for drift in group)),
            reasons=[f"fact_drifted:{drift.fact}" for drift in group],
            summary=f"The facts of decisions differ from those of the weeks before: {names}{more}.",
            first=first,
            last=last,
            decisions=sum(group[0].within),
            shown=shown,
            numbers={"facts": [self._fact(drift) for drift in group]},
            next=[
                Next("See which bins grew: a caller that sends something else, or other customers?"),
                *self._searches(shown),
            ],
        )

    def surge(self, surge: Surge) -> Anomaly:
        strength = score(surge.times, TIMES)
        first, last = timestamp(surge.first), timestamp(surge.last)
        shown = Shown(first=first, last=last)
        cells = f"{surge.cells:,} {surge.grain.name}{'s' if surge.cells > 1 else ''}"
        return Anomaly(
            kind="volume",
            subject=surge.grain.name,
            # Holidays have few decisions as well.
            score=strength if surge.rose else min(strength, BELOW_HIGH),
            reasons=["more_decisions_than_usual" if surge.rose else "fewer_decisions_than_usual"],
            summary=f"{surge.decisions:,} decisions in {cells}; such {surge.grain.name}s have {surge.usual:,}.",
            first=first,
            last=last,
            decisions=surge.decisions,
            shown=shown,
            numbers={
                "grain": surge.grain.name,
                "cells": surge.cells,
                "decisions": surge.decisions,
                "usual": surge.usual,
                "times": _rounded(surge.times),
                "modified_z": _rounded(surge.z),
                "required_z": _rounded(surge.required),
            },
            next=[
                Next("See who asked, and for what: actor, subject and target of the decisions."),
                *self._searches(shown),
            ],
        )

    def outliers(self, of: Outliers) -> Anomaly:
        return Anomaly(
            kind="metric_outlier",
            subject=of.metric,
            # A single number can be a special case, and no test tells how values are spread.
            score=min(BELOW_HIGH, score(of.strength, FAR)),
            reasons=["metric_far_from_usual"],
            summary=f"Values of the metric {of.metric} far from what is usual: {of.count:,} of {of.values:,}.",
            first=of.first,
            last=of.last,
            decisions=of.count,
            shown=Shown(positions=tuple(far.position for far in of.farthest)),
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

    def _shifted(self, kind: str, group: Sequence[Shift], of: float, column: str | None) -> Anomaly:
        first, last = self._ends(group[0].windows)
        rose = tuple(shift.value for shift in group if shift.rose)
        reasons = [f"{shift.of}_{'rose' if shift.rose else 'fell'}:{shift.value}" for shift in group]
        versions = self._new_versions(group)
        if versions:
            reasons.append("policy_version_changed")
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
            f"{top.within.rate:.1%}{since}.",
            first=first,
            last=last,
            decisions=top.within.whole,
            shown=replace(self._shown(group[0].windows), column=column if rose else None, values=rose),
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
            "reference_from": timestamp(self._weeks.starts(shift.windows.reference)),
            **({"age_days": self._age(shift)} if shift.of == "outcome" else {}),
            "before": _share(shift.before),
            "within": _share(shift.within),
            "difference": {
                "rate": _rounded(shift.within.rate - shift.before.rate),
                "low": _rounded(low),
                "high": _rounded(high),
            },
            "cohens_h": _rounded(shift.effect),
            "p_value": _significant(shift.p_value),
            "required_p": _significant(shift.required_p),
        }

    def _age(self, shift: Shift) -> int | None:
        """How many days after their decision outcomes came at most that are compared; None where they are all."""
        horizon = self._weeks.horizons[shift.windows.last]
        return None if horizon == MAX_AGE else horizon + 1

    def _fact(self, drift: Drift) -> dict[str, object]:
        first, last = self._ends(drift.windows)
        return {
            "fact": drift.fact,
            "from": first,
            "to": last,
            "reference_from": timestamp(self._weeks.starts(drift.windows.reference)),
            "stability_index": _rounded(drift.index),
            "p_value": _significant(drift.p_value),
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

    def _new_versions(self, group: Sequence[Shift]) -> list[str]:
        """The versions that decided more often than in the weeks before, where they took over at least half of it."""
        first, last, reference = group[0].windows
        weeks = self._weeks
        within, before = sum(weeks.decisions[first : last + 1]), sum(weeks.decisions[reference:first])
        # Whole numbers, for a gain of exactly half is half: of floats 0.7 - 0.2 is less.
        gains = {
            version: sum(counts[first : last + 1]) * before - sum(counts[reference:first]) * within
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
    of = score(abs(shift.effect), marks)
    return of if shift.is_certain else min(of, BELOW_HIGH)


def _share(of: Share) -> dict[str, float]:
    return {"count": of.part, "of": of.whole, "rate": _rounded(of.rate)}


def _rounded(value: float) -> float:
    return round(value, _DIGITS)


def _significant(value: float) -> float:
    return float(f"{value:.6g}")
