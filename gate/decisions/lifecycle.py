"""After the decision: what callers report of it is checked, hashed, and in the ledger before anyone hears of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from threading import Lock
from typing import Final, cast

import orjson
from cachetools import LRUCache

from gate.clock import new_id
from gate.decisions.claims import Operation, Used, entry_of, not_as_made, read_claim, settle
from gate.decisions.stored import decision_not_found, stored_report
from gate.encoding.canonical import canonical, content_hash
from gate.encoding.strict_json import JsonObject
from gate.errors import IdempotencyConflict, MaterialRefused, ServiceUnavailable
from gate.ids import timestamp
from gate.ledger import Ledger
from gate.ledger.access.authority import Authority
from gate.ledger.access.caller import Caller
from gate.ledger.chain.entries import LinkedBody, StoredReport
from gate.ledger.chain.outcomes import ReportedOutcome
from gate.ledger.chain.writer import Claim, NewEntry
from gate.proof import chain
from gate.records.advisory import is_advisory
from gate.records.documents import Cited, Record, Report
from gate.records.envelope import envelope, erased_members, output_material, receipt_material
from gate.records.reports.receipts import CITED, OUTCOMES, Kind, build, report_link, text
from gate.records.reports.report_request import check_request
from gate.verify.members import uncovered_members

_CACHED: Final = 8192
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
        # What reports cite of a record never changes: once seen, it needs no second look.
        self._cited: LRUCache[tuple[str, str], Cited] = LRUCache(_CACHED)
        self._lock = Lock()

    def report(
        self, authority: Authority, kind: Kind, decision_id: str, body: object, *, idempotency_key: str | None = None
    ) -> Reported:
        """Answers a report with what is durably stored of it.

        Args:
            authority: Who reports.
            kind: What is reported.
            decision_id: The decision that it is about.
            body: The parsed request body.
            idempotency_key: The caller's retry handle, unique for one kind and decision.

        Raises:
            NotFound: SVC_DECISION_NOT_FOUND.
            IdempotencyConflict: SVC_<kind>_IDEMPOTENCY_CONFLICT, or SVC_<kind>_IDEMPOTENCY_IN_PROGRESS while another
                request with the key is unfinished.
            RequestRefused: The body is no report of its kind, or cites another record.
            AccessForbidden: The key may no longer report.
            ServiceUnavailable: SVC_STORAGE_UNAVAILABLE: nothing was acknowledged.
        """
        caller = Caller(self._ledger.directory, authority, "report", self._clock)
        operation = _operation(kind)
        with caller.confirming():
            record = self._record(caller.scope_id, decision_id)
            claim = read_claim(operation, decision_id, idempotency_key, content_hash(body))
        with self._reserved(caller, claim) as free:

            def reported() -> tuple[NewEntry, Report]:
                if not free:
                    raise _in_progress(kind, idempotency_key)
                now = self._clock()
                sent = check_request(kind, body, now)
                report = build(
                    kind,
                    record,
                    sent,
                    new_id(kind.id_prefix, now),
                    idempotency_key=idempotency_key,
                    reported_at=timestamp(now),
                )
                return _entry(caller.scope_id, kind, report, sent, claim, counted=not is_advisory(record)), report

            settled = settle(self._ledger.entries, caller, claim, reported)
        if isinstance(settled, Used):
            return self._replayed(caller.scope_id, kind, settled)
        return Reported({**settled.document, "audit_chain": chain.record_link(settled.appended.link)}, "created")

    def reports(
        self, authority: Authority, kind: Kind, decision_id: str, *, limit: int, before: int | None
    ) -> tuple[list[Report], int | None]:
        """The reports of one kind about a decision, newest first, and the chain position to go on from, if any.

        Args:
            authority: Who asks.
            kind: What is listed.
            decision_id: The decision.
            limit: How many at most; fewer are given where they are very large.
            before: Only those at an earlier chain position; None for the newest.

        Raises:
            NotFound: SVC_DECISION_NOT_FOUND.
            ServiceUnavailable: SVC_STORAGE_UNAVAILABLE.
        """
        self._record(authority.scope_id, decision_id)
        found, more = self._ledger.entries.reports(
            authority.scope_id, decision_id, kind.entry_type, limit=limit, room=_LISTED_BYTES, before=before
        )
        return [stored_report(kind, report) for report in found], found[-1].position if more else None

    def _record(self, scope_id: str, decision_id: str) -> Cited:
        with self._lock:
            cited = self._cited.get((scope_id, decision_id))
        if cited is None:
            stored = self._ledger.entries.linked_body(scope_id, decision_id)
            if stored is None:
                raise decision_not_found()
            cited = _read_cited(stored, decision_id)
            with self._lock:
                self._cited[scope_id, decision_id] = cited
        return cited

    def _reserved(self, caller: Caller, claim: Claim | None) -> AbstractContextManager[bool]:
        if claim is None:
            return nullcontext(True)
        return self._ledger.reservations.reserve(claim.digest(caller.scope_id))

    def _replayed(self, scope_id: str, kind: Kind, used: Used) -> Reported:
        operation = _operation(kind)
        entry = entry_of(self._ledger.entries, scope_id, operation, used)
        link = chain.record_link(entry.link)
        report = stored_report(kind, StoredReport(used.claimed.position, link, entry.body, entry.request))
        if not _answers(kind, report, used.claim) or chain.find_break([entry.link]) is not None:
            raise not_as_made(operation)
        return Reported(report, "replayed")


def _operation(kind: Kind) -> Operation:
    return Operation(kind.name, kind.code, kind.id_member, "report")


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


def _read_cited(stored: LinkedBody, decision_id: str) -> Cited:
    """What reports cite of a record, where the record is the one that its hashes and its leaf were made for."""
    what = "is not readable"
    try:
        # The strict parser, which takes eight times as long, guards against what others send; this the service wrote.
        record = orjson.loads(stored.body)
        what = "was changed after it was made"
        linked = (decision_id, record["record_hash"], record["receipt_hash"])
        if (
            linked == (record["decision_id"], stored.record_hash, stored.receipt_hash)
            and stored.decision_id == decision_id
            and stored.leaf_hash == chain.leaf("decision", *linked, plain=True)
            and _holds(record)
            and not uncovered_members(record)
        ):
            return cast("Cited", {name: record[name] for name in CITED})
        fault = None
    except (orjson.JSONDecodeError, MaterialRefused, LookupError, TypeError, AttributeError, RecursionError) as error:
        fault = error
    raise ServiceUnavailable(
        "SVC_STORAGE_UNAVAILABLE",
        f"The stored record of {decision_id} {what}; the operator must run `gate chain check`.",
    ) from fault


def _holds(record: Record) -> bool:
    """Whether what a record's hashes cover of the members that reports cite is as they say."""
    if "adapter_facts" not in erased_members(record):
        return bool(record["record_hash"] == content_hash(envelope(record)))
    # Of what was erased, one member goes into record_hash; the hashes that the receipt covers can still be made again.
    bundle, status = record["policy_bundle"], record["rulebook_attestation"]["bundle"]["outcome"]["status"]
    return bool(
        record["receipt_hash"] == content_hash(receipt_material(record))
        and record["output_hash"] == content_hash(output_material(record, status))
        and record["policy_bundle_hash"] == content_hash(bundle)
        and (record["policy_id"], record["policy_version"]) == (bundle["id"], bundle["version"])
    )


def _answers(kind: Kind, report: Mapping[str, object], claim: Claim) -> bool:
    """Whether a stored report is still the one that was made for a key and payload."""
    told = (report["decision_id"], report.get("idempotency_key"), report[kind.input_hash_member])
    return told == (claim.decision_id, claim.key, claim.input_hash)


def _in_progress(kind: Kind, idempotency_key: str | None) -> IdempotencyConflict:
    return IdempotencyConflict(
        f"SVC_{kind.code}_IDEMPOTENCY_IN_PROGRESS",
        "Another request with this idempotency key is in progress; wait a moment, and send the "
        "same request again for its answer.",
        details={"idempotency_key": idempotency_key},
    )
