"""Keeps the process that delivers webhooks running."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from pathlib import Path

from api.workers.companions import kept_running


def webhook_process(home: Path, server: int) -> AbstractContextManager[None]:
    """Keeps a process that delivers webhooks running while a block runs.

    Args:
        home: The instance's directory.
        server: The process whose end also ends this process.
    """
    return kept_running([sys.executable, "-m", "api.webhooks.process", str(home), str(server)])
