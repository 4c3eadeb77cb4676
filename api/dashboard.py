"""The dashboard next to the service: `gate workbench` as a process that starts and ends with `gate serve`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Final

_LIBRARY: Final = "panel"
_SECONDS: Final = 10


def is_installed() -> bool:
    """Whether the libraries of the dashboard are installed."""
    return find_spec(_LIBRARY) is not None


@contextmanager
def dashboard_process(home: Path, port: int, server: int, *, demo: bool, as_json: bool) -> Iterator[None]:
    """Runs the dashboard while the block runs. It prints its address once it is ready.

    Args:
        home: The instance's directory; the ledger's address is in the environment.
        port: The port to listen on, only on this machine.
        server: The process whose end also ends the dashboard.
        demo: Whether a link signs in a demo user.
        as_json: Whether it prints JSON.
    """
    options = [*(["--demo"] if demo else []), *(["--json"] if as_json else [])]
    command = [sys.executable, "-m", "api.cli.program", "workbench", "--home", str(home), "--port", str(port)]
    process = subprocess.Popen([*command, "--ends-with", str(server), *options])  # noqa: S603 - of our own making
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
