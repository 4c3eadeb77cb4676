"""A change in the table changes its value in the text, and nothing else: no comment, order or indentation."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gate.drafting.splicing import gather, insert, read, remove, remove_member, replace, set_member
from gate.encoding.yaml_text import write_yaml
from gate.errors import MaterialRefused
from tests.reference.strategies import rulebooks
from tests.support.tiers import examples
from tests.support.torture import size

TEXT = """\
# The prices.
rules:
  # About the first.
  - rule_id: one  # one
    priority: 1
    condition: {field: a, operator: lte, value: 5} # flow
  # About the second.
  # More about it.
  - rule_id: two
    # within
    condition:
      all:
        - {field: b, operator: exists}
        - field: "c.d"
          operator: eq
          value: 'x'
# The rest.
default_outcome: {decision: no} # last
"""


def changed(old: str, new: str) -> str:
    assert TEXT.count(old) == 1
    return TEXT.replace(old, new)


def test_a_value_is_replaced_where_it_stands() -> None:
    assert replace(TEXT, ("rules", 0, "priority"), 20) == changed("priority: 1\n", "priority: 20\n")
    assert replace(TEXT, ("rules", 0, "condition", "value"), "a: b") == changed("value: 5}", 'value: "a: b"}')
    assert replace(TEXT, ("rules", 1, "condition", "all", 1, "value"), "no") == changed("'x'", '"no"')


def test_a_condition_begins_on_a_line_of_its_own_where_it_needs_lines() -> None:
    several: Any = {"any": [{"field": "q", "operator": "exists"}, {"not": {"field": "z", "operator": "exists"}}]}
    made = replace(TEXT.replace(" # flow", ""), ("rules", 0, "condition"), several)
    assert (
        "    condition:\n      any:\n        - {field: q, operator: exists}\n"
        "        - not: {field: z, operator: exists}\n  # About the second." in made
    )
    assert replace(made, ("rules", 0, "condition"), {"field": "a", "operator": "lte", "value": 5}) == TEXT.replace(
        " # flow", ""
    )


def test_a_rule_goes_with_the_comments_above_and_in_it() -> None:
    made = remove(TEXT, ("rules",), 0)
    assert "About the first" not in made
    assert made.startswith("# The prices.\nrules:\n  # About the second.\n  # More about it.\n  - rule_id: two\n")
    assert remove(TEXT, ("rules",), 1).endswith(
        "value: 5} # flow\n# The rest.\ndefault_outcome: {decision: no} # last\n"
    )


def test_a_rule_comes_where_it_is_wanted() -> None:
    rule: Any = {"rule_id": "new", "condition": {"all": [{"field": "q", "operator": "exists"}]}}
    lines = "  - rule_id: new\n    condition:\n      all:\n        - {field: q, operator: exists}\n"
    assert insert(TEXT, ("rules",), 0, rule) == changed("  # About the first.\n", f"{lines}  # About the first.\n")
    assert insert(TEXT, ("rules",), 1, rule) == changed("  # About the second.\n", f"{lines}  # About the second.\n")
    assert insert(TEXT, ("rules",), 2, rule) == changed("# The rest.\n", f"{lines}# The rest.\n")


def test_members_come_and_go() -> None:
    assert set_member(TEXT, ("rules", 1), "priority", 7) == changed(
        "          value: 'x'\n", "          value: 'x'\n    priority: 7\n"
    )
    assert set_member(TEXT, ("rules", 0), "priority", 7) == changed("priority: 1\n", "priority: 7\n")
    assert set_member(TEXT, ("default_outcome",), "action", "pay") == changed(
        "{decision: no}", "{decision: no, action: pay}"
    )
    assert remove_member(TEXT, ("rules", 0, "priority")) == changed("    priority: 1\n", "")
    assert remove_member(TEXT, ("rules", 0, "condition", "value")) == changed(", value: 5", "")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "a:\n  b: # one\n    # two\n    x: 1 # three\n\n    # four\n    y: |\n      5\n       6\n    # five\nc: 1",
            "a:\n  b: # one\n    # two\n    all:\n      - x: 1 # three\n\n        # four\n        y: |\n          5\n"
            "           6\n      - 7\n    # five\nc: 1\n",
        ),
        ("a: {b: {x: 1}, c: 2} # one\n", "a: {b: {all: [{x: 1}, 7]}, c: 2} # one\n"),
        ("a:\n- b: {x: 1} # one\n  c: 2\n", "a:\n- b:\n    all:\n      - {x: 1} # one\n      - 7\n  c: 2\n"),
        (
            "a:\n  b:\n    {x: 1, # one\n     y: 2} # two\n",
            "a:\n  b:\n    all:\n      - {x: 1, # one\n         y: 2} # two\n      - 7\n",
        ),
        ('{"a": {"b": 1}}', '{"a": {"b": {"all": [1, 7]}}}'),
    ],
)
def test_a_value_is_gathered_with_another_and_keeps_its_comments(before: str, after: str) -> None:
    steps = ("a", 0, "b") if "- b" in before else ("a", "b")
    made = gather(before, steps, "all", 7)
    assert made == after if "#" in before else json.loads(made) == json.loads(after)


def test_an_item_is_gathered_where_it_stands() -> None:
    text = "a:\n- x: 1 # one\n  y: 2\n- z # two\n"
    assert gather(text, ("a", 0), "any", 7) == "a:\n- any:\n    - x: 1 # one\n      y: 2\n    - 7\n- z # two\n"
    assert gather(text, ("a", 1), "any", 7) == "a:\n- x: 1 # one\n  y: 2\n- any:\n    - z # two\n    - 7\n"


def test_a_change_that_would_lose_a_comment_elsewhere_is_refused() -> None:
    text = "a:\n  # kept\n  - 1 # one\n"
    with pytest.raises(MaterialRefused, match="Change it in the text") as refused:
        replace("a: # kept\n  b: 1\n", ("a",), 5)
    assert refused.value.code == "DRAFT_EDIT_REFUSED"
    with pytest.raises(MaterialRefused):
        replace("a:\n  - 1 # one\n  - 2\n", ("a",), [1, 3])
    assert remove("a:\n  - 0\n  - 1 # one\n", ("a",), 0) == "a:\n  - 1 # one\n"
    with pytest.raises(MaterialRefused):
        remove(text, ("a",), 0)


def test_a_text_that_cannot_be_read_is_not_changed() -> None:
    for text in ("a: [", "{", '{"a": 1, "a": 2}', "a: b: c", ""):
        with pytest.raises(MaterialRefused):
            replace(text, ("a",), 1)


def test_names_with_dots_are_names() -> None:
    text = '{"a.b": 1, "a": {"b": 2}}'
    assert replace(text, ("a.b",), 5) == '{"a.b": 5, "a": {"b": 2}}'
    assert replace(text, ("a", "b"), 5) == '{"a.b": 1, "a": {"b": 5}}'


def test_the_last_line_may_have_no_end() -> None:
    assert insert("a:\n  - 1", ("a",), 1, 2) == "a:\n  - 1\n  - 2\n"
    assert set_member("a: 1", (), "b", 2) == "a: 1\nb: 2\n"


@settings(max_examples=examples(size(60, 500)), deadline=None)
@given(rulebooks(), st.data())
def test_every_change_can_be_made_to_any_rulebook(body: Any, data: st.DataObject) -> None:
    text = data.draw(st.sampled_from([json.dumps(body), json.dumps(body, indent=2), write_yaml(body)]))
    rules = body["rules"]
    at = data.draw(st.integers(0, len(rules) - 1))
    other = data.draw(rulebooks())["rules"][0]
    values = {
        replace(text, ("rules", at), other): [*rules[:at], other, *rules[at + 1 :]],
        replace(text, ("rules", at, "condition"), other["condition"]): [
            *rules[:at],
            {**rules[at], "condition": other["condition"]},
            *rules[at + 1 :],
        ],
        insert(text, ("rules",), at, other): [*rules[:at], other, *rules[at:]],
        remove(text, ("rules",), at): [*rules[:at], *rules[at + 1 :]],
        gather(text, ("rules", at, "condition"), "any", other["condition"]): [
            *rules[:at],
            {**rules[at], "condition": {"any": [rules[at]["condition"], other["condition"]]}},
            *rules[at + 1 :],
        ],
        set_member(text, ("rules", at), "priority", 9): [*rules[:at], {**rules[at], "priority": 9}, *rules[at + 1 :]],
    }
    for made, expected in values.items():
        assert read(made).value == {**body, "rules": expected}
