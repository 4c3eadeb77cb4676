"""Makes pictures of every page of the dashboard (`make screenshots`), for people to look at: light and dark, on a wide
and on a narrow screen, and printed, in build/screenshots/.

The pages are those of the demo in var-demo. With `README=1` the pictures that the README shows are made anew, too.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from tests.support.browser import browser
from tests.workbench.dashboard.changing import change

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, ViewportSize

ROOT: Final = Path(__file__).parents[1]
DEMO: Final = ROOT / "var-demo"
PICTURES: Final = ROOT / "build" / "screenshots"
IMAGES: Final = ROOT / "docs" / "images"
SHOWN: Final = ("overview", "policy")
"""The pages that the README shows."""

# The company with the bad rollout, and the one with the burst of fraud.
_ROLLOUT: Final = "scope=harbor-supply"
_FRAUD: Final = "scope=lumen-retail"
_WIDE: Final[ViewportSize] = {"width": 1280, "height": 900}
_NARROW: Final[ViewportSize] = {"width": 390, "height": 844}
_MOST_MS: Final = 60_000


def main() -> None:
    """Makes the pictures."""
    shutil.rmtree(PICTURES, ignore_errors=True)
    PICTURES.mkdir(parents=True)
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as directory, browser() as started:
        # A copy, in which a change is put on its way.
        home = Path(directory, "home")
        shutil.copytree(DEMO, home)
        changing = change(home, "harbor-supply", "pricing_exception")
        _take(started, home, changing)
    sys.stdout.write(f"{len(list(PICTURES.iterdir()))} pictures in {PICTURES.relative_to(ROOT)}\n")


def _take(started: Browser, home: Path, changing: dict[str, str]) -> None:
    """Takes a picture of every page, in every way in which it is shown."""
    with _dashboard(home) as (url, link):
        state = _signed_in(started, link)
        pages = _pages(started, url, state, changing)
        themes: tuple[Literal["light"], Literal["dark"]] = ("light", "dark")
        for theme in themes:
            for width, size in (("1280", _WIDE), ("390", _NARROW)):
                context = started.new_context(storage_state=state, color_scheme=theme, viewport=size)
                page = context.new_page()
                for name, path in pages.items():
                    _open(page, f"{url}{path}")
                    page.screenshot(path=PICTURES / f"{name}-{theme}-{width}.png", full_page=True)
                    if (theme, width) == ("light", "1280"):
                        if name in SHOWN and os.environ.get("README"):
                            page.screenshot(path=IMAGES / f"workbench-{name}.png")
                        # Paper has no theme, and the browser lays the page out for it.
                        page.pdf(path=PICTURES / f"{name}.pdf", format="A4", print_background=True)
                context.close()


@contextmanager
def _dashboard(home: Path) -> Iterator[tuple[str, str]]:
    """A dashboard over the demo: its address, and the link that signs in."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [str(ROOT / ".venv" / "bin" / "gate"), "workbench", "--home", str(home), "--port", str(port)]
    process = subprocess.Popen([*command, "--demo", "--json"], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        told = json.loads(_document(process))
        yield told["url"], told["sign_in_once"]
    finally:
        process.terminate()
        process.wait()


def _document(process: subprocess.Popen[str]) -> str:
    """The JSON that a process prints first."""
    assert process.stdout is not None
    lines: list[str] = []
    for line in process.stdout:
        lines.append(line)
        if line.rstrip() == "}":
            return "".join(lines)
    raise RuntimeError("The dashboard ended before it was ready; run make demo first.")


def _signed_in(started: Browser, link: str) -> Any:
    context = started.new_context()
    page = context.new_page()
    page.goto(link)
    page.get_by_role("button").click()
    page.wait_for_selector("body[data-state=ready]", state="attached", timeout=_MOST_MS)
    state = context.storage_state()
    context.close()
    return state


def _pages(started: Browser, url: str, state: Any, changing: dict[str, str]) -> dict[str, str]:
    """Every page by name; those of one anomaly, one decision and one review are found by following the lists."""
    context = started.new_context(storage_state=state)
    page = context.new_page()
    found = {
        "overview": f"/?{_ROLLOUT}",
        "policy": f"/policy?{_ROLLOUT}&policy=pricing_exception",
        "anomalies": f"/anomalies?{_FRAUD}",
        "anomaly": "",
        "benchmarks": f"/benchmarks?{_FRAUD}&policy=refund_policy",
        "decisions": f"/decisions?{_ROLLOUT}&policy=pricing_exception&version=2026-07-20&outcome=failed",
        "decision": "",
        "held": f"/held?{_ROLLOUT}",
        "reviews": f"/reviews?{_ROLLOUT}",
        "review": "",
        "reviews-granted": f"/reviews?{_ROLLOUT}&state=granted",
        "nothing-found": f"/decisions?{_ROLLOUT}&target=nowhere",
        "not-there": f"/policy?{_ROLLOUT}&polcy=misspelt",
        **changing,
    }
    for name, listed in (("anomaly", "anomalies"), ("decision", "decisions"), ("review", "reviews")):
        _open(page, f"{url}{found[listed]}")
        found[name] = str(page.locator(f"main a[href^='/{name}?']").first.get_attribute("href"))
    found["whatif-of-a-decision"] = found["decision"].replace("/decision?", "/whatif?")
    context.close()
    return {**found, "sign-out": "/sign-out"}


def _open(page: Page, url: str) -> None:
    page.goto(url)
    if page.locator("body.outside").count() == 0:
        page.wait_for_selector("body[data-state=ready]", state="attached", timeout=_MOST_MS)


if __name__ == "__main__":
    main()
