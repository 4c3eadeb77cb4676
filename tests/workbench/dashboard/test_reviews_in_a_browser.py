"""The queue of reviews in a real browser, with the keyboard alone: one is opened and granted, and the next shown."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from gate.clock import utc_now
from gate.instance.instance import Instance
from gate.ledger.access.authority import Authority, Scope
from gate.ledger.chain.reviews import Terms
from tests.support.browser import browser
from tests.support.samples import sample_request
from tests.workbench.dashboard.browsing import Window
from tests.workbench.dashboard.serving import PASSWORD, Site, served

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.heavy


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as started:
        yield started


@pytest.fixture
def held(instance: Instance, authority: Authority, scope: Scope) -> list[str]:
    """Three held actions, the first of which is due soon."""
    terms = Terms("risk-desk", 1_800)
    instance.ledger.review_owners.set(scope, "", "", terms, utc_now())
    ids = []
    for number in range(3):
        request = sample_request(discount_percent=20, margin_percent=22)
        request["context"]["target_object_id"] = f"deal-{number}"
        ids.append(instance.gate().decide(authority, request, request_id=f"req_{number}").record["decision_id"])
    return ids


@pytest.fixture
def site(instance: Instance, scope: Scope, held: list[str]) -> Iterator[Site]:
    """A dashboard with two approvers, whose clock is a little ahead."""
    with served(instance) as found:
        for name in ("ada", "ben"):
            found.add_user(name, [scope], "approver")
        found.clock.forward(timedelta(minutes=2))
        yield found
        assert found.failures.seen == []


def test_an_approver_works_through_the_queue_with_the_keyboard_alone(
    chromium: Browser, site: Site, scope: Scope, held: list[str]
) -> None:
    window = Window(chromium, site.url, viewport={"width": 1280, "height": 900})
    window.sign_in("ada", PASSWORD)
    page, keyboard = window.go("/reviews?scope=acme"), window.page.keyboard
    assert window.violations() == []
    keyboard.press("j")
    window.focuses("a: Approve discount on deal-0")
    keyboard.press("ArrowDown")
    window.focuses("a: Approve discount on deal-1")
    keyboard.press("k")
    keyboard.press("Enter")
    window.shows(held[0])
    window.focuses("h1: Held: Approve discount on deal-0")
    assert window.violations() == []
    # Letters are text in the note; Escape leaves it, and what is written stays.
    keyboard.press("g")
    window.focuses("textarea: ")
    keyboard.type("jkr agreed")
    keyboard.press("Escape")
    window.focuses("h1: Held")
    # It is still there after the page was loaded anew.
    window.go(f"/review?scope=acme&id={held[0]}")
    assert page.get_by_label("Note:").input_value() == "jkr agreed"
    # Another approver is quicker: the page says so where the resolution stands, and the note is still there.
    ben = site.instance.ledger.users.user("ben")
    site.instance.resolutions(site.clock).resolve_as(ben, scope, held[0], "refused")
    keyboard.press("g")
    keyboard.press("Control+Enter")
    dialog = page.locator("dialog")
    assert "You are about to grant this action: Approve discount on deal-0" in dialog.inner_text()
    keyboard.press("Enter")
    window.focuses("p: Your answer was not recorded. The review already has an answer.")
    assert window.title().startswith("Refused: Approve discount on deal-0")
    assert page.get_by_role("heading", name="The review was refused by the user ben").is_visible()
    assert page.get_by_role("button", name="Grant").count() == 0
    assert page.get_by_label("Your unrecorded note").input_value() == "jkr agreed"
    assert window.violations() == []
    # The next one is granted, and the one behind it follows. (Escape would lead to the list.)
    keyboard.press("j")
    window.shows(held[1])
    window.focuses("h1: Held: Approve discount on deal-1")
    keyboard.press("g")
    keyboard.type("Agreed with the customer.")
    keyboard.press("Control+Enter")
    dialog.wait_for()
    keyboard.press("Enter")
    window.shows(held[2])
    window.focuses("h1: Held: Approve discount on deal-2")
    assert "deal-1, 1,200.5 EUR: granted on" in page.locator("[role=status].notice").inner_text()
    found = site.instance.resolutions(site.clock).standing(scope.scope_id, held[1])
    assert found["resolution"] is not None
    assert found["resolution"].get("note") == "Agreed with the customer."
    # Back in the list, the focus is on the review that was left; letters can be turned off.
    keyboard.press("Escape")
    window.shows("/reviews")
    window.focuses("a: Approve discount on deal-2")
    page.get_by_role("button", name="Turn the letter keys off").click()
    keyboard.press("k")
    window.focuses("button: Turn the letter keys on")
    window.require_harmless()
    window.close()
