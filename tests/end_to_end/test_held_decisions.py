"""A held decision from its webhook to its offline proof, and resolutions under kill -9, on both databases."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from werkzeug.serving import make_server

from gate.client import Client, HeldForReview
from gate.encoding.strict_json import parse
from tests.end_to_end.site import PATIENCE, Crew, Site
from tests.end_to_end.support import ROOT, free_port
from tests.independent import verifier
from tests.support.command_line import run_gate
from tests.support.samples import HELD, sample_request
from tests.support.torture import chance, size

PASSWORD = "a password that is long enough"
FACTS = {"discount_percent": 40, "margin_percent": 22}


def wait_until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, "It did not happen in time."
        time.sleep(0.05)


def signed_in(site: Site, name: str, scope: str) -> Path:
    """The file with the token of an approver's session."""
    ledger = [] if site.database_url is None else ["--database-url", site.database_url]
    place = ["--home", str(site.home), *ledger]
    token = site.home.parent / f"{name}.token"
    added = run_gate("users", "add", name, "--scope", scope, "--role", "approver", *place, stdin=f"{PASSWORD}\n")
    assert added.returncode == 0, added.stderr
    signed = run_gate("users", "sign-in", name, "--token-file", str(token), *place, stdin=f"{PASSWORD}\n")
    assert signed.returncode == 0, signed.stderr
    return token


@contextmanager
def receiving(port: int, secret: str, directory: Path, events: list[dict[str, Any]]) -> Iterator[None]:
    """The receiver of the documentation, over real HTTP."""
    spec = importlib.util.spec_from_file_location("receiver", ROOT / "docs" / "examples" / "webhook_receiver.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    server = make_server(
        "127.0.0.1", port, module.create_app(secret, str(directory / "received.db"), events.append), threaded=True
    )
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_held_action_is_told_granted_resumed_executed_and_proved(site: Site, tmp_path: Path) -> None:
    key = site.create_key("acme")
    with (site.home / "settings.toml").open("a") as settings:
        # The receiver is on this machine.
        settings.write('\nwebhook_http = "allowed"\nwebhook_networks = ["127.0.0.0/8"]\n')
    site.gate("rulebook", "register", str(ROOT / "data" / "rulebooks" / "pricing_exception.json"), "--scope", "acme")
    site.gate("review", "owners", "set", "--scope", "acme", "--owner", "pricing desk", "--within", "4h")
    token, port = signed_in(site, "maya", "acme"), free_port()
    hook = f"http://127.0.0.1:{port}/hook"
    secret = site.gate("webhooks", "add", hook, "--scope", "acme", "--events", "decision.review,resolution.made")[
        "secret"
    ]
    events: list[dict[str, Any]] = []
    with site.serving(1) as server, receiving(port, secret, tmp_path, events):
        url, keys = server.url, tmp_path / "receipt-keys.json"
        keys.write_bytes(httpx.get(f"{url}/api/decision/receipt-keys", trust_env=False, timeout=30).content)
        with Client(url, key=key, store=tmp_path / "intents.db", registry=keys) as client:
            ran: list[str] = []
            guard = client.guard(
                "pricing_exception@2026-06-11", FACTS, action="approve_discount", target=("crm", "deal-1042")
            )
            with pytest.raises(HeldForReview) as held, guard:
                ran.append("before the grant")
            assert held.value.record is not None
            decision_id = held.value.record["decision_id"]
            wait_until(lambda: any(event["type"] == "decision.review" for event in events))
            (event,) = events
            assert (event["data"]["decision_id"], "due_at" in event["data"]) == (decision_id, True)
            granted = site.gate(
                "review", "grant", decision_id, "--scope", "acme", "--token-file", str(token), "--note", "Agreed."
            )
            wait_until(lambda: len(events) == 2)
            assert events[1]["type"] == "resolution.made"
            assert events[1]["data"]["resolution_hash"] == granted["resolution_hash"]
            with client.resume(held.value.intent_id) as permit:
                ran.append("behind the grant")
            permit.outcome("succeeded", metrics={"margin": 120.5})
            assert ran == ["behind the grant"]
            assert client.flush().failure is None
        (review,) = site.gate("review", "list", "--scope", "acme", "--state", "executed")["reviews"]
        assert (review["decision_id"], review["owner"]) == (decision_id, "pricing desk")
        answer = httpx.get(
            f"{url}/api/decision/{decision_id}/packet?include_intelligence=false",
            headers={"x-api-key": key},
            trust_env=False,
            timeout=60,
        )
    (receipt,) = answer.json()["execution_receipts"]
    assert (receipt["execution_status"], receipt["flags"]) == ("executed", [])
    assert [outcome["outcome_status"] for outcome in answer.json()["outcome_records"]] == ["succeeded"]
    packet = tmp_path / "packet.json"
    packet.write_bytes(answer.content)
    # Offline: the service is gone.
    verified = run_gate("verify-packet", str(packet), "--registry", str(keys), "--json")
    assert verified.returncode == 0, verified.stdout
    assert verifier.packet_failures(parse(answer.content, max_depth=64), parse(keys.read_bytes())) == []
    forged = answer.json()
    forged["resolution"]["resolved_by"] = "somebody else"
    packet.write_text(json.dumps(forged))
    assert run_gate("verify-packet", str(packet), "--registry", str(keys)).returncode == 1
    assert site.gate("chain", "check", "--scope", "acme")["whole"] is True


