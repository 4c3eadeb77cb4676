"""A receiver of webhooks over real HTTP(S), which misbehaves as a test asks."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

Behavior = Callable[["Handler"], None]

LOOPBACK = {"GATE_WEBHOOK_HTTP": "allowed", "GATE_WEBHOOK_NETWORKS": '["127.0.0.0/8"]'}
"""The settings under which events go to a receiver on this machine."""


class Handler(BaseHTTPRequestHandler):
    """One event that is sent."""

    server: Receiver
    protocol_version = "HTTP/1.1"
    # Head and body leave at once, for the other end may close the connection in between.
    wbufsize = -1

    def do_POST(self) -> None:
        self.body = self.rfile.read(int(self.headers["content-length"]))
        self.event = json.loads(self.body)
        self.server.sent.append((self.headers["webhook-id"], self.event))
        self.server.requests.append((self.path, dict(self.headers.items()), self.body))
        self.server.behave(self)

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)


class Receiver(ThreadingHTTPServer):
    """The receiver: the ids and bodies that it was sent, the whole requests, and how it behaves."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, tls: Path | None = None) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.sent: list[tuple[str, dict[str, Any]]] = []
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        self.connections = 0
        self.behave: Behavior = lambda handler: handler.answer(204)
        self.scheme = "http" if tls is None else "https"
        if tls is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(tls)
            self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.server_port}/hook"

    def get_request(self) -> tuple[socket.socket, Any]:
        self.connections += 1
        return super().get_request()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Endpoints hang up in the middle of what misbehaves."""


@contextmanager
def receiver(tls: Path | None = None) -> Iterator[Receiver]:
    """A receiver on loopback while the block runs."""
    with Receiver(tls) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
