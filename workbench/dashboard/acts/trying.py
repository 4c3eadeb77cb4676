"""Test facts, and the decision that a draft makes from them."""

from __future__ import annotations

import copy
from typing import cast

from gate.drafting.given import MAX_FACTS, fields_of, read_given
from gate.encoding.strict_json import JsonObject
from gate.errors import NotFound, OperatorError
from workbench.dashboard.acts.turn import Answer, Turn
from workbench.dashboard.views.drafting import parts


def give(turn: Turn) -> Answer:
    """Takes the facts of the form: {lines: {field: {is, text}}}."""
    rulebook = turn.rulebook
    lines = turn.values("lines")
    if sum(len(str(line)) for line in lines.values()) > MAX_FACTS:
        raise OperatorError(
            "FACTS_TOO_LARGE", f"Together, facts may have {MAX_FACTS:,} characters at most. Enter fewer."
        )
    given = read_given(fields_of(rulebook.body, turn.seat.given), lines, turn.seat.given)
    turn.seat.given = given.facts
    return {
        "parts": {"explained": str(parts.explained(rulebook, given.facts))},
        "faults": dict(given.faults),
        "say": "",
    }


def take(turn: Turn) -> Answer:
    """Takes the facts of a stored decision, of a case, or facts that a finding shows: {decision} | {draft, case} |
    {facts}.
    """
    rulebook = turn.rulebook
    if (decision_id := turn.word("decision")) is not None:
        _, facts = turn.store.decided(turn.scope, decision_id.strip())
        said = f"These are the facts of {decision_id.strip()}."
    elif (name := turn.word("case")) is not None:
        kept = turn.store.draft_cases.of(turn.who.scope_id, turn.text("draft"))
        found = next((each.case.facts for each in kept if each.case.name == name), None)
        if found is None:
            raise NotFound("CASE_UNKNOWN", "The draft no longer has this case; load the page again.")
        facts, said = found, f"These are the facts of the case {name}."
    else:
        facts, said = cast("JsonObject", turn.values("facts")), "These facts show the finding."
    turn.seat.given = copy.deepcopy(facts)
    form = parts.given(rulebook.body, facts, {})
    return {
        "parts": {"explained": str(parts.explained(rulebook, facts)), "given": str(form.html)},
        "form": {"of": form.of, "html": str(form.html)},
        "say": said,
    }
