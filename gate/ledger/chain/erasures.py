"""The one update of records: what an erasure takes out of a decision and its outcomes, together with its entry in the
chain.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import Connection, bindparam, insert, select, update

from gate.ledger.access.operator_log import record
from gate.ledger.chain.entries import StoredEntry, stored_decision
from gate.ledger.packing import pack, unpack
from gate.ledger.stores.store import Store, unheard_of
from gate.ledger.tables import chain_heads, entries, scopes
from gate.proof import chain
from gate.proof.chain import Head


@dataclass(frozen=True, slots=True)
class PlannedErasure:
    """An erasure to be carried out.

    Attributes:
        entry_id: Its id.
        link: The parts of its chain link.
        body: Its JSON bytes.
        left: The JSON bytes that it leaves of the decision's body; the decision's request goes altogether.
        left_of_outcome: What it leaves of the body of an outcome whose request is kept; that request goes as well.
    """

    entry_id: str
    link: chain.Entry
    body: bytes
    left: bytes
    left_of_outcome: Callable[[bytes], bytes]


class Erasures:
    """Carries out erasures in a ledger."""

    def __init__(self, store: Store) -> None:
        """Works on the given store."""
        self._store = store

    def find(self, decision_id: str) -> tuple[str, StoredEntry] | None:
        """The name of a decision's scope, and the decision as it is stored; None where no scope has it.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        if unheard_of(decision_id):
            return None
        with self._store.read() as connection:
            scope = connection.execute(_SCOPE_OF, {"id": decision_id}).one_or_none()
            stored = None if scope is None else stored_decision(connection, scope.scope_id, decision_id)
        return None if scope is None or stored is None else (scope.name, stored)

    def erase(self, decision_id: str, plan: Callable[[StoredEntry], PlannedErasure], now: datetime) -> str | None:
        """Erases in one transaction: the entry in the chain, what is left of the decision and of its
        outcomes, and the operator log.

        Args:
            decision_id: The decision, of whatever scope.
            plan: The change of the decision. While it runs, nothing is appended to the chain.
            now: The current moment.

        Returns:
            The name of the decision's scope; None where no scope has the decision, and nothing was done.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`: nothing was done.
        """
        if unheard_of(decision_id):
            return None
        # One transaction for all of it: data that is gone without an entry in the chain would look like tampering, and
        # so would an entry whose data is still there (docs/reference/wire-format/chain.md, "Erasure").
        with self._store.write() as connection:
            # Read before the lock, since no decision ever changes its scope.
            scope = connection.execute(_SCOPE_OF, {"id": decision_id}).one_or_none()
            if scope is None:
                return None
            # The head before the operator log, as in every transaction that takes both locks.
            head = connection.execute(_LOCK_HEAD, {"scope": scope.scope_id}).one()
            stored = stored_decision(connection, scope.scope_id, decision_id)
            if stored is None:
                return None
            erasure = plan(stored)
            link = chain.append(
                Head(head.chain_id, head.chain_size, head.merkle_root, head.link_hash), erasure.link, plain=True
            )
            members: Mapping[str, object] = link
            row = {column.name: members[column.name] for column in entries.c if column.name in members} | {
                "scope_id": scope.scope_id,
                "position": link["chain_position"],
                "entry_id": erasure.entry_id,
                "body": pack(erasure.body),
            }
            connection.execute(insert(entries), row)
            connection.execute(
                update(chain_heads)
                .where(chain_heads.c.scope_id == scope.scope_id)
                .values(chain_size=link["chain_position"], merkle_root=link["merkle_root"], link_hash=link["link_hash"])
            )
            connection.execute(
                update(entries)
                .where(entries.c.scope_id == scope.scope_id, entries.c.position == stored.link["chain_position"])
                .values(body=pack(erasure.left), request=None)
            )
            _erase_outcomes(connection, scope.scope_id, decision_id, erasure.left_of_outcome)
            details = {"scope": scope.name, "erasure_id": erasure.entry_id}
            record(connection, "decision.erased", decision_id, details, now)
        name: str = scope.name
        return name


def _erase_outcomes(connection: Connection, scope_id: str, decision_id: str, left_of: Callable[[bytes], bytes]) -> None:
    # One after the other, since each may be as large as a request body.
    for position in connection.execute(_OUTCOMES, {"scope": scope_id, "id": decision_id}).scalars().all():
        at = entries.c.scope_id == scope_id, entries.c.position == position
        body = connection.execute(select(entries.c.body).where(*at)).scalar_one()
        connection.execute(update(entries).where(*at).values(body=pack(left_of(unpack(body))), request=None))


_OUTCOMES: Final = select(entries.c.position).where(
    entries.c.scope_id == bindparam("scope"),
    entries.c.decision_id == bindparam("id"),
    entries.c.entry_type == "outcome",
    entries.c.request.is_not(None),
)
_SCOPE_OF: Final = select(scopes.c.scope_id, scopes.c.name).where(
    # Asked for scope by scope, as the index goes.
    select(entries.c.position)
    .where(
        entries.c.scope_id == scopes.c.scope_id,
        entries.c.decision_id == bindparam("id"),
        entries.c.entry_id == bindparam("id"),
    )
    .exists()
)
_LOCK_HEAD: Final = select(chain_heads).where(chain_heads.c.scope_id == bindparam("scope")).with_for_update()
