"""Notebooks written for a scope of one's own: the cells of their sources, with names that are strings, whatever is in
them.
"""

from __future__ import annotations

import ast
import os
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gate.errors import OperatorError
from tests.support.tiers import examples
from tests.support.torture import size
from workbench.notebooks import Notebook, as_ipynb, as_percent, load, notebooks, written_for

LAKE: Final = Path("/srv/gate/lake")
EVERY: Final = [notebook.name for notebook in notebooks()]
HOSTILE: Final = (
    "acme\"; import os; os.abort()  # '",
    "acme\n# %%\nraise SystemExit",
    "acme\r# %% [markdown]",
    "acme\u2028# %%\u0085# ---",
    "\\\\'''\\N{DASH}{scope!r}{0}%s",
    "```\n<script>alert(1)</script> `**_$x$",
    "\u202ebackwards\u0000",
    "half a pair \udcff",
    " = ",
    "",
)

MORE = {"anomaly_investigation": "\nVERSION = None\nANOMALY = None", "migration_dry_run": "\nCANDIDATE = None"}


def told(cells: Any) -> list[tuple[str, str, list[str]]]:
    """What cells that Jupytext or Jupyter read are."""
    return [(cell.cell_type, cell.source, cell.metadata.get("tags", [])) for cell in cells]


def of(notebook: Notebook) -> list[tuple[str, str, list[str]]]:
    return [(cell.kind, cell.source, list(cell.tags)) for cell in notebook.cells]


def source_of(name: str) -> Any:
    import jupytext

    return jupytext.read(Path(__file__).parents[2] / "notebooks" / f"{name}.py")


def read_percent(made: Notebook) -> Any:
    """A notebook as Jupytext reads it."""
    import jupytext

    return jupytext.reads(as_percent(made), fmt="py:percent")


def read_ipynb(made: Notebook) -> Any:
    """A notebook as Jupyter reads it."""
    import nbformat

    return nbformat.reads(as_ipynb(made), as_version=4)  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("name", EVERY)
def test_a_source_is_read_as_jupytext_reads_it(name: str) -> None:
    assert of(load(name)) == told(source_of(name).cells)


@pytest.mark.parametrize("name", EVERY)
def test_what_is_written_is_the_source_with_other_parameters_after_what_it_is_for(name: str) -> None:
    made = written_for(load(name), "acme", "refund_policy", LAKE)
    import nbformat

    read = read_ipynb(made)
    nbformat.validate(read)
    source = source_of(name)
    (about, *rest), cells = told(read.cells), told(source.cells)
    assert about[0] == "markdown"
    assert {"    scope   'acme'", "    policy  'refund_policy'", "    lake    '/srv/gate/lake'"} <= {
        *about[1].splitlines()
    }
    more = MORE.get(name, "")
    assert [new for new, old in zip(rest, cells, strict=True) if new != old] == [
        ("code", f"SCOPE = 'acme'\nPOLICY = 'refund_policy'\nLAKE = '/srv/gate/lake'{more}", ["parameters"])
    ]
    assert read.metadata.kernelspec == source.metadata.kernelspec
    assert all(cell.outputs == [] and cell.execution_count is None for cell in read.cells if cell.cell_type == "code")


