"""Decisions over the facts of a trusted adapter: made, refused, bound, verified, replayed, simulated and erased.

Every adapter runs in workers of its own here, those of this release and those that were made to misbehave.
"""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import permutations
from pathlib import Path
from typing import Any, Final, Protocol

import jsonschema
import pytest
from flask.testing import FlaskClient
from hypothesis import HealthCheck, given, settings
from werkzeug.test import TestResponse

from api.app import create_app
from gate.adapters.manifest import Adapter, manifest_hash
from gate.adapters.registry import registered
from gate.clock import utc_now
from gate.decisions.erasure import erase
from gate.encoding import resources
from gate.instance.audit import check_chain
from gate.instance.instance import Instance, open_instance
from gate.instance.settings import load_settings
from gate.labels import VIEWS
from gate.ledger.access.authority import FULL_ACCESS, Scope
from gate.records.views import project
from gate.verify import verify_record
from tests.independent import adapters as independent
from tests.independent import verifier
from tests.support.adapters import (
    CLAIMS,
    ECHO,
    FAILING,
    LastingWorkers,
    cases_of,
    emitting,
    equip,
    invocation_of,
    make_adapter,
    outcome,
    registered_as,
    rulebook_over,
)
from tests.support.rulebooks import stricter_rulebook
from tests.support.samples import in_threads, rows_of, sample_request, sample_rulebook

SOLANA: Final = registered_as("solana_execution_gate@1.0.0")
REFUND: Final = registered_as("refund_facts@1.0.0")
ECHOING: Final = make_adapter("echo", ECHO)
OTHER: Final = make_adapter("other", ECHO)
APPROVED: Final = {"discount_percent": 10, "margin_percent": 22}

ADAPTER_BINDING: Final = {
    "production_core": "hybrid_declarative_rulebook_with_trusted_adapters",
    "binding_mode": "trusted_adapter_facts_then_declarative_rulebook",
    "verdict_authority": "declarative_rulebook",
    "adapter_authority": "facts_only",
    "customer_supplied_code": "rejected",
}
TRUSTED_ADAPTER_MEMBERS: Final = {
    "manifest_version",
    "adapter_id",
    "version",
    "implementation_revision",
    "implementation_hash",
    "manifest_hash",
    "input_hash",
    "output_hash",
    "execution_isolation",
    "capability_enforcement",
    "execution_timeout_ms",
}


def adapter_request(
    adapter: Adapter, given_: dict[str, Any], rulebook: dict[str, Any] | None = None, **members: Any
) -> dict[str, Any]:
    """A Decision Request over the facts of an adapter, by default by the sample rulebook."""
    request = sample_request()
    del request["context"]["inputs"]
    return {
        **request,
        "rulebook": rulebook or sample_rulebook(),
        "adapter": invocation_of(adapter, given_),
        **members,
    }


def told(name: str) -> dict[str, Any]:
    """A case of the kind facts."""
    found: dict[str, Any] = next(case for case in cases_of("facts") if case["name"] == name)
    return found


SOLANA_REQUEST: Final = adapter_request(
    SOLANA, told("the best evidenced")["input"], rulebook_over("transfers", "decision_score", "integer", 57)
)
REFUND_REQUEST: Final = adapter_request(
    REFUND, told("a whole claim")["input"], rulebook_over("refunds", "share_of_payment_percent", "number", 10)
)
BUILTIN: Final = {
    "solana_execution_gate": (SOLANA, SOLANA_REQUEST, told("the best evidenced")["facts"]),
    "refund_facts": (REFUND, REFUND_REQUEST, told("a whole claim")["facts"]),
}

# One of each code, and one that fails after it has made what would be approved.
ONE_OF_EACH: Final = (
    "it raises",
    "it ends itself",
    "it imports what it may not",
    "it hides that it imports what it may not",
    "it has no end",
    "its facts are no object",
    "a fact that its schema does not know",
    "it emits not a number",
    "it emits names twice",
)
EVERY: Final = (*registered(), ECHOING, OTHER, *(FAILING[name] for name in ONE_OF_EACH))


@pytest.fixture(scope="module")
def workers() -> Iterator[LastingWorkers]:
    """What runs these adapters."""
    workers = LastingWorkers(EVERY)
    yield workers
    workers.end()


@pytest.fixture
def instance(instance: Instance, workers: LastingWorkers) -> Instance:
    """An instance with more adapters than those of the release."""
    return equip(instance, EVERY, workers=workers)


class Caller:
    """Calls the service with one key."""

    def __init__(self, client: FlaskClient, key: str) -> None:
        self.client = client
        self.headers = {"x-api-key": key}

    def send(self, body: Any, **headers: str) -> TestResponse:
        """Sends a Decision Request."""
        sent = self.headers | {name.replace("_", "-"): value for name, value in headers.items()}
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.client.post("/api/decide", data=data, content_type="application/json", headers=sent)

    def decide(self, body: Any, **headers: str) -> dict[str, Any]:
        """The record of a decision."""
        response = self.send(body, **headers)
        assert response.status_code == 200, response.text
        record: dict[str, Any] = response.get_json()
        return record

    def ask(self, record: dict[str, Any], endpoint: str, body: Any = None) -> TestResponse:
        """Asks about a decision."""
        more = {} if body is None else {"data": json.dumps(body).encode(), "content_type": "application/json"}
        return self.client.post(f"{record['decision_url']}/{endpoint}", headers=self.headers, **more)

    def answer(self, record: dict[str, Any], endpoint: str, body: Any = None) -> dict[str, Any]:
        """What is answered, where that is a 200 that follows its schema."""
        response = self.ask(record, endpoint, body)
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.get_json()
        name = "counterfactuals" if endpoint == "counterfactuals" else "replay"
        jsonschema.Draft202012Validator(resources.schema(f"{name}-result")).validate(answer)
        return answer

    def verified(self, record: dict[str, Any], body: Any = None) -> dict[str, Any]:
        """What the service says of a record; of the stored one where there is no body."""
        url = record["verify_url"]
        response = (
            self.client.get(url, headers=self.headers)
            if body is None
            else self.client.post(url, json=body, headers=self.headers)
        )
        assert response.status_code == 200, response.text
        result: dict[str, Any] = response.get_json()
        return result


@pytest.fixture
def caller(client: FlaskClient, key: str) -> Caller:
    return Caller(client, key)


class Release(Protocol):
    """Opens the same ledger as another release, which has other adapters."""

    def __call__(self, adapters: Sequence[Adapter], damaged: Sequence[str] = ()) -> Caller: ...


@pytest.fixture
def release(instance: Instance, key: str) -> Iterator[Release]:
    """What opens the same ledger as another release."""
    opened: list[Instance] = []

    def open_(adapters: Sequence[Adapter], damaged: Sequence[str] = ()) -> Caller:
        opened.append(equip(open_instance(load_settings(instance.settings.home)), adapters, damaged))
        opened[-1].adapters.measures()
        return Caller(create_app(opened[-1]).test_client(), key)

    yield open_
    for other in opened:
        other.close()


def refused(response: TestResponse, status: int, error: str) -> dict[str, Any]:
    body: dict[str, Any] = response.get_json()
    assert (response.status_code, body["error"]) == (status, error), body
    jsonschema.Draft202012Validator(resources.schema("error")).validate(body)
    named = {"verdict", "application_verdict", "decision", "action", "record_hash", "trusted_adapter", "adapter_facts"}
    assert not named & body.keys()
    assert body.get("c", "unclear") == "unclear"
    assert body["message"].endswith(".")
    return body


def chain_size(instance: Instance, scope: Scope) -> int:
    return instance.ledger.entries.head(scope.scope_id).size


