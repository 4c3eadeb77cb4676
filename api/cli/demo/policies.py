"""Policies of the demo: their versions, compiled, and the kinds of requests that are drawn for each."""

from __future__ import annotations

import math
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from random import Random
from typing import Final, TypeAlias

from api.cli.demo.drawing import Drawing, Number, number_of, read_drawing, read_each, read_number
from api.cli.demo.parameters import KindParameters, KindParts, PolicyParameters, VersionParameters, Weights
from gate.encoding.strict_json import JsonObject
from gate.rulebooks.documents import Condition, RulebookBody
from gate.rulebooks.rulebook import Rulebook, load

Bodies: TypeAlias = Mapping[tuple[str, str], RulebookBody]
"""Rulebooks' bodies, by id and version."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The drawings for a kind of request: those of the policy, and those that the kind replaces.

    Attributes:
        name: The kind.
        values: The values drawn first, which other drawings use.
        facts: The facts; a fact drawn as null is absent.
        missing_fact: The probability that a required fact is missing.
        ends: The weight of each status in which an executed action ends.
        reported: The probability that the outcome is reported.
        pending: The probability of an earlier report with the status pending.
        after_hours: The hours until the outcome.
    """

    name: str
    values: Mapping[str, Drawing]
    facts: Mapping[str, Drawing]
    missing_fact: float
    ends: Weights
    reported: float
    pending: float
    after_hours: Number


@dataclass(frozen=True, slots=True)
class Sync:
    """A report about a write to a CRM.

    Attributes:
        reported: The probability of a report.
        members: The fields of the report, without its status.
    """

    reported: float
    members: Mapping[str, Drawing]


class Policy:
    """A policy with its versions, compiled, and its kinds of requests.

    Attributes:
        workflow: The workflow of its requests.
        question: The question of its requests.
        versions: The versions, each with the day from which it decides.
        context: The drawing of a request's context.
        executor: The executor of its actions.
        after_minutes: The minutes until the execution.
        metrics: The observed metrics of an outcome by status, or by `any` for all other statuses.
        sync: The report about a CRM; None without one.
        kinds: The weights of its kinds.
        of_kind: The drawings of each kind.
    """

    def __init__(self, policy_id: str, parameters: PolicyParameters, bodies: Bodies) -> None:
        """Reads the parameters of a policy.

        Raises:
            KeyError: The parameters name a version or a rule that the bodies lack.
            RulebookRefused: A version made from a body is not a valid rulebook.
        """
        self._parameters = parameters
        self._policy_id = policy_id
        self._bodies = bodies
        self.workflow: Final = parameters["workflow"]
        self.question: Final = parameters["question"]
        self.versions: Final = [(told["from_day"], self.version(told)) for told in parameters["versions"]]
        self.context: Final = read_each(parameters["context"])
        self.executor: Final = read_drawing(parameters["execution"]["executor"])
        self.after_minutes: Final = read_number(parameters["execution"]["after_minutes"])
        self.metrics: Final = {name: read_each(told) for name, told in parameters["outcome"]["metrics"].items()}
        self.sync: Final = _sync(parameters["crm_sync"]) if "crm_sync" in parameters else None
        self._take(parameters["kinds"])

    def _take(self, kinds: Mapping[str, KindParameters]) -> None:
        self.kinds = {name: kind["weight"] for name, kind in kinds.items()}
        self.of_kind = {name: self.parts(name, kind) for name, kind in kinds.items()}

    def varied(self, random: Random, kinds_vary: float, success_varies: float) -> Policy:
        """Returns the policy with other shares of its kinds, and other odds that allowed actions succeed.

        Args:
            random: The source of random numbers.
            kinds_vary: The standard deviation of a normal number per kind, whose exponential multiplies its weight.
            success_varies: The same for the odds of success, with one number for all kinds.
        """
        odds = math.exp(random.gauss(0, success_varies))
        kinds: dict[str, KindParameters] = {}
        for name, kind in self._parameters["kinds"].items():
            ends = {**kind["ends"], "succeeded": odds * kind["ends"]["succeeded"]}
            kinds[name] = {**kind, "weight": kind["weight"] * math.exp(random.gauss(0, kinds_vary)), "ends": ends}
        made = copy(self)
        made._take(kinds)
        return made

    def parts(self, name: str, kind: KindParts) -> Parts:
        """The drawings for a kind of request."""
        own = self._parameters
        outcome = kind.get("outcome", own["outcome"])
        return Parts(
            name,
            read_each({**own["values"], **kind.get("values", {})}),
            read_each({**own["facts"], **kind.get("facts", {})}),
            kind.get("missing_fact", own["missing_fact"]),
            kind["ends"],
            outcome["reported"],
            outcome["pending"],
            read_number(outcome["after_hours"]),
        )

    def version(self, told: VersionParameters) -> Rulebook:
        """Returns a version of the product, or its newest version with other conditions.

        Raises:
            KeyError: There is no such version, or no such rule in the newest.
            RulebookRefused: The version is not a valid rulebook.
        """
        if "conditions" not in told:
            return load(self._bodies[self._policy_id, told["version"]])
        newest = self._bodies[max(key for key in self._bodies if key[0] == self._policy_id)]
        return load(varied(newest, told["version"], told["conditions"]))

    def since(self, day: int) -> list[tuple[int, Rulebook]]:
        """The versions that decide on a day or later, each with its first day from then on."""
        last = max(since for since, _ in self.versions if since <= day)
        return [(max(since, day), rulebook) for since, rulebook in self.versions if since >= last]

    def at(self, day: int) -> Rulebook:
        """The version that decides on a day."""
        return [rulebook for since, rulebook in self.versions if since <= day][-1]


def varied(body: RulebookBody, version: str, conditions: Mapping[str, Condition]) -> RulebookBody:
    """Returns the body of another version of a rulebook, with other conditions for some rules.

    Args:
        body: The body.
        version: The name of the new version.
        conditions: The new conditions, by the ids of their rules.

    Raises:
        KeyError: There is no such rule.
    """
    rules = {rule["rule_id"]: rule for rule in body["rules"]}
    for rule_id, condition in conditions.items():
        rules[rule_id] = {**rules[rule_id], "condition": condition}
    return {**body, "version": version, "rules": list(rules.values())}


def _sync(told: JsonObject) -> Sync:
    members = {name: member for name, member in told.items() if name != "reported"}
    return Sync(number_of(told["reported"]), read_each(members))
