"""A file that somebody sends from a page, piece by piece, into a private folder of this process."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gate.errors import OperatorError

MAX_FILE: Final = 20 * 1024 * 1024
"""The greatest file that is taken, in bytes."""

_OTHER: Final = re.compile(r"[^A-Za-z0-9._-]+", re.ASCII)
_LONGEST: Final = 80


@dataclass(slots=True)
class Upload:
    """A file that is sent.

    Attributes:
        file: Where it lies.
        size: How many bytes are there.
    """

    file: Path
    size: int = 0

    @classmethod
    def begin(cls, name: str) -> Upload:
        """An empty file in a folder of its own, which its user alone may read.

        Args:
            name: What its sender calls it; no more than letters, digits and `._-` of it become the file's name.
        """
        upload = cls(Path(tempfile.mkdtemp(prefix="gate-upload-")).joinpath(_safe(name)))
        os.close(os.open(upload.file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        return upload

    def add(self, at: int, piece: bytes) -> None:
        """Adds a piece.

        Args:
            at: Where in the file it belongs: behind all that is there.
            piece: Its bytes.

        Raises:
            OperatorError: UPLOAD_BROKEN, or UPLOAD_TOO_LARGE.
        """
        if at != self.size:
            raise OperatorError("UPLOAD_BROKEN", "A part of the file was lost on the way; send it again.")
        if at + len(piece) > MAX_FILE:
            raise too_large()
        with self.file.open("ab") as file:
            file.write(piece)
        self.size += len(piece)

    def remove(self) -> None:
        """Removes the file; whether it is there or not."""
        shutil.rmtree(self.file.parent, ignore_errors=True)


def too_large() -> OperatorError:
    """UPLOAD_TOO_LARGE."""
    most = MAX_FILE // (1024 * 1024)
    return OperatorError(
        "UPLOAD_TOO_LARGE", f"The file is larger than {most} MiB; import it with `gate history import` instead."
    )


def _safe(name: str) -> str:
    return _OTHER.sub("_", name).lstrip(".")[-_LONGEST:].lstrip(".") or "file"
