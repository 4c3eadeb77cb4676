"""What if: the facts of a decision, or of a slice of the ledger, changed by levers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from gate.drafting.given import fields_of, read_given
from gate.drafting.levers import patch_of
from gate.encoding.strict_json import JsonObject
from gate.errors import OperatorError
from gate.rulebooks.evaluation import ABSENT
from gate.rulebooks.facts import with_value
from gate.rulebooks.rulebook import Rulebook
from workbench.dashboard.acts.examining import go_on
from workbench.dashboard.acts.trying import decided
from workbench.dashboard.acts.turn import Answer, Turn
from workbench.dashboard.studio.whatif import moved
from workbench.dashboard.views.decided import whatif as views
from workbench.dashboard.views.drafting import parts
from workbench.dashboard.views.location import Location
from workbench.engines.counterfactuals import counterfactuals


def change(turn: Turn) -> Answer:
    """Decides with changed facts: {policy, by?, own?, decision?, lines: {field: {is, text}}, metric?, version?,
    verdict?, since?, until?}. A line is a fact that is changed; all others stay as they were. `own` is the version that
    decided the decision, and decides it where `by` names no other.
    """
    policy, lines = turn.text("policy"), turn.values("lines")
    rulebook = turn.store.rulebook_for(turn.scope, policy, turn.word("by") or turn.word("own"))
    changed, faults = _changed(rulebook, lines)
    answer: dict[str, str] = {}
    if (decision_id := turn.word("decision")) is not None:
        record, facts = decided(turn, decision_id)
        then = facts
        for name, value in changed.items():
            then = with_value(then, name, value)
        answer["one"] = str(views.one(record, rulebook, then))
    if not changed and turn.word("by") is None:
        answer["many"] = str(views.nothing_changed())
    else:
        answer["many"] = str(_many(turn, policy, rulebook, changed))
    return {"parts": answer, "faults": faults, "say": ""}


def flips(turn: Turn) -> Answer:
    """Finds the smallest changes of a decision's facts that give another verdict: {policy, by?, own?, decision,
    to?}.
    """
    rulebook = turn.store.rulebook_for(turn.scope, turn.text("policy"), turn.word("by") or turn.word("own"))
    _, facts = decided(turn, turn.text("decision"))

    def done(found: JsonObject) -> Answer:
        return {"parts": {"flips": str(views.flips(cast("Any", found["flips"])))}}

    turn.seat.tell({"parts": {"flips": str(parts.working("Looking for the smallest changes…", "flips"))}})
    arguments = {"body": rulebook.body, "facts": facts, "to": turn.word("to")}
    go_on(turn, "flips", "flips", cast("JsonObject", arguments), done)
    return {}


def _changed(rulebook: Rulebook, lines: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """The changed facts by name, `ABSENT` where one is to be left out; and what is wrong with a line."""
    fields = [field for field in fields_of(rulebook.body, {}) if field.name in lines]
    changed: dict[str, Any] = {}
    faults: dict[str, str] = {}
    for field in fields:
        given = read_given([field], {field.name: lines[field.name]}, {})
        if given.faults:
            faults |= given.faults
            continue
        value: Any = given.facts
        for part in field.name.split("."):
            value = value.get(part, ABSENT) if isinstance(value, dict) else ABSENT
        changed[field.name] = value
    return changed, faults


def _many(turn: Turn, policy: str, rulebook: Rulebook, changed: Mapping[str, Any]) -> Any:
    nulls = [name for name, value in changed.items() if value is None]
    if nulls:
        raise OperatorError(
            "WHAT_IF_NULL", f"Past decisions cannot be given null: leave {nulls[0]} out, or give it a value."
        )
    patch = patch_of({name: None if value is ABSENT else value for name, value in changed.items()})
    snapshot = turn.store.reports(turn.who).snapshot
    since, until = Location("whatif", since=turn.word("since"), until=turn.word("until")).period()
    report = counterfactuals(
        snapshot,
        policy,
        rulebook=None if turn.word("by") is None else cast("Any", rulebook.body),
        patch=patch or None,
        policy_version=turn.word("version"),
        verdict=turn.word("verdict"),
        since=since,
        until=until,
    )
    metric = turn.word("metric")
    worth = {} if metric is None else moved(report, snapshot, metric)
    return views.many(report.body, worth, metric, turn.who.scope)
