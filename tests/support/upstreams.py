"""A server that speaks chat completions, and misbehaves as a test asks."""

from __future__ import annotations

import json
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

Behavior = Callable[["Handler"], None]

OPTIONS = ["refund", "replace", "decline"]
"""The options of the questions here."""

ADVISORY_REQUESTS: Mapping[str, dict[str, Any]] = {
    "single": {
        "question": "May we refund order 7?",
        "context": {"target_system": "shop", "target_object_id": "order-7"},
    },
    "multi": {"mode": "multi", "question": "Which remedy?", "context": {"options": OPTIONS, "price": 12.5}},
    "runtime": {"mode": "runtime", "question": "Which remedy now?", "context": {"options": OPTIONS}},
}
"""A request of each advisory mode."""

UPSTREAM_KEY = "upstream-key-0123456789"
"""The secret that the upstream is asked with."""


def fitting(mode: str, options: list[str] | None = None) -> dict[str, Any]:
    """An answer that fits a question of a mode."""
    if mode == "single":
        return {"answer": "yes", "reason": "The case is covered by the terms."}
    scores = [
        {"option": option, "score": 90 - 20.5 * index, "reason": f"Reason {index}."}
        for index, option in enumerate(options or OPTIONS)
    ]
    if mode == "multi":
        return {"scores": scores}
    return {"recommended": scores[0]["option"], "reason": "It scores best.", "scorecard": scores}


class Handler(BaseHTTPRequestHandler):
    """One request to the upstream."""

    server: Server

    def do_POST(self) -> None:
        length = int(self.headers["content-length"])
        self.server.asked.append((self.path, dict(self.headers), json.loads(self.rfile.read(length))))
        self.server.behave(self)

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def send(self, body: bytes, *, status: int = 200, content_type: str = "application/json", **headers: str) -> None:
        self.begin(len(body), status=status, content_type=content_type, **headers)
        self.wfile.write(body)

    def begin(self, length: int, *, status: int = 200, content_type: str = "application/json", **headers: str) -> None:
        self.send_response(status)
        self.send_header("content-type", content_type)
        self.send_header("content-length", str(length))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()


class Server(ThreadingHTTPServer):
    """The upstream: what it was asked, and how it behaves."""

    daemon_threads = True

    def __init__(self, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, 0), Handler)
        self._scheme = "http" if tls is None else "https"
        if tls is not None:
            # The handshake is for the thread of the connection.
            self.socket = tls.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        self.asked: list[tuple[str, dict[str, str], Any]] = []
        self.behave: Behavior = well
        self.ended = threading.Event()

    def handle_error(self, request: Any, client_address: Any) -> None:
        # Callers hang up on those that misbehave.
        pass

    @property
    def url(self) -> str:
        host, port = str(self.server_address[0]), self.server_address[1]
        return f"{self._scheme}://{f'[{host}]' if ':' in host else host}:{port}/v1"

    def answer(self, answer: Any) -> None:
        """Answers with this from now on: an answer, or the text of a message."""
        content = answer if isinstance(answer, str) else json.dumps(answer)
        self.behave = lambda handler: handler.send(completion(content))


def completion(content: Any, **changes: Any) -> bytes:
    """A chat completion."""
    message = {"role": "assistant", "content": content, **changes.pop("message", {})}
    choice = {"index": 0, "message": message, "finish_reason": "stop", **changes.pop("choice", {})}
    made = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "choices": [choice], **changes}
    return json.dumps(made).encode()


def well(handler: Handler) -> None:
    """Answers what it is asked."""
    handler.send(completion(json.dumps(fitting(mode_of(handler), _told(handler).get("options")))))


def mode_of(handler: Handler) -> str:
    """The mode of the question that was asked last."""
    if "options" not in _told(handler):
        return "single"
    return "runtime" if "Recommend" in system_of(handler) else "multi"


def _told(handler: Handler) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(handler.server.asked[-1][2]["messages"][1]["content"])
    return told


def system_of(handler: Handler) -> str:
    text: str = handler.server.asked[-1][2]["messages"][0]["content"]
    return text


def _drip(handler: Handler) -> None:
    body = completion(json.dumps(fitting("single")))
    handler.begin(len(body))
    for byte in body:
        handler.wfile.write(bytes([byte]))
        handler.wfile.flush()
        if handler.server.ended.wait(0.2):
            return


def _drip_head(handler: Handler) -> None:
    for byte in b"HTTP/1.1 200 OK\r\nx-slow: " + b"a" * 1000:
        handler.wfile.write(bytes([byte]))
        handler.wfile.flush()
        if handler.server.ended.wait(0.2):
            return


def _silent(handler: Handler) -> None:
    handler.server.ended.wait()


def _early(handler: Handler) -> None:
    body = completion(json.dumps(fitting("single")))
    handler.begin(len(body))
    handler.wfile.write(body[:-10])


def _reset(handler: Handler) -> None:
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()


def _huge(handler: Handler) -> None:
    handler.send(completion("x" * 10_000_000))


def _huge_unannounced(handler: Handler) -> None:
    handler.send_response(200)
    handler.send_header("content-type", "application/json")
    handler.end_headers()
    handler.wfile.write(completion("x" * 10_000_000))


