"""The active policy tables: the operator's files if there are any, else those of the release.

A file is read again at most once a second, when a question arrives. If a file cannot be used, the last good table stays
active, also after a restart, because the ledger keeps every table that was active.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime
from difflib import get_close_matches
from pathlib import Path
from threading import Lock
from typing import Any, Final

from gate.encoding import resources
from gate.encoding.canonical import canonical
from gate.errors import MaterialRefused, ServiceUnavailable
from gate.ledger.policy_tables import OPERATOR, RELEASE, KeptTable, PolicyTables
from gate.services.policies.changes import TableChange, change
from gate.services.policies.questions import BY_SERVICE, QUESTIONS
from gate.services.policies.table import MAX_TABLE_BYTES, PolicyTable, read_checked, read_table

LOOK_SECONDS: Final = 1.0
"""How long a file is taken to be as it was."""


@dataclass(frozen=True, slots=True)
class InForce:
    """An active table.

    Attributes:
        table: The table.
        origin: operator, or release where it came with the product.
        fault: Why the operator's file is not active; None if it is, or if there is none.
    """

    table: PolicyTable
    origin: str
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class MadeChange:
    """A change of a policy table.

    Attributes:
        kept: The table that came into force.
        previous_hash: The hash of the table before it.
        what: What changed.
    """

    kept: KeptTable
    previous_hash: str
    what: TableChange

    def to_dict(self) -> dict[str, Any]:
        """The change as it is answered: {service, number, changed_at, origin, previous_hash, table_hash, added,
        removed, changed}.
        """
        return {
            "service": self.kept.service,
            "number": self.kept.number,
            "changed_at": self.kept.in_force_at,
            "origin": self.kept.origin,
            "previous_hash": self.previous_hash,
            "table_hash": self.kept.table_hash,
            **self.what,
        }


_Seen = tuple[date, tuple[int, int, int] | None]


def _tell_nobody(_service: str, _fault: str) -> None:
    """What hears of refused files where nobody listens."""


class TablesInForce:
    """The policy tables of an instance, as one process sees them.

    Attributes:
        refused: Is called with the service and the fault when a file is refused, once for each fault.
    """

    def __init__(self, directory: Path, kept: PolicyTables, clock: Callable[[], datetime]) -> None:
        """Works on the operator's directory, which need not exist.

        Args:
            directory: Has a file `<service>.json` for each table that the operator keeps.
            kept: Keeps every table that was active.
            clock: The current moment, in UTC.
        """
        self._directory = directory
        self._kept = kept
        self._clock = clock
        self.refused: Callable[[str, str], None] = _tell_nobody
        self._lock = Lock()
        self._looked: dict[str, float] = {}
        self._seen: dict[str, _Seen] = {}
        self._found: dict[str, InForce] = {}
        self._unkept: set[str] = set()

    def table(self, service: str) -> PolicyTable:
        """The active table of a service."""
        return self.of(service).table

    def of(self, service: str) -> InForce:
        """The active table of a service, with its origin and the error of the operator's file."""
        found = self._found.get(service)
        if found is not None and time.monotonic() < self._looked[service] + LOOK_SECONDS:
            return found
        with self._lock:
            found = self._found.get(service)
            if found is None or time.monotonic() >= self._looked[service] + LOOK_SECONDS:
                found = self._look(service, found)
                self._looked[service] = time.monotonic()
            return found

    def all(self) -> list[InForce]:
        """The active tables, in the order of the questions."""
        return [self.of(question.service) for question in QUESTIONS]

    def changes(self, most: int) -> list[MadeChange]:
        """What changed last in the tables of all services, the newest first.

        Args:
            most: How many tables are looked at.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        found = []
        for kept in self._kept.latest(most):
            before = self._kept.before(kept)
            if before is not None:
                what = change(read_checked(before.body), read_checked(kept.body))
                found.append(MadeChange(kept, before.table_hash, what))
        return found

    def _look(self, service: str, before: InForce | None) -> InForce:
        file = self._directory / _file_name(service)
        # A new day is looked at, too: what was to come yesterday may be there today.
        seen = (self._clock().date(), _state(file))
        if before is None or self._seen[service] != seen:
            found = self._read(service, file, before)
            self._found[service], self._seen[service] = found, seen
            if found.fault is not None and (before is None or found.fault != before.fault):
                self.refused(service, found.fault)
            if before is None or found.table.hash != before.table.hash:
                self._unkept.add(service)
        if service in self._unkept:
            self._keep(service, self._found[service])
        return self._found[service]

    def _read(self, service: str, file: Path, before: InForce | None) -> InForce:
        try:
            return InForce(read_table(_text(file), service, self._clock().date()), OPERATOR)
        except FileNotFoundError:
            return InForce(released(service), RELEASE)
        except MaterialRefused as error:
            fault = _why(error)
        except OSError as error:
            fault = f"The file cannot be read: {error.strerror}."
        last = before or self._last_good(service)
        return InForce(last.table, last.origin, f"{file.name} is not active. {fault}")

    def _last_good(self, service: str) -> InForce:
        # Without the ledger, or a table that this release can read, what came with the release is good.
        with suppress(ServiceUnavailable, MaterialRefused):
            kept = self._kept.last(service)
            if kept is not None:
                return InForce(read_checked(kept.body), kept.origin)
        return InForce(released(service), RELEASE)

    def _keep(self, service: str, found: InForce) -> None:
        # Answers do not wait for the ledger; it is tried again at the next look.
        with suppress(ServiceUnavailable):
            body = canonical(found.table.body)
            self._kept.keep(service, found.table.hash, body, found.origin, self._clock())
            self._unkept.discard(service)


def released(service: str) -> PolicyTable:
    """The table of a service that came with the release."""
    return read_checked(released_file(service).read_bytes())


def released_file(service: str) -> Path:
    """The file of that table."""
    return resources.path("data", "policies", f"{service}.json")


def ignored(directory: Path) -> list[str]:
    """The names of the files in a directory of policy tables that no service reads, sorted; hidden files apart."""
    read = {_file_name(service) for service in BY_SERVICE}
    try:
        return sorted(file.name for file in directory.iterdir() if file.name not in read and file.name[0] != ".")
    except OSError:
        return []


def why_ignored(file: Path) -> str:
    """Why no service reads a file, and how to name it where that is plain."""
    tables = {name: service for service, question in BY_SERVICE.items() for name in (service, question.tool)}
    near = get_close_matches(file.name.partition(".")[0].casefold(), tables, n=1)
    name = _file_name(tables[near[0]]) if near else None
    if name is None:
        return f"No service reads {file.name}. The names of tables are {', '.join(map(_file_name, BY_SERVICE))}."
    if name != file.name and file.with_name(name).exists():
        return f"No service reads {file.name}; the service reads {name}."
    return f"No service reads {file.name}. Rename it to {name}."


def _file_name(service: str) -> str:
    return f"{service}.json"


def _why(refusal: MaterialRefused) -> str:
    """What is wrong with a file, for a reader who sees only this."""
    if not refusal.errors:
        return refusal.message
    named = " ".join(f"{error.field or 'the table'}: {error.message}" for error in refusal.errors[:_NAMED_FAULTS])
    left = len(refusal.errors) - _NAMED_FAULTS
    return f"The file is not a policy table. {named}{f' There are {left} more faults.' if left > 0 else ''}"


_NAMED_FAULTS: Final = 3


def _text(file: Path) -> bytes:
    with file.open("rb") as opened:
        return opened.read(MAX_TABLE_BYTES + 1)


def _state(file: Path) -> tuple[int, int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
