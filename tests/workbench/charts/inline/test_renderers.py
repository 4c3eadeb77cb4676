"""Charts drawn by other processes: the same drawings, also after a process died."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator

import pytest

from tests.workbench.charts.test_svg import weekly
from workbench.charts.inline.plans import Plan, drawn
from workbench.charts.inline.renderers import Renderers

pytestmark = pytest.mark.heavy


@pytest.fixture(scope="module")
def renderers() -> Iterator[Renderers]:
    with Renderers(1) as started:
        yield started


@pytest.fixture(scope="module")
def plan() -> Plan:
    from workbench.charts.svg import plan

    return plan(weekly(), width=880)


def test_a_drawing_is_that_of_this_process(renderers: Renderers, plan: Plan) -> None:
    assert renderers.draw(plan)() == drawn(plan)


def test_after_its_process_was_killed_a_chart_is_drawn_again(renderers: Renderers, plan: Plan) -> None:
    renderers.draw(plan)()
    processes = multiprocessing.active_children()
    begun = [renderers.draw(plan) for _ in range(20)]
    for process in processes:
        process.kill()
    begun.append(renderers.draw(plan))
    assert {wait() for wait in begun} == {drawn(plan)}


def test_what_cannot_be_drawn_is_refused_and_the_next_is_drawn(renderers: Renderers, plan: Plan) -> None:
    with pytest.raises(ValueError, match="conversion failed"):
        renderers.draw(Plan(b'{"mark": 3}', ""))()
    assert renderers.draw(plan)() == drawn(plan)
