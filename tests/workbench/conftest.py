"""Fixtures: a lake beside the instance's ledger, and what brings it up to it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gate.instance.instance import Instance
from gate.ledger.access.authority import Scope
from workbench.lake.compaction import Compactor
from workbench.lake.entries import Personal
from workbench.lake.export import Exporter
from workbench.lake.manifest import Manifest, load
from workbench.lake.reader import Snapshot, open_lake


@pytest.fixture
def lake(instance: Instance) -> Path:
    """The lake's directory, still empty."""
    directory = instance.settings.lake_directory
    directory.mkdir()
    return directory


Export = Callable[..., Manifest]


@pytest.fixture
def export(instance: Instance, lake: Path, scope: Scope) -> Export:
    """Brings the lake up to the scope's chain, in batches of some entries, and says what it holds then."""

    def bring_up(*, batch: int = 20_000, personal: Personal | None = None) -> Manifest:
        followed = instance.ledger.tail.scope(scope.scope_id)
        assert followed is not None
        for _ in Exporter(instance.ledger, lake, personal, batch=batch).export(followed):
            pass
        found = load(lake, scope.scope_id)
        assert found is not None
        return found

    return bring_up


@pytest.fixture
def compact(lake: Path, scope: Scope) -> Export:
    """Compacts what the lake holds of the scope, and says what it holds then."""

    def bring_together(*, many: int = 1, behind: int = 0) -> Manifest:
        found = load(lake, scope.scope_id)
        assert found is not None
        for manifest in Compactor(lake).compact(found, many=many, behind=behind):
            found = manifest
        return found

    return bring_together


@pytest.fixture
def snapshot(lake: Path, scope: Scope) -> Callable[[], Snapshot]:
    """Opens the lake as it is."""
    return lambda: open_lake(lake).scope(scope.name)
