"""The cases of a draft."""

from __future__ import annotations

from gate.drafting.diagnosis import diagnose
from workbench.dashboard.pages.drafting.drafts import named
from workbench.dashboard.pages.visit import Visit
from workbench.dashboard.store.store import Store
from workbench.dashboard.views.drafting import cases as views
from workbench.dashboard.views.page import Page


def load(store: Store, visit: Visit) -> Page:
    """The cases of a draft, with their runs."""
    scope_id, draft_id = visit.access.scope_id, named(visit)
    draft = store.drafts.draft(scope_id, draft_id)
    kept = store.draft_cases.of(scope_id, draft_id)
    rulebook = diagnose(draft.text).rulebook
    return views.cases(visit.location, draft, rulebook, kept, may_draft=visit.access.may("draft"), now=visit.now)
