"""Every part of the benchmarks runs and shows its figures, so that none breaks unseen.

`make torture` gives each what `python -m bench --quick` gives it. `make test` gives most the least that they can
measure, and leaves out those whose servers take more processor time than all the others together; one service works
for all that need it as it is by default, each with a scope of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest

from bench import subjects
from bench.__main__ import PARTS
from bench.servers import Server
from tests.support.browser import executable, no_browser
from tests.support.torture import LONG

pytestmark = pytest.mark.heavy

# A round of no time sends one request over each connection.
LEAST: Final[Mapping[str, Mapping[str, Any]]] = {
    "evaluation": {"_QUICK_ROUNDS": 1, "_QUICK_SECONDS": 0.001},
    "service": {"_QUICK_ROUNDS": 1, "_QUICK_SECONDS": 0.0},
    "batch": {"_QUICK_ROUNDS": 1, "_QUICK_SECONDS": 0.0, "_REQUESTS": 3},
    "mcp": {"_QUICK_ROUNDS": 1, "_QUICK_SECONDS": 0.0},
    "guard": {
        "_QUICK_ROUNDS": 1,
        "_QUICK_CALLS": 2,
        "_QUICK_SPLIT_INTENTS": 4,
        "_QUICK_STORE_INTENTS": 4,
        "_STARTS": 1,
    },
    "webhooks": {"_QUICK_ROUNDS": 1, "_QUICK_DECISIONS": 3, "_QUICK_EVENTS": 20},
    "adapters": {
        "_QUICK_ROUNDS": 1,
        "_QUICK_CALLS": 2,
        "_QUICK_SERVICE_ROUNDS": 1,
        "_QUICK_SECONDS": 0.0,
        "_QUICK_MEMORY_CALLS": 2,
        "_UNTIMED": 1,
    },
    "profile": {"_QUICK_TURNS": 10, "_WARM_UP": 2},
    "routing": {"_QUICK_ROUNDS": 1, "_REQUESTS": 3},
    "memory": {"_QUICK_DECISIONS": 80},
    "vectorized": {"_QUICK_ROWS": 2_000, "_QUICK_ROUNDS": 1, "_ROWS_ONE_BY_ONE": 200},
    "audit": {"_QUICK_DECISIONS": 8, "_QUICK_ROUNDS": 1},
    "lake": {"_QUICK_DECISIONS": 8, "_QUICK_ROUNDS": 1},
    "history": {"_QUICK_ROWS": 500},
    "reviews": {"_QUICK_MANY": 50, "_QUICK_ROUNDS": 1},
    "migration": {"_QUICK_DECISIONS": 2_000, "_QUICK_ROUNDS": 1, "_ZEN_ROWS": 20},
    "detection": {"_QUICK_SEEDS": 1, "_DECISIONS": 8},
}


# None of the parts asks for a report.
SERVE_OPTIONS: Final = ["--no-analytics"]

SERVED_OTHERWISE: Final = "decide_unpinned"
"""The home whose service is not as it is by default."""


@dataclass(frozen=True, slots=True)
class Shared:
    """The service that the parts share in the short form; what they take for homes of their own leads to its home."""

    home: Path
    server: Server

    def create_key(self, home: Path, database_url: str) -> str:
        """As that of `subjects`."""
        if home.name != SERVED_OTHERWISE:
            home.symlink_to(self.home, target_is_directory=True)
        return subjects.create_key(home, database_url)

    def gate(
        self, home: Path, database_url: str, directory: Path, *, workers: int, pinned: bool = True
    ) -> AbstractContextManager[Server]:
        """As that of `subjects`."""
        if home.is_symlink():
            assert (workers, pinned) == (1, True)
            return nullcontext(self.server)
        return subjects.gate(home, database_url, directory, workers=workers, pinned=pinned)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared | None]:
    """The shared service; in the long form none."""
    if LONG:
        yield None
        return
    directory = tmp_path_factory.mktemp("shared")
    home = directory / "home"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subjects, "_SERVE_OPTIONS", SERVE_OPTIONS)
        url = subjects.sqlite_url(home)
        subjects.create_key(home, url)
        with subjects.gate(home, url, directory, workers=1) as server:
            yield Shared(home, server)


def lessen(name: str, part: ModuleType, shared: Shared, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes a part measure the least."""
    monkeypatch.setattr(subjects, "_WARM_UP_SECONDS", 0.0)
    monkeypatch.setattr(subjects, "_SERVE_OPTIONS", SERVE_OPTIONS)
    for module in (subjects, part):
        if hasattr(module, "SCOPE"):
            monkeypatch.setattr(module, "SCOPE", name)
    if hasattr(part, "WORKERS"):
        # None needs a second one.
        monkeypatch.setattr(part, "WORKERS", 1)
        monkeypatch.setattr(part, "create_key", shared.create_key)
        monkeypatch.setattr(part, "gate", shared.gate)
    for setting, value in LEAST[name].items():
        monkeypatch.setattr(part, setting, value)


@pytest.mark.parametrize("name", PARTS if LONG else LEAST)
def test_a_part_measures_and_shows_its_figures(
    name: str, shared: Shared | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "dashboard" and executable() is None:
        no_browser()
    part = PARTS[name]
    if shared is not None:
        lessen(name, part, shared, monkeypatch)
    assert part.show(part.run(quick=True)).strip()
