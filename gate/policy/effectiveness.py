"""How well a policy does, from what came of its decisions: the counts, and each formula as one function.

    score       succeeded, and half of partial, among the decisions with a terminal outcome
    confidence  how narrow the interval of the success rate is, times how much of what was approved has a result
    bounds      between what the success rate lies if every decided action had been let through

Formulas, reasons and limits: `docs/reference/formulas/effectiveness.md`. Everything follows from counts alone, without a clock, so that the
same counts give the same answer everywhere. Effectiveness never changes a verdict.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from gate.policy.confidence import HIGH, MEDIUM, MIN_SAMPLE, Counts, wilson_interval
from gate.policy.versions import Compared

LET_THROUGH: Final = "let_through"
GRANTED: Final = "granted"
DISPOSITIONS: Final = (LET_THROUGH, GRANTED, "blocked", "held", "refused", "expired", "not_executed")
"""What becomes of an action. It was let through where the latest outcome says action_executed; where that says nothing,
if the verdict is yes, or if its owner granted it and a receipt says executed or the outcome is terminal. Of the others,
those with the verdict no were blocked; those with review are granted, refused or expired as they were resolved, and
held until then; those that were approved or granted and, as the outcome says, not executed are not_executed.
"""

UNKNOWN: Final = "unknown"
"""What became of the action of an imported case that has neither a verdict nor an outcome."""

_DIGITS: Final = 6


class Standing(NamedTuple):
    """How many decisions have which latest outcome; `unreported` have none. The first four statuses are terminal."""

    succeeded: int = 0
    partial: int = 0
    failed: int = 0
    reverted: int = 0
    pending: int = 0
    review: int = 0
    unreported: int = 0

    @property
    def counts(self) -> Counts:
        """The same without those that have no outcome."""
        return Counts(*self[:-1])

    @property
    def terminal(self) -> int:
        """Those after whose outcome nothing more is expected."""
        return self.succeeded + self.partial + self.failed + self.reverted

    @property
    def reported(self) -> int:
        """Those with any outcome."""
        return self.terminal + self.pending + self.review

    @property
    def decisions(self) -> int:
        """All of them."""
        return self.reported + self.unreported

    @property
    def score(self) -> float | None:
        """The share of `succeeded` and half of `partial` among the terminal; None where there are none."""
        return share(2 * self.succeeded + self.partial, 2 * self.terminal)

    @property
    def success_rate(self) -> float | None:
        """The share of `succeeded` among the terminal; None where there are none."""
        return share(self.succeeded, self.terminal)

    @property
    def interval(self) -> tuple[float, float]:
        """The 95% Wilson interval of the success rate."""
        return wilson_interval(self.succeeded, self.terminal)

    @property
    def failure_rate(self) -> float | None:
        """The share of `failed` and `reverted` among the terminal; None where there are none."""
        return share(self.failed + self.reverted, self.terminal)

    @property
    def review_rate(self) -> float | None:
        """The share of the outcome `review` among those with any outcome; None where there are none."""
        return share(self.review, self.reported)

    @property
    def terminal_coverage(self) -> float | None:
        """The share of the decisions that have a terminal outcome; None without decisions."""
        return share(self.terminal, self.decisions)


def share(part: int, whole: int) -> float | None:
    """A part of a whole, six decimals; None where there is no whole."""
    return round(part / whole, _DIGITS) if whole else None


def together(standings: Iterable[Standing]) -> Standing:
    """All of several that have no decision in common."""
    return Standing(*map(sum, zip(*standings, strict=True)))


class Group(NamedTuple):
    """Decisions that have something in common.

    Attributes:
        standing: What came of them.
        first: When the first of them was made; UTC timestamp.
        last: When the last was.
    """

    standing: Standing
    first: str
    last: str


class Footing(NamedTuple):
    """On what footing versions are compared.

    Attributes:
        facts: The facts by which cases are like ones, sorted; none where cases are compared as they are.
        left_out: Other facts that tell cases apart, sorted: by these as well, too few cases would be alike.
        decisions: How many let-through decisions with a terminal outcome and known facts were looked at.
        unknown: How many were left out because their facts are not known.
        strata: Into how many kinds of like cases they fall.
        sampled_one_of: Of so many decisions one was looked at.
        design_effect: How many times as much rates vary as those of decisions that came one by one.
        weaker: Other facts that tell cases apart, sorted: they have less to do with the outcome than those chosen.
        ids: Others of imported cases, sorted: of many values, by which few cases would be alike.
        parting: Facts, sorted, by which alone fewer than half of the imported cases have a like one of another version.
        pooled: Facts, sorted, of whose texts the rarer ones count as alike.
    """

    facts: Sequence[str] = ()
    left_out: Sequence[str] = ()
    decisions: int = 0
    unknown: int = 0
    strata: int = 0
    sampled_one_of: int = 1
    design_effect: float = 1.0
    weaker: Sequence[str] = ()
    ids: Sequence[str] = ()
    parting: Sequence[str] = ()
    pooled: Sequence[str] = ()


class Middle(NamedTuple):
    """The middle of a metric's values in some decisions.

    Attributes:
        name: Its name.
        part: The version, or the Monday of the week, by which the decisions are told apart.
        decisions: How many of them have it.
        median: The lower median.
        low: The lower end of its 95% interval, which is a value that was observed; None of fewer than six values.
        high: The upper end.
    """

    name: str
    part: str
    decisions: int
    median: float
    low: float | None
    high: float | None


class Metric(NamedTuple):
    """A metric that callers observed.

    Attributes:
        name: Its name in `observed_metrics`.
        decisions: How many decisions have it in their latest outcome.
        min: The least value.
        median: The lower median, which is a value that was observed.
        max: The greatest value.
    """

    name: str
    decisions: int
    min: float
    median: float
    max: float


class Reviews(NamedTuple):
    """How the reviews among some decisions were resolved. Times are whole seconds from a decision to its resolution.

    Attributes:
        held: Those that nobody resolved yet.
        granted: Those that their owner granted.
        refused: Those that their owner refused.
        expired: Those whose time limit was over before anybody answered.
        median: The lower median of the times of those that were resolved; None where none was.
        p90: The least time that nine of ten of them did not exceed.
    """

    held: int = 0
    granted: int = 0
    refused: int = 0
    expired: int = 0
    median: int | None = None
    p90: int | None = None

    @property
    def resolved(self) -> int:
        """Those that were resolved."""
        return self.granted + self.refused + self.expired

    @property
    def decisions(self) -> int:
        """All of them."""
        return self.held + self.resolved


@dataclass(frozen=True, slots=True)
class Counted:
    """What was counted of some decisions of a policy. Each mapping holds every one of them once.

    Attributes:
        by_version: By policy version.
        by_verdict: By verdict: yes, no, review; none for imported cases whose verdict nobody knows.
        by_rule: By what decided, which is the second evidence code: `rule:<rule_id>`, `rule:default`, `schema:failed`.
        by_week: By the week in which they were made: its Monday in UTC, as `2026-06-08`.
        by_disposition: By what became of the action, as `DISPOSITIONS` names it.
        by_version_and_verdict: By both.
        let_through: By version, those whose action was let through.
        compared: The versions beside each other, as far as they were compared.
        footing: On what footing they were.
        metrics: The `observed_metrics` of the latest outcomes; of very many names those of the most decisions.
        metrics_by_version: The middles of these, by version.
        metrics_by_week: The same by the week in which the decision was made.
        first: When the first of the decisions was made; UTC timestamp, None without any.
        last: When the last was.
        chain_position: The last position of the scope's chain that was read; 0 where it is empty.
        merkle_root: The chain's rolling root there; None where it is empty.
        truncated: Whether a limit left earlier decisions out.
        more_metrics: How many names were observed beside those of `metrics`.
        middles_one_of: Of so many decisions one was taken for the middles.
        advisory: How many decisions with the policy's id were left out because they are advisory.
        early: How many decisions have an outcome that is dated before them, where these are dates of events.
        reviews: How those with the verdict review were resolved; None where nothing is said of that.
    """

    by_version: Mapping[str, Group]
    by_verdict: Mapping[str, Standing]
    by_rule: Mapping[str, Standing]
    by_week: Mapping[str, Standing]
    by_disposition: Mapping[str, Standing]
    metrics: Sequence[Metric]
    first: str | None
    last: str | None
    chain_position: int
    merkle_root: str | None
    truncated: bool
    by_version_and_verdict: Mapping[tuple[str, str], Standing] = field(default_factory=dict)
    let_through: Mapping[str, Standing] = field(default_factory=dict)
    compared: Mapping[str, Compared] = field(default_factory=dict)
    footing: Footing = field(default_factory=Footing)
    metrics_by_version: Sequence[Middle] = ()
    metrics_by_week: Sequence[Middle] = ()
    more_metrics: int = 0
    middles_one_of: int = 1
    advisory: int = 0
    early: int = 0
    reviews: Reviews | None = None

    @property
    def standing(self) -> Standing:
        """What came of all of them."""
        return together(group.standing for group in self.by_version.values())

    @property
    def acted(self) -> Standing:
        """What came of those whose action was let through."""
        return self.by_disposition.get(LET_THROUGH, Standing())


class Bounds(NamedTuple):
    """Between what the share of decided actions lies that would have succeeded had every one been let through.

    Attributes:
        decisions: The decided actions.
        observed: Those that were let through and have a terminal outcome.
        succeeded: Those of them that succeeded.
        unknown: Those that were let through and have no terminal outcome.
        unobservable: Those that were not let through.
        low: The share if nothing but what was observed would have succeeded.
        high: The share if everything but what was observed to go otherwise would have.
    """

    decisions: int
    observed: int
    succeeded: int
    unknown: int
    unobservable: int
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Effectiveness:
    """What counts of decisions say of their policy.

    Attributes:
        score: 0 to 1, six decimals; None where no outcome is terminal.
        confidence: 0 to 1, six decimals: how much stands behind the score.
        recommendation: What to make of it. It authorizes nothing: only a verdict does.
        below_others: The versions that do worse than all others together, among like cases.
    """

    score: float | None
    confidence: float
    recommendation: str
    below_others: frozenset[str]


def assess(counted: Counted, *, min_sample: int = MIN_SAMPLE) -> Effectiveness:
    """How well the policy does.

    Args:
        counted: The counts.
        min_sample: How many terminal outcomes of let-through actions a judgment needs.
    """
    standing, approved = counted.standing, counted.by_verdict.get("yes", Standing())
    below = frozenset(version for version, of in counted.compared.items() if of.is_below)
    advice = (
        recommendation(counted.acted, approved, min_sample=min_sample, version_below=bool(below))
        if standing.decisions
        else "no_decisions"
    )
    return Effectiveness(standing.score, confidence(standing, approved), advice, below)


def confidence(standing: Standing, approved: Standing) -> float:
    """How much stands behind a score: 1 less the width of the interval, times the share of results that are in.

    Args:
        standing: The decisions looked at.
        approved: Those of them with the verdict yes, which are waited for; where there are none, all are.

    Returns:
        0 to 1, six decimals; 0 where no outcome is terminal.
    """
    low, high = standing.interval
    covered = (approved if approved.decisions else standing).terminal_coverage or 0.0
    return round((1 - (high - low)) * covered, _DIGITS)


def below_others(parts: Mapping[str, Standing], min_sample: int) -> frozenset[str]:
    """The parts, such as rules, whose interval ends below where that of all others together begins, as they are.

    Args:
        parts: Each part's decisions.
        min_sample: How many terminal outcomes a part needs, and the others need together.
    """
    whole = together(parts.values())

    def is_below(of: Standing) -> bool:
        others = whole.terminal - of.terminal
        if min(of.terminal, others) < min_sample:
            return False
        low, _ = wilson_interval(whole.succeeded - of.succeeded, others)
        _, high = of.interval
        return high < low

    return frozenset(part for part, of in parts.items() if is_below(of))


def bounds(standing: Standing, acted: Standing) -> Bounds:
    """What is known of every decided action at once, the blocked and the held ones among them.

    Args:
        standing: The decisions looked at.
        acted: Those of them whose action was let through.
    """
    unknown, unobservable = acted.decisions - acted.terminal, standing.decisions - acted.decisions
    low = share(acted.succeeded, standing.decisions)
    high = share(acted.succeeded + unknown + unobservable, standing.decisions)
    return Bounds(
        standing.decisions,
        acted.terminal,
        acted.succeeded,
        unknown,
        unobservable,
        0.0 if low is None else low,
        1.0 if high is None else high,
    )


def recommendation(standing: Standing, approved: Standing, *, min_sample: int, version_below: bool) -> str:
    """What to make of it: the first that holds.

    Args:
        standing: The decisions whose action was let through.
        approved: The decisions with the verdict yes.
        min_sample: How many terminal outcomes a judgment needs.
        version_below: Whether some version does worse than all others together.
    """
    low, _ = standing.interval
    if standing.terminal < min_sample:
        return "collect_outcomes"
    if version_below:
        return "review_version"
    if 2 * approved.terminal < approved.decisions:
        return "report_outcomes"
    if low >= HIGH:
        return "healthy"
    return "monitor_outcomes" if low >= MEDIUM else "review_policy"
