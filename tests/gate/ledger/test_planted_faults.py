"""Checks that can fail: one protection is taken away at a time, and the check that guards its promise notices.

Every test runs twice, with the protection and without it. No test hopes for an unlucky moment: what has to happen
between two steps of an append happens there, by another opening of the same ledger, as another process would do it.

That an acknowledgement without a sync is noticed is shown in end_to_end/test_syscalls.py.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial, partialmethod
from typing import Any

import pytest
from sqlalchemy import Dialect, text

from gate.clock import utc_now
from gate.decisions.claims import Used
from gate.decisions.decide import DecisionGate
from gate.errors import GateError, ServiceUnavailable
from gate.instance.instance import Instance
from gate.ledger import Ledger, open_ledger
from gate.ledger.access import limits
from gate.ledger.access.authority import Authority, Scope
from gate.ledger.access.limits import RateLimiter, open_limits
from gate.ledger.chain import writer
from gate.ledger.chain.entries import Entries
from gate.ledger.chain.group_commit import GroupCommit, Take
from gate.ledger.chain.writer import Appended, AppendResult, NewEntry, Writer
from gate.ledger.stores import postgres, sqlite
from gate.ledger.stores.sqlite import SqliteLedgerStore, _SqliteTransaction
from gate.ledger.stores.store import Row, Statement, Transaction
from gate.proof import chain
from gate.proof.signing import Ed25519Signer
from gate.records.record import Signers
from gate.records.reports.receipts import KINDS, Kind
from gate.verify import Verification
from gate.verify.receipt import check_receipt
from tests.support.entries import entry
from tests.support.faults import keyless, refused
from tests.support.postgres import database_of
from tests.support.promises import (
    Broken,
    acknowledged_is_kept,
    conflicts_on_other_payload,
    no_fork_no_gap,
    no_more_records_than,
    no_more_requests_than,
    nobody_is_refused,
    nothing_unsigned_verifies,
    one_record_a_key,
    reported_is_kept,
    revoked_key_decides_nothing,
)
from tests.support.samples import (
    NOW,
    RECEIPT_SIGNER,
    REGISTRY_SIGNER,
    REPORTS,
    SIGNERS,
    TRUST,
    LimitClock,
    ledger_url,
    make_record,
    sample_request,
)

JUNE = "2026-06"


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> Iterator[str | None]:
    """Where the ledger is; tests that share a database have scopes of their own."""
    with database_of(request) as url:
        yield url


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who has to wait for a lock is soon told so."""
    monkeypatch.setattr(sqlite, "WRITE_TIMEOUT", 0.05)
    monkeypatch.setitem(postgres._SESSION, "lock_timeout", 50)


@pytest.fixture(params=[False, True], ids=["protected", "planted"])
def planted(request: pytest.FixtureRequest) -> bool:
    """Whether the protection is taken away."""
    return bool(request.param)


@pytest.fixture
def scope(ledger: Ledger) -> Scope:
    """A scope without limits."""
    return new_scope(ledger)


@pytest.fixture
def other(ledger: Ledger) -> Iterator[Ledger]:
    """The same ledger, opened as by another process."""
    opened = open_ledger(ledger_url(ledger))
    yield opened
    opened.close()


def new_scope(ledger: Ledger, plan: str = "unlimited", cap: int | None = None) -> Scope:
    return ledger.directory.create_scope(f"scope-{secrets.token_hex(4)}", plan, NOW, monthly_cap=cap)


def noticed_if(planted: bool, what: str) -> AbstractContextManager[object]:
    """Expects a check to notice a planted fault, and to hold otherwise."""
    return pytest.raises(Broken, match=what) if planted else nullcontext()


def attempt(work: Callable[..., Any], *arguments: Any) -> Any:
    """What some work answers, or the error that it ends in."""
    try:
        return work(*arguments)
    except GateError as error:
        return error


@contextmanager
def once_after(owner: object, name: str, meanwhile: Callable[[], object]) -> Iterator[None]:
    """Lets something else happen once, right after a function's first call has ended."""
    called, waiting = getattr(owner, name), [meanwhile]

    def and_then(*arguments: Any, **options: Any) -> Any:
        answer = called(*arguments, **options)
        if waiting:
            waiting.pop()()
        return answer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, and_then)
        yield
    assert not waiting, f"{name} was not called"


