"""The fault matrix of the guard: what it does wherever anything fails, in threads and in an event loop.

For every row: the body never ran without a verified yes about this action, or its owner's verified grant; it ran once
at most, whatever was retried; and after the fault has passed, a retry and a flush leave one execution receipt at the
service for every run.

A row whose fault is in the messages is told by the application in this process. A row where a process dies or the fault
is in the bytes, the time or the connection has a real server.
"""

from __future__ import annotations

import fcntl
import json
import resource
import shutil
import sqlite3
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

import httpx
import orjson
import pytest
from flask.testing import FlaskClient

from api.app import create_app
from gate.client import (
    AlreadyStarted,
    Client,
    Delivery,
    HeldForReview,
    Intent,
    NotPermitted,
    SqliteStore,
    StoreUnavailable,
)
from gate.client.guard import delivery
from gate.client.guard.permit import BasePermit
from gate.client.store import sqlite
from gate.encoding.canonical import content_hash
from gate.instance.instance import create_instance, open_instance
from gate.instance.settings import load_settings
from gate.proof.signing import Ed25519Signer, load_registry
from gate.verify import Trust, verify_record
from gate.verify.resolution import verify_resolution
from tests.end_to_end.site import PATIENCE, Site, wait_until
from tests.end_to_end.support import ROOT
from tests.gate.client.guard.guarded_program import CALLERS, PATIENT, BodyFailed, Caller, Effects, Setting, run
from tests.support.faulty_gate import (
    Exchange,
    Fault,
    FaultyApplication,
    FaultyGate,
    Hold,
    Message,
    answering,
    asking_otherwise,
    cut,
    slow,
    spoilt,
)
from tests.support.processes import forked
from tests.support.samples import RECEIPT_KEYS, case_text, cases, sample_rulebook
from tests.support.tampering import Forger, at

ROWS: Final = cases("guard_faults")
RACES: Final = [row for row in ROWS if "race" in row["do"]]

ADAPTER: Final = "solana_execution_gate"
POLICY: Final = "pricing_exception@2026-06-11"
ACTION: Final = "approve_discount"
FACTS: Final[dict[str, dict[str, Any]]] = {
    "yes": {"discount_percent": 10, "margin_percent": 22},
    "another yes": {"discount_percent": 9, "margin_percent": 22},
    "no": {"discount_percent": 10, "margin_percent": 9},
    "review": {"discount_percent": 30, "margin_percent": 22},
    "incomplete": {"discount_percent": 10},
    "forbidden": {"discount_percent": 10, "margin_percent": 22, "verdict": "yes", "action": ACTION},
    "deep": {"discount_percent": 10, "margin_percent": 22, "note": json.loads("[" * 31 + "]" * 31)},
    "huge": {"discount_percent": 10, "margin_percent": 22, "note": "x" * 1_100_000},
}
TRANSFER: Final[dict[str, Any]] = {
    "sol_amount": 9,
    "risk_level": "low",
    "evidence_level": "strong",
    "quorum_signed": True,
    "budget_within_policy": True,
    "recipient_verified": True,
}
GIVEN: Final[dict[str, dict[str, Any]]] = {"yes": TRANSFER, "unusable": TRANSFER | {"sol_amount": "nine"}}
STRANGER: Final = Ed25519Signer("receipt_of_a_stranger", bytes(range(32)))
IMPATIENT: Final = 0.5
ROUNDS: Final = 5


@dataclass(frozen=True, slots=True)
class Service:
    """A running service, and what else there is in the world.

    Attributes:
        url: Where it answers.
        transport: How it is reached in this process; None for a server.
        line: Makes a line to it.
        key: A key of the scope that acts.
        reader: A key of the same scope that may only read.
        other: A key of another scope, whose rulebook of the same name says yes to everything.
        owner: A client that answers reviews.
        scope_hash: The scope that acts, as its records name it.
        registry: The service's receipt keys, as they are published.
        elsewhere: Another instance, whose rulebook of the same name says yes to everything.
        elsewhere_key: A key of it.
        plain: A client that asks the service directly.
        adapter: The adapter that makes the facts of `made_policy`, without what it is given.
    """

    url: str
    transport: httpx.BaseTransport | None
    line: Callable[[], FaultyGate | FaultyApplication]
    key: str
    reader: str
    other: str
    owner: Client
    scope_hash: str
    registry: Mapping[str, Any]
    elsewhere: FlaskClient
    elsewhere_key: str
    plain: Client
    adapter: Mapping[str, str]

    @property
    def trust(self) -> Trust:
        """The service's receipt keys."""
        return Trust(receipt_keys=load_registry(dict(self.registry)), source="registry")


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory, laid_out: Path) -> Iterator[tuple[FlaskClient, str]]:
    """Another instance in this process, and a key of it; its rulebook of the sample's name says yes to everything."""
    shutil.copytree(laid_out, home := tmp_path_factory.mktemp("elsewhere") / "home")
    key = Site(home, None).create_key("acme")
    with closing(open_instance(load_settings(home))) as instance:
        client = create_app(instance).test_client()
        answer = client.post("/api/decide", json=inline(lenient_rulebook()), headers={"x-api-key": key})
        assert answer.status_code == 200
        yield client, key


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, elsewhere: tuple[FlaskClient, str]) -> Iterator[Service]:
    """A server."""
    site = Site(tmp_path_factory.mktemp("guarded") / "home", None)
    keys = keys_of(site)
    with site.serving(1) as server:
        registry = httpx.get(f"{server.url}/api/decision/receipt-keys", timeout=PATIENCE, trust_env=False).json()
        with prepared(server.url, None, lambda: FaultyGate(server.url), keys, registry, elsewhere) as service:
            yield service
        assert "Traceback" not in server.text()


