"""Idempotency keys in use: told apart over threads and processes, and free again whatever ends their holder."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import pytest

from gate.errors import ServiceUnavailable
from gate.ledger import Ledger
from tests.end_to_end.site import wait_until
from tests.support.postgres import Postgres, database_of
from tests.support.samples import in_threads, ledger_url

pytestmark = pytest.mark.heavy

ROOT: Final = Path(__file__).parents[4]
ONE, TWO = bytes(range(32)), bytes(range(1, 33))

HOLD: Final = """
import sys
from gate.ledger import open_ledger
ledger = open_ledger(sys.argv[1])
with ledger.reservations.reserve(bytes.fromhex(sys.argv[2])) as free:
    print(free, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> Iterator[str | None]:
    """Where the ledger is."""
    with database_of(request) as url:
        yield url


def is_free(ledger: Ledger, digest: bytes) -> bool:
    with ledger.reservations.reserve(digest) as free:
        return free


@contextmanager
def another_process(ledger: Ledger, digest: bytes) -> Iterator[tuple[subprocess.Popen[str], bool]]:
    """A process that reserves a key, and whether it was free; it holds it until its input ends."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, ledger_url(ledger), digest.hex()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    ) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline() == "True\n"
        finally:
            process.kill()


def test_a_key_is_held_for_as_long_as_its_block_runs(ledger: Ledger) -> None:
    with ledger.reservations.reserve(ONE) as free:
        assert free
        assert not is_free(ledger, ONE)
        # Who was told that it is in use holds nothing, and lets go of nothing.
        assert not is_free(ledger, ONE)
        assert is_free(ledger, TWO)
    assert is_free(ledger, ONE)


def test_a_block_that_fails_lets_go(ledger: Ledger) -> None:
    with pytest.raises(ZeroDivisionError), ledger.reservations.reserve(ONE):
        raise ZeroDivisionError
    assert is_free(ledger, ONE)


def test_of_many_threads_one_holds_a_key_at_a_time(ledger: Ledger) -> None:
    holding: list[int] = []

    def hold(_: int) -> bool:
        with ledger.reservations.reserve(ONE) as free:
            if free:
                holding.append(1)
                alone = len(holding) == 1
                holding.pop()
                return alone
        return True

    assert all(in_threads(16, hold))
    assert is_free(ledger, ONE)


def test_a_key_is_held_against_other_processes_until_they_are_let_in_or_killed(ledger: Ledger) -> None:
    with another_process(ledger, ONE) as (holder, held):
        assert held
        assert not is_free(ledger, ONE)
        assert is_free(ledger, TWO)
        with another_process(ledger, ONE) as (_, second):
            assert not second
        assert not is_free(ledger, ONE)
        holder.kill()
        holder.wait(30)
        # A database hears of a process that is gone a moment later.
        wait_until(lambda: is_free(ledger, ONE))


def test_a_key_held_here_is_in_use_for_other_processes(ledger: Ledger) -> None:
    with ExitStack() as stack:
        assert stack.enter_context(ledger.reservations.reserve(ONE))
        for digest, free in ((ONE, False), (TWO, True)):
            _, found = stack.enter_context(another_process(ledger, digest))
            assert found is free


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_a_session_that_died_is_replaced(ledger: Ledger, postgres: Postgres) -> None:
    assert is_free(ledger, ONE)
    postgres.kill_backends(ledger_url(ledger))
    assert is_free(ledger, ONE)
    with ledger.reservations.reserve(ONE) as free:
        assert free
        postgres.kill_backends(ledger_url(ledger))
    assert is_free(ledger, ONE)


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_without_a_server_nothing_is_told(ledger: Ledger, postgres: Postgres) -> None:
    with postgres.stopped(), pytest.raises(ServiceUnavailable), ledger.reservations.reserve(ONE):
        pytest.fail("It was told free.")
    assert is_free(ledger, ONE)
