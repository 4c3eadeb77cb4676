"""A scope's chain as it is now: the lake up to its watermark, and the ledger's own entries after that."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from gate.errors import GateError, OperatorError, ServiceUnavailable
from gate.ledger import Ledger
from workbench.lake.entries import ENTRY_UNREADABLE, Personal, chunks, concat, frames
from workbench.lake.export import require_consecutive, require_same_chain, rulebooks_of
from workbench.lake.manifest import Manifest, load
from workbench.lake.reader import REPORTS, Snapshot

MAX_TAIL: Final = 25_000
"""How many entries a report reads from the ledger; where the lake lacks more, it has to wait for the export."""

_RETRY_SECONDS: Final = 5


MAX_UNRESOLVED: Final = 100_000
"""By how many entries the lake's cases may be behind; where it is more, a report waits for the compaction."""

MAX_UNRESOLVED_BYTES: Final = 512 * 1024 * 1024
"""How much memory those entries take at most, in bytes."""

MAX_TAIL_BYTES: Final = 256 * 1024 * 1024
"""How much memory the entries that a report reads from the ledger take at most, in bytes."""


def fresh(ledger: Ledger, lake: Path, scope_id: str, personal: Personal, *, facts: bool = True) -> Snapshot:
    """A scope's complete chain, including everything acknowledged before the call.

    Args:
        ledger: The ledger.
        lake: The lake's directory.
        scope_id: The scope.
        personal: The fields that are left out.
        facts: Whether to include facts and rulebooks of entries that the lake lacks.

    Raises:
        ServiceUnavailable: `SVC_REPORT_UNAVAILABLE` if the lake is too far behind, or unusable;
            `SVC_STORAGE_UNAVAILABLE` if the ledger is, or if one of its entries is damaged.
    """
    try:
        return _fresh(ledger, lake, scope_id, personal, facts=facts)
    except OperatorError as error:
        if error.code == ENTRY_UNREADABLE:
            # A damaged entry does not repair itself, so a retry does not help.
            raise ServiceUnavailable(
                "SVC_STORAGE_UNAVAILABLE", f"The report cannot be created. {error.message} The operator must check it."
            ) from error
        raise _unavailable(
            f"The lake cannot be used ({error.code}); the operator finds the reason in the log."
        ) from error


def _fresh(ledger: Ledger, lake: Path, scope_id: str, personal: Personal, *, facts: bool) -> Snapshot:
    manifest = load(lake, scope_id)
    # After the manifest, so that the head is never behind it.
    scope = ledger.tail.scope(scope_id)
    if scope is None:
        raise _unavailable("The ledger has no such scope.")
    if manifest is None:
        manifest = Manifest(scope.scope_id, scope.name, scope.head.chain_id, personal=personal.marks)
    else:
        require_same_chain(ledger, manifest, scope)
        if manifest.position and manifest.personal != personal.marks:
            raise _unavailable("The lake is being rebuilt, because the setting personal_fields changed.")
    behind = scope.head.size - manifest.position
    unresolved = manifest.position - manifest.compacted
    if behind > MAX_TAIL or unresolved > MAX_UNRESOLVED or _unresolved_bytes(manifest) > MAX_UNRESOLVED_BYTES:
        raise _unavailable(
            f"The lake is catching up with the ledger: {behind} entries are not exported yet, and {unresolved} of "
            f"{manifest.position} are not compacted."
        )
    rulebooks = rulebooks_of(ledger, scope_id) if facts else None
    parts = []
    room = MAX_TAIL_BYTES
    for span in ledger.tail.spans(scope_id, after=manifest.position, up_to=scope.head.size):
        require_consecutive(span)
        for chunk in chunks(span.rows):
            parts.append(frames(scope_id, chunk, rulebooks, personal))
            room -= sum(int(frame.estimated_size()) for frame in parts[-1].values())
            if room < 0:
                raise _unavailable(
                    "The lake is catching up with the ledger: the missing entries are too large to read at once."
                )
    return Snapshot(lake, manifest, scope.head.size, scope.head.merkle_root, concat(parts))


def _unresolved_bytes(manifest: Manifest) -> float:
    """What the entries after the lake's cases take in memory, about."""
    return sum(
        file.unpacked
        * (file.last_position - max(file.first_position - 1, manifest.compacted))
        / (file.last_position - file.first_position + 1)
        for table in ("decisions", *REPORTS)
        for file in manifest.of(table)
        if file.last_position > manifest.compacted
    )


def _unavailable(why: str) -> GateError:
    return ServiceUnavailable(
        "SVC_REPORT_UNAVAILABLE",
        f"{why} Decisions are not affected; retry in a few seconds.",
        details={"retry_after": _RETRY_SECONDS},
    )
