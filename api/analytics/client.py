"""The client of the analytics process, which computes reports, and the code that keeps this process running.

The process has libraries that the workers never load. If it does not answer, only reports are unavailable.
"""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

import orjson

from api.http.requests import others_working
from api.workers.companions import kept_running
from gate.errors import GateError, ServiceUnavailable
from gate.policy.questions import LakeQuestion, ReportDocument, dump_question

ADDRESS_VARIABLE: Final = "GATE_ANALYTICS"
"""Where the analytics process listens; empty where there is none."""

SOCKET: Final = "analytics"
"""The name of its socket."""

_SECONDS: Final = 30.0
_CONNECT_SECONDS: Final = 2.0
_PROBE_SECONDS: Final = 0.2
# How many of a worker's threads, which decisions need as well.
_AT_ONCE: Final = 32
_MAX_ANSWER: Final = 64 * 1024 * 1024
_LIBRARY: Final = "polars"


class AnalyticsClient:
    """Asks the analytics process for reports."""

    def __init__(self, address: str, *, seconds: float = _SECONDS) -> None:
        """Takes the path of its socket, and how long to wait for an answer."""
        self._address = address
        self._seconds = seconds
        self._waiting = threading.BoundedSemaphore(_AT_ONCE)

    def answer(self, scope_id: str, question: LakeQuestion) -> ReportDocument:
        """See `gate.policy.questions.Reports`."""
        sent = orjson.dumps({"scope_id": scope_id, **dump_question(question)})
        # A request that waits here holds a thread that a decision might need.
        if not self._waiting.acquire(blocking=False):
            raise _unavailable("Too many reports are already in progress.")
        try:
            with others_working(), self._connected() as connection:
                connection.send_bytes(sent)
                if not connection.poll(self._seconds):
                    raise _unavailable(f"The report took longer than {self._seconds:g} seconds.")
                reply = orjson.loads(connection.recv_bytes(_MAX_ANSWER))
        except (OSError, EOFError, orjson.JSONDecodeError) as error:
            raise _unavailable("The reporting service is not responding.") from error
        finally:
            self._waiting.release()
        match reply:
            case {"answer": dict() as answer}:
                return answer
            case {"error": {"code": str(), "message": str()} as told}:
                raise ServiceUnavailable(told["code"], told["message"], details=told.get("details") or {})
        raise _unavailable("The reporting service gave an unusable answer.")

    def listens(self) -> bool:
        """Whether the process takes connections now."""
        try:
            self._connected(_PROBE_SECONDS).close()
        except OSError:
            return False
        return True

    def _connected(self, seconds: float = _CONNECT_SECONDS) -> Connection:
        """A connection, or an OSError where nobody takes it in time: a full queue would be waited for without end."""
        link = socket.socket(socket.AF_UNIX)
        try:
            link.settimeout(min(self._seconds, seconds))
            link.connect(self._address)
            link.settimeout(None)
            return Connection(link.detach())
        finally:
            link.close()


def _unavailable(why: str) -> GateError:
    return ServiceUnavailable(
        "SVC_REPORT_UNAVAILABLE",
        f"{why} Decisions are not affected; retry in a few seconds.",
        details={"retry_after": 5},
    )


def is_installed() -> bool:
    """Whether the libraries are there that reports are computed with."""
    return find_spec(_LIBRARY) is not None


@contextmanager
def analytics_process(home: Path, directory: Path, server: int) -> Iterator[str]:
    """Keeps an analytics process running while the block runs.

    Args:
        home: The instance's directory.
        directory: A private folder for its socket: the path of one has at most 107 bytes, and a home's may be longer.
        server: The process that it belongs to, and ends with.

    Returns:
        Where it listens.
    """
    address = str(directory / SOCKET)
    command = [sys.executable, "-m", "api.analytics.process", str(home), address, str(server)]
    with kept_running(command, stale=Path(address)):
        yield address
