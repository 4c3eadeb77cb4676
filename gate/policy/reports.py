"""Reports about a policy, from what was reported of its decisions: each a JSON object that ends in its own hash.

    report = confidence_report(coverage, ConfidenceQuestion("pricing_exception"))
    report["confidence_hash"] == content_hash(report without confidence_hash)

They hold no date but those of what they cover: the same ledger gives the same report, byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from gate.encoding.canonical import content_hash
from gate.labels import CONFIDENCE, EFFECTIVENESS
from gate.policy import effectiveness
from gate.policy.confidence import Counts, Coverage, add, assess
from gate.policy.effectiveness import Counted, Standing
from gate.policy.notes import without_advice
from gate.policy.questions import VERDICTS, ConfidenceQuestion, EffectivenessQuestion

MAX_VERSIONS: Final = 50
"""How many versions a report tells apart, those with the most decisions first."""

MAX_RULES: Final = 200
"""How many rules an effectiveness report tells apart, those with the most decisions first."""

MAX_WEEKS: Final = 520
"""How many weeks an effectiveness report tells apart, the latest of them."""

MAX_METRICS: Final = 64
"""How many metrics an effectiveness report has, those of the most decisions first."""

_NOTES: Final = (
    "Outcomes are what callers reported: nobody checked them, and decisions without an outcome are not counted.",
    "A blocked or held action has no outcome of its own: what would have come of it is not known.",
    "Partial counts as no success; pending and review count neither way until a result is reported.",
    "Outcomes are taken as independent of one another, and those to come as like those that were.",
)
_EVERY_VERDICT: Final = "Decisions of every verdict are taken together; ask with verdict to tell them apart."
_TOO_SMALL: Final = (
    "Versions with fewer terminal outcomes than min_sample have no part in policy_stability: a greater min_sample "
    "looks at fewer of them."
)
_TRUNCATED: Final = "Decisions with older outcomes were left out, as limit asked."

_EFFECTIVENESS_NOTES: Final = (
    "Outcomes are what callers reported: nobody checked them. A decision counts by the latest one.",
    "Partial counts half in effectiveness_score, and else as neither a success nor a failure; pending and review count "
    "neither way until a result is reported.",
    "What would have come of a blocked or held action is not known: success_rate says nothing of it, and bounds hold "
    "whatever it is.",
    "Which action was let through is what outcomes say in action_executed, and else the verdict.",
    "Versions, rules and weeks met different cases: a difference between them need not be their doing.",
    "Of many versions that do equally well, some lie below the others by chance.",
    "Outcomes come after decisions, failures often last: the latest weeks can look better, and less covered, than they "
    "will.",
    "Outcomes are taken as independent of one another, and those to come as like those that were.",
)


_NOT_COMPARED: Final = (
    "Versions with fewer terminal outcomes than min_sample were not compared with the others: a greater min_sample "
    "compares fewer of them."
)
_SHORTENED: Final = "More versions, rules, weeks or metrics were counted than are listed."
_EARLIER_LEFT_OUT: Final = "Earlier decisions were left out, as limit asked."


def confidence_report(coverage: Coverage, question: ConfidenceQuestion) -> dict[str, Any]:
    """How far the outcomes of a policy's decisions support it (`decision_confidence_v1`).

    Args:
        coverage: The counts of the decisions that the question chooses.
        question: The question.

    Returns:
        The report, with `confidence_hash` over the rest of it.
    """
    counts = add(coverage.by_version.values())
    found = assess(
        coverage.by_version.values(), coverage.policy, verdict=question.verdict, min_sample=question.min_sample
    )
    report = {
        "decision_confidence_version": CONFIDENCE,
        "policy_id": question.policy_id,
        "policy_version": question.policy_version,
        "verdict": question.verdict,
        "action": question.action,
        **found.to_dict(),
        "outcomes": counts._asdict(),
        "success_rate": _success_rate(counts),
        "policy_success_rate": _success_rate(coverage.policy),
        "versions": [
            {"policy_version": version, "outcomes": of._asdict(), "success_rate": _success_rate(of)}
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


def effectiveness_report(counted: Counted, question: EffectivenessQuestion) -> dict[str, Any]:
    """How well a policy does (`policy_effectiveness_v1`).

    Args:
        counted: The counts of the decisions that the question chooses.
        question: The question.

    Returns:
        The report, with `effectiveness_hash` over the rest of it.
    """
    standing = counted.standing
    found = effectiveness.assess(counted, min_sample=question.min_sample)
    versions = sorted(
        counted.by_version.items(),
        key=lambda item: (item[0] not in found.below_others, -item[1].standing.decisions, item[0]),
    )
    rules = sorted(counted.by_rule.items(), key=lambda item: (-item[1].decisions, item[0]))
    weeks = sorted(counted.by_week.items())
    metrics = sorted(counted.metrics, key=lambda metric: (-metric.decisions, metric.name))
    report = {
        "policy_effectiveness_version": EFFECTIVENESS,
        "policy_id": question.policy_id,
        "policy_version": question.policy_version,
        "effectiveness_score": found.score,
        "confidence": found.confidence,
        "recommendation": found.recommendation,
        "outcomes": standing._asdict(),
        "success_rate": _success_rate(standing.counts),
        "failure_rate": standing.failure_rate,
        "review_rate": standing.review_rate,
        "terminal_coverage": standing.terminal_coverage,
        "bounds": effectiveness.bounds(standing, counted.acted)._asdict(),
        "versions_below_others": len(found.below_others),
        "versions": [
            {
                "policy_version": version,
                "first": group.first,
                "last": group.last,
                **_part(group.standing),
                "below_others": version in found.below_others,
            }
            for version, group in versions[:MAX_VERSIONS]
        ],
        "verdicts": [
            {"verdict": verdict, **_part(counted.by_verdict[verdict])}
            for verdict in (*VERDICTS, *sorted({*counted.by_verdict} - {*VERDICTS}))
            if verdict in counted.by_verdict
        ],
        "rules": [{"rule": rule, **_part(of)} for rule, of in rules[:MAX_RULES]],
        "weeks": [{"week": week, **_part(of)} for week, of in weeks[-MAX_WEEKS:]],
        "metrics": [metric._asdict() for metric in metrics[:MAX_METRICS]],
        "min_sample": question.min_sample,
        "limit": question.limit,
        "coverage": {
            "decisions": standing.decisions,
            "versions": len(versions),
            "rules": len(rules),
            "weeks": len(weeks),
            "metrics": len(metrics) + counted.more_metrics,
            "from": counted.first,
            "to": counted.last,
            "chain_position": counted.chain_position,
            "merkle_root": counted.merkle_root,
            "truncated": counted.truncated,
        },
        "notes": list(_effectiveness_notes(counted, question.min_sample)),
    }
    return {**report, "effectiveness_hash": content_hash(report)}


def _part(standing: Standing) -> dict[str, Any]:
    """What a report says of some of its decisions."""
    return {
        "decisions": standing.decisions,
        "outcomes": standing._asdict(),
        "effectiveness_score": standing.score,
        "success_rate": _success_rate(standing.counts),
        "failure_rate": standing.failure_rate,
        "terminal_coverage": standing.terminal_coverage,
    }


def _success_rate(counts: Counts) -> dict[str, float | None]:
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


def _effectiveness_notes(counted: Counted, min_sample: int) -> Iterator[str]:
    yield from _EFFECTIVENESS_NOTES
    versions = [group.standing for group in counted.by_version.values()]
    if len(versions) > 1 and any(of.terminal < min_sample for of in versions):
        yield _NOT_COMPARED
    seen = (counted.by_version, counted.by_rule, counted.by_week, counted.metrics)
    listed = (MAX_VERSIONS, MAX_RULES, MAX_WEEKS, MAX_METRICS)
    if counted.more_metrics or any(len(of) > most for of, most in zip(seen, listed, strict=True)):
        yield _SHORTENED
    if counted.truncated:
        yield _EARLIER_LEFT_OUT
    yield from without_advice(counted.advisory)
