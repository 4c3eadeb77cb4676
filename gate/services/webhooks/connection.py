"""A connection to an endpoint: HTTP/1.1 by `h11` over a socket to an address that was checked."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeAlias

import h11

from gate.errors import OperatorError
from gate.services.webhooks.addresses import Rules, Target, refused_address

MAX_ANSWER: Final = 4096
"""How many bytes of an answer's body are read."""

_MAX_HEAD: Final = 16 * 1024
_PIECE: Final = 4096

Headers: TypeAlias = Sequence[tuple[str, str]]

Resolve: TypeAlias = Callable[[str, int], Awaitable[list[str]]]
"""The addresses of a name, for a port."""


class Connection:
    """An open connection, for one request after the other.

    Attributes:
        answered: Whether anything of an answer to the present request has come.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Takes the two ends of a stream."""
        self.answered = False
        self._reader = reader
        self._writer = writer
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_MAX_HEAD)

    @property
    def is_open(self) -> bool:
        """Whether the other end has not closed it yet."""
        return not (self._reader.at_eof() or self._writer.is_closing())

    async def send(self, path: str, headers: Headers, body: bytes, status: list[int]) -> bool:
        """Sends a request, and reads the answer to its end or to `MAX_ANSWER`.

        Args:
            path: The path with the query.
            headers: The headers.
            body: The body.
            status: Gets the status as soon as it is there, whatever comes of the rest.

        Returns:
            Whether the connection can take another request.

        Raises:
            OSError, h11.RemoteProtocolError: It broke off, or the answer is no HTTP.
        """
        self.answered = False
        request = h11.Request(method="POST", target=path, headers=list(headers))
        parts = (request, h11.Data(data=body), h11.EndOfMessage())
        self._writer.write(b"".join(self._http.send(part) or b"" for part in parts))
        await self._writer.drain()
        size = 0
        while True:
            event = self._http.next_event()
            match event:
                case h11.NEED_DATA:
                    received = await self._reader.read(_PIECE)
                    self.answered = self.answered or bool(received)
                    self._http.receive_data(received)
                case h11.Response():
                    status.append(event.status_code)
                case h11.Data():
                    size += len(event.data)
                    if size > MAX_ANSWER:
                        return False
                case h11.EndOfMessage():
                    return self._is_next()
                case h11.InformationalResponse():
                    continue
                case _:
                    return False

    def close(self) -> None:
        """Closes it at once, whatever is on its way."""
        self._writer.transport.abort()

    def _is_next(self) -> bool:
        if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
            return False
        self._http.start_next_cycle()
        return True


async def connect(target: Target, rules: Rules, resolve: Resolve, context: ssl.SSLContext) -> Connection:
    """Opens a connection. The name is resolved once, and every address of it must be allowed. The connection goes to
    one of these addresses, with TLS for the name.

    Args:
        target: Where to.
        rules: What the settings allow.
        resolve: Asks the name service.
        context: Whose certificates are trusted.

    Raises:
        OperatorError: `WEBHOOK_ADDRESS_REFUSED`.
        OSError: The name cannot be resolved, or none of its addresses can be reached.
    """
    addresses = await resolve(target.host, target.port)
    for address in addresses:
        if (refused := refused_address(address, rules)) is not None:
            raise OperatorError("WEBHOOK_ADDRESS_REFUSED", f"The host name of the endpoint resolves to {refused}.")
    failed: OSError = socket.gaierror("no address")
    secured = target.scheme == "https"
    for address in addresses:
        try:
            # An address is never resolved again.
            ends = await asyncio.open_connection(
                address,
                target.port,
                ssl=context if secured else None,
                server_hostname=target.host if secured else None,
                limit=_MAX_HEAD,
            )
        except OSError as error:
            failed = error
        else:
            return Connection(*ends)
    raise failed


async def resolved(host: str, port: int) -> list[str]:
    """The addresses of a name, as the system's name service gives them.

    Raises:
        socket.gaierror: It has none.
    """
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError as error:
        raise socket.gaierror("no such name") from error
    return list(dict.fromkeys(str(address[0]) for *_, address in found))