class Unlocking(Statement):
    """A statement that locks no row."""

    def on(self, dialect: Dialect) -> tuple[str, Callable[[Any], Any]]:
        """As the statement, without FOR UPDATE."""
        sql, parameters = super().on(dialect)
        assert sql.endswith(" FOR UPDATE")
        return sql.removesuffix(" FOR UPDATE"), parameters


class ReadingFirst(_SqliteTransaction):
    """Reads before the transaction that writes has begun."""

    def commit(self, writes: Sequence[tuple[Statement, Sequence[Any]]]) -> None:
        """Begins, writes and commits."""
        self._cursor.execute("BEGIN IMMEDIATE")
        super().commit(writes)


@contextmanager
def unlocked(store: SqliteLedgerStore, *, begin: bool) -> Iterator[Transaction]:
    """As SqliteLedgerStore._transaction, without the file lock; begun deferred, or begun only to write."""
    connection = store.engine.raw_connection()
    cursor = connection.cursor()
    try:
        with store._translated():
            if begin:
                cursor.execute("BEGIN DEFERRED")
            yield (_SqliteTransaction if begin else ReadingFirst)(cursor, store.engine.dialect)
    finally:
        cursor.close()
        connection.close()


def unlock_head(monkeypatch: pytest.MonkeyPatch, ledger: Ledger) -> None:
    """Appends read the head of their scope without holding it."""
    if isinstance(ledger.store, SqliteLedgerStore):
        monkeypatch.setattr(SqliteLedgerStore, "_transaction", partialmethod(unlocked, begin=False))
    else:
        monkeypatch.setattr(writer, "_LOCK_HEAD", Unlocking(writer._LOCK_HEAD._statement))


def appended_at_once(ledger: Ledger, other: Ledger, scope: Scope) -> list[Any]:
    """What two appends answer, of which the second comes after the first has read the head, and again if refused."""
    second: list[Any] = []
    with once_after(writer, "_look_up", lambda: second.append(attempt(other.entries.append, entry(scope.scope_id, 2)))):
        first = attempt(ledger.entries.append, entry(scope.scope_id, 1))
    if isinstance(second[0], GateError):
        second.append(other.entries.append(entry(scope.scope_id, 2)))
    return [first, second[-1]]


def test_a_head_that_nobody_holds_forks_the_chain(
    ledger: Ledger, other: Ledger, scope: Scope, monkeypatch: pytest.MonkeyPatch, planted: bool
) -> None:
    with keyless(ledger.store, "entries"):
        if planted:
            unlock_head(monkeypatch, ledger)
        nobody_is_refused(appended_at_once(ledger, other, scope))
        with noticed_if(planted, r"positions are \[1, 1\]"):
            no_fork_no_gap(ledger, scope)


def test_a_head_that_nobody_holds_fails_who_read_it_where_positions_are_unique(
    ledger: Ledger, other: Ledger, scope: Scope, monkeypatch: pytest.MonkeyPatch, planted: bool
) -> None:
    if planted:
        unlock_head(monkeypatch, ledger)
    with noticed_if(planted, "SVC_STORAGE_UNAVAILABLE"):
        nobody_is_refused(appended_at_once(ledger, other, scope))
    no_fork_no_gap(ledger, scope)


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_deferred_transaction_loses_its_turn_halfway(
    ledger: Ledger, other: Ledger, scope: Scope, monkeypatch: pytest.MonkeyPatch, planted: bool
) -> None:
    if planted:
        monkeypatch.setattr(SqliteLedgerStore, "_transaction", partialmethod(unlocked, begin=True))
    with noticed_if(planted, "database is locked"):
        nobody_is_refused(appended_at_once(ledger, other, scope))
    no_fork_no_gap(ledger, scope)


