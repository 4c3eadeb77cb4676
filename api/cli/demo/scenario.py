"""A year of a few companies' decisions, made up from parameters and a seed: what a demo ledger is made of.

    scenario = Scenario(parameters, rulebooks, registered())
    for event in scenario.events("harbor-supply", decisions=20_000, seed=1, start=start): ...

The same parameters, seed and start give the same events, in the same order, wherever they are made. Each decision has
random numbers of its own, drawn by its number; so what a planted incident changes, it changes alone, and a ledger
without incidents has every other decision as it is. The same goes for scopes: what happens in one depends on no other.
data/demo/README.md says what the parameters mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from heapq import heappop, heappush
from itertools import accumulate
from random import Random
from typing import Any, Final, TypeAlias

from gate.adapters.manifest import Adapter
from gate.ids import timestamp
from gate.records.receipts import CRM_SYNCS, EXECUTIONS, OUTCOMES, Kind
from gate.rulebooks.evaluation import Outcome
from gate.rulebooks.rulebook import Rulebook, load

_HOUR_MS: Final = 60 * 60 * 1000
_SYNC_MINUTES: Final = (0.2, 10.0)
_SYNCS: Final = {"written": 0.94, "failed": 0.04, "pending": 0.02}
# Nine of them are within a year.
_DAYS_BETWEEN_REFUNDS: Final = 37
_PENDING_AT: Final = (0.1, 0.5)
"""Between which parts of the time to an end the word that it is pending comes."""


@dataclass(frozen=True, slots=True)
class Register:
    """A rulebook comes into a scope.

    Attributes:
        moment: When.
        rulebook: The rulebook.
        dependency: The adapter that makes its facts there, as `DecisionGate.register` takes it.
    """

    moment: datetime
    rulebook: Rulebook
    dependency: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Decide:
    """A request is decided.

    Attributes:
        moment: When.
        number: Its number in its scope, from 0.
        request: The Decision Request.
        facts: The facts: those that it sends, or that its adapter is to make.
        rulebook: The rulebook that it refers to.
        kind: The kind of request it is, by the parameters; `fraud_burst` for those that are planted.
        verdict: What the rulebook will say: yes, no or review.
        reports: How many reports about it follow.
    """

    moment: datetime
    number: int
    request: dict[str, Any]
    facts: Mapping[str, Any]
    rulebook: Rulebook
    kind: str
    verdict: str
    reports: int


@dataclass(frozen=True, slots=True)
class Report:
    """Something is reported about a decision.

    Attributes:
        moment: When.
        number: The decision's number in its scope.
        kind: What is reported.
        body: The report's request.
    """

    moment: datetime
    number: int
    kind: Kind
    body: dict[str, Any]


Event: TypeAlias = Register | Decide | Report


class Scenario:
    """The companies, their policies and what becomes of their decisions.

    Attributes:
        days: How many days it lasts.
        scopes: The companies' scopes.
        peers: The scopes of further, smaller companies, which join late in the year.
    """

    def __init__(
        self, parameters: Mapping[str, Any], rulebooks: Iterable[Mapping[str, Any]], adapters: Iterable[Adapter]
    ) -> None:
        """Takes the parameters, as in data/demo/scenario.json, and the rulebooks' bodies and adapters that they name.

        Raises:
            KeyError: They name an adapter that is not among these.
            RulebookRefused: A version that the parameters make of one is no rulebook.
        """
        self.days: Final = int(parameters["days"])
        self.scopes: Final = tuple(parameters["scopes"])
        self.peers: Final = tuple(parameters["peers"]["companies"])
        self._parameters = parameters
        # Peers differ in their names alone, and in what is drawn for these.
        of_peers = {name: {**parameters["peers"], "domain": f"{name}.example"} for name in self.peers}
        self._settings: Mapping[str, Mapping[str, Any]] = {**of_peers, **parameters["scopes"]}
        self._of_peers: dict[tuple[str, str, int], _Policy] = {}
        bodies = {(str(body["rulebook_id"]), str(body["version"])): body for body in rulebooks}
        self._policies = {
            policy_id: _Policy(policy_id, policy, bodies) for policy_id, policy in parameters["policies"].items()
        }
        rollout = parameters["incidents"]["bad_rollout"]
        self._rollout = self._policies[rollout["policy"]].version(rollout)
        by_name = {adapter.name: adapter for adapter in adapters}
        self._adapters = {
            (scope, policy_id): by_name[name]
            for scope, settings in parameters["scopes"].items()
            for policy_id, name in settings.get("adapters", {}).items()
        }

    def versions(self, policy_id: str) -> list[Rulebook]:
        """The versions of a policy, the oldest first; the one of the bad rollout, if it is this policy's, last."""
        rollout = [self._rollout] if policy_id == self._rollout.rulebook_id else []
        return [rulebook for _, rulebook in self._policies[policy_id].versions] + rollout

    def decisions(self, scope: str, decisions: int) -> int:
        """How many of so many decisions are of a scope; a peer makes its own on top of them, always as many."""
        if scope in self.peers:
            return int(self._settings[scope]["decisions"])
        shares = [settings["share"] for settings in self._parameters["scopes"].values()]
        return _spread(decisions, shares)[self.scopes.index(scope)]

    def events(self, scope: str, *, decisions: int, seed: int, start: datetime, clean: bool = False) -> Iterator[Event]:
        """What happens in a scope, in the order of time. What would be reported after the last day is not.

        Args:
            scope: One of `scopes` or `peers`.
            decisions: How many decisions all `scopes` make together.
            seed: Another seed gives another year.
            start: Midnight of the first day, in UTC.
            clean: Whether the incidents are left out.
        """
        settings = self._settings[scope]
        end = start + timedelta(days=self.days)
        due: list[tuple[datetime, int, Event]] = []
        made = 0
        for made, event in enumerate(self._registrations(settings, scope, start, clean)):
            heappush(due, (event.moment, made, event))
        for moment, number, planted in self._arrivals(scope, decisions, seed, start, clean):
            while due and due[0][0] <= moment:
                yield heappop(due)[2]
            decided, reports = self._decision(scope, number, seed, start, moment, planted, clean)
            reports = [report for report in reports if report.moment < end]
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

    def _registrations(
        self, settings: Mapping[str, Any], scope: str, start: datetime, clean: bool
    ) -> Iterator[Register]:
        for policy_id in settings["policies"]:
            for day, rulebook in self._policies[policy_id].since(settings.get("from_day", 0)):
                yield Register(start + timedelta(days=day), rulebook, self._dependency(scope, policy_id))
        rollout = self._parameters["incidents"]["bad_rollout"]
        if scope == rollout["scope"] and not clean:
            dependency = self._dependency(scope, rollout["policy"])
            yield Register(start + timedelta(days=rollout["from_day"]), self._rollout, dependency)

    def _policy(self, scope: str, policy_id: str, seed: int) -> _Policy:
        """A policy as a scope asks for it: each peer has kinds of requests in shares, and with ends, of its own."""
        if scope in self._parameters["scopes"]:
            return self._policies[policy_id]
        key = scope, policy_id, seed
        if key not in self._of_peers:
            random, peers = _random(seed, scope, f"kinds of {policy_id}", 0), self._parameters["peers"]
            self._of_peers[key] = self._policies[policy_id].varied(random, peers["kinds_vary"], peers["success_varies"])
        return self._of_peers[key]

    def _dependency(self, scope: str, policy_id: str) -> Mapping[str, Any] | None:
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
        settings, burst = self._settings[scope], self._parameters["incidents"]["fraud_burst"]
        bursting = min(total, max(3, round(burst["share"] * decisions))) if scope == burst["scope"] else 0
        usual = self._day_weights(settings, scope, seed, start)
        hours = settings["hours"]
        burst_days = range(burst["from_day"], burst["from_day"] + burst["days"])
        extra = usual if clean else [float(day in burst_days) for day in range(self.days)]
        counts = zip(_spread(total - bursting, usual), _spread(bursting, extra), strict=True)
        number, planted = 0, total - bursting
        for day, (many, more) in enumerate(counts):
            random = _random(seed, scope, "day", day)
            times = [(_time_of_day(random, hours), False) for _ in range(many)]
            random = _random(seed, scope, "burst", day)
            times += [(_time_of_day(random, hours if clean else burst["hours"]), True) for _ in range(more)]
            for millisecond, of_burst in sorted(times):
                moment = start + timedelta(days=day, milliseconds=millisecond)
                if of_burst:
                    yield moment, planted, not clean
                    planted += 1
                else:
                    yield moment, number, False
                    number += 1

    def _day_weights(self, settings: Mapping[str, Any], scope: str, seed: int, start: datetime) -> list[float]:
        random, noise = _random(seed, scope, "days", 0), self._parameters["day_noise"]
        dates = [start + timedelta(days=day) for day in range(self.days)]
        weights = [
            settings["weekdays"][date.weekday()] * settings["months"][date.month - 1] * math.exp(random.gauss(0, noise))
            for date in dates
        ]
        return [weight if day >= settings.get("from_day", 0) else 0.0 for day, weight in enumerate(weights)]

    def _decision(
        self, scope: str, number: int, seed: int, start: datetime, moment: datetime, planted: bool, clean: bool
    ) -> tuple[_Decided, list[Report]]:
        settings, burst = self._settings[scope], self._parameters["incidents"]["fraud_burst"]
        random = _random(seed, scope, "decision", number)
        policy_id = burst["policy"] if planted else _weighted(random, settings["policies"])
        policy = self._policy(scope, policy_id, seed)
        kind = _weighted(random, policy.kinds)
        parts = policy.parts("fraud_burst", burst["kind"]) if planted else policy.of_kind[kind]
        rulebook = self._rulebook(scope, policy_id, (moment - start).days, clean)
        values: dict[str, Any] = {"domain": settings["domain"], "scope": scope, "number": number}
        decided = _decide(random, policy, parts, rulebook, values)
        adapter = self._adapters.get((scope, policy_id))
        if adapter is not None:
            decided = _by_adapter(decided, adapter, moment.date())
        reports = _Reports(random, self._parameters["reports"], policy, parts, decided, number, moment)
        return decided, list(reports.made())


