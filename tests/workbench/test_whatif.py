"""What if facts were others: reading them as a form has them, and putting them into the facts of a decision."""

from __future__ import annotations

from typing import Any

import pytest

from gate.errors import OperatorError
from gate.rulebooks.evaluation import ABSENT
from gate.rulebooks.rulebook import Rulebook, load
from tests.support.samples import sample_rulebook
from workbench.whatif import read_changes, with_changes


@pytest.fixture
def rulebook() -> Rulebook:
    """A rulebook that declares facts of several types, one of them within another."""
    properties = {"order": {"type": "object"}, "order.total": {"type": "number"}, "coupon": {"type": "string"}}
    body: Any = sample_rulebook()
    body["input_schema"]["properties"] |= properties
    return load(body)


def value(text: str) -> dict[str, str]:
    """A line of the form with a value."""
    return {"is": "value", "text": text}


def test_lines_are_read_by_the_types_of_their_facts(rulebook: Rulebook) -> None:
    lines = {"order.total": value("5"), "coupon": value("5"), "margin_percent": {"is": "absent", "text": ""}}
    changes = read_changes(rulebook, {**lines, "unheard_of": value("1")})
    assert dict(changes.facts) == {"order.total": 5, "coupon": "5", "margin_percent": ABSENT}
    assert changes.faults == {}
    facts: Any = {"margin_percent": 3, "order": {"id": "a"}}
    assert with_changes(facts, changes.facts) == {"order": {"id": "a", "total": 5}, "coupon": "5"}
    assert facts == {"margin_percent": 3, "order": {"id": "a"}}


def test_a_line_that_cannot_be_read_leaves_its_fact_as_it_was(rulebook: Rulebook) -> None:
    changes = read_changes(rulebook, {"margin_percent": value("ten"), "discount_percent": value("10")})
    assert (dict(changes.facts), changes.faults) == (
        {"discount_percent": 10},
        {"margin_percent": "This is not a number."},
    )


def test_a_fact_and_one_within_it_are_not_both_changed(rulebook: Rulebook) -> None:
    changes = read_changes(rulebook, {"order": value("{}"), "order.total": value("5")})
    assert (dict(changes.facts), list(changes.faults)) == ({"order": {}}, ["order.total"])


def test_a_fact_within_one_that_is_no_object_is_refused(rulebook: Rulebook) -> None:
    with pytest.raises(OperatorError, match=r"order\.total cannot be changed here") as refused:
        with_changes({"order": "a"}, {"order.total": 5})
    assert refused.value.code == "FACT_INVALID"
