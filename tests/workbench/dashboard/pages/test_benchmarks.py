"""A policy beside that of other scopes, or plainly why nothing is compared and how to take part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from gate.instance.instance import Instance
from gate.ledger.access.authority import Scope
from gate.policy.peers import MonthCounts
from tests.workbench.benchmarking import POLICY, chain_of
from tests.workbench.dashboard.pages.conftest import HOSTILE
from tests.workbench.dashboard.showing import MadeUpStore, read, require_harmless, visit
from tests.workbench.made_up import MadeUp
from workbench.dashboard.pages import benchmarks
from workbench.dashboard.store.memo import Memo
from workbench.dashboard.views.location import Location
from workbench.dashboard.views.page import Page
from workbench.lake.cohorts import freeze, write
from workbench.lake.reader import Snapshot

MADE: Final = "2026-09"
FROZEN: Final = "2026-11"

Show = Callable[..., Page]


@pytest.fixture
def show(instance: Instance, scope: Scope, lake: Path) -> Show:
    """Freezes a month for six scopes, and shows the page of the first; others' success rates go from 0.9 to 1."""

    def shown(
        url: str = "/benchmarks?scope=acme",
        *,
        succeeded: int = 30,
        terminal: int = 60,
        members: int = 7,
        own: bool = True,
    ) -> Page:
        counts = MonthCounts(decisions=100, approved=70, succeeded=succeeded, terminal=terminal)
        mine = chain_of("acme", {MADE: counts}, lake)
        others = [
            chain_of(f"s{at}", {MADE: MonthCounts(decisions=100, approved=50, succeeded=54 + at, terminal=60)}, lake)
            for at in range(members)
        ]
        if members:
            write(lake, FROZEN, freeze([*([mine] if own else []), *others], FROZEN))
        store = MadeUpStore(instance, replace(mine, manifest=replace(mine.manifest, scope="acme")), Memo(99))
        return benchmarks.load(store, visit(scope, url))

    return shown


def test_the_rates_stand_beside_those_of_others(show: Show) -> None:
    page = show()
    assert page.location.policy == POLICY
    assert page.title.startswith("refunds succeeded in 50% of 60 cases, below the middle half of others")
    found = read(page)
    rates = "success rate 45.0 points below and approval rate 20.0 points above"
    assert f"Compared with the median of others: {rates}" in found.text
    for cell in ("50.0%", "60 cases", "70.0%", "100 decisions", "-45.0", "+20.0", "lower than in three quarters"):
        assert cell in found.text, cell
    assert "<svg" in page.html
    searched = [Location.read(link) for link in found.links if link.startswith("/decisions?")]
    assert {(of.since, of.until, of.outcome, of.verdict) for of in searched} == {
        ("2026-09-01", "2026-09-30", "succeeded", None),
        ("2026-09-01", "2026-09-30", None, "yes"),
        ("2026-09-01", "2026-09-30", None, None),
        (None, None, "succeeded", None),
        (None, None, None, "yes"),
        (None, None, None, None),
    }


def test_the_marks_of_the_chart_lead_to_the_decisions(show: Show) -> None:
    drawing = str(show().html).partition("<figure>")[2].partition("</figure>")[0]
    assert drawing.count("/decisions?scope=acme") == 3
    assert "outcome=succeeded" in drawing


def test_a_scope_that_does_not_take_part_is_told_how_to_opt_in(show: Show) -> None:
    page = show(own=False)
    assert page.title == "refunds succeeded in 50% of 60 cases; not compared with others"
    found = read(page)
    assert "Nothing is compared: this scope does not take part" in found.text
    assert "gate scopes benchmarks opt-in acme" in found.text
    assert "did not take part" not in found.text
    assert "<figure>" not in page.html
    assert "50.0% success rate, of 60 cases" in found.text


def test_without_a_freeze_the_page_says_what_freezes_a_month(show: Show) -> None:
    found = read(show(members=0))
    assert "Nothing is compared: no month has been frozen yet" in found.text
    assert "gate serve or gate lake export counts the latest month whose outcomes are in" in found.text
    assert "gate scopes benchmarks opt-in acme" in found.text
    assert "Decisions of this scope in the month that would be compared now." in found.text


def test_too_few_others_withhold_the_comparison_and_opting_in_is_not_offered(show: Show) -> None:
    found = read(show(members=3))
    assert "Nothing is compared: too few other scopes have outcomes under this policy" in found.text
    assert "opt-in" not in found.text


def test_few_cases_are_grey(show: Show) -> None:
    thin = show(terminal=9, succeeded=9)
    assert thin.title == "Too few cases to compare refunds: 9 of at least 20"
    assert '<li class="few">' in thin.html
    assert '<li class="few">' not in show().html


def test_a_policy_and_a_version_are_chosen_in_the_address(show: Show) -> None:
    page = show("/benchmarks?scope=acme&policy=refunds&version=2")
    assert page.location.version == "2"
    assert page.title == "refunds has no case to compare"
    assert [each.name for each in page.filters] == ["policy", "version"]


def test_a_scope_without_decisions_says_how_to_begin(instance: Instance, scope: Scope, tmp_path: Path) -> None:
    store = MadeUpStore(instance, MadeUp().snapshot(tmp_path), Memo(9))
    page = benchmarks.load(store, visit(scope, "/benchmarks?scope=acme"))
    assert page.title == "No decisions in scope acme yet"
    assert "POST /api/decide" in page.html


def test_hostile_names_are_text(instance: Instance, scope: Scope, hostile: Snapshot, hostile_memo: Memo) -> None:
    location = Location("benchmarks", scope=scope.name, policy=HOSTILE, version=HOSTILE)
    store = MadeUpStore(instance, hostile, hostile_memo)
    page = benchmarks.load(store, replace(visit(scope, "/benchmarks"), location=location))
    require_harmless(page)
    assert page.title.startswith('"><img src=x onerror=1></script>')
