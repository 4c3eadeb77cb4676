"""A draft compared with another text: the edits, both texts, and the facts whose result changes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from gate.drafting.diagnosis import Diagnosis
from gate.drafting.splicing import is_json
from gate.ledger.drafts.drafts import Draft
from gate.rulebooks.edits import find_edits
from workbench.dashboard.views.drafting import parts
from workbench.dashboard.views.html import render
from workbench.dashboard.views.location import Location
from workbench.dashboard.views.page import Page
from workbench.engines.wording import counted

_REGIONS_SHOWN = 40


def comparison(
    location: Location, draft: Draft, name: str, other: str, now: Diagnosis, then: Diagnosis, *, may_draft: bool
) -> Page:
    """A draft compared with another text.

    Args:
        location: Where it is.
        draft: The draft.
        name: The name of the other text: `revision 3`, or a rulebook's id and version.
        other: The other text.
        now: The diagnosis of the draft's text.
        then: The diagnosis of the other text.
        may_draft: Whether the user may change the draft.
    """
    edits = None
    if now.rulebook is not None and then.rulebook is not None:
        edits = [edit.text for edit in find_edits(then.rulebook.body, now.rulebook.body)]
    shown = {
        "before": other,
        "after": draft.text,
        "labels": [name, draft.name],
        "yaml": not is_json(draft.text),
    }
    context = {
        "url": Location("draft", scope=location.scope, id=draft.draft_id).url,
        "draft": draft,
        "name": name,
        "edits": edits,
        "invalid": [title for title, found in ((name, then), (draft.name, now)) if found.rulebook is None],
        "shown": json.dumps(shown),
        "writes": may_draft and draft.closed_at is None,
        "base": location.base,
    }
    title = f"{draft.name} compared with {name}"
    if edits is not None:
        title = f"{draft.name}: {counted(len(edits), 'edit')} since {name}"
    return Page(location, title, render("compare.html", context))


def regions(found: Mapping[str, Any], traffic: Sequence[Mapping[str, Any]] | None, of: int) -> Markup:
    """The regions of facts whose result changes, each with its share of past decisions.

    Args:
        found: The difference as JSON.
        traffic: {decisions, share} of each region, in their order; None where there is no history.
        of: How many past decisions were looked at.
    """
    rows = [
        {
            **region,
            "witness": json.dumps(region["witness"], ensure_ascii=False),
            "traffic": None if traffic is None else traffic[index],
        }
        for index, region in enumerate(found["regions"][:_REGIONS_SHOWN])
    ]
    context = {
        "difference": found,
        "rows": rows,
        "more": len(found["regions"]) - len(rows),
        "of": of,
        "tones": parts.TONES,
    }
    return render("regions.html", context)
