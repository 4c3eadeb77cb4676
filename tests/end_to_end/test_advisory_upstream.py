"""An upstream that stalls holds up advisory calls alone: binding decisions go on, and the service stops."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.end_to_end.site import PATIENCE, Site, wait_until
from tests.end_to_end.support import free_port, post_decide
from tests.support import upstreams
from tests.support.samples import sample_request

QUESTION = {"mode": "single", "question": "May we refund order 7?"}
CALLS = 4
WORKERS = 2


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """An instance on SQLite: what stalls here is no ledger."""
    return Site(tmp_path / "home", None)


@contextmanager
def asking(upstream: upstreams.Server, url: str, key: str, calls: int) -> Iterator[list[httpx.Response | None]]:
    """So many questions under way at an upstream; what each was answered, None where its connection was ended."""
    answers: list[httpx.Response | None] = []

    def ask() -> None:
        # Until a worker takes it that does not ask as many as it may.
        while True:
            try:
                answer = httpx.post(
                    f"{url}/api/decide", json=QUESTION, headers={"x-api-key": key}, timeout=PATIENCE, trust_env=False
                )
            except httpx.TransportError:
                answers.append(None)
                return
            if "already" not in answer.json().get("message", ""):
                answers.append(answer)
                return

    threads = [threading.Thread(target=ask, daemon=True) for _ in range(calls)]
    for thread in threads:
        thread.start()
    try:
        wait_until(lambda: len(upstream.asked) == calls)
        yield answers
    finally:
        for thread in threads:
            thread.join(PATIENCE)


def configure(site: Site, upstream: upstreams.Server, seconds: int) -> None:
    with (site.home / "settings.toml").open("a") as settings:
        settings.write(
            f'advisory_url = "{upstream.url}"\nadvisory_model = "model-1"\nadvisory_timeout_seconds = {seconds}\n'
        )


def test_a_stalling_upstream_holds_up_no_binding_decision_and_no_stop(site: Site) -> None:
    with upstreams.serving() as upstream:
        upstream.behave, _ = upstreams.BEHAVIORS["is silent"]
        key = site.create_key("acme")
        configure(site, upstream, seconds=120)
        with site.serving(WORKERS) as server:
            with asking(upstream, server.url, key, CALLS * WORKERS) as answers:
                # Each on a connection of its own, so that every worker gets some of them.
                decided = [post_decide(server.url, key, sample_request()) for _ in range(24)]
                busy = [post_decide(server.url, key, QUESTION) for _ in range(8)]
                assert {answer.status_code for answer in decided} == {200}
                for answer in busy:
                    assert (answer.status_code, answer.json()["error"]) == (503, "SVC_ADVISORY_BUSY")
                    assert int(answer.headers["retry-after"]) > 0
                # All of it while every call still waits.
                assert answers == []
                assert len(upstream.asked) == CALLS * WORKERS
                code = server.stop()
            text = server.text()
    assert code == 0, text
    assert "Traceback" not in text
    assert "refused to gracefully stop" not in text
    # Those who asked learn that they may ask again, or lose the connection at worst.
    assert len(answers) == CALLS * WORKERS
    for given_up in answers:
        assert given_up is None or (given_up.status_code, given_up.json()["error"]) == (503, "SVC_ADVISORY_BUSY")
    checked = site.gate("chain", "check", "--scope", "acme")
    assert (checked["whole"], checked["chains"][0]["entries_checked"]) == (True, 24)


def test_the_service_does_not_start_with_an_address_that_cannot_be_asked(site: Site) -> None:
    site.create_key("acme")
    with (site.home / "settings.toml").open("a") as settings:
        settings.write('advisory_url = "http://models.example:65536/v1"\nadvisory_model = "model-1"\n')
    command = site.command("serve", "--port", str(free_port()), "--no-analytics")
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 2
    assert "ADVISORY_SETTINGS_INVALID" in done.stderr
    assert "advisory_url must have a host, and either no port or one from 1 to 65535" in done.stderr.replace("\n", " ")
