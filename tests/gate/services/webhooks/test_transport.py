"""One request to an endpoint, over real sockets: where it goes, and what of the answer counts."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import Iterator
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest

from gate.services.webhooks.addresses import Rules
from gate.services.webhooks.connection import Resolve
from gate.services.webhooks.transport import Answer, Transport
from tests.support.certificates import certificate
from tests.support.receivers import Handler, Receiver, receiver

RULES = Rules(allow_http=True, networks=(ip_network("127.0.0.0/8"),))


@pytest.fixture
def server() -> Iterator[Receiver]:
    with receiver() as made:
        yield made


def post(*urls: str, rules: Rules = RULES, seconds: float = 10.0, **options: Any) -> list[Answer]:
    async def sent() -> list[Answer]:
        transport = Transport(rules, seconds=seconds, **options)
        try:
            return [await transport.post(url, {"webhook-id": "evt_1"}, b'{"type":"x"}') for url in urls]
        finally:
            await transport.close()

    return asyncio.run(sent())


def leads_to(*answers: list[str]) -> tuple[Resolve, list[str]]:
    """A name service that gives one answer after the other, and the names that it was asked for."""
    asked: list[str] = []

    async def resolve(host: str, port: int) -> list[str]:
        asked.append(host)
        return answers[min(len(asked), len(answers)) - 1]

    return resolve, asked


def test_an_event_is_taken_with_2xx_over_one_connection(server: Receiver) -> None:
    server.behave = lambda handler: handler.answer(200 + len(server.sent), b"thank you")
    answers = post(server.url, server.url, server.url)
    assert [(answer.status, answer.error) for answer in answers] == [(201, None), (202, None), (203, None)]
    assert server.connections == 1
    path, headers, body = server.requests[0]
    assert (path, body) == ("/hook", b'{"type":"x"}')
    assert headers["webhook-id"] == "evt_1"
    assert headers["host"] == f"127.0.0.1:{server.server_port}"
    assert headers["content-type"] == "application/json"


@pytest.mark.parametrize("status", [199 + 101, 301, 302, 307, 308, 400, 404, 410, 429, 500, 503])
def test_no_other_status_says_that_it_was_taken(server: Receiver, status: int) -> None:
    server.behave = lambda handler: handler.answer(status)
    (answer,) = post(server.url)
    assert (answer.status, answer.error is not None, answer.is_gone) == (status, True, status == 410)


def test_a_redirect_is_followed_nowhere(server: Receiver) -> None:
    with receiver() as private:
        server.behave = lambda handler: handler.answer(307, location=private.url)
        (answer,) = post(server.url)
        assert private.connections == 0
    assert "redirect" in str(answer.error)


def test_an_answer_is_read_to_a_few_kilobytes_and_no_further(server: Receiver) -> None:
    written = []

    def endless(handler: Handler) -> None:
        handler.send_response(200)
        handler.send_header("content-length", str(1 << 40))
        handler.end_headers()
        piece = bytes(1 << 16)
        try:
            while True:
                handler.wfile.write(piece)
                written.append(len(piece))
        except OSError:
            return

    server.behave = endless
    (answer,) = post(server.url)
    assert (answer.status, answer.error) == (200, None)
    # What the kernels buffer on the way is not read by anybody.
    assert sum(written) < 64 * 1024 * 1024


def test_a_head_without_an_end_is_no_answer(server: Receiver) -> None:
    def endless(handler: Handler) -> None:
        try:
            handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
            while True:
                handler.wfile.write(b"x-filler: " + b"y" * 1000 + b"\r\n")
        except OSError:
            return

    server.behave = endless
    (answer,) = post(server.url)
    assert (answer.status, answer.error) == (None, "Its answer is not HTTP, is too large, or is incomplete.")


@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 200 OK\r\n", b"hello\r\n\r\n", b"HTTP/1.1 100 Continue\r\n\r\n"])
def test_what_is_no_whole_answer_fails(server: Receiver, said: bytes) -> None:
    def breaks_off(handler: Handler) -> None:
        handler.wfile.write(said)
        handler.close_connection = True

    server.behave = breaks_off
    (answer,) = post(server.url)
    assert answer.status is None
    assert answer.error is not None


def test_an_endpoint_that_never_answers_is_given_up_in_time(server: Receiver) -> None:
    server.behave = lambda handler: time.sleep(3)
    (answer,) = post(server.url, seconds=0.3)
    assert answer.error == "It gave no answer within 0.3 seconds."
    assert answer.seconds < 2.5


def test_an_endpoint_that_trickles_its_body_has_taken_the_event(server: Receiver) -> None:
    def trickles(handler: Handler) -> None:
        handler.send_response(200)
        handler.send_header("content-length", "1000")
        handler.end_headers()
        handler.wfile.flush()
        time.sleep(2)

    server.behave = trickles
    (answer,) = post(server.url, seconds=0.3)
    assert (answer.status, answer.error) == (200, None)
    assert answer.seconds < 1.8


def test_a_connection_that_was_closed_meanwhile_is_replaced(server: Receiver) -> None:
    def closes(handler: Handler) -> None:
        handler.answer(200)
        handler.close_connection = True

    server.behave = closes
    assert [answer.error for answer in post(*[server.url] * 4)] == [None] * 4


def test_a_private_address_is_refused_without_a_connection(server: Receiver) -> None:
    refused = post(server.url, rules=Rules(allow_http=True))[0]
    assert "not a public address" in str(refused.error)
    name = f"http://hooks.example.com:{server.server_port}/"
    resolve, asked = leads_to(["127.0.0.1"])
    refused = post(name, rules=Rules(allow_http=True), resolve=resolve)[0]
    assert "not a public address" in str(refused.error)
    assert (asked, server.connections) == (["hooks.example.com"], 0)


def test_one_private_address_among_public_ones_refuses_the_name(server: Receiver) -> None:
    resolve, _ = leads_to(["127.0.0.1", "10.0.0.1"])
    (answer,) = post(f"http://hooks.example.com:{server.server_port}/", resolve=resolve)
    assert "10.0.0.1" in str(answer.error)
    assert server.connections == 0


def test_a_name_that_leads_elsewhere_after_it_was_checked_is_not_asked_again(server: Receiver) -> None:
    resolve, asked = leads_to(["127.0.0.1"], ["10.0.0.1"])
    (answer,) = post(f"http://rebinding.example.com:{server.server_port}/", resolve=resolve)
    assert (answer.error, asked) == (None, ["rebinding.example.com"])


def test_a_name_is_checked_again_for_a_new_connection(server: Receiver) -> None:
    def closes(handler: Handler) -> None:
        handler.answer(200, connection="close")
        handler.close_connection = True

    server.behave = closes
    resolve, asked = leads_to(["127.0.0.1"], ["10.0.0.1"])
    url = f"http://rebinding.example.com:{server.server_port}/"
    first, second = post(url, url, resolve=resolve)
    assert first.error is None
    assert "10.0.0.1" in str(second.error)
    assert len(asked) == 2


def test_proxies_of_the_environment_are_not_used(server: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    with receiver() as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.server_port}")
        assert post(server.url)[0].error is None
        assert proxy.connections == 0


def test_tls_is_for_the_name_though_the_connection_goes_to_the_address(tmp_path: Path) -> None:
    file = certificate(tmp_path, "hooks.example.com")
    trusting = ssl.create_default_context(cafile=str(file))
    resolve, _ = leads_to(["127.0.0.1"])
    with receiver(file) as server:
        own = f"https://hooks.example.com:{server.server_port}/"
        assert post(own, resolve=resolve, context=trusting)[0].error is None
        other = f"https://other.example.com:{server.server_port}/"
        assert "certificate" in str(post(other, resolve=resolve, context=trusting)[0].error)
        assert "certificate" in str(post(own, resolve=resolve)[0].error)
        assert len(server.sent) == 1


def test_what_cannot_be_reached_is_named() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        (answer,) = post(f"http://127.0.0.1:{bound.getsockname()[1]}/")
    assert answer.error == "It refused the connection."
    assert post("http://nowhere.invalid/")[0].error == "Its name cannot be resolved."
