"""A PostgreSQL server's socket with someone in the line, who loses what a failing network would lose.

It reads the frontend/backend protocol, version 3, as far as it has to: to know a commit that ends an append from every
other message, and the server's answer to it.
"""

from __future__ import annotations

import shutil
import socket
import struct
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from psycopg.conninfo import conninfo_to_dict

_SOCKET: Final = ".s.PGSQL.5432"
_APPEND: Final = b"INSERT INTO entries"


class Proxy:
    """Forwards every connection to a server, and cuts some where it is told to.

    Attributes:
        lost: How many commits of appends have lost their way, or the answers to them theirs.
    """

    def __init__(self, server: Path, directory: Path) -> None:
        """Listens in a directory for a server whose socket is in another."""
        self.lost = 0
        self._server = str(server / _SOCKET)
        self._directory = directory
        self._to_lose = 0
        self._arrives = True
        self._stays_down = False
        self._down = False
        self._lock = threading.Lock()
        self._lines: list[_Line] = []
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(directory / _SOCKET))
        self._listening.listen(128)
        threading.Thread(target=self._accept, daemon=True).start()

    def url(self, database_url: str) -> str:
        """The URL of a database of the server, by way of here."""
        return database_url.replace(str(conninfo_to_dict(database_url)["host"]), str(self._directory))

    def lose(self, commits: int, *, arrives: bool, stays_down: bool = False) -> None:
        """Cuts the connections of the next commits that end an append.

        Args:
            commits: How many.
            arrives: Whether the commit reaches the server, so that only the answer is lost.
            stays_down: Whether there is no connection at all afterwards, until `up`.
        """
        with self._lock:
            self._to_lose, self._arrives, self._stays_down = commits, arrives, stays_down

    def up(self) -> None:
        """Lets connections through again."""
        self._down = False

    def close(self) -> None:
        """Cuts every connection and listens no longer."""
        self._down = True
        # Closing alone does not wake who waits in accept.
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._cut_all()

    def fate(self) -> bool | None:
        """Whether a commit that is to be lost arrives; None where it is not to be lost."""
        with self._lock:
            if not self._to_lose:
                return None
            self._to_lose -= 1
            return self._arrives

    def note_loss(self) -> None:
        """Counts what was lost, and cuts all else where there is to be no connection."""
        with self._lock:
            self.lost += 1
            self._down = self._stays_down
        if self._down:
            self._cut_all()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.socket(socket.AF_UNIX)
                try:
                    if self._down:
                        raise ConnectionError
                    server.connect(self._server)
                except OSError:
                    client.close()
                    server.close()
                else:
                    self._lines.append(_Line(self, client, server))

    def _cut_all(self) -> None:
        for line in list(self._lines):
            line.cut()


class _Line:
    """A connection."""

    def __init__(self, proxy: Proxy, client: socket.socket, server: socket.socket) -> None:
        self._proxy = proxy
        self._client = client
        self._server = server
        self._statements: dict[bytes, bytes] = {}
        self._appends = False
        self._silent = False
        for forward in (self._to_server, self._to_client):
            threading.Thread(target=forward, daemon=True).start()

    def cut(self) -> None:
        """Ends the connection on both sides."""
        for end in (self._client, self._server):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _to_server(self) -> None:
        with self._client, suppress(OSError):
            for kind, message in _messages(self._client, greets=True):
                arrives = self._proxy.fate() if self._commits_an_append(kind, message[5:]) else None
                self._silent = self._silent or arrives is not None
                if arrives is False:
                    self._proxy.note_loss()
                    break
                self._server.sendall(message)
        self.cut()

    def _to_client(self) -> None:
        with self._server, suppress(OSError):
            for kind, message in _messages(self._server, greets=False):
                if not self._silent:
                    self._client.sendall(message)
                elif kind == b"C" and message[5:] == b"COMMIT\0":
                    self._proxy.note_loss()
                    break
        self.cut()

    def _commits_an_append(self, kind: bytes, body: bytes) -> bool:
        if kind == b"P":
            name, query, _ = body.split(b"\0", 2)
            self._statements[name] = query
            return False
        if kind not in (b"B", b"Q"):
            return False
        # A Bind names its portal and then the statement that an earlier Parse has named.
        query = self._statements[body.split(b"\0", 2)[1]] if kind == b"B" else body.rstrip(b"\0")
        appends = self._appends or _APPEND in query
        self._appends = appends and query not in (b"COMMIT", b"ROLLBACK")
        return appends and query == b"COMMIT"


def _messages(connection: socket.socket, *, greets: bool) -> Iterator[tuple[bytes, bytes]]:
    """Each message's kind, and the message as a whole. A client's first has no kind."""
    with connection.makefile("rb") as stream:
        kind = b"" if greets else stream.read(1)
        while len(length := stream.read(4)) == 4:
            yield kind, kind + length + stream.read(struct.unpack("!I", length)[0] - 4)
            kind = stream.read(1)


@contextmanager
def proxy_of(database_url: str) -> Iterator[Proxy]:
    """A proxy of a database's server while the block runs."""
    server = Path(str(conninfo_to_dict(database_url)["host"]))
    # A socket's path has to be short.
    directory = Path(tempfile.mkdtemp(prefix="gate-px-"))
    proxy = Proxy(server, directory)
    try:
        yield proxy
    finally:
        proxy.close()
        shutil.rmtree(directory, ignore_errors=True)
