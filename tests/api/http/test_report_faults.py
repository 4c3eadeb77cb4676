"""A fault at every step of a report. The answer is an error, nothing is acknowledged, and nothing is half written; when
the fault is over, the same request with the same idempotency key is answered, and makes one report.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any, Final, TypeAlias

import orjson
import pytest
from flask.testing import FlaskClient
from sqlalchemy import update
from werkzeug.test import TestResponse

from api.app import attach
from gate.clock import utc_now
from gate.decisions import stored
from gate.instance.instance import Instance, create_instance, open_instance
from gate.instance.settings import load_settings
from gate.ledger.access.authority import FULL_ACCESS
from gate.ledger.chain import group_commit
from gate.ledger.stores import postgres, sqlite
from gate.ledger.stores.sqlite import SqliteLedgerStore
from gate.ledger.stores.store import Store, read_object, unavailable
from gate.ledger.tables import entries
from gate.records.reports.receipts import CRM_SYNCS, EXECUTIONS, KINDS, OUTCOMES, Kind, report_hash
from tests.api.reporting import Caller, refused
from tests.support.faults import refused as database_refuses
from tests.support.faults import refused_at_commit, table_gone
from tests.support.postgres import database_of
from tests.support.promises import no_fork_no_gap, one_record_a_key, reported_is_kept
from tests.support.samples import REPORTS, rows_of

PLANTED: Final = "SELECT secret_hash FROM api_keys -- dgk_planted"

Place: TypeAlias = Callable[[Store], AbstractContextManager[None]]


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> Iterator[str | None]:
    """Where the ledger is; tests that share a database have scopes of their own."""
    with database_of(request) as url:
        yield url


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, database_url: str | None) -> Path:
    """The home directory of the instance."""
    directory = tmp_path_factory.mktemp("instance") / "home"
    create_instance(directory, base_url="http://gate.example", database_url=database_url)
    return directory


@pytest.fixture(scope="module")
def opened(home: Path, database_url: str | None) -> Iterator[Instance]:
    """The instance in that directory."""
    with closing(open_instance(load_settings(home, database_url=database_url))) as instance:
        yield instance


@pytest.fixture
def instance(opened: Instance) -> Instance:
    """The same for all tests: each has a scope, keys and decisions of its own, which nobody remembers."""
    return opened


@pytest.fixture
def caller(instance: Instance, client: FlaskClient) -> Caller:
    """A caller of a scope of its own."""
    directory, now = instance.ledger.directory, utc_now()
    scope = directory.create_scope(f"scope-{secrets.token_hex(4)}", "unlimited", now)
    return Caller(client, directory.create_key(scope, FULL_ACCESS, None, now)[0], instance, scope)


def kept(store: Store) -> dict[str, list[tuple[Any, ...]]]:
    """What the ledger holds, but for the keys' last use."""
    return {name: rows for name, rows in rows_of(store).items() if name != "api_keys"}


def requires(table: str) -> Place:
    return lambda store: table_gone(store, table)


def rejects(event: str, table: str) -> Place:
    return lambda store: database_refuses(store, event, table)


@contextmanager
def commit_unheard(store: Store) -> Iterator[None]:
    """The report is committed, and this process hears of an error instead."""
    transaction: Any = (
        sqlite._SqliteTransaction if isinstance(store, SqliteLedgerStore) else postgres._PostgresTransaction
    )
    commit, error = transaction.commit, store.engine.dialect.loaded_dbapi.InterfaceError

    def unheard(self: Any, writes: Sequence[Any]) -> None:
        commit(self, writes)
        if len(writes) > 1:
            raise error("the connection broke off")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transaction, "commit", unheard)
        yield


