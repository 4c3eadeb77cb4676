"""Lakes that earlier releases exported: exported anew where this release has other columns, read, and verified."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

import workbench
from tests.upgrade.conftest import Gate
from tests.upgrade.kept import ON_SQLITE, Exchange, Release, stands

pytestmark = pytest.mark.parametrize("release", ON_SQLITE, indirect=True, ids=lambda archive: archive.parent.name)


def test_its_reports_are_those_of_then(release: Release, gate: Gate) -> None:
    gate("lake", "export")
    kept_reports = release.kept.read("reports")
    forget_months_since(release.home / "lake", max(month_of(kept["document"]) for kept in kept_reports))
    snapshot = workbench.open_lake(release.home / "lake").scope("harbor")
    for kept in kept_reports:
        made = getattr(workbench, kept["report"])(snapshot, "purchase_policy", **kept["arguments"])
        assert stands(kept["document"], made.to_dict()), kept["report"]


def month_of(report: dict[str, Any]) -> str:
    """The month with whose companies a report compares; empty where it compares with none."""
    return str(report.get("cross_customer", {}).get("month") or "")


def forget_months_since(lake: Path, month: str) -> None:
    """Takes out of a lake what was frozen for benchmarks after a month: later, reports compare with a later one."""
    for file in (lake / "benchmarks").glob("*.parquet"):
        if file.stem > month:
            file.unlink()


def test_it_is_whole_and_is_brought_up_to_the_upgraded_ledger(
    release: Release, service: httpx.Client, gate: Gate
) -> None:
    gate("lake", "export")
    assert gate("lake", "verify", "--against-ledger")["whole"]
    before = workbench.open_lake(release.home / "lake").scope("harbor").cases().collect()
    request = release.kept.read("decisions")[0]["request"]
    decided = Exchange("harbor", "POST", "/api/decide", request).ask(service, release.kept.read("callers"))
    gate("lake", "export")
    assert gate("lake", "verify", "--against-ledger")["whole"]
    after = workbench.open_lake(release.home / "lake").scope("harbor").cases().collect()
    assert set(after["decision_id"]) - set(before["decision_id"]) == {decided.json()["decision_id"]}
    assert after.sort("position").head(before.height).equals(before.sort("position"))
