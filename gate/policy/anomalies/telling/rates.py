"""Describes shifts of the rates of verdicts, reasons, and outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from gate.policy.anomalies.anomaly import SLOW, Anomaly, Next, report_of
from gate.policy.anomalies.counted import ENDED, WORSE
from gate.policy.anomalies.scores import (
    BELOW_HIGH,
    EFFECT,
    HARM,
    HIGH,
    Marks,
    score,
)
from gate.policy.anomalies.shifts import Shift
from gate.policy.anomalies.statistics import Share, difference_interval
from gate.policy.anomalies.telling.base import Base, days_of, rounded, significant, since_half_a_year, with_steps
from gate.policy.anomalies.weekly.windows import Windows

_IMPROVED: Final = 0.59
"""The greatest score of improved outcomes."""

_REPLAY: Final = "Replay them under the previous version: which of them would it not have let through?"


class Rates(Base):
    """Makes anomalies of rates that shifted."""

    def outcomes(self, group: Sequence[Shift]) -> Anomaly:
        """Outcomes that shifted at about the same time."""
        worse = [shift for shift in group if shift.rose == WORSE[shift.value]]
        better = [shift for shift in group if shift.rose != WORSE[shift.value]]
        scores = [_score(shift, HARM) for shift in worse] + [min(_score(shift, EFFECT), _IMPROVED) for shift in better]
        told = self._shifted("outcome_shift", group, max(scores), "outcome_status", harm=bool(worse))
        harms = any(
            shift.is_certain and abs(shift.effect) >= HARM.considerable and shift.least_effect >= HARM.noticeable
            for shift in worse
        )
        if harms and ("new_versions" in told.numbers or told.effect.lasting):
            # The effect of a change of one's own can be undone today, and what lasts costs more each week.
            told = with_steps(told, [], score=max(told.score, HIGH))
        return with_steps(
            told,
            [
                Next(
                    "Compare the versions, rules, and weeks of the decisions.",
                    report_of(self._policy_id, "effectiveness"),
                ),
                *self._searches(told.shown, verdict="yes"),
                *([Next(_REPLAY)] if "new_versions" in told.numbers else []),
            ],
        )

    def verdicts(self, group: Sequence[Shift]) -> Anomaly:
        """Verdicts and reasons that did."""
        strength = max(_score(shift, EFFECT) for shift in group)
        told = self._shifted("verdict_shift", group, strength, None)
        versions = self._new_versions(group[0].windows)
        if versions:
            # A new version is meant to decide differently.
            told = with_steps(told, [], score=min(told.score, BELOW_HIGH))
        rose = [shift for shift in group if shift.rose]
        of_reason = {shift.of for shift in rose} == {"reason"}
        column = None if not rose else "reason_code" if of_reason else "verdict"
        values = tuple(shift.value for shift in rose if shift.of == ("reason" if of_reason else "verdict"))
        steps = [
            Next(f"Read what version {version} changed, and check whether this effect was intended.")
            for version in versions
        ]
        if not versions:
            steps.append(Next(self._without_version(group[0].windows)))
        chosen = {"reason_code": values[0]} if of_reason else {"verdict": values[0]} if values else {}
        return with_steps(
            told,
            [*steps, *self._searches(told.shown, **chosen)],
            shown=replace(told.shown, column=column, values=values),
        )

    def _without_version(self, windows: Windows) -> str:
        """What to look at where the versions that gained decisions did not gain half of them."""
        gained = self._most_gained(windows)
        if gained is None:
            return "No version changed at the same time: check the facts that callers send, and fact_drift."
        version, before, within = gained
        return (
            f"No version gained half of the decisions. Version {version} gained most, from {before.rate:.1%} to "
            f"{within.rate:.1%} of them. Check what it changed, the facts that callers send, and fact_drift."
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
            f"{top.within.rate:.1%}{since}{since_half_a_year(top.windows)}.",
            first=first,
            last=last,
            decisions=top.within.whole,
            shown=replace(self._shown(group[0].windows), column=column if rose else None, values=rose),
            effect=self._lasting_effect(
                top.windows,
                None if top.lasting is None else top.lasting.until,
                max(_cases(shift) for shift in group),
                harm=harm,
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
                "rate": rounded(shift.within.rate - shift.before.rate),
                "low": rounded(low),
                "high": rounded(high),
            },
            "cohens_h": rounded(shift.effect),
            "least_h": rounded(shift.least_effect),
            "groups": {"before": shift.then.groups, "within": shift.now.groups},
            "design_effect": {"before": shift.then.design_effect, "within": shift.now.design_effect},
            "p_value": significant(shift.p_value),
            "required_p": significant(shift.required_p),
        }

    def _age(self, shift: Shift) -> int | None:
        """How many days after their decision outcomes came at most that are compared; None where they are all."""
        return days_of(self._weeks.horizons[shift.windows.last])


def _cases(shift: Shift) -> int:
    """How many cases went otherwise than they would have before."""
    if shift.lasting is not None:
        return shift.lasting.cases
    return round(abs(shift.within.rate - shift.before.rate) * shift.within.whole)


def _called(shift: Shift) -> str:
    return {
        "verdict": f"The share of {shift.value}",
        "reason": f"The share of reason {shift.value}",
        "outcome": f"The share of outcomes {ENDED.get(shift.value, shift.value)}",
    }[shift.of]


def _score(shift: Shift, marks: Marks) -> float:
    """The score of a shift: below high where chance alone could have made it, among so many."""
    of = score(shift.least_effect, marks)
    return of if shift.is_certain else min(of, BELOW_HIGH)


def _share(of: Share) -> dict[str, float]:
    return {"count": of.part, "of": of.whole, "rate": rounded(of.rate)}
