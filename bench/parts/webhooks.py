"""What webhooks cost a held decision in processor time, and how many events one process delivers a second."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any, Final

import orjson

from api.cli.options import instance_at
from bench.disk import scratch, sync_ms
from bench.measure import Mismatch, Spread, alternate, ratio, spread
from bench.samples import decide_request
from bench.tables import table
from gate.clock import utc_now
from gate.instance.instance import Instance
from gate.ledger.access.authority import FULL_ACCESS
from gate.ledger.chain.outbox import tell
from gate.ledger.webhooks.deliveries import Delivery
from gate.ledger.webhooks.endpoints import Endpoint
from gate.records.webhooks.events import Event, decision_review
from gate.records.webhooks.types import EVENT_TYPES
from gate.services.webhooks.transport import Answer

SHARE_BAR: Final = 1.10
"""How much of a held decision's processor time without an endpoint one with an endpoint may take."""

EVENTS_BAR: Final = 500
"""How many events a second one process is to deliver to a receiver on this machine at least."""

_ROUNDS: Final = 61
_DECISIONS: Final = 100
_EVENTS: Final = 10_000
_QUICK_ROUNDS: Final = 25
_QUICK_DECISIONS: Final = 50
_QUICK_EVENTS: Final = 2_000
_AT_ONCE: Final = 500
_SECONDS: Final = 120.0
_ANSWER: Final = b"HTTP/1.1 204 No Content\r\n\r\n"
_SETTINGS: Final = {"GATE_WEBHOOK_HTTP": "allowed", "GATE_WEBHOOK_NETWORKS": '["127.0.0.0/8"]'}


def run(*, quick: bool) -> dict[str, Any]:
    """Decides held requests with and without an endpoint in turn, and delivers an outbox to a receiver.

    Raises:
        Mismatch: A decision was not held or not told, or an event was not delivered once.
    """
    rounds, decisions = (_QUICK_ROUNDS, _QUICK_DECISIONS) if quick else (_ROUNDS, _DECISIONS)
    events = _QUICK_EVENTS if quick else _EVENTS
    before = {name: os.environ.get(name) for name in _SETTINGS}
    os.environ.update(_SETTINGS)
    try:
        with (
            scratch() as directory,
            _receiver() as port,
            instance_at(directory / "home", None, create=True) as instance,
        ):
            disk_sync = sync_ms(directory)
            taken = _decide(instance, port, rounds, decisions)
            delivered = _deliver(instance, port, events)
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
    return {
        "rounds": rounds,
        "decisions": decisions,
        "events": events,
        **{name: spread(figures).to_dict("ms") for name, figures in taken.items()},
        "with/without": ratio(taken["with"], taken["without"]).to_dict(),
        "share_bar": SHARE_BAR,
        "delivered": delivered,
        "events_bar": EVENTS_BAR,
        "disk_sync": disk_sync.to_dict("ms"),
    }


def show(result: Mapping[str, Any]) -> str:
    """The figures as a text for people."""
    rows = [
        [f"held decision {name} an endpoint", *Spread.from_dict(result[name], "ms").cells()]
        for name in ("without", "with")
    ]
    share = Spread.from_dict(result["with/without"])
    delivered = result["delivered"]
    return "\n".join(
        [
            "Webhooks: processor time in milliseconds",
            table(["", "median", "min..max"], rows),
            f"with an endpoint / without: {share.median:.3f} (bar {result['share_bar']:.2f})",
            f"delivered: {delivered['events_per_s']:,.0f} events/s by one process (bar {result['events_bar']}), "
            f"{delivered['processor_ms']:.2f} ms of its processor time each",
        ]
    )


