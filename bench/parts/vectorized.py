"""A rulebook over stored facts: the vectorized evaluator compared with zen-engine and the scalar evaluator.

The facts are those of the sample rulebook: mostly numbers, with some strings, nulls, booleans, and absent fields. They
are in a Parquet file in the form of the lake, with typed columns and the JSON of all facts. The vectorized evaluator
decides all of them, from memory and from the file, which is in the system's cache. The other evaluators decide a part
of the same facts row by row, from dictionaries in memory. zen-engine uses the equal table and its fastest interface.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, Final

import orjson
import polars as pl
import pyarrow.parquet as pq
import zen

from bench.decision_table import OUTPUTS, decision_graph
from bench.measure import Mismatch, Spread, alternate, ratio, spread
from bench.samples import rulebook_body
from bench.tables import table
from gate.rulebooks.evaluation import Evaluator, Outcome
from gate.rulebooks.rulebook import load
from workbench.evaluator import VectorEvaluator, compile_frame_evaluator
from workbench.facts import INPUTS, fact_series, find_typed, with_fields

_ROWS: Final = 5_000_000
_ROUNDS: Final = 11
_QUICK_ROWS: Final = 500_000
_QUICK_ROUNDS: Final = 5

_ROWS_AT_ONCE: Final = 100_000
# As the lake writes its files.
_ROW_GROUP: Final = 65_536
# A call of zen-engine takes some microseconds.
_ROWS_ONE_BY_ONE: Final = 20_000

_ODD: Final[Sequence[Any]] = ("12", "n/a", "", None, True, False)
_VECTORIZED: Final = ("memory", "file", "file_outcomes")


def run(*, quick: bool) -> dict[str, Any]:
    """Times every subject on the same facts.

    Raises:
        Mismatch: Two subjects do not say the same.
    """
    rows, rounds = (_QUICK_ROWS, _QUICK_ROUNDS) if quick else (_ROWS, _ROUNDS)
    body: Any = rulebook_body()
    scalar, vector = load(body).evaluator, compile_frame_evaluator(body)
    engine = zen.ZenEngine({"loader": {"type": "static", "content": {"table": decision_graph(body)}}})
    facts = _facts(Random(1), _ROWS_ONE_BY_ONE)
    with TemporaryDirectory() as directory:
        path = Path(directory, "facts.parquet")
        _write(path, facts, rows, vector.fields)
        scan = pl.scan_parquet(path)
        stored = with_fields(scan, vector.fields, typed=find_typed(scan, vector.fields))
        frame = scan.drop(INPUTS).collect().lazy()
        compared = _compare(vector, stored, frame, scalar, engine, facts)
        queries = {
            "memory": frame.select(vector.index),
            "file": stored.select(vector.index),
            "file_outcomes": vector.decide(stored).group_by("verdict", "application_verdict", "reason_code").len(),
        }
        subjects: dict[str, Callable[[], float]] = {
            **{name: partial(_rate_of, query, rows) for name, query in queries.items()},
            "scalar": partial(_rate_of_scalar, scalar, facts),
            "zen": partial(_rate_of_zen, engine, facts),
        }
        taken = alternate(subjects, rounds)
        size = path.stat().st_size
    return {
        "rows": rows,
        "rounds": rounds,
        "file_bytes": size,
        "equal_outcomes_checked": compared,
        "rates": {subject: spread(figures).to_dict("per_s") for subject, figures in taken.items()},
        "ratios": {
            f"{over}/{under}": ratio(taken[over], taken[under]).to_dict()
            for under in ("zen", "scalar")
            for over in _VECTORIZED
        },
    }


def show(result: Mapping[str, Any]) -> str:
    """The result as tables."""
    rates = [[name, *Spread.from_dict(figures, "per_s").cells(",.0f")] for name, figures in result["rates"].items()]
    ratios = [[pair, *Spread.from_dict(figures).cells(",.0f")] for pair, figures in result["ratios"].items()]
    return "\n\n".join(
        [
            f"Vectorized evaluation of {result['rows']:,} stored decisions, {result['rounds']} alternating rounds; "
            f"equal outcomes on {result['equal_outcomes_checked']:,} facts",
            table(["decisions a second", "median", "min..max"], rates),
            table(["ratio", "median", "min..max"], ratios),
        ]
    )


def _facts(random: Random, rows: int) -> list[dict[str, Any]]:
    return [
        {
            name: value
            for name in ("discount_percent", "margin_percent", "list_price", "region")
            if (value := _value(random, name)) is not ...
        }
        for _ in range(rows)
    ]


def _value(random: Random, name: str) -> Any:
    """A value, or ... where the field is absent."""
    drawn = random.random()
    if drawn < 0.02:
        return ...
    if drawn < 0.06:
        return random.choice(_ODD)
    if name == "region":
        return random.choice(("emea", "apac", "americas"))
    return random.randrange(40) if drawn < 0.5 else round(random.uniform(0, 40), 2)


def _write(path: Path, first: Sequence[Mapping[str, Any]], rows: int, fields: Sequence[str]) -> None:
    """A file with the first facts, and others of their kind up to so many rows."""
    random = Random(2)
    parts = [_columns(first, fields)]
    for start in range(len(first), rows, _ROWS_AT_ONCE):
        parts.append(_columns(_facts(random, min(_ROWS_AT_ONCE, rows - start)), fields))
    columns = pl.concat(parts).to_arrow(compat_level=pl.CompatLevel.oldest())
    pq.write_table(columns, path, row_group_size=_ROW_GROUP, compression="zstd", compression_level=1)


def _columns(facts: Sequence[Mapping[str, Any]], fields: Sequence[str]) -> pl.DataFrame:
    texts = [orjson.dumps(row, option=orjson.OPT_SORT_KEYS).decode() for row in facts]
    return pl.DataFrame([pl.Series(INPUTS, texts), *fact_series(facts, fields)])


def _compare(
    vector: VectorEvaluator,
    stored: pl.LazyFrame,
    frame: pl.LazyFrame,
    scalar: Evaluator,
    engine: Any,
    facts: Sequence[Mapping[str, Any]],
) -> int:
    from_file = stored.select(vector.index).head(len(facts)).collect().to_series().to_list()
    from_memory = frame.select(vector.index).head(len(facts)).collect().to_series().to_list()
    for row, *positions in zip(facts, from_file, from_memory, strict=True):
        outcome = scalar.decide(row)
        if any(vector.outcomes[position] != outcome for position in positions):
            raise Mismatch(f"On {row} the scalar evaluator says {outcome}, the vectorized one something else.")
        # A decision table does not check its input.
        if outcome.status == "ok" and (answer := _answer(engine, row)) != _told(outcome):
            raise Mismatch(f"On {row} the rulebook says {outcome}, the table {answer}.")
    return len(facts)


def _answer(engine: Any, row: Mapping[str, Any]) -> dict[str, Any]:
    given = engine.evaluate("table", row)["result"]
    # zen-engine leaves out what is null.
    return {name: given.get(name) for name in OUTPUTS}


def _told(outcome: Outcome) -> dict[str, Any]:
    return {name: getattr(outcome, name) for name in OUTPUTS}


def _rate_of(query: pl.LazyFrame, rows: int) -> float:
    start = perf_counter()
    query.collect(engine="streaming")
    return rows / (perf_counter() - start)


def _rate_of_scalar(evaluator: Evaluator, facts: Sequence[Mapping[str, Any]]) -> float:
    start = perf_counter()
    for row in facts:
        evaluator.decide(row)
    return len(facts) / (perf_counter() - start)


def _rate_of_zen(engine: Any, facts: Sequence[Mapping[str, Any]]) -> float:
    start = perf_counter()
    for row in facts:
        engine.evaluate("table", row)
    return len(facts) / (perf_counter() - start)
