"""The old and the proposed values of requests, case by case, and that nothing a caller sends makes it fail or go on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.dashboard.views.reviews.changed import MOST_CHANGED, changed_values

CASES = json.loads((Path(__file__).parents[4] / "cases" / "changed_values.json").read_text(encoding="utf-8"))

_NAMES = st.sampled_from(["old", "new", "old_a", "new_a", "a_before", "a_after", "current_", "field", "other"])
_VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda part: st.lists(part, max_size=4) | st.dictionaries(_NAMES, part, max_size=6),
    max_leaves=20,
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_values_are_found_where_a_request_names_both(case: dict[str, Any]) -> None:
    assert [list(each) for each in changed_values(case["request"])] == case["changed"]


@given(_VALUES, _VALUES)
def test_every_value_that_is_shown_is_one_of_the_request(context: Any, adapter: Any) -> None:
    request = {"context": context, "adapter": {"input": adapter}}
    text = json.dumps(request)
    for changed in changed_values(request):
        assert changed.name in (*text.split('"'), "value", "a", "")
        for side in (changed.old, changed.proposed):
            assert side is None or json.dumps(side) in text


def test_a_request_with_many_changes_shows_the_first_ones() -> None:
    changes = [{"field": f"f{number}", "old": number, "new": number + 1} for number in range(100)]
    found = changed_values({"context": {"changes": changes}})
    assert [each.name for each in found] == [f"f{number}" for number in range(MOST_CHANGED)]
