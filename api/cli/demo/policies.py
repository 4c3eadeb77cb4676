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
    """What a kind of request is drawn from: the policy's own parts, and what the kind says instead.

    Attributes:
        name: The kind.
        values: What is drawn first, for other drawings to use.
        facts: The facts; one that is drawn as null is absent.
        missing_fact: How often a required fact is missing.
        ends: How often an executed action ends in each status.
        reported: How often its outcome is reported.
        pending: How often word that it is pending comes first.
        after_hours: After how many hours it ends.
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
    """What is written into a CRM.

    Attributes:
        reported: How often it is.
        members: The members of the report besides its status.
    """

    reported: float
    members: Mapping[str, Drawing]


class Policy:
    """A policy with its versions, compiled, and its kinds of requests.

    Attributes:
        workflow: The workflow that asks.
        question: What it asks.
        versions: The versions, each with the day from which it decides.
        context: What a request's context is drawn from.
        executor: Who executes.
        after_minutes: After how many minutes.
        metrics: What is observed of an outcome, by its status, and else by `any`.
        sync: What is written into a CRM; None where nothing is.
        kinds: The weights of its kinds.
        of_kind: What each is drawn from.
    """

    def __init__(self, policy_id: str, parameters: PolicyParameters, bodies: Bodies) -> None:
        """Reads the parameters of a policy.

        Raises:
            KeyError: They name a version or a rule that the bodies lack.
            RulebookRefused: A version that they make of a body is no rulebook.
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
        """The policy with other shares of its kinds, and other odds that what it lets pass succeeds.

        Args:
            random: Where chance comes from.
            kinds_vary: By how much: each kind's weight is multiplied by e to a normal number of this spread.
            success_varies: The odds of success likewise, by the same number for all kinds.
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
        """What a kind of request is drawn from."""
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
        """A version that travels with the product, or the newest of these under other conditions.

        Raises:
            KeyError: There is no such version, or no such rule in the newest.
            RulebookRefused: The version is no rulebook.
        """
        if "conditions" not in told:
            return load(self._bodies[self._policy_id, told["version"]])
        newest = self._bodies[max(key for key in self._bodies if key[0] == self._policy_id)]
        return load(varied(newest, told["version"], told["conditions"]))

    def since(self, day: int) -> list[tuple[int, Rulebook]]:
        """The versions that decide from a day on, each with the day from which it does."""
        last = max(since for since, _ in self.versions if since <= day)
        return [(max(since, day), rulebook) for since, rulebook in self.versions if since >= last]

    def at(self, day: int) -> Rulebook:
        """The version that decides on a day."""
        return [rulebook for since, rulebook in self.versions if since <= day][-1]


def varied(body: RulebookBody, version: str, conditions: Mapping[str, Condition]) -> RulebookBody:
    """A rulebook's body as another version, in which some rules have other conditions.

    Args:
        body: The body.
        version: The name of the other version.
        conditions: The other conditions, by the ids of the rules that have them.

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
