"""Reports on their way: in order, once each, and never lost."""

from __future__ import annotations

import gc
import multiprocessing
import os
import threading
import weakref
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from gate.client import Client, Conflict, Delivery, SqliteStore, State, Unreachable
from gate.client.guard import delivery as delivery_module
from gate.client.guard.delivery import Courier
from gate.errors import OperatorError
from tests.gate.client.conftest import Service
from tests.gate.client.guarding import executions, guarding, runs


def answering(status: int, code: str | None) -> Callable[[httpx.Request, httpx.Response], httpx.Response]:
    """Refuses reports, and lets all else pass."""

    def rewrite(request: httpx.Request, response: httpx.Response) -> httpx.Response:
        if not request.url.path.endswith(("/execution", "/outcome")):
            return response
        told = {} if code is None else {"error": code, "message": "No."}
        return httpx.Response(status, json=told)

    return rewrite


def passing(request: httpx.Request, response: httpx.Response) -> httpx.Response:
    return response


@pytest.fixture(autouse=True)
def _no_background(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    if request.cls is not TestInTheBackground:
        monkeypatch.setattr(Courier, "wake", lambda courier: None)


def test_what_waits_is_delivered_in_the_order_in_which_it_was_told(gate: Client, service: Service) -> None:
    first, second = runs(gate, intent="1"), runs(gate, intent="2")
    second.outcome("succeeded")
    first.outcome("failed")
    before = len(service.requests)
    assert gate.flush() == Delivery(delivered=4)
    assert [request.url.path for request in service.requests[before:]] == [
        f"/api/decision/{first.decision_id}/execution",
        f"/api/decision/{second.decision_id}/execution",
        f"/api/decision/{second.decision_id}/outcome",
        f"/api/decision/{first.decision_id}/outcome",
    ]
    assert gate.flush() == Delivery()


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (401, "SVC_EXECUTION_UNAUTHORIZED"),
        (403, "SVC_EXECUTION_UNAUTHORIZED"),
        (404, "SVC_API_NOT_FOUND"),
        (409, "SVC_EXECUTION_IDEMPOTENCY_IN_PROGRESS"),
        (429, "SVC_API_RATE_LIMITED"),
        (500, "SVC_INTERNAL_ERROR"),
        (502, None),
        (503, "SVC_STORAGE_UNAVAILABLE"),
        (200, None),
    ],
)
def test_what_cannot_be_taken_now_waits_with_all_that_follows(
    gate: Client, service: Service, monkeypatch: pytest.MonkeyPatch, status: int, code: str | None
) -> None:
    monkeypatch.setattr(delivery_module, "_TURN_SECONDS", 0)
    permit = runs(gate)
    permit.outcome("succeeded")
    service.rewrite = answering(status, code) if status != 200 else _no_json
    delivery = gate.flush()
    assert (delivery.delivered, delivery.refused) == (0, 0)
    assert delivery.failure is not None
    service.rewrite = passing
    assert gate.flush() == Delivery(delivered=2)
    assert len(executions(gate, permit)) == 1


@pytest.mark.parametrize("status", [400, 404, 405, 413, 422])
def test_what_something_in_between_refuses_holds_up_its_own_decision_alone(
    gate: Client, service: Service, store: SqliteStore, status: int
) -> None:
    stuck, free = runs(gate, intent="stuck"), runs(gate, intent="free")
    stuck.outcome("succeeded")
    free.outcome("succeeded")

    def proxy(request: httpx.Request, response: httpx.Response) -> httpx.Response:
        if request.url.path == f"/api/decision/{stuck.decision_id}/execution":
            return httpx.Response(status, content=b"<h1>no</h1>")
        return response

    service.rewrite = proxy
    delivery = gate.flush()
    assert (delivery.delivered, delivery.refused) == (2, 0)
    assert delivery.failure is not None
    assert delivery.failure.status == status
    assert {report.decision_id for report in store.undelivered(10)} == {stuck.decision_id}
    service.rewrite = passing
    assert gate.flush() == Delivery(delivered=2)


def test_many_reports_of_one_decision_that_are_stuck_stand_in_nobodys_way(
    gate: Client, service: Service, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery_module, "_AT_ONCE", 2)
    stuck = runs(gate, intent="stuck")
    for _ in range(9):
        stuck.outcome("pending")
    free = runs(gate, intent="free")

    def proxy(request: httpx.Request, response: httpx.Response) -> httpx.Response:
        return httpx.Response(413) if stuck.decision_id in request.url.path else response

    service.rewrite = proxy
    assert gate.flush().delivered == 1
    service.rewrite = passing
    assert len(executions(gate, free)) == 1
    assert store.undelivered(1) == []


