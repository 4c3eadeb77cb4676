"""Replay without a ledger: what is made again is what was made, and what cannot be made again is refused."""

from __future__ import annotations

import copy
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings

from gate.contract.published import GoldenCase, golden_cases
from gate.decisions.again.replay import (
    COMPARED_FIELDS,
    CURRENT,
    HISTORICAL,
    decide_again,
    differences,
    lineage_of,
    read_replay,
    request_again,
    require_evaluator,
    require_original_facts,
    require_original_rulebook,
    summary,
)
from gate.encoding import resources
from gate.encoding.canonical import canonical, content_hash
from gate.encoding.strict_json import parse
from gate.errors import LineageMismatch, RequestRefused
from gate.ids import timestamp
from gate.records.attestation import registration
from gate.records.documents import Record
from gate.records.envelope import envelope, input_material
from gate.records.record import Signers
from gate.rulebooks.facts import Facts
from gate.rulebooks.rulebook import load
from tests.reference.strategies import rulebooks_and_facts
from tests.support.rulebooks import example, rehashed, stricter_rulebook
from tests.support.samples import NOW, REGISTRY_SIGNER, make_record, sample_request, sample_rulebook
from tests.support.tiers import examples
from tests.support.torture import size

RECORD_SCHEMA = resources.schema("decision-record-v1")
OF_AN_APPEND = {"audit_chain"}
OF_A_SIGNATURE = {
    "receipt_key_id",
    "receipt_signature",
    "receipt_signature_algorithm",
    "receipt_public_key_fingerprint",
    "integrity",
}


def stored_body(request: dict[str, Any]) -> Any:
    return input_material(request)


def historical(record: Record, request: dict[str, Any], made: Facts | None = None) -> Any:
    """The record of a request with an inline rulebook, made again as it was made; over the facts of an adapter where
    they are given.
    """
    lineage = lineage_of(record)
    require_evaluator(lineage)
    again = request_again(lineage, stored_body(request))
    facts = made or Facts(again.inputs, again.plain)
    require_original_facts(lineage, facts)
    require_original_rulebook(lineage, request["rulebook"])
    return decide_again(lineage, again, facts, load(request["rulebook"]), lineage.registration)


def against(rulebook: dict[str, Any], record: Record, request: dict[str, Any]) -> Any:
    """The record of a request made again by another rulebook."""
    lineage, current = lineage_of(record), load(rulebook)
    metadata = registration(current.reference, "scope-1", timestamp(NOW), REGISTRY_SIGNER)
    again = request_again(lineage, stored_body(request))
    return decide_again(lineage, again, Facts(again.inputs, again.plain), current, metadata)


def test_a_record_made_again_is_the_record_without_what_proves_it() -> None:
    record = make_record()
    replayed = historical(record, sample_request())
    assert {name for name in record if name not in replayed or replayed[name] != record[name]} == (
        OF_AN_APPEND | OF_A_SIGNATURE
    )
    assert not (OF_AN_APPEND | OF_A_SIGNATURE - {"integrity"}) & replayed.keys()
    assert replayed["integrity"]["signature"] is None
    assert differences(record, replayed, COMPARED_FIELDS, "replayed") == []


@pytest.mark.parametrize("key", [None, "order-7"])
@pytest.mark.parametrize("inputs", [{"margin_percent": 22}, {"discount_percent": "x"}, {"margin_percent": 3}])
def test_decisions_of_every_kind_match(key: str | None, inputs: dict[str, Any]) -> None:
    """Missing and mistyped facts, and a blocking rule beside them, with and without an idempotency key."""
    request = sample_request(**inputs)
    record = make_record(request, idempotency_key=key)
    assert differences(record, historical(record, request), COMPARED_FIELDS, "replayed") == []


def test_a_record_that_was_attested_without_a_key_matches() -> None:
    record = make_record(signers=Signers(None, None))
    assert historical(record, sample_request())["record_hash"] == record["record_hash"]


