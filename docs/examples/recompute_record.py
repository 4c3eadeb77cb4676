"""Recomputes the hashes of a Decision Record with a rulebook in its request, from the wire format alone.

    python docs/examples/recompute_record.py record.json request.json

It needs only the package rfc8785 and nothing of this project. It checks hashes, not signatures.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import rfc8785

EMPTY: tuple[Any, ...] = (None, "", {}, [])
ALWAYS = (
    *(
        "decision_protocol_version",
        "decision_record_version",
        "decision_id",
        "request_id",
        "idempotency_key",
        "verdict",
    ),
    *("action", "policy_id", "policy_version", "policy_hash", "input_hash", "output_hash", "created_at", "replay_url"),
    "verify_url",
)
COMPACTED = (
    *("application_verdict", "reason_code", "matched_rule_id", "rulebook", "rulebook_contract", "evaluator_version"),
    *("runtime_binding", "rulebook_registry", "rulebook_attestation", "trusted_adapter", "adapter_facts"),
)
BUNDLE = ("id", "version", "hash", "hash_algorithm", "canonicalization", "source")
RECEIPT = (
    *("decision_record_version", "decision_id", "record_hash", "input_hash", "output_hash", "policy_hash"),
    "policy_bundle_hash",
)


def digest(value: Any) -> str:
    """The SHA-256 of canonical JSON, as lower-case hex: H in the wire format."""
    return hashlib.sha256(rfc8785.dumps(value)).hexdigest()


def compact(value: Any) -> Any:
    """The value without empty fields and items, at every depth."""
    if isinstance(value, dict):
        items = {name: compact(item) for name, item in value.items()}
        return {name: item for name, item in items.items() if item not in EMPTY}
    if isinstance(value, list):
        return [item for item in map(compact, value) if item not in EMPTY]
    return value


def envelope(record: dict[str, Any]) -> dict[str, Any]:
    """The fields that `record_hash` covers."""
    always = {name: record.get(name) or "" for name in ALWAYS}
    always |= {name: record.get(name) or {} for name in ("action_binding", "evidence_manifest")}
    always["evidence"] = record.get("evidence") or []
    bundle = {name: record["policy_bundle"].get(name) for name in BUNDLE}
    optional = {name: compact(record.get(name)) for name in COMPACTED}
    optional["policy_bundle_hash"] = record["policy_bundle_hash"]
    optional["policy_bundle"] = {name: value for name, value in bundle.items() if value not in EMPTY}
    return always | {name: value for name, value in optional.items() if value not in EMPTY}


def hashes(record: dict[str, Any], request: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """Each hash of a record by name: as stated, and recomputed."""
    attestation, chain = record["rulebook_attestation"], record["audit_chain"]
    receipt = {name: record[name] for name in RECEIPT}
    receipt["action_binding_hash"] = digest(record["action_binding"])
    receipt["evidence_manifest_hash"] = digest(record["evidence_manifest"])
    leaf = {name: record[name] for name in ("decision_id", "record_hash", "receipt_hash")}
    leaf |= {"decision_chain_version": "decision_chain_v1", "entry_type": "decision"}
    return {
        "record_hash": (record["record_hash"], digest(envelope(record))),
        "receipt_hash": (record["receipt_hash"], digest(receipt)),
        "input_hash": (record["input_hash"], digest(request)),
        "policy_hash": (record["policy_hash"], digest(request["rulebook"])),
        "facts": (attestation["bundle"]["input_hash"], digest(request["context"]["inputs"])),
        "bundle_hash": (attestation["bundle_hash"], digest(attestation["bundle"])),
        "evaluation": (record["evidence_manifest"]["sources"][1]["snapshot_hash"], digest(record["evaluation"])),
        "leaf_hash": (chain["leaf_hash"], digest(leaf)),
    }


def main(record: str, request: str) -> int:
    """Prints each hash that does not match; 1 if there is one."""
    found = hashes(json.loads(Path(record).read_text()), json.loads(Path(request).read_text()))
    wrong = {name: pair for name, pair in found.items() if pair[0] != pair[1]}
    for name, (stated, recomputed) in wrong.items():
        print(f"{name}: stated {stated}, recomputed {recomputed}")
    print("A hash does not match." if wrong else "All hashes match.")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
