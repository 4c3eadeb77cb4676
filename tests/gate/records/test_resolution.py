"""Resolutions of held decisions: frozen, with their signatures and links."""

from __future__ import annotations

import json
from typing import Any, Final

import jsonschema
import pytest

from gate.encoding import resources
from gate.proof import chain
from gate.proof.chain import link_material
from gate.records.reports.resolution import ANSWERS, HASHED, SIGNED, Resolving, build_resolution, resolution_link
from gate.verify.resolution import verify_resolution
from tests.independent import verifier
from tests.support.samples import RECEIPT_KEYS, RECEIPT_SIGNER, TRUST, VECTORS, make_record, sample_request

FROZEN: Final[list[dict[str, Any]]] = json.loads((VECTORS / "resolutions.json").read_text())["resolutions"]
each_frozen: Final = pytest.mark.parametrize("frozen", FROZEN, ids=[each["name"] for each in FROZEN])


def record_of(frozen: dict[str, Any]) -> Any:
    """The held decision that a resolution is about."""
    return make_record(sample_request(**frozen["inputs"]))


@each_frozen
def test_resolutions_and_their_links_are_what_they_always_were(frozen: dict[str, Any]) -> None:
    record = record_of(frozen)
    made = build_resolution(record, Resolving(**frozen["resolving"]), "res_" + "0" * 31 + "1", RECEIPT_SIGNER)
    assert made == frozen["resolution"]
    head = chain.head_of(chain.append(chain.Head("chain_test"), link_material(record)))
    assert chain.append(head, resolution_link(made, record)) == frozen["link"]


@each_frozen
def test_they_verify_here_and_in_an_independent_verifier(frozen: dict[str, Any]) -> None:
    record, resolution = record_of(frozen), {**frozen["resolution"], "audit_chain": chain.record_link(frozen["link"])}
    assert verify_resolution(resolution, record, TRUST).verified
    assert verifier.resolution_failures(resolution, record, RECEIPT_KEYS.to_dict()) == []
    jsonschema.validate(resolution, resources.schema("decision-resolution"))


def test_every_answer_and_every_member_is_among_them() -> None:
    assert {each["resolution"]["resolution"] for each in FROZEN} == set(ANSWERS)
    assert {name for each in FROZEN for name in each["resolution"]} == {*HASHED, *SIGNED, "resolution_hash"}
