"""schemas/error-codes.json: its examples are what the service answers."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import update
from werkzeug.test import TestResponse

from api.app import create_app
from api.errors import codes
from api.http.requests import MAX_BODY
from gate.adapters.invocation import TrustedAdapters
from gate.adapters.registry import registered
from gate.adapters.worker import Workers
from gate.clock import utc_now
from gate.encoding import resources
from gate.encoding.strict_json import parse
from gate.ids import timestamp
from gate.instance.instance import Instance
from gate.instance.pilots import MAX_PENDING
from gate.ledger.access.authority import Scope
from gate.ledger.chain.writer import Claim
from gate.ledger.tables import entries
from gate.records.reports.receipts import KINDS, Kind
from gate.services.advisory.advisor import CALLS, Advisor
from gate.services.advisory.upstream import Upstream
from tests.gate.adapters.support import adapter as make_adapter
from tests.support.reports import LateReports, give_reports
from tests.support.samples import PILOT, REPORTS, LimitClock, cases, sample_request

CATALOGUE: dict[str, dict[str, Any]] = parse(resources.path("schemas", "error-codes.json").read_bytes())
REQUESTS = {case["code"]: case for case in cases("error_examples")}


class Caller:
    """Provokes errors, each in a fresh instance."""

    def __init__(self, instance: Instance, scope: Scope, key: str) -> None:
        self.instance = instance
        self.scope = scope
        self.app: Flask = create_app(instance)
        self.client: FlaskClient = self.app.test_client()
        self.headers = {"x-api-key": key}

    def send(self, request: dict[str, Any]) -> TestResponse:
        """Sends a request of a case: {method?, path?, headers?, body? | json?}, by default a decide request."""
        return self.client.open(
            request.get("path", "/api/decide"),
            method=request.get("method", "POST"),
            headers={**self.headers, **request.get("headers", {})},
            **({"json": request["json"]} if "json" in request else {"data": request.get("body")}),
            **({"content_type": request["content_type"]} if "content_type" in request else {}),
        )

    def decide(self, **headers: str) -> TestResponse:
        """Decides about the sample."""
        return self.client.post("/api/decide", json=sample_request(), headers={**self.headers, **headers})


def rate_limited(caller: Caller) -> TestResponse:
    caller.instance.ledger.directory.set_plan(caller.scope, "starter", utc_now())
    for _ in range(20):
        assert caller.decide().status_code == 200
    return caller.decide()


def capped(caller: Caller) -> TestResponse:
    caller.instance.ledger.directory.set_plan(caller.scope, "starter", utc_now(), monthly_cap=1)
    assert caller.decide().status_code == 200
    return caller.decide()


def key_conflict(caller: Caller) -> TestResponse:
    assert caller.decide(**{"x-idempotency-key": "deal-1042"}).status_code == 200
    other = sample_request(discount_percent=40, margin_percent=22)
    return caller.client.post("/api/decide", json=other, headers={**caller.headers, "x-idempotency-key": "deal-1042"})


def version_conflict(caller: Caller) -> TestResponse:
    assert caller.decide().status_code == 200
    changed = sample_request()
    changed["rulebook"]["default_outcome"]["action"] = "ask_the_owner"
    return caller.send({"json": changed})


def adapter_conflict(caller: Caller) -> TestResponse:
    adapter = {"adapter_id": "pricing", "version": "1", "manifest_hash": "0" * 64, "input": {}}
    return caller.send({"json": {**sample_request(), "adapter": adapter}})


def invocation(**members: Any) -> Provoke:
    """A request that invokes an adapter, with members of the invocation as they are given; without those of None."""

    def provoke(caller: Caller) -> TestResponse:
        request = sample_request()
        del request["context"]["inputs"]
        sent = {"adapter_id": "pricing", "version": "1", "manifest_hash": "0" * 64, "input": {}, **members}
        adapter = {name: value for name, value in sent.items() if value is not None}
        return caller.send({"json": {**request, "adapter": adapter}})

    return provoke


SOLANA: dict[str, Any] = {"adapter_id": "solana_execution_gate", "version": "1.0.0"}
TRANSFER: dict[str, Any] = {
    "sol_amount": 0,
    "risk_level": "low",
    "evidence_level": "strong",
    "quorum_signed": True,
    "budget_within_policy": True,
    "recipient_verified": True,
}


FACTS_SCHEMA: dict[str, Any] = {"type": "object", "properties": {"margin": {"type": "number"}}}


def failing_adapter(source: str, **limits: int) -> Provoke:
    """A request that invokes an adapter of that source, which the instance has instead of the product's own."""

    def provoke(caller: Caller) -> TestResponse:
        made = make_adapter("pricing", source, **limits)
        manifest: Any = {**made.manifest, "output_schema": FACTS_SCHEMA, "manifest_hash": "0" * 64}
        adapter = replace(made, manifest=manifest)
        caller.instance.adapters.close()
        workers = Workers([adapter])
        caller.instance.__dict__["adapters"] = TrustedAdapters([adapter], workers)
        caller.app = create_app(caller.instance)
        caller.client = caller.app.test_client()
        try:
            return invocation(version=adapter.version)(caller)
        finally:
            workers.close()

    return provoke


