"""Offline verification of a Decision Record: every hash recomputed, every derived member derived again, the signature
checked against a trusted key. Nothing is looked up and no rule is run.

    result = verify_record(record, Trust(receipt_keys=registry, source="registry"))
    result.verified         # True only where integrity and authenticity both hold
    result.checks           # {"members": True, "record_hash": True, ...}; None: not checked, for want of material

Two members stand outside the signature: `decision_confidence` is checked against its own hash, and `audit_chain`
against the record as far as a record alone can tell; the chain and its checkpoints prove the rest of it.
"""

from gate.verify.members import FULL_RECORD, OPTIONAL_MEMBERS
from gate.verify.record import verify_record
from gate.verify.result import Trust, Verification

__all__ = ["FULL_RECORD", "OPTIONAL_MEMBERS", "Trust", "Verification", "verify_record"]
