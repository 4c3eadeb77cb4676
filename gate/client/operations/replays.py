"""Stored decisions made again. None of it stores anything, or authorizes anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gate.client.transport.building import decision, posted
from gate.client.transport.calls import Call

if TYPE_CHECKING:
    from gate.client.types import CounterfactualsRequest, CounterfactualsResult, ReplayRequest, ReplayResult, View


def replay_decision(
    decision_id: str,
    request: ReplayRequest | Mapping[str, Any] | None = None,
    *,
    view: View | None = None,
    request_id: str | None = None,
) -> Call[ReplayResult]:
    """The decision made again, as it was made where the request asks for nothing else, and where it differs."""
    return posted("replayDecision", f"{decision(decision_id)}/replay", request, view=view, request_id=request_id)


def diff_decision(
    decision_id: str,
    request: ReplayRequest | Mapping[str, Any] | None = None,
    *,
    view: View | None = None,
    request_id: str | None = None,
) -> Call[ReplayResult]:
    """The decision against what the scope registered last, and where the two differ."""
    return posted("diffDecision", f"{decision(decision_id)}/diff", request, view=view, request_id=request_id)


def simulate_counterfactuals(
    decision_id: str,
    request: CounterfactualsRequest | Mapping[str, Any],
    *,
    view: View | None = None,
    request_id: str | None = None,
) -> Call[CounterfactualsResult]:
    """What the rulebook would say now, had the context been another."""
    path = f"{decision(decision_id)}/counterfactuals"
    return posted("simulateCounterfactuals", path, request, view=view, request_id=request_id)
