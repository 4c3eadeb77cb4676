"""The site is built without a warning, and works offline: search, light and dark, and on a phone."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.end_to_end.support import ROOT
from tests.support.browser import browser

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, ViewportSize

pytestmark = pytest.mark.heavy

PHONE: ViewportSize = {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the site, which this builds."""
    folder = tmp_path_factory.mktemp("docs") / "site"
    # As `make docs` does: the builder itself uses what its later releases will not have, which warns.
    command = [sys.executable, "-m", "docs.tools.site", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return folder


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as started:
        yield started


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    """A page in a browser without a network."""
    context = chromium.new_context(viewport=PHONE, color_scheme="dark", offline=True)
    try:
        yield context.new_page()
    finally:
        context.close()


def pages(built: Path) -> list[Path]:
    return [page for page in built.rglob("*.html") if "_static" not in page.parts]


def test_every_page_of_the_documentation_is_in_it(built: Path) -> None:
    written = [page for page in (ROOT / "docs").rglob("*.md") if "tools" not in page.parts]
    shown = [str(page.relative_to(ROOT / "docs")).replace("README.md", "index.md") for page in written]
    missing = [name for name in shown if not (built / name).with_suffix(".html").exists()]
    assert missing == []


def test_no_page_loads_anything_from_elsewhere(built: Path) -> None:
    for page in pages(built):
        loaded = re.findall(r"<(?:script|img|iframe|source)[^>]*?\ssrc=\"([^\"]+)\"", page.read_text())
        loaded += re.findall(
            r"<link(?=[^>]*rel=\"(?:stylesheet|preload|icon)\")[^>]*?href=\"([^\"]+)\"", page.read_text()
        )
        assert [address for address in loaded if "//" in address] == [], page


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("gate.client", "gate.client.Client.guard"),
        ("gate.client", "gate.client.HeldForReview"),
        ("workbench.engines.effectiveness", "workbench.engines.effectiveness.effectiveness"),
        ("workbench.engines.anomalies.report", "workbench.engines.anomalies.report.anomalies"),
        ("workbench.lake.reader", "workbench.lake.reader.open_lake"),
    ],
)
def test_the_python_reference_comes_from_docstrings(built: Path, module: str, name: str) -> None:
    assert f'id="{name}"' in (built / "reference" / "python" / f"{module}.html").read_text()


def test_search_finds_a_page_without_a_network(built: Path, page: Page) -> None:
    page.goto(f"{(built / 'search.html').as_uri()}?q=idempotency")
    page.wait_for_selector("#search-results li")
    found = page.eval_on_selector_all("#search-results li a", "all => all.map(each => each.textContent)")
    assert "Retry safely" in found


@pytest.mark.parametrize(
    ("words", "title"),
    [("create API key", "Manage scopes and API keys"), ("restore backup", "Back up and restore")],
)
def test_search_lists_the_guide_of_a_task_among_the_first(built: Path, page: Page, words: str, title: str) -> None:
    page.goto(f"{(built / 'search.html').as_uri()}?q={words}")
    page.wait_for_selector("#search-results li:nth-child(5)")
    first = page.eval_on_selector_all("#search-results li > a", "all => all.slice(0, 5).map(each => each.textContent)")
    assert title in first


def test_a_page_is_dark_where_the_reader_prefers_that(built: Path, page: Page) -> None:
    page.goto((built / "index.html").as_uri())
    background = "() => getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).map(Number)"
    assert max(page.evaluate(background)) < 64
    page.emulate_media(color_scheme="light")
    assert min(page.evaluate(background)) > 192


@pytest.mark.parametrize(
    "name",
    ["index", "tutorials/first-decision", "reference/api/decide", "reference/settings", "explanation/threat-model"],
)
def test_a_page_fits_a_phone(built: Path, page: Page, name: str) -> None:
    page.goto((built / f"{name}.html").as_uri())
    assert page.evaluate("() => document.documentElement.scrollWidth") <= PHONE["width"]
