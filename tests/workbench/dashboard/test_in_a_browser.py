"""The dashboard as analysts use it, in a real browser: with the mouse, with the keyboard alone, and after bad news."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.browser import browser
from tests.support.command_line import run_gate
from tests.workbench.dashboard.browsing import Demo, Window, demo
from tests.workbench.dashboard.changing import change
from tests.workbench.dashboard.serving import PASSWORD, Site, served
from tests.workbench.support import Shared

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.heavy

WIDE = 1280
HISTORY = Path(__file__).parents[3] / "data/history"
SCOPE = "scope=lumen-retail"
POLICY = f"{SCOPE}&policy=refund_policy"
PAGES = {
    "overview": f"/?{SCOPE}",
    "policy": f"/policy?{POLICY}",
    "anomalies": f"/anomalies?{SCOPE}",
    "anomaly": "",
    "benchmarks": f"/benchmarks?{POLICY}",
    "decisions": f"/decisions?{POLICY}",
    "decision": "",
    "held": f"/held?{SCOPE}",
    "reviews": f"/reviews?{SCOPE}",
    "review": "",
    "histories": f"/histories?{SCOPE}",
    "policy by event time": f"/policy?{POLICY}&clock=occurred",
    "nothing found": f"/decisions?{POLICY}&target=nowhere",
    "no such page": f"/policy?{SCOPE}&polcy=misspelt",
}


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as started:
        yield started


@pytest.fixture(scope="module")
def shown(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """A dashboard over the demo."""
    with demo(tmp_path_factory.mktemp("demo"), chromium) as served:
        yield served


@pytest.fixture(scope="module")
def _window(chromium: Browser, shown: Demo) -> Iterator[Window]:
    opened = Window(chromium, shown.url, storage_state=shown.state, viewport={"width": 1280, "height": 900})
    yield opened
    opened.close()


@pytest.fixture
def window(_window: Window) -> Iterator[Window]:
    """A window in which the demo's user is signed in; nothing may happen in it that must not."""
    yield _window
    _window.require_harmless()


@pytest.fixture(scope="module")
def paths(_window: Window, shown: Demo) -> dict[str, str]:
    """Every page by name; those of one anomaly and one decision are found by following the lists."""
    found = PAGES | change(shown.home, "lumen-retail", "refund_policy")
    for name, listed in (("anomaly", "anomalies"), ("decision", "decisions"), ("review", "reviews")):
        page = _window.go(found[listed])
        found[name] = str(page.locator(f"main a[href^='/{name}?']").first.get_attribute("href"))
    found["whatif of a decision"] = found["decision"].replace("/decision?", "/whatif?")
    return found


def test_an_analyst_finds_the_bad_rollout_and_proves_a_decision_of_it(window: Window, tmp_path: Path) -> None:
    page = window.go(f"/?{SCOPE}")
    assert "need" in window.title()
    headline = page.locator(".headlines li", has_text="refund_policy").first
    window.follow(headline.get_by_role("link"))
    # Whether it leads to the anomaly or to the policy, the version that is worse is named there.
    if "/policy" in page.url:
        window.follow(page.locator("main a[href^='/anomalies?']").first)
    assert "refund_policy" in page.locator("main").inner_text()
    window.go(f"/policy?{POLICY}")
    assert re.search(r"succe", window.title())
    window.follow(page.locator("main a[href^='/decisions?']").first)
    window.follow(page.locator("tbody a[href^='/decision?']").first)
    assert page.get_by_text("Verified", exact=True).first.is_visible()
    for what in ("packet", "keys"):
        with page.expect_download() as saved:
            page.locator(f"a[download][href^='/download/{what}']").first.click()
        saved.value.save_as(tmp_path / saved.value.suggested_filename)
    keys = tmp_path / "receipt-keys.json"
    (file,) = tmp_path.glob("dec_*.packet.json")
    # As the page says, and with nothing of the instance.
    checked = run_gate("verify-packet", str(file), "--registry", str(keys))
    assert checked.returncode == 0, checked.stdout


