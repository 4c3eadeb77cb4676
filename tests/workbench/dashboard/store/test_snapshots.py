"""A scope's snapshot: shared for some seconds, read anew after them, and never another scope's."""

from __future__ import annotations

from datetime import datetime, timedelta
from threading import Event, Thread
from typing import Any, cast

import pytest

from gate.errors import ServiceUnavailable
from tests.support.samples import NOW
from workbench.dashboard.store.snapshots import FRESH_FOR, Snapshots
from workbench.lake.reader import Snapshot


class Lake:
    """Hands out another snapshot each time, unless it fails."""

    def __init__(self) -> None:
        self.read: list[str] = []
        self.now = NOW
        self.fails = False

    def __call__(self, scope_id: str) -> Snapshot:
        if self.fails:
            raise ServiceUnavailable("SVC_REPORT_UNAVAILABLE", "not now")
        self.read.append(scope_id)
        return cast(Snapshot, (scope_id, len(self.read)))

    def clock(self) -> datetime:
        return self.now


def seen(snapshots: Snapshots, scope_id: str) -> tuple[Any, datetime]:
    found = snapshots.latest(scope_id)
    return found.snapshot, found.at


def test_a_snapshot_is_shared_while_it_is_fresh() -> None:
    lake = Lake()
    snapshots = Snapshots(lake, lake.clock)
    assert seen(snapshots, "a") == (("a", 1), NOW)
    lake.now += FRESH_FOR - timedelta(milliseconds=1)
    assert seen(snapshots, "a") == (("a", 1), NOW)
    assert seen(snapshots, "b") == (("b", 2), lake.now)
    lake.now += timedelta(milliseconds=1)
    assert seen(snapshots, "a") == (("a", 3), lake.now)
    assert lake.read == ["a", "b", "a"]


def test_a_failed_read_is_not_kept() -> None:
    lake = Lake()
    snapshots = Snapshots(lake, lake.clock)
    lake.fails = True
    with pytest.raises(ServiceUnavailable):
        snapshots.latest("a")
    lake.fails = False
    assert seen(snapshots, "a") == (("a", 1), NOW)


def test_of_many_scopes_some_are_kept() -> None:
    lake = Lake()
    snapshots = Snapshots(lake, lake.clock)
    for number in range(100):
        snapshots.latest(str(number))
    snapshots.latest("99")
    snapshots.latest("0")
    assert lake.read[100:] == ["0"]


def test_a_scope_that_takes_long_holds_up_no_other_and_is_read_once() -> None:
    lake, begun, go = Lake(), Event(), Event()

    def slowly(scope_id: str) -> Snapshot:
        if scope_id == "slow":
            begun.set()
            go.wait(20)
        return lake(scope_id)

    snapshots = Snapshots(slowly, lake.clock)
    threads = [Thread(target=snapshots.latest, args=("slow",)) for _ in range(3)]
    for thread in threads:
        thread.start()
    begun.wait(20)
    for number in range(3):
        snapshots.latest(str(number))
    assert lake.read == ["0", "1", "2"]
    go.set()
    for thread in threads:
        thread.join()
    assert lake.read.count("slow") == 1
