"""The one way into the chains: entries are linked and written in groups, each under the lock of its scope's head.

The transaction that writes also decides what depends on the head. This is the position, and whether an idempotency key
was claimed before. It also checks that the caller's access and the scope's routes are unchanged, and that the cap of
the month is not used up.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol, TypeAlias

import orjson
from sqlalchemy import bindparam, insert, select, update

from gate.encoding.canonical import canonical
from gate.errors import GateError, ServiceUnavailable
from gate.labels import CHAIN
from gate.ledger.chain import outcomes
from gate.ledger.chain.group_commit import GroupCommit, Take
from gate.ledger.chain.outbox import INSERT_EVENT, Outbox
from gate.ledger.chain.outcomes import Cohort, Tally
from gate.ledger.chain.reviews import HELD, Receipt, Review, Reviews, is_held
from gate.ledger.packing import pack
from gate.ledger.stores.store import Row, Statement, Store, Transaction, driver_error, read_object
from gate.ledger.tables import chain_heads, claims, decisions, entries, usage
from gate.policy.confidence import DecisionConfidence
from gate.proof import chain
from gate.proof.chain import Head
from gate.records.webhooks.events import Event
from gate.records.webhooks.types import wants

SEARCHABLE: Final = 200
"""How many characters of a target_object_id decisions are searched by; the rest is looked for in the record."""

# A decision's id has 36 characters, and so has a UUID.
_BEGINNING: Final = 40


class Claim(NamedTuple):
    """An idempotency key in use.

    Attributes:
        operation: The operation that uses the key: `decide`, and later `execution`, `outcome`, and `crm-sync`.
        decision_id: The decision it is used on; "" for decide. A key is unique per (scope, operation, decision).
        key: The caller's key.
        input_hash: H of the payload it was used with.
    """

    operation: str
    decision_id: str
    key: str
    input_hash: str

    def digest(self, scope_id: str) -> bytes:
        """32 bytes that tell the claim from every other."""
        # Canonical JSON keeps the members apart: "ab" and "c" never give the bytes of "a" and "bc".
        return hashlib.sha256(canonical([scope_id, self.operation, self.decision_id, self.key], plain=True)).digest()

    def stored_as(self, scope_id: str) -> bytes:
        """The bytes that the claim is stored under: its digest behind the beginning of what it is about."""
        # An index by digests alone is written to at as many places as there are claims. Those that are made together
        # are mostly about decisions of one time, or of keys that count up, and so lie on a few pages.
        digest = self.digest(scope_id)
        return (self.decision_id or self.key)[:_BEGINNING].encode() + digest


class Decided(NamedTuple):
    """The values by which a decision is found and its outcomes are counted, in addition to its policy and date.

    Attributes:
        verdict: yes, no or review.
        action: The action label.
        reason_code: The reason code.
        target_object_id: The resource it is bound to.
        advisory: Whether it is advisory. Then it has no confidence and is not counted.
    """

    verdict: str
    action: str
    reason_code: str
    target_object_id: str
    advisory: bool = False


class NewEntry(NamedTuple):
    """An entry to be appended.

    Attributes:
        scope_id: The scope whose chain it extends.
        entry_id: Its own id; the decision_id for a decision.
        link: The parts of its chain link.
        body: The stored record's JSON bytes.
        request: The request's JSON bytes, for a decision.
        claim: The idempotency key that it claims.
        access_epoch: The epoch at which the caller's access was looked up; None where nobody's access matters.
        route_epoch: The epoch at which the route was looked up that named the rulebook; None where none did.
        decided: The values by which a decision is found and counted; None for other entries.
        outcome: What an outcome adds to the counts; None for other entries, and for outcomes of advisory decisions.
        answer: What a resolution answers: granted, refused or expired; None for other entries.
        receipt: What an execution receipt of a held decision depends on; None for other entries.
        event: What webhooks tell of it; None for entries that they tell nothing of.
    """

    scope_id: str
    entry_id: str
    link: chain.Entry
    body: bytes
    request: bytes | None = None
    claim: Claim | None = None
    access_epoch: int | None = None
    route_epoch: int | None = None
    decided: Decided | None = None
    outcome: outcomes.ReportedOutcome | None = None
    answer: str | None = None
    receipt: Receipt | None = None
    event: Event | None = None


class Appended(NamedTuple):
    """The entry is in the chain, durably.

    Attributes:
        link: Its link, or at least what a record carries of it.
        remaining: How many more records the scope may make in the entry's month; None without a cap.
        confidence: The decision_confidence of a decision; None where the scope has no outcomes.
    """

    link: chain.RecordLink
    remaining: int | None = None
    confidence: DecisionConfidence | None = None


class Claimed(NamedTuple):
    """The idempotency key was claimed before, by the entry at this position, with this payload."""

    position: int
    input_hash: str


@dataclass(frozen=True, slots=True)
class AccessChanged:
    """Keys or plan of the scope changed since the caller's access was looked up: look again."""