@pytest.mark.parametrize("golden", [pytest.param(golden, id=golden.case["case_id"]) for golden in golden_cases()])
def test_every_golden_case_is_replayed_as_matched(golden: GoldenCase) -> None:
    request, facts = golden.request(), golden.facts
    record = make_record(request, facts=facts)
    answer = summary(record, historical(record, request, facts), HISTORICAL, "full")
    assert (answer["replay_status"], answer["drift"]) == ("matched", [])
    assert {name: answer["decision"][name] for name in ("verdict", "reason_code", "matched_rule_id")} == {
        name: golden.case["expected"][name] for name in ("verdict", "reason_code", "matched_rule_id")
    }


@settings(max_examples=examples(size(40, 100)))
@given(rulebooks_and_facts())
def test_whatever_was_decided_is_replayed_as_matched(case: tuple[dict[str, Any], dict[str, Any]]) -> None:
    rulebook, facts = case
    request = {"mode": "rulebook", "rulebook": rulebook, "context": {"inputs": facts}}
    # As a ledger keeps them: written down and read again.
    record = parse(canonical(make_record(request)), max_depth=64)
    again = parse(canonical(request), max_depth=64)
    assert summary(record, historical(record, again), HISTORICAL, "full")["replay_status"] == "matched"


def test_a_newer_version_drifts_where_it_decides_otherwise() -> None:
    request = sample_request()
    record = make_record(request)
    replayed = against(stricter_rulebook(), record, request)
    answer = summary(record, replayed, CURRENT, "full")
    assert answer["replay_status"] == "drifted"
    assert {entry["field"]: (entry["stored"], entry["replayed"]) for entry in answer["drift"]} == {
        name: (record[name], replayed[name]) for name in COMPARED_FIELDS
    }
    assert (record["verdict"], replayed["verdict"]) == ("yes", "no")
    assert [replayed[name] for name in ("decision_id", "request_id", "created_at", "input_hash")] == [
        record[name] for name in ("decision_id", "request_id", "created_at", "input_hash")
    ]
    # What no key has attested is not said to be.
    assert replayed["rulebook_attestation"]["signature"]["status"] == "unsigned"
    assert "replay_contract" not in answer


def test_a_newer_version_that_decides_the_same_drifts_in_its_hashes_alone() -> None:
    request = sample_request()
    record = make_record(request)
    replayed = against({**sample_rulebook(), "version": "2026-09-01"}, record, request)
    drift = differences(record, replayed, COMPARED_FIELDS, "replayed")
    assert [entry["field"] for entry in drift] == ["record_hash", "policy_bundle_hash"]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("evaluator_version",), "svc_rulebook_v2"),
        (("rulebook_contract", "evaluator_version"), "svc_rulebook_v2"),
        (("rulebook_registry", "evaluator_version"), "svc_rulebook_v0"),
        (("rulebook_contract", "schema_hash"), "0" * 64),
    ],
)
def test_a_record_of_another_evaluator_is_not_reinterpreted(path: tuple[str, ...], value: str) -> None:
    record = make_record()
    *outer, last = path
    changed = copy.deepcopy({name: record[name] for name in path[:1]})
    node: Any = changed
    for name in outer:
        node = node[name]
    node[last] = value
    lineage = lineage_of(rehashed(record, **changed))
    with pytest.raises(LineageMismatch) as refusal:
        require_evaluator(lineage)
    assert refusal.value.code == "REPLAY_LINEAGE_MISMATCH"
    assert "svc_rulebook_v1" in refusal.value.message


INVOCATION: Any = {
    "adapter_id": "margins",
    "version": "1.0.0",
    "manifest_hash": "0" * 64,
    "implementation_hash": "1" * 64,
}
ADAPTER_FACTS = Facts({"discount_percent": 10, "margin_percent": 22}, plain=True, trusted_adapter=INVOCATION)
"""Facts as an adapter makes them."""


def adapter_request() -> dict[str, Any]:
    """A request that invokes an adapter."""
    request = sample_request()
    del request["context"]["inputs"]
    return {**request, "adapter": {"adapter_id": "margins", "version": "1.0.0", "manifest_hash": "0" * 64, "input": {}}}


