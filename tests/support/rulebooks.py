"""Rulebooks for tests, and changes to them."""

from __future__ import annotations

import copy
from typing import Any

from gate.encoding import resources
from gate.encoding.canonical import content_hash
from gate.encoding.strict_json import parse
from gate.records.envelope import envelope
from tests.support.samples import sample_rulebook


def outcome(name: str, decision: str = "yes") -> dict[str, str]:
    return {"decision": decision, "verdict": "OK_1", "action": name, "reason_code": "R1"}


def rulebook(*rules: dict[str, Any], required: list[str] | None = None, **types: str) -> Any:
    return {
        "schema_version": "rulebook_v1",
        "rulebook_id": "rb",
        "version": "1",
        "input_schema": {"required": required or [], "properties": {n: {"type": t} for n, t in types.items()}},
        "rules": list(rules) or [rule("unused", {"field": "x", "operator": "exists"})],
        "default_outcome": {"decision": "review", "verdict": "VV", "action": "default", "reason_code": "RR"},
    }


def rule(rule_id: str, condition: dict[str, Any], **members: Any) -> dict[str, Any]:
    return {"rule_id": rule_id, "condition": condition, "outcome": outcome(rule_id), **members}


def compare(field: str, operator: str, *value: Any) -> dict[str, Any]:
    return {"field": field, "operator": operator} | ({"value": value[0]} if value else {})


def change(body: Any, path: str, value: Any = None, *, remove: bool = False) -> None:
    *parents, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    for step in parents:
        body = body[step]
    if remove:
        del body[last]
    else:
        body[last] = value


def stricter_rulebook() -> dict[str, Any]:
    """The sample rulebook's next version: it wants a margin of 25."""
    body = sample_rulebook()
    for rule in body["rules"]:
        for test in rule["condition"].get("all", [rule["condition"]]):
            if test["field"] == "margin_percent":
                test["value"] = 25
    return {**body, "version": "2026-09-01"}


def rehashed(record: Any, **members: Any) -> Any:
    """A record as another release could have made it: other members, and the hash that they have."""
    changed = {**copy.deepcopy(record), **members}
    return {**changed, "record_hash": content_hash(envelope(changed))}


def example(name: str) -> Any:
    return parse(resources.path("schemas", "examples", f"{name}.json").read_bytes(), max_depth=64)
