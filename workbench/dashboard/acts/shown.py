"""The parts of the studio that depend on the text of a draft and on its test facts, after each act."""

from __future__ import annotations

from gate.drafting.diagnosis import Diagnosis
from workbench.dashboard.acts.turn import Answer, Turn
from workbench.dashboard.views.drafting import parts, table


def shown(turn: Turn) -> Answer:
    """The parts of the page that depend on the text, and the marks in the editor."""
    seat = turn.seat
    found = seat.found
    if found is None:
        return {}
    answer: Answer = {
        "parts": {"state": str(parts.state(found))},
        "marks": parts.marks(found),
        "yaml": found.text is None or found.text.is_yaml,
        "words": parts.words(found),
    }
    answer["table"] = _table(turn, found)
    if found.rulebook is not None:
        answer["parts"]["fields"] = str(table.fields_of_table(found.rulebook.body))
        form = parts.given(found.rulebook.body, seat.given, {})
        answer["parts"] |= {"explained": str(parts.explained(found.rulebook, seat.given))}
        # The form stays as it is while somebody types in it; it is shown anew where its lines are others.
        answer["form"] = {"of": form.of, "html": str(form.html)}
        if (draft_id := turn.word("draft")) is not None:
            kept = [each.case for each in turn.store.draft_cases.of(turn.who.scope_id, draft_id)]
            answer["parts"]["held"] = str(parts.held(found.rulebook, kept, turn.who.scope, draft_id))
    return answer


def _table(turn: Turn, found: Diagnosis) -> Answer:
    """The table of rules as the page takes it: {html} | {rows} | {}; nothing where the text is not valid, and the page
    keeps the rules of before.
    """
    if found.rulebook is None:
        return {}
    # A page that was drawn anew has no table yet, whatever was sent to the one before it.
    before, writes = None if turn.message.get("bare") else turn.seat.rows, turn.who.may("draft")
    turn.seat.rows = rows = table.rows_of(found.rulebook.body, writes=writes)
    if before is None:
        return {"html": str(table.whole(rows, writes=writes))}
    return {"rows": table.changes(before, rows)}
