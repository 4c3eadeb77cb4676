"""What would have been decided: each decision once more, as the gate's own evaluation says."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import orjson
import pytest

from gate.decisions.again.counterfactuals import merge_patch
from gate.encoding.canonical import content_hash
from gate.errors import OperatorError, RulebookRefused
from gate.ids import timestamp
from gate.instance.instance import Instance
from gate.ledger.access.authority import Authority, Scope
from gate.policy.questions import CounterfactualsQuestion
from gate.rulebooks.evaluation import Evaluator, Outcome
from gate.rulebooks.rulebook import load
from tests.support.samples import sample_request, sample_rulebook
from tests.support.torture import size
from tests.workbench.support import Chain, bring_together, bring_up, claim_request, claim_rulebook, shared
from workbench.engines.counterfactuals import MAX_TRANSITIONS, CounterfactualReport, answer, counterfactuals
from workbench.engines.findings import approvals
from workbench.lake.entries import Personal
from workbench.lake.fresh import fresh
from workbench.lake.manifest import Manifest
from workbench.lake.reader import Snapshot

Step = Callable[..., Manifest]

FACTS: list[dict[str, Any]] = [
    {"discount_percent": 10, "margin_percent": 22},
    {"discount_percent": 10, "margin_percent": 14.9},
    {"discount_percent": 40, "margin_percent": 22},
    {"discount_percent": True, "margin_percent": 22},
    {"discount_percent": "10", "margin_percent": 22},
    {"discount_percent": None, "margin_percent": 22},
    {"margin_percent": 22},
    {"discount_percent": 15.0, "margin_percent": 15, "customer": {"tier": "gold", "tags": ["vip", 1]}},
    {"discount_percent": 15, "margin_percent": 15, "customer": {"tier": "new", "tags": []}},
    {"discount_percent": 15, "margin_percent": 15, "customer": "gold"},
]


def newer(version: str = "2026-09-01") -> dict[str, Any]:
    """Another version, which tests facts that the sample does not know."""
    body = sample_rulebook()
    body["version"] = version
    body["rules"].append(
        {
            "rule_id": "approve_gold",
            "priority": 200,
            "condition": {
                "any": [
                    {"field": "customer.tier", "operator": "eq", "value": "gold"},
                    {"field": "customer.tags", "operator": "contains", "value": "vip"},
                    {"field": "customer", "operator": "eq", "value": {"tier": "late"}},
                ]
            },
            "outcome": {
                "decision": "yes",
                "verdict": "APPROVE",
                "action": "approve_gold",
                "reason_code": "GOLD_CUSTOMER",
            },
        }
    )
    return body


def grown(instance: Instance, authority: Authority) -> Chain:
    """Decisions about every one of `FACTS` under two versions, with an outcome here and there."""
    chain = Chain(instance, authority, step=timedelta(days=3))
    for body in (sample_rulebook(), newer("2026-06-12")):
        for number, facts in enumerate(FACTS):
            request = sample_request(**facts)
            request["rulebook"] = body
            decision_id = chain.decide(request)
            if number % 3 == 0:
                chain.outcome(decision_id, ("succeeded", "failed")[number % 2])
    return chain


@pytest.fixture
def chain(instance: Instance, authority: Authority) -> Chain:
    """A chain of them, for tests that append to it."""
    return grown(instance, authority)


@dataclass(frozen=True, slots=True)
class Seen:
    """A chain of them that no test appends to, and what the engines see of it."""

    place: str
    records: list[Mapping[str, Any]]
    requests: list[Any]
    snapshot: Snapshot


KEY = ("verdict", "rule", "then_verdict", "then_rule")
PLACES: list[str] = ["tail", "exported", "both"]


@pytest.fixture(scope="module", params=PLACES)
def all_seen(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    """The chain, wherever its rows are read from."""
    with shared(tmp_path_factory.mktemp("seen") / "home") as made:
        chain = grown(made.instance, made.authority)
        if request.param != "tail":
            bring_up(made.instance, made.lake, made.scope, batch=9)
        if request.param == "both":
            bring_together(made.lake, made.scope)
            chain.outcome(chain.decided[1], "reverted")
        gate = made.instance.gate()
        records = [gate.decision(made.authority, decision_id) for decision_id in chain.decided]
        yield Seen(
            request.param,
            [record for record in records if record is not None],
            [gate.request_body(made.authority, decision_id) for decision_id in chain.decided],
            fresh(made.instance.ledger, made.lake, made.scope.scope_id, Personal()),
        )


@pytest.fixture
def seen(all_seen: Seen) -> Snapshot:
    """What the engines see of it."""
    return all_seen.snapshot


@pytest.fixture(scope="module", params=PLACES)
def resolved(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Snapshot]:
    """Seven held decisions of which four are granted, one is refused and one expired, wherever they are read from."""
    with shared(tmp_path_factory.mktemp("resolved") / "home") as made:
        chain = Chain(made.instance, made.authority)
        held = [chain.decide(discount_percent=number, margin_percent=22) for number in range(16, 23)]
        chain.decide(discount_percent=10, margin_percent=22)
        for decision_id, answer in zip(held, (*["granted"] * 4, "refused"), strict=False):
            chain.resolve(decision_id, answer)
        if request.param != "tail":
            bring_up(made.instance, made.lake, made.scope, batch=3)
        if request.param == "both":
            bring_together(made.lake, made.scope)
        chain.resolve(held[5], "expired")
        yield fresh(made.instance.ledger, made.lake, made.scope.scope_id, Personal())


def test_a_report_says_how_owners_resolved_the_held_decisions(resolved: Snapshot) -> None:
    body = asked(resolved, rulebook=higher_limit(18)).body
    assert body["reviews"] == [
        {"then_verdict": "yes", "decisions": 3, "held": 0, "granted": 3, "refused": 0, "expired": 0},
        {"then_verdict": "review", "decisions": 4, "held": 1, "granted": 1, "refused": 1, "expired": 1},
    ]
    assert (
        approvals(body)[1] == "Of 3 decisions that had been held and would be approved, owners granted 3 and refused 0."
    )
    report = asked(resolved, rulebook=higher_limit(30))
    sentence = (
        "Of 7 decisions that had been held and would be approved, owners granted 4 and refused 1; 1 expired "
        "unanswered; 1 is not resolved."
    )
    assert approvals(report.body)[1] == sentence
    assert sentence in repr(report)
    stricter = asked(resolved, patch={"margin_percent": 3}).body
    assert approvals(stricter)[1].startswith("Of 7 decisions that had been held and would be refused, owners granted 4")


def test_a_report_about_no_held_decision_says_nothing_of_owners(resolved: Snapshot) -> None:
    body = asked(resolved, verdict="yes").body
    assert "reviews" not in body
    assert len(approvals(body)) == 1


def higher_limit(percent: int) -> dict[str, Any]:
    """Another version of the sample, which approves discounts up to so many percent."""
    body = sample_rulebook()
    body["version"] = f"limit-{percent}"
    body["rules"][1]["condition"]["all"][0]["value"] = percent
    return body


def asked(snapshot: Snapshot, **arguments: Any) -> CounterfactualReport:
    """The report, whose hash is that of the rest of it."""
    report = counterfactuals(snapshot, "pricing_exception", **arguments)
    body = report.to_dict()
    assert body["counterfactual_hash"] == content_hash(
        {name: value for name, value in body.items() if name != "counterfactual_hash"}
    )
    assert body["simulation_only"] is True
    assert body["authorizes_mutation"] is False
    return report


def rule_of(outcome: Outcome) -> str:
    """What decided, as evidence names it."""
    if outcome.status == "needs_input":
        return "schema:failed"
    return "rule:default" if outcome.matched_rule_id is None else f"rule:{outcome.matched_rule_id}"


@dataclass(frozen=True, slots=True)
class Decided:
    """What a decision was asked, by whose rules it was made, and what came of it."""

    facts: Any
    rules: Evaluator
    verdict: str
    rule: str


def decided_in(seen: Seen) -> list[Decided]:
    """The decisions of the chain, as the ledger has them."""
    own = {body["version"]: load(body).evaluator for body in (sample_rulebook(), newer("2026-06-12"))}
    return [
        Decided(request["context"]["inputs"], own[record["policy_version"]], record["verdict"], record["evidence"][1])
        for record, request in zip(seen.records, seen.requests, strict=True)
    ]


def expected(decisions: list[Decided], rules: Evaluator | None, patch: dict[str, Any]) -> Counter[Any]:
    """What became what, and how often, by evaluating single facts; under their own rules if none are given."""
    found: Counter[Any] = Counter()
    for decision in decisions:
        then = (rules or decision.rules).decide(merge_patch(decision.facts, patch))
        found[decision.verdict, decision.rule, then.decision, rule_of(then)] += 1
    return found


def told(report: CounterfactualReport) -> Counter[Any]:
    """What the report says became what."""
    names = ("verdict", "rule", "then_verdict", "then_rule")
    transitions = report.to_dict()["transitions"]
    return Counter({tuple(of[name] for name in names): of["decisions"] for of in transitions})


PATCHES: list[dict[str, Any]] = [
    {},
    {"margin_percent": 10},
    {"margin_percent": None},
    {"discount_percent": "many"},
    {"customer": {"tier": "gold"}},
    {"customer": {"tags": None}},
    {"customer": {"tier": "late", "tags": None}},
    {"customer": None},
    {"customer": [1]},
    {"nobody": {"asks": True}},
]


@pytest.mark.heavy
@pytest.mark.parametrize("other", [None, newer()], ids=["own", "another"])
def test_every_decision_is_made_again_as_the_gate_would(all_seen: Seen, other: Any) -> None:
    decisions = decided_in(all_seen)
    rules = None if other is None else load(other).evaluator
    # In the short form every patch on every other of what is read and decided by, so that each has half of them.
    first = PLACES.index(all_seen.place) + (other is None)
    for patch in size(PATCHES[first % 2 :: 2], PATCHES):
        report = asked(all_seen.snapshot, rulebook=other, patch=patch)
        assert told(report) == expected(decisions, rules, patch), patch
        assert (report.body["decisions"], report.body["redecided"], report.body["unknown"]) == (20, 20, 0)


def test_under_the_rules_that_decided_nothing_changes(seen: Snapshot) -> None:
    report = asked(seen)
    assert report.body["changed"] == 0
    assert report.body["verdicts"]["before"] == report.body["verdicts"]["after"]
    assert report.decisions.collect().height == 0


def test_the_decisions_behind_a_transition_are_told_with_what_came_of_them(all_seen: Seen) -> None:
    report = asked(all_seen.snapshot, patch={"margin_percent": 10})
    behind = report.decisions.collect()
    assert behind.height == report.body["changed"] > 0
    assert set(behind["decision_id"]) <= {record["decision_id"] for record in all_seen.records}
    assert behind["position"].is_sorted()
    for of in report.to_dict()["transitions"]:
        assert len(of["decision_ids"]) == min(of["decisions"], 10)
        assert sum(of["outcomes"].values()) == of["decisions"]
        assert of["decision_ids"] == sorted(of["decision_ids"])
    changed = [of for of in report.to_dict()["transitions"] if of["changed"]]
    assert {id_ for of in changed for id_ in of["decision_ids"]} == set(behind["decision_id"])
    statuses = Counter(behind["outcome_status"].to_list())
    assert sum(of["outcomes"]["succeeded"] for of in changed) == statuses["succeeded"]


@pytest.mark.heavy
def test_a_slice_is_looked_at(all_seen: Seen) -> None:
    seen, records = all_seen.snapshot, all_seen.records
    moments = sorted(record["created_at"] for record in records)
    yes = [record for record in records if record["verdict"] == "yes"]
    assert asked(seen, verdict="yes").body["decisions"] == len(yes)
    assert asked(seen, policy_version="2026-06-12").body["decisions"] == 10
    never = CounterfactualsQuestion("pricing_exception", policy_version="never")
    assert answer(seen, never).body["decisions"] == 0
    for limit, truncated in ((1, True), (19, True), (20, False), (21, False)):
        body = asked(seen, limit=limit).body
        assert (body["decisions"], body["coverage"]["truncated"]) == (min(limit, 20), truncated)
        assert body["coverage"]["from"] == moments[-min(limit, 20)]
    whole = asked(seen).decisions
    assert whole.collect().height == 0
    middle = seen.cases().select("created_at").collect()["created_at"].sort()[7]
    since, until = asked(seen, since=middle).body, asked(seen, until=middle).body
    assert (since["decisions"], until["decisions"]) == (13, 7)
    assert (since["since"], until["until"]) == (timestamp(middle), timestamp(middle))
    assert since["coverage"]["from"] == timestamp(middle)


LARGE: list[tuple[str, Any, list[Any]]] = [
    ("contains", 1e16, [[1e16], [1e16 + 2], [1e20]]),
    ("eq", [1e16], [[1e16], 1e16, []]),
    ("in", [[1e20], {"a": [1e16]}, -1e20], [[1e20], {"a": [1e16]}, -1e20, 1e20]),
    ("gte", 1e20, [1e20, 1e16, 1e21]),
    ("neq", {"a": float(2**53)}, [{"a": float(2**53)}, {"a": 2**53 - 1}]),
]


@pytest.mark.parametrize("versions", [1, 2], ids=["one version", "two versions"])
@pytest.mark.parametrize(("operator", "value", "facts"), LARGE, ids=[operator for operator, *_ in LARGE])
def test_a_rulebook_that_tests_numbers_beyond_the_safe_integers_is_read_as_it_was_sent(
    instance: Instance,
    authority: Authority,
    scope: Scope,
    lake: Path,
    export: Step,
    operator: str,
    value: Any,
    facts: list[Any],
    versions: int,
) -> None:
    body = sample_rulebook()
    body["input_schema"] = {"required": [], "properties": {}}
    body["rules"][0]["condition"] = {"field": "n", "operator": operator, "value": value}
    chain = Chain(instance, authority)
    for version in range(versions):
        for fact in facts:
            chain.decide({**sample_request(n=fact), "rulebook": {**body, "version": str(version)}})
    for _ in range(2):
        snapshot = fresh(instance.ledger, lake, scope.scope_id, Personal())
        told_ = asked(snapshot).body
        assert (told_["redecided"], told_["changed"]) == (len(facts) * versions, 0)
        assert 0 < told_["verdicts"]["after"]["no"] < told_["redecided"]
        export()


def test_what_is_not_known_is_not_guessed(
    instance: Instance, scope: Scope, chain: Chain, lake: Path, export: Step
) -> None:
    export()
    chain.erase(chain.decided[0])
    body = asked(fresh(instance.ledger, lake, scope.scope_id, Personal())).body
    assert (body["decisions"], body["redecided"], body["unknown"]) == (20, 19, 1)
    export(personal=Personal.of(["inputs.customer"]))
    personal = Personal.of(["inputs.customer"])
    body = asked(fresh(instance.ledger, lake, scope.scope_id, personal), rulebook=newer()).body
    assert body["unknown"] == 1 + sum("customer" in facts for facts in FACTS) * 2
    body = asked(fresh(instance.ledger, lake, scope.scope_id, personal), patch={"customer": None}).body
    assert body["unknown"] == 1


def test_facts_that_an_adapter_made_are_decided_over_again(
    instance: Instance, authority: Authority, scope: Scope, lake: Path, export: Step
) -> None:
    chain = Chain(instance, authority)
    given: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({}, {}),
        ({"refunded_minor": 9000}, {}),
        ({}, {"amount_minor": 6000}),
        ({"captured_minor": None}, {}),
        ({}, {"evidence": ["forged"]}),
        ({}, {"amount_minor": 4999}),
    ]
    for payment, claim in given:
        chain.decide(claim_request(payment, claim))
    chain.decide(discount_percent=10, margin_percent=22)
    export()
    chain.erase(chain.decided[5])
    stricter = claim_rulebook(version="2")
    stricter["rules"][0]["condition"]["value"] = 40
    patched: tuple[tuple[Any, dict[str, Any]], ...] = (
        (None, {}),
        (None, {"amount": 60}),
        (None, {"evidence": None}),
        (stricter, {}),
    )
    for body, patch in patched:
        expected_: Counter[Any] = Counter()
        for decision_id in chain.decided[:5]:
            record = instance.gate().decision(authority, decision_id)
            assert record is not None
            then = load(body or claim_rulebook()).evaluator.decide(merge_patch(record["adapter_facts"], patch))
            expected_[record["verdict"], record["evidence"][1], then.decision, rule_of(then)] += 1
        seen_now = fresh(instance.ledger, lake, scope.scope_id, Personal())
        report = counterfactuals(seen_now, "claims", patch=patch, rulebook=body)
        assert told(report) == expected_
        assert (report.body["decisions"], report.body["unknown"]) == (6, 1)
    assert len(expected_) > 2


def test_a_policy_without_decisions_gives_an_empty_report(seen: Snapshot) -> None:
    report = answer(seen, CounterfactualsQuestion("nothing", patch={"a": 1}))
    assert (report.body["decisions"], report.body["changed"], report.body["transitions"]) == (0, 0, [])
    assert report.body["coverage"]["from"] is None
    of_nothing = newer() | {"rulebook_id": "nothing"}
    assert answer(seen, CounterfactualsQuestion("nothing", rulebook=of_nothing)).frame.height == 0
    report.plot().to_dict()


def test_a_rulebook_that_is_none_is_refused(seen: Snapshot) -> None:
    with pytest.raises(RulebookRefused) as caught:
        counterfactuals(seen, "pricing_exception", rulebook={"rules": []})
    assert caught.value.code == "RULEBOOK_INVALID"


def test_facts_that_went_since_the_lake_was_opened_are_told_of(
    chain: Chain, export: Step, snapshot: Callable[[], Snapshot]
) -> None:
    export()
    opened = snapshot()
    chain.erase(chain.decided[0])
    export()
    with pytest.raises(OperatorError) as caught:
        counterfactuals(opened, "pricing_exception")
    assert caught.value.code == "LAKE_MOVED_ON"
    assert asked(snapshot()).body["unknown"] == 1


def test_the_report_shows_itself(seen: Snapshot) -> None:
    report = asked(seen, patch={"margin_percent": 10})
    title = " ".join(report.plot().to_dict()["title"]["text"])
    changed, whole = report.body["verdict_changed"], report.body["redecided"]
    assert title.startswith(f"{changed} of {whole} decisions by pricing_exception would get another verdict (")
    assert "&lt;b&gt;" in replace(report, body={**report.body, "policy_id": "<b>"})._repr_html_()
    assert report.frame.height == len(report.body["transitions"]) <= MAX_TRANSITIONS
    assert orjson.loads(orjson.dumps(report.to_dict())) == copy.deepcopy(report.to_dict())


def numbers(values: Iterable[Any]) -> list[Fraction]:
    """The numbers among some values of facts."""
    return [Fraction(value) for value in values if isinstance(value, int | float) and not isinstance(value, bool)]


def test_what_changes_is_summed_by_transition_and_by_verdict(all_seen: Seen) -> None:
    rules = load(newer("2026-06-20")).evaluator
    fact = "inputs.discount_percent"
    question = CounterfactualsQuestion("pricing_exception", rulebook=newer("2026-06-20"), metrics=(fact, "margin"))
    report = answer(all_seen.snapshot, question)
    changed: dict[Any, list[Any]] = {}
    for decision in decided_in(all_seen):
        then = rules.decide(decision.facts)
        key = decision.verdict, decision.rule, then.decision, rule_of(then)
        changed.setdefault(key, []).append(decision.facts.get("discount_percent"))
    totals: dict[Any, list[Fraction]] = {}
    for key, values in changed.items():
        found = [of for of in report.body["transitions"] if tuple(of[name] for name in KEY) == key]
        worth = [of["worth"][0] for of in found]
        assert sum(of["values"] for of in worth) == len(numbers(values))
        assert sum(of["sum"] for of in worth) == pytest.approx(float(sum(numbers(values))))
        if key[0] != key[2]:
            totals.setdefault((key[0], key[2]), []).extend(numbers(values))
    told = {(of["verdict"], of["then_verdict"]): of for of in report.body["worth"] if of["metric"] == fact}
    assert {pair: (of["values"], of["sum"]) for pair, of in told.items()} == {
        pair: (len(values), round(float(sum(values)), 6)) for pair, values in totals.items() if values
    }
    more = sum(len(values) for key, values in changed.items() if key[0] != "yes" and key[2] == "yes")
    fewer = sum(len(values) for key, values in changed.items() if key[0] == "yes" and key[2] != "yes")
    assert report.body["let_through"] == {"more": more, "fewer": fewer}
    changes = f"{more} more would be approved, and {fewer} would no longer be."
    assert approvals(report.body)[0] == (changes if more or fewer else "No approval would be gained or lost.")
    assert all(sentence in repr(report) for sentence in approvals(report.body))
    assert (f"None of the {more} that would be approved has a value of margin." in repr(report)) == (more > 1)


@pytest.mark.parametrize("metrics", ["margin", ["margin", "margin"], ["a", "b", "c", "d", "e", "f"], [""], [7]])
def test_what_cannot_be_summed_is_refused(seen: Snapshot, metrics: Any) -> None:
    with pytest.raises(OperatorError, match=r"metrics is .*: give a list of at most 5 different names"):
        asked(seen, metrics=metrics)
