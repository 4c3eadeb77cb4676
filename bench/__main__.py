"""`python -m bench [part ...] [--quick]`: runs the benchmarks and writes `bench/results.json`."""

from __future__ import annotations

import argparse
import os
import platform
import signal
import sqlite3
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NoReturn

import orjson

from bench.parts import (
    adapters,
    analysis,
    audit,
    batch,
    benchmarks,
    dashboard,
    detection,
    evaluation,
    guard,
    history,
    lake,
    lifecycle,
    mcp,
    memory,
    migration,
    postgres,
    profile,
    reports,
    reviews,
    routing,
    service,
    size,
    studio,
    vectorized,
    webhooks,
)

_RESULTS: Final = Path(__file__).with_name("results.json")
PARTS: Final = {
    "evaluation": evaluation,
    "service": service,
    "batch": batch,
    "lifecycle": lifecycle,
    "mcp": mcp,
    "guard": guard,
    "webhooks": webhooks,
    "adapters": adapters,
    "profile": profile,
    "routing": routing,
    "postgres": postgres,
    "memory": memory,
    "vectorized": vectorized,
    "audit": audit,
    "analysis": analysis,
    "lake": lake,
    "history": history,
    "detection": detection,
    "benchmarks": benchmarks,
    "migration": migration,
    "dashboard": dashboard,
    "studio": studio,
    # Last, because freeing their gigabytes keeps the disk busy.
    "reports": reports,
    "reviews": reviews,
    "size": size,
}


def main() -> None:
    """Runs the parts named on the command line, or all."""
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Measures what decisions and reports cost, and writes bench/results.json.",
        epilog="\n".join(["parts:", *(f"  {name:<12}{_first_sentence(part)}" for name, part in PARTS.items())]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("parts", nargs="*", metavar="part", help="one of those below; all where none is named")
    parser.add_argument("--quick", action="store_true", help="shorter rounds, whose figures are rough")
    arguments = parser.parse_args()
    if unknown := set(arguments.parts) - set(PARTS):
        parser.error(f"there is no part {', '.join(sorted(unknown))}")
    # As Ctrl-C, so that what was started is stopped.
    signal.signal(signal.SIGTERM, _interrupt)
    machine = _machine()
    print(", ".join(f"{name} {value}" for name, value in machine.items()))
    results = _kept()
    for name in arguments.parts or PARTS:
        part = PARTS[name]
        result = part.run(quick=arguments.quick)
        print(f"\n{part.show(result)}", flush=True)
        results[name] = {"machine": machine, "quick": arguments.quick, **result}
        _RESULTS.write_bytes(orjson.dumps(results, option=orjson.OPT_INDENT_2) + b"\n")


def _first_sentence(part: ModuleType) -> str:
    return " ".join((part.__doc__ or "").split()).partition(". ")[0].rstrip(".")


def _machine() -> dict[str, Any]:
    return {
        "python": platform.python_version(),
        "cpu_count": os.cpu_count(),
        "platform": platform.platform(),
        "sqlite": sqlite3.sqlite_version,
    }


def _kept() -> dict[str, Any]:
    """The parts measured before, each with the machine that it was measured on."""
    try:
        results: dict[str, Any] = orjson.loads(_RESULTS.read_bytes())
    except (FileNotFoundError, orjson.JSONDecodeError):
        return {}
    return {name: results[name] for name in PARTS if name in results}


def _interrupt(_signal: int, _frame: object) -> NoReturn:
    raise KeyboardInterrupt


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
