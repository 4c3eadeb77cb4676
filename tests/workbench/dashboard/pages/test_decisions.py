"""The page of decisions: every filter narrows it, its pages reach the end, and its title says what was asked."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from urllib.parse import urlencode

import pytest

from gate.errors import GateError, NotFound
from tests.support.samples import sample_request
from tests.workbench.dashboard.decided import Read, Site, read, site
from workbench.lake.entries import Personal

DECISIONS = 120


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with site(tmp_path_factory.mktemp("decisions") / "home") as made:
        for number in range(DECISIONS):
            request = sample_request(discount_percent=(10, 40, 20)[number % 3], margin_percent=22)
            request["context"]["target_object_id"] = f"deal-{number % 4}"
            if number % 60 == 0:
                request["rulebook"] |= {"rulebook_id": "other", "version": "7"}
            made.chain.decide(request)
        first = made.chain.decided[0]
        made.chain.execution(first)
        made.chain.outcome(first, "failed")
        yield made


def url(**filters: str) -> str:
    return f"/decisions?{urlencode({'scope': 'acme', **filters})}"


def ids(of: Read) -> list[str]:
    """The last characters of the ids in a list."""
    return [row[1].split()[1] for row in of.rows[1:]]


def test_the_list_is_paged_to_its_end_and_back(filled: Site) -> None:
    expected = [decision_id[-8:] for decision_id in reversed(filled.chain.decided)]
    page = read(filled.visit(url()))
    found, pages = ids(page), 1
    while "Older" in page.links:
        page = read(filled.visit(page.links["Older"]))
        found += ids(page)
        pages += 1
    assert (found, pages) == (expected, 3)
    back = read(filled.visit(page.links["Newer"]))
    assert ids(back) == expected[50:100]
    assert ids(read(filled.visit(page.links["Newest first page"]))) == expected[:50]


def test_the_title_says_how_many_decisions_there_are_of_what_was_asked_for(filled: Site) -> None:
    assert filled.visit(url()).title == "120 decisions in scope acme"
    assert filled.visit(url(policy="other")).title == "2 decisions of other"
    assert filled.visit(url(policy="other", state="executed")).title == "1 decision of other was executed"


@pytest.mark.parametrize(
    ("filters", "number"),
    [
        ({"policy": "other"}, 2),
        ({"policy": "other", "version": "7"}, 2),
        ({"verdict": "yes"}, 40),
        ({"reason": "STANDARD_EXCEPTION_ALLOWED"}, 40),
        ({"rule": "rule:approve_standard_exception"}, 40),
        ({"state": "executed"}, 1),
        ({"outcome": "failed"}, 1),
        ({"outcome": "unreported"}, 119),
        ({"target": "deal-1"}, 30),
        ({"target": "deal-"}, 0),
    ],
)
def test_each_filter_narrows_the_list(filled: Site, filters: dict[str, str], number: int) -> None:
    page = filled.visit(url(**filters))
    assert page.title.startswith("No decision " if number == 0 else f"{number} decision")
    assert len(ids(read(page))) == min(number, 50)
    offered = {each.name for each in page.filters}
    assert filters.keys() <= offered


def test_a_period_narrows_the_list_to_its_days(filled: Site) -> None:
    day = (filled.chain.now - timedelta(days=2)).date().isoformat()
    page = filled.visit(url(since=day, until=day))
    assert page.title.startswith("24 decisions on ")
    assert len(ids(read(page))) == 24


def test_an_id_finds_its_decision(filled: Site) -> None:
    wanted = filled.chain.decided[7]
    for ref in (wanted, f"req_{7:032x}"):
        found = read(filled.visit(url(ref=ref)))
        assert ids(found) == [wanted[-8:]]
        assert f"Decision {wanted[-8:]}" in found.links
        assert found.links[f"Decision {wanted[-8:]}"] == f"/decision?scope=acme&id={wanted}"


def test_the_characters_of_an_id_that_a_table_shows_find_its_decision(filled: Site) -> None:
    wanted = filled.chain.decided[7]
    for ref in (wanted[-8:], wanted[:-1]):
        assert ids(read(filled.visit(url(ref=ref)))) == [wanted[-8:]]
    assert ids(read(filled.visit(url(ref=wanted[-7:])))) == []


def test_a_decision_that_other_filters_leave_out_is_named(filled: Site) -> None:
    wanted = filled.chain.decided[7]
    found = read(filled.visit(url(ref=wanted, policy="other")))
    assert "A decision with this ID exists, but the other filters exclude it" in found.text
    assert "does not show it yet" not in found.text
    assert found.links["open the decision"] == f"/decision?scope=acme&id={wanted}"


def test_a_period_that_ends_before_it_begins_can_be_swapped(filled: Site) -> None:
    day = filled.chain.now.date()
    first, last = (day - timedelta(days=2)).isoformat(), day.isoformat()
    found = read(filled.visit(url(since=last, until=first)))
    assert "The first day is after the last" in found.text
    assert found.links["Swap the two days"] == url(since=first, until=last)
    assert "Swap the two days" not in read(filled.visit(url(since=first, until=first))).links


def test_a_decision_that_the_list_does_not_show_yet_is_found_by_its_id(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with site(tmp_path_factory.mktemp("late") / "home") as made:
        made.chain.decide()
        made.visit(url())
        before = made.chain.now
        late = made.chain.decide()
        made.chain.now = before
        found = read(made.visit(url(ref=late)))
        assert found.links["open the decision"] == f"/decision?scope=acme&id={late}"
        assert "open the decision" not in read(made.visit(url(ref="dec_none"))).links


def test_an_empty_list_says_which_filter_to_remove(filled: Site) -> None:
    found = read(filled.visit(url(policy="other", verdict="no", target="deal-0")))
    assert "No decision matches all of these filters" in found.text
    assert "Without the verdict: 2 decisions" in found.text
    wider = filled.visit(found.links["Without the verdict"])
    assert wider.title == "2 decisions of other about deal-0"
    nowhere = read(filled.visit(url(policy="none", verdict="no", target="none")))
    assert filled.visit(nowhere.links["Remove all filters"]).title == "120 decisions in scope acme"


def test_a_scope_without_decisions_says_how_to_make_one(tmp_path_factory: pytest.TempPathFactory) -> None:
    with site(tmp_path_factory.mktemp("none") / "home") as made:
        page = made.visit(url())
        assert page.title == "No decision in scope acme"
        assert "POST /api/decide" in read(page).text


def test_without_targets_in_the_lake_the_page_says_so(tmp_path_factory: pytest.TempPathFactory) -> None:
    with site(tmp_path_factory.mktemp("personal") / "home", Personal.of(["target_object_id"])) as made:
        made.chain.decide()
        told = read(made.visit(url(target="deal-1042"))).text
        assert "marked targets as personal" in told
        assert "a search by target finds nothing" in told
        assert "deal-1042" not in read(made.visit(url())).text


def test_the_decisions_of_an_anomaly_are_listed_alone(tmp_path_factory: pytest.TempPathFactory) -> None:
    with site(tmp_path_factory.mktemp("anomaly") / "home") as made:
        for _ in range(10):
            made.chain.decide()
        held = made.chain.decide(discount_percent=20, margin_percent=22)
        made.chain.execution(held)
        report = made.store.reports(made.access()).anomalies("pricing_exception")
        of = next(each for each in report.to_dict()["anomalies"] if each["decision_ids"] == [held])
        page = made.visit(url(policy="pricing_exception", anomaly=of["anomaly_id"]))
        assert page.title == "1 decision of pricing_exception, among those that show the anomaly"
        assert ids(read(page)) == [held[-8:]]
        assert made.visit(read(page).links["List all decisions"]).title == "11 decisions of pricing_exception"


def test_an_anomaly_that_no_report_lists_is_an_error_in_a_sentence(filled: Site) -> None:
    with pytest.raises(NotFound, match="This anomaly is no longer listed"):
        filled.visit(url(policy="other", anomaly="ano_none"))


def test_a_filter_that_no_decision_can_have_is_refused(filled: Site) -> None:
    for wrong in ({"state": "waiting"}, {"verdict": "maybe"}, {"before": "x"}, {"after": "0"}):
        with pytest.raises(GateError):
            filled.visit(url(**wrong))
