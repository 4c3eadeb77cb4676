"""The figures of how the house is built, on made-up trees; those of the two calls, on the house."""

from __future__ import annotations

import sys
from pathlib import Path, PurePosixPath

import pytest

from bench.structure import counts, imports
from bench.structure.__main__ import main
from bench.structure.counts import anys, function_lengths, modules_per_folder, per_thousand
from bench.structure.imports import circles, floors, modules_graph, room, rooms_graph
from bench.structure.passes import passed, watched
from bench.structure.tree import Module, read

HOUSE = {
    "gate/__init__.py": '"""The face."""\n__version__ = "1"\n',
    "gate/ground.py": "import os\n\n\ndef one() -> int:\n    return 1\n",
    "gate/wing/__init__.py": "from gate.wing.inner import thing\n",
    "gate/wing/inner.py": "from gate import __version__\nfrom gate.ground import one\n\nthing = one\n",
    "gate/wing/outer.py": "from gate.wing import thing\n",
    "gate/roof.py": "def late() -> None:\n    from gate.wing import thing\n\n    thing()\n",
    "api/__init__.py": "",
    "api/app.py": "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from gate import roof\n",
    "api/cli.py": "from . import app\nfrom .app import nothing\n",
}


def tree(root: Path, files: dict[str, str]) -> list[Module]:
    for name, source in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(source, "utf-8")
    return read(root)


def module(source: str) -> Module:
    return Module(PurePosixPath("gate/made_up.py"), source)


def test_an_arrow_leads_to_the_module_that_has_what_is_imported(tmp_path: Path) -> None:
    assert modules_graph(tree(tmp_path, HOUSE)) == {
        "gate.__init__": set(),
        "gate.ground": set(),
        "gate.wing.__init__": {"gate.wing.inner"},
        "gate.wing.inner": {"gate.__init__", "gate.ground"},
        # Not the package: it only hands the name on.
        "gate.wing.outer": {"gate.wing.inner"},
        "gate.roof": {"gate.wing.inner"},
        "api.__init__": set(),
        "api.app": {"gate.roof"},
        "api.cli": {"api.app"},
    }


def test_a_room_stands_above_all_that_it_imports(tmp_path: Path) -> None:
    rooms = rooms_graph(modules_graph(tree(tmp_path, HOUSE)))
    assert rooms == {
        "gate/ground": set(),
        "gate/wing": {"gate/ground"},
        "gate/roof": {"gate/wing"},
        "api": {"gate/roof"},
    }
    assert floors(rooms) == 4
    assert circles(rooms) == []


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("gate.__init__", None),
        ("gate.ids", "gate/ids"),
        ("gate.client.__init__", "gate/client"),
        ("gate.client.store.sqlite", "gate/client"),
        ("workbench.lake.entries", "workbench"),
        ("api.__init__", "api"),
    ],
)
def test_each_folder_and_module_of_the_domain_is_a_room(name: str, expected: str | None) -> None:
    assert room(name) == expected


def test_a_circle_is_found_whichever_import_closes_it(tmp_path: Path) -> None:
    modules = tree(
        tmp_path,
        {
            "gate/a.py": "from gate.b import x\n",
            "gate/b.py": "import gate.c\n",
            "gate/c.py": "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from gate.a import x\n",
            "gate/d.py": "from gate import a, e\n",
            "gate/e.py": "def late() -> None:\n    from gate import d\n",
            "gate/f.py": "import gate.f\n",
        },
    )
    assert circles(modules_graph(modules)) == [["gate.a", "gate.b", "gate.c"], ["gate.d", "gate.e"]]
    # The rooms of a circle stand on one floor.
    assert floors(rooms_graph(modules_graph(modules))) == 2


def test_circles_that_share_a_module_are_one() -> None:
    graph = {"a": {"b", "d"}, "b": {"a"}, "c": {"a", "d"}, "d": {"a"}}
    assert circles(graph) == [["a", "b", "d"]]
    assert floors(graph) == 2


def test_any_is_counted_in_code_alone() -> None:
    source = module(
        '"""Any of these is Any."""\n'
        "import typing\n"
        "from typing import Any, Final\n"
        "\n"
        "# Any comment.\n"
        "x: Any = 1  # Any\n"
        '"""Any, of an attribute."""\n'
        "\n"
        "\n"
        "def f(x: dict[str, Any]) -> typing.Any:\n"
        '    """Any."""\n'
        "    return x.Any\n"
    )
    assert anys(source) == 3
    assert source.code_lines == 5
    assert source.comment_lines == 2
    assert source.lines == 12
    assert per_thousand(anys(source), [source]) == 600


def test_the_lines_of_a_text_are_code_unless_it_is_a_docstring() -> None:
    assert module('x = """\n\na\n"""\n').code_lines == 4
    assert module('"""\n\na\n"""\n').code_lines == 0


def test_functions_are_as_long_as_they_are_to_read() -> None:
    method = '    def f(self) -> None:\n        """Says."""\n        pass\n'
    assert function_lengths([module(f"class A:\n{method}\n\nasync def g() -> None: ...\n")]) == [1, 3]


def test_modules_are_counted_where_they_lie(tmp_path: Path) -> None:
    assert modules_per_folder(tree(tmp_path, HOUSE)) == {"gate": 2, "gate/wing": 2, "api": 2}


def test_a_generated_module_says_so_in_its_first_line() -> None:
    assert module('"""Generated from the interface; do not edit."""\n').is_generated
    assert not module('"""By hand."""\n# generated\n').is_generated


def test_another_tree_is_counted_saved_and_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tree(tmp_path, HOUSE)
    figures = tmp_path / "figures.json"
    monkeypatch.setattr(sys, "argv", ["structure", str(tmp_path), "--save", str(figures)])
    main()
    monkeypatch.setattr(sys, "argv", ["structure", str(tmp_path), "--against", str(figures)])
    main()
    shown = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["floors", "4"] in shown
    assert ["floors", "4", "4"] in shown


def test_a_file_is_passed_where_its_functions_are_entered() -> None:
    with watched() as files:
        room("api")
    function_lengths([])
    assert imports.__file__ in files
    assert counts.__file__ not in files


def test_what_other_work_left_behind_is_not_passed() -> None:
    left = Left()
    left.itself = left
    with watched() as files:
        del left
        # As many objects as start a collection.
        assert list(zip(range(100_000), strict=True))
    assert __file__ not in files


class Left:
    """An object that is gone only once garbage is collected, and then runs code."""

    itself: Left

    def __del__(self) -> None:
        """Runs a function of this file."""


@pytest.mark.heavy
def test_a_decide_passes_the_service_and_a_guard_the_client() -> None:
    files = passed()
    assert {"api/http/application.py", "gate/decisions/decide.py"} <= set(files["decide"])
    assert not any(file.startswith(("gate/client/", "workbench/")) for file in files["decide"])
    assert "gate/verify/record.py" in files["guard"]
    assert not any(file.startswith(("gate/decisions/", "gate/ledger/")) for file in files["guard"])
