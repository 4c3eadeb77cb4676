"""Reports over imported cases say so: in their coverage, in a note, and by their hash."""

from __future__ import annotations

from typing import Any

from gate.encoding.canonical import content_hash
from workbench.lake.reader import Snapshot


def marked(body: dict[str, Any], snapshot: Snapshot, hash_name: str) -> dict[str, Any]:
    """A report that states its imported history. A report over a scope's own chain is returned unchanged.

    Args:
        body: The report.
        snapshot: The source of the report.
        hash_name: The field with its hash, the last one.
    """
    found = snapshot.imported
    if found is None:
        return body
    report = {name: value for name, value in body.items() if name != hash_name}
    report["coverage"] = {**report["coverage"], "history": found.mark}
    report["notes"] = [found.note, *report["notes"]]
    return {**report, hash_name: content_hash(report)}


def mark_of(snapshot: Snapshot) -> dict[str, object] | None:
    """The history that frames are over; None for a scope's own chain."""
    return None if snapshot.imported is None else snapshot.imported.mark