def binding_mode(caller: Caller) -> TestResponse:
    return caller.send({"json": {**sample_request(), "binding_mode": "customer_executable_rulebook"}})


def output_material(caller: Caller) -> TestResponse:
    return caller.send({"json": {**sample_request(), "application_verdict": "APPROVE"}})


def two_rulebooks(caller: Caller) -> TestResponse:
    return caller.send({"json": {**sample_request(), "rulebook_ref": {"rulebook_id": "pricing", "version": "1"}}})


def sandbox_reference(caller: Caller) -> TestResponse:
    reference = {"rulebook_id": "pricing_exception", "version": "2026-06-11"}
    body = {"mode": "rulebook", "rulebook_ref": reference, "context": {}}
    return caller.send({"path": "/api/sandbox/decide", "json": body})


def full_intake(caller: Caller) -> TestResponse:
    row = {"name": b"", "email": b"", "company": b"", "use": b"", "submitted_at": timestamp(utc_now())}
    with caller.instance.ledger.store.write() as connection:
        rows = [{**row, "pilot_id": f"plt_{number}"} for number in range(MAX_PENDING)]
        connection.exec_driver_sql(
            "INSERT INTO pilots (pilot_id, name, email, company, use, submitted_at) "
            "VALUES (:pilot_id, :name, :email, :company, :use, :submitted_at)",
            rows,
        )
    return caller.send({"path": "/api/pilot", "json": PILOT})


def invalid_rulebook(caller: Caller) -> TestResponse:
    request = sample_request()
    del request["rulebook"]["default_outcome"]
    return caller.send({"json": request})


def about_decided(caller: Caller, suffix: str, body: dict[str, Any], change: str = "") -> TestResponse:
    """Asks about a decision, after a change of what the ledger holds of it."""
    url = caller.decide().get_json()["decision_url"]
    if change:
        with caller.instance.ledger.store.write() as connection:
            connection.exec_driver_sql(change)
    return caller.send({"path": f"{url}/{suffix}", "json": body})


def replay_mode(caller: Caller) -> TestResponse:
    return about_decided(caller, "replay", {"replay_mode": "latest"})


def replay_input(caller: Caller) -> TestResponse:
    return about_decided(caller, "replay", {"input": sample_request()})


def replay_erased(caller: Caller) -> TestResponse:
    return about_decided(caller, "replay", {}, "UPDATE entries SET request = NULL")


def replay_unlinked(caller: Caller) -> TestResponse:
    return about_decided(caller, "replay", {}, "UPDATE entries SET link_hash = record_hash")


def no_scenarios(caller: Caller) -> TestResponse:
    return about_decided(caller, "counterfactuals", {})


def scenarios_erased(caller: Caller) -> TestResponse:
    scenario = {"scenario_id": "same", "label": "The same", "context_patch": {}}
    return about_decided(caller, "counterfactuals", {"scenarios": [scenario]}, "UPDATE entries SET request = NULL")


