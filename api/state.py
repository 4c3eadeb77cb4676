"""What a request works with."""

from __future__ import annotations

from dataclasses import dataclass

from flask import current_app

from gate.decide import DecisionGate
from gate.instance import Instance


@dataclass(frozen=True, slots=True)
class State:
    """The instance that an application serves, and the gate over it."""

    instance: Instance
    gate: DecisionGate


def state() -> State:
    """The state of the application that handles the current request."""
    found: State = current_app.extensions["gate"]
    return found
