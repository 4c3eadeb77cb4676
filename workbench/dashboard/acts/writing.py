"""Typing in a draft, its table, and what two authors wrote at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from gate.drafting import editing
from gate.drafting.completion import proposals
from gate.drafting.diagnosis import diagnose
from gate.errors import OperatorError
from workbench.dashboard.acts import examining
from workbench.dashboard.acts.shown import shown
from workbench.dashboard.acts.turn import Answer, Turn
from workbench.dashboard.studio.desk import Desk, Told
from workbench.dashboard.studio.units import Units


def typed(turn: Turn) -> Answer:
    """Saves what an author typed: {draft, text}."""
    text = turn.text("text")
    return _with_desk(turn, lambda desk: desk.typed(text))


def look(turn: Turn) -> Answer:
    """Looks at a text without saving it, for those who may not draft: {text}."""
    turn.seat.found = diagnose(turn.text("text"))
    examining.begin(turn)
    return shown(turn)


def merge(turn: Turn) -> Answer:
    """Saves what an author typed, merged with what another saved meanwhile: {draft, text}."""
    latest = turn.store.drafts.draft(turn.who.scope_id, turn.text("draft"))
    text = turn.text("text")
    return _with_desk(turn, lambda desk: desk.merge(text, latest))


def fork(turn: Turn) -> Answer:
    """Keeps what an author typed as a draft of its own: {draft, text, name}."""
    text, name = turn.text("text"), turn.text("name")
    return _with_desk(turn, lambda desk: desk.fork(text, name))


def edit(turn: Turn) -> Answer:
    """Changes a draft as its table says, and saves it: {draft, text, do, path?, value?, rule?}.

    What cannot be done in the table leaves the text as it is, which is saved.
    """
    text, do = turn.text("text"), turn.text("do")
    if do == "set":
        made = editing.set_value(text, turn.text("path"), turn.text("value"))
    elif do == "remove":
        made = editing.remove(text, turn.text("path"))
    elif do == "add_rule":
        made = editing.add_rule(text, like=turn.word("rule"))
    elif do == "add_test":
        made = editing.add_test(text, turn.text("path"))
    else:
        raise OperatorError("ACT_INVALID", "The table does not support this change. Load the page again.")
    return _with_desk(turn, lambda desk: desk.typed(made))


def complete(turn: Turn) -> Answer:
    """Proposes what fits at a place: {text, offset}; the offset is in units of UTF-16."""
    text, offset = turn.text("text"), turn.message.get("offset")
    at = Units(text).at(offset) if isinstance(offset, int) else len(text)
    return {"proposals": [each.to_dict() for each in proposals(text, min(max(at, 0), len(text)))]}


def _with_desk(turn: Turn, act: Callable[[Desk], Told]) -> Answer:
    desk = _desk(turn)
    return {"want": "base"} if desk is None else _told(turn, act(desk))


def _desk(turn: Turn) -> Desk | None:
    """The author's work on a draft; None where it has to be known first which text they went on from."""
    seat, draft_id = turn.seat, turn.text("draft")
    if seat.desk is None or seat.desk.draft.draft_id != draft_id:
        draft = turn.store.drafts.draft(turn.who.scope_id, draft_id)
        edition, base = turn.message.get("edition"), turn.message.get("base")
        if isinstance(edition, int) and edition < draft.edition:
            # The author went on from an earlier text, which may be on their screen for hours.
            if not isinstance(base, str):
                return None
            draft = replace(draft, edition=edition, text=base)
        seat.desk = Desk(turn.store.draft_acts, turn.scope, turn.who.user, draft)
    return seat.desk


def _told(turn: Turn, told: Told) -> Answer:
    turn.seat.found = told.found
    examining.begin(turn)
    answer = shown(turn) | {"draft": told.draft.draft_id, "saved": told.saved}
    # The browser has what it sent.
    if told.text != turn.text("text"):
        answer["text"] = told.text
    if told.saved:
        answer["edition"] = told.draft.edition
        return answer | {"say": f"Saved as revision {told.draft.revision}."}
    answer["say"] = "Not saved."
    if told.conflict is not None and told.merged is not None:
        same = told.merged.conflicts
        places = "one place" if same == 1 else f"{same} places"
        answer["conflict"] = f"{told.conflict.saved_by} saved this draft in the meantime. " + (
            f"You both changed the same lines in {places}; the merged text shows both."
            if same
            else "You changed different lines."
        )
    return answer