@pytest.fixture(scope="module")
def in_memory(tmp_path_factory: pytest.TempPathFactory, elsewhere: tuple[FlaskClient, str]) -> Iterator[Service]:
    """The application in this process. Its signing keys are its own: `elsewhere` is a copy of what is laid out."""
    home = tmp_path_factory.mktemp("guarded") / "home"
    create_instance(home, base_url="http://gate.example")
    keys = keys_of(Site(home, None))
    with closing(open_instance(load_settings(home))) as instance:
        registry = instance.trust().receipt_keys
        assert registry is not None
        application = create_app(instance)
        transport = httpx.WSGITransport(application)
        with prepared(
            "http://gate.example",
            transport,
            lambda: FaultyApplication(application),
            keys,
            registry.to_dict(),
            elsewhere,
        ) as service:
            yield service


def keys_of(site: Site) -> dict[str, str]:
    """Keys of a new instance, by the members of `Service`."""
    return {
        "key": site.create_key("acme"),
        "other": site.create_key("other"),
        "reader": site.gate("keys", "create", "--scope", "acme", "--access", "read")["key"],
        "owner": site.gate("keys", "create", "--scope", "acme", "--access", "resolve")["key"],
    }


@contextmanager
def prepared(
    url: str,
    transport: httpx.BaseTransport | None,
    line: Callable[[], FaultyGate | FaultyApplication],
    keys: Mapping[str, str],
    registry: Mapping[str, Any],
    elsewhere: tuple[FlaskClient, str],
) -> Iterator[Service]:
    """A service that knows the rulebooks and the adapter of the rows."""
    with (
        Client(url, key=keys["key"], registry=registry, timeout=PATIENT, transport=transport) as plain,
        Client(url, key=keys["owner"], timeout=PATIENT, transport=transport) as owner,
    ):
        scope_hash = plain.decide(inline(sample_rulebook()))["rulebook_registry"]["scope_hash"]
        plain.decide(inline(sample_rulebook() | {"version": "2026-06-12"}))
        with Client(url, key=keys["other"], timeout=PATIENT, transport=transport) as client:
            client.decide(inline(lenient_rulebook()))
        (manifest,) = (each for each in plain.list_trusted_adapters()["adapters"] if each["adapter_id"] == ADAPTER)
        adapter = {
            "adapter_id": ADAPTER,
            "version": manifest["version"],
            "manifest_hash": manifest["manifest_hash"],
        }
        plain.decide({"mode": "rulebook", "rulebook": made_policy(), "adapter": {**adapter, "input": TRANSFER}})
        yield Service(
            url=url,
            transport=transport,
            line=line,
            key=keys["key"],
            reader=keys["reader"],
            other=keys["other"],
            owner=owner,
            scope_hash=scope_hash,
            registry=registry,
            elsewhere=elsewhere[0],
            elsewhere_key=elsewhere[1],
            plain=plain,
            adapter=adapter,
        )


def on_the_wire(row: Mapping[str, Any]) -> bool:
    """Whether a row needs a server: its process dies, or its fault is more than another message."""
    do = row["do"]
    return bool(
        do.keys() & {"dies", "held"}
        or do.get("before") in ("another store asked", "permitted long ago")
        or do.get("here", "").startswith(("away", "full", "locked and away"))
        or any(spec.keys() & {"cut", "slow", "spoilt"} for spec in do.get("strikes", {}).values())
    )


