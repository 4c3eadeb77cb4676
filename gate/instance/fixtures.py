"""The facts of fixtures that adapters make: by those of this release, in contained workers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gate.adapters.invocation import TrustedAdapters
from gate.adapters.registry import damaged, registered
from gate.adapters.worker import Workers
from gate.encoding.strict_json import JsonObject
from gate.errors import OperatorError
from gate.migration.drift import MakeFacts
from gate.migration.manifest import NamedAdapter
from gate.rulebooks.facts import Facts


@contextmanager
def fixture_facts() -> Iterator[MakeFacts]:
    """What makes facts by the adapters of this release, in contained workers, which start with the first call."""
    adapters = TrustedAdapters(registered(), Workers(registered()), damaged=damaged())
    asked = False

    def make(adapter: NamedAdapter, given: JsonObject) -> Facts:
        nonlocal asked
        # Where no worker can run, every fixture would drift.
        if not asked and (reason := adapters.measures().reason) is not None:
            raise OperatorError(
                "ADAPTERS_UNAVAILABLE",
                f"Adapters cannot run on this machine, so cases with adapters cannot be evaluated: {reason}. "
                "docs/guides/write-an-adapter.md lists the requirements.",
            )
        asked = True
        return adapters.facts(adapters.invocation({**adapter._asdict(), "input": given}))

    try:
        yield make
    finally:
        adapters.close()
