"""Chromium as a reader of the dashboard uses it: pages opened, links followed, filters changed. Each is timed by the
page's own clock, until the page says that it is ready and has been painted once more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from bench.measure import Mismatch

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Locator, Page

_TIMEOUT_MS: Final = 20_000

# Resolves with the milliseconds since the page was asked for, or since `act` was called, until it was painted.
_TIMES: Final = """
window.benchReady = (act) => new Promise((resolve, reject) => {
  const started = act ? performance.now() : 0;
  const before = act ? document.body.dataset.shown : undefined;
  const painted = () => requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - started)));
  const look = () => {
    const { state, shown } = document.body ? document.body.dataset : {};
    if (state === "lost") { seen.disconnect(); reject(new Error("The connection was lost.")); }
    if (state === "ready" && (!act || shown !== before)) { seen.disconnect(); painted(); }
  };
  const seen = new MutationObserver(look);
  seen.observe(document, { subtree: true, childList: true, attributes: true, attributeFilter: ["data-state"] });
  if (act) act();
});
window.benchOpened = window.benchReady(null);
"""
# Resolves with the milliseconds since `act` was called until the server's answer to it was painted. A page says when it
# asked, and which question was answered.
_ANSWERS: Final = """
window.benchAnswered = (act) => new Promise((resolve) => {
  const started = performance.now();
  const before = Number(document.body.dataset.acting || 0);
  const painted = () => requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - started)));
  const look = () => {
    const { acting, answered } = document.body.dataset;
    if (Number(acting) > before && acting === answered) { seen.disconnect(); painted(); }
  };
  const seen = new MutationObserver(look);
  seen.observe(document.body, { attributes: true, attributeFilter: ["data-acting", "data-answered"] });
  act();
});
"""
# Resolves with the milliseconds since the next key was pressed until a part of the page that begins with a text was
# painted. Parts are in shadow roots, which an observer of the document does not see, so each frame is checked.
_PRESSES: Final = """
window.benchPressed = (part, text) => new Promise((resolve, reject) => {
  const all = (root) => [...root.querySelectorAll("*")].flatMap(
    (each) => [each, ...(each.shadowRoot ? all(each.shadowRoot) : [])]);
  const found = all(document).find((each) => each.matches(part));
  const look = (started) => {
    if (found.textContent.trim().startsWith(text)) setTimeout(() => resolve(performance.now() - started));
    else requestAnimationFrame(() => look(started));
  };
  addEventListener("keydown", () => look(performance.now()), { capture: true, once: true });
  setTimeout(() => reject(new Error(`The page shows no ${text}: ${found.textContent.trim().slice(0, 400)}`)), LONGEST);
});
""".replace("LONGEST", str(_TIMEOUT_MS))
_MOVE: Final = """
(field, value) => window.benchAnswered(() => {
  field.value = value;
  field.dispatchEvent(new Event("input", { bubbles: true, composed: true }));
})
"""
# A link in a chart is an SVG element, which has no click().
_FOLLOW: Final = """
(link) => window.benchReady(() => {
  link.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true, composed: true }));
})
"""
_GO: Final = """
(url) => window.benchReady(() => { history.pushState(null, "", url); dispatchEvent(new PopStateEvent("popstate")); })
"""
_CHANGE: Final = """
(field, value) => window.benchReady(() => {
  field.value = value;
  field.dispatchEvent(new Event("change", { bubbles: true }));
})
"""


class Tab:
    """A page in a browser that is signed in and has nothing in its cache yet.

    Attributes:
        faults: What the page's scripts complained about.
    """

    def __init__(self, browser: Browser, base: str, cookies: Mapping[str, str]) -> None:
        """Opens no page yet.

        Args:
            browser: The browser.
            base: The server's address.
            cookies: The cookies of a signed-in session, by name.
        """
        self._base = base
        self._context: BrowserContext = browser.new_context(viewport={"width": 1280, "height": 900})
        self._context.set_default_timeout(_TIMEOUT_MS)
        self._context.add_init_script(_TIMES + _ANSWERS + _PRESSES)
        self._context.add_cookies([{"name": name, "value": value, "url": base} for name, value in cookies.items()])
        self.page: Page = self._context.new_page()
        self.faults: list[str] = []
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("console", lambda said: self.faults.append(said.text) if said.type == "error" else None)

    @property
    def shown(self) -> str:
        """The URL of the page that is shown."""
        return str(self.page.locator("body").get_attribute("data-shown"))

    def open(self, url: str) -> float:
        """Loads a page as from the address bar; the milliseconds until it is ready."""
        self.page.goto(f"{self._base}{url}", wait_until="commit")
        self.page.wait_for_selector("body[data-state=ready]", state="attached")
        return self._checked(self.page.evaluate("() => window.benchOpened"))

    def follow(self, link: str) -> float:
        """Follows the first link that a selector finds; the milliseconds until its page is ready."""
        return self._checked(self._one(self.page.locator(link)).evaluate(_FOLLOW, timeout=_TIMEOUT_MS))

    def go(self, url: str) -> float:
        """Goes to a page as by the browser's history; the milliseconds until it is ready."""
        return self._checked(self.page.evaluate(_GO, url))

    def change(self, label: str, value: str) -> float:
        """Gives the filter of a label another value; the milliseconds until the page is ready."""
        field = self.page.get_by_label(label, exact=True)
        return self._checked(self._one(field).evaluate(_CHANGE, value, timeout=_TIMEOUT_MS))

    def press(self, key: str, part: str, text: str) -> float:
        """Presses a key; the milliseconds until a part of the page that begins with a text was painted.

        Args:
            key: The key.
            part: The selector of the part, which is there already.
            text: What it begins with.
        """
        self.page.evaluate("([part, text]) => { window.benchTaken = window.benchPressed(part, text); }", [part, text])
        self.page.keyboard.press(key)
        return self._checked(self.page.evaluate("() => window.benchTaken"))

    def move(self, field: str, value: str) -> float:
        """Gives a field that is answered at once another value; the milliseconds until its answer is shown."""
        return self._checked(self._one(self.page.locator(field)).evaluate(_MOVE, value, timeout=_TIMEOUT_MS))

    def close(self) -> None:
        """Closes the page, and forgets what the browser kept for it."""
        self._context.close()

    def _one(self, found: Locator) -> Locator:
        if not found.count():
            raise Mismatch(f"The page {self.shown} has no such link or field: {found}")
        return found.first

    def _checked(self, taken: Any) -> float:
        """The time, once the page shows what was asked for.

        Raises:
            Mismatch: It says that it cannot be shown, or a script failed.
        """
        if self.faults:
            raise Mismatch(f"A script failed on {self.shown}: {self.faults}")
        if "cannot be shown" in self.page.title():
            raise Mismatch(f"{self.shown} was not shown: {self.page.locator('main').inner_text()}")
        return float(taken)


@contextmanager
def chromium() -> Iterator[Browser]:
    """The machine's Chromium, running while the block does.

    Raises:
        Mismatch: There is none.
    """
    # Only this part needs a browser.
    from playwright.sync_api import sync_playwright

    from tests.support.browser import executable

    found = executable()
    if found is None:
        raise Mismatch("There is no Chromium on this machine; tests/support/browser.sh says how to install one.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
        try:
            yield browser
        finally:
            browser.close()
