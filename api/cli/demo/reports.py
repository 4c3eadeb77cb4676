"""The events after a decision of the demo with their times: the owner's answer, executions, outcomes, and CRM syncs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Final

from api.cli.demo.drawing import Number, read_number, weighted, whole_milliseconds
from api.cli.demo.owners import Owner, Resolve
from api.cli.demo.parameters import ReportRates
from api.cli.demo.policies import Parts, Policy, Sync
from api.cli.demo.requests import Decided
from gate.encoding.strict_json import JsonObject
from gate.ids import timestamp
from gate.records.reports.receipts import CRM_SYNCS, EXECUTIONS, OUTCOMES, Kind
from gate.records.reports.resolution import GRANTED, REFUSED

_SYNC_MINUTES: Final = (0.2, 10.0)
_SYNCS: Final = {"written": 0.94, "failed": 0.04, "pending": 0.02}
_PENDING_AT: Final = (0.1, 0.5)
"""Between which parts of the time to an end the word that it is pending comes."""


@dataclass(frozen=True, slots=True)
class Report:
    """A report about a decision.

    Attributes:
        moment: When.
        number: The decision's number in its scope.
        kind: The kind of report.
        body: The report's request.
    """

    moment: datetime
    number: int
    kind: Kind
    body: JsonObject


class Rates:
    """The probabilities and times of reports, which are the same for all policies.

    Attributes:
        told: The rates of the parameters.
        retry_hours: The hours until a failed action is retried.
        review_hours: The hours until somebody has reviewed a request without an owner.
        revised_after_hours: The hours until an outcome is revised.
    """

    def __init__(self, told: ReportRates) -> None:
        """Reads the parameters."""
        self.told: Final = told
        self.retry_hours: Final = read_number(told["retry_hours"])
        self.review_hours: Final = read_number(told["review_hours"])
        self.revised_after_hours: Final = read_number(told["revised_after_hours"])


@dataclass(frozen=True, slots=True)
class Reports:
    """The events after a decision.

    Attributes:
        random: The source of random numbers.
        rates: The probabilities and times.
        policy: The policy that decided.
        parts: The drawings of the request.
        decided: The request, and its verdict.
        number: The decision's number in its scope.
        moment: When it was decided.
        owner: The owner of its review; None without an owner.
        hasty: Whether a held action is executed without an answer.
    """

    random: Random
    rates: Rates
    policy: Policy
    parts: Parts
    decided: Decided
    number: int
    moment: datetime
    owner: Owner | None
    hasty: bool = False

    def made(self) -> Iterator[Report | Resolve]:
        """The reports, and the resolution of a review, in any order."""
        if self.decided.outcome.decision == "yes":
            if self._happens(self.rates.told["executed"]):
                yield from self._carried_out(self.moment)
        elif self.decided.outcome.decision == "review":
            yield from self._of_unowned() if self.owner is None else self._of_held(self.owner)
        elif self._happens(self.rates.told["no_reported"]):
            status = weighted(self.random, self.rates.told["no_ends"])
            yield self._outcome(self._later(self.moment, self.parts.after_hours), status, None)

    def _carried_out(self, allowed: datetime, care: float = 0) -> Iterator[Report]:
        """What follows from a moment on: an execution, tried again where it fails, and how it ends.

        Args:
            allowed: From when.
            care: How often it succeeds whatever its kind, for somebody chose it.
        """
        status = weighted(self.random, self.rates.told["executions"])
        at = allowed + timedelta(minutes=self._number(self.policy.after_minutes))
        yield self._execution(at, status, 1)
        if status == "failed" and self._happens(self.rates.told["retried"]):
            status, at = "executed", self._later(at, self.rates.retry_hours)
            yield self._execution(at, status, 2)
        if status != "executed":
            if status == "failed" and self._happens(self.parts.reported):
                yield self._outcome(self._later(at, self.parts.after_hours), "failed", None)
            return
        if self.policy.sync is not None:
            yield from self._sync(at, self.policy.sync)
        if self._happens(self.parts.reported):
            yield from self._ends(at, self._status(care))

    def _of_held(self, owner: Owner) -> Iterator[Report | Resolve]:
        answer = owner.answer(self.random, self.number, self.moment, self.decided.values)
        if answer is not None:
            yield answer
        if self.hasty:
            # Nobody's answer is waited for, and a refusal that was there first is not looked at.
            started = answer.moment if answer is not None and answer.resolution == REFUSED else self.moment
            yield from self._carried_out(started)
        elif answer is not None and answer.resolution == GRANTED:
            if self._happens(self.rates.told["granted_executed"]):
                yield from self._carried_out(answer.moment, self.rates.told["review_care"])
        elif self._happens(self.rates.told["review_open"]):
            until = self._later(self.moment, self.rates.review_hours) if answer is None else answer.moment
            yield self._outcome(self.moment + (until - self.moment) / 2, "review", None)

    def _of_unowned(self) -> Iterator[Report]:
        at = self._later(self.moment, self.rates.review_hours)
        if self._happens(self.rates.told["review_executed"]):
            status = self._status(self.rates.told["review_care"])
            if self._happens(self.parts.reported):
                yield from self._ends(at, status)
        elif self._happens(self.rates.told["review_open"]):
            yield self._outcome(at, "review", None)

    def _status(self, care: float) -> str:
        """How it ends: reviewers let the better requests pass."""
        careful = care > 0 and self._happens(care)
        return "succeeded" if careful else weighted(self.random, self.parts.ends)

    def _ends(self, executed: datetime, status: str) -> Iterator[Report]:
        """How an executed action ends: often after word that it is pending, and rarely otherwise than it seemed."""
        at = self._later(executed, self.parts.after_hours)
        if self._happens(self.parts.pending):
            yield self._outcome(executed + (at - executed) * self.random.uniform(*_PENDING_AT), "pending", executed)
        yield self._outcome(at, status, executed)
        if status == "succeeded" and self._happens(self.rates.told["revised"]):
            yield self._outcome(self._later(at, self.rates.revised_after_hours), "reverted", executed)

    def _execution(self, at: datetime, status: str, attempt: int) -> Report:
        # The action of a review is to ask its owner; a receipt that names another one contradicts the decision.
        approved = self.decided.outcome.decision == "yes"
        taken: JsonObject = {"action_taken": self.decided.outcome.action} if approved else {}
        body: JsonObject = {
            "execution_status": status,
            **taken,
            **self._target(),
            "mutation": self.decided.context["mutation"],
            "execution_id": f"run-{self.decided.values['scope']}-{self.number}-{attempt}",
            "executor": self.policy.executor.draw(self.random, self.decided.values),
            "executed_at": timestamp(at),
        }
        return self._report(at, EXECUTIONS, body)

    def _outcome(self, at: datetime, status: str, executed: datetime | None) -> Report:
        body: JsonObject = {"outcome_status": status, "action_executed": executed is not None}
        if executed is not None:
            body |= {
                "action_taken": self.decided.context["requested_action"],
                **self._target(),
                "executed_at": timestamp(executed),
            }
            if status not in ("pending", "review"):
                body["observed_metrics"] = {
                    name: by_status.get(status, by_status["any"]).draw(self.random, self.decided.values)
                    for name, by_status in self.policy.metrics.items()
                }
        return self._report(at, OUTCOMES, body)

    def _sync(self, executed: datetime, sync: Sync) -> Iterator[Report]:
        if self._happens(sync.reported):
            told = {name: drawing.draw(self.random, self.decided.values) for name, drawing in sync.members.items()}
            status = weighted(self.random, _SYNCS)
            at = executed + timedelta(minutes=self.random.uniform(*_SYNC_MINUTES))
            yield self._report(at, CRM_SYNCS, {"sync_status": status, "sync_direction": "writeback", **told})

    def _report(self, at: datetime, kind: Kind, body: JsonObject) -> Report:
        return Report(whole_milliseconds(at), self.number, kind, body)

    def _target(self) -> JsonObject:
        context = self.decided.context
        return {"target_system": context["target_system"], "target_object_id": context["target_object_id"]}

    def _later(self, moment: datetime, hours: Number) -> datetime:
        return moment + timedelta(hours=self._number(hours))

    def _number(self, told: Number) -> float:
        return told.number(self.random, self.decided.values)

    def _happens(self, chance: float) -> bool:
        return self.random.random() < chance
