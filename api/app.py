"""Composes the HTTP service."""

from __future__ import annotations

import logging.config
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final
from wsgiref.types import StartResponse, WSGIEnvironment

from flask import Flask, request
from structlog.typing import FilteringBoundLogger

from api import errors
from api.analytics.client import ADDRESS_VARIABLE, AnalyticsClient
from api.http import readiness
from api.http.application import Application
from api.http.clients import ClientCounts
from api.http.logs import library_logging, open_log
from api.http.metrics import Metrics
from api.http.observation import observe
from api.http.readiness import Readiness
from api.http.requests import assign_request_id, others_working
from api.http.responses import finish_response
from api.http.state import NO_REPORTS, Operations, State
from api.keeper import read_state
from api.routes import (
    adapters,
    agents,
    batches,
    chains,
    contract,
    decisions,
    documents,
    lifecycle,
    migrations,
    operations,
    packets,
    pilots,
    policies,
    questions,
    registries,
    replays,
    reports,
    resolutions,
    sandbox,
    searches,
    service,
    verification,
    workflows,
)
from api.workers.placement import keep_to_one
from gate.clock import utc_now
from gate.errors import GateError, ServiceUnavailable
from gate.instance.instance import Instance, open_instance
from gate.instance.processes import calm_garbage
from gate.instance.settings import METRICS_FILE, Settings, load_settings
from gate.origins import Origins
from gate.policy.questions import Reports

HOME_VARIABLE: Final = "GATE_HOME"
SERVER_VARIABLE: Final = "GATE_SERVER_PID"

COUNTS_FILE: Final = "clients.limits"
"""The file in an instance's home where its workers count requests of clients without a key."""

DRAIN_SECONDS: Final = 15
"""How long a worker may take for the requests in flight once it was asked to end; the ledger answers within 5."""

_REOPEN_SECONDS: Final = 1.0
_PARENT_SECONDS: Final = 1.0


# With an instance; `operations` is served without one as well.
_BLUEPRINTS: Final = (
    decisions.blueprint,
    batches.blueprint,
    lifecycle.blueprint,
    resolutions.blueprint,
    verification.blueprint,
    agents.blueprint,
    packets.blueprint,
    searches.blueprint,
    registries.blueprint,
    adapters.blueprint,
    replays.blueprint,
    reports.blueprint,
    contract.blueprint,
    documents.blueprint,
    policies.blueprint,
    migrations.blueprint,
    chains.blueprint,
    sandbox.blueprint,
    pilots.blueprint,
    service.blueprint,
    workflows.blueprint,
    questions.blueprint,
)


def create_app(
    settings: Settings | Instance,
    *,
    log: FilteringBoundLogger | None = None,
    metrics: Metrics | None = None,
    analytics: Reports | None = None,
) -> Flask:
    """The Flask application of an instance.

    Args:
        settings: The settings of the instance to open, or an instance already open.
        log: The log; None means stderr.
        metrics: The counters; None creates new ones.
        analytics: Computes the reports. None means the analytics process in the environment.

    Raises:
        OperatorError: The instance cannot be opened.
    """
    instance = settings if isinstance(settings, Instance) else open_instance(settings)
    app = unattached_app()
    attach(app, instance, log=log, metrics=metrics, analytics=analytics)
    return app


def unattached_app() -> Flask:
    """The application with all its routes, before `attach` gives it an instance."""
    app = _application()
    for blueprint in _BLUEPRINTS:
        app.register_blueprint(blueprint)
    return app


def attach(
    app: Flask,
    instance: Instance,
    *,
    log: FilteringBoundLogger | None = None,
    metrics: Metrics | None = None,
    analytics: Reports | None = None,
) -> None:
    """Makes an application serve an instance instead of the previous one; see `create_app`."""
    log = log or open_log(instance.settings.log_level)
    metrics = metrics or Metrics()
    instance.ledger.entries.observe(metrics)
    instance.ledger.entries.wait_in(others_working)
    instance.adapters.waiting = others_working
    instance.advisor.waiting = others_working
    instance.policy_tables.refused = lambda service, fault: log.warning(
        "policy_table_refused", service=service, reason=fault
    )
    reports = analytics or _analytics()
    watched = Readiness(
        lambda: readiness.readiness(instance, wait=0, reports=_reports_state(reports), keeper=read_state(utc_now())),
        log,
    )
    app.extensions["gate.operations"] = Operations(
        log, metrics, watched, instance.settings.metrics_token, lambda: _gauges(instance, watched)
    )
    app.extensions["gate"] = State(
        instance,
        instance.gate(),
        instance.lifecycle(),
        instance.resolutions(),
        instance.limiter,
        instance.migrations(),
        reports,
        _client_counts(instance.settings.home / COUNTS_FILE, log),
        Origins(instance.settings.trusted_proxies),
    )


def _client_counts(file: Path, log: FilteringBoundLogger) -> ClientCounts:
    try:
        return ClientCounts(file)
    except OSError as error:
        # Each worker then counts for itself, which admits more; decisions need none of it.
        log.warning("client_counts_alone", reason=str(error))
        return ClientCounts(None)


def _analytics() -> Reports:
    address = os.environ.get(ADDRESS_VARIABLE)
    return AnalyticsClient(address) if address else NO_REPORTS


def _reports_state(reports: Reports) -> str:
    """What status says of the reports that are not made in this process."""
    if reports is NO_REPORTS:
        return "unconfigured"
    return "unavailable" if isinstance(reports, AnalyticsClient) and not reports.listens() else "ready"


