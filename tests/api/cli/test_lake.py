"""`gate lake`: export, status, compact and verify, for people and machines, and what `gate erase` does to a lake."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import orjson
import pytest
from sqlalchemy import update

from api.cli import erase, lake
from gate.clock import utc_now
from gate.instance.instance import Instance, open_instance
from gate.instance.settings import load_settings
from gate.ledger.access.authority import FULL_ACCESS
from gate.ledger.tables import entries
from tests.support.command_line import run_gate
from tests.support.samples import sample_request
from tests.workbench.support import Chain
from workbench.lake.cohorts import month_due
from workbench.lake.lease import lease
from workbench.lake.manifest import FILE_NAME
from workbench.lake.reader import open_lake

Gate = Callable[..., "CompletedProcess[str]"]
COMMANDS = ("export", "status", "compact", "verify")


@pytest.fixture
def gate(home: Path) -> Gate:
    """Runs `gate ...` against the instance of this test."""
    return lambda *arguments: run_gate(*arguments, "--home", str(home))


@pytest.fixture
def chains(home: Path) -> Iterator[dict[str, Chain]]:
    """Two scopes with a chain each, of which one is still empty."""
    with closing(open_instance(load_settings(home))) as instance:
        made = {name: chain_of(instance, name) for name in ("acme", "other")}
        made["acme"].grow(6)
        yield made


def chain_of(instance: Instance, name: str) -> Chain:
    """The chain of a new scope."""
    scope = instance.ledger.directory.create_scope(name, "unlimited", utc_now())
    key, _ = instance.ledger.directory.create_key(scope, FULL_ACCESS, None, utc_now())
    return Chain(instance, instance.ledger.directory.authenticate(key, utc_now()))


def printed(done: CompletedProcess[str], code: int = 0) -> Any:
    """What a command printed as JSON."""
    assert done.returncode == code, f"{done.stdout}{done.stderr}"
    return json.loads(done.stdout)


def of(told: dict[str, Any], scope: str = "acme") -> dict[str, Any]:
    """What a command told of a scope."""
    (found,) = (found for found in told["scopes"] if found["scope"] == scope)
    return dict(found)


def refusal(done: CompletedProcess[str], code: int = 2) -> str:
    """The code of the error that a command printed as JSON."""
    assert (done.returncode, done.stdout) == (code, ""), done.stdout
    told: dict[str, Any] = json.loads(done.stderr)
    assert told["message"].endswith((".", ".)"))
    return str(told["error"])


def files(home: Path, table: str) -> list[Path]:
    """The lake's files of a table."""
    return sorted((home / "lake").glob(f"scope=*/month=*/{table}-*.parquet"))


def test_an_export_brings_every_scope_up_to_the_ledger(gate: Gate, chains: dict[str, Chain], home: Path) -> None:
    behind = printed(gate("lake", "status", "--json"), code=1)["scopes"]
    assert {told["scope"]: (told["position"], told["behind"] > 0) for told in behind} == {
        "acme": (0, True),
        "other": (0, False),
    }
    exported = printed(gate("lake", "export", "--json"))
    assert printed(gate("lake", "status", "--json")) == exported
    acme, other = (of(exported, name) for name in ("acme", "other"))
    assert acme.keys() == {
        *("scope", "scope_id", "ledger_position", "position", "behind", "compacted", "merkle_root", "files", "rows"),
        *("bytes", "left_out"),
    }
    assert (acme["behind"], acme["position"], acme["compacted"]) == (0, acme["ledger_position"], acme["position"])
    assert (acme["files"] > 0, acme["bytes"] > 0, acme["left_out"]) == (True, True, [])
    assert (other["files"], other["merkle_root"], other["behind"]) == (0, None, 0)
    scopes = printed(gate("scopes", "list", "--json"))["scopes"]
    assert acme["position"] == next(scope["chain_size"] for scope in scopes if scope["scope"] == "acme")
    assert printed(gate("lake", "export", "--json")) == exported
    assert open_lake(home / "lake").table("decisions").collect().height == 6


