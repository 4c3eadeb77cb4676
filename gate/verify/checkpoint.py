"""Verifies the fields and the signatures of checkpoints and epochs, from a packet or kept by the verifier."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeGuard

from gate.labels import CHECKPOINT, CHECKPOINT_EPOCH
from gate.proof.checkpoint import CHECKPOINT_MEMBERS, EPOCH_MEMBERS, Checkpoint, Epoch, signed_payload
from gate.verify.result import Trust
from gate.verify.signature import Judgement, Signed, judge


def is_checkpoint(document: object) -> TypeGuard[Checkpoint]:
    """Whether a JSON value has exactly the fields of a checkpoint, with their types and version."""
    return (
        isinstance(document, dict)
        and set(document) == set(CHECKPOINT_MEMBERS)
        and all(isinstance(document[name], type_) for name, type_ in CHECKPOINT_MEMBERS.items())
        and not isinstance(document["chain_size"], bool)
        and document["checkpoint_version"] == CHECKPOINT
    )


def is_epoch(document: object) -> TypeGuard[Epoch]:
    """Whether a JSON value has exactly the fields of an epoch, with their types and version."""
    return (
        isinstance(document, dict)
        and set(document) == set(EPOCH_MEMBERS)
        and all(isinstance(document[name], type_) for name, type_ in EPOCH_MEMBERS.items())
        and not isinstance(document["chains"], bool)
        and document["checkpoint_epoch_version"] == CHECKPOINT_EPOCH
    )


def judge_checkpoint(document: Checkpoint, trust: Trust, untrusted_key: str | None) -> Judgement:
    """Judges the signature of a checkpoint. The text before its first colon is the algorithm.

    Raises:
        MaterialRefused: `PUBLIC_KEY_INVALID`, or the checkpoint has no canonical JSON.
    """
    return _judge("checkpoint", document, document["issued_at"], trust, untrusted_key)


def judge_epoch(document: Epoch, trust: Trust) -> Judgement:
    """Judges the signature of an epoch, as `judge_checkpoint` does.

    Raises:
        MaterialRefused: The epoch has no canonical JSON.
    """
    return _judge("epoch", document, document["begun_at"], trust, None)


def _judge(
    what: str, document: Mapping[str, object], signed_at: str, trust: Trust, untrusted_key: str | None
) -> Judgement:
    key_id, signature = str(document["key_id"]), str(document["signature"])
    signed = Signed(what, key_id, signature.partition(":")[0], signature, signed_payload(document), signed_at)
    return judge(signed, trust, untrusted_key)
