"""The `gate` command: every subcommand, for people and machines, with its exit code."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from copy import deepcopy
from pathlib import Path
from typing import Any, Final, NoReturn

import pytest
import typer
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from flask.testing import FlaskClient

from api.app import create_app
from api.cli import status
from api.cli.main import app
from gate import __version__
from gate.clock import utc_now
from gate.encoding import resources
from gate.instance.instance import Instance, open_instance
from gate.instance.settings import load_settings
from gate.ledger.packing import pack, unpack
from gate.ledger.stores.sqlite import SqliteLedgerStore
from gate.policy.peers import decided_in, earlier, month_of
from gate.records.packet import packet_hash
from gate.rulebooks.bundles import active_rulebooks, own_rulebooks
from gate.rulebooks.patterns import patterns
from tests.end_to_end.support import ROOT
from tests.support.command_line import run_gate
from tests.support.samples import (
    RECEIPT_KEYS,
    RECEIPT_SIGNER,
    copy_as_release,
    make_packet,
    make_record,
    sample_request,
)
from tests.support.tampering import Forger, as_doubles, with_value, without
from workbench.analytics import Analytics
from workbench.lake.entries import Personal

SAMPLE = str(resources.path("data", "rulebooks", "pricing_exception.json"))

Gate = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    """Runs `gate ...` against the home directory of this test."""

    def run(*arguments: str, home: bool = True, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return run_gate(*arguments, *(["--home", str(tmp_path / "home")] if home else []), stdin=stdin)

    return run


def printed(done: subprocess.CompletedProcess[str], code: int = 0) -> Any:
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


def refused(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.returncode == 2, done.stdout
    return json.loads(done.stderr)


def _rehashed(packet: dict[str, Any]) -> dict[str, Any]:
    return {**packet, "packet_hash": packet_hash(packet)}


@pytest.fixture(scope="module")
def acme_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home directory of an instance with the scope acme."""
    home = tmp_path_factory.mktemp("acme") / "home"
    run_gate("scopes", "create", "acme", "--home", str(home))
    return home


@pytest.fixture
def acme(acme_once: Path, tmp_path: Path) -> Path:
    """The home directory of this test, an instance with the scope acme."""
    return Path(shutil.copytree(acme_once, tmp_path / "home"))


