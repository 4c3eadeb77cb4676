"""Decision Requests of the demo, as they are drawn, and the decisions of their rulebooks."""

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
    """A request, the values drawn for it, and the decision of its rulebook.

    Attributes:
        request: The Decision Request.
        context: Its context.
        facts: The facts: those that it sends, or those that its adapter makes.
        rulebook: The rulebook that it refers to.
        kind: Its kind, from the parameters.
        values: All drawn values by name, including missing facts.
        outcome: The decision of the rulebook.
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
        policy: The policy to ask.
        parts: The descriptions of the request.
        rulebook: The version that decides.
        about: The values known before drawing.
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
