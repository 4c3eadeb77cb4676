"""The scenario of the demo: a year that is the same for the same seed, with what data/demo/README.md says in it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import cache
from random import Random
from typing import Any, Final, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.cli.demo.drawing import read_drawing
from api.cli.demo.owners import Resolve
from api.cli.demo.parameters import Parameters
from api.cli.demo.policies import varied
from api.cli.demo.reports import Report
from api.cli.demo.scenario import Decide, DemoScenario, Event, Register
from gate.adapters.invocation import TrustedAdapters
from gate.adapters.registry import registered
from gate.adapters.worker import Workers
from gate.encoding import resources
from gate.encoding.canonical import content_hash
from gate.encoding.strict_json import parse
from gate.records.reports.receipts import CRM_SYNCS, EXECUTIONS, OUTCOMES, text
from gate.records.reports.report_request import check_request
from gate.records.reports.resolution import EXPIRED, GRANTED, REFUSED, RESOLUTIONS
from gate.records.request import read_request
from gate.rulebooks import bundles
from gate.rulebooks.documents import Condition

pytestmark = pytest.mark.heavy  # A year is drawn for each seed.

START: Final = datetime(2025, 11, 22, tzinfo=UTC)
PARAMETERS: Final[Parameters] = parse(resources.path("data", "demo", "scenario.json").read_bytes())
BODIES: Final = [
    own.rulebook.body for own in bundles.own_rulebooks() if own.rulebook.rulebook_id in PARAMETERS["policies"]
]
SCENARIO: Final = DemoScenario(PARAMETERS, BODIES, registered())
ROLLOUT: Final = PARAMETERS["incidents"]["bad_rollout"]
BURST: Final = PARAMETERS["incidents"]["fraud_burst"]
HASTY: Final = PARAMETERS["incidents"]["hasty_worker"]
ROLLED_OUT: Final = (ROLLOUT["version"],)
PEERS: Final = PARAMETERS["peers"]
PEER: Final = SCENARIO.peers[0]
README: Final = resources.path("data", "demo", "README.md").read_text()
TABLES: Final = resources.path("docs", "reference", "demo.md").read_text()
ADAPTED: Final = tuple(scope for scope, settings in PARAMETERS["scopes"].items() if "adapters" in settings)
SETTLED: Final = ("succeeded", "partial", "reverted", "failed")


@cache
def year(scope: str, decisions: int, seed: int = 1, *, clean: bool = False) -> tuple[Event, ...]:
    return tuple(SCENARIO.events(scope, decisions=decisions, seed=seed, start=START, clean=clean))


def decided(scope: str, decisions: int, *, clean: bool = False) -> dict[int, Decide]:
    return {event.number: event for event in year(scope, decisions, clean=clean) if isinstance(event, Decide)}


def told(events: tuple[Event, ...]) -> list[Any]:
    """What of events is to be the same, or not."""
    return [
        (event.moment, event.rulebook.hash, event.dependency) if isinstance(event, Register) else
        (event.moment, event.number, event.request, event.verdict) if isinstance(event, Decide) else
        (event.moment, event.number, event.resolution, event.body) if isinstance(event, Resolve) else
        (event.moment, event.number, event.kind.name, event.body)
        for event in events
    ]  # fmt: skip


def everywhere(decisions: int) -> Iterator[tuple[str, Event]]:
    for scope in SCENARIO.scopes:
        for event in year(scope, decisions):
            yield scope, event


def day(event: Event) -> int:
    return (event.moment - START).days


def answers(scope: str, decisions: int, *, clean: bool = False) -> dict[int, Resolve]:
    """The resolution of each decision that has one."""
    return {event.number: event for event in year(scope, decisions, clean=clean) if isinstance(event, Resolve)}


def executions(scope: str, decisions: int, *, clean: bool = False) -> list[Report]:
    events = year(scope, decisions, clean=clean)
    return [event for event in events if isinstance(event, Report) and event.kind is EXECUTIONS]


def in_haste(scope: str, decisions: int) -> set[int]:
    """The decisions that are executed whatever their owner says."""
    held = [
        number
        for number, event in sorted(decided(scope, decisions).items(), key=lambda each: each[1].moment)
        if event.rulebook.rulebook_id == HASTY["policy"] and event.verdict == "review"
        if day(event) >= HASTY["from_day"]
    ]
    return set(held[: HASTY["actions"]]) if scope == HASTY["scope"] else set()


def latest(scope: str, decisions: int, *, clean: bool = False) -> dict[int, str]:
    """The status of the last outcome of each decision that has one."""
    return {
        event.number: text(event.body, "outcome_status")
        for event in year(scope, decisions, clean=clean)
        if isinstance(event, Report) and event.kind is OUTCOMES
    }


def success(scope: str, decisions: list[Decide], ends: dict[int, str]) -> float:
    settled = [ends[event.number] for event in decisions if ends.get(event.number) in SETTLED]
    return settled.count("succeeded") / len(settled)


def test_the_names_of_its_scopes_are_names_that_scopes_can_have() -> None:
    for name in (*SCENARIO.scopes, *SCENARIO.peers):
        assert re.fullmatch(r"[a-z][a-z-]{0,63}", name), name


def test_the_same_seed_gives_the_same_year_and_another_seed_another() -> None:
    for scope in SCENARIO.scopes:
        again = tuple(DemoScenario(PARAMETERS, BODIES, registered()).events(scope, decisions=400, seed=1, start=START))
        assert told(again) == told(year(scope, 400))
        assert told(year(scope, 400, 2)) != told(again)


@given(st.integers(0, 1_000_000))
def test_the_scopes_make_as_many_decisions_as_are_asked_for(decisions: int) -> None:
    shares = [SCENARIO.decisions(scope, decisions) for scope in SCENARIO.scopes]
    assert sum(shares) == decisions
    assert min(shares) >= 0


@pytest.mark.parametrize("clean", [False, True])
@pytest.mark.parametrize("decisions", [100, 777])
def test_a_year_is_in_the_order_of_time_and_reports_follow_their_decisions(decisions: int, clean: bool) -> None:
    for scope in SCENARIO.scopes:
        events = year(scope, decisions, clean=clean)
        assert [event.moment for event in events] == sorted(event.moment for event in events)
        assert all(START <= event.moment < START + timedelta(days=SCENARIO.days) for event in events)
        to_come: dict[int, int] = {}
        registered = set()
        for event in events:
            if isinstance(event, Register):
                registered.add(event.rulebook.hash)
            elif isinstance(event, Decide):
                assert event.number not in to_come
                assert event.request["rulebook_ref"] == {"hash": event.rulebook.hash}
                assert event.rulebook.hash in registered
                to_come[event.number] = event.reports
            else:
                to_come[event.number] -= 1
        assert sorted(to_come) == list(range(SCENARIO.decisions(scope, decisions)))
        assert set(to_come.values()) == {0}


def test_every_request_can_be_decided_as_said_and_every_report_taken() -> None:
    for _, event in everywhere(1500):
        if isinstance(event, Decide):
            request = read_request(event.request, content_hash(event.request))
            assert event.rulebook.evaluator.decide(event.facts).decision == event.verdict
            assert request.adapter is not None or request.inputs == event.facts
        elif isinstance(event, Report):
            check_request(event.kind, event.body)
        elif isinstance(event, Resolve) and event.body is not None:
            assert check_request(RESOLUTIONS, event.body)["resolution"] == event.resolution


class TestAdapters:
    """What an adapter is given in the scopes that name one."""

    def test_an_adapter_makes_the_facts_that_were_drawn_and_the_verdict_stays(self) -> None:
        # What cannot be made either without the source of another fact.
        besides = {"amount": {"share_of_payment_percent"}, "currency": {"amount"}}
        given = [event for event in decided(ADAPTED[0], 4000).values() if "adapter" in event.request]
        left_out: Counter[str] = Counter()
        with closing(TrustedAdapters(registered(), Workers(registered()))) as adapters:
            made_of = [adapters.facts(adapters.invocation(event.request["adapter"])).values for event in given]
        for event, made in zip(given, made_of, strict=True):
            required = set(event.rulebook.body["input_schema"]["required"])
            missing = required - event.facts.keys()
            gone = {of for name in missing for of in besides.get(name, ())}
            expected = {name: value for name, value in event.facts.items() if name not in gone}
            assert made == {**expected, "evidence": sorted(cast("list[str]", expected["evidence"]))}
            evaluator = event.rulebook.evaluator
            assert evaluator.decide(made) == evaluator.decide(event.facts)
            assert evaluator.decide(made).decision == event.verdict
            left_out.update(missing)
        assert len(given) > 100
        assert len(left_out) > 1

    def test_it_is_asked_in_its_scope_for_its_policy_alone(self) -> None:
        for scope, event in everywhere(1500):
            if isinstance(event, Decide):
                by_adapter = (scope, event.rulebook.rulebook_id) == (ADAPTED[0], "refund_policy")
                assert ("adapter" in event.request) == by_adapter
                assert ("inputs" in event.request["context"]) != by_adapter
            elif isinstance(event, Register):
                by_adapter = (scope, event.rulebook.rulebook_id) == (ADAPTED[0], "refund_policy")
                assert (event.dependency is not None) == by_adapter

    def test_all_else_is_as_it_is_without_an_adapter(self) -> None:
        scopes: Any = {
            name: {member: value for member, value in settings.items() if member != "adapters"}
            for name, settings in PARAMETERS["scopes"].items()
        }
        without = DemoScenario({**PARAMETERS, "scopes": scopes}, BODIES, ())
        for scope in SCENARIO.scopes:
            events = year(scope, 1500)
            others = tuple(without.events(scope, decisions=1500, seed=1, start=START))
            assert list(map(_common, events)) == list(map(_common, others))
            if scope not in ADAPTED:
                assert told(events) == told(others)

    def test_an_adapter_that_is_not_there_is_told_of_at_once(self) -> None:
        with pytest.raises(KeyError, match="refund_facts"):
            DemoScenario(PARAMETERS, BODIES, ())


def _common(event: Event) -> Any:
    """What of an event does not depend on where facts come from."""
    if isinstance(event, Register):
        return event.moment, event.rulebook.hash
    if isinstance(event, Report | Resolve):
        return event
    context = {name: value for name, value in event.request["context"].items() if name != "inputs"}
    return event.moment, event.number, context, event.rulebook.hash, event.kind, event.verdict, event.reports


def test_every_policy_has_every_verdict_and_sometimes_a_fact_is_missing() -> None:
    found: dict[str, set[str]] = {}
    for _, event in everywhere(4000):
        if isinstance(event, Decide):
            outcome = event.rulebook.evaluator.decide(event.facts)
            found.setdefault(event.rulebook.rulebook_id, set()).update((outcome.decision, outcome.verdict))
    every = {"yes", "no", "review", "APPROVE", "BLOCK", "REVIEW", "NEEDS_INPUT"}
    assert found == dict.fromkeys(PARAMETERS["policies"], every)


def test_every_rule_of_the_products_own_rulebooks_matches_sometimes_or_guards_against_the_implausible() -> None:
    matched = {
        (
            event.rulebook.rulebook_id,
            event.rulebook.evaluator.decide(event.facts).matched_rule_id,
        )
        for _, event in everywhere(10_000)
        if isinstance(event, Decide)
    }
    rules = {(str(body["rulebook_id"]), rule["rule_id"]) for body in BODIES for rule in body["rules"]}
    unmatched = {rule_id for _, rule_id in rules - matched}
    assert unmatched == {
        "block_amount_not_positive",
        "block_field_not_allowed",
        "block_implausible_figures",
        "block_more_than_was_paid",
        "block_object_type",
        "block_unknown_environment",
        "review_implausible_figures",
        "review_unowned_record",
    }


def test_reports_are_of_every_kind_and_status_that_a_year_brings() -> None:
    statuses = Counter(
        (event.kind.name, event.body[event.kind.status_member])
        for _, event in everywhere(4000)
        if isinstance(event, Report)
    )
    expected = {EXECUTIONS.name: {"executed", "failed", "skipped"}, CRM_SYNCS.name: {"written", "failed", "pending"}}
    expected[OUTCOMES.name] = {*SETTLED, "pending", "review"}
    assert statuses.keys() == {(name, status) for name, each in expected.items() for status in each}


def test_some_reviews_are_executed_and_refusals_rarely_have_an_outcome() -> None:
    executed: Counter[str] = Counter()
    reported: Counter[str] = Counter()
    verdicts: Counter[str] = Counter()
    for scope in SCENARIO.scopes:
        of = decided(scope, 4000)
        verdicts.update(event.verdict for event in of.values())
        outcomes = [event for event in year(scope, 4000) if isinstance(event, Report) and event.kind is OUTCOMES]
        reported.update(of[number].verdict for number in {event.number for event in outcomes})
        executed.update(of[number].verdict for number in {e.number for e in outcomes if e.body["action_executed"]})
    assert 0.3 < executed["review"] / verdicts["review"] < 0.5
    assert 0.7 < executed["yes"] / verdicts["yes"] < 0.95
    assert executed["no"] == 0
    assert reported["no"] / verdicts["no"] < 0.05


def test_what_is_personal_names_reserved_domains_only() -> None:
    for _, event in everywhere(1500):
        if not isinstance(event, Register):
            text = str(event.request if isinstance(event, Decide) else event.body)
            for domain in re.findall(r"(?:@|https?://)([\w.-]+)", text):
                assert domain in ("example.com", "example.net", "example.org") or domain.endswith(".example")


def test_the_year_has_weekends_hours_and_seasons() -> None:
    def decisions(scope: str) -> list[Decide]:
        return list(decided(scope, 10_000).values())

    harbor, lumen = decisions("harbor-supply"), decisions("lumen-retail")
    assert sum(event.moment.weekday() >= 5 for event in harbor) < 0.06 * len(harbor)
    assert sum(8 <= event.moment.hour < 18 for event in harbor) > 0.75 * len(harbor)
    assert sum(18 <= event.moment.hour < 23 for event in lumen) > 0.3 * len(lumen)
    months = Counter(event.moment.month for event in lumen)
    assert months[12] > 1.5 * months[6]


def test_a_clean_year_differs_in_nothing_but_the_incidents() -> None:
    for scope in SCENARIO.scopes:
        planted, clean = decided(scope, 3000), decided(scope, 3000, clean=True)
        assert planted.keys() == clean.keys()
        for number, event in planted.items():
            other = clean[number]
            if event.kind == "fraud_burst":
                assert other.kind != "fraud_burst"
            elif event.rulebook.version == ROLLOUT["version"]:
                assert (other.moment, other.request["context"]) == (event.moment, event.request["context"])
                assert other.rulebook.version == "2026-06-11"
            else:
                assert told((event,)) == told((other,))
        ends, clean_ends = latest(scope, 3000), latest(scope, 3000, clean=True)
        for number, event in planted.items():
            untouched = event.kind != "fraud_burst" and number not in in_haste(scope, 3000)
            if untouched and event.verdict == clean[number].verdict:
                assert ends.get(number) == clean_ends.get(number)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_bad_rollout_shows_in_its_scope_and_weeks_alone(seed: int) -> None:
    scope, decisions = ROLLOUT["scope"], 10_000
    events = tuple(SCENARIO.events(scope, decisions=decisions, seed=seed, start=START))
    of_policy = [
        event for event in events if isinstance(event, Decide) and event.rulebook.rulebook_id == ROLLOUT["policy"]
    ]
    bad = [event for event in of_policy if event.rulebook.version == ROLLOUT["version"]]
    assert {day(event) for event in bad} <= set(range(ROLLOUT["from_day"], ROLLOUT["until_day"]))
    assert bad == [event for event in of_policy if ROLLOUT["from_day"] <= day(event) < ROLLOUT["until_day"]]
    ends = {
        event.number: text(event.body, "outcome_status")
        for event in events
        if isinstance(event, Report) and event.kind is OUTCOMES
    }
    good = success(scope, [event for event in of_policy if event not in bad and event.verdict == "yes"], ends)
    approved = [event for event in bad if event.verdict == "yes"]
    (before,) = [rulebook for rulebook in SCENARIO.versions(ROLLOUT["policy"]) if rulebook.version == "2026-06-11"]
    besides = [e for e in approved if before.evaluator.decide(e.facts).decision != "yes"]
    assert len(besides) > len(approved) / 4
    assert good > 0.85
    assert success(scope, approved, ends) < good - 0.15
    assert success(scope, besides, ends) < 0.45
    for other in set(SCENARIO.scopes) - {scope}:
        assert not [event for event in decided(other, 3000).values() if event.rulebook.version == ROLLOUT["version"]]


def test_the_fraud_burst_is_a_few_days_of_refunds_that_come_back_days_later() -> None:
    scope, decisions = BURST["scope"], 10_000
    events = decided(scope, decisions)
    burst = {number: event for number, event in events.items() if event.kind == "fraud_burst"}
    assert len(burst) == round(BURST["share"] * decisions)
    assert {day(event) for event in burst.values()} == set(range(BURST["from_day"], BURST["from_day"] + BURST["days"]))
    assert {event.verdict for event in burst.values()} == {"yes"}
    assert {event.rulebook.rulebook_id for event in burst.values()} == {BURST["policy"]}
    usual = Counter(day(event) for event in events.values() if event.kind != "fraud_burst")
    assert len(burst) / BURST["days"] > max(usual[each] for each in range(BURST["from_day"], SCENARIO.days)) / 2
    ends = latest(scope, decisions)
    lost = [number for number in burst if ends.get(number) in ("reverted", "failed")]
    assert len(lost) > 0.8 * len(burst)
    for event in year(scope, decisions):
        if isinstance(event, Report) and event.number in lost and event.body.get("outcome_status") in SETTLED:
            assert event.moment - burst[event.number].moment > timedelta(days=3.9)


def test_a_burst_is_there_in_the_smallest_year_too() -> None:
    assert sum(event.kind == "fraud_burst" for event in decided(BURST["scope"], 100).values()) == 3


class TestOwners:
    """The held decisions of the four companies: who owns them, and what becomes of them."""

    def test_most_are_granted_or_refused_some_expire_and_a_few_are_still_held(self) -> None:
        found: Counter[str] = Counter()
        for scope in SCENARIO.scopes:
            resolved = answers(scope, 4000)
            held = [event for event in decided(scope, 4000).values() if event.verdict == "review"]
            assert resolved.keys() <= {event.number for event in held}
            states = Counter(resolved[e.number].resolution if e.number in resolved else "held" for e in held)
            assert states.keys() >= {GRANTED, REFUSED, EXPIRED}
            found += states
        shares = {state: number / found.total() for state, number in found.items()}
        assert 0.45 < shares[GRANTED] < 0.55
        assert 0.38 < shares[REFUSED] < 0.48
        assert 0.03 < shares[EXPIRED] < 0.07
        assert 0.005 < shares["held"] < 0.03

    def test_an_answer_comes_before_the_time_limit_sometimes_just_before_or_the_service_gives_it_at_once(self) -> None:
        shares = []
        for scope in SCENARIO.scopes:
            of, owners = decided(scope, 4000), {(e.policy_id, e.action): e for e in SCENARIO.owners(scope)}
            for number, event in answers(scope, 4000).items():
                policy_id, action = of[number].rulebook.rulebook_id, action_of(of[number])
                owner = owners.get((policy_id, action), owners[policy_id, ""])
                within, waited = owner.terms.within_seconds, (event.moment - of[number].moment).total_seconds()
                if event.body is None:
                    assert event.resolution == EXPIRED
                    assert waited == pytest.approx((within or 0) + 0.5)
                    continue
                assert event.body["resolved_by"] in PARAMETERS["scopes"][scope]["people"][owner.terms.owner]
                assert 0 < waited < (within or float("inf"))
                shares += [waited / within] if within else []
        assert sum(share > 0.8 for share in shares) > 20
        assert sum(share < 0.5 for share in shares) > 0.75 * len(shares)

    def test_held_actions_are_executed_behind_a_grant_that_is_valid_and_by_nobody_else(self) -> None:
        behind = 0
        for scope in SCENARIO.scopes:
            of, resolved, hasty = decided(scope, 4000), answers(scope, 4000), in_haste(scope, 4000)
            valid = {owner.policy_id: owner.terms.grant_seconds for owner in SCENARIO.owners(scope)}
            for event in executions(scope, 4000):
                decision = of[event.number]
                assert decision.verdict in ("yes", "review")
                assert ("action_taken" in event.body) == (decision.verdict == "yes")
                if decision.verdict == "review" and event.number not in hasty:
                    grant = resolved[event.number]
                    assert grant.resolution == GRANTED
                    after = (event.moment - grant.moment).total_seconds()
                    assert 0 < after < valid[decision.rulebook.rulebook_id]
                    behind += 1
        granted = sum(e.resolution == GRANTED for scope in SCENARIO.scopes for e in answers(scope, 4000).values())
        assert behind > 0.85 * granted

    @pytest.mark.parametrize("decisions", [3000, 20_000])
    def test_a_hasty_worker_executes_a_few_held_actions_before_any_answer_and_after_refusals(
        self, decisions: int
    ) -> None:
        scope = HASTY["scope"]
        resolved, hasty = answers(scope, decisions), in_haste(scope, decisions)
        executed = [event for event in executions(scope, decisions) if event.number in hasty]
        assert {event.number for event in executed} == hasty
        assert len(hasty) == HASTY["actions"]
        after: dict[int, str] = {}
        for event in executed:
            answer = resolved[event.number]
            after[event.number] = answer.resolution if answer.moment < event.moment else "held"
        refused = {number for number in hasty if resolved[number].resolution == REFUSED}
        assert after == {number: REFUSED if number in refused else "held" for number in hasty}
        assert 1 < len(refused) < len(hasty) - 1

    def test_without_incidents_every_answer_is_the_same_and_nothing_is_executed_without_a_grant(self) -> None:
        scope = HASTY["scope"]
        assert told(tuple(answers(scope, 4000).values())) == told(tuple(answers(scope, 4000, clean=True).values()))
        for scope in SCENARIO.scopes:
            of, resolved = decided(scope, 4000, clean=True), answers(scope, 4000, clean=True)
            held = [e for e in executions(scope, 4000, clean=True) if of[e.number].verdict == "review"]
            assert {resolved[event.number].resolution for event in held} == {GRANTED}

    def test_peers_have_no_owners_and_nobody_answers_there(self) -> None:
        assert SCENARIO.owners(PEER) == ()
        assert any(event.verdict == "review" for event in decided(PEER, 500).values())
        assert not answers(PEER, 500)

    def test_the_readme_names_every_team_and_its_time_limit(self) -> None:
        for owner in PARAMETERS["owners"]:
            action = f"`{owner['action']}`" if "action" in owner else "any"
            within = f"{owner['within_hours']} hours" if "within_hours" in owner else "none"
            row = f"| `{owner['policy']}` | {action} | {owner['owner']} | {within} | {owner['grant_hours']} hours |"
            assert row in TABLES


def action_of(event: Decide) -> str:
    return event.rulebook.evaluator.decide(event.facts).action


class TestPeers:
    """Further companies, to compare with: small, late in the year, alike but for how they do."""

    def test_there_are_names_enough_that_tell_the_company_apart(self) -> None:
        companies = PEERS["companies"]
        assert len(SCENARIO.peers) == len(companies) == len(set(companies.values())) == 50
        assert not set(SCENARIO.peers) & set(SCENARIO.scopes)
        for name, company in companies.items():
            assert company.partition(", ")[0].lower().replace(" ", "-") == name

    def test_the_others_have_the_same_year_whoever_is_there_besides(self) -> None:
        alone = DemoScenario({**PARAMETERS, "peers": {**PEERS, "companies": {}}}, BODIES, registered())
        few = DemoScenario({**PARAMETERS, "peers": {**PEERS, "companies": {PEER: "Whatever"}}}, BODIES, registered())
        for scope in SCENARIO.scopes:
            assert told(tuple(alone.events(scope, decisions=1500, seed=1, start=START))) == told(year(scope, 1500))
        assert told(tuple(few.events(PEER, decisions=1500, seed=1, start=START))) == told(year(PEER, 1500))

    def test_a_peer_has_the_same_year_again_whatever_the_others_decide_and_another_one_with_another_seed(self) -> None:
        again = DemoScenario(PARAMETERS, BODIES, registered()).events(PEER, decisions=100, seed=1, start=START)
        assert told(tuple(again)) == told(year(PEER, 100_000)) == told(year(PEER, 500, clean=True))
        assert told(year(PEER, 500, 2)) != told(year(PEER, 500))

    @pytest.mark.parametrize("peer", SCENARIO.peers[:3])
    def test_a_peer_decides_in_the_last_four_months_by_the_same_versions(self, peer: str) -> None:
        events = year(peer, 500)
        assert [event.moment for event in events] == sorted(event.moment for event in events)
        assert START + timedelta(days=SCENARIO.days - 122) <= events[0].moment
        assert events[-1].moment < START + timedelta(days=SCENARIO.days)
        versions: dict[str, list[str]] = {}
        for event in events:
            if isinstance(event, Register):
                versions.setdefault(event.rulebook.rulebook_id, []).append(event.rulebook.hash)
            elif isinstance(event, Decide):
                assert event.rulebook.hash in versions[event.rulebook.rulebook_id]
                assert event.rulebook.hash == at_the_same_time(event)
        assert versions.keys() == PEERS["policies"].keys()
        for policy_id, hashes in versions.items():
            every = [rulebook.hash for rulebook in SCENARIO.versions(policy_id) if rulebook.version not in ROLLED_OUT]
            assert hashes == every[-len(hashes) :]
            assert len(hashes) == 2

    def test_its_refunds_are_about_seventy_a_month(self) -> None:
        for peer in SCENARIO.peers[:12]:
            of = decided(peer, 500).values()
            assert len(of) == SCENARIO.decisions(peer, 500) == PEERS["decisions"]
            refunds = Counter(day(e) // 31 for e in of if e.rulebook.rulebook_id == "refund_policy")
            assert 60 < sum(refunds.values()) / 4 < 80
            assert min(refunds[month] for month in range(8, 11)) > 40

    def test_what_it_asks_for_is_decided_as_said_and_its_reports_can_be_taken(self) -> None:
        for event in year(PEER, 500):
            if isinstance(event, Decide):
                read_request(event.request, content_hash(event.request))
                assert event.rulebook.evaluator.decide(event.facts).decision == event.verdict
                assert event.kind in PARAMETERS["policies"][event.rulebook.rulebook_id]["kinds"]
            elif isinstance(event, Report):
                check_request(event.kind, event.body)

    def test_peers_differ_in_what_they_ask_for_and_in_how_it_ends(self) -> None:
        rates, shares = [], []
        for peer in SCENARIO.peers[:12]:
            refunds = [e for e in decided(peer, 500).values() if e.rulebook.rulebook_id == "refund_policy"]
            approved = [event for event in refunds if event.verdict == "yes"]
            rates.append(success(peer, approved, latest(peer, 500)))
            shares.append(sum(event.kind == "changed_mind" for event in refunds) / len(refunds))
        assert min(rates) > 0.7
        assert max(rates) - min(rates) > 0.08
        assert max(shares) - min(shares) > 0.08


def at_the_same_time(event: Decide) -> str:
    """The hash of the version that decides for a company on the day of an event."""
    told = PARAMETERS["policies"][event.rulebook.rulebook_id]["versions"]
    (*_, version) = (each["version"] for each in told if each["from_day"] <= day(event))
    (found,) = (r for r in SCENARIO.versions(event.rulebook.rulebook_id) if r.version == version)
    return found.hash


def test_the_newest_version_of_every_policy_is_registered_last_in_every_scope() -> None:
    for scope in SCENARIO.scopes:
        last = {e.rulebook.rulebook_id: e.rulebook.version for e in year(scope, 500) if isinstance(e, Register)}
        newest = {policy: told["versions"][-1]["version"] for policy, told in PARAMETERS["policies"].items()}
        assert last == newest


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("text", "text"),
        ([1, {"same": "x"}], [1, {"same": "x"}]),
        ({"same": "x"}, 12.5),
        ({"text": "deal-{y}"}, "deal-7"),
        ({"chance": 0}, False),
        ({"chance": 1}, True),
        ({"choose": [[0, "never"], [1, {"same": "y"}]]}, 7),
        ({"by": "y", "each": {"7": {"same": "x"}, "8": "never"}}, 12.5),
        ({"by": "y", "each": {"8": "never"}}, None),
        ({"between": [2, 2], "digits": 0}, 2),
        ({"between": [2, 2], "times": "x", "digits": 1}, 25.0),
        ({"around": [0, 0], "plus": "x", "digits": 1}, 12.5),
        ({"skewed": [50, 0], "within": [1, 40], "digits": 0}, 40),
        ({"passed": {"chance": 1}, "left": None}, {"passed": True}),
    ],
)
def test_a_value_is_drawn_as_its_words_say(spec: Any, expected: Any) -> None:
    drawn = read_drawing(spec).draw(Random(1), {"x": 12.5, "y": 7})  # noqa: S311 - not a secret
    assert (drawn, type(drawn)) == (expected, type(expected))


def test_a_version_keeps_all_but_the_conditions_that_it_changes() -> None:
    condition: Condition = {"field": "margin_percent", "operator": "lt", "value": 1}
    body = next(body for body in BODIES if body["rulebook_id"] == "pricing_exception")
    made = varied(body, "next", {"block_below_margin_floor": condition})
    assert made["version"] == "next"
    assert [rule["rule_id"] for rule in made["rules"]] == [rule["rule_id"] for rule in body["rules"]]
    assert made["rules"][0] == {**body["rules"][0], "condition": condition}
    assert made["rules"][1:] == body["rules"][1:]
    with pytest.raises(KeyError):
        varied(body, "next", {"no_such_rule": condition})


def test_the_readme_names_every_scope_policy_version_kind_and_day() -> None:
    for scope, settings in PARAMETERS["scopes"].items():
        assert f"| `{scope}` | {settings['share']} % |" in TABLES
        for policy_id, adapter in settings.get("adapters", {}).items():
            assert f"`{policy_id}` in `{scope}` gets its facts from `{adapter}`" in README
    for policy_id, policy in PARAMETERS["policies"].items():
        for version in policy["versions"]:
            assert f"| `{policy_id}` | `{version['version']}` | {version['from_day']} |" in TABLES
        for name, kind in policy["kinds"].items():
            assert f"| `{name}` | {kind['weight']} | {kind['ends']['succeeded']} |" in TABLES
    assert f"{len(PEERS['companies'])} names" in README
    assert f"{PEERS['decisions']} decisions" in README
    assert f"from day {PEERS['from_day']} on" in README
    for policy_id, share in PEERS["policies"].items():
        assert f"{share} of 100 for `{policy_id}`" in README
    assert f"| `{ROLLOUT['policy']}` | `{ROLLOUT['version']}` | {ROLLOUT['from_day']} |" in TABLES
    assert f"days {ROLLOUT['from_day']} to {ROLLOUT['until_day'] - 1}" in README
    assert f"the next {HASTY['actions']} refunds that are held from day {HASTY['from_day']} on" in README
    assert f"days {BURST['from_day']} to {BURST['from_day'] + BURST['days'] - 1}" in README
