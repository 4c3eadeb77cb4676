"""The sentence above each chart and page: what the numbers show, or that they show nothing.

    Version 4 succeeded in 63% of 217 let-through cases, the others in 86% of 2,243 like ones
    Version 4 let through 29 cases of a kind that the others mostly stop: 9 succeeded; of the others' cases, 88% did
    refund_policy succeeded in 86% of 2,986 let-through cases; no version does worse than the others
    Too few cases to judge refund_policy: 7 of at least 20

A case is a decision with a terminal outcome. The effectiveness report says which version is worse, by rates that are
standardized to like cases, and by the cases that only one version lets through. For verdicts and rules,
`gate.policy.effectiveness.below_others` says it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from types import MappingProxyType
from typing import Any, Final

import polars as pl

from gate.ids import parse_timestamp
from gate.policy.confidence import MIN_SAMPLE, Counts
from gate.policy.effectiveness import LET_THROUGH, Standing, below_others, together
from gate.policy.questions import VERDICTS
from workbench.columns import NO_VERDICT
from workbench.engines.rendering import cut, on_one_line, percent
from workbench.engines.wording import (
    amount,
    counted,
    day,
    decided_by,
    described,
    in_words,
    joined,
    phrase,
    span,
    whole_percent,
)
from workbench.values import FACT

FEW: Final = MIN_SAMPLE
"""A rate with fewer cases than this is drawn in gray."""

_NAMES: Final = 3
_FACTS: Final = 10
_STATUSES: Final = (*Counts._fields, "unreported")
_CHANGES: Final = ("outcome_shift", "verdict_shift", "metric_shift", "volume", "fact_drift")
_BROKEN: Final[Mapping[str, str]] = MappingProxyType(
    {
        "executed_without_yes": "were executed or queued without a yes",
        "executed_though_refused": "were executed or queued although their owner had refused",
        "executed_though_expired": "were executed or queued after their review had expired",
        "executed_before_grant": "were executed or queued before their owner granted it",
        "executed_after_grant_ended": "were executed or queued after their owner's grant had ended",
        "duplicate_execution": "were executed more than once without being reverted",
        "binding_mismatch": "have a receipt that states another target",
        "action_mismatch": "have a receipt that states another action",
        "state_mismatch": "have state hashes that contradict the receipt's status",
        "approved_without_receipt": "were approved more than a day ago without an execution receipt",
        "outcome_overdue": "were executed more than 30 days ago without a final outcome",
        "outcome_reversed": "succeeded at first and failed or were reverted later",
    }
)
"""What happened to the decisions of a broken lifecycle, by its subject."""
_WITHHELD: Final[Mapping[str, str]] = {
    "not_frozen": "no month has been frozen yet",
    "not_opted_in": "this scope does not take part",
    "too_few_scopes": "too few other scopes have outcomes under this policy",
    "too_few_decisions": "other scopes made too few decisions under this policy",
}


def standings(rows: pl.DataFrame, name: str) -> dict[str, Standing]:
    """The counts of a frame's rows, added up by one of its columns. Statuses without a column count as 0."""
    statuses = [status for status in _STATUSES if status in rows.columns]
    added = rows.group_by(name, maintain_order=True).agg(pl.col(statuses).sum())
    return {key: Standing(**dict(zip(statuses, counts, strict=True))) for key, *counts in added.iter_rows()}


def success(policy_id: str, part: str, parts: Mapping[str, Standing], min_sample: int = FEW) -> str:
    """Which parts of a policy's decisions do worse than the others, or how all of them do.

    Args:
        policy_id: The policy.
        part: The kind of parts, `verdict` or `rule`.
        parts: The counts of each part.
        min_sample: The number of cases that a judgment needs.
    """
    whole = together(parts.values()) if parts else Standing()
    if (short := _too_few(cut(policy_id), whole, min_sample)) is not None:
        return short
    if below := below_others(parts, min_sample):
        rest = together(of for name, of in parts.items() if name not in below)
        named = [name for name in parts if name in below]
        return (
            f"{_called(part, named)} succeeded in {_rate(together(parts[name] for name in named))}, "
            f"the others in {_rate(rest, noun='')}"
        )
    compared = sum(of.terminal >= min_sample for of in parts.values())
    none = f"; no {part} does worse than the others" if compared > 1 else ""
    return f"{cut(policy_id)} succeeded in {_rate(whole)}{none}"


