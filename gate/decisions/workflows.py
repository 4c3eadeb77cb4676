"""The refund workflow of help desks: a ticket's question, answered from the policy table of refunds.

Without a key it is information: nothing is stored. With one, the facts that the answer rests on go through the gate,
and the answer stands in a signed Decision Record of the caller's scope.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, NotRequired, TypedDict, cast

from gate.decisions.decide import Decision, DecisionGate
from gate.encoding.canonical import content_hash
from gate.encoding.shapes import shape, to_mend
from gate.errors import IdempotencyConflict, RequestRefused
from gate.ids import timestamp
from gate.ledger.access.authority import Authority
from gate.services.policies.answers import PolicyAnswer, answer, read_arguments
from gate.services.policies.questions import BY_SERVICE
from gate.services.policies.table import PolicyTable

TICKETING_SYSTEMS: Final = ("zendesk", "freshdesk", "intercom")
"""The help desks that the workflow serves."""

WORKFLOW: Final = "refund_workflow_v1"

REFUND: Final = BY_SERVICE["refund"]


class TicketFields(TypedDict):
    """What a help desk writes on the ticket."""

    tags: list[str]
    private_note: str
    recommended_action: str


class WorkflowAnswer(TypedDict):
    """The answer to a ticket; `docs/guides/answer-refund-questions.md` describes each member."""

    workflow_version: str
    request_id: str
    ticketing_system: str
    ticket_id: str
    action: str
    policy_class: str
    code: str
    message: str
    execution_allowed: bool
    ticket: TicketFields
    policy: PolicyAnswer
    decision: NotRequired[Mapping[str, object]]


@dataclass(frozen=True, slots=True)
class Ticket:
    """A refund question of a help desk.

    Attributes:
        system: The help desk.
        body: The request body.
        policy: What the policy table says.
    """

    system: str
    body: Mapping[str, Any]
    policy: PolicyAnswer


def read_ticket(system: str, body: object, table: PolicyTable, now: datetime, *, max_age_days: int) -> Ticket:
    """Reads the body of a refund workflow request, and asks the policy table.

    Args:
        system: The help desk, one of `TICKETING_SYSTEMS`.
        body: The parsed JSON value.
        table: The policy table of refunds.
        now: The current moment, in UTC.
        max_age_days: How long after its last verification an entry answers.

    Raises:
        RequestRefused: `SVC_API_REQUEST_INVALID`.
    """
    errors = shape("workflow-request").errors(body)
    if errors:
        raise RequestRefused("SVC_API_REQUEST_INVALID", to_mend("The body is not a refund request", errors), errors)
    ticket = cast("Mapping[str, Any]", body)
    asked = read_arguments(REFUND, {name: value for name, value in ticket.items() if name != "ticket_id"})
    return Ticket(system, ticket, answer(REFUND, table, asked, now, max_age_days=max_age_days))


def advise(ticket: Ticket, now: datetime) -> WorkflowAnswer:
    """The answer without a key: it is stored nowhere, and allows nothing.

    The request_id is H({body, day}) with the UTC day, so that the same question on the same day has the same handle.
    """
    request_id = content_hash({"body": ticket.body, "day": timestamp(now)[:10]})
    return _answer(ticket, request_id, allowed=False)


def decide(
    gate: DecisionGate, authority: Authority, ticket: Ticket, *, request_id: str, idempotency_key: str | None
) -> tuple[WorkflowAnswer, Decision]:
    """The answer with a key: a Decision Record holds it, and a yes of that record allows the refund.

    A used idempotency key answers with its record where the ticket's request is the same, also if the table has changed
    since.

    Raises:
        GateError: As `DecisionGate.decide`.
    """
    try:
        decision = gate.decide(authority, _request(ticket), request_id=request_id, idempotency_key=idempotency_key)
    except IdempotencyConflict as error:
        stored = _stored(gate, authority, error)
        if stored is None or stored["context"]["ticket"] != ticket.body:
            raise
        # The facts are the table's of then, and so is the answer.
        decision = gate.decide(authority, stored, request_id=request_id, idempotency_key=idempotency_key)
        ticket = replace(ticket, policy=stored["context"]["policy"])
    record = decision.record
    policy = cast("PolicyAnswer", {**ticket.policy, "answered_at": record["created_at"]})
    answered = _answer(replace(ticket, policy=policy), record["request_id"], allowed=record["verdict"] == "yes")
    answered["decision"] = {
        name: record[name]
        for name in (
            "decision_id",
            "verdict",
            "application_verdict",
            "reason_code",
            "record_hash",
            "receipt_hash",
            "verify_url",
        )
    }
    return answered, decision


def _stored(gate: DecisionGate, authority: Authority, conflict: IdempotencyConflict) -> Any:
    """The request of a ticket that an idempotency key was used for; None where it was used for something else."""
    stored: Any = gate.request_body(authority, str(conflict.details.get("decision_id", "")))
    if stored is None or stored.get("rulebook") != REFUND.rulebook.body:
        return None
    if not {"ticket", "policy"} <= stored.get("context", {}).keys():
        return None
    return stored


def _request(ticket: Ticket) -> Mapping[str, object]:
    return {
        "mode": "rulebook",
        "rulebook": REFUND.rulebook.body,
        "context": {
            "workflow": f"{ticket.system}_refund",
            "source_record_id": ticket.body["ticket_id"],
            "requested_action": "refund",
            "target_system": ticket.system,
            "target_object_id": ticket.body["ticket_id"],
            "ticket": ticket.body,
            # Without the moment, so that a retry on the same day sends the same request.
            "policy": {name: value for name, value in ticket.policy.items() if name != "answered_at"},
            "inputs": ticket.policy["facts"],
        },
    }


def _answer(ticket: Ticket, request_id: str, *, allowed: bool) -> WorkflowAnswer:
    policy = ticket.policy
    return {
        "workflow_version": WORKFLOW,
        "request_id": request_id,
        "ticketing_system": ticket.system,
        "ticket_id": ticket.body["ticket_id"],
        "action": policy["recommended_action"],
        "policy_class": policy["verdict"],
        "code": policy["code"],
        "message": policy["message"],
        "execution_allowed": allowed,
        "ticket": {
            "tags": [_tag("refund", policy["verdict"]), _tag("policy", policy["code"])],
            "private_note": _note(policy, request_id, allowed=allowed),
            "recommended_action": _RECOMMENDED[policy["verdict"]],
        },
        "policy": policy,
    }


def _tag(*words: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", " ".join(words).lower())


_RECOMMENDED: Final[Mapping[str, str]] = {
    "ALLOWED": "Refund the purchase only after the payment system has a binding yes.",
    "DENIED": "Decline the refund, and cite the policy.",
    "UNKNOWN": "Have a person read the source and decide.",
}


def _note(policy: PolicyAnswer, request_id: str, *, allowed: bool) -> str:
    source = policy["source"]
    lines = [f"Refund policy: {policy['verdict']} ({policy['code']}).", policy["message"]]
    if source is not None:
        verified = source["last_verified"] or "never"
        lines.append(f"Source: {source['url']} (last verified: {verified})")
    lines.append(
        "A signed Decision Record says yes: the refund may be made once."
        if allowed
        else "This authorizes nothing. Do not refund because of this note alone."
    )
    lines.append(f"Request: {request_id}")
    return "\n".join(lines)
