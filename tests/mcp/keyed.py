"""A proxy that adds a key to each request, for clients that can send no headers of their own."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

_OF_THE_CONNECTION = {"connection", "keep-alive", "transfer-encoding", "content-length"}


@contextmanager
def keyed(url: str, headers: dict[str, str]) -> Iterator[str]:
    """The address under which every request reaches a server with these headers, while the block runs."""
    target = urlsplit(url).netloc

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def forward(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", "0")))
            sent = [(name, value) for name, value in self.headers.items() if name.lower() not in _OF_THE_CONNECTION]
            with closing(http.client.HTTPConnection(target, timeout=60)) as connection:
                connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
                for name, value in [*sent, *headers.items(), ("content-length", str(len(body)))]:
                    connection.putheader(name, value)
                connection.endheaders(body)
                answer = connection.getresponse()
                found = answer.read()
            # A client that has left by now leaves nothing open.
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in _OF_THE_CONNECTION:
                    self.send_header(name, value)
            self.send_header("content-length", str(len(found)))
            self.end_headers()
            self.wfile.write(found)

        do_GET = do_POST = do_DELETE = forward  # noqa: N815 - as the library calls them

        def log_message(self, *_: Any) -> None:
            pass

    class Proxy(ThreadingHTTPServer):
        def handle_error(self, *_: Any) -> None:
            # A client that leaves early is no fault of the server behind.
            pass

    server = Proxy(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
