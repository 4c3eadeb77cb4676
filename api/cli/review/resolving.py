"""`gate review grant` and `refuse`: an approver signs in and resolves a held decision."""

from __future__ import annotations

from typing import Annotated

import typer

from api.cli.migrate.signing import ScopeName, TokenFile, UserName, signed_in
from api.cli.options import DEFAULT_HOME, DatabaseUrl, Home, Json, instance_at
from api.cli.output import minute, print_json, say
from api.cli.output import note as say_besides
from gate.clock import utc_now
from gate.decisions.stored import decision_not_found, require_as_made, stored_record
from gate.ids import timestamp
from gate.instance.instance import Instance
from gate.ledger.access.authority import Scope
from gate.records.documents import Record, Resolution
from gate.verify.dead_keys import dead_key

DecisionId = Annotated[str, typer.Argument(help="The id of the held decision.", show_default=False)]
Note = Annotated[
    str, typer.Option("--note", help="The reason. It stays in the chain, so include no personal data of customers.")
]
Evidence = Annotated[
    list[str] | None,
    typer.Option(
        "--evidence", help="A reference to evidence that is stored elsewhere. Repeatable.", show_default=False
    ),
]
RecordHash = Annotated[
    str | None,
    typer.Option(
        "--record-hash",
        help="The record_hash that you read. The command fails if the record has another one.",
        show_default=False,
    ),
]


def grant(
    decision_id: DecisionId,
    scope: ScopeName,
    user: UserName = None,
    token_file: TokenFile = None,
    note: Note = "",
    evidence: Evidence = None,
    record_hash: RecordHash = None,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Grant a held action. This is final, and needs the role approver."""
    with instance_at(home, database_url) as instance:
        found = instance.ledger.directory.scope(scope)
        who, read = signed_in(instance, user, token_file), evidence or ()
        resolution = instance.resolutions().resolve_as(
            who, found, decision_id, "granted", note=note, evidence=read, record_hash=record_hash
        )
        shut = dead_key(record_of(instance, found, decision_id), resolution, instance.receipt_keys.registry())
    _answer(resolution, as_json, shut)


def refuse(
    decision_id: DecisionId,
    scope: ScopeName,
    user: UserName = None,
    token_file: TokenFile = None,
    note: Note = "",
    evidence: Evidence = None,
    record_hash: RecordHash = None,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Refuse a held action. This is final, and needs the role approver."""
    with instance_at(home, database_url) as instance:
        found = instance.ledger.directory.scope(scope)
        who, read = signed_in(instance, user, token_file), evidence or ()
        resolution = instance.resolutions().resolve_as(
            who, found, decision_id, "refused", note=note, evidence=read, record_hash=record_hash
        )
    _answer(resolution, as_json)


def _answer(resolution: Resolution, as_json: bool, shut: str | None = None) -> None:
    if as_json:
        print_json(resolution)
        if shut is not None:
            say_besides(f"WARNING: {shut}")
    else:
        tell(resolution, resolution["resolution"], shut)


def record_of(instance: Instance, scope: Scope, decision_id: str) -> Record:
    """The record of a decision, unchanged since the decision.

    Raises:
        NotFound: `SVC_DECISION_NOT_FOUND`.
        ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`: the record cannot be read, or was changed.
    """
    entry = instance.ledger.entries.decision(scope.scope_id, decision_id)
    if entry is None:
        raise decision_not_found()
    record = stored_record(entry)
    require_as_made(record, f"the record of {decision_id}")
    return record


def tell(resolution: Resolution, state: str, shut: str | None = None) -> None:
    """Prints how and by which actor a review was resolved, and the consequence.

    Args:
        resolution: The resolution.
        state: The current state of the review.
        shut: Why an unexpired grant opens no action; None if it opens one.
    """
    actor = resolution["actor"]
    by = resolution.get("resolved_by")
    claimed = f"; the request names {by}" if by is not None and by != actor["id"] else ""
    at = minute(resolution["recorded_at"])
    if actor["type"] == "service":
        say(f"Nobody answered within the time limit. The review expired at {at} UTC.")
    else:
        say(f"{resolution['resolution'].capitalize()} at {at} UTC by {actor['type']} {actor['id']}{claimed}.")
    if "note" in resolution:
        say(f"  {resolution['note']}")
    for reference in resolution.get("evidence_refs", ()):
        say(f"  evidence: {reference}")
    if state == "executed":
        say("The action was executed after that.")
    elif resolution["resolution"] == "granted" and shut is not None:
        say(f"WARNING: {shut}")
    elif resolution["resolution"] == "granted":
        ends = minute(resolution["expires_at"])
        if resolution["expires_at"] <= timestamp(utc_now()):
            say(f"The grant ended at {ends} UTC, and no valid receipt reports that the action was executed.")
        else:
            say(f"The caller may act until {ends} UTC, after it has verified the grant.")
    say(f"resolution_hash {resolution['resolution_hash']}")
