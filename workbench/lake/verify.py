"""Verifies a lake against its manifest, its chain, and its ledger.

    for finding in verify(Path("var/lake"), manifest, ledger): print(finding.check, finding.detail)

The chain's leaves and rolling roots are recomputed from the rows. So a changed, missing, duplicated, or moved row is
found, and the last root equals the one that the ledger, or a checkpoint kept elsewhere, has at that position. Columns
that no hash covers are compared with the ledger's own entries, if a ledger is given.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import polars as pl

from gate.errors import OperatorError
from gate.ledger import Ledger
from gate.ledger.reads.tail import FollowedScope
from gate.proof import chain
from workbench.columns import CHANGE_IDS, ENTRY_TABLES, schema
from workbench.facts import columns_of
from workbench.lake.cases import measured, unreported, updated
from workbench.lake.entries import EVENT_TIMES, Personal, chunks, concat, erased_from, frames, untimed
from workbench.lake.export import require_same_chain, rulebooks_of
from workbench.lake.files import scan
from workbench.lake.manifest import LakeFile, Manifest
from workbench.lake.reader import REPORTS, RESOLVED, Snapshot

_WINDOW: Final = 50_000
_PIECE: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault in the lake.

    Attributes:
        check: files, rows, chain, rulebooks, cases, metrics, or ledger.
        detail: The fault and its place.
    """

    check: str
    detail: str


def verify(
    lake: Path, manifest: Manifest, ledger: Ledger | None = None, scope: FollowedScope | None = None
) -> Iterator[Finding]:
    """What is wrong with the lake's files of a scope; nothing where all is well. It ends with the first kind of fault.

    Args:
        lake: The lake's directory.
        manifest: The scope's manifest.
        ledger: The ledger to compare with; without one the lake is held against itself.
        scope: The scope in that ledger.
    """
    checks: list[Callable[[], Iterator[Finding]]] = [
        lambda: _files(lake, manifest),
        lambda: _rows(lake, manifest),
        lambda: _chain(lake, manifest),
        lambda: _rulebooks(lake, manifest),
        lambda: _cases(lake, manifest),
    ]
    if ledger is not None and scope is not None:
        checks.append(lambda: _ledger(lake, manifest, ledger, scope))
    for check in checks:
        found = list(_carried_out(check))
        yield from found
        if found:
            return


