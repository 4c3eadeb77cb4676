"""Creates, names, closes, and reopens drafts."""

from __future__ import annotations

from gate.ledger.drafts.drafts import Draft, Origin
from workbench.dashboard.acts.turn import Answer, Turn
from workbench.dashboard.views.drafting.listing import EXAMPLE
from workbench.dashboard.views.location import Location


def new(turn: Turn) -> Answer:
    """Makes a draft of a registered version, or of an example: {name, policy?, version?}."""
    name, policy, version = turn.text("name"), turn.word("policy"), turn.word("version")
    acts, user = turn.store.draft_acts, turn.who.user
    if policy is not None and version is not None:
        made = acts.begin(turn.scope, user, name, policy, version)
    else:
        made = acts.create(turn.scope, user, name, EXAMPLE, Origin("empty"))
    return {"go": _address(turn, made)}


def rename(turn: Turn) -> Answer:
    """Calls a draft otherwise: {draft, name}."""
    made = turn.store.draft_acts.rename(turn.scope, turn.who.user, turn.text("draft"), turn.text("name"))
    return {"go": _address(turn, made)}


def close(turn: Turn) -> Answer:
    """Takes a draft out of the list: {draft}."""
    turn.store.draft_acts.close(turn.scope, turn.who.user, turn.text("draft"))
    return {"go": Location("drafts", scope=turn.who.scope).url}


def reopen(turn: Turn) -> Answer:
    """Opens a closed draft again: {draft}."""
    made = turn.store.draft_acts.reopen(turn.scope, turn.who.user, turn.text("draft"))
    return {"go": _address(turn, made)}


def _address(turn: Turn, draft: Draft) -> str:
    return Location("draft", scope=turn.who.scope, id=draft.draft_id).url
