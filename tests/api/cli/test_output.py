"""What commands print of records, packets, files and arguments, whatever these hold; and what they take for no text."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any, Final

import orjson
import pytest
from typer.main import get_command

from api.cli import output
from api.cli.main import app
from gate.encoding import resources
from gate.encoding.strict_json import parse_document
from gate.errors import FieldError, OperatorError
from gate.proof.signing import Ed25519Signer
from gate.records.record import Signers
from tests.api.cli.hostile import HOSTILE, HOSTILE_ARGUMENT, NO_TEXT
from tests.support.command_line import run_gate
from tests.support.samples import RECEIPT_KEYS, REGISTRY_SIGNER, make_packet, make_record, sample_rulebook
from tests.support.tampering import with_value

Gate = Callable[..., "CompletedProcess[str]"]

HOSTILE_SIGNER: Final = Ed25519Signer(HOSTILE, bytes(32))


@pytest.fixture(scope="module")
def with_scope(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home directory of an instance with the scope acme."""
    home = tmp_path_factory.mktemp("with-scope") / "home"
    run_gate("scopes", "create", "acme", "--home", str(home))
    return home


@pytest.fixture
def gate(tmp_path: Path, with_scope: Path) -> Gate:
    """Runs `gate ...` against an instance with the scope acme."""
    shutil.copytree(with_scope, tmp_path / "home")

    def run(*arguments: str) -> CompletedProcess[str]:
        return run_gate(*arguments, "--home", str(tmp_path / "home"))

    return run


def printed(done: CompletedProcess[str]) -> str:
    """What a command printed, which must have told nothing to the terminal."""
    told = done.stdout + done.stderr
    assert not [character for character in told if not character.isprintable() and character != "\n"]
    assert not [line for line in told.splitlines() if line.startswith("verified")]
    assert "Traceback" not in told
    return told


def kept(path: Path, document: Any) -> str:
    path.write_text(json.dumps(document))
    return str(path)


class TestOutput:
    """api.cli.output."""

    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            ("Grüße, 日本 🙂 [bold] :smile: \\", "Grüße, 日本 🙂 [bold] :smile: \\"),
            ("\x1b[2K", r"\x1b[2K"),
            ("a\nb\r\tc", r"a\nb\r\tc"),
            ("\x00\x7f\x85\x9b", r"\x00\x7f\x85\x9b"),
            ("\u200f\u202e\u2066\u2028\ufeff", r"\u200f\u202e\u2066\u2028\ufeff"),
            ("\udcff\U000e0041", r"\udcff\U000e0041"),
        ],
    )
    def test_it_shows_what_does_not_print(self, text: str, shown: str, capsys: pytest.CaptureFixture[str]) -> None:
        output.say(text, style="red")
        output.note(text)
        told = capsys.readouterr()
        assert (told.out, told.err) == (f"{shown}\n", f"{shown}\n")
        output.table(["column"], [[text], [None]])
        assert shown in capsys.readouterr().out.splitlines()[1]
        output.fail(OperatorError("CODE", text, [FieldError(text, "type", text)]), as_json=False)
        assert capsys.readouterr().err == f"gate: {shown} (CODE)\n  {shown}: {shown}\n"

    def test_json_says_the_same_in_escapes_that_every_reader_takes(self, capsys: pytest.CaptureFixture[str]) -> None:
        output.print_json({HOSTILE: [HOSTILE, "é", 1.5, None, {}]})
        told = capsys.readouterr().out
        assert told.isprintable() is False
        assert not [character for character in told if not character.isprintable() and character != "\n"]
        assert orjson.loads(told) == {HOSTILE: [HOSTILE, "é", 1.5, None, {}]}

    def test_a_terminal_that_cannot_show_a_character_shows_its_escape(self, tmp_path: Path) -> None:
        command = [
            str(Path(sys.executable).with_name("gate")),
            "scopes",
            "show",
            "é中",
            "--home",
            str(tmp_path / "home"),
        ]
        run_gate("scopes", "create", "acme", "--home", str(tmp_path / "home"))
        environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
        done = subprocess.run(command, capture_output=True, env=environment)
        assert (done.returncode, rb"\xe9\u4e2d" in done.stderr, b"Traceback" in done.stderr) == (2, True, False)

    def test_json_says_what_is_no_text_in_text(self, capsys: pytest.CaptureFixture[str]) -> None:
        output.fail(OperatorError("CODE", NO_TEXT), as_json=True)
        assert orjson.loads(capsys.readouterr().err)["message"] == r"dec\udcff"

    @pytest.mark.parametrize("file", sorted(Path(output.__file__).parent.glob("*.py")), ids=lambda file: file.name)
    def test_nothing_else_of_the_command_line_prints(self, file: Path) -> None:
        if file == Path(output.__file__):
            return
        named = {ast.unparse(node) for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.expr)}
        assert not named & {"sys.stdout", "sys.stderr", "print", "typer.echo", "typer.secho", "Console", "rich"}


