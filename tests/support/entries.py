"""Entries to append to a chain."""

from __future__ import annotations

from typing import Any

from gate.ledger.chain.writer import Claim, NewEntry
from gate.proof import chain


def entry(scope_id: str, number: int, claim: Claim | None = None, **link: Any) -> NewEntry:
    decision_id = f"dec_{number:032x}"
    material = chain.Entry(
        entry_type="decision",
        decision_id=decision_id,
        record_hash=f"{number:064x}",
        receipt_hash="e" * 64,
        policy_id="pricing_exception",
        policy_version="2026 \u0000 é",
        created_at="2026-06-11T12:00:00.000Z",
    )
    return NewEntry(scope_id, decision_id, material._replace(**link), b'{"n": 10.0}', b'{"request": "\\u0000"}', claim)
