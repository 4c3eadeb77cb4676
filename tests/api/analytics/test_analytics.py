"""Asking the analytics process: what it answers arrives as it was made, and whatever else happens there is one 503."""

from __future__ import annotations

import os
import shutil
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import orjson
import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import update
from werkzeug.test import Client as WsgiClient

from api.analytics.client import ADDRESS_VARIABLE, AnalyticsClient, analytics_process, is_installed
from api.app import create_app
from api.http import turns
from api.http.requests import TURN
from api.http.turns import Turns
from gate.clock import utc_now
from gate.errors import GateError, ServiceUnavailable
from gate.instance.instance import Instance, open_instance
from gate.instance.settings import load_settings
from gate.ledger.access.authority import FULL_ACCESS, Scope
from gate.ledger.tables import entries
from gate.policy.questions import EffectivenessQuestion, MigrationReportQuestion, ReportDocument
from tests.end_to_end.site import wait_until
from tests.support.migrations import candidate, desk
from tests.support.reports import give_reports
from tests.support.samples import same_json, sample_request
from tests.workbench.support import Chain
from workbench.analytics import MAX_QUESTION, Analytics
from workbench.lake.entries import Personal

SECONDS: Final = 0.2
"""How long a client waits that is not going to get an answer."""


Behaviour = Callable[[Connection], None]


@contextmanager
def listening(behaviour: Behaviour) -> Iterator[str]:
    """The address of something that listens while the block runs, and treats each connection in its way."""
    # A socket's path has at most 107 bytes, and the folder of a test may have more.
    with ExitStack() as held:
        listener = held.enter_context(Listener(family="AF_UNIX"))
        ending = threading.Event()

        def answer() -> None:
            while True:
                with listener.accept() as connection:
                    if ending.is_set():
                        return
                    behaviour(connection)

        thread = threading.Thread(target=answer)
        thread.start()
        try:
            address = listener.address
            assert isinstance(address, str)
            yield address
        finally:
            ending.set()
            Client(address, family="AF_UNIX").close()
            thread.join(30)


def answering(reply: bytes) -> Behaviour:
    """Reads the question and answers these bytes."""

    def behave(connection: Connection) -> None:
        connection.recv_bytes()
        connection.send_bytes(reply)

    return behave


def closing_after(what: bytes) -> Behaviour:
    """Reads the question, sends these bytes as they are, without a frame, and closes."""

    def behave(connection: Connection) -> None:
        connection.recv_bytes()
        os.write(connection.fileno(), what)

    return behave


def refused(ask: Callable[[], object]) -> ServiceUnavailable:
    """The error that asking ends in."""
    with pytest.raises(ServiceUnavailable) as caught:
        ask()
    return caught.value


def ask(address: str, scope_id: str = "0" * 16, **changed: Any) -> ReportDocument:
    """What a client that waits for a moment only is answered."""
    return AnalyticsClient(address, seconds=SECONDS).answer(scope_id, EffectivenessQuestion("pricing", **changed))


def decisions(report: ReportDocument) -> object:
    """How many decisions a report covers."""
    coverage = report["coverage"]
    assert isinstance(coverage, dict)
    return coverage["decisions"]


def assert_unavailable(error: GateError) -> None:
    """Asserts that an error is one that a caller knows what to do about."""
    assert (error.code, error.details) == ("SVC_REPORT_UNAVAILABLE", {"retry_after": 5})
    assert "Decisions are not affected" in error.message
    assert error.message.endswith("retry in a few seconds.")


class Served:
    """An instance with an analytics process; `scope` has decisions and outcomes, one of `damaged` cannot be read."""

    def __init__(self, instance: Instance, address: str, scope: Scope, damaged: Scope) -> None:
        self.address = address
        self.scope = scope
        self.damaged = damaged
        self.direct = Analytics(instance.ledger, instance.settings.lake_directory, Personal(), instance.migrations())
        self.asked = AnalyticsClient(address)


def listens(address: str) -> bool:
    """Whether somebody takes connections there: the socket is a file before that."""
    with socket.socket(socket.AF_UNIX) as link:
        return link.connect_ex(address) == 0


