"""The house's one-way imports: gate <- workbench <- api, and what each layer may know of the world."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LAYERS = ("gate", "workbench", "api")

# The pure part takes values and returns values.
PURE = (
    "facts",
    "strict_json",
    "canonical",
    "errors",
    "labels",
    "rulebook",
    "evaluate",
    "request",
    "record",
    "envelope",
    "attestation",
    "views",
    "signing",
    "chain",
    "verify",
    "shape",
    "contract",
    "conformance",
    "bundles",
    "patterns",
    "receipts",
    "packet",
    "replay",
    "counterfactuals",
    "confidence",
    "effectiveness",
    "anomalies",
    "policy_reports",
    "benchmarks",
)
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
    "pydantic_settings",
}

# What the extra `server` installs.
SERVER_LIBRARIES = {"flask", "sqlalchemy", "alembic", "granian", "pydantic", "jsonschema_rs", "cachetools"}

# What reports are computed with: the extra `workbench`, and what of it is this project's own.
ANALYTICS_LIBRARIES = {"polars", "pyarrow", "altair", "msgspec", "workbench"}


def imports(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


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


@pytest.mark.parametrize("name", PURE)
def test_the_pure_core_reaches_for_nothing(name: str) -> None:
    files = [ROOT / "gate" / f"{name}.py", *(ROOT / "gate" / name).glob("*.py")]
    found = {module for file in files if file.is_file() for module in imports(file)}
    assert found
    assert {module.split(".")[0] for module in found} & IMPURE == set()
    allowed = {f"gate.{pure}" for pure in (*PURE, "resources", "ids")}
    own = {".".join(module.split(".")[:2]) for module in found if module.startswith("gate.")}
    assert own <= allowed


def test_only_the_error_table_turns_domain_errors_into_http() -> None:
    for file in modules("gate"):
        assert "http" not in {name.split(".")[0] for name in imports(file)}, file


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
    asked = [file for file in modules("api") if file.name != "analytics_process.py" and "cli" not in file.parts]
    assert [file for file in asked if {name.split(".")[0] for name in imports(file)} & ANALYTICS_LIBRARIES] == []