def test_history_and_bookmarks_show_the_same_pages(window: Window) -> None:
    page = window.go(f"/?{SCOPE}")
    first = window.title()
    window.follow(page.get_by_role("link", name="Held", exact=True))
    second, url = window.title(), page.url
    assert "/held?" in url
    page.go_back()
    window.shows("/?scope=lumen-retail")
    window.settle()
    assert window.title() == first
    page.go_forward()
    window.shows("/held?")
    window.settle()
    assert (window.title(), page.url) == (second, url)
    page.reload()
    window.settle()
    assert (window.title(), page.url) == (second, url)


def test_filters_are_in_the_address_and_back_undoes_them(window: Window) -> None:
    page = window.go(f"/decisions?{POLICY}")
    all_of_them = window.title()
    page.get_by_label("Verdict").select_option(label="review")
    window.shows("verdict=review")
    assert "verdict=review" in page.url
    assert window.title() != all_of_them
    page.get_by_label("From (UTC)").fill("2026-07-01")
    page.keyboard.press("Enter")
    window.shows("since=2026-07-01")
    page.get_by_label("Verdict").select_option(label="All verdicts")
    page.wait_for_function("() => !document.body.dataset.shown.includes('verdict')")
    page.go_back()
    window.shows("verdict=review")
    window.settle()
    assert page.get_by_label("Verdict").input_value() == "review"
    # Another policy opens again what belongs to the first.
    window.go(f"/policy?{POLICY}&version=x")
    page.get_by_label("Policy").select_option("crm_writeback_policy")
    page.wait_for_function("() => !document.body.dataset.shown.includes('version=x')")


def test_the_metric_of_a_what_if_is_in_the_address_and_stays_with_its_filters(window: Window) -> None:
    from playwright.sync_api import expect

    page = window.go(f"/whatif?{POLICY}")
    metric = page.get_by_label("Amount to add up")
    page.get_by_label("amount is").select_option("absent")
    metric.fill("refund_eur & more")
    expect(page).to_have_url(re.compile("metric=refund_eur"))
    # The page stays as it is, with the fact that was changed.
    assert page.get_by_label("amount is").input_value() == "absent"
    page.get_by_label("Only decisions with verdict").select_option("yes")
    window.shows("verdict=yes")
    window.settle()
    assert "metric=refund_eur+%26+more" in page.url
    assert metric.input_value() == "refund_eur & more"
    page.reload()
    window.settle()
    assert metric.input_value() == "refund_eur & more"
    metric.fill("")
    expect(page).not_to_have_url(re.compile("metric="))


def test_costs_and_verdicts_of_anomalies_are_chosen_in_the_page_and_go_along(window: Window) -> None:
    page = window.go(f"/anomalies?{POLICY}")
    costs = page.get_by_label("Cost in")
    value = costs.locator("option").nth(1).inner_text()
    costs.select_option(value)
    window.shows(f"value={value}")
    page.get_by_label("Verdict").select_option("yes")
    window.shows("verdict=yes")
    window.settle()
    assert f"value={value}" in page.url
    window.follow(page.locator("main a[href^='/anomaly?']").first)
    assert f"verdict=yes&value={value}" in page.url
    assert "only decisions with the verdict yes" in page.locator("main").inner_text()


def test_the_id_of_a_version_is_on_one_line_where_there_is_room(window: Window) -> None:
    page = window.go(f"/policy?{POLICY}")
    ids = page.get_by_role("region", name="Versions", exact=True).locator("tbody th a")
    assert ids.count() > 1
    assert all("-" in told for told in ids.all_inner_texts())
    assert set(ids.evaluate_all("of => of.map(each => each.getClientRects().length)")) == {1}


