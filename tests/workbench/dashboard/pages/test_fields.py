"""Filters and forms as widgets: what is chosen is asked for, what the page sets is not, and nothing is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from workbench.dashboard.views.location import Location
from workbench.dashboard.views.page import Choice, Entry, Form

if TYPE_CHECKING:
    from workbench.dashboard.pages.fields import Fields

VERDICT = Choice("verdict", "Verdict", {"": "All", "yes": "yes", "no": "no"})
SINCE = Entry("since", "From")
DISMISS = Form("dismiss", "Why", "Dismiss it", "ano_1")


class Heard:
    """What widgets told."""

    def __init__(self) -> None:
        self.changed: list[tuple[str, str | None]] = []
        self.acted: list[tuple[Form, str]] = []

    def narrowed(self, name: str, value: str | None) -> None:
        self.changed.append((name, value))

    def act(self, form: Form, note: str) -> None:
        self.acted.append((form, note))


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def fields(heard: Heard) -> Fields:
    # Panel is loaded after the dashboard, and takes a second.
    import workbench.dashboard.app.libraries  # noqa: F401
    from workbench.dashboard.pages.fields import Fields
    from workbench.dashboard.pages.looks import Looks

    return Fields(Looks(""), heard.narrowed, heard.act)


def shown(fields: Fields, *filters: Choice | Entry, **values: Any) -> list[Any]:
    fields.show(filters, {}, (), Location("decisions", **values))
    return list(fields.filters)


def test_a_filter_tells_what_was_chosen_and_nothing_of_what_a_page_sets(fields: Fields, heard: Heard) -> None:
    verdict, since = shown(fields, VERDICT, SINCE, verdict="yes")
    assert (verdict.value, since.value) == ("yes", "")
    shown(fields, VERDICT, SINCE, since="2026-07-13")
    assert (verdict.value, since.value, heard.changed) == ("", "2026-07-13", [])
    verdict.value = "no"
    since.value = "  2026-08-01 "
    verdict.value = ""
    since.value = "   "
    assert heard.changed == [("verdict", "no"), ("since", "2026-08-01"), ("verdict", None), ("since", None)]


def test_a_filter_that_two_pages_share_is_the_same_widget(fields: Fields) -> None:
    first, _ = shown(fields, VERDICT, SINCE)
    assert shown(fields, VERDICT) == [first]


def test_a_value_that_is_not_among_those_offered_is_kept(fields: Fields, heard: Heard) -> None:
    (verdict,) = shown(fields, Choice("version", "Version", {"": "All"}), version="old\n")
    assert verdict.value == "old\n"
    assert "\n" not in "".join(verdict.options)
    assert heard.changed == []


def test_values_that_look_alike_are_offered_one_by_one(fields: Fields) -> None:
    alike = {"": "All", "a\x00": "a?", "a\x01": "a?", "a\x02": "a?"}
    (version,) = shown(fields, Choice("version", "Version", alike), version="a\x01")
    assert list(version.options.values()) == list(alike)
    assert list(version.options) == ["All", "a?", "a? (2)", "a? (3)"]
    assert version.value == "a\x01"


def test_a_form_acts_with_its_note_and_says_why_it_could_not(fields: Fields, heard: Heard) -> None:
    fields.show((), {}, (DISMISS,), Location("anomaly"))
    forms: Any = fields.forms
    note, button, said = forms
    note.value = "seen <b>"
    button.clicks += 1
    assert heard.acted == [(DISMISS, "seen <b>")]
    fields.fault("No: <b>.")
    assert "&lt;b&gt;" in said.object
    # The page that comes next has no fault, and another form a note of its own.
    fields.show((), {}, (Form("reopen", "Why", "Reopen it", "ano_1"),), Location("anomaly"))
    assert (forms[0].value, forms[-1].object) == ("", "")
    fields.show((), {}, (), Location())
    assert list(fields.forms) == []


def test_a_filter_that_depends_on_another_is_open_again() -> None:
    import workbench.dashboard.app.libraries  # noqa: F401
    from workbench.dashboard.pages.session import narrowed

    here = Location("decisions", scope="acme", policy="p", version="1", reason="R", rule="r", verdict="no", before="7")
    assert narrowed(here, "policy", "q") == Location("decisions", scope="acme", policy="q", verdict="no")
    assert narrowed(here, "verdict", None).verdict is None
    assert narrowed(here, "verdict", None).version == "1"
    assert narrowed(here, "scope", "other") == Location("decisions", scope="other")
