"""Read-only policies: the service's own bundles and patterns, and the rulebooks registered in the caller's scope."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from flask import Blueprint, Response

from api.http.auth import authenticate
from api.http.requests import query_text
from api.http.responses import json_response
from api.http.state import state
from gate.errors import FieldError, NotFound, RequestRefused
from gate.labels import CANONICALIZATION, HASH_ALGORITHM
from gate.rulebooks import bundles, patterns
from gate.services.policies.in_force import InForce
from gate.services.policies.questions import BY_SERVICE

blueprint = Blueprint("policies", __name__)


@blueprint.get("/api/decision/policy-bundles")
def policy_bundles() -> Response:
    """The bundles of the service's own policies, or the bundle whose bundle hash or policy hash is in `hash`."""
    hash_ = query_text("hash")
    if hash_ is None:
        entries = bundles.entries()
        return _for_everyone(
            {
                "policy_bundles": entries,
                "count": len(entries),
                "hash_algorithm": HASH_ALGORITHM,
                "canonicalization": CANONICALIZATION,
            }
        )
    entry = bundles.find_entry(hash_)
    if entry is None:
        raise NotFound(
            "SVC_POLICY_BUNDLE_NOT_FOUND",
            (
                "No built-in policy has that hash. To look up a rulebook of your scope, use "
                "/api/decision/rulebooks with your API key."
            ),
        )
    return _for_everyone({"policy_bundle_entry": entry})


@blueprint.get("/rules/policy-sources.json")
def policy_sources() -> Response:
    """The service's own policies and the active policy tables, with the address of each body."""
    told = ("policy_id", "policy_version", "policy_hash", "status", "source")
    entries: Sequence[Mapping[str, object]] = bundles.entries()
    sources = [{name: entry[name] for name in told} for entry in entries]
    tables = [_source_of(found) for found in state().instance.policy_tables.all()]
    return _for_a_minute({"policy_sources": sources, "count": len(sources), "policy_tables": tables})


def _source_of(found: InForce) -> Mapping[str, object]:
    question = BY_SERVICE[found.table.service]
    return {
        "service": question.service,
        "tool": question.tool,
        "table_hash": found.table.hash,
        "origin": found.origin,
        "entries": len(found.table.entries),
        "source": f"/rules/policy-tables/{question.service}.json",
        "rulebook": f"/rules/{question.rulebook.rulebook_id}/{question.rulebook.version}.json",
    }


@blueprint.get("/rules/policy-tables/<service>.json")
def policy_table(service: str) -> Response:
    """The active policy table of a service."""
    if service not in BY_SERVICE:
        raise NotFound("SVC_API_NOT_FOUND", f"There is no policy table of that name; use {', '.join(BY_SERVICE)}.")
    return _for_a_minute(state().instance.policy_tables.table(service).body)


@blueprint.get("/rules/<policy_id>/<version>.json")
def policy_source(policy_id: str, version: str) -> Response:
    """The rulebook of one of the service's own policies."""
    body = bundles.find_body(policy_id, version)
    if body is None:
        raise NotFound(
            "SVC_API_NOT_FOUND", "There is no built-in policy with that id and version; see /rules/policy-sources.json."
        )
    return _for_everyone(body)


@blueprint.get("/api/decision/policy-patterns")
def policy_patterns() -> Response:
    """The patterns, those with the tag in `tag`, or the one with the pattern id or policy id in `pattern_id`."""
    pattern_id, tag = query_text("pattern_id"), query_text("tag")
    found = patterns.patterns() if tag is None else patterns.with_tag(tag)
    if pattern_id is None:
        return _for_everyone({"patterns": found, "count": len(found)})
    pattern = patterns.find_pattern(pattern_id)
    if pattern is None or pattern not in found:
        raise NotFound(
            "SVC_POLICY_PATTERN_NOT_FOUND",
            "There is no such pattern; GET /api/decision/policy-patterns lists them all.",
        )
    return _for_everyone({"policy_pattern": pattern})


@blueprint.get("/api/decision/rulebooks")
def rulebook_metadata() -> Response:
    """The registration of a rulebook in the caller's scope, as in records, with warnings and annotations.

    It never includes the rulebook's body.
    """
    authority = authenticate("read")
    hash_, rulebook_id, version = (query_text(name) for name in ("hash", "rulebook_id", "version"))
    registry = state().instance.ledger.rulebooks
    if hash_ is not None:
        found = registry.find(authority.scope_id, hash_)
    elif rulebook_id is not None and version is not None:
        found = registry.find_version(authority.scope_id, rulebook_id, version)
    else:
        raise _not_exact(rulebook_id=rulebook_id, version=version)
    if found is None or rulebook_id not in (None, found.rulebook_id) or version not in (None, found.version):
        raise NotFound(
            "SVC_RULEBOOK_NOT_FOUND",
            "This scope has no such rulebook; check hash, rulebook_id, version and the API key.",
        )
    sources = state().gate.sources
    rulebook = sources.registered_rulebook(authority.scope_id, found.hash)
    warnings = sources.warnings(rulebook, found.metadata.get("adapter_dependency"))
    shown: dict[str, object] = {
        "ok": True,
        "rulebook": found.metadata,
        "warnings": [warning.to_dict() for warning in warnings],
    }
    if annotations := registry.annotations(authority.scope_id, found.hash):
        shown["annotations"] = {**annotations, "authenticated": False}
    return json_response(shown)


def _not_exact(**sent: str | None) -> RequestRefused:
    missing = [name for name, value in sent.items() if value is None]
    faults = [FieldError(name, "required", "It is missing; send it, or send hash instead.") for name in missing]
    message = f"Look up a rulebook by hash, or by rulebook_id and version; send hash, or {' and '.join(missing)}."
    return RequestRefused("SVC_API_QUERY_INVALID", message, faults)


def _for_a_minute(body: object) -> Response:
    """An answer that is the same for every caller, and changes when the operator edits a policy table."""
    return json_response(body, headers={"cache-control": "public, max-age=60"})


def _for_everyone(body: object) -> Response:
    """An answer that is the same for every caller, and for as long as this release runs."""
    return json_response(body, headers={"cache-control": "public, max-age=3600"})
