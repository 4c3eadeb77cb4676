"""Signed checkpoints of a chain, and the epochs of a checkpoint log.

A checkpoint states the length of a chain, its root, and its last link. The chain must contain every kept checkpoint. A
chain that was cut, rolled back, or rewritten from genuine records contradicts one.

    document = sign_checkpoint(head, issued_at, signer)
    contradicts(document, head)    the fields that differ from the chain's head at that size

A restored ledger may be shorter than the checkpoints of the lost one. A signed epoch in the log therefore starts a new
count, and states its reason.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, TypedDict

from gate.encoding.canonical import canonical, content_hash
from gate.labels import CHECKPOINT, CHECKPOINT_EPOCH
from gate.proof.chain import Head
from gate.proof.signing import Signer


class CheckpointStatement(TypedDict):
    """The fields that a checkpoint's signature covers."""

    checkpoint_version: str
    chain_id: str
    chain_size: int
    merkle_root: str | None
    link_hash: str | None
    issued_at: str
    key_id: str


class Checkpoint(CheckpointStatement):
    """A signed statement of a chain's size and root."""

    signature: str


class EpochStatement(TypedDict):
    """The fields that an epoch's signature covers. `heads_hash` covers the checkpoints that follow it."""

    checkpoint_epoch_version: str
    reason: str
    begun_at: str
    chains: int
    heads_hash: str
    key_id: str


class Epoch(EpochStatement):
    """A signed statement that from now on, a log's earlier checkpoints may reach beyond its chains, with the reason."""

    signature: str


def sign_checkpoint(head: Head, issued_at: str, signer: Signer) -> Checkpoint:
    """Signs a chain's size and root. The signature covers the canonical bytes of all other fields.

    Args:
        head: The end of the chain.
        issued_at: The UTC timestamp.
        signer: The receipt key.
    """
    statement: CheckpointStatement = {
        "checkpoint_version": CHECKPOINT,
        "chain_id": head.chain_id,
        "chain_size": head.size,
        "merkle_root": head.merkle_root,
        "link_hash": head.link_hash,
        "issued_at": issued_at,
        "key_id": signer.key_id,
    }
    return {**statement, "signature": signer.sign(canonical(statement))}


def sign_epoch(reason: str, begun_at: str, heads: Collection[Head], signer: Signer) -> Epoch:
    """Signs an epoch. The signature covers the canonical bytes of all other fields.

    Args:
        reason: Why the chains may be shorter than earlier checkpoints, such as which backup was restored.
        begun_at: The UTC timestamp.
        heads: The ends of all chains that are not empty. Their checkpoints with the same date must follow.
        signer: The receipt key.
    """
    statement: EpochStatement = {
        "checkpoint_epoch_version": CHECKPOINT_EPOCH,
        "reason": reason,
        "begun_at": begun_at,
        "chains": len(heads),
        "heads_hash": heads_hash(heads),
        "key_id": signer.key_id,
    }
    return {**statement, "signature": signer.sign(canonical(statement))}


def heads_hash(heads: Iterable[Head]) -> str:
    """H of the ends of chains, each as `[chain_id, size, merkle_root, link_hash]`, ordered by `chain_id`."""
    return content_hash(sorted([head.chain_id, head.size, head.merkle_root, head.link_hash] for head in heads))


def head_seen(document: Checkpoint) -> Head:
    """The end of the chain that a checkpoint states."""
    return Head(document["chain_id"], document["chain_size"], document["merkle_root"], document["link_hash"])


CHECKPOINT_MEMBERS: Final[Mapping[str, type | tuple[type, ...]]] = {
    "checkpoint_version": str,
    "chain_id": str,
    "chain_size": int,
    "merkle_root": (str, type(None)),
    "link_hash": (str, type(None)),
    "issued_at": str,
    "key_id": str,
    "signature": str,
}
"""The fields of a checkpoint, with their types."""

EPOCH_MEMBERS: Final[Mapping[str, type]] = {
    "checkpoint_epoch_version": str,
    "reason": str,
    "begun_at": str,
    "chains": int,
    "heads_hash": str,
    "key_id": str,
    "signature": str,
}
"""The fields of an epoch, with their types."""


def signed_payload(document: Mapping[str, object]) -> bytes:
    """The bytes that the signature of a checkpoint or an epoch covers."""
    return canonical({name: value for name, value in document.items() if name != "signature"})


def contradicts(document: Checkpoint, head: Head | None) -> Sequence[str]:
    """The fields of a checkpoint that differ from the chain; empty if the chain contains it.

    Args:
        document: The checkpoint.
        head: The head of the chain when it had `chain_size` links, or None if it is shorter.
    """
    # Every chain begins empty, so each contains a checkpoint of no entries.
    if document["chain_size"] == 0:
        return []
    if head is None:
        return ["chain_size"]
    seen = (
        ("chain_id", document["chain_id"], head.chain_id),
        ("merkle_root", document["merkle_root"], head.merkle_root),
        ("link_hash", document["link_hash"], head.link_hash),
    )
    return [name for name, stated, actual in seen if stated != actual]
