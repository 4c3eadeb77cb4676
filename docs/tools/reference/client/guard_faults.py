"""The page of the guard's fault matrix, from the rows that tests/gate/client/guard/test_faults.py carries out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

SOURCE: Final = "tests/cases/guard_faults.json"

_INTRODUCTION: Final = """\
# The guard's fault matrix

What does a [guard](../glossary.md#guard) do when something fails? A test causes every fault below, once with `Client`
and once with `AsyncClient`, against the service. Where a row says that a process dies, the test kills a process.

After the fault has passed, the test enters the same guard again and delivers every waiting report. A row that leaves an
action started uses a recovery hook. The test also checks that each body had a verified yes or grant, that none ran
twice, and that the service has one execution receipt for every run.

| column | meaning |
|---|---|
| the caller sees | the exception and its [code](guard-errors.md); "nothing" if the guard raises none |
| in the store | right after the fault: the state of the intent, and the reports that wait or are set aside, and why |
| runs | how often the body ran: right after the fault, and in the end |
| receipts | the execution receipts at the service in the end |
"""

_HEAD: Final = """
| fault | the caller sees | in the store | runs | receipts |
|---|---|---|---|---|
"""

_HEADINGS: Final[Mapping[str, str]] = {
    "decide": "The request for a decision fails",
    "record": "The record is wrong",
    "verdict": "The verdict is not yes",
    "body": "The body fails",
    "report": "The execution receipt is not delivered",
    "caller": "Something fails on the caller's host",
    "process dies": "The process dies",
    "review": "The action is held for review",
    "race": "Two processes race",
}
"""The heading of the rows of each kind, in the order of the page."""


def pages() -> dict[str, str]:
    """The one page."""
    rows: list[dict[str, Any]] = json.loads((Path(__file__).parents[4] / SOURCE).read_text())
    page = _INTRODUCTION
    for kind, heading in _HEADINGS.items():
        page += f"\n## {heading}\n{_HEAD}" + "".join(_row(row) for row in rows if row["strikes"] == kind)
    return {"guard-faults.md": page}


def _row(row: Mapping[str, Any]) -> str:
    sees = " ".join(f"`{name}`" for name in row["sees"] or () if name) or "nothing"
    store = f"{row['store']} (`{row['told']}`)" if "told" in row else row["store"]
    receipts = ", ".join(row["receipts"]) or "none"
    return f"| {row['fault']} | {sees} | {store} | {row['runs'][0]}, then {row['runs'][1]} | {receipts} |\n"
