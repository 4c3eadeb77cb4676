"""The studio in a real browser: two people at one draft, a session that ends, a server that goes, and hostile texts."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from gate.clock import utc_now
from gate.encoding.yaml_text import read_yaml, write_yaml
from gate.instance.instance import Instance
from gate.ledger.drafts.drafts import Draft, DraftSummary, Origin
from gate.rulebooks.rulebook import load
from tests.support.browser import browser
from tests.support.samples import sample_rulebook
from tests.workbench.dashboard.browsing import Window
from tests.workbench.dashboard.serving import PASSWORD, Site, served

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.heavy

TEXT = "# The prices.\n" + write_yaml(sample_rulebook())
RULES = [rule["rule_id"] for rule in sample_rulebook()["rules"]]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as started:
        yield started


@pytest.fixture
def site(instance: Instance, scope: Any) -> Iterator[Site]:
    """A dashboard with two authors."""
    with served(instance) as found:
        for name in ("ada", "bea"):
            found.add_user(name, [scope], "author")
        yield found
        assert found.failures.seen == []


@pytest.fixture
def draft(site: Site, scope: Any) -> Draft:
    """A draft of the sample rulebook, with a comment."""
    return draft_of(site, scope, TEXT)


def draft_of(site: Site, scope: Any, text: str, name: str = "prices") -> Draft:
    return site.instance.ledger.drafts.create(scope, name, text, Origin("empty"), "ada", utc_now())


@pytest.fixture
def open_window(chromium: Browser, site: Site) -> Iterator[Callable[[str], Window]]:
    """Opens windows in which an author is signed in."""
    windows = []

    def open_(name: str) -> Window:
        window = Window(chromium, site.url, viewport={"width": 1280, "height": 900})
        windows.append(window)
        window.sign_in(name, PASSWORD)
        return window

    yield open_
    for window in windows:
        window.require_harmless()
        window.close()


def has(page: Page, selector: str, text: str | re.Pattern[str]) -> None:
    from playwright.sync_api import expect

    expect(page.locator(selector)).to_contain_text(text, timeout=60_000)


def studio(window: Window, draft: Draft) -> Page:
    """The studio of a draft, once it has answered."""
    page = window.go(f"/draft?scope=acme&id={draft.draft_id}")
    page.locator(".cm-content").wait_for()
    page.wait_for_function("() => document.body.dataset.answered !== undefined")
    return page


def type_at_end_of(page: Page, line: str, text: str) -> None:
    page.locator(".cm-line", has_text=line).first.click()
    page.keyboard.press("End")
    page.keyboard.type(text)


def stored(site: Site, scope: Any, draft: DraftSummary) -> str:
    return site.instance.ledger.drafts.draft(scope.scope_id, draft.draft_id).text


def test_what_is_typed_is_saved_and_the_table_and_the_text_are_one(
    site: Site, scope: Any, draft: Draft, open_window: Callable[[str], Window]
) -> None:
    page = studio(open_window("ada"), draft)
    type_at_end_of(page, "# The prices.", " Of this year.")
    has(page, "#saved", "Saved as revision 1.")
    assert stored(site, scope, draft) == TEXT.replace("# The prices.", "# The prices. Of this year.")
    priority = page.get_by_label("Priority of approve_standard_exception")
    priority.fill("51")
    priority.press("Enter")
    has(page, ".cm-content", "priority: 51")
    has(page, "#saved", "Saved as revision 1.")
    expected = TEXT.replace("# The prices.", "# The prices. Of this year.").replace("priority: 50", "priority: 51")
    assert stored(site, scope, draft) == expected
    # What cannot be is said at its cell, and the text stays.
    priority = page.get_by_label("Priority of approve_standard_exception")
    priority.fill("high")
    priority.press("Enter")
    has(page, ".act-fault", "A priority must be a whole number")
    assert stored(site, scope, draft) == expected
    # In the text, a change shows in the table.
    type_at_end_of(page, "priority: 51", "7")
    page.wait_for_function(
        """() => { const find = (root) => [...root.querySelectorAll("*")].flatMap(
            (each) => [each, ...(each.shadowRoot ? find(each.shadowRoot) : [])]);
            return find(document).some((each) => each.value === "517"); }"""
    )


def test_the_table_follows_rules_that_come_go_and_change_places(
    site: Site, scope: Any, draft: Draft, open_window: Callable[[str], Window]
) -> None:
    page = studio(open_window("ada"), draft)

    def rules() -> list[str]:
        return [str(each.input_value()) for each in page.get_by_label(re.compile("^Id of ")).all()]

    def answered(press: Callable[[], None]) -> list[str]:
        press()
        page.wait_for_function("() => document.body.dataset.answered === document.body.dataset.acting")
        has(page, "#saved", "Saved as revision 1.")
        shown = load(read_yaml(stored(site, scope, draft).encode()).value)
        order = sorted(shown.body["rules"], key=lambda each: (-each.get("priority", 0), each["rule_id"]))
        assert rules() == [each["rule_id"] for each in order]
        return rules()

    first = rules()
    assert len(first) > 1
    last = page.get_by_label(f"Priority of {first[-1]}", exact=True)
    last.fill("999")
    assert answered(lambda: last.press("Enter")) == [first[-1], *first[:-1]]
    assert len(answered(page.get_by_role("button", name="Copy", exact=True).last.click)) == len(first) + 1
    page.get_by_role("button", name="Remove", exact=True).first.click()
    assert first[-1] not in answered(page.locator("dialog button").first.click)
    # While the text is not valid, the rules of before stay, and cannot be changed.
    kept = rules()
    type_at_end_of(page, "schema_version", "x")
    has(page, "#part-state", "Not valid")
    assert rules() == kept
    priority = page.get_by_label(f"Priority of {kept[0]}", exact=True)
    priority.fill("1")
    priority.press("Enter")
    has(page, ".act-fault", "Fix the text first.")
    operator = page.get_by_label(re.compile("^Operator of ")).first
    before = operator.input_value()
    operator.select_option("exists")
    assert (before != "exists", operator.input_value(), priority.input_value() != "1") == (True, before, True)
    assert "rulebook_v1x" in stored(site, scope, draft)


def test_cells_are_changed_wherever_the_focus_goes_next(
    site: Site, scope: Any, draft: Draft, open_window: Callable[[str], Window]
) -> None:
    page = studio(open_window("ada"), draft)
    first, second = (page.get_by_label(f"Priority of {rule}") for rule in RULES)
    # To the next cell by key, to another by pointer, and on at once, before the first change is answered.
    first.fill("101")
    first.press("Tab")
    page.keyboard.type("renamed")
    second.fill("57")
    page.get_by_label("Value of approve_standard_exception").first.click()
    page.keyboard.press("End")
    page.keyboard.type("0")
    page.get_by_role("heading", name="Rules").click()
    # A value that was typed goes before the button that is pressed next.
    has(page, ".cm-content", "value: 150")
    second = page.get_by_label(f"Priority of {RULES[1]}")
    second.fill("58")
    page.get_by_role("button", name="Add a test").first.click()
    has(page, ".cm-content", "- {field: margin_percent, operator: lt, value: 15}")
    settled(page)
    expected = TEXT.replace("priority: 100", "priority: 101").replace("priority: 50", "priority: 58")
    expected = expected.replace("rule_id: block_below_margin_floor", "rule_id: renamed")
    expected = expected.replace("operator: lte, value: 15", "operator: lte, value: 150")
    test = "{field: margin_percent, operator: lt, value: 15}"
    gathered = f"condition:\n      all:\n        - {test}\n        - {test}\n"
    assert stored(site, scope, draft) == expected.replace(f"condition: {test}\n", gathered)


def test_what_is_being_written_outlives_a_change_of_the_width(
    site: Site, scope: Any, draft: Draft, open_window: Callable[[str], Window]
) -> None:
    page = studio(open_window("ada"), draft)
    type_at_end_of(page, "# The prices.", " Of this")
    page.set_viewport_size({"width": 390, "height": 900})
    page.keyboard.type(" year.")
    page.set_viewport_size({"width": 1280, "height": 900})
    page.keyboard.type(" And more.")
    has(page, ".cm-content", "# The prices. Of this year. And more.")
    settled(page)
    assert stored(site, scope, draft).startswith("# The prices. Of this year. And more.\n")


def test_a_page_that_was_drawn_anew_gets_its_table_again(
    site: Site, scope: Any, draft: Draft, open_window: Callable[[str], Window]
) -> None:
    page = studio(open_window("ada"), draft)
    # As where the main part was put anew while the server knows what it sent before.
    page.locator("#part-rules").evaluate("part => part.replaceWith(part.cloneNode(false))")
    type_at_end_of(page, "# The prices.", " Of this year.")
    has(page, "#part-rules", "Reason")
    settled(page)
    assert page.get_by_label(f"Priority of {RULES[0]}").input_value() == "100"


def test_cases_at_the_edges_are_added_one_by_one(
    site: Site, scope: Any, draft: Draft, open_window: Callable[[str], Window]
) -> None:
    window = open_window("ada")
    page = window.go(f"/cases?scope=acme&id={draft.draft_id}")
    page.get_by_role("button", name="Suggest edge cases").click()
    page.get_by_role("button", name="Add", exact=True).first.click()
    has(page, "h1", "1 case of prices: it holds")
    # A case of which nothing is expected is refused with what to do.
    page.get_by_role("textbox", name="Name").fill("nothing")
    page.get_by_role("button", name="Add the case").click()
    has(page, ".act-fault", "Choose the expected verdict")
    assert len(site.instance.ledger.draft_cases.of(scope.scope_id, draft.draft_id)) == 1


def settled(page: Page) -> None:
    """Waits until all that was done is answered and saved."""
    page.wait_for_function("() => document.body.dataset.answered === document.body.dataset.acting")
    has(page, "#saved", "Saved as revision")


def test_the_second_of_two_authors_is_told_and_merges(
    site: Site, scope: Any, draft: Draft, open_window: Callable[[str], Window]
) -> None:
    ada, bea = studio(open_window("ada"), draft), studio(open_window("bea"), draft)
    type_at_end_of(ada, "priority: 50", "1")
    has(ada, "#saved", "Saved")
    type_at_end_of(bea, "# The prices.", " By bea.")
    has(bea, ".conflict", "ada saved this draft in the meantime. You changed different lines.")
    assert "By bea" not in stored(site, scope, draft)
    bea.get_by_role("button", name="Merge both texts").click()
    has(bea, "#saved", "Saved as revision 2.")
    has(bea, ".cm-content", "priority: 501")
    merged = TEXT.replace("priority: 50", "priority: 501").replace("# The prices.", "# The prices. By bea.")
    assert stored(site, scope, draft) == merged
    # And now the first one, who keeps hers as a draft of its own.
    type_at_end_of(ada, "priority: 501", "2")
    has(ada, ".conflict", "bea saved this draft in the meantime.")
    ada.get_by_role("button", name="Save mine as a separate draft").click()
    has(ada, "h1", "prices (fork)")
    assert stored(site, scope, draft) == merged
    texts = {each.name: stored(site, scope, each) for each in site.instance.ledger.drafts.of(scope.scope_id)}
    assert texts["prices (fork)"] == TEXT.replace("priority: 50", "priority: 5012")


def test_a_session_that_ends_loses_no_typed_text(
    site: Site, scope: Any, draft: Draft, open_window: Callable[[str], Window]
) -> None:
    window = open_window("ada")
    page = studio(window, draft)
    site.instance.ledger.users.sign_out("ada", utc_now())
    type_at_end_of(page, "# The prices.", " Typed in vain?")
    has(page, "#saved", "This tab keeps your input.")
    assert stored(site, scope, draft) == TEXT
    # Somebody else goes on meanwhile.
    other = site.instance.ledger.drafts
    other.save(scope, draft.draft_id, TEXT.replace("priority: 50", "priority: 60"), after=1, by="bea", now=utc_now())
    page.locator("#saved").get_by_role("link", name="Sign in").click()
    window.sign_in("ada", PASSWORD)
    has(page, ".cm-content", "Typed in vain?")
    has(page, ".conflict", "bea saved this draft in the meantime.")
    page.get_by_role("button", name="Merge both texts").click()
    has(page, "#saved", "Saved as revision")
    assert stored(site, scope, draft) == TEXT.replace("priority: 50", "priority: 60").replace(
        "# The prices.", "# The prices. Typed in vain?"
    )


HOSTILE = {
    "a megabyte": "x" * (1024 * 1024),
    "a megabyte of json": '{"rules": [' + ",".join(['{"a": 1}'] * 100_000) + "]}",
    "deep": "[" * 100_000,
    "deep in yaml": "- " * 50_000,
    "ten thousand lines": "a:\n" + "  - b: 1\n" * 10_000,
    "one long line": 'a: "' + "<script>alert(1)</script>" * 4_000 + '"',
    "many errors": json.dumps({**sample_rulebook(), **{f"x{number}": 1 for number in range(5_000)}}),
    "script in names": TEXT.replace("approve_standard_exception", "<img src=x onerror=alert(1)>").replace(
        "margin_percent", '"</script><script>alert(1)</script>"'
    ),
}


@pytest.mark.parametrize("name", list(HOSTILE))
def test_a_hostile_draft_neither_runs_nor_hangs_the_page(
    site: Site, scope: Any, open_window: Callable[[str], Window], name: str
) -> None:
    text = HOSTILE[name][: 1024 * 1024]
    draft = draft_of(site, scope, text, '<b onclick="alert(1)">draft</b>')
    window = open_window("ada")
    page = studio(window, draft)
    has(page, "#part-state", re.compile("Not valid|Valid"))
    page.locator(".cm-content").click()
    page.keyboard.press("Control+Home")
    page.keyboard.type("#" if not text.startswith(("{", "[")) else " ")
    has(page, "#saved", re.compile("Saved as revision|at most"))
    # In another window: a page that is left with unsaved text asks first.
    others = open_window("bea")
    for other in ("cases", "revisions", "propose"):
        others.go(f"/{other}?scope=acme&id={draft.draft_id}")
    has(others.go("/drafts?scope=acme"), "main", "onclick")
