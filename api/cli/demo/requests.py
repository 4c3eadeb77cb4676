"""Draws the Decision Requests of the demo, and evaluates their rulebooks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import cast

from api.cli.demo.drawing import Members, Values
from api.cli.demo.policies import Parts, Policy
from gate.encoding.strict_json import Json, JsonObject
from gate.records.documents import DecisionBody, DecisionContext
from gate.rulebooks.evaluation import Outcome
from gate.rulebooks.rulebook import Rulebook


@dataclass(frozen=True, slots=True)
class Decided:
    """A request, all values drawn for it, and the outcome of its rulebook.

    Attributes:
        request: The Decision Request.
        context: Its context.
        facts: The facts that it sends, or that its adapter will make.
        rulebook: The rulebook that it refers to.
        kind: Its kind, by the parameters.
        values: All drawn values by name, including facts that are missing in the request.
        outcome: The outcome of the rulebook.
    """

    request: DecisionBody
    context: DecisionContext
    facts: Mapping[str, Json]
    rulebook: Rulebook
    kind: str
    values: Values
    outcome: Outcome


def decide(random: Random, policy: Policy, parts: Parts, rulebook: Rulebook, about: Values) -> Decided:
    """Draws a request and decides it.

    Args:
        random: The source of random numbers.
        policy: The policy.
        parts: The drawings of the request.
        rulebook: The version that decides.
        about: Values that are known before the drawing.
    """
    values = dict(about)
    for name, told in parts.values.items():
        values[name] = told.draw(random, values)
    facts: JsonObject = {}
    for name, told in parts.facts.items():
        values[name] = value = told.draw(random, values)
        if value is not None:
            facts[name] = value
    if random.random() < parts.missing_fact:
        # Sorted, so that the fact drawn by chance does not depend on the order in which an author wrote them.
        facts.pop(random.choice(sorted(rulebook.body["input_schema"]["required"])), None)
    drawn = Members(policy.context).draw(random, values)
    context = cast("DecisionContext", {"workflow": policy.workflow, **drawn})
    request: DecisionBody = {
        "mode": "rulebook",
        "question": policy.question,
        "rulebook_ref": {"hash": rulebook.hash},
        "context": {**context, "inputs": facts},
    }
    return Decided(request, context, facts, rulebook, parts.name, values, rulebook.evaluator.decide(facts))
