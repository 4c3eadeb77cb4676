"""`gate drafts dry-run` and `propose`: prove a draft on a scope's own past, and propose it to an approver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from api.cli.drafts.options import DraftId, ScopeName, drafting
from api.cli.migrate.proving import HistoryName, Metric, Since, day_of, lake_errors, print_lines
from api.cli.migrate.signing import Note, TokenFile, UserName
from api.cli.options import DEFAULT_HOME, DatabaseUrl, Home, Json, instance_at
from api.cli.output import print_json, progress, say
from gate.drafting.diagnosis import diagnose
from gate.errors import OperatorError
from gate.instance.fixtures import fixture_facts

if TYPE_CHECKING:
    from gate.instance.instance import Instance
    from gate.ledger.access.authority import Scope
    from workbench.migration.proof import Proof

MigrationName = Annotated[
    str | None,
    typer.Option(
        "--name", help="The id of the migration, which cannot be changed later. Default: the rulebook's id and version."
    ),
]
Summary = Annotated[
    str | None, typer.Option("--summary", help="What changes and why, for readers.", show_default=False)
]


def dry_run(
    draft: DraftId,
    scope: ScopeName,
    name: MigrationName = None,
    summary: Summary = None,
    metric: Metric = None,
    since: Since = None,
    history: HistoryName = None,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Prove a draft on the scope's own past, and change nothing. Exit code 1 if it cannot pass the gate."""
    from gate.migration.approval import find_gate_faults
    from workbench.migration.headline import headline

    with instance_at(home, database_url) as instance:
        of = instance.ledger.directory.scope(scope)
        proof = _proved(instance, of, draft, name, summary, metric, since, history=history, as_json=as_json)
        evidence = proof.proposal.evidence
    faults = find_gate_faults(evidence)
    if as_json:
        print_json(evidence)
    else:
        print_lines(headline(evidence), faults)
    raise typer.Exit(1 if faults else 0)


def propose(
    draft: DraftId,
    scope: ScopeName,
    name: MigrationName = None,
    summary: Summary = None,
    metric: Metric = None,
    since: Since = None,
    user: UserName = None,
    token_file: TokenFile = None,
    note: Note = "",
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Prove a draft as `dry-run` does, and propose it with the evidence, under your name, to an approver."""
    from gate.migration.approval import find_gate_faults
    from workbench.migration.headline import headline

    with drafting(home, database_url, scope, user, token_file) as (instance, of, who, _):
        proof = _proved(instance, of, draft, name, summary, metric, since, as_json=as_json)
        standing = instance.migration_acts().propose(of, who, proof.proposal, note)
    evidence = proof.proposal.evidence
    faults = find_gate_faults(evidence)
    if as_json:
        shown = {"migration_id": standing.migration_id, "evidence_hash": standing.evidence_hash}
        print_json({**shown, "gate_faults": faults})
    else:
        print_lines(headline(evidence), faults)
        say(f"Proposed {standing.migration_id} as {who.name}. Evidence: {standing.evidence_hash}")
    raise typer.Exit(1 if faults else 0)


def _proved(
    instance: Instance,
    scope: Scope,
    draft_id: str,
    name: str | None,
    summary: str | None,
    metric: str | None,
    since: str | None,
    *,
    as_json: bool,
    history: str | None = None,
) -> Proof:
    from workbench.migration.drafted import Drafted, proposed_id, prove_draft

    draft = instance.ledger.drafts.draft(scope.scope_id, draft_id)
    found = diagnose(draft.text)
    if found.rulebook is None or found.authored is None:
        raise OperatorError(
            "DRAFT_NOT_VALID", f"{draft.name} is not valid; `gate drafts check {draft_id}` shows where."
        )
    cases = [each.case for each in instance.ledger.draft_cases.of(scope.scope_id, draft_id)]
    drafted = Drafted(
        name or proposed_id(found.rulebook),
        summary,
        found.rulebook,
        found.authored.annotations,
        cases,
        metric,
        day_of(since),
    )
    total = instance.ledger.entries.head(scope.scope_id).size
    with lake_errors(), fixture_facts() as make_facts, progress("Repeating decisions", total, as_json=as_json) as done:
        return prove_draft(instance, scope, drafted, make_facts, history=history, told=lambda at, _: done(at))
