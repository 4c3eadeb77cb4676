"""The notebook that an anomaly's page offers: it runs as it is downloaded, and begins with that anomaly."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import nbformat
import pytest

from gate.errors import NotFound
from gate.instance.instance import Instance, open_instance
from gate.instance.settings import load_settings
from tests.notebooks.executed import Kernel, outputs
from tests.support.command_line import run_gate
from tests.workbench.dashboard.showing import NOW, visit
from workbench.dashboard.pages.visit import Visit
from workbench.dashboard.store.slices import Slice
from workbench.dashboard.store.store import Store
from workbench.lake.entries import Personal

SCOPE, POLICY = "lumen-retail", "refund_policy"

pytestmark = pytest.mark.heavy


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Instance]:
    """A small demo ledger and its lake."""
    home = tmp_path_factory.mktemp("demo") / "home"
    made = ("demo", "--decisions", "300", "--until", "2026-11-01", "--seed", "7")
    for arguments in (made, ("lake", "export")):
        done = run_gate(*arguments, "--home", str(home))
        assert done.returncode == 0, done.stderr
    with closing(open_instance(load_settings(home))) as instance:
        yield instance


@pytest.fixture(scope="module")
def store(demo: Instance) -> Store:
    return Store(demo, Personal(), lambda: NOW)


@pytest.fixture(scope="module")
def here(demo: Instance) -> Visit:
    return visit(demo.ledger.directory.scope(SCOPE), f"/anomaly?scope={SCOPE}&policy={POLICY}", "viewer")


def written(file: bytes) -> Any:
    """The notebook of a file."""
    notebook: Any = nbformat.reads(file.decode(), as_version=4)  # type: ignore[no-untyped-call]
    nbformat.validate(notebook)
    return notebook


def test_the_downloaded_notebook_runs_and_begins_with_its_anomaly(store: Store, here: Visit, tmp_path: Path) -> None:
    listed = store.reports(here.access).anomalies(POLICY).body["anomalies"]
    last = listed[-1]
    assert len(listed) > 1
    # It names its lake itself, and lies anywhere.
    with closing(Kernel(tmp_path / "no lake", tmp_path)) as kernel:
        notebook = written(store.notebook(here.access, POLICY, last["anomaly_id"]))
        kernel.execute(notebook)
    assert f"anomaly {last['anomaly_id']!r}" in notebook.cells[0].source
    told = [text for data in outputs(notebook.cells) for kind, text in data.items() if kind == "stdout"]
    assert f"anomaly: {last['summary']}\n" in told[0]
    assert all("stderr" not in data for data in outputs(notebook.cells))


def test_a_notebook_of_a_version_looks_at_that_version_alone(store: Store, here: Visit) -> None:
    reports = store.reports(here.access)
    version = next(
        each for each in reports.names().versions[POLICY] if reports.anomalies(POLICY, Slice(each)).body["anomalies"]
    )
    (first, *_) = reports.anomalies(POLICY, Slice(version)).body["anomalies"]
    notebook = written(store.notebook(here.access, POLICY, first["anomaly_id"], Slice(version)))
    (cell,) = (cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", []))
    assert cell.source.splitlines()[3:] == [f"VERSION = {version!r}", f"ANOMALY = {first['anomaly_id']!r}"]


def test_a_notebook_for_other_machines_does_not_tell_where_the_lake_is(
    demo: Instance, store: Store, here: Visit
) -> None:
    elsewhere = Store(demo, Personal(), lambda: NOW, tells_paths=False)
    (first, *_) = store.reports(here.access).anomalies(POLICY).body["anomalies"]
    for of, tells in ((store, True), (elsewhere, False)):
        file = of.notebook(here.access, POLICY, first["anomaly_id"]).decode()
        assert (str(demo.settings.home) in file, "GATE_LAKE" in file) == (tells, not tells)


@pytest.mark.parametrize(("policy", "anomaly"), [(POLICY, "ano_0"), (POLICY, ""), ("elsewhere", "ano_0"), ("", "")])
def test_there_is_no_notebook_of_what_no_report_lists(store: Store, here: Visit, policy: str, anomaly: str) -> None:
    with pytest.raises(NotFound) as refused:
        store.notebook(here.access, policy, anomaly)
    assert refused.value.code == "DASHBOARD_ANOMALY_UNKNOWN"


def test_a_notebook_of_filters_reads_the_decisions_that_they_choose(store: Store, here: Visit, tmp_path: Path) -> None:
    of = Slice(verdict="yes", clock="occurred")
    (first, *_) = store.reports(here.access).anomalies(POLICY, of).body["anomalies"]
    notebook = written(store.notebook(here.access, POLICY, first["anomaly_id"], of))
    reading = [cell.source for cell in notebook.cells if "snapshot = lake" in cell.source]
    assert "snapshot = lake.scope(SCOPE).on('occurred').slice(verdict='yes')\n" in reading[0]
    with closing(Kernel(tmp_path / "no lake", tmp_path)) as kernel:
        kernel.execute(notebook)
    told = [text for data in outputs(notebook.cells) for kind, text in data.items() if kind == "stdout"]
    assert f"anomaly: {first['summary']}\n" in told[0]
