"""The dashboard over a million decisions of one scope, in a real browser: how long its pages take, alone and with ten
sessions at once, and what memory it keeps.

`gate workbench` runs as users run it, and Chromium shows its pages. The page's own clock times each page until it is
painted. Cold means the first time after the start of the server, without computed results; warm means the second time.
A new browser context has an empty cache. Filters get new values, so that every answer is computed, and then the same
values again. One of ten sessions is the browser; the other nine send the messages of Bokeh, because ten browsers would
take both processors. For comparison, the results also have the floors: the engines alone for the same answers, and an
empty page of Bokeh in the same browser.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from bench.dashboard.chromium import Tab, chromium
from bench.dashboard.instance import POLICY, Built, Dashboard, build, serving
from bench.dashboard.sessions import BokehSession
from bench.dashboard.urls import FILTERED, VERDICTS, YEAR, Urls
from bench.disk import scratch
from bench.lakes import VERSIONS, goal_lines, judged
from bench.measure import Spread, percentile, ratio, spread
from bench.servers import free_port, running
from bench.subjects import SCOPE
from bench.tables import table
from gate.policy.questions import EffectivenessQuestion
from workbench.engines import effectiveness
from workbench.engines.activity import activity
from workbench.engines.listing import Criteria, find_decisions
from workbench.lake.reader import open_lake

if TYPE_CHECKING:
    from playwright.sync_api import Browser

_QUICK_PART: Final = 20
_STARTS: Final = 5
_QUICK_STARTS: Final = 1
_WARM: Final = 3
_QUICK_WARM: Final = 1
_CHANGES: Final = 12
_QUICK_CHANGES: Final = 2
_SESSIONS: Final = 10
_CROWD_SECONDS: Final = 90.0
_QUICK_CROWD_SECONDS: Final = 6.0
_PAUSE_SECONDS: Final = 10.0
_QUICK_PAUSE_SECONDS: Final = 2.0
_VISITS: Final = 100
_QUICK_VISITS: Final = 20
_FLOOR_ROUNDS: Final = 12
_QUICK_FLOOR_ROUNDS: Final = 2
# The server ends a session so long after its browser left, and looks for such ones every five seconds.
_SETTLE_SECONDS: Final = 25.0

_TOUR: Final[Mapping[str, str]] = {
    "policy": 'nav a[href^="/policy"]',
    "anomalies": 'nav a[href^="/anomalies"]',
    "anomaly": 'main a[href^="/anomaly?"]',
    "benchmarks": 'nav a[href^="/benchmarks"]',
    "decisions": 'nav a[href^="/decisions"]',
    "decision": 'main a[href^="/decision?"]',
    "held": 'nav a[href^="/held"]',
    "overview": 'nav a[href^="/?"]',
}
"""The link to follow to each page, from the page before."""

_FIRST_PAGE_MS: Final = 2_500
_NEXT_PAGE_MS: Final = 800
_FILTER_MS: Final = 1_200
_CROWD_P95_MS: Final = 2_500
_SESSION_MB: Final = 40
_GROWTH_MB: Final = 50


def run(*, quick: bool) -> dict[str, Any]:
    """Takes the figures.

    Raises:
        Mismatch: A page was not shown, a script failed, or there is no Chromium.
    """
    with scratch() as directory:
        instance = build(directory / "home", _QUICK_PART if quick else 1)
        floor = _floor(instance, _QUICK_FLOOR_ROUNDS if quick else _FLOOR_ROUNDS)
        with chromium() as browser:
            empty = _empty_pages(browser, directory, _QUICK_WARM if quick else _STARTS)
            pages = _pages(browser, instance, directory, *((_QUICK_STARTS, _QUICK_WARM) if quick else (_STARTS, _WARM)))
            changes = _changes(browser, instance, directory, _QUICK_CHANGES if quick else _CHANGES)
            seconds, pause = (_QUICK_CROWD_SECONDS, _QUICK_PAUSE_SECONDS) if quick else (_CROWD_SECONDS, _PAUSE_SECONDS)
            crowd = _crowd(browser, instance, directory, seconds, pause)
        memory = _memory(instance, directory, _QUICK_VISITS if quick else _VISITS)
    first, next_, new = pages["first"], pages["next"], changes["new"]
    return {
        "decisions": instance.contents.rows,
        "starts": _QUICK_STARTS if quick else _STARTS,
        "first": {name: spread(times).to_dict("ms") for name, times in first.items()},
        "next": {name: {page: spread(times).to_dict("ms") for page, times in by.items()} for name, by in next_.items()},
        "changes": {
            name: {what: spread(times).to_dict("ms") for what, times in by.items()} for name, by in changes.items()
        },
        "crowd": crowd,
        "memory": memory,
        "floor": {
            "engines": {name: spread(times).to_dict("ms") for name, times in floor.items()},
            "empty_page": spread(empty).to_dict("ms"),
            "first/empty_page": ratio([spread(first["warm"]).median], [spread(empty).median]).to_dict(),
            **{
                f"{page}/engines": ratio([_worst(new, page)], [spread(floor[page]).median]).to_dict()
                for page in FILTERED
            },
        },
        "goals": [
            judged("first page, cold", spread(first["cold"]).median, _FIRST_PAGE_MS, unit="ms"),
            judged("first page, warm", spread(first["warm"]).median, _FIRST_PAGE_MS, unit="ms"),
            judged("the slowest page from another, cold", _slowest(next_["cold"]), _NEXT_PAGE_MS, unit="ms"),
            judged("the slowest page from another, warm", _slowest(next_["warm"]), _NEXT_PAGE_MS, unit="ms"),
            *(
                judged(f"the slowest new filter of {page}", _worst(new, page), _FILTER_MS, unit="ms")
                for page in FILTERED
            ),
            judged("ten sessions, p95", crowd["p95_ms"], _CROWD_P95_MS, unit="ms"),
            judged("memory of a session", memory["session_mb"], _SESSION_MB, unit="MB"),
            judged("growth after the first ten sessions", memory["growth_mb"], _GROWTH_MB, unit="MB"),
        ],
    }


def show(result: Mapping[str, Any]) -> str:
    """The result as tables."""
    first = [[f"first page, {name}", *_cells(figures)] for name, figures in result["first"].items()]
    first.append(["an empty page of Bokeh", *_cells(result["floor"]["empty_page"])])
    pages = [
        [page, *_cells(result["next"]["cold"][page]), *_cells(result["next"]["warm"][page])]
        for page in result["next"]["cold"]
    ]
    changes = [
        [what, *_cells(result["changes"]["new"][what]), *_cells(result["changes"]["again"][what])]
        for what in result["changes"]["new"]
    ]
    engines = [[f"engines alone, {page}", *_cells(of)] for page, of in result["floor"]["engines"].items()]
    ratios = [[name, f"{of['median']:.2f}"] for name, of in result["floor"].items() if "/" in name]
    crowd, memory = result["crowd"], result["memory"]
    return "\n\n".join(
        [
            f"The dashboard over {result['decisions']:,} decisions, {result['starts']} starts of the server",
            table(["ms", "median", "min..max"], first),
            table(["from page to page, ms", "first time", "min..max", "again", "min..max"], pages),
            table(["a filter changed, ms", "new value", "min..max", "again", "min..max"], changes),
            table(["ms", "median", "min..max"], engines),
            table(["median beside the floor's", "times"], ratios),
            f"{crowd['sessions']} sessions, one action each {crowd['pause_s']:g} s, {crowd['actions']} actions: median "
            f"{crowd['median_ms']:.0f} ms, p95 {crowd['p95_ms']:.0f} ms, worst {crowd['worst_ms']:.0f} ms; in the "
            f"browser median {crowd['browser_median_ms']:.0f} ms, worst {crowd['browser_worst_ms']:.0f} ms",
            table(["resident memory", "MB"], [[name, f"{of:.1f}"] for name, of in memory["resident_mb"].items()]),
            goal_lines(result["goals"]),
        ]
    )


def _cells(figures: Mapping[str, float]) -> list[str]:
    return Spread.from_dict(figures, "ms").cells(".0f")


def _slowest(times: Mapping[str, Sequence[float]]) -> float:
    """The median of the slowest page."""
    return max(spread(of).median for of in times.values())


def _worst(times: Mapping[str, Sequence[float]], page: str) -> float:
    """The median of the slowest filter of a page."""
    return _slowest({what: of for what, of in times.items() if what.startswith(f"{page}, ")})


def _floor(instance: Built, rounds: int) -> dict[str, list[float]]:
    """What the engines alone take for the answers of the pages whose filters are changed, in milliseconds."""
    snapshot = open_lake(instance.home / "lake").scope(SCOPE)

    def policy(version: str, since: date) -> None:
        of = snapshot.slice(since=since)
        effectiveness.answer(of, EffectivenessQuestion(POLICY, policy_version=version))
        activity(of, POLICY, version)

    def decisions(version: str, since: date) -> None:
        find_decisions(snapshot, Criteria(policy_id=POLICY, policy_version=version, since=since))

    asks = {"policy": policy, "decisions": decisions}
    taken: dict[str, list[float]] = {name: [] for name in asks}
    for number in range(rounds + 1):
        for name, ask in asks.items():
            started = time.perf_counter()
            ask(VERSIONS[number % len(VERSIONS)], YEAR + timedelta(days=number))
            taken[name].append((time.perf_counter() - started) * 1000)
    # The first round is the warm-up.
    return {name: times[1:] for name, times in taken.items()}


def _empty_pages(browser: Browser, directory: Path, rounds: int) -> list[float]:
    port = free_port()
    command = [sys.executable, "-m", "bench.dashboard.empty_page", str(port)]
    with running(command, port, directory / "empty-page.log", path="/") as server:
        return [_opened(browser, f"http://127.0.0.1:{server.port}", {}) for _ in range(rounds + 1)][1:]


def _opened(browser: Browser, base: str, cookies: Mapping[str, str]) -> float:
    """How long the first page takes in a new browser context."""
    tab = Tab(browser, base, cookies)
    try:
        return tab.open("/")
    finally:
        tab.close()


def _pages(browser: Browser, instance: Built, directory: Path, starts: int, warm: int) -> dict[str, Any]:
    """The first page and the way through all others, after so many starts of the server: cold, and then warm."""
    first: dict[str, list[float]] = {"cold": [], "warm": []}
    next_: dict[str, dict[str, list[float]]] = {name: {page: [] for page in _TOUR} for name in ("cold", "warm")}
    for _ in range(starts):
        with serving(instance, directory) as dashboard:
            tab = Tab(browser, dashboard.base, dashboard.cookies)
            first["cold"].append(tab.open("/"))
            for name in ["cold", *["warm"] * warm]:
                for page, link in _TOUR.items():
                    next_[name][page].append(tab.follow(link))
            tab.close()
            first["warm"] += [_opened(browser, dashboard.base, dashboard.cookies) for _ in range(warm)]
    # The way ends where it began, at a page that was there already.
    next_["cold"].pop("overview")
    return {"first": first, "next": next_}


def _changes(browser: Browser, instance: Built, directory: Path, rounds: int) -> dict[str, dict[str, list[float]]]:
    """One filter changed after the other, on each page: to a value that was not asked for before, and once more."""
    taken: dict[str, dict[str, list[float]]] = {"new": {}, "again": {}}
    with serving(instance, directory) as dashboard:
        for page in FILTERED:
            tab = Tab(browser, dashboard.base, dashboard.cookies)
            tab.open(f"/{page}?{urlencode({'scope': SCOPE, 'policy': POLICY})}")
            before = ["", "", ""]
            for number in range(rounds + 1):
                after = [
                    VERSIONS[number % len(VERSIONS)],
                    VERDICTS[number % len(VERDICTS)],
                    (YEAR + timedelta(days=number)).isoformat(),
                ]
                steps = list(zip(("Version", "Verdict", "From (UTC)"), before, after, strict=True))
                new = [(label, tab.change(label, now)) for label, _, now in steps]
                back = [(label, tab.change(label, then)) for label, then, _ in reversed(steps) if number]
                again = [(label, tab.change(label, now)) for label, _, now in steps if number]
                before = after
                # The first round begins without filters, and warms the page up.
                for name, times in (("new", new), ("again", back + again)):
                    for label, ms in times if number else ():
                        taken[name].setdefault(f"{page}, {label}", []).append(ms)
            tab.close()
    return taken


def _crowd(browser: Browser, instance: Built, directory: Path, seconds: float, pause: float) -> dict[str, Any]:
    """Ten sessions at once, each with an action every few seconds."""
    urls = Urls(1, instance.decision_id)
    with serving(instance, directory) as dashboard:
        tab = Tab(browser, dashboard.base, dashboard.cookies)
        tab.open("/")
        with ThreadPoolExecutor(1) as pool:
            ends = time.monotonic() + seconds
            others = pool.submit(asyncio.run, _others(dashboard, urls, ends, pause))
            shown = []
            for begins in _beats(ends, pause, 0.0):
                time.sleep(max(0.0, begins - time.monotonic()))
                shown.append(tab.go(urls.new()))
            times = sorted([*shown, *others.result()])
        tab.close()
    return {
        "sessions": _SESSIONS,
        "pause_s": pause,
        "actions": len(times),
        "median_ms": round(spread(times).median, 1),
        "p95_ms": round(percentile(times, 95), 1),
        "worst_ms": round(times[-1], 1),
        "browser_median_ms": round(spread(shown).median, 1),
        "browser_worst_ms": round(max(shown), 1),
    }


def _beats(ends: float, pause: float, offset: float) -> Iterator[float]:
    """When a session acts: once after each pause, and once at least."""
    begins = time.monotonic() + offset
    yield begins
    while (begins := begins + pause) < ends:
        yield begins


async def _others(dashboard: Dashboard, urls: Urls, ends: float, pause: float) -> list[float]:
    """All sessions but the browser's; the milliseconds of each action."""

    async def acting(number: int) -> list[float]:
        session = await BokehSession.open(dashboard.base, dashboard.cookies)
        times = []
        for begins in _beats(ends, pause, number * pause / _SESSIONS):
            await asyncio.sleep(max(0.0, begins - time.monotonic()))
            times.append(await session.show(urls.new()))
        session.close()
        return times

    taken = await asyncio.gather(*(acting(number) for number in range(1, _SESSIONS)))
    return [ms for times in taken for ms in times]


