"""The anomaly report equals a recount in plain Python, over random ledgers, however much of them the lake holds."""

from __future__ import annotations

import itertools
import os
import random
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import polars as pl
import pytest
import rfc8785

from gate.encoding.canonical import canonical
from gate.instance.instance import Instance
from gate.ledger.reads import tail
from gate.policy.questions import AnomaliesQuestion
from tests.end_to_end.support import ROOT
from tests.independent import anomalies as independent
from tests.support.torture import size
from tests.workbench.anomalous import CLAIMS, POLICIES, PRICING, AnomalousSite
from tests.workbench.growing import (
    Lake,
    Reading,
    compact,
    compact_a_part,
    export,
    export_a_part,
    limits,
    nothing,
    shared,
    some,
)
from workbench.engines.anomalies import samples
from workbench.engines.anomalies.report import anomalies, answer
from workbench.lake import compaction
from workbench.lake.entries import Personal
from workbench.lake.files import Files
from workbench.lake.fresh import fresh
from workbench.lake.manifest import LakeFile
from workbench.lake.reader import Snapshot

pytestmark = pytest.mark.heavy

__all__ = ["shared"]

HELD: Final = {
    "executed_without_yes",
    "executed_though_refused",
    "executed_though_expired",
    "executed_before_grant",
    "executed_after_grant_ended",
    "action_mismatch",
}
"""The breaks that the recount has to meet of held decisions."""

EVERYTHING: Final[Mapping[str, Any]] = {"threshold": 0, "max_items": 200}


class FollowedLake(Lake):
    """A lake of which is known what it can know: facts that were erased before they were exported, it never had."""

    def __init__(self, site: AnomalousSite, directory: Path, batch: int) -> None:
        super().__init__(site, directory, batch)
        self.had: dict[str, bool] = {}

    def export(self, *, commits: int | None = None) -> None:
        super().export(commits=commits)
        for manifest in self.manifests():
            for entry in self.site.entries[manifest.scope][: manifest.position]:
                self.had.setdefault(entry["decision_id"], entry["decision_id"] not in self.site.erased)

    def erased(self, reading: Reading) -> set[str]:
        """The decisions whose facts a reading cannot have."""
        if len(reading.entries) == len(self.site.entries[reading.scope]):
            return self.site.erased
        told = {entry["decision_id"] for entry in reading.entries if "erasure_id" in entry}
        return told | {of for of, had in self.had.items() if not had}


