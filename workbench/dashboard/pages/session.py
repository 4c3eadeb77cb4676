"""A browser's session: it asks for pages, shows them, and does what their forms say.

The browser sends the URL that it opens, with the number of this turn. The session loads the page outside the event
loop, and sends the changes back with the number, so that the browser can ignore an answer that it no longer needs. A
new request replaces a page that is still loading. User, role, and scope are looked up every time.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
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
from workbench.charts.inline.plans import Draw, drawn_here
from workbench.dashboard.acts.talk import Talk
from workbench.dashboard.pages.fields import Fields
from workbench.dashboard.pages.looks import Looks
from workbench.dashboard.pages.routes import WRITTEN, act, load
from workbench.dashboard.pages.visit import Visit
from workbench.dashboard.store.access import SIGNED_OUT, access
from workbench.dashboard.store.store import Store
from workbench.dashboard.studio.proofs import Proofs
from workbench.dashboard.studio.workshop import Workshop
from workbench.dashboard.views import failure, header
from workbench.dashboard.views.location import Location, LocationInvalid
from workbench.dashboard.views.page import Form, Page

if TYPE_CHECKING:
    from bokeh.document import Document

_DIGITS: Final = 15


class Observer(Protocol):
    """Takes note of failures that nobody foresaw."""

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
        observer: Takes note of failures that nobody foresaw.
        turn: Held while a page of the session of a handle is loaded: one at a time for each user, so that nobody's many
            pages keep those of others waiting.
        later: Runs work in parallel to a document (`app.libraries.later`).
        once_drawn: Calls back once a browser has drawn a document (`app.libraries.once_drawn`).
        over: Why the session of a handle is over, as a word; None where it is not.
        workshop: Does what takes longer than a click may.
        proofs: The dry runs of drafts.
        draw: Draws charts.
        ahead: Held while a page is computed ahead of its session: one at a time, whatever number of pages is opened.
    """

    store: Store
    user: Callable[[str], User | None]
    executor: Executor
    clock: Callable[[], datetime]
    observer: Observer
    turn: Callable[[str], asyncio.Lock]
    later: Callable[[Document, Callable[[], Awaitable[None]]], None]
    once_drawn: Callable[[Document, Callable[[], None]], None]
    over: Callable[[str], str | None]
    workshop: Workshop
    proofs: Proofs
    draw: Draw = drawn_here
    ahead: Lock = field(default_factory=Lock)


