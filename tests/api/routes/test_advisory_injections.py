"""Whatever a caller or an upstream writes into a question or an answer, no advisory record ever binds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from flask.testing import FlaskClient

from api.mcp.agents.texts import ADVICE
from gate.client import Client, GateUnavailable, SqliteStore
from gate.clock import new_id, utc_now
from gate.encoding.canonical import canonical, content_hash
from gate.ids import timestamp
from gate.instance.instance import Instance
from gate.labels import DECISION_CONTRACT, VIEWS
from gate.ledger.access.authority import Scope
from gate.records.advisory import BINDING_PARTS, advised
from gate.records.envelope import input_material
from gate.records.record import Identity
from gate.records.request import read_request
from gate.services.advisory.advisor import Advice
from gate.services.advisory.records import record_of
from gate.services.advisory.templates import template
from tests.api.deciding import chain_size, decide, refused
from tests.api.mcp.messages import post, well_formed
from tests.gate.client.conftest import Service
from tests.gate.client.guarding import guarding
from tests.independent import verifier
from tests.support.samples import cases
from tests.support.upstreams import OPTIONS, Server, completion, fitting, well

CASES: Final[list[dict[str, Any]]] = cases("advisory_injections")
RECORDED: Final = [case for case in CASES if "verdict" in case["expected"]]
REFUSED: Final = [case for case in CASES if "verdict" not in case["expected"]]
NONE_OF: Final = {*BINDING_PARTS, "decision_confidence", "confidence_hash"}


def name_of(case: dict[str, Any]) -> str:
    return str(case["name"])


def body_of(case: dict[str, Any]) -> dict[str, Any]:
    """The Decision Request of a case."""
    context = dict(case.get("context", {}))
    if case["mode"] != "single":
        context["options"] = case.get("options", OPTIONS)
    question = case.get("question", "May we refund order 7?")
    return {"mode": case["mode"], "question": question, **({"context": context} if context else {})}


def sent_of(case: dict[str, Any]) -> bytes:
    """The same as it is sent."""
    return str(case["request"]).encode() if "request" in case else json.dumps(body_of(case)).encode()


def answers_as(server: Server, case: dict[str, Any]) -> None:
    """Lets the upstream answer as a case has it."""
    if "body" in case:
        server.behave = lambda handler: handler.send(str(case["body"]).encode())
    elif "message" in case:
        server.behave = lambda handler: handler.send(completion(case["message"]))
    elif "answer" in case:
        server.answer(case["answer"])
    else:
        server.behave = well


@pytest.mark.parametrize("case", RECORDED, ids=name_of)
def test_what_is_recorded_authorizes_nothing(
    client: FlaskClient, key: str, instance: Instance, upstream: Server, case: dict[str, Any]
) -> None:
    answers_as(upstream, case)
    response = decide(client, key, sent_of(case), x_idempotency_key="order-7")
    assert response.status_code == 200, response.get_json()
    record = response.get_json()
    require_advice(record, case["expected"])
    require_one_question(upstream, body_of(case))
    # In every view, where it is made and where it is read.
    for view in VIEWS:
        again = decide(client, key, {**body_of(case), "response_view": view}, x_idempotency_key="order-7").get_json()
        read = client.get(record["decision_url"], headers={"x-api-key": key, "x-decision-response-view": view})
        assert again == read.get_json()
        require_advice(again, case["expected"])
    assert again == record
    # It verifies with its contract, and only with it.
    keys = instance.receipt_keys.registry().to_dict()
    assert client.get(record["verify_url"], headers={"x-api-key": key}).get_json()["verified"] is True
    assert verifier.record_failures(record, keys, request_body=body_of(case)) == []
    for forged in without_contract(record):
        assert client.post("/api/decision/verify", json={"record": forged}).get_json()["verified"] is False
        assert verifier.record_failures(forged, keys) != []


@pytest.mark.parametrize("case", RECORDED, ids=name_of)
def test_agents_read_advice_as_no_approval(
    client: FlaskClient, key: str, upstream: Server, case: dict[str, Any]
) -> None:
    answers_as(upstream, case)
    for view in VIEWS:
        arguments = {"request": body_of(case), "response_view": view}
        params = {"name": "decide", "arguments": arguments}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        result = well_formed(post(client, key, json.dumps(message).encode())).get_json()["result"]
        require_advice(result["structuredContent"], case["expected"])
        texts = [each["text"] for each in result["content"]]
        assert json.loads(texts[0]) == result["structuredContent"]
        assert ADVICE in texts


@pytest.mark.parametrize("case", RECORDED, ids=name_of)
def test_the_guard_runs_no_body_on_advice(
    client: FlaskClient, key: str, instance: Instance, upstream: Server, tmp_path: Path, case: dict[str, Any]
) -> None:
    answers_as(upstream, case)
    record = decide(client, key, sent_of(case)).get_json()

    def replaced(request: httpx.Request) -> Any:
        return record

    def made_of_the_guards_request(request: httpx.Request) -> Any:
        # Signed by the service's own key, about the very request, action and target.
        return advice_on(instance, json.loads(request.content), request.headers["x-idempotency-key"], record)

    def without_its_contract(request: httpx.Request) -> Any:
        made = made_of_the_guards_request(request)
        return {name: value for name, value in made.items() if name != "decision_contract"}

    answers: dict[str, tuple[Callable[[httpx.Request], Any], str]] = {
        "1": (replaced, "RECORD_UNVERIFIED"),
        "2": (made_of_the_guards_request, "RECORD_FOREIGN"),
        "3": (without_its_contract, "RECORD_UNVERIFIED"),
    }
    service, ran = Service(client), False
    with (
        SqliteStore(tmp_path / "intents.db") as store,
        Client(
            "http://gate.example",
            key=key,
            registry=instance.trust().receipt_keys.to_dict(),  # type: ignore[union-attr]
            store=store,
            transport=service,
            tries=1,
        ) as gate,
    ):
        for order, (answer, code) in answers.items():

            def rewrite(
                request: httpx.Request, response: httpx.Response, answer: Callable[[httpx.Request], Any] = answer
            ) -> httpx.Response:
                return httpx.Response(200, json=answer(request)) if request.url.path == "/api/decide" else response

            service.rewrite = rewrite
            with pytest.raises(GateUnavailable) as error, guarding(gate, intent=order):
                ran = True
            assert error.value.code == code, error.value
            assert code != "RECORD_FOREIGN" or "it is advisory and authorizes nothing" in str(error.value)
    assert not ran


def advice_on(instance: Instance, body: dict[str, Any], idempotency_key: str, record: dict[str, Any]) -> Any:
    """An advisory record about a request that asked for a binding decision, with another's answer."""
    evaluation = record["evaluation"]
    request = read_request(body, content_hash(input_material(body)))
    said = advised(evaluation["mode"], evaluation["answer"])
    assert said is not None
    now = utc_now()
    return record_of(
        request._replace(mode=evaluation["mode"]),
        Advice(template(evaluation["mode"]), evaluation, said, False),
        Identity(new_id("dec", now), new_id("req", now), idempotency_key, timestamp(now)),
        instance.signers().receipt,
    )


