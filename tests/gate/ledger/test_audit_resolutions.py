"""The audit of resolutions: a change to any member of one, and a resolution that nobody could have made, are found.

The chain has no key: whoever can write the database recomputes every link. So a forger here does that as well, and what
finds the change is the signature, the decision, or the row of the review.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
from sqlalchemy import Row, delete, insert, select, update

from gate.clock import new_id, utc_now
from gate.decisions.erasure import erase
from gate.decisions.reviews.resolutions import Resolutions
from gate.ids import timestamp
from gate.instance.audit import Finding, chains, check_chain, check_chains
from gate.instance.instance import Instance
from gate.ledger.access.authority import Authority, Scope
from gate.ledger.access.users import User
from gate.ledger.chain import writer
from gate.ledger.chain.reviews import Terms
from gate.ledger.chain.writer import NewEntry
from gate.ledger.packing import pack, unpack
from gate.ledger.reads import audited
from gate.ledger.tables import chain_heads, claims, decisions, entries, reviews
from gate.proof import chain
from gate.proof.signing import Ed25519Signer, HmacSigner, Signer
from gate.records.record import Signers
from gate.records.reports.receipts import EXECUTIONS, NOT_APPROVED, report_hash
from gate.records.reports.resolution import RESOLUTIONS, Resolving, build_resolution, resolution_link, signed_payload
from gate.verify import Trust
from tests.gate.ledger.test_audit import OTHER_JSON, changed, found, on_one_database, row_at, rows
from tests.gate.ledger.test_audit_attacks import requires
from tests.support.samples import GRANT, HELD, sample_request
from tests.support.torture import size

EXECUTED, REFUSED, EXPIRED, WAITING, GRANTED, YES, NO = range(1, 8)
TOO_EARLY, GRANT_OF_KEY, REFUSAL, EXPIRY, GRANT_OF_USER = range(8, 13)
QUEUED, DONE, DESPITE, UNASKED, FAILED = range(13, 18)
SIZE = FAILED
PLACES = {
    "grant": GRANT_OF_KEY,
    "refusal": REFUSAL,
    "expiry": EXPIRY,
    "grant of a user": GRANT_OF_USER,
    "executed": EXECUTED,
    "refused": REFUSED,
    "expired": EXPIRED,
    "held": WAITING,
    "granted": GRANTED,
}
"""The positions of the chain, by what cases call them."""

CASES = json.loads((Path(__file__).parents[2] / "cases" / "resolution_forgeries.json").read_text())
FOREIGN = Ed25519Signer("receipt_foreign", b"f" * 32)


@dataclass
class Held:
    """A chain with held decisions of every state.

    Attributes:
        instance: The instance.
        scope: The scope.
        owner: A key that may resolve.
        caller: A key that decides and reports.
        ids: The ids of the decisions, from position 1.
    """

    instance: Instance
    scope: Scope
    owner: Authority
    caller: Authority
    ids: list[str]

    def decide(self, **inputs: Any) -> str:
        """Decides, by default so that the action is held; the decision's id."""
        request = sample_request(**(inputs or HELD))
        self.ids.append(self.instance.gate().decide(self.caller, request, request_id="r").record["decision_id"])
        return self.ids[-1]

    def report(self, position: int, status: str) -> Any:
        """A receipt of the decision at a position."""
        lifecycle = self.instance.lifecycle()
        return lifecycle.report(self.caller, EXECUTIONS, self.ids[position - 1], {"execution_status": status}).report

    def record(self, position: int) -> Any:
        """The stored record of the decision at a position."""
        return orjson.loads(unpack(row_at(self.instance, position).body))

    def append(self, record: Any, answer: Any, signer: Signer | None, **linked: Any) -> int:
        """Appends a resolution past everything that the service asks before it makes one; its position."""
        now = utc_now()
        expires_at = timestamp(now + timedelta(hours=1)) if answer == "granted" else None
        resolving = Resolving(answer, {"type": "key", "id": "k"}, timestamp(now), expires_at, GRANT)
        made = build_resolution(record, resolving, new_id("res", now), signer)
        link = resolution_link(made, record)._replace(**linked)
        entry = NewEntry(self.scope.scope_id, made["resolution_entry_id"], link, orjson.dumps(made))
        appended: Any = self.instance.ledger.entries.append(entry)
        return int(appended.link["chain_position"])

    def found(self) -> Finding | None:
        """What the audit finds."""
        return found(self.instance, self.scope)


