"""A second way to benchmark reports: one scope and decision at a time, in plain Python with fractions, from the words
of docs/reference/formulas/benchmarks.md.

It reads what `tests.independent.recount` reads: what the service answered of each scope, in chain order; and when which
scope was opted in or out. It shares no code with the product.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from tests.independent.recount import TERMINAL, Entries, Json, Told, hash_of, root_of, share, told, version_of

Coded = tuple[int, float, float, float]
"""What is told of a scope: decisions, success_rate, approval_rate, terminal_coverage."""

VALUES = [Fraction(number, 20) for number in range(1, 20)]
HALF = Fraction(1, 40)

NOTES = (
    "The rates of others are rounded to 0.05, and are shown as at least 0.05 and at most 0.95. Their numbers are "
    "rounded down to steps of 1, 2, and 5. A difference of less than 0.05 means nothing.",
    "The cohort shares the policy's id, but others may use other rules under it and meet other cases. The policy "
    "need not be the cause of a difference.",
    "Decisions are those of one month, each by its latest outcome reported before the freeze. Outcomes reported "
    "later are in no benchmark.",
    "Outcomes are as callers reported them, unchecked. Where terminal_coverage differs, success_rate covers a "
    "different part of the decisions.",
    "Only scopes that opted in and have enough outcomes take part. Other scopes may differ from them.",
)
NARROWED = (
    "Your metrics cover only the decisions that you asked for; the metrics of others cover all of their decisions."
)
LEFT_OUT = "Earlier decisions of your own were left out because of limit."


def steps() -> Iterator[int]:
    """1, 2, 5, 10, 20, 50, ..."""
    power = 1
    while True:
        yield from (power, 2 * power, 5 * power)
        power *= 10


def step_of(number: int) -> int:
    """The last step that a number reaches; 0 for 0."""
    reached = 0
    for step in steps():
        if step > number:
            return reached
        reached = step
    raise AssertionError


def value_of(part: int, whole: int) -> Fraction:
    """The value that a share is told as."""
    rate = Fraction(part, whole)
    if rate < VALUES[0] + HALF:
        return VALUES[0]
    return max(value for value in VALUES if value - HALF <= rate)


def told_of(decisions: int, approved: int, terminal: int, succeeded: int) -> Coded | None:
    """What is told of a scope; None where it does not count."""
    if terminal < 20:
        return None
    coverage = value_of(terminal, decisions)
    if terminal < 45 and not any(_alike(step_of(decisions), coverage, number) for number in range(45, 50)):
        return None
    return (
        step_of(decisions),
        float(value_of(succeeded, terminal)),
        float(value_of(approved, decisions)),
        float(coverage),
    )


def _alike(step: int, coverage: Fraction, terminal: int) -> bool:
    """Whether a scope with so many terminal outcomes can be told so."""
    numbers = range(max(step, terminal), next(other for other in steps() if other > step))
    return any(value_of(terminal, decisions) == coverage for decisions in numbers)


def previous(month: str) -> str:
    """The month before."""
    year, number = int(month[:4]), int(month[5:])
    return f"{year - 1}-12" if number == 1 else f"{year}-{number - 1:02d}"


def known_at(entries: Entries, month: str) -> list[tuple[Told, str | None]]:
    """The decisions that the freeze of a month is about, each with the status it had when the month began."""
    period = previous(previous(month))
    return [
        (
            decision,
            next(
                (
                    str(outcome["outcome_status"])
                    for _, outcome in reversed(decision.outcomes)
                    if outcome["reported_at"][:7] < month
                ),
                None,
            ),
        )
        for decision in told(entries)
        if decision.record["created_at"][:7] == period
    ]


def counts_of(known: Sequence[tuple[Told, str | None]]) -> tuple[int, int, int, int]:
    """decisions, approved, terminal, succeeded."""
    return (
        len(known),
        sum(decision.record["verdict"] == "yes" for decision, _ in known),
        sum(status in TERMINAL for _, status in known),
        sum(status == "succeeded" for _, status in known),
    )


def members(choices: Sequence[tuple[str, bool, str]], month: str) -> list[str]:
    """The scopes that were opted in when a month began: (scope, opted in, when), in the order they were chosen."""
    last: dict[str, bool] = {}
    for scope, opted_in, when in choices:
        if when[:7] < month:
            last[scope] = opted_in
    return sorted(scope for scope, opted_in in last.items() if opted_in)


def frozen(
    scopes: Mapping[str, Entries], choices: Sequence[tuple[str, bool, str]], month: str
) -> dict[str, dict[str, Coded]]:
    """What is frozen of a month: of each member, by policy, what is told of it."""
    found: dict[str, dict[str, Coded]] = {}
    for scope in members(choices, month):
        known = known_at(scopes[scope], month)
        found[scope] = {}
        for policy_id in sorted({str(decision.record["policy_id"]) for decision, _ in known}):
            of = [each for each in known if each[0].record["policy_id"] == policy_id]
            coded = told_of(*counts_of(of))
            if coded is not None:
                found[scope][policy_id] = coded
    return found


def benchmarks(
    scopes: Mapping[str, Entries],
    choices: Sequence[tuple[str, bool, str]],
    month: str,
    scope: str,
    policy_id: str,
    *,
    rows: Mapping[str, Mapping[str, Coded]] | None = None,
    policy_version: str | None = None,
    verdict: str | None = None,
    since: str | None = None,
    until: str | None = None,
    limit: int | None = None,
    min_cohort_scopes: int = 5,
    min_cohort_decisions: int = 50,
) -> Json:
    """The report of a scope, over the freeze of a month; `rows` are what is frozen of it, where that is known."""
    entries = scopes[scope]
    now = [(each, each.outcomes[-1][1]["outcome_status"] if each.outcomes else None) for each in told(entries)]

    def chosen(known: list[tuple[Told, str | None]]) -> tuple[list[tuple[Told, str | None]], bool]:
        own = [
            each
            for each in known
            if each[0].record["policy_id"] == policy_id
            and policy_version in (None, version_of(each[0]))
            and verdict in (None, each[0].record["verdict"])
            and (since or "") <= each[0].record["created_at"] < (until or "9")
        ]
        own.sort(key=lambda each: each[0].position)
        over = limit is not None and len(own) > limit
        return own[len(own) - (limit or 0) :] if over else own, over

    own, truncated = chosen(known_at(entries, month))
    present, _ = chosen(now)
    dates = sorted(decision.record["created_at"] for decision, _ in own)
    decisions, approved, terminal, succeeded = counts_of(own)
    rows = frozen(scopes, choices, month) if rows is None else rows
    others = [rows[other][policy_id] for other in rows if other != scope and policy_id in rows[other]]
    return report(
        {
            "decisions": decisions,
            "approved": approved,
            "terminal": terminal,
            "succeeded": succeeded,
            "present": counts_of(present),
            "from": dates[0] if dates else None,
            "to": dates[-1] if dates else None,
            "position": len(entries),
            "root": root_of(entries),
            "truncated": truncated,
        },
        (month, scope in rows, others),
        policy_id,
        month=month,
        policy_version=policy_version,
        verdict=verdict,
        since=since,
        until=until,
        limit=limit,
        min_cohort_scopes=min_cohort_scopes,
        min_cohort_decisions=min_cohort_decisions,
    )


def _rates(decisions: int, approved: int, terminal: int, succeeded: int) -> dict[str, float | None]:
    return {
        "success_rate": share(succeeded, terminal),
        "approval_rate": share(approved, decisions),
        "terminal_coverage": share(terminal, decisions),
    }


def report(
    own: Mapping[str, Any],
    freeze: tuple[str, bool, Sequence[Coded]] | None,
    policy_id: str,
    *,
    month: str,
    policy_version: str | None,
    limit: int | None,
    min_cohort_scopes: int,
    min_cohort_decisions: int,
    verdict: str | None = None,
    since: str | None = None,
    until: str | None = None,
) -> Json:
    """The report over counts of a caller's own, and what a freeze tells of others."""
    rates = _rates(own["decisions"], own["approved"], own["terminal"], own["succeeded"])
    decisions, _, terminal, _ = own["present"]
    present = {"decisions": decisions, "terminal": terminal, **_rates(*own["present"])}
    across = _across(rates, freeze, month, min_cohort_scopes, min_cohort_decisions)
    asked = {"verdict": verdict, "since": since, "until": until, "clock": "recorded"}
    narrowed = [NARROWED] if {verdict, since, until} != {None} else []
    body = {
        "policy_benchmarks_version": "policy_benchmarks_v1",
        "policy_id": policy_id,
        "policy_version": policy_version,
        **asked,
        "your_metrics": {"decisions": own["decisions"], "terminal": own["terminal"], **rates, "present": present},
        "cross_customer": across,
        "recommendation": _recommended(own, across),
        "min_cohort_scopes": min_cohort_scopes,
        "min_cohort_decisions": min_cohort_decisions,
        "limit": limit,
        "coverage": {
            "decisions": own["decisions"],
            "from": own["from"],
            "to": own["to"],
            "chain_position": own["position"],
            "merkle_root": own["root"],
            "truncated": own["truncated"],
        },
        "notes": [*NOTES, *narrowed, *([LEFT_OUT] if own["truncated"] else [])],
    }
    return {**body, "benchmark_hash": hash_of(body)}