def versions_success(body: Mapping[str, Any]) -> str:
    """Which versions of a policy do worse than the others, or how its let-through actions do.

    Args:
        body: An effectiveness report.
    """
    policy_id, acted = cut(body["policy_id"]), _let_through(body)
    if not acted.terminal and (short := _too_few(policy_id, Standing(**body["outcomes"]), 1)) is not None:
        return short
    if acted.terminal < body["min_sample"]:
        return f"Too few let-through cases to judge {policy_id}: {acted.terminal:,} of at least {body['min_sample']:,}"
    below = [of for of in body["versions"] if of["below_others"]]
    if len(below) == 1:
        return f"{_called('version', [below[0]['policy_version']])} {_worse(below[0]['compared'])}"
    if below:
        called = _called("version", [of["policy_version"] for of in below])
        return f"{called} do worse than the others"
    none = "; no version does worse than the others" if _judged(body) > 1 else ""
    return f"{policy_id} succeeded in {_rate(acted, noun='let-through case')}{none}"


def version(body: Mapping[str, Any], name: str, own: Standing) -> str:
    """How well one version of a policy does compared with the others, or that it has too few cases.

    Args:
        body: The effectiveness report of all versions.
        name: The version.
        own: The results of its decisions.
    """
    called = f"version {cut(name)} of {cut(body['policy_id'])}"
    listed = next((of for of in body["versions"] if of["policy_version"] == name), None)
    acted = own if listed is None else Standing(**listed["let_through"]["outcomes"])
    if (short := _too_few(called, acted if acted.decisions else own, body["min_sample"])) is not None:
        return short
    compared = (None if listed is None else listed["compared"]) or {}
    if compared.get("admits_worse"):
        return f"V{called[1:]} {_worse(compared)}"
    like = compared.get("standardized")
    if like is None or min(like["cases"], like["other_cases"]) < body["min_sample"]:
        noun = "case" if listed is None else "let-through case"
        return f"V{called[1:]} succeeded in {_rate(acted, noun=noun)}"
    return f"V{called[1:]} {_beside(compared)}"


def versions(body: Mapping[str, Any]) -> str:
    """Which versions of a policy do worse than its others, or that none does.

    Args:
        body: An effectiveness report.
    """
    number, below = body["coverage"]["versions"], body["versions_below_others"]
    if not number:
        return "No version decided"
    if number == 1:
        return f"Version {cut(body['versions'][0]['policy_version'])} made every decision"
    if below:
        named = [cut(of["policy_version"]) for of in body["versions"] if of["below_others"]]
        more = [f"{below - _NAMES:,} more"] if below > _NAMES else []
        verb = "does" if below == 1 else "do"
        whole = f"{below:,} of {number:,} versions {verb} worse than the others"
        return f"{whole}: {joined([*named[:_NAMES], *more])}"
    if _judged(body) < 2:
        return f"Too few like cases to compare {number:,} versions: fewer than two have {body['min_sample']:,}"
    return f"None of {number:,} versions does worse than the others among like cases"


def _let_through(body: Mapping[str, Any]) -> Standing:
    """The results of the let-through actions of an effectiveness report."""
    found = [Standing(**of["outcomes"]) for of in body["dispositions"] if of["disposition"] == LET_THROUGH]
    return found[0] if found else Standing()


def _judged(body: Mapping[str, Any]) -> int:
    """How many of the listed versions have enough cases with a like one."""
    needed = body["min_sample"] * body["comparison"]["design_effect"]
    like = [of["compared"]["standardized"] for of in body["versions"] if of["compared"] is not None]
    return sum(of is not None and min(of["cases"], of["other_cases"]) >= needed for of in like)


