"""`POST /api/decide`, and the stored decision."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, cast

from flask import Blueprint, Response

from api.http.auth import authenticate, recognize
from api.http.limits import tell_remaining, within_rate
from api.http.requests import parse_body, preferred_view, read_body
from api.http.responses import confidence_headers, json_response, warnings_header
from api.http.state import current_request, noted, operations, state
from gate.decisions.decide import Decision
from gate.decisions.stored import decision_not_found, require_as_made
from gate.errors import RequestRefused
from gate.labels import VIEWS
from gate.ledger.access.authority import Authority
from gate.records.documents import DecisionBody, Record
from gate.records.request import hint
from gate.records.views import project

blueprint = Blueprint("decisions", __name__)


class Asked(NamedTuple):
    """A Decision Request as it was sent.

    Attributes:
        body: The parsed request.
        idempotency_key: The caller's retry handle.
        view: The view outside of the request body.
        refusal: The fault outside of the request body.
    """

    body: object
    idempotency_key: str | None
    view: str
    refusal: RequestRefused | None


class Made(NamedTuple):
    """A decision, and how it is shown.

    Attributes:
        decision: The decision.
        shown: Its record in the requested view.
        hint: A hint about a probable mistake of the caller.
    """

    decision: Decision
    shown: Mapping[str, object]
    hint: str | None


def make_decision(read: Callable[[], Asked]) -> Made:
    """Creates a Decision Record, or replays the record of a used idempotency key, for any protocol.

    Args:
        read: Reads the request, after the caller is known and within its rate; raises `GateError`.

    Raises:
        GateError: Nothing was decided.
    """
    caller = recognize("decide")
    asked = within_rate(caller, read)
    notes = noted()
    decision = state().gate.decide(
        caller.authority,
        asked.body,
        request_id=notes["request_id"],
        idempotency_key=asked.idempotency_key,
        refusal=asked.refusal,
    )
    tell_remaining(decision.remaining)
    record = decision.record
    operations().metrics.decision(record["verdict"], decision.status)
    notes["observed"] = {
        "decision_id": record["decision_id"],
        "verdict": record["verdict"],
        "idempotency": decision.status,
    }
    return Made(decision, project(record, view_of(asked.body, asked.view)), hint(asked.body))


def view_of(body: object, otherwise: str) -> str:
    """The view in the body of a decided request, or else the given one."""
    # A replay is answered whatever else the body holds, so its response_view may be none of the three.
    named = cast("DecisionBody", body).get("response_view")
    return named if named in VIEWS else otherwise


@blueprint.post("/api/decide")
def decide() -> Response:
    """Creates a Decision Record, or replays the record of a used idempotency key."""
    sent = read_body()
    made = make_decision(lambda: _asked(sent))
    decision = made.decision
    headers = {
        **_headers(decision.record),
        "x-idempotency-status": decision.status,
        **warnings_header(decision.warnings),
    }
    if made.hint is not None:
        headers["x-decision-hint"] = made.hint
    return json_response(made.shown, headers=headers)


def _asked(sent: bytes) -> Asked:
    body = parse_body(sent)
    key = current_request().environ.get("HTTP_X_IDEMPOTENCY_KEY")
    try:
        return Asked(body, key, preferred_view(), None)
    except RequestRefused as error:
        return Asked(body, key, "full", error)


@blueprint.get("/api/decision/<decision_id>")
def get_decision(decision_id: str) -> Response:
    """The stored record of a decision."""
    authority = authenticate("read")
    record = as_made(authority, decision_id)
    return json_response(project(record, preferred_view()))


def as_made(authority: Authority, decision_id: str) -> Record:
    """The stored record of a decision of the caller's scope, checked to be unchanged.

    Raises:
        NotFound: `SVC_DECISION_NOT_FOUND`.
        ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
    """
    record = state().gate.decision(authority, decision_id)
    if record is None:
        raise decision_not_found()
    require_as_made(record, f"the record of {decision_id}")
    return record


def _headers(record: Record) -> dict[str, str]:
    headers = {
        "x-decision-id": record["decision_id"],
        "x-decision-record-hash": record["record_hash"],
        "x-decision-receipt-hash": record["receipt_hash"],
        "x-decision-verify-url": record["verify_url"],
    }
    if "receipt_signature" in record:
        headers["x-decision-receipt-signature"] = record["receipt_signature"]
    if confidence := record.get("decision_confidence"):
        headers |= confidence_headers(confidence)
    return headers
