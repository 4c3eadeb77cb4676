"""The promise at the level of system calls: what is answered with 200 was synced before, whatever the disk does."""

from __future__ import annotations

import errno
import json
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import httpx
import pytest

from api.http.readiness import reasons
from tests.end_to_end.site import Site, wait_until, workers_of
from tests.end_to_end.support import Server, free_port, running
from tests.support.syscalls import Event, Fault, available, tracing

WAL: Final = "ledger.db-wal"
SYNCS: Final = ("fsync", "fdatasync")

# Every connection of the process gets synchronous=OFF, and what would set it afterwards is passed over.
UNSYNCED: Final = """
import sqlite3

connect = sqlite3.connect


def unsynced(*arguments, **options):
    connection = connect(*arguments, **options)
    connection.execute("PRAGMA synchronous=OFF")
    connection.set_authorizer(
        lambda action, name, value, *_: sqlite3.SQLITE_IGNORE
        if action == sqlite3.SQLITE_PRAGMA and name == "synchronous" and value
        else sqlite3.SQLITE_OK
    )
    return connection


sqlite3.connect = sqlite3.dbapi2.connect = unsynced
"""


class Caller:
    """A client of a server with a demo scope, which sends the printed request from four threads."""

    def __init__(self, server: Server, home: Path) -> None:
        self.site = Site(home, None)
        self.workers = workers_of(server)
        self._base_url = server.url
        self._url = f"{server.url}/api/decide"
        self._key = (home / "demo.key").read_text().strip()
        self._body = json.loads(shlex.split(server.curl_line())[-1])

    def status(self) -> tuple[int, list[str]]:
        """The status of the service, and the parts that it says are not ready."""
        answer = httpx.get(f"{self._base_url}/api/decision/status", timeout=30, trust_env=False)
        return answer.status_code, list(reasons(answer.json()))

    def decide(self, keys: Sequence[str]) -> list[httpx.Response]:
        """A decision for each idempotency key; the answers, in the keys' order."""
        with httpx.Client(headers={"x-api-key": self._key}, timeout=30, trust_env=False) as client:

            def one(key: str) -> httpx.Response:
                return client.post(self._url, json=self._body, headers={"x-idempotency-key": key})

            with ThreadPoolExecutor(4) as threads:
                return list(threads.map(one, keys))

    def decide_together(self, keys: Sequence[str]) -> httpx.Response:
        """A batch with a request for each idempotency key."""
        requests = [{"request": self._body, "idempotency_key": key} for key in keys]
        body = {"requests": requests, "response_view": "minimal"}
        with httpx.Client(headers={"x-api-key": self._key}, timeout=30, trust_env=False) as client:
            return client.post(f"{self._url}/batch", json=body)


def say(text: str) -> None:
    """A figure for who runs the tests with -s."""
    sys.stdout.write(f"{text}\n")


@contextmanager
def calling(home: Path) -> Iterator[Caller]:
    port = free_port()
    command = Site(home, None).command("serve", "--demo", "--port", str(port), "--workers", "1", "--no-analytics")
    with running(command, home.parent, f"http://127.0.0.1:{port}", "^curl ") as server:
        yield Caller(server, home)


@pytest.fixture(scope="module")
def caller(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Caller]:
    """A client of a server that one test after the other traces."""
    if reason := available():
        pytest.skip(reason)
    with calling(tmp_path_factory.mktemp("traced") / "home") as caller:
        yield caller


def acknowledgements(events: Sequence[Event]) -> list[tuple[Event, bytes]]:
    """Every answer that acknowledges a decision, as it begins to be sent, and the decision; a batch has several."""
    return [
        (event, decision)
        for event in events
        if event.path.startswith("socket:") and event.data.startswith(b"HTTP/1.1 200")
        for decision in sorted(set(_DECISION.findall(event.data)))
    ]


# In the header of an answer, and in the records of one.
_DECISION: Final = re.compile(rb"\bdec_[0-9a-f]+")


