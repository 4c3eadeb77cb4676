"""A decision's story: of one that is whole, erased, tampered with, flagged, or made over an adapter's facts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import orjson
import pytest
from sqlalchemy import update

from gate.errors import NotFound, ServiceUnavailable
from gate.ledger.packing import pack
from gate.ledger.tables import entries
from tests.support.samples import sample_request
from tests.workbench.dashboard.decided import Read, Site, read, site
from tests.workbench.support import claim_request
from workbench.dashboard.views.decided.checks import WORDS


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with site(tmp_path_factory.mktemp("story") / "home") as made:
        yield made


def url(decision_id: str) -> str:
    return f"/decision?scope=acme&id={decision_id}"


def story(of: Site, decision_id: str) -> tuple[str, Read]:
    """A decision's title and page."""
    page = of.visit(url(decision_id))
    return page.title, read(page)


def rows_of(page: Read, result: str) -> list[str]:
    """The names of the checks with a result."""
    return [row[2] for row in page.rows if len(row) == 3 and row[1].startswith(result)]


def tamper(of: Site, change: Callable[[dict[str, Any]], object], *, kind: str = "decision", at: int = -1) -> None:
    """Changes the stored body of the latest entry of a kind."""
    store = of.instance.ledger.store
    scope_id = of.of.scope.scope_id
    head = of.instance.ledger.entries.head(scope_id).size
    position = head
    while True:
        stored = of.instance.ledger.entries.at(scope_id, position)
        assert stored is not None
        if stored.link["entry_type"] == kind:
            break
        position -= 1
    body = orjson.loads(stored.body)
    change(body)
    with store.write() as connection:
        connection.execute(
            update(entries)
            .where(entries.c.scope_id == scope_id, entries.c.position == position)
            .values(body=pack(orjson.dumps(body)))
        )


def test_a_story_says_what_was_decided_about_what_and_why(told: Site) -> None:
    title, page = story(told, told.chain.decide())
    assert title == "Yes: approve discount for deal-1042, because approve_standard_exception matched"
    assert "The request sent 2 facts" in page.text
    assert ["discount_percent", "10"] in [row[:2] for row in page.rows]
    assert "approve_standard_exception matched, rule 2 of 2" in page.text
    assert "discount_percent lte 15 holds the fact is 10" in page.text
    assert "Nothing was reported about it yet" in page.text
    assert rows_of(page, "does not hold") == []
    assert "Verified: " in page.text
    assert "All three signatures hold" in page.text


def test_rules_that_were_not_tried_are_said_so(told: Site) -> None:
    title, page = story(told, told.chain.decide(discount_percent=10, margin_percent=1))
    assert title.startswith("No: ")
    assert "block_below_margin_floor matched, rule 1 of 2" in page.text
    assert "approve_standard_exception not tried" in page.text


def test_facts_that_fail_the_schema_are_named(told: Site) -> None:
    title, page = story(told, told.chain.decide(discount_percent="ten"))
    assert title.endswith("because the facts failed the schema check")
    assert "None of 2 rules was tried" in page.text
    assert "The facts lack: margin_percent." in page.text
    assert "The fact discount_percent must be of type number, but is of type string." in page.text


def test_where_no_rule_matched_the_default_outcome_is_the_reason(told: Site) -> None:
    title, page = story(told, told.chain.decide(discount_percent=20, margin_percent=22))
    assert title.startswith("Review: ")
    assert title.endswith("because no rule matched")
    assert "None of 2 rules matched, so the default outcome decided" in page.text


def test_the_facts_of_an_adapter_are_shown_with_it(told: Site) -> None:
    title, page = story(told, told.chain.decide(claim_request()))
    assert title.endswith("because pay_small matched")
    assert "The adapter refund_facts made " in page.text
    assert ["share_of_payment_percent", "50.0"] in [row[:2] for row in page.rows]
    assert "refund_facts@1.0.0" in page.text
    assert rows_of(page, "does not hold") == []


