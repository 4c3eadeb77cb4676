"""A fault at every step of a decision. The answer is an error without a verdict and nothing is recorded; when the fault
is over, the same request with the same idempotency key is answered, once, and the service goes on by itself.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any, Final, TypeAlias

import psycopg
import pytest
from _pytest.mark import ParameterSet
from flask.testing import FlaskClient
from sqlalchemy import Table, insert, select, update
from werkzeug.test import TestResponse

from api.app import attach
from api.http.responses import Answer
from gate.clock import utc_now
from gate.encoding.canonical import content_hash
from gate.instance.audit import check_chain
from gate.instance.instance import Instance, create_instance
from gate.instance.keys import KeyRing
from gate.ledger import Ledger
from gate.ledger.access.authority import FULL_ACCESS, Scope
from gate.ledger.chain import group_commit
from gate.ledger.chain.writer import Claim
from gate.ledger.packing import unpack
from gate.ledger.stores import postgres, sqlite
from gate.ledger.stores.sqlite import SqliteLedgerStore
from gate.ledger.stores.store import Store, unavailable
from gate.ledger.tables import claims, entries, rulebooks
from gate.proof.signing import private_key_pem
from tests.api.deciding import refused as answered_with
from tests.support.faults import DISK_FULL, refused, refused_at_commit, table_gone
from tests.support.postgres import Postgres, database_of
from tests.support.promises import acknowledged_is_kept, no_fork_no_gap, one_record_a_key
from tests.support.samples import ledger_url, sample_request, sqlite_file

PLANTED: Final = "SELECT secret_hash FROM api_keys -- dgk_planted"

FIRST, LATER, REPLAY = "first", "later", "replay"
"""Whether the fault meets the first request of a process, a later one, or one whose key was used."""


@dataclass
class Service:
    """A service, and one caller with one request."""

    instance: Instance
    client: FlaskClient
    scope: Scope
    key: str
    server: Callable[[], Postgres]
    acknowledged: dict[str, dict[str, Any]] = field(default_factory=dict)
    body: bytes = field(default_factory=lambda: json.dumps(sample_request()).encode())
    environ: dict[str, Any] = field(default_factory=dict)

    @property
    def ledger(self) -> Ledger:
        """The ledger."""
        return self.instance.ledger

    @property
    def store(self) -> Store:
        """The ledger's database."""
        return self.instance.ledger.store

    def decide(self, idempotency_key: str) -> TestResponse:
        """Sends the request."""
        response = self.client.post(
            "/api/decide",
            data=self.body,
            content_type="application/json",
            headers={"x-api-key": self.key, "x-idempotency-key": idempotency_key},
            environ_overrides=self.environ,
        )
        if response.status_code == 200:
            record = response.get_json()
            self.acknowledged[record["decision_id"]] = record
        return response

    def restart(self) -> None:
        """Begins a process that remembers nothing."""
        self.ledger.rulebooks._by_hash.clear()
        attach(self.client.application, self.instance)

    def size(self) -> int:
        """How many records there are."""
        return self.ledger.entries.head(self.scope.scope_id).size


Place: TypeAlias = Callable[[Service], AbstractContextManager[object]]


@dataclass(frozen=True)
class Fault:
    """A fault, and what is answered while it is there.

    Attributes:
        name: Where it strikes.
        place: Places it, and takes it away again.
        when: FIRST, LATER or REPLAY.
        status: The answer's status.
        error: The answer's code.
        recorded: How many records the request makes all the same, unheard.
        says: A word of the sentence that tells the reason.
        in_ledger: Whether that is where the ledger is read or written.
    """

    name: str
    place: Place
    when: str = LATER
    status: int = 503
    error: str = "SVC_STORAGE_UNAVAILABLE"
    recorded: int = 0
    says: str = ""
    in_ledger: bool = False


def named(faults: Sequence[Fault]) -> list[ParameterSet]:
    return [pytest.param(fault, id=f"{fault.name}, {fault.when}") for fault in faults]


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> Iterator[str | None]:
    """Where the ledger is; tests that share a database have scopes of their own."""
    with database_of(request) as url:
        yield url


@pytest.fixture(scope="module")
def laid_out(tmp_path_factory: pytest.TempPathFactory, database_url: str | None) -> Path:
    """The home directory of an instance that nobody has used."""
    home = tmp_path_factory.mktemp("laid out") / "home"
    create_instance(home, base_url="http://gate.example", database_url=database_url)
    return home


