"""Dates that cannot be right: cases of the future, and cases far from all others."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.workbench.history.importing import plan_of, refusals, rehearsed, small_map, write_csv
from workbench.history import csv_source
from workbench.history.accounts.account import read_account
from workbench.history.accounts.summary import warnings_of
from workbench.history.importing import import_history, rehearse
from workbench.history.mapping import load_map

MINUTES = small_map(occurred_at={"column": "when", "zone": "Asia/Tokyo"})
NOON = datetime(2025, 6, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize("day", ["9999-12-31", "2099-01-01", "2025-06-02"])
def test_a_case_that_was_decided_after_the_import_is_refused(tmp_path: Path, day: str) -> None:
    file = write_csv(tmp_path / "x.csv", [("a", "2025-06-01", "1"), ("b", day, "1"), ("c", "2025-05-31", "1")])
    done = rehearsed(tmp_path, [file], now=NOON)
    assert done.account is not None
    assert (done.account.rows, refusals(done)) == (2, [(2, "when", day, "time")])
    (reason,) = done.account.to_dict()["reasons"]
    assert reason["reason"].startswith("It lies in the future, but cases are past.")
    assert (done.account.last, reason["rows"]) == ("2025-06-01T00:00:00.000Z", 1)
    assert done.account.tallies["occurred_at"].greatest == "2025-06-01T00:00:00.000Z"


def test_a_time_is_of_the_future_by_the_clock_of_its_zone_and_clocks_may_differ_by_minutes(tmp_path: Path) -> None:
    rows = [("a", "2025-06-01T21:04", "1"), ("b", "2025-06-01T21:06", "1"), ("c", "2025-06-01T12:04Z", "1")]
    done = rehearsed(tmp_path, [write_csv(tmp_path / "x.csv", rows)], MINUTES, now=NOON)
    assert refusals(done) == [(2, "when", "2025-06-01T21:06", "time")]


def test_times_of_the_future_and_times_that_are_none_each_have_their_reason(tmp_path: Path) -> None:
    rows = [("a", "2025-02-30", "1"), ("b", "2026-01-01", "1"), ("c", "", "1"), ("d", "soon", "1")]
    done = rehearsed(tmp_path, [write_csv(tmp_path / "x.csv", rows)], now=NOON)
    assert done.account is not None
    starts = ["There is no such day", "It lies in the future", "The cell is empty", "It does not match the format"]
    assert all(of["reason"].startswith(start) for of, start in zip(done.account.shown, starts, strict=True))
    assert sum(of["rows"] for of in done.account.to_dict()["reasons"]) == 4


def test_an_import_that_goes_on_refuses_the_rows_that_it_would_have_refused_when_it_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_source, "MAX_ROWS", 1)
    file = write_csv(tmp_path / "x.csv", [("a", "2025-06-01", "1"), ("b", "2025-06-02", "1")])

    def killed(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_history(plan_of(tmp_path / "lake", [file], now=NOON), told=killed)
    done = import_history(plan_of(tmp_path / "lake", [file], now=NOON + timedelta(days=9)), allow_refused=True)
    assert done.found is not None
    assert (done.resumed, done.found.rows, done.found.refused) == (1, 1, 1)


def test_cases_far_from_the_others_are_warned_of_with_their_rows(tmp_path: Path) -> None:
    days = ["2024-01-01", "1970-01-01", "2024-02-01", "1900-01-01", "1970-01-01", "2023-03-01", "2022-03-01"]
    file = write_csv(tmp_path / "x.csv", [(f"r{at}", day, "1") for at, day in enumerate(days)])
    account = rehearsed(tmp_path, [file]).account
    assert account is not None
    assert account.rows == 7
    assert warnings_of(account, load_map(small_map(), "map.yaml")) == [
        "3 rows are dated more than a year away from the others: in 1900-01 x.csv, row 4, line 5; in 1970-01 2 rows, "
        "first x.csv, row 2, line 3. Check their dates."
    ]


def test_one_case_long_after_the_others_is_warned_of_and_many_months_are_cut(tmp_path: Path) -> None:
    def warned(days: list[str]) -> list[str]:
        file = write_csv(tmp_path / "x.csv", [(f"r{at}", day, "1") for at, day in enumerate(days)])
        account = rehearsed(tmp_path, [file]).account
        assert account is not None
        return warnings_of(account, load_map(small_map(), "map.yaml"))

    assert warned(["2020-01-01", "2020-01-02", "2025-12-31"]) == [
        "1 row is dated more than a year away from the others: in 2025-12 x.csv, row 3, line 4. Check its date."
    ]
    assert warned(["2020-01-01", "2020-01-02", "2021-01-31"]) == []
    (many,) = warned([*(f"20{year}-01-01" for year in range(10, 21, 2)), "2020-01-02"])
    assert "5 rows are dated" in many
    assert "in 2014-01 x.csv, row 3, line 4; and in 2 more months. Check their dates." in many


DAYS = st.dates(date(1, 1, 1), date(2026, 12, 31))


@given(days=st.lists(DAYS, max_size=20), size=st.integers(1, 7))
def test_the_months_far_from_the_others_do_not_depend_on_the_stretches(
    days: list[date], size: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("far")
    file = write_csv(folder / "x.csv", [(f"r{at}", str(day), "1") for at, day in enumerate(days)])
    whole = rehearse(plan_of(folder / "lake", [file])).account
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(csv_source, "MAX_ROWS", size)
        account = rehearse(plan_of(folder / "lake", [file])).account
    assert whole is not None
    assert account is not None
    assert account.dates == whole.dates
    assert read_account(orjson.loads(orjson.dumps(account.state()))) == account
    far = whole.dates.far()
    by_month = [f"{day:%Y-%m}".zfill(7) for day in days]
    assert {month: (of.rows, of.row) for month, of in far.items()} == {
        month: (by_month.count(month), by_month.index(month) + 1) for month in far
    }