def _across(
    rates: Mapping[str, float | None],
    freeze: tuple[str, bool, Sequence[Coded]] | None,
    month: str,
    min_scopes: int,
    min_decisions: int,
) -> Json:
    period = previous(previous(month))
    days = {"02": 29 if _leaps(int(period[:4])) else 28, "04": 30, "06": 30, "09": 30, "11": 30}.get(period[5:], 31)
    across: Json = {
        "status": "withheld",
        "reason": None,
        "explanation": None,
        "month": None if freeze is None else freeze[0],
        "from": f"{period}-01T00:00:00.000Z",
        "to": f"{period}-{days}T23:59:59.999Z",
        "scopes_at_least": None,
        "decisions_at_least": None,
        "percentiles": None,
        "deltas": None,
    }
    if freeze is None:
        across["reason"] = "not_frozen"
        across["explanation"] = (
            "No cohorts have been frozen yet, so there is nothing to compare with. The service freezes them when a "
            "month begins; ask again then."
        )
        return across
    _, member, others = freeze
    scopes, decisions = step_of(len(others)), step_of(sum(of[0] for of in others))
    if not member:
        across["reason"] = "not_opted_in"
        across["explanation"] = (
            f"Your scope did not take part in benchmarks when {month} began, so the report shows only your own "
            "metrics. The operator can opt your scope in; it then takes part from the next month on."
        )
    elif scopes < min_scopes:
        across["reason"] = "too_few_scopes"
        across["explanation"] = (
            f"Fewer than {min_scopes} of the other scopes that took part when {month} began have enough outcomes "
            "under this policy. Their number is rounded down to a step before it is compared. A comparison needs "
            "more scopes that opt in and report "
            f"outcomes{'' if min_scopes == 5 else ', or a lower min_cohort_scopes'}."
        )
    elif decisions < min_decisions:
        across["reason"] = "too_few_decisions"
        across["explanation"] = (
            f"The other scopes that took part when {month} began made fewer than {min_decisions} decisions under "
            "this policy. Their number is rounded down to a step before it is compared. A comparison needs more "
            f"decisions{'' if min_decisions == 50 else ', or a lower min_cohort_decisions'}."
        )
    else:
        names = ("success_rate", "approval_rate", "terminal_coverage")
        percents = (10, 25, 50, 75, 90) if scopes >= 20 else (25, 50, 75)
        percentiles = {
            name: {f"p{percent}": nearest_rank([of[at] for of in others], percent) for percent in percents}
            for at, name in enumerate(names, 1)
        }
        across |= {
            "status": "available",
            "scopes_at_least": scopes,
            "decisions_at_least": decisions,
            "percentiles": percentiles,
            "deltas": {
                name: None if (rate := rates[name]) is None else round(rate - percentiles[name]["p50"], 6)
                for name in names
            },
        }
    return across


def _leaps(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def nearest_rank(values: Sequence[float], percent: int) -> float:
    """The least of some values that so many percent of them do not exceed."""
    return min(value for value in values if 100 * sum(other <= value for other in values) >= percent * len(values))


def _recommended(own: Mapping[str, Any], across: Json) -> str:
    if across["status"] == "withheld":
        return "not_compared"
    if own["terminal"] < 20:
        return "insufficient_outcomes"
    rate, cohort = float(value_of(own["succeeded"], own["terminal"])), across["percentiles"]["success_rate"]
    if rate < cohort["p25"]:
        return "below_cohort"
    return "above_cohort" if rate > cohort["p75"] else "within_cohort"
