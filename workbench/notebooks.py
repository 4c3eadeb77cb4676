"""The analysts' notebooks, written for a scope, a policy, and a lake.

    notebook = written_for(load("effectiveness"), "acme", "refund_policy", Path("/srv/gate/lake"))
    Path("refunds.ipynb").write_text(as_ipynb(notebook))

Their sources travel with the product as Python files in Jupytext's percent format: each cell begins with a line `# %%`,
and one is tagged `parameters`. They are read and written here and not by Jupytext, so that the machine with the lake
needs nothing that only notebooks need. Results are in neither.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Final

from gate.encoding import resources
from gate.errors import OperatorError
from gate.policy.questions import CLOCKS

PARAMETERS: Final = "parameters"
"""The tag of the cell that names what a notebook looks at; Papermill knows it by the same one."""

_CELL: Final = re.compile(r'^# %%( \[markdown\])?(?: tags=(\["[^\n]*"\]))?\n', re.MULTILINE)
_TITLE: Final = re.compile(r"^# (.+)$", re.MULTILINE)
_KERNEL: Final = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
_HEADER: Final = """\
# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#       format_version: '1.3'
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---
"""
# The names stand in a block that is shown as it is, each on one line: nothing in them is markup.
_ABOUT: Final = """\
**This copy of the notebook `{name}` reads**

    scope   {scope!r}
    policy  {policy!r}
    lake    {lake!r}{more}

**Its text describes the demo ledger.** Its numbers, names, and incidents may not be those of this lake. Use the
text as a guide; the outputs of the cells are yours."""


HISTORY_NOTEBOOKS: Final = ("migration_dry_run",)
"""The notebooks that can read an imported history; the others compare rulebooks that decided."""

_READ: Final = ".scope(SCOPE)"

_ELSEWHERE: Final = """

