"""`GET /api/decisions`: finds decisions of the caller's scope."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from flask import Blueprint, Response

from api.http.auth import authenticate
from api.http.requests import query_choice, query_cursor, query_integer, query_text, query_time
from api.http.responses import json_response
from api.http.state import state
from gate.clock import utc_now
from gate.decisions.stored import require_as_made
from gate.errors import FieldError, RequestRefused
from gate.ids import not_before, parse_timestamp
from gate.ledger.chain.reviews import STATES
from gate.ledger.reads.decisions import Criteria, Found

blueprint = Blueprint("searches", __name__)

_VERDICTS: Final = ("yes", "no", "review")
_ORDERS: Final = ("newest", "oldest")
_SHOWN: Final = (
    "decision_id",
    "request_id",
    "created_at",
    "verdict",
    "application_verdict",
    "reason_code",
    "matched_rule_id",
    "action",
    "action_binding",
    "policy_id",
    "policy_version",
    "record_hash",
    "decision_url",
)
_CONTRACT: Final = "decision_contract"


@blueprint.get("/api/decisions")
def find_decisions() -> Response:
    """A page of the scope's decisions that meet every criterion, newest first unless the query says otherwise."""
    authority, now = authenticate("read"), utc_now()
    criteria, oldest_first = _criteria(now), query_choice("order", _ORDERS) == "oldest"
    if criteria.state is None and (oldest_first or criteria.owner is not None):
        name = "order" if oldest_first else "owner"
        raise _refused(name, "needs the parameter state; also send, for example, state=held.")
    limit, before = query_integer("limit", default=20, lowest=1, highest=1000), query_cursor()
    page = state().instance.ledger.decisions.search(
        authority.scope_id, criteria, limit=limit, before=before, oldest_first=oldest_first
    )
    decisions = [_shown(found, now) for found in page.found]
    return json_response(
        {
            "count": len(decisions),
            "decisions": decisions,
            "next_cursor": None if page.next_position is None else str(page.next_position),
        }
    )


def _criteria(now: datetime) -> Criteria:
    since, until = query_time("from"), query_time("to")
    if since is not None and until is not None and since > until:
        raise _refused("to", "is before from; send a later time.")
    age = query_integer("min_age", default=None, lowest=0, highest=999_999_999)
    if age is not None:
        # The age includes its end: a decision made just then is old enough.
        made_by = now - timedelta(seconds=age) + timedelta(milliseconds=1)
        until = made_by if until is None else min(until, made_by)
    return Criteria(
        verdict=query_choice("verdict", _VERDICTS),
        policy_id=query_text("policy_id"),
        policy_version=query_text("policy_version"),
        reason_code=query_text("reason_code"),
        target_object_id=query_text("target_object_id"),
        since=None if since is None else not_before(since),
        until=None if until is None else not_before(until),
        state=query_choice("state", STATES),
        owner=query_text("owner"),
    )


def _refused(name: str, what: str) -> RequestRefused:
    fault = FieldError(name, "range", f"It {what}")
    return RequestRefused("SVC_API_QUERY_INVALID", f"The query parameter {name} {what}", [fault])


def _shown(found: Found, now: datetime) -> dict[str, object]:
    record: Mapping[str, object] = found.record
    require_as_made(record, f"the decision at chain position {found.position}")
    shown = {**{name: record.get(name) for name in _SHOWN}, "chain_position": found.position}
    if (review := found.review) is not None:
        ended = now if review.resolved_at is None else parse_timestamp(review.resolved_at)
        age = max(0, int((ended - parse_timestamp(review.created_at)).total_seconds()))
        shown |= {"state": review.state, "owner": review.owner or None, "due_at": review.due_at, "age_seconds": age}
        shown |= {"grant_ends_at": review.grant_ends_at}
    # Only advisory records have it, and none is to be taken for a binding one.
    return {**shown, _CONTRACT: record[_CONTRACT]} if _CONTRACT in record else shown