def test_what_came_since_is_behind_until_it_is_exported(gate: Gate, chains: dict[str, Chain]) -> None:
    printed(gate("lake", "export", "--json"))
    chains["acme"].decide()
    chains["other"].decide()
    told = printed(gate("lake", "status", "--json"), code=1)["scopes"]
    assert [scope["behind"] for scope in told] == [1, 1]
    (only,) = printed(gate("lake", "export", "--scope", "other", "--json"))["scopes"]
    assert (only["scope"], only["behind"]) == ("other", 0)
    assert printed(gate("lake", "status", "--scope", "other", "--json"))["scopes"] == [only]
    assert of(printed(gate("lake", "status", "--scope", "acme", "--json"), code=1))["behind"] == 1


def test_people_read_a_table(gate: Gate, chains: dict[str, Chain]) -> None:
    for command in ("export", "status", "compact"):
        done = gate("lake", command)
        assert done.returncode == 0, done.stderr
        head, *rows = done.stdout.splitlines()
        acme, other = sorted(rows)
        assert head.split() == ["scope", "entries", "exported", "behind", "compacted", "files", "bytes"]
        assert (acme.split()[0], acme.split()[3], other.split()) == ("acme", "0", ["other", *"000000"])


def test_compacting_makes_few_files_of_many_and_changes_no_row(gate: Gate, chains: dict[str, Chain]) -> None:
    for _ in range(3):
        printed(gate("lake", "export", "--json"))
        chains["acme"].grow(2)
    exported = of(printed(gate("lake", "export", "--json")))
    compacted = of(printed(gate("lake", "compact", "--json")))
    assert (compacted["position"], compacted["rows"]) == (exported["position"], exported["rows"])
    assert compacted["files"] <= exported["files"]
    assert printed(gate("lake", "verify", "--against-ledger", "--json"))["whole"] is True


def test_a_whole_lake_is_told_to_be_whole(gate: Gate, chains: dict[str, Chain]) -> None:
    assert printed(gate("lake", "verify", "--json")) == {"whole": True, "scopes": [], "benchmarks": [], "histories": []}
    empty = gate("lake", "verify")
    assert (empty.returncode, "`gate lake export`" in empty.stdout) == (0, True)
    position = of(printed(gate("lake", "export", "--json")))["position"]
    for options in ((), ("--against-ledger",), ("--scope", "acme")):
        told = printed(gate("lake", "verify", *options, "--json"))
        assert told["whole"] is True
        assert of(told) == {"scope": "acme", "whole": True, "entries_checked": position, "faults": []}
    shown = gate("lake", "verify")
    assert (shown.returncode, f"acme: {position} entries" in shown.stdout) == (0, True)


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1])


