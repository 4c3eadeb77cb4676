"""A test that is too heavy for its tier fails, wherever it runs."""

from __future__ import annotations

import subprocess
import sys
from itertools import groupby

import pytest

from tests.support import tiers
from tests.support.postgres import Postgres

TOLD = "mark it with pytest.mark.heavy"


@pytest.mark.parametrize(
    "command", [["gate", "serve"], [sys.executable, "/x/.venv/bin/gate", "serve", "--port", "1"], ["make", "run"]]
)
def test_a_light_test_starts_no_server(command: list[str]) -> None:
    with pytest.raises(AssertionError, match=TOLD):
        subprocess.Popen(command)


def test_a_light_test_gets_no_database_of_a_server() -> None:
    server = object.__new__(Postgres)
    for database in (server.database, server.ledger):
        with pytest.raises(AssertionError, match=TOLD), database():
            pass


def test_a_light_test_starts_few_processes() -> None:
    for _ in range(tiers.MOST_PROCESSES):
        subprocess.run(["true"], check=True)
    with pytest.raises(AssertionError, match=TOLD):
        subprocess.run(["true"], check=True)


@pytest.mark.heavy
def test_a_heavy_test_may() -> None:
    for _ in range(tiers.MOST_PROCESSES + 1):
        subprocess.run(["true"], check=True)
    tiers.require_heavy("may")


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_a_parameter_that_names_postgresql_makes_a_test_heavy(database: str, request: pytest.FixtureRequest) -> None:
    heavy = request.node.get_closest_marker(tiers.HEAVY) is not None
    assert heavy is (database == "postgresql")


def test_what_is_in_the_folder_of_real_servers_is_heavy(request: pytest.FixtureRequest) -> None:
    there = [item for item in request.session.items if item.path.is_relative_to(tiers.END_TO_END)]
    assert all(item.get_closest_marker(tiers.HEAVY) for item in there)


def test_a_file_is_run_in_one_piece_with_postgresql_last(request: pytest.FixtureRequest) -> None:
    ordered = tiers.order(request.session.items[::-1])
    assert set(ordered) == set(request.session.items)
    files = [(path, list(items)) for path, items in groupby(ordered, key=lambda item: item.path)]
    assert len(files) == len({path for path, _ in files})
    for _, items in files:
        names = [item.name for item in items if item.name.endswith(("[sqlite]", "[postgresql]"))]
        assert names == sorted(names, key=lambda name: name.endswith("[postgresql]"))
