"""The filters that pages offer."""

from __future__ import annotations

from datetime import UTC, datetime

from workbench.dashboard.views import offered
from workbench.dashboard.views.location import Location

NOW = datetime(2026, 11, 25, 23, 30, tzinfo=UTC)


def test_a_list_offers_all_first_but_where_one_must_be_chosen() -> None:
    assert dict(offered.policies(["a", "b"]).options) == {"": "All policies", "a": "a", "b": "b"}
    assert dict(offered.policies(["a"], all_=None).options) == {"a": "a"}
    assert list(offered.versions(["1", "2"]).options) == ["", "2", "1"]
    assert list(offered.verdicts().options) == ["", "yes", "no", "review"]


def test_names_that_would_not_show_are_shown_by_a_sign_and_keep_their_value() -> None:
    hostile = "a\n\u202e<b>"
    (label,) = offered.reasons([hostile]).options.keys() - {""}
    assert label == hostile
    shown = offered.reasons([hostile]).options[hostile]
    assert "\n" not in shown
    assert "\u202e" not in shown
    assert "<b>" in shown


def test_usual_periods_lead_to_the_same_page_with_other_days() -> None:
    location = Location("decisions", policy="p", since="2026-01-01", until="2026-01-31", before="7")
    urls = offered.periods(location, NOW)
    assert urls["7 days"] == "/decisions?policy=p&since=2026-11-18"
    assert urls["All time"] == "/decisions?policy=p"
    for url in urls.values():
        assert Location.read(url).policy == "p"