def _worse(compared: Mapping[str, Any]) -> str:
    """Why a version is below the others, after its name: its like cases, or else what it alone lets through."""
    if not compared["admits_worse"] or compared["like_below_others"]:
        return _beside(compared)
    alone = compared["admitted"]
    return (
        f"let through {counted(alone['cases'], 'case')} of a kind that the others mostly stop: "
        f"{round(alone['success_rate'] * alone['cases']):,} succeeded; of the others' cases, "
        f"{whole_percent(alone['others'])} did"
    )


def _beside(compared: Mapping[str, Any]) -> str:
    """Both rates among like cases; where those as they are read otherwise, these as well, and which are which."""
    raw, like = compared["raw"], compared["standardized"]
    unadjusted, rates = ([whole_percent(of[name]) for name in ("success_rate", "others")] for of in (raw, like))
    if unadjusted == rates:
        return (
            f"succeeded in {rates[0]} of {counted(like['cases'], 'let-through case')}, the others in {rates[1]} of "
            f"{like['other_cases']:,} like ones"
        )
    return (
        f"succeeded in {rates[0]} and the others in {rates[1]}, adjusted to one mix of cases (unadjusted: "
        f"{unadjusted[0]} of {counted(raw['cases'], 'let-through case')} and {unadjusted[1]} of {raw['other_cases']:,})"
    )


def weeks(rows: pl.DataFrame) -> str:
    """The weeks with the lowest and highest success, from rows `{week, <a column for each outcome status>}`."""
    dated = rows.with_columns(pl.col("week").dt.to_string("iso")).sort("week")
    of_weeks = standings(dated, "week")
    judged = [(of.success_rate or 0.0, week, of) for week, of in of_weeks.items() if of.terminal >= FEW]
    if not judged:
        return f"Too few cases to compare weeks: none has {FEW}"
    low, high = min(judged, key=lambda of: of[0]), max(judged, key=lambda of: of[0])
    (_, worst, of_worst), (_, best, of_best) = low, high
    if len(judged) == 1 and rows["week"].n_unique() > 1:
        return f"Only the week of {_date(worst)} has at least {FEW} cases: {_rate(of_worst, noun='')} succeeded"
    if len(judged) == 1:
        return f"In the week of {_date(worst)}, {_rate(of_worst)} succeeded"
    if low[0] == high[0]:
        return f"Each of {len(judged):,} weeks succeeded in {whole_percent(low[0])} of its cases"
    is_partial = any(0 < of.terminal < FEW for of in of_weeks.values())
    among = f"Among weeks of at least {FEW} cases, success" if is_partial else "Success"
    return (
        f"{among} was lowest in the week of {_date(worst)} ({_rate(of_worst)}) and highest in the week of "
        f"{_date(best)} ({_rate(of_best, noun='')})"
    )


def volume(policy_id: str, rows: pl.DataFrame) -> str:
    """The number of decisions of a policy without any final outcome yet, from rows `{verdict, decisions, ...}`."""
    whole, shares = int(rows["decisions"].sum()), verdicts(rows).partition(": ")[2]
    if not whole:
        return f"No decisions by {cut(policy_id)}"
    return f"{counted(whole, 'decision')} by {cut(policy_id)}, none with a final outcome yet: {shares}"


def support(policy_id: str, score: float, level: str, parts: Mapping[str, Standing], min_sample: int = FEW) -> str:
    """How far outcomes support a policy, with the number of cases behind the score."""
    whole = together(parts.values()) if parts else Standing()
    if not whole.decisions:
        return f"No decision by {cut(policy_id)} has an outcome"
    if (short := _too_few(cut(policy_id), whole, min_sample)) is not None:
        return short
    return f"Confidence in {cut(policy_id)} is {level} ({percent(score)}): {_rate(whole)} succeeded"


