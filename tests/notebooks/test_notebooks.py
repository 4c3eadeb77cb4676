"""The notebooks run on any demo ledger, show every chart as a picture, and lie beside their sources as they are."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from base64 import b64decode
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import jupytext
import nbformat
import pytest

import workbench
from tests.notebooks.executed import ROOT, SOURCES, Kernel, executed_in, outputs, pack
from tests.support.command_line import run_gate
from workbench.columns import TABLES

NAMES: Final = [
    "anomaly_investigation",
    "benchmarks",
    "counterfactuals",
    "effectiveness",
    "migration_dry_run",
    "reading_the_lake",
]
MORE: Final = {"anomaly_investigation": ["VERSION", "ANOMALY"], "migration_dry_run": ["CANDIDATE"]}
OTHERS: Final = {
    "counterfactuals": ("lumen-retail", "refund_policy"),
    "effectiveness": ("orbit-software", "agent_action_policy"),
}
MOST_BYTES: Final = 1_500_000
PICTURE: Final = "image/png"
# Where the machines of those who execute notebooks keep things.
PLACES: Final = (str(ROOT), "/tmp", "/root", "/home", "/Users")  # noqa: S108


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The lake of a small demo ledger."""
    home = tmp_path_factory.mktemp("demo") / "var-demo"
    for arguments in (
        ("demo", "--decisions", "200", "--until", "2026-11-01", "--seed", "7"),
        ("lake", "export"),
    ):
        done = run_gate(*arguments, "--home", str(home))
        assert done.returncode == 0, done.stderr
    return home / "lake"


def told(notebook: Any) -> str:
    """Everything that a notebook shows, but its pictures: their letters mean nothing."""
    texts = [cell.source for cell in notebook.cells]
    texts += [str(content) for data in outputs(notebook.cells) for kind, content in data.items() if kind != PICTURE]
    return "\n".join([*texts, json.dumps(notebook.metadata)])


def require_drawn(notebook: Any) -> None:
    """A picture for each chart, and no warning."""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            kinds = {kind for data in outputs([cell]) for kind in data}
            assert "stderr" not in kinds, cell.outputs
            drawn = "alt.Chart(" in cell.source or ".plot(" in cell.source
            assert drawn == (PICTURE in kinds), cell.source


def require_clean(notebook: Any) -> None:
    """A picture for each chart, no warning, and nothing of the machine or the moment."""
    require_drawn(notebook)
    assert [cell for cell in notebook.cells if "execution" in cell.metadata] == []
    assert [place for place in PLACES if place in told(notebook)] == []
    assert re.findall(r"\bat 0x[0-9a-f]+", told(notebook)) == []


def require_packed(notebook: Any) -> None:
    """Packs its pictures, each of which becomes smaller, and stays a picture."""
    drawn = [data[PICTURE] for data in outputs(notebook.cells) if PICTURE in data]
    pack(notebook)
    packed = [data[PICTURE] for data in outputs(notebook.cells) if PICTURE in data]
    assert packed
    for before, after in zip(drawn, packed, strict=True):
        assert len(after) < len(before)
        assert b64decode(after).startswith(b"\x89PNG")


def test_there_are_sources_of_these_notebooks_and_nothing_else() -> None:
    assert [source.stem for source in SOURCES] == NAMES
    written = sorted(file.name for file in (ROOT / "notebooks").iterdir() if file.is_file())
    assert written == sorted(f"{name}{suffix}" for name in NAMES for suffix in (".py", ".ipynb"))


@pytest.mark.heavy
def test_the_notebooks_run_on_a_small_ledger_and_draw_their_charts(lake: Path, tmp_path: Path) -> None:
    """One after the other, for each process that has a part of them would make a ledger of its own."""
    with closing(Kernel(lake, ROOT / "notebooks")) as kernel:
        for name in NAMES:
            notebook = executed_in(kernel, ROOT / "notebooks" / f"{name}.py")
            if name == "benchmarks":
                # Those that are kept are packed; it has the fewest pictures.
                require_packed(notebook)
            require_clean(notebook)
        # These name their lake themselves, and lie anywhere.
        kernel.move(tmp_path / "no lake", tmp_path)
        require_drawn(executed_in(kernel, written_for_others(lake, tmp_path)))


