"""The form of the facts at hand gives the facts that it shows."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gate.drafting.given import fields_of, read_given
from gate.encoding.canonical import canonical
from gate.encoding.strict_json import parse
from tests.reference.strategies import rulebooks
from tests.support.samples import sample_rulebook
from tests.support.tiers import examples
from tests.support.torture import size

TYPES = ("number", "integer", "string", "boolean", "array", "object", "null")
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "number": st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**53) + 1, 2**53 - 1),
    "integer": st.integers(-(2**53) + 1, 2**53 - 1),
    "string": st.text(),
    "boolean": st.booleans(),
    "array": st.lists(st.integers(-9, 9) | st.text(max_size=3), max_size=3),
    "object": st.dictionaries(st.text(max_size=3), st.integers(-9, 9), max_size=3),
    "null": st.none(),
}


def body_with(**types: str) -> Any:
    body: Any = sample_rulebook()
    body["input_schema"] = {"required": [], "properties": {name: {"type": of} for name, of in types.items()}}
    return body


def again(body: Any, facts: Any) -> Any:
    """The facts of a form that was filled in by facts and sent as it is."""
    fields = fields_of(body, facts)
    return read_given(fields, {field.name: {"is": field.state, "text": field.text} for field in fields}, facts)


@given(st.data())
def test_a_form_as_it_is_shown_gives_the_same_facts(data: st.DataObject) -> None:
    types = {f"f{number}": data.draw(st.sampled_from(TYPES)) for number in range(4)}
    facts = {name: data.draw(VALUES[of]) for name, of in types.items() if data.draw(st.booleans())}
    found = again(body_with(**types), facts)
    assert (canonical(found.facts), found.faults) == (canonical(facts), {})


def test_facts_that_no_line_stands_for_stay() -> None:
    facts = {"elsewhere": {"a": 1}, "amount": 5}
    assert again(body_with(amount="number"), facts).facts == facts


def test_a_fact_within_another_has_a_line_and_keeps_its_neighbours_out() -> None:
    body = body_with(**{"order.total": "number"})
    fields = fields_of(body, {"order": {"total": 5, "id": "x"}})
    (total,) = [field for field in fields if field.name == "order.total"]
    assert (total.state, total.text) == ("value", "5")
    given_ = read_given(fields, {"order.total": {"is": "value", "text": "7"}}, {})
    assert given_.facts == {"order": {"total": 7}}


@pytest.mark.parametrize(
    ("type_", "text", "fault"),
    [
        ("number", "12,5", "This is not a number."),
        ("number", "1e400", "This is not a number."),
        ("integer", "x", "This is not an integer."),
        ("array", "gold", "This is not a list, such as [1, 2]."),
        ("object", "{", "This is not an object, such as {}."),
        ("boolean", "maybe", "This is not a boolean."),
    ],
)
def test_what_a_fact_cannot_be_is_told_at_its_line_and_left_out(type_: str, text: str, fault: str) -> None:
    fields = fields_of(body_with(f=type_), {})
    found = read_given(fields, {"f": {"is": "value", "text": text}}, {})
    assert (found.facts, found.faults) == ({}, {"f": fault})


@pytest.mark.parametrize("lines", [{"f": None}, {"f": 7}, {"f": {"is": "value"}}, {"f": {"is": "none", "text": 7}}, {}])
def test_a_line_that_is_none_gives_no_fact(lines: Any) -> None:
    assert read_given(fields_of(body_with(f="string"), {}), lines, {}).facts == {}


@settings(max_examples=examples(size(40, 300)), deadline=None)
@given(rulebooks())
def test_every_fact_that_a_rulebook_reads_has_a_line(body: Any) -> None:
    body = parse(canonical(body))
    names = {field.name for field in fields_of(body, {})}
    assert names >= set(body["input_schema"]["properties"]) | set(body["input_schema"]["required"])
