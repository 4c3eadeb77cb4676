"""The drafts of a scope as a list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from gate.encoding.strict_json import JsonObject
from gate.ids import parse_timestamp
from gate.ledger.drafts.drafts import DraftSummary
from workbench.dashboard.views.html import ago, render
from workbench.dashboard.views.location import Location
from workbench.dashboard.views.page import Choice, Page
from workbench.engines.wording import counted

EXAMPLE: Final = """\
# What is this rulebook for?
schema_version: rulebook_v1
rulebook_id: my_policy
version: "1"
input_schema:
  required: [amount]
  properties:
    amount: {type: number}
rules:
  # Rules are tried from the highest priority down; the first match decides.
  - rule_id: approve_small
    priority: 10
    condition: {field: amount, operator: lte, value: 50}
    outcome: {decision: "yes", verdict: APPROVE, action: pay, reason_code: SMALL_AMOUNT}
default_outcome: {decision: review, verdict: REVIEW, action: ask_the_owner, reason_code: NO_RULE_MATCHED}
"""
"""What a draft begins with that begins with nothing."""

_CLOSED_SHOWN: Final = 100

EXAMPLE_FACTS: Final[JsonObject] = {"amount": 12.5}
"""Facts for it."""


def listing(
    location: Location,
    found: Sequence[DraftSummary],
    closed: Sequence[DraftSummary],
    versions: Mapping[str, Sequence[str]],
    *,
    active: str | None,
    may_draft: bool,
    now: datetime,
) -> Page:
    """The drafts of a scope: those that are open, and beneath them those that are closed.

    `active` is the version that decides now for the chosen policy; None without a route.
    """

    def row(draft: DraftSummary) -> dict[str, object]:
        return {
            "name": draft.name,
            "url": Location("draft", scope=location.scope, id=draft.draft_id).url,
            "origin": origin_of(draft),
            "by": draft.saved_by,
            "ago": ago_of(draft, now),
            "revision": draft.revision,
        }

    filters: tuple[Choice, ...] = ()
    if may_draft:
        filters = (Choice("policy", "Base on", {"": "an example", **{name: name for name in versions}}),)
        of = versions.get(location.policy or "", ())
        if of:
            names = {version: f"{version} (active)" if version == active else version for version in of}
            filters += (Choice("version", "Version", names),)
    begun = None if location.policy is None or location.version is None else (location.policy, location.version)
    title = counted(len(found), "draft") if found else "No drafts yet"
    context = {
        "rows": [row(draft) for draft in found],
        "closed": [row(draft) for draft in closed[:_CLOSED_SHOWN]],
        "may": may_draft,
        "begun": begun,
    }
    return Page(location, title, render("drafts.html", context), filters)


def origin_of(draft: DraftSummary) -> str:
    origin = draft.origin
    if origin.made == "registered":
        return f"{origin.of} {origin.at}"
    return {"empty": "an example", "draft": "another draft", "file": origin.of}[origin.made]


def ago_of(draft: DraftSummary, now: datetime) -> str:
    return ago(parse_timestamp(draft.saved_at), now)
