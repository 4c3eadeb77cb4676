"""A stretch of a chain under audit: read a page at a time, in the order of the chain, and judged entry by entry.

A stretch does not depend on other stretches, so they can be judged in any order and in several processes. Each begins
with the root of the entry before it, and returns the root that it ends with.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import orjson
from cachetools import LRUCache

from gate.decisions.erasure import erasure_hash, is_leaf_of_erasure
from gate.errors import GateError
from gate.instance.audit.changes import route_timelines, routed_by
from gate.instance.audit.entry import entry_finding
from gate.instance.audit.finding import Finding, read_stored, tampered
from gate.instance.audit.material import DECISION, ERASURE, KIND_OF, About, Entry, Material, ids_in_order, read_entry
from gate.instance.audit.registrations import Registrations
from gate.instance.audit.reviews import read_reviews
from gate.ledger import Ledger
from gate.ledger.reads.audited import AuditedEntry, Snapshot
from gate.ledger.stores.store import unheard_of
from gate.proof.chain import Head
from gate.records.reports.receipts import CITED, OUTCOMES
from gate.verify import Trust

_PAGE_BYTES: Final = 2 * 1024 * 1024
_HELD_BYTES: Final = 8 * 1024 * 1024
# Beside a decision's own bytes: its key, and its place in the order of use.
_HELD_OVERHEAD: Final = 700


class Rows(NamedTuple):
    """The number of rows in other tables that belong to the entries: of idempotency keys, and of held decisions."""

    claims: int = 0
    reviews: int = 0

    def and_those(self, more: Rows) -> Rows:
        """The rows of two stretches together."""
        return Rows(self.claims + more.claims, self.reviews + more.reviews)


@dataclass(frozen=True, slots=True)
class Judged:
    """What an audit saw of a stretch.

    Attributes:
        start: The end of the chain before it, as the entry there says; None where there is no such entry.
        end: The end of the chain behind it.
        read: How many of its entries were judged.
        rows: The number of their rows in other tables.
        finding: The first thing in it that is wrong, with which it ends.
    """

    start: Head | None
    end: Head
    read: int
    rows: Rows
    finding: Finding | None


class Auditor:
    """Judges stretches of chains; one for each process, for it remembers decisions and registrations."""

    def __init__(self, ledger: Ledger, trust: Trust) -> None:
        """Works on a ledger, and verifies against what is trusted."""
        self._ledger = ledger
        self._trust = trust
        self._registrations = Registrations(trust)
        self._decisions: LRUCache[tuple[str, str], bytes] = LRUCache(
            _HELD_BYTES, getsizeof=lambda held: len(held) + _HELD_OVERHEAD
        )

    def judge(
        self, scope_id: str, chain_id: str, after: int, up_to: int, told: Callable[[int], None] = lambda read: None
    ) -> Judged:
        """Judges the entries after a position, up to another.

        Args:
            scope_id: The scope.
            chain_id: Its chain.
            after: The position that the stretch comes after.
            up_to: The position that it ends with.
            told: Told how many more entries were judged, a page at a time.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        head, keyed, held = Head(chain_id, after), 0, 0
        start = head if after == 0 else None
        while head.size < up_to:
            # A snapshot a page, not one for all: a reader that stays keeps SQLite from starting its WAL over and
            # PostgreSQL from vacuuming. Up to a known position only erasures change anything.
            with self._ledger.audited.snapshot(scope_id) as seen:
                if start is None:
                    start = seen.head_at(chain_id, after)
                    head = start or head
                page = [read_entry(scope_id, row) for row in seen.entries(head.size, up_to, _PAGE_BYTES)]
                material = self._material(seen, scope_id, page, head.size)
            before = head.size
            if not page:
                missing = f"The entry at position {before + 1} is missing, though the chain has {up_to} or more."
                return Judged(start, head, before - after, Rows(keyed, held), tampered(before + 1, missing, before + 1))
            for entry in page:
                finding = entry_finding(entry, head, material)
                if finding is not None:
                    return Judged(start, head, head.size + 1 - after, Rows(keyed, held), finding)
                row = entry.row
                head = Head(chain_id, row.position, row.merkle_root, row.link_hash)
                keyed += entry.claim is not None
                held += entry.held
            told(head.size - before)
        return Judged(start, head, head.size - after, Rows(keyed, held), None)

    def _material(self, seen: Snapshot, scope_id: str, page: list[Entry], after: int) -> Material:
        """What a page is held against. Every id that is asked for comes from a row, or is known to be one."""
        material = Material(scope_id, self._trust)
        if not page:
            return material
        decided = [entry for entry in page if entry.row.entry_type == DECISION and entry.fault is None]
        material.searchable = seen.searchable(after, page[-1].row.position)
        material.claims = seen.claimed([entry.claimed_as for entry in page if entry.claimed_as is not None])
        hashes = {hash_ for entry in decided if _may_be_stored(hash_ := entry.document.get("policy_hash"))}
        material.registrations = self._registrations.cited(seen, scope_id, hashes)
        material.changes = seen.changes(after, page[-1].row.position)
        material.routes = route_timelines(seen, {named for entry in decided if (named := routed_by(entry.request))})
        erased = [entry.row.decision_id for entry in decided if "erased" in entry.document]
        material.erasures = _erasures(seen, erased)
        for entry in decided:
            self._remember(scope_id, entry.row, entry.document)
        about = {
            entry.row.decision_id
            for entry in page
            if entry.row.entry_type == ERASURE or entry.row.entry_type in KIND_OF
        }
        material.decisions = self._about(seen, scope_id, about)
        outcomes = {
            entry.row.position: entry.row.decision_id for entry in page if entry.row.entry_type == OUTCOMES.entry_type
        }
        kept = {
            entry.row.decision_id for entry in page if entry.row.position in outcomes and entry.row.request is not None
        }
        material.erased_at = {id_: position for id_, (position, *_) in seen.erasures(ids_in_order(kept)).items()}
        material.latest = seen.latest(ids_in_order(outcomes.values()))
        last = [id_ for id_, row in material.latest.items() if outcomes.get(row["position"]) == id_]
        material.dates = seen.outcome_dates(last)
        read_reviews(seen, page, material)
        return material

    def _about(self, seen: Snapshot, scope_id: str, decision_ids: set[str]) -> dict[str, About | None]:
        found: dict[str, About | None] = {}
        for decision_id in decision_ids:
            held = self._decisions.get((scope_id, decision_id))
            if held is not None:
                found[decision_id] = About(*orjson.loads(held))
        for stored in seen.decisions(ids_in_order(decision_ids - found.keys())):
            try:
                record, _ = read_stored(stored.body, "record")
            except GateError:
                found[stored.decision_id] = None
                continue
            about = About(stored.position, stored.has_request, _cited(record))
            found[stored.decision_id] = about
            self._hold(scope_id, stored.decision_id, about)
        return found

    def _remember(self, scope_id: str, row: AuditedEntry, record: Any) -> None:
        if row.decision_id == row.entry_id:
            self._hold(scope_id, row.decision_id, About(row.position, row.request is not None, _cited(record)))

    def _hold(self, scope_id: str, decision_id: str, about: About) -> None:
        try:
            held = orjson.dumps([*about])
        except orjson.JSONEncodeError:
            return
        if len(held) + _HELD_OVERHEAD <= self._decisions.maxsize:
            self._decisions[scope_id, decision_id] = held


def _cited(record: Any) -> dict[str, Any]:
    """What reports and erasures cite of a record: little, so that many decisions can be remembered."""
    cited = {name: record.get(name) for name in CITED}
    if "erased" in record:
        cited["erased"] = record["erased"]
    return cited


def _may_be_stored(hash_: object) -> bool:
    return isinstance(hash_, str) and not unheard_of(hash_)


def _erasures(seen: Snapshot, decision_ids: list[str]) -> dict[str, Any]:
    """The last erasure of each decision, where it is as it was made."""
    found = {}
    for decision_id, (_, leaf_hash, body) in seen.erasures(decision_ids).items():
        try:
            erasure, _ = read_stored(body, "erasure")
            if erasure.get("erasure_hash") == erasure_hash(erasure) and is_leaf_of_erasure(
                leaf_hash, decision_id, erasure
            ):
                found[decision_id] = erasure
        except (GateError, KeyError, TypeError):
            continue
    return found