def inline(rulebook: dict[str, Any]) -> dict[str, Any]:
    """A request with a rulebook, which registers it."""
    return {"mode": "rulebook", "rulebook": rulebook, "context": {"inputs": FACTS["yes"]}}


def made_policy() -> dict[str, Any]:
    """A rulebook over facts that an adapter makes."""
    outcomes = [rule["outcome"] for rule in sample_rulebook()["rules"]]
    condition = {"field": "decision_score", "operator": "gte", "value": 80}
    return {
        "schema_version": "rulebook_v1",
        "rulebook_id": "made_exception",
        "version": "1",
        "input_schema": {"required": ["decision_score"], "properties": {"decision_score": {"type": "integer"}}},
        "rules": [{"rule_id": "enough", "priority": 1, "condition": condition, "outcome": outcomes[1]}],
        "default_outcome": outcomes[0],
    }


def lenient_rulebook() -> dict[str, Any]:
    """A rulebook under the name of the sample that says yes to everything."""
    rulebook = sample_rulebook()
    outcome = rulebook["rules"][1]["outcome"]
    rules = [{**rule, "outcome": outcome} for rule in rulebook["rules"]]
    return {**rulebook, "rules": rules, "default_outcome": outcome}


class Case:
    """One row with one client: its line, its files, and an order that is nobody else's."""

    def __init__(self, row: Mapping[str, Any], kind: str, service: Service, folder: Path) -> None:
        self.do: Mapping[str, Any] = row["do"]
        self.kind = kind
        self.service = service
        self.folder = folder
        self.order = f"deal-{uuid.uuid4().hex}"
        self.line = service.line()
        self.registry = folder / "keys.json"
        self.registry.write_text(json.dumps(service.registry))
        self.path = folder / "guard" / "intents.db"
        self.effects = Effects(folder / "effects")
        self.after_effect: Callable[[], None] = lambda: None

    @property
    def wire(self) -> FaultyGate:
        """The line, of a case that has a server."""
        assert isinstance(self.line, FaultyGate)
        return self.line

    def made(self, timeout: float = PATIENT) -> dict[str, Any]:
        """What a client is made of, but for its store."""
        return {
            "key": self.service.key,
            "registry": str(self.registry),
            "scope_hash": self.service.scope_hash,
            "timeout": timeout,
            "tries": 2,
        }

    @contextmanager
    def calling(self, timeout: float = PATIENT, path: Path | None = None) -> Iterator[Caller]:
        """A client while the block runs."""
        with SqliteStore(path or self.path) as store:
            transport = self.line.transport
            caller = CALLERS[self.kind](
                self.line.url, store=store, transport=transport, delivery_transport=transport, **self.made(timeout)
            )
            try:
                yield caller
            finally:
                caller.close()

    def said(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        """What a guard is made of."""
        said: dict[str, Any] = {"rulebook": POLICY, "facts": "yes", "action": ACTION, "target": ("crm", self.order)}
        said |= changes
        if said["rulebook"] == "by id and hash":
            rulebook = sample_rulebook()
            said["rulebook"] = {"rulebook_id": rulebook["rulebook_id"], "hash": content_hash(rulebook)}
        elif said["rulebook"] == "altered":
            said["rulebook"] = lenient_rulebook()
        if "adapter" not in said:
            return {**said, "facts": FACTS[said["facts"]]}
        del said["facts"]
        return {**said, "adapter": {**self.service.adapter, "input": GIVEN[said["adapter"]]}}

    def body(self, permit: BasePermit) -> None:
        """Does the action; it is permitted, or the test fails."""
        record = permit.record
        assert verify_record(record, self.service.trust, request_body=permit.intent.request).verified
        assert record["action_binding"]["resource"] == self.order
        if record["verdict"] != "yes":
            assert record["verdict"] == "review"
            resolution: Any = permit.resolution
            held: Any = record
            assert resolution["resolution"] == "granted"
            assert verify_resolution(resolution, held, self.service.trust).verified
        self.effects.do(permit)
        self.after_effect()
        if self.do.get("raises"):
            raise BodyFailed

    def attempt(self, caller: Caller, changes: Mapping[str, Any]) -> Exception | None:
        """What a caller sees who guards the action."""
        return caller.attempt(self.body, outcome=bool(self.do.get("outcome")), **self.said(changes))

    @property
    def runs(self) -> int:
        """How often the action was done."""
        return len(self.effects.decisions)

    def intent(self, store: SqliteStore) -> Intent | None:
        """The latest attempt in a store."""
        said = self.said({**self.do.get("said", {}), "facts": "yes"})
        with Client(self.service.url, store=store, registry=self.service.registry) as client:
            return store.find(client.guard(**said).intent_id)

    def stored(self) -> str:
        """What is in the store, in words."""
        if not self.path.exists():
            return "nothing"
        with SqliteStore(self.path) as store:
            intent = self.intent(store)
            words = ["nothing" if intent is None else str(intent.state)]
            words += [f"{report.kind} report waiting" for report in store.undelivered(9)]
            words += [f"{report.kind} report set aside" for report in store.set_aside(9)]
        return ", ".join(words)

    def process(self, dies: str, told: Connection | None = None) -> Any:
        """A process of its own that guards the action, and dies on the way."""
        made = self.made() | {"url": self.line.url, "store": str(self.path)}
        setting = Setting(self.kind, made, [self.said(self.do.get("said", {}))], self.effects.path, dies)
        return forked().Process(target=run, args=(setting, told))


# What has happened before.


def another_store(case: Case, *, runs: bool) -> None:
    """Another store has asked for the same intent; its body has run, or it died before that."""
    with case.calling(path=case.folder / "another.db") as caller:
        if runs:
            assert case.attempt(caller, {}) is None
            assert caller.flush().failure is None
        else:
            with case.line.striking("decide", cut("answered")):
                assert isinstance(case.attempt(caller, {}), NotPermitted)


def older_copy(case: Case) -> None:
    """The action was done, and then an older copy of the store was put in its place."""
    with SqliteStore(case.path) as store:
        assert store.identity
    # Closed, it is one file.
    shutil.copy(case.path, case.folder / "copy.db")
    with case.calling() as caller:
        assert case.attempt(caller, {}) is None
        assert caller.flush().failure is None
    shutil.copy(case.folder / "copy.db", case.path)


def permitted_long_ago(case: Case) -> None:
    """A process died with a yes, an hour ago."""
    kill(case, {"dies": "after answer"})
    with sqlite3.connect(case.path) as connection:
        connection.execute("UPDATE gate_intents SET asked_at = '2026-01-01T00:00:00.000Z'")
    connection.close()


def granted(case: Case) -> None:
    """The action was held for its owner, who has granted it."""
    with case.calling() as caller:
        held = case.attempt(caller, case.do["said"])
    assert isinstance(held, HeldForReview)
    said = {"resolution": "granted", "resolved_by": "Maya Lindqvist"}
    case.service.owner.resolve_decision(str(held.decision_id), said)


def granted_long_ago(case: Case) -> None:
    """The same, and the action was held an hour ago."""
    granted(case)
    with sqlite3.connect(case.path) as connection:
        connection.execute("UPDATE gate_intents SET asked_at = '2026-01-01T00:00:00.000Z'")
    connection.close()


def older_copy_of_a_review(case: Case) -> None:
    """A granted action was done, and then the store as it was before the grant was put in its place."""
    granted(case)
    shutil.copy(case.path, case.folder / "copy.db")
    with case.calling() as caller:
        assert case.attempt(caller, case.do["said"]) is None
        assert caller.flush().failure is None
    shutil.copy(case.folder / "copy.db", case.path)


BEFORE: Final[dict[str, Callable[[Case], None]]] = {
    "another store asked": lambda case: another_store(case, runs=False),
    "another store ran": lambda case: another_store(case, runs=True),
    "older copy": older_copy,
    "permitted long ago": permitted_long_ago,
    "granted": granted,
    "granted long ago": granted_long_ago,
    "older copy of a review": older_copy_of_a_review,
}


# What goes wrong on the caller's side, while a block runs.


@contextmanager
def away(path: Path) -> Iterator[None]:
    """A file is not there."""
    aside = path.rename(path.with_suffix(".aside"))
    try:
        yield
    finally:
        if path.is_dir():
            path.rmdir()
        aside.rename(path)


@contextmanager
def replaced(path: Path, content: Any) -> Iterator[None]:
    """A file has another content; a folder stands there for None."""
    with away(path):
        if content is None:
            path.mkdir()
        else:
            path.write_text(content if isinstance(content, str) else json.dumps(content))
        yield


@contextmanager
def no_place(case: Case) -> Iterator[None]:
    """The store's folder is a file."""
    case.path.parent.write_text("")
    try:
        yield
    finally:
        case.path.parent.unlink()


@contextmanager
def locked(case: Case) -> Iterator[None]:
    """Another process holds the store."""
    case.path.parent.mkdir(exist_ok=True)
    with Path(f"{case.path}.lock").open("w") as lock, pytest.MonkeyPatch.context() as patched:
        patched.setattr(sqlite, "PATIENCE", 0.1)
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def full_disk(_: Case) -> Iterator[None]:
    """No file of this process can grow, as where the disk is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def from_the_effect_on(case: Case, trouble: Callable[[Case], AbstractContextManager[None]]) -> Iterator[None]:
    """Something else goes wrong as soon as the action was done."""
    with ExitStack() as stack:
        case.after_effect = lambda: stack.enter_context(trouble(case))
        yield
        case.after_effect = lambda: None


@contextmanager
def from_the_decision_on(case: Case, trouble: Callable[[Case], AbstractContextManager[None]]) -> Iterator[None]:
    """Something else goes wrong while the service decides."""
    with ExitStack() as stack:

        def strike(exchange: Exchange) -> None:
            answer = exchange.forward()
            stack.enter_context(trouble(case))
            exchange.send(answer.wire())

        with case.line.striking("decide", once(strike)):
            yield


@contextmanager
def locked_and_away(case: Case) -> Iterator[None]:
    """Another process holds the store, and the service is down."""
    with locked(case), case.wire.away():
        yield


@contextmanager
def short_turns(_: Case) -> Iterator[None]:
    """A report that is in progress is soon sent again; nothing else about it changes."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(delivery, "_TURN_SECONDS", 0.001)
        yield


def compromised(registry: Mapping[str, Any]) -> dict[str, Any]:
    """A registry that calls its keys compromised."""
    keys = [{**key, "status": "compromised", "not_after": key["not_before"]} for key in registry["keys"]]
    return {**registry, "keys": keys}


def retired(registry: Mapping[str, Any]) -> dict[str, Any]:
    """A registry that calls its keys retired, at a time that is yet to come."""
    keys = [{**key, "status": "retired", "not_after": "2999-01-01T00:00:00.000Z"} for key in registry["keys"]]
    return {**registry, "keys": keys, "active_key_id": None}


HERE: Final[dict[str, Callable[[Case], AbstractContextManager[None]]]] = {
    "no registry": lambda case: away(case.registry),
    "registry unreadable": lambda case: replaced(case.registry, None),
    "registry corrupted": lambda case: replaced(case.registry, '{"keys": ['),
    "registry empty": lambda case: replaced(case.registry, {"keys": [], "active_key_id": None}),
    "registry of another instance": lambda case: replaced(case.registry, RECEIPT_KEYS.to_dict()),
    "registry compromised": lambda case: replaced(case.registry, compromised(case.service.registry)),
    "registry retired": lambda case: replaced(case.registry, retired(case.service.registry)),
    "no place": no_place,
    "short turns": short_turns,
    "locked": locked,
    "locked from the decision on": lambda case: from_the_decision_on(case, locked),
    "locked from the effect on": lambda case: from_the_effect_on(case, locked),
    "full": full_disk,
    "full from the effect on": lambda case: from_the_effect_on(case, full_disk),
    "locked and away from the effect on": lambda case: from_the_effect_on(case, locked_and_away),
    "away": lambda case: case.wire.away(),
    "away from the effect on": lambda case: from_the_effect_on(case, lambda case: case.wire.away()),
}


# What goes wrong on the line.


def changed_json(change: Callable[[bytes], bytes]) -> Callable[[Message], Message]:
    """Changes an answer's body."""
    return lambda answer: replace(answer, body=change(answer.body))


SPOILT: Final[dict[str, Fault]] = {
    "halved": spoilt(changed_json(lambda body: body[: len(body) // 2])),
    "announces more": spoilt(lambda answer: answer, announces=100),
    "announces less": spoilt(lambda answer: answer, announces=-100),
    "duplicate member": spoilt(changed_json(lambda body: body.replace(b"{", b'{"verdict":"yes",', 1))),
    "NaN": spoilt(changed_json(lambda body: body.replace(b"{", b'{"x":NaN,', 1))),
    "list": spoilt(changed_json(lambda body: b"[" + body + b"]")),
    "gzip": spoilt(lambda answer: replace(answer, headers={**answer.headers, "content-encoding": "gzip"})),
}


def fault_of(case: Case, spec: Mapping[str, Any]) -> Fault:
    """The fault that a row tells."""
    ((kind, told),) = ((name, spec[name]) for name in spec if name in FAULTS)
    fault = FAULTS[kind](case, told, spec)
    return once(fault) if spec.get("once") else fault


def once(fault: Fault) -> Fault:
    """A fault that strikes one call."""
    struck: list[Exchange] = []

    def strike(exchange: Exchange) -> None:
        if struck:
            exchange.send(exchange.forward().wire())
        else:
            struck.append(exchange)
            fault(exchange)

    return strike


def canned(_: Case, status: int, spec: Mapping[str, Any]) -> Fault:
    """An answer that is not the service's, or that it gives when it cannot be made to."""
    headers = {"content-type": "text/html", **spec.get("headers", {})}
    if "error" in spec:
        said = {"v": "x", "error": spec["error"], "message": "It is so.", "request_id": "req_0"}
        return answering(Message(str(status), headers | {"content-type": "application/json"}, orjson.dumps(said)))
    return answering(Message(str(status), headers, case_text({"text": "<h1>no</h1>", **spec}).encode()))


def otherwise(case: Case, change: Mapping[str, Any], _: Mapping[str, Any]) -> Fault:
    """Another request reaches the service than the one that was sent."""
    return asking_otherwise(lambda request: changed(case, request, change))


def changed(case: Case, request: Message, change: Mapping[str, Any]) -> Message:
    """A request with another key, idempotency key, path, body, or with other headers."""
    keys = {"unknown": "dgk_unknown", "reader": case.service.reader, "other scope": case.service.other}
    headers = {**request.headers, **change.get("headers", {})}
    if "idempotency key" in change:
        headers["x-idempotency-key"] = case.order
    if "key" in change:
        headers["x-api-key"] = keys[change["key"]]
    body = request.body
    if "body" in change:
        document = request.document
        for path, value in change["body"]:
            at(document, tuple(path[:-1]))[path[-1]] = value
        body = orjson.dumps(document)
    return Message(request.start.replace(*change.get("path", ("", ""))), headers, body)


def unknown_decision(_case: Case, _told: Any, _spec: Mapping[str, Any]) -> Fault:
    """The report reaches the service as one about a decision that it does not know."""
    return asking_otherwise(lambda request: replace(request, start="POST /api/decision/dec_0/execution"))


def used_key(case: Case, _told: Any, _spec: Mapping[str, Any]) -> Fault:
    """The report reaches the service as one about another decision, for which its idempotency key was used before."""

    def strike(exchange: Exchange) -> None:
        start = f"POST {case.service.plain.decide(inline(sample_rulebook()))['decision_url']}/execution"
        exchange.forward(start=start, body=b'{"execution_status":"queued"}')
        exchange.send(exchange.forward(start=start).wire())

    return strike


def forged(case: Case, edits: Any, spec: Mapping[str, Any]) -> Fault:
    """A forger changes the record, and recomputes what depends on it, as far as that goes without the service's key.

    With `asked`, the record is one about another request, changed as for `otherwise`.
    """

    def change(answer: Message) -> Message:
        if answer.start != "200":
            return answer
        forger = Forger({"decision_record": answer.document})
        for edit in edits:
            if "digit" in edit:
                path = ("decision_record", *edit["digit"])
                value = at(forger.packet, path)
                edit = {"set": path, "to": value[:-1] + ("0" if value[-1] != "0" else "1")}
            else:
                ((verb, path),) = ((name, found) for name, found in edit.items() if name != "to")
                edit = {**edit, verb: ("decision_record", *path)}
                if edit.get("to") == "its order":
                    assert at(forger.packet, edit["set"]) != case.order
                    edit["to"] = case.order
            forger.edit(edit)
        forger.recompute(spec.get("recompute", []), STRANGER)
        return replace(answer, body=orjson.dumps(forger.packet["decision_record"]))

    def strike(exchange: Exchange) -> None:
        asked = changed(case, exchange.request, spec.get("asked", {}))
        exchange.send(change(exchange.forward(start=asked.start, headers=asked.headers, body=asked.body)).wire())

    return strike


def of_another_instance(case: Case, _told: Any, _spec: Mapping[str, Any]) -> Fault:
    """Another instance decides, under keys of its own."""

    def strike(exchange: Exchange) -> None:
        headers = {**exchange.request.headers, "x-api-key": case.service.elsewhere_key}
        answer = case.service.elsewhere.post("/api/decide", data=exchange.request.body, headers=headers)
        assert answer.status_code == 200
        exchange.send(Message("200", {"content-type": "application/json"}, answer.data).wire())

    return strike


def of_an_earlier_attempt(_case: Case, _told: Any, _spec: Mapping[str, Any]) -> Fault:
    """The first answer is given ever after."""
    kept: list[bytes] = []

    def strike(exchange: Exchange) -> None:
        kept.append(exchange.forward().wire())
        exchange.send(kept[0])

    return strike


FAULTS: Final[dict[str, Callable[[Case, Any, Mapping[str, Any]], Fault]]] = {
    "cut": lambda case, where, spec: cut(where),
    "slow": lambda case, part, spec: slow(part),
    "spoilt": lambda case, how, spec: SPOILT[how],
    "status": canned,
    "otherwise": otherwise,
    "unknown decision": unknown_decision,
    "used key": used_key,
    "forged": forged,
    "another instance": of_another_instance,
    "first answer": of_an_earlier_attempt,
}


@contextmanager
def trouble(case: Case) -> Iterator[None]:
    """What goes wrong in a row, while the block runs."""
    with ExitStack() as stack:
        for call, spec in case.do.get("strikes", {}).items():
            stack.enter_context(case.line.striking(call, fault_of(case, spec)))
        if "here" in case.do:
            stack.enter_context(HERE[case.do["here"]](case))
        yield


def kill(case: Case, do: Mapping[str, Any]) -> None:
    """Lets a process guard the action, and kills it on the way: by its own hand at a step, or from here while the line
    holds something back.
    """
    process = case.process(do.get("dies", ""))
    hold = Hold(do["held"][1]) if "held" in do else None
    with case.line.striking(do["held"][0], hold) if hold else nullcontext():
        process.start()
        if hold is not None:
            wait_until(lambda: hold.reached.is_set() or not process.is_alive())
            process.kill()
        process.join(PATIENCE)
    assert process.exitcode == -9
    process.close()


def name_of(error: Exception | None) -> list[str] | None:
    """What a caller sees: the class and the code."""
    return None if error is None else [type(error).__name__, getattr(error, "code", "")]


# The rows.


def named(row: Mapping[str, Any]) -> str:
    """The id of a row."""
    return f"{row['strikes']}: {row['fault']}"


@pytest.mark.parametrize("kind", CALLERS)
@pytest.mark.parametrize(
    ("row", "place"),
    [
        pytest.param(row, "served", id=named(row), marks=pytest.mark.heavy)
        if on_the_wire(row)
        else pytest.param(row, "in_memory", id=named(row))
        for row in ROWS
        if row not in RACES
    ],
)
def test_an_action_runs_once_on_a_verified_yes_and_is_reported_whatever_fails(
    row: dict[str, Any], place: str, kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    service: Service = request.getfixturevalue(place)
    case = Case(row, kind, service, tmp_path)
    try:
        if "before" in row["do"]:
            BEFORE[row["do"]["before"]](case)
        stored = require_at_once(case, row)
        if stored is None:
            stored = case.stored()
        assert stored == row["store"]
        assert case.runs == row["runs"][0]
        require_in_the_end(case, row)
    finally:
        case.line.close()


def require_at_once(case: Case, row: Mapping[str, Any]) -> str | None:
    """Requires what a row says of the time of the fault. What is in the store then; None where it cannot be read."""
    do = case.do
    said = do.get("said", {})
    with trouble(case):
        if "dies" in do or "held" in do:
            kill(case, do)
            return case.stored()
        strikes = do.get("strikes", {}).values()
        is_slow = any("slow" in spec or spec.get("spoilt") == "announces more" for spec in strikes)
        timeout = IMPATIENT if is_slow else PATIENT
        with case.calling(timeout) as caller:
            on_the_way_in = do.get("strikes", {}).keys() & {"decide", "resolution"}
            first = case.attempt(caller, said if on_the_way_in else {"timeout": PATIENT, **said})
            assert name_of(first) == row["sees"]
            runs = case.runs
            if not is_slow and not do.get("raises"):
                later = case.attempt(caller, {**said, **do.get("again", {})})
                assert later is not None
                if not runs and "again" not in do:
                    assert name_of(later) == row["sees"]
                assert case.runs == runs
            with suppress(StoreUnavailable):
                require_told(case, row, caller.flush())
        with suppress(StoreUnavailable):
            return case.stored()
    return None


def require_told(case: Case, row: Mapping[str, Any], came: Delivery) -> None:
    """Requires that a delivery came to what a row says."""
    with SqliteStore(case.path) as store:
        why = [str(report.refused) for report in store.set_aside(9)]
    if came.failure is not None:
        why.append(str(came.failure))
    assert [sentence.partition(":")[0] for sentence in why] == ([row["told"]] if "told" in row else [])


def require_in_the_end(case: Case, row: Mapping[str, Any]) -> None:
    """Requires what a row says of the time after the fault."""
    changes = {**row["do"].get("said", {}), **row["do"].get("mended", {})}
    if row["do"].get("recovers"):
        changes["recover"] = case.effects.recover
    before = case.runs
    with case.calling() as caller:
        error = case.attempt(caller, changes)
        expected = ["AlreadyStarted", "ACTION_ALREADY_STARTED"] if before else row.get("then")
        assert name_of(error) == expected
        assert case.runs == row["runs"][1]
        assert caller.flush(again=True).failure is None
        again = case.attempt(caller, changes)
        assert isinstance(again, NotPermitted)
        assert isinstance(again, AlreadyStarted) is bool(case.runs)
        assert caller.flush().failure is None
    assert case.runs == row["runs"][1]
    require_reported(case, row)


def require_reported(case: Case, row: Mapping[str, Any]) -> None:
    """Requires that the service knows of every run, by one receipt each, and that nothing waits."""
    plain = case.service.plain
    found = plain.find_decisions(target_object_id=case.order)["decisions"]
    told: list[tuple[str, str]] = []
    for decision in reversed(found):
        receipts = plain.list_executions(decision["decision_id"])["executions"]
        told += [(decision["decision_id"], receipt["execution_status"]) for receipt in reversed(receipts)]
    assert [status for _, status in told] == row["receipts"]
    ran = [decision_id for decision_id, status in told if status != "skipped"]
    assert ran == case.effects.decisions
    for decision_id in ran:
        record = plain.get_decision(decision_id)
        assert record["action_binding"]["resource"] == case.order
        if record["verdict"] != "yes":
            assert plain.get_resolution(decision_id)["state"] == "executed"
            assert all(receipt["flags"] == [] for receipt in plain.list_executions(decision_id)["executions"])
        if row["do"].get("outcome"):
            (outcome,) = plain.list_outcomes(decision_id)["outcomes"]
            (receipt,) = plain.list_executions(decision_id)["executions"]
            assert outcome["audit_chain"]["chain_position"] > receipt["audit_chain"]["chain_position"]
    if case.path.exists():
        with SqliteStore(case.path) as store:
            assert [*store.undelivered(9), *store.set_aside(9)] == []


@pytest.mark.heavy
@pytest.mark.parametrize("kind", CALLERS)
@pytest.mark.parametrize("row", RACES, ids=named)
def test_of_processes_that_race_for_an_action_one_runs_it(
    row: dict[str, Any], kind: str, served: Service, tmp_path: Path
) -> None:
    context = forked()
    meeting = context.Barrier(2)
    races = [Case(row, kind, served, folder) for folder in folders(tmp_path)]
    for race in races:
        race.path = tmp_path / "0.db"
        if "before" in row["do"]:
            BEFORE[row["do"]["before"]](race)
    said = [race.said(row["do"].get("said", {})) for race in races]
    processes, answers = [], []
    for number in range(2):
        store = tmp_path / f"{number if row['do']['race'] == 'stores' else 0}.db"
        made = races[0].made() | {"url": served.url, "store": str(store)}
        receiving, sending = context.Pipe(duplex=False)
        answers.append(receiving)
        setting = Setting(kind, made, said, tmp_path / "effects")
        processes.append(context.Process(target=run, args=(setting, sending, meeting)))
    for process in processes:
        process.start()
    seen = [answer.recv() for answer in answers]
    for process in processes:
        process.join(PATIENCE)
        assert process.exitcode == 0
        process.close()
    for answer in answers:
        answer.close()
    done = Effects(tmp_path / "effects").decisions
    for race, *codes in zip(races, *seen, strict=True):
        assert codes.count(None) == 1
        assert {code for code in codes if code is not None} <= set(row["loser"])
        found = served.plain.find_decisions(target_object_id=race.order)["decisions"]
        told = [
            receipt["decision_id"]
            for decision in found
            for receipt in served.plain.list_executions(decision["decision_id"])["executions"]
        ]
        assert len(told) == 1
        done.remove(told[0])
        race.line.close()
    assert done == []


def folders(folder: Path) -> Iterator[Path]:
    """A folder for each round of a race."""
    for number in range(ROUNDS):
        (made := folder / str(number)).mkdir()
        yield made


def test_the_tables_of_the_reference_are_these_rows() -> None:
    pages = (ROOT / "docs" / "reference" / "guard-faults").glob("*.md")
    parts = [part for page in pages for part in page.read_text().split("\n## ")[1:]]
    tables = [[line for line in part.splitlines() if line.startswith("|")][2:] for part in parts]
    kinds = {row["strikes"] for row in ROWS}
    assert sorted(tables) == sorted([table_row(row) for row in ROWS if row["strikes"] == kind] for kind in kinds)


def table_row(row: Mapping[str, Any]) -> str:
    """A row, as the documentation shows it."""
    sees = " ".join(f"`{name}`" for name in row["sees"] or () if name) or "nothing"
    store = f"{row['store']} (`{row['told']}`)" if "told" in row else row["store"]
    receipts = ", ".join(row["receipts"]) or "none"
    return f"| {row['fault']} | {sees} | {store} | {row['runs'][0]}, then {row['runs'][1]} | {receipts} |"
