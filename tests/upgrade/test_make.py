"""The script that makes these folders still makes what their tests read."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.support.postgres import Postgres
from tests.support.torture import LONG
from tests.upgrade.kept import ARCHIVES, ON_SQLITE, Exchange, Release, pack, unpack
from tests.upgrade.make import on_postgres, on_sqlite

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.skipif(not LONG, reason="two instances with their servers are for `make torture`"),
]


def test_an_instance_on_sqlite(tmp_path: Path) -> None:
    made = repacked(on_sqlite(tmp_path / "sqlite"), tmp_path)
    assert_like(made, unpack(ON_SQLITE[-1], tmp_path / "earlier"))


def test_an_instance_on_postgresql(tmp_path: Path, postgres: Postgres) -> None:
    [*_, latest] = (archive for archive in ARCHIVES if archive not in ON_SQLITE)
    made = repacked(on_postgres(tmp_path / "postgresql", postgres), tmp_path)
    assert_like(made, unpack(latest, tmp_path / "earlier"))
    assert "INSERT INTO" in (made.folder / "ledger.sql").read_text()


def repacked(made: Release, folder: Path) -> Release:
    """The release as its archive holds it."""
    archive = folder / "archives" / "made.tar.gz"
    pack(made, archive)
    with tarfile.open(archive) as packed:
        assert all(entry.mode & 0o077 == 0 for entry in packed if "/keys/" in entry.name and entry.isfile())
    return unpack(archive, folder / "unpacked")


def assert_like(made: Release, earlier: Release) -> None:
    """Requires all that an earlier release keeps: the kinds of files, the requests, and what became of each."""
    assert files(made) >= files(earlier)
    assert [asked(exchange) for exchange in made.kept.exchanges()][: len(earlier.kept.exchanges())] == [
        asked(exchange) for exchange in earlier.kept.exchanges()
    ]
    assert [made_of(each) for each in made.kept.read("decisions")] == [
        made_of(each) for each in earlier.kept.read("decisions")
    ]


def files(release: Release) -> set[str]:
    """The files beside the instance's home."""
    kept = {str(file.relative_to(release.folder)) for file in release.kept.folder.rglob("*.json")}
    return kept | {file.name for file in release.folder.iterdir()}


def asked(exchange: Exchange) -> tuple[str, str, int, str]:
    """A request and its status, whatever ids this run drew."""
    path = "/".join("ID" if any(map(str.isdigit, part)) else part for part in exchange.path.split("/"))
    refused = json.loads(exchange.answer)["error"] if exchange.status >= 400 else ""
    return exchange.method, path, exchange.status, str(refused)


def made_of(decision: dict[str, Any]) -> tuple[str, str]:
    """Who asked for a decision, and what became of its replay."""
    return decision["caller"], str(decision["replay"])
