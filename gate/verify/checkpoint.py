"""A checkpoint that came with a packet, or that a verifier kept: its members, its signature, and what it saw."""

from __future__ import annotations

from typing import TypeGuard

from gate.labels import CHECKPOINT
from gate.proof.chain import CHECKPOINT_MEMBERS, Checkpoint, checkpoint_payload
from gate.verify.result import Trust
from gate.verify.signature import Judgement, Signed, judge


def is_checkpoint(document: object) -> TypeGuard[Checkpoint]:
    """Whether a JSON value has exactly the members of a checkpoint, with their types and version."""
    return (
        isinstance(document, dict)
        and set(document) == set(CHECKPOINT_MEMBERS)
        and all(isinstance(document[name], type_) for name, type_ in CHECKPOINT_MEMBERS.items())
        and not isinstance(document["chain_size"], bool)
        and document["checkpoint_version"] == CHECKPOINT
    )


def judge_checkpoint(document: Checkpoint, trust: Trust, untrusted_key: str | None) -> Judgement:
    """Judges the signature of a checkpoint; the text before its first colon names the algorithm.

    Raises:
        MaterialRefused: PUBLIC_KEY_INVALID, or the checkpoint has no canonical JSON.
    """
    signature = document["signature"]
    signed = Signed(
        "checkpoint",
        document["key_id"],
        signature.partition(":")[0],
        signature,
        checkpoint_payload(document),
        document["issued_at"],
    )
    return judge(signed, trust, untrusted_key)
