"""One draft in the studio: its text, and next to it the results."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime

from gate.drafting.diagnosis import diagnose
from gate.drafting.splicing import is_json
from gate.ledger.drafts.drafts import Draft
from gate.rulebooks.testing.cases import Case
from workbench.dashboard.views.drafting import parts, table
from workbench.dashboard.views.drafting.listing import ago_of, origin_of
from workbench.dashboard.views.html import render
from workbench.dashboard.views.location import Location
from workbench.dashboard.views.page import Page


def studio(location: Location, draft: Draft, cases: Sequence[Case], *, may_draft: bool, now: datetime) -> Page:
    """One draft, to be written."""
    writes = may_draft and draft.closed_at is None
    found = diagnose(draft.text)
    begun = {
        "draft": draft.draft_id,
        "name": draft.name,
        "edition": draft.edition,
        "text": draft.text,
        "yaml": not is_json(draft.text),
        "writes": writes,
    }
    rulebook = found.rulebook
    form = None if rulebook is None else parts.given(rulebook.body, {}, {})
    context = {
        "begun": json.dumps(begun),
        "draft": draft,
        "writes": writes,
        "may": may_draft,
        "saved": f"Saved by {draft.saved_by} {ago_of(draft, now)} ago, revision {draft.revision}.",
        "origin": origin_of(draft),
        "state": parts.state(found),
        "rules": table.whole(None if rulebook is None else table.rows_of(rulebook.body, writes=writes), writes=writes),
        "fields": None if rulebook is None else table.fields_of_table(rulebook.body),
        "given": None if form is None else form.html,
        "form": "" if form is None else form.of,
        "explained": None if rulebook is None else parts.explained(rulebook, {}),
        "held": None if rulebook is None else parts.held(rulebook, cases, location.scope or "", draft.draft_id),
        "links": {
            "cases": Location("cases", scope=location.scope, id=draft.draft_id).url,
            "propose": Location("propose", scope=location.scope, id=draft.draft_id).url,
            "history": Location("revisions", scope=location.scope, id=draft.draft_id).url,
        },
    }
    return Page(location, draft.name, render("studio.html", context))
