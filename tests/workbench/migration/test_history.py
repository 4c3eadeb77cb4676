"""The history dry run: every figure as a recount in plain Python has it, whatever the files of the lake look like."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from gate.encoding.canonical import canonical
from gate.encoding.shapes import shape
from gate.errors import OperatorError
from gate.ids import timestamp
from gate.rulebooks.rulebook import Rulebook, load
from tests.independent import history as recount
from tests.support.torture import size
from tests.workbench.made_up import DAY, MONDAY, MadeUp
from tests.workbench.migration.drawn import ADAPTERS, METRIC, PERSONAL, RULEBOOK_ID, Drawn, drawn
from workbench.lake.entries import Personal
from workbench.lake.reader import Snapshot
from workbench.migration import history, sentences
from workbench.migration.history import HistoryRun, LakeHistory, dry_run

SEEDS = range(size(3, 40))
DECISIONS = size(140, 400)
BY = ("amount", "count", "region", "tags", "customer", "customer.tier", "paid", "secret", "nobody_reads", "note")


def snapshots(chain: MadeUp, lake: Path, personal: Personal | None = None) -> Iterator[Snapshot]:
    """The chain from the ledger alone, from files that are resolved in part, and from resolved ones."""
    whole = len(chain.entries)
    for number, (exported, compacted) in enumerate([(0, 0), (whole // 2, whole // 3), (whole, whole)]):
        yield chain.snapshot(lake / str(number), personal, exported=exported, compacted=compacted)


def run_over(snapshot: Snapshot, of: Drawn, *, first: bool = False, **asked: Any) -> HistoryRun:
    """A dry run, whose body has the published shape."""
    run = dry_run(LakeHistory(snapshot, RULEBOOK_ID), of.candidate, None if first else of.base, **asked)
    assert shape("rulebook-migration-history").errors(run.to_dict()) == []
    assert json.loads(json.dumps(run.to_dict())) == run.to_dict()
    return run


def without_sentences(body: Mapping[str, Any]) -> dict[str, Any]:
    """The figures alone."""
    asked = {"rulebook_id", "base", "candidate", "read_at", "since", "until", "metric", "adapter_manifest_hash"}
    told = {"undecided", "difference", "note", "left_out"}
    found = {name: value for name, value in body.items() if name not in asked | told}
    found["outcomes"] = {
        name: {member: value for member, value in of.items() if member != "sentence"}
        for name, of in body["outcomes"].items()
        if name != "unknowable"
    }
    return found


def held(of: Drawn, run: HistoryRun, *, first: bool, by: Sequence[str] | None, **asked: Any) -> None:
    """Holds a run against a recount: every figure, and every decision."""
    base = None if first else of.base
    decisions = recount.decide_anew(of.past, of.candidate, base, **asked)
    read = sorted({name for body in (of.candidate, base) if body for name in recount.read_by(body.body)})
    metric = asked.get("metric")
    fields = read[:20] if by is None else by
    expected = recount.figures(decisions, of.candidate, base, run.difference, fields=fields, metric=metric)
    found = without_sentences(run.body)
    for name, figure in expected.items():
        assert found[name] == figure, name
    assert found.keys() == expected.keys()
    assert set(run.body["left_out"].values()) == {0}
    held_rows(decisions, run)


def held_rows(decisions: Sequence[recount.Anew], run: HistoryRun) -> None:
    names = ("verdict", "application_verdict", "action", "reason_code", "rule")
    expected = [
        {
            "position": one.position,
            "decision_id": one.decision_id,
            "policy_version": one.version,
            "week": one.week,
            **{f"was_{name}": value for name, value in zip(names, one.was, strict=True)},
            **{f"base_{name}": value for name, value in zip(names, one.base or [None] * 5, strict=True)},
            **{f"then_{name}": value for name, value in zip(names, one.then or [None] * 5, strict=True)},
            "changed": one.changed,
            "verdict_changed": one.base is not None and one.then is not None and one.base[0] != one.then[0],
            "not_redecided": one.reason,
            "outcome_status": None if one.status == "unreported" else one.status,
            "value": one.value,
        }
        for one in decisions
    ]
    rows = run.decisions().with_columns(pl.col("week").cast(pl.String)).drop("created_at").collect().to_dicts()
    assert rows == expected


WAYS: list[dict[str, Any]] = [
    {"metric": METRIC, "by": BY},
    {"adapter_manifest_hash": ADAPTERS[0]},
    {"metric": "inputs.amount", "first": True, "by": BY},
    {"metric": METRIC, "first": True, "adapter_manifest_hash": ADAPTERS[0]},
]


@pytest.mark.parametrize("seed", SEEDS)
def test_every_figure_is_that_of_a_recount(seed: int, tmp_path: Path) -> None:
    way = WAYS[seed % len(WAYS)]
    of = drawn(seed, DECISIONS, adapters=0.8 if "adapter_manifest_hash" in way else 0.1)
    marks = PERSONAL[: seed // len(WAYS) % 3]
    bodies = set()
    for snapshot in snapshots(of.chain, tmp_path, Personal.of(marks)):
        run = run_over(snapshot, of, **way)
        bodies.add(canonical(run.body))
    # The same ledger gives the same bytes, however its files are cut.
    assert len(bodies) == 1
    held(
        of,
        run,
        first=way.get("first", False),
        by=way.get("by"),
        metric=way.get("metric"),
        adapter=way.get("adapter_manifest_hash"),
        personal=[mark.removeprefix("inputs.") for mark in marks],
    )
