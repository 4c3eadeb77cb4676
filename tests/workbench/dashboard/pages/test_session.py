"""A session before its browser has connected: the overview is computed ahead, and nothing else is."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Any

import pytest
from bokeh.document import Document

from gate.clock import utc_now
from gate.errors import GateError, LimitReached
from gate.ledger.access.users import User
from workbench.dashboard.pages.looks import Looks
from workbench.dashboard.pages.session import Services, Session


class Asked:
    """Notes for whom something is computed, and lets nobody in."""

    def __init__(self) -> None:
        self.handles: list[str] = []

    def user(self, handle: str) -> User | None:
        self.handles.append(handle)
        return None

    def failed(self, what: str, error: BaseException) -> None:
        raise AssertionError(what) from error


def session_of(asked: Asked, executor: ThreadPoolExecutor, ahead: Lock, refused: GateError | None = None) -> Session:
    unused: Any = None
    services = Services(
        unused,
        asked.user,
        executor,
        utc_now,
        asked,
        unused,
        unused,
        lambda document, work: None,
        unused,
        unused,
        unused,
        unused,
        ahead=ahead,
    )
    return Session(Document(), "handle", services, Looks(""), refused)


@pytest.mark.parametrize(
    ("urls", "times"),
    [
        (["/", "/?scope=acme"], 2),
        (["/policy", "/decisions?scope=acme", "/policy/", ""], 0),
        (["/?nothing=known", "/"], 1),
    ],
)
def test_the_overview_alone_is_computed_ahead_and_a_failure_keeps_nobody_from_it(urls: list[str], times: int) -> None:
    asked, ahead = Asked(), Lock()
    for url in urls:
        with ThreadPoolExecutor(1) as executor:
            session_of(asked, executor, ahead).compute_ahead(url)
    assert asked.handles == ["handle"] * times


def test_one_page_at_a_time_is_computed_ahead() -> None:
    asked, ahead = Asked(), Lock()
    with ThreadPoolExecutor(1) as executor, ahead:
        session_of(asked, executor, ahead).compute_ahead("/")
    assert asked.handles == []


def test_nothing_is_computed_ahead_for_a_session_that_shows_no_page() -> None:
    asked = Asked()
    with ThreadPoolExecutor(1) as executor:
        session_of(asked, executor, Lock(), LimitReached("TOO_MANY", "Close some.")).compute_ahead("/")
    assert asked.handles == []
