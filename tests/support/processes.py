"""Processes of a test's own, forked by a server that has loaded what they run, which takes most of a second."""

from __future__ import annotations

import multiprocessing
from multiprocessing.context import ForkServerContext
from typing import Final

# What is not there is loaded by each process that needs it. Of the product, only what these need themselves.
_LOADED: Final = [
    "__main__",
    "tests.gate.client.guard.guarded_program",
    "tests.gate.client.store.racing",
    "tests.support.entries",
    "tests.support.samples",
]


def forked() -> ForkServerContext:
    """Makes processes that share nothing with this one, and with each other only what was loaded."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_LOADED)
    return context
