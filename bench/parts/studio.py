"""The waiting times of authors in the workbench, in a real browser over a million decisions of one policy.

The measured steps are the errors of typed text, a what-if, and a dry run with its progress and its end, while another
session uses pages. `gate workbench` runs as users run it. The page's own clock times a keystroke from the key to the
painted answer, including the pause before the page sends the text. It also times the controls of each what-if.
Every second keystroke breaks the draft and shows an error, and the next one fixes it.

During a dry run, another session requests pages with new filters, as in the part `dashboard`. Here, the session has
shown every page before. For comparison, the results also have the floors: the same clicks without a dry run, and the
same diagnosis, what-if, and dry run, each alone.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from api.cli.options import instance_at
from bench.dashboard.chromium import Tab, chromium
from bench.dashboard.instance import ALONE, POLICY, Built, Dashboard, build, serving
from bench.dashboard.sessions import BokehSession
from bench.dashboard.urls import Urls
from bench.disk import scratch
from bench.lakes import goal_lines, judged
from bench.measure import Mismatch, Spread, percentile, ratio, spread
from bench.parts.migration import rulebook
from bench.policies import policy
from bench.subjects import SCOPE, sqlite_url
from bench.tables import table
from gate.clock import utc_now
from gate.drafting.diagnosis import diagnose
from gate.encoding.yaml_text import write_yaml
from gate.instance.fixtures import fixture_facts
from gate.ledger.drafts.drafts import Origin
from gate.rulebooks.rulebook import load
from tests.support.migrations import desk
from workbench.engines.counterfactuals import counterfactuals
from workbench.lake.reader import open_lake
from workbench.migration.drafted import Drafted, prove_draft

if TYPE_CHECKING:
    from playwright.sync_api import Browser

_QUICK_PART: Final = 20
_RULES: Final = 100
_FIELDS: Final = 20
_KEYS: Final = 100
_QUICK_KEYS: Final = 6
_MOVES: Final = 12
_QUICK_MOVES: Final = 2
_DRY_RUNS: Final = 3
_QUICK_DRY_RUNS: Final = 1
_STOPS: Final = 5
_QUICK_STOPS: Final = 1
_CLICKS_EVERY_SECONDS: Final = 0.5
_TIMEOUT_MS: Final = 120_000
# What an author looks at before the next key, so that the analysis of the draft is beside it as it is for people.
_LOOKS_SECONDS: Final = 0.4

_KEYSTROKE_MS: Final = 300
_WHAT_IF_MS: Final = 1_500
_PROGRESS_SECONDS: Final = 1
_STOP_SECONDS: Final = 1
_CLICK_MS: Final = 2_000

_COMMENT: Final = "# The limits of this year."
_LEVER: Final = '.lever[data-lever="discount_percent"] [data-text]'
_NEW: Final = ":first-child:not([data-before])"
_METRIC: Final = "revenue_eur"

# Resolves with the seconds since a button was pressed, or since it was called, until a part of the page holds a text.
_UNTIL: Final = """
([button, part, text, least]) => new Promise((resolve, reject) => {
  const all = (root) => [...root.querySelectorAll("*")].flatMap(
    (each) => [each, ...(each.shadowRoot ? all(each.shadowRoot) : [])]);
  const named = (selector) => all(document).find((each) => each.matches(selector));
  const started = performance.now();
  if (button) named(button).click();
  const look = () => {
    const found = named(part);
    const told = found ? found.textContent : "";
    const done = Number((told.match(/: ([0-9,]+) of/) || ["", "0"])[1].replaceAll(",", ""));
    if (found && told.includes(text) && done >= least) resolve((performance.now() - started) / 1000);
    else if (performance.now() - started > LONGEST) reject(new Error(`No ${text} is shown: ${told.slice(0, 400)}`));
    else setTimeout(look, 5);
  };
  look();
})
""".replace("LONGEST", str(_TIMEOUT_MS))


@dataclass(frozen=True, slots=True)
class _Subject:
    """What is measured.

    Attributes:
        instance: The instance.
        typed: The draft of a hundred rules.
        proved: The draft that is proved.
    """

    instance: Built
    typed: str
    proved: str


def run(*, quick: bool) -> dict[str, Any]:
    """Takes the figures.

    Raises:
        Mismatch: A page was not shown or says something else, a script failed, or there is no Chromium.
    """
    with scratch() as directory:
        subject = _drafted(build(directory / "home", _QUICK_PART if quick else 1, ALONE))
        floor = _floor(subject, 1 if quick else _DRY_RUNS)
        with chromium() as browser:
            keys, findings = _keystrokes(browser, subject, directory, _QUICK_KEYS if quick else _KEYS)
            moves = _what_ifs(browser, subject, directory, _QUICK_MOVES if quick else _MOVES)
            runs = (_QUICK_DRY_RUNS, _QUICK_STOPS) if quick else (_DRY_RUNS, _STOPS)
            proofs, clicks = _dry_runs(browser, subject, directory, *runs)
        floor["clicks"] = _clicks_alone(subject, directory, len(clicks))
    return {
        "decisions": subject.instance.contents.rows,
        "rules": _RULES,
        "keystroke": {name: spread(times).to_dict("ms") for name, times in keys.items()},
        "findings": spread(findings).to_dict("s"),
        "what_if": {name: spread(times).to_dict("ms") for name, times in moves.items()},
        "dry_run": {name: spread(times).to_dict("s") for name, times in proofs.items()},
        "clicks": {
            "count": len(clicks),
            **spread(clicks).to_dict("ms"),
            "p95_ms": round(percentile(sorted(clicks), 95), 1),
            "all_ms": [round(ms) for ms in clicks],
        },
        "floor": {
            **{name: spread(times).to_dict("ms") for name, times in floor.items()},
            "what_if/alone": ratio([spread(moves["plain"]).median], [spread(floor["what_if"]).median]).to_dict(),
            "dry_run/alone": ratio(
                [spread(proofs["whole"]).median * 1000], [spread(floor["dry_run"]).median]
            ).to_dict(),
        },
        "goals": [
            *(
                judged(f"keystroke, {name}", percentile(sorted(of), 95), _KEYSTROKE_MS, unit="ms")
                for name, of in keys.items()
            ),
            *(judged(f"what-if, {name}", spread(of).median, _WHAT_IF_MS, unit="ms") for name, of in moves.items()),
            judged("dry run, first progress", max(proofs["first progress"]), _PROGRESS_SECONDS, unit="s"),
            judged("dry run, stopped", max(proofs["stopped"]), _STOP_SECONDS, unit="s"),
            judged("clicks of another session meanwhile, worst", max(clicks), _CLICK_MS, unit="ms"),
        ],
    }


def show(result: Mapping[str, Any]) -> str:
    """The result as tables."""
    clicks = result["clicks"]
    rows = [
        *([f"keystroke, {name}", *_cells(of, "ms")] for name, of in result["keystroke"].items()),
        *([f"what-if, {name}", *_cells(of, "ms")] for name, of in result["what_if"].items()),
        *([f"{name} alone", *_cells(of, "ms")] for name, of in result["floor"].items() if "/" not in name),
    ]
    runs = [
        ["keystroke until findings", *_cells(result["findings"], "s")],
        *([f"dry run, {name}", *_cells(of, "s")] for name, of in result["dry_run"].items()),
    ]
    ratios = [[name, f"{of['median']:.2f}"] for name, of in result["floor"].items() if "/" in name]
    return "\n\n".join(
        [
            f"A draft of {result['rules']} rules, and one that is tried over {result['decisions']:,} decisions",
            table(["ms", "median", "min..max"], rows),
            table(["s", "median", "min..max"], runs),
            table(["median beside the floor's", "times"], ratios),
            f"{clicks['count']} clicks of another session during dry runs: median {clicks['median_ms']:.0f} ms, p95 "
            f"{clicks['p95_ms']:.0f} ms, worst {clicks['max_ms']:.0f} ms",
            goal_lines(result["goals"]),
        ]
    )


def _cells(figures: Mapping[str, float], unit: str) -> list[str]:
    return Spread.from_dict(figures, unit).cells(".0f" if unit == "ms" else ".2f")


def _body(version: str) -> Any:
    return {**rulebook(version), "rulebook_id": POLICY}


def _hundred() -> Any:
    """A rulebook of a hundred rules, a quarter of which test three fields and the others one: the conditions of a
    rulebook may not hold more.
    """
    body = policy(_RULES, _FIELDS, 0)
    for rule in body["rules"][len(body["rules"]) // 4 :]:
        del rule["condition"]["all"][1:]
    return body


def _drafted(instance: Built) -> _Subject:
    """Puts a version in force, and two drafts beside it."""
    with instance_at(instance.home, sqlite_url(instance.home)) as opened:
        scope = opened.ledger.directory.scope(SCOPE)
        desk(opened, scope).route("pricing.first", load(_body("1")))
        drafts = opened.ledger.drafts
        texts = {
            "typed": f"{_COMMENT}\n{write_yaml(_hundred())}",
            "proved": write_yaml(_body("2")),
        }
        made = {
            name: drafts.create(scope, name, text, Origin("empty"), "analyst", utc_now()).draft_id
            for name, text in texts.items()
        }
    return _Subject(instance, made["typed"], made["proved"])


def _floor(subject: _Subject, rounds: int) -> dict[str, list[float]]:
    """What the same takes where it is called alone, in milliseconds: of the first round nothing is kept."""
    home = subject.instance.home
    taken: dict[str, list[float]] = {"diagnosis": [], "what_if": [], "dry_run": []}
    with instance_at(home, sqlite_url(home)) as opened, fixture_facts() as make_facts:
        scope = opened.ledger.directory.scope(SCOPE)
        text = opened.ledger.drafts.draft(scope.scope_id, subject.typed).text
        snapshot = open_lake(home / "lake").scope(SCOPE)
        candidate = load(_body("2"))

        def what_if(number: int) -> None:
            counterfactuals(snapshot, POLICY, rulebook=_body("1"), patch={"discount_percent": 5 + number})

        def dry_run(number: int) -> None:
            prove_draft(opened, scope, Drafted("floor", None, candidate, {}), make_facts)

        asks = {"diagnosis": lambda number: diagnose(f"{text}\n# {number}"), "what_if": what_if, "dry_run": dry_run}
        for number in range(rounds + 1):
            for name, ask in asks.items():
                started = time.perf_counter()
                ask(number)
                taken[name].append((time.perf_counter() - started) * 1000)
    return {name: times[1:] for name, times in taken.items()}


@contextmanager
def _serving(subject: _Subject, directory: Path) -> Iterator[Dashboard]:
    """The dashboard, in which every page was shown once."""
    with serving(subject.instance, directory) as dashboard, ThreadPoolExecutor(1) as pool:
        # Playwright has an event loop in this thread.
        pool.submit(asyncio.run, _show_all(dashboard, subject)).result()
        yield dashboard


async def _show_all(dashboard: Dashboard, subject: _Subject) -> None:
    session = await BokehSession.open(dashboard.base, dashboard.cookies)
    for url in Urls(4, subject.instance.decision_id).all_pages():
        await session.show(url)
    session.close()


def _keystrokes(
    browser: Browser, subject: _Subject, directory: Path, keys: int
) -> tuple[dict[str, list[float]], list[float]]:
    """Milliseconds until the answer to a key that breaks the draft, and to one that mends it; and seconds from a mended
    draft of another meaning until its findings.
    """
    taken: dict[str, list[float]] = {"that breaks the draft": [], "that fixes it": []}
    findings = []
    with _serving(subject, directory) as dashboard:
        tab = _open(browser, dashboard, "draft", id=subject.typed)
        page = tab.page
        page.locator(".cm-content").wait_for()
        page.wait_for_function("() => document.body.dataset.answered !== undefined")
        for number in range(keys // 2 + 1):
            page.locator(".cm-content").focus()
            for key in ("Control+Home", "ArrowDown", "End"):
                page.keyboard.press(key)
            for name, key, state in (
                ("that breaks the draft", "x", "Not valid"),
                ("that fixes it", "Backspace", "Valid"),
            ):
                time.sleep(_LOOKS_SECONDS)
                ms = tab.press(key, "#part-state", state)
                # The first of each is the warm-up.
                if number:
                    taken[name].append(ms)
            if number % 10 == 0:
                # Another meaning, whose analysis begins anew.
                cell = page.get_by_label("Priority of r000", exact=True)
                cell.fill(str(500 + number))
                # What is drawn anew has no such mark.
                page.locator("#part-findings > :first-child").evaluate("found => { found.dataset.before = ''; }")
                started = time.perf_counter()
                cell.press("Enter")
                page.evaluate(_UNTIL, [None, f"#part-findings:not(.stale) > {_NEW}", "", 0])
                findings.append(time.perf_counter() - started)
        tab.close()
    return taken, findings


def _what_ifs(browser: Browser, subject: _Subject, directory: Path, moves: int) -> dict[str, list[float]]:
    """Milliseconds until the answer to a lever that was moved to where it never was, without money and with it."""
    taken: dict[str, list[float]] = {"plain": [], "with money": []}
    with _serving(subject, directory) as dashboard:
        tab = _open(browser, dashboard, "whatif", policy=POLICY, by="1")
        for name in taken:
            if name == "with money":
                tab.move("[data-metric]", _METRIC)
            for number in range(moves + 1):
                ms = tab.move(_LEVER, str(20 + number + (0.5 if name == "plain" else 0)))
                told = tab.page.locator("#part-many").inner_text()
                if "would get another verdict" not in told or told.startswith("0 of"):
                    raise Mismatch(f"The what-if says {told!r}.")
                if number:
                    taken[name].append(ms)
        tab.close()
    return taken


def _dry_runs(
    browser: Browser, subject: _Subject, directory: Path, runs: int, stops: int
) -> tuple[dict[str, list[float]], list[float]]:
    """Seconds of dry runs, and the milliseconds of another session's clicks meanwhile."""
    taken: dict[str, list[float]] = {"first progress": [], "first count": [], "whole": [], "stopped": []}
    make, part = 'form[data-act="dry_run"] button', "#part-proof"
    with _serving(subject, directory) as dashboard, ThreadPoolExecutor(1) as pool:
        tab = _open(browser, dashboard, "propose", id=subject.proved)
        over = Event()
        clicks = pool.submit(asyncio.run, _click(dashboard, subject, over))
        try:
            for _ in range(runs):
                first = tab.page.evaluate(_UNTIL, [make, part, "Repeating decisions", 0])
                count = tab.page.evaluate(_UNTIL, [None, part, "Repeating decisions", 1])
                rest = tab.page.evaluate(_UNTIL, [None, part, "Dry run of", 0])
                taken["first progress"].append(first)
                taken["first count"].append(first + count)
                taken["whole"].append(first + count + rest)
            for number in range(stops):
                # Somewhere else each time: before it counts, and while it does.
                tab.page.evaluate(_UNTIL, [make, part, "Repeating decisions", number and 1])
                taken["stopped"].append(tab.page.evaluate(_UNTIL, ['[data-act="stop_proof"]', part, "was stopped", 0]))
        finally:
            over.set()
        found = clicks.result()
        tab.close()
    return taken, found


def _clicks_alone(subject: _Subject, directory: Path, count: int) -> list[float]:
    """What the first so many clicks take where no dry run goes on, in milliseconds."""
    with _serving(subject, directory) as dashboard:
        return asyncio.run(_click(dashboard, subject, Event(), count))


async def _click(dashboard: Dashboard, subject: _Subject, over: Event, most: int | None = None) -> list[float]:
    """What each page takes that another session asks for until it is over, in milliseconds."""
    urls = Urls(3, subject.instance.decision_id)
    session = await BokehSession.open(dashboard.base, dashboard.cookies)
    times: list[float] = []
    while not over.is_set() and len(times) != most:
        times.append(await session.show(urls.new()))
        await asyncio.sleep(_CLICKS_EVERY_SECONDS)
    session.close()
    return times


def _open(browser: Browser, dashboard: Dashboard, page: str, **named: str) -> Tab:
    tab = Tab(browser, dashboard.base, dashboard.cookies)
    tab.page.set_default_timeout(_TIMEOUT_MS)
    tab.open(f"/{page}?{urlencode({'scope': SCOPE, **named})}")
    return tab
