"""`gate migrate check`: the dry run of a migration over a golden replay corpus. Needs no instance."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from api.cli.migrate.lines import MOST_LISTED, advice, drift_line, summary
from api.cli.options import DEFAULT_HOME, DatabaseUrl, Home, Json
from api.cli.output import print_json, progress, say
from gate.instance.fixtures import fixture_facts
from gate.migration.drift import CorpusResult, check_drift
from gate.migration.folder import Migration, read_migration


def check(
    manifest: Annotated[
        Path,
        typer.Argument(metavar="MANIFEST", help="The manifest of the migration, in JSON or YAML.", show_default=False),
    ],
    corpus: Annotated[
        Path | None,
        typer.Option(
            "--corpus",
            metavar="INDEX",
            help="The index of a golden replay corpus. Default: the one in the manifest, or else the published one.",
            show_default=False,
        ),
    ] = None,
    allow_drift: Annotated[
        bool,
        typer.Option(
            "--allow-drift",
            help="Exit with 0 if the drift is exactly as expected, even if it is not approved yet.",
        ),
    ] = False,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Decide the fixtures of a corpus with a migration's candidate, and show which of them drift.

    The command tests a fixture if the candidate states its rulebook, its adapter, or an evaluator. A fixture drifts if
    the candidate decides it differently than the corpus states: another outcome, another rulebook, another hash.

    The gate passes if nothing drifts. It also passes if exactly the fixtures and fields in `expected_drift` drift, and
    the manifest is approved: `status` and `approval.status` are both `approved`. Unexpected drift always fails.

    With `--json`, read `gate_passed`: `ok` only says that nothing drifts. The other fields are `drift`, `unexpected`,
    `errors`, `counts`, `corpus`, `corpus_hash`, and `published`.

    Exit codes: 0 passed, or drift as expected with `--allow-drift`; 1 not passed; 2 the manifest, the candidate, or the
    corpus is unusable, and nothing was decided.
    """
    read = read_migration(manifest, corpus=corpus)
    result = _checked(read, as_json=as_json)
    if as_json:
        print_json(result.to_dict())
    else:
        _tell(result, allow_drift=allow_drift)
    passed = result.gate_passed or (allow_drift and result.as_expected)
    raise typer.Exit(0 if passed else 1)


def _checked(read: Migration, *, as_json: bool) -> CorpusResult:
    manifest, total = read.manifest, len(read.corpus.cases)
    with fixture_facts() as make_facts, progress("Fixtures", total, as_json=as_json) as tell:
        return check_drift(read.candidate, read.corpus, manifest.expected, manifest.approved, make_facts, progress=tell)


def _tell(result: CorpusResult, *, allow_drift: bool) -> None:
    for drift in result.drift[:MOST_LISTED]:
        say(drift_line(drift), style="red" if drift.unexpected else "yellow")
    if len(result.drift) > MOST_LISTED:
        say(f"... and {len(result.drift) - MOST_LISTED:,} more fixtures; --json lists all of them.")
    for error in result.errors[:MOST_LISTED]:
        say(error, style="red")
    if len(result.errors) > MOST_LISTED:
        say(f"... and {len(result.errors) - MOST_LISTED:,} more faults; --json lists all of them.")
    say(summary(result), style="green" if result.gate_passed else "red")
    for line in advice(result, allow_drift=allow_drift):
        say(line)
