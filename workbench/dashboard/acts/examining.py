"""Analyzes a draft while its author types, and measures how well its cases test it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from gate.drafting.diagnosis import diagnose
from gate.encoding.strict_json import JsonObject
from gate.errors import GateError
from workbench.dashboard.acts.turn import Answer, Turn
from workbench.dashboard.studio.workshop import WorkCancelled
from workbench.dashboard.views.drafting import parts
from workbench.dashboard.views.drafting.compare import regions


def begin(turn: Turn) -> None:
    """Examines the rulebook of a draft if it has changed, and ends the previous examination."""
    seat = turn.seat
    rulebook = None if seat.found is None else seat.found.rulebook
    if rulebook is None or rulebook.hash == seat.examined:
        return
    seat.examined = rulebook.hash
    text = seat.found.text if seat.found is not None else None

    def done(found: JsonObject) -> Answer:
        return {"parts": {"findings": str(parts.findings(cast("Any", found), text))}}

    seat.tell({"stale": "findings"})
    go_on(turn, "findings", "examine", {"body": cast("Any", rulebook.body)}, done)


def examine(turn: Turn) -> Answer:
    """Examines the draft again, for example after a canceled examination: {}."""
    turn.seat.examined = None
    begin(turn)
    return {}


def measure(turn: Turn) -> Answer:
    """Measures how well the cases of a draft test it: {draft}."""
    rulebook = turn.rulebook
    draft_id = turn.text("draft")
    kept = [each.case for each in turn.store.draft_cases.of(turn.who.scope_id, draft_id)]
    cases = [{"name": case.name, "facts": case.facts, "expect": case.expect} for case in kept]

    def done(found: JsonObject) -> Answer:
        return {"parts": {"measured": str(parts.measured(cast("Any", found), len(cases)))}}

    def told(progress: JsonObject) -> None:
        turn.seat.tell({"parts": {"measured": str(parts.measuring(cast("Any", progress)))}})

    told({"doing": "coverage"})
    arguments = {"body": rulebook.body, "cases": cases}
    go_on(turn, "measured", "measure", cast("JsonObject", arguments), done, told)
    return {}


def boundaries(turn: Turn) -> Answer:
    """Lists cases at the edges of a draft: {draft}."""
    rulebook = turn.rulebook

    def done(found: JsonObject) -> Answer:
        return {"parts": {"proposed": str(parts.proposed(cast("Any", found["cases"]), turn.text("draft")))}}

    turn.seat.tell({"parts": {"proposed": str(parts.working("Looking for edge cases…", "proposed"))}})
    go_on(turn, "proposed", "boundaries", {"body": cast("Any", rulebook.body)}, done)
    return {}


def compare(turn: Turn) -> Answer:
    """Compares a draft with another text for all facts and over past decisions: {draft, base}."""
    draft_id = turn.text("draft")
    now = diagnose(turn.store.drafts.draft(turn.who.scope_id, draft_id).text).rulebook
    then = diagnose(turn.store.other_text(turn.scope, draft_id, turn.text("base"))).rulebook
    if now is None or then is None:
        return {}

    def done(found: JsonObject) -> Answer:
        told = cast("Any", found)
        shown = regions(told["difference"], told["traffic"], told["redecided"])
        return {"parts": {"regions": str(shown)}}

    turn.seat.tell(
        {"parts": {"regions": str(parts.working("Comparing for all facts, and over past decisions…", "regions"))}}
    )
    arguments = {**turn.store.instance_address, "scope": turn.who.scope, "body": now.body, "against": then.body}
    go_on(turn, "regions", "compare", cast("JsonObject", arguments), done)
    return {}


def cancel(turn: Turn) -> Answer:
    """Ends something that is being done: {work}."""
    work = turn.seat.works.get(turn.text("work"))
    if work is not None:
        work.cancel()
    return {}


def go_on(
    turn: Turn,
    part: str,
    name: str,
    arguments: JsonObject,
    done: Callable[[JsonObject], Answer],
    told: Callable[[JsonObject], None] = lambda progress: None,
) -> None:
    """Starts work next to the acts, and shows its result in a part of the page. Ends earlier work for that part."""
    seat = turn.seat
    if (before := seat.works.get(part)) is not None:
        before.cancel()
    work = seat.works[part] = turn.workshop.begin(name, arguments, told)

    def finish() -> None:
        try:
            answer = done(work.result())
        except WorkCancelled:
            answer = {"parts": {part: str(parts.cancelled(part, turn.word("draft") or ""))}}
        except GateError as error:
            answer = {"parts": {part: str(parts.fault(error.message))}}
        # Another one may have taken its place meanwhile, whose answer is the one to be shown.
        if seat.works.get(part) is work:
            seat.tell(answer)

    turn.workshop.beside(finish)
