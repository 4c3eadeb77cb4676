"""Renders docs/diagrams/*.mmd (Mermaid) to SVG: `python -m docs.tools.diagrams`, or `make diagrams`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import mmdr

FOLDER: Final = Path(__file__).parents[1] / "diagrams"


def rendered(source: str) -> str:
    """The SVG of a diagram, without anything that a viewer would have to fetch."""
    svg: str = mmdr.render(source, backend="merman").svg()
    return svg.rstrip("\n") + "\n"


def main() -> None:
    """Renders every diagram."""
    for source in sorted(FOLDER.glob("*.mmd")):
        source.with_suffix(".svg").write_text(rendered(source.read_text()))


if __name__ == "__main__":
    main()