def failures(record: dict[str, Any], instance: Instance, request: Any = None, **more: Any) -> list[str]:
    """What an independent verifier finds wrong with a record."""
    return verifier.record_failures(
        record,
        instance.receipt_keys.registry().to_dict(),
        attestation_keys=instance.registry_keys.registry().to_dict(),
        request_body=request,
        **more,
    )


def by_reference(request: dict[str, Any], record: dict[str, Any], *, by_hash: bool = False) -> dict[str, Any]:
    """A request that refers to the rulebook of a record instead of sending one."""
    rulebook = record["rulebook"]
    reference = (
        {"hash": rulebook["hash"]} if by_hash else {"rulebook_id": rulebook["id"], "version": rulebook["version"]}
    )
    return {name: value for name, value in request.items() if name != "rulebook"} | {"rulebook_ref": reference}


@pytest.mark.parametrize("name", BUILTIN)
class TestRecords:
    """A decision over the facts of an adapter of this release."""

    def test_it_says_where_its_facts_came_from(self, caller: Caller, name: str) -> None:
        adapter, request, facts = BUILTIN[name]
        record = caller.decide(request)
        assert (record["verdict"], record["reason_code"], record["matched_rule_id"]) == ("yes", "ENOUGH", "enough")
        assert record["runtime_binding"] == ADAPTER_BINDING
        assert record["adapter_facts"] == facts
        invocation = record["trusted_adapter"]
        assert invocation.keys() == TRUSTED_ADAPTER_MEMBERS
        of_manifest = TRUSTED_ADAPTER_MEMBERS - {"input_hash", "output_hash", "execution_timeout_ms"}
        manifest: Mapping[str, object] = adapter.manifest
        assert {member: invocation[member] for member in of_manifest} == {
            member: manifest[member] for member in of_manifest
        }
        assert invocation["execution_timeout_ms"] == adapter.manifest["limits"]["timeout_ms"]
        assert invocation["input_hash"] == verifier.canonical_hash(request["adapter"]["input"])
        assert invocation["output_hash"] == verifier.canonical_hash(facts)
        bundle = record["rulebook_attestation"]["bundle"]
        assert (bundle["trusted_adapter"], bundle["runtime_binding"]) == (invocation, ADAPTER_BINDING)
        assert bundle["input_hash"] == invocation["output_hash"]
        assert record["rulebook_registry"]["adapter_dependency"] == {
            member: adapter.manifest[member]
            for member in ("adapter_id", "version", "manifest_hash", "implementation_hash")
        }
        sources = record["evidence_manifest"]["sources"]
        assert [source["type"] for source in sources] == ["rulebook", "evaluation", "adapter"]
        assert sources[2] == {
            "id": f"adapter:{name}@1.0.0",
            "type": "adapter",
            "snapshot_hash": adapter.manifest["manifest_hash"],
        }
        assert record["input_hash"] == verifier.canonical_hash(request)

    def test_it_verifies_here_and_elsewhere(self, caller: Caller, instance: Instance, name: str) -> None:
        _, request, _ = BUILTIN[name]
        record = caller.decide(request)
        for body in (None, record, {"record": record}, {"record": record, "input": request}):
            result = caller.verified(record, body)
            assert (result["verified"], "error" in result) == (True, False), result
            assert False not in result["checks"].values()
        assert [result["checks"][check] for check in ("input_hash", "adapter_input_hash", "facts_hash")] == [True] * 3
        offline = caller.client.post("/api/decision/verify", json={"record": record, "input": request}).get_json()
        assert offline["verified"] is True
        assert failures(record, instance, request) == []

    def test_it_follows_the_schema_of_its_view(self, caller: Caller, name: str) -> None:
        _, request, _ = BUILTIN[name]
        record = caller.decide(request, x_idempotency_key="k")
        schema = resources.schema("decision-record-v1")
        for view in VIEWS:
            shown = caller.decide({**request, "response_view": view}, x_idempotency_key="k")
            jsonschema.Draft202012Validator({**schema, "$ref": f"#/$defs/{view}"}).validate(shown)
            assert shown == project(record, view)
            assert shown["record_hash"] == record["record_hash"]

    @pytest.mark.parametrize("by_hash", [True, False])
    def test_it_is_decided_by_a_registered_rulebook_as_by_the_one_that_is_sent(
        self, caller: Caller, instance: Instance, name: str, by_hash: bool
    ) -> None:
        _, request, _ = BUILTIN[name]
        sent = caller.decide(request)
        referring = by_reference(request, sent, by_hash=by_hash)
        referred = caller.decide(referring)
        for member in ("trusted_adapter", "adapter_facts", "rulebook_registry", "rulebook_attestation", "evidence"):
            assert referred[member] == sent[member]
        assert caller.verified(referred, {"record": referred, "input": referring})["verified"] is True
        assert failures(referred, instance, referring, rulebook=request["rulebook"]) == []

    def test_a_used_key_is_replayed_byte_for_byte(
        self, caller: Caller, instance: Instance, scope: Scope, name: str
    ) -> None:
        _, request, _ = BUILTIN[name]
        first = caller.send(request, x_idempotency_key="order-1")
        again = caller.send(request, x_idempotency_key="order-1")
        assert (first.headers["x-idempotency-status"], again.headers["x-idempotency-status"]) == ("created", "replayed")
        assert again.data == first.data
        assert chain_size(instance, scope) == 1
        other = {**request, "question": "?"}
        refused(caller.send(other, x_idempotency_key="order-1"), 409, "SVC_API_IDEMPOTENCY_CONFLICT")

    def test_equal_facts_are_attested_alike_for_ever(self, caller: Caller, name: str) -> None:
        """Members in another order and other spellings of a number are the same input."""
        adapter, request, _ = BUILTIN[name]
        first = caller.decide(request)
        respelled = json.loads(json.dumps(request["adapter"]["input"]), parse_int=float)
        second = caller.decide({**request, "adapter": dict(reversed(invocation_of(adapter, respelled).items()))})
        assert second["decision_id"] != first["decision_id"]
        for member in ("input_hash", "trusted_adapter", "rulebook_attestation", "adapter_facts", "output_hash"):
            assert second[member] == first[member]

    def test_binding_mode_may_be_named(self, caller: Caller, name: str) -> None:
        _, request, _ = BUILTIN[name]
        named = {**request, "binding_mode": ADAPTER_BINDING["binding_mode"]}
        assert caller.decide(named)["runtime_binding"] == ADAPTER_BINDING
        direct = {**request, "binding_mode": "direct_declarative_rulebook"}
        refused(caller.send(direct), 422, "RULEBOOK_BINDING_MODE_CONFLICT")


def test_the_rulebook_selects_the_verdict_and_the_facts_only_inform_it(caller: Caller) -> None:
    facts = told("the threshold itself")
    request = {**SOLANA_REQUEST, "adapter": invocation_of(SOLANA, facts["input"])}
    assert caller.decide(request)["verdict"] == "yes"
    stricter = {**SOLANA_REQUEST["rulebook"], "version": "2"}
    stricter["rules"] = [
        {**stricter["rules"][0], "condition": {"field": "decision_score", "operator": "gt", "value": 57}}
    ]
    record = caller.decide({**request, "rulebook": stricter})
    assert (record["verdict"], record["reason_code"], record["adapter_facts"]) == ("no", "TOO_LITTLE", facts["facts"])


@pytest.mark.parametrize("context", [None, {}, {"target_system": "wallet"}])
def test_a_context_is_optional(caller: Caller, instance: Instance, context: Any) -> None:
    request = {name: value for name, value in SOLANA_REQUEST.items() if name != "context"}
    request |= {} if context is None else {"context": context}
    record = caller.decide(request)
    assert record["action_binding"]["system"] == (context or {}).get("target_system", "")
    assert failures(record, instance, request) == []


