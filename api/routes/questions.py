"""`POST /{service}/api/mcp`: policy questions over the Model Context Protocol, for everyone."""

from __future__ import annotations

from typing import Final

from flask import Blueprint, Response

from api.http.limits import require_client_rate
from api.http.state import state
from api.mcp.endpoint import answer
from api.mcp.policies import ALL, policy_server
from gate.errors import NotFound
from gate.services.policies.questions import BY_SERVICE

blueprint = Blueprint("questions", __name__)

SERVERS: Final = (*BY_SERVICE, ALL)
"""The servers: one for each question, and one with all four."""


@blueprint.post("/<service>/api/mcp")
def post(service: str) -> Response:
    """Answers a message of the protocol to a policy service."""
    if service not in SERVERS:
        raise NotFound("SVC_API_NOT_FOUND", f"There is no policy service of that name; use {', '.join(SERVERS)}.")
    limit = state().instance.settings.public_requests_per_minute
    return answer(policy_server(service), admit=lambda: require_client_rate("policies", limit))
