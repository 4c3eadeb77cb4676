"""gate webhooks: endpoints added, tried, disabled, replayed and removed by an operator."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from sqlalchemy import update
from standardwebhooks import Webhook

from gate.clock import utc_now
from gate.instance.backup import make_backup, restore_backup
from gate.instance.instance import Instance, open_instance
from gate.instance.settings import load_settings
from gate.instance.webhooks import KEY_FILE
from gate.ledger.access.authority import Authority, Scope
from gate.ledger.tables import entries
from gate.ledger.webhooks.deliveries import Tried, failed
from tests.support.command_line import run_gate
from tests.support.receivers import LOOPBACK, Receiver, receiver
from tests.support.samples import sample_request

Gate = Callable[..., "CompletedProcess[str]"]


@pytest.fixture(autouse=True)
def on_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in LOOPBACK.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def gate(home: Path) -> Gate:
    return lambda *arguments: run_gate("webhooks", *arguments, "--home", str(home))


@pytest.fixture
def server() -> Iterator[Receiver]:
    with receiver() as made:
        yield made


def added(gate: Gate, url: str, *more: str) -> dict[str, Any]:
    done = gate("add", url, "--scope", "acme", *more, "--json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def listed(gate: Gate) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(gate("list", "--json").stdout)["endpoints"]
    return found


def test_an_endpoint_is_added_tried_and_listed(gate: Gate, scope: Scope, server: Receiver) -> None:
    assert "no webhook endpoints" in gate("list").stdout
    made = added(gate, server.url, "--events", "decision.review, resolution.made")
    assert made["events"] == ["decision.review", "resolution.made"]
    done = gate("test", made["endpoint_id"])
    assert (done.returncode, done.stdout.startswith("Delivered: the endpoint answered 204 after ")) == (0, True)
    _, headers, body = server.requests[0]
    event = Webhook(made["secret"]).verify(body, headers)
    assert (event["type"], event["data"]) == ("webhook.test", {"endpoint_id": made["endpoint_id"]})
    server.behave = lambda handler: handler.answer(500)
    done = gate("test", made["endpoint_id"], "--json")
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["delivered"], answer["status"]) == (1, False, 500)
    (found,) = listed(gate)
    assert (found["url"], found["status"], found["new"], found["dead"]) == (server.url, "active", 0, 0)
    assert server.url in gate("list").stdout


def test_a_test_that_is_answered_410_disables_nothing_and_says_so(gate: Gate, scope: Scope, server: Receiver) -> None:
    endpoint = added(gate, server.url)["endpoint_id"]
    server.behave = lambda handler: handler.answer(410)
    done = gate("test", endpoint)
    told = "It answered 410. The test did not disable the endpoint, but a 410 to a real event does.\n"
    assert (done.returncode, done.stdout.endswith(told)) == (1, True)
    assert [each["status"] for each in listed(gate)] == ["active"]
    gate("disable", endpoint)
    done = gate("test", endpoint)
    assert done.stdout.endswith("It answered 410. The endpoint was disabled before the test, and still is.\n")
    assert [each["status"] for each in listed(gate)] == ["disabled (operator)"]
    server.behave = lambda handler: handler.answer(404)
    assert gate("test", endpoint).stdout.endswith("It answered 404.\n")


def test_the_secret_is_shown_again_and_rotated(gate: Gate, scope: Scope, server: Receiver) -> None:
    made = added(gate, server.url)
    assert gate("secret", made["endpoint_id"]).stdout.strip() == made["secret"]
    rotated = json.loads(gate("secret", made["endpoint_id"], "--rotate", "--json").stdout)
    assert (rotated["previous"], rotated["secret"] != made["secret"]) == (made["secret"], True)
    assert gate("test", made["endpoint_id"]).returncode == 0
    _, headers, body = server.requests[0]
    for secret in (rotated["secret"], rotated["previous"]):
        Webhook(secret).verify(body, headers)
    again = gate("secret", made["endpoint_id"], "--rotate", "--json")
    assert (again.returncode, json.loads(again.stderr)["error"]) == (2, "WEBHOOK_ROTATION_OPEN")
    shown = json.loads(gate("secret", made["endpoint_id"], "--json").stdout)
    assert shown == rotated
    assert rotated["previous_until"] in json.loads(again.stderr)["message"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["http://10.0.0.1/"], "WEBHOOK_ADDRESS_REFUSED"),
        (["ftp://example.com/"], "WEBHOOK_URL_INVALID"),
        (["https://hooks.example.com/", "--events", "decision.review,nothing"], "WEBHOOK_EVENTS_INVALID"),
        (["https://hooks.example.com/", "--events", ","], "WEBHOOK_EVENTS_INVALID"),
    ],
)
def test_what_cannot_be_an_endpoint_is_refused(gate: Gate, scope: Scope, arguments: list[str], code: str) -> None:
    done = gate("add", *arguments, "--scope", "acme", "--json")
    assert (done.returncode, json.loads(done.stderr)["error"]) == (2, code)
    assert listed(gate) == []


def test_an_unknown_endpoint_is_refused_by_every_command(gate: Gate) -> None:
    for command in ("test", "disable", "enable", "remove", "secret", "dead", "replay"):
        done = gate(command, "whe_unknown", "--json", *(["--yes"] if command == "remove" else []))
        assert (done.returncode, json.loads(done.stderr)["error"]) == (2, "WEBHOOK_UNKNOWN"), command


def test_dead_letters_are_listed_and_replayed(
    gate: Gate, scope: Scope, authority: Authority, instance: Instance, server: Receiver
) -> None:
    made = added(gate, server.url)
    assert "has no failed deliveries" in gate("dead", made["endpoint_id"]).stdout
    instance.gate().decide(authority, sample_request(discount_percent=10), request_id="req_1")
    endpoint = instance.ledger.endpoints.find(made["endpoint_id"])
    page = instance.ledger.deliveries.page(endpoint)
    now = utc_now()
    dead = failed(page.fresh[0], 500, "It answered 500.", None, now)
    instance.ledger.deliveries.keep(endpoint, page.last, Tried([], [dead]), now)
    (found,) = json.loads(gate("dead", made["endpoint_id"], "--json").stdout)["deliveries"]
    assert (found["event_id"], found["state"], found["last_status"]) == (dead.event_id, "dead", 500)
    assert dead.event_id in gate("dead", made["endpoint_id"]).stdout
    assert [each["dead"] for each in listed(gate)] == [1]
    assert gate("replay", made["endpoint_id"]).stdout == "1 event will be sent again.\n"
    assert [(each["dead"], each["pending"]) for each in listed(gate)] == [(0, 1)]
    both = gate("replay", made["endpoint_id"], "--event", "evt_1", "--since", "2037-01-01T00:00:00Z", "--json")
    assert json.loads(both.stderr)["error"] == "WEBHOOK_REPLAY_INVALID"
    assert json.loads(gate("replay", made["endpoint_id"], "--since", "soon", "--json").stderr)["error"] == (
        "WEBHOOK_REPLAY_INVALID"
    )


def test_an_endpoint_is_disabled_enabled_and_removed_and_the_log_has_it(
    gate: Gate, scope: Scope, instance: Instance, server: Receiver
) -> None:
    endpoint = added(gate, server.url)["endpoint_id"]
    assert gate("disable", endpoint).stdout == f"The endpoint {endpoint} is disabled.\n"
    assert "nothing changed" in gate("disable", endpoint).stdout
    assert [each["status"] for each in listed(gate)] == ["disabled (operator)"]
    assert gate("enable", endpoint).returncode == 0
    assert json.loads(gate("remove", endpoint, "--json").stderr)["error"] == "CONFIRMATION_REQUIRED"
    assert gate("remove", endpoint, "--yes").returncode == 0
    assert listed(gate) == []
    logged = [entry for entry in instance.ledger.operator_log.latest(9) if entry.action.startswith("webhook.")]
    assert [entry.action for entry in logged] == [
        "webhook.added",
        "webhook.disabled",
        "webhook.enabled",
        "webhook.removed",
    ]
    assert server.url not in str([entry.details for entry in logged])


def test_a_check_that_finds_a_broken_chain_tells_of_it(
    gate: Gate, scope: Scope, authority: Authority, instance: Instance, home: Path
) -> None:
    endpoint = added(gate, "https://hooks.example.com/", "--events", "chain.broken")["endpoint_id"]
    instance.gate().decide(authority, sample_request(), request_id="req_1")
    assert run_gate("chain", "check", "--home", str(home)).returncode == 0
    with instance.ledger.store.write() as connection:
        connection.execute(update(entries).values(record_hash="f" * 64))
    for _ in range(2):
        assert run_gate("chain", "check", "--home", str(home)).returncode == 1
    (event,) = instance.ledger.deliveries.page(instance.ledger.endpoints.find(endpoint)).fresh
    data = json.loads(event.body)["data"]
    assert (data["chain_id"], data["check"], data["chain_position"]) == (scope.chain_id, "entries", 1)


def test_a_backup_has_the_key_so_that_secrets_stay_the_same(
    gate: Gate, scope: Scope, instance: Instance, tmp_path: Path
) -> None:
    made = added(gate, "https://hooks.example.com/")
    make_backup(instance, tmp_path / "backup", utc_now())
    restore_backup(tmp_path / "backup", tmp_path / "restored", None, utc_now())
    assert (tmp_path / "restored" / KEY_FILE).stat().st_mode & 0o777 == 0o600
    with closing(open_instance(load_settings(tmp_path / "restored"))) as restored:
        endpoint = restored.ledger.endpoints.find(made["endpoint_id"])
        assert restored.webhooks.secrets(endpoint, utc_now()) == [made["secret"]]
