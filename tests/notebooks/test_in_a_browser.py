"""Hostile names in a real browser: every chart in every renderer, every report, table and page stays text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from html import escape
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

import nbformat
import pytest
from flask.testing import FlaskClient

from api.description.documents import make_documents
from tests.support.browser import Watched, browser
from tests.support.torture import size
from tests.workbench.hostile import NAMES, TAGS, Shown, shown
from workbench.notebooks import as_ipynb, load, written_for

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

# Altair, nbconvert and the browser are loaded where they are used: `make check` collects these tests, and runs none.
pytestmark = pytest.mark.heavy

_CDN: Final = "https://cdn.jsdelivr.net/npm/"
_PLAIN: Final = "<!doctype html><title>Page</title><body>"
# By the part of a name that every version of it has: escaped, cut or with other line ends, it is still seen.
SEEN: Final = dict(zip(NAMES, ("alert(1)", "alert(3)"), strict=True))


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as started:
        yield started


@pytest.fixture(scope="module")
def vega() -> bytes:
    """Vega, Vega-Lite and vega-embed in one script, the one of Altair's own inline pages, which is made once."""
    import vl_convert

    script: str = vl_convert.javascript_bundle()  # type: ignore[call-arg]
    # The page of several charts may load it several times.
    return f"(() => {{{script}}})()".encode()


@pytest.fixture(scope="module")
def window(chromium: Browser, vega: bytes) -> Iterator[Watched]:
    """A page that has of the network only what the chart renderers load, and that notes everything else."""
    served = {
        f"{_CDN}vega@": vega,
        f"{_CDN}vega-lite@": b"",
        f"{_CDN}vega-embed@": b"",
        "http://page.example/vega.js": vega,
    }
    watching = Watched(chromium, served)
    yield watching
    watching.close()


@pytest.fixture
def watched(window: Watched) -> Iterator[Watched]:
    """That page, before anything happened in it."""
    yield window
    window.forget()


@pytest.fixture(scope="module", params=NAMES, ids=["tags", "texts"])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def all_shown(name: str, tmp_path_factory: pytest.TempPathFactory) -> Shown:
    """Everything that the engines show of a scope in which everything has this name."""
    return shown(name, tmp_path_factory.mktemp("lake"))


@pytest.fixture(scope="module")
def specs(all_shown: Shown) -> list[dict[str, Any]]:
    """The specifications of all charts."""
    return [chart.to_dict() for chart in all_shown.charts.values()]


def drawn(page: Page, charts: int, name: str) -> None:
    """Waits until all charts are drawn, and requires that each has the name as text."""
    page.wait_for_function("count => document.querySelectorAll('svg.marks').length === count", arg=charts)
    texts = page.eval_on_selector_all("svg.marks", "all => all.map(of => of.textContent)")
    assert all(SEEN[name] in text for text in texts), texts


def loaded() -> str:
    """The libraries as the first chart of a notebook leaves them."""
    from altair.vegalite.v6.display import VEGA_VERSION, VEGAEMBED_VERSION, VEGALITE_VERSION

    versions = {"vega": VEGA_VERSION, "vegalite": VEGALITE_VERSION, "vegaembed": VEGAEMBED_VERSION}
    debug = json.dumps({f"{library}_version": version for library, version in versions.items()})
    return f"<script src=vega.js></script><script>var VEGA_DEBUG = {debug}</script>"


def bundles_of(renderer: str, charts: Iterable[Any]) -> list[dict[str, Any]]:
    """What a notebook gets of each chart, by media type."""
    import altair as alt
    from altair.utils.schemapi import SchemaBase

    # `specs` holds the charts against the schema, which takes as long as everything else together.
    with alt.renderers.enable(renderer, embed_options={"renderer": "svg"}), patch.object(SchemaBase, "validate"):
        bundles = [chart._repr_mimebundle_() for chart in charts]
    return [bundle[0] if isinstance(bundle, tuple) else bundle for bundle in bundles]


def without_ids(html: str) -> str:
    return re.sub(r"altair-viz-[0-9a-f]{32}", "", html)


