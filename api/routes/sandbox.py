"""`POST /api/sandbox/decide`: a trial decision for everyone, without a key.

The endpoint stores, signs, and registers nothing, and does not read the ledger. It ignores a key and an idempotency key
in the request.
"""

from __future__ import annotations

from typing import cast

from flask import Blueprint, Response, g

from api.http.limits import require_client_rate
from api.http.requests import MAX_SANDBOX_BODY, parse_body, preferred_view, read_body
from api.http.responses import json_response, warnings_header
from api.http.state import state
from gate.clock import new_id, utc_now
from gate.ids import timestamp
from gate.records.documents import DecisionBody
from gate.records.record import Identity
from gate.records.request import hint
from gate.records.sandbox import read_sandbox_request, sandbox_answer, show
from gate.rulebooks.advice import find_warnings
from gate.rulebooks.rulebook import load

blueprint = Blueprint("sandbox", __name__)


@blueprint.post("/api/sandbox/decide")
def try_out() -> Response:
    """Answers a Decision Request in the form of a Decision Record, marked as an answer of the sandbox."""
    sent = read_body(MAX_SANDBOX_BODY)
    settings = state().instance.settings
    require_client_rate("sandbox", settings.sandbox_requests_per_minute)
    body = parse_body(sent)
    view = preferred_view()
    now = utc_now()
    asked = read_sandbox_request(body, now)
    # Not from the cache of the decisions: how fast it answers would tell which rulebooks others use.
    rulebook = load(asked.rulebook, root="rulebook")
    identity = Identity(new_id("sbx", now), g.request_id, None, timestamp(now))
    answer = sandbox_answer(asked, rulebook, identity, settings.schema_url)
    headers = warnings_header(find_warnings(rulebook.body))
    if (overlooked := hint(body)) is not None:
        headers["x-decision-hint"] = overlooked
    return json_response(show(answer, cast("DecisionBody", body).get("response_view", view)), headers=headers)
