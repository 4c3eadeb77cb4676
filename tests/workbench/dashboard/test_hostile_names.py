"""Names that callers chose so that they would run, in a real browser: every page shows them as text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

import orjson
import pytest

from gate.clock import utc_now
from tests.support.browser import browser
from tests.support.samples import sample_request, sample_rulebook
from tests.workbench.dashboard.browsing import Window
from tests.workbench.dashboard.serving import PASSWORD, Site, served
from tests.workbench.hostile import LINES, TAGS, TEXTS
from tests.workbench.support import Chain, Shared, bring_up, shared
from workbench.history.importing import Plan, import_history
from workbench.history.mapping import load_map
from workbench.history.sources import examine
from workbench.lake.entries import Personal

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.heavy

# A version has at most 80 characters, and a key of a map no null byte.
VERSION: Final = '"><img src=x onerror=alert(9)>\u202e\n<script>alert(1)</script>'
NAMES: Final = [TAGS, TEXTS, LINES.replace("\0", "")]
# None of these pages has one of these by itself.
_INJECTED: Final = (
    "img, iframe, object, embed, base, form:not([data-act=rehearse_history]), "
    "math, title + svg, main script, [onload], [onerror]"
)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as started:
        yield started


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, quick_passwords: None) -> Iterator[tuple[Site, list[str]]]:
    """A dashboard over a scope in which every free text would run, and the decisions in it."""
    with shared(tmp_path_factory.mktemp("hostile") / "home") as made:
        chain = Chain(made.instance, made.authority)
        for name in NAMES:
            decide(chain, name)
        bring_up(made.instance, made.lake, made.scope)
        with served(made.instance) as listening:
            listening.add_user("ana", [made.scope], "author")
            bring_in(made, tmp_path_factory.mktemp("history"))
            yield listening, chain.decided


def bring_in(made: Shared, directory: Path) -> None:
    """Imports a history whose cells would run: versions, reasons, actions and values of facts."""
    file = directory / "cases.jsonl"
    rows = [{"id": name, "at": "2026-01-05T10:00:00Z", "text": name} for name in NAMES]
    file.write_bytes(b"\n".join(orjson.dumps(row) for row in rows))
    text = {"column": "text"}
    named = {
        "history_map_version": "decision_history_map_v1",
        "id": {"column": "id"},
        "occurred_at": {"column": "at"},
        "policy_id": "pricing_exception",
        "policy_version": text,
        "reason": text,
        "action": text,
        "facts": {"text": {"column": "text", "type": "string"}},
    }
    scope, map_ = made.scope, load_map(named, "the map")
    sources = [examine(file, None)]
    plan = Plan(made.lake, scope.scope_id, scope.name, "hostile", map_, sources, Personal(), utc_now())
    found = import_history(plan, allow_refused=True).found
    assert found is not None
    assert found.rows


def decide(chain: Chain, name: str) -> None:
    """Decides and reports with a name wherever a caller may choose one."""
    request: dict[str, Any] = sample_request(discount_percent=10, margin_percent=22, **{name.replace(".", ""): name})
    request["rulebook"] = {**sample_rulebook(), "version": VERSION}
    for field in ("workflow", "source_record_id", "target_system", "target_object_id", "mutation", "subject"):
        request["context"][field] = name
    request["context"]["actor"] = {"type": "agent", "id": name}
    request["question"] = name
    decision_id = chain.decide(request)
    chain.execution(decision_id)
    chain.outcome(decision_id, "failed", observed_metrics={name[:100]: 1e6})


@pytest.fixture(scope="module")
def window(chromium: Browser, site: tuple[Site, list[str]]) -> Iterator[Window]:
    opened = Window(chromium, site[0].url)
    opened.sign_in("ana", PASSWORD)
    yield opened
    opened.close()


def injected(page: Page) -> list[str]:
    """Elements that no template made, in any component's shadow."""
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return [str(of.evaluate("of => of.outerHTML.slice(0, 200)")) for of in page.locator(_INJECTED).all()]


def test_every_page_shows_them_as_text(window: Window, site: tuple[Site, list[str]]) -> None:
    _, decisions = site
    policy = {"scope": "acme", "policy": "pricing_exception"}
    asked = [
        "/?scope=acme",
        f"/policy?{urlencode(policy)}",
        f"/policy?{urlencode({**policy, 'version': VERSION})}",
        "/anomalies?scope=acme",
        f"/anomalies?{urlencode({**policy, 'version': VERSION})}",
        f"/benchmarks?{urlencode(policy)}",
        f"/decisions?{urlencode(policy)}",
        *(f"/decisions?{urlencode({'scope': 'acme', 'target': name})}" for name in NAMES),
        *(f"/decision?{urlencode({'scope': 'acme', 'id': each})}" for each in decisions),
        f"/held?{urlencode({'scope': 'acme', 'target': TAGS})}",
        "/histories?scope=acme",
        "/policy?scope=acme&history=hostile",
        "/decisions?scope=acme&history=hostile",
        f"/policy?{urlencode({'scope': 'acme', 'history': TAGS})}",
        # And whatever stands in the address itself.
        f"/decisions?{urlencode({**policy, 'ref': TAGS, 'reason': TEXTS[:100]})}",
        f"/policy?{urlencode({TAGS: TAGS})}",
        f"/anomaly?{urlencode({**policy, 'id': TAGS})}",
        f"/?{urlencode({'scope': TAGS})}",
    ]
    seen = 0
    for path in asked:
        page = window.go(path)
        assert injected(page) == [], path
        seen += "alert(" in page.locator("main").inner_text()
        window.require_harmless()
    # They are there, where something could have run.
    assert seen > len(asked) / 2


def test_links_and_lists_that_hold_them_lead_to_what_they_name(window: Window) -> None:
    page = window.go("/policy?scope=acme&policy=pricing_exception")
    page.get_by_label("Version", exact=True).select_option(index=1)
    window.shows("version=")
    assert injected(page) == []
    page.go_back()
    window.settle()
    page.go_forward()
    window.settle()
    window.require_harmless()


def test_the_browser_would_notice(window: Window) -> None:
    page = window.go("/?scope=acme")
    page.locator("h1").evaluate('of => { of.innerHTML = \'<img src="//evil.example/x" onerror="alert(1)">\'; }')
    assert injected(page) != []
    # The policy of the page keeps it from loading and from running.
    assert [fault for fault in window.faults if fault.startswith("dialog")] == []
    window.faults.clear()
