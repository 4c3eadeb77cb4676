"""Charts within a page in a real browser: under a policy that allows no script and no style, all texts are in sight."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.support.browser import Watched, browser
from tests.workbench.charts.frames import charts
from tests.workbench.hostile import NAMES, shown

if TYPE_CHECKING:
    import altair as alt

# Altair and the browser are loaded where they are used: `make check` collects these tests, and runs none.
pytestmark = pytest.mark.heavy

_ALLOWED: Final = "default-src 'none'; base-uri 'none'; form-action 'none'"
_DECISIONS: Final = "http://page.example/decisions?"
MEASURE: Final = """all => all.map(svg => {
    const within = (inner, outer) => inner.left >= outer.left - 1 && inner.right <= outer.right + 1
        && inner.top >= outer.top - 1 && inner.bottom <= outer.bottom + 1;
    // A line of text is a little lower than its box.
    const meet = (one, other) => one.left < other.right - 1 && other.left < one.right - 1
        && one.top < other.bottom - 4 && other.top < one.bottom - 4;
    const texts = [...svg.querySelectorAll("text, tspan")].filter(of => of.querySelector("tspan") === null)
        .map(of => ({text: of.textContent, box: of.getBoundingClientRect()}));
    const box = svg.getBoundingClientRect();
    return {
        texts: texts.length,
        outside: texts.filter(of => !within(of.box, box)).map(of => of.text),
        over: texts.flatMap((one, at) => texts.slice(at + 1).filter(other => meet(one.box, other.box))
            .map(other => [one.text, other.text])),
    };
})"""


@pytest.fixture(scope="module")
def watched() -> Iterator[Watched]:
    with browser() as started:
        watching = Watched(started, {_DECISIONS: b""})
        yield watching
        watching.close()


@pytest.fixture(scope="module", params=[*NAMES, "plain_name"], ids=["tags", "texts", "plain"])
def drawn(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, alt.LayerChart | alt.FacetChart]:
    """Every chart of a scope in which everything has this name."""
    return shown(request.param, tmp_path_factory.mktemp("lake")).charts


def page_of(svgs: list[str]) -> str:
    return f"<!doctype html><title>Page</title><body>{''.join(f'<section>{svg}</section>' for svg in svgs)}"


@pytest.mark.parametrize("width", [880, 350])
def test_every_text_is_in_sight_none_lies_on_another_and_nothing_runs(
    width: int, drawn: dict[str, alt.LayerChart | alt.FacetChart], watched: Watched
) -> None:
    from workbench.charts.svg import to_svg

    page = watched.show(
        page_of([to_svg(chart, width=width) for chart in drawn.values()]), content_security_policy=_ALLOWED
    )
    measured: list[dict[str, Any]] = page.eval_on_selector_all("svg", MEASURE)
    faults = {
        name: (of["outside"], of["over"])
        for name, of in zip(drawn, measured, strict=True)
        if of["outside"] or of["over"] or not of["texts"]
    }
    assert faults == {}
    watched.require_harmless()


def test_links_are_reached_and_followed_by_keyboard_and_pointer(watched: Watched) -> None:
    from workbench.charts.svg import to_svg

    page = watched.show(page_of([to_svg(charts("a")["verdicts"], width=350)]), content_security_policy=_ALLOWED)
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: url.startswith(f"{_DECISIONS}week=2026-06-01&verdict=yes"))
    page = watched.show(page_of([to_svg(charts("a")["metrics"], width=350)]), content_security_policy=_ALLOWED)
    page.get_by_role("link", name="Version a: median 12 of 40 values").click()
    page.wait_for_url(lambda url: url.startswith(f"{_DECISIONS}name=a&policy_version=a"))
