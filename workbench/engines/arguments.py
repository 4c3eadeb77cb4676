"""Checks at an engine's door that it is given a lake, or a scope of one; its question checks everything else
(`gate.policy.questions`). A wrong argument is refused in a sentence, before anything is read.
"""

from __future__ import annotations

from typing import Final

from gate.policy.bounds import refusal, shown
from workbench.lake.reader import Lake, Snapshot

_SCOPES: Final = 20


def require_snapshot(value: object) -> None:
    """Refuses what is no scope of a lake.

    Raises:
        OperatorError: ENGINE_ARGUMENT_INVALID.
    """
    if isinstance(value, Snapshot):
        return
    if isinstance(value, Lake):
        named = ", ".join(value.scopes[:_SCOPES]) or "none yet"
        more = f" and {len(value.scopes) - _SCOPES:,} more" if len(value.scopes) > _SCOPES else ""
        raise refusal(f"A lake is no scope: give a scope, lake.scope(...); this lake has {named}{more}.")
    raise refusal(f"snapshot is {shown(value)}: give a scope, open_lake(...).scope(...).")


def require_lake(value: object) -> None:
    """Refuses what is neither a lake nor a scope of one.

    Raises:
        OperatorError: ENGINE_ARGUMENT_INVALID.
    """
    if not isinstance(value, Lake | Snapshot):
        raise refusal(f"lake is {shown(value)}: give a lake, open_lake(...), or one scope of it.")
