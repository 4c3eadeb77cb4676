"""Public registries of the keys that sign."""

from __future__ import annotations

from flask import Blueprint, Response

from api.http.requests import json_response
from api.http.state import state
from gate.proof.signing import ED25519, KeyRegistry

blueprint = Blueprint("registries", __name__)


@blueprint.get("/api/decision/receipt-keys")
def receipt_keys() -> Response:
    """The public keys of receipts and checkpoints, active and past."""
    instance = state().instance
    return _published(instance.receipt_keys.registry(), signs=instance.settings.receipt_signing == ED25519)


@blueprint.get("/.well-known/rulebook-attestation-keys.json")
def attestation_keys() -> Response:
    """The public keys of rulebook attestations and registrations, active and past."""
    instance = state().instance
    return _published(instance.registry_keys.registry(), signs=instance.settings.registry_signing == ED25519)


def _published(registry: KeyRegistry, *, signs: bool) -> Response:
    """A registry as published. Past keys stay, so that past records verify; without signing none is active."""
    return json_response(registry.to_dict() if signs else KeyRegistry(registry.keys).to_dict())
