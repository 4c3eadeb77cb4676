"""Guards in an event loop whose tasks are cancelled at any moment."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from flask.testing import FlaskClient

from gate.client import (
    AlreadyStarted,
    AsyncClient,
    AsyncGuard,
    Client,
    HeldForReview,
    NotPermitted,
    SqliteStore,
    State,
    StoreUnavailable,
)
from gate.clock import utc_now
from gate.instance.instance import Instance
from gate.ledger.access.authority import Scope
from tests.support.samples import sample_rulebook

YES = {"discount_percent": 10, "margin_percent": 22}


class Service(httpx.AsyncBaseTransport):
    """The application, asked in a thread of the loop's."""

    def __init__(self, client: FlaskClient) -> None:
        self._app = httpx.WSGITransport(client.application)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return await asyncio.to_thread(self._answer, request)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        answer = self._app.handle_request(
            httpx.Request(request.method, request.url, headers=request.headers, content=request.read())
        )
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.read())


@pytest.fixture
def store(tmp_path: Path) -> SqliteStore:
    return SqliteStore(tmp_path / "intents.db")


@pytest.fixture
def gate(client: FlaskClient, instance: Instance, key: str, store: SqliteStore) -> AsyncClient:
    return AsyncClient(
        "http://gate.example",
        key=key,
        registry=instance.trust().receipt_keys.to_dict(),  # type: ignore[union-attr]
        store=store,
        transport=Service(client),
        delivery_transport=httpx.WSGITransport(client.application),
    )


def guarding(gate: AsyncClient, target: str = "deal", **said: Any) -> Any:
    return gate.guard(sample_rulebook(), YES, action="approve_discount", target=("crm", target), **said)


@pytest.mark.heavy
def test_of_tasks_that_race_and_are_cancelled_one_runs_the_body(gate: AsyncClient) -> None:
    async def one(target: str, seconds: float, runs: list[str]) -> None:
        try:
            async with asyncio.timeout(seconds), guarding(gate, target):
                runs.append(target)
                await asyncio.sleep(0.02)
        except (NotPermitted, TimeoutError):
            pass

    async def race() -> None:
        for number in range(12):
            runs: list[str] = []
            await asyncio.gather(*(one(f"deal-{number}", 0.01 * each, runs) for each in range(1, 13)))
            assert len(runs) <= 1
        await gate.close()

    asyncio.run(race())


class Step:
    """A step of the store at which a task is cancelled while a thread is doing it."""

    def __init__(self, work: Callable[..., bool], *, late: bool = False) -> None:
        """Takes what the step does, in whose place comes `slow`; and whether it is done only after the cancellation."""
        self._work, self._late = work, late
        self._reached, self._go_on = threading.Event(), threading.Event()

    def slow(self, *arguments: Any) -> bool:
        """Does it, and comes back once the task was cancelled."""
        made = None if self._late else self._work(*arguments)
        self._reached.set()
        self._go_on.wait(30)
        return self._work(*arguments) if made is None else made

    async def cancel(self, entering: Coroutine[Any, Any, None]) -> None:
        """Runs a task to the step, cancels it there, and lets the step come back."""
        task = asyncio.create_task(entering)
        assert await asyncio.to_thread(self._reached.wait, 30)
        task.cancel()
        await asyncio.sleep(0)
        self._go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task


async def enter(gate: AsyncClient) -> None:
    """Enters a guard that must not let it in."""
    async with guarding(gate):
        raise AssertionError("the body ran")


