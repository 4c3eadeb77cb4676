"""The published examples have the hashes that docs/reference/wire-format defines.

They are recomputed from those pages alone, without the product: the members that a report's hash covers are read from
the page's table.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any, Final

import pytest
import rfc8785

from tests.end_to_end.support import ROOT

PAGE: Final = (ROOT / "docs" / "reference" / "wire-format" / "reports.md").read_text()
HASHES: Final = {
    "execution_hash": "execution-receipt",
    "outcome_hash": "outcome-record",
    "sync_hash": "crm-sync-answer",
}


def compact(value: Any) -> Any:
    if isinstance(value, dict):
        members = {name: compact(item) for name, item in value.items()}
        return {name: item for name, item in members.items() if item not in (None, "", {}, [])}
    if isinstance(value, list):
        return [item for item in map(compact, value) if item not in (None, "", {}, [])]
    return value


def content_hash(value: Any) -> str:
    return hashlib.sha256(rfc8785.dumps(value)).hexdigest()


def own_hash(entry: dict[str, Any], *outside: str) -> str:
    return content_hash(compact({name: value for name, value in entry.items() if name not in outside}))


def document(*path: str) -> Any:
    return json.loads(ROOT.joinpath(*path).read_text())


def example(name: str) -> Any:
    return document("schemas", "examples", f"{name}.json")


def covered(hash_member: str) -> list[str]:
    """The members that a report's hash covers, by the table."""
    table = PAGE.partition("| members | `execution_hash`")[2].split("\n\n")[0]
    names: list[str] = []
    for row in table.splitlines()[2:]:
        shared, *own = row.strip("|").split("|")
        cell = own[[*HASHES].index(hash_member)]
        names += re.findall(r"`(\w+)`", shared if cell.strip() == "yes" else cell)
    return names


@pytest.mark.parametrize("hash_member", HASHES)
def test_a_report_has_the_hash_that_the_table_defines(hash_member: str) -> None:
    report = example(HASHES[hash_member])
    report = report.get("crm_sync", report)
    names = covered(hash_member)
    assert len(names) == len(set(names)) == {"execution_hash": 33, "outcome_hash": 26, "sync_hash": 20}[hash_member]
    assert report[hash_member] == content_hash(compact({name: report.get(name) for name in names}))


def test_a_resolution_has_its_hashes() -> None:
    resolution = example("decision-resolution")
    outside = ("resolution_hash", "key_id", "signature", "audit_chain")
    assert resolution["resolution_hash"] == own_hash(resolution, *outside)
    assert resolution["resolution_input_hash"] == content_hash(example("resolution-request"))


def test_migrations_and_routes_have_their_hashes() -> None:
    migration, history = example("decision-migration"), example("decision-routes")["history"]
    for entry in migration["entries"]:
        assert entry["migration_hash"] == own_hash(entry, "migration_hash")
    for route in history:
        assert route["route_hash"] == own_hash(route, "route_hash")
    assert history[0]["from"] == history[1]["to"]
    assert history[1]["from"] is None
    assert history[0]["approval_hash"] == migration["entries"][-1]["migration_hash"]


def test_an_advisory_record_has_its_hashes() -> None:
    request, record = example("advisory-request"), example("advisory-record")
    template, evaluation = document("data", "advisory", "runtime.json"), record["evaluation"]
    answer_hash = content_hash(evaluation["answer"])
    assert record["input_hash"] == content_hash(request)
    assert record["policy_hash"] == content_hash(template)
    assert record["evidence"] == ["ADVISORY_RECOMMENDATION", f"answer:{answer_hash}"]
    hashes = [source["snapshot_hash"] for source in record["evidence_manifest"]["sources"]]
    assert hashes == [content_hash(template), content_hash(evaluation), answer_hash]
    said = ("verdict", "application_verdict", "action", "reason_code", "matched_rule_id", "evidence")
    assert record["output_hash"] == content_hash({"status": None, **{name: record[name] for name in said}})
    enveloped = (
        "decision_protocol_version",
        "decision_record_version",
        "decision_id",
        "request_id",
        "idempotency_key",
        "verdict",
        "action",
        "action_binding",
        "evidence",
        "evidence_manifest",
        "policy_id",
        "policy_version",
        "policy_hash",
        "policy_bundle",
        "policy_bundle_hash",
        "input_hash",
        "output_hash",
        "created_at",
        "replay_url",
        "verify_url",
        "application_verdict",
        "reason_code",
        "evaluator_version",
    )
    assert record["record_hash"] == content_hash({name: record[name] for name in enveloped})
