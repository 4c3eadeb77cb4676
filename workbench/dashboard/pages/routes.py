"""The page of each path, and what its forms do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from workbench.dashboard.pages import anomalies, anomaly, benchmarks, histories, overview, policy
from workbench.dashboard.pages.decided import decision, decisions, held, whatif
from workbench.dashboard.pages.drafting import cases, compare, drafts, revisions
from workbench.dashboard.pages.migrations import listing, one, proposing
from workbench.dashboard.pages.reviews import case, queue
from workbench.dashboard.pages.visit import Visit
from workbench.dashboard.store.store import Store
from workbench.dashboard.views.page import Form, Page

_LOADS: Final[Mapping[str, Callable[[Store, Visit], Page]]] = MappingProxyType(
    {
        "overview": overview.load,
        "policy": policy.load,
        "anomalies": anomalies.load,
        "anomaly": anomaly.load,
        "benchmarks": benchmarks.load,
        "decisions": decisions.load,
        "decision": decision.load,
        "held": held.load,
        "reviews": queue.load,
        "review": case.load,
        "drafts": drafts.load,
        "draft": drafts.load_one,
        "cases": cases.load,
        "revisions": revisions.load,
        "compare": compare.load,
        "whatif": whatif.load,
        "propose": proposing.load,
        "histories": histories.load,
        "migrations": listing.load,
        "migration": one.load,
    }
)

WRITTEN: Final = frozenset({"drafts", "draft", "cases", "propose", "whatif", "histories", "migration", "review"})
"""Pages on which people write. None has a chart that is drawn for a width, so they stay when the width changes."""


def load(store: Store, visit: Visit) -> Page:
    """The page that a visit asks for.

    Raises:
        GateError: It cannot be shown; the message says why.
    """
    return _LOADS[visit.location.page](store, visit)


def act(store: Store, visit: Visit, form: Form, note: str) -> None:
    """Does what a form says.

    Raises:
        GateError: It was not done; the message says why.
    """
    anomaly.act(store, visit, form, note)
