"""Fixtures: a lake beside the instance's ledger, and what brings it up to it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from gate.instance.instance import Instance
from gate.ledger.access.authority import Scope
from tests.workbench.support import bring_together, bring_up
from workbench.lake.manifest import Manifest
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

    return partial(bring_up, instance, lake, scope)


@pytest.fixture
def compact(lake: Path, scope: Scope) -> Export:
    """Compacts what the lake holds of the scope, and says what it holds then."""

    return partial(bring_together, lake, scope)


@pytest.fixture
def snapshot(lake: Path, scope: Scope) -> Callable[[], Snapshot]:
    """Opens the lake as it is."""
    return lambda: open_lake(lake).scope(scope.name)
