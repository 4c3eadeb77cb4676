"""Limits over HTTP: who may call what, how often, how much a month; and a key that was just taken away."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from api.app import create_app
from gate.clock import utc_now
from gate.instance.instance import Instance
from gate.ledger import Ledger, open_ledger
from gate.ledger.access.authority import ACCESS, FULL_ACCESS, PLANS, Scope
from tests.api.deciding import chain_size, decide, refused
from tests.support.postgres import database_of
from tests.support.samples import LimitClock, in_threads, ledger_url, sample_request

RATE = ("x-ratelimit-limit", "x-ratelimit-remaining")
LEFT = "x-usage-monthly-remaining"

MALFORMED = b'{"mode":'
INVALID: dict[str, Any] = {"mode": "rulebook", "colour": "red"}


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> Iterator[str | None]:
    """Where the ledger is."""
    with database_of(request) as url:
        yield url


NewKey: TypeAlias = Callable[..., str]


@pytest.fixture
def new_key(ledger: Ledger) -> NewKey:
    """Makes a key of a scope of its own."""

    def make(plan: str = "unlimited", cap: int | None = None, access: frozenset[str] = FULL_ACCESS) -> str:
        name = f"scope-{len(ledger.directory.scopes())}"
        scope = ledger.directory.create_scope(name, plan, utc_now(), monthly_cap=cap)
        return ledger.directory.create_key(scope, access, None, utc_now())[0]

    return make


@pytest.fixture
def other(ledger: Ledger) -> Iterator[Ledger]:
    """The same ledger, opened as by another process."""
    opened = open_ledger(ledger_url(ledger))
    yield opened
    opened.close()


def key_id(key: str) -> str:
    return key.split("_", 2)[1]


def scope_of(instance: Instance, key: str) -> Scope:
    (found,) = (s for s in instance.ledger.directory.scopes() if key_id(key).startswith(s.scope_id))
    return found


def rate_headers(response: TestResponse) -> tuple[str | None, ...]:
    return tuple(response.headers.get(name) for name in RATE)


class TestRate:
    """So many requests a minute and key."""

    @pytest.fixture
    def database_url(self) -> None:
        """SQLite: the ledger's tests count on both."""

    @pytest.mark.parametrize("plan", ["starter", "team"])
    def test_every_answer_tells_the_limit_and_what_is_left(
        self, client: FlaskClient, new_key: NewKey, limit_clock: LimitClock, plan: str
    ) -> None:
        limit, key = PLANS[plan].requests_per_minute, new_key(plan)
        assert limit is not None
        other = sample_request(discount_percent=1, margin_percent=1)
        sent: list[tuple[int, Any, dict[str, str]]] = [
            (200, sample_request(), {"x_idempotency_key": "k"}),
            (200, sample_request(), {"x_idempotency_key": "k"}),
            (409, other, {"x_idempotency_key": "k"}),
            (200, other, {}),
            (400, MALFORMED, {}),
            (422, INVALID, {}),
            (422, [], {}),
            (422, other, {"x_decision_response_view": "tiny"}),
        ]
        for number, (status, body, headers) in enumerate(sent, start=1):
            response = decide(client, key, body, **headers)
            assert (response.status_code, rate_headers(response)) == (status, (str(limit), str(limit - number)))

    def test_beyond_it_nothing_is_decided_and_the_answer_says_when_to_try_again(
        self, client: FlaskClient, new_key: NewKey, instance: Instance, limit_clock: LimitClock
    ) -> None:
        key = new_key("starter")
        for _ in range(20):
            assert decide(client, key, MALFORMED).status_code == 400
            limit_clock.now += 0.25
        response = decide(client, key, sample_request())
        body = refused(response, 429, "SVC_API_RATE_LIMITED")
        assert body.keys() == {"c", "v", "error", "retry_after", "message", "request_id"}
        assert (body["v"], body["retry_after"]) == ("rate_limited", 55)
        assert (response.headers["retry-after"], rate_headers(response)) == ("55", ("20", "0"))
        assert LEFT not in response.headers
        assert chain_size(instance, scope_of(instance, key)) == 0
        limit_clock.now += 55
        assert rate_headers(decide(client, key, sample_request())) == ("20", "0")
        assert chain_size(instance, scope_of(instance, key)) == 1

    def test_the_key_is_checked_before_the_rate_and_the_rate_before_the_body(
        self, client: FlaskClient, new_key: NewKey, instance: Instance, limit_clock: LimitClock
    ) -> None:
        key = new_key("starter")
        for _ in range(20):
            decide(client, key, MALFORMED)
        for body in (sample_request(), MALFORMED, INVALID):
            refused(decide(client, key, body), 429, "SVC_API_RATE_LIMITED")
        refused(decide(client, None, MALFORMED), 401, "SVC_API_UNAUTHORIZED")
        refused(decide(client, key + "x", MALFORMED), 401, "SVC_API_UNAUTHORIZED")
        assert decide(client, key, b"x" * (1024 * 1024 + 1)).status_code == 413
        instance.ledger.directory.disable_key(key_id(key), utc_now())
        refused(decide(client, key, MALFORMED), 403, "SVC_API_UNAUTHORIZED")

    def test_what_is_refused_before_the_key_is_known_counts_for_nothing(
        self, client: FlaskClient, new_key: NewKey, limit_clock: LimitClock
    ) -> None:
        key = new_key("starter")
        for data, type_ in ((b"x" * (1024 * 1024 + 1), "application/json"), (b"{}", "text/plain")):
            response = client.post("/api/decide", data=data, content_type=type_, headers={"x-api-key": key})
            assert (response.status_code in (413, 415), rate_headers(response)) == (True, (None, None))
        decide(client, key[:-1] + ("a" if key[-1] != "a" else "b"), sample_request())
        assert rate_headers(decide(client, key, sample_request())) == ("20", "19")

    def test_a_replay_counts_toward_the_rate(
        self, client: FlaskClient, new_key: NewKey, limit_clock: LimitClock
    ) -> None:
        key = new_key("starter")
        answers = [decide(client, key, sample_request(), x_idempotency_key="k") for _ in range(20)]
        assert [rate_headers(answer)[1] for answer in answers] == [str(left) for left in range(19, -1, -1)]
        assert {answer.data for answer in answers} == {answers[0].data}
        refused(decide(client, key, sample_request(), x_idempotency_key="k"), 429, "SVC_API_RATE_LIMITED")

    def test_each_key_of_a_scope_has_its_own(
        self, client: FlaskClient, new_key: NewKey, instance: Instance, limit_clock: LimitClock
    ) -> None:
        key = new_key("starter")
        second, _ = instance.ledger.directory.create_key(scope_of(instance, key), FULL_ACCESS, None, utc_now())
        decide(client, key, MALFORMED)
        assert rate_headers(decide(client, second, MALFORMED)) == ("20", "19")

    def test_unlimited_keys_and_other_endpoints_are_told_of_no_limit(
        self, client: FlaskClient, new_key: NewKey, limit_clock: LimitClock
    ) -> None:
        named = {*RATE, LEFT, "retry-after"}
        unlimited, starter = new_key("unlimited"), new_key("starter")
        for body in (sample_request(), MALFORMED, INVALID):
            assert not named & {name.lower() for name, _ in decide(client, unlimited, body).headers}
        record = decide(client, starter, sample_request()).get_json()
        for path in (record["decision_url"], record["verify_url"], "/api/decision/status", "/api/nowhere"):
            for _ in range(21):
                response = client.get(path, headers={"x-api-key": starter})
                assert response.status_code in (200, 404)
                assert not named & {name.lower() for name, _ in response.headers}
        assert rate_headers(decide(client, starter, sample_request())) == ("20", "18")

    def test_what_cannot_be_counted_is_not_decided(
        self, client: FlaskClient, new_key: NewKey, instance: Instance
    ) -> None:
        key = new_key("starter")
        with instance.limiter._store.write() as connection:
            connection.exec_driver_sql("DROP TABLE rate_windows")
        refused(decide(client, key, sample_request()), 503, "SVC_STORAGE_UNAVAILABLE")
        assert chain_size(instance, scope_of(instance, key)) == 0


