"""Regions in words say of each value what is so."""

from __future__ import annotations

import pytest

from gate.rulebooks.analysis import analyse
from tests.support.rulebooks import compare, rule, rulebook


@pytest.mark.parametrize("kind", ["array", "string"])
@pytest.mark.parametrize("denied", [True, False])
def test_what_contains_something_is_never_absent(kind: str, *, denied: bool) -> None:
    test = compare("evidence", "contains", "photo")
    before = rulebook(rule("first", {"not": test} if denied else test), n="number", evidence=kind)
    after = rulebook(rule("second", compare("n", "eq", 2), priority=1), *before["rules"], n="number", evidence=kind)
    difference = analyse(after, against=before).difference
    assert difference is not None
    said = {region.before.rule_id: region.condition for region in difference.regions}
    without, having = ("first", None) if denied else (None, "first")
    assert said == {
        without: '(evidence is absent or does not contain "photo") and n is 2',
        having: 'evidence contains "photo" and n is 2',
    }