@dataclass(frozen=True, slots=True)
class RouteMoved:
    """A route of the scope changed since the rulebook was looked up by one: decide again."""


@dataclass(frozen=True, slots=True)
class ReviewMoved:
    """A review is not where the entry takes it to be: it was resolved by now.

    Attributes:
        review: Where it stands; None where there is no such review.
    """

    review: Review | None


@dataclass(frozen=True, slots=True)
class CapReached:
    """The scope has made as many records in the entry's month as its plan allows."""

    cap: int


AppendResult: TypeAlias = Appended | Claimed | AccessChanged | RouteMoved | ReviewMoved | CapReached


class AppendObserver(Protocol):
    """Hears of appends, for metrics. Times are in seconds."""

    def appended(self, seconds: float) -> None:
        """An append ended, well or not, after so long."""

    def committed(self, entries: int, seconds: float, queued: int) -> None:
        """A batch of so many entries was written and synced in so long; so many others wait by now."""


class _Nobody:
    def appended(self, seconds: float) -> None:
        return

    def committed(self, entries: int, seconds: float, queued: int) -> None:
        return


class Writer:
    """Appends entries to the chains of a ledger.

    Attributes:
        observer: Who hears of it.
    """

    def __init__(self, store: Store) -> None:
        """Works on the given store."""
        self.observer: AppendObserver = _Nobody()
        self._store = store
        self._commits: GroupCommit[NewEntry, AppendResult] = GroupCommit(self._commit)

    def wait_in(self, waiting: Callable[[], AbstractContextManager[None]]) -> None:
        """Lets threads do their waiting in something from now on, for others to go on meanwhile."""
        self._commits.waiting = waiting

    def append(self, entry: NewEntry) -> AppendResult:
        """Appends an entry to its scope's chain and returns once it is durable, or says why it is not in the chain.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`: nothing was acknowledged.
        """
        (outcome,) = self.append_all((entry,))
        if isinstance(outcome, GateError):
            raise outcome
        return outcome

    def append_all(self, entries: Sequence[NewEntry]) -> Sequence[AppendResult | GateError]:
        """Appends entries of one scope, in order and in one commit; says of each what `append` says, or would raise.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`: none of them was acknowledged.
        """
        packed = [
            entry._replace(body=pack(entry.body), request=None if entry.request is None else pack(entry.request))
            for entry in entries
        ]
        started = time.perf_counter()
        try:
            return self._commits.submit_all(packed, self._store.lane(entries[0].scope_id))
        finally:
            self.observer.appended(time.perf_counter() - started)

    def _commit(self, take: Take[NewEntry], *, again: bool = False) -> Sequence[AppendResult | GateError]:
        def work(transaction: Transaction, tried: bool) -> Sequence[AppendResult]:
            nonlocal again
            # Any earlier try may have committed and lost the answer, so every later one looks for its entries first.
            again = again or tried
            return _write(transaction, take(), tried=again, committed=self._tell)

        try:
            return self._store.run(work)
        except ServiceUnavailable as error:
            batch = take()
            if len(batch) == 1 or self._concerns_all(error):
                return [error] * len(batch)
        # One bad entry must not fail the others, so each gets a transaction of its own.
        outcomes: list[AppendResult | GateError] = []
        for entry in batch:
            (outcome,) = self._commit([entry].copy, again=again)
            outcomes.append(outcome)
            if isinstance(outcome, ServiceUnavailable) and self._concerns_all(outcome):
                # Each of hundreds would wait as long.
                return outcomes + [outcome] * (len(batch) - len(outcomes))
        return outcomes

    def _tell(self, entries: int, seconds: float) -> None:
        self.observer.committed(entries, seconds, self._commits.queued)

    def _concerns_all(self, error: ServiceUnavailable) -> bool:
        # Where no turn came, or the database itself is locked, full or failing, trying again would only wait longer.
        cause, driver = driver_error(error), self._store.engine.dialect.loaded_dbapi
        return not isinstance(cause, driver.Error) or isinstance(cause, driver.OperationalError)


