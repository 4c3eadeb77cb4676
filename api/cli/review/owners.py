"""`gate review owners`: the owners of a scope's held decisions."""

from __future__ import annotations

from typing import Annotated

import typer

from api.cli.migrate.signing import ScopeName
from api.cli.options import DEFAULT_HOME, DatabaseUrl, Home, Json, instance_at
from api.cli.output import counted, minute, note, print_json, say, table
from api.cli.review.spans import seconds_of, span
from gate.clock import utc_now
from gate.ledger.chain.reviews import GRANT_SECONDS, Terms
from gate.ledger.review_owners import Ownership

owners = typer.Typer(no_args_is_help=True, add_completion=False, help="Set who owns the held decisions of a scope.")

RulebookId = Annotated[
    str, typer.Option("--rulebook", help="The id of the rulebook. Default: all rulebooks without their own owner.")
]
ActionLabel = Annotated[
    str,
    typer.Option("--action", help="The action of the rulebook. Default: all its actions without their own owner."),
]


@owners.command("set")
def set_owner(
    scope: ScopeName,
    owner: Annotated[str, typer.Option("--owner", help="The name of a team or person.", show_default=False)],
    rulebook: RulebookId = "",
    action: ActionLabel = "",
    within: Annotated[
        str | None,
        typer.Option(
            "--within",
            help="The time limit of a review, such as 90s, 30m, 4h or 2d. Without it, a review never expires.",
            show_default=False,
        ),
    ] = None,
    grant_for: Annotated[
        str, typer.Option("--grant-for", help="How long a grant opens the action, such as 90s, 30m, 4h or 2d.")
    ] = f"{GRANT_SECONDS // 86_400}d",
    reassign: Annotated[
        bool,
        typer.Option(
            "--reassign",
            help="Also give this owner and time limit to reviews that are already held. The limit starts now.",
        ),
    ] = False,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Set the owner of reviews that begin from now on, their time limit, and how long a grant is valid."""
    terms = Terms(
        owner, None if within is None else seconds_of("--within", within), seconds_of("--grant-for", grant_for)
    )
    with instance_at(home, database_url) as instance:
        found = instance.ledger.directory.scope(scope)
        made = instance.ledger.review_owners.set(found, rulebook, action, terms, utc_now())
        known = not rulebook or bool(instance.ledger.rulebooks.versions(found.scope_id, rulebook, limit=1))
        moved = instance.ledger.review_owners.reassign(found, rulebook, action, utc_now()) if reassign else None
    if as_json:
        print_json({**_owner_json(made), **({} if moved is None else {"reassigned": moved})})
        return
    if not known:
        undo = "`gate review owners remove` removes the row"
        note(f"The scope {scope} has no rulebook {rulebook} yet. Check the id; {undo}.")
    limit = "without a time limit" if terms.within_seconds is None else f"within {span(terms.within_seconds)}"
    say(f"{owner} answers {_subject(made)} {limit}. A grant is valid for {span(terms.grant_seconds)}.")
    if moved is not None:
        say(f"{counted(moved, 'held review')} changed owner or time limit.")


@owners.command("list")
def list_owners(
    scope: ScopeName, home: Home = DEFAULT_HOME, database_url: DatabaseUrl = None, as_json: Json = False
) -> None:
    """List who owns the reviews of a scope. The most specific row applies."""
    with instance_at(home, database_url) as instance:
        found = instance.ledger.review_owners.of(instance.ledger.directory.scope(scope).scope_id)
    if as_json:
        print_json({"owners": [_owner_json(each) for each in found]})
        return
    if not found:
        say("There are no owners: reviews have no owner and no time limit. `gate review owners set` sets an owner.")
        return
    columns = ["rulebook", "action", "owner", "time limit", "grant valid for", "set (UTC)"]
    table(
        columns,
        [
            (
                each.rulebook_id or "(all others)",
                each.action or "(all others)",
                each.terms.owner,
                "none" if each.terms.within_seconds is None else span(each.terms.within_seconds),
                span(each.terms.grant_seconds),
                minute(each.set_at),
            )
            for each in found
        ],
        wraps=["owner"],
    )


@owners.command("remove")
def remove_owner(
    scope: ScopeName,
    rulebook: RulebookId = "",
    action: ActionLabel = "",
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Remove an owner. Reviews that are already held keep their owner and time limit."""
    with instance_at(home, database_url) as instance:
        instance.ledger.review_owners.remove(instance.ledger.directory.scope(scope), rulebook, action, utc_now())
    if as_json:
        print_json({"rulebook_id": rulebook, "action": action, "removed": True})
    else:
        say("Removed. Reviews that are already held keep their owner and time limit.")


def _owner_json(each: Ownership) -> dict[str, object]:
    return {
        "rulebook_id": each.rulebook_id or None,
        "action": each.action or None,
        "owner": each.terms.owner,
        "within_seconds": each.terms.within_seconds,
        "grant_seconds": each.terms.grant_seconds,
        "set_at": each.set_at,
    }


def _subject(each: Ownership) -> str:
    if not each.rulebook_id:
        return "every review without a more specific row"
    return f"the reviews of {each.rulebook_id}{f' with the action {each.action}' if each.action else ''}"
