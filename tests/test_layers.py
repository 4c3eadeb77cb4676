"""The house's one-way imports: gate <- workbench <- api, and what each layer may know of the world."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.sources import imports

ROOT = Path(__file__).parents[1]
LAYERS = ("gate", "workbench", "api")

FLOORS = (
    ("errors", "labels", "ids", "origins"),
    ("clock", "encoding"),
    ("proof", "rulebooks", "policy"),
    ("records", "adapters", "drafting"),
    ("verify", "ledger"),
    ("contract",),
    ("migration", "services"),
    ("decisions", "client"),
    ("instance",),
)
"""The rooms of gate/, from the ground up: a room knows those on lower floors, and nothing of its neighbours."""

PURE = (
    "errors",
    "labels",
    "ids",
    "origins",
    "encoding",
    "rulebooks",
    "proof",
    "records",
    "verify",
    "policy",
    "contract",
    "migration",
    "drafting",
)
"""The rooms that take values and return values."""

SHIPPED = ROOT / "gate" / "encoding" / "resources.py"
"""Reads the files that travel with the product, which are constants like any other."""

FOLDER = ROOT / "gate" / "migration" / "folder.py"
"""Reads what a manifest names, for the rest of its room, which is pure."""

ADAPTERS_OF_THE_RELEASE = {"gate.adapters.manifest", "gate.adapters.registry"}
"""What the room of migrations may know of adapters: which ones there are, and nothing that runs them."""

PURE_SENTENCES = ("replay.py", "counterfactuals.py")
"""In gate/decisions, beside sentences that work on the ledger: the comparison and the simulation alone."""

IMPURE = {
    "os",
    "sys",
    "time",
    "random",
    "secrets",
    "socket",
    "subprocess",
    "pathlib",
    "sqlalchemy",
    "alembic",
    "flask",
    "granian",
    "httpx",
    "msgspec",
}

FULL = 13
"""How many modules a folder holds at most. Flat lists of peers, one a noun or a command, may be longer."""

PEERS = ("api/routes", "api/cli", "bench/parts")

# What the extra `server` installs.
SERVER_LIBRARIES = {"flask", "sqlalchemy", "alembic", "granian", "msgspec", "jsonschema_rs", "cachetools"}

# What reports are computed with: the extra `workbench`, and what of it is this project's own.
ANALYTICS_LIBRARIES = {"polars", "pyarrow", "altair", "workbench"}


def modules(layer: str) -> list[Path]:
    return sorted((ROOT / layer).rglob("*.py"))


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_imports_only_itself_and_those_below(layer: str) -> None:
    above = set(LAYERS[LAYERS.index(layer) + 1 :])
    wrong = [
        f"{file.relative_to(ROOT)} imports {name}"
        for file in modules(layer)
        for name in imports(file)
        if name.split(".")[0] in above | {"tests", "bench"}
    ]
    assert wrong == []


def test_the_domain_knows_no_web_frames_or_panels() -> None:
    foreign = {"flask", "werkzeug", "polars", "pyarrow", "panel", "granian", "typer", "rich"}
    wrong = [
        f"{file.relative_to(ROOT)} imports {name}"
        for file in modules("gate")
        for name in imports(file)
        if name.split(".")[0] in foreign
    ]
    assert wrong == []


def room_of(file: Path) -> str:
    """The package of gate/ that a file is in, or the module that it is."""
    return file.relative_to(ROOT / "gate").parts[0].removesuffix(".py")


def files_of(room: str) -> list[Path]:
    return [file for file in modules("gate") if room_of(file) == room]


def rooms_known(file: Path) -> set[str]:
    """The other rooms of gate/ that a file imports."""
    names = {name.split(".")[1] for name in imports(file) if name.startswith("gate.")}
    return names & {room for floor in FLOORS for room in floor} - {room_of(file)}


def test_every_room_has_its_floor() -> None:
    assert {room_of(file) for file in modules("gate")} == {room for floor in FLOORS for room in floor} | {"__init__"}


@pytest.mark.parametrize("height", range(len(FLOORS)))
def test_a_room_stands_above_everything_that_it_imports(height: int) -> None:
    below = {room for floor in FLOORS[:height] for room in floor}
    wrong = {
        f"{file.relative_to(ROOT)} imports {', '.join(sorted(rooms_known(file) - below))}"
        for room in FLOORS[height]
        for file in files_of(room)
        if rooms_known(file) - below
    }
    assert wrong == set()


@pytest.mark.parametrize("room", PURE)
def test_the_pure_core_reaches_for_nothing(room: str) -> None:
    files = [file for file in files_of(room) if file not in (SHIPPED, FOLDER)]
    assert files
    for file in files:
        assert {name.split(".")[0] for name in imports(file)} & IMPURE == set(), file
        assert rooms_known(file) <= {*PURE, *({"adapters"} if room == "migration" else ())}, file


def test_migrations_know_which_adapters_there_are_and_run_none() -> None:
    known = {name for file in files_of("migration") for name in imports(file) if name.startswith("gate.adapters")}
    assert {name for name in known if not name.startswith(tuple(ADAPTERS_OF_THE_RELEASE))} == set()


def test_what_the_gate_does_with_decisions_reaches_for_nothing_but_the_ledger() -> None:
    for file in files_of("decisions"):
        assert {name.split(".")[0] for name in imports(file)} & IMPURE == set(), file
        assert file.name not in PURE_SENTENCES or rooms_known(file) <= set(PURE), file


UNLISTED = ("gate", "gate/ledger/schema_versions", "api/cli", "bench", "bench/parts", "bench/structure")
"""Folders whose docstrings name their rooms or their rule instead of every module."""


def test_no_folder_is_crowded_and_each_says_what_lives_there() -> None:
    for folder in sorted({file.parent for layer in (*LAYERS, "bench") for file in modules(layer)}):
        name = folder.relative_to(ROOT).as_posix()
        if name in ("gate/adapters/builtin", "gate/ledger/schema_versions/versions"):
            continue
        held = [file for file in folder.glob("*.py") if file.name != "__init__.py"]
        assert name in PEERS or len(held) <= FULL, name
        said = ast.get_docstring(ast.parse((folder / "__init__.py").read_text()))
        assert said, name
        rooms = [inner.name for inner in folder.iterdir() if (inner / "__init__.py").is_file()]
        named = [*(file.stem for file in held if file.stem != "__main__"), *rooms]
        silent = [each for each in named if not re.search(rf"\b{each}\b", said)]
        assert name in UNLISTED or silent == [], f"the docstring of {name} does not name {', '.join(silent)}"


DASHBOARD = ("store", "views", "pages", "app")
"""The rooms of workbench/dashboard: each knows itself and those before it."""

OF_THE_BROWSER = {"panel", "bokeh", "tornado", "param"}


@pytest.mark.parametrize("room", DASHBOARD)
def test_a_room_of_the_dashboard_knows_only_those_before_it(room: str) -> None:
    after = DASHBOARD[DASHBOARD.index(room) + 1 :]
    wrong = [
        f"{file.relative_to(ROOT)} imports {name}"
        for file in (ROOT / "workbench" / "dashboard" / room).rglob("*.py")
        for name in imports(file)
        if name.startswith(tuple(f"workbench.dashboard.{other}" for other in after))
        or (room in ("store", "views") and name.split(".")[0] in OF_THE_BROWSER)
    ]
    assert wrong == []


def test_nobody_knows_the_dashboard_but_the_command_that_starts_it() -> None:
    knowing = {
        file.relative_to(ROOT).as_posix()
        for layer in LAYERS
        for file in modules(layer)
        if not file.is_relative_to(ROOT / "workbench" / "dashboard")
        and any(name.startswith("workbench.dashboard") for name in imports(file))
    }
    assert knowing == {"api/cli/workbench.py"}


def test_the_dashboard_counts_nothing_itself() -> None:
    """Every share, rate and interval comes from an engine. Only units are converted, where numbers are written."""
    for file in (ROOT / "workbench" / "dashboard").rglob("*.py"):
        divided = [ast.unparse(node) for node in ast.walk(ast.parse(file.read_text())) if _divides(node)]
        assert divided == [] or file.name in ("html.py", "pages.py"), (file, divided)
        assert not {name.split(".")[0] for name in imports(file)} & {"math", "statistics", "numpy", "scipy"}, file


def _divides(node: ast.AST) -> bool:
    """Whether a node is a division of numbers; paths are joined by the same operator, beside a text."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Div | ast.Mod | ast.Pow):
        return False
    return not any(isinstance(side, ast.Constant) and isinstance(side.value, str) for side in (node.left, node.right))


