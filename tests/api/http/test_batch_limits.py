"""Rate, monthly cap, access and routes, as they hold for the requests of a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from gate.clock import utc_now
from gate.instance.instance import Instance
from gate.ledger import Ledger, open_ledger
from gate.ledger.access.authority import FULL_ACCESS, Scope
from tests.api.deciding import brief, chain_size, decide, decide_batch, item, refused, results_of, send_batch
from tests.support.migrations import candidate, desk
from tests.support.postgres import database_of
from tests.support.samples import LimitClock, ledger_url, sample_request

RATE = ("x-ratelimit-limit", "x-ratelimit-remaining")
LEFT = "x-usage-monthly-remaining"
LIMITED = (429, "SVC_API_RATE_LIMITED")
CAPPED = (429, "SVC_API_MONTHLY_CAP_EXCEEDED")
FORBIDDEN = (403, "SVC_API_UNAUTHORIZED")
INVALID = (422, "SVC_API_REQUEST_INVALID")
WRONG: dict[str, Any] = {"mode": "rulebook", "colour": "red"}


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> Iterator[str | None]:
    """Where the ledger is."""
    with database_of(request) as url:
        yield url


@pytest.fixture
def other(ledger: Ledger) -> Iterator[Ledger]:
    """The same ledger, opened as by another process."""
    opened = open_ledger(ledger_url(ledger))
    yield opened
    opened.close()


def with_plan(ledger: Ledger, plan: str, cap: int | None = None) -> tuple[Scope, str]:
    scope = ledger.directory.create_scope("limited", plan, utc_now(), monthly_cap=cap)
    return scope, ledger.directory.create_key(scope, FULL_ACCESS, None, utc_now())[0]


def rate_headers(response: TestResponse) -> tuple[str | None, ...]:
    return tuple(response.headers.get(name) for name in RATE)


class TestRate:
    """Each request of a batch counts, in order."""

    def test_the_first_ones_are_decided_and_the_rest_refused_to_the_request(
        self, client: FlaskClient, instance: Instance, ledger: Ledger, limit_clock: LimitClock
    ) -> None:
        scope, key = with_plan(ledger, "starter")
        response = send_batch(client, key, {"requests": [item(), item(WRONG), *[item()] * 11]})
        assert brief(results_of(response)) == ["created", INVALID, *["created"] * 11]
        assert rate_headers(response) == ("20", "7")
        limit_clock.now += 15
        response = send_batch(client, key, {"requests": [item(None, f"k{number}") for number in range(10)]})
        results = results_of(response)
        assert brief(results) == ["created"] * 7 + [LIMITED] * 3
        assert rate_headers(response) == ("20", "0")
        alone = decide(client, key, sample_request())
        body = refused(alone, *LIMITED)
        for result in results[7:]:
            assert result["error"] | {"request_id": ""} == body | {"request_id": ""}
        assert body["retry_after"] == 45
        assert chain_size(instance, scope) == 19
        limit_clock.now += 45
        again = decide_batch(client, key, [item(None, f"k{number}") for number in range(14)])
        assert brief(again) == ["replayed"] * 7 + ["created"] * 6 + [LIMITED]

    def test_a_batch_that_is_refused_as_a_whole_counts_nothing(
        self, client: FlaskClient, ledger: Ledger, limit_clock: LimitClock
    ) -> None:
        _, key = with_plan(ledger, "starter")
        batches: list[Any] = [b"{", {"requests": []}, {"requests": [item()], "colour": "red"}]
        for batch in batches:
            response = send_batch(client, key, batch)
            assert (response.status_code, rate_headers(response)) == (400, (None, None))
        assert rate_headers(send_batch(client, key, {"requests": [item()] * 3})) == ("20", "17")

    def test_a_larger_plan_admits_those_that_the_smaller_refused_and_counts_none_twice(
        self, client: FlaskClient, ledger: Ledger, other: Ledger, limit_clock: LimitClock
    ) -> None:
        scope, key = with_plan(ledger, "starter", 1000)
        assert brief(decide_batch(client, key, [item()] * 5)) == ["created"] * 5
        other.directory.set_plan(scope, "team", utc_now(), monthly_cap=1000)
        response = send_batch(client, key, {"requests": [item()] * 25})
        assert brief(results_of(response)) == ["created"] * 25
        assert rate_headers(response) == ("600", "570")

    def test_what_cannot_be_counted_is_not_decided(
        self, client: FlaskClient, instance: Instance, ledger: Ledger, other: Ledger
    ) -> None:
        scope, key = with_plan(ledger, "starter")
        with instance.limiter._store.write() as connection:
            connection.exec_driver_sql("DROP TABLE rate_windows")
        refused(send_batch(client, key, {"requests": [item()]}), 503, "SVC_STORAGE_UNAVAILABLE")
        assert chain_size(instance, scope) == 0
        other.directory.disable_key(key.split("_", 2)[1], utc_now())
        refused(send_batch(client, key, {"requests": [item()]}), *FORBIDDEN)


class TestMonthlyCap:
    """Each record of a batch counts, in order."""

    def test_it_is_reached_in_the_middle_to_the_record(
        self, client: FlaskClient, instance: Instance, ledger: Ledger, limit_clock: LimitClock
    ) -> None:
        scope, key = with_plan(ledger, "team", 4)
        assert decide(client, key, sample_request(), x_idempotency_key="used").headers[LEFT] == "3"
        items = [
            item(None, "k0"),
            item(WRONG),
            item(None, "k1"),
            item(None, "k2"),
            item(None, "k3"),
            item(None, "used"),
        ]
        response = send_batch(client, key, {"requests": items})
        results = results_of(response)
        assert brief(results) == ["created", INVALID, "created", "created", CAPPED, "replayed"]
        assert (response.headers[LEFT], rate_headers(response)) == ("0", ("600", "593"))
        body = refused(decide(client, key, sample_request(), x_idempotency_key="k3"), *CAPPED)
        differing = {"request_id": "", "retry_after": 0}
        assert results[4]["error"] | differing == body | differing
        assert chain_size(instance, scope) == 4
        ledger.directory.set_plan(scope, "team", utc_now(), monthly_cap=5)
        assert brief(decide_batch(client, key, items[2:])) == ["replayed", "replayed", "created", "replayed"]

    def test_a_batch_at_the_cap_says_that_nothing_is_left(
        self, client: FlaskClient, ledger: Ledger, limit_clock: LimitClock
    ) -> None:
        _, key = with_plan(ledger, "team", 0)
        response = send_batch(client, key, {"requests": [item(), item()]})
        assert (brief(results_of(response)), response.headers[LEFT]) == ([CAPPED, CAPPED], "0")


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Does something between the making of the first record of the next batch and its append."""

    def plan(act: Callable[[], object]) -> None:
        from gate.decisions import decide as module

        made, left = module._entry, [act]

        def entry(*arguments: Any) -> Any:
            if left:
                left.pop()()
            return made(*arguments)

        monkeypatch.setattr(module, "_entry", entry)

    return plan


