"""What each code of a policy answer says to a reader."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gate.services.policies.questions import Question
from gate.services.policies.table import Entry, Unfound


@dataclass(frozen=True, slots=True)
class Told:
    """What a message can tell of.

    Attributes:
        question: The question.
        vendor: The vendor, as the table or else the caller names it.
        found: The entry, or why there is none.
        facts: What the rulebook decided over.
        age: How many days ago the entry was verified; None where it never was.
        unconfirmed: The conditions that the caller did not confirm.
        max_age_days: How long after its last verification an entry answers.
    """

    question: Question
    vendor: str
    found: Entry | Unfound
    facts: Mapping[str, object]
    age: int | None
    unconfirmed: Sequence[str]
    max_age_days: int

    @property
    def windows(self) -> Mapping[str, object]:
        """The windows of the entry; empty where it has none."""
        return {} if isinstance(self.found, Unfound) else dict(self.found.get("windows", {}))

    @property
    def window(self) -> str:
        """The window of a refund or a return, in words."""
        return _days(self.windows.get(f"{self.question.service}_days"))

    @property
    def penalties(self) -> str:
        """What the entry says that cancelling costs."""
        return "" if isinstance(self.found, Unfound) else " ".join(self.found.get("penalties", []))

    @property
    def trial(self) -> str:
        """The trial that the entry offers, as the end of a sentence and another sentence."""
        offer = "none" if isinstance(self.found, Unfound) else self.found.get("offers", "none")
        return "" if isinstance(offer, str) else f"{_days(offer['trial_days'])}.{_CARD[offer['card_required']]}"


def message(code: str, told: Told) -> str:
    """The sentence for a code, with the numbers of this answer."""
    return _SENTENCES[code](told)


def _days(count: object) -> str:
    return "1 day" if count == 1 else f"{count} days"


def _known(told: Told, what: str) -> str:
    known = told.found.known if isinstance(told.found, Unfound) else ()
    return f" The table has {', '.join(known)}." if known else f" Check the {what}."


def _asked_days(told: Told) -> str:
    name, since = told.question.days or ("", "")
    return f"Send {name}: a number of days since {since}, from 0 to 36500."


_CARD: Final = {True: " A means of payment is required.", False: " No means of payment is required.", None: ""}


_SENTENCES: Final[Mapping[str, Callable[[Told], str]]] = {
    "VENDOR_UNKNOWN": lambda told: (
        f"The policy table of {told.question.service} has no vendor of that name.{_known(told, 'spelling')}"
    ),
    "REGION_UNKNOWN": lambda told: f"The policy table has no entry of {told.vendor} for that region.{_regions(told)}",
    "PLAN_UNKNOWN": lambda told: f"The policy table has no entry of {told.vendor} for that plan.{_known(told, 'plan')}",
    "REVIEW_ONLY": lambda told: (
        f"What {told.vendor} decides depends on more than this table holds; a person must read the source."
    ),
    "SOURCE_UNVERIFIED": lambda told: (
        f"Nobody has verified this entry of {told.vendor} against its source; a person must read the source."
    ),
    "SOURCE_STALE": lambda told: (
        f"This entry of {told.vendor} was last verified {_days(told.age)} ago, and entries answer for "
        f"{_days(told.max_age_days)}; a person must read the source."
    ),
    "DAYS_MISSING": lambda told: f"The answer depends on how many days have passed. {_asked_days(told)}",
    "CONDITIONS_UNCONFIRMED": lambda told: (
        f"{told.vendor} asks for conditions that are not confirmed: {', '.join(told.unconfirmed)}. Send those that "
        f"hold in conditions_met."
    ),
    "POLICY_INCOMPLETE": lambda told: f"The entry of {told.vendor} carries no verdict; a person must read the source.",
    "NOT_REFUNDABLE": lambda told: f"{told.vendor} does not refund this plan.",
    "NOT_RETURNABLE": lambda told: f"{told.vendor} does not take this product back.",
    "WINDOW_PASSED": lambda told: f"The window of {told.vendor} is {told.window}, and it is over.",
    "WITHIN_WINDOW": lambda told: (
        f"The window of {told.vendor} is {told.window}; {_days(_shown(told.facts['days_left']))} are left."
        if told.facts["days_left"] != 1
        else f"The window of {told.vendor} is {told.window}; 1 day is left."
    ),
    "MINIMUM_TERM": lambda told: (
        f"The minimum term of {told.vendor} is {_days(told.windows.get('locked_days'))}, and it is not over."
    ),
    "PENALTY_APPLIES": lambda told: f"Cancelling costs something: {told.penalties}",
    "WITHIN_FREE_DAYS": lambda told: (
        f"{told.vendor} lets customers cancel free of charge within {_days(told.windows.get('free_days'))}."
    ),
    "NO_PENALTY": lambda told: f"{told.vendor} asks for nothing when this plan is cancelled.",
    "NOT_OFFERED": lambda told: f"{told.vendor} offers no free trial of this plan.",
    "TRIAL_OFFERED": lambda told: f"{told.vendor} offers a free trial of {told.trial}",
}


def _shown(number: object) -> object:
    return int(number) if isinstance(number, float) and number.is_integer() else number


def _regions(told: Told) -> str:
    if not isinstance(told.found, Unfound) or not told.found.known:
        return " Check the region."
    return f" The table has {', '.join(told.found.known)}; * stands for every region."
