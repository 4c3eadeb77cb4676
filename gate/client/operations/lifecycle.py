"""After the decision: reports, and what was reported.

A report without an idempotency key is given a fresh one, under which its call may be sent again. Only a key of the
caller's own makes a retry after a crash safe.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gate.client.transport.building import REPORTED, asked, decision, posted, retry_handle
from gate.client.transport.calls import Call

if TYPE_CHECKING:
    from gate.client.types import (
        CrmSyncAnswer,
        CrmSyncList,
        CrmSyncReport,
        ExecutionList,
        ExecutionReceipt,
        ExecutionReport,
        OutcomeList,
        OutcomeRecord,
        OutcomeReport,
    )


def report_execution(
    decision_id: str,
    report: ExecutionReport | Mapping[str, Any],
    *,
    idempotency_key: str | None = None,
    request_id: str | None = None,
) -> Call[ExecutionReceipt]:
    """Reports what became of the action."""
    return _reported("reportExecution", decision_id, "execution", report, idempotency_key, request_id)


def list_executions(
    decision_id: str, *, limit: int | None = None, cursor: str | None = None, request_id: str | None = None
) -> Call[ExecutionList]:
    """The execution receipts of a decision, newest first."""
    return _listed("listExecutions", decision_id, "execution", limit, cursor, request_id)


def report_outcome(
    decision_id: str,
    report: OutcomeReport | Mapping[str, Any],
    *,
    idempotency_key: str | None = None,
    request_id: str | None = None,
) -> Call[OutcomeRecord]:
    """Reports what the action led to. The latest outcome of a decision counts."""
    return _reported("reportOutcome", decision_id, "outcome", report, idempotency_key, request_id)


def list_outcomes(
    decision_id: str, *, limit: int | None = None, cursor: str | None = None, request_id: str | None = None
) -> Call[OutcomeList]:
    """The outcome records of a decision, newest first."""
    return _listed("listOutcomes", decision_id, "outcome", limit, cursor, request_id)


def report_crm_sync(
    decision_id: str,
    report: CrmSyncReport | Mapping[str, Any],
    *,
    idempotency_key: str | None = None,
    request_id: str | None = None,
) -> Call[CrmSyncAnswer]:
    """Reports what of the decision is in a CRM."""
    return _reported("reportCrmSync", decision_id, "crm-sync", report, idempotency_key, request_id)


def list_crm_syncs(
    decision_id: str, *, limit: int | None = None, cursor: str | None = None, request_id: str | None = None
) -> Call[CrmSyncList]:
    """The CRM sync records of a decision, newest first."""
    return _listed("listCrmSyncs", decision_id, "crm-sync", limit, cursor, request_id)


def _reported(
    operation: str, decision_id: str, kind: str, report: Mapping[str, Any], key: str | None, request_id: str | None
) -> Call[Any]:
    path = f"{decision(decision_id)}/{kind}"
    handle = retry_handle(key)
    return posted(operation, path, report, idempotency_key=handle, request_id=request_id, accepts=REPORTED)


def _listed(
    operation: str, decision_id: str, kind: str, limit: int | None, cursor: str | None, request_id: str | None
) -> Call[Any]:
    query = {"limit": limit, "cursor": cursor}
    return asked(operation, f"{decision(decision_id)}/{kind}", query=query, request_id=request_id)
