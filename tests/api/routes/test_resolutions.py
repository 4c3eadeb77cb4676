"""Resolutions of held decisions over HTTP: who may resolve, once, and what follows from it."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import jsonschema
import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from gate.clock import utc_now
from gate.decisions.reviews.standing import last_receipts
from gate.encoding import resources
from gate.encoding.canonical import content_hash
from gate.ids import parse_timestamp, timestamp
from gate.instance.instance import Instance
from gate.ledger.access.authority import Scope
from gate.ledger.chain.reviews import Terms
from gate.records.reports.breaches import last_executed_at
from gate.records.reports.receipts import EXECUTIONS
from gate.verify import Trust, verify_packet
from gate.verify.resolution import verify_resolution
from tests.api.deciding import decide
from tests.api.reporting import Caller, refused
from tests.independent import verifier
from tests.support.samples import sample_request

HELD: dict[str, Any] = {"discount_percent": 40, "margin_percent": 22}
GRANT = {
    "resolution": "granted",
    "resolved_by": "Maya Lindqvist",
    "note": "Agreed with the customer.",
    "evidence": ["T-1"],
}


class Owner(Caller):
    """A caller that also has a key with the access resolve."""

    def __init__(self, client: FlaskClient, key: str, instance: Instance, scope: Scope) -> None:
        super().__init__(client, key, instance, scope)
        self.owner = self.new_key("resolve")

    def held(self) -> Any:
        """A held decision."""
        record = self.decide(**HELD)
        assert record["verdict"] == "review"
        return record

    def resolve(
        self, record: dict[str, Any] | str, body: Any = None, *, key: str | None = None, used: str | None = None
    ) -> TestResponse:
        """Resolves a decision, by default with a grant of its owner."""
        decision_id = record if isinstance(record, str) else record["decision_id"]
        headers = {"x-api-key": self.owner if key is None else key}
        headers |= {} if used is None else {"x-idempotency-key": used}
        return self.client.post(
            f"/api/decision/{decision_id}/resolution",
            data=json.dumps(GRANT if body is None else body),
            content_type="application/json",
            headers=headers,
        )

    def standing(self, record: dict[str, Any], *, key: str | None = None) -> dict[str, Any]:
        """Where a review stands."""
        answer = self.client.get(
            f"/api/decision/{record['decision_id']}/resolution", headers={"x-api-key": key or self.key}
        )
        assert answer.status_code == 200
        body: dict[str, Any] = answer.get_json()
        schema = resources.schema("decision-resolution")
        jsonschema.Draft202012Validator({**schema["$defs"]["review"], "$defs": {**schema["$defs"]}}).validate(
            {**body, "resolution": None}
        )
        return body


@pytest.fixture
def owner(client: FlaskClient, key: str, instance: Instance, scope: Scope) -> Owner:
    return Owner(client, key, instance, scope)


def trust(instance: Instance) -> Trust:
    return instance.trust()


def test_a_grant_is_stored_signed_and_chained(owner: Owner, instance: Instance) -> None:
    record = owner.held()
    assert owner.standing(record)["state"] == "held"
    answer = owner.resolve(record, used="grant-1")
    assert answer.status_code == 201
    resolution = answer.get_json()
    jsonschema.Draft202012Validator(resources.schema("decision-resolution")).validate(resolution)
    # Every field that a resolution can have is there.
    assert resolution.keys() == resources.schema("decision-resolution")["properties"].keys()
    assert (resolution["resolution"], resolution["resolved_by"], resolution["note"]) == (
        "granted",
        "Maya Lindqvist",
        "Agreed with the customer.",
    )
    assert resolution["evidence_refs"] == ["T-1"]
    assert resolution["actor"] == {"type": "key", "id": owner.owner.split("_")[1]}
    assert resolution["resolution_input_hash"] == content_hash(GRANT)
    assert resolution["action_binding_hash"] == content_hash(record["action_binding"])
    lasts = parse_timestamp(resolution["expires_at"]) - parse_timestamp(resolution["recorded_at"])
    assert lasts == timedelta(days=1)
    assert answer.headers["x-decision-resolution-id"] == resolution["resolution_entry_id"]
    assert answer.headers["x-decision-resolution-hash"] == resolution["resolution_hash"]
    assert answer.headers["x-idempotency-status"] == "created"
    result = verify_resolution(resolution, record, trust(instance))
    assert (result.verified, result.error) == (True, None)
    standing = owner.standing(record)
    assert (standing["state"], standing["resolution"]) == ("granted", resolution)
    # The record itself stays as it was made.
    path = f"/api/decision/{record['decision_id']}"
    assert owner.client.get(path, headers={"x-api-key": owner.key}).get_json()["verdict"] == "review"


def test_a_used_idempotency_key_replays_and_another_payload_conflicts(owner: Owner) -> None:
    record = owner.held()
    first = owner.resolve(record, used="grant-1")
    again = owner.resolve(record, used="grant-1")
    assert (again.status_code, again.get_json()) == (200, first.get_json())
    assert again.headers["x-idempotency-status"] == "replayed"
    body = refused(
        owner.resolve(record, {**GRANT, "resolution": "refused"}, used="grant-1"),
        409,
        "SVC_RESOLUTION_IDEMPOTENCY_CONFLICT",
    )
    assert body["resolution_entry_id"] == first.get_json()["resolution_entry_id"]


@pytest.mark.parametrize("second", ["granted", "refused", "expired"])
@pytest.mark.parametrize("first", ["granted", "refused", "expired"])
def test_a_resolution_is_final(owner: Owner, first: str, second: str) -> None:
    record = owner.held()
    assert owner.resolve(record, {"resolution": first, "resolved_by": "Maya"}).status_code == 201
    size = owner.size()
    body = refused(owner.resolve(record, {"resolution": second, "resolved_by": "Ben"}), 409, "SVC_RESOLUTION_FINAL")
    assert body["review_state"] == first
    assert owner.size() == size


def test_of_many_approvers_at_once_one_resolves(owner: Owner) -> None:
    record = owner.held()
    answers = ["granted", "refused"] * 8

    def resolve(answer: str) -> int:
        return owner.resolve(record, {"resolution": answer, "resolved_by": "Maya"}).status_code

    with ThreadPoolExecutor(8) as pool:
        found = sorted(pool.map(resolve, answers))
    assert found == [201, *[409] * 15]
    assert owner.size() == 2


def test_only_a_review_is_resolved(owner: Owner) -> None:
    for inputs in ({"discount_percent": 10, "margin_percent": 22}, {"discount_percent": 10, "margin_percent": 2}):
        record = owner.decide(**inputs)
        refused(owner.resolve(record), 409, "SVC_RESOLUTION_NOT_HELD")
        standing = owner.standing(record)
        assert (standing["state"], standing["owner"], standing["resolution"]) == (None, None, None)
    refused(owner.resolve("dec_00000000000000000000000000000000"), 404, "SVC_DECISION_NOT_FOUND")


def test_a_key_needs_the_access_resolve_which_full_does_not_hold(owner: Owner) -> None:
    record = owner.held()
    for key in (owner.key, owner.new_key("report", "read")):
        refused(owner.resolve(record, key=key), 403, "SVC_RESOLUTION_UNAUTHORIZED")
    refused(owner.resolve(record, key="dgk_x_y"), 401, "SVC_RESOLUTION_UNAUTHORIZED")
    owner.disable(owner.owner)
    refused(owner.resolve(record), 403, "SVC_RESOLUTION_UNAUTHORIZED")
    assert owner.standing(record)["state"] == "held"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"resolved_by": "Maya"}, "resolution"),
        ({"resolution": "granted"}, "resolved_by"),
        ({"resolution": "yes", "resolved_by": "Maya"}, "resolution"),
        ({"resolution": "granted", "resolved_by": ""}, "resolved_by"),
        ({"resolution": "granted", "resolved_by": "  "}, "resolved_by"),
        ({"resolution": "granted", "resolved_by": "Maya\x1b[8m"}, "resolved_by"),
        ({"resolution": "granted", "resolved_by": "Maya\nBen"}, "resolved_by"),
        ({"resolution": "granted", "resolved_by": "Maya", "notes": "x"}, "notes"),
        ({"resolution": "granted", "resolved_by": "Maya", "note": "x" * 2001}, "note"),
        ({"resolution": "granted", "resolved_by": "Maya", "evidence": "T-1"}, "evidence"),
        ({"resolution": "granted", "resolved_by": "Maya", "evidence": [""]}, "evidence[0]"),
        ({"resolution": "granted", "resolved_by": "Maya", "note": "password: hunter2-Hunter2!"}, "note"),
    ],
)
def test_a_body_that_is_no_resolution_is_refused_by_field(owner: Owner, body: dict[str, Any], field: str) -> None:
    record = owner.held()
    answer = refused(owner.resolve(record, body), 422, "SVC_API_REQUEST_INVALID")
    assert [error["field"] for error in answer["errors"]] == [field]
    assert owner.standing(record)["state"] == "held"


@pytest.mark.parametrize("cited", ["decision_record_hash", "decision_receipt_hash"])
def test_a_resolution_of_another_record_than_the_stored_one_is_refused(owner: Owner, cited: str) -> None:
    record = owner.held()
    refused(owner.resolve(record, {**GRANT, cited: "0" * 64}), 422, "SVC_RESOLUTION_RECORD_MISMATCH")
    own = {"decision_record_hash": record["record_hash"], "decision_receipt_hash": record["receipt_hash"]}
    assert owner.resolve(record, {**GRANT, **own}).status_code == 201


@pytest.mark.parametrize(
    ("answer", "flags", "state"),
    [
        (None, ["DECISION_NOT_APPROVED"], "held"),
        ("granted", [], "executed"),
        ("refused", ["DECISION_NOT_APPROVED"], "refused"),
        ("expired", ["DECISION_NOT_APPROVED"], "expired"),
    ],
)
def test_a_receipt_is_in_order_only_behind_a_grant(
    owner: Owner, instance: Instance, answer: str | None, flags: list[str], state: str
) -> None:
    record = owner.held()
    before = owner.report(EXECUTIONS, record["decision_id"], {"execution_status": "queued"}).get_json()
    assert before["flags"] == ["DECISION_NOT_APPROVED"]
    if answer is not None:
        assert owner.resolve(record, {"resolution": answer, "resolved_by": "Maya"}).status_code == 201
    after = owner.report(EXECUTIONS, record["decision_id"], {"execution_status": "executed"}).get_json()
    assert after["flags"] == flags
    assert owner.standing(record)["state"] == state
    path = f"/api/decision/{record['decision_id']}/packet"
    packet = owner.client.get(path, headers={"x-api-key": owner.key}).get_json()
    assert ("resolution" in packet) == (answer is not None)
    result = verify_packet(packet, trust(instance))
    assert (result.verified, result.error) == (True, None)


@pytest.mark.parametrize(
    ("said", "flags", "state"),
    [
        ({}, [], "executed"),
        ({"action_taken": "approve_discount"}, [], "executed"),
        ({"action_taken": "approve_rebate"}, ["ACTION_TAKEN_MISMATCH"], "executed"),
        ({"target_system": "crm", "target_object_id": "deal-7"}, [], "executed"),
        ({"target_system": "crm", "target_object_id": "deal-8"}, ["ACTION_BINDING_MISMATCH"], "granted"),
        ({"action_binding": {"proposed_action": "approve_rebate"}}, ["ACTION_BINDING_MISMATCH"], "granted"),
        ({"execution_status": "queued"}, [], "granted"),
        ({"execution_status": "failed"}, [], "granted"),
    ],
)
def test_a_granted_action_is_executed_once_a_receipt_about_this_very_target_says_so(
    owner: Owner, instance: Instance, scope: Scope, said: dict[str, Any], flags: list[str], state: str
) -> None:
    request = sample_request(**HELD)
    request["context"] |= {"requested_action": "approve_discount", "target_system": "crm", "target_object_id": "deal-7"}
    record = decide(owner.client, owner.key, request).get_json()
    decision_id = record["decision_id"]
    assert owner.resolve(record).status_code == 201
    receipt = owner.report(EXECUTIONS, decision_id, {"execution_status": "executed", **said}).get_json()
    assert receipt["flags"] == flags
    assert owner.standing(record)["state"] == state
    assert found(owner, f"state={state}") == [(state, None, decision_id)]
    # Whatever was executed, an owner hears of it.
    is_executed = receipt["execution_status"] == "executed"
    reported_at = receipt["reported_at"] if is_executed else None
    receipts = last_receipts(instance.ledger, scope.scope_id, decision_id)
    assert last_executed_at(receipts) == reported_at
    owner.report(EXECUTIONS, decision_id, {"execution_status": "executed"})
    assert owner.standing(record)["state"] == "executed"


def test_a_review_keeps_the_owner_and_time_limit_that_were_set_when_it_began(
    owner: Owner, instance: Instance, scope: Scope
) -> None:
    before = owner.held()
    owners = instance.ledger.review_owners
    owners.set(scope, "", "", Terms("everybody", None, 60), utc_now())
    owners.set(scope, "pricing_exception", "", Terms("pricing desk", 3600, 600), utc_now())
    owners.set(scope, "pricing_exception", "another_action", Terms("nobody", 1, 1), utc_now())
    after = owner.held()
    assert [owner.standing(record)["owner"] for record in (before, after)] == [None, "pricing desk"]
    due_at = owner.standing(after)["due_at"]
    assert parse_timestamp(due_at) - parse_timestamp(after["created_at"]) == timedelta(hours=1)
    granted = owner.resolve(after).get_json()
    assert parse_timestamp(granted["expires_at"]) - parse_timestamp(granted["recorded_at"]) == timedelta(minutes=10)
    later = utc_now() + timedelta(days=300)
    assert owners.reassign(scope, "", "", later) == 1
    standing = owner.standing(before)
    assert standing["owner"] == "pricing desk"
    # Counted from its decision, the limit would have been over long ago.
    assert standing["due_at"] == timestamp(later + timedelta(hours=1))


def test_an_answer_after_the_time_limit_is_too_late(owner: Owner, instance: Instance, scope: Scope) -> None:
    instance.ledger.review_owners.set(scope, "pricing_exception", "", Terms("pricing desk", 1, 600), utc_now())
    record = owner.held()
    later = parse_timestamp(owner.standing(record)["due_at"])
    late = instance.resolutions(lambda: later)
    authority = instance.ledger.directory.authenticate(owner.owner, utc_now())
    with pytest.raises(Exception, match="SVC_RESOLUTION_FINAL"):
        late.resolve(authority, record["decision_id"], GRANT)
    standing = owner.standing(record)
    assert standing["state"] == "expired"
    assert standing["resolution"]["actor"] == {"type": "service", "id": "gate"}
    assert standing["resolution"]["expires_at"] == standing["due_at"]
    assert verify_resolution(standing["resolution"], record, trust(instance)).verified


def test_the_service_lets_reviews_expire_on_time_and_once(owner: Owner, instance: Instance, scope: Scope) -> None:
    instance.ledger.review_owners.set(scope, "", "", Terms("pricing desk", 60, 600), utc_now())
    records = [owner.held() for _ in range(3)]
    owner.resolve(records[0])
    due = max(parse_timestamp(owner.standing(record)["due_at"]) for record in records)
    early = instance.resolutions(lambda: due - timedelta(seconds=30))
    assert early.expire_due(lambda review, error: pytest.fail(str(error))) == 0
    on_time = instance.resolutions(lambda: due)
    assert on_time.expire_due(lambda review, error: pytest.fail(str(error))) == 2
    assert on_time.expire_due(lambda review, error: pytest.fail(str(error))) == 0
    assert [owner.standing(record)["state"] for record in records] == ["granted", "expired", "expired"]


def test_one_review_expires_on_time_and_no_other(owner: Owner, instance: Instance, scope: Scope) -> None:
    instance.ledger.review_owners.set(scope, "", "", Terms("pricing desk", 60, 600), utc_now())
    first, second, granted = (owner.held() for _ in range(3))
    owner.resolve(granted)
    due = max(parse_timestamp(owner.standing(record)["due_at"]) for record in (first, second, granted))
    early, on_time = instance.resolutions(lambda: due - timedelta(seconds=30)), instance.resolutions(lambda: due)
    assert not early.expire(scope.scope_id, first["decision_id"])
    assert on_time.expire(scope.scope_id, first["decision_id"])
    assert not on_time.expire(scope.scope_id, first["decision_id"])
    assert not on_time.expire(scope.scope_id, granted["decision_id"])
    assert [owner.standing(record)["state"] for record in (first, second, granted)] == ["expired", "held", "granted"]


def found(owner: Owner, query: str) -> list[tuple[Any, ...]]:
    """State, owner and decision of what a search finds, through all of its pages."""
    listed: list[tuple[Any, ...]] = []
    cursor = ""
    while True:
        answer = owner.client.get(f"/api/decisions?{query}{cursor}", headers={"x-api-key": owner.key})
        assert answer.status_code == 200, answer.get_json()
        body = answer.get_json()
        jsonschema.Draft202012Validator(resources.schema("decision-search")).validate(body)
        listed += [(each.get("state"), each.get("owner"), each["decision_id"]) for each in body["decisions"]]
        if body["next_cursor"] is None:
            return listed
        cursor = f"&cursor={body['next_cursor']}"


def test_reviews_are_found_by_state_owner_and_age_in_either_order(
    owner: Owner, instance: Instance, scope: Scope
) -> None:
    instance.ledger.review_owners.set(scope, "", "", Terms("desk", 3600, 60), utc_now())
    owner.decide(discount_percent=10, margin_percent=22)
    ids = [owner.held()["decision_id"] for _ in range(5)]
    instance.ledger.review_owners.set(scope, "", "", Terms("others", None, 60), utc_now())
    ids.append(owner.held()["decision_id"])
    owner.resolve(ids[1])
    owner.resolve(ids[2], {"resolution": "refused", "resolved_by": "Maya"})
    owner.report(EXECUTIONS, ids[1], {"execution_status": "executed"})
    held = [ids[0], ids[3], ids[4]]
    assert found(owner, "state=held&limit=1") == [
        ("held", "others", ids[5]),
        *(("held", "desk", id_) for id_ in reversed(held)),
    ]
    assert found(owner, "state=held&owner=desk&order=oldest&limit=2") == [("held", "desk", id_) for id_ in held]
    assert found(owner, "state=executed") == [("executed", "desk", ids[1])]
    assert found(owner, "state=refused&policy_id=pricing_exception") == [("refused", "desk", ids[2])]
    assert found(owner, "state=held&policy_id=another") == []
    assert found(owner, "state=held&verdict=yes") == []
    assert found(owner, "state=held&min_age=3600") == []
    assert len(found(owner, "state=held&min_age=0")) == 4
    # Without a state every review still says where it stands, and nothing else does.
    assert [each[0] for each in found(owner, "")] == ["held", "held", "held", "refused", "executed", "held", None]


def test_a_granted_review_says_when_its_grant_ends_as_its_resolution_does(owner: Owner) -> None:
    granted, executed, refused_ = (owner.held()["decision_id"] for _ in range(3))
    ends = {each: owner.resolve(each).get_json()["expires_at"] for each in (granted, executed)}
    owner.resolve(refused_, {"resolution": "refused", "resolved_by": "Maya"})
    owner.report(EXECUTIONS, executed, {"execution_status": "executed"})
    owner.held()
    body = owner.client.get("/api/decisions", headers={"x-api-key": owner.key}).get_json()
    listed = {each["decision_id"]: each["grant_ends_at"] for each in body["decisions"]}
    assert {each: listed.pop(each) for each in ends} == ends
    assert set(listed.values()) == {None}
    assert len(listed) == 2


@pytest.mark.parametrize("query", ["owner=desk", "order=oldest", "state=open", "order=best", "state=held&min_age=-1"])
def test_a_search_that_cannot_be_made_is_refused(owner: Owner, query: str) -> None:
    answer = owner.client.get(f"/api/decisions?{query}", headers={"x-api-key": owner.key})
    refused(answer, 400, "SVC_API_QUERY_INVALID")


@pytest.mark.parametrize(
    ("taken", "flags"),
    [
        ("approve_discount", []),
        ("route_to_owner", []),
        ("delete_account", ["ACTION_TAKEN_MISMATCH"]),
    ],
)
def test_behind_a_grant_the_proposed_action_is_the_decided_one(
    owner: Owner, instance: Instance, taken: str, flags: list[str]
) -> None:
    record = owner.held()
    assert (record["action"], record["action_binding"]["proposed_action"]) == ("route_to_owner", "approve_discount")
    owner.resolve(record)
    executed = {"execution_status": "executed", "action_taken": taken}
    receipt = owner.report(EXECUTIONS, record["decision_id"], executed).get_json()
    assert receipt["flags"] == flags
    path = f"/api/decision/{record['decision_id']}/packet"
    packet = owner.client.get(path, headers={"x-api-key": owner.key}).get_json()
    assert verify_packet(packet, trust(instance)).verified
    assert verifier.packet_failures(packet, instance.receipt_keys.registry().to_dict()) == []
