"""Breaks: decisions that broke a rule of the protocol. Each break is a fact, and chance plays no part.

    executed_without_yes        executed or queued without an earlier yes or grant
    executed_though_refused     executed or queued after the owner had refused it
    executed_though_expired     executed or queued after its review had expired
    executed_before_grant       executed or queued, and granted later
    executed_after_grant_ended  executed or queued after the grant had ended, by a receipt behind the grant
    duplicate_execution         executed more often than reverted, by more than one
    binding_mismatch            a receipt states another target than the decision
    action_mismatch             executed or queued, and the receipt states another action than decided or held
    state_mismatch              the state changed without an execution, or did not change with one
    approved_without_receipt    yes, without a receipt a day later or an outcome that says nothing was executed
    outcome_overdue             executed, without a terminal outcome 30 days later
    outcome_reversed            an outcome said succeeded, and the latest says failed or reverted

Times are measured to the date of the chain's last entry, so the same ledger gives the same report.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType
from typing import Final, NamedTuple

from gate.policy.anomalies.scores import BELOW_HIGH, SHARE, THRESHOLD, score
from gate.policy.confidence import wilson_interval

RECEIPT_DUE: Final = timedelta(hours=24)
"""The time after a yes by which its execution receipt is due."""

OUTCOME_DUE: Final = timedelta(days=30)
"""The time after an execution by which a terminal outcome is due."""


class Rule(NamedTuple):
    """A kind of break.

    Attributes:
        meaning: What happened, as the beginning of a sentence.
        score: The score of a single one; None if the score follows from its share of the decisions that could have it.
        next: The next step.
    """

    meaning: str
    score: float | None
    next: str


RULES: Final[Mapping[str, Rule]] = MappingProxyType(
    {
        "executed_without_yes": Rule(
            "Executed or queued without a yes",
            1.0,
            "Stop the caller that executes these actions: it does not wait for a yes. Its receipts name the executor.",
        ),
        "executed_though_refused": Rule(
            "Executed or queued although the owner had refused",
            1.0,
            "Stop the caller that executes these actions: it ignores the owner's answer. Compare its receipts with "
            "the resolution.",
        ),
        "executed_though_expired": Rule(
            "Executed or queued after the review had expired without an answer",
            1.0,
            "Stop the caller that executes these actions: an expired review grants nothing. Ask the owner whether "
            "the time limit is too short.",
        ),
        "executed_before_grant": Rule(
            "Executed or queued before the owner granted it",
            0.9,
            "Make the caller wait for the grant: it does not cover actions that were executed earlier. The "
            "receipts name the executor.",
        ),
        "executed_after_grant_ended": Rule(
            "Executed or queued after the owner's grant had ended",
            0.9,
            "Make the caller check expires_at before it acts, and ask again once the grant has ended. Compare "
            "expires_at with executed_at of the receipts.",
        ),
        "duplicate_execution": Rule(
            "Executed more than once without being reverted",
            0.9,
            "Compare execution_id and external_ref of the receipts: are there two transactions, or was one "
            "reported twice?",
        ),
        "binding_mismatch": Rule(
            "A receipt states another target than the decision",
            0.9,
            "Compare action_binding of the record with that of the receipt: the executed action is not the one "
            "that was requested.",
        ),
        "action_mismatch": Rule(
            "An action other than the decided one was executed or queued",
            0.9,
            "Compare action_taken of the receipt with the decision's action: was another action carried out, or "
            "does one action have two names?",
        ),
        "state_mismatch": Rule(
            "State hashes contradict the receipt's status",
            0.7,
            "Compare state_before_hash and state_after_hash with the target itself.",
        ),
        "approved_without_receipt": Rule(
            "Approved more than a day ago, without an execution receipt",
            None,
            "Ask the caller whether the action was executed. A late report is still evidence.",
        ),
        "outcome_overdue": Rule(
            "Executed more than 30 days ago, without a terminal outcome",
            None,
            "Find the system that should report outcomes: effectiveness counts only reported outcomes.",
        ),
        "outcome_reversed": Rule(
            "Succeeded at first, and failed or was reverted later",
            None,
            "Find what these decisions have in common: such failures show up late.",
        ),
    }
)
"""Every kind of break, by name."""

# Nothing is known to have gone wrong where only a report is missing.
_NO_HARM: Final = frozenset({"approved_without_receipt", "outcome_overdue"})


@dataclass(frozen=True, slots=True)
class Broken:
    """The decisions with one kind of break.

    Attributes:
        kind: The kind, one of `RULES`.
        count: How many.
        of: How many could have it.
        first: When the first of them was decided; UTC timestamp.
        last: When the last of them broke, as far as a report tells; else when the last was decided.
        positions: The chain positions of the latest of them.
    """

    kind: str
    count: int
    of: int
    first: str
    last: str
    positions: tuple[int, ...]

    @property
    def score(self) -> float:
        """The score: that of a single one, or by the low end of the interval of their share."""
        fixed = RULES[self.kind].score
        if fixed is not None:
            return fixed
        low, _ = wilson_interval(self.count, self.of)
        by_share = max(THRESHOLD, score(low, SHARE))
        return min(by_share, BELOW_HIGH) if self.kind in _NO_HARM else by_share