class TestMonthlyCap:
    """So many records a month and scope."""

    @pytest.fixture
    def at(self, instance: Instance) -> Callable[[datetime], FlaskClient]:
        """A client of the service at a moment."""

        def client(now: datetime) -> FlaskClient:
            app = create_app(instance)
            app.extensions["gate"] = replace(app.extensions["gate"], gate=instance.gate(lambda: now))
            return app.test_client()

        return client

    def test_it_counts_down_and_at_its_end_nothing_is_decided(
        self, client: FlaskClient, new_key: NewKey, instance: Instance, limit_clock: LimitClock
    ) -> None:
        key = new_key("team", 2)
        answers = [decide(client, key, sample_request(), x_idempotency_key=f"k{number}") for number in range(2)]
        assert [answer.headers[LEFT] for answer in answers] == ["1", "0"]
        response = decide(client, key, sample_request(), x_idempotency_key="k2")
        body = refused(response, 429, "SVC_API_MONTHLY_CAP_EXCEEDED")
        assert (body["v"], body["monthly_remaining"]) == ("monthly_cap_exceeded", 0)
        assert (response.headers[LEFT], response.headers["retry-after"]) == ("0", str(body["retry_after"]))
        assert 1 <= body["retry_after"] <= 31 * 86_400
        assert rate_headers(response) == ("600", "597"), "a request that meets the cap counts toward the rate"
        assert chain_size(instance, scope_of(instance, key)) == 2
        instance.ledger.directory.set_plan(scope_of(instance, key), "team", utc_now(), monthly_cap=3)
        assert decide(client, key, sample_request(), x_idempotency_key="k2").headers[LEFT] == "0"

    def test_at_its_end_nothing_is_registered(self, client: FlaskClient, new_key: NewKey, instance: Instance) -> None:
        key = new_key("team", 1)
        scope = scope_of(instance, key)
        assert decide(client, key, sample_request(), x_idempotency_key="k0").headers[LEFT] == "0"
        other = sample_request()
        other["rulebook"]["version"] = "2"
        for _ in range(2):
            refused(decide(client, key, other, x_idempotency_key="k1"), 429, "SVC_API_MONTHLY_CAP_EXCEEDED")
            assert instance.ledger.rulebooks.find_version(scope.scope_id, "pricing_exception", "2") is None
        instance.ledger.directory.set_plan(scope, "team", utc_now(), monthly_cap=2)
        assert decide(client, key, other, x_idempotency_key="k1").headers[LEFT] == "0"
        assert instance.ledger.rulebooks.find_version(scope.scope_id, "pricing_exception", "2") is not None

    def test_of_many_at_once_none_registers_after_the_last_record(
        self, new_key: NewKey, instance: Instance, ledger: Ledger
    ) -> None:
        """Each brings a rulebook of its own: what is registered was registered while there was room for a record."""
        key = new_key("team", 3)
        scope, app = scope_of(instance, key), create_app(instance)

        def version(number: int) -> str:
            request = sample_request()
            request["rulebook"]["version"] = name = f"v{number}"
            decide(app.test_client(), key, request)
            return name

        names = in_threads(8, version)
        assert chain_size(instance, scope) == 3
        registered = {
            name for name in names if ledger.rulebooks.find_version(scope.scope_id, "pricing_exception", name)
        }
        assert len(registered) >= 3
        assert version(99) not in registered
        assert ledger.rulebooks.find_version(scope.scope_id, "pricing_exception", "v99") is None

    def test_it_says_to_the_second_when_the_month_ends(
        self, at: Callable[[datetime], FlaskClient], new_key: NewKey
    ) -> None:
        moments = {
            datetime(2098, 12, 31, 23, 59, 58, 500_000, UTC): 2,
            datetime(2098, 12, 31, 23, 59, 59, 999_999, UTC): 1,
            datetime(2099, 2, 1, tzinfo=UTC): 28 * 86_400,
            datetime(2096, 2, 1, tzinfo=UTC): 29 * 86_400,
            datetime(2099, 6, 11, 12, tzinfo=UTC): 19 * 86_400 + 43_200,
        }
        for now, seconds in moments.items():
            key = new_key("starter", 1)
            assert decide(at(now), key, sample_request()).headers[LEFT] == "0"
            response = decide(at(now), key, sample_request())
            assert refused(response, 429, "SVC_API_MONTHLY_CAP_EXCEEDED")["retry_after"] == seconds
            assert response.headers["retry-after"] == str(seconds)
            assert decide(at(now + timedelta(seconds=seconds)), key, sample_request()).headers[LEFT] == "0"

    def test_a_replay_costs_nothing_and_answers_at_the_cap(
        self, client: FlaskClient, new_key: NewKey, instance: Instance
    ) -> None:
        key = new_key("starter", 2)
        first = decide(client, key, sample_request(), x_idempotency_key="k")
        for _ in range(2):
            again = decide(client, key, sample_request(), x_idempotency_key="k")
            assert (again.headers["x-idempotency-status"], again.headers[LEFT]) == ("replayed", "1")
        decide(client, key, sample_request())
        again = decide(client, key, sample_request(), x_idempotency_key="k")
        assert (again.data, again.headers[LEFT]) == (first.data, "0")
        other = sample_request(discount_percent=1, margin_percent=1)
        refused(decide(client, key, other, x_idempotency_key="k"), 409, "SVC_API_IDEMPOTENCY_CONFLICT")

    def test_at_the_cap_an_invalid_request_still_hears_what_is_wrong_with_it(
        self, client: FlaskClient, new_key: NewKey
    ) -> None:
        key = new_key("starter", 1)
        decide(client, key, sample_request())
        refused(decide(client, key, MALFORMED), 400, "SVC_API_JSON_INVALID")
        refused(decide(client, key, INVALID), 422, "SVC_API_REQUEST_INVALID")
        broken = sample_request()
        broken["rulebook"]["rules"] = []
        refused(decide(client, key, broken), 422, "RULEBOOK_INVALID")
        changed = sample_request()
        changed["rulebook"]["rules"][0]["condition"]["value"] = 1
        refused(decide(client, key, changed), 409, "RULEBOOK_VERSION_CONFLICT")
        refused(decide(client, key, sample_request()), 429, "SVC_API_MONTHLY_CAP_EXCEEDED")

    def test_a_refused_request_costs_nothing(self, client: FlaskClient, new_key: NewKey) -> None:
        key = new_key("starter", 5)
        for body in (MALFORMED, INVALID):
            assert LEFT not in decide(client, key, body).headers
        assert decide(client, key, sample_request()).headers[LEFT] == "4"