def test_resolutions_survive_kill_9_and_each_decision_has_one(site: Site) -> None:
    """Approvers answer and reviews expire while the whole service is killed again and again."""
    key = site.create_key("acme")
    owner = site.gate("keys", "create", "--scope", "acme", "--access", "resolve")["key"]
    site.gate("review", "owners", "set", "--scope", "acme", "--owner", "desk", "--within", "2s", "--grant-for", "1h")
    chances, seed = chance()
    answers: dict[str, Any] = {}
    held: list[str] = []
    lock = threading.Lock()
    numbers = iter(range(10**9))
    where = {"url": ""}

    def post(path: str, body: Any, secret: str, name: str) -> httpx.Response | None:
        try:
            return httpx.post(
                f"{where['url']}{path}",
                json=body,
                headers={"x-api-key": secret, "x-idempotency-key": name},
                timeout=30,
                trust_env=False,
            )
        except httpx.TransportError:
            return None

    def turn(_: int) -> None:
        with lock:
            name = f"case-{next(numbers)}"
        decided = post("/api/decide", sample_request(**HELD), key, name)
        if decided is None or decided.status_code != 200:
            time.sleep(0.05)
            return
        decision_id = decided.json()["decision_id"]
        with lock:
            held.append(decision_id)
            # A third is left to expire.
            wish = chances.choice(["granted", "refused", None])
        if wish is None:
            return
        body = {"resolution": wish, "resolved_by": "Maya"}
        while True:
            answer = post(f"/api/decision/{decision_id}/resolution", body, owner, name)
            if answer is not None and answer.status_code in (200, 201, 409):
                break
            time.sleep(0.1)
        if answer.status_code != 409:
            with lock:
                answers[decision_id] = answer.json()

    kills = size(3, 40)
    with ExitStack() as running:
        server = running.enter_context(site.serving(2, "--no-webhooks"))
        where["url"] = server.url
        with Crew(3, turn):
            for _ in range(kills):
                before = len(held)
                wait_until(lambda before=before: len(held) > before + 3)  # type: ignore[misc]
                time.sleep(chances.uniform(0, 0.4))
                os.killpg(server.process.pid, signal.SIGKILL)
                running.close()
                server = running.enter_context(site.serving(2, "--no-webhooks"))
                where["url"] = server.url
            before = len(held)
            wait_until(lambda: len(held) > before + 3)
        with site.ledger() as ledger:
            scope_id = ledger.directory.scope("acme").scope_id
            wait_until(lambda: not any(each.state == "held" for each in ledger.reviews.of(scope_id, held).values()))
            rows = ledger.reviews.of(scope_id, held)
    entries = [entry for entry in site.chain("acme") if entry.link["entry_type"] == "resolution"]
    made = [json.loads(entry.body) for entry in entries]
    assert len({resolution["decision_id"] for resolution in made}) == len(made), seed
    by_decision = {resolution["decision_id"]: resolution for resolution in made}
    # Nothing acknowledged is lost, and everything that nobody answered has expired.
    for decision_id, answered in answers.items():
        assert by_decision[decision_id]["resolution_hash"] == answered["resolution_hash"], seed
    assert set(held) <= by_decision.keys()
    assert all(rows[decision_id].state == by_decision[decision_id]["resolution"] for decision_id in held)
    for resolution in made:
        if resolution["actor"]["type"] == "service":
            assert resolution["resolution"] == "expired"
            assert resolution["recorded_at"] >= resolution["expires_at"]
