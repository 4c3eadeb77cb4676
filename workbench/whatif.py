"""Decides a stored decision, or a slice of past decisions, under other facts or another version.

    rulebook = registered(instance.ledger, instance.migrations(), scope, "refund_policy", None)
    changes = read_changes(rulebook, {"order_total": {"is": "value", "text": "900"}})
    record, facts = decided(instance.ledger, scope, "dec_...")
    rulebook.evaluator.explain(with_changes(facts, changes.facts))
    redecided = decide_slice(snapshot, "refund_policy", changes.facts, metrics=["refund_cost"])
    redecided.verdicts

The page of the workbench and `gate whatif` both use these functions. Nothing is stored, and nothing authorizes an
action.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import fsum
from typing import Any, Final, cast

from gate.decisions.migrations.reading import Migrations
from gate.decisions.stored import record_and_facts
from gate.drafting.given import fields_of, read_given
from gate.drafting.levers import patch_of
from gate.encoding.strict_json import JsonObject
from gate.errors import NotFound, OperatorError
from gate.ledger import Ledger
from gate.ledger.access.authority import Scope
from gate.policy.questions import CLOCKS
from gate.records.documents import Record
from gate.rulebooks.evaluation import ABSENT, value_at
from gate.rulebooks.facts import with_value
from gate.rulebooks.rulebook import Rulebook
from workbench.columns import NO_VERDICT
from workbench.engines.counterfactuals import counterfactuals
from workbench.lake.names import choices, shown
from workbench.lake.reader import Snapshot

_LISTED: Final = 1_000
_TAKEN: Final = "Another fact is in the place of this one; leave one of the two out."


@dataclass(frozen=True, slots=True)
class Changes:
    """Facts that are to be others.

    Attributes:
        facts: The changed facts, by field; `ABSENT` where one is to be left out.
        faults: What is wrong with a line, by field; such a fact stays as it was.
    """

    facts: Mapping[str, Any]
    faults: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class MovedVerdict:
    """Decisions that would go from one verdict to another.

    Attributes:
        was: The verdict as decided.
        then: The verdict as it would be.
        decisions: How many.
        worth: By the name of each value that is summed how many of them have it, and its sum; without those that none
            of them has.
    """

    was: str
    then: str
    decisions: int
    worth: Mapping[str, tuple[int, float]]


@dataclass(frozen=True, slots=True)
class Redecided:
    """What a slice of past decisions would be.

    Attributes:
        body: The counterfactual report.
        metrics: What is summed.
    """

    body: Mapping[str, Any]
    metrics: Sequence[str]

    @property
    def transitions(self) -> list[Mapping[str, Any]]:
        """The transitions of the report in which anything would be other."""
        return [each for each in self.body["transitions"] if each["changed"]]

    @property
    def verdicts(self) -> list[MovedVerdict]:
        """The decisions that would get another verdict, by both verdicts, those of the most decisions first."""
        counts: dict[tuple[str, str], int] = {}
        for each in self.transitions:
            key = (each["verdict"], each["then_verdict"])
            if key[0] != key[1]:
                counts[key] = counts.get(key, 0) + each["decisions"]
        ordered = sorted(counts.items(), key=lambda each: -each[1])
        worth: dict[tuple[str, str], dict[str, tuple[int, float]]] = {}
        for each in self.body["worth"]:
            key = (each["verdict"], each["then_verdict"])
            worth.setdefault(key, {})[each["metric"]] = (each["values"], each["sum"])
        return [MovedVerdict(was, then, count, worth.get((was, then), {})) for (was, then), count in ordered]

    @property
    def told(self) -> int:
        """The number of decided rows that have a verdict; all of them, unless they are imported cases."""
        untold: int = self.body["verdicts"]["before"].get(NO_VERDICT, 0)
        return int(self.body["redecided"]) - untold

    @property
    def untold(self) -> list[MovedVerdict]:
        """The imported cases without a verdict, by the verdict that they would get, those of the most cases first."""
        by_then: dict[str, list[Mapping[str, Any]]] = {}
        for each in self.body["transitions"]:
            if each["verdict"] == NO_VERDICT:
                by_then.setdefault(each["then_verdict"], []).append(each)
        moved = [
            MovedVerdict(NO_VERDICT, then, sum(of["decisions"] for of in each), _summed(each))
            for then, each in by_then.items()
        ]
        return sorted(moved, key=lambda of: (-of.decisions, of.then))


def _summed(transitions: Sequence[Mapping[str, Any]]) -> dict[str, tuple[int, float]]:
    """What each value comes to in some transitions, without those that none of them has."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for worth in (of for each in transitions for of in each["worth"] if of["values"]):
        found.setdefault(worth["metric"], []).append(worth)
    return {name: (sum(of["values"] for of in each), fsum(of["sum"] for of in each)) for name, each in found.items()}


