"""The whole story of a change, in a browser: a bad rollout is looked at, a draft is broken and mended, a case is made
of a decision, the analysis finds a hole, the past shows the harm, somebody else approves, and it is live and undone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from gate.encoding.canonical import content_hash
from tests.end_to_end.site import Site, wait_until
from tests.end_to_end.support import Server, free_port
from tests.support.browser import browser
from tests.support.command_line import run_gate
from tests.workbench.dashboard.browsing import Window

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SCOPE = "harbor-supply"
POLICY = "pricing_exception"
ROLLOUT = "2026-07-20"
PASSWORD = "a password that is long enough"
FACTS = {"discount_percent": 12, "margin_percent": 13.5}


@dataclass
class Story:
    """A demo that is served with its dashboard.

    Attributes:
        site: The instance.
        server: The service.
        url: Where the dashboard listens.
        key: A key of the scope.
        latest: The version that was registered last.
    """

    site: Site
    server: Server
    url: str
    key: str
    latest: str

    def gate(self, *arguments: str) -> Any:
        done = run_gate(*arguments, "--home", str(self.site.home), "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def decide(self) -> Any:
        """What is decided over HTTP of facts that two versions decide otherwise, by whichever is in force."""
        request = {
            "question": "May this discount be given?",
            "mode": "rulebook",
            "rulebook_ref": {"rulebook_id": POLICY},
            "context": {"workflow": "pricing", "requested_action": "approve_discount", "mutation": "quote.discount",
                        "actor": "a", "subject": "s", "target_system": "crm", "target_object_id": "o", "inputs": FACTS},
        }  # fmt: skip
        answer = httpx.post(
            f"{self.server.url}/api/decide", json=request, headers={"x-api-key": self.key}, trust_env=False, timeout=60
        )
        assert answer.status_code == 200, answer.text
        return answer.json()


@contextmanager
def told(directory: Path) -> Iterator[Story]:
    home, port = directory / "home", free_port()
    made = run_gate("demo", "--decisions", "3000", "--until", "2026-08-30", "--home", str(home), "--json")
    assert made.returncode == 0, made.stderr
    site = Site(home, None)
    secret = directory / "password"
    secret.write_text(PASSWORD)
    secret.chmod(0o600)
    for name, role in (("ada", "author"), ("bea", "author"), ("ben", "approver")):
        site.gate("users", "add", name, "--scope", SCOPE, "--role", role, "--password-file", str(secret))
        token = ("--token-file", str(directory / f"{name}.token"), "--password-file", str(secret))
        site.gate("users", "sign-in", name, *token)
    key = site.create_key(SCOPE)
    with site.serving(1, "--analytics", "--workbench", "--workbench-port", str(port)) as server:
        site.gate("lake", "export")
        rulebooks = site.gate("rulebook", "list", "--scope", SCOPE)["rulebooks"]
        latest = next(each["version"] for each in rulebooks if each["rulebook_id"] == POLICY)
        story = Story(site, server, f"http://127.0.0.1:{port}", key, latest)
        wait_until(lambda: listens(story.url))
        first_route(story, directory)
        yield story


def listens(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health", trust_env=False, timeout=10).is_success
    except httpx.TransportError:
        return False


def first_route(story: Story, directory: Path) -> None:
    """Routes to the latest version, on the command line."""
    ada, ben = (("--token-file", str(directory / f"{name}.token")) for name in ("ada", "ben"))
    scope = ("--scope", SCOPE)
    draft = story.gate("drafts", "new", "as it is", *scope, "--rulebook", f"{POLICY} {story.latest}", *ada)
    proposed = story.gate("drafts", "propose", draft["draft_id"], *scope, "--name", "first.route", *ada)
    story.gate("migrate", "approve", "first.route", *scope, "--evidence", proposed["evidence_hash"], *ben)
    story.gate("migrate", "apply", "first.route", *scope, *ada)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as started:
        yield started


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    with told(tmp_path_factory.mktemp("story")) as served:
        yield served


def has(page: Page, selector: str, text: str | re.Pattern[str]) -> None:
    from playwright.sync_api import expect

    expect(page.locator(selector)).to_contain_text(text, timeout=60_000)


def type_at_end_of(page: Page, line: str, text: str) -> None:
    page.locator(".cm-line", has_text=line).first.click()
    page.keyboard.press("End")
    page.keyboard.type(text)


def confirm(page: Page, consequence: str) -> None:
    assert consequence in page.locator("dialog").inner_text()
    page.locator("dialog button").first.click()


def draft_of_the_rollout(window: Window, name: str) -> Page:
    page = window.go(f"/drafts?scope={SCOPE}&policy={POLICY}&version={ROLLOUT}")
    page.get_by_label("Name of a new draft").fill(name)
    page.get_by_role("button", name=f"New draft of {POLICY} {ROLLOUT}").click()
    has(page, "#part-state", "Valid")
    has(page, "#saved", "Saved as revision 1.")
    return page


def test_a_change_is_drafted_proved_approved_applied_and_undone(story: Story, chromium: Browser) -> None:
    author = Window(chromium, story.url, viewport={"width": 1280, "height": 900})
    author.sign_in("ada", PASSWORD)
    blocked = author.go(f"/decisions?scope={SCOPE}&policy={POLICY}&verdict=no").locator("tbody a").first
    decision_id = re.findall(r"id=(dec_\w+)", str(blocked.get_attribute("href")))[0]
    page = draft_of_the_rollout(author, "after the rollout")

    # Broken, and mended: the error has its line, and each state is saved.
    type_at_end_of(page, "priority: 100", "x")
    has(page, "#part-state", "Not valid: 1 error")
    has(page, "#part-state", "must be an integer")
    page.keyboard.press("Backspace")
    has(page, "#part-state", "Valid")

    # A hole: without the margin, a discount would be approved.
    page.get_by_role("button", name="Remove this test of approve_standard_exception").nth(1).click()
    without_margin = page.locator(".cm-content", has_not_text="operator: gte")
    without_margin.wait_for()
    page.locator(".cm-line", has_text="required:").first.click()
    page.keyboard.press("End")
    page.keyboard.press("Shift+Home")
    page.keyboard.type("required: [discount_percent")
    has(page, "#part-findings", re.compile("danger"))
    page.locator("#part-findings").get_by_role("button", name="Show it").first.click()
    has(page, "#part-explained", "yes")
    for _ in range(2):
        page.locator(".cm-content").press("Control+z")
    has(page, ".cm-content", "operator: gte")
    has(page, "#part-findings", re.compile("No dangers|note"))

    # A case of a real decision: it has to stay blocked.
    draft_url = page.url
    author.follow(page.get_by_role("link", name="Cases", exact=True).first)
    page.get_by_label("Decision", exact=True).fill(decision_id)
    page.get_by_role("button", name="Make it a case").click()
    has(page, "h1", "1 case")

    # The dry run shows the harm of the rollout's thresholds.
    page.goto(draft_url)
    has(page, "#saved", "Saved")
    page.locator(".cm-line", has_text=f'version: "{ROLLOUT}').click()
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    page.keyboard.type(".1")
    has(page, "#saved", "Saved as revision")
    author.follow(page.get_by_role("link", name="Dry run and proposal"))
    page.get_by_role("button", name="Start the dry run").click()
    has(page, "#part-proof", "Dry run of")
    has(page, "#part-proof", "danger")
    assert page.locator("#part-proof a[href*='/decision?']").count() > 0

    # Corrected in the table, it is proved again and proposed.
    page.goto(draft_url)
    has(page, "#saved", "Saved")
    for label, value in (
        ("Value of block_below_margin_floor", "13"),
        ("Value of approve_standard_exception >> nth=1", "13"),
        ("Value of approve_standard_exception >> nth=0", "15"),
    ):
        name, _, nth = label.partition(" >> nth=")
        cell = page.get_by_label(name).nth(int(nth or 0))
        cell.fill(value)
        cell.press("Enter")
        has(page, "#saved", "Saved as revision")
        has(page, "#part-state", "Valid")
    author.follow(page.get_by_role("link", name="Dry run and proposal"))
    page.get_by_label("Name of the migration").fill("margins.corrected")
    page.get_by_label("Change and reason").fill("The floor is 13 percent, and not 8.")
    page.get_by_role("button", name="Start the dry run").click()
    has(page, "#part-proof", "The floor is 13 percent")
    page.get_by_role("button", name="Propose").click()
    confirm(page, "for approval")
    author.shows("/migration?")
    has(page, "h1", "margins.corrected: proposed")

    # The author cannot approve it, and an approver can.
    assert page.get_by_role("button", name="Approve").count() == 0
    has(page, "main", "You cannot approve your own migration")
    approver = Window(chromium, story.url, viewport={"width": 1280, "height": 900})
    approver.sign_in("ben", PASSWORD)
    theirs = approver.go(f"/migration?scope={SCOPE}&id=margins.corrected")
    theirs.get_by_label("Note").first.fill("Read, and fine.")
    theirs.get_by_role("button", name="Approve").click()
    confirm(theirs, "on the evidence of this page")
    has(theirs, "h1", "margins.corrected: approved")

    # Applied, a decide uses it; rolled back, it uses the one before.
    assert story.decide()["policy_version"] == story.latest
    theirs.get_by_role("button", name="Apply").click()
    confirm(theirs, "From the next decision on")
    has(theirs, "h1", "margins.corrected: applied")
    applied = story.decide()
    assert applied["policy_version"] == f"{ROLLOUT}.1"
    theirs.get_by_role("button", name=f"Roll back to {story.latest}").click()
    confirm(theirs, f"version {story.latest} decides")
    has(theirs, "h1", "margins.corrected: rolled back")
    assert story.decide()["policy_version"] == story.latest

    # The report is what was approved, and the chain has every step.
    with theirs.expect_download() as download:
        theirs.get_by_role("link", name="JSON", exact=True).click()
    evidence = json.loads(Path(download.value.path()).read_bytes())
    rest = {name: value for name, value in evidence.items() if name != "evidence_hash"}
    assert evidence["evidence_hash"] == content_hash(rest)
    shown = story.gate("migrate", "show", "margins.corrected", "--scope", SCOPE)
    assert [each["event"] for each in shown["entries"]] == ["proposed", "approved"]
    assert {each["evidence_hash"] for each in shown["entries"]} == {evidence["evidence_hash"]}
    assert [each["cause"] for each in shown["routes"]] == ["apply", "rollback"]
    timeline = approver.go(f"/migrations?scope={SCOPE}&policy={POLICY}").locator(".timeline").inner_text()
    assert timeline.index(story.latest) < timeline.index(f"{ROLLOUT}.1")
    story.gate("chain", "check")
    for window in (author, approver):
        window.require_harmless()
        window.close()
