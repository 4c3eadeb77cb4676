"""One anomaly: its numbers, its decisions, where it leads; and who may dismiss and reopen it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gate.errors import AccessForbidden, GateError, NotFound, RequestRefused
from gate.instance.instance import Instance
from gate.ledger.access.authority import Scope
from gate.ledger.access.dismissals import FlaggedAnomaly
from tests.workbench.dashboard.pages.conftest import HOSTILE
from tests.workbench.dashboard.showing import NOW, MadeUpStore, read, require_harmless, visit
from tests.workbench.readings import readings
from tests.workbench.rollouts import POLICY, pricing, rollout
from workbench.dashboard.pages import anomaly
from workbench.dashboard.pages.decided import decisions
from workbench.dashboard.pages.visit import Visit
from workbench.dashboard.store.memo import Memo
from workbench.dashboard.views.location import Location
from workbench.dashboard.views.page import Form
from workbench.lake.reader import Snapshot

KINDS = ("lifecycle_break", "outcome_shift", "verdict_shift", "volume", "metric_outlier", "fact_drift")


@pytest.fixture
def store(instance: Instance, anomalous: Snapshot, memo: Memo) -> MadeUpStore:
    return MadeUpStore(instance, anomalous, memo)


def document(store: MadeUpStore, scope: Scope, kind: str, policy: str = "refunds") -> dict[str, Any]:
    """The first anomaly of a kind."""
    report = store.reports(visit(scope, "/anomalies").access).anomalies(policy)
    return next(each for each in report.body["anomalies"] if each["kind"] == kind)


def at(store: MadeUpStore, scope: Scope, kind: str = "outcome_shift", role: str = "author", **more: Any) -> Visit:
    """A look at the first anomaly of a kind."""
    id_ = document(store, scope, kind)["anomaly_id"]
    return visit(scope, f"/anomaly?scope=acme&policy=refunds&id={id_}", role, **more)


FINDINGS = {
    "outcome_shift": (
        "The share of outcomes that failed rose from 0.0% to 100.0%",
        ["Failed: 100% of 120 in the window, 0% of 192 before", "The share of outcomes that succeeded fell.", "-100.0"],
    ),
    "lifecycle_break": (
        "A receipt states another target than the decision: 672 of 672 decisions",
        ["672 decisions show it; these are the latest 20", "672 of the 672 decisions that could (100%)"],
    ),
    "verdict_shift": (
        "The share of reason OTHER fell from 100.0% to 50.0%",
        ["120 decisions of the window", "The share of reason refunds rose.", "50.0% of 120"],
    ),
    "volume": ("120 decisions in 1 week, where 24 are usual", ["5.0 times as many as usual", "List all of these"]),
    "metric_outlier": ("1 of 672 values of refunds lie far", ["1,000,000", "Open as notebook", "1 decision shows it"]),
    "fact_drift": ("Refunds", ["1 fact drifted, refunds most", "Decisions before", "The values of refunds changed."]),
}


def test_a_page_of_a_metric_that_shifted_has_its_levels_and_its_decisions(
    instance: Instance, memo: Memo, scope: Scope, tmp_path: Path
) -> None:
    chain = readings(lambda chance, week: chance.gauss(90, 20) + 90 * (week >= 7), weeks=16, per_week=40)
    store = MadeUpStore(instance, chain.snapshot(tmp_path), memo)
    told = document(store, scope, "metric_shift")
    page = anomaly.load(store, at(store, scope, "metric_shift"))
    found = read(page)
    for sentence in ("Values of reading are greater than before.", "Cliff's delta is +", "Median in the window"):
        assert sentence in found.text, sentence
    assert "<svg" in page.html
    assert "a median of" in page.title
    assert all(any(link.endswith(f"id={of}") for link in found.links) for of in told["decision_ids"])


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_says_what_it_is_why_and_which_decisions_show_it(store: MadeUpStore, scope: Scope, kind: str) -> None:
    page = anomaly.load(store, at(store, scope, kind))
    title, sentences = FINDINGS[kind]
    assert page.title.startswith(title)
    found = read(page)
    for sentence in sentences:
        assert sentence in found.text, sentence
    assert "<svg" in page.html
    assert document(store, scope, kind)["severity"] in found.text
    stories = [link for link in found.links if link.startswith("/decision?")]
    assert stories


@pytest.mark.parametrize("kind", KINDS)
def test_every_link_is_a_page_of_the_dashboard(store: MadeUpStore, scope: Scope, kind: str) -> None:
    for link in read(anomaly.load(store, at(store, scope, kind, narrow=True))).links:
        if link.startswith("/download/notebook?"):
            assert document(store, scope, kind)["anomaly_id"] in link
        else:
            assert Location.read(link).scope == "acme"


@pytest.mark.parametrize("kind", KINDS)
def test_the_list_of_all_its_decisions_is_exactly_those_that_show_it(
    store: MadeUpStore, scope: Scope, kind: str
) -> None:
    report = store.reports(visit(scope, "/anomalies").access).anomalies("refunds")
    place = report.body["anomalies"].index(document(store, scope, kind))
    links = read(anomaly.load(store, at(store, scope, kind))).links
    (url,) = {link for link in links if link.startswith("/decisions?") and "anomaly=" in link and "since=" not in link}
    page = decisions.load(store, visit(scope, url))
    assert page.title.startswith(f"{report.decisions(place).collect().height:,} decision")


def test_a_bar_of_a_broken_promise_leads_to_the_decisions_of_its_week_that_broke_it(
    store: MadeUpStore, scope: Scope
) -> None:
    links = read(anomaly.load(store, at(store, scope, "lifecycle_break"))).links
    weeks = [link for link in links if "anomaly=" in link and "since=" in link]
    assert len(weeks) == 24
    assert decisions.load(store, visit(scope, weeks[14])).title.startswith("120 decisions")


def test_the_steps_lead_to_pages_instead_of_the_api(store: MadeUpStore, scope: Scope) -> None:
    links = read(anomaly.load(store, at(store, scope))).links
    first = document(store, scope, "outcome_shift")["decision_ids"][0]
    assert "/policy?scope=acme&policy=refunds" in links
    assert f"/decision?scope=acme&id={first}" in links
    assert not any("/api/" in link for link in links)


def test_a_page_says_what_going_back_would_have_changed_where_a_new_version_came_with_it(
    instance: Instance, scope: Scope, tmp_path: Path
) -> None:
    chain = rollout(pricing("1"), pricing("2", floor=0))
    store = MadeUpStore(instance, chain.snapshot(tmp_path), Memo(100))
    id_ = document(store, scope, "outcome_shift", POLICY)["anomaly_id"]
    told = read(anomaly.load(store, visit(scope, f"/anomaly?scope=acme&policy={POLICY}&id={id_}")))
    assert (
        "Going back to version 1 would have changed the verdict of 20 of 60 decisions (33%). 20 of those with another "
        "verdict failed or were reverted." in told.text
    )
    assert "Changes in 2" in told.text
    assert f"/policy?scope=acme&policy={POLICY}&version=2" in told.links
    assert "Dry run of a return to 1: a notebook" in told.text
    (dry_run,) = [link for link in told.links if link.startswith("/download/dry-run?")]
    assert dry_run == f"/download/dry-run?scope=acme&policy={POLICY}&anomaly={id_}"
    access = visit(scope, "/anomaly").access
    assert "CANDIDATE = '1'" in store.dry_run(access, POLICY, id_).decode()
    with pytest.raises(NotFound):
        store.dry_run(access, POLICY, "ano_0")


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_says_nothing_of_going_back_where_no_new_version_came_with_it(
    store: MadeUpStore, scope: Scope, kind: str
) -> None:
    assert "oing back" not in read(anomaly.load(store, at(store, scope, kind))).text


@pytest.mark.parametrize(
    "given", ["", "&policy=refunds", "&policy=refunds&id=ano_0", "&policy=other&id=ano_0", "&id=ano_0"]
)
def test_an_anomaly_that_no_report_lists_is_refused(store: MadeUpStore, scope: Scope, given: str) -> None:
    with pytest.raises(NotFound) as refused:
        anomaly.load(store, visit(scope, f"/anomaly?scope=acme{given}"))
    assert refused.value.code == "DASHBOARD_ANOMALY_UNKNOWN"


def test_a_version_is_looked_at_alone(store: MadeUpStore, scope: Scope) -> None:
    here = at(store, scope)
    of_version = replace(here, location=replace(here.location, version="refunds"))
    page = anomaly.load(store, of_version)
    assert any("version=refunds" in link for link in read(page).links if link.startswith("/download/"))
    with pytest.raises(NotFound):
        anomaly.load(store, replace(here, location=replace(here.location, version="another")))


@pytest.mark.parametrize(("role", "acts"), [("viewer", []), ("author", ["dismiss"]), ("approver", ["dismiss"])])
def test_only_those_who_may_dismiss_see_the_form(store: MadeUpStore, scope: Scope, role: str, acts: list[str]) -> None:
    page = anomaly.load(store, at(store, scope, role=role))
    assert [form.act for form in page.forms] == acts
    assert ("cannot dismiss" in read(page).text) == (not acts)


@pytest.mark.parametrize("role", ["author", "approver"])
def test_an_anomaly_is_dismissed_and_reopened_with_notes_that_the_page_keeps(
    store: MadeUpStore, scope: Scope, role: str
) -> None:
    here = at(store, scope, role=role)
    (form,) = anomaly.load(store, here).forms
    anomaly.act(store, here, form, "A test of the <b>shop</b>.")
    page = anomaly.load(store, here)
    assert [each.act for each in page.forms] == ["reopen"]
    told = read(page).text
    assert "Dismissed by ada on 25 November 2026, 12:00 UTC: A test of the <b>shop</b>." in told
    assert "It did not grow since" in told
    anomaly.act(
        store, replace(here, access=at(store, scope, role=role, name="ben").access), page.forms[0], "It was none."
    )
    page = anomaly.load(store, here)
    assert [each.act for each in page.forms] == ["dismiss"]
    told = read(page).text
    assert "2 changes to the state of this anomaly, the last by ben" in told
    assert "Reopened by ben on 25 November 2026, 12:00 UTC" in told


def test_the_dismissal_keeps_what_the_report_said(store: MadeUpStore, scope: Scope) -> None:
    here = at(store, scope)
    anomaly.act(store, here, anomaly.load(store, here).forms[0], "Known.")
    of = document(store, scope, "outcome_shift")
    (kept,) = store.dismissals.history(scope.scope_id, of["anomaly_id"])
    assert kept.anomaly == FlaggedAnomaly(of["anomaly_id"], "refunds", of["severity"], of["anomaly_score"])
    assert (kept.acted_by, kept.note) == ("ada", "Known.")


def test_one_that_grew_since_says_how_much(store: MadeUpStore, scope: Scope) -> None:
    here = at(store, scope)
    weaker = FlaggedAnomaly(str(here.location.id), "refunds", "medium", 0.65)
    store.dismissals.dismiss(scope, weaker, "Small.", "ben", NOW)
    score = document(store, scope, "outcome_shift")["anomaly_score"]
    told = read(anomaly.load(store, here)).text
    assert f"It grew since: medium, score 0.65, then; high, score {score:.2f}, now." in told


@pytest.mark.parametrize("act", ["dismiss", "reopen"])
def test_a_viewer_who_forges_a_form_is_refused(store: MadeUpStore, scope: Scope, act: str) -> None:
    here = at(store, scope, role="viewer")
    if act == "reopen":
        author = at(store, scope)
        anomaly.act(store, author, anomaly.load(store, author).forms[0], "Known.")
    before = store.dismissals.history(scope.scope_id, str(here.location.id))
    with pytest.raises(AccessForbidden) as refused:
        anomaly.act(store, here, Form(act, "", "", str(here.location.id)), "note")
    assert refused.value.code == "DASHBOARD_FORBIDDEN"
    assert store.dismissals.history(scope.scope_id, str(here.location.id)) == before


def refusal(store: MadeUpStore, here: Visit, act: str, note: str = "note") -> str:
    with pytest.raises(GateError) as refused:
        anomaly.act(store, here, Form(act, "", "", str(here.location.id)), note)
    return refused.value.code


def test_the_second_who_dismisses_is_refused_and_nothing_is_done_twice(store: MadeUpStore, scope: Scope) -> None:
    here = at(store, scope)
    assert refusal(store, here, "reopen") == "ANOMALY_OPEN"
    anomaly.act(store, here, Form("dismiss", "", "", str(here.location.id)), "first")
    assert refusal(store, here, "dismiss") == "ANOMALY_DISMISSED"
    assert [act.note for act in store.dismissals.history(scope.scope_id, str(here.location.id))] == ["first"]


@pytest.mark.parametrize("note", ["", " \n", "x" * 1001])
def test_a_note_is_required(store: MadeUpStore, scope: Scope, note: str) -> None:
    here = at(store, scope)
    with pytest.raises(RequestRefused) as refused:
        anomaly.act(store, here, Form("dismiss", "", "", str(here.location.id)), note)
    assert refused.value.code == "ANOMALY_NOTE_INVALID"


def test_what_no_report_lists_cannot_be_dismissed(store: MadeUpStore, scope: Scope) -> None:
    elsewhere = visit(scope, "/anomaly?scope=acme&policy=refunds&id=ano_0")
    assert refusal(store, elsewhere, "dismiss") == "DASHBOARD_ANOMALY_UNKNOWN"
    assert store.dismissals.latest(scope.scope_id) == {}


@pytest.mark.parametrize("kind", KINDS)
def test_hostile_names_are_text(
    instance: Instance, scope: Scope, hostile: Snapshot, hostile_memo: Memo, kind: str
) -> None:
    store = MadeUpStore(instance, hostile, hostile_memo)
    id_ = document(store, scope, kind, HOSTILE)["anomaly_id"]
    location = Location("anomaly", scope=scope.name, policy=HOSTILE, id=id_)
    page = anomaly.load(store, replace(visit(scope, "/anomaly"), location=location))
    found = require_harmless(page)
    assert '"><img src=x onerror=1></script>' in found.text


def test_anomalies_of_the_same_time_name_each_other(store: MadeUpStore, scope: Scope) -> None:
    report = store.reports(visit(scope, "/anomalies").access).anomalies("refunds")
    named = {each["kind"]: each for each in report.body["anomalies"]}
    found = read(anomaly.load(store, at(store, scope, "outcome_shift")))
    others = [link for link in found.links if link.startswith("/anomaly?")]
    overlapping = {
        each["anomaly_id"]
        for kind, each in named.items()
        if kind in ("verdict_shift", "volume", "fact_drift")
        and each["window"]["from"] < named["outcome_shift"]["window"]["to"]
        and named["outcome_shift"]["window"]["from"] < each["window"]["to"]
    }
    assert overlapping
    assert {Location.read(link).id for link in others} == overlapping
    assert "At the same time" not in read(anomaly.load(store, at(store, scope, "lifecycle_break"))).text
