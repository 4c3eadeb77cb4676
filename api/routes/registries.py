"""Public registries of signing keys."""

from __future__ import annotations

from flask import Blueprint, Response

from api.http.responses import json_response
from api.http.state import state
from gate.clock import utc_now

blueprint = Blueprint("registries", __name__)


@blueprint.get("/api/decision/receipt-keys")
def receipt_keys() -> Response:
    """The active and past public keys of receipts and checkpoints."""
    return _published("receipt")


@blueprint.get("/.well-known/rulebook-attestation-keys.json")
def attestation_keys() -> Response:
    """The active and past public keys of rulebook attestations and registrations."""
    return _published("registry")


def _published(purpose: str) -> Response:
    return json_response(state().instance.published_keys(purpose, utc_now()).to_dict())
