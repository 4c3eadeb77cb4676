"""The drafts of a scope, and one of them in the studio."""

from __future__ import annotations

from gate.errors import NotFound
from workbench.dashboard.pages.visit import Visit
from workbench.dashboard.store.store import Store
from workbench.dashboard.views.drafting import listing
from workbench.dashboard.views.drafting.studio import studio
from workbench.dashboard.views.page import Page


def load(store: Store, visit: Visit) -> Page:
    """The open drafts of a scope, and where to begin another."""
    location = visit.location
    found = store.drafts.of(visit.access.scope_id)
    versions = store.ledger.rulebook_versions(visit.access.scope_id)
    active = None if location.policy is None else store.migrations.base(visit.access, location.policy)
    if location.policy is not None and location.version is None and versions.get(location.policy):
        # A draft usually changes what decides now, which after a rollback is not the latest version.
        location = location.change(version=versions[location.policy][0] if active is None else active.version)
    closed = store.drafts.of(visit.access.scope_id, closed=True)
    return listing.listing(
        location,
        found,
        closed,
        versions,
        active=None if active is None else active.version,
        may_draft=visit.access.may("draft"),
        now=visit.now,
    )


def load_one(store: Store, visit: Visit) -> Page:
    """A draft in the studio."""
    draft_id = named(visit)
    draft = store.drafts.draft(visit.access.scope_id, draft_id)
    cases = [each.case for each in store.draft_cases.of(visit.access.scope_id, draft_id)]
    return studio(visit.location, draft, cases, may_draft=visit.access.may("draft"), now=visit.now)


def named(visit: Visit) -> str:
    """The draft that an address names.

    Raises:
        NotFound: `DRAFT_UNKNOWN`: it names none.
    """
    if visit.location.id is None:
        raise NotFound("DRAFT_UNKNOWN", "The address contains no draft. Choose one in the list.")
    return visit.location.id
