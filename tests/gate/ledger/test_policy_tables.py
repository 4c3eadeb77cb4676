"""The policy tables in force: reloaded when a file changes, kept in the ledger, and never replaced by a broken file."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from gate.clock import utc_now
from gate.encoding.canonical import canonical, content_hash
from gate.errors import ServiceUnavailable
from gate.instance.instance import Instance
from gate.services.policies import in_force
from gate.services.policies.in_force import TablesInForce, released
from gate.services.policies.questions import BY_SERVICE
from tests.support.samples import CASES

REFUND = CASES / "policy_tables" / "refund.json"


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are looked at whenever somebody asks."""
    monkeypatch.setattr(in_force, "LOOK_SECONDS", 0.0)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Where the operator keeps tables."""
    found = tmp_path / "policies"
    found.mkdir()
    return found


@pytest.fixture
def tables(instance: Instance, directory: Path) -> TablesInForce:
    """The tables of one process."""
    return opened(instance, directory)


def opened(instance: Instance, directory: Path) -> TablesInForce:
    return TablesInForce(directory, instance.ledger.policy_tables, utc_now)


def edited(**members: Any) -> bytes:
    """The table of refunds with another first entry."""
    body = json.loads(REFUND.read_bytes())
    body["entries"][0].update(members)
    return json.dumps(body).encode()


def test_without_files_the_tables_of_the_release_are_in_force(tables: TablesInForce) -> None:
    for found, service in zip(tables.all(), BY_SERVICE, strict=True):
        assert (found.table.hash, found.origin, found.fault) == (released(service).hash, "release", None)


def test_an_edited_file_is_in_force_at_once_and_its_change_is_told(tables: TablesInForce, directory: Path) -> None:
    file = directory / "refund.json"
    file.write_bytes(REFUND.read_bytes())
    first = tables.of("refund")
    assert first.origin == "operator"
    file.write_bytes(edited(windows={"refund_days": 15}, notes="Longer since June."))
    second = tables.of("refund")
    assert second.table.hash != first.table.hash
    (change,) = [change for change in tables.changes(50) if change.kept.service == "refund"]
    assert (change.previous_hash, change.kept.table_hash) == (first.table.hash, second.table.hash)
    changed = {"vendor": "north-books", "region": "*", "plan": "*", "members": ["notes", "windows"]}
    assert change.what == {"added": [], "removed": [], "changed": [changed]}


def test_a_file_that_comes_and_goes_is_told_as_what_was_added_and_removed(
    tables: TablesInForce, directory: Path
) -> None:
    assert tables.of("refund").origin == "release"
    file = directory / "refund.json"
    file.write_bytes(REFUND.read_bytes())
    assert tables.of("refund").origin == "operator"
    file.unlink()
    assert tables.of("refund").origin == "release"
    back, there = (change.what for change in tables.changes(50) if change.kept.service == "refund")
    assert there["added"] == back["removed"]
    assert there["removed"] == back["added"]
    assert {"vendor": "north-books", "region": "*", "plan": "*"} in there["added"]


@pytest.mark.parametrize("broken", [b"", b"{", b'{"service": "refund"}', edited(window=3), b"\xff\xfe"])
def test_a_broken_file_leaves_the_last_good_table_in_force(
    tables: TablesInForce, directory: Path, instance: Instance, broken: bytes
) -> None:
    file = directory / "refund.json"
    file.write_bytes(edited(windows={"refund_days": 15}))
    good = tables.of("refund").table
    file.write_bytes(broken)
    found = tables.of("refund")
    assert (found.table.hash, found.origin) == (good.hash, "operator")
    assert found.fault is not None
    assert found.fault.startswith("refund.json is not active. ")
    # Another process, or this one after a restart.
    again = opened(instance, directory).of("refund")
    assert (again.table.hash, again.origin) == (good.hash, "operator")
    assert again.fault == found.fault
    file.write_bytes(edited(windows={"refund_days": 16}))
    assert tables.of("refund").fault is None
    assert tables.of("refund").table.hash != good.hash


def test_a_file_that_was_of_a_day_to_come_is_read_again_when_the_day_is_there(
    directory: Path, instance: Instance
) -> None:
    now = datetime(2026, 11, 28, 23, 59, tzinfo=UTC)
    tables = TablesInForce(directory, instance.ledger.policy_tables, lambda: now)
    (directory / "refund.json").write_bytes(edited(last_verified="2026-11-30"))
    fault = tables.of("refund").fault
    assert fault is not None
    assert "entries[0].last_verified: last_verified is in the future. Correct it." in fault
    now += timedelta(minutes=2)
    assert (tables.of("refund").fault, tables.of("refund").origin) == (None, "operator")


def test_a_table_that_an_earlier_release_let_pass_stays_to_be_compared(
    tables: TablesInForce, directory: Path, instance: Instance
) -> None:
    file = directory / "refund.json"
    body = json.loads(edited(region="UK", last_verified="2062-11-01"))
    instance.ledger.policy_tables.keep("refund", content_hash(body), canonical(body), "operator", utc_now())
    file.write_text(json.dumps(body))
    found = tables.of("refund")
    assert (found.table.hash, found.origin) == (content_hash(body), "operator")
    assert found.fault is not None
    file.write_bytes(REFUND.read_bytes())
    assert tables.of("refund").fault is None
    (change,) = [change for change in tables.changes(50) if change.kept.service == "refund"]
    assert change.what["added"] == [{"vendor": "north-books", "region": "*", "plan": "*"}]
    assert change.what["removed"] == [{"vendor": "north-books", "region": "UK", "plan": "*"}]


def test_a_file_that_was_broken_from_the_start_leaves_the_table_of_the_release_in_force(
    tables: TablesInForce, directory: Path
) -> None:
    (directory / "refund.json").write_bytes(b"{")
    found = tables.of("refund")
    assert (found.table.hash, found.origin) == (released("refund").hash, "release")
    assert found.fault is not None


def test_a_file_that_cannot_be_read_is_broken(tables: TablesInForce, directory: Path) -> None:
    (directory / "refund.json").mkdir()
    found = tables.of("refund")
    assert found.origin == "release"
    assert found.fault is not None
    assert "cannot be read" in found.fault


def test_processes_that_see_a_file_at_once_keep_it_once(instance: Instance, directory: Path) -> None:
    (directory / "refund.json").write_bytes(REFUND.read_bytes())
    processes = [opened(instance, directory) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        hashes = {found.table.hash for found in pool.map(lambda process: process.of("refund"), processes)}
    assert len(hashes) == 1
    kept = instance.ledger.policy_tables.last("refund")
    assert kept is not None
    assert (kept.number, kept.table_hash, kept.origin) == (1, hashes.pop(), "operator")


def test_without_the_ledger_answers_go_on_and_the_table_is_kept_later(
    tables: TablesInForce, directory: Path, instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    (directory / "refund.json").write_bytes(REFUND.read_bytes())
    kept = instance.ledger.policy_tables

    def away(*_: object) -> None:
        raise ServiceUnavailable("SVC_STORAGE_UNAVAILABLE", "It is away.")

    with monkeypatch.context() as patched:
        patched.setattr(kept, "keep", away)
        assert tables.of("refund").origin == "operator"
    assert kept.last("refund") is None
    tables.of("refund")
    last = kept.last("refund")
    assert last is not None
    assert last.table_hash == tables.table("refund").hash
