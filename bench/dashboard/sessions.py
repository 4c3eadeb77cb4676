"""Sessions of the dashboard without a browser, with the messages of Bokeh over a `websocket`.

A session loads a page with its token, as a browser does, opens the connection, and pulls the document. Then it asks for
pages with the model `location`, as the page's script does. The server makes the same pages and sends the same patches,
but nothing draws them. So ten sessions can be open, while ten browsers would take all processors.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from html import unescape
from typing import Any, Final
from urllib.parse import urljoin

import httpx
import orjson
from bokeh.client.websocket import WebSocketClientConnectionWrapper
from bokeh.core.types import ID
from bokeh.document.json import MessageSent, ModelChanged
from bokeh.protocol import Protocol
from bokeh.protocol.messages.patch_doc import patch_doc
from bokeh.protocol.receiver import Receiver
from tornado.httpclient import HTTPRequest
from tornado.websocket import websocket_connect

from bench.measure import Mismatch

_TIMEOUT_SECONDS: Final = 60.0
_LARGEST: Final = 64 * 1024 * 1024
_TOKEN: Final = re.compile(r'<input type="hidden" name="_xsrf" value="([^"]+)"')
_SESSION: Final = re.compile(r'<script type="application/json" id="session">(.*?)</script>', re.DOTALL)


def sign_in(base: str, name: str, password: str) -> dict[str, str]:
    """The cookies of a new signed-in session.

    Raises:
        Mismatch: The server did not sign in.
    """
    with httpx.Client(base_url=base, timeout=_TIMEOUT_SECONDS, trust_env=False) as client:
        form = _TOKEN.search(client.get("/sign-in").text)
        token = "" if form is None else unescape(form[1])
        answer = client.post("/sign-in", data={"_xsrf": token, "next": "/", "name": name, "password": password})
        if answer.status_code != httpx.codes.FOUND:
            raise Mismatch(f"The dashboard did not sign in: {answer.status_code} {answer.text[:400]}")
        return dict(client.cookies)


class BokehSession:
    """An open session: its connection, and the models for its location and its content."""

    def __init__(self, socket: WebSocketClientConnectionWrapper) -> None:
        """Takes the open websocket; `open_session` is the way in."""
        self._socket = socket
        self._receiver = Receiver(Protocol())
        self._models: dict[str, ID] = {}
        self._asked = 0

    @classmethod
    async def open(cls, base: str, cookies: Mapping[str, str], url: str = "/") -> BokehSession:
        """Loads a page and opens its session; nothing is asked for yet.

        Args:
            base: The server's address.
            cookies: Those of a signed-in session.
            url: The page.

        Raises:
            Mismatch: The server does not let it in.
        """
        async with httpx.AsyncClient(cookies=dict(cookies), timeout=_TIMEOUT_SECONDS, trust_env=False) as client:
            answer = await client.get(urljoin(base, url))
        found = _SESSION.search(answer.text)
        if found is None:
            raise Mismatch(f"{url} is no page of the dashboard: {answer.status_code} {answer.text[:400]}")
        token = orjson.loads(found[1])["token"]
        address = urljoin(base.replace("http", "ws", 1), url.partition("?")[0].rstrip("/") + "/ws")
        request = HTTPRequest(
            address,
            headers={"Origin": base, "Cookie": "; ".join(f"{name}={value}" for name, value in cookies.items())},
        )
        socket = await websocket_connect(request, subprotocols=["bokeh", token], max_message_size=_LARGEST)
        session = cls(WebSocketClientConnectionWrapper(socket))
        await session._begin()
        return session

    async def show(self, url: str) -> float:
        """Asks for a page; the milliseconds until the server has sent it.

        Raises:
            Mismatch: The page cannot be shown, or another one is.
        """
        self._asked += 1
        started = time.perf_counter()
        await self._set("location", f"{self._asked} {url}")
        while True:
            for event in (await self._next("PATCH-DOC")).get("events", ()):
                if event.get("model", {}).get("id") == self._models["shown"] and event.get("attr") == "value":
                    taken = (time.perf_counter() - started) * 1000
                    shown = orjson.loads(event["new"])
                    if "waiting" in shown:
                        continue
                    if "cannot be shown" in shown["title"] or shown["url"].startswith("/sign-in"):
                        raise Mismatch(f"{url} was not shown: {shown}")
                    return taken

    def close(self) -> None:
        """Closes the connection, as a browser does when it leaves the page."""
        self._socket.close(1000, "done")

    async def _begin(self) -> None:
        await self._next("ACK")
        await Protocol().create("PULL-DOC-REQ").send(self._socket)
        document = (await self._next("PULL-DOC-REPLY"))["doc"]
        self._models = {name: id_ for name, id_ in _named(document["roots"]) if name in ("location", "shown", "width")}
        await self._set("width", "wide")
        # As a browser does once it has drawn the document; before, the server shows nothing.
        ready: Any = {"type": "event", "name": "document_ready", "values": {"type": "map", "entries": []}}
        told: MessageSent = {"kind": "MessageSent", "msg_type": "bokeh_event", "msg_data": ready}
        await patch_doc(patch_doc.create_header(), {}, {"events": [told]}).send(self._socket)

    async def _set(self, model: str, value: str) -> None:
        event: ModelChanged = {
            "kind": "ModelChanged",
            "model": {"id": self._models[model]},
            "attr": "value",
            "new": value,
        }
        await patch_doc(patch_doc.create_header(), {}, {"events": [event]}).send(self._socket)

    async def _next(self, kind: str) -> Mapping[str, Any]:
        """The content of the next message of a kind; others are passed over."""
        while True:
            fragment = await self._socket.read_message()
            if fragment is None:
                raise Mismatch("The server closed a session's websocket.")
            message = await self._receiver.consume(fragment)
            if message is None:
                continue
            if message.msgtype == "ERROR":
                raise Mismatch(f"The server answered a session with an error: {message.content}")
            if message.msgtype == kind:
                content: Mapping[str, Any] = message.content
                return content


def _named(node: Any) -> list[tuple[str, ID]]:
    """(name, id) of all models with a name in a part of a document."""
    if isinstance(node, list):
        return [found for each in node for found in _named(each)]
    if not isinstance(node, dict):
        return []
    attributes = node.get("attributes")
    name = attributes.get("name") if isinstance(attributes, dict) else None
    mine = [(name, node["id"])] if isinstance(name, str) and "id" in node else []
    return mine + [found for each in node.values() for found in _named(each)]