class TestHostileText:
    """Records, packets, files and arguments that would steer a terminal."""

    @pytest.fixture
    def registry(self, tmp_path: Path) -> str:
        return kept(tmp_path / "registry.json", RECEIPT_KEYS.to_dict())

    @pytest.mark.parametrize("extra", [[], ["--json"]])
    @pytest.mark.parametrize(
        ("command", "document"),
        [
            ("verify", make_record(signers=Signers(HOSTILE_SIGNER, REGISTRY_SIGNER))),
            ("verify", with_value(make_record(), ("integrity", HOSTILE), 1)),
            ("verify", with_value(make_record(), ("rulebook_attestation", "bundle", HOSTILE), 1)),
            ("verify-packet", make_packet(record=make_record(signers=Signers(HOSTILE_SIGNER, REGISTRY_SIGNER)))),
            ("verify-packet", make_packet(signer=HOSTILE_SIGNER)),
            ("verify-packet", with_value(make_packet(), ("decision_record", "integrity", HOSTILE), 1)),
            ("verify-packet", with_value(make_packet(), ("decision_record", "action_binding", HOSTILE), 1)),
        ],
        ids=["key", "member", "inner member", "record's key", "checkpoint's key", "packet's member", "bound member"],
    )
    def test_a_record_or_packet_steers_no_terminal(
        self, tmp_path: Path, registry: str, command: str, document: dict[str, Any], extra: list[str]
    ) -> None:
        file = kept(tmp_path / "document.json", document)
        done = run_gate(command, file, "--registry", registry, *extra)
        told = printed(done)
        assert done.returncode == 1
        assert (orjson.loads(told)["verified"] is False) if extra else (r"x\x1b[2K" in told)

    @pytest.mark.parametrize("extra", [[], ["--json"]])
    @pytest.mark.parametrize(
        ("command", "exit_with", "code"),
        [
            (["erase", "--decision", HOSTILE_ARGUMENT, "--reason", "asked for"], 1, "DECISION_NOT_FOUND"),
            (["chain", "check", "--scope", HOSTILE_ARGUMENT], 2, "SCOPE_UNKNOWN"),
            (["chain", "check", "--checkpoint", HOSTILE_ARGUMENT[:50]], 2, "FILE_UNREADABLE"),
            (["keys", "create", "--scope", "acme", "--access", HOSTILE_ARGUMENT], 2, "ACCESS_UNKNOWN"),
            (["keys", "disable", HOSTILE_ARGUMENT], 2, "KEY_UNKNOWN"),
            (["scopes", "create", HOSTILE_ARGUMENT], 2, "SCOPE_NAME_INVALID"),
            (["users", "add", HOSTILE_ARGUMENT, "--scope", "acme", "--role", "viewer"], 2, "USER_NAME_INVALID"),
            (["users", "add", "ada", "--scope", "acme", "--role", HOSTILE_ARGUMENT], 2, "ROLE_UNKNOWN"),
            (["users", "enable", "ada", "--expires", HOSTILE_ARGUMENT], 2, "DATE_INVALID"),
            (["users", "disable", HOSTILE_ARGUMENT], 2, "USER_UNKNOWN"),
            (["signing-keys", "retire", HOSTILE_ARGUMENT], 2, "SIGNING_KEY_UNKNOWN"),
            (["backup", f"/nowhere/{HOSTILE_ARGUMENT}"], 2, "BACKUP_UNWRITABLE"),
            (["serve", "--host", HOSTILE_ARGUMENT], 2, "ADDRESS_UNAVAILABLE"),
            (["verify", HOSTILE_ARGUMENT[:50]], 2, "FILE_UNREADABLE"),
            (["verify", "record.json", "--registry", f"http://{HOSTILE_ARGUMENT}"], 2, "REGISTRY_UNREACHABLE"),
            ([HOSTILE_ARGUMENT], 2, "USAGE_INVALID"),
            (["keys", HOSTILE_ARGUMENT], 2, "USAGE_INVALID"),
            (["log", f"--{HOSTILE_ARGUMENT}"], 2, "USAGE_INVALID"),
            (["log", "--limit", HOSTILE_ARGUMENT], 2, "USAGE_INVALID"),
            (["log", HOSTILE_ARGUMENT], 2, "USAGE_INVALID"),
        ],
        ids=lambda value: " ".join(value)[:12] if isinstance(value, list) else None,
    )
    def test_an_argument_steers_no_terminal(
        self,
        gate: Gate,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        command: list[str],
        exit_with: int,
        code: str,
        extra: list[str],
    ) -> None:
        monkeypatch.chdir(tmp_path)
        kept(tmp_path / "record.json", make_record())
        # A home beside a registry would be one source of keys too many.
        run = run_gate if command[0] == "verify" else gate
        done = run(*command, *extra)
        assert (done.returncode, done.stdout, code in printed(done)) == (exit_with, "", True)
        if extra:
            assert orjson.loads(done.stderr)["error"] == code
        else:
            assert done.stderr.count("\n") == 1

    @pytest.mark.parametrize("extra", [[], ["--json"]])
    def test_a_rulebook_steers_no_terminal(self, tmp_path: Path, extra: list[str]) -> None:
        rulebook = kept(tmp_path / "rulebook.json", sample_rulebook() | {HOSTILE: HOSTILE})
        done = run_gate("rulebook", "check", rulebook, *extra)
        assert (done.returncode, r"x\x1b[2K" in printed(done) or bool(extra)) == (1, True)


