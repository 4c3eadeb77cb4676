"""`POST /api/mcp`: the gate as a server of the Model Context Protocol, for agents with a key."""

from __future__ import annotations

from flask import Blueprint, Response

from api.http.auth import confirm_identity, identify
from api.mcp.agents.server import agents_server
from api.mcp.endpoint import answer

blueprint = Blueprint("agents", __name__)


@blueprint.post("/api/mcp")
def post() -> Response:
    """Answers a message of the protocol. Its tools use the same functions as the HTTP API."""
    return answer(agents_server(), admit=identify, confirm=confirm_identity)
