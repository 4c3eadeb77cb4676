"""`POST /api/v1/workflows/{ticketing_system}/refund`: a help desk's question about a refund."""

from __future__ import annotations

from flask import Blueprint, Response, g, request

from api.http.auth import recognize
from api.http.limits import require_client_rate, tell_remaining, within_rate
from api.http.requests import parse_body, read_body
from api.http.responses import json_response
from api.http.state import operations, state
from gate.clock import utc_now
from gate.decisions.workflows import REFUND, TICKETING_SYSTEMS, Ticket, advise, decide, read_ticket
from gate.errors import NotFound

blueprint = Blueprint("workflows", __name__)


@blueprint.post("/api/v1/workflows/<ticketing_system>/refund")
def refund(ticketing_system: str) -> Response:
    """The answer of the policy table about a ticket's refund; with a key, as a Decision Record."""
    if ticketing_system not in TICKETING_SYSTEMS:
        raise NotFound(
            "SVC_API_NOT_FOUND", f"There is no workflow of that help desk; use {', '.join(TICKETING_SYSTEMS)}."
        )
    sent = read_body()
    # A key that is sent as a bearer token is refused with the header's name, rather than taken for no key.
    if "x-api-key" in request.headers or request.headers.get("authorization", "").lower().startswith("bearer "):
        return _decided(ticketing_system, sent)
    require_client_rate("workflow", state().instance.settings.public_requests_per_minute)
    return json_response(advise(_ticket(ticketing_system, sent), utc_now()))


def _decided(ticketing_system: str, sent: bytes) -> Response:
    caller = recognize("decide")
    ticket = within_rate(caller, lambda: _ticket(ticketing_system, sent))
    answered, decision = decide(
        state().gate,
        caller.authority,
        ticket,
        request_id=g.request_id,
        idempotency_key=request.headers.get("x-idempotency-key"),
    )
    tell_remaining(decision.remaining)
    record = decision.record
    operations().metrics.decision(record["verdict"], decision.status)
    g.observed = {"decision_id": record["decision_id"], "verdict": record["verdict"], "idempotency": decision.status}
    headers = {"x-idempotency-status": decision.status, "x-decision-id": record["decision_id"]}
    return json_response(answered, headers=headers)


def _ticket(ticketing_system: str, sent: bytes) -> Ticket:
    instance = state().instance
    max_age = instance.settings.policy_max_age_days
    table = instance.policy_tables.table(REFUND.service)
    return read_ticket(ticketing_system, parse_body(sent), table, utc_now(), max_age_days=max_age)
