"""Reports about decisions. Each is checked and hashed, and in the ledger before anyone learns of it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import orjson

from gate.clock import new_id
from gate.decisions.cited import CitedRecords
from gate.decisions.claims import (
    Proposal,
    Used,
    entry_of,
    is_answer_of,
    not_as_made,
    operation_of,
    read_claim,
    require_free,
    settle,
)
from gate.decisions.stored import stored_report
from gate.encoding.canonical import canonical, content_hash
from gate.encoding.strict_json import JsonObject
from gate.ids import timestamp
from gate.ledger import Ledger
from gate.ledger.access.authority import Authority
from gate.ledger.access.caller import Caller
from gate.ledger.chain.entries import StoredReport
from gate.ledger.chain.outcomes import ReportedOutcome
from gate.ledger.chain.reviews import Receipt
from gate.ledger.chain.writer import Claim, NewEntry
from gate.proof import chain
from gate.records.advisory import is_advisory
from gate.records.documents import Cited, Report
from gate.records.reports.receipts import EXECUTIONS, OUTCOMES, Kind, build, report_link, says_executed, text
from gate.records.reports.report_request import check_request

# A report may be as large as a request body; reading stops once they have this size together.
_LISTED_BYTES: Final = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Reported:
    """An answer to a report.

    Attributes:
        report: The stored report, with its audit_chain.
        status: `created`, or `replayed` where the idempotency key had been used with the same payload.
    """

    report: Report
    status: str


class Lifecycle:
    """Takes reports about decisions, and lists them."""

    def __init__(self, ledger: Ledger, clock: Callable[[], datetime]) -> None:
        """Works on a ledger; `clock` gives the current moment in UTC."""
        self._ledger = ledger
        self._clock = clock
        self._decisions = CitedRecords(ledger.entries)

    def report(
        self, authority: Authority, kind: Kind, decision_id: str, body: object, *, idempotency_key: str | None = None
    ) -> Reported:
        """Answers a report with what is durably stored of it.

        Args:
            authority: Who reports.
            kind: The kind of the report.
            decision_id: The decision that it is about.
            body: The parsed request body.
            idempotency_key: The caller's retry handle, unique for one kind and decision.

        Raises:
            NotFound: `SVC_DECISION_NOT_FOUND`.
            IdempotencyConflict: `SVC_<kind>_IDEMPOTENCY_CONFLICT`, or `SVC_<kind>_IDEMPOTENCY_IN_PROGRESS` while
                another request with the key is unfinished.
            RequestRefused: The body is no report of its kind, or cites another record.
            AccessForbidden: The key may no longer report.
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`: nothing was acknowledged.
        """
        caller = Caller(self._ledger.directory, authority, "report", self._clock)
        operation = operation_of(kind)
        with caller.confirming():
            record = self._decisions.find(caller.scope_id, decision_id)
            claim = read_claim(operation, decision_id, idempotency_key, content_hash(body))
        with self._reserved(caller, claim) as free:

            def reported() -> tuple[NewEntry, Report]:
                require_free(kind, idempotency_key, free=free)
                now = self._clock()
                sent = check_request(kind, body, now)
                granted = self._is_granted(caller.scope_id, record) if kind is EXECUTIONS else None
                report = build(
                    kind,
                    record,
                    sent,
                    new_id(kind.id_prefix, now),
                    idempotency_key=idempotency_key,
                    reported_at=timestamp(now),
                    granted=granted is True,
                )
                entry = _entry(caller.scope_id, kind, report, sent, claim, counted=not is_advisory(record))
                if granted is None:
                    return entry, report
                receipt = Receipt(granted, says_executed(report))
                return entry._replace(receipt=receipt), report

            settled = settle(self._ledger.entries, caller, Proposal(claim, reported))
        if isinstance(settled, Used):
            return self._replayed(caller.scope_id, kind, settled)
        return Reported({**settled.document, "audit_chain": chain.record_link(settled.appended.link)}, "created")

    def reports(
        self, authority: Authority, kind: Kind, decision_id: str, *, limit: int, before: int | None
    ) -> tuple[list[Report], int | None]:
        """The reports of one kind about a decision, newest first, and the chain position to go on from, if any.

        Args:
            authority: The caller.
            kind: The kind of the listed reports.
            decision_id: The decision.
            limit: The maximum number. Fewer are returned if they are large.
            before: Only those at an earlier chain position; None for the newest.

        Raises:
            NotFound: `SVC_DECISION_NOT_FOUND`.
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        self._decisions.find(authority.scope_id, decision_id)
        found, more = self._ledger.entries.reports(
            authority.scope_id, decision_id, kind.entry_type, limit=limit, room=_LISTED_BYTES, before=before
        )
        return [stored_report(kind, report) for report in found], found[-1].position if more else None

    def _is_granted(self, scope_id: str, record: Cited) -> bool | None:
        """Whether the owner of a held decision granted it; None for one that is not held for an owner."""
        if record["verdict"] != "review":
            return None
        review = self._ledger.reviews.find(scope_id, record["decision_id"])
        return None if review is None else review.granted

    def _reserved(self, caller: Caller, claim: Claim | None) -> AbstractContextManager[bool]:
        if claim is None:
            return nullcontext(True)
        return self._ledger.reservations.reserve(claim.digest(caller.scope_id))

    def _replayed(self, scope_id: str, kind: Kind, used: Used) -> Reported:
        operation = operation_of(kind)
        entry = entry_of(self._ledger.entries, scope_id, operation, used)
        link = chain.record_link(entry.link)
        report = stored_report(kind, StoredReport(used.claimed.position, link, entry.body, entry.request))
        if not is_answer_of(kind, report, used.claim) or chain.find_break([entry.link]) is not None:
            raise not_as_made(operation)
        return Reported(report, "replayed")


def _entry(
    scope_id: str, kind: Kind, report: Report, body: JsonObject, claim: Claim | None, *, counted: bool
) -> NewEntry:
    outcome = None
    # What came of advice says nothing about a policy, even one whose rulebook has the same id, version and action.
    if kind is OUTCOMES and counted:
        outcome = ReportedOutcome(
            text(report, kind.status_member), report["decision_verdict"], report["decision_action"]
        )
    return NewEntry(
        scope_id=scope_id,
        entry_id=text(report, kind.id_member),
        link=report_link(kind, report),
        body=orjson.dumps(report),
        # Of all that a report repeats, its own hash leaves out this alone; so this alone needs the body.
        request=canonical(body) if "occurred_at" in report else None,
        claim=claim,
        outcome=outcome,
    )
