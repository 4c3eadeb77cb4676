"""The scope's audit chain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gate.client.transport.building import asked, member
from gate.client.transport.calls import Call

if TYPE_CHECKING:
    from gate.client.types import Chain, Checkpoint


def get_chain(chain_id: str, *, limit: int | None = None, request_id: str | None = None) -> Call[Chain]:
    """The head of the chain and its last links, ascending."""
    return asked("getChain", _path(chain_id), query={"limit": limit}, request_id=request_id)


def get_checkpoint(chain_id: str, *, request_id: str | None = None) -> Call[Checkpoint]:
    """A signed statement of the chain's size and root."""
    return asked("getCheckpoint", f"{_path(chain_id)}/checkpoint", request_id=request_id)


def _path(chain_id: str) -> str:
    return f"/api/decision/chains/{member('chain_id', chain_id)}"
