"""The limit of clients without a key holds over all workers, in a file of fixed size."""

from __future__ import annotations

import multiprocessing
import time
from pathlib import Path

import pytest

from api.http.clients import WINDOW, ClientCounts

COUNTED = "203.0.113.9"


def _ask(file: Path, times: int) -> int:
    counts = ClientCounts(file)
    return sum(counts.wait("mcp", COUNTED, 10) == 0 for _ in range(times))


def test_an_address_is_refused_at_its_limit_and_told_how_long(tmp_path: Path) -> None:
    counts = ClientCounts(tmp_path / "clients.limits")
    assert [counts.wait("mcp", COUNTED, 3) for _ in range(3)] == [0, 0, 0]
    assert 0 < counts.wait("mcp", COUNTED, 3) <= WINDOW + 1
    assert counts.wait("mcp", "203.0.113.10", 3) == 0
    assert counts.wait("sandbox", COUNTED, 3) == 0


def test_a_new_window_begins_a_minute_after_the_first_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = ClientCounts(tmp_path / "clients.limits")
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now)
    assert [counts.wait("mcp", COUNTED, 1) == 0 for _ in range(2)] == [True, False]
    now += WINDOW - 0.1
    assert counts.wait("mcp", COUNTED, 1) == 1
    now += 0.1
    assert [counts.wait("mcp", COUNTED, 1) == 0 for _ in range(2)] == [True, False]
    # The machine was started again.
    now = 1.0
    assert [counts.wait("mcp", COUNTED, 1) == 0 for _ in range(2)] == [True, False]


def test_processes_count_together(tmp_path: Path) -> None:
    file = tmp_path / "clients.limits"
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        first, second = pool.starmap(_ask, [(file, 4), (file, 4)])
    assert (first, second) == (4, 4)
    assert _ask(file, 8) == 2
    assert file.stat().st_mode & 0o777 == 0o600


def test_counts_are_opened_while_others_have_them_open(tmp_path: Path) -> None:
    file = tmp_path / "clients.limits"
    first = ClientCounts(file)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        # A lock that the first kept would keep the second waiting for ever.
        assert pool.apply_async(_ask, (file, 4)).get(60) == 4
    assert [first.wait("mcp", COUNTED, 10) == 0 for _ in range(7)] == [True] * 6 + [False]


def test_any_number_of_addresses_takes_no_more_room(tmp_path: Path) -> None:
    file = tmp_path / "clients.limits"
    counts = ClientCounts(file)
    size = file.stat().st_size
    for number in range(100_000):
        counts.wait("mcp", f"2001:db8:{number:x}::/64", 1)
    assert file.stat().st_size == size


def test_which_addresses_share_a_count_differs_between_instances(tmp_path: Path) -> None:
    keys = {ClientCounts(tmp_path / name)._shared[:32] for name in ("one", "two", "three")}
    assert len(keys) == 3
    assert {ClientCounts(tmp_path / "one")._shared[:32]} < keys
