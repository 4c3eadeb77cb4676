"""A policy's page: what its title says, how its filters narrow it, and that every number leads to what it counts."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import cast

import pytest

from tests.workbench.dashboard.policies import HOSTILE, MadeUpStore, Read, decided, read, require_harmless
from tests.workbench.made_up import DAY, MONDAY, MadeUp, rulebook_of
from workbench.dashboard.store.access import Access
from workbench.dashboard.views.location import Location
from workbench.dashboard.views.page import Choice, Page
from workbench.dashboard.views.policy import MOST_FLAGGED
from workbench.engines.listing import Criteria, find_decisions
from workbench.lake.reader import Snapshot


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    return decided(tmp_path_factory.mktemp("lake"))


@pytest.fixture(scope="module")
def store(snapshot: Snapshot) -> MadeUpStore:
    return MadeUpStore(snapshot)


@pytest.fixture(scope="module")
def usual(store: MadeUpStore) -> tuple[Page, Read]:
    page = store.page("/policy?scope=acme")
    return page, read(page)


@pytest.fixture(scope="module")
def plain(store: MadeUpStore, usual: tuple[Page, Read]) -> Read:
    """All that pages are made of where names are plain."""
    urls = ("?scope=acme&policy=refunds&version=v2", "?policy=refunds&verdict=no", "?policy=trials")
    whole = [usual[1], *(read(store.page(f"/policy{url}")) for url in urls)]
    return Read(shape={part for found in whole for part in found.shape})


def behind(snapshot: Snapshot, url: str) -> int:
    """How many decisions the page of decisions finds at a URL."""
    of = Location.read(url)
    since, until = of.period()
    criteria = Criteria(
        policy_id=of.policy,
        policy_version=of.version,
        verdict=of.verdict,
        reason_code=of.reason,
        rule=of.rule,
        since=since,
        until=until,
        state=of.state,
        outcome_status=of.outcome,
    )
    return find_decisions(snapshot, criteria, limit=1).total


def counts(found: Read) -> list[tuple[str, int]]:
    """The links to decisions whose text begins with a number."""
    told = [(url, text.split()[0].replace(",", "")) for url, text in found.links if text and "/decisions" in url]
    return [(url, int(number)) for url, number in told if number.isdecimal()]


def test_without_a_policy_it_is_the_one_with_the_most_decisions(usual: tuple[Page, Read]) -> None:
    page, _ = usual
    assert page.location == Location("policy", scope="acme", policy="refunds")
    offered = {each.name: each.options for each in page.filters if isinstance(each, Choice)}
    assert list(offered["policy"]) == ["refunds", "trials"]
    assert list(offered["version"]) == ["", "v2", "v1"]


def test_the_title_is_the_finding_with_its_numbers(usual: tuple[Page, Read]) -> None:
    page, found = usual
    assert (
        page.title == "refunds: Version v2 succeeded in 33% of 90 let-through cases, the others in 87% of 150 like ones"
    )
    assert "1 of 2 versions does worse than the others: v2" in found.headings
    assert "Recommendation Review version" in found.text


def test_every_number_leads_to_as_many_decisions(usual: tuple[Page, Read], snapshot: Snapshot) -> None:
    links = counts(usual[1])
    assert len(links) > 30
    assert [(url, number) for url, number in links if behind(snapshot, url) != number] == []


@pytest.mark.parametrize("filters", ["&version=v2", "&verdict=yes&since=2026-01-14&until=2026-01-27"])
def test_with_filters_too_every_number_leads_to_as_many_decisions(
    store: MadeUpStore, snapshot: Snapshot, filters: str
) -> None:
    found = read(store.page(f"/policy?scope=acme&policy=refunds{filters}"))
    assert counts(found)
    assert [(url, number) for url, number in counts(found) if behind(snapshot, url) != number] == []


def test_marks_of_charts_lead_to_decisions_within_the_filters(store: MadeUpStore, snapshot: Snapshot) -> None:
    page = store.page("/policy?scope=acme&policy=refunds&verdict=yes&since=2026-01-14&until=2026-01-27")
    marks = [Location.read(url) for url, text in read(page).links if text.endswith("shows these decisions")]
    assert len(marks) > 5
    assert {mark.verdict for mark in marks} == {"yes"}
    # The first week begins before the period, and the last ends after it.
    assert min(mark.since or "" for mark in marks) == "2026-01-14"
    assert max(mark.until or "" for mark in marks) == "2026-01-27"
    assert all(behind(snapshot, mark.url) for mark in marks)


def test_a_version_is_compared_with_the_others(store: MadeUpStore) -> None:
    page = store.page("/policy?scope=acme&policy=refunds&version=v2")
    found = read(page)
    assert (
        page.title
        == "Version v2 of refunds succeeded in 33% of 90 let-through cases, the others in 87% of 150 like ones"
    )
    assert ("/policy?scope=acme&policy=refunds", "Show all decisions of the policy") in found.links
    assert "Only decisions by version v2." in found.text
    # The table still has both.
    assert {row[0] for row in found.rows if row} >= {"v1", "v2 (shown)"}


def test_rules_that_never_hit_are_named(store: MadeUpStore, usual: tuple[Page, Read]) -> None:
    assert "1 rule never hit: small.never." in usual[1].text
    narrowed = read(store.page("/policy?scope=acme&policy=refunds&verdict=review")).text
    assert "never hit" not in narrowed
    assert "2 rules made none of these decisions: small, small.never." in narrowed


def test_where_filters_leave_nothing_each_can_be_taken_away(store: MadeUpStore) -> None:
    page = store.page("/policy?scope=acme&policy=refunds&verdict=no&since=2026-01-14")
    assert page.title == "No decisions by refunds match these filters"
    found = read(page)
    assert "refunds has no decision with the verdict no and made from 14 January 2026 on." in found.text
    assert [(text, url) for url, text in found.links] == [
        ("all verdicts", "/policy?scope=acme&policy=refunds&since=2026-01-14"),
        ("all time", "/policy?scope=acme&policy=refunds&verdict=no"),
        ("everything", "/policy?scope=acme&policy=refunds"),
    ]


def test_a_policy_that_does_not_exist_is_said_not_to(store: MadeUpStore) -> None:
    page = store.page("/policy?scope=acme&policy=refunds2")
    assert page.title == "No decisions by refunds2"
    assert "Choose another policy in the list" in read(page).text
    assert next(each.name for each in page.filters) == "policy"


def test_an_empty_scope_says_how_to_begin(tmp_path: Path) -> None:
    page = MadeUpStore(MadeUp().snapshot(tmp_path)).page("/policy?scope=acme")
    assert page.title == "No policy has made a decision yet"
    assert "POST /api/decide" in read(page).text


def test_without_outcomes_it_says_so_and_what_to_send(store: MadeUpStore) -> None:
    page = store.page("/policy?scope=acme&policy=trials")
    found = read(page)
    assert page.title == "3 decisions by trials, none with a final outcome yet: 100% yes"
    assert "No success rate yet: no decision has a final outcome" in found.headings
    assert "POST /api/decision/ID/outcome " in found.text
    assert "observed_metrics" in found.text


def test_thin_data_are_marked_in_words(tmp_path: Path) -> None:
    chain = MadeUp()
    for number in range(5):
        chain.outcome(chain.decide(MONDAY + number * DAY), MONDAY + (number + 1) * DAY)
    page = MadeUpStore(chain.snapshot(tmp_path)).page("/policy?scope=acme")
    assert page.title == "Too few let-through cases to judge refunds: 5 of at least 20"
    assert "of 5 cases, too few to judge" in read(page).text


def test_six_metrics_are_charted_and_the_others_listed(tmp_path: Path) -> None:
    found = read(MadeUpStore(decided(tmp_path, metrics=8)).page("/policy?scope=acme&version=v2"))
    assert sum(heading.startswith("The median of small") for heading in found.headings) == 6
    assert found.headings[-1] == "More metrics, with fewer values"
    assert {row[0] for row in found.rows[-2:]} == {"Small6", "Small7"}


def test_charts_fit_a_narrow_screen(store: MadeUpStore, usual: tuple[Page, Read]) -> None:
    narrow = store.page("/policy?scope=acme", narrow=True)
    assert 'width="350"' in str(narrow.html)
    assert 'width="350"' not in str(usual[0].html)


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_becomes_a_part_of_the_page(tmp_path: Path, plain: Read, name: str) -> None:
    store = MadeUpStore(decided(tmp_path, name, (name, f"{name} "), name))
    page = store.page(Location("policy", scope="acme", policy=name, version=name))
    require_harmless(page, plain)
    require_harmless(store.page(Location("policy", scope="acme", policy=name)), plain)


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_in_a_url_becomes_a_part_of_an_empty_page(store: MadeUpStore, plain: Read, name: str) -> None:
    for location in (Location("policy", scope="acme", policy=name), Location("policy", policy="refunds", version=name)):
        require_harmless(store.page(location), plain)


def test_anomalies_of_the_period_are_named_before_a_version_is_blamed(anomalous: Snapshot) -> None:
    store = MadeUpStore(anomalous)
    found = read(store.page("/policy?scope=acme&policy=refunds"))
    assert "Anomalies overlap the time of these decisions: refunds:" in found.text
    named = [url for url, _ in found.links if url.startswith("/anomaly?")]
    assert len(named) == MOST_FLAGGED
    assert all("policy=refunds" in url for url in named)
    assert "All anomalies of the policy (2 more in this period)" in found.text

    earlier = read(store.page("/policy?scope=acme&policy=refunds&since=2026-01-05&until=2026-01-11"))
    assert "An anomaly overlaps the time of these decisions:" in earlier.text
    ids = [str(Location.read(url).id) for url in named]
    dismissed = read(MadeUpStore(anomalous, ids).page("/policy?scope=acme&policy=refunds"))
    assert not set(named) & {url for url, _ in dismissed.links}


def test_versions_stand_beside_each_other_among_like_cases(tmp_path: Path) -> None:
    chain = MadeUp()
    # The second version does better with either kind of booking, and met mostly the hard ones.
    for version, lead, cases, succeeded in (
        ("A", 3, 840, 756),
        ("A", 200, 160, 92),
        ("B", 3, 400, 376),
        ("B", 200, 600, 426),
    ):
        rulebook = rulebook_of("lead_days", version=version)
        condition = {"field": "lead_days", "operator": "gt", "value": 60}
        outcome = {"decision": "yes", "verdict": "YES", "action": "refund", "reason_code": "ALLOWED"}
        rulebook["rules"] = [{"rule_id": "r", "priority": 1, "condition": condition, "outcome": outcome}]
        for at in range(cases):
            made = MONDAY + len(chain.entries) * timedelta(minutes=1)
            decision_id = chain.decide(made, version=version, facts={"lead_days": lead}, rulebook=rulebook)
            metrics = {"nights": 1 + at % 9}
            status = "succeeded" if at < succeeded else "failed"
            chain.outcome(decision_id, made, status, observed_metrics=metrics)
    page = MadeUpStore(chain.snapshot(tmp_path)).page("/policy?scope=acme")
    found = read(page)
    assert "1 of 2 versions does worse than the others: A" in found.headings
    (a,) = [row for row in found.rows if row[:2] == ["A", "1,000"]]
    assert (a[2][:5], a[3:6]) == ("84.8%", ["79.7%", "86.7%", "worse among like cases"])
    assert "it does worse, which the raw rates hide." in found.text
    assert "over cases with like facts (Lead (days))" in found.text
    assert ["A", "yes", "1,000"] in [row[:3] for row in found.rows]
    assert "Let through" in {row[0] for row in found.rows if row}
    assert ["Nights", "B", "1,000", "1", "3", "5 (5 to 5)", "7", "9"] in found.rows
    assert ["5 January 2026", "2,000", "5 (5 to 5)"] in found.rows
    # What was let through stands first, and beside it all that has an outcome.
    assert "Success where let through (95% interval) 82.5% (80.8-84.1%) of 2,000 cases" in found.text


def test_granted_actions_are_counted_apart_only_while_they_are_not_executed(tmp_path: Path) -> None:
    chain = MadeUp()
    for at in range(30):
        made = MONDAY + at * timedelta(minutes=5)
        # All are compared with a second version, for which the table is there.
        version = "A" if at < 15 else "B"
        decision_id = chain.decide(made, verdict="review", version=version)
        if at % 3:
            chain.resolve(decision_id, made + timedelta(minutes=1))
        if at % 3 == 2:
            chain.receipt(decision_id, made + timedelta(minutes=2))
    found = read(MadeUpStore(chain.snapshot(tmp_path)).page("/policy?scope=acme"))
    rows = {row[0]: row[1] for row in found.rows if len(row) == 4}
    assert (rows["Let through"], rows["Granted, not executed yet"], rows["Held"]) == ("10", "10", "10")


def test_a_version_that_is_worse_by_what_it_alone_lets_through_says_so(tmp_path: Path) -> None:
    chain = MadeUp()
    # Small amounts do alike; the first blocks great ones, which mostly fail where the second lets them through.
    for version, amount, verdict, cases, succeeded in (
        ("A", 10, "yes", 400, 370),
        ("A", 900, "no", 200, 0),
        ("B", 10, "yes", 400, 370),
        ("B", 900, "yes", 60, 18),
    ):
        rulebook = rulebook_of("amount", version=version)
        outcome = {"decision": "no", "verdict": "NO", "action": "block", "reason_code": "GREAT"}
        condition = {"field": "amount", "operator": "gt", "value": 100}
        rulebook["rules"] = [{"rule_id": "r", "priority": 1, "condition": condition, "outcome": outcome}]
        for at in range(cases):
            made = MONDAY + len(chain.entries) * timedelta(minutes=1)
            facts = {"amount": amount}
            decision_id = chain.decide(made, verdict=verdict, version=version, facts=facts, rulebook=rulebook)
            if verdict == "yes":
                chain.outcome(decision_id, made, "succeeded" if at < succeeded else "failed")
    found = read(MadeUpStore(chain.snapshot(tmp_path)).page("/policy?scope=acme"))
    rows = {row[0]: row for row in found.rows if row[0] in ("A", "B") and len(row) > 6}
    assert rows["B"][5] == "worse among cases that the others mostly stop"
    assert rows["A"][5] == "not worse"
    assert "by these a version does worse" not in found.text


def test_the_notes_on_how_versions_are_compared_stand_under_their_table(store: MadeUpStore, tmp_path: Path) -> None:
    report = store.reports(cast(Access, None)).effectiveness("refunds").body
    notes = [note for note in report["notes"] if note.startswith("Versions are ")]
    assert notes
    under = read(store.page("/policy?scope=acme&policy=refunds")).text.partition("First and last decision")[2]
    assert " ".join(notes) in under.partition("Numbers by version and verdict")[0]
    # One version is compared with none.
    alone = read(MadeUpStore(decided(tmp_path, versions=("v1", "v1"))).page("/policy?scope=acme&policy=refunds")).text
    assert not any(note in alone for note in notes)


def test_the_recommendation_is_the_first_of_the_figures(usual: tuple[Page, Read]) -> None:
    figures = str(usual[0].html).partition('<ul class="figures grid">')[2].partition("</ul>")[0]
    labels = re.findall(r'<li[^>]*><span class="small">([^<]*)</span>', figures)
    assert labels[:3] == ["Recommendation", "Decisions", "Verdicts"]
