"""The result of a shadow for people: as sentences, and as the report of its migration over the shadow's decisions.

    for line in shadow_lines(shadow): print(line.text)
    as_markdown(document, live_evidence(stored.evidence, shadow))

Such a report is not evidence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gate.errors import OperatorError
from gate.ledger.shadows import Shadow
from workbench.engines.wording import counted
from workbench.migration.headline import LOST, Line
from workbench.migration.sentences import rate


def shadow_lines(shadow: Shadow) -> list[Line]:
    """The sentences about a shadow: since when it runs, how far it looked, and what would be decided otherwise."""
    return list(_lines(shadow))


def _lines(shadow: Shadow) -> Iterator[Line]:
    yield Line(
        f"The shadow of {shadow.migration_id}, started by {shadow.started_by}, has run since {shadow.started_at}, "
        f"from chain position {shadow.from_position:,}."
    )
    if shadow.failure is not None:
        yield Line(f"The last update failed: {shadow.failure}", "warning")
    if shadow.found is None:
        yield Line(
            "There is no result yet. A service that runs with reports updates the shadow a few seconds after each "
            "export."
        )
        return
    yield Line(f"Last update: {shadow.found_at}, up to chain position {position(shadow):,}.")
    for history in shadow.found["rulebooks"].values():
        yield from _found(history)


def position(shadow: Shadow) -> int:
    """Up to which chain position a shadow that found something looked."""
    found: Mapping[str, Any] = shadow.found or {}
    return int(found["read_at"]["chain_position"])


def _found(history: Mapping[str, Any]) -> Iterator[Line]:
    base, candidate = history["base"], history["candidate"]["version"]
    beside = "the decisions as made" if base is None else f"the active version {base['version']}"
    decided = history["decisions"]
    yield Line(
        f"{history['rulebook_id']}: version {candidate} compared with {beside}; {counted(decided, 'decision')} so far."
    )
    redecided = history["redecided"]
    for lost in history["not_redecided"]:
        yield Line(
            f"{counted(lost['decisions'], 'decision')} cannot be decided again: {LOST[lost['reason']]}.", "warning"
        )
    if not redecided:
        return
    changed, verdicts = history["changed"]["decisions"], history["verdict_changed"]
    if not changed:
        all_ = "The decision" if redecided == 1 else f"All {counted(redecided, 'decision')}"
        yield Line(f"{all_} would be the same.", "good")
        return
    yield Line(
        f"{changed:,} of {counted(redecided, 'decision')} would be decided differently; {verdicts['decisions']:,} "
        f"would get another verdict ({rate(verdicts)}).",
        "warning",
    )
    blocked, approved = history["newly_blocked"], history["newly_approved"]["decisions"]
    if approved:
        yield Line(f"Newly approved: {approved:,}.", "danger")
    if blocked["decisions"]:
        yield Line(
            f"No longer approved: {blocked['decisions']:,} ({blocked['to_no']:,} blocked, {blocked['to_review']:,} "
            f"held).",
            "warning",
        )


def live_evidence(evidence: Mapping[str, Any], shadow: Shadow) -> dict[str, Any]:
    """The data of a migration's report, with the shadow's decisions instead of the past ones.

    It is not evidence, cannot be approved, and has no `evidence_hash`; `proposal_evidence_hash` is the proposal's.

    Args:
        evidence: The evidence of the latest proposal.
        shadow: The shadow of that migration.

    Returns:
        The evidence with other histories, and `shadow`: {started_at, started_by, from_position, looked_at, decisions}.

    Raises:
        OperatorError: `SHADOW_NOT_LOOKED_AT`: it has no result yet. `EVIDENCE_STALE`: the evidence compares with a
            version that is no longer active.
    """
    if shadow.found is None:
        raise OperatorError(
            "SHADOW_NOT_LOOKED_AT",
            f"The shadow of {shadow.migration_id} has no result yet. A service that runs with reports updates it a "
            "few seconds after each export; try again then.",
        )
    histories = shadow.found["rulebooks"]
    for of in evidence["rulebooks"]:
        if histories[of["rulebook_id"]]["base"] != of["base"]:
            raise OperatorError(
                "EVIDENCE_STALE",
                f"The evidence of {shadow.migration_id} compares {of['rulebook_id']} with a version that is no "
                "longer active. Propose the migration again. `gate migrate shadow show` shows the shadow's results.",
            )
    told = {
        "started_at": shadow.started_at,
        "started_by": shadow.started_by,
        "from_position": shadow.from_position,
        "looked_at": shadow.found_at,
        "decisions": sum(history["decisions"] for history in histories.values()),
    }
    rulebooks = [{**of, "history": histories[of["rulebook_id"]]} for of in evidence["rulebooks"]]
    rest = {name: value for name, value in evidence.items() if name != "evidence_hash"}
    return {**rest, "rulebooks": rulebooks, "shadow": told, "proposal_evidence_hash": evidence["evidence_hash"]}