@pytest.fixture
def held(instance: Instance, authority: Authority, scope: Scope) -> Held:
    """Held decisions that are executed, refused, expired, held and granted, a yes and a no, and reports about them."""
    directory = instance.ledger.directory
    owner = directory.authenticate(directory.create_key(scope, {"resolve"}, None, utc_now())[0], utc_now())
    made = Held(instance, scope, owner, authority, [])
    owners, resolutions = instance.ledger.review_owners, instance.resolutions()
    for position in (EXECUTED, REFUSED, EXPIRED, WAITING, GRANTED):
        if position == EXPIRED:
            owners.set(scope, "", "", Terms("risk-desk", 3_600, 7_200), utc_now())
        made.decide()
        if position == EXPIRED:
            owners.remove(scope, "", "", utc_now())
    made.decide(discount_percent=10, margin_percent=22)
    made.decide(discount_percent=10, margin_percent=3)
    assert made.report(EXECUTED, "executed")["flags"] == [NOT_APPROVED]
    resolutions.resolve(owner, made.ids[EXECUTED - 1], GRANT, idempotency_key="grant-1")
    refusal = {"resolution": "refused", "resolved_by": "Maya", "note": "Too much."}
    resolutions.resolve(owner, made.ids[REFUSED - 1], refusal)
    late = instance.resolutions(lambda: utc_now() + timedelta(hours=2))
    assert late.expire_due(lambda review, error: pytest.fail(str(error))) == 1
    approver = User("usr_1", "ada", {scope.scope_id: "approver"}, {}, "", None, None, None, 0)
    resolutions.resolve_as(approver, scope, made.ids[GRANTED - 1], "granted")
    assert made.report(EXECUTED, "queued")["flags"] == []
    assert made.report(EXECUTED, "executed")["flags"] == []
    assert made.report(REFUSED, "executed")["flags"] == [NOT_APPROVED]
    assert made.report(WAITING, "executed")["flags"] == [NOT_APPROVED]
    assert made.report(GRANTED, "failed")["flags"] == []
    return made


def relink(instance: Instance, scope: Scope) -> None:
    """Recomputes every link of a chain from what its entries say, and its head."""
    head = chain.Head(scope.chain_id)
    with instance.ledger.store.write() as connection:
        for row in connection.execute(select(entries).order_by(entries.c.position)):
            link = chain.append(head, chain.Entry(*(getattr(row, name) for name in chain.Entry._fields)))
            made = {name: link[name] for name in ("leaf_hash", "merkle_root", "link_hash")}
            connection.execute(update(entries).where(entries.c.position == row.position).values(made))
            head = chain.head_of(link)
        moved = {"chain_size": head.size, "merkle_root": head.merkle_root, "link_hash": head.link_hash}
        connection.execute(update(chain_heads).where(chain_heads.c.scope_id == scope.scope_id).values(moved))


def forge(held: Held, position: int, document: Any, *, rehashed: bool, signer: Signer | None = None) -> None:
    """Puts another resolution in the place of one; its forger recomputes its hash and every link, and may sign it."""
    values: dict[str, Any] = {}
    if rehashed:
        document["resolution_hash"] = report_hash(RESOLUTIONS, document)
        values = {"record_hash": document["resolution_hash"], "created_at": document.get("recorded_at", "")}
    if signer is not None:
        document |= {"key_id": signer.key_id, "signature": signer.sign(signed_payload(document, signer.key_id))}
    values["body"] = pack(orjson.dumps(document))
    with held.instance.ledger.store.write() as connection:
        connection.execute(update(entries).where(entries.c.position == position).values(values))
    if rehashed:
        relink(held.instance, held.scope)