@pytest.mark.parametrize(
    ("record", "members", "request_body"),
    [
        (make_record(), {"binding_mode": "trusted_adapter_facts_then_declarative_rulebook"}, sample_request()),
        (make_record(), {}, adapter_request()),
        (make_record(adapter_request(), facts=ADAPTER_FACTS), {}, sample_request()),
        (
            make_record(adapter_request(), facts=ADAPTER_FACTS),
            {"binding_mode": "direct_declarative_rulebook"},
            adapter_request(),
        ),
    ],
    ids=[
        "binding mode without adapter",
        "another request",
        "a request without adapter",
        "adapter without binding mode",
    ],
)
def test_facts_of_an_adapter_are_not_guessed(
    record: dict[str, Any], members: dict[str, Any], request_body: dict[str, Any]
) -> None:
    lineage = lineage_of(rehashed(record, runtime_binding={**record["runtime_binding"], **members}))
    with pytest.raises(LineageMismatch, match="adapter"):
        request_again(lineage, stored_body(request_body))


def test_a_record_without_its_invocation_is_not_taken_for_a_direct_one() -> None:
    record = make_record(adapter_request(), facts=ADAPTER_FACTS)
    lineage = lineage_of(rehashed({name: value for name, value in record.items() if name != "trusted_adapter"}))
    with pytest.raises(LineageMismatch, match="adapter"):
        request_again(lineage, stored_body(adapter_request()))


def test_the_facts_of_an_adapter_have_to_come_from_it_again() -> None:
    """Equal facts from elsewhere, or of another invocation, are others."""
    record = make_record(adapter_request(), facts=ADAPTER_FACTS)
    lineage = lineage_of(record)
    again = request_again(lineage, stored_body(adapter_request()))
    require_original_facts(lineage, ADAPTER_FACTS)
    replayed = decide_again(lineage, again, ADAPTER_FACTS, load(sample_rulebook()), lineage.registration)
    assert differences(record, replayed, COMPARED_FIELDS, "replayed") == []
    assert replayed["trusted_adapter"] == record["trusted_adapter"]
    invocation = ADAPTER_FACTS.trusted_adapter
    assert invocation is not None
    others = (
        Facts(ADAPTER_FACTS.values, plain=True),
        Facts(ADAPTER_FACTS.values, plain=True, trusted_adapter={**invocation, "version": "1.0.1"}),
        Facts({**ADAPTER_FACTS.values, "note": ""}, plain=True, trusted_adapter=invocation),
    )
    for other in others:
        with pytest.raises(LineageMismatch, match="adapter"):
            require_original_facts(lineage, other)


@pytest.mark.parametrize("name", ["verdict", "policy_hash", "rulebook_registry", "created_at", "record_hash"])
def test_a_record_that_was_changed_is_not_replayed(name: str) -> None:
    changed: Any = {**make_record(), name: "changed"}
    with pytest.raises(LineageMismatch, match="record_hash"):
        lineage_of(changed)


@pytest.mark.parametrize("name", ["rulebook_contract", "rulebook_attestation", "request_id", "runtime_binding"])
def test_a_record_without_a_member_is_not_replayed(name: str) -> None:
    less: Any = {member: value for member, value in make_record().items() if member != name}
    less["record_hash"] = content_hash(envelope(less))
    with pytest.raises(LineageMismatch, match="lacks"):
        lineage_of(less)


def test_a_request_that_was_changed_is_not_replayed() -> None:
    with pytest.raises(LineageMismatch, match="input_hash"):
        request_again(lineage_of(make_record()), stored_body(sample_request(discount_percent=11, margin_percent=22)))


def test_a_rulebook_that_was_changed_or_lost_is_not_replayed() -> None:
    lineage = lineage_of(make_record())
    for rulebook in (None, stricter_rulebook()):
        with pytest.raises(LineageMismatch, match="policy_hash"):
            require_original_rulebook(lineage, rulebook)


