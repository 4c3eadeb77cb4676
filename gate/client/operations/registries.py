"""Public keys, and policies to read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from gate.client.transport.building import asked, member
from gate.client.transport.calls import Call

if TYPE_CHECKING:
    from gate.client.types import (
        KeyRegistryDocument,
        PolicyBundleAnswer,
        PolicyBundleRegistry,
        PolicyPatternAnswer,
        PolicyPatterns,
        PolicySources,
        Rulebook,
        RulebookMetadata,
        TrustedAdapters,
    )


def list_receipt_keys(*, request_id: str | None = None) -> Call[KeyRegistryDocument]:
    """The public keys of receipts and checkpoints, active and past."""
    return asked("listReceiptKeys", "/api/decision/receipt-keys", request_id=request_id, credential=None)


def list_attestation_keys(*, request_id: str | None = None) -> Call[KeyRegistryDocument]:
    """The public keys of rulebook attestations and registrations, active and past."""
    path = "/.well-known/rulebook-attestation-keys.json"
    return asked("listAttestationKeys", path, request_id=request_id, credential=None)


@overload
def list_policy_bundles(*, hash: None = None, request_id: str | None = None) -> Call[PolicyBundleRegistry]: ...


@overload
def list_policy_bundles(*, hash: str, request_id: str | None = None) -> Call[PolicyBundleAnswer]: ...


def list_policy_bundles(*, hash: str | None = None, request_id: str | None = None) -> Call[Any]:
    """The service's own policies, or the one whose `policy_bundle_hash` or `policy_hash` is given."""
    path = "/api/decision/policy-bundles"
    return asked("listPolicyBundles", path, query={"hash": hash}, request_id=request_id, credential=None)


def get_rulebook(
    *,
    hash: str | None = None,
    rulebook_id: str | None = None,
    version: str | None = None,
    request_id: str | None = None,
) -> Call[RulebookMetadata]:
    """The registration of a rulebook in the scope, by `hash`, or by `rulebook_id` and `version`. Never its body."""
    query = {"hash": hash, "rulebook_id": rulebook_id, "version": version}
    return asked("getRulebook", "/api/decision/rulebooks", query=query, request_id=request_id)


@overload
def list_policy_patterns(
    *, pattern_id: None = None, tag: str | None = None, request_id: str | None = None
) -> Call[PolicyPatterns]: ...


@overload
def list_policy_patterns(
    *, pattern_id: str, tag: str | None = None, request_id: str | None = None
) -> Call[PolicyPatternAnswer]: ...


def list_policy_patterns(
    *, pattern_id: str | None = None, tag: str | None = None, request_id: str | None = None
) -> Call[Any]:
    """The patterns, those with a tag, or the one whose id or policy's id is `pattern_id`."""
    query = {"pattern_id": pattern_id, "tag": tag}
    path = "/api/decision/policy-patterns"
    return asked("listPolicyPatterns", path, query=query, request_id=request_id, credential=None)


def list_trusted_adapters(*, request_id: str | None = None) -> Call[TrustedAdapters]:
    """The adapters that requests may invoke, each with its manifest and manifest_hash."""
    return asked("listTrustedAdapters", "/api/decision/adapters", request_id=request_id, credential=None)


def list_policy_sources(*, request_id: str | None = None) -> Call[PolicySources]:
    """Where the bodies of the service's own policies stand."""
    return asked("listPolicySources", "/rules/policy-sources.json", request_id=request_id, credential=None)


def get_policy_source(policy_id: str, version: str, *, request_id: str | None = None) -> Call[Rulebook]:
    """The rulebook of one of the service's own policies."""
    path = f"/rules/{member('policy_id', policy_id)}/{member('version', version)}.json"
    return asked("getPolicySource", path, request_id=request_id, credential=None)