class TestNumbers:
    """What goes through an adapter is what came, to the last digit of every hash."""

    @pytest.mark.parametrize(
        "number",
        [
            "0.5",
            "22.5",
            "1e-7",
            "9007199254740991",
            "-9007199254740991",
            "1",
            "1.0",
            "-0.0",
            "1e21",
            "1E2",
            "0.1",
            "5e-324",
            "100000000000000000000",
            "9007199254740992",
            "1.7976931348623157e308",
            "0.30000000000000004",
        ],
    )
    def test_a_number_is_hashed_as_an_independent_implementation_hashes_it(
        self, caller: Caller, instance: Instance, number: str
    ) -> None:
        text = json.dumps(
            adapter_request(ECHOING, {"margin_percent": 22, "discount_percent": "@", "deep": [{"x": "@"}]})
        )
        text = text.replace('"@"', number)
        record = caller.decide(text.encode())
        request = json.loads(text)
        sent = request["adapter"]["input"]
        assert verifier.canonical(record["adapter_facts"]) == verifier.canonical(sent)
        invocation = record["trusted_adapter"]
        assert invocation["input_hash"] == invocation["output_hash"] == verifier.canonical_hash(sent)
        assert record["rulebook_attestation"]["bundle"]["input_hash"] == verifier.canonical_hash(sent)
        assert record["verdict"] == ("yes" if json.loads(number) <= 15 else "review")
        assert failures(record, instance, request) == []
        assert caller.verified(record, {"record": record, "input": request})["verified"] is True
        assert caller.answer(record, "replay")["replay_status"] == "matched"

    @pytest.mark.parametrize("number", ["9007199254740993", "1e400", "-1e400", "NaN", "Infinity"])
    def test_a_number_that_no_double_holds_is_no_input(self, caller: Caller, number: str) -> None:
        text = json.dumps(adapter_request(ECHOING, {"x": "@"})).replace('"@"', number)
        refused(caller.send(text.encode()), 400, "SVC_API_JSON_INVALID")

    @settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(CLAIMS)
    def test_whatever_is_claimed_is_decided_verified_and_replayed(
        self, caller: Caller, instance: Instance, claim: dict[str, Any]
    ) -> None:
        request = {**REFUND_REQUEST, "adapter": invocation_of(REFUND, claim)}
        response = caller.send(request)
        if REFUND.input_shape.errors(claim):
            refused(response, 422, "TRUSTED_ADAPTER_INPUT_INVALID")
            return
        record = response.get_json()
        assert response.status_code == 200, record
        made = independent.refund_facts(json.loads(verifier.canonical(claim)))
        assert verifier.canonical(record["adapter_facts"]) == verifier.canonical(made)
        assert failures(record, instance, request) == []
        assert caller.verified(record, {"record": record, "input": request})["verified"] is True
        assert caller.answer(record, "replay")["drift"] == []


class TestRefused:
    """What is wrong with an invocation, told before anything runs."""

    @pytest.mark.parametrize("case", cases_of("refused"), ids=lambda case: case["name"])
    def test_the_first_thing_that_is_wrong_is_told_and_nothing_is_recorded(
        self, caller: Caller, instance: Instance, scope: Scope, case: dict[str, Any]
    ) -> None:
        request = {**SOLANA_REQUEST, "adapter": case["adapter"]}
        body = refused(caller.send(request, x_idempotency_key="k"), 422, case["error"])
        assert [[error["field"], error["code"]] for error in body.get("errors", [])] == case["fields"]
        assert chain_size(instance, scope) == 0
        registry = instance.ledger.rulebooks
        assert registry.find_version(scope.scope_id, "transfers", "1") is None
        assert caller.send(SOLANA_REQUEST, x_idempotency_key="k").headers["x-idempotency-status"] == "created"

    @pytest.mark.parametrize("sent", [None, [], "solana_execution_gate@1.0.0", 1, True])
    def test_an_adapter_that_is_no_object_is_no_request(self, caller: Caller, sent: Any) -> None:
        body = refused(caller.send({**SOLANA_REQUEST, "adapter": sent}), 422, "SVC_API_REQUEST_INVALID")
        assert [error["field"] for error in body["errors"]] == ["adapter"]

    def test_what_is_wrong_is_told_in_a_fixed_order(self, caller: Caller) -> None:
        """Each mended in turn: the next thing that is wrong is told."""
        caller.decide(
            {**SOLANA_REQUEST, "rulebook": SOLANA_REQUEST["rulebook"] | {"default_outcome": outcome("no", "X1", "X1")}}
        )
        request: dict[str, Any] = {
            **copy.deepcopy(SOLANA_REQUEST),
            "surplus": 1,
            "binding_mode": "customer_executable_rulebook",
            "verdict": "yes",
            "rulebook_ref": {"rulebook_id": "transfers", "version": "1"},
        }
        good = request["adapter"]
        request["context"]["inputs"] = {}
        request["rulebook"]["rules"] = []
        request["adapter"] = {**good, "adapter_id": "unknown", "manifest_hash": "0" * 64, "input": {}, "code": ""}

        def told_of() -> str:
            response = caller.send(request)
            assert response.status_code == (409 if response.get_json()["error"].endswith("VERSION_CONFLICT") else 422)
            error: str = response.get_json()["error"]
            return error

        steps: list[tuple[str, Callable[[], Any]]] = [
            ("RULEBOOK_BINDING_MODE_UNSUPPORTED", lambda: request.pop("binding_mode")),
            ("RULEBOOK_OUTPUT_MATERIAL_FORBIDDEN", lambda: request.pop("verdict")),
            ("SVC_API_REQUEST_INVALID", lambda: request.pop("surplus")),
            ("RULEBOOK_BINDING_MODE_CONFLICT", lambda: request.pop("rulebook_ref")),
            ("TRUSTED_ADAPTER_INPUT_CONFLICT", lambda: request["context"].pop("inputs")),
            ("RULEBOOK_INVALID", lambda: request.update(rulebook=copy.deepcopy(SOLANA_REQUEST["rulebook"]))),
            ("TRUSTED_ADAPTER_INVALID", lambda: request["adapter"].pop("code")),
            ("TRUSTED_ADAPTER_NOT_REGISTERED", lambda: request["adapter"].update(adapter_id=SOLANA.adapter_id)),
            (
                "TRUSTED_ADAPTER_MANIFEST_MISMATCH",
                lambda: request["adapter"].update(manifest_hash=SOLANA.manifest_hash),
            ),
            ("TRUSTED_ADAPTER_INPUT_INVALID", lambda: request["adapter"].update(input=good["input"])),
            ("RULEBOOK_VERSION_CONFLICT", lambda: request["rulebook"].update(version="2")),
        ]
        for code, mend in steps:
            assert told_of() == code
            mend()
        assert caller.send(request).status_code == 200

    def test_an_unknown_reference_is_told_before_an_adapter(self, caller: Caller) -> None:
        request = {name: value for name, value in SOLANA_REQUEST.items() if name != "rulebook"}
        request |= {"rulebook_ref": {"rulebook_id": "transfers", "version": "1"}, "adapter": {}}
        refused(caller.send(request), 422, "RULEBOOK_REF_UNKNOWN")

    def test_a_used_key_replays_before_an_adapter_is_looked_at(self, caller: Caller) -> None:
        first = caller.send(SOLANA_REQUEST, x_idempotency_key="k")
        for adapter in ({}, invocation_of(SOLANA, {})):
            other = {**SOLANA_REQUEST, "adapter": adapter}
            refused(caller.send(other, x_idempotency_key="k"), 409, "SVC_API_IDEMPOTENCY_CONFLICT")
        assert caller.send(SOLANA_REQUEST, x_idempotency_key="k").data == first.data

    def test_output_material_is_refused_in_an_adapters_input(self, caller: Caller) -> None:
        request = adapter_request(ECHOING, {"deep": [{"adapter_facts": {}}]})
        body = refused(caller.send(request), 422, "RULEBOOK_OUTPUT_MATERIAL_FORBIDDEN")
        assert body["forbidden_fields"] == ["adapter.input.deep[0].adapter_facts"]


