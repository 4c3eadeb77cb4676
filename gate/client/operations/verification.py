"""Verification by the service, and the packet for whoever verifies elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gate.client.transport.building import asked, decision, posted
from gate.client.transport.calls import Call

if TYPE_CHECKING:
    from gate.client.types import (
        DecisionPacket,
        PacketVerificationRequest,
        PacketVerificationResult,
        RecordVerificationRequest,
        VerificationEndpoint,
        VerificationResult,
    )


def verify_stored_decision(decision_id: str, *, request_id: str | None = None) -> Call[VerificationResult]:
    """Verifies the stored record, its signatures and its place in the chain."""
    return asked("verifyStoredDecision", f"{decision(decision_id)}/verify", request_id=request_id)


def verify_supplied_record(
    decision_id: str,
    material: RecordVerificationRequest | Mapping[str, Any] | None = None,
    *,
    request_id: str | None = None,
) -> Call[VerificationResult]:
    """Verifies a record, bare or with its request, as the one stored under this id; without one the stored record."""
    return posted("verifySuppliedRecord", f"{decision(decision_id)}/verify", material, request_id=request_id)


def describe_verification(*, request_id: str | None = None) -> Call[VerificationEndpoint]:
    """What verifying an exported record takes and answers."""
    return asked("describeVerification", "/api/decision/verify", request_id=request_id, credential=None)


def verify_exported_record(
    material: RecordVerificationRequest | Mapping[str, Any], *, request_id: str | None = None
) -> Call[VerificationResult]:
    """Verifies a record, bare or with its request, against the service's keys, without looking it up."""
    return posted("verifyExportedRecord", "/api/decision/verify", material, request_id=request_id, credential=None)


def describe_packet_verification(*, request_id: str | None = None) -> Call[VerificationEndpoint]:
    """What verifying an exported packet takes and answers."""
    return asked("describePacketVerification", "/api/decision/packet/verify", request_id=request_id, credential=None)


def verify_exported_packet(
    material: PacketVerificationRequest | Mapping[str, Any], *, request_id: str | None = None
) -> Call[PacketVerificationResult]:
    """Verifies a packet, bare or with a checkpoint that was kept, against the service's keys, looking nothing up."""
    path = "/api/decision/packet/verify"
    return posted("verifyExportedPacket", path, material, request_id=request_id, credential=None)


def export_packet(
    decision_id: str,
    *,
    include_input: bool | None = None,
    include_chain: bool | None = None,
    include_intelligence: bool | None = None,
    execution_limit: int | None = None,
    outcome_limit: int | None = None,
    chain_limit: int | None = None,
    request_id: str | None = None,
) -> Call[DecisionPacket]:
    """A decision with its reports and proofs; the request is in it only with `include_input`."""
    query = {
        "include_input": include_input,
        "include_chain": include_chain,
        "include_intelligence": include_intelligence,
        "execution_limit": execution_limit,
        "outcome_limit": outcome_limit,
        "chain_limit": chain_limit,
    }
    return asked("exportPacket", f"{decision(decision_id)}/packet", query=query, request_id=request_id)
