"""Ledgers that earlier releases made, on SQLite and PostgreSQL: upgraded, they are whole and answer as they did."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import httpx

from gate.clock import utc_now
from gate.instance.instance import Instance
from tests.support.command_line import run_gate
from tests.upgrade.conftest import Gate
from tests.upgrade.kept import ARCHIVES, FOLDER, Exchange, Release, holds


def test_every_release_left_a_ledger_on_either_database() -> None:
    labels = [folder for folder in FOLDER.iterdir() if (folder / "about.json").exists()]
    assert labels
    assert sorted(ARCHIVES) == sorted(folder / f"{on}.tar.gz" for folder in labels for on in ("sqlite", "postgresql"))


def test_every_chain_is_whole_and_what_operators_did_is_known(release: Release, gate: Gate) -> None:
    kept = release.kept
    assert gate("chain", "check")["whole"]
    for name in kept.names("checkpoints"):
        assert gate("chain", "check", "--checkpoint", str(kept.file(name)))["whole"], name
    operator = kept.read("operator")
    # The upgrade itself may have been logged.
    assert gate("log", "--limit", "1000")["entries"][: len(operator["log"])] == operator["log"]
    for scope in operator["scopes"]:
        # Another month has another count.
        del scope["used_this_month"]
        assert holds(scope, gate("scopes", "show", scope["scope"]))


def test_users_sign_in_and_find_what_they_did_with_anomalies(release: Release, gate: Gate, instance: Instance) -> None:
    kept = release.kept
    # Earlier releases had no users.
    people = kept.read("people") if kept.file("people").exists() else {"users": [], "acts": []}
    assert holds(people["users"], gate("users", "list")["users"])
    for user in people["users"]:
        if user["status"] == "active":
            assert instance.ledger.users.sign_in(user["name"], people["password"], utc_now()).name == user["name"]
    acts = people["acts"]
    harbor = instance.ledger.directory.scope("harbor").scope_id
    assert list(instance.ledger.dismissals.latest(harbor)) == sorted({act["anomaly"]["anomaly_id"] for act in acts})
    for act in acts:
        assert act in map(asdict, instance.ledger.dismissals.history(harbor, act["anomaly"]["anomaly_id"]))


def test_every_answer_is_given_again(release: Release, service: httpx.Client) -> None:
    callers = release.kept.read("callers")
    for exchange in release.kept.exchanges():
        response = exchange.ask(service, callers)
        assert exchange.stands(response), f"{exchange.method} {exchange.path}: {response.text}\n{exchange.answer}"
        if "x-idempotency-key" in exchange.headers and exchange.status == 200:
            assert response.headers["x-idempotency-status"] == "replayed"


def test_every_record_verifies_offline_and_is_made_again(release: Release, service: httpx.Client) -> None:
    kept = release.kept
    callers = kept.read("callers")
    for number, decision in enumerate(kept.read("decisions")):
        path = f"/api/decision/{decision['decision_id']}"
        record = Exchange(decision["caller"], "GET", path).ask(service, callers)
        replay = Exchange(decision["caller"], "POST", f"{path}/replay").ask(service, callers).json()
        kept.write(f"requests/{number}", decision["request"])
        request = ["--input", str(kept.file(f"requests/{number}"))]
        if decision["replay"] == "matched":
            assert (replay["replay_status"], replay["drift"]) == ("matched", [])
        else:
            assert replay["error"] == decision["replay"]
            request = []
        verified = run_gate("verify", "-", "--registry", str(kept.file("receipt-keys")), *request, stdin=record.text)
        assert verified.returncode == 0, verified.stdout


def test_the_chain_goes_on_where_it_was(release: Release, service: httpx.Client, gate: Gate) -> None:
    kept = release.kept
    callers = kept.read("callers")
    sizes = {scope["scope"]: scope["chain_size"] for scope in kept.read("operator")["scopes"]}
    decision = kept.read("decisions")[0]
    path = f"/api/decision/{decision['decision_id']}"
    record = answer(service, callers, Exchange("harbor", "POST", "/api/decide", decision["request"]))
    assert (record["audit_chain"]["chain_position"], record["verdict"]) == (sizes["harbor"] + 1, "yes")
    report = answer(service, callers, Exchange("harbor", "POST", f"{path}/outcome", {"outcome_status": "reverted"}))
    assert report["audit_chain"]["chain_position"] == sizes["harbor"] + 2
    gate("erase", "--yes", "--decision", decision["decision_id"], "--reason", "Asked for.")
    for name in kept.names("checkpoints"):
        assert gate("chain", "check", "--checkpoint", str(kept.file(name)))["whole"], name


def answer(service: httpx.Client, callers: dict[str, str], exchange: Exchange) -> dict[str, Any]:
    """The answer to a request that succeeds."""
    response = exchange.ask(service, callers)
    assert response.is_success, response.text
    found: dict[str, Any] = json.loads(response.text)
    return found
