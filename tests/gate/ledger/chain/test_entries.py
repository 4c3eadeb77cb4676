"""Appending: positions, chains, idempotency, groups, and what is stored."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import pytest

from gate.errors import StorageUnavailable
from gate.ledger import Ledger, open_ledger
from gate.ledger.access.authority import Scope
from gate.ledger.chain.writer import Appended, Claim, Claimed, NewEntry
from gate.proof import chain
from tests.independent import verifier
from tests.support.entries import entry
from tests.support.processes import forked
from tests.support.samples import ledger_url


def test_entries_take_positions_and_what_is_stored_is_what_was_sent(ledger: Ledger, scope: Scope) -> None:
    links: list[Any] = []
    for number in range(3):
        appended = ledger.entries.append(entry(scope.scope_id, number))
        assert isinstance(appended, Appended)
        links.append(dict(appended.link))
    assert [link["chain_position"] for link in links] == [1, 2, 3]
    assert verifier.link_failures(links) == []
    stored = ledger.entries.decision(scope.scope_id, f"dec_{1:032x}")
    assert stored is not None
    assert (stored.link, stored.body, stored.request) == (links[1], b'{"n": 10.0}', b'{"request": "\\u0000"}')
    assert ledger.entries.at(scope.scope_id, 2) == stored
    assert ledger.entries.head(scope.scope_id) == chain.head_of(links[2])


def test_a_history_holds_what_it_has_room_for_and_says_so(ledger: Ledger, scope: Scope) -> None:
    decision = entry(scope.scope_id, 1)
    ledger.entries.append(decision)
    for number in range(5):
        report = decision.link._replace(entry_type="execution", receipt_hash=None)
        body = b'{"n": "%b"}' % (b"x" * 991)
        ledger.entries.append(NewEntry(scope.scope_id, f"exe_{number:032x}", report, body))
    for room, read, whole in ((2500, 3, False), (4999, 5, False), (5000, 5, True)):
        found = ledger.entries.history(scope.scope_id, decision.entry_id, executions=5, outcomes=5, links=3, room=room)
        assert found is not None
        assert [report.position for report in found.executions] == [6, 5, 4, 3, 2][:read]
        assert (found.whole, len(found.links)) == (whole, 3)


def test_unknown_entries_are_none(ledger: Ledger, scope: Scope) -> None:
    ledger.entries.append(entry(scope.scope_id, 1))
    assert ledger.entries.decision(scope.scope_id, "dec_unknown") is None
    assert ledger.entries.decision("another scope", f"dec_{1:032x}") is None
    assert ledger.entries.at(scope.scope_id, 2) is None
    assert ledger.entries.claimed(scope.scope_id, Claim("decide", "", "k", "h")) is None


def test_scopes_have_chains_of_their_own(ledger: Ledger, scope: Scope) -> None:
    from gate.clock import utc_now

    other = ledger.directory.create_scope("other", "starter", utc_now())
    for number in range(4):
        ledger.entries.append(entry((scope, other)[number % 2].scope_id, number))
    for found in (scope, other):
        head, links = ledger.entries.latest_links(found.scope_id, 10)
        assert (head.size, head.chain_id) == (2, found.chain_id)
        assert {link["chain_id"] for link in links} == {found.chain_id}
        assert verifier.link_failures(links) == []


@pytest.mark.parametrize(("limit", "positions"), [(1, [5]), (3, [3, 4, 5]), (5, [1, 2, 3, 4, 5]), (9, [1, 2, 3, 4, 5])])
def test_the_latest_links_are_consecutive_and_ascending(
    ledger: Ledger, scope: Scope, limit: int, positions: list[int]
) -> None:
    for number in range(5):
        ledger.entries.append(entry(scope.scope_id, number))
    head, links = ledger.entries.latest_links(scope.scope_id, limit)
    assert [link["chain_position"] for link in links] == positions
    assert chain.find_break(links, end=head) is None


def test_walking_reads_every_entry_in_order_across_pages(ledger: Ledger, scope: Scope) -> None:
    threads = [
        threading.Thread(
            target=lambda part=part: [ledger.entries.append(entry(scope.scope_id, part * 1000 + n)) for n in range(130)]
        )
        for part in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    walked = [found.link for found in ledger.entries.walk(scope.scope_id, up_to=1040)]
    assert [link["chain_position"] for link in walked] == list(range(1, 1041))
    assert chain.find_break(walked, start=chain.Head(scope.chain_id), end=ledger.entries.head(scope.scope_id)) is None


def test_a_key_claims_once_and_says_by_whom(ledger: Ledger, scope: Scope) -> None:
    claim = Claim("decide", "", "order-1", "a" * 64)
    assert isinstance(ledger.entries.append(entry(scope.scope_id, 1, claim)), Appended)
    assert ledger.entries.append(entry(scope.scope_id, 2, claim)) == Claimed(1, "a" * 64)
    other_payload = claim._replace(input_hash="b" * 64)
    assert ledger.entries.append(entry(scope.scope_id, 3, other_payload)) == Claimed(1, "a" * 64)
    assert ledger.entries.claimed(scope.scope_id, claim) == Claimed(1, "a" * 64)
    assert ledger.entries.head(scope.scope_id).size == 1


def test_a_key_is_unique_per_scope_operation_and_decision(ledger: Ledger, scope: Scope) -> None:
    from gate.clock import utc_now

    other = ledger.directory.create_scope("other", "starter", utc_now())
    claims = [
        (scope, Claim("decide", "", "k", "a" * 64)),
        (other, Claim("decide", "", "k", "a" * 64)),
        (scope, Claim("execution", "", "k", "a" * 64)),
        (scope, Claim("decide", "dec_1", "k", "a" * 64)),
        (scope, Claim("decide", "", "k ", "a" * 64)),
    ]
    for number, (owner, claim) in enumerate(claims):
        assert isinstance(ledger.entries.append(entry(owner.scope_id, number, claim)), Appended)


@pytest.mark.parametrize(
    "claims",
    [
        [Claim("decide", "", f"order-{number:06}", "a" * 64) for number in range(50)],
        [Claim("outcome", f"dec_{number:032x}", "retry", "a" * 64) for number in range(50)],
    ],
)
def test_claims_of_keys_or_decisions_in_order_are_stored_in_order(scope: Scope, claims: list[Claim]) -> None:
    """So that what is claimed together is written to the same few pages."""
    stored = [claim.stored_as(scope.scope_id) for claim in claims]
    assert stored == sorted(stored)


def test_equal_keys_in_concurrency_append_once(ledger: Ledger, scope: Scope) -> None:
    claim = Claim("decide", "", "same", "a" * 64)
    results: list[Any] = []
    start = threading.Barrier(16)

    def attempt(number: int) -> None:
        start.wait()
        results.append(ledger.entries.append(entry(scope.scope_id, number, claim)))

    threads = [threading.Thread(target=attempt, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(isinstance(result, Appended) for result in results) == 1
    assert results.count(Claimed(1, "a" * 64)) == 15


def test_one_bad_entry_fails_alone(ledger: Ledger, scope: Scope) -> None:
    ledger.entries.append(entry(scope.scope_id, 0))
    batch = [entry(scope.scope_id, 1), entry(scope.scope_id, 0), entry(scope.scope_id, 2)]
    results: Sequence[Any] = ledger.entries._writer._commit(lambda: batch)
    assert [type(result) for result in results] == [Appended, StorageUnavailable, Appended]
    head, links = ledger.entries.latest_links(scope.scope_id, 10)
    assert [link["decision_id"][-1] for link in links] == ["0", "1", "2"]
    assert chain.find_break(links, end=head) is None


def test_a_failed_append_leaves_no_trace(ledger: Ledger, scope: Scope) -> None:
    ledger.entries.append(entry(scope.scope_id, 0))
    claim = Claim("decide", "", "k", "a" * 64)
    with pytest.raises(StorageUnavailable) as refusal:
        ledger.entries.append(entry(scope.scope_id, 0, claim))
    assert refusal.value.code == "SVC_STORAGE_UNAVAILABLE"
    assert ledger.entries.head(scope.scope_id).size == 1
    assert ledger.entries.claimed(scope.scope_id, claim) is None


def _append_many(url: str, scope_id: str, part: int, count: int) -> None:
    ledger = open_ledger(url)
    for number in range(count):
        ledger.entries.append(entry(scope_id, part * 10_000 + number))
    ledger.close()


@pytest.mark.heavy
def test_four_processes_append_to_one_chain_without_fork_or_gap(ledger: Ledger, scope: Scope) -> None:
    url = ledger_url(ledger)
    processes = [forked().Process(target=_append_many, args=(url, scope.scope_id, part, 50)) for part in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0, 0, 0]
    head, links = ledger.entries.latest_links(scope.scope_id, 1000)
    assert head.size == len(links) == 200
    assert len({link["decision_id"] for link in links}) == 200
    assert verifier.link_failures(links) == []
