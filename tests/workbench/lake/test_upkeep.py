"""Keeping lakes up: what goes wrong with one scope stays with it, and what was left out stays out."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path

import orjson
import polars as pl
import pytest

from gate.clock import utc_now
from gate.errors import OperatorError, ServiceUnavailable
from gate.instance.instance import Instance
from gate.ledger import Ledger
from gate.ledger.access.authority import FULL_ACCESS, Authority, Scope
from tests.workbench.support import Chain
from workbench import analytics
from workbench.analytics import Follower
from workbench.lake import compaction, fresh, upkeep
from workbench.lake import export as exporting
from workbench.lake.entries import Personal
from workbench.lake.export import Exporter
from workbench.lake.lease import lease
from workbench.lake.manifest import Manifest, load, load_all
from workbench.lake.reader import Snapshot, open_lake
from workbench.lake.upkeep import LATE, RESTS, SLICE, Pace, bring_up

Step = Callable[..., Manifest]


@pytest.fixture
def chain(instance: Instance, authority: Authority) -> Chain:
    """The scope's chain, still empty."""
    return Chain(instance, authority)


def another(instance: Instance, name: str) -> Chain:
    """The chain of another scope."""
    directory = instance.ledger.directory
    scope = directory.create_scope(name, "unlimited", utc_now())
    key, _ = directory.create_key(scope, FULL_ACCESS, None, utc_now())
    return Chain(instance, directory.authenticate(key, utc_now()))


def positions(lake: Path) -> dict[str, int]:
    """How far the lake has come, by scope."""
    return {manifest.scope: manifest.position for manifest in load_all(lake)}


def test_a_scope_that_cannot_be_exported_does_not_keep_the_others_waiting(
    instance: Instance, lake: Path, scope: Scope, chain: Chain
) -> None:
    chains = [chain, another(instance, "beta"), another(instance, "gamma")]
    follower = Follower(instance.ledger, lake, Personal())
    for each in chains:
        each.grow(2)
    assert follower.follow() == []
    before = positions(lake)
    (damaged,) = (file for file in lake.glob(f"scope={scope.scope_id}/*/rulebooks-*.parquet"))
    damaged.write_bytes(b"no Parquet")
    for each in chains:
        each.grow(1)
    assert len(follower.follow()) == 1
    after = positions(lake)
    assert after["acme"] == before["acme"]
    assert all(after[name] > before[name] for name in ("beta", "gamma"))


