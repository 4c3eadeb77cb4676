"""Policy patterns: complete starting points. Each is a policy with a request, templates, and examples that run as they
are.

A pattern's file in `data/patterns/` contains its own texts. The rulebook, versions, and hashes come from the product's
active rulebook of its policy. A pattern does not depend on the instance that serves it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Final, NotRequired, TypedDict

from gate.encoding import resources
from gate.encoding.canonical import content_hash
from gate.encoding.strict_json import JsonObject, parse
from gate.rulebooks import bundles
from gate.rulebooks.documents import AdapterInvocation, Pattern, UnhashedPattern
from gate.rulebooks.rulebook import Rulebook

_EXAMPLES: Final = {"curl": "example.sh", "python": "example.py"}
_LINE: Final = 140

# Values that only the decision knows stand in angle brackets, under their names in the record.
_HASHES: Final = {"decision_record_hash": "<record_hash>", "decision_receipt_hash": "<receipt_hash>"}


class _Target(TypedDict):
    target_system: str
    target_object_id: str
    mutation: str


class _Context(_Target):
    """The context of a pattern's request; what only its rulebook reads of it is not named here."""

    source_record_id: str
    requested_action: str


class _Own(TypedDict):
    """A pattern's file."""

    policy_id: str
    title: str
    description: str
    tags: list[str]
    question: str
    context: _Context
    adapter: NotRequired[AdapterInvocation]
    outcome: JsonObject
    crm_sync: JsonObject


@cache
def patterns() -> tuple[Pattern, ...]:
    """The patterns, by pattern id, as they are served. Shared: callers do not change them."""
    files = sorted(resources.path("data", "patterns").glob("*.json"))
    return tuple(_pattern(file.stem, parse(file.read_bytes())) for file in files)


def find_pattern(id_: str) -> Pattern | None:
    """The pattern with that pattern id or policy id."""
    return next((pattern for pattern in patterns() if id_ in (pattern["pattern_id"], pattern["policy_id"])), None)


def with_tag(tag: str) -> list[Pattern]:
    """The patterns that bear a tag."""
    return [pattern for pattern in patterns() if tag in pattern["tags"]]


def _pattern(pattern_id: str, own: _Own) -> Pattern:
    (rulebook,) = (active for active in bundles.active_rulebooks() if active.rulebook_id == own["policy_id"])
    request: dict[str, object] = {
        "mode": "rulebook",
        "question": own["question"],
        "rulebook": rulebook.body,
        "context": own["context"],
    }
    if "adapter" in own:
        request["adapter"] = own["adapter"]
    pattern: UnhashedPattern = {
        "pattern_id": pattern_id,
        "policy_id": own["policy_id"],
        "title": own["title"],
        "description": own["description"],
        "tags": own["tags"],
        "recommended_policy_version": rulebook.version,
        "policy_hash": rulebook.hash,
        "decision_request_template": request,
        "outcome_template": _outcome_template(own),
        "crm_sync_template": _crm_sync_template(own, rulebook),
        "sdk_examples": {name: _example(file, own, request, rulebook.hash) for name, file in _EXAMPLES.items()},
    }
    return {**pattern, "pattern_hash": content_hash(pattern)}


def _outcome_template(own: _Own) -> dict[str, object]:
    return {**own["outcome"], "action_executed": True, **_target(own["context"]), **_HASHES}


def _target(context: _Context) -> _Target:
    return {
        "target_system": context["target_system"],
        "target_object_id": context["target_object_id"],
        "mutation": context["mutation"],
    }


def _crm_sync_template(own: _Own, rulebook: Rulebook) -> dict[str, object]:
    return {
        "sync_status": "written",
        "sync_direction": "writeback",
        **own["crm_sync"],
        **_HASHES,
        "decision_verdict": "<verdict>",
        "decision_action": "<action>",
        "policy_id": rulebook.rulebook_id,
        "policy_version": rulebook.version,
    }


def _example(file: str, own: _Own, request: Mapping[str, object], policy_hash: str) -> str:
    context = own["context"]
    text = resources.path("data", "patterns", f"{file}.template").read_text()
    for name, value in {
        "question": own["question"],
        "policy_hash": policy_hash,
        "idempotency_key": f"{context['requested_action']}:{context['source_record_id']}",
        "request": _laid_out(request),
        "execution": json.dumps(
            {"execution_status": "executed", "action_taken": context["requested_action"], **_target(context)}
        ),
    }.items():
        text = text.replace(f"@{name}@", value)
    return text


def _laid_out(value: object, indent: str = "") -> str:
    """JSON for readers: what fits stands on one line."""
    line = json.dumps(value)
    if not isinstance(value, dict | list) or len(indent) + len(line) <= _LINE:
        return line
    deeper = f"{indent}  "
    if isinstance(value, dict):
        opening, closing = "{}"
        items = [f"{json.dumps(name)}: {_laid_out(item, deeper)}" for name, item in value.items()]
    else:
        opening, closing = "[]"
        items = [_laid_out(item, deeper) for item in value]
    return f"{opening}\n{deeper}" + f",\n{deeper}".join(items) + f"\n{indent}{closing}"
