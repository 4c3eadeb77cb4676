"""URLs of pages: read and written alike, and refused where anything of them could be misunderstood."""

from __future__ import annotations

from datetime import UTC, datetime
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.dashboard.views.location import MAX_URL, PAGES, Location, LocationInvalid, day_before

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60)
VALUES = {
    "verdict": st.sampled_from(["yes", "no", "review"]),
    "clock": st.just("occurred"),
    "age": st.sampled_from(["day", "week", "longer"]),
    "show": st.just("dismissed"),
    "outcome": st.sampled_from(["succeeded", "unreported"]),
    "since": st.dates().map(str),
    "until": st.dates().map(str),
    "before": st.integers(0, 10**15 - 1).map(str),
    "after": st.integers(0, 10**15 - 1).map(str),
}


@st.composite
def locations(draw: st.DrawFn) -> Location:
    page = draw(st.sampled_from(sorted(PAGES)))
    given = {name: draw(st.none() | VALUES.get(name, TEXT)) for name in PAGES[page]}
    if given.get("policy") is None:
        given.pop("anomaly", None)
    return Location(page, **given)


def refusal(url: str) -> str:
    with pytest.raises(LocationInvalid) as refused:
        Location.read(url)
    return refused.value.message


@given(locations())
def test_what_is_written_is_read_again(location: Location) -> None:
    if len(location.url) <= MAX_URL:
        assert Location.read(location.url) == location
    else:
        assert "longer than" in refusal(location.url)


@given(st.text(max_size=100) | st.text("/?&=%:[]#.\\0af", max_size=30))
def test_any_other_text_is_refused_or_is_a_page_here(url: str) -> None:
    try:
        found = Location.read(url)
    except LocationInvalid:
        return
    assert found.url.startswith("/")
    assert not found.url.startswith("//")
    assert found.url.isascii()


@given(locations(), st.sampled_from(sorted(PAGES)))
def test_another_page_keeps_the_filters_that_it_knows_and_begins_anew(location: Location, page: str) -> None:
    there = location.to(page)
    for name, value in there.filters.items():
        anew = name in ("before", "after") or (name == "id" and page != location.page)
        assert value == (None if anew or name not in location.filters else location.filters[name])


def test_without_the_policy_go_its_version_and_its_anomaly() -> None:
    here = Location.read("/decisions?scope=acme&policy=refunds&version=v1&anomaly=ano_1&verdict=no")
    assert here.change(policy=None).url == "/decisions?scope=acme&verdict=no"
    assert here.change(verdict=None).url == "/decisions?scope=acme&policy=refunds&version=v1&anomaly=ano_1"


def test_a_page_that_there_is_not_is_named() -> None:
    assert "“/nowhere”" in refusal("/nowhere")
    assert "“/policy/x”" in refusal("/policy/x")
    assert len(refusal("/" + "x" * 500)) < 200


def test_a_filter_that_the_page_does_not_know_or_has_twice_is_named() -> None:
    assert "“polcy”" in refusal("/policy?polcy=x")
    assert "it accepts scope, id" in refusal("/decision?policy=x")
    assert "given twice" in refusal("/policy?scope=a&scope=b")
    assert "longer than 200 characters" in refusal(f"/policy?policy={'x' * 201}")
    assert Location.read(f"/policy?policy={'x' * 200}").policy == "x" * 200
    assert Location.read("/policy?policy=&scope=acme") == Location("policy", scope="acme")


@pytest.mark.parametrize(
    "day", ["2026-02-30", "13.07.2026", "9999-99-99", "0000-00-00", "today", "2026-W29-1", "2026-07-13T25:00:00Z"]
)
@pytest.mark.parametrize("name", ["since", "until"])
def test_a_day_that_there_is_not_is_refused_with_an_example(day: str, name: str) -> None:
    assert "such as 2026-07-13" in refusal(f"/decisions?{urlencode({name: day})}")


@pytest.mark.parametrize("position", ["-1", "1.5", "x", "1e3", "٣", "9" * 16, " 1"])
def test_a_place_in_a_list_is_a_number(position: str) -> None:
    assert "a whole number" in refusal(f"/held?{urlencode({'before': position})}")


@pytest.mark.parametrize(("name", "page"), [("verdict", "policy"), ("age", "held"), ("show", "anomalies")])
def test_a_word_that_a_filter_does_not_know_is_refused_with_those_that_it_does(name: str, page: str) -> None:
    assert "must be one of" in refusal(f"/{page}?{name}=maybe")


def test_a_refusal_shows_nothing_that_a_terminal_or_a_page_could_take_for_more_than_text() -> None:
    told = refusal("/policy?%1b[31m\u202e\n=1")
    assert told.isprintable()


def test_an_anomaly_needs_the_policy_whose_it_is() -> None:
    assert "needs the filter policy" in refusal("/decisions?anomaly=ano_1")
    assert Location.read("/decisions?policy=refunds&anomaly=ano_1").anomaly == "ano_1"


def test_a_period_ends_with_its_last_day() -> None:
    found = Location.read("/policy?since=2026-07-13&until=2026-07-19")
    assert found.period() == (datetime(2026, 7, 13, tzinfo=UTC), datetime(2026, 7, 20, tzinfo=UTC))
    assert Location("policy").period() == (None, None)
    moment = "2026-07-13T10:00:00.000Z"
    exact = datetime(2026, 7, 13, 10, tzinfo=UTC)
    assert Location("policy", since=moment, until=moment).period() == (exact, exact)
    # The calendar ends, and the period with it.
    assert Location("policy", until="9999-12-31").period()[1] == datetime(9999, 12, 31, tzinfo=UTC)
    assert day_before(exact, 13) == "2026-06-30"


@pytest.mark.parametrize(
    ("url", "page"),
    [
        ("/held?scope=acme&polcy=x", "held"),
        ("/decision", "decision"),
        ("/nowhere?x=1", "overview"),
        ("//[", "overview"),
        (f"/held?{'x' * MAX_URL}", "overview"),
        ("", "overview"),
    ],
)
def test_the_page_of_an_address_that_is_wrong_is_known_all_the_same(url: str, page: str) -> None:
    assert Location.page_of(url) == Location(page)


def test_the_dates_of_the_record_are_no_filter() -> None:
    assert Location.read("/policy?clock=recorded") == Location("policy")
    assert Location.read("/policy?clock=occurred").to("decisions").url == "/decisions?clock=occurred"
    assert "cannot be" in refusal("/policy?clock=local")
    assert "accepts" in refusal("/held?clock=occurred")