@pytest.fixture
def home(tmp_path: Path, laid_out: Path) -> Path:
    """A copy of it, so that each test has keys and, on SQLite, a ledger of its own."""
    return shutil.copytree(laid_out, tmp_path / "home")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits for a row that another session holds is soon told so."""
    monkeypatch.setitem(postgres._SESSION, "lock_timeout", 100)


@pytest.fixture
def instance(home: Path, instance: Instance) -> Instance:
    """The instance in that directory."""
    return instance


@pytest.fixture
def service(instance: Instance, client: FlaskClient, request: pytest.FixtureRequest) -> Service:
    """A service that has answered nothing yet."""
    directory, now = instance.ledger.directory, utc_now()
    scope = directory.create_scope(f"scope-{secrets.token_hex(4)}", "team", now)
    key, _ = directory.create_key(scope, FULL_ACCESS, None, now)
    return Service(instance, client, scope, key, lambda: request.getfixturevalue("postgres"))


def require_held(service: Service, response: TestResponse, status: int, error: str) -> None:
    """Requires an error that carries no verdict, and tells nothing that is nobody's business."""
    answered_with(response, status, error)
    text = f"{response.get_data(as_text=True)}\n{response.headers}"
    assert not re.search(r"verdict|approve|allow|\"(yes|no|review)\"|x-decision-|x-idempotency-status", text, re.I)
    home, url = str(service.instance.settings.home), service.store.engine.url
    secret, stored = service.key.split("_", 2)[2], hashlib.sha256(service.key.encode()).hexdigest()
    private = [secret, stored, "dgk_", "PRIVATE KEY", "Traceback", ".py", "opp-77", "customer-9", home]
    if url.get_backend_name() == "postgresql":
        private += [str(url.database), str(url.query["host"])]
    assert [word for word in private if word in text] == []
    assert not re.search(r"SELECT .*FROM|INSERT INTO|UPDATE \w+ SET|parameters|sqlalche", text)


def require_held_and_recovered(service: Service, fault: Fault) -> None:
    """Sends a request before, while and after the fault is there."""
    first = None if fault.when == FIRST else service.decide("order-1" if fault.when == REPLAY else "before")
    assert first is None or first.status_code == 200
    made = service.size()
    with fault.place(service):
        response = service.decide("order-1")
        require_held(service, response, fault.status, fault.error)
        assert fault.says in response.get_json()["message"]
    assert service.size() == made + fault.recorded
    retried, again, later = (service.decide(key) for key in ("order-1", "order-1", "later"))
    assert [answer.status_code for answer in (retried, again, later)] == [200] * 3
    known = fault.recorded or fault.when == REPLAY
    statuses = [answer.headers["x-idempotency-status"] for answer in (retried, again, later)]
    assert statuses == ["replayed" if known else "created", "replayed", "created"]
    assert again.data == retried.data
    assert first is None or fault.when != REPLAY or first.data == retried.data
    assert check_chain(service.instance, service.scope.scope_id) == (len(service.acknowledged), None)
    acknowledged_is_kept(service.ledger, service.scope, service.acknowledged.values())
    no_fork_no_gap(service.ledger, service.scope)
    one_record_a_key(service.ledger, service.scope)


def raises(path: str) -> Place:
    """A step fails as nobody foresaw."""

    def fail(*_: object, **__: object) -> Any:
        raise RuntimeError(PLANTED)

    @contextmanager
    def place(_: Service) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(path, fail)
            yield

    return place


def unforeseen(name: str, path: str, when: str = FIRST, recorded: int = 0, *, in_ledger: bool = False) -> Fault:
    return Fault(name, raises(path), when, 500, "SVC_INTERNAL_ERROR", recorded, in_ledger=in_ledger)


