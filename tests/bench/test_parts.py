"""Every part of the benchmarks runs and shows its figures, so that none breaks unseen.

`make test` gives each the least that it can measure, `make torture` what `python -m bench --quick` gives it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pytest

from bench.__main__ import PARTS
from tests.support.torture import LONG

pytestmark = pytest.mark.heavy

LEAST: Final[Mapping[str, Mapping[str, Any]]] = {
    "evaluation": {"_QUICK_ROUNDS": 1, "_QUICK_SECONDS": 0.001},
    "service": {"_QUICK_ROUNDS": 1, "_QUICK_SECONDS": 0.1},
    "lifecycle": {"_QUICK_ROUNDS": 1, "_QUICK_SECONDS": 0.1, "_QUICK_DECISIONS": 200, "_RECEIPTS": 20, "_EXPORTS": 1},
    "guard": {
        "_QUICK_ROUNDS": 1,
        "_QUICK_CALLS": 2,
        "_QUICK_SPLIT_INTENTS": 4,
        "_QUICK_STORE_INTENTS": 4,
        "_STARTS": 2,
    },
    "adapters": {
        "_QUICK_ROUNDS": 1,
        "_QUICK_CALLS": 2,
        "_QUICK_SERVICE_ROUNDS": 1,
        "_QUICK_SECONDS": 0.1,
        "_QUICK_MEMORY_CALLS": 2,
        "_UNTIMED": 1,
    },
    "profile": {"_QUICK_REPETITIONS": 10, "_WARM_UP": 2},
    "postgres": {"_QUICK_ROUNDS": 1, "_QUICK_SECONDS": 0.1},
    "memory": {"_QUICK_DECISIONS": 100},
    "vectorized": {"_QUICK_ROWS": 2_000, "_QUICK_ROUNDS": 1, "_ROWS_ONE_BY_ONE": 200},
    "lake": {"_QUICK_DECISIONS": 200, "_QUICK_ROUNDS": 1},
    "detection": {"_QUICK_SEEDS": 1, "_DECISIONS": 1_000},
    "benchmarks": {"_QUICK_ROUNDS": 1, "_FREEZES": 1},
    "reports": {
        "_QUICK_PART": 100,
        "_QUICK_REPORT_ROUNDS": 1,
        "_QUICK_ROLL_UP_ROUNDS": 1,
        "_QUICK_LOAD_ROUNDS": 1,
    },
    "size": {"_FEW": 20, "_QUICK_MANY": 200, "_QUICK_ROUNDS": 1, "_QUICK_REQUESTS": 100},
}


def test_the_least_of_every_part_is_known() -> None:
    assert list(LEAST) == list(PARTS)


@pytest.mark.parametrize("name", PARTS)
def test_a_part_measures_and_shows_its_figures(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    part = PARTS[name]
    for setting, value in () if LONG else LEAST[name].items():
        monkeypatch.setattr(part, setting, value)
    assert part.show(part.run(quick=True)).strip()
