"""The keeper: its rounds, what it says to the workers, and what readiness and callers see of that."""

from __future__ import annotations

import io
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
from flask.testing import FlaskClient
from sqlalchemy import update

from api.http.logs import open_log
from api.http.readiness import NOTHING_KEPT
from api.keeper import STATE_VARIABLE, Keeper, read_state
from gate.clock import utc_now
from gate.instance.instance import Instance
from gate.ledger.access.authority import Authority, Scope
from gate.ledger.tables import entries
from tests.support.samples import sample_request


@pytest.fixture
def state_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "state.json"
    monkeypatch.setenv(STATE_VARIABLE, str(file))
    return file


@pytest.fixture
def log() -> io.BytesIO:
    return io.BytesIO()


def decide(instance: Instance, authority: Authority) -> str:
    record = instance.gate().decide(authority, sample_request(), request_id="req_1").record
    return str(record["decision_id"])


def run_round(instance: Instance, state_file: Path, log: io.BytesIO) -> Any:
    """A round when the keeper begins, one when it ends, and none in between."""
    with Keeper(instance.settings, state_file, open_log("info", log), interval=3600):
        pass
    return orjson.loads(state_file.read_bytes())


def rewrite(instance: Instance, scope: Scope) -> None:
    with instance.ledger.store.write() as connection:
        connection.execute(update(entries).where(entries.c.scope_id == scope.scope_id).values(link_hash="f" * 64))


def events(log: io.BytesIO) -> list[str]:
    return [orjson.loads(line)["event"] for line in log.getvalue().splitlines()]


def test_what_was_written_before_the_end_is_kept_at_the_end(
    instance: Instance, authority: Authority, state_file: Path, log: io.BytesIO
) -> None:
    with Keeper(instance.settings, state_file, open_log("info", log), interval=3600):
        wait_for(state_file)
        assert not instance.settings.checkpoint_log_file.exists()
        decide(instance, authority)
    (line,) = instance.settings.checkpoint_log_file.read_bytes().splitlines()
    assert orjson.loads(line)["chain_size"] == 1
    assert orjson.loads(state_file.read_bytes())["refused"] == 0
    assert events(log) == []


def wait_for(file: Path) -> None:
    for _ in range(2000):
        if file.exists():
            return
        threading.Event().wait(0.01)
    raise AssertionError(f"{file} was not written.")


def test_rounds_follow_one_another(instance: Instance, authority: Authority, state_file: Path, log: io.BytesIO) -> None:
    decide(instance, authority)
    with Keeper(instance.settings, state_file, open_log("info", log), interval=0.01):
        wait_for(instance.settings.checkpoint_log_file)
        decide(instance, authority)
        for _ in range(2000):
            if len(instance.settings.checkpoint_log_file.read_bytes().splitlines()) == 2:
                return
            threading.Event().wait(0.01)
    raise AssertionError("No second checkpoint was kept.")


def test_a_rewritten_history_degrades_readiness_and_is_logged_once(
    client: FlaskClient, instance: Instance, authority: Authority, scope: Scope, state_file: Path, log: io.BytesIO
) -> None:
    decide(instance, authority)
    assert "reason" not in run_round(instance, state_file, log)
    rewrite(instance, scope)
    decide(instance, authority)
    state = run_round(instance, state_file, log)
    assert (state["refused"], state["kept"]) == (1, True)
    assert events(log) == ["checkpoints_refused"]
    response = client.get("/api/decision/status")
    part = response.get_json()["checkpoints"]
    assert (response.status_code, part["ready"], part["refused"]) == (503, False, 1)
    assert "gate chain check" in part["reason"]
    # Anyone may ask for the status, so it names no scope and no chain.
    assert scope.chain_id not in response.text
    assert scope.name not in part["reason"]


def test_a_rewritten_history_gets_no_signed_checkpoint_over_http(
    client: FlaskClient, instance: Instance, authority: Authority, scope: Scope, key: str, state_file: Path
) -> None:
    decision_id = decide(instance, authority)
    checkpoint, packet = f"/api/decision/chains/{scope.chain_id}/checkpoint", f"/api/decision/{decision_id}/packet"
    assert client.get(checkpoint, headers={"x-api-key": key}).status_code == 200
    run_round(instance, state_file, io.BytesIO())
    assert client.get(checkpoint, headers={"x-api-key": key}).status_code == 200
    rewrite(instance, scope)
    for path in (checkpoint, f"{packet}?include_intelligence=false"):
        response = client.get(path, headers={"x-api-key": key})
        assert (response.status_code, response.get_json()["error"]) == (503, "SVC_CHECKPOINT_UNAVAILABLE"), path


def test_without_signing_the_status_says_that_nothing_is_kept(
    client: FlaskClient, instance: Instance, state_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state_file.write_bytes(orjson.dumps({"kept": False, "looked_at": None, "refused": 0}))
    part = client.get("/api/decision/status").get_json()["checkpoints"]
    assert (part["ready"], part["kept"], part["note"]) == (True, False, NOTHING_KEPT)


def test_a_keeper_that_stopped_looking_is_a_reason(state_file: Path, instance: Instance, log: io.BytesIO) -> None:
    state = run_round(instance, state_file, log)
    assert "reason" not in read_state(utc_now())
    assert state["looked_at"] in read_state(utc_now() + timedelta(minutes=5))["reason"]


def test_before_the_first_round_nothing_is_amiss(state_file: Path) -> None:
    assert read_state(utc_now()) == {"kept": True, "looked_at": None, "refused": 0}
    state_file.write_bytes(b"{")
    assert "unreadable" in read_state(utc_now())["reason"]


def test_without_a_keeper_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(STATE_VARIABLE, raising=False)
    assert read_state(utc_now())["kept"] is False


def test_a_log_that_cannot_be_used_is_told_until_it_can(
    instance: Instance, authority: Authority, state_file: Path, log: io.BytesIO
) -> None:
    decide(instance, authority)
    file = instance.settings.checkpoint_log_file
    file.mkdir()
    assert "cannot be read" in run_round(instance, state_file, log)["reason"]
    file.rmdir()
    assert "reason" not in run_round(instance, state_file, log)
    assert events(log) == ["checkpoints_refused"]
