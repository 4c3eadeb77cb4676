"""Decide, and what was decided."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from gate.client.transport.building import asked, decision, posted, retry_handle
from gate.client.transport.calls import Call

if TYPE_CHECKING:
    from gate.client.types import DecisionRecord, DecisionRequest, DecisionSearch, Verdict, View


def decide(
    request: DecisionRequest | Mapping[str, Any],
    *,
    idempotency_key: str | None = None,
    view: View | None = None,
    request_id: str | None = None,
) -> Call[DecisionRecord]:
    """Decides over the facts in a request, and answers with a signed record once that is stored.

    Args:
        request: The Decision Request.
        idempotency_key: The retry handle. Without one a fresh one is made, under which this call may be sent again;
            only a key of the caller's own makes a retry after a crash safe.
        view: The view of the record; full where None, and `response_view` of the request goes before it.
        request_id: The caller's trace id.

    Raises:
        MaterialRefused: SVC_API_JSON_INVALID: the request is no JSON object.
        RequestRefused: SVC_API_REQUEST_INVALID: another argument cannot be sent.
    """
    key = retry_handle(idempotency_key)
    return posted("decide", "/api/decide", request, idempotency_key=key, view=view, request_id=request_id)


def find_decisions(
    *,
    verdict: Verdict | None = None,
    policy_id: str | None = None,
    policy_version: str | None = None,
    reason_code: str | None = None,
    target_object_id: str | None = None,
    from_: str | datetime | None = None,
    to: str | datetime | None = None,
    limit: int | None = None,
    cursor: str | None = None,
    request_id: str | None = None,
) -> Call[DecisionSearch]:
    """The scope's decisions that meet every criterion, newest first: made at `from_` or later, and before `to`.

    Raises:
        RequestRefused: SVC_API_REQUEST_INVALID: a datetime names no time zone, or another argument cannot be sent.
    """
    query = {
        "verdict": verdict,
        "policy_id": policy_id,
        "policy_version": policy_version,
        "reason_code": reason_code,
        "target_object_id": target_object_id,
        "from": from_,
        "to": to,
        "limit": limit,
        "cursor": cursor,
    }
    return asked("findDecisions", "/api/decisions", query=query, request_id=request_id)


def get_decision(decision_id: str, *, view: View | None = None, request_id: str | None = None) -> Call[DecisionRecord]:
    """The record as it was answered, in the view asked for."""
    return asked("getDecision", decision(decision_id), view=view, request_id=request_id)