class _Parts:
    """What a kind of request is drawn from: the policy's own parts, and what the kind says instead."""

    def __init__(self, name: str, policy: Mapping[str, Any], kind: Mapping[str, Any]) -> None:
        self.name = name
        self.values: Mapping[str, Any] = {**policy["values"], **kind.get("values", {})}
        self.facts: Mapping[str, Any] = {**policy["facts"], **kind.get("facts", {})}
        self.missing_fact: float = kind.get("missing_fact", policy["missing_fact"])
        self.ends: Mapping[str, float] = kind["ends"]
        self.outcome: Mapping[str, Any] = {**policy["outcome"], **kind.get("outcome", {})}


class _Policy:
    """A policy with its versions, compiled, and its kinds of requests."""

    def __init__(
        self, policy_id: str, parameters: Mapping[str, Any], bodies: Mapping[tuple[str, str], Mapping[str, Any]]
    ) -> None:
        self.parameters = parameters
        self._policy_id = policy_id
        self._bodies = bodies
        self.versions = [(int(told["from_day"]), self.version(told)) for told in parameters["versions"]]
        self._take(parameters["kinds"])

    def _take(self, kinds: Mapping[str, Mapping[str, Any]]) -> None:
        self.kinds = {name: float(kind["weight"]) for name, kind in kinds.items()}
        self.of_kind = {name: self.parts(name, kind) for name, kind in kinds.items()}

    def varied(self, random: Random, kinds_vary: float, success_varies: float) -> _Policy:
        """The policy with other shares of its kinds, and other odds that what it lets pass succeeds.

        Args:
            random: Where chance comes from.
            kinds_vary: By how much: each kind's weight is multiplied by e to a normal number of this spread.
            success_varies: The odds of success likewise, by the same number for all kinds.
        """
        odds, kinds = math.exp(random.gauss(0, success_varies)), {}
        for name, kind in self.parameters["kinds"].items():
            ends = {**kind["ends"], "succeeded": odds * kind["ends"]["succeeded"]}
            kinds[name] = {**kind, "weight": kind["weight"] * math.exp(random.gauss(0, kinds_vary)), "ends": ends}
        made = copy(self)
        made._take(kinds)
        return made

    def parts(self, name: str, kind: Mapping[str, Any]) -> _Parts:
        return _Parts(name, self.parameters, kind)

    def version(self, told: Mapping[str, Any]) -> Rulebook:
        """A version that travels with the product, or the newest of these under other conditions."""
        if "conditions" not in told:
            return load(self._bodies[self._policy_id, told["version"]])
        newest = self._bodies[max(key for key in self._bodies if key[0] == self._policy_id)]
        return load(varied(newest, told["version"], told["conditions"]))

    def since(self, day: int) -> list[tuple[int, Rulebook]]:
        """The versions that decide from a day on, each with the day from which it does."""
        last = max(since for since, _ in self.versions if since <= day)
        return [(max(since, day), rulebook) for since, rulebook in self.versions if since >= last]

    def at(self, day: int) -> Rulebook:
        return [rulebook for since, rulebook in self.versions if since <= day][-1]