def test_every_renderer_that_altair_offers_gives_what_these_tests_look_at(all_shown: Shown) -> None:
    import altair as alt

    chart = all_shown.charts["by version"]
    pictures: set[str] = set()
    pages: dict[str, set[str]] = {}
    specs: list[Any] = []
    for renderer in set(alt.renderers.names()) - {"jupyter", "browser"}:
        (bundle,) = bundles_of(renderer, [chart])
        for kind, content in bundle.items():
            if kind.endswith("json"):
                specs.append(content)
            elif kind == "text/html":
                pages.setdefault(without_ids(content), set()).add(renderer)
            elif kind != "text/plain":
                pictures.add(kind)
    assert pictures == {"image/png", "image/svg+xml"}
    # One is a widget, which hands the same specification to the page; one opens the page that `save` writes.
    assert specs == [chart.to_dict()] * len(specs) != []
    assert sorted(map(sorted, pages.values())) == [["colab", "default", "html", "kaggle", "zeppelin"], ["olli"]]


@pytest.mark.parametrize("renderer", ["default", "olli"])
def test_a_chart_in_a_notebooks_html_runs_nothing(renderer: str, all_shown: Shown, name: str, watched: Watched) -> None:
    html = [bundle["text/html"] for bundle in bundles_of(renderer, all_shown.charts.values())]
    if renderer == "olli":
        # Its own scripts are at foreign addresses; the chart itself is drawn without them.
        html = [text.replace("import(", "Promise.reject(").replace('<link rel="stylesheet"', "<link") for text in html]
        watched.ignore("Error loading olli")
    page = watched.show(_PLAIN + loaded() + "".join(html))
    drawn(page, len(html), name)
    watched.require_harmless()


