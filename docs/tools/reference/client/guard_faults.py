"""The pages of the guard's fault matrix, from the rows that tests/gate/client/guard/test_faults.py carries out."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from docs.tools.reference.markdown import anchor

SOURCE: Final = "tests/cases/guard_faults.json"

_INTRODUCTION: Final = """\
# The guard's fault matrix

What does a [guard](../../glossary.md#guard) do when something fails? A test causes every fault of these pages, once
with `Client` and once with `AsyncClient`, against the service. Where a row says that a process dies, the test kills a
process.

After the fault has passed, the test enters the same guard again and delivers every waiting report. A row that leaves an
action started uses a recovery hook. The test also checks that each body had a verified yes or grant, that none ran
twice, and that the service has one execution receipt for every run.

| faults | page |
|---|---|
"""

_COLUMNS: Final = """
The pages have these columns:

| column | meaning |
|---|---|
| the caller sees | the exception and its [code](../guard-errors.md); "nothing" if the guard raises none |
| in the store | right after the fault: the state of the intent, and the reports that wait or are set aside, and why |
| runs | how often the body ran: right after the fault, and in the end |
| receipts | the execution receipts at the service in the end |
"""

_HEAD: Final = """
| fault | the caller sees | in the store | runs | receipts |
|---|---|---|---|---|
"""

_PAGES: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "decision.md": (
        "Guard faults before the action",
        {
            "decide": "The request for a decision fails",
            "record": "The record is wrong",
            "verdict": "The verdict is not yes",
        },
    ),
    "action.md": (
        "Guard faults during and after the action",
        {
            "body": "The body fails",
            "report": "The execution receipt is not delivered",
            "caller": "Something fails on the caller's host",
            "process dies": "The process dies",
            "race": "Two processes race",
        },
    ),
    "review.md": ("Guard faults while a review is open", {"review": "The action is held for review"}),
}
"""The title of each page, and the heading of the rows of each kind, in the order of the page."""


def pages() -> dict[str, str]:
    """The index, and the pages of the faults."""
    rows: list[dict[str, Any]] = json.loads((Path(__file__).parents[4] / SOURCE).read_text())
    index = "".join(
        f"| {heading} | [{title}]({name}#{anchor(heading)}) |\n"
        for name, (title, headings) in _PAGES.items()
        for heading in headings.values()
    )
    return {"guard-faults/README.md": f"{_INTRODUCTION}{index}{_COLUMNS}"} | {
        f"guard-faults/{name}": _page(title, headings, rows) for name, (title, headings) in _PAGES.items()
    }


def _page(title: str, headings: Mapping[str, str], rows: Sequence[Mapping[str, Any]]) -> str:
    about = "What does the guard do after each of these faults? [The index](README.md) explains the columns."
    text = f"# {title}\n\n{about}\n"
    for kind, heading in headings.items():
        text += f"\n## {heading}\n{_HEAD}" + "".join(_row(row) for row in rows if row["strikes"] == kind)
    return text


def _row(row: Mapping[str, Any]) -> str:
    sees = " ".join(f"`{name}`" for name in row["sees"] or () if name) or "nothing"
    store = f"{row['store']} (`{row['told']}`)" if "told" in row else row["store"]
    receipts = ", ".join(row["receipts"]) or "none"
    return f"| {row['fault']} | {sees} | {store} | {row['runs'][0]}, then {row['runs'][1]} | {receipts} |\n"