def test_the_theme_is_kept_in_this_browser(window: Window) -> None:
    page = window.go(f"/?{SCOPE}")
    dark = "() => getComputedStyle(document.documentElement).colorScheme"
    assert page.evaluate(dark) == "light"
    page.get_by_role("button", name="Light or dark").click()
    assert page.evaluate(dark) == "dark"
    page.reload()
    window.settle()
    assert page.evaluate(dark) == "dark"
    page.get_by_role("button", name="Light or dark").click()
    assert page.evaluate(dark) == "light"


def tab_to(window: Window, wanted: str, most: int = 60) -> None:
    """Presses Tab until an element with this name and text has the focus."""
    seen = []
    for _ in range(most):
        window.page.keyboard.press("Tab")
        seen.append(window.focused())
        if re.search(wanted, seen[-1]):
            return
    raise AssertionError(f"no {wanted} among {[name[:40] for name in seen]}")


def test_the_keyboard_alone_is_enough(window: Window) -> None:
    page = window.go(f"/?{SCOPE}")
    page.keyboard.press("Tab")
    assert window.focused() == "a: Skip to the page"
    page.keyboard.press("Enter")
    assert window.focused().startswith("main")
    tab_to(window, "^a: Open")
    window.go(f"/decisions?{POLICY}")
    tab_to(window, "^a: Overview$")
    tab_to(window, "^a: Held$")
    tab_to(window, "^select: ")
    tab_to(window, "^a: Decision ")
    page.keyboard.press("Enter")
    window.shows("/decision?")
    window.settle()
    # Another page begins at its heading.
    window.focuses("h1: ")
    window.go(f"/policy?{POLICY}")
    marks = page.locator("figure svg a")
    assert marks.count() > 0
    marks.first.focus()
    page.keyboard.press("Enter")
    window.shows("/decisions?")
    window.settle()


def test_a_link_within_a_page_leads_to_its_place(window: Window) -> None:
    page = window.go(f"/?{SCOPE}")
    # As the overview has where a part of the proof is not well.
    page.locator(".headlines li a").first.evaluate("link => link.setAttribute('href', '#health')")
    page.locator(".headlines li a").first.click()
    assert window.focused().startswith("h2: ")
    assert page.locator("#health").evaluate("of => of.getBoundingClientRect().top < window.innerHeight")


@pytest.mark.parametrize("width", [WIDE, 390])
def test_a_file_is_rehearsed_and_imported(chromium: Browser, shown: Demo, width: int) -> None:
    from playwright.sync_api import expect

    window = Window(chromium, shown.url, storage_state=shown.state, viewport={"width": width, "height": 900})
    page = window.go(f"/histories?{SCOPE}")
    history = f"two_years_{width}"
    page.get_by_label("Name", exact=True).fill(history)
    page.get_by_label("File").set_input_files(HISTORY / "refunds.csv")
    page.get_by_label("Map").fill((HISTORY / "refunds.map.yaml").read_text(encoding="utf-8"))
    page.get_by_role("button", name="Rehearse").click()
    expect(page.get_by_role("heading", name="How the file was read")).to_be_visible()
    assert window.violations() == []
    page.get_by_role("button", name=f"as {history}").click()
    imported = page.get_by_text(f"rows into the history {history}")
    expect(imported).to_be_visible()
    expect(imported).to_have_class("notice good")
    assert window.violations() == []
    window.follow(page.get_by_role("link", name="See its policy"))
    assert f"Imported cases of {history}: not in the chain." in page.locator("main").inner_text()
    assert window.violations() == []
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width
    # What comes of it is there before any fact is changed, and after one was.
    window.follow(page.get_by_role("link", name="What would a registered version decide in these cases?"))
    expect(page.locator("#part-many")).to_contain_text("of 240 imported cases would get another verdict")
    assert f"Imported cases of {history}: not in the chain." in page.locator("main").inner_text()
    page.get_by_label("fraud_flag is").select_option("value")
    page.get_by_label("fraud_flag", exact=True).fill("true")
    expect(page.locator("#part-many")).not_to_contain_text("approve_")
    expect(page.locator("#part-many")).to_contain_text("block_fraud_flag")
    assert window.violations() == []
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width
    window.require_harmless()
    window.close()


