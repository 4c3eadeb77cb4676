"""Signing in and out: pages without a script, outside of Panel.

A failed sign-in does not say whether the name, the password or the user's state was at fault, and takes as long in each
case. Where too many failed, none is tried for some minutes. Every form carries a token against cross-site requests.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, Final
from urllib.parse import urlencode

from tornado.httputil import HTTPServerRequest
from tornado.web import RequestHandler, decode_signed_value

from gate.errors import AccessRefused, GateError
from gate.ledger.access.users import User, Users
from gate.origins import Origins
from workbench.dashboard.app.pages import outside
from workbench.dashboard.app.sessions import Over, Session, Sessions
from workbench.dashboard.app.throttle import Throttle
from workbench.dashboard.store.store import Store
from workbench.dashboard.views.location import Location, LocationInvalid

MAX_FIELD: Final = 1024
"""The longest name or password that is looked at, in characters."""

# Each sign-in fills 64 MiB for a tenth of a second.
_AT_ONCE: Final = 2


@dataclass(slots=True)
class SignIns:
    """What the handlers share.

    Attributes:
        users: The users of the instance.
        sessions: The sessions of signed-in users.
        throttle: How often somebody may try.
        origins: Where somebody tries from.
        secret: The key that signs cookies.
        cookie: The name of the cookie that holds a session's id.
        secure: Whether browsers reach the server over HTTPS alone.
        clock: The clock.
        once: A token that signs its user in once, for a demo on this machine; None without one, and after its use.
        hashing: Hashes passwords, so that no lookup of a user waits for it.
        turns: As many as are hashed at once.
    """

    users: Users
    sessions: Sessions
    throttle: Throttle
    origins: Origins
    secret: str
    cookie: str
    secure: bool
    clock: Callable[[], datetime]
    once: tuple[str, str] | None = None
    hashing: Executor = field(default_factory=lambda: ThreadPoolExecutor(_AT_ONCE, "sign-in"))
    turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))

    def link_for(self, name: str) -> str:
        """The path of a link that signs a user in once."""
        token = secrets.token_urlsafe(32)
        self.once = (token, name)
        return f"/sign-in/once/{token}"

    def session(self, handler: RequestHandler) -> Session | None:
        """The session of a request's cookie; None where nobody is signed in."""
        value = handler.get_signed_cookie(self.cookie, max_age_days=1)
        return None if value is None else self.sessions.find(value.decode())

    def over(self, handler: RequestHandler) -> Over | None:
        """Why the session of a request's cookie is over; None where it is not, or there is no cookie."""
        if not handler.get_cookie(self.cookie):
            return None
        value = handler.get_signed_cookie(self.cookie)
        # The key that signs cookies is the process's.
        return "restarted" if value is None else self.sessions.over_by_id(value.decode())

    def handle(self, request: HTTPServerRequest) -> str | None:
        """The handle of the session of a request, which no handler answers yet; None where nobody is signed in."""
        cookie = request.cookies.get(self.cookie)
        if cookie is None:
            return None
        value = decode_signed_value(self.secret, self.cookie, cookie.value, max_age_days=1)
        session = None if value is None else self.sessions.find(value.decode())
        return None if session is None else session.handle

    async def user(self, handler: RequestHandler, *, active: bool = True) -> User | None:
        """The user of a request's cookie, as the ledger has them now."""
        session = self.session(handler)
        if session is None:
            return None
        return await asyncio.to_thread(self.sessions.user, session.handle, active=active)

    def begin(self, handler: RequestHandler, user: User) -> None:
        """Begins a session, in the place of one that the browser has, and gives the browser its cookie."""
        before = self.session(handler)
        if before is not None:
            self.sessions.end(before.handle)
        handler.set_signed_cookie(
            self.cookie,
            self.sessions.begin(user),
            expires_days=None,
            httponly=True,
            secure=self.secure,
            samesite="Lax",
            path="/",
        )


