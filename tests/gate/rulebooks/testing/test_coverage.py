"""Coverage: which rules, tests and combinators cases try, and which facts would close a hole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gate.rulebooks.bundles import active_rulebooks
from gate.rulebooks.explanation import Tree, explain_rules
from gate.rulebooks.rulebook import load
from gate.rulebooks.testing.answers import Answer, Found, Never, Undecided
from gate.rulebooks.testing.cases import Case
from gate.rulebooks.testing.coverage import GOAL_KINDS, Coverage, GoalResult, Wanted, goals_of, measure
from gate.rulebooks.testing.shares import Share
from tests.reference.strategies import facts, rulebooks
from tests.support.rulebooks import compare, rule, rulebook
from tests.support.tiers import examples
from tests.support.torture import size

BODY = rulebook(
    rule(
        "approve",
        {"all": [compare("amount", "lte", 50), {"any": [compare("vip", "eq", True), compare("age", "gt", 7)]}]},
        priority=2,
    ),
    rule("hold", compare("amount", "gt", 1000), priority=1),
    amount="integer",
    required=["amount"],
)
APPROVED = {"amount": 50, "vip": True}


def covered(*given: Any, body: Any = BODY) -> Coverage:
    return measure(load(body), [Case(f"case {at}", each, {}) for at, each in enumerate(given)])


def met(coverage: Coverage) -> set[str]:
    return {one.goal.description for one in coverage.results if one.met}


def result_of(coverage: Coverage, description: str) -> GoalResult:
    return next(one for one in coverage.results if one.goal.description == description)


def test_every_rule_test_and_child_of_several_is_a_goal() -> None:
    goals = goals_of(BODY)
    assert {kind: sum(goal.kind == kind for goal in goals) for kind in GOAL_KINDS} == {
        "rule_matched": 2,
        "default_reached": 1,
        "test_true": 4,
        "test_false": 4,
        "decides_alone": 4,
    }
    assert len({(goal.kind, goal.path) for goal in goals}) == len(goals)


def test_without_cases_nothing_is_met_and_everything_is_a_hole() -> None:
    coverage = covered()
    assert coverage.share() == Share(0, 15)
    assert coverage.share().percent == "0.0 %"
    assert coverage.holes == coverage.results


def test_facts_that_the_input_schema_refuses_cover_nothing() -> None:
    assert met(covered({"vip": True}, {"amount": "50", "vip": True})) == set()


def test_a_case_meets_the_goals_of_the_rules_that_it_tries() -> None:
    assert met(covered(APPROVED)) == {
        "approve matches",
        "amount lte 50 is true in approve",
        "vip eq true is true in approve",
        "age gt 7 is false in approve",
    }
    assert met(covered({"amount": 500})) == {
        "no rule matches",
        "amount lte 50 is false in approve",
        "vip eq true is false in approve",
        "age gt 7 is false in approve",
        "amount gt 1000 is false in hold",
    }


def test_a_child_decides_alone_where_two_cases_differ_in_nothing_else() -> None:
    alone = "amount lte 50 alone decides the all (2 conditions) in approve"
    assert alone not in met(covered(APPROVED))
    assert alone not in met(covered(APPROVED, {"amount": 51}))
    both = covered(APPROVED, {"amount": 51, "vip": True})
    assert result_of(both, alone).met_by == ("case 0", "case 1")
    within = "vip eq true alone decides the any (2 conditions) in approve"
    assert within not in met(covered({"amount": 1, "vip": True, "age": 8}, {"amount": 1}))
    assert result_of(covered({"amount": 1}, APPROVED), within).met_by == ("case 0", "case 1")
    half = result_of(covered(APPROVED), within)
    assert half.met_by == (None, "case 0")
    assert half.missing == (half.goal.wanted[0],)


def test_the_first_case_that_meets_a_goal_is_named() -> None:
    coverage = covered({"amount": 2000}, APPROVED, APPROVED)
    assert result_of(coverage, "approve matches").met_by == ("case 1",)


class Finder:
    """Finds facts among some, and keeps what it was asked."""

    def __init__(self, tried: Sequence[Any], otherwise: Answer) -> None:
        self.tried = tried
        self.otherwise = otherwise
        self.asked: list[Wanted] = []

    def find(self, wanted: Wanted) -> Answer:
        self.asked.append(wanted)
        return next((Found(each) for each in self.tried if gives(BODY, each, wanted)), self.otherwise)


GRID: list[dict[str, Any]] = [
    {"amount": amount, "vip": vip, "age": age} for amount in (50, 51, 1001) for vip in (True, False) for age in (7, 8)
]


def test_facts_that_are_found_close_their_holes() -> None:
    judged = covered(APPROVED).judged(Finder(GRID, Never()))
    found = [answer.facts for answer in judged.found().values()]
    closed = covered(APPROVED, *found)
    assert closed.share().percent == "100 %"
    assert (judged.impossible, closed.holes) == ((), ())


def test_a_finder_is_asked_only_for_what_no_case_gives_and_once() -> None:
    coverage, finder = covered(APPROVED), Finder(GRID, Never())
    coverage.judged(finder)
    assert len(finder.asked) == len(set(finder.asked))
    assert set(finder.asked) == {wanted for hole in coverage.holes for wanted in hole.missing}


def test_what_is_proved_impossible_is_listed_and_does_not_count() -> None:
    judged = covered(*GRID[:4]).judged(Finder([], Never()))
    assert judged.holes == ()
    assert {one.goal.description for one in judged.impossible} == {
        one.goal.description for one in covered(*GRID[:4]).holes
    }
    assert judged.share().percent == "100 %"


def test_what_is_not_decided_stays_a_hole_with_the_reason() -> None:
    judged = covered(APPROVED).judged(Finder([], Undecided("it would take too long")))
    assert judged.impossible == ()
    assert judged.share() == covered(APPROVED).share()
    assert {reason for hole in judged.holes for reason in hole.undecided} == {"it would take too long"}


def test_a_goal_is_impossible_as_soon_as_one_of_its_evaluations_is() -> None:
    goal = next(goal for goal in goals_of(BODY) if goal.kind == "decides_alone")
    one, other = goal.wanted
    result = GoalResult(goal, (None, None), {one: Never(), other: Undecided("it would take too long")})
    assert result.impossible
    assert result.undecided == ()


def test_shares_are_by_kind() -> None:
    coverage = covered(APPROVED, {"amount": 2000})
    assert coverage.share("rule_matched") == Share(2, 2)
    assert coverage.share("default_reached") == Share(0, 1)
    assert coverage.share("test_false").percent == "75.0 %"


def node(tree: Tree, path: str) -> Tree:
    if tree.path == path:
        return tree
    return next(
        node(child, path)
        for child in tree.children
        if path == child.path or path.startswith((f"{child.path}.", f"{child.path}["))
    )


def gives(body: Any, given: Any, wanted: Wanted) -> bool:
    """Whether facts give an evaluation, as explanations show it."""
    explained = load(body).evaluator.explain(given)
    if wanted.rule_id is None:
        return explained.outcome.status == "ok" and explained.outcome.matched_rule_id is None
    trees = {one.rule["rule_id"]: one.tree for one in explain_rules(body, explained.evaluation)}
    return wanted.rule_id in trees and all(
        node(trees[wanted.rule_id], path).holds is holds for path, holds in wanted.nodes
    )


@settings(max_examples=examples(size(20, 2_000)))
@given(st.data())
def test_goals_are_met_as_explanations_show_it(data: st.DataObject) -> None:
    body = data.draw(rulebooks())
    given_ = data.draw(st.lists(facts(), max_size=3))
    coverage = covered(*given_, body=body)
    for result in coverage.results:
        expected = tuple(
            next((f"case {at}" for at, each in enumerate(given_) if gives(body, each, wanted)), None)
            for wanted in result.goal.wanted
        )
        assert result.met_by == expected, result.goal.description


@pytest.mark.parametrize("own", active_rulebooks(), ids=lambda own: own.rulebook_id)
def test_the_paths_of_goals_are_places_in_the_rulebook(own: Any) -> None:
    for goal in goals_of(own.body):
        value: Any = own.body
        for step in goal.path.replace("]", "").replace("[", ".").split("."):
            value = value[int(step)] if step.isdigit() else value[step]
        assert isinstance(value, dict)
