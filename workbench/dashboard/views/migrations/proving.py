"""A draft that is to become a migration: what its manifest says, and its dry run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from gate.drafting.diagnosis import Diagnosis
from gate.ids import parse_timestamp
from gate.ledger.drafts.drafts import Draft
from gate.migration.approval import find_gate_faults
from workbench.dashboard.studio.proofs import DryRun
from workbench.dashboard.views import links
from workbench.dashboard.views.drafting import parts
from workbench.dashboard.views.html import clock, render
from workbench.dashboard.views.location import Location
from workbench.dashboard.views.page import Page
from workbench.migration.drafted import proposed_id
from workbench.migration.report import as_fragment

MAX_SUMMARY = 500


@dataclass(frozen=True, slots=True)
class Past:
    """The sources of past cases for a dry run.

    Attributes:
        values: The values that can be summed over past decisions.
        histories: The names of the scope's imported histories.
    """

    values: Sequence[str]
    histories: Sequence[str]


def proposing(
    location: Location,
    draft: Draft,
    found: Diagnosis,
    run: DryRun | None,
    in_force: str | None,
    past: Past,
    *,
    may_draft: bool,
) -> Page:
    """A draft, to be proved and proposed.

    Args:
        location: Where it is.
        draft: The draft.
        found: The diagnosis of its text.
        run: Its dry run; None where there is none.
        in_force: The version that its rulebook id leads to; None where it has no route.
        past: The sources of past cases for its dry run.
        may_draft: Whether the user may propose.
    """
    rulebook = found.rulebook
    context = {
        "draft": draft,
        "url": Location("draft", scope=location.scope, id=draft.draft_id).url,
        "may": may_draft,
        "state": parts.state(found),
        "rulebook": None
        if rulebook is None
        else {"id": rulebook.rulebook_id, "version": rulebook.version, "name": proposed_id(rulebook)},
        "in_force": in_force,
        "values": past.values,
        "histories": past.histories,
        "asked": None if run is None else run.asked,
        "proof": "" if run is None else proof(run, draft.draft_id, location.scope or "", stale=False),
    }
    return Page(location, f"Propose {draft.name}", render("propose.html", context))


def proof(run: DryRun, draft_id: str, scope: str, *, stale: bool) -> Markup:
    """The dry run of a draft: how far it has come, or what it found.

    Args:
        run: The dry run.
        draft_id: The draft.
        scope: The scope's name.
        stale: Whether the draft, or its cases, were changed since it began.
    """
    evidence = None if run.result is None else run.result["evidence"]
    document = {
        "migration_id": run.asked.migration_id,
        "state": "draft",
        "manifest": {} if run.result is None else run.result["manifest"],
    }

    # An imported case has no story of its own.
    here = Location("decisions", scope=scope, history=run.asked.history)

    def link(decision_id: str) -> str:
        return links.case(here, decision_id)

    context = {
        "run": run,
        "draft": draft_id,
        "at": clock(parse_timestamp(run.asked.at)),
        "stale": stale,
        "faults": [] if evidence is None else find_gate_faults(evidence),
        "report": "" if evidence is None else as_fragment(document, evidence, link),
    }
    return render("proof.html", context)
