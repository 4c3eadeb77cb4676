"""The programs of docs/examples, against a real server: what runs, what does not, and what the service is told."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import secrets
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
from flask.testing import FlaskClient
from sqlalchemy import create_engine, func, select
from sqlalchemy.orm import Session, sessionmaker

from gate.client import (
    AlreadyStarted,
    AsyncClient,
    AsyncPermit,
    Blocked,
    Client,
    GateUnavailable,
    HeldForReview,
    SqliteStore,
    StoreUnavailable,
    operations,
)
from gate.client.store.sqlalchemy import SqlAlchemyStore
from tests.end_to_end.site import Site, wait_until
from tests.end_to_end.support import ROOT, free_port
from tests.support.faulty_gate import Fault, FaultyGate, Message, answering, cut
from tests.support.postgres import Postgres

YES: Final[dict[str, Any]] = {
    "amount": 64.9,
    "currency": "EUR",
    "share_of_payment_percent": 100,
    "days_since_purchase": 12,
    "reason": "changed_mind",
    "final_sale": False,
    "fraud_flag": False,
    "chargeback_open": False,
    "prior_refunds_12_months": 1,
    "to_original_payment_method": True,
    "item_returned": True,
}
NO: Final = {**YES, "fraud_flag": True}
REVIEW: Final = {**YES, "amount": 640}
NO_AMOUNTS: Final = (None, "much", "64.9", float("nan"), float("inf"), True, 0, -5, 10**400)


@cache
def example(name: str) -> Any:
    """A program of docs/examples."""
    found = importlib.util.spec_from_file_location(f"example_{name}", ROOT / "docs" / "examples" / f"{name}.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    # Where classes look for the names in their annotations.
    sys.modules[module.__name__] = module
    found.loader.exec_module(module)
    return module


@dataclass(frozen=True, slots=True)
class Service:
    """A service with the demo scope.

    Attributes:
        url: Its address.
        key_file: The file with a key of the scope.
        registry: The file with its receipt keys.
    """

    url: str
    key_file: Path
    registry: Path

    def said(self, store: Path | SqliteStore | SqlAlchemyStore, *, url: str | None = None) -> dict[str, Any]:
        """The arguments of a client with a store."""
        return {
            "url": url or self.url,
            "key_file": self.key_file,
            "registry": self.registry,
            "store": store,
            "tries": 1,
        }


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One server for all."""
    folder = tmp_path_factory.mktemp("examples")
    with Site(folder / "home", None).serving(1, "--demo") as server:
        registry = folder / "receipt-keys.json"
        with Client(server.url) as client:
            registry.write_bytes(client.send(operations.list_receipt_keys()).content)
        yield Service(server.url, folder / "home" / "demo.key", registry)


class Bank:
    """A payment side: a file with a line for each refund, `reference payment amount note`.

    Attributes:
        fails: Called before a refund is paid, and after it.
    """

    def __init__(self, file: Path, fails: Callable[[str], None] = lambda moment: None) -> None:
        self._file = file
        self.fails = fails

    def refund(self, payment_id: str, amount: float, currency: str, *, reference: str, note: str) -> str:
        self.fails("before")
        assert self.find(reference) is None, "a second refund under one reference"
        with self._file.open("a") as file:
            file.write(f"{reference} {payment_id} {amount} {note}\n")
        self.fails("after")
        return f"refund-{len(self.paid())}"

    def find(self, reference: str) -> str | None:
        return next((f"refund-{n}" for n, paid in enumerate(self.paid(), 1) if paid[0] == reference), None)

    def paid(self) -> list[list[str]]:
        return [line.split() for line in self._file.read_text().splitlines()] if self._file.exists() else []


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    """A payment side that has paid nothing."""
    return Bank(tmp_path / "bank")


@pytest.fixture
def client(service: Service, tmp_path: Path) -> Iterator[Client]:
    """A client with a fresh store."""
    with Client(**service.said(tmp_path / "intents.db")) as made:
        yield made


@pytest.fixture
def unreachable(service: Service, tmp_path: Path) -> Iterator[Client]:
    """A client on the same store, whose service is not there."""
    with Client(**service.said(tmp_path / "intents.db", url=f"http://127.0.0.1:{free_port()}")) as made:
        yield made


@pytest.fixture
def line(service: Service) -> Iterator[FaultyGate]:
    """The service, with someone in the line before it."""
    gate = FaultyGate(service.url)
    yield gate
    gate.close()


def receipts(client: Client, decision_id: str) -> list[tuple[str, str | None]]:
    """What the service holds of the execution of a decision: each status and reference, the oldest first."""
    client.flush()
    listed = client.list_executions(decision_id)["executions"]
    return [(each["execution_status"], each.get("external_ref")) for each in reversed(listed)]


