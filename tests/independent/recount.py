"""A second way to the reports about policies: one decision at a time, in plain Python, from the words of
docs/reference/formulas/effectiveness.md and docs/reference/formulas/confidence.md.

It reads what the service answered of a scope, in chain order: records, execution receipts, outcomes, CRM syncs,
resolutions and erasures, each as its JSON object; and the requests, for facts and rulebooks. It shares no code with the
product, keeps no tables, and starts anew for every report, so that a mistake in the product's counting does not come
back here.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from fractions import Fraction
from functools import cache
from typing import Any

import rfc8785

from tests.independent.comparing import Case, Comparison, compared_of

Json = dict[str, Any]
Entries = Sequence[Mapping[str, Any]]

TERMINAL = ("succeeded", "partial", "failed", "reverted")
OPEN = ("pending", "review")
REPORTED = (*TERMINAL, *OPEN)
VERDICTS = ("yes", "no", "review")

MOST_VERSIONS = 50
MOST_RULES = 200
MOST_WEEKS = 520
MOST_METRICS = 64
MOST_MIDDLES = 16
MOST_METRIC_WEEKS = 104
MOST_SAMPLED = 100_000
DISPOSITIONS = ("let_through", "granted", "blocked", "held", "refused", "expired", "not_executed")

EFFECTIVENESS_NOTES = (
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
GRANTS = (
    "A review that its owner granted counts as let through if a receipt says executed, or if its latest outcome is "
    "terminal and does not say that nothing was executed."
)
NOT_COMPARED = (
    "Versions with fewer let-through terminal outcomes than min_sample are not judged. A higher min_sample judges "
    "fewer versions."
)
NO_FACTS = "Versions are not compared: fewer than two of them have let-through decisions with known facts."
SOME_FACTS = "The comparison of versions leaves out let-through decisions whose facts are unknown."
COMPARED_OF = "Versions are compared by one in {} let-through decisions."
METRICS_OF = "Metrics by version and by week cover one in {} decisions."
MORE_THAN_LISTED = "The report counted more versions, rules, weeks, or metrics than it lists."
EARLIER_LEFT_OUT = "Earlier decisions were left out because of limit."

CONFIDENCE_NOTES = (
    "Outcomes are as callers reported them, unchecked. Decisions without an outcome are not counted.",
    "A blocked or held action has no outcome of its own: how it would have ended is unknown.",
    "A partial outcome counts as no success. Outcomes in pending or review count neither way until a result is "
    "reported.",
    "The formulas assume that outcomes are independent of one another, and that later outcomes resemble earlier ones.",
)
VERDICTS_TOGETHER = "The report mixes decisions of all verdicts. Set verdict to separate them."
NO_PART_IN_STABILITY = (
    "Versions with fewer terminal outcomes than min_sample are left out of policy_stability. A higher min_sample "
    "covers fewer versions."
)
OLDER_LEFT_OUT = "Decisions with older outcomes were left out because of limit."


def hash_of(value: Json) -> str:
    """H(x)."""
    return hashlib.sha256(rfc8785.dumps(value)).hexdigest()


@cache
def _root_after(root: str, leaf: str, position: int) -> str:
    """The rolling root with one entry more; a chain that is recounted again has the same ones again."""
    members = ["strategy", "previous_merkle_root", "leaf_hash", "chain_position"]
    return hash_of(dict(zip(members, ["rolling_sha256_pair_v1", root, leaf, position], strict=True)))


def root_of(entries: Entries) -> str | None:
    """The rolling root of a chain over its entries' leaves; None for none."""
    root = None
    for position, entry in enumerate(entries, 1):
        leaf = _leaf(entry)
        root = leaf if root is None else _root_after(root, leaf, position)
    return root


def _leaf(entry: Mapping[str, Any]) -> str:
    if "audit_chain" in entry:
        leaf: str = entry["audit_chain"]["leaf_hash"]
        return leaf
    # What an operator erases is answered without its place in the chain.
    return hash_of(
        {
            "decision_chain_version": "decision_chain_v1",
            "entry_type": "erasure",
            "decision_id": entry["decision_id"],
            "record_hash": entry["erasure_hash"],
            "receipt_hash": None,
        }
    )


