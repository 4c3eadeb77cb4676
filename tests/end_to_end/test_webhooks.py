"""The process that delivers webhooks: killed at any moment it loses no event, and doubles none under another id."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import select
from standardwebhooks import Webhook
from werkzeug.serving import make_server

from gate.clock import utc_now
from gate.ids import timestamp
from gate.instance.instance import Instance
from gate.ledger.access.authority import Authority, Scope
from gate.ledger.chain.outbox import tell
from gate.ledger.tables import webhook_events
from gate.ledger.webhooks.endpoints import Endpoint
from gate.records.webhooks.events import Event, event_body
from gate.records.webhooks.types import EVENT_TYPES
from gate.services.webhooks.secrets import signed_headers
from tests.end_to_end.support import ROOT
from tests.support.postgres import database_of
from tests.support.receivers import LOOPBACK, Handler, Receiver, receiver
from tests.support.samples import sample_request
from tests.support.torture import chance, size

SUBJECTS = 7


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> Iterator[str | None]:
    with database_of(request) as url:
        yield url


@pytest.fixture(autouse=True)
def on_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in LOOPBACK.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def server() -> Iterator[Receiver]:
    with receiver() as made:
        yield made


@contextmanager
def delivering(home: Path, database_url: str | None) -> Iterator[subprocess.Popen[bytes]]:
    """The process of `gate serve`, which ends with this one."""
    found = {} if database_url is None else {"GATE_DATABASE_URL": database_url}
    process = subprocess.Popen(
        [sys.executable, "-m", "api.webhooks.process", str(home), str(os.getpid())],
        env={**os.environ, **found},
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(30)


def wait_for(condition: Callable[[], bool], seconds: float = 90.0) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)


def happen(instance: Instance, scope: Scope, first: int, count: int) -> None:
    events = [
        (Event("route.changed", f"rulebook_{number % SUBJECTS}", {"number": number}), None)
        for number in range(first, first + count)
    ]
    with instance.ledger.store.write() as connection:
        tell(connection, scope.scope_id, events, utc_now())


def ids_in(instance: Instance) -> set[str]:
    with instance.ledger.store.read() as connection:
        return set(connection.execute(select(webhook_events.c.event_id)).scalars())


def backlog(instance: Instance, endpoint: Endpoint) -> tuple[int, int]:
    found = instance.ledger.dead_letters.backlog(instance.ledger.endpoints.find(endpoint.endpoint_id))
    return found.new, found.pending


def test_kill_9_at_any_moment_loses_no_event_and_keeps_each_subject_in_order(
    instance: Instance, scope: Scope, home: Path, database_url: str | None, server: Receiver
) -> None:
    chances, seed = chance()
    endpoint = instance.webhooks.add(scope, server.url, EVENT_TYPES, utc_now())
    taken: list[tuple[str, Any]] = []
    lock = threading.Lock()
    refused: set[str] = set()

    def behave(handler: Handler) -> None:
        with lock:
            event_id = handler.headers["webhook-id"]
            # Each of these is refused once, and comes again with the same id.
            if handler.event["data"]["number"] in (20, 21, 150) and event_id not in refused:
                refused.add(event_id)
                status = 503
            else:
                taken.append((event_id, handler.event))
                status = 204
        handler.answer(status)

    server.behave = behave
    count = 0
    for _ in range(size(5, 60)):
        happen(instance, scope, count, 60)
        count += 60
        before = len(server.sent)
        with delivering(home, database_url):
            # Killed while it sends, while it writes, or before it has begun.
            wait_for(lambda before=before: len(server.sent) > before)  # type: ignore[misc]
            time.sleep(chances.uniform(0, 0.12))
    with delivering(home, database_url):
        wait_for(lambda: backlog(instance, endpoint) == (0, 0))
    assert {event_id for event_id, _ in taken} == ids_in(instance), seed
    assert len(refused) == 3
    bodies: dict[str, Any] = {}
    for event_id, event in taken:
        assert bodies.setdefault(event_id, event) == event
    for subject in range(SUBJECTS):
        first_taken = [
            event["data"]["number"] for event in bodies.values() if event["data"]["number"] % SUBJECTS == subject
        ]
        assert first_taken == sorted(first_taken), seed
    assert len(bodies) == count


def example() -> Any:
    """The program docs/examples/webhook_receiver.py."""
    found = importlib.util.spec_from_file_location(
        "webhook_receiver", ROOT / "docs" / "examples" / "webhook_receiver.py"
    )
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_the_example_of_a_receiver_verifies_and_handles_each_event_once(
    instance: Instance, scope: Scope, tmp_path: Path
) -> None:
    handled: list[Any] = []
    endpoint = instance.webhooks.add(scope, "http://127.0.0.1:1/hook", EVENT_TYPES, utc_now())
    (secret,) = instance.webhooks.secrets(endpoint, utc_now())
    app = example().create_app(secret, str(tmp_path / "received.db"), handled.append)
    server = make_server("127.0.0.1", 0, app)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{server.server_port}/hook"
    body = event_body(Event("route.changed", "prices", {"rulebook_id": "prices"}), timestamp(utc_now()))
    headers = signed_headers([secret], "evt_1", body, utc_now())
    try:
        sent = [httpx.post(url, headers=headers, content=body).status_code for _ in range(2)]
        forged = httpx.post(url, headers=headers, content=body.replace(b"prices", b"trades"))
        unsigned = httpx.post(url, content=body)
    finally:
        server.shutdown()
        thread.join()
    assert sent == [204, 204]
    assert [event["data"] for event in handled] == [{"rulebook_id": "prices"}]
    assert (forged.status_code, unsigned.status_code) == (401, 401)


def test_two_hosts_deliver_once_and_the_second_goes_on_where_the_first_dies(
    instance: Instance, scope: Scope, home: Path, database_url: str | None, server: Receiver
) -> None:
    endpoint = instance.webhooks.add(scope, server.url, EVENT_TYPES, utc_now())
    with delivering(home, database_url) as first:
        happen(instance, scope, 0, 40)
        wait_for(lambda: backlog(instance, endpoint) == (0, 0))
        with delivering(home, database_url):
            happen(instance, scope, 40, 40)
            wait_for(lambda: backlog(instance, endpoint) == (0, 0))
            assert len(server.sent) == 80
            first.send_signal(signal.SIGKILL)
            first.wait(30)
            happen(instance, scope, 80, 40)
            wait_for(lambda: backlog(instance, endpoint) == (0, 0))
    assert len({event_id for event_id, _ in server.sent}) == len(server.sent) == 120


def test_a_slow_endpoint_keeps_no_other_waiting_and_one_that_is_gone_is_disabled(
    instance: Instance, scope: Scope, authority: Authority, home: Path, database_url: str | None, server: Receiver
) -> None:
    released = threading.Event()
    with receiver() as slow, receiver() as gone:

        def slowly(handler: Handler) -> None:
            released.wait(60)
            handler.answer(204)

        slow.behave = slowly
        gone.behave = lambda handler: handler.answer(410)
        for each in (slow, gone, server):
            instance.webhooks.add(scope, each.url, EVENT_TYPES, utc_now())
        record = instance.gate().decide(authority, sample_request(discount_percent=10), request_id="r").record
        with delivering(home, database_url):
            wait_for(lambda: len(server.sent) == 1)
            wait_for(lambda: [of.disabled_by for of in instance.ledger.endpoints.all()] == [None, "gone", None])
            instance.gate().decide(authority, sample_request(discount_percent=10), request_id="r")
            wait_for(lambda: len(server.sent) == 2)
            released.set()
            wait_for(lambda: len(slow.sent) == 2)
        assert len(gone.sent) == 1
    mine = instance.ledger.endpoints.all()[2]
    secret = instance.webhooks.secrets(mine, utc_now())[0]
    _, headers, body = server.requests[0]
    assert Webhook(secret).verify(body, headers)["data"]["decision_id"] == record["decision_id"]