@pytest.mark.parametrize(
    ("facts", "receipt", "flag"),
    [
        ({"discount_percent": 20, "margin_percent": 22}, {}, "DECISION_NOT_APPROVED"),
        ({}, {"target_object_id": "deal-7"}, "ACTION_BINDING_MISMATCH"),
        ({}, {"action_taken": "give_it_away"}, "ACTION_TAKEN_MISMATCH"),
    ],
)
def test_a_receipt_that_contradicts_the_decision_shows_why(
    told: Site, facts: dict[str, Any], receipt: dict[str, Any], flag: str
) -> None:
    decision_id = told.chain.decide(**facts)
    told.chain.execution(decision_id, "executed", **receipt)
    _, page = story(told, decision_id)
    assert "1 execution receipt was reported; 1 receipt contradicts the decision" in page.text
    assert f"{flag}: The " in page.text


def test_reports_stand_in_the_order_of_the_chain(told: Site) -> None:
    decision_id = told.chain.decide()
    told.chain.outcome(decision_id, "pending")
    told.chain.execution(decision_id)
    told.chain.crm_sync(decision_id)
    told.chain.outcome(decision_id, "succeeded", observed_metrics={"revenue_eur": 1234.5})
    _, page = story(told, decision_id)
    parts = ["Outcome: Pending", "Execution receipt: Executed", "CRM sync: Written", "Outcome: Succeeded"]
    places = [page.text.index(part) for part in parts]
    assert places == sorted(places)
    assert "1 execution receipt, 2 outcomes and 1 CRM sync were reported" in page.text
    assert "Revenue (EUR)1,234.5" in page.text


@pytest.mark.parametrize("body", [None, claim_request()], ids=["sent", "adapter"])
def test_what_was_erased_is_named_in_the_place_of_its_values(told: Site, body: dict[str, Any] | None) -> None:
    decision_id = told.chain.decide(body) if body else told.chain.decide(discount_percent=10, margin_percent=61)
    told.chain.erase(decision_id)
    title, page = story(told, decision_id)
    assert title.startswith("Yes: ")
    assert "Material erased." in page.text
    assert "The facts were erased" in page.text
    assert "The evaluation of the rules was erased" in page.text
    assert "The chain confirms the erasure" in page.text
    assert "asked for" in page.text
    assert "61" not in [row[1] for row in page.rows if len(row) == 2]
    assert rows_of(page, "does not hold") == []
    assert "facts_hash" in rows_of(page, "skipped")


def _attestation(record: dict[str, Any]) -> None:
    record["rulebook_attestation"]["bundle"]["outcome"]["reason_code"] = "OTHER"


@pytest.mark.parametrize(
    ("change", "failing"),
    [
        (lambda record: record.update(action="give_it_away"), "record_hash"),
        (lambda record: record.update(created_at="2026-01-01T00:00:00.000Z"), "record_hash"),
        (lambda record: record["action_binding"].update(resource="deal-9"), "record_hash"),
        (lambda record: record["evaluation"]["rules"][1]["tests"][0].update(passed=False), "evaluation"),
        (lambda record: record["evaluation"]["rules"][1]["tests"].pop(), "evaluation"),
        (lambda record: record["evaluation"].update(rules=None), "evaluation"),
        (lambda record: record.update(evaluation={}), "evaluation"),
        (lambda record: record.update(receipt_signature=f"ed25519:{'A' * 86}"), "receipt_signature"),
        (lambda record: record.update(policy_hash="0" * 64), "record_hash"),
        (lambda record: record.update(action_binding={}), "record_hash"),
        (lambda record: record.update(runtime_binding={}, rulebook={}, integrity={}), "rulebook"),
        (lambda record: record.update(evidence=[]), "evidence"),
        (_attestation, "bundle_hash"),
    ],
)
def test_a_record_that_was_changed_says_which_check_fails(
    told: Site, change: Callable[[dict[str, Any]], object], failing: str
) -> None:
    decision_id = told.chain.decide()
    tamper(told, change)
    _, page = story(told, decision_id)
    assert failing in rows_of(page, "does not hold")
    assert "Not verified." in page.text
    assert "gate chain check" in page.text


