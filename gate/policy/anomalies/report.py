"""The anomaly report of a policy, `policy_anomalies_v1`: it judges the counts, sorts the findings, and describes them.

    question = AnomaliesQuestion("refund_policy", threshold=0.8)
    found = find(counted, question)
    listed = strongest(found, question)
    report = anomaly_report(counted, found, ids, question)

It contains only dates of the ledger: the same ledger gives the same report, byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from typing import Any, Final, TypeVar

from gate.encoding.canonical import content_hash
from gate.labels import ANOMALIES
from gate.policy.anomalies import breaks, shifts
from gate.policy.anomalies.anomaly import Anomaly, order
from gate.policy.anomalies.counted import Cells, Counted, Weeks
from gate.policy.anomalies.drift import Drift, find_drift
from gate.policy.anomalies.scores import HIGH, MEDIUM, severity
from gate.policy.anomalies.shifts import Rate, Shift, find_shifts, taken_over
from gate.policy.anomalies.telling.telling import Telling
from gate.policy.anomalies.volume import GRAINS, Surge, find_surges, grain_of
from gate.policy.anomalies.weekly import windows
from gate.policy.anomalies.weekly.groups import LEAST_GROUPS
from gate.policy.anomalies.weekly.levels import MetricShift
from gate.policy.notes import by_clock, without_advice
from gate.policy.questions import AnomaliesQuestion

_DAY: Final = timedelta(days=1)
_DIGITS: Final = 6
_DATE: Final = "2026-01-31"
_NOTES: Final = (
    "Nothing here is a model's prediction: every anomaly follows from counts, by the formulas in "
    "docs/reference/formulas/anomalies.md.",
    "An anomaly says that something changed or that a rule of the protocol was broken, but not why: windows and "
    "versions cover different cases.",
    "Outcomes are as callers reported them, and are compared at equal age. The latest weeks have few of them, and "
    "failures often come last.",
    "The report cannot show an effect that has lasted since the first week, or a change smaller than a small "
    "effect in half a year.",
)
_OVERDUE: Final = (
    "Outcomes and receipts are overdue by the date of the chain's last entry, not by the clock: in a scope without "
    "new entries, nothing becomes overdue."
)
_TRUNCATED: Final = "Earlier decisions were left out because of limit."
_SAMPLED: Final = "The usual values of facts and metrics were learned from one in {one_of} decisions."
_THIN: Final = (
    "Some weeks have fewer than min_sample decisions, and are compared only together with neighboring weeks. "
    "Decisions that arrive in one minute count only as far as they differ."
)
_FEW: Final = "There are too few decisions to compare."
_UNMEASURED: Final = (
    "No outcome of these weeks has the metric {metric} that the parameter value selects, so no effect has a value."
)
_UNTIMED: Final = (
    "Nearly all decisions are dated to a whole day, hour, or quarter of an hour. Their minute is unknown, so each "
    "counts as if it came alone."
)
_FAR: Final = (
    "{decisions:,} of {all:,} decisions lie more than 104 weeks from the others, such as that of {date}. They are "
    "in no week that is compared. If such a date means that there is none, leave it out."
)
_MORE: Final = "More anomalies were found than are listed: raise max_items."


def find(counted: Counted, question: AnomaliesQuestion) -> list[Anomaly]:
    """Every anomaly, in the order of the report.

    Args:
        counted: The counts.
        question: The question. Its threshold is not applied yet.
    """
    told = Telling(counted, question.policy_id)
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
        found += [told.metric(group) for group in _together(counted.metric_shifts)]
    found += [told.outliers(of) for of in counted.outliers if of.count]
    return sorted(found, key=lambda anomaly: order(anomaly.to_dict(question.policy_id, ())))


def strongest(found: Iterable[Anomaly], question: AnomaliesQuestion) -> list[Anomaly]:
    """The anomalies that are listed: at most `max_items` that reach the threshold."""
    return [anomaly for anomaly in found if anomaly.score >= question.threshold][: question.max_items]


def anomaly_report(
    counted: Counted,
    found: Sequence[Anomaly],
    decision_ids: Sequence[Sequence[str]],
    question: AnomaliesQuestion,
) -> dict[str, Any]:
    """The anomaly report of a policy (`policy_anomalies_v1`).

    Args:
        counted: The counts of the decisions that the question selects.
        found: The anomalies from `find`.
        decision_ids: For each of the `strongest`, the ids of decisions that show it.
        question: The question.

    Returns:
        The report, with `anomaly_hash` over its other fields.
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
            anomaly.to_dict(question.policy_id, ids, imported=counted.imported)
            for anomaly, ids in zip(listed, decision_ids, strict=True)
        ],
        "min_sample": question.min_sample,
        "threshold": question.threshold,
        "max_items": question.max_items,
        "value": question.value,
        "limit": question.limit,
        "parameters": {
            "window_weeks": list(windows.LENGTHS),
            "reference_weeks": windows.REFERENCE,
            "slow_weeks": windows.HALF_A_YEAR,
            "least_groups": LEAST_GROUPS,
            "false_discovery_rate": windows.FALSE_DISCOVERIES,
            "alarm_chance": windows.ALARM_CHANCE,
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
    if not counted.imported:
        yield _OVERDUE
    if counted.decisions < question.min_sample:
        yield _FEW
    if counted.weeks is not None and counted.weeks.has_thin(question.min_sample):
        yield _THIN
    if counted.untimed:
        yield _UNTIMED
    if counted.far is not None:
        yield _FAR.format(decisions=counted.far.decisions, all=counted.decisions, date=counted.far.date[: len(_DATE)])
    if counted.sampled_one_of > 1:
        yield _SAMPLED.format(one_of=counted.sampled_one_of)
    if counted.truncated:
        yield _TRUNCATED
    if len(above) > len(listed):
        yield _MORE
    if question.value is not None and not any(number for number, _ in counted.value or ()):
        yield _UNMEASURED.format(metric=question.value)
    yield from by_clock(question.clock)
    yield from without_advice(counted.advisory)


def _rates(weeks: Weeks) -> list[Rate]:
    ages = zip(*weeks.outcomes.values(), strict=True)
    terminal: list[Sequence[int]] = [[sum(counts) for counts in zip(*statuses, strict=True)] for statuses in ages]
    counted: list[tuple[str, str, list[Sequence[int]], list[Sequence[int]]]] = [
        ("verdict", name, [counts], [weeks.decisions]) for name, counts in sorted(weeks.verdicts.items())
    ]
    counted += [("reason", name, [counts], [weeks.decisions]) for name, counts in sorted(weeks.reasons.items())]
    counted += [("outcome", name, [*counts], terminal) for name, counts in sorted(weeks.outcomes.items())]
    return [Rate(of, name, parts, wholes, weeks.groups.get((of, name))) for of, name, parts, wholes in counted]


def _surges(cells: Sequence[Cells]) -> list[Surge]:
    number = grain_of([of.counts for of in cells])
    if number is None:
        return []
    of = cells[number]
    return find_surges(GRAINS[number], of.start, of.counts, of.arrivals)


_Found = TypeVar("_Found", Shift, Drift, MetricShift)


def _together(found: Iterable[_Found]) -> list[list[_Found]]:
    """What happened at about the same time, the strongest of it first: with at least a quarter of all their weeks
    in common, or from the same week on. So no two groups begin at once, and each has an id of its own.
    """
    groups: list[list[_Found]] = []
    for item in sorted(found, key=_strongest_first):
        group = next((group for group in groups if _are_together(group[0], item)), None)
        if group is None:
            groups.append([item])
        else:
            group.append(item)
    return groups


def _are_together(leader: Shift | Drift | MetricShift, item: Shift | Drift | MetricShift) -> bool:
    if isinstance(leader, MetricShift) and isinstance(item, MetricShift):
        # Each metric has an anomaly of its own.
        same = (leader.metric, leader.version) == (item.metric, item.version)
        return same and leader.windows.goes_with(item.windows)
    return leader.windows.goes_with(item.windows)


def _strongest_first(item: Shift | Drift | MetricShift) -> tuple[bool, float, str, str]:
    # A tail is a part of the values, and its effect is no measure of all of them. Two rates that add up to 1 change
    # equally, except in the last digit of an arc sine.
    return isinstance(item, MetricShift) and item.tail is not None, -_rounded(abs(item.effect)), *item.what


def _rounded(value: float) -> float:
    return round(value, _DIGITS)
