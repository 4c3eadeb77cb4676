"""The evidence of a migration: one JSON document with everything that a person who approves has to know, and its hash.

    evidence = make_evidence(manifest, corpus, [rulebook_evidence(...)])
    evidence["evidence_hash"]

It is deterministic: the same manifest, candidates, bases, corpus, cases, and history give the same hash. So it contains
no time, place, or author of its own. `schemas/rulebook-migration-evidence-v1.schema.json` has its shape.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final, TypedDict

from gate.encoding.canonical import content_hash
from gate.labels import MIGRATION_EVIDENCE
from gate.records.changes import Version
from gate.rulebooks.analysis import Analysis, NotDecided, Questions
from gate.rulebooks.analysis.difference import Difference
from gate.rulebooks.edits import find_edits
from gate.rulebooks.rulebook import Rulebook
from gate.rulebooks.testing.cases import Case
from gate.rulebooks.testing.coverage import GOAL_KINDS, measure
from gate.rulebooks.testing.exact import ExactFinder
from gate.rulebooks.testing.failures import Explainer
from gate.rulebooks.testing.runs import run

MAX_FAILURES: Final = 50
"""How many failing cases are listed one by one."""

MAX_HOLES: Final = 50
"""How many holes of the coverage are listed one by one."""


class RulebookEvidence(TypedDict):
    """The evidence about one candidate.

    The edits, the difference, and the history compare it with the base: the version that its route leads to.
    """

    rulebook_id: str
    base: Version | None
    candidate: Version
    edits: list[dict[str, str]] | None
    difference: dict[str, Any] | None
    analysis: dict[str, Any]
    tests: dict[str, Any] | None
    history: dict[str, Any]


class Evidence(TypedDict):
    """The evidence of a migration."""

    evidence_version: str
    migration_id: str
    manifest_hash: str
    rulebooks: list[RulebookEvidence]
    corpus: dict[str, Any]
    evidence_hash: str


def rulebook_evidence(
    candidate: Rulebook,
    base: Rulebook | None,
    *,
    difference: Difference | None,
    analysis: Analysis,
    cases: Sequence[Case] | None,
    history: Mapping[str, Any],
) -> RulebookEvidence:
    """The evidence about one candidate.

    Args:
        candidate: The rulebook that is proposed.
        base: The version that its route leads to; None for a first route.
        difference: How it differs from the base; None where there is none.
        analysis: What holds of it for all facts.
        cases: The cases that its author gave; None where there are none.
        history: Its decisions about past requests, from the dry run.
    """
    return {
        "rulebook_id": candidate.rulebook_id,
        "base": None if base is None else _version(base),
        "candidate": _version(candidate),
        "edits": None if base is None else [asdict(edit) for edit in find_edits(base.body, candidate.body)],
        "difference": None if difference is None else difference.to_dict(),
        "analysis": {name: value for name, value in analysis.to_dict().items() if name != "difference"},
        "tests": None if cases is None else _tests(candidate, cases),
        "history": dict(history),
    }


def make_evidence(
    manifest: Mapping[str, Any], corpus: Mapping[str, Any], rulebooks: Sequence[RulebookEvidence]
) -> Evidence:
    """The evidence of a migration.

    Args:
        manifest: Its manifest.
        corpus: What the dry run over the corpus found.
        rulebooks: The evidence about each candidate.
    """
    found: dict[str, Any] = {
        "evidence_version": MIGRATION_EVIDENCE,
        "migration_id": manifest["migration_id"],
        "manifest_hash": content_hash(manifest),
        "rulebooks": sorted(rulebooks, key=lambda of: of["rulebook_id"]),
        # Whether the gate passes depends on the approval, which rests on this.
        "corpus": {name: value for name, value in corpus.items() if name != "gate_passed"},
    }
    # Hashed as it is stored: what JSON makes the same is the same evidence.
    evidence: Evidence = {**found, "evidence_hash": content_hash(found)}  # type: ignore[typeddict-item]
    return evidence


def _version(rulebook: Rulebook) -> Version:
    return {"version": rulebook.version, "hash": rulebook.hash}


def _tests(rulebook: Rulebook, cases: Sequence[Case]) -> dict[str, Any]:
    """Which cases hold, and what they cover."""
    results = run(rulebook, cases)
    explainer = Explainer(rulebook)
    failed = [result for result in results if not result.held]
    failures = []
    for result in failed[:MAX_FAILURES]:
        reasons = explainer.reasons(result)
        said = "; ".join(reason.text for reason in reasons)
        rules = {reason.rule_id: None for reason in reasons if reason.rule_id is not None}
        failures.append({"case": result.case.name, "message": f"{result.case.name}: {said}.", "rules": list(rules)})
    coverage = measure(rulebook, cases)
    try:
        with Questions(rulebook.body) as questions:
            coverage = coverage.judged(ExactFinder(questions))
    except NotDecided:
        # Then what no facts can show counts as a hole.
        pass
    told = [{"name": case.name, "facts": case.facts, "expect": case.expect} for case in cases]
    return {
        "cases": len(results),
        "failed": len(failed),
        "cases_hash": content_hash(told),
        "failures": failures,
        "coverage": {kind: {"met": coverage.share(kind).part, "of": coverage.share(kind).whole} for kind in GOAL_KINDS},
        "holes": [hole.goal.description for hole in coverage.holes[:MAX_HOLES]],
    }
