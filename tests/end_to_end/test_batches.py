"""Batches of real clients: servers killed in the middle, and two servers that are sent the same keys at once."""

from __future__ import annotations

import itertools
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import httpx
import orjson
import pytest

from gate.decisions.stored import stored_record
from tests.end_to_end.site import PATIENCE, Crew, Site, request_of, side_by_side, wait_until, workers_of
from tests.support.torture import chance, report, size

CLIENTS = 4
REQUESTS = 25


def batch_of(names: Sequence[str]) -> bytes:
    """A batch of a request for each name, which is its idempotency key as well."""
    items = [{"request": orjson.loads(request_of(name)), "idempotency_key": name} for name in names]
    return orjson.dumps({"requests": items})


class Batches:
    """Clients that send batches without a break; what is not wholly decided is sent again until it is.

    Attributes:
        url: The server.
        answers: The records, by idempotency key.
        sent: The names of each batch that was answered.
        again: How many batches were sent more than once.
        found: How many records those were answered with that had been made before.
    """

    def __init__(self, url: str, key: str) -> None:
        self.url = url
        self.answers: dict[str, bytes] = {}
        self.sent: list[list[str]] = []
        self.again = self.found = 0
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._headers = {"x-api-key": key, "content-type": "application/json"}
        self._crew = Crew(CLIENTS, self._turn)

    def __enter__(self) -> Batches:
        self._crew.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._crew.__exit__(*error)

    def wait_for(self, more: int) -> None:
        """Waits until so many more batches were answered."""
        goal = len(self.sent) + more
        self._crew.wait_until(lambda: len(self.sent) >= goal)

    def send(self, names: Sequence[str]) -> list[dict[str, Any]] | None:
        """What becomes of each; None where there is no answer, or one is not decided."""
        try:
            answer = httpx.post(
                f"{self.url}/api/decide/batch",
                content=batch_of(names),
                headers=self._headers,
                timeout=30,
                trust_env=False,
            )
        except httpx.TransportError:
            return None
        if answer.status_code != 200:
            return None
        results: list[dict[str, Any]] = answer.json()["results"]
        assert len(results) == len(names)
        # A worker that ended may have been at work for another, which then hears of no commit.
        if any(result["status"] == "refused" for result in results):
            assert {result["http_status"] for result in results} <= {200, 503}
            return None
        return results

    def _turn(self, _: int) -> None:
        number = next(self._numbers)
        names = [f"batch {number} order {at}" for at in range(REQUESTS)]
        deadline, tries = time.monotonic() + PATIENCE, 1
        while (results := self.send(names)) is None:
            assert time.monotonic() < deadline, f"batch {number} is not answered"
            tries += 1
            time.sleep(0.1)
        with self._lock:
            self.answers |= {name: orjson.dumps(of["record"]) for name, of in zip(names, results, strict=True)}
            self.sent.append(names)
            self.again += tries > 1
            self.found += sum(result["status"] == "replayed" for result in results)


@pytest.mark.skipif(sys.platform != "linux", reason="a server's workers are found in /proc")
def test_what_a_batch_acknowledged_survives_kill_9_and_is_there_once(site: Site) -> None:
    key = site.create_key("acme")
    chances, seed = chance()
    with ExitStack() as running:
        server = running.enter_context(site.serving())
        with Batches(server.url, key) as load:
            for _ in range(size(2, 25)):
                load.wait_for(CLIENTS)
                time.sleep(chances.uniform(0, 0.1))
                before = workers_of(server)
                os.kill(chances.choice(before), signal.SIGKILL)
                # A server gives up when a worker dies that it has only just started.
                wait_until(lambda before=before: len(set(workers_of(server)) - set(before)) == 1)  # type: ignore[misc]
            load.wait_for(CLIENTS)
            time.sleep(chances.uniform(0, 0.1))
            os.killpg(server.process.pid, signal.SIGKILL)
            server.process.wait(30)
            running.close()
            server = running.enter_context(site.serving())
            load.url = server.url
            load.wait_for(CLIENTS)
        for names in load.sent:
            results = load.send(names)
            assert results is not None
            assert {result["status"] for result in results} == {"replayed"}
            assert [orjson.dumps(result["record"]) for result in results] == [load.answers[name] for name in names]
        site.require_exactly(load.answers, "acme", server.url, key)
    report(
        f"seed {seed}: {len(load.answers)} records in {len(load.sent)} batches; {load.again} batches were sent again, "
        f"and {load.found} of their records had been made"
    )
    assert load.again


def test_the_same_keys_in_two_batches_at_once_make_one_record_each(site: Site) -> None:
    key = site.create_key("acme")
    rounds, count = size(4, 60), 8
    statuses: Counter[str] = Counter()
    with ExitStack() as running:
        servers = side_by_side(running.enter_context, [site.serving(), site.serving()])
        for number in range(rounds):
            names = [f"round {number} order {at}" for at in range(REQUESTS)]
            start = threading.Barrier(count)

            def ask(client: int, names: list[str] = names, start: threading.Barrier = start) -> dict[str, bytes]:
                # Half of the clients have them in another order.
                mine = names[::-1] if client % 4 < 2 else names
                start.wait(30)
                results = Batches(servers[client % 2].url, key).send(mine)
                assert results is not None
                statuses.update(result["status"] for result in results)
                return {name: orjson.dumps(of["record"]) for name, of in zip(mine, results, strict=True)}

            answers = side_by_side(ask, range(count), threads=count)
            assert all(answer == answers[0] for answer in answers)
    assert statuses == {"created": rounds * REQUESTS, "replayed": rounds * REQUESTS * (count - 1)}
    made = Counter(stored_record(entry)["idempotency_key"] for entry in site.chain("acme"))
    assert made == Counter(f"round {number} order {at}" for number in range(rounds) for at in range(REQUESTS))
