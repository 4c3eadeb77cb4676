"""Maps errors to HTTP. Only this module gives an error code its status.

Every error body is `{c?, v, error, message, request_id, errors?, ...details}`. Only decide and the sandbox have `c`,
which is `unclear`. No error has a verdict.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import Final

from flask import Flask, Response, g, request
from werkzeug.exceptions import HTTPException, InternalServerError, MethodNotAllowed

from api.http.limits import tell_remaining
from api.http.logs import places
from api.http.responses import json_response
from api.http.state import operations
from gate.errors import AccessForbidden, GateError, LimitReached

DECIDE_PATHS: Final = frozenset({"/api/decide", "/api/decide/batch", "/api/sandbox/decide"})
"""The paths whose errors have `c`, as their answers do."""

# Each code: its status, and the word that a body's `v` carries.
_BY_CODE: Final[dict[str, tuple[int, str]]] = {
    "SVC_API_JSON_INVALID": (400, "json_invalid"),
    "SVC_API_QUERY_INVALID": (400, "query_invalid"),
    "SVC_API_BATCH_INVALID": (400, "batch_invalid"),
    "COUNTERFACTUAL_SCENARIOS_INVALID": (400, "scenarios_invalid"),
    "SVC_API_UNAUTHORIZED": (401, "unauthorized"),
    "SVC_CHAIN_UNAUTHORIZED": (401, "unauthorized"),
    "SVC_EXECUTION_UNAUTHORIZED": (401, "unauthorized"),
    "SVC_OUTCOME_UNAUTHORIZED": (401, "unauthorized"),
    "SVC_CRM_SYNC_UNAUTHORIZED": (401, "unauthorized"),
    "SVC_RESOLUTION_UNAUTHORIZED": (401, "unauthorized"),
    "SVC_POLICY_CONFIDENCE_UNAUTHORIZED": (401, "unauthorized"),
    "SVC_POLICY_EFFECTIVENESS_UNAUTHORIZED": (401, "unauthorized"),
    "SVC_POLICY_BENCHMARKS_UNAUTHORIZED": (401, "unauthorized"),
    "SVC_POLICY_ANOMALIES_UNAUTHORIZED": (401, "unauthorized"),
    "SVC_API_ORIGIN_FORBIDDEN": (403, "origin_forbidden"),
    "SVC_DECISION_NOT_FOUND": (404, "not_found"),
    "SVC_CHAIN_NOT_FOUND": (404, "not_found"),
    "SVC_POLICY_BUNDLE_NOT_FOUND": (404, "not_found"),
    "SVC_RULEBOOK_NOT_FOUND": (404, "not_found"),
    "SVC_MIGRATION_NOT_FOUND": (404, "not_found"),
    "SVC_POLICY_PATTERN_NOT_FOUND": (404, "not_found"),
    "SVC_PILOT_NOT_FOUND": (404, "not_found"),
    "SVC_API_NOT_FOUND": (404, "not_found"),
    "SVC_API_METHOD_NOT_ALLOWED": (405, "method_not_allowed"),
    "SVC_API_NOT_ACCEPTABLE": (406, "not_acceptable"),
    "SVC_API_IDEMPOTENCY_CONFLICT": (409, "idempotency_conflict"),
    "SVC_EXECUTION_IDEMPOTENCY_CONFLICT": (409, "idempotency_conflict"),
    "SVC_EXECUTION_IDEMPOTENCY_IN_PROGRESS": (409, "idempotency_in_progress"),
    "SVC_OUTCOME_IDEMPOTENCY_CONFLICT": (409, "idempotency_conflict"),
    "SVC_OUTCOME_IDEMPOTENCY_IN_PROGRESS": (409, "idempotency_in_progress"),
    "SVC_CRM_SYNC_IDEMPOTENCY_CONFLICT": (409, "idempotency_conflict"),
    "SVC_CRM_SYNC_IDEMPOTENCY_IN_PROGRESS": (409, "idempotency_in_progress"),
    "SVC_RESOLUTION_IDEMPOTENCY_CONFLICT": (409, "idempotency_conflict"),
    "SVC_RESOLUTION_IDEMPOTENCY_IN_PROGRESS": (409, "idempotency_in_progress"),
    "SVC_RESOLUTION_FINAL": (409, "resolution_final"),
    "SVC_RESOLUTION_NOT_HELD": (409, "not_held"),
    "RULEBOOK_VERSION_CONFLICT": (409, "rulebook_version_conflict"),
    "REPLAY_LINEAGE_MISMATCH": (409, "lineage_mismatch"),
    "SVC_API_PAYLOAD_TOO_LARGE": (413, "payload_too_large"),
    "SVC_API_MEDIA_TYPE_UNSUPPORTED": (415, "media_type_unsupported"),
    "SVC_API_REQUEST_INVALID": (422, "request_invalid"),
    "SVC_EXECUTION_RECORD_MISMATCH": (422, "record_mismatch"),
    "SVC_OUTCOME_RECORD_MISMATCH": (422, "record_mismatch"),
    "SVC_CRM_SYNC_RECORD_MISMATCH": (422, "record_mismatch"),
    "SVC_RESOLUTION_RECORD_MISMATCH": (422, "record_mismatch"),
    "RULEBOOK_BINDING_MODE_UNSUPPORTED": (422, "request_invalid"),
    "RULEBOOK_OUTPUT_MATERIAL_FORBIDDEN": (422, "request_invalid"),
    "RULEBOOK_BINDING_MODE_CONFLICT": (422, "request_invalid"),
    "TRUSTED_ADAPTER_INPUT_CONFLICT": (422, "request_invalid"),
    "TRUSTED_ADAPTER_INVALID": (422, "request_invalid"),
    "TRUSTED_ADAPTER_NOT_REGISTERED": (422, "request_invalid"),
    "TRUSTED_ADAPTER_MANIFEST_MISMATCH": (422, "request_invalid"),
    "TRUSTED_ADAPTER_INPUT_INVALID": (422, "request_invalid"),
    "SANDBOX_REQUEST_UNSUPPORTED": (422, "request_invalid"),
    "RULEBOOK_INVALID": (422, "rulebook_invalid"),
    "RULEBOOK_REF_UNKNOWN": (422, "rulebook_unknown"),
    "REPLAY_MODE_INVALID": (422, "request_invalid"),
    "REPLAY_INPUT_OVERRIDE_FORBIDDEN": (422, "request_invalid"),
    "REPLAY_INPUT_UNAVAILABLE": (422, "input_unavailable"),
    "COUNTERFACTUAL_INPUT_UNAVAILABLE": (422, "input_unavailable"),
    "PUBLIC_KEY_INVALID": (422, "public_key_invalid"),
    "SVC_API_RATE_LIMITED": (429, "rate_limited"),
    "SVC_API_MONTHLY_CAP_EXCEEDED": (429, "monthly_cap_exceeded"),
    "SVC_PILOT_INTAKE_FULL": (429, "intake_full"),
    "SVC_INTERNAL_ERROR": (500, "internal_error"),
    "TRUSTED_ADAPTER_OUTPUT_INVALID": (502, "adapter_failed"),
    "TRUSTED_ADAPTER_EXECUTION_FAILED": (502, "adapter_failed"),
    "TRUSTED_ADAPTER_CAPABILITY_DENIED": (502, "adapter_failed"),
    "TRUSTED_ADAPTER_EXECUTION_TIMEOUT": (502, "adapter_failed"),
    "SVC_ADVISORY_UPSTREAM_FAILED": (502, "upstream_failed"),
    "SVC_STORAGE_UNAVAILABLE": (503, "service_unavailable"),
    "SVC_SIGNING_UNAVAILABLE": (503, "service_unavailable"),
    "SVC_CHECKPOINT_UNAVAILABLE": (503, "service_unavailable"),
    "SVC_ADVISORY_UNCONFIGURED": (503, "service_unavailable"),
    "SVC_ADVISORY_BUSY": (503, "service_unavailable"),
    "SVC_REPORT_UNAVAILABLE": (503, "service_unavailable"),
}

_BY_STATUS: Final = {
    404: ("SVC_API_NOT_FOUND", "No such path; /docs lists the endpoints."),
    405: (
        "SVC_API_METHOD_NOT_ALLOWED",
        "This path does not support that method; the Allow header lists the supported ones.",
    ),
    408: ("SVC_API_JSON_INVALID", "The body took too long to arrive; send it again without pausing."),
    413: ("SVC_API_PAYLOAD_TOO_LARGE", "The body is too large; send a smaller one."),
}


def codes() -> Mapping[str, tuple[int, str]]:
    """Each error code with its status and the word for `v` in the body."""
    return MappingProxyType(_BY_CODE)


def install(app: Flask) -> None:
    """Makes an application answer every error in the form of the contract."""
    app.register_error_handler(GateError, answer)
    app.register_error_handler(HTTPException, _answer_http)
    app.register_error_handler(Exception, _answer_unexpected)


def answer(error: GateError) -> Response:
    """The response to an error of the product."""
    status, body = described(error, decides=request.path in DECIDE_PATHS)
    response = json_response(body, status)
    if "retry_after" in error.details:
        response.headers["retry-after"] = str(error.details["retry_after"])
    return response


def described(error: GateError, *, decides: bool) -> tuple[int, dict[str, object]]:
    """The status and the body of an error. The log and the metrics of the request use them too.

    Args:
        error: The error.
        decides: Whether the request asked for a decision.
    """
    status, body = told(error, decides=decides)
    g.error = {"error": error.code}
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        g.error["reason"] = error.message
    if isinstance(error, LimitReached):
        tell_remaining(error.details.get("monthly_remaining"))
    return status, body


def told(error: GateError, *, decides: bool) -> tuple[int, dict[str, object]]:
    """The same as `described` for an error that is one of several in an answer."""
    status, word = _BY_CODE.get(error.code, (500, "internal_error"))
    if isinstance(error, AccessForbidden):
        status = HTTPStatus.FORBIDDEN
    body: dict[str, object] = {"c": "unclear"} if decides else {}
    body |= {"v": word, "error": error.code, "message": error.message, "request_id": g.get("request_id") or "req_none"}
    if error.errors:
        body["errors"] = [fault.to_dict() for fault in error.errors]
    return int(status), body | dict(error.details)


def _answer_http(error: HTTPException) -> Response:
    if isinstance(error, InternalServerError):
        # Flask's name for a failure outside of a view.
        cause = error.original_exception
        return _answer_unexpected(cause if isinstance(cause, Exception) else error)
    unreadable = ("SVC_API_JSON_INVALID", "The request cannot be read; check how it is sent.")
    code, message = _BY_STATUS.get(error.code or 400, unreadable)
    response = answer(GateError(code, message))
    if isinstance(error, MethodNotAllowed) and error.valid_methods:
        response.headers["allow"] = ", ".join(sorted(error.valid_methods))
    return response


def _answer_unexpected(error: Exception) -> Response:
    return answer(unexpected(error))


def unexpected(error: Exception) -> GateError:
    """The error that callers get for an unexpected failure. The log has its type and place."""
    # Only the type and the places: a message could quote a body or a key.
    operations().log.error(
        "unexpected", request_id=g.get("request_id"), error_type=type(error).__qualname__, places=places(error)
    )
    g.error = {"error": "SVC_INTERNAL_ERROR"}
    return GateError(
        "SVC_INTERNAL_ERROR",
        "The service failed unexpectedly, and nothing was acknowledged; retry with the same idempotency key.",
    )