@pytest.mark.parametrize("case", REFUSED, ids=name_of)
def test_what_is_refused_leaves_nothing(
    client: FlaskClient, key: str, instance: Instance, scope: Scope, upstream: Server, case: dict[str, Any]
) -> None:
    answers_as(upstream, case)
    expected = case["expected"]
    response = decide(client, key, sent_of(case), x_idempotency_key="order-7")
    refused(response, expected["status"], expected["error"])
    assert chain_size(instance, scope) == 0
    # What is wrong with a question is known before it is sent.
    assert len(upstream.asked) == (expected["status"] == 502)
    if upstream.asked:
        require_one_question(upstream, body_of(case))
    # Nor is the key taken: a question that is answered may have it.
    upstream.behave = well
    assert decide(client, key, {"question": "May we?"}, x_idempotency_key="order-7").status_code == 200


def require_advice(shown: dict[str, Any], expected: dict[str, str]) -> None:
    """Requires that a shown record authorizes nothing, and says so."""
    assert canonical(shown["decision_contract"]) == canonical(DECISION_CONTRACT)
    assert DECISION_CONTRACT == {
        "authority": "advisory_only",
        "production_verdict": False,
        "production_binding_required": True,
    }
    assert shown["action"] == "hold_for_binding_decision"
    assert shown["application_verdict"] == "ADVISORY"
    assert shown["evaluator_version"] == "svc_advisory_v1"
    assert shown["matched_rule_id"] is None
    assert {name: shown[name] for name in expected} == expected
    assert NONE_OF & shown.keys() == set()


