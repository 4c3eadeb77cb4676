"""The policy tables that tests ask, and the day on which they ask."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from gate.services.policies.answers import PolicyAnswer, answer, read_arguments
from gate.services.policies.questions import BY_SERVICE
from gate.services.policies.table import PolicyTable, read_table
from tests.support.samples import CASES

NOW: Final = datetime(2026, 11, 28, 12, 0, tzinfo=UTC)
MAX_AGE: Final = 180

TABLES: Final[dict[str, PolicyTable]] = {
    service: read_table((CASES / "policy_tables" / f"{service}.json").read_bytes(), service, NOW.date())
    for service in BY_SERVICE
}


def ask(service: str, arguments: dict[str, Any], now: datetime = NOW) -> PolicyAnswer:
    """The answer of a service to arguments, from the tables of the tests."""
    question = BY_SERVICE[service]
    return answer(question, TABLES[service], read_arguments(question, arguments), now, max_age_days=MAX_AGE)