class Shop:
    """Orders of a shop that no other test has, by what is true of them."""

    def __init__(self, **orders: Mapping[str, Any]) -> None:
        self._orders = orders
        self._name = secrets.token_hex(8)

    def payment_of(self, order_id: str) -> str:
        return f"payment-of-{order_id}-in-{self._name}"

    def refund_facts(self, order_id: str, amount: float, reason: str) -> Mapping[str, Any]:
        return {**self._orders[order_id], "amount": amount, "reason": reason}


def error_body(code: str) -> bytes:
    """What the service answers where it refuses or fails."""
    return json.dumps({"error": code, "message": "A sentence."}).encode()


class TestFlaskRefund:
    EVENT: Final = {"event_id": "e-1", "note": "dec_1", "refund": "refund-1", "status": "arrived", "hours": 26}

    @pytest.fixture
    def shop(self) -> Shop:
        return Shop(good=YES, fraud=NO)

    @pytest.fixture
    def web(self, client: Client, shop: Shop, bank: Bank) -> FlaskClient:
        web: FlaskClient = example("flask_refund").create_app(client, shop, bank).test_client()
        return web

    def ask(self, web: FlaskClient, order: str = "good", refund: str = "r-1", **said: Any) -> tuple[int, Any]:
        body = {"refund_id": refund, "amount": 64.9, "reason": "changed_mind", **said}
        answer = web.post(f"/orders/{order}/refund", json=body)
        return answer.status_code, answer.get_json(silent=True)

    def test_a_refund_that_the_gate_allows_is_paid_and_its_receipt_is_at_the_service(
        self, web: FlaskClient, client: Client, shop: Shop, bank: Bank
    ) -> None:
        status, told = self.ask(web)
        assert (status, told["status"], told["refund"]) == (200, "paid", "refund-1")
        assert [(payment, amount) for _, payment, amount, _ in bank.paid()] == [(shop.payment_of("good"), "64.9")]
        assert receipts(client, told["decision_id"]) == [("executed", "refund-1")]

    def test_asking_again_pays_nothing_and_tells_what_was_paid(self, web: FlaskClient, bank: Bank) -> None:
        first = self.ask(web)
        assert self.ask(web) == first
        assert len(bank.paid()) == 1

    def test_another_refund_of_the_same_order_is_another(self, web: FlaskClient, bank: Bank) -> None:
        assert [self.ask(web, refund=refund)[0] for refund in ("r-1", "r-2")] == [200, 200]
        assert len(bank.paid()) == 2

    def test_a_refund_that_the_gate_refuses_is_not_paid_and_the_answer_has_the_evidence(
        self, web: FlaskClient, bank: Bank
    ) -> None:
        status, told = self.ask(web, "fraud")
        assert (status, told["verdict"], told["reason_code"]) == (403, "no", "FRAUD_FLAGGED")
        assert told["evidence"]
        assert bank.paid() == []

    def test_a_refund_that_a_person_has_to_decide_is_held(self, web: FlaskClient, bank: Bank) -> None:
        status, told = self.ask(web, amount=640)
        assert (status, told["verdict"]) == (202, "review")
        assert bank.paid() == []

    def test_without_the_gate_nothing_is_paid_and_the_caller_comes_again(
        self, web: FlaskClient, unreachable: Client, shop: Shop, bank: Bank
    ) -> None:
        dark = example("flask_refund").create_app(unreachable, shop, bank).test_client()
        body = {"refund_id": "r-1", "amount": 64.9, "reason": "changed_mind"}
        answer = dark.post("/orders/good/refund", json=body)
        assert (answer.status_code, answer.get_json()["error"]) == (503, "GATE_UNREACHABLE")
        assert int(answer.headers["retry-after"]) > 0
        assert bank.paid() == []
        assert self.ask(web)[0] == 200
        assert len(bank.paid()) == 1

    @pytest.mark.parametrize(("payment_side", "expected"), [(True, (502, "not known")), (False, (500, "failed"))])
    def test_a_refund_whose_payment_failed_is_not_begun_again_by_asking(
        self, web: FlaskClient, client: Client, bank: Bank, payment_side: bool, expected: tuple[int, str]
    ) -> None:
        def fail(moment: str) -> None:
            raise example("flask_refund").PaymentFailed(moment) if payment_side else ConnectionError(moment)

        bank.fails = fail
        status, told = self.ask(web)
        assert (status, told["status"]) == expected
        assert told["why"]
        status, told = self.ask(web)
        assert (status, told["ended"]) == (409, "failed")
        assert receipts(client, told["decision_id"]) == [("failed", None)]

    def test_that_a_refund_was_paid_and_could_not_be_kept_is_said(
        self, service: Service, line: FaultyGate, shop: Shop, bank: Bank, tmp_path: Path
    ) -> None:
        store = SqliteStore(tmp_path / "intents.db")

        def fail(*_: Any) -> Any:
            raise StoreUnavailable("INTENTS_UNAVAILABLE", "The disk is full.")

        with pytest.MonkeyPatch.context() as patched, Client(**service.said(store, url=line.url)) as client:
            web = example("flask_refund").create_app(client, shop, bank).test_client()

            def break_down(moment: str) -> None:
                patched.setattr(SqliteStore, "finish", fail)
                line.down()

            bank.fails = break_down
            status, told = self.ask(web)
            assert (status, told["status"]) == (500, "paid and not kept")
            assert told["why"]
        assert len(bank.paid()) == 1

    @pytest.mark.parametrize(
        "said",
        [
            *({"amount": amount} for amount in NO_AMOUNTS),
            *({name: no_text} for name in ("refund_id", "reason") for no_text in (None, "", " ", 7, ["r-1"])),
            {"refund_id": "\ud800"},
        ],
        ids=lambda said: f"{said}"[:40],
    )
    def test_a_request_that_cannot_be_understood_is_refused(
        self, web: FlaskClient, bank: Bank, said: dict[str, Any]
    ) -> None:
        status, told = self.ask(web, **said)
        assert (status, told["status"]) == (400, "not understood")
        assert told["why"].endswith(".")
        assert bank.paid() == []

    @pytest.mark.parametrize("body", ["", "{", "[]", "null", '"r-1"', "{}"])
    def test_what_is_no_request_is_refused(self, web: FlaskClient, body: str) -> None:
        answer = web.post("/orders/good/refund", data=body)
        assert (answer.status_code, answer.get_json()["status"]) == (400, "not understood")
        answer = web.post("/orders/good/refund", data=body, content_type="application/json")
        assert (answer.status_code, answer.get_json()["status"]) == (400, "not understood")

    def test_asking_for_another_amount_under_one_refund_id_is_told_what_was_paid(
        self, web: FlaskClient, bank: Bank
    ) -> None:
        decision_id = self.ask(web)[1]["decision_id"]
        status, told = self.ask(web, amount=64)
        assert (status, told["status"], told["decision_id"]) == (409, "another refund", decision_id)
        assert "64.9 EUR for good" in told["why"]
        assert self.ask(web, reason="ordered_by_mistake")[0] == 200
        assert len(bank.paid()) == 1

    def test_asking_for_another_order_of_one_payment_under_one_refund_id_is_told_what_was_paid(
        self, client: Client, bank: Bank
    ) -> None:
        class Basket(Shop):
            def payment_of(self, order_id: str) -> str:
                return super().payment_of("basket")

        web = example("flask_refund").create_app(client, Basket(good=YES, better=YES), bank).test_client()
        assert [self.ask(web, order)[0] for order in ("good", "better", "good")] == [200, 409, 200]
        assert len(bank.paid()) == 1

    def test_an_event_of_the_payment_side_that_comes_twice_is_one_outcome(
        self, web: FlaskClient, client: Client
    ) -> None:
        decision_id = self.ask(web)[1]["decision_id"]
        event = {**self.EVENT, "note": decision_id}
        assert [web.post("/payment-events", json=event).status_code for _ in range(2)] == [200, 200]
        (outcome,) = client.list_outcomes(decision_id)["outcomes"]
        assert (outcome["outcome_status"], outcome["observed_metrics"]) == ("succeeded", {"hours_to_payout": 26})

    def test_an_event_that_cannot_be_reported_is_delivered_again(
        self, unreachable: Client, shop: Shop, bank: Bank
    ) -> None:
        dark = example("flask_refund").create_app(unreachable, shop, bank).test_client()
        assert dark.post("/payment-events", json=self.EVENT).status_code == 503

    @pytest.mark.parametrize(
        "fault",
        [
            cut("asked"),
            *(answering(Message(status)) for status in ("401", "403", "404", "409", "413", "422", "429", "502")),
            answering(Message("401", body=error_body("SVC_OUTCOME_UNAUTHORIZED"))),
            answering(Message("404", body=error_body("SVC_API_NOT_FOUND"))),
            answering(Message("409", body=error_body("SVC_OUTCOME_IDEMPOTENCY_IN_PROGRESS"))),
            answering(Message("429", body=error_body("SVC_API_RATE_LIMITED"))),
            answering(Message("503", body=error_body("SVC_STORAGE_UNAVAILABLE"))),
        ],
    )
    def test_an_event_that_may_be_taken_later_is_delivered_again(
        self, service: Service, line: FaultyGate, shop: Shop, bank: Bank, tmp_path: Path, fault: Fault
    ) -> None:
        with Client(**service.said(tmp_path / "intents.db", url=line.url)) as client:
            web = example("flask_refund").create_app(client, shop, bank).test_client()
            event = {**self.EVENT, "note": self.ask(web)[1]["decision_id"]}
            with line.striking("outcome", fault):
                assert web.post("/payment-events", json=event).status_code == 503
            assert web.post("/payment-events", json=event).get_json() == {"status": "noted"}

    def test_without_a_usable_key_an_event_is_delivered_again(
        self, service: Service, shop: Shop, bank: Bank, tmp_path: Path
    ) -> None:
        said = {**service.said(tmp_path / "intents.db"), "key_file": tmp_path / "missing.key"}
        with Client(**said) as client:
            web = example("flask_refund").create_app(client, shop, bank).test_client()
            assert web.post("/payment-events", json=self.EVENT).status_code == 503

    @pytest.mark.parametrize(
        "said",
        [
            {"note": "dec_00000000000000000000000000000000"},
            {"note": "of another kind"},
            {"note": None},
            {"hours": 27},
            {"event_id": "e-2", "hours": "many"},
            {"event_id": "e-2", "hours": float("nan")},
            {"event_id": "e\n2"},
        ],
    )
    def test_an_event_that_will_never_be_taken_is_logged_and_acknowledged(
        self, web: FlaskClient, client: Client, caplog: pytest.LogCaptureFixture, said: dict[str, Any]
    ) -> None:
        decision_id = self.ask(web)[1]["decision_id"]
        event = {**self.EVENT, "note": decision_id}
        assert web.post("/payment-events", json=event).get_json() == {"status": "noted"}
        answer = web.post("/payment-events", json={**event, **said})
        assert (answer.status_code, answer.get_json()["status"]) == (200, "given up")
        assert "An event is given up" in caplog.text
        assert len(client.list_outcomes(decision_id)["outcomes"]) == 1

    @pytest.mark.parametrize("body", ["", "[]", "{}", '{"status": "arrived"}'])
    def test_what_is_no_event_is_logged_and_acknowledged(
        self, web: FlaskClient, caplog: pytest.LogCaptureFixture, body: str
    ) -> None:
        answer = web.post("/payment-events", data=body, content_type="application/json")
        assert (answer.status_code, answer.get_json()["status"]) == (200, "given up")
        assert "An event is given up" in caplog.text