@contextmanager
def queue_full(_: Store) -> Iterator[None]:
    """As many requests wait for the ledger as may."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(group_commit, "MAX_QUEUE", 0)
        yield


@contextmanager
def unreservable(store: Store) -> Iterator[None]:
    """Nobody can tell whether the key is in use."""

    def fail(*_: object) -> Any:
        raise unavailable("no locks available")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(store), "reserve", fail)
        yield


FIRST, LATER = (True,), (False,)

# What is reported before a later report; an outcome of the same status would leave the counts as they are.
EARLIER: Final = {**REPORTS, "outcome": {"outcome_status": "pending"}}

# Where the database fails, of which kinds of reports, and whether at the first report on a decision or at a later one.
# A process that has seen key and decision remembers them.
STORAGE: Final[dict[str, tuple[Place, tuple[Kind, ...], tuple[bool, ...]]]] = {
    "who calls": (requires("api_keys"), KINDS, FIRST),
    "finding the decision": (requires("entries"), KINDS, FIRST),
    "reserving the key": (unreservable, KINDS, FIRST + LATER),
    "the queue": (queue_full, KINDS, FIRST + LATER),
    "locking the head": (requires("chain_heads"), KINDS, FIRST + LATER),
    "looking for the claim": (requires("claims"), KINDS, FIRST + LATER),
    "finding the latest outcome": (requires("latest_outcomes"), (OUTCOMES,), FIRST + LATER),
    "finding the counts": (requires("outcome_counts"), (OUTCOMES,), FIRST + LATER),
    "writing the entry": (rejects("INSERT", "entries"), KINDS, FIRST + LATER),
    "writing the claim": (rejects("INSERT", "claims"), KINDS, FIRST + LATER),
    "moving the head": (rejects("UPDATE", "chain_heads"), KINDS, FIRST + LATER),
    "writing the first outcome": (rejects("INSERT", "latest_outcomes"), (OUTCOMES,), FIRST),
    "writing the latest outcome": (rejects("UPDATE", "latest_outcomes"), (OUTCOMES,), LATER),
    "beginning to count": (rejects("INSERT", "outcome_counts"), (OUTCOMES,), FIRST),
    "counting": (rejects("UPDATE", "outcome_counts"), (OUTCOMES,), LATER),
    "the commit": (lambda store: refused_at_commit(store, "entries"), KINDS, FIRST + LATER),
}


# On PostgreSQL only outcomes: what the other kinds ask of the database, they ask as well, and more.
@pytest.mark.parametrize(
    ("database_url", "step", "kind", "first"),
    [
        pytest.param(database, step, kind, first, id=f"{step}, {kind.name}, {'first' if first else 'later'}-{database}")
        for database, on_database in (("sqlite", KINDS), ("postgresql", (OUTCOMES,)))
        for step, (_, kinds, times) in STORAGE.items()
        for kind in kinds
        if kind in on_database
        for first in times
    ],
    indirect=["database_url"],
    scope="module",
)
def test_a_database_that_fails_at(caller: Caller, step: str, kind: Kind, *, first: bool) -> None:
    decision_id = caller.decide()["decision_id"]
    attach(caller.client.application, caller.instance)
    caller.key = caller.new_key(*FULL_ACCESS)
    acknowledged = [] if first else [caller.report(kind, decision_id, EARLIER[kind.name], used="before")]
    store = caller.instance.ledger.store
    before = kept(store)
    with STORAGE[step][0](store):
        refused(caller.report(kind, decision_id, used="job-1"), 503, "SVC_STORAGE_UNAVAILABLE")
    assert kept(store) == before
    require_recovered(caller, kind, decision_id, acknowledged)


def require_recovered(
    caller: Caller, kind: Kind, decision_id: str, acknowledged: list[Any], *, recorded: bool = False
) -> None:
    """Requires that the same request is answered once the fault is over, with one report."""
    answers = [caller.report(kind, decision_id, used=used) for used in ("job-1", "job-1", "later")]
    assert [answer.status_code for answer in answers] == [200 if recorded else 201, 200, 201]
    assert answers[0].data == answers[1].data
    ledger, scope = caller.instance.ledger, caller.scope
    reported_is_kept(ledger, scope, [answer.get_json() for answer in [*acknowledged, *answers]])
    no_fork_no_gap(ledger, scope)
    one_record_a_key(ledger, scope)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_commit_that_nobody_heard_of(caller: Caller, kind: Kind) -> None:
    decision_id = caller.decide()["decision_id"]
    with commit_unheard(caller.instance.ledger.store):
        refused(caller.report(kind, decision_id, used="job-1"), 503, "SVC_STORAGE_UNAVAILABLE")
    require_recovered(caller, kind, decision_id, [], recorded=True)


REPLAYS: Final = {
    "finding the claim": requires("claims"),
    "finding the report": requires("entries"),
}


@pytest.mark.parametrize("step", REPLAYS)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_replay_for_which_the_database_fails_at(caller: Caller, step: str, kind: Kind) -> None:
    decision_id = caller.decide()["decision_id"]
    first = caller.report(kind, decision_id, used="job-1")
    with REPLAYS[step](caller.instance.ledger.store):
        refused(caller.report(kind, decision_id, used="job-1"), 503, "SVC_STORAGE_UNAVAILABLE")
    require_recovered(caller, kind, decision_id, [first], recorded=True)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_list_for_which_the_database_fails(caller: Caller, kind: Kind) -> None:
    decision_id = caller.decide()["decision_id"]
    caller.report(kind, decision_id)
    with table_gone(caller.instance.ledger.store, "entries"):
        refused(caller.list(kind, decision_id), 503, "SVC_STORAGE_UNAVAILABLE")
    assert caller.list(kind, decision_id).get_json()["count"] == 1


UNFORESEEN: Final = {
    "reading the body": ("api.routes.lifecycle.read_body", False),
    "who calls": ("api.routes.lifecycle.recognize", False),
    "parsing": ("api.routes.lifecycle.parse_body", False),
    "canonical JSON": ("gate.decisions.lifecycle.content_hash", False),
    "the key": ("gate.decisions.lifecycle.read_claim", False),
    "the shape": ("gate.decisions.lifecycle.check_request", False),
    "the report's id": ("gate.decisions.lifecycle.new_id", False),
    "building the report": ("gate.decisions.lifecycle.build", False),
    "building the link": ("gate.decisions.lifecycle.report_link", False),
    "packing": ("gate.ledger.chain.writer.pack", False),
    "reading the head": ("gate.ledger.chain.writer._look_up", False),
    "linking": ("gate.proof.chain.append", False),
    "laying out the row": ("gate.ledger.chain.writer._entry_row", False),
    "after the commit": ("gate.proof.chain.record_link", True),
    "building the answer": ("api.routes.lifecycle.json_response", True),
}


# On PostgreSQL only the steps at which the ledger is written.
@pytest.mark.parametrize(
    ("database_url", "step", "kind"),
    [
        pytest.param(database, step, kind, id=f"{step}, {kind.name}-{database}")
        for database, kinds in (("sqlite", (EXECUTIONS, CRM_SYNCS)), ("postgresql", (EXECUTIONS,)))
        for step, (path, _) in UNFORESEEN.items()
        if database == "sqlite" or path.startswith(("gate.ledger.", "gate.proof.chain."))
        for kind in kinds
    ],
    indirect=["database_url"],
    scope="module",
)
def test_what_nobody_foresaw_at(caller: Caller, step: str, kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> Any:
        raise RuntimeError(PLANTED)

    decision_id = caller.decide()["decision_id"]
    path, recorded = UNFORESEEN[step]
    store = caller.instance.ledger.store
    before = kept(store)
    with monkeypatch.context() as patch:
        patch.setattr(path, fail)
        answer = refused(caller.report(kind, decision_id, used="job-1"), 500, "SVC_INTERNAL_ERROR")
    assert PLANTED not in str(answer)
    assert recorded or kept(store) == before
    require_recovered(caller, kind, decision_id, [], recorded=recorded)


def damaged(kind: Kind, member: str, *, rehashed: bool) -> Callable[[bytes, str], dict[str, Any]]:
    """Reads what is stored with a member that is another one, and perhaps with the hash that it then has."""

    def read(stored: bytes, what: str) -> dict[str, Any]:
        report = {**read_object(stored, what), member: "failed" if member.endswith("status") else "job-2"}
        return {**report, kind.hash_member: report_hash(kind, report)} if rehashed else report

    return read


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("rehashed", [False, True], ids=["as it is", "with its hash"])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_stored_report_that_was_changed_is_shown_to_nobody(
    caller: Caller, kind: Kind, monkeypatch: pytest.MonkeyPatch, *, rehashed: bool
) -> None:
    decision_id = caller.decide()["decision_id"]
    caller.report(kind, decision_id, used="job-1")
    (status,) = REPORTS[kind.name]
    for member in (status, "idempotency_key", "reported_at", "decision_id"):
        with monkeypatch.context() as patch:
            patch.setattr(stored, "read_object", damaged(kind, member, rehashed=rehashed))
            refused(caller.report(kind, decision_id, used="job-1"), 503, "SVC_STORAGE_UNAVAILABLE")
            refused(caller.list(kind, decision_id), 503, "SVC_STORAGE_UNAVAILABLE")
    assert caller.report(kind, decision_id, used="job-1").status_code == 200


def unlike_made(record: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What might stand in the place of a record: what is in its row, by how that differs from what was made."""
    erased = {"erased": {"members": ["adapter_facts", "evaluation", "input"]}, "evaluation": None}

    def body(**members: Any) -> dict[str, Any]:
        return {"body": orjson.dumps({**record, **members})}

    return {
        "another verdict and hash": body(verdict="yes", record_hash="f" * 64),
        "another verdict": body(verdict="yes"),
        "another verdict, said to be erased": body(verdict="yes", **erased),
        "another action, said to be erased": body(action="pay", **erased),
        "another binding, said to be erased": body(action_binding={"system": "erp"}, **erased),
        "another policy, said to be erased": body(policy_id="other", **erased),
        "another bundle hash": body(policy_bundle_hash="0" * 64),
        "another receipt hash": body(receipt_hash="0" * 64),
        "another id": body(decision_id="dec_0"),
        "a field that nothing covers": body(approved_by="cfo"),
        "a number that JSON does not have": body(action_binding={"amount": 2**60}),
        "no verdict": {"body": orjson.dumps({name: value for name, value in record.items() if name != "verdict"})},
        "a list": {"body": b"[]"},
        "no JSON": {"body": b"{"},
        "another leaf": {"leaf_hash": "0" * 64},
        "another record hash in the link": {"record_hash": "0" * 64},
        "another receipt hash in the link": {"receipt_hash": "0" * 64},
    }


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("how", unlike_made({}))
def test_nothing_is_reported_of_a_record_that_is_not_as_it_was_made(caller: Caller, how: str) -> None:
    record = caller.decide(discount_percent=10, margin_percent=2)
    assert record["verdict"] == "no"
    decision_id = record["decision_id"]
    stored = caller.instance.ledger.entries.decision(caller.scope.scope_id, decision_id)
    assert stored is not None
    kept = {name: stored.link[name] for name in ("record_hash", "receipt_hash", "leaf_hash")} | {"body": stored.body}

    def store(columns: dict[str, Any]) -> None:
        with caller.instance.ledger.store.write() as connection:
            connection.execute(update(entries).where(entries.c.entry_id == decision_id).values(columns))

    store(kept | unlike_made(orjson.loads(stored.body))[how])
    for kind in KINDS:
        answer = refused(caller.report(kind, decision_id, used="job-1"), 503, "SVC_STORAGE_UNAVAILABLE")
        assert answer["message"].endswith(". The operator must run `gate chain check`.")
        refused(caller.list(kind, decision_id), 503, "SVC_STORAGE_UNAVAILABLE")
    assert caller.size() == 1
    # Nothing of it is remembered.
    store(kept)
    for kind in KINDS:
        response = caller.report(kind, decision_id, used="job-1")
        assert response.status_code == 201
        report = response.get_json() if kind is not CRM_SYNCS else response.get_json()["crm_sync"]
        assert (report["decision_verdict"], report["decision_record_hash"]) == ("no", record["record_hash"])


