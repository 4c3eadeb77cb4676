"""Execution receipts, outcomes and CRM syncs: what each hash covers and what matches a binding."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Final

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gate.encoding import resources
from gate.errors import RequestRefused
from gate.records.reports.receipts import (
    ACTION_TAKEN_MISMATCH,
    BINDING_MISMATCH,
    KINDS,
    NOT_APPROVED,
    build,
    flags,
    report_hash,
)
from gate.records.reports.report_request import check_request
from tests.independent import verifier
from tests.reference.strategies import json_values
from tests.support.receipts import ELSEWHERE, MEMBERS, SCHEMAS
from tests.support.samples import REPORTS, cases, make_record, sample_request
from tests.support.tiers import examples
from tests.support.torture import size

KIND: Final = {kind.name: kind for kind in KINDS}
AT: Final = "2026-06-11T12:30:47.000Z"

each_kind = pytest.mark.parametrize("name", KIND)


def reported(name: str, body: dict[str, Any] | None = None, record: Any = None) -> Any:
    kind = KIND[name]
    sent = REPORTS[name] if body is None else body
    check_request(kind, sent)
    return build(
        kind, record or make_record(), sent, f"{kind.id_prefix}_{1:032x}", idempotency_key="key-1", reported_at=AT
    )


def whole(name: str) -> Any:
    return reported(name, MEMBERS[name]["request"])


def other(value: Any) -> Any:
    """Another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, str):
        return f"{value}x"
    if isinstance(value, list):
        return [*value, "x"]
    return {**value, "x": "x"}


@each_kind
def test_the_members_that_a_hash_covers_are_those_of_the_wire_format(name: str) -> None:
    told, report = MEMBERS[name], whole(name)
    assert sorted(KIND[name].hashed) == sorted(told["hashed"])
    assert report.keys() - set(told["hashed"]) == set(told["not_hashed"]) - {"audit_chain"}
    assert report.keys() >= set(told["hashed"])


@each_kind
def test_a_hash_is_what_another_implementation_computes(name: str) -> None:
    for report in (whole(name), reported(name)):
        assert report[MEMBERS[name]["hash"]] == report_hash(KIND[name], report) == ELSEWHERE[name](report)


@pytest.mark.parametrize(("name", "member"), [(name, member) for name in KIND for member in MEMBERS[name]["hashed"]])
def test_a_change_of_a_hashed_member_changes_the_hash(name: str, member: str) -> None:
    report = whole(name)
    told = report[MEMBERS[name]["hash"]]
    changed = {**report, member: other(report[member])}
    removed = {key: value for key, value in report.items() if key != member}
    for damaged in (changed, removed):
        assert report_hash(KIND[name], damaged) != told
        assert report_hash(KIND[name], damaged) == ELSEWHERE[name](damaged)


@each_kind
def test_a_hash_covers_nothing_else(name: str) -> None:
    report = whole(name)
    others = dict.fromkeys([*MEMBERS[name]["not_hashed"], "x"], "x")
    assert report_hash(KIND[name], report | others) == report[MEMBERS[name]["hash"]]


@each_kind
def test_what_was_not_sent_is_left_out_and_hashed_as_nothing(name: str) -> None:
    told, report = MEMBERS[name], reported(name)
    made = {"executed_at", *told["request"]} - {*REPORTS[name], "action_binding", *told["unsent"]}
    assert not made & report.keys()
    assert told["unsent"].items() <= report.items()
    assert report_hash(KIND[name], report | dict.fromkeys(made)) == report[told["hash"]]


@each_kind
def test_a_report_fits_its_published_schema_and_holds_nothing_that_is_not_in_it(name: str) -> None:
    schema = resources.schema(SCHEMAS[name])
    validator = jsonschema.Draft202012Validator({**schema, "required": sorted({*schema["required"]} - {"audit_chain"})})
    for report in (whole(name), reported(name)):
        validator.validate(report)
        assert report.keys() <= schema["properties"].keys()
    assert whole(name).keys() | {"audit_chain"} == schema["properties"].keys()


