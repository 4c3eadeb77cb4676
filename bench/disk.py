"""The disk that durable parts are measured on: a place on it, and what one sync of it takes."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from bench.measure import Spread, spread
from bench.samples import ROOT

_SYNCS: Final = 200
_SYNC_BYTES: Final = 4096


def build_directory() -> Path:
    """The project's directory for files that can be rebuilt; `make clean` deletes it."""
    build = ROOT / "build"
    build.mkdir(exist_ok=True)
    return build


@contextmanager
def scratch() -> Iterator[Path]:
    """A temporary directory on the project's disk, because `/tmp` may be memory, which syncs nothing."""
    with TemporaryDirectory(prefix="bench-", dir=build_directory()) as directory:
        yield Path(directory)


def sync_ms(directory: Path) -> Spread:
    """What it takes to append 4 KB to a file in a directory and to sync it, in milliseconds."""
    descriptor = os.open(directory / "sync", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with closing(os.fdopen(descriptor, "wb", buffering=0)) as file:
        return spread([_timed_sync_ms(file.fileno()) for _ in range(_SYNCS)])


def write_out(file: Path, *, forget: bool = False) -> None:
    """Waits until a file is on the disk, so that writing it out disturbs nothing that is measured later.

    Args:
        file: The file.
        forget: Whether the system may use the memory that caches it for something else.
    """
    descriptor = os.open(file, os.O_RDONLY)
    try:
        os.fsync(descriptor)
        if forget:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)


def _timed_sync_ms(descriptor: int) -> float:
    started = time.perf_counter()
    os.write(descriptor, bytes(_SYNC_BYTES))
    os.fdatasync(descriptor)
    return (time.perf_counter() - started) * 1000