@pytest.mark.parametrize("width", [WIDE, 390])
def test_every_page_is_accessible(chromium: Browser, shown: Demo, paths: dict[str, str], width: int) -> None:
    window = Window(chromium, shown.url, storage_state=shown.state, viewport={"width": width, "height": 900})
    found: dict[str, list[str]] = {}
    for name, path in (*paths.items(), ("sign-out", "")):
        page = window.go(path) if path else window.page
        if not path:
            page.goto("/sign-out")
        # Colours do not depend on the width, and comparing them takes longer than all the rest.
        found[name] = window.violations(without=() if width == WIDE else ["color-contrast"])
        if (wide := page.evaluate("() => document.documentElement.scrollWidth")) > width:
            found[name].append(f"{wide} pixels wide")
        if width == WIDE:
            # A theme changes nothing but colours.
            page.emulate_media(color_scheme="dark")
            assert page.evaluate("() => getComputedStyle(document.documentElement).colorScheme") == "dark"
            found[name] += window.violations("color-contrast")
            page.emulate_media(color_scheme="light")
    window.require_harmless()
    window.close()
    assert {name: each for name, each in found.items() if each} == {}


def test_a_printed_page_has_its_content_and_no_navigation(window: Window, paths: dict[str, str]) -> None:
    page = window.go(paths["decision"])
    page.emulate_media(media="print")
    assert page.locator("h1").is_visible()
    for gone in (".head nav", ".filters", "#progress"):
        assert not page.locator(gone).first.is_visible()
    page.emulate_media(media="screen")


def test_what_takes_long_is_shown_to_be_under_way(
    chromium: Browser, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    from playwright.sync_api import expect

    from workbench.dashboard.pages import session
    from workbench.dashboard.pages.routes import load

    window, done = Window(chromium, site.url), Event()
    window.sign_in("ana", PASSWORD)

    def slowly(*arguments: Any) -> Any:
        done.wait(30)
        return load(*arguments)

    monkeypatch.setattr(session, "load", slowly)
    window.page.get_by_role("link", name="Held", exact=True).click()
    expect(window.page.locator("#progress")).to_have_text("Loading…")
    expect(window.page.locator("#progress")).to_be_in_viewport()
    done.set()
    window.shows("/held")
    expect(window.page.locator("#progress")).to_have_text("")
    window.require_harmless()
    window.close()


def test_a_lost_connection_is_said_with_the_way_out(chromium: Browser, decided: Shared, site: Site) -> None:
    from playwright.sync_api import expect

    with served(decided.instance) as other:
        window = Window(chromium, other.url)
        window.sign_in("ana", PASSWORD)
    expect(window.page.locator("#progress")).to_contain_text("The connection to the server was lost.")
    expect(window.page.get_by_role("link", name="Load the page again")).to_be_visible()
    window.close()


def test_a_signed_out_page_leads_to_the_sign_in_and_back(chromium: Browser, site: Site) -> None:
    window = Window(chromium, site.url)
    window.page.goto("/held?scope=acme")
    window.sign_in("ben", PASSWORD)
    window.shows("/held?scope=acme")
    site.instance.ledger.users.sign_out("ben", site.clock())
    window.page.get_by_role("link", name="Decisions").click()
    window.page.wait_for_url(re.compile("/sign-in"))
    assert "an operator changed your user" in window.page.get_by_role("alert").inner_text()
    window.sign_in("ben", PASSWORD)
    window.shows("/decisions?scope=acme")
    window.require_harmless()
    window.close()


def test_axe_would_notice_within_a_component(window: Window) -> None:
    page = window.go(f"/?{SCOPE}")
    page.locator("h1").evaluate(
        "of => { of.insertAdjacentHTML('afterend', '<img src=\"/assets/icon.svg\"><button></button>'); }"
    )
    found = " ".join(window.violations())
    assert "image-alt" in found
    assert "button-name" in found
