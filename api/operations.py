"""Readiness."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flask import Blueprint, Response

from api.requests import json_response
from api.state import state
from gate import __version__, labels
from gate.errors import GateError
from gate.instance import Instance
from gate.record import RULEBOOK_SCHEMA_HASH

blueprint = Blueprint("operations", __name__)


@blueprint.get("/api/decision/status")
def status() -> Response:
    """Readiness of everything that a decision needs: 200 when ready, 503 with the same shape when degraded."""
    body = readiness(state().instance)
    return json_response(body, 200 if body["ok"] else 503)


def readiness(instance: Instance) -> dict[str, Any]:
    """The readiness report: {ok, status, version, signing, rulebook_runtime, ledger, idempotency, registries, auth,
    backends, contracts}. Each part says `ready`, and `reason` where it is not.
    """
    ledger = _part(instance.ledger.directory.scopes)
    receipt = _part(lambda: instance.signers().receipt)
    registry = _part(lambda: instance.signers().registry)
    keys = _part(lambda: (instance.receipt_keys.registry(), instance.registry_keys.registry()))
    settings = instance.settings
    parts: dict[str, dict[str, Any]] = {
        "signing": {
            **(receipt if not receipt["ready"] else registry),
            "receipt_signing": settings.receipt_signing,
            "registry_signing": settings.registry_signing,
        },
        "rulebook_runtime": {
            "ready": True,
            "schema_version": labels.RULEBOOK_SCHEMA,
            "schema_url": settings.schema_url,
            "schema_hash": RULEBOOK_SCHEMA_HASH,
            "evaluator_version": labels.EVALUATOR,
            "binding_modes": [labels.BINDING_DIRECT],
        },
        "ledger": {**ledger, "backend": instance.ledger.store.engine.name},
        "idempotency": dict(ledger),
        "registries": {
            **keys,
            "receipt_keys_url": "/api/decision/receipt-keys",
            "attestation_keys_url": "/.well-known/rulebook-attestation-keys.json",
        },
        "auth": {**ledger, "header": "x-api-key"},
    }
    ready = all(part["ready"] for part in parts.values())
    return {
        "ok": ready,
        "status": "ready" if ready else "degraded",
        "version": __version__,
        "interface_version": labels.INTERFACE_VERSION,
        **parts,
        # What is not wired answers with its own code and takes nothing from the rest.
        "backends": {"advisory": "unconfigured", "trusted_adapters": "none registered"},
        "contracts": {
            "protocol": labels.PROTOCOL,
            "record": labels.RECORD,
            "rulebook": labels.RULEBOOK_SCHEMA,
            "rulebook_registry": labels.RULEBOOK_REGISTRY,
            "registry_attestation": labels.REGISTRY_ATTESTATION,
            "rulebook_attestation": labels.RULEBOOK_ATTESTATION,
            "chain": labels.CHAIN,
            "checkpoint": labels.CHECKPOINT,
        },
    }


def _part(probe: Callable[[], object]) -> dict[str, Any]:
    try:
        probe()
    except GateError as error:
        return {"ready": False, "reason": error.message}
    return {"ready": True}
