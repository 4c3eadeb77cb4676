"""`gate drafts new`, `save`, `set`, `add`, `remove`, `fork`, `merge`, `rename`, `close`, `reopen`: change drafts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from api.cli.drafts.options import DraftId, ScopeName, drafting
from api.cli.migrate.signing import TokenFile, UserName
from api.cli.options import DEFAULT_HOME, DatabaseUrl, Home, Json, read_file
from api.cli.output import counted, print_json, say
from gate.drafting import editing
from gate.drafting.merging import merge
from gate.errors import OperatorError
from gate.ledger.drafts.drafts import Draft, Origin

MemberPath = Annotated[
    str, typer.Argument(metavar="PATH", help="The path of the field: rules[0].condition.value.", show_default=False)
]


def new(
    name: Annotated[str, typer.Argument(help="The name of the draft.", show_default=False)],
    scope: ScopeName,
    file: Annotated[
        Path | None, typer.Option("--file", help="Start with the text of this file.", show_default=False)
    ] = None,
    rulebook: Annotated[
        str | None,
        typer.Option("--rulebook", metavar="ID VERSION", help="Start with a registered version, such as `refunds 7`."),
    ] = None,
    user: UserName = None,
    token_file: TokenFile = None,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Create a draft from a file or from a registered version."""
    if (file is None) == (rulebook is None):
        raise OperatorError("USAGE_INVALID", "Give either --file or --rulebook to start with.")
    text = None if file is None else _text(file)
    with drafting(home, database_url, scope, user, token_file) as (_, of, who, acts):
        if text is not None and file is not None:
            made = acts.create(of, who, name, text, Origin("file", file.name))
        else:
            rulebook_id, _, version = str(rulebook).partition(" ")
            made = acts.begin(of, who, name, rulebook_id, version)
    _told(made, f"Made the draft {made.name}: {made.draft_id}", as_json=as_json)


