"""A draft that is to become a migration."""

from __future__ import annotations

from gate.drafting.diagnosis import diagnose
from workbench.dashboard.pages.drafting.drafts import named
from workbench.dashboard.pages.visit import Visit
from workbench.dashboard.store.store import Store
from workbench.dashboard.views.migrations.proving import Past, proposing
from workbench.dashboard.views.page import Page


def load(store: Store, visit: Visit) -> Page:
    """A draft, to be proved and proposed. Its dry run, where there is one, is shown by an act of the page."""
    draft = store.drafts.draft(visit.access.scope_id, named(visit))
    found = diagnose(draft.text)
    routes = {} if found.rulebook is None else store.migrations.routes(visit.access, found.rulebook.rulebook_id)
    in_force = next((of[-1]["to"]["version"] for of in routes.values()), None)
    reports = store.reports(visit.access)
    values = [] if found.rulebook is None else reports.known_values(found.rulebook)
    past = Past(values, reports.snapshot.histories)
    return proposing(visit.location, draft, found, None, in_force, past, may_draft=visit.access.may("draft"))