def test_a_panic_over_damaged_bytes_keeps_no_other_scope_waiting_either(
    instance: Instance, lake: Path, scope: Scope, chain: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    chains = [chain, another(instance, "beta")]
    for each in chains:
        each.grow(1)

    def panics(ledger: Ledger, lake: Path, scope_id: str, *arguments: object, **others: object) -> Iterator[Manifest]:
        if scope_id == scope.scope_id:
            raise pl.exceptions.PanicException("index out of bounds")
        return bring_up(ledger, lake, scope_id, Personal())

    monkeypatch.setattr(analytics, "bring_up", panics)
    (error,) = Follower(instance.ledger, lake, Personal()).follow()
    assert isinstance(error, pl.exceptions.PanicException)
    assert positions(lake).keys() == {"beta"}


def test_nothing_is_done_twice_and_what_another_writes_is_waited_for_by_nobody(
    instance: Instance, lake: Path, chain: Chain
) -> None:
    chain.grow(2)
    follower = Follower(instance.ledger, lake, Personal())
    with lease(lake, patience=0):
        assert follower.follow() == []
        assert positions(lake) == {}
    assert follower.follow() == []
    stood = positions(lake)
    assert stood["acme"] == chain_size(instance)
    with lease(lake, patience=0):
        # There is nothing to do, so that nobody is waited for.
        assert follower.follow() == []


def chain_size(instance: Instance) -> int:
    """How long the first scope's chain is."""
    return instance.ledger.tail.scopes()[0].head.size


def test_cases_are_resolved_in_time_however_steadily_a_chain_grows(
    instance: Instance, lake: Path, scope: Scope, chain: Chain
) -> None:
    patient = Follower(instance.ledger, lake, Personal(), patience=3600)
    chain.grow(2)
    patient.follow()
    manifest = load(lake, scope.scope_id)
    assert manifest is not None
    assert (manifest.compacted, manifest.position) == (0, chain_size(instance))
    overdue = Follower(instance.ledger, lake, Personal(), patience=0)
    chain.grow(1)
    overdue.follow()
    manifest = load(lake, scope.scope_id)
    assert manifest is not None
    assert manifest.compacted == manifest.position == chain_size(instance)


def test_export_and_compaction_take_turns(
    instance: Instance, lake: Path, scope: Scope, chain: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain.grow(6)
    monkeypatch.setattr(upkeep, "_TURN", 5)
    seen = list(bring_up(instance.ledger, lake, scope.scope_id, Personal()))
    assert max(manifest.position - manifest.compacted for manifest in seen) <= 5
    assert seen[-1].position == seen[-1].compacted == chain_size(instance)
    assert list(bring_up(instance.ledger, lake, scope.scope_id, Personal())) == []


@pytest.mark.heavy
def test_a_large_file_is_not_written_anew_for_each_small_one(
    instance: Instance, lake: Path, scope: Scope, chain: Chain
) -> None:
    for number in range(100):
        chain.decide(discount_percent=number % 20, margin_percent=20)
    for _ in bring_up(instance.ledger, lake, scope.scope_id, Personal()):
        pass
    manifest = load(lake, scope.scope_id)
    assert manifest is not None
    (large,) = manifest.of("decisions")
    for _ in range(30):
        chain.decide(discount_percent=1, margin_percent=20)
        for _ in bring_up(instance.ledger, lake, scope.scope_id, Personal(), many=compaction.MANY, behind=1000):
            pass
    manifest = load(lake, scope.scope_id)
    assert manifest is not None
    assert large in manifest.of("decisions")
    assert len(manifest.of("decisions")) < 20


def test_what_is_left_out_is_not_brought_back_by_a_process_with_earlier_settings(
    instance: Instance, lake: Path, chain: Chain, export: Step, snapshot: Callable[[], Snapshot]
) -> None:
    chain.decide(discount_percent=10, margin_percent=22, email="ada@shop.example")
    earlier = Follower(instance.ledger, lake, Personal())
    assert earlier.follow() == []
    export(personal=Personal.of(["inputs.email"]))
    chain.decide(discount_percent=10, margin_percent=22, email="bob@shop.example")
    (error,) = earlier.follow()
    assert isinstance(error, OperatorError)
    assert error.code == "LAKE_LEAVES_OUT_MORE"
    assert "inputs.email" in error.message
    assert not [file for file in lake.rglob("*.parquet") if b"@shop.example" in file.read_bytes()]
    with pytest.raises(ServiceUnavailable) as caught:
        fresh.fresh(instance.ledger, lake, snapshot().manifest.scope_id, Personal())
    assert caught.value.code == "SVC_REPORT_UNAVAILABLE"


def test_erased_facts_go_even_where_who_erased_them_was_killed_before(
    lake: Path, chain: Chain, export: Step, monkeypatch: pytest.MonkeyPatch
) -> None:
    decision_id = chain.decide(discount_percent=10, margin_percent=22, note="needle-7f3a")
    export()
    chain.erase(decision_id)

    class Killed(BaseException):
        pass

    def die(_: Path, *, missing_ok: bool = False) -> None:
        raise Killed

    with monkeypatch.context() as dying:
        dying.setattr(Path, "unlink", die)
        with pytest.raises(Killed):
            export()
    assert len(list(lake.rglob("facts-*"))) == 2
    export()
    (left,) = lake.rglob("facts-*")
    assert pl.read_parquet(left)["inputs"].to_list() == [None]


def test_a_folder_with_the_signs_of_a_pattern_in_its_name_is_a_folder(
    instance: Instance, lake: Path, scope: Scope, chain: Chain, tmp_path: Path
) -> None:
    chain.grow(3)
    strange = tmp_path / "a[1]*?" / "lake"
    for _ in bring_up(instance.ledger, _made(strange), scope.scope_id, Personal()):
        pass
    opened = open_lake(strange).scope("acme")
    assert opened.cases().collect().height == opened.table("decisions").collect().height == 3
    assert opened.facts(("margin_percent",)).collect()["margin_percent:type"].to_list() == ["number"] * 3


def _made(directory: Path) -> Path:
    directory.mkdir(parents=True)
    return directory


def test_two_scopes_of_one_name_are_not_taken_for_one(
    instance: Instance, lake: Path, scope: Scope, chain: Chain, export: Step
) -> None:
    chain.grow(1)
    manifest = export()
    shutil.copytree(lake / f"scope={scope.scope_id}", lake / "scope=0000000000000000")
    folder = lake / "scope=0000000000000000"
    forged = Manifest(
        **{name: getattr(manifest, name) for name in Manifest.__slots__} | {"scope_id": "0000000000000000"}
    )
    (folder / "manifest.json").write_bytes(orjson.dumps(forged.to_dict()))
    with pytest.raises(OperatorError) as caught:
        open_lake(lake)
    assert caught.value.code == "LAKE_OF_ANOTHER_LEDGER"
    assert "scope=0000000000000000" in caught.value.message


def test_a_report_waits_where_the_lake_is_far_behind(
    instance: Instance, lake: Path, scope: Scope, chain: Chain, export: Step, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain.grow(3)

    def refused() -> str:
        with pytest.raises(ServiceUnavailable) as caught:
            fresh.fresh(instance.ledger, lake, scope.scope_id, Personal())
        assert (caught.value.code, caught.value.details) == ("SVC_REPORT_UNAVAILABLE", {"retry_after": 5})
        return caught.value.message

    monkeypatch.setattr(fresh, "MAX_TAIL", 2)
    assert "9 entries are not exported yet" in refused()
    export()
    monkeypatch.setattr(fresh, "MAX_UNRESOLVED", 2)
    assert "are not compacted" in refused()
    monkeypatch.undo()
    monkeypatch.setattr(fresh, "MAX_UNRESOLVED_BYTES", 100)
    assert "are not compacted" in refused()
    monkeypatch.undo()
    chain.grow(1)
    monkeypatch.setattr(fresh, "MAX_TAIL_BYTES", 10)
    assert "too large to read at once" in refused()


def test_lingering_files_take_no_more_than_a_disk_can_spare(
    instance: Instance, lake: Path, scope: Scope, chain: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporting, "LINGERING_BYTES", 10)
    for _ in range(3):
        chain.grow(1)
        for _ in bring_up(instance.ledger, lake, scope.scope_id, Personal()):
            pass
    chain.grow(1)
    followed = instance.ledger.tail.scope(scope.scope_id)
    assert followed is not None
    *_, manifest = Exporter(instance.ledger, lake).export(followed)
    assert manifest.retired == ()
    listed = {file.path for file in manifest.files}
    assert {str(file.relative_to(lake)) for file in lake.rglob("*.parquet")} == listed


class Paced:
    """A clock, processor time and rests that only a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.worked = 0.0
        self.rests: list[float] = []
        self.pace = Pace(clock=lambda: self.now, worked=lambda: self.worked, sleep=self._sleep)

    def _sleep(self, seconds: float) -> None:
        self.rests.append(seconds)
        self.now += seconds

    def work(self, seconds: float) -> None:
        """Works for so long, and comes to a place where it may rest."""
        self.now += seconds
        self.worked += seconds
        self.pace.rest()


def test_work_rests_after_a_slice_for_longer_than_it_worked_and_not_within_one() -> None:
    paced = Paced()
    paced.pace.followed(paced.pace.begin())
    paced.work(SLICE / 2)
    assert paced.rests == []
    paced.work(SLICE)
    paced.work(SLICE / 2)
    assert paced.rests == pytest.approx([SLICE * 1.5 * RESTS])
    assert RESTS > 1


def test_a_lake_that_is_late_is_brought_up_without_rest_and_no_rest_makes_it_late() -> None:
    paced = Paced()
    paced.pace.followed(paced.pace.begin())
    paced.now += LATE - 3 * SLICE
    paced.work(2 * SLICE)
    paced.work(2 * SLICE)
    assert paced.rests == pytest.approx([SLICE])
    # Up to the ledger again, it takes its time again.
    paced.pace.followed(paced.pace.begin())
    paced.work(2 * SLICE)
    assert paced.rests == pytest.approx([SLICE, 2 * SLICE * RESTS])


def test_a_pass_rests_between_its_pages_and_files_and_leaves_the_lake_that_one_without_rests_makes(
    instance: Instance, lake: Path, tmp_path: Path, scope: Scope, chain: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "_PAGE", 3)
    chain.grow(6)
    rests: list[float] = []
    # Every look at it finds a second more of work.
    pace = Pace(worked=partial(next, count(0.0)), sleep=rests.append)
    assert Follower(instance.ledger, lake, Personal(), pace=pace).follow() == []
    paced = load(lake, scope.scope_id)
    unpaced = tmp_path / "unpaced"
    with lease(unpaced, patience=0):
        list(bring_up(instance.ledger, unpaced, scope.scope_id, Personal(), behind=20_000, many=8))
    found = load(unpaced, scope.scope_id)
    assert paced is not None
    assert found is not None
    assert (paced.position, paced.merkle_root) == (found.position, found.merkle_root)
    # Byte for byte. How much memory a file takes is an estimate, which depends on the pages that it was made of.
    assert [(file.path, file.sha256) for file in paced.files] == [(file.path, file.sha256) for file in found.files]
    assert len(rests) >= paced.position // 3 + len(paced.files)
