"""Endpoints for operators of a running service: readiness, liveness, and metrics."""

from __future__ import annotations

import hashlib
import hmac

from flask import Blueprint, Response, request

from api.http.metrics import CONTENT_TYPE
from api.http.responses import json_response
from api.http.state import operations
from gate.errors import AccessRefused, ServiceUnavailable

blueprint = Blueprint("operations", __name__)


@blueprint.get("/api/decision/status")
def status() -> Response:
    """Readiness of everything that a decision needs: 200 when ready, 503 with the same shape when degraded."""
    report = operations().readiness.report()
    return json_response(report, 200 if report["ok"] else 503)


@blueprint.get("/livez")
def livez() -> Response:
    """Whether the process answers at all. If it does not, a supervisor restarts it."""
    return json_response({"ok": True, "status": "alive"})


@blueprint.get("/readyz")
def readyz() -> Response:
    """Whether requests should be sent here: 200 when ready, 503 when degraded."""
    report = operations().readiness.report()
    return json_response({"ok": report["ok"], "status": report["status"]}, 200 if report["ok"] else 503)


@blueprint.get("/metrics")
def metrics() -> Response:
    """The counts of all processes of the server, and the current measurements, for Prometheus."""
    require_metrics_token()
    watched = operations()
    return Response(watched.metrics.text(watched.gauges()), content_type=CONTENT_TYPE)


def require_metrics_token() -> None:
    """Requires the token of the instance in the header `x-metrics-token`.

    Raises:
        AccessRefused: `SVC_API_UNAUTHORIZED`: the token is missing or wrong, or the instance has none.
        ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`: the token of the instance cannot be read.
    """
    try:
        token = operations().metrics_token_file.read_bytes().strip()
    except FileNotFoundError:
        token = b""
    except OSError as error:
        raise ServiceUnavailable(
            "SVC_STORAGE_UNAVAILABLE",
            f"The service cannot read its metrics token ({error.strerror}); the operator must fix the file.",
        ) from error
    sent = request.headers.get("x-metrics-token", "").encode()
    # Hashes have one length, so the time tells nothing about the token, not even its length.
    same = hmac.compare_digest(hashlib.sha256(sent).digest(), hashlib.sha256(token).digest())
    if not token or not same:
        raise AccessRefused(
            "SVC_API_UNAUTHORIZED",
            "This endpoint needs the instance's metrics token in the header x-metrics-token.",
        )
