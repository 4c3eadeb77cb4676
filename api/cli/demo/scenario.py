"""The events of a demo ledger: a year of a few companies' decisions, made up from parameters and a seed.

    scenario = DemoScenario(parameters, rulebooks, registered())
    for event in scenario.events("harbor-supply", decisions=20_000, seed=1, start=start): ...

The same parameters, seed, and start give the same events in the same order on every machine. The random numbers of a
decision depend only on its number and its scope. So a planted incident changes only its own decisions: a ledger without
incidents has all other decisions unchanged. Scopes do not depend on each other. `data/demo/README.md` explains the
parameters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from heapq import heappop, heappush
from typing import Final, TypeAlias

from api.cli.demo.days import day_weights, spread, time_of_day
from api.cli.demo.drawing import random_of, weighted
from api.cli.demo.owners import Owner, Resolve, read_owner
from api.cli.demo.parameters import Calendar, Company, Parameters
from api.cli.demo.policies import Policy
from api.cli.demo.reports import Rates, Report, Reports
from api.cli.demo.requests import Decided, decide
from api.cli.demo.sources import by_adapter
from gate.adapters.manifest import Adapter
from gate.encoding.strict_json import Json
from gate.records.documents import DecisionBody
from gate.rulebooks.documents import AdapterDependency, RulebookBody
from gate.rulebooks.rulebook import Rulebook


@dataclass(frozen=True, slots=True)
class Register:
    """The registration of a rulebook in a scope.

    Attributes:
        moment: When.
        rulebook: The rulebook.
        dependency: The adapter that makes its facts, as in `DecisionGate.register`.
    """

    moment: datetime
    rulebook: Rulebook
    dependency: AdapterDependency | None


@dataclass(frozen=True, slots=True)
class Decide:
    """The decision of a request.

    Attributes:
        moment: When.
        number: Its number in its scope, from 0.
        request: The Decision Request.
        facts: The facts that it sends, or that its adapter will make.
        rulebook: The rulebook that it refers to.
        kind: Its kind, by the parameters; `fraud_burst` for planted requests.
        verdict: The verdict of the rulebook: `yes`, `no`, or `review`.
        reports: The number of reports and resolutions that follow.
    """

    moment: datetime
    number: int
    request: DecisionBody
    facts: Mapping[str, Json]
    rulebook: Rulebook
    kind: str
    verdict: str
    reports: int


Event: TypeAlias = Register | Decide | Resolve | Report


class DemoScenario:
    """The companies, their policies, and the events of their decisions.

    Attributes:
        days: The number of days.
        scopes: The scopes of the large companies.
        peers: The scopes of additional, smaller companies, which join late in the year.
    """

    def __init__(self, parameters: Parameters, rulebooks: Iterable[RulebookBody], adapters: Iterable[Adapter]) -> None:
        """Takes the parameters from `data/demo/scenario.json`, and the bodies of rulebooks and the adapters they name.

        Raises:
            KeyError: The parameters name an unknown adapter.
            RulebookRefused: A version that the parameters make from a body is not a valid rulebook.
        """
        self.days: Final = parameters["days"]
        self.scopes: Final = tuple(parameters["scopes"])
        self.peers: Final = tuple(parameters["peers"]["companies"])
        self._parameters = parameters
        # Peers differ only in their names, and in what is drawn for those.
        calendar: Calendar = parameters["peers"]
        of_peers: dict[str, Company] = {name: {**calendar, "domain": f"{name}.example"} for name in self.peers}
        self._companies: Mapping[str, Company] = {**of_peers, **parameters["scopes"]}
        self._of_peers: dict[tuple[str, str, int], Policy] = {}
        bodies = {(body["rulebook_id"], body["version"]): body for body in rulebooks}
        self._policies = {
            policy_id: Policy(policy_id, policy, bodies) for policy_id, policy in parameters["policies"].items()
        }
        rollout = parameters["incidents"]["bad_rollout"]
        self._rollout = self._policies[rollout["policy"]].version(rollout)
        burst = parameters["incidents"]["fraud_burst"]
        self._burst = self._policies[burst["policy"]].parts("fraud_burst", burst["kind"])
        self._rates = Rates(parameters["reports"])
        by_name = {adapter.name: adapter for adapter in adapters}
        self._adapters = {
            (scope, policy_id): by_name[name]
            for scope, settings in parameters["scopes"].items()
            for policy_id, name in settings.get("adapters", {}).items()
        }
        self._owners = {
            scope: tuple(read_owner(owner, settings["people"]) for owner in parameters["owners"])
            for scope, settings in parameters["scopes"].items()
        }

    def versions(self, policy_id: str) -> list[Rulebook]:
        """The versions of a policy, oldest first. The version of the bad rollout comes last, if the policy has it."""
        rollout = [self._rollout] if policy_id == self._rollout.rulebook_id else []
        return [rulebook for _, rulebook in self._policies[policy_id].versions] + rollout

    def owners(self, scope: str) -> tuple[Owner, ...]:
        """The owners of held decisions in a scope. The scopes of peers have none."""
        return self._owners.get(scope, ())

    def decisions(self, scope: str, decisions: int) -> int:
        """The number of decisions of a scope out of a total. Each peer makes the same number, on top of the total."""
        if scope in self.peers:
            return self._parameters["peers"]["decisions"]
        shares = [settings["share"] for settings in self._parameters["scopes"].values()]
        return spread(decisions, shares)[self.scopes.index(scope)]

    def events(self, scope: str, *, decisions: int, seed: int, start: datetime, clean: bool = False) -> Iterator[Event]:
        """The events of a scope, in the order of time. There are no reports after the last day.

        Args:
            scope: One of `scopes` or `peers`.
            decisions: The total number of decisions of all `scopes`.
            seed: The seed; another seed gives another year.
            start: Midnight of the first day, in UTC.
            clean: Whether to leave out the incidents.
        """
        company = self._companies[scope]
        end = start + timedelta(days=self.days)
        due: list[tuple[datetime, int, Event]] = []
        made = 0
        for made, event in enumerate(self._registrations(company, scope, start, clean)):
            heappush(due, (event.moment, made, event))
        hasty = 0 if clean else self._parameters["incidents"]["hasty_worker"]["actions"]
        for moment, number, planted in self._arrivals(scope, decisions, seed, start, clean):
            while due and due[0][0] <= moment:
                yield heappop(due)[2]
            drawn = self._decision(scope, number, seed, start, moment, planted, clean)
            decided = drawn.decided
            if hasty and self._is_held_in_haste(scope, decided, (moment - start).days):
                hasty, drawn = hasty - 1, replace(drawn, hasty=True)
            reports = [report for report in drawn.made() if report.moment < end]
            yield Decide(
                moment=moment,
                number=number,
                request=decided.request,
                facts=decided.facts,
                rulebook=decided.rulebook,
                kind=decided.kind,
                verdict=decided.outcome.decision,
                reports=len(reports),
            )
            for report in reports:
                made += 1
                heappush(due, (report.moment, made, report))
        while due:
            yield heappop(due)[2]

    def _registrations(self, company: Company, scope: str, start: datetime, clean: bool) -> Iterator[Register]:
        for policy_id in company["policies"]:
            for day, rulebook in self._policies[policy_id].since(company.get("from_day", 0)):
                yield Register(start + timedelta(days=day), rulebook, self._dependency(scope, policy_id))
        rollout = self._parameters["incidents"]["bad_rollout"]
        if scope == rollout["scope"] and not clean:
            dependency = self._dependency(scope, rollout["policy"])
            yield Register(start + timedelta(days=rollout["from_day"]), self._rollout, dependency)

    def _policy(self, scope: str, policy_id: str, seed: int) -> Policy:
        """A policy as a scope asks for it: each peer has kinds of requests in shares, and with ends, of its own."""
        if scope in self._parameters["scopes"]:
            return self._policies[policy_id]
        key = scope, policy_id, seed
        if key not in self._of_peers:
            random, peers = random_of(seed, scope, f"kinds of {policy_id}", 0), self._parameters["peers"]
            self._of_peers[key] = self._policies[policy_id].varied(random, peers["kinds_vary"], peers["success_varies"])
        return self._of_peers[key]

    def _dependency(self, scope: str, policy_id: str) -> AdapterDependency | None:
        adapter = self._adapters.get((scope, policy_id))
        return None if adapter is None else adapter.dependency

    def _rulebook(self, scope: str, policy_id: str, day: int, clean: bool) -> Rulebook:
        """The version that decides on a day."""
        rollout = self._parameters["incidents"]["bad_rollout"]
        there = (scope, policy_id) == (rollout["scope"], rollout["policy"])
        if there and not clean and rollout["from_day"] <= day < rollout["until_day"]:
            return self._rollout
        return self._policies[policy_id].at(day)

    def _arrivals(
        self, scope: str, decisions: int, seed: int, start: datetime, clean: bool
    ) -> Iterator[tuple[datetime, int, bool]]:
        """When each decision is asked for, its number, and whether it is one of the burst."""
        total = self.decisions(scope, decisions)
        company, burst = self._companies[scope], self._parameters["incidents"]["fraud_burst"]
        bursting = min(total, max(3, round(burst["share"] * decisions))) if scope == burst["scope"] else 0
        dates = [start + timedelta(days=day) for day in range(self.days)]
        usual = day_weights(random_of(seed, scope, "days", 0), company, dates, self._parameters["day_noise"])
        hours = company["hours"]
        burst_days = range(burst["from_day"], burst["from_day"] + burst["days"])
        extra = usual if clean else [float(day in burst_days) for day in range(self.days)]
        counts = zip(spread(total - bursting, usual), spread(bursting, extra), strict=True)
        number, planted = 0, total - bursting
        for day, (many, more) in enumerate(counts):
            random = random_of(seed, scope, "day", day)
            times = [(time_of_day(random, hours), False) for _ in range(many)]
            random = random_of(seed, scope, "burst", day)
            times += [(time_of_day(random, hours if clean else burst["hours"]), True) for _ in range(more)]
            for millisecond, of_burst in sorted(times):
                moment = start + timedelta(days=day, milliseconds=millisecond)
                if of_burst:
                    yield moment, planted, not clean
                    planted += 1
                else:
                    yield moment, number, False
                    number += 1

    def _decision(
        self, scope: str, number: int, seed: int, start: datetime, moment: datetime, planted: bool, clean: bool
    ) -> Reports:
        company, burst = self._companies[scope], self._parameters["incidents"]["fraud_burst"]
        random = random_of(seed, scope, "decision", number)
        policy_id = burst["policy"] if planted else weighted(random, company["policies"])
        policy = self._policy(scope, policy_id, seed)
        kind = weighted(random, policy.kinds)
        parts = self._burst if planted else policy.of_kind[kind]
        rulebook = self._rulebook(scope, policy_id, (moment - start).days, clean)
        about: Mapping[str, Json] = {"domain": company["domain"], "scope": scope, "number": number}
        decided = decide(random, policy, parts, rulebook, about)
        adapter = self._adapters.get((scope, policy_id))
        if adapter is not None:
            decided = by_adapter(decided, adapter, moment.date())
        owner = self._owner(scope, decided)
        return Reports(random, self._rates, policy, parts, decided, number, moment, owner)

    def _owner(self, scope: str, decided: Decided) -> Owner | None:
        """The owner of a decision, as far as one is set: that of its action before that of its policy."""
        policy_id = decided.rulebook.rulebook_id
        named = {owner.action: owner for owner in self.owners(scope) if owner.policy_id == policy_id}
        return named.get(decided.outcome.action, named.get(""))

    def _is_held_in_haste(self, scope: str, decided: Decided, day: int) -> bool:
        """Whether the hasty worker is there and meets a held decision."""
        hasty = self._parameters["incidents"]["hasty_worker"]
        there = (scope, decided.rulebook.rulebook_id) == (hasty["scope"], hasty["policy"])
        return there and day >= hasty["from_day"] and decided.outcome.decision == "review"