def parameters(entries: Sequence[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every policy, version, limit, sample, threshold and number of items."""
    decided = [entry for entry in entries if "application_verdict" in entry]
    names = ("policy_version", "limit", "min_sample", "threshold", "max_items")
    for policy_id, version in itertools.product((*POLICIES, "unheard.of"), (None, "1", "2", "unheard of")):
        number = sum(of["policy_id"] == policy_id and version in (None, of["policy_version"]) for of in decided)
        half = [] if number < 2 else [number // 2]
        others = itertools.product([*limits(number), *half], (1, 3, 5, 20), (0, 0.35, 0.6, 1.0), (1, 20, 200))
        for chosen in others:
            yield policy_id, dict(zip(names, (version, *chosen), strict=True))


def assert_recounted(
    site: AnomalousSite,
    reading: Reading,
    policy_id: str,
    chosen: Mapping[str, Any],
    erased: Collection[str] | None = None,
    **more: Any,
) -> dict[str, Any]:
    body = answer(reading.snapshot, AnomaliesQuestion(policy_id, **chosen)).to_dict()
    expected = independent.anomalies(reading.entries, site.requests, policy_id, erased=erased, **chosen, **more)
    assert body == expected
    assert canonical(body) == canonical(expected)
    return body


def grown(instance: Instance, name: str, seed: int, decisions: int, reports: int, ends: timedelta) -> AnomalousSite:
    """A scope with so much in it."""
    site = AnomalousSite(instance, [name], random.Random(seed))  # noqa: S311 - for tests to be the same each time
    site.grow(decisions, reports)
    site.end(ends)
    return site


@pytest.fixture
def in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes a short chain several pages, files and steps."""
    monkeypatch.setattr(tail, "_PAGE_BYTES", 100_000)
    monkeypatch.setattr(compaction, "STEP", 200)
    monkeypatch.setattr(compaction, "FULL", 100)


def go_on(site: Any, _: Lake) -> None:
    """Decisions, reports and erasures after what is resolved, and after what is only exported."""
    site.grow(15, 40)


@pytest.mark.usefixtures("in_parts")
def test_reports_equal_the_recount_however_much_the_lake_holds(shared: Instance, tmp_path: Path) -> None:
    chance = random.Random(1)  # noqa: S311 - for tests to be the same each time
    site = grown(shared, "parts", 1, *size((130, 170), (180, 240)), timedelta(0))
    lake = FollowedLake(site, tmp_path, size(70, 40))
    for stages in ((nothing, export_a_part, export, compact_a_part), (go_on, compact)):
        found: set[str] = set()
        for change in stages:
            if change is go_on:
                found.clear()
            change(site, lake)
            for reading in lake.readings():
                if len(reading.entries) == len(site.entries[reading.scope]):
                    chosen: dict[str, Any] = {"min_sample": 5, **EVERYTHING}
                    found.add(assert_recounted(site, reading, PRICING, chosen, site.erased)["anomaly_hash"])
                if size(change not in (nothing, export, compact), True):
                    for policy_id, chosen in some(parameters(reading.entries), 1, chance):
                        assert_recounted(site, reading, policy_id, chosen, lake.erased(reading))
        assert len(found) == 1


@pytest.mark.parametrize("seed", range(10, size(12, 13)))
def test_a_short_chain_in_the_order_of_no_clock_is_recounted(shared: Instance, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - for tests to be the same each time
    site = AnomalousSite(shared, [f"short-{seed}"], chance, weeks=5 + 3 * (seed % 2))
    lake = FollowedLake(site, tmp_path, 100)
    for _ in range(3):
        site.grow(25, 45)
        (reading,) = lake.readings()
        for policy_id in POLICIES:
            assert_recounted(site, reading, policy_id, {"min_sample": chance.choice([1, 2, 5]), **EVERYTHING})


@pytest.fixture(scope="module")
def settled(shared: Instance) -> AnomalousSite:
    """A scope of which everything is known."""
    return grown(shared, "settled", 4, 300, 420, timedelta(days=9, hours=13))


@pytest.fixture(scope="module")
def exported(settled: AnomalousSite, tmp_path_factory: pytest.TempPathFactory) -> FollowedLake:
    """A lake with all of it, in few files."""
    lake = FollowedLake(settled, tmp_path_factory.mktemp("lake"), 400)
    lake.export()
    lake.compact()
    return lake


def only(lake: FollowedLake) -> Reading:
    """The one reading of a lake that holds everything."""
    (reading,) = lake.readings()
    return reading


def test_every_kind_of_anomaly_is_recounted(settled: AnomalousSite, exported: FollowedLake) -> None:
    found = {
        (anomaly["kind"], anomaly["subject"])
        for policy_id in POLICIES
        for anomaly in assert_recounted(settled, only(exported), policy_id, {"min_sample": 10, **EVERYTHING})[
            "anomalies"
        ]
    }
    assert {kind for kind, _ in found} == set(independent.KINDS)
    assert {subject for kind, subject in found if kind == "lifecycle_break"} >= HELD


def test_any_parameters_give_the_recount(settled: AnomalousSite, exported: FollowedLake) -> None:
    reading = only(exported)
    chance = random.Random(4)  # noqa: S311 - for tests to be the same each time
    for policy_id, chosen in some(parameters(reading.entries), size(9, 14), chance):
        assert_recounted(settled, reading, policy_id, chosen)


@pytest.mark.parametrize("most", [0.9, 90, 200, 400])
def test_of_many_decisions_a_sample_is_recounted(
    settled: AnomalousSite, exported: FollowedLake, most: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(samples, "MAX_SAMPLED", most)
    for policy_id, min_sample in ((PRICING, 1), *size((), ((PRICING, 8),)), (CLAIMS, 3)):
        chosen = {"min_sample": min_sample, **EVERYTHING}
        body = assert_recounted(settled, only(exported), policy_id, chosen, most_sampled=most)
        one_of = body["coverage"]["sampled_one_of"]
        assert (
            body["coverage"]["decisions"] / one_of <= most < 2 * body["coverage"]["decisions"] / one_of or one_of == 1
        )


def test_what_is_personal_is_not_recounted(settled: AnomalousSite, tmp_path: Path) -> None:
    marks = [
        "observed_metrics",
        "state_before_hash",
        "target_object_id",
        "inputs.customer.tier",
        "inputs.margin_percent",
    ]
    personal = Personal.of(marks)
    ((name, entries),) = settled.entries.items()
    told = [{member: of[member] for member in of if member != "observed_metrics"} for of in entries]
    snapshot = fresh(settled.instance.ledger, tmp_path, settled.scopes[name].scope_id, personal)
    withheld = ["customer.tier", "margin_percent"]
    chosen = {"min_sample": 5, **EVERYTHING}
    body = assert_recounted(settled, Reading(name, snapshot, told), PRICING, chosen, withheld=withheld)
    assert body["coverage"]["metrics"] == 0
    assert not {"customer.tier", "margin_percent"} & {*body["coverage"]["facts"]}
    assert {"channel", "discount_percent"} <= {*body["coverage"]["facts"]}
    assert any(of["subject"] == "state_mismatch" for of in body["anomalies"])


def otherwise(snapshot: Snapshot, directory: Path, parts: int, seed: int) -> Snapshot:
    """The same rows in files of another number, in another order."""
    files = Files(directory, snapshot.manifest, snapshot.position, str(snapshot.merkle_root))
    written: list[LakeFile] = []
    for file in snapshot.manifest.files:
        rows = pl.read_parquet(snapshot.lake / file.path).sample(fraction=1, shuffle=True, seed=seed)
        split = [rows.filter(pl.col("position") % parts == part) for part in range(parts)]
        written += [files.write(file.table, file.month, part) for part in split if part.height]
    return Snapshot(
        directory, replace(snapshot.manifest, files=tuple(written)), snapshot.position, snapshot.merkle_root
    )


@pytest.fixture(scope="module")
def reported(exported: FollowedLake) -> dict[str, Any]:
    """The report over it."""
    return anomalies(only(exported).snapshot, PRICING, min_sample=5, **EVERYTHING).to_dict()


def test_rows_in_another_order_and_in_other_files_give_the_same_bytes(
    exported: FollowedLake, reported: dict[str, Any], tmp_path: Path
) -> None:
    reading = only(exported)
    others = [otherwise(reading.snapshot, tmp_path / str(seed), parts, seed) for parts, seed in ((1, 1), (5, 2))]
    expected = rfc8785.dumps(reported)
    for snapshot in others:
        assert rfc8785.dumps(anomalies(snapshot, PRICING, min_sample=5, **EVERYTHING).to_dict()) == expected


_TELLING: Final = """
import sys
from workbench.engines.anomalies.report import anomalies
from workbench.lake.reader import open_lake
snapshot = open_lake(sys.argv[1]).scope("settled")
print(anomalies(snapshot, "pricing", min_sample=5, threshold=0, max_items=200).body["anomaly_hash"])
"""


def test_one_thread_and_several_give_the_same_report(exported: FollowedLake, reported: dict[str, Any]) -> None:
    # This process has one of the two, and hashes by chance.
    threads = "2" if pl.thread_pool_size() == 1 else "1"
    told = subprocess.run(
        [sys.executable, "-c", _TELLING, str(exported.directory)],
        env={**os.environ, "POLARS_MAX_THREADS": threads, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.strip() == reported["anomaly_hash"]
