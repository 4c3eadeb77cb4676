"""The dashboard in a real browser: a window that notes whatever must not happen, and a demo that it is shown from."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import axe_playwright_python

from tests.support.command_line import run_gate
from tests.workbench.dashboard.serving import free_port

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Dialog, Locator, Page

_AXE: Final = Path(axe_playwright_python.__file__).parent / "axe.min.js"
# What a page takes on a machine that does much else as well; one that takes longer fails.
_MOST_MS: Final = 30_000

_FOCUSED: Final = """() => {
    let at = document.activeElement;
    while (at && at.shadowRoot && at.shadowRoot.activeElement) at = at.shadowRoot.activeElement;
    return `${at.localName}: ${at.textContent.trim() || at.getAttribute("aria-label") || ""}`;
}"""


class Window:
    """A window with one page.

    Attributes:
        page: The page.
        faults: Dialogs, errors of scripts, and requests to other hosts.
    """

    def __init__(self, browser: Browser, url: str, **more: Any) -> None:
        """Opens a window.

        Args:
            browser: The browser.
            url: Where the dashboard listens.
            more: How the window is, such as its `viewport` or its cookies, `storage_state`.
        """
        self.url: Final = url
        self.context: Final[BrowserContext] = browser.new_context(base_url=url, **more)
        self.context.set_default_timeout(_MOST_MS)
        self.faults: list[str] = []
        self.context.on("request", lambda request: self._requested(request.url))
        self.context.on("console", lambda said: self._said(said.type, said.text))
        self.context.on("weberror", lambda error: self.faults.append(f"error: {error.error.stack or error.error}"))
        self.context.on("dialog", self._asked)
        self.page: Final[Page] = self.context.new_page()

    def sign_in(self, name: str, password: str) -> None:
        """Fills in the form of the sign-in, on which the page is or to which it goes."""
        if "/sign-in" not in self.page.url:
            self.page.goto("/sign-in")
        self.page.get_by_label("Name").fill(name)
        self.page.get_by_label("Password").fill(password)
        self.page.get_by_role("button", name="Sign in").click()
        self.settle()

    def go(self, path: str) -> Page:
        """Loads a page anew, as a bookmark does."""
        self.page.goto(path)
        self.settle()
        return self.page

    def follow(self, link: Locator) -> Page:
        """Clicks on a link."""
        link.click()
        self.settle()
        return self.page

    def settle(self) -> None:
        """Waits until the page that was asked for is shown."""
        from playwright.sync_api import expect

        expect(self.page.locator("body")).to_have_attribute("data-state", "ready", timeout=_MOST_MS)

    def shows(self, part: str) -> None:
        """Waits until a page is shown whose address has this part."""
        from playwright.sync_api import expect

        expected = re.compile(re.escape(part))
        expect(self.page.locator("body")).to_have_attribute("data-shown", expected, timeout=_MOST_MS)

    def title(self) -> str:
        """The heading."""
        return self.page.locator("h1").inner_text()

    def focused(self) -> str:
        """The name of the element that has the focus, and its text."""
        return str(self.page.evaluate(_FOCUSED))

    def focuses(self, beginning: str) -> None:
        """Waits until the focus is on an element whose name and text begin so."""
        self.page.wait_for_function(f"beginning => ({_FOCUSED})().startsWith(beginning)", arg=beginning)

    def violations(self, *rules: str, without: Sequence[str] = ()) -> list[str]:
        """What axe finds serious or critical, by all of its rules or by some: rule, element, and why."""
        self.page.evaluate(_AXE.read_text(encoding="utf-8"))
        options = {
            "resultTypes": ["violations"],
            "rules": {rule: {"enabled": False} for rule in without},
            **({"runOnly": list(rules)} if rules else {}),
        }
        found = self.page.evaluate("options => axe.run(document, options)", options)
        return [
            f"{rule['id']}: {node['html'][:160]}: {node['failureSummary'][:200]}"
            for rule in found["violations"]
            if rule["impact"] in ("serious", "critical")
            for node in rule["nodes"]
        ]

    def require_harmless(self) -> None:
        """Requires that nothing happened that must not.

        Raises:
            AssertionError: Something did.
        """
        faults, self.faults = self.faults, []
        assert not faults, faults

    def close(self) -> None:
        """Closes it."""
        self.context.close()

    def _asked(self, dialog: Dialog) -> None:
        self.faults.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _requested(self, url: str) -> None:
        if not url.startswith((f"{self.url}/", "data:", "blob:")):
            self.faults.append(f"request: {url}")

    def _said(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.faults.append(f"{kind}: {text}")


@dataclass(frozen=True)
class Demo:
    """A dashboard over the demo, a process of its own.

    Attributes:
        home: The instance's home.
        url: Where it listens.
        state: The cookies of a browser in which the demo's user is signed in.
    """

    home: Path
    url: str
    state: Any


@contextmanager
def demo(directory: Path, browser: Browser) -> Iterator[Demo]:
    """Makes a small demo that shows what is planted in it, serves it, and signs its user in."""
    home = directory / "home"
    made = run_gate("demo", "--decisions", "3000", "--until", "2026-08-30", "--home", str(home), "--json")
    assert made.returncode == 0, made.stderr
    gate = Path(sys.executable).with_name("gate")
    command = [str(gate), "workbench", "--home", str(home), "--port", str(free_port()), "--demo", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            lines: list[str] = []
            while not lines or lines[-1].rstrip() != "}":
                lines.append(process.stdout.readline())
                assert lines[-1], "the dashboard ended"
            told = json.loads("".join(lines))
            yield Demo(home, told["url"], _signed_in(browser, told["url"], told["sign_in_once"]))
        finally:
            process.terminate()


def _signed_in(browser: Browser, url: str, link: str) -> Any:
    window = Window(browser, url)
    try:
        window.page.goto(link)
        window.page.get_by_role("button", name="Open the dashboard").click()
        window.settle()
        window.require_harmless()
        return window.context.storage_state()
    finally:
        window.close()
