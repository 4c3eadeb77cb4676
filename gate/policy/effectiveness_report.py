"""The effectiveness report, a JSON object that ends in its own hash.

    report = effectiveness_report(counted, EffectivenessQuestion("pricing_exception"))
    report["effectiveness_hash"] == content_hash(report without effectiveness_hash)

It contains only dates of the decisions it covers: the same ledger gives the same report, byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from gate.encoding.canonical import content_hash
from gate.labels import EFFECTIVENESS
from gate.policy import effectiveness
from gate.policy.effectiveness import DISPOSITIONS, Counted, Effectiveness, Footing, Middle, Standing
from gate.policy.notes import by_clock, without_advice
from gate.policy.questions import VERDICTS, EffectivenessQuestion
from gate.policy.reports import MAX_METRICS, MAX_RULES, MAX_VERSIONS, MAX_WEEKS, success_rate
from gate.policy.standardization import Comparison
from gate.policy.versions import Compared, sentences

MAX_MIDDLES: Final = 16
"""The most metrics that an effectiveness report has by version and by week, those with the most decisions first."""

MAX_METRIC_WEEKS: Final = 104
"""The number of latest weeks for which it has them."""

MAX_NAMED: Final = 10
"""The most facts that a note lists."""

_NOTES: Final = (
    "Outcomes are as callers reported them, unchecked. Each decision counts by its latest outcome.",
    "A partial outcome counts half in effectiveness_score, and elsewhere as neither a success nor a failure. "
    "Outcomes in pending or review count neither way until a result is reported.",
    "How a blocked or held action would have ended is unknown: success_rate leaves it out, and bounds allow for "
    "every possible result.",
    "An action counts as let through according to action_executed of its outcome, or to the verdict if the outcome "
    "does not say.",
    "Versions are compared by let-through actions among cases with like facts. Cases may still differ in ways that "
    "no fact records. Rules and weeks cover different cases.",
    "Outcomes arrive after decisions, and failures often arrive late: the latest weeks can look better now, and "
    "less covered, than they will later.",
    "The report assumes that outcomes are independent of one another, except those of decisions made in one "
    "minute, and that later outcomes resemble earlier ones.",
)
_GRANTS: Final = (
    "A review that its owner granted counts as let through if a receipt says executed, or if its latest outcome is "
    "terminal and does not say that nothing was executed."
)
_NOT_COMPARED: Final = (
    "Versions with fewer let-through terminal outcomes than min_sample are not judged. A higher min_sample judges "
    "fewer versions."
)
_NO_FACTS: Final = "Versions are compared without adjustment: no examined fact separates their let-through decisions."
_FACTS_LEFT_OUT: Final = (
    "Versions are compared by {facts}, not by {others}: with more facts, too few let-through cases would have a "
    "like one of another version. The effect of the facts left out is not removed from the rates."
)
_WEAKER: Final = "Versions are not compared by {others}: the chosen facts have more to do with the outcome."
_IDS: Final = "Versions are not compared by {others}: cases of different versions hardly ever share an id or a date."
_PARTING: Final = (
    "By {others} alone, fewer than half of the let-through cases have a like one of another version. If a fact "
    "does not matter for the outcome, leave it out of the map."
)
_POOLED: Final = "The rarer texts of {others} count as alike."
_NO_CASES: Final = "Versions are not compared: fewer than two of them have let-through decisions with known facts."
_UNKNOWN: Final = "The comparison of versions leaves out let-through decisions whose facts are unknown."
_SAMPLED: Final = "Versions are compared by one in {one_of} let-through decisions."
_METRICS_SAMPLED: Final = "Metrics by version and by week cover one in {one_of} decisions."
_SHORTENED: Final = "The report counted more versions, rules, weeks, or metrics than it lists."
_EARLY: Final = "{decisions} an outcome that is dated before the decision. Check these dates."
_EARLIER_LEFT_OUT: Final = "Earlier decisions were left out because of limit."


def effectiveness_report(counted: Counted, question: EffectivenessQuestion) -> dict[str, Any]:
    """The effectiveness report of a policy (`policy_effectiveness_v1`).

    Args:
        counted: The counts of the decisions that the question selects.
        question: The question.

    Returns:
        The report, with `effectiveness_hash` over its other fields.
    """
    standing = counted.standing
    found = effectiveness.assess(counted, min_sample=question.min_sample)
    listed = _listed_versions(counted, found)
    # Imported cases need not have one of these.
    verdicts = (*VERDICTS, *sorted({*counted.by_verdict} - {*VERDICTS}))
    report = {
        "policy_effectiveness_version": EFFECTIVENESS,
        **question.asked(),
        "effectiveness_score": found.score,
        "confidence": found.confidence,
        "recommendation": found.recommendation,
        "outcomes": standing._asdict(),
        "success_rate": success_rate(standing.counts),
        "failure_rate": standing.failure_rate,
        "review_rate": standing.review_rate,
        "terminal_coverage": standing.terminal_coverage,
        "bounds": effectiveness.bounds(standing, counted.acted)._asdict(),
        "versions_below_others": len(found.below_others),
        "comparison": _comparison(counted),
        "versions": [_version(version, counted, found) for version in listed],
        "versions_by_verdict": [
            {"policy_version": version, "verdict": verdict, **_part(counted.by_version_and_verdict[version, verdict])}
            for version in listed
            for verdict in verdicts
            if (version, verdict) in counted.by_version_and_verdict
        ],
        "verdicts": _named("verdict", _in_order(verdicts, counted.by_verdict)),
        "dispositions": _named(
            "disposition",
            _in_order((*DISPOSITIONS, effectiveness.UNKNOWN), counted.by_disposition),
        ),
        **_reviews(counted),
        "rules": _named("rule", sorted(counted.by_rule.items(), key=lambda item: (-item[1].decisions, item[0])))[
            :MAX_RULES
        ],
        "weeks": _named("week", sorted(counted.by_week.items()))[-MAX_WEEKS:],
        "metrics": [metric._asdict() for metric in _ordered_metrics(counted)[:MAX_METRICS]],
        "metrics_by_version": [_middle("policy_version", of) for of in counted.metrics_by_version if of.part in listed],
        "metrics_by_week": [_middle("week", of) for of in counted.metrics_by_week],
        "min_sample": question.min_sample,
        "limit": question.limit,
        "coverage": {
            "decisions": standing.decisions,
            "versions": len(counted.by_version),
            "rules": len(counted.by_rule),
            "weeks": len(counted.by_week),
            "metrics": len(counted.metrics) + counted.more_metrics,
            "from": counted.first,
            "to": counted.last,
            "chain_position": counted.chain_position,
            "merkle_root": counted.merkle_root,
            "truncated": counted.truncated,
        },
        "notes": list(_notes(counted, question)),
    }
    return {**report, "effectiveness_hash": content_hash(report)}


def _listed_versions(counted: Counted, found: Effectiveness) -> list[str]:
    """Those below the others first, then those with the most decisions."""
    decisions = {version: group.standing.decisions for version, group in counted.by_version.items()}
    ordered = sorted(decisions, key=lambda version: (version not in found.below_others, -decisions[version], version))
    return ordered[:MAX_VERSIONS]


def _version(version: str, counted: Counted, found: Effectiveness) -> dict[str, Any]:
    group, compared = counted.by_version[version], counted.compared.get(version)
    return {
        "policy_version": version,
        "first": group.first,
        "last": group.last,
        **_part(group.standing),
        "below_others": version in found.below_others,
        "let_through": _part(counted.let_through.get(version, Standing())),
        "compared": None if compared is None else _compared(compared),
    }


def _compared(of: Compared) -> dict[str, Any]:
    return {
        "raw": _beside(of.raw),
        "standardized": None if of.standardized is None else _beside(of.standardized),
        "admitted": None if of.admitted is None else _beside(of.admitted),
        "share": of.share,
        "raw_below_others": of.raw_is_below,
        "like_below_others": of.like_is_below,
        "admits_worse": of.admits_worse,
        "disagrees": of.disagrees,
    }


def _beside(of: Comparison) -> dict[str, Any]:
    return {
        "success_rate": of.rate,
        "others": of.others,
        "difference": of.difference._asdict(),
        "p_value": float(f"{of.p_value:.6g}"),
        "cases": of.cases,
        "other_cases": of.other_cases,
    }


def _comparison(counted: Counted) -> dict[str, Any]:
    return {
        "of": effectiveness.LET_THROUGH,
        "facts": list(counted.footing.facts),
        "decisions": counted.footing.decisions,
        "unknown": counted.footing.unknown,
        "strata": counted.footing.strata,
        "sampled_one_of": counted.footing.sampled_one_of,
        "design_effect": counted.footing.design_effect,
        "disagreements": sum(of.disagrees for of in counted.compared.values()),
        "sentences": sentences(counted.compared),
    }


def _in_order(names: Sequence[str], parts: Mapping[str, Standing]) -> list[tuple[str, Standing]]:
    return [(name, parts[name]) for name in names if name in parts]


def _named(name: str, parts: Iterable[tuple[str, Standing]]) -> list[dict[str, Any]]:
    return [{name: part, **_part(of)} for part, of in parts]


def _part(standing: Standing) -> dict[str, Any]:
    """What a report says of some of its decisions."""
    return {
        "decisions": standing.decisions,
        "outcomes": standing._asdict(),
        "effectiveness_score": standing.score,
        "success_rate": success_rate(standing.counts),
        "failure_rate": standing.failure_rate,
        "terminal_coverage": standing.terminal_coverage,
    }


def _ordered_metrics(counted: Counted) -> list[effectiveness.Metric]:
    return sorted(counted.metrics, key=lambda metric: (-metric.decisions, metric.name))


def _reviews(counted: Counted) -> dict[str, Any]:
    of = counted.reviews
    if of is None or not of.decisions:
        return {}
    answers = {"held": of.held, "granted": of.granted, "refused": of.refused, "expired": of.expired}
    waited = {"median": of.median, "p90": of.p90} if of.resolved else None
    return {"reviews": {"decisions": of.decisions, **answers, "waiting_seconds": waited}}


def _middle(part: str, of: Middle) -> dict[str, Any]:
    return {
        "name": of.name,
        part: of.part,
        "decisions": of.decisions,
        "median": of.median,
        "low": of.low,
        "high": of.high,
    }


def _footing(of: Footing) -> Iterator[str]:
    if not (of.facts or of.left_out):
        yield _NO_FACTS
    facts = _enumerated(of.facts) or "no fact"
    noted = {
        _FACTS_LEFT_OUT: of.left_out,
        _WEAKER: of.weaker,
        _IDS: of.ids,
        _PARTING: of.parting,
        _POOLED: of.pooled,
    }
    yield from (note.format(facts=facts, others=_enumerated(others)) for note, others in noted.items() if others)


def _enumerated(names: Sequence[str]) -> str:
    listed = [*names[:MAX_NAMED], *([f"{len(names) - MAX_NAMED} more"] if len(names) > MAX_NAMED else [])]
    return " and ".join([", ".join(listed[:-1]), listed[-1]]) if len(listed) > 1 else "".join(listed)


def _notes(counted: Counted, question: EffectivenessQuestion) -> Iterator[str]:
    yield from _NOTES
    if counted.reviews is not None and counted.reviews.granted:
        yield _GRANTS
    several = len(counted.by_version) > 1
    let_through = [counted.let_through.get(version, Standing()) for version in counted.by_version]
    if several and any(of.terminal < question.min_sample for of in let_through):
        yield _NOT_COMPARED
    if counted.compared:
        yield from _footing(counted.footing)
    if counted.footing.unknown:
        yield _UNKNOWN if counted.compared else _NO_CASES
    if counted.footing.sampled_one_of > 1:
        yield _SAMPLED.format(one_of=counted.footing.sampled_one_of)
    if counted.middles_one_of > 1:
        yield _METRICS_SAMPLED.format(one_of=counted.middles_one_of)
    seen = (counted.by_version, counted.by_rule, counted.by_week, counted.metrics)
    listed = (MAX_VERSIONS, MAX_RULES, MAX_WEEKS, MAX_METRICS)
    if counted.more_metrics or any(len(of) > most for of, most in zip(seen, listed, strict=True)):
        yield _SHORTENED
    if counted.truncated:
        yield _EARLIER_LEFT_OUT
    yield from by_clock(question.clock)
    if counted.early:
        yield _EARLY.format(decisions="1 decision has" if counted.early == 1 else f"{counted.early:,} decisions have")
    yield from without_advice(counted.advisory)
