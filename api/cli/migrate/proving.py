"""`gate migrate dry-run` and `propose`: prove a migration on a scope's own past, and propose it to an approver."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from api.cli.migrate.signing import Note, ScopeName, TokenFile, UserName, signed_in
from api.cli.options import DEFAULT_HOME, DatabaseUrl, Home, Json, instance_at
from api.cli.output import note as tell
from api.cli.output import print_json, progress, say
from api.cli.rulebook.runs import UnusableFile, run_file
from gate.clock import utc_now
from gate.errors import OperatorError
from gate.instance.fixtures import fixture_facts
from gate.migration.folder import Migration, read_migration
from gate.rulebooks.testing.cases import Case

# Checking a manifest needs no ledger and no lake.
if TYPE_CHECKING:
    from gate.instance.instance import Instance
    from workbench.migration.headline import Line
    from workbench.migration.proof import Proof

ManifestFile = Annotated[
    Path,
    typer.Argument(metavar="MANIFEST", help="The manifest of the migration, in JSON or YAML.", show_default=False),
]
CorpusIndex = Annotated[
    Path | None,
    typer.Option(
        "--corpus", metavar="INDEX", help="The index of a corpus to use instead of the manifest's.", show_default=False
    ),
]
CaseFiles = Annotated[
    list[Path],
    typer.Option(
        "--cases",
        help="A file of cases in the format of `gate rulebook test`, for the candidate with the id of its rulebook. "
        "Repeatable.",
    ),
]
Metric = Annotated[
    str | None,
    typer.Option(
        "--metric",
        help="Sum this value over the decisions that change: a metric of outcomes, such as refund_cost, or a fact as "
        "inputs.PATH.",
        show_default=False,
    ),
]
Since = Annotated[
    str | None,
    typer.Option(
        "--since",
        help="Only decisions from this day on, in UTC: 2026-06-01, or 2026-06-01T12:00:00Z.",
        show_default=False,
    ),
]
HistoryName = Annotated[
    str | None,
    typer.Option(
        "--history",
        metavar="NAME",
        help="Use the imported cases of this history instead of the scope's decisions. A case without a verdict counts "
        "as let through if it has an outcome.",
        show_default=False,
    ),
]
_NONE: list[Path] = []


def dry_run(
    manifest: ManifestFile,
    scope: ScopeName,
    corpus: CorpusIndex = None,
    cases: CaseFiles = _NONE,
    metric: Metric = None,
    since: Since = None,
    report: Annotated[
        Path | None,
        typer.Option("--report", help="Write the report to FILE.html, FILE.md or FILE.json.", show_default=False),
    ] = None,
    decisions: Annotated[
        Path | None,
        typer.Option(
            "--decisions", help="Write every decision that changes to FILE.parquet or FILE.csv.", show_default=False
        ),
    ] = None,
    history: HistoryName = None,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Prove a migration on the scope's own past, and change nothing.

    The candidate decides every stored decision again, and the fixtures of the corpus. The command compares it with the
    active version for all facts, and runs its cases.

    Exit codes: 0 the gate is open; 1 the gate is closed; 2 the command failed.
    """
    from gate.migration.approval import find_gate_faults
    from workbench.migration.headline import headline
    from workbench.migration.report import write_decisions, write_report

    # Before the work, so that nobody waits in vain.
    _require_place("--report", report, REPORT_ENDINGS)
    _require_place("--decisions", decisions, DECISIONS_ENDINGS)
    read = read_migration(manifest, corpus=corpus)
    with instance_at(home, database_url) as instance:
        of = instance.ledger.directory.scope(scope)
        instance.migrations().require_free(of, [candidate.rulebook for candidate in read.rulebooks])
        proof = _proved(instance, read, scope, cases, metric, since, history=history, as_json=as_json)
    evidence = proof.proposal.evidence
    document = {"migration_id": read.manifest.migration_id, "state": "draft", "manifest": read.manifest.body}
    if report is not None:
        write_report(report, document, evidence)
    if decisions is not None:
        write_decisions(decisions, proof.runs)
    faults = find_gate_faults(evidence)
    if as_json:
        print_json(evidence)
    else:
        print_lines(headline(evidence), faults)
        if report is not None:
            say(f"Wrote the report to {report}.")
        if history is not None:
            say(
                f"This dry run used the imported cases of the history {history}, which are not verified. You cannot "
                f"propose a migration with them."
            )
        elif not faults:
            options = _options(corpus, cases, metric, since)
            command = f"gate migrate propose {manifest} --scope {scope}{options} --user NAME"
            say(f"Next: propose it with `{command}`.")
    raise typer.Exit(1 if faults else 0)