def policies(rows: pl.DataFrame) -> str:
    """The lowest and highest success rate of the policies of a roll-up, `{scope, policy_id, ...}`."""
    rated = [
        (of.success_rate, f"{cut(policy_id)} in {cut(scope)}", of)
        for scope, policy_id, *counts in rows.select("scope", "policy_id", *_STATUSES).iter_rows()
        if (of := Standing(*counts)).terminal >= FEW and of.success_rate is not None
    ]
    if not rows.height:
        return "No decisions"
    if not rated:
        return f"Too few cases to judge any policy: none has {FEW}"
    low, high = min(rated, key=lambda of: of[0]), max(rated, key=lambda of: of[0])
    if len(rated) == 1:
        return f"{low[1]} succeeded in {_rate(low[2])}"
    return (
        f"{len(rated):,} policies succeeded in {whole_percent(low[0])} ({low[1]}) to "
        f"{whole_percent(high[0])} ({high[1]}) of their cases"
    )


def anomalies(body: Mapping[str, Any]) -> str:
    """The number of anomalies that a report lists, by severity."""
    policy_id, decisions, found = cut(body["policy_id"]), body["coverage"]["decisions"], body["anomaly_count"]
    if not decisions:
        return f"No decisions by {policy_id}"
    if not found and body["recommendation"] == "insufficient_data":
        return f"Too few decisions by {policy_id} to find anomalies: {decisions:,}"
    if not found:
        return f"No anomalies among {counted(decisions, 'decision')} by {policy_id}"
    severities = joined([f"{number:,} {severity}" for severity, number in body["severities"].items() if number])
    plural = "anomaly" if found == 1 else "anomalies"
    return f"{found:,} {plural} among {counted(decisions, 'decision')} by {policy_id}: {severities}"


def anomaly(found: Mapping[str, Any]) -> str:
    """The essence of an anomaly, in numbers."""
    numbers, kind = found["numbers"], found["kind"]
    if kind == "volume":
        number, are = numbers["usual"], "is" if numbers["usual"] == 1 else "are"
        unit = counted(numbers["cells"], numbers["grain"])
        return f"{counted(numbers['decisions'], 'decision')} in {unit}, where {number:,} {are} usual"
    if kind == "metric_outlier":
        metric, farthest = cut(in_words(numbers["metric"])), numbers["farthest"][0]
        return (
            f"{found['decisions']:,} of {counted(numbers['values'], 'value')} of {metric} are unusual: the farthest "
            f"is {amount(farthest['value'])}, where {amount(farthest['usual'])} is usual"
        )
    if kind == "fact_drift":
        return _drifted(numbers["facts"][0])
    return on_one_line(str(found["summary"])).removesuffix(".")


def headline(policy_id: str, found: Mapping[str, Any], *, when: bool = False) -> str:
    """An anomaly in one sentence, with its policy and, for a change, its time.

    Args:
        policy_id: The policy.
        found: The anomaly.
        when: Whether to state the time of every anomaly.
    """
    kind = found["kind"]
    at = f", {_within(found['window'])}" if when or kind in _CHANGES else ""
    broken = _BROKEN.get(found["subject"]) if kind == "lifecycle_break" else None
    if broken is not None:
        number, of = found["numbers"]["count"], found["numbers"]["of"]
        happened = broken.replace("were ", "was ").replace("have ", "has ", 1) if number == 1 else broken
        return f"{cut(policy_id)}: {number:,} of {counted(of, 'decision')} {happened}{at}"
    told = anomaly(found)
    return f"{cut(policy_id)}: {told[0].lower()}{told[1:]}{at}"


def benchmark(body: Mapping[str, Any]) -> str:
    """The place of a policy's success rate among those of other scopes."""
    own, across, policy_id = body["your_metrics"], body["cross_customer"], cut(body["policy_id"])
    rate, terminal = own["success_rate"], own["terminal"]
    if rate is None:
        return f"{policy_id} has no case to compare"
    if terminal < FEW:
        return f"Too few cases to compare {policy_id}: {terminal:,} of at least {FEW}"
    yours = f"{policy_id} succeeded in {whole_percent(rate)} of {counted(terminal, 'case')}"
    if across["percentiles"] is None:
        return f"{yours}; not compared with others"
    of = across["percentiles"]["success_rate"]
    low, high = of["p25"], of["p75"]
    where = "below" if rate < low else "above" if rate > high else "within"
    return f"{yours}, {where} the middle half of others ({whole_percent(low)} to {whole_percent(high)})"