@pytest.fixture(scope="module")
def served(laid_out: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    home = tmp_path_factory.mktemp("analytics") / "home"
    shutil.copytree(laid_out, home)
    with closing(open_instance(load_settings(home))) as instance:
        directory = instance.ledger.directory
        scopes = [directory.create_scope(name, "unlimited", utc_now()) for name in ("acme", "damaged")]
        for scope in scopes:
            key, _ = directory.create_key(scope, FULL_ACCESS, None, utc_now())
            Chain(instance, directory.authenticate(key, utc_now())).grow(6)
        desk(instance, scopes[0]).propose("prices_1", candidate("1"), failures=["It fails. " * 100] * 400)
        with instance.ledger.store.write() as connection:
            connection.execute(update(entries).where(entries.c.scope_id == scopes[1].scope_id).values(body=b"x"))
        with TemporaryDirectory() as short, analytics_process(home, Path(short), os.getpid()) as address:
            wait_until(lambda: listens(address))
            yield Served(instance, address, *scopes)


@pytest.mark.parametrize(
    ("policy_id", "arguments", "counted"),
    [
        ("pricing_exception", {}, 6),
        ("pricing_exception", {"policy_version": "2026-06-11"}, 6),
        ("pricing_exception", {"limit": 3, "min_sample": 1}, 3),
        ("pricing_exception", {"policy_version": "no such version \U0001f9ed"}, 0),
        ("no such policy", {}, 0),
    ],
)
def test_an_answer_is_the_one_that_was_made(
    served: Served, policy_id: str, arguments: dict[str, Any], counted: int
) -> None:
    question = EffectivenessQuestion(policy_id, **arguments)
    told, made = (dict(reports.answer(served.scope.scope_id, question)) for reports in (served.asked, served.direct))
    assert same_json(told, made)
    assert decisions(told) == counted


@pytest.mark.parametrize("form", ["markdown", "html"])
def test_the_page_of_evidence_that_is_longer_than_any_question_is_answered(served: Served, form: str) -> None:
    question = MigrationReportQuestion(migration_id="prices_1", format=form)
    told, made = (reports.answer(served.scope.scope_id, question) for reports in (served.asked, served.direct))
    assert told == made
    assert len(str(told["text"])) > 4 * MAX_QUESTION


def test_a_migration_that_the_scope_does_not_have_has_no_page(served: Served) -> None:
    for scope_id, migration_id in ((served.scope.scope_id, "prices_2"), ("no such scope", "prices_1")):
        question = MigrationReportQuestion(migration_id=migration_id, format="html")
        error = refused(lambda scope_id=scope_id, question=question: served.asked.answer(scope_id, question))  # type: ignore[misc]
        assert (error.code, migration_id in error.message) == ("SVC_REPORT_UNAVAILABLE", True)


@pytest.mark.parametrize("name", ["damaged", "none"])
def test_an_error_of_the_other_side_arrives_with_code_message_and_details(served: Served, name: str) -> None:
    scope_id, code = {
        "damaged": (served.damaged.scope_id, "SVC_STORAGE_UNAVAILABLE"),
        "none": ("no such scope", "SVC_REPORT_UNAVAILABLE"),
    }[name]
    question = EffectivenessQuestion("pricing_exception")
    told = refused(lambda: served.asked.answer(scope_id, question))
    made = refused(lambda: served.direct.answer(scope_id, question))
    assert (told.code, told.message, told.details) == (made.code, made.message, made.details)
    assert told.code == code


def test_many_ask_at_once_and_each_gets_its_own_answer(served: Served) -> None:
    versions = [f"v{number}" for number in range(6)]
    answers: dict[str, Any] = {}

    def work(version: str) -> None:
        told = served.asked.answer(served.scope.scope_id, EffectivenessQuestion("p", policy_version=version))
        answers[version] = told["policy_version"]

    threads = [threading.Thread(target=work, args=(version,)) for version in versions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert answers == {version: version for version in versions}


@pytest.mark.parametrize(
    "question", [b"x", b"[]", b"{}", b'{"report":"none"}', b'{"report":"effectiveness"}', b" " * (MAX_QUESTION + 1)]
)
def test_a_question_that_is_none_gets_no_answer_and_harms_nobody(served: Served, question: bytes) -> None:
    def answered(connection: Connection) -> bytes:
        # One that is too long may be hung up on before it is wholly sent.
        connection.send_bytes(question)
        return connection.recv_bytes()

    with Client(served.address, family="AF_UNIX") as connection, pytest.raises((EOFError, ConnectionError)):
        answered(connection)
    assert decisions(served.asked.answer(served.scope.scope_id, EffectivenessQuestion("none"))) == 0


def test_where_nobody_listens_the_report_is_unavailable(tmp_path: Path) -> None:
    with listening(closing_after(b"")) as gone:
        pass
    for address in (gone, str(tmp_path), str(tmp_path / "none"), str(tmp_path / ("x" * 200))):

        def ask_there(there: str = address) -> None:
            ask(there)

        assert_unavailable(refused(ask_there))


def test_a_listener_that_does_not_answer_is_waited_for_so_long_and_no_longer() -> None:
    over = threading.Event()

    def behave(_: Connection) -> None:
        over.wait(30)

    with listening(behave) as address:
        error = refused(lambda: ask(address))
        # Nobody takes the second connection while the first one is held.
        assert refused(lambda: ask(address)).message == error.message
        over.set()
    assert_unavailable(error)
    assert f"longer than {SECONDS} seconds" in error.message


@pytest.mark.parametrize(
    "reply", [b"", b"x", b'{"answer":', b"\xff", b"NaN", b"[]", b"null", b"7", b"{}", b'{"error":{}}']
)
def test_an_answer_that_is_none_makes_the_report_unavailable(reply: bytes) -> None:
    with listening(answering(reply)) as address:
        assert_unavailable(refused(lambda: ask(address)))


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"\0",
        struct.pack("!i", 100) + b'{"answer"',
        struct.pack("!i", 2**31 - 1) + b"{",
        b"HTTP/1.1 200 OK\r\n\r\n",
    ],
    ids=["nothing", "half a frame", "half an answer", "more than is read", "another protocol"],
)
def test_a_listener_that_closes_makes_the_report_unavailable(sent: bytes) -> None:
    with listening(closing_after(sent)) as address:
        assert_unavailable(refused(lambda: ask(address)))