def registered(
    ledger: Ledger, migrations: Migrations, scope: Scope, policy_id: str, version: str | None = None
) -> Rulebook:
    """A registered rulebook.

    Args:
        ledger: The ledger.
        migrations: What reads registered rulebooks.
        scope: The scope.
        policy_id: The rulebook's id.
        version: Its version; None for the one that was registered last.

    Raises:
        NotFound: `RULEBOOK_VERSION_UNKNOWN`.
        ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
    """
    rulebooks = ledger.rulebooks
    if version is None:
        found = rulebooks.latest(scope.scope_id, policy_id)
    else:
        found = rulebooks.find_version(scope.scope_id, policy_id, version)
    if found is not None:
        return migrations.rulebook(scope, found)
    versions = rulebooks.versions(scope.scope_id, policy_id, limit=_LISTED)
    if version is not None and versions:
        told = f"has no version {shown(version)} of {shown(policy_id)}. {choices(version, versions)}"
    else:
        there = [each.rulebook_id for each in rulebooks.listed(scope.scope_id, limit=_LISTED)]
        told = f"has no rulebook {shown(policy_id)}. {choices(policy_id, there)}"
    raise NotFound("RULEBOOK_VERSION_UNKNOWN", f"The scope {scope.name} {told}")


def decided(ledger: Ledger, scope: Scope, decision_id: str) -> tuple[Record, JsonObject]:
    """The record of a stored decision, and the facts that it was made over.

    Args:
        ledger: The ledger.
        scope: The scope.
        decision_id: The decision.

    Raises:
        NotFound: `SVC_DECISION_NOT_FOUND`.
        OperatorError: `FACTS_ERASED` or `DECISION_ADVISORY`.
        ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
    """
    try:
        record, facts = record_and_facts(ledger, scope.scope_id, decision_id)
    except NotFound as error:
        raise NotFound(error.code, f"The scope {scope.name} has no decision {decision_id}; check the id.") from error
    if facts is None:
        raise OperatorError("FACTS_ERASED", f"The facts of {decision_id} were erased; choose another decision.")
    return record, dict(facts)


def read_changes(rulebook: Rulebook, lines: Mapping[str, Any]) -> Changes:
    """Reads changed facts from a form.

    Args:
        rulebook: The rulebook whose facts they are.
        lines: The change of each fact, by field: `{"is": "absent" | "null" | "value", "text": ...}`. Fields that the
            rulebook neither declares nor tests are ignored.
    """
    changed: dict[str, Any] = {}
    faults: dict[str, str] = {}
    for field in fields_of(rulebook.body, {}):
        if field.name not in lines:
            continue
        given = read_given([field], {field.name: lines[field.name]}, {})
        if given.faults:
            faults |= given.faults
        elif any(field.name.startswith(f"{other}.") or other.startswith(f"{field.name}.") for other in changed):
            faults[field.name] = _TAKEN
        else:
            changed[field.name] = value_at(given.facts, field.name)
    return Changes(changed, faults)


def with_changes(facts: JsonObject, changed: Mapping[str, Any]) -> JsonObject:
    """The facts of a decision with some of them changed.

    Args:
        facts: The facts.
        changed: The changed facts by field, as `Changes` has them.

    Raises:
        OperatorError: `FACT_INVALID`: a field lies within a fact that is no object.
    """
    then = facts
    for field, value in changed.items():
        try:
            then = with_value(then, field, value)
        except (AttributeError, TypeError) as error:
            raise OperatorError("FACT_INVALID", f"{field} cannot be changed here. {_TAKEN}") from error
    return then


def deciding(snapshot: Snapshot, rulebook: Rulebook, by: str | None) -> Rulebook | None:
    """What decides a slice of past decisions; None where each decision's own version does.

    Args:
        snapshot: The scope's chain, or an imported history, whose cases have no rulebooks of their own.
        rulebook: The registered rulebook of the version that was asked for, else of the one registered last.
        by: The version that was asked for; None where none was.
    """
    return None if by is None and snapshot.imported is None else rulebook


def decide_slice(
    snapshot: Snapshot,
    policy_id: str,
    changed: Mapping[str, Any],
    *,
    rulebook: Rulebook | None = None,
    version: str | None = None,
    verdict: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    metrics: Sequence[str] = (),
    clock: str = CLOCKS[0],
) -> Redecided:
    """What a slice of past decisions would be.

    Args:
        snapshot: The scope's chain, or an imported history.
        policy_id: The policy.
        changed: The changed facts by field, as `Changes` has them.
        rulebook: What decides, as `deciding` has it; each decision's own version where None.
        version: Only decisions of this version.
        verdict: Only decisions with this verdict.
        since: Only decisions from this moment on.
        until: Only decisions before this moment.
        metrics: What is summed: metrics of the latest outcomes, and facts as `inputs.<path>`, at most five.
        clock: Which dates count: `recorded` or `occurred`.

    Raises:
        OperatorError: `WHAT_IF_NULL`; or as `counterfactuals`.
    """
    nulls = [name for name, value in changed.items() if value is None]
    if nulls:
        raise OperatorError(
            "WHAT_IF_NULL", f"A fact of past decisions cannot be set to null: leave {nulls[0]} out, or give it a value."
        )
    patch = patch_of({name: None if value is ABSENT else value for name, value in changed.items()})
    report = counterfactuals(
        snapshot,
        policy_id,
        rulebook=None if rulebook is None else cast("Any", rulebook.body),
        patch=patch or None,
        policy_version=version,
        verdict=verdict,
        since=since,
        until=until,
        metrics=metrics,
        clock=clock,
    )
    return Redecided(report.body, metrics)