def beside_others(body: Mapping[str, Any]) -> str:
    """The distance of each of a policy's rates from the median of other scopes, or why nothing is compared."""
    deltas = body["cross_customer"]["deltas"]
    if deltas is None:
        return f"Nothing is compared: {_WITHHELD[body['cross_customer']['reason']]}"
    parts = [
        f"{in_words(metric)} {abs(delta) * 100:.1f} points {'above' if delta > 0 else 'below'}"
        for metric, delta in deltas.items()
        if delta is not None and delta != 0
    ]
    if not parts:
        return "No rate differs from the median of others"
    return f"Compared with the median of others: {joined(parts)}"


def redecided(body: Mapping[str, Any]) -> str:
    """The number of decisions that would get another verdict."""
    changed, whole, policy_id = body["verdict_changed"], body["redecided"], cut(body["policy_id"])
    if not body["decisions"]:
        return f"No decisions by {policy_id}"
    if not whole:
        return f"The facts of none of {counted(body['decisions'], 'decision')} by {policy_id} are known"
    if not changed:
        return f"None of {counted(whole, 'decision')} by {policy_id} would get another verdict"
    return (
        f"{changed:,} of {counted(whole, 'decision')} by {policy_id} would get another verdict "
        f"({whole_percent(changed / whole)})"
    )


def failing(body: Mapping[str, Any]) -> str:
    """The number of decisions that would fail the schema check, and the facts that cause it; empty if none would.

    Args:
        body: A counterfactual report.
    """
    if not body["needs_input"]:
        return ""
    whole = f"{body['needs_input']:,} would fail the schema check"
    if body["unfit"] is None:
        return f"{whole}: a fact is missing or has the wrong type"
    more = len(body["unfit"]) - _FACTS
    told = [f"{cut(of['fact'])} {_lacking(of)}" for of in body["unfit"][:_FACTS]]
    return f"{whole}: {joined([*told, *([f'{more:,} more facts'] if more > 0 else [])])}"


def _lacking(of: Mapping[str, Any]) -> str:
    kinds = {"is missing": of["missing"], "has the wrong type": of["mistyped"]}
    return " and ".join(f"{kind} in {number:,}" for kind, number in kinds.items() if number)


def approvals(body: Mapping[str, Any]) -> list[str]:
    """Sentences about approvals gained and lost, and the sum of each metric in them. There are none if no case has a
    verdict that could change.

    Args:
        body: A counterfactual report.
    """
    if body["redecided"] == body["verdicts"]["before"].get(NO_VERDICT, 0):
        return []
    more, fewer = body["let_through"]["more"], body["let_through"]["fewer"]
    changes = f"{more:,} more would be approved, and {fewer:,} would no longer be."
    told = [changes if more or fewer else "No approval would be gained or lost."]
    told += owners_answers(body)
    for metric in body["metrics"]:
        moved = [of for of in body["worth"] if of["metric"] == metric]
        told += worth(metric, more, [of for of in moved if of["then_verdict"] == "yes"], "would be approved")
        told += worth(metric, fewer, [of for of in moved if of["verdict"] == "yes"], "would no longer be approved")
    measured = (of for of in body["worth"] if of["then_verdict"] == "yes" and of["values"])
    if any(not of["metric"].startswith(FACT) for of in measured):
        told.append("A decision that was not approved has a metric only if its action happened anyway.")
    return told


def owners_answers(body: Mapping[str, Any]) -> list[str]:
    """Sentences about how owners resolved the held decisions that would be approved or refused; none if no owner
    answered.

    Args:
        body: A counterfactual report.
    """
    would = {"yes": "approved", "no": "refused"}
    return [
        answered(of["decisions"], f"would be {would[of['then_verdict']]}", of)
        for of in body.get("reviews", [])
        if of["then_verdict"] in would and of["granted"] + of["refused"] + of["expired"]
    ]


