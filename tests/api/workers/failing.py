"""A server over an application of its own: `python -m tests.api.workers.failing DIRECTORY PORT WORKERS`.

A worker cannot make the application while the file `broken` is in the folder.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from granian.constants import Interfaces
from granian.log import LogLevels

from api.http.logs import library_logging, open_log
from api.workers.roster import starting
from api.workers.server import Server


def application() -> WSGIApplication:
    """The application of a worker."""
    directory = Path(os.environ["FAILING_DIRECTORY"])
    with starting(directory, open_log()):
        if (directory / "broken").exists():
            raise LookupError("password=hunter2")
    return _answer


def _answer(_: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    start_response("200 OK", [("content-type", "text/plain")])
    return [str(os.getpid()).encode()]


def main() -> None:
    """Serves until a signal comes."""
    directory, port, workers = sys.argv[1:]
    os.environ["FAILING_DIRECTORY"] = directory
    multiprocessing.set_start_method("spawn", force=True)
    Server(
        "tests.api.workers.failing:application",
        directory=Path(directory),
        log=open_log(),
        factory=True,
        port=int(port),
        workers=int(workers),
        interface=Interfaces.WSGI,
        blocking_threads=2,
        log_level=LogLevels.warning,
        log_dictconfig=library_logging(),
        workers_kill_timeout=15,
    ).serve()


if __name__ == "__main__":
    main()