@dataclass(frozen=True, slots=True)
class _Turn:
    """What a page answers.

    Attributes:
        number: The browser's turn.
        moved: Whether a filter led to the page since, which the browser then keeps as another one in its history.
    """

    number: int
    moved: bool


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

    def __init__(
        self, document: Document, handle: str, services: Services, looks: Looks, refused: GateError | None = None
    ) -> None:
        """Puts the components into a document.

        Args:
            document: The session's document.
            handle: The handle of the signed-in session that asked for it.
            services: What it works with.
            looks: How its components look.
            refused: Why it shows no page; None where it does.
        """
        self._refused: Final = refused
        self._document = document
        self._handle: Final = handle
        # How many times something was shown: a browser draws what it was sent a moment later.
        self._times = 0
        self._services: Final = services
        self._later: Final = services.later
        self._asked = TextInput(name="location")
        self._shown = TextInput(name="shown")
        self._width = TextInput(name="width", value="wide")
        self._said = TextInput(name="said")
        self._told = TextInput(name="told")
        self._talk = Talk(services, handle, self._answer)
        self._header = looks.html("header")
        self._main = looks.html("main")
        self._fields = Fields(looks, self._narrowed, self._act)
        self._page: Page | None = None
        # What was asked for last: its address, and whether a filter led there rather than the browser.
        self._url = ""
        self._moved = False
        self._turn = 0
        self._answers = 0
        self._wanted = False
        self._loading = False
        self._acting = False
        self._ready = False
        self._pending: Callable[[], None] | None = None
        services.once_drawn(document, self._become_ready)
        self._asked.on_change("value", lambda attr, old, new: self._turned(new))
        self._width.on_change("value", lambda attr, old, new: self._again())
        self._said.on_change("value", lambda attr, old, new: self._talk.hear(document, new, self._url))
        document.on_session_destroyed(lambda context: self._talk.close())
        parts = (self._header, self._fields.filters, self._main, self._fields.forms)
        self.layout: Final = pn.Column(*parts, sizing_mode="stretch_width", **looks.column)
        document.add_root(
            Column(children=[self._asked, self._shown, self._width, self._said, self._told], visible=False)
        )
        document.add_root(self.layout.get_root(document))

    def compute_ahead(self, url: str) -> None:
        """Computes what the overview shows while the browser still reads the scripts that will ask for it.

        Other pages wait for the browser's width, and are most often asked for by a session that is open already.

        Args:
            url: The page that the browser loads.
        """
        if self._refused is None and url.partition("?")[0] == "/" and self._services.ahead.acquire(blocking=False):
            # A failure is told when the page is asked for.
            self._services.executor.submit(self._computed, url)

    def _computed(self, url: str) -> None:
        services = self._services
        try:
            location = Location.read(url)
            who = access(services.user(self._handle), location.scope)
            load(
                services.store,
                Visit(who, replace(location, scope=who.scope), services.clock(), narrow=False, draw=services.draw),
            )
        finally:
            services.ahead.release()

    def _turned(self, asked: str) -> None:
        """The browser goes somewhere: `<turn> <URL>`; with the turn of before, the page stays and its address alone is
        another one.
        """
        turn, _, url = asked.partition(" ")
        if not (turn.isascii() and turn.isdecimal() and len(turn) <= _DIGITS):
            return
        if int(turn) == self._turn:
            self._url = url
            return
        self._turn, self._moved = int(turn), False
        # What goes on for a page ends with it.
        self._talk.leave()
        self._ask(url)

    def _ask(self, url: str) -> None:
        """Asks for a page; the last one that was asked for is the one that is shown."""
        self._url, self._wanted = url, True
        if not self._loading:
            self._loading = True
            self._later(self._document, self._load)

    def _again(self) -> None:
        if self._url and Location.page_of(self._url).page not in WRITTEN:
            self._ask(self._url)

    def _narrowed(self, name: str, value: str | None) -> None:
        """A filter was changed: of the page that was asked for last, though it may not be shown yet."""
        try:
            location = Location.read(self._url)
            if name not in location.filters:
                return
            url = narrowed(location, name, value).url
            Location.read(url)
        except LocationInvalid as error:
            self._fields.refuse(error.message)
            return
        self._moved = True
        self._document.add_next_tick_callback(self._tell_waiting)
        self._ask(url)

    async def _load(self) -> None:
        try:
            while self._wanted:
                self._wanted, url, turn = False, self._url, _Turn(self._turn, self._moved)
                loaded = await self._beside(partial(self._loaded, url, self._width.value == "narrow"))
                if not self._wanted:
                    # With the defaults that the page filled in.
                    self._url = url if loaded is None else loaded.url
                    self._pending = partial(self._show, loaded, turn)
                    if self._ready:
                        self._document.add_next_tick_callback(self._show_pending)
        finally:
            self._loading = False

    def _become_ready(self) -> None:
        """The browser has drawn the document; Panel drops what is changed before that."""
        self._ready = True
        self._show_pending()

    def _show_pending(self) -> None:
        pending, self._pending = self._pending, None
        if pending is not None:
            pending()

    async def _beside(self, work: Callable[[], Any]) -> Any:
        async with self._services.turn(self._handle):
            return await asyncio.get_running_loop().run_in_executor(self._services.executor, work)

    def _loaded(self, url: str, narrow: bool) -> _Loaded | None:
        """The page of a URL; None where nobody is signed in any more."""
        services, user, location = self._services, None, Location.page_of(url)
        try:
            user = services.user(self._handle)
            location = Location.read(url)
            who = access(user, location.scope)
            location = replace(location, scope=who.scope)
            if self._refused is not None:
                raise self._refused
            with services.workshop.giving_way():
                page = load(services.store, Visit(who, location, services.clock(), narrow, services.draw))
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

    def _show(self, loaded: _Loaded | None, turn: _Turn) -> None:
        try:
            self._put(loaded, turn)
        except Exception as error:  # noqa: BLE001  whatever it is, the session goes on
            self._services.observer.failed("page", error)
            location = Location() if loaded is None else loaded.page.location
            self._put_main(failure.unforeseen(location))
            self._tell(location.url, "This page cannot be shown", location.place, turn)

    def _put(self, loaded: _Loaded | None, turn: _Turn) -> None:
        if loaded is None:
            self._main.object = self._header.object = ""
            self._fields.show((), {}, (), Location())
            over = self._services.over(self._handle)
            self._tell(f"/sign-in?ended={over}", "Signed out", "sign-in", turn)
            return
        page = self._page = loaded.page
        self._header.object = str(loaded.head)
        self._fields.show(page.filters, page.links, page.forms, page.location)
        self._put_main(page)
        self._tell(loaded.url, page.title, page.location.place, turn)

    def _put_main(self, page: Page) -> None:
        self._times += 1
        self._main.object = str(header.main(page, self._times))

    def _tell(self, url: str, title: str, place: str, turn: _Turn) -> None:
        # Panel puts off what changed until the browser has said that it is ready, and this comes after all of it.
        told = {"url": url, "title": title, "place": place, "time": self._times}
        self._document.add_next_tick_callback(partial(self._say, told, turn))

    def _answer(self, told: str) -> None:
        # On a later tick, as `_tell`.
        self._document.add_next_tick_callback(partial(setattr, self._told, "value", told))

    def _tell_waiting(self) -> None:
        """Lets the browser show that something is going on which it did not ask for itself.

        On a later tick: Panel hears of widgets without holding the document.
        """
        self._say({"waiting": True}, _Turn(self._turn, self._moved))

    def _say(self, told: Mapping[str, object], turn: _Turn) -> None:
        self._answers += 1
        # The last number makes each message another value than the one before.
        self._shown.value = json.dumps({**told, "turn": turn.number, "moved": turn.moved, "said": self._answers})

    def _act(self, form: Form, note: str) -> None:
        """Does what a form says, once the user may do it, and shows the page anew."""
        if self._page is None or form not in self._page.forms or self._acting:
            return
        self._acting = True
        self._document.add_next_tick_callback(self._tell_waiting)
        self._later(self._document, partial(self._acted, self._page.location, form, note))

    async def _acted(self, location: Location, form: Form, note: str) -> None:
        try:
            fault = await self._beside(partial(self._done, location, form, note))
            self._document.add_next_tick_callback(partial(self._after, location, fault))
        finally:
            self._acting = False

    def _done(self, location: Location, form: Form, note: str) -> str | None:
        """What kept an act from being done; None where it was done."""
        services = self._services
        try:
            who = access(services.user(self._handle), location.scope)
            act(services.store, Visit(who, location, services.clock()), form, note)
        except GateError as error:
            # Nothing was done for a user who is signed out; the page, asked for again, leads to the sign-in.
            return None if error.code == SIGNED_OUT else error.message
        except Exception as error:  # noqa: BLE001  whatever it is, the session goes on
            services.observer.failed("act", error)
            return "That did not work, and nothing changed. Try again. The operator finds the reason in the log."
        return None

    def _after(self, location: Location, fault: str | None) -> None:
        """Shows what came of an act, unless the reader has gone on meanwhile."""
        if self._url != location.url:
            return
        if fault is None:
            self._again()
            return
        self._fields.fault(fault)
        if self._page is not None:
            turn = _Turn(self._turn, self._moved)
            self._tell(self._url, self._page.title, self._page.location.place, turn)


def _own(location: Location, user: User | None) -> Location:
    """A location in a scope that its user may see, for the links around a page that cannot be shown."""
    scopes = sorted(user.scopes.values()) if user is not None else []
    return replace(location, scope=location.scope if location.scope in scopes else next(iter(scopes), None))


def narrowed(location: Location, name: str, value: str | None) -> Location:
    """A location after a change of one filter, which clears the filters that depend on it."""
    if name == "scope":
        return replace(Location(location.page), scope=value)
    reopened = ("version", "reason", "rule", "anomaly") if name in ("policy", "history") else ()
    kept = {name: None for name in reopened if name in location.filters}
    return location.change(**{**kept, name: value})
