"""An entry as an audit reads it, and the rows that it is held against."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from gate.errors import GateError
from gate.instance.audit.finding import Finding, read_stored, tampered
from gate.instance.audit.registrations import Registration
from gate.labels import CHAIN, MERKLE_STRATEGY
from gate.ledger.chain.writer import Claim
from gate.ledger.reads.audited import AuditedEntry, ClaimRow
from gate.proof.chain import Head, Link
from gate.records.advisory import is_advisory
from gate.records.documents import Erasure
from gate.records.reports.receipts import KINDS
from gate.records.reports.resolution import RESOLUTIONS
from gate.verify import Trust

KIND_OF: Final = {kind.entry_type: kind for kind in (*KINDS, RESOLUTIONS)}
"""The kinds of reports, and resolutions, by the type of their entries."""

DECISION: Final = "decision"
ERASURE: Final = "erasure"


class About(NamedTuple):
    """A decision that an entry is about: where it stands, whether its request is kept, and what is cited of it."""

    position: int
    has_request: bool
    record: Mapping[str, Any]


@dataclass(slots=True)
class Material:
    """The material to compare the entries of a stretch with, read in the same snapshot as the entries.

    Attributes:
        scope_id: The scope.
        trust: The keys that signatures are verified with.
        decisions: The decisions that reports and erasures are about, by their ids; None for one that is unreadable.
        erasures: The last erasure of decisions that say that they were erased.
        erased_at: The position of the last erasure of decisions with outcomes whose request is kept.
        registrations: The registrations of the rulebooks that decided, by their hashes.
        claims: The rows of the idempotency keys that entries were made with, by what they are stored under.
        searchable: The rows for searches of decisions, by position.
        changes: The index rows of migrations and routes (type and subject), by position.
        routes: The routes of the rulebook ids that decisions refer to without a version: position and hash.
        latest: The rows of latest outcomes, by their decisions.
        dates: When the first and the last outcome of a decision was reported, of those whose latest is in the stretch.
        reviews: The rows of the reviews of held decisions, by their decisions.
        resolutions: The decisions that resolutions are about, by the positions that those rows name.
        executed: Of the decisions whose resolutions are in the stretch, those with a receipt of a later position that
            says executed.
    """

    scope_id: str
    trust: Trust
    decisions: dict[str, About | None] = field(default_factory=dict)
    erasures: dict[str, Erasure] = field(default_factory=dict)
    erased_at: dict[str, int] = field(default_factory=dict)
    registrations: dict[str, Registration] = field(default_factory=dict)
    claims: dict[bytes, ClaimRow] = field(default_factory=dict)
    searchable: dict[Any, Mapping[str, Any]] = field(default_factory=dict)
    changes: dict[Any, tuple[Any, Any]] = field(default_factory=dict)
    routes: dict[str, list[tuple[int, Any]]] = field(default_factory=dict)
    latest: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    dates: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    reviews: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    resolutions: dict[int, str] = field(default_factory=dict)
    executed: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Entry:
    """An entry as it was read.

    Attributes:
        row: Its row.
        document: The JSON object in its body; None where it cannot be read.
        plain: Whether that is known to be plain, as `canonical.is_plain` has it.
        request: The request of a decision or of an outcome, as it is stored.
        claim: The idempotency key that it was made with.
        claimed_as: The key of the claim in the table.
        held: Whether it is a decision that is held for its owner.
        fault: Why it cannot be looked at further, as a sentence.
    """

    row: AuditedEntry
    document: Any = None
    plain: bool = False
    request: Any = None
    claim: Claim | None = None
    claimed_as: bytes | None = None
    held: bool = False
    fault: str | None = None


def read_entry(scope_id: str, row: AuditedEntry) -> Entry:
    """Reads the documents of an entry. Errors in them become its fault."""
    entry = Entry(row)
    try:
        entry.document, entry.plain = read_stored(row.body, "body")
        if row.request is not None:
            entry.request, plain = read_stored(row.request, "request")
            entry.plain = entry.plain and plain
        entry.claim = claim_of(row.entry_type, entry.document)
        entry.claimed_as = None if entry.claim is None else entry.claim.stored_as(scope_id)
        entry.held = row.entry_type == DECISION and is_held(entry.document)
    except GateError as error:
        entry.fault = error.message
    except (KeyError, TypeError, AttributeError):
        entry.fault = misshapen(row)
    return entry


def is_held(record: Mapping[str, Any]) -> bool:
    """Whether a record, or what is cited of it, holds its action for an owner: a review that is not advisory."""
    return record.get("verdict") == "review" and not is_advisory(record)


def ids_in_order(stored: Iterable[Any]) -> list[str]:
    """Ids in their order, each once; without what something else wrote in the place of one, which is no text."""
    return sorted({id_ for id_ in stored if type(id_) is str})


def claim_of(entry_type: str, document: Any) -> Claim | None:
    """The idempotency key that an entry says it was made with; None where it names none.

    Raises:
        KeyError, TypeError: It has not the fields that every entry of its type has.
    """
    key = document.get("idempotency_key", "")
    if not isinstance(key, str):
        raise TypeError(key)
    if not key:
        return None
    if entry_type == DECISION:
        return Claim("decide", "", key, document["input_hash"])
    kind = KIND_OF.get(entry_type)
    return None if kind is None else Claim(kind.name, document["decision_id"], key, document[kind.input_hash_member])


def link_of(row: AuditedEntry, before: Head) -> Link | None:
    """The link that a row says it has, after what came before it; None where it holds what is no text."""
    texts = (*row[1:7], *row[8:12])
    if not all(text is None or type(text) is str for text in texts):
        return None
    try:
        version = None if row.policy_version is None else row.policy_version.decode()
    except (UnicodeDecodeError, AttributeError):
        return None
    return {
        "decision_chain_version": CHAIN,
        "chain_id": before.chain_id,
        "chain_position": row.position,
        "previous_link_hash": before.link_hash,
        "previous_merkle_root": before.merkle_root,
        "leaf_hash": row.leaf_hash,
        "merkle_root": row.merkle_root,
        "merkle_strategy": MERKLE_STRATEGY,
        "entry_type": row.entry_type,
        "decision_id": row.decision_id,
        "record_hash": row.record_hash,
        "receipt_hash": row.receipt_hash,
        "policy_id": row.policy_id,
        "policy_version": version,
        "created_at": row.created_at,
        "link_hash": row.link_hash,
    }


def misshapen(row: AuditedEntry) -> str:
    """The fault of an entry that has not the fields of its type."""
    return f"The stored {row.entry_type} lacks required fields, or some of its fields have the wrong type."


def entry_tampered(row: AuditedEntry, what: str) -> Finding:
    """A finding about the body or the link of an entry."""
    return tampered(row.position, what, row.entry_id)
