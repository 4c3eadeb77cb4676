"""The list of anomalies: the strongest first, of a period, and those dismissed only where that is asked for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gate.instance.instance import Instance
from gate.ledger.access.authority import Scope
from gate.ledger.access.dismissals import FlaggedAnomaly
from tests.workbench.dashboard.pages.conftest import HOSTILE
from tests.workbench.dashboard.showing import NOW, MadeUpStore, read, require_harmless, visit
from tests.workbench.made_up import DAY, MONDAY, MadeUp
from workbench.dashboard.pages import anomalies
from workbench.dashboard.pages.anomalies import LOOKED_AT
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
        "among 672 decisions",
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
    assert [choice.name for choice in page.filters] == ["policy", "version", "since", "until"]


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
    assert ("Look at all of the time" in page.html) == (number == 0)


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
    assert "Open (5) Open and past (6) All, dismissed ones as well (6)" in read(page).text
    opened = listed(store, scope, "/anomalies?scope=acme&show=open")
    store.dismissals.dismiss(scope, FlaggedAnomaly(opened[0], "refunds", "high", 0.9), "A test.", "ben", NOW)
    assert listed(store, scope, "/anomalies?scope=acme&show=open") == opened[1:]


def test_where_every_anomaly_was_dismissed_the_page_says_so(store: MadeUpStore, scope: Scope) -> None:
    for anomaly_id in ids(store, scope):
        store.dismissals.dismiss(scope, FlaggedAnomaly(anomaly_id, "refunds", "high", 0.9), "A test.", "ben", NOW)
    page = anomalies.load(store, visit(scope, "/anomalies?scope=acme&policy=refunds"))
    assert page.title == "No anomalies in refunds, besides those dismissed"
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
    assert "Nothing stands out." in found.text


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
    assert "2 more policies are left out" in read(page).text
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
