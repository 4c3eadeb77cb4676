"""Packets: a decision with its reports and its proofs, exported for verification elsewhere."""

from __future__ import annotations

from typing import Final

from flask import Blueprint, Response

from api.http.auth import authenticate
from api.http.requests import query_boolean, query_integer
from api.http.responses import json_response
from api.http.state import state
from gate.decisions.export import PacketExport, Parts, require_verifiable
from gate.labels import PACKET
from gate.records.packet import MAX_ITEMS

blueprint = Blueprint("packets", __name__)

_LIMIT: Final = 20


@blueprint.get("/api/decision/<decision_id>/packet")
def export_packet(decision_id: str) -> Response:
    """The packet of a stored decision."""
    authority = authenticate("read")
    executions, outcomes, links = (_limit(name) for name in ("execution_limit", "outcome_limit", "chain_limit"))
    parts = Parts(
        executions=executions,
        outcomes=outcomes,
        links=links if query_boolean("include_chain", default=True) else None,
        intelligence=query_boolean("include_intelligence", default=True),
        with_input=query_boolean("include_input", default=False),
    )
    serving = state()
    instance = serving.instance
    export = PacketExport(instance.ledger, serving.gate.signing, instance.trust, serving.reports, instance.checkpoints)
    packet = export.packet(authority.scope_id, decision_id, parts)
    headers = {"x-decision-packet-version": PACKET, "x-decision-packet-hash": packet["packet_hash"]}
    response = json_response(packet, headers=headers)
    require_verifiable(response.get_data())
    return response


def _limit(name: str) -> int:
    return query_integer(name, _LIMIT, 1, MAX_ITEMS)
