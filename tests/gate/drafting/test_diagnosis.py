"""While a draft is typed, every error and warning stands at its place, whatever the text is."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gate.drafting.diagnosis import MAX_PROBLEMS, diagnose
from gate.drafting.merging import MINE, merge
from gate.encoding.yaml_text import write_yaml
from gate.rulebooks.advice import find_warnings
from tests.reference.strategies import rulebooks
from tests.support.samples import sample_rulebook
from tests.support.tiers import examples
from tests.support.torture import size

YAML = write_yaml(sample_rulebook())


def marked(text: str) -> list[tuple[str, int, str, str]]:
    """Severity, line, the text that is marked, and code."""
    found = diagnose(text).problems
    return [(each.severity, each.line, text[each.start : each.end], each.code) for each in found]


def test_a_merge_in_which_nobody_has_chosen_is_no_rulebook_wherever_it_is() -> None:
    base = write_yaml(sample_rulebook()) + "# segments\n"
    listed = base.replace("required:", "required: [\n    discount_percent,\n    margin_percent,\n  ]\n  was:", 1)
    mine, theirs = (listed.replace("margin_percent,\n", f"margin_percent,\n    {name},\n", 1) for name in ("a", "b"))
    merged = merge(listed, mine, theirs)
    assert merged.conflicts == 1
    found = diagnose(merged.text)
    assert found.rulebook is None
    (problem,) = found.problems
    assert (problem.code, merged.text.split("\n")[problem.line - 1]) == ("DRAFT_UNMERGED", MINE)
    # As a value or a comment they are what they are.
    assert diagnose(f"{base}# <<<<<<< yours, >>>>>>> theirs\n").rulebook is not None


def test_a_valid_draft_is_a_rulebook() -> None:
    for text in (YAML, json.dumps(sample_rulebook()), json.dumps(sample_rulebook(), indent=2)):
        found = diagnose(text)
        assert found.rulebook is not None
        assert (found.rulebook.body, found.problems) == (sample_rulebook(), ())


def test_an_error_stands_at_its_member() -> None:
    text = YAML.replace("priority: 50", "priority: fifty")
    line = text[: text.index("priority: fifty")].count("\n") + 1
    assert marked(text) == [("error", line, "priority: fifty", "type")]
    assert diagnose(text).rulebook is None


def test_what_is_missing_stands_where_what_lacks_it_begins() -> None:
    text = YAML.replace("    priority: 50\n", "").replace("rule_id: approve_standard_exception", "condition2: 1")
    found = marked(text)
    assert {code for _, _, _, code in found} >= {"required", "unknown_field"}
    assert all("\n" not in marked_ for _, _, marked_, _ in found)


def test_a_warning_stands_at_its_member_and_keeps_no_rulebook_from_being_valid() -> None:
    text = YAML.replace("discount_percent, operator: lte", "discount_percnt, operator: lte")
    found = diagnose(text)
    assert found.rulebook is not None
    (first, *_) = found.problems
    assert (first.severity, first.code) == ("warning", "undeclared_field")
    assert "discount_percnt" in text[first.start : first.end]


@pytest.mark.parametrize(
    ("text", "line", "part"),
    [
        ("", 1, "empty"),
        ("a: [", 1, "not closed"),
        ("a: 1\nb: 2\na: 3\n", 3, "appears twice"),
        ('{\n"a": 1,\n"a": 2}', 3, "appears twice"),
        ('{"a": 1,\n  "b" 2}', 2, "not JSON"),
        ('{"a":\n 1e400}', 2, "1e400"),
        ("a: &b 1\n", 1, "anchor"),
        ("x" * 1_000_000, 1, "bytes"),
        ("{" * 200_000, 1, ""),
        ("[" * 100_000, 1, ""),
        ("a:\n" * 40_000, 1, ""),
        ("<script>alert(1)</script>", 1, ""),
        ("\u2028", 1, ""),
    ],
)
def test_what_is_no_json_or_yaml_has_one_error_on_its_line(text: str, line: int, part: str) -> None:
    found = diagnose(text)
    assert found.rulebook is None
    (problem,) = found.problems
    assert (problem.severity, problem.line) == ("error", line)
    assert part in problem.message
    assert 0 <= problem.start <= problem.end <= len(text)


def test_problems_without_number_are_cut() -> None:
    body = sample_rulebook()
    body["input_schema"]["properties"] = {f"f{number}": {"type": "x"} for number in range(1_000)}
    assert len(diagnose(json.dumps(body)).problems) <= MAX_PROBLEMS


@settings(max_examples=examples(size(40, 300)), deadline=None)
@given(rulebooks(), st.data())
def test_every_problem_is_within_its_line(body: Any, data: st.DataObject) -> None:
    text = data.draw(st.sampled_from([json.dumps(body, indent=2), write_yaml(body)]))
    found = diagnose(text)
    assert found.rulebook is not None
    assert [each.code for each in found.problems].sort() == [each.code for each in find_warnings(body, None)].sort()
    # Broken anywhere, it still has an answer.
    at = data.draw(st.integers(0, len(text) - 1))
    broken = text[:at] + data.draw(st.sampled_from(["", '"', "{", ":", "\n", "\t", "\x00", "- "])) + text[at + 1 :]
    for problem in diagnose(broken).problems:
        assert problem.line == broken.count("\n", 0, problem.start) + 1
        assert problem.start <= problem.end <= len(broken)
        assert "\n" not in broken[problem.start : problem.end]
