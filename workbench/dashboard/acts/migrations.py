"""Migrations: a draft is proved and proposed; somebody else approves; it is applied, and undone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from gate.decisions.migrations.documents import Proposal, ProposedRulebook
from gate.decisions.migrations.rules import require_act
from gate.drafting.diagnosis import diagnose
from gate.encoding.canonical import content_hash
from gate.encoding.strict_json import Json, JsonObject
from gate.errors import OperatorError
from gate.ids import timestamp
from gate.migration.drafting import draft_manifest
from gate.migration.manifest import NamedRulebook, read_manifest
from workbench.dashboard.acts.turn import Answer, Turn
from workbench.dashboard.studio.proofs import Asked, DryRun, Key
from workbench.dashboard.views.location import Location
from workbench.dashboard.views.migrations import proving


def dry_run(turn: Turn) -> Answer:
    """Begins the dry run of a draft: {draft, migration_id, summary?, metric?, since?, history?}."""
    draft = turn.store.drafts.draft(turn.who.scope_id, turn.text("draft"))
    found = diagnose(draft.text)
    if found.rulebook is None or found.authored is None:
        raise OperatorError("DRAFT_NOT_VALID", "The draft is not valid yet, so a dry run cannot start. Fix it first.")
    rulebook, user = found.rulebook, turn.who.user
    migration_id, summary = turn.text("migration_id").strip(), (turn.word("summary") or "").strip()
    manifest = draft_manifest(
        migration_id, [NamedRulebook(rulebook.rulebook_id, "candidate.yaml")], summary=summary or None
    )
    # Before the work, so that nobody waits in vain.
    read_manifest(manifest)
    turn.store.migration_acts.require_proposable(turn.scope, user, manifest, [rulebook], "")
    cases = _cases(turn)
    metric, since, history = turn.word("metric"), turn.word("since"), turn.word("history")
    arguments = {
        **turn.store.instance_address,
        "scope": turn.who.scope,
        "migration_id": migration_id,
        "summary": summary,
        "body": rulebook.body,
        "annotations": found.authored.annotations,
        "cases": cases,
        "metric": metric,
        "since": since,
        "history": history,
    }
    asked = Asked(
        migration_id,
        summary,
        metric,
        since,
        history,
        rulebook.hash,
        _hash_of(cases),
        user.name,
        timestamp(turn.now),
    )
    turn.proofs.begin(_key(turn), asked, cast("JsonObject", arguments))
    return watch(turn)


def watch(turn: Turn) -> Answer:
    """Shows the dry run of a draft and its progress: {draft}."""
    key, seat, scope = _key(turn), turn.seat, turn.who.scope
    seat.stop_watching()
    draft = turn.store.drafts.draft(*key)
    rulebook, cases = diagnose(draft.text).rulebook, _hash_of(_cases(turn))

    def shown(run: DryRun) -> Answer:
        same = rulebook is not None and (rulebook.hash, cases) == (run.asked.hash, run.asked.cases)
        return {"parts": {"proof": str(proving.proof(run, draft.draft_id, scope, stale=not same))}}

    def show(run: DryRun) -> None:
        seat.tell(shown(run))

    seat.watching = turn.proofs.watch(key, show)
    run = turn.proofs.find(key)
    return {} if run is None else shown(run)


def stop(turn: Turn) -> Answer:
    """Ends the dry run of a draft, no matter who began it: {draft}."""
    require_act(turn.who.user, turn.scope, "draft", code="DRAFT_FORBIDDEN")
    turn.proofs.cancel(_key(turn))
    return {}


def propose(turn: Turn) -> Answer:
    """Proposes a draft with the evidence of its dry run: {draft, note?}."""
    require_act(turn.who.user, turn.scope, "draft", code="DRAFT_FORBIDDEN")
    run = turn.proofs.find(_key(turn))
    if run is None or run.result is None:
        raise OperatorError(
            "DRY_RUN_MISSING",
            "The dry run of this draft no longer exists, for example after a restart. Start it again.",
        )
    if run.asked.history is not None:
        raise OperatorError(
            "DRY_RUN_MISSING",
            f"The dry run covers the imported history {run.asked.history}, which cannot be evidence. Start one over "
            f"the decisions in the chain.",
        )
    found = diagnose(turn.store.drafts.draft(turn.who.scope_id, turn.text("draft")).text)
    if found.rulebook is None or found.authored is None or found.rulebook.hash != run.asked.hash:
        raise OperatorError("DRY_RUN_STALE", "The draft has changed since its dry run. Start the dry run again.")
    if _hash_of(_cases(turn)) != run.asked.cases:
        raise OperatorError(
            "DRY_RUN_STALE", "The draft's cases have changed since its dry run. Start the dry run again."
        )
    result: Mapping[str, Any] = run.result
    proposed = ProposedRulebook(found.rulebook, found.authored.annotations, result["dependency"])
    proposal = Proposal(result["manifest"], [proposed], result["evidence"])
    turn.store.migration_acts.propose(turn.scope, turn.who.user, proposal, turn.word("note") or "")
    turn.proofs.forget(_key(turn))
    return {"go": _address(turn, run.asked.migration_id)}


def approve(turn: Turn) -> Answer:
    """Approves a migration on the evidence that the page shows: {migration, evidence, note?}."""
    turn.store.migration_acts.approve(
        turn.scope, turn.who.user, turn.text("migration"), turn.text("evidence"), turn.word("note") or ""
    )
    return {"go": _address(turn, turn.text("migration"))}


def reject(turn: Turn) -> Answer:
    """Rejects a migration, or withdraws one's own: {migration, note?}."""
    turn.store.migration_acts.reject(turn.scope, turn.who.user, turn.text("migration"), turn.word("note") or "")
    return {"go": _address(turn, turn.text("migration"))}


def apply(turn: Turn) -> Answer:
    """Routes to the candidates of an approved migration: {migration, note?}."""
    turn.store.migration_acts.apply(turn.scope, turn.who.user, turn.text("migration"), turn.word("note") or "")
    return {"go": _address(turn, turn.text("migration"))}


def roll_back(turn: Turn) -> Answer:
    """Routes a rulebook id back to the version before: {migration, rulebook, active, note?}."""
    turn.store.migration_acts.rollback(
        turn.scope, turn.who.user, turn.text("rulebook"), turn.word("note") or "", active=turn.text("active")
    )
    return {"go": _address(turn, turn.text("migration"))}


def start_shadow(turn: Turn) -> Answer:
    """Starts the shadow of a migration: {migration}."""
    turn.store.migration_acts.start_shadow(turn.scope, turn.who.user, turn.text("migration"))
    return {"go": _address(turn, turn.text("migration"))}


def stop_shadow(turn: Turn) -> Answer:
    """Stops the shadow of a migration: {migration}."""
    turn.store.migration_acts.stop_shadow(turn.scope, turn.who.user, turn.text("migration"))
    return {"go": _address(turn, turn.text("migration"))}


def _cases(turn: Turn) -> list[JsonObject]:
    kept = turn.store.draft_cases.of(turn.who.scope_id, turn.text("draft"))
    cases = [each.case for each in kept]
    return [cast("JsonObject", {"name": case.name, "facts": case.facts, "expect": case.expect}) for case in cases]


def _hash_of(cases: list[JsonObject]) -> str:
    return content_hash(cast("Json", cases))


def _key(turn: Turn) -> Key:
    return turn.who.scope_id, turn.text("draft")


def _address(turn: Turn, migration_id: str) -> str:
    return Location("migration", scope=turn.who.scope, id=migration_id).url