def propose(
    manifest: ManifestFile,
    scope: ScopeName,
    user: UserName = None,
    token_file: TokenFile = None,
    note: Note = "",
    corpus: CorpusIndex = None,
    cases: CaseFiles = _NONE,
    metric: Metric = None,
    since: Since = None,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Prove a migration as `dry-run` does, and propose it with the evidence, under your name, to an approver.

    You can propose it again with new evidence until it is applied.

    Exit codes: 0 the gate is open; 1 the gate is closed: the migration is proposed, but nobody can approve it; 2 the
    command failed.
    """
    from gate.migration.approval import find_gate_faults, needs_approval
    from workbench.migration.headline import headline

    read = read_migration(manifest, corpus=corpus)
    with instance_at(home, database_url) as instance:
        of = instance.ledger.directory.scope(scope)
        # Before the work, so that nobody waits in vain.
        who = signed_in(instance, user, token_file)
        rulebooks = [candidate.rulebook for candidate in read.rulebooks]
        instance.migration_acts().require_proposable(of, who, read.manifest.body, rulebooks, note)
        proof = _proved(instance, read, scope, cases, metric, since, as_json=as_json)
        standing = instance.migration_acts().propose(of, who, proof.proposal, note)
    evidence = proof.proposal.evidence
    faults = find_gate_faults(evidence)
    migration_id = read.manifest.migration_id
    if as_json:
        print_json({"migration_id": migration_id, "evidence_hash": standing.evidence_hash, "gate_faults": faults})
    else:
        print_lines(headline(evidence), faults)
        say(f"Proposed {migration_id} as {who.name}. Evidence: {standing.evidence_hash}")
        if not faults and not needs_approval(read.manifest.body, evidence):
            command = f"gate migrate apply {migration_id} --scope {scope} --user NAME"
            say(f"Next: it needs no approval; apply it with `{command}`.")
        elif not faults:
            say("Next: another user reads the report and approves the evidence:")
            say(f"  gate migrate report {migration_id} --scope {scope}")
            say(f"  gate migrate approve {migration_id} --scope {scope} --user NAME \\")
            say(f"    --evidence {standing.evidence_hash}")
    raise typer.Exit(1 if faults else 0)


REPORT_ENDINGS: Final = (".html", ".md", ".json")
"""The file name endings of reports."""

DECISIONS_ENDINGS: Final = (".parquet", ".csv")
"""The file name endings of lists of decisions."""


def _options(corpus: Path | None, cases: Sequence[Path], metric: str | None, since: str | None) -> str:
    """The options of a dry run, as the command that makes the same evidence again takes them."""
    given = [("--corpus", corpus), *(("--cases", file) for file in cases), ("--metric", metric), ("--since", since)]
    return "".join(f" {option} {shlex.quote(str(value))}" for option, value in given if value is not None)


def _require_place(option: str, path: Path | None, endings: Sequence[str]) -> None:
    from workbench.migration.report import require_replaceable

    if path is None:
        return
    if path.suffix not in endings:
        *first, last = endings
        raise OperatorError(
            "REPORT_FORMAT_UNKNOWN",
            f"{path} has no known format; give {option} a file name that ends with {', '.join(first)} or {last}.",
        )
    require_replaceable(path)


_STYLES = {"danger": "red", "warning": "yellow", "good": "green", "note": ""}


def print_lines(lines: Sequence[Line], faults: Sequence[str]) -> None:
    for line in lines:
        # Percentages have a space that does not break, which a terminal would be shown as an escape.
        say(line.text.replace("\u00a0", " "), style=_STYLES[line.level])
    for fault in faults:
        say(f"The gate: {fault}", style="red")


def _proved(
    instance: Instance,
    read: Migration,
    scope: str,
    cases: Sequence[Path],
    metric: str | None,
    since: str | None,
    *,
    as_json: bool,
    history: str | None = None,
) -> Proof:
    from workbench.lake.entries import Personal
    from workbench.lake.fresh import fresh
    from workbench.lake.reader import history_of
    from workbench.migration.proof import Wanted, prove

    of = instance.ledger.directory.scope(scope)
    settings = instance.settings
    personal = Personal.of(settings.personal_fields)
    if history is not None:
        snapshot = history_of(settings.lake_directory, of.scope_id, of.name, history)
    else:
        with lake_errors():
            snapshot = fresh(instance.ledger, settings.lake_directory, of.scope_id, personal)
    wanted = Wanted(metric, day_of(since), None, _cases(read, cases))
    total = snapshot.position * len(read.rulebooks)
    with fixture_facts() as make_facts, progress("Repeating decisions", total, as_json=as_json) as done:
        return prove(of, read, instance.migrations(), snapshot, make_facts, wanted, told=lambda at, _: done(at))


@contextmanager
def lake_errors() -> Iterator[None]:
    """Suggests an export if the lake is too far behind. The service waits for its export; a command does not."""
    from gate.errors import ServiceUnavailable

    try:
        yield
    except ServiceUnavailable as error:
        if error.code != "SVC_REPORT_UNAVAILABLE":
            raise
        tell("Run `gate lake export`, then this command again.")
        raise


def _cases(read: Migration, files: Sequence[Path]) -> dict[str, list[Case]]:
    """The cases of the candidates, by rulebook id; each file names a rulebook of that id.

    Raises:
        OperatorError: CASES_UNUSABLE.
    """
    ids = {of.rulebook.rulebook_id for of in read.rulebooks}
    found: dict[str, list[Case]] = {}
    for file in files:
        run = run_file(file)
        if isinstance(run, UnusableFile):
            fault = run.error.message if str(file) in run.error.message else f"{file} is unusable: {run.error.message}"
            raise OperatorError("CASES_UNUSABLE", f"{fault} `gate rulebook test {file}` shows more.")
        if run.rulebook.rulebook_id not in ids:
            raise OperatorError(
                "CASES_UNUSABLE",
                f"{file} has cases of {run.rulebook.rulebook_id}, but the migration proposes {', '.join(sorted(ids))}.",
            )
        found.setdefault(run.rulebook.rulebook_id, []).extend(case.result.case for case in run.cases)
    return found


def day_of(text: str | None) -> datetime | None:
    # Its parent package needs the extra `workbench`.
    from workbench.period import begin

    try:
        day = begin(text)
    except ValueError as error:
        raise OperatorError("DATE_INVALID", f"{text!r} is not a date; write --since 2026-06-01.") from error
    if day is not None and day > utc_now():
        raise OperatorError(
            "DATE_INVALID", f"{text} is in the future, so there are no decisions since then; write an earlier day."
        )
    return day
