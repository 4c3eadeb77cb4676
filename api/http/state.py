"""The objects that requests work with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

from flask import Request, current_app, g, request
from structlog.typing import FilteringBoundLogger

from api.http.clients import ClientCounts
from api.http.metrics import Metrics
from api.http.readiness import Readiness
from gate.decisions.decide import DecisionGate
from gate.decisions.lifecycle import Lifecycle
from gate.decisions.migrations.reading import Migrations
from gate.decisions.reviews.resolutions import Resolutions
from gate.errors import ServiceUnavailable
from gate.instance.instance import Instance
from gate.ledger.access.limits import RateLimiter
from gate.origins import Origins
from gate.policy.questions import LakeQuestion, Reports


class _NoReports:
    """The reports of an application without a reporting process."""

    def answer(self, scope_id: str, question: LakeQuestion) -> NoReturn:
        raise ServiceUnavailable(
            "SVC_REPORT_UNAVAILABLE",
            "The reporting service is not running. Decisions are not affected; retry later.",
        )


NO_REPORTS: Final[Reports] = _NoReports()
"""Refuses every report."""


@dataclass(frozen=True, slots=True)
class State:
    """The instance that an application serves, and the objects that work on it.

    Attributes:
        instance: The instance.
        gate: Decides.
        lifecycle: Stores the reports of callers about decisions.
        resolutions: Resolves held decisions.
        limiter: Counts requests.
        migrations: The migrations of scopes, which the service only reads.
        reports: Answers questions with reports from the analytics process.
        clients: Counts the requests of clients without a key.
        origins: Finds the addresses of clients.
    """

    instance: Instance
    gate: DecisionGate
    lifecycle: Lifecycle
    resolutions: Resolutions
    limiter: RateLimiter
    migrations: Migrations
    reports: Reports
    clients: ClientCounts
    origins: Origins


@dataclass(frozen=True, slots=True)
class Operations:
    """The parts of an application for operators. It has them even while it waits for an instance.

    Attributes:
        log: The log.
        metrics: The counters.
        readiness: Tests whether the application can decide.
        metrics_token_file: The file with the token for the metrics.
        gauges: Measures values when metrics are read, by a name in `figures.GAUGES`.
    """

    log: FilteringBoundLogger
    metrics: Metrics
    readiness: Readiness
    metrics_token_file: Path
    gauges: Callable[[], dict[str, float]]


# Past Flask's proxies, for a look through one takes eight times as long.


def current_request() -> Request:
    """The current request."""
    found: Request = request._get_current_object()  # type: ignore[attr-defined]
    return found


def noted() -> dict[str, Any]:
    """The notes about the current request: the fields of Flask's `g`."""
    notes: dict[str, Any] = vars(g._get_current_object())
    return notes


def state() -> State:
    """The state of the application that handles the current request."""
    found: State = current_app._get_current_object().extensions["gate"]  # type: ignore[attr-defined]
    return found


def operations() -> Operations:
    """The parts for operators of the application that handles the current request."""
    found: Operations = current_app._get_current_object().extensions["gate.operations"]  # type: ignore[attr-defined]
    return found
