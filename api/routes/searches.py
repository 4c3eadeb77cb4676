"""GET /api/decisions: the decisions of the caller's scope, found by what they were."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from flask import Blueprint, Response

from api.http.auth import authenticate
from api.http.requests import json_response, query_choice, query_cursor, query_integer, query_text, query_time
from api.http.state import state
from gate.decisions.stored import require_as_made
from gate.errors import FieldError, RequestRefused
from gate.ids import not_before
from gate.ledger.reads.decisions import Criteria, Found

blueprint = Blueprint("searches", __name__)

_VERDICTS: Final = ("yes", "no", "review")
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
    """A page of the scope's decisions that meet every criterion, newest first."""
    authority = authenticate("read")
    criteria = _criteria()
    limit, before = query_integer("limit", default=20, lowest=1, highest=1000), query_cursor()
    page = state().instance.ledger.decisions.search(authority.scope_id, criteria, limit=limit, before=before)
    decisions = [_shown(found) for found in page.found]
    return json_response(
        {
            "count": len(decisions),
            "decisions": decisions,
            "next_cursor": None if page.next_position is None else str(page.next_position),
        }
    )


def _criteria() -> Criteria:
    since, until = query_time("from"), query_time("to")
    if since is not None and until is not None and since > until:
        what = "is before from; send a later time."
        fault = FieldError("to", "range", f"It {what}")
        raise RequestRefused("SVC_API_QUERY_INVALID", f"The query parameter to {what}", [fault])
    return Criteria(
        verdict=query_choice("verdict", _VERDICTS),
        policy_id=query_text("policy_id"),
        policy_version=query_text("policy_version"),
        reason_code=query_text("reason_code"),
        target_object_id=query_text("target_object_id"),
        since=None if since is None else not_before(since),
        until=None if until is None else not_before(until),
    )


def _shown(found: Found) -> dict[str, object]:
    record: Mapping[str, object] = found.record
    require_as_made(record, f"the decision at chain position {found.position}")
    shown = {**{name: record.get(name) for name in _SHOWN}, "chain_position": found.position}
    # Only advisory records have it, and none is to be taken for a binding one.
    return {**shown, _CONTRACT: record[_CONTRACT]} if _CONTRACT in record else shown
