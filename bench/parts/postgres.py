"""The service on PostgreSQL with one and two workers, compared with a bare route; and one decide, stage by stage.

The database server is that of the tests, in its default configuration, on this machine and on the project's disk.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench.disk import scratch, sync_ms
from bench.measure import Spread, ratio
from bench.parts import profile
from bench.servers import Cpu, ServerFailed, children_of, cpu_of
from bench.subjects import (
    CONNECTIONS,
    Subject,
    bare,
    create_key,
    gate,
    rates,
    require_records,
    rounds_table_rows,
    summary,
    summary_rows,
    under_load,
)
from bench.tables import table

if TYPE_CHECKING:
    from tests.support.postgres import Postgres

_WORKERS: Final = (1, 2)

_ROUNDS: Final = 7
_SECONDS: Final = 4.0
_QUICK_ROUNDS: Final = 5
_QUICK_SECONDS: Final = 0.5

_SETTINGS: Final = ("server_version", "fsync", "synchronous_commit", "wal_sync_method", "shared_buffers")
_SOCKET: Final = ".s.PGSQL.5432"
_MAX_SOCKET_PATH: Final = 103


def run(*, quick: bool) -> dict[str, Any]:
    """Puts all services under the same load in turn, and then times the stages of one decide.

    Raises:
        Mismatch: An answer was wrong, or a ledger does not hold one record for each answer.
    """
    rounds, seconds = (_QUICK_ROUNDS, _QUICK_SECONDS) if quick else (_ROUNDS, _SECONDS)
    with scratch() as directory, _server(directory / "postgres") as postgres:
        disk_sync = sync_ms(directory)
        with ExitStack() as stack:
            subjects: dict[str, Subject] = {}
            ledgers: dict[str, tuple[Path, str]] = {}
            for workers in _WORKERS:
                subject, home = f"decide {workers}", directory / f"home-{workers}"
                url = stack.enter_context(postgres.database())
                key = create_key(home, url)
                plain = stack.enter_context(bare(directory, workers=workers, pinned=True))
                service = stack.enter_context(gate(home, url, directory, workers=workers))
                subjects[f"bare {workers}"] = Subject(plain, workers, key)
                subjects[subject] = Subject(service, workers, key, lambda: _cpu(directory / "postgres"))
                ledgers[subject] = home, url
            taken, answers = under_load(subjects, rounds, seconds)
            for subject, (home, url) in ledgers.items():
                require_records(home, url, answers[subject])
        with postgres.database() as url:
            profiled = profile.profile(directory / "home-profile", url, quick=quick)
        settings = {name: postgres.execute(f"SHOW {name}")[0][0] for name in _SETTINGS}
    return {
        "settings": settings,
        "connections": CONNECTIONS,
        "rounds": rounds,
        "round_s": seconds,
        "subjects": {name: summary(found) for name, found in taken.items()},
        "ratios": {
            **{
                f"decide {workers}/bare {workers}": ratio(
                    rates(taken[f"decide {workers}"]), rates(taken[f"bare {workers}"])
                ).to_dict()
                for workers in _WORKERS
            },
            "decide 2/decide 1": ratio(rates(taken["decide 2"]), rates(taken["decide 1"])).to_dict(),
        },
        "records": {name: answers[name] for name in ledgers},
        "disk_sync": disk_sync.to_dict("ms"),
        "profile": profiled,
    }


def show(result: Mapping[str, Any]) -> str:
    """The result as tables."""
    subjects: Mapping[str, Mapping[str, Any]] = result["subjects"]
    rows = [row for name, taken in subjects.items() for row in summary_rows(name, taken)]
    for name, figures in result["ratios"].items():
        rows.append([f"{name}, requests/s", *Spread.from_dict(figures).cells(".3f")])
    rows.append(["disk sync of 4 KB, ms", *Spread.from_dict(result["disk_sync"], "ms").cells(".3f")])
    settings = ", ".join(f"{name} {value}" for name, value in result["settings"].items())
    return "\n\n".join(
        [
            f"PostgreSQL ({settings}): {result['connections']} connections; the number is that of the workers",
            table(["", "median", "min..max"], rows),
            table(["requests/s in round", *subjects], rounds_table_rows(subjects)),
            f"On PostgreSQL: {profile.show(result['profile'])}",
        ]
    )


@contextmanager
def _server(directory: Path) -> Iterator[Postgres]:
    """A server while the block runs, with its data and its socket in a directory that is not there yet."""
    # Loaded where it is used: the other parts need nothing of the tests.
    from tests.support.postgres import Postgres

    if len(os.fsencode(directory / _SOCKET)) > _MAX_SOCKET_PATH:
        raise ServerFailed(f"The path {directory} is too long for PostgreSQL's socket; use a checkout nearer the root.")
    server = Postgres(directory)
    try:
        yield server
    finally:
        server.close()


def _cpu(directory: Path) -> Cpu:
    """The CPU time that all processes of the server have taken."""
    pid = int((directory / "postmaster.pid").read_text().split()[0])
    taken = cpu_of(pid, and_ended_children=True)
    for child in children_of(pid):
        # A background process may end at any moment.
        with suppress(FileNotFoundError, ProcessLookupError):
            taken += cpu_of(child)
    return taken
