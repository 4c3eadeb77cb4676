"""What a request works with."""

from __future__ import annotations

from dataclasses import dataclass

from flask import current_app

from gate.decide import DecisionGate
from gate.instance import Instance
from gate.ledger.limits import RateLimiter


@dataclass(frozen=True, slots=True)
class State:
    """The instance that an application serves, the gate over it, and what counts requests."""

    instance: Instance
    gate: DecisionGate
    limiter: RateLimiter


def state() -> State:
    """The state of the application that handles the current request."""
    found: State = current_app.extensions["gate"]
    return found
