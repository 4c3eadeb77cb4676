"""The log: one JSON object for each request, whatever happens to it, and nothing in it that has to stay secret."""

from __future__ import annotations

import json
import logging
import logging.config
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
import structlog
from flask.testing import FlaskClient
from hypothesis import given
from hypothesis import strategies as st

from api.app import Worker, create_app
from api.http import logs
from api.http.logs import library_logging, log_request, open_log
from gate.decisions.decide import DecisionGate
from gate.ids import timestamp
from gate.instance.instance import Instance
from tests.support.samples import sample_request

CANARY = "canary-7f3a9"


def lines(log: BytesIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.getvalue().splitlines()]


def test_a_disabled_key_is_logged_as_whose_it_was_in_every_process(
    client: FlaskClient, instance: Instance, log: BytesIO, key: str
) -> None:
    """A process that never saw the key active says it as well as one that did."""
    instance.ledger.directory.disable_key(key.split("_")[1], datetime.now(UTC))
    assert client.post("/api/decide", json=sample_request(), headers={"x-api-key": key}).status_code == 403
    (line,) = lines(log)
    assert (line["status"], line["scope"], line["key_id"]) == (403, key.split("_")[1][:16], key.split("_")[1])


def test_a_decision_is_logged_with_who_asked_what_came_of_it_and_how_long_it_took(
    client: FlaskClient, log: BytesIO, key: str
) -> None:
    answer = client.post(
        "/api/decide",
        json=sample_request(),
        headers={"x-api-key": key, "x-idempotency-key": "k", "x-request-id": "t-1"},
    )
    (line,) = lines(log)
    assert list(line) == [
        *("request_id", "method", "route", "status", "caller_request_id", "scope", "key_id"),
        *("decision_id", "verdict", "idempotency", "latency_ms", "event", "level", "time"),
    ]
    record = answer.get_json()
    assert line.pop("latency_ms") > 0
    assert line.pop("time").endswith("Z")
    assert line == {
        "event": "request",
        "level": "info",
        "request_id": record["request_id"],
        "caller_request_id": "t-1",
        "method": "POST",
        "route": "/api/decide",
        "status": 200,
        "scope": key.split("_")[1][:16],
        "key_id": key.split("_")[1],
        "decision_id": record["decision_id"],
        "verdict": "yes",
        "idempotency": "created",
    }


@pytest.mark.parametrize(
    ("path", "status", "route", "error"),
    [
        ("/api/decision/dec_1", 401, "/api/decision/<decision_id>", "SVC_API_UNAUTHORIZED"),
        ("/api/decision/chains/c", 401, "/api/decision/chains/<chain_id>", "SVC_CHAIN_UNAUTHORIZED"),
        ("/no/such/path", 404, "unmatched", "SVC_API_NOT_FOUND"),
        ("/metrics", 401, "/metrics", "SVC_API_UNAUTHORIZED"),
    ],
)
def test_a_refusal_is_logged_with_its_code(
    client: FlaskClient, log: BytesIO, path: str, status: int, route: str, error: str
) -> None:
    answer = client.get(path)
    (line,) = lines(log)
    assert (answer.status_code, line["status"], line["route"], line["error"]) == (status, status, route, error)
    assert line["request_id"] == answer.get_json()["request_id"]
    assert "scope" not in line


def test_why_the_service_was_unavailable_is_logged(
    client: FlaskClient, log: BytesIO, instance: Instance, key: str
) -> None:
    (instance.settings.home / "keys" / "receipt.json").unlink()
    answer = client.post("/api/decide", json=sample_request(), headers={"x-api-key": key})
    (line,) = lines(log)
    assert (answer.status_code, line["level"], line["error"]) == (503, "error", "SVC_SIGNING_UNAVAILABLE")
    assert line["reason"] == answer.get_json()["message"]


def test_probes_are_logged_only_when_readiness_changes(client: FlaskClient, log: BytesIO, instance: Instance) -> None:
    for path in ("/livez", "/readyz", "/readyz"):
        client.get(path)
    assert lines(log) == []
    (instance.settings.home / "keys" / "receipt.json").unlink()
    other = BytesIO()
    degraded = create_app(instance, log=open_log(stream=other)).test_client()
    assert degraded.get("/readyz").status_code == 503
    assert degraded.get("/readyz").status_code == 503
    (line,) = lines(other)
    assert (line["event"], line["level"], set(line["parts"])) == ("degraded", "warning", {"signing", "registries"})


