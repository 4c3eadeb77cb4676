"""The exact analysis agrees with brute force over all facts that matter."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.gate.rulebooks.analysis.laws import hold_the_difference, hold_the_findings
from tests.support.grids import TooLarge
from tests.support.random_rulebooks import facts_near, pairs, rulebooks
from tests.support.tiers import examples
from tests.support.torture import size

MOST = 1_000
tried = settings(max_examples=examples(size(60, 3_000)), suppress_health_check=[HealthCheck.filter_too_much])


@tried
@given(rulebooks())
def test_every_finding_is_one_of_brute_force_and_none_is_left_out(body: Any) -> None:
    try:
        hold_the_findings(body, most=MOST)
    except TooLarge:
        assume(False)


@tried
@given(st.data())
def test_the_regions_of_a_difference_are_those_of_brute_force(data: st.DataObject) -> None:
    before, after = data.draw(pairs())
    others = [data.draw(facts_near([before, after])) for _ in range(4)]
    try:
        hold_the_difference(before, after, others, most=MOST)
    except TooLarge:
        assume(False)
