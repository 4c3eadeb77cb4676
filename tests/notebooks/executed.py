"""Executing the notebooks. As a program it writes each one's cells and outputs beside its source:

python -m tests.notebooks.executed var-demo/lake
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import jupytext
import nbformat
from nbclient import NotebookClient

ROOT: Final = Path(__file__).parents[2]
SOURCES: Final = sorted((ROOT / "notebooks").glob("*.py"))

_SECONDS: Final = 120


def executed(source: Path, lake: Path) -> Any:
    """A notebook with its outputs, without the times at which its cells ran.

    Args:
        source: The notebook as a Python file.
        lake: The lake that it reads.

    Raises:
        CellExecutionError: A cell failed.
    """
    notebook = jupytext.read(source)
    # What is random, of the machine or of the day would differ from one run to the next.
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number:02}"
    with tempfile.TemporaryDirectory(prefix="gate-notebook-") as own:
        # Neither the settings nor the history of whoever runs it.
        named = {name: own for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR")}
        with patch.dict(os.environ, {**named, "GATE_LAKE": str(lake.absolute()), "TZ": "UTC"}):
            client = NotebookClient(
                notebook,
                timeout=_SECONDS,
                kernel_name="python3",
                record_timing=False,
                resources={"metadata": {"path": str(source.parent)}},
            )
            client.execute()
    notebook.metadata["language_info"] = {"name": "python"}
    return notebook


def main(lake: Path) -> None:
    """Writes every notebook with its outputs."""
    for source in SOURCES:
        nbformat.write(executed(source, lake), source.with_suffix(".ipynb"))
        print(f"{source.relative_to(ROOT).with_suffix('.ipynb')} is written.")  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]))
