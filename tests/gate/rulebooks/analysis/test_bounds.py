"""Bounds of the analysis: what costs too much is named as not decided, and large rulebooks are answered."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from gate.rulebooks.analysis import NotDecided, Questions, analyse, report
from gate.rulebooks.analysis.formulas.solver import Solver
from gate.rulebooks.rulebook import find_errors
from gate.rulebooks.testing.answers import Undecided
from gate.rulebooks.testing.exact import ExactJudge
from tests.support.rulebooks import compare, rule, rulebook

TOO_MANY_VALUES = rulebook(
    *(rule(f"r{bit}", compare("a", "in", [f"v{at}" for at in range(2_100) if at >> bit & 1])) for bit in range(12))
)
"""No two of its values stand in the same lists, so each is a class of its own."""


def nested(depth: int, test: Any) -> Any:
    condition = test
    for at in range(depth - 1):
        condition = {"not": condition} if at % 2 else {"any": [condition]}
    return condition


def test_a_field_with_too_many_kinds_of_values_is_not_decided() -> None:
    found = analyse(TOO_MANY_VALUES, against=TOO_MANY_VALUES)
    assert (found.decided, found.findings) == (False, ())
    (sentence,) = found.undecided
    assert sentence == (
        "Nothing about the rulebook is decided: of the field a the tests tell more than 2000 kinds of values apart."
    )
    assert found.difference is not None
    assert (found.difference.equal, found.difference.regions) == (None, ())
    with pytest.raises(NotDecided):
        Questions(TOO_MANY_VALUES)
    assert isinstance(ExactJudge().difference(TOO_MANY_VALUES, TOO_MANY_VALUES), Undecided)


def test_too_many_fields_are_not_decided() -> None:
    declared: dict[str, Any] = {f"f{at}": "string" for at in range(2_001)}
    body = rulebook(**declared)
    assert analyse(body).undecided == (
        "Nothing about the rulebook is decided: the rulebooks name 2002 fields, more than 2000.",
    )


def test_questions_that_cost_too_much_are_named_and_not_guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "Solver", partial(Solver, together=0))
    body = rulebook(rule("r1", compare("a", "gt", 1)), a="number")
    found = analyse(body, against=body)
    assert (found.decided, found.dangerous, found.findings) == (False, False, ())
    assert "Whether the rule r1 can match is not decided: the analysis cost more than 0 steps." in found.undecided
    assert found.difference is not None
    assert found.difference.equal is None
    assert found.difference.undecided == (
        "Whether the rulebooks are equal is not decided: the analysis cost more than 0 steps.",
    )


def test_a_long_list_of_regions_is_cut_and_named() -> None:
    before = rulebook(rule("r1", {"any": [compare(f"f{at}", "eq", at) for at in range(32)]}))
    after: Any = {**before, "rules": [rule("r2", before["rules"][0]["condition"])]}
    difference = analyse(after, against=before).difference
    assert difference is not None
    assert (difference.equal, difference.decided, len(difference.regions)) == (False, False, 20)
    assert difference.undecided == ("Only 20 regions are listed in which yes (r1) becomes yes (r2).",)


def test_the_largest_rulebook_is_decided() -> None:
    fields = [f"f{at}" for at in range(20)]
    tests = [compare(fields[at % 20], ("gt", "lte")[at % 2], at) for at in range(100)]
    # 22 conditions of 8 nodes and 78 of one are nearly all the nodes that a rulebook may have.
    conditions = [nested(8 if at < 22 else 1, test) for at, test in enumerate(tests)]
    rules = [rule(f"r{at}", condition, priority=at % 7) for at, condition in enumerate(conditions)]
    declared: dict[str, Any] = dict.fromkeys(fields, "number")
    body = rulebook(*rules, **declared)
    assert find_errors(body) == []
    assert analyse(body, against=body).decided