def test_only_the_error_table_turns_domain_errors_into_http() -> None:
    # It asks an HTTP server, and says what became of that in the domain's own errors.
    asks = Path("gate/services/advisory/upstream.py")
    for file in modules("gate"):
        assert file.match(str(asks)) or "http" not in {name.split(".")[0] for name in imports(file)}, file


def test_nothing_evaluates_code_or_unpickles() -> None:
    for layer in LAYERS:
        for file in modules(layer):
            tree = ast.parse(file.read_text())
            calls = {
                node.func.id
                for node in ast.walk(tree)
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
            }
            # What runs adapters executes their sources, which are registered in the code and known by their hashes.
            executes = {"exec", "__import__"} if file.name == "zygote.py" else set()
            assert not calls & {"eval", "exec", "__import__"} - executes, file
            assert not {name.split(".")[0] for name in imports(file)} & {"pickle", "marshal", "shelve", "dill"}, file


@pytest.mark.parametrize(
    ("modules", "foreign"),
    [
        ("api.cli.verify, api.cli.verify_packet, api.cli.conformance", SERVER_LIBRARIES),
        ("gate.client, api.cli.client", SERVER_LIBRARIES),
        # Who imports the client waits for nothing that is needed only to send, to verify, to guard or at a terminal.
        ("gate.client", {"httpx", "httpcore", "asyncio", "nacl", "sqlite3", "typer", "rich"}),
    ],
    ids=["verifier", "client", "client alone"],
)
def test_the_verifier_needs_no_server(modules: str, foreign: set[str]) -> None:
    """`gate verify`, `verify-packet`, `conformance` and `client` run on the base install, without a server's libraries,
    and so does the client.
    """
    code = f"import sys; import {modules}; print(sorted({foreign!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"


