"""Instances whose files the tests look at, and damage."""

from __future__ import annotations

from pathlib import Path

import pytest

from gate.instance.instance import Instance


@pytest.fixture
def instance(home: Path, instance: Instance) -> Instance:
    """One of each test's own."""
    return instance