@pytest.fixture
def made(made_once: tuple[Path, dict[str, Any]], tmp_path: Path) -> dict[str, Any]:
    """A scope with a key, made by the command line, and three decisions in it."""
    shutil.copytree(made_once[0], tmp_path / "home")
    return deepcopy(made_once[1])


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The home directory in which they are, and what was printed and answered."""
    home = tmp_path_factory.mktemp("made") / "home"
    arguments = ("keys", "create", "--scope", "acme", "--plan", "unlimited", "--json", "--home", str(home))
    made: dict[str, Any] = printed(run_gate(*arguments))
    with closing(open_instance(load_settings(home))) as instance:
        client = create_app(instance).test_client()
        made["records"] = [
            client.post("/api/decide", json=sample_request(), headers={"x-api-key": made["key"]}).get_json()
            for _ in range(3)
        ]
    return home, made


@pytest.mark.heavy
def test_the_installed_command_names_every_subcommand_and_the_exit_codes(tmp_path: Path) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        installed = str(Path(sys.executable).with_name("gate"))
        return subprocess.run([installed, *arguments], capture_output=True, text=True, timeout=60, check=False)

    done = run("--help")
    assert done.returncode == 0
    commands = ("serve", "status", "scopes", "keys", "users", "signing-keys", "rulebook", "verify", "verify-packet")
    for name in (*commands, "chain", "lake", "erase", "log", "backup", "restore", "db", "Exit codes"):
        assert name in done.stdout
    assert run_gate("nonsense").returncode == 2
    failed = run("status", "--home", str(tmp_path), "--json")
    assert (failed.returncode, failed.stdout, json.loads(failed.stderr)["error"]) == (2, "", "INSTANCE_MISSING")


def test_the_version_is_printed(gate: Gate) -> None:
    done = gate("--version", home=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"gate {__version__}\n", "")


@pytest.mark.heavy
def test_the_list_of_commands_loads_none_of_them(tmp_path: Path) -> None:
    script = (
        "import sys; sys.argv = ['gate', '--help']\nfrom api.cli.main import main\n"
        "try: main()\nfinally: print([name for name in ('flask', 'httpx', 'polars', 'pydantic', 'sqlalchemy', "
        "'gate.ledger', 'api.cli.keys') if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert (done.stderr, "signing-keys" in done.stdout) == ("[]\n", True)


@pytest.mark.parametrize("command", ["keys list", "scopes list", "signing-keys list", "status", "log", "lake status"])
def test_a_table_of_usual_names_fits_a_hundred_columns(gate: Gate, made: dict[str, Any], command: str) -> None:
    gate("scopes", "create", "a-customer-with-a-long-name.of-the-north-region", "--plan", "unlimited")
    gate(
        "keys",
        "create",
        "--scope",
        "a-customer-with-a-long-name.of-the-north-region",
        "--expires",
        "2999-01-01T00:00:00Z",
    )
    told = gate(*command.split()).stdout
    assert "acme" in told or command == "signing-keys list"
    home = [line for line in told.splitlines() if len(line.rstrip()) > 100]
    # The first line of the status names the ledger's file, wherever that is.
    assert [line for line in home if not line.startswith("ready: ")] == []


@pytest.mark.parametrize(
    "command",
    [
        ["serve"],
        ["status"],
        ["scopes", "create"],
        ["scopes", "list"],
        ["scopes", "show"],
        ["scopes", "plan"],
        ["scopes", "benchmarks", "opt-in"],
        ["scopes", "benchmarks", "opt-out"],
        ["keys", "create"],
        ["keys", "list"],
        ["keys", "disable"],
        ["keys", "rotate"],
        ["users", "add"],
        ["users", "list"],
        ["users", "grant"],
        ["users", "revoke"],
        ["users", "disable"],
        ["users", "enable"],
        ["users", "password"],
        ["users", "sign-in"],
        ["users", "sign-out"],
        ["signing-keys", "list"],
        ["signing-keys", "rotate"],
        ["signing-keys", "retire"],
        ["signing-keys", "compromise"],
        ["rulebook", "check"],
        ["rulebook", "hash"],
        ["rulebook", "explain"],
        ["rulebook", "list"],
        ["rulebook", "show"],
        ["migrate", "new"],
        ["migrate", "check"],
        ["whatif"],
        ["verify"],
        ["chain", "check"],
        ["chain", "checkpoint"],
        ["erase"],
        ["log"],
        ["backup"],
        ["restore"],
        ["db", "upgrade"],
    ],
    ids=" ".join,
)
def test_every_subcommand_takes_the_common_options(gate: Gate, command: list[str]) -> None:
    done = gate(*command, "-h", home=False)
    assert done.returncode == 0
    assert done.stdout == gate(*command, "--help", home=False).stdout
    for option in ("--home", "--database-url", "--json"):
        assert option in done.stdout


_NO_ATTESTATION_KEYS: Final = "no attestation keys given: --registry with the address of the service has them"


class TestScopesAndKeys:
    """gate scopes, gate keys."""

    def test_a_first_command_creates_the_instance_and_says_so(self, gate: Gate, tmp_path: Path) -> None:
        done = gate("scopes", "create", "acme", "--plan", "team", "--json")
        assert "Created a new instance" in done.stderr
        shown = printed(done)
        assert (shown["scope"], shown["plan"], shown["chain_size"]) == ("acme", "team", 0)
        assert (tmp_path / "home" / "settings.toml").is_file()
        assert printed(gate("scopes", "list", "--json")) == {"scopes": [shown]}
        assert printed(gate("scopes", "show", "acme", "--json")) == shown

    def test_a_command_that_reads_creates_nothing(self, gate: Gate, tmp_path: Path) -> None:
        reading = ["scopes list", "keys list", "status", "chain check", "signing-keys list", "log", "db upgrade"]
        for command in (*reading, f"backup {tmp_path / 'backup.db'}"):
            done = gate(*command.split())
            assert done.returncode == 2
            assert "There is no instance in" in done.stderr
        assert list(tmp_path.iterdir()) == []

    def test_a_plan_and_its_cap_are_set_and_shown_with_what_is_used(self, gate: Gate, made: dict[str, Any]) -> None:
        created = printed(gate("scopes", "create", "small", "--monthly-cap", "7", "--json"))
        assert created.keys() == {
            "scope",
            "scope_id",
            "plan",
            "monthly_cap",
            "used_this_month",
            "chain_id",
            "chain_size",
            "created_at",
            "benchmarks",
        }
        assert (created["plan"], created["monthly_cap"], created["used_this_month"]) == ("starter", 7, 0)
        assert printed(gate("scopes", "plan", "small", "team", "--json"))["monthly_cap"] == 1_000_000
        told = gate("scopes", "plan", "small", "team", "--monthly-cap", "5").stdout
        assert "5 records a month" in told
        assert "no monthly cap" in gate("scopes", "plan", "acme", "unlimited").stdout
        acme, small = printed(gate("scopes", "list", "--json"))["scopes"]
        assert (acme["monthly_cap"], acme["used_this_month"], acme["chain_size"]) == (None, None, 3)
        assert (small["plan"], small["monthly_cap"], small["used_this_month"]) == ("team", 5, 0)
        heading, _, row = gate("scopes", "list").stdout.splitlines()
        assert re.split(r"  +", heading.strip()) == [
            "scope",
            "id in logs",
            "plan",
            "monthly cap",
            "used",
            "entries",
            "benchmarks",
        ]
        assert row.split()[:5] == ["small", small["scope_id"], "team", "5", "0"]

    def test_a_scope_takes_part_in_benchmarks_from_the_next_month_on(self, gate: Gate, acme: Path) -> None:
        now = utc_now()
        month = earlier(month_of(now), -1)

        def shown() -> str:
            (listed,) = printed(gate("scopes", "list", "--json"))["scopes"]
            assert printed(gate("scopes", "show", "acme", "--json")) == listed
            assert listed["benchmarks"] in gate("scopes", "show", "acme").stdout
            return str(listed["benchmarks"])

        assert shown() == "opted_out"
        told = printed(gate("scopes", "benchmarks", "opt-in", "acme", "--json"))
        assert (told["benchmarks"], told["changed"], told["from_month"]) == ("opted_in", True, month)
        assert shown() == "opted_in"
        again = gate("scopes", "benchmarks", "opt-in", "acme")
        assert (again.returncode, again.stdout) == (
            0,
            "The scope acme is already opted in to benchmarks; nothing changed.\n",
        )
        out = gate("scopes", "benchmarks", "opt-out", "acme").stdout
        assert out.startswith(f"The scope acme takes no part in benchmarks from {month} on.")
        told = printed(gate("scopes", "benchmarks", "opt-out", "acme", "--json"))
        assert (told["benchmarks"], told["changed"], told["from_month"]) == ("opted_out", False, None)
        said = gate("scopes", "benchmarks", "opt-in", "acme").stdout
        assert f"from {month} on. The benchmarks of {month} cover the decisions of {decided_in(month)}." in said
        actions = [entry["action"] for entry in printed(gate("log", "--json"))["entries"]]
        assert actions == [
            "scope.created",
            "scope.benchmarks_opted_in",
            "scope.benchmarks_opted_out",
            "scope.benchmarks_opted_in",
        ]

    def test_a_key_is_created_with_its_scope_and_plan(self, gate: Gate) -> None:
        made = printed(gate("keys", "create", "--scope", "acme", "--plan", "team", "--json"))
        assert made.keys() == {"key", "key_id", "scope", "plan"}
        assert (made["scope"], made["plan"]) == ("acme", "team")
        changed = printed(gate("keys", "create", "--scope", "acme", "--plan", "unlimited", "--json"))
        assert changed["plan"] == "unlimited"
        kept = printed(gate("keys", "create", "--scope", "acme", "--json"))
        assert kept["plan"] == "unlimited"

    def test_a_key_has_its_access_and_expiry_and_is_shown_once(self, gate: Gate) -> None:
        options = ["--access", "decide", "--access", "read", "--expires", "2999-01-31T00:00:00Z"]
        made = printed(gate("keys", "create", "--scope", "acme", *options, "--json"))
        (listed,) = printed(gate("keys", "list", "--scope", "acme", "--json"))["keys"]
        assert listed == {
            "key_id": made["key_id"],
            "scope": "acme",
            "status": "active",
            "access": ["decide", "read"],
            "created_at": listed["created_at"],
            "expires_at": "2999-01-31T00:00:00.000Z",
            "last_used_at": None,
        }
        for command in (["keys", "list"], ["keys", "list", "--json"], ["scopes", "list"], ["status"]):
            done = gate(*command)
            assert made["key"] not in done.stdout + done.stderr

    def test_a_day_ends_a_key_at_its_beginning_as_it_ends_a_user(self, gate: Gate) -> None:
        gate("keys", "create", "--scope", "acme", "--expires", "2999-01-31")
        (listed,) = printed(gate("keys", "list", "--scope", "acme", "--json"))["keys"]
        assert listed["expires_at"] == "2999-01-31T00:00:00.000Z"

    def test_keys_are_disabled_and_rotated(self, gate: Gate) -> None:
        first = printed(gate("keys", "create", "--scope", "acme", "--json"))
        rotated = printed(gate("keys", "rotate", first["key_id"], "--yes", "--json"))
        assert rotated["key"] != first["key"]
        assert printed(gate("keys", "disable", rotated["key_id"], "--yes", "--json"))["status"] == "disabled"
        statuses = {key["key_id"]: key["status"] for key in printed(gate("keys", "list", "--json"))["keys"]}
        assert statuses == {first["key_id"]: "disabled", rotated["key_id"]: "disabled"}

    def test_a_rotation_says_when_the_old_key_ends(self, gate: Gate) -> None:
        first = printed(gate("keys", "create", "--scope", "acme", "--json"))["key_id"]
        later = printed(gate("keys", "rotate", first, "--overlap-hours", "24", "--json"))
        (ends_at,) = [
            key["expires_at"] for key in printed(gate("keys", "list", "--json"))["keys"] if key["key_id"] == first
        ]
        assert later["replaces"] == {"key_id": first, "ends_at": ends_at}
        told = gate("keys", "rotate", later["key_id"], "--overlap-hours", "1").stderr
        assert f"The old key {later['key_id']} keeps working until 20" in told
        third = printed(gate("keys", "create", "--scope", "acme", "--json"))["key_id"]
        assert f"The old key {third} is disabled" in gate("keys", "rotate", third, "--yes").stderr

    @pytest.mark.parametrize("command", [("keys", "disable"), ("keys", "rotate"), ("signing-keys", "compromise")])
    def test_what_cannot_be_undone_needs_yes_where_there_is_no_terminal(
        self, gate: Gate, acme: Path, command: tuple[str, str]
    ) -> None:
        key_id = printed(gate("keys", "create", "--scope", "acme", "--json"))["key_id"]
        if command[0] == "signing-keys":
            key_id = printed(gate("signing-keys", "list", "--json"))["receipt"]["active_key_id"]
        before = (gate("keys", "list").stdout, gate("signing-keys", "list").stdout, gate("log").stdout)
        answer = refused(gate(*command, key_id, "--json"))
        assert (answer["error"], "--yes" in answer["message"]) == ("CONFIRMATION_REQUIRED", True)
        assert printed(gate(*command, key_id, "--dry-run", "--json"))["dry_run"] is True
        assert "Nothing was changed" in gate(*command, key_id, "--dry-run").stdout
        assert (gate("keys", "list").stdout, gate("signing-keys", "list").stdout, gate("log").stdout) == before
        assert gate(*command, key_id, "--yes").returncode == 0
        assert gate("log").stdout != before[2]

    @pytest.mark.parametrize(("answer", "code", "status"), [("n", 2, "active"), ("y", 0, "disabled")])
    def test_a_terminal_is_asked_before_a_key_is_disabled(
        self, gate: Gate, tmp_path: Path, answer: str, code: int, status: str
    ) -> None:
        key_id = printed(gate("keys", "create", "--scope", "acme", "--json"))["key_id"]
        controlling, terminal = os.openpty()
        command = ["gate", "keys", "disable", key_id, "--home", str(tmp_path / "home")]
        script = f"import sys; sys.argv = {command!r}; from api.cli.main import main; main()"
        with subprocess.Popen(
            [sys.executable, "-c", script], stdin=terminal, stderr=terminal, stdout=terminal
        ) as asking:
            os.close(terminal)
            os.write(controlling, f"{answer}\n".encode())
            assert asking.wait(60) == code
        assert b"cannot be undone. Continue?" in os.read(controlling, 4096)
        os.close(controlling)
        assert printed(gate("keys", "list", "--json"))["keys"][0]["status"] == status

    @pytest.mark.parametrize(
        ("command", "code"),
        [
            (["scopes", "show", "nobody"], "SCOPE_UNKNOWN"),
            (["scopes", "create", "x", "--plan", "gold"], "PLAN_UNKNOWN"),
            (["scopes", "create", "x", "--plan", "unlimited", "--monthly-cap", "5"], "CAP_INVALID"),
            (["scopes", "plan", "nobody", "team"], "SCOPE_UNKNOWN"),
            (["scopes", "benchmarks", "opt-in", "nobody"], "SCOPE_UNKNOWN"),
            (["scopes", "benchmarks", "opt-out", "nobody"], "SCOPE_UNKNOWN"),
            (["scopes", "plan", "acme", "gold"], "PLAN_UNKNOWN"),
            (["keys", "create", "--scope", "x", "--plan", "gold"], "PLAN_UNKNOWN"),
            (["keys", "create", "--scope", "x", "--access", "root"], "ACCESS_UNKNOWN"),
            (["keys", "create", "--scope", "x", "--expires", "tomorrow"], "DATE_INVALID"),
            (["keys", "create", "--scope", "x", "--expires", "2999-02-30"], "DATE_INVALID"),
            (["keys", "create", "--scope", "x", "--expires", "2001-01-01T00:00:00Z"], "KEY_EXPIRY_PAST"),
            (["keys", "disable", "0123"], "KEY_UNKNOWN"),
            (["keys", "list", "--scope", "nobody"], "SCOPE_UNKNOWN"),
            (["signing-keys", "rotate", "--purpose", "x"], "PURPOSE_UNKNOWN"),
            (["signing-keys", "retire", "x"], "SIGNING_KEY_UNKNOWN"),
            (["backup", "/nowhere/backup.db"], "BACKUP_UNWRITABLE"),
            (["backup", __file__], "BACKUP_EXISTS"),
            (["restore", __file__], "INSTANCE_EXISTS"),
        ],
    )
    def test_what_cannot_be_done_exits_with_2_and_says_why(
        self, gate: Gate, acme: Path, command: list[str], code: str
    ) -> None:
        for extra in ([], ["--json"]):
            done = gate(*command, *extra)
            assert (done.returncode, done.stdout) == (2, "")
            assert code in done.stderr
            assert "Traceback" not in done.stderr
        assert json.loads(done.stderr)["error"] == code


class TestStatus:
    """gate status."""

    def test_a_ready_instance(self, gate: Gate, made: dict[str, Any]) -> None:
        shown = printed(gate("status", "--json"))
        assert shown["ok"] is True
        assert shown["scopes"][0]["chain_size"] == 3
        assert "ready" in gate("status").stdout

    def test_it_tells_what_the_ledger_takes_and_how_fast_it_grows(
        self, gate: Gate, made: dict[str, Any], tmp_path: Path
    ) -> None:
        storage = printed(gate("status", "--json"))["storage"]
        assert storage["location"] == str(tmp_path / "home" / "ledger.db")
        assert (storage["entries"], storage["entries_last_day"]) == (3, 3)
        assert storage["bytes"] >= storage["growth_bytes_per_day"] > 0
        assert storage["days_left"] == storage["disk_left_bytes"] // storage["growth_bytes_per_day"]
        assert "3 entries in" in gate("status").stdout

    @pytest.mark.parametrize(
        ("days", "said"),
        [(1, "full in 1 day."), (1095, "full in 1095 days."), (1096, None), (448_723, None), (None, None)],
    )
    def test_it_says_how_long_the_disk_lasts_only_where_that_can_be_foreseen(
        self, gate: Gate, made: dict[str, Any], monkeypatch: pytest.MonkeyPatch, days: int | None, said: str | None
    ) -> None:
        storage = status._storage

        def growing(*arguments: Any) -> status.Storage:
            return {**storage(*arguments), "days_left": days}

        monkeypatch.setattr(status, "_storage", growing)
        told = gate("status").stdout
        assert ("At this rate" in told) is (said is not None)
        assert said is None or said in told

    def test_an_empty_ledger_grows_by_nothing(self, gate: Gate, acme: Path) -> None:
        storage = printed(gate("status", "--json"))["storage"]
        assert (storage["entries"], storage["growth_bytes_per_day"], storage["days_left"]) == (0, 0, None)
        assert "At this rate" not in gate("status").stdout

    def test_a_degraded_instance_exits_with_1(self, gate: Gate, made: dict[str, Any], tmp_path: Path) -> None:
        (tmp_path / "home" / "keys" / "receipt.json").unlink()
        assert printed(gate("status", "--json"), code=1)["signing"]["ready"] is False
        assert "degraded" in gate("status").stdout


class TestSigningKeys:
    """gate signing-keys."""

    def test_keys_are_listed_rotated_retired_and_compromised(self, gate: Gate, acme: Path) -> None:
        first = printed(gate("signing-keys", "list", "--json"))
        assert first.keys() == {"receipt", "registry"}
        old = first["receipt"]["active_key_id"]
        new = printed(gate("signing-keys", "rotate", "--json"))
        assert (new["status"], new["key_id"] != old) == ("active", True)
        retired = printed(gate("signing-keys", "retire", old, "--not-after", "2999-01-01T00:00:00Z", "--json"))
        assert (retired["status"], retired["not_after"]) == ("retired", "2999-01-01T00:00:00.000Z")
        compromised = printed(
            gate("signing-keys", "compromise", old, "--yes", "--at", "2026-01-01T00:00:00Z", "--json")
        )
        assert (compromised["status"], compromised["not_after"]) == ("compromised", "2026-01-01T00:00:00.000Z")
        listed = printed(gate("signing-keys", "list", "--json"))
        assert listed["registry"] == first["registry"]
        assert listed["receipt"]["active_key_id"] == new["key_id"]
        assert old in gate("signing-keys", "list").stdout

    def test_a_key_that_signs_nothing_under_hmac_is_not_listed_as_active(
        self, gate: Gate, acme: Path, tmp_path: Path
    ) -> None:
        secret = tmp_path / "secret"
        secret.write_text("a secret of at least 32 bytes, yes")
        (tmp_path / "home" / "settings.toml").write_text(
            f'receipt_signing = "hmac-sha256"\nreceipt_hmac_secret_file = "{secret}"\n'
        )
        listed = printed(gate("signing-keys", "list", "--json"))
        assert ([key["status"] for key in listed["receipt"]["keys"]], listed["receipt"]["active_key_id"]) == (
            ["retired"],
            None,
        )
        assert listed["registry"]["active_key_id"] == listed["registry"]["keys"][0]["key_id"]
        shown = gate("signing-keys", "list").stdout
        assert "The setting receipt_signing is hmac-sha256, so no receipt key signs." in shown

    def test_the_registry_purpose_has_keys_of_its_own(self, gate: Gate, acme: Path) -> None:
        first = printed(gate("signing-keys", "list", "--json"))
        printed(gate("signing-keys", "rotate", "--purpose", "registry", "--json"))
        listed = printed(gate("signing-keys", "list", "--json"))
        assert listed["receipt"] == first["receipt"]
        assert len(listed["registry"]["keys"]) == 2


class TestErase:
    """gate erase."""

    def test_a_decision_is_erased_once_and_says_so(self, gate: Gate, made: dict[str, Any], tmp_path: Path) -> None:
        decision_id = made["records"][1]["decision_id"]
        asked = ("erase", "--yes", "--decision", decision_id, "--reason", "asked for")
        erased = printed(gate(*asked, "--json"))
        assert (erased["scope"], erased["decision_id"], erased["erased"]) == (
            "acme",
            decision_id,
            ["evaluation", "input"],
        )
        again = gate(*asked)
        assert (again.returncode, again.stdout, "DECISION_ALREADY_ERASED" in again.stderr) == (1, "", True)
        (logged,) = printed(gate("log", "--limit", "1", "--json"))["entries"]
        assert (logged["action"], logged["subject"]) == ("decision.erased", decision_id)
        assert "entries" in gate("chain", "check").stdout
        with closing(open_instance(load_settings(tmp_path / "home"))) as instance:
            left = (
                create_app(instance)
                .test_client()
                .get(f"/api/decision/{decision_id}", headers={"x-api-key": made["key"]})
            )
        (tmp_path / "left.json").write_bytes(left.data)
        shown = gate("verify", str(tmp_path / "left.json"))
        assert (shown.returncode, "MATERIAL_ERASED" in shown.stdout) == (0, True), shown.stdout

    def test_a_person_is_told_what_was_erased(self, gate: Gate, made: dict[str, Any]) -> None:
        done = gate("erase", "--yes", "--decision", made["records"][0]["decision_id"], "--reason", "asked for")
        assert (done.returncode, "evaluation, input" in done.stdout, "backups" in done.stdout) == (0, True, True)

    def test_a_dry_run_names_the_parts_and_erases_nothing(self, gate: Gate, made: dict[str, Any]) -> None:
        decision_id = made["records"][0]["decision_id"]
        asked = ("erase", "--decision", decision_id, "--reason", "asked for", "--dry-run")
        assert printed(gate(*asked, "--json"))["erased"] == ["evaluation", "input"]
        assert "Would erase evaluation, input" in gate(*asked).stdout
        assert refused(gate(*asked[:-1], "--json"))["error"] == "CONFIRMATION_REQUIRED"
        assert printed(gate("chain", "check", "--json"))["chains"][0]["entries_checked"] == 3
        assert printed(gate(*asked[:-1], "--yes", "--json"))["erased"] == ["evaluation", "input"]
        assert printed(gate(*asked, "--json"))["erased"] == []

    @pytest.mark.parametrize(
        ("decision", "reason", "exit_with", "code"),
        [
            ("dec_unknown", "asked for", 1, "DECISION_NOT_FOUND"),
            ("dec_unknown", " ", 2, "ERASURE_REASON_INVALID"),
            ("dec_unknown", "x" * 501, 2, "ERASURE_REASON_INVALID"),
        ],
    )
    def test_what_is_not_erased_says_why(
        self, gate: Gate, made: dict[str, Any], decision: str, reason: str, exit_with: int, code: str
    ) -> None:
        done = gate("erase", "--decision", decision, "--reason", reason, "--json")
        assert (done.returncode, done.stdout, json.loads(done.stderr)["error"]) == (exit_with, "", code)

    def test_both_options_are_needed(self, gate: Gate, made: dict[str, Any]) -> None:
        for asked in (("--decision", "dec_1"), ("--reason", "asked for")):
            done = gate("erase", *asked, "--json")
            assert (done.returncode, json.loads(done.stderr)["error"]) == (2, "USAGE_INVALID")


class TestVerify:
    """gate verify."""

    @pytest.fixture
    def files(self, made: dict[str, Any], tmp_path: Path) -> dict[str, str]:
        """The record, its request and the registry, as an auditor would keep them."""
        home = tmp_path / "home"
        registry = json.loads((home / "keys" / "receipt.json").read_text())
        texts = {
            "record": json.dumps(made["records"][0]),
            "wrapped": json.dumps({"record": made["records"][0]}),
            "doubles": json.dumps(as_doubles(made["records"][0])),
            "tampered": json.dumps(made["records"][0] | {"action": "approve_everything"}),
            "foreign": json.dumps(make_record()),
            "request": json.dumps(sample_request()),
            "other_request": json.dumps(sample_request(discount_percent=1, margin_percent=90)),
            "registry": json.dumps(registry),
            "pem": registry["keys"][0]["public_key"],
        }
        for name, text in texts.items():
            (tmp_path / name).write_text(text)
        return {name: str(tmp_path / name) for name in texts}

    def test_a_record_verifies_against_a_registry_a_key_and_the_instance(
        self, gate: Gate, files: dict[str, str]
    ) -> None:
        for source, trust in {
            "registry": ["--registry", files["registry"]],
            "public_key": ["--public-key", files["pem"]],
        }.items():
            shown = printed(gate("verify", files["record"], *trust, "--json", home=False))
            assert (shown["verified"], shown["key_source"]) == (True, source)
        assert printed(gate("verify", files["record"], "--json"))["checks"]["attestation_signature"] is True
        for same in ("wrapped", "doubles"):
            done = gate("verify", files[same], "--registry", files["registry"], home=False)
            assert (done.returncode, "verified" in done.stdout) == (0, True)

    def test_its_signature_verifies_under_a_second_implementation(
        self, made: dict[str, Any], files: dict[str, str]
    ) -> None:
        from base64 import urlsafe_b64decode

        from rfc8785 import dumps

        record = made["records"][0]
        key = load_pem_public_key(Path(files["pem"]).read_bytes())
        assert isinstance(key, Ed25519PublicKey)
        payload = {name: record[name] for name in ("decision_id", "receipt_hash", "record_hash")}
        signature = urlsafe_b64decode(record["receipt_signature"].removeprefix("ed25519:") + "==")
        key.verify(signature, dumps(payload | {"key_id": record["receipt_key_id"]}))

    @pytest.mark.parametrize(
        ("record", "options", "error"),
        [
            ("tampered", ["--registry", "registry"], "RECORD_INTEGRITY_FAILED"),
            ("foreign", ["--registry", "registry"], "SIGNING_KEY_UNKNOWN"),
            ("record", [], "SIGNING_KEY_UNKNOWN"),
            ("record", ["--registry", "registry", "--input", "other_request"], "INPUT_MISMATCH"),
            ("request", ["--registry", "registry"], "RECORD_INCOMPLETE"),
        ],
    )
    def test_what_does_not_verify_exits_with_1(
        self, gate: Gate, files: dict[str, str], record: str, options: list[str], error: str
    ) -> None:
        arguments = [files.get(option, option) for option in options]
        shown = printed(gate("verify", files[record], *arguments, "--json", home=False), code=1)
        assert (shown["verified"], shown["error"]) == (False, error)
        assert "NOT VERIFIED" in gate("verify", files[record], *arguments, home=False).stdout

    def test_the_original_request_is_checked(self, gate: Gate, files: dict[str, str]) -> None:
        options = ["--registry", files["registry"], "--input", files["request"], "--json"]
        assert printed(gate("verify", files["record"], *options, home=False))["checks"]["input_hash"] is True

    def test_what_differs_is_shown_to_people(self, gate: Gate, files: dict[str, str]) -> None:
        told = gate("verify", files["tampered"], "--registry", files["registry"], home=False).stdout
        assert 'rulebook_attestation.outcome.action: the record says "approve_discount"' in told

    @pytest.mark.parametrize(
        ("record", "options"),
        [
            ("/nowhere.json", []),
            ("pem", []),
            ("record", ["--registry", "pem"]),
            ("record", ["--registry", "request"]),
            ("record", ["--registry", "http://127.0.0.1:1"]),
            ("record", ["--public-key", "request"]),
            ("record", ["--public-key", "pem", "--registry", "registry"]),
            ("record", ["--hmac-secret-file", "/nowhere"]),
            ("record", ["--input", "/nowhere"]),
        ],
    )
    def test_unusable_material_exits_with_2(
        self, gate: Gate, files: dict[str, str], record: str, options: list[str]
    ) -> None:
        arguments = [files.get(name, name) for name in (record, *options)]
        done = gate("verify", *arguments, home=False)
        assert (done.returncode, done.stdout) == (2, "")
        assert "Traceback" not in done.stderr

    def test_an_hmac_record_verifies_with_its_secret(self, gate: Gate, tmp_path: Path) -> None:
        secret = tmp_path / "secret"
        secret.write_text("a secret of at least 32 bytes, yes")
        key = printed(gate("keys", "create", "--scope", "acme", "--json"))["key"]
        (tmp_path / "home" / "settings.toml").write_text(
            f'receipt_signing = "hmac-sha256"\nreceipt_hmac_secret_file = "{secret}"\n'
        )
        client = create_app(load_settings(tmp_path / "home")).test_client()
        record = client.post("/api/decide", json=sample_request(), headers={"x-api-key": key}).data.decode()
        shown = printed(gate("verify", "-", "--hmac-secret-file", str(secret), "--json", home=False, stdin=record))
        assert (shown["verified"], shown["key_source"]) == (True, "hmac_secret")
        secret.write_text("another secret of at least 32 bytes")
        done = gate("verify", "-", "--hmac-secret-file", str(secret), home=False, stdin=record)
        assert done.returncode == 1


class TestVerifyPacket:
    """gate verify-packet."""

    @pytest.fixture
    def files(self, exported: tuple[Path, list[str]], tmp_path: Path) -> dict[str, str]:
        """The documents of `exported`, and the home directory beside them."""
        directory, names = exported
        shutil.copytree(directory, tmp_path, dirs_exist_ok=True)
        return {name: str(tmp_path / name) for name in names}

    @pytest.fixture(scope="class")
    @classmethod
    def exported(
        cls, made_once: tuple[Path, dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
    ) -> tuple[Path, list[str]]:
        """A directory with an instance, packets of it and what else is verified with them; and what they are called."""
        made, directory = made_once[1], tmp_path_factory.mktemp("exported")
        shutil.copytree(made_once[0], directory / "home")
        headers = {"x-api-key": made["key"]}
        with closing(open_instance(load_settings(directory / "home"))) as instance:
            analytics = Analytics(instance.ledger, instance.settings.lake_directory, Personal(), instance.migrations())
            client = create_app(instance, analytics=analytics).test_client()
            path = made["records"][0]["decision_url"]
            for body in ({"outcome_status": "pending"}, {"outcome_status": "succeeded"}):
                assert client.post(f"{path}/outcome", json=body, headers=headers).status_code == 201
            packet = client.get(f"{path}/packet?include_input=true&chain_limit=1000", headers=headers).get_json()
            few_links = client.get(f"{path}/packet?chain_limit=4", headers=headers).get_json()
            registry = client.get("/api/decision/receipt-keys").get_json()
            chain_url = packet["audit_chain"]["verification_hints"]["chain_url"]
            checkpoint = client.get(f"{chain_url}/checkpoint", headers=headers).get_json()
        tampered = with_value(packet, ("outcome_records", 0, "outcome_status"), "failed")
        documents = {
            "packet": packet,
            "wrapped": {"packet": packet},
            "tampered": tampered,
            "dropped": without(packet, ("outcome_records", 0)),
            "foreign": make_packet(),
            "request": sample_request(),
            "other_request": sample_request(discount_percent=1, margin_percent=90),
            "registry": registry,
            "checkpoint": checkpoint,
            "doubles": as_doubles(packet),
            "double_checkpoint": as_doubles(checkpoint),
            "few_links": few_links,
            "other_checkpoint": {**checkpoint, "merkle_root": "0" * 64},
            "early_checkpoint": {**checkpoint, "chain_size": 0},
            "foreign_checkpoint": {**checkpoint, "chain_id": "chain_other"},
            "record": packet["decision_record"],
            "kept_inside": {"packet": packet, "checkpoint": checkpoint},
            "wrapped_record": {"record": packet["decision_record"]},
            "answer": {"error": "SVC_DECISION_NOT_FOUND", "message": "There are no such decisions.", "v": "not_found"},
            "carrier": {**tampered, "packet": packet},
            "record_carrier": {**packet["decision_record"], "verdict": "no", "record": packet["decision_record"]},
            "embellished": _rehashed(with_value(packet, ("outcome_records", 0, "note"), "hello")),
        }
        for name, document in documents.items():
            (directory / name).write_text(json.dumps(document))
        (directory / "pem").write_text(registry["keys"][0]["public_key"])
        return directory, [*documents, "pem"]

    def test_a_packet_verifies_against_a_registry_a_key_and_the_instance(
        self, gate: Gate, files: dict[str, str]
    ) -> None:
        for source, trust in {
            "registry": ["--registry", files["registry"]],
            "public_key": ["--public-key", files["pem"]],
        }.items():
            shown = printed(gate("verify-packet", files["packet"], *trust, "--json", home=False))
            assert (shown["verified"], shown["key_source"]) == (True, source)
        assert printed(gate("verify-packet", files["packet"], "--json"))["checks"]["record.attestation_signature"]
        wrapped = gate("verify-packet", files["wrapped"], "--registry", files["registry"], home=False)
        assert wrapped.returncode == 0
        steps = re.findall(r"step (\d), (\w+): (.*)", wrapped.stdout)
        assert [(number, holds) for number, _, holds in steps] == [(str(n), "holds") for n in range(1, 5)]

    @pytest.mark.parametrize(
        ("packet", "options", "error", "failing"),
        [
            ("tampered", ["--registry", "registry"], "PACKET_INTEGRITY_FAILED", "outcome_records[0].outcome_hash"),
            ("dropped", ["--registry", "registry"], "PACKET_INTEGRITY_FAILED", "outcome_records.complete"),
            ("foreign", ["--registry", "registry"], "SIGNING_KEY_UNKNOWN", "record.receipt_key"),
            ("packet", [], "SIGNING_KEY_UNKNOWN", "record.receipt_key"),
            (
                "packet",
                ["--registry", "registry", "--input", "other_request"],
                "INPUT_MISMATCH",
                "record.input_hash",
            ),
            (
                "packet",
                ["--registry", "registry", "--checkpoint", "early_checkpoint"],
                "CHECKPOINT_NOT_COMPARABLE",
                "checkpoint.chain",
            ),
            (
                "packet",
                ["--registry", "registry", "--checkpoint", "foreign_checkpoint"],
                "CHECKPOINT_FOREIGN",
                "checkpoint.chain_id",
            ),
            (
                "packet",
                ["--registry", "registry", "--checkpoint", "other_checkpoint"],
                "PACKET_SIGNATURE_INVALID",
                "checkpoint.signature",
            ),
            ("request", ["--registry", "registry"], "PACKET_INCOMPLETE", "members"),
        ],
    )
    def test_what_does_not_verify_exits_with_1_and_names_step_and_place(
        self, gate: Gate, files: dict[str, str], packet: str, options: list[str], error: str, failing: str
    ) -> None:
        arguments = [files.get(option, option) for option in options]
        shown = printed(gate("verify-packet", files[packet], *arguments, "--json", home=False), code=1)
        assert (shown["verified"], shown["error"], shown["checks"][failing]) == (False, error, False)
        told = gate("verify-packet", files[packet], *arguments, home=False).stdout
        assert f"({error})" in told
        assert re.search(rf"step \d, \w+: FAILS: .*{re.escape(failing)}", told)

    def test_what_differs_is_shown_to_people(self, gate: Gate, files: dict[str, str]) -> None:
        told = gate("verify-packet", files["tampered"], "--registry", files["registry"], home=False).stdout
        assert 'outcome_records[0].outcome_hash: the packet says "' in told

    def test_reports_for_which_only_their_own_hash_speaks_are_told(self, gate: Gate, files: dict[str, str]) -> None:
        whole = gate("verify-packet", files["packet"], "--registry", files["registry"], home=False)
        assert "its link is not in the packet" not in whole.stdout
        few = gate("verify-packet", files["few_links"], "--registry", files["registry"], home=False)
        assert few.returncode == 0
        told = [line for line in few.stdout.splitlines() if line.startswith("  outcome_records[")]
        assert told == ["  outcome_records[0]: its link is not in the packet; only its own hash protects it"]

    def test_a_receipt_without_the_flag_of_another_action_is_told(self, gate: Gate, tmp_path: Path) -> None:
        """As receipts of earlier releases are; the packet is verified all the same."""
        forger = Forger(make_packet())
        forger.edit({"set": ["execution_receipts", 0, "action_taken"], "to": "wire_money"})
        forger.recompute(["reports", "links", "checkpoint", "packet_hash"], RECEIPT_SIGNER)
        assert forger.packet["execution_receipts"][0]["flags"] == ["ACTION_TAKEN_MISMATCH"]
        keys = tmp_path / "keys.json"
        keys.write_text(json.dumps(RECEIPT_KEYS.to_dict()))

        def told() -> list[str]:
            file = tmp_path / "packet.json"
            file.write_text(json.dumps(_rehashed(forger.packet)))
            done = gate("verify-packet", str(file), "--registry", str(keys), home=False)
            assert done.returncode == 0, done.stdout
            lines = done.stdout.splitlines()
            return [line for line in lines if line.startswith(("  execution_receipts[", "  flagged "))]

        assert told() == ["  flagged ACTION_TAKEN_MISMATCH: execution_receipts[0]"]
        forger.packet["execution_receipts"][0]["flags"] = []
        note = "action_taken is not the decided action, and the flag for that is missing"
        assert told() == [f"  execution_receipts[0]: {note}"]

    def test_a_packet_that_is_verified_for_its_record_alone_says_so_and_can_be_refused(
        self, gate: Gate, files: dict[str, str]
    ) -> None:
        trust = ["--registry", files["registry"]]
        few = gate("verify-packet", files["few_links"], *trust, home=False)
        assert few.stdout.startswith("verified, THE RECORD ONLY: ")
        assert "these reports are not: outcome_records[0]. " in few.stdout
        strict = gate("verify-packet", files["few_links"], *trust, "--require-signed-reports", home=False)
        assert (strict.returncode, "(REPORTS_UNSIGNED)" in strict.stdout) == (1, True)
        assert strict.stdout.startswith("NOT VERIFIED: ")
        whole = gate("verify-packet", files["packet"], *trust, "--require-signed-reports", home=False)
        assert (whole.returncode, whole.stdout.startswith("verified: ")) == (0, True)

    def test_members_that_no_release_made_are_named(self, gate: Gate, files: dict[str, str]) -> None:
        told = gate("verify-packet", files["embellished"], "--registry", files["registry"], home=False)
        (line,) = [line for line in told.stdout.splitlines() if "not authenticated" in line]
        assert (told.returncode, line.endswith(": outcome_records[0].note")) == (0, True)

    @pytest.mark.parametrize(
        ("options", "skipped"),
        [
            (
                ("--public-key", "pem"),
                {
                    _NO_ATTESTATION_KEYS: {
                        "attestation_signature",
                        "registry_attestation_signature",
                    },
                    "no --input given": {"facts_hash", "input_hash", "rulebook_hash"},
                },
            ),
            (("--registry", "registry", "--input", "request"), {_NO_ATTESTATION_KEYS: None}),
            (
                (),
                {"no --input given": None, _NO_ATTESTATION_KEYS: None, "no key given": None},
            ),
        ],
    )
    def test_a_skipped_check_names_the_option_that_makes_it_possible(
        self, gate: Gate, files: dict[str, str], options: tuple[str, ...], skipped: dict[str, set[str] | None]
    ) -> None:
        given = [files.get(option, option) for option in options]
        told = gate("verify", files["record"], *given, home=False).stdout
        found = dict(re.findall(r"^  skipped \((.*)\): (.*)$", told, flags=re.MULTILINE))
        assert found.keys() == skipped.keys(), told
        for reason, names in skipped.items():
            assert names is None or set(found[reason].split(", ")) == names

    @pytest.mark.parametrize(
        ("command", "document", "told"),
        [
            ("verify-packet", "record", "This is a Decision Record, not a Decision Packet; use `gate verify` or"),
            ("verify", "packet", "This is a Decision Packet, not a Decision Record; use `gate verify-packet` or"),
            (
                "verify-packet",
                "wrapped_record",
                "This is a Decision Record, not a Decision Packet; use `gate verify`",
            ),
            ("verify", "wrapped", "This is a Decision Packet, not a Decision Record; use `gate verify-packet`"),
            ("verify", "answer", "This is an error response, not a Decision Record"),
            ("verify-packet", "answer", "This is an error response, not a Decision Packet"),
            ("verify-packet", "request", "this one lacks decision_id, decision_packet_version, decision_record, "),
        ],
    )
    def test_another_document_is_called_by_its_name(
        self, gate: Gate, files: dict[str, str], command: str, document: str, told: str
    ) -> None:
        answer = gate(command, files[document], "--registry", files["registry"], home=False)
        assert (answer.returncode, told in answer.stdout) == (1, True)

    @pytest.mark.parametrize(("command", "document"), [("verify-packet", "carrier"), ("verify", "record_carrier")])
    def test_what_stands_beside_a_packet_or_record_is_never_passed_over(
        self, gate: Gate, files: dict[str, str], command: str, document: str
    ) -> None:
        error = refused(gate(command, files[document], "--registry", files["registry"], "--json", home=False))
        assert error["error"] == "SVC_API_REQUEST_INVALID"
        assert {fault["code"] for fault in error["errors"]} == {"unknown_field"}

    def test_a_checkpoint_that_came_with_the_packet_is_not_one_that_was_kept(
        self, gate: Gate, files: dict[str, str]
    ) -> None:
        error = refused(gate("verify-packet", files["kept_inside"], "--registry", files["registry"], "--json"))
        assert [fault["field"] for fault in error["errors"]] == ["checkpoint"]

    def test_a_key_must_be_named(self, gate: Gate, files: dict[str, str]) -> None:
        told = gate("verify-packet", files["packet"], home=False)
        assert (told.returncode, "--registry, --public-key, --hmac-secret-file or --home" in told.stderr) == (1, True)

    @pytest.mark.parametrize(
        ("options", "error", "told"),
        [
            (["--home", "/nowhere"], "INSTANCE_MISSING", "/nowhere"),
            (["--registry", "127.0.0.1:1"], "FILE_UNREADABLE", "starts with http://"),
            (["--home", "/nowhere", "--public-key", "pem"], "TRUST_AMBIGUOUS", "--home"),
        ],
    )
    def test_a_slip_in_what_to_trust_is_told(
        self, gate: Gate, files: dict[str, str], options: list[str], error: str, told: str
    ) -> None:
        arguments = [files.get(option, option) for option in options]
        said = refused(gate("verify-packet", files["packet"], *arguments, "--json", home=False))
        assert (said["error"], told in said["message"]) == (error, True)

    def test_integers_can_be_written_as_doubles(self, gate: Gate, files: dict[str, str]) -> None:
        options = ["--registry", files["registry"], "--checkpoint", files["double_checkpoint"]]
        checks = printed(gate("verify-packet", files["doubles"], *options, "--json", home=False))["checks"]
        assert (checks["audit_chain.members"], checks["checkpoint.chain"]) == (True, True)

    def test_request_and_checkpoint_are_checked(self, gate: Gate, files: dict[str, str]) -> None:
        options = ["--registry", files["registry"], "--input", files["request"], "--checkpoint", files["checkpoint"]]
        checks = printed(gate("verify-packet", files["packet"], *options, "--json", home=False))["checks"]
        assert (checks["record.input_hash"], checks["checkpoint.chain"]) == (True, True)

    @pytest.mark.parametrize(
        ("packet", "options"),
        [
            ("/nowhere.json", []),
            ("pem", []),
            ("packet", ["--registry", "request"]),
            ("packet", ["--public-key", "pem", "--registry", "registry"]),
            ("packet", ["--input", "/nowhere"]),
            ("packet", ["--checkpoint", "/nowhere"]),
            ("packet", ["--checkpoint", "request"]),
        ],
    )
    def test_unusable_material_exits_with_2(
        self, gate: Gate, files: dict[str, str], packet: str, options: list[str]
    ) -> None:
        arguments = [files.get(name, name) for name in (packet, *options)]
        done = gate("verify-packet", *arguments, home=False)
        assert (done.returncode, done.stdout) == (2, "")
        assert "Traceback" not in done.stderr


class TestChain:
    """gate chain."""

    def test_a_whole_chain(self, gate: Gate, made: dict[str, Any]) -> None:
        shown = printed(gate("chain", "check", "--json"))
        assert shown["whole"] is True
        assert (shown["chains"][0]["scope"], shown["chains"][0]["entries_checked"]) == ("acme", 3)
        assert "whole" in gate("chain", "check", "--scope", "acme").stdout

    @pytest.mark.parametrize(
        ("change", "position"),
        [
            ("UPDATE entries SET link_hash = leaf_hash WHERE position = 2", 2),
            ("UPDATE entries SET merkle_root = leaf_hash WHERE position = 3", 3),
            ("UPDATE entries SET decision_id = 'dec_x' WHERE position = 1", 1),
            ("UPDATE entries SET policy_version = X'00' WHERE position = 2", 2),
            ("UPDATE entries SET body = (SELECT body FROM entries WHERE position = 1) WHERE position = 2", 2),
            ("UPDATE entries SET body = forged(body) WHERE position = 2", 2),
            ("UPDATE entries SET body = substr(body, 1, length(body) - 1) WHERE position = 3", 3),
            ("UPDATE entries SET request = X'7b7d' WHERE position = 3", 3),
            ("UPDATE entries SET request = X'00' WHERE position = 2", 2),
            ("UPDATE entries SET body = X'00' WHERE position = 3", 3),
            ("UPDATE entries SET body = X'7b7d' WHERE position = 1", 1),
            ("UPDATE rulebooks SET body = X'7b7d'", 1),
            ("UPDATE rulebooks SET body = X'00'", 1),
            ("DELETE FROM rulebooks", 1),
            ("DELETE FROM entries WHERE position = 2", 2),
            ("DELETE FROM entries WHERE position = 3", 3),
            ("UPDATE chain_heads SET chain_size = 2", 2),
        ],
    )
    def test_a_change_in_the_ledger_is_found_with_its_place(
        self, gate: Gate, made: dict[str, Any], tmp_path: Path, change: str, position: int
    ) -> None:
        with sqlite3.connect(tmp_path / "home" / "ledger.db") as connection:
            connection.create_function("forged", 1, lambda body: pack(unpack(body).replace(b"crm", b"erp")))
            connection.execute(change)
        connection.close()
        shown = printed(gate("chain", "check", "--json"), code=1)
        assert shown["whole"] is False
        assert (shown["chains"][0]["broken_at"], bool(shown["chains"][0]["reason"])) == (position, True)
        told = gate("chain", "check")
        assert (told.returncode, "BROKEN" in told.stdout, f"position {position}" in told.stdout) == (1, True, True)

    def test_a_finding_names_the_table_the_row_and_what_to_do(
        self, gate: Gate, made: dict[str, Any], tmp_path: Path
    ) -> None:
        with sqlite3.connect(tmp_path / "home" / "ledger.db") as connection:
            connection.execute("INSERT INTO claims SELECT scope_id, zeroblob(32), 'x', 1 FROM chain_heads")
        connection.close()
        (shown,) = printed(gate("chain", "check", "--json", "--progress"), code=1)["chains"]
        assert (shown["broken_at"], shown["table"], shown["row"]) == (1, "claims", "00" * 32)
        told = gate("chain", "check", "--progress", "--processes", "1")
        assert told.stderr.splitlines()[:1] == ["Entries: 3 of 3"]
        assert told.stderr.splitlines()[1].startswith("No kept checkpoints were compared")
        assert f"the row {'00' * 32} of the table claims" in told.stdout
        assert "restore a backup that passes `gate chain check`" in told.stdout

    def test_a_record_forged_with_all_its_hashes_is_found_by_its_signature(
        self, gate: Gate, made: dict[str, Any], tmp_path: Path
    ) -> None:
        """Whoever can write the database can recompute hashes and links; the signing key they do not have."""
        import orjson

        from gate.encoding.canonical import content_hash
        from gate.proof import chain
        from gate.proof.chain import link_material
        from gate.records.envelope import envelope, receipt_material

        record: Any = {n: v for n, v in made["records"][2].items() if n != "audit_chain"} | {"request_id": "req_forged"}
        record["record_hash"] = content_hash(envelope(record))
        record["receipt_hash"] = content_hash(receipt_material(record))
        before = made["records"][1]["audit_chain"]
        head = chain.Head(before["chain_id"], 2, before["merkle_root"], before["link_hash"])
        link = chain.append(head, link_material(record))
        with sqlite3.connect(tmp_path / "home" / "ledger.db") as connection:
            connection.execute(
                "UPDATE entries SET body = ?, record_hash = ?, receipt_hash = ?, leaf_hash = ?, merkle_root = ?, "
                "link_hash = ? WHERE position = 3",
                (
                    orjson.dumps(record),
                    record["record_hash"],
                    record["receipt_hash"],
                    link["leaf_hash"],
                    link["merkle_root"],
                    link["link_hash"],
                ),
            )
            connection.execute(
                "UPDATE chain_heads SET merkle_root = ?, link_hash = ?", (link["merkle_root"], link["link_hash"])
            )
        connection.close()
        shown = printed(gate("chain", "check", "--json"), code=1)
        assert shown["chains"][0]["broken_at"] == 3
        assert "receipt_signature" in shown["chains"][0]["reason"]

    def test_a_checkpoint_shows_what_a_chain_alone_cannot(
        self, gate: Gate, made: dict[str, Any], tmp_path: Path
    ) -> None:
        checkpoint = tmp_path / "checkpoint.json"
        checkpoint.write_text(gate("chain", "checkpoint", "--scope", "acme").stdout)
        assert printed(gate("chain", "check", "--checkpoint", str(checkpoint), "--json"))["whole"] is True
        # The last entry is taken away and the head moved back: the chain alone is whole again.
        with sqlite3.connect(tmp_path / "home" / "ledger.db") as connection:
            connection.execute("DELETE FROM entries WHERE position = 3")
            connection.execute("DELETE FROM decisions WHERE position = 3")
            connection.execute(
                "UPDATE chain_heads SET chain_size = 2, (merkle_root, link_hash) = "
                "(SELECT merkle_root, link_hash FROM entries WHERE position = 2)"
            )
        connection.close()
        assert printed(gate("chain", "check", "--json"))["whole"] is True
        shown = printed(gate("chain", "check", "--checkpoint", str(checkpoint), "--json"), code=1)
        assert "chain_size" in shown["chains"][-1]["reason"]

    @pytest.mark.parametrize("name", ["chain_size", "merkle_root", "link_hash", "issued_at", "signature", "key_id"])
    def test_a_changed_checkpoint_is_refused(self, gate: Gate, made: dict[str, Any], tmp_path: Path, name: str) -> None:
        document = printed(gate("chain", "checkpoint", "--scope", "acme"))
        document[name] = 2 if name == "chain_size" else f"{document[name]}0"
        checkpoint = tmp_path / "checkpoint.json"
        checkpoint.write_text(json.dumps(document))
        shown = printed(gate("chain", "check", "--checkpoint", str(checkpoint), "--json"), code=1)
        faults = {"issued_at": "not a timestamp", "key_id": "is not a receipt key of this instance"}
        assert faults.get(name, "signature is not valid") in shown["chains"][-1]["reason"]

    def test_a_dead_key_speaks_for_no_checkpoint(self, gate: Gate, made: dict[str, Any], tmp_path: Path) -> None:
        checkpoint = tmp_path / "checkpoint.json"
        checkpoint.write_text(gate("chain", "checkpoint", "--scope", "acme").stdout)
        gate("signing-keys", "compromise", "--yes", json.loads(checkpoint.read_text())["key_id"])
        shown = printed(gate("chain", "check", "--checkpoint", str(checkpoint), "--json"), code=1)
        assert "compromised" in shown["chains"][-1]["reason"]
        assert shown["chains"][0]["whole"] is True, "the chain itself does not depend on the state of keys"

    def test_a_checkpoint_of_another_chain_is_unusable(self, gate: Gate, made: dict[str, Any], tmp_path: Path) -> None:
        gate("scopes", "create", "other")
        checkpoint = tmp_path / "checkpoint.json"
        checkpoint.write_text(gate("chain", "checkpoint", "--scope", "other").stdout)
        done = gate("chain", "check", "--scope", "acme", "--checkpoint", str(checkpoint))
        assert (done.returncode, "CHECKPOINT_FOREIGN" in done.stderr) == (2, True)


class TestLog:
    """gate log."""

    def test_what_operators_did_is_shown_and_an_altered_log_exits_with_1(self, gate: Gate, tmp_path: Path) -> None:
        key = printed(gate("keys", "create", "--scope", "acme", "--json"))
        gate("scopes", "plan", "acme", "team")
        gate("keys", "disable", "--yes", key["key_id"])
        for command in ("rotate", "compromise"):
            known = printed(gate("signing-keys", "list", "--json"))["receipt"]["active_key_id"]
            gate("signing-keys", command, *(["--yes", known] if command == "compromise" else []))
        gate("signing-keys", "retire", "nobody")
        shown = printed(gate("log", "--json"))
        assert (shown["whole"], shown["broken_at"]) == (True, None)
        actions = ["scope.created", "key.created", "scope.plan_changed", "key.disabled"]
        actions += ["signing_key.rotated", "signing_key.compromised"]
        assert [(found["position"], found["action"]) for found in shown["entries"]] == list(enumerate(actions, start=1))
        assert [found["subject"] for found in shown["entries"]][2:4] == ["acme", key["key_id"]]
        assert key["key"].split("_", 2)[2] not in json.dumps(shown)
        told = gate("log", "--limit", "1")
        assert (told.returncode, "key.created" in told.stdout) == (0, False)
        assert "signing_key.compromised" in told.stdout
        with sqlite3.connect(tmp_path / "home" / "ledger.db") as connection:
            connection.execute("UPDATE operator_log SET action = 'scope.renamed' WHERE position = 3")
        connection.close()
        broken = printed(gate("log", "--json"), code=1)
        assert (broken["whole"], broken["broken_at"], len(broken["entries"])) == (False, 3, 6)
        told = gate("log", "--limit", "1")
        assert (told.returncode, "BROKEN at position 3" in told.stdout) == (1, True)

    def test_an_entry_that_cannot_be_read_is_named_too(self, gate: Gate, acme: Path, tmp_path: Path) -> None:
        with sqlite3.connect(tmp_path / "home" / "ledger.db") as connection:
            connection.execute("UPDATE operator_log SET details = X'00'")
        connection.close()
        assert printed(gate("log", "--json"), code=1)["broken_at"] == 1


class TestBackup:
    """gate backup, gate restore."""

    def test_an_instance_is_laid_out_anew(self, gate: Gate, made: dict[str, Any], tmp_path: Path) -> None:
        file, again = tmp_path / "backup.db", str(tmp_path / "again")
        backed_up = printed(gate("backup", str(file), "--json"))
        assert backed_up == {
            "file": str(file),
            "bytes": file.stat().st_size,
            "entries": 3,
            "not_included": None,
            "logged": True,
            "contradicted": [],
        }
        told = gate("backup", str(tmp_path / "second.db")).stdout
        assert "3 entries" in told
        assert "private keys" in told
        restored = printed(gate("restore", str(file), "--json", "--home", again, home=False))
        assert (restored["home"], restored["whole"]) == (again, True)
        assert [(found["scope"], found["entries_checked"]) for found in restored["chains"]] == [("acme", 3)]
        client = create_app(load_settings(tmp_path / "again")).test_client()
        headers = {"x-api-key": made["key"]}
        assert client.get(made["records"][0]["decision_url"], headers=headers).get_json() == made["records"][0]
        done = gate("restore", str(file), "--home", again, home=False)
        assert (done.returncode, "INSTANCE_EXISTS" in done.stderr) == (2, True)
        unchecked = gate("restore", str(file), "--no-check", "--json", "--home", f"{again}-too", home=False)
        assert (printed(unchecked)["whole"], printed(unchecked)["chains"]) == (None, [])

    def test_a_broken_chain_is_restored_as_it_was_and_exits_with_1(
        self, gate: Gate, made: dict[str, Any], tmp_path: Path
    ) -> None:
        with sqlite3.connect(tmp_path / "home" / "ledger.db") as connection:
            connection.execute("UPDATE entries SET link_hash = leaf_hash WHERE position = 2")
        connection.close()
        gate("backup", str(tmp_path / "backup.db"))
        done = gate("restore", str(tmp_path / "backup.db"), "--home", str(tmp_path / "again"), home=False)
        assert (done.returncode, "BROKEN" in done.stdout, "position 2" in done.stdout) == (1, True, True)

    def test_a_file_that_is_no_backup_exits_with_2(self, gate: Gate, tmp_path: Path) -> None:
        for extra in ([], ["--json"]):
            done = gate("restore", __file__, *extra)
            assert (done.returncode, done.stdout, "BACKUP_UNREADABLE" in done.stderr) == (2, "", True)
        assert list(tmp_path.iterdir()) == []


class TestUpgrade:
    """gate db upgrade."""

    def test_an_older_ledger_is_upgraded_once(self, gate: Gate, made: dict[str, Any], tmp_path: Path) -> None:
        home = tmp_path / "home"
        with (
            closing(SqliteLedgerStore(home / "ledger.db")) as new,
            closing(SqliteLedgerStore(tmp_path / "old", create=True)) as old,
        ):
            copy_as_release(new, old)
        for file in home.glob("ledger.db*"):
            file.unlink()
        (tmp_path / "old").rename(home / "ledger.db")
        for command in (["status"], ["chain", "check"], ["backup", str(tmp_path / "backup.db")]):
            done = gate(*command)
            assert (done.returncode, "LEDGER_OUTDATED" in done.stderr) == (2, True)
            assert "gate db upgrade" in done.stderr
        assert printed(gate("db", "upgrade", "--json")) == {"from": "0001", "to": "0014"}
        assert "nothing was changed" in gate("db", "upgrade").stdout
        assert printed(gate("db", "upgrade", "--json")) == {"from": "0014", "to": "0014"}
        assert printed(gate("chain", "check", "--json"))["whole"] is True
        assert [found["action"] for found in printed(gate("log", "--json"))["entries"]] == ["ledger.upgraded"]

    def test_a_newer_ledger_exits_with_2(self, gate: Gate, acme: Path, tmp_path: Path) -> None:
        with sqlite3.connect(tmp_path / "home" / "ledger.db") as connection:
            connection.execute("UPDATE alembic_version SET version_num = '9999'")
        connection.close()
        done = gate("db", "upgrade")
        assert (done.returncode, "LEDGER_SCHEMA_UNFIT" in done.stderr) == (2, True)


# What a server needs besides the base install.
OF_A_SERVER: Final = [
    "flask", "sqlalchemy", "alembic", "granian", "jsonschema_rs", "cachetools", "structlog", "msgspec",
    "prometheus_client", "psycopg",
]  # fmt: skip

# Runs each command line of a list on an install without some libraries.
LESSER_INSTALL: Final = """
import contextlib, io, json, sys

