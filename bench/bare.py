"""The measure of what the server and Flask themselves cost: one JSON route that does nothing, served as the API is.

`python -m bench.bare PORT WORKERS BLOCKING_THREADS`
"""

from __future__ import annotations

import multiprocessing
import sys

from flask import Flask, Response, jsonify, request
from granian import Granian
from granian.constants import Interfaces
from granian.log import LogLevels


def create_app() -> Flask:
    """An application that parses the JSON it is sent and answers a small object."""
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
    port, workers, blocking_threads = map(int, sys.argv[1:])
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
