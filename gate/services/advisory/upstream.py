"""The call to the upstream: one request within one deadline, one answer within one size.

The call runs in its own thread, so its caller never waits longer than the deadline: for the name service, the
handshake, or a header that never ends. The thread ends when its connection does.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

from gate.encoding.canonical import canonical
from gate.errors import AdvisoryFailed
from gate.services.advisory.failures import failed, misconfigured

MAX_ANSWER: Final = 256 * 1024
"""The largest body of an answer, in bytes."""


@dataclass(frozen=True, slots=True)
class Upstream:
    """A server that speaks OpenAI's chat completions.

    Attributes:
        url: Its base URL; requests go to `{url}/chat/completions`.
        model: The model to ask.
        seconds: How long a whole call may take.
        key: The secret of the header Authorization; None where the server needs none.
    """

    url: str
    model: str
    seconds: float
    key: str | None = field(default=None, repr=False)

    def call(self, system: str, user: str) -> Call:
        """A call that sends two messages, not begun yet.

        Redirects are not followed, and proxies of the environment are not used.

        Args:
            system: The system message.
            user: The user's message.
        """
        return Call(
            self,
            canonical(
                {
                    "model": self.model,
                    "messages": [{"role": "system", "content": system}, {"role": "user", "content": user}],
                    "temperature": 0,
                    "stream": False,
                    "response_format": {"type": "json_object"},
                }
            ),
        )


class Call:
    """One request, in the thread that makes it and in the one that waits for it."""

    def __init__(self, upstream: Upstream, body: bytes) -> None:
        """Takes the upstream, and the body that it gets."""
        self._upstream = upstream
        self._body = body
        self._deadline = 0.0
        self._done = threading.Event()
        self._lock = threading.Lock()
        self._over = False
        self._connection: socket.socket | None = None
        self._answer: tuple[str, bytes] | None = None
        self._why: Exception | None = None

    def answer(self, ended: Callable[[], None]) -> tuple[str, bytes]:
        """The content type and the body of the answer.

        Args:
            ended: Called when nothing of the call is left: before this returns its answer, but after it has given up on
                one that is late.

        Raises:
            AdvisoryFailed: `SVC_ADVISORY_UPSTREAM_FAILED`.
        """
        self._deadline = time.monotonic() + self._upstream.seconds
        try:
            threading.Thread(target=self._run, args=(ended,), name="advisory", daemon=True).start()
        except RuntimeError as error:
            ended()
            raise failed("could not be called: this process cannot start a thread") from error
        in_time = self._done.wait(self._upstream.seconds)
        self._hang_up()
        if not in_time or isinstance(self._why, TimeoutError):
            raise failed(f"gave no answer within {self._upstream.seconds:g} seconds") from self._why
        if isinstance(self._why, AdvisoryFailed):
            raise self._why
        if isinstance(self._why, ssl.SSLCertVerificationError):
            raise misconfigured(
                "has a certificate that this machine does not trust",
                "advisory_url, the certificate of the upstream, or the file in SSL_CERT_FILE",
            ) from self._why
        if self._answer is None:
            raise failed("could not be reached, or closed the connection before its answer was complete") from self._why
        return self._answer

    def give_up(self) -> None:
        """Lets `answer` wait no longer, whatever the call waits for."""
        self._hang_up()
        self._done.set()

    def _run(self, ended: Callable[[], None]) -> None:
        try:
            self._answer = self._asked()
        except (OSError, http.client.HTTPException, AdvisoryFailed, ValueError) as error:
            self._why = error
        finally:
            self._hang_up()
            ended()
            self._done.set()

    def _asked(self) -> tuple[str, bytes]:
        address = urlsplit(self._upstream.url)
        headers = {"content-type": "application/json", "accept": "application/json", "connection": "close"}
        if self._upstream.key is not None:
            headers["authorization"] = f"Bearer {self._upstream.key}"
        connection = http.client.HTTPConnection(str(address.hostname), address.port or _PORTS[address.scheme])
        connection.sock = self._connected(connection.host, connection.port, address.scheme)
        try:
            headers["host"] = address.netloc
            connection.request("POST", f"{address.path}/chat/completions", self._body, headers)
            # The connection forgets a response that is its last, so that closing it alone would leave the socket open.
            with connection.getresponse() as response:
                return self._read(response)
        finally:
            connection.close()

    def _connected(self, host: str, port: int, scheme: str) -> socket.socket:
        plain = socket.create_connection((host, port), timeout=max(0.001, self._deadline - time.monotonic()))
        with self._lock:
            if self._over:
                plain.close()
                raise TimeoutError
            # TLS takes the socket over; its duplicate still reaches the connection.
            self._connection = plain.dup()
        return ssl.create_default_context().wrap_socket(plain, server_hostname=host) if scheme == "https" else plain

    def _read(self, response: http.client.HTTPResponse) -> tuple[str, bytes]:
        if response.status != HTTPStatus.OK:
            made = misconfigured if response.status in _REJECTED else failed
            raise made(f"failed: it answered with the status {response.status}")
        if response.getheader("content-encoding", "identity").strip().lower() != "identity":
            raise failed("returned an unusable answer: its body is compressed, though the request did not allow that")
        body = b"" if (response.length or 0) > MAX_ANSWER else response.read(MAX_ANSWER + 1)
        if (response.length or 0) + len(body) > MAX_ANSWER:
            raise failed(f"returned more than {MAX_ANSWER} bytes")
        if response.length:
            raise http.client.IncompleteRead(body)
        return response.getheader("content-type", ""), body

    def _hang_up(self) -> None:
        """Ends the connection, and every wait for it in the other thread."""
        with self._lock:
            self._over = True
            connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()


_REJECTED: Final = frozenset({*range(300, 400), HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND})
"""The statuses with which an upstream answers the same request every time: another address, key or model is needed."""

_PORTS: Final = {"http": http.client.HTTP_PORT, "https": http.client.HTTPS_PORT}
