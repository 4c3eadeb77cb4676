"""POST /api/decide/batch where something fails: one request in its making, the storage, one row, a whole commit."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from gate.errors import AdapterFailed
from gate.instance.audit import check_chain
from gate.instance.instance import Instance
from gate.ledger.access.authority import Scope
from gate.ledger.chain import writer
from gate.records.batch import MAX_REQUESTS, MAX_WITH_ADAPTERS
from gate.records.record import build_record
from tests.api.deciding import brief, chain_size, decide, decide_batch, item, results_of, send_batch
from tests.support import faults
from tests.support.adapters import ECHO, LastingWorkers, equip, invocation_of, make_adapter, rulebook_over
from tests.support.postgres import database_of
from tests.support.samples import sample_request

UNAVAILABLE = (503, "SVC_STORAGE_UNAVAILABLE")
ECHOING = make_adapter("echo", ECHO)


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> Iterator[str | None]:
    """Where the ledger is."""
    with database_of(request) as url:
        yield url


@pytest.fixture(scope="module")
def workers() -> Iterator[LastingWorkers]:
    """What runs the adapter."""
    workers = LastingWorkers([ECHOING])
    yield workers
    workers.end()


@pytest.fixture
def instance(home: Path, instance: Instance, workers: LastingWorkers) -> Instance:
    """One of each test's own, for these damage it, with an adapter that emits what it is given."""
    return equip(instance, [ECHOING], workers=workers)


class Commits:
    """Counts commits."""

    def __init__(self) -> None:
        self.entries: list[int] = []

    def appended(self, seconds: float) -> None:
        """Nothing."""

    def committed(self, entries: int, seconds: float, queued: int) -> None:
        """Takes note of how many entries there were."""
        self.entries.append(entries)


@pytest.fixture
def commits(client: FlaskClient, instance: Instance) -> Commits:
    """The commits from here on."""
    found = instance.ledger.entries._writer.observer = Commits()
    return found


def numbered(count: int) -> list[dict[str, Any]]:
    return [item(None, f"k{number}") for number in range(count)]


def test_five_hundred_requests_are_one_commit(
    client: FlaskClient, key: str, instance: Instance, scope: Scope, commits: Commits
) -> None:
    sent = {"requests": numbered(MAX_REQUESTS), "response_view": "minimal"}
    assert brief(results_of(send_batch(client, key, sent))) == ["created"] * MAX_REQUESTS
    assert commits.entries == [MAX_REQUESTS]
    assert check_chain(instance, scope.scope_id) == (MAX_REQUESTS, None)
    assert brief(results_of(send_batch(client, key, sent))) == ["replayed"] * MAX_REQUESTS
    assert commits.entries == [MAX_REQUESTS]


