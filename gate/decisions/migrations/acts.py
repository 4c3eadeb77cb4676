"""The acts on migrations: propose, approve, reject, apply, and roll back. Each appends an entry to the scope's chain. A
shadow changes nothing, so it has no entry.

    acts.propose(scope, ada, proposal, note)               the evidence, under the author's name
    acts.approve(scope, ben, migration_id, evidence_hash)  somebody else, against that very evidence
    acts.apply(scope, ada, migration_id)                   from here on the rulebook id leads to the candidate
    acts.rollback(scope, ben, rulebook_id)                 and back, on the evidence of the earlier apply
    acts.start_shadow(scope, ada, migration_id)            new decisions are decided again, without effect

Whether something may be done is decided under the lock of the scope's head, where nobody appends meanwhile: of two
approvals at once, the second finds the first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from gate.clock import new_id
from gate.decisions.migrations.documents import (
    CANDIDATE,
    EVIDENCE,
    MANIFEST,
    Proposal,
    ProposedRulebook,
    StoredMigration,
    candidate_document,
)
from gate.decisions.migrations.reading import Migrations, standing_in, standings_in, stored_document
from gate.decisions.migrations.rules import (
    no_shadow,
    require_about,
    require_act,
    require_another,
    require_gate,
    require_note,
    require_proposed,
    require_shadowable,
)
from gate.decisions.sources import Sources
from gate.encoding.canonical import canonical, content_hash
from gate.errors import OperatorError
from gate.ids import timestamp
from gate.ledger import Ledger
from gate.ledger.access.authority import Scope
from gate.ledger.access.users import User
from gate.ledger.chain.changes import Change
from gate.ledger.shadows import Shadow
from gate.migration.approval import needs_approval
from gate.migration.routes import rollback_target
from gate.migration.standing import Standing, require_open, unknown
from gate.records.changes import (
    MIGRATIONS,
    ROUTES,
    Actor,
    Candidate,
    Event,
    MigrationEntry,
    RouteEntry,
    migration_entry,
    route_entry,
)
from gate.rulebooks.rulebook import Rulebook


class MigrationActs:
    """The acts of users on the migrations of scopes."""

    def __init__(
        self,
        ledger: Ledger,
        sources: Sources,
        clock: Callable[[], datetime],
        migrations: Migrations,
        *,
        self_approval: bool = False,
    ) -> None:
        """Composes it.

        Args:
            ledger: Where entries are kept.
            sources: What registers a candidate when it is applied.
            clock: The current moment, in UTC.
            migrations: What is stored of them.
            self_approval: Whether authors may approve, also their own migrations.
        """
        self._ledger = ledger
        self._sources = sources
        self._clock = clock
        self._migrations = migrations
        self._self_approval = self_approval

    def propose(self, scope: Scope, user: User, proposal: Proposal, note: str) -> Standing:
        """Proposes a migration, or proposes it again with new evidence.

        Args:
            scope: The scope.
            user: The author, who is signed in.
            proposal: The proposal; its evidence is new.
            note: What the author says about it; may be empty.

        Raises:
            AccessForbidden: `MIGRATION_FORBIDDEN`: the user may not draft in the scope.
            OperatorError: `MIGRATION_NOT_OPEN`, `MIGRATION_STATUS_INVALID`, `EVIDENCE_INVALID`, `EVIDENCE_STALE` or
                `MIGRATION_APPROVAL_REQUIRED`.
            RulebookRefused: `RULEBOOK_VERSION_CONFLICT`: a candidate's version names another rulebook.
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`: nothing was done.
        """
        manifest, evidence = proposal.manifest, proposal.evidence
        migration_id: str = manifest["migration_id"]
        self.require_proposable(scope, user, manifest, [of.rulebook for of in proposal.rulebooks], note)
        candidates = sorted((of.candidate for of in proposal.rulebooks), key=lambda of: of["rulebook_id"])
        require_about(evidence, manifest, candidates)
        if manifest["approval"]["status"] == "not_required" and (
            needs_approval(manifest, evidence) or any(self._moves_facts(scope, of) for of in proposal.rulebooks)
        ):
            raise OperatorError(
                "MIGRATION_APPROVAL_REQUIRED",
                f"The manifest of {migration_id} says that no approval is required, but the evidence does not "
                "prove that nothing changes. Set approval.status to pending, and propose the migration again.",
            )
        now = self._clock()
        with self._ledger.changes.changing(scope.scope_id, scope.name, now) as change:
            found = standing_in(change, migration_id)
            if found is not None:
                require_open(found, migration_id, to="proposed")
            self._require_fresh(change, evidence, migration_id)
            change.store(MANIFEST, content_hash(manifest), canonical(manifest))
            for of in proposal.rulebooks:
                change.store(CANDIDATE, of.rulebook.hash, canonical(candidate_document(of)))
            change.store(EVIDENCE, evidence["evidence_hash"], canonical(evidence))
            entry = migration_entry(
                entry_id=new_id("mig", now),
                migration_id=migration_id,
                event="proposed",
                manifest_hash=content_hash(manifest),
                evidence_hash=evidence["evidence_hash"],
                candidates=candidates,
                actor=_actor(user),
                note=note,
                recorded_at=timestamp(now),
            )
            return self._append(change, entry)

    def _moves_facts(self, scope: Scope, proposed: ProposedRulebook) -> bool:
        """Whether something else makes the facts of a candidate than of the active version: equal rules hide it."""
        base = self._migrations.base(scope, proposed.rulebook.rulebook_id)
        return base is None or base.metadata.get("adapter_dependency") != proposed.dependency

    def require_proposable(
        self, scope: Scope, user: User, manifest: Mapping[str, Any], rulebooks: Sequence[Rulebook], note: str
    ) -> None:
        """Requires everything that a proposal needs, except evidence. Call it before the evidence is computed.

        Args:
            scope: The scope.
            user: The user who wants to propose, signed in.
            manifest: The manifest.
            rulebooks: Its candidates.
            note: What they say about it; may be empty.

        Raises:
            AccessForbidden: `MIGRATION_FORBIDDEN`: the user may not draft in the scope.
            OperatorError: `NOTE_INVALID`, `MIGRATION_NOT_OPEN` or `MIGRATION_STATUS_INVALID`.
            RulebookRefused: `RULEBOOK_VERSION_CONFLICT`: a candidate's version names another rulebook.
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        require_act(user, scope, "draft")
        require_note(note)
        require_proposed(manifest)
        found = self._migrations.standing(scope, manifest["migration_id"])
        if found is not None:
            require_open(found, manifest["migration_id"], to="proposed")
        self._migrations.require_free(scope, rulebooks)

    def approve(self, scope: Scope, user: User, migration_id: str, evidence_hash: str, note: str) -> Standing:
        """Approves a migration on its evidence.

        Args:
            scope: The scope.
            user: The approver, who is signed in.
            migration_id: The migration.
            evidence_hash: The evidence that the approver read.
            note: What the approver says about it; may be empty.

        Raises:
            AccessForbidden: `MIGRATION_FORBIDDEN`: the user may not approve in the scope, or is the author.
            OperatorError: `MIGRATION_UNKNOWN`, `MIGRATION_NOT_OPEN`, `EVIDENCE_MISMATCH`, `EVIDENCE_STALE` or
                `MIGRATION_GATE_FAILED`.
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`: nothing was done.
        """
        return self._decide(scope, user, migration_id, "approved", evidence_hash, note)

    def reject(self, scope: Scope, user: User, migration_id: str, note: str) -> Standing:
        """Rejects a migration, or takes an approval back before it is applied. Authors withdraw their own this way.

        Raises:
            AccessForbidden: `MIGRATION_FORBIDDEN`: the user may not approve in the scope, and did not propose it.
            OperatorError: `MIGRATION_UNKNOWN` or `MIGRATION_NOT_OPEN`.
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`: nothing was done.
        """
        return self._decide(scope, user, migration_id, "rejected", None, note)

    def apply(self, scope: Scope, user: User, migration_id: str, note: str) -> list[RouteEntry]:
        """Routes the migration's rulebook ids to its candidates, all of them at one moment.

        Other open migrations of the same rulebook ids are superseded, because their evidence compares with a version
        that is no longer active.

        Args:
            scope: The scope.
            user: Who applies it: anyone who may draft or approve in the scope.
            migration_id: The migration.
            note: What they say about it; may be empty.

        Raises:
            AccessForbidden: `MIGRATION_FORBIDDEN`.
            OperatorError: `MIGRATION_UNKNOWN`, `MIGRATION_NOT_OPEN`, `MIGRATION_NOT_APPROVED`, `EVIDENCE_STALE`,
                `MIGRATION_GATE_FAILED` or `MIGRATION_WITHOUT_ROUTE`.
            RulebookRefused: `RULEBOOK_VERSION_CONFLICT`.
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`: nothing was done.
        """
        require_act(user, scope, "draft", "approve")
        require_note(note)
        stored = self._migrations.migration(scope, migration_id)
        candidates = self._migrations.candidates(scope, stored.standing)
        if not candidates:
            raise OperatorError(
                "MIGRATION_WITHOUT_ROUTE",
                f"The migration {migration_id} lists no rulebook, so there is no route to change. New evaluators "
                "and adapters arrive with a release instead.",
            )
        self._require_applicable(scope, stored)
        # Registered before the route, in transactions of their own: a registration that no route follows does no harm.
        for of in candidates:
            self._sources.register_file(scope, of.rulebook, of.annotations, of.dependency)
        now = self._clock()
        with self._ledger.changes.changing(scope.scope_id, scope.name, now) as change:
            # Once more under the lock: it may have been rejected, or applied, since.
            found = standing_in(change, migration_id)
            if found is None or found.proposed != stored.standing.proposed:
                raise OperatorError(
                    "MIGRATION_NOT_OPEN",
                    f"The migration {migration_id} was proposed again just now. Read the new proposal, and "
                    "repeat the command.",
                )
            self._require_applicable(scope, StoredMigration(found, stored.manifest, stored.evidence, (), ()))
            self._require_fresh(change, stored.evidence, migration_id)
            routes = [
                self._route(change, of.candidate, found, user, note, now)
                for of in sorted(candidates, key=lambda of: of.rulebook.rulebook_id)
                # A route to where it leads already would only be in the way of a rollback.
                if not _leads_to(change.routes(of.rulebook.rulebook_id), of.rulebook)
            ]
            self._supersede(change, found, user, now)
            change.stop_shadow(migration_id, user.name)
        return routes

    def rollback(
        self, scope: Scope, user: User, rulebook_id: str, note: str, *, active: str | None = None
    ) -> RouteEntry:
        """Routes a rulebook id back to the version that was applied before the active one.

        Args:
            scope: The scope.
            user: Who rolls back: anyone who may draft or approve in the scope.
            rulebook_id: The rulebook id.
            note: What they say about it; may be empty.
            active: The version that must be active, so that a repeated rollback goes back only once; None for any.

        Raises:
            AccessForbidden: `MIGRATION_FORBIDDEN`.
            OperatorError: `ROUTE_UNKNOWN`, `ROUTE_MOVED` or `ROLLBACK_IMPOSSIBLE`.
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`: nothing was done.
        """
        require_act(user, scope, "draft", "approve")
        require_note(note)
        now = self._clock()
        with self._ledger.changes.changing(scope.scope_id, scope.name, now) as change:
            routes = change.routes(rulebook_id)
            if not routes:
                raise OperatorError(
                    "ROUTE_UNKNOWN",
                    f"The scope {scope.name} has no route for {rulebook_id!r}. `gate migrate status` shows all routes.",
                )
            target, current = rollback_target(routes), routes[-1]
            if active not in (None, current["to"]["version"]):
                raise OperatorError(
                    "ROUTE_MOVED",
                    f"{rulebook_id} is routed to {current['to']['version']}, not to {active}, so nothing was "
                    f"rolled back. `gate migrate status --scope {scope.name}` shows who changed the route, and "
                    "when.",
                )
            if target is None:
                raise OperatorError(
                    "ROLLBACK_IMPOSSIBLE",
                    f"{rulebook_id} {current['to']['version']} was the first version applied, so there is no "
                    "version to roll back to. Apply a migration to another version.",
                )
            entry = route_entry(
                entry_id=new_id("rte", now),
                rulebook_id=rulebook_id,
                before=current["to"],
                after=target["to"],
                cause="rollback",
                migration_id=target["migration_id"],
                approval_hash=target["approval_hash"],
                evidence_hash=target["evidence_hash"],
                actor=_actor(user),
                note=note,
                recorded_at=timestamp(now),
            )
            self._append_route(change, entry)
        return entry

    def start_shadow(self, scope: Scope, user: User, migration_id: str) -> Shadow:
        """Starts the shadow of a migration. From then on, the analytics process decides each new decision again with
        the candidate.

        Args:
            scope: The scope.
            user: Who starts it: anyone who may draft or approve in the scope.
            migration_id: The migration, which is proposed or approved.

        Raises:
            AccessForbidden: `MIGRATION_FORBIDDEN`.
            OperatorError: `MIGRATION_UNKNOWN`, `MIGRATION_NOT_OPEN`, `MIGRATION_WITHOUT_ROUTE` or `SHADOW_RUNNING`.
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`: nothing was done.
        """
        require_act(user, scope, "draft", "approve")
        with self._ledger.changes.changing(scope.scope_id, scope.name, self._clock()) as change:
            found = standing_in(change, migration_id)
            if found is None:
                raise unknown(migration_id)
            running = change.shadows().get(migration_id)
            if running is not None:
                raise OperatorError(
                    "SHADOW_RUNNING",
                    f"The shadow of {migration_id} is already running: {running.started_by} started it at "
                    f"{running.started_at}. `gate migrate shadow show {migration_id} --scope {scope.name}` shows "
                    "what it found. To start over, stop it first.",
                )
            require_shadowable(found)
            change.start_shadow(migration_id, user.name)
            return change.shadows()[migration_id]

    def stop_shadow(self, scope: Scope, user: User, migration_id: str) -> Shadow:
        """Stops the shadow of a migration; the shadow as it was, with what it found last.

        Args:
            scope: The scope.
            user: Who stops it: anyone who may draft or approve in the scope.
            migration_id: The migration.

        Raises:
            AccessForbidden: `MIGRATION_FORBIDDEN`.
            OperatorError: `MIGRATION_UNKNOWN` or `SHADOW_NOT_RUNNING`.
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`: nothing was done.
        """
        require_act(user, scope, "draft", "approve")
        with self._ledger.changes.changing(scope.scope_id, scope.name, self._clock()) as change:
            found = standing_in(change, migration_id)
            if found is None:
                raise unknown(migration_id)
            running = change.shadows().get(migration_id)
            if running is None:
                raise no_shadow(migration_id, scope.name)
            change.stop_shadow(migration_id, user.name)
        return running.of_evidence(found.evidence_hash)

    def _decide(
        self, scope: Scope, user: User, migration_id: str, event: Event, evidence_hash: str | None, note: str
    ) -> Standing:
        require_note(note)
        now = self._clock()
        with self._ledger.changes.changing(scope.scope_id, scope.name, now) as change:
            there = standing_in(change, migration_id)
            # Said first: a role that an operator grants for this would not help.
            if event == "approved" and there is not None and not self._self_approval:
                require_another(user, there)
            withdrawn = event == "rejected" and there is not None and there.author == user.name
            may_draft = self._self_approval or withdrawn
            require_act(user, scope, *(("approve", "draft") if may_draft else ("approve",)))
            found = require_open(there, migration_id, to=event)
            if event == "approved":
                self._require_approvable(change, scope, found, str(evidence_hash))
            entry = migration_entry(
                entry_id=new_id("mig", now),
                migration_id=migration_id,
                event=event,
                manifest_hash=found.proposed["manifest_hash"],
                evidence_hash=found.evidence_hash,
                candidates=found.proposed["candidates"],
                actor=_actor(user),
                note=note,
                recorded_at=timestamp(now),
            )
            return self._append(change, entry)

    def _require_approvable(self, change: Change, scope: Scope, found: Standing, evidence_hash: str) -> None:
        if evidence_hash != found.evidence_hash:
            raise OperatorError(
                "EVIDENCE_MISMATCH",
                f"{evidence_hash} is not the hash of the latest evidence of {found.migration_id}. Before you "
                "decide, read the report, which shows the latest hash: `gate migrate report "
                f"{found.migration_id} --scope {scope.name}`.",
            )
        evidence = stored_document(change, found.evidence_hash)
        require_gate(evidence, found.migration_id)
        self._require_fresh(change, evidence, found.migration_id)

    def _require_applicable(self, scope: Scope, stored: StoredMigration) -> None:
        found, migration_id = stored.standing, stored.standing.migration_id
        if found.applied or found.status in ("rejected", "superseded"):
            then = (
                found.instead_of_another_apply()
                if found.applied
                else "Propose it again with `gate migrate propose`, and have it approved."
            )
            raise OperatorError(
                "MIGRATION_NOT_OPEN",
                f"The migration {migration_id} was {found.sentence()}, so it cannot be applied now. {then}",
            )
        if found.approval is None and needs_approval(stored.manifest, stored.evidence):
            raise OperatorError(
                "MIGRATION_NOT_APPROVED",
                f"The migration {migration_id} is not approved. An approver can approve it with `gate migrate "
                f"approve {migration_id} --scope {scope.name} --evidence {found.evidence_hash}`.",
            )
        require_gate(stored.evidence, migration_id)

    def _require_fresh(self, change: Change, evidence: Mapping[str, Any], migration_id: str) -> None:
        stale = self._migrations.staleness(change, evidence)
        if stale:
            raise OperatorError(
                "EVIDENCE_STALE",
                f"The evidence of {migration_id} is stale. {' '.join(stale)} Propose the migration again with `gate "
                f"migrate propose`, and have it approved on the new evidence.",
            )

    def _route(
        self, change: Change, candidate: Candidate, found: Standing, user: User, note: str, now: datetime
    ) -> RouteEntry:
        routes = change.routes(candidate["rulebook_id"])
        approval = found.approval
        entry = route_entry(
            entry_id=new_id("rte", now),
            rulebook_id=candidate["rulebook_id"],
            before=routes[-1]["to"] if routes else None,
            after={"version": candidate["version"], "hash": candidate["hash"]},
            cause="apply",
            migration_id=found.migration_id,
            approval_hash=None if approval is None else approval["migration_hash"],
            evidence_hash=found.evidence_hash,
            actor=_actor(user),
            note=note,
            recorded_at=timestamp(now),
        )
        self._append_route(change, entry)
        return entry

    def _supersede(self, change: Change, applied_: Standing, user: User, now: datetime) -> None:
        ids = {of["rulebook_id"] for of in applied_.proposed["candidates"]}
        for found in standings_in(change):
            about = {of["rulebook_id"] for of in found.proposed["candidates"]}
            if found.migration_id != applied_.migration_id and found.state in ("proposed", "approved") and ids & about:
                entry = migration_entry(
                    entry_id=new_id("mig", now),
                    migration_id=found.migration_id,
                    event="superseded",
                    manifest_hash=found.proposed["manifest_hash"],
                    evidence_hash=found.evidence_hash,
                    candidates=found.proposed["candidates"],
                    actor=_actor(user),
                    note=f"{applied_.migration_id} was applied.",
                    recorded_at=timestamp(now),
                )
                self._append(change, entry)

    def _append(self, change: Change, entry: MigrationEntry) -> Standing:
        change.append(MIGRATIONS, entry)
        details = {"evidence_hash": entry["evidence_hash"], "by": entry["actor"]["id"]}
        change.log(f"migration.{entry['event']}", entry["migration_id"], **details)
        if entry["event"] in ("rejected", "superseded"):
            change.stop_shadow(entry["migration_id"], entry["actor"]["id"])
        found = standing_in(change, entry["migration_id"])
        return cast("Standing", found)

    def _append_route(self, change: Change, entry: RouteEntry) -> None:
        change.append(ROUTES, entry)
        change.log(
            "route.applied" if entry["cause"] == "apply" else "route.rolled_back",
            entry["rulebook_id"],
            version=entry["to"]["version"],
            migration_id=entry["migration_id"],
            by=entry["actor"]["id"],
        )


def _leads_to(routes: Sequence[RouteEntry], rulebook: Rulebook) -> bool:
    return bool(routes) and routes[-1]["to"]["hash"] == rulebook.hash


def _actor(user: User) -> Actor:
    # Names are never given to another user.
    return {"type": "user", "id": user.name}
