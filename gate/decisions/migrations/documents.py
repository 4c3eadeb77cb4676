"""The documents of migrations: proposals, stored documents, and their form in lists and answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypedDict

from gate.encoding.canonical import content_hash
from gate.errors import ServiceUnavailable
from gate.migration.standing import Standing
from gate.records.changes import Candidate, MigrationEntry, RouteEntry
from gate.rulebooks.documents import AdapterDependency, Annotations
from gate.rulebooks.rulebook import Rulebook

MANIFEST: Final = "manifest"
CANDIDATE: Final = "candidate"
EVIDENCE: Final = "evidence"
"""The kinds of documents that the entries of migrations cite."""


@dataclass(frozen=True, slots=True)
class ProposedRulebook:
    """A candidate as its author has it in a file.

    Attributes:
        rulebook: The rulebook, without annotations.
        annotations: The author's comments.
        dependency: The adapter that makes its facts, as `Sources.register` takes it; None where callers send them.
    """

    rulebook: Rulebook
    annotations: Annotations
    dependency: AdapterDependency | None

    @property
    def candidate(self) -> Candidate:
        """As entries name it."""
        rulebook = self.rulebook
        return {"rulebook_id": rulebook.rulebook_id, "version": rulebook.version, "hash": rulebook.hash}


@dataclass(frozen=True, slots=True)
class Proposal:
    """What an author proposes.

    Attributes:
        manifest: The migration's manifest.
        rulebooks: Its candidates.
        evidence: The evidence about them.
    """

    manifest: Mapping[str, Any]
    rulebooks: Sequence[ProposedRulebook]
    evidence: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class StoredMigration:
    """A migration as it is stored.

    Attributes:
        standing: Where it stands.
        manifest: Its manifest, as it was proposed last.
        evidence: The evidence of that proposal.
        entries: All entries about it, in the order of the chain.
        routes: The routes that cite it, and the rollbacks that took it back, in the order of the chain.
    """

    standing: Standing
    manifest: Mapping[str, Any]
    evidence: Mapping[str, Any]
    entries: Sequence[MigrationEntry]
    routes: Sequence[RouteEntry]


class MigrationSummary(TypedDict):
    """A migration in a list."""

    migration_id: str
    state: str
    status: str
    candidates: list[Candidate]
    manifest_hash: str
    evidence_hash: str
    proposed_by: str
    proposed_at: str
    decided_by: str | None
    decided_at: str | None


def migration_summary(found: Standing) -> MigrationSummary:
    """A migration as lists show it."""
    decided = found.decided
    return {
        "migration_id": found.migration_id,
        "state": found.state,
        "status": found.status,
        "candidates": found.proposed["candidates"],
        "manifest_hash": found.proposed["manifest_hash"],
        "evidence_hash": found.evidence_hash,
        "proposed_by": found.author,
        "proposed_at": found.proposed["recorded_at"],
        "decided_by": None if decided is None else decided["actor"]["id"],
        "decided_at": None if decided is None else decided["recorded_at"],
    }


def migration_document(stored: StoredMigration, stale: Sequence[str]) -> dict[str, Any]:
    """A migration with its manifest, which says where it stands, and all entries about it.

    Args:
        stored: The migration.
        stale: Why its evidence is stale, as sentences; empty where it is not, or where that no longer matters.
    """
    found = stored.standing
    approval = dict(stored.manifest["approval"])
    if found.decided is not None and found.status in ("approved", "rejected"):
        approval |= {"status": found.status}
        approval |= {"approved_by": found.decided["actor"]["id"], "approved_at": found.decided["recorded_at"]}
        approval |= {"notes": found.decided["note"]} if found.decided["note"] else {}
    return {
        **migration_summary(found),
        "manifest": {**stored.manifest, "status": found.status, "approval": approval},
        "entries": list(stored.entries),
        "routes": list(stored.routes),
        "stale": list(stale),
    }


def routes_document(routes: Mapping[str, Sequence[RouteEntry]]) -> dict[str, Any]:
    """The active route of each rulebook id, by id: `{count, routes}`."""
    return {"count": len(routes), "routes": [of[-1] for of in routes.values()]}


def is_evidence(evidence: Mapping[str, Any], hash_: str) -> bool:
    """Whether a document is the evidence of a hash."""
    rest = {name: value for name, value in evidence.items() if name != "evidence_hash"}
    return evidence.get("evidence_hash") == hash_ == content_hash(rest)


def candidate_document(of: ProposedRulebook) -> dict[str, object]:
    return {"rulebook": of.rulebook.body, "annotations": of.annotations, "adapter_dependency": of.dependency}


def damaged(what: str) -> ServiceUnavailable:
    """The error where a document that the chain cites is not there as it was stored."""
    return ServiceUnavailable(
        "SVC_STORAGE_UNAVAILABLE",
        f"In the ledger, the {what} is missing or was changed after it was stored. The operator must run `gate "
        "chain check`.",
    )