def test_a_proxy_that_refuses_everything_is_not_asked_about_everything(
    gate: Client, service: Service, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery_module, "_MOST_STUCK", 2)
    monkeypatch.setattr(delivery_module, "_AT_ONCE", 1)
    for number in range(5):
        runs(gate, intent=str(number))
    service.rewrite = answering(413, None)
    assert gate.flush().failure is not None
    assert service.asked("/execution") == 3
    assert len(store.undelivered(10)) == 5
    service.rewrite = passing
    assert gate.flush() == Delivery(delivered=5)


def _no_json(request: httpx.Request, response: httpx.Response) -> httpx.Response:
    return httpx.Response(200, content=b"<html>") if request.method == "POST" else response


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (404, "SVC_DECISION_NOT_FOUND"),
        (409, "SVC_EXECUTION_IDEMPOTENCY_CONFLICT"),
        (413, "SVC_API_PAYLOAD_TOO_LARGE"),
        (422, "SVC_API_REQUEST_INVALID"),
        (422, "SVC_EXECUTION_RECORD_MISMATCH"),
    ],
)
def test_what_will_never_be_taken_is_set_aside_with_the_reason_and_holds_up_nothing(
    gate: Client, service: Service, store: SqliteStore, status: int, code: str
) -> None:
    permit = runs(gate)
    service.rewrite = answering(status, code)
    assert gate.flush() == Delivery(refused=1)
    (aside,) = store.set_aside(10)
    assert aside.refused is not None
    assert code in aside.refused
    kept = store.find(permit.intent_id)
    assert kept is not None
    assert kept.state is State.STARTED
    service.rewrite = passing
    later = runs(gate, intent="later")
    assert gate.flush() == Delivery(delivered=1)
    assert len(executions(gate, later)) == 1
    assert gate.flush(again=True) == Delivery(delivered=1)
    assert len(executions(gate, permit)) == 1
    assert store.set_aside(10) == []


def test_an_answer_that_is_lost_makes_no_second_receipt(gate: Client, service: Service) -> None:
    permit = runs(gate)

    def lost(request: httpx.Request, response: httpx.Response) -> httpx.Response:
        if request.url.path.endswith("/execution"):
            raise httpx.ReadError("cut")
        return response

    service.rewrite = lost
    delivery = gate.flush()
    assert isinstance(delivery.failure, Unreachable)
    service.rewrite = passing
    assert gate.flush() == Delivery(delivered=1)
    assert len(executions(gate, permit)) == 1


@pytest.mark.parametrize("told", [{}, {"status": "ok"}, {"decision_id": "dec_other"}])
def test_an_answer_that_does_not_name_the_report_is_none(
    gate: Client, service: Service, store: SqliteStore, told: dict[str, str]
) -> None:
    permit = runs(gate)

    def in_between(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json=told)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(service, "handle_request", in_between)
        failure = gate.flush().failure
    assert failure is not None
    assert failure.code == "ANSWER_UNUSABLE"
    assert len(store.undelivered(10)) == 1
    assert gate.flush() == Delivery(delivered=1)
    assert len(executions(gate, permit)) == 1


def test_one_that_another_process_is_delivering_is_waited_for(
    gate: Client, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery_module, "_TURN_SECONDS", 0)
    runs(gate)
    left = 3

    def busy(request: httpx.Request, response: httpx.Response) -> httpx.Response:
        nonlocal left
        left -= 1
        return response if left < 0 else answering(409, "SVC_EXECUTION_IDEMPOTENCY_IN_PROGRESS")(request, response)

    service.rewrite = busy
    assert gate.flush() == Delivery(delivered=1)
    runs(gate, intent="for ever")
    left = 10**6
    assert isinstance(gate.flush().failure, Conflict)


def test_without_a_store_there_is_nothing_to_deliver_from(make: Callable[..., Client]) -> None:
    with pytest.raises(OperatorError, match="INTENTS_MISSING"):
        make(store=None).flush()


def work(gate: Client) -> None:
    """What a child does: one guarded block, and nothing to see it delivered."""
    runs(gate, intent="child")


