"""The overview: what is said first, what its table holds, and where it leads."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.workbench.dashboard.policies import HOSTILE, MadeUpStore, Read, decided, read, require_harmless
from tests.workbench.made_up import DAY, HOUR, MONDAY, WEEK, MadeUp
from workbench.dashboard.store.health import Health, Part
from workbench.dashboard.views.location import Location
from workbench.engines.anomalies.report import anomalies
from workbench.lake.reader import Snapshot

BROKEN = Health((Part("Chain", well=False, told="A link does not follow; run `gate chain check`."),))


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    return decided(tmp_path_factory.mktemp("lake"))


@pytest.fixture(scope="module")
def store(snapshot: Snapshot) -> MadeUpStore:
    return MadeUpStore(snapshot)


@pytest.fixture(scope="module")
def usual(store: MadeUpStore) -> Read:
    return read(store.page("/?scope=acme"))


def healthy(lake: Path) -> Snapshot:
    """A policy that does well, all of whose decisions were executed."""
    chain = MadeUp()
    for number in range(120):
        at = MONDAY + number * DAY
        decision_id = chain.decide(at)
        chain.receipt(decision_id, at + HOUR)
        chain.outcome(decision_id, at + DAY)
    return chain.snapshot(lake)


def test_each_policy_has_a_row_that_leads_to_its_page_and_its_decisions(usual: Read) -> None:
    rows = {row[0]: row for row in usual.rows}
    assert list(rows)[1:] == ["refunds", "trials"]
    assert rows["refunds"][1] == "320"
    assert "66.7% (60.5-72.3%)" in rows["refunds"][3]
    assert rows["trials"][3] == "no cases yet"
    links = [(text, url) for url, text in usual.links]
    assert ("refunds", "/policy?scope=acme&policy=refunds") in links
    assert ("320", "/decisions?scope=acme&policy=refunds") in links
    assert ("yes 75%", "/decisions?scope=acme&policy=refunds&verdict=yes") in links
    assert ("80", "/held?scope=acme&policy=refunds") in links
    assert ("v2", "/policy?scope=acme&policy=refunds&version=v2") in links


def test_every_headline_leads_to_a_page_that_there_is(usual: Read) -> None:
    looks = [url for url, text in usual.links if text.startswith("Open ")]
    assert looks
    assert {Location.read(url).page for url in looks} <= {"policy", "anomaly", "held"}


def test_a_policy_gets_one_headline_and_what_waits_another(usual: Read) -> None:
    # Its success also falls, and an anomaly is open.
    assert usual.text.startswith(
        "refunds: version v2 succeeded in 33% of 90 let-through cases, the others in 87% of 150 like ones. "
        "Open refunds 80 decisions are waiting for review, the oldest for 147 days. Open held decisions"
    )
    assert [url for url, text in usual.links if text.startswith("Open ")] == [
        "/policy?scope=acme&policy=refunds&version=v2",
        "/held?scope=acme",
    ]


def test_harm_comes_first_until_somebody_dismisses_it(tmp_path: Path) -> None:
    snapshot = with_a_bad_week().snapshot(tmp_path)
    page = MadeUpStore(snapshot).page("/?scope=acme")
    found = read(page)
    assert page.title == "1 policy: 1 thing needs attention"
    assert ", in the week of 4 May 2026. Open refunds" in found.text
    ids = [each["anomaly_id"] for each in anomalies(snapshot, "refunds", threshold=0).to_dict()["anomalies"]]
    assert Location.read(found.links[0][0]).id in ids

    page = MadeUpStore(snapshot, ids).page("/?scope=acme")
    assert not any(each in read(page).text for each in (", in the week of 4 May 2026", "1 high"))


def with_a_bad_week(policy_id: str = "refunds", *, quiet_days: int = 0, usual: str = "succeeded") -> MadeUp:
    """A policy one of whose weeks had the other outcomes, and so many days without decisions before the last one."""
    chain = MadeUp()
    for week in range(20):
        for number in range(30):
            at = MONDAY + week * WEEK + number * HOUR
            decision_id = chain.decide(at, policy_id=policy_id)
            chain.receipt(decision_id, at + HOUR)
            other = "failed" if usual == "succeeded" else "succeeded"
            chain.outcome(decision_id, at + DAY, other if week == 17 else usual)
    if quiet_days:
        chain.receipt(chain.decide(MONDAY + 20 * WEEK + quiet_days * DAY, policy_id=policy_id), MONDAY + 40 * WEEK)
    return chain


def test_the_number_of_open_anomalies_is_that_of_the_list_that_it_opens(tmp_path: Path) -> None:
    store = MadeUpStore(with_a_bad_week().snapshot(tmp_path))
    url = next(url for url, text in read(store.page("/?scope=acme")).links if text == "1 high")
    assert url == "/anomalies?scope=acme&policy=refunds&show=open"
    assert store.page(url).title == "1 anomaly in refunds: 1 high; open"


def test_a_high_anomaly_that_is_past_is_told_with_its_days(tmp_path: Path) -> None:
    page = MadeUpStore(with_a_bad_week(quiet_days=120).snapshot(tmp_path)).page("/?scope=acme")
    found = read(page)
    assert "1 high" not in found.text
    assert "No anomaly of high severity is open. The last one was: refunds: " in found.text
    assert ", in the week of 4 May 2026. Open that anomaly" in found.text
    assert found.text.count("May 2026") == 1


def test_outcomes_that_got_better_are_no_open_anomaly(tmp_path: Path) -> None:
    store = MadeUpStore(with_a_bad_week(usual="failed").snapshot(tmp_path))
    assert {row[5] for row in read(store.page("/?scope=acme")).rows[1:]} == {"none"}
    listed = read(store.page("/anomalies?scope=acme&policy=refunds"))
    assert any("improvement" in row for row in listed.rows)
    assert store.page("/anomalies?scope=acme&policy=refunds&show=open").title == "No open anomalies in refunds"


def test_a_broken_proof_comes_before_everything(snapshot: Snapshot) -> None:
    found = read(MadeUpStore(snapshot, health=BROKEN).page("/?scope=acme"))
    assert found.text.startswith("Chain: A link does not follow; run gate chain check . See below")
    assert found.headings == ["A proof check failed: ask the operator"]
    assert found.links[0] == ("#health", "See below")


def test_where_nothing_is_wrong_it_says_so(tmp_path: Path) -> None:
    page = MadeUpStore(healthy(tmp_path)).page("/?scope=acme")
    assert page.title == "1 policy: nothing needs attention"
    assert read(page).text.startswith("No open anomalies, no version that does worse, no falling rates, nothing held")


def test_an_empty_scope_says_how_to_begin(tmp_path: Path) -> None:
    page = MadeUpStore(MadeUp().snapshot(tmp_path)).page("/?scope=acme")
    assert page.title == "No decisions in scope acme yet"
    assert "POST /api/decide" in read(page).text


def test_unusual_metrics_come_last(tmp_path: Path) -> None:
    chain = MadeUp()
    for number in range(200):
        at = MONDAY + number * HOUR
        for policy_id in ("metrics", "promises"):
            decision_id = chain.decide(at, policy_id=policy_id)
            chain.receipt(decision_id, at + HOUR)
            if policy_id == "metrics" or number % 3:
                value = 1e6 if number % 20 == 0 else float(number % 7)
                chain.outcome(decision_id, at + DAY, observed_metrics={"margin": value})
    # The chain's last entry is late enough for outcomes to be overdue.
    chain.receipt(chain.decide(MONDAY + 10 * WEEK, policy_id="metrics"), MONDAY + 10 * WEEK)
    said = read(MadeUpStore(chain.snapshot(tmp_path)).page("/?scope=acme")).text.split(" Open ")
    assert said[0] == "promises: 67 of 200 decisions were executed more than 30 days ago without a final outcome."
    assert said[1].startswith("promises metrics: 10 of 200 values of margin are unusual")


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_becomes_a_part_of_the_page(tmp_path: Path, usual: Read, name: str) -> None:
    store = MadeUpStore(decided(tmp_path, name, (name, f"{name} "), name))
    require_harmless(store.page(Location(scope="acme")), usual)


def test_of_a_policys_anomalies_harm_is_said_before_what_has_a_greater_score(tmp_path: Path) -> None:
    chain = MadeUp()
    for week in range(20):
        for number in range(30):
            at = MONDAY + week * WEEK + number * HOUR
            decision_id = chain.decide(at)
            chain.receipt(decision_id, at + HOUR)
            chain.outcome(decision_id, at + DAY, "failed" if week == 17 and number % 5 < 2 else "succeeded")
    # No outcome gets worse where all of a week are stopped.
    for number in range(30):
        chain.decide(MONDAY + 20 * WEEK + number * HOUR, verdict="no")
    snapshot = chain.snapshot(tmp_path)
    high = [of for of in anomalies(snapshot, "refunds").to_dict()["anomalies"] if of["severity"] == "high"]
    assert max(high, key=lambda of: float(of["anomaly_score"]))["kind"] == "verdict_shift"
    found = read(MadeUpStore(snapshot).page("/?scope=acme"))
    assert found.text.startswith("refunds: the share of outcomes that ")