STEPS: Final = [
    unforeseen("reading the body", "api.routes.decisions.read_body"),
    unforeseen("who calls", "api.routes.decisions.recognize"),
    unforeseen("counting requests", "api.http.limits.require_rate"),
    unforeseen("parsing", "api.routes.decisions.parse_body"),
    unforeseen("the view", "api.routes.decisions.preferred_view"),
    unforeseen("canonical JSON", "gate.decisions.decide.content_hash"),
    unforeseen("the request's shape", "gate.decisions.decide.read_request"),
    unforeseen("loading the rulebook", "gate.rulebooks.rulebook.load"),
    unforeseen("looking for the rulebook", "gate.ledger.rulebooks.RulebookRegistry.find", in_ledger=True),
    unforeseen("making the registration", "gate.decisions.sources.registration"),
    unforeseen(
        "after the registration was committed", "gate.ledger.rulebooks.RulebookRegistry._remember", in_ledger=True
    ),
    unforeseen("signing", "gate.proof.signing.Ed25519Signer.sign"),
    unforeseen("signing", "gate.proof.signing.Ed25519Signer.sign", LATER),
    unforeseen("evaluating", "gate.rulebooks.evaluation.Evaluator.explain"),
    unforeseen("the decision's id", "gate.decisions.decide.new_id"),
    unforeseen("building the record", "gate.decisions.decide.build_record"),
    unforeseen("building the entry", "gate.decisions.decide.link_material"),
    unforeseen("packing", "gate.ledger.chain.writer.pack", in_ledger=True),
    unforeseen("reading the head", "gate.ledger.chain.writer._look_up", in_ledger=True),
    unforeseen("linking", "gate.proof.chain.append", in_ledger=True),
    unforeseen("laying out the row", "gate.ledger.chain.writer._entry_row", in_ledger=True),
    unforeseen("after the commit", "gate.proof.chain.record_link", recorded=1, in_ledger=True),
    unforeseen("building the answer", "api.routes.decisions.project", recorded=1),
    unforeseen("reading a replay", "gate.decisions.decide.stored_record", REPLAY, in_ledger=True),
]


@contextmanager
def unfinished(_: Service) -> Iterator[None]:
    """The headers that every answer carries cannot be made."""

    def failing(self: Answer, headers: Any) -> None:
        raise RuntimeError(PLANTED)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Answer, "tell", failing)
        yield


def test_an_answer_that_cannot_be_finished(service: Service) -> None:
    fault = Fault("finishing the answer", unfinished, FIRST, 500, "SVC_INTERNAL_ERROR", recorded=1)
    require_held_and_recovered(service, fault)


def each_step() -> list[ParameterSet]:
    """Every step on SQLite; on PostgreSQL those at which the ledger is read or written."""
    of_ledger = [fault for fault in STEPS if fault.in_ledger]
    return [
        pytest.param(kind, *step.values, id=f"{step.id}-{kind}")
        for kind, faults in (("sqlite", STEPS), ("postgresql", of_ledger))
        for step in named(faults)
    ]


@pytest.mark.parametrize(("database_url", "fault"), each_step(), indirect=["database_url"], scope="module")
def test_what_nobody_foresaw_at_any_step(service: Service, fault: Fault, log: BytesIO) -> None:
    require_held_and_recovered(service, fault)
    logged = log.getvalue().decode()
    assert '"error_type":"RuntimeError"' in logged
    assert PLANTED not in logged


def sends(**changes: Any) -> Place:
    """The request arrives in another form."""

    @contextmanager
    def place(service: Service) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in changes.items():
                patch.setattr(service, name, value)
            yield

    return place


class BrokenConnection:
    """A body of which nothing arrives."""

    def read(self, size: int = -1) -> bytes:
        """Fails, as a connection that was reset."""
        raise ConnectionResetError(104, PLANTED)


UNTOLD: Final = {"CONTENT_LENGTH": "", "wsgi.input_terminated": True, "wsgi.input": BrokenConnection()}


def request_with(**members: Any) -> bytes:
    return json.dumps(sample_request() | members).encode()