@each_kind
def test_the_request_may_hold_every_member_that_is_the_callers(name: str) -> None:
    properties = resources.schema(KIND[name].request)["properties"].keys()
    assert set(MEMBERS[name]["request"]) | set(KIND[name].must_match) == properties
    record = make_record()
    cited = {member: record[of_record] for member, of_record in KIND[name].must_match.items()}
    request = MEMBERS[name]["request"]
    report = reported(name, request | cited, record)
    kept = {**request, **cited, **executed(name)}
    if "action_binding" in request:
        kept["action_binding"] = {**record["action_binding"], **request["action_binding"]}
    assert report.items() >= kept.items()


def executed(name: str) -> dict[str, str]:
    return {} if name == "crm-sync" else {"executed_at": "2026-06-11T12:30:46.000Z"}


@each_kind
def test_building_a_report_changes_neither_request_nor_record(name: str) -> None:
    body, record = copy.deepcopy(MEMBERS[name]["request"]), make_record()
    reported(name, body, record)
    assert body == MEMBERS[name]["request"]
    assert record == make_record()


def test_an_empty_member_of_an_action_binding_is_bound_by_the_bindings_own_hash() -> None:
    with_note, without = ({"system": "crm", "note": ""}, {"system": "crm"})
    one, two = (reported("execution", {**REPORTS["execution"], "action_binding": b}) for b in (with_note, without))
    expected = {**make_record()["action_binding"], "note": ""}
    assert one["action_binding_hash"] == verifier.canonical_hash(expected) != two["action_binding_hash"]


@pytest.mark.parametrize("case", cases("binding_matches"), ids=lambda case: case["name"])
def test_a_binding_matches_where_it_names_what_was_decided(case: dict[str, Any]) -> None:
    record, sent = make_record(), dict(case["sent"])
    more = sent.pop("more", {})
    if sent.get("action_binding") == "decided":
        sent["action_binding"] = {**record["action_binding"], **more}
    report = reported("execution", {**REPORTS["execution"], **sent}, record)
    assert report["action_binding_match"] is case["match"]
    assert (report["action_binding"] == record["action_binding"]) is (case["match"] or not case.get("flagged", True))
    assert report["action_binding_hash"] == verifier.canonical_hash(report["action_binding"])
    expected = [BINDING_MISMATCH] if case.get("flagged", not case["match"]) else []
    assert report["flags"] == [*expected, *([ACTION_TAKEN_MISMATCH] if case.get("other_action") else [])]


def test_the_stored_binding_is_the_decisions_with_what_was_sent_in_its_place() -> None:
    sent = {"action_binding": {"resource": "deal-9", "note": ""}, "target_system": "erp", "mutation": "discount.update"}
    report = reported("execution", {**REPORTS["execution"], **sent})
    expected = {**make_record()["action_binding"], "resource": "deal-9", "note": "", "system": "erp"}
    assert report["action_binding"] == expected
    assert report["action_binding_hash"] == verifier.canonical_hash(expected)


_TARGET: Final = {"system": "target_system", "resource": "target_object_id", "mutation": "mutation"}


@st.composite
def named_members(draw: st.DrawFn) -> tuple[Any, dict[str, str]]:
    """A record whose context says some of what a binding may have, and some of its members, each with where it is sent:
    in action_binding, as a field of the target, or in both.
    """
    request = sample_request()
    optional = ("requested_action", "target_system", "target_object_id", "mutation", "actor", "subject", "amount")
    for name in draw(st.sets(st.sampled_from(optional))):
        del request["context"][name]
    record = make_record(request)
    binding = record["action_binding"]
    names = draw(st.sets(st.sampled_from(sorted(binding)), min_size=1))
    # A field of the target cannot be sent empty.
    ways = {
        name: ("binding", "target", "both") if name in _TARGET and binding[name] else ("binding",) for name in names
    }
    return record, {name: draw(st.sampled_from(ways[name])) for name in sorted(names)}


def naming(ways: Mapping[str, str], values: Mapping[str, Any]) -> dict[str, Any]:
    body: dict[str, Any] = {"execution_status": "executed"}
    for name, way in ways.items():
        if way in ("binding", "both"):
            body.setdefault("action_binding", {})[name] = values[name]
        if way in ("target", "both"):
            body[_TARGET[name]] = values[name]
    return body


