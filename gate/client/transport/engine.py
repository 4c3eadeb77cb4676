"""Doing what flows ask for, in the caller's thread."""

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
    """Which key a call is sent with."""

    def __init__(self, key: Secret, metrics_token: Secret | None) -> None:
        """Takes the API key, and the metrics token where there is one."""
        self._key = key
        self._metrics_token = metrics_token

    def headers(self, call: Call[object]) -> dict[str, str]:
        """The header with the key that a call needs; none where it needs none.

        Raises:
            OperatorError: There is no such key, or it cannot be read.
        """
        if call.credential == "key":
            return {"x-api-key": self._key.reveal()}
        if call.credential == "metrics" and self._metrics_token is not None:
            return {"x-metrics-token": self._metrics_token.reveal()}
        return {}


class Engine:
    """Performs flows in the caller's thread; threads may share one."""

    def __init__(self, url: str, credentials: Credentials, transport: httpx.BaseTransport | None) -> None:
        """Takes the service's address, its keys, and a transport of the caller's own where there is one."""
        self._url = url
        self._credentials = credentials
        self._given = transport
        begin_in_forks(self)

    def begin(self) -> None:
        """Without connections: two processes that read from one get each other's answers."""
        self._lock = threading.Lock()
        self._opened: Transport | None = None

    def run(self, flow: Flow[T]) -> T:
        """What a flow returns."""
        return run(flow, self._perform)

    def close(self) -> None:
        """Closes every connection; the next flow opens new ones."""
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