def worker_of(queue: Any, client: Client, bank: Any, *, longest: timedelta = timedelta(minutes=15)) -> Any:
    """A worker that takes what it left at once."""
    return example("queue_worker").Worker(queue, client, bank, longest=longest, pause=lambda message: 0.0)


# A process of its own that works on a message and dies, once it has paid or before. It loads no more than it needs.
DYING: Final = """
import os, sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from gate.client import Client

moment, example, folder, url, key_file, registry = sys.argv[1:]
found = spec_from_file_location("queue_worker", example)
sys.modules["queue_worker"] = queue_worker = module_from_spec(found)
found.loader.exec_module(queue_worker)

class Bank:
    def refund(self, payment_id, amount, currency, *, reference, note):
        if moment == "after":
            Path(folder, "bank").write_text(f"{reference} {payment_id} {amount} {note}\\n")
        os._exit(7)

client = Client(url, key_file=key_file, registry=registry, store=Path(folder, "intents.db"))
queue_worker.Worker(queue_worker.Queue(Path(folder, "queue.db"), 0), client, Bank()).work()
"""


class TestQueueWorker:
    @pytest.fixture
    def queue(self, tmp_path: Path) -> Any:
        return example("queue_worker").Queue(tmp_path / "queue.db", visibility=0)

    @pytest.fixture
    def message_id(self, tmp_path: Path) -> str:
        return f"message of {tmp_path}"

    def send(self, queue: Any, message_id: str, facts: Mapping[str, Any] = YES, payment_id: Any = "payment-1") -> None:
        queue.send(message_id, {"payment_id": payment_id, "facts": facts})

    def test_a_message_that_is_delivered_twice_is_paid_once(
        self, queue: Any, message_id: str, client: Client, bank: Bank
    ) -> None:
        worker = worker_of(queue, client, bank)
        for _ in range(2):
            self.send(queue, message_id)
            assert worker.work()
            assert not worker.work()
        ((_, payment, amount, decision_id),) = bank.paid()
        assert (payment, amount) == ("payment-1", "64.9")
        assert receipts(client, decision_id) == [("executed", "refund-1")]

    def test_a_worker_that_died_after_it_paid_does_not_pay_again(
        self, queue: Any, message_id: str, client: Client, bank: Bank, service: Service, tmp_path: Path
    ) -> None:
        self.send(queue, message_id)
        self.let_die("after", service, tmp_path)
        worker = worker_of(queue, client, bank)
        while worker.work():
            pass
        ((*_, decision_id),) = bank.paid()
        assert receipts(client, decision_id) == [("executed", None)]

    def test_a_worker_that_died_before_it_paid_is_followed_by_one_that_pays(
        self, queue: Any, message_id: str, client: Client, bank: Bank, service: Service, tmp_path: Path
    ) -> None:
        self.send(queue, message_id)
        self.let_die("before", service, tmp_path)
        patient = worker_of(queue, client, bank)
        assert patient.work()
        assert bank.paid() == []
        sure = worker_of(queue, client, bank, longest=timedelta(0))
        assert sure.work()
        assert not sure.work()
        ((*_, decision_id),) = bank.paid()
        assert receipts(client, decision_id) == [("executed", "refund-1")]
        of_payment = client.find_decisions(target_object_id="payment-1", limit=2)["decisions"]
        assert of_payment[0]["decision_id"] == decision_id
        assert receipts(client, of_payment[1]["decision_id"]) == [("skipped", None)]

    def let_die(self, moment: str, service: Service, folder: Path) -> None:
        program = ROOT / "docs" / "examples" / "queue_worker.py"
        said: list[str | Path] = [moment, program, folder, service.url, service.key_file, service.registry]
        assert subprocess.run([sys.executable, "-c", DYING, *said], cwd=ROOT, check=False).returncode == 7

    def test_a_second_worker_leaves_what_a_first_is_paying(
        self, queue: Any, message_id: str, client: Client, bank: Bank, tmp_path: Path
    ) -> None:
        paying, go_on = threading.Event(), threading.Event()

        def wait(moment: str) -> None:
            paying.set()
            assert go_on.wait(60)

        slow = Bank(tmp_path / "bank", wait)

        def work() -> None:
            worker_of(example("queue_worker").Queue(tmp_path / "queue.db", 0), client, slow).work()

        self.send(queue, message_id)
        first = threading.Thread(target=work)
        first.start()
        assert paying.wait(60)
        assert worker_of(queue, client, bank).work()
        assert bank.paid() == []
        go_on.set()
        first.join(60)
        assert len(bank.paid()) == 1
        assert not worker_of(queue, client, bank).work()

    def test_a_payment_that_failed_is_tried_again_once_nobody_can_be_at_it(
        self, queue: Any, message_id: str, client: Client, bank: Bank
    ) -> None:
        def fail(moment: str) -> None:
            raise example("queue_worker").PaymentFailed("no answer")

        bank.fails = fail
        self.send(queue, message_id)
        assert worker_of(queue, client, bank).work()
        bank.fails = lambda moment: None
        assert worker_of(queue, client, bank).work()
        assert bank.paid() == []
        sure = worker_of(queue, client, bank, longest=timedelta(0))
        assert sure.work()
        assert not sure.work()
        assert len(bank.paid()) == 1

    def test_a_payment_that_timed_out_and_was_made_is_found_and_not_made_again(
        self, queue: Any, message_id: str, client: Client, bank: Bank
    ) -> None:
        def time_out(moment: str) -> None:
            if moment == "after":
                raise example("queue_worker").PaymentFailed("no answer in time")

        bank.fails = time_out
        self.send(queue, message_id)
        worker = worker_of(queue, client, bank)
        assert [worker.work(), worker.work(), worker.work()] == [True, True, False]
        ((*_, decision_id),) = bank.paid()
        assert receipts(client, decision_id) == [("failed", None), ("executed", None)]
        assert queue.parked() == {}

    def test_a_no_is_acknowledged_and_a_review_waits_for_a_person(
        self, queue: Any, message_id: str, client: Client, bank: Bank
    ) -> None:
        self.send(queue, message_id, NO)
        self.send(queue, f"{message_id}, too", REVIEW)
        worker = worker_of(queue, client, bank)
        assert [worker.work() for _ in range(3)] == [True, True, False]
        ((parked, why),) = queue.parked().items()
        assert (parked, why[:20]) == (f"{message_id}, too", "review: decision dec")
        assert bank.paid() == []

    def test_what_cannot_be_decided_now_is_delivered_again(
        self, queue: Any, message_id: str, client: Client, unreachable: Client, bank: Bank
    ) -> None:
        self.send(queue, message_id)
        assert worker_of(queue, unreachable, bank).work()
        assert (bank.paid(), queue.parked()) == ([], {})
        assert worker_of(queue, client, bank).work()
        assert len(bank.paid()) == 1

    @pytest.mark.parametrize(
        ("facts", "payment_id"),
        [
            ({}, "payment-1"),
            *(({**YES, "amount": amount}, "payment-1") for amount in NO_AMOUNTS),
            *(({**YES, "currency": currency}, "payment-1") for currency in (None, "", 978)),
            *((YES, payment_id) for payment_id in (None, "", " ", 7)),
        ],
        ids=lambda said: f"{said}"[:40],
    )
    def test_what_nobody_can_read_is_parked(
        self, queue: Any, message_id: str, client: Client, bank: Bank, facts: dict[str, Any], payment_id: Any
    ) -> None:
        self.send(queue, message_id, facts, payment_id)
        worker = worker_of(queue, client, bank)
        assert [worker.work(), worker.work()] == [True, False]
        assert queue.parked()[message_id].startswith("not a refund")
        assert bank.paid() == []

    def test_what_is_never_settled_is_parked(self, queue: Any, message_id: str, client: Client, bank: Bank) -> None:
        def fail(moment: str) -> None:
            raise example("queue_worker").PaymentFailed("no answer")

        bank.fails = fail
        self.send(queue, message_id)
        worker = worker_of(queue, client, bank)
        most = example("queue_worker").MOST_DELIVERIES
        assert [worker.work() for _ in range(most + 2)] == [True] * (most + 1) + [False]
        assert queue.parked() == {message_id: f"delivered {most} times, and never settled"}

    def test_deliveries_without_a_verdict_do_not_count(
        self, queue: Any, message_id: str, service: Service, line: FaultyGate, bank: Bank, tmp_path: Path
    ) -> None:
        limited = answering(Message("429", {"retry-after": "0"}, error_body("SVC_API_RATE_LIMITED")))
        most = example("queue_worker").MOST_DELIVERIES
        self.send(queue, message_id)
        with Client(**service.said(tmp_path / "intents.db", url=line.url)) as client:
            worker = worker_of(queue, client, bank)
            with line.striking("decide", limited):
                assert [worker.work() for _ in range(most)] == [True] * most
            with line.away():
                assert [worker.work() for _ in range(most)] == [True] * most
            assert (bank.paid(), queue.parked()) == ([], {})
            assert [worker.work(), worker.work()] == [True, False]
        assert len(bank.paid()) == 1

    @pytest.mark.parametrize("deliveries", [1, 8, 9, 2000])
    def test_a_pause_is_five_minutes_at_most(self, queue: Any, client: Client, bank: Bank, deliveries: int) -> None:
        queue_worker = example("queue_worker")
        pause = queue_worker.Worker(queue, client, bank)._pause
        assert pause(queue_worker.Message("m-1", "{}", deliveries, 0)) == min(2 ** min(deliveries, 9), 300)

    def test_a_fault_of_the_worker_is_logged_and_it_goes_on(
        self, queue: Any, message_id: str, client: Client, bank: Bank, caplog: pytest.LogCaptureFixture
    ) -> None:
        def fail(moment: str) -> None:
            if not bank.paid():
                raise ZeroDivisionError("a bug")

        bank.fails = fail
        self.send(queue, message_id)
        worker = worker_of(queue, client, bank)
        assert worker.work()
        assert "ZeroDivisionError: a bug" in caplog.text
        assert (bank.paid(), queue.parked()) == ([], {})
        bank.fails = lambda moment: None
        self.send(queue, f"{message_id}, too")
        assert [worker.work(), worker.work()] == [True, True]
        assert [payment for _, payment, *_ in bank.paid()] == ["payment-1"]
        sure = worker_of(queue, client, bank, longest=timedelta(0))
        assert [sure.work(), sure.work()] == [True, False]
        assert len(bank.paid()) == 2

    def test_a_message_at_which_the_worker_always_fails_is_parked(
        self, queue: Any, message_id: str, client: Client, bank: Bank
    ) -> None:
        def fail(moment: str) -> None:
            raise ZeroDivisionError("a bug")

        bank.fails = fail
        self.send(queue, message_id)
        sure = worker_of(queue, client, bank, longest=timedelta(0))
        while sure.work():
            pass
        assert queue.parked()[message_id].endswith("never settled")
        assert bank.paid() == []

    def test_a_worker_works_until_it_is_told_to_stop(
        self, queue: Any, message_id: str, client: Client, bank: Bank, tmp_path: Path
    ) -> None:
        stop = threading.Event()

        def run() -> None:
            worker_of(example("queue_worker").Queue(tmp_path / "queue.db"), client, bank).run(stop)

        running = threading.Thread(target=run)
        running.start()
        self.send(queue, message_id)
        wait_until(lambda: len(bank.paid()) == 1)
        stop.set()
        running.join(60)
        assert not running.is_alive()


