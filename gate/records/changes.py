"""The chain's entries about migrations and routes: what they hold, their hashes and their links.

    entry = migration_entry(...)         a migration was proposed, approved, rejected or superseded
    entry = route_entry(...)             a rulebook id leads to another version from here on
    entry_link(ROUTE, entry)             what its chain link is made of

docs/wire-format.md, "Migrations and routes". Each entry's own hash covers every other member of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, TypedDict, cast

from gate.encoding.canonical import compact, content_hash
from gate.labels import MIGRATION_ENTRY, PROTOCOL
from gate.labels import ROUTE as ROUTE_ENTRY
from gate.proof import chain

Event: TypeAlias = Literal["proposed", "approved", "rejected", "superseded"]
Cause: TypeAlias = Literal["apply", "rollback"]

EVENTS: Final[tuple[Event, ...]] = ("proposed", "approved", "rejected", "superseded")
CAUSES: Final[tuple[Cause, ...]] = ("apply", "rollback")
ACTOR_TYPES: Final = ("key", "user", "service")

MAX_NOTE: Final = 2000
"""How many characters a note may have."""


class Actor(TypedDict):
    """Who did something: a user by name, a key by id, or the service itself."""

    type: str
    id: str


class Version(TypedDict):
    """A version of a rulebook whose id is known."""

    version: str
    hash: str


class Candidate(Version):
    """A version of a rulebook that a migration proposes."""

    rulebook_id: str


class MigrationEntry(TypedDict):
    """The chain's entry about a migration."""

    decision_protocol_version: str
    decision_migration_version: str
    migration_entry_id: str
    migration_id: str
    event: Event
    manifest_hash: str
    evidence_hash: str
    candidates: list[Candidate]
    actor: Actor
    note: str
    recorded_at: str
    migration_hash: str


RouteEntry = TypedDict(
    "RouteEntry",
    {
        "decision_protocol_version": str,
        "decision_route_version": str,
        "route_entry_id": str,
        "rulebook_id": str,
        # The version that the id led to before; null for the first route.
        "from": Version | None,
        "to": Version,
        "cause": Cause,
        "migration_id": str,
        # The hash of the approval that it rests on; null where the migration needed none.
        "approval_hash": str | None,
        "evidence_hash": str,
        "actor": Actor,
        "note": str,
        "recorded_at": str,
        "route_hash": str,
    },
)
"""The chain's entry about a route; a class cannot have a member named `from`."""


@dataclass(frozen=True, slots=True)
class EntryKind:
    """A type of entry that changes how a scope decides.

    Attributes:
        entry_type: The type in the chain.
        version_member: The member with the version of its layout.
        version: That version.
        id_member: The member with its own id.
        hash_member: The member with its own hash.
        subject_member: The member that names what it is about.
        members: All members.
    """

    entry_type: str
    version_member: str
    version: str
    id_member: str
    hash_member: str
    subject_member: str
    members: frozenset[str]


MIGRATIONS: Final = EntryKind(
    "migration",
    "decision_migration_version",
    MIGRATION_ENTRY,
    "migration_entry_id",
    "migration_hash",
    "migration_id",
    frozenset(MigrationEntry.__annotations__),
)
ROUTES: Final = EntryKind(
    "route",
    "decision_route_version",
    ROUTE_ENTRY,
    "route_entry_id",
    "route_hash",
    "rulebook_id",
    frozenset(RouteEntry.__annotations__),
)
CHANGE_KINDS: Final = {kind.entry_type: kind for kind in (MIGRATIONS, ROUTES)}
"""The kinds by the type of their entries."""


