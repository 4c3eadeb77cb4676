"""Advisory decisions in a scope that binding ones share: counted in the chain, marked in lists, and in no figure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jsonschema
import orjson
import pytest
from flask.testing import FlaskClient
from sqlalchemy import insert, select, update

from gate.encoding import resources
from gate.instance.audit import check_chain
from gate.instance.instance import Instance
from gate.labels import DECISION_CONTRACT
from gate.ledger.access.authority import Scope
from gate.ledger.chain.writer import Appended, NewEntry
from gate.ledger.tables import entries, latest_outcomes, outcome_counts, reviews
from gate.records.reports.resolution import Resolving, build_resolution, resolution_link
from gate.verify import verify_packet, verify_record
from tests.support.advice import NAMESAKE, QUESTIONS, Advice, advice, namesake_rulebook
from tests.support.samples import GRANT, sample_request

SEARCH = jsonschema.Draft202012Validator(resources.schema("decision-search"))


@pytest.fixture
def given(instance: Instance, key: str) -> Iterator[Advice]:
    """The scope of `key`, with binding and advisory decisions."""
    with advice(instance, key) as made:
        yield made


def test_the_chain_and_its_counts_have_all_of_it(given: Advice, instance: Instance, scope: Scope) -> None:
    assert check_chain(instance, scope.scope_id) == (given.entries, None)
    assert instance.ledger.entries.totals().entries == given.entries
    assert given.get("/api/decisions?limit=100")["count"] == 5 + len(QUESTIONS)


def test_a_list_marks_it(given: Advice) -> None:
    found = given.get("/api/decisions?limit=100")
    SEARCH.validate(found)
    advisory = {record["decision_id"] for record in given.advisory.values()}
    for each in found["decisions"]:
        contract = DECISION_CONTRACT if each["decision_id"] in advisory else None
        assert each.get("decision_contract") == contract
    assert given.get("/api/decisions?policy_id=advisory.multi")["count"] == 1
    yes = given.get("/api/decisions?verdict=yes&policy_id=advisory.single")["decisions"]
    assert sorted("decision_contract" in each for each in yes) == [False, False, True, True]


def test_confidence_never_counts_it(given: Advice) -> None:
    """Its outcomes were reported first, and all of them failed; those of the rulebook that has its name succeeded."""
    assert all("decision_confidence" not in record for record in given.advisory.values())
    request = {**sample_request(), "rulebook": namesake_rulebook()}
    told = given.post("/api/decide", request)["decision_confidence"]
    assert (told["similar_decisions"], told["level"]) == (1, "insufficient")
    told = given.post("/api/decide", sample_request())["decision_confidence"]
    assert told["similar_decisions"] == 1
    assert "decision_confidence" not in given.post("/api/decide", QUESTIONS["single"])
    report = given.get("/api/decision/policies/advisory.multi/confidence")
    assert sum(report["outcomes"].values()) == 0


def test_outcomes_of_advice_alone_begin_no_confidence(client: FlaskClient, key: str, instance: Instance) -> None:
    with advice(instance, key):
        pass
    with instance.ledger.store.read() as connection:
        counted = connection.execute(select(outcome_counts.c.policy_id)).scalars().all()
        latest = connection.execute(select(latest_outcomes.c.policy_id)).scalars().all()
    assert set(counted) == {"pricing_exception", NAMESAKE}
    assert sorted(latest) == sorted(["pricing_exception", NAMESAKE])


def test_a_count_of_it_that_somebody_added_is_found(given: Advice, instance: Instance, scope: Scope) -> None:
    decision_id = given.advisory["multi"]["decision_id"]
    with instance.ledger.store.write() as connection:
        row = connection.execute(
            select(entries)
            .where(entries.c.decision_id == decision_id, entries.c.entry_type == "outcome")
            .order_by(entries.c.position.desc())
            .limit(1)
        ).one()
        connection.execute(
            insert(latest_outcomes),
            {
                "scope_id": scope.scope_id,
                "decision_id": decision_id,
                "position": row.position,
                "outcome_status": "succeeded",
                "policy_id": "advisory.multi",
                "policy_version": "1",
                "verdict": "review",
                "action": "hold_for_binding_decision",
                "first_reported_at": row.created_at,
                "last_reported_at": row.created_at,
            },
        )
    _, finding = check_chain(instance, scope.scope_id)
    assert finding is not None
    assert (finding.table, finding.row) == ("latest_outcomes", decision_id)
    assert "advisory decisions are not counted" in finding.reason


def test_a_review_of_it_that_somebody_added_is_found(given: Advice, instance: Instance, scope: Scope) -> None:
    """With the row, the service would take a grant of advice."""
    record = given.advisory["multi"]
    with instance.ledger.store.write() as connection:
        row = connection.execute(select(entries).where(entries.c.entry_id == record["decision_id"])).one()
        connection.execute(
            insert(reviews),
            {
                "scope_id": scope.scope_id,
                "decision_id": record["decision_id"],
                "position": row.position,
                "state": "held",
                "owner": "",
                "policy_id": record["policy_id"],
                "action": record["action"],
                "created_at": row.created_at,
                "grant_seconds": 86_400,
            },
        )
    _, finding = check_chain(instance, scope.scope_id)
    assert finding is not None
    assert (finding.table, finding.row) == ("reviews", record["decision_id"])
    assert "somebody could grant it" in finding.reason


@pytest.mark.parametrize("name", ["single", "unclear", "multi"])
def test_a_grant_of_it_by_the_own_key_is_found(given: Advice, instance: Instance, scope: Scope, name: str) -> None:
    record: Any = given.advisory[name]
    expires_at = "2030-01-01T00:00:00.000Z"
    resolving = Resolving("granted", {"type": "key", "id": "k"}, record["created_at"], expires_at, GRANT)
    made = build_resolution(record, resolving, "res_0", instance.signers().receipt)
    entry = NewEntry(scope.scope_id, "res_0", resolution_link(made, record), orjson.dumps(made))
    assert isinstance(instance.ledger.entries.append(entry), Appended)
    read, finding = check_chain(instance, scope.scope_id)
    assert finding is not None
    assert (finding.table, finding.row, finding.position) == ("entries", "res_0", read)
    assert "was never held" in finding.reason


def test_a_confidence_of_it_that_somebody_added_is_found(given: Advice, instance: Instance, scope: Scope) -> None:
    decision_id = given.advisory["single"]["decision_id"]
    confidence = given.get(f"/api/decision/{given.binding['yes']['decision_id']}").get("decision_confidence")
    assert confidence is None
    with instance.ledger.store.write() as connection:
        connection.execute(
            update(entries).where(entries.c.entry_id == decision_id).values(confidence=b'{"score":1.0,"level":"high"}')
        )
    _, finding = check_chain(instance, scope.scope_id)
    assert finding is not None
    assert "but advisory decisions have none" in finding.reason


@pytest.mark.parametrize("name", QUESTIONS)
def test_its_packet_proves_it_and_judges_no_policy(given: Advice, instance: Instance, name: str) -> None:
    decision_id = given.advisory[name]["decision_id"]
    packet: dict[str, Any] = given.get(f"/api/decision/{decision_id}/packet?include_input=true")
    assert packet["decision_record"]["decision_contract"] == DECISION_CONTRACT
    assert "policy_intelligence" not in packet
    assert verify_packet(packet, instance.trust()).verified
    own: dict[str, Any] = given.get(f"/api/decision/{given.namesake[0]['decision_id']}/packet")
    assert own["policy_intelligence"]["confidence"]["outcomes"]["succeeded"] == 1


def test_what_is_left_of_an_erased_one_verifies(given: Advice, instance: Instance) -> None:
    record = given.get(f"/api/decision/{given.advisory['erased']['decision_id']}")
    assert record["evaluation"] is None
    assert "Lovelace" not in str(record)
    assert record["decision_contract"] == DECISION_CONTRACT
    result = verify_record(record, instance.trust())
    assert (result.verified, result.error) == (True, "MATERIAL_ERASED")
    assert given.report(record, "outcome", outcome_status="pending")["decision_verdict"] == "yes"
