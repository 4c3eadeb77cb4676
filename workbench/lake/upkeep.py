"""Bringing a scope of the lake up to the ledger: export and compaction in turns, so that neither runs far ahead."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from gate.ledger import Ledger
from workbench.lake.compaction import Compactor
from workbench.lake.entries import Personal
from workbench.lake.export import Exporter
from workbench.lake.manifest import Manifest, load

_TURN: Final = 50_000


def bring_up(
    ledger: Ledger, lake: Path, scope_id: str, personal: Personal, *, many: int = 1, behind: int = 0
) -> Iterator[Manifest]:
    """Exports what a scope's chain has gained, and compacts; whoever calls it has the lease.

    Args:
        ledger: The ledger.
        lake: The lake's directory.
        scope_id: The scope.
        personal: What is left out.
        many: How many small files of a kind are let be.
        behind: By how many chain positions the cases may stay behind.

    Returns:
        The manifest after each commit.

    Raises:
        OperatorError: As `Exporter.export` and `Compactor.compact`.
        ServiceUnavailable: SVC_STORAGE_UNAVAILABLE.
    """
    # The lease's holder reads the head, so that it is never behind what another process has exported.
    scope = ledger.tail.scope(scope_id)
    if scope is None:
        return
    exporter, compactor = Exporter(ledger, lake, personal), Compactor(lake)
    position = 0
    while True:
        yield from exporter.export(scope, most=_TURN)
        found = load(lake, scope_id)
        if found is None:
            return
        yield from compactor.compact(found, many=many, behind=behind)
        if found.position >= scope.head.size or found.position == position:
            return
        position = found.position
