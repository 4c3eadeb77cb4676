"""The corpus of JSON texts over HTTP: what is refused decides nothing, and what is read is kept as it was read."""

from __future__ import annotations

import json

from flask.testing import FlaskClient

from api.http.state import State
from gate.instance.audit import check_chain
from gate.instance.instance import Instance
from gate.ledger.access.authority import Authority, Scope
from tests.api.deciding import chain_size, decide, refused
from tests.support.samples import case_bytes, cases, sample_request
from tests.support.torture import size

_FACT = "fact from the corpus"
# Where a request carries a text of the corpus as a fact: at its end, so that all around it is whole.
_BEFORE, _AFTER = (
    json.dumps(sample_request(discount_percent=10, margin_percent=22, **{_FACT: 7})).encode().split(b"7}}")
)


def _with_fact(text: bytes) -> bytes:
    return _BEFORE + text + b"}}" + _AFTER


def test_a_refused_text_never_decides_alone_or_as_a_fact(
    client: FlaskClient, key: str, instance: Instance, scope: Scope
) -> None:
    for case in cases("json/refused"):
        for body in (case_bytes(case), _with_fact(case_bytes(case))):
            answer = refused(decide(client, key, body), 400, "SVC_API_JSON_INVALID")
            assert len(answer["message"]) < 300, case["name"]
    assert chain_size(instance, scope) == 0


def test_an_accepted_text_is_kept_as_the_fact_that_it_says(
    client: FlaskClient, key: str, authority: Authority, instance: Instance, scope: Scope
) -> None:
    state: State = client.application.extensions["gate"]
    shallow = [case for case in cases("json/accepted") if "nest" not in case]
    for count, case in enumerate(shallow, 1):
        response = decide(client, key, _with_fact(case_bytes(case)))
        assert response.status_code == 200, case["name"]
        decision_id = response.get_json()["decision_id"]
        request = state.gate.request_body(authority, decision_id)
        assert request is not None
        kept = request["context"]["inputs"][_FACT]
        assert kept == (case["value"] if "value" in case else json.loads(case_bytes(case))), case["name"]
        # In the end all of them are verified, where they are.
        if count % size(6, 1) == 0:
            verified = client.get(f"/api/decision/{decision_id}/verify", headers={"x-api-key": key}).get_json()
            assert verified["verified"] is True, case["name"]
        assert chain_size(instance, scope) == count
    assert check_chain(instance, scope.scope_id) == (len(shallow), None)


def test_an_accepted_text_that_is_no_request_is_refused_as_one(
    client: FlaskClient, key: str, instance: Instance, scope: Scope
) -> None:
    for case in cases("json/accepted"):
        if "max_depth" not in case:
            refused(decide(client, key, case_bytes(case)), 422, "SVC_API_REQUEST_INVALID")
    assert chain_size(instance, scope) == 0


def test_verification_admits_twice_the_depth(client: FlaskClient) -> None:
    for name, statuses in (("accepted", {200, 422}), ("refused", {400})):
        deep = [case for case in cases(f"json/{name}") if "max_depth" in case]
        assert deep
        for case in deep:
            response = client.post("/api/decision/verify", data=case_bytes(case), content_type="application/json")
            assert response.status_code in statuses, case["name"]


def test_text_that_does_not_end_is_told_in_a_sentence(client: FlaskClient, key: str) -> None:
    for body, what in (
        (b'{"mode', "Unterminated string starting at line 1, column 2"),
        (b'{"a": "\\x"}', "Invalid \\escape at line 1, column 8"),
        (b'{"a": "\n"}', "Invalid control character at line 1, column 8"),
    ):
        answer = refused(decide(client, key, body), 400, "SVC_API_JSON_INVALID")
        assert answer["message"] == f"The body is not JSON: {what}."
