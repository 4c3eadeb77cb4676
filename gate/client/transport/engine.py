"""Runs flows in the caller's thread."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, TypeVar

from gate.client.connection import Secret
from gate.client.transport.calls import Call
from gate.client.transport.flow import Consult, Do, Effect, Flow, Pause, Send, run
from gate.client.transport.forks import begin_in_forks

# Loading an HTTP library takes longer than everything else here, so it waits until something is sent.
if TYPE_CHECKING:
    import httpx

    from gate.client.transport.transport import Transport

T = TypeVar("T")


class Credentials:
    """The keys of a client, and which one a call needs."""

    def __init__(self, key: Secret, metrics_token: Secret | None) -> None:
        """Takes the API key, and optionally the metrics token."""
        self._key = key
        self._metrics_token = metrics_token

    def headers(self, call: Call[object]) -> dict[str, str]:
        """The header with the key that a call needs, or no header if it needs none.

        Raises:
            OperatorError: The key is missing or unreadable.
        """
        if call.credential == "key":
            return {"x-api-key": self._key.reveal()}
        if call.credential == "metrics" and self._metrics_token is not None:
            return {"x-metrics-token": self._metrics_token.reveal()}
        return {}


class Engine:
    """Runs flows in the caller's thread. Threads may share an engine."""

    def __init__(self, url: str, credentials: Credentials, transport: httpx.BaseTransport | None) -> None:
        """Takes the service's address, the keys, and optionally the caller's own transport."""
        self._url = url
        self._credentials = credentials
        self._given = transport
        begin_in_forks(self)

    def begin(self) -> None:
        """Starts without connections, because processes that share one would read each other's responses."""
        self._lock = threading.Lock()
        self._opened: Transport | None = None

    def run(self, flow: Flow[T]) -> T:
        """Runs a flow and returns its result."""
        return run(flow, self._perform)

    def close(self) -> None:
        """Closes every connection. The next flow opens new ones."""
        with self._lock:
            opened, self._opened = self._opened, None
        if opened is not None:
            opened.close()

    def _perform(self, effect: Effect) -> object:
        match effect:
            case Send(call, deadline):
                return self._transport().send(call, self._credentials.headers(call), deadline)
            case Pause(seconds):
                time.sleep(seconds)
                return None
            case Do(work) | Consult(work):
                return work()

    def _transport(self) -> Transport:
        from gate.client.transport.transport import Transport

        with self._lock:
            if self._opened is None:
                self._opened = Transport(self._url, self._given)
            return self._opened
