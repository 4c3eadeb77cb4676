"""Execution receipts, outcomes and CRM syncs: what each hash covers and what matches a binding."""

from __future__ import annotations

import copy
from typing import Any, Final

import jsonschema
import pytest

from gate.encoding import resources
from gate.errors import RequestRefused
from gate.records.receipts import BINDING_MISMATCH, KINDS, NOT_APPROVED, build, flags, report_hash
from gate.records.report_request import check_request
from tests.independent import verifier
from tests.support.receipts import ELSEWHERE, MEMBERS, SCHEMAS
from tests.support.samples import REPORTS, cases, make_record, sample_request

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
    report = reported(name, MEMBERS[name]["request"] | cited, record)
    assert report.items() >= {**MEMBERS[name]["request"], **cited, **executed(name)}.items()


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
    assert one["action_binding_hash"] == verifier.canonical_hash(with_note) != two["action_binding_hash"]


@pytest.mark.parametrize("case", cases("binding_matches"), ids=lambda case: case["name"])
def test_a_binding_matches_where_it_names_what_was_decided(case: dict[str, Any]) -> None:
    record, sent = make_record(), dict(case["sent"])
    more = sent.pop("more", {})
    if sent.get("action_binding") == "decided":
        sent["action_binding"] = {**record["action_binding"], **more}
    report = reported("execution", {**REPORTS["execution"], **sent}, record)
    assert report["action_binding_match"] is case["match"]
    assert report["action_binding"] == sent.get("action_binding", record["action_binding"])
    assert report["action_binding_hash"] == verifier.canonical_hash(report["action_binding"])
    assert report["flags"] == ([BINDING_MISMATCH] if case.get("flagged", not case["match"]) else [])


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
    assert report["flags"] == flags(report, record["action_binding"]) == expected


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
