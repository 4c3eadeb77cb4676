"""The members of reports, and another implementation of their hashes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tests.independent import verifier
from tests.support.samples import cases

MEMBERS: Final = {case["kind"]: case for case in cases("report_members")}

ELSEWHERE: Final[dict[str, Callable[[dict[str, Any]], str]]] = {
    "execution": verifier.execution_hash,
    "outcome": verifier.outcome_hash,
    "crm-sync": verifier.sync_hash,
}

SCHEMAS: Final = {"execution": "execution-receipt", "outcome": "outcome-record", "crm-sync": "crm-sync-record"}
