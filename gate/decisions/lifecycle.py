"""After the decision: what callers report of it is checked, hashed, and in the ledger before anyone hears of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from threading import Lock
from typing import Any, Final

import orjson
from cachetools import LRUCache

from gate.decisions.decide import decision_not_found, read_claim
from gate.encoding.canonical import content_hash
from gate.errors import GateError, IdempotencyConflict, MaterialRefused, ServiceUnavailable
from gate.ids import new_id, timestamp
from gate.ledger import Ledger
from gate.ledger.access.authority import Authority
from gate.ledger.chain.entries import LinkedBody, StoredReport
from gate.ledger.chain.outcomes import Outcome
from gate.ledger.chain.writer import Appended, Claim, Claimed, NewEntry
from gate.ledger.stores.store import read_object
from gate.proof import chain
from gate.records.envelope import envelope, erased_members, output_material, receipt_material
from gate.records.receipts import CITED, OUTCOMES, Kind, build, report_hash, report_link
from gate.records.report_request import check_request

_CACHED: Final = 8192
# A report may be as large as a request body: no more are read once they are so large together.
_LISTED_BYTES: Final = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Reported:
    """An answer to a report.

    Attributes:
        report: The stored report, with its audit_chain.
        status: `created`, or `replayed` where the idempotency key had been used with the same payload.
    """

    report: dict[str, Any]
    status: str


class Lifecycle:
    """Takes reports about decisions, and lists them."""

    def __init__(self, ledger: Ledger, clock: Callable[[], datetime]) -> None:
        """Works on a ledger; `clock` gives the current moment in UTC."""
        self._ledger = ledger
        self._clock = clock
        # What reports cite of a record never changes, so that one seen once needs no second look.
        self._cited: LRUCache[tuple[str, str], Mapping[str, Any]] = LRUCache(_CACHED)
        self._lock = Lock()

    def report(
        self, authority: Authority, kind: Kind, decision_id: str, body: Any, *, idempotency_key: str | None = None
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
        try:
            record = self._record(authority.scope_id, decision_id)
            claim = read_claim(kind.name, decision_id, idempotency_key, content_hash(body))
        except GateError:
            # A key that may no longer report hears of nothing else.
            self._confirmed(authority)
            raise
        with self._reserved(authority, claim) as free:
            try:
                if not free:
                    raise _in_progress(kind, idempotency_key)
                entry, report = self._entry(authority, kind, record, body, claim)
            except GateError:
                authority = self._confirmed(authority)
                # A key that was used before answers before anything that is wrong with this request.
                if (replayed := self._replay(authority, kind, claim)) is not None:
                    return replayed
                raise
            appended = self._append(authority, entry)
        if isinstance(appended, Claimed):
            return self._replayed(authority, kind, claim, appended)
        return Reported({**report, "audit_chain": chain.record_link(appended.link)}, "created")

    def reports(
        self, authority: Authority, kind: Kind, decision_id: str, *, limit: int, before: int | None
    ) -> tuple[list[dict[str, Any]], int | None]:
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

    def _record(self, scope_id: str, decision_id: str) -> Mapping[str, Any]:
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

    def _entry(
        self, authority: Authority, kind: Kind, record: Mapping[str, Any], body: Any, claim: Claim | None
    ) -> tuple[NewEntry, dict[str, Any]]:
        """What a request is to append, and the report in it."""
        check_request(kind, body)
        now = self._clock()
        report = build(
            kind,
            record,
            body,
            new_id(kind.id_prefix, now),
            idempotency_key=None if claim is None else claim.key,
            reported_at=timestamp(now),
        )
        outcome = None
        if kind is OUTCOMES:
            outcome = Outcome(report["outcome_status"], report["decision_verdict"], report["decision_action"])
        entry = NewEntry(
            scope_id=authority.scope_id,
            entry_id=report[kind.id_member],
            link=report_link(kind, report),
            body=orjson.dumps(report),
            claim=claim,
            outcome=outcome,
        )
        return entry, report

    def _reserved(self, authority: Authority, claim: Claim | None) -> AbstractContextManager[bool]:
        if claim is None:
            return nullcontext(True)
        return self._ledger.reservations.reserve(claim.digest(authority.scope_id))

    def _confirmed(self, authority: Authority) -> Authority:
        confirmed = self._ledger.directory.confirm(authority, self._clock())
        confirmed.require("report")
        return confirmed

    def _append(self, authority: Authority, entry: NewEntry) -> Appended | Claimed:
        while True:
            appended = self._ledger.entries.append(replace(entry, access_epoch=authority.access_epoch))
            if isinstance(appended, Appended | Claimed):
                return appended
            authority = self._confirmed(authority)

    def _replay(self, authority: Authority, kind: Kind, claim: Claim | None) -> Reported | None:
        claimed = None if claim is None else self._ledger.entries.claimed(authority.scope_id, claim)
        return None if claimed is None else self._replayed(authority, kind, claim, claimed)

    def _replayed(self, authority: Authority, kind: Kind, claim: Claim | None, claimed: Claimed) -> Reported:
        entry = self._ledger.entries.at(authority.scope_id, claimed.position)
        if entry is None or claim is None:
            raise ServiceUnavailable(
                "SVC_STORAGE_UNAVAILABLE",
                "What was reported under this idempotency key cannot be read; retry with the same key.",
            )
        if claimed.input_hash != claim.input_hash:
            raise IdempotencyConflict(
                f"SVC_{kind.code}_IDEMPOTENCY_CONFLICT",
                "The idempotency key was used before with another payload; send that payload, or use a new key.",
                details={
                    "idempotency_key": claim.key,
                    kind.id_member: entry.entry_id,
                    "input_hash": claim.input_hash,
                    "existing_input_hash": claimed.input_hash,
                },
            )
        report = stored_report(kind, StoredReport(claimed.position, chain.record_link(entry.link), entry.body))
        if not _answers(kind, report, claim) or chain.find_break([entry.link]) is not None:
            raise ServiceUnavailable(
                "SVC_STORAGE_UNAVAILABLE",
                "The report of this idempotency key is not as it was made; the operator must check the chain.",
            )
        return Reported(report, "replayed")


def _read_cited(stored: LinkedBody, decision_id: str) -> Mapping[str, Any]:
    """What reports cite of a record, where the record is the one that its hashes and its leaf were made for."""
    what = "is not readable"
    try:
        # The strict parser, which takes eight times as long, guards against what others send; this the service wrote.
        record = orjson.loads(stored.body)
        what = "is not as it was made"
        linked = (decision_id, record["record_hash"], record["receipt_hash"])
        if (
            linked == (record["decision_id"], stored.record_hash, stored.receipt_hash)
            and stored.decision_id == decision_id
            and stored.leaf_hash == chain.leaf("decision", *linked, plain=True)
            and _holds(record)
        ):
            return {name: record[name] for name in CITED}
        fault = None
    except (orjson.JSONDecodeError, MaterialRefused, LookupError, TypeError, AttributeError, RecursionError) as error:
        fault = error
    raise ServiceUnavailable(
        "SVC_STORAGE_UNAVAILABLE", f"What is stored of {decision_id} {what}; the operator must check the chain."
    ) from fault


def _holds(record: Mapping[str, Any]) -> bool:
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


def _answers(kind: Kind, report: Mapping[str, Any], claim: Claim) -> bool:
    """Whether a stored report is still the one that was made for a key and payload."""
    told = (report["decision_id"], report.get("idempotency_key"), report[kind.input_hash_member])
    return told == (claim.decision_id, claim.key, claim.input_hash)


def _in_progress(kind: Kind, idempotency_key: str | None) -> IdempotencyConflict:
    return IdempotencyConflict(
        f"SVC_{kind.code}_IDEMPOTENCY_IN_PROGRESS",
        "Another request with this idempotency key is not finished; wait a moment, and send the same request again to "
        "hear how it ended.",
        details={"idempotency_key": idempotency_key},
    )


def stored_report(kind: Kind, stored: StoredReport) -> dict[str, Any]:
    """A report as it was answered when it was made.

    Raises:
        ServiceUnavailable: SVC_STORAGE_UNAVAILABLE: what is stored is not readable, or not what was hashed and linked.
    """
    what = f"the {kind.name} at chain position {stored.position}"
    report = read_object(stored.body, what)
    hash_ = report_hash(kind, report)
    leaf = chain.leaf(kind.entry_type, str(report.get("decision_id")), hash_, None)
    if (report.get(kind.hash_member), leaf) != (hash_, stored.link["leaf_hash"]):
        raise ServiceUnavailable(
            "SVC_STORAGE_UNAVAILABLE", f"What is stored of {what} is not as it was made; the operator must check it."
        )
    return {**report, "audit_chain": stored.link}
