"""Settings and instances: laid out once, opened, refused with a sentence."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from gate.errors import OperatorError
from gate.instance import create_instance, open_instance
from gate.settings import load_settings
from gate.signing import HmacSigner


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
        ('adapter_isolation = ["seccomp", "a_moat"]', "a_moat is none of no_new_privs"),
        ("base_url = ", "settings.toml"),
    ],
)
def test_unusable_settings_are_named(home: Path, text: str, named: str) -> None:
    (home / "settings.toml").write_text(text)
    with pytest.raises(OperatorError, match=named) as refusal:
        load_settings(home)
    assert refusal.value.code == "SETTINGS_INVALID"


@pytest.mark.parametrize("name", ["adapter_isolation", "personal_fields"])
def test_a_list_that_the_environment_does_not_give_as_json_is_named(
    home: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(f"GATE_{name.upper()}", "clock_stopped")
    with pytest.raises(OperatorError, match=name) as refusal:
        load_settings(home)
    assert refusal.value.code == "SETTINGS_INVALID"


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