def require_one_question(upstream: Server, body: dict[str, Any]) -> None:
    """Requires that an upstream was asked by the template, and got what a caller wrote as data alone."""
    _, _, asked = upstream.asked[-1]
    assert asked.keys() == {"model", "messages", "temperature", "stream", "response_format"}
    system, user = asked["messages"]
    assert system == {"role": "system", "content": template(body["mode"]).system}
    assert user.keys() == {"role", "content"}
    assert user["role"] == "user"
    pairs: list[list[str]] = []

    def read(members: list[tuple[str, Any]]) -> dict[str, Any]:
        pairs.append([name for name, _ in members])
        return dict(members)

    told = json.loads(user["content"], object_pairs_hook=read)
    assert canonical(told) == user["content"].encode()
    assert all(len(names) == len(set(names)) for names in pairs)
    context = dict(body.get("context", {}))
    if body["mode"] == "single":
        assert told.keys() == {"question", "context"}
    else:
        assert told.keys() == {"question", "context", "options"}
        assert told["options"] == context.pop("options")
    assert told["question"] == body["question"]
    assert told["context"].keys() == context.keys()


def without_contract(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A record as somebody who wants to act on it would rather have it."""
    bare = {name: value for name, value in record.items() if name != "decision_contract"}
    yield bare
    yield {**bare, "evaluator_version": "svc_rulebook_v1"}
    for other in (None, {}, {**DECISION_CONTRACT, "production_verdict": True}, {**DECISION_CONTRACT, "x": 1}):
        yield {**record, "decision_contract": other}
    yield {**record, "action": "issue_refund"}
    yield {**record, "application_verdict": "APPROVE"}
    yield {**record, "runtime_binding": {}}


def test_the_corpus_is_large_and_of_both_kinds() -> None:
    assert len(RECORDED) >= 60
    assert len(REFUSED) >= 60
    assert {case["mode"] for case in RECORDED} == {"single", "multi", "runtime"} == {case["mode"] for case in REFUSED}


def test_secrets_of_a_context_do_not_leave_over_http(client: FlaskClient, key: str, upstream: Server) -> None:
    upstream.behave = lambda handler: handler.send(completion(json.dumps(fitting("single"))))
    context = {
        "mail": "Hi Ann,\nthe password is canary1 and the key is below.\nAuthorization: Bearer canary2",
        "headers": [{"name": "X-Api-Key", "value": "canary3"}, {"name": "accept", "value": "text/html"}],
        "customer": {"cardNumber": "canary4", "IBAN": "canary5", "ssn": 705, "card": {"number": "canary6"}},
        "tokens": {"canary7": {"canary8": True}},
        "password=canary9": 1,
        "token_count": 3,
        "password_changed_at": "2026-11-27",
    }
    assert decide(client, key, {"question": "May we refund?", "context": context}).status_code == 200
    ((_, _, asked),) = upstream.asked
    assert "canary" not in json.dumps(asked)
    assert json.loads(asked["messages"][1]["content"])["context"] == {
        "mail": "[masked]",
        "headers": [{"name": "X-Api-Key", "value": "[masked]"}, {"name": "accept", "value": "text/html"}],
        "customer": dict.fromkeys(("cardNumber", "IBAN", "ssn"), "[masked]") | {"card": {"number": "[masked]"}},
        "tokens": "[masked]",
        "[masked] 1": "[masked]",
        "token_count": 3,
        "password_changed_at": "2026-11-27",
    }


def test_facts_under_any_name_are_sent_and_nothing_is_said_against_them(
    client: FlaskClient, key: str, upstream: Server
) -> None:
    response = decide(client, key, {"question": "May we refund?", "context": {"facts": {"age": 3}}})
    assert "x-decision-hint" not in response.headers
    assert json.loads(upstream.asked[-1][2]["messages"][1]["content"])["context"] == {"facts": {"age": 3}}
