"""The archives of this folder: `<label>/<database>.tar.gz`, one for each database that a release keeps its ledger in.

home/           the instance: settings, keys with their private halves, metrics token, lake; with SQLite, ledger.db
ledger.sql      with PostgreSQL: the ledger's database, as plain SQL
intents.db      the store of a guard, SqliteStore; intents.sql: SqlAlchemyStore, in PostgreSQL
kept/           the answers and printed results of the release, as JSON; see `Kept`
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx
import psycopg

FOLDER: Final = Path(__file__).parent
ARCHIVES: Final = sorted(FOLDER.glob("*/*.tar.gz"))
ON_SQLITE: Final = [archive for archive in ARCHIVES if archive.name.startswith("sqlite")]

JUDGED_ANEW: Final = {
    "decision_confidence_version": {"notes", "confidence_hash"},
    "policy_effectiveness_version": {"versions_below_others", "below_others", "recommendation", "notes"}
    | {"effectiveness_hash"},
    "policy_anomalies_version": {"anomaly_count", "severities", "anomalies", "parameters", "recommendation", "notes"}
    | {"anomaly_hash"},
    "policy_alerts_version": {"alert_count", "alerts", "alerts_hash", "notes"},
    "policy_benchmarks_version": {"explanation", "notes", "benchmark_hash"},
    "decision_counterfactual_slice_version": {"counterfactual_hash", "notes"},
    # The result of a verification.
    "integrity_valid": {"message"},
}
"""The fields of reports that may differ in a later release, by the field that identifies the report. Reports gained
fields, so their hashes differ. Better formulas compare versions and judge anomalies, and the sentences that people read
are worded differently. The counts must stay the same.
"""


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request that changes nothing, for it was made before, and its answer.

    Attributes:
        caller: Whose key it carries.
        method: The HTTP method.
        path: The path, with its query.
        body: The JSON body; None without one.
        headers: Further headers.
        exact: Whether the release promised these very bytes for good, as it does of records and reports. Other answers
            may gain members.
        status: The status of the answer.
        answer: The body of the answer.
    """

    caller: str
    method: str
    path: str
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    exact: bool = False
    status: int = 0
    answer: str = ""

    def ask(self, client: httpx.Client, callers: Mapping[str, str]) -> httpx.Response:
        """The service's answer to the request."""
        sent = {} if self.body is None else {"json": self.body}
        headers = {"x-api-key": callers[self.caller], **self.headers}
        return client.request(self.method, self.path, headers=headers, timeout=60, **sent)

    def stands(self, response: httpx.Response) -> bool:
        """Whether an answer is the one that was kept; of a refusal only its code counts."""
        if response.status_code != self.status:
            return False
        if self.status >= 400:
            return bool(response.json()["error"] == json.loads(self.answer)["error"])
        return response.text == self.answer if self.exact else stands(json.loads(self.answer), response.json())


@dataclass(frozen=True, slots=True)
class Kept:
    """The files in kept/.

    Attributes:
        folder: Where they are.
    """

    folder: Path

    def file(self, name: str) -> Path:
        """The path of one."""
        return self.folder / f"{name}.json"

    def read(self, name: str) -> Any:
        """The content of one."""
        return json.loads(self.file(name).read_text())

    def write(self, name: str, value: Any) -> None:
        """Writes one."""
        self.file(name).parent.mkdir(parents=True, exist_ok=True)
        self.file(name).write_text(json.dumps(value, indent=1))

    def names(self, folder: str) -> list[str]:
        """The names of those in a folder."""
        return sorted(f"{folder}/{file.stem}" for file in (self.folder / folder).glob("*.json"))

    def exchanges(self) -> list[Exchange]:
        """The requests with their answers."""
        return [Exchange(**each) for each in self.read("exchanges")]

    def keep_exchanges(self, exchanges: list[Exchange]) -> None:
        """Writes them."""
        self.write("exchanges", [asdict(each) for each in exchanges])


@dataclass(frozen=True, slots=True)
class Release:
    """An unpacked archive.

    Attributes:
        folder: Where it was unpacked.
    """

    folder: Path

    @property
    def home(self) -> Path:
        """The instance."""
        return self.folder / "home"

    @property
    def kept(self) -> Kept:
        """The answers and printed results of the release."""
        return Kept(self.folder / "kept")


def stands(kept: Any, now: Any) -> bool:
    """Whether an answer still holds what was kept of it, but for what a later release judges anew in a report."""
    named = next((names for label, names in JUDGED_ANEW.items() if isinstance(kept, dict) and label in kept), set())
    return holds(_without(kept, named), _without(now, named))


def _without(value: Any, names: Collection[str]) -> Any:
    """A value without members of these names; versions, which stand in the order of what is judged, by their labels."""
    if isinstance(value, dict):
        return {name: _without(member, names) for name, member in value.items() if name not in names}
    if isinstance(value, list):
        rest = [_without(of, names) for of in value]
        labelled = all(isinstance(of, dict) and "policy_version" in of for of in rest)
        return sorted(rest, key=lambda of: str(of["policy_version"])) if labelled and names else rest
    return value


def holds(kept: Any, now: Any) -> bool:
    """Whether a JSON value is another one, but that objects may have more members."""
    if isinstance(kept, dict) and isinstance(now, dict):
        return all(name in now and holds(value, now[name]) for name, value in kept.items())
    if isinstance(kept, list) and isinstance(now, list):
        return len(kept) == len(now) and all(map(holds, kept, now))
    return type(kept) is type(now) and bool(kept == now)


def pack(release: Release, archive: Path) -> None:
    """Writes an archive; it keeps file modes, and no owner."""

    def anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        return entry

    archive.parent.mkdir(exist_ok=True)
    with tarfile.open(archive, "w:gz", compresslevel=9, format=tarfile.PAX_FORMAT) as packed:
        for entry in sorted(release.folder.iterdir()):
            packed.add(entry, entry.name, filter=anonymous)


def unpack(archive: Path, folder: Path) -> Release:
    """Unpacks an archive of this repository, with its file modes."""
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="tar")
    return Release(folder)


def restore(dump: Path, url: str) -> None:
    """Fills an empty PostgreSQL database from a dump."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(dump.read_bytes())
