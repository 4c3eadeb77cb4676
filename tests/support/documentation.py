"""What the documentation and the OpenAPI document say, in parts that tests compare."""

from __future__ import annotations

import re
from typing import Final

from tests.contract.frozen import current

DOCUMENT: Final = current()

OPERATIONS: Final = {
    f"{method.upper()} {path}": operation
    for path, item in DOCUMENT["paths"].items()
    for method, operation in item.items()
}


def section(page: str, heading: str) -> str:
    """What stands under a heading, down to the next one of the same or a higher level."""
    level = len(heading) - len(heading.lstrip("#"))
    found = re.search(rf"^{re.escape(heading)}\n(.*?)(?=^#{{1,{level}}} |\Z)", page, flags=re.MULTILINE | re.DOTALL)
    assert found, heading
    return found[1]


def notes(page: str) -> list[str]:
    """The notes that a page of formulas lists in its fences; each without its condition, which stands in brackets."""
    listed = "".join(re.findall(r"^```text\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL))
    return [re.sub(r" \[[^]]*\]$", "", line) for line in listed.splitlines()]


def rows(table: str) -> list[list[str]]:
    """The cells of a section's table rows, its head left out."""
    lines = [line for line in table.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
