"""What marks a page that shows imported cases in place of decisions in the chain, or the dates of events."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from workbench.dashboard.views.location import Location
from workbench.engines.activity import Activity
from workbench.lake.reader import ImportedSet


def source_of(location: Location, imported: ImportedSet | None) -> dict[str, Any]:
    """What `source.html` shows of a page.

    Args:
        location: The page.
        imported: The history that it shows; None for the chain, or if the page shows no cases of it.
    """
    return {
        "history": location.history,
        "hash": None if imported is None else imported.history_hash,
        "histories_url": Location("histories", scope=location.scope).url,
        "chain_url": location.change(history=None, version=None).url,
        "clock": location.clock,
        "recorded_url": location.change(clock=None).url,
    }


def charted(done: Activity) -> Activity:
    """What charts show of a policy: a case without a verdict, or without a reason, is in none of these.

    Args:
        done: The activity of the policy; imported cases need not have a verdict or a reason.
    """
    return replace(done, weekly=done.weekly.drop_nulls("verdict"), reasons=done.reasons.drop_nulls("reason_code"))
