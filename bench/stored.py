"""Builds ledgers with many records of one scope fast. They are kept in `build/` for the next run, and used as copies.

The gate decides the first record. Each other record is a row with its own ids, date, and idempotency key, and its link
extends the chain. Its body is that of the first record with other ids, date, record hash, and receipt hash. So it has
the size and form of a real record, but its hashes and signatures do not match its content. The chain is still whole,
because it binds only the hashes.

The rows are inserted in the order of the service, so that the indexes have the same form.
"""

from __future__ import annotations

import hashlib
import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final

from sqlalchemy import bindparam, func, select
from sqlalchemy.dialects.sqlite import dialect

from api.cli.options import instance_at
from bench.disk import build_directory, scratch, write_out
from bench.measure import Mismatch
from bench.samples import ROOT, decide_request
from bench.subjects import SCOPE, count_records, sqlite_url
from gate.clock import new_id, utc_now
from gate.decisions.stored import found_by, is_link_of, stored_record
from gate.encoding.strict_json import parse
from gate.ids import timestamp
from gate.instance.instance import create_instance
from gate.ledger.access.authority import FULL_ACCESS
from gate.ledger.chain.writer import (
    _INSERT_CLAIM,
    _INSERT_DECISION,
    _INSERT_ENTRY,
    _MOVE_HEAD,
    Claim,
    Claimed,
    NewEntry,
    _claim_row,
    _decision_row,
    _entry_row,
    _head_row,
)
from gate.ledger.packing import pack
from gate.ledger.stores.store import Statement
from gate.ledger.tables import entries
from gate.proof.chain import Head, append, find_break, head_of, link_material

# What decides on the form of the rows: a ledger that was built with other sources is not taken.
_SOURCES: Final = ("bench/stored.py", "gate/proof/chain.py", "gate/records/record.py", "gate/ledger/*.py")
_ROWS_AT_ONCE: Final = 1000
_CHECKED_LINKS: Final = 1000
_KEY_FILE: Final = "bench.key"
# What breaks off is thrown away, so nothing has to survive it.
_PRAGMAS: Final = ("journal_mode=OFF", "synchronous=OFF", "cache_size=-1000000")


def stored_copy(records: int, home: Path) -> str:
    """Creates an instance with a number of records of the scope `SCOPE` in a new home.

    Returns:
        A key of the scope with full access.

    Raises:
        Mismatch: The built ledger is not whole.
    """
    kept = _kept(records)
    shutil.copytree(kept, home)
    write_out(kept / "ledger.db", forget=True)
    write_out(home / "ledger.db")
    return (home / _KEY_FILE).read_text()


def _kept(records: int) -> Path:
    """The home of an instance with so many records, built where none is kept; not to be written to."""
    made_from = hashlib.sha256(decide_request())
    for file in sorted(file for pattern in _SOURCES for file in ROOT.glob(pattern)):
        made_from.update(file.read_bytes())
    directory = build_directory() / "bench-ledgers"
    home = directory / f"{records}-{made_from.hexdigest()[:12]}"
    if not home.exists():
        directory.mkdir(exist_ok=True)
        for outdated in directory.glob(f"{records}-*"):
            shutil.rmtree(outdated)
        with scratch() as temporary:
            _build(temporary / "home", records)
            (temporary / "home").rename(home)
    return home


@dataclass(slots=True)
class _Chain:
    """A chain that grows by copies of its first record."""

    first: NewEntry
    head: Head

    def next_rows(self) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        """The rows of the next record: its entry, what it is searched by, and its claim."""
        now = utc_now()
        old, old_claim = self.first.link, self.first.claim
        assert old_claim is not None
        claim = old_claim._replace(key=_idempotency_key(self.head.size + 1))
        decision_id = new_id("dec", now)
        link_of = old._replace(
            decision_id=decision_id,
            record_hash=_digest("record", decision_id),
            receipt_hash=_digest("receipt", decision_id),
            created_at=timestamp(now),
        )
        body = self.first.body.replace(old_claim.key.encode(), claim.key.encode())
        for name in ("decision_id", "record_hash", "receipt_hash", "created_at"):
            body = body.replace(getattr(old, name).encode(), getattr(link_of, name).encode())
        entry = self.first._replace(entry_id=decision_id, link=link_of, body=pack(body), claim=claim)
        link = append(self.head, link_of, plain=True)
        self.head = head_of(link)
        claimed = Claimed(self.head.size, claim.input_hash)
        assert entry.decided is not None
        return (
            _entry_row(entry, link, None),
            _decision_row(entry, entry.decided, link),
            _claim_row(entry.scope_id, claim.stored_as(entry.scope_id), claimed),
        )


