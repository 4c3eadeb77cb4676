"""What is counted and logged of each request, once it is answered."""

from __future__ import annotations

import time
from typing import Any, Final

from flask import Response, g, request

from api.metrics import METHODS, UNMATCHED
from api.requests import safe_request_id
from api.state import operations

# Asked every few seconds by machines; readiness is logged when it changes.
_QUIET: Final = frozenset({"/livez", "/readyz", "/metrics"})


def observe(response: Response) -> Response:
    """Counts and logs the request that a response answers."""
    watched = operations()
    route = UNMATCHED if request.url_rule is None else request.url_rule.rule
    seconds = time.perf_counter() - g.started
    status = response.status_code
    method = request.method if request.method in METHODS else "other"
    watched.metrics.request(route, method, status, seconds)
    error = g.get("error")
    if error is not None:
        watched.metrics.error(error["error"])
    if route in _QUIET and error is None:
        return response
    fields: dict[str, Any] = {"request_id": g.request_id, "method": method, "route": route, "status": status}
    if sent := safe_request_id():
        fields["caller_request_id"] = sent
    if authority := g.get("authority"):
        fields |= {"scope": authority.scope_id, "key_id": authority.key_id}
    fields |= g.get("observed", {})
    if error is not None:
        fields |= error
    fields["latency_ms"] = round(seconds * 1000, 3)
    (watched.log.error if status >= 500 else watched.log.info)("request", **fields)
    return response
