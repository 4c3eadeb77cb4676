"""The migrations of a scope: over a policy's results, the moments from which another of its versions decided."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from gate.instance.instance import Instance
from gate.ledger.access.authority import Scope
from gate.rulebooks.rulebook import Rulebook, load
from tests.support.migrations import Desk, desk
from tests.support.samples import sample_rulebook
from tests.workbench.dashboard.policies import decided
from tests.workbench.dashboard.showing import MadeUpStore, Read, read, visit
from workbench.dashboard.pages.routes import load as page_at
from workbench.dashboard.store.memo import Memo
from workbench.dashboard.views.migrations.listing import MOST_CHARTS

POLICY = sample_rulebook()["rulebook_id"]
DASHED = "Dashed: a version became active."


def version(name: str, rulebook_id: str = POLICY) -> Rulebook:
    body: dict[str, Any] = copy.deepcopy(sample_rulebook())
    return load(body | {"rulebook_id": rulebook_id, "version": name})


@pytest.fixture
def people(instance: Instance, scope: Scope) -> Desk:
    return desk(instance, scope)


@pytest.fixture
def store(instance: Instance, tmp_path: Path) -> MadeUpStore:
    return MadeUpStore(instance, decided(tmp_path, POLICY), Memo(1000))


def shown(store: MadeUpStore, people: Desk, url: str) -> Read:
    return read(page_at(store, visit(people.scope, url)))


@pytest.mark.parametrize("page", ["policy", "migrations"])
def test_versions_that_were_put_in_force_are_on_the_results(store: MadeUpStore, people: Desk, page: str) -> None:
    url = f"/{page}?scope=acme&policy={POLICY}"
    assert DASHED not in shown(store, people, url).text
    people.route("first", version("2026-11-01"))
    people.route("second", version("2026-11-02"))
    found = shown(store, people, url)
    assert DASHED in found.text
    drawn = found.text.partition(DASHED)[0] if page == "policy" else found.text.partition("Skip the chart")[2]
    # Of one day, it is the last one: lines on each other could not be told apart.
    assert "2026-11-02" in drawn
    assert page == "migrations" or "2026-11-01" not in drawn
    assert [link for link in found.links if link.startswith("/decisions?") and f"policy={POLICY}" in link]


def test_a_new_draft_begins_with_the_version_that_decides(store: MadeUpStore, people: Desk) -> None:
    def begun() -> str:
        return shown(store, people, f"/drafts?scope=acme&policy={POLICY}").text

    people.route("first", version("2026-11-01"))
    people.route("second", version("2026-11-02"))
    assert f"New draft of {POLICY} 2026-11-02" in begun()
    people.acts.rollback(people.scope, people.author, POLICY, "")
    assert f"New draft of {POLICY} 2026-11-01" in begun()


def test_only_versions_of_the_period_are_on_it(store: MadeUpStore, people: Desk) -> None:
    people.route("first", version("2026-11-01"))
    assert DASHED not in shown(store, people, f"/policy?scope=acme&policy={POLICY}&until=2026-06-30").text


def test_of_many_policies_those_that_changed_last_are_charted(store: MadeUpStore, people: Desk) -> None:
    people.route("first", version("1"))
    for number in range(MOST_CHARTS):
        people.route(f"other.{number}", version("1", f"other_{number}"))
    assert DASHED not in shown(store, people, "/migrations?scope=acme").text
    assert DASHED in shown(store, people, f"/migrations?scope=acme&policy={POLICY}").text
    people.route("again", version("2"))
    assert DASHED in shown(store, people, "/migrations?scope=acme").text
    assert DASHED not in shown(store, people, "/migrations?scope=acme&policy=other_0").text
