"""Builds an event of each type, and the body that endpoints receive.

    event = decision_review(record)
    body = event_body(event, "2026-11-28T12:00:00.000Z", chain_position=7)
    {"type": "decision.review", "timestamp": "2026-11-28T12:00:00.000Z", "data": {"decision_id": "dec_...", ...}}

The body has the form of the Standard Webhooks specification. `data` omits missing fields and fields that are null.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from gate.records.webhooks import types


@dataclass(frozen=True, slots=True)
class Event:
    """An event for the endpoints that subscribe to its type.

    Attributes:
        type: The type of the event.
        subject: The id of its subject. Events with the same subject reach an endpoint in order.
        data: The ids, hashes, verdicts, and times of the event.
    """

    type: str
    subject: str
    data: Mapping[str, Any]


def event_body(event: Event, happened_at: str, **more: object) -> bytes:
    """The JSON bytes that endpoints receive.

    Args:
        event: The event.
        happened_at: The UTC timestamp.
        more: Other fields of `data`, such as the chain position. Those that are None are omitted.
    """
    data = {**event.data, **{name: value for name, value in more.items() if value is not None}}
    return orjson.dumps({"type": event.type, "timestamp": happened_at, "data": data})


_REVIEWED = (
    "decision_id",
    "verdict",
    "policy_id",
    "policy_version",
    "reason_code",
    "record_hash",
    "receipt_hash",
    "created_at",
)
_RESOLVED = ("decision_id", "resolution_entry_id", "resolution", "resolution_hash", "expires_at", "recorded_at")
_MIGRATED = ("migration_id", "migration_entry_id", "migration_hash", "manifest_hash", "evidence_hash", "recorded_at")
_ROUTED = ("rulebook_id", "from", "to", "cause", "migration_id", "route_hash", "recorded_at")
_CHECKED = ("chain_id", "chain_size", "merkle_root", "link_hash", "issued_at", "key_id")


def decision_review(record: Mapping[str, Any]) -> Event:
    """The event that a binding decision is held for its owner."""
    return Event(types.REVIEW, record["decision_id"], _picked(record, _REVIEWED))


def resolution_made(resolution: Mapping[str, Any]) -> Event:
    """The event that the owner of a held decision granted or refused it, or that its time limit passed.

    Args:
        resolution: The resolution.
    """
    return Event(types.RESOLUTION, resolution["decision_id"], _picked(resolution, _RESOLVED))


def migration_changed(entry: Mapping[str, Any]) -> Event | None:
    """The event that a migration was proposed or approved, or None for other entries.

    Args:
        entry: The chain's entry about the migration.
    """
    changed = {"proposed": types.PROPOSED, "approved": types.APPROVED}.get(entry["event"])
    return None if changed is None else Event(changed, entry["migration_id"], _picked(entry, _MIGRATED))


def route_changed(entry: Mapping[str, Any]) -> Event:
    """The event that a rulebook id leads to another version.

    Args:
        entry: The chain's entry about the route.
    """
    return Event(types.ROUTE, entry["rulebook_id"], _picked(entry, _ROUTED))


def checkpoint_made(checkpoint: Mapping[str, Any]) -> Event:
    """The event that a checkpoint of a chain was signed and stored."""
    return Event(types.CHECKPOINT, checkpoint["chain_id"], _picked(checkpoint, _CHECKED))


def chain_broken(chain_id: str, check: str, position: int | None, found_at: str) -> Event:
    """The event that a check of a chain failed.

    Args:
        chain_id: The id of the chain.
        check: The failed check: `entries`, `checkpoint`, or `checkpoint_log`.
        position: The position in the chain, or None if the fault has no position.
        found_at: The UTC timestamp.
    """
    found = {"chain_id": chain_id, "chain_position": position, "check": check, "found_at": found_at}
    return Event(types.BROKEN, chain_id, _picked(found, tuple(found)))


def anomaly_alert(alert: Mapping[str, Any]) -> Event:
    """The event that a report found a new anomaly of a policy.

    Args:
        alert: The alert, as `GET /api/policy-alerts` returns it.
    """
    anomaly = alert["anomaly"]
    found = {
        "policy_id": alert["policy_id"],
        "anomaly_id": anomaly["anomaly_id"],
        "kind": anomaly["kind"],
        "severity": anomaly["severity"],
        "from": anomaly["window"]["from"],
        "to": anomaly["window"]["to"],
    }
    return Event(types.ALERT, alert["policy_id"], _picked(found, tuple(found)))


def webhook_test(endpoint_id: str) -> Event:
    """The event with which an operator tests an endpoint."""
    return Event(types.TEST, endpoint_id, {"endpoint_id": endpoint_id})


def _picked(source: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: source[name] for name in names if source.get(name) is not None}
