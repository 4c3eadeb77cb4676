"""Stores and lists the reports after a decision: execution receipts, outcomes, and CRM syncs."""

from __future__ import annotations

from collections.abc import Callable

from flask import Blueprint, Response

from api.http.auth import authenticate, recognize, refusing
from api.http.requests import parse_body, query_cursor, query_integer, read_body
from api.http.responses import json_response
from api.http.state import current_request, noted, operations, state
from gate.decisions.lifecycle import Reported
from gate.records.reports.receipts import CRM_SYNCS, KINDS, Kind, text

blueprint = Blueprint("lifecycle", __name__)


def make_report(kind: Kind, decision_id: str, idempotency_key: str | None, read: Callable[[], object]) -> Reported:
    """Stores a report about a decision, or replays the report of a used idempotency key, for any protocol.

    Args:
        kind: The kind of report.
        decision_id: The decision.
        idempotency_key: The caller's key for retries.
        read: Reads the report, after the caller is known; raises `GateError`.

    Raises:
        GateError: Nothing was stored.
    """
    code = f"SVC_{kind.code}_UNAUTHORIZED"
    caller = recognize("report", code=code)
    with refusing(code):
        with caller.confirming():
            body = read()
        reported = state().lifecycle.report(caller.authority, kind, decision_id, body, idempotency_key=idempotency_key)
    operations().metrics.report(kind.name, text(reported.report, kind.status_member), reported.status)
    noted()["observed"] = {"decision_id": decision_id, "idempotency": reported.status}
    return reported


def _post(kind: Kind) -> Callable[[str], Response]:
    def report(decision_id: str) -> Response:
        sent = read_body()
        key = current_request().environ.get("HTTP_X_IDEMPOTENCY_KEY")
        reported = make_report(kind, decision_id, key, lambda: parse_body(sent))
        found = reported.report
        headers = {
            f"x-decision-{kind.name}-id": text(found, kind.id_member),
            f"x-decision-{kind.name}-hash": text(found, kind.hash_member),
            "x-idempotency-status": reported.status,
        }
        answer = {"decision_id": decision_id, "crm_sync": found} if kind is CRM_SYNCS else found
        return json_response(answer, 201 if reported.status == "created" else 200, headers)

    return report


def _list(kind: Kind) -> Callable[[str], Response]:
    def reports(decision_id: str) -> Response:
        authority = authenticate("read", code=f"SVC_{kind.code}_UNAUTHORIZED")
        limit, before = query_integer("limit", default=20, lowest=1, highest=1000), query_cursor()
        found, more = state().lifecycle.reports(authority, kind, decision_id, limit=limit, before=before)
        return json_response(
            {
                "decision_id": decision_id,
                "count": len(found),
                kind.collection: found,
                "next_cursor": None if more is None else str(more),
            }
        )

    return reports


for _kind in KINDS:
    _path = f"/api/decision/<decision_id>/{_kind.name}"
    blueprint.add_url_rule(_path, f"report_{_kind.entry_type}", _post(_kind), methods=["POST"])
    blueprint.add_url_rule(_path, f"list_{_kind.collection}", _list(_kind), methods=["GET"])