class TestFailed:
    """An adapter that makes no facts."""

    @pytest.mark.parametrize("name", ONE_OF_EACH)
    def test_nothing_is_recorded_no_key_is_claimed_and_the_next_request_is_answered(
        self, caller: Caller, instance: Instance, scope: Scope, name: str
    ) -> None:
        error = next(case["error"] for case in cases_of("failing") if case["name"] == name)
        failing = FAILING[name]
        request = adapter_request(failing, APPROVED)
        body = refused(caller.send(request, x_idempotency_key="k"), 502, error)
        assert body["v"] == "adapter_failed"
        assert failing.name in body["message"]
        assert chain_size(instance, scope) == 0
        # The same key, as if it had never been used.
        good = {
            **request,
            "rulebook": {**request["rulebook"], "version": "2"},
            "adapter": invocation_of(ECHOING, APPROVED),
        }
        response = caller.send(good, x_idempotency_key="k")
        assert (response.status_code, response.headers["x-idempotency-status"]) == (200, "created")
        assert chain_size(instance, scope) == 1
        assert check_chain(instance, scope.scope_id) == (1, None)

    def test_every_code_is_among_them(self) -> None:
        codes = {case["error"] for case in cases_of("failing") if case["name"] in ONE_OF_EACH}
        assert codes == {
            f"TRUSTED_ADAPTER_{code}"
            for code in ("OUTPUT_INVALID", "EXECUTION_FAILED", "CAPABILITY_DENIED", "EXECUTION_TIMEOUT")
        }

    def test_no_facts_of_the_callers_stand_in(self, caller: Caller) -> None:
        """There is no fall-back: what a caller claims counts for nothing where the adapter fails."""
        request = adapter_request(FAILING["it raises"], APPROVED)
        request["context"]["facts"] = APPROVED
        refused(caller.send(request), 502, "TRUSTED_ADAPTER_EXECUTION_FAILED")
        request["context"]["inputs"] = APPROVED
        refused(caller.send(request), 422, "TRUSTED_ADAPTER_INPUT_CONFLICT")

    def test_a_used_key_still_replays(self, caller: Caller, release: Release, instance: Instance, scope: Scope) -> None:
        """What was decided stands, whatever has become of the adapter."""
        request = adapter_request(ECHOING, APPROVED)
        first = caller.send(request, x_idempotency_key="k")
        assert first.status_code == 200
        now_failing = Adapter(ECHOING.manifest, FAILING["it raises"].source)
        for adapters in ([now_failing], []):
            later = release(adapters)
            again = later.send(request, x_idempotency_key="k")
            assert (again.headers["x-idempotency-status"], again.data) == ("replayed", first.data)
        refused(later.send(request, x_idempotency_key="other"), 422, "TRUSTED_ADAPTER_NOT_REGISTERED")
        assert chain_size(instance, scope) == 1

    def test_what_a_caller_sent_is_in_no_error(self, caller: Caller) -> None:
        for name in ONE_OF_EACH:
            response = caller.send(adapter_request(FAILING[name], {"person": "Ada Lovelace"}))
            assert "Lovelace" not in response.text

    def test_callers_who_fail_do_not_stop_those_who_do_not(self, client: FlaskClient, key: str) -> None:
        requests = [adapter_request(FAILING["it raises"], {}), SOLANA_REQUEST] * 4

        def send(number: int) -> int:
            return Caller(client.application.test_client(), key).send(requests[number]).status_code

        assert in_threads(len(requests), send) == [502, 200] * 4


