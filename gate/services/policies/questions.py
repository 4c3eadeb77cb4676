"""The four policy questions, and their possible answers.

Each question has the name of a tool, a rulebook of this release that decides it, and the verdicts that
`docs/guides/answer-refund-questions.md` explains.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from gate.encoding import resources
from gate.encoding.strict_json import parse
from gate.rulebooks.rulebook import Rulebook, load

UNKNOWN: Final = "UNKNOWN"
"""The verdict where the facts carry none."""


@dataclass(frozen=True)
class Question:
    """One policy question.

    Attributes:
        service: The service that answers it, and its policy table: `refund`, `cancel`, `return`, or `trial`.
        tool: Its name as a tool, and the id of the rulebook that decides it.
        title: For readers.
        description: What it answers, for an agent that chooses among tools.
        verdicts: What each verdict means; UNKNOWN is the last.
        days: The argument that says how many days have passed, and what since; None where no days matter.
    """

    service: str
    tool: str
    title: str
    description: str
    verdicts: Mapping[str, str]
    days: tuple[str, str] | None

    @property
    def arguments(self) -> tuple[str, ...]:
        """The names of its arguments."""
        days = () if self.days is None else self.days[:1]
        return ("vendor", "region", "plan", *days, "conditions_met")

    @cached_property
    def rulebook(self) -> Rulebook:
        """The rulebook that decides it."""
        return load(parse(resources.path("data", "rulebooks", f"{self.tool}.json").read_bytes()))


_NO_VERDICT: Final = "The policy table gives no verdict for these arguments. A person must read the source."

QUESTIONS: Final = (
    Question(
        "refund",
        "refund_eligibility",
        "Refund eligibility",
        "Whether a vendor's published policy allows a refund so many days after the purchase.",
        {
            "ALLOWED": "The policy allows the refund.",
            "DENIED": "The policy does not allow the refund.",
            UNKNOWN: _NO_VERDICT,
        },
        ("days_since_purchase", "the purchase"),
    ),
    Question(
        "cancel",
        "cancellation_penalty",
        "Cancellation penalty",
        "What a vendor's published policy charges for canceling a subscription so many days after its start.",
        {
            "FREE_CANCEL": "Canceling costs nothing.",
            "PENALTY": "Canceling is possible, but has a cost. The customer has to accept it first.",
            "LOCKED": "The minimum term is not over. Canceling is not possible yet.",
            UNKNOWN: _NO_VERDICT,
        },
        ("days_since_start", "the start of the subscription"),
    ),
    Question(
        "return",
        "return_eligibility",
        "Return eligibility",
        "Whether a vendor's published policy allows the return of a product so many days after its delivery.",
        {
            "RETURNABLE": "The policy allows the return.",
            "EXPIRED": "The return window is over.",
            "NON_RETURNABLE": "The policy allows no return of this product.",
            UNKNOWN: _NO_VERDICT,
        },
        ("days_since_delivery", "the delivery"),
    ),
    Question(
        "trial",
        "trial_terms",
        "Trial terms",
        "Whether a vendor's published policy offers a free trial of a plan, and on which terms.",
        {
            "TRIAL_AVAILABLE": "The vendor offers a free trial of the plan.",
            "NO_TRIAL": "The vendor offers no free trial of the plan.",
            UNKNOWN: _NO_VERDICT,
        },
        None,
    ),
)

BY_SERVICE: Final[Mapping[str, Question]] = {question.service: question for question in QUESTIONS}
BY_TOOL: Final[Mapping[str, Question]] = {question.tool: question for question in QUESTIONS}
