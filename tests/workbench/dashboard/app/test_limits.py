"""One user's many pages keep nobody else waiting, and end where they would take the server's memory."""

from __future__ import annotations

from contextlib import ExitStack
from threading import Event
from typing import Any

import pytest

from gate.ledger.access.authority import Scope
from tests.workbench.dashboard.serving import Site
from workbench.dashboard.app import opened
from workbench.dashboard.app.opened import OpenPages

pytestmark = pytest.mark.heavy


def test_one_user_waits_for_their_own_pages_and_another_does_not(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    from workbench.dashboard.pages import session
    from workbench.dashboard.pages.routes import load

    go_on, at_once = Event(), list[str]()

    def slowly(store: Any, visit: Any) -> Any:
        if visit.access.user.name == "ana" and visit.location.page == "held":
            at_once.append("ana")
            assert go_on.wait(20)
        return load(store, visit)

    monkeypatch.setattr(session, "load", slowly)
    ana, ben = site.browser("ana"), site.browser("ben")
    with ExitStack() as stack:
        pages = [stack.enter_context(ana.open("/held")) for _ in range(6)]
        for page in pages:
            page.ask("/held?scope=acme")
        # As many as there are threads would be busy with ana's pages.
        assert stack.enter_context(ben.open("/held")).go("/held").url.startswith("/held")
        assert at_once == ["ana"]
        go_on.set()
        for page in pages:
            assert page.shown().url == "/held?scope=acme"


def test_a_user_who_has_too_many_pages_open_is_told_so_in_the_next(
    site: Site, acme: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opened, "MOST", 2)
    ana, ben = (site.browser(site.add_user(name, [acme])) for name in ("carl", "dora"))
    with ana.open("/held"), ana.open("/held"), ana.open("/held") as third, ben.open("/held") as other:
        assert "You have more than 2 pages of the dashboard open" in third.go("/held").html
        assert "pages of the dashboard open" not in other.go("/held").html


def test_pages_that_are_gone_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opened, "MOST", 3)
    pages = OpenPages()
    closings = [pages.open("usr_1")[1] for _ in range(3)]
    refused, close = pages.open("usr_1")
    assert refused is not None
    assert refused.code == "DASHBOARD_TOO_MANY_PAGES"
    assert pages.open("usr_2")[0] is None
    close()
    closings.pop()()
    assert pages.open("usr_1")[0] is None