def rearrange(held: Held, order: Sequence[int]) -> None:
    """Gives the entries of a chain another order, drops those that are not named, and lets everything follow."""
    instance, at = held.instance, {old: new for new, old in enumerate(order, start=1)}
    kept = {table: rows(instance, table) for table in (entries, decisions, claims, reviews)}
    with instance.ledger.store.write() as connection:
        for table, of in kept.items():
            connection.execute(delete(table))
            for row in of:
                if row.position in at:
                    connection.execute(insert(table), _moved(row, at))
    relink(instance, held.scope)


def _moved(row: Row[Any], at: dict[int, int]) -> dict[str, Any]:
    moved = {**row._mapping, "position": at[row.position]}
    named = moved.get("resolved_position")
    if named is not None:
        gone = {"state": "held", "resolved_position": None, "resolved_at": None}
        moved |= {"resolved_position": at[named]} if named in at else gone
    return moved


def test_a_chain_with_reviews_of_every_state_is_whole(held: Held) -> None:
    assert check_chain(held.instance, held.scope.scope_id) == (SIZE, None)
    states = {row.position: (row.state, row.resolved_position) for row in rows(held.instance, reviews)}
    assert states == {
        EXECUTED: ("executed", GRANT_OF_KEY),
        REFUSED: ("refused", REFUSAL),
        EXPIRED: ("expired", EXPIRY),
        WAITING: ("held", None),
        GRANTED: ("granted", GRANT_OF_USER),
    }
    relink(held.instance, held.scope)
    assert held.found() is None


@on_one_database
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"])
def test_a_forged_resolution_is_found(held: Held, case: dict[str, Any]) -> None:
    position = PLACES[case["entry"]]
    document = {**orjson.loads(unpack(row_at(held.instance, position).body)), **case.get("set", {})}
    document = {name: value for name, value in document.items() if name not in case.get("remove", ())}
    own = held.instance.signers().receipt
    assert isinstance(own, Ed25519Signer)
    signers: dict[str, Signer] = {
        "another key": FOREIGN,
        "another key under the name of the own": Ed25519Signer(own.key_id, b"f" * 32),
        "the own key": own,
    }
    signer = signers[case["signed"]] if "signed" in case else None
    forge(held, position, document, rehashed=case["rehashed"], signer=signer)
    requires(held.found(), "entries", position, case["told"])


@on_one_database
@pytest.mark.heavy
@pytest.mark.parametrize("position", [GRANT_OF_KEY, REFUSAL, EXPIRY, GRANT_OF_USER])
def test_a_change_to_any_member_of_a_resolution_is_found(held: Held, position: int) -> None:
    """With its hash and every link recomputed: then its signature is of another resolution."""
    stored = orjson.loads(unpack(row_at(held.instance, position).body))
    missed, tried = [], 0
    for at, name in enumerate(sorted({*RESOLUTIONS.hashed, *RESOLUTIONS.beside, "audit_chain", "x"})):
        for number, value in enumerate([*OTHER_JSON, 7, {"type": "key", "id": "k"}, "2030-01-01T00:00:00.000Z"]):
            if value == stored.get(name) or (value is None and name not in stored and (at + number) % 2):
                continue
            if (at + number) % size(3, 1):
                continue
            tried += 1
            forge(held, position, {**stored, name: value}, rehashed=True)
            finding = held.found()
            if finding is None or (finding.table, finding.position) != ("entries", position):
                missed.append((name, value, finding))
    assert missed == []
    assert tried > 40
    forge(held, position, dict(stored), rehashed=True)
    assert held.found() is None


