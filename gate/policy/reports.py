"""The confidence report, a JSON object that ends in its own hash, and the limits of lists in reports.

    report = confidence_report(coverage, ConfidenceQuestion("pricing_exception"))
    report["confidence_hash"] == content_hash(report without confidence_hash)

It contains only dates of the decisions it covers: the same ledger gives the same report, byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from gate.encoding.canonical import content_hash
from gate.labels import CONFIDENCE
from gate.policy.confidence import Counts, Coverage, add, assess
from gate.policy.notes import by_clock
from gate.policy.questions import ConfidenceQuestion

MAX_VERSIONS: Final = 50
"""How many versions a report tells apart, those with the most decisions first."""

MAX_RULES: Final = 200
"""How many rules an effectiveness report tells apart, those with the most decisions first."""

MAX_WEEKS: Final = 520
"""How many weeks an effectiveness report tells apart, the latest of them."""

MAX_METRICS: Final = 64
"""How many metrics an effectiveness report has, those of the most decisions first."""

_NOTES: Final = (
    "Outcomes are as callers reported them, unchecked. Decisions without an outcome are not counted.",
    "A blocked or held action has no outcome of its own: how it would have ended is unknown.",
    "A partial outcome counts as no success. Outcomes in pending or review count neither way until a result is "
    "reported.",
    "The formulas assume that outcomes are independent of one another, and that later outcomes resemble earlier ones.",
)
_EVERY_VERDICT: Final = "The report mixes decisions of all verdicts. Set verdict to separate them."
_TOO_SMALL: Final = (
    "Versions with fewer terminal outcomes than min_sample are left out of policy_stability. A higher min_sample "
    "covers fewer versions."
)
_TRUNCATED: Final = "Decisions with older outcomes were left out because of limit."


def confidence_report(coverage: Coverage, question: ConfidenceQuestion) -> dict[str, Any]:
    """How far the outcomes of a policy's decisions support it (`decision_confidence_v1`).

    Args:
        coverage: The counts of the decisions that the question chooses.
        question: The question.

    Returns:
        The report, with `confidence_hash` over its other fields.
    """
    counts = add(coverage.by_version.values())
    found = assess(
        coverage.by_version.values(), coverage.policy, verdict=question.verdict, min_sample=question.min_sample
    )
    report = {
        "decision_confidence_version": CONFIDENCE,
        **question.asked(),
        "action": question.action,
        **found.to_dict(),
        "outcomes": counts._asdict(),
        "success_rate": success_rate(counts),
        "policy_success_rate": success_rate(coverage.policy),
        "versions": [
            {"policy_version": version, "outcomes": of._asdict(), "success_rate": success_rate(of)}
            for version, of in sorted(coverage.by_version.items(), key=lambda item: (-item[1].total, item[0]))
        ][:MAX_VERSIONS],
        "min_sample": question.min_sample,
        "limit": question.limit,
        "coverage": {
            "decisions": counts.total,
            "versions": len(coverage.by_version),
            "from": coverage.first,
            "to": coverage.last,
            "truncated": coverage.truncated,
        },
        "notes": list(_notes(coverage, question)),
    }
    return {**report, "confidence_hash": content_hash(report)}


def success_rate(counts: Counts) -> dict[str, float | None]:
    """The rate of success as reports have it, with its interval."""
    low, high = counts.interval
    return {"rate": counts.success_rate, "low": low, "high": high}


def _notes(coverage: Coverage, question: ConfidenceQuestion) -> Iterator[str]:
    yield from _NOTES
    if question.verdict is None:
        yield _EVERY_VERDICT
    if any(of.terminal < question.min_sample for of in coverage.by_version.values()):
        yield _TOO_SMALL
    if coverage.truncated:
        yield _TRUNCATED
    yield from by_clock(question.clock)
