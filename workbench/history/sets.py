"""The manifests of history sets: what each holds, and the hash that names its content.

    history_hash = H({history_version, scope_hash, files, map_hash, importer_version, rows, refused, erased})

A set lies outside the scope's folder in the lake, which may be removed and made again from the ledger: a set cannot.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import orjson

from gate.encoding.canonical import content_hash
from gate.errors import OperatorError
from workbench.lake.manifest import FILE_NAME, LakeFile, Manifest, write_durably
from workbench.lake.names import choices, shown

HISTORY_VERSION: Final = "decision_history_v1"
SET_VERSION: Final = "decision_history_set_v1"
IMPORTER_VERSION: Final = "decision_history_importer_v1"
FOLDER: Final = "history"

_NAME: Final = re.compile(r"[a-z][a-z0-9_.-]{0,79}", re.ASCII)
# Decisions are read from the cases, which have all that engines ask of them.
_ALIASES: Final = {"decisions": "cases"}


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file that a set was imported from.

    Attributes:
        name: Its name.
        bytes: Its size.
        sha256: The hash of its bytes.
    """

    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class HistorySet:
    """What a set holds.

    Attributes:
        scope_id: The scope.
        scope: Its name.
        name: The set's name.
        sources: The files that it was imported from, in order.
        map: The map, as JSON.
        rows: How many rows were imported; their positions are 1 to that.
        refused: How many rows were refused.
        erased: The ids of rows that were erased, sorted.
        personal: What was left out as personal, sorted.
        files: Its Parquet files.
        generation: How often its files were replaced.
        importer_version: The version of the importer that made it.
    """

    scope_id: str
    scope: str
    name: str
    sources: tuple[SourceFile, ...]
    map: Mapping[str, Any]
    rows: int
    refused: int
    erased: tuple[str, ...]
    personal: tuple[str, ...]
    files: tuple[LakeFile, ...]
    generation: int = 0
    importer_version: str = IMPORTER_VERSION

    @property
    def map_hash(self) -> str:
        """The content hash of the map."""
        return content_hash(self.map)

    @property
    def history_hash(self) -> str:
        """The hash that names its content."""
        return content_hash(
            {
                "history_version": HISTORY_VERSION,
                "scope_hash": content_hash({"scope": self.scope_id}),
                "files": [source.sha256 for source in self.sources],
                "map_hash": self.map_hash,
                "importer_version": self.importer_version,
                "rows": self.rows,
                "refused": self.refused,
                "erased": list(self.erased),
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """The manifest as JSON, with `manifest_hash` over the rest."""
        body = {
            "history_set_version": SET_VERSION,
            **orjson.loads(orjson.dumps(asdict(self))),
            "history_hash": self.history_hash,
        }
        return {**body, "manifest_hash": content_hash(body)}

    def as_manifest(self) -> Manifest:
        """The set as a manifest of the lake, whose tables are read alike."""
        aliased = [
            LakeFile(**{**asdict(file), "table": table})
            for table, of in _ALIASES.items()
            for file in self.files
            if file.table == of
        ]
        return Manifest(
            self.scope_id,
            self.scope,
            chain_id="",
            position=self.rows,
            compacted=self.rows,
            personal=self.personal,
            files=(*self.files, *aliased),
        )


def require_name(name: str) -> None:
    """Refuses what is no name of a set.

    Raises:
        OperatorError: `HISTORY_NAME_INVALID`.
    """
    if _NAME.fullmatch(name) is None:
        raise OperatorError(
            "HISTORY_NAME_INVALID",
            f"{shown(name)} is not the name of a history; use 1 to 80 characters of a-z 0-9 _ . -, starting with a "
            "letter.",
        )


def folder_of(lake: Path, scope_id: str) -> Path:
    """Where the sets of a scope lie."""
    return lake / FOLDER / f"scope={scope_id}"


def directory_of(lake: Path, scope_id: str, name: str) -> Path:
    """Where a set lies."""
    return folder_of(lake, scope_id) / name


def load(lake: Path, scope_id: str, name: str) -> HistorySet | None:
    """A set; None where there is none of that name.

    Raises:
        OperatorError: `HISTORY_MANIFEST_INVALID`.
    """
    if _NAME.fullmatch(name) is None:
        return None
    file = directory_of(lake, scope_id, name) / FILE_NAME
    try:
        text = file.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        found = _read(orjson.loads(text))
        if (found.scope_id, found.name) != (scope_id, name):
            raise ValueError(found.name)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise OperatorError(
            "HISTORY_MANIFEST_INVALID",
            f"{file} was damaged or edited; restore it from a backup, or remove {file.parent} and import the "
            "history again.",
        ) from error
    return found


def names_of(lake: Path, scope_id: str) -> list[str]:
    """The names of a scope's sets, sorted."""
    found = (file.parent.name for file in folder_of(lake, scope_id).glob(f"*/{FILE_NAME}"))
    return sorted(name for name in found if _NAME.fullmatch(name))


def scopes_of(lake: Path) -> list[str]:
    """The ids of the scopes that have sets, sorted."""
    found = {file.parents[1].name for file in lake.glob(f"{FOLDER}/scope=*/*/{FILE_NAME}")}
    return sorted(folder.partition("=")[2] for folder in found)


def all_of(lake: Path, scope_id: str) -> list[HistorySet]:
    """A scope's sets, by name.

    Raises:
        OperatorError: `HISTORY_MANIFEST_INVALID`.
    """
    found = (load(lake, scope_id, name) for name in names_of(lake, scope_id))
    return [of for of in found if of is not None]


def require(lake: Path, scope_id: str, scope: str, name: str) -> HistorySet:
    """A set.

    Raises:
        OperatorError: `HISTORY_UNKNOWN`, or `HISTORY_MANIFEST_INVALID`.
    """
    found = load(lake, scope_id, name)
    if found is None:
        raise unknown(scope, name, names_of(lake, scope_id))
    return found


def unknown(scope: str, name: str, names: Iterable[str]) -> OperatorError:
    """HISTORY_UNKNOWN, with the names that there are."""
    return OperatorError(
        "HISTORY_UNKNOWN",
        f"Scope {shown(scope)} has no history {shown(name)}. {choices(name, names)} `gate history import` creates one.",
    )


def save(directory: Path, of: HistorySet) -> None:
    """Puts a set's manifest into its place, durably, in one step; the directory is synced by the caller.

    Raises:
        OSError: It cannot be written.
    """
    write_durably(directory / FILE_NAME, orjson.dumps(of.to_dict(), option=orjson.OPT_INDENT_2) + b"\n")


def _read(body: Mapping[str, Any]) -> HistorySet:
    rest = {name: value for name, value in body.items() if name != "manifest_hash"}
    if body["manifest_hash"] != content_hash(rest) or body["history_set_version"] != SET_VERSION:
        raise ValueError(body["manifest_hash"])
    names = HistorySet.__dataclass_fields__
    members = {name: value for name, value in rest.items() if name in names}
    members["sources"] = tuple(SourceFile(**source) for source in members["sources"])
    members["files"] = tuple(LakeFile(**file) for file in members["files"])
    for name in ("erased", "personal"):
        members[name] = tuple(members[name])
    return HistorySet(**members)
