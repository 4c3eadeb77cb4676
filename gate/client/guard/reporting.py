"""The reports of an action, as the store keeps them until they are delivered."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from gate.client.guard.proposal import idempotency_key
from gate.client.guard.saying import LONGEST_ACTION, LONGEST_NAME, is_text
from gate.client.store.intents import EXECUTION, OUTCOME, Intent, Report
from gate.clock import utc_now
from gate.encoding.canonical import canonical
from gate.ids import timestamp
from gate.records.envelope import action_binding

if TYPE_CHECKING:
    from gate.client.api.types import DecisionRecord


class Cited(NamedTuple):
    """The values of its record that a report repeats."""

    decision_id: str
    record_hash: str
    receipt_hash: str
    scope_hash: str
    action: str
    taken: Mapping[str, str]


def cited(record: DecisionRecord) -> Cited:
    """The values of a record that its reports repeat.

    A review's outcome has a label for what to do instead of the action; the grant permits the proposed action. A
    proposed action may be too long for `action_taken`. The report then omits it, and only the action binding has it.
    """
    scope_hash = record["rulebook_registry"]["scope_hash"]
    action = record["action"]
    if record["verdict"] == "review":
        action = str(record["action_binding"]["proposed_action"])
    taken = {"action_taken": action} if is_text(action, LONGEST_ACTION) else {}
    return Cited(record["decision_id"], record["record_hash"], record["receipt_hash"], scope_hash, action, taken)


def execution_report(intent: Intent, of: Cited, body: Mapping[str, object]) -> Report:
    """The report for the execution receipt of an attempt.

    Args:
        intent: The attempt.
        of: The values that it repeats from the record.
        body: The end of the attempt: `execution_status` and any other known fields.
    """
    context = intent.request["context"]
    known = {
        "action_binding": action_binding(context),
        "execution_id": f"{intent.intent_id}-{intent.attempt}",
        # Not its end: a grant permits what begins before it ends, and somebody may find out the end days later.
        "executed_at": intent.started_at or timestamp(utc_now()),
    }
    return _report(EXECUTION, intent, of, context, known | dict(body))


def outcome_report(intent: Intent, of: Cited, body: Mapping[str, object]) -> Report:
    """The report for an outcome of an attempt.

    Args:
        intent: The attempt.
        of: The values that it repeats from the record.
        body: The outcome: `outcome_status` and any other known fields.
    """
    return _report(OUTCOME, intent, of, intent.request["context"], {**of.taken, **body})


def name_of(error: BaseException) -> str:
    """The name of an exception's type, with its module unless it is built in."""
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    return name[:LONGEST_NAME].encode("utf-8", "replace").decode()


def _report(kind: str, intent: Intent, of: Cited, context: Mapping[str, object], body: Mapping[str, object]) -> Report:
    target = {name: context[name] for name in ("target_system", "target_object_id", "mutation") if name in context}
    hashes = {"decision_record_hash": of.record_hash, "decision_receipt_hash": of.receipt_hash}
    key = idempotency_key(intent.intent_id, intent.attempt)
    return Report(
        intent_id=intent.intent_id,
        attempt=intent.attempt,
        kind=kind,
        decision_id=of.decision_id,
        scope_hash=of.scope_hash,
        # An attempt has one execution, and any number of outcomes.
        idempotency_key=f"{key}-{kind}" if kind == EXECUTION else f"{key}-{kind}-{secrets.token_hex(8)}",
        body=canonical(target | hashes | dict(body)),
        told_at=timestamp(utc_now()),
    )
