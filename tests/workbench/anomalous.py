"""Ledgers with a good deal that is anomalous: random, over many weeks, by what a seed says."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from gate.decisions.erasure import erase
from gate.ids import timestamp
from gate.instance.instance import Instance
from gate.records.reports.receipts import CRM_SYNCS, EXECUTIONS, OUTCOMES, Kind
from tests.support.samples import sample_request, sample_rulebook
from tests.workbench.growing import Site
from tests.workbench.support import SYNCED, claim_request, claim_rulebook

MONDAY: Final = datetime(2025, 9, 1, tzinfo=UTC)
WEEKS: Final = 18
"""How many weeks the decisions lie in."""

CHANGE: Final = 9
"""From which of them on everything is as it was not before."""

PRICING: Final = "pricing"
CLAIMS: Final = "claims"
POLICIES: Final = (PRICING, CLAIMS)

_DAY: Final = timedelta(days=1)
_WEEK: Final = timedelta(weeks=1)
_EDGES: Final = (timedelta(0), timedelta(days=7) - timedelta(milliseconds=1), timedelta(days=1), timedelta(hours=9))
_STATUSES: Final = ("executed", "executed", "executed", "reverted", "queued", "skipped", "failed", "blocked")
_LATER: Final = (0, 0, 1, 1, 2, 6, 7, 20, 30, 50, 57, 70)


def pricing_rulebook(version: str) -> dict[str, Any]:
    """The sample rulebook under a version; from 2 on it reads facts that 1 does not know of."""
    body: dict[str, Any] = {**sample_rulebook(), "rulebook_id": PRICING, "version": version}
    body["rules"] = [*body["rules"]]
    if version != "1":
        optional = {"channel": "string", "tags": "array", "customer": "object"}
        properties = {name: {"type": type_} for name, type_ in optional.items()}
        schema = body["input_schema"]
        body["input_schema"] = {**schema, "properties": {**schema["properties"], **properties}}
        condition = {"any": [{"field": "customer.tier", "operator": "eq", "value": "gold"}, _NOTED]}
        outcome = {"decision": "yes", "verdict": "GOLD", "action": "approve_discount", "reason_code": "GOLD_ALLOWED"}
        body["rules"].append({"rule_id": "approve_gold", "priority": 40, "condition": condition, "outcome": outcome})
    return body


_NOTED: Final = {"all": [{"not": {"field": "note", "operator": "not_exists"}}, {"field": "late", "operator": "exists"}]}


class AnomalousSite(Site):
    """Scopes of which the decisions change with a week, with reports that contradict themselves and one another.

    Attributes:
        requests: The request of each decision, by its id.
    """

    def __init__(self, instance: Instance, names: list[str], chance: random.Random, *, weeks: int = WEEKS) -> None:
        super().__init__(instance, names, chance)
        self.weeks = weeks
        self.requests: dict[str, dict[str, Any]] = {}
        self.made: dict[str, datetime] = {}
        # Of its own, so that what else is drawn is as it was.
        self.dating = random.Random(weeks)  # noqa: S311 - for tests to be the same each time

    def end(self, after: timedelta) -> None:
        """Adds to each scope a last entry, so long after the last week."""
        self.now = MONDAY + self.weeks * _WEEK + after
        for name, caller in self.callers.items():
            synced = self.lifecycle.report(caller, CRM_SYNCS, self.decided[name][0], SYNCED)
            self.entries[name].append(synced.report)

    def _moment(self) -> datetime:
        chance = self.chance
        week = chance.randrange(self.weeks)
        if chance.random() < 0.25:
            # Much at once.
            week = self.weeks - 3
        if chance.random() < 0.05:
            return MONDAY + week * _WEEK + chance.choice(_EDGES)
        return MONDAY + week * _WEEK + timedelta(milliseconds=chance.randrange(7 * 86_400_000))

    def _changed(self) -> bool:
        return self.now >= MONDAY + CHANGE * _WEEK

    def _decide(self, name: str) -> None:
        request = self._claimed() if self.chance.random() < 0.25 else self._priced()
        record = self.gate.decide(self.callers[name], request, request_id="req_1").record
        self.entries[name].append(record)
        self.decided[name].append(record["decision_id"])
        self.requests[record["decision_id"]] = request
        self.made[record["decision_id"]] = self.now

    def _claimed(self) -> dict[str, Any]:
        chance, changed = self.chance, self._changed()
        claim: dict[str, Any] = {"amount_minor": chance.randrange(100, 9000 if changed else 4500)}
        claim["reason"] = chance.choice(["defective", "late", "unwanted"] if changed else ["defective", 'é\n"quoted"'])
        payment: dict[str, Any] = {"captured_minor": chance.choice([9000, 9000, 6000, None])}
        return claim_request(payment, claim, claim_rulebook(CLAIMS, "2" if changed and chance.random() < 0.8 else "1"))

    def _priced(self) -> dict[str, Any]:
        chance, changed = self.chance, self._changed()
        margin = chance.choice([9, 22.5, 30, 5e-324, 2**53 - 1]) if changed else chance.choice([9, 22.5, 30, 22.5, 30])
        facts: dict[str, Any] = {"discount_percent": chance.randrange(20), "margin_percent": margin}
        facts["channel"] = chance.choice(["web", "web", "shop"] if changed else ["shop", "shop", "phone", "web"])
        facts["note"] = f"number {chance.randrange(80)}"
        facts["late"] = chance.choice([True, False, None, "yes", [1], {"by": 2}, 0, 1.5, -1e21])
        facts["tags"] = chance.choice([[], ["a", {"b": None}], "none"] if chance.random() < 0.1 else [["a"]])
        facts["customer"] = {"tier": chance.choice(["gold", "silver", None, 7]), "since": 2020}
        for left_out in ("late", "note", "customer", "tags", "margin_percent"):
            if chance.random() < 0.08:
                del facts[left_out]
        request = sample_request(**facts)
        version = chance.choices(["1", "2", "3"], [1, 8, 1] if changed else [8, 1, 0])[0]
        return {**request, "rulebook": pricing_rulebook(version)}

    def _resolve(self, name: str) -> None:
        before = len(self.entries[name])
        super()._resolve(name)
        for resolution in self.entries[name][before:]:
            # What was granted is carried out, about when the grant ends.
            for _ in range(self.dating.choice([0, 1, 1, 2])):
                self.now += timedelta(hours=self.dating.choice([1, 11, 23, 30]))
                body = {"execution_status": self.dating.choice(["executed", "executed", "queued", "reverted"])}
                told = self.lifecycle.report(
                    self.callers[name], EXECUTIONS, resolution["decision_id"], body | self._claims()
                )
                self.entries[name].append(told.report)

    def _report(self, name: str) -> None:
        if not self.decided[name]:
            return
        chance = self.chance
        decision_id = chance.choice(self.decided[name])
        late = _DAY * chance.choice(_LATER)
        exact = chance.random() < 0.3
        self.now = (
            self.made[decision_id] + late + (timedelta(0) if exact else timedelta(seconds=chance.randrange(99_999)))
        )
        if chance.random() < 0.04:
            # A clock that ran backwards.
            self.now = self.made[decision_id] - timedelta(hours=chance.randrange(1, 50))
        kind = chance.choices(["outcome", "execution", "crm-sync", "erasure"], [34, 12, 1, 1])[0]
        if kind == "erasure":
            if decision_id not in self.erased:
                self.erased.add(decision_id)
                erased = erase(self.instance.ledger, decision_id, "They asked for it.", self.now)
                self.entries[name].append(erased.erasure)
            return
        told: dict[str, tuple[Kind, dict[str, Any]]] = {
            "outcome": (OUTCOMES, self._outcome_of(decision_id)),
            "execution": (EXECUTIONS, self._execution()),
            "crm-sync": (CRM_SYNCS, SYNCED),
        }
        of, body = told[kind]
        self.entries[name].append(self.lifecycle.report(self.callers[name], of, decision_id, body).report)

    def _execution(self) -> dict[str, Any]:
        chance = self.chance
        body: dict[str, Any] = {"execution_status": chance.choice(_STATUSES)}
        if chance.random() < 0.1:
            body["target_object_id"] = "deal-9"
        if chance.random() < 0.3:
            body |= {"state_before_hash": "a" * 64, "state_after_hash": chance.choice(["a", "b"]) * 64}
        elif chance.random() < 0.1:
            body["state_before_hash"] = "a" * 64
        return body | self._claims()

    def _claims(self) -> dict[str, Any]:
        """What a receipt says of the action, and of when it was done: long before it is reported, or not yet."""
        dating, claims = self.dating, dict[str, Any]()
        if dating.random() < 0.4:
            hours = dating.choice([-2000, -100, -20, -5, 0, 0, 1])
            claims["executed_at"] = timestamp(self.now + timedelta(hours=hours, minutes=dating.randrange(7)))
        if dating.random() < 0.4:
            claims["action_taken"] = dating.choice(["approve_discount", "approve_discount", "wire_money"])
        if dating.random() < 0.1:
            claims["action_binding"] = {"proposed_action": dating.choice(["wire_money", 7, ["wire_money"]])}
        return claims

    def _outcome_of(self, decision_id: str) -> dict[str, Any]:
        chance = self.chance
        worse = self.made[decision_id] >= MONDAY + CHANGE * _WEEK
        statuses, weights = ("succeeded", "partial", "failed", "reverted", "pending", "review"), [40, 1, 1, 1, 3, 1]
        body: dict[str, Any] = {
            "outcome_status": chance.choices(statuses, [5, 1, 22, 4, 2, 1] if worse else weights)[0]
        }
        executed = chance.choice([None, None, None, True, False])
        if executed is not None:
            body["action_executed"] = executed
        if metrics := dict(self._metrics(worse)):
            body["observed_metrics"] = metrics
        return body

    def _metrics(self, changed: bool) -> Iterator[tuple[str, float]]:
        """Metrics of every kind: by ratios, by differences, with zeros and seasons, huge, tiny, and all the same; one
        that shifts with what is decided.
        """
        chance = self.chance
        if chance.random() < 0.8:
            yield "shifting", chance.gauss(40 if changed else 20, 5)
        if chance.random() < 0.8:
            yield "days", round(chance.lognormvariate(2, 0.6) * (400 if chance.random() < 0.02 else 1), 3)
        if chance.random() < 0.7:
            yield "margin", round(chance.gauss(0, 5) + (900 if chance.random() < 0.02 else 0), 2)
        if chance.random() < 0.7:
            yield "calls", chance.choice([0, 0, 1, 2, 3, 5, 8, 4000])
        if chance.random() < 0.8:
            busy = 8 <= self.now.hour < 16
            yield "by hour", (100 if busy else 10) + chance.randrange(9) + (500 if chance.random() < 0.02 else 0)
        if chance.random() < 0.8:
            yield 'by "weekday"\n', (50 if self.now.weekday() > 4 else 0) + chance.gauss(0, 1)
        if chance.random() < 0.3:
            yield "all the same", chance.choice([4, 4, 4, 4, 9])
        if chance.random() < 0.3:
            yield "extreme", chance.choice([1e308, -1e308, 1.0, 2.0, 5e-324, 3.0, 0, 1.5])
        if chance.random() < 0.3:
            yield "wide", chance.choice([1e308, 1.0, 2.0, 5e-324, 3.0, 1.5, 2.5])
        if chance.random() < 0.3:
            yield "nearly", chance.choice([0.3, 0.30000000000000004, 10_000_000_000.0, 10_000_000_000.000002])
        if chance.random() < 0.3:
            yield "rare", chance.random()
