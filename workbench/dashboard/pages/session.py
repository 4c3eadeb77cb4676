"""A browser's session: it asks for pages, shows them, and does what their forms say.

The browser sends the URL that it goes to; the page is loaded beside the event loop, and what changed is sent back. A
page that is asked for before the last one was loaded takes its place. User, role and scope are looked up every time.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Protocol

import panel as pn
from bokeh.models.layouts import Column
from bokeh.models.widgets.inputs import TextInput
from markupsafe import Markup

from gate.errors import AccessRefused, GateError
from gate.ledger.access.users import User
from workbench.dashboard.pages.fields import Fields
from workbench.dashboard.pages.looks import Looks
from workbench.dashboard.pages.routes import act, load
from workbench.dashboard.pages.visit import Visit
from workbench.dashboard.store.access import access
from workbench.dashboard.store.store import Store
from workbench.dashboard.views import failure, header
from workbench.dashboard.views.location import Location
from workbench.dashboard.views.page import Form, Page

if TYPE_CHECKING:
    from bokeh.document import Document


class Observer(Protocol):
    """Hears of what fails where nobody can be asked."""

    def failed(self, what: str, error: BaseException) -> None:
        """A page or an act failed in a way that was not foreseen."""


@dataclass(frozen=True, slots=True)
class Services:
    """What every session works with.

    Attributes:
        store: What pages ask for.
        user: The user of a signed-in session by its handle, as the ledger has them now.
        executor: Runs what takes longer than the event loop should wait.
        clock: The clock.
        observer: Hears of what fails.
        later: Runs work beside a document (`app.libraries.later`).
        ahead: Held while a page is computed ahead of its session: one at a time, whatever number of pages is opened.
    """

    store: Store
    user: Callable[[str], User | None]
    executor: Executor
    clock: Callable[[], datetime]
    observer: Observer
    later: Callable[[Document, Callable[[], Awaitable[None]]], None]
    ahead: Lock = field(default_factory=Lock)


@dataclass(frozen=True, slots=True)
class _Loaded:
    """A page, ready to be put into the document.

    Attributes:
        page: The page.
        head: What stands above it.
        url: The address that the browser shows for it.
    """

    page: Page
    head: Markup
    url: str


class Session:
    """A browser's session."""

    def __init__(self, document: Document, handle: str, services: Services, looks: Looks) -> None:
        """Puts the components into a document.

        Args:
            document: The session's document.
            handle: The handle of the signed-in session that asked for it.
            services: What it works with.
            looks: How its components look.
        """
        self._document = document
        self._handle: Final = handle
        self._services: Final = services
        self._later: Final = services.later
        self._asked = TextInput(name="location")
        self._shown = TextInput(name="shown")
        self._width = TextInput(name="width", value="wide")
        self._header = looks.html("header")
        self._main = looks.html("main")
        self._fields = Fields(looks, self._narrowed, self._act)
        self._page: Page | None = None
        self._wanted: str | None = None
        self._loading = False
        self._turn = 0
        self._asked.on_change("value", lambda attr, old, new: self._ask(new.rpartition("#")[0]))
        self._width.on_change("value", lambda attr, old, new: self._again())
        parts = (self._header, self._fields.filters, self._main, self._fields.forms)
        self.layout: Final = pn.Column(*parts, sizing_mode="stretch_width", **looks.column)
        document.add_root(Column(children=[self._asked, self._shown, self._width], visible=False))
        document.add_root(self.layout.get_root(document))

    def compute_ahead(self, url: str) -> None:
        """Computes what the overview shows while the browser still reads the scripts that will ask for it.

        Other pages wait for the browser's width, and are most often asked for by a session that is open already.

        Args:
            url: The page that the browser loads.
        """
        if url.partition("?")[0] == "/" and self._services.ahead.acquire(blocking=False):
            # A failure is told when the page is asked for.
            self._services.executor.submit(self._computed, url)

    def _computed(self, url: str) -> None:
        services = self._services
        try:
            location = Location.read(url)
            who = access(services.user(self._handle), location.scope)
            load(services.store, Visit(who, replace(location, scope=who.scope), services.clock(), narrow=False))
        finally:
            services.ahead.release()

    def _ask(self, url: str) -> None:
        """Asks for a page; the last one that was asked for is the one that is shown."""
        self._wanted = url
        if not self._loading:
            self._loading = True
            self._later(self._document, self._load)

    def _again(self) -> None:
        if self._page is not None:
            self._ask(self._page.location.url)

    def _narrowed(self, name: str, value: str | None) -> None:
        """A filter was changed."""
        if self._page is not None:
            self._ask(narrowed(self._page.location, name, value).url)

    async def _load(self) -> None:
        try:
            while self._wanted is not None:
                url, self._wanted = self._wanted, None
                loaded = await self._beside(partial(self._loaded, url, self._width.value == "narrow"))
                if self._wanted is None:
                    self._document.add_next_tick_callback(partial(self._show, loaded))
        finally:
            self._loading = False

    async def _beside(self, work: Callable[[], Any]) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._services.executor, work)

    def _loaded(self, url: str, narrow: bool) -> _Loaded | None:
        """The page of a URL; None where nobody is signed in any more."""
        services, user, location = self._services, None, Location()
        try:
            user = services.user(self._handle)
            location = Location.read(url)
            who = access(user, location.scope)
            location = replace(location, scope=who.scope)
            page = load(services.store, Visit(who, location, services.clock(), narrow))
            return _Loaded(page, header.view(page.location, user), page.location.url)
        except GateError as error:
            if isinstance(error, AccessRefused) and user is None:
                return None
            location = _own(location, user)
            page = failure.view(location, error)
        except Exception as error:  # noqa: BLE001  whatever it is, the session goes on
            services.observer.failed("page", error)
            location = _own(location, user)
            page = failure.unforeseen(location)
        # The address stays as it was asked for, so that it can be mended.
        return _Loaded(page, header.view(location, user), url)

    def _show(self, loaded: _Loaded | None) -> None:
        try:
            self._put(loaded)
        except Exception as error:  # noqa: BLE001  whatever it is, the session goes on
            self._services.observer.failed("page", error)
            location = Location() if loaded is None else loaded.page.location
            self._main.object = str(header.main(failure.unforeseen(location)))
            self._tell(location.url, "This page cannot be shown", location.page)

    def _put(self, loaded: _Loaded | None) -> None:
        if loaded is None:
            self._main.object = self._header.object = ""
            self._fields.show((), {}, (), Location())
            self._tell("/sign-in", "Signed out", "sign-in")
            return
        page = self._page = loaded.page
        self._header.object = str(loaded.head)
        self._fields.show(page.filters, page.links, page.forms, page.location)
        self._main.object = str(header.main(page))
        self._tell(loaded.url, page.title, page.location.page)

    def _tell(self, url: str, title: str, page: str) -> None:
        # Panel puts off what changed until the browser has said that it is ready, and this comes after all of it.
        self._document.add_next_tick_callback(partial(self._told, url, title, page))

    def _told(self, url: str, title: str, page: str) -> None:
        self._turn += 1
        self._shown.value = json.dumps({"url": url, "title": title, "page": page, "turn": self._turn})

    def _act(self, form: Form, note: str) -> None:
        """Does what a form says, once the user may do it, and shows the page anew."""
        if self._page is None or form not in self._page.forms:
            return
        self._later(self._document, partial(self._acted, self._page.location, form, note))

    async def _acted(self, location: Location, form: Form, note: str) -> None:
        fault = await self._beside(partial(self._done, location, form, note))
        self._document.add_next_tick_callback(partial(self._after, fault))

    def _done(self, location: Location, form: Form, note: str) -> str | None:
        """What kept an act from being done; None where it was done."""
        services = self._services
        try:
            who = access(services.user(self._handle), location.scope)
            act(services.store, Visit(who, location, services.clock()), form, note)
        except GateError as error:
            return error.message
        except Exception as error:  # noqa: BLE001  whatever it is, the session goes on
            services.observer.failed("act", error)
            return "That did not work, and nothing was changed. Try again; the operator finds the reason in the log."
        return None

    def _after(self, fault: str | None) -> None:
        if fault is not None:
            self._fields.fault(fault)
        else:
            self._again()


def _own(location: Location, user: User | None) -> Location:
    """A location in a scope that its user may see, for the links around a page that cannot be shown."""
    scopes = sorted(user.scopes.values()) if user is not None else []
    return replace(location, scope=location.scope if location.scope in scopes else next(iter(scopes), None))


def narrowed(location: Location, name: str, value: str | None) -> Location:
    """A location after one filter was changed: filters that depend on it are open again."""
    if name == "scope":
        return replace(Location(location.page), scope=value)
    reopened = dict.fromkeys(("version", "reason", "rule", "anomaly")) if name == "policy" else {}
    kept = {name: None for name in reopened if name in location.filters}
    return location.change(**{**kept, name: value})
