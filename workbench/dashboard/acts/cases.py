"""The cases of a draft: written by form, made from a stored decision, chosen from those at its edges; and removed."""

from __future__ import annotations

from typing import Any

from gate.decisions.drafts import case_of
from gate.encoding.strict_json import parse
from gate.errors import MaterialRefused, OperatorError
from gate.ledger.drafts.cases import read_case
from gate.rulebooks.testing.runs import observe
from workbench.dashboard.acts.turn import Answer, Turn
from workbench.dashboard.views.drafting.cases import NONE
from workbench.dashboard.views.location import Location

_EXPECTED = ("verdict", "reason_code", "matched_rule_id", "action", "application_verdict")
_LISTS = ("missing_fields", "invalid_fields")


def keep(turn: Turn) -> Answer:
    """Adds a case, or changes one: {draft, name, facts (JSON), verdict?, reason_code?, ..., instead_of?}."""
    try:
        facts: Any = parse(turn.text("facts").encode())
    except (MaterialRefused, UnicodeEncodeError) as error:
        raise OperatorError(
            "CASES_INVALID", 'The facts are not JSON; write them as {"amount": 12.5, "segment": "gold"}.'
        ) from error
    expect: dict[str, Any] = {name: value for name in _EXPECTED if (value := turn.word(name)) is not None}
    if expect.get("matched_rule_id") == NONE:
        expect["matched_rule_id"] = None
    for name in _LISTS:
        if (typed := turn.word(name)) is not None:
            expect[name] = [] if typed.strip() == NONE else [each.strip() for each in typed.split(",") if each.strip()]
    if not expect:
        raise OperatorError("CASES_INVALID", "Choose the expected verdict, or fill in one of the fields below it.")
    case = read_case({"name": turn.text("name").strip(), "facts": facts, "expect": expect})
    turn.store.draft_acts.keep_case(
        turn.scope, turn.who.user, turn.text("draft"), case, instead_of=turn.word("instead_of")
    )
    return _again(turn, f"Saved the case {case.name}.")


def remove(turn: Turn) -> Answer:
    """Removes a case: {draft, name}."""
    turn.store.draft_acts.remove_case(turn.scope, turn.who.user, turn.text("draft"), turn.text("name"))
    return _again(turn, f"Removed the case {turn.text('name')}.")


def take(turn: Turn) -> Answer:
    """Adds cases that were proposed: {draft, cases: [{name, facts, expect}]}."""
    proposed = turn.message.get("cases")
    cases = [read_case(each) for each in proposed] if isinstance(proposed, list) else []
    added = turn.store.draft_acts.take_cases(turn.scope, turn.who.user, turn.text("draft"), cases)
    return _again(turn, "Added one case." if len(added) == 1 else f"Added {len(added)} cases.")


def from_decision(turn: Turn) -> Answer:
    """Makes a case of a stored decision: {draft, decision, name?, expects}.

    It expects what was `decided`, what the `draft` decides of the same facts now, or a verdict by its name.
    """
    decision_id, draft_id = turn.text("decision").strip(), turn.text("draft")
    record, facts = turn.store.decided(turn.scope, decision_id)
    expects = turn.word("expects") or "decided"
    expect: Any = None if expects == "decided" else {"verdict": expects}
    if expects == "draft":
        answer = observe(turn.rulebook, facts)
        expect = {"verdict": answer["verdict"], "reason_code": answer["reason_code"]}
    case = case_of(turn.rulebook, record, facts, expect, turn.word("name"))
    turn.store.draft_acts.keep_case(turn.scope, turn.who.user, draft_id, case)
    return _again(turn, f"Saved the case {case.name}.")


def _again(turn: Turn, said: str) -> Answer:
    return {"go": Location("cases", scope=turn.who.scope, id=turn.text("draft")).url, "say": said}