class TestUnavailable:
    """Where adapters cannot run, everything else does."""

    @pytest.fixture
    def instance(self, instance: Instance) -> Instance:
        """One with workers of its own, which are not started yet."""
        return equip(instance, EVERY)

    def test_a_start_that_hangs_holds_up_no_probe_and_no_direct_decision(
        self, caller: Caller, instance: Instance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        program = tmp_path / "python"
        program.write_text("#!/bin/sh\nexec sleep 1000\n")
        program.chmod(0o700)
        monkeypatch.setattr(sys, "executable", str(program))
        monkeypatch.setattr("gate.adapters.worker.WAIT_SECONDS", 1.0)
        with ThreadPoolExecutor(1) as pool:
            held = pool.submit(caller.send, SOLANA_REQUEST)
            assert caller.client.get("/livez").status_code == 200
            status = caller.client.get("/api/decision/status").get_json()
            assert caller.decide(sample_request())["verdict"] == "yes"
            refused(held.result(), 502, "TRUSTED_ADAPTER_EXECUTION_FAILED")
        assert (status["ok"], status["trusted_adapters"]["ready"]) == (True, False)
        assert status["trusted_adapters"]["reason"] == "No adapter can run: the process that forks them is starting."
        instance.adapters.close()

    def test_a_damaged_adapter_is_told_and_the_others_run(self, caller: Caller, release: Release) -> None:
        caller.decide(REFUND_REQUEST)
        decided = caller.decide(SOLANA_REQUEST)
        other = release([adapter for adapter in EVERY if adapter is not SOLANA], damaged=[SOLANA.name])
        body = refused(other.send(SOLANA_REQUEST), 502, "TRUSTED_ADAPTER_EXECUTION_FAILED")
        assert "Install the release again" in body["message"]
        refused(other.ask(decided, "replay", {}), 502, "TRUSTED_ADAPTER_EXECUTION_FAILED")
        assert other.decide(REFUND_REQUEST)["verdict"] == "yes"
        assert other.decide(sample_request())["verdict"] == "yes"
        assert other.verified(decided)["verified"] is True
        status = other.client.get("/api/decision/status").get_json()
        assert (status["ok"], status["trusted_adapters"]["ready"]) == (True, False)
        assert SOLANA.name in status["trusted_adapters"]["reason"]
        assert SOLANA.name not in status["trusted_adapters"]["registered"]


class TestNeedsInput:
    """Facts that lack what the rulebook requires."""

    @pytest.mark.parametrize(
        ("adapter", "sent", "rulebook", "missing", "invalid"),
        [
            (
                REFUND,
                told("nothing is said of nothing")["input"],
                REFUND_REQUEST["rulebook"],
                ["share_of_payment_percent"],
                [],
            ),
            (ECHOING, {"discount_percent": 10}, sample_rulebook(), ["margin_percent"], []),
            (
                ECHOING,
                {"discount_percent": "10", "margin_percent": None},
                sample_rulebook(),
                [],
                ["discount_percent", "margin_percent"],
            ),
            (ECHOING, {}, sample_rulebook(), ["discount_percent", "margin_percent"], []),
        ],
        ids=["refund_facts", "one missing", "mistyped", "none at all"],
    )
    def test_they_are_held_for_review(
        self,
        caller: Caller,
        instance: Instance,
        adapter: Adapter,
        sent: dict[str, Any],
        rulebook: dict[str, Any],
        missing: list[str],
        invalid: list[str],
    ) -> None:
        request = adapter_request(adapter, sent, rulebook)
        record = caller.decide(request)
        assert (record["verdict"], record["application_verdict"]) == ("review", "NEEDS_INPUT")
        assert (record["reason_code"], record["action"]) == ("INPUT_SCHEMA_FAILED", "collect_required_input")
        assert record["evaluation"]["missing_fields"] == missing
        assert [told_["field"] for told_ in record["evaluation"]["invalid_fields"]] == invalid
        assert failures(record, instance, request) == []
        assert caller.verified(record, {"record": record, "input": request})["verified"] is True
        assert caller.answer(record, "replay")["replay_status"] == "matched"


def dependency_of(adapter: Adapter) -> dict[str, Any]:
    return {name: adapter.manifest[name] for name in ("adapter_id", "version", "manifest_hash", "implementation_hash")}


SOURCES: Final[dict[str, tuple[dict[str, Any], dict[str, Any] | None]]] = {
    "context.inputs": (sample_request(), None),
    "echo": (adapter_request(ECHOING, APPROVED), dependency_of(ECHOING)),
    "other": (adapter_request(OTHER, APPROVED), dependency_of(OTHER)),
}


class TestBinding:
    """A rulebook that was registered with an adapter never decides over anything else, nor the other way round."""

    @pytest.mark.parametrize("by_ref", [True, False])
    @pytest.mark.parametrize(("first", "second"), list(permutations(SOURCES, 2)))
    def test_another_source_of_facts_conflicts(
        self, caller: Caller, instance: Instance, scope: Scope, first: str, second: str, by_ref: bool
    ) -> None:
        (request, bound), (other, sent) = SOURCES[first], SOURCES[second]
        record = caller.decide(request)
        if by_ref:
            request, other = by_reference(request, record), by_reference(other, record)
        body = refused(caller.send(other, x_idempotency_key="k"), 409, "RULEBOOK_VERSION_CONFLICT")
        assert (body["adapter_dependency"], body["registered_adapter_dependency"]) == (sent, bound)
        assert body["v"] == "rulebook_version_conflict"
        assert chain_size(instance, scope) == 1
        assert caller.decide(request, x_idempotency_key="k")["rulebook_registry"] == record["rulebook_registry"]

    def test_an_adapter_that_made_no_facts_binds_nothing(self, caller: Caller, instance: Instance) -> None:
        failing = FAILING["it raises"]
        refused(caller.send(adapter_request(failing, {})), 502, "TRUSTED_ADAPTER_EXECUTION_FAILED")
        assert rows_of(instance.ledger.store)["rulebooks"] == []
        assert caller.decide(adapter_request(ECHOING, APPROVED))["verdict"] == "yes"

    def test_another_body_of_a_version_conflicts_before_its_adapter_runs(self, caller: Caller) -> None:
        caller.decide(sample_request())
        changed = {**sample_rulebook(), "rules": sample_rulebook()["rules"][:1]}
        sent = adapter_request(FAILING["it raises"], {}, changed)
        body = refused(caller.send(sent), 409, "RULEBOOK_VERSION_CONFLICT")
        assert body["hash"] != body["registered_hash"]

    def test_a_version_of_its_own_may_have_another_source(self, caller: Caller) -> None:
        caller.decide(sample_request())
        own = {**sample_rulebook(), "version": "with an adapter"}
        record = caller.decide(adapter_request(ECHOING, APPROVED, own))
        assert record["rulebook_registry"]["adapter_dependency"] == dependency_of(ECHOING)

    def test_another_version_of_the_adapter_is_another_adapter(self, caller: Caller, release: Release) -> None:
        caller.decide(adapter_request(ECHOING, APPROVED))
        newer = make_adapter("echo", ECHO + "\n", version="1.1.0")
        later = release([ECHOING, newer])
        body = refused(later.send(adapter_request(newer, APPROVED)), 409, "RULEBOOK_VERSION_CONFLICT")
        assert body["adapter_dependency"] == dependency_of(newer)
        assert later.decide(adapter_request(ECHOING, APPROVED))["verdict"] == "yes"

    def test_a_restart_forgets_nothing(self, caller: Caller, release: Release) -> None:
        caller.decide(adapter_request(ECHOING, APPROVED))
        refused(release(EVERY).send(sample_request()), 409, "RULEBOOK_VERSION_CONFLICT")

    def test_scopes_bind_for_themselves(self, caller: Caller, client: FlaskClient, instance: Instance) -> None:
        caller.decide(adapter_request(ECHOING, APPROVED))
        scope = instance.ledger.directory.create_scope("another", "unlimited", utc_now())
        other = Caller(client, instance.ledger.directory.create_key(scope, FULL_ACCESS, None, utc_now())[0])
        assert "adapter_dependency" not in other.decide(sample_request())["rulebook_registry"]

    def test_of_two_at_once_one_binds_and_all_agree_from_then_on(
        self, client: FlaskClient, key: str, release: Release, instance: Instance, scope: Scope
    ) -> None:
        """Two processes' worth: each application has its own memory of what is registered."""
        applications = [client.application, release(EVERY).client.application]
        for number in range(5):
            rulebook = {**sample_rulebook(), "version": f"raced {number}"}
            requests = [{**request, "rulebook": rulebook} for request, _ in SOURCES.values()]

            def send(index: int, requests: list[dict[str, Any]] = requests) -> int:
                caller = Caller(applications[index % 2].test_client(), key)
                return caller.send(requests[index % len(requests)]).status_code

            statuses = in_threads(6, send)
            (bound,) = [index for index in range(3) if statuses[index] == 200]
            assert statuses == [200 if index % 3 == bound else 409 for index in range(6)]
            registered_ = instance.ledger.rulebooks.find_version(scope.scope_id, "pricing_exception", f"raced {number}")
            assert registered_ is not None
            assert registered_.metadata.get("adapter_dependency") == list(SOURCES.values())[bound][1]
            assert [send(index) for index in range(6)] == statuses

    def test_the_registry_tells_what_a_rulebook_is_bound_to(self, caller: Caller) -> None:
        record = caller.decide(SOLANA_REQUEST)
        asked = {"hash": record["rulebook"]["hash"]}
        response = caller.client.get("/api/decision/rulebooks", query_string=asked, headers=caller.headers)
        metadata = response.get_json()
        jsonschema.Draft202012Validator(resources.schema("rulebook-metadata")).validate(metadata)
        assert metadata["rulebook"] == record["rulebook_registry"]
        assert metadata["rulebook"]["adapter_dependency"] == dependency_of(SOLANA)


def changed_manifest(adapter: Adapter, **members: Any) -> Adapter:
    """An adapter of that id and version whose manifest says something else, and hashes to what it says."""
    manifest: Any = {**adapter.manifest, **members}
    return Adapter(manifest | {"manifest_hash": manifest_hash(manifest)}, adapter.source)


class TestReplay:
    """A decision made again by the adapter that it was made with."""

    @pytest.mark.parametrize("name", BUILTIN)
    def test_it_matches_after_whatever_came_since(self, caller: Caller, instance: Instance, name: str) -> None:
        _, request, _ = BUILTIN[name]
        record = caller.decide(request, x_idempotency_key="k")
        before = caller.answer(record, "replay")
        assert (before["replay_status"], before["drift"]) == ("matched", [])
        assert before["replay_contract"] == "historical_rulebook_replay_v1"
        for member in ("trusted_adapter", "adapter_facts", "runtime_binding", "rulebook_attestation", "record_hash"):
            assert before["decision"][member] == record[member]
        caller.decide({**request, "rulebook": {**request["rulebook"], "version": "2"}})
        instance.registry_keys.rotate(utc_now())
        assert caller.answer(record, "replay") == before
        assert caller.answer(caller.decide(by_reference(request, record)), "replay")["replay_status"] == "matched"

    def test_nothing_is_written(self, caller: Caller, instance: Instance) -> None:
        record = caller.decide(SOLANA_REQUEST)
        caller.ask(record, "replay")
        before = rows_of(instance.ledger.store)
        scenario = {"scenario_id": "s", "label": "S", "context_patch": {}, "adapter_input_patch": {"sol_amount": 9}}
        for endpoint, body in (("replay", None), ("diff", None), ("counterfactuals", {"scenarios": [scenario]})):
            caller.answer(record, endpoint, body)
        assert rows_of(instance.ledger.store) == before

    def test_the_adapter_runs_again(self, caller: Caller, release: Release) -> None:
        """Nothing is taken from the record: an adapter that fails now replays nothing."""
        record = caller.decide(adapter_request(ECHOING, APPROVED))
        later = release([Adapter(ECHOING.manifest, FAILING["it raises"].source)])
        refused(later.ask(record, "replay"), 502, "TRUSTED_ADAPTER_EXECUTION_FAILED")

    def test_an_adapter_that_is_gone_is_not_guessed(self, caller: Caller, release: Release) -> None:
        record = caller.decide(adapter_request(ECHOING, APPROVED))
        for adapters in ([], [OTHER], [make_adapter("echo", ECHO, version="1.0.1")]):
            later = release(adapters)
            for endpoint in ("replay", "diff"):
                body = refused(later.ask(record, endpoint), 409, "REPLAY_LINEAGE_MISMATCH")
                assert "adapter" in body["message"]
        assert caller.answer(record, "replay")["replay_status"] == "matched"

    @pytest.mark.parametrize(
        "members",
        [
            {"implementation_hash": "0" * 64},
            {"description": "Does the same."},
            {"implementation_revision": "2"},
            {"input_schema": {}},
        ],
        ids=["implementation", "description", "revision", "schema"],
    )
    def test_an_adapter_that_is_not_as_it_was_is_not_taken_for_it(
        self, caller: Caller, release: Release, members: dict[str, Any]
    ) -> None:
        record = caller.decide(adapter_request(ECHOING, APPROVED))
        later = release([changed_manifest(ECHOING, **members)])
        refused(later.ask(record, "replay"), 409, "REPLAY_LINEAGE_MISMATCH")
        refused(later.ask(record, "diff"), 409, "REPLAY_LINEAGE_MISMATCH")

    def test_other_hashes_under_the_old_manifest_hash_are_noticed(self, caller: Caller, release: Release) -> None:
        record = caller.decide(adapter_request(ECHOING, APPROVED))
        for members in ({"implementation_hash": "0" * 64}, {"implementation_revision": "2"}):
            manifest: Any = {**ECHOING.manifest, **members}
            later = release([Adapter(manifest, ECHOING.source)])
            refused(later.ask(record, "replay"), 409, "REPLAY_LINEAGE_MISMATCH")

    def test_an_adapter_that_makes_other_facts_now_replays_nothing(self, caller: Caller, release: Release) -> None:
        """Even facts that come to the same verdict."""
        record = caller.decide(adapter_request(ECHOING, APPROVED))
        for facts in ({"discount_percent": 11, "margin_percent": 22}, {**APPROVED, "more": ""}, {}):
            later = release([Adapter(ECHOING.manifest, emitting("echo", repr(facts)).source)])
            body = refused(later.ask(record, "replay"), 409, "REPLAY_LINEAGE_MISMATCH")
            assert "the facts that the adapter computes now" in body["message"]
        same = dict(reversed({"discount_percent": 10.0, "margin_percent": 22.0}.items()))
        later = release([Adapter(ECHOING.manifest, emitting("echo", repr(same)).source)])
        assert later.answer(record, "replay")["replay_status"] == "matched"

    def test_an_input_that_the_adapter_no_longer_takes_replays_nothing(self, caller: Caller, release: Release) -> None:
        record = caller.decide(adapter_request(ECHOING, APPROVED))
        manifest: Any = {**ECHOING.manifest, "input_schema": {"type": "object", "maxProperties": 1}}
        narrower = Adapter(manifest, ECHOING.source)
        refused(release([narrower]).ask(record, "replay"), 409, "REPLAY_LINEAGE_MISMATCH")

    def test_a_newer_version_of_the_rulebook_is_what_a_diff_asks(self, caller: Caller) -> None:
        record = caller.decide(adapter_request(ECHOING, APPROVED))
        assert caller.answer(record, "diff")["replay_status"] == "matched"
        caller.decide(adapter_request(ECHOING, APPROVED, stricter_rulebook()))
        for endpoint, body in (("diff", None), ("replay", {"replay_mode": "current"})):
            answer = caller.answer(record, endpoint, body)
            told_ = {entry["field"]: (entry["stored"], entry["replayed"]) for entry in answer["drift"]}
            assert told_["verdict"] == ("yes", "no")
            assert answer["decision"]["adapter_facts"] == APPROVED
        assert caller.answer(record, "replay")["replay_status"] == "matched"

    def test_a_rulebook_that_moved_to_a_newer_version_of_the_adapter_is_asked_with_that(
        self, caller: Caller, release: Release
    ) -> None:
        record = caller.decide(adapter_request(ECHOING, APPROVED))
        newer = emitting("echo", "{**given, 'margin_percent': given['margin_percent'] + 1}", version="2.0.0")
        later = release([ECHOING, newer])
        later.decide(adapter_request(newer, APPROVED, {**sample_rulebook(), "version": "2026-09-01"}))
        answer = later.answer(record, "diff")
        assert answer["replay_status"] == "drifted"
        assert answer["decision"]["trusted_adapter"]["version"] == "2.0.0"
        assert answer["decision"]["adapter_facts"]["margin_percent"] == 23
        assert later.answer(record, "replay")["replay_status"] == "matched"

    @pytest.mark.parametrize("first", ["echo", "context.inputs"])
    def test_a_rulebook_that_takes_its_facts_from_elsewhere_by_now_needs_an_input(
        self, caller: Caller, first: str
    ) -> None:
        record = caller.decide(SOURCES[first][0])
        moved = next(request for name, (request, _) in SOURCES.items() if name not in (first, "echo"))
        caller.decide({**moved, "rulebook": stricter_rulebook()})
        body = refused(caller.ask(record, "diff"), 409, "REPLAY_LINEAGE_MISMATCH")
        assert "send your own input" in body["message"]
        answer = caller.answer(record, "diff", {"input": {**moved, "rulebook": stricter_rulebook()}})
        assert answer["decision"]["verdict"] == "no"
        assert caller.answer(record, "replay")["replay_status"] == "matched"

    def test_an_input_with_an_adapter_is_decided_as_it_would_be(self, caller: Caller) -> None:
        record = caller.decide(SOLANA_REQUEST)
        low = {**SOLANA_REQUEST, "adapter": invocation_of(SOLANA, told("below nothing")["input"])}
        decided = caller.decide(low)
        answer = caller.answer(record, "diff", {"input": low})
        assert answer["replay_status"] == "drifted"
        for member in ("verdict", "trusted_adapter", "adapter_facts", "runtime_binding", "input_hash", "output_hash"):
            assert answer["decision"][member] == decided[member]
        assert caller.answer(record, "diff", {"input": SOLANA_REQUEST})["replay_status"] == "matched"

    def test_an_unregistered_rulebook_is_tried_with_an_adapter(
        self, caller: Caller, instance: Instance, scope: Scope
    ) -> None:
        record = caller.decide(sample_request())
        request = adapter_request(ECHOING, APPROVED, stricter_rulebook())
        decision = caller.answer(record, "diff", {"input": request})["decision"]
        registration = decision["rulebook_registry"]
        assert registration["adapter_dependency"] == dependency_of(ECHOING)
        assert registration["registry_attestation"]["status"] == "unsigned"
        assert instance.ledger.rulebooks.find(scope.scope_id, registration["hash"]) is None

    @pytest.mark.parametrize("case", cases_of("refused"), ids=lambda case: case["name"])
    def test_an_input_is_refused_where_a_decision_would_be_and_its_place_is_named(
        self, caller: Caller, case: dict[str, Any]
    ) -> None:
        record = caller.decide(sample_request())
        sent = {"input": {**SOLANA_REQUEST, "adapter": case["adapter"]}}
        body = refused(caller.ask(record, "diff", sent), 422, case["error"])
        found = [[error["field"], error["code"]] for error in body.get("errors", [])]
        assert found == [[f"input.{field}", code] for field, code in case["fields"]]

    def test_an_input_whose_adapter_fails_or_whose_rulebook_is_bound_otherwise_is_told(self, caller: Caller) -> None:
        record = caller.decide(sample_request())
        other = adapter_request(ECHOING, APPROVED)
        body = refused(caller.ask(record, "diff", {"input": other}), 409, "RULEBOOK_VERSION_CONFLICT")
        assert body["adapter_dependency"] == dependency_of(ECHOING)
        failing = adapter_request(FAILING["it raises"], APPROVED, stricter_rulebook())
        refused(caller.ask(record, "diff", {"input": failing}), 502, "TRUSTED_ADAPTER_EXECUTION_FAILED")

    def test_a_historical_replay_takes_no_input(self, caller: Caller) -> None:
        record = caller.decide(SOLANA_REQUEST)
        refused(caller.ask(record, "replay", {"input": SOLANA_REQUEST}), 422, "REPLAY_INPUT_OVERRIDE_FORBIDDEN")


class TestCounterfactuals:
    """What if the adapter had been given something else?"""

    @staticmethod
    def scenario(name: str = "s", **members: Any) -> dict[str, Any]:
        return {"scenario_id": name, "label": "What if?", "context_patch": {}, **members}

    def test_a_patched_input_goes_through_the_adapter(self, caller: Caller) -> None:
        record = caller.decide(SOLANA_REQUEST)
        worst = {name: value for name, value in told("below nothing")["input"].items() if name != "sol_amount"}
        body = {
            "scenarios": [
                self.scenario("same"),
                self.scenario("empty", adapter_input_patch={}),
                self.scenario("worst", adapter_input_patch=worst),
                self.scenario("small", adapter_input_patch={"sol_amount": 1}),
            ]
        }
        answer = caller.answer(record, "counterfactuals", body)
        assert [(told_["scenario_id"], told_["verdict"]) for told_ in answer["scenarios"]] == [
            ("same", "yes"),
            ("empty", "yes"),
            ("worst", "no"),
            ("small", "yes"),
        ]
        assert [told_["facts_changed"] for told_ in answer["scenarios"]] == [False, False, True, True]
        assert answer["scenarios"][2]["recommendation"] == "would_block"
        made = independent.solana_execution_gate({**SOLANA_REQUEST["adapter"]["input"], **worst})
        tests = answer["scenarios"][2]["evaluation"]["rules"][0]["tests"]
        assert [test["observed"] for test in tests] == [made["decision_score"]]
        assert (answer["simulation_only"], answer["authorizes_mutation"]) == (True, False)

    def test_a_member_is_removed_by_null(self, caller: Caller) -> None:
        record = caller.decide(REFUND_REQUEST)
        patch = {"payment": {"captured_minor": None}}
        answer = caller.answer(record, "counterfactuals", {"scenarios": [self.scenario(adapter_input_patch=patch)]})
        assert answer["scenarios"][0]["application_verdict"] == "NEEDS_INPUT"

    def test_the_latest_version_of_the_rulebook_is_asked(self, caller: Caller) -> None:
        record = caller.decide(adapter_request(ECHOING, APPROVED))
        caller.decide(adapter_request(ECHOING, APPROVED, stricter_rulebook()))
        answer = caller.answer(record, "counterfactuals", {"scenarios": [self.scenario()]})
        assert (answer["rulebook"]["version"], answer["scenarios"][0]["verdict"]) == ("2026-09-01", "no")

    @pytest.mark.parametrize(
        ("request_body", "members", "field"),
        [
            (SOLANA_REQUEST, {"context_patch": {"inputs": {"decision_score": 99}}}, "context_patch.inputs"),
            (SOLANA_REQUEST, {"context_patch": {"inputs": {}}}, "context_patch.inputs"),
            (sample_request(), {"adapter_input_patch": {"sol_amount": 1}}, "adapter_input_patch"),
            (sample_request(), {"adapter_input_patch": {}}, "adapter_input_patch"),
            (
                adapter_request(ECHOING, APPROVED),
                {"adapter_input_patch": {"deep": {"application_verdict": "APPROVE"}}},
                "adapter_input_patch.deep.application_verdict",
            ),
            (SOLANA_REQUEST, {"context_patch": {"action": "pay"}}, "context_patch.action"),
            (SOLANA_REQUEST, {"adapter_input_patch": []}, "adapter_input_patch"),
            (SOLANA_REQUEST, {"adapter_input_patch": None}, "adapter_input_patch"),
        ],
        ids=[
            "facts beside an adapter",
            "empty facts beside an adapter",
            "an adapter's input without one",
            "an empty one",
            "output material in the input",
            "output material in the context",
            "a list",
            "null",
        ],
    )
    def test_a_patch_that_makes_no_request_is_refused_with_its_place(
        self, caller: Caller, request_body: dict[str, Any], members: dict[str, Any], field: str
    ) -> None:
        record = caller.decide(request_body)
        body = {"scenarios": [self.scenario("good"), self.scenario("bad", **members)]}
        told_ = refused(caller.ask(record, "counterfactuals", body), 400, "COUNTERFACTUAL_SCENARIOS_INVALID")
        assert [error["field"] for error in told_["errors"]] == [f"scenarios[1].{field}"]

    @pytest.mark.parametrize(
        ("patch", "field"),
        [
            ({"sol_amount": 0}, "sol_amount"),
            ({"sol_amount": None}, "sol_amount"),
            ({"score": 100}, "score"),
            ({"risk_level": "none"}, "risk_level"),
        ],
    )
    def test_an_input_that_the_adapter_does_not_take_is_refused_with_its_place(
        self, caller: Caller, patch: dict[str, Any], field: str
    ) -> None:
        """Whoever sends fifty scenarios has to hear which of them it is."""
        record = caller.decide(SOLANA_REQUEST)
        body = {"scenarios": [self.scenario("good"), self.scenario("bad", adapter_input_patch=patch)]}
        response = caller.ask(record, "counterfactuals", body)
        assert response.status_code in (400, 422)
        told_ = refused(response, response.status_code, response.get_json()["error"])
        assert [error["field"] for error in told_["errors"]] == [f"scenarios[1].adapter_input_patch.{field}"]

    def test_an_adapter_that_is_gone_is_not_guessed(self, caller: Caller, release: Release) -> None:
        record = caller.decide(adapter_request(ECHOING, APPROVED))
        body = {"scenarios": [self.scenario(adapter_input_patch={"margin_percent": 1})]}
        refused(release([]).ask(record, "counterfactuals", body), 409, "REPLAY_LINEAGE_MISMATCH")
        later = release([Adapter(ECHOING.manifest, FAILING["it raises"].source)])
        refused(later.ask(record, "counterfactuals", body), 502, "TRUSTED_ADAPTER_EXECUTION_FAILED")


class TestVerify:
    """What verification says of a record that is not as it was made, or of another request."""

    @pytest.mark.parametrize(
        "change",
        [
            lambda request: request["adapter"]["input"].update(sol_amount=6),
            lambda request: request["adapter"].update(input={}),
            lambda request: request.pop("adapter"),
            lambda request: request.update(question="?"),
        ],
        ids=["another amount", "no input", "no adapter", "another question"],
    )
    def test_another_request_is_told_apart_from_another_record(
        self, caller: Caller, change: Callable[[dict[str, Any]], Any]
    ) -> None:
        record = caller.decide(SOLANA_REQUEST)
        other = copy.deepcopy(SOLANA_REQUEST)
        change(other)
        result = caller.verified(record, {"record": record, "input": other})
        assert (result["verified"], result["checks"]["input_hash"], result["checks"]["record_hash"]) == (
            False,
            False,
            True,
        )
        assert result["error"] == "INPUT_MISMATCH"

    def test_a_record_whose_facts_were_changed_does_not_verify(self, caller: Caller) -> None:
        record = caller.decide(SOLANA_REQUEST)
        for name, value in (("decision_score", 98), ("more", ""), ("sol_amount", 5.5)):
            changed = {**record, "adapter_facts": {**record["adapter_facts"], name: value}}
            offline = caller.client.post("/api/decision/verify", json=changed).get_json()
            assert (offline["verified"], offline["error"]) == (False, "RECORD_INTEGRITY_FAILED")
            assert offline["checks"]["facts_hash"] is False
            hosted = caller.verified(record, changed)
            assert (hosted["verified"], hosted["checks"]["stored_record"]) == (False, False)


class TestErased:
    """An erased decision over the facts of an adapter."""

    @pytest.fixture
    def record(self, caller: Caller) -> dict[str, Any]:
        """The record, before it was erased."""
        return caller.decide(REFUND_REQUEST, x_idempotency_key="order-1")

    @pytest.fixture
    def left(self, caller: Caller, instance: Instance, record: dict[str, Any]) -> dict[str, Any]:
        """What is left of it."""
        erase(instance.ledger, record["decision_id"], "asked for", utc_now())
        found: dict[str, Any] = caller.client.get(record["decision_url"], headers=caller.headers).get_json()
        return found

    def test_facts_and_input_are_gone_and_the_hashes_stay(
        self, record: dict[str, Any], left: dict[str, Any], instance: Instance, scope: Scope
    ) -> None:
        assert left["erased"]["members"] == ["adapter_facts", "evaluation", "input"]
        assert left == {**record, "adapter_facts": None, "evaluation": None, "erased": left["erased"]}
        assert left["trusted_adapter"]["output_hash"] == verifier.canonical_hash(record["adapter_facts"])
        assert check_chain(instance, scope.scope_id) == (2, None)
        stored = json.dumps([[repr(cell) for cell in row] for row in rows_of(instance.ledger.store)["entries"]])
        for personal in ("card-1", "damaged"):
            assert personal not in stored

    def test_it_verifies_as_erased(self, caller: Caller, instance: Instance, left: dict[str, Any]) -> None:
        for body in (None, left):
            result = caller.verified(left, body)
            assert (result["verified"], result["authenticity_valid"], result["error"]) == (
                False,
                True,
                "MATERIAL_ERASED",
            )
            assert False not in result["checks"].values()
            assert [result["checks"][name] for name in ("record_hash", "facts_hash", "evaluation")] == [None] * 3
            assert [result["checks"][name] for name in ("receipt_hash", "receipt_signature", "erasure")] == [True] * 3
        assert verify_record(left, instance.trust()).error == "MATERIAL_ERASED"

    def test_who_kept_record_and_request_can_still_prove_them(
        self, caller: Caller, record: dict[str, Any], left: dict[str, Any]
    ) -> None:
        result = caller.verified(left, {"record": record, "input": REFUND_REQUEST})
        assert (result["verified"], "error" in result) == (True, False), result
        names = ("stored_record", "record_hash", "facts_hash", "adapter_input_hash", "input_hash", "rulebook_hash")
        assert [result["checks"][name] for name in names] == [True] * 6
        with_request = caller.verified(left, {"record": left, "input": REFUND_REQUEST})
        assert [with_request["checks"][name] for name in ("input_hash", "adapter_input_hash")] == [True, True]

    def test_it_is_not_made_again(self, caller: Caller, left: dict[str, Any]) -> None:
        for endpoint in ("replay", "diff"):
            body = refused(caller.ask(left, endpoint), 422, "REPLAY_INPUT_UNAVAILABLE")
            assert "was erased" in body["message"]
        scenarios = {"scenarios": [TestCounterfactuals.scenario(adapter_input_patch={})]}
        refused(caller.ask(left, "counterfactuals", scenarios), 422, "COUNTERFACTUAL_INPUT_UNAVAILABLE")

    def test_its_key_still_answers_it(self, caller: Caller, left: dict[str, Any]) -> None:
        again = caller.send(REFUND_REQUEST, x_idempotency_key="order-1")
        assert again.headers["x-idempotency-status"] == "replayed"
        assert again.get_json() == left

    def test_its_key_answers_nothing_where_the_chain_knows_of_no_such_erasure(
        self, caller: Caller, instance: Instance, left: dict[str, Any]
    ) -> None:
        assert left["erased"]
        with instance.ledger.store.write() as connection:
            connection.exec_driver_sql("UPDATE entries SET body = ? WHERE position = 2", (b'{"erasure_hash": "x"}',))
        refused(caller.send(REFUND_REQUEST, x_idempotency_key="order-1"), 503, "SVC_STORAGE_UNAVAILABLE")

    def test_what_is_left_names_what_nothing_shows_any_more(self, left: dict[str, Any], instance: Instance) -> None:
        unproven = {"request_id", "idempotency_key", "created_at", "rulebook_contract"}
        told = verify_record(left, instance.trust()).message or ""
        assert all(name in told for name in unproven)
        derived = {"decision_confidence", "confidence_hash", "audit_chain"}
        for name in left.keys() - derived:
            value = left[name]
            other = f"2099{value[4:]}" if name == "created_at" else f"{value}x"
            changed = {**left, name: other if isinstance(value, str) else {"x": 1}}
            result = verify_record(changed, instance.trust())
            assert (result.error == "MATERIAL_ERASED") is (name in unproven), name

    @pytest.mark.parametrize("view", VIEWS)
    def test_every_view_says_so(self, caller: Caller, left: dict[str, Any], view: str) -> None:
        shown = caller.decide({**REFUND_REQUEST, "response_view": view}, x_idempotency_key="order-1")
        assert shown["erased"] == left["erased"]
        named = {"full": "after_erasure"}.get(view, view)
        schema = resources.schema("decision-record-v1")
        jsonschema.Draft202012Validator({**schema, "$ref": f"#/$defs/{named}"}).validate(shown)


def test_the_packet_of_a_decision_over_an_adapters_facts_verifies(caller: Caller, instance: Instance) -> None:
    record = caller.decide(SOLANA_REQUEST)
    response = caller.client.get(
        f"{record['decision_url']}/packet", query_string={"include_input": "true"}, headers=caller.headers
    )
    assert response.status_code == 200, response.text
    packet = response.get_json()
    assert packet["decision_record"]["trusted_adapter"] == record["trusted_adapter"]
    assert packet["input"] == SOLANA_REQUEST
    result = caller.client.post("/api/decision/packet/verify", json=packet).get_json()
    assert result["verified"] is True, result
