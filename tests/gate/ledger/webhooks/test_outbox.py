"""The outbox: events in the transaction of what they tell, on SQLite and PostgreSQL."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import jsonschema
import orjson
import pytest
from sqlalchemy import select

from api.keeper import tell
from gate.clock import utc_now
from gate.encoding import resources
from gate.errors import OperatorError, ReviewConflict
from gate.ids import parse_timestamp, timestamp
from gate.instance.audit import check_chain
from gate.instance.instance import Instance
from gate.instance.webhooks import KEY_FILE
from gate.ledger.access.authority import Authority, Scope
from gate.ledger.chain.reviews import Terms
from gate.ledger.tables import chain_heads, webhook_events
from gate.ledger.webhooks.deliveries import Delivery, Tried, failed
from gate.ledger.webhooks.endpoints import Endpoint
from gate.records.changes import ROUTES
from gate.records.webhooks.events import anomaly_alert
from gate.records.webhooks.types import EVENT_TYPES, mask_of, types_of
from tests.support.advice import advice
from tests.support.migrations import candidate, desk
from tests.support.reports import alerts_example
from tests.support.samples import in_threads, sample_request
from workbench.alerting import Alerting

DESCRIBED = jsonschema.Draft202012Validator(resources.schema("webhook-event"))
URL = "https://hooks.example.com/gate"
HELD = {"discount_percent": 10}
"""Facts that lack one, so that the decision is held."""


def add(instance: Instance, scope: Scope, *types: str) -> Endpoint:
    return instance.webhooks.add(scope, URL, types or EVENT_TYPES, utc_now())


def decide(instance: Instance, authority: Authority, inputs: dict[str, Any] = HELD, **more: Any) -> Any:
    return instance.gate().decide(authority, sample_request(**inputs), request_id="req_1", **more).record


def outbox(instance: Instance, scope: Scope) -> list[tuple[int, str, Any]]:
    """The number, the subject and the body of each event, which is as the schema describes it."""
    query = select(webhook_events).where(webhook_events.c.scope_id == scope.scope_id).order_by(webhook_events.c.seq)
    with instance.ledger.store.read() as connection:
        found = [(row.seq, row.subject, orjson.loads(row.body)) for row in connection.execute(query)]
    for _, _, body in found:
        DESCRIBED.validate(body)
    return found


def types(instance: Instance, scope: Scope) -> list[str]:
    return [body["type"] for _, _, body in outbox(instance, scope)]


def test_a_held_decision_is_told_with_ids_hashes_and_times_alone(
    instance: Instance, scope: Scope, authority: Authority
) -> None:
    decide(instance, authority)
    add(instance, scope, "decision.review")
    record = decide(instance, authority, idempotency_key="k")
    decide(instance, authority, idempotency_key="k")
    decide(instance, authority, {"discount_percent": 10, "margin_percent": 22})
    ((seq, subject, body),) = outbox(instance, scope)
    assert (seq, subject, body["type"]) == (1, record["decision_id"], "decision.review")
    assert body["data"] == {
        "decision_id": record["decision_id"],
        "verdict": "review",
        "policy_id": record["policy_id"],
        "policy_version": record["policy_version"],
        "reason_code": record["reason_code"],
        "record_hash": record["record_hash"],
        "receipt_hash": record["receipt_hash"],
        "created_at": record["created_at"],
        "chain_position": record["audit_chain"]["chain_position"],
    }
    told = orjson.dumps(body).decode()
    assert "deal-1042" not in told
    assert "customer-9" not in told
    assert check_chain(instance, scope.scope_id)[1] is None


def test_a_resolution_is_told_whoever_makes_it_and_once(instance: Instance, scope: Scope, authority: Authority) -> None:
    add(instance, scope, "decision.review", "resolution.made")
    instance.ledger.review_owners.set(scope, "", "", Terms("a private name", 3600, 60), utc_now())
    granted, expired = decide(instance, authority), decide(instance, authority)
    owner, _ = instance.ledger.directory.create_key(scope, {"resolve"}, None, utc_now())
    resolver = instance.ledger.directory.authenticate(owner, utc_now())
    body = {"resolution": "granted", "resolved_by": "Maya Lindqvist", "note": "a private note"}
    resolution = instance.resolutions().resolve(resolver, granted["decision_id"], body, idempotency_key="g").resolution
    instance.resolutions().resolve(resolver, granted["decision_id"], body, idempotency_key="g")
    with pytest.raises(ReviewConflict):
        instance.resolutions().resolve(resolver, granted["decision_id"], body)
    late = utc_now() + timedelta(hours=2)
    assert instance.resolutions(lambda: late).expire_due(lambda review, error: pytest.fail(str(error))) == 1
    found = [(subject, event["type"], event["data"]) for _, subject, event in outbox(instance, scope)]
    assert [(subject, type_) for subject, type_, _ in found] == [
        (granted["decision_id"], "decision.review"),
        (expired["decision_id"], "decision.review"),
        (granted["decision_id"], "resolution.made"),
        (expired["decision_id"], "resolution.made"),
    ]
    due_at = parse_timestamp(found[0][2]["due_at"])
    assert due_at - parse_timestamp(granted["created_at"]) == timedelta(hours=1)
    assert found[2][2]["resolution_hash"] == resolution["resolution_hash"]
    assert (found[2][2]["resolution"], found[2][2]["expires_at"]) == ("granted", resolution["expires_at"])
    assert (found[3][2]["resolution"], found[3][2]["expires_at"]) == ("expired", found[1][2]["due_at"])
    assert "private" not in str(found)
    assert "Maya" not in str(found)


def test_a_scope_without_endpoints_or_of_other_types_has_no_events(
    instance: Instance, scope: Scope, authority: Authority
) -> None:
    other = instance.ledger.directory.create_scope("other", "unlimited", utc_now())
    add(instance, other)
    add(instance, scope, "route.changed")
    decide(instance, authority)
    assert outbox(instance, scope) == []


def test_advice_holds_nothing_and_is_not_told(instance: Instance, scope: Scope, key: str) -> None:
    add(instance, scope, "decision.review")
    with advice(instance, key) as made:
        held = [record["decision_id"] for record in made.binding.values() if record["verdict"] == "review"]
        assert [record["verdict"] for record in made.advisory.values()].count("review") > 1
    assert [subject for _, subject, _ in outbox(instance, scope)] == held


def test_many_at_once_are_numbered_in_the_order_of_the_chain(
    instance: Instance, scope: Scope, authority: Authority
) -> None:
    add(instance, scope)
    in_threads(8, lambda number: [decide(instance, authority) for _ in range(5)])
    found = outbox(instance, scope)
    assert [seq for seq, _, _ in found] == list(range(1, 41))
    positions = [body["data"]["chain_position"] for _, _, body in found]
    assert positions == sorted(positions)


def test_an_append_that_is_tried_again_after_its_answer_was_lost_is_told_once(
    instance: Instance, scope: Scope, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(instance, scope)
    run, store = instance.ledger.store.run, instance.ledger.store
    monkeypatch.setattr(
        store, "run", lambda work: (run(work), run(lambda transaction, tried: work(transaction, True)))[1]
    )
    record = decide(instance, authority)
    ((seq, subject, _),) = outbox(instance, scope)
    assert (seq, subject) == (1, record["decision_id"])
    assert instance.ledger.entries.head(scope.scope_id).size == 1


def test_migrations_and_routes_are_told_in_their_order(instance: Instance, scope: Scope) -> None:
    at = desk(instance, scope)
    add(instance, scope)
    route = at.route("prices_1", candidate("1"))
    at.route("prices_2", candidate("2", 20))
    back = at.acts.rollback(scope, at.approver, "pricing_exception", "a note that is nobody else's business")
    found = outbox(instance, scope)
    assert [body["type"] for _, _, body in found] == [
        *["migration.proposed", "migration.approved", "route.changed"] * 2,
        "route.changed",
    ]
    assert [found[place][1] for place in (0, 1, 2, 6)] == ["prices_1", "prices_1", *["pricing_exception"] * 2]
    first, last = found[2][2]["data"], found[6][2]["data"]
    assert (first["route_hash"], first["to"]["version"]) == (route["route_hash"], "1")
    assert "from" not in first
    assert (last["cause"], last["from"]["version"], last["route_hash"]) == ("rollback", "2", back["route_hash"])
    assert "business" not in orjson.dumps(last).decode()


def test_what_fails_tells_nothing(instance: Instance, scope: Scope) -> None:
    at = desk(instance, scope)
    add(instance, scope)
    entry = at.route("prices_1", candidate("1"))
    before = outbox(instance, scope)

    def fail() -> None:
        with instance.ledger.changes.changing(scope.scope_id, "acme", utc_now()) as change:
            change.append(ROUTES, {**entry, "route_entry_id": "rte_2"})
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert outbox(instance, scope) == before


def test_a_kept_checkpoint_is_told_once_even_by_a_process_that_died_before(
    instance: Instance, scope: Scope, authority: Authority
) -> None:
    add(instance, scope, "checkpoint.made", "chain.broken")
    decide(instance, authority)
    first = instance.checkpoints.keep(utc_now())
    assert first is not None
    # Nobody told of it before the process ended; the next round keeps nothing, and tells.
    again = instance.checkpoints.keep(utc_now())
    assert again is not None
    assert again.signed == 0
    tell(instance, again, utc_now())
    tell(instance, again, utc_now())
    ((_, subject, body),) = outbox(instance, scope)
    assert (subject, body["data"]["chain_size"]) == (scope.chain_id, 1)
    kept = instance.checkpoints.log.kept(scope.chain_id)
    assert kept is not None
    assert {name: kept[name] for name in ("merkle_root", "link_hash", "key_id")}.items() <= body["data"].items()
    assert "signature" not in body["data"]
    decide(instance, authority)
    later = instance.checkpoints.keep(utc_now())
    assert later is not None
    tell(instance, later, utc_now())
    assert [body["data"]["chain_size"] for _, _, body in outbox(instance, scope)] == [1, 2]


def test_a_broken_chain_is_told_once_a_day(instance: Instance, scope: Scope) -> None:
    add(instance, scope, "chain.broken")
    now = utc_now()
    for moment in (now, now, now + timedelta(days=1)):
        instance.webhooks.tell_broken([(scope.chain_id, "entries", 3), ("chain_of_nobody", "entries", 1)], moment)
    found = [body["data"] for _, _, body in outbox(instance, scope)]
    assert [(each["chain_id"], each["check"], each["chain_position"]) for each in found] == [
        (scope.chain_id, "entries", 3)
    ] * 2


class Alerts:
    """Reports with the alerts of the example."""

    def __init__(self) -> None:
        self.asked = 0

    def answer(self, scope_id: str, question: Any) -> Any:
        self.asked += 1
        return alerts_example()


def test_each_anomaly_is_told_once_and_only_where_somebody_wants_to_hear(
    instance: Instance, scope: Scope, authority: Authority
) -> None:
    reports = Alerts()
    alerting = Alerting(instance.ledger, reports, pause=0)
    decide(instance, authority)
    assert alerting.look() == []
    assert reports.asked == 0
    add(instance, scope, "anomaly.alert")
    alerting.look()
    alerting.look()
    assert reports.asked == 1
    decide(instance, authority)
    alerting.look()
    assert reports.asked == 2
    found = outbox(instance, scope)
    expected = alerts_example()["alerts"]
    assert expected
    assert [body["data"]["anomaly_id"] for _, _, body in found] == [of["anomaly"]["anomaly_id"] for of in expected]
    assert found[0][1] == expected[0]["policy_id"]
    assert {"kind", "severity", "from", "to"} <= found[0][2]["data"].keys()
    assert "summary" not in found[0][2]["data"]


def test_of_two_processes_one_tells(instance: Instance, scope: Scope) -> None:
    add(instance, scope, "anomaly.alert")
    event = anomaly_alert(alerts_example()["alerts"][0])
    told = in_threads(6, lambda number: instance.ledger.tidings.tell_once(scope.scope_id, event, "ano_1", utc_now()))
    assert sorted(told) == [False] * 5 + [True]
    assert len(outbox(instance, scope)) == 1


def test_an_endpoint_hears_of_what_happens_after_it_was_added(
    instance: Instance, scope: Scope, authority: Authority
) -> None:
    first = add(instance, scope, "decision.review")
    decide(instance, authority)
    second = add(instance, scope, "decision.review", "route.changed")
    record = decide(instance, authority)
    fresh = {each.endpoint_id: instance.ledger.deliveries.page(each).fresh for each in (first, second)}
    assert len(fresh[first.endpoint_id]) == 2
    (only,) = fresh[second.endpoint_id]
    assert only.subject == record["decision_id"]
    assert {each.endpoint_id for each in instance.ledger.deliveries.due(utc_now())} == set(fresh)


def test_what_was_kept_of_a_round_is_not_kept_twice(instance: Instance, scope: Scope, authority: Authority) -> None:
    endpoint = add(instance, scope)
    decide(instance, authority)
    decide(instance, authority)
    deliveries = instance.ledger.deliveries
    page = deliveries.page(endpoint)
    now = utc_now()
    bad = failed(page.fresh[0], 500, "It answered 500.", now + timedelta(hours=1), now)
    assert deliveries.keep(endpoint, page.last, Tried([page.fresh[1]], [bad]), now)
    # A second process that began with the same cursor.
    assert not deliveries.keep(endpoint, page.last, Tried(page.fresh, []), now)
    (moved,) = instance.ledger.endpoints.all()
    assert moved.delivered_at is not None
    assert deliveries.due(now) == []
    assert [each.endpoint_id for each in deliveries.due(now + timedelta(hours=2))] == [endpoint.endpoint_id]
    (pending,) = deliveries.page(moved).pending
    assert (pending.seq, pending.attempts, pending.last_status, pending.last_error) == (1, 1, 500, "It answered 500.")


def kill(instance: Instance, endpoint: Endpoint, *, age: timedelta = timedelta()) -> list[Delivery]:
    """Gives up everything that an endpoint may be sent."""
    endpoint = instance.ledger.endpoints.find(endpoint.endpoint_id)
    page = instance.ledger.deliveries.page(endpoint)
    now = utc_now() - age
    dead = [failed(each, 500, "It answered 500.", None, now) for each in page.fresh]
    assert instance.ledger.deliveries.keep(endpoint, page.last, Tried([], dead), now)
    return dead


def test_dead_letters_are_replayed_with_their_ids(instance: Instance, scope: Scope, authority: Authority) -> None:
    endpoint = add(instance, scope)
    decide(instance, authority)
    decide(instance, authority)
    dead = kill(instance, endpoint)
    letters = instance.ledger.dead_letters
    endpoint = instance.ledger.endpoints.find(endpoint.endpoint_id)
    assert letters.backlog(endpoint).dead == 2
    assert letters.replay(endpoint, utc_now()) == 2
    pending = instance.ledger.deliveries.page(endpoint).pending
    assert [(each.event_id, each.attempts) for each in pending] == [(each.event_id, 0) for each in dead]


def test_what_waits_after_an_outage_is_replayed_at_once(instance: Instance, scope: Scope, authority: Authority) -> None:
    endpoint = add(instance, scope)
    decide(instance, authority)
    page, now = instance.ledger.deliveries.page(endpoint), utc_now()
    waits = [failed(each, 500, "It answered 500.", now + timedelta(hours=2), now) for each in page.fresh]
    assert instance.ledger.deliveries.keep(endpoint, page.last, Tried([], waits), now)
    endpoint = instance.ledger.endpoints.find(endpoint.endpoint_id)
    assert instance.ledger.deliveries.due(now) == []
    assert instance.ledger.dead_letters.replay(endpoint, now) == len(waits)
    assert [each.endpoint_id for each in instance.ledger.deliveries.due(now)] == [endpoint.endpoint_id]
    assert instance.ledger.dead_letters.replay(endpoint, now) == 0


def test_events_that_were_delivered_are_replayed_one_by_one_or_since_a_moment(
    instance: Instance, scope: Scope, authority: Authority
) -> None:
    endpoint = add(instance, scope)
    decide(instance, authority)
    decide(instance, authority)
    page = instance.ledger.deliveries.page(endpoint)
    instance.ledger.deliveries.keep(endpoint, page.last, Tried(page.fresh, []), utc_now())
    letters = instance.ledger.dead_letters
    assert letters.replay(endpoint, utc_now()) == 0
    assert letters.replay(endpoint, utc_now(), event_id=page.fresh[1].event_id) == 1
    assert letters.backlog(instance.ledger.endpoints.find(endpoint.endpoint_id)).pending == 1
    assert letters.replay(endpoint, utc_now(), since=page.fresh[0].created_at) == 2
    assert letters.backlog(instance.ledger.endpoints.find(endpoint.endpoint_id)).pending == 2
    with pytest.raises(OperatorError, match="has no event"):
        letters.replay(endpoint, utc_now(), event_id="evt_unknown")


def test_events_from_before_an_endpoint_was_added_are_not_replayed_to_it(
    instance: Instance, scope: Scope, authority: Authority
) -> None:
    earlier = add(instance, scope)
    decide(instance, authority)
    before = instance.ledger.deliveries.page(earlier).fresh[0]
    time.sleep(0.002)
    endpoint = add(instance, scope)
    record = decide(instance, authority)
    page = instance.ledger.deliveries.page(endpoint)
    instance.ledger.deliveries.keep(endpoint, page.last, Tried(page.fresh, []), utc_now())
    letters = instance.ledger.dead_letters
    with pytest.raises(OperatorError, match="existed when it happened") as refusal:
        letters.replay(endpoint, utc_now(), event_id=before.event_id)
    assert refusal.value.code == "WEBHOOK_EVENT_UNKNOWN"
    assert letters.replay(endpoint, utc_now(), since="2000-01-01T00:00:00.000Z") == 1
    moved = instance.ledger.endpoints.find(endpoint.endpoint_id)
    assert [each.subject for each in instance.ledger.deliveries.page(moved).pending] == [record["decision_id"]]


def test_what_an_endpoint_heard_of_when_it_was_added_is_replayed_too(
    instance: Instance, scope: Scope, authority: Authority
) -> None:
    decide(instance, authority)
    kept = instance.checkpoints.keep(utc_now())
    assert kept is not None
    tell(instance, kept, utc_now())
    endpoint = add(instance, scope)
    tell(instance, kept, utc_now())
    page = instance.ledger.deliveries.page(endpoint)
    assert [each.type for each in page.fresh] == ["checkpoint.made"]
    instance.ledger.deliveries.keep(endpoint, page.last, Tried(page.fresh, []), utc_now())
    letters = instance.ledger.dead_letters
    assert letters.replay(endpoint, utc_now(), event_id=page.fresh[0].event_id) == 1
    assert letters.replay(endpoint, utc_now(), since="2000-01-01T00:00:00.000Z") == 1
    # Of two endpoints the second does not hear again of what the first was sent.
    second = add(instance, scope)
    tell(instance, kept, utc_now())
    assert instance.ledger.deliveries.page(second).fresh == []
    assert types(instance, scope) == ["checkpoint.made"]


def test_a_disabled_endpoint_gets_what_happened_once_it_is_enabled(
    instance: Instance, scope: Scope, authority: Authority
) -> None:
    endpoint = add(instance, scope)
    assert instance.ledger.endpoints.disable(endpoint, utc_now())
    assert not instance.ledger.endpoints.disable(endpoint, utc_now())
    decide(instance, authority)
    assert instance.ledger.deliveries.due(utc_now()) == []
    assert instance.ledger.endpoints.enable(endpoint, utc_now())
    assert len(instance.ledger.deliveries.due(utc_now())) == 1
    instance.ledger.endpoints.remove(endpoint, utc_now())
    decide(instance, authority)
    assert types(instance, scope) == ["decision.review"]
    with instance.ledger.store.read() as connection:
        assert connection.execute(select(chain_heads.c.webhook_events)).scalar_one() == 0


def test_old_events_go_once_every_active_endpoint_has_them(
    instance: Instance, scope: Scope, authority: Authority
) -> None:
    first, second = add(instance, scope), add(instance, scope)
    for _ in range(3):
        decide(instance, authority)
    letters, week, later = instance.ledger.dead_letters, timedelta(days=7), utc_now() + timedelta(days=8)
    page = instance.ledger.deliveries.page(first)
    instance.ledger.deliveries.keep(first, page.last, Tried(page.fresh, []), utc_now())
    assert letters.prune(week, later) == 0
    page = instance.ledger.deliveries.page(second)
    now = later - timedelta(days=1)
    dead = failed(page.fresh[0], 500, "It answered 500.", None, now)
    instance.ledger.deliveries.keep(second, page.last, Tried(page.fresh[1:], [dead]), now)
    assert letters.prune(week, utc_now()) == 0
    # A dead letter is kept as long, from when it was given up.
    assert letters.prune(week, later) == 2
    assert [seq for seq, _, _ in outbox(instance, scope)] == [1]
    assert letters.prune(week, later + week) == 1
    assert outbox(instance, scope) == []


def test_a_disabled_endpoint_holds_no_event_back(instance: Instance, scope: Scope, authority: Authority) -> None:
    endpoint = add(instance, scope)
    decide(instance, authority)
    instance.ledger.endpoints.disable(endpoint, utc_now())
    assert instance.ledger.dead_letters.prune(timedelta(days=7), utc_now() + timedelta(days=8)) == 1
    assert outbox(instance, scope) == []


def test_the_key_is_made_once_and_a_lost_one_is_not_replaced(instance: Instance, scope: Scope) -> None:
    file = instance.settings.home / KEY_FILE
    assert not file.exists()
    endpoint = add(instance, scope)
    assert file.stat().st_mode & 0o777 == 0o600
    (secret,) = instance.webhooks.secrets(endpoint, utc_now())
    rotated = instance.webhooks.rotate(endpoint, utc_now())
    new, old = instance.webhooks.secrets(rotated, utc_now())
    assert (old, new != secret) == (secret, True)
    assert instance.webhooks.secrets(rotated, utc_now() + timedelta(hours=25)) == [new]
    moved = file.rename(file.with_name("elsewhere"))
    instance.__dict__.pop("webhooks")
    with pytest.raises(OperatorError, match="from a backup") as refusal:
        add(instance, scope)
    assert refusal.value.code == "WEBHOOK_KEY_UNUSABLE"
    Path(moved).rename(file)
    assert instance.webhooks.secrets(endpoint, utc_now()) == [secret]


def test_a_secret_is_not_rotated_again_while_the_one_before_signs(instance: Instance, scope: Scope) -> None:
    endpoint, now = add(instance, scope), utc_now()
    (first,) = instance.webhooks.secrets(endpoint, now)
    rotated = instance.webhooks.rotate(endpoint, now)
    ends = now + timedelta(hours=24)
    # The endpoint as it was read before the rotation, as by a second operator.
    with pytest.raises(OperatorError, match=f"the previous secret signs until {timestamp(ends)}") as refusal:
        instance.webhooks.rotate(endpoint, ends - timedelta(milliseconds=1))
    assert refusal.value.code == "WEBHOOK_ROTATION_OPEN"
    assert f"`gate webhooks remove {endpoint.endpoint_id}`" in refusal.value.message
    found = instance.ledger.endpoints.find(endpoint.endpoint_id)
    assert found == rotated
    second, before = instance.webhooks.secrets(found, ends - timedelta(milliseconds=1))
    assert before == first
    again = instance.webhooks.rotate(endpoint, ends)
    assert instance.webhooks.secrets(again, ends)[1:] == [second]
    logged = [entry.action for entry in instance.ledger.operator_log.latest(9)]
    assert logged.count("webhook.secret_rotated") == 2
    instance.ledger.endpoints.remove(endpoint, ends)
    with pytest.raises(OperatorError, match="no webhook endpoint"):
        instance.webhooks.rotate(endpoint, ends + timedelta(days=2))


def test_of_operators_who_rotate_at_once_one_does(instance: Instance, scope: Scope) -> None:
    endpoint = add(instance, scope)
    (first,) = instance.webhooks.secrets(endpoint, utc_now())

    def rotate(number: int) -> str:
        try:
            instance.webhooks.rotate(endpoint, utc_now())
        except OperatorError as error:
            return error.code
        return "rotated"

    assert sorted(in_threads(6, rotate)) == ["WEBHOOK_ROTATION_OPEN"] * 5 + ["rotated"]
    found = instance.ledger.endpoints.find(endpoint.endpoint_id)
    assert instance.webhooks.secrets(found, utc_now())[1:] == [first]


def test_the_types_have_bits_of_their_own() -> None:
    assert types_of(mask_of(EVENT_TYPES)) == EVENT_TYPES
    assert [mask_of([each]) for each in EVENT_TYPES] == [1 << place for place in range(len(EVENT_TYPES))]
    assert types_of(1 << 40) == ()
    with pytest.raises(ValueError, match="not in tuple"):
        mask_of(["webhook.test"])