@pytest.mark.parametrize(("level", "written"), [("info", 2), ("warning", 1), ("error", 1)])
def test_a_level_leaves_out_what_is_below_it(instance: Instance, key: str, level: str, written: int) -> None:
    stream = BytesIO()
    client = create_app(instance, log=open_log(level, stream)).test_client()
    client.post("/api/decide", json=sample_request(), headers={"x-api-key": key})
    (instance.settings.home / "keys" / "receipt.json").unlink()
    client.post("/api/decide", json=sample_request(), headers={"x-api-key": key})
    assert len(lines(stream)) == written


def test_a_log_that_cannot_be_written_undoes_no_answer(instance: Instance, key: str) -> None:
    closed = BytesIO()
    closed.close()
    with Path("/dev/full").open("wb", buffering=0) as full:
        for stream in (closed, full):
            client = create_app(instance, log=open_log(stream=stream)).test_client()
            answer = client.post("/api/decide", json=sample_request(), headers={"x-api-key": key})
            assert answer.status_code == 200


@pytest.mark.parametrize("level", ["info", "warning", "error"])
@pytest.mark.parametrize("of_request", ["info", "error"])
def test_the_short_way_of_a_request_writes_the_line_that_the_long_one_does(level: str, of_request: str) -> None:
    fields = {"request_id": "req_1", "route": "/api/decide", "status": 200, "latency_ms": 0.5}
    short, long = BytesIO(), BytesIO()
    log_request(open_log(level, short), of_request, dict(fields))
    getattr(open_log(level, long), of_request)("request", **fields)
    assert [{**line, "time": None} for line in lines(short)] == [{**line, "time": None} for line in lines(long)]
    assert [list(line) for line in lines(short)] == [list(line) for line in lines(long)]
    assert len(lines(short)) == (logs.LEVELS[of_request] >= logs.LEVELS[level])


def test_a_request_is_logged_by_any_other_log_too() -> None:
    with structlog.testing.capture_logs() as captured:
        log_request(structlog.get_logger(), "error", {"status": 500})
    assert captured == [{"status": 500, "event": "request", "log_level": "error"}]


def test_a_field_that_is_no_json_is_written_all_the_same() -> None:
    log = BytesIO()
    log_request(open_log(stream=log), "info", {"half": "\ud83d", "large": 2**70, "of": object()})
    (line,) = lines(log)
    assert (line["half"], line["large"], line["of"]) == ("\ud83d", 2**70, "object")


@given(st.integers(0, 7_000_000_000_000_000))
def test_the_time_of_a_line_is_written_as_in_records(microseconds: int) -> None:
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)
    assert logs._stamp(1000 * microseconds) == timestamp(moment)


def test_an_unexpected_failure_is_logged_by_its_type_and_places_alone(
    client: FlaskClient, log: BytesIO, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise ValueError(CANARY)

    monkeypatch.setattr(DecisionGate, "decide", fails)
    answer = client.post("/api/decide", json={"question": CANARY}, headers={"x-api-key": key})
    unexpected, request = lines(log)
    assert (answer.status_code, unexpected["event"], unexpected["error_type"]) == (500, "unexpected", "ValueError")
    assert any(place.endswith(" fails") for place in unexpected["places"])
    assert (request["error"], request["level"]) == ("SVC_INTERNAL_ERROR", "error")
    assert unexpected["request_id"] == request["request_id"] == answer.get_json()["request_id"]
    assert CANARY not in log.getvalue().decode() + answer.get_data(as_text=True)


def test_what_libraries_log_has_the_same_shape_and_quotes_no_exception(capsys: pytest.CaptureFixture[str]) -> None:
    before = logging.getLogger().handlers[:]
    logging.config.dictConfig(library_logging())
    try:
        try:
            raise RuntimeError(CANARY)
        except RuntimeError:
            logging.getLogger("some.library").exception("It failed.")
    finally:
        logging.getLogger().handlers[:] = before
    (line,) = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert (line["event"], line["level"], line["logger"]) == ("It failed.", "error", "some.library")
    assert (line["error_type"], len(line["places"])) == ("RuntimeError", 1)
    assert CANARY not in json.dumps(line)


def test_a_worker_that_cannot_open_its_instance_logs_why_and_no_password(
    home: Path, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = logging.getLogger().handlers[:]
    monkeypatch.setenv("GATE_DATABASE_URL", f"postgresql://gate:{CANARY}@127.0.0.1:1/gate")
    try:
        Worker(home)
    finally:
        logging.getLogger().handlers[:] = before
        logging.captureWarnings(False)
    (line,) = [json.loads(line) for line in capsysbinary.readouterr().err.splitlines()]
    assert (line["event"], line["level"]) == ("closed", "error")
    assert "cannot be reached" in line["reason"]
    assert CANARY not in json.dumps(line)
