"""Every part of the benchmarks runs and shows its figures, so that none breaks unseen.

`make test` gives each the least that it can measure, `make torture` what `python -m bench --quick` gives it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pytest

from bench import subjects
from bench.__main__ import PARTS
from tests.support.torture import LONG

pytestmark = pytest.mark.heavy

# A round of no time sends one request over each connection.
LEAST: Final[Mapping[str, Mapping[str, Any]]] = {
    "evaluation": {"_QUICK_ROUNDS": 1, "_QUICK_SECONDS": 0.001},
    "service": {"_QUICK_ROUNDS": 1, "_QUICK_SECONDS": 0.0},
    "lifecycle": {"_QUICK_ROUNDS": 1, "_QUICK_SECONDS": 0.0, "_QUICK_DECISIONS": 20, "_RECEIPTS": 3, "_EXPORTS": 1},
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
    "postgres": {"_QUICK_ROUNDS": 1, "_QUICK_SECONDS": 0.0},
    "memory": {"_QUICK_DECISIONS": 80},
    "vectorized": {"_QUICK_ROWS": 2_000, "_QUICK_ROUNDS": 1, "_ROWS_ONE_BY_ONE": 200},
    "audit": {"_QUICK_DECISIONS": 8, "_QUICK_ROUNDS": 1},
    "lake": {"_QUICK_DECISIONS": 8, "_QUICK_ROUNDS": 1},
    "detection": {"_QUICK_SEEDS": 1, "_DECISIONS": 8},
    # So many that the outer percentiles are told as well.
    "benchmarks": {"_QUICK_SCOPES": 21, "_QUICK_ROUNDS": 1, "_FREEZES": 1},
    "reports": {
        "_QUICK_PART": 100,
        "_QUICK_REPORT_ROUNDS": 1,
        "_REPORTS_BEFORE": 1,
        "_QUICK_ROLL_UP_ROUNDS": 1,
        "_QUICK_LOAD_ROUNDS": 1,
        "_QUICK_LOAD_SECONDS": 0.1,
        "_LIMIT": 1_000,
    },
    "size": {"_FEW": 2, "_QUICK_MANY": 20, "_QUICK_ROUNDS": 1, "_QUICK_REQUESTS": 16},
}


# These ask for what a server's process of reports computes; the others' servers need not load that.
WITH_REPORTS: Final = {"lifecycle", "benchmarks", "reports"}


def test_the_least_of_every_part_is_known() -> None:
    assert list(LEAST) == list(PARTS)


@pytest.mark.parametrize("name", PARTS)
def test_a_part_measures_and_shows_its_figures(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    part = PARTS[name]
    if not LONG:
        monkeypatch.setattr(subjects, "_WARM_UP_SECONDS", 0.0)
        if name not in WITH_REPORTS:
            monkeypatch.setattr(subjects, "_SERVE_OPTIONS", ["--no-analytics"])
        # What the second worker of a server does besides, the part on PostgreSQL measures.
        if hasattr(part, "WORKERS"):
            monkeypatch.setattr(part, "WORKERS", 1)
        for setting, value in LEAST[name].items():
            monkeypatch.setattr(part, setting, value)
        if name == "postgres":
            # It makes the profile of its own server as well.
            for setting, value in LEAST["profile"].items():
                monkeypatch.setattr(PARTS["profile"], setting, value)
    assert part.show(part.run(quick=True)).strip()
