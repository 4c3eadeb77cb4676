"""Migrations as tests make them: users who sign them, manifests, and evidence like that of the documentation."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gate.clock import utc_now
from gate.contract.published import corpus_hash
from gate.decisions.migrations.acts import MigrationActs
from gate.decisions.migrations.documents import Proposal, ProposedRulebook, StoredMigration
from gate.decisions.migrations.reading import Migrations
from gate.encoding import resources
from gate.encoding.canonical import content_hash
from gate.instance.instance import Instance
from gate.labels import MIGRATION
from gate.ledger.access.authority import Scope
from gate.ledger.access.users import User
from gate.migration.standing import Standing, standing
from gate.records.changes import (
    Actor,
    Candidate,
    Event,
    MigrationEntry,
    RouteEntry,
    Version,
    migration_entry,
    route_entry,
)
from gate.rulebooks.rulebook import Rulebook, load
from tests.support.samples import sample_rulebook


def candidate(version: str, margin: float = 15, **changes: Any) -> Rulebook:
    """The sample rulebook under another version, with another margin."""
    body = sample_rulebook()
    body["version"] = version
    for rule in body["rules"]:
        for test in rule["condition"].get("all", [rule["condition"]]):
            if test["field"] == "margin_percent":
                test["value"] = margin
    return load({**body, **changes})


def manifest(migration_id: str, rulebooks: Sequence[Rulebook], *, approval: str = "pending") -> dict[str, Any]:
    """A manifest that proposes some rulebooks."""
    listed = [{"rulebook_id": of.rulebook_id, "path": f"{of.rulebook_id}.json"} for of in rulebooks]
    return {
        "schema_version": MIGRATION,
        "migration_id": migration_id,
        "status": "proposed",
        "compatibility_class": "rulebook",
        "candidate": {"rulebooks": listed},
        "expected_drift": {"policy": "none" if approval == "not_required" else "requires_approval"},
        "approval": {"status": approval},
    }


def _example() -> dict[str, Any]:
    """The evidence of the documentation's example, without its hash."""
    found: dict[str, Any] = json.loads(resources.path("schemas", "examples", "migration-evidence.json").read_bytes())
    del found["evidence_hash"]
    return found


def evidence(
    of: Mapping[str, Any],
    rulebooks: Sequence[Rulebook],
    bases: Mapping[str, Version | None],
    position: int,
    decisions: int,
    *,
    equal: bool = False,
    failures: Sequence[str] = (),
    unexpected: Sequence[Mapping[str, Any]] = (),
    corpus: str | None = None,
) -> dict[str, Any]:
    """Evidence about a manifest: that of the documentation's example, but for what an approval looks at."""
    found = _example()
    (example,), corpus_found = found["rulebooks"], found["corpus"]
    found |= {"migration_id": of["migration_id"], "manifest_hash": content_hash(of)}
    found["rulebooks"] = []
    for rulebook in rulebooks:
        base = bases[rulebook.rulebook_id]
        after: Version = {"version": rulebook.version, "hash": rulebook.hash}
        about = copy.deepcopy(example)
        about |= {"rulebook_id": rulebook.rulebook_id, "base": base, "candidate": after}
        about["edits"] = None if base is None else [] if equal else about["edits"]
        if base is None or equal:
            about["history"]["regions"] = []
        if base is None:
            about["difference"] = None
        elif equal:
            about["difference"] = {"equal": True, "decided": True, "regions": [], "undecided": []}
        told = [{"case": f"case {number}", "message": said, "rules": []} for number, said in enumerate(failures, 1)]
        about["tests"] |= {"failed": len(told), "failures": told}
        about["history"] |= {"rulebook_id": rulebook.rulebook_id, "base": base, "candidate": after}
        about["history"] |= {"decisions": decisions, "redecided": decisions}
        about["history"]["read_at"]["chain_position"] = position
        found["rulebooks"].append(about)
    corpus_found |= {"ok": not unexpected, "drift": list(unexpected), "unexpected": list(unexpected)}
    corpus_found["corpus_hash"] = corpus or corpus_hash()
    return {**found, "evidence_hash": content_hash(found)}


