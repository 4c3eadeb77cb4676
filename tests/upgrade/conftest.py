"""Fixtures: an instance of an earlier release, upgraded to this head, and the application over it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from flask.testing import FlaskClient

from gate.instance.instance import Instance, open_instance
from gate.instance.settings import load_settings
from tests.support.command_line import run_gate
from tests.support.postgres import Postgres
from tests.upgrade.kept import ARCHIVES, Release, restore, unpack

Gate = Callable[..., Any]


@pytest.fixture(params=ARCHIVES, ids=lambda archive: f"{archive.parent.name}-{archive.name.partition('.')[0]}")
def release(request: pytest.FixtureRequest, tmp_path: Path) -> Release:
    """The unpacked archive of a release, each in turn."""
    return unpack(request.param, tmp_path / "release")


@pytest.fixture
def database(request: pytest.FixtureRequest, release: Release) -> Iterator[Callable[[str], str]]:
    """Restores a dump of the release into a database of its own, and gives its URL."""
    with ExitStack() as databases:

        def restored(name: str) -> str:
            server: Postgres = request.getfixturevalue("postgres")
            url = databases.enter_context(server.database())
            restore(release.folder / f"{name}.sql", url)
            return url

        yield restored


@pytest.fixture
def database_url(release: Release, database: Callable[[str], str]) -> str | None:
    """Where the ledger is: in the home, or restored."""
    return database("ledger") if (release.folder / "ledger.sql").exists() else None


@pytest.fixture
def gate(release: Release, database_url: str | None) -> Gate:
    """Runs a `gate` command on the upgraded instance, and gives its JSON."""

    def run(*arguments: str) -> Any:
        ledger = [] if database_url is None else ["--database-url", database_url]
        done = run_gate(*arguments, "--home", str(release.home), *ledger, "--json")
        assert done.returncode == 0, f"{done.stdout}{done.stderr}"
        return json.loads(done.stdout)

    run("db", "upgrade")
    return run


@pytest.fixture
def instance(release: Release, gate: Gate, database_url: str | None) -> Iterator[Instance]:
    """The upgraded instance, open; so `client` is over it."""
    opened = open_instance(load_settings(release.home, database_url=database_url))
    yield opened
    opened.close()


@pytest.fixture
def transport(client: FlaskClient) -> httpx.WSGITransport:
    """The way to this head's application over the upgraded instance."""
    return httpx.WSGITransport(client.application)


@pytest.fixture
def service(transport: httpx.WSGITransport) -> Iterator[httpx.Client]:
    """An HTTP client of the application."""
    with httpx.Client(transport=transport, base_url="http://gate.example") as opened:
        yield opened
