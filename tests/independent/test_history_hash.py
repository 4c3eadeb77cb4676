"""history_hash of the sample history, computed again in plain Python, and frozen."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import yaml

from tests.workbench.history.importing import DATA, NAME, SCOPE, SCOPE_ID, sample_plan
from workbench.history import upkeep
from workbench.history.importing import import_history

GOLDEN = "fbb203908683bc1fda8eb7cb6951ba9d2e54e09e836f65d6080f305da5b0d735"


def hashed(value: Any) -> str:
    """SHA-256 of JSON with sorted keys and no white space, which is canonical for ASCII and whole numbers."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def expected(erased: list[str]) -> str:
    return hashed(
        {
            "history_version": "decision_history_v1",
            "scope_hash": hashed({"scope": SCOPE_ID}),
            "files": [hashlib.sha256((DATA / "refunds.csv").read_bytes()).hexdigest()],
            "map_hash": hashed(yaml.safe_load((DATA / "refunds.map.yaml").read_text())),
            "importer_version": "decision_history_importer_v1",
            "rows": 240,
            "refused": 0,
            "erased": erased,
        }
    )


def test_the_hash_of_a_history_is_that_of_its_description(tmp_path: Path) -> None:
    plan = sample_plan(tmp_path / "lake")
    found = import_history(plan).found
    assert found is not None
    assert found.history_hash == expected([])
    erased = upkeep.erase(plan.lake, SCOPE_ID, SCOPE, NAME, ["R-0009", "R-0002"]).found
    assert erased.history_hash == expected(["R-0002", "R-0009"])


def test_the_hash_of_the_sample_is_frozen(tmp_path: Path) -> None:
    found = import_history(sample_plan(tmp_path / "lake")).found
    assert found is not None
    assert found.history_hash == GOLDEN
