"""A file system in memory, for what tests write: there a file is on disk at once, for nothing outlives the machine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_PLACE: Final = Path("/dev/shm")  # noqa: S108 - each folder that is made in it is the user's alone
# A run of all tests writes half of one, and each of its processes has a PostgreSQL server.
_ROOM: Final = 4 * 2**30


def in_memory() -> Path | None:
    """Where there is one with room for a run, whose files may be executed, as some tests do; None elsewhere."""
    try:
        found = os.statvfs(_PLACE)
    except OSError:
        return None
    return _PLACE if found.f_bavail * found.f_frsize > _ROOM and not found.f_flag & os.ST_NOEXEC else None
