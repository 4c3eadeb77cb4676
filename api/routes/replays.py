"""Decides stored decisions again: replay, diff, and counterfactuals. None of them stores anything."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from flask import Blueprint, Response

from api.http.auth import authenticate
from api.http.limits import require_rate
from api.http.requests import parse_body, preferred_view, read_body
from api.http.responses import json_response
from api.http.state import state
from gate.decisions.again.counterfactuals import read_counterfactuals
from gate.decisions.again.rehearsal import Rehearsal, StoredDecision
from gate.decisions.again.replay import CURRENT, REPLAY_MODES, ReplaySummary, read_replay
from gate.encoding.strict_json import MAX_REQUEST_DEPTH
from gate.records.advisory import is_advisory

blueprint = Blueprint("replays", __name__)

# A Decision Request stands one level down in a replay's body. A scenario's patch stands three down, and the context
# that it patches one down in its request.
MAX_REPLAY_DEPTH: Final = MAX_REQUEST_DEPTH + 1
"""How deep a Replay Request may nest."""

_MAX_SCENARIOS_DEPTH: Final = MAX_REQUEST_DEPTH + 2


@blueprint.post("/api/decision/<decision_id>/replay")
def replay(decision_id: str) -> Response:
    """Repeats a decision with its own rulebook, or with the version that the scope registered last."""
    return _replay(decision_id, REPLAY_MODES)


@blueprint.post("/api/decision/<decision_id>/diff")
def diff(decision_id: str) -> Response:
    """Compares a decision with the version of its rulebook that the scope registered last."""
    return _replay(decision_id, (CURRENT,))


@blueprint.post("/api/decision/<decision_id>/counterfactuals")
def counterfactuals(decision_id: str) -> Response:
    """The decisions of the version that the scope registered last, for other contexts."""
    sent = read_body()
    rehearsal, stored, body = _basis(decision_id, lambda: _parsed(sent, _MAX_SCENARIOS_DEPTH))
    asked = read_counterfactuals(body)
    view = preferred_view()
    answer = rehearsal.counterfactuals(stored, asked, asked.view or view)
    headers = {
        "x-decision-counterfactuals-version": answer["decision_counterfactuals_version"],
        "x-decision-counterfactual-hash": answer["counterfactual_hash"],
        "x-decision-counterfactual-scenarios": str(len(answer["scenarios"])),
    }
    return json_response(answer, headers=headers)


def _replay(decision_id: str, modes: Sequence[str]) -> Response:
    sent = read_body()
    return json_response(replayed(decision_id, lambda: _parsed(sent, MAX_REPLAY_DEPTH), preferred_view, modes))


def replayed(
    decision_id: str, read: Callable[[], object], view: Callable[[], str], modes: Sequence[str] = REPLAY_MODES
) -> ReplaySummary:
    """Decides a decision again, for any protocol.

    Args:
        decision_id: The decision.
        read: Reads the Replay Request, after the caller is known; raises `GateError`.
        view: Reads the view outside of the body; raises `GateError`.
        modes: The allowed modes, the default first.

    Raises:
        GateError: The decision cannot be decided again.
    """
    rehearsal, stored, body = _basis(decision_id, read)
    if is_advisory(stored.record):
        # It asks the upstream, as a decision does: a key that may only read cannot make the operator pay for questions.
        require_rate(authenticate("decide"))
    beside = view()
    asked = read_replay(body, rehearsal.modes(stored, modes))
    return rehearsal.replay(stored, asked, asked.view or beside)


def _basis(decision_id: str, read: Callable[[], object]) -> tuple[Rehearsal, StoredDecision, object]:
    """What every one of these works with: the decision of the caller's scope, and the body."""
    authority = authenticate("read")
    body = read()
    rehearsal = Rehearsal(state().gate.sources, state().instance.ledger, state().gate.advisor)
    return rehearsal, rehearsal.stored(authority.scope_id, decision_id), body


def _parsed(sent: bytes, max_depth: int) -> object:
    """The JSON value of a body, {} where there is none."""
    return parse_body(sent, max_depth=max_depth) if sent else {}
