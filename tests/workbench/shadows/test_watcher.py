"""Looking at shadows: what a look finds, when the next one may come, and what keeps one from being looked at."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import polars as pl
import pytest

from gate.clock import utc_now
from gate.errors import OperatorError
from gate.instance.instance import Instance
from gate.ledger.access.authority import FULL_ACCESS, Authority, Scope
from gate.ledger.shadows import Shadow
from tests.support.migrations import Desk, candidate, desk
from tests.support.samples import sample_request
from tests.workbench.conftest import Export
from tests.workbench.support import Chain, bring_up
from workbench.lake.manifest import FILE_NAME, directory_of, save
from workbench.lake.reader import Snapshot
from workbench.migration.history import LakeHistory, dry_run
from workbench.shadows.live import live_evidence, shadow_lines
from workbench.shadows.watcher import PATIENCE, PAUSE, Watcher

POLICY: Final = "pricing_exception"

MARGINS: Final = (10, 16, 18, 22, 19, 30, 12, 17)
"""What deals are asked for: of these, a floor of 15 approves six, and a floor of 20 two."""


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


class Ticking(Clock):
    """Seconds that pass whenever somebody looks."""

    def __call__(self) -> float:
        self.seconds += 1.0
        return self.seconds


@pytest.fixture
def at(instance: Instance, scope: Scope) -> Desk:
    """The desk of an author and an approver."""
    return desk(instance, scope)


@pytest.fixture
def chain(instance: Instance, authority: Authority) -> Chain:
    return Chain(instance, authority)


def by_route(chain: Chain, *margins: float) -> list[str]:
    """Decides deals with some margins by the version in force."""
    found = []
    for margin in margins:
        body = {**sample_request(discount_percent=10, margin_percent=margin), "rulebook_ref": {"rulebook_id": POLICY}}
        del body["rulebook"]
        found.append(chain.decide(body))
    return found


def watcher(instance: Instance, clock: Callable[[], float] | None = None) -> Watcher:
    return Watcher(instance.ledger, instance.settings.lake_directory, instance.migrations(), clock=clock or Clock())


def started(at: Desk, migration_id: str = "prices_2", margin: float = 20) -> Shadow:
    """Routes to a floor of 15, proposes another, and starts the shadow of that."""
    at.route("prices_1", candidate("1", 15))
    at.propose(migration_id, candidate("2", margin))
    return at.acts.start_shadow(at.scope, at.author, migration_id)


def figures(at: Desk, migration_id: str = "prices_2") -> dict[str, Any]:
    found = at.migrations.shadows(at.scope)[migration_id].found
    assert found is not None
    of: dict[str, Any] = found["rulebooks"][POLICY]
    return of


def test_a_look_decides_anew_what_was_decided_since_the_start_and_nothing_else(
    instance: Instance,
    at: Desk,
    chain: Chain,
    export: Export,
    compact: Export,
    snapshot: Callable[[], Snapshot],
) -> None:
    chain.grow()
    export()
    compact()
    shadow = started(at)
    # A late report about an earlier decision makes none of the earlier ones a later one.
    chain.outcome(chain.decided[0], "succeeded")
    later = by_route(chain, *MARGINS)
    chain.outcome(later[1], "succeeded")
    export(batch=5)
    watcher(instance).look()
    body = figures(at)
    assert (body["decisions"], body["redecided"]) == (8, 8)
    assert (body["base"]["version"], body["candidate"]["version"]) == ("1", "2")
    assert body["newly_blocked"]["decisions"] == 4
    assert body["newly_approved"]["decisions"] == 0
    assert sorted(body["newly_blocked"]["decision_ids"]) == sorted(later[at_] for at_ in (1, 2, 4, 7))
    assert body["outcomes"]["good_newly_blocked"]["decisions"] == 1
    (transition,) = body["transitions"]
    assert (transition["verdict"], transition["decisions"]) == ("yes", 4)
    assert transition["rule"] != transition["then_rule"]

    # The same as of a dry run over the whole chain, cut afterwards.
    rulebooks = [candidate("2", 20), candidate("1", 15)]
    run = dry_run(LakeHistory(snapshot(), POLICY), *rulebooks)
    rows = run.decisions().filter(pl.col("position") > shadow.from_position).collect()
    assert rows.height == body["decisions"]
    assert rows["changed"].sum() == body["changed"]["decisions"]
    assert rows["verdict_changed"].sum() == body["verdict_changed"]["decisions"]
    assert run.body["decisions"] == 12 + 8

    # Compacted files hold the same.
    compact()
    by_route(chain, 30)
    export()
    compact()
    watcher(instance).look()
    assert (figures(at)["decisions"], figures(at)["newly_blocked"]["decisions"]) == (9, 4)


def test_a_look_reads_no_file_in_which_nothing_was_decided_since(
    instance: Instance, at: Desk, chain: Chain, export: Export, lake: Path
) -> None:
    chain.grow()
    earlier = export().files
    started(at)
    by_route(chain, *MARGINS)
    export()
    gone = [lake / of.path for of in earlier if of.table != "rulebooks"]
    assert gone
    for file in gone:
        file.unlink()
    assert watcher(instance).look() == []
    assert (figures(at)["decisions"], figures(at)["newly_blocked"]["decisions"]) == (8, 4)


def test_a_first_route_is_held_against_what_was_decided(
    instance: Instance, at: Desk, chain: Chain, export: Export
) -> None:
    at.propose("prices_2", candidate("2", 20))
    at.acts.start_shadow(at.scope, at.author, "prices_2")
    for margin in MARGINS:
        chain.decide(discount_percent=10, margin_percent=margin)
    export()
    watcher(instance).look()
    assert figures(at)["base"] is None
    assert figures(at)["newly_blocked"]["decisions"] == 4


def test_the_version_in_force_now_is_what_a_candidate_is_held_against(
    instance: Instance, at: Desk, chain: Chain, export: Export
) -> None:
    at.route("prices_0", candidate("0", 20))
    started(at)
    by_route(chain, *MARGINS)
    export()
    watcher(instance).look()
    assert figures(at)["changed"]["decisions"] == 4
    # Back to the floor that the candidate has.
    at.acts.rollback(at.scope, at.author, POLICY, "")
    export()
    watcher(instance).look()
    assert (figures(at)["base"]["version"], figures(at)["verdict_changed"]["decisions"]) == ("0", 0)


def test_it_looks_again_where_the_lake_went_on_and_not_before_its_pause_is_over(
    instance: Instance, at: Desk, chain: Chain, export: Export
) -> None:
    clock = Clock()
    of = watcher(instance, clock)
    # There is neither a lake nor a shadow, and that is no fault.
    assert of.look() == []
    started(at)
    export()
    clock.seconds += 1
    of.look()
    assert figures(at)["decisions"] == 0
    looked_at = at.migrations.shadows(at.scope)["prices_2"].found_at
    by_route(chain, 16)
    export()
    clock.seconds += PAUSE - 1
    of.look()
    assert figures(at)["decisions"] == 0
    # What it took is measured, so that it is waited for as long as anybody could have taken.
    clock.seconds += 10_000
    of.look()
    assert figures(at)["decisions"] == 1
    looked_again_at = at.migrations.shadows(at.scope)["prices_2"].found_at
    assert looked_at is not None
    assert looked_again_at is not None
    assert looked_again_at >= looked_at
    clock.seconds += 10_000
    instance.ledger.shadows.fail(at.migrations.shadows(at.scope)["prices_2"], "Kept unless it looks again.")
    of.look()
    assert at.migrations.shadows(at.scope)["prices_2"].failure == "Kept unless it looks again."


def test_the_longer_a_look_takes_the_longer_the_next_one_waits(
    instance: Instance, at: Desk, chain: Chain, export: Export
) -> None:
    clock = Ticking()
    of = watcher(instance, clock)
    started(at)
    export()
    # A second passes while it looks.
    clock.seconds = 100_000
    of.look()
    by_route(chain, 16)
    export()
    clock.seconds += PATIENCE - 3
    of.look()
    assert figures(at)["decisions"] == 0
    clock.seconds += 100_000
    of.look()
    assert figures(at)["decisions"] == 1


def test_another_process_goes_on_from_where_the_shadow_was_started(
    instance: Instance, at: Desk, chain: Chain, export: Export
) -> None:
    started(at)
    by_route(chain, 16)
    export()
    watcher(instance).look()
    by_route(chain, 30)
    export()
    watcher(instance).look()
    assert figures(at)["decisions"] == 2


def test_a_shadow_that_cannot_be_looked_at_is_told_once_and_stops_no_other(
    instance: Instance, at: Desk, chain: Chain, export: Export, lake: Path
) -> None:
    other_scope = instance.ledger.directory.create_scope("other", "unlimited", utc_now())
    key, _ = instance.ledger.directory.create_key(other_scope, FULL_ACCESS, None, utc_now())
    other = desk(instance, other_scope)
    there = Chain(instance, instance.ledger.directory.authenticate(key, utc_now()))
    for each, decides in ((at, chain), (other, there)):
        started(each)
        by_route(decides, *MARGINS)
    export()
    bring_up(instance, lake, other_scope)
    damaged = directory_of(lake, at.scope.scope_id) / FILE_NAME
    whole = damaged.read_bytes()
    damaged.write_text("{")
    clock = Clock()
    of = watcher(instance, clock)
    (error,) = of.look()
    assert isinstance(error, OperatorError)
    assert error.code == "LAKE_MANIFEST_INVALID"
    assert figures(other)["newly_blocked"]["decisions"] == 4
    failed = at.migrations.shadows(at.scope)["prices_2"]
    assert "LAKE_MANIFEST_INVALID" in str(failed.failure)
    assert any("The last update failed" in line.text for line in shadow_lines(failed))
    clock.seconds += 100_000
    assert of.look() == []
    damaged.write_bytes(whole)
    clock.seconds += 100_000
    assert of.look() == []
    assert figures(at)["newly_blocked"]["decisions"] == 4
    assert at.migrations.shadows(at.scope)["prices_2"].failure is None


def test_a_lake_of_another_ledger_is_no_tail(
    instance: Instance, at: Desk, chain: Chain, export: Export, lake: Path
) -> None:
    started(at)
    by_route(chain, *MARGINS)
    save(lake, replace(export(), merkle_root="0" * 64))
    (error,) = watcher(instance).look()
    assert isinstance(error, OperatorError)
    assert error.code == "LAKE_OF_ANOTHER_LEDGER"


def test_a_lake_that_lags_behind_the_start_is_waited_for(
    instance: Instance, at: Desk, chain: Chain, export: Export, lake: Path
) -> None:
    chain.decide()
    export()
    started(at)
    of = watcher(instance)
    assert of.look() == []
    assert at.migrations.shadows(at.scope)["prices_2"].found is None
    shutil.rmtree(lake)
    assert of.look() == []
    lake.mkdir()
    by_route(chain, 16)
    export()
    of.look()
    assert figures(at)["decisions"] == 1


class TestSentences:
    """workbench.shadows.live."""

    def told(self, at: Desk) -> str:
        return "\n".join(line.text for line in shadow_lines(at.migrations.shadows(at.scope)["prices_2"]))

    def test_they_say_what_would_be_decided_otherwise(
        self, instance: Instance, at: Desk, chain: Chain, export: Export
    ) -> None:
        shadow = started(at)
        assert "There is no result yet." in self.told(at)
        by_route(chain, 30)
        export()
        watcher(instance).look()
        assert f"has run since {shadow.started_at}" in self.told(at)
        assert "started by ada" in self.told(at)
        assert "version 2 compared with the active version 1; 1 decision so far." in self.told(at)
        assert "The decision would be the same." in self.told(at)
        by_route(chain, *MARGINS)
        export()
        watcher(instance).look()
        assert f"up to chain position {shadow.from_position + 9:,}." in self.told(at)
        assert "of 9 decisions would be decided differently; 4 would get another verdict (44.4" in self.told(at)
        assert "No longer approved: 4 (4 blocked, 0 held)." in self.told(at)
        assert "Newly approved" not in self.told(at)

    def test_they_say_what_would_be_newly_approved(
        self, instance: Instance, at: Desk, chain: Chain, export: Export
    ) -> None:
        started(at, margin=11)
        by_route(chain, *MARGINS)
        export()
        watcher(instance).look()
        assert "Newly approved: 1." in self.told(at)

    def test_a_shadow_that_found_nothing_has_no_report(self, at: Desk) -> None:
        shadow = started(at)
        stored = at.migrations.migration(at.scope, "prices_2")
        with pytest.raises(OperatorError) as refused:
            live_evidence(stored.evidence, shadow)
        assert refused.value.code == "SHADOW_NOT_LOOKED_AT"

    def test_evidence_about_another_version_in_force_makes_no_report(
        self, instance: Instance, at: Desk, export: Export
    ) -> None:
        at.route("prices_0", candidate("0", 20))
        started(at)
        at.acts.rollback(at.scope, at.author, POLICY, "")
        export()
        watcher(instance).look()
        stored = at.migrations.migration(at.scope, "prices_2")
        with pytest.raises(OperatorError) as refused:
            live_evidence(stored.evidence, at.migrations.shadows(at.scope)["prices_2"])
        assert refused.value.code == "EVIDENCE_STALE"
