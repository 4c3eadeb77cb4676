"""The settings of an upstream: those that cannot be used are refused with what to do, and without a secret."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gate.errors import OperatorError
from gate.instance.advisory import advisory_state, may_hold_key, open_advisor
from gate.instance.settings import Settings, load_settings
from tests.support.certificates import certificate


def settings(home: Path, **said: Any) -> Settings:
    return Settings(home=home, **({"advisory_url": "http://[::1]:8000/v1", "advisory_model": "model-1"} | said))


def key_file(home: Path, content: bytes = b"key-canary-1", mode: int = 0o600) -> Path:
    file = home / "advisory.key"
    file.write_bytes(content)
    file.chmod(mode)
    return file


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:1",
        "http://127.0.0.1:65535/v1",
        "https://models.example.com",
        "https://models.example.com/v1/a%20b",
        "http://[::1]/v1",
        "http://[fe80::1]:8000",
        "https://models.example.com/chat/completions/v1",
    ],
)
def test_an_address_is_taken(tmp_path: Path, url: str) -> None:
    assert open_advisor(settings(tmp_path, advisory_url=url)).ready
    assert advisory_state(settings(tmp_path, advisory_url=url)) == ("ready", None)


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
    assert advisory_state(settings(tmp_path, advisory_url=url)) == ("unavailable", message)


@pytest.mark.parametrize("path", ["/chat/completions", "/v1/chat/completions", "/v1/Chat/Completions"])
def test_the_address_of_the_endpoint_is_refused_with_what_to_leave_out(tmp_path: Path, path: str) -> None:
    with pytest.raises(OperatorError, match="Remove /chat/completions") as error:
        open_advisor(settings(tmp_path, advisory_url=f"https://models.example.com{path}"))
    assert error.value.code == "ADVISORY_SETTINGS_INVALID"


@pytest.mark.parametrize(
    ("url", "must"),
    [
        ("models.example.com/v1", "begin with http:// or https://"),
        ("ftp://h.example", "begin with http:// or https://"),
        ("HTTPS://h.example", "begin with http:// or https://"),
        ("http://h.example/hunter2 ", "have no white space"),
        ("http://user:hunter2@h.example", "have no user or password before its host"),
        ("http://hunter2@", "have no user or password before its host"),
        ("https://", "have a host after its ://"),
        ("http:///v1", "have a host after its ://"),
        ("http://?hunter2", "have a host after its ://"),
        ("http://h.example/?key=hunter2", "have no query, which begins with ?"),
        ("http://h.example/v1#hunter2", "have no fragment, which begins with #"),
        ("http://h.example/v1#hunter2?", "have no fragment, which begins with #"),
        ("http://h.example/", "have no slash at its end"),
        ("http://h.example/v1/", "have no slash at its end"),
    ],
)
def test_an_address_of_another_form_is_refused_with_the_part_at_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, must: str
) -> None:
    monkeypatch.setenv("GATE_ADVISORY_URL", url)
    with pytest.raises(OperatorError) as error:
        load_settings(tmp_path)
    write = "GATE_ADVISORY_URL=https://models.example.com/v1"
    assert error.value.message == f"GATE_ADVISORY_URL in the environment must {must}. Write {write}, for example."


@pytest.mark.parametrize(
    ("content", "says"),
    [(None, "which cannot be read: No such file or directory"), (b"", "no usable certificate"), (b"-", "no usable")],
)
def test_a_file_of_authorities_that_cannot_be_used_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None, says: str
) -> None:
    file = tmp_path / "authorities.pem"
    if content is not None:
        file.write_bytes(content)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    with pytest.raises(OperatorError, match="ADVISORY_SETTINGS_INVALID") as error:
        open_advisor(settings(tmp_path, advisory_url="https://models.example.com/v1"))
    assert error.value.message.startswith(f"SSL_CERT_FILE is {file}, which ")
    assert says in error.value.message
    # Without TLS nobody needs it.
    assert open_advisor(settings(tmp_path)).ready


def test_a_file_of_authorities_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate(tmp_path, "models.example.com")))
    assert open_advisor(settings(tmp_path, advisory_url="https://models.example.com/v1")).ready


@pytest.mark.parametrize(
    ("said", "names"),
    [
        ({"advisory_model": ""}, "advisory_model"),
        ({"advisory_model": "a\nb"}, "advisory_model"),
        ({"advisory_model": "\udc80"}, "advisory_model"),
        ({"advisory_model": " "}, "advisory_model must .* without a space at its beginning or end"),
        ({"advisory_model": "model-1 "}, "advisory_model must .* without a space at its beginning or end"),
        ({"advisory_url": ""}, "advisory_url"),
    ],
)
def test_settings_that_do_not_fit_together_are_named(tmp_path: Path, said: dict[str, str], names: str) -> None:
    with pytest.raises(OperatorError, match=names):
        open_advisor(settings(tmp_path, **said))


@pytest.mark.parametrize(
    "content", [b"", b"  \n", b"two words", b"key-canary\r\nx-more: 1", b"key-canary-\xff", b"k" * 4097, b"a\0b"]
)
def test_a_key_that_cannot_be_sent_is_refused_and_not_shown(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(OperatorError, match=r"advisory_key_file .* one key of at most 4,096 printable ASCII") as error:
        open_advisor(settings(tmp_path, advisory_key_file=key_file(tmp_path, content)))
    assert "canary" not in str(error.value)


def test_a_key_file_that_is_missing_is_named(tmp_path: Path) -> None:
    file = tmp_path / "advisory.key"
    with pytest.raises(OperatorError, match=f"advisory_key_file {file} cannot be read: No such file"):
        open_advisor(settings(tmp_path, advisory_key_file=file))


def test_white_space_around_a_key_is_dropped(tmp_path: Path) -> None:
    opened = open_advisor(settings(tmp_path, advisory_key_file=key_file(tmp_path, b"  key-canary-1 \r\n")))
    assert opened._upstream is not None
    assert opened._upstream.key == "key-canary-1"
    assert "canary" not in repr(opened._upstream)


@pytest.mark.parametrize("mode", [0o644, 0o604, 0o666])
def test_a_key_that_others_can_read_is_refused_with_what_to_run(tmp_path: Path, mode: int) -> None:
    file = key_file(tmp_path, mode=mode)
    with pytest.raises(OperatorError, match=f"run chmod 600 {file}") as error:
        open_advisor(settings(tmp_path, advisory_key_file=file))
    assert error.value.code == "ADVISORY_SETTINGS_INVALID"
    assert "canary" not in str(error.value)
    file.chmod(0o600)
    assert open_advisor(settings(tmp_path, advisory_key_file=file)).ready


@pytest.mark.parametrize(
    ("mode", "owner", "mounted", "may"),
    [
        (0o600, 1000, False, True),
        (0o400, 10001, False, True),
        (0o640, 1000, False, False),
        (0o604, 1000, False, False),
        # What root gave to the group of the service.
        (0o640, 0, False, True),
        (0o644, 0, False, False),
        # The secrets of Kubernetes, of Docker Swarm, and of Compose.
        (0o644, 0, True, True),
        (0o444, 0, True, True),
        (0o644, 1000, True, True),
    ],
)
def test_a_key_may_be_in_a_file_that_only_its_service_sees(mode: int, owner: int, mounted: bool, may: bool) -> None:
    assert may_hold_key(0o100000 | mode, owner, mounted=mounted) is may
