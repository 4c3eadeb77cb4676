"""Following a chain: every entry once, in order, whatever the size of a page."""

from __future__ import annotations

from pathlib import Path

import pytest

from gate.instance.instance import Instance
from gate.ledger import Ledger
from gate.ledger.access.authority import Authority, Scope
from gate.ledger.reads import tail
from gate.ledger.reads.tail import FollowedEntry
from tests.workbench.support import Chain
from workbench.lake.compaction import Compactor
from workbench.lake.export import Exporter
from workbench.lake.verify import verify


@pytest.fixture
def chain(instance: Instance, authority: Authority) -> Chain:
    """A chain with entries of every type."""
    grown = Chain(instance, authority)
    grown.grow(5)
    grown.erase(grown.decided[1])
    return grown


def followed(ledger: Ledger, scope: Scope, *, after: int = 0, size: int = 5000) -> list[FollowedEntry]:
    """The entries of a scope after a position."""
    head = ledger.tail.scope(scope.scope_id)
    assert head is not None
    pages = list(ledger.tail.pages(scope.scope_id, after=after, up_to=head.head.size, size=size))
    assert all(1 <= len(page) <= size for page in pages)
    return [entry for page in pages for entry in page]


def test_entries_come_once_and_in_order_whatever_the_size_of_a_page(ledger: Ledger, scope: Scope, chain: Chain) -> None:
    whole = followed(ledger, scope)
    assert [entry.position for entry in whole] == list(range(1, ledger.entries.head(scope.scope_id).size + 1))
    for size in (1, 3, len(whole) - 1, len(whole)):
        assert followed(ledger, scope, size=size) == whole
    assert followed(ledger, scope, after=4) == whole[4:]
    assert {entry.entry_type for entry in whole} == {"decision", "execution", "outcome", "crm_sync", "erasure"}


def test_each_entry_knows_where_its_decision_stands(ledger: Ledger, scope: Scope, chain: Chain) -> None:
    whole = followed(ledger, scope)
    decided = {entry.decision_id: entry.position for entry in whole if entry.entry_type == "decision"}
    assert sorted(decided) == sorted(chain.decided)
    assert [entry.decision_position for entry in whole] == [decided[entry.decision_id] for entry in whole]


def test_a_page_is_bounded_by_what_it_weighs_and_has_an_entry_at_least(
    ledger: Ledger, scope: Scope, chain: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = followed(ledger, scope)
    monkeypatch.setattr(tail, "_PAGE_BYTES", 1)
    pages = list(ledger.tail.pages(scope.scope_id, after=0, up_to=len(whole)))
    assert [len(page) for page in pages] == [1] * len(whole)
    assert [page[0] for page in pages] == whole


def test_scopes_come_with_the_ends_of_their_chains(ledger: Ledger, scope: Scope, chain: Chain) -> None:
    (found,) = ledger.tail.scopes()
    assert (found.scope_id, found.name, found.head) == (scope.scope_id, scope.name, ledger.entries.head(scope.scope_id))
    assert ledger.tail.scope(scope.scope_id) == found
    assert ledger.tail.scope("nobody") is None
    assert ledger.tail.scope("no\x00body") is None


def test_a_lake_is_exported_from_either_database(ledger: Ledger, scope: Scope, chain: Chain, tmp_path: Path) -> None:
    head = ledger.tail.scope(scope.scope_id)
    assert head is not None
    *_, manifest = Exporter(ledger, tmp_path, batch=6).export(head)
    *_, manifest = Compactor(tmp_path).compact(manifest)
    assert manifest.position == manifest.compacted == head.head.size
    assert list(verify(tmp_path, manifest, ledger, head)) == []
