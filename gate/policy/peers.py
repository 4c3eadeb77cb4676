"""Benchmarks: compares a policy with that of other scopes, from the coded figures that each scope shares.

    code(counts)        the figures that a scope shares for a month: rates rounded to 0.05, and a number rounded down
    percentile(...)     one of the shared values, by nearest rank, and never one between two of them
    benchmark_report    the report, a function of the caller's own counts and the shared figures of others

One scope can learn about another only through the result of `code`. The formulas and the limits of this guarantee are
in `docs/reference/formulas/benchmarks.md`. There is no clock here: the same ledger gives the same report.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any, Final, NamedTuple, TypedDict

from gate.encoding.canonical import content_hash
from gate.ids import timestamp
from gate.labels import BENCHMARKS
from gate.policy.effectiveness import share
from gate.policy.notes import without_advice
from gate.policy.questions import MIN_DECISIONS, MIN_SCOPES, BenchmarksQuestion

MIN_OUTCOMES: Final = 20
"""The number of terminal outcomes that a scope needs to count for a policy."""

POSSIBLE_OUTCOMES: Final = 45
"""The number of terminal outcomes that the shared figures of a scope must leave possible.

From this number on, the possible rates behind a shared one reach from one end of its interval of 0.05 to within 0.004
of the other end. With fewer, there can be a single one: with exactly 20 outcomes, every rate is shared unrounded.
"""

MANY_SCOPES: Final = 20
"""The number of other scopes that the outer percentiles need."""

METRICS: Final = ("success_rate", "approval_rate", "terminal_coverage")
"""The compared metrics."""

_STEPS: Final = 20
_DIGITS: Final = 6
_INNER: Final = (25, 50, 75)
_OUTER: Final = (10, 25, 50, 75, 90)
_MILLISECOND: Final = timedelta(milliseconds=1)

_NOTES: Final = (
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
_NARROWED: Final = (
    "Your metrics cover only the decisions that you asked for; the metrics of others cover all of their decisions."
)
_TRUNCATED: Final = "Earlier decisions of your own were left out because of limit."


class MonthCounts(NamedTuple):
    """The results of a scope's decisions of one policy and month, as known at the freeze.

    Attributes:
        decisions: All of them.
        approved: Those with the verdict yes.
        terminal: Those whose latest outcome is terminal.
        succeeded: Those of them that succeeded.
    """

    decisions: int = 0
    approved: int = 0
    terminal: int = 0
    succeeded: int = 0

    @property
    def success_rate(self) -> float | None:
        """The share of `succeeded` among the terminal; None where there are none."""
        return share(self.succeeded, self.terminal)

    @property
    def approval_rate(self) -> float | None:
        """The share of `approved` among the decisions; None where there are none."""
        return share(self.approved, self.decisions)

    @property
    def terminal_coverage(self) -> float | None:
        """The share of the decisions that have a terminal outcome; None where there are none."""
        return share(self.terminal, self.decisions)


class Coded(NamedTuple):
    """The figures that a scope shares about its decisions of one policy and month.

    Attributes:
        decisions: Their number, rounded down to a step.
        success_rate: The coded rate: one of 0.05, 0.1, ... 0.95.
        approval_rate: The coded rate.
        terminal_coverage: The coded share.
    """

    decisions: int
    success_rate: float
    approval_rate: float
    terminal_coverage: float


def folded(number: int) -> int:
    """A number rounded down to a step: 1, 2 or 5 times a power of ten; 0 stays 0."""
    if number < 1:
        return 0
    power = int(10 ** (len(str(number)) - 1))
    return next(step * power for step in (5, 2, 1) if step * power <= number)


def told(part: int, whole: int) -> float:
    """A coded share: rounded to 0.05, halves up. Below 0.075 it is 0.05, and from 0.925 on it is 0.95.

    So every coded value represents an interval at least 0.05 wide, which `interval` returns. It is computed in whole
    numbers, so that no share falls on the wrong side of a bound.
    """
    return _twentieths(part, whole) / _STEPS


def interval(value: float) -> tuple[Fraction, Fraction]:
    """The bounds of the shares with this code: from the first on, and below the second, except that 1 is included."""
    steps = round(value * _STEPS)
    low = Fraction(0) if steps == 1 else Fraction(2 * steps - 1, 2 * _STEPS)
    high = Fraction(1) if steps == _STEPS - 1 else Fraction(2 * steps + 1, 2 * _STEPS)
    return low, high


def code(counts: MonthCounts) -> Coded | None:
    """The figures that a scope shares; None if it does not count.

    It counts with 20 terminal outcomes, unless the shared figures reveal their number: the coded number of decisions
    and the coded coverage must leave 45 terminal outcomes possible.
    """
    if counts.terminal < MIN_OUTCOMES:
        return None
    coded = Coded(
        folded(counts.decisions),
        told(counts.succeeded, counts.terminal),
        told(counts.approved, counts.decisions),
        told(counts.terminal, counts.decisions),
    )
    return coded if most_outcomes(coded) >= POSSIBLE_OUTCOMES else None


def most_outcomes(coded: Coded) -> int:
    """The most terminal outcomes that a scope with these coded figures can have."""
    most = _next_step(coded.decisions) - 1
    _, high = interval(coded.terminal_coverage)
    if high == 1:
        return most
    # The greatest whole number below it.
    return -(-high.numerator * most // high.denominator) - 1


def percentile(values: Iterable[float], percent: int) -> float:
    """The value that this percentage of values does not exceed, by nearest rank: one of the values."""
    ordered = sorted(values)
    return ordered[max(-(-percent * len(ordered) // 100), 1) - 1]


def month_of(moment: datetime) -> str:
    """The UTC month of a moment: 2026-11."""
    utc = moment.astimezone(UTC)
    return f"{utc.year:04d}-{utc.month:02d}"


def beginning(month: str) -> datetime:
    """The first moment of a month."""
    return datetime(int(month[:4]), int(month[5:]), 1, tzinfo=UTC)


def earlier(month: str, months: int) -> str:
    """The month so many months before another, or after it where the number is negative."""
    year, number = divmod(int(month[:4]) * 12 + int(month[5:]) - 1 - months, 12)
    return f"{year:04d}-{number + 1:02d}"


def decided_in(month: str) -> str:
    """The month whose decisions are frozen when a month begins: the one before last."""
    return earlier(month, 2)


@dataclass(frozen=True, slots=True)
class Own:
    """The counts of the caller's own decisions, made in the month that a freeze covers.

    Attributes:
        counts: Their results.
        present: The current results of every decision of the caller, of any month.
        first: When the first of them was made, a UTC timestamp; None without any.
        last: When the last was made.
        chain_position: The last position of the scope's chain that was read; 0 if it is empty.
        merkle_root: The chain's rolling root at that position; None if it is empty.
        truncated: Whether a limit left out earlier decisions.
        advisory: The number of decisions with the policy's id that were left out because they are advisory.
    """

    counts: MonthCounts
    present: MonthCounts
    first: str | None
    last: str | None
    chain_position: int
    merkle_root: str | None
    truncated: bool
    advisory: int = 0


@dataclass(frozen=True, slots=True)
class Cohort:
    """The content of a freeze for one caller.

    Attributes:
        month: The month that it was made for.
        member: Whether the caller's scope took part in it.
        others: The shared figures of every other scope that counts for the policy.
    """

    month: str
    member: bool
    others: Sequence[Coded]


def benchmark_report(
    own: Own, cohort: Cohort | None, question: BenchmarksQuestion, *, month: str | None
) -> dict[str, Any]:
    """The benchmark report of a policy (`policy_benchmarks_v1`).

    Args:
        own: The caller's own decisions that the question selects.
        cohort: The content of the latest freeze for the caller; None without a freeze.
        question: The question.
        month: The month of the freeze, or, without one, the month that it would be made for; None for an empty chain.

    Returns:
        The report, with `benchmark_hash` over its other fields.
    """
    across = _across(own, cohort, question, month)
    report = {
        "policy_benchmarks_version": BENCHMARKS,
        **question.asked(),
        "your_metrics": {**_metrics(own.counts), "present": _metrics(own.present)},
        "cross_customer": across,
        "recommendation": _recommendation(own.counts, across["percentiles"]),
        "min_cohort_scopes": question.min_cohort_scopes,
        "min_cohort_decisions": question.min_cohort_decisions,
        "limit": question.limit,
        "coverage": {
            "decisions": own.counts.decisions,
            "from": own.first,
            "to": own.last,
            "chain_position": own.chain_position,
            "merkle_root": own.merkle_root,
            "truncated": own.truncated,
        },
        "notes": list(_notes(own, question)),
    }
    return {**report, "benchmark_hash": content_hash(report)}


def _metrics(counts: MonthCounts) -> dict[str, object]:
    rates = {metric: getattr(counts, metric) for metric in METRICS}
    return {"decisions": counts.decisions, "terminal": counts.terminal, **rates}


CrossCustomer = TypedDict(
    "CrossCustomer",
    {
        "status": str,
        "reason": str | None,
        "explanation": str | None,
        "month": str | None,
        "from": str | None,
        "to": str | None,
        "scopes_at_least": int | None,
        "decisions_at_least": int | None,
        "percentiles": dict[str, dict[str, float]] | None,
        "deltas": dict[str, float | None] | None,
    },
)
"""The part of a report about the others together, or why it is withheld."""


def _across(own: Own, cohort: Cohort | None, question: BenchmarksQuestion, month: str | None) -> CrossCustomer:
    """The part of a report about the others together, or why it is withheld."""
    counted: Sequence[Coded] = cohort.others if cohort is not None and cohort.member else ()
    scopes, decisions = folded(len(counted)), folded(sum(of.decisions for of in counted))
    reason = _reason(cohort, scopes, decisions, question)
    shown = reason is None
    percentiles = _percentiles(counted, scopes) if shown else None
    period = decided_in(month) if month is not None else None
    return {
        "status": "available" if shown else "withheld",
        "reason": reason,
        "explanation": None if reason is None else _explained(reason, cohort, question),
        "month": None if cohort is None else cohort.month,
        "from": None if period is None else timestamp(beginning(period)),
        "to": None if period is None else timestamp(beginning(earlier(period, -1)) - _MILLISECOND),
        "scopes_at_least": scopes if shown else None,
        "decisions_at_least": decisions if shown else None,
        "percentiles": percentiles,
        "deltas": None if percentiles is None else _deltas(own.counts, percentiles),
    }


def _reason(cohort: Cohort | None, scopes: int, decisions: int, question: BenchmarksQuestion) -> str | None:
    """Why figures of the others are withheld; None if they are not."""
    if cohort is None:
        return "not_frozen"
    if not cohort.member:
        return "not_opted_in"
    # Never report on fewer scopes than the lowest threshold. Questions refuse lower ones, but this guarantee must not
    # depend on that alone.
    if scopes < max(question.min_cohort_scopes, MIN_SCOPES):
        return "too_few_scopes"
    return "too_few_decisions" if decisions < max(question.min_cohort_decisions, MIN_DECISIONS) else None


def _explained(reason: str, cohort: Cohort | None, question: BenchmarksQuestion) -> str:
    min_scopes, min_decisions = question.min_cohort_scopes, question.min_cohort_decisions
    month = "" if cohort is None else cohort.month
    if reason == "not_frozen":
        return (
            "No cohorts have been frozen yet, so there is nothing to compare with. The service freezes them when a "
            "month begins; ask again then."
        )
    if reason == "not_opted_in":
        return (
            f"Your scope did not take part in benchmarks when {month} began, so the report shows only your own "
            "metrics. The operator can opt your scope in; it then takes part from the next month on."
        )
    if reason == "too_few_scopes":
        return (
            f"Fewer than {min_scopes} of the other scopes that took part when {month} began have enough outcomes "
            "under this policy. Their number is rounded down to a step before it is compared. A comparison needs "
            f"more scopes that opt in and report outcomes{_or_lower('min_cohort_scopes', min_scopes, MIN_SCOPES)}."
        )
    return (
        f"The other scopes that took part when {month} began made fewer than {min_decisions} decisions under this "
        "policy. Their number is rounded down to a step before it is compared. A comparison needs more "
        f"decisions{_or_lower('min_cohort_decisions', min_decisions, MIN_DECISIONS)}."
    )


def _or_lower(name: str, asked: int, least: int) -> str:
    return f", or a lower {name}" if asked > least else ""


def _percentiles(others: Sequence[Coded], scopes: int) -> dict[str, dict[str, float]]:
    percents = _OUTER if scopes >= MANY_SCOPES else _INNER
    return {
        metric: {f"p{percent}": percentile((getattr(of, metric) for of in others), percent) for percent in percents}
        for metric in METRICS
    }


def _deltas(own: MonthCounts, percentiles: Mapping[str, Mapping[str, float]]) -> dict[str, float | None]:
    rates: dict[str, float | None] = {metric: getattr(own, metric) for metric in METRICS}
    return {
        metric: None if rate is None else round(rate - percentiles[metric]["p50"], _DIGITS)
        for metric, rate in rates.items()
    }


def _recommendation(own: MonthCounts, percentiles: Mapping[str, Mapping[str, float]] | None) -> str:
    """What to make of it: the first that holds."""
    if percentiles is None:
        return "not_compared"
    if own.terminal < MIN_OUTCOMES:
        return "insufficient_outcomes"
    # Coded like theirs: a rate with the same code as theirs is not below it.
    rate, cohort = told(own.succeeded, own.terminal), percentiles["success_rate"]
    if rate < cohort["p25"]:
        return "below_cohort"
    return "above_cohort" if rate > cohort["p75"] else "within_cohort"


def _notes(own: Own, question: BenchmarksQuestion) -> Iterator[str]:
    yield from _NOTES
    if (question.verdict, question.since, question.until) != (None, None, None):
        yield _NARROWED
    if own.truncated:
        yield _TRUNCATED
    yield from without_advice(own.advisory)


def _twentieths(part: int, whole: int) -> int:
    return min(max((2 * _STEPS * part + whole) // (2 * whole), 1), _STEPS - 1)


def _next_step(step: int) -> int:
    """The step after another one."""
    power = int(10 ** (len(str(step)) - 1))
    return {1: 2, 2: 5, 5: 10}[step // power] * power
