"""Processes next to the workers. They are kept running as long as their server, and end with it."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_FIRST_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 30.0
_WELL: Final = 60.0
_SERVER_SECONDS: Final = 1.0


@contextmanager
def kept_running(command: list[str], *, stale: Path | None = None) -> Iterator[None]:
    """Keeps a process running while the block runs.

    Args:
        command: The command that starts it.
        stale: The socket that it creates. A socket of an earlier process is removed, because it would look active.
    """
    keeper = _Keeper(command, stale)
    keeper.start()
    try:
        yield
    finally:
        keeper.stop()


def end_with(server: int) -> None:
    """Ends this process immediately when its server is gone.

    Args:
        server: The process id of the server, which started this process.
    """
    threading.Thread(target=_watch, args=(server,), daemon=True).start()


def _watch(server: int) -> None:
    while os.getppid() == server:
        time.sleep(_SERVER_SECONDS)
    os._exit(0)


class _Keeper:
    """Starts a process, and starts it again when it has ended; the more seldom, the sooner it ends each time."""

    def __init__(self, command: list[str], stale: Path | None) -> None:
        self._command = command
        self._stale = stale
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._keep, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        with self._lock:
            self._stopping.set()
            if self._process is not None:
                self._process.kill()
        self._thread.join()

    def _keep(self) -> None:
        # What this thread starts inherits it: a terminal's Ctrl-C would end it before it can say that it ignores that.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        pause = _FIRST_PAUSE
        while True:
            started = time.monotonic()
            with self._lock:
                if self._stopping.is_set():
                    return
                if self._stale is not None:
                    self._stale.unlink(missing_ok=True)
                try:
                    self._process = subprocess.Popen(self._command)  # noqa: S603 - of our own making
                except OSError:
                    # No memory, or no process, to be had now.
                    self._process = None
            if self._process is not None:
                self._process.wait()
            pause = _FIRST_PAUSE if time.monotonic() - started > _WELL else min(2 * pause, _LONGEST_PAUSE)
            if self._stopping.wait(pause):
                return
