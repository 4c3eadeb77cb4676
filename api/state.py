"""What a request works with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from flask import current_app
from structlog.typing import FilteringBoundLogger

from api.metrics import Metrics
from api.readiness import Readiness
from gate.decide import DecisionGate
from gate.instance import Instance
from gate.ledger.limits import RateLimiter
from gate.lifecycle import Lifecycle


@dataclass(frozen=True, slots=True)
class State:
    """The instance that an application serves, the gate over it, what takes reports, and what counts requests."""

    instance: Instance
    gate: DecisionGate
    lifecycle: Lifecycle
    limiter: RateLimiter


@dataclass(frozen=True, slots=True)
class Operations:
    """What operators see of an application, whether it has an instance or waits for one.

    Attributes:
        log: Where it logs.
        metrics: What it counts.
        readiness: Whether it can decide.
        metrics_token_file: Holds the token that opens the metrics.
        gauges: What is measured when metrics are read: by name, its meaning and its value.
    """

    log: FilteringBoundLogger
    metrics: Metrics
    readiness: Readiness
    metrics_token_file: Path
    gauges: Callable[[], dict[str, tuple[str, float]]]


def state() -> State:
    """The state of the application that handles the current request."""
    found: State = current_app.extensions["gate"]
    return found


def operations() -> Operations:
    """What operators see of the application that handles the current request."""
    found: Operations = current_app.extensions["gate.operations"]
    return found
