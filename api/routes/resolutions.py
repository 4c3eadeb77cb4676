"""Held decisions: stores the resolutions of their owners, and returns the state of a review."""

from __future__ import annotations

from flask import Blueprint, Response, g, request

from api.http.auth import confirm_identity, identify, recognize, refusing
from api.http.requests import parse_body, read_body
from api.http.responses import json_response
from api.http.state import operations, state
from gate.errors import GateError

blueprint = Blueprint("resolutions", __name__)

_CODE = "SVC_RESOLUTION_UNAUTHORIZED"


@blueprint.post("/api/decision/<decision_id>/resolution")
def resolve(decision_id: str) -> Response:
    """Stores the resolution of a held decision, or replays the resolution of a used idempotency key."""
    sent = read_body()
    caller = recognize("resolve", code=_CODE)
    key = request.headers.get("x-idempotency-key")
    with refusing(_CODE):
        with caller.confirming():
            body = parse_body(sent)
        resolved = state().resolutions.resolve(caller.authority, decision_id, body, idempotency_key=key)
    resolution = resolved.resolution
    operations().metrics.report("resolution", resolution["resolution"], resolved.status)
    g.observed = {"decision_id": decision_id, "idempotency": resolved.status}
    headers = {
        "x-decision-resolution-id": resolution["resolution_entry_id"],
        "x-decision-resolution-hash": resolution["resolution_hash"],
        "x-idempotency-status": resolved.status,
    }
    return json_response(resolution, 201 if resolved.status == "created" else 200, headers)


@blueprint.get("/api/decision/<decision_id>/resolution")
def review(decision_id: str) -> Response:
    """The state of a decision's review, for any key of its scope, because a guard's key may have no access `read`."""
    with refusing(_CODE):
        authority = identify()
        try:
            standing = state().resolutions.standing(authority.scope_id, decision_id)
        except GateError:
            confirm_identity()
            raise
        confirm_identity()
    return json_response(standing)
