"""The service's configuration, and the amount of proof in the instance."""

from __future__ import annotations

from flask import Blueprint, Response

from api.http.limits import PILOT_REQUESTS_PER_MINUTE
from api.http.requests import MAX_BODY, MAX_SANDBOX_BODY, MAX_VERIFY_BODY
from api.http.responses import json_response
from api.http.state import operations, state
from api.routes.operations import require_metrics_token
from gate import __version__, labels
from gate.clock import utc_now
from gate.decisions.claims import MAX_IDEMPOTENCY_KEY
from gate.encoding.strict_json import MAX_REQUEST_DEPTH
from gate.ids import timestamp
from gate.records.advisory import ADVISORY_MODES

blueprint = Blueprint("service", __name__)


@blueprint.get("/api/runtime-config")
def runtime_config() -> Response:
    """The configuration that callers may need, without secrets."""
    settings = state().instance.settings
    return json_response(
        {
            "ok": True,
            "version": __version__,
            "interface_version": labels.INTERFACE_VERSION,
            "base_url": settings.base_url,
            "schema_url": settings.schema_url,
            "openapi_url": "/openapi.json",
            "docs_url": "/docs",
            "modes": {
                "rulebook": "binding",
                **dict.fromkeys(ADVISORY_MODES, "advisory" if state().instance.advisor.ready else "unconfigured"),
            },
            "binding_modes": list(labels.BINDING_MODES),
            "response_views": list(labels.VIEWS),
            "receipt_signing": settings.receipt_signing,
            "registry_signing": settings.registry_signing,
            "limits": {
                "request_bytes": MAX_BODY,
                "verify_bytes": MAX_VERIFY_BODY,
                "nesting": MAX_REQUEST_DEPTH,
                "idempotency_key_characters": MAX_IDEMPOTENCY_KEY,
                "sandbox_bytes": MAX_SANDBOX_BODY,
                "sandbox_requests_per_minute": settings.sandbox_requests_per_minute,
                "pilot_requests_per_minute": PILOT_REQUESTS_PER_MINUTE,
            },
        }
    )


@blueprint.get("/api/proof-metrics")
def proof_metrics() -> Response:
    """The amount of proof in the instance, for all scopes. It needs the metrics token."""
    require_metrics_token()
    instance = state().instance
    totals = instance.ledger.entries.totals()
    return json_response(
        {
            "ok": True,
            "generated_at": timestamp(utc_now()),
            "status": operations().readiness.report()["status"],
            "scopes": totals.scopes,
            "chain_entries": totals.entries,
            "registered_rulebooks": totals.rulebooks,
            "receipt_keys": len(instance.receipt_keys.registry().keys),
            "attestation_keys": len(instance.registry_keys.registry().keys),
            "receipt_signing": instance.settings.receipt_signing,
            "registry_signing": instance.settings.registry_signing,
        }
    )