def _carried_out(check: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    try:
        yield from check()
    except pl.exceptions.PolarsError as error:
        told = str(error).partition("\n")[0]
        yield Finding("rows", f"A file does not have the columns of its table: {told}.")


def _files(lake: Path, manifest: Manifest) -> Iterator[Finding]:
    for file in manifest.files:
        try:
            found = _digest(lake / file.path)
        except OSError as error:
            yield Finding("files", f"{file.path} cannot be read: {error.strerror}.")
            continue
        if found != (file.sha256, file.bytes):
            yield Finding("files", f"{file.path} was changed or damaged after it was written.")


def _digest(file: Path) -> tuple[str, int]:
    digest, size = hashlib.sha256(), 0
    with file.open("rb") as opened:
        while piece := opened.read(_PIECE):
            digest.update(piece)
            size += len(piece)
    return digest.hexdigest(), size


def _rows(lake: Path, manifest: Manifest) -> Iterator[Finding]:
    """The rows that the manifest lists, within the lake's stretch of the chain, which bounds all later checks."""
    if not 0 <= manifest.compacted <= manifest.position:
        yield Finding(
            "rows", f"The manifest says that {manifest.compacted} of {manifest.position} entries are compacted."
        )
    for file in manifest.files:
        last = manifest.compacted if file.table in RESOLVED else manifest.position
        if not 1 <= file.first_position <= file.last_position <= last:
            yield Finding("rows", f"{file.path} holds positions outside 1 to {last}.")
        told = (file.rows, file.first_position, file.last_position, {manifest.scope_id}, 0)
        if (found := _told(lake, file)) != told:
            yield Finding(
                "rows",
                f"{file.path} holds {found[0]} rows, positions {found[1]} to {found[2]}, which differs from the "
                "manifest.",
            )


def _told(lake: Path, file: LakeFile) -> tuple[int, int, int, set[str], int]:
    rows = scan([lake / file.path], schema(file.table)).select(
        pl.len().alias("rows"),
        pl.col("position").min().alias("first"),
        pl.col("position").max().alias("last"),
        pl.col("scope_id").unique().implode().alias("scopes"),
        pl.col("position").null_count().alias("nowhere"),
    )
    height, first, last, scopes, nowhere = rows.collect(engine="streaming").row(0)
    return height, first, last, set(scopes), nowhere


def _chain(lake: Path, manifest: Manifest) -> Iterator[Finding]:
    """Leaves and roots, recomputed in the order of the chain."""
    snapshot = Snapshot(lake, manifest, manifest.position, manifest.merkle_root)
    written: defaultdict[int, set[str]] = defaultdict(set)
    for file in manifest.files:
        written[file.chain_position].add(file.merkle_root)
    root: str | None = None
    for after in range(0, manifest.position, _WINDOW):
        up_to = min(after + _WINDOW, manifest.position)
        rows = pl.concat([_links(snapshot, entry_type, after, up_to) for entry_type in ENTRY_TABLES]).sort("position")
        for at, row in enumerate(rows.iter_rows(), after + 1):
            position, entry_type, decision_id, record_hash, receipt_hash, leaf_hash, merkle_root = row
            if position != at:
                yield Finding("chain", f"The entry at position {min(at, position)} is missing or appears twice.")
                return
            leaf = chain.leaf(entry_type, decision_id, record_hash, receipt_hash, plain=True)
            root = chain.rolling_root(root, leaf, position, plain=True)
            if (leaf, root) != (leaf_hash, merkle_root):
                yield Finding("chain", f"The entry at position {position} differs from the chain's.")
                return
            if written.pop(position, {root}) != {root}:
                yield Finding("chain", f"A file states another root for position {position}.")
                return
        if rows.height != up_to - after:
            yield Finding("chain", f"The entry at position {after + rows.height + 1} is missing.")
            return
    if written:
        yield Finding(
            "chain", f"A file says that it was written at position {min(written)}, which the lake does not have."
        )
    facts = snapshot.table("facts").select(pl.len().alias("rows"), pl.col("position").n_unique().alias("distinct"))
    # An advisory decision has no facts.
    decided = snapshot.binding().table("decisions").select(pl.len().alias("decisions"))
    rows_, distinct, decisions = pl.concat([facts.collect(), decided.collect()], how="horizontal").row(0)
    if not rows_ == distinct == decisions:
        yield Finding(
            "chain", f"{rows_} rows hold the facts of {distinct} decisions, but {decisions} decisions have facts."
        )
    if root != manifest.merkle_root:
        yield Finding("chain", f"The root of the rows differs from the manifest's at position {manifest.position}.")


def _links(snapshot: Snapshot, entry_type: str, after: int, up_to: int) -> pl.DataFrame:
    table = ENTRY_TABLES[entry_type]
    receipt = pl.col("receipt_hash") if table == "decisions" else pl.lit(None, pl.String).alias("receipt_hash")
    return (
        snapshot.table(table)
        .filter(pl.col("position").is_between(after + 1, up_to))
        .select(
            "position",
            pl.lit(entry_type).alias("entry_type"),
            pl.col(CHANGE_IDS.get(table, "decision_id")).alias("decision_id"),
            "record_hash",
            receipt,
            "leaf_hash",
            "merkle_root",
        )
        .collect(engine="streaming")
    )


def _rulebooks(lake: Path, manifest: Manifest) -> Iterator[Finding]:
    """Every rulebook that decided is there, once, and is the one that its hash says."""
    snapshot = Snapshot(lake, manifest, manifest.position, manifest.merkle_root)
    held, used = pl.collect_all(
        [
            scan([lake / file.path for file in manifest.of("rulebooks")], schema("rulebooks")).select(
                "policy_hash", "body"
            ),
            snapshot.binding().table("decisions").select(pl.col("policy_hash").unique()),
        ],
        engine="streaming",
    )
    for hash_, body in held.iter_rows():
        if hashlib.sha256(body.encode()).hexdigest() != hash_:
            yield Finding("rulebooks", f"The rulebook {hash_} is not the one that decided.")
    if sorted(held["policy_hash"]) != sorted(used["policy_hash"]):
        yield Finding("rulebooks", "Rulebooks are missing or appear twice.")


def _cases(lake: Path, manifest: Manifest) -> Iterator[Finding]:
    """Cases and metrics, resolved again from the reports."""
    snapshot = Snapshot(lake, manifest, manifest.position, manifest.merkle_root)
    up_to = pl.col("position") <= manifest.compacted
    for after in range(0, manifest.compacted, _WINDOW):
        window = pl.col("position").is_between(after + 1, min(after + _WINDOW, manifest.compacted))
        about = pl.col("decision_position").is_between(after + 1, min(after + _WINDOW, manifest.compacted))
        decisions, outcomes, executions, resolutions, cases, metrics = pl.collect_all(
            [
                snapshot.table("decisions").filter(window),
                *(snapshot.table(name).filter(up_to, about) for name in REPORTS),
                snapshot.resolved("cases").filter(window),
                snapshot.resolved("metrics").filter(window),
            ],
            engine="streaming",
        )
        expected = updated(unreported(decisions), outcomes, executions, resolutions)
        if not expected.sort("position").equals(cases.sort("position")):
            yield Finding("cases", f"From position {after + 1} on, a case differs from its reports.")
            return
        order = ("position", "name")
        if not measured(outcomes).sort(order).equals(metrics.sort(order)):
            yield Finding(
                "metrics",
                f"From position {after + 1} on, a metric differs from the latest outcome.",
            )
            return


def _ledger(lake: Path, manifest: Manifest, ledger: Ledger, scope: FollowedScope) -> Iterator[Finding]:
    """The rows, created again from the ledger's entries."""
    try:
        require_same_chain(ledger, manifest, scope)
    except OperatorError as error:
        yield Finding("ledger", error.message)
        return
    snapshot = Snapshot(lake, manifest, manifest.position, manifest.merkle_root)
    rulebooks = rulebooks_of(ledger, scope.scope_id)
    personal = Personal.of(manifest.personal)

    def gone(table: str) -> list[pl.Expr]:
        """The event times of a table without those that the ledger has erased since."""
        return untimed(table, erased_from(table, _erased_since(manifest, ledger)))

    for page in ledger.tail.pages(scope.scope_id, after=0, up_to=manifest.position):
        expected = concat([frames(scope.scope_id, chunk, rulebooks, personal) for chunk in chunks(page)])
        window = pl.col("position").is_between(page[0].position, page[-1].position)
        for table, rows in expected.items():
            if table == "rulebooks":
                # Each proves itself by its hash.
                continue
            if table == "facts":
                typed = [name.removesuffix(":type") for name in rows.columns if name.endswith(":type")]
                stored = snapshot.facts(typed).filter(window).collect(engine="streaming")
                told = list(dict.fromkeys((*schema("facts"), *(name for of in typed for name in columns_of(of)))))
                same = _same_facts(rows.select(told), stored.select(told))
            else:
                stored = snapshot.table(table).filter(window).collect(engine="streaming")
                same = _same(rows, stored) or (table in EVENT_TIMES and _same(rows, stored.with_columns(gone(table))))
            if not same:
                yield Finding(
                    "ledger",
                    f"In {table}, the rows {page[0].position} to {page[-1].position} differ from the ledger's entries.",
                )
                return


def _erased_since(manifest: Manifest, ledger: Ledger) -> pl.Series:
    """The positions of the decisions that the ledger has erased since the lake was brought up to it."""
    scope = ledger.tail.scope(manifest.scope_id)
    pages = ledger.tail.pages(manifest.scope_id, after=manifest.position, up_to=0 if scope is None else scope.head.size)
    found = [entry.decision_position for page in pages for entry in page if entry.entry_type == "erasure"]
    return pl.Series(found, dtype=pl.Int64)


def _same(one: pl.DataFrame, other: pl.DataFrame) -> bool:
    return one.sort("position").equals(other.sort("position"))


def _same_facts(one: pl.DataFrame, other: pl.DataFrame) -> bool:
    """Whether facts agree; which fields are extracted may differ, for an export sees more rulebooks at a time.

    What the ledger has erased since is taken out of the lake by the next export.
    """
    one, other = one.sort("position"), other.sort("position")
    if one.height != other.height:
        return False
    kept = one["known"]
    one, other = one.filter(kept), other.filter(kept)
    leading = list(schema("facts"))
    if not one.select(leading).equals(other.select(leading)):
        return False
    for name in one.columns:
        if name.endswith(":type"):
            both = one[name].is_not_null() & other[name].is_not_null()
            columns = list(columns_of(name.removesuffix(":type")))
            if not one.filter(both).select(columns).equals(other.filter(both).select(columns)):
                return False
    return True
