"""Many requests appended at once: as `claims.settle` for each of them, in order and in one commit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, TypeVar

from gate.decisions.claims import Created, Proposal, Settled, Used, outcome_of, used_before
from gate.errors import GateError
from gate.ledger.access.caller import Caller
from gate.ledger.chain.entries import Entries
from gate.ledger.chain.writer import AppendResult, Claim, Claimed, NewEntry

Document = TypeVar("Document")
Done = TypeVar("Done")

Unforeseen: TypeAlias = Callable[[Exception], GateError]
"""What callers hear of a failure that is no GateError."""


def attempted(work: Callable[[], Done], unforeseen: Unforeseen) -> Done | GateError:
    """What a work for one of several requests gives, or the error that it ends with: it must not fail the others."""
    try:
        return work()
    except Exception as error:  # noqa: BLE001 - see above
        return error if isinstance(error, GateError) else unforeseen(error)


def settle_all(
    entries: Entries, caller: Caller, readers: Sequence[Callable[[], Proposal[Document]]], unforeseen: Unforeseen
) -> list[Settled[Document] | GateError]:
    """Appends the proposals of requests, in order and in one commit, or finds the entries of their keys.

    Equal keys may meet: the first creates, and the others find what it made.

    Args:
        entries: Where entries are appended.
        caller: The caller.
        readers: Makes each proposal; raises `GateError` where there can be none.
        unforeseen: The error that callers get for a failure that is not a `GateError`.

    Returns:
        What became of each, or the error that `settle` would raise.
    """
    proposals: dict[int, Proposal[Document]] = {}
    settled: dict[int, Settled[Document] | GateError] = {}
    for at, read in enumerate(readers):
        proposal = attempted(read, unforeseen)
        if isinstance(proposal, GateError):
            settled[at] = proposal
        else:
            proposals[at] = proposal
    left = proposals
    while left:
        settled |= _append_all(entries, caller, left, unforeseen)
        left = {at: proposal for at, proposal in left.items() if at not in settled}
        if left:
            try:
                caller.confirm()
            except GateError as error:
                settled |= dict.fromkeys(left, error)
                break
    return _after_refusals(entries, caller, proposals, settled)


def _append_all(
    entries: Entries, caller: Caller, proposals: Mapping[int, Proposal[Document]], unforeseen: Unforeseen
) -> dict[int, Settled[Document] | GateError]:
    """What became of each proposal; without those that have to be made again."""
    settled: dict[int, Settled[Document] | GateError] = {}
    prepared: dict[int, tuple[NewEntry, Document]] = {}
    first: dict[tuple[str, str, str], int] = {}
    repeated: dict[int, int] = {}
    for at, proposal in proposals.items():
        claim = proposal.claim
        key = None if claim is None else (claim.operation, claim.decision_id, claim.key)
        if key is not None and key in first:
            # It is not even made, for a key that is used by then binds nothing new, and invokes no adapter.
            repeated[at] = first[key]
            continue
        made = attempted(proposal.prepare, unforeseen)
        if isinstance(made, GateError):
            settled[at] = made
            continue
        prepared[at] = made
        if key is not None:
            first[key] = at
    for at, outcome in zip(prepared, _appended(entries, caller, prepared), strict=True):
        found = _outcome_of(proposals[at].claim, *prepared[at], outcome)
        if found is not None:
            settled[at] = found
    for at, earlier in repeated.items():
        repeats, earlier_claim = proposals[at].claim, proposals[earlier].claim
        if earlier in settled and repeats is not None and earlier_claim is not None:
            settled[at] = _repeated(repeats, earlier_claim, settled[earlier])
    return settled


def _appended(
    entries: Entries, caller: Caller, prepared: Mapping[int, tuple[NewEntry, Document]]
) -> Sequence[AppendResult | GateError]:
    if not prepared:
        return ()
    epoch = caller.authority.access_epoch
    try:
        return entries.append_all([entry._replace(access_epoch=epoch) for entry, _ in prepared.values()])
    except GateError as error:
        return [error] * len(prepared)


def _outcome_of(
    claim: Claim | None, entry: NewEntry, document: Document, outcome: AppendResult | GateError
) -> Settled[Document] | GateError | None:
    if isinstance(outcome, GateError):
        return outcome
    try:
        return outcome_of(claim, entry, document, outcome)
    except GateError as error:
        return error


def _repeated(claim: Claim, earlier_claim: Claim, earlier: Settled[Document] | GateError) -> Used | GateError:
    """What becomes of a request whose key an earlier one had."""
    if isinstance(earlier, Created):
        return Used(claim, Claimed(earlier.appended.link["chain_position"], earlier_claim.input_hash))
    return Used(claim, earlier.claimed) if isinstance(earlier, Used) else earlier


def _after_refusals(
    entries: Entries,
    caller: Caller,
    proposals: Mapping[int, Proposal[Document]],
    settled: dict[int, Settled[Document] | GateError],
) -> list[Settled[Document] | GateError]:
    """What became of each, in order. Refusals give way to what the key of the caller is by now, and to keys that were
    used before; those that a later one of the requests used were still new.
    """
    refused = {at: error for at, error in settled.items() if isinstance(error, GateError)}
    made = {one.appended.link["chain_position"]: at for at, one in settled.items() if isinstance(one, Created)}
    try:
        if refused:
            caller.confirm()
        for at in refused:
            claim = proposals[at].claim if at in proposals else None
            used = used_before(entries, caller.scope_id, claim)
            if used is not None and made.get(used.claimed.position, at) <= at:
                settled[at] = used
    except GateError as error:
        settled |= {at: error for at in refused if isinstance(settled[at], GateError)}
    return [settled[at] for at in range(len(settled))]
