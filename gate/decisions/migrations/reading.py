"""The stored migrations: their states, the documents that they cite, and the versions that the routes lead to. This
module only reads.

    migrations.find(scope, migration_id)    a migration, with its manifest, evidence and entries
    migrations.routes(scope)                the routes of each rulebook id, in the order of the chain
    migrations.base(scope, rulebook_id)     the active version
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

from gate.decisions.migrations.documents import (
    ProposedRulebook,
    StoredMigration,
    damaged,
    is_evidence,
    migration_document,
)
from gate.decisions.sources import Sources
from gate.encoding.canonical import content_hash
from gate.errors import OperatorError
from gate.ledger import Ledger
from gate.ledger.access.authority import Scope
from gate.ledger.chain.changes import ChangeReader
from gate.ledger.rulebooks import Registered, version_conflict
from gate.ledger.shadows import Shadow
from gate.migration.approval import MAX_NEW_SHARE, Today, find_staleness
from gate.migration.routes import taken_back
from gate.migration.standing import Standing, standing, unknown
from gate.records.changes import MigrationEntry, RouteEntry, Version
from gate.rulebooks.documents import AdapterDependency
from gate.rulebooks.rulebook import Rulebook, load

_LOOKED_THROUGH: Final = 200
"""How many versions of a rulebook are looked through for its adapter, the latest first."""


class InScope(Protocol):
    """The reader: a scope itself, or a caller's authority."""

    @property
    def scope_id(self) -> str:
        """The scope's internal id."""


