"""docs/reference/performance-figures.md, from the results of the latest measurements."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from docs.tools.reference.markdown import code, page, table

SOURCE: Final = "bench/results.json"

_FIGURES: Final = Path(__file__).parents[4] / SOURCE
Figures: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Load:
    """Requests that were measured under load.

    Attributes:
        work: What is requested.
        part: The part of `python -m bench` that measures it.
        figures: Where its figures are in that part.
        ratio: Where the ratio of its rate to that of its peer is; empty for a peer.
        peer: What it is compared with.
    """

    work: str
    part: str
    figures: tuple[str, ...]
    ratio: tuple[str, ...] = ()
    peer: str = "bare Flask"


@dataclass(frozen=True, slots=True)
class _Compared:
    """A time or a rate as a multiple of another one.

    Attributes:
        work: What is compared.
        peer: What it is compared with.
        part: The part of `python -m bench` that measures both.
        ratio: Where the ratio is in that part.
    """

    work: str
    peer: str
    part: str
    ratio: tuple[str, ...]


_LOADS: Final = (
    _Load("bare Flask endpoint", "service", ("bare_pinned",)),
    _Load("decide, inline rulebook", "service", ("decide",), ("decide/bare_pinned",)),
    _Load("decide, by reference", "service", ("reference",), ("reference/bare_pinned",)),
    _Load("decide, by reference, 32 connections", "service", ("reference_crowd",), ("reference_crowd/bare_pinned",)),
    _Load("decide, among 1,000,000 records", "size", ("many",), ("many/bare",)),
    _Load("decide, PostgreSQL", "postgres", ("subjects", "decide 2"), ("ratios", "decide 2/bare 2")),
    _Load("decide, with an adapter", "adapters", ("service", "adapter"), ("service", "adapter/direct"), "no adapter"),
    _Load("decide, over MCP", "mcp", ("decide_over_mcp",), ("decide_over_mcp/decide",), "decide over HTTP"),
    _Load("policy question, over MCP", "mcp", ("question",), ("question/bare",)),
    _Load("execution receipt", "lifecycle", ("execution",), ("execution/bare",)),
    _Load("outcome", "lifecycle", ("outcome",), ("outcome/bare",)),
    _Load("replay", "lifecycle", ("replay",), ("replay/bare",)),
)
_COMPARISONS: Final = (
    _Compared("rate of records, batches of 100", "single requests", "batch", ("batch/single",)),
    _Compared("the same, random idempotency keys", "single requests", "batch", ("batch/single, scattered",)),
    _Compared("rate of decide, 1,000 records", "1,000,000 records", "size", ("few/many",)),
    _Compared("processor time of a held decision, webhooks on", "webhooks off", "webhooks", ("with/without",)),
    _Compared("rate of decide, during the lake export", "no export", "reports", ("deciding", "rate exporting/still")),
    _Compared("median of decide, during reports", "no reports", "reports", ("deciding", "p50 beside/still")),
    _Compared(
        "time of zen-engine, one evaluation", "evaluator", "evaluation", ("facts", "approve", "ratios", "zen/decide")
    ),
    _Compared("time of pandas, effectiveness of all", "roll-up", "reports", ("rolled", "pandas/roll_up")),
    _Compared("time of the roll-up", "DuckDB", "reports", ("rolled", "roll_up/duckdb")),
    _Compared("rate of rows, vectorized, from files", "zen-engine", "vectorized", ("ratios", "file/zen")),
    _Compared("time of the lake export", "reading the ledger", "lake", ("export/read, time",)),
)
_UNITS: Final = {"s": "seconds", "entries/s": "entries a second"}
"""Units that the page writes out."""


def pages() -> dict[str, str]:
    """The one page."""
    results: dict[str, Figures] = json.loads(_FIGURES.read_text())
    machine, profile = results["service"]["machine"], results["profile"]
    return {
        "performance-figures.md": page(
            "# Performance figures",
            "This page lists the figures of the latest measurements. [Performance](../explanation/performance.md) "
            "explains them, and how to measure yours.",
            f"The machine had {machine['cpu_count']} CPUs, Python {machine['python']}, and SQLite {machine['sqlite']}. "
            "A figure is the median of several rounds, with the lowest and the highest in parentheses. Machines "
            "differ: compare the ratios.",
            "## Stages of a decision",
            f"In one thread: {_number(profile['together_us'])} microseconds together, with a budget of "
            f"{_number(profile['budget_us'])}. Percentiles are over {profile['decisions']:,} decisions.",
            table(("stage", "microseconds", "10th to 90th percentile", "budget"), _stages(profile)),
            "## Requests under load",
            "Two workers, and 8 connections unless the row states another number. The ratio is the rate of requests, "
            "divided by that of the peer in the same rounds.",
            table(
                (
                    "work",
                    "requests a second",
                    "median, ms",
                    "99th percentile, ms",
                    "peer",
                    "ratio",
                    "`python -m bench`",
                ),
                (_load(each, results[each.part]) for each in _LOADS),
            ),
            "## Comparisons",
            table(
                ("measure", "compared with", "times", "`python -m bench`"),
                (_compared(each, results[each.part]) for each in _COMPARISONS),
            ),
            "## Goals",
            table(("measure", "figure", "goal", "met", "`python -m bench`"), _goals(results)),
        )
    }


def _stages(profile: Figures) -> Iterator[tuple[str, str, str, str]]:
    for name, stage in profile["stages"].items():
        spread = f"{_number(stage['p10_us'])} to {_number(stage['p90_us'])}" if "p10_us" in stage else ""
        yield name, _number(stage["median_us"]), spread, _number(stage["budget_us"])


def _load(each: _Load, part: Figures) -> Sequence[str]:
    figures = _at(part, each.figures)
    return (
        each.work,
        _spread(figures["rate"], "_per_s"),
        _spread(figures["p50"], "_ms"),
        _spread(figures["p99"], "_ms"),
        each.peer if each.ratio else "",
        _spread(_at(part, each.ratio)) if each.ratio else "",
        code(each.part),
    )


def _compared(each: _Compared, part: Figures) -> Sequence[str]:
    return each.work, each.peer, _spread(_at(part, each.ratio)), code(each.part)


def _goals(results: Mapping[str, Figures]) -> Iterator[Sequence[str]]:
    for part, figures in results.items():
        for goal in figures.get("goals", ()):
            bound = "at least" if goal["least"] else "at most"
            unit = _UNITS.get(goal["unit"], goal["unit"])
            yield (
                re.sub(r"\bp(\d+)", r"\1th percentile", goal["what"].replace("p50", "median")),
                f"{_number(goal['figure'])} {unit}",
                f"{bound} {_number(goal['goal'])} {unit}",
                "yes" if goal["met"] else "no",
                code(part),
            )


def _at(figures: Figures, path: Sequence[str]) -> Figures:
    for name in path:
        figures = figures[name]
    return figures


def _spread(figures: Figures, unit: str = "") -> str:
    median, low, high = (_number(figures[f"{name}{unit}"]) for name in ("median", "min", "max"))
    return f"{median} ({low} to {high})"


def _number(value: float) -> str:
    """A figure to three digits, or whole."""
    if abs(value) >= 100 or value == int(value):
        return f"{round(value):,}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
