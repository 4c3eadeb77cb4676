"""The chain's entries about migrations and routes, with their hashes and their links.

    entry = migration_entry(...)         a migration was proposed, approved, rejected or superseded
    entry = route_entry(...)             a rulebook id leads to another version from now on
    entry_link(ROUTES, entry)            the material of its chain link

Each entry's own hash covers all its other fields. The page `docs/reference/wire-format/reports.md` defines the entries
under "Migrations and routes".
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
"""The maximum length of a note, in characters."""


class Actor(TypedDict):
    """The actor of an entry: a user by name, a key by id, or the service itself."""

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
"""The chain's entry about a route. (A class cannot have a field named `from`.)"""


@dataclass(frozen=True, slots=True)
class EntryKind:
    """A type of entry that changes how a scope decides.

    Attributes:
        entry_type: The type in the chain.
        version_member: The field with the version of its format.
        version: That version.
        id_member: The field with its own id.
        hash_member: The field with its own hash.
        subject_member: The field with the id of its subject.
        members: All fields.
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
        entry_id: The id of the entry.
        migration_id: The id of the migration.
        event: `proposed`, `approved`, `rejected` or `superseded`.
        manifest_hash: H of its manifest.
        evidence_hash: The hash of the evidence for the event.
        candidates: The versions that it proposes, by rulebook id.
        actor: The user, key, or service that caused the event.
        note: The actor's note, which may be empty.
        recorded_at: The UTC timestamp.
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
        entry_id: The id of the entry.
        rulebook_id: The rulebook id whose route changes.
        before: The version that it led to before, or None for the first route.
        after: The version that it leads to now.
        cause: `apply` or `rollback`.
        migration_id: The migration that is applied, or that a rollback returns to.
        approval_hash: The `migration_hash` of that migration's approval, or None if it needed none.
        evidence_hash: The hash of the evidence.
        actor: The user, key, or service that changed the route.
        note: The actor's note, which may be empty.
        recorded_at: The UTC timestamp.
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
    """The correct value of an entry's own hash."""
    return content_hash(compact({name: value for name, value in entry.items() if name != kind.hash_member}))


def entry_link(kind: EntryKind, entry: Mapping[str, Any]) -> chain.Entry:
    """The material of an entry's chain link. The entry belongs to no decision, so its own id is the `decision_id`."""
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
    """A sentence that says why a document is not a valid entry of a kind, or None if it is one.

    Raises:
        KeyError, TypeError, AttributeError: Its fields have the wrong types.
    """
    if added := sorted(set(entry) ^ kind.members):
        return f"The stored {kind.entry_type} has missing or unknown fields: {', '.join(added)}."
    if entry[kind.hash_member] != entry_hash(kind, entry):
        return f"The stored {kind.entry_type} is invalid: its {kind.hash_member} is not that of its fields."
    word, words = ("event", EVENTS) if kind is MIGRATIONS else ("cause", CAUSES)
    expected = (entry["decision_protocol_version"], entry[kind.version_member]) == (PROTOCOL, kind.version)
    if not expected or entry[word] not in words or entry["actor"]["type"] not in ACTOR_TYPES:
        return f"The stored {kind.entry_type} has an invalid version, {word} or actor."
    return None
