"""Fixtures: a chain with every kind of anomaly, and one in which callers named everything so that it would run."""

from __future__ import annotations

from typing import Final

import pytest

from tests.workbench.hostile import NAMES, named
from workbench.dashboard.store.memo import Memo
from workbench.lake.reader import Snapshot

HOSTILE: Final = f'"><img src=x onerror=1>{" ".join(NAMES)}'


@pytest.fixture(scope="package")
def anomalous(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """A scope whose only policy, its version, a reason, a rule, a metric and a fact are called refunds."""
    return named("refunds", tmp_path_factory.mktemp("lake"))


@pytest.fixture(scope="package")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """The same, but all of them are called `HOSTILE`."""
    return named(HOSTILE, tmp_path_factory.mktemp("lake"))


@pytest.fixture(scope="package")
def memo() -> Memo:
    """Answers about the first of them, computed once for all tests."""
    return Memo(1000)


@pytest.fixture(scope="package")
def hostile_memo() -> Memo:
    """Answers about the other, likewise."""
    return Memo(1000)
