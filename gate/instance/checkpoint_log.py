"""The checkpoint log: the signed checkpoints that a host has kept, one JSON object a line.

    {"chain_id":"chain_01k...","chain_size":412,"checkpoint_version":"decision_checkpoint_v1", ...}
    {"begun_at":"2026-06-11T12:00:00.000Z","checkpoint_epoch_version":"decision_checkpoint_epoch_v1", ...}

The log lies outside the database, so that an attacker who can write one cannot quietly fit the other to it. Lines are
only added. A file that has grown large is set aside as `<name>.<date>`, and the new one begins with the last epoch and
the last checkpoint of each chain: the current file alone says what the next checkpoint has to agree with.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from threading import Lock
from typing import BinaryIO, Final

from gate.encoding.canonical import canonical
from gate.encoding.strict_json import parse
from gate.errors import MaterialRefused, ServiceUnavailable
from gate.proof.checkpoint import Checkpoint, Epoch
from gate.verify.checkpoint import is_checkpoint, is_epoch

LARGE: Final = 16 * 1024 * 1024
"""The size in bytes at which a file is set aside, after some 40,000 checkpoints."""

MAX_REASON: Final = 500
"""How many characters the reason of an epoch has at most."""

# A checkpoint takes about 430 bytes, and an epoch's reason is bounded.
_MAX_LINE: Final = 8 * 1024
_SET_ASIDE: Final = re.compile(r"\.\d{8}T\d{9}Z")


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a log.

    Attributes:
        place: The file and the number of the line, for people: `checkpoints.jsonl:12`.
        document: The checkpoint or the epoch; None where the line is neither.
        text: The line's bytes, without the line break.
    """

    place: str
    document: Checkpoint | Epoch | None
    text: bytes


@dataclass(slots=True)
class _Current:
    """What was read of the current file: how far, the epoch's line, and the last line of each chain since."""

    inode: int = 0
    offset: int = 0
    number: int = 0
    epoch: bytes | None = None
    kept: dict[str, bytes] = field(default_factory=dict)

    def take(self, line: Line) -> None:
        if line.document is None:
            raise _unusable(f"The line at {line.place} is neither a checkpoint nor an epoch")
        self.offset, self.number = self.offset + len(line.text) + 1, self.number + 1
        if is_checkpoint(line.document):
            self.kept[line.document["chain_id"]] = line.text
        elif line.text != self.epoch:
            self.kept, self.epoch = {}, line.text


