"""The support that outcomes of earlier decisions give a policy: `decision_confidence` on records, and the report.

    score      the lower end of the 95% Wilson interval of the success rate
    stability  how far the worst version lies below the policy, as far as their intervals separate the two

The formulas and limits are in `docs/reference/formulas/confidence.md`. Everything follows from counts of latest
outcomes, without a clock, so the same counts give the same answer everywhere. Confidence never changes a verdict.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple, TypedDict

from gate.encoding.canonical import content_hash
from gate.labels import CONFIDENCE

MIN_SAMPLE: Final = 20
"""The number of terminal outcomes that a level needs by default."""

HIGH: Final = 0.8
MEDIUM: Final = 0.6
STABLE: Final = 0.95

# The standard normal quantile of 0.975.
_Z: Final = 1.959963984540054
_DIGITS: Final = 6


class Counts(NamedTuple):
    """The number of decisions by latest outcome. The first four statuses are terminal, the other two still open."""

    succeeded: int = 0
    partial: int = 0
    failed: int = 0
    reverted: int = 0
    pending: int = 0
    review: int = 0

    @property
    def terminal(self) -> int:
        """Those after which nothing more is expected."""
        return self.succeeded + self.partial + self.failed + self.reverted

    @property
    def total(self) -> int:
        """All of them."""
        return self.terminal + self.pending + self.review

    @property
    def success_rate(self) -> float | None:
        """The share of `succeeded` among the terminal, six decimals; None where there are none."""
        return _rounded(self.succeeded / self.terminal) if self.terminal else None

    @property
    def interval(self) -> tuple[float, float]:
        """The 95% Wilson interval of the success rate."""
        return wilson_interval(self.succeeded, self.terminal)


def add(counts: Iterable[Counts]) -> Counts:
    """All together."""
    return Counts(*map(sum, zip(*counts, strict=True)))


@dataclass(frozen=True, slots=True)
class Coverage:
    """What a report looks at.

    Attributes:
        by_version: The counts of the decisions looked at, by policy version.
        policy: The counts of all decisions of the policy with the same verdict and action, whatever their version and
            however long ago.
        first: When the first outcome of the decisions looked at was reported; UTC timestamp, None without any.
        last: When the last was.
        truncated: Whether a limit left decisions with older outcomes out.
    """

    by_version: Mapping[str, Counts]
    policy: Counts
    first: str | None
    last: str | None
    truncated: bool


class ConfidenceMembers(TypedDict):
    """Confidence as records and reports carry it."""

    score: float
    level: str
    similar_decisions: int
    policy_stability: float | None
    recommendation: str


class StatedConfidence(ConfidenceMembers):
    """The fields that the hash of `decision_confidence` covers."""

    decision_confidence_version: str


class DecisionConfidence(StatedConfidence):
    """The `decision_confidence` of a record."""

    confidence_hash: str


@dataclass(frozen=True, slots=True)
class Confidence:
    """The confidence that follows from counts of outcomes.

    Attributes:
        score: 0 to 1, six decimals: the success rate that the terminal outcomes support; 0 without any.
        level: high, medium, low, or insufficient.
        similar_decisions: The number of decisions considered that have an outcome.
        policy_stability: 0 to 1, six decimals; None if no version has the sample that a level needs.
        recommendation: The recommended reaction. It authorizes nothing; only a verdict does.
    """

    score: float
    level: str
    similar_decisions: int
    policy_stability: float | None
    recommendation: str

    def to_dict(self) -> ConfidenceMembers:
        """The members as records and reports carry them."""
        return {
            "score": self.score,
            "level": self.level,
            "similar_decisions": self.similar_decisions,
            "policy_stability": self.policy_stability,
            "recommendation": self.recommendation,
        }


def assess(
    versions: Iterable[Counts], policy: Counts, *, verdict: str | None, min_sample: int = MIN_SAMPLE
) -> Confidence:
    """Computes the confidence in decisions from the outcomes of similar ones.

    Args:
        versions: The counts of the decisions considered, one for each policy version.
        policy: The counts of all decisions of the policy with the same verdict and action.
        verdict: Their verdict, yes, no, or review; None if they have several.
        min_sample: The number of terminal outcomes that a level needs, and that a version needs to be compared with the
            policy.
    """
    versions = list(versions)
    counts = add(versions)
    score, _ = counts.interval
    stability = _stability((of for of in versions if of.terminal >= min_sample), policy)
    level = _level(counts.terminal, score, stability, min_sample)
    return Confidence(score, level, counts.total, stability, _recommendation(level, verdict))


def wilson_interval(successes: int, trials: int) -> tuple[float, float]:
    """The 95% Wilson score interval of a rate, six decimals; (0, 1) without trials.

    The source is Wilson, "Probable inference, the law of succession, and statistical inference", 1927.
    """
    # No trials say nothing, hence the widest interval: they must never look like failures.
    if trials == 0:
        return 0.0, 1.0
    rate, weight = successes / trials, _Z * _Z / trials
    middle = rate + weight / 2
    half = _Z * math.sqrt(rate * (1 - rate) / trials + weight / (4 * trials))
    return _rounded((middle - half) / (1 + weight)), _rounded((middle + half) / (1 + weight))


def _rounded(share: float) -> float:
    # Floats err by less than half of the last digit shown, and may fall as far outside 0 to 1.
    return round(min(1.0, max(0.0, share)), _DIGITS)


def _stability(versions: Iterable[Counts], policy: Counts) -> float | None:
    # Plain differences of rates would call a policy unstable for having small versions, or for having improved.
    highest = min((of.interval[1] for of in versions), default=None)
    lowest, _ = policy.interval
    return None if highest is None else _rounded(1 - max(0.0, lowest - highest))


def _level(terminal: int, score: float, stability: float | None, min_sample: int) -> str:
    if terminal < min_sample:
        return "insufficient"
    if score >= HIGH and (stability is None or stability >= STABLE):
        return "high"
    return "medium" if score >= MEDIUM else "low"


_HIGH_RECOMMENDATION: Final[Mapping[str | None, str]] = {
    "yes": "high_confidence_proceed",
    "no": "high_confidence_block",
    "review": "high_confidence_review",
    None: "high_confidence",
}
_RECOMMENDATION: Final[Mapping[str, str]] = {
    "medium": "monitor_outcomes",
    "low": "review_policy",
    "insufficient": "collect_outcomes",
}


def _recommendation(level: str, verdict: str | None) -> str:
    return _HIGH_RECOMMENDATION[verdict] if level == "high" else _RECOMMENDATION[level]


@lru_cache(1024)
def decision_confidence(verdict: str, similar: Counts, policy: Counts) -> DecisionConfidence:
    """The `decision_confidence` of a record. The result is shared, so callers must not change it.

    Args:
        verdict: The record's verdict.
        similar: The counts of decisions of the same policy, version, verdict, and action.
        policy: The same counts under every version of the policy.
    """
    found = assess([similar], policy, verdict=verdict)
    stated: StatedConfidence = {"decision_confidence_version": CONFIDENCE, **found.to_dict()}
    return {**stated, "confidence_hash": content_hash(stated)}
