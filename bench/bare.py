"""The measure of what the server and Flask themselves cost: one JSON route that does nothing, served as the API is.

`python -m bench.bare PORT WORKERS BLOCKING_THREADS [LOCK_FILE]`; with a lock file, each worker keeps to one processor,
as those of `gate serve` do.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from pathlib import Path
from typing import Final

from flask import Flask, Response, jsonify, request
from granian import Granian
from granian.constants import Interfaces
from granian.log import LogLevels

from api.workers.placement import PROCESSORS_VARIABLE, keep_to_one, processors_to_keep_to

_LOCK_FILE_VARIABLE: Final = "BENCH_LOCK_FILE"


def create_app() -> Flask:
    """An application that parses the JSON it is sent and answers a small object."""
    if lock_file := os.environ.get(_LOCK_FILE_VARIABLE):
        keep_to_one(Path(lock_file))
    app = Flask("bare", static_folder=None)

    @app.post("/api/decide")
    def decide() -> Response:
        return jsonify(mode=request.get_json()["mode"], verdict="yes")

    @app.get("/api/decision/status")
    def status() -> Response:
        return jsonify(status="ok")

    return app


def main() -> None:
    """Serves the application until SIGTERM."""
    port, workers, blocking_threads = map(int, sys.argv[1:4])
    for lock_file in sys.argv[4:]:
        os.environ |= {_LOCK_FILE_VARIABLE: lock_file, PROCESSORS_VARIABLE: processors_to_keep_to(workers)}
    multiprocessing.set_start_method("spawn", force=True)
    Granian(
        "bench.bare:create_app",
        factory=True,
        address="127.0.0.1",
        port=port,
        interface=Interfaces.WSGI,
        workers=workers,
        blocking_threads=blocking_threads,
        log_level=LogLevels.warning,
    ).serve()


if __name__ == "__main__":
    main()