def report(caller: Caller, kind: Kind, url: str, **members: Any) -> TestResponse:
    """Reports about a decision."""
    body = {**REPORTS[kind.name], **members}
    headers = {"x-idempotency-key": f"deal-1042:{kind.name}"}
    return caller.send({"path": f"{url}/{kind.name}", "json": body, "headers": headers})


def report_conflict(kind: Kind) -> Provoke:
    def conflict(caller: Caller) -> TestResponse:
        url = caller.decide().get_json()["decision_url"]
        assert report(caller, kind, url).status_code == 201
        return report(caller, kind, url, decision_record_hash="0" * 64)

    return conflict


def report_in_progress(kind: Kind) -> Provoke:
    def in_progress(caller: Caller) -> TestResponse:
        record = caller.decide().get_json()
        claim = Claim(kind.name, record["decision_id"], f"deal-1042:{kind.name}", "")
        with caller.instance.ledger.reservations.reserve(claim.digest(caller.scope.scope_id)):
            return report(caller, kind, record["decision_url"])

    return in_progress


def report_mismatch(kind: Kind) -> Provoke:
    return lambda caller: report(caller, kind, caller.decide().get_json()["decision_url"], decision_record_hash="0")


def resolve(caller: Caller, url: str, **members: Any) -> TestResponse:
    """Resolves a decision with a key that may."""
    owner, _ = caller.instance.ledger.directory.create_key(caller.scope, frozenset({"resolve"}), None, utc_now())
    body = {"resolution": "refused", "resolved_by": "Maya Lindqvist", **members}
    headers = {"x-api-key": owner, "x-idempotency-key": "deal-1042:resolution"}
    return caller.send({"path": f"{url}/resolution", "json": body, "headers": headers})


def held(caller: Caller) -> Any:
    """A held decision's record."""
    request = sample_request(discount_percent=40, margin_percent=22)
    return caller.client.post("/api/decide", json=request, headers=caller.headers).get_json()


def resolution_conflict(caller: Caller) -> TestResponse:
    url = held(caller)["decision_url"]
    assert resolve(caller, url).status_code == 201
    return resolve(caller, url, resolution="granted")


def resolution_in_progress(caller: Caller) -> TestResponse:
    record = held(caller)
    claim = Claim("resolution", record["decision_id"], "deal-1042:resolution", "")
    with caller.instance.ledger.reservations.reserve(claim.digest(caller.scope.scope_id)):
        return resolve(caller, record["decision_url"])


def resolution_mismatch(caller: Caller) -> TestResponse:
    return resolve(caller, held(caller)["decision_url"], decision_record_hash="0")


def resolved_before(caller: Caller) -> TestResponse:
    record = held(caller)
    resolutions = caller.instance.resolutions()
    owner, _ = caller.instance.ledger.directory.create_key(caller.scope, frozenset({"resolve"}), None, utc_now())
    authority = caller.instance.ledger.directory.authenticate(owner, utc_now())
    resolutions.resolve(authority, record["decision_id"], {"resolution": "refused", "resolved_by": "Maya Lindqvist"})
    return resolve(caller, record["decision_url"])


def not_held(caller: Caller) -> TestResponse:
    refused = sample_request(discount_percent=10, margin_percent=2)
    record = caller.client.post("/api/decide", json=refused, headers=caller.headers).get_json()
    return resolve(caller, record["decision_url"])


def storage(caller: Caller) -> TestResponse:
    with caller.instance.ledger.store.write() as connection:
        connection.exec_driver_sql("ALTER TABLE entries RENAME TO gone")
    return caller.client.get(f"/api/decision/dec_{0:032x}", headers=caller.headers)


def signing(caller: Caller) -> TestResponse:
    (caller.instance.settings.home / "keys" / "receipt.json").unlink()
    return caller.decide()


def checkpoint_refused(caller: Caller) -> TestResponse:
    caller.decide()
    caller.instance.checkpoints.keep(utc_now())
    with caller.instance.ledger.store.write() as connection:
        connection.execute(update(entries).values(link_hash="f" * 64))
    caller.decide()
    chain_id = caller.instance.ledger.directory.scopes()[0].chain_id
    return caller.client.get(f"/api/decision/chains/{chain_id}/checkpoint", headers=caller.headers)