MATERIAL: Final = [
    Fault("ends early", sends(environ={"CONTENT_LENGTH": "65536"}), FIRST, 400, "SVC_API_JSON_INVALID"),
    Fault("breaks off", sends(environ={"wsgi.input": BrokenConnection()}), FIRST, 500, "SVC_INTERNAL_ERROR"),
    Fault("breaks off, of a length that nobody said", sends(environ=UNTOLD), FIRST, 400, "SVC_API_JSON_INVALID"),
    Fault("is cut", sends(body=request_with()[:-1]), FIRST, 400, "SVC_API_JSON_INVALID"),
    Fault("is empty", sends(body=b""), FIRST, 400, "SVC_API_JSON_INVALID"),
    Fault("is no JSON number", sends(body=b'{"mode":1e999}'), FIRST, 400, "SVC_API_JSON_INVALID"),
    Fault("is no request", sends(body=request_with(mode=7)), FIRST, 422, "SVC_API_REQUEST_INVALID"),
    Fault("has no rulebook", sends(body=request_with(rulebook={})), FIRST, 422, "RULEBOOK_INVALID"),
    Fault(
        "asks for no rulebook", sends(body=request_with(mode="single")), FIRST, 422, "RULEBOOK_BINDING_MODE_CONFLICT"
    ),
]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("fault", named(MATERIAL))
def test_a_request_that(service: Service, fault: Fault) -> None:
    require_held_and_recovered(service, fault)


def in_ledger(fault: Callable[..., AbstractContextManager[None]], *arguments: str, **options: str) -> Place:
    return lambda service: fault(service.store, *arguments, **options)


def in_limits(fault: Callable[..., AbstractContextManager[None]], *arguments: str) -> Place:
    return lambda service: fault(service.instance.limiter._store, *arguments)


@contextmanager
def registration_unheard(service: Service) -> Iterator[None]:
    """The registration is committed, and this process does not hear so."""
    write = type(service.store).write

    @contextmanager
    def unheard(store: Store, **options: Any) -> Iterator[Any]:
        with write(store, **options) as connection:
            yield connection
        if not options:
            raise unavailable("the connection broke off")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(service.store), "write", unheard)
        yield


@contextmanager
def commit_unheard(service: Service) -> Iterator[None]:
    """The record is committed, and this process hears of an error instead."""
    transaction: Any = sqlite._SqliteTransaction
    if not isinstance(service.store, SqliteLedgerStore):
        transaction = postgres._PostgresTransaction
    commit, error = transaction.commit, service.store.engine.dialect.loaded_dbapi.InterfaceError

    def unheard(self: Any, writes: Sequence[Any]) -> None:
        commit(self, writes)
        if len(writes) > 1:
            raise error("the connection broke off")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transaction, "commit", unheard)
        yield


@contextmanager
def queue_full(_: Service) -> Iterator[None]:
    """As many requests wait for the ledger as may."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(group_commit, "MAX_QUEUE", 0)
        yield


STORAGE: Final = [
    Fault("who calls", in_ledger(table_gone, "api_keys"), FIRST),
    Fault("who calls, the head", in_ledger(table_gone, "chain_heads"), FIRST),
    Fault("counting the first request", in_limits(refused, "INSERT", "rate_windows"), FIRST),
    Fault("counting a request", in_limits(refused, "UPDATE", "rate_windows")),
    Fault("counting a request, the windows", in_limits(table_gone, "rate_windows")),
    Fault("looking for the rulebook", in_ledger(table_gone, "rulebooks"), FIRST),
    Fault("registering", in_ledger(refused, "INSERT", "rulebooks"), FIRST),
    Fault("the registration's commit", in_ledger(refused_at_commit, "rulebooks"), FIRST),
    Fault("after the registration's commit", registration_unheard, FIRST),
    Fault("the queue", queue_full, FIRST),
    Fault("the queue", queue_full),
    Fault("locking the head", in_ledger(table_gone, "chain_heads")),
    Fault("looking for the claim", in_ledger(table_gone, "claims")),
    Fault("counting the month", in_ledger(table_gone, "usage")),
    Fault("writing the entry", in_ledger(refused, "INSERT", "entries"), FIRST),
    Fault("writing the entry", in_ledger(refused, "INSERT", "entries")),
    Fault("moving the head", in_ledger(refused, "UPDATE", "chain_heads")),
    Fault("writing the claim", in_ledger(refused, "INSERT", "claims")),
    Fault("beginning the month", in_ledger(refused, "INSERT", "usage"), FIRST),
    Fault("writing the month", in_ledger(refused, "UPDATE", "usage")),
    Fault("the commit", in_ledger(refused_at_commit, "entries"), FIRST),
    Fault("the commit", in_ledger(refused_at_commit, "entries")),
    Fault("after the commit", commit_unheard, FIRST, recorded=1),
    Fault("after the commit", commit_unheard, recorded=1),
    Fault("finding the claim of a replay", in_ledger(table_gone, "claims"), REPLAY),
    Fault("finding the record of a replay", in_ledger(table_gone, "entries"), REPLAY),
]


@pytest.mark.parametrize("fault", named(STORAGE))
def test_a_database_that_fails_at(service: Service, fault: Fault) -> None:
    require_held_and_recovered(service, fault)


def damaged(table: Table, column: str, damage: Callable[[Any], Any]) -> Place:
    """What is stored in a column of the scope's only row is something else."""

    @contextmanager
    def place(service: Service) -> Iterator[None]:
        rows = table.c.scope_id == service.scope.scope_id
        with service.store.write() as connection:
            whole = connection.execute(select(table.c[column]).where(rows)).scalar_one()
            connection.execute(update(table).where(rows).values({column: damage(whole)}))
        try:
            yield
        finally:
            with service.store.write() as connection:
                connection.execute(update(table).where(rows).values({column: whole}))

    return place


