"""The dashboard's server in a thread of the tests, and a client that speaks its protocol as a browser does, or worse.

with served(instance) as site:
    browser = site.browser()
    browser.sign_in("ana")
    with browser.open("/") as page:
        page.go("/held").title
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from html import unescape
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

import httpx

from gate.clock import utc_now
from gate.instance.instance import Instance
from gate.ledger.access.authority import Scope
from workbench.lake.entries import Personal

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from tornado.websocket import WebSocketClientConnection

    from workbench.dashboard.app.server import Dashboard

Result = TypeVar("Result")

PASSWORD: Final = "correct horse battery"
HOST: Final = "127.0.0.1"

# For what never happens: a test that waits so long fails.
_SECONDS: Final = 20


class Clock:
    """The server's clock, which a test moves forward."""

    def __init__(self) -> None:
        self._ahead = timedelta()

    def __call__(self) -> datetime:
        return utc_now() + self._ahead

    def forward(self, by: timedelta) -> None:
        """Moves it."""
        self._ahead += by


@dataclass
class Failures:
    """What the server could not foresee."""

    seen: list[BaseException] = field(default_factory=list)

    def failed(self, what: str, error: BaseException) -> None:
        """Keeps it, and shows it with what failed."""
        traceback.print_exception(error)
        self.seen.append(error)


@dataclass(frozen=True)
class Site:
    """A server that listens.

    Attributes:
        instance: Its instance.
        port: Its port.
        link: The path of the link that signs its demo's user in once.
        clock: Its clock.
        failures: What it could not foresee.
        loop: The event loop of its thread.
        public_url: Under which browsers reach it through a proxy.
    """

    instance: Instance
    port: int
    link: str | None
    clock: Clock
    failures: Failures
    loop: asyncio.AbstractEventLoop
    public_url: str | None = None
    _browsers: list[Browser] = field(default_factory=list)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://{HOST}:{self.port}"

    @property
    def cookie(self) -> str:
        """The name of its cookie."""
        return f"gate_workbench_{self.port}" if self.public_url is None else "__Host-gate_workbench"

    def browser(self, *signed_in: str) -> Browser:
        """A browser without a cookie, or one in which a user signed in."""
        browser = Browser(self)
        self._browsers.append(browser)
        for name in signed_in:
            assert browser.sign_in(name).status_code == 302
        return browser

    def close_browsers(self) -> None:
        """Closes every browser."""
        while self._browsers:
            self._browsers.pop().http.close()

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Does something in the server's thread."""
        return asyncio.run_coroutine_threadsafe(asyncio.wait_for(work, _SECONDS), self.loop).result()

    def call(self, work: Callable[[], Result]) -> Result:
        """Calls something in the server's thread."""

        async def called() -> Result:
            return work()

        return self.run(called())

    def add_user(self, name: str, scopes: list[Scope], role: str = "viewer", expires_at: datetime | None = None) -> str:
        """Adds a user with the password of all; the name."""
        self.instance.ledger.users.add(name, PASSWORD, scopes, role, expires_at, self.clock())
        return name


@contextmanager
def served(
    instance: Instance,
    *,
    public_url: str | None = None,
    demo_user: str | None = None,
    trusted_proxies: Iterable[str] = (HOST,),
) -> Iterator[Site]:
    """Serves an instance while the block runs."""
    clock, failures, port = Clock(), Failures(), free_port()
    started, made = Event(), list[tuple["Dashboard", asyncio.AbstractEventLoop]]()

    def run() -> None:
        # Panel takes a second to load.
        from workbench.dashboard.app.server import dashboard
        from workbench.dashboard.store.store import Store

        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        try:
            found = dashboard(
                Store(instance, Personal(), clock),
                instance.ledger.users,
                failures,
                host=HOST,
                port=port,
                public_url=public_url,
                trusted_proxies=trusted_proxies,
                demo_user=demo_user,
                clock=clock,
            )
            found.server.start()
            made.append((found, loop))
        finally:
            started.set()
        found.server.io_loop.start()
        found.server.stop()
        found.workshop.close()

    thread = Thread(target=run, name="dashboard under test")
    thread.start()
    started.wait()
    assert made, "the server did not start"
    (found, loop), *_ = made
    site = Site(instance, port, found.link, clock, failures, loop, public_url)
    try:
        yield site
    finally:
        site.close_browsers()
        site.call(lambda: _cut(found))
        loop.call_soon_threadsafe(found.server.io_loop.stop)
        thread.join()
        found.server.io_loop.close()


