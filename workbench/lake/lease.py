"""The lease on a lake: one process at a time writes into it, however many read."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from gate.errors import OperatorError

BUSY: Final = "LAKE_BUSY"
"""The code of the error where another process has the lease."""

_FILE: Final = ".lease"
_POLL: Final = 0.05


@contextmanager
def lease(lake: Path, *, patience: float) -> Iterator[None]:
    """The right to write into a lake while the block runs; it ends with the process.

    Args:
        lake: The lake's directory, which is made where there is none.
        patience: How long to wait for it, in seconds.

    Raises:
        OperatorError: `LAKE_BUSY`, or `LAKE_UNWRITABLE`.
    """
    try:
        lake.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(lake / _FILE, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise unwritable(lake, error) from error
    try:
        deadline = time.monotonic() + patience
        while not _taken(descriptor):
            if time.monotonic() >= deadline:
                raise OperatorError(
                    BUSY,
                    f"Another process is writing to the lake {lake}; wait until it is done, or try again.",
                )
            time.sleep(_POLL)
        yield
    finally:
        os.close(descriptor)


def unwritable(lake: Path, error: OSError) -> OperatorError:
    """`LAKE_UNWRITABLE`, with the reason."""
    return OperatorError(
        "LAKE_UNWRITABLE",
        f"The lake {lake} cannot be read or written ({error.strerror or error}). The ledger still has all of its data.",
    )


def _taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
