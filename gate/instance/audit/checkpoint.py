"""A chain compared with a checkpoint that someone else kept."""

from __future__ import annotations

from gate.instance.instance import Instance
from gate.proof import chain
from gate.proof.checkpoint import Checkpoint, contradicts
from gate.verify import Trust
from gate.verify.checkpoint import is_checkpoint, judge_checkpoint


def check_checkpoint(instance: Instance, scope_id: str, document: object) -> str | None:
    """Why a scope's chain does not contain a checkpoint of this instance; None where it does.

    Args:
        instance: The instance.
        scope_id: The scope.
        document: The checkpoint.
    """
    if not is_checkpoint(document):
        return "It is not a checkpoint: its fields are not those of decision_checkpoint_v1."
    fault = _signature_fault(instance.trust(), document)
    if fault is not None:
        return fault
    entry = instance.ledger.entries.at(scope_id, document["chain_size"])
    contradicted = contradicts(document, None if entry is None else chain.head_of(entry.link))
    if contradicted:
        return f"The chain no longer contains it ({', '.join(contradicted)} at position {document['chain_size']})."
    return None


def _signature_fault(trust: Trust, document: Checkpoint) -> str | None:
    found = judge_checkpoint(document, trust, None)
    if found.holds is None:
        return f"Its key {document['key_id']} is not a receipt key of this instance."
    if found.message is not None:
        return found.message
    return None if found.holds else "Its signature does not hold: it was changed after it was signed."
