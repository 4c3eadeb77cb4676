"""The import of a history, compared with Polars writing the same CSV file to Parquet unchanged.

The file is made up. A row has an id, two dates, a verdict, an outcome, three metrics, and ten facts. The import types
every cell, refuses bad rows, compares each id with all others, and writes three tables. Each run has its own process,
whose peak memory is reported.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl

from bench.disk import scratch
from bench.lakes import goal_lines, judged
from bench.measure import Mismatch, Spread, alternate, ratio, spread
from bench.tables import table

_ROWS: Final = 1_000_000
_QUICK_ROWS: Final = 20_000
_ROUNDS: Final = 5
_QUICK_ROUNDS: Final = 1
_SECONDS: Final = 20.0
_START_MS: Final = 1_704_067_200_000

_FACTS: Final = {
    **dict.fromkeys(("amount", "margin", "lead_days"), "number"),
    **dict.fromkeys(("nights", "adults"), "integer"),
    **dict.fromkeys(("country", "segment", "channel", "deposit"), "string"),
    "is_repeat": "boolean",
}
_METRICS: Final = ("cost", "hours", "score")
_MAP: Final[Mapping[str, Any]] = {
    "history_map_version": "decision_history_map_v1",
    "id": {"column": "id"},
    "occurred_at": {"column": "decided"},
    "policy_id": "refund_policy",
    "verdict": {"column": "verdict", "values": {"approve": "yes", "deny": "no", "hold": "review"}},
    "outcome": {"column": "outcome", "values": {"ok": "succeeded", "bad": "failed"}},
    "outcome_at": {"column": "closed"},
    "metrics": {name: {"column": name} for name in _METRICS},
    "facts": {name: {"column": name, "type": kind} for name, kind in _FACTS.items()},
}

_IMPORT: Final = """
import json, resource, sys, time
from pathlib import Path
from gate.clock import utc_now
from workbench.history.importing import Plan, import_history
from workbench.history.mapping import load_map
from workbench.history.sources import examine
from workbench.lake.entries import Personal
file, lake, map_ = Path(sys.argv[1]), Path(sys.argv[2]), json.loads(sys.argv[3])
started = time.perf_counter()
plan = Plan(lake, "scope", "acme", "past", load_map(map_, "map"), [examine(file, None)], Personal(), utc_now())
rows = import_history(plan).found.rows
seconds = time.perf_counter() - started
print(json.dumps([rows, seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))
"""
_FLOOR: Final = """
import json, resource, sys, time
import polars as pl
started = time.perf_counter()
pl.scan_csv(sys.argv[1], infer_schema=False).sink_parquet(sys.argv[2] + ".parquet")
seconds = time.perf_counter() - started
rows = pl.scan_parquet(sys.argv[2] + ".parquet").select(pl.len()).collect().item()
print(json.dumps([rows, seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))
"""


def run(*, quick: bool) -> dict[str, Any]:
    """Imports the file, and copies it, in turns.

    Raises:
        Mismatch: Not every row was written.
    """
    rows, rounds = (_QUICK_ROWS, _QUICK_ROUNDS) if quick else (_ROWS, _ROUNDS)
    with scratch() as directory:
        file = directory / "past.csv"
        _drawn(rows).write_csv(file)
        size = file.stat().st_size
        subjects: dict[str, Callable[[], tuple[float, float]]] = {
            "floor": partial(_timed, _FLOOR, file, rows),
            "import": partial(_timed, _IMPORT, file, rows),
        }
        taken = alternate(subjects, rounds)
    seconds = {name: [each[0] for each in found] for name, found in taken.items()}
    imported = spread(seconds["import"])
    goals = [] if quick else [judged("import", imported.median, _SECONDS, unit="s", least=False)]
    return {
        "rows": rows,
        "rounds": rounds,
        "bytes": size,
        "seconds": {name: spread(each).to_dict("s") for name, each in seconds.items()},
        "peak": {name: spread([each[1] for each in found]).to_dict("mb") for name, found in taken.items()},
        "import/floor, time": ratio(seconds["import"], seconds["floor"]).to_dict(),
        "goals": goals,
    }


def show(result: Mapping[str, Any]) -> str:
    """The result as a table."""
    rows = [[f"{name}, s", *Spread.from_dict(of, "s").cells()] for name, of in result["seconds"].items()]
    rows += [[f"{name}, peak MB", *Spread.from_dict(of, "mb").cells(",.0f")] for name, of in result["peak"].items()]
    rows.append(["import/floor, time", *Spread.from_dict(result["import/floor, time"]).cells()])
    return "\n\n".join(
        [
            f"History: {result['rows']:,} rows of CSV, {result['bytes'] / 1e6:.0f} MB; {result['rounds']} alternating "
            f"rounds",
            table(["", "median", "min..max"], rows),
            goal_lines(result["goals"]),
        ]
    )


def _timed(program: str, file: Path, rows: int) -> tuple[float, float]:
    """The seconds that a program takes for the file, and its peak memory in MB."""
    with scratch() as lake:
        command = [sys.executable, "-c", program, str(file), str(lake / "lake"), json.dumps(_MAP)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    found, seconds, peak = json.loads(done.stdout)
    if found != rows:
        raise Mismatch(f"{rows} rows were made, and {found} were written.")
    return seconds, peak


def _drawn(rows: int) -> pl.DataFrame:
    """The rows of the file, as texts."""
    drawn = np.random.default_rng(7)
    decided = pl.Series("decided", _START_MS + np.arange(rows) * 60_000).cast(pl.Datetime("ms"))

    def one_of(name: str, *words: str) -> pl.Series:
        return pl.Series(words).gather(drawn.integers(0, len(words), rows)).alias(name)

    def number(name: str, low: float, high: float, digits: int) -> pl.Series:
        return pl.Series(name, drawn.uniform(low, high, rows)).round(digits)

    def whole(name: str, most: int) -> pl.Series:
        return pl.Series(name, drawn.integers(0, most, rows))

    frame = pl.DataFrame(
        [
            pl.Series("id", drawn.permutation(rows)),
            decided,
            decided.alias("closed"),
            one_of("verdict", "approve", "deny", "hold"),
            one_of("outcome", "ok", "bad", ""),
            number("cost", 0, 500, 2),
            whole("hours", 100),
            number("score", 0, 1, 4),
            number("amount", 1, 5000, 2),
            number("margin", -20, 60, 1),
            whole("lead_days", 300),
            whole("nights", 14),
            whole("adults", 4),
            one_of("country", "PT", "DE", "FR", "US"),
            one_of("segment", "web", "phone", "agency desk"),
            one_of("channel", "direct", "ota", "corporate"),
            one_of("deposit", "none", "refundable", "non_refundable"),
            one_of("is_repeat", "true", "false"),
        ]
    )
    moments = pl.col("decided", "closed").dt.strftime("%Y-%m-%dT%H:%M:%SZ")
    return frame.with_columns(moments, pl.format("case-{}", pl.col("id")).alias("id"))
