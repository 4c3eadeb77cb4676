"""The queue of reviews and the page of one: what waits for whom, the story, the answer, and what follows from it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlencode

import pytest
from sqlalchemy import update

from gate.clock import utc_now
from gate.errors import AccessForbidden, GateError, NotFound, OperatorError, ServiceUnavailable
from gate.ids import parse_timestamp
from gate.ledger.tables import reviews
from tests.support.samples import sample_request
from tests.workbench.dashboard.decided import ALLOWED, HOSTILE, read
from tests.workbench.dashboard.reviewing import POLICY, Reviewers, reviewers
from workbench.dashboard.store.reviews import ROWS
from workbench.dashboard.views.location import LocationInvalid


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Reviewers]:
    with reviewers(tmp_path / "home") as made:
        yield made


@pytest.fixture(scope="module")
def queue(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reviewers]:
    """Sixty reviews of risk-desk, two of sales that are due soon or overdue, and one without an owner."""
    with reviewers(tmp_path_factory.mktemp("queue") / "home") as made:
        made.hold("nobody's")
        made.owned("risk-desk")
        for number in range(60):
            made.hold(f"deal-{number}")
        made.owned("sales", within=3 * 3600)
        made.hold("late", amount=1250, currency="EUR")
        made.site.chain.now += timedelta(minutes=30)
        made.hold("soon")
        made.site.chain.now += timedelta(hours=2, minutes=15)
        yield made


def url(page: str = "reviews", **filters: str) -> str:
    return f"/{page}?{urlencode({'scope': 'acme', **filters})}"


def test_the_queue_says_how_many_wait_by_owner_and_lists_the_oldest_first(queue: Reviewers) -> None:
    page = queue.visit(url())
    found = read(page)
    assert page.title == "63 reviews are waiting, the oldest for 2 days"
    assert found.text.index("1no owneroldest 2 days") < found.text.index("60risk-deskoldest 2 days")
    assert "2salesoldest 3 hours; 2 overdue or due within an hour" in found.text
    rows = [row for row in found.rows if len(row) == 6][1:]
    assert len(rows) == ROWS
    assert rows[0] == [
        "2 days",
        "no time limit",
        "Approve discount on nobody's, 1,200.5 EUR",
        POLICY,
        "NO_RULE_MATCHED",
        "no owner",
    ]
    more = read(queue.visit(found.links["Newer"]))
    rows += [row for row in more.rows if len(row) == 6][1:]
    targets = [row[2].rpartition(" on ")[2].partition(", ")[0] for row in rows]
    assert targets == ["nobody's", *(f"deal-{number}" for number in range(60)), "late", "soon"]
    assert "Newer" not in more.links
    assert read(queue.visit(more.links["First page"])).rows == found.rows


def test_overdue_and_soon_due_are_words_and_not_colours_alone(queue: Reviewers) -> None:
    page = queue.visit(url(owner="sales"))
    assert page.title == "2 reviews are waiting for sales, the oldest for 3 hours"
    rows = [row for row in read(page).rows if len(row) == 5][1:]
    assert [row[1] for row in rows] == ["overdue by 45 minutes", "due soon: in 45 minutes"]
    assert {row[1] for row in read(queue.visit(url(owner="risk-desk"))).rows[1:]} == {"no time limit"}


def test_the_time_that_is_left_is_not_understated(desk: Reviewers) -> None:
    desk.owned("sales", within=4 * 3600)
    decision_id = desk.hold("one")
    desk.site.chain.now += timedelta(seconds=40)
    assert read(desk.visit(url())).rows[1][1] == "due in 3 h 59 min"
    for page in ("review", "decision"):
        assert "due in 3 h 59 min" in read(desk.visit(url(page, id=decision_id))).text.replace("Due", "due")


def test_reviews_without_an_owner_have_a_filter(queue: Reviewers) -> None:
    page = queue.visit(read(queue.visit(url())).links["1"])
    assert page.title.startswith("1 review is waiting without an owner, ")
    assert "owner=%28nobody%29" in page.location.url


def test_a_state_that_there_is_not_is_an_error(queue: Reviewers) -> None:
    with pytest.raises(LocationInvalid, match="one of held, granted, refused, expired, executed"):
        queue.visit(url(state="open"))
    with pytest.raises(NotFound, match="no decision with that id"):
        queue.visit(url("review", id="dec_0"))
    assert queue.visit(url(state="refused")).title == "No review was refused"


def test_the_case_tells_what_was_asked_why_it_is_held_and_what_the_answer_is_bound_to(queue: Reviewers) -> None:
    decision_id = queue.site.chain.decided[-2]
    page = queue.visit(url("review", id=decision_id, owner="sales"))
    found = read(page)
    record = queue.site.store.ledger.story(queue.site.of.scope.scope_id, decision_id).record
    assert page.title.startswith("Held: ")
    assert page.title.endswith(" on late, 1,250 EUR")
    assert "held for sales Waiting for 3 hours; overdue by 45 minutes" in found.text
    assert "The verdict is review: no rule matched, and the default outcome of the rulebook applies." in found.text
    assert ["discount_percent", "20"] in found.rows
    for hash_ in (record["record_hash"], record["receipt_hash"]):
        assert hash_ in found.text
    assert found.links["next"] == url("review", owner="sales", id=queue.site.chain.decided[-1])
    assert "previous" not in found.links
    assert found.links["All waiting reviews"] == url(owner="sales")


def test_the_rule_that_matched_is_told_and_the_others_are_folded(desk: Reviewers) -> None:
    no_rule = str(desk.visit(url("review", id=desk.hold("one"))).html)
    assert "<details><summary>2 rules did not match</summary>" in no_rule
    request = sample_request(discount_percent=10, margin_percent=22)
    request["rulebook"]["version"] = "2026-06-12"
    request["rulebook"]["rules"][1]["outcome"] |= {"decision": "review", "verdict": "REVIEW"}
    page = desk.visit(url("review", id=desk.site.chain.decide(request)))
    told, _, folded = str(page.html).partition("<details><summary>1 other rule did not match</summary>")
    assert "the rule approve_standard_exception matched" in told
    assert "discount_percent lte 15 holds: the fact is 10." in told
    assert "block_below_margin_floor" not in told
    assert "The rule block_below_margin_floor did not match" in folded


def test_the_owner_reads_what_holding_means_for_them(desk: Reviewers) -> None:
    decision_id = desk.hold("one")
    of, waits = url("review", id=decision_id), "The proposed action waits until somebody grants it."
    held = read(desk.visit(of)).text
    assert waits in held
    assert "do not perform it" not in held
    desk.answer(decision_id)
    assert waits not in read(desk.visit(of)).text


def test_the_proposed_action_is_told_from_where_the_rulebook_sends_the_case(desk: Reviewers) -> None:
    found = read(desk.visit(url("review", id=desk.hold("one")))).text
    assert "Proposed actionapprove_discount" in found
    assert "The rulebook sends the case to route_to_owner, the action of its outcome;" in found
    found = read(desk.visit(url("review", id=desk.hold("two", requested_action="", mutation="")))).text
    assert "Actionroute_to_owner (from the rulebook; the request proposes none)" in found
    assert "Proposed action" not in found


def test_a_value_that_would_change_is_shown_as_it_is_and_as_it_is_proposed(desk: Reviewers) -> None:
    change = {"field_name": "industry", "current_value": "retail", "proposed_value": "wholesale"}
    found = read(desk.visit(url("review", id=desk.hold("company-1", **change))))
    assert ["industry", "retail", "wholesale"] in found.rows
    unchanged = read(desk.visit(url("review", id=desk.hold("company-2"))))
    assert ["Value", "Current", "Proposed"] in found.rows
    assert ["Value", "Current", "Proposed"] not in unchanged.rows


def test_the_granted_ones_say_until_when_they_are_open_and_which_ended(desk: Reviewers) -> None:
    first = desk.hold("one")
    desk.answer(first)
    resolution = desk.site.store.reviews.resolutions.standing(desk.site.of.scope.scope_id, first)["resolution"]
    assert resolution is not None
    ends = f"{parse_timestamp(resolution['expires_at']):%Y-%m-%d %H:%M}"
    assert [row[2] for row in granted_rows(desk)] == [f"open until {ends}"]
    desk.site.chain.now += timedelta(days=1)
    desk.answer(desk.hold("two"))
    second, earlier = granted_rows(desk)
    assert second[2].startswith("open until ")
    assert earlier[2] == f"ended {ends}"
    # An action that was executed is none of these, and waits for nothing.
    desk.site.chain.execution(first)
    assert len(granted_rows(desk)) == 1
    assert desk.visit(url(state="granted")).title == "Granted actions that are not executed yet"
    assert "open until" not in read(desk.visit(url(state="executed"))).text


def granted_rows(desk: Reviewers) -> list[list[str]]:
    return read(desk.visit(url(state="granted"))).rows[1:]


def test_an_action_that_was_executed_without_an_answer_is_told_to_who_answers(desk: Reviewers) -> None:
    decision_id = desk.hold("deal-1")
    told = "The action was reported as executed"
    assert told not in read(desk.visit(url("review", id=decision_id))).text
    desk.site.chain.execution(decision_id)
    found = read(desk.visit(url("review", id=decision_id)))
    assert told in found.text
    assert "A grant does not change that." in found.text
    assert "@data-answer" in found.elements


def test_an_executed_receipt_with_flags_is_told_where_the_review_was_answered(desk: Reviewers) -> None:
    decision_id = desk.hold("deal-1")
    desk.answer(decision_id)
    told = "has flags."
    assert told not in read(desk.visit(url("review", id=decision_id))).text
    desk.site.chain.execution(decision_id, target_object_id="something-else")
    assert told in read(desk.visit(url("review", id=decision_id))).text
    desk.site.chain.execution(decision_id)
    assert told not in read(desk.visit(url("review", id=decision_id))).text


def test_a_receipt_that_breaks_the_grant_is_told_though_the_state_is_executed(desk: Reviewers) -> None:
    late, other = desk.hold("late"), desk.hold("other")
    for decision_id in (late, other):
        desk.answer(decision_id)
    desk.site.chain.execution(other, action_taken="delete_the_deal")
    told = 'violated the grant. A receipt states a different action from the granted one: "delete_the_deal".'
    page = desk.visit(url("review", id=other))
    assert page.title.startswith("Granted and executed")
    assert told in read(page).text
    desk.site.chain.now += timedelta(days=2)
    desk.site.chain.execution(late)
    found = read(desk.visit(url("review", id=late))).text
    told = r"violated the grant\. A receipt is dated [-0-9: ]+ UTC, more than 5 minutes after the grant ended \("
    assert re.search(told, found)
    assert "another action" not in found
    # The page of the decision says the same, and does not call such a receipt in order.
    for decision_id in (late, other):
        found = read(desk.visit(url("decision", id=decision_id))).text
        assert "The execution violated the grant." in found
        assert "In order" not in found


def test_a_late_receipt_of_an_action_that_was_queued_in_time_is_in_order(desk: Reviewers) -> None:
    decision_id = desk.hold("one")
    desk.answer(decision_id)
    desk.site.chain.execution(decision_id, "queued")
    desk.site.chain.now += timedelta(days=2)
    desk.site.chain.execution(decision_id)
    found = read(desk.visit(url("decision", id=decision_id))).text
    assert found.count("Allowed: the owner granted the action first") == 2
    assert "The execution violated the grant" not in found


def test_only_an_approver_has_buttons_and_others_see_why_not(queue: Reviewers) -> None:
    of = url("review", id=queue.site.chain.decided[0])
    assert "button" in read(queue.visit(of)).elements
    found = read(queue.visit(of))
    assert "@data-answer" in found.elements
    assert found.links["Answer"] == "#answer"
    assert "no time limit. Answer. All waiting reviews" in found.text
    assert "g grant" in found.text
    for role in ("viewer", "author"):
        found = read(queue.visit(of, role=role))
        assert "@data-answer" not in found.elements
        assert "Answer" not in found.links
        assert "no time limit. All waiting reviews" in found.text
        assert "g grant" not in found.text
        assert f"ada has the role {role} in the scope acme, but only an approver can grant or refuse" in found.text


def test_an_answer_is_recorded_under_the_users_name_and_leads_to_the_next_review(desk: Reviewers) -> None:
    first, second = desk.hold("one"), desk.hold("two")
    assert desk.visit(url()).title == "2 reviews are waiting, the oldest for 1 hour"
    told = desk.answer(first, note=" Agreed. ", evidence="T-1\n\n T-2 \n")
    assert told["forget"] == first
    assert told["go"] == url("review", id=second, done=first)
    following = read(desk.visit(told["go"]))
    assert "Approve discount on one, 1,200.5 EUR: granted on " in following.text
    found = read(desk.visit(following.links["See it"]))
    assert "The review was granted by the user ada" in found.text
    assert "NoteAgreed." in found.text
    assert "EvidenceT-1 EvidenceT-2" in found.text
    assert "@data-answer" not in found.elements
    # The last one leads back to the queue.
    told = desk.answer(second, "refused")
    assert told["go"] == url(done=second)
    page = desk.visit(told["go"])
    assert page.title == "No review is waiting"
    assert "Approve discount on two, 1,200.5 EUR: refused on " in read(page).text
    assert desk.visit(url(state="refused")).title == "Reviews that were refused"


def test_the_next_review_is_one_of_the_owner_that_the_page_was_about(desk: Reviewers) -> None:
    desk.owned("sales")
    first = desk.hold("one")
    desk.owned("risk-desk")
    desk.hold("two")
    desk.owned("sales")
    third = desk.hold("three")
    assert desk.answer(first, owner="sales")["go"] == url("review", owner="sales", id=third, done=first)
    assert desk.answer(third, owner="sales")["go"] == url(owner="sales", done=third)


def test_of_two_approvers_the_second_learns_who_was_quicker(desk: Reviewers) -> None:
    decision_id = desk.hold("one")
    desk.answer(decision_id, "refused", "ben")
    told = desk.answer(decision_id, "granted", "ada", note="Agreed.")
    # The note is not forgotten, and the page tells the result where it stands, with nothing left to press.
    assert told == {"go": url("review", id=decision_id, done=decision_id)}
    page = desk.visit(told["go"])
    found = read(page)
    assert page.title == "Refused: Approve discount on one, 1,200.5 EUR"
    told_first = "Your answer was not recorded. The review already has an answer. The first answer is final."
    assert found.text.index(told_first) < found.text.index("The review was refused by the user ben")
    assert "Your unrecorded note" in found.text
    assert "@data-answer" not in found.elements
    # Everybody else, and the approver later on, see the resolution alone.
    assert "not recorded" not in read(desk.visit(url("review", id=decision_id))).text


def test_who_answers_twice_does_not_read_that_it_was_somebody_else(desk: Reviewers) -> None:
    decision_id = desk.hold("one")
    desk.answer(decision_id, "granted", "ada")
    found = read(desk.visit(desk.answer(decision_id, "refused", "ada")["go"])).text
    assert "Your answer was not recorded. The review already has an answer." in found
    assert "The review was granted by the user ada" in found
    assert "omebody else" not in found


def test_an_answer_after_the_time_limit_is_too_late(desk: Reviewers) -> None:
    desk.owned("sales", within=3600)
    decision_id = desk.hold("one")
    desk.site.chain.now += timedelta(hours=2)
    found = read(desk.visit(desk.answer(decision_id)["go"])).text
    assert "Your answer was not recorded. The review expired before your answer. The first answer is final." in found
    assert "The review was expired by the service itself" in found


@pytest.mark.parametrize("role", ["viewer", "author"])
def test_others_cannot_answer(desk: Reviewers, role: str) -> None:
    with pytest.raises(AccessForbidden, match="only an approver"):
        desk.answer(desk.hold("one"), role=role)


def test_an_answer_to_another_record_than_the_page_showed_is_refused(desk: Reviewers) -> None:
    with pytest.raises(GateError) as refused:
        desk.answer(desk.hold("one"), record_hash="0" * 64)
    assert refused.value.code == "SVC_RESOLUTION_RECORD_MISMATCH"


def test_an_answer_that_there_is_not_is_refused(desk: Reviewers) -> None:
    with pytest.raises(OperatorError, match="grant or refuse"):
        desk.answer(desk.hold("one"), "expired")


def test_similar_reviews_that_ended_are_counted(desk: Reviewers) -> None:
    for number, answer in enumerate(("granted", "granted", "refused")):
        desk.answer(desk.hold(f"deal-{number}"), answer)
    desk.answer(desk.hold("other", "other_policy"))
    page, chain = url("review", id=desk.hold("new")), desk.site.chain
    told = "Of the 3 latest reviews of the same policy and action that ended, {} and 1 was refused."
    assert told.format("2 were granted") in read(desk.visit(page)).text
    # Those that are executed are among the granted ones.
    chain.execution(chain.decided[0])
    assert told.format("2 were granted (1 of them was executed)") in read(desk.visit(page)).text
    chain.execution(chain.decided[1])
    assert told.format("2 were granted and all of them executed") in read(desk.visit(page)).text
    # One that ended is no number, and what expired was not answered.
    desk.owned("sales", within=60)
    for policy_id in ("expiring", "pricing_exception"):
        expiring = desk.hold("late", policy_id)
        chain.now += timedelta(hours=1)
        desk.answer(expiring)
    alone = read(desk.visit(url("review", id=desk.hold("after", "expiring")))).text
    assert "The latest review of the same policy and action that ended expired." in alone
    assert "1 was refused and 1 expired." in read(desk.visit(page)).text
    assert "latest review" not in read(desk.visit(url("review", id=desk.hold("new", "a_third")))).text


def test_the_overview_says_who_has_to_answer_and_leads_to_the_queue(desk: Reviewers) -> None:
    desk.owned("sales", within=2 * 3600)
    desk.hold("one")
    desk.hold("two")
    found = read(desk.visit("/?scope=acme"))
    told = "2 reviews are waiting for an answer, the oldest for 1 hour; 1 is overdue or due within an hour"
    assert told in found.text
    assert ["sales", "2", "1 hour", "1 due"] in found.rows
    assert found.links["sales"] == url(owner="sales")
    assert found.links["Show all reviews"] == url()


def test_the_decision_says_where_its_review_stands_and_that_a_receipt_is_in_order(desk: Reviewers) -> None:
    desk.owned("sales")
    decision_id = desk.hold("one")
    of = url("decision", id=decision_id)
    assert "The review is held for sales" in read(desk.visit(of)).text
    desk.answer(decision_id)
    desk.site.chain.execution(decision_id)
    found = read(desk.visit(of)).text
    assert "The review was granted by the user ada, and executed" in found
    assert "ada (claimed by the actor; not authenticated)" in found
    assert "verified entry 2 of the chain" in found
    assert "Allowed: the owner granted the action first, in entry 2 of the chain." in found
    assert "DECISION_NOT_APPROVED" not in found


def test_a_receipt_without_a_grant_before_it_contradicts_the_review(desk: Reviewers) -> None:
    decision_id = desk.hold("one")
    desk.site.chain.execution(decision_id)
    desk.answer(decision_id)
    found = read(desk.visit(url("decision", id=decision_id))).text
    assert "The verdict of the decision is review, and its owner did not grant the action before the receipt." in found
    assert "In order" not in found


def test_with_receipt_signing_off_a_grant_is_refused_and_a_refusal_is_not_verified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATE_RECEIPT_SIGNING", "off")
    with reviewers(tmp_path / "home") as desk:
        decision_id = desk.hold("one")
        with pytest.raises(ServiceUnavailable, match="Receipt signing is off, and an unsigned grant allows no action"):
            desk.answer(decision_id)
        text = read(desk.visit(url("review", id=decision_id))).text
        assert "The decision is not verified. The record has no receipt signature." in text
        assert "Do not answer it" not in text
        desk.answer(decision_id, "refused")
        shown = read(desk.visit(url("review", id=decision_id))).text
        assert "It is not signed, so it does not allow the action." in shown


def test_where_a_key_is_compromised_the_page_says_that_a_grant_opens_nothing(desk: Reviewers) -> None:
    held, granted, executed = (desk.hold(each) for each in ("held", "granted", "executed"))
    for decision_id in (granted, executed):
        desk.answer(decision_id)
    desk.site.chain.execution(executed)
    told = "is compromised, and it signed the record, so a grant permits nothing. The caller must ask again with"
    assert not [each for each in (held, granted, executed) if told in str(desk.visit(url("review", id=each)).html)]
    keys = desk.site.instance.receipt_keys
    active = keys.registry().active_key_id
    assert active is not None
    keys.compromise(active, utc_now(), utc_now())
    for each in (held, granted):
        assert told in read(desk.visit(url("review", id=each))).text
    # What was executed is past; and who grants the held one reads it once more.
    assert told not in read(desk.visit(url("review", id=executed))).text
    html = str(desk.visit(url("review", id=held)).html)
    assert "It may start once, within" not in html
    assert html.count(told) == 2


def test_a_review_that_was_changed_in_the_ledger_is_a_fault_on_the_page_of_its_decision(desk: Reviewers) -> None:
    decision_id = desk.hold("one")
    with desk.site.instance.ledger.store.write() as connection:
        connection.execute(update(reviews).values(state="granted"))
    found = read(desk.visit(url("decision", id=decision_id))).text
    assert "The review cannot be shown" in found
    assert f"the review of {decision_id} does not match its resolution" in found
    assert "The operator must run gate chain check" in found


def test_a_grant_says_until_when_it_is_valid(desk: Reviewers) -> None:
    decision_id = desk.hold("one")
    desk.answer(decision_id)
    of = url("review", id=decision_id)
    assert "The grantis valid until " in read(desk.visit(of)).text
    desk.site.chain.now += timedelta(days=2)
    assert "The grantended on " in read(desk.visit(of)).text


def test_no_name_becomes_a_part_of_a_page(desk: Reviewers) -> None:
    owner = '"><img src=x onerror=1> {{ 7*7 }}'
    desk.owned(owner)
    ids = [desk.hold(each) for each in HOSTILE if isinstance(each, str)]
    overview = desk.visit("/?scope=acme")
    desk.answer(ids[0], note="<script>alert(1)</script>", evidence='"><img src=x onerror=1>')
    allowed = ALLOWED | {
        *("form", "label", "input", "textarea", "button", "@name", "@type", "@value", "@rows", "@maxlength"),
        *("kbd", "@aria-describedby", "@aria-keyshortcuts", "@hidden", "@readonly", "details", "summary"),
    }
    pages = [url(), url(owner=owner), url(state="granted")]
    pages += [url("review", id=each, owner=owner, done=ids[0]) for each in ids]
    pages += [url("decision", id=each) for each in ids]
    assert not read(overview).elements & {"img", "script", "@onerror"}
    for each in pages:
        found = read(desk.visit(each))
        elements = {name for name in found.elements if not name.startswith("@data-")}
        assert elements <= allowed, elements - allowed
        assert all(link.startswith(("/", "#")) for link in found.links.values())


def test_what_is_confirmed_names_the_action(desk: Reviewers) -> None:
    decision_id = desk.hold("one", amount=40, currency="EUR")
    html = str(desk.visit(url("review", id=decision_id)).html)
    assert "You are about to grant this action: " in html
    assert " on one, 40 EUR. It may start once, within 1 day from now." in html
    assert "It stays held permanently." in html
