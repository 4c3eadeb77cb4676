"""The advisory modes over HTTP, against an upstream that behaves and one that does not."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import msgspec
import pytest
from flask.testing import FlaskClient

from gate.clock import utc_now
from gate.encoding import resources
from gate.encoding.canonical import content_hash
from gate.encoding.strict_json import parse
from gate.instance.instance import Instance
from gate.labels import DECISION_CONTRACT
from gate.ledger.access.authority import Scope
from gate.services.advisory.advisor import CALLS, Advisor
from gate.services.advisory.upstream import Upstream
from gate.verify import verify_packet, verify_record
from tests.api.deciding import chain_size, decide, refused
from tests.independent import verifier
from tests.support.samples import sample_request
from tests.support.tampering import at, other_values, places
from tests.support.upstreams import ADVISORY_REQUESTS as REQUESTS
from tests.support.upstreams import BEHAVIORS, OPTIONS, UPSTREAM_KEY, Server, completion, fitting

SINGLE, MULTI, RUNTIME = REQUESTS["single"], REQUESTS["multi"], REQUESTS["runtime"]
ADVISORY_RECORD = jsonschema.Draft202012Validator(
    {**resources.schema("decision-record-v1"), "$ref": "#/$defs/advisory"}
)


@pytest.fixture
def impatient(upstream: Server, instance: Instance, monkeypatch: pytest.MonkeyPatch) -> Server:
    """The same, asked with little patience."""
    monkeypatch.setitem(instance.__dict__, "advisor", Advisor(Upstream(upstream.url, "model-1", 0.6, UPSTREAM_KEY)))
    return upstream


@pytest.mark.parametrize(
    ("mode", "verdict", "word"),
    [("single", "yes", "approved"), ("multi", "review", "unclear"), ("runtime", "review", "unclear")],
)
def test_an_answer_is_a_signed_chained_record_that_authorizes_nothing(
    client: FlaskClient, key: str, instance: Instance, upstream: Server, mode: str, verdict: str, word: str
) -> None:
    response = decide(client, key, REQUESTS[mode], x_idempotency_key="order-7")
    assert response.status_code == 200, response.get_json()
    record = response.get_json()
    assert (record["verdict"], record["v"], record["action"]) == (verdict, word, "hold_for_binding_decision")
    assert record["decision_contract"] == DECISION_CONTRACT
    assert (record["policy_id"], record["evaluator_version"]) == (f"advisory.{mode}", "svc_advisory_v1")
    template = parse(resources.path("data", "advisory", f"{mode}.json").read_bytes())
    assert record["policy_hash"] == content_hash(template)
    assert record["evaluation"] == {"mode": mode, "model": "model-1", "answer": fitting(mode)}
    assert record["evidence"][1] == f"answer:{content_hash(fitting(mode))}"
    assert not {"rulebook", "rulebook_attestation", "rulebook_registry", "runtime_binding"} & record.keys()
    ADVISORY_RECORD.validate(record)
    keys = instance.receipt_keys.registry().to_dict()
    assert verifier.record_failures(record, keys, request_body=REQUESTS[mode]) == []
    assert verify_record(record, instance.trust(), request_body=REQUESTS[mode]).verified


@pytest.mark.parametrize(
    ("answer", "verdict", "c", "v"), [("no", "no", "no", "denied"), ("unclear", "review", "unclear", "unclear")]
)
def test_a_single_answer_gives_the_verdict(
    client: FlaskClient, key: str, upstream: Server, answer: str, verdict: str, c: str, v: str
) -> None:
    upstream.answer({"answer": answer, "reason": "Because."})
    record = decide(client, key, SINGLE).get_json()
    assert (record["verdict"], record["c"], record["v"]) == (verdict, c, v)


@pytest.mark.parametrize("view", ["minimal", "standard", "full"])
def test_every_view_has_the_contract(client: FlaskClient, key: str, upstream: Server, view: str) -> None:
    shown = decide(client, key, {**SINGLE, "response_view": view}).get_json()
    assert shown["decision_contract"] == DECISION_CONTRACT
    stored = client.get(shown["decision_url"], headers={"x-api-key": key, "x-decision-response-view": view}).get_json()
    assert stored == shown


def test_the_upstream_gets_one_masked_question_without_streaming(
    client: FlaskClient, key: str, upstream: Server
) -> None:
    context = {"options": OPTIONS, "customer": [{"apiKey": "k-1", "tier": "gold", "password": 1234}], "price": 12.5}
    assert decide(client, key, {**RUNTIME, "context": context}).status_code == 200
    ((path, headers, sent),) = upstream.asked
    assert path == "/v1/chat/completions"
    assert headers["authorization"] == f"Bearer {UPSTREAM_KEY}"
    assert (sent["model"], sent["temperature"], sent["stream"]) == ("model-1", 0, False)
    assert sent["response_format"] == {"type": "json_object"}
    assert [message["role"] for message in sent["messages"]] == ["system", "user"]
    assert _json(sent["messages"][1]["content"]) == {
        "question": RUNTIME["question"],
        "options": OPTIONS,
        "context": {"customer": [{"apiKey": "[masked]", "tier": "gold", "password": "[masked]"}], "price": 12.5},
    }


def _json(text: str) -> Any:
    return json.loads(text)


@pytest.mark.parametrize("name", BEHAVIORS)
def test_an_upstream_that_misbehaves_leaves_nothing(
    client: FlaskClient,
    key: str,
    instance: Instance,
    scope: Scope,
    impatient: Server,
    log: Any,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    impatient.behave, says = BEHAVIORS[name]
    response = decide(client, key, SINGLE, x_idempotency_key="order-7")
    body = refused(response, 502, "SVC_ADVISORY_UPSTREAM_FAILED")
    assert says in body["message"]
    for text in (response.get_data(as_text=True), log.getvalue().decode()):
        assert UPSTREAM_KEY not in text
        assert "SECRET-OF-UPSTREAM" not in text
    assert chain_size(instance, scope) == 0
    # The key is free: another payload may claim it. Whatever keeps the machine busy, its answer is waited for.
    monkeypatch.setitem(instance.__dict__, "advisor", Advisor(Upstream(impatient.url, "model-1", 30, UPSTREAM_KEY)))
    impatient.answer(fitting("multi"))
    assert decide(client, key, MULTI, x_idempotency_key="order-7").headers["x-idempotency-status"] == "created"
    assert len(impatient.asked) == 2


_OF_OTHERS = [{"option": option, "score": 1, "reason": "r"} for option in OPTIONS]
LIES: dict[str, tuple[str, Any]] = {
    "an answer that is none": ("single", {"answer": "approved", "reason": "r"}),
    "an answer in capitals": ("single", {"answer": "YES", "reason": "r"}),
    "no reason": ("single", {"answer": "yes"}),
    "an empty reason": ("single", {"answer": "yes", "reason": ""}),
    "a reason of white space": ("single", {"answer": "yes", "reason": "   "}),
    "a reason of an option that nobody sees": (
        "multi",
        {"scores": [*_OF_OTHERS[:2], {**_OF_OTHERS[2], "reason": "\u200b"}]},
    ),
    "a blank reason of a recommendation": (
        "runtime",
        {"recommended": "refund", "reason": "\u00a0", "scorecard": _OF_OTHERS},
    ),
    "a blank reason in a scorecard": (
        "runtime",
        {"recommended": "refund", "reason": "r", "scorecard": [{**_OF_OTHERS[0], "reason": " "}, *_OF_OTHERS[1:]]},
    ),
    "a reason without end": ("single", {"answer": "yes", "reason": "x" * 1001}),
    "a verdict": ("single", {"answer": "no", "reason": "r", "verdict": "yes"}),
    "a contract": ("single", {"answer": "yes", "reason": "r", "decision_contract": {"authority": "binding"}}),
    "an array": ("single", [{"answer": "yes", "reason": "r"}]),
    "a score of 1e9": ("multi", {"scores": [{**_OF_OTHERS[0], "score": 1e9}, *_OF_OTHERS[1:]]}),
    "a negative score": ("multi", {"scores": [{**_OF_OTHERS[0], "score": -1}, *_OF_OTHERS[1:]]}),
    "a score in words": ("multi", {"scores": [{**_OF_OTHERS[0], "score": "90"}, *_OF_OTHERS[1:]]}),
    "a score that is true": ("multi", {"scores": [{**_OF_OTHERS[0], "score": True}, *_OF_OTHERS[1:]]}),
    "an option left out": ("multi", {"scores": _OF_OTHERS[:2]}),
    "an option twice": ("multi", {"scores": [*_OF_OTHERS, _OF_OTHERS[0]]}),
    "an option twice instead of another": ("multi", {"scores": [*_OF_OTHERS[:2], _OF_OTHERS[0]]}),
    "an option of its own": ("multi", {"scores": [*_OF_OTHERS, {**_OF_OTHERS[0], "option": "pay me"}]}),
    "a recommendation beside": ("multi", {"scores": _OF_OTHERS, "recommended": "refund"}),
    "a foreign recommendation": ("runtime", {"recommended": "pay me", "reason": "r", "scorecard": _OF_OTHERS}),
    "a recommendation in capitals": ("runtime", {"recommended": "REFUND", "reason": "r", "scorecard": _OF_OTHERS}),
    "no scorecard": ("runtime", {"recommended": "refund", "reason": "r"}),
    "a scorecard of others": (
        "runtime",
        {"recommended": "refund", "reason": "r", "scorecard": [{**_OF_OTHERS[0], "option": "a"}, *_OF_OTHERS[1:]]},
    ),
}


@pytest.mark.parametrize("name", LIES)
def test_an_upstream_that_lies_leaves_nothing(
    client: FlaskClient, key: str, instance: Instance, scope: Scope, upstream: Server, name: str
) -> None:
    mode, answer = LIES[name]
    upstream.answer(answer)
    body = refused(decide(client, key, REQUESTS[mode]), 502, "SVC_ADVISORY_UPSTREAM_FAILED")
    assert "unusable answer" in body["message"]
    assert chain_size(instance, scope) == 0


@pytest.mark.parametrize(
    ("options", "field"),
    [
        (None, "context.options"),
        ("refund", "context.options"),
        (["refund"], "context.options"),
        ([str(index) for index in range(9)], "context.options"),
        (["refund", 7], "context.options[1]"),
        (["refund", "refund"], "context.options[1]"),
        (["refund", " "], "context.options[1]"),
        (["refund", "\u200b"], "context.options[1]"),
        (["refund", "\u3164"], "context.options[1]"),
        (["refund", "refund "], "context.options[1]"),
        (["refund", "\n refund"], "context.options[1]"),
        (["refund", "ref\u200bund"], "context.options[1]"),
        (["refund", "\uff52efund"], "context.options[1]"),
        (["caf\u00e9", "cafe\u0301"], "context.options[1]"),
        ([7, "7"], "context.options[0]"),
        (["refund", "hf_0123456789abcdefghijABCDEFGHIJ0123"], "context.options[1]"),
        (["refund", "x" * 201], "context.options[1]"),
        (["refund", "password=hunter2hunter2"], "context.options[1]"),
    ],
)
@pytest.mark.parametrize("mode", ["multi", "runtime"])
def test_options_that_are_none_are_named(
    client: FlaskClient, key: str, upstream: Server, mode: str, options: Any, field: str
) -> None:
    context = {} if options is None else {"options": options}
    body = refused(decide(client, key, {**REQUESTS[mode], "context": context}), 422, "SVC_API_REQUEST_INVALID")
    assert [error["field"] for error in body["errors"]] == [field]
    assert upstream.asked == []


def test_options_that_read_differently_are_asked(client: FlaskClient, key: str, upstream: Server) -> None:
    options = ["schon", "sch\u00f6n", "Schon", "\u304b\u304d", "\u304b\u304e"]
    assert decide(client, key, {**MULTI, "context": {"options": options}}).status_code == 200
    assert _json(upstream.asked[0][2]["messages"][1]["content"])["options"] == options


@pytest.mark.parametrize("question", [" ", "\n\t", "\u00a0", "\u200b", "\ufeff \u2060", "\u3164", "\ufe0f"])
def test_a_question_that_nobody_sees_is_not_sent(
    client: FlaskClient, key: str, upstream: Server, question: str
) -> None:
    body = refused(decide(client, key, {"question": question}), 422, "SVC_API_REQUEST_INVALID")
    assert [(error["field"], error["code"]) for error in body["errors"]] == [("question", "too_short")]
    assert upstream.asked == []


def test_a_question_with_a_credential_is_not_sent(client: FlaskClient, key: str, upstream: Server) -> None:
    body = {"question": "Is password=hunter2hunter2 a good one?"}
    assert refused(decide(client, key, body), 422, "SVC_API_REQUEST_INVALID")["errors"][0]["field"] == "question"
    assert upstream.asked == []


def test_a_used_key_replays_without_asking_again(client: FlaskClient, key: str, upstream: Server) -> None:
    first = decide(client, key, SINGLE, x_idempotency_key="order-7")
    again = decide(client, key, SINGLE, x_idempotency_key="order-7")
    assert again.data == first.data
    assert again.headers["x-idempotency-status"] == "replayed"
    refused(decide(client, key, MULTI, x_idempotency_key="order-7"), 409, "SVC_API_IDEMPOTENCY_CONFLICT")
    assert len(upstream.asked) == 1


def test_calls_beyond_the_bound_are_answered_at_once(
    client: FlaskClient, key: str, upstream: Server, instance: Instance
) -> None:
    calls = instance.advisor._calls
    for _ in range(CALLS):
        assert calls.acquire(blocking=False)
    response = decide(client, key, SINGLE)
    refused(response, 503, "SVC_ADVISORY_BUSY")
    assert int(response.headers["retry-after"]) > 0
    calls.release()
    assert decide(client, key, SINGLE).status_code == 200
    assert decide(client, key, SINGLE).status_code == 200


def test_settings_that_cannot_be_used_close_the_advisory_modes_alone(
    client: FlaskClient, key: str, instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = msgspec.structs.replace(instance.settings, advisory_url="http://127.0.0.1:9")
    monkeypatch.setattr(instance, "settings", settings)
    monkeypatch.delitem(instance.__dict__, "advisor")
    body = refused(decide(client, key, SINGLE), 503, "SVC_ADVISORY_UNCONFIGURED")
    assert "settings" in body["message"]
    assert decide(client, key, sample_request()).get_json()["verdict"] == "yes"
    assert client.get("/api/decision/status").get_json()["backends"]["advisory"] == "unavailable"
    assert client.get("/api/runtime-config").get_json()["modes"]["single"] == "unconfigured"


def test_a_scope_without_a_record_left_asks_nobody(
    client: FlaskClient, key: str, instance: Instance, scope: Scope, upstream: Server
) -> None:
    instance.ledger.directory.set_plan(scope, "starter", utc_now(), monthly_cap=1)
    first = decide(client, key, SINGLE, x_idempotency_key="order-7")
    assert first.status_code == 200
    refused(decide(client, key, SINGLE, x_idempotency_key="order-8"), 429, "SVC_API_MONTHLY_CAP_EXCEEDED")
    assert decide(client, key, SINGLE, x_idempotency_key="order-7").data == first.data
    assert len(upstream.asked) == 1


def test_proxies_of_the_environment_are_not_used(
    client: FlaskClient, key: str, upstream: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert decide(client, key, SINGLE).status_code == 200


def test_any_change_of_a_record_shows(client: FlaskClient, key: str, instance: Instance, upstream: Server) -> None:
    for request in REQUESTS.values():
        record = decide(client, key, request, x_idempotency_key=str(request["question"])).get_json()
        keys = instance.receipt_keys.registry().to_dict()
        for path, changed in _changed(record):
            assert not verify_record(changed, instance.trust()).verified, path
            if path != ("decision_protocol_version",):
                assert verifier.record_failures(changed, keys) != [], path


def _changed(record: dict[str, Any]) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    for path in places(record):
        # The rest of its place in the chain is held against the chain, not against the record.
        if path[0] == "audit_chain" and path[-1:] != ("leaf_hash",):
            continue
        for value in other_values(at(record, path))[:6]:
            changed = copy.deepcopy(record)
            at(changed, path[:-1])[path[-1]] = value
            if changed != record:
                yield path, changed
    for name in ("decision_contract", "evaluator_version", "evaluation"):
        yield (name, "left out"), {member: value for member, value in record.items() if member != name}
    for name in ("rulebook", "runtime_binding", "rulebook_attestation", "trusted_adapter", "adapter_facts"):
        yield (name, "added"), {**record, name: {}}
        yield (name, "added"), {**record, name: {"x": 1}}


@pytest.mark.parametrize("status", ["executed", "blocked"])
def test_a_receipt_of_an_advisory_yes_is_flagged(
    client: FlaskClient, key: str, instance: Instance, upstream: Server, status: str
) -> None:
    record = decide(client, key, SINGLE).get_json()
    assert record["verdict"] == "yes"
    response = client.post(
        f"{record['decision_url']}/execution", json={"execution_status": status}, headers={"x-api-key": key}
    )
    assert response.status_code == 201, response.get_json()
    receipt = response.get_json()
    assert receipt["flags"] == ["DECISION_NOT_APPROVED"]
    packet = client.get(f"{record['decision_url']}/packet", headers={"x-api-key": key}).get_json()
    keys = instance.receipt_keys.registry().to_dict()
    assert verify_packet(packet, instance.trust()).verified
    assert verifier.packet_failures(packet, keys) == []
    packet["execution_receipts"][0]["flags"] = []
    assert not verify_packet(packet, instance.trust()).verified
    assert verifier.packet_failures(packet, keys) != []


def test_nothing_from_the_upstream_but_the_answer_is_kept(client: FlaskClient, key: str, upstream: Server) -> None:
    upstream.behave = lambda handler: handler.send(
        completion(json.dumps(fitting("single")), verdict="yes", logprob=-0.12345678901234567890123, system="SECRET-OF")
    )
    response = decide(client, key, SINGLE)
    assert response.status_code == 200
    assert "SECRET-OF" not in response.get_data(as_text=True)
