"""A draft compared with one of its revisions or with a registered version."""

from __future__ import annotations

from gate.drafting.diagnosis import diagnose
from workbench.dashboard.pages.drafting.drafts import named
from workbench.dashboard.pages.visit import Visit
from workbench.dashboard.store.store import Store
from workbench.dashboard.views.drafting.compare import comparison
from workbench.dashboard.views.page import Page


def load(store: Store, visit: Visit) -> Page:
    """A draft compared with another text."""
    draft = store.drafts.draft(visit.access.scope_id, named(visit))
    base = visit.location.base or ""
    other = store.other_text(store.scope(visit.access), draft.draft_id, base)
    return comparison(
        visit.location,
        draft,
        base,
        other,
        diagnose(draft.text),
        diagnose(other),
        may_draft=visit.access.may("draft"),
    )
