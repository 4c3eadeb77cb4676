"""Finds the receipts that break a grant, in sentences that commands and pages share.

    breaches(receipts, "2026-06-12T08:00:00.000Z")
    # ["A receipt is dated 2026-06-12 08:06 UTC, more than 5 minutes after the grant ended (2026-06-12 08:00 UTC)."]

The anomaly reports use the same rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from gate.ids import AHEAD, parse_timestamp
from gate.records.reports.receipts import ACTION_TAKEN_MISMATCH, NOT_APPROVED
from gate.rulebooks.explanation import shown

_MINUTES: Final = AHEAD // timedelta(minutes=1)


def breaches(receipts: Iterable[Mapping[str, Any]], ends_at: str) -> list[str]:
    """Says how the receipts after a grant break it, with one sentence for each kind of breach.

    A receipt breaks the grant if it is dated more than `AHEAD` after the end of the grant, unless another receipt says
    that the action was queued in time. A receipt also breaks the grant if it states a different action.

    Args:
        receipts: The execution receipts of the held decision, newest first.
        ends_at: The end of the grant, as a UTC timestamp.
    """
    behind = [each for each in receipts if _is_under_way(each) and NOT_APPROVED not in each["flags"]]
    ended = parse_timestamp(ends_at)
    until = ended + AHEAD
    last = max(map(dated_at, behind), default=ended)
    in_time = any(each["execution_status"] == "queued" and dated_at(each) <= until for each in behind)
    found = []
    if last > until and not in_time:
        after = f"more than {_MINUTES} minutes after the grant ended ({_minute(ended)})"
        found.append(f"A receipt is dated {_minute(last)}, {after}.")
    other = next((each["action_taken"] for each in behind if ACTION_TAKEN_MISMATCH in each["flags"]), None)
    if other is not None:
        found.append(f"A receipt states a different action from the granted one: {shown(other)}.")
    return found


def dated_at(receipt: Mapping[str, Any]) -> datetime:
    """The time of the action in an execution receipt: its `executed_at`.

    Without `executed_at`, or if it was in the future, it is the time of the report.
    """
    reported = parse_timestamp(receipt["reported_at"])
    if "executed_at" not in receipt:
        return reported
    told = parse_timestamp(receipt["executed_at"])
    return reported if told > reported + AHEAD else told


def last_executed_at(receipts: Iterable[Mapping[str, Any]]) -> str | None:
    """The time of the newest receipt that says that the action was executed, or None.

    Args:
        receipts: The execution receipts, newest first.
    """
    return next((each["reported_at"] for each in receipts if each["execution_status"] == "executed"), None)


def _is_under_way(receipt: Mapping[str, Any]) -> bool:
    return receipt["execution_status"] in ("executed", "queued")


def _minute(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"
