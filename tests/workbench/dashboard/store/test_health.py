"""Whether ledger, chain, lake and checkpoints are well, as the overview says it."""

from __future__ import annotations

import pytest
from sqlalchemy import update

from gate.clock import utc_now
from gate.errors import ServiceUnavailable
from gate.instance.instance import Instance
from gate.ledger.access.authority import Authority, Scope
from gate.ledger.access.users import User
from gate.ledger.tables import entries
from tests.workbench.conftest import Export
from tests.workbench.support import Chain
from workbench.dashboard.store import health as module
from workbench.dashboard.store.access import Access
from workbench.dashboard.store.health import Part, health
from workbench.dashboard.store.snapshots import FRESH_FOR
from workbench.dashboard.store.store import Store
from workbench.lake.entries import Personal


def looked(instance: Instance, scope: Scope) -> dict[str, Part]:
    found = health(instance, scope.scope_id, utc_now())
    parts = {part.name: part for part in found.parts}
    assert list(parts) == ["Ledger", "Chain", "Lake", "Checkpoints"]
    assert found.well == all(part.well is not False for part in parts.values())
    return parts


def test_an_empty_scope_is_well(instance: Instance, scope: Scope) -> None:
    parts = looked(instance, scope)
    assert [part.well for part in parts.values()] == [True, True, True, None]
    assert "no entries" in parts["Ledger"].told
    assert "no link" in parts["Chain"].told


def test_the_answer_is_kept_for_as_long_as_a_snapshot(
    instance: Instance, scope: Scope, authority: Authority, export: Export
) -> None:
    chain = Chain(instance, authority)
    chain.decide()
    store = Store(instance, Personal(), lambda: chain.now)
    user = User("usr_1", "ada", {scope.scope_id: "viewer"}, {scope.scope_id: scope.name}, "", None, None, None, 1)
    access = Access(user, scope.scope_id, scope.name, "viewer")
    first = store.health(access)
    export()
    assert store.health(access) is first
    chain.now += FRESH_FOR
    assert store.health(access) != first


def test_a_whole_chain_is_well_and_the_lake_may_be_a_little_behind(
    instance: Instance, scope: Scope, authority: Authority, export: Export, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = Chain(instance, authority)
    chain.decide()
    export()
    assert looked(instance, scope)["Lake"].told == "It contains every entry of the ledger."
    chain.decide()
    chain.decide()
    parts = looked(instance, scope)
    assert [part.well for part in parts.values()] == [True, True, True, None]
    assert "3 entries" in parts["Ledger"].told
    assert "last 3 links, of 3" in parts["Chain"].told
    assert parts["Lake"].told == "It lacks the last 2 entries; pages read these from the ledger."
    monkeypatch.setattr(module, "_BEHIND", 1)
    lake = looked(instance, scope)["Lake"]
    assert not lake.well
    assert "`gate serve`" in lake.told


def test_a_link_that_was_changed_shows(instance: Instance, scope: Scope, authority: Authority) -> None:
    chain = Chain(instance, authority)
    for _ in range(3):
        chain.decide()
    with instance.ledger.store.write() as connection:
        connection.execute(update(entries).where(entries.c.position == 2).values(leaf_hash="0" * 64))
    chain_part = looked(instance, scope)["Chain"]
    assert not chain_part.well
    assert "gate chain check" in chain_part.told


def test_a_part_that_cannot_be_read_says_so_and_the_others_are_looked_at(
    instance: Instance, scope: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> object:
        raise ServiceUnavailable("SVC_STORAGE_UNAVAILABLE", "The storage is not responding.")

    monkeypatch.setattr(module, "load", fail)
    parts = looked(instance, scope)
    assert parts["Lake"] == Part("Lake", well=False, told="The storage is not responding.")
    assert [part.well for part in parts.values()] == [True, True, False, None]
