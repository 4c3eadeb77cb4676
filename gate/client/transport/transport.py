"""Sends requests over HTTP, in a thread or in an event loop. A response is complete by its deadline, or an error.

HTTP libraries limit the time of each step of a request, so they would wait forever for a server that sends a byte from
time to time. Here, all steps share one deadline. In threads, each read and write gets the remaining time. In an event
loop, the deadline cancels the whole exchange.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import httpcore
import httpx

from gate import __version__
from gate.client.errors import AnswerUnusable, ApiError, Unreachable
from gate.client.transport.calls import MAX_ANSWER, Call, RawAnswer

_CONNECTIONS: Final = 100
_KEPT_SECONDS: Final = 30.0
_FAILURES: Final = (
    httpx.HTTPError,
    httpx.InvalidURL,
    httpcore.TimeoutException,
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.ConnectionNotAvailable,
    OSError,
)
# Compressed answers could be small on the wire and endless in memory.
_ALWAYS: Final = {"accept-encoding": "identity", "user-agent": f"decision-gate/{__version__}"}
_TIMED_OUT: Final = (httpx.TimeoutException, httpcore.TimeoutException, TimeoutError)


class Transport:
    """Connections to one service, for threads."""

    def __init__(self, url: str, transport: httpx.BaseTransport | None = None) -> None:
        """Takes the service's address, and optionally the caller's own transport."""
        self._url = url
        # No httpx.Client: it would keep a server's cookies, and read where an answer redirects to.
        self._transport = transport or _DeadlineTransport(_trusted(url))

    def send(self, call: Call[object], headers: Mapping[str, str], deadline: float) -> RawAnswer:
        """Sends a call once and reads its complete response.

        Raises:
            ApiError: `Unreachable` or `AnswerUnusable`.
        """
        seconds = deadline - time.monotonic()
        try:
            request = _request(self._url, call, headers, seconds)
            with _until(deadline):
                response = self._transport.handle_request(request)
                try:
                    content = _joined(call, response, response.iter_bytes(), deadline)
                finally:
                    response.close()
        except _FAILURES as error:
            raise _unreachable(call, error, seconds) from _bare(error)
        return RawAnswer(response.status_code, _headers(response), content)

    def close(self) -> None:
        """Closes every connection."""
        self._transport.close()


class AsyncTransport:
    """Connections to one service, for one event loop."""

    def __init__(self, url: str, transport: httpx.AsyncBaseTransport | None = None) -> None:
        """Takes the service's address, and optionally the caller's own transport."""
        self._url = url
        limits = httpx.Limits(max_connections=_CONNECTIONS, keepalive_expiry=_KEPT_SECONDS)
        self._transport = transport or httpx.AsyncHTTPTransport(verify=_trusted(url), limits=limits, trust_env=False)

    async def send(self, call: Call[object], headers: Mapping[str, str], deadline: float) -> RawAnswer:
        """Sends a call once and reads its complete response.

        Raises:
            ApiError: `Unreachable` or `AnswerUnusable`.
        """
        seconds = deadline - time.monotonic()
        try:
            async with asyncio.timeout(max(0.0, seconds)):
                request = _request(self._url, call, headers, seconds)
                response = await self._transport.handle_async_request(request)
                try:
                    content = await _joined_async(call, response, response.aiter_bytes())
                finally:
                    await response.aclose()
        except _FAILURES as error:
            raise _unreachable(call, error, seconds) from _bare(error)
        return RawAnswer(response.status_code, _headers(response), content)

    async def close(self) -> None:
        """Closes every connection."""
        await self._transport.aclose()


def _trusted(url: str) -> ssl.SSLContext:
    """The trusted certificate authorities: those of SSL_CERT_FILE, or the public ones."""
    # Reading them takes a while, so plain HTTP skips it.
    return httpx.create_ssl_context() if url.startswith("https:") else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _request(url: str, call: Call[object], headers: Mapping[str, str], seconds: float) -> httpx.Request:
    sent = {"accept": "application/json", **_ALWAYS, **call.headers, **headers}
    if call.body is not None:
        sent["content-type"] = "application/json"
    if call.idempotency_key is not None:
        sent["x-idempotency-key"] = call.idempotency_key
    return httpx.Request(
        call.method,
        f"{url}{call.path}",
        params=dict(call.query) or None,
        content=call.body,
        headers=sent,
        extensions={"timeout": httpx.Timeout(max(0.001, seconds)).as_dict()},
    )


def _headers(response: httpx.Response) -> dict[str, str]:
    return {name.lower(): value for name, value in response.headers.items()}


def _joined(call: Call[object], response: httpx.Response, parts: Iterator[bytes], deadline: float) -> bytes:
    _check_encoding(call, response)
    content = bytearray()
    for part in parts:
        _add(call, response, content, part)
        # For a transport of the caller's own, whose steps have no common deadline.
        if time.monotonic() > deadline:
            raise httpx.ReadTimeout("the response was incomplete at the deadline")
    return bytes(content)


async def _joined_async(call: Call[object], response: httpx.Response, parts: AsyncIterator[bytes]) -> bytes:
    _check_encoding(call, response)
    content = bytearray()
    async for part in parts:
        _add(call, response, content, part)
    return bytes(content)


def _check_encoding(call: Call[object], response: httpx.Response) -> None:
    if response.headers.get("content-encoding", "identity") != "identity":
        raise _unusable(call, response, "It is compressed, although the client did not ask for that.")


def _add(call: Call[object], response: httpx.Response, content: bytearray, part: bytes) -> None:
    content += part
    if len(content) > MAX_ANSWER:
        raise _unusable(call, response, f"It is larger than {MAX_ANSWER} bytes.")


def _unusable(call: Call[object], response: httpx.Response, why: str) -> ApiError:
    message = f"The response to {call.method} {call.path} is not a valid response of the service. {why}"
    return AnswerUnusable("ANSWER_UNUSABLE", message, status=response.status_code)


def _unreachable(call: Call[object], error: Exception, seconds: float) -> Unreachable:
    where = f"{call.method} {call.path}"
    if isinstance(error, _TIMED_OUT):
        return Unreachable(
            "GATE_TIMED_OUT",
            f"{where} returned no complete response in {max(0.0, seconds):.3g} s; the service may or may not"
            " have processed the request.",
        )
    return Unreachable(
        "GATE_UNREACHABLE",
        f"{where} returned no response ({type(error).__name__}: {error}); check the address, the network"
        " and that the service is running.",
    )


def _bare(error: BaseException) -> BaseException:
    """An error and what caused it, without the frames of the libraries, whose variables hold the key."""
    chain, seen = [error], set()
    while chain:
        each = chain.pop()
        if id(each) not in seen:
            seen.add(id(each))
            each.__traceback__ = None
            chain += [other for other in (each.__cause__, each.__context__) if other is not None]
    return error


# The library hands its network backend a timeout for each step, and nothing of the request: all that a step and its
# request have in common is the thread.
class _Now(threading.local):
    deadline: float | None = None


_now: Final = _Now()


@contextmanager
def _until(deadline: float) -> Iterator[None]:
    """Lets every step of this thread on the network end at a moment."""
    _now.deadline = deadline
    try:
        yield
    finally:
        _now.deadline = None


def _left(timeout: float | None) -> float | None:
    if _now.deadline is None:
        return timeout
    # Zero would mean not to wait at all, and to fail in another way.
    left = max(0.001, _now.deadline - time.monotonic())
    return left if timeout is None else min(left, timeout)


class _DeadlineStream(httpcore.NetworkStream):
    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        _check_time(httpcore.ReadTimeout)
        return self._stream.read(max_bytes, _left(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        # In pieces, because the stream below waits for each send separately.
        for at in range(0, len(buffer), _PIECE):
            _check_time(httpcore.WriteTimeout)
            self._stream.write(buffer[at : at + _PIECE], _left(timeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        return _DeadlineStream(self._stream.start_tls(ssl_context, server_hostname, _left(timeout)))

    def get_extra_info(self, info: str) -> object:
        return self._stream.get_extra_info(info)


_PIECE: Final = 64 * 1024


def _check_time(error: type[httpcore.TimeoutException]) -> None:
    if _now.deadline is not None and time.monotonic() >= _now.deadline:
        raise error("the response was incomplete at the deadline")


class _DeadlineBackend(httpcore.SyncBackend):
    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise httpcore.ConnectError(str(error)) from error
        addresses = list(dict.fromkeys(str(address[0]) for *_, address in found))
        # The library would allow each address the whole time.
        for left, address in zip(range(len(addresses), 0, -1), addresses, strict=True):
            _check_time(httpcore.ConnectTimeout)
            seconds = _left(timeout)
            share = None if seconds is None else seconds / left
            try:
                return _DeadlineStream(super().connect_tcp(address, port, share, local_address, socket_options))
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                if left == 1:
                    raise
        raise httpcore.ConnectError("the host name has no address")


class _DeadlineTransport(httpx.BaseTransport):
    def __init__(self, trusted: ssl.SSLContext) -> None:
        self._pool = httpcore.ConnectionPool(
            ssl_context=trusted,
            max_connections=_CONNECTIONS,
            keepalive_expiry=_KEPT_SECONDS,
            network_backend=_DeadlineBackend(),
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        url = request.url
        answer = self._pool.handle_request(
            httpcore.Request(
                method=request.method,
                url=httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
                headers=request.headers.raw,
                content=request.stream,
                extensions=request.extensions,
            )
        )
        return httpx.Response(answer.status, headers=answer.headers, stream=_Body(answer), extensions=answer.extensions)

    def close(self) -> None:
        self._pool.close()


class _Body(httpx.SyncByteStream):
    def __init__(self, answer: httpcore.Response) -> None:
        self._answer = answer

    def __iter__(self) -> Iterator[bytes]:
        yield from self._answer.iter_stream()

    def close(self) -> None:
        self._answer.close()
