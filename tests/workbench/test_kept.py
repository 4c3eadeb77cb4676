"""What is kept of the lake's files changes no report, however the lake and its chain grow."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Final

import polars as pl
import pytest

from gate.instance.instance import Instance
from gate.ledger.reads import tail
from gate.policy.questions import AnomaliesQuestion, EffectivenessQuestion
from tests.support.torture import size
from tests.workbench.growing import POLICIES, Lake, Site, compact, compact_a_part, export, export_a_part, shared
from workbench.engines import effectiveness
from workbench.engines.anomalies import report as anomalies
from workbench.kept import Kept, Query
from workbench.lake import compaction
from workbench.lake.reader import Snapshot, open_lake

# A fixture is found by its name in the module that asks for it.
__all__ = ["shared"]


def go_on(site: Site, _: Lake) -> None:
    """Decisions, and reports and erasures of earlier ones."""
    site.grow(8, 30)


STAGES: Final[Sequence[Callable[[Site, Lake], None]]] = (
    *(export_a_part, export, compact_a_part, compact, go_on, export, go_on, compact, go_on, export, compact),
)
ASKED: Final[Sequence[tuple[dict[str, Any], dict[str, Any]]]] = (
    ({}, {}),
    ({"verdict": "yes"}, {"policy_version": "1", "limit": 9}),
)
"""What is asked besides of each report."""


@pytest.mark.heavy
def test_reports_are_the_same_whatever_is_kept(
    shared: Instance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tail, "_PAGE_BYTES", 10_000)
    monkeypatch.setattr(compaction, "STEP", 40)
    monkeypatch.setattr(compaction, "FULL", 15)
    site = Site(shared, ["kept", "beside"], random.Random(11))  # noqa: S311 - for tests to be the same each time
    lake, kept = Lake(site, tmp_path, 17), Kept(1 << 24)
    site.grow(20, 40)
    asked = cycle((policy_id, *of) for of in ASKED for policy_id in POLICIES)
    for stage in STAGES:
        stage(site, lake)
        for reading in lake.readings():
            # In turn, for each asks for four reports.
            for policy_id, well, odd in islice(asked, size(2, len(ASKED) * len(POLICIES))):
                question = EffectivenessQuestion(policy_id, **well)
                told = effectiveness.answer(reading.snapshot, question, kept).to_dict()
                assert told == effectiveness.answer(reading.snapshot, question).to_dict()
                other = AnomaliesQuestion(policy_id, min_sample=2, threshold=0, **odd)
                told = anomalies.answer(reading.snapshot, other, kept).to_dict()
                assert told == anomalies.answer(reading.snapshot, other).to_dict()


def test_a_file_is_read_once_while_there_is_room(shared: Instance, tmp_path: Path) -> None:
    site = Site(shared, ["read"], random.Random(12))  # noqa: S311 - for tests to be the same each time
    lake = Lake(site, tmp_path, 1000)
    site.grow(10, 10)
    lake.export()
    lake.compact()
    snapshot = open_lake(tmp_path).scope("read")
    files = [file.path for file in snapshot.manifest.of("cases")]
    for room, again in ((1 << 24, []), (1, files), (0, files)):
        kept = Kept(room)
        first, second = list[str](), list[str]()
        expected = kept.of(snapshot, "cases", "count", _noting(first))
        assert kept.of(snapshot, "cases", "count", _noting(second)).equals(expected)
        assert (first, second) == (files, again)
        assert expected["len"].sum() == 10
        # Another query is another result.
        kept.of(snapshot, "cases", "again", _noting(second))
        assert second == [*again, *files]


def _noting(names: list[str]) -> Query:
    """Counts cases, and notes which files it reads."""

    def query(part: Snapshot) -> pl.LazyFrame:
        names.extend(file.path for file in part.manifest.of("cases"))
        return part.cases().select(pl.len())

    return query