class Migrations:
    """The migrations of scopes, to read."""

    def __init__(
        self, ledger: Ledger, sources: Sources, corpus_hash: str, max_new_share: float = MAX_NEW_SHARE
    ) -> None:
        """Composes it.

        Args:
            ledger: Where entries are kept.
            sources: What reads registered rulebooks.
            corpus_hash: The hash of this release's golden corpus.
            max_new_share: How many more decisions of a rulebook there may be than its evidence saw, as a share of
                those.
        """
        self._ledger = ledger
        self._sources = sources
        self._corpus_hash = corpus_hash
        self._max_new_share = max_new_share

    def shadows(self, scope: InScope) -> dict[str, Shadow]:
        """The shadows that run in a scope, by the ids of their migrations.

        The results of a shadow from before its migration was proposed again are left out, because they are about other
        candidates.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        with self._ledger.changes.reading(scope.scope_id) as reader:
            running = reader.shadows()
            standings = {of: standing_in(reader, of) for of in running}
        return {
            migration_id: running[migration_id].of_evidence(found.evidence_hash)
            for migration_id, found in standings.items()
            if found is not None
        }

    def migration(self, scope: InScope, migration_id: str) -> StoredMigration:
        """A migration of a scope.

        Raises:
            OperatorError: `MIGRATION_UNKNOWN`.
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        found = self.find(scope, migration_id)
        if found is None:
            raise unknown(migration_id)
        return found

    def find(self, scope: InScope, migration_id: str) -> StoredMigration | None:
        """A migration of a scope; None where the scope has none of that id.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        with self._ledger.changes.reading(scope.scope_id) as reader:
            entries, cited = _entries(reader, migration_id)
            found = standing(entries, cited)
            if found is None:
                return None
            manifest = stored_document(reader, found.proposed["manifest_hash"])
            evidence = stored_document(reader, found.evidence_hash)
        if content_hash(manifest) != found.proposed["manifest_hash"] or not is_evidence(evidence, found.evidence_hash):
            raise damaged(f"documents of the migration {migration_id}")
        return StoredMigration(found, manifest, evidence, entries, cited)

    def standing(self, scope: InScope, migration_id: str) -> Standing | None:
        """Where a migration of a scope stands; None where the scope has none of that id.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        with self._ledger.changes.reading(scope.scope_id) as reader:
            return standing_in(reader, migration_id)

    def migrations(self, scope: InScope) -> list[Standing]:
        """All migrations of a scope, those proposed last first.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        with self._ledger.changes.reading(scope.scope_id) as reader:
            return standings_in(reader)

    def routes(self, scope: InScope, rulebook_id: str | None = None) -> dict[str, list[RouteEntry]]:
        """The routes of a scope, in the order of the chain, by rulebook id.

        Args:
            scope: The scope.
            rulebook_id: The one rulebook id to look for; None for all.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        with self._ledger.changes.reading(scope.scope_id) as reader:
            return _by_rulebook(reader.routes(rulebook_id))

    def base(self, scope: InScope, rulebook_id: str) -> Registered | None:
        """The version that a rulebook id leads to; None where it has no route.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        route = self._ledger.changes.active(scope.scope_id, rulebook_id).route
        return None if route is None else self._ledger.rulebooks.find(scope.scope_id, route["to"]["hash"])

    def rulebook(self, scope: InScope, registered: Registered) -> Rulebook:
        """A registered rulebook.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`: it is not stored as it was registered.
        """
        return self._sources.registered_rulebook(scope.scope_id, registered.hash)

    def dependencies(
        self, scope: Scope, rulebooks: Sequence[Rulebook], adapters: Sequence[AdapterDependency]
    ) -> dict[str, AdapterDependency | None]:
        """The adapters that make the facts of candidates, by rulebook id; None where callers send them.

        A registered version keeps its adapter, or has none. Another version has the adapter of the active version.
        Without an active version, it has the adapter that was registered last for its rulebook id, in the version that
        the migration lists. A rulebook without any registered version has the only adapter of the migration.

        Args:
            scope: The scope.
            rulebooks: The candidates.
            adapters: The adapters that the migration names.

        Raises:
            OperatorError: `MIGRATION_ADAPTER_UNCLEAR`: several could be meant, or one makes the facts of no candidate.
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        found: dict[str, AdapterDependency | None] = {}
        for rulebook in rulebooks:
            known = self._ledger.rulebooks.find(scope.scope_id, rulebook.hash)
            before = known or self.base(scope, rulebook.rulebook_id) or self._bound_last(scope, rulebook.rulebook_id)
            if before is None:
                found[rulebook.rulebook_id] = _only_one(rulebook, len(rulebooks), adapters)
                continue
            bound = before.metadata.get("adapter_dependency")
            same = [of for of in adapters if bound is not None and of["adapter_id"] == bound["adapter_id"]]
            found[rulebook.rulebook_id] = same[0] if same and known is None else bound
        used = {of["adapter_id"] for of in found.values() if of is not None}
        for adapter in adapters if found else ():
            if adapter["adapter_id"] not in used:
                raise OperatorError(
                    "MIGRATION_ADAPTER_UNCLEAR",
                    f"The migration lists the adapter {adapter['adapter_id']}, which none of its rulebooks has "
                    "used so far. Remove it from the manifest, or register the candidate first, with `gate "
                    f"rulebook register FILE --scope {scope.name} --adapter {adapter['adapter_id']}`.",
                )
        return found

    def _bound_last(self, scope: Scope, rulebook_id: str) -> Registered | None:
        """The registration with an adapter that was made last, else the last one; None where nothing is registered."""
        registry = self._ledger.rulebooks
        names = registry.versions(scope.scope_id, rulebook_id, limit=_LOOKED_THROUGH)
        found = [of for name in names if (of := registry.find_version(scope.scope_id, rulebook_id, name)) is not None]
        # Not simply the last one: a key with `register` could take the adapter away by registering another version.
        return next((of for of in found if "adapter_dependency" in of.metadata), found[0] if found else None)

    def document(self, scope: InScope, stored: StoredMigration) -> dict[str, Any]:
        """A migration as `migration_document` says. The evidence of one that is no longer open is of its own day.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        stale: Sequence[str] = ()
        if stored.standing.state in ("proposed", "approved"):
            with self._ledger.changes.reading(scope.scope_id) as reader:
                stale = self.staleness(reader, stored.evidence)
        return migration_document(stored, stale)

    def candidates(self, scope: InScope, standing_: Standing) -> list[ProposedRulebook]:
        """The candidates of a migration.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        with self._ledger.changes.reading(scope.scope_id) as reader:
            return [_candidate(reader, of["hash"]) for of in standing_.proposed["candidates"]]

    def require_free(self, scope: InScope, rulebooks: Sequence[Rulebook]) -> None:
        """Requires that no version of some candidates names another rulebook.

        Raises:
            RulebookRefused: `RULEBOOK_VERSION_CONFLICT`.
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        for rulebook in rulebooks:
            known = self._ledger.rulebooks.find_version(scope.scope_id, rulebook.rulebook_id, rulebook.version)
            if known is not None and known.hash != rulebook.hash:
                raise version_conflict(rulebook, known.hash)

    def staleness(self, reader: ChangeReader, evidence: Mapping[str, Any]) -> list[str]:
        """Why evidence is no longer of today, one sentence each; empty where it is.

        Args:
            reader: What reads the scope's chain, in a transaction of its own or that of a change.
            evidence: The evidence.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        return find_staleness(evidence, self._today(reader, evidence), self._max_new_share)

    def _today(self, reader: ChangeReader, evidence: Mapping[str, Any]) -> Today:
        active: dict[str, Version | None] = {}
        decided_since = {}
        for of in evidence["rulebooks"]:
            routes = reader.routes(of["rulebook_id"])
            active[of["rulebook_id"]] = routes[-1]["to"] if routes else None
            after = of["history"]["read_at"]["chain_position"]
            decided_since[of["rulebook_id"]] = reader.count_decided(of["rulebook_id"], after=after)
        ours = evidence["corpus"]["published"]
        return Today(active, self._corpus_hash if ours else None, decided_since)