@dataclass(slots=True)
class _ScopeHead:
    """A locked head, moved on by each entry that is linked."""

    chain: Head
    monthly_cap: int | None
    access_epoch: int
    route_epoch: int
    webhook_events: int
    event_seq: int


_LOCK_HEAD: Final = Statement(
    select(
        chain_heads.c.scope_id,
        chain_heads.c.chain_id,
        chain_heads.c.chain_size,
        chain_heads.c.merkle_root,
        chain_heads.c.link_hash,
        chain_heads.c.monthly_cap,
        chain_heads.c.access_epoch,
        chain_heads.c.route_epoch,
        chain_heads.c.webhook_events,
        chain_heads.c.event_seq,
    )
    .where(chain_heads.c.scope_id == bindparam("scope"))
    .with_for_update()
)
_CLAIMED: Final = Statement(
    select(claims.c.claim, claims.c.position, claims.c.input_hash).where(
        claims.c.scope_id == bindparam("scope"), claims.c.claim == bindparam("key")
    )
)
_LINK_OF: Final = Statement(
    select(
        entries.c.entry_id,
        entries.c.position,
        entries.c.leaf_hash,
        entries.c.merkle_root,
        entries.c.link_hash,
        entries.c.confidence,
    ).where(
        entries.c.scope_id == bindparam("scope"),
        entries.c.decision_id == bindparam("decision"),
        entries.c.entry_id == bindparam("entry"),
    )
)
_USED: Final = Statement(
    select(usage.c.scope_id, usage.c.month, usage.c.records).where(
        usage.c.scope_id == bindparam("scope"), usage.c.month == bindparam("of_month")
    )
)
_INSERT_ENTRY: Final = Statement(insert(entries))
_INSERT_DECISION: Final = Statement(insert(decisions))
_INSERT_CLAIM: Final = Statement(insert(claims))
_INSERT_USAGE: Final = Statement(insert(usage))
_COUNT_USAGE: Final = Statement(
    update(usage)
    .where(usage.c.scope_id == bindparam("scope"), usage.c.month == bindparam("of_month"))
    .values(records=bindparam("total"))
)
_MOVE_HEAD: Final = Statement(
    update(chain_heads)
    .where(chain_heads.c.scope_id == bindparam("scope"))
    .values(
        chain_size=bindparam("size"),
        merkle_root=bindparam("root"),
        link_hash=bindparam("link"),
        event_seq=bindparam("events"),
    )
)


