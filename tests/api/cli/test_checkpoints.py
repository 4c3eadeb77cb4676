"""Kept checkpoints as an operator meets them: exported, compared, and accounted for after a restore."""

from __future__ import annotations

import json
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from sqlalchemy import delete, update

from gate.clock import utc_now
from gate.instance.instance import Instance
from gate.ledger.access.authority import Authority, Scope
from gate.ledger.tables import chain_heads, decisions, entries
from tests.support.command_line import run_gate
from tests.support.samples import sample_request


@pytest.fixture
def home(instance: Instance, authority: Authority) -> Path:
    """The home of an instance with two decisions and one kept checkpoint."""
    decide(instance, authority, 2)
    instance.checkpoints.keep(utc_now())
    return instance.settings.home


def decide(instance: Instance, authority: Authority, count: int) -> None:
    for _ in range(count):
        instance.gate().decide(authority, sample_request(), request_id="req_1")


def cut(instance: Instance, scope: Scope, size: int) -> None:
    head = instance.ledger.entries.heads_at(scope.scope_id, [size])[size]
    with instance.ledger.store.write() as connection:
        for table in (entries, decisions):
            connection.execute(delete(table).where(table.c.position > size))
        connection.execute(
            update(chain_heads).values(chain_size=size, merkle_root=head.merkle_root, link_hash=head.link_hash)
        )


def printed(done: CompletedProcess[str], code: int = 0) -> Any:
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


def check(home: Path, *arguments: str) -> CompletedProcess[str]:
    return run_gate("chain", "check", "--home", str(home), *arguments)


def test_a_check_compares_this_hosts_log_by_itself(home: Path, instance: Instance, scope: Scope) -> None:
    done = check(home)
    assert (done.returncode, "the chains contain 1 checkpoint" in done.stdout) == (0, True)
    cut(instance, scope, 1)
    shown = printed(check(home, "--json"), code=1)
    assert [chain["whole"] for chain in shown["chains"]] == [True]
    (log,) = shown["checkpoint_logs"]
    assert (log["whole"], log["contradicted"], log["file"]) == (False, 1, str(home / "checkpoints.jsonl"))
    assert log["contradictions"][0]["scope"] == scope.name
    told = check(home).stdout
    assert "BROKEN  checkpoint log" in told
    assert f"checkpoints.jsonl:1: {scope.name}: The chain no longer contains the checkpoint of" in told


def test_an_exported_log_shows_what_the_hosts_own_lost(
    home: Path, instance: Instance, authority: Authority, scope: Scope, tmp_path: Path
) -> None:
    exported = tmp_path / "kept.jsonl"
    decide(instance, authority, 1)
    shown = printed(run_gate("chain", "checkpoint", "--export", str(exported), "--home", str(home), "--json"))
    # The export keeps one of its own first, so that it is up to the moment.
    assert (shown["checkpoints"], shown["chains"], shown["refused"]) == (2, 1, 0)
    (home / "checkpoints.jsonl").unlink()
    cut(instance, scope, 2)
    assert check(home).returncode == 0
    done = check(home, "--checkpoint-log", str(exported))
    assert (done.returncode, "kept.jsonl:2" in done.stdout) == (1, True)
    assert "kept.jsonl:1" not in done.stdout


def test_an_export_of_one_scope_holds_no_other(home: Path, instance: Instance, scope: Scope, tmp_path: Path) -> None:
    directory = instance.ledger.directory
    other = directory.create_scope("other", "unlimited", utc_now())
    key, _ = directory.create_key(other, {"decide", "register"}, None, utc_now())
    decide(instance, directory.authenticate(key, utc_now()), 1)
    file = tmp_path / "kept.jsonl"
    run_gate("chain", "checkpoint", "--export", str(file), "--scope", scope.name, "--home", str(home))
    assert {json.loads(line)["chain_id"] for line in file.read_text().splitlines()} == {scope.chain_id}
    again = run_gate("chain", "checkpoint", "--export", str(file), "--home", str(home))
    assert (again.returncode, "FILE_UNWRITABLE" in again.stderr) == (2, True)


