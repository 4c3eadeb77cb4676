"""Searching decisions: every page, total and summary equals a recount of the chain's entries, one by one."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import polars as pl
import pytest

from gate.ids import parse_timestamp
from tests.support.torture import size
from tests.workbench.engines.edges import refused
from tests.workbench.made_up import DAY, HOUR, MONDAY, MadeUp
from tests.workbench.mixed import DAYS, POLICIES, RULES, STATUSES, TARGETS, mixed, snapshots
from workbench.engines.listing import (
    AGES,
    MAX_ROWS,
    STATES,
    Criteria,
    Names,
    decision_names,
    find_decisions,
    held_decisions,
    held_for,
)
from workbench.lake.entries import Personal
from workbench.lake.reader import Lake, Snapshot

CHAIN: Final = mixed(2, 120)
ALL: Final = 1000

Row = dict[str, Any]


def told(chain: MadeUp) -> list[Row]:
    """Each decision of a chain as a listing has it, the last first."""
    rows: dict[str, Row] = {}
    for position, entry in enumerate(chain.entries, 1):
        decision_id = entry["decision_id"]
        if "verdict" in entry:
            binding = entry["action_binding"]
            rows[decision_id] = {
                "position": position,
                "created_at": parse_timestamp(entry["created_at"]),
                **{name: entry[name] for name in ("decision_id", "request_id", "policy_id", "policy_version")},
                **{name: entry[name] for name in ("verdict", "application_verdict", "action", "reason_code")},
                "rule": entry["evidence"][1],
                "target_system": binding.get("system", ""),
                "target_object_id": binding.get("resource", ""),
                "execution_status": None,
                "outcome_status": None,
                "state": {"yes": "approved", "no": "refused", "review": "held"}[entry["verdict"]],
                "erased": False,
            }
        elif "execution_receipt_id" in entry:
            rows[decision_id]["state"] = rows[decision_id]["execution_status"] = entry["execution_status"]
        elif "resolution_entry_id" in entry:
            row = rows[decision_id]
            row["state"] = row["execution_status"] or entry["resolution"]
        elif "outcome_id" in entry:
            rows[decision_id]["outcome_status"] = entry["outcome_status"]
        else:
            rows[decision_id]["erased"] = True
    return list(rows.values())[::-1]


ROWS: Final = told(CHAIN)


def shortened(ref: str, row: Row) -> bool:
    return len(ref) >= 8 and bool(row["decision_id"].endswith(ref) or row["decision_id"].startswith(ref))


def meets(row: Row, criteria: Criteria) -> bool:
    """Whether a decision meets all criteria."""
    columns = ("policy_id", "policy_version", "verdict", "reason_code", "rule", "state", "erased")
    asked = {name: value for name in columns if (value := getattr(criteria, name)) is not None}
    if criteria.outcome_status is not None:
        asked["outcome_status"] = None if criteria.outcome_status == "unreported" else criteria.outcome_status
    if criteria.target is not None:
        asked["target_object_id"] = criteria.target
    return (
        all(row[name] == value for name, value in asked.items())
        and (criteria.since is None or row["created_at"] >= criteria.since)
        and (criteria.until is None or row["created_at"] < criteria.until)
        and (criteria.ref in (None, row["decision_id"], row["request_id"]) or shortened(criteria.ref, row))
    )


def drawn(chance: random.Random) -> Criteria:
    """Some criteria that some decisions meet."""
    row = chance.choice(ROWS)
    choices: dict[str, Callable[[], Any]] = {
        **{
            name: lambda name=name: row[name]  # type: ignore[misc]
            for name in ("policy_id", "policy_version", "verdict", "reason_code", "rule", "state", "erased")
        },
        "outcome_status": lambda: row["outcome_status"] or "unreported",
        "target": lambda: row["target_object_id"],
        "ref": lambda: chance.choice([row["decision_id"], row["request_id"]]),
        "since": lambda: row["created_at"],
        "until": lambda: row["created_at"] + timedelta(days=chance.randrange(1, 40)),
    }
    return Criteria(**{name: choices[name]() for name in chance.sample(sorted(choices), chance.randrange(5))})


def single() -> Iterator[Criteria]:
    """Every value of every criterion, each alone."""
    yield from (Criteria(policy_id=policy_id) for policy_id in (*POLICIES, "nobody"))
    yield from (Criteria(verdict=verdict) for verdict in ("yes", "no", "review"))
    yield from (Criteria(rule=rule) for rule in (*RULES, "rule:never"))
    yield from (Criteria(state=state) for state in STATES)
    yield from (Criteria(outcome_status=status) for status in (*STATUSES, "unreported"))
    yield from (Criteria(target=target) for target in (*TARGETS, "order-", ""))
    yield from (Criteria(erased=erased) for erased in (None, True, False))
    yield from (Criteria(ref=ref) for ref in ("dec_1", "req_0", "req_", "' OR 1=1 --"))


@pytest.fixture(scope="module")
def lakes(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Snapshot]:
    return snapshots(CHAIN, tmp_path_factory.mktemp("listed"))


def test_every_criterion_finds_what_a_recount_finds(lakes: Sequence[Snapshot]) -> None:
    chance = random.Random(3)  # noqa: S311 - for tests to be the same each time
    for criteria in (*single(), *(drawn(chance) for _ in range(size(10, 20)))):
        expected = [row for row in ROWS if meets(row, criteria)]
        for snapshot in chance.sample(lakes, size(1, 2)):
            found = find_decisions(snapshot, criteria, ALL)
            assert found.frame.to_dicts() == [{name: row[name] for name in found.frame.columns} for row in expected]
            assert (found.total, found.next_before, found.targets_kept) == (len(expected), None, True)


def test_pages_follow_one_another_without_a_gap(lakes: Sequence[Snapshot]) -> None:
    for criteria in (Criteria(), Criteria(policy_id="refunds"), Criteria(target=TARGETS[0])):
        expected = [row["position"] for row in ROWS if meets(row, criteria)]
        for snapshot, limit in zip(lakes, (11, 29, len(expected), len(expected) + 1), strict=True):
            found: list[int] = []
            before = None
            for _ in range(math.ceil(len(expected) / limit)):
                page = find_decisions(snapshot, criteria, limit, before)
                assert page.total == len(expected)
                assert page.frame.height <= limit
                found += page.frame["position"].to_list()
                before = page.next_before
                assert before is None or page.frame.height == limit
            assert before is None
            assert found == expected


def test_pages_lead_back_to_the_newest_and_tell_how_many_are_newer(lakes: Sequence[Snapshot]) -> None:
    criteria = Criteria(policy_id="refunds")
    expected = [row["position"] for row in ROWS if meets(row, criteria)]
    for snapshot in lakes[:2]:
        page = find_decisions(snapshot, criteria, 9, before=min(expected) + 1)
        assert page.frame["position"].to_list() == [min(expected)]
        found: list[int] = [min(expected)]
        while page.next_after is not None:
            assert page.newer == len(expected) - len(found)
            page = find_decisions(snapshot, criteria, 9, after=page.next_after)
            found = page.frame["position"].to_list() + found
        assert page.newer == 0
        assert found == expected


def test_the_oldest_come_first_where_they_are_asked_for_so(lakes: Sequence[Snapshot]) -> None:
    criteria = Criteria(state="held")
    expected = [row["position"] for row in reversed(ROWS) if meets(row, criteria)]
    for snapshot in lakes[:2]:
        page = find_decisions(snapshot, criteria, 3, oldest_first=True)
        assert page.next_before is None
        found = page.frame["position"].to_list()
        while page.next_after is not None:
            page = find_decisions(snapshot, criteria, 3, after=page.next_after, oldest_first=True)
            found += page.frame["position"].to_list()
        assert found == expected
        back = find_decisions(snapshot, criteria, 3, before=page.next_before, oldest_first=True)
        end = expected.index(page.frame["position"][0])
        assert back.frame["position"].to_list() == expected[max(end - 3, 0) : end]


def test_among_some_positions_only_these_are_found(lakes: Sequence[Snapshot]) -> None:
    some = [row["position"] for row in ROWS[::3]]
    expected = [row["position"] for row in ROWS[::3] if row["verdict"] == "no"]
    for snapshot in lakes:
        found = find_decisions(snapshot, Criteria(verdict="no"), ALL, among=pl.Series(some))
        assert found.frame["position"].to_list() == expected
        assert found.total == len(expected)
        assert find_decisions(snapshot, Criteria(), among=pl.Series([], dtype=pl.Int64)).total == 0


def test_a_page_has_the_columns_that_a_view_reads(lakes: Sequence[Snapshot]) -> None:
    columns = [
        *("position", "decision_id", "request_id", "created_at", "policy_id", "policy_version", "verdict"),
        *("application_verdict", "action", "reason_code", "rule", "target_system", "target_object_id"),
        *("execution_status", "outcome_status", "state", "erased"),
    ]
    full, empty = (
        find_decisions(lakes[0], Criteria()).frame,
        find_decisions(lakes[0], Criteria(policy_id="nobody")).frame,
    )
    assert full.columns == columns
    assert full.height == 50
    assert empty.schema == full.schema


def test_without_targets_in_the_lake_a_listing_says_so(tmp_path: Path) -> None:
    personal = Personal.of(["target_object_id"])
    for snapshot in snapshots(CHAIN, tmp_path, personal)[1:]:
        found = find_decisions(snapshot, Criteria())
        assert not found.targets_kept
        assert found.frame["target_object_id"].null_count() == found.frame.height
        assert found.frame["target_system"].null_count() == 0
        assert find_decisions(snapshot, Criteria(target=TARGETS[0])).total == 0


def test_a_listing_of_a_slice_has_its_decisions_alone(lakes: Sequence[Snapshot]) -> None:
    middle = MONDAY + timedelta(days=DAYS // 2)
    for snapshot in lakes:
        for criteria in (Criteria(), Criteria(erased=True), Criteria(target=TARGETS[1])):
            expected = [
                row for row in ROWS if row["created_at"] >= middle and row["verdict"] == "no" and meets(row, criteria)
            ]
            found = find_decisions(snapshot.slice(since=middle, verdict="no"), criteria, ALL)
            assert found.frame["position"].to_list() == [row["position"] for row in expected]


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"verdict": "maybe"}, "verdict"),
        ({"state": "waiting"}, "state"),
        ({"outcome_status": "good"}, "outcome_status"),
        ({"policy_id": 5}, "policy_id"),
        ({"ref": ["dec_1"]}, "ref"),
        ({"erased": "yes"}, "erased"),
        ({"erased": 1}, "erased"),
        ({"since": "2026-01-01"}, "since"),
    ],
)
def test_a_criterion_that_no_decision_can_meet_is_refused(wrong: dict[str, Any], named: str) -> None:
    assert refused(lambda: Criteria(**wrong)).startswith(f"{named} is ")


def test_wrong_arguments_are_refused_in_a_sentence(lakes: Sequence[Snapshot], tmp_path: Path) -> None:
    snapshot = lakes[0]
    for limit in (0, 1001, "5", True):
        assert "limit is" in refused(lambda limit=limit: find_decisions(snapshot, Criteria(), limit))  # type: ignore[misc]
    assert "before is" in refused(lambda: find_decisions(snapshot, Criteria(), before=0))
    assert "now is" in refused(lambda: held_decisions(snapshot, now=None))  # type: ignore[arg-type]
    lake = Lake(tmp_path, [snapshot.manifest])
    asked: Sequence[Callable[[Any], object]] = (
        decision_names,
        lambda of: find_decisions(of, Criteria()),
        lambda of: held_decisions(of, now=MONDAY),
    )
    for ask in asked:
        assert "This lake has acme" in refused(lambda ask=ask: ask(lake))  # type: ignore[misc]


def ages(made: Sequence[datetime], now: datetime) -> dict[str, int]:
    """How many of some moments are how old."""
    ends = [timedelta.min, DAY, 7 * DAY, 28 * DAY, 91 * DAY, timedelta.max]
    return {
        name: sum(1 for moment in made if low <= now - moment < high)
        for name, (low, high) in zip(AGES, pairwise(ends), strict=True)
    }


def test_what_is_held_is_counted_by_policy_reason_and_age(lakes: Sequence[Snapshot]) -> None:
    made = sorted(row["created_at"] for row in ROWS if row["state"] == "held")
    for now in (MONDAY, made[3] + HOUR, made[4] + DAY, made[5] + 7 * DAY, made[-1], made[-1] + DAY):
        for snapshot, policy_id in zip(lakes, (None, "refunds", "trials é", "nobody"), strict=True):
            waiting = [row for row in ROWS if row["state"] == "held" and policy_id in (None, row["policy_id"])]
            groups: dict[tuple[str, str], list[datetime]] = {}
            for row in waiting:
                groups.setdefault((row["policy_id"], row["reason_code"]), []).append(row["created_at"])
            expected = sorted(
                ((*key, len(of), min(of), max(of)) for key, of in groups.items()),
                key=lambda row: (-row[2], *row[:2]),
            )
            found = held_decisions(snapshot, Criteria(policy_id=policy_id), now=now)
            assert found.frame.rows() == expected
            assert found.frame.columns == ["policy_id", "reason_code", "decisions", "oldest_at", "newest_at"]
            assert found.ages == ages([row["created_at"] for row in waiting], now)
            assert (found.decisions, found.left_out) == (len(waiting), 0)


def test_an_age_is_told_at_its_ends(tmp_path: Path) -> None:
    chain = MadeUp()
    now = datetime(2026, 3, 1, 12, tzinfo=UTC)
    tick = timedelta(milliseconds=1)
    ends = (DAY, 7 * DAY, 28 * DAY, 91 * DAY)
    for age in (*ends, *(end - tick for end in ends), -DAY):
        chain.decide(now - age, verdict="review")
    assert list(held_decisions(chain.snapshot(tmp_path), now=now).ages.values()) == [2, 2, 2, 2, 1]
    assert held_decisions(chain.snapshot(tmp_path), now=now.replace(tzinfo=None)).ages["under 1 day"] == 2


def test_the_decisions_held_for_an_age_are_those_that_the_summary_counts(tmp_path: Path) -> None:
    chain = MadeUp()
    now = datetime(2026, 3, 1, 12, 0, 0, 700, tzinfo=UTC)
    tick = timedelta(milliseconds=1)
    for age in (DAY, 7 * DAY, 28 * DAY, 91 * DAY):
        for at in (now - age - tick, now - age, now - age + tick):
            chain.decide(at.replace(microsecond=at.microsecond // 1000 * 1000), verdict="review")
    snapshot = chain.snapshot(tmp_path)
    counted = held_decisions(snapshot, now=now).ages
    assert set(counted.values()) != {0}
    for name in AGES:
        since, until = held_for(name, now)
        assert find_decisions(snapshot, Criteria(state="held", since=since, until=until)).total == counted[name]
    assert "age is" in refused(lambda: held_for("old", now))


def test_what_is_held_is_counted_among_those_that_the_list_finds(lakes: Sequence[Snapshot]) -> None:
    held = [row for row in ROWS if row["state"] == "held"]
    for name, of in (("reason_code", "reason_code"), ("target", "target_object_id"), ("policy_id", "policy_id")):
        for value in {row[of] for row in held if row[of]}:
            asked: dict[str, Any] = {name: value, "state": "held"}
            found = find_decisions(lakes[0], Criteria(**asked), 1000)
            summary = held_decisions(lakes[0], Criteria(**asked), now=MONDAY)
            assert summary.decisions == found.total == sum(summary.ages.values()) > 0
            assert summary.outcomes == dict(found.frame["outcome_status"].drop_nulls().value_counts().iter_rows())


def in_order(counted: Mapping[str, int]) -> list[str]:
    return sorted(counted, key=lambda name: (-counted[name], name))


def test_the_names_are_those_that_decisions_have(lakes: Sequence[Snapshot]) -> None:
    versions = {
        policy_id: list(dict.fromkeys(row["policy_version"] for row in ROWS[::-1] if row["policy_id"] == policy_id))
        for policy_id in POLICIES
    }
    expected = Names(
        in_order(Counter(row["policy_id"] for row in ROWS)),
        versions,
        in_order(Counter(row["reason_code"] for row in ROWS)),
        in_order(Counter(row["rule"] for row in ROWS)),
        in_order(Counter(row["reason_code"] for row in ROWS if row["verdict"] == "review")),
        [],
    )
    for snapshot in lakes:
        assert decision_names(snapshot) == expected


def test_names_and_rows_of_which_callers_make_endlessly_many_are_bounded(tmp_path: Path) -> None:
    chain = MadeUp()
    many = MAX_ROWS + 5
    for number in range(many):
        name = f"{number:03}"
        chain.decide(
            MONDAY, verdict="review", reason=f"R{name}", rule=f"rule:{name}", policy_id=f"p{name}", version=name
        )
        chain.decide(MONDAY, policy_id="one", version=f"v{name}", reason=f"R{name}", rule=f"rule:{name}")
    chain.decide(MONDAY, policy_id=f"p{many - 1:03}", version="again")
    snapshot = chain.snapshot(tmp_path)
    found = decision_names(snapshot)
    assert [len(of) for of in (found.policies, found.reason_codes, found.rules)] == [MAX_ROWS] * 3
    assert found.policies[:3] == ["one", f"p{many - 1:03}", "p000"]
    assert found.versions["one"] == [f"v{number:03}" for number in range(MAX_ROWS)]
    assert list(found.versions) == found.policies
    waiting = held_decisions(snapshot, now=MONDAY)
    assert (waiting.frame.height, waiting.left_out, waiting.decisions) == (MAX_ROWS, 5, many)
    assert sum(waiting.ages.values()) == many


def test_an_empty_chain_has_nothing_to_find(tmp_path: Path) -> None:
    snapshot = MadeUp().snapshot(tmp_path)
    assert find_decisions(snapshot, Criteria()).total == 0
    assert held_decisions(snapshot, now=MONDAY).frame.is_empty()
    assert decision_names(snapshot) == Names([], {}, [], [], [], [])


def test_a_date_begins_at_midnight_in_utc_and_until_includes_its_day(lakes: Sequence[Snapshot]) -> None:
    day = date(2026, 2, 2)
    midnight = datetime(2026, 2, 2, tzinfo=UTC)
    expected = [row["position"] for row in ROWS if midnight <= row["created_at"] < midnight + 7 * DAY]
    found = find_decisions(lakes[-1], Criteria(since=day, until=day + timedelta(days=6)), ALL).frame
    assert found["position"].to_list() == expected
    assert found.filter(pl.col("created_at") < midnight).is_empty()