def transactions(events: Sequence[Event]) -> list[tuple[bytes, int]]:
    """What each transaction wrote to the WAL, and when it had written its last frame."""
    found: list[tuple[bytes, int]] = []
    written, last = b"", False
    for event in events:
        if event.name != "pwrite64" or not event.path.endswith(WAL) or event.ended is None or not event.succeeded:
            continue
        if len(event.data) == 24:
            # A frame's header; bytes 4 to 8 are zero but for the frame that commits. The page follows.
            last = any(event.data[4:8])
            continue
        written += event.data
        if last:
            found.append((written, event.ended))
            written, last = b"", False
    return found


def unsynced_acknowledgements(events: Sequence[Event]) -> list[Event]:
    """The acknowledgements that a power cut could belie.

    An acknowledgement is sound if a sync of the WAL began after the transaction with its decision was written, and
    ended before the answer was sent. That a later transaction is being written meanwhile does not matter.
    """
    committed = transactions(events)
    syncs = [event for event in events if event.name in SYNCS and event.path.endswith(WAL) and event.succeeded]
    unsound = []
    for answer, decision in acknowledgements(events):
        written = next((when for content, when in committed if decision in content), None)
        if written is None or not any(written < sync.began and (sync.ended or 0) < answer.began for sync in syncs):
            unsound.append(answer)
    return unsound


def decided_under_trace(caller: Caller) -> list[Event]:
    """What a server did for 20 decisions, all of them acknowledged."""
    keys = [f"order-{number}" for number in range(20)]
    with tracing(caller.workers) as trace:
        answers = caller.decide(keys)
    assert [answer.status_code for answer in answers] == [200] * len(keys)
    seen = {decision.decode() for _, decision in acknowledgements(trace.events)}
    assert seen == {answer.json()["decision_id"] for answer in answers}
    return trace.events


def test_every_acknowledgement_comes_after_a_sync(caller: Caller) -> None:
    events = decided_under_trace(caller)
    assert unsynced_acknowledgements(events) == []
    syncs = sum(event.name in SYNCS and event.path.endswith(WAL) for event in events)
    say(f"{len(acknowledgements(events))} acknowledgements checked, each after one of {syncs} syncs of the WAL")


def test_every_record_of_a_batch_comes_after_a_sync(caller: Caller) -> None:
    keys = [f"together-{number}" for number in range(5)]
    with tracing(caller.workers) as trace:
        answer = caller.decide_together(keys)
    made = {result["record"]["decision_id"] for result in answer.json()["results"]}
    assert len(made) == len(keys)
    # All of them stand in what the answer begins with.
    assert {decision.decode() for _, decision in acknowledgements(trace.events)} == made
    assert unsynced_acknowledgements(trace.events) == []
    assert sum(all(each.encode() in content for each in made) for content, _ in transactions(trace.events)) == 1


@pytest.mark.skipif(available() is not None, reason="processes cannot be traced here")
def test_an_acknowledgement_without_a_sync_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planted = tmp_path / "planted"
    planted.mkdir()
    (planted / "sitecustomize.py").write_text(UNSYNCED)
    monkeypatch.setenv("PYTHONPATH", str(planted))
    with calling(tmp_path / "home") as caller:
        events = decided_under_trace(caller)
    assert transactions(events)
    unsound = unsynced_acknowledgements(events)
    assert unsound == [event for event, _ in acknowledgements(events)]
    say(f"{len(unsound)} acknowledgements without a sync caught")