def _write(
    transaction: Transaction,
    batch: Sequence[NewEntry],
    *,
    tried: bool,
    committed: Callable[[int, float], None] = lambda entries, seconds: None,
) -> Sequence[AppendResult]:
    """Links a batch, writes it and commits.

    Args:
        transaction: The transaction.
        batch: The entries.
        tried: Whether the batch was tried before, so that it may have been committed without this process hearing so.
        committed: Told how many entries were new, and how many seconds it took to write and sync them.
    """
    keys = [None if entry.claim is None else entry.claim.stored_as(entry.scope_id) for entry in batch]
    cohorts = [_cohort(entry) for entry in batch]
    heads, taken, linked, tally, reviews = _look_up(transaction, batch, keys, cohorts, tried=tried)
    used = _usage(transaction, batch, heads)
    counts = dict(used)
    answers: list[AppendResult] = []
    entry_rows: list[dict[str, object]] = []
    decision_rows: list[dict[str, object]] = []
    claim_rows: list[dict[str, object]] = []
    moved: set[str] = set()
    outbox = Outbox()
    for entry, key, cohort in zip(batch, keys, cohorts, strict=True):
        head = heads[entry.scope_id]
        month = _month(entry)
        cap = head.monthly_cap if entry.link.entry_type == "decision" else None
        # The order of these questions matters. An entry that an earlier try committed would otherwise meet its own
        # claim, or the cap that it used up itself. A revoked key may not even replay (ADR 5). A replay makes no record,
        # so the cap does not stop it.
        if entry.entry_id in linked:
            link, confidence = linked[entry.entry_id]
            answers.append(Appended(link, None if cap is None else cap - (counts[month] or 0), confidence))
        elif entry.access_epoch not in (None, head.access_epoch):
            answers.append(AccessChanged())
        elif key is not None and key in taken:
            answers.append(taken[key])
        elif entry.route_epoch not in (None, head.route_epoch):
            # The position orders decisions and routes: an entry after a route must not be of the version before it.
            answers.append(RouteMoved())
        elif not _stands(entry, review := reviews.of(entry)):
            # A resolution is final, and a receipt's flags say whether a grant came before it.
            answers.append(ReviewMoved(review))
        elif cap is not None and (counts[month] or 0) >= cap:
            answers.append(CapReached(cap))
        else:
            # The position comes from the locked head, never from counting entries: only the lock's holder extends the
            # chain, so no two links share a position (docs/reference/wire-format/chain.md, "Links"; ADR 4).
            link = chain.append(head.chain, entry.link, plain=True)
            head.chain = chain.head_of(link)
            confidence = None if entry.decided is None or cohort is None else tally.confidence(cohort)
            moved.add(entry.scope_id)
            entry_rows.append(_entry_row(entry, link, confidence))
            if entry.decided is not None:
                decision_rows.append(_decision_row(entry, entry.decided, link))
            due_at = _review(reviews, entry, review, link)
            if entry.outcome is not None and cohort is not None:
                tally.add(link["decision_id"], cohort, entry.outcome.status, link["chain_position"], link["created_at"])
            if key is not None and entry.claim is not None:
                # Two requests with one key can meet in one batch: the second finds the first here.
                taken[key] = Claimed(link["chain_position"], entry.claim.input_hash)
                claim_rows.append(_claim_row(entry.scope_id, key, taken[key]))
            if entry.event is not None and wants(head.webhook_events, entry.event.type):
                head.event_seq += 1
                outbox.add(entry.scope_id, head.event_seq, entry.event, link["chain_position"], due_at=due_at)
            if cap is not None:
                counts[month] = (counts[month] or 0) + 1
            answers.append(Appended(link, None if cap is None else cap - (counts[month] or 0), confidence))
    writes = [
        (_INSERT_ENTRY, entry_rows),
        (_MOVE_HEAD, [_head_row(scope_id, heads[scope_id].chain, heads[scope_id].event_seq) for scope_id in moved]),
        (_INSERT_DECISION, decision_rows),
        (_INSERT_CLAIM, claim_rows),
        *tally.writes(),
        *reviews.writes(),
        *_usage_writes(used, counts),
        (INSERT_EVENT, outbox.rows),
    ]
    started = time.perf_counter()
    # Nothing of the batch is acknowledged before this line, and all of it is durable after it. A process that dies in
    # between leaves entries whose callers do not know of them; their idempotency keys find them.
    transaction.commit([(statement, rows) for statement, rows in writes if rows])
    if entry_rows:
        committed(len(entry_rows), time.perf_counter() - started)
    return answers


