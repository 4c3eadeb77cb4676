"""Libraries that tests compare the product with, loaded by the processes that run these tests alone."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any


@cache
def stats() -> Any:
    """SciPy's statistics, which take a second to load: a process that runs other tests does without."""
    return import_module("scipy.stats")