def answered(held: int, would: str, of: Mapping[str, int]) -> str:
    """How owners resolved some held decisions: `Of 40 decisions that had been held and would be approved, owners
    granted 31 and refused 9.`

    Args:
        held: The number of these decisions.
        would: Their new result.
        of: The numbers of granted, refused, expired, and still held decisions.
    """
    rest = [f"{of['expired']:,} expired unanswered"] if of["expired"] else []
    rest += [f"{of['held']:,} {'is' if of['held'] == 1 else 'are'} not resolved"] if of["held"] else []
    told = f"owners granted {of['granted']:,} and refused {of['refused']:,}"
    return f"Of {counted(held, 'decision')} that had been held and {would}, {'; '.join([told, *rest])}."


def worth(metric: str, cases: int, moved: Sequence[Mapping[str, Any]], would: str) -> list[str]:
    """The sum of a metric over cases that would be decided differently, and the number without a value, as a sentence;
    none without such cases.

    Args:
        metric: The metric.
        cases: The number of cases.
        moved: Their parts, each with its number of `values` and their `sum`, null if it is too large.
        would: The new result of the cases.
    """
    if not cases:
        return []
    name, values, rest = cut(metric), sum(of["values"] for of in moved), cases - sum(of["values"] for of in moved)
    sums = [of["sum"] for of in moved if of["values"]]
    total = "more than can be shown" if None in sums else amount(sum(sums))
    if not values and cases == 1:
        return [f"The one that {would} has no value of {name}."]
    if not values:
        return [f"None of the {cases:,} that {would} has a value of {name}."]
    if not rest:
        return [f"{name} of the {'one' if cases == 1 else f'{cases:,}'} that {would} comes to {total}."]
    some = f"1 has a value of {name}, which is" if values == 1 else f"{values:,} have values of {name}, which come to"
    return [
        f"Of the {cases:,} that {would}, {some} {total}; the other {'one has' if rest == 1 else f'{rest:,} have'} none."
    ]


def verdicts(rows: pl.DataFrame) -> str:
    """The number of decisions and the share of each verdict, from rows `{verdict, decisions, ...}`."""
    by_verdict = _added(rows, "verdict")
    whole = sum(by_verdict.values())
    if not whole:
        return "No decisions"
    shares = ", ".join(f"{whole_percent(by_verdict[of] / whole)} {of}" for of in VERDICTS if by_verdict.get(of))
    return f"{counted(whole, 'decision')}: {shares}"


def reasons(rows: pl.DataFrame) -> str:
    """The most frequent reason, from rows `{reason_code, decisions, ...}`."""
    return _most_frequent({cut(name): number for name, number in _added(rows, "reason_code").items()}, "reason")


def rules(rows: pl.DataFrame) -> str:
    """The rule that decided most, and the number of rules that never hit, from rows `{rule, decisions, ...}`."""
    by_rule = {cut(decided_by(name)): number for name, number in _added(rows, "rule").items()}
    hit = {name: number for name, number in by_rule.items() if number}
    never = len(by_rule) - len(hit)
    found = _most_frequent(hit, "rule")
    return f"{found}; {never:,} {'rule' if never == 1 else 'rules'} never hit" if never else found


def latency(rows: pl.DataFrame) -> str:
    """The usual time until first outcomes, from rows `{week, decisions, with_outcome, median_hours, p90_hours}`."""
    decisions, outcomes = (int(rows[column].sum()) for column in ("decisions", "with_outcome"))
    if not decisions:
        return "No decisions"
    if not outcomes:
        return f"No outcome with a date yet, of {counted(decisions, 'decision')}"
    judged = rows.filter((pl.col("with_outcome") >= FEW) & pl.col("median_hours").is_not_null())
    if judged.is_empty():
        return f"Too few outcomes to judge how long they take: no week has {FEW}"
    half, most = judged.select(pl.col("median_hours", "p90_hours").median()).row()
    within = f"came within {span(half)}, 90% within {span(most)}"
    if judged.height == 1:
        return f"In the week of {day(judged['week'][0])}, half of {judged['with_outcome'][0]:,} first outcomes {within}"
    return f"In a typical week, half of the first outcomes {within} (medians of {judged.height:,} weeks)"


