"""The comparison of kept checkpoints with the chains. It detects truncation, rollbacks, and rewritten history.

For example:

    check_checkpoint(instance, scope_id, document)           # one that somebody kept elsewhere
    compare(instance, CheckpointLog(path)).contradictions    # all of a log
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from gate.instance.checkpoint_log import CheckpointLog, Opening
from gate.instance.instance import Instance
from gate.ledger.reads.tail import FollowedScope
from gate.proof import chain
from gate.proof.checkpoint import Checkpoint, Epoch, contradicts
from gate.verify import Trust
from gate.verify.checkpoint import is_checkpoint, is_epoch, judge_checkpoint, judge_epoch

_AT_ONCE: Final = 500
_SHOWN: Final = 20


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A line of a log that the ledger does not bear out.

    Attributes:
        place: The file and the line: `checkpoints.jsonl:12`.
        scope: The name of the chain's scope, where the ledger has the chain.
        reason: The fault, as a sentence.
    """

    place: str
    scope: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class Cut:
    """Entries that a restore cut off: a kept checkpoint saw them, and the epoch that begins after it accounts for it.

    Attributes:
        chain_id: The chain.
        scope: The name of its scope; None where the restored ledger has no such chain.
        first: The position of the first entry that is gone.
        last: That of the last one that a checkpoint saw.
        reason: The reason that the epoch gives.
        begun_at: When the epoch began, UTC.
    """

    chain_id: str
    scope: str | None
    first: int
    last: int
    reason: str
    begun_at: str


