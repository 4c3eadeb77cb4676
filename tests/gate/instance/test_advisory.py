"""The settings of an upstream: those that cannot be used are refused with what to do, and without a secret."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gate.errors import OperatorError
from gate.instance.advisory import advisory_state, open_advisor
from gate.instance.settings import Settings, load_settings


def settings(home: Path, **said: Any) -> Settings:
    return Settings(home=home, **({"advisory_url": "http://[::1]:8000/v1", "advisory_model": "model-1"} | said))


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:1",
        "http://127.0.0.1:65535/v1",
        "https://models.example.com",
        "https://models.example.com/v1/a%20b",
        "http://[::1]/v1",
        "http://[fe80::1]:8000",
    ],
)
def test_an_address_is_taken(tmp_path: Path, url: str) -> None:
    assert open_advisor(settings(tmp_path, advisory_url=url)).ready
    assert advisory_state(settings(tmp_path, advisory_url=url)) == "ready"


@pytest.mark.parametrize(
    "url",
    [
        "http://h.example:0",
        "http://h.example:65536/v1",
        "http://h.example:99999",
        "http://h.example:-1",
        "http://h.example:hunter2",
        "http://:80/v1",
        "http://[::1:80/v1",
        "http://[::gg]:80",
        "http://h\u00f6st.example",
        "http://h.example/v\u0000",
        "http://h.example:\uff18\uff10",
    ],
)
def test_an_address_that_cannot_be_asked_is_refused_at_the_start(tmp_path: Path, url: str) -> None:
    with pytest.raises(OperatorError) as error:
        open_advisor(settings(tmp_path, advisory_url=url))
    assert error.value.code == "ADVISORY_SETTINGS_INVALID"
    message = error.value.message
    assert message.startswith("advisory_url must ")
    assert message.endswith("Write https://models.example.com/v1, for example.")
    # What was meant for a password is shown nowhere.
    assert "hunter2" not in message
    assert advisory_state(settings(tmp_path, advisory_url=url)) == "unavailable"


@pytest.mark.parametrize("url", ["ftp://h.example", "http://user:hunter2@h.example", "http://h.example/?key=hunter2"])
def test_an_address_of_another_form_is_no_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("GATE_ADVISORY_URL", url)
    with pytest.raises(OperatorError, match="ADVISORY_URL") as error:
        load_settings(tmp_path)
    assert "hunter2" not in str(error.value)


@pytest.mark.parametrize(
    ("said", "names"),
    [
        ({"advisory_model": ""}, "advisory_model"),
        ({"advisory_model": "a\nb"}, "advisory_model"),
        ({"advisory_model": "\udc80"}, "advisory_model"),
        ({"advisory_url": ""}, "advisory_url"),
    ],
)
def test_settings_that_do_not_fit_together_are_named(tmp_path: Path, said: dict[str, str], names: str) -> None:
    with pytest.raises(OperatorError, match=names):
        open_advisor(settings(tmp_path, **said))


@pytest.mark.parametrize(
    "content", [None, b"", b"  \n", b"two words", b"key-canary\r\nx-more: 1", b"key-canary-\xff", b"k" * 4097, b"a\0b"]
)
def test_a_key_that_cannot_be_sent_is_refused_and_not_shown(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "advisory.key"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(OperatorError, match="advisory_key_file") as error:
        open_advisor(settings(tmp_path, advisory_key_file=file))
    assert "canary" not in str(error.value)


def test_white_space_around_a_key_is_dropped(tmp_path: Path) -> None:
    file = tmp_path / "advisory.key"
    file.write_bytes(b"  key-canary-1 \r\n")
    opened = open_advisor(settings(tmp_path, advisory_key_file=file))
    assert opened._upstream is not None
    assert opened._upstream.key == "key-canary-1"
    assert "canary" not in repr(opened._upstream)