**Set the environment variable `GATE_LAKE`** to the path of the lake on your machine before you start Jupyter, or write
the path into `LAKE` below. The dashboard is reachable from other machines, so it does not reveal its own path."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a notebook.

    Attributes:
        kind: `markdown` or `code`.
        source: Its text.
        tags: Its tags.
    """

    kind: str
    source: str
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Notebook:
    """A notebook without results.

    Attributes:
        name: Its name: that of its source, without the suffix.
        cells: Its cells.
    """

    name: str
    cells: tuple[Cell, ...]

    @property
    def title(self) -> str:
        """Its first heading."""
        return next(
            found[1] for cell in self.cells if cell.kind == "markdown" and (found := _TITLE.search(cell.source))
        )

    def takes(self, parameter: str) -> bool:
        """Whether it has a parameter of this name."""
        return any(
            PARAMETERS in cell.tags and any(line.startswith(f"{parameter} = ") for line in cell.source.split("\n"))
            for cell in self.cells
        )


def notebooks() -> list[Notebook]:
    """Every notebook as it comes, by name."""
    return [load(name) for name in _names()]


def load(name: str) -> Notebook:
    """A notebook as it comes.

    Raises:
        OperatorError: NOTEBOOK_UNKNOWN.
    """
    if name not in _names():
        raise OperatorError("NOTEBOOK_UNKNOWN", f"There is no notebook {name!r}; there are {', '.join(_names())}.")
    _, *parts = _CELL.split((_folder() / f"{name}.py").read_text(encoding="utf-8"))
    read = zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    return Notebook(name, tuple(_cell(markdown is not None, tags, body.rstrip("\n")) for markdown, tags, body in read))


def written_for(
    notebook: Notebook, scope: str, policy: str, lake: Path, more: Mapping[str, str | None] = MappingProxyType({})
) -> Notebook:
    """A notebook with these parameters, after a cell that says what they are and whom the text is about.

    Args:
        notebook: The notebook as it comes.
        scope: The scope that it is to look at.
        policy: The scope's policy.
        lake: The lake that it reads: an absolute path, so that the notebook can be anywhere, or a path that is used
            unless the environment variable GATE_LAKE is set.
        more: Further parameters that the notebook has, by name, such as ANOMALY; None leaves one as it comes.
    """
    chosen = {name: value for name, value in more.items() if value is not None}
    read = repr(str(lake)) if lake.is_absolute() else f'os.environ.get("GATE_LAKE", {str(lake)!r})'
    # Python literals: whatever a name contains, it stays on its line and is nothing but a string.
    given = {"SCOPE": repr(scope), "POLICY": repr(policy), "LAKE": read, **{of: repr(chosen[of]) for of in chosen}}
    named = "".join(f"\n    {name.lower():<7} {value!r}" for name, value in chosen.items())
    about = _ABOUT.format(name=notebook.name, scope=scope, policy=policy, lake=str(lake), more=named)
    about += "" if lake.is_absolute() else _ELSEWHERE
    cells = (_with(given, cell) if PARAMETERS in cell.tags else cell for cell in notebook.cells)
    return replace(notebook, cells=(Cell("markdown", about), *cells))


def over_history(notebook: Notebook, name: str) -> Notebook:
    """A notebook that reads an imported history of its scope, in the place of the scope's own decisions.

    Args:
        notebook: A notebook of `HISTORY_NOTEBOOKS`.
        name: The history.
    """
    # A Python literal, as the parameters are.
    return _reading(notebook, f".history({name!r})")


def narrowed_to(notebook: Notebook, verdict: str | None, clock: str) -> Notebook:
    """A notebook that reads some of its scope's decisions only, by the dates of a clock.

    Args:
        notebook: The notebook.
        verdict: The verdict of the decisions; None for all.
        clock: Which dates count, `recorded` or `occurred`.
    """
    dated = "" if clock == CLOCKS[0] else f".on({clock!r})"
    return _reading(notebook, f"{dated}{'' if verdict is None else f'.slice(verdict={verdict!r})'}")


def _reading(notebook: Notebook, what: str) -> Notebook:
    """A notebook that reads another source than the whole scope."""
    read = f"{_READ}{what}"
    cells = (
        replace(cell, source=cell.source.replace(_READ, read)) if cell.kind == "code" else cell
        for cell in notebook.cells
    )
    return replace(notebook, cells=tuple(cells))


def as_ipynb(notebook: Notebook) -> str:
    """A notebook as Jupyter's JSON."""
    document = {
        "cells": [_ipynb(number, cell) for number, cell in enumerate(notebook.cells)],
        "metadata": {"kernelspec": _KERNEL, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return f"{json.dumps(document, indent=1)}\n"


def as_percent(notebook: Notebook) -> str:
    """A notebook as a Python file in the percent format, which runs as it is and which Jupytext opens as a notebook."""
    return "\n".join([_HEADER, *(f"{_percent(cell)}\n" for cell in notebook.cells)])


def _folder() -> Path:
    return resources.path("notebooks")


def _names() -> list[str]:
    return sorted(file.stem for file in _folder().glob("*.py"))


def _cell(markdown: bool, tags: str | None, body: str) -> Cell:
    if not markdown:
        return Cell("code", body, tuple(json.loads(tags or "[]")))
    return Cell("markdown", "\n".join(line.removeprefix("#").removeprefix(" ") for line in body.split("\n")))


def _with(given: Mapping[str, str], cell: Cell) -> Cell:
    """The cell with other expressions for some names; whatever else it says stays."""
    lines = cell.source.split("\n")
    for at, line in enumerate(lines):
        name = line.partition(" = ")[0]
        if name in given:
            lines[at] = f"{name} = {given[name]}"
    return replace(cell, source="\n".join(lines))


def _ipynb(number: int, cell: Cell) -> dict[str, object]:
    of_code: Mapping[str, object] = {"execution_count": None, "outputs": []} if cell.kind == "code" else {}
    return {
        "cell_type": cell.kind,
        "id": f"cell-{number:02}",
        "metadata": {"tags": list(cell.tags)} if cell.tags else {},
        **of_code,
        "source": cell.source.splitlines(keepends=True),
    }


def _percent(cell: Cell) -> str:
    if cell.kind == "markdown":
        return "\n".join(["# %% [markdown]", *(f"# {line}".rstrip() for line in cell.source.split("\n"))])
    tags = f" tags={json.dumps(cell.tags)}" if cell.tags else ""
    return f"# %%{tags}\n{cell.source}"
