"""Searching decisions: every criterion, pages without gap or repetition, and bounded work."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

import pytest

from gate.errors import ServiceUnavailable
from gate.ids import timestamp
from gate.instance.instance import Instance
from gate.ledger import Ledger
from gate.ledger.access.authority import Authority, Scope
from gate.ledger.reads import decisions as searching
from gate.ledger.reads.decisions import Criteria, Page
from gate.records.reports.receipts import OUTCOMES
from tests.support.samples import sample_request
from tests.support.torture import size

# Later than any key that a test makes: nothing is signed before its key is in use.
START = datetime(2037, 6, 15, tzinfo=UTC)
LONG = "deal-" + "x" * 300


def decide(instance: Instance, authority: Authority, number: int, target: str = "deal-1", **inputs: Any) -> None:
    """A decision that is made a second after the one before it."""
    request = sample_request(**inputs) if inputs else sample_request()
    request["context"]["target_object_id"] = target
    gate = instance.gate(lambda: START + timedelta(seconds=number))
    gate.decide(authority, request, request_id=f"req_{number}")


@pytest.fixture
def decided(instance: Instance, authority: Authority) -> Ledger:
    """Nine decisions: two of each three are approved, the third is denied, and each has a target of its own."""
    for number in range(1, 10):
        margin = 5 if number % 3 == 0 else 22
        decide(instance, authority, number, f"deal-{number}", discount_percent=10, margin_percent=margin)
    return instance.ledger


def positions(page: Page) -> list[int]:
    return [found.position for found in page.found]


def second(number: float) -> str:
    return timestamp(START + timedelta(seconds=number))


CRITERIA = [
    (Criteria(), [9, 8, 7, 6, 5, 4, 3, 2, 1]),
    (Criteria(verdict="no"), [9, 6, 3]),
    (Criteria(verdict="review"), []),
    (Criteria(policy_id="pricing_exception"), [9, 8, 7, 6, 5, 4, 3, 2, 1]),
    (Criteria(policy_id="pricing"), []),
    (Criteria(policy_version="2026-06-11"), [9, 8, 7, 6, 5, 4, 3, 2, 1]),
    (Criteria(policy_version="2026-06-1"), []),
    (Criteria(reason_code="MARGIN_FLOOR_BREACH"), [9, 6, 3]),
    (Criteria(target_object_id="deal-4"), [4]),
    (Criteria(since=second(7)), [9, 8, 7]),
    (Criteria(until=second(3)), [2, 1]),
    (Criteria(since=second(3), until=second(6)), [5, 4, 3]),
    (Criteria(since=second(3), until=second(3)), []),
    (Criteria(verdict="yes", policy_id="pricing_exception", since=second(4), until=second(8)), [7, 5, 4]),
    (Criteria(verdict="yes", target_object_id="deal-3"), []),
]


def test_what_is_found_meets_every_criterion(decided: Ledger, scope: Scope) -> None:
    for criteria, expected in CRITERIA:
        page = decided.decisions.search(scope.scope_id, criteria, limit=100)
        assert (positions(page), page.next_position) == (expected, None), criteria
        for found in page.found:
            entry = decided.entries.at(scope.scope_id, found.position)
            assert entry is not None
            assert found.record["record_hash"] == entry.link["record_hash"]


@pytest.mark.heavy
def test_pages_are_complete_however_little_each_looks_through_and_while_more_is_decided(
    decided: Ledger, instance: Instance, authority: Authority
) -> None:
    everything = {None: [9, 8, 7, 6, 5, 4, 3, 2, 1], "yes": [8, 7, 5, 4, 2, 1], "no": [9, 6, 3], "review": []}
    limits, rooms = size(((1, 3, 100), (1, 3, 8, 9, 10)), ((1, 2, 3, 100), (1, 2, 3, 8, 9, 10, 100)))
    for verdict, limit, looked_through in product(everything, limits, rooms):
        # Those of the nine that were there first: what comes later is not in pages that follow.
        criteria, before, found = Criteria(verdict=verdict, until=second(10)), None, []
        for turn in range(40):
            page = decided.decisions.search(
                authority.scope_id, criteria, limit=limit, before=before, looked_through=looked_through
            )
            assert len(page.found) <= min(limit, looked_through)
            found += positions(page)
            if turn == 0 and looked_through == 3:
                decide(instance, authority, 20)
            if (before := page.next_position) is None:
                break
        assert (found, before) == (everything[verdict], None), (verdict, limit, looked_through)


def test_a_page_without_any_leads_on(decided: Ledger, scope: Scope) -> None:
    """What is looked for lies behind more decisions than one search looks through."""
    criteria = Criteria(target_object_id="deal-2")
    first = decided.decisions.search(scope.scope_id, criteria, limit=5, looked_through=4)
    assert (first.found, first.next_position) == ([], 6)
    second_page = decided.decisions.search(scope.scope_id, criteria, limit=5, before=6, looked_through=4)
    assert (positions(second_page), second_page.next_position) == ([2], 2)
    last = decided.decisions.search(scope.scope_id, criteria, limit=5, before=2, looked_through=4)
    assert (last.found, last.next_position) == ([], None)


def test_targets_are_told_apart_beyond_what_the_table_keeps_of_them(
    instance: Instance, authority: Authority, scope: Scope
) -> None:
    for number, target in enumerate((LONG + "1", LONG + "2", LONG[:200], LONG + "1"), start=1):
        decide(instance, authority, number, target)
    for target, expected in ((LONG + "1", [4, 1]), (LONG + "2", [2]), (LONG[:200], [3]), (LONG, []), (LONG[:199], [])):
        page = instance.ledger.decisions.search(scope.scope_id, Criteria(target_object_id=target), limit=10)
        assert positions(page) == expected, target[195:]


@pytest.mark.parametrize("text", ["\0", "a\0b", "%", "_", "'", "\u00e9\U0001f600", "x" * 5000])
def test_any_text_is_looked_for_as_it_is(instance: Instance, authority: Authority, scope: Scope, text: str) -> None:
    decide(instance, authority, 1, "deal-1")
    decide(instance, authority, 2, text)
    search = instance.ledger.decisions.search
    assert positions(search(scope.scope_id, Criteria(target_object_id=text), limit=10)) == [2]
    for name in ("policy_id", "policy_version", "reason_code"):
        assert positions(search(scope.scope_id, Criteria(**{name: text}), limit=10)) == []


def test_a_search_reads_so_many_bytes_of_records_and_no_more(
    decided: Ledger, scope: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "_READ", 10_000)
    before, pages = None, list[list[int]]()
    while True:
        answer = decided.decisions.search(scope.scope_id, Criteria(), limit=100, before=before)
        pages.append(positions(answer))
        if (before := answer.next_position) is None:
            break
    assert [position for page in pages for position in page] == [9, 8, 7, 6, 5, 4, 3, 2, 1]
    assert max(map(len, pages)) < 9


def test_other_scopes_are_not_looked_through(decided: Ledger, scope: Scope) -> None:
    other = decided.directory.create_scope("other", "unlimited", START)
    assert decided.decisions.search(other.scope_id, Criteria(), limit=10) == Page([], None)


def test_a_record_that_cannot_be_read_is_said_to_be_so(decided: Ledger, scope: Scope) -> None:
    with decided.store.write() as connection:
        connection.exec_driver_sql("DELETE FROM entries WHERE position = 9")
    with pytest.raises(ServiceUnavailable, match="chain position 9"):
        decided.decisions.search(scope.scope_id, Criteria(), limit=10)


def test_reports_are_no_decisions(instance: Instance, scope: Scope, authority: Authority) -> None:
    decide(instance, authority, 1)
    (found,) = instance.ledger.decisions.search(scope.scope_id, Criteria(), limit=10).found
    instance.lifecycle().report(authority, OUTCOMES, found.record["decision_id"], {"outcome_status": "succeeded"})
    page = instance.ledger.decisions.search(scope.scope_id, Criteria(), limit=10)
    assert (positions(page), page.next_position) == ([1], None)
