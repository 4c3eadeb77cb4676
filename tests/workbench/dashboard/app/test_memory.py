"""Sessions that are gone leave nothing behind."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sized

import pytest

from tests.support.torture import size
from tests.workbench.dashboard.serving import Site

pytestmark = pytest.mark.heavy

SESSIONS = size(6, 30)


def discard(site: Site) -> None:
    """Discards the sessions without a connection at once, as the server does after some seconds."""
    from panel.io.state import state

    async def discarded() -> None:
        for server, _, _ in list(state._servers.values()):
            if server.port == site.port:
                for context in server._tornado._applications.values():
                    await context._cleanup_sessions(-1)

    site.run(discarded())


def left_of(site: Site, kinds: tuple[type, ...]) -> dict[type, int]:
    """How many of each kind something still refers to once the sessions are discarded; none that was frozen."""
    discard(site)
    for _ in range(3):
        gc.collect()
    found = gc.get_objects()
    return {kind: sum(isinstance(each, kind) for each in found) for kind in kinds}


def eventually(holds: Callable[[], bool]) -> bool:
    """Whether something comes to hold: what was put off is done by the loop's next turns."""
    for _ in range(100):
        if holds():
            return True
        time.sleep(0.05)
    return False


def test_of_many_sessions_nothing_is_left(site: Site) -> None:
    from bokeh.document import Document
    from bokeh.model import Model
    from panel.viewable import Viewable

    from workbench.dashboard.pages.session import Session

    browser = site.browser("ana")

    def visit() -> None:
        with browser.open() as page:
            page.ready()
            page.go("/decisions?verdict=no")
            page.go("/held")

    # What the first visit loads stays.
    visit()
    discard(site)
    # Looking through all that tests of the process have loaded would take a second each time.
    gc.collect()
    gc.freeze()
    kinds = (Document, Session, Viewable, Model)
    before = left_of(site, kinds)
    kept = kept_by_panel()
    for _ in range(SESSIONS):
        visit()

    def more() -> dict[str, int]:
        return {kind.__name__: now - before[kind] for kind, now in left_of(site, kinds).items() if now > before[kind]}

    # A document of the first visit may outlive its session by some turns of the loop, so fewer may be left than before.
    assert eventually(lambda: not more()), more()
    assert {name: many for name, many in kept_by_panel().items() if many - kept[name] >= SESSIONS} == {}


def kept_by_panel() -> dict[str, int]:
    """How many entries each of the maps has in which Panel keeps what belongs to sessions."""
    from panel.io.state import state

    return {name: len(of) for name, of in vars(type(state)).items() if isinstance(of, Sized) and "__" not in name}