def metric(rows: pl.DataFrame, name: str) -> str:
    """The versions with the lowest and highest median of a metric, from rows `{name, policy_version, decisions, median,
    ...}`.
    """
    of, called = rows.filter(pl.col("name") == name), cut(in_words(name))
    judged = of.filter(pl.col("decisions") >= FEW).sort("median", "policy_version")
    if not of["decisions"].sum():
        return f"No values of {called}"
    if judged.is_empty():
        return f"Too few values of {called} to compare versions: none has {FEW}"
    low, high = judged["median"][0], judged["median"][-1]
    first, last = judged["policy_version"][0], judged["policy_version"][-1]
    if judged.height == 1:
        decisions = counted(judged["decisions"][0], "decision")
        return f"The median of {called} is {low:,.4g} in {decisions} by version {cut(first)}"
    if low == high:
        return f"The median of {called} is {low:,.4g} for each of {judged.height:,} versions"
    return (
        f"The median of {called} is lowest with version {cut(first)} ({low:,.4g}) and highest with version {cut(last)} "
        f"({high:,.4g})"
    )


def _added(rows: pl.DataFrame, name: str) -> dict[str, int]:
    """The decisions of a frame's rows, added up by one of its columns."""
    return dict(rows.group_by(name, maintain_order=True).agg(pl.col("decisions").sum()).iter_rows())


def _most_frequent(by_name: Mapping[str, int], noun: str) -> str:
    whole = sum(by_name.values())
    if not whole:
        return "No decisions"
    # Of equals the first by name.
    name, number = min(by_name.items(), key=lambda of: (-of[1], of[0]))
    if len(by_name) == 1:
        return f"{name} is the only {noun}, of {counted(whole, 'decision')}"
    share = whole_percent(number / whole)
    return f"{name} is the most frequent of {len(by_name):,} {noun}s: {number:,} of {whole:,} decisions ({share})"


def _too_few(called: str, whole: Standing, min_sample: int) -> str | None:
    if not whole.decisions:
        return f"No decisions by {called}"
    if not whole.terminal:
        return f"None of {counted(whole.decisions, 'decision')} by {called} has a final outcome yet"
    if whole.terminal < min_sample:
        return f"Too few cases to judge {called}: {whole.terminal:,} of at least {min_sample:,}"
    return None


def _called(part: str, names: Sequence[str]) -> str:
    named = [cut(decided_by(name) if part == "rule" else name) for name in names[:_NAMES]]
    more = [f"{len(names) - _NAMES:,} more"] if len(names) > _NAMES else []
    if part == "rule":
        return f"Decisions by {joined([*named, *more])}"
    return f"{phrase(part)}{'' if len(names) == 1 else 's'} {joined([*named, *more])}"


def _date(iso: str) -> str:
    return day(date.fromisoformat(iso))


def _within(window: Mapping[str, str]) -> str:
    """The days of a window, which ends before the first moment that is not within."""
    start, end = (parse_timestamp(window[at]) for at in ("from", "to"))
    last = end - timedelta(milliseconds=1)
    if end - start == timedelta(weeks=1):
        return f"in the week of {day(start)}"
    return f"on {day(start)}" if start.date() == last.date() else f"from {day(start)} to {day(last)}"


def _rate(of: Standing, noun: str = "case") -> str:
    cases = counted(of.terminal, noun) if noun else f"{of.terminal:,}"
    return f"{whole_percent(of.success_rate or 0.0)} of {cases}"


def _drifted(fact: Mapping[str, Any]) -> str:
    """The bin whose share changed most, before and within the window."""
    before, within = (max(1, sum(of[when] for of in fact["bins"])) for when in ("before", "within"))
    most = max(fact["bins"], key=lambda of: abs(of["within"] / within - of["before"] / before))
    return (
        f"{cut(described(fact['fact']))} {cut(most['holds'])}: {whole_percent(most['within'] / within)} of decisions "
        f"in the window, {whole_percent(most['before'] / before)} before"
    )