@given(named_members(), st.sampled_from([None, "approve_discount", "wire_money"]))
@settings(max_examples=examples(size(30, 60)))
def test_any_part_of_the_true_binding_matches_whatever_action_was_taken(
    drawn: tuple[Any, dict[str, str]], action: str | None
) -> None:
    record, ways = drawn
    body = naming(ways, record["action_binding"]) | ({} if action is None else {"action_taken": action})
    report = reported("execution", body, record)
    assert (report["action_binding_match"], report["action_binding"]) == (True, record["action_binding"])
    assert report["flags"] == ([ACTION_TAKEN_MISMATCH] if action == "wire_money" else [])


@given(named_members(), st.data())
@settings(max_examples=examples(size(30, 60)))
def test_any_part_that_differs_in_one_member_does_not_match(drawn: tuple[Any, dict[str, str]], data: Any) -> None:
    record, ways = drawn
    binding = record["action_binding"]
    name = data.draw(st.sampled_from(sorted(ways)))
    values = json_values() if ways[name] == "binding" else st.text(st.characters(codec="utf-8"), min_size=1, max_size=9)
    true = verifier.canonical_hash(binding[name])
    false = data.draw(values.filter(lambda value: verifier.canonical_hash(value) != true))
    body = naming(ways, {**binding, name: false})
    if ways[name] == "both":
        # Once the true value and once the false one: the true one hides nothing.
        where = data.draw(st.sampled_from(["binding", "target", "neither"]))
        if where == "binding":
            body["action_binding"][name] = binding[name]
        elif where == "target":
            body[_TARGET[name]] = binding[name]
    report = reported("execution", body, record)
    assert report["action_binding_match"] is False
    assert verifier.canonical_hash(report["action_binding"][name]) == verifier.canonical_hash(false)
    assert report["flags"] == [BINDING_MISMATCH]
    assert report["action_binding_hash"] == verifier.canonical_hash(report["action_binding"])


def test_a_target_that_the_decision_left_open_matches_nothing() -> None:
    request = sample_request()
    for member in ("target_system", "target_object_id", "mutation"):
        del request["context"][member]
    report = reported("execution", {**REPORTS["execution"], "target_system": "crm"}, make_record(request))
    assert report["action_binding_match"] is False


@pytest.mark.parametrize(
    ("inputs", "verdict"), [({"discount_percent": 10, "margin_percent": 2}, "no"), ({"discount_percent": 40}, "review")]
)
@pytest.mark.parametrize("target", ["crm", "erp"])
def test_a_receipt_of_what_was_not_approved_is_made_and_flagged(
    inputs: dict[str, Any], verdict: str, target: str
) -> None:
    record = make_record(sample_request(**inputs))
    report = reported("execution", {**REPORTS["execution"], "target_system": target}, record)
    assert report["decision_verdict"] == record["verdict"] == verdict
    expected = [NOT_APPROVED, *([] if target == "crm" else [BINDING_MISMATCH])]
    assert report["flags"] == flags(report, record) == expected


@pytest.mark.parametrize(("name", "member"), [(kind.name, member) for kind in KINDS for member in kind.must_match])
def test_a_report_that_cites_another_record_is_refused(name: str, member: str) -> None:
    kind, record = KIND[name], make_record()
    true = record[kind.must_match[member]]
    for wrong in (f"{true}x", true.upper() if true != true.upper() else "x", ""):
        with pytest.raises(RequestRefused) as refused:
            reported(name, {**REPORTS[name], member: wrong}, record)
        assert refused.value.code == f"SVC_{kind.code}_RECORD_MISMATCH"
        assert [(error.field, error.code) for error in refused.value.errors] == [(member, "mismatch")]
        assert str(true) not in str(refused.value)
    assert reported(name, {**REPORTS[name], member: true}, record)[member] == true


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        ("2026-06-11T12:30:46.000Z", "2026-06-11T12:30:46.000Z"),
        ("2026-06-11T12:30:46Z", "2026-06-11T12:30:46.000Z"),
        ("2026-06-11T14:30:46.5+02:00", "2026-06-11T12:30:46.500Z"),
        ("2026-06-10T23:30:46.123999-13:00", "2026-06-11T12:30:46.123Z"),
    ],
)
def test_a_date_is_stored_in_utc_with_milliseconds(sent: str, stored: str) -> None:
    for name in ("execution", "outcome"):
        body = {**REPORTS[name], "executed_at": sent}
        report = reported(name, body)
        assert report["executed_at"] == stored
        assert report[KIND[name].input_hash_member] == verifier.canonical_hash(body)
