"""The check of whole chains with every hash and signature, at one size and at four times this size.

The ledgers are those of the demo: a year of four scopes. Each check runs in a separate process with one thread, and its
processor time and peak memory are measured. Then it runs on all processors, and its elapsed time is measured. A linear
check takes four times as long for four times the entries, and no more memory.
"""

from __future__ import annotations

import multiprocessing
import resource
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, Final, NamedTuple

from api.cli.demo.ledger import DemoPlan, make_ledger
from api.cli.options import instance_at
from bench.disk import scratch, write_out
from bench.lakes import goal_lines, judged
from bench.measure import Mismatch, Spread, alternate, ratio, spread
from bench.subjects import sqlite_url
from bench.tables import table
from gate.instance.audit import check_chains
from gate.instance.processes import processors

_DECISIONS: Final = 8_000
_QUICK_DECISIONS: Final = 1_000
_TIMES: Final = 4
_ROUNDS: Final = 3
_QUICK_ROUNDS: Final = 2
_UNTIL: Final = datetime(2026, 7, 1, tzinfo=UTC)

_ENTRIES_PER_S: Final = 3_000
_MOST_RATIO: Final = 1.25


class Checked(NamedTuple):
    """What a check took: its entries, processor seconds, seconds, and peak of resident memory in MB."""

    entries: int
    processor_s: float
    seconds: float
    peak_mb: float


def run(*, quick: bool) -> dict[str, Any]:
    """Checks two ledgers in turn.

    Raises:
        Mismatch: A chain was found broken, or not every entry was read.
    """
    decisions, rounds = (_QUICK_DECISIONS, _QUICK_ROUNDS) if quick else (_DECISIONS, _ROUNDS)
    with scratch() as directory:
        sizes = {"n": decisions, "4n": _TIMES * decisions}
        entries = {name: _make(directory / name, size) for name, size in sizes.items()}
        taken = alternate({name: partial(_checked, directory / name, entries[name]) for name in sizes}, rounds)
        on_all = [_check(directory / "4n", None, entries["4n"]).seconds for _ in range(rounds)]
    per_entry = {name: [each.processor_s / each.entries for each in taken[name]] for name in sizes}
    rates = {name: spread([1 / each for each in per_entry[name]]) for name in sizes}
    times = ratio(per_entry["4n"], per_entry["n"])
    return {
        "entries": entries,
        "rounds": rounds,
        "processors": processors(),
        "entries_per_s_a_core": {name: rate.to_dict("per_s") for name, rate in rates.items()},
        "4n/n, time per entry": times.to_dict(),
        "entries_per_s_on_all": spread([entries["4n"] / each for each in on_all]).to_dict("per_s"),
        "peak_mb": {name: spread([each.peak_mb for each in taken[name]]).to_dict("mb") for name in sizes},
        "goals": [
            judged("check, a core", rates["4n"].median, _ENTRIES_PER_S, unit="entries/s", least=True),
            judged("check, 4n/n time per entry", times.median, _MOST_RATIO, unit="times"),
        ],
    }


def show(result: Mapping[str, Any]) -> str:
    """The result as tables."""
    rows = [
        [f"{result['entries'][name]:,} entries, entries/s a core", *Spread.from_dict(rate, "per_s").cells(",.0f")]
        for name, rate in result["entries_per_s_a_core"].items()
    ]
    on_all = Spread.from_dict(result["entries_per_s_on_all"], "per_s").cells(",.0f")
    rows.append([f"entries/s on {result['processors']} processors", *on_all])
    rows += [
        [f"{result['entries'][name]:,} entries, peak MB", *Spread.from_dict(peak, "mb").cells(",.0f")]
        for name, peak in result["peak_mb"].items()
    ]
    rows.append(["4n/n, time per entry", *Spread.from_dict(result["4n/n, time per entry"]).cells()])
    return "\n\n".join(
        [
            f"Check of chains on SQLite, every signature; {result['rounds']} alternating rounds",
            table(["", "median", "min..max"], rows),
            goal_lines(result["goals"]),
        ]
    )


def _make(home: Path, decisions: int) -> int:
    made = make_ledger(home, DemoPlan(decisions, 1, _UNTIL))
    write_out(home / "ledger.db")
    return sum(sum(each.entries.values()) for each in made)


def _checked(home: Path, entries: int) -> Checked:
    """A check in a process of its own, whose peak of memory is no other's."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_check, home, 1, entries).result()


def _check(home: Path, processes: int | None, entries: int) -> Checked:
    with instance_at(home, sqlite_url(home)) as instance:
        scopes = [scope.scope_id for scope in instance.ledger.directory.scopes()]
        started, used = perf_counter(), process_time()
        audits = check_chains(instance, scopes, processes=processes)
        seconds, used = perf_counter() - started, process_time() - used
    read = sum(audit.entries for audit in audits)
    if read != entries or any(audit.finding for audit in audits):
        raise Mismatch(f"{entries} entries were made, and {read} were found whole.")
    return Checked(read, used, seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
