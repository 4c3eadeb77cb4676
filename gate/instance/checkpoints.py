"""Keeping signed checkpoints of every chain, and signing none over a history that contradicts a kept one.

An attacker who can write the database can rewrite it and recompute every unsigned hash. The kept checkpoints detect
that: before a new one is signed, the chain must still contain the last one. `docs/explanation/threat-model.md` states
the limits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final, cast

from gate.errors import OperatorError, ServiceUnavailable
from gate.ids import timestamp
from gate.instance.checkpoint_log import MAX_REASON, CheckpointLog
from gate.ledger import Ledger
from gate.proof.chain import Head
from gate.proof.checkpoint import Checkpoint, Epoch, contradicts, sign_checkpoint, sign_epoch
from gate.proof.signing import Signer
from gate.verify import Trust
from gate.verify.checkpoint import is_epoch, judge_checkpoint, judge_epoch
from gate.verify.signature import Judgement


@dataclass(frozen=True, slots=True)
class Refusal:
    """A chain that no checkpoint is signed of.

    Attributes:
        chain_id: The chain.
        scope: The name of its scope; None where the ledger has no such chain any more.
        reason: Why, as a sentence.
    """

    chain_id: str
    scope: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class Round:
    """What one look at every chain found.

    Attributes:
        at: UTC timestamp.
        signed: How many checkpoints were signed and kept.
        refused: The chains that contradict their last kept checkpoint.
    """

    at: str
    signed: int
    refused: tuple[Refusal, ...]


class Checkpoints:
    """The checkpoints that an instance signs on this host, and those that it keeps."""

    def __init__(
        self, ledger: Ledger, file: Path, signer: Callable[[], Signer | None], trust: Callable[[], Trust]
    ) -> None:
        """Works on a ledger and a log.

        Args:
            ledger: The ledger.
            file: Where checkpoints are kept.
            signer: What signs now; None where signing is off.
            trust: What their signatures are verified against.
        """
        self.log: Final = CheckpointLog(file, self._judge)
        self._ledger = ledger
        self._signer = signer
        self._trust = trust

    def sign(self, scope_id: str, head: Head, issued_at: str) -> Checkpoint | None:
        """A signed checkpoint of a chain; None where signing is off.

        Args:
            scope_id: The chain's scope.
            head: A head that the chain has, or had.
            issued_at: UTC timestamp.

        Raises:
            ServiceUnavailable: `SVC_CHECKPOINT_UNAVAILABLE`: the chain does not contain its last kept checkpoint, or
                the log cannot be read; `SVC_SIGNING_UNAVAILABLE`, or `SVC_STORAGE_UNAVAILABLE`.
        """
        signer = self._signer()
        if signer is None:
            return None
        self.log.refresh()
        reason = self._contradiction(scope_id, head)
        if reason is not None:
            raise ServiceUnavailable(
                "SVC_CHECKPOINT_UNAVAILABLE",
                f"{reason} The service signs no checkpoint of this chain until the operator has run `gate chain "
                "check`.",
            )
        return sign_checkpoint(head, issued_at, signer)

    def keep(self, now: datetime) -> Round | None:
        """Signs and keeps a checkpoint of every chain that grew since its last one; None where signing is off.

        Raises:
            ServiceUnavailable: `SVC_CHECKPOINT_UNAVAILABLE`, `SVC_SIGNING_UNAVAILABLE`, or `SVC_STORAGE_UNAVAILABLE`.
        """
        signer = self._signer()
        if signer is None:
            return None
        with self.log.locked():
            grown, refused = self._look()
            made = [sign_checkpoint(head, timestamp(now), signer) for head in grown]
            self.log.append(made, now)
        return Round(timestamp(now), len(made), refused)

    def look(self, now: datetime) -> Round | None:
        """What `keep` would find, without signing anything.

        Raises:
            ServiceUnavailable: As `keep`.
        """
        return None if self._signer() is None else Round(timestamp(now), 0, self._look()[1])

    def begin_epoch(self, reason: str, now: datetime) -> int:
        """Begins an epoch of the log with a checkpoint of every chain as it is, whatever earlier ones saw.

        Args:
            reason: Why the chains may be shorter than they were, for people; at most `MAX_REASON` characters.
            now: The current moment.

        Returns:
            How many chains the epoch begins with.

        Raises:
            OperatorError: `SIGNING_OFF`, or `EPOCH_REASON_INVALID`.
            ServiceUnavailable: As `keep`.
        """
        signer = self._signer()
        if signer is None:
            raise OperatorError("SIGNING_OFF", "Receipt signing is off, so no checkpoints are kept.")
        if not reason.strip() or len(reason) > MAX_REASON:
            raise OperatorError(
                "EPOCH_REASON_INVALID",
                f"The reason must have 1 to {MAX_REASON} characters.",
            )
        heads = [scope.head for scope in self._ledger.tail.scopes() if scope.head.size]
        begun_at = timestamp(now)
        with self.log.locked():
            self.log.refresh()
            made = [sign_checkpoint(head, begun_at, signer) for head in heads]
            self.log.append([sign_epoch(reason, begun_at, heads, signer), *made], now)
        return len(heads)

    def _judge(self, document: Checkpoint | Epoch) -> Judgement:
        trust = self._trust()
        if is_epoch(document):
            return judge_epoch(document, trust)
        return judge_checkpoint(cast("Checkpoint", document), trust, None)

    def _look(self) -> tuple[list[Head], tuple[Refusal, ...]]:
        """The heads that no kept checkpoint has seen yet, and the chains that contradict their last one."""
        self.log.refresh()
        grown, refused = [], []
        lost = set(self.log.chain_ids())
        for scope in self._ledger.tail.scopes():
            lost.discard(scope.head.chain_id)
            kept = self.log.kept(scope.head.chain_id)
            seen = None if kept is None else (kept["chain_size"], kept["link_hash"], kept["merkle_root"])
            if seen == (scope.head.size, scope.head.link_hash, scope.head.merkle_root) or not (kept or scope.head.size):
                continue
            reason = self._contradiction(scope.scope_id, scope.head)
            if reason is None:
                grown.append(scope.head)
            else:
                refused.append(Refusal(scope.head.chain_id, scope.name, reason))
        refused += [Refusal(name, None, f"The ledger no longer has a chain {name}.") for name in sorted(lost)]
        return grown, tuple(refused)

    def _contradiction(self, scope_id: str, head: Head) -> str | None:
        """Why a chain is not the one that was kept, or not the one that its head says; None where it is."""
        kept = self.log.kept(head.chain_id)
        sizes = {head.size} if kept is None else {head.size, kept["chain_size"]}
        found = self._ledger.entries.heads_at(scope_id, sizes)
        if head.size and found.get(head.size) != head:
            return f"The entry at position {head.size} of chain {head.chain_id} does not match the chain's head."
        if kept is None:
            return None
        wrong = contradicts(kept, found.get(kept["chain_size"]))
        if not wrong:
            return None
        return (
            f"Chain {head.chain_id} no longer contains the checkpoint of {kept['issued_at']} "
            f"({', '.join(wrong)} at position {kept['chain_size']})."
        )
