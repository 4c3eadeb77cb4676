"""The health of ledger, chain, lake, and checkpoints, by the functions that the service and the command line use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from gate.errors import GateError
from gate.instance.instance import Instance
from gate.proof.chain import find_break
from workbench.engines.wording import counted, stated
from workbench.lake.manifest import load

LINKS: Final = 1000
"""How many of the chain's last links are recomputed."""

# So far may the lake be behind without anybody having to look: the export comes every two seconds.
_BEHIND: Final = 1000


@dataclass(frozen=True, slots=True)
class Part:
    """How one of them is.

    Attributes:
        name: Ledger, chain, lake, or checkpoints.
        well: Whether the part is healthy; None if there is nothing to check, for example no checkpoint.
        told: The result, as a sentence.
    """

    name: str
    well: bool | None
    told: str


@dataclass(frozen=True, slots=True)
class Health:
    """How all of them are.

    Attributes:
        parts: One by one.
    """

    parts: tuple[Part, ...]

    @property
    def well(self) -> bool:
        """Whether nothing is wrong with any of them."""
        return all(part.well is not False for part in self.parts)


def health(instance: Instance, scope_id: str, now: datetime) -> Health:
    """The health of a scope's ledger, chain, lake, and checkpoints.

    Args:
        instance: The instance.
        scope_id: The scope.
        now: The moment.
    """
    return Health(
        (
            _part("Ledger", lambda: _ledger(instance, scope_id)),
            _part("Chain", lambda: _chain(instance, scope_id)),
            _part("Lake", lambda: _lake(instance, scope_id)),
            _part("Checkpoints", lambda: _checkpoints(instance, scope_id, now)),
        )
    )


def _part(name: str, look: Callable[[], tuple[bool | None, str]]) -> Part:
    try:
        return Part(name, *look())
    except GateError as error:
        return Part(name, well=False, told=error.message)


def _ledger(instance: Instance, scope_id: str) -> tuple[bool, str]:
    head = instance.ledger.entries.head(scope_id)
    if not head.size:
        return True, "Readable; it has no entries of this scope yet."
    _, links = instance.ledger.entries.latest_links(scope_id, 1)
    return True, f"Readable; {counted(head.size, 'entry', 'entries')}, the last of {stated(links[-1]['created_at'])}."


def _chain(instance: Instance, scope_id: str) -> tuple[bool, str]:
    head, links = instance.ledger.entries.latest_links(scope_id, LINKS)
    if not links:
        return True, "It has no links yet."
    broken = find_break(links)
    if broken is not None or links[-1]["link_hash"] != head.link_hash:
        return False, "A link does not match the link before it. The operator must run `gate chain check`."
    return True, (
        f"Each of its last {counted(len(links), 'link')}, of {head.size:,}, matches the link before it. `gate chain "
        f"check` recomputes all of them."
    )


def _lake(instance: Instance, scope_id: str) -> tuple[bool, str]:
    size, manifest = instance.ledger.entries.head(scope_id).size, load(instance.settings.lake_directory, scope_id)
    behind = size - (0 if manifest is None else manifest.position)
    if behind <= 0:
        return True, "It contains every entry of the ledger."
    told = f"It lacks the last {counted(behind, 'entry', 'entries')}; pages read these from the ledger."
    if behind <= _BEHIND:
        return True, told
    return False, f"{told} Start `gate serve` to export them, or run `gate lake export`."


def _checkpoints(instance: Instance, scope_id: str, now: datetime) -> tuple[bool | None, str]:
    found = instance.checkpoints.look(now)
    if found is None:
        return (
            None,
            "Receipt signing is off, so no checkpoint is created. Nothing would reveal a rewritten history.",
        )
    chain_id = instance.ledger.entries.head(scope_id).chain_id
    for refusal in found.refused:
        if refusal.chain_id == chain_id:
            return False, f"{refusal.reason} The operator must run `gate chain check`."
    kept = instance.checkpoints.log.kept(chain_id)
    if kept is None:
        return None, "This chain has no checkpoint yet. `gate serve` creates checkpoints as the chain grows."
    return (
        True,
        f"The chain contains its last checkpoint, of {stated(kept['issued_at'])}, at position {kept['chain_size']:,}.",
    )