class CheckpointLog:
    """The checkpoint log of a host. Several processes may read it; one at a time appends, inside `locked`."""

    def __init__(self, file: Path) -> None:
        """Works on a file, which need not be there yet."""
        self.file: Final = file
        self._current = _Current()
        self._lock = Lock()

    def kept(self, chain_id: str) -> Checkpoint | None:
        """The last checkpoint of a chain in the current epoch, as `refresh` last found it."""
        return _checkpoint(self._current.kept.get(chain_id))

    def chain_ids(self) -> Collection[str]:
        """The chains with a checkpoint in the current epoch, as `refresh` last found them."""
        return self._current.kept.keys()

    def refresh(self) -> None:
        """Reads the lines that were added since the last time.

        Raises:
            ServiceUnavailable: SVC_CHECKPOINT_UNAVAILABLE: the file cannot be read, a line is neither a checkpoint nor
                an epoch, or checkpoints that were read before are gone.
        """
        with self._lock:
            try:
                with self.file.open("rb") as opened:
                    status, current = os.fstat(opened.fileno()), self._current
                    if (status.st_ino, True) == (current.inode, status.st_size >= current.offset):
                        opened.seek(current.offset)
                    else:
                        current = _Current(inode=status.st_ino)
                    for line in _lines(opened, self.file.name, current.number):
                        current.take(line)
            except FileNotFoundError:
                current = _Current()
            except OSError as error:
                raise _unusable(f"{self.file} cannot be read: {error.strerror}") from error
            if current is not self._current:
                self._require_nothing_lost(current)
                self._current = current

    def _require_nothing_lost(self, current: _Current) -> None:
        before = self._current
        if current.epoch != before.epoch and current.epoch is not None:
            return
        for chain_id in before.kept:
            had, has = self.kept(chain_id), _checkpoint(current.kept.get(chain_id))
            if had is not None and (has is None or has["chain_size"] < had["chain_size"]):
                raise _unusable(f"{self.file} lost checkpoints that it had a moment ago; put it back")

    def lines(self) -> Iterator[Line]:
        """Every line of the log, oldest first, files that were set aside included.

        Raises:
            ServiceUnavailable: SVC_CHECKPOINT_UNAVAILABLE: a file cannot be read.
        """
        for file in (*self._set_aside(), self.file):
            try:
                with file.open("rb") as opened:
                    yield from _lines(opened, file.name, 0)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise _unusable(f"{file} cannot be read: {error.strerror}") from error

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keeps other processes of this host from appending while the block runs; makes the directory where there is
        none.

        Raises:
            ServiceUnavailable: SVC_CHECKPOINT_UNAVAILABLE.
        """
        try:
            self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = self.file.with_name(f"{self.file.name}.lock")
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise _unusable(f"{self.file} cannot be written: {error.strerror}") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def append(self, documents: Sequence[Checkpoint | Epoch], now: datetime) -> None:
        """Adds lines, on disk when it returns. To be called inside `locked`, after `refresh`.

        Args:
            documents: The checkpoints and epochs, in order.
            now: The current moment, which names a file that is set aside.

        Raises:
            ServiceUnavailable: SVC_CHECKPOINT_UNAVAILABLE: nothing, or not all, was kept.
        """
        if not documents:
            return
        try:
            if self._current.offset >= LARGE and self._current.offset > 2 * self._carried():
                self._set_current_aside(now)
            _write(self.file, [canonical(document) for document in documents], at=self._current.offset)
        except OSError as error:
            raise _unusable(f"{self.file} cannot be written: {error.strerror}") from error
        self.refresh()

    def _carried(self) -> int:
        return sum(map(len, self._current.kept.values()))

    def _set_aside(self) -> list[Path]:
        names = self.file.parent.glob(f"{self.file.name}.*") if self.file.parent.is_dir() else ()
        return sorted(path for path in names if _SET_ASIDE.fullmatch(path.name.removeprefix(self.file.name)))

    def _set_current_aside(self, now: datetime) -> None:
        aside = self.file.with_name(f"{self.file.name}.{now:%Y%m%dT%H%M%S}{now.microsecond // 1000:03d}Z")
        new = self.file.with_name(f"{self.file.name}.new")
        new.unlink(missing_ok=True)
        carried = [] if self._current.epoch is None else [self._current.epoch]
        _write(new, [*carried, *self._current.kept.values()], at=0)
        # The old name first gets a second one: at no moment is there no current file.
        aside.hardlink_to(self.file)
        new.replace(self.file)
        _sync_directory(self.file.parent)
        self.refresh()


def _lines(opened: BinaryIO, name: str, number: int) -> Iterator[Line]:
    """The whole lines that follow in a file, of which `number` were read; one without a line break is not yet kept."""
    while text := opened.readline(_MAX_LINE):
        number += 1
        place = f"{name}:{number}"
        if not text.endswith(b"\n"):
            if len(text) == _MAX_LINE:
                raise _unusable(f"The line at {place} is longer than any checkpoint")
            return
        yield Line(place, _document(text), text[:-1])


def _checkpoint(line: bytes | None) -> Checkpoint | None:
    document = None if line is None else parse(line)
    return document if is_checkpoint(document) else None


def _document(text: bytes) -> Checkpoint | Epoch | None:
    with suppress(MaterialRefused):
        document = parse(text)
        if is_checkpoint(document) or is_epoch(document):
            return document
    return None


def _write(file: Path, lines: Iterable[bytes], *, at: int) -> None:
    """Writes lines at an offset, on disk when it returns."""
    new = not file.exists()
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "r+b") as opened:
        # A write that a crash cut short left part of a line, which was never kept.
        opened.truncate(at)
        opened.seek(at)
        for line in lines:
            opened.write(line + b"\n")
        opened.flush()
        os.fsync(opened.fileno())
    if new:
        _sync_directory(file.parent)


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unusable(why: str) -> ServiceUnavailable:
    return ServiceUnavailable(
        "SVC_CHECKPOINT_UNAVAILABLE",
        f"{why}. No checkpoint is signed until the operator mends the checkpoint log (the setting checkpoint_log).",
    )