_Month: TypeAlias = tuple[str, str]
"""A scope's id and a UTC month: 2026-11."""


def _month(entry: NewEntry) -> _Month:
    return entry.scope_id, entry.link.created_at[:7]


def _look_up(
    transaction: Transaction,
    batch: Sequence[NewEntry],
    keys: Sequence[bytes | None],
    cohorts: Sequence[Cohort | None],
    *,
    tried: bool,
) -> tuple[dict[str, _ScopeHead], dict[bytes, Claimed], dict[str, _Linked], Tally, Reviews]:
    """Locks the heads, and then finds what is there already: claims by key, links by entry id, tally and reviews."""
    # In order, so that two writers never wait for each other's heads. The heads are asked for first: once they are
    # locked, nobody else changes the claims, counts and entries of their scopes before this transaction ends.
    scopes = sorted({entry.scope_id for entry in batch})
    # An id is made for one append, so only a batch that was tried before can be in the chain already.
    again = batch if tried else ()
    reported = sorted({(entry.scope_id, entry.link.decision_id) for entry in batch if entry.outcome is not None})
    head_rows, claim_rows, link_rows, latest_rows, count_rows, reported_rows, *review_rows = transaction.ask(
        [
            (_LOCK_HEAD, [{"scope": scope_id} for scope_id in scopes]),
            (
                _CLAIMED,
                [
                    {"scope": entry.scope_id, "key": key}
                    for entry, key in zip(batch, keys, strict=True)
                    if key is not None
                ],
            ),
            (_LINK_OF, [{"scope": e.scope_id, "decision": e.link.decision_id, "entry": e.entry_id} for e in again]),
            *Tally.queries(reported, [cohort for cohort in cohorts if cohort is not None]),
            *Reviews.queries(batch),
        ]
    )
    heads = {
        scope_id: _ScopeHead(Head(chain_id, size, merkle_root, link_hash), *respected)
        for scope_id, chain_id, size, merkle_root, link_hash, *respected in head_rows
    }
    taken = {bytes(key): Claimed(position, input_hash) for key, position, input_hash in claim_rows}
    known = {row[0]: row for row in link_rows}
    linked = {e.entry_id: _known_link(heads[e.scope_id], e, known[e.entry_id]) for e in again if e.entry_id in known}
    return heads, taken, linked, Tally(latest_rows, count_rows, reported_rows), Reviews(*review_rows)


def _stands(entry: NewEntry, review: Review | None) -> bool:
    """Whether a review is where an entry takes it to be: held for its resolution; granted, or not, for a receipt."""
    if entry.answer is not None:
        return review is not None and review.state == HELD
    return entry.receipt is None or entry.receipt.granted == (review is not None and review.granted)


def _review(reviews: Reviews, entry: NewEntry, review: Review | None, link: chain.Link) -> str | None:
    """Begins a review, resolves it, or takes note that its action was executed, as an entry says.

    Returns:
        When the review that begins expires; None where none begins, or without a time limit.
    """
    if is_held(entry):
        return reviews.hold(entry, link)
    if entry.answer is not None:
        reviews.resolve(entry, entry.answer, link)
    elif entry.receipt is not None and entry.receipt.executed and review is not None and review.granted:
        reviews.execute(entry, review)
    return None


_Linked: TypeAlias = tuple[chain.RecordLink, DecisionConfidence | None]
"""What an earlier try gave an entry: what a record carries of its link, and its confidence."""


