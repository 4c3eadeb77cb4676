"""Signed checkpoints of a chain, and the epochs of a log that keeps them.

A checkpoint states how long a chain is, its root and its last link. The chain must contain every checkpoint that was
kept of it: a chain that was cut, rolled back or rewritten from really signed records contradicts one.

    document = sign_checkpoint(head, issued_at, signer)
    contradicts(document, head)    the members that differ from the head that the chain had at that size

A restored ledger is shorter than the checkpoints of the lost one. So a log of checkpoints has epochs: a signed epoch
ends what the checkpoints before it demand of later entries, and names its reason.
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
    """The fields that an epoch's signature covers; `heads_hash` binds the checkpoints that follow it."""

    checkpoint_epoch_version: str
    reason: str
    begun_at: str
    chains: int
    heads_hash: str
    key_id: str


class Epoch(EpochStatement):
    """A signed statement that a log's earlier checkpoints may reach beyond its chains from here on, and why."""

    signature: str


def sign_checkpoint(head: Head, issued_at: str, signer: Signer) -> Checkpoint:
    """A signed statement of a chain's size and root; the signature is over the canonical bytes of the rest.

    Args:
        head: The end of the chain.
        issued_at: UTC timestamp.
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
    """A signed epoch; the signature is over the canonical bytes of the rest.

    Args:
        reason: Why the chains may be shorter than earlier checkpoints, for people: which backup was restored.
        begun_at: UTC timestamp.
        heads: The ends of all chains that are not empty, of which checkpoints of the same date follow.
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
    """H of the ends of chains, each as [chain_id, size, merkle_root, link_hash], ordered by chain_id."""
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
"""The members that a checkpoint has, and no other, with their types."""

EPOCH_MEMBERS: Final[Mapping[str, type]] = {
    "checkpoint_epoch_version": str,
    "reason": str,
    "begun_at": str,
    "chains": int,
    "heads_hash": str,
    "key_id": str,
    "signature": str,
}
"""The members that an epoch has, and no other, with their types."""


def signed_payload(document: Mapping[str, object]) -> bytes:
    """The bytes that the signature of a checkpoint or an epoch covers."""
    return canonical({name: value for name, value in document.items() if name != "signature"})


def contradicts(document: Checkpoint, head: Head | None) -> Sequence[str]:
    """Which members of a checkpoint differ from the chain's; empty where the chain contains it.

    Args:
        document: The checkpoint.
        head: The head that the chain had when it was chain_size long; None where it is shorter.
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
