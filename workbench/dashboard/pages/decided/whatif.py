"""Tries other facts on one decision, and on a slice of the ledger."""

from __future__ import annotations

from gate.drafting.levers import levers
from workbench.dashboard.pages.visit import Visit
from workbench.dashboard.store.store import Store
from workbench.dashboard.views.decided import whatif as views
from workbench.dashboard.views.page import Page


def load(store: Store, visit: Visit) -> Page:
    """The levers of a policy's facts, over one decision where the address names one."""
    who, location = visit.access, visit.location
    record, facts = (None, None) if location.id is None else store.ledger.decided(who.scope_id, location.id)
    if record is not None:
        location = location.change(policy=record["policy_id"], id=location.id)
    chain = store.reports(who)
    reports, histories = chain.of_source(location.history), chain.snapshot.histories
    versions, decided = store.ledger.rulebook_versions(who.scope_id), reports.names()
    names = [name for name in versions if name in decided.policies]
    # A history has one policy; a decision is asked about by its own.
    others = location.history is not None and record is None and location.policy not in names
    if names and (location.policy is None or others):
        location = location.change(policy=names[0])
    elif others:
        return views.unregistered(location, decided.policies, histories, reports.snapshot.imported)
    if location.policy is None or location.policy not in versions:
        return views.nowhere(location)
    own = None if record is None else record["policy_version"]
    known = versions[location.policy]
    by = location.by or (own if own in known else None)
    rulebook = store.rulebook_for(store.scope(who), location.policy, by)
    offered = views.Offered(
        policies=names,
        versions=known,
        decided_by=known if location.history is None else decided.versions.get(location.policy, ()),
        values=reports.known_values(rulebook),
        histories=histories,
        imported=reports.snapshot.imported,
    )
    moved = levers(rulebook.body, facts or {})
    return views.whatif(location, offered, rulebook, moved, record, erased=facts is None)
