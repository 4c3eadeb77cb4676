"""The page of held decisions: what waits, for how long, and the oldest first."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.support.samples import sample_request
from tests.workbench.dashboard.decided import Site, read, site
from workbench.dashboard.views.page import Choice

REVIEW: dict[str, Any] = {"discount_percent": 20, "margin_percent": 22}


@pytest.fixture(scope="module")
def waiting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Sixty decisions that wait, one that a receipt freed, and one that was approved; the oldest for nine days."""
    with site(tmp_path_factory.mktemp("held") / "home") as made:
        for number in range(60):
            request = sample_request(**REVIEW)
            request["context"]["target_object_id"] = f"deal-{number}"
            if number % 30 == 0:
                request["rulebook"] |= {"rulebook_id": "other"}
            made.chain.decide(request)
        made.chain.decide()
        freed = made.chain.decide(**REVIEW)
        made.chain.execution(freed, "reviewed")
        made.chain.now += timedelta(days=7)
        yield made


def url(**filters: str) -> str:
    return f"/held?{urlencode({'scope': 'acme', **filters})}"


def test_the_title_says_how_many_wait_and_the_oldest_for_how_long(waiting: Site) -> None:
    assert waiting.visit(url()).title == "60 decisions are held, the oldest for 9 days"
    assert waiting.visit(url(policy="other")).title == "2 decisions of other are held, the oldest for 9 days"
    assert waiting.visit(url(target="deal-3")).title == "1 decision about deal-3 is held, for 9 days"


def test_the_oldest_come_first_to_the_end(waiting: Site) -> None:
    page = read(waiting.visit(url()))
    listed = [row[2].split()[1] for row in page.rows if len(row) == 7 and "Decision " in row[2]]
    assert listed[0] == waiting.chain.decided[0][-8:]
    following = read(waiting.visit(page.links["Newer"]))
    listed += [row[2].split()[1] for row in following.rows if len(row) == 7 and "Decision " in row[2]]
    assert listed == [decision_id[-8:] for decision_id in waiting.chain.decided[:60]]
    assert "Newer" not in following.links


def test_what_is_held_is_counted_by_policy_reason_and_age(waiting: Site) -> None:
    page = read(waiting.visit(url()))
    groups = [row for row in page.rows if len(row) == 5][1:]
    assert [(row[0], row[2]) for row in groups] == [("pricing_exception", "58"), ("other", "2")]
    assert "60 of 60 have been held for 1 to 4 weeks" in page.text
    assert waiting.visit(page.links["58"]).title.startswith("58 decisions of pricing_exception have the reason ")
    assert waiting.visit(url(age="month")).title == "60 decisions are held for 1 to 4 weeks, the oldest for 9 days"


def test_where_nothing_waits_the_page_says_so_plainly(tmp_path_factory: pytest.TempPathFactory) -> None:
    with site(tmp_path_factory.mktemp("free") / "home") as made:
        made.chain.decide()
        page = made.visit(url())
        assert page.title == "No decision is held"
        assert "No decision is waiting for review." in read(page).text


def test_filters_that_leave_nothing_say_which_to_remove(waiting: Site) -> None:
    page = read(waiting.visit(url(policy="other", age="day")))
    assert "Without the age: 2 decisions" in page.text
    assert waiting.visit(page.links["Without the age"]).title.startswith("2 decisions of other are held")


def test_a_target_narrows_every_number_and_stays_in_the_links_of_the_numbers(waiting: Site) -> None:
    page = read(waiting.visit(url(target="deal-3")))
    assert "1 of 1 has been held for 1 to 4 weeks" in page.text
    groups = [row for row in page.rows if len(row) == 5][1:]
    assert [(row[0], row[2]) for row in groups] == [("pricing_exception", "1")]
    assert "target=deal-3" in page.links["1"]


def test_held_decisions_with_an_outcome_are_told_apart_with_a_link_to_them(tmp_path: Path) -> None:
    with site(tmp_path / "home") as made:
        made.chain.decide(**REVIEW)
        made.chain.outcome(made.chain.decide(**REVIEW), "succeeded")
        page = read(made.visit(url()))
        assert "1 held decision already has an outcome" in page.text
        assert made.visit(page.links["1 succeeded"]).title.startswith(
            "1 decision is held and has the outcome succeeded"
        )
        made.chain.decide()
        offered = next(each for each in made.visit(url()).filters if each.name == "reason")
        assert isinstance(offered, Choice)
        assert len(offered.options) == 2