def written_for_others(lake: Path, folder: Path) -> Path:
    """The cells of those notebooks that have most to choose, as `gate notebook` writes them; one kernel runs them."""
    cells: list[Any] = []
    for name, (scope, policy) in OTHERS.items():
        file = folder / f"{name}.ipynb"
        command = ("notebook", name, "--scope", scope, "--policy", policy, "--lake", str(lake), "--out", str(file))
        done = run_gate(*command)
        assert done.returncode == 0, done.stderr
        notebook: Any = nbformat.reads(file.read_text(), as_version=4)  # type: ignore[no-untyped-call]
        nbformat.validate(notebook)
        for cell in notebook.cells:
            cell.id = f"{name}-{cell.id}"
        cells += notebook.cells
    notebook.cells = cells
    every = folder / "every.ipynb"
    every.write_text(nbformat.writes(notebook))  # type: ignore[no-untyped-call]
    return every


def told_of(cell: Any) -> tuple[str, str, list[str]]:
    """What a cell is, and its tags; how many lines follow it in its source is all else that is known of it."""
    assert cell.metadata.keys() <= {"tags", "lines_to_next_cell"}
    return cell.cell_type, cell.source, cell.metadata.get("tags", [])


@pytest.mark.parametrize("name", NAMES)
def test_the_notebook_beside_a_source_holds_its_cells_with_outputs(name: str) -> None:
    file = ROOT / "notebooks" / f"{name}.ipynb"
    notebook: Any = nbformat.reads(file.read_text(), as_version=4)  # type: ignore[no-untyped-call]
    nbformat.validate(notebook)
    source = jupytext.read(file.with_suffix(".py"))
    assert list(map(told_of, notebook.cells)) == list(map(told_of, source.cells))
    assert notebook.metadata.kernelspec == source.metadata.kernelspec
    assert notebook.metadata.kernelspec.display_name
    counts = [cell.execution_count for cell in notebook.cells if cell.cell_type == "code"]
    assert counts == list(range(1, len(counts) + 1))
    require_clean(notebook)
    assert file.stat().st_size < MOST_BYTES


@pytest.mark.parametrize("name", NAMES)
def test_what_a_notebook_looks_at_is_said_in_one_cell_that_other_programs_know(name: str) -> None:
    source = jupytext.read(ROOT / "notebooks" / f"{name}.py")
    (cell,) = (cell for cell in source.cells if cell.metadata.get("tags") == ["parameters"])
    named = ["SCOPE", "POLICY", "LAKE", *MORE.get(name, ())]
    assert [line.partition(" = ")[0] for line in cell.source.splitlines()] == named
    assert cell in source.cells[:6]
    others = [cell.source for cell in source.cells if cell.metadata.get("tags") is None]
    assert not any(
        re.search(r"^(SCOPE|POLICY|LAKE|VERSION|ANOMALY|CANDIDATE)\b.* = |GATE_LAKE", other, re.MULTILINE)
        for other in others
    )


def test_what_a_notebook_shows_of_the_tables_is_what_they_are() -> None:
    shown = jupytext.read(ROOT / "notebooks" / "reading_the_lake.ipynb")
    (cell,) = (cell for cell in shown.cells if 'TABLES["cases"].items()' in cell.source)
    listed = re.findall(r"^│ (\w+) +┆ \w+ +┆ .+\. +│$", cell.outputs[0]["data"]["text/plain"], re.MULTILINE)
    assert listed == list(TABLES["cases"])


@pytest.mark.parametrize("name", NAMES)
def test_a_source_and_its_notebook_are_paired(name: str) -> None:
    metadata = jupytext.read(ROOT / "notebooks" / f"{name}.py").metadata
    assert metadata["jupytext"]["formats"] == "ipynb,py:percent"


def test_the_workbench_offers_what_notebooks_use_by_name() -> None:
    reports = {"activity", "anomalies", "benchmarks", "confidence", "counterfactuals", "effectiveness", "glance"}
    listing = {"Criteria", "decision_names", "find_decisions", "held_decisions"}
    others = {"migration_dry_run", "open_lake", "policy_alerts", "roll_up"}
    assert workbench.__all__ == sorted({*reports, *listing, *others})
    assert all(getattr(workbench, name).__name__ == name for name in workbench.__all__)
    with pytest.raises(AttributeError, match="no attribute 'moon'"):
        _ = workbench.moon


def test_who_imports_the_workbench_waits_for_no_charts() -> None:
    code = "import sys, workbench; print(sorted({'altair', 'polars'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"
