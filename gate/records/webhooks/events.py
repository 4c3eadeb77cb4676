"""An event of each type, made of what it is about, and the body that endpoints receive.

    event = decision_review(record)
    body = event_body(event, "2026-11-28T12:00:00.000Z", chain_position=7)
    {"type": "decision.review", "timestamp": "2026-11-28T12:00:00.000Z", "data": {"decision_id": "dec_...", ...}}

The body has the form that the Standard Webhooks specification advises. Members that are absent or null in what an event
is about are left out of `data`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from gate.records.webhooks import types


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened, for the endpoints that subscribe to its type.

    Attributes:
        type: Its type.
        subject: The id of what it is about; events of one subject reach an endpoint in their order.
        data: Ids, hashes, verdicts and times of what happened.
    """

    type: str
    subject: str
    data: Mapping[str, Any]


def event_body(event: Event, happened_at: str, **more: object) -> bytes:
    """The JSON bytes that endpoints receive.

    Args:
        event: The event.
        happened_at: UTC timestamp.
        more: Further members of `data`, such as the chain position; those that are None are left out.
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
    """A binding decision is held for its owner."""
    return Event(types.REVIEW, record["decision_id"], _picked(record, _REVIEWED))


def resolution_made(resolution: Mapping[str, Any]) -> Event:
    """The owner of a held decision granted or refused it, or its time is over.

    Args:
        resolution: The chain's entry about it.
    """
    return Event(types.RESOLUTION, resolution["decision_id"], _picked(resolution, _RESOLVED))


def migration_changed(entry: Mapping[str, Any]) -> Event | None:
    """A migration was proposed or approved; None for what else becomes of one.

    Args:
        entry: The chain's entry about it.
    """
    changed = {"proposed": types.PROPOSED, "approved": types.APPROVED}.get(entry["event"])
    return None if changed is None else Event(changed, entry["migration_id"], _picked(entry, _MIGRATED))


def route_changed(entry: Mapping[str, Any]) -> Event:
    """A rulebook id leads to another version.

    Args:
        entry: The chain's entry about it.
    """
    return Event(types.ROUTE, entry["rulebook_id"], _picked(entry, _ROUTED))


def checkpoint_made(checkpoint: Mapping[str, Any]) -> Event:
    """A checkpoint of a chain was signed and kept."""
    return Event(types.CHECKPOINT, checkpoint["chain_id"], _picked(checkpoint, _CHECKED))


def chain_broken(chain_id: str, check: str, position: int | None, found_at: str) -> Event:
    """A chain does not hold.

    Args:
        chain_id: The chain.
        check: The check that failed: entries, checkpoint, or checkpoint_log.
        position: Where in the chain, if that can be said.
        found_at: UTC timestamp.
    """
    found = {"chain_id": chain_id, "chain_position": position, "check": check, "found_at": found_at}
    return Event(types.BROKEN, chain_id, _picked(found, tuple(found)))


def anomaly_alert(alert: Mapping[str, Any]) -> Event:
    """A report finds a new anomaly of a policy.

    Args:
        alert: The alert, as GET /api/policy-alerts lists it.
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
    """An operator tries an endpoint."""
    return Event(types.TEST, endpoint_id, {"endpoint_id": endpoint_id})


def _picked(source: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: source[name] for name in names if source.get(name) is not None}