def test_a_start_that_was_made_for_a_cancelled_task_is_given_back(
    gate: AsyncClient, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = Step(store.start)

    async def main() -> None:
        monkeypatch.setattr(store, "start", start.slow)
        await start.cancel(enter(gate))
        async with guarding(gate) as permit:
            assert permit.intent.attempt == 1
        await gate.close()

    asyncio.run(main())


@pytest.mark.parametrize(("name", "late"), [("resolve", False), ("resolve", True), ("start", False), ("start", True)])
def test_a_granted_action_whose_task_is_cancelled_at_a_step_goes_on_from_there(
    gate: AsyncClient,
    client: FlaskClient,
    instance: Instance,
    scope: Scope,
    store: SqliteStore,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    late: bool,
) -> None:
    key = instance.ledger.directory.create_key(scope, frozenset({"resolve"}), None, utc_now())[0]
    owner = Client("http://gate.example", key=key, transport=httpx.WSGITransport(client.application))
    step = Step(getattr(store, name), late=late)

    def held() -> AsyncGuard:
        facts = {"discount_percent": 40, "margin_percent": 22}
        return gate.guard(sample_rulebook(), facts, action="approve_discount", target=("crm", "deal"))

    async def begin(guard: AsyncGuard) -> None:
        async with guard:
            raise AssertionError("the body ran")

    async def main() -> None:
        with pytest.raises(HeldForReview) as refusal:
            await begin(held())
        said = {"resolution": "granted", "resolved_by": "Maya Lindqvist"}
        owner.resolve_decision(str(refusal.value.decision_id), said)
        with monkeypatch.context() as patch:
            patch.setattr(store, name, step.slow)
            await step.cancel(begin(gate.resume(refusal.value.intent_id)))
        kept = store.find(refusal.value.intent_id)
        assert kept is not None
        assert kept.state is State.PERMITTED
        async with gate.resume(refusal.value.intent_id) as permit:
            assert permit.decision_id == refusal.value.decision_id
        with pytest.raises(AlreadyStarted):
            await begin(held())
        await gate.close()

    asyncio.run(main())
    owner.close()


def test_who_lost_the_race_and_is_cancelled_gives_nothing_back(
    gate: AsyncClient, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = store.start

    def second(*arguments: Any) -> bool:
        # The other one starts it meanwhile.
        assert real(*arguments)
        return real(*arguments)

    start = Step(second)

    async def main() -> None:
        with monkeypatch.context() as patch:
            patch.setattr(store, "start", start.slow)
            await start.cancel(enter(gate))
        with pytest.raises(AlreadyStarted):
            await enter(gate)
        await gate.close()

    asyncio.run(main())


def test_a_task_that_is_cancelled_on_its_way_out_is_reported(
    gate: AsyncClient, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids: list[str] = []
    finish = Step(store.finish, late=True)

    async def body() -> None:
        async with guarding(gate) as permit:
            ids.append(permit.intent_id)

    async def main() -> None:
        monkeypatch.setattr(store, "finish", finish.slow)
        await finish.cancel(body())
        kept = store.find(ids[0])
        assert kept is not None
        assert kept.told is not None
        await gate.flush()
        kept = store.find(ids[0])
        assert kept is not None
        assert kept.state is State.REPORTED
        await gate.close()

    asyncio.run(main())


@pytest.mark.parametrize("steps", range(4))
def test_a_loop_whose_tasks_are_all_cancelled_keeps_the_end_of_a_body(
    gate: AsyncClient, store: SqliteStore, steps: int
) -> None:
    ids: list[str] = []
    reached = asyncio.Event()

    async def body() -> None:
        async with guarding(gate) as permit:
            ids.append(permit.intent_id)
            reached.set()
            await asyncio.sleep(0)

    async def main() -> None:
        task = asyncio.create_task(body())
        await reached.wait()
        for _ in range(steps):
            await asyncio.sleep(0)
        for each in asyncio.all_tasks() - {asyncio.current_task()}:
            each.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await gate.flush()
        await gate.close()

    asyncio.run(main())
    kept = store.find(ids[0])
    assert kept is not None
    assert kept.state is State.REPORTED


def test_a_transport_that_is_cancelled_for_ever_is_not_asked_for_ever(
    gate: AsyncClient, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*arguments: Any) -> bool:
        raise StoreUnavailable("INTENTS_UNAVAILABLE", "The disk is full.")

    async def cancelled(transport: Service, request: httpx.Request) -> httpx.Response:
        raise asyncio.CancelledError

    async def body() -> None:
        async with guarding(gate):
            monkeypatch.setattr(store, "finish", failing)
            monkeypatch.setattr(Service, "handle_async_request", cancelled)

    async def main() -> None:
        with pytest.raises(StoreUnavailable):
            await asyncio.wait_for(body(), 30)
        await gate.close()

    asyncio.run(main())


def test_a_loop_that_outlives_the_main_thread_keeps_the_end_of_a_body(
    gate: AsyncClient, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids: list[str] = []

    def no_more(*arguments: Any) -> Any:
        raise RuntimeError("cannot schedule new futures after shutdown")

    async def main() -> None:
        async with guarding(gate) as permit:
            ids.append(permit.intent_id)
            monkeypatch.setattr(gate._engine._threads, "submit", no_more)

    asyncio.run(main())
    kept = store.find(ids[0])
    assert kept is not None
    assert kept.told is not None


def test_where_the_store_fails_while_all_is_cancelled_the_service_is_told_alone(
    gate: AsyncClient, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    decisions: list[str] = []

    def failing(*arguments: Any) -> bool:
        raise StoreUnavailable("INTENTS_UNAVAILABLE", "The disk is full.")

    finish = Step(failing, late=True)

    async def body() -> None:
        async with guarding(gate) as permit:
            decisions.append(permit.decision_id)

    async def main() -> None:
        monkeypatch.setattr(store, "finish", finish.slow)
        await finish.cancel(body())
        told = (await gate.list_executions(decisions[0]))["executions"]
        assert [each["execution_status"] for each in told] == ["executed"]
        await gate.close()

    asyncio.run(main())