def flip(stored: bytes) -> bytes:
    middle = len(stored) // 2
    return stored[:middle] + bytes([stored[middle] ^ 1]) + stored[middle + 1 :]


@contextmanager
def record_gone(service: Service) -> Iterator[None]:
    """The record of the used key is not there."""
    rows = entries.c.scope_id == service.scope.scope_id
    with service.store.write() as connection:
        row = connection.execute(select(entries).where(rows)).mappings().one()
        connection.execute(entries.delete().where(rows))
    try:
        yield
    finally:
        with service.store.write() as connection:
            connection.execute(insert(entries).values(**row))


@contextmanager
def claimed_by_another(service: Service) -> Iterator[None]:
    """The used key leads to the record of another one, of the same payload."""
    assert service.decide("another").status_code == 200
    claim = Claim("decide", "", "order-1", "").stored_as(service.scope.scope_id)
    this = (claims.c.scope_id == service.scope.scope_id) & (claims.c.claim == claim)

    def lead_to(position: int) -> None:
        with service.store.write() as connection:
            connection.execute(update(claims).where(this).values(position=position))

    lead_to(2)
    try:
        yield
    finally:
        lead_to(1)


def turned_down(stored: bytes) -> bytes:
    return unpack(stored).replace(b'"verdict":"yes"', b'"verdict":"no"')


DAMAGE: Final = [
    Fault("empty", damaged(entries, "body", lambda _: b""), REPLAY),
    Fault("cut", damaged(entries, "body", lambda stored: stored[:-1]), REPLAY),
    Fault("changed by one bit", damaged(entries, "body", flip), REPLAY),
    Fault("no object", damaged(entries, "body", lambda _: b"[]"), REPLAY),
    Fault("plain JSON that is cut", damaged(entries, "body", lambda stored: unpack(stored)[:-1]), REPLAY),
    Fault("of another place", damaged(claims, "position", lambda position: position + 1), REPLAY),
    Fault("gone", record_gone, REPLAY),
    Fault("of another verdict", damaged(entries, "body", turned_down), REPLAY),
    Fault("of another link", damaged(entries, "link_hash", lambda stored: stored[::-1]), REPLAY),
    Fault("of another key", claimed_by_another, REPLAY, recorded=1),
]


def on_each_database(faults: Sequence[Fault], on_postgresql: set[str]) -> list[ParameterSet]:
    """All of them on SQLite, and on PostgreSQL those of a name: what is read is judged without a database."""
    assert on_postgresql <= {fault.name for fault in faults}
    return [
        pytest.param(kind, *fault.values, id=f"{fault.id}-{kind}")
        for kind in ("sqlite", "postgresql")
        for fault in named([fault for fault in faults if kind == "sqlite" or fault.name in on_postgresql])
    ]


@pytest.mark.parametrize(
    ("database_url", "fault"),
    on_each_database(DAMAGE, {"cut", "of another place", "gone", "of another key"}),
    indirect=["database_url"],
    scope="module",
)
def test_a_stored_record_that_is(service: Service, fault: Fault) -> None:
    require_held_and_recovered(service, fault)


def registered(column: str, damage: Callable[[bytes], bytes]) -> Place:
    """What is stored of a registered rulebook is something else, and a request names it by its hash."""

    @contextmanager
    def place(service: Service) -> Iterator[None]:
        request = sample_request()
        request["rulebook_ref"] = {"hash": content_hash(request.pop("rulebook"))}
        service.body = json.dumps(request).encode()
        service.restart()
        with damaged(rulebooks, column, damage)(service):
            yield

    return place


