"""The export of a ledger into a lake, compared with only reading and decompressing the same chains.

The ledger is that of the demo: a year of four scopes. Each round builds the whole lake in an empty directory, compacts
it, and verifies it alone and against the ledger. Both read in one thread.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, Final

from api.cli.demo.ledger import DemoPlan, make_ledger
from api.cli.options import instance_at
from bench.disk import scratch, sync_ms, write_out
from bench.lakes import goal_lines, judged
from bench.measure import Mismatch, Spread, alternate, ratio, spread
from bench.subjects import sqlite_url
from bench.tables import table
from gate.instance.processes import calm_garbage
from gate.ledger import Ledger
from gate.ledger.packing import unpack
from gate.ledger.reads.tail import FollowedEntry, FollowedScope
from workbench.lake.compaction import Compactor
from workbench.lake.export import Exporter
from workbench.lake.lease import lease
from workbench.lake.manifest import Manifest, load_all
from workbench.lake.verify import verify

_DECISIONS: Final = 20_000
_QUICK_DECISIONS: Final = 2_000
_ROUNDS: Final = 9
_QUICK_ROUNDS: Final = 3
_UNTIL: Final = datetime(2026, 7, 1, tzinfo=UTC)

_EXPORTED_PER_S: Final = 50_000
_BODY, _REQUEST = (FollowedEntry._fields.index(name) for name in ("body", "request"))
_STEPS: Final = ("read", "export", "compact", "verify", "verify_against_ledger")

_Times = Mapping[str, float]


def run(*, quick: bool) -> dict[str, Any]:
    """Makes the lake again and again, and reads the chains without it in the same rounds.

    Raises:
        Mismatch: Not every entry was read or exported, or the lake that was made is not whole.
    """
    decisions, rounds = (_QUICK_DECISIONS, _QUICK_ROUNDS) if quick else (_DECISIONS, _ROUNDS)
    with scratch() as directory:
        home, lake = directory / "home", directory / "lake"
        disk_sync = sync_ms(directory)
        made = make_ledger(home, DemoPlan(decisions, 1, _UNTIL))
        write_out(home / "ledger.db")
        entries = sum(sum(each.entries.values()) for each in made)
        with instance_at(home, sqlite_url(home)) as instance:
            ledger = instance.ledger
            scopes = ledger.tail.scopes()
            # As a service does that has run before, so that the first round is no other than the rest.
            _make(ledger, lake, scopes, entries)
            calm_garbage()
            files = _count_files(ledger, directory / "counted", scopes)
            subjects: dict[str, Callable[[], _Times]] = {
                "floor": partial(_read, ledger, scopes, entries),
                "lake": partial(_make, ledger, lake, scopes, entries),
            }
            taken = alternate(subjects, rounds)
            manifests = load_all(lake)
            sizes = _sizes(manifests)
            ledger_bytes = ledger.store.size()
    seconds = {step: [round_[step] for name in taken for round_ in taken[name] if step in round_] for step in _STEPS}
    rates = {step: [entries / each for each in seconds[step]] for step in _STEPS}
    exported = spread(rates["export"])
    return {
        "decisions": decisions,
        "entries": entries,
        "rounds": rounds,
        "seconds": {step: spread(each).to_dict("s") for step, each in seconds.items()},
        "rates": {step: spread(each).to_dict("per_s") for step, each in rates.items()},
        "files": {"exported": files, "compacted": sum(len(manifest.files) for manifest in manifests)},
        "export/read, time": ratio(seconds["export"], seconds["read"]).to_dict(),
        "lake_bytes": sizes,
        "lake_bytes_per_entry": round(sum(sizes.values()) / entries, 1),
        "ledger_bytes": ledger_bytes,
        "ledger_bytes_per_entry": round(ledger_bytes / entries, 1),
        "disk_sync": disk_sync.to_dict("ms"),
        "goals": [judged("export", exported.median, _EXPORTED_PER_S, unit="entries/s", least=True)],
    }


def show(result: Mapping[str, Any]) -> str:
    """The result as tables."""
    rows = [[f"{step}, s", *Spread.from_dict(result["seconds"][step], "s").cells()] for step in _STEPS]
    rows += [[f"{step}, entries/s", *Spread.from_dict(result["rates"][step], "per_s").cells(",.0f")] for step in _STEPS]
    rows.append(["export/read, time", *Spread.from_dict(result["export/read, time"]).cells()])
    rows.append(["disk sync of 4 KB, ms", *Spread.from_dict(result["disk_sync"], "ms").cells(".3f")])
    sizes = [
        [name, f"{size / 1e6:.2f}", f"{size / result['entries']:.0f}"] for name, size in result["lake_bytes"].items()
    ]
    sizes.append(["lake", f"{sum(result['lake_bytes'].values()) / 1e6:.2f}", f"{result['lake_bytes_per_entry']:.0f}"])
    sizes.append(["ledger", f"{result['ledger_bytes'] / 1e6:.2f}", f"{result['ledger_bytes_per_entry']:.0f}"])
    return "\n\n".join(
        [
            f"Lake: {result['entries']:,} entries, those of {result['decisions']:,} decisions of the demo, on SQLite; "
            f"{result['rounds']} alternating rounds",
            table(["", "median", "min..max"], rows),
            f"{result['files']['exported']} files exported, {result['files']['compacted']} compacted, cases among them",
            table(["on disk", "MB", "bytes an entry of the chain"], sizes),
            goal_lines(result["goals"]),
        ]
    )


def _read(ledger: Ledger, scopes: Sequence[FollowedScope], entries: int) -> _Times:
    """Reads and inflates all entries, page by page, and lets go of each."""
    started = perf_counter()
    found = 0
    for scope in scopes:
        for span in ledger.tail.spans(scope.scope_id, after=0, up_to=scope.head.size):
            for row in span.rows:
                unpack(row[_BODY])
                if row[_REQUEST] is not None:
                    unpack(row[_REQUEST])
                found += 1
    taken = perf_counter() - started
    if found != entries:
        raise Mismatch(f"{entries} entries were made, and {found} were read.")
    return {"read": taken}


def _make(ledger: Ledger, lake: Path, scopes: Sequence[FollowedScope], entries: int) -> _Times:
    """Makes the lake anew, compacts it and verifies it."""
    shutil.rmtree(lake, ignore_errors=True)
    with lease(lake, patience=0):
        exported = _timed(lambda: _export(ledger, lake, scopes))
        compacted = _timed(lambda: _compact(lake))
        manifests = load_all(lake)
        if (found := sum(manifest.position for manifest in manifests)) != entries:
            raise Mismatch(f"{entries} entries were made, and {found} were exported.")
        verified = _timed(lambda: _verify(lake, manifests, None, scopes))
        against = _timed(lambda: _verify(lake, manifests, ledger, scopes))
    return {"export": exported, "compact": compacted, "verify": verified, "verify_against_ledger": against}


def _export(ledger: Ledger, lake: Path, scopes: Sequence[FollowedScope]) -> None:
    exporter = Exporter(ledger, lake)
    for scope in scopes:
        for _ in exporter.export(scope):
            pass


def _count_files(ledger: Ledger, lake: Path, scopes: Sequence[FollowedScope]) -> int:
    """How many files an export makes, of which compaction leaves fewer."""
    with lease(lake, patience=0):
        _export(ledger, lake, scopes)
        return sum(len(manifest.files) for manifest in load_all(lake))


def _compact(lake: Path) -> None:
    compactor = Compactor(lake)
    for manifest in load_all(lake):
        for _ in compactor.compact(manifest):
            pass


def _verify(lake: Path, manifests: Sequence[Manifest], ledger: Ledger | None, scopes: Sequence[FollowedScope]) -> None:
    by_id = {scope.scope_id: scope for scope in scopes}
    for manifest in manifests:
        for finding in verify(lake, manifest, ledger, by_id[manifest.scope_id]):
            raise Mismatch(f"The lake that was made is not whole: {finding.detail}")


def _timed(work: Callable[[], None]) -> float:
    started = perf_counter()
    work()
    return perf_counter() - started


def _sizes(manifests: Sequence[Manifest]) -> dict[str, int]:
    """The bytes of each table, in the files that the manifests name."""
    sizes: Counter[str] = Counter()
    for manifest in manifests:
        for file in manifest.files:
            sizes[file.table] += file.bytes
    return dict(sizes.most_common())
