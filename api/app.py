"""The HTTP service, composed."""

from __future__ import annotations

import gc
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, NoReturn

from flask import Flask

from api import chains, decisions, errors, operations, registries, verification
from api.placement import keep_to_one
from api.requests import assign_request_id, finish_response
from api.state import State
from gate.errors import GateError, ServiceUnavailable
from gate.instance import Instance, open_instance
from gate.settings import Settings, load_settings

HOME_VARIABLE: Final = "GATE_HOME"
SERVER_VARIABLE: Final = "GATE_SERVER_PID"

DRAIN_SECONDS: Final = 15
"""How long a worker may take for the requests in flight once it was asked to end; the ledger answers within 5."""

_REOPEN_SECONDS: Final = 1.0
_PARENT_SECONDS: Final = 1.0

_log = logging.getLogger("gate.api")


class _Application(Flask):
    def ensure_sync(self, func: Callable[..., Any]) -> Callable[..., Any]:
        # No view is a coroutine, and Flask would look at each function again at every request.
        return func


def create_app(settings: Settings | Instance) -> Flask:
    """The Flask application of an instance.

    Args:
        settings: The settings of the instance to open, or an instance already open.

    Raises:
        OperatorError: The instance cannot be opened.
    """
    instance = settings if isinstance(settings, Instance) else open_instance(settings)
    app = _Application("decision-gate", static_folder=None)
    app.url_map.merge_slashes = False
    app.extensions["gate"] = State(instance, instance.gate(), instance.limiter)
    app.before_request(assign_request_id)
    app.after_request(finish_response)
    for blueprint in (
        decisions.blueprint,
        verification.blueprint,
        registries.blueprint,
        chains.blueprint,
        operations.blueprint,
    ):
        app.register_blueprint(blueprint)
    errors.install(app)
    return app


def worker() -> Worker:
    """The application of one server process; its home directory and database come from the environment."""
    # A terminal's Ctrl-C reaches every process. The parent then asks each worker to drain, and a worker that is asked
    # twice does not finish.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    home = Path(os.environ[HOME_VARIABLE])
    keep_to_one(home / "workers.lock")
    threading.Thread(target=_end_with, args=(int(os.environ[SERVER_VARIABLE]),), daemon=True).start()
    app = Worker(home)
    # What was loaded stays for good, so that no collection of garbage has to look through it again.
    gc.collect()
    gc.freeze()
    return app


class Worker:
    """The WSGI application of a server process: an instance's, as soon as the instance can be opened.

    A process that is started while the database is away answers 503 until it is back. It does not end, for the server
    would take a process that ends at its start for hopeless, and would end the others with it.
    """

    def __init__(self, home: Path) -> None:
        """Opens the instance in a home directory, if that can be done now."""
        self._home = home
        self._opening = threading.Lock()
        self._next_try = 0.0
        self._closed = _closed_app()
        self._app = self._open()

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Answers a request."""
        if self._app is None:
            with self._opening:
                if self._app is None and time.monotonic() >= self._next_try:
                    self._app = self._open()
        return (self._app or self._closed)(environ, start_response)

    def _open(self) -> Flask | None:
        try:
            return create_app(load_settings(self._home))
        except (GateError, OSError) as error:
            _log.error("The instance cannot be opened, so that every request is answered with 503: %s", error)
            self._next_try = time.monotonic() + _REOPEN_SECONDS
            return None


def _closed_app() -> Flask:
    app = _Application("decision-gate-closed", static_folder=None)
    errors.install(app)
    app.before_request(assign_request_id)
    app.before_request(_refuse)
    app.after_request(finish_response)
    return app


def _refuse() -> NoReturn:
    raise ServiceUnavailable(
        "SVC_STORAGE_UNAVAILABLE",
        "The service cannot reach its ledger. Nothing was acknowledged; retry with the same idempotency key.",
    )


def _end_with(server: int) -> None:
    """Ends this process, after the requests in flight, when the server that started it is gone."""
    while os.getppid() == server:
        time.sleep(_PARENT_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)
    # One that is only just starting can miss the signal.
    time.sleep(DRAIN_SECONDS)
    os._exit(1)