def migration_entry(
    *,
    entry_id: str,
    migration_id: str,
    event: Event,
    manifest_hash: str,
    evidence_hash: str,
    candidates: Sequence[Candidate],
    actor: Actor,
    note: str,
    recorded_at: str,
) -> MigrationEntry:
    """The chain's entry about a migration.

    Args:
        entry_id: Its own id.
        migration_id: The migration.
        event: What became of the migration.
        manifest_hash: H of its manifest.
        evidence_hash: The hash of the evidence that the event rests on.
        candidates: The versions that it proposes, by rulebook id.
        actor: Who did it.
        note: What they said about it; may be empty.
        recorded_at: UTC timestamp.
    """
    made: dict[str, Any] = {
        "decision_protocol_version": PROTOCOL,
        "decision_migration_version": MIGRATION_ENTRY,
        "migration_entry_id": entry_id,
        "migration_id": migration_id,
        "event": event,
        "manifest_hash": manifest_hash,
        "evidence_hash": evidence_hash,
        "candidates": [dict(candidate) for candidate in candidates],
        "actor": actor,
        "note": note,
        "recorded_at": recorded_at,
    }
    return cast("MigrationEntry", {**made, "migration_hash": entry_hash(MIGRATIONS, made)})


def route_entry(
    *,
    entry_id: str,
    rulebook_id: str,
    before: Version | None,
    after: Version,
    cause: Cause,
    migration_id: str,
    approval_hash: str | None,
    evidence_hash: str,
    actor: Actor,
    note: str,
    recorded_at: str,
) -> RouteEntry:
    """The chain's entry about a route.

    Args:
        entry_id: Its own id.
        rulebook_id: The rulebook id that leads elsewhere from here on.
        before: The version that it led to; None for the first route.
        after: The version that it leads to now.
        cause: apply or rollback.
        migration_id: The migration that is applied, or to which a rollback goes back.
        approval_hash: The migration_hash of that migration's approval; None where it needed none.
        evidence_hash: The evidence that it rests on.
        actor: Who did it.
        note: What they said about it; may be empty.
        recorded_at: UTC timestamp.
    """
    made: dict[str, Any] = {
        "decision_protocol_version": PROTOCOL,
        "decision_route_version": ROUTE_ENTRY,
        "route_entry_id": entry_id,
        "rulebook_id": rulebook_id,
        "from": before,
        "to": after,
        "cause": cause,
        "migration_id": migration_id,
        "approval_hash": approval_hash,
        "evidence_hash": evidence_hash,
        "actor": actor,
        "note": note,
        "recorded_at": recorded_at,
    }
    return cast("RouteEntry", {**made, "route_hash": entry_hash(ROUTES, made)})


def entry_hash(kind: EntryKind, entry: Mapping[str, object]) -> str:
    """What an entry's own hash should be."""
    return content_hash(compact({name: value for name, value in entry.items() if name != kind.hash_member}))


def entry_link(kind: EntryKind, entry: Mapping[str, Any]) -> chain.Entry:
    """What the chain link of an entry is made of. It is about no decision, and so names itself as one."""
    target = entry["to"] if kind is ROUTES else None
    return chain.Entry(
        entry_type=kind.entry_type,
        decision_id=entry[kind.id_member],
        record_hash=entry[kind.hash_member],
        receipt_hash=None,
        policy_id=None if target is None else entry["rulebook_id"],
        policy_version=None if target is None else target["version"],
        created_at=entry["recorded_at"],
    )


def find_fault(kind: EntryKind, entry: Mapping[str, Any]) -> str | None:
    """What makes a document no entry of a kind, as a sentence; None where it is one.

    Raises:
        KeyError, TypeError, AttributeError: Its members have other types than every entry's.
    """
    if added := sorted(set(entry) ^ kind.members):
        return f"The stored {kind.entry_type} has other fields than every one has: {', '.join(added)}."
    if entry[kind.hash_member] != entry_hash(kind, entry):
        return f"The stored {kind.entry_type} does not hold: its {kind.hash_member} is not that of its fields."
    word, words = ("event", EVENTS) if kind is MIGRATIONS else ("cause", CAUSES)
    expected = (entry["decision_protocol_version"], entry[kind.version_member]) == (PROTOCOL, kind.version)
    if not expected or entry[word] not in words or entry["actor"]["type"] not in ACTOR_TYPES:
        return f"The stored {kind.entry_type} names a version, {word} or actor that none has."
    return None
