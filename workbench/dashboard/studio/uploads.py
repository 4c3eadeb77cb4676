"""A file that somebody sends from a page, piece by piece, into a private folder of this process.

The process holds a lock on the file until it removes it. A lock ends with its process, even with one that is killed:
the next dashboard removes the files that nobody holds any more.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import stat
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from gate.errors import OperatorError

MAX_FILE: Final = 20 * 1024 * 1024
"""The greatest file that is taken, in bytes."""

_PREFIX: Final = "gate-upload-"
_OTHER: Final = re.compile(r"[^A-Za-z0-9._-]+", re.ASCII)
_LONGEST: Final = 80


@dataclass(slots=True)
class Upload:
    """A file that is sent.

    Attributes:
        file: Where it lies.
        data: The file, open and locked.
        size: How many bytes are there.
    """

    file: Path
    data: BinaryIO
    size: int = 0

    @classmethod
    def begin(cls, name: str) -> Upload:
        """An empty file in a folder of its own, which its user alone may read.

        Args:
            name: What its sender calls it; no more than letters, digits and `._-` of it become the file's name.
        """
        while True:
            file = Path(tempfile.mkdtemp(prefix=_PREFIX)).joinpath(_safe(name))
            # Another dashboard that begins may find the folder before the file is locked, and remove it.
            if (data := _locked_at(file)) is not None:
                return cls(file, data)

    def add(self, at: int, piece: bytes) -> None:
        """Adds a piece.

        Args:
            at: Where in the file it belongs: behind all that is there.
            piece: Its bytes.

        Raises:
            OperatorError: `UPLOAD_BROKEN`, or `UPLOAD_TOO_LARGE`.
        """
        if at != self.size:
            raise OperatorError("UPLOAD_BROKEN", "A part of the file was lost in transfer. Send the file again.")
        if at + len(piece) > MAX_FILE:
            raise too_large()
        try:
            self.data.write(piece)
            self.data.flush()
        except ValueError as error:
            # Its sender left the page while the piece was on its way.
            raise OperatorError("UPLOAD_BROKEN", "The file is no longer available. Choose it again.") from error
        self.size += len(piece)

    def remove(self) -> None:
        """Removes the file; whether it is there or not."""
        shutil.rmtree(self.file.parent, ignore_errors=True)
        self.data.close()


def remove_abandoned() -> None:
    """Removes the files of processes that were killed; those of processes that run are theirs."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        try:
            if _is_own(folder):
                _remove_unless_held(folder)
        except OSError:
            # It is held, or gone meanwhile.
            continue


def too_large() -> OperatorError:
    """`UPLOAD_TOO_LARGE`."""
    most = MAX_FILE // (1024 * 1024)
    return OperatorError(
        "UPLOAD_TOO_LARGE", f"The file is larger than {most} MiB; import it with `gate history import` instead."
    )


def _locked_at(file: Path) -> BinaryIO | None:
    """A new file, open and locked; None where its folder was removed meanwhile."""
    try:
        data = os.fdopen(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb")
    except FileNotFoundError:
        return None
    fcntl.flock(data, fcntl.LOCK_EX)
    if os.fstat(data.fileno()).st_nlink:
        return data
    data.close()
    return None


def _is_own(folder: Path) -> bool:
    found = folder.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()


def _remove_unless_held(folder: Path) -> None:
    with ExitStack() as held:
        for file in folder.iterdir():
            data = held.enter_context(file.open("rb"))
            fcntl.flock(data, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder)


def _safe(name: str) -> str:
    return _OTHER.sub("_", name).lstrip(".")[-_LONGEST:].lstrip(".") or "file"
