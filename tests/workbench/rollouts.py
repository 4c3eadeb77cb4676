"""A policy whose second version approves what its first one blocked, and what came of it."""

from __future__ import annotations

from typing import Any, Final

from gate.rulebooks.rulebook import load
from tests.support.samples import sample_rulebook
from tests.workbench.made_up import DAY, HOUR, MONDAY, WEEK, MadeUp

POLICY: Final = "pricing"
FLOOR: Final = 15
"""The margin below which the first version blocks."""

AFTER: Final = 8
"""From which week on the second version decides."""

A_WEEK: Final = 30
"""How many decisions a week has."""


def pricing(version: str, policy_id: str = POLICY, floor: int = FLOOR) -> dict[str, Any]:
    """The sample rulebook with a floor under the margin."""
    body = {**sample_rulebook(), "rulebook_id": policy_id, "version": version}
    body["rules"][0]["condition"]["value"] = floor
    body["rules"][1]["condition"]["all"][1]["value"] = floor
    return body


def rollout(
    first: dict[str, Any], second: dict[str, Any], *, trial: dict[str, Any] | None = None, late: bool = True
) -> MadeUp:
    """Ten weeks of a policy. A third of the requests have a margin of 3, which fail where they are approved; under the
    second version another third fails as well.

    Args:
        first: The rulebook of the first eight weeks.
        second: That of the other two.
        trial: What decides one of ten requests in the first weeks, instead of the first.
        late: Whether an outcome is reported nine days after the last decision: outcomes are compared some days after
            their decisions at the earliest.
    """
    chain = MadeUp()
    for week in range(AFTER + 2):
        for number in range(A_WEEK):
            new = week >= AFTER
            body = second if new else trial if trial is not None and number % 10 == 9 else first
            facts = {"discount_percent": 10, "margin_percent": 3 if number % 3 == 0 else 22}
            decided = load(body).evaluator.decide(facts)
            at = MONDAY + week * WEEK + number * 5 * HOUR
            decision_id = chain.decide(
                at,
                verdict=decided.decision,
                reason=decided.reason_code,
                version=body["version"],
                policy_id=body["rulebook_id"],
                facts=facts,
                rulebook=body,
                rule=f"rule:{decided.matched_rule_id or 'default'}",
                outcome=(decided.verdict, decided.action),
            )
            if decided.decision == "yes":
                failed = facts["margin_percent"] == 3 or (new and number % 3 == 1)
                chain.outcome(decision_id, at + HOUR, "failed" if failed else "succeeded")
    if late:
        chain.outcome(decision_id, at + 9 * DAY)
    return chain
