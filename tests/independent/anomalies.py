"""A second way to the anomaly report: one decision at a time, in plain Python, from the words of the pages
docs/reference/formulas/anomalies.md, anomaly-metrics.md, and anomaly-shifts.md.

It reads what the service answered of a scope, in chain order, and the requests that were sent; facts stand nowhere
else. Fisher's p-values are exact sums of whole numbers, those of chi-squared come from the incomplete gamma function,
and nothing is taken from the product. The sentences for people are repeated here word for word.
"""

from __future__ import annotations

import json
import math
import sys
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import cache, cached_property
from itertools import pairwise
from typing import Any
from urllib.parse import quote, urlencode

from tests.independent.recount import TERMINAL, Entries, Json, apart, hash_of, most_first, root_of, wilson

Moment = datetime
Groups = Sequence[tuple[int, Sequence[float]]]

DAY, WEEK = timedelta(days=1), timedelta(weeks=1)
AHEAD = timedelta(minutes=5)
MIDNIGHT = datetime(2026, 1, 1, tzinfo=UTC)
MOST_WEEKS = 104
MOST_REASONS = 50
MOST_FACTS = 32
MOST_METRICS = 64
MOST_SAMPLED = 100_000
ALL_AGES = 57
ROBUST = 0.6744897501960817
GREATEST = sys.float_info.max

EFFECT, HARM, INDEX = (0.2, 0.5, 0.8), (0.2, 0.35, 0.5), (0.1, 0.25, 0.5)
TIMES, FAR, SHARE = (2.0, 3.0, 5.0), (1.0, 2.0, 4.0), (0.05, 0.2, 0.5)
DELTA, SURPLUS = (0.147, 0.33, 0.474), (0.05, 0.25, 0.5)
KINDS = (
    "lifecycle_break",
    "outcome_shift",
    "verdict_shift",
    "metric_shift",
    "volume",
    "metric_outlier",
    "fact_drift",
)
ENDED = {
    "succeeded": "that succeeded",
    "partial": "that were partial",
    "failed": "that failed",
    "reverted": "that were reverted",
}
NORMAL = 1.959963984540054
ONE_SIDED = 1.6448536269514722

NOTES = (
    "Nothing here is a model's prediction: every anomaly follows from counts, by the formulas in "
    "docs/reference/formulas/anomalies.md.",
    "An anomaly says that something changed or that a rule of the protocol was broken, but not why: windows and "
    "versions cover different cases.",
    "Outcomes are as callers reported them, and are compared at equal age. The latest weeks have few of them, and "
    "failures often come last.",
    "The report cannot show an effect that has lasted since the first week, or a change smaller than a small "
    "effect in half a year.",
    "Outcomes and receipts are overdue by the date of the chain's last entry, not by the clock: in a scope without "
    "new entries, nothing becomes overdue.",
)
TOO_FEW = "There are too few decisions to compare."
THIN = (
    "Some weeks have fewer than min_sample decisions, and are compared only together with neighboring weeks. "
    "Decisions that arrive in one minute count only as far as they differ."
)
UNTIMED = (
    "Nearly all decisions are dated to a whole day, hour, or quarter of an hour. Their minute is unknown, so each "
    "counts as if it came alone."
)
FAR_AWAY = (
    "{:,} of {:,} decisions lie more than 104 weeks from the others, such as that of {}. They are in no week that "
    "is compared. If such a date means that there is none, leave it out."
)
TAKEN = "The usual values of facts and metrics were learned from one in {} decisions."
EARLIER_LEFT_OUT = "Earlier decisions were left out because of limit."
UNMEASURED = "No outcome of these weeks has the metric {} that the parameter value selects, so no effect has a value."
MORE = "More anomalies were found than are listed: raise max_items."
FIRST_OF_THEM = "Read the first of these decisions, with its receipts, outcomes, and proof."
READ_THEM = "Read the decisions of that time."

