"""Verifies Decision Records, resolutions, and packets offline.

It recomputes every hash, derives every derived field again, and checks the signature with a trusted key. It looks
nothing up and runs no rules.

    result = verify_record(record, Trust(receipt_keys=registry, source="registry"))
    result.verified         # True only if integrity and authenticity both hold
    result.checks           # {"members": True, "record_hash": True, ...}; None: skipped

    result = verify_packet(packet, trust)
    result.steps["decision_record"].holds

    result = verify_resolution(resolution, record, trust)
    result.verified         # about the owner's answer to a held decision; expires_at says how long a grant is valid

The signature does not cover two fields of a record. `decision_confidence` has its own hash. `audit_chain` is compared
with the record as far as possible; only the chain and its checkpoints prove the rest.

Modules for records:

    record          every check in its order
    members         the required and optional fields of a record, with their types
    attestations    the attestations of the evaluation and of the rulebook's registration
    receipt         the receipt's signature, and whether its key is trusted for it
    signature       judges one signature: of a receipt, a checkpoint or an attestation
    dead_keys       why a retired or compromised key makes a grant worthless
    result          what a verifier trusts, and the result

Modules for packets:

    packets         the specification's four steps, the retained links, and the result
    reports         compares execution receipts and outcomes with their record
    resolution      compares the owner's resolution of a held decision with its record
    checkpoint      a checkpoint from the packet, or one that the verifier kept
    faults          one wrong place of a document

`material` reads the body of a verify request. `catalog` describes every check and result code.
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
