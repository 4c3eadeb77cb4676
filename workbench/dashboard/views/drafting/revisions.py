"""The revisions of a draft: who changed what, and when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gate.ledger.drafts.drafts import Draft, Revision
from workbench.dashboard.views.html import render
from workbench.dashboard.views.location import Location
from workbench.dashboard.views.page import Page
from workbench.engines.wording import counted


def revisions(
    location: Location, draft: Draft, found: Sequence[Revision], versions: Mapping[str, Sequence[str]]
) -> Page:
    """The revisions of a draft, the latest first, and what it can be compared with.

    Args:
        location: Where it is.
        draft: The draft.
        found: Its revisions.
        versions: The registered versions of each rulebook of the scope.
    """

    def compare(base: str) -> str:
        return Location("compare", scope=location.scope, id=draft.draft_id, base=base).url

    rows = [
        {
            "number": each.number,
            "by": each.saved_by,
            "begun": each.begun_at,
            "saved": each.saved_at,
            "url": compare(f"revision {each.number}"),
        }
        for each in found
    ]
    registered = [
        {"name": f"{rulebook_id} {version}", "url": compare(f"{rulebook_id} {version}")}
        for rulebook_id, names in versions.items()
        for version in names
    ]
    context = {
        "url": Location("draft", scope=location.scope, id=draft.draft_id).url,
        "name": draft.name,
        "rows": rows,
        "registered": registered,
    }
    title = f"{counted(len(found), 'revision')} of {draft.name}"
    return Page(location, title, render("revisions.html", context))
