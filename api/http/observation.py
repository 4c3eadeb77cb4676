"""Counts and logs each request after its answer."""

from __future__ import annotations

import time
from typing import Final

from flask import Response

from api.http.logs import log_request
from api.http.metrics import METHODS, UNMATCHED
from api.http.state import current_request, noted, operations

# Asked every few seconds by machines; readiness is logged when it changes.
_QUIET: Final = frozenset({"/livez", "/readyz", "/metrics"})


def observe(response: Response) -> Response:
    """Counts and logs the request that a response answers."""
    watched = operations()
    request, held = current_request(), noted()
    method, rule = request.method, request.url_rule
    route = UNMATCHED if rule is None else rule.rule
    seconds = time.perf_counter() - held["started"]
    status = response.status_code
    method = method if method in METHODS else "other"
    watched.metrics.request(route, method, status, seconds)
    error = held.get("error")
    if error is not None:
        watched.metrics.error(error["error"])
    if route in _QUIET and error is None:
        return response
    fields: dict[str, object] = {"request_id": held["request_id"], "method": method, "route": route, "status": status}
    if sent := held["caller_request_id"]:
        fields["caller_request_id"] = sent
    if authority := held.get("authority"):
        fields |= {"scope": authority.scope_id, "key_id": authority.key_id}
    elif forbidden := held.get("forbidden"):
        fields |= dict(zip(("scope", "key_id"), forbidden, strict=True))
    fields |= held.get("observed") or error or {}
    fields["latency_ms"] = int(seconds * 1e6) / 1000
    log_request(watched.log, "error" if status >= 500 else "info", fields)
    return response