def test_a_failure_that_nothing_foresaw_fails_its_request_alone(
    client: FlaskClient, key: str, instance: Instance, scope: Scope, log: BytesIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gate.decisions import decide as module

    build = build_record

    def fail(request: Any, *arguments: Any, **named: Any) -> Any:
        if request.context["source_record_id"] == "hostile":
            raise RuntimeError(request.context["subject"])
        return build(request, *arguments, **named)

    monkeypatch.setattr(module, "build_record", fail)
    hostile = sample_request()
    hostile["context"]["source_record_id"] = "hostile"
    response = send_batch(client, key, {"requests": [item(), item(hostile, "k"), item(), item(hostile)]})
    results = results_of(response)
    internal = (500, "SVC_INTERNAL_ERROR")
    assert brief(results) == ["created", internal, "created", internal]
    alone = decide(client, key, hostile).get_json()
    assert results[1]["error"] | {"request_id": ""} == alone | {"request_id": ""}
    assert chain_size(instance, scope) == 2
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    logged = next(line for line in lines if line.get("route") == "/api/decide/batch")
    assert (logged["requests"], logged["created"], logged["refused"], logged["status"]) == (4, 2, 2, 200)
    assert logged["reason"] == results[1]["error"]["message"]
    assert "customer-9" not in log.getvalue().decode()


def test_each_result_is_counted_once(
    client: FlaskClient, key: str, instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gate.decisions import decide as module

    metrics = client.application.extensions["gate.operations"].metrics
    decisions: list[tuple[str, str]] = []
    errors: list[str] = []
    monkeypatch.setattr(metrics, "decision", lambda verdict, status: decisions.append((verdict, status)))
    monkeypatch.setattr(metrics, "error", errors.append)
    held = sample_request(discount_percent=40, margin_percent=22)
    decide_batch(client, key, [item(None, "k"), item(held), item({"mode": "rulebook", "x": 1}), item(None, "k")])
    assert sorted(decisions) == [("review", "created"), ("yes", "created"), ("yes", "replayed")]
    assert errors == ["SVC_API_REQUEST_INVALID"]

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(module, "build_record", broken)
    errors.clear()
    decide_batch(client, key, [item(), item()])
    assert errors == ["SVC_INTERNAL_ERROR"] * 2


def test_without_storage_every_request_hears_so_and_nothing_is_recorded(
    client: FlaskClient, key: str, instance: Instance, scope: Scope
) -> None:
    assert decide(client, key, sample_request()).status_code == 200
    with faults.table_gone(instance.ledger.store, "entries"):
        results = decide_batch(client, key, [*numbered(3), item({"mode": "rulebook", "colour": "red"}, "k3")])
        assert brief(results) == [UNAVAILABLE] * 3 + [(422, "SVC_API_REQUEST_INVALID")]
    assert chain_size(instance, scope) == 1
    assert brief(decide_batch(client, key, numbered(3))) == ["created"] * 3


@pytest.mark.parametrize("fault", [faults.refused_at_commit, None], ids=["at the commit", "at a row"])
def test_a_commit_that_the_database_refuses_records_nothing(
    client: FlaskClient, key: str, instance: Instance, scope: Scope, fault: Callable[..., Any] | None
) -> None:
    assert decide(client, key, sample_request()).status_code == 200
    store = instance.ledger.store
    with fault(store, "entries") if fault else faults.refused(store, "INSERT", "entries"):
        assert brief(decide_batch(client, key, numbered(3))) == [UNAVAILABLE] * 3
    assert chain_size(instance, scope) == 1
    assert brief(decide_batch(client, key, numbered(3))) == ["created"] * 3
    assert check_chain(instance, scope.scope_id) == (4, None)


def test_a_row_that_the_database_refuses_fails_its_request_alone(
    client: FlaskClient, key: str, instance: Instance, scope: Scope, commits: Commits, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = writer._entry_row

    def broken(entry: writer.NewEntry, *arguments: Any) -> dict[str, Any]:
        row = make(entry, *arguments)
        # No table takes an entry without its hash.
        return row | ({"record_hash": None} if entry.claim is not None and entry.claim.key == "k2" else {})

    monkeypatch.setattr(writer, "_entry_row", broken)
    results = decide_batch(client, key, [*numbered(5), item(None, "k2"), item(None, "k1")])
    assert brief(results) == ["created"] * 2 + [UNAVAILABLE] + ["created"] * 2 + [UNAVAILABLE, "replayed"]
    assert commits.entries == [1, 1, 1, 1]
    made = [result["record"]["audit_chain"]["chain_position"] for result in results if result["status"] == "created"]
    assert made == [1, 2, 3, 4]
    monkeypatch.undo()
    assert brief(decide_batch(client, key, numbered(5))) == ["replayed"] * 2 + ["created"] + ["replayed"] * 2
    assert check_chain(instance, scope.scope_id) == (5, None)


def test_a_stored_record_that_was_changed_fails_its_replay_alone(
    client: FlaskClient, key: str, instance: Instance
) -> None:
    decide_batch(client, key, numbered(2))
    faults.run(instance.ledger.store, "UPDATE entries SET record_hash = link_hash WHERE position = 1")
    results = decide_batch(client, key, [*numbered(2), item()])
    assert brief(results) == [UNAVAILABLE, "replayed", "created"]
    alone = decide(client, key, sample_request(), x_idempotency_key="k0").get_json()
    assert results[0]["error"] | {"request_id": ""} == alone | {"request_id": ""}


class TestAdapters:
    """Requests whose facts an adapter makes."""

    @staticmethod
    def invoking(number: int) -> dict[str, Any]:
        request = sample_request()
        del request["context"]["inputs"]
        rulebook = rulebook_over("margins", "margin_percent", "integer", 10)
        return {**request, "rulebook": rulebook, "adapter": invocation_of(ECHOING, {"margin_percent": number})}

    def test_twenty_of_them_are_decided_in_one_commit(self, client: FlaskClient, key: str, commits: Commits) -> None:
        sent = [item(self.invoking(number)) for number in range(MAX_WITH_ADAPTERS)]
        results = decide_batch(client, key, [item(), *sent, item()])
        assert brief(results) == ["created"] * 22
        verdicts = [result["record"]["verdict"] for result in results]
        assert verdicts == ["yes", *["no"] * 10, *["yes"] * 10, "yes"]
        assert commits.entries == [22]

    def test_one_that_fails_fails_its_request_alone(
        self, client: FlaskClient, key: str, instance: Instance, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        gate = client.application.extensions["gate"].gate
        facts = gate.sources.facts

        def failing(request: Any, invocation: Any) -> Any:
            if invocation is not None and request.adapter["input"]["margin_percent"] == 7:
                raise AdapterFailed("TRUSTED_ADAPTER_EXECUTION_TIMEOUT", "The adapter took too long.")
            return facts(request, invocation)

        monkeypatch.setattr(gate.sources, "facts", failing)
        results = decide_batch(client, key, [item(self.invoking(number)) for number in (7, 30, 7)])
        late = (502, "TRUSTED_ADAPTER_EXECUTION_TIMEOUT")
        assert brief(results) == [late, "created", late]