def test_a_grant_by_the_own_key_of_what_was_never_held_is_found(held: Held) -> None:
    for position in (YES, NO):
        at = held.append(held.record(position), "granted", held.instance.signers().receipt)
        requires(held.found(), "entries", at, "was never held")
        rearrange(held, range(1, at))
    at = held.append({**held.record(WAITING), "decision_id": "dec_0"}, "granted", held.instance.signers().receipt)
    requires(held.found(), "entries", at, "does not come before it in the chain")


@on_one_database
@pytest.mark.parametrize(
    ("signer", "told"),
    [(None, "without a signature"), (FOREIGN, "not a receipt key of this instance")],
    ids=["none", "other"],
)
def test_a_grant_that_the_instance_did_not_sign_is_found(held: Held, signer: Signer | None, told: str) -> None:
    """It stands in the chain, with its row and every hash, and nothing but its signature is wrong."""
    at = held.append(held.record(WAITING), "granted", signer)
    _resolve_row(held, at)
    requires(held.found(), "entries", at, told)


def _resolve_row(held: Held, at: int, state: str = "granted", position: int = WAITING) -> None:
    """Lets the row of a review name a resolution."""
    values = {"state": state, "resolved_position": at, "resolved_at": row_at(held.instance, at).created_at}
    with held.instance.ledger.store.write() as connection:
        connection.execute(update(reviews).where(reviews.c.position == position).values(values))


def test_a_resolution_that_its_row_names_is_whole(held: Held) -> None:
    """So that the cases beside this one fail for nothing else."""
    at = held.append(held.record(WAITING), "granted", held.instance.signers().receipt)
    _resolve_row(held, at)
    assert held.found() is None


@on_one_database
@pytest.mark.parametrize("named", ["first", "second"])
@pytest.mark.parametrize("position", [EXECUTED, REFUSED, EXPIRED, GRANTED])
def test_a_second_resolution_is_found_whichever_of_them_the_row_names(held: Held, position: int, named: str) -> None:
    first = next(row.resolved_position for row in rows(held.instance, reviews) if row.position == position)
    second = held.append(held.record(position), "granted", held.instance.signers().receipt)
    if named == "second":
        _resolve_row(held, second, position=position)
    other = second if named == "second" else first
    wrong = first if named == "second" else second
    requires(held.found(), "entries", wrong, f"another resolution at position {other}", "is final")


@on_one_database
def test_a_grant_under_another_policy_of_its_link_is_found(held: Held) -> None:
    at = held.append(held.record(WAITING), "granted", held.instance.signers().receipt, policy_version="2031-01-01")
    _resolve_row(held, at)
    requires(held.found(), "entries", at, "link does not match the stored resolution")


@on_one_database
def test_a_resolution_that_is_taken_out_is_missed_by_the_receipts_behind_it(held: Held) -> None:
    """Everything else follows: later entries move up, links are recomputed, and the row is held again."""
    order = [position for position in range(1, SIZE + 1) if position != GRANT_OF_KEY]
    rearrange(held, order)
    requires(held.found(), "entries", QUEUED - 1, "execution", "flags")


@on_one_database
def test_a_grant_that_moves_behind_a_receipt_is_missed_by_it(held: Held) -> None:
    order = [position for position in range(1, SIZE + 1) if position != GRANT_OF_KEY]
    order.insert(order.index(QUEUED) + 1, GRANT_OF_KEY)
    rearrange(held, order)
    requires(held.found(), "entries", QUEUED - 1, "flags")


@on_one_database
def test_a_grant_that_moves_before_an_earlier_receipt_makes_its_flag_wrong(held: Held) -> None:
    order = [position for position in range(1, SIZE + 1) if position != GRANT_OF_KEY]
    order.insert(order.index(TOO_EARLY), GRANT_OF_KEY)
    rearrange(held, order)
    requires(held.found(), "entries", TOO_EARLY + 1, "flags")


