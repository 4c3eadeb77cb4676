"""What the service promises, as checks. Each raises `Broken` where its promise does not hold.

test_planted_faults.py takes one protection away at a time and shows that the check which guards it then fails. That
nothing is acknowledged before it is synced is checked, and planted, over a trace of system calls: see
`unsynced_acknowledgements` in end_to_end/test_syscalls.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import orjson
from sqlalchemy import select

from gate.decisions.decide import DecisionGate
from gate.errors import AccessForbidden, GateError, IdempotencyConflict
from gate.ledger import Ledger
from gate.ledger.access.authority import Authority, Scope
from gate.ledger.access.limits import Rate
from gate.ledger.packing import unpack
from gate.ledger.tables import claims, entries
from gate.proof import chain
from gate.verify import Trust, verify_record
from tests.independent import verifier


class Broken(AssertionError):
    """A promise does not hold."""


def no_fork_no_gap(ledger: Ledger, scope: Scope) -> None:
    """A scope's entries have the positions 1, 2, 3 and so on, each follows from the one before, and the head is the
    last of them.
    """
    with ledger.store.read() as connection:
        found = connection.execute(select(entries.c.position).where(entries.c.scope_id == scope.scope_id))
        positions = sorted(found.scalars())
    _require(positions == list(range(1, len(positions) + 1)), f"the positions are {positions}")
    links = [entry.link for entry in ledger.entries.walk(scope.scope_id, up_to=len(positions))]
    failures = verifier.link_failures(links)
    _require(not failures, f"the links do not hold: {failures}")
    _require({link["chain_id"] for link in links} <= {scope.chain_id}, "a link is another chain's")
    last = [links[-1][name] for name in ("merkle_root", "link_hash")] if links else [None, None]
    head = ledger.entries.head(scope.scope_id)
    _require([head.size, head.merkle_root, head.link_hash] == [len(links), *last], f"the head is {head}")


def one_record_a_key(ledger: Ledger, scope: Scope) -> None:
    """No two records of a scope were made with one idempotency key, nor two reports of one kind about one decision, and
    each key is claimed by its record or report alone.
    """
    with ledger.store.read() as connection:
        rows = connection.execute(select(entries).where(entries.c.scope_id == scope.scope_id)).all()
        claimed = connection.execute(select(claims.c.position).where(claims.c.scope_id == scope.scope_id))
        positions = sorted(claimed.scalars())
    keys = {row.position: orjson.loads(unpack(row.body)).get("idempotency_key") for row in rows}
    keyed = [row for row in rows if keys[row.position] is not None]
    # Decisions share their keys; reports have some for each decision and kind.
    about = {row.position: "" if row.entry_type == "decision" else row.decision_id for row in keyed}
    made = Counter((row.entry_type, about[row.position], keys[row.position]) for row in keyed)
    _require(set(made.values()) <= {1}, f"records by key: {made}")
    _require(positions == sorted(about), f"claims by {positions}")


def acknowledged_is_kept(ledger: Ledger, scope: Scope, acknowledged: Iterable[Mapping[str, Any]]) -> None:
    """Every record that was answered is in the ledger, as it was answered."""
    for record in acknowledged:
        entry = ledger.entries.decision(scope.scope_id, record["decision_id"])
        _require(entry is not None, f"{record['decision_id']} is missing")
        if entry is not None:
            stored = orjson.loads(entry.body)
            _require({**stored, "audit_chain": record["audit_chain"]} == record, f"{entry.entry_id} is another record")


def reported_is_kept(ledger: Ledger, scope: Scope, acknowledged: Iterable[Mapping[str, Any]]) -> None:
    """Every report that was answered is in the ledger, as it was answered, at the place in the chain that it names."""
    for answer in acknowledged:
        report = answer.get("crm_sync", answer)
        place = report["audit_chain"]
        entry = ledger.entries.at(scope.scope_id, place["chain_position"])
        _require(entry is not None, f"position {place['chain_position']} is missing")
        if entry is not None:
            stored = {**orjson.loads(entry.body), "audit_chain": chain.record_link(entry.link)}
            _require(stored == report, f"{entry.entry_id} is another report")


def conflicts_on_other_payload(gate: DecisionGate, authority: Authority, used_key: str, other: dict[str, Any]) -> None:
    """An idempotency key that was used with one payload answers another with a conflict."""
    try:
        answered = gate.decide(authority, other, request_id="req_other", idempotency_key=used_key)
    except IdempotencyConflict:
        return
    raise Broken(f"another payload was answered: {answered.status}")


def revoked_key_decides_nothing(gate: DecisionGate, revoked: Authority, request: dict[str, Any]) -> None:
    """Nothing is decided for a key that was disabled after it was recognized."""
    try:
        gate.decide(revoked, request, request_id="req_revoked")
    except AccessForbidden:
        return
    raise Broken("a revoked key decided")


def no_more_records_than(cap: int, ledger: Ledger, scope: Scope, month: str) -> None:
    """A scope has no more records in a month than its cap."""
    with ledger.store.read() as connection:
        dates = connection.execute(select(entries.c.created_at).where(entries.c.scope_id == scope.scope_id)).scalars()
        made = sum(date.startswith(month) for date in dates)
    _require(made <= cap, f"{made} records where {cap} are allowed")


def no_more_requests_than(limit: int, rates: Iterable[Rate | GateError]) -> None:
    """No more requests are admitted in a window than its limit."""
    admitted = sum(isinstance(rate, Rate) and rate.admitted for rate in rates)
    _require(admitted <= limit, f"{admitted} requests where {limit} are allowed")


def nobody_is_refused(outcomes: Iterable[object]) -> None:
    """What was asked was done, and failed nowhere."""
    refused = [outcome for outcome in outcomes if isinstance(outcome, GateError)]
    _require(not refused, f"refused: {refused}")


def nothing_unsigned_verifies(signed: dict[str, Any], forged: Mapping[str, dict[str, Any]], trust: Trust) -> None:
    """A signed record verifies, and none of those does that are not signed by the keys that they name."""
    _require(verify_record(signed, trust).verified, "the signed record does not verify")
    for name, record in forged.items():
        _require(not verify_record(record, trust).verified, f"a record verifies: {name}")


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Broken(otherwise)
