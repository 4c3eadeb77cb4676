"""The page of the notes that reports can contain, which tests compare with what the reports say."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

SOURCE: Final = "docs/tools/report-notes.json"

_INTRODUCTION: Final = """\
# Notes of the reports

Which notes can a report contain, and when? Notes stand in this order. A condition follows in brackets if the note does
not state it. Numbers and names are examples.
"""


def pages() -> dict[str, str]:
    """The one page."""
    listed: Mapping[str, Mapping[str, Sequence[str]]] = json.loads((Path(__file__).parents[4] / SOURCE).read_text())
    page = _INTRODUCTION
    for report, kinds in listed.items():
        page += f"\n## {report}\n"
        for kind, notes in kinds.items():
            page += (
                f"\n{kind.replace('_', ' ').capitalize()}:\n\n```text\n"
                + "".join(f"{note}\n" for note in notes)
                + "```\n"
            )
    return {"formulas/notes.md": page}
