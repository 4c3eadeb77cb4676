"""What each code of a policy answer says to a reader."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gate.services.policies.questions import Question
from gate.services.policies.table import ANY, Entry, Unfound

_NAMED: Final = 3
_LONGEST: Final = 80


@dataclass(frozen=True, slots=True)
class Told:
    """The values that a message can contain.

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
    def entry(self) -> str:
        """The entry that answers, as the beginning of a sentence."""
        if isinstance(self.found, Unfound):
            return f"The entry of {self.vendor}"
        region, plan = self.found["region"], self.found["plan"]
        where = "every region" if region == ANY else f"region {region}"
        return f"The entry of {self.vendor} for {where} and {'every plan' if plan == ANY else f'plan {plan}'}"

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
        """The costs of canceling, from the entry."""
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


def _unfound(told: Told) -> str:
    """Why there is no entry, and what to send."""
    found = told.found
    if not isinstance(found, Unfound):
        return f"The entry of {told.vendor} has no verdict."
    if found.what == "argument":
        return f"{told.question.tool} has no argument {_listed(found.sent)}. It has {', '.join(found.known)}."
    if found.why == "no_text":
        return f"{found.what} must be text{_TEXTS[found.what]}."
    if found.why == "no_country":
        return (
            f"{_listed(found.sent)} is not a country of ISO 3166-1. Send region as two letters, such as DE, with "
            "a subdivision where that matters, such as US-CA."
        )
    has = f" The table has {', '.join(found.known)}." if found.known else ""
    if found.what == "vendor":
        table = f"The policy table of {told.question.service}"
        return f"Send vendor.{has}" if found.why == "missing" else f"{table} has no vendor of that name.{has}"
    if found.why == "missing":
        return f"{told.vendor} has entries only for single {found.what}s. Send {found.what}.{has}"
    rest = " Omit plan if it is none of these." if found.rest else ""
    return f"The policy table has no entry of {told.vendor} for that {found.what}.{has}{rest}"


_TEXTS: Final[Mapping[str, str]] = {
    "vendor": " of 1 to 200 characters",
    "region": ": a country such as DE or US-CA",
    "plan": " of 1 to 200 characters",
}


def _listed(sent: Sequence[str]) -> str:
    """Some of what a caller sent, quoted."""
    named = ", ".join(repr(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}...") for text in sent[:_NAMED])
    return f"{named} and {len(sent) - _NAMED} more" if len(sent) > _NAMED else named


def _unverified(told: Told) -> str:
    day = None if isinstance(told.found, Unfound) else told.found["last_verified"]
    if day is None:
        return f"No date of verification is recorded for this entry of {told.vendor}. A person must read the source."
    return (
        f"This entry of {told.vendor} has a date of verification in the future, {day}, so it counts as "
        "unverified. A person must read the source."
    )


def _asked_days(told: Told) -> str:
    name, since = told.question.days or ("", "")
    return f"Send {name}: a number of days since {since}, from 0 to 36500."


_CARD: Final = {True: " A means of payment is required.", False: " No means of payment is required.", None: ""}


_SENTENCES: Final[Mapping[str, Callable[[Told], str]]] = {
    **dict.fromkeys(("ARGUMENT_UNKNOWN", "VENDOR_UNKNOWN", "REGION_UNKNOWN", "PLAN_UNKNOWN"), _unfound),
    "REVIEW_ONLY": lambda told: (
        f"The policy of {told.vendor} depends on more than this table contains. A person must read the source."
    ),
    "SOURCE_UNVERIFIED": _unverified,
    "SOURCE_STALE": lambda told: (
        f"This entry of {told.vendor} was last verified {_days(told.age)} ago, but entries are valid for "
        f"{_days(told.max_age_days)}. A person must read the source."
    ),
    "DAYS_MISSING": lambda told: f"The answer depends on how many days have passed. {_asked_days(told)}",
    "CONDITIONS_UNCONFIRMED": lambda told: (
        f"{told.vendor} requires conditions that are not confirmed: {', '.join(told.unconfirmed)}. Send the ones "
        "that are met in conditions_met."
    ),
    "POLICY_INCOMPLETE": lambda told: f"The entry of {told.vendor} has no verdict. A person must read the source.",
    "NOT_REFUNDABLE": lambda told: f"{told.entry} allows no refund.",
    "NOT_RETURNABLE": lambda told: f"{told.entry} allows no return.",
    "WINDOW_PASSED": lambda told: f"The window of {told.vendor} is {told.window}, and it is over.",
    "WITHIN_WINDOW": lambda told: (
        f"The window of {told.vendor} is {told.window}; {_days(_shown(told.facts['days_left']))} are left."
        if told.facts["days_left"] != 1
        else f"The window of {told.vendor} is {told.window}; 1 day is left."
    ),
    "MINIMUM_TERM": lambda told: (
        f"The minimum term of {told.vendor} is {_days(told.windows.get('locked_days'))}, and it is not over."
    ),
    "PENALTY_APPLIES": lambda told: f"Canceling has a cost: {told.penalties}",
    "WITHIN_FREE_DAYS": lambda told: (
        f"{told.vendor} lets customers cancel free of charge within {_days(told.windows.get('free_days'))}."
    ),
    "NO_PENALTY": lambda told: f"{told.entry} charges nothing for canceling a subscription.",
    "NOT_OFFERED": lambda told: f"{told.entry} has no free trial.",
    "TRIAL_OFFERED": lambda told: f"{told.vendor} offers a free trial of {told.trial}",
}


def _shown(number: object) -> object:
    return int(number) if isinstance(number, float) and number.is_integer() else number