def exchanged(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    def exchange(stored: bytes) -> bytes:
        assert old in stored
        return stored.replace(old, new)

    return exchange


RULEBOOK: Final = [
    Fault("cut", registered("body", lambda stored: stored[:-1])),
    Fault("no rulebook", registered("body", lambda _: b"{}")),
    Fault("of other rules", registered("body", exchanged(b'"value":15', b'"value":25'))),
    Fault("of another version", registered("body", exchanged(b"2026-06-11", b"2026-06-12"))),
    Fault("registered with nothing", registered("registration", lambda _: b"{}")),
    Fault(
        "registered at another time",
        registered("registration", exchanged(b'"registered_at":"2', b'"registered_at":"1')),
    ),
    Fault("registered by nobody", registered("registration", lambda stored: stored[:-1])),
]


@pytest.mark.parametrize(
    ("database_url", "fault"),
    on_each_database(RULEBOOK, {"cut", "registered with nothing"}),
    indirect=["database_url"],
    scope="module",
)
def test_a_stored_rulebook_that_is(service: Service, fault: Fault) -> None:
    require_held_and_recovered(service, fault)


def keys_file(service: Service, purpose: str) -> Path:
    return service.instance.settings.home / "keys" / f"{purpose}.json"


def private_file(service: Service, purpose: str) -> Path:
    file = keys_file(service, purpose)
    return file.with_name(f"{json.loads(file.read_bytes())['active_key_id']}.pem")


def remove(path: Path) -> None:
    if path.is_dir():
        path.rmdir()
    else:
        path.unlink(missing_ok=True)


def written(content: Callable[[bytes], bytes]) -> Callable[[Path], object]:
    return lambda file: file.write_bytes(content(file.read_bytes()))


def made_a_directory(file: Path) -> None:
    """Nobody, not even root, can read a directory as a file."""
    file.unlink()
    file.mkdir()


def spoiled(find: Callable[[Service, str], Path], purpose: str, spoil: Callable[[Path], object]) -> Place:
    """A file of a signing key is not as it was, and the process has reason to look again."""

    @contextmanager
    def place(service: Service) -> Iterator[None]:
        file = find(service, purpose)
        whole = file.read_bytes()
        spoil(file)
        notice(service, purpose, 1)
        yield
        remove(file)
        file.write_bytes(whole)
        notice(service, purpose, 2)

    return place


def notice(service: Service, purpose: str, later: int) -> None:
    """Dates the registry file anew, which is what makes a process read the keys again."""
    file = keys_file(service, purpose)
    if file.is_file():
        moment = 10**18 + later
        os.utime(file, ns=(moment, moment))


@contextmanager
def clock_before_the_keys(service: Service) -> Iterator[None]:
    """The server's clock says 1970."""
    with pytest.MonkeyPatch.context() as patch:
        gate = service.client.application.extensions["gate"].gate
        patch.setattr(gate.signing, "_clock", lambda: datetime(1970, 1, 1, tzinfo=UTC))
        yield


def without_active_key(registry: bytes) -> bytes:
    return json.dumps(json.loads(registry) | {"active_key_id": None}).encode()


def of_another_instance(file: Path) -> None:
    """The file is one that another instance made."""
    other = file.with_name("other")
    KeyRing(other, file.stem).create(utc_now())
    shutil.copy(other / file.name, file)
    shutil.rmtree(other)


SPOILT: Final[dict[str, tuple[Callable[[Service, str], Path], Callable[[Path], object]]]] = {
    "registry missing": (keys_file, Path.unlink),
    "registry empty": (keys_file, written(lambda _: b"")),
    "registry cut": (keys_file, written(lambda whole: whole[: len(whole) // 2])),
    "registry no text": (keys_file, written(lambda _: b"\xff\xfe\x00")),
    "registry unreadable": (keys_file, made_a_directory),
    "registry without an active key": (keys_file, written(without_active_key)),
    "registry of another instance": (keys_file, of_another_instance),
    "private key missing": (private_file, Path.unlink),
    "private key empty": (private_file, written(lambda _: b"")),
    "private key cut": (private_file, written(lambda whole: whole[: len(whole) // 2])),
    "private key no text": (private_file, written(lambda _: b"\xff\xfe\x00")),
    "private key unreadable": (private_file, made_a_directory),
    "private key another one": (private_file, written(lambda _: private_key_pem(bytes(32)).encode())),
}
SIGNING: Final = [
    Fault(f"{purpose} {name}", spoiled(find, purpose, spoil), when, error="SVC_SIGNING_UNAVAILABLE")
    for purpose, when in (("receipt", FIRST), ("registry", LATER))
    for name, (find, spoil) in SPOILT.items()
] + [
    Fault("clock before the keys", clock_before_the_keys, when, error="SVC_SIGNING_UNAVAILABLE")
    for when in (FIRST, LATER)
]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("fault", named(SIGNING))
def test_signing_keys_that_cannot_be_used(service: Service, fault: Fault) -> None:
    require_held_and_recovered(service, fault)


def reconnect(store: SqliteLedgerStore) -> None:
    """Has the ledger open its file anew, with the settings that it has now."""
    if store._appending is not None:
        store._appending.invalidate()
        store._appending = None
    store.engine.dispose()


def with_pragma(pragma: str) -> Place:
    """The ledger's connections have a setting of SQLite more."""

    @contextmanager
    def place(service: Service) -> Iterator[None]:
        store = service.store
        assert isinstance(store, SqliteLedgerStore)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(store, "_pragmas", (*store._pragmas, pragma))
            reconnect(store)
            yield
        reconnect(store)

    return place


@contextmanager
def full_disk(service: Service) -> Iterator[None]:
    """The file can have no more pages than it has, and the request needs some."""
    with service.store.read() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
    request = sample_request()
    request["context"]["subject"] = secrets.token_hex(16_384)
    service.body = json.dumps(request).encode()
    with with_pragma(f"max_page_count={pages}")(service):
        yield


HOLD: Final = (
    "import fcntl, sys; f = open(sys.argv[1]); fcntl.flock(f, fcntl.LOCK_EX); print(flush=True); sys.stdin.read()"
)


def held_by_another_process(suffix: str) -> Place:
    """Another process has the turn to write, and does not give it back."""

    @contextmanager
    def place(service: Service) -> Iterator[None]:
        file = f"{sqlite_file(service.ledger)}{suffix}.lock"
        with subprocess.Popen(
            [sys.executable, "-S", "-E", "-c", HOLD, file], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as process:
            assert process.stdout is not None
            process.stdout.readline()
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(sqlite, "WRITE_TIMEOUT", 0.1)
                yield
            process.kill()

    return place


@contextmanager
def held_by_another_program(service: Service) -> Iterator[None]:
    """A program that knows nothing of the file lock writes to the database."""
    with ExitStack() as stack:
        stack.enter_context(with_pragma("busy_timeout=50")(service))
        connection = stack.enter_context(closing(sqlite3.connect(sqlite_file(service.ledger), isolation_level=None)))
        connection.execute("BEGIN IMMEDIATE")
        yield


@contextmanager
def key_is_no_text(service: Service) -> Iterator[None]:
    """The stored hash of the caller's key is no text any more."""
    file = sqlite_file(service.ledger)
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("UPDATE api_keys SET secret_hash = CAST(secret_hash || x'ff' AS TEXT)")
        yield
        connection.execute("UPDATE api_keys SET secret_hash = substr(secret_hash, 1, 64)")


def files(service: Service) -> list[Path]:
    """The database and what SQLite keeps beside it."""
    file = sqlite_file(service.ledger)
    return [found for found in (file, *(file.with_name(file.name + end) for end in ("-wal", "-shm"))) if found.exists()]


def put_aside(replace: Callable[[Path, Path], object], *, closed: bool = False) -> Place:
    """The database's files are somewhere else for a while, and others may be in their place."""

    @contextmanager
    def place(service: Service) -> Iterator[None]:
        if closed:
            assert isinstance(service.store, SqliteLedgerStore)
            reconnect(service.store)
        away = service.instance.settings.home / "away"
        away.mkdir()
        moved = [(file, file.replace(away / file.name)) for file in files(service)]
        for file, kept in moved:
            replace(kept, file)
        yield
        for file in files(service):
            file.unlink()
        for file, kept in moved:
            kept.replace(file)

    return place


def cut(ending: str) -> Place:
    """A file is empty for a while."""

    @contextmanager
    def place(service: Service) -> Iterator[None]:
        file = sqlite_file(service.ledger)
        file = file.with_name(file.name + ending)
        whole = file.read_bytes()
        os.truncate(file, 0)
        yield
        with file.open("r+b") as opened:
            opened.write(whole)

    return place


def leave(_: Path, __: Path) -> None:
    """Nothing takes the file's place."""


def garbage(kept: Path, file: Path) -> None:
    file.write_bytes(bytes(kept.stat().st_size))


# What is written to a file that is not in its place any more would be lost with it.
FILES: Final[dict[str, Place]] = {
    "gone": put_aside(leave),
    "replaced by an older one": put_aside(shutil.copy),
    "replaced by none that SQLite knows": put_aside(garbage),
    "cut": cut(""),
    "cut in its WAL": cut("-wal"),
}

SQLITE: Final = [
    *[Fault("on a full disk", full_disk, when, says="full") for when in (FIRST, LATER)],
    *[Fault("read-only", with_pragma("query_only=ON"), when, says="readonly") for when in (FIRST, LATER)],
    *[
        Fault("held by another process", held_by_another_process(""), when, says="another process")
        for when in (FIRST, LATER)
    ],
    *[Fault("held by another program", held_by_another_program, when, says="locked") for when in (FIRST, LATER)],
    Fault("damaged where the key is", key_is_no_text, FIRST),
    *[Fault(name, place) for name, place in FILES.items()],
    *[Fault("limits held by another process", held_by_another_process(".limits"), when) for when in (FIRST, LATER)],
    Fault("gone", put_aside(leave, closed=True), FIRST),
    Fault("no database", put_aside(garbage, closed=True), FIRST),
]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("fault", named(SQLITE))
def test_on_sqlite_a_file_that_is(service: Service, fault: Fault) -> None:
    require_held_and_recovered(service, fault)


@contextmanager
def head_held(service: Service) -> Iterator[None]:
    """Another session holds the scope's head."""
    with psycopg.connect(ledger_url(service.ledger)) as session:
        session.execute("SELECT FROM chain_heads WHERE scope_id = %s FOR UPDATE", [service.scope.scope_id])
        yield


@contextmanager
def window_held(service: Service) -> Iterator[None]:
    """Another session counts the key's requests, and does not end."""
    key_id = service.key.split("_")[1]
    with psycopg.connect(ledger_url(service.ledger)) as session:
        session.execute(
            "SELECT pg_advisory_xact_lock(hashtextextended(%s::text || %s::text, 0))", [service.scope.scope_id, key_id]
        )
        yield


def altered(change: str, back: str) -> Place:
    """The database is altered, and everybody has to connect anew."""

    @contextmanager
    def place(service: Service) -> Iterator[None]:
        server, url = service.server(), ledger_url(service.ledger)
        name = psycopg.conninfo.conninfo_to_dict(url)["dbname"]
        server.execute(f"ALTER DATABASE {name} {change}")
        server.kill_backends(url)
        try:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("gate.ledger.stores.store.WRITE_TIMEOUT", 0.1)
                yield
        finally:
            server.execute(f"ALTER DATABASE {name} {back}")

    return place


READ_ONLY: Final = altered("SET default_transaction_read_only = on", "RESET default_transaction_read_only")
UNREACHABLE: Final = altered("ALLOW_CONNECTIONS false", "ALLOW_CONNECTIONS true")

POSTGRESQL: Final = [
    Fault("full", in_ledger(refused, "INSERT", "entries", code=DISK_FULL)),
    Fault("full", in_ledger(refused, "INSERT", "rulebooks", code=DISK_FULL), FIRST),
    Fault("held at the head", head_held, FIRST),
    Fault("held at the head", head_held),
    Fault("held at the window", window_held),
    *[Fault("read-only", READ_ONLY, when) for when in (FIRST, LATER)],
    *[Fault("unreachable", UNREACHABLE, when) for when in (FIRST, LATER)],
]


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
@pytest.mark.parametrize("fault", named(POSTGRESQL))
def test_on_postgresql_a_database_that_is(service: Service, fault: Fault) -> None:
    require_held_and_recovered(service, fault)