@on_one_database
def test_a_resolution_that_moves_before_its_decision_is_found(held: Held) -> None:
    order = [position for position in range(1, SIZE + 1) if position != GRANT_OF_USER]
    order.insert(order.index(GRANTED), GRANT_OF_USER)
    rearrange(held, order)
    requires(held.found(), "entries", GRANTED, "does not come before it in the chain")


def test_an_entry_of_a_resolution_that_is_gone_is_found(held: Held) -> None:
    """At its decision, whose row names it."""
    for row in rows(held.instance, reviews):
        if row.resolved_position is not None:
            with changed(held.instance, entries, row_at(held.instance, row.resolved_position), None):
                told = f"a different entry, at position {row.resolved_position}"
                requires(held.found(), "reviews", row.position, told)
    assert held.found() is None


def test_an_erased_decision_is_whole_with_its_resolution_and_can_still_be_resolved(held: Held) -> None:
    for position in (EXECUTED, WAITING):
        erase(held.instance.ledger, held.ids[position - 1], "asked for", utc_now())
    held.instance.resolutions().resolve(held.owner, held.ids[WAITING - 1], GRANT)
    assert held.report(WAITING, "executed")["flags"] == []
    assert check_chain(held.instance, held.scope.scope_id) == (SIZE + 4, None)


@on_one_database
@pytest.mark.parametrize("name", ["request", "confidence"])
def test_what_no_resolution_has_is_found(held: Held, name: str) -> None:
    with changed(held.instance, entries, row_at(held.instance, GRANT_OF_KEY), {name: b"{}"}):
        requires(held.found(), "entries", GRANT_OF_KEY, "which entries of this type do not have")


@on_one_database
def test_the_idempotency_key_of_a_resolution_stands_for_it_alone(held: Held) -> None:
    (row,) = rows(held.instance, claims)
    assert row.position == GRANT_OF_KEY
    for values in (None, {"position": REFUSAL}, {"input_hash": "0" * 64}, {"claim": bytes(32)}):
        with changed(held.instance, claims, row, values):
            requires(held.found(), "claims", GRANT_OF_KEY, "idempotency key")


class TestKeys:
    """The state of a key is no matter of the chain; that it made the signature is."""

    def test_a_key_that_was_compromised_or_retired_since_made_the_signature(self, held: Held) -> None:
        keys = held.instance.receipt_keys
        signed = orjson.loads(unpack(row_at(held.instance, GRANT_OF_KEY).body))["key_id"]
        keys.rotate(utc_now())
        assert keys.registry().active_key_id != signed
        assert held.found() is None
        keys.compromise(signed, utc_now() - timedelta(days=1), utc_now())
        assert held.found() is None

    def test_without_signing_a_refusal_and_an_expiry_have_no_signature(self, held: Held) -> None:
        signers = Signers(receipt=None, registry=held.instance.signers().registry)
        unsigned = Resolutions(held.instance.ledger, lambda: (signers, utc_now()), utc_now)
        for position in (held.decide(), held.decide()):
            unsigned.resolve(held.owner, position, {"resolution": "refused", "resolved_by": "Maya"})
        assert "signature" not in orjson.loads(unpack(row_at(held.instance, SIZE + 3).body))
        assert held.found() is None

    @pytest.mark.parametrize(
        ("trusted", "told"),
        [
            (HmacSigner("hmac_1", b"s" * 32), None),
            (HmacSigner("hmac_1", b"t" * 32), "signature does not verify with its key"),
            # Nothing keeps past secrets, so that nobody can tell.
            (HmacSigner("hmac_2", b"t" * 32), None),
            (None, None),
        ],
        ids=["the secret", "another secret of that name", "a later secret", "no secret"],
    )
    def test_a_signature_by_a_secret_is_checked_where_the_secret_is_there(
        self, held: Held, monkeypatch: pytest.MonkeyPatch, trusted: HmacSigner | None, told: str | None
    ) -> None:
        at = held.append(held.record(WAITING), "granted", HmacSigner("hmac_1", b"s" * 32))
        _resolve_row(held, at)
        trust = held.instance.trust()
        if trusted is not None:
            trust = replace(trust, hmac_secret=trusted.secret, hmac_key_id=trusted.key_id)
        monkeypatch.setattr(Instance, "trust", lambda _: trust)
        if told is None:
            assert held.found() is None
        else:
            requires(held.found(), "entries", at, told)

    def test_no_other_algorithm_is_taken_for_a_signature(self, held: Held) -> None:
        stored = orjson.loads(unpack(row_at(held.instance, GRANT_OF_KEY).body))
        forge(held, GRANT_OF_KEY, {**stored, "signature": "none:"}, rehashed=False)
        requires(held.found(), "entries", GRANT_OF_KEY, "signature does not verify with its key")
        assert isinstance(held.instance.trust(), Trust)