# What each takes, and the code under which it refuses.
ENDPOINTS = {
    "POST /api/decide": ("decide", "SVC_API_UNAUTHORIZED"),
    "GET /api/decision/{decision}": ("read", "SVC_API_UNAUTHORIZED"),
    "GET /api/decision/{decision}/verify": ("read", "SVC_API_UNAUTHORIZED"),
    "POST /api/decision/{decision}/verify": ("read", "SVC_API_UNAUTHORIZED"),
    "GET /api/decision/policies/pricing_exception/confidence": ("read", "SVC_POLICY_CONFIDENCE_UNAUTHORIZED"),
    "GET /api/decision/chains/{chain}": ("read", "SVC_CHAIN_UNAUTHORIZED"),
    "GET /api/decision/chains/{chain}/checkpoint": ("read", "SVC_CHAIN_UNAUTHORIZED"),
}


class TestAccess:
    """What a key may do."""

    @pytest.fixture
    def database_url(self) -> None:
        """SQLite: what a key may do is decided before the database is asked."""

    @pytest.mark.parametrize("endpoint", ENDPOINTS)
    def test_an_endpoint_needs_its_access_and_no_other(
        self, client: FlaskClient, key: str, instance: Instance, scope: Scope, endpoint: str
    ) -> None:
        needed, code = ENDPOINTS[endpoint]
        record = decide(client, key, sample_request()).get_json()
        method, _, path = endpoint.partition(" ")
        path = path.format(decision=record["decision_id"], chain=scope.chain_id)

        def status(sent: str) -> int:
            body = sample_request() if path == "/api/decide" else {} if method == "POST" else None
            response = client.open(path, method=method, json=body, headers={"x-api-key": sent})
            if response.status_code != 200:
                answer = response.get_json()
                assert (answer["error"], answer["v"], "verdict" in answer) == (code, "unauthorized", False)
            return response.status_code

        directory = instance.ledger.directory
        for access in ACCESS:
            single, made = directory.create_key(scope, {access}, None, utc_now())
            assert status(single) == (200 if access == needed else 403), access
            rest, _ = directory.create_key(scope, FULL_ACCESS - {access}, None, utc_now())
            assert status(rest) == (403 if access == needed else 200), access
            directory.disable_key(made.key_id, utc_now())
            assert status(single) == 403
        assert status(key + "x") == 401
        expired, _ = directory.create_key(scope, FULL_ACCESS, utc_now(), utc_now() - timedelta(hours=1))
        assert status(expired) == 403

    def test_a_key_without_register_decides_with_registered_rulebooks_alone(
        self, client: FlaskClient, key: str, instance: Instance, scope: Scope
    ) -> None:
        decider, _ = instance.ledger.directory.create_key(scope, {"decide"}, None, utc_now())
        answer = refused(decide(client, decider, sample_request()), 403, "SVC_API_UNAUTHORIZED")
        assert "'register'" in answer["message"]
        assert chain_size(instance, scope) == 0
        assert decide(client, key, sample_request()).status_code == 200
        reference = sample_request()
        del reference["rulebook"]
        reference["rulebook_ref"] = {"rulebook_id": "pricing_exception", "version": "2026-06-11"}
        for body in (sample_request(), reference):
            assert decide(client, decider, body).status_code == 200
        later = sample_request()
        later["rulebook"]["version"] = "2026-06-12"
        refused(decide(client, decider, later), 403, "SVC_API_UNAUTHORIZED")
        assert instance.ledger.rulebooks.find_version(scope.scope_id, "pricing_exception", "2026-06-12") is None
        later["rulebook"]["rules"] = []
        refused(decide(client, decider, later), 422, "RULEBOOK_INVALID")


