"""Describes metrics that shifted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from gate.policy.anomalies.anomaly import DIFFERS, SLOW, Anomaly, Effect, Next, report_of
from gate.policy.anomalies.outliers import GREATEST
from gate.policy.anomalies.telling.base import Base, days_of, rounded, significant, since_half_a_year
from gate.policy.anomalies.telling.levels import called
from gate.policy.anomalies.weekly.levels import LOCATION, SPREAD, MetricShift
from gate.policy.anomalies.weekly.tails import ABOVE, BELOW
from gate.policy.anomalies.weekly.values import width

_MOVED: Final = {
    (LOCATION, True): "rose",
    (LOCATION, False): "fell",
    (SPREAD, True): "spread_grew",
    (SPREAD, False): "spread_shrank",
    (ABOVE, True): "upper_tail_grew",
    (ABOVE, False): "upper_tail_shrank",
    (BELOW, True): "lower_tail_grew",
    (BELOW, False): "lower_tail_shrank",
}

_NAMED: Final = 3


class Metrics(Base):
    """Turns shifted metrics into anomalies."""

    def metric(self, group: Sequence[MetricShift]) -> Anomaly:
        """A metric whose values are higher or lower, or lie closer together or farther apart."""
        top, windows = group[0], group[0].windows
        first, last = self._ends(windows)
        versions = [] if top.version is not None else self._new_versions(windows)
        reasons = [f"metric_{_MOVED[shift.of, shift.rose]}:{shift.metric}" for shift in group]
        reasons += ["policy_version_changed"] if versions else []
        reasons += [f"{DIFFERS}{top.version}"] if top.version is not None else []
        reasons += [f"cases_differ:{fact}" for fact in top.mixed]
        reasons += [SLOW] if windows.slow else []
        levels = [self._level(shift) for shift in group]
        shown = self._shown(windows)
        search = {} if top.version is None else {"policy_version": top.version}
        return Anomaly(
            kind="metric_shift",
            subject=top.metric,
            score=max(shift.score for shift in group),
            reasons=reasons,
            summary=f"{called(top.metric, levels[0], versions)}{_mixed(top)}{since_half_a_year(windows)}.",
            first=first,
            last=last,
            decisions=top.decisions,
            shown=shown,
            effect=self._metric_effect(top),
            numbers={
                "metric": top.metric,
                "levels": levels,
                **({"new_versions": versions} if versions else {}),
            },
            next=[
                *([Next(f"Compare like cases: version {top.version} decided different ones.")] if top.mixed else []),
                Next("Find what is measured now and was not before: another source, another unit, or other cases?"),
                Next(
                    "Compare the medians of the metric by version and week.",
                    report_of(self._policy_id, "effectiveness"),
                ),
                *self._searches(shown, **search),
            ],
        )

    def _metric_effect(self, shift: MetricShift) -> Effect:
        told = self._lasting_effect(shift.windows, shift.until, shift.decisions + shift.later, of=shift.metric)
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
                "above": of.above,
                "below": of.below,
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
            **_difference(shift),
            "cliffs_delta": rounded(shift.effect if shift.tail is None else shift.delta[0]),
            "least_delta": rounded(shift.least_effect if shift.tail is None else shift.delta[1]),
            **_beyond(shift),
            "groups": {"before": shift.groups[0], "within": shift.groups[1]},
            "design_effect": {"before": shift.design_effects[0], "within": shift.design_effects[1]},
            "p_value": significant(shift.p_value),
            "required_p": significant(shift.required_p),
        }


def _mixed(shift: MetricShift) -> str:
    """What a sentence adds of a version that met other cases."""
    return f"; its cases differ in {', '.join(shift.mixed[:_NAMED])}" if shift.mixed else ""


def _beyond(shift: MetricShift) -> dict[str, object]:
    """Of a tail, where it begins and how many values lie in it."""
    if shift.tail is None:
        return {}
    then, now = (
        {"count": of.part, "of": of.whole, "rate": rounded(of.rate)} for of in (shift.tail.before, shift.tail.within)
    )
    told = {"cut": shift.cut, "before": then, "within": now}
    return {"tail": {**told, "cohens_h": rounded(shift.effect), "least_h": rounded(shift.least_effect)}}


def _difference(shift: MetricShift) -> dict[str, object]:
    """By how much what is compared differs: the medians, or the widths of the middle half."""
    if shift.of != SPREAD:
        difference, scale = shift.within.median - shift.before.median, {}
    else:
        then, now = (width(of, ratios=shift.ratios) for of in (shift.before, shift.within))
        difference, scale = now - then, {"scale": "ratio" if shift.ratios else "difference"}
    return {**scale, "difference": significant(max(-GREATEST, min(GREATEST, difference)))}
