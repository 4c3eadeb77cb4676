"""Histories for tests: small maps, files and plans."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from workbench.history.importing import Imported, Plan, import_history, rehearse
from workbench.history.mapping import load_map, read_map
from workbench.history.sources import examine
from workbench.lake.entries import Personal
from workbench.lake.reader import Snapshot, history_of

DATA = Path(__file__).parents[3] / "data" / "history"
SCOPE_ID, SCOPE, NAME = "scope1", "acme", "past"
NOW = datetime(2027, 1, 1, tzinfo=UTC)
"""The moment of imports."""


def small_map(**members: Any) -> dict[str, Any]:
    """A map of the columns id, when and n; members that are None are left out."""
    whole = {
        "history_map_version": "decision_history_map_v1",
        "id": {"column": "id"},
        "occurred_at": {"column": "when", "format": "date"},
        "policy_id": "refund_policy",
        "facts": {"n": {"column": "n", "type": "number"}},
        **members,
    }
    return {name: value for name, value in whole.items() if value is not None}


def write_csv(file: Path, rows: Iterable[Sequence[str]], header: Sequence[str] = ("id", "when", "n")) -> Path:
    """A CSV file as Python writes it."""
    with file.open("w", newline="", encoding="utf-8") as opened:
        csv.writer(opened).writerows([header, *rows])
    return file


def plan_of(
    lake: Path, files: Sequence[Path], map_: Mapping[str, Any] | None = None, *, name: str = NAME, **of: Any
) -> Plan:
    """A plan to import files."""
    loaded = load_map(dict(map_ or small_map()), "map.yaml")
    sources = [examine(file, loaded.format) for file in files]
    return Plan(lake, SCOPE_ID, SCOPE, name, loaded, sources, Personal.of(of.get("personal", ())), of.get("now", NOW))


def sample_plan(lake: Path) -> Plan:
    """The plan to import the sample history."""
    map_ = read_map((DATA / "refunds.map.yaml").read_bytes(), "refunds.map.yaml")
    return Plan(lake, SCOPE_ID, SCOPE, NAME, map_, [examine(DATA / "refunds.csv", None)], Personal(), NOW)


def imported(plan: Plan, **of: Any) -> Snapshot:
    """The set that a plan makes, as a snapshot."""
    assert import_history(plan, **of).found is not None
    return history_of(plan.lake, SCOPE_ID, SCOPE, plan.name)


def rehearsed(tmp_path: Path, files: Sequence[Path], map_: Mapping[str, Any] | None = None, **of: Any) -> Imported:
    """What a rehearsal finds."""
    return rehearse(plan_of(tmp_path / "lake", files, map_, **of))


def refusals(done: Imported) -> list[tuple[int, str | None, str | None, str]]:
    """The refused rows: row, column, value and code."""
    assert done.account is not None
    return [(of["row"], of["column"], of["value"], of["code"]) for of in done.account.shown]


def contents(directory: Path) -> dict[str, bytes]:
    """The files of a directory, by name."""
    return {file.name: file.read_bytes() for file in directory.iterdir()}
