"""The `gate` command for pages that run it often: a process for each run, forked by one that has loaded the product.

A new process spends most of a second on loading what the one before it had loaded as well. What stands for the command
hands its files, folder, environment and arguments over, and ends with the exit code of the process that was forked.
Those of a server, which is stopped by a signal to what was started, run as they are installed.

    python -m tests.end_to_end.forking SOCKET: forks once for each connection, until it is ended.
"""

from __future__ import annotations

import gc
import json
import os
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Final, NoReturn

from tests.end_to_end.support import ROOT

# None of them starts a thread: a forked process would miss it.
_LOADED: Final = (
    "api.cli.main",
    "api.cli.options",
    "gate.client",
    "gate.encoding.yaml_text",
    "gate.instance.instance",
    "gate.verify",
    "typer._adapters",
)
_MOST_BYTES: Final = 2**20
_CLIENT: Final = Path(__file__).with_name("forked_gate.py")


@contextmanager
def forking(directory: Path) -> Iterator[Path]:
    """What forks while the block runs; the socket at which it listens, in a directory."""
    address = directory / "fork"
    command = [sys.executable, "-m", __name__, str(address)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            yield address
        finally:
            process.terminate()


def use_forked(project: Path, address: Path) -> None:
    """Gives a folder that looks like the project's an environment of its own, whose `gate` is forked."""
    installed = ROOT / ".venv"
    (project / ".venv").unlink()
    programs = project / ".venv" / "bin"
    programs.mkdir(parents=True)
    for folder in (installed, installed / "bin"):
        for entry in folder.iterdir():
            if entry not in (installed / "bin", installed / "bin" / "gate"):
                (project / ".venv" / entry.relative_to(installed)).symlink_to(entry)
    words = [installed / "bin" / "python", "-ISE", _CLIENT, address, installed / "bin" / "gate"]
    (programs / "gate").write_text(f'#!/bin/sh\nexec {shlex.join(map(str, words))} "$@"\n')
    (programs / "gate").chmod(0o755)


def _serve(address: str) -> NoReturn:
    for name in _LOADED:
        import_module(name)
    assert os.listdir("/proc/self/task") == [str(os.getpid())], "a thread runs"  # noqa: PTH208 - names alone
    gc.freeze()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen()
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while True:
            connection, _ = listening.accept()
            with connection:
                if os.fork() == 0:
                    listening.close()
                    _attend(connection)
            with suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG) != (0, 0):
                    pass


def _attend(connection: socket.socket) -> NoReturn:
    """Runs one command in a process, and says how that ended."""
    asked, files, _, _ = socket.recv_fds(connection, _MOST_BYTES, 3)
    process = os.fork()
    if process == 0:
        connection.close()
        _run(json.loads(asked), files)
    for file in files:
        os.close(file)
    _, status = os.waitpid(process, 0)
    connection.sendall(str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


def _run(asked: dict[str, object], files: list[int]) -> NoReturn:
    for standard, file in enumerate(files):
        os.dup2(file, standard)
        os.close(file)
    # What is there was opened on other files, and may believe that it can seek in them.
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115 - for good
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    os.chdir(str(asked["folder"]))
    os.umask(int(str(asked["umask"])))
    environment, arguments = asked["environment"], asked["arguments"]
    assert isinstance(environment, dict)
    assert isinstance(arguments, list)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["gate", *arguments]
    from api.cli.main import main

    main()
    sys.exit()


if __name__ == "__main__":
    _serve(sys.argv[1])