class TestNoText:
    """Arguments with bytes that are no UTF-8."""

    @pytest.mark.parametrize("extra", [[], ["--json"]])
    @pytest.mark.parametrize(
        ("command", "exit_with", "code"),
        [
            (["erase", "--decision", NO_TEXT, "--reason", "asked for"], 1, "DECISION_NOT_FOUND"),
            (["erase", "--decision", "dec_1", "--reason", f"asked for{NO_TEXT}"], 2, "ERASURE_REASON_INVALID"),
            (["scopes", "show", NO_TEXT], 2, "SCOPE_UNKNOWN"),
            (["scopes", "create", NO_TEXT], 2, "SCOPE_NAME_INVALID"),
            (["scopes", "plan", NO_TEXT, "team"], 2, "SCOPE_UNKNOWN"),
            (["scopes", "plan", "acme", NO_TEXT], 2, "PLAN_UNKNOWN"),
            (["keys", "create", "--scope", NO_TEXT], 2, "SCOPE_NAME_INVALID"),
            (["keys", "list", "--scope", NO_TEXT], 2, "SCOPE_UNKNOWN"),
            (["keys", "disable", NO_TEXT], 2, "KEY_UNKNOWN"),
            (["keys", "rotate", NO_TEXT], 2, "KEY_UNKNOWN"),
            (["users", "add", NO_TEXT, "--scope", "acme", "--role", "viewer"], 2, "USER_NAME_INVALID"),
            (["users", "add", "ada", "--scope", NO_TEXT, "--role", "viewer"], 2, "SCOPE_UNKNOWN"),
            (["users", "list", "--scope", NO_TEXT], 2, "SCOPE_UNKNOWN"),
            (["users", "password", NO_TEXT], 2, "USER_UNKNOWN"),
            (["chain", "check", "--scope", NO_TEXT], 2, "SCOPE_UNKNOWN"),
            (["chain", "checkpoint", "--scope", NO_TEXT], 2, "SCOPE_UNKNOWN"),
            (["signing-keys", "compromise", NO_TEXT], 2, "SIGNING_KEY_UNKNOWN"),
            (["signing-keys", "rotate", "--purpose", NO_TEXT], 2, "PURPOSE_UNKNOWN"),
            (["rulebook", "check", NO_TEXT], 2, "FILE_UNREADABLE"),
            (["log", "--database-url", f"sqlite:////tmp/{NO_TEXT}"], 2, "DATABASE_URL_INVALID"),
            (["serve", "--host", NO_TEXT], 2, "ADDRESS_UNAVAILABLE"),
        ],
        ids=lambda value: " ".join(value[:2]) if isinstance(value, list) else None,
    )
    def test_they_name_nothing_that_there_is(
        self, gate: Gate, command: list[str], exit_with: int, code: str, extra: list[str]
    ) -> None:
        done = gate(*command, *extra)
        assert (done.returncode, done.stdout, code in printed(done)) == (exit_with, "", True)

    def test_a_backup_can_have_such_a_name(self, gate: Gate, tmp_path: Path) -> None:
        done = gate("backup", str(tmp_path / NO_TEXT), "--json")
        assert done.returncode == 0, done.stderr
        assert orjson.loads(done.stdout)["file"] == str(tmp_path / r"dec\udcff")
        assert (tmp_path / NO_TEXT).is_file()
        log = json.loads(gate("log", "--json").stdout)
        assert (log["whole"], log["entries"][-1]["subject"]) == (True, str(tmp_path / r"dec\udcff"))


