"""`gate client`: what a guard's store holds, delivering its reports, and what a person says of an action."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from fcntl import LOCK_EX, flock
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any, Final
from uuid import uuid4

import httpx
import pytest

from gate.client import AlreadyStarted, Blocked, Client, Guard, Intent, Permit, Report, SqliteStore, State
from gate.client.guard.recovery import found_out
from gate.client.guard.reporting import cited, execution_report
from gate.client.store import sqlite
from gate.client.types import DecisionRecord
from gate.errors import FieldError, RequestRefused
from tests.api.cli.hostile import HOSTILE, HOSTILE_ARGUMENT, NO_TEXT
from tests.end_to_end.site import GATE, Site
from tests.end_to_end.support import ROOT, free_port
from tests.support.command_line import run_gate
from tests.support.samples import sample_rulebook

pytestmark = pytest.mark.heavy

APPROVED: Final = {"discount_percent": 10, "margin_percent": 22}
REVIEWED: Final = {"discount_percent": 40, "margin_percent": 22}
SETTINGS: Final = ("GATE_URL", "GATE_API_KEY", "GATE_API_KEY_FILE", "GATE_KEY_REGISTRY", "GATE_INTENTS")
# Without pydantic, which the command line's own library comes with.
SERVER_LIBRARIES: Final = ("flask", "sqlalchemy", "alembic", "granian", "jsonschema_rs", "cachetools", "structlog")


@dataclass(frozen=True, slots=True)
class Service:
    """A running service.

    Attributes:
        url: Where it is.
        registry: A file with its receipt keys.
        keys: Files with keys of one scope: one that may do everything, `mute` that may not report, `owner` that
            answers reviews; and `stranger`, of another scope.
    """

    url: str
    registry: Path
    keys: dict[str, Path]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("service")
    site = Site(folder / "home", None)
    mute = ("--access", "decide", "--access", "register", "--access", "read")
    made = {
        "full": site.create_key("acme"),
        "mute": site.gate("keys", "create", "--scope", "acme", *mute)["key"],
        "stranger": site.create_key("other"),
        "owner": site.gate("keys", "create", "--scope", "acme", "--access", "resolve")["key"],
    }
    for name, key in made.items():
        (folder / f"{name}.key").write_text(f"{key}\n")
    with site.serving(1) as server:
        registry = folder / "keys.json"
        registry.write_bytes(httpx.get(f"{server.url}/api/decision/receipt-keys", trust_env=False).content)
        yield Service(server.url, registry, {name: folder / f"{name}.key" for name in made})


@dataclass(frozen=True, slots=True)
class Shop:
    """A guarded process's store, and the service that it asks."""

    service: Service
    store: Path

    @contextmanager
    def client(self, key: str = "full") -> Iterator[Client]:
        """A client that keeps its intents in the store."""
        service = self.service
        with Client(service.url, key_file=service.keys[key], registry=service.registry, store=self.store) as client:
            yield client

    @staticmethod
    def guard(client: Client, order: str, facts: dict[str, Any] = APPROVED, **more: Any) -> Guard:
        """What guards the discount of an order."""
        target = ("crm", order, "discount.update")
        return client.guard(sample_rulebook(), facts, action="approve_discount", target=target, **more)

    def begin(self, key: str = "full", *, order: str | None = None) -> Permit:
        """Begins an action whose end nobody tells."""
        with self.client(key) as client:
            return self.guard(client, order or new_order()).__enter__()

    def do(self, key: str = "full", *, order: str | None = None, fails: bool = False) -> Permit:
        """Does an action, whose report waits where the key is mute; or fails at it."""
        with self.client(key) as client:
            try:
                with self.guard(client, order or new_order()) as permit:
                    if fails:
                        raise OSError("the bank is closed")
            except OSError:
                assert fails
        return permit

    def gate(self, *arguments: str, key: str | None = None) -> CompletedProcess[str]:
        """Runs `gate client ...` on the store, and with the service and a key where one is named."""
        reached = [] if key is None else ["--url", self.service.url, "--key-file", str(self.service.keys[key])]
        done = run_gate("client", *arguments, "--store", str(self.store), *reached)
        for file in self.service.keys.values():
            assert file.read_text().strip() not in done.stdout + done.stderr
        return done

    @contextmanager
    def misdirected(self) -> Iterator[None]:
        """What waits is about a decision that the service does not know."""
        with closing(sqlite3.connect(self.store, isolation_level=None)) as connection:
            connection.execute("UPDATE gate_reports SET decision_id = 'x' || decision_id")
        yield
        with closing(sqlite3.connect(self.store, isolation_level=None)) as connection:
            connection.execute("UPDATE gate_reports SET decision_id = substr(decision_id, 2)")

    def kept(self, permit: Permit) -> Any:
        """What `gate client show` says of an intent."""
        return printed(self.gate("show", permit.intent_id, "--json"))

    def told(self, permit: Permit) -> list[tuple[str, str | None]]:
        """The execution receipts that the service has of a decision: status and result, oldest first."""
        with self.client() as client:
            listed = client.list_executions(permit.decision_id)["executions"]
        return [(found["execution_status"], found.get("execution_result")) for found in reversed(listed)]


