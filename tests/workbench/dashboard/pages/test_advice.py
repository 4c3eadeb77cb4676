"""Advisory decisions on the dashboard: marked wherever they are, shown as advice, and counted by no policy's page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import orjson
import pytest
from sqlalchemy import update

from gate.clock import utc_now
from gate.errors import OperatorError
from gate.ledger.access.authority import FULL_ACCESS
from gate.ledger.packing import pack
from gate.ledger.tables import entries
from tests.support.advice import MODEL, NAMESAKE, QUESTIONS, Advice, advice
from tests.workbench.dashboard.decided import HOSTILE, Read, Site, read, site
from workbench.dashboard.views.decided.checks import WORDS, WORDS_OF_ADVICE
from workbench.dashboard.views.page import Choice

MARK = "Advisory: authorizes nothing"


@dataclass
class Told:
    """A dashboard over a scope with advice."""

    site: Site
    given: Advice

    def story(self, name: str) -> tuple[str, Read]:
        """The title and the page of an advisory decision."""
        page = self.site.visit(f"/decision?scope=acme&id={self.given.advisory[name]['decision_id']}")
        return page.title, read(page)

    def page(self, url: str) -> tuple[str, Read]:
        """The title and the page at a URL."""
        page = self.site.visit(url)
        return page.title, read(page)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    with site(tmp_path_factory.mktemp("advice") / "home") as made:
        key, _ = made.instance.ledger.directory.create_key(made.of.scope, FULL_ACCESS, None, utc_now())
        with advice(made.instance, key) as given:
            yield Told(made, given)


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("single", "Advisory, authorizes nothing: the model answered yes about order-7"),
        ("refused", "Advisory, authorizes nothing: the model answered no about order-8"),
        ("unclear", "Advisory, authorizes nothing: the model answered unclear about order-9"),
        ("multi", "Advisory, authorizes nothing: the model scored 3 options for order-10"),
        ("runtime", "Advisory, authorizes nothing: the model recommended refund for order-11"),
        ("erased", "Advisory, authorizes nothing: the model's answer about order-12 was erased"),
    ],
)
def test_a_story_says_first_that_it_authorizes_nothing(told: Told, name: str, title: str) -> None:
    shown, page = told.story(name)
    assert shown == title
    assert f"{MARK}. A model answered a question; no rulebook decided." in page.text
    assert "request a binding decision in mode rulebook" in page.text
    assert f"The verdict is {told.given.advisory[name]['verdict']} and authorizes nothing" in page.text
    assert "May be acted onfalse" in page.text
    for of_binding in ("rule matched", "The rules", "Matched rule", "fact", "Confidence at that time", "Evaluation"):
        assert of_binding not in page.text, of_binding


def test_a_story_shows_question_mode_model_and_answer(told: Told) -> None:
    _, page = told.story("single")
    for shown in ("May we refund order 7?", MODEL, "single", "advisory.single, version 1", "The model answered yes"):
        assert shown in page.text
    assert "The case is covered by the terms." in page.text


@pytest.mark.parametrize("name", ["multi", "runtime"])
def test_a_story_shows_the_scores_the_highest_first(told: Told, name: str) -> None:
    _, page = told.story(name)
    options = [row for row in page.rows if len(row) == 3 and row[2].startswith("Reason ")]
    assert [(row[0].split()[0], row[1], row[2]) for row in options] == [
        ("refund", "90", "Reason 0."),
        ("replace", "69.5", "Reason 1."),
        ("decline", "49", "Reason 2."),
    ]
    assert [("recommended" in row[0]) for row in options] == [name == "runtime", False, False]


def test_nothing_can_be_changed_or_tried_again_from_a_story(told: Told) -> None:
    for name in QUESTIONS:
        _, page = told.story(name)
        assert not any("whatif" in url or "/policy?" in url for url in page.links.values())
        assert {"form", "select"} & page.elements == set()
        # Only these lead away: what else is about its target, its files, and what stands in the checks.
        assert page.downloads


def test_the_address_of_a_what_if_is_answered_with_the_reason(told: Told) -> None:
    for name in ("multi", "erased"):
        decision_id = told.given.advisory[name]["decision_id"]
        with pytest.raises(OperatorError, match=f"{decision_id} is advisory") as refused:
            told.site.visit(f"/whatif?scope=acme&id={decision_id}")
        assert refused.value.code == "DECISION_ADVISORY"


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_check_has_words_that_fit_advice(told: Told, name: str) -> None:
    _, page = told.story(name)
    checks = {row[2]: row for row in page.rows if len(row) == 3 and row[2] in {**WORDS, **WORDS_OF_ADVICE}}
    skipped = {"evaluation", "input_hash"} if name == "erased" else set()
    assert {check for check, row in checks.items() if not row[1].startswith("holds")} == skipped
    assert {check: checks[check][0] for check in ("decision_contract", "binding_members", "advice")} == {
        "decision_contract": "The record says that it authorizes nothing",
        "binding_members": "The record has no field of a binding decision",
        "advice": "Verdict, reason code and action follow from the model's answer",
    }
    assert not any(re.search("rule|facts", row[0]) for row in checks.values())
    assert f"Verified: {len(checks) - len(skipped)} checks hold, none fails" in page.text
    assert "The signature holds" in page.text
    assert "policy reports" not in page.text


def test_an_erased_one_shows_nothing_of_question_and_answer(told: Told) -> None:
    _, page = told.story("erased")
    assert "Lovelace" not in page.text
    assert "The verdict, its date, and the prompt template remain." in page.text
    assert "Material erased. The record keeps the hash of the answer." in page.text
    skipped = {row[2]: row[1] for row in page.rows if len(row) == 3 and row[1].startswith("skipped")}
    assert skipped["evaluation"].split(maxsplit=1)[1] == "The model's answer was erased"
    assert "The chain confirms the erasure" in page.text


def test_what_was_reported_about_it_is_no_approval(told: Told) -> None:
    _, page = told.story("runtime")
    assert "DECISION_NOT_APPROVED: The decision is advisory and approves nothing." in page.text
    assert "1 receipt contradicts the decision" in page.text
    _, page = told.story("refused")
    assert "Nothing was reported about it, and nothing has to be" in page.text
    assert "POST /api/decision/ID/execution" not in page.text


def test_a_list_marks_each_of_it(told: Told) -> None:
    for url in ("/decisions?scope=acme", "/decisions?scope=acme&rule=advisory", "/decisions?scope=acme&target=order-7"):
        _, page = told.page(url)
        rows = [row for row in page.rows if len(row) == 8 and row[0][:2] == "20"]
        assert rows
        for row in rows:
            assert ("ADVISORY_" in row[4]) == (MARK in row[3]) == ("no rulebook (advisory)" in row[4])
    title, page = told.page("/decisions?scope=acme&rule=advisory")
    assert title == f"{len(QUESTIONS)} decisions are advisory"
    assert told.page("/decisions?scope=acme&state=advisory")[0] == "2 decisions are advisory and have no receipt"
    filters = told.site.visit("/decisions?scope=acme").filters
    policies = next(each for each in filters if isinstance(each, Choice) and each.name == "policy")
    assert {"advisory.multi", "advisory.runtime", NAMESAKE, "pricing_exception"} <= policies.options.keys()


def test_nothing_of_it_waits_for_a_reviewer(told: Told) -> None:
    title, page = told.page("/held?scope=acme")
    assert title.startswith("1 decision is held")
    assert "ADVISORY" not in page.text


def test_the_overview_counts_policies_and_names_what_it_leaves_out(told: Told) -> None:
    title, page = told.page("/?scope=acme")
    assert title == "2 policies: 3 things need attention"
    assert "advisory.single: 2 of 4 decisions were executed or queued without a yes." in page.text
    assert "The figures exclude 6 advisory decisions. Advisory decisions authorize nothing." in page.text
    assert page.links["6 advisory decisions"] == "/decisions?scope=acme&rule=advisory"
    assert sorted(row[:2] for row in page.rows if len(row) == 8 and row[0] != "Policy") == [
        [NAMESAKE, "2"],
        ["pricing_exception", "3"],
    ]


def test_a_policy_page_counts_none_of_it(told: Told) -> None:
    title, page = told.page(f"/policy?scope=acme&policy={NAMESAKE}")
    assert title == f"Too few let-through cases to judge {NAMESAKE}: 1 of at least 20"
    assert "ADVISORY" not in page.text
    title, page = told.page("/policy?scope=acme&policy=advisory.multi")
    assert title == "No decisions by advisory.multi"
    assert "advisory.multi is the name of advisory decisions." in page.text
    assert page.links["advisory decisions"] == "/decisions?scope=acme&policy=advisory.multi&rule=advisory"


def test_what_was_done_on_its_word_is_listed(told: Told) -> None:
    page = told.page("/anomalies?scope=acme")[1]
    for policy_id in ("advisory.multi", "advisory.runtime", NAMESAKE):
        assert policy_id in page.text
    assert "Executed or queued without a yes: 2 of 4 decisions." in page.text


def test_what_a_model_wrote_is_shown_as_text(told: Told) -> None:
    """The names are those of the request, and all reasons the model's."""
    given = told.given
    for text in (of for of in HOSTILE if len(of) <= 1000 and "\x00" not in of):
        given.upstream.answer({"answer": "yes", "reason": text})
        given.advisory["hostile"] = given.post("/api/decide", {"question": text, "context": {"target_object_id": text}})
        _, page = told.story("hostile")
        assert {"script", "img", "svg", "@onerror", "@src"} & page.elements == set()
    del given.advisory["hostile"]


def test_a_record_that_was_made_to_look_binding_is_not_verified(told: Told) -> None:
    decision_id = told.given.advisory["unclear"]["decision_id"]
    scope_id = told.site.of.scope.scope_id
    ledger = told.site.instance.ledger
    entry = ledger.entries.decision(scope_id, decision_id)
    assert entry is not None
    before, changed = pack(entry.body), orjson.loads(entry.body)
    changed["evaluation"]["answer"]["answer"] = "yes"

    def store(body: bytes) -> None:
        with ledger.store.write() as connection:
            connection.execute(update(entries).where(entries.c.entry_id == decision_id).values(body=body))

    store(pack(orjson.dumps(changed)))
    try:
        _, page = told.story("unclear")
    finally:
        store(before)
    assert "Not verified" in page.text
    assert MARK in page.text
    failing = [row[2] for row in page.rows if len(row) == 3 and row[1].startswith("does not hold")]
    assert {"evaluation", "advice"} <= set(failing)