def standing_in(reader: ChangeReader, migration_id: str) -> Standing | None:
    """Where a migration stands, read in a transaction that is open; None where there is none of that id."""
    return standing(*_entries(reader, migration_id))


def standings_in(reader: ChangeReader) -> list[Standing]:
    """Where all migrations stand, read in a transaction that is open; those proposed last first."""
    by_id: dict[str, list[MigrationEntry]] = {}
    for entry in reader.migrations():
        by_id.setdefault(entry["migration_id"], []).append(entry)
    routes = _by_migration(reader.routes())
    found = [standing(of, routes.get(migration_id, [])) for migration_id, of in by_id.items()]
    there = [of for of in found if of is not None]
    return sorted(there, key=lambda of: of.proposed["migration_entry_id"], reverse=True)


def stored_document(reader: ChangeReader, hash_: str) -> Any:
    """A stored document, by its hash.

    Raises:
        ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`: an entry cites it, and it is not there.
    """
    found = reader.document(hash_)
    if found is None:
        raise damaged(f"document {hash_}")
    return found


def _entries(reader: ChangeReader, migration_id: str) -> tuple[Sequence[MigrationEntry], list[RouteEntry]]:
    entries = reader.migrations(migration_id)
    # Routes are looked up by rulebook id alone.
    return entries, _by_migration(reader.routes()).get(migration_id, []) if entries else []


def _by_migration(routes: Iterable[RouteEntry]) -> dict[str, list[RouteEntry]]:
    """The routes that cite each migration, and the rollbacks that took it back, in the order of the chain."""
    every = list(routes)
    found: dict[str, list[RouteEntry]] = {}
    taken = [pair for of in _by_rulebook(every).values() for pair in taken_back(of).items()]
    for migration_id, route in [*((route["migration_id"], route) for route in every), *taken]:
        found.setdefault(migration_id, []).append(route)
    at = {route["route_entry_id"]: index for index, route in enumerate(every)}
    return {name: sorted(of, key=lambda route: at[route["route_entry_id"]]) for name, of in found.items()}


def _candidate(reader: ChangeReader, hash_: str) -> ProposedRulebook:
    document = stored_document(reader, hash_)
    rulebook = load(document.get("rulebook"))
    if rulebook.hash != hash_:
        raise damaged(f"candidate {hash_}")
    return ProposedRulebook(rulebook, document["annotations"], document["adapter_dependency"])


def _by_rulebook(routes: Iterable[RouteEntry]) -> dict[str, list[RouteEntry]]:
    found: dict[str, list[RouteEntry]] = {}
    for route in routes:
        found.setdefault(route["rulebook_id"], []).append(route)
    return dict(sorted(found.items()))


def _only_one(rulebook: Rulebook, candidates: int, adapters: Sequence[AdapterDependency]) -> AdapterDependency | None:
    if len(adapters) > 1 or (adapters and candidates > 1):
        raise OperatorError(
            "MIGRATION_ADAPTER_UNCLEAR",
            f"No version of {rulebook.rulebook_id} is registered, so it is unclear whether an adapter of the "
            "migration computes its facts. Register the rulebook first, with `gate rulebook register`.",
        )
    return adapters[0] if adapters else None