def varied(body: Mapping[str, Any], version: str, conditions: Mapping[str, Any]) -> dict[str, Any]:
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


@dataclass(frozen=True, slots=True)
class _Decided:
    """A request, all that was drawn for it, and what its rulebook says."""

    request: dict[str, Any]
    facts: Mapping[str, Any]
    rulebook: Rulebook
    kind: str
    values: Mapping[str, Any]
    outcome: Outcome


def _decide(random: Random, policy: _Policy, parts: _Parts, rulebook: Rulebook, values: dict[str, Any]) -> _Decided:
    parameters = policy.parameters
    for name, spec in parts.values.items():
        values[name] = draw(spec, random, values)
    facts = {}
    for name, spec in parts.facts.items():
        values[name] = value = draw(spec, random, values)
        if value is not None:
            facts[name] = value
    if random.random() < parts.missing_fact:
        facts.pop(random.choice(sorted(rulebook.body["input_schema"]["required"])), None)
    context = {name: draw(spec, random, values) for name, spec in parameters["context"].items()}
    request = {
        "mode": "rulebook",
        "question": parameters["question"],
        "rulebook_ref": {"hash": rulebook.hash},
        "context": {"workflow": parameters["workflow"], **context, "inputs": facts},
    }
    return _Decided(request, facts, rulebook, parts.name, values, rulebook.evaluator.decide(facts))