BREAKS = {
    "executed_without_yes": (
        "Executed or queued without a yes",
        "Stop the caller that executes these actions: it does not wait for a yes. Its receipts name the executor.",
    ),
    "executed_though_refused": (
        "Executed or queued although the owner had refused",
        "Stop the caller that executes these actions: it ignores the owner's answer. Compare its receipts with the "
        "resolution.",
    ),
    "executed_though_expired": (
        "Executed or queued after the review had expired without an answer",
        "Stop the caller that executes these actions: an expired review grants nothing. Ask the owner whether the "
        "time limit is too short.",
    ),
    "executed_before_grant": (
        "Executed or queued before the owner granted it",
        "Make the caller wait for the grant: it does not cover actions that were executed earlier. The receipts "
        "name the executor.",
    ),
    "executed_after_grant_ended": (
        "Executed or queued after the owner's grant had ended",
        "Make the caller check expires_at before it acts, and ask again once the grant has ended. Compare "
        "expires_at with executed_at of the receipts.",
    ),
    "duplicate_execution": (
        "Executed more than once without being reverted",
        "Compare execution_id and external_ref of the receipts: are there two transactions, or was one reported twice?",
    ),
    "binding_mismatch": (
        "A receipt states another target than the decision",
        "Compare action_binding of the record with that of the receipt: the executed action is not the one that "
        "was requested.",
    ),
    "action_mismatch": (
        "An action other than the decided one was executed or queued",
        "Compare action_taken of the receipt with the decision's action: was another action carried out, or does "
        "one action have two names?",
    ),
    "state_mismatch": (
        "State hashes contradict the receipt's status",
        "Compare state_before_hash and state_after_hash with the target itself.",
    ),
    "approved_without_receipt": (
        "Approved more than a day ago, without an execution receipt",
        "Ask the caller whether the action was executed. A late report is still evidence.",
    ),
    "outcome_overdue": (
        "Executed more than 30 days ago, without a terminal outcome",
        "Find the system that should report outcomes: effectiveness counts only reported outcomes.",
    ),
    "outcome_reversed": (
        "Succeeded at first, and failed or was reverted later",
        "Find what these decisions have in common: such failures show up late.",
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
    resolution: Mapping[str, Any] | None = None
    later: list[Mapping[str, Any]] = field(default_factory=list)
    erased: bool = False
    alone: bool = False

    @cached_property
    def made(self) -> Moment:
        return moment(self.record["created_at"])

    @cached_property
    def minute(self) -> int:
        return int(self.made.timestamp()) // 60

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
    def answer(self) -> str | None:
        """What the owner answered, if the decision was held and somebody did."""
        return None if self.resolution is None else str(self.resolution["resolution"])

    @property
    def let_through(self) -> bool:
        told = self.latest.get("action_executed")
        return (self.yes or self.answer == "granted") if told is None else bool(told)

    @property
    def age(self) -> int:
        """Whole days from the decision to its latest outcome."""
        return max(0, (reported(self.latest["reported_at"]) - self.made) // DAY)

    @property
    def is_late(self) -> bool:
        """Whether it was carried out after its grant had ended, and was not queued before."""
        assert self.resolution is not None
        acted = [of for of in self.later if of["execution_status"] in ("executed", "queued")]
        in_time = {id(of): performed(of) <= moment(self.resolution["expires_at"]) + AHEAD for of in acted}
        queued = any(in_time[id(of)] for of in acted if of["execution_status"] == "queued")
        return not all(in_time.values()) and not queued

    def is_another_action(self, receipt: Mapping[str, Any]) -> bool:
        """Whether a receipt names neither the decided action nor, of what was held or refused, the proposed one."""
        taken = receipt.get("action_taken", self.record["action"])
        if self.yes or taken == self.record["action"]:
            return bool(taken != self.record["action"])
        proposed = receipt["action_binding"].get("proposed_action")
        return bool(proposed and taken != proposed)

    def said(self, *statuses: str) -> list[Mapping[str, Any]]:
        """The receipts with one of the statuses."""
        return [receipt for receipt in self.receipts if receipt["execution_status"] in statuses]


def moment(text: str) -> Moment:
    return datetime.fromisoformat(text)


@cache
def reported(text: str) -> Moment:
    """The same; asked for again and again."""
    return moment(text)


def performed(receipt: Mapping[str, Any]) -> Moment:
    """When an action was carried out: as its receipt says, unless that had not come when it was reported."""
    told, said = reported(receipt["reported_at"]), receipt.get("executed_at")
    return told if said is None or moment(said) > told + AHEAD else moment(said)


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
            if found[of].resolution is not None:
                found[of].later.append(entry)
        elif "resolution_entry_id" in entry:
            found[of].resolution = entry
        elif "erasure_id" in entry:
            found[of].erased = True
        elif "sync_id" not in entry:
            found[of] = Case(position, entry)
    return list(found.values())


def dated(entry: Mapping[str, Any]) -> Moment:
    """When an entry was made."""
    return moment(
        next(entry[name] for name in ("reported_at", "recorded_at", "erased_at", "created_at") if name in entry)
    )


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


def pearson(table: Sequence[tuple[int, int]]) -> tuple[float, float]:
    """Pearson's test that two columns are of one population: chi-squared, and its p-value."""
    n, m = sum(a for a, _ in table), sum(b for _, b in table)
    if len(table) < 2 or not n or not m:
        return 0.0, 1.0
    statistic = sum(
        (seen - expected) ** 2 / expected
        for a, b in table
        for seen, expected in ((a, Fraction((a + b) * n, n + m)), (b, Fraction((a + b) * m, n + m)))
    )
    return float(statistic), chi_squared(float(statistic), len(table) - 1)


def histograms_differ(before: Sequence[int], within: Sequence[int]) -> tuple[float, float]:
    """The test of two histograms, bins of which the smaller one expects fewer than 5 put together."""
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
    shown: Sequence[Case]
    numbers: Json
    steps: list[tuple[str, str | None]]
    cases: int = 0
    harm: bool | None = None
    value: float | None = None
    goes_on: bool = False
    until: str = ""
    is_costed: bool = False
    named: list[str] | None = None

    @property
    def lasting(self) -> bool:
        lasts = self.goes_on or moment(self.until or self.last) - moment(self.first) >= 2 * WEEK
        return lasts and self.kind != "metric_outlier"

    def told(self, policy_id: str) -> Json:
        about: Json = {"policy_id": policy_id, "kind": self.kind, "subject": self.subject or "", "from": self.first}
        apart = [of for of in self.reasons if of == "slow" or of.startswith("version_differs:")]
        if apart:
            about["reasons"] = apart
        ids = self.named if self.named is not None else latest_of(self.shown)
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
            "decisions": len(self.shown),
            "decision_ids": ids,
            "effect": {
                "cases": self.cases,
                "value": self.value,
                "until": self.until or self.last,
                "lasting": self.lasting,
                "harm": self.harm,
            },
            "numbers": self.numbers,
            "look_at_next": [{"what": what, "href": href} for what, href in steps],
        }


@dataclass(frozen=True, order=True)
class Window:
    """Some weeks by their numbers, both ends within, and where its reference begins."""

    first: int
    last: int
    reference: int
    slow: bool = False

    @property
    def before(self) -> range:
        """The weeks that it is compared with."""
        return range(self.reference, self.reference + 8) if self.slow else range(self.reference, self.first)

    @property
    def within(self) -> range:
        return range(self.first, self.last + 1)

    def echoes(self, other: Window) -> bool:
        """Whether it, its reference, or what lies between, has a week of the other."""
        return bool(set(range(self.reference, self.last + 1)) & set(other.within))

    def is_together_with(self, leader: Window) -> bool:
        """Whether both begin at once, or have a quarter of all their weeks in common."""
        span = max(self.last, leader.last) - min(self.first, leader.first) + 1
        common = 4 * len({*self.within} & {*leader.within}) >= span
        return self.slow == leader.slow and (self.first == leader.first or common)


@dataclass
class Moved:
    """A rate, or a fact, that is not as before."""

    of: str
    value: Any
    window: Window
    before: Any
    within: Any
    strength: float
    p: float
    bins: Sequence[str] = ()
    needed: float = 0.0
    distance: float = 0.0
    least: float = 0.0
    groups: tuple[int, int] = (0, 0)
    effects: tuple[float, float] = (1.0, 1.0)
    version: str | None = None
    sides: Any = None
    until: int = -1
    cases: int = 0
    cut: float = 0.0
    delta: Sequence[float] = ()
    has: Any = None
    mixed: Sequence[str] = ()

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
    for first in range(26, weeks):
        if first + 8 <= weeks:
            yield Window(first, first + 7, first - 26, True)


def without_echoes(moved: Iterable[Moved]) -> list[Moved]:
    def first(of: Moved) -> Any:
        by = -round(of.distance, 6), -round(abs(of.strength), 6)
        return not of.stands_alone, of.p, *by, of.window.last - of.window.first, of.window.first, of.of, of.value

    ordered = sorted(moved, key=first)
    found: list[Moved] = []
    for of in ordered:
        if not of.window.slow and not any(same(of, other) and of.window.echoes(other.window) for other in found):
            found.append(of)
    creeping: list[Moved] = []
    for of in ordered:
        linked = (other for other in creeping if of.window.echoes(other.window) or other.window.echoes(of.window))
        if not of.window.slow or any(same(of, other) for other in linked):
            continue
        parts = [
            other
            for other in found
            if same(of, other) and of.window.echoes(other.window) and other.strength * of.strength > 0
        ]
        if not any(abs(other.strength) >= abs(of.strength) / 2 for other in parts):
            creeping.append(of)
            found = [other for other in found if other not in parts]
    return found + creeping


def mean_design_effect(side: Sequence[tuple[Case, int]], shares: Sequence[float]) -> float:
    """Rao and Scott's mean of the bins' design effects."""
    used = [place for place, share in enumerate(shares) if share > 0]
    if len(used) < 2:
        return 1.0
    more = []
    for place in used:
        groups = minutes_of((case, (at == place) - shares[place]) for case, at in side)
        products = math.fsum(sum(group) ** 2 - math.fsum(of * of for of in group) for _, group in groups)
        more.append(products / shares[place])
    return round(max(1.0, 1 + math.fsum(more) / (len(side) * (len(used) - 1))), 6)


def apart_by_errors(a: int, n: int, b: int, m: int) -> float:
    """How many standard errors two rates lie apart."""
    if not n or not m:
        return 0.0
    p = (a + b) / (n + m)
    spread = math.sqrt(p * (1 - p) * (1 / n + 1 / m))
    return abs(a / n - b / m) / spread if spread else 0.0


def divided(count: int, other: int, cells: int, others: int) -> float:
    """How likely so many are divided as unevenly between so many cells: twice the lesser tail, in whole numbers."""
    whole = count + other
    far = range(count + 1) if count * (cells + others) < whole * cells else range(count, whole + 1)
    # What lies so far from the count adds nothing.
    near = [at for at in far if abs(at - count) <= 60 + 12 * math.isqrt(whole)]
    part = sum(math.comb(whole, at) * cells**at * others ** (whole - at) for at in near)
    return min(1.0, max(1e-40, float(2 * Fraction(part, (cells + others) ** whole))))


def scattered(number: int) -> int:
    """The upper half of a multiplication."""
    return ((number % 2**20) * 2654435761 % 2**32) // 2**16


def same(one: Moved, other: Moved) -> bool:
    return (one.of, one.value) == (other.of, other.value)


def minute_of(case: Case) -> int:
    """The minute of a case; a number of its own where it has none."""
    return 2**40 + case.position if case.alone else case.minute


def are_untimed(cases: Sequence[Case]) -> bool:
    """Whether 19 of 20 cases are dated to a whole quarter of an hour, and two of these to one."""
    whole = Counter(case.made for case in cases if is_whole(case))
    return 20 * sum(whole.values()) >= 19 * len(cases) and max(whole.values(), default=0) > 1


def is_whole(case: Case) -> bool:
    return (case.made - MIDNIGHT) % timedelta(minutes=15) == timedelta(0)


def part_of(cases: Sequence[Case]) -> list[Case]:
    """The latest cases of at least four weeks, else the most, between which and others are 104 weeks without any."""
    parts: list[list[Case]] = []
    for case in sorted(cases, key=lambda case: case.made):
        if parts and monday(case.made) - monday(parts[-1][-1].made) <= MOST_WEEKS * WEEK:
            parts[-1].append(case)
        else:
            parts.append([case])
    long = [part for part in parts if len({monday(case.made) for case in part}) >= 4]
    return long[-1] if long else max(reversed(parts), key=len)


def minutes_of(numbered: Iterable[tuple[Case, float]]) -> Groups:
    """The numbers of cases, those of one minute of decision together; each minute stands for itself."""
    found: dict[int, list[float]] = {}
    for case, number in numbered:
        found.setdefault(minute_of(case), []).append(number)
    return [(1, group) for group in found.values()]


def number_of_groups(groups: Groups) -> int:
    return sum(by for by, _ in groups)


def design_effect(groups: Groups, mean: float) -> float:
    """How many say as much as one alone: what the products of those of one group add to the squares."""
    apart = [(by, [number - mean for number in group]) for by, group in groups]
    alone = math.fsum(by * of * of for by, group in apart for of in group)
    products = math.fsum(by * (sum(group) ** 2 - sum(of * of for of in group)) for by, group in apart)
    number = number_of_groups(groups)
    if number < 2 or alone <= 0:
        return 1.0
    return round(max(1.0, 1 + number / (number - 1) * products / alone), 6)


def are_few(groups: Groups) -> bool:
    return not groups or (number_of_groups(groups) < 5 and any(len(group) > 1 for _, group in groups))


def grouped(moved: Iterable[Moved]) -> list[list[Moved]]:
    groups: list[list[Moved]] = []
    for of in sorted(moved, key=lambda of: (of.has is not None, -round(abs(of.strength), 6), *names_of(of))):
        for group in groups:
            leader = group[0]
            apart = of.version != leader.version or (of.of == "metric" and of.value[0] != leader.value[0])
            if not apart and of.window.is_together_with(leader.window):
                group.append(of)
                break
        else:
            groups.append([of])
    return groups


def names_of(of: Moved) -> tuple[str, str]:
    return of.value if of.of == "metric" else (of.of, of.value)


class Level:
    """The values of a metric in bins."""

    def __init__(self, values: Sequence[tuple[Case, float]], *, ratios: bool) -> None:
        self.values, self.ratios = values, ratios
        numbers = [value for _, value in values]
        self.edges = sorted({lower(numbers, part, 64) for part in range(1, 64)})
        by_bin = apart_by(numbers, self.bin)
        self.middle: dict[int, float] = {at: lower(of) for at, of in by_bin.items()}
        self.counts = {at: len(of) for at, of in by_bin.items()}
        self.ranks = {at: self.rank_of(at) for at in by_bin}

    def bin(self, value: float) -> int:
        return bisect_left(self.edges, value)

    def rank(self, value: float) -> int:
        return self.ranks[self.bin(value)]

    def rank_of(self, at: int) -> int:
        below = sum(count for other, count in self.counts.items() if other < at)
        return (2 * below + self.counts[at]) * 1000 // (2 * len(self.values))

    def distance(self, value: float, median: float) -> float:
        if not self.ratios:
            return abs(value - median)
        return max(value / median, median / value) if value > 0 and median > 0 else math.inf

    def is_wider(self, before: Sequence[float], within: Sequence[float]) -> bool:
        widths = []
        for side in (before, within):
            low, high = lower(side, 1, 4), lower(side, 3, 4)
            widths.append(math.log(max(1.0, min(self.distance(high, low), GREATEST))) if self.ratios else high - low)
        return max(widths) > 0 and max(widths) >= 1.5 * min(widths)


def effects_of(sides: Sequence[Groups]) -> list[float]:
    every = [number for side in sides for _, group in side for number in group]
    mean = sum(every) / len(every) if every else 0.0
    return [design_effect(side, mean) for side in sides]


def variances(
    first: Sequence[float], second: Sequence[float], by: float = 1.0, beside: float = 1.0
) -> tuple[float, float]:
    """Of Cliff's delta: by Mann and Whitney where nothing differs, and by DeLong as it is."""
    n, m = len(first), len(second)
    delta = ranked_delta(first, second)
    mine = [dominance(of, sorted_second, m) for sorted_second in [sorted(second)] for of in first]
    theirs = [dominance(of, sorted_first, n) for sorted_first in [sorted(first)] for of in second]
    alone, others = n / by, m / beside
    ties = sum(count**3 - count for count in Counter([*first, *second]).values())
    null = (alone + others + 1) / (3 * alone * others) * (1 - ties / ((n + m) ** 3 - (n + m)))
    spread = (math.fsum(of * of for of in mine) / n - delta**2) / alone
    spread += (math.fsum(of * of for of in theirs) / m - delta**2) / others
    return null, max(spread, 1 / (alone * others))


def dominance(value: float, ordered: Sequence[float], number: int) -> float:
    """How much more of some values lie below one than above it."""
    return (bisect_left(ordered, value) - (number - bisect_right(ordered, value))) / number


def surplus(first: Sequence[int], second: Sequence[int]) -> int:
    """How many more pairs have the greater one on the first side than on the second."""
    ordered = sorted(second)
    return sum(bisect_left(ordered, of) - (len(ordered) - bisect_right(ordered, of)) for of in first)


def ranked_delta(first: Sequence[float], second: Sequence[float]) -> float:
    ordered = sorted(second)
    return math.fsum(dominance(of, ordered, len(second)) for of in first) / len(first)


def ranked(
    first: Sequence[float], second: Sequence[float], by: float = 1.0, beside: float = 1.0
) -> tuple[float, float, float]:
    """Cliff's delta, how many standard errors it lies from none, and its end that is nearer to that."""
    delta = ranked_delta(first, second)
    null, spread = variances(first, second, by, beside)
    z = delta / math.sqrt(null) if null > 0 else 0.0
    return delta, z, max(0.0, abs(delta) - NORMAL * math.sqrt(spread))


def cap(number: float) -> float:
    """A number that can be written."""
    return max(-GREATEST, min(GREATEST, number))


def normal_p(z: float) -> float:
    return max(1e-40, math.erfc(abs(z) / math.sqrt(2)))


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
        valued: str | None,
    ) -> None:
        self.valued = valued
        self.chosen = chosen
        self.policy_id = policy_id
        self.min_sample = min_sample
        self.facts = facts
        self.fields = fields
        self.untimed = are_untimed(chosen)
        for case in chosen:
            case.alone = self.untimed and is_whole(case)
        near = part_of(chosen)
        self.near = {case.position for case in near}
        self.far = sorted((case for case in chosen if case.position not in self.near), key=lambda case: case.made)
        self.as_of = dated(entries[-1])
        self.farthest_date = self.far[0].made if self.far else None
        if self.far and self.far[-1].made > near[-1].made:
            self.farthest_date = self.far[-1].made
        if self.far and (self.far[-1].made > near[-1].made or self.as_of < near[0].made):
            self.as_of = near[-1].made
        self.one_of = 1
        while len(chosen) > self.one_of * most_sampled:
            self.one_of *= 2
        self.thin = 1 if self.one_of == 1 else 2 * self.one_of
        self.looked_at: list[str] = []
        self.metrics = 0
        made = [case.made for case in near]
        latest = monday(max(made))
        last = min(max(monday(self.as_of), latest), latest + (MOST_WEEKS - 1) * WEEK)
        self.start = max(monday(min(made)), last - (MOST_WEEKS - 1) * WEEK)
        self.weeks = (last - self.start) // WEEK + 1
        self.seen = [case for case in chosen if self.is_seen(case)]
        self.until = max(self.as_of, max(made))

    def week(self, case: Case) -> int:
        return (case.made - self.start) // WEEK

    def is_seen(self, case: Case) -> bool:
        """Whether it stands in a week."""
        return case.position in self.near and case.made >= self.start

    def is_taken(self, case: Case) -> bool:
        """Whether it is in the sample."""
        return scattered(case.position) % self.one_of == 0

    @cached_property
    def minutes(self) -> Counter[int]:
        return Counter(minute_of(case) for case in self.chosen)

    def stands_for(self, case: Case) -> int:
        """For how many minutes that of a case stands: for itself where it has many, for none where it is not taken."""
        minute = minute_of(case)
        if self.thin == 1 or self.minutes[minute] > self.thin:
            return 1
        return 0 if scattered(minute) % self.thin else self.thin

    def has_thin_weeks(self) -> bool:
        """Whether some weeks have too few decisions to be compared alone, or say too little of some rate."""
        most = dict.fromkeys(apart_by(self.seen, self.week), 1.0)
        days = self.days_since(Window(0, 0, 0))
        for of in ("verdict", "reason", "outcome"):
            for _, whole, has in self.rates(of):
                known = [case for case in whole if of != "outcome" or days >= ALL_AGES or case.age < days]
                for week, cases in apart_by(known, self.week).items():
                    groups = self.by_minute((case, float(has(case))) for case in cases)
                    members = sum(len(group) * by for by, group in groups)
                    if members:
                        mean = sum(sum(group) * by for by, group in groups) / members
                        most[week] = max(most[week], design_effect(groups, mean))
        return any(len(cases) < self.min_sample * most[week] for week, cases in apart_by(self.seen, self.week).items())

    def by_minute(self, numbered: Iterable[tuple[Case, float]]) -> Groups:
        """Of each minute that is taken for how many it stands, and the numbers of its cases."""
        found: dict[int, tuple[int, list[float]]] = {}
        for case, number in numbered:
            if by := self.stands_for(case):
                found.setdefault(minute_of(case), (by, []))[1].append(number)
        return list(found.values())

    def find(self) -> list[Found]:
        outcomes = grouped(self.moved("outcome"))
        verdicts = grouped([*self.moved("verdict"), *self.moved("reason")])
        found = [
            *self.breaks(),
            *(self.outcome_shift(group) for group in outcomes),
            *(self.verdict_shift(group) for group in verdicts),
            *(self.drift(group) for group in grouped(self.drifted())),
            *self.metric_shifts(),
            *self.surges(),
            *self.outliers(),
        ]
        for of in found:
            of.value = of.value if of.is_costed else self.mean_times(of.cases, of.first, of.last)
        self.in_order(found)
        return found

    def in_order(self, found: list[Found]) -> None:
        # Sorted by the last key first, as sorting is stable.
        found.sort(key=lambda of: of.subject or "")
        found.sort(key=lambda of: of.first, reverse=True)
        found.sort(key=lambda of: (-of.score, KINDS.index(of.kind)))
        found.sort(key=lambda of: of.cases, reverse=True)
        found.sort(key=lambda of: (of.value is None, -abs(of.value or 0)))
        found.sort(key=lambda of: not of.lasting)
        found.sort(key=lambda of: of.harm is not True)
        found.sort(key=lambda of: ("high", "medium", "low").index(severity_of(of.score)))

    def mean_times(self, cases: int, first: str, last: str) -> float | None:
        """The mean of the metric in the weeks of its time, so many times as it has cases."""
        weeks = range((moment(first) - self.start) // WEEK, (moment(last) - self.start) // WEEK + 1)
        by_week: dict[int, list[float]] = {}
        for case in self.chosen:
            for name, value in (case.latest.get("observed_metrics") or {}).items():
                week = (moment(case.latest["reported_at"]) - self.start) // WEEK
                if name == self.valued and week in weeks and 0 <= week < self.weeks:
                    by_week.setdefault(week, []).append(float(value))
        number = sum(map(len, by_week.values()))
        if not number:
            return None
        return round(cases * math.fsum(float(sum(map(Fraction, of))) for of in by_week.values()) / number, 6)

    def is_measured(self) -> bool:
        """Whether some outcome that was reported in these weeks measured the named metric."""
        return any(
            self.valued in (case.latest.get("observed_metrics") or {})
            and 0 <= (moment(case.latest["reported_at"]) - self.start) // WEEK < self.weeks
            for case in self.chosen
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
                    has,
                    {"count": len(has), "of": len(could), "share": round(len(has) / len(could), 6)},
                    [(step, None)],
                    cases=len(has),
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
            "executed_though_refused": [case for case in self.chosen if case.answer == "refused"],
            "executed_though_expired": [case for case in self.chosen if case.answer == "expired"],
            "executed_before_grant": [case for case in self.chosen if case.answer == "granted"],
            "executed_after_grant_ended": [case for case in self.chosen if case.answer == "granted"],
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

    @staticmethod
    def unapproved(case: Case) -> str | None:
        """The break of a case that was carried out without a yes and without a grant that held; None for others."""
        later = [of for of in case.later if of["execution_status"] in ("executed", "queued")]
        before = len(case.said("executed", "queued")) > len(later)
        if case.yes or not (before or later):
            return None
        if case.answer == "granted":
            if before:
                return "executed_before_grant"
            return "executed_after_grant_ended" if case.is_late else None
        if case.answer is not None and later:
            return f"executed_though_{case.answer}"
        return "executed_without_yes"

    def is_broken(self, name: str, case: Case) -> bool:
        if name.startswith("executed_"):
            return self.unapproved(case) == name
        if name == "duplicate_execution":
            return len(case.said("executed")) - len(case.said("reverted")) > 1
        if name == "binding_mismatch":
            return any("ACTION_BINDING_MISMATCH" in receipt["flags"] for receipt in case.receipts)
        if name == "action_mismatch":
            return any(map(case.is_another_action, case.said("executed", "queued")))
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
            "executed_though_refused": 1.0,
            "executed_though_expired": 1.0,
            "executed_before_grant": 0.9,
            "executed_after_grant_ended": 0.9,
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

    def all_moved(self) -> list[Moved]:
        tests = of_outcomes = of_versions = 0
        found = []
        for of in ("verdict", "reason", "outcome"):
            for value, whole, has in self.rates(of):
                by_week: dict[int, list[tuple[Case, int, bool]]] = {}
                for case in whole:
                    age = case.age if of == "outcome" else 0
                    by_week.setdefault(self.week(case), []).append((case, age, has(case)))
                for window in windows(self.weeks):
                    days = self.days_since(window) if of == "outcome" else ALL_AGES
                    if days == 0:
                        continue
                    # Of a whole day or less than 57, all of them.
                    most = math.inf if days >= ALL_AGES else days
                    sides = [
                        [(case, held) for week in weeks for case, age, held in by_week.get(week, ()) if age < most]
                        for weeks in (window.before, window.within)
                    ]
                    (b, m), (a, n) = ((sum(held for _, held in side), len(side)) for side in sides)
                    if min(n, m) < self.min_sample:
                        continue
                    test = Moved(of, value, window, (b, m), (a, n), effect(a / n, b / m), 1.0)
                    tests += 1
                    of_outcomes += of == "outcome"
                    of_versions += self.is_since_a_version(test)
                    if apart_by_errors(a, n, b, m) >= 2 and abs(test.strength) >= 0.1 and self.is_judged(test, sides):
                        found.append(test)
        for test in found:
            if self.is_since_a_version(test):
                test.needed = 0.01 / of_versions
            else:
                test.needed = 0.0005 / (of_outcomes if test.of == "outcome" else tests - of_outcomes)
        most_p = kept([test.p for test in found], tests)
        shifts = without_echoes(test for test in found if test.p <= most_p)
        for shift in shifts:
            self.follow(shift)
        return shifts

    def follow(self, of: Moved) -> None:
        """How long a rate stays as it is in its window, and how many cases went otherwise."""
        (whole, has) = next((whole, has) for value, whole, has in self.rates(of.of) if value == of.value)
        by_week: dict[int, list[tuple[int, bool]]] = {}
        for case in whole:
            by_week.setdefault(self.week(case), []).append((case.age if of.of == "outcome" else 0, has(case)))

        def more(weeks: Sequence[int], *, half: bool) -> Fraction:
            days = self.days_since(Window(0, weeks[-1], 0)) if of.of == "outcome" else ALL_AGES
            most = math.inf if days >= ALL_AGES else days
            (a, n), (b, m), (c, k) = (
                counted(by_week, of_weeks, most) for of_weeks in (weeks, of.window.before, of.window.within)
            )
            if not (days and m and k):
                return Fraction(0)
            usual = Fraction(b, m)
            return a - ((usual + Fraction(c, k)) / 2 if half else usual) * n

        sign = 1 if of.strength > 0 else -1
        of.until = self.last_beyond(of.window, lambda week: sign * more((week,), half=True))
        after = [(week,) for week in range(of.window.last + 1, of.until + 1)]
        of.cases = round(abs(sum((more(weeks, half=False) for weeks in [of.window.within, *after]), Fraction(0))))

    def is_judged(self, test: Moved, sides: Sequence[Sequence[tuple[Case, bool]]]) -> bool:
        """Whether as many single decisions as say as much are enough, and may be a discovery."""
        (b, m), (a, n) = test.before, test.within
        groups = [self.by_minute((case, float(held)) for case, held in side) for side in sides]
        effects = [design_effect(side, (a + b) / (n + m)) for side in groups]
        b, m, a, n = (
            math.floor(count / by) for count, by in ((b, effects[0]), (m, effects[0]), (a, effects[1]), (n, effects[1]))
        )
        if any(map(are_few, groups)) or min(n, m) < self.min_sample or apart_by_errors(a, n, b, m) < 2:
            return False
        test.groups = (number_of_groups(groups[0]), number_of_groups(groups[1]))
        test.effects = (effects[0], effects[1])
        test.p, test.distance = fisher(a, n, b, m), apart_by_errors(a, n, b, m)
        test.least = max(0.0, abs(test.strength) - NORMAL * math.sqrt(1 / n + 1 / m))
        return True

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

    def moved(self, of: str) -> list[Moved]:
        if not hasattr(self, "_moved"):
            self._moved = self.all_moved()
        return [test for test in self._moved if test.of == of]

    def ends(self, window: Window) -> tuple[str, str]:
        last = self.start + (window.last + 1) * WEEK
        return stamp(self.start + window.first * WEEK), stamp(min(last, self.until))

    def whole(self, window: Window) -> tuple[str, str]:
        """Where its first week begins, and its last one ends."""
        return stamp(self.start + window.first * WEEK), stamp(self.start + (window.last + 1) * WEEK)

    def new_versions(self, window: Window) -> list[str]:
        within = [case for case in self.seen if window.first <= self.week(case) <= window.last]
        before = [case for case in self.seen if self.week(case) in window.before]

        def part(cases: Sequence[Case], version: str) -> Fraction:
            return Fraction(sum(version_of(case) == version for case in cases), len(cases))

        gained = {
            version: part(within, version) - part(before, version) for version in {version_of(of) for of in self.seen}
        }
        grown = {version: gain for version, gain in gained.items() if gain > 0}
        return sorted(grown) if 2 * sum(grown.values()) >= 1 else []

    def costed(self, of: Moved, cases: int, valued: bool = False) -> Json:
        """What a shift costs, to where it lasts.

        Args:
            of: The shift.
            cases: The cases that went otherwise.
            valued: Whether it is one of the named metric.
        """
        week = max(of.until, of.window.last)
        first, end = self.ends(of.window)[0], self.ends(Window(week, week, week))[1]
        costs = [self.came_to_more(of.window, week, valued), None if valued else self.mean_times(cases, first, end)]
        return {
            "cases": cases,
            "value": max((cost for cost in costs if cost is not None), key=abs, default=None),
            "is_costed": True,
            "until": end,
            "goes_on": self.start + (week + 1) * WEEK >= self.as_of,
        }

    def came_to_more(self, window: Window, until: int, valued: bool) -> float | None:
        """What the named metric came to since the window began, less what it would have by its mean before."""
        if self.valued is None:
            return None
        parts = []
        for weeks in [window.within, *((week,) for week in range(window.last + 1, until + 1))]:
            days = self.days_since(Window(0, weeks[-1], 0))
            now, then = self.known_values(weeks, days), self.known_values(window.before, days)
            if days and now and then:
                n, m = (len(now), len(then)) if valued else (self.made_in(weeks), self.made_in(window.before))
                parts.append(sum(now) - sum(then) / m * n)
        return round(float(sum(parts)), 6) if parts else None

    @cached_property
    def valued_by_week(self) -> dict[int, list[tuple[int, Fraction]]]:
        """Of each week of decisions the ages and values of the named metric."""
        found: dict[int, list[tuple[int, Fraction]]] = {}
        for case in self.seen:
            metrics = case.latest.get("observed_metrics") or {}
            if self.valued in metrics:
                found.setdefault(self.week(case), []).append((case.age, Fraction(float(metrics[self.valued]))))
        return found

    def known_values(self, weeks: Iterable[int], days: int) -> list[Fraction]:
        """The values of the named metric that were known so many days after their decision."""
        every = (of for week in weeks for of in self.valued_by_week.get(week, ()))
        return [value for age, value in every if days >= ALL_AGES or age < days]

    @cached_property
    def in_each_week(self) -> Counter[int]:
        return Counter(map(self.week, self.seen))

    def made_in(self, weeks: Iterable[int]) -> int:
        return sum(self.in_each_week[week] for week in weeks)

    def last_beyond(self, window: Window, excess: Callable[[int], Fraction]) -> int:
        """The week up to which what comes after a window lies farthest on its side of the middle in all."""
        sums = [(Fraction(0), window.last)]
        for week in range(window.last + 1, self.weeks):
            sums.append((sums[-1][0] + excess(week), week))
            best = max(sums, key=lambda of: of[0])
            if week + 1 - best[1] > 8:
                return best[1]
        return max(sums, key=lambda of: of[0])[1]

    def reference(self, window: Window) -> Json:
        first, last = window.before[0], window.before[-1]
        return {
            "reference_from": stamp(self.start + first * WEEK),
            "reference_to": stamp(self.start + (last + 1) * WEEK),
        }

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
            **self.reference(of.window),
            **age,
            "before": {"count": b, "of": m, "rate": round(b / m, 6)},
            "within": {"count": a, "of": n, "rate": round(a / n, 6)},
            "difference": {"rate": round(a / n - b / m, 6), "low": round(low, 6), "high": round(high, 6)},
            "cohens_h": round(of.strength, 6),
            "least_h": round(of.least, 6),
            "groups": {"before": of.groups[0], "within": of.groups[1]},
            "design_effect": {"before": of.effects[0], "within": of.effects[1]},
            "p_value": float(f"{of.p:.6g}"),
            "required_p": float(f"{of.needed:.6g}"),
        }

    def shifted(self, kind: str, group: Sequence[Moved], score: float, **more: Any) -> Found:
        leader = group[0]
        versions = self.new_versions(leader.window)
        first, last = self.ends(leader.window)
        reasons = [f"{of.of}_{'rose' if of.strength > 0 else 'fell'}:{of.value}" for of in group]
        called = {"verdict": "", "reason": "reason ", "outcome": "outcomes "}[leader.of]
        value = ENDED[leader.value] if leader.of == "outcome" else leader.value
        (a, n), (b, m) = leader.within, leader.before
        since = f" with version {', '.join(versions)}" if versions else ""
        since += ", compared with half a year earlier" if leader.window.slow else ""
        reasons += (["policy_version_changed"] if versions else []) + (["slow"] if leader.window.slow else [])
        return Found(
            kind,
            None,
            score,
            reasons,
            f"The share of {called}{value} {'rose' if leader.strength > 0 else 'fell'} from {b / m:.1%} to "
            f"{a / n:.1%}{since}.",
            first,
            last,
            numbers={
                "changes": [self.change(of) for of in group],
                **({"new_versions": versions} if versions else {}),
            },
            **self.costed(leader, max(of.cases for of in group)),
            **more,
        )

    def outcome_shift(self, group: Sequence[Moved]) -> Found:
        scores, harm, is_costly = [], False, False
        window = group[0].window
        for of in group:
            is_worse = (of.strength < 0) if of.value == "succeeded" else (of.strength > 0)
            by = of.score(HARM if is_worse else EFFECT)
            scores.append(by if is_worse else min(by, 0.59))
            harm = harm or is_worse
            is_great = abs(of.strength) >= 0.35 and of.least >= 0.2 and of.stands_alone
            is_costly = is_costly or (is_worse and is_great)
        rose = [of.value for of in group if of.strength > 0] or list(TERMINAL)
        days = self.days_since(window)
        shown = [
            case
            for case in self.seen
            if self.week(case) in window.within
            and case.let_through
            and case.terminal
            and (days >= ALL_AGES or case.age < days)
        ]
        steps: list[tuple[str, str | None]] = [
            ("Compare the versions, rules, and weeks of the decisions.", about(self.policy_id, "effectiveness")),
            (READ_THEM, search(self.policy_id, *self.whole(window), verdict="yes")),
        ]
        if self.new_versions(window):
            steps.append(("Replay them under the previous version: which of them would it not have let through?", None))
        named = latest_of([case for case in shown if case.latest["outcome_status"] in rose])
        found = self.shifted("outcome_shift", group, max(scores), shown=shown, named=named, steps=steps, harm=harm)
        if is_costly and (found.lasting or self.new_versions(window)):
            found.score = max(found.score, 0.8)
        return found

    def verdict_shift(self, group: Sequence[Moved]) -> Found:
        score = max(of.score(EFFECT) for of in group)
        window = group[0].window
        versions = self.new_versions(window)
        if versions:
            score = min(score, 0.79)
        rose = [of for of in group if of.strength > 0]
        verdicts = [of.value for of in rose if of.of == "verdict"]
        reasons = [of.value for of in rose if of.of == "reason"]
        steps: list[tuple[str, str | None]] = [
            (f"Read what version {version} changed, and check whether this effect was intended.", None)
            for version in versions
        ] or [(self.without_version(window), None)]
        chosen = {"verdict": verdicts[0]} if verdicts else {"reason_code": reasons[0]} if reasons else {}
        steps.append((READ_THEM, search(self.policy_id, *self.whole(window), **chosen)))

        def shows(case: Case) -> bool:
            if verdicts:
                return case.record["verdict"] in verdicts
            return not reasons or case.record["reason_code"] in reasons

        shown = [case for case in self.seen if self.week(case) in window.within]
        named = latest_of([case for case in shown if shows(case)])
        return self.shifted("verdict_shift", group, score, shown=shown, named=named, steps=steps)

    def without_version(self, window: Window) -> str:
        """What is said where no versions gained half."""
        ends = (window.before, window.within)
        sides = [[version_of(case) for case in self.seen if self.week(case) in weeks] for weeks in ends]

        def part(side: Sequence[str], version: str) -> Fraction:
            return Fraction(side.count(version), len(side))

        gains = [(part(sides[1], of) - part(sides[0], of), of) for of in sorted({*sides[0], *sides[1]})]
        gain, version = max(gains, key=lambda of: of[0])
        if gain <= 0:
            return "No version changed at the same time: check the facts that callers send, and fact_drift."
        before, within = (side.count(version) / len(side) for side in sides)
        return (
            f"No version gained half of the decisions. Version {version} gained most, from {before:.1%} to "
            f"{within:.1%} of them. Check what it changed, the facts that callers send, and fact_drift."
        )

    # Drift.

    def drifted(self) -> list[Moved]:
        found, tests = [], 0
        for name in self.fields:
            held = [
                (case, value_of(self.facts[case.record["decision_id"]], name))
                for case in self.seen
                if self.is_taken(case) and self.facts.get(case.record["decision_id"]) is not None
            ]
            names, bin_of = bins_of([value for _, value in held])
            used = sorted({bin_of(value) for _, value in held})
            if len(used) < 2:
                continue
            self.looked_at.append(name)
            by_week: dict[int, list[tuple[Case, int]]] = {}
            for case, value in held:
                by_week.setdefault(self.week(case), []).append((case, used.index(bin_of(value))))
            for window in windows(self.weeks):
                sides = [
                    [of for week in weeks for of in by_week.get(week, ())] for weeks in (window.before, window.within)
                ]
                before, within = ([sum(at == place for _, at in side) for place in range(len(used))] for side in sides)
                if min(sum(within), sum(before)) < self.min_sample:
                    continue
                tests += 1
                if stability(before, within) < 0.05:
                    continue
                of = Moved("fact", name, window, before, within, 0.0, 1.0, [names[at] for at in used])
                if self.is_drift(of, sides):
                    of.until = self.drifts_to(of, by_week)
                    found.append(of)
        for of in found:
            of.needed = 0.001 / tests
        most = kept([of.p for of in found], tests) if tests else -1
        return without_echoes(of for of in found if of.p <= most)

    def drifts_to(self, of: Moved, by_week: Mapping[int, Sequence[tuple[Case, int]]]) -> int:
        """The week up to which the bins are more as in the window than as before."""
        p, q = ([Fraction(count, sum(counts)) for count in counts] for counts in (of.before, of.within))

        def excess(week: int) -> Fraction:
            bins = [at for _, at in by_week.get(week, ())]
            return sum(
                ((q[at] - p[at]) * (bins.count(at) - len(bins) * (p[at] + q[at]) / 2) for at in range(len(p))),
                Fraction(0),
            )

        return self.last_beyond(of.window, excess)

    def is_drift(self, of: Moved, sides: Sequence[Sequence[tuple[Case, int]]]) -> bool:
        """Whether a fact drifted, each side counted for as many decisions as it says."""
        whole = sum(of.before) + sum(of.within)
        shares = [(a + b) / whole for a, b in zip(of.before, of.within, strict=True)]
        effects = []
        for side in sides:
            if are_few(minutes_of((case, 1.0) for case, _ in side)):
                return False
            effects.append(mean_design_effect(side, shares))
        if any(len(side) / by < self.min_sample for side, by in zip(sides, effects, strict=True)):
            return False
        alone = [
            [math.floor(count / by) for count in counts]
            for counts, by in zip((of.before, of.within), effects, strict=True)
        ]
        n, m = map(sum, alone)
        of.strength = stability(*alone)
        of.least = max(0.0, of.strength - ONE_SIDED * math.sqrt(2 * (len(shares) - 1)) * (1 / n + 1 / m))
        of.distance, of.p = histograms_differ(*alone)
        of.effects = (max(effects), 1.0)
        return of.strength >= 0.05

    def drift(self, group: Sequence[Moved]) -> Found:
        first, last = self.ends(group[0].window)
        when = "half a year earlier" if group[0].window.slow else "of the weeks before"
        named = ", ".join(of.value for of in group[:3]) + (f" and {len(group) - 3} more" if len(group) > 3 else "")
        facts = [
            {
                "fact": of.value,
                "from": self.ends(of.window)[0],
                "to": self.ends(of.window)[1],
                **self.reference(of.window),
                "stability_index": round(of.strength, 6),
                "least_index": round(of.least, 6),
                "design_effect": of.effects[0],
                "required_p": float(f"{of.needed:.6g}"),
                "p_value": float(f"{of.p:.6g}"),
                "bins": [
                    {"holds": holds, "before": before, "within": within}
                    for holds, before, within in zip(of.bins, of.before, of.within, strict=True)
                    if before + within
                ],
            }
            for of in group
        ]
        return Found(
            "fact_drift",
            None,
            max(of.score(INDEX) for of in group),
            [f"fact_drifted:{of.value}" for of in group] + (["slow"] if group[0].window.slow else []),
            f"The facts of decisions differ from those {when}: {named}.",
            first,
            last,
            [case for case in self.seen if self.week(case) in group[0].window.within],
            {"facts": facts},
            [
                (
                    "See which values became more frequent: does a caller send something else, or are there other "
                    "customers?",
                    None,
                ),
                (READ_THEM, search(self.policy_id, *self.whole(group[0].window))),
            ],
            **self.costed(group[0], self.moved_bins(group[0])),
        )

    def moved_bins(self, of: Moved) -> int:
        """How many decisions of the window are in another bin than before: half of how far the shares differ."""
        n, m = sum(of.before), sum(of.within)
        differ = math.fsum(abs(a / n - b / m) for a, b in zip(of.before, of.within, strict=True)) / 2
        return round(differ * self.made_in(range(of.window.first, of.until + 1)))

    # Volume.

    def surges(self) -> Iterator[Found]:
        for name, length, like in (("hour", timedelta(hours=1), 168), ("day", DAY, 7), ("week", WEEK, 1)):
            first = min(case.made for case in self.seen)
            start = monday(first) if length == WEEK else self.start + (first - self.start) // length * length
            end = min(self.as_of, self.start + self.weeks * WEEK)
            cells: list[list[Case]] = [[] for _ in range(max(0, (end - start) // length))]
            for case in self.seen:
                at = (case.made - start) // length
                if at < len(cells):
                    cells[at].append(case)
            if cells and lower(map(len, cells)) >= 5:
                yield from self.surges_of(name, length, like, start, cells)
                return

    @staticmethod
    def arrivals(cell: Sequence[Case]) -> int:
        """As how many that came alone those of a cell count: of a minute no more than chance puts into it."""
        found = 0
        for of_hour in apart_by(cell, lambda case: minute_of(case) // 60).values():
            for size in Counter(map(minute_of, of_hour)).values():
                mean = Fraction(len(of_hour) - size, 59)
                # The greatest whole number of which the part above the mean is three deviations at most.
                most = math.floor(mean)
                while (most + 1 - mean) ** 2 <= 9 * mean:
                    most += 1
                found += min(size, 1 + most)
        return found

    def surges_of(
        self, name: str, length: timedelta, like: int, start: Moment, cells: Sequence[Sequence[Case]]
    ) -> Iterator[Found]:
        came = [self.arrivals(cell) for cell in cells]
        usual, usual_came = {}, {}
        for at in range(len(cells)):
            same_kind = range(at - like, -1, -like)[:8]
            if len(same_kind) >= 4:
                usual[at] = lower(len(cells[before]) for before in same_kind)
                usual_came[at] = lower(came[before] for before in same_kind)
        far = {at: 2 * math.sqrt(came[at] + 3 / 8) - 2 * math.sqrt(of + 3 / 8) for at, of in usual_came.items()}
        if not far:
            return
        spread = max(ROBUST, lower(map(abs, far.values())))
        least = needed(len(far))
        run: list[int] = []
        for at in range(len(cells) + 1):
            out = at in far and ROBUST * abs(far[at]) / spread > least
            if run and not (out and (far[at] > 0) == (far[run[-1]] > 0)):
                sums = [sum(of[each] for each in run) for of in (usual, came, usual_came)]
                likes = {before for each in run for before in [*range(each - like, -1, -like)][:8]} - {*run}
                held = [sum(came[each] for each in likes), len(likes) * sums[2] // len(run)]
                shown = [case for each in run for case in cells[each]]
                distance = max(abs(far[of]) for of in run) / spread
                yield self.surge(name, length, start, run, shown, sums, (len(likes), held), distance, least, len(far))
                run = []
            if out:
                run.append(at)

    def surge(
        self,
        name: str,
        length: timedelta,
        start: Moment,
        run: Sequence[int],
        shown: Sequence[Case],
        sums: Sequence[int],
        likes: tuple[int, Sequence[int]],
        distance: float,
        least: float,
        compared: int,
    ) -> Found:
        expected, came, usual_came = sums
        times = max(came, usual_came) / max(0.5, min(came, usual_came))
        made = [self.week(case) for case in self.seen]
        week: int = lower(made.count(each) for each in set(made))
        score = min(score_of(times, TIMES), score_of(abs(came - usual_came) / week, SURPLUS))
        first, last = start + run[0] * length, start + (run[-1] + 1) * length
        is_more = came > usual_came
        held = max(likes[1]) if is_more else min(likes[1])
        p = divided(came, held, len(run), likes[0])
        score = score if p <= 0.001 / compared else min(score, 0.79)
        cells = f"{len(run):,} {name}{'s' if len(run) > 1 else ''}"
        return Found(
            "volume",
            name,
            score,
            ["more_decisions_than_usual" if is_more else "fewer_decisions_than_usual"],
            f"{len(shown):,} decision{'' if len(shown) == 1 else 's'} in {cells}, where {expected:,} "
            f"{'is' if expected == 1 else 'are'} usual.",
            stamp(first),
            stamp(last),
            shown,
            {
                "grain": name,
                "cells": len(run),
                "decisions": len(shown),
                "usual": expected,
                "arrivals": came,
                "usual_arrivals": usual_came,
                "like_cells": likes[0],
                "like_arrivals": held,
                "usual_week": week,
                "times": round(times, 6),
                "modified_z": round(ROBUST * distance, 6),
                "required_z": round(least, 6),
                "p_value": float(f"{p:.6g}"),
                "required_p": float(f"{0.001 / compared:.6g}"),
            },
            [
                ("See who asked, and for what: the actor, subject, and target of the decisions.", None),
                (READ_THEM, search(self.policy_id, stamp(first), stamp(last))),
            ],
            cases=abs(len(shown) - expected),
        )

    # Outliers.

    @cached_property
    def by_metric(self) -> dict[str, list[tuple[Case, float]]]:
        """The values of the metrics that are looked at."""
        found: dict[str, list[tuple[Case, float]]] = {}
        for case in self.chosen:
            for name, value in (case.latest.get("observed_metrics") or {}).items():
                found.setdefault(name, []).append((case, float(value)))
        names = [name for name in most_first(found) if len(found[name]) >= self.min_sample][:MOST_METRICS]
        return {name: found[name] for name in sorted(names)}

    def by_ratio(self, name: str) -> bool:
        values = [value for case, value in self.by_metric[name] if self.is_taken(case)]
        above_zero = [value for value in values if value > 0]
        least = min(value for _, value in self.by_metric[name])
        return bool(above_zero) and least >= 0 and is_even_by_logarithms(above_zero if least == 0 else values)

    def outliers(self) -> Iterator[Found]:
        self.metrics = len(self.by_metric)
        for name in self.by_metric:
            yield from self.outliers_of(name, self.by_metric[name])

    def eras(self, name: str) -> list[range]:
        """The weeks of each level that a metric had."""
        shifts = [
            of.window
            for of in self.levels
            if of.value == (name, "location") and of.version is None and not of.window.slow
            if of.stands_alone and of.least >= 0.33
        ]
        aside = {at for of in shifts for at in (of.first - 1, of.first, of.last, of.last + 1)}
        found: list[range] = []
        for at in range(self.weeks):
            if at in aside:
                continue
            if found and found[-1].stop == at:
                found[-1] = range(found[-1].start, at + 1)
            else:
                found.append(range(at, at + 1))
        return found if shifts else []

    def outliers_of(self, name: str, all_values: Sequence[tuple[Case, float]]) -> Iterator[Found]:
        eras = self.eras(name)
        parts = [[of for of in all_values if self.week(of[0]) in era] for era in eras] if eras else [all_values]
        least = min(value for _, value in all_values)
        found = [self.far_of(part, least, len(all_values), thin=bool(eras)) for part in parts]
        known = [of for of in found if of is not None]
        if not known:
            return
        far = [of for _, part in known for of in part]
        if len(known) > 1:
            far.sort(key=lambda of: (-of[2], of[0].position))
        usual = known[-1][0]
        least_z = needed(len(all_values))
        when = sorted(case.latest["reported_at"] for case, *_ in far)
        strength = score_of(far[0][2] / least_z, FAR)
        yield Found(
            "metric_outlier",
            name,
            strength if wilson(len(far), len(all_values))[0] >= 0.1 else min(0.79, strength),
            ["metric_far_from_usual"],
            f"Unusual values of the metric {name}: {len(far):,} of {len(all_values):,}.",
            when[0],
            when[-1],
            [case for case, *_ in far],
            {
                "metric": name,
                "values": len(all_values),
                **usual,
                "seasonal_p": 0.001,
                "required_z": round(least_z, 6),
                "farthest": [
                    {"value": value, "usual": middle, "modified_z": round(z, 6)}
                    for _, value, z, middle in self.farthest(far)
                ],
            },
            [("Check the number at its source: is it a wrong unit, a wrong sign, or a special case?", None)],
            cases=len(far),
            named=[str(case.record["decision_id"]) for case, *_ in self.farthest(far)],
        )

    @staticmethod
    def farthest(far: Sequence[tuple[Case, float, float, float]]) -> Sequence[tuple[Case, float, float, float]]:
        return far[:10]

    def far_of(
        self, all_values: Sequence[tuple[Case, float]], least: float, number: int, *, thin: bool
    ) -> tuple[Json, list[tuple[Case, float, float, float]]] | None:
        """What is usual among some values, and those that lie far out: the value, how far, and what is usual for it."""
        taken = self.is_taken_thinly if thin else self.is_taken
        values = [(case, value) for case, value in all_values if taken(case)]
        above_zero = [(case, value) for case, value in values if value > 0]
        if len(above_zero if least == 0 else values) < self.min_sample:
            return None
        ratios = least >= 0 and is_even_by_logarithms([value for _, value in above_zero])
        if ratios:
            values = above_zero
        once = self.once(values)
        median: float = lower(value for _, value in once)
        season, kind_of = self.season(once, median)
        by_kind = apart_by(once, lambda of: kind_of(of[0]))
        usual: dict[tuple[int, ...], float] = {kind: lower(value for _, value in of) for kind, of in by_kind.items()}

        def distance(case: Case, value: float) -> float:
            middle = usual.get(kind_of(case), median)
            if not ratios:
                return min(GREATEST, abs(value - middle))
            return math.log(min(GREATEST, max(value / middle, middle / value)))

        spread: float = lower(of for _, of in self.once([(case, distance(case, value)) for case, value in values]))
        if spread <= 0:
            return None
        least_z = needed(number)

        def out(case: Case, value: float) -> float:
            return min(GREATEST, ROBUST * distance(case, value) / spread)

        # z orders, but where it is too great for a number.
        far = [of for of in all_values if (of[1] > 0 or not ratios) and out(*of) > least_z]
        far.sort(key=lambda of: (-distance(*of), of[0].position))
        if not far:
            return None
        told = {
            "median": median,
            "mad": float(f"{spread:.6g}"),
            "scale": "ratio" if ratios else "difference",
            "season": season,
        }
        return told, [(case, value, out(case, value), usual.get(kind_of(case), median)) for case, value in far]

    @staticmethod
    def once(values: Sequence[tuple[Case, float]]) -> list[tuple[Case, float]]:
        """Of each minute of decision, as far as it was reported in one hour of the week, the lower median."""

        def group(of: tuple[Case, float]) -> tuple[int, int, int]:
            at = moment(of[0].latest["reported_at"])
            return minute_of(of[0]), at.weekday(), at.hour

        return [(of[0][0], lower(value for _, value in of)) for of in apart_by(values, group).values()]

    def is_taken_thinly(self, case: Case) -> bool:
        return scattered(case.position) % self.thin == 0

    # Metrics that shifted.

    @cached_property
    def levels(self) -> list[Moved]:
        """Where the values of metrics lie otherwise than they did, or farther or less far apart."""
        tests, found = 0, []
        for name, all_values in self.by_metric.items():
            values = [of for of in all_values if self.is_taken_thinly(of[0]) and self.is_seen(of[0])]
            if not values:
                continue
            level = Level(values, ratios=self.by_ratio(name))
            dated = [(self.week(of[0]), of[0].age, of) for of in values]
            for window in windows(self.weeks):
                days = self.days_since(window)
                if days == 0:
                    continue
                most = math.inf if days >= ALL_AGES else days
                sides = [
                    [of for week, age, of in dated if week in weeks and age < most]
                    for weeks in (window.before, window.within)
                ]
                if min(map(len, sides)) < self.min_sample:
                    continue
                tests += 4
                groups = [[of for week, _, of in dated if week in weeks] for weeks in (window.before, window.within)]
                found += self.level_moved(name, level, window, sides, groups)
            for version in sorted({version_of(case) for case, _ in values}):
                compared = self.version_moved(name, level, version)
                tests += compared is not None
                found += compared or []
        for of in found:
            of.needed = 0.001 / tests
        most_p = kept([of.p for of in found], tests) if tests else -1
        real = [of for of in found if of.p <= most_p]
        kept_weeks = without_echoes(of for of in real if of.version is None and of.value[1] == "location")
        steps = [of.window for of in kept_weeks if of.stands_alone and not of.window.slow]
        kept_weeks += without_echoes(
            of
            for of in real
            if of.version is None
            and of.value[1] == "spread"
            and not any(
                (of.window.echoes(step) or step.echoes(of.window)) and of.window.first != step.first for step in steps
            )
        )
        for of in without_echoes(of for of in real if of.value[1].startswith("tail")):
            beside = [
                other
                for other in kept_weeks
                if other.value[0] == of.value[0] and not other.value[1].startswith("tail")
                if other.window.echoes(of.window) or of.window.echoes(other.window)
            ]
            if not any(other.least >= 0.33 or other.score(DELTA) >= of.score(EFFECT) for other in beside):
                kept_weeks.append(of)
        versions = sorted((of for of in real if of.version is not None), key=lambda of: str(of.version), reverse=True)
        versions.sort(
            key=lambda of: (
                *(not of.stands_alone, of.p, -round(of.distance, 6), -round(abs(of.strength), 6)),
                *(of.window.last - of.window.first, of.window.first, of.value),
            )
        )
        for of in versions:
            beside = [
                other for other in kept_weeks if other.value == of.value and other.window.first in of.window.within
            ]
            if all(other.version is None and abs(other.strength) < abs(of.strength) for other in beside):
                kept_weeks = [other for other in kept_weeks if other not in beside] + [of]
        return kept_weeks

    def level_moved(
        self,
        name: str,
        level: Level,
        window: Window,
        sides: Sequence[Sequence[tuple[Case, float]]],
        groups: Sequence[Sequence[tuple[Case, float]]],
    ) -> list[Moved]:
        before, within = ([level.bin(value) for _, value in side] for side in sides)
        delta, z, _ = ranked(within, before)
        rough = [[level.middle[at] for at in side] for side in (before, within)]
        far, wide = abs(z) >= 2 and abs(delta) >= 0.0735, level.is_wider(*rough)
        ranks = [minutes_of((case, level.rank(value)) for case, value in side) for side in groups]
        ends = [] if any(map(are_few, ranks)) else list(self.tails(name, window, level, sides))
        if not (far or wide or ends) or any(map(are_few, ranks)):
            return []
        found = []
        if far:
            effects = effects_of(ranks)
            found.append(("location", effects, ranked(within, before, effects[1], effects[0])))
        if wide:
            both = lower([*rough[0], *rough[1]])
            tests = [
                self.apart(level, rough, groups, medians) for medians in ([lower(of) for of in rough], [both, both])
            ]
            if tests[0][1][0] * tests[1][1][0] > 0:
                found.append(("spread", *min(tests, key=lambda of: abs(of[1][1]))))
        effects = effects_of(ranks)
        if min(len(before) / effects[0], len(within) / effects[1]) < self.min_sample:
            ends = []
        for of in ends:
            (b, m), (a, n) = (
                [math.floor(count / by) for count in counts]
                for counts, by in zip((of.before, of.within), effects, strict=True)
            )
            of.p, of.distance = fisher(a, n, b, m), apart_by_errors(a, n, b, m)
            of.least = max(0.0, abs(of.strength) - NORMAL * math.sqrt(1 / n + 1 / m))
            of.groups, of.effects = (number_of_groups(ranks[0]), number_of_groups(ranks[1])), (effects[0], effects[1])
            of.delta = ranked(within, before, effects[1], effects[0])[::2]
        return ends + [
            Moved(
                "metric", (name, what), window, None, None, delta, normal_p(z), (), 0.0, abs(z), least,
                (number_of_groups(ranks[0]), number_of_groups(ranks[1])), (effects[0], effects[1]), None, sides,
            )
            for what, effects, (delta, z, least) in found
            if abs(z) >= 2 and abs(delta) >= 0.0735
            if min(len(before) / effects[0], len(within) / effects[1]) >= self.min_sample
        ]  # fmt: skip

    @staticmethod
    def apart(
        level: Level,
        rough: Sequence[Sequence[float]],
        groups: Sequence[Sequence[tuple[Case, float]]],
        medians: Sequence[float],
    ) -> tuple[list[float], tuple[float, float, float]]:
        """How values of two sides lie from a median each, with the design effects of the ranks of these distances."""
        then, now = ([level.distance(of, median) for of in side] for side, median in zip(rough, medians, strict=True))
        every = sorted([*then, *now])

        def rank(value: float, median: float) -> int:
            distance = level.distance(level.middle[level.bin(value)], median)
            return (bisect_left(every, distance) + bisect_right(every, distance)) * 1000 // (2 * len(every))

        effects = effects_of(
            [
                minutes_of((case, rank(value, median)) for case, value in side)
                for side, median in zip(groups, medians, strict=True)
            ]
        )
        return effects, ranked(now, then, effects[1], effects[0])

    @staticmethod
    def tails(
        name: str, window: Window, level: Level, sides: Sequence[Sequence[tuple[Case, float]]]
    ) -> Iterator[Moved]:
        """What lies above and below the commonest bin where it has half of all, else a twentieth at each end."""
        before, within = ([level.bin(value) for _, value in side] for side in sides)
        both = sorted([*before, *within])
        common, times = Counter(both).most_common(1)[0]
        if 2 * times >= len(both):
            above, below = common + 1, common - 1
        else:
            # The outermost bins: to that of the value with which they have a twentieth.
            place = -(-len(both) // 20) - 1
            above, below = both[-1 - place], both[place]
        for what, has in (("tail_above", lambda at: at >= above), ("tail_below", lambda at: at <= below)):
            (b, m), (a, n) = ((sum(map(has, side)), len(side)) for side in (before, within))
            strength = effect(a / n, b / m)
            if apart_by_errors(a, n, b, m) >= 2 and abs(strength) >= 0.1:
                of = Moved("metric", (name, what), window, (b, m), (a, n), strength, 1.0, sides=sides)
                inside = above - 1 if what == "tail_above" else below
                of.cut = max(value for _, value in level.values if level.bin(value) <= inside)
                of.has = has
                yield of

    def version_moved(self, name: str, level: Level, version: str) -> list[Moved] | None:
        """How a version differs from others in the same weeks; None where it is not tested."""
        strata = {}
        for week in range(self.weeks):
            both = [of for of in level.values if self.week(of[0]) == week]
            own = [of for of in both if version_of(of[0]) == version]
            if 0 < len(own) < len(both):
                strata[week] = (own, [of for of in both if version_of(of[0]) != version])
        sides = [[of for pair in strata.values() for of in pair[side]] for side in (1, 0)]
        if len(strata) < 4 or min(map(len, sides)) < self.min_sample:
            return None
        window = Window(min(strata), max(strata), min(strata))
        ranks = minutes_of(
            (case, level.rank(value)) for case, value in level.values if self.week(case) in window.within
        )
        (by,) = effects_of([ranks])
        if are_few(ranks) or min(map(len, sides)) / by < self.min_sample:
            return None
        weights, deltas, null, real = [], [], [], []
        for own, others in strata.values():
            n, m = len(own), len(others)
            delta = ranked_delta([level.bin(of) for _, of in own], [level.bin(of) for _, of in others])
            weights.append(n * m / (n + m + 1))
            deltas.append(delta)
            null.append(variances([level.bin(of) for _, of in own], [level.bin(of) for _, of in others])[0])
            real.append(variances([level.bin(of) for _, of in own], [level.bin(of) for _, of in others])[1])
        whole = math.fsum(weights)
        delta = math.fsum(w * d for w, d in zip(weights, deltas, strict=True)) / whole
        error, spread = (
            math.sqrt(by * math.fsum(w * w * v for w, v in zip(weights, of, strict=True))) / whole
            for of in (null, real)
        )
        z = delta / error if error else 0.0
        if abs(z) < 2 or abs(delta) < 0.0735:
            return []
        return [
            Moved(
                "metric", (name, "location"), window, None, None, delta, normal_p(z), (), 0.0, abs(z),
                max(0.0, abs(delta) - NORMAL * spread), (len(ranks), len(ranks)), (by, by), version, sides,
            )
        ]  # fmt: skip

    def metric_shifts(self) -> Iterator[Found]:
        for group in grouped(self.levels):
            yield self.metric_shift(group)

    def metric_shift(self, group: Sequence[Moved]) -> Found:
        top = group[0]
        name, window, version = top.value[0], top.window, top.version
        first, last = self.ends(window)
        versions = [] if version is not None else self.new_versions(window)
        top.mixed = self.mixed(window, version)
        days = ALL_AGES if version is not None else self.days_since(window)
        told = {
            ("location", True): "rose",
            ("location", False): "fell",
            ("spread", True): "spread_grew",
            ("spread", False): "spread_shrank",
            ("tail_above", True): "upper_tail_grew",
            ("tail_above", False): "upper_tail_shrank",
            ("tail_below", True): "lower_tail_grew",
            ("tail_below", False): "lower_tail_shrank",
        }
        reasons = [f"metric_{told[of.value[1], of.strength > 0]}:{name}" for of in group]
        reasons += ["policy_version_changed"] if versions else []
        reasons += [f"version_differs:{version}"] if version is not None else []
        reasons += [f"cases_differ:{fact}" for fact in top.mixed]
        reasons += ["slow"] if window.slow else []
        shown = [
            case
            for case, _ in self.by_metric[name]
            if self.is_seen(case)
            and self.week(case) in window.within
            and (days >= ALL_AGES or case.age < days)
            and version in (None, version_of(case))
        ]
        numbers = {"metric": name, "levels": [self.level_told(of) for of in group]}
        chosen = {} if version is None else {"policy_version": version}
        cost: Json = {"is_costed": True, "until": last, "goes_on": self.start + (window.last + 1) * WEEK >= self.as_of}
        cost["cases"] = len(shown)
        if version is None:
            until = window.last if top.value[1] == "spread" else self.level_lasts_to(top)
            top.until = until
            later = [case for case, _ in self.by_metric[name] if window.last < self.seen_in(case) <= until]
            cost = self.costed(top, len(shown) + len(later), name == self.valued)
        elif name == self.valued:
            means = [sum((Fraction(of) for _, of in side), Fraction(0)) / len(side) for side in top.sides]
            cost["value"] = round((float(means[1]) - float(means[0])) * len(shown), 6)
        return Found(
            "metric_shift",
            name,
            max(min(of.score(EFFECT if of.has else DELTA), 0.79 if top.mixed else 1) for of in group),
            reasons,
            f"{self.level_called(top, versions)}"
            f"{'; its cases differ in ' + ', '.join(top.mixed[:3]) if top.mixed else ''}"
            f"{', compared with half a year earlier' if window.slow else ''}.",
            first,
            last,
            shown,
            {**numbers, **({"new_versions": versions} if versions else {})},
            [
                *([(f"Compare like cases: version {version} decided different ones.", None)] if top.mixed else []),
                ("Find what is measured now and was not before: another source, another unit, or other cases?", None),
                ("Compare the medians of the metric by version and week.", about(self.policy_id, "effectiveness")),
                (READ_THEM, search(self.policy_id, *self.whole(window), **chosen)),
            ],
            **cost,
        )

    def mixed(self, window: Window, version: str | None) -> list[str]:
        """The facts in which the cases of a version differ from others' in the same weeks."""
        found = []
        for name in self.fields if version is not None else ():
            held = [
                (version_of(case) == version, value_of(self.facts[case.record["decision_id"]], name))
                for case in self.seen
                if self.week(case) in window.within and self.is_taken(case)
                if self.facts.get(case.record["decision_id"]) is not None
            ]
            _, bin_of = bins_of([value for _, value in held])
            used = sorted({bin_of(value) for _, value in held})
            own, others = (Counter(bin_of(value) for mine, value in held if mine is side) for side in (True, False))
            sides = [others[at] for at in used], [own[at] for at in used]
            differ = len(used) > 1 and all(map(sum, sides)) and stability(*sides) >= 0.1
            if differ and histograms_differ(*sides)[1] <= 0.001 / len(self.fields):
                found.append(name)
        return found

    def seen_in(self, case: Case) -> int:
        """Its week; one before all where it stands in none."""
        return self.week(case) if self.is_seen(case) else -1

    def level_lasts_to(self, of: Moved) -> int:
        """The week up to which values lie more than half as far from those before as in the window."""
        name = of.value[0]
        values = [at for at in self.by_metric[name] if self.is_taken_thinly(at[0]) and self.is_seen(at[0])]
        level = Level(values, ratios=False)
        by_week = apart_by(values, lambda at: self.week(at[0]))

        def excess(week: int) -> Fraction:
            days = self.days_since(Window(0, week, 0))
            then, window, now = (
                [
                    int(of.has(level.bin(value))) if of.has else level.bin(value)
                    for at in weeks
                    for case, value in by_week.get(at, ())
                    if days >= ALL_AGES or case.age < days
                ]
                for weeks in (of.window.before, of.window.within, (week,))
            )
            if not (days and then and window):
                return Fraction(0)
            half = Fraction(surplus(window, then), 2 * len(window) * len(then)) * len(now)
            return (1 if of.strength > 0 else -1) * (Fraction(surplus(now, then), len(then)) - half)

        return self.last_beyond(of.window, excess)

    def level_told(self, of: Moved) -> Json:
        first, last = self.ends(of.window)
        days = ALL_AGES if of.version is not None else self.days_since(of.window)
        usual = lower(value for _, value in of.sides[0])
        sides = [
            {
                "values": len(side),
                "lower_quartile": lower([value for _, value in side], 1, 4),
                "median": lower(value for _, value in side),
                "upper_quartile": lower([value for _, value in side], 3, 4),
                "above": len([value for _, value in side if value > usual]),
                "below": len([value for _, value in side if value < usual]),
            }
            for side in of.sides
        ]
        apart = {"reference_from": first, "reference_to": last}
        return {
            "of": of.value[1],
            "version": of.version,
            "from": first,
            "to": last,
            **(self.reference(of.window) if of.version is None else apart),
            "age_days": None if days >= ALL_AGES else days,
            "before": sides[0],
            "within": sides[1],
            **self.differs(of, sides),
            "cliffs_delta": round(of.delta[0] if of.has else of.strength, 6),
            "least_delta": round(of.delta[1] if of.has else of.least, 6),
            **({"tail": self.tail_told(of)} if of.has else {}),
            "groups": {"before": of.groups[0], "within": of.groups[1]},
            "design_effect": {"before": of.effects[0], "within": of.effects[1]},
            "p_value": float(f"{of.p:.6g}"),
            "required_p": float(f"{of.needed:.6g}"),
        }

    @staticmethod
    def tail_told(of: Moved) -> Json:
        (b, m), (a, n) = of.before, of.within
        return {
            "cut": of.cut,
            "before": {"count": b, "of": m, "rate": round(b / m, 6)},
            "within": {"count": a, "of": n, "rate": round(a / n, 6)},
            "cohens_h": round(of.strength, 6),
            "least_h": round(of.least, 6),
        }

    def differs(self, of: Moved, sides: Sequence[Json]) -> Json:
        """By how much the medians differ, or the widths of the middle half."""
        name, what = of.value
        if what != "spread":
            return {"difference": float(f"{cap(sides[1]['median'] - sides[0]['median']):.6g}")}
        widths = []
        for side in sides:
            low, high = side["lower_quartile"], side["upper_quartile"]
            if self.by_ratio(name):
                widths.append(math.log(min(GREATEST, high / low)) if low > 0 else math.log(GREATEST))
            else:
                widths.append(cap(high - low))
        scale = "ratio" if self.by_ratio(name) else "difference"
        return {"scale": scale, "difference": float(f"{cap(widths[1] - widths[0]):.6g}")}

    def level_called(self, of: Moved, versions: Sequence[str]) -> str:
        told = self.level_told(of)
        name, then, now = of.value[0], told["before"], told["within"]
        since = f" with version {', '.join(versions)}" if versions else ""
        rose = of.strength > 0
        what, was, is_ = self.most_different(rose, then, now)
        more = "above" if rose else "below"
        if of.version is not None:
            beside = f"its {what} is {is_:,.6g}, theirs {was:,.6g}"
            if what in ("above", "below"):
                beside = f"{is_:.1%} of its values lie {what} {then['median']:,.6g}, {was:.1%} of theirs"
            if what == "order":
                beside = f"more of its values lie {more} theirs than the reverse"
            return (
                f"The metric {name} is {'higher' if rose else 'lower'} with version {of.version} than with others "
                f"in the same weeks: {beside}"
            )
        if of.has:
            where = "above" if of.value[1] == "tail_above" else "of at most"
            return (
                f"The share of values of the metric {name} {where} {of.cut:,.6g} {'rose' if rose else 'fell'} from "
                f"{of.before[0] / of.before[1]:.1%} to {of.within[0] / of.within[1]:.1%}{since}"
            )
        if of.value[1] == "spread":
            ratios = ", measured by ratios" if told["scale"] == "ratio" else ""
            times = [
                f" ({side['upper_quartile'] / side['lower_quartile']:,.4g} times)"
                if ratios and side["lower_quartile"] > 0
                else ""
                for side in (then, now)
            ]
            return (
                f"Values of the metric {name} lie {'farther apart' if rose else 'closer together'} than before{since}"
                f"{ratios}: the middle half of the values lay between {then['lower_quartile']:,.6g} and "
                f"{then['upper_quartile']:,.6g} before{times[0]}, and lies between {now['lower_quartile']:,.6g} and "
                f"{now['upper_quartile']:,.6g} in the window{times[1]}"
            )
        moved = f"The metric {name} {'rose' if rose else 'fell'}"
        if what == "median":
            return f"{moved} from a median of {was:,.6g} to {is_:,.6g}{since}"
        stayed = f"its median stayed at {now['median']:,.6g}"
        if then["median"] != now["median"]:
            stayed = f"its median went from {then['median']:,.6g} to {now['median']:,.6g}"
        if what in ("above", "below"):
            how = f"the share of values {what} {then['median']:,.6g} went from {was:.1%} to {is_:.1%}"
        elif what == "order":
            how = f"more of its values lie {more} the earlier ones than the reverse"
        else:
            how = f"its {what} went from {was:,.6g} to {is_:,.6g}"
        return f"{moved}{since}: {how}, {stayed}"

    @staticmethod
    def most_different(rose: bool, then: Json, now: Json) -> tuple[str, float, float]:
        """The median where it moved as the values did; else the outer quartile, the other one, or a share."""
        sign = 1 if rose else -1
        outer, inner = ("upper_quartile", "lower_quartile") if rose else ("lower_quartile", "upper_quartile")
        for place in ("median", outer, inner):
            if sign * now[place] > sign * then[place]:
                return place.replace("_", " "), then[place], now[place]
        for name in ("above", "below") if rose else ("below", "above"):
            was, is_ = then[name] / then["values"], now[name] / now["values"]
            # More lie above where values rose, and fewer below.
            if (is_ > was) if (name == "above") == rose else (is_ < was):
                return name, was, is_
        return "order", then["median"], now["median"]

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
            if pearson(table)[1] <= 0.001:
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
        value: The metric in which costs are told.
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
    if recount is not None and recount.untimed:
        notes.append(UNTIMED)
    if recount is not None and recount.farthest_date is not None:
        notes.append(FAR_AWAY.format(len(recount.far), len(chosen), stamp(recount.farthest_date)[:10]))
    if recount is not None and recount.one_of > 1:
        notes.append(TAKEN.format(recount.one_of))
    if is_truncated:
        notes.append(EARLIER_LEFT_OUT)
    if len(above) > len(listed):
        notes.append(MORE)

    if value is not None and not (recount is not None and recount.is_measured()):
        notes.append(UNMEASURED.format(value))
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
            "slow_weeks": 26,
            "least_groups": 5,
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
            "as_of": stamp(recount.as_of if recount else dated(entries[-1])) if entries else None,
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