class Told:
    """A decision, every outcome and receipt that was reported of it, in chain order, and its resolution."""

    def __init__(self, position: int, record: Mapping[str, Any]) -> None:
        self.position = position
        self.record = record
        self.outcomes: list[tuple[int, Mapping[str, Any]]] = []
        self.receipts: list[tuple[int, Mapping[str, Any]]] = []
        self.resolution: Mapping[str, Any] | None = None

    @property
    def status(self) -> str | None:
        return self.outcomes[-1][1]["outcome_status"] if self.outcomes else None

    @property
    def executed(self) -> bool | None:
        """action_executed of the latest outcome."""
        return self.outcomes[-1][1].get("action_executed") if self.outcomes else None

    @property
    def answer(self) -> str | None:
        """What its owner answered; None where it was not held, or is held still."""
        return None if self.resolution is None else str(self.resolution["resolution"])

    @property
    def let_through(self) -> bool:
        if self.executed is not None:
            return self.executed
        was_done = self.status in TERMINAL or any(of["execution_status"] == "executed" for _, of in self.receipts)
        return bool(self.record["verdict"] == "yes" or (self.answer == "granted" and was_done))

    @property
    def disposition(self) -> str:
        verdict: str = self.record["verdict"]
        if self.let_through:
            return "let_through"
        if verdict == "no":
            return "blocked"
        if verdict == "yes" or (self.answer == "granted" and self.executed is False):
            return "not_executed"
        return self.answer or "held"

    @property
    def waited(self) -> int:
        """For how many whole seconds it was held."""
        assert self.resolution is not None
        made, ended = (datetime.fromisoformat(at) for at in (self.record["created_at"], self.resolution["recorded_at"]))
        return max(0, (ended - made) // timedelta(seconds=1))

    @property
    def monday(self) -> str:
        made = date.fromisoformat(self.record["created_at"][:10])
        return (made - timedelta(days=made.weekday())).isoformat()

    @property
    def metrics(self) -> Mapping[str, float]:
        latest = self.outcomes[-1][1] if self.outcomes else {}
        return latest.get("observed_metrics") or {}


def told(entries: Entries) -> list[Told]:
    """All decisions of a scope, in chain order."""
    by_id: dict[str, Told] = {}
    for position, entry in enumerate(entries, 1):
        if "outcome_id" in entry:
            by_id[entry["decision_id"]].outcomes.append((position, entry))
        elif "execution_receipt_id" in entry:
            by_id[entry["decision_id"]].receipts.append((position, entry))
        elif "resolution_entry_id" in entry:
            by_id[entry["decision_id"]].resolution = entry
        elif not {"sync_id", "erasure_id"} & entry.keys():
            by_id[entry["decision_id"]] = Told(position, entry)
    return list(by_id.values())


def number_of(decisions: Iterable[Told], *statuses: str | None) -> int:
    """How many of the decisions have one of the statuses as their latest."""
    return sum(1 for decision in decisions if decision.status in statuses)


def share(part: float, whole: int) -> float | None:
    """A share, six decimals; None where there is nothing to share."""
    return None if whole == 0 else round(part / whole, 6)


def wilson(succeeded: int, terminal: int) -> tuple[float, float]:
    """The 95 % Wilson interval, six decimals."""
    if terminal == 0:
        return 0.0, 1.0
    z, rate = 1.959963984540054, succeeded / terminal
    middle = rate + z**2 / (2 * terminal)
    reach = z * math.sqrt(rate * (1 - rate) / terminal + z**2 / (4 * terminal**2))
    whole = 1 + z**2 / terminal
    # Neither end leaves 0 to 1 but by how doubles are rounded.
    low, high = max((middle - reach) / whole, 0.0), min((middle + reach) / whole, 1.0)
    return round(low, 6), round(high, 6)


def rate_of(decisions: Sequence[Told]) -> Json:
    """success_rate: {rate, low, high}."""
    succeeded, terminal = number_of(decisions, "succeeded"), number_of(decisions, *TERMINAL)
    low, high = wilson(succeeded, terminal)
    return {"rate": share(succeeded, terminal), "low": low, "high": high}


def score_of(decisions: Sequence[Told]) -> float | None:
    """effectiveness_score."""
    return share(
        number_of(decisions, "succeeded") + number_of(decisions, "partial") / 2, number_of(decisions, *TERMINAL)
    )


def coverage_of(decisions: Sequence[Told]) -> float | None:
    """terminal_coverage."""
    return share(number_of(decisions, *TERMINAL), len(decisions))


def part_of(decisions: Sequence[Told]) -> Json:
    """What an effectiveness report says of each of its parts."""
    return {
        "decisions": len(decisions),
        "outcomes": {
            **{status: number_of(decisions, status) for status in REPORTED},
            "unreported": number_of(decisions, None),
        },
        "effectiveness_score": score_of(decisions),
        "success_rate": rate_of(decisions),
        "failure_rate": share(number_of(decisions, "failed", "reverted"), number_of(decisions, *TERMINAL)),
        "terminal_coverage": coverage_of(decisions),
    }


def apart(decisions: Iterable[Told], by: Callable[[Told], str]) -> dict[str, list[Told]]:
    """Decisions told apart by a name."""
    found: dict[str, list[Told]] = {}
    for decision in decisions:
        found.setdefault(by(decision), []).append(decision)
    return found


def version_of(decision: Told) -> str:
    """Its policy version."""
    version: str = decision.record["policy_version"]
    return version


def most_first(parts: Mapping[str, Sequence[Any]]) -> list[str]:
    """The names of parts, those with the most decisions first, and of as many by name."""
    return sorted(parts, key=lambda name: (-len(parts[name]), name))


def is_taken(decision: Told, one_of: int) -> bool:
    """Whether a decision is in a sample of one of so many: by its chain position, scattered."""
    scattered = decision.position % 2**20 * 2654435761 % 2**32 // 2**16
    return one_of == 1 or scattered % one_of == 0


def one_of_in(decisions: int, most: int) -> int:
    """Of how many decisions one is taken: the least power of two that leaves no more than so many, about."""
    one_of = 1
    while decisions > most * one_of:
        one_of *= 2
    return one_of


def compared(
    decisions: Sequence[Told],
    requests: Mapping[str, Mapping[str, Any]],
    rulebooks: Sequence[Mapping[str, Any]],
    unknown: Collection[str],
    withheld: Collection[str],
    min_sample: int,
    one_of: int,
    verdict: str | None,
) -> Comparison:
    """The versions beside each other, by their let-through decisions with a terminal outcome, and one verdict."""

    def is_compared(of: Told) -> bool:
        return of.let_through and of.status in TERMINAL and verdict in (None, of.record["verdict"])

    # Two versions let something through: of all decisions, not of those in the sample.
    if len({version_of(of) for of in decisions if is_compared(of)}) < len(("one", "other")):
        return compared_of([], rulebooks, min_sample, 1)
    cases = []
    for of in decisions:
        if is_taken(of, one_of):
            made, name = of.record["created_at"], of.record["decision_id"]
            facts = None if name in unknown else without(facts_of(of, requests), withheld)
            succeeded = of.status == "succeeded"
            cases.append(Case(version_of(of), facts, succeeded, made[:16], of.let_through, is_compared(of)))
    return compared_of(cases, rulebooks, min_sample, one_of, is_judged=True)


def facts_of(decision: Told, requests: Mapping[str, Mapping[str, Any]]) -> Any:
    """The facts that were looked at: those of an adapter, or those sent; none where the request is not at hand."""
    by_adapter = decision.record.get("adapter_facts")
    if by_adapter is not None:
        return by_adapter
    return requests.get(decision.record["decision_id"], {}).get("context", {}).get("inputs", {})


def without(facts: Any, paths: Collection[str]) -> Any:
    """Facts without those that are left out as personal."""
    if not isinstance(facts, dict):
        return facts
    heads = {path for path in paths if "." not in path}
    return {
        name: without(of, [path.partition(".")[2] for path in paths if path.startswith(f"{name}.")])
        for name, of in facts.items()
        if name not in heads
    }


def middles(decisions: Iterable[Told], names: Sequence[str], by: Callable[[Told], str]) -> dict[tuple[str, str], Json]:
    """The lower median and its 95 % interval of each metric, of decisions told apart by a name."""
    values: dict[tuple[str, str], list[float]] = {}
    for decision in decisions:
        for name in decision.metrics.keys() & set(names):
            values.setdefault((name, by(decision)), []).append(decision.metrics[name])
    found = {}
    for key, of in values.items():
        ordered = sorted(of)
        rank = rank_of(len(of))
        found[key] = {
            "name": key[0],
            "part": key[1],
            "decisions": len(of),
            "median": ordered[(len(of) - 1) // 2],
            "low": ordered[rank - 1] if rank else None,
            "high": ordered[-rank] if rank else None,
        }
    return found


@cache
def rank_of(values: int) -> int:
    """The rank, from either end, of the ends of a median's interval; 0 where there is none. Of up to 1,000 values the
    exact one, then that of the normal curve.
    """
    if values > 1000:
        return math.floor((values - 1.959963984540054 * math.sqrt(values)) / 2)
    below, rank = Fraction(0), 0
    while (below := below + Fraction(math.comb(values, rank), 2**values)) <= Fraction(1, 40):
        rank += 1
    return rank


def bounds_of(decisions: Sequence[Told]) -> Json:
    """bounds, over every decided action."""
    through = [decision for decision in decisions if decision.let_through]
    succeeded = number_of(through, "succeeded")
    observed = number_of(through, *TERMINAL)
    unknown, unobservable = len(through) - observed, len(decisions) - len(through)
    low, high = share(succeeded, len(decisions)), share(succeeded + unknown + unobservable, len(decisions))
    return {
        "decisions": len(decisions),
        "observed": observed,
        "succeeded": succeeded,
        "unknown": unknown,
        "unobservable": unobservable,
        "low": 0.0 if low is None else low,
        "high": 1.0 if high is None else high,
    }


def metrics_of(decisions: Iterable[Told]) -> list[Json]:
    """Every metric: how many have it, its least, lower median and greatest value."""
    values: dict[str, list[float]] = {}
    for decision in decisions:
        for name, value in decision.metrics.items():
            values.setdefault(name, []).append(value)
    found = []
    for name in most_first(values):
        of = sorted(values[name])
        found.append(
            {"name": name, "decisions": len(of), "min": of[0], "median": of[(len(of) - 1) // 2], "max": of[-1]}
        )
    return found


def reviews_of(decisions: Iterable[Told]) -> Json:
    """`reviews`, where there are any."""
    held = [of for of in decisions if of.record["verdict"] == "review"]
    if not held:
        return {}
    waited = sorted(of.waited for of in held if of.resolution is not None)
    answers = {name: sum(of.answer == name for of in held) for name in ("granted", "refused", "expired")}
    told = (
        {"median": waited[(len(waited) - 1) // 2], "p90": waited[math.ceil(Fraction(9, 10) * len(waited)) - 1]}
        if waited
        else None
    )
    return {"reviews": {"decisions": len(held), "held": len(held) - len(waited), **answers, "waiting_seconds": told}}


def recommended(decisions: Sequence[Told], min_sample: int, version_below: bool) -> str:
    """The recommendation of an effectiveness report: the first that holds."""
    approved = [decision for decision in decisions if decision.record["verdict"] == "yes"]
    through = [decision for decision in decisions if decision.let_through]
    low = rate_of(through)["low"]
    if not decisions:
        return "no_decisions"
    if number_of(through, *TERMINAL) < min_sample:
        return "collect_outcomes"
    if version_below:
        return "review_version"
    if number_of(approved, *TERMINAL) < len(approved) / 2:
        return "report_outcomes"
    if low >= 0.8:
        return "healthy"
    return "monitor_outcomes" if low >= 0.6 else "review_policy"


def confidence_in(decisions: Sequence[Told]) -> float:
    """confidence of an effectiveness report."""
    if number_of(decisions, *TERMINAL) == 0:
        return 0.0
    approved = [decision for decision in decisions if decision.record["verdict"] == "yes"]
    low, high = wilson(number_of(decisions, "succeeded"), number_of(decisions, *TERMINAL))
    return round((1 - (high - low)) * (coverage_of(approved or decisions) or 0.0), 6)


def effectiveness(
    entries: Entries,
    policy_id: str,
    *,
    policy_version: str | None = None,
    verdict: str | None = None,
    since: str | None = None,
    until: str | None = None,
    limit: int | None = None,
    min_sample: int = 20,
    requests: Mapping[str, Mapping[str, Any]] = {},
    erased: Collection[str] | None = None,
    withheld: Collection[str] = (),
    rulebooks: Iterable[Mapping[str, Any]] | None = None,
    most_sampled: int = MOST_SAMPLED,
) -> Json:
    """The effectiveness report of a policy, over the whole chain of a scope.

    Args:
        entries: What the service answered, in chain order.
        policy_id: The policy.
        policy_version: One of its versions.
        verdict: One verdict.
        since: Only decisions from this timestamp on.
        until: Only decisions before this one.
        limit: How many decisions, the latest in the chain.
        min_sample: How many cases a judgement needs.
        requests: The request of each decision, by the decision's id; facts and rulebooks stand nowhere else.
        erased: The decisions whose facts are not known; by default those that the chain says were erased.
        withheld: The paths of facts that were left out as personal.
        rulebooks: Those that decided for the policy; by default those of the decisions in `entries`.
        most_sampled: How many decisions are looked at whole.
    """
    of_policy = [decision for decision in told(entries) if decision.record["policy_id"] == policy_id]
    chosen = [decision for decision in of_policy if asked_for(decision, policy_version, verdict, since, until)]
    # What versions stop has another verdict than what they let through.
    beside_them = [decision for decision in of_policy if asked_for(decision, policy_version, None, since, until)]
    met_of = one_of_in(len(beside_them), most_sampled)
    truncated = limit is not None and len(chosen) > limit
    if limit is not None and truncated:
        last_left_out = chosen[len(chosen) - limit - 1]
        beside_them = beside_them[beside_them.index(last_left_out) + 1 :]
        chosen = chosen[len(chosen) - limit :]
    versions = apart(chosen, version_of)
    rules = apart(chosen, lambda decision: str(decision.record["evidence"][1]))
    weeks = apart(chosen, lambda decision: decision.monday)
    metrics = metrics_of(chosen)
    if rulebooks is None:
        used = (requests[of.record["decision_id"]] for of in of_policy if of.record["decision_id"] in requests)
        rulebooks = (of["rulebook"] for of in used)
    distinct = list({json.dumps(body, sort_keys=True): body for body in rulebooks}.values())
    unknown = {entry["decision_id"] for entry in entries if "erasure_id" in entry} if erased is None else set(erased)
    one_of = one_of_in(len(chosen), most_sampled)
    every = chosen if verdict is None else beside_them
    comparison, beside, below, footing = compared(
        every, requests, distinct, unknown, withheld, min_sample, one_of if verdict is None else met_of, verdict
    )
    names = [metric["name"] for metric in metrics[:MOST_MIDDLES]]
    sampled = [decision for decision in chosen if is_taken(decision, one_of)]
    dates = sorted(decision.record["created_at"] for decision in chosen)
    listed = (
        (versions, MOST_VERSIONS),
        (rules, MOST_RULES),
        (weeks, MOST_WEEKS),
        (metrics, MOST_METRICS),
    )
    notes = [*EFFECTIVENESS_NOTES]
    if any(of.answer == "granted" for of in chosen):
        notes.append(GRANTS)
    through = {name: [of for of in decisions if of.let_through] for name, decisions in versions.items()}
    small = [of for of in through.values() if number_of(of, *TERMINAL) < min_sample]
    if small and len(versions) > 1:
        notes.append(NOT_COMPARED)
    if beside:
        notes += footing
    if comparison["unknown"]:
        notes.append(SOME_FACTS if beside else NO_FACTS)
    if comparison["sampled_one_of"] > 1:
        notes.append(COMPARED_OF.format(comparison["sampled_one_of"]))
    if one_of > 1:
        notes.append(METRICS_OF.format(one_of))
    if any(len(of) > most for of, most in listed):
        notes.append(MORE_THAN_LISTED)
    if truncated:
        notes.append(EARLIER_LEFT_OUT)
    whole = part_of(chosen)
    told_versions = []
    for name in sorted(most_first(versions), key=lambda name: name not in below)[:MOST_VERSIONS]:
        made = sorted(decision.record["created_at"] for decision in versions[name])
        told_versions.append(
            {
                "policy_version": name,
                "first": made[0],
                "last": made[-1],
                **part_of(versions[name]),
                "below_others": name in below,
                "let_through": part_of(through[name]),
                "compared": beside.get(name),
            }
        )
    listed_versions = [of["policy_version"] for of in told_versions]
    by_version = middles(sampled, names, version_of)
    by_week = middles(sampled, names, lambda decision: decision.monday)
    latest_weeks = sorted({week for _, week in by_week})[-MOST_METRIC_WEEKS:]
    verdicts = apart(chosen, lambda decision: str(decision.record["verdict"]))
    report = {
        "policy_effectiveness_version": "policy_effectiveness_v1",
        "policy_id": policy_id,
        "policy_version": policy_version,
        "verdict": verdict,
        "since": since,
        "until": until,
        "clock": "recorded",
        "effectiveness_score": whole["effectiveness_score"],
        "confidence": confidence_in(chosen),
        "recommendation": recommended(chosen, min_sample, bool(below)),
        "outcomes": whole["outcomes"],
        "success_rate": whole["success_rate"],
        "failure_rate": whole["failure_rate"],
        "review_rate": share(number_of(chosen, "review"), number_of(chosen, *REPORTED)),
        "terminal_coverage": whole["terminal_coverage"],
        "bounds": bounds_of(chosen),
        "versions_below_others": len(below),
        "comparison": comparison,
        "versions": told_versions,
        "versions_by_verdict": [
            {"policy_version": version, "verdict": name, **part_of(of)}
            for version in listed_versions
            for name in VERDICTS
            if (of := [decision for decision in versions[version] if decision.record["verdict"] == name])
        ],
        "dispositions": [
            {"disposition": name, **part_of(of)}
            for name in DISPOSITIONS
            if (of := [decision for decision in chosen if decision.disposition == name])
        ],
        "verdicts": [{"verdict": name, **part_of(verdicts[name])} for name in VERDICTS if name in verdicts],
        **reviews_of(chosen),
        "rules": [{"rule": name, **part_of(rules[name])} for name in most_first(rules)[:MOST_RULES]],
        "weeks": [{"week": name, **part_of(weeks[name])} for name in sorted(weeks)[-MOST_WEEKS:]],
        "metrics": metrics[:MOST_METRICS],
        "metrics_by_version": [
            named(of, "policy_version")
            for name in names
            for of in sorted(
                (of for (metric, _), of in by_version.items() if metric == name),
                key=lambda of: (-of["decisions"], of["part"]),
            )
            if of["part"] in listed_versions
        ],
        "metrics_by_week": [
            named(by_week[name, week], "week") for name in names for week in latest_weeks if (name, week) in by_week
        ],
        "min_sample": min_sample,
        "limit": limit,
        "coverage": {
            "decisions": len(chosen),
            "versions": len(versions),
            "rules": len(rules),
            "weeks": len(weeks),
            "metrics": len(metrics),
            "from": dates[0] if dates else None,
            "to": dates[-1] if dates else None,
            "chain_position": len(entries),
            "merkle_root": root_of(entries),
            "truncated": truncated,
        },
        "notes": notes,
    }
    return {**report, "effectiveness_hash": hash_of(report)}


def asked_for(
    decision: Told, policy_version: str | None, verdict: str | None, since: str | None, until: str | None
) -> bool:
    """Whether a question looks at a decision; timestamps are in order as their texts are."""
    record = decision.record
    return (
        policy_version in (None, version_of(decision))
        and verdict in (None, record["verdict"])
        and (since is None or since <= record["created_at"])
        and (until is None or record["created_at"] < until)
    )


def named(middle: Json, part: str) -> Json:
    """A middle under the name of what it is of."""
    return {(part if name == "part" else name): value for name, value in middle.items()}


def confidence(
    entries: Entries,
    policy_id: str,
    *,
    policy_version: str | None = None,
    verdict: str | None = None,
    since: str | None = None,
    until: str | None = None,
    action: str | None = None,
    limit: int | None = None,
    min_sample: int = 20,
) -> Json:
    """The confidence report of a policy, over the whole chain of a scope."""
    policy = [
        decision
        for decision in told(entries)
        if decision.outcomes
        and decision.record["policy_id"] == policy_id
        and asked_for(decision, None, verdict, since, until)
        and action in (None, decision.record["action"])
    ]
    chosen = [decision for decision in policy if policy_version in (None, version_of(decision))]
    chosen.sort(key=lambda decision: decision.outcomes[-1][0])
    truncated = limit is not None and len(chosen) > limit
    if limit is not None and truncated:
        chosen = chosen[len(chosen) - limit :]
    versions = apart(chosen, version_of)
    ends = [rate_of(of)["high"] for of in versions.values() if number_of(of, *TERMINAL) >= min_sample]
    stability = round(1 - max(0.0, rate_of(policy)["low"] - min(ends)), 6) if ends else None
    score = rate_of(chosen)["low"]
    level, recommendation = _level(score, stability, verdict, number_of(chosen, *TERMINAL) >= min_sample)
    dates = sorted(outcome["reported_at"] for decision in chosen for _, outcome in decision.outcomes)
    notes = [*CONFIDENCE_NOTES]
    if verdict is None:
        notes.append(VERDICTS_TOGETHER)
    if len(ends) < len(versions):
        notes.append(NO_PART_IN_STABILITY)
    if truncated:
        notes.append(OLDER_LEFT_OUT)
    report = {
        "decision_confidence_version": "decision_confidence_v1",
        "policy_id": policy_id,
        "policy_version": policy_version,
        "verdict": verdict,
        "since": since,
        "until": until,
        "clock": "recorded",
        "action": action,
        "score": score,
        "level": level,
        "similar_decisions": len(chosen),
        "policy_stability": stability,
        "recommendation": recommendation,
        "outcomes": {status: number_of(chosen, status) for status in REPORTED},
        "success_rate": rate_of(chosen),
        "policy_success_rate": rate_of(policy),
        "versions": [
            {
                "policy_version": name,
                "outcomes": {status: number_of(versions[name], status) for status in REPORTED},
                "success_rate": rate_of(versions[name]),
            }
            for name in most_first(versions)[:MOST_VERSIONS]
        ],
        "min_sample": min_sample,
        "limit": limit,
        "coverage": {
            "decisions": len(chosen),
            "versions": len(versions),
            "from": dates[0] if dates else None,
            "to": dates[-1] if dates else None,
            "truncated": truncated,
        },
        "notes": notes,
    }
    return {**report, "confidence_hash": hash_of(report)}


def _level(score: float, stability: float | None, verdict: str | None, enough: bool) -> tuple[str, str]:
    """level, and the recommendation that goes with it."""
    if not enough:
        return "insufficient", "collect_outcomes"
    if score >= 0.8 and (stability is None or stability >= 0.95):
        ending = {"yes": "_proceed", "no": "_block", "review": "_review", None: ""}[verdict]
        return "high", f"high_confidence{ending}"
    return ("medium", "monitor_outcomes") if score >= 0.6 else ("low", "review_policy")


def roll_up(scopes: Mapping[str, Entries]) -> list[Json]:
    """What came of the decisions of all policies: a row for each, by scope and policy."""
    rows = []
    for scope in sorted(scopes):
        policies = apart(told(scopes[scope]), lambda decision: str(decision.record["policy_id"]))
        for policy_id in sorted(policies):
            whole = part_of(policies[policy_id])
            rate = whole["success_rate"]
            rows.append(
                {
                    "scope": scope,
                    "policy_id": policy_id,
                    "decisions": whole["decisions"],
                    **whole["outcomes"],
                    "effectiveness_score": whole["effectiveness_score"],
                    "success_rate": rate["rate"],
                    "low": rate["low"],
                    "high": rate["high"],
                    "terminal_coverage": whole["terminal_coverage"],
                }
            )
    return rows