def save(
    draft: DraftId,
    file: Annotated[Path, typer.Argument(help="The file with its text.", show_default=False)],
    scope: ScopeName,
    after: Annotated[
        int,
        typer.Option(
            "--after",
            help="The number of the edition that you edited, from `gate drafts list`.",
            show_default=False,
        ),
    ],
    user: UserName = None,
    token_file: TokenFile = None,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Save the text of a draft. Nothing is saved if somebody else saved a later edition."""
    text = _text(file)
    with drafting(home, database_url, scope, user, token_file) as (_, of, who, acts):
        saved = acts.save(of, who, draft, text, after=after)
    _told(saved, f"Saved {saved.name} as edition {saved.edition}.", as_json=as_json)


def set_(
    draft: DraftId,
    path: MemberPath,
    value: Annotated[
        str, typer.Argument(help="The new value: a word, a number, JSON, or `a, b` for a list.", show_default=False)
    ],
    scope: ScopeName,
    user: UserName = None,
    token_file: TokenFile = None,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Change one value of a draft. Comments and everything else stay unchanged."""
    with drafting(home, database_url, scope, user, token_file) as (instance, of, who, acts):
        found = instance.ledger.drafts.draft(of.scope_id, draft)
        saved = acts.save(of, who, draft, editing.set_value(found.text, path, value), after=found.edition)
    _told(saved, f"Changed {path} in {saved.name}; edition {saved.edition}.", as_json=as_json)


def remove(
    draft: DraftId,
    path: MemberPath,
    scope: ScopeName,
    user: UserName = None,
    token_file: TokenFile = None,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Remove a field, a rule, or a test from a draft."""
    with drafting(home, database_url, scope, user, token_file) as (instance, of, who, acts):
        found = instance.ledger.drafts.draft(of.scope_id, draft)
        saved = acts.save(of, who, draft, editing.remove(found.text, path), after=found.edition)
    _told(saved, f"Removed {path} from {saved.name}; edition {saved.edition}.", as_json=as_json)


def add(
    draft: DraftId,
    scope: ScopeName,
    like: Annotated[
        str | None, typer.Option("--like", metavar="RULE", help="Add a copy of this rule.", show_default=False)
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(
            "--to", metavar="PATH", help="Add a test to this condition: rules[0].condition.", show_default=False
        ),
    ] = None,
    user: UserName = None,
    token_file: TokenFile = None,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Add a rule to a draft, or a test to a condition."""
    if like is not None and to is not None:
        raise OperatorError("USAGE_INVALID", "Give either --like or --to, not both.")
    with drafting(home, database_url, scope, user, token_file) as (instance, of, who, acts):
        found = instance.ledger.drafts.draft(of.scope_id, draft)
        text = editing.add_rule(found.text, like=like) if to is None else editing.add_test(found.text, to)
        saved = acts.save(of, who, draft, text, after=found.edition)
    what = "rule" if to is None else "test"
    _told(saved, f"Added a {what} to {saved.name}; edition {saved.edition}.", as_json=as_json)


def fork(
    draft: DraftId,
    name: Annotated[str, typer.Argument(help="The name of the new draft.", show_default=False)],
    scope: ScopeName,
    file: Annotated[
        Path | None,
        typer.Option("--file", help="A file with its text. Default: the text of the draft.", show_default=False),
    ] = None,
    user: UserName = None,
    token_file: TokenFile = None,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Create a draft from another draft, with its cases."""
    text = None if file is None else _text(file)
    with drafting(home, database_url, scope, user, token_file) as (instance, of, who, acts):
        found = instance.ledger.drafts.draft(of.scope_id, draft)
        made = acts.fork(of, who, found, found.text if text is None else text, name)
    _told(made, f"Made the draft {made.name}: {made.draft_id}", as_json=as_json)


def merge_(
    draft: DraftId,
    file: Annotated[Path, typer.Argument(help="The file with your text.", show_default=False)],
    base: Annotated[
        Path, typer.Option("--base", help="The file with the text that you started with.", show_default=False)
    ],
    scope: ScopeName,
    user: UserName = None,
    token_file: TokenFile = None,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Save your text of a draft, merged with what others saved since you started. Exit code 1 if both changed the same
    line.
    """
    mine, begun = _text(file), _text(base)
    with drafting(home, database_url, scope, user, token_file) as (instance, of, who, acts):
        latest = instance.ledger.drafts.draft(of.scope_id, draft)
        merged = merge(begun, mine, latest.text)
        saved = acts.save(of, who, draft, merged.text, after=latest.edition)
    _told(saved, f"Saved the merged text of {saved.name} as edition {saved.edition}.", as_json=as_json)
    if merged.conflicts and not as_json:
        places = counted(merged.conflicts, "place")
        say(f"Both texts changed the same lines in {places}; resolve each conflict, and save.", style="yellow")
    raise typer.Exit(1 if merged.conflicts else 0)


def rename(
    draft: DraftId,
    name: Annotated[str, typer.Argument(help="The name of the draft.", show_default=False)],
    scope: ScopeName,
    user: UserName = None,
    token_file: TokenFile = None,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Rename a draft."""
    with drafting(home, database_url, scope, user, token_file) as (_, of, who, acts):
        renamed = acts.rename(of, who, draft, name)
    _told(renamed, f"Renamed the draft to {renamed.name}.", as_json=as_json)


def close(
    draft: DraftId,
    scope: ScopeName,
    user: UserName = None,
    token_file: TokenFile = None,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Close a draft, which removes it from the list of open drafts. Its text, revisions, and cases stay stored."""
    with drafting(home, database_url, scope, user, token_file) as (_, of, who, acts):
        closed = acts.close(of, who, draft)
    _told(closed, f"Closed {closed.name}. To undo this: `gate drafts reopen {draft} --scope {scope}`.", as_json=as_json)


def reopen(
    draft: DraftId,
    scope: ScopeName,
    user: UserName = None,
    token_file: TokenFile = None,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Open a closed draft again."""
    with drafting(home, database_url, scope, user, token_file) as (_, of, who, acts):
        opened = acts.reopen(of, who, draft)
    _told(opened, f"Reopened {opened.name}.", as_json=as_json)


def _told(draft: Draft, sentence: str, *, as_json: bool) -> None:
    if as_json:
        shown = draft.to_dict()
        print_json({name: value for name, value in shown.items() if name != "text"})
    else:
        say(sentence)


def _text(file: Path) -> str:
    try:
        return read_file(file).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise OperatorError("FILE_UNREADABLE", f"{file} is not UTF-8; save it in that encoding.") from error
