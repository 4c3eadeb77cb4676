"""The scope's audit chain and its signed checkpoints."""

from __future__ import annotations

from flask import Blueprint, Response

from api.http.auth import authenticate
from api.http.requests import query_integer
from api.http.responses import json_response
from api.http.state import state
from gate.clock import utc_now
from gate.errors import NotFound, ServiceUnavailable
from gate.ids import timestamp
from gate.proof import chain

blueprint = Blueprint("chains", __name__)

_UNAUTHORIZED = "SVC_CHAIN_UNAUTHORIZED"


@blueprint.get("/api/decision/chains/<chain_id>")
def get_chain(chain_id: str) -> Response:
    """The head of the caller's chain and its last links, ascending, checked."""
    authority = authenticate("read", code=_UNAUTHORIZED)
    limit = query_integer("limit", default=20, lowest=1, highest=1000)
    head, links = state().instance.ledger.entries.latest_links(authority.scope_id, limit)
    if head.chain_id != chain_id:
        raise _not_found()
    broken = chain.find_break(links, end=head)
    return json_response(
        {
            "chain_id": head.chain_id,
            "chain_size": head.size,
            "merkle_root": head.merkle_root,
            "head_link_hash": head.link_hash,
            "retained_links": links,
            "verification": {
                "valid": broken is None,
                "links_checked": len(links),
                "from_position": links[0]["chain_position"] if links else None,
                "to_position": links[-1]["chain_position"] if links else None,
                "broken_at": None if broken is None else broken.position,
                "reason": None if broken is None else broken.reason,
            },
        }
    )


@blueprint.get("/api/decision/chains/<chain_id>/checkpoint")
def get_checkpoint(chain_id: str) -> Response:
    """A signed statement of the chain's size and root, to keep outside of the service."""
    authority = authenticate("read", code=_UNAUTHORIZED)
    instance = state().instance
    head = instance.ledger.entries.head(authority.scope_id)
    if head.chain_id != chain_id:
        raise _not_found()
    checkpoint = instance.checkpoints.sign(authority.scope_id, head, timestamp(utc_now()))
    if checkpoint is None:
        raise ServiceUnavailable(
            "SVC_SIGNING_UNAVAILABLE",
            "Receipt signing is off, so there is no key to sign a checkpoint with; turn on receipt_signing.",
        )
    return json_response(checkpoint)


def _not_found() -> NotFound:
    return NotFound("SVC_CHAIN_NOT_FOUND", "This scope has no chain with that id; check the id and the API key.")