def changed(file: Path) -> None:
    body = bytearray(file.read_bytes())
    body[len(body) // 2] ^= 1
    file.write_bytes(body)


@pytest.fixture(scope="module")
def exported(laid_out: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of an instance with a chain, of which the lake holds everything."""
    home = Path(shutil.copytree(laid_out, tmp_path_factory.mktemp("exported") / "home"))
    with closing(open_instance(load_settings(home))) as instance:
        chain_of(instance, "acme").grow(6)
    printed(run_gate("lake", "export", "--json", "--home", str(home)))
    return home


@pytest.mark.heavy
@pytest.mark.parametrize("damage", [cut, changed, Path.unlink])
@pytest.mark.parametrize("table", ["decisions", "outcomes", "facts", "cases"])
def test_a_damaged_file_is_named_and_the_scope_made_anew(
    exported: Path, tmp_path: Path, damage: Callable[[Path], None], table: str
) -> None:
    home = Path(shutil.copytree(exported, tmp_path / "exported"))

    def gate(*arguments: str) -> CompletedProcess[str]:
        return run_gate(*arguments, "--home", str(home))

    file = files(home, table)[0]
    damage(file)
    told = printed(gate("lake", "verify", "--json"), code=1)
    assert (told["whole"], of(told)["whole"]) == (False, False)
    (fault,) = of(told)["faults"]
    assert (fault["check"], str(file.relative_to(home / "lake")) in fault["detail"]) == ("files", True)
    shown = gate("lake", "verify")
    assert (shown.returncode, "DAMAGED" in shown.stdout, "Remove the folder" in shown.stdout) == (1, True, True)
    shutil.rmtree(file.parents[1])
    # However it was damaged, this is what is left.
    if damage is cut:
        printed(gate("lake", "export", "--json"))
        assert printed(gate("lake", "verify", "--against-ledger", "--json"))["whole"] is True


def test_only_the_scope_that_was_asked_for_is_looked_at(gate: Gate, chains: dict[str, Chain], home: Path) -> None:
    chains["other"].decide()
    printed(gate("lake", "export", "--json"))
    acme = of(printed(gate("lake", "status", "--scope", "acme", "--json")))["scope_id"]
    changed(next((home / "lake" / f"scope={acme}").glob("month=*/decisions-*.parquet")))
    assert printed(gate("lake", "verify", "--scope", "other", "--json"))["whole"] is True
    assert printed(gate("lake", "verify", "--scope", "acme", "--json"), code=1)["whole"] is False


def test_a_row_that_the_ledger_has_otherwise_shows_against_the_ledger(
    gate: Gate, chains: dict[str, Chain], home: Path
) -> None:
    printed(gate("lake", "export", "--json"))
    with closing(open_instance(load_settings(home))) as instance, instance.ledger.store.write() as connection:
        connection.execute(update(entries).where(entries.c.position == 1).values(created_at="2026-01-01T00:00:00.000Z"))
    assert printed(gate("lake", "verify", "--json"))["whole"] is True
    told = printed(gate("lake", "verify", "--against-ledger", "--json"), code=1)
    assert [fault["check"] for fault in of(told)["faults"]] == ["ledger"]


@pytest.mark.parametrize("command", COMMANDS)
def test_what_cannot_be_done_exits_with_2_and_says_why(
    gate: Gate, chains: dict[str, Chain], home: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed(gate("lake", "export", "--json"))
    assert refusal(gate("lake", command, "--scope", "nobody", "--json")) == "SCOPE_UNKNOWN"
    assert refusal(gate("lake", command, "--nothing", "--json")) == "USAGE_INVALID"
    assert refusal(run_gate("lake", command, "--home", str(home / "none"), "--json")) == "INSTANCE_MISSING"
    monkeypatch.setattr(lake, "_PATIENCE", 0.0)
    with lease(home / "lake", patience=0):
        done = gate("lake", command, "--json")
    # Whoever only looks waits for nobody.
    if command in ("status", "verify"):
        assert done.returncode == 0
    else:
        assert refusal(done) == "LAKE_BUSY"
    manifest = next((home / "lake").glob(f"scope=*/{FILE_NAME}"))
    manifest.write_bytes(manifest.read_bytes()[:-2])
    assert refusal(gate("lake", command, "--json")) == "LAKE_MANIFEST_INVALID"


def test_a_manifest_that_was_changed_is_none(gate: Gate, chains: dict[str, Chain], home: Path) -> None:
    printed(gate("lake", "export", "--json"))
    file = next((home / "lake").glob(f"scope=*/{FILE_NAME}"))
    told = orjson.loads(file.read_bytes())
    file.write_bytes(orjson.dumps({**told, "position": told["position"] - 1}))
    done = gate("lake", "verify")
    assert (done.returncode, "(LAKE_MANIFEST_INVALID)" in done.stderr, str(file) in done.stderr) == (2, True, True)


def test_a_lake_of_another_ledger_is_left_alone(
    gate: Gate, chains: dict[str, Chain], home: Path, tmp_path: Path
) -> None:
    old = tmp_path / "old.db"
    printed(gate("backup", str(old), "--json"))
    chains["acme"].grow(2)
    printed(gate("lake", "export", "--json"))
    restored = tmp_path / "restored"
    assert run_gate("restore", str(old), "--home", str(restored)).returncode == 0
    assert not (restored / "lake").exists()
    # It is no part of a backup, and made anew.
    assert of(printed(run_gate("lake", "export", "--home", str(restored), "--json")))["behind"] == 0
    shutil.rmtree(restored / "lake")
    shutil.copytree(home / "lake", restored / "lake")
    assert refusal(run_gate("lake", "export", "--home", str(restored), "--json")) == "LAKE_OF_ANOTHER_LEDGER"
    told = printed(run_gate("lake", "verify", "--against-ledger", "--home", str(restored), "--json"), code=1)
    assert [fault["check"] for fault in of(told)["faults"]] == ["ledger"]


def test_an_entry_that_cannot_be_read_ends_the_export_before_it(
    gate: Gate, chains: dict[str, Chain], home: Path
) -> None:
    printed(gate("lake", "export", "--json"))
    head = of(printed(gate("lake", "status", "--json")))["position"]
    chains["acme"].decide()
    with closing(open_instance(load_settings(home))) as instance, instance.ledger.store.write() as connection:
        connection.execute(update(entries).where(entries.c.position == head + 1).values(body=b"x"))
    assert refusal(gate("lake", "export", "--json")) == "LAKE_ENTRY_UNREADABLE"
    assert of(printed(gate("lake", "status", "--scope", "acme", "--json"), code=1))["position"] == head
    assert printed(gate("lake", "verify", "--json"))["whole"] is True


def test_where_nothing_can_be_written_says_so(gate: Gate, chains: dict[str, Chain], home: Path) -> None:
    (home / "lake").write_bytes(b"a file in its place")
    assert refusal(gate("lake", "export", "--json")) == "LAKE_UNWRITABLE"


def test_the_settings_say_where_it_lies_and_what_it_leaves_out(
    gate: Gate, chains: dict[str, Chain], home: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    settings = home / "settings.toml"
    given = f'lake = "{elsewhere}"\npersonal_fields = ["inputs.margin_percent", "target_object_id"]\n'
    settings.write_text(f"{settings.read_text()}\n{given}")
    exported = of(printed(gate("lake", "export", "--json")))
    assert exported["left_out"] == ["inputs.margin_percent", "target_object_id"]
    assert (elsewhere.stat().st_mode & 0o777, (home / "lake").exists()) == (0o700, False)
    decisions = open_lake(elsewhere).table("decisions").collect()
    assert decisions["target_object_id"].null_count() == decisions.height == 6
    assert printed(gate("lake", "verify", "--against-ledger", "--json"))["whole"] is True
    settings.write_text(f'{settings.read_text().partition("personal")[0]}personal_fields = ["merkle_root"]\n')
    assert refusal(gate("lake", "export", "--json")) == "SETTINGS_INVALID"


def test_without_a_command_there_is_help(gate: Gate) -> None:
    done = run_gate("lake")
    assert done.returncode == 2
    assert all(command in done.stdout + done.stderr for command in COMMANDS)


class TestErase:
    """`gate erase` where there is a lake."""

    SECRET = "needle-41c9"

    @pytest.fixture
    def decided(self, gate: Gate, chains: dict[str, Chain]) -> str:
        """A decision about a person, which the lake holds."""
        decision_id = chains["acme"].decide(sample_request(discount_percent=10, margin_percent=22, note=self.SECRET))
        printed(gate("lake", "export", "--json"))
        return decision_id

    def held(self, home: Path) -> bool:
        """Whether the lake's files hold what the decision was made from."""
        lake = open_lake(home / "lake")
        return any(self.SECRET in (inputs or "") for inputs in lake.table("facts").collect()["inputs"])

    def test_the_lake_holds_nothing_of_it_any_more(self, gate: Gate, decided: str, home: Path) -> None:
        assert self.held(home)
        before = set(files(home, "facts"))
        printed(gate("erase", "--yes", "--decision", decided, "--reason", "asked for", "--json"))
        assert not self.held(home)
        # Not even a file that a reader might still have open by its name.
        assert set(files(home, "facts")) != before
        snapshots = open_lake(home / "lake").snapshots.values()
        named = {home / "lake" / file.path for snapshot in snapshots for file in snapshot.manifest.files}
        assert set(files(home, "facts")) <= named
        assert of(printed(gate("lake", "status", "--scope", "acme", "--json")))["behind"] == 0
        assert printed(gate("lake", "verify", "--against-ledger", "--json"))["whole"] is True

    def test_it_is_said_where_the_lake_may_still_hold_a_copy_and_the_command_again_takes_it_out(
        self, gate: Gate, decided: str, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked = ("erase", "--yes", "--decision", decided, "--reason", "asked for", "--json")
        with monkeypatch.context() as patched:
            patched.setattr(erase, "_LAKE_PATIENCE", 0.0)
            with lease(home / "lake", patience=0):
                done = gate(*asked)
        assert refusal(done) == "ERASURE_UNFINISHED"
        assert "`gate lake export`" in json.loads(done.stderr)["message"]
        assert self.held(home)
        assert printed(gate("log", "--limit", "1", "--json"))["entries"][0]["action"] == "decision.erased"
        assert refusal(gate(*asked), code=1) == "DECISION_ALREADY_ERASED"
        assert not self.held(home)

    def test_an_export_takes_it_out_as_well(
        self, gate: Gate, decided: str, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(erase, "_LAKE_PATIENCE", 0.0)
        with lease(home / "lake", patience=0):
            refusal(gate("erase", "--yes", "--decision", decided, "--reason", "asked for", "--json"))
        printed(gate("lake", "export", "--json"))
        assert not self.held(home)

    def test_without_a_lake_none_is_made(self, gate: Gate, chains: dict[str, Chain], home: Path) -> None:
        printed(gate("erase", "--yes", "--decision", chains["acme"].decided[0], "--reason", "asked for", "--json"))
        assert not os.path.lexists(home / "lake")


class TestBenchmarks:
    """The months that `gate lake export` freezes, and `gate lake verify` holds against the ledger."""

    def test_an_export_freezes_the_month_once_and_says_so(
        self, gate: Gate, chains: dict[str, Chain], home: Path
    ) -> None:
        assert printed(gate("lake", "status", "--json"), code=1)["benchmarks"] is None
        printed(gate("lake", "export", "--scope", "acme", "--json"))
        assert not (home / "lake" / "benchmarks").exists()
        month = month_due(utc_now())
        done = gate("lake", "export")
        assert done.stderr.endswith(f"Froze the benchmarks of {month}.\n")
        assert "Froze" not in gate("lake", "export").stderr
        assert printed(gate("lake", "status", "--json"))["benchmarks"] == month
        assert [file.name for file in (home / "lake" / "benchmarks").iterdir()] == [f"{month}.parquet"]

    def test_a_month_that_was_changed_is_named_and_made_anew(
        self, gate: Gate, chains: dict[str, Chain], home: Path
    ) -> None:
        printed(gate("lake", "export", "--json"))
        (file,) = (home / "lake" / "benchmarks").iterdir()
        whole = file.read_bytes()

        def told(*options: str, code: int = 0) -> dict[str, Any]:
            (month,) = printed(gate("lake", "verify", *options, "--json"), code=code)["benchmarks"]
            return dict(month)

        assert told("--against-ledger") == {"month": file.stem, "whole": True, "fault": None}
        assert "whole    benchmarks of" in gate("lake", "verify").stdout
        assert printed(gate("lake", "verify", "--scope", "acme", "--json"))["benchmarks"] == []
        with closing(open_instance(load_settings(home))) as instance:
            found = instance.ledger.directory.scope("acme")
            instance.ledger.benchmarks.choose(found, utc_now() - timedelta(days=70), opted_in=True)
        # The file alone does not tell that a choice came late.
        assert told()["whole"] is True
        fault = told("--against-ledger", code=1)["fault"]
        assert (str(file) in fault, "what the ledger gives" in fault) == (True, True)
        cut(file)
        assert str(file) in told(code=1)["fault"]
        shown = gate("lake", "verify")
        assert (shown.returncode, f"DAMAGED  benchmarks of {file.stem}" in shown.stdout) == (1, True)
        file.unlink()
        printed(gate("lake", "export", "--json"))
        assert told("--against-ledger")["whole"] is True
        assert file.read_bytes() != whole
