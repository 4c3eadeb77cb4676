"""What a rehearsal shows of numbers and times: the least and the greatest, and outcomes with odd dates."""

from __future__ import annotations

import csv
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.workbench.history.importing import DATA, plan_of, rehearsed, sample_plan, small_map, write_csv
from workbench.history import csv_source
from workbench.history.accounts.account import Account, read_account
from workbench.history.accounts.summary import columns_of, range_of, warnings_of
from workbench.history.importing import rehearse
from workbench.history.mapping import load_map

HEADER = ("id", "when", "n", "result", "closed")
DATED = small_map(
    outcome={"column": "result", "values": {"ok": "succeeded", "open": "unreported"}},
    outcome_at={"column": "closed", "format": "date"},
)


def ranges(account: Account | None, map_: dict[str, Any]) -> dict[str, str]:
    """The range of each member, as reports show it."""
    assert account is not None
    return {of["member"]: range_of(of) for of in columns_of(account, load_map(map_, "map.yaml"))}


def test_a_rehearsal_shows_the_least_and_the_greatest_of_numbers_and_times(tmp_path: Path) -> None:
    plan = sample_plan(tmp_path / "lake")
    done = rehearse(plan)
    assert done.account is not None
    found = {of["member"]: of for of in columns_of(done.account, plan.map_)}
    rows = list(csv.DictReader((DATA / "refunds.csv").read_text().splitlines()))
    amounts = [float(row["amount"]) for row in rows if row["amount"]]
    assert (found["facts.amount"]["least"], found["facts.amount"]["greatest"]) == (min(amounts), max(amounts))
    decided = [row["decided"] for row in rows]
    assert range_of(found["occurred_at"]) == f"{min(decided)} to {max(decided)}"
    assert (found["verdict"]["least"], range_of(found["verdict"])) == (None, "")


def test_a_thousand_written_with_a_point_shows_as_the_small_number_that_it_was_read_as(tmp_path: Path) -> None:
    file = write_csv(tmp_path / "x.csv", [("a", "2024-01-01", "1.240"), ("b", "2024-01-02", "1.5"), ("c", "", "9")])
    done = rehearsed(tmp_path, [file])
    assert ranges(done.account, small_map()) == {
        "id": "",
        "occurred_at": "2024-01-01 00:00 to 2024-01-02 00:00",
        "facts.n": "1.24 to 9",
    }


def test_a_number_that_is_refused_is_in_no_range_and_a_column_without_any_has_none(tmp_path: Path) -> None:
    file = write_csv(tmp_path / "x.csv", [("a", "2024-01-01", "9007199254740993"), ("b", "2024-01-02", "")])
    assert ranges(rehearsed(tmp_path, [file]).account, small_map())["facts.n"] == ""


@pytest.mark.parametrize("day", ["0001-01-01", "9999-12-31"])
def test_times_at_the_ends_of_the_calendar_have_a_range(tmp_path: Path, day: str) -> None:
    zone = "Asia/Tokyo" if day.startswith("9") else "America/New_York"
    map_ = small_map(occurred_at={"column": "when", "format": "iso8601", "zone": zone})
    file = write_csv(tmp_path / "x.csv", [("a", f"{day}T12:00Z", "1")])
    now = datetime.max.replace(tzinfo=UTC) - timedelta(hours=1)
    assert day[:4] in ranges(rehearsed(tmp_path, [file], map_, now=now).account, map_)["occurred_at"]


DAYS = st.dates(date(2023, 1, 1), date(2026, 12, 31))
ROWS = st.lists(st.tuples(DAYS, st.one_of(st.none(), DAYS), st.sampled_from(["ok", "open", ""])), max_size=30)


@given(rows=ROWS, size=st.integers(1, 7))
def test_outcomes_with_odd_dates_are_counted_whatever_the_stretches(
    rows: list[tuple[date, date | None, str]], size: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("dates")
    lines = [
        (f"r{at}", str(when), "1", result, "" if closed is None else str(closed))
        for at, (when, closed, result) in enumerate(rows)
    ]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(csv_source, "MAX_ROWS", size)
        account = rehearse(plan_of(folder / "lake", [write_csv(folder / "x.csv", lines, HEADER)], DATED)).account
    assert account is not None
    dated = [(when, closed) for when, closed, result in rows if closed is not None and result == "ok"]
    last = max((when for when, _, _ in rows), default=date(2026, 1, 1))
    assert account.to_dict()["outcome_dates"] == {
        "before_decision": sum(closed < when for when, closed in dated),
        "long_after": sum(closed > last + timedelta(days=365) for _, closed in dated),
    }
    assert read_account(orjson.loads(orjson.dumps(account.state()))) == account


def test_odd_dates_are_warnings_and_refuse_no_row(tmp_path: Path) -> None:
    lines = [
        ("a", "2024-01-01", "1", "ok", "2029-01-01"),
        ("b", "2024-01-02", "1", "ok", "2024-01-01"),
        ("c", "2024-01-02", "1", "ok", "2023-12-01"),
    ]
    account = rehearsed(tmp_path, [write_csv(tmp_path / "x.csv", lines, HEADER)], DATED).account
    assert account is not None
    assert (account.rows, account.refused) == (3, 0)
    assert warnings_of(account, load_map(DATED, "map.yaml")) == [
        "2 outcomes are dated before the decision. A date without a time of day is its first moment.",
        "1 outcome is dated more than a year after the last case. Check the format of outcome_at.",
    ]