class TestMeanwhile:
    """What changes while a batch is decided holds for all of it."""

    def test_a_key_that_was_disabled_elsewhere_gets_nothing_else_to_hear(
        self, client: FlaskClient, key: str, instance: Instance, scope: Scope, other: Ledger
    ) -> None:
        assert brief(decide_batch(client, key, [item(None, "used")])) == ["created"]
        other.directory.disable_key(key.split("_", 2)[1], utc_now())
        sent = [item(None, "used"), item(None, "fresh"), item(WRONG), item(None, "k" * 301)]
        assert brief(decide_batch(client, key, sent)) == [FORBIDDEN] * 4
        refused(send_batch(client, key, {"requests": []}), *FORBIDDEN)
        assert chain_size(instance, scope) == 1

    def test_a_key_that_was_disabled_in_the_middle_made_no_record(
        self,
        client: FlaskClient,
        key: str,
        instance: Instance,
        scope: Scope,
        other: Ledger,
        meanwhile: Callable[[Callable[[], object]], None],
    ) -> None:
        meanwhile(lambda: other.directory.disable_key(key.split("_", 2)[1], utc_now()))
        assert brief(decide_batch(client, key, [item(WRONG), item(), item()])) == [FORBIDDEN] * 3
        assert chain_size(instance, scope) == 0

    def test_another_key_that_changes_in_the_middle_changes_nothing(
        self,
        client: FlaskClient,
        key: str,
        scope: Scope,
        other: Ledger,
        meanwhile: Callable[[Callable[[], object]], None],
    ) -> None:
        _, second = other.directory.create_key(scope, FULL_ACCESS, None, utc_now())
        meanwhile(lambda: other.directory.disable_key(second.key_id, utc_now()))
        results = decide_batch(client, key, [item(None, "k"), item(), item(None, "k"), item(WRONG)])
        assert brief(results) == ["created", "created", "replayed", INVALID]
        assert [results[at]["record"]["audit_chain"]["chain_position"] for at in (0, 1)] == [1, 2]

    def test_a_route_that_moved_in_the_middle_decides_what_went_by_it(
        self,
        client: FlaskClient,
        key: str,
        instance: Instance,
        scope: Scope,
        meanwhile: Callable[[Callable[[], object]], None],
    ) -> None:
        at = desk(instance, scope)
        at.route("prices_1", candidate("1"))
        by_route = sample_request()
        del by_route["rulebook"]
        by_route["rulebook_ref"] = {"rulebook_id": "pricing_exception"}
        assert _versions(decide_batch(client, key, [item(by_route)])) == ["1"]
        meanwhile(lambda: at.route("prices_2", candidate("2")))
        sent = [item(by_route, "k"), item(), item(by_route), item(by_route, "k")]
        results = decide_batch(client, key, sent)
        assert brief(results) == ["created", "created", "created", "replayed"]
        assert _versions(results) == ["2", "2026-06-11", "2", "2"]
        positions = [result["record"]["audit_chain"]["chain_position"] for result in results]
        assert positions[0] < positions[2] == positions[0] + 1


def _versions(results: list[dict[str, Any]]) -> list[str]:
    return [result["record"]["policy_version"] for result in results]