@on_one_database
@pytest.mark.parametrize("planted", [False, True], ids=["protected", "planted"])
def test_two_approvers_at_once_without_the_question_whether_it_is_held_are_found(
    held: Held, monkeypatch: pytest.MonkeyPatch, planted: bool
) -> None:
    """The second resolves between the first one's look at the review and its append."""
    resolutions, decision_id = held.instance.resolutions(), held.ids[WAITING - 1]
    if planted:
        monkeypatch.setattr(writer, "_stands", lambda entry, review: True)
    made, waiting = resolutions._made, [GRANT]

    def and_then(*arguments: Any) -> Any:
        answer = made(*arguments)
        if waiting:
            held.instance.resolutions().resolve(held.owner, decision_id, waiting.pop())
        return answer

    monkeypatch.setattr(resolutions, "_made", and_then)
    refusal = {"resolution": "refused", "resolved_by": "Ben"}
    if planted:
        resolutions.resolve(held.owner, decision_id, refusal)
        requires(held.found(), "entries", SIZE + 1, "another resolution", "is final")
        return
    with pytest.raises(Exception, match="a resolution is final"):
        resolutions.resolve(held.owner, decision_id, refusal)
    assert check_chain(held.instance, held.scope.scope_id) == (SIZE + 1, None)


@on_one_database
@pytest.mark.parametrize(("stretch", "page"), [(1, 1), (3, 2), (5, 256)])
def test_stretches_and_pages_of_any_size_find_the_same(
    held: Held, monkeypatch: pytest.MonkeyPatch, stretch: int, page: int
) -> None:
    monkeypatch.setattr(chains, "_STRETCH", stretch)
    monkeypatch.setattr(audited, "STRETCH", page)
    monkeypatch.setattr("gate.instance.audit.stretch._HELD_BYTES", 1)
    assert check_chain(held.instance, held.scope.scope_id) == (SIZE, None)
    at = held.append(held.record(REFUSED), "granted", held.instance.signers().receipt)
    requires(held.found(), "entries", at, f"another resolution at position {REFUSAL}")
    rearrange(held, range(1, at))
    stored = orjson.loads(unpack(row_at(held.instance, GRANT_OF_USER).body))
    forge(held, GRANT_OF_USER, {**stored, "note": "x"}, rehashed=True)
    requires(held.found(), "entries", GRANT_OF_USER, "signature")


@on_one_database
@pytest.mark.heavy
def test_several_processes_find_the_same_as_one(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chains, "_STRETCH", 4)
    for position in (None, REFUSAL):
        if position is not None:
            stored = orjson.loads(unpack(row_at(held.instance, position).body))
            forge(held, position, {**stored, "note": "x"}, rehashed=True)
        (in_two,), (in_one,) = (
            check_chains(held.instance, [held.scope.scope_id], processes=processes) for processes in (2, 1)
        )
        assert (in_two.entries, in_two.finding) == (in_one.entries, in_one.finding)
        assert (in_two.finding and in_two.finding.position) == position