class Script:
    """A model that has made up its mind."""

    def __init__(self, calls: Sequence[Any]) -> None:
        self._calls = calls

    async def next_call(self, transcript: Sequence[Mapping[str, Any]]) -> Any:
        return self._calls[len(transcript)] if len(transcript) < len(self._calls) else None


class Platform:
    """What is known of two systems: one was rehearsed on, and one is frozen."""

    def facts(self, system: str, object_id: str) -> Mapping[str, Any]:
        return {
            "environment": "production",
            "change_freeze": system == "ledger",
            "data_classes": ["operational"],
            "approvals": ["service_owner"],
            "dry_run": {"passed": object_id == "rehearsed"},
        }


class TestAgentTool:
    @pytest.fixture
    def task(self, tmp_path: Path) -> str:
        return f"task of {tmp_path}"

    def play(self, said: dict[str, Any], task: str, calls: Sequence[Any], ran: list[str]) -> list[Any]:
        async def play() -> list[Any]:
            async with AsyncClient(**said) as client:
                tools = example("agent_tool").Toolbox(client, Platform(), agent="operations-agent", task=task)

                async def set_config(call: Any, permit: AsyncPermit) -> str:
                    ran.append(call.call_id)
                    if call.arguments.get("value") is None:
                        raise LookupError("there is no such setting")
                    return f"set to {call.arguments['value']}"

                async def export_credentials(call: Any, permit: AsyncPermit) -> str:
                    ran.append(call.call_id)
                    return "secrets"

                tools.tool("config.update", takes=("affected_objects", "rollback_plan"), reversible=True)(set_config)
                tools.tool("credential.export", takes=("affected_objects",), reversible=True)(export_credentials)
                return list(await example("agent_tool").run_task(Script(calls), tools))

        return asyncio.run(play())

    def call(self, call_id: str, name: str = "set_config", **arguments: Any) -> Any:
        usual = {
            "system": "orders",
            "object": "rehearsed",
            "affected_objects": 4,
            "value": 3,
            "rollback_plan": "Set 5.",
        }
        return example("agent_tool").ToolCall(call_id, name, {**usual, **arguments})

    def test_a_model_reads_what_ran_and_why_the_rest_did_not(
        self, service: Service, client: Client, task: str, tmp_path: Path
    ) -> None:
        ran: list[str] = []
        calls = [
            self.call("1"),
            self.call("1"),
            self.call("2", "export_credentials"),
            self.call("3", object="unrehearsed", dry_run={"passed": True}),
            self.call("4", system="ledger", change_freeze=False),
            self.call("5", affected_objects="many"),
            self.call("6", value=None),
            self.call("7", "format_disk"),
            example("agent_tool").ToolCall("8", "set_config", {}),
            self.call("9", affected_objects=float("nan")),
        ]
        results = self.play(service.said(tmp_path / "intents.db"), task, calls, ran)
        assert ran == ["1", "6"]
        assert [(each["call_id"], each["status"]) for each in results] == [
            ("1", "done"),
            ("1", "not run again"),
            ("2", "not permitted"),
            ("3", "not permitted"),
            ("4", "not permitted"),
            ("5", "not permitted"),
            ("6", "error"),
            ("7", "error"),
            ("8", "error"),
            ("9", "error"),
        ]
        assert (results[1]["ended"], results[1]["result"]) == ("executed", "set to 3")
        assert [(each["verdict"], each["reason_code"]) for each in results[2:6]] == [
            ("no", "ACTION_KIND_FORBIDDEN"),
            ("review", "NOT_REHEARSED"),
            ("no", "CHANGE_FREEZE"),
            ("review", "INPUT_SCHEMA_FAILED"),
        ]
        assert all(each["evidence"] for each in results[2:6])
        assert receipts(client, results[0]["decision_id"]) == [("executed", None)]

    def test_a_loop_that_is_restarted_does_not_run_its_calls_again(
        self, service: Service, task: str, tmp_path: Path
    ) -> None:
        ran: list[str] = []
        calls = [self.call("1"), self.call("2", value=5)]
        for planned in (calls[:1], calls):
            results = self.play(service.said(tmp_path / "intents.db"), task, planned, ran)
        assert ran == ["1", "2"]
        assert [each["status"] for each in results] == ["not run again", "done"]

    def test_without_the_gate_no_tool_runs(self, service: Service, task: str, tmp_path: Path) -> None:
        ran: list[str] = []
        said = service.said(tmp_path / "intents.db", url=f"http://127.0.0.1:{free_port()}")
        (result,) = self.play(said, task, [self.call("1")], ran)
        assert (ran, result["status"], result["why"]) == ([], "not decided", "GATE_UNREACHABLE")