class Outside(RequestHandler):
    """A page outside of Panel.

    Attributes:
        again: Where to try again after a failure.
    """

    again = "/"

    def initialize(self, sign_ins: SignIns, store: Store) -> None:
        """Takes the objects that the handlers share: the sessions, and the source of files."""
        self.sign_ins = sign_ins
        self.store = store

    def show(self, template: str, status: int = 200, **context: object) -> None:
        """Answers with a page."""
        self.set_status(status)
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.finish(outside(template, xsrf=self.xsrf_token.decode(), **context))

    def log_exception(self, *error: Any) -> None:
        """Logs what was not foreseen alone."""
        if not isinstance(error[1], GateError):
            super().log_exception(*error)

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """A page for whatever went wrong; it repeats nothing of the request."""
        error = kwargs.get("exc_info", (None, None))[1]
        if isinstance(error, GateError):
            self.show("message.html", 503, **failed(error, self.again))
            return
        message = _ERRORS.get(status_code, "The dashboard could not answer. Go back and try again.")
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.finish(outside("message.html", title="That did not work", message=message, link="/", link_text="Overview"))


def failed(error: GateError, link: str) -> dict[str, str]:
    """What a page says of an error.

    Args:
        error: The error.
        link: Where to try again.
    """
    return {"title": "That did not work", "message": error.message, "link": link, "link_text": "Try again"}


_OVER: Final[Mapping[str, str]] = {
    "changed": "You were signed out: an operator changed your user, or all your sessions were ended at once.",
    "disabled": "You were signed out: an operator disabled your user.",
    "elsewhere": "You were signed out: the session of this browser was ended in another window.",
    "expired": "You were signed out: your user has expired. Ask an operator to extend it.",
    "idle": "You were signed out: a session ends after an hour without activity. Sign in again.",
    "long": "You were signed out: a session ends after twelve hours. Sign in again.",
    "restarted": "You were signed out: the dashboard was restarted. Sign in again.",
}
_ERRORS: Final = {
    403: "The form was open for too long or came from another page. Go back, reload the page and try again.",
    404: "This page does not exist. Go to the overview.",
    405: "This address does not accept this kind of request.",
}


class SignIn(Outside):
    """GET and POST /sign-in."""

    again = "/sign-in"

    async def get(self) -> None:
        """The form."""
        if await self.sign_ins.user(self) is not None:
            self.redirect(self._next())
            return
        fault = _OVER.get(self.get_query_argument("ended", ""))
        self.show("sign_in.html", next=self._next(), name="", fault=fault)

    async def post(self) -> None:
        """Signs in, or says that it did not work."""
        name = self.get_body_argument("name", "")
        password = self.get_body_argument("password", "", strip=False)
        address, now = self._origin(), self.sign_ins.clock()
        if len(name) > MAX_FIELD or len(password) > MAX_FIELD:
            self._refuse("", "The name or the password is too long.", 401)
            return
        try:
            async with self.sign_ins.turns:
                # Only now: of many that come at once, those before may have failed meanwhile.
                if seconds := self.sign_ins.throttle.wait(name, address, now):
                    self._delay(name, seconds)
                    return
                work = partial(self.sign_ins.users.sign_in, name, password, now)
                user = await asyncio.get_running_loop().run_in_executor(self.sign_ins.hashing, work)
        except AccessRefused:
            if limits := self.sign_ins.throttle.failed(name, address, now):
                await asyncio.to_thread(self.sign_ins.users.log_lockout, name, address, limits, now)
            self._refuse(name, "The name or the password is wrong, or the user is disabled or expired.", 401)
            return
        except GateError as error:
            self._refuse(name, error.message, 503)
            return
        self.sign_ins.begin(self, user)
        self.redirect(self._next())

    def _origin(self) -> str:
        request = self.request
        return self.sign_ins.origins.of(str(request.remote_ip), request.headers.get("X-Forwarded-For", ""))

    def _delay(self, name: str, seconds: int) -> None:
        self.set_header("Retry-After", str(seconds))
        minutes = (seconds + 59) // 60
        wait = f"{minutes} minutes" if minutes > 1 else "a minute"
        self._refuse(name, f"Too many failed sign-ins. Wait {wait}, and try again.", 429)

    def _refuse(self, name: str, fault: str, status: int) -> None:
        self.show("sign_in.html", status, next=self._next(), name=name, fault=fault)

    def _next(self) -> str:
        """Where to go on: a page of the dashboard, and nothing else."""
        try:
            return Location.read(self.get_argument("next", "/")).url
        except LocationInvalid:
            return "/"