def test_workers_never_load_what_reports_are_computed_with() -> None:
    """The service decides where the extra `workbench` is not installed, and each of its workers does without the memory
    and the threads that its libraries take; the analytics process alone has them.
    """
    code = (
        "import sys; import api.app, api.http.turns, api.analytics.client, api.routes.reports, api.cli.serve; "
        f"print(sorted({ANALYTICS_LIBRARIES!r} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"
    asked = [
        file for file in modules("api") if file.parts[-2:] != ("analytics", "process.py") and "cli" not in file.parts
    ]
    assert [file for file in asked if {name.split(".")[0] for name in imports(file)} & ANALYTICS_LIBRARIES] == []


def test_altair_is_loaded_by_plotting_alone() -> None:
    """It takes longer to load than all else, and every process that exports, serves or computes would wait for it."""
    drawing = (ROOT / "workbench" / "charts", ROOT / "workbench" / "dashboard")
    loading = [file for file in modules("workbench") if not any(file.is_relative_to(of) for of in drawing)]
    for file in loading:
        at_once = {
            name
            for node in ast.parse(file.read_text()).body
            if isinstance(node, ast.Import | ast.ImportFrom)
            for name in (getattr(node, "module", None), *(alias.name for alias in node.names))
        }
        assert not [name for name in at_once if name and re.search(r"\b(altair|charts)\b", name)], file


def test_what_draws_charts_as_svg_is_loaded_by_drawing_alone() -> None:
    """It starts a JavaScript engine."""
    for file in [of for layer in LAYERS for of in modules(layer)]:
        body = ast.parse(file.read_text()).body
        at_once = {alias.name for node in body if isinstance(node, ast.Import) for alias in node.names}
        assert "vl_convert" not in at_once, file
