"""Reviews expire while the service runs, on time, once, and after a restart for those that fell due meanwhile."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from datetime import timedelta

import orjson
import pytest

from api.expiry import Expiry
from api.http.logs import open_log
from gate.clock import utc_now
from gate.instance.instance import Instance
from gate.ledger.access.authority import Authority, Scope
from gate.ledger.chain.reviews import Terms
from tests.support.samples import HELD, sample_request


def hold(instance: Instance, authority: Authority) -> str:
    record = instance.gate().decide(authority, sample_request(**HELD), request_id="req_1").record
    return str(record["decision_id"])


def state(instance: Instance, scope: Scope, decision_id: str) -> str | None:
    review = instance.ledger.reviews.find(scope.scope_id, decision_id)
    return None if review is None else review.state


def wait_until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end, "It took longer than 20 seconds."
        time.sleep(0.01)


@pytest.fixture
def log() -> io.BytesIO:
    return io.BytesIO()


def test_a_review_that_fell_due_while_nothing_ran_expires_at_the_start(
    instance: Instance, authority: Authority, scope: Scope, log: io.BytesIO
) -> None:
    instance.ledger.review_owners.set(scope, "", "", Terms("desk", 60, 60), utc_now())
    due = hold(instance, authority)
    instance.ledger.review_owners.set(scope, "", "", Terms("desk", 7200, 60), utc_now())
    later = hold(instance, authority)
    in_an_hour = utc_now() + timedelta(hours=1)
    with Expiry(instance.settings, open_log("info", log), clock=lambda: in_an_hour):
        wait_until(lambda: state(instance, scope, due) == "expired")
    assert state(instance, scope, later) == "held"
    assert [orjson.loads(line)["event"] for line in log.getvalue().splitlines()] == ["reviews_expired"]


def test_several_services_that_let_reviews_expire_at_once_make_one_resolution_each(
    instance: Instance, authority: Authority, scope: Scope, log: io.BytesIO
) -> None:
    instance.ledger.review_owners.set(scope, "", "", Terms("desk", 60, 60), utc_now())
    ids = [hold(instance, authority) for _ in range(20)]
    in_an_hour = utc_now() + timedelta(hours=1)
    services = [Expiry(instance.settings, open_log("info", log), clock=lambda: in_an_hour) for _ in range(3)]
    for service in services:
        service.__enter__()
    wait_until(lambda: all(state(instance, scope, each) == "expired" for each in ids))
    for service in services:
        service.__exit__()
    assert instance.ledger.entries.head(scope.scope_id).size == 2 * len(ids)


def test_a_review_whose_decision_was_changed_does_not_keep_the_others_from_expiring(
    instance: Instance, authority: Authority, scope: Scope, log: io.BytesIO
) -> None:
    instance.ledger.review_owners.set(scope, "", "", Terms("desk", 60, 60), utc_now())
    damaged, whole = hold(instance, authority), hold(instance, authority)
    with instance.ledger.store.write() as connection:
        connection.exec_driver_sql("UPDATE entries SET body = '{}' WHERE position = 1")
    in_an_hour = utc_now() + timedelta(hours=1)
    with Expiry(instance.settings, open_log("info", log), interval=0.01, clock=lambda: in_an_hour):
        wait_until(lambda: state(instance, scope, whole) == "expired")
        time.sleep(0.1)
    assert state(instance, scope, damaged) == "held"
    # Logged once, and not at every look.
    logged = [orjson.loads(line) for line in log.getvalue().splitlines()]
    assert [each["event"] for each in logged].count("review_not_expired") == 1