def _by_adapter(decided: _Decided, adapter: Adapter, day: date) -> _Decided:
    """The same decision, whose request says of what an adapter makes the facts; those that it does not make go."""
    made = adapter.manifest["output_schema"]["properties"]
    facts = {name: value for name, value in decided.facts.items() if name in made}
    given, more = _SOURCES[adapter.name](facts, decided.values, day)
    context = {name: value for name, value in decided.request["context"].items() if name != "inputs"}
    invocation = {
        "adapter_id": adapter.adapter_id,
        "version": adapter.version,
        "manifest_hash": adapter.manifest_hash,
        "input": given,
    }
    request = {**decided.request, "context": context, "adapter": invocation}
    return replace(decided, request=request, facts=facts | more)


def _refund_sources(
    facts: Mapping[str, Any], values: Mapping[str, Any], day: date
) -> tuple[dict[str, Any], dict[str, Any]]:
    """An order, its payment and a claim, of which refund_facts makes facts; where one is missing, a source is.

    Args:
        facts: The facts.
        values: All that was drawn, missing facts as well.
        day: The day of the decision.

    Returns:
        The adapter's input, and the facts that it makes besides.
    """
    claimed = round(values["amount"] * 100)
    captured, refunded = claimed, 0
    if values["share_of_payment_percent"] != 100:
        # What was paid back before makes up the share, which has one digit, to the cent.
        tenths = round(values["share_of_payment_percent"] * 10)
        tens = -(-claimed // tenths)
        captured, refunded = tens * 1000, tens * tenths - claimed
    order_id, method = f"order-{values['order']}", f"method-{values['customer']}"
    line = f"{order_id}-1"
    payout = method if values["to_original_payment_method"] else f"{method}-other"
    earlier = range(1, values["prior_refunds_12_months"] + 1)
    told: Mapping[str, Mapping[str, tuple[str, Any]]] = {
        "order": {
            "placed_on": ("days_since_purchase", _days_before(day, values["days_since_purchase"])),
            "customer_refunds_on": (
                "prior_refunds_12_months",
                [_days_before(day, _DAYS_BETWEEN_REFUNDS * number) for number in earlier],
            ),
        },
        "payment": {
            "currency": ("currency", values["currency"]),
            "captured_minor": ("share_of_payment_percent", captured),
            "refunded_minor": ("share_of_payment_percent", refunded),
            "fraud_flag": ("fraud_flag", values["fraud_flag"]),
            "dispute_statuses": ("chargeback_open", ["open"] if values["chargeback_open"] else []),
        },
        "claim": {
            "amount_minor": ("amount", claimed),
            "reason": ("reason", values["reason"]),
            "payout_method_id": ("to_original_payment_method", payout),
            "evidence": ("evidence", values["evidence"]),
        },
    }
    order, payment, claim = (
        {name: value for name, (fact, value) in sources.items() if fact in facts} for sources in told.values()
    )
    of_line = {"final_sale": "final_sale", "returned": "item_returned"}
    states = {name: values[fact] for name, fact in of_line.items() if fact in facts}
    paid = {"line_id": line, "paid_minor": claimed, "refunded_minor": 0}
    given = {
        "as_of": day.isoformat(),
        "order": {**order, "order_id": order_id, "lines": [{**paid, **states}]},
        "payment": {**payment, "order_id": order_id, "method_id": method},
        "claim": {**claim, "line_ids": [line]},
    }
    more = {"payment_of_order": True}
    more |= {"exceeds_claimed_lines": False} if "amount" in facts else {}
    more |= {"chargeback_lost": False} if "chargeback_open" in facts else {}
    more |= {"some_item_returned": facts["item_returned"]} if "item_returned" in facts else {}
    return given, more


def _days_before(day: date, days: int) -> str:
    return (day - timedelta(days=days)).isoformat()


_Sources: TypeAlias = Callable[[Mapping[str, Any], Mapping[str, Any], date], tuple[dict[str, Any], dict[str, Any]]]

_SOURCES: Final[Mapping[str, _Sources]] = {"refund_facts@1.0.0": _refund_sources}
"""What makes the input of each adapter that scopes may name."""


@dataclass(frozen=True, slots=True)
class _Reports:
    """What is reported about a decision."""

    random: Random
    rates: Mapping[str, Any]
    policy: _Policy
    parts: _Parts
    decided: _Decided
    number: int
    moment: datetime

    def made(self) -> Iterator[Report]:
        """The reports, in no order."""
        if self.decided.outcome.decision == "yes":
            if self._happens(self.rates["executed"]):
                yield from self._of_approved()
        elif self.decided.outcome.decision == "review":
            yield from self._of_review()
        elif self._happens(self.rates["no_reported"]):
            status = _weighted(self.random, self.rates["no_ends"])
            yield self._outcome(self._later(self.moment, self.parts.outcome["after_hours"]), status, None)

    def _of_approved(self) -> Iterator[Report]:
        status = _weighted(self.random, self.rates["executions"])
        at = self.moment + timedelta(minutes=self._draw(self.policy.parameters["execution"]["after_minutes"]))
        yield self._execution(at, status, 1)
        if status == "failed" and self._happens(self.rates["retried"]):
            status, at = "executed", self._later(at, self.rates["retry_hours"])
            yield self._execution(at, status, 2)
        if status != "executed":
            if status == "failed" and self._happens(self.parts.outcome["reported"]):
                yield self._outcome(self._later(at, self.parts.outcome["after_hours"]), "failed", None)
            return
        if "crm_sync" in self.policy.parameters:
            yield from self._sync(at, self.policy.parameters["crm_sync"])
        if self._happens(self.parts.outcome["reported"]):
            yield from self._ends(at, _weighted(self.random, self.parts.ends))

    def _of_review(self) -> Iterator[Report]:
        at = self._later(self.moment, self.rates["review_hours"])
        if self._happens(self.rates["review_executed"]):
            # Whoever looks at a request lets the better ones pass.
            careful = self._happens(self.rates["review_care"])
            status = "succeeded" if careful else _weighted(self.random, self.parts.ends)
            if self._happens(self.parts.outcome["reported"]):
                yield from self._ends(at, status)
        elif self._happens(self.rates["review_open"]):
            yield self._outcome(at, "review", None)

    def _ends(self, executed: datetime, status: str) -> Iterator[Report]:
        """How an executed action ends: often after word that it is pending, and rarely otherwise than it seemed."""
        at = self._later(executed, self.parts.outcome["after_hours"])
        if self._happens(self.parts.outcome["pending"]):
            yield self._outcome(executed + (at - executed) * self.random.uniform(*_PENDING_AT), "pending", executed)
        yield self._outcome(at, status, executed)
        if status == "succeeded" and self._happens(self.rates["revised"]):
            yield self._outcome(self._later(at, self.rates["revised_after_hours"]), "reverted", executed)

    def _execution(self, at: datetime, status: str, attempt: int) -> Report:
        context = self.decided.request["context"]
        body = {
            "execution_status": status,
            "action_taken": self.decided.outcome.action,
            **_target(context),
            "mutation": context["mutation"],
            "execution_id": f"run-{self.decided.values['scope']}-{self.number}-{attempt}",
            "executor": self._draw(self.policy.parameters["execution"]["executor"]),
            "executed_at": timestamp(at),
        }
        return self._report(at, EXECUTIONS, body)

    def _outcome(self, at: datetime, status: str, executed: datetime | None) -> Report:
        body: dict[str, Any] = {"outcome_status": status, "action_executed": executed is not None}
        if executed is not None:
            body |= {
                "action_taken": self.decided.request["context"]["requested_action"],
                **_target(self.decided.request["context"]),
                "executed_at": timestamp(executed),
            }
            if status not in ("pending", "review"):
                metrics = self.policy.parameters["outcome"]["metrics"]
                told = {name: self._draw(specs.get(status, specs["any"])) for name, specs in metrics.items()}
                body["observed_metrics"] = told
        return self._report(at, OUTCOMES, body)

    def _sync(self, executed: datetime, parameters: Mapping[str, Any]) -> Iterator[Report]:
        if self._happens(parameters["reported"]):
            told = {name: self._draw(spec) for name, spec in parameters.items() if name != "reported"}
            status = _weighted(self.random, _SYNCS)
            at = executed + timedelta(minutes=self.random.uniform(*_SYNC_MINUTES))
            yield self._report(at, CRM_SYNCS, {"sync_status": status, "sync_direction": "writeback", **told})

    def _report(self, at: datetime, kind: Kind, body: dict[str, Any]) -> Report:
        # Timestamps have milliseconds, and what is told of later must not be dated earlier.
        whole = at.replace(microsecond=at.microsecond // 1000 * 1000)
        return Report(whole, self.number, kind, body)

    def _later(self, moment: datetime, hours: Any) -> datetime:
        return moment + timedelta(hours=self._draw(hours))

    def _draw(self, spec: Any) -> Any:
        return draw(spec, self.random, self.decided.values)

    def _happens(self, chance: float) -> bool:
        return self.random.random() < chance


def _target(context: Mapping[str, Any]) -> dict[str, Any]:
    return {name: context[name] for name in ("target_system", "target_object_id")}


def draw(spec: Any, random: Random, values: Mapping[str, Any]) -> Any:
    """A value for a description of one.

    Args:
        spec: A JSON value, which is itself the value; or an object with one of the words of data/demo/README.md; or
            any other object, whose members are drawn, and left out where that gives null.
        random: Where chance comes from.
        values: What was drawn before, by name.
    """
    if not isinstance(spec, dict):
        return spec
    for word, made in _WORDS.items():
        if word in spec:
            return made(spec, random, values)
    members = {name: draw(member, random, values) for name, member in spec.items()}
    return {name: value for name, value in members.items() if value is not None}


def _choose(spec: Mapping[str, Any], random: Random, values: Mapping[str, Any]) -> Any:
    (chosen,) = random.choices(spec["choose"], [weight for weight, _ in spec["choose"]])
    return draw(chosen[1], random, values)


def _number(spec: Mapping[str, Any], number: float, values: Mapping[str, Any]) -> float:
    low, high = spec.get("within", (-math.inf, math.inf))
    number = min(max(number, low), high)
    if "times" in spec:
        number *= values[spec["times"]]
    if "plus" in spec:
        number += values[spec["plus"]]
    digits = spec["digits"]
    return round(number, digits) if digits else round(number)


_Word: TypeAlias = Callable[[Mapping[str, Any], Random, Mapping[str, Any]], Any]
_WORDS: Final[Mapping[str, _Word]] = {
    "between": lambda spec, random, values: _number(spec, random.uniform(*spec["between"]), values),
    "skewed": lambda spec, random, values: _number(
        spec, spec["skewed"][0] * math.exp(random.gauss(0, spec["skewed"][1])), values
    ),
    "around": lambda spec, random, values: _number(spec, random.gauss(*spec["around"]), values),
    "choose": _choose,
    "chance": lambda spec, random, values: random.random() < spec["chance"],
    "same": lambda spec, random, values: values[spec["same"]],
    "text": lambda spec, random, values: spec["text"].format_map(values),
}


def _weighted(random: Random, weights: Mapping[str, float]) -> str:
    return random.choices(tuple(weights), tuple(weights.values()))[0]


def _time_of_day(random: Random, hours: Sequence[float]) -> int:
    (hour,) = random.choices(range(24), hours)
    return hour * _HOUR_MS + random.randrange(_HOUR_MS)


def _spread(total: int, weights: Sequence[float]) -> list[int]:
    """A number in whole parts after weights; their sum is the number, whatever the rounding."""
    whole = math.fsum(weights)
    ends = [0, *(round(total * part / whole) for part in accumulate(weights))]
    # The last sum may differ from the whole by a rounding.
    ends[-1] = total
    return [ends[at + 1] - ends[at] for at in range(len(weights))]


def _random(seed: int, scope: str, what: str, number: int) -> Random:
    """Random numbers of their own for each thing that is drawn; nothing secret is made of them."""
    return Random(f"{seed}/{scope}/{what}/{number}")  # noqa: S311
