"""The list of anomalies: the strongest first, of a period, and those dismissed only where that is asked for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gate.ids import timestamp
from gate.instance.instance import Instance
from gate.ledger.access.authority import Scope
from gate.ledger.access.dismissals import FlaggedAnomaly
from tests.workbench.dashboard.pages.conftest import HOSTILE
from tests.workbench.dashboard.showing import NOW, MadeUpStore, read, require_harmless, visit
from tests.workbench.made_up import DAY, HOUR, MONDAY, WEEK, MadeUp
from workbench.dashboard.pages import anomalies, anomaly
from workbench.dashboard.pages.anomalies import LOOKED_AT
from workbench.dashboard.pages.decided import decisions
from workbench.dashboard.store.memo import Memo
from workbench.dashboard.views.location import Location
from workbench.lake.reader import Snapshot


@pytest.fixture
def store(instance: Instance, anomalous: Snapshot, memo: Memo) -> MadeUpStore:
    return MadeUpStore(instance, anomalous, memo)


def ids(store: MadeUpStore, scope: Scope) -> list[str]:
    """The ids of all anomalies, the strongest first."""
    report = store.reports(visit(scope, "/anomalies").access).anomalies("refunds")
    return [anomaly["anomaly_id"] for anomaly in report.body["anomalies"]]


def listed(store: MadeUpStore, scope: Scope, url: str) -> list[str]:
    """The anomalies that a page leads to, in the order of its list."""
    shown = [Location.read(link) for link in read(anomalies.load(store, visit(scope, url))).links if "anomaly?" in link]
    return list(dict.fromkeys(str(location.id) for location in shown))


def test_all_kinds_of_a_scope_are_listed_with_their_severity_state_and_policy(store: MadeUpStore, scope: Scope) -> None:
    page = anomalies.load(store, visit(scope, "/anomalies?scope=acme"))
    assert page.title == "6 anomalies in 1 policy: 5 high and 1 medium; 5 are open"
    told = read(page)
    for sentence in (
        "Outcomes shifted The share of outcomes that failed rose from 0.0% to 100.0%.",
        "13 April 2026 to 19 April 2026",
        "high 0.97",
        "Found in 672 decisions",
        "1 shows it 1 decision past",
    ):
        assert sentence in told.text
    assert "<figure>" not in page.html
    assert listed(store, scope, "/anomalies?scope=acme") == ids(store, scope)


def test_one_policy_shows_its_anomalies_over_time_each_mark_leading_to_its_page(
    store: MadeUpStore, scope: Scope
) -> None:
    page = anomalies.load(store, visit(scope, "/anomalies?scope=acme&policy=refunds"))
    assert page.title == "6 anomalies in refunds: 5 high and 1 medium; 5 are open"
    drawing = str(page.html).partition("<figure>")[2].partition("</figure>")[0]
    assert all(f"id={anomaly_id}" in drawing for anomaly_id in ids(store, scope))
    names = ["policy", "version", "verdict", "since", "until", "clock", "value"]
    assert [choice.name for choice in page.filters] == names


@pytest.mark.parametrize(
    ("period", "number"),
    [
        # The week of the incident; all others but the broken promises are of it or of one day.
        ("since=2026-04-13&until=2026-04-19", 5),
        ("since=2026-04-20", 1),
        ("until=2026-04-12", 2),
        ("since=2026-02-10&until=2026-02-10", 2),
        ("since=2026-11-01", 0),
    ],
)
def test_a_period_keeps_those_whose_window_overlaps_it(
    store: MadeUpStore, scope: Scope, period: str, number: int
) -> None:
    url = f"/anomalies?scope=acme&policy=refunds&{period}"
    assert len(listed(store, scope, url)) == number
    page = anomalies.load(store, visit(scope, url))
    assert page.title.endswith(" in this period")
    assert ("Show all dates" in page.html) == (number == 0)


def test_dismissed_ones_are_hidden_and_counted_until_they_are_asked_for(store: MadeUpStore, scope: Scope) -> None:
    strongest, *others = ids(store, scope)
    store.dismissals.dismiss(scope, FlaggedAnomaly(strongest, "refunds", "high", 0.9), "A test.", "ben", NOW)
    page = anomalies.load(store, visit(scope, "/anomalies?scope=acme"))
    assert page.title.startswith("5 anomalies in 1 policy: 4 high and 1 medium")
    assert "1 dismissed anomaly is hidden." in read(page).text
    assert listed(store, scope, "/anomalies?scope=acme") == others
    assert "/anomalies?scope=acme&show=dismissed" in read(page).links
    shown = read(anomalies.load(store, visit(scope, "/anomalies?scope=acme&show=dismissed")))
    assert "dismissed by ben, 25 November 2026, 12:00 UTC" in shown.text
    assert "/anomalies?scope=acme" in shown.links
    assert listed(store, scope, "/anomalies?scope=acme&show=dismissed") == [strongest, *others]
    drawing = str(anomalies.load(store, visit(scope, "/anomalies?scope=acme&policy=refunds")).html)
    assert strongest not in drawing


def test_open_ones_alone_are_listed_and_counted_where_that_is_asked_for(store: MadeUpStore, scope: Scope) -> None:
    page = anomalies.load(store, visit(scope, "/anomalies?scope=acme&show=open"))
    assert page.title.startswith("5 anomalies in 1 policy: ")
    assert page.title.endswith("; all are open")
    assert "Open (5) Open and past (6) All, with dismissed (6)" in read(page).text
    opened = listed(store, scope, "/anomalies?scope=acme&show=open")
    store.dismissals.dismiss(scope, FlaggedAnomaly(opened[0], "refunds", "high", 0.9), "A test.", "ben", NOW)
    assert listed(store, scope, "/anomalies?scope=acme&show=open") == opened[1:]


def test_where_every_anomaly_was_dismissed_the_page_says_so(store: MadeUpStore, scope: Scope) -> None:
    for anomaly_id in ids(store, scope):
        store.dismissals.dismiss(scope, FlaggedAnomaly(anomaly_id, "refunds", "high", 0.9), "A test.", "ben", NOW)
    page = anomalies.load(store, visit(scope, "/anomalies?scope=acme&policy=refunds"))
    assert page.title == "No anomalies in refunds, except dismissed ones"
    assert "Every anomaly was dismissed." in read(page).text


def test_a_scope_without_decisions_says_how_to_begin(instance: Instance, scope: Scope, tmp_path: Path) -> None:
    page = anomalies.load(
        MadeUpStore(instance, MadeUp().snapshot(tmp_path), Memo(9)), visit(scope, "/anomalies?scope=acme")
    )
    assert page.title == "No decisions in scope acme yet"
    assert "POST /api/decide" in page.html


def test_decisions_without_anomalies_are_good_news(instance: Instance, scope: Scope, tmp_path: Path) -> None:
    chain = MadeUp()
    for number in range(30):
        chain.decide(MONDAY + number * DAY)
    store = MadeUpStore(instance, chain.snapshot(tmp_path), Memo(9))
    found = read(anomalies.load(store, visit(scope, "/anomalies?scope=acme&policy=elsewhere")))
    assert "Nothing stands out, and you have nothing to do." in found.text


def test_a_scope_of_many_policies_is_bounded_to_those_with_the_most_decisions(
    instance: Instance, scope: Scope, tmp_path: Path
) -> None:
    chain = MadeUp()
    for policy in range(LOOKED_AT + 2):
        for number in range(2 if policy == 7 else 1):
            chain.decide(MONDAY + (policy + number) * DAY, policy_id=f"policy_{policy:02}")
    # Its promise is broken, and it decides least.
    chain.receipt(chain.decide(MONDAY, verdict="no", policy_id="policy_07"), MONDAY + DAY)
    store = MadeUpStore(instance, chain.snapshot(tmp_path), Memo(99))
    page = anomalies.load(store, visit(scope, "/anomalies?scope=acme"))
    assert "leaves out 2 more policies" in read(page).text
    assert "in 20 policies" in page.title


@pytest.mark.parametrize("chosen", [True, False])
def test_hostile_names_are_text(
    instance: Instance, scope: Scope, hostile: Snapshot, hostile_memo: Memo, chosen: bool
) -> None:
    location = Location("anomalies", scope=scope.name, policy=HOSTILE if chosen else None)
    page = anomalies.load(
        MadeUpStore(instance, hostile, hostile_memo), replace(visit(scope, "/anomalies"), location=location)
    )
    found = require_harmless(page)
    assert '"><img src=x onerror=1></script>' in found.text


@pytest.fixture
def costly(instance: Instance, tmp_path: Path) -> MadeUpStore:
    """20 weeks of a policy of two verdicts. From week 16 on, those approved fail and lose 500 each; the others go well.
    Everything is recorded four weeks after it happened.
    """
    chain = MadeUp()
    for week in range(20):
        for number in range(30):
            happened = MONDAY + week * WEEK + number * 5 * HOUR
            recorded, approved = happened + 4 * WEEK, number % 2 == 0
            fails = approved and week >= 16
            decision_id = chain.decide(
                recorded, verdict="yes" if approved else "no", occurred_at=timestamp(happened), reason="R"
            )
            metrics = {"loss_eur": 500 if fails else 1 + number % 7}
            chain.outcome(decision_id, recorded + DAY, "failed" if fails else "succeeded", observed_metrics=metrics)
    # The outcomes of the last week are old enough to compare.
    chain.decide(MONDAY + 30 * WEEK, verdict="no", occurred_at=timestamp(MONDAY + 26 * WEEK), reason="R")
    return MadeUpStore(instance, chain.snapshot(tmp_path), Memo(99))


def effects(store: MadeUpStore, scope: Scope, query: str) -> str:
    """The text of a list."""
    return read(anomalies.load(store, visit(scope, f"/anomalies?scope=acme&policy=refunds{query}"))).text


def test_a_metric_says_what_each_anomaly_comes_to_and_orders_them_by_it(costly: MadeUpStore, scope: Scope) -> None:
    assert " of Loss (EUR)" not in effects(costly, scope, "")
    page = anomalies.load(costly, visit(scope, "/anomalies?scope=acme&policy=refunds&value=loss_eur"))
    told = read(page).text
    assert "then by the size of the effect in Loss (EUR), then by number of decisions" in told
    report = costly.reports(visit(scope, "/anomalies").access).anomalies("refunds", value="loss_eur").body
    worth = [each["effect"]["value"] for each in report["anomalies"]]
    assert any(value is not None and value > 10_000 for value in worth)
    for value in worth:
        assert value is None or f"{value:,.2f} of Loss (EUR)" in told
    order = [each["anomaly_id"] for each in report["anomalies"]]
    assert listed(costly, scope, "/anomalies?scope=acme&policy=refunds&value=loss_eur") == order
    (choice,) = [each for each in page.filters if each.name == "value"]
    assert list(getattr(choice, "options", {})) == ["", "loss_eur"]


def test_the_filters_go_along_to_the_page_of_one_anomaly_and_its_decisions(costly: MadeUpStore, scope: Scope) -> None:
    given = "&verdict=yes&clock=occurred&value=loss_eur"
    page = anomalies.load(costly, visit(scope, f"/anomalies?scope=acme&policy=refunds{given}"))
    (first, *_) = [link for link in read(page).links if link.startswith("/anomaly?")]
    found = Location.read(first)
    assert (found.verdict, found.clock, found.value) == ("yes", "occurred", "loss_eur")
    one = read(anomaly.load(costly, visit(scope, first)))
    assert "Covers only decisions with the verdict yes, dated as they happened" in one.text
    assert " of Loss (EUR)" in one.text
    back = next(link for link in one.links if link.startswith("/anomalies?"))
    assert Location.read(back).value == "loss_eur"
    (every,) = {of for of in one.links if of.startswith("/decisions?") and "anomaly=" in of and "since=" not in of}
    assert (Location.read(every).verdict, Location.read(every).clock) == ("yes", "occurred")
    again = next(link for link in read(decisions.load(costly, visit(scope, every))).links if "/anomaly?" in link)
    assert Location.read(again) == found.change(value=None)


def test_a_list_of_its_decisions_that_is_narrowed_further_leads_back_to_it(costly: MadeUpStore, scope: Scope) -> None:
    page = anomalies.load(costly, visit(scope, "/anomalies?scope=acme&policy=refunds"))
    one = next(Location.read(link) for link in read(page).links if link.startswith("/anomaly?"))
    narrower = one.to("decisions", anomaly=one.id, verdict="review", clock="occurred")
    assert decisions.load(costly, visit(scope, narrower)).title.startswith("No decision")
    back = read(decisions.load(costly, visit(scope, narrower))).links
    (again,) = [link for link in back if link.startswith("/anomaly?")]
    assert Location.read(again) == one


def test_a_verdict_and_the_dates_of_events_choose_what_is_looked_at(costly: MadeUpStore, scope: Scope) -> None:
    assert "failed rose" in effects(costly, scope, "&verdict=yes")
    assert "failed rose" not in effects(costly, scope, "&verdict=no")
    recorded, occurred = effects(costly, scope, ""), effects(costly, scope, "&clock=occurred")
    assert "25 May 2026" in recorded
    assert "27 April 2026" in occurred
    assert "27 April 2026" not in recorded


def test_a_metric_that_no_outcome_measured_is_said_to_have_no_value(costly: MadeUpStore, scope: Scope) -> None:
    told = "No outcome of these anomalies reports Gain (EUR), so no effect has a value."
    assert told in effects(costly, scope, "&value=gain_eur")
    assert told.replace("Gain", "Loss") not in effects(costly, scope, "&value=loss_eur")
