"""The audit of a chain: idempotency keys are part of what has to hold. (Entries and links: tests/api/cli.)"""

from __future__ import annotations

import pytest

from gate.audit import check_chain
from gate.instance import Instance
from gate.ledger.access import Authority, Scope
from tests.support import sample_request


@pytest.mark.parametrize(
    ("change", "position"),
    [
        ("DELETE FROM claims WHERE position = 2", 2),
        ("UPDATE claims SET position = 3 WHERE position = 2", 2),
        ("UPDATE claims SET input_hash = 'x' WHERE position = 1", 1),
    ],
)
def test_a_claim_that_leads_elsewhere_is_found_with_its_place(
    instance: Instance, scope: Scope, authority: Authority, change: str, position: int
) -> None:
    gate = instance.gate()
    for number in range(3):
        gate.decide(authority, sample_request(), request_id="req_1", idempotency_key=f"order-{number}")
    assert check_chain(instance, scope.scope_id) == (3, None)
    with instance.ledger.store.write() as connection:
        connection.exec_driver_sql(change)
    _, broken = check_chain(instance, scope.scope_id)
    assert broken is not None
    assert (broken.position, "idempotency key" in broken.reason) == (position, True)