def blind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Appends find no key claimed."""
    look_up = writer._look_up

    def see_no_claim(*arguments: Any, **options: Any) -> tuple[Any, ...]:
        heads, _, *rest = look_up(*arguments, **options)
        return heads, {}, *rest

    monkeypatch.setattr(writer, "_look_up", see_no_claim)


def write(instance: Instance, authority: Authority, kind: Kind | None) -> Callable[[], object]:
    """Decides, or reports about a decision, always with one idempotency key."""
    gate, lifecycle = instance.gate(), instance.lifecycle()
    if kind is None:
        return lambda: gate.decide(authority, sample_request(), request_id="req_1", idempotency_key="order-1")
    decision_id = gate.decide(authority, sample_request(), request_id="req_1").record["decision_id"]
    return lambda: lifecycle.report(authority, kind, decision_id, REPORTS[kind.name], idempotency_key="order-1")


@pytest.mark.parametrize("kind", [None, *KINDS], ids=lambda kind: kind.name if kind else "decide")
@pytest.mark.parametrize("taken", ["nothing", "look-up", "uniqueness", "both"])
def test_a_key_that_is_claimed_twice_makes_two_records(
    instance: Instance,
    scope: Scope,
    authority: Authority,
    monkeypatch: pytest.MonkeyPatch,
    taken: str,
    kind: Kind | None,
) -> None:
    make, unique = write(instance, authority, kind), taken in ("nothing", "look-up")
    with nullcontext() if unique else keyless(instance.ledger.store, "claims"):
        if taken in ("look-up", "both"):
            blind(monkeypatch)
        for _ in range(2):
            with suppress(ServiceUnavailable):
                make()
        # Either of the two is enough; it takes both to break the promise.
        with noticed_if(taken == "both", r"'order-1'\): 2"):
            one_record_a_key(instance.ledger, scope)


def test_a_report_that_is_acknowledged_and_not_written_is_missed(
    instance: Instance, scope: Scope, authority: Authority, monkeypatch: pytest.MonkeyPatch, planted: bool
) -> None:
    kind, lifecycle = KINDS[0], instance.lifecycle()
    decision_id = instance.gate().decide(authority, sample_request(), request_id="req_1").record["decision_id"]
    with monkeypatch.context() as patch:
        if planted:
            head = instance.ledger.entries.head(scope.scope_id)
            patch.setattr(Entries, "append", lambda _, new: Appended(chain.append(head, new.link)))
        reported = lifecycle.report(authority, kind, decision_id, REPORTS[kind.name]).report
    with noticed_if(planted, "position 2 is missing"):
        reported_is_kept(instance.ledger, scope, [reported])


def test_a_replay_that_compares_no_payload_answers_another(
    instance: Instance, authority: Authority, monkeypatch: pytest.MonkeyPatch, planted: bool
) -> None:
    gate, replayed = instance.gate(), DecisionGate._replayed

    def trusting(gate: DecisionGate, authority: Authority, used: Used) -> Any:
        return replayed(gate, authority, replace(used, claim=used.claim._replace(input_hash=used.claimed.input_hash)))

    if planted:
        monkeypatch.setattr(DecisionGate, "_replayed", trusting)
    gate.decide(authority, sample_request(), request_id="req_1", idempotency_key="order-1")
    refused_facts = sample_request(discount_percent=10, margin_percent=2)
    with noticed_if(planted, "another payload was answered: replayed"):
        conflicts_on_other_payload(gate, authority, "order-1", refused_facts)


STRANGER = Ed25519Signer(REGISTRY_SIGNER.key_id, bytes(32))
SIGNED = make_record()
FORGED = {
    "unsigned": make_record(signers=SIGNERS._replace(receipt=None)),
    "signed by a stranger": SIGNED | {"receipt_signature": STRANGER.sign(b"receipt")},
    "attested by a stranger": make_record(signers=Signers(RECEIPT_SIGNER, STRANGER)),
}


def accept_unsigned(result: Verification, record: Any, *trust: Any) -> None:
    """As the check of the receipt, for a verifier that takes a missing signature for one that holds."""
    if "receipt_signature" in record:
        check_receipt(result, record, *trust)
    else:
        result.checks["receipt_signature"] = result.checks["receipt_key"] = True


# Who checks what makes one of the forged records fail, and what could stand in its place.
CARELESS: dict[str, tuple[str, Callable[..., Any]]] = {
    "unsigned": ("gate.verify.record.check_receipt", accept_unsigned),
    "signed by a stranger": ("gate.verify.signature.verify_ed25519", lambda *_: True),
    "attested by a stranger": ("gate.verify.attestations._verified", lambda *_: True),
}


@pytest.mark.parametrize("forged", FORGED)
def test_a_signature_that_is_not_checked_lets_a_forged_record_verify(
    monkeypatch: pytest.MonkeyPatch, forged: str, planted: bool
) -> None:
    if planted:
        monkeypatch.setattr(*CARELESS[forged])
    with noticed_if(planted, f"a record verifies: {forged}"):
        nothing_unsigned_verifies(SIGNED, FORGED, TRUST)


def test_an_append_that_asks_for_no_access_decides_for_a_revoked_key(
    instance: Instance, other: Ledger, authority: Authority, monkeypatch: pytest.MonkeyPatch, planted: bool
) -> None:
    gate, append = instance.gate(), Entries.append
    gate.decide(authority, sample_request(), request_id="req_1")
    if planted:
        monkeypatch.setattr(Entries, "append", lambda entries, new: append(entries, new._replace(access_epoch=None)))
    other.directory.disable_key(authority.key_id, utc_now())
    with noticed_if(planted, "a revoked key decided"):
        revoked_key_decides_nothing(gate, authority, sample_request())


def test_a_month_that_is_counted_outside_the_transaction_exceeds_its_cap(
    ledger: Ledger, other: Ledger, monkeypatch: pytest.MonkeyPatch, planted: bool
) -> None:
    scope = new_scope(ledger, "starter", 2)
    ledger.entries.append(entry(scope.scope_id, 0))
    second = partial(attempt, other.entries.append, entry(scope.scope_id, 2))
    if planted:
        counted = {(scope.scope_id, JUNE): ledger.entries.used(scope.scope_id, JUNE)}
        second()
        monkeypatch.setattr(writer, "_usage", lambda *_: counted)
        ledger.entries.append(entry(scope.scope_id, 1))
    else:
        with once_after(writer, "_usage", second):
            ledger.entries.append(entry(scope.scope_id, 1))
        second()
    with noticed_if(planted, "3 records where 2 are allowed"):
        no_more_records_than(2, ledger, scope, JUNE)


def test_a_window_that_nobody_holds_admits_too_many(
    instance: Instance, other: Ledger, limit_clock: LimitClock, monkeypatch: pytest.MonkeyPatch, planted: bool
) -> None:
    limiter, others = instance.limiter, open_limits(other.store)
    key_id = secrets.token_hex(4)
    rates = [limiter.admit("scope", key_id, 2)]

    def second() -> None:
        rates.append(attempt(others.admit, "scope", key_id, 2))

    if planted and isinstance(instance.ledger.store, SqliteLedgerStore):
        monkeypatch.setattr(SqliteLedgerStore, "_transaction", partialmethod(unlocked, begin=False))
    elif planted:
        monkeypatch.setattr(limits, "_LOCK_KEY", Statement(text("SELECT 1")))
    with once_after(RateLimiter, "_window", second):
        rates.append(limiter.admit("scope", key_id, 2))
    second()
    others.close()
    with noticed_if(planted, "3 requests where 2 are allowed"):
        no_more_requests_than(2, rates)


class Unwritten(Transaction):
    """Says that it has committed, and remembers what it has yet to write."""

    def __init__(self, transaction: Transaction) -> None:
        """Stands before a transaction."""
        self._transaction = transaction
        self.writes: Sequence[Any] = ()

    def ask(self, queries: Sequence[Any]) -> list[list[Row]]:
        """As the transaction."""
        return self._transaction.ask(queries)

    def commit(self, writes: Sequence[Any]) -> None:
        """Nothing, for now."""
        self.writes = writes


def answer_early(appends: Writer, take: Take[NewEntry]) -> Sequence[AppendResult | GateError]:
    """As Writer._commit, but the answers are made before the commit, whatever then comes of it."""
    answers: list[AppendResult] = []

    def work(transaction: Transaction, tried: bool) -> None:
        early = Unwritten(transaction)
        answers[:] = writer._write(early, take(), tried=tried)
        transaction.commit(early.writes)

    with suppress(ServiceUnavailable):
        appends._store.run(work)
    return answers


def test_an_answer_before_the_commit_is_of_a_record_that_may_be_missing(
    instance: Instance, scope: Scope, authority: Authority, monkeypatch: pytest.MonkeyPatch, planted: bool
) -> None:
    gate = instance.gate()
    if planted:
        appends = instance.ledger.entries._writer
        monkeypatch.setattr(appends, "_commits", GroupCommit(partial(answer_early, appends)))
    answered = []

    def ask(number: int) -> None:
        with suppress(ServiceUnavailable):
            answered.append(gate.decide(authority, sample_request(), request_id=f"req_{number}").record)

    ask(1)
    with refused(instance.ledger.store, "INSERT", "entries"):
        ask(2)
    ask(3)
    assert len(answered) == (3 if planted else 2)
    with noticed_if(planted, f"{answered[1]['decision_id']} is missing"):
        acknowledged_is_kept(instance.ledger, scope, answered)
