"""`GET /api/decision/adapters`: the trusted adapters that requests may invoke."""

from __future__ import annotations

from flask import Blueprint, Response

from api.http.responses import json_response
from api.http.state import state

blueprint = Blueprint("adapters", __name__)


@blueprint.get("/api/decision/adapters")
def adapters() -> Response:
    """The manifest of every registered adapter, with its hash."""
    return json_response({"adapters": state().instance.adapters.manifests()})
