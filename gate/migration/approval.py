"""What an approval rests on: evidence that is still of today, and a gate that it passes.

Evidence is about a base, a candidate, a corpus, and a stretch of history. If one of them has changed, an approver would
approve something that nobody has seen, so the approval is void.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from gate.records.changes import Version

MAX_NEW_SHARE: Final = 0.05
"""How many more decisions of a rulebook there may be than its evidence saw, as a share of those, before it is stale."""


@dataclass(frozen=True, slots=True)
class Today:
    """The current state to compare evidence with.

    Attributes:
        active: The version that each rulebook id of the evidence leads to; None where there is no route.
        corpus_hash: The hash of this release's corpus; None where the evidence is about another corpus.
        decided_since: How many decisions of each rulebook id came after the position that its history was read at.
    """

    active: Mapping[str, Version | None]
    corpus_hash: str | None
    decided_since: Mapping[str, int]


def find_staleness(evidence: Mapping[str, Any], today: Today, share: float = MAX_NEW_SHARE) -> list[str]:
    """Why evidence is stale, as sentences; empty where it is not.

    Args:
        evidence: The evidence.
        today: The state to compare it with.
        share: As `MAX_NEW_SHARE`.
    """
    return list(_staleness(evidence, today, share))


def _staleness(evidence: Mapping[str, Any], today: Today, share: float) -> Iterator[str]:
    for of in evidence["rulebooks"]:
        rulebook_id, base, active = of["rulebook_id"], of["base"], today.active[of["rulebook_id"]]
        if base != active:
            yield (
                f"The evidence compares {rulebook_id} with {_named(base)}, but its route now leads to {_named(active)}."
            )
        seen, since = of["history"]["decisions"], today.decided_since[rulebook_id]
        if since > share * seen:
            decisions = "decision" if since == 1 else "decisions"
            yield (
                f"{since:,} {decisions} of {rulebook_id} came after the {seen:,} in the evidence, more than the "
                f"allowed {share:.0%}."
            )
    corpus_hash = evidence["corpus"]["corpus_hash"]
    if today.corpus_hash not in (None, corpus_hash):
        yield f"The evidence is about the corpus {corpus_hash}, but this release has {today.corpus_hash}."


def _named(version: Version | None) -> str:
    return "no version" if version is None else version["version"]


def find_gate_faults(evidence: Mapping[str, Any]) -> list[str]:
    """Why a migration cannot pass the gate, as sentences; empty if it can. An approval does not change that.

    Args:
        evidence: Its evidence.
    """
    return list(_gate_faults(evidence))


def _gate_faults(evidence: Mapping[str, Any]) -> Iterator[str]:
    corpus = evidence["corpus"]
    for found in corpus["unexpected"]:
        fields = ", ".join(found["fields"])
        yield f"The fixture {found['fixture']} drifts in {fields}, which the manifest does not expect."
    if not corpus["ok"]:
        yield from corpus["errors"]
    if evidence["rulebooks"] and all(_is_in_force(of) for of in evidence["rulebooks"]):
        yield "Every candidate is already active, so there is nothing to apply."
    for of in evidence["rulebooks"]:
        history, tests = of["history"], of["tests"]
        if not history["decisions"] and (history["since"] or history["until"]):
            yield (
                f"{of['rulebook_id']} made no decision in the selected time, so the evidence proves nothing. "
                "Select more of the past, or all of it."
            )
        for failure in () if tests is None else tests["failures"]:
            yield f"A case of {of['rulebook_id']} fails: {failure['message']}"


def _is_in_force(of: Mapping[str, Any]) -> bool:
    return of["base"] is not None and bool(of["base"]["hash"] == of["candidate"]["hash"])


def needs_approval(manifest: Mapping[str, Any], evidence: Mapping[str, Any]) -> bool:
    """Whether a person has to approve a migration before it is applied.

    No approval is needed only if the manifest says so and the evidence proves that nothing changes. That is, each
    candidate has the result of its base for all facts, and no fixture drifts.
    """
    if manifest["approval"]["status"] != "not_required":
        return True
    proved = all(of["difference"] is not None and of["difference"]["equal"] is True for of in evidence["rulebooks"])
    kept = not (manifest["candidate"].get("adapters") or manifest["candidate"].get("evaluator_version"))
    return not (proved and kept and evidence["corpus"]["ok"])
