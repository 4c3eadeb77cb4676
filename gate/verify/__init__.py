"""Offline verification of Decision Records and packets: every hash recomputed, every derived member derived again, the
signature checked against a trusted key. Nothing is looked up and no rule is run.

    result = verify_record(record, Trust(receipt_keys=registry, source="registry"))
    result.verified         # True only where integrity and authenticity both hold
    result.checks           # {"members": True, "record_hash": True, ...}; None: not checked, for want of material

Two members stand outside the signature: `decision_confidence` is checked against its own hash, and `audit_chain`
against the record as far as a record alone can tell; the chain and its checkpoints prove the rest of it.

    result = verify_packet(packet, trust)
    result.steps["decision_record"].holds

    result = verify_resolution(resolution, record, trust)
    result.verified         # the owner's answer to a held decision; whether a grant is still valid says its expires_at

Of a record:

    record          every check in its order, and what each covers
    members         the members of a record: which there must be, and how each is derived
    attestations    the attestations of the evaluation and of the rulebook's registration
    receipt         the receipt's signature, and whether its key is trusted for it
    signature       one signature judged: of a receipt, a checkpoint or an attestation
    dead_keys       why a grant opens nothing once its key is retired, or one of its record or its own is compromised
    result          the trust that a verifier brings, and the result

Of a packet:

    packets         the specification's four steps, the retained links, and the result
    reports         execution receipts and outcomes held against their record
    resolution      the owner's resolution of a held decision held against its record
    checkpoint      a checkpoint that came with the packet, or that the verifier kept
    faults          one place of a document that is wrong

`material` reads the body of a verify request. `catalog` has every check and result code in words.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from gate.verify.members import FULL_RECORD, OPTIONAL_MEMBERS
from gate.verify.record import AUTHENTICITY, verify_record
from gate.verify.result import Trust, Verification

# Verifying records alone need not load what packets need.
if TYPE_CHECKING:
    from gate.verify.packets.packet import verify_packet
    from gate.verify.packets.packet_result import PacketVerification
    from gate.verify.resolution import verify_resolution

__all__ = [
    "AUTHENTICITY",
    "FULL_RECORD",
    "OPTIONAL_MEMBERS",
    "PacketVerification",
    "Trust",
    "Verification",
    "verify_packet",
    "verify_record",
    "verify_resolution",
]


_LATER = {
    "PacketVerification": "packets.packet_result",
    "verify_packet": "packets.packet",
    "verify_resolution": "resolution",
}


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
