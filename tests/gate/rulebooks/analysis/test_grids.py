"""The grid that judges the analysis is complete: no facts can be found that it has no representative of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from gate.encoding.canonical import canonical
from gate.encoding.strict_json import parse
from gate.rulebooks.evaluation import compile_rulebook
from gate.rulebooks.rulebook import find_errors
from tests.reference import evaluator as reference
from tests.support.grids import ABSENT, Axes, TooLarge
from tests.support.random_rulebooks import facts_near, pairs, rulebooks
from tests.support.tiers import examples
from tests.support.torture import size

MOST = 1_000


def axes_of(bodies: Sequence[Any]) -> Axes:
    try:
        return Axes(bodies, most=MOST)
    except TooLarge:
        assume(False)
        raise


@settings(max_examples=examples(size(100, 10_000)), suppress_health_check=[HealthCheck.filter_too_much])
@given(st.data())
def test_no_facts_show_a_class_that_the_grid_does_not_have(data: st.DataObject) -> None:
    bodies: Sequence[Any] = data.draw(pairs())
    axes = axes_of(bodies)
    classes = {
        name: {axes.signature({}), *(axes.signature({name: value}) for value in values if value is not ABSENT)}
        for name, values in axes.classes.items()
    }
    for _ in range(12):
        facts = data.draw(facts_near(bodies))
        for name, value in facts.items():
            assert axes.signature({name: value}) in classes[name], (name, value)


@settings(max_examples=examples(size(30, 2_000)), suppress_health_check=[HealthCheck.filter_too_much])
@given(st.data())
def test_facts_of_one_class_have_one_outcome(data: st.DataObject) -> None:
    bodies: Sequence[Any] = data.draw(pairs())
    axes = axes_of(bodies)
    try:
        outcomes = {
            axes.signature(facts): [compile_rulebook(body).decide(facts) for body in bodies]
            for facts in axes.grid(most=MOST)
        }
    except TooLarge:
        return
    for _ in range(6):
        facts = data.draw(facts_near(bodies))
        for body, outcome in zip(bodies, outcomes[axes.signature(facts)], strict=True):
            told = reference.evaluate(body, facts)
            assert (told["status"], told["matched_rule_id"]) == (outcome.status, outcome.matched_rule_id)


@settings(max_examples=examples(size(30, 2_000)), suppress_health_check=[HealthCheck.filter_too_much])
@given(rulebooks())
def test_the_grid_holds_each_class_once_in_facts_that_can_be_sent(body: Any) -> None:
    assert find_errors(body) == []
    axes = axes_of([body])
    for name, values in axes.classes.items():
        facts = [{} if value is ABSENT else {name: value} for value in values]
        assert len({axes.signature(each) for each in facts}) == len(facts)
        for each in facts:
            assert canonical(parse(canonical(each))) == canonical(each)