def _known_link(head: _ScopeHead, entry: NewEntry, row: Row) -> _Linked:
    _, position, leaf_hash, merkle_root, link_hash, confidence = row
    link: chain.RecordLink = {
        "decision_chain_version": CHAIN,
        "chain_id": head.chain.chain_id,
        "chain_position": position,
        "entry_type": entry.link.entry_type,
        "leaf_hash": leaf_hash,
        "link_hash": link_hash,
        "merkle_root": merkle_root,
    }
    return link, None if confidence is None else read_object(bytes(confidence), entry.entry_id)


def _cohort(entry: NewEntry) -> Cohort | None:
    """What a decision, or the decision of an outcome, is counted under; None where it is not counted."""
    counted = entry.decided or entry.outcome
    if counted is None or (entry.decided is not None and entry.decided.advisory):
        return None
    link = entry.link
    return Cohort(entry.scope_id, link.policy_id or "", link.policy_version or "", counted.verdict, counted.action)


def _usage(
    transaction: Transaction, batch: Sequence[NewEntry], heads: Mapping[str, _ScopeHead]
) -> dict[_Month, int | None]:
    """How many records each capped scope has made in each month of the batch; None where none is counted yet."""
    months = sorted({_month(entry) for entry in batch if heads[entry.scope_id].monthly_cap is not None})
    if not months:
        return {}
    # A round trip of its own, because only the locked head says whether there is a cap; uncapped scopes never pay it.
    (rows,) = transaction.ask([(_USED, [{"scope": scope_id, "of_month": month} for scope_id, month in months])])
    return dict.fromkeys(months) | {(scope_id, month): records for scope_id, month, records in rows}


def _usage_writes(
    used: Mapping[_Month, int | None], counts: Mapping[_Month, int | None]
) -> list[tuple[Statement, list[dict[str, object]]]]:
    changed = {month: count for month, count in counts.items() if count != used[month]}
    new: list[dict[str, object]] = [
        {"scope_id": s, "month": m, "records": n} for (s, m), n in changed.items() if used[s, m] is None
    ]
    known: list[dict[str, object]] = [
        {"scope": s, "of_month": m, "total": n} for (s, m), n in changed.items() if used[s, m] is not None
    ]
    return [(_INSERT_USAGE, new), (_COUNT_USAGE, known)]


def _claim_row(scope_id: str, key: bytes, claimed: Claimed) -> dict[str, object]:
    return {"scope_id": scope_id, "claim": key, "input_hash": claimed.input_hash, "position": claimed.position}


def _decision_row(entry: NewEntry, decided: Decided, link: chain.Link) -> dict[str, object]:
    return {
        "scope_id": entry.scope_id,
        "position": link["chain_position"],
        "verdict": decided.verdict,
        "policy_id": link["policy_id"],
        # A decision always has one; links of other entries may not.
        "policy_version": (link["policy_version"] or "").encode(),
        "reason_code": decided.reason_code,
        "target_object_id": decided.target_object_id[:SEARCHABLE].encode(),
        "created_at": link["created_at"],
    }


def _entry_row(entry: NewEntry, link: chain.Link, confidence: DecisionConfidence | None) -> dict[str, object]:
    version = link["policy_version"]
    # The members of a link are named as the columns are; those that have no column are not asked for.
    return {
        **link,
        "scope_id": entry.scope_id,
        "position": link["chain_position"],
        "entry_id": entry.entry_id,
        "policy_version": None if version is None else version.encode(),
        "body": entry.body,
        "request": entry.request,
        "confidence": None if confidence is None else orjson.dumps(confidence),
    }


def _head_row(scope_id: str, head: Head, event_seq: int = 0) -> dict[str, object]:
    moved = {"size": head.size, "root": head.merkle_root, "link": head.link_hash, "events": event_seq}
    return {"scope": scope_id, **moved}