def _memory(instance: Built, directory: Path, visits: int) -> dict[str, Any]:
    """The server's resident memory: at start, with ten sessions open, and after many that came and went."""
    urls = Urls(2, instance.decision_id)
    seen: dict[str, float] = {}
    with serving(instance, directory) as dashboard:
        own = dashboard.server.own_mb
        seen["at start"] = own()
        asyncio.run(_come_and_go(dashboard, urls, 1))
        seen["after one session, closed"] = own()
        seen["ten sessions open"] = asyncio.run(_open_together(dashboard, urls, own))
        asyncio.run(_come_and_go(dashboard, urls, _SESSIONS))
        seen["after ten sessions, closed"] = own()
        asyncio.run(_come_and_go(dashboard, urls, visits - _SESSIONS))
        seen[f"after {visits} sessions, closed"] = own()
    _, one, ten, first, last = seen.values()
    return {
        "resident_mb": {name: round(of, 1) for name, of in seen.items()},
        "session_mb": round((ten - one) / _SESSIONS, 1),
        "growth_mb": round(last - first, 1),
    }


async def _visit(dashboard: Dashboard, urls: Urls) -> BokehSession:
    """A session that shows every page, and is left open."""
    session = await BokehSession.open(dashboard.base, dashboard.cookies)
    for url in urls.all_pages():
        await session.show(url)
    return session


async def _open_together(dashboard: Dashboard, urls: Urls, look: Callable[[], float]) -> float:
    """What is seen while ten sessions are open."""
    sessions = [await _visit(dashboard, urls) for _ in range(_SESSIONS)]
    seen = look()
    for session in sessions:
        session.close()
    return seen


async def _come_and_go(dashboard: Dashboard, urls: Urls, count: int) -> None:
    """So many sessions one after another, until the server has ended all of them."""
    for _ in range(count):
        (await _visit(dashboard, urls)).close()
    await asyncio.sleep(_SETTLE_SECONDS)
