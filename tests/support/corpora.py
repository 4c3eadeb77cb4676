"""A scope's own corpus, about the sample rulebook, and candidates that would take the rulebook's place."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from gate.migration.freezing import freeze_case, make_file, make_index
from gate.rulebooks.facts import Facts
from gate.rulebooks.rulebook import load
from tests.support.samples import sample_rulebook

LABEL: Final = "pricing_corpus_v1"

Documents = dict[str, Any]
"""An index, and files of cases, by their names."""

DEALS: Final[Mapping[str, dict[str, Any]]] = {
    "deals.usual": {"discount_percent": 10, "margin_percent": 22},
    "deals.floor": {"discount_percent": 10, "margin_percent": 15},
    "deals.thin": {"discount_percent": 10, "margin_percent": 14},
    "deals.large": {"discount_percent": 30, "margin_percent": 40},
    "deals.unknown": {"discount_percent": 10},
}
"""The facts of each case: a rule approves the first two and blocks the third, no rule matches the fourth, and a fact of
the last is missing.
"""


def deals(**members: Any) -> Documents:
    """The corpus: `index.json` and `deals.json`."""
    rulebook = load({**sample_rulebook(), **members})
    cases = [
        freeze_case({"case_id": case_id, "title": case_id, "covers": ["deal"]}, rulebook, Facts(facts, plain=False))
        for case_id, facts in DEALS.items()
    ]
    return indexed({"deals.json": make_file(LABEL, "deals", "Deals", [rulebook], cases)})


def indexed(documents: Documents) -> Documents:
    """Documents with the index that they should have."""
    files = {name: file for name, file in documents.items() if name != "index.json"}
    return {"index.json": make_index(LABEL, files), **files}


def refactored() -> Any:
    """The sample rulebook's next version, which says the same in another way."""
    body = sample_rulebook()
    (floor,) = [rule for rule in body["rules"] if rule["rule_id"] == "block_below_margin_floor"]
    floor["condition"] = {"not": {**floor["condition"], "operator": "gte"}}
    return {**body, "version": "2026-09-01"}


def write(folder: Path, documents: Mapping[str, object]) -> Path:
    """Writes documents into a folder, each under its path, and returns the folder."""
    for name, document in documents.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(document))
    return folder


def manifest(**members: Any) -> Any:
    """A manifest that proposes `pricing.json` and expects nothing to drift."""
    return {
        "schema_version": "rulebook_migration_v1",
        "migration_id": "pricing.2026-09",
        "status": "proposed",
        "compatibility_class": "rulebook",
        "candidate": {"rulebooks": [{"rulebook_id": "pricing_exception", "path": "pricing.json"}]},
        "expected_drift": {"policy": "none"},
        "approval": {"status": "pending"},
        **members,
    }


def expecting(*fixtures: str, fields: tuple[str, ...] = ("rulebook", "attestation_hash")) -> dict[str, Any]:
    """The member expected_drift of a manifest that expects drift."""
    return {"policy": "requires_approval", "fixtures": list(fixtures), "fields": list(fields)}


APPROVED: Final[dict[str, Any]] = {
    "status": "approved",
    "approval": {"status": "approved", "approved_by": "ben", "approved_at": "2026-09-01T10:00:00.000Z"},
}
"""The members of a manifest that is approved."""