def test_a_record_whose_facts_were_erased_is_still_reported_on(caller: Caller) -> None:
    record = caller.decide()
    left = {**record, "adapter_facts": None, "erased": {"members": ["adapter_facts", "evaluation", "input"]}}
    del left["audit_chain"]
    with caller.instance.ledger.store.write() as connection:
        of_decision = entries.c.entry_id == record["decision_id"]
        connection.execute(update(entries).where(of_decision).values(body=orjson.dumps(left)))
    assert caller.report(EXECUTIONS, record["decision_id"]).status_code == 201


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("added", [{"approved_by": "cfo"}, {"note": None}, {"integrity": {"checked": True}}], ids=str)
def test_a_stored_record_with_a_field_that_its_hash_does_not_cover_is_shown_to_nobody(
    caller: Caller, added: dict[str, Any]
) -> None:
    record = caller.decide()
    path = f"/api/decision/{record['decision_id']}"
    entry = caller.instance.ledger.entries.decision(caller.scope.scope_id, record["decision_id"])
    assert entry is not None
    body = orjson.loads(entry.body)
    told = {
        name: {**body.get(name, {}), **value} if isinstance(value, dict) else value for name, value in added.items()
    }
    headers = {"x-api-key": caller.key}
    scenario = {"scenario_id": "as_it_was", "label": "As it was", "context_patch": {}}

    def answers() -> list[TestResponse]:
        return [
            *(caller.client.get(f"{path}{query}", headers=headers) for query in ("", "?view=minimal", "/verify")),
            caller.client.get(f"{path}/packet", headers=headers),
            caller.client.get("/api/decisions?limit=1", headers=headers),
            *(caller.client.post(f"{path}/{verb}", headers=headers, json={}) for verb in ("replay", "diff", "verify")),
            caller.client.post(f"{path}/verify", headers=headers, json={"record": record}),
            caller.client.post(f"{path}/counterfactuals", headers=headers, json={"scenarios": [scenario]}),
            *(caller.list(kind, record["decision_id"]) for kind in KINDS),
        ]

    def store(columns: dict[str, Any]) -> None:
        of_decision = entries.c.entry_id == record["decision_id"]
        with caller.instance.ledger.store.write() as connection:
            connection.execute(update(entries).where(of_decision).values(columns))

    store({"body": orjson.dumps({**body, **told})})
    for answer in answers():
        told_of = refused(answer, 503, "SVC_STORAGE_UNAVAILABLE")
        assert "gate chain check" in told_of["message"]
    store({"body": entry.body})
    assert [answer.status_code for answer in answers() if answer.status_code != 200] == []


