"""What if facts were others: of one decision, and of a slice of the ledger."""

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
    versions = store.ledger.rulebook_versions(who.scope_id)
    decided = store.reports(who).names().policies
    names = [name for name in versions if name in decided]
    if location.policy is None and names:
        location = location.change(policy=names[0])
    if location.policy is None or location.policy not in versions:
        return views.nowhere(location)
    own = None if record is None else record["policy_version"]
    known = versions[location.policy]
    by = location.by or (own if own in known else None)
    rulebook = store.rulebook_for(store.scope(who), location.policy, by)
    values, moved = store.reports(who).known_values(rulebook), levers(rulebook.body, facts or {})
    return views.whatif(location, names, known, rulebook, moved, record, values, erased=facts is None)
