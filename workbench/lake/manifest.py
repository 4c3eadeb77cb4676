"""The manifest of a scope: the lake's files, and the stretch of the chain that each of them covers.

It is replaced in one step, so a reader sees the lake either before an export or after it. Files that a crash leaves
behind are in no manifest, and so in no answer.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import orjson

from gate.encoding.canonical import content_hash
from gate.errors import OperatorError

LAKE_VERSION: Final = "decision_lake_v7"
# Versions with other tables.
_EARLIER: Final = tuple(f"decision_lake_v{number}" for number in range(1, 7))
FILE_NAME: Final = "manifest.json"


@dataclass(frozen=True, slots=True)
class LakeFile:
    """One Parquet file.

    Attributes:
        path: Where it lies, from the lake's directory.
        table: The table whose rows it holds.
        month: The UTC month of the rows, 2026-11.
        rows: How many.
        first_position: The least `position` among them.
        last_position: The greatest.
        bytes: Its size.
        unpacked: What its rows take in memory, in bytes, about.
        sha256: The hash of its bytes.
        chain_position: How far the chain was followed when it was written.
        merkle_root: The chain's root at that position.
    """

    path: str
    table: str
    month: str
    rows: int
    first_position: int
    last_position: int
    bytes: int
    unpacked: int
    sha256: str
    chain_position: int
    merkle_root: str


@dataclass(frozen=True, slots=True)
class Retired:
    """A file that another one replaced; it lingers for readers who still have the earlier manifest.

    Attributes:
        path: Where it lies.
        bytes: Its size.
        at: Since when, in seconds since 1970, UTC.
    """

    path: str
    bytes: int
    at: float


@dataclass(frozen=True, slots=True)
class Manifest:
    """What the lake holds of a scope.

    Attributes:
        scope_id: The scope.
        scope: Its name.
        chain_id: Its chain.
        generation: How often the manifest was replaced.
        position: The watermark: every entry up to this chain position is in the files, and none after it.
        merkle_root: The chain's root there; None before the first entry.
        link_hash: The hash of the link there.
        compacted: Up to which chain position `cases` are resolved.
        personal: What was left out as personal, sorted.
        files: The files.
        retired: Files that were replaced.
    """

    scope_id: str
    scope: str
    chain_id: str
    generation: int = 0
    position: int = 0
    merkle_root: str | None = None
    link_hash: str | None = None
    compacted: int = 0
    personal: tuple[str, ...] = ()
    files: tuple[LakeFile, ...] = ()
    retired: tuple[Retired, ...] = ()

    def of(self, table: str) -> list[LakeFile]:
        """The files of a table, in the order of their rows' positions."""
        return sorted((file for file in self.files if file.table == table), key=lambda file: file.first_position)

    def replaced(self, old: Iterable[LakeFile], new: Iterable[LakeFile], at: float) -> Manifest:
        """With some files in the place of others, which are retired."""
        gone = {file.path: file.bytes for file in old}
        kept = tuple(file for file in self.files if file.path not in gone)
        retired = (*self.retired, *(Retired(path, size, at) for path, size in sorted(gone.items())))
        return replace(self, files=(*kept, *new), retired=retired)

    def to_dict(self) -> dict[str, object]:
        """The manifest as JSON, with `manifest_hash` over the rest."""
        # Not by `asdict`, which takes ten times as long: every commit writes down all files.
        body = {"lake_version": LAKE_VERSION, **orjson.loads(orjson.dumps(self))}
        body["files"].sort(key=lambda file: file["path"])
        return {**body, "manifest_hash": content_hash(body)}


def directory_of(lake: Path, scope_id: str) -> Path:
    """Where the files of a scope lie."""
    return lake / f"scope={scope_id}"


def load(lake: Path, scope_id: str) -> Manifest | None:
    """The manifest of a scope; None if the lake has none, or one of an earlier release, which the next export replaces.

    Raises:
        OperatorError: `LAKE_MANIFEST_INVALID`.
    """
    file = directory_of(lake, scope_id) / FILE_NAME
    try:
        text = file.read_bytes()
    except FileNotFoundError:
        return None
    try:
        body = orjson.loads(text)
        return None if body["lake_version"] in _EARLIER else _read(body)
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError, ValueError) as error:
        raise OperatorError(
            "LAKE_MANIFEST_INVALID",
            f"{file} was damaged or edited; remove {file.parent}, and `gate lake export` creates it again from the "
            "ledger.",
        ) from error


def load_all(lake: Path) -> list[Manifest]:
    """The manifests of all scopes that the lake has, by scope id.

    Raises:
        OperatorError: `LAKE_MANIFEST_INVALID`.
    """
    scope_ids = sorted(file.parent.name.partition("=")[2] for file in lake.glob(f"scope=*/{FILE_NAME}"))
    return [found for scope_id in scope_ids if (found := load(lake, scope_id)) is not None]


def save(lake: Path, manifest: Manifest) -> None:
    """Puts a manifest into its place, durably, in one step.

    Raises:
        OSError: It cannot be written.
    """
    directory = directory_of(lake, manifest.scope_id)
    write_durably(directory / FILE_NAME, orjson.dumps(manifest.to_dict(), option=orjson.OPT_INDENT_2) + b"\n")
    sync_directory(directory)


def write_durably(file: Path, content: bytes) -> None:
    """Writes a file of mode 0600 and puts it into its place in one step; its directory is not synced yet.

    Raises:
        OSError: It cannot be written.
    """
    temporary = file.with_name(f".{file.name}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as opened:
        opened.write(content)
        opened.flush()
        os.fsync(opened.fileno())
    temporary.replace(file)


def sync_directory(directory: Path) -> None:
    """Makes the names in a directory durable."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _read(body: Mapping[str, Any]) -> Manifest:
    rest = {name: value for name, value in body.items() if name not in ("lake_version", "manifest_hash")}
    if body["lake_version"] != LAKE_VERSION:
        raise ValueError(body["lake_version"])
    if body["manifest_hash"] != content_hash({"lake_version": LAKE_VERSION, **rest}):
        raise ValueError(body["manifest_hash"])
    rest["files"] = tuple(LakeFile(**file) for file in rest["files"])
    rest["retired"] = tuple(Retired(**file) for file in rest["retired"])
    rest["personal"] = tuple(rest["personal"])
    return Manifest(**rest)
