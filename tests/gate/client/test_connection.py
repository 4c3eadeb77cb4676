"""Where the service is and with which key: what is read, and what is never shown."""

from __future__ import annotations

import copy
import json
import logging
import os
import traceback
from pathlib import Path
from typing import Any

import httpx
import pytest

from gate.client import ApiError, AsyncClient, Client, GateError, Unauthorized
from gate.client.connection import service_url
from gate.errors import MaterialRefused, OperatorError
from tests.gate.client.conftest import Service
from tests.support.samples import RECEIPT_KEYS, make_record, sample_request

KEY = "dgk_0123456789ab_notToBeSeenAnywhere"


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("GATE_"):
            monkeypatch.delenv(name)


class TestAddress:
    @pytest.mark.parametrize(
        "url", ["https://gate.example", "http://127.0.0.1:8080", "https://gate.example/decisions", "http://[::1]:8080"]
    )
    def test_it_is_taken_without_its_last_slash(self, url: str) -> None:
        assert service_url(f"{url}/") == url

    @pytest.mark.parametrize(
        "url",
        [
            "",
            "gate.example",
            "ftp://gate.example",
            "https://",
            "https://gate.example:port",
            "https://gate.example:99999",
            "https://gate.example/?a=b",
            "https://gate.example/?",
            "https://gate.example/#a",
            "https://user@gate.example",
            "https://user:word@gate.example",
            "https://gate.example/a b",
            "https://gate.example/\n",
            "https://gäte.example",
        ],
    )
    def test_what_is_none_is_refused(self, url: str) -> None:
        with pytest.raises(OperatorError) as refused:
            service_url(url)
        assert refused.value.code == "SERVICE_URL_INVALID"

    @pytest.mark.parametrize("url", ["gate.example", "secretWord", "ftp://secretWord"])
    def test_what_is_no_address_is_said_to_be_none_and_not_repeated(self, url: str) -> None:
        with pytest.raises(OperatorError) as refused:
            Client(url)
        assert refused.value.message == (
            "The service's address is not a URL; write it as https://gate.example or http://host:8080."
        )

    @pytest.mark.parametrize(
        "form", ["https://{}@gate.example", "https://gate.example/{}", "https://gate.example/?k={}"]
    )
    def test_a_key_in_it_is_refused_and_not_repeated(self, form: str) -> None:
        with pytest.raises(OperatorError, match="contains an API key") as refused:
            Client(form.format(KEY))
        assert KEY not in str(refused.value)

    def test_it_comes_from_the_environment_where_it_is_not_given(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("GATE_URL", "https://gate.example/")
        assert repr(Client()) == "<Client of https://gate.example>"
        monkeypatch.delenv("GATE_URL")
        with pytest.raises(OperatorError, match="GATE_URL"):
            Client()

    @pytest.mark.parametrize(
        "said", [{"timeout": 0}, {"timeout": float("inf")}, {"timeout": float("nan")}, {"tries": 0}]
    )
    def test_numbers_that_mean_nothing_are_refused(self, said: dict[str, Any]) -> None:
        with pytest.raises(OperatorError, match="TIMEOUT_INVALID"):
            Client("https://gate.example", **said)


class TestKey:
    def sent(self, *arguments: Any, **said: Any) -> str | None:
        seen: list[str | None] = []

        def answer(request: httpx.Request) -> httpx.Response:
            seen.append(request.headers.get("x-api-key"))
            return httpx.Response(200, json={})

        with Client("https://gate.example", *arguments, transport=httpx.MockTransport(answer), **said) as client:
            client.find_decisions()
        return seen[0]

    def test_it_is_given_or_read_from_a_file_or_the_environment(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file = tmp_path / "gate.key"
        file.write_text(f"{KEY}\n")
        assert self.sent(key=KEY) == KEY
        assert self.sent(key_file=file) == KEY
        monkeypatch.setenv("GATE_API_KEY", KEY)
        assert self.sent() == KEY
        monkeypatch.delenv("GATE_API_KEY")
        monkeypatch.setenv("GATE_API_KEY_FILE", str(file))
        assert self.sent() == KEY

    def test_a_file_that_is_replaced_is_read_again(self, tmp_path: Path) -> None:
        file, seen = tmp_path / "gate.key", []

        def answer(request: httpx.Request) -> httpx.Response:
            seen.append(request.headers["x-api-key"])
            return httpx.Response(200, json={})

        file.write_text("dgk_1_old")
        with Client("https://gate.example", key_file=file, transport=httpx.MockTransport(answer)) as client:
            client.find_decisions()
            (tmp_path / "next").write_text("dgk_2_new")
            (tmp_path / "next").replace(file)
            client.find_decisions()
        assert seen == ["dgk_1_old", "dgk_2_new"]

    def test_public_endpoints_are_asked_without_it(self) -> None:
        seen: list[httpx.Request] = []

        def answer(request: httpx.Request) -> httpx.Response:
            seen.append(request)
            return httpx.Response(200, json={"keys": [], "active_key_id": None})

        with Client("https://gate.example", key=KEY, transport=httpx.MockTransport(answer)) as client:
            client.list_receipt_keys()
        assert KEY not in str(seen[0].headers.raw)

    def test_without_one_nothing_is_sent(self) -> None:
        with pytest.raises(OperatorError, match="GATE_API_KEY_FILE"):
            self.sent()

    @pytest.mark.parametrize("text", ["", "two words", "line\nbreak", "käse", "x" * 501])
    def test_what_is_none_is_refused_and_not_repeated(self, tmp_path: Path, text: str) -> None:
        file = tmp_path / "gate.key"
        file.write_text(text)
        for said in ({"key": text}, {"key_file": file}):
            with pytest.raises(GateError) as refused:
                self.sent(**said)
            assert refused.value.code == "API_KEY_INVALID"
            assert not text or text not in str(refused.value)

    def test_two_of_them_are_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with pytest.raises(OperatorError, match="not both"):
            Client("https://gate.example", key=KEY, key_file=tmp_path / "gate.key")
        monkeypatch.setenv("GATE_API_KEY", KEY)
        monkeypatch.setenv("GATE_API_KEY_FILE", "gate.key")
        with pytest.raises(OperatorError, match="not both"):
            Client("https://gate.example")

    def test_a_file_that_is_not_there_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(OperatorError, match="no-such"):
            self.sent(key_file=tmp_path / "no-such")

    def test_it_is_in_no_representation_log_or_error(self, service: Service, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG)
        client = Client("http://gate.example", key=KEY, transport=service)
        with pytest.raises(Unauthorized) as refused:
            client.decide(sample_request())
        down = Client("http://127.0.0.1:1", key=KEY, tries=1)
        with pytest.raises(ApiError) as unreachable:
            down.decide(sample_request())
        shown = [caplog.text, str(refused.value), repr(refused.value), str(unreachable.value), repr(unreachable.value)]
        for each in (client, down, AsyncClient("http://gate.example", key=KEY)):
            shown += [repr(each), str(vars(each)), repr(vars(vars(each)["_credentials"]))]
        for error in (refused.value, unreachable.value):
            shown += traceback.TracebackException.from_exception(error, capture_locals=True).format()
        with pytest.raises(TypeError, match="cannot be pickled"):
            copy.deepcopy(client._credentials)
        assert KEY not in "".join(shown)
        assert "notToBeSeenAnywhere" not in "".join(shown)


class TestPinnedKeys:
    @pytest.fixture
    def registry(self, tmp_path: Path) -> Path:
        file = tmp_path / "keys.json"
        file.write_text(json.dumps(RECEIPT_KEYS.to_dict()))
        return file

    def test_a_record_verifies_against_a_saved_registry_without_the_service(self, registry: Path) -> None:
        client = Client("https://gate.example", registry=registry)
        assert client.verify(make_record(), request=sample_request()).verified
        assert not client.verify({**make_record(), "verdict": "no"}).verified

    def test_the_environment_names_one(self, registry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("GATE_KEY_REGISTRY", str(registry))
        assert Client("https://gate.example").verify(make_record()).verified

    def test_without_one_nothing_verifies(self) -> None:
        result = Client("https://gate.example").verify(make_record())
        assert not result.verified
        assert result.error == "SIGNING_KEY_UNKNOWN"

    def test_a_registry_that_is_replaced_is_read_again(self, registry: Path) -> None:
        client = Client("https://gate.example", registry=registry)
        assert client.verify(make_record()).verified
        registry.with_name("next").write_text('{"keys": [], "active_key_id": null}')
        registry.with_name("next").replace(registry)
        assert not client.verify(make_record()).verified

    @pytest.mark.parametrize("content", ["", "{}", '{"keys": 7}', "x" * (1024 * 1024 + 1)])
    def test_a_file_that_holds_none_is_refused(self, registry: Path, content: str) -> None:
        registry.write_text(content)
        with pytest.raises(GateError):
            Client("https://gate.example", registry=registry).verify(make_record())

    def test_a_document_that_holds_none_is_refused_at_once(self) -> None:
        with pytest.raises(MaterialRefused):
            Client("https://gate.example", registry={"keys": 7})
