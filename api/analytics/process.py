"""`python -m api.analytics.process HOME ADDRESS SERVER`: the process that `gate serve` starts for its reports.

Nothing else imports this: it loads what reports are computed with, and the workers do without.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Final

from structlog.typing import FilteringBoundLogger

from api.http.logs import open_log, places
from gate.errors import GateError
from gate.instance.instance import open_instance
from gate.instance.settings import load_settings
from workbench.analytics import Analytics, Follower, serve
from workbench.lake.entries import Personal
from workbench.shadows.watcher import Watcher

_SERVER_SECONDS: Final = 1.0
_NICENESS: Final = 10


class _Logged:
    """Writes what fails into the service's log; of what is unexpected the type and the places, and no message."""

    def __init__(self, log: FilteringBoundLogger) -> None:
        self._log = log

    def failed(self, what: str, error: BaseException) -> None:
        if isinstance(error, GateError):
            self._log.error(f"{what}_failed", error=error.code, reason=error.message)
        else:
            self._log.error(f"{what}_failed", error_type=type(error).__qualname__, places=places(error))


def main() -> None:
    """Runs the process until its server is gone."""
    home, address, server = sys.argv[1:]
    # A terminal's Ctrl-C reaches every process; this one ends with its server.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(int(server),), daemon=True).start()
    # Decisions come first.
    os.nice(_NICENESS)
    settings = load_settings(Path(home))
    log = _Logged(open_log(settings.log_level))
    try:
        instance = open_instance(settings)
        personal = Personal.of(settings.personal_fields)
        migrations = instance.migrations()
    except GateError as error:
        log.failed("start", error)
        sys.exit(2)
    serve(
        Analytics(instance.ledger, settings.lake_directory, personal, migrations),
        Follower(instance.ledger, settings.lake_directory, personal),
        Watcher(instance.ledger, settings.lake_directory, migrations),
        address,
        log,
    )


def _end_with(server: int) -> None:
    while os.getppid() == server:
        time.sleep(_SERVER_SECONDS)
    # What is half written is in no manifest.
    os._exit(0)


if __name__ == "__main__":
    main()