class SignInOnce(Outside):
    """GET and POST /sign-in/once/TOKEN: signs a demo's user in, once.

    The link itself changes nothing: a program that looks at it, such as a chat's preview, does not use it up.
    """

    def get(self, token: str) -> None:
        """A page with one button."""
        if self._named(token) is None:
            self._used()
            return
        self.show("once.html", path=self.request.path)

    async def post(self, token: str) -> None:
        """Signs in."""
        name = self._named(token)
        if name is None:
            self._used()
            return
        once, self.sign_ins.once = self.sign_ins.once, None
        try:
            user = await asyncio.to_thread(self.sign_ins.users.let_in, name, self.sign_ins.clock())
        except GateError as error:
            self.sign_ins.once = once
            self.show("message.html", 503, **failed(error, self.request.path))
            return
        self.sign_ins.begin(self, user)
        self.redirect("/")

    def _named(self, token: str) -> str | None:
        once = self.sign_ins.once
        return once[1] if once is not None and secrets.compare_digest(once[0].encode(), token.encode()) else None

    def _used(self) -> None:
        self.show(
            "message.html",
            410,
            title="This link was already used",
            message="A link works once. Restart the dashboard for a new link, or sign in with a name and a password.",
            link="/sign-in",
            link_text="Sign in",
        )


class SignOut(Outside):
    """GET and POST /sign-out."""

    again = "/sign-out"

    async def get(self) -> None:
        """Asks which sessions to end."""
        user = await self.sign_ins.user(self)
        if user is None:
            self.redirect("/sign-in")
            return
        self.show("sign_out.html", name=user.name)

    async def post(self) -> None:
        """Ends this session, or every session of the user."""
        session = self.sign_ins.session(self)
        if session is not None:
            user = await self.sign_ins.user(self)
            if user is not None and self.get_body_argument("everywhere", "") == "yes":
                now = self.sign_ins.clock()
                await asyncio.to_thread(self.sign_ins.users.sign_out, user.name, now, by=user.name)
            self.sign_ins.sessions.end(session.handle)
        self.clear_cookie(self.sign_ins.cookie, path="/", secure=self.sign_ins.secure)
        self.redirect("/sign-in")


class Nowhere(Outside):
    """Any other address."""

    def prepare(self) -> None:
        """Answers 404."""
        self.send_error(404)


def sign_in_cookie(port: int, *, secure: bool) -> str:
    """The name of the cookie that holds a session's id.

    Args:
        port: The port that the server listens on: cookies of one host do not tell its servers apart.
        secure: Whether browsers reach it over HTTPS alone; no other host of the domain can then set it.
    """
    return "__Host-gate_workbench" if secure else f"gate_workbench_{port}"


def sign_in_url(uri: str, over: Over | None) -> str:
    """Where to sign in to go on at an address.

    Args:
        uri: Path and query string of the address.
        over: Why the session that the browser had is over, which the page then says; None where it had none.
    """
    query: dict[str, str] = {} if over is None else {"ended": over}
    with suppress(LocationInvalid):
        query["next"] = Location.read(uri).url
    return f"/sign-in?{urlencode(query)}" if query else "/sign-in"