@dataclass(slots=True)
class Comparison:
    """A log, compared.

    Attributes:
        file: The log's path.
        compared: How many checkpoints were compared with a chain.
        unverified: How many of them are signed with a key that this instance no longer trusts or knows.
        contradictions: The first lines that the ledger contradicts.
        contradicted: How many such lines there are.
        cuts: What restores cut off.
    """

    file: str
    compared: int = 0
    unverified: int = 0
    contradicted: int = 0
    contradictions: list[Contradiction] = field(default_factory=list)
    cuts: list[Cut] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Whether the ledger contradicts no line."""
        return self.contradicted == 0

    def contradict(self, place: str, scope: str | None, reason: str) -> None:
        """Adds a contradiction; only the first few are kept whole."""
        self.contradicted += 1
        if len(self.contradictions) < _SHOWN:
            self.contradictions.append(Contradiction(place, scope, reason))


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


def compare(instance: Instance, log: CheckpointLog, scope_ids: Collection[str] | None = None) -> Comparison:
    """Compares every checkpoint of a log with the ledger's chains.

    A chain must contain each of its checkpoints, except where a later epoch of the log explains a shorter chain. Then
    the entries past the end of the restored chain are reported as cut.

    Args:
        instance: The instance.
        log: The log; files that were set aside are read as well.
        scope_ids: Only the chains of these scopes; every chain where None.

    Raises:
        ServiceUnavailable: `SVC_CHECKPOINT_UNAVAILABLE`: the log cannot be read; or `SVC_STORAGE_UNAVAILABLE`.
    """
    result, trust = Comparison(str(log.file)), instance.trust()
    scopes = _Scopes(instance, scope_ids)
    epochs = _epochs(log, trust, result)
    cuts: dict[tuple[str, int], Cut] = {}
    begun = 0
    lines = log.lines()
    while batch := list(islice(lines, _AT_ONCE)):
        within: list[tuple[str, Checkpoint]] = []
        for line in batch:
            document = line.document
            if document is None:
                result.contradict(line.place, None, "The line is neither a checkpoint nor an epoch.")
            elif is_epoch(document):
                begun += begun < len(epochs) and document == epochs[begun].epoch
            elif is_checkpoint(document) and scopes.includes(document["chain_id"]):
                cut = _cut(document, epochs[begun:], scopes.find(document["chain_id"]))
                if cut is None:
                    within.append((line.place, document))
                elif (known := cuts.get((cut.chain_id, cut.first))) is None or known.last < cut.last:
                    cuts[cut.chain_id, cut.first] = cut
        _compare(instance, scopes, within, trust, result)
    result.cuts = [cuts[key] for key in sorted(cuts)]
    return result


class _Scopes:
    """The scopes of the chains that are compared."""

    def __init__(self, instance: Instance, scope_ids: Collection[str] | None) -> None:
        self._instance = instance
        self._scope_ids = scope_ids
        self._by_chain: dict[str, FollowedScope | None] = {}

    def find(self, chain_id: str) -> FollowedScope | None:
        """The scope of a chain; None where the ledger has no such chain."""
        if chain_id not in self._by_chain:
            # It may be of a scope that was created while the log was being read.
            self._by_chain |= {scope.head.chain_id: scope for scope in self._instance.ledger.tail.scopes()}
            self._by_chain.setdefault(chain_id, None)
        return self._by_chain[chain_id]

    def includes(self, chain_id: str) -> bool:
        """Whether a chain is to be compared, or is in no scope that there is."""
        scope = self.find(chain_id)
        return scope is None or self._scope_ids is None or scope.scope_id in self._scope_ids


@dataclass(frozen=True, slots=True)
class _Begun:
    """An epoch, and how long each chain was when it began; a chain that is not named was empty or not there."""

    epoch: Epoch
    sizes: dict[str, int]


def _epochs(log: CheckpointLog, trust: Trust, result: Comparison) -> list[_Begun]:
    """The epochs of a log that account for anything, in order; the others are contradictions."""
    epochs: list[_Begun] = []
    opening: tuple[str, Opening] | None = None
    current, latest = None, ""
    for number, line in enumerate(log.lines()):
        document = line.document
        if is_epoch(document):
            # A file that follows one that was set aside repeats the epoch.
            if document == current:
                continue
            found = judge_epoch(document, trust)
            if found.holds is False or not found.trusted:
                changed = found.holds is False
                why = "was changed after it was signed" if changed else "is signed with a key that is not trusted"
                result.contradict(line.place, None, f"The epoch {why}, so it does not explain the rollback.")
                continue
            if document["begun_at"] < latest:
                result.contradict(line.place, None, "The epoch is older than a checkpoint before it.")
                continue
            current = document
            # The first line of a log has nothing before it to account for.
            if number:
                opening = line.place, Opening(document)
        elif is_checkpoint(document) and judge_checkpoint(document, trust, None).trusted:
            latest = max(latest, document["issued_at"])
            if opening is not None:
                opening[1].checkpoints.append(document)
        if opening is not None and opening[1].complete:
            if opening[1].holds:
                sizes = {found["chain_id"]: found["chain_size"] for found in opening[1].checkpoints}
                epochs.append(_Begun(opening[1].epoch, sizes))
            else:
                result.contradict(opening[0], None, "The epoch is not followed by its own checkpoints.")
            opening = None
    if opening is not None:
        result.contradict(opening[0], None, "The epoch is not followed by its own checkpoints.")
    return epochs


def _cut(document: Checkpoint, later: Sequence[_Begun], scope: FollowedScope | None) -> Cut | None:
    """What the epochs after a checkpoint cut off of the entries that it saw; None where none is missing."""
    chain_id, last = document["chain_id"], document["chain_size"]
    shortest = min(later, key=lambda begun: begun.sizes.get(chain_id, 0), default=None)
    if shortest is None or last <= (size := shortest.sizes.get(chain_id, 0)):
        return None
    name = None if scope is None else scope.name
    return Cut(chain_id, name, size + 1, last, shortest.epoch["reason"], shortest.epoch["begun_at"])


def _compare(
    instance: Instance,
    scopes: _Scopes,
    checkpoints: Sequence[tuple[str, Checkpoint]],
    trust: Trust,
    result: Comparison,
) -> None:
    sizes: dict[str, set[int]] = defaultdict(set)
    for _, document in checkpoints:
        sizes[document["chain_id"]].add(document["chain_size"])
    heads = {
        chain_id: instance.ledger.entries.heads_at(scope.scope_id, positions)
        for chain_id, positions in sizes.items()
        if (scope := scopes.find(chain_id)) is not None
    }
    for place, document in checkpoints:
        chain_id, size = document["chain_id"], document["chain_size"]
        scope = scopes.find(chain_id)
        name = None if scope is None else scope.name
        signature = judge_checkpoint(document, trust, None)
        result.compared += 1
        result.unverified += not signature.trusted
        if signature.holds is False:
            result.contradict(place, name, "The checkpoint was changed after it was signed.")
        elif scope is None:
            result.contradict(place, None, f"The ledger has no chain {chain_id}.")
        elif wrong := contradicts(document, heads[chain_id].get(size)):
            result.contradict(
                place,
                name,
                f"The chain no longer contains the checkpoint of {document['issued_at']} "
                f"({', '.join(wrong)} at position {size}).",
            )


def _signature_fault(trust: Trust, document: Checkpoint) -> str | None:
    found = judge_checkpoint(document, trust, None)
    if found.holds is None:
        return f"Its key {document['key_id']} is not a receipt key of this instance."
    if found.message is not None:
        return found.message
    return None if found.holds else "Its signature is not valid: it was changed after it was signed."