@pytest.fixture
def shop(service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    return Shop(service, tmp_path / "intents.db")


def new_order() -> str:
    """An order that no other test knows: an action begins once in a scope."""
    return f"order-{uuid4().hex}"


def printed(done: CompletedProcess[str], code: int = 0) -> Any:
    assert (done.returncode, done.stderr) == (code, "")
    return json.loads(done.stdout)


def refused(done: CompletedProcess[str], code: str) -> str:
    """The sentence of a command that could not be done."""
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("gate: ")
    assert done.stderr.endswith(f" ({code})\n")
    return done.stderr.removeprefix("gate: ").removesuffix(f" ({code})\n")


def said(done: CompletedProcess[str], code: int = 0) -> str:
    assert (done.returncode, done.stderr) == (code, "")
    return done.stdout


class TestStatus:
    """gate client status."""

    def test_it_is_fine_where_everything_is_told(self, shop: Shop) -> None:
        shop.do()
        assert said(shop.gate("status")) == "Nothing needs a person.\n"
        assert printed(shop.gate("status", "--json")) == {
            "needs_a_person": False,
            "started": [],
            "in_review": [],
            "waiting": {"reports": 0, "oldest_told_at": None},
            "refused": [],
            "complete": True,
        }

    def test_it_names_what_was_begun_and_not_ended(self, shop: Shop) -> None:
        shop.do()
        order = new_order()
        permit = shop.begin(order=order)
        (begun,) = printed(shop.gate("status", "--json"), 1)["started"]
        assert begun == {
            "intent_id": permit.intent_id,
            "attempt": 1,
            "decision_id": permit.decision_id,
            "action": "approve_discount",
            "target": {"system": "crm", "object_id": order, "mutation": "discount.update"},
            "started_at": shop.kept(permit)["started_at"],
        }
        told = said(shop.gate("status"), 1)
        for part in (permit.intent_id, permit.decision_id, f"crm {order} discount.update", "gate client settle"):
            assert part in told
        assert "Nothing needs" not in told

    def test_it_names_what_is_held_for_review_which_needs_nobody_here(self, shop: Shop) -> None:
        intent_id = held(shop)
        status = printed(shop.gate("status", "--json"))
        (review,) = status["in_review"]
        assert status["needs_a_person"] is False
        assert (review["intent_id"], review["action"], review["attempt"]) == (intent_id, "approve_discount", 1)
        assert review.keys() == {"intent_id", "attempt", "decision_id", "action", "target", "asked_at"}
        told = said(shop.gate("status"))
        assert "Actions held for review: 1." in told
        assert intent_id in told

    def test_reports_that_only_wait_need_nobody(self, shop: Shop) -> None:
        first = shop.do("mute")
        shop.do("mute")
        status = printed(shop.gate("status", "--json"))
        oldest = shop.kept(first)["execution"]["executed_at"]
        assert (status["needs_a_person"], status["waiting"]["reports"]) == (False, 2)
        assert status["waiting"]["oldest_told_at"] >= oldest
        assert f"Waiting reports: 2, the oldest from {status['waiting']['oldest_told_at']}." in said(
            shop.gate("status")
        )

    def test_it_says_which_reports_were_refused_and_why(self, shop: Shop) -> None:
        permit = shop.do("mute")
        with shop.misdirected():
            shop.gate("flush", key="full")
        status = printed(shop.gate("status", "--json"), 1)
        (report,) = status["refused"]
        assert report.keys() == {"intent_id", "attempt", "kind", "decision_id", "told_at", "why"}
        assert (report["decision_id"], report["kind"], report["attempt"]) == (permit.decision_id, "execution", 1)
        assert "SVC_DECISION_NOT_FOUND" in report["why"]
        assert (status["needs_a_person"], status["started"], status["waiting"]["reports"]) == (True, [], 0)
        told = said(shop.gate("status"), 1)
        assert "gate client flush --again" in told
        assert "SVC_DECISION_NOT_FOUND" in told

    def test_it_says_so_where_there_is_more_than_it_looks_at(self, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("api.cli.client._MOST", 1)
        shop.do("mute")
        assert printed(shop.gate("status", "--json"), 1)["complete"] is False
        assert "There are more" in said(shop.gate("status"), 1)

    def test_an_action_whose_process_was_killed_is_named_on_the_base_install(self, shop: Shop) -> None:
        program = (
            "import os, signal, sys\n"
            "from gate.client import Client\n"
            "from tests.api.cli.test_client import Shop\n"
            "url, key, registry, store = sys.argv[1:]\n"
            "with Shop.guard(Client(url, key_file=key, registry=registry, store=store), 'order-killed'):\n"
            "    os.kill(os.getpid(), signal.SIGKILL)\n"
        )
        named = [shop.service.url, shop.service.keys["full"], shop.service.registry, shop.store]
        killed = subprocess.run([sys.executable, "-c", program, *map(str, named)], cwd=ROOT, check=False)
        assert killed.returncode == -signal.SIGKILL
        blocked = (
            f"import sys; sys.modules.update(dict.fromkeys({SERVER_LIBRARIES!r})); "
            "from api.cli.main import main; sys.argv[0] = 'gate'; main()"
        )
        command = [sys.executable, "-c", blocked, "client", "status", "--json"]
        environment = {**os.environ, "GATE_INTENTS": str(shop.store)}
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, check=False)
        (begun,) = printed(done, 1)["started"]
        assert begun["target"]["object_id"] == "order-killed"


class TestFlush:
    """gate client flush."""

    def test_it_delivers_what_waits(self, shop: Shop) -> None:
        permits = [shop.do("mute") for _ in range(2)]
        assert printed(shop.gate("flush", "--json", key="full")) == {
            "delivered": 2,
            "set_aside": 0,
            "failure": None,
            "foreign": False,
            "waiting": 0,
            "refused": [],
        }
        assert [shop.told(permit) for permit in permits] == [[("executed", None)]] * 2
        assert shop.kept(permits[0])["state"] == "reported"
        assert said(shop.gate("flush", key="full")) == "Delivered: 0. Refused: 0. Still waiting: 0.\n"

    def test_it_takes_the_service_and_the_key_from_the_environment(
        self, shop: Shop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        shop.do("mute")
        shop.do("mute")
        monkeypatch.setenv("GATE_INTENTS", str(shop.store))
        monkeypatch.setenv("GATE_URL", shop.service.url)
        monkeypatch.setenv("GATE_API_KEY_FILE", str(shop.service.keys["mute"]))
        assert "Still waiting: 2." in said(run_gate("client", "flush"), 1)
        monkeypatch.delenv("GATE_API_KEY_FILE")
        monkeypatch.setenv("GATE_API_KEY", shop.service.keys["full"].read_text().strip())
        assert "Delivered: 2." in said(run_gate("client", "flush"))

    def test_it_says_why_reports_still_wait(self, shop: Shop) -> None:
        shop.do("mute")
        shown = printed(shop.gate("flush", "--json", key="mute"), 1)
        assert (shown["delivered"], shown["waiting"], shown["failure"].keys()) == (0, 1, {"error", "message"})
        told = said(shop.gate("flush", key="mute"), 1)
        assert "Still waiting: 1." in told
        assert shown["failure"]["message"] in told

    def test_it_gives_up_in_time_on_a_service_that_is_not_there(self, shop: Shop) -> None:
        shop.do("mute")
        key = ("--key-file", str(shop.service.keys["full"]))
        nowhere = ("--url", f"http://127.0.0.1:{free_port()}", *key, "--timeout", "0.2")
        shown = printed(shop.gate("flush", *nowhere, "--json"), 1)
        # On a busy machine the time is over before the refused connection is told of.
        assert shown["failure"]["error"] in ("GATE_UNREACHABLE", "GATE_TIMED_OUT")
        assert shown["waiting"] == 1

    def test_what_is_refused_is_set_aside_and_can_be_tried_again(self, shop: Shop) -> None:
        permit = shop.do("mute")
        with shop.misdirected():
            shown = printed(shop.gate("flush", "--json", key="full"), 1)
        assert (shown["set_aside"], shown["waiting"], len(shown["refused"])) == (1, 0, 1)
        # What was refused before waits for nobody, and is told of all the same.
        told = said(shop.gate("flush", key="full"))
        assert "Refused: 0." in told
        assert "SVC_DECISION_NOT_FOUND" in told
        with shop.misdirected():
            assert printed(shop.gate("flush", "--again", "--json", key="full"), 1)["set_aside"] == 1
        assert printed(shop.gate("flush", "--again", "--json", key="full"))["delivered"] == 1
        assert shop.told(permit) == [("executed", None)]
        assert shop.gate("status").returncode == 0

    def test_a_key_of_another_scope_leaves_the_report_to_one_of_its_own(self, shop: Shop) -> None:
        permit = shop.do("mute")
        shown = printed(shop.gate("flush", "--json", key="stranger"), 1)
        assert (shown["delivered"], shown["set_aside"], shown["waiting"], shown["foreign"]) == (0, 0, 1, True)
        assert "deliver them with a key of that scope" in said(shop.gate("flush", key="stranger"), 1)
        shown = printed(shop.gate("flush", "--json", key="full"))
        assert (shown["delivered"], shown["foreign"]) == (1, False)
        assert shop.told(permit) == [("executed", None)]

    def test_it_says_what_is_missing_or_unusable(self, shop: Shop, tmp_path: Path) -> None:
        shop.do("mute")
        url = ("--url", shop.service.url)
        for nowhere in ((), ("--url", "")):
            told = refused(shop.gate("flush", *nowhere), "SERVICE_URL_INVALID")
            assert told == "No address of the service was given; give it with --url, or set GATE_URL."
        assert "is not a URL" in refused(shop.gate("flush", "--url", "ftp://gate"), "SERVICE_URL_INVALID")
        told = refused(shop.gate("flush", *url), "API_KEY_MISSING")
        assert told == (
            "No API key was given; give its file with --key-file, or set GATE_API_KEY_FILE or GATE_API_KEY."
        )
        missing = str(tmp_path / "no.key")
        assert missing in refused(shop.gate("flush", *url, "--key-file", missing), "FILE_UNREADABLE")
        assert "--timeout" in refused(shop.gate("flush", "--timeout", "0"), "USAGE_INVALID")
        assert "--timeout" in refused(shop.gate("flush", "--timeout", "nan"), "USAGE_INVALID")

    def test_a_key_on_the_command_line_is_refused_and_not_repeated(self, shop: Shop) -> None:
        shop.do("mute")
        key = shop.service.keys["full"].read_text().strip()
        url = ("--url", shop.service.url)
        for command in (["flush"], ["settle", "int_1", "--executed"]):
            assert "rotate this one" in refused(shop.gate(*command, *url, "--key-file", key), "API_KEY_INVALID")
        assert "rotate the key" in refused(shop.gate("flush", "--url", f"https://gate/{key}"), "SERVICE_URL_INVALID")
        refused(shop.gate("flush", f"--api-key={key}"), "USAGE_INVALID")


class TestShow:
    """gate client show."""

    def test_it_shows_the_whole_of_a_run(self, shop: Shop) -> None:
        permit = shop.do()
        shown = shop.kept(permit)
        assert shown.keys() == {
            "intent_id",
            "attempt",
            "state",
            "asked_at",
            "started_at",
            "request",
            "record",
            "resolution",
            "execution",
            "before",
        }
        assert (shown["state"], shown["attempt"], shown["record"]) == ("reported", 1, permit.record)
        assert shown["request"]["context"]["requested_action"] == "approve_discount"
        assert shown["execution"]["execution_status"] == "executed"
        told = said(shop.gate("show", permit.intent_id))
        for part in (permit.intent_id, permit.decision_id, "reported", "approve_discount", "STANDARD_EXCEPTION"):
            assert part in told
        assert "gate client settle" not in told

    def test_it_says_what_to_do_about_a_run_without_an_end(self, shop: Shop) -> None:
        permit = shop.begin()
        told = said(shop.gate("show", permit.intent_id))
        assert f"gate client settle {permit.intent_id}" in told
        assert "ended" not in told.partition("Its end")[0]

    def test_it_shows_what_became_of_the_attempts_before(self, shop: Shop) -> None:
        order = new_order()
        first = shop.begin(order=order)
        settled = shop.gate("settle", first.intent_id, "--not-executed", "--result", "no such change", key="full")
        assert settled.returncode == 0
        second = shop.do(order=order)
        shown = printed(shop.gate("show", first.intent_id, "--json"))
        assert (shown["attempt"], shown["record"]["decision_id"]) == (2, second.decision_id)
        (before,) = shown["before"]
        assert before == {
            "attempt": 1,
            "decision_id": first.decision_id,
            "asked_at": first.intent.asked_at,
            "started_at": first.intent.started_at,
            "execution_status": "skipped",
            "execution_result": "no such change",
        }
        told = said(shop.gate("show", first.intent_id))
        assert "Earlier attempts:" in told
        assert "no such change" in told

    def test_it_shows_what_is_held_for_review(self, shop: Shop) -> None:
        intent_id = held(shop)
        shown = printed(shop.gate("show", intent_id, "--json"))
        assert (shown["state"], shown["record"]["verdict"], shown["started_at"]) == ("held", "review", None)
        assert "NO_RULE_MATCHED" in said(shop.gate("show", intent_id))

    @pytest.mark.parametrize("answer", ["granted", "refused"])
    def test_it_shows_how_a_review_was_resolved(self, shop: Shop, answer: str) -> None:
        intent_id = held(shop)
        decision_id = printed(shop.gate("show", intent_id, "--json"))["record"]["decision_id"]
        assert printed(shop.gate("show", intent_id, "--json"))["resolution"] is None
        with Client(shop.service.url, key_file=shop.service.keys["owner"]) as owner:
            said_so = {"resolution": answer, "resolved_by": "Maya Lindqvist", "note": HOSTILE}
            made = owner.resolve_decision(decision_id, said_so)
        with shop.client() as client, suppress(Blocked), client.resume(intent_id):
            pass
        assert printed(shop.gate("show", intent_id, "--json"))["resolution"] == made
        done = shop.gate("show", intent_id)
        told = said(done)
        for part in (answer, "Maya Lindqvist", made["recorded_at"]):
            assert part in told
        assert "\x1b" not in told
        assert printed(shop.gate("status", "--json"))["in_review"] == []

    @pytest.mark.parametrize("name", ["int_1", NO_TEXT, HOSTILE_ARGUMENT], ids=["other", "no text", "hostile"])
    def test_an_intent_that_is_not_there_is_unknown(self, shop: Shop, name: str) -> None:
        shop.do()
        for command in (["show", name], ["settle", name, "--executed"]):
            done = shop.gate(*command)
            assert "has no intent" in refused(done, "INTENT_UNKNOWN")
            assert done.stderr[:-1].isprintable()


class TestSettle:
    """gate client settle."""

    def test_what_was_executed_is_reported_and_not_begun_again(self, shop: Shop) -> None:
        order = new_order()
        permit = shop.begin(order=order)
        done = shop.gate("settle", permit.intent_id, "--executed", "--result", "seen in the CRM", "--json", key="full")
        assert printed(done) == {
            "intent_id": permit.intent_id,
            "attempt": 1,
            "executed": True,
            "reported": True,
            "next_attempt": None,
            "delivery": {"delivered": 1, "set_aside": 0, "failure": None, "foreign": False},
        }
        assert shop.told(permit) == [("executed", "seen in the CRM")]
        assert shop.kept(permit)["execution"]["action_taken"] == permit.action
        assert shop.gate("status").returncode == 0
        with pytest.raises(AlreadyStarted):
            shop.begin(order=order)

    def test_without_the_service_it_is_kept_for_delivery(self, shop: Shop) -> None:
        permit = shop.begin()
        url = ("--url", shop.service.url)
        told = said(shop.gate("settle", permit.intent_id, "--executed", *url))
        assert "recorded as executed" in told
        assert "Run `gate client flush` to deliver it" in told
        assert shop.kept(permit)["state"] == "started"
        assert printed(shop.gate("flush", "--json", key="full"))["delivered"] == 1
        assert shop.told(permit) == [("executed", "found out in recovery")]

    def test_it_is_settled_even_if_the_service_cannot_take_it_now(self, shop: Shop) -> None:
        permit = shop.begin()
        told = said(shop.gate("settle", permit.intent_id, "--executed", key="mute"))
        assert "stored, because the service does not accept it now" in told
        assert shop.gate("status").returncode == 0
        assert "Delivered the report." in said(shop.gate("settle", shop.begin().intent_id, "--executed", key="full"))

    def test_a_refusal_of_the_report_is_told(self, shop: Shop) -> None:
        permit = shop.begin()
        shop.do("mute")
        with shop.misdirected():
            assert "refused some" in said(shop.gate("settle", permit.intent_id, "--executed", key="full"))
        assert shop.gate("status").returncode == 1

    def test_a_key_of_another_scope_settles_and_leaves_the_report(self, shop: Shop) -> None:
        permit = shop.begin()
        told = said(shop.gate("settle", permit.intent_id, "--executed", key="stranger"))
        assert "deliver it with a key of the scope that decided" in told
        assert printed(shop.gate("flush", "--json", key="full"))["delivered"] == 1

    def test_an_unusable_key_changes_nothing(self, shop: Shop, tmp_path: Path) -> None:
        permit = shop.begin()
        reached = ("--url", shop.service.url, "--key-file", str(tmp_path / "no.key"))
        refused(shop.gate("settle", permit.intent_id, "--executed", *reached), "FILE_UNREADABLE")
        assert shop.kept(permit)["execution"] is None

    @pytest.mark.parametrize("facts", [APPROVED, {**APPROVED, "discount_percent": 11}], ids=["same", "changed"])
    def test_what_was_not_executed_can_begin_again_once(self, shop: Shop, facts: dict[str, Any]) -> None:
        order = new_order()
        permit = shop.begin(order=order)
        shown = printed(shop.gate("settle", permit.intent_id, "--not-executed", "--json", key="full"))
        assert (shown["executed"], shown["next_attempt"], shown["delivery"]["delivered"]) == (False, 2, 1)
        assert shop.told(permit) == [("skipped", "found out in recovery")]
        assert (shop.kept(permit)["state"], shop.kept(permit)["attempt"]) == ("held", 2)
        assert "never started" in refused(shop.gate("settle", permit.intent_id, "--executed"), "INTENT_NOT_STARTED")
        with shop.client() as client:
            with shop.guard(client, order, facts) as second:
                assert second.decision_id != permit.decision_id
            with pytest.raises(AlreadyStarted), shop.guard(client, order, facts):
                pytest.fail("it began a third time")
        assert shop.told(second) == [("executed", None)]

    def test_of_two_retries_one_begins(self, shop: Shop) -> None:
        order = new_order()
        permit = shop.begin(order=order)
        assert "A retry asks for attempt 2" in said(shop.gate("settle", permit.intent_id, "--not-executed"))
        with shop.client() as one, shop.client() as other:
            both = shop.guard(one, order), shop.guard(other, order)
            with both[0], pytest.raises(AlreadyStarted):
                both[1].__enter__()

    def test_a_run_that_failed_can_begin_again_where_a_person_says_so(self, shop: Shop) -> None:
        order = new_order()
        permit = shop.do(order=order, fails=True)
        assert shop.kept(permit)["state"] == "reported"
        with_result = shop.gate("settle", permit.intent_id, "--not-executed", "--result", "asked the bank")
        assert "leave the result out" in refused(with_result, "RESULT_INVALID")
        with pytest.raises(AlreadyStarted):
            shop.begin(order=order)
        told = said(shop.gate("settle", permit.intent_id, "--not-executed", key="full"))
        assert "Nothing more is reported, because it was reported as failed before." in told
        again = shop.begin(order=order)
        assert (again.intent_id, again.intent.attempt) == (permit.intent_id, 2)
        assert shop.told(permit) == [("failed", "raised OSError")]

    def test_a_run_that_failed_and_was_done_nevertheless_has_both_receipts_and_does_not_begin_again(
        self, shop: Shop
    ) -> None:
        order = new_order()
        permit = shop.do(order=order, fails=True)
        told = said(shop.gate("settle", permit.intent_id, "--executed", "--result", "The bank paid it.", key="full"))
        for part in ("recorded as executed", "reported as failed before. That report stays", "Delivered the report."):
            assert part in told
        assert shop.told(permit) == [("failed", "raised OSError"), ("executed", "The bank paid it.")]
        assert shop.kept(permit)["execution"]["execution_status"] == "executed"
        with pytest.raises(AlreadyStarted) as begun:
            shop.begin(order=order)
        assert (begun.value.execution or {})["execution_status"] == "executed"
        for said_of_it in ("--executed", "--not-executed"):
            told = refused(shop.gate("settle", permit.intent_id, said_of_it), "INTENT_SETTLED")
            assert "reported before as executed" in told

    def test_a_run_that_failed_and_waits_can_be_said_to_be_done_too(self, shop: Shop) -> None:
        permit = shop.do("mute", fails=True)
        shown = printed(shop.gate("settle", permit.intent_id, "--executed", "--json"))
        assert (shown["reported"], shown["next_attempt"], shown["delivery"]) == (True, None, None)
        assert printed(shop.gate("flush", "--json", key="full"))["delivered"] == 2
        assert shop.told(permit) == [("failed", "raised OSError"), ("executed", "found out in recovery")]
        assert shop.kept(permit)["state"] == "reported"

    def test_a_run_that_failed_and_waits_can_begin_again_too(self, shop: Shop) -> None:
        permit = shop.do("mute", fails=True)
        shown = printed(shop.gate("settle", permit.intent_id, "--not-executed", "--json"))
        assert (shown["reported"], shown["next_attempt"], shown["delivery"]) == (False, 2, None)
        assert printed(shop.gate("flush", "--json", key="full"))["delivered"] == 1
        assert shop.kept(permit)["state"] == "held"

    def test_what_is_known_is_not_said_anew(self, shop: Shop) -> None:
        permit = shop.do()
        for said_of_it in ("--executed", "--not-executed"):
            told = refused(shop.gate("settle", permit.intent_id, said_of_it), "INTENT_SETTLED")
            assert told.endswith("reported before as executed. Nothing was changed.")
        waiting = shop.do("mute")
        refused(shop.gate("settle", waiting.intent_id, "--not-executed"), "INTENT_SETTLED")
        assert shop.kept(waiting)["attempt"] == 1

    def test_what_was_not_begun_has_no_end(self, shop: Shop) -> None:
        told = refused(shop.gate("settle", held(shop), "--not-executed"), "INTENT_NOT_STARTED")
        assert "(it is held)" in told

    @pytest.mark.parametrize("options", [[], ["--executed", "--not-executed"]], ids=["neither", "both"])
    def test_one_thing_is_to_be_said(self, shop: Shop, options: list[str]) -> None:
        permit = shop.begin()
        told = refused(shop.gate("settle", permit.intent_id, *options), "USAGE_INVALID")
        assert told == "Give either --executed or --not-executed."
        assert shop.kept(permit)["execution"] is None

    @pytest.mark.parametrize("result", ["", "x" * 2001, NO_TEXT], ids=["empty", "long", "no text"])
    def test_a_result_that_no_service_takes_is_refused(self, shop: Shop, result: str) -> None:
        permit = shop.begin()
        refused(shop.gate("settle", permit.intent_id, "--executed", "--result", result), "RESULT_INVALID")
        assert shop.kept(permit)["execution"] is None

    def test_the_longest_result_is_delivered(self, shop: Shop) -> None:
        permit = shop.begin()
        shop.gate("settle", permit.intent_id, "--executed", "--result", "é" * 2000, key="full")
        assert shop.told(permit) == [("executed", "é" * 2000)]

    def test_a_run_that_was_still_going_on_is_seen(self, shop: Shop) -> None:
        order = new_order()
        with shop.client() as client:
            with shop.guard(client, order) as first:
                shop.gate("settle", first.intent_id, "--not-executed", key="full")
                with shop.guard(client, order) as second:
                    pass
                client.flush()
            client.flush()
        assert shop.told(first) == [("skipped", "found out in recovery"), ("executed", None)]
        assert shop.told(second) == [("executed", None)]

    def test_one_that_was_interrupted_can_be_said_again(self, shop: Shop) -> None:
        order = new_order()
        permit = shop.begin(order=order)
        with SqliteStore(shop.store) as store:
            store.finish(permit.intent, found_out(permit.intent, record_of(permit.intent), executed=False))
        with pytest.raises(AlreadyStarted):
            shop.begin(order=order)
        assert printed(shop.gate("settle", permit.intent_id, "--not-executed", "--json"))["next_attempt"] == 2
        assert shop.begin(order=order).intent.attempt == 2

    @pytest.mark.parametrize("store", ["DeliveringStore", "RecoveredStore"])
    def test_what_others_do_between_its_two_writes_does_no_harm(
        self, shop: Shop, monkeypatch: pytest.MonkeyPatch, store: str
    ) -> None:
        monkeypatch.setattr("api.cli.client.SqliteStore", globals()[store])
        permit = shop.begin()
        assert printed(shop.gate("settle", permit.intent_id, "--not-executed", "--json"))["next_attempt"] == 2
        assert (shop.kept(permit)["state"], shop.kept(permit)["attempt"]) == ("held", 2)

    def test_what_another_process_said_just_before_counts(self, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("api.cli.client.SqliteStore", OvertakenStore)
        permit = shop.begin()
        told = refused(shop.gate("settle", permit.intent_id, "--not-executed"), "INTENT_SETTLED")
        assert "Another process has just reported" in told
        assert shop.kept(permit)["execution"]["execution_status"] == "executed"


class TestForget:
    """gate client forget."""

    def test_what_is_forgotten_does_not_begin_again(self, shop: Shop) -> None:
        order = new_order()
        permit = shop.do(order=order)
        before = "2999-01-01T00:00:00.000Z"
        assert printed(shop.gate("forget", "--before", before, "--json")) == {"before": before, "forgotten": 1}
        assert "records and reports of 0 attempts from" in said(shop.gate("forget", "--before", before))
        shown = shop.kept(permit)
        assert (shown["state"], shown["request"], shown["record"], shown["execution"]) == ("reported", None, None, None)
        assert "were removed with `gate client forget`" in said(shop.gate("show", permit.intent_id))
        told = refused(shop.gate("settle", permit.intent_id, "--not-executed"), "INTENT_SETTLED")
        assert "was reported, and its record was forgotten" in told
        with pytest.raises(AlreadyStarted):
            shop.begin(order=order)

    def test_it_keeps_what_is_not_reported_and_what_ended_later(self, shop: Shop) -> None:
        begun, waiting = shop.begin(), shop.do("mute")
        assert printed(shop.gate("forget", "--before", "2999-01-01T01:00+01:00", "--json"))["forgotten"] == 0
        shop.do()
        assert printed(shop.gate("forget", "--before", "2020-01-01T00:00:00Z", "--json"))["forgotten"] == 0
        assert shop.kept(begun)["record"] == begun.record
        assert shop.kept(waiting)["record"] == waiting.record

    def test_it_counts_in_words_that_fit(self, shop: Shop) -> None:
        before = ("--before", "2999-01-01T00:00:00Z")
        shop.do()
        assert "records and reports of 1 attempt from" in said(shop.gate("forget", *before))
        shop.do()
        shop.do()
        assert "records and reports of 2 attempts from" in said(shop.gate("forget", *before))

    def test_its_help_asks_for_what_it_takes(self, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("COLUMNS", "200")
        asked = "date and time in UTC"
        assert asked in said(run_gate("client", "forget", "--help"))
        make(shop.store)
        told = refused(shop.gate("forget", "--before", "2027-01-01"), "DATE_INVALID")
        assert told == f"'2027-01-01' is not a {asked}; write it as 2027-01-31T00:00:00Z."

    @pytest.mark.parametrize("date", ["yesterday", "2026-01-31", "2026-01-31T00:00:00", NO_TEXT])
    def test_a_date_that_is_none_forgets_nothing(self, shop: Shop, date: str) -> None:
        shop.do()
        assert "write it as" in refused(shop.gate("forget", "--before", date), "DATE_INVALID")


class DeliveringStore(SqliteStore):
    """A store whose reports another process delivers as soon as they are there."""

    def settle(self, intent: Intent, report: Report) -> bool:
        """Keeps the report, and removes it as delivered."""
        kept = super().settle(intent, report)
        self.delivered(self.undelivered(1)[0])
        return kept


class RecoveredStore(SqliteStore):
    """A store in which a retry begins another attempt as soon as it may."""

    def settle(self, intent: Intent, report: Report) -> bool:
        """Keeps the report, and holds the next attempt."""
        kept = super().settle(intent, report)
        self.hold(replace(intent, attempt=intent.attempt + 1, state=State.HELD), instead_of=self.find(intent.intent_id))
        return kept


def record_of(intent: Intent) -> DecisionRecord:
    """The record of an attempt that was answered."""
    assert intent.record is not None
    return intent.record


class OvertakenStore(SqliteStore):
    """A store in which another process is a moment quicker."""

    def settle(self, intent: Intent, report: Report) -> bool:
        """What the other process said, and then what this one says."""
        super().settle(intent, execution_report(intent, cited(record_of(intent)), {"execution_status": "executed"}))
        return super().settle(intent, report)


COMMANDS: Final = (
    ("status",),
    ("show", "int_1"),
    ("flush", "--url", "http://127.0.0.1:9"),
    ("settle", "int_1", "--not-executed"),
    ("forget", "--before", "2999-01-01T00:00:00Z"),
)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
class TestTheStore:
    """What --store names."""

    def test_one_that_is_not_there_is_not_made(self, shop: Shop, command: tuple[str, ...]) -> None:
        told = refused(shop.gate(*command), "INTENTS_MISSING")
        assert told.startswith(f"{shop.store} does not exist. The first guarded block creates it.")
        assert list(shop.store.parent.iterdir()) == []
        done = run_gate("client", *command, "--store", str(shop.store.parent / "no" / "intents.db"), "--json")
        assert (done.returncode, json.loads(done.stderr)["error"]) == (2, "INTENTS_MISSING")
        assert list(shop.store.parent.iterdir()) == []

    def test_it_has_to_be_named(self, shop: Shop, command: tuple[str, ...]) -> None:
        told = refused(run_gate("client", *command), "INTENTS_MISSING")
        assert told == "No store was given; give its file with --store, or set GATE_INTENTS."

    def test_a_file_of_something_else_is_left_alone(self, shop: Shop, command: tuple[str, ...]) -> None:
        for content in (b"", b"These are notes."):
            shop.store.write_bytes(content)
            told = refused(shop.gate(*command), "INTENTS_MISSING")
            assert told.startswith(f"{shop.store} is not a guard's intent store")
            assert [(file, file.read_bytes()) for file in shop.store.parent.iterdir()] == [(shop.store, content)]
        shop.store.unlink()
        shop.store.mkdir()
        refused(shop.gate(*command), "INTENTS_MISSING")
        assert list(shop.store.iterdir()) == []

    def test_a_database_of_something_else_is_left_alone(self, shop: Shop, command: tuple[str, ...]) -> None:
        with closing(sqlite3.connect(shop.store)) as other:
            other.execute("CREATE TABLE notes (text)")
        content = shop.store.read_bytes()
        refused(shop.gate(*command), "INTENTS_MISSING")
        assert [(file, file.read_bytes()) for file in shop.store.parent.iterdir()] == [(shop.store, content)]
        # Nor does a lock make a store of it.
        lock = Path(f"{shop.store}.lock")
        lock.touch()
        refused(shop.gate(*command), "INTENTS_MISSING")
        assert set(shop.store.parent.iterdir()) == {shop.store, lock}

    def test_a_place_that_cannot_be_looked_at_is_named(self, shop: Shop, command: tuple[str, ...]) -> None:
        done = run_gate("client", *command, "--store", "x" * 5000)
        assert "cannot be read: File name too long." in refused(done, "FILE_UNREADABLE")

    def test_one_of_a_newer_release_is_refused(self, shop: Shop, command: tuple[str, ...]) -> None:
        SqliteStore(shop.store).close()
        make(shop.store)
        with closing(sqlite3.connect(shop.store)) as store:
            store.execute("PRAGMA user_version=99")
        assert "has version 99" in refused(shop.gate(*command), "INTENTS_VERSION")

    def test_one_that_another_process_holds_is_waited_for_and_not_forever(
        self, shop: Shop, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sqlite, "PATIENCE", 0.1)
        make(shop.store)
        with Path(f"{shop.store}.lock").open() as lock:
            flock(lock, LOCK_EX)
            assert "another process has locked it" in refused(shop.gate(*command), "INTENTS_UNAVAILABLE")


def make(store: Path) -> None:
    """Makes an empty store, as a guard does that is entered first."""
    with SqliteStore(store) as made:
        assert made.identity


def held(shop: Shop) -> str:
    """An intent that waits for a review."""
    with shop.client() as client:
        guard = shop.guard(client, new_order(), REVIEWED)
        with pytest.raises(Exception, match="requires a review"), guard:
            pytest.fail("it began")
    return guard.intent_id


def test_a_copy_of_a_store_can_be_looked_at(shop: Shop, tmp_path: Path) -> None:
    permit = shop.begin()
    copy = tmp_path / "copy" / "intents.db"
    copy.parent.mkdir()
    with closing(sqlite3.connect(shop.store)) as original, closing(sqlite3.connect(copy)) as made:
        original.backup(made)
    (begun,) = printed(run_gate("client", "status", "--store", str(copy), "--json"), 1)["started"]
    assert begun["intent_id"] == permit.intent_id


def test_what_the_store_holds_steers_no_terminal(shop: Shop) -> None:
    order = f"{HOSTILE}{uuid4().hex}"
    permit = shop.begin("mute", order=order)
    with SqliteStore(shop.store) as store:
        store.finish(permit.intent, found_out(permit.intent, record_of(permit.intent), executed=True, result=HOSTILE))
        (report,) = store.undelivered(1)
        store.refused(report, HOSTILE)
    shop.begin("mute", order=f"{HOSTILE}{uuid4().hex}")
    for command in (["status"], ["show", permit.intent_id], ["flush", "--again"]):
        done = shop.gate(*command, key="mute" if command[0] == "flush" else None)
        told = done.stdout + done.stderr
        assert r"\x1b[2K" in told
        assert not [character for character in told if not character.isprintable() and character != "\n"]
        assert not [line for line in told.splitlines() if line.startswith("verified")]
        as_json = shop.gate(*command, "--json", key="mute" if command[0] == "flush" else None)
        assert not [character for character in as_json.stdout if not character.isprintable() and character != "\n"]


class TestWhatIsTold:
    """What a permit says of a report that it cannot make."""

    @pytest.mark.parametrize(
        "value",
        [float("nan"), float("inf"), -float("inf"), 2**53, -(2**53), 10**400, True, "1", None],
        ids=lambda it: str(it)[:9],
    )
    def test_a_metric_that_is_no_number_is_named(self, shop: Shop, value: Any) -> None:
        with pytest.raises(RequestRefused) as refusal:
            shop.do("mute").outcome("succeeded", metrics={"margin": 0.5, "hours": value})
        what = "must be a finite number, and within 2^53-1 if it is an integer."
        assert refusal.value.message == f"The report cannot be made: metrics.hours {what}"
        assert refusal.value.errors == [FieldError("metrics.hours", "invalid", f"It {what}")]

    def test_metrics_that_are_numbers_are_delivered(self, shop: Shop) -> None:
        metrics = {"small": 5e-324, "large": 1e300, "integral": 1e20, "most": 2**53 - 1, "least": 1 - 2**53, "none": 0}
        with shop.client() as client:
            with shop.guard(client, new_order()) as permit:
                pass
            permit.outcome("succeeded", metrics=metrics)
            client.flush()
            (outcome,) = client.list_outcomes(permit.decision_id)["outcomes"]
        assert outcome["observed_metrics"] == metrics

    @pytest.mark.parametrize(
        ("told", "why"),
        [
            ({"status": "great"}, "status must be one of succeeded, failed, partial, reverted, pending, review."),
            ({"metrics": ["x"]}, "metrics must be a mapping from names to numbers."),
            ({"metrics": {"": 1}}, "metrics must have names of 1 to 120 characters."),
            ({"metrics": {"x" * 121: 1}}, "metrics must have names of 1 to 120 characters."),
            (
                {"metrics": dict.fromkeys(map(str, range(65)), 1)},
                "metrics has more than 64 numbers; report the ones that matter.",
            ),
            ({"executed": "yes"}, "executed must be True or False."),
            ({"external_ref": ""}, "external_ref must be a string of 1 to 200 characters."),
            ({"evidence_refs": "e"}, "evidence_refs must be a list of 1 to 64 strings of 1 to 500 characters."),
            (
                {"reference": "r-1"},
                "reference is unknown; an outcome can have evidence_refs, executed, external_ref, metrics.",
            ),
        ],
    )
    def test_the_sentence_alone_says_what_is_wrong(self, shop: Shop, told: dict[str, Any], why: str) -> None:
        with pytest.raises(RequestRefused) as refusal:
            shop.do("mute").outcome(**({"status": "succeeded"} | told))
        assert refusal.value.message == f"The report cannot be made: {why}"
        assert refusal.value.errors[0].field == why.split()[0]

    def test_the_sentence_about_a_receipt_says_what_is_wrong(self, shop: Shop) -> None:
        with shop.client("mute") as client, shop.guard(client, new_order()) as permit:
            with pytest.raises(RequestRefused) as refusal:
                permit.describe(result="")
            assert (
                refusal.value.message == "The report cannot be made: result must be a string of 1 to 2000 characters."
            )
            with pytest.raises(
                RequestRefused, match=r"executor must be a type and an id, each of 1 to 200 characters\."
            ):
                permit.describe(executor={"type": "service"})


def test_the_installed_command_has_it() -> None:
    done = subprocess.run([GATE, "client", "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    for name in ("flush", "status", "show", "settle", "forget"):
        assert name in done.stdout
