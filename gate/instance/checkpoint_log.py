"""The checkpoint log: the signed checkpoints that a host has kept, one JSON object a line.

    {"chain_id":"chain_01k...","chain_size":412,"checkpoint_version":"decision_checkpoint_v1", ...}
    {"begun_at":"2026-06-11T12:00:00.000Z","checkpoint_epoch_version":"decision_checkpoint_epoch_v1", ...}

The log lies outside the database, so that an attacker who can write to only one of them cannot adapt the other. Lines
are only appended. A file that has grown large is renamed to `<name>.<date>`. The new file begins with the last epoch
and the last checkpoint of each chain, so the current file alone shows what the next checkpoint must agree with.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from threading import Lock
from typing import BinaryIO, Final, TypeAlias

from gate.encoding.canonical import canonical
from gate.encoding.strict_json import parse
from gate.errors import MaterialRefused, ServiceUnavailable
from gate.proof.checkpoint import Checkpoint, Epoch, head_seen, heads_hash
from gate.verify.checkpoint import is_checkpoint, is_epoch
from gate.verify.signature import Judgement

LARGE: Final = 4 * 1024 * 1024
"""The size in bytes at which a file is set aside, after some 10,000 checkpoints: reading them takes half a second."""

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


Judges: TypeAlias = Callable[[Checkpoint | Epoch], Judgement]
"""Judges the signature of a line."""


@dataclass(slots=True)
class Opening:
    """An epoch whose checkpoints are still being read: they must be those that its signature binds.

    Attributes:
        epoch: The epoch.
        offset: Where its line begins in the file, in bytes.
        checkpoints: The checkpoints read so far.
    """

    epoch: Epoch
    offset: int = 0
    checkpoints: list[Checkpoint] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Whether as many checkpoints were read as the epoch states."""
        return len(self.checkpoints) == self.epoch["chains"]

    @property
    def holds(self) -> bool:
        """Whether they are the epoch's."""
        same_date = all(found["issued_at"] == self.epoch["begun_at"] for found in self.checkpoints)
        return self.complete and same_date and heads_hash(map(head_seen, self.checkpoints)) == self.epoch["heads_hash"]


@dataclass(slots=True)
class _Current:
    """What was read of the current file: how far, the epoch's line, and of each chain since the line with the largest
    checkpoint that a trusted key signed.
    """

    judge: Judges
    inode: int = 0
    offset: int = 0
    number: int = 0
    epoch: bytes | None = None
    latest: str = ""
    kept: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    opening: Opening | None = None

    def take(self, line: Line) -> None:
        document = line.document
        if document is None:
            raise _unusable(f"The line at {line.place} is neither a checkpoint nor an epoch")
        found = self.judge(document)
        if found.holds is False:
            raise _unusable(f"The line at {line.place} was changed after it was signed")
        # A key that is unknown or compromised vouches for nothing, and takes nothing back either.
        if found.trusted:
            self._accept(line, document)
        self.offset, self.number = self.offset + len(line.text) + 1, self.number + 1

    def _accept(self, line: Line, document: Checkpoint | Epoch) -> None:
        if is_checkpoint(document):
            if self.opening is not None:
                self.opening.checkpoints.append(document)
                self._open(line)
            known = self.kept.get(document["chain_id"])
            # An older checkpoint that is written again must not replace a newer one.
            if known is None or document["chain_size"] > known[0]:
                self.kept[document["chain_id"]] = document["chain_size"], line.text
            self.latest = max(self.latest, document["issued_at"])
        elif is_epoch(document) and line.text != self.epoch:
            if document["begun_at"] < self.latest:
                raise _unusable(f"The epoch at {line.place} is older than a checkpoint before it")
            # A file begins with the epoch that the one before it had; it has no checkpoints before it to end.
            if self.number:
                self.opening = Opening(document, self.offset)
                self._open(line)
            self.epoch = line.text

    def _open(self, line: Line) -> None:
        if self.opening is None or not self.opening.complete:
            return
        if not self.opening.holds:
            raise _unusable(f"The epoch before {line.place} is not followed by its own checkpoints")
        made, self.opening = self.opening.checkpoints, None
        self.kept = {found["chain_id"]: (found["chain_size"], canonical(found)) for found in made}