Change: TypeAlias = Callable[[Ledger, str], object]

REVOCATIONS: dict[str, Change] = {
    "disabled": lambda ledger, key: ledger.directory.disable_key(key, utc_now()),
    "rotated": lambda ledger, key: ledger.directory.rotate_key(key, timedelta(), utc_now()),
    "expired": lambda ledger, key: ledger.directory.rotate_key(
        key, timedelta(seconds=1), utc_now() - timedelta(hours=1)
    ),
}


class TestAnotherProcess:
    """What this process remembers of a key never outlives a change that another process made."""

    @pytest.mark.parametrize("revocation", REVOCATIONS)
    def test_the_next_request_of_a_revoked_key_is_refused_whatever_it_is(
        self, client: FlaskClient, new_key: NewKey, instance: Instance, other: Ledger, revocation: str
    ) -> None:
        unknown = sample_request()
        unknown["rulebook"]["version"] = "never registered"
        broken = sample_request()
        broken["rulebook"]["rules"] = []
        requests: dict[str, tuple[Any, str]] = {
            "fresh": (sample_request(), "fresh"),
            "replay": (sample_request(), "used"),
            "conflict": (sample_request(discount_percent=1, margin_percent=1), "used"),
            "malformed": (MALFORMED, "fresh"),
            "no object": ([], "fresh"),
            "invalid": (INVALID, "fresh"),
            "invalid rulebook": (broken, "fresh"),
            "new rulebook": (unknown, "fresh"),
            "unusable idempotency key": (sample_request(), "x" * 301),
        }
        for name, (body, idempotency_key) in requests.items():
            key = new_key("team" if name == "malformed" else "unlimited")
            assert decide(client, key, sample_request(), x_idempotency_key="used").status_code == 200
            REVOCATIONS[revocation](other, key_id(key))
            response = decide(client, key, body, x_idempotency_key=idempotency_key)
            assert response.status_code == 403, name
            refused(response, 403, "SVC_API_UNAUTHORIZED")
            scope = scope_of(instance, key)
            assert chain_size(instance, scope) == 1
            assert (
                instance.ledger.rulebooks.find_version(scope.scope_id, "pricing_exception", "never registered") is None
            )

    def test_the_other_keys_of_its_scope_go_on(
        self, client: FlaskClient, new_key: NewKey, instance: Instance, other: Ledger
    ) -> None:
        key = new_key()
        second, _ = instance.ledger.directory.create_key(scope_of(instance, key), FULL_ACCESS, None, utc_now())
        for sent in (key, second):
            assert decide(client, sent, sample_request()).status_code == 200
        rotated, _ = other.directory.rotate_key(key_id(key), timedelta(hours=1), utc_now())
        for sent in (key, second, rotated):
            assert decide(client, sent, sample_request()).status_code == 200

    def test_a_smaller_plan_holds_from_the_next_request_on(
        self, client: FlaskClient, new_key: NewKey, instance: Instance, other: Ledger
    ) -> None:
        key = new_key()
        assert LEFT not in decide(client, key, sample_request(), x_idempotency_key="k").headers
        other.directory.set_plan(scope_of(instance, key), "starter", utc_now(), monthly_cap=1)
        assert decide(client, key, sample_request(), x_idempotency_key="k").headers[LEFT] == "1"
        assert decide(client, key, sample_request()).headers[LEFT] == "0"
        refused(decide(client, key, sample_request()), 429, "SVC_API_MONTHLY_CAP_EXCEEDED")

    def test_a_larger_plan_holds_from_the_next_request_on(
        self, client: FlaskClient, new_key: NewKey, instance: Instance, other: Ledger, limit_clock: LimitClock
    ) -> None:
        key = new_key("starter", 1)
        assert decide(client, key, sample_request()).status_code == 200
        for _ in range(19):
            decide(client, key, MALFORMED)
        other.directory.set_plan(scope_of(instance, key), "unlimited", utc_now())
        response = decide(client, key, sample_request())
        assert (response.status_code, rate_headers(response)) == (200, (None, None))
