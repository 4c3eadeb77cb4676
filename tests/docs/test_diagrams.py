"""The diagrams that the pages show are those of their sources, and need nothing from elsewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.end_to_end.support import ROOT

FOLDER = ROOT / "docs" / "diagrams"
SOURCES = sorted(FOLDER.glob("*.mmd"))


def test_the_diagrams_are_rendered_from_their_sources(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "docs.tools.diagrams", str(tmp_path)], cwd=ROOT, check=True)
    drawn = {file.name: file.read_text() for file in tmp_path.iterdir()}
    assert drawn == {file.name: file.read_text() for file in FOLDER.glob("*.svg")}, "run 'make diagrams'"


def test_every_diagram_has_a_source_and_a_page() -> None:
    pages = "".join(page.read_text() for page in [*FOLDER.parent.rglob("*.md"), FOLDER.parents[1] / "README.md"])
    for drawn in FOLDER.glob("*.svg"):
        assert drawn.with_suffix(".mmd").exists()
        assert f"diagrams/{drawn.name})" in pages


@pytest.mark.parametrize("name", [source.stem for source in SOURCES])
def test_a_diagram_needs_nothing_from_elsewhere(name: str) -> None:
    drawn = (FOLDER / f"{name}.svg").read_text()
    addresses = set(re.findall(r"https?://[^\"'\s)]+", drawn))
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert "<script" not in drawn
    assert "foreignObject" not in drawn
