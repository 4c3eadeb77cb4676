"""Renders docs/diagrams/*.mmd (Mermaid) to SVG: `python -m docs.tools.diagrams`, or `make diagrams`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

import mmdr

FOLDER: Final = Path(__file__).parents[1] / "diagrams"


def rendered(source: str) -> str:
    """The SVG of a diagram, without anything that a viewer would have to fetch."""
    svg: str = mmdr.render(source, backend="merman").svg()
    return svg.rstrip("\n") + "\n"


def main(folder: Path = FOLDER) -> None:
    """Renders every diagram, into a folder."""
    for source in sorted(FOLDER.glob("*.mmd")):
        (folder / f"{source.stem}.svg").write_text(rendered(source.read_text()))
    # The renderer prints what it leaked where a process ends in the ordinary way.
    os._exit(0)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
