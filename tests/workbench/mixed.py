"""A chain of some policies with some of everything, drawn by chance, and the ways in which a lake can hold it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from gate.ids import timestamp
from gate.policy.effectiveness import Standing
from tests.workbench.made_up import MONDAY, MadeUp
from workbench.lake.entries import Personal
from workbench.lake.reader import Snapshot

POLICIES: Final = {"refunds": ["1", "2", "<b>3</b>"], "shipping": ["only"], "trials é": ["1", "2"]}
RULES: Final = {
    "rule:small": [("yes", "SMALL")],
    "rule:large": [("review", "LARGE"), ("no", "LARGE")],
    "rule:default": [("review", "NO_RULE")],
    "schema:failed": [("no", "FACTS_MISSING"), ("review", "FACTS_MISSING")],
}
UNUSED: Final = "never"
"""A rule of every rulebook that decides nothing."""

STATUSES: Final = tuple(name for name in Standing._fields if name != "unreported")
EXECUTED: Final = ("executed", "queued", "skipped", "failed", "blocked", "reviewed", "reverted")
ANSWERS: Final = ("granted", "granted", "refused", "expired")
TARGETS: Final = tuple(f"order-{number}" for number in range(7))
DAYS: Final = 70


def mixed(seed: int, turns: int) -> MadeUp:
    """A chain of so many decisions and about as many reports, in random order and at random moments."""
    chance = random.Random(seed)  # noqa: S311 - for tests to be the same each time
    chain = MadeUp()
    decided: list[str] = []
    for number in range(2 * turns):
        at = MONDAY + timedelta(milliseconds=chance.randrange(DAYS * 86_400_000))
        if number % 2 == 0:
            decided.append(_decide(chain, chance, at, number))
        else:
            _report(chain, chance, at, chance.choice(decided))
    return chain


def timed(chain: MadeUp, seed: int) -> MadeUp:
    """A chain in which some of what was told has the time of its event as well, before or after it was told."""
    chance = random.Random(seed)  # noqa: S311 - for tests to be the same each time
    for entry in chain.entries:
        if chance.random() < 0.3:
            continue
        told = datetime.fromisoformat(entry.get("created_at") or entry["reported_at"])
        at = told + timedelta(milliseconds=chance.randrange(-DAYS * 86_400_000, 300_001))
        if "created_at" in entry:
            chain.requests[entry["decision_id"]]["occurred_at"] = timestamp(at)
        elif "outcome_id" in entry:
            entry["occurred_at"] = timestamp(at)
        elif "execution_receipt_id" in entry:
            # No bound is set to these when they are reported.
            entry["executed_at"] = timestamp(at + timedelta(hours=chance.choice([0, 0, 0, 1_000_000])))
    return chain


def rulebook(policy_id: str, version: str) -> dict[str, Any]:
    """A rulebook of a policy, with a rule that decides nothing."""
    outcome = {"decision": "yes", "verdict": "YES", "action": "refund", "reason_code": "SMALL"}
    names = [*(name.removeprefix("rule:") for name in ("rule:small", "rule:large")), UNUSED]
    return {
        "rulebook_id": policy_id,
        "version": version,
        "input_schema": {"required": [], "properties": {"amount": {"type": "number"}}},
        "rules": [
            {
                "rule_id": name,
                "priority": priority,
                "condition": {"field": "amount", "operator": "lt", "value": priority},
                "outcome": outcome,
            }
            for priority, name in enumerate(names)
        ],
        "default_outcome": {**outcome, "decision": "review", "reason_code": "NO_RULE"},
    }


def snapshots(chain: MadeUp, lake: Path, personal: Personal | None = None) -> Sequence[Snapshot]:
    """The chain as a report reads it: from the ledger alone, from files, and from files that are resolved in part."""
    whole = len(chain.entries)
    held = [(0, 0), (whole // 2, whole // 3), (whole, whole // 2), (whole, whole)]
    return [
        chain.snapshot(lake / str(number), personal, exported=exported, compacted=compacted)
        for number, (exported, compacted) in enumerate(held)
    ]


def _decide(chain: MadeUp, chance: random.Random, at: datetime, number: int) -> str:
    policy_id = chance.choice(list(POLICIES))
    version = chance.choice(POLICIES[policy_id])
    rule = chance.choice(list(RULES))
    verdict, reason = chance.choice(RULES[rule])
    return chain.decide(
        at,
        verdict=verdict,
        reason=reason,
        version=version,
        policy_id=policy_id,
        facts={"amount": chance.randrange(100)},
        rulebook=rulebook(policy_id, version),
        rule=rule,
        target=chance.choice(TARGETS),
        request_id=f"req_{number}",
    )


def _report(chain: MadeUp, chance: random.Random, at: datetime, decision_id: str) -> None:
    kind = chance.choices(["outcome", "receipt", "erasure"], [10, 5, 1])[0]
    if kind != "erasure" and chain.is_held(decision_id) and chance.random() < 0.3:
        chain.resolve(decision_id, at, chance.choice(ANSWERS))
    elif kind == "receipt":
        chain.receipt(decision_id, at, chance.choice(EXECUTED))
    elif kind == "erasure":
        chain.erase(decision_id, at)
    else:
        metrics = {name: chance.choice([0.5, -2, 7, 1e300]) for name in ("margin", "days é") if chance.random() < 0.5}
        more = {"observed_metrics": metrics} if metrics else {}
        chain.outcome(decision_id, at, chance.choice(STATUSES), **more)
