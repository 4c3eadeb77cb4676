"""The owners of the demo's held decisions, and their answers: grants, refusals, and missed time limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Final

from api.cli.demo.drawing import Number, Values, read_number, weighted, whole_milliseconds
from api.cli.demo.parameters import OwnerParameters, Weights
from gate.encoding.strict_json import JsonObject
from gate.ledger.chain.reviews import Terms
from gate.records.reports.resolution import EXPIRED

_EXPIRES_AFTER: Final = timedelta(milliseconds=500)
"""How long after the time limit the service lets a review expire: it looks every second."""


@dataclass(frozen=True, slots=True)
class Resolve:
    """The resolution of a held decision.

    Attributes:
        moment: When.
        number: The decision's number in its scope.
        resolution: granted, refused or expired.
        body: The owner's request; None if the review expires.
    """

    moment: datetime
    number: int
    resolution: str
    body: JsonObject | None


@dataclass(frozen=True, slots=True)
class Owner:
    """A team that owns reviews of a scope.

    Attributes:
        policy_id: The policy whose reviews it owns.
        action: The action; "" means all actions without another owner.
        terms: Its name, its time limit, and how long its grants open an action.
        people: The people who answer.
        unanswered: The probability that nobody answers.
        answer_hours: The hours until somebody answers.
        answers: The weight of each answer.
        notes: The notes by answer; None is an answer without a note.
    """

    policy_id: str
    action: str
    terms: Terms
    people: Sequence[str]
    unanswered: float
    answer_hours: Number
    answers: Weights
    notes: Mapping[str, Sequence[str | None]]

    def answer(self, random: Random, number: int, held: datetime, values: Values) -> Resolve | None:
        """Draws the resolution of a review; None if it stays held.

        Args:
            random: The source of random numbers.
            number: The decision's number in its scope.
            held: When the decision was made.
            values: All values drawn for it.
        """
        silent = random.random() < self.unanswered
        moment = held + timedelta(hours=self.answer_hours.number(random, values))
        resolution = weighted(random, self.answers)
        body: JsonObject = {"resolution": resolution, "resolved_by": random.choice(self.people)}
        note = random.choice(self.notes[resolution])
        if self.terms.within_seconds is not None:
            due = held + timedelta(seconds=self.terms.within_seconds)
            if silent or moment >= due:
                return Resolve(due + _EXPIRES_AFTER, number, EXPIRED, None)
        if silent:
            return None
        return Resolve(whole_milliseconds(moment), number, resolution, body if note is None else {**body, "note": note})


def read_owner(told: OwnerParameters, people: Mapping[str, Sequence[str]]) -> Owner:
    """Reads the parameters of an owner, for a scope with these people by team.

    Raises:
        KeyError: The scope has nobody in the team.
    """
    within = told.get("within_hours")
    terms = Terms(
        owner=told["owner"],
        within_seconds=None if within is None else round(within * 3600),
        grant_seconds=round(told["grant_hours"] * 3600),
    )
    return Owner(
        told["policy"],
        told.get("action", ""),
        terms,
        people[told["owner"]],
        told["unanswered"],
        read_number(told["answer_hours"]),
        told["answers"],
        told["notes"],
    )