def test_a_contradicted_chain_is_exported_with_a_warning_and_signed_no_more(
    home: Path, instance: Instance, scope: Scope, tmp_path: Path
) -> None:
    cut(instance, scope, 1)
    done = run_gate("chain", "checkpoint", "--export", str(tmp_path / "kept.jsonl"), "--home", str(home))
    assert (done.returncode, "No new checkpoint: Chain" in done.stdout) == (1, True)
    done = run_gate("chain", "checkpoint", "--scope", scope.name, "--home", str(home))
    assert (done.returncode, "SVC_CHECKPOINT_UNAVAILABLE" in done.stderr) == (2, True)


def test_an_epoch_needs_a_confirmation_and_then_accounts_for_what_is_gone(
    home: Path, instance: Instance, scope: Scope
) -> None:
    cut(instance, scope, 1)
    arguments = ("chain", "epoch", "--reason", "The disk of Tuesday was put back.", "--home", str(home))
    done = run_gate(*arguments)
    assert (done.returncode, "--yes" in done.stderr) == (2, True)
    assert check(home).returncode == 1
    assert printed(run_gate(*arguments, "--yes", "--json"))["chains"] == 1
    done = check(home)
    assert done.returncode == 0
    assert f"cut     {scope.name}: entry 2; " in done.stdout
    assert "The disk of Tuesday was put back." in done.stdout
    logged = printed(run_gate("log", "--home", str(home), "--json"))["entries"][-1]
    assert (logged["action"], logged["details"]) == ("checkpoints.epoch_begun", {"chains": 1})


def test_a_restore_names_what_it_cut_from_the_log_of_this_host(
    home: Path, instance: Instance, authority: Authority, scope: Scope, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "elsewhere.jsonl"
    run_gate("backup", str(tmp_path / "tuesday.backup"), "--home", str(home))
    decide(instance, authority, 3)
    run_gate("chain", "checkpoint", "--export", str(log), "--home", str(home))
    monkeypatch.setenv("GATE_CHECKPOINT_LOG", str(log))
    done = run_gate("restore", str(tmp_path / "tuesday.backup"), "--home", str(tmp_path / "again"))
    assert done.returncode == 0, done.stderr
    assert f"cut     {scope.name}: entries 3 to 5; " in done.stdout
    assert "Restored from the backup tuesday.backup with SHA-256 " in done.stdout


def test_a_backup_of_a_contradicted_chain_says_so(home: Path, instance: Instance, scope: Scope, tmp_path: Path) -> None:
    cut(instance, scope, 1)
    done = run_gate("backup", str(tmp_path / "cut.backup"), "--home", str(home))
    assert done.returncode == 0
    assert "Backed up as it is, but: Chain" in done.stdout


def test_a_log_that_is_not_there_or_not_readable_is_said(home: Path, tmp_path: Path) -> None:
    done = check(home, "--checkpoint-log", str(tmp_path / "none.jsonl"))
    assert (done.returncode, "FILE_UNREADABLE" in done.stderr) == (2, True)
    (tmp_path / "notes.jsonl").write_text("notes\n")
    done = check(home, "--checkpoint-log", str(tmp_path / "notes.jsonl"))
    assert (done.returncode, "notes.jsonl:1: The line is neither" in done.stdout) == (1, True)


def test_the_status_compares_the_kept_checkpoints_itself(home: Path, instance: Instance, scope: Scope) -> None:
    assert printed(run_gate("status", "--home", str(home), "--json"))["checkpoints"]["ready"] is True
    cut(instance, scope, 1)
    part = printed(run_gate("status", "--home", str(home), "--json"), code=1)["checkpoints"]
    assert (part["ready"], part["refused"]) == (False, 1)
    assert "gate chain check" in run_gate("status", "--home", str(home)).stdout
