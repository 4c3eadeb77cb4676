"""Every part of the benchmarks runs and shows its figures, so that none breaks unseen.

`make torture` gives each what `python -m bench --quick` gives it. `make test` gives most the least that they can
measure, and leaves out those whose servers take more processor time than all the others together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pytest

from bench import subjects
from bench.__main__ import PARTS
from tests.support.browser import executable, no_browser
from tests.support.torture import LONG

pytestmark = pytest.mark.heavy

# A round of no time sends one request over each connection.
LEAST: Final[Mapping[str, Mapping[str, Any]]] = {
    "evaluation": {"_QUICK_ROUNDS": 1, "_QUICK_SECONDS": 0.001},
    "service": {"_QUICK_ROUNDS": 1, "_QUICK_SECONDS": 0.0},
    "guard": {
        "_QUICK_ROUNDS": 1,
        "_QUICK_CALLS": 2,
        "_QUICK_SPLIT_INTENTS": 4,
        "_QUICK_STORE_INTENTS": 4,
        "_STARTS": 1,
    },
    "adapters": {
        "_QUICK_ROUNDS": 1,
        "_QUICK_CALLS": 2,
        "_QUICK_SERVICE_ROUNDS": 1,
        "_QUICK_SECONDS": 0.0,
        "_QUICK_MEMORY_CALLS": 2,
        "_UNTIMED": 1,
    },
    "profile": {"_QUICK_REPETITIONS": 10, "_WARM_UP": 2},
    "memory": {"_QUICK_DECISIONS": 80},
    "vectorized": {"_QUICK_ROWS": 2_000, "_QUICK_ROUNDS": 1, "_ROWS_ONE_BY_ONE": 200},
    "audit": {"_QUICK_DECISIONS": 8, "_QUICK_ROUNDS": 1},
    "lake": {"_QUICK_DECISIONS": 8, "_QUICK_ROUNDS": 1},
    "detection": {"_QUICK_SEEDS": 1, "_DECISIONS": 8},
}


@pytest.mark.parametrize("name", PARTS if LONG else LEAST)
def test_a_part_measures_and_shows_its_figures(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if name == "dashboard" and executable() is None:
        no_browser()
    part = PARTS[name]
    if not LONG:
        monkeypatch.setattr(subjects, "_WARM_UP_SECONDS", 0.0)
        # None of these asks for a report, or needs a second worker.
        monkeypatch.setattr(subjects, "_SERVE_OPTIONS", ["--no-analytics"])
        if hasattr(part, "WORKERS"):
            monkeypatch.setattr(part, "WORKERS", 1)
        for setting, value in LEAST[name].items():
            monkeypatch.setattr(part, setting, value)
    assert part.show(part.run(quick=True)).strip()
