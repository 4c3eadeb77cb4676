"""What operators see: readiness under faults, probes, metrics behind their token, what the service is set up to do."""

from __future__ import annotations

import fcntl
import json
import platform
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from flask.testing import FlaskClient
from prometheus_client.parser import text_string_to_metric_families
from werkzeug.test import Client

from api.app import Worker
from api.cli.announcement import tell_of_adapters
from api.http import readiness
from api.http.logs import open_log
from api.http.readiness import CONTRACTS, Readiness
from gate import __version__, labels
from gate.adapters.invocation import TrustedAdapters
from gate.adapters.registry import registered
from gate.adapters.worker import Workers
from gate.clock import utc_now
from gate.encoding import resources
from gate.instance.instance import Instance
from gate.ledger.stores.store import Store
from gate.rulebooks.evaluation import Evaluator
from tests.gate.adapters.support import eventually
from tests.support.faults import table_gone
from tests.support.samples import sample_request, sqlite_file

STATUS = "/api/decision/status"
PARTS = ("signing", "rulebook_runtime", "ledger", "idempotency", "registries", "auth", "backends", "disk")


def valid(document: Any, schema: str) -> Any:
    jsonschema.Draft202012Validator(resources.schema(schema)).validate(document)
    return document


@pytest.fixture
def always_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes every report anew, so that a test need not wait for the last one to be a second old."""
    monkeypatch.setattr(readiness, "_FRESH_SECONDS", 0.0)


@pytest.fixture
def token(instance: Instance) -> str:
    return instance.settings.metrics_token.read_text().strip()


def samples(client: FlaskClient | Client, token: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    answer = client.get("/metrics", headers={"x-metrics-token": token})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(answer.get_data(as_text=True))
        for sample in family.samples
    }


class TestReadiness:
    def test_a_ready_service_says_so_part_by_part(self, client: FlaskClient) -> None:
        response = client.get(STATUS)
        body = valid(response.get_json(), "status")
        assert (response.status_code, body["ok"], body["status"]) == (200, True, "ready")
        assert all(body[part]["ready"] is True for part in PARTS)
        assert client.get("/readyz").get_json() == {"ok": True, "status": "ready"}

    def test_the_contracts_are_those_of_the_versioning_table(self, client: FlaskClient) -> None:
        contracts = client.get(STATUS).get_json()["contracts"]
        assert contracts == {
            "interface": "1.13.0",
            "protocol": "decision_protocol_v1",
            "record": "decision_record_v1",
            "packet": "decision_packet_v1",
            "rulebook": "rulebook_v1",
            "execution": "decision_execution_v1",
            "outcome": "decision_outcome_v1",
            "crm_sync": "decision_crm_sync_v1",
            "confidence": "decision_confidence_v1",
            "counterfactuals": "decision_counterfactuals_v1",
            "rulebook_registry": "decision_rulebook_registry_v1",
            "registry_attestation": "decision_registry_attestation_v1",
            "application_binding": "svc_application_binding_v1",
            "compatibility_policy": "compatibility_policy_v1",
            "golden_replay": "rulebook_v1_golden_replay_v1",
            "historical_replay": "historical_rulebook_replay_v1",
            "migration": "rulebook_migration_v1",
            "rulebook_attestation": "rulebook_attestation_v1",
            "chain": "decision_chain_v1",
            "checkpoint": "decision_checkpoint_v1",
        }

    @pytest.mark.usefixtures("always_fresh")
    @pytest.mark.parametrize(
        ("fault", "parts"),
        [
            ("no receipt keys", {"signing", "registries"}),
            ("no attestation keys", {"signing", "registries"}),
            ("no private key", {"signing"}),
            ("a clock before the key", {"signing"}),
            ("the file is moved", {"ledger"}),
            ("the file is replaced", {"ledger"}),
            ("the home is moved", {"signing", "ledger", "registries", "disk", "auth"}),
            ("a file is in the home's place", {"signing", "ledger", "registries", "auth"}),
            ("no scopes", {"auth"}),
            ("no keys", {"auth"}),
            ("no claims", {"idempotency"}),
            ("no rulebooks", {"registries"}),
            ("another process holds the lock of the ledger", {"ledger"}),
            ("a full disk", {"disk"}),
            ("an evaluator that decides otherwise", {"rulebook_runtime"}),
        ],
    )
    def test_a_fault_degrades_the_parts_that_it_touches_and_passes(
        self,
        client: FlaskClient,
        instance: Instance,
        key: str,
        monkeypatch: pytest.MonkeyPatch,
        fault: str,
        parts: set[str],
    ) -> None:
        assert client.post("/api/decide", json=sample_request(), headers={"x-api-key": key}).status_code == 200
        # Until that is known, the service does not wait for it.
        assert instance.adapters.measures().reason is None
        ready = client.get(STATUS).get_json()
        with _FAULTS[fault](instance, monkeypatch):
            response = client.get(STATUS)
            probe = client.get("/readyz")
            assert client.get("/livez").get_json() == {"ok": True, "status": "alive"}
        body = valid(response.get_json(), "status")
        assert (response.status_code, body["ok"], body["status"]) == (503, False, "degraded")
        assert (probe.status_code, probe.get_json()) == (503, {"ok": False, "status": "degraded"})
        assert {part for part in PARTS if not body[part]["ready"]} == parts
        assert body.keys() == ready.keys()
        assert str(instance.settings.home) not in response.get_data(as_text=True)
        assert "retry with" not in str([body[part].get("reason") for part in PARTS])
        recovered = client.get(STATUS)
        assert (recovered.status_code, recovered.get_json()) == (200, ready)

    @pytest.mark.usefixtures("always_fresh")
    def test_limits_that_cannot_be_counted_degrade_auth(self, client: FlaskClient, instance: Instance) -> None:
        assert client.get(STATUS).status_code == 200
        limits = sqlite_file(instance.ledger).with_name("ledger.db.limits")
        limits.rename(limits.with_name("away"))
        # A limits file that is gone begins anew, as limits are of the last minute only.
        assert client.get(STATUS).status_code == 200
        limits.unlink()
        limits.mkdir()
        status = client.get(STATUS)
        assert (status.status_code, status.get_json()["auth"]["ready"]) == (503, False)
        limits.rmdir()
        assert client.get(STATUS).status_code == 200

    def test_a_report_is_made_once_a_second_however_often_it_is_asked_for(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        now, made = [100.0], []
        monkeypatch.setattr("api.http.readiness.time.monotonic", lambda: now[0])

        def make() -> Any:
            made.append(now[0])
            return {"ok": True}

        watched = Readiness(make, open_log(stream=BytesIO()))
        for moment in (100.0, 100.5, 100.99, 101.0, 101.5, 102.5):
            now[0] = moment
            watched.report()
        assert made == [100.0, 101.0, 102.5]

    def test_asking_for_readiness_makes_no_record(self, client: FlaskClient, instance: Instance, key: str) -> None:
        client.post("/api/decide", json=sample_request(), headers={"x-api-key": key})
        before = instance.ledger.entries.totals()
        for _ in range(3):
            client.get(STATUS)
        assert instance.ledger.entries.totals() == before


class TestClosed:
    def test_a_worker_without_its_ledger_answers_operators_until_it_is_back(
        self, home: Path, instance: Instance, token: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(readiness, "_FRESH_SECONDS", 0.0)
        ledger = sqlite_file(instance.ledger)
        before = Client(Worker(home))
        assert eventually(lambda: before.get(STATUS).get_json()["trusted_adapters"]["ready"])
        ready = before.get(STATUS).get_json()
        ledger.rename(ledger.with_name("away"))
        worker = Worker(home)
        client = Client(worker)
        status = client.get(STATUS)
        body = valid(status.get_json(), "status")
        assert (status.status_code, body["status"], body.keys()) == (503, "degraded", ready.keys())
        assert {part for part in PARTS if body[part]["ready"]} == {"rulebook_runtime", "signing", "backends"}
        assert body["contracts"] == CONTRACTS
        assert body["ledger"]["backend"] == "sqlite"
        assert str(home) not in status.get_data(as_text=True)
        assert (client.get("/livez").status_code, client.get("/readyz").status_code) == (200, 503)
        measured = samples(client, token)
        assert measured["gate_ready", ()] == 0
        assert ("gate_trusted_adapters_ready", ()) not in measured
        assert client.get("/metrics").status_code == 401
        refused_paths = ("/api/decide", "/api/decision/receipt-keys", "/openapi.json", "/api/proof-metrics", "/nothing")
        for path in refused_paths:
            answer = client.post(path) if path == "/api/decide" else client.get(path)
            error = valid(answer.get_json(), "error")
            assert (answer.status_code, error["error"]) == (503, "SVC_STORAGE_UNAVAILABLE")
        ledger.with_name("away").rename(ledger)
        worker._next_try = 0.0
        assert eventually(lambda: client.get(STATUS).get_json() == ready)

    def test_a_worker_without_settings_says_so_too(self, home: Path) -> None:
        (home / "settings.toml").write_text('receipt_signing = "perhaps"\n')
        status = Client(Worker(home)).get(STATUS)
        body = valid(status.get_json(), "status")
        assert (status.status_code, body["signing"]["receipt_signing"]) == (503, None)


class TestAdaptersThatCannotRun:
    """A measure is required that no machine has."""

    @pytest.fixture
    def instance(self, instance: Instance) -> Instance:
        workers = Workers(registered(), required=["a_moat"])
        assert workers.measures().known
        instance.__dict__["adapters"] = TrustedAdapters(registered(), workers)
        return instance

    def test_they_are_measured_and_the_service_is_ready_all_the_same(self, client: FlaskClient, token: str) -> None:
        measured = samples(client, token)
        assert (measured["gate_trusted_adapters_ready", ()], measured["gate_ready", ()]) == (0, 1)

    def test_the_start_logs_why(self, client: FlaskClient, log: BytesIO) -> None:
        report = client.get(STATUS).get_json()
        written = log.tell()
        assert tell_of_adapters(report, open_log("info", log))
        (line,) = [json.loads(line) for line in log.getvalue()[written:].splitlines()]
        assert line.pop("time").endswith("Z")
        assert line == {
            "level": "warning",
            "event": "adapters_not_ready",
            "reason": "No adapter can run: adapter_isolation requires measures that are not available here: a_moat.",
            "required": ["no_new_privs", "seccomp", "rlimits"],
            "in_force": report["trusted_adapters"]["in_force"],
        }
        assert {"no_new_privs", "seccomp", "rlimits"} <= set(line["in_force"])


def test_the_start_logs_nothing_of_adapters_that_can_run_or_were_not_tried(
    client: FlaskClient, instance: Instance
) -> None:
    log = BytesIO()
    starting = readiness.readiness(instance, wait=0)
    assert starting["trusted_adapters"]["reason"] == "No adapter can run: the process that forks them is starting."
    assert instance.adapters.measures().known
    told = {"known": client.get(STATUS).get_json(), "starting": starting}
    told |= {"away": readiness.closed(instance.settings, "It is away."), "nothing": {}}
    known = {name for name, report in told.items() if tell_of_adapters(report, open_log("info", log))}
    assert known == {"known"}
    assert log.getvalue() == b""


class TestMetrics:
    @pytest.mark.parametrize("path", ["/metrics", "/api/proof-metrics"])
    def test_only_the_token_opens_them(self, client: FlaskClient, instance: Instance, token: str, path: str) -> None:
        for sent in ({}, {"x-metrics-token": ""}, {"x-metrics-token": token + "x"}, {"x-api-key": token}):
            answer = client.get(path, headers=sent)
            assert (answer.status_code, answer.get_json()["error"]) == (401, "SVC_API_UNAUTHORIZED")
        assert client.get(path, headers={"x-metrics-token": token}).status_code == 200
        instance.settings.metrics_token.write_text("another\n")
        assert client.get(path, headers={"x-metrics-token": token}).status_code == 401
        assert client.get(path, headers={"x-metrics-token": "another"}).status_code == 200
        for nothing in ("", "\n"):
            instance.settings.metrics_token.write_text(nothing)
            assert client.get(path, headers={"x-metrics-token": nothing.strip()}).status_code == 401
        instance.settings.metrics_token.unlink()
        assert client.get(path, headers={"x-metrics-token": ""}).status_code == 401

    def test_an_instance_has_a_token_of_its_own_that_others_cannot_read(self, instance: Instance, token: str) -> None:
        assert len(token) >= 43
        assert instance.settings.metrics_token.stat().st_mode & 0o777 == 0o600

    def test_reports_are_counted_by_kind_and_by_what_they_report(
        self, client: FlaskClient, key: str, token: str
    ) -> None:
        headers = {"x-api-key": key, "x-idempotency-key": "one"}
        decision_id = client.post("/api/decide", json=sample_request(), headers=headers).get_json()["decision_id"]
        bodies = {
            "execution": {"execution_status": "failed"},
            "outcome": {"outcome_status": "reverted"},
            "crm-sync": {"sync_status": "skipped"},
        }
        for name, body in [*bodies.items(), ("outcome", bodies["outcome"]), ("outcome", {})]:
            client.post(f"/api/decision/{decision_id}/{name}", json=body, headers=headers)
        found = samples(client, token)
        counted = {labels: value for (metric, labels), value in found.items() if metric == "gate_reports_total"}
        assert counted == {
            _labels(kind="execution", reported="failed", status="created"): 1,
            _labels(kind="outcome", reported="reverted", status="created"): 1,
            _labels(kind="outcome", reported="reverted", status="replayed"): 1,
            _labels(kind="crm-sync", reported="skipped", status="created"): 1,
        }

    def test_requests_decisions_errors_and_commits_are_counted(
        self, client: FlaskClient, instance: Instance, key: str, token: str
    ) -> None:
        assert instance.adapters.measures().known
        headers = {"x-api-key": key}
        for name in ("one", "one", "two"):
            client.post("/api/decide", json=sample_request(), headers=headers | {"x-idempotency-key": name})
        blocked = sample_request(discount_percent=10, margin_percent=3)
        client.post("/api/decide", json=blocked, headers=headers)
        client.post("/api/decide", data="{", content_type="application/json", headers=headers)
        client.get("/nothing/of/the/kind")
        client.get("/another/../..%00")
        client.open("/api/decide", method="BREW")
        found = samples(client, token)

        def requests(route: str, method: str, code: int) -> float:
            return found["gate_http_request_seconds_count", _labels(code=str(code), method=method, route=route)]

        assert requests("/api/decide", "POST", 200) == 4
        assert requests("/api/decide", "POST", 400) == 1
        assert requests("unmatched", "GET", 404) == 2
        assert requests("unmatched", "other", 405) == 1
        assert found["gate_decisions_total", _labels(verdict="yes", status="created")] == 2
        assert found["gate_decisions_total", _labels(verdict="yes", status="replayed")] == 1
        assert found["gate_decisions_total", _labels(verdict="no", status="created")] == 1
        assert found["gate_http_errors_total", _labels(error="SVC_API_JSON_INVALID")] == 1
        assert found["gate_http_errors_total", _labels(error="SVC_API_NOT_FOUND")] == 2
        # The replay found its key taken only when it came to append.
        assert found["gate_append_seconds_count", ()] == 4
        assert found["gate_commit_batch_entries_sum", ()] == 3
        assert found["gate_commit_sync_seconds_count", ()] == found["gate_commit_batch_entries_count", ()] == 3
        assert found["gate_commit_queue_entries_count", ()] == 3
        assert found["gate_commit_queue_entries_sum", ()] == 0
        assert found["gate_ready", ()] == 1
        assert found["gate_trusted_adapters_ready", ()] == 1
        assert found["gate_chain_entries", ()] == 3
        assert found["gate_scopes", ()] == 1
        assert found["gate_registered_rulebooks", ()] == 1
        assert found["gate_ledger_bytes", ()] > 0
        assert found["gate_ledger_disk_free_bytes", ()] > 0

    def test_no_text_that_a_caller_chooses_becomes_a_label(self, client: FlaskClient, key: str, token: str) -> None:
        def counted() -> set[Any]:
            return set(samples(client, token))

        client.get("/first")
        client.open("/api/decide", method="FIRST")
        client.get("/api/decision/first", headers={"x-api-key": key})
        counted()
        before = counted()
        for number in range(20):
            client.get(f"/path-{number}?q={number}")
            client.open("/api/decide", method=f"M{number}")
            client.get(f"/api/decision/dec_{number}", headers={"x-api-key": key})
        assert counted() == before

    @pytest.mark.usefixtures("always_fresh")
    def test_metrics_are_told_while_the_ledger_cannot_be_read(
        self, client: FlaskClient, instance: Instance, token: str
    ) -> None:
        with table_gone(instance.ledger.store, "chain_heads"):
            found = samples(client, token)
        assert "gate_scopes" not in {name for name, _ in found}
        assert found["gate_info", _labels(**_ABOUT)] == 1


class TestWhatTheServiceIs:
    def test_the_runtime_config_tells_what_a_caller_has_to_know(self, client: FlaskClient, instance: Instance) -> None:
        body = valid(client.get("/api/runtime-config").get_json(), "runtime-config")
        assert body["base_url"] == instance.settings.base_url
        assert body["modes"] == {
            "rulebook": "binding",
            "single": "unconfigured",
            "multi": "unconfigured",
            "runtime": "unconfigured",
        }
        assert body["response_views"] == list(labels.VIEWS)
        assert (body["receipt_signing"], body["registry_signing"]) == ("ed25519", "ed25519")

    def test_proof_metrics_count_what_the_ledger_holds(self, client: FlaskClient, key: str, token: str) -> None:
        def told() -> dict[str, Any]:
            answer = client.get("/api/proof-metrics", headers={"x-metrics-token": token})
            body: dict[str, Any] = valid(answer.get_json(), "proof-metrics")
            return body

        before = told()
        client.post("/api/decide", json=sample_request(), headers={"x-api-key": key})
        after = told()
        assert (before["chain_entries"], after["chain_entries"]) == (0, 1)
        assert (before["registered_rulebooks"], after["registered_rulebooks"]) == (0, 1)
        assert (after["scopes"], after["receipt_keys"], after["attestation_keys"]) == (1, 1, 1)


_ABOUT = {
    "version": __version__,
    "interface_version": "1.13.0",
    "evaluator": "svc_rulebook_v1",
    "python": platform.python_version(),
}


def _labels(**labels: str) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(labels.items()))


@contextmanager
def _file_away(file: Path) -> Iterator[None]:
    file.rename(file.with_name("away"))
    try:
        yield
    finally:
        file.with_name("away").replace(file)


@contextmanager
def _file_replaced(file: Path) -> Iterator[None]:
    with _file_away(file):
        file.write_bytes(file.with_name("away").read_bytes())
        yield


@contextmanager
def _home_is_a_file(home: Path) -> Iterator[None]:
    away = home.with_name("elsewhere")
    home.rename(away)
    home.touch()
    try:
        yield
    finally:
        home.unlink()
        away.rename(home)


@contextmanager
def _clock_before_the_key(patched: pytest.MonkeyPatch) -> Iterator[None]:
    early = utc_now() - timedelta(days=400)
    with patched.context() as context:
        context.setattr("gate.instance.instance.utc_now", lambda: early)
        context.setattr(Instance.gate, "__defaults__", (lambda: early,))
        yield


@contextmanager
def _held_by_another(database: Path) -> Iterator[None]:
    with database.with_name(f"{database.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def _no_room(patched: pytest.MonkeyPatch, store: Store) -> Iterator[None]:
    with patched.context() as context:
        context.setattr(type(store), "disk_left", lambda _: 1000)
        yield


@contextmanager
def _no_private_key(instance: Instance) -> Iterator[None]:
    active = instance.receipt_keys.registry().active_key_id
    # One that was loaded stays in memory, and in use; who starts a worker now has none.
    with _file_away(instance.settings.home / "keys" / f"{active}.pem"):
        yield


@contextmanager
def _another_evaluator(patched: pytest.MonkeyPatch) -> Iterator[None]:
    decide = Evaluator.decide
    readiness._golden_failures.cache_clear()
    with patched.context() as context:
        # As one would that takes true for 1.
        context.setattr(Evaluator, "decide", lambda self, facts: decide(self, {n: v or 0 for n, v in facts.items()}))
        yield
    readiness._golden_failures.cache_clear()


_Fault = Callable[[Instance, pytest.MonkeyPatch], AbstractContextManager[None]]
_FAULTS: dict[str, _Fault] = {
    "no receipt keys": lambda at, _: _file_away(at.settings.home / "keys" / "receipt.json"),
    "no attestation keys": lambda at, _: _file_away(at.settings.home / "keys" / "registry.json"),
    "no private key": lambda at, _: _no_private_key(at),
    "a clock before the key": lambda _, patched: _clock_before_the_key(patched),
    "the file is moved": lambda at, _: _file_away(sqlite_file(at.ledger)),
    "the file is replaced": lambda at, _: _file_replaced(sqlite_file(at.ledger)),
    "the home is moved": lambda at, _: _file_away(at.settings.home),
    "a file is in the home's place": lambda at, _: _home_is_a_file(at.settings.home),
    "no scopes": lambda at, _: table_gone(at.ledger.store, "scopes"),
    "no keys": lambda at, _: table_gone(at.ledger.store, "api_keys"),
    "no claims": lambda at, _: table_gone(at.ledger.store, "claims"),
    "no rulebooks": lambda at, _: table_gone(at.ledger.store, "rulebooks"),
    "another process holds the lock of the ledger": lambda at, _: _held_by_another(sqlite_file(at.ledger)),
    "a full disk": lambda at, patched: _no_room(patched, at.ledger.store),
    "an evaluator that decides otherwise": lambda _, patched: _another_evaluator(patched),
}
