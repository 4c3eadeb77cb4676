"""Chains that no gate decided: whatever dates, versions, codes, metrics and facts a test wants, and many of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Final

import orjson

from gate.ids import timestamp
from gate.ledger.reads.tail import FollowedEntry
from tests.independent import recount
from workbench.columns import TIME_COLUMNS
from workbench.lake.compaction import Compactor
from workbench.lake.entries import Frames, Personal, Rulebooks, frames
from workbench.lake.files import Files, by_month
from workbench.lake.manifest import Manifest, directory_of, save
from workbench.lake.reader import Snapshot

POLICY: Final = "refunds"
MONDAY: Final = datetime(2026, 1, 5, tzinfo=UTC)
HOUR: Final = timedelta(hours=1)
DAY: Final = timedelta(days=1)
WEEK: Final = timedelta(weeks=1)

_HASH: Final = "0" * 64


def rulebook_of(*fields: str, version: str = "1") -> dict[str, Any]:
    """What of a rulebook is counted: the facts that it reads."""
    schema = {"required": [], "properties": {field: {"type": "string"} for field in fields}}
    return {"rulebook_id": POLICY, "version": version, "input_schema": schema, "rules": []}


@cache
def _hash_of(rulebook: bytes) -> str:
    """The hash of a rulebook, of which a chain has few, and each many times."""
    return recount.hash_of(orjson.loads(rulebook))


class MadeUp:
    """A chain, as the service would answer its entries.

    Attributes:
        entries: The entries, in chain order.
        requests: The request of each decision, by its id.
    """

    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] = []
        self.requests: dict[str, dict[str, Any]] = {}
        self._about: dict[str, tuple[int, dict[str, Any]]] = {}
        self._erased: dict[str, int] = {}
        self._resolutions: dict[str, str] = {}

    def decide(
        self,
        at: datetime,
        *,
        verdict: str = "yes",
        reason: str = "ALLOWED",
        version: str = "1",
        policy_id: str = POLICY,
        facts: dict[str, Any] | None = None,
        rulebook: dict[str, Any] | None = None,
        rule: str = "rule:default",
        target: str = "",
        request_id: str = "req_1",
        outcome: Sequence[str] = (),
        adapter: str | None = None,
        occurred_at: str | None = None,
    ) -> str:
        """Adds a decision; its id.

        Args:
            at: When.
            verdict: The verdict.
            reason: The reason code.
            version: The policy's version.
            policy_id: The policy.
            facts: The facts.
            rulebook: The rulebook that decides; one that reads nothing where None.
            rule: What decides, as evidence codes have it.
            target: The target object.
            request_id: The request's handle.
            outcome: The application verdict and the action, where they matter.
            adapter: The manifest hash of the adapter that made the facts; None where the caller sent them.
            occurred_at: When what it is about happened, as its request tells it.
        """
        decision_id = f"dec_{len(self.entries) + 1}"
        body = rulebook or rulebook_of(version=version)
        self.requests[decision_id] = {"rulebook": body, "context": {"inputs": facts or {}}}
        if occurred_at is not None:
            self.requests[decision_id]["occurred_at"] = occurred_at
        word, action = outcome or (verdict.upper(), "refund")
        record = {
            "decision_id": decision_id,
            "created_at": timestamp(at),
            "policy_id": policy_id,
            "policy_version": version,
            "policy_hash": _hash_of(orjson.dumps(body)),
            "verdict": verdict,
            "application_verdict": word,
            "action": action,
            "reason_code": reason,
            "evidence": [reason, rule],
            "action_binding": {"system": "shop", "resource": target} if target else {},
            "request_id": request_id,
            "input_hash": _HASH,
            "output_hash": _HASH,
        }
        if adapter is not None:
            named = {"adapter_id": "made_up", "version": "1", "manifest_hash": adapter, "input_hash": _HASH}
            record |= {"trusted_adapter": named, "adapter_facts": facts or {}}
        self._add(record)
        self._about[decision_id] = (len(self.entries), record)
        return decision_id

    def receipt(self, decision_id: str, at: datetime, status: str = "executed", **more: Any) -> None:
        """Adds an execution receipt."""
        _, record = self._about[decision_id]
        approved = record["verdict"] == "yes" or self._resolutions.get(decision_id) == "granted"
        flags = [] if approved else ["DECISION_NOT_APPROVED"]
        told = {"execution_status": status, "action_binding_match": True, "flags": flags, **more}
        told["decision_action"] = record["action"]
        self._add({"execution_receipt_id": f"exe_{len(self.entries)}", **told}, decision_id, at)

    def outcome(self, decision_id: str, at: datetime, status: str = "succeeded", **more: Any) -> None:
        """Adds an outcome."""
        self._add({"outcome_id": f"out_{len(self.entries)}", "outcome_status": status, **more}, decision_id, at)

    def is_held(self, decision_id: str) -> bool:
        """Whether a decision is a review that nobody resolved."""
        return self._about[decision_id][1]["verdict"] == "review" and decision_id not in self._resolutions

    def resolve(self, decision_id: str, at: datetime, answer: str = "granted") -> None:
        """Adds the resolution of a held decision."""
        self._resolutions[decision_id] = answer
        told = {"resolution": answer, "actor": {"type": "key", "id": "key_1"}, "recorded_at": timestamp(at)}
        self._add({"resolution_entry_id": f"res_{len(self.entries)}", **told}, decision_id, at)

    def erase(self, decision_id: str, at: datetime) -> None:
        """Adds an erasure."""
        self._erased[decision_id] = len(self.entries) + 1
        self._add({"erasure_id": f"era_{len(self.entries)}", "reason": "asked for", "erased": []}, decision_id, at)

    def erased_at(self, decision_id: str) -> int:
        """The position of the last erasure of a decision; 0 where it was not erased."""
        return self._erased.get(decision_id, 0)

    def _add(self, entry: dict[str, Any], decision_id: str | None = None, at: datetime | None = None) -> None:
        told = {} if decision_id is None or at is None else {"decision_id": decision_id, "reported_at": timestamp(at)}
        leaf = f"{len(self.entries) + 1:064x}"
        self.entries.append({**entry, **told, "audit_chain": {"leaf_hash": leaf}})

    def snapshot(
        self, lake: Path, personal: Personal | None = None, *, exported: int = 0, compacted: int = 0
    ) -> Snapshot:
        """The chain, of which the lake holds nothing yet, or some.

        Args:
            lake: The lake's directory.
            personal: What is left out.
            exported: How many entries lie in the lake's files.
            compacted: How many of these are resolved.
        """
        bodies = {_hash_of(orjson.dumps(of["rulebook"])): of["rulebook"] for of in self.requests.values()}
        rows = [self._row(position, entry) for position, entry in enumerate(self.entries, 1)]
        rulebooks, left_out = Rulebooks(bodies.get), personal or Personal()
        root = recount.root_of(self.entries)
        manifest = Manifest("s1", "acme", "chain_1", merkle_root=root, personal=left_out.marks)
        for start, end in ((0, compacted), (compacted, exported)):
            if start < end:
                held = frames("s1", rows[start:end], rulebooks, left_out)
                manifest = _exported(lake, replace(manifest, position=end), held)
            if start == 0:
                manifest = [manifest, *Compactor(lake).compact(manifest)][-1]
        tail = frames("s1", rows[exported:], rulebooks, left_out)
        return Snapshot(lake, manifest, len(rows), root, tail)

    def _row(self, position: int, entry: dict[str, Any]) -> FollowedEntry:
        decision_id = entry["decision_id"]
        kinds = {"outcome_id": "outcome", "execution_receipt_id": "execution", "erasure_id": "erasure"}
        kinds["resolution_entry_id"] = "resolution"
        kind = next((kind for member, kind in kinds.items() if member in entry), "decision")
        at, record = self._about[decision_id]
        request = orjson.dumps(self.requests[decision_id]) if kind == "decision" else None
        if kind == "decision" and decision_id in self._erased:
            # The ledger has forgotten it, wherever the erasure stands.
            request, entry = None, {name: value for name, value in entry.items() if name != "adapter_facts"}
        if kind == "outcome" and position < self._erased.get(decision_id, 0):
            entry = {name: value for name, value in entry.items() if name != "occurred_at"}
        return FollowedEntry(
            position=position,
            entry_type=kind,
            entry_id=f"entry_{position}",
            decision_id=decision_id,
            decision_position=at,
            record_hash=_HASH,
            receipt_hash=_HASH,
            policy_id=record["policy_id"],
            policy_version=None if record["policy_version"] is None else record["policy_version"].encode(),
            created_at=entry["created_at"] if kind == "decision" else entry["reported_at"],
            leaf_hash=_HASH,
            merkle_root=_HASH,
            link_hash=_HASH,
            body=orjson.dumps(entry),
            request=request,
            confidence=None,
        )


def _exported(lake: Path, manifest: Manifest, held: Frames) -> Manifest:
    """Writes the rows of entries as an export does."""
    directory_of(lake, manifest.scope_id).mkdir(parents=True, exist_ok=True)
    files = Files(lake, manifest, manifest.position, str(manifest.merkle_root))
    written = [
        files.write(table, month, rows)
        for table, frame in held.items()
        for month, rows in by_month(frame, TIME_COLUMNS[table])
    ]
    manifest = replace(manifest, generation=manifest.generation + 1, files=(*manifest.files, *written))
    save(lake, manifest)
    return manifest