HIDDEN, commands = json.load(sys.stdin)

class Hide:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in HIDDEN:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Hide())
from api.cli.main import main

ran = []
for arguments in commands:
    sys.argv = ["gate", *arguments]
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
        except BaseException as error:
            code = repr(error)
    ran.append([code, out.getvalue(), err.getvalue()])
json.dump(ran, sys.stdout)
"""


def on_the_base_install(folder: Path, commands: Iterable[Sequence[str]]) -> list[tuple[Any, str, str]]:
    """What each command ended with and printed to stdout and stderr, run in a folder."""
    return on_an_install_without(OF_A_SERVER, folder, commands)


def on_an_install_without(
    hidden: Sequence[str], folder: Path, commands: Iterable[Sequence[str]]
) -> list[tuple[Any, str, str]]:
    """The same on an install that lacks some libraries."""
    done = subprocess.run(
        [sys.executable, "-c", LESSER_INSTALL],
        input=json.dumps([hidden, [list(command) for command in commands]]),
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
        env={name: value for name, value in os.environ.items() if not name.startswith("GATE_")}
        | {"PYTHONPATH": str(ROOT)},
    )
    return [(code, out, err) for code, out, err in json.loads(done.stdout)]


def leaves(command: Any, names: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every command of `gate` by its words: `("keys", "create")`."""
    below = getattr(command, "list_commands", None)
    if below is None:
        yield names
        return
    for name in below(None):
        yield from leaves(command.get_command(None, name), (*names, name))


