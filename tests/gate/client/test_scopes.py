"""One store, and clients with keys of two scopes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from gate.client import Client, GateUnavailable, SqliteStore
from gate.clock import utc_now
from gate.ledger import Ledger
from gate.ledger.access.authority import FULL_ACCESS
from tests.gate.client.conftest import Service
from tests.gate.client.guarding import dying_in, executions, guarding, runs


def taken(file: Path) -> None:
    file.unlink()


def spoilt(file: Path) -> None:
    file.write_bytes(b"\xff\xfe")


@pytest.fixture
def other(ledger: Ledger, make: Callable[..., Client]) -> Client:
    """A client with a key of another scope, and the same store."""
    scope = ledger.directory.create_scope("other", "unlimited", utc_now())
    key, _ = ledger.directory.create_key(scope, FULL_ACCESS, None, utc_now())
    return make(key=key)


def test_a_yes_that_another_scope_got_permits_nothing(
    gate: Client, other: Client, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with dying_in(store, "start", monkeypatch, after=False), guarding(gate):
        raise AssertionError("the body ran")
    with pytest.raises(GateUnavailable) as refused, guarding(other):
        raise AssertionError("the body ran")
    assert refused.value.code == "RECORD_FOREIGN"
    assert "another scope" in refused.value.message
    assert len(executions(gate, runs(gate))) == 1


def test_reports_are_delivered_with_a_key_of_their_own_scope_alone(
    gate: Client, other: Client, store: SqliteStore, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate._courier, "wake", lambda: None)
    permit = runs(gate)
    theirs = runs(other, intent="theirs")
    other.close()
    assert [report.decision_id for report in store.undelivered(10)] == [permit.decision_id]
    assert other.flush().foreign
    assert (store.set_aside(10), len(store.undelivered(10))) == ([], 1)
    assert not gate.flush().foreign
    assert len(executions(gate, permit)) == len(executions(other, theirs)) == 1


@pytest.mark.parametrize(("change", "code"), [(taken, "FILE_UNREADABLE"), (spoilt, "API_KEY_INVALID")])
def test_a_key_that_is_gone_when_the_yes_comes_lets_nothing_run(
    make: Callable[..., Client],
    service: Service,
    key: str,
    tmp_path: Path,
    change: Callable[[Path], None],
    code: str,
) -> None:
    file = tmp_path / "api.key"
    file.write_text(key)

    def taken_away(request: httpx.Request, response: httpx.Response) -> httpx.Response:
        change(file)
        return response

    service.rewrite = taken_away
    with pytest.raises(GateUnavailable) as refused, guarding(make(key=None, key_file=file)):
        raise AssertionError("the body ran")
    assert refused.value.code == code


def test_a_scope_that_was_given_goes_before_that_of_the_key(make: Callable[..., Client]) -> None:
    with pytest.raises(GateUnavailable) as refused, guarding(make(scope_hash="0" * 64)):
        raise AssertionError("the body ran")
    assert refused.value.code == "RECORD_FOREIGN"
