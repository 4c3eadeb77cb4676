"""A first manifest for candidates: proposed, not approved, expecting exactly the drift that a corpus shows.

    draft = draft_manifest("pricing.2026-09", [NamedRulebook("pricing_exception", "pricing.json")])
    draft = expecting(draft, result.drift)

It is the author's to read and correct: that drift happens does not mean that anybody wants it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gate.labels import MIGRATION
from gate.migration.drift import FIELDS, FixtureDrift
from gate.migration.manifest import REQUIRES_APPROVAL, NamedRulebook


def draft_manifest(
    migration_id: str,
    rulebooks: Sequence[NamedRulebook],
    *,
    compatibility_class: str = "rulebook",
    summary: str | None = None,
    corpus: str | None = None,
) -> dict[str, Any]:
    """The body of a manifest that expects no drift, in the order in which people read it.

    Args:
        migration_id: The migration's name.
        rulebooks: The candidates; each path is relative to the manifest's folder.
        compatibility_class: What changes.
        summary: What changes and why; None where the author does not say.
        corpus: The path of a corpus' index, likewise relative; None for the published corpus.
    """
    body: dict[str, Any] = {
        "schema_version": MIGRATION,
        "migration_id": migration_id,
        "status": "proposed",
        "compatibility_class": compatibility_class,
    }
    if summary is not None:
        body["summary"] = summary
    if corpus is not None:
        body["corpus"] = corpus
    return {
        **body,
        "candidate": {"rulebooks": [of._asdict() for of in rulebooks]},
        "expected_drift": {"policy": "none"},
        "approval": {"status": "pending"},
    }


def expecting(body: Mapping[str, Any], drift: Sequence[FixtureDrift]) -> dict[str, Any]:
    """A manifest's body that expects exactly some drift.

    Approval stays pending also where nothing drifts: a corpus shows some facts, and not all.

    Args:
        body: The body.
        drift: The fixtures that drift, in the order of the corpus.
    """
    if not drift:
        return {**body, "expected_drift": {"policy": "none"}}
    drifting = {name for of in drift for name in of.fields}
    expected = {
        "policy": REQUIRES_APPROVAL,
        "fixtures": [of.fixture for of in drift],
        "fields": [name for name in FIELDS if name in drifting],
    }
    return {**body, "expected_drift": expected}
