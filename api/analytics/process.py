"""`python -m api.analytics.process HOME ADDRESS SERVER`: the process that `gate serve` starts for its reports.

No other module imports this one, because it loads analytics libraries that the workers do not need.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Final

from structlog.typing import FilteringBoundLogger

from api.http.logs import open_log, places
from api.workers.companions import end_with
from gate.errors import GateError
from gate.instance.instance import open_instance
from gate.instance.processes import calm_garbage
from gate.instance.settings import load_settings
from workbench.alerting import Alerting
from workbench.analytics import Analytics, Follower, serve
from workbench.lake.entries import Personal
from workbench.shadows.watcher import Watcher

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


def _step_back() -> None:
    """Decisions come first: beside them this process has a small share, and does not interrupt them when it wakes."""
    # Not lower: at 19 the share that is left beside busy workers is less than the export needs, and the lake would fall
    # behind for as long as they are busy. What a process lowered it may not raise again.
    os.nice(_NICENESS)
    if sys.platform == "linux":
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def main() -> None:
    """Runs the process until its server is gone."""
    home, address, server = sys.argv[1:]
    # A terminal's Ctrl-C reaches every process; this one ends with its server.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # What is half written is in no manifest.
    end_with(int(server))
    _step_back()
    settings = load_settings(Path(home))
    log = _Logged(open_log(settings.log_level))
    try:
        instance = open_instance(settings)
        personal = Personal.of(settings.personal_fields)
        migrations = instance.migrations()
    except GateError as error:
        log.failed("start", error)
        sys.exit(2)
    calm_garbage()
    analytics = Analytics(instance.ledger, settings.lake_directory, personal, migrations)
    serve(
        analytics,
        Follower(instance.ledger, settings.lake_directory, personal),
        Watcher(instance.ledger, settings.lake_directory, migrations),
        Alerting(instance.ledger, analytics),
        address,
        log,
    )


if __name__ == "__main__":
    main()