def _decide(instance: Instance, port: int, rounds: int, decisions: int) -> dict[str, list[float]]:
    """The processor time of a held decision in each round, in milliseconds, by whether its scope has an endpoint."""
    directory, gate = instance.ledger.directory, instance.gate()
    request: Any = orjson.loads(decide_request())
    del request["context"]["inputs"]["margin_percent"]
    authorities = {}
    for name in ("without", "with"):
        scope = directory.create_scope(name, "unlimited", utc_now())
        authorities[name] = directory.authenticate(
            directory.create_key(scope, FULL_ACCESS, None, utc_now())[0], utc_now()
        )
        if name == "with":
            instance.webhooks.add(scope, f"http://127.0.0.1:{port}/hook", EVENT_TYPES, utc_now())

    def measured(name: str) -> float:
        began = time.process_time()
        for _ in range(decisions):
            record = gate.decide(authorities[name], request, request_id="req_bench").record
            if record["verdict"] != "review":
                raise Mismatch(f"The verdict was {record['verdict']}, and not review.")
        return (time.process_time() - began) / decisions * 1000

    for name in authorities:
        measured(name)
    taken = alternate({name: lambda name=name: measured(name) for name in authorities}, rounds)  # type: ignore[misc]
    told = instance.ledger.dead_letters.backlog(instance.ledger.endpoints.all()[0]).new
    if told != (rounds + 1) * decisions:
        raise Mismatch(f"{(rounds + 1) * decisions} decisions were held, and the outbox has {told} events.")
    return taken


class _Counting:
    """Counts what was taken, and when the last one was."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.ended = 0.0
        self.processor = 0.0

    def tried(self, endpoint: Endpoint, delivery: Delivery, answer: Answer) -> None:
        if answer.error is not None:
            raise Mismatch(f"The receiver did not take an event: {answer.error}")
        self.ids.append(delivery.event_id)
        self.ended, self.processor = time.monotonic(), time.process_time()

    def failed(self, endpoint: Endpoint, error: BaseException) -> None:
        raise error


def _deliver(instance: Instance, port: int, events: int) -> dict[str, Any]:
    """Delivers so many events, and what that took."""
    for endpoint in instance.ledger.endpoints.all():
        instance.ledger.endpoints.remove(endpoint, utc_now())
    scope = instance.ledger.directory.create_scope("delivered", "unlimited", utc_now())
    instance.webhooks.add(scope, f"http://127.0.0.1:{port}/hook", EVENT_TYPES, utc_now())
    for first in range(0, events, _AT_ONCE):
        told = [(_event(number), number) for number in range(first, min(events, first + _AT_ONCE))]
        with instance.ledger.store.write() as connection:
            tell(connection, scope.scope_id, told, utc_now())
    counting = _Counting()
    began, processor = time.monotonic(), time.process_time()
    while len(counting.ids) < events and time.monotonic() - began < _SECONDS:
        asyncio.run(instance.webhooks.deliverer(counting).deliver(1.0))
    if len(set(counting.ids)) != events or len(counting.ids) != events:
        raise Mismatch(f"Of {events} events {len(set(counting.ids))} were delivered, {len(counting.ids)} times in all.")
    return {
        "events_per_s": round(events / (counting.ended - began), 1),
        "processor_ms": round((counting.processor - processor) / events * 1000, 4),
    }


def _event(number: int) -> Event:
    """A held decision's, of usual size."""
    return decision_review(
        {
            "decision_id": f"dec_{number:032x}",
            "verdict": "review",
            "policy_id": "pricing_exception",
            "policy_version": "2026-06-11",
            "reason_code": "INPUT_SCHEMA_FAILED",
            "record_hash": "a" * 64,
            "receipt_hash": "b" * 64,
            "created_at": "2026-11-28T12:00:00.000Z",
        }
    )


@contextmanager
def _receiver() -> Iterator[int]:
    """A process that takes every event; the port that it listens on."""
    spawn = multiprocessing.get_context("spawn")
    mine, its = spawn.Pipe()
    process = spawn.Process(target=_receive, args=(its,), daemon=True)
    process.start()
    try:
        yield int(mine.recv())
    finally:
        process.kill()
        process.join()


def _receive(parent: Connection) -> None:
    async def serve() -> None:
        server = await asyncio.get_running_loop().create_server(_Takes, "127.0.0.1", 0)
        parent.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(serve())


class _Takes(asyncio.Protocol):
    """Answers each request as soon as its body is whole, and looks at nothing else: the deliverer is measured."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._read = b""

    def data_received(self, data: bytes) -> None:
        self._read += data
        while (head := self._read.find(b"\r\n\r\n")) >= 0:
            length = int(self._read[:head].lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
            if len(self._read) < head + 4 + length:
                return
            self._read = self._read[head + 4 + length :]
            self._transport.write(_ANSWER)
