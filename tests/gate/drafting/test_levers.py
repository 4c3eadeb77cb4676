"""Levers reach beyond every value that matters, and what a change moves is counted as the decisions say it."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gate.drafting.levers import MAX_SLIDER, levers, patch_of
from gate.encoding.canonical import canonical
from gate.encoding.strict_json import parse
from gate.rulebooks import conditions
from tests.reference.strategies import rulebooks
from tests.support.tiers import examples
from tests.support.torture import size


@settings(max_examples=examples(size(60, 400)), deadline=None)
@given(rulebooks(), st.data())
def test_a_slider_reaches_every_constant_and_the_fact_itself(body: Any, data: st.DataObject) -> None:
    body = parse(canonical(body))
    numbers = st.floats(-1e9, 1e9) | st.integers(-(10**9), 10**9)
    names = [
        name for name, of in body["input_schema"]["properties"].items() if "." not in name and of["type"] == "number"
    ]
    facts = {name: data.draw(numbers) for name in names if data.draw(st.booleans())}
    found = {lever.name: lever for lever in levers(body, facts)}
    tests = [(node.condition["field"], node.condition.get("value")) for _, node in conditions.tests_of(body)]
    constants = [
        (name, each)
        for name, value in tests
        for each in (value if isinstance(value, list) else [value])
        if isinstance(each, int | float) and not isinstance(each, bool)
    ]
    for name, value in [*constants, *facts.items()]:
        lever = found[name]
        if lever.low is None or lever.high is None or lever.step is None:
            of = [abs(each) for field, each in (*constants, *facts.items()) if field == name]
            assert lever.type not in ("number", "integer") or max(of) > MAX_SLIDER
            continue
        assert lever.low <= value <= lever.high
        assert lever.step > 0


def test_a_lever_has_the_values_that_tests_name() -> None:
    body: Any = {
        "input_schema": {"required": [], "properties": {"segment": {"type": "string"}, "open": {"type": "boolean"}}},
        "rules": [
            {"condition": {"field": "segment", "operator": "in", "value": ["gold", "silver"]}},
            {"condition": {"field": "segment", "operator": "eq", "value": "gold"}},
        ],
    }
    segment, open_ = levers(body, {"segment": "bronze"})
    assert (segment.choices, segment.was, segment.state) == (("gold", "silver"), "bronze", "value")
    assert (open_.choices, open_.state) == (("true", "false"), "absent")


def test_changed_facts_are_a_merge_patch() -> None:
    assert patch_of({"order.total": 5, "order.id": None, "a": [1]}) == {"order": {"total": 5, "id": None}, "a": [1]}
