"""The calls of the tools. Each uses the same function as its HTTP route."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, cast

from api.http.auth import authenticate
from api.http.state import state
from api.mcp.agents.arguments import decision_id, fault, refused, require, text
from api.mcp.agents.texts import ADVICE
from api.mcp.servers import Result
from api.routes.decisions import Asked, as_made, make_decision
from api.routes.lifecycle import make_report
from api.routes.replays import MAX_REPLAY_DEPTH, replayed
from api.routes.verification import exported, stored, supplied
from gate.decisions.claims import is_usable_key
from gate.encoding.canonical import with_integers
from gate.encoding.strict_json import MAX_REQUEST_DEPTH, JsonObject, require_depth
from gate.errors import FieldError
from gate.labels import VIEWS
from gate.records.advisory import is_advisory
from gate.records.explanation import explanation
from gate.records.reports.receipts import (
    ACTION_TAKEN_MISMATCH,
    BINDING_MISMATCH,
    EXECUTIONS,
    NOT_APPROVED,
    OUTCOMES,
    Kind,
)

_LISTED: Final = 100
_TARGET: Final = ("system", "resource")
_NO_TARGET: Final = (
    "This yes has no target, so it allows no specific action: do not act on it. Send a request with "
    "context.target_system and context.target_object_id."
)
_REPLAYED: Final = (
    "The idempotency key was used before with this request, and this is the record from that time. Its action may have "
    "been performed already: find out before you act."
)


def decide(arguments: JsonObject) -> Result:
    """Decides, as `POST /api/decide` does."""

    def read() -> Asked:
        refusal = fault("decide", arguments)
        if refusal is not None and "request" not in arguments:
            raise refusal
        body = arguments["request"]
        require_depth(body, MAX_REQUEST_DEPTH)
        view, key = text(arguments, "response_view"), text(arguments, "idempotency_key")
        # A key that cannot be used belongs to no record; the refusal names it as it is called here.
        usable = key if key is not None and is_usable_key(key) else None
        return Asked(body, usable, view if view in VIEWS else "full", refusal)

    made = make_decision(read)
    record = made.decision.record
    notes = [f"Warning about the rulebook: {warning.field}: {warning.message}" for warning in made.decision.warnings]
    if made.hint is not None:
        notes.append(made.hint)
    if is_advisory(record):
        notes.insert(0, ADVICE)
    elif record["verdict"] == "yes" and not any(map(record["action_binding"].get, _TARGET)):
        notes.append(_NO_TARGET)
    if made.decision.status == "replayed":
        notes.append(_REPLAYED)
    return Result(made.shown, notes)


def report_execution(arguments: JsonObject) -> Result:
    """Stores a receipt, as `POST /api/decision/{decision_id}/execution` does."""
    return _report(EXECUTIONS, arguments)


def report_outcome(arguments: JsonObject) -> Result:
    """Stores an outcome, as `POST /api/decision/{decision_id}/outcome` does."""
    return _report(OUTCOMES, arguments)


def _report(kind: Kind, arguments: JsonObject) -> Result:
    def read() -> object:
        require("report", arguments)
        body = arguments["report"]
        require_depth(body, MAX_REQUEST_DEPTH)
        return body

    key = text(arguments, "idempotency_key")
    reported = make_report(kind, text(arguments, "decision_id") or "", key, read)
    report = cast("Mapping[str, object]", reported.report)
    flagged = cast("Sequence[str]", report.get("flags", ()))
    notes = [_FLAGS[flag] for flag in flagged]
    if report.get("action_binding_match") is False and BINDING_MISMATCH not in flagged:
        notes.append(_UNNAMED)
    if reported.status == "replayed":
        notes.append("It was reported before with this idempotency key.")
    return Result(reported.report, notes)


_FLAGS: Final[Mapping[str, str]] = {
    NOT_APPROVED: (
        "The decision was not a binding yes. If its action was performed, this is a breach: tell the owner of the "
        "action."
    ),
    BINDING_MISMATCH: (
        "The report states another target or action than the decision, so the decision does not allow it. If it was "
        "performed, tell the owner of the action."
    ),
    ACTION_TAKEN_MISMATCH: (
        "action_taken is not the action of the decision, so the decision does not allow it. If it was performed, tell "
        "the owner of the action."
    ),
}
_UNNAMED: Final = (
    "The report does not state its target, so action_binding_match is false. Send action_binding, or target_system and "
    "target_object_id, with a report."
)


def verify(arguments: JsonObject) -> Result:
    """Verifies as the endpoints do: a stored decision, a record that must belong to a decision, or a record alone."""
    authenticate("read")
    require("verify", arguments)
    if arguments.keys().isdisjoint(("decision_id", "record")):
        missing = "record and decision_id are both missing; send at least one of them."
        raise refused("send decision_id, record, or both.", [FieldError("record", "required", missing)])
    material = {name: value for name, value in arguments.items() if name != "decision_id"}
    if "decision_id" not in arguments:
        return Result(exported(with_integers(material)).to_dict())
    found = (
        supplied(decision_id(arguments), lambda: with_integers(material))
        if material
        else stored(decision_id(arguments))
    )
    return Result(found.to_dict())


def explain(arguments: JsonObject) -> Result:
    """Explains a decision from the data stored with it."""
    authority = authenticate("read")
    require("explain", arguments)
    found = explanation(as_made(authority, decision_id(arguments)))
    return Result(found, ["\n".join(found["sentences"])])


def replay(arguments: JsonObject) -> Result:
    """Replays a decision, as `POST /api/decision/{decision_id}/replay` does."""

    def read() -> object:
        require("replay", arguments)
        body = {name: value for name, value in arguments.items() if name != "decision_id"}
        require_depth(body, MAX_REPLAY_DEPTH)
        return body

    return Result(dict(replayed(text(arguments, "decision_id") or "", read, lambda: "full")))


def list_rulebooks(arguments: JsonObject) -> Result:
    """Lists the registered rulebooks of the scope, and marks the active versions of routes."""
    authority = authenticate("read")
    require("list_rulebooks", arguments)
    limit = int(cast("int", arguments.get("limit", _LISTED)))
    found = state().instance.ledger.rulebooks.listed(authority.scope_id, limit=limit + 1)
    routes = {name: entries[-1]["to"] for name, entries in state().migrations.routes(authority).items()}
    shown = [
        {
            "rulebook_id": each.rulebook_id,
            "version": each.version,
            "hash": each.hash,
            "registered_at": each.registered_at,
            "active_route": routes.get(each.rulebook_id) == {"version": each.version, "hash": each.hash},
        }
        for each in found[:limit]
    ]
    return Result({"count": len(shown), "rulebooks": shown, "more": len(found) > limit})


CALLS: Final[dict[str, Callable[[JsonObject], Result]]] = {
    "decide": decide,
    "report_execution": report_execution,
    "report_outcome": report_outcome,
    "verify": verify,
    "explain": explain,
    "replay": replay,
    "list_rulebooks": list_rulebooks,
}
"""The calls by the names of their tools."""
