"""Manifests of migrations: every member, every bound, and what has to fit together."""

from __future__ import annotations

import copy
from typing import Any, Final

import jsonschema
import pytest

from gate.contract.published import contract_index
from gate.encoding import resources
from gate.encoding.canonical import content_hash
from gate.errors import MaterialRefused
from gate.migration.drift import FIELDS
from gate.migration.manifest import Approval, ExpectedDrift, NamedAdapter, NamedRulebook, read_manifest
from tests.support.rulebooks import change, example
from tests.support.samples import cases

CASES: Final[list[Any]] = cases("migration_manifests")

SOLANA: Final = "e041d60e207e5853c3c328cf3cca6801bb4e03eb370cb23520fc4158ddb3300f"

WHOLE: Final[dict[str, Any]] = {
    "schema_version": "rulebook_migration_v1",
    "migration_id": "pricing.2026-09",
    "status": "proposed",
    "compatibility_class": "mixed",
    "summary": "A margin of 25 % for discounts.",
    "corpus": "corpus/index.json",
    "fixtures": ["deals.small", "deals.large"],
    "candidate": {
        "evaluator_version": "svc_rulebook_v1",
        "rulebooks": [{"rulebook_id": "pricing_exception", "path": "rulebooks/pricing.yaml"}],
        "adapters": [{"adapter_id": "solana_execution_gate", "version": "1.0.0", "manifest_hash": SOLANA}],
    },
    "expected_drift": {
        "policy": "requires_approval",
        "fixtures": ["deals.small"],
        "fields": ["semantic_output", "rulebook", "attestation_hash"],
    },
    "approval": {"status": "pending", "approved_by": None, "approved_at": None, "notes": None},
}
"""A manifest with every member."""


def made(case: dict[str, Any]) -> Any:
    """The manifest of a case: the whole one, changed."""
    body = copy.deepcopy(WHOLE)
    for path, value in case["set"].items():
        change(body, path, value)
    for path in case["remove"]:
        change(body, path, remove=True)
    return body


def refused(body: object) -> list[list[str]]:
    with pytest.raises(MaterialRefused) as error:
        read_manifest(body)
    assert error.value.code == "MIGRATION_INVALID"
    return [[fault.field, fault.code] for fault in error.value.errors]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_manifest_is_read_or_each_fault_is_named_by_its_place(case: dict[str, Any]) -> None:
    body = made(case)
    if case["errors"]:
        assert refused(body) == case["errors"]
    else:
        assert read_manifest(body).body == body


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_second_validator_agrees_with_what_the_schema_says(case: dict[str, Any]) -> None:
    checker = jsonschema.Draft202012Validator(
        resources.schema("rulebook-migration-v1"), format_checker=jsonschema.FormatChecker()
    )
    # Its $ matches before a line break at the end, and it knows no times without another library.
    if "at the end" in case["name"] or "format" in [code for _, code in case["errors"]]:
        return
    assert checker.is_valid(made(case)) is (case["by"] != "schema")


def test_every_member_is_read() -> None:
    found = read_manifest(WHOLE)
    assert found.hash == content_hash(WHOLE)
    assert (found.migration_id, found.status, found.compatibility_class) == ("pricing.2026-09", "proposed", "mixed")
    assert (found.summary, found.corpus) == ("A margin of 25 % for discounts.", "corpus/index.json")
    assert (found.fixtures, found.evaluator_version) == (("deals.small", "deals.large"), "svc_rulebook_v1")
    assert found.rulebooks == (NamedRulebook("pricing_exception", "rulebooks/pricing.yaml"),)
    assert found.adapters == (NamedAdapter("solana_execution_gate", "1.0.0", SOLANA),)
    fields = frozenset({"semantic_output", "rulebook", "attestation_hash"})
    assert found.expected == ExpectedDrift("requires_approval", frozenset({"deals.small"}), fields)
    assert found.approval == Approval("pending", None, None, None)


def test_what_is_absent_expects_and_chooses_nothing() -> None:
    (case,) = [case for case in CASES if case["name"] == "nothing that may be absent"]
    found = read_manifest(made(case))
    assert (found.summary, found.corpus, found.fixtures) == (None, None, None)
    assert found.expected == ExpectedDrift("requires_approval", frozenset(), frozenset())


@pytest.mark.parametrize(("name", "approved"), [("approved", True), ("approved and superseded since", False)])
def test_a_manifest_is_approved_while_both_of_its_statuses_are(name: str, approved: bool) -> None:
    (case,) = [case for case in CASES if case["name"] == name]
    found = read_manifest(made(case))
    assert (found.approved, found.approval.approved_by) == (approved, "ada")
    assert not read_manifest(WHOLE).approved


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        ("candidate.evaluator_version", "svc_rulebook_v2", "it has svc_rulebook_v1."),
        ("candidate.adapters.0.version", "2.0.0", "it has refund_facts@1.0.0, solana_execution_gate@1.0.0."),
        ("candidate.adapters.0.manifest_hash", "0" * 64, f"with the manifest_hash {SOLANA}."),
        ("compatibility_class", "adapter", "changes the evaluator, adapters and rulebooks, so it must be mixed or"),
    ],
)
def test_a_fault_names_what_would_be_right(path: str, value: str, told: str) -> None:
    body = copy.deepcopy(WHOLE)
    change(body, path, value)
    with pytest.raises(MaterialRefused) as error:
        read_manifest(body)
    assert told in error.value.errors[0].message


@pytest.mark.parametrize("kind", ["rulebook", "adapter"])
def test_a_candidate_names_at_most_a_hundred_of_a_kind(kind: str) -> None:
    body = copy.deepcopy(WHOLE)
    (one,) = body["candidate"][f"{kind}s"]
    body["candidate"][f"{kind}s"] = [{**one, f"{kind}_id": f"{kind}_{number}"} for number in range(101)]
    assert refused(body) == [[f"candidate.{kind}s", "too_many"]]


@pytest.mark.parametrize("body", [None, [], "manifest", 1, {}])
def test_what_is_no_manifest_is_refused(body: object) -> None:
    assert {code for _, code in refused(body)} <= {"type", "required"}


def test_the_schema_is_published_and_knows_every_field_that_can_drift() -> None:
    assert "rulebook-migration-v1" in {entry["name"] for entry in contract_index()["schemas"]}
    schema = resources.schema("rulebook-migration-v1")
    assert schema["properties"]["expected_drift"]["properties"]["fields"]["items"]["enum"] == list(FIELDS)


def test_the_example_is_a_manifest() -> None:
    assert read_manifest(example("rulebook-migration")).migration_id == "pricing_exception.2026-09-01"