@pytest.mark.parametrize("name", EVERY)
def test_the_environment_names_a_lake_that_the_notebook_does_not(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = written_for(load(name), "acme", "refund_policy", Path("lake"))
    assert "**Set the environment variable `GATE_LAKE`**" in made.cells[0].source
    assert "GATE_LAKE" not in written_for(load(name), "acme", "refund_policy", LAKE).cells[0].source
    (at,) = (at for at, cell in enumerate(made.cells) if "parameters" in cell.tags)

    def lake() -> object:
        values: dict[str, object] = {"os": os}
        exec(made.cells[at].source, values)  # noqa: S102 - the notebook's own
        return values["LAKE"]

    # What it runs before has `os` there.
    assert any("import os\n" in cell.source for cell in made.cells[:at])
    monkeypatch.delenv("GATE_LAKE", raising=False)
    assert lake() == "lake"
    monkeypatch.setenv("GATE_LAKE", "/mnt/lake")
    assert lake() == "/mnt/lake"


def test_the_anomaly_notebook_is_written_for_an_anomaly_and_a_version() -> None:
    source = load("anomaly_investigation")
    for version, lines in (("2026-07-20", ["version '2026-07-20'", "anomaly 'ano_1'"]), (None, ["anomaly 'ano_1'"])):
        made = written_for(source, "acme", "refund_policy", LAKE, {"VERSION": version, "ANOMALY": "ano_1"})
        about = made.cells[0].source.splitlines()
        assert [line.strip() for line in about[5 : 5 + len(lines)]] == lines
        assert about[5 + len(lines)] == ""
        (cell,) = (cell for cell in made.cells if "parameters" in cell.tags)
        assert cell.source.splitlines()[3:] == [f"VERSION = {version!r}", "ANOMALY = 'ano_1'"]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_anomaly_is_a_string_and_nothing_else(name: str) -> None:
    made = written_for(load("anomaly_investigation"), "acme", "refund_policy", LAKE, {"ANOMALY": name})
    (cell,) = (cell for cell in made.cells if "parameters" in cell.tags)
    assert ast.literal_eval(cell.source.splitlines()[4].removeprefix("ANOMALY = ")) == name
    assert made.cells[0].source.splitlines()[5] == f"    anomaly {name!r}"
    assert told(read_percent(made).cells) == of(made)


@pytest.mark.parametrize("name", EVERY)
def test_both_formats_are_the_same_notebook(name: str) -> None:
    made = written_for(load(name), "acme", "refund_policy", LAKE)
    read = read_percent(made)
    assert told(read.cells) == of(made)
    # A copy is paired with no other file.
    assert "formats" not in read.metadata.jupytext
    assert read.metadata.kernelspec == source_of(name).metadata.kernelspec
    compile(as_percent(made), name, "exec")


def require_strings(scope: str, policy: str, lake: str) -> None:
    """Whatever the names are, the cells are those of any other notebook, and the names come out as they went in."""
    plain = written_for(load("effectiveness"), "acme", "refund_policy", LAKE)
    made = written_for(load("effectiveness"), scope, policy, Path(lake))
    (cell,) = (cell for cell in made.cells if "parameters" in cell.tags)
    assert {node.targets[0].id: ast.literal_eval(node.value) for node in ast.parse(cell.source).body} == {  # type: ignore[attr-defined]
        "SCOPE": scope,
        "POLICY": policy,
        "LAKE": str(Path(lake)),
    }
    about = made.cells[0].source.splitlines()
    assert len(about) == len(plain.cells[0].source.splitlines())
    assert about[2:5] == [f"    {label}{value!r}" for label, value in _labelled(scope, policy, str(Path(lake)))]
    assert made.cells[1:].index(cell) == [cell.tags for cell in plain.cells[1:]].index(("parameters",))
    assert told(read_percent(made).cells) == of(made)
    assert told(read_ipynb(made).cells) == of(made)
    assert as_ipynb(made).isascii()
    as_percent(made).encode()


def _labelled(scope: str, policy: str, lake: str) -> tuple[tuple[str, str], ...]:
    return ("scope   ", scope), ("policy  ", policy), ("lake    ", lake)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_a_string_and_nothing_else(name: str) -> None:
    require_strings(name, name, f"/srv/{name}/lake")


@settings(max_examples=examples(size(15, 30)))
@given(st.text(max_size=20), st.text(max_size=20))
def test_every_name_is_a_string_and_nothing_else(scope: str, policy: str) -> None:
    require_strings(scope, policy, "/srv/lake")


def test_a_notebook_that_is_not_there_is_refused_with_those_that_are() -> None:
    for name in ("nonsense", "", "../notebooks/effectiveness", "effectiveness.py"):
        with pytest.raises(OperatorError) as refused:
            load(name)
        assert refused.value.code == "NOTEBOOK_UNKNOWN"
        assert ", ".join(EVERY) in refused.value.message


def test_every_notebook_has_a_title_of_its_own() -> None:
    titles = {notebook.name: notebook.title for notebook in notebooks()}
    assert titles["effectiveness"] == "How well do the policies do?"
    assert len(set(titles.values())) == len(EVERY) >= 3
