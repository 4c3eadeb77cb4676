"""Settings and instances: laid out once, opened, refused with a sentence."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Final

import pytest

from gate.errors import OperatorError
from gate.instance.instance import create_instance, open_instance
from gate.instance.settings import TAKES, Settings, load_settings
from gate.proof.signing import HmacSigner


def test_an_instance_is_laid_out_once(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert create_instance(home, base_url="http://gate.example") is True
    before = {file: file.read_bytes() for file in home.rglob("*") if file.is_file()}
    assert create_instance(home, base_url="http://other.example") is False
    assert {file: file.read_bytes() for file in home.rglob("*") if file.is_file()} == before
    assert load_settings(home).base_url == "http://gate.example"
    assert stat.S_IMODE(home.stat().st_mode) == 0o700


def test_there_is_no_instance_where_none_was_laid_out(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match="gate serve --home") as refusal:
        open_instance(load_settings(tmp_path / "nowhere"))
    assert refusal.value.code == "INSTANCE_MISSING"


def test_an_instance_cannot_be_laid_out_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(OperatorError) as refusal:
        create_instance(tmp_path / "file" / "home")
    assert refusal.value.code == "INSTANCE_UNWRITABLE"


def test_settings_have_defaults_and_the_environment_wins(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = load_settings(home)
    assert settings.ledger_url == f"sqlite:///{home}/ledger.db"
    assert settings.schema_url == "http://gate.example/schemas/rulebook-v1.schema.json"
    assert (settings.receipt_signing, settings.registry_signing) == ("ed25519", "ed25519")
    monkeypatch.setenv("GATE_BASE_URL", "https://env.example")
    assert load_settings(home).base_url == "https://env.example"
    assert load_settings(home, database_url="sqlite:////else.db").ledger_url == "sqlite:////else.db"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('base_url = "gate.example"', "base_url"),
        ('base_url = "http://gate.example/"', "base_url"),
        ('receipt_signing = "rsa"', "receipt_signing"),
        ('registry_signing = "hmac-sha256"', "registry_signing"),
        ("unknown = 1", "unknown"),
        ('Log_Level = "error"', "unknown setting Log_Level"),
        (
            'adapter_isolation = ["seccomp", "a_moat"]',
            "unknown measures: a_moat. The measures are no_new_privs, seccomp, ",
        ),
        ("base_url = ", "settings.toml"),
        ("base_url = " + 9999 * "[", "nested too deeply"),
    ],
)
def test_unusable_settings_are_named(home: Path, text: str, named: str) -> None:
    (home / "settings.toml").write_text(text)
    with pytest.raises(OperatorError, match=named) as refusal:
        load_settings(home)
    assert refusal.value.code == "SETTINGS_INVALID"


def test_settings_that_are_no_text_are_told_as_such(home: Path) -> None:
    (home / "settings.toml").write_bytes(b'base_url = "http://\xff"')
    with pytest.raises(OperatorError, match="cannot be read") as refusal:
        load_settings(home)
    assert refusal.value.code == "SETTINGS_INVALID"


def told_of(home: Path) -> str:
    with pytest.raises(OperatorError) as refusal:
        load_settings(home)
    assert refusal.value.code == "SETTINGS_INVALID"
    return refusal.value.message


FIELDS: Final = '["inputs.customer.email", "target_object_id"]'
ISOLATION: Final = '["clock_stopped", "network_namespace"]'


@pytest.mark.parametrize(
    ("text", "wrong", "write"),
    [
        ('adapter_isolation = "seccomp"', "is a string, but must be a list of strings", ISOLATION),
        ("adapter_isolation = {seccomp = true}", "is a table, but must be a list of strings", ISOLATION),
        ("adapter_isolation = [true, 5]", "contains true or false, but must be a list of strings", ISOLATION),
        ("adapter_isolation = [2026-01-01]", "contains a date or time, but must be a list of strings", ISOLATION),
        ("personal_fields = 5", "is a number, but must be a list of strings", FIELDS),
        ('personal_fields = ["a", ["b"], ["c"]]', "contains a list, but must be a list of strings", FIELDS),
        ("lake = 5", "must be the path of a directory", '"/srv/gate/lake"'),
        ("database_url = 5", "must be the address of a ledger", '"postgresql://gate@db.example.com/gate"'),
        ('log_level = "debug"', "must be info, warning, or error", '"warning"'),
        ('receipt_signing = "rsa"', "must be ed25519, hmac-sha256 or off", '"ed25519"'),
    ],
)
def test_a_setting_in_the_file_is_told_what_it_takes(home: Path, text: str, wrong: str, write: str) -> None:
    (home / "settings.toml").write_text(text)
    name = text.partition(" ")[0]
    told = f"{name} in {home / 'settings.toml'} {wrong}. Write {name} = {write}, for example."
    assert told_of(home) == told


@pytest.mark.parametrize(
    ("name", "given", "wrong", "write"),
    [
        ("ADAPTER_ISOLATION", "seccomp", "must be a list of strings, as JSON", f"'{ISOLATION}'"),
        ("PERSONAL_FIELDS", "", "must be a list of strings, as JSON", f"'{FIELDS}'"),
        ("ADAPTER_ISOLATION", '"seccomp"', "is a string, but must be a list of strings", f"'{ISOLATION}'"),
        ("PERSONAL_FIELDS", "null", "is null, but must be a list of strings", f"'{FIELDS}'"),
        ("PERSONAL_FIELDS", "[null, 1]", "contains null, but must be a list of strings", f"'{FIELDS}'"),
        ("LOG_LEVEL", "debug", "must be info, warning, or error", "warning"),
    ],
)
def test_a_setting_in_the_environment_is_told_what_it_takes(
    home: Path, monkeypatch: pytest.MonkeyPatch, name: str, given: str, wrong: str, write: str
) -> None:
    # What the file says there does not matter.
    (home / "settings.toml").write_text('log_level = "error"\nadapter_isolation = []\n')
    monkeypatch.setenv(f"GATE_{name}", given)
    assert told_of(home) == f"GATE_{name} in the environment {wrong}. Write GATE_{name}={write}, for example."


def test_what_is_told_to_write_can_be_written(home: Path) -> None:
    assert TAKES.keys() == set(Settings.__struct_fields__) - {"home"}
    (home / "settings.toml").write_text(
        "".join(f"{name} = {json.dumps(given)}\n" for name, (_, given) in TAKES.items())
    )
    settings = load_settings(home)
    assert (settings.log_level, settings.adapter_isolation) == ("warning", tuple(json.loads(ISOLATION)))


def test_each_setting_at_fault_is_told_and_no_value_is_shown(home: Path) -> None:
    (home / "settings.toml").write_text('base_url = "ftp://gate:a-password@host"\nlevel = "a-password"\n')
    told = told_of(home)
    assert f"base_url in {home / 'settings.toml'} must be an address" in told
    assert f"{home / 'settings.toml'} has the unknown setting level" in told
    assert "a-password" not in told


def test_what_a_list_names_twice_counts_once(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "settings.toml").write_text('adapter_isolation = ["seccomp", "clock_stopped", "seccomp"]\n')
    monkeypatch.setenv("GATE_PERSONAL_FIELDS", '["target_object_id", "target_object_id"]')
    settings = load_settings(home)
    assert settings.adapter_isolation == ("seccomp", "clock_stopped")
    assert settings.personal_fields == ("target_object_id",)


def test_receipts_can_be_signed_with_hmac_or_not_at_all(home: Path) -> None:
    secret = home / "secret"
    secret.write_text("a secret of at least 32 bytes, yes")
    (home / "settings.toml").write_text(
        f'receipt_signing = "hmac-sha256"\nreceipt_hmac_secret_file = "{secret}"\nregistry_signing = "off"\n'
    )
    instance = open_instance(load_settings(home))
    signers = instance.signers()
    assert isinstance(signers.receipt, HmacSigner)
    assert signers.registry is None
    assert instance.trust().hmac_secret == b"a secret of at least 32 bytes, yes"
    instance.close()
    (home / "settings.toml").write_text('receipt_signing = "off"\n')
    instance = open_instance(load_settings(home))
    assert instance.signers().receipt is None
    instance.close()


def test_a_lost_ledger_is_said_to_be_lost_and_never_replaced_by_an_empty_one(home: Path) -> None:
    (home / "ledger.db").unlink()
    assert create_instance(home) is False
    with pytest.raises(OperatorError, match="restore it from a backup") as refusal:
        open_instance(load_settings(home))
    assert refusal.value.code == "DATABASE_UNREACHABLE"
    assert not (home / "ledger.db").exists()


def test_an_instance_can_keep_its_ledger_elsewhere(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/elsewhere.db"
    create_instance(tmp_path / "home", database_url=url)
    assert not (tmp_path / "home" / "ledger.db").exists()
    open_instance(load_settings(tmp_path / "home", database_url=url)).close()
