"""kill -9 of whoever exports, at any moment: the lake is whole afterwards, and in the end holds everything once."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import polars as pl
import pytest

from gate.instance.instance import Instance
from gate.ledger.access.authority import Authority, Scope
from tests.end_to_end.support import ROOT
from tests.support.torture import chance, report, size
from tests.workbench.support import Chain
from workbench.columns import ENTRY_TABLES
from workbench.lake.manifest import load
from workbench.lake.reader import Snapshot
from workbench.lake.verify import verify

pytestmark = pytest.mark.heavy


def started(home: Path) -> subprocess.Popen[str]:
    """An exporting process that has begun."""
    command = [sys.executable, "-m", "tests.workbench.exporting", str(home)]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "begins\n"
    return process


def asked(process: subprocess.Popen[str]) -> None:
    """Tells a process to export."""
    assert process.stdin is not None
    process.stdin.write("on\n")
    process.stdin.flush()


def test_who_exports_may_be_killed_at_any_moment(
    instance: Instance, lake: Path, scope: Scope, authority: Authority, snapshot: Callable[[], Snapshot]
) -> None:
    chances, seed = chance()
    chain = Chain(instance, authority, step=timedelta(hours=11))
    midway = 0
    for _ in range(size(1, 60)):
        chain.grow(6)
        if chances.random() < 0.5:
            chain.erase(chain.decided[-3])
        process = started(instance.settings.home)
        before = load(lake, scope.scope_id)
        asked(process)
        time.sleep(chances.uniform(0, 0.8))
        process.kill()
        process.communicate(timeout=30)
        manifest = load(lake, scope.scope_id)
        midway += manifest != before
        if manifest is not None:
            assert list(verify(lake, manifest, instance.ledger, instance.ledger.tail.scope(scope.scope_id))) == []
    process = started(instance.settings.home)
    asked(process)
    assert process.stdout is not None
    assert process.stdout.readline() == "on\n"
    process.communicate(timeout=30)
    manifest = load(lake, scope.scope_id)
    assert manifest is not None
    assert list(verify(lake, manifest, instance.ledger, instance.ledger.tail.scope(scope.scope_id))) == []
    found = snapshot()
    positions = pl.concat([found.table(table).select("position") for table in ENTRY_TABLES.values()]).collect()
    assert sorted(positions["position"]) == list(range(1, instance.ledger.entries.head(scope.scope_id).size + 1))
    report(f"seed {seed}: killed {size(1, 60)} times, {midway} of them after it had committed something")
