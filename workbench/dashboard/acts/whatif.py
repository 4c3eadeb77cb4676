"""What if: the facts of a decision, or of a slice of the ledger, changed by levers."""

from __future__ import annotations

from typing import Any, cast

from gate.encoding.strict_json import JsonObject
from gate.errors import OperatorError
from gate.rulebooks.rulebook import Rulebook
from workbench.dashboard.acts.examining import go_on
from workbench.dashboard.acts.turn import Answer, Turn
from workbench.dashboard.views.decided import whatif as views
from workbench.dashboard.views.drafting import parts
from workbench.dashboard.views.location import Location
from workbench.lake.reader import RECORDED
from workbench.whatif import Changes, decide_slice, deciding, read_changes, with_changes


def change(turn: Turn) -> Answer:
    """Decides with changed facts: {policy, by?, own?, decision?, lines: {field: {is, text}}, metric?, version?,
    verdict?, since?, until?, clock?, history?}. A line is a changed fact; all other facts stay the same. `own` is
    the version that made the decision. It decides if `by` is absent.
    """
    policy, lines = turn.text("policy"), turn.values("lines")
    rulebook = turn.store.rulebook_for(turn.scope, policy, turn.word("by") or turn.word("own"))
    changes = read_changes(rulebook, lines)
    answer: dict[str, str] = {}
    if (decision_id := turn.word("decision")) is not None:
        record, facts = turn.store.decided(turn.scope, decision_id)
        answer["one"] = str(views.one(record, rulebook, with_changes(facts, changes.facts)))
    if not changes.facts and turn.word("by") is None and turn.word("history") is None:
        answer["many"] = str(views.nothing_changed())
    else:
        try:
            answer["many"] = _many(turn, policy, rulebook, changes)
        except OperatorError as error:
            # One decision can be given null, which past ones cannot.
            if error.code != "WHAT_IF_NULL" or "one" not in answer:
                raise
            answer["many"] = str(parts.fault(error.message))
    return {"parts": answer, "faults": dict(changes.faults), "say": ""}


def flips(turn: Turn) -> Answer:
    """Finds the smallest changes of a decision's facts that give another verdict: {policy, by?, own?, decision,
    to?}.
    """
    rulebook = turn.store.rulebook_for(turn.scope, turn.text("policy"), turn.word("by") or turn.word("own"))
    _, facts = turn.store.decided(turn.scope, turn.text("decision"))

    def done(found: JsonObject) -> Answer:
        return {"parts": {"flips": str(views.flips(cast("Any", found["flips"])))}}

    turn.seat.tell({"parts": {"flips": str(parts.working("Looking for the smallest changes…", "flips"))}})
    arguments = {"body": rulebook.body, "facts": facts, "to": turn.word("to")}
    go_on(turn, "flips", "flips", cast("JsonObject", arguments), done)
    return {}


def _many(turn: Turn, policy: str, rulebook: Rulebook, changes: Changes) -> str:
    words = {name: turn.word(name) for name in ("since", "until", "clock", "history")}
    asked = Location("whatif", scope=turn.who.scope, **words)
    since, until = asked.period()
    snapshot = turn.store.reports(turn.who).of_source(asked.history).snapshot
    metric = turn.word("metric")
    redecided = decide_slice(
        snapshot,
        policy,
        changes.facts,
        rulebook=deciding(snapshot, rulebook, turn.word("by")),
        version=turn.word("version"),
        verdict=turn.word("verdict"),
        since=since,
        until=until,
        metrics=() if metric is None else (metric,),
        clock=asked.clock or RECORDED,
    )
    return str(views.many(redecided, asked))
