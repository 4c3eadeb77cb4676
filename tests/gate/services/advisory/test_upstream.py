"""The connection to an upstream: TLS with a certificate that is trusted, either kind of address, and calls given up."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from pathlib import Path
from typing import Final

import pytest

from gate.errors import AdvisoryFailed, ServiceUnavailable
from gate.records.request import DecisionRequest, read_request
from gate.services.advisory.advisor import CALLS, Advisor
from gate.services.advisory.upstream import Upstream
from tests.end_to_end.support import free_port
from tests.support.certificates import certificate
from tests.support.upstreams import BEHAVIORS, Server, completion, fitting, serving

KEY: Final = "upstream-key-0123456789"
REQUEST: Final[DecisionRequest] = read_request({"mode": "single", "question": "May we?"}, "0" * 64)


def advisor(url: str, seconds: float = 5.0) -> Advisor:
    return Advisor(Upstream(url, "model-1", seconds, KEY))


def speaking(file: Path) -> ssl.SSLContext:
    """TLS as a server with a certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context


def test_a_trusted_certificate_is_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = certificate(tmp_path, "127.0.0.1")
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    with serving(tls=speaking(file)) as upstream:
        assert upstream.url.startswith("https://127.0.0.1:")
        assert advisor(upstream.url).advise(REQUEST).said.verdict == "yes"
        ((_, headers, _),) = upstream.asked
    assert headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    ("name", "days", "trusted"), [("127.0.0.1", 1, False), ("other.example", 1, True), ("127.0.0.1", -1, True)]
)
def test_a_certificate_that_proves_nothing_gets_neither_key_nor_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, days: int, trusted: bool
) -> None:
    file = certificate(tmp_path, name, days=days)
    other = certificate(tmp_path, "another.example")
    monkeypatch.setenv("SSL_CERT_FILE", str(file if trusted else other))
    with serving(tls=speaking(file)) as upstream:
        with pytest.raises(AdvisoryFailed, match="certificate that this machine does not trust") as error:
            advisor(upstream.url).advise(REQUEST)
        assert "Retrying does not help: the operator must correct advisory_url, the cert" in error.value.message
        assert upstream.asked == []


@pytest.mark.parametrize("stalls", [True, False])
def test_what_speaks_no_tls_is_no_upstream(stalls: bool) -> None:
    with serving() as upstream:
        url = upstream.url.replace("http:", "https:")
        if stalls:
            listener = socket.create_server(("127.0.0.1", 0))
            url = f"https://127.0.0.1:{listener.getsockname()[1]}/v1"
        with pytest.raises(AdvisoryFailed, match="no answer within" if stalls else "could not be reached"):
            advisor(url, seconds=0.5).advise(REQUEST)
        assert upstream.asked == []
        if stalls:
            listener.close()


def test_an_address_of_ip_version_6_is_asked() -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no IPv6")
    with serving("::1") as upstream:
        assert "[::1]" in upstream.url
        assert advisor(upstream.url).advise(REQUEST).said.verdict == "yes"
        ((path, headers, _),) = upstream.asked
    assert (path, headers["host"]) == ("/v1/chat/completions", upstream.url.split("/")[2])


def test_an_upstream_that_nobody_is_at_is_told_of_without_its_address() -> None:
    url = f"http://127.0.0.1:{free_port()}/v1"
    with pytest.raises(AdvisoryFailed, match="could not be reached") as error:
        advisor(url).advise(REQUEST)
    assert "127.0.0.1" not in str(error.value)


@pytest.mark.parametrize("behavior", ["is silent", "drips", "drips its head"])
def test_closing_gives_up_every_call_and_takes_no_more(behavior: str) -> None:
    with serving() as upstream:
        upstream.behave, _ = BEHAVIORS[behavior]
        asks = advisor(upstream.url, seconds=60)
        codes: list[str] = []

        def ask() -> None:
            with pytest.raises(ServiceUnavailable) as error:
                asks.advise(REQUEST)
            codes.append(error.value.code)
            assert "stopping" in error.value.message

        threads = [threading.Thread(target=ask) for _ in range(CALLS)]
        for thread in threads:
            thread.start()
        _wait_for(upstream, CALLS)
        asks.close()
        for thread in threads:
            # Far from the 60 seconds that each may take.
            thread.join(30)
        assert codes == ["SVC_ADVISORY_BUSY"] * CALLS
        ask()
        assert len(upstream.asked) == CALLS


def _wait_for(upstream: Server, calls: int) -> None:
    waited = threading.Event()
    while len(upstream.asked) < calls:
        waited.wait(0.01)


@pytest.mark.parametrize("escape", [False, True])
def test_an_answer_that_repeats_the_key_is_refused(escape: bool) -> None:
    content = json.dumps({**fitting("single"), "reason": f"Your key is {KEY}."})
    if escape:
        content = content.replace("upstream", "\\u0075pstream")
    with serving() as upstream:
        upstream.behave = lambda handler: handler.send(completion(content))
        with pytest.raises(AdvisoryFailed, match="contains the key") as error:
            advisor(upstream.url).advise(REQUEST)
    assert KEY not in str(error.value)


def test_a_word_for_a_key_may_be_in_an_answer() -> None:
    with serving() as upstream:
        asks = Advisor(Upstream(upstream.url, "model-1", 5.0, "none"))
        upstream.answer({"answer": "no", "reason": "There is none."})
        assert asks.advise(REQUEST).said.verdict == "no"
