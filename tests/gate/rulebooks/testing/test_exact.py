"""The exact analysis closes what cases leave open: its facts are those that coverage and the mutation score ask for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from gate.encoding.strict_json import JsonObject
from gate.rulebooks.analysis import Questions
from gate.rulebooks.bundles import active_rulebooks
from gate.rulebooks.rulebook import Rulebook, load
from gate.rulebooks.testing.cases import Case
from gate.rulebooks.testing.coverage import measure
from gate.rulebooks.testing.exact import ExactFinder, ExactJudge
from gate.rulebooks.testing.mutation import mutation_score
from gate.rulebooks.testing.runs import observe
from tests.support.rulebooks import compare, rule, rulebook


def confirmed(original: Rulebook, facts: Iterable[JsonObject]) -> list[Case]:
    """Cases with these facts, which expect what the rulebook answers."""
    answers: list[tuple[JsonObject, Any]] = [(each, observe(original, each)) for each in facts]
    return [Case(f"case {at}", each, expect) for at, (each, expect) in enumerate(answers)]


@pytest.mark.parametrize("original", active_rulebooks(), ids=lambda own: own.rulebook_id)
def test_the_facts_that_are_found_cover_a_whole_rulebook(original: Rulebook) -> None:
    judged = measure(original, []).judged(ExactFinder(Questions(original.body)))
    again = measure(original, confirmed(original, [found.facts for found in judged.found().values()]))
    assert {hole.goal for hole in again.holes} == {result.goal for result in judged.impossible}
    assert judged.share().whole == again.share().part


def test_goals_that_no_facts_can_meet_are_proved_impossible() -> None:
    original = load(
        rulebook(
            rule("all_low", compare("amount", "lte", 50), priority=2),
            rule("shadowed", {"all": [compare("amount", "lt", 50), compare("vip", "eq", True)]}, priority=1),
            amount="number",
            required=["amount"],
        )
    )
    judged = measure(original, []).judged(ExactFinder(Questions(original.body)))
    assert [result.goal.description for result in judged.impossible] == [
        "shadowed matches",
        "amount lt 50 alone decides the all (2 conditions) in shadowed",
        "vip eq true alone decides the all (2 conditions) in shadowed",
        "amount lt 50 is true in shadowed",
    ]


def test_the_facts_of_survivors_kill_them_all() -> None:
    (original,) = (own for own in active_rulebooks() if own.rulebook_id == "pricing_exception")
    report = mutation_score(original, [], ExactJudge())
    assert (report.score.percent, report.undecided) == ("0.0 %", ())
    again = mutation_score(original, confirmed(original, [one.facts for one in report.survived]), ExactJudge())
    assert again.score.percent == "100 %"
    assert again.equivalent == report.equivalent
    assert {(mutant.kind, mutant.path) for mutant in again.equivalent} == {
        ("threshold_moved", "rules[1].condition.all[1]"),
        ("test_dropped", "rules[1].condition.all[1]"),
        ("priorities_exchanged", "rules[0].priority"),
    }