def test_facts_other_than_the_attested_ones_are_not_replayed() -> None:
    record = make_record()
    attestation = copy.deepcopy(record["rulebook_attestation"])
    attestation["bundle"]["input_hash"] = "0" * 64
    lineage = lineage_of(rehashed(record, rulebook_attestation=attestation))
    request = request_again(lineage, stored_body(sample_request()))
    with pytest.raises(LineageMismatch, match="facts"):
        require_original_facts(lineage, Facts(request.inputs, request.plain))


@pytest.mark.parametrize("view", ["minimal", "standard", "full"])
@pytest.mark.parametrize("mode", [HISTORICAL, CURRENT])
def test_the_answer_follows_its_schema_in_every_view(mode: str, view: str) -> None:
    request = sample_request()
    record = make_record(request)
    replayed = historical(record, request) if mode == HISTORICAL else against(stricter_rulebook(), record, request)
    answer = summary(record, replayed, mode, view)
    jsonschema.Draft202012Validator(resources.schema("replay-result")).validate(answer)
    shown = {**RECORD_SCHEMA, "$ref": f"#/$defs/{view}"}
    shown["$defs"] = {**shown["$defs"], view: {**shown["$defs"][view]}}
    shown["$defs"][view]["required"] = sorted(set(shown["$defs"][view]["required"]) - OF_AN_APPEND)
    jsonschema.Draft202012Validator(shown).validate(answer["decision"])


class TestReading:
    """Bodies of replay and diff."""

    def test_nothing_asks_for_the_endpoints_default(self) -> None:
        assert read_replay({}).mode == HISTORICAL
        assert read_replay({}, (CURRENT,)).mode == CURRENT

    def test_everything_is_read(self) -> None:
        body = {"replay_mode": "current", "input": sample_request(), "response_view": "minimal"}
        asked = read_replay(body)
        assert (asked.mode, asked.input, asked.view) == (CURRENT, sample_request(), "minimal")

    @pytest.mark.parametrize(
        ("body", "code", "field"),
        [
            ([], "SVC_API_REQUEST_INVALID", ""),
            (None, "SVC_API_REQUEST_INVALID", ""),
            ({"mode": "current"}, "SVC_API_REQUEST_INVALID", "mode"),
            ({"replay_mode": None}, "SVC_API_REQUEST_INVALID", "replay_mode"),
            ({"replay_mode": 1}, "SVC_API_REQUEST_INVALID", "replay_mode"),
            ({"input": []}, "SVC_API_REQUEST_INVALID", "input"),
            ({"input": None}, "SVC_API_REQUEST_INVALID", "input"),
            ({"response_view": "whole"}, "SVC_API_REQUEST_INVALID", "response_view"),
            ({"response_view": "whole", "replay_mode": "x"}, "SVC_API_REQUEST_INVALID", "response_view"),
            ({"replay_mode": "HISTORICAL"}, "REPLAY_MODE_INVALID", None),
            ({"replay_mode": "", "input": {}}, "REPLAY_MODE_INVALID", None),
            ({"input": {}}, "REPLAY_INPUT_OVERRIDE_FORBIDDEN", None),
            ({"replay_mode": "historical", "input": {}}, "REPLAY_INPUT_OVERRIDE_FORBIDDEN", None),
        ],
    )
    def test_what_is_wrong_is_told_by_its_code(self, body: Any, code: str, field: str | None) -> None:
        with pytest.raises(RequestRefused) as refusal:
            read_replay(body)
        assert refusal.value.code == code
        assert [error.field for error in refusal.value.errors] == ([] if field is None else [field])

    def test_a_mode_that_the_endpoint_does_not_take_is_told_which_it_takes(self) -> None:
        with pytest.raises(RequestRefused) as refusal:
            read_replay({"replay_mode": "historical"}, (CURRENT,))
        assert refusal.value.code == "REPLAY_MODE_INVALID"
        assert refusal.value.details == {"supported_replay_modes": ["current"]}


def test_the_published_examples_are_what_a_replay_answers() -> None:
    request = sample_request()
    record = make_record(request)
    assert example("replay-result") == summary(record, historical(record, request), HISTORICAL, "minimal")
    replayed = against(stricter_rulebook(), record, request)
    assert example("diff-result") == summary(record, replayed, CURRENT, "minimal")