@dataclass(frozen=True, slots=True)
class Books:
    """A shop that keeps balances: its sessions, the guard's store in the same database, a client with that store."""

    sessions: sessionmaker[Session]
    store: SqlAlchemyStore
    client: Client

    def refund(self, session: Session, order_id: str, which: str = "first", client: Any = None) -> Any:
        service_function = example("service_function")
        refund_id = f"{self.store.identity}-{order_id}-{which}"
        return service_function.refund_to_balance(
            session, client or self.client, order_id=order_id, refund_id=refund_id
        )

    def balance(self) -> tuple[int, int]:
        """The customer's balance, and how many refunds there are."""
        service_function = example("service_function")
        with self.sessions() as session:
            refunds = session.scalar(select(func.count()).select_from(service_function.Refund))
            return session.get_one(service_function.Customer, "customer-1").balance_cents, refunds or 0


class TestServiceFunction:
    @pytest.fixture(params=["sqlite", "postgresql"])
    def books(self, request: pytest.FixtureRequest, service: Service, tmp_path: Path) -> Iterator[Books]:
        if request.param == "sqlite":
            yield from self.made(f"sqlite:///{tmp_path / 'shop.db'}", service)
        else:
            postgres: Postgres = request.getfixturevalue("postgres")
            with postgres.database() as url:
                yield from self.made(url.replace("postgresql:", "postgresql+psycopg:"), service)

    def made(self, url: str, service: Service) -> Iterator[Books]:
        service_function = example("service_function")
        engine = create_engine(url)
        service_function.Base.metadata.create_all(engine)
        store = SqlAlchemyStore(engine)
        store.create_tables()
        sessions = sessionmaker(engine)
        bought = {"bought_at": datetime.now(UTC).replace(tzinfo=None) - timedelta(days=12), "customer_id": "customer-1"}
        with sessions.begin() as session:
            session.add(service_function.Customer(customer_id="customer-1", balance_cents=100))
            session.flush()
            session.add(service_function.Order(order_id="good", paid_cents=6490, item_returned=True, **bought))
            session.add(service_function.Order(order_id="none", paid_cents=0, item_returned=True, **bought))
            session.add(service_function.Order(order_id="too", paid_cents=1000, item_returned=True, **bought))
        with Client(**service.said(store)) as client:
            yield Books(sessions, store, client)
        engine.dispose()

    def test_what_is_committed_is_there_once_and_the_service_is_told(self, books: Books) -> None:
        with books.sessions.begin() as session:
            refund = books.refund(session, "good")
            decision_id, refund_id = refund.decision_id, refund.refund_id
        assert receipts(books.client, decision_id) == [("executed", refund_id)]
        with pytest.raises(AlreadyStarted), books.sessions.begin() as session:
            books.refund(session, "good")
        assert books.balance() == (6590, 1)

    def test_what_is_rolled_back_is_not_told_and_may_run_again(self, books: Books) -> None:
        with books.sessions() as session:
            decision_id = books.refund(session, "good").decision_id
            session.rollback()
        assert books.balance() == (100, 0)
        assert receipts(books.client, decision_id) == []
        with books.sessions.begin() as session:
            assert books.refund(session, "good").decision_id == decision_id
        assert books.balance() == (6590, 1)
        assert [status for status, _ in receipts(books.client, decision_id)] == ["executed"]

    def test_what_the_gate_does_not_allow_is_not_written(self, books: Books, service: Service) -> None:
        with pytest.raises(Blocked), books.sessions.begin() as session:
            books.refund(session, "none")
        dark = Client(**service.said(books.store, url=f"http://127.0.0.1:{free_port()}"))
        with dark, pytest.raises(GateUnavailable), books.sessions.begin() as session:
            Books(books.sessions, books.store, dark).refund(session, "good")
        assert books.balance() == (100, 0)

    def test_an_order_is_not_paid_back_twice(self, books: Books) -> None:
        with books.sessions.begin() as session:
            books.refund(session, "good")
        with pytest.raises(Blocked) as caught, books.sessions.begin() as session:
            books.refund(session, "good", "second")
        assert caught.value.record is not None
        assert caught.value.record["reason_code"] == "REFUND_EXCEEDS_PAYMENT"
        with books.sessions.begin() as session:
            books.refund(session, "too")
        assert books.balance() == (7590, 2)

    def test_what_was_rolled_back_was_not_paid_back(self, books: Books) -> None:
        with books.sessions() as session:
            books.refund(session, "good")
            session.rollback()
        with books.sessions.begin() as session:
            books.refund(session, "good", "second")
        assert books.balance() == (6590, 1)

    @pytest.mark.parametrize(("days_ago", "is_paid"), [(360, False), (370, True)])
    def test_the_refunds_of_the_last_twelve_months_count(self, books: Books, days_ago: int, is_paid: bool) -> None:
        service_function = example("service_function")
        paid_at = datetime.now(UTC).replace(tzinfo=None) - timedelta(days=days_ago)
        with books.sessions.begin() as session:
            for number in range(3):
                earlier = {"refund_id": f"earlier-{number}", "order_id": "too", "cents": 1, "decision_id": "dec_1"}
                session.add(service_function.Refund(paid_at=paid_at, **earlier))
        if is_paid:
            with books.sessions.begin() as session:
                books.refund(session, "good")
        else:
            with pytest.raises(HeldForReview) as caught, books.sessions.begin() as session:
                books.refund(session, "good")
            assert caught.value.record is not None
            assert caught.value.record["reason_code"] == "FREQUENT_REFUNDS"
        assert books.balance() == ((6590, 4) if is_paid else (100, 3))

    def test_of_two_refunds_of_one_order_at_the_same_time_one_is_paid(self, books: Books) -> None:
        service_function, begun = example("service_function"), threading.Barrier(2)

        class Together:
            """A gate that permits both before either has paid, where the database lets two begin."""

            @contextmanager
            def guard(self, *said: Any, **more: Any) -> Iterator[Any]:
                with books.client.guard(*said, **more) as permit:
                    with suppress(threading.BrokenBarrierError):
                        begun.wait(1)
                    yield permit

        def is_paid(which: str) -> bool:
            try:
                with books.sessions.begin() as session:
                    books.refund(session, "good", which, client=Together())
            except service_function.FactsChanged:
                return False
            return True

        refunds = ("first", "second")
        with ThreadPoolExecutor(2) as pool:
            paid = list(pool.map(is_paid, refunds))
        assert sorted(paid) == [False, True]
        assert books.balance() == (6590, 1)
        with pytest.raises(Blocked), books.sessions.begin() as session:
            books.refund(session, "good", refunds[paid.index(False)])
