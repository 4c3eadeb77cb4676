"""The adapters of this release. Code registers them, and nothing else can."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final

from gate.adapters.manifest import Adapter, load_adapter

_BUILTIN: Final = Path(__file__).parent / "builtin"

# A version that was released stays, for what it made has to be made again.
_REGISTERED: Final = (
    "refund_facts@1.0.0",
    "solana_execution_gate@1.0.0",
)


@cache
def registered() -> tuple[Adapter, ...]:
    """Every adapter, by id and version.

    Raises:
        OperatorError: ADAPTER_DAMAGED.
    """
    return tuple(load_adapter(_BUILTIN, name) for name in _REGISTERED)


def find_adapter(adapters: Sequence[Adapter], adapter_id: str, version: str) -> Adapter | None:
    """The adapter of that id and exact version."""
    asked = (adapter_id, version)
    return next((adapter for adapter in adapters if (adapter.adapter_id, adapter.version) == asked), None)
