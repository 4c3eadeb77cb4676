"""The mutation score: cases kill mutants, the judge takes the others, and each survivor comes with facts."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gate.encoding.canonical import content_hash
from gate.encoding.strict_json import JsonObject
from gate.rulebooks.documents import RulebookBody
from gate.rulebooks.evaluation import compile_rulebook
from gate.rulebooks.rulebook import load
from gate.rulebooks.testing import mutation
from gate.rulebooks.testing.answers import Answer, Found, Never, Undecided
from gate.rulebooks.testing.cases import Case
from gate.rulebooks.testing.mutants import mutants_of
from gate.rulebooks.testing.mutation import MutationReport, mutation_score
from gate.rulebooks.testing.runs import holds, observe
from gate.rulebooks.testing.shares import Share
from tests.reference.strategies import facts, rulebooks
from tests.support.rulebooks import compare, rule, rulebook
from tests.support.tiers import examples
from tests.support.torture import size

BODY = rulebook(
    rule("approve", {"all": [compare("amount", "lte", 50), compare("risk", "eq", "low")]}, priority=2),
    rule("hold", compare("amount", "gt", 1000), priority=1),
    amount="integer",
    required=["amount"],
)


class Grid:
    """Judges over some facts alone, and keeps what it was asked."""

    def __init__(self, tried: Iterable[Any], otherwise: Answer | None = None) -> None:
        self.tried = list(tried)
        self.otherwise: Answer = otherwise or Never()
        self.asked: list[RulebookBody] = []

    def difference(self, original: RulebookBody, mutant: RulebookBody) -> Answer:
        self.asked.append(mutant)
        one, other = compile_rulebook(original), compile_rulebook(mutant)
        return next((Found(each) for each in self.tried if one.decide(each) != other.decide(each)), self.otherwise)


AMOUNTS = [{"amount": amount} for amount in (49, 50, 51, 999, 1000, 1001, "50", 0.5)]
GRID: list[dict[str, Any]] = [
    {},
    {"risk": "low"},
    *AMOUNTS,
    *({**each, "risk": risk} for each in AMOUNTS for risk in ("low", "high")),
]


def cases_of(*facts: Any, body: Any = BODY) -> list[Case]:
    """Cases with these facts, which hold."""
    original = load(body)
    expected: list[Any] = [observe(original, each) for each in facts]
    return [Case(f"case {at}", each, expect) for at, (each, expect) in enumerate(zip(facts, expected, strict=True))]


def scored(*facts: Any) -> MutationReport:
    return mutation_score(load(BODY), cases_of(*facts), Grid(GRID))


def test_cases_at_every_edge_kill_every_mutant_that_decides_otherwise() -> None:
    report = scored(*GRID)
    assert (report.survived, report.undecided, report.cut, report.failing) == ((), (), False, ())
    assert report.score.percent == "100 %"
    assert len(report.killed) + len(report.equivalent) == sum(1 for _ in mutants_of(BODY))


def test_a_survivor_comes_with_facts_that_kill_it() -> None:
    report = scored({"amount": 10, "risk": "low"}, {"amount": 100, "risk": "low"})
    assert report.score.fraction is not None
    assert 0 < report.score.fraction < 1
    moved = next(one for one in report.survived if one.mutant.description.endswith("amount lte 50 becomes lte 51"))
    assert moved.facts == {"amount": 51, "risk": "low"}
    assert (moved.original.matched_rule_id, moved.mutated.matched_rule_id) == (None, "approve")
    for survivor in report.survived:
        again = scored({"amount": 10, "risk": "low"}, survivor.facts)
        assert survivor.mutant.description not in [other.mutant.description for other in again.survived]


def test_a_killed_mutant_names_a_case_that_does_not_hold_on_it() -> None:
    cases = {case.name: case for case in cases_of(*GRID)}
    for killed in scored(*GRID).killed:
        assert not holds(compile_rulebook(killed.mutant.body), cases[killed.case])


def test_only_mutants_that_no_case_kills_are_judged() -> None:
    judge = Grid(GRID)
    report = mutation_score(load(BODY), cases_of(*GRID[:9]), judge)
    assert report.killed
    assert len(judge.asked) == len(report.survived) + len(report.equivalent)


def test_what_a_judge_leaves_open_does_not_count() -> None:
    report = mutation_score(load(BODY), cases_of(*GRID[:2]), Grid([], Undecided("it would take too long")))
    assert report.undecided
    assert {one.reason for one in report.undecided} == {"it would take too long"}
    assert report.score == Share(len(report.killed), len(report.killed))


def test_facts_that_the_evaluator_does_not_confirm_are_no_witness() -> None:
    class Mistaken:
        def difference(self, original: RulebookBody, mutant: RulebookBody) -> Answer:
            return Found({"amount": 500})

    report = mutation_score(load(BODY), [], Mistaken())
    assert report.undecided
    for survivor in report.survived:
        assert survivor.original != survivor.mutated


def test_a_case_that_does_not_hold_kills_nothing() -> None:
    wrong = Case("wrong", {"amount": 10, "risk": "low"}, {"verdict": "no"})
    report = mutation_score(load(BODY), [wrong], Grid(GRID))
    assert (report.failing, report.killed) == (("wrong",), ())


def test_an_expectation_that_says_little_kills_little() -> None:
    facts: JsonObject = {"amount": 10, "risk": "low"}
    little = mutation_score(load(BODY), [Case("little", facts, {"action": "approve"})], Grid(GRID))
    much = mutation_score(load(BODY), cases_of(facts), Grid(GRID))
    assert len(little.killed) <= len(much.killed)
    assert "outcome_exchanged" in {one.mutant.kind for one in little.killed}
    empty = mutation_score(load(BODY), [Case("missing", {}, {"missing_fields": ["amount"]})], Grid(GRID))
    assert {one.mutant.kind for one in empty.killed} == {"requirement_dropped"}


def test_mutants_beyond_the_bounds_are_not_tried_and_the_report_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    number = sum(1 for _ in mutants_of(BODY))
    for bound, cut in ((number, False), (number - 1, True)):
        monkeypatch.setattr(mutation, "MAX_MUTANTS", bound)
        report = scored()
        assert report.cut is cut
        assert len(report.survived) + len(report.equivalent) == bound
    monkeypatch.setattr(mutation, "MAX_MUTANTS", number)
    monkeypatch.setattr(mutation, "MAX_WORK", 30)
    assert scored(*GRID).cut is True


@settings(max_examples=examples(size(20, 2_000)))
@given(st.data())
def test_a_mutant_is_killed_where_any_case_does_not_hold_on_it(data: st.DataObject) -> None:
    body: Any = data.draw(rulebooks())
    cases = cases_of(*data.draw(st.lists(facts(), max_size=4)), body=body)
    killed = [content_hash(one.mutant.body) for one in mutation_score(load(body), cases, Grid([])).killed]
    noticed = []
    for mutant in mutants_of(body):
        evaluator = compile_rulebook(mutant.body)
        if not all(holds(evaluator, case) for case in cases):
            noticed.append(content_hash(mutant.body))
    assert killed == noticed


@pytest.mark.parametrize(
    ("part", "whole", "percent"),
    [(0, 0, "-"), (0, 3, "0.0 %"), (1, 3, "33.3 %"), (2, 3, "66.6 %"), (9_999, 10_000, "99.9 %"), (7, 7, "100 %")],
)
def test_a_share_is_never_rounded_up(part: int, whole: int, percent: str) -> None:
    share = Share(part, whole)
    assert share.percent == percent
    assert share.fraction == (Fraction(part, whole) if whole else None)


def test_a_raised_rule_is_noticed_where_it_comes_before_others_of_its_new_priority() -> None:
    body = rulebook(
        rule("c_first", compare("x", "eq", 1), priority=10),
        rule("d_next", compare("x", "eq", 2), priority=10),
        rule("a_last", compare("x", "exists"), priority=5),
    )
    report = mutation_score(load(body), cases_of({"x": 1}, body=body), Grid([]))
    assert "priorities_exchanged" in {one.mutant.kind for one in report.killed}
