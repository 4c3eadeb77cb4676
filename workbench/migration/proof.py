"""The proof of a migration: its candidates on all facts, on the corpus, on their cases, and on past decisions.

    proof = prove(scope, read_migration(path), migrations, snapshot, cases={...}, make_facts=make_facts)
    proof.proposal            # what its author proposes: manifest, candidates, evidence
    proof.runs["refunds"]     # the dry run over the history, with every decision behind its figures

A proof changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

from gate.adapters.registry import find_adapter, registered
from gate.decisions.migrations.documents import Proposal, ProposedRulebook
from gate.decisions.migrations.reading import Migrations
from gate.encoding.strict_json import JsonObject
from gate.ledger.access.authority import Scope
from gate.migration.drift import MakeFacts, check_drift
from gate.migration.evidence import RulebookEvidence, make_evidence, rulebook_evidence
from gate.migration.folder import CandidateRulebook, Migration
from gate.rulebooks.analysis import analyse
from gate.rulebooks.documents import AdapterDependency
from gate.rulebooks.testing.cases import Case
from workbench.lake.reader import Snapshot
from workbench.migration.history import HistoryRun, LakeHistory, dry_run


@dataclass(frozen=True, slots=True)
class Wanted:
    """The inputs of a proof, in addition to the history.

    Attributes:
        metric: The metric whose sums are reported: a metric of the latest outcomes, or a fact as `inputs.<path>`.
        since: Only decisions from this moment on.
        until: Only decisions before this moment.
        cases: The cases of each candidate, by rulebook id.
    """

    metric: str | None = None
    since: date | None = None
    until: date | None = None
    cases: Mapping[str, Sequence[Case]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Proof:
    """A migration, proved.

    Attributes:
        proposal: What its author proposes.
        runs: The dry run over the history of each candidate, by rulebook id.
    """

    proposal: Proposal
    runs: Mapping[str, HistoryRun]


def prove(
    scope: Scope,
    migration: Migration,
    migrations: Migrations,
    snapshot: Snapshot,
    make_facts: MakeFacts,
    wanted: Wanted | None = None,
    *,
    told: Callable[[int, int], None] = lambda done, total: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Proof:
    """Proves a migration.

    Args:
        scope: The scope.
        migration: The manifest, its candidates, and its corpus.
        migrations: The scope's migrations and routes.
        snapshot: The scope's chain.
        make_facts: Runs an adapter for a fixture.
        wanted: Its other inputs.
        told: Called with the number of chain positions that are done, and of all.
        cancelled: Asked from time to time whether to stop.

    Raises:
        OperatorError: `DRY_RUN_CANCELLED`, `LAKE_MOVED_ON`, or `MIGRATION_ADAPTER_UNCLEAR`.
        AdapterFailed: An adapter timed out on a fixture.
        ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
    """
    wanted = wanted or Wanted()
    manifest = migration.manifest
    corpus = check_drift(migration.candidate, migration.corpus, manifest.expected, False, make_facts)
    adapters = [find_adapter(registered(), of.adapter_id, of.version) for of in manifest.adapters]
    named = [adapter.dependency for adapter in adapters if adapter is not None]
    made_by = migrations.dependencies(scope, [of.rulebook for of in migration.rulebooks], named)
    proposed, found, runs = [], [], {}
    total = snapshot.position * len(migration.rulebooks)
    for number, candidate in enumerate(migration.rulebooks):
        before = number * snapshot.position
        dependency = made_by[candidate.rulebook.rulebook_id]
        evidence, run = _proved(
            scope,
            candidate,
            dependency,
            migrations,
            snapshot,
            wanted,
            lambda done, _, before=before: told(before + done, total),  # type: ignore[misc]
            cancelled,
        )
        proposed.append(ProposedRulebook(candidate.rulebook, candidate.annotations, dependency))
        found.append(evidence)
        runs[candidate.rulebook.rulebook_id] = run
    evidence_ = make_evidence(manifest.body, corpus.to_dict(), found)
    return Proof(Proposal(manifest.body, proposed, evidence_), runs)


def _proved(
    scope: Scope,
    candidate: CandidateRulebook,
    dependency: AdapterDependency | None,
    migrations: Migrations,
    snapshot: Snapshot,
    wanted: Wanted,
    told: Callable[[int, int], None],
    cancelled: Callable[[], bool],
) -> tuple[RulebookEvidence, HistoryRun]:
    rulebook = candidate.rulebook
    active = migrations.base(scope, rulebook.rulebook_id)
    base = None if active is None else migrations.rulebook(scope, active)
    analysis = analyse(rulebook.body, None if base is None else base.body, _facts_schema(dependency))
    run = dry_run(
        LakeHistory(snapshot, rulebook.rulebook_id),
        rulebook,
        base,
        metric=wanted.metric,
        since=wanted.since,
        until=wanted.until,
        adapter_manifest_hash=None if dependency is None else dependency["manifest_hash"],
        difference=analysis.difference,
        told=told,
        cancelled=cancelled,
    )
    evidence = rulebook_evidence(
        rulebook,
        base,
        difference=analysis.difference,
        analysis=analysis,
        cases=wanted.cases.get(rulebook.rulebook_id),
        history=run.body,
    )
    return evidence, run


def _facts_schema(dependency: AdapterDependency | None) -> JsonObject | None:
    if dependency is None:
        return None
    adapter = find_adapter(registered(), dependency["adapter_id"], dependency["version"])
    return None if adapter is None else adapter.facts_schema
