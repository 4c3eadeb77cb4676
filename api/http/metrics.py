"""Counts and times events of the service, for Prometheus.

A process counts in memory. The processes of a server share their counts through files in the folder in
`DIRECTORY_VARIABLE`. Each process has its own file. It writes the file once a second after changes, on each read of the
metrics, and when it ends. A file outlives its process, so counts survive the replacement of a worker. A killed process
loses at most its last second. Without the folder, each process counts only for itself.
"""

from __future__ import annotations

import atexit
import os
import secrets
import shutil
import tempfile
import threading
import time
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import orjson

from api.http import figures
from api.http.figures import (
    APPENDS,
    BATCHES,
    DECISIONS,
    ERRORS,
    FAMILIES,
    QUEUES,
    REPORTS,
    REQUESTS,
    SYNCS,
    WEBHOOKS,
    Family,
    Figures,
    Labels,
)

DIRECTORY_VARIABLE: Final = "GATE_METRICS_DIRECTORY"
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

UNMATCHED: Final = "unmatched"
"""The route label for paths outside the service. The paths themselves are not counted, because there is no limit to
their number.
"""

METHODS: Final = frozenset({"GET", "HEAD", "POST", "OPTIONS", "PUT", "PATCH", "DELETE"})
"""The methods that are counted by name. All others are counted and logged as `other`."""

_WRITE_SECONDS: Final = 1.0
_FILES: Final = "counted-*.json"
_MANY: Final = 1000
_PREFIX: Final = "decision-gate-"
_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - each server makes a private folder of its own in it


def make_directory() -> Path:
    """A new private folder for the files that a server's processes share.

    It is in memory if there is such a file system, because the files are written every second, and a full disk would
    stop the exchange of counts.
    """
    usable = _MEMORY.is_dir() and os.access(_MEMORY, os.W_OK)
    parent = _MEMORY if usable else Path(tempfile.gettempdir())
    # A killed server could not remove its own. Another one that stops or starts now may be quicker.
    for left in parent.glob(f"{_PREFIX}*"):
        with suppress(FileNotFoundError):
            if left.stat().st_uid == os.getuid() and not _lives(int(left.name.split("-")[2])):
                shutil.rmtree(left, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=parent))


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


class Metrics:
    """The counters of one process. Times are in seconds.

    Any thread may count. Counting appends to a queue, which is cheap. The queue is added up every thousand entries, so
    its memory is bounded.
    """

    def __init__(self) -> None:
        """Starts at zero. Writes to the folder in the environment, if there is one."""
        self._waiting: deque[tuple[Family, Labels, float]] = deque()
        # Two threads that add to one figure at once would lose what one of them adds.
        self._adding = threading.Lock()
        self._series = {family.name: _series_of(family) for family in FAMILIES}
        directory = os.environ.get(DIRECTORY_VARIABLE)
        self._share = _Share(Path(directory)) if directory else None
        if self._share is not None:
            atexit.register(self._write)
            threading.Thread(target=self._keep_writing, daemon=True).start()

    def request(self, route: str, method: str, status: int, seconds: float) -> None:
        """Counts an answered request.

        Args:
            route: The template of its path, or `UNMATCHED`.
            method: One of `METHODS`, or `other`.
            status: The answer's status.
            seconds: Its duration.
        """
        self._waiting.append((REQUESTS, (route, method, status), seconds))
        self._bound()

    def error(self, code: str) -> None:
        """Counts an error that was answered."""
        self._waiting.append((ERRORS, (code,), 1))
        self._bound()

    def decision(self, verdict: str, status: str) -> None:
        """Counts an answered decision; status is created or replayed."""
        self._waiting.append((DECISIONS, (verdict, status), 1))
        self._bound()

    def report(self, kind: str, reported: str, status: str) -> None:
        """Counts a report about a decision.

        Args:
            kind: `execution`, `outcome`, or `crm-sync`.
            reported: Its `execution_status`, `outcome_status`, or `sync_status`.
            status: `created` or `replayed`.
        """
        self._waiting.append((REPORTS, (kind, reported, status), 1))
        self._bound()

    def webhook(self, result: str) -> None:
        """Counts an event that was sent to a webhook endpoint; result is delivered or failed."""
        self._waiting.append((WEBHOOKS, (result,), 1))
        self._bound()

    def appended(self, seconds: float) -> None:
        """Counts a finished append, successful or not. See `AppendObserver`."""
        self._waiting.append((APPENDS, (), seconds))
        self._bound()

    def committed(self, entries: int, seconds: float, queued: int) -> None:
        """Counts a batch that is durable. See `AppendObserver`."""
        self._waiting.extend(((BATCHES, (), entries), (SYNCS, (), seconds), (QUEUES, (), queued)))
        self._bound()

    def text(self, gauges: Mapping[str, float]) -> bytes:
        """The counts of all processes of the server, in Prometheus's text format.

        Args:
            gauges: The current measurements, by a name in `figures.GAUGES`.
        """
        # This process's own are written first: the process that is asked next must not know less than is told here, for
        # Prometheus takes a counter that falls for one that began anew.
        told = [self._write(), *(self._share.of_others() if self._share else ())]
        return figures.exposition([orjson.loads(each) for each in told], gauges)

    def _write(self) -> bytes:
        """Returns the counts of this process, and writes them for the other processes if there is a folder."""
        if self._share is None:
            return self._counted()
        with self._share.writing:
            counted = self._counted()
            self._share.write(counted)
        return counted

    def _bound(self) -> None:
        if len(self._waiting) >= _MANY:
            with self._adding:
                self._add_up()

    def _add_up(self) -> None:
        # Only as many as there are now, for others go on to append.
        for _ in range(len(self._waiting)):
            family, labels, value = self._waiting.popleft()
            family.add(self._series[family.name][labels], value)

    def _counted(self) -> bytes:
        with self._adding:
            self._add_up()
            return orjson.dumps({name: list(series.items()) for name, series in self._series.items()})

    def _keep_writing(self) -> None:
        while True:
            time.sleep(_WRITE_SECONDS)
            self._write()


def _series_of(family: Family) -> defaultdict[Labels, Figures]:
    series = defaultdict[Labels, Figures](family.nothing)
    if not family.labels:
        # Told from the first moment on.
        series[()] = family.nothing()
    return series


class _Share:
    """The folder in which the processes of a server tell each other what they counted, each in one file."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._pid = os.getpid()
        # A later process may get the same id.
        self._file = directory / _FILES.replace("*", f"{self._pid}-{secrets.token_hex(4)}")
        self._written = b""
        self.writing = threading.Lock()
        """Held from the moment that figures are taken until they are written, so that older ones replace none."""

    def write(self, counted: bytes) -> None:
        """Replaces this process's file in one step. Where that fails, the other processes know less until it works."""
        # A process that was forked off this one must not write what this one counted.
        if counted == self._written or os.getpid() != self._pid:
            return
        with suppress(OSError):
            whole = self._file.with_suffix(".new")
            whole.write_bytes(counted)
            whole.replace(self._file)
            self._written = counted

    def of_others(self) -> Iterator[bytes]:
        """What the other processes counted, those that have ended included."""
        for file in sorted(self._directory.glob(_FILES)):
            # The server that ends removes the folder.
            with suppress(FileNotFoundError):
                if file != self._file:
                    yield file.read_bytes()