def _stream(handler: Handler) -> None:
    part = json.dumps({"choices": [{"delta": {"content": json.dumps(fitting("single"))}}]})
    handler.send(f"data: {part}\n\ndata: [DONE]\n\n".encode(), content_type="text/event-stream")


def _redirect(handler: Handler) -> None:
    handler.send(b"", status=307, location=f"{handler.server.url}/elsewhere")


def _sends(body: bytes, **head: Any) -> Behavior:
    return lambda handler: handler.send(body, **head)


_GOOD = json.dumps(fitting("single"))

RETRY: Final = "Nothing was recorded; hold the action, and retry later with the same idempotency key."
OPERATOR: Final = (
    "Nothing was recorded; hold the action. Retrying does not help: the operator must correct advisory_url, "
    "advisory_model or the key in advisory_key_file."
)
"""How a refusal ends: the caller retries, or the operator corrects the settings."""

BEHAVIORS: Mapping[str, tuple[Behavior, str]] = {
    "drips": (_drip, f"no answer within 0.6 seconds. {RETRY}"),
    "drips its head": (_drip_head, "no answer within"),
    "is silent": (_silent, "no answer within"),
    "closes early": (_early, f"before its answer was complete. {RETRY}"),
    "resets the connection": (_reset, "connection"),
    "sends 10 MB": (_huge, "more than 262144 bytes"),
    "sends 10 MB without a length": (_huge_unannounced, "more than 262144 bytes"),
    "streams": (_stream, "content type"),
    "redirects": (_redirect, f"status 307. {OPERATOR}"),
    "rejects the key": (_sends(b'{"error": "SECRET-OF-UPSTREAM"}', status=401), f"status 401. {OPERATOR}"),
    "forbids it": (_sends(b'{"error": "SECRET-OF-UPSTREAM"}', status=403), f"status 403. {OPERATOR}"),
    "has no such model": (_sends(b'{"error": "SECRET-OF-UPSTREAM"}', status=404), f"status 404. {OPERATOR}"),
    "answers 500": (_sends(b'{"error": "SECRET-OF-UPSTREAM"}', status=500), f"status 500. {RETRY}"),
    "answers 429": (_sends(b'{"error": "SECRET-OF-UPSTREAM"}', status=429, retry_after="3"), f"status 429. {RETRY}"),
    "answers 201": (_sends(completion(_GOOD), status=201), f"status 201. {RETRY}"),
    "answers HTML": (_sends(b"<p>SECRET-OF-UPSTREAM", content_type="text/html"), "content type"),
    "answers in another charset": (
        _sends(completion(_GOOD), content_type="application/json; charset=latin-1"),
        "content type",
    ),
    "compresses": (_sends(completion(_GOOD), content_encoding="gzip"), "compressed"),
    "sends no JSON": (_sends(b"SECRET-OF-UPSTREAM"), "not JSON"),
    "names a member twice": (_sends(b'{"choices": [], "choices": []}'), "not JSON"),
    "sends an array": (_sends(b"[1]"), "not a chat completion"),
    "sends no choice": (_sends(b'{"choices": []}'), "not a chat completion"),
    "sends null": (_sends(completion(None)), "not a chat completion"),
    "refuses": (_sends(completion(_GOOD, message={"refusal": "no"})), "gave no answer: it refused."),
    "refuses without a content": (
        _sends(completion(None, message={"refusal": "SECRET-OF-UPSTREAM"})),
        "gave no answer: it refused.",
    ),
    "calls a tool": (_sends(completion(_GOOD, message={"tool_calls": [{"id": 1}]})), "it calls a tool."),
    "calls a tool without a content": (
        _sends(completion(None, message={"tool_calls": [{"id": 1}]}, choice={"finish_reason": "tool_calls"})),
        "it calls a tool.",
    ),
    "calls a function": (_sends(completion(_GOOD, message={"function_call": {"name": "f"}})), "it calls a tool."),
    "speaks as a user": (_sends(completion(_GOOD, message={"role": "user"})), "not have the role assistant"),
    "is cut off": (_sends(completion(_GOOD, choice={"finish_reason": "length"})), "not finished"),
    "fences its answer": (_sends(completion(f"```json\n{_GOOD}\n```")), "not a JSON text"),
    "adds prose": (_sends(completion(f"Sure! {_GOOD}")), "not a JSON text"),
    "answers twice": (_sends(completion(f"{_GOOD}{_GOOD}")), "not a JSON text"),
    "nests deeply": (_sends(completion("[" * 5000)), "not a JSON text"),
    "sends half a character": (_sends(completion('{"answer": "yes", "reason": "\\ud800"}')), "not a JSON text"),
    "sends NaN": (_sends(completion('{"answer": "yes", "reason": NaN}')), "not a JSON text"),
}
"""How an upstream can misbehave, each with what the refusal says of it."""


@contextmanager
def serving(host: str = "127.0.0.1", tls: ssl.SSLContext | None = None) -> Iterator[Server]:
    """An upstream, until the block ends: at an address of this machine, with TLS where it has a context."""
    server = Server(host, tls)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.ended.set()
        server.shutdown()
        server.server_close()
        thread.join()
