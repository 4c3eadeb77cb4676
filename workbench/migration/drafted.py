"""A draft as a migration: the manifest that its author would write, and its proof, without a file.

    drafted = Drafted("refunds.2026-12", "The limit is lower.", rulebook, annotations, cases)
    proof = prove_draft(instance, scope, drafted, make_facts)
    proof.proposal.evidence

The workbench and `gate drafts` prove drafts this way, and `gate migrate dry-run` proves files; the proof is the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final

from gate.errors import OperatorError
from gate.instance.instance import Instance
from gate.ledger.access.authority import Scope
from gate.migration.corpus import published_corpus
from gate.migration.drafting import draft_manifest, expecting
from gate.migration.drift import MakeFacts, check_drift
from gate.migration.folder import CandidateRulebook, Migration
from gate.migration.manifest import NamedRulebook, read_manifest
from gate.rulebooks.documents import Annotations
from gate.rulebooks.rulebook import Rulebook
from gate.rulebooks.testing.cases import Case
from workbench.lake.entries import Personal
from workbench.lake.fresh import fresh
from workbench.lake.reader import history_of
from workbench.migration.proof import Proof, Wanted, prove

_FILE: Final = "candidate.yaml"
_UNFIT: Final = re.compile(r"[^a-z0-9_.:-]+")
_LONGEST: Final = 120


@dataclass(frozen=True, slots=True)
class Drafted:
    """A draft that is to become a migration.

    Attributes:
        migration_id: The migration's name, for good.
        summary: What changes and why; None where the author does not say.
        rulebook: The draft's rulebook.
        annotations: The author's comments.
        cases: The draft's cases.
        metric: The metric whose money is reported; None for none.
        since: Only decisions from this day on; None for all.
    """

    migration_id: str
    summary: str | None
    rulebook: Rulebook
    annotations: Annotations
    cases: Sequence[Case] = ()
    metric: str | None = None
    since: date | None = None


def proposed_id(rulebook: Rulebook) -> str:
    """A name for the migration of a rulebook, for its author to keep or to change."""
    return _UNFIT.sub("-", f"{rulebook.rulebook_id}.{rulebook.version}".lower())[:_LONGEST]


def prove_draft(
    instance: Instance,
    scope: Scope,
    drafted: Drafted,
    make_facts: MakeFacts,
    *,
    history: str | None = None,
    told: Callable[[int, int], None] = lambda done, total: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Proof:
    """Proves a draft on a scope's own past, and changes nothing.

    Its manifest expects exactly the drift that the published corpus shows, like that of `gate migrate new`.

    Args:
        instance: The instance.
        scope: The scope.
        drafted: The draft.
        make_facts: Runs an adapter for a fixture.
        history: The imported history that replaces the scope's decisions; None for the scope's own.
        told: Called with the number of chain positions that are done, and of all.
        cancelled: Asked from time to time whether to stop.

    Raises:
        MaterialRefused: `MIGRATION_INVALID`: the name or the summary is unusable.
        OperatorError: `MIGRATION_IN_FORCE`: the version is already active; `HISTORY_UNKNOWN`; or as `prove`.
        RulebookRefused: `RULEBOOK_VERSION_CONFLICT`: the version belongs to another rulebook.
        AdapterFailed: As `prove`.
        ServiceUnavailable: `SVC_REPORT_UNAVAILABLE`: the lake is too far behind; or `SVC_STORAGE_UNAVAILABLE`.
    """
    rulebook = drafted.rulebook
    body = draft_manifest(
        drafted.migration_id, [NamedRulebook(rulebook.rulebook_id, _FILE)], summary=drafted.summary or None
    )
    candidates = (CandidateRulebook(rulebook, drafted.annotations),)
    first = Migration(read_manifest(body), candidates, published_corpus())
    migrations = instance.migrations()
    migrations.require_free(scope, [rulebook])
    active = migrations.base(scope, rulebook.rulebook_id)
    if active is not None and active.hash == rulebook.hash:
        raise OperatorError(
            "MIGRATION_IN_FORCE",
            f"The draft is {rulebook.rulebook_id} {rulebook.version}, which is already active; change it first.",
        )
    drift = check_drift(first.candidate, first.corpus, first.manifest.expected, False, make_facts)
    migration = Migration(read_manifest(expecting(body, drift.drift)), candidates, first.corpus)
    settings = instance.settings
    if history is not None:
        snapshot = history_of(settings.lake_directory, scope.scope_id, scope.name, history)
    else:
        personal = Personal.of(settings.personal_fields)
        snapshot = fresh(instance.ledger, settings.lake_directory, scope.scope_id, personal)
    cases = {rulebook.rulebook_id: drafted.cases} if drafted.cases else {}
    wanted = Wanted(drafted.metric, drafted.since, None, cases)
    return prove(scope, migration, migrations, snapshot, make_facts, wanted, told=told, cancelled=cancelled)