class TestNewScopes:
    """gate keys create, where the scope or the instance is new."""

    def test_a_new_scope_is_called_new(self, gate: Gate) -> None:
        assert "of the new scope dmeo (plan starter)" in gate("keys", "create", "--scope", "dmeo").stderr
        assert "of the scope dmeo (plan team)" in gate("keys", "create", "--scope", "dmeo", "--plan", "team").stderr

    def test_stdout_has_the_key_alone_so_that_it_can_be_redirected_into_a_file(self, gate: Gate) -> None:
        made = gate("keys", "create", "--scope", "dmeo").stdout
        assert re.fullmatch(r"dgk_[0-9a-f]+_\S+\n", made)
        rotated = gate("keys", "rotate", made.split("_")[1], "--yes").stdout
        assert re.fullmatch(r"dgk_[0-9a-f]+_\S+\n", rotated)

    def test_a_new_instance_is_told_from_that_of_a_server(self, tmp_path: Path) -> None:
        asked = ("keys", "create", "--scope", "acme", "--json", "--home", str(tmp_path / "home"))
        first, second = run_gate(*asked), run_gate(*asked)
        assert first.stderr == (
            f"Created a new instance in {tmp_path / 'home'}.\n"
            f"A server with another home does not accept its keys; give that server's directory with --home.\n"
        )
        assert (second.returncode, second.stderr) == (0, "")

    def test_a_server_on_the_same_ledger_knows_the_key(self, gate: Gate, tmp_path: Path) -> None:
        gate("status")
        ledger = f"sqlite:///{tmp_path / 'home' / 'ledger.db'}"
        options = ("--home", str(tmp_path / "other"), "--database-url", ledger)
        assert "another home" not in run_gate("keys", "create", "--scope", "acme", *options).stderr


class TestCheckpoints:
    """What --checkpoint names, under both commands that take it."""

    @pytest.mark.parametrize("document", ["packet", "record", "list", "text", "near"])
    def test_what_is_no_checkpoint_is_called_so(self, gate: Gate, tmp_path: Path, document: str) -> None:
        checkpoint = json.loads(gate("chain", "checkpoint", "--scope", "acme").stdout)
        documents: dict[str, Any] = {"packet": make_packet(), "record": make_record(), "list": [1], "text": "x"}
        documents["near"] = checkpoint | {"chain_size": "0"}
        named = kept(tmp_path / "named.json", documents[document])
        packet = kept(tmp_path / "packet.json", make_packet())
        for command in (("chain", "check"), ("verify-packet", packet)):
            done = gate(*command, "--checkpoint", named)
            assert (done.returncode, done.stdout) == (2, "")
            assert done.stderr.startswith(f"gate: {named} does not hold a checkpoint; ")
            assert done.stderr.endswith("(CHECKPOINT_INVALID)\n")

    def test_a_checkpoint_can_have_its_integers_written_as_doubles(self, gate: Gate, tmp_path: Path) -> None:
        checkpoint = json.loads(gate("chain", "checkpoint", "--scope", "acme").stdout)
        named = kept(tmp_path / "named.json", checkpoint | {"chain_size": float(checkpoint["chain_size"])})
        assert gate("chain", "check", "--checkpoint", named).returncode == 0


def test_no_command_offers_completion() -> None:
    root: Any = get_command(app)
    commands = {name: root.get_command(None, name) for name in root.list_commands(None)}
    for name, command in list(commands.items()):
        commands |= {f"{name} {below}": found for below, found in getattr(command, "commands", {}).items()}
    assert len(commands) > len(root.list_commands(None))
    for command in (root, *commands.values()):
        assert not [option for parameter in command.params for option in parameter.opts if "completion" in option]


@pytest.mark.heavy
def test_the_reference_has_every_code_of_the_commands() -> None:
    """Every code that an operator alone meets; those of the HTTP service are in schemas/error-codes.json."""
    raised = codes_of("OperatorError")
    told = set(parse_document(resources.path("docs", "tools", "command-error-codes.json").read_bytes()))
    assert raised - told == set()
    of_services = {
        "RULEBOOK_VERSION_CONFLICT",
        "SVC_CHECKPOINT_UNAVAILABLE",
        "SVC_SIGNING_UNAVAILABLE",
        "SVC_STORAGE_UNAVAILABLE",
        "SVC_API_REQUEST_INVALID",
    }
    of_stores = codes_of("StoreUnavailable")
    assert told - raised - codes_of("MaterialRefused") - of_stores == of_services


@cache
def nodes() -> list[ast.Call | ast.AnnAssign]:
    """The calls and the annotated assignments in the sources."""
    folders = ("gate", "workbench", "api")
    trees = [ast.parse(file.read_text()) for of in folders for file in resources.path(of).rglob("*.py")]
    return [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call | ast.AnnAssign)]


def codes_of(error: str) -> set[str]:
    """The codes with which the sources raise an error, written there or named by a constant."""
    named = {
        ast.unparse(node.target): node.value.value
        for node in nodes()
        if isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Constant)
    }
    codes = [
        node.args[0]
        for node in nodes()
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == error and node.args
    ]
    found = {code.value if isinstance(code, ast.Constant) else named.get(ast.unparse(code)) for code in codes}
    return {str(code) for code in found if code is not None}
