"""One migration: its evidence, which reads like the report, and what may be done with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from gate.decisions.migrations.documents import StoredMigration
from gate.ledger.shadows import Shadow
from gate.migration.approval import find_gate_faults, needs_approval
from gate.records.changes import RouteEntry
from workbench.dashboard.store.access import Access
from workbench.dashboard.views.html import render
from workbench.dashboard.views.location import Location
from workbench.dashboard.views.migrations.listing import OPEN, TONES
from workbench.dashboard.views.page import Page
from workbench.engines.rendering import cut
from workbench.engines.wording import counted
from workbench.migration.report import as_fragment
from workbench.shadows.live import shadow_lines


def migration(
    location: Location,
    stored: StoredMigration,
    document: Mapping[str, Any],
    routes: Mapping[str, Sequence[RouteEntry]],
    shadow: Shadow | None,
    who: Access,
    *,
    self_approval: bool,
) -> Page:
    """One migration.

    Args:
        location: Where it is.
        stored: The migration.
        document: The same as `Migrations.document` says, with why its evidence is stale.
        routes: The routes of its rulebook ids, by id.
        shadow: Its shadow; None where none runs.
        who: The user.
        self_approval: Whether authors may approve their own.
    """
    standing, evidence = stored.standing, stored.evidence
    own = standing.author == who.user.name
    faults = find_gate_faults(evidence)
    stale = list(document["stale"])
    is_open = standing.state in OPEN
    closed = bool(faults or stale)
    needed = needs_approval(stored.manifest, evidence)
    moves = who.may("draft") or who.may("approve")

    def link(decision_id: str) -> str:
        return Location("decision", scope=location.scope, id=decision_id).url

    context = {
        "id": standing.migration_id,
        "evidence": standing.evidence_hash,
        "state": standing.state.replace("_", " "),
        "tone": TONES.get(standing.state, ""),
        "author": standing.author,
        "decided": None
        if standing.decided is None
        else f"{standing.decided['event'].replace('_', ' ')} by {cut(standing.decided['actor']['id'])}",
        "own": own,
        "approves": is_open and standing.status == "proposed" and who.may("approve") and (self_approval or not own),
        "rejects": is_open and (who.may("approve") or own),
        "waits": is_open and standing.status == "proposed" and not who.may("approve") and needed,
        "applies": is_open and moves and (standing.status == "approved" or not needed),
        "closed": closed,
        "consequence": _consequence(evidence, routes),
        "backs": _backs(standing.migration_id, routes) if moves else [],
        "shadow": None if shadow is None else shadow_lines(shadow),
        "shadows": is_open and moves,
        "report": as_fragment(document, evidence, link),
        "downloads": [
            (ending, f"/download/report?{_query(location, standing.migration_id, ending)}")
            for ending in ("html", "md", "json")
        ],
        "listing": Location("migrations", scope=location.scope).url,
    }
    title = f"{standing.migration_id}: {standing.state.replace('_', ' ')}"
    return Page(location, title, render("migration.html", context))


def _query(location: Location, migration_id: str, ending: str) -> str:
    return urlencode({"scope": location.scope or "", "id": migration_id, "format": ending})


def _consequence(evidence: Mapping[str, Any], routes: Mapping[str, Sequence[RouteEntry]]) -> str:
    """What applying comes to, as sentences for who confirms it."""
    told = []
    for of in evidence["rulebooks"]:
        before = routes.get(of["rulebook_id"])
        instead = f" instead of {before[-1]['to']['version']}" if before else ""
        told.append(
            f"From the next decision on, version {of['candidate']['version']} decides {of['rulebook_id']}{instead}."
        )
        history = of["history"]
        if history["redecided"]:
            changed, approved, blocked = (
                history[name]["decisions"] for name in ("verdict_changed", "newly_approved", "newly_blocked")
            )
            told.append(
                f"Of {counted(history['redecided'], 'past decision')}, {changed:,} would have had another verdict: "
                f"{approved:,} newly approved, {blocked:,} newly blocked or held."
            )
    if any(routes.get(of["rulebook_id"]) for of in evidence["rulebooks"]):
        told.append("A rollback restores the version before.")
    else:
        told.append("It is the first version of its route, so you cannot roll back.")
    return " ".join(told)


def _backs(migration_id: str, routes: Mapping[str, Sequence[RouteEntry]]) -> list[dict[str, str]]:
    """The routes that this migration made and that can be taken back."""
    found = []
    for rulebook_id, of in routes.items():
        last = of[-1]
        if last["cause"] == "apply" and last["migration_id"] == migration_id and last["from"] is not None:
            found.append({"rulebook": rulebook_id, "active": last["to"]["version"], "before": last["from"]["version"]})
    return found