class CheckpointLog:
    """The checkpoint log of a host. Several processes may read it; one at a time appends, inside `locked`."""

    def __init__(self, file: Path, judge: Judges = lambda document: Judgement(None, trusted=False)) -> None:
        """Works on a file, which need not be there yet.

        Args:
            file: The file.
            judge: Judges the signature of a line. Lines that no trusted key signed are passed over by `refresh`.
        """
        self.file: Final = file
        self._judge = judge
        self._current = _Current(judge)
        self._lock = Lock()

    def kept(self, chain_id: str) -> Checkpoint | None:
        """The largest checkpoint of a chain in the current epoch, as `refresh` last found it."""
        known = self._current.kept.get(chain_id)
        document = None if known is None else parse(known[1])
        return document if is_checkpoint(document) else None

    def chain_ids(self) -> Collection[str]:
        """The chains with a checkpoint in the current epoch, as `refresh` last found them."""
        return self._current.kept.keys()

    def refresh(self) -> None:
        """Reads the lines that were added since the last time.

        Raises:
            ServiceUnavailable: `SVC_CHECKPOINT_UNAVAILABLE`: the file cannot be read, a line is neither a checkpoint
                nor an epoch, or a line was changed. Also if an epoch lacks its own checkpoints or is older than an
                earlier epoch, or if checkpoints that were read before are gone.
        """
        with self._lock:
            try:
                with self.file.open("rb") as opened:
                    status, current = os.fstat(opened.fileno()), self._current
                    if (status.st_ino, True) == (current.inode, status.st_size >= current.offset):
                        opened.seek(current.offset)
                    else:
                        current = _Current(self._judge, inode=status.st_ino)
                    for line in _lines(opened, self.file.name, current.number):
                        current.take(line)
            except FileNotFoundError:
                current = _Current(self._judge)
            except OSError as error:
                raise _unusable(f"{self.file} cannot be read: {error.strerror}") from error
            if current is not self._current:
                self._require_nothing_lost(current)
                self._current = current

    def _require_nothing_lost(self, current: _Current) -> None:
        before = self._current
        if current.epoch != before.epoch and current.epoch is not None:
            return
        for chain_id, (had, _) in before.kept.items():
            if current.kept.get(chain_id, (0, b""))[0] < had:
                raise _unusable(f"{self.file} no longer has checkpoints that it had a moment ago. Restore it")

    def lines(self) -> Iterator[Line]:
        """Every line of the log, oldest first, files that were set aside included.

        Raises:
            ServiceUnavailable: `SVC_CHECKPOINT_UNAVAILABLE`: a file cannot be read.
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
            ServiceUnavailable: `SVC_CHECKPOINT_UNAVAILABLE`.
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
            ServiceUnavailable: `SVC_CHECKPOINT_UNAVAILABLE`: nothing, or not all, was kept.
        """
        if not documents:
            return
        try:
            if self._current.offset >= LARGE and self._current.offset > 2 * self._carried():
                self._set_current_aside(now)
            torn = self._current.opening
            _write(
                self.file,
                [canonical(document) for document in documents],
                at=self._current.offset if torn is None else torn.offset,
            )
            if torn is not None:
                # A crash cut an epoch short, which so never began; nobody else writes now.
                self._current = _Current(self._judge)
        except OSError as error:
            raise _unusable(f"{self.file} cannot be written: {error.strerror}") from error
        self.refresh()

    def _carried(self) -> int:
        return sum(len(text) for _, text in self._current.kept.values())

    def _set_aside(self) -> list[Path]:
        names = self.file.parent.glob(f"{self.file.name}.*") if self.file.parent.is_dir() else ()
        return sorted(path for path in names if _SET_ASIDE.fullmatch(path.name.removeprefix(self.file.name)))

    def _set_current_aside(self, now: datetime) -> None:
        aside = self.file.with_name(f"{self.file.name}.{now:%Y%m%dT%H%M%S}{now.microsecond // 1000:03d}Z")
        new = self.file.with_name(f"{self.file.name}.new")
        new.unlink(missing_ok=True)
        carried = [] if self._current.epoch is None else [self._current.epoch]
        _write(new, [*carried, *(text for _, text in self._current.kept.values())], at=0)
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
        f"{why}. No checkpoint is signed until the operator restores the checkpoint log (the setting checkpoint_log).",
    )
