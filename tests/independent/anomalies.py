"""A second way to the anomaly report: one decision at a time, in plain Python, from the words of docs/anomalies.md.

It reads what the service answered of a scope, in chain order, and the requests that were sent; facts stand nowhere
else. Fisher's p-values are exact sums of whole numbers, those of chi-squared come from the incomplete gamma function,
and nothing is taken from the product. The sentences for people are repeated here word for word.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any
from urllib.parse import quote, urlencode

from tests.independent.recount import TERMINAL, Entries, Json, apart, hash_of, most_first, root_of, wilson

Moment = datetime

DAY, WEEK = timedelta(days=1), timedelta(weeks=1)
MOST_WEEKS = 104
MOST_REASONS = 50
MOST_FACTS = 32
MOST_METRICS = 64
MOST_SAMPLED = 200_000
ALL_AGES = 57
ROBUST = 0.6744897501960817
GREATEST = sys.float_info.max

EFFECT, HARM, INDEX = (0.2, 0.5, 0.8), (0.2, 0.35, 0.5), (0.1, 0.25, 0.5)
TIMES, FAR, SHARE = (2.0, 3.0, 5.0), (1.0, 2.0, 4.0), (0.05, 0.2, 0.5)
SURPLUS = (0.05, 0.25, 0.5)
MANY_FAR = 0.1
KINDS = ("lifecycle_break", "outcome_shift", "verdict_shift", "volume", "metric_outlier", "fact_drift")

NOTES = (
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
THIN = (
    "Some weeks have fewer than min_sample decisions, and are compared only together with the weeks beside them; "
    "decisions that arrive in one minute count as far as they differ."
)
TOO_FEW = "There are too few decisions to compare anything with."
TAKEN = "What is usual for facts and metrics was learned from one of {} decisions."
EARLIER_LEFT_OUT = "Earlier decisions were left out, as limit asked."
MORE = "More were found than are listed: ask with a greater max_items."
FIRST_OF_THEM = "Read the first of the decisions, with its receipts, outcomes and proof."
READ_THEM = "Read the decisions of that time."

BREAKS = {
    "executed_without_yes": (
        "Executed or queued without a yes",
        "Stop the caller that executes: it does not wait for a yes. Its receipts name the executor.",
    ),
    "duplicate_execution": (
        "Executed more than once without being reverted",
        "Compare the receipts' execution_id and external_ref: were two transactions made, or was one told twice?",
    ),
    "binding_mismatch": (
        "A receipt names another target than was decided",
        "Compare action_binding of the record with that of the receipt: what was executed was not what was asked.",
    ),
    "action_mismatch": (
        "Another action was executed or queued than was decided",
        "Compare action_taken of the receipt with the decision's action: was another action carried out, or is one "
        "action called by two names?",
    ),
    "state_mismatch": (
        "State hashes contradict what a receipt says",
        "Compare state_before_hash and state_after_hash with the target itself.",
    ),
    "approved_without_receipt": (
        "Approved more than a day ago, and no execution receipt",
        "Ask the caller whether the action was taken: what is reported late is still evidence.",
    ),
    "outcome_overdue": (
        "Executed more than 30 days ago, and no terminal outcome",
        "Find what reports outcomes: effectiveness counts only what it tells.",
    ),
    "outcome_reversed": (
        "Succeeded at first, and taken back later",
        "Look at what they have in common: a success that does not last is found out late.",
    ),
}


# --- what was told ---------------------------------------------------------------------------------------------------


@dataclass
class Case:
    """A decision, and what was reported of it, in chain order."""

    position: int
    record: Mapping[str, Any]
    receipts: list[Mapping[str, Any]] = field(default_factory=list)
    outcomes: list[Mapping[str, Any]] = field(default_factory=list)
    erased: bool = False

    @property
    def made(self) -> Moment:
        return moment(self.record["created_at"])

    @property
    def yes(self) -> bool:
        return bool(self.record["verdict"] == "yes")

    @property
    def latest(self) -> Mapping[str, Any]:
        return self.outcomes[-1] if self.outcomes else {}

    @property
    def terminal(self) -> bool:
        return self.latest.get("outcome_status") in TERMINAL

    @property
    def let_through(self) -> bool:
        told = self.latest.get("action_executed")
        return self.yes if told is None else bool(told)

    @property
    def age(self) -> int:
        """Whole days from the decision to its latest outcome."""
        return max(0, (moment(self.latest["reported_at"]) - self.made) // DAY)

    def said(self, *statuses: str) -> list[Mapping[str, Any]]:
        """The receipts with one of the statuses."""
        return [receipt for receipt in self.receipts if receipt["execution_status"] in statuses]


def moment(text: str) -> Moment:
    return datetime.fromisoformat(text)


def stamp(at: Moment) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def monday(at: Moment) -> Moment:
    day = datetime(at.year, at.month, at.day, tzinfo=UTC)
    return day - day.weekday() * DAY


def cases_of(entries: Entries) -> list[Case]:
    """All decisions of a scope, in chain order."""
    found: dict[str, Case] = {}
    for position, entry in enumerate(entries, 1):
        of = entry["decision_id"]
        if "outcome_id" in entry:
            found[of].outcomes.append(entry)
        elif "execution_receipt_id" in entry:
            found[of].receipts.append(entry)
        elif "erasure_id" in entry:
            found[of].erased = True
        elif "sync_id" not in entry:
            found[of] = Case(position, entry)
    return list(found.values())


def dated(entry: Mapping[str, Any]) -> Moment:
    """When an entry was made."""
    return moment(next(entry[name] for name in ("reported_at", "erased_at", "created_at") if name in entry))


# --- statistics ------------------------------------------------------------------------------------------------------


def fisher(a: int, n: int, b: int, m: int) -> float:
    """Fisher's exact test of a of n and b of m, by whole numbers."""
    parts, low = a + b, max(0, a + b - m)
    weights = [math.comb(n, low) * math.comb(m, parts - low)]
    for at in range(low, min(n, parts)):
        weights.append(weights[-1] * (n - at) * (parts - at) // ((at + 1) * (m - parts + at + 1)))
    tail = sum(weight for weight in weights if weight <= weights[a - low])
    return max(1e-40, float(Fraction(tail, sum(weights))))


def chi_squared(statistic: float, degrees: int) -> float:
    """The upper tail: the regularized incomplete gamma function, by its series or its continued fraction."""
    a, x = degrees / 2, statistic / 2
    if x <= 0:
        return 1.0
    factor = math.exp(a * math.log(x) - x - math.lgamma(a))
    if x < a + 1:
        term = total = 1 / a
        above = a
        while term > total * 1e-17:
            above += 1
            term *= x / above
            total += term
        return max(1e-40, 1 - factor * total)
    b = x + 1 - a
    c, d = 1e300, 1 / b
    found = d
    for at in range(1, 10_000):
        step = -at * (at - a)
        b += 2
        d, c = 1 / (step * d + b), b + step / c
        found *= d * c
        if abs(d * c - 1) < 1e-16:
            break
    return max(1e-40, factor * found)


def pearson(table: Sequence[tuple[int, int]]) -> float:
    """Pearson's test that two columns are of one population."""
    n, m = sum(a for a, _ in table), sum(b for _, b in table)
    if len(table) < 2 or not n or not m:
        return 1.0
    statistic = sum(
        (seen - expected) ** 2 / expected
        for a, b in table
        for seen, expected in ((a, Fraction((a + b) * n, n + m)), (b, Fraction((a + b) * m, n + m)))
    )
    return chi_squared(float(statistic), len(table) - 1)


def histograms_differ(before: Sequence[int], within: Sequence[int]) -> float:
    """The p-value of two histograms, bins of which the smaller one expects fewer than 5 put together."""
    whole, smaller = sum(before) + sum(within), min(sum(before), sum(within))
    table: list[tuple[int, int]] = []
    few = (0, 0)
    for a, b in zip(before, within, strict=True):
        if Fraction((a + b) * smaller, whole) >= 5:
            table.append((a, b))
        else:
            few = (few[0] + a, few[1] + b)
    if any(few):
        if Fraction(sum(few) * smaller, whole) >= 5 or not table:
            table.append(few)
        else:
            # With the smallest of the others.
            at = min(range(len(table)), key=lambda at: sum(table[at]))
            table[at] = (table[at][0] + few[0], table[at][1] + few[1])
    return pearson(table)


def stability(before: Sequence[int], within: Sequence[int]) -> float:
    """The population stability index, less what chance alone adds."""
    n, m, bins = sum(before), sum(within), len(before)
    index = 0.0
    for a, b in zip(before, within, strict=True):
        p, q = (a + 0.5) / (n + bins / 2), (b + 0.5) / (m + bins / 2)
        index += (q - p) * math.log(q / p)
    return max(0.0, index - (bins - 1) * (1 / n + 1 / m))


def kept(p_values: Sequence[float], tests: int) -> float:
    """The greatest p-value that Benjamini and Yekutieli keep at 0.05; less than any where there is none."""
    harmonic = sum(1 / rank for rank in range(1, tests + 1))
    found = [p for rank, p in enumerate(sorted(p_values), 1) if p * tests * harmonic <= 0.05 * rank]
    return max(found, default=-1.0)


def effect(p: float, q: float) -> float:
    """Cohen's h."""
    return 2 * math.asin(math.sqrt(p)) - 2 * math.asin(math.sqrt(q))


def near_end(h: float, n: int, m: int) -> float:
    """The end of the 95% interval of an effect of so many cases that is nearer to none."""
    return max(0.0, abs(h) - 1.959963984540054 * math.sqrt(1 / n + 1 / m))


def by_chance(bins: int, n: int, m: int) -> float:
    """What chance adds to a stability index one time in twenty."""
    return 1.6448536269514722 * math.sqrt(2 * (bins - 1)) * (1 / n + 1 / m)


def newcombe(a: int, n: int, b: int, m: int) -> tuple[float, float]:
    """The interval of a/n - b/m, from both Wilson intervals as they are told."""
    (low_a, high_a), (low_b, high_b) = wilson(a, n), wilson(b, m)
    p, q = a / n, b / m
    low = p - q - math.sqrt((p - low_a) ** 2 + (high_b - q) ** 2)
    high = p - q + math.sqrt((high_a - p) ** 2 + (q - low_b) ** 2)
    return max(-1.0, low), min(1.0, high)


def needed(values: int) -> float:
    """required_z."""
    return max(3.5, math.sqrt(2 * math.log(values / 0.01)))


def lower(values: Iterable[Any], numerator: int = 1, denominator: int = 2) -> Any:
    """The lower quantile; the lower median by default."""
    ordered = sorted(values)
    return ordered[(len(ordered) - 1) * numerator // denominator]


def score_of(strength: float, marks: tuple[float, float, float]) -> float:
    """Between the marks along a straight line, beyond the last ever nearer to 1."""
    one, two, three = marks
    if strength < one:
        found = 0.35 * strength / one
    elif strength < two:
        found = 0.35 + 0.25 * (strength - one) / (two - one)
    elif strength < three:
        found = 0.6 + 0.2 * (strength - two) / (three - two)
    else:
        found = 1 - 0.2 * three / strength
    return round(found, 6)


def severity_of(score: float) -> str:
    return "high" if score >= 0.8 else "medium" if score >= 0.6 else "low"


# --- an anomaly ------------------------------------------------------------------------------------------------------


@dataclass
class Found:
    """An anomaly, before it is listed."""

    kind: str
    subject: str | None
    score: float
    reasons: list[str]
    summary: str
    first: str
    last: str
    decisions: int
    ids: Callable[[], list[str]]
    numbers: Json
    steps: list[tuple[str, str | None]]
    cases: int
    harm: bool | None = None
    goes_on: bool = False
    value: float | None = None

    @property
    def lasting(self) -> bool:
        return self.goes_on or moment(self.last) - moment(self.first) >= 2 * WEEK

    def told(self, policy_id: str) -> Json:
        about = {"policy_id": policy_id, "kind": self.kind, "subject": self.subject or "", "from": self.first}
        ids = self.ids()
        steps = [*self.steps, *((FIRST_OF_THEM, f"/api/decision/{quote(of, safe='')}/packet") for of in ids[:1])]
        return {
            "anomaly_id": f"ano_{hash_of(about)[:24]}",
            "kind": self.kind,
            "subject": self.subject,
            "severity": severity_of(self.score),
            "anomaly_score": self.score,
            "reasons": self.reasons,
            "summary": self.summary,
            "window": {"from": self.first, "to": self.last},
            "decisions": self.decisions,
            "decision_ids": ids,
            "effect": {"cases": self.cases, "value": self.value, "lasting": self.lasting, "harm": self.harm},
            "numbers": self.numbers,
            "look_at_next": [{"what": what, "href": href} for what, href in steps],
        }


@dataclass(frozen=True, order=True)
class Window:
    """Some weeks by their numbers, both ends within, and where its reference begins."""

    first: int
    last: int
    reference: int

    @property
    def weeks(self) -> tuple[range, range]:
        """Its weeks, and those of its reference."""
        return range(self.first, self.last + 1), range(self.reference, self.first)

    def echoes(self, other: Window) -> bool:
        """Whether it, or its reference, has a week of the other."""
        return bool(set(range(self.reference, self.last + 1)) & set(range(other.first, other.last + 1)))

    def is_together_with(self, leader: Window) -> bool:
        """Whether both begin at once, or have a quarter of all their weeks in common."""
        mine, others = set(range(self.first, self.last + 1)), set(range(leader.first, leader.last + 1))
        span = max(self.last, leader.last) - min(self.first, leader.first) + 1
        return self.first == leader.first or 4 * len(mine & others) >= span


@dataclass
class Moved:
    """A rate, or a fact, that is not as before."""

    of: str
    value: str
    window: Window
    before: Any
    within: Any
    strength: float
    p: float
    bins: Sequence[str] = ()
    needed: float = 0.0
    distance: float = 0.0
    least: float = 0.0
    design: float = 1.0
    alone: Sequence[tuple[int, int]] = ()

    @property
    def stands_alone(self) -> bool:
        """Whether its p-value is small enough for Bonferroni."""
        return self.p <= self.needed

    def score(self, marks: tuple[float, float, float]) -> float:
        """Its score; 0.79 at most where it does not stand alone."""
        return min(score_of(self.least, marks), 1 if self.stands_alone else 0.79)


def windows(weeks: int) -> Iterator[Window]:
    for length in (1, 2, 4, 8):
        for first in range(1, weeks):
            if first + length <= weeks:
                yield Window(first, first + length - 1, max(0, first - 8))


def without_echoes(moved: Iterable[Moved]) -> list[Moved]:
    found: list[Moved] = []
    for of in sorted(
        moved,
        key=lambda of: (
            *(not of.stands_alone, of.p, -(of.distance or round(of.strength, 6))),
            *(of.window.last - of.window.first, of.window.first),
        ),
    ):
        if not any(of.value == other.value and of.of == other.of and of.window.echoes(other.window) for other in found):
            found.append(of)
    return found


def grouped(moved: Iterable[Moved]) -> list[list[Moved]]:
    groups: list[list[Moved]] = []
    for of in sorted(moved, key=lambda of: (-round(abs(of.strength), 6), of.of, of.value)):
        for group in groups:
            if of.window.is_together_with(group[0].window):
                group.append(of)
                break
        else:
            groups.append([of])
    return groups


# --- the report ------------------------------------------------------------------------------------------------------


class Recount:
    """What is counted of the decisions that were chosen."""

    def __init__(
        self,
        entries: Entries,
        chosen: Sequence[Case],
        policy_id: str,
        min_sample: int,
        facts: Mapping[str, Any],
        fields: Sequence[str],
        most_sampled: int,
        value: str | None,
    ) -> None:
        self.chosen = chosen
        self.policy_id = policy_id
        self.min_sample = min_sample
        self.facts = facts
        self.fields = fields
        self.value = value
        self.as_of = dated(entries[-1])
        self.one_of = 1
        while len(chosen) > self.one_of * most_sampled:
            self.one_of *= 2
        self.looked_at: list[str] = []
        self.metrics = 0
        made = [case.made for case in chosen]
        last = max(monday(self.as_of), monday(max(made)))
        self.start = max(monday(min(made)), last - (MOST_WEEKS - 1) * WEEK)
        self.weeks = (last - self.start) // WEEK + 1
        self.seen = [case for case in chosen if case.made >= self.start]
        self.until = max(self.as_of, max(made))

    def week(self, case: Case) -> int:
        return (case.made - self.start) // WEEK

    def is_taken(self, case: Case) -> bool:
        """Whether it is in the sample."""
        return ((case.position % 2**20) * 2654435761 % 2**32) // 2**16 % self.one_of == 0

    def find(self) -> list[Found]:
        outcomes = grouped(self.moved("outcome"))
        verdicts = grouped([*self.moved("verdict"), *self.moved("reason")])
        found = [
            *self.breaks(),
            *(self.outcome_shift(group) for group in outcomes),
            *(self.verdict_shift(group) for group in verdicts),
            *(self.drift(group) for group in grouped(self.drifted())),
            *self.surges(),
            *self.outliers(),
        ]
        for of in found:
            of.value = self.cost(of)
        # Sorted by the last key first, as sorting is stable.
        found.sort(key=lambda of: of.subject or "")
        found.sort(key=lambda of: of.first, reverse=True)
        found.sort(key=lambda of: (-of.cases, -of.score, KINDS.index(of.kind)))
        found.sort(key=lambda of: math.inf if of.value is None else -abs(of.value))
        found.sort(key=lambda of: not (of.lasting and of.harm))
        found.sort(key=lambda of: ("high", "medium", "low").index(severity_of(of.score)))
        return found

    def cost(self, of: Found) -> float | None:
        """The mean of the metric in the weeks of its time, so many times as it has cases."""
        weeks = range((moment(of.first) - self.start) // WEEK, (moment(of.last) - self.start) // WEEK + 1)
        by_week: dict[int, list[float]] = {}
        for case in self.chosen:
            for name, value in (case.latest.get("observed_metrics") or {}).items():
                week = (moment(case.latest["reported_at"]) - self.start) // WEEK
                if name == self.value and week in weeks and 0 <= week < self.weeks:
                    by_week.setdefault(week, []).append(float(value))
        number = sum(map(len, by_week.values()))
        if not number:
            return None
        return round(of.cases * math.fsum(float(sum(map(Fraction, of))) for of in by_week.values()) / number, 6)

    # Groups: what one minute has.

    @staticmethod
    def minute(case: Case) -> int:
        return (case.made - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(minutes=1)

    @cached_property
    def sizes(self) -> dict[int, list[int]]:
        """Of each week how many decisions each of its minutes has."""
        by_week = apart_by(self.seen, self.week)
        return {week: [len(of) for of in apart_by(cases, self.minute).values()] for week, cases in by_week.items()}

    def others(self, weeks: Iterable[int], one_of: int = 1) -> Fraction:
        """How many others the minute of an average decision of some weeks has, of which one of so many is looked at."""
        sizes = [size for week in weeks for size in self.sizes.get(week, ())]
        return Fraction(sum(size * (size - 1) for size in sizes), sum(sizes) * one_of) if sizes else Fraction(0)

    def correlation(self, whole: Sequence[Case], has: Callable[[Case], bool]) -> Fraction:
        """How far the decisions of one minute are alike, six decimals."""
        taken = [case for case in whole if (self.minute(case) % 2**20) * 2654435761 % 2**32 // 2**16 % self.one_of == 0]
        seen, expected = Fraction(0), Fraction(0)
        for cases in apart_by(taken, self.week).values():
            rate = Fraction(sum(map(has, cases)), len(cases))
            for of in apart_by(cases, self.minute).values():
                # What a group has more or fewer than by its week's rate, squared, beyond what single decisions have.
                seen += (sum(map(has, of)) - rate * len(of)) ** 2 - len(of) * rate * (1 - rate)
                expected += (len(of) ** 2 - len(of)) * rate * (1 - rate)
        return (
            Fraction(round(float(min(Fraction(1), max(Fraction(0), seen / expected))), 6)).limit_denominator(10**6)
            if expected
            else Fraction(0)
        )

    # Breaks.

    def breaks(self) -> Iterator[Found]:
        for name, could in self.could().items():
            has = [case for case in could if self.is_broken(name, case)]
            if has:
                meaning, step = BREAKS[name]
                made = sorted(case.record["created_at"] for case in has)
                told = "outcomes" if name == "outcome_reversed" else "receipts"
                late = name in ("approved_without_receipt", "outcome_overdue")
                broke = made if late else sorted(getattr(case, told)[-1]["reported_at"] for case in has)
                yield Found(
                    "lifecycle_break",
                    name,
                    self.break_score(name, len(has), len(could)),
                    [name],
                    f"{meaning}: {len(has):,} of {len(could):,} decisions.",
                    made[0],
                    broke[-1],
                    len(has),
                    lambda has=has: latest_of(has),  # type: ignore[misc]
                    {"count": len(has), "of": len(could), "share": round(len(has) / len(could), 6)},
                    [(step, None)],
                    len(has),
                    harm=True,
                )

    def could(self) -> dict[str, list[Case]]:
        def is_long_executed(case: Case) -> bool:
            executed, reverted = case.said("executed"), case.said("reverted")
            if len(executed) <= len(reverted):
                return False
            return self.as_of - min(moment(of["reported_at"]) for of in executed) > 30 * DAY

        return {
            "executed_without_yes": [case for case in self.chosen if not case.yes],
            "duplicate_execution": [case for case in self.chosen if case.said("executed")],
            "binding_mismatch": [case for case in self.chosen if case.receipts],
            "action_mismatch": [case for case in self.chosen if case.receipts],
            "state_mismatch": [case for case in self.chosen if case.receipts],
            "approved_without_receipt": [case for case in self.chosen if case.yes and self.as_of - case.made > DAY],
            "outcome_overdue": [case for case in self.chosen if is_long_executed(case)],
            "outcome_reversed": [
                case for case in self.chosen if any(of["outcome_status"] == "succeeded" for of in case.outcomes)
            ],
        }

    def is_broken(self, name: str, case: Case) -> bool:
        if name == "executed_without_yes":
            return bool(case.said("executed", "queued"))
        if name == "duplicate_execution":
            return len(case.said("executed")) - len(case.said("reverted")) > 1
        if name == "binding_mismatch":
            return any("ACTION_BINDING_MISMATCH" in receipt["flags"] for receipt in case.receipts)
        if name == "action_mismatch":
            return any(
                receipt.get("action_taken", case.record["action"]) != case.record["action"]
                for receipt in case.said("executed", "queued")
            )
        if name == "state_mismatch":
            return any(map(contradicts_itself, case.receipts))
        if name == "approved_without_receipt":
            return not case.receipts and case.latest.get("action_executed") is not False
        if name == "outcome_overdue":
            return not case.terminal
        return case.latest["outcome_status"] in ("failed", "reverted")

    @staticmethod
    def break_score(name: str, has: int, could: int) -> float:
        fixed = {
            "executed_without_yes": 1.0,
            "duplicate_execution": 0.9,
            "binding_mismatch": 0.9,
            "action_mismatch": 0.9,
        }
        if name in fixed:
            return fixed[name]
        if name == "state_mismatch":
            return 0.7
        by_share = max(0.35, score_of(wilson(has, could)[0], SHARE))
        return min(0.79, by_share) if name in ("approved_without_receipt", "outcome_overdue") else by_share

    # Shifts.

    def days_since(self, window: Window) -> int:
        """D: how many whole days have gone by since the window ended."""
        return max(0, (self.as_of - (self.start + (window.last + 1) * WEEK)) // DAY)

    def rates(self, of: str) -> Iterator[tuple[str, list[Case], Callable[[Case], bool]]]:
        """Of each value: its name, the cases that could have it, and whether one has it."""
        if of == "outcome":
            ended = [case for case in self.seen if case.terminal and case.let_through]
            for status in TERMINAL:
                yield status, ended, lambda case, status=status: case.latest["outcome_status"] == status  # type: ignore[misc]
            return
        member = {"verdict": "verdict", "reason": "reason_code"}[of]
        values = apart_by(self.seen, lambda case: str(case.record[member]))
        for value in most_first(values)[: MOST_REASONS if of == "reason" else None]:
            yield value, self.seen, lambda case, value=value: case.record[member] == value  # type: ignore[misc]

    def comparisons(self, of: str) -> Iterator[Moved]:
        """Every test."""
        for value, whole, has in self.rates(of):
            alike = self.correlation(whole, has)
            by_week: dict[int, list[tuple[int, bool]]] = {}
            for case in whole:
                age = case.age if of == "outcome" else 0
                by_week.setdefault(self.week(case), []).append((age, has(case)))
            for window in windows(self.weeks):
                days = self.days_since(window) if of == "outcome" else ALL_AGES
                if days == 0:
                    continue
                # Of a whole day or less than 57, all of them.
                most = math.inf if days >= ALL_AGES else days
                within = counted(by_week, range(window.first, window.last + 1), most)
                before = counted(by_week, range(window.reference, window.first), most)
                design = [1 + alike * self.others(weeks) for weeks in window.weeks]
                alone = [(int(a / by), int(n / by)) for (a, n), by in zip((within, before), design, strict=True)]
                if min(n for _, n in alone) >= self.min_sample:
                    h = effect(within[0] / within[1], before[0] / before[1])
                    least = near_end(h, alone[0][1], alone[1][1])
                    yield Moved(
                        of, value, window, before, within, h, 1.0, alone=alone, least=least, design=float(design[0])
                    )

    def all_moved(self) -> list[Moved]:
        tests = of_versions = 0
        found = []
        for of in ("verdict", "reason", "outcome"):
            for test in self.comparisons(of):
                tests += 1
                of_versions += self.is_since_a_version(test)
                (a, n), (b, m) = test.alone
                p = (a + b) / (n + m)
                spread = math.sqrt(p * (1 - p) * (1 / n + 1 / m))
                if spread and abs(a / n - b / m) / spread >= 2 and abs(test.strength) >= 0.1:
                    test.p = fisher(a, n, b, m)
                    test.distance = abs(a / n - b / m) / spread
                    found.append(test)
        for test in found:
            test.needed = 0.01 / of_versions if self.is_since_a_version(test) else 0.001 / tests
        most = kept([test.p for test in found], tests)
        return without_echoes(test for test in found if test.p <= most)

    def is_since_a_version(self, test: Moved) -> bool:
        """Whether it is of outcomes, in a window that begins with the week with which a version took over."""
        return test.of == "outcome" and test.window.first in self.overtaken

    @cached_property
    def overtaken(self) -> set[int]:
        by_week: dict[int, list[str]] = {}
        for case in self.seen:
            by_week.setdefault(self.week(case), []).append(version_of(case))
        first: dict[str, int] = {}
        for week, made in sorted(by_week.items()):
            for version in set(made):
                if made.count(version) >= len(made) / 2:
                    first.setdefault(version, week)
        return {week for week in first.values() if week != 0}

    def has_thin_weeks(self) -> bool:
        """Whether some weeks are too small to be compared alone, by the rate in which groups are most alike."""
        most = max(
            self.correlation(whole, has) for of in ("verdict", "reason", "outcome") for _, whole, has in self.rates(of)
        )
        return any(
            int(sum(sizes) / (1 + most * self.others([week]))) < self.min_sample for week, sizes in self.sizes.items()
        )

    def moved(self, of: str) -> list[Moved]:
        if not hasattr(self, "_moved"):
            self._moved = self.all_moved()
        return [test for test in self._moved if test.of == of]

    def ends(self, window: Window) -> tuple[str, str]:
        last = self.start + (window.last + 1) * WEEK
        return stamp(self.start + window.first * WEEK), stamp(min(last, self.until))

    def goes_on(self, window: Window) -> bool:
        """Whether it has the week of the chain's last entry."""
        return self.start + (window.last + 1) * WEEK >= self.as_of

    def whole(self, window: Window) -> tuple[str, str]:
        """Where its first week begins, and its last one ends."""
        return stamp(self.start + window.first * WEEK), stamp(self.start + (window.last + 1) * WEEK)

    def new_versions(self, window: Window) -> list[str]:
        within = [case for case in self.seen if window.first <= self.week(case) <= window.last]
        before = [case for case in self.seen if window.reference <= self.week(case) < window.first]

        def part(cases: Sequence[Case], version: str) -> Fraction:
            return Fraction(sum(version_of(case) == version for case in cases), len(cases))

        gained = {
            version: part(within, version) - part(before, version) for version in {version_of(of) for of in self.seen}
        }
        grown = {version: gain for version, gain in gained.items() if gain > 0}
        return sorted(grown) if 2 * sum(grown.values()) >= 1 else []

    def change(self, of: Moved) -> Json:
        first, last = self.ends(of.window)
        (a, n), (b, m) = of.within, of.before
        low, high = newcombe(a, n, b, m)
        days = self.days_since(of.window)
        age = {"age_days": None if days >= ALL_AGES else days} if of.of == "outcome" else {}
        return {
            "of": of.of,
            "value": of.value,
            "from": first,
            "to": last,
            "reference_from": stamp(self.start + of.window.reference * WEEK),
            **age,
            "before": {"count": b, "of": m, "rate": round(b / m, 6)},
            "within": {"count": a, "of": n, "rate": round(a / n, 6)},
            "difference": {"rate": round(a / n - b / m, 6), "low": round(low, 6), "high": round(high, 6)},
            "cohens_h": round(of.strength, 6),
            "least_h": round(of.least, 6),
            "design_effect": round(of.design, 6),
            "p_value": float(f"{of.p:.6g}"),
            "required_p": float(f"{of.needed:.6g}"),
        }

    def shifted(self, kind: str, group: Sequence[Moved], score: float, **more: Any) -> Found:
        leader = group[0]
        versions = self.new_versions(leader.window)
        first, last = self.ends(leader.window)
        reasons = [f"{of.of}_{'rose' if of.strength > 0 else 'fell'}:{of.value}" for of in group]
        called = {"verdict": "", "reason": "reason ", "outcome": "outcomes "}[leader.of]
        (a, n), (b, m) = leader.within, leader.before
        since = f" with version {', '.join(versions)}" if versions else ""
        return Found(
            kind,
            None,
            score,
            reasons + (["policy_version_changed"] if versions else []),
            f"The share of {called}{leader.value} {'rose' if leader.strength > 0 else 'fell'} from {b / m:.1%} to "
            f"{a / n:.1%}{since}.",
            first,
            last,
            n,
            cases=max(
                round(abs(of.within[0] / of.within[1] - of.before[0] / of.before[1]) * of.within[1]) for of in group
            ),
            goes_on=self.goes_on(leader.window),
            numbers={
                "changes": [self.change(of) for of in group],
                **({"new_versions": versions} if versions else {}),
            },
            **more,
        )

    def outcome_shift(self, group: Sequence[Moved]) -> Found:
        scores = []
        for of in group:
            is_worse = (of.strength < 0) if of.value == "succeeded" else (of.strength > 0)
            by = of.score(HARM if is_worse else EFFECT)
            scores.append(by if is_worse else min(by, 0.59))
            is_certain = of.stands_alone and abs(of.strength) >= HARM[1] and of.least >= HARM[0]
            if is_worse and is_certain and self.new_versions(group[0].window):
                scores.append(0.8)
        is_harm = any((of.strength < 0) is (of.value == "succeeded") for of in group)
        rose = [of.value for of in group if of.strength > 0]
        steps: list[tuple[str, str | None]] = [
            ("Compare versions, rules and weeks of the decisions.", about(self.policy_id, "effectiveness")),
            (READ_THEM, search(self.policy_id, *self.whole(group[0].window), verdict="yes")),
        ]
        if self.new_versions(group[0].window):
            steps.append(("Replay them under the version before: which would not have been let through?", None))

        def ids() -> list[str]:
            return self.ids_in(group[0].window, lambda case: not rose or case.latest.get("outcome_status") in rose)

        return self.shifted("outcome_shift", group, max(scores), ids=ids, steps=steps, harm=is_harm)

    def verdict_shift(self, group: Sequence[Moved]) -> Found:
        score = max(of.score(EFFECT) for of in group)
        versions = self.new_versions(group[0].window)
        if versions:
            score = min(score, 0.79)
        rose = [of for of in group if of.strength > 0]
        verdicts = [of.value for of in rose if of.of == "verdict"]
        reasons = [of.value for of in rose if of.of == "reason"]
        steps: list[tuple[str, str | None]] = [
            (f"Read what version {version} changed, and whether that was meant.", None) for version in versions
        ] or [("No version changed with it: look at the facts that callers send, and at fact_drift.", None)]
        chosen = {"verdict": verdicts[0]} if verdicts else {"reason_code": reasons[0]} if reasons else {}
        steps.append((READ_THEM, search(self.policy_id, *self.whole(group[0].window), **chosen)))

        def shows(case: Case) -> bool:
            if verdicts:
                return case.record["verdict"] in verdicts
            return not reasons or case.record["reason_code"] in reasons

        return self.shifted("verdict_shift", group, score, ids=lambda: self.ids_in(group[0].window, shows), steps=steps)

    def ids_in(self, window: Window, shows: Callable[[Case], bool] = lambda _: True) -> list[str]:
        return latest_of([case for case in self.seen if window.first <= self.week(case) <= window.last and shows(case)])

    # Drift.

    def drifted(self) -> list[Moved]:
        found, tests = [], 0
        for name in self.fields:
            held = [
                (self.week(case), value_of(self.facts[case.record["decision_id"]], name))
                for case in self.seen
                if self.is_taken(case) and self.facts.get(case.record["decision_id"]) is not None
            ]
            names, bin_of = bins_of([value for _, value in held])
            used = sorted({bin_of(value) for _, value in held})
            if len(used) < 2:
                continue
            self.looked_at.append(name)
            weeks = [[0] * len(used) for _ in range(self.weeks)]
            for week, value in held:
                weeks[week][used.index(bin_of(value))] += 1
            for window in windows(self.weeks):
                within = [sum(of) for of in zip(*weeks[window.first : window.last + 1], strict=True)]
                before = [sum(of) for of in zip(*weeks[window.reference : window.first], strict=True)]
                groups = [1 + self.others(weeks, self.one_of) for weeks in window.weeks]
                fewer, rest = (
                    [int(of / size) for of in counts] for counts, size in zip((within, before), groups, strict=True)
                )
                if min(sum(fewer), sum(rest)) < self.min_sample:
                    continue
                tests += 1
                index = stability(rest, fewer)
                if index >= 0.05:
                    p = histograms_differ(rest, fewer)
                    least = max(0.0, index - by_chance(len(used), sum(rest), sum(fewer)))
                    bins = [names[at] for at in used]
                    found.append(Moved("fact", name, window, before, within, index, p, bins, least=least))
        for of in found:
            of.needed = 0.001 / tests
        most = kept([of.p for of in found], tests) if tests else -1
        return without_echoes(of for of in found if of.p <= most)

    def drift(self, group: Sequence[Moved]) -> Found:
        first, last = self.ends(group[0].window)
        named = ", ".join(of.value for of in group[:3]) + (f" and {len(group) - 3} more" if len(group) > 3 else "")
        facts = [
            {
                "fact": of.value,
                "from": self.ends(of.window)[0],
                "to": self.ends(of.window)[1],
                "reference_from": stamp(self.start + of.window.reference * WEEK),
                "stability_index": round(of.strength, 6),
                "least_index": round(of.least, 6),
                "p_value": float(f"{of.p:.6g}"),
                "required_p": float(f"{of.needed:.6g}"),
                "bins": [
                    {"holds": holds, "before": before, "within": within}
                    for holds, before, within in zip(of.bins, of.before, of.within, strict=True)
                    if before + within
                ],
            }
            for of in group
        ]
        window, leader = group[0].window, group[0]
        decisions = sum(window.first <= self.week(case) <= window.last for case in self.seen)
        n, m = sum(leader.before), sum(leader.within)
        moved = [abs(a / n - b / m) for a, b in zip(leader.before, leader.within, strict=True)]
        return Found(
            "fact_drift",
            None,
            max(of.score(INDEX) for of in group),
            [f"fact_drifted:{of.value}" for of in group],
            f"The facts of decisions differ from those of the weeks before: {named}.",
            first,
            last,
            decisions,
            lambda: self.ids_in(group[0].window),
            {"facts": facts},
            [
                ("See which bins grew: a caller that sends something else, or other customers?", None),
                (READ_THEM, search(self.policy_id, *self.whole(group[0].window))),
            ],
            round(sum(moved) / 2 * decisions),
            goes_on=self.goes_on(group[0].window),
        )

    # Volume.

    def surges(self) -> Iterator[Found]:
        for name, length, like in (("hour", timedelta(hours=1), 168), ("day", DAY, 7), ("week", WEEK, 1)):
            first = min(case.made for case in self.seen)
            start = monday(first) if length == WEEK else self.start + (first - self.start) // length * length
            counts = [0] * max(0, (self.as_of - start) // length)
            squares = [*counts]
            for of in apart_by(self.seen, self.minute).values():
                at = (of[0].made - start) // length
                if at < len(counts):
                    counts[at] += len(of)
                    squares[at] += len(of) ** 2
            if counts and lower(counts) >= 5:
                yield from self.surges_of(name, length, like, start, counts, squares)
                return

    @staticmethod
    def arrivals(count: int, squares: int, length: timedelta) -> int:
        """As how many decisions that came singly those of a cell say as much."""
        if not count:
            return 0
        chance = 1 + Fraction(count - 1, length // timedelta(minutes=1))
        return math.ceil(count / max(Fraction(1), Fraction(squares, count) / chance))

    def surges_of(
        self, name: str, length: timedelta, like: int, start: Moment, counts: Sequence[int], squares: Sequence[int]
    ) -> Iterator[Found]:
        came = [self.arrivals(count, of, length) for count, of in zip(counts, squares, strict=True)]
        usual, come = {}, {}
        for at in range(len(counts)):
            same = [*range(at - like, -1, -like)][:8]
            if len(same) >= 4:
                usual[at] = lower(counts[before] for before in same)
                come[at] = lower(came[before] for before in same)
        far = {at: 2 * math.sqrt(came[at] + 3 / 8) - 2 * math.sqrt(of + 3 / 8) for at, of in come.items()}
        if not far:
            return
        spread = max(ROBUST, lower(map(abs, far.values())))
        least = needed(len(far))
        run: list[int] = []
        for at in range(len(counts) + 1):
            out = at in far and ROBUST * abs(far[at]) / spread > least
            if run and not (out and (far[at] > 0) == (far[run[-1]] > 0)):
                yield self.surge(
                    name,
                    length,
                    start,
                    run,
                    (counts, usual),
                    (came, come),
                    max(abs(far[of]) for of in run) / spread,
                    least,
                )
                run = []
            if out:
                run.append(at)

    def surge(
        self,
        name: str,
        length: timedelta,
        start: Moment,
        run: Sequence[int],
        of_decisions: tuple[Sequence[int], Mapping[int, int]],
        of_arrivals: tuple[Sequence[int], Mapping[int, int]],
        distance: float,
        least: float,
    ) -> Found:
        decisions, expected = (sum(counts[at] for at in run) for counts in of_decisions)
        came, come = (sum(counts[at] for at in run) for counts in of_arrivals)
        times = max(came, come) / max(0.5, min(came, come))
        a_week = lower(sum(sizes) for sizes in self.sizes.values())
        score = min(score_of(times, TIMES), score_of(abs(came - come) / a_week, SURPLUS))
        first, last = start + run[0] * length, start + (run[-1] + 1) * length
        is_more = came > come
        cells = f"{len(run):,} {name}{'s' if len(run) > 1 else ''}"
        return Found(
            "volume",
            name,
            score,
            ["more_decisions_than_usual" if is_more else "fewer_decisions_than_usual"],
            f"{decisions:,} decisions in {cells}; such {name}s have {expected:,}.",
            stamp(first),
            stamp(last),
            decisions,
            lambda: latest_of([case for case in self.chosen if first <= case.made < last]),
            {
                "grain": name,
                "cells": len(run),
                "decisions": decisions,
                "usual": expected,
                "arrivals": came,
                "usual_arrivals": come,
                "usual_week": a_week,
                "times": round(times, 6),
                "modified_z": round(ROBUST * distance, 6),
                "required_z": round(least, 6),
            },
            [
                ("See who asked, and for what: actor, subject and target of the decisions.", None),
                (READ_THEM, search(self.policy_id, stamp(first), stamp(last))),
            ],
            abs(decisions - expected),
        )

    # Outliers.

    def outliers(self) -> Iterator[Found]:
        by_name: dict[str, list[tuple[Case, float]]] = {}
        for case in self.chosen:
            for name, value in (case.latest.get("observed_metrics") or {}).items():
                by_name.setdefault(name, []).append((case, float(value)))
        names = [name for name in most_first(by_name) if len(by_name[name]) >= self.min_sample][:MOST_METRICS]
        self.metrics = len(names)
        for name in names:
            yield from self.outliers_of(name, by_name[name])

    def outliers_of(self, name: str, all_values: Sequence[tuple[Case, float]]) -> Iterator[Found]:
        least = min(value for _, value in all_values)
        values = [(case, value) for case, value in all_values if self.is_taken(case)]
        above_zero = [(case, value) for case, value in values if value > 0]
        if len(above_zero if least == 0 else values) < self.min_sample:
            return
        ratios = least >= 0 and is_even_by_logarithms([value for _, value in above_zero])
        if ratios:
            values = above_zero
        median: float = lower(value for _, value in values)
        season, kind_of = self.season(values, median)
        by_kind = apart_by(values, lambda of: kind_of(of[0]))
        usual: dict[tuple[int, ...], float] = {kind: lower(value for _, value in of) for kind, of in by_kind.items()}

        def distance(case: Case, value: float) -> float:
            middle = usual.get(kind_of(case), median)
            if not ratios:
                return min(GREATEST, abs(value - middle))
            return math.log(min(GREATEST, max(value / middle, middle / value)))

        spread: float = lower(distance(*of) for of in values)
        if spread <= 0:
            return
        least_z = needed(len(all_values))

        def out(case: Case, value: float) -> float:
            return min(GREATEST, ROBUST * distance(case, value) / spread)

        # z orders, but where it is too great for a number.
        far = [of for of in all_values if (of[1] > 0 or not ratios) and out(*of) > least_z]
        far.sort(key=lambda of: (-distance(*of), of[0].position))
        if not far:
            return
        when = sorted(case.latest["reported_at"] for case, _ in far)
        most = 1 if len(far) >= MANY_FAR * len(all_values) else 0.79
        yield Found(
            "metric_outlier",
            name,
            min(most, score_of(out(*far[0]) / least_z, FAR)),
            ["metric_far_from_usual"],
            f"Values of the metric {name} far from what is usual: {len(far):,} of {len(all_values):,}.",
            when[0],
            when[-1],
            len(far),
            lambda: [str(case.record["decision_id"]) for case, _ in far[:10]],
            {
                "metric": name,
                "values": len(all_values),
                "median": median,
                "mad": float(f"{spread:.6g}"),
                "scale": "ratio" if ratios else "difference",
                "season": season,
                "seasonal_p": 0.001,
                "required_z": round(least_z, 6),
                "farthest": [
                    {
                        "value": value,
                        "usual": usual.get(kind_of(case), median),
                        "modified_z": round(out(case, value), 6),
                    }
                    for case, value in far[:10]
                ],
            },
            [("Check the number with its source: a wrong unit, a wrong sign, or a case of its own?", None)],
            len(far),
        )

    def season(
        self, values: Sequence[tuple[Case, float]], median: float
    ) -> tuple[str | None, Callable[[Case], tuple[int, ...]]]:
        def when(case: Case) -> Moment:
            return moment(case.latest["reported_at"])

        kinds: dict[str, Callable[[Case], tuple[int, ...]]] = {
            "weekday and hour": lambda case: (when(case).weekday(), when(case).hour),
            "hour": lambda case: (when(case).hour,),
            "weekday": lambda case: (when(case).weekday(),),
        }
        for season, kind_of in kinds.items():
            groups = list(apart_by(values, lambda of: kind_of(of[0])).values())  # noqa: B023 - made at once
            if min(map(len, groups)) < self.min_sample:
                continue
            table = [(sum(value > median for _, value in of), sum(value <= median for _, value in of)) for of in groups]
            if pearson(table) <= 0.001:
                return season, kind_of
        return None, lambda _: ()


class _Missing:
    """Stands for a fact that is not there."""


MISSING = _Missing()


def value_of(facts: Any, path: str) -> Any:
    """What is at the end of a path through objects."""
    for name in path.split("."):
        facts = facts.get(name, MISSING) if isinstance(facts, dict) else MISSING
    return facts


def bins_of(values: Sequence[Any]) -> tuple[list[str], Callable[[Any], int]]:
    """What the bins hold, and the number of a value's bin."""
    numbers = [float(value) for value in values if is_number(value)]
    edges = sorted({lower(numbers, tenth, 10) for tenth in range(1, 10)}) if numbers else []
    texts: dict[str, int] = {}
    for value in values:
        if isinstance(value, str):
            texts[value] = texts.get(value, 0) + 1
    common = [] if len(texts) > 50 else sorted(sorted(texts, key=lambda text: (-texts[text], text))[:9])
    told = [f"{edge:.6g}" for edge in edges]
    ranges = (
        [
            f"to {told[0]}",
            *(f"above {low} to {high}" for low, high in pairwise(told)),
            f"above {told[-1]}",
        ]
        if told
        else ["any number"]
    )
    singles = ["missing", "null", "false", "true", "list or object"]
    cut = [text if len(text) <= 80 else f"{text[:80]}..." for text in common]
    quoted = [json.dumps(text, ensure_ascii=False) for text in cut]
    names = [*singles, *ranges, *quoted, "other text" if common else "text"]

    def bin_of(value: Any) -> int:
        if is_number(value):
            return 5 + len([edge for edge in edges if value > edge])
        if isinstance(value, str):
            return 5 + len(ranges) + (common.index(value) if value in common else len(common))
        simple = {MISSING: 0, None: 1, False: 2, True: 3}
        return 4 if isinstance(value, dict | list) else simple[value]

    return names, bin_of


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_even_by_logarithms(values: Sequence[float]) -> bool:
    """Whether the deciles of the logarithms are less skewed than those of the values."""
    low, middle, high = (lower(values, tenth, 10) for tenth in (1, 5, 9))

    def skewness(d1: float, d5: float, d9: float) -> float:
        return abs(((d9 - d5) - (d5 - d1)) / (d9 - d1))

    logarithms = [math.log(of) for of in (low, middle, high)]
    if low == high or logarithms[0] == logarithms[2]:
        return False
    return skewness(*logarithms) < skewness(low, middle, high)


def contradicts_itself(receipt: Mapping[str, Any]) -> bool:
    """Whether the state hashes of a receipt contradict its status."""
    before, after = receipt.get("state_before_hash"), receipt.get("state_after_hash")
    status = receipt["execution_status"]
    if before is None or after is None or status == "queued":
        return False
    changed = bool(before != after)
    return not changed if status in ("executed", "reverted") else changed


def counted(by_week: Mapping[int, Sequence[tuple[int, bool]]], weeks: Iterable[int], most: float) -> tuple[int, int]:
    """How many have a value, of how many, whose outcome came fewer than so many days after the decision."""
    held = [has for week in weeks for age, has in by_week.get(week, ()) if age < most]
    return sum(held), len(held)


def apart_by(items: Iterable[Any], by: Callable[[Any], Any]) -> dict[Any, list[Any]]:
    return apart(items, by)


def version_of(case: Case) -> str:
    return str(case.record["policy_version"])


def latest_of(cases: Sequence[Case]) -> list[str]:
    """The ids of the ten that are the latest in the chain."""
    ordered = sorted(cases, key=lambda case: case.position, reverse=True)
    return [str(case.record["decision_id"]) for case in ordered[:10]]


def search(policy_id: str, first: str, last: str, **more: str) -> str:
    return f"/api/decisions?{urlencode({'policy_id': policy_id, 'from': first, 'to': last, **more})}"


def about(policy_id: str, report: str) -> str:
    return f"/api/decision/policies/{quote(policy_id, safe='')}/{report}"


def tested(condition: Mapping[str, Any]) -> Iterator[str]:
    """The facts that a condition tests."""
    if "field" in condition:
        yield condition["field"]
    for children in (
        condition.get("all", ()),
        condition.get("any", ()),
        [condition["not"]] if "not" in condition else [],
    ):
        for child in children:
            yield from tested(child)


def fields_of(rulebooks: Iterable[Mapping[str, Any]]) -> list[str]:
    """The facts that rulebooks declare or test, of more than 32 those of the most rulebooks, by name."""
    used: dict[str, list[Any]] = {}
    for rulebook in rulebooks:
        schema = rulebook["input_schema"]
        fields = {*schema["required"], *schema["properties"]}
        for rule in rulebook["rules"]:
            fields |= set(tested(rule["condition"]))
        for name in fields:
            used.setdefault(name, []).append(rulebook)
    return sorted(most_first(used)[:MOST_FACTS])


def is_left_out(name: str, paths: Iterable[str]) -> bool:
    """Whether a fact is personal, a part of what is, or has a part that is."""
    return any(f"{name}.".startswith(f"{path}.") or f"{path}.".startswith(f"{name}.") for path in paths)


def anomalies(
    entries: Entries,
    requests: Mapping[str, Mapping[str, Any]],
    policy_id: str,
    *,
    policy_version: str | None = None,
    limit: int | None = None,
    min_sample: int = 20,
    threshold: float = 0.35,
    max_items: int = 20,
    value: str | None = None,
    erased: Collection[str] | None = None,
    withheld: Collection[str] = (),
    most_sampled: int = MOST_SAMPLED,
) -> Json:
    """The anomaly report of a policy, over the whole chain of a scope.

    Args:
        entries: What the service answered, in chain order.
        requests: The request of each decision, by the decision's id.
        policy_id: The policy.
        policy_version: One of its versions.
        limit: How many decisions, the latest in the chain.
        min_sample: How many cases a window needs.
        threshold: The least score that is listed.
        max_items: How many are listed.
        value: The observed metric in which costs are estimated.
        erased: The decisions whose facts are not known; by default those that the chain says were erased.
        withheld: The paths of facts that were left out as personal.
        most_sampled: How many decisions are looked at whole.
    """
    of_policy = [case for case in cases_of(entries) if case.record["policy_id"] == policy_id]
    chosen = [case for case in of_policy if policy_version in (None, version_of(case))]
    is_truncated = limit is not None and len(chosen) > limit
    if limit is not None:
        chosen = chosen[max(0, len(chosen) - limit) :]
    used = (requests[of.record["decision_id"]]["rulebook"] for of in of_policy)
    # By their text: few are used, by many decisions, and hashing each one's anew would be half of the recount.
    rulebooks = {json.dumps(body, sort_keys=True): body for body in used}
    facts: dict[str, Any] = {}
    for case in chosen:
        of = case.record["decision_id"]
        if of not in erased if erased is not None else not case.erased:
            by_adapter = case.record.get("adapter_facts")
            facts[of] = requests[of]["context"].get("inputs", {}) if by_adapter is None else by_adapter
    found: list[Found] = []
    recount = None
    if chosen:
        fields = [name for name in fields_of(rulebooks.values()) if not is_left_out(name, withheld)]
        recount = Recount(entries, chosen, policy_id, min_sample, facts, fields, most_sampled, value)
        found = recount.find()
    above = [of for of in found if of.score >= threshold]
    listed = above[:max_items]
    severities = {name: sum(severity_of(of.score) == name for of in above) for name in ("high", "medium", "low")}
    made = sorted(case.record["created_at"] for case in chosen)
    notes = [*NOTES]
    if len(chosen) < min_sample:
        notes.append(TOO_FEW)
    if recount is not None and recount.has_thin_weeks():
        notes.append(THIN)
    if recount is not None and recount.one_of > 1:
        notes.append(TAKEN.format(recount.one_of))
    if is_truncated:
        notes.append(EARLIER_LEFT_OUT)
    if len(above) > len(listed):
        notes.append(MORE)
    calm = "stable" if len(chosen) >= min_sample else "insufficient_data"
    words = {"high": "investigate", "medium": "review", "low": "watch"}
    report = {
        "policy_anomalies_version": "policy_anomalies_v1",
        "policy_id": policy_id,
        "policy_version": policy_version,
        "verdict": None,
        "since": None,
        "until": None,
        "clock": "recorded",
        "recommendation": next((words[name] for name in words if severities[name]), calm),
        "anomaly_count": len(above),
        "severities": severities,
        "anomalies": [of.told(policy_id) for of in listed],
        "min_sample": min_sample,
        "threshold": threshold,
        "max_items": max_items,
        "value": value,
        "limit": limit,
        "parameters": {
            "window_weeks": [1, 2, 4, 8],
            "reference_weeks": 8,
            "false_discovery_rate": 0.05,
            "alarm_chance": 0.001,
            "rollout_chance": 0.01,
            "receipt_due_hours": 24,
            "outcome_due_days": 30,
            "medium_score": 0.6,
            "high_score": 0.8,
        },
        "coverage": {
            "decisions": len(chosen),
            "from": made[0] if made else None,
            "to": made[-1] if made else None,
            "as_of": stamp(dated(entries[-1])) if entries else None,
            "weeks": 0 if recount is None else recount.weeks,
            "sampled_one_of": 1 if recount is None else recount.one_of,
            "facts": [] if recount is None else recount.looked_at,
            "metrics": 0 if recount is None else recount.metrics,
            "chain_position": len(entries),
            "merkle_root": root_of(entries),
            "truncated": is_truncated,
        },
        "notes": notes,
    }
    return {**report, "anomaly_hash": hash_of(report)}
