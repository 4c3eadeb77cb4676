"""POST /api/decide, and the stored decision."""

from __future__ import annotations

from typing import cast

from flask import Blueprint, Response, g, request

from api.http.auth import authenticate, recognize
from api.http.limits import tell_remaining, within_rate
from api.http.requests import confidence_headers, json_response, parse_body, preferred_view, read_body, warnings_header
from api.http.state import operations, state
from gate.decisions.stored import decision_not_found, require_as_made
from gate.errors import RequestRefused
from gate.labels import VIEWS
from gate.records.documents import DecisionBody, Record
from gate.records.request import hint
from gate.records.views import project

blueprint = Blueprint("decisions", __name__)


@blueprint.post("/api/decide")
def decide() -> Response:
    """Creates a Decision Record, or replays the one of a used idempotency key."""
    sent = read_body()
    caller = recognize("decide")
    body = within_rate(caller, lambda: parse_body(sent))
    refusal, view = None, "full"
    try:
        view = preferred_view()
    except RequestRefused as error:
        refusal = error
    decision = state().gate.decide(
        caller.authority,
        body,
        request_id=g.request_id,
        idempotency_key=request.headers.get("x-idempotency-key"),
        refusal=refusal,
    )
    tell_remaining(decision.remaining)
    record = decision.record
    operations().metrics.decision(record["verdict"], decision.status)
    g.observed = {"decision_id": record["decision_id"], "verdict": record["verdict"], "idempotency": decision.status}
    # A replay is answered whatever else the body holds, so its response_view may be none of the three.
    asked = cast("DecisionBody", body).get("response_view")
    headers = {**_headers(record), "x-idempotency-status": decision.status, **warnings_header(decision.warnings)}
    if (overlooked := hint(body)) is not None:
        headers["x-decision-hint"] = overlooked
    return json_response(project(record, asked if asked in VIEWS else view), headers=headers)


@blueprint.get("/api/decision/<decision_id>")
def get_decision(decision_id: str) -> Response:
    """The stored record of a decision."""
    authority = authenticate("read")
    record = state().gate.decision(authority, decision_id)
    if record is None:
        raise decision_not_found()
    require_as_made(record, f"the record of {decision_id}")
    return json_response(project(record, preferred_view()))


def _headers(record: Record) -> dict[str, str]:
    headers = {
        "x-decision-id": record["decision_id"],
        "x-decision-record-hash": record["record_hash"],
        "x-decision-receipt-hash": record["receipt_hash"],
        "x-decision-verify-url": record["verify_url"],
    }
    if "receipt_signature" in record:
        headers["x-decision-receipt-signature"] = record["receipt_signature"]
    if confidence := record.get("decision_confidence"):
        headers |= confidence_headers(confidence)
    return headers
