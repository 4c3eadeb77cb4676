"""The HTTP service, composed."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from flask import Flask

from api import chains, decisions, errors, operations, registries, verification
from api.placement import keep_to_one
from api.requests import assign_request_id, finish_response
from api.state import State
from gate.instance import Instance, open_instance
from gate.settings import Settings, load_settings

HOME_VARIABLE: Final = "GATE_HOME"

_SWITCH_SECONDS: Final = 0.0005


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


def worker() -> Flask:
    """The application of one server process; its home directory and database come from the environment."""
    # A terminal's Ctrl-C reaches every process. The parent then asks each worker to drain, and a worker that is asked
    # twice does not finish.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    # The thread that commits for others gives up the interpreter at every step of the database. It has to get it back
    # soon, for it holds the ledger: with the default of 5 ms a third fewer requests are answered.
    sys.setswitchinterval(_SWITCH_SECONDS)
    home = Path(os.environ[HOME_VARIABLE])
    keep_to_one(home / "workers.lock")
    app = create_app(load_settings(home))
    # What was loaded stays for good, so that no collection of garbage has to look through it again.
    gc.collect()
    gc.freeze()
    return app
