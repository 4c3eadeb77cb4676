"""The imported histories of a scope."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from gate.errors import OperatorError
from workbench.dashboard.pages.visit import Visit
from workbench.dashboard.store.access import Access
from workbench.dashboard.store.store import Store
from workbench.dashboard.views.imported import listing
from workbench.dashboard.views.imported.listing import Listed
from workbench.dashboard.views.page import Page


def load(store: Store, visit: Visit) -> Page:
    """The histories of a scope, and the import of another one."""
    who = visit.access
    return listing.view(visit.location, listed(store, who), may_import=who.may("draft") or who.may("approve"))


def listed(store: Store, who: Access) -> list[Listed]:
    """The histories of a scope, by name."""
    return list(_listed(store, who))


def _listed(store: Store, who: Access) -> Iterator[Listed]:
    reports = store.reports(who)
    for name, found in store.histories.of(who.scope_id):
        if found is None:
            yield Listed(name, None)
            continue
        try:
            yield Listed(name, found, *reports.history(name).span())
        except (OperatorError, OSError, pl.exceptions.PolarsError):
            # Removed meanwhile, or its files are damaged: the others are shown all the same.
            yield Listed(name, None)
