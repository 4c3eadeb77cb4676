"""Tells metrics that shifted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from gate.policy.anomalies.anomaly import DIFFERS, SLOW, Anomaly, Effect, Next, report_of
from gate.policy.anomalies.outliers import GREATEST
from gate.policy.anomalies.scores import (
    BELOW_HIGH,
    DELTA,
    score,
)
from gate.policy.anomalies.telling.base import Base, days_of, in_half_a_year, rounded, significant
from gate.policy.anomalies.weekly.levels import LOCATION, SPREAD, MetricShift

_MOVED: Final = {
    (LOCATION, True): "rose",
    (LOCATION, False): "fell",
    (SPREAD, True): "spread_grew",
    (SPREAD, False): "spread_shrank",
}


class Metrics(Base):
    """Makes anomalies of metrics that shifted."""

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
            summary=f"{_metric_called(top, versions)}{in_half_a_year(windows)}.",
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
        return replace(told, value=rounded((now - then) * shift.decisions))

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
            "age_days": days_of(shift.horizon),
            "before": before,
            "within": within,
            "difference": max(-GREATEST, min(GREATEST, shift.within.median - shift.before.median)),
            "cliffs_delta": rounded(shift.effect),
            "least_delta": rounded(shift.least_effect),
            "groups": {"before": shift.groups[0], "within": shift.groups[1]},
            "design_effect": {"before": shift.design_effects[0], "within": shift.design_effects[1]},
            "p_value": significant(shift.p_value),
            "required_p": significant(shift.required_p),
        }


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
