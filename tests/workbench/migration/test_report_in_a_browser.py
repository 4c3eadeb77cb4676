"""The report of a migration in a real browser: read wide, narrow, dark and on paper, and nothing is fetched or run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, Literal

import pytest

from gate.decisions.migrations.documents import migration_document
from tests.support.browser import Watched, browser
from tests.support.migrations import Example
from tests.workbench.charts.test_in_a_browser import MEASURE
from tests.workbench.hostile import NAMES
from tests.workbench.migration.test_report import named
from workbench.migration.report import as_html

# The browser is loaded where it is used: `make check` collects these tests, and runs none.
pytestmark = pytest.mark.heavy

_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_BEYOND: Final = """scrolling => {
    const width = document.documentElement.clientWidth;
    const scrolls = of => scrolling && of.closest(".scroll, figure") !== null;
    return [...document.querySelectorAll("main *:not(svg *)")].filter(of => !scrolls(of))
        .filter(of => of.getBoundingClientRect().right > width + 1).map(of => of.outerHTML.slice(0, 80));
}"""
# The contrast of every text on what lies behind it, by WCAG 2.
_FAINT: Final = """() => {
    const parts = colour => colour.match(/[\\d.]+/g).map(Number);
    const light = ([r, g, b]) => [r, g, b].map(c => c / 255)
        .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
        .reduce((sum, c, at) => sum + c * [0.2126, 0.7152, 0.0722][at], 0);
    const behind = of => {
        for (let at = of; at !== null; at = at.parentElement) {
            const [r, g, b, a = 1] = parts(getComputedStyle(at).backgroundColor);
            if (a > 0) return [r, g, b];
        }
        return [255, 255, 255];
    };
    const contrast = of => {
        const [one, other] = [light(parts(getComputedStyle(of).color)), light(behind(of))].sort((a, b) => b - a);
        return (one + 0.05) / (other + 0.05);
    };
    return [...document.querySelectorAll("main *:not(svg *)")]
        .filter(of => [...of.childNodes].some(node => node.nodeType === 3 && node.data.trim()))
        .filter(of => contrast(of) < 4.5).map(of => of.outerHTML.slice(0, 80));
}"""


@pytest.fixture(scope="module")
def watched() -> Iterator[Watched]:
    with browser() as started:
        watching = Watched(started, {})
        yield watching
        watching.close()


def example() -> str:
    """The report of the documentation's example."""
    (stored, *_) = Example().stored
    return as_html(migration_document(stored, []), stored.evidence)


def show(watched: Watched, html: str, width: int, scheme: Literal["light", "dark"]) -> Any:
    watched.page.set_viewport_size({"width": width, "height": 900})
    watched.page.emulate_media(media="screen", color_scheme=scheme)
    return watched.show(html, content_security_policy=_POLICY)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
def test_the_page_is_read_at_every_width_and_in_both_schemes(
    width: int, scheme: Literal["light", "dark"], watched: Watched
) -> None:
    page = show(watched, example(), width, scheme)
    assert page.evaluate(_BEYOND, True) == []
    assert page.evaluate(_FAINT) == []
    first = page.locator(".lines li").first
    assert "version 2026-12-01 would replace 2026-06-11" in first.inner_text()
    assert first.bounding_box()["y"] < 300
    drawn = page.eval_on_selector_all("figure svg", MEASURE)
    assert len(drawn) == 2
    if width > 400:
        assert [(of["outside"], of["over"]) for of in drawn] == [([], [])] * 2
    watched.require_harmless()


@pytest.mark.parametrize("name", [*NAMES, "long" * 60], ids=["tags", "texts", "long"])
def test_a_hostile_name_is_text_and_breaks_no_line(name: str, watched: Watched) -> None:
    page = show(watched, as_html(*named(name)), 360, "light")
    assert page.evaluate(_BEYOND, True) == []
    watched.require_harmless()


@pytest.mark.parametrize(("paper", "width", "height"), [("A4", 595, 842), ("Letter", 612, 792)])
def test_it_prints_on_both_papers_as_it_reads(paper: str, width: int, height: int, watched: Watched) -> None:
    page = show(watched, as_html(*named("approve_change_of_mind_within_thirty_days")), 1280, "dark")
    printed = page.pdf(format=paper)
    boxes = [[float(number) for number in box.split()] for box in re.findall(rb"/MediaBox \[([^\]]*)\]", printed)]
    assert boxes
    for box in boxes:
        assert box == pytest.approx([0, 0, width, height], abs=1)
    # What a printer would be given: dark text on white, whatever the screen has, and nothing beyond the paper's width.
    page.emulate_media(media="print", color_scheme="dark")
    page.set_viewport_size({"width": width * 96 // 72 - 106, "height": 900})
    assert page.evaluate(_BEYOND, False) == []
    assert page.evaluate(_FAINT) == []
    assert page.evaluate("() => getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    watched.require_harmless()