def _application() -> Flask:
    """An application that answers operators and nobody else."""
    app = Application("decision-gate", static_folder=None)
    app.url_map.merge_slashes = False
    app.before_request(assign_request_id)
    # What is registered first runs last.
    app.after_request(observe)
    app.after_request(finish_response)
    app.register_blueprint(operations.blueprint)
    errors.install(app)
    return app


def _gauges(instance: Instance, watched: Readiness) -> dict[str, float]:
    gauges = _readiness_gauges(watched)
    checkpoints = watched.report()["checkpoints"]
    gauges |= {
        "gate_trusted_adapters_ready": watched.report()["trusted_adapters"]["ready"],
        "gate_checkpoints_refused": checkpoints.get("refused", 0),
        "gate_checkpoints_ready": checkpoints["ready"],
    }
    with suppress(GateError, OSError):
        store, totals = instance.ledger.store, instance.ledger.entries.totals()
        gauges |= {
            "gate_scopes": totals.scopes,
            "gate_chain_entries": totals.entries,
            "gate_registered_rulebooks": totals.rulebooks,
            "gate_ledger_bytes": store.size(),
        }
        if (left := store.disk_left()) is not None:
            gauges["gate_ledger_disk_free_bytes"] = left
    return gauges


def _readiness_gauges(watched: Readiness) -> dict[str, float]:
    report = watched.report()
    gauges: dict[str, float] = {"gate_ready": report["ok"]}
    if (workers := report.get("workers")) is not None:
        gauges |= {
            "gate_workers": workers["asked"],
            "gate_workers_running": workers["running"],
            "gate_workers_crash_looping": len(workers["crash_looping"]),
            "gate_worker_deaths_total": workers["deaths"],
        }
    return gauges


def worker() -> Worker:
    """The application of one server process. The environment has its home directory and database."""
    # A terminal's Ctrl-C reaches every process. The parent then asks each worker to drain, and a worker that is asked
    # twice does not finish.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    home = Path(os.environ[HOME_VARIABLE])
    keep_to_one(home / "workers.lock")
    threading.Thread(target=_end_with, args=(int(os.environ[SERVER_VARIABLE]),), daemon=True).start()
    app = Worker(home)
    _when_asked_to_end(app.give_up)
    calm_garbage()
    return app


class Worker:
    """The `WSGI` application of a server process. It serves an instance as soon as the instance can be opened.

    A process that starts without its database answers 503 until the database returns. It does not exit, because the
    server would then stop the other processes too.
    """

    def __init__(self, home: Path) -> None:
        """Opens the instance in a home directory, if that can be done now."""
        self._home = home
        self._opening = threading.Lock()
        self._next_try = 0.0
        self._instance: Instance | None = None
        settings = _settings(home)
        level = settings.log_level if settings else "info"
        logging.config.dictConfig(library_logging())
        logging.captureWarnings(True)
        self._log, self._metrics = open_log(level), Metrics()
        self._app = self._open()
        self._closed = self._app or self._closed_app(settings)

    def give_up(self) -> None:
        """Stops waits of requests that could last longer than the shutdown of this process."""
        if self._instance is not None:
            self._instance.advisor.close()

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answers a request."""
        if self._app is None:
            with self._opening:
                if self._app is None and time.monotonic() >= self._next_try:
                    self._app = self._open()
        return (self._app or self._closed)(environ, start_response)

    def _open(self) -> Flask | None:
        try:
            instance = open_instance(load_settings(self._home))
            instance.adapters.start()
            self._instance = instance
            return create_app(instance, log=self._log, metrics=self._metrics)
        except (GateError, OSError) as error:
            self._log.error("closed", reason=str(error))
            self._next_try = time.monotonic() + _REOPEN_SECONDS
            return None

    def _closed_app(self, settings: Settings | None) -> Flask:
        reason = "The instance cannot be opened, most likely because its ledger is unavailable; see the service's log."
        watched = Readiness(lambda: readiness.closed(settings, reason), self._log)
        token = settings.metrics_token if settings else self._home / METRICS_FILE
        app = _application()
        app.extensions["gate.operations"] = Operations(
            self._log, self._metrics, watched, token, lambda: _readiness_gauges(watched)
        )
        app.before_request(_refuse)
        return app


def _settings(home: Path) -> Settings | None:
    try:
        return load_settings(home)
    except GateError:
        return None


def _refuse() -> None:
    if request.blueprint == operations.blueprint.name:
        return
    raise ServiceUnavailable(
        "SVC_STORAGE_UNAVAILABLE",
        "The service cannot reach its ledger. Nothing was acknowledged; retry with the same idempotency key.",
    )


def _when_asked_to_end(then: Callable[[], None]) -> None:
    """Calls something in a thread of its own once this process is asked to end. The web server handles the signal."""
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    signal.set_wakeup_fd(writer.detach(), warn_on_full_buffer=False)

    def wait() -> None:
        # For good: with the reader closed, a second signal would print an error.
        while told := reader.recv(64):
            if signal.SIGTERM in told:
                then()

    threading.Thread(target=wait, daemon=True).start()


def _end_with(server: int) -> None:
    """Ends this process, after the requests in flight, when the server that started it is gone."""
    while os.getppid() == server:
        time.sleep(_PARENT_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)
    # A worker that is just starting can miss the signal.
    time.sleep(DRAIN_SECONDS)
    os._exit(1)
