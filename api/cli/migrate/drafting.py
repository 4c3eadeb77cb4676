"""`gate migrate new`: a manifest for candidates, with the drift that a corpus shows. Needs no instance."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from api.cli.migrate.lines import summary as gate_summary
from api.cli.options import DEFAULT_HOME, DatabaseUrl, Home, Json
from api.cli.output import counted, print_json, progress, say
from api.cli.rulebook.files import RulebookFile, read_rulebook
from gate.errors import OperatorError
from gate.instance.fixtures import fixture_facts
from gate.migration.drafting import draft_manifest, expecting
from gate.migration.drift import CorpusResult, check_drift
from gate.migration.folder import read_draft
from gate.migration.manifest import NamedRulebook, read_manifest
from gate.rulebooks.advice import find_warnings


def new(
    migration_id: Annotated[
        str, typer.Argument(help="The id of the migration. It cannot be changed later.", show_default=False)
    ],
    candidate: Annotated[
        list[Path],
        typer.Option("--candidate", metavar="FILE", help="A candidate rulebook. Repeatable.", show_default=False),
    ],
    summary: Annotated[
        str | None, typer.Option("--summary", help="What changes and why, for readers.", show_default=False)
    ] = None,
    compatibility_class: Annotated[
        str, typer.Option("--class", help="rulebook, or public_response if the answers to callers change.")
    ] = "rulebook",
    corpus: Annotated[
        Path | None,
        typer.Option(
            "--corpus",
            metavar="INDEX",
            help="The index of your own golden replay corpus, in the manifest's folder or below.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="The manifest to write. Default: MIGRATION_ID.json next to the first candidate.",
            show_default=False,
        ),
    ] = None,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Write the manifest of a migration next to its candidates.

    The candidates decide the corpus, and every fixture and field that drifts goes into `expected_drift`. Check the list
    yourself: it shows what drifts, not what should. The command also shows warnings about the candidates. It approves
    nothing, and overwrites no file.
    """
    file = out or candidate[0].parent / f"{migration_id}.json"
    rulebooks = [_valid(path) for path in candidate]
    named = [
        NamedRulebook(rulebook.authored.body["rulebook_id"], _below(path, file, "The candidate"))
        for path, rulebook in zip(candidate, rulebooks, strict=True)
    ]
    index = None if corpus is None else _below(corpus, file, "The corpus")
    draft = draft_manifest(migration_id, named, compatibility_class=compatibility_class, summary=summary, corpus=index)
    read = read_draft(draft, file)
    with fixture_facts() as make_facts, progress("Fixtures", len(read.corpus.cases), as_json=as_json) as tell:
        found = check_drift(read.candidate, read.corpus, read.manifest.expected, False, make_facts, progress=tell)
    body = expecting(draft, found.drift)
    read_manifest(body)
    _write(file, json.dumps(body, indent=2, ensure_ascii=False) + "\n")
    warnings = [(rulebook, find_warnings(rulebook.authored.body)) for rulebook in rulebooks]
    if as_json:
        print_json(
            {
                "migration_id": migration_id,
                "file": str(file),
                "manifest": body,
                "warnings": [
                    {"file": rulebook.name, **finding.to_dict()}
                    for rulebook, of in warnings
                    for finding in rulebook.document.findings(of)
                ],
                "errors": list(found.errors),
            }
        )
    else:
        for rulebook, of in warnings:
            rulebook.tell([], of)
        _tell(file, found)


def _valid(path: Path) -> RulebookFile:
    """The valid rulebook in a file.

    Raises:
        OperatorError: FILE_UNREADABLE or RULEBOOK_INVALID.
        MaterialRefused: SVC_API_JSON_INVALID or YAML_INVALID.
    """
    read = read_rulebook(path)
    if read.authored.errors:
        first = read.authored.errors[0]
        raise OperatorError(
            "RULEBOOK_INVALID",
            f"{path} is not a valid rulebook: {first.field or 'the file'}: {first.message} `gate rulebook check "
            f"{path}` shows all errors.",
        )
    return read


def _below(path: Path, manifest: Path, what: str) -> str:
    """A file as a manifest names it.

    Raises:
        OperatorError: USAGE_INVALID: it lies elsewhere.
    """
    # By its name alone: a manifest follows no symbolic link either.
    relative = Path(os.path.relpath(path, manifest.parent))
    if os.pardir in relative.parts:
        raise OperatorError(
            "USAGE_INVALID",
            f"{what} {path} is outside of {manifest.parent}, the manifest's folder. Copy it there, or choose a "
            f"manifest above it with --out.",
        )
    return relative.as_posix()


def _write(file: Path, text: str) -> None:
    """Writes a file that is not there yet.

    Raises:
        OperatorError: MIGRATION_EXISTS or MIGRATION_UNWRITABLE.
    """
    try:
        with file.open("x", encoding="utf-8") as made:
            made.write(text)
    except FileExistsError as error:
        raise OperatorError(
            "MIGRATION_EXISTS", f"{file} already exists; edit it, or choose another file with --out."
        ) from error
    except OSError as error:
        raise OperatorError("MIGRATION_UNWRITABLE", f"{file} cannot be written: {error.strerror}.") from error


def _tell(file: Path, found: CorpusResult) -> None:
    for line in _lines(file, found):
        say(line)
    for error in found.errors:
        say(error, style="red")
    if found.ok:
        say(f"Next: prove it on the past with `gate migrate dry-run {file} --scope SCOPE`.")
    else:
        say(f"Next: `gate migrate check {file}` shows each fixture that drifts.")


def _lines(file: Path, found: CorpusResult) -> Sequence[str]:
    if not found.concerned:
        return (
            f"Wrote {file}. It expects no drift: no fixture of {found.label} has a rulebook of the candidate, so "
            f"the corpus shows nothing.",
        )
    if found.ok:
        return (f"Wrote {file}. It expects no drift: {gate_summary(found).partition(': ')[2]}.",)
    drifting = f"{counted(len(found.drift), 'fixture')} of {found.label}"
    return (f"Wrote {file}. It expects drift in {drifting}, and that needs approval.",)