class TestInTheBackground:
    def test_a_run_is_reported_without_being_asked_for(self, gate: Client, store: SqliteStore) -> None:
        permit = runs(gate)
        gate.close()
        assert store.undelivered(10) == []
        assert len(gate.list_executions(permit.decision_id)["executions"]) == 1

    def test_a_client_that_was_closed_delivers_again_when_it_is_used_again(
        self, gate: Client, store: SqliteStore
    ) -> None:
        for intent in ("1", "2"):
            runs(gate, intent=intent)
            gate.close()
            assert store.undelivered(10) == []

    def test_what_failed_is_tried_again(
        self, gate: Client, service: Service, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(delivery_module, "_FIRST_PAUSE", 0.01)
        failed = threading.Event()

        def failing(request: httpx.Request, response: httpx.Response) -> httpx.Response:
            if request.url.path.endswith("/execution") and not failed.is_set():
                failed.set()
                raise httpx.ConnectError("refused")
            return response

        service.rewrite = failing
        permit = runs(gate)
        assert failed.wait(30)
        for _ in range(3000):
            if store.undelivered(10) == []:
                break
            threading.Event().wait(0.01)
        assert len(gate.list_executions(permit.decision_id)["executions"]) == 1

    def test_closing_does_not_wait_for_a_service_that_is_away(self, gate: Client, service: Service) -> None:
        failed = threading.Event()

        def away(request: httpx.Request, response: httpx.Response) -> httpx.Response:
            if request.url.path.endswith("/execution"):
                failed.set()
                raise httpx.ConnectError("refused")
            return response

        service.rewrite = away
        runs(gate)
        assert failed.wait(30)
        gate.close()

    def test_closing_tries_what_failed_once_more(self, gate: Client, service: Service, store: SqliteStore) -> None:
        failed = threading.Event()

        def away(request: httpx.Request, response: httpx.Response) -> httpx.Response:
            if request.url.path.endswith("/execution") and not failed.is_set():
                failed.set()
                raise httpx.ConnectError("refused")
            return response

        service.rewrite = away
        runs(gate, intent="1")
        assert failed.wait(30)
        runs(gate, intent="2")
        gate.close()
        assert store.undelivered(10) == []

    def test_a_child_of_multiprocessing_delivers_at_its_end(self, gate: Client, store: SqliteStore) -> None:
        child = multiprocessing.get_context("fork").Process(target=work, args=(gate,))
        child.start()
        child.join(60)
        assert child.exitcode == 0
        assert store.undelivered(10) == []

    def test_a_client_that_nobody_holds_any_more_ends_its_thread(
        self, make: Callable[..., Client], service: Service, key: str, store: SqliteStore, instance: Any
    ) -> None:
        registry = instance.trust().receipt_keys.to_dict()
        client = Client("http://gate.example", key=key, registry=registry, store=store, transport=service)
        runs(client)
        del client
        gc.collect()
        for _ in range(3000):
            if "gate-client-courier" not in {thread.name for thread in threading.enumerate()}:
                break
            threading.Event().wait(0.01)
        else:
            raise AssertionError("the thread goes on")
        assert store.undelivered(10) == []

    def test_dropping_a_client_waits_for_nothing(
        self, service: Service, key: str, store: SqliteStore, instance: Any
    ) -> None:
        multiprocessing.get_context("fork")
        hanging, go_on = threading.Event(), threading.Event()

        def hang(request: httpx.Request, response: httpx.Response) -> httpx.Response:
            if request.url.path.endswith("/execution"):
                hanging.set()
                go_on.wait(30)
            return response

        service.rewrite = hang
        registry = instance.trust().receipt_keys.to_dict()
        client = Client("http://gate.example", key=key, registry=registry, store=store, transport=service)
        courier = client._courier
        runs(client)
        assert hanging.wait(30)
        # As the garbage collector may, with the courier's lock held by this very thread.
        with courier._lock:
            del client
            gc.collect()
        go_on.set()
        courier.close(30)
        assert store.undelivered(10) == []
        # Nothing that waits for the process to end holds it any more.
        gone = weakref.ref(courier)
        del courier
        for _ in range(3000):
            if gone() is None:
                break
            threading.Event().wait(0.01)
            gc.collect()
        assert gone() is None

    @pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
    def test_a_thread_that_died_is_replaced(
        self, gate: Client, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fails(courier: Courier) -> None:
            raise SystemExit

        before = set(threading.enumerate())
        with monkeypatch.context() as patch:
            patch.setattr(Courier, "_once", fails)
            runs(gate, intent="1")
            shift = gate._courier._shift
            assert shift is not None
            assert shift.ended.wait(30)
            # What it died of is reported after that, and is expected in this test alone.
            for thread in set(threading.enumerate()) - before:
                thread.join(30)
        runs(gate, intent="2")
        gate.close()
        assert store.undelivered(10) == []

    def test_a_forked_process_delivers_by_itself(self, gate: Client, store: SqliteStore) -> None:
        runs(gate)
        gate.flush()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                with guarding(gate, intent="child"):
                    pass
                gate.close()
                code = 0 if store.undelivered(10) == [] else 2
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