def _build(home: Path, records: int) -> None:
    create_instance(home, database_url=sqlite_url(home))
    chain = _begin(home)
    with closing(sqlite3.connect(home / "ledger.db", isolation_level=None)) as connection:
        for pragma in _PRAGMAS:
            connection.execute(f"PRAGMA {pragma}")
        connection.execute("BEGIN")
        rows = iter(chain.next_rows, None)
        for done in range(1, records, _ROWS_AT_ONCE):
            batch = list(islice(rows, min(_ROWS_AT_ONCE, records - done)))
            for statement, column in zip(
                (_INSERT_ENTRY, _INSERT_DECISION, _INSERT_CLAIM), zip(*batch, strict=True), strict=True
            ):
                _run(connection, statement, list(column))
        _run(connection, _MOVE_HEAD, [_head_row(chain.first.scope_id, chain.head)])
        connection.execute("COMMIT")
        connection.execute("PRAGMA journal_mode=WAL")
    write_out(home / "ledger.db")
    _check(home, records)


def _begin(home: Path) -> _Chain:
    """Makes the scope, its key and its first record."""
    with instance_at(home, sqlite_url(home)) as instance:
        directory, key = instance.ledger.directory, _idempotency_key(1)
        scope = directory.create_scope(SCOPE, "unlimited", utc_now())
        secret, _ = directory.create_key(scope, FULL_ACCESS, None, utc_now())
        (home / _KEY_FILE).write_text(secret)
        authority = directory.authenticate(secret, utc_now())
        request_id = new_id("req", utc_now())
        made = instance.gate().decide(authority, parse(decide_request()), request_id=request_id, idempotency_key=key)
        stored = instance.ledger.entries.decision(scope.scope_id, made.record["decision_id"])
        assert stored is not None
        assert stored.request is not None
        first = NewEntry(
            scope_id=scope.scope_id,
            entry_id=stored.entry_id,
            link=link_material(made.record),
            body=stored.body,
            request=pack(stored.request),
            claim=Claim("decide", "", key, made.record["input_hash"]),
            decided=found_by(made.record),
        )
        return _Chain(first, instance.ledger.entries.head(scope.scope_id))


def _check(home: Path, records: int) -> None:
    """Looks whether all are there, and the first and the last links whole; a full audit would take too long."""
    with instance_at(home, sqlite_url(home)) as instance:
        scope_id = instance.ledger.directory.scope(SCOPE).scope_id
        first = instance.ledger.entries.walk(scope_id, up_to=min(records, _CHECKED_LINKS))
        if count_records(instance) != records or find_break(entry.link for entry in first) is not None:
            raise Mismatch(f"The ledger that was built does not hold a whole chain of {records} records.")
        last = instance.ledger.entries.at(scope_id, records)
        if last is None or not is_link_of(last.link, stored_record(last)):
            raise Mismatch("The last record that was built is not what its link says.")
        with instance.ledger.store.read() as connection:
            made, built = (connection.execute(_STORED_BYTES, {"at": at}).one() for at in (1, records))
        if any(abs(size - real) > _TOLERANCE * real for size, real in zip(built, made, strict=True)):
            raise Mismatch(f"The records that were built take {built} bytes and not {made}, as those of the gate do.")


def _run(connection: sqlite3.Connection, statement: Statement, rows: list[dict[str, Any]]) -> None:
    text, parameters = statement.on(_DIALECT)
    connection.executemany(text, map(parameters, rows))


_DIALECT: Final = dialect()
_STORED_BYTES: Final = select(func.length(entries.c.body), func.length(entries.c.request)).where(
    entries.c.position == bindparam("at")
)
_TOLERANCE: Final = 0.02


def _idempotency_key(position: int) -> str:
    return f"stored-{position:012d}"


def _digest(what: str, decision_id: str) -> str:
    return hashlib.sha256(f"{what} {decision_id}".encode()).hexdigest()
