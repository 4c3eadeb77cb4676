"""What fits is proposed wherever an author types, in JSON and YAML, though the text is broken there."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.drafting.completion import proposals
from gate.encoding.yaml_text import write_yaml
from tests.support.samples import sample_rulebook

YAML = """\
schema_version: rulebook_v1
rulebook_id: prices
input_schema:
  required:
    - amount
  properties:
    amount: {type: number}
    segment:
      type: string
rules:
  - rule_id: one
    condition: {field: amount, operator: lte, value: 5}
    outcome: {decision: "yes", verdict: APPROVE, action: pay, reason_code: SMALL}
  - rule_id: two
    condition:
      all:
        - field: segment
          operator: eq
"""


def fits(text: str) -> list[str]:
    """What is proposed at the bar in a text."""
    offset = text.index("|")
    return [proposal.label for proposal in proposals(text.replace("|", "", 1), offset)]


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("|", "schema_version"),
        ("schema_version: |", "rulebook_v1"),
        ("rules:\n  - |", "rule_id"),
        ("rules:\n  - rule_id: a\n    |", "rule_id"),
        ("rules:\n  - rule_id: a\n    con|", "rule_id"),
        ("rules:\n  - rule_id: a\n    condition:\n      |", "field"),
        ("rules:\n  - rule_id: a\n    condition: {|", "field"),
        ("rules:\n  - rule_id: a\n    condition: {field: b, |", "field"),
        ("rules:\n  - rule_id: a\n    condition: {field: b, operator: |", "exists"),
        ("rules:\n  - condition:\n      all:\n        - |", "field"),
        ("rules:\n  - condition:\n      all:\n        - field: x\n          operator: |", "exists"),
        ("rules:\n  - outcome: {decision: |", "yes"),
        ("rules:\n  - outcome:\n      |", "decision"),
        ("default_outcome:\n  |", "decision"),
        ("default_outcome:\n  decision: r|", "yes"),
        ("input_schema:\n  |", "required"),
        ("input_schema:\n  properties:\n    a: {type: |", "number"),
        ("input_schema:\n  properties:\n    a: {|", "type"),
        ("input_schema:\n  properties:\n    a:\n      |", "type"),
        ('{"rules": [{|', "rule_id"),
        ('{"rules": [{"condition": {"operator": "|', "exists"),
        ('{"rules": [{"condition": {"all": [{|', "field"),
        ('{"|', "schema_version"),
    ],
)
def test_members_and_values_fit_their_place(text: str, first: str) -> None:
    assert fits(text)[:1] == [first]


def test_declared_facts_and_what_was_used_before_are_proposed() -> None:
    assert fits(YAML + "        - field: |") == ["amount", "segment"]
    assert fits(YAML.replace("{field: amount,", "{field: |,")) == ["amount", "segment"]
    assert fits(YAML + "    outcome: {verdict: |") == ["APPROVE"]
    assert fits(YAML.replace("    - amount\n", "    - |\n")) == ["amount", "segment"]
    assert fits(YAML.replace("required:\n    - amount", "required: [|]")) == ["amount", "segment"]


def test_words_that_older_readers_take_for_truths_are_quoted() -> None:
    text = "default_outcome:\n  decision: "
    assert {each.label: each.apply for each in proposals(text, len(text))} == {
        "yes": '"yes"',
        "no": '"no"',
        "review": "review",
    }


@pytest.mark.parametrize("text", ["rules:\n  - rule_id: |", "version: |", "input_schema:\n  properties:\n    |"])
def test_where_an_author_names_something_nothing_is_proposed(text: str) -> None:
    assert fits(text) == []


@given(st.integers(0, 5_000), st.booleans())
def test_anywhere_in_a_rulebook_something_or_nothing_fits(offset: int, yaml: bool) -> None:
    text = write_yaml(sample_rulebook()) if yaml else json.dumps(sample_rulebook(), indent=2)
    for proposal in proposals(text, min(offset, len(text))):
        assert proposal.label.strip("_").isidentifier() or proposal.detail != "member"


@given(st.text("{}[]\"':,-# \n\\aé", max_size=60))
def test_no_text_is_too_broken(text: str) -> None:
    for offset in range(len(text) + 1):
        proposals(text, offset)