def _cut(dashboard: Dashboard) -> None:
    """Cuts every connection, as the end of a process would."""
    for client in list(dashboard.server._tornado._clients):
        connection: Any = client._socket.ws_connection
        # One that ends already has none any more.
        if connection is not None:
            connection._abort()


class Browser:
    """What a browser holds of a site: its cookies.

    Attributes:
        http: A client with the cookies.
    """

    def __init__(self, site: Site) -> None:
        self.site: Final = site
        # Of its own address, as one of a proxy would be; redirects are looked at.
        self.http: Final = httpx.Client(base_url=site.url, trust_env=False)

    def get(self, url: str, **more: Any) -> httpx.Response:
        """GET."""
        return self.http.get(url, **more)

    def post(self, url: str, form: dict[str, str] | None = None, **more: Any) -> httpx.Response:
        """POST of a form with its token against cross-site requests."""
        token = self.http.cookies.get("_xsrf") or self._token()
        return self.http.post(url, data={"_xsrf": token, **(form or {})}, **more)

    def _token(self) -> str:
        found = re.search(r'name="_xsrf" value="([^"]+)"', self.get("/sign-in").text)
        assert found is not None
        return found[1]

    def sign_in(self, name: str, password: str = PASSWORD, **form: str) -> httpx.Response:
        """Sends the form of the sign-in."""
        return self.post("/sign-in", {"name": name, "password": password, **form})

    def token(self, url: str = "/") -> str:
        """The token for a websocket that a page holds."""
        page = self.get(url)
        assert page.status_code == 200, (page.status_code, page.headers.get("location"))
        found = re.search(r'id="session">(.*?)</script>', page.text)
        assert found is not None
        token: str = json.loads(found[1])["token"]
        return token

    def handshake(self, token: str, **headers: str) -> httpx.Response:
        """What the server answers to a websocket's request; one that it accepts is not read further."""
        asked = {
            "Connection": "Upgrade",
            "Upgrade": "websocket",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
            "Sec-WebSocket-Protocol": f"bokeh, {token}".strip(),
            "Origin": self.site.url,
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        return self.http.get("/ws", headers=asked)

    @contextmanager
    def open(self, url: str = "/", *, token: str | None = None) -> Iterator[Channel]:
        """Opens a page with its websocket, and asks for nothing yet."""
        channel = Channel(
            self.site, token or self.token(url), "; ".join(f"{k}={v}" for k, v in self.http.cookies.items())
        )
        try:
            yield channel
        finally:
            channel.close()


@dataclass(frozen=True)
class Seen:
    """A page as the server sent it.

    Attributes:
        url: Its address.
        title: Its title.
        html: The HTML of its parts that changed.
    """

    url: str
    title: str
    html: str


class Channel:
    """An open websocket that speaks Bokeh's protocol in plain JSON."""

    def __init__(self, site: Site, token: str, cookie: str) -> None:
        self._site = site
        self._turn = 0
        self._asked = 0
        self._acts = 0
        self._over = False
        self._socket: WebSocketClientConnection = site.run(_connected(site, token, cookie))
        if self.receive()["msgtype"] != "ACK":
            self.close()
            raise ConnectionError("The server closed the websocket.")
        self.document: Final = self._pulled()
        self._ids: Final = {
            model["attributes"]["name"]: model["id"]
            for model in _models(self.document)
            if "name" in model.get("attributes", {})
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection, and waits until the server has."""

        async def closed() -> None:
            self._socket.close()
            while not self._over:
                self._over = await self._socket.read_message() is None

        self._site.run(closed())

    def ask(self, url: str) -> None:
        """Asks for a page, as a link does; first of all says that the document is drawn, as a browser does."""
        if not self._asked:
            self.ready()
        self._asked += 1
        self.change(self._ids["location"], "value", f"{self._asked} {url}")

    def go(self, url: str) -> Seen:
        """Asks for a page, and waits until it is shown."""
        self.ask(url)
        return self.shown()

    def shown(self) -> Seen:
        """Waits until a page is shown."""
        html: list[str] = []
        while True:
            for event in self.receive()["content"].get("events", []):
                if event.get("attr") == "text":
                    html.append(unescape(event["new"]))
                if event.get("model") == {"id": self._ids["shown"]}:
                    told = json.loads(event["new"])
                    # As the page's script does: what another turn asked for is passed over.
                    if "waiting" in told or told["turn"] != self._asked:
                        continue
                    return Seen(told["url"], told["title"], "\n".join(html))
                html.extend(unescape(text) for text in _texts(event.get("new")))

    def say(self, said: str) -> None:
        """Says something as a page does whose reader acts, whatever it is."""
        self.change(self._ids["said"], "value", said)

    def act(self, act: str, /, **more: Any) -> dict[str, Any]:
        """Does something on the page, and waits for the answer."""
        self._acts += 1
        self.say(json.dumps({"n": self._acts, "act": act, **more}))
        return self.told(self._acts)

    def part(self, name: str, text: str) -> str:
        """Waits for a part of the page with a text in it, and returns the part."""
        while True:
            for event in self.reply("PATCH-DOC").get("events", []):
                if event.get("model") == {"id": self._ids["told"]}:
                    part = json.loads(event["new"]).get("parts", {}).get(name, "")
                    if text in part:
                        return str(part)

    def told(self, number: int) -> dict[str, Any]:
        """Waits for the answer to what was said under a number."""
        while True:
            for event in self.reply("PATCH-DOC").get("events", []):
                if event.get("model") == {"id": self._ids["told"]}:
                    told: dict[str, Any] = json.loads(event["new"])
                    if told.get("n") == number:
                        return told

    def ready(self) -> None:
        """Says that the page is drawn, as a browser does."""
        self.tell("document_ready")

    def tell(self, name: str, **values: Any) -> None:
        """Sends an event, such as the click on a button."""
        held = {"type": "map", "entries": list(values.items())}
        event = {"type": "event", "name": name, "values": held}
        self.patch({"kind": "MessageSent", "msg_type": "bokeh_event", "msg_data": event})

    def change(self, model: str, attribute: str, value: Any) -> None:
        """Sets a property of a model, whoever may."""
        self.patch({"kind": "ModelChanged", "model": {"id": model}, "attr": attribute, "new": value})

    def patch(self, *events: dict[str, Any]) -> None:
        """Sends changes of the document."""
        self.send("PATCH-DOC", {"events": list(events)})

    def send(self, kind: str, content: dict[str, Any]) -> None:
        """Sends a message."""
        self._turn += 1
        header = {"msgid": f"test-{self._turn}", "msgtype": kind}
        self.write(*map(json.dumps, (header, {}, content)))

    def write(self, *frames: str | bytes) -> None:
        """Sends frames, whatever they are."""

        async def write() -> None:
            for frame in frames:
                await self._socket.write_message(frame, isinstance(frame, bytes))

        self._site.run(write())

    def receive(self) -> dict[str, Any]:
        """The next message; one of type CLOSED where the connection is."""

        async def read() -> dict[str, Any]:
            frames: list[Any] = []
            while len(frames) < 3:
                frame = await self._socket.read_message()
                if frame is None:
                    self._over = True
                    return {"msgtype": "CLOSED", "content": {}}
                frames.append(json.loads(frame))
            header, _, content = frames
            for _ in range(2 * header.get("num_buffers", 0)):
                await self._socket.read_message()
            return {**header, "content": content}

        return self._site.run(read())

    def reply(self, kind: str) -> dict[str, Any]:
        """The content of the next message of a type."""
        while True:
            message = self.receive()
            assert message["msgtype"] not in ("CLOSED", "ERROR"), message
            if message["msgtype"] == kind:
                content: dict[str, Any] = message["content"]
                return content

    def _pulled(self) -> dict[str, Any]:
        self.send("PULL-DOC-REQ", {})
        document: dict[str, Any] = self.reply("PULL-DOC-REPLY")["doc"]
        return document

    def pulled(self) -> list[dict[str, Any]]:
        """Every model of the document as it is now."""
        return list(_models(self._pulled()))


async def _connected(site: Site, token: str, cookie: str) -> WebSocketClientConnection:
    from tornado.httpclient import HTTPRequest
    from tornado.websocket import websocket_connect

    headers = {"Cookie": cookie, "Origin": site.url}
    request = HTTPRequest(f"ws://{HOST}:{site.port}/ws", headers=headers)
    return await websocket_connect(request, subprotocols=["bokeh", token])


def _models(value: Any) -> Iterator[dict[str, Any]]:
    """Every model in a document's JSON."""
    if isinstance(value, dict):
        if value.get("type") == "object" and "id" in value:
            yield value
        for each in value.values():
            yield from _models(each)
    elif isinstance(value, list):
        for each in value:
            yield from _models(each)


def _texts(value: Any) -> Iterator[str]:
    """The HTML that new models hold."""
    for model in _models(value):
        if isinstance(text := model.get("attributes", {}).get("text"), str):
            yield text


def free_port() -> int:
    """A port on which nothing listens."""
    with socket.socket() as found:
        found.bind((HOST, 0))
        port: int = found.getsockname()[1]
        return port
