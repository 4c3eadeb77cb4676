"""Fixtures: what becomes of the lake while reports are asked for."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from gate.instance.instance import Instance
from tests.api.routes.reports import Change
from workbench.lake.compaction import Compactor
from workbench.lake.export import Exporter
from workbench.lake.manifest import load


@pytest.fixture
def export(instance: Instance) -> Change:
    """Brings the lake up to every chain."""

    def bring_up() -> None:
        instance.settings.lake_directory.mkdir(exist_ok=True)
        for scope in instance.ledger.tail.scopes():
            for _ in Exporter(instance.ledger, instance.settings.lake_directory).export(scope):
                pass

    return bring_up


@pytest.fixture
def compact(instance: Instance) -> Change:
    """Resolves the cases of the lake, and merges its files."""

    def bring_together() -> None:
        lake = instance.settings.lake_directory
        for scope in instance.ledger.tail.scopes():
            manifest = load(lake, scope.scope_id)
            assert manifest is not None
            for _ in Compactor(lake).compact(manifest):
                pass

    return bring_together


@pytest.fixture
def changes(export: Change, compact: Change) -> Sequence[Change]:
    """What becomes of the lake while reports are asked for."""
    return [lambda: None, export, lambda: None, compact, lambda: None, export, export, compact]