@dataclass(frozen=True)
class Desk:
    """A scope with an author and an approver, and what they do."""

    instance: Instance
    scope: Scope
    author: User
    approver: User
    max_new_share: float = 0.05

    @property
    def migrations(self) -> Migrations:
        """What is stored of them."""
        instance = self.instance
        return Migrations(instance.ledger, instance.gate().sources, corpus_hash(), self.max_new_share)

    @property
    def acts(self) -> MigrationActs:
        """What people do with migrations."""
        return MigrationActs(self.instance.ledger, self.instance.gate().sources, utc_now, self.migrations)

    def proposal(self, migration_id: str, *rulebooks: Rulebook, approval: str = "pending", **found: Any) -> Proposal:
        """A proposal with evidence of now."""
        made = manifest(migration_id, rulebooks, approval=approval)
        with self.instance.ledger.changes.reading(self.scope.scope_id) as reader:
            bases: dict[str, Version | None] = {}
            decisions = 0
            for rulebook in rulebooks:
                routes = reader.routes(rulebook.rulebook_id)
                bases[rulebook.rulebook_id] = routes[-1]["to"] if routes else None
                decisions = reader.count_decided(rulebook.rulebook_id, after=0)
        position = self.instance.ledger.entries.head(self.scope.scope_id).size
        about = evidence(made, rulebooks, bases, position, decisions, **found)
        return Proposal(copy.deepcopy(made), [ProposedRulebook(of, {}, None) for of in rulebooks], about)

    def propose(self, migration_id: str, *rulebooks: Rulebook, **found: Any) -> Standing:
        """Proposes rulebooks."""
        return self.acts.propose(self.scope, self.author, self.proposal(migration_id, *rulebooks, **found), "")

    def approve(self, standing: Standing) -> Standing:
        """Approves what was proposed."""
        return self.acts.approve(self.scope, self.approver, standing.migration_id, standing.evidence_hash, "")

    def route(self, migration_id: str, rulebook: Rulebook) -> RouteEntry:
        """Proposes, approves and applies a rulebook."""
        self.approve(self.propose(migration_id, rulebook))
        (route,) = self.acts.apply(self.scope, self.author, migration_id, "")
        return route


def user(name: str, scope: Scope, role: str | None) -> User:
    """A user who is signed in; adding one to the ledger would hash a password, which takes a tenth of a second."""
    roles = {} if role is None else {scope.scope_id: role}
    return User(f"usr_{name}", name, roles, {scope.scope_id: scope.name}, "", None, None, None, 0)


def desk(instance: Instance, scope: Scope) -> Desk:
    """An author and an approver for a scope."""
    return Desk(instance, scope, user("ada", scope, "author"), user("ben", scope, "approver"))


ADA: Actor = {"type": "user", "id": "ada"}
BEN: Actor = {"type": "user", "id": "ben"}


class Example:
    """The migrations of the documentation's examples: two of the sample rulebook, approved and applied one after the
    other, over fixed ids and dates.

    Attributes:
        stored: Both migrations, the later one first.
        routes: Their routes, in the order of the chain.
        changes: All entries, in the order of the chain.
    """

    def __init__(self) -> None:
        self.stored: list[StoredMigration] = []
        self.routes: list[RouteEntry] = []
        self.changes: list[MigrationEntry | RouteEntry] = []
        base = None
        for month, migration_id, version, margin, note in (
            ("06", "pricing_2026_06", "2026-06-11", 15, ""),
            ("12", "pricing_2026_12", "2026-12-01", 12, "The seven new approvals are of the winter sale."),
        ):
            base = self._apply(f"2026-{month}", migration_id, candidate(version, margin), base, note)

    def _apply(self, month: str, migration_id: str, rulebook: Rulebook, base: Version | None, note: str) -> Version:
        """Proposes, approves and applies a rulebook; the version that is in force then."""
        made = manifest(migration_id, [rulebook])
        bases = {rulebook.rulebook_id: base}
        found = evidence(made, [rulebook], bases, position=64, decisions=40, corpus="c" * 64)
        named: Candidate = {"rulebook_id": rulebook.rulebook_id, "version": rulebook.version, "hash": rulebook.hash}
        after: Version = {"version": rulebook.version, "hash": rulebook.hash}

        def entry(event: Event, actor: Actor, said: str, minute: int) -> MigrationEntry:
            made_entry = migration_entry(
                entry_id=f"mig_{len(self.changes) + 1:032x}",
                migration_id=migration_id,
                event=event,
                manifest_hash=content_hash(made),
                evidence_hash=found["evidence_hash"],
                candidates=[named],
                actor=actor,
                note=said,
                recorded_at=f"{month}-02T09:{minute:02}:00.000Z",
            )
            self.changes.append(made_entry)
            return made_entry

        entries = [entry("proposed", ADA, "", 0), entry("approved", BEN, note, 30)]
        route = route_entry(
            entry_id=f"rte_{len(self.changes) + 1:032x}",
            rulebook_id=rulebook.rulebook_id,
            before=base,
            after=after,
            cause="apply",
            migration_id=migration_id,
            approval_hash=entries[1]["migration_hash"],
            evidence_hash=found["evidence_hash"],
            actor=ADA,
            note="",
            recorded_at=f"{month}-02T09:45:00.000Z",
        )
        self.changes.append(route)
        self.routes.append(route)
        where = standing(entries, [route])
        assert where is not None
        self.stored.insert(0, StoredMigration(where, made, found, entries, [route]))
        return after
