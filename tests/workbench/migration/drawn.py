"""Histories drawn by chance for dry runs: decisions of several versions with facts of every type, some of them missing
or mistyped, some erased or personal, some made by adapters, and reports of every kind about them.
"""

from __future__ import annotations

import copy
import random
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Any, Final

from gate.rulebooks.evaluation import Outcome
from gate.rulebooks.rulebook import Rulebook, load
from tests.workbench.made_up import MONDAY, MadeUp

RULEBOOK_ID: Final = "refunds"
ADAPTERS: Final = ("a" * 64, "b" * 64)
PERSONAL: Final = ("inputs.secret", "inputs.customer.email")
STATUSES: Final = ("succeeded", "partial", "failed", "reverted", "pending", "review")
METRIC: Final = "margin"

_DAYS: Final = 40
_TYPES: Final = {
    "amount": "number",
    "count": "integer",
    "region": "string",
    "tags": "array",
    "customer": "object",
    "paid": "boolean",
}
_VALUES: Final[dict[str, list[Any]]] = {
    "amount": [0, 5, 9.5, 10, 10.5, 50, 50.0, 99.9, 100, 1e20, -3, 1e-7],
    "count": [0, 1, 2, 2.0, 2.5, 3, 7, 8.25, 9007199254740991],
    "region": ["DE", "AT", "CH", "DE-BY", "", "x" * 201, "é", "true", "[1]"],
    "tags": [[], ["vip"], ["vip", 1], [1, 2], [1.0, True], [None, {"a": 1}], [["vip"]]],
    "customer": [{}, {"tier": "gold"}, {"tier": "new", "email": "a@b.example"}, {"tier": 3}, {"email": "c@d.example"}],
    "paid": [True, False],
    "secret": ["s3", "t4", 5],
    "note": ["late", "late again", 12],
    "nobody_reads": [1, "one", None, [1]],
}
_ODD: Final[list[Any]] = [None, True, "10", 10, [10], {"a": 10}, 2.5, ""]
_TESTS: Final[dict[str, list[tuple[str, list[Any]]]]] = {
    "amount": [("lt", [10, 50, 100]), ("lte", [10, 50]), ("gt", [10, 50, 99.9]), ("gte", [0, 100]), ("eq", [50, 1e20])],
    "count": [("gte", [2, 2.5, 3]), ("lt", [3, 7.5]), ("in", [[1, 2, 8.25]]), ("neq", [2])],
    "region": [
        ("eq", ["DE", "[1]"]),
        ("in", [["DE", "AT"], ["CH", ""]]),
        ("contains", ["DE", "B"]),
        ("not_contains", ["DE"]),
        ("not_in", [["DE"]]),
    ],
    "tags": [("contains", ["vip", 1, None]), ("not_contains", ["vip"]), ("eq", [["vip"], []]), ("in", [[["vip", 1]]])],
    "customer": [("eq", [{}, {"tier": "gold"}]), ("exists", []), ("neq", [{"tier": "gold"}])],
    "customer.tier": [("eq", ["gold", 3]), ("exists", []), ("in", [["gold", "new"]])],
    "customer.email": [("exists", []), ("not_exists", [])],
    "secret": [("eq", ["s3"]), ("not_exists", [])],
    "paid": [("eq", [True, False])],
    "note": [("contains", ["late"]), ("gt", [10])],
}
# Of each personal fact there is a rulebook now and then.
_TESTED: Final = [field for field in _TESTS for _ in range(1 if field in ("customer.email", "secret") else 6)]


@dataclass(frozen=True, slots=True)
class Past:
    """A decision as a recount looks at it.

    Attributes:
        position: Its place in the chain.
        record: What the service answered.
        rulebook: The body of the rulebook that decided.
        facts: The facts; None where they were erased.
        status: The status of the latest outcome; None without any.
        metrics: What that outcome measured.
    """

    position: int
    record: dict[str, Any]
    rulebook: dict[str, Any]
    facts: dict[str, Any] | None
    status: str | None
    metrics: dict[str, float]


@dataclass(frozen=True)
class Drawn:
    """A history, and two rulebooks to compare over it.

    Attributes:
        chain: The chain.
        base: The version in force.
        candidate: The version that is proposed.
    """

    chain: MadeUp
    base: Rulebook
    candidate: Rulebook

    @cached_property
    def past(self) -> list[Past]:
        """The decisions of the rulebook id, in the order of the chain."""
        erased = {entry["decision_id"] for entry in self.chain.entries if "erasure_id" in entry}
        outcomes = {entry["decision_id"]: entry for entry in self.chain.entries if "outcome_id" in entry}
        found = []
        for position, entry in enumerate(self.chain.entries, 1):
            if "policy_hash" not in entry or entry["policy_id"] != RULEBOOK_ID:
                continue
            request = self.chain.requests[entry["decision_id"]]
            latest = outcomes.get(entry["decision_id"], {})
            found.append(
                Past(
                    position=position,
                    record=entry,
                    rulebook=request["rulebook"],
                    facts=None if entry["decision_id"] in erased else request["context"]["inputs"],
                    status=latest.get("outcome_status"),
                    metrics=latest.get("observed_metrics", {}),
                )
            )
        return found


