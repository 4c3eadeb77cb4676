"""All policies in one look: every number equals a recount of the chain's entries, one decision at a time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from gate.ids import parse_timestamp
from gate.policy.confidence import MIN_SAMPLE
from tests.independent import recount
from tests.workbench.engines.edges import refused
from tests.workbench.made_up import DAY, MONDAY, POLICY, WEEK, MadeUp
from tests.workbench.mixed import DAYS, POLICIES, mixed, rulebook, snapshots
from workbench.engines.glance import RECENT, Glance, glance
from workbench.engines.roll_up import roll_up
from workbench.lake.reader import Lake, Snapshot

CHAIN: Final = mixed(5, 150)
TICK: Final = timedelta(milliseconds=1)


@pytest.fixture(scope="module")
def lakes(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Snapshot]:
    return snapshots(CHAIN, tmp_path_factory.mktemp("glanced"))


def made(decision: recount.Told) -> datetime:
    return parse_timestamp(decision.record["created_at"])


def rows_of(told: Sequence[recount.Told], receipts: set[str]) -> list[dict[str, Any]]:
    """The rows of the frame, each counted from the decisions of its policy."""
    rows = []
    for policy_id, decisions in recount.apart(told, lambda decision: str(decision.record["policy_id"])).items():
        rate = recount.rate_of(decisions)
        waiting = [
            decision
            for decision in decisions
            if decision.record["verdict"] == "review"
            and decision.record["decision_id"] not in receipts
            and decision.resolution is None
        ]
        first: dict[str, int] = {}
        for decision in decisions:
            first.setdefault(decision.record["policy_version"], decision.position)
        statuses = {status: recount.number_of(decisions, status) for status in recount.REPORTED}
        rows.append(
            {
                "policy_id": policy_id,
                "decisions": len(decisions),
                **{
                    verdict: sum(1 for decision in decisions if decision.record["verdict"] == verdict)
                    for verdict in recount.VERDICTS
                },
                **{"outcome_review" if name == "review" else name: number for name, number in statuses.items()},
                "unreported": recount.number_of(decisions, None),
                "success_rate": rate["rate"],
                "low": rate["low"],
                "high": rate["high"],
                "held": len(waiting),
                "oldest_held_at": min(map(made, waiting), default=None),
                "latest_version": max(first, key=lambda version: first[version]),
                "last_decision_at": max(map(made, decisions)),
                "trend": trend_of(decisions),
            }
        )
    return sorted(rows, key=lambda row: (-row["decisions"], row["policy_id"]))


def trend_of(decisions: Sequence[recount.Told]) -> str:
    start = max(map(made, decisions)) - timedelta(days=28)
    recent = [decision for decision in decisions if made(decision) > start]
    before = [decision for decision in decisions if made(decision) <= start]
    if min(recount.number_of(of, *recount.TERMINAL) for of in (recent, before)) < MIN_SAMPLE:
        return "unknown"
    late, early = recount.rate_of(recent), recount.rate_of(before)
    if late["high"] < early["low"]:
        return "falling"
    return "rising" if early["high"] < late["low"] else "steady"


RECEIPTS: Final = {entry["decision_id"] for entry in CHAIN.entries if "execution_receipt_id" in entry}


def test_every_number_is_that_of_a_recount(lakes: Sequence[Snapshot]) -> None:
    expected = rows_of(recount.told(CHAIN.entries), RECEIPTS)
    for snapshot in lakes:
        found = glance(snapshot).frame
        assert found.to_dicts() == expected
        assert found.columns == list(expected[0])


def test_the_weeks_are_those_of_a_recount(lakes: Sequence[Snapshot]) -> None:
    told = recount.told(CHAIN.entries)
    weeks = recount.apart(told, lambda decision: f"{decision.record['policy_id']} {decision.monday}")
    expected = {
        name: (len(of), recount.number_of(of, *recount.TERMINAL), recount.rate_of(of)["rate"])
        for name, of in weeks.items()
    }
    for snapshot in lakes:
        weekly = glance(snapshot).weekly
        assert {f"{policy_id} {week}": tuple(of) for policy_id, week, *of in weekly.iter_rows()} == expected
        assert weekly.columns == ["policy_id", "week", "decisions", "terminal", "success_rate"]
        assert weekly.rows() == sorted(weekly.rows(), key=lambda row: row[:2])


def test_a_slice_is_looked_at_as_if_it_were_all(lakes: Sequence[Snapshot]) -> None:
    end = MONDAY + timedelta(days=DAYS // 2)
    told = [
        decision
        for decision in recount.told(CHAIN.entries)
        if made(decision) < end and decision.record["verdict"] == "review"
    ]
    expected = {row["policy_id"]: row for row in rows_of(told, RECEIPTS)}
    for snapshot in lakes:
        rows = glance(snapshot.slice(until=end, verdict="review")).frame.to_dicts()
        for row in rows:
            # Which version came last is so for the whole chain.
            assert row.pop("latest_version") in POLICIES[row["policy_id"]]
            assert row == {name: of for name, of in expected[row["policy_id"]].items() if name != "latest_version"}
        assert len(rows) == len(expected)


def test_it_agrees_with_the_roll_up(lakes: Sequence[Snapshot]) -> None:
    shared = ["policy_id", "decisions", "succeeded", "unreported", "success_rate", "low", "high"]
    for snapshot in lakes:
        rows = glance(snapshot).frame.select(shared).sort("policy_id")
        assert rows.equals(roll_up(snapshot).frame.select(shared).sort("policy_id"))


def trend(lake: Path, before: tuple[int, int], recent: tuple[int, int], *, age: timedelta = RECENT) -> str:
    """The trend of a policy with so many successes and failures before its latest days, and within them."""
    chain = MadeUp()
    newest = MONDAY + 20 * WEEK
    for at, (succeeded, failed) in ((newest - age, before), (newest, recent)):
        for number in range(succeeded + failed):
            chain.outcome(chain.decide(at), newest, "succeeded" if number < succeeded else "failed")
    (row,) = glance(chain.snapshot(lake)).frame.to_dicts()
    return str(row["trend"])


@pytest.mark.parametrize(
    ("before", "recent", "expected"),
    [
        ((90, 10), (10, 40), "falling"),
        ((10, 40), (90, 10), "rising"),
        ((50, 50), (48, 52), "steady"),
        ((0, 20), (20, 0), "rising"),
        ((0, 19), (20, 0), "unknown"),
        ((0, 20), (19, 0), "unknown"),
    ],
)
def test_the_latest_days_are_compared_with_all_before_them(
    tmp_path: Path, before: tuple[int, int], recent: tuple[int, int], expected: str
) -> None:
    assert trend(tmp_path, before, recent) == expected


def test_the_latest_days_are_28_up_to_the_newest_decision(tmp_path: Path) -> None:
    assert trend(tmp_path, (90, 10), (10, 40), age=RECENT) == "falling"
    assert trend(tmp_path, (90, 10), (10, 40), age=RECENT - TICK) == "unknown"
    chain = MadeUp()
    for policy_id, end in (("early", MONDAY + 10 * WEEK), ("late", MONDAY + 50 * WEEK)):
        for at, status in ((end - RECENT, "succeeded"), (end, "failed")):
            for _ in range(MIN_SAMPLE):
                chain.outcome(chain.decide(at, policy_id=policy_id), end + DAY, status)
    assert glance(chain.snapshot(tmp_path)).frame["trend"].to_list() == ["falling", "falling"]


def test_the_latest_version_is_the_one_whose_rulebook_was_first_used_last(tmp_path: Path) -> None:
    chain = MadeUp()
    for version in ("1", "2", "1", "3", "2", "1"):
        chain.decide(MONDAY + len(chain.entries) * DAY, version=version)
    snapshot = chain.snapshot(tmp_path)

    def latest(of: Snapshot) -> str:
        return str(glance(of).frame["latest_version"][0])

    assert latest(snapshot) == "3"
    # Version 1 decides last here, and it is older than 2.
    assert latest(snapshot.slice(since=MONDAY + 4 * DAY)) == "2"
    chain.decide(MONDAY + 6 * DAY, version="2", rulebook=rulebook(POLICY, "2"))
    assert latest(chain.snapshot(tmp_path)) == "2"
    without = {name: frame for name, frame in snapshot.tail.items() if name != "rulebooks"}
    assert latest(Snapshot(tmp_path, snapshot.manifest, 6, None, without)) == "3"


def test_a_receipt_ends_the_wait_of_a_held_decision(tmp_path: Path) -> None:
    chain = MadeUp()
    held = [chain.decide(MONDAY + number * DAY, verdict="review") for number in range(3)]
    chain.decide(MONDAY)
    chain.receipt(held[0], MONDAY + 4 * DAY, "skipped")
    chain.outcome(held[1], MONDAY + 4 * DAY, "pending")
    (row,) = glance(chain.snapshot(tmp_path)).frame.to_dicts()
    assert (row["policy_id"], row["held"], row["oldest_held_at"]) == (POLICY, 2, MONDAY + DAY)


def test_an_empty_chain_has_no_policies(tmp_path: Path) -> None:
    empty, full = (glance(chain.snapshot(tmp_path)) for chain in (MadeUp(), CHAIN))
    assert isinstance(empty, Glance)
    assert (empty.frame.height, empty.weekly.height) == (0, 0)
    assert (empty.frame.schema, empty.weekly.schema) == (full.frame.schema, full.weekly.schema)


def test_what_is_no_scope_is_refused(lakes: Sequence[Snapshot], tmp_path: Path) -> None:
    assert "This lake has acme" in refused(lambda: glance(Lake(tmp_path, [lakes[0].manifest])))  # type: ignore[arg-type]