# The commands of the base install, with what they are given here and the code that they end with for it.
OF_THE_BASE: Final = {
    ("verify", "none.json"): "FILE_UNREADABLE",
    ("verify-packet", "none.json"): "FILE_UNREADABLE",
    ("conformance", "--endpoint", "none", "--api-key-file", "none.key"): "ENDPOINT_INVALID",
    ("client", "flush"): "INTENTS_MISSING",
    ("client", "status"): "INTENTS_MISSING",
    ("client", "show", "int_1"): "INTENTS_MISSING",
    ("client", "settle", "int_1", "--executed"): "INTENTS_MISSING",
    ("client", "forget", "--before", "2999-01-01T00:00:00Z"): "INTENTS_MISSING",
}


@pytest.mark.heavy
def test_every_command_of_a_base_install_works_or_says_what_is_missing(tmp_path: Path) -> None:
    every = list(leaves(typer.main.get_command(app)))
    own = [words for words in every if words[0] in {command[0] for command in OF_THE_BASE}]
    assert sorted(own) == sorted(words for command in OF_THE_BASE for words in own if command[: len(words)] == words)
    needing = [words for words in every if words not in own]
    assert {"log", "keys", "rulebook", "db"} <= {words[0] for words in needing}
    expected = {**OF_THE_BASE, **dict.fromkeys(needing, "EXTRA_MISSING")}
    ran = on_the_base_install(tmp_path, [(*command, "--json") for command in expected])
    assert {
        command: (code, json.loads(err)["error"] if err.startswith("{") else err)
        for command, (code, _, err) in zip(expected, ran, strict=True)
    } == {command: (2, error) for command, error in expected.items()}
    assert list(tmp_path.iterdir()) == []


