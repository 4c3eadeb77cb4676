"""Erasing while a service decides, and a command that is killed on its way."""

from __future__ import annotations

import json
import subprocess
import time
from typing import Any

import httpx

from gate.decisions.erasure import stored_erasure
from tests.end_to_end.site import Load, Site, request_of
from tests.support.torture import chance, report, size


def erase(site: Site, decision_id: str) -> Any:
    return site.gate("erase", "--yes", "--decision", decision_id, "--reason", "asked for")


def test_a_service_decides_on_while_decisions_are_erased(site: Site) -> None:
    key = site.create_key("acme")
    erased: dict[str, str] = {}
    with site.serving() as server:
        with Load([server.url], key, pause=size(0.15, 0.01)) as load:
            for _ in range(size(3, 50)):
                load.wait_for(4)
                name, body = list(load.answers.items())[-1]
                decision_id = json.loads(body)["decision_id"]
                erased[name] = erase(site, decision_id)["erasure_id"]
            load.wait_for(8)
        assert not load.failures
        with httpx.Client(headers={"x-api-key": key}, timeout=60, trust_env=False) as client:
            for name, body in load.answers.items():
                again = client.post(
                    f"{server.url}/api/decide",
                    content=request_of(name),
                    headers={"x-idempotency-key": name, "content-type": "application/json"},
                )
                assert again.headers["x-idempotency-status"] == "replayed"
                whole = json.loads(body)
                if name in erased:
                    note = again.json().pop("erased")
                    assert note["erasure_id"] == erased[name]
                    assert again.json() == whole | {"evaluation": None, "erased": note}
                    result = client.get(server.url + whole["verify_url"]).json()
                    assert (result["verified"], result["checks"]["erasure"]) == (True, True)
                else:
                    assert again.content == body
    types = [entry.link["entry_type"] for entry in site.chain("acme")]
    assert (types.count("decision"), types.count("erasure")) == (len(load.answers), len(erased))
    assert site.gate("log")["whole"]


def test_a_command_that_is_killed_has_erased_everything_or_nothing(site: Site) -> None:
    key = site.create_key("acme")
    chances, seed = chance()
    with site.serving(workers=1) as server, Load([server.url], key, clients=1) as load:
        load.wait_for(size(3, 40))
    first, *records = [json.loads(body) for body in load.answers.values()]

    def command_for(record: dict[str, Any]) -> list[str]:
        return site.command("erase", "--yes", "--decision", record["decision_id"], "--reason", "asked for")

    started = time.monotonic()
    subprocess.run(command_for(first), capture_output=True, timeout=60, check=True)
    takes = time.monotonic() - started
    halfway = 0
    for record in records:
        command = command_for(record)
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            time.sleep(chances.uniform(0.6, 1.1) * takes)
            process.kill()
        with site.ledger() as ledger:
            scope_id = ledger.directory.scope("acme").scope_id
            done = stored_erasure(ledger, scope_id, record["decision_id"])
            entry = ledger.entries.decision(scope_id, record["decision_id"])
        assert entry is not None
        halfway += done is not None
        assert (entry.request is None) == (b'"erased"' in entry.body) == (done is not None)
        again = site.invoke("erase", "--yes", "--decision", record["decision_id"], "--reason", "asked for")
        assert isinstance(again.exception, SystemExit | None), again.exception
        assert again.exit_code == (0 if done is None else 1), again.output
    types = [entry.link["entry_type"] for entry in site.chain("acme")]
    assert types.count("erasure") == 1 + len(records)
    actions = [entry["action"] for entry in site.gate("log", "--limit", "1000")["entries"]]
    assert actions.count("decision.erased") == 1 + len(records)
    report(f"seed {seed}: {len(records)} commands killed, {halfway} of them after they had erased")
