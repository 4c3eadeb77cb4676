"""The effectiveness of a policy, from the results of its decisions: the counts, and each formula as one function.

    score       succeeded, and half of partial, among the decisions with a terminal outcome
    confidence  the narrowness of the success rate's interval, times the share of approvals that have a result
    bounds      the range of the success rate if every decided action had been let through

The formulas and limits are in `docs/reference/formulas/effectiveness.md`. Everything follows from counts, without a
clock, so the same counts give the same answer everywhere. Effectiveness never changes a verdict.
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
"""The possible fates of an action.

An action was let through if the latest outcome says action_executed. If the outcome does not say, it was let through if
the verdict is yes, or if its owner granted it and a receipt says executed or the outcome is terminal. Of the others,
those with the verdict no were blocked. Those with review are granted, refused, or expired as they were resolved, and
held until then. Those that were approved or granted, but not executed according to the outcome, are not_executed.
"""

UNKNOWN: Final = "unknown"
"""The fate of an imported case that has neither a verdict nor an outcome."""

_DIGITS: Final = 6


class Standing(NamedTuple):
    """The number of decisions by latest outcome; `unreported` have none. The first four statuses are terminal."""

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
    """How versions are compared.

    Attributes:
        facts: The facts in which like cases agree, sorted; empty if cases are compared without adjustment.
        left_out: Other facts that separate cases, sorted. With these, too few cases would be alike.
        decisions: The number of let-through decisions with a terminal outcome and known facts.
        unknown: The number that were left out because their facts are unknown.
        strata: The number of kinds of like cases.
        sampled_one_of: The sampling step: one in this many decisions was considered.
        design_effect: The factor by which rates vary more than those of decisions that arrived alone.
        weaker: Other facts that separate cases, sorted. They have less to do with the outcome than the chosen ones.
        ids: Other facts of imported cases, sorted. They have so many values that few cases would be alike.
        parting: Facts, sorted, by which alone fewer than half of the imported cases have a like one in another version.
        pooled: Facts, sorted, whose rarer texts count as alike.
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
    """The middle of the values of a metric in some decisions.

    Attributes:
        name: Its name.
        part: The version, or the Monday of the week, that groups the decisions.
        decisions: The number of decisions that have it.
        median: The lower median.
        low: The lower end of its 95% interval, an observed value; None with fewer than six values.
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
    """The counts of some decisions of a policy. Each mapping covers all of them, each once.

    Attributes:
        by_version: By policy version.
        by_verdict: By verdict: yes, no, review; none for imported cases with an unknown verdict.
        by_rule: By what decided, which is the second evidence code: `rule:<rule_id>`, `rule:default`, `schema:failed`.
        by_week: By the week in which they were made: its Monday in UTC, such as `2026-06-08`.
        by_disposition: By the fate of the action, one of `DISPOSITIONS`.
        by_version_and_verdict: By both.
        let_through: By version, the decisions whose action was let through.
        compared: The compared versions.
        footing: How they were compared.
        metrics: The `observed_metrics` of the latest outcomes. Of many names, those with the most decisions.
        metrics_by_version: The middles of these, by version.
        metrics_by_week: The same, by the week of the decision.
        first: When the first of the decisions was made, a UTC timestamp; None without any.
        last: When the last was made.
        chain_position: The last position of the scope's chain that was read; 0 if it is empty.
        merkle_root: The chain's rolling root at that position; None if it is empty.
        truncated: Whether a limit left out earlier decisions.
        more_metrics: The number of observed names that `metrics` leaves out.
        middles_one_of: The sampling step of the middles.
        advisory: The number of decisions with the policy's id that were left out because they are advisory.
        early: The number of decisions with an outcome dated before them, if dates are event times.
        reviews: How decisions with the verdict review were resolved; None if the report does not say.
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
        """The results of all decisions."""
        return together(group.standing for group in self.by_version.values())

    @property
    def acted(self) -> Standing:
        """The results of the decisions whose action was let through."""
        return self.by_disposition.get(LET_THROUGH, Standing())


class Bounds(NamedTuple):
    """The range of the success rate if every decided action had been let through.

    Attributes:
        decisions: The decided actions.
        observed: Those that were let through and have a terminal outcome.
        succeeded: Those of them that succeeded.
        unknown: Those that were let through and have no terminal outcome.
        unobservable: Those that were not let through.
        low: The share if only the observed successes had succeeded.
        high: The share if everything but the observed failures had succeeded.
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
    """The effectiveness that follows from counts of decisions.

    Attributes:
        score: 0 to 1, six decimals; None if no outcome is terminal.
        confidence: 0 to 1, six decimals: how well the counts support the score.
        recommendation: The recommended reaction. It authorizes nothing; only a verdict does.
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
    """How well counts support a score: 1 less the width of the interval, times the share of results that have arrived.

    Args:
        standing: The decisions considered.
        approved: Those of them with the verdict yes, whose results are expected; if there are none, all are.

    Returns:
        0 to 1, six decimals; 0 if no outcome is terminal.
    """
    low, high = standing.interval
    covered = (approved if approved.decisions else standing).terminal_coverage or 0.0
    return round((1 - (high - low)) * covered, _DIGITS)


def below_others(parts: Mapping[str, Standing], min_sample: int) -> frozenset[str]:
    """The parts, such as rules, whose unadjusted interval ends below the start of the interval of all others together.

    Args:
        parts: The decisions of each part.
        min_sample: The number of terminal outcomes that a part needs, and that the others need together.
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
    """The bounds over every decided action, including blocked and held ones.

    Args:
        standing: The decisions considered.
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
    """The recommendation: the first that applies.

    Args:
        standing: The decisions whose action was let through.
        approved: The decisions with the verdict yes.
        min_sample: The number of terminal outcomes that a judgment needs.
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
