"""`gate drafts list`, `show`, `check`, `revisions`, and `compare`: read drafts."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from api.cli.drafts.options import DraftId, ScopeName
from api.cli.options import DEFAULT_HOME, DatabaseUrl, Home, Json, instance_at
from api.cli.output import counted, minute, note, print_json, print_text, say, table
from gate.drafting.diagnosis import Problem, diagnose
from gate.errors import OperatorError
from gate.rulebooks.edits import find_edits


def list_drafts(
    scope: ScopeName,
    closed: Annotated[bool, typer.Option("--closed", help="List the closed drafts instead.")] = False,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """List the drafts of a scope, the latest saved first."""
    with instance_at(home, database_url) as instance:
        found = instance.ledger.drafts.of(instance.ledger.directory.scope(scope).scope_id, closed=closed)
    if as_json:
        print_json({"drafts": [draft.to_dict() for draft in found]})
        return
    rows = [
        [draft.draft_id, draft.name, draft.saved_by, minute(draft.saved_at), draft.revision, draft.edition]
        for draft in found
    ]
    table(["draft", "name", "saved by", "saved (UTC)", "revision", "edition"], rows, wraps=["name"])


def show(
    draft: DraftId,
    scope: ScopeName,
    revision: Annotated[int | None, typer.Option("--revision", help="Show this revision, by its number.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", help="Write to this new file instead of stdout.", show_default=False)
    ] = None,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Show the text of a draft, as its author typed it."""
    with instance_at(home, database_url) as instance:
        scope_id = instance.ledger.directory.scope(scope).scope_id
        found = instance.ledger.drafts.draft(scope_id, draft)
        text = found.text
        if revision is not None:
            text = instance.ledger.drafts.revision(scope_id, draft, revision).text
    if output is not None:
        _write(output, text)
        again = (
            ""
            if revision not in (None, found.revision)
            else f" To save it again: `gate drafts save {draft} {output} --scope {scope} --after {found.edition} "
            f"--user NAME`."
        )
        note(f"Wrote {found.name} to {output}.{again}")
    if as_json:
        print_json({**found.to_dict(), "text": text})
    elif output is None:
        print_text(text)


def check(
    draft: DraftId,
    scope: ScopeName,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Check whether a draft is a valid rulebook, and show the line of each error and warning. Exit code 1 if it is
    invalid.
    """
    with instance_at(home, database_url) as instance:
        found = instance.ledger.drafts.draft(instance.ledger.directory.scope(scope).scope_id, draft)
    diagnosis = diagnose(found.text)
    valid = diagnosis.rulebook is not None
    if as_json:
        print_json({"valid": valid, "problems": [_problem(each) for each in diagnosis.problems]})
    else:
        for each in diagnosis.problems:
            where = f" {each.field}:" if each.field else ""
            say(f"line {each.line}: {each.severity}:{where} {each.message}", style="red" if not valid else "yellow")
        say(f"{found.name}: {'valid' if valid else 'not valid'}.", style="green" if valid else "red")
    raise typer.Exit(0 if valid else 1)


def revisions(
    draft: DraftId,
    scope: ScopeName,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """List the revisions of a draft, with author and time. Successive edits by one author are one revision."""
    with instance_at(home, database_url) as instance:
        found = instance.ledger.drafts.revisions(instance.ledger.directory.scope(scope).scope_id, draft)
    if as_json:
        shown = [
            {"number": each.number, "saved_by": each.saved_by, "begun_at": each.begun_at, "saved_at": each.saved_at}
            for each in found
        ]
        print_json({"revisions": shown})
        return
    rows = [[each.number, each.saved_by, minute(each.begun_at), minute(each.saved_at)] for each in found]
    table(["revision", "saved by", "begun (UTC)", "saved last (UTC)"], rows)


def compare(
    draft: DraftId,
    scope: ScopeName,
    revision: Annotated[int | None, typer.Option("--revision", help="A revision of the draft, by its number.")] = None,
    rulebook: Annotated[
        str | None, typer.Option("--rulebook", metavar="ID VERSION", help="A registered version, such as `refunds 7`.")
    ] = None,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Show what was edited since a revision or compared with a registered version, and what changes for all facts."""
    from gate.rulebooks.analysis import compare as compared

    if (revision is None) == (rulebook is None):
        raise OperatorError("USAGE_INVALID", "Give either --revision or --rulebook to compare with.")
    with instance_at(home, database_url) as instance:
        of = instance.ledger.directory.scope(scope)
        found = instance.ledger.drafts.draft(of.scope_id, draft)
        if revision is not None:
            other = instance.ledger.drafts.revision(of.scope_id, draft, revision).text
        else:
            rulebook_id, _, version = str(rulebook).partition(" ")
            other = instance.draft_acts().registered_text(of, rulebook_id, version)
    now, then = diagnose(found.text).rulebook, diagnose(other).rulebook
    if now is None or then is None:
        raise OperatorError(
            "DRAFT_NOT_VALID",
            "One of the two texts is not a valid rulebook; `gate drafts check` shows the errors of the draft.",
        )
    edits = find_edits(then.body, now.body)
    difference = compared(then.body, now.body)
    if as_json:
        print_json({"edits": [asdict(edit) for edit in edits], "difference": difference.to_dict()})
        return
    for edit in edits:
        say(edit.text)
    for region in difference.regions:
        say(f"{region.severity}: {region.before.decision} becomes {region.after.decision} where {region.condition}")
    regions = counted(len(difference.regions), "region")
    say(f"{counted(len(edits), 'edit')}; the outcome changes in {regions} of facts.")
    for undecided in difference.undecided:
        say(f"Not decided: {undecided}", style="yellow")


def _problem(of: Problem) -> dict[str, object]:
    return {"severity": of.severity, "line": of.line, "field": of.field, "code": of.code, "message": of.message}


def _write(file: Path, text: str) -> None:
    try:
        with file.open("x", encoding="utf-8") as opened:
            opened.write(text)
    except FileExistsError as error:
        raise OperatorError("FILE_EXISTS", f"{file} already exists; choose another file.") from error
    except OSError as error:
        raise OperatorError("FILE_UNWRITABLE", f"{file} cannot be written: {error.strerror}.") from error
