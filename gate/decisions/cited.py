"""The decisions that reports and resolutions are about, as far as these cite them."""

from __future__ import annotations

from threading import Lock
from typing import Final, cast

import orjson
from cachetools import LRUCache

from gate.decisions.stored import decision_not_found
from gate.encoding.canonical import is_hash_of
from gate.errors import MaterialRefused, ServiceUnavailable
from gate.ledger.chain.entries import Entries, LinkedBody
from gate.proof import chain
from gate.records.documents import Cited, Record
from gate.records.envelope import envelope, erased_members, output_material, receipt_material
from gate.records.reports.receipts import CITED
from gate.verify.members import uncovered_members

_CACHED: Final = 8192


class CitedRecords:
    """Finds decisions, each held against its hashes the first time. A record never changes: once seen, it is known."""

    def __init__(self, entries: Entries) -> None:
        """Works on the entries of a ledger."""
        self._entries = entries
        self._known: LRUCache[tuple[str, str], Cited] = LRUCache(_CACHED)
        self._lock = Lock()

    def find(self, scope_id: str, decision_id: str) -> Cited:
        """The members of a decision's record that are cited.

        Raises:
            NotFound: `SVC_DECISION_NOT_FOUND`.
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`: it cannot be read, or is not as it was made.
        """
        with self._lock:
            cited = self._known.get((scope_id, decision_id))
        if cited is None:
            stored = self._entries.linked_body(scope_id, decision_id)
            if stored is None:
                raise decision_not_found()
            cited = _read_cited(stored, decision_id)
            with self._lock:
                self._known[scope_id, decision_id] = cited
        return cited


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
        f"The stored record of {decision_id} {what}. The operator must run `gate chain check`.",
    ) from fault


def _holds(record: Record) -> bool:
    """Whether what a record's hashes cover of the members that reports cite is as they say."""
    if "adapter_facts" not in erased_members(record):
        return is_hash_of(record["record_hash"], envelope(record))
    # Of what was erased, one member goes into record_hash; the hashes that the receipt covers can still be made again.
    bundle, status = record["policy_bundle"], record["rulebook_attestation"]["bundle"]["outcome"]["status"]
    return bool(
        is_hash_of(record["receipt_hash"], receipt_material(record))
        and is_hash_of(record["output_hash"], output_material(record, status))
        and is_hash_of(record["policy_bundle_hash"], bundle)
        and (record["policy_id"], record["policy_version"]) == (bundle["id"], bundle["version"])
    )
