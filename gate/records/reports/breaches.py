"""How the receipts behind a grant break it: in sentences that commands and pages share.

breaches(receipts, "2026-06-12T08:00:00.000Z")
    # ["A receipt is dated 2026-06-12 08:06 UTC, more than 5 minutes after the grant ended (2026-06-12 08:00 UTC)."]
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
    """How the receipts behind a grant break it, a sentence for each way; empty where none does.

    A receipt breaks it that is dated more than `AHEAD` after the grant ended, unless one says that the action was
    queued in time, and a receipt that names another action. The anomalies go by the same rule.

    Args:
        receipts: Execution receipts of the held decision, the newest first.
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
        found.append(f"A receipt names another action than the granted one: {shown(other)}.")
    return found


def dated_at(receipt: Mapping[str, Any]) -> datetime:
    """When the action of an execution receipt was performed: its executed_at, or else when it was reported, as it is
    for a receipt whose executed_at had not come by then.
    """
    reported = parse_timestamp(receipt["reported_at"])
    if "executed_at" not in receipt:
        return reported
    told = parse_timestamp(receipt["executed_at"])
    return reported if told > reported + AHEAD else told


def last_executed_at(receipts: Iterable[Mapping[str, Any]]) -> str | None:
    """When a receipt last said that the action was executed; None where none does.

    Args:
        receipts: Execution receipts, the newest first.
    """
    return next((each["reported_at"] for each in receipts if each["execution_status"] == "executed"), None)


def _is_under_way(receipt: Mapping[str, Any]) -> bool:
    return receipt["execution_status"] in ("executed", "queued")


def _minute(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"
