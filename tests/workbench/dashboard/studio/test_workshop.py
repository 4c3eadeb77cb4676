"""Work goes on beside the clicks, and ends at once when it is cancelled."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from gate.errors import GateError, OperatorError, ServiceUnavailable
from tests.support.samples import sample_rulebook
from workbench.dashboard.studio.workshop import WorkCancelled, Workshop

pytestmark = pytest.mark.heavy


@pytest.fixture(scope="module")
def workshop() -> Iterator[Workshop]:
    made = Workshop()
    yield made
    made.close()


def large() -> dict[str, Any]:
    """A rulebook whose mutants take long."""
    body = sample_rulebook()
    first = body["rules"][0]
    rules = [{**first, "rule_id": f"rule_{number}", "priority": number} for number in range(100)]
    return {**body, "rules": rules}


def children() -> set[int]:
    return {int(pid) for pid in Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()}


def eventually(holds: Callable[[], bool]) -> bool:
    end = time.monotonic() + 60
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def test_it_finds_what_the_analysis_finds(workshop: Workshop) -> None:
    found = workshop.begin("examine", {"body": sample_rulebook(), "against": sample_rulebook()}).result()
    assert found["decided"] is True
    assert found["difference"]["equal"] is True  # type: ignore[index, call-overload]


def test_progress_is_told_and_coverage_is_first(workshop: Workshop) -> None:
    told: list[Any] = []
    found: Any = workshop.begin("measure", {"body": sample_rulebook(), "cases": []}, told.append).result()
    assert [each["doing"] for each in told] == ["coverage", "mutation"]
    assert told[1]["coverage"] == found["coverage"]
    assert found["missing"]
    # What is missing closes the holes.
    closed: Any = workshop.begin("measure", {"body": sample_rulebook(), "cases": found["missing"]}).result()
    assert closed["coverage"]["percent"] == "100 %"
    assert closed["mutation"]["survived"] == []


def test_what_cannot_be_done_is_said(workshop: Workshop) -> None:
    with pytest.raises(OperatorError) as refused:
        workshop.begin("boundaries", {"body": {}}).result()
    assert refused.value.code == "RULEBOOK_INVALID"
    # And the next one is done.
    assert workshop.begin("boundaries", {"body": sample_rulebook()}).result()["cases"]


def test_what_is_cancelled_ends_at_once_and_others_go_on(workshop: Workshop) -> None:
    begun = threading.Event()
    work = workshop.begin("measure", {"body": large(), "cases": []}, lambda _: begun.set())
    with ThreadPoolExecutor(1) as pool:
        doing = pool.submit(work.result)
        assert begun.wait(60)
        work.cancel()
        with pytest.raises(WorkCancelled):
            doing.result(60)
    assert workshop.begin("examine", {"body": sample_rulebook()}).result()["findings"] is not None
    work.cancel()


def test_what_waits_for_a_process_is_cancelled_too() -> None:
    workshop = Workshop(1)
    begun = threading.Event()
    first = workshop.begin("measure", {"body": large(), "cases": []}, lambda _: begun.set())
    second = workshop.begin("examine", {"body": sample_rulebook()})
    with ThreadPoolExecutor(2) as pool:
        doing = pool.submit(first.result)
        assert begun.wait(60)
        waiting = pool.submit(second.result)
        second.cancel()
        with pytest.raises(WorkCancelled):
            waiting.result(60)
        # What is closed ends what it does.
        workshop.close()
        with pytest.raises(GateError):
            doing.result(60)
    with pytest.raises(WorkCancelled):
        workshop.begin("examine", {"body": sample_rulebook()}).result()


def test_a_process_that_is_killed_is_told_and_replaced() -> None:
    before = children()
    workshop = Workshop(1)
    workshop.warm()
    begun = threading.Event()
    work = workshop.begin("measure", {"body": large(), "cases": []}, lambda _: begun.set())
    with ThreadPoolExecutor(1) as pool:
        doing = pool.submit(work.result)
        assert begun.wait(60)
        (process,) = children() - before
        os.kill(process, signal.SIGKILL)
        with pytest.raises(ServiceUnavailable) as lost:
            doing.result(60)
    assert lost.value.code == "WORK_LOST"
    assert workshop.begin("examine", {"body": sample_rulebook()}).result()["decided"] is True
    workshop.close()
    assert eventually(lambda: children() <= before)


def test_a_page_that_is_never_done_delays_a_work_and_does_not_stop_it(workshop: Workshop) -> None:
    told: list[Any] = []
    with workshop.giving_way():
        workshop.begin("measure", {"body": sample_rulebook(), "cases": []}, told.append).result()
    assert len(told) == 2
    with pytest.raises(ZeroDivisionError), workshop.giving_way(), workshop.giving_way():
        raise ZeroDivisionError
    assert workshop._pages.value == 0
