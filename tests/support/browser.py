"""A real browser, and a page in it that notes everything that hostile text could bring about.

Chromium is that of the machine (`tests/support/browser.sh` finds or installs it); none is ever downloaded. Nothing
reaches a network: what a test does not serve itself is noted and refused.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Final, NoReturn

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Dialog, Page, Route

# The first draws no windows, which is less work.
_NAMES: Final = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_OWN: Final = "http://page.example/"
# Vega itself adds an empty form for the inputs that a chart may have.
_INJECTED: Final = (
    "img, iframe, object, embed, base, form:not(.vega-bindings), math, [onload], [onerror], [href^=javascript]"
)


@cache
def executable() -> str | None:
    """Where the machine's Chromium is; None where it has none that starts."""
    names = [os.environ["GATE_BROWSER"]] if "GATE_BROWSER" in os.environ else _NAMES
    for found in filter(None, map(shutil.which, names)):
        # Ubuntu's chromium-browser is a script that asks for a snap.
        if subprocess.run([found, "--version"], capture_output=True).returncode == 0:
            return found
    return None


def no_browser() -> NoReturn:
    """Skips a test that needs Chromium, or fails it where GATE_REQUIRE_BROWSER says that there must be one."""
    how = "no Chromium on this machine; tests/support/browser.sh says how to install one"
    if os.environ.get("GATE_REQUIRE_BROWSER"):
        pytest.fail(how)
    pytest.skip(how)


@contextmanager
def browser() -> Iterator[Browser]:
    """Starts the machine's Chromium; skips the test where there is none, or fails it where one is required."""
    # Loaded where it is used, as the browser tests say.
    from playwright.sync_api import sync_playwright

    found = executable()
    if found is None:
        no_browser()
    with sync_playwright() as playwright:
        # The pages are this repository's own, and root has no sandbox.
        started = playwright.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
        try:
            yield started
        finally:
            started.close()


class Watched:
    """A page, and what happened in it that must not.

    Attributes:
        page: The page.
        faults: Dialogs, errors of scripts, and requests to hosts that the test does not serve.
    """

    def __init__(self, browser: Browser, served: Mapping[str, bytes]) -> None:
        """Takes the browser, and bodies of scripts by the beginning of their addresses."""
        self._context = browser.new_context()
        self._served = served
        self._html = ""
        self._headers: dict[str, str] = {}
        self.faults: list[str] = []
        self._ignored: list[str] = []
        self._context.route("**/*", self._answer)
        # A page that another one opens is watched as well.
        self._context.on("page", self._watch)
        self.page: Page = self._context.new_page()

    def show(self, html: str, content_type: str = "text/html; charset=utf-8", **headers: str) -> Page:
        """Loads a page with this text, at an address of its own."""
        self._html = html
        self._headers = {"content-type": content_type, **{name.replace("_", "-"): of for name, of in headers.items()}}
        self.page.goto(_OWN, wait_until="load")
        return self.page

    def ignore(self, said: str) -> None:
        """Lets scripts say this in the console."""
        self._ignored.append(said)

    def require_harmless(self, *pages: Page) -> None:
        """Requires that no text of the page, or of these, became anything but text.

        Raises:
            AssertionError: It did.
        """
        for page in pages or (self.page,):
            # What a script began has ended by the second of two frames.
            page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
            found = page.eval_on_selector_all(_INJECTED, "all => all.map(of => of.outerHTML.slice(0, 200))")
            assert found == [], found
        assert self.faults == [], self.faults

    def forget(self) -> None:
        """Leaves what it shows, and forgets what happened: the next test has the same window."""
        self.page.goto("about:blank")
        self.faults.clear()
        self._ignored.clear()

    def close(self) -> None:
        """Closes the page and those that it opened."""
        self._context.close()

    def _watch(self, page: Page) -> None:
        def refuse(dialog: Dialog) -> None:
            self.faults.append(f"dialog: {dialog.message}")
            dialog.dismiss()

        page.on("dialog", refuse)
        page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        page.on("console", lambda said: self._said(said.type, said.text))

    def _said(self, kind: str, text: str) -> None:
        if kind in ("error", "warning") and not any(ignored in text for ignored in self._ignored):
            self.faults.append(f"{kind}: {text}")

    def _answer(self, route: Route) -> None:
        address = route.request.url
        if address == _OWN:
            route.fulfill(body=self._html, headers=self._headers)
            return
        body = next((body for beginning, body in self._served.items() if address.startswith(beginning)), None)
        if body is not None:
            route.fulfill(body=body, headers={"content-type": "text/javascript", "access-control-allow-origin": "*"})
            return
        # Chromium asks every host for its icon.
        if address != f"{_OWN}favicon.ico":
            self.faults.append(f"request: {address}")
        route.abort()
