"""The private parts of Panel and Bokeh that the server leans on: there, and as when their versions were pinned.

Where one of these fails after an upgrade, read `workbench/dashboard/app/libraries.py` against the new sources.
"""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def loaded() -> None:
    """Panel is loaded as the server loads it: its style sheets are this server's."""
    import workbench.dashboard.app.libraries  # noqa: F401


def test_the_versions_are_those_that_were_read() -> None:
    from workbench.dashboard.app.libraries import PINNED

    assert {name: version(name) for name in PINNED} == PINNED
    project = (Path(__file__).parents[4] / "pyproject.toml").read_text()
    for name, pinned in PINNED.items():
        assert f'"{name}=={pinned}"' in project


def test_an_application_has_a_page_and_a_websocket_and_nothing_else() -> None:
    from bokeh.server import tornado
    from bokeh.server.urls import per_app_patterns

    from workbench.dashboard.app.libraries import keep_only

    keep_only((r"/?", r"/ws"))
    assert sorted(route for route, *_ in per_app_patterns) == [r"/?", r"/ws"]
    # The server asks this very list.
    assert vars(tornado)["per_app_patterns"] is per_app_patterns


def test_the_document_that_is_worked_on_is_forgotten_after_an_error() -> None:
    from bokeh.document import Document
    from bokeh.document.callbacks import invoke_with_curdoc
    from bokeh.io import doc

    from workbench.dashboard.app.libraries import mend_curdoc

    before = list(doc._PATCHED_CURDOCS)
    mend_curdoc()

    def fails() -> None:
        assert len(doc._PATCHED_CURDOCS) == len(before) + 1
        raise ValueError("as a message that no browser sends")

    with pytest.raises(ValueError, match="no browser"):
        invoke_with_curdoc(Document(), fails)
    noted = list(doc._PATCHED_CURDOCS)
    assert noted == before


def test_each_private_thing_is_there() -> None:
    from bokeh.io import doc
    from bokeh.server.tornado import BokehTornado
    from panel.io.resources import CDN_ROOT
    from panel.io.server import Server
    from panel.io.state import state
    from panel.viewable import Viewable

    from workbench.dashboard import PANEL_FILES

    assert CDN_ROOT.startswith(f"{PANEL_FILES}/")
    assert isinstance(state._views, dict)
    assert list(inspect.signature(Viewable._cleanup).parameters) == ["self", "root"]
    assert callable(BokehTornado.add_transform)
    assert callable(Server.start)
    assert isinstance(doc._PATCHED_CURDOCS, list)


def test_the_scripts_of_a_page_are_there() -> None:
    from bokeh.settings import settings

    from workbench.dashboard.app.libraries import panel_files, scripts

    path, files = panel_files()
    static = Path(str(settings.bokehjs_path()))
    for script in scripts():
        name = script.partition("?")[0]
        file = (
            files / name.removeprefix(f"{path}/") if name.startswith(path) else static / name.removeprefix("/static/")
        )
        assert file.is_file(), script


def test_panel_that_was_loaded_first_is_an_error_that_says_so() -> None:
    code = "import panel, workbench.dashboard.app.libraries"
    # Which this process set when it loaded the dashboard.
    environment = {name: value for name, value in os.environ.items() if name != "PANEL_CDN_ROOT"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.returncode == 1
    assert "Panel was imported before workbench.dashboard" in done.stderr