def test_a_command_that_loads_a_library_only_when_run_says_what_is_missing(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lacking(*_: Any, **__: Any) -> NoReturn:
        raise ModuleNotFoundError("No module named 'sqlalchemy'", name="sqlalchemy")

    monkeypatch.setattr("api.cli.log.instance_at", lacking)
    done = gate("log")
    assert (done.returncode, done.stderr) == (
        2,
        "gate: This command needs sqlalchemy, which is in the extra `server`. Install it in a checkout with: "
        "pip install '.[server]' (EXTRA_MISSING)\n",
    )


@pytest.mark.parametrize(
    ("library", "command"),
    [
        ("pysat", ["rulebook", "analyse", "RULEBOOK"]),
        ("ruamel", ["rulebook", "convert", "--to", "yaml", "RULEBOOK"]),
        ("jsonschema_rs", ["rulebook", "check", "RULEBOOK"]),
    ],
)
def test_a_command_that_lacks_a_library_for_authors_names_their_extra(
    tmp_path: Path, library: str, command: list[str]
) -> None:
    rulebook = str(ROOT / "data" / "rulebooks" / "pricing_exception.json")
    words = [rulebook if word == "RULEBOOK" else word for word in command]
    ((code, printed, told),) = on_an_install_without([library], tmp_path, [words])
    assert (code, printed) == (2, "")
    assert re.fullmatch(
        rf"gate: This command needs {library}[a-z._]*, which is in the extra `authoring`\. "
        r"Install it in a checkout with: pip install '\.\[authoring\]' \(EXTRA_MISSING\)\n",
        told,
    ), told


def test_a_base_install_lists_its_commands_and_verifies(tmp_path: Path) -> None:
    record = tmp_path / "record.json"
    record.write_text(json.dumps(make_record()))
    pem = tmp_path / "key.pem"
    pem.write_text(RECEIPT_SIGNER.public_key)
    commands = [["--help"], ["serve", "--port", "1"], ["verify", str(record), "--public-key", str(pem)]]
    listed, missing, verified = on_the_base_install(tmp_path, commands)
    assert listed[0] == 0
    needing = {words[0] for words in leaves(typer.main.get_command(app))} - {command[0] for command in OF_THE_BASE}
    assert {name for name, told in re.findall(r"([a-z][a-z-]*) +\(needs the (extra)", listed[1])} == needing
    assert (missing[0], "pip install '.[server]'" in missing[2]) == (2, True)
    assert (verified[0], "verified" in verified[1]) == (0, True), verified[2]


@pytest.mark.parametrize(
    ("host", "reached"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("localhost", "localhost"),
        ("0.0.0.0", "127.0.0.1"),
        ("::", "[::1]"),
        ("::1", "[::1]"),
    ],
)
def test_a_listening_address_is_named_as_it_is_reached(host: str, reached: str) -> None:
    from api.cli.serve import _reachable

    assert _reachable(host) == reached


def test_the_demo_scope_is_made_once_and_mended(instance: Instance) -> None:
    from api.cli.demo.command import demo_key_file

    file = demo_key_file(instance)
    key = file.read_text()
    assert demo_key_file(instance).read_text() == key
    file.unlink()
    assert demo_key_file(instance).read_text() != key
    assert file.stat().st_mode & 0o777 == 0o600
    demo = instance.ledger.directory.scope("demo")
    assert demo.plan == "unlimited"
    for own in own_rulebooks():
        registered = instance.ledger.rulebooks.find(demo.scope_id, own.rulebook.hash)
        assert (registered is not None) == (own.status == "active")


@pytest.mark.parametrize("pattern_id", [pattern["pattern_id"] for pattern in patterns()])
def test_every_published_pattern_is_decided_in_the_demo_scope(
    instance: Instance, client: FlaskClient, pattern_id: str
) -> None:
    from api.cli.demo.command import demo_key_file

    headers = {"x-api-key": demo_key_file(instance).read_text().strip()}
    found = client.get(f"/api/decision/policy-patterns?pattern_id={pattern_id}").get_json()["policy_pattern"]
    response = client.post("/api/decide", json=found["decision_request_template"], headers=headers)
    assert (response.status_code, response.get_json()["verdict"]) == (200, "yes")


def test_a_demo_scope_keeps_a_rulebook_that_was_registered_without_its_adapter(instance: Instance) -> None:
    from api.cli.demo.command import demo_key_file

    scope = instance.ledger.directory.create_scope("demo", "unlimited", utc_now())
    (rulebook,) = (own for own in active_rulebooks() if own.rulebook_id == "refund_order_policy")
    instance.gate().sources.register(scope.scope_id, rulebook)
    demo_key_file(instance)
    registered = instance.ledger.rulebooks.find(scope.scope_id, rulebook.hash)
    assert registered is not None
    assert registered.metadata.get("adapter_dependency") is None


def test_the_first_request_is_one_line_that_decides(instance: Instance, client: FlaskClient) -> None:
    from api.cli.announcement import first_request
    from api.cli.demo.command import demo_key_file

    command = first_request("http://127.0.0.1:8080", demo_key_file(instance))
    assert "\n" not in command
    body = command.partition(" -d '")[2].rstrip("'")
    response = client.post(
        "/api/decide",
        data=body,
        content_type="application/json",
        headers={"x-api-key": demo_key_file(instance).read_text().strip()},
    )
    assert response.get_json()["verdict"] == "yes"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["foo"], "No such command 'foo'. Run `gate --help` for usage."),
        (["kyes", "list"], "No such command 'kyes'. Did you mean 'keys'?"),
        (["keys", "lsit"], "No such command 'lsit'. Did you mean 'list'?"),
        (["keys", "list", "--scoep", "x"], "No such option '--scoep'. Did you mean '--scope'?"),
        (["log", "--limit", "0"], "Invalid value for '--limit': Input should be greater than or equal to 1"),
        (["serve", "--port", "70000"], "Invalid value for '--port': Input should be less than or equal to 65535"),
        (["chain", "checkpoint"], "Name the chain with --scope NAME, or export all of them with --export FILE."),
        (["status", "--no-such"], "No such option: --no-such"),
    ],
)
def test_a_command_that_is_misused_says_so_in_a_sentence(gate: Gate, arguments: list[str], message: str) -> None:
    done = gate(*arguments, home=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith(f"gate: {message}")
    assert done.stderr.endswith("(USAGE_INVALID)\n")
    as_json = gate(*arguments, "--json", home=False)
    assert json.loads(as_json.stderr)["error"] == "USAGE_INVALID"


def test_a_file_that_is_no_database_is_named(gate: Gate, tmp_path: Path, made: dict[str, Any]) -> None:
    (tmp_path / "notes.txt").write_text(
        "These are notes, and they are long enough to be taken for a page of SQLite. " * 20
    )
    done = gate("status", "--database-url", f"sqlite:///{tmp_path / 'notes.txt'}")
    assert done.returncode == 2
    assert (
        done.stderr
        == f"gate: {tmp_path / 'notes.txt'} is not a SQLite database. Give the path of the ledger's own file. "
        "(LEDGER_SCHEMA_UNFIT)\n"
    )


@pytest.mark.parametrize("host", ["1.2.3.4", "nohost.invalid"])
def test_an_address_that_is_not_this_machine_s_is_told_from_one_that_is_taken(gate: Gate, host: str) -> None:
    done = gate("serve", "--host", host)
    assert done.returncode == 2
    assert done.stderr.startswith(f"gate: {host} is not an address of this machine (")
    assert "--host" in done.stderr


def test_a_proposed_command_can_be_pasted(gate: Gate) -> None:
    assert "gate keys create --scope two.words" in gate("scopes", "create", "two.words").stdout


def test_a_backup_and_its_restore_say_where_they_cannot_go(gate: Gate, made: dict[str, Any], tmp_path: Path) -> None:
    assert gate("backup", str(tmp_path / "no" / "b.db")).stderr.endswith(
        f"the directory {tmp_path / 'no'} does not exist. Create it first. (BACKUP_UNWRITABLE)\n"
    )
    assert gate("backup", str(tmp_path / "b.db")).returncode == 0
    elsewhere = ["--home", str(tmp_path / "other"), "--database-url", f"sqlite:///{tmp_path / 'home' / 'ledger.db'}"]
    done = gate("restore", str(tmp_path / "b.db"), *elsewhere, home=False)
    assert done.returncode == 2
    assert f"{tmp_path / 'home' / 'ledger.db'}, set by the backup's settings or by --database-url" in done.stderr
    assert "Give an empty database with --database-url" in done.stderr