@pytest.mark.parametrize("change", [lambda record: record.pop("action"), lambda record: record.update(verdict=5)])
def test_a_record_without_its_fields_shows_the_checks_alone(
    told: Site, change: Callable[[dict[str, Any]], object]
) -> None:
    decision_id = told.chain.decide()
    tamper(told, change)
    title, page = story(told, decision_id)
    assert title.endswith("is unreadable: it was changed")
    assert "members" in rows_of(page, "does not hold")


def test_a_record_with_a_field_more_is_not_shown(told: Site) -> None:
    decision_id = told.chain.decide()
    tamper(told, lambda record: record.update(approved_by="the board"))
    with pytest.raises(ServiceUnavailable, match="approved_by"):
        story(told, decision_id)


def test_a_report_that_was_changed_says_so_and_the_others_stay(told: Site) -> None:
    decision_id = told.chain.decide()
    told.chain.outcome(decision_id, "pending")
    told.chain.outcome(decision_id, "succeeded")
    tamper(told, lambda report: report.update(outcome_status="failed"), kind="outcome")
    _, page = story(told, decision_id)
    assert "Outcome: Pending" in page.text
    assert "was changed after it was made" in page.text
    assert "Outcome: Failed" not in page.text


def test_record_and_packet_are_offered_with_the_command_that_verifies_them(told: Site) -> None:
    decision_id = told.chain.decide()
    _, page = story(told, decision_id)
    of_decision = [f"/download/{kind}?scope=acme&id={decision_id}" for kind in ("record", "packet")]
    assert page.downloads == [*of_decision, "/download/keys?scope=acme"]
    for command in (f"gate verify {decision_id}.json", f"gate verify-packet {decision_id}.packet.json"):
        assert f"{command} --registry receipt-keys.json" in page.text
    assert "http://gate.example/api/decision/receipt-keys" in page.text


def test_the_reason_is_said_in_words_with_the_facts_that_decided(told: Site) -> None:
    _, page = story(told, told.chain.decide(discount_percent=10, margin_percent=1))
    assert (
        "The answer is no, with the reason code MARGIN_FLOOR_BREACH, because the rule block_below_margin_floor "
        "matched. This fact decided it: margin_percent lt 15 the fact is 1" in page.text
    )
    _, page = story(told, told.chain.decide(discount_percent="ten"))
    assert "because the facts that were sent are incomplete or of the wrong type." in page.text
    _, page = story(told, told.chain.decide(discount_percent=20, margin_percent=22))
    assert "A person must review this" in page.text
    assert "because no rule matched, and the default outcome decided." in page.text


def test_the_target_is_named_and_every_moment_is_written_alike(told: Site) -> None:
    decision_id = told.chain.decide()
    told.chain.execution(decision_id)
    _, page = story(told, decision_id)
    assert "Aboutdeal-1042 All decisions about this target" in page.text
    assert page.links["All decisions about this target"] == "/decisions?scope=acme&target=deal-1042"
    moments = re.findall(r"(?:Decided|Reported)(\S+ \w+ \d{4})", page.text)
    assert len(moments) == 2
    assert not re.search(r"\d{4}-\d\d-\d\dT", page.text)


def test_a_decision_that_is_not_there_or_of_another_scope_is_refused_alike(told: Site) -> None:
    decision_id = told.chain.decide()
    refusals = set()
    for place, scope in ((url("dec_none"), "acme"), ("/decision?scope=acme", "acme"), (url(decision_id), "other")):
        with pytest.raises(NotFound) as refused:
            told.visit(place, scope)
        refusals.add(refused.value.message)
    assert len(refusals) == 1
    assert "key" not in refusals.pop()


def test_every_check_has_its_own_words(told: Site) -> None:
    stories = [told.chain.decide(), told.chain.decide(claim_request()), told.chain.decide(sample_request())]
    told.chain.erase(stories[2])
    for decision_id in stories:
        checks = told.store.ledger.story(told.of.scope.scope_id, decision_id).verification.checks
        assert checks.keys() <= WORDS.keys()
