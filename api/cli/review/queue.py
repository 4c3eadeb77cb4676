"""`gate review list` and `show`: list held decisions, and explain one."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import typer

from api.cli.migrate.signing import ScopeName
from api.cli.options import DEFAULT_HOME, DatabaseUrl, Home, Json, instance_at
from api.cli.output import compact, minute, print_json, say, table
from api.cli.review.resolving import DecisionId, record_of, tell
from api.cli.review.spans import span
from gate.clock import utc_now
from gate.decisions.reviews.standing import last_receipts
from gate.errors import OperatorError
from gate.ids import parse_timestamp, timestamp
from gate.ledger.chain.reviews import EXECUTED, GRANTED, HELD, STATES
from gate.ledger.reads.decisions import Criteria, Found
from gate.ledger.reviews import ReviewRow
from gate.records.documents import Record
from gate.records.explanation import WAITS, reasons
from gate.records.reports.breaches import breaches, last_executed_at
from gate.verify.dead_keys import dead_key


def list_reviews(
    scope: ScopeName,
    state: Annotated[str, typer.Option("--state", help=f"One of {', '.join(STATES)}.")] = HELD,
    owner: Annotated[
        str | None, typer.Option("--owner", help="List only the reviews of this owner.", show_default=False)
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="The maximum number to list.")] = 20,
    newest: Annotated[bool, typer.Option("--newest", help="List the newest first.")] = False,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """List held decisions, the longest waiting first."""
    if state not in STATES:
        raise OperatorError("USAGE_INVALID", f"--state must be one of {', '.join(STATES)}.")
    with instance_at(home, database_url) as instance:
        found = instance.ledger.directory.scope(scope)
        criteria = Criteria(state=state, owner=owner)
        page = instance.ledger.decisions.search(found.scope_id, criteria, limit=limit, oldest_first=not newest)
    now = utc_now()
    if as_json:
        print_json(
            {"reviews": [_review_json(each, now) for each in page.found], "more": page.next_position is not None}
        )
        return
    if not page.found:
        say(f"No review is {state}{'' if owner is None else f' for {owner}'}.")
        return
    waits = "waits" if state == HELD else "waited"
    ends = "grant (UTC)" if state == GRANTED else "due (UTC)"
    columns = ["decision_id", waits, ends, "owner", "action", "target", "reason"]
    table(columns, [_row(each, now) for each in page.found], wraps=["owner", "target"])
    say(f"To see one of them: gate review show DECISION_ID --scope {scope}")
    if page.next_position is not None:
        say(f"There are more. --limit shows up to 1,000; GET /api/decisions?state={state} pages through all.")


def show(
    decision_id: DecisionId,
    scope: ScopeName,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Show a held decision: the action, why the rulebook holds it, and the state of its review."""
    with instance_at(home, database_url) as instance:
        found = instance.ledger.directory.scope(scope)
        record = record_of(instance, found, decision_id)
        standing = instance.resolutions().standing(found.scope_id, decision_id)
        receipts = last_receipts(instance.ledger, found.scope_id, decision_id)
        shut = dead_key(record, standing["resolution"], instance.receipt_keys.registry())
    if as_json:
        print_json({"review": standing, "decision_record": record})
        return
    _tell_case(record, is_held=standing["state"] == HELD)
    resolution = standing["resolution"]
    executed_at = last_executed_at(receipts)
    if standing["state"] is None:
        say(f"Not held for an owner: the verdict is {record['verdict']}.")
    elif resolution is None:
        due = "no time limit" if standing["due_at"] is None else f"until {minute(standing['due_at'])} UTC"
        say(f"Held for {standing['owner'] or 'any approver (no owner is set)'}, {due}.")
        if executed_at is not None:
            executed = f"the action was reported as executed at {minute(executed_at)} UTC, without an answer"
            say(f"WARNING: {executed}. A grant does not undo that.")
        if shut is not None:
            say(f"WARNING: {shut}")
            say(f"Close it: gate review refuse {decision_id} --scope {scope} --user NAME --note TEXT.")
        else:
            answer = f"gate review grant {decision_id} --scope {scope} --user NAME --note TEXT, or gate review refuse"
            say(f"Answer: {answer}.")
    else:
        tell(resolution, standing["state"], shut)
        broken = breaches(receipts, resolution["expires_at"]) if resolution["resolution"] == GRANTED else []
        for sentence in broken:
            say(f"WARNING: {sentence}")
        flagged = executed_at is not None and standing["state"] != EXECUTED
        if flagged:
            say(f"WARNING: a receipt with flags reported an execution at {minute(executed_at)} UTC.")
        if broken or flagged:
            say(f"To read the receipts: GET /api/decision/{decision_id}/execution")


def _tell_case(record: Record, *, is_held: bool) -> None:
    """Says what was asked for, and why the rulebook decided as it did."""
    binding = record["action_binding"]
    target = f"{binding['system']} {binding['resource']}".strip()
    proposed = binding["proposed_action"]
    label = "Proposed action" if proposed else "Action of the outcome (the request proposes none)"
    say(f"{label}: {proposed or record['action']}{f' on {target}' if target else ''}")
    told: Any = binding
    for name in ("amount", "currency", "subject", "actor"):
        if name in told:
            say(f"  {name}: {told[name] if isinstance(told[name], str) else compact(told[name])}")
    why = reasons(record)
    for sentence in [*why.because, *why.unmatched]:
        say(f"  {sentence}")
    say(f"  {why.action}{f' {WAITS}' if is_held else ''}")
    say(f"Decided {minute(record['created_at'])} UTC, record_hash {record['record_hash']}.")


def _row(found: Found, now: datetime) -> tuple[object, ...]:
    record, review = found.record, found.review
    binding = record["action_binding"]
    return (
        record["decision_id"],
        span(_age(found, now)),
        _ends(review, now),
        "" if review is None else review.owner,
        binding["proposed_action"] or record["action"],
        " ".join(filter(None, (binding["system"], binding["resource"]))),
        record["reason_code"],
    )


def _ends(review: ReviewRow | None, now: datetime) -> str:
    """When the time limit of a review ends; or its grant, until which the caller may act."""
    if review is None:
        return ""
    ends = review.grant_ends_at
    if review.state != GRANTED or ends is None:
        return minute(review.due_at)
    return f"{'ended' if ends <= timestamp(now) else 'until'} {minute(ends)}"


def _age(found: Found, now: datetime) -> int:
    ended = found.review.resolved_at if found.review is not None else None
    end = now if ended is None else parse_timestamp(ended)
    return max(0, int((end - parse_timestamp(found.record["created_at"])).total_seconds()))


def _review_json(found: Found, now: datetime) -> dict[str, object]:
    record, review = found.record, found.review
    return {
        "decision_id": record["decision_id"],
        "state": None if review is None else review.state,
        "owner": None if review is None else review.owner or None,
        "due_at": None if review is None else review.due_at,
        "age_seconds": _age(found, now),
        "grant_ends_at": None if review is None else review.grant_ends_at,
        "created_at": record["created_at"],
        "policy_id": record["policy_id"],
        "policy_version": record["policy_version"],
        "reason_code": record["reason_code"],
        "action": record["action"],
        "action_binding": record["action_binding"],
        "record_hash": record["record_hash"],
    }