def test_a_chart_saved_opened_or_made_part_of_another_runs_nothing(
    all_shown: Shown, name: str, watched: Watched, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import altair as alt
    from altair.utils import _show

    opened: list[str] = []
    monkeypatch.setattr(_show, "open_html_in_browser", lambda html, **_: opened.append(html))
    first, second, *_ = all_shown.charts.values()
    svg = {"renderer": "svg"}
    with alt.renderers.enable("browser", embed_options=svg):
        first.show()
    for inline in (True, False):
        file = tmp_path / "chart.html"
        first.save(str(file), inline=inline, embed_options=svg)
        opened.append(file.read_text(encoding="utf-8"))
    opened.append((first & second).to_html(embed_options=svg))
    # The page that opens is the one that is saved.
    assert opened.pop(0) == opened[-2]
    for html in opened:
        page = watched.show(html)
        drawn(page, 1, name)
        watched.require_harmless()
    assert len(opened) == 3


def test_in_jupyterlab_neither_a_chart_nor_its_tooltips_and_menu_run_anything(
    specs: list[dict[str, Any]], name: str, watched: Watched
) -> None:
    """JupyterLab hands the specification to vega-embed, as this page does."""
    page = watched.show(f"{_PLAIN}<script src=vega.js></script><div id=all></div>")
    page.evaluate(
        """async specs => {
            for (const spec of specs) {
                const here = document.getElementById("all").appendChild(document.createElement("div"));
                await vegaEmbed(here, spec, {mode: "vega-lite", renderer: "svg", actions: true});
            }
        }""",
        specs,
    )
    drawn(page, len(specs), name)
    # As a pointer moves over the first point of each chart; one that really moved would take its time.
    told = page.evaluate(
        """async count => {
            const told = [];
            for (let at = 0; at < count; at++) {
                const mark = document.querySelector(`#all > :nth-child(${at + 1}) svg.marks .mark-symbol path`);
                if (mark === null) continue;
                const {x, y, width, height} = mark.getBoundingClientRect();
                const where = {clientX: x + width / 2, clientY: y + height / 2, bubbles: true, view: window};
                for (const kind of ["pointerover", "pointermove"]) mark.dispatchEvent(new PointerEvent(kind, where));
                await new Promise(done => requestAnimationFrame(done));
                const shown = document.querySelectorAll("#vg-tooltip-element.visible");
                told.push(...[...shown].map(of => of.innerText));
            }
            return told;
        }""",
        len(specs),
    )
    assert any(SEEN[name] in text for text in told), told
    for at, action in product(range(size(1, 3)), ("View Source", "View Compiled Vega")):
        with page.expect_popup() as popup:
            page.evaluate(
                "([at, action]) => [...document.querySelectorAll('.vega-embed')[at].querySelectorAll('a')]"
                ".find(of => of.textContent === action).click()",
                [at, action],
            )
        assert SEEN[name] in popup.value.inner_text("body")
        watched.require_harmless(popup.value)
        popup.value.close()
    watched.require_harmless()


def test_a_chart_as_a_picture_holds_no_markup(all_shown: Shown, name: str, watched: Watched, tmp_path: Path) -> None:
    pictures = [bundle["image/svg+xml"] for bundle in bundles_of("svg", all_shown.charts.values())]
    for svg in pictures[:3]:
        page = watched.show(svg, "image/svg+xml")
        assert SEEN[name] in str(page.evaluate("document.documentElement.textContent"))
        watched.require_harmless()
    # As a notebook shows them: within the page.
    page = watched.show(_PLAIN + "".join(pictures))
    texts = page.eval_on_selector_all("svg.marks", "all => all.map(of => of.textContent)")
    assert len(texts) == len(pictures)
    assert all(SEEN[name] in text for text in texts)
    watched.require_harmless()
    for suffix, signature in ((".png", b"\x89PNG"), (".pdf", b"%PDF"), (".json", b"{")):
        file = tmp_path / f"chart{suffix}"
        all_shown.charts["by rule"].save(str(file))
        assert file.read_bytes().startswith(signature)


def test_no_text_of_a_chart_begins_a_tag_whatever_shows_it(specs: list[dict[str, Any]]) -> None:
    for spec in specs:
        assert "<" not in json.dumps(spec, ensure_ascii=False)


def test_reports_and_tables_show_names_as_text(all_shown: Shown, name: str, watched: Watched) -> None:
    # One below the other, as a notebook shows them.
    page = watched.show(_PLAIN + "".join(f"<section>{html}</section>" for html in all_shown.pages))
    texts = [section.inner_text() for section in page.query_selector_all("body > section")]
    assert len(texts) == len(all_shown.pages)
    assert all(SEEN[name] in text for text in texts), texts
    watched.require_harmless()
    assert page.query_selector_all("script, svg") == []
    page = watched.show(_PLAIN + "".join(all_shown.tables))
    watched.require_harmless()
    assert page.query_selector_all("script, svg") == []


def test_a_written_notebook_shows_names_as_text(name: str, watched: Watched) -> None:
    from nbconvert import HTMLExporter

    written = written_for(load("benchmarks"), f"scope {name}", f'""" # %%\n{name}', Path("/srv/lake"))
    read: Any = nbformat.reads(as_ipynb(written), as_version=4)  # type: ignore[no-untyped-call]
    exporter = HTMLExporter(template_name="basic")  # type: ignore[no-untyped-call]
    html, _ = exporter.from_notebook_node(read)
    page = watched.show(_PLAIN + html)
    assert SEEN[name] in page.inner_text("body")
    watched.require_harmless()


def test_the_page_of_the_interface_runs_nothing(client: FlaskClient, watched: Watched) -> None:
    answer = client.get("/docs", headers={"accept": "text/html"})
    page = watched.show(
        answer.get_data(as_text=True), content_security_policy=answer.headers["content-security-policy"]
    )
    assert page.inner_text("h1")
    assert page.query_selector_all("script") == []
    watched.require_harmless()


def test_a_hostile_address_is_text_on_the_page_of_the_interface(client: FlaskClient, watched: Watched) -> None:
    documents = make_documents(f"https://gate.example/{TAGS}", client.application.jinja_env)
    page = watched.show(documents.page.decode())
    assert SEEN[TAGS] in page.inner_text("body")
    assert page.query_selector_all("script") == []
    watched.require_harmless()


def test_the_browser_would_notice(watched: Watched) -> None:
    """What these tests look for is seen where nothing is escaped."""
    watched.show(_PLAIN + "<script>var spec = " + json.dumps({"a": TAGS}) + "</script>")
    with pytest.raises(AssertionError):
        watched.require_harmless()
    assert any("evil.example" in fault for fault in watched.faults)
    watched.faults.clear()
    watched.show(_PLAIN + escape(TAGS))
    watched.require_harmless()