def test_the_question_holds_what_was_asked() -> None:
    asked: list[Any] = []

    def behave(connection: Connection) -> None:
        asked.append(orjson.loads(connection.recv_bytes()))
        connection.send_bytes(b'{"answer":{"a":[1,1.5,null,"\xc3\xa9"]}}')

    with listening(behave) as address:
        answer = ask(address, scope_id="scope", policy_version="v", limit=7)
    assert answer == {"a": [1, 1.5, None, "\u00e9"]}
    assert asked == [
        {
            "report": "effectiveness",
            "scope_id": "scope",
            "policy_id": "pricing",
            "policy_version": "v",
            "verdict": None,
            "since": None,
            "until": None,
            "clock": "recorded",
            "limit": 7,
            "min_sample": 20,
        }
    ]


@pytest.mark.parametrize("reply", [b'{"answer":{}}', b"x"])
def test_a_request_gives_up_its_turn_while_it_waits_and_takes_it_again(reply: bytes) -> None:
    seen: list[str] = []

    @contextmanager
    def waiting() -> Iterator[None]:
        seen.append("given up")
        try:
            yield
        finally:
            seen.append("taken again")

    def behave(connection: Connection) -> None:
        connection.recv_bytes()
        seen.append("asked")
        connection.send_bytes(reply)

    application = Flask("waiting")
    with listening(behave) as address, application.test_request_context(environ_overrides={TURN: waiting}):
        if reply == b"x":
            assert_unavailable(refused(lambda: ask(address)))
        else:
            assert ask(address) == {}
    assert seen == ["given up", "asked", "taken again"]


def test_while_a_report_is_waited_for_others_are_answered(
    client: FlaskClient, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One request at a time: whoever kept its turn would hold up everybody.
    monkeypatch.setattr(turns, "WORKING", 1)
    monkeypatch.setenv(turns.PORT_VARIABLE, "1")
    asked, decided = threading.Event(), threading.Event()

    def behave(connection: Connection) -> None:
        connection.recv_bytes()
        asked.set()
        decided.wait(30)
        connection.send_bytes(orjson.dumps({"error": {"code": "SVC_REPORT_UNAVAILABLE", "message": "Later."}}))

    answers: list[Any] = []
    with listening(behave) as address:
        give_reports(client.application, AnalyticsClient(address))
        service = WsgiClient(Turns(client.application, 30))
        path, headers = "/api/decision/policies/pricing_exception/effectiveness", {"x-api-key": key}
        waiting = threading.Thread(target=lambda: answers.append(service.get(path, headers=headers)))
        waiting.start()
        assert asked.wait(30)
        other = WsgiClient(service.application).post("/api/decide", json=sample_request(), headers=headers)
        assert (other.status_code, answers) == (200, [])
        decided.set()
        waiting.join(30)
    (answer,) = answers
    assert (answer.status_code, answer.get_json()["message"]) == (503, "Later.")


def test_an_application_asks_where_the_environment_says(
    instance: Instance, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, headers = "/api/decision/policies/pricing_exception/effectiveness", {"x-api-key": key}
    with listening(answering(b"x")) as address:
        for named, told in ((address, 5), ("", None)):
            monkeypatch.setenv(ADDRESS_VARIABLE, named)
            response = create_app(instance).test_client().get(path, headers=headers)
            body = response.get_json()
            assert (response.status_code, body["error"]) == (503, "SVC_REPORT_UNAVAILABLE")
            assert body.get("retry_after") == told


def test_status_names_the_process_that_counts_for_reports(instance: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    def told(address: str | None) -> dict[str, Any]:
        monkeypatch.setenv(ADDRESS_VARIABLE, address or "")
        report = create_app(instance).test_client().get("/api/decision/status").get_json()
        assert report["ok"] is True
        backends: dict[str, Any] = report["backends"]
        return backends

    assert set(told(None)) == {"ready", "ledger", "advisory", "trusted_adapters", "reports"}
    assert told(None)["reports"] == "unconfigured"
    with listening(lambda connection: connection.close()) as address:
        assert told(address)["reports"] == "ready"
        assert told(f"{address}x")["reports"] == "unavailable"


def test_its_libraries_are_found_without_loading_them() -> None:
    assert is_installed()
