"""Real servers: a checkout of its own for each test, `make run` in it, and the process's whole group at hand."""

from __future__ import annotations

import os
import random
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any, Final

import httpx

ROOT = Path(__file__).parents[2]

_LINES: Final = re.MULTILINE | re.DOTALL

# pytest-xdist says which of how many processes this one is.
_PROCESS: Final = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
_PROCESSES: Final = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))


def free_port() -> int:
    """A port that nothing listens on, nor will before a server that is started now does.

    The kernel gives clients ports from 32768 on, and each process of a run of several has ports of its own.
    """
    while True:
        port = random.randrange(10_000 + _PROCESS, 32_768, _PROCESSES)  # noqa: S311 - not a secret
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def mirror(directory: Path) -> Path:
    """A folder that looks like the project's root, without what was made there."""
    directory.mkdir()
    for entry in ROOT.iterdir():
        if entry.name not in ("var", "var-demo", "build", ".git"):
            (directory / entry.name).symlink_to(entry)
    return directory


class Server:
    """A running service."""

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        """Reads the process's output as it comes, so that it never blocks on a full pipe."""
        self.process = process
        self.url = url
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))

    def curl_line(self) -> str:
        """The curl command that the start printed, on a line of its own."""
        (line,) = [line for line in self.lines if line.startswith("curl ")]
        return line

    def stop(self, sign: int = signal.SIGINT) -> int:
        """Ctrl-C, as a terminal sends it: to the whole process group. The exit code."""
        os.killpg(self.process.pid, sign)
        code = self.process.wait(60)
        self.close()
        return code

    def close(self) -> None:
        """Reads what is left and closes the pipe."""
        self._reader.join(10)
        if self.process.stdout is not None:
            self.process.stdout.close()

    def text(self) -> str:
        """Everything printed so far."""
        return "\n".join(self.lines)


@contextmanager
def running(command: list[str], cwd: Path, url: str, ready: str) -> Iterator[Server]:
    """A service while the block runs; killed afterwards if it still lives.

    Args:
        command: What starts it.
        cwd: Where.
        url: Where it answers.
        ready: A pattern that one of its printed lines matches once it is ready.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GATE_")}
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    server = Server(process, url)
    try:
        deadline = time.monotonic() + 120
        while not any(re.search(ready, line) for line in server.lines):
            assert process.poll() is None, f"it stopped: {server.text()}"
            assert time.monotonic() < deadline, f"it did not become ready: {server.text()}"
            time.sleep(0.05)
        yield server
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(30)
        server.close()


@contextmanager
def make_run(project: Path, port: int) -> Iterator[Server]:
    """`make run`, ready."""
    url = f"http://127.0.0.1:{port}"
    # The install is older than nothing here: remaking it would bind the shared .venv to this throw-away folder.
    command = ["make", "--assume-old=.venv/.installed", "run", f"PORT={port}", f"WORKBENCH_PORT={free_port()}"]
    with running(command, project, url, "^curl ") as server:
        yield server


def post_decide(url: str, key: str, body: Any, **headers: str) -> httpx.Response:
    """One decision over a connection of its own."""
    return httpx.post(
        f"{url}/api/decide", json=body, headers={"x-api-key": key, **headers}, timeout=30, trust_env=False
    )


def bash_blocks(page: str) -> list[str]:
    """The ```bash blocks of a Markdown page."""
    return re.findall(r"^```bash\n(.*?)^```", page, flags=_LINES)


def anchors(page: str) -> set[str]:
    """The anchors that GitHub gives the headings of a Markdown page."""
    found: set[str] = set()
    for heading in re.findall(r"^#{1,6} (.*)$", re.sub(r"^```.*?^```", "", page, flags=_LINES), flags=re.MULTILINE):
        shown = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).strip()
        plain = re.sub(r"[^\w -]", "", shown.lower()).replace(" ", "-")
        found.add(next(name for name in _numbered(plain) if name not in found))
    return found


def _numbered(name: str) -> Iterator[str]:
    """A name, and the names of later headings that read the same."""
    yield name
    yield from (f"{name}-{number}" for number in count(1))
