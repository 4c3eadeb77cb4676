"""Edits tell what was changed between two versions of a rulebook: every part that differs, and nothing else."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings

from gate.encoding.canonical import canonical
from gate.encoding.strict_json import parse
from gate.rulebooks.comparison import compare
from gate.rulebooks.edits import condition_in_words, find_edits
from tests.reference.strategies import rulebooks
from tests.support.rulebooks import compare as holds
from tests.support.rulebooks import rule, rulebook
from tests.support.samples import sample_rulebook
from tests.support.tiers import examples
from tests.support.torture import size

SMALL = holds("amount", "lte", 50)
RISKY = holds("risk", "eq", "high")
KNOWN = {"field": "owner", "operator": "exists"}


def sentences(before: Any, after: Any) -> list[str]:
    return [edit.text for edit in find_edits(before, after)]


def told(before: Any, after: Any) -> str:
    """The sentence about a rule `one` with another condition, without its beginning."""
    (found,) = find_edits(rulebook(rule("one", before)), rulebook(rule("one", after)))
    assert (found.kind, found.name) == ("condition", "one")
    return found.text.removeprefix("In the rule one, ")


def test_a_moved_threshold_is_told_by_its_test() -> None:
    before, after = sample_rulebook(), sample_rulebook()
    after["version"] = "later"
    after["rules"][1]["condition"]["all"][0]["value"] = 20
    assert sentences(before, after) == [
        "In the rule approve_standard_exception, discount_percent lte 15 is now discount_percent lte 20."
    ]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (SMALL, holds("amount", "lt", 50), "amount lte 50 is now amount lt 50."),
        (SMALL, {"not": SMALL}, "amount lte 50 is now not amount lte 50."),
        (SMALL, {"all": [SMALL, RISKY]}, 'amount lte 50 is now (amount lte 50 and risk eq "high").'),
        ({"all": [SMALL]}, {"all": [SMALL, KNOWN]}, "owner exists is now also required."),
        ({"all": [SMALL, KNOWN]}, {"all": [SMALL]}, "owner exists is no longer required."),
        ({"any": [SMALL]}, {"any": [SMALL, KNOWN]}, "owner exists is now also enough."),
        ({"any": [SMALL, KNOWN]}, {"any": [KNOWN]}, "amount lte 50 is no longer enough."),
        (
            {"all": [SMALL, RISKY]},
            {"all": [holds("risk", "eq", "low"), holds("amount", "lte", 60)]},
            'amount lte 50 is now amount lte 60; risk eq "high" is now risk eq "low".',
        ),
        ({"all": [SMALL, RISKY]}, {"any": [SMALL, RISKY]}, None),
        (
            {"any": [KNOWN, {"not": {"all": [SMALL, RISKY]}}]},
            {"any": [KNOWN, {"not": {"all": [SMALL, holds("risk", "in", ["high"])]}}]},
            'risk eq "high" is now risk in ["high"].',
        ),
        ({"all": [SMALL, KNOWN]}, {"all": [KNOWN, SMALL]}, "the order or number of its conditions changed."),
        (
            {"all": [SMALL, {"any": [RISKY, KNOWN]}]},
            {"all": [SMALL]},
            '(risk eq "high" or owner exists) is no longer required.',
        ),
    ],
)
def test_a_condition_is_told_as_near_to_its_tests_as_can_be(before: Any, after: Any, expected: str | None) -> None:
    assert told(before, after) == (
        expected or '(amount lte 50 and risk eq "high") is now (amount lte 50 or risk eq "high").'
    )


def test_rules_that_come_go_or_change_are_told_with_their_outcomes() -> None:
    before, after = sample_rulebook(), sample_rulebook()
    before["rules"].append(rule("old_one", SMALL))
    after["rules"][0]["outcome"] |= {"decision": "review", "action": "ask the owner"}
    after["rules"][1]["priority"] = 51
    after["rules"].append({**rule("new_one", {"all": [SMALL, KNOWN]}), "priority": -3})
    code = after["rules"][-1]["outcome"]["reason_code"]
    decision = after["rules"][-1]["outcome"]["decision"]
    assert sorted(sentences(before, after)) == sorted(
        [
            "Where the rule block_below_margin_floor matches, the decision is review (it was no) and the action is "
            '"ask the owner" (it was reject_discount).',
            "The rule approve_standard_exception has priority 51 (it was 50).",
            f"The rule new_one is new: {decision} ({code}) at priority -3, where amount lte 50 and owner exists.",
            f"The rule old_one was removed: it gave {decision} ({code}) where amount lte 50.",
        ]
    )


def test_the_default_and_the_facts_are_told() -> None:
    before, after = sample_rulebook(), sample_rulebook()
    after["default_outcome"] |= {"decision": "no", "reason_code": "NONE"}
    after["input_schema"]["required"].remove("discount_percent")
    after["input_schema"]["properties"] |= {"margin_percent": {"type": "integer"}, "country": {"type": "string"}}
    assert sentences(before, after) == [
        "Where no rule matches, the decision is no (it was review) and the reason code is NONE (it was "
        "NO_RULE_MATCHED).",
        "The fact country is declared: of type string, optional.",
        "The fact discount_percent is optional (it was required).",
        "The fact margin_percent is of type integer (it was of type number).",
    ]
    assert "The fact country is no longer declared." in sentences(after, before)


def test_a_condition_without_end_is_cut() -> None:
    many: Any = {"any": [holds("amount", "eq", number) for number in range(32)]}
    huge = {"all": [{"any": [holds("name", "eq", "x" * 500) for _ in range(30)]} for _ in range(8)]}
    assert condition_in_words(many).endswith("...")
    for edit in find_edits(rulebook(rule("one", many)), rulebook(rule("one", huge), rule("two", huge))):
        assert len(edit.text) < 600


@settings(max_examples=examples(size(60, 200)), deadline=None)
@given(rulebooks(), rulebooks())
def test_there_are_edits_where_the_versions_differ_and_nowhere_else(one: dict[str, Any], other: dict[str, Any]) -> None:
    before: Any = parse(canonical(one))
    after: Any = parse(canonical(other))
    found = compare(before, after)
    edits = find_edits(before, after)
    differ = {rule.name for rule in found.rules} | {field.name for field in found.fields}
    assert {edit.name for edit in edits if edit.kind != "default_outcome"} == differ
    assert any(edit.kind == "default_outcome" for edit in edits) == (found.default is not None)
    for edit in edits:
        assert edit.text.endswith(".")
        assert "\n" not in edit.text
    same = deepcopy(before)
    same["rules"].reverse()
    assert find_edits(before, same) == []