def history(*steps: str) -> list[Event]:
    """Events as short words: "1>" a frame with decision 1, "1!" one that commits, "sync", "200:1" the answer to it.

    A word that ends with "..." ends only when the next one has.
    """
    events: list[Event] = []
    for step in steps:
        word = step.removesuffix("...")
        if word.startswith("200:"):
            answer = f"HTTP/1.1 200 OK\r\nx-decision-id: dec_{word[4:]}\r\n\r\n".encode()
            calls = [("writev", "socket:[1]", answer, len(answer))]
        elif word in ("sync", "failed sync", "sync of the database"):
            path = "/home/ledger.db" if word == "sync of the database" else f"/home/{WAL}"
            calls = [("fdatasync", path, b"", -errno.EIO if word == "failed sync" else 0)]
        else:
            header, page = bytes([0, 0, 0, 7, 0, 0, 0, word[1] == "!"]) + bytes(16), f"dec_{word[0]}".encode()
            calls = [("pwrite64", f"/home/{WAL}", data, len(data)) for data in (header, page)]
        for name, path, data, result in calls:
            clock = 10 * (len(events) + 1)
            ended = clock + (15 if step.endswith("...") else 5)
            events.append(Event(clock, 1, name, path, data, result, ended))
    return events


@pytest.mark.parametrize(
    "steps",
    [
        ("1!", "sync", "200:1"),
        ("1>", "2!", "sync", "200:1", "200:2"),
        ("1!", "sync", "2!", "200:1", "sync", "200:2"),
        ("1!", "failed sync", "sync", "200:1"),
    ],
)
def test_what_is_synced(steps: tuple[str, ...]) -> None:
    assert unsynced_acknowledgements(history(*steps)) == []


@pytest.mark.parametrize(
    "steps",
    [
        ("1!", "200:1"),
        ("200:1",),
        ("1!", "200:1", "sync"),
        ("1!", "sync...", "200:1"),
        ("1!", "failed sync", "200:1"),
        ("1!", "sync of the database", "200:1"),
        ("sync", "1!", "200:1"),
        ("sync...", "1!", "200:1"),
        ("1>", "sync", "2!", "200:1"),
        ("2!", "sync", "1!", "200:1"),
    ],
)
def test_what_is_not_synced(steps: tuple[str, ...]) -> None:
    events = history(*steps)
    assert unsynced_acknowledgements(events) == [event for event in events if event.name == "writev"]


def disk_fails(caller: Caller, how: str, *faults: Fault) -> None:
    """Decisions before, while and after the disk fails: refused meanwhile, made by a retry with the same key."""
    before, failing = [[f"{when} {how} {number}" for number in range(8)] for when in ("before", "failing")]
    there = entries_checked(caller.site)
    first = caller.decide(before)
    wait_until(lambda: caller.status() == (200, []))
    with tracing(caller.workers, faults) as trace:
        refused = caller.decide(failing)
        wait_until(lambda: caller.status() == (503, ["ledger"]))
    wait_until(lambda: caller.status() == (200, []))
    assert acknowledgements(trace.events) == []
    for answer in refused:
        assert (answer.status_code, answer.json()["error"]) == (503, "SVC_STORAGE_UNAVAILABLE")
        assert "verdict" not in answer.text
    retried = caller.decide(failing)
    assert [answer.status_code for answer in first + retried] == [200] * 16
    again = caller.decide(before + failing)
    assert [answer.content for answer in again] == [answer.content for answer in first + retried]
    assert len({answer.json()["decision_id"] for answer in first + retried}) == 16
    assert entries_checked(caller.site) == there + 16
    failed = sum(event.injected for event in trace.events)
    assert failed >= 1
    say(f"{failed} failed calls, {len(refused)} refusals, {len(retried)} retries acknowledged")


def entries_checked(site: Site) -> int:
    """How many entries the one chain has, which has to be whole."""
    checked = site.gate("chain", "check")
    (chain,) = checked["chains"]
    assert checked["whole"] is True
    return int(chain["entries_checked"])


def test_a_failing_sync_is_never_acknowledged(caller: Caller) -> None:
    disk_fails(caller, "a sync", *(Fault(name, WAL, errno.EIO) for name in SYNCS))


def test_a_full_disk_is_never_acknowledged(caller: Caller) -> None:
    disk_fails(caller, "a write", Fault("pwrite64", WAL, errno.ENOSPC))