def drawn(seed: int, decisions: int, *, adapters: float = 0.1) -> Drawn:
    """A history of so many decisions, by versions that differ in some rules, as base and candidate do.

    Args:
        seed: Another seed draws another history.
        decisions: How many decisions, about one in twenty of another policy.
        adapters: Of which share of them adapters made the facts.
    """
    chance = random.Random(seed)  # noqa: S311 - for tests to be the same each time
    first = _rulebook(chance, "1")
    versions = [first]
    for number in range(2, 5):
        versions.append(_changed(chance, versions[-1], str(number)))
    base, candidate = versions[-1], _changed(chance, versions[-1], "5")
    loaded = [load(body) for body in versions]
    chain = MadeUp()
    decided: list[str] = []
    for _ in range(decisions):
        decided.append(_decide(chain, chance, chance.choices(loaded, [1, 2, 2, 4])[0], adapters))
        while chance.random() < 0.6:
            _report(chain, chance, chance.choice(decided))
    return Drawn(chain, load(base), load(candidate))


def _at(chance: random.Random) -> Any:
    return MONDAY + timedelta(milliseconds=chance.randrange(_DAYS * 86_400_000))


def _decide(chain: MadeUp, chance: random.Random, rulebook: Rulebook, adapters: float) -> str:
    if chance.random() < 0.05:
        return chain.decide(_at(chance), policy_id="another", facts={"amount": 1})
    facts = _facts(chance)
    outcome = rulebook.evaluator.decide(facts)
    return chain.decide(
        _at(chance),
        verdict=outcome.decision,
        reason=outcome.reason_code,
        version=rulebook.version,
        policy_id=RULEBOOK_ID,
        facts=facts,
        rulebook=dict(rulebook.body),
        rule=rule_of(outcome),
        outcome=(outcome.verdict, outcome.action),
        adapter=chance.choices(ADAPTERS, [9, 1])[0] if chance.random() < adapters else None,
    )


def rule_of(outcome: Outcome) -> str:
    """What decided, as evidence names it."""
    if outcome.status == "needs_input":
        return "schema:failed"
    return "rule:default" if outcome.matched_rule_id is None else f"rule:{outcome.matched_rule_id}"


def _facts(chance: random.Random) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, values in _VALUES.items():
        drawn_ = chance.random()
        if drawn_ < 0.8:
            found[name] = copy.deepcopy(chance.choice(values))
        elif drawn_ < 0.9:
            found[name] = copy.deepcopy(chance.choice(_ODD))
    return found


def _report(chain: MadeUp, chance: random.Random, decision_id: str) -> None:
    kind = chance.choices(["outcome", "receipt", "erasure"], [20, 4, 1])[0]
    if kind == "receipt":
        chain.receipt(decision_id, _at(chance))
    elif kind == "erasure":
        chain.erase(decision_id, _at(chance))
    else:
        values = [0.1, 0.2, -2.0, 7, 1e300, -1e300, 5e-324, 12_345.67]
        metrics = {name: chance.choice(values) for name in (METRIC, "days é") if chance.random() < 0.7}
        more = {"observed_metrics": metrics} if metrics else {}
        chain.outcome(decision_id, _at(chance), chance.choice(STATUSES), **more)


def _rulebook(chance: random.Random, version: str) -> dict[str, Any]:
    declared = {name: type_ for name, type_ in _TYPES.items() if chance.random() < 0.3}
    required = [name for name in _TYPES if chance.random() < 0.1]
    return {
        "schema_version": "rulebook_v1",
        "rulebook_id": RULEBOOK_ID,
        "version": version,
        "input_schema": {
            "required": required,
            "properties": {name: {"type": type_} for name, type_ in declared.items()},
        },
        "rules": [_rule(chance, number) for number in range(chance.randint(3, 6))],
        "default_outcome": _outcome(chance, 9),
    }


def _changed(chance: random.Random, body: dict[str, Any], version: str) -> dict[str, Any]:
    """The next version: another rule in the place of one, another outcome, another required fact."""
    changed = copy.deepcopy(body)
    changed["version"] = version
    for at in chance.sample(range(len(changed["rules"])), 2):
        changed["rules"][at] = _rule(chance, at)
    other = chance.choice(changed["rules"])
    other["outcome"] = _outcome(chance, int(other["rule_id"][-1]))
    if chance.random() < 0.4:
        changed["input_schema"]["required"] = [chance.choice(["amount", "region", "note"])]
    if chance.random() < 0.3:
        # It reads as the outcome of facts that the schema refuses.
        needs = {"verdict": "NEEDS_INPUT", "action": "collect_required_input", "reason_code": "INPUT_SCHEMA_FAILED"}
        changed["default_outcome"] = {"decision": "review", **needs}
    return changed


def _rule(chance: random.Random, number: int) -> dict[str, Any]:
    return {
        "rule_id": f"rule_{number}",
        "priority": chance.randrange(3),
        "condition": _condition(chance, 2),
        "outcome": _outcome(chance, number),
    }


def _condition(chance: random.Random, depth: int) -> dict[str, Any]:
    kind = chance.random()
    if depth and kind < 0.45:
        return {chance.choice(["all", "any"]): [_condition(chance, depth - 1) for _ in range(chance.randint(1, 3))]}
    if depth and kind < 0.55:
        return {"not": _condition(chance, depth - 1)}
    field = chance.choice(_TESTED)
    operator, values = chance.choice(_TESTS[field])
    return {"field": field, "operator": operator} | ({"value": chance.choice(values)} if values else {})


def _outcome(chance: random.Random, number: int) -> dict[str, str]:
    decision = chance.choice(["yes", "yes", "no", "review"])
    return {
        "decision": decision,
        "verdict": f"{decision.upper()}_1",
        "action": f"{decision}_{chance.randrange(2)}",
        "reason_code": f"REASON_{number}",
    }