@pytest.mark.parametrize(
    "change",
    [
        {"verdict": "no", "c": "no"},
        {"verdict": "no"},
        {"c": "no"},
        {"reason_code": "OTHER"},
        {"evaluation": {"matched": False}},
        {"erased": None},
        {"action_binding": None},
        {"evidence_manifest": None},
    ],
    ids=str,
)
def test_a_stored_record_that_was_changed_is_not_shown(caller: Caller, change: dict[str, Any]) -> None:
    record = caller.decide()
    entry = caller.instance.ledger.entries.decision(caller.scope.scope_id, record["decision_id"])
    assert entry is not None
    with caller.instance.ledger.store.write() as connection:
        changed = orjson.dumps({**orjson.loads(entry.body), **change})
        connection.execute(update(entries).where(entries.c.entry_id == record["decision_id"]).values(body=changed))
    for path in (f"/api/decision/{record['decision_id']}", "/api/decisions?limit=1"):
        response = caller.client.get(path, headers={"x-api-key": caller.key})
        assert (response.status_code, "verdict" in response.get_json()) == (503, False), path


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_stored_report_with_a_field_that_its_hash_does_not_cover_is_shown_to_nobody(
    caller: Caller, kind: Kind
) -> None:
    record = caller.decide()
    report = caller.report(kind, record["decision_id"], used="job-1").get_json()
    report = report["crm_sync"] if kind is CRM_SYNCS else report
    with caller.instance.ledger.store.write() as connection:
        of_report = entries.c.entry_id == report[kind.id_member]
        changed = orjson.dumps({**report, "approved_by": "cfo"})
        connection.execute(update(entries).where(of_report).values(body=changed))
    packet = f"/api/decision/{record['decision_id']}/packet"
    answers = [caller.list(kind, record["decision_id"]), caller.report(kind, record["decision_id"], used="job-1")]
    if kind is not CRM_SYNCS:
        answers.append(caller.client.get(packet, headers={"x-api-key": caller.key}))
    for answer in answers:
        assert "approved_by" in refused(answer, 503, "SVC_STORAGE_UNAVAILABLE")["message"]
