"""Reports about a policy, from what was reported of its decisions: each a JSON object that ends in its own hash.

    report = confidence_report(coverage, policy_id="pricing_exception")
    report["confidence_hash"] == content_hash(report without confidence_hash)

They hold no date but those of what they cover: the same ledger gives the same report, byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from gate.canonical import content_hash
from gate.confidence import MIN_SAMPLE, Counts, Coverage, add, assess
from gate.labels import CONFIDENCE

MAX_VERSIONS: Final = 50
"""How many versions a report tells apart, those with the most decisions first."""

_NOTES: Final = (
    "Outcomes are what callers reported: nobody checked them, and decisions without an outcome are not counted.",
    "A blocked or held action has no outcome of its own: what would have come of it is not known.",
    "Partial counts as no success; pending and review count neither way until a result is reported.",
    "Outcomes are taken as independent of one another, and those to come as like those that were.",
)
_EVERY_VERDICT: Final = "Decisions of every verdict are taken together; ask with verdict to tell them apart."
_TRUNCATED: Final = "Decisions with older outcomes were left out, as limit asked."


def confidence_report(
    coverage: Coverage,
    *,
    policy_id: str,
    policy_version: str | None = None,
    verdict: str | None = None,
    action: str | None = None,
    min_sample: int = MIN_SAMPLE,
    limit: int | None = None,
) -> dict[str, Any]:
    """How far the outcomes of a policy's decisions support it (`decision_confidence_v1`).

    Args:
        coverage: The counts of the decisions that the other arguments choose.
        policy_id: The policy.
        policy_version: The one version that was looked at; None for all.
        verdict: The one verdict: yes, no or review; None for all.
        action: The one action; None for all.
        min_sample: How many terminal outcomes a level needs.
        limit: How many decisions were looked at, those with the latest outcomes; None for all.

    Returns:
        The report, with `confidence_hash` over the rest of it.
    """
    counts = add(coverage.by_version.values())
    found = assess(coverage.by_version.values(), coverage.policy, verdict=verdict, min_sample=min_sample)
    report = {
        "decision_confidence_version": CONFIDENCE,
        "policy_id": policy_id,
        "policy_version": policy_version,
        "verdict": verdict,
        "action": action,
        **found.to_dict(),
        "outcomes": counts._asdict(),
        "success_rate": _success_rate(counts),
        "policy_success_rate": _success_rate(coverage.policy),
        "versions": [
            {"policy_version": version, "outcomes": of._asdict(), "success_rate": _success_rate(of)}
            for version, of in sorted(coverage.by_version.items(), key=lambda item: (-item[1].total, item[0]))
        ][:MAX_VERSIONS],
        "min_sample": min_sample,
        "limit": limit,
        "coverage": {
            "decisions": counts.total,
            "versions": len(coverage.by_version),
            "from": coverage.first,
            "to": coverage.last,
            "truncated": coverage.truncated,
        },
        "notes": list(_notes(coverage, verdict)),
    }
    return {**report, "confidence_hash": content_hash(report)}


def _success_rate(counts: Counts) -> dict[str, float | None]:
    low, high = counts.interval
    return {"rate": counts.success_rate, "low": low, "high": high}


def _notes(coverage: Coverage, verdict: str | None) -> Iterator[str]:
    yield from _NOTES
    if verdict is None:
        yield _EVERY_VERDICT
    if coverage.truncated:
        yield _TRUNCATED