def report_unavailable(caller: Caller) -> TestResponse:
    message = "The lake is catching up with the ledger. Decisions are not affected; retry in 5 seconds."
    give_reports(caller.app, LateReports(message))
    response = caller.client.get("/api/decision/policies/pricing/effectiveness", headers=caller.headers)
    assert response.headers["retry-after"] == "5"
    return response


def advised(caller: Caller, *, calls: int = 0) -> TestResponse:
    """Asks an upstream that nothing serves, while it is asked so many questions."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        upstream = Upstream(f"http://127.0.0.1:{bound.getsockname()[1]}", "model-1", 5.0)
        caller.instance.__dict__["advisor"] = advisor = Advisor(upstream)
        for _ in range(calls):
            assert advisor._calls.acquire(blocking=False)
        return caller.send({"json": {"question": "May this discount be given?"}})


def too_large(caller: Caller) -> TestResponse:
    return caller.send({"body": b" " * (MAX_BODY + 1), "content_type": "application/json"})


def internal(caller: Caller) -> TestResponse:
    def broken() -> TestResponse:
        raise RuntimeError("A fault of the test.")

    caller.app.add_url_rule("/broken", view_func=broken)
    return caller.client.get("/broken")


Provoke: TypeAlias = Callable[[Caller], TestResponse]

PROVOKED: dict[str, Provoke] = {
    "SVC_API_RATE_LIMITED": rate_limited,
    "SVC_API_MONTHLY_CAP_EXCEEDED": capped,
    "SVC_API_IDEMPOTENCY_CONFLICT": key_conflict,
    "RULEBOOK_VERSION_CONFLICT": version_conflict,
    "TRUSTED_ADAPTER_INPUT_CONFLICT": adapter_conflict,
    "TRUSTED_ADAPTER_INVALID": invocation(version=None),
    "TRUSTED_ADAPTER_NOT_REGISTERED": invocation(),
    "TRUSTED_ADAPTER_MANIFEST_MISMATCH": invocation(**SOLANA),
    "TRUSTED_ADAPTER_INPUT_INVALID": invocation(**SOLANA, manifest_hash=registered()[-1].manifest_hash, input=TRANSFER),
    "TRUSTED_ADAPTER_OUTPUT_INVALID": failing_adapter("def facts(given):\n    return {'margin': 'wide'}\n"),
    "TRUSTED_ADAPTER_EXECUTION_FAILED": failing_adapter("def facts(given):\n    return 1 / 0\n"),
    "TRUSTED_ADAPTER_CAPABILITY_DENIED": failing_adapter("import socket\n"),
    "TRUSTED_ADAPTER_EXECUTION_TIMEOUT": failing_adapter("while True:\n    pass\n", timeout_ms=200),
    "RULEBOOK_BINDING_MODE_UNSUPPORTED": binding_mode,
    "RULEBOOK_OUTPUT_MATERIAL_FORBIDDEN": output_material,
    "RULEBOOK_BINDING_MODE_CONFLICT": two_rulebooks,
    "RULEBOOK_INVALID": invalid_rulebook,
    "SANDBOX_REQUEST_UNSUPPORTED": sandbox_reference,
    "SVC_PILOT_INTAKE_FULL": full_intake,
    "REPLAY_MODE_INVALID": replay_mode,
    "REPLAY_INPUT_OVERRIDE_FORBIDDEN": replay_input,
    "REPLAY_INPUT_UNAVAILABLE": replay_erased,
    "REPLAY_LINEAGE_MISMATCH": replay_unlinked,
    "COUNTERFACTUAL_SCENARIOS_INVALID": no_scenarios,
    "COUNTERFACTUAL_INPUT_UNAVAILABLE": scenarios_erased,
    **{f"SVC_{kind.code}_IDEMPOTENCY_CONFLICT": report_conflict(kind) for kind in KINDS},
    **{f"SVC_{kind.code}_IDEMPOTENCY_IN_PROGRESS": report_in_progress(kind) for kind in KINDS},
    **{f"SVC_{kind.code}_RECORD_MISMATCH": report_mismatch(kind) for kind in KINDS},
    "SVC_RESOLUTION_IDEMPOTENCY_CONFLICT": resolution_conflict,
    "SVC_RESOLUTION_IDEMPOTENCY_IN_PROGRESS": resolution_in_progress,
    "SVC_RESOLUTION_RECORD_MISMATCH": resolution_mismatch,
    "SVC_RESOLUTION_FINAL": resolved_before,
    "SVC_RESOLUTION_NOT_HELD": not_held,
    "SVC_STORAGE_UNAVAILABLE": storage,
    "SVC_SIGNING_UNAVAILABLE": signing,
    "SVC_CHECKPOINT_UNAVAILABLE": checkpoint_refused,
    "SVC_REPORT_UNAVAILABLE": report_unavailable,
    "SVC_ADVISORY_UPSTREAM_FAILED": advised,
    "SVC_ADVISORY_BUSY": partial(advised, calls=CALLS),
    "SVC_API_PAYLOAD_TOO_LARGE": too_large,
    "SVC_INTERNAL_ERROR": internal,
}


@pytest.fixture
def caller(instance: Instance, scope: Scope, key: str) -> Caller:
    return Caller(instance, scope, key)


def provoke(code: str, caller: Caller) -> TestResponse:
    return PROVOKED[code](caller) if code in PROVOKED else caller.send(REQUESTS[code])


@pytest.mark.parametrize("code", codes())
def test_the_example_of_a_code_is_what_the_service_answers(caller: Caller, limit_clock: LimitClock, code: str) -> None:
    response = provoke(code, caller)
    status, word = codes()[code]
    body = response.get_json()
    assert (response.status_code, body["error"], body["v"]) == (status, code, word)
    body.pop("c", None)
    assert _shape(body) == _shape(CATALOGUE[code]["example"])


@pytest.mark.parametrize("code", [code for code, entry in CATALOGUE.items() if "forbidden" in entry])
def test_the_example_of_a_key_that_may_not_is_what_the_service_answers(
    instance: Instance, scope: Scope, caller: Caller, code: str
) -> None:
    reporter, _ = instance.ledger.directory.create_key(scope, frozenset({"report"}), None, utc_now())
    caller.headers = {"x-api-key": reporter}
    request = {"headers": {}, **{name: value for name, value in REQUESTS[code].items() if name != "headers"}}
    response = caller.send(request)
    body = response.get_json()
    assert (response.status_code, body["error"]) == (403, code)
    body.pop("c", None)
    assert _shape(body) == _shape(CATALOGUE[code]["forbidden"]["example"])


def test_the_example_of_a_missing_token_is_what_the_service_answers(caller: Caller) -> None:
    body = caller.client.get("/metrics").get_json()
    assert _shape(body) == _shape(CATALOGUE["SVC_API_UNAUTHORIZED"]["token"]["example"])


def test_the_example_of_an_address_at_its_limit_is_what_the_service_answers(caller: Caller) -> None:
    for _ in range(caller.instance.settings.sandbox_requests_per_minute):
        assert caller.send({"path": "/api/sandbox/decide", "json": sample_request()}).status_code == 200
    body = caller.send({"path": "/api/sandbox/decide", "json": sample_request()}).get_json()
    assert body.pop("c") == "unclear"
    assert _shape(body) == _shape(CATALOGUE["SVC_API_RATE_LIMITED"]["address"]["example"])


def test_every_code_is_explained_and_no_other() -> None:
    assert CATALOGUE.keys() == codes().keys()


def _shape(value: Any) -> Any:
    """A body without what differs between two calls: ids, hashes, dates, positions and seconds."""
    text = re.sub(r"(req|dec)_[0-9a-f]+|[0-9a-f]{24,64}", "<id>", str(value))
    text = re.sub(r"\d{4}-\d\d-\d\dT[0-9:.]+Z|position \d+", "<place>", text)
    return re.sub(r"'retry_after': \d+|in \d+ seconds?", "<seconds>", text)
