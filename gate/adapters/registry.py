"""The adapters of this release. Code registers them, and nothing else can."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Final

from gate.adapters.manifest import Adapter, load_adapter
from gate.errors import OperatorError

BUILTIN: Final = Path(__file__).parent / "builtin"
"""Where the source and the manifest of each adapter lie."""

# A version that was released stays, for what it made has to be made again.
_REGISTERED: Final = (
    "refund_facts@1.0.0",
    "solana_execution_gate@1.0.0",
)


def registered() -> tuple[Adapter, ...]:
    """Every adapter whose files are those that were released, by id and version."""
    return _loaded()[0]


def damaged() -> Mapping[str, OperatorError]:
    """The fault of every other adapter (`ADAPTER_DAMAGED`), by its name."""
    return _loaded()[1]


@cache
def _loaded() -> tuple[tuple[Adapter, ...], Mapping[str, OperatorError]]:
    whole, damages = [], {}
    for name in _REGISTERED:
        try:
            whole.append(load_adapter(BUILTIN, name))
        except OperatorError as error:
            damages[name] = error
    return tuple(whole), MappingProxyType(damages)


def find_adapter(adapters: Sequence[Adapter], adapter_id: str, version: str) -> Adapter | None:
    """The adapter of that id and exact version."""
    asked = (adapter_id, version)
    return next((adapter for adapter in adapters if (adapter.adapter_id, adapter.version) == asked), None)
