"""The client's operations are those of the OpenAPI document, and the service answers every one of them."""

from __future__ import annotations

import inspect
import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, Final, get_args, get_overloads, get_type_hints
from urllib.parse import quote, urlencode

import jsonschema
import pytest
from flask.testing import FlaskClient

from gate.client import operations
from gate.client import types as client_types
from gate.client.errors import AnswerUnusable
from gate.client.transport import building, calls
from gate.client.transport.calls import Answer, Call, RawAnswer, read_answer
from gate.client.types import RefundWorkflowRequest
from gate.clock import utc_now
from gate.encoding import resources
from gate.encoding.strict_json import parse
from gate.errors import GateError, MaterialRefused, RequestRefused
from gate.instance.instance import Instance
from tests.contract.frozen import current
from tests.gate.client.api.documents import ROOTS
from tests.support.migrations import candidate, desk
from tests.support.samples import EXECUTED, GRANT, HELD, SUCCEEDED, case_text, cases, sample_request

DOCUMENT: Final = json.loads(resources.path("schemas", "openapi.json").read_bytes())
SERVED: Final = current()
DESCRIBED: Final = {
    described["operationId"]: (path, method, described)
    for path, item in DOCUMENT["paths"].items()
    for method, described in item.items()
    if described.get("x-client", True)
}
OPERATIONS: Final = list(DESCRIBED)
# The status of an answer that is no error and not 200.
GOOD: Final = {"submitPilot": 202}

# What a caller of the client has no use for: `view` says what Prefer says, and the client keeps no answers.
LEFT_OUT: Final = {"Prefer", "if-none-match"}
NAMES: Final = {
    "from": "from_",
    "x-request-id": "request_id",
    "x-idempotency-key": "idempotency_key",
    "x-decision-response-view": "view",
}
ID: Final = "dec_00000000000000000000000000000001"
# The functions that ask for another form of an answer than the first one, with its media type.
FORMS: Final[dict[str, dict[str, Callable[..., Call[str]]]]] = {
    "getMigrationReport": {
        "text/markdown": operations.get_migration_report_markdown,
        "text/html": operations.get_migration_report_html,
    }
}
FOREIGN: Final[list[Any]] = [
    *(math.nan, math.inf, 2**53, -(2**53), Decimal(1), {1, 2}, b"x", object(), "\ud800", {1: 2}),
    datetime(2026, 1, 1, tzinfo=UTC),
]


def snake(operation: str) -> str:
    return re.sub(r"(?<!^)([A-Z])", r"_\1", operation).lower()


def function(operation: str) -> Callable[..., Call[Any]]:
    found: Callable[..., Call[Any]] = getattr(operations, snake(operation))
    return found


def parameters(operation: str) -> list[dict[str, Any]]:
    """What the document lets a caller of the client say beside the body."""
    named = [
        DOCUMENT["components"]["parameters"][given["$ref"].rpartition("/")[2]] if "$ref" in given else given
        for given in DESCRIBED[operation][2]["parameters"]
    ]
    return [given for given in named if given["name"] not in LEFT_OUT]


def in_place(operation: str, place: str) -> list[dict[str, Any]]:
    return [given for given in parameters(operation) if given["in"] == place]


def example_body(operation: str) -> Any:
    media = DESCRIBED[operation][2]["requestBody"]["content"]["application/json"]
    value = next(iter(media["examples"].values()))["value"]
    return parse(resources.path("schemas", value["$ref"]).read_bytes(), max_depth=64) if "$ref" in value else value


def sample(given: dict[str, Any]) -> tuple[Any, str]:
    """A value that a parameter's schema admits, and what is to be sent for it."""
    schema = given["schema"]
    if "enum" in schema:
        return schema["enum"][-1], schema["enum"][-1]
    if schema["type"] == "boolean":
        value = not schema["default"]
        return value, "true" if value else "false"
    if schema["type"] == "integer":
        return 7, "7"
    if schema.get("format") == "date-time":
        return datetime(2026, 1, 31, 13, tzinfo=timezone(timedelta(hours=1))), "2026-01-31T12:00:00.000Z"
    if given["in"] == "header" or "pattern" in schema:
        return "12", "12"
    text = "a b?c=d&e#%2F+é\\:~"
    return text, quote(text, safe="") if given["in"] == "path" else text


def positional(operation: str) -> tuple[list[Any], str]:
    """What an operation needs of path members, and the path that they make."""
    path = DESCRIBED[operation][0]
    values = []
    for name in re.findall(r"{(\w+)}", path):
        value, sent = sample(next(given for given in in_place(operation, "path") if given["name"] == name))
        values.append(value)
        path = path.replace(f"{{{name}}}", sent)
    return values, path


def needed(operation: str) -> list[Any]:
    """The smallest arguments of an operation."""
    values, _ = positional(operation)
    body = DESCRIBED[operation][2].get("requestBody", {})
    return [*values, example_body(operation)] if body.get("required") else values


def parse_body(call: Call[Any]) -> Any:
    assert call.body is not None
    return parse(call.body, max_depth=64)


@dataclass
class Wire:
    """Sends calls to an application as the client does."""

    client: FlaskClient
    secrets: dict[str | None, dict[str, str]]
    instance: Instance

    def send(self, call: Call[Any]) -> Answer[Any]:
        headers = {**call.headers, **self.secrets[call.credential]}
        if call.idempotency_key is not None:
            headers["x-idempotency-key"] = call.idempotency_key
        if call.body is not None:
            headers["content-type"] = "application/json"
        where = f"{call.path}?{urlencode(call.query)}" if call.query else call.path
        response = self.client.open(where, method=call.method, data=call.body, headers=headers)
        told = {name.lower(): value for name, value in response.headers.items()}
        return read_answer(call, RawAnswer(response.status_code, told, response.data), tries=1)


@pytest.fixture
def wire(client: FlaskClient, key: str, instance: Instance) -> Wire:
    token = instance.settings.metrics_token.read_text().strip()
    return Wire(client, {"key": {"x-api-key": key}, "metrics": {"x-metrics-token": token}, None: {}}, instance)


def migrated(wire: Wire) -> str:
    """A migration of the caller's scope that was applied; its id."""
    (scope,) = wire.instance.ledger.directory.scopes()
    desk(wire.instance, scope).route("prices_2026_12", candidate("2026-12-01"))
    return "prices_2026_12"


def submitted(wire: Wire) -> dict[str, str]:
    """A submission for a pilot, with the token that confirms it."""
    made = wire.send(operations.submit_pilot(example_body("submitPilot"))).body
    return {"pilot_id": made["pilot_id"], "token": wire.instance.pilots.token(made["pilot_id"])}


def held(wire: Wire) -> str:
    """A held decision, which the caller's key may resolve from here on."""
    decision_id: str = wire.send(operations.decide(sample_request(**HELD))).body["decision_id"]
    (scope,) = wire.instance.ledger.directory.scopes()
    owner, _ = wire.instance.ledger.directory.create_key(scope, {"resolve"}, None, utc_now())
    wire.secrets["key"] = {"x-api-key": owner}
    return decision_id


@pytest.fixture
def record(wire: Wire) -> dict[str, Any]:
    """A decision about which everything was reported."""
    made: dict[str, Any] = wire.send(operations.decide(sample_request())).body
    wire.send(operations.report_execution(made["decision_id"], EXECUTED))
    wire.send(operations.report_outcome(made["decision_id"], SUCCEEDED))
    wire.send(operations.report_crm_sync(made["decision_id"], {"sync_status": "written"}))
    return made


class TestDocument:
    def test_every_operation_has_one_function_and_every_function_is_an_operation(self) -> None:
        forms = {form.__name__ for others in FORMS.values() for form in others.values()}
        assert set(operations.__all__) == set(map(snake, OPERATIONS)) | forms
        assert len(set(map(snake, OPERATIONS))) == len(OPERATIONS)

    @pytest.mark.parametrize("operation", OPERATIONS)
    def test_a_function_takes_what_the_document_says_and_nothing_else(self, operation: str) -> None:
        found = inspect.signature(function(operation)).parameters
        by_name = {name for name, given in found.items() if given.kind is given.KEYWORD_ONLY}
        assert by_name == {
            NAMES.get(given["name"], given["name"]) for given in parameters(operation) if given["in"] != "path"
        }
        assert {found[name].default for name in by_name} == {None}
        by_place = [given for name, given in found.items() if name not in by_name]
        path = re.findall(r"{(\w+)}", DESCRIBED[operation][0])
        bodies = by_place[len(path) :]
        assert [given.name for given in by_place[: len(path)]] == path
        described = DESCRIBED[operation][2].get("requestBody")
        assert len(bodies) == (described is not None)
        if described is not None:
            assert (bodies[0].default is inspect.Parameter.empty) == described["required"]
        assert function(operation).__doc__

    @pytest.mark.parametrize("operation", OPERATIONS)
    def test_all_that_is_said_lands_where_the_document_has_it(self, operation: str) -> None:
        values, path = positional(operation)
        if "requestBody" in DESCRIBED[operation][2]:
            values.append(example_body(operation))
        said = {
            NAMES.get(given["name"], given["name"]): sample(given)
            for given in parameters(operation)
            if given["in"] != "path"
        }
        call = function(operation)(*values, **{name: value for name, (value, _) in said.items()})
        assert (call.operation, call.method, call.path) == (operation, DESCRIBED[operation][1].upper(), path)
        assert call.query == {given["name"]: sample(given)[1] for given in in_place(operation, "query")}
        headers = {given["name"]: sample(given)[1] for given in in_place(operation, "header")}
        assert call.idempotency_key == headers.pop("x-idempotency-key", None)
        assert {name: value for name, value in call.headers.items() if name != "accept"} == headers
        if "requestBody" in DESCRIBED[operation][2]:
            assert parse_body(call) == values[-1]
        else:
            assert call.body is None

    @pytest.mark.parametrize("operation", OPERATIONS)
    def test_what_is_not_said_is_left_to_the_service(self, operation: str) -> None:
        values = needed(operation)
        call = function(operation)(*values)
        assert call.query == {}
        assert call.headers.keys() <= {"accept"}
        required = DESCRIBED[operation][2].get("requestBody", {}).get("required", False)
        assert (call.body is not None) == required

    @pytest.mark.parametrize("operation", OPERATIONS)
    def test_a_credential_goes_only_where_it_is_needed(self, operation: str) -> None:
        kinds = {"apiKey": "key", "metricsToken": "metrics"}
        needs = {kinds[name] for way in DESCRIBED[operation][2]["security"] for name in way}
        credential = function(operation)(*needed(operation)).credential
        assert needs == (set() if credential is None else {credential})

    @pytest.mark.parametrize("operation", OPERATIONS)
    def test_the_statuses_with_the_body_of_an_answer_are_accepted_and_no_others(self, operation: str) -> None:
        answers = DESCRIBED[operation][2]["responses"]
        schemas = {
            int(status): [media["schema"] for media in answer.get("content", {}).values()]
            for status, answer in answers.items()
        }
        alike = tuple(status for status, found in schemas.items() if found == schemas[GOOD.get(operation, 200)])
        call = function(operation)(*needed(operation))
        assert call.accepts == alike
        assert call.repeatable

    @pytest.mark.parametrize("operation", OPERATIONS)
    def test_the_annotation_is_the_type_of_the_schema_that_is_answered(self, operation: str) -> None:
        (media_type, media), *_ = DESCRIBED[operation][2]["responses"][str(GOOD.get(operation, 200))]["content"].items()
        told = get_overloads(function(operation)) or [function(operation)]
        # Only type checkers read the types; a program need not wait for them.
        names = {**vars(inspect.getmodule(told[0])), **vars(client_types)}
        types = [get_args(get_type_hints(one, names)["return"])[0] for one in told]
        call = function(operation)(*needed(operation))
        assert call.headers.get("accept", "application/json") == media_type
        assert (call.read is calls.text) == (media_type != "application/json") == (types == [str])
        answered = media["schema"].get("anyOf", [media["schema"]])
        named = [one["$ref"].partition(".schema.json") for one in answered if "$ref" in one]
        if named:
            pointers = {(ROOTS[one][0], pointer) for one in types for pointer in ROOTS[one][1]}
            assert pointers == {(name, pointer.removeprefix("#")) for name, _, pointer in named}
        else:
            assert types in ([str], [dict[str, Any]])

    def test_an_operation_that_answers_in_several_forms_has_a_function_for_each(self) -> None:
        several = {
            name: list(told["responses"]["200"]["content"])[1:]
            for name, (_, _, told) in DESCRIBED.items()
            if len(told["responses"].get("200", {}).get("content", {})) > 1
        }
        assert {name: list(others) for name, others in FORMS.items()} == several
        for name, others in FORMS.items():
            first = function(name)(*needed(name))
            for media_type, form in others.items():
                call = form(*needed(name), request_id="trace-1")
                assert (call.operation, call.method, call.path) == (name, first.method, first.path)
                assert call.headers == {"accept": media_type, "x-request-id": "trace-1"}
                assert call.read is calls.text
                assert inspect.signature(form).parameters == inspect.signature(function(name)).parameters


class TestPaths:
    @pytest.mark.parametrize("operation", [name for name in OPERATIONS if "{" in DESCRIBED[name][0]])
    def test_an_id_that_leads_elsewhere_is_refused(self, operation: str) -> None:
        values = needed(operation)
        for place, name in enumerate(re.findall(r"{(\w+)}", DESCRIBED[operation][0])):
            for hostile in ("", ".", "..", "/", "../status", "a/b", "x/packet", "\ud800"):
                with pytest.raises(RequestRefused, match=name) as refused:
                    function(operation)(*values[:place], hostile, *values[place + 1 :])
                assert [fault.field for fault in refused.value.errors] == [name]
                assert refused.value.message.endswith(".")

    @pytest.mark.parametrize("operation", [name for name in OPERATIONS if "{decision_id}" in DESCRIBED[name][0]])
    def test_the_names_of_other_endpoints_are_no_decisions(self, operation: str) -> None:
        words = {path.split("/")[3] for path in DOCUMENT["paths"] if path.startswith("/api/decision/")}
        for word in words - {"{decision_id}"}:
            with pytest.raises(RequestRefused, match="another endpoint"):
                function(operation)(word, *needed(operation)[1:])

    def test_whatever_is_sent_as_an_id_reaches_the_endpoint_it_was_meant_for(self, wire: Wire) -> None:
        refused = set()
        for case in cases("hostile_strings"):
            policy_id = case_text(case)
            try:
                call = operations.get_policy_confidence(policy_id)
            except RequestRefused:
                refused.add(case["name"])
                assert "/" in policy_id or policy_id in ("", ".", "..") or re.search("[\ud800-\udfff]", policy_id)
            else:
                assert re.fullmatch(r"/api/decision/policies/[\w.~%-]+/confidence", call.path, re.ASCII)
                assert wire.send(call).body["policy_id"] == policy_id
        assert {"empty", "half a surrogate pair"} <= refused < {case["name"] for case in cases("hostile_strings")}


class TestBodies:
    WRITES: Final = [name for name in OPERATIONS if "requestBody" in DESCRIBED[name][2]]

    @pytest.mark.parametrize("operation", WRITES)
    def test_what_json_does_not_have_is_refused(self, operation: str) -> None:
        for value in FOREIGN:
            with pytest.raises(MaterialRefused) as refused:
                function(operation)(*positional(operation)[0], {"inputs": [value]})
            assert refused.value.code == "SVC_API_JSON_INVALID"

    @pytest.mark.parametrize("body", [[], [("mode", "rulebook")], "{}", 1, True])
    def test_what_is_no_object_is_refused(self, body: Any) -> None:
        with pytest.raises(MaterialRefused, match="mapping"):
            operations.decide(body)

    def test_a_body_is_sent_as_canonical_json(self) -> None:
        call = operations.decide({"b": 10.0, "a": ("é", 2**53 - 1, 1e-7), "context": {}})
        assert call.body == '{"a":["é",9007199254740991,1e-7],"b":10,"context":{}}'.encode()

    def test_a_body_that_is_changed_later_is_sent_as_it_was(self) -> None:
        request = sample_request()
        call = operations.decide(request)
        request["context"]["inputs"]["discount_percent"] = 90
        assert parse_body(call) == sample_request()


class TestIdempotency:
    WRITES: Final[list[Callable[..., Call[Any]]]] = [
        operations.decide,
        *(
            lambda body, report=report, **said: report(ID, body, **said)
            for report in (operations.report_execution, operations.report_outcome, operations.report_crm_sync)
        ),
    ]

    @pytest.mark.parametrize("write", WRITES)
    def test_a_write_without_a_key_is_given_one_of_its_own(self, write: Callable[..., Call[Any]]) -> None:
        made = [write({}).idempotency_key for _ in range(50)]
        assert len(set(made)) == 50
        assert all(re.fullmatch(r"idem_[0-9a-f]{32}", str(key)) for key in made)

    @pytest.mark.parametrize("write", WRITES)
    @pytest.mark.parametrize("key", ["a", "x" * 300, "order 77, again", "~!@#$%^&*()"])
    def test_a_callers_own_key_is_sent_as_it_is(self, write: Callable[..., Call[Any]], key: str) -> None:
        assert write({}, idempotency_key=key).idempotency_key == key

    @pytest.mark.parametrize("write", WRITES)
    @pytest.mark.parametrize("key", ["", "x" * 301, "é", "a\r\nx-evil: 1", "a\n", "\0", "\t", "\x7f", " ", " a", "a "])
    def test_a_key_that_cannot_be_sent_is_refused(self, write: Callable[..., Call[Any]], key: str) -> None:
        with pytest.raises(RequestRefused, match="idempotency_key"):
            write({}, idempotency_key=key)

    def test_the_longest_key_is_the_one_of_the_document(self) -> None:
        schema = DOCUMENT["components"]["parameters"]["x-idempotency-key"]["schema"]
        assert len(building.retry_handle("x" * schema["maxLength"])) == schema["maxLength"]
        with pytest.raises(RequestRefused):
            building.retry_handle("x" * (schema["maxLength"] + 1))


class TestArguments:
    @pytest.mark.parametrize("request_id", ["", "a b", "a\r\nx-evil: 1", "a\n", "é", "x" * 161])
    def test_a_trace_id_that_would_not_be_echoed_is_refused(self, request_id: str) -> None:
        with pytest.raises(RequestRefused, match="request_id"):
            operations.get_livez(request_id=request_id)

    @pytest.mark.parametrize("view", ["", "FULL", "full\r\nx-evil: 1"])
    def test_a_view_that_does_not_exist_is_refused(self, view: Any) -> None:
        with pytest.raises(RequestRefused, match="minimal, standard, full"):
            operations.get_decision(ID, view=view)

    @pytest.mark.parametrize(
        ("moment", "sent"),
        [
            (datetime(2026, 1, 31, 12, tzinfo=UTC), "2026-01-31T12:00:00.000Z"),
            (datetime(2026, 1, 31, 12, 0, 0, 1, UTC), "2026-01-31T12:00:00.001Z"),
            (datetime(2026, 1, 31, 12, 0, 0, 999_001, UTC), "2026-01-31T12:00:01.000Z"),
            (datetime(2026, 1, 31, 12, tzinfo=timezone(timedelta(hours=-5))), "2026-01-31T17:00:00.000Z"),
            ("2026-01-31 13:00+01:00", "2026-01-31 13:00+01:00"),
        ],
    )
    def test_a_moment_is_told_in_utc_and_a_text_as_it_is(self, moment: datetime | str, sent: str) -> None:
        assert operations.find_decisions(from_=moment, to=moment).query == {"from": sent, "to": sent}

    @pytest.mark.parametrize(
        "moment",
        [datetime(2026, 1, 31), datetime.max.replace(tzinfo=timezone(timedelta(hours=-1)))],  # noqa: DTZ001
    )
    def test_a_moment_that_is_none_in_utc_is_refused(self, moment: datetime) -> None:
        for name in ("from_", "to"):
            with pytest.raises(RequestRefused) as refused:
                operations.find_decisions(**{name: moment})  # type: ignore[arg-type]
            assert [fault.field for fault in refused.value.errors] == [name.rstrip("_")]

    def test_a_filter_that_cannot_be_sent_is_refused_and_never_left_out(self) -> None:
        with pytest.raises(RequestRefused, match="reason_code"):
            operations.find_decisions(reason_code="\ud800")
        assert operations.find_decisions(reason_code="", limit=0).query == {"reason_code": "", "limit": "0"}


@pytest.mark.parametrize("call", [operations.get_status(), operations.get_readyz()], ids=lambda call: str(call.path))
def test_whoever_answers_503_without_being_asked_for_readiness_is_not_believed(call: Call[Any]) -> None:
    told = {"ok": False, "status": "degraded"}
    assert read_answer(call, RawAnswer(503, {}, json.dumps(told).encode()), tries=1).body == told
    for content in (b'{"error":"no upstream"}', b"<html>", b"[]"):
        with pytest.raises(AnswerUnusable):
            read_answer(call, RawAnswer(503, {}, content), tries=1)


SCENARIOS: Final = {
    "scenarios": [{"scenario_id": "s-1", "label": "Less", "context_patch": {"inputs": {"margin_percent": 1}}}]
}
TICKET: Final[RefundWorkflowRequest] = {"vendor": "Steam", "days_since_purchase": 3, "ticket_id": "T-1"}

ROUND_TRIPS: Final[dict[str, Callable[[dict[str, Any], Wire], Call[Any]]]] = {
    "decide": lambda record, wire: operations.decide(sample_request(), idempotency_key="k", request_id="trace-1"),
    "tryDecide": lambda record, wire: operations.try_decide(sample_request(), view="standard"),
    "askRefundWorkflow": lambda record, wire: operations.ask_refund_workflow("zendesk", TICKET, idempotency_key="t"),
    "findDecisions": lambda record, wire: operations.find_decisions(
        verdict="yes",
        policy_id="pricing_exception",
        policy_version=record["policy_version"],
        reason_code=record["reason_code"],
        target_object_id="deal-1042",
        from_=datetime(2020, 1, 1, tzinfo=UTC),
        to="2199-01-01T00:00:00+01:00",
        state="held",
        owner="pricing desk",
        min_age=60,
        order="oldest",
        limit=5,
    ),
    "getDecision": lambda record, wire: operations.get_decision(record["decision_id"], view="minimal"),
    "verifyStoredDecision": lambda record, wire: operations.verify_stored_decision(record["decision_id"]),
    "verifySuppliedRecord": lambda record, wire: operations.verify_supplied_record(record["decision_id"], record),
    "describeVerification": lambda record, wire: operations.describe_verification(),
    "verifyExportedRecord": lambda record, wire: operations.verify_exported_record(
        {"record": record, "input": sample_request()}
    ),
    "describePacketVerification": lambda record, wire: operations.describe_packet_verification(),
    "verifyExportedPacket": lambda record, wire: operations.verify_exported_packet(
        {"packet": wire.send(operations.export_packet(record["decision_id"])).body}
    ),
    "exportPacket": lambda record, wire: operations.export_packet(
        record["decision_id"],
        include_input=True,
        include_chain=True,
        include_intelligence=False,
        execution_limit=1,
        outcome_limit=1,
        chain_limit=10,
    ),
    "replayDecision": lambda record, wire: operations.replay_decision(record["decision_id"], view="standard"),
    "diffDecision": lambda record, wire: operations.diff_decision(record["decision_id"], {"input": sample_request()}),
    "simulateCounterfactuals": lambda record, wire: operations.simulate_counterfactuals(
        record["decision_id"], SCENARIOS
    ),
    "reportExecution": lambda record, wire: operations.report_execution(record["decision_id"], EXECUTED),
    "listExecutions": lambda record, wire: operations.list_executions(record["decision_id"], limit=1, cursor="99"),
    "reportOutcome": lambda record, wire: operations.report_outcome(record["decision_id"], SUCCEEDED),
    "listOutcomes": lambda record, wire: operations.list_outcomes(record["decision_id"], limit=1, cursor="99"),
    "reportCrmSync": lambda record, wire: operations.report_crm_sync(record["decision_id"], {"sync_status": "written"}),
    "listCrmSyncs": lambda record, wire: operations.list_crm_syncs(record["decision_id"], limit=1, cursor="99"),
    "resolveDecision": lambda record, wire: operations.resolve_decision(held(wire), GRANT),
    "getResolution": lambda record, wire: operations.get_resolution(record["decision_id"]),
    "getChain": lambda record, wire: operations.get_chain(record["audit_chain"]["chain_id"], limit=3),
    "getCheckpoint": lambda record, wire: operations.get_checkpoint(record["audit_chain"]["chain_id"]),
    "getPolicyConfidence": lambda record, wire: operations.get_policy_confidence(
        "pricing_exception",
        policy_version=record["policy_version"],
        verdict="yes",
        action=record["action"],
        limit=10,
        min_sample=1,
    ),
    "getPolicyEffectiveness": lambda record, wire: operations.get_policy_effectiveness(
        "pricing_exception", policy_version=record["policy_version"], limit=10, min_sample=1
    ),
    "getPolicyBenchmarks": lambda record, wire: operations.get_policy_benchmarks(
        "pricing_exception",
        policy_version=record["policy_version"],
        limit=10,
        min_cohort_scopes=10,
        min_cohort_decisions=100,
    ),
    "getPolicyAnomalies": lambda record, wire: operations.get_policy_anomalies(
        "pricing_exception",
        policy_version=record["policy_version"],
        limit=10,
        min_sample=1,
        threshold=0.1,
        max_items=5,
    ),
    "getPolicyAlerts": lambda record, wire: operations.get_policy_alerts(open_days=30),
    "getPolicyAlertsFeed": lambda record, wire: operations.get_policy_alerts_feed(open_days=30),
    "getStatus": lambda record, wire: operations.get_status(),
    "listRoutes": lambda record, wire: operations.list_routes(rulebook_id="pricing_exception", limit=5),
    "listMigrations": lambda record, wire: operations.list_migrations(
        state="applied", limit=5, cursor="mig_ffffffffffffffffffffffffffffffff"
    ),
    "getMigration": lambda record, wire: operations.get_migration(migrated(wire)),
    "getMigrationReport": lambda record, wire: operations.get_migration_report(migrated(wire)),
    "listReceiptKeys": lambda record, wire: operations.list_receipt_keys(),
    "listAttestationKeys": lambda record, wire: operations.list_attestation_keys(),
    "listPolicyBundles": lambda record, wire: operations.list_policy_bundles(),
    "getRulebook": lambda record, wire: operations.get_rulebook(
        hash=record["policy_hash"], rulebook_id="pricing_exception", version=record["policy_version"]
    ),
    "listPolicyPatterns": lambda record, wire: operations.list_policy_patterns(tag="refund"),
    "listTrustedAdapters": lambda record, wire: operations.list_trusted_adapters(),
    "listPolicySources": lambda record, wire: operations.list_policy_sources(),
    "getPolicyTable": lambda record, wire: operations.get_policy_table("refund"),
    "getPolicySource": lambda record, wire: operations.get_policy_source("refund_policy", "2026-02-01"),
    "listSchemas": lambda record, wire: operations.list_schemas(),
    "getSchema": lambda record, wire: operations.get_schema("rulebook-v1"),
    "listConformanceFixtures": lambda record, wire: operations.list_conformance_fixtures(),
    "getConformanceFixture": lambda record, wire: operations.get_conformance_fixture("direct_approval"),
    "listGoldenReplays": lambda record, wire: operations.list_golden_replays(),
    "getGoldenReplays": lambda record, wire: operations.get_golden_replays("operators"),
    "getLivez": lambda record, wire: operations.get_livez(),
    "getReadyz": lambda record, wire: operations.get_readyz(),
    "getMetrics": lambda record, wire: operations.get_metrics(),
    "getRuntimeConfig": lambda record, wire: operations.get_runtime_config(),
    "getProofMetrics": lambda record, wire: operations.get_proof_metrics(),
    "submitPilot": lambda record, wire: operations.submit_pilot(example_body("submitPilot")),
    "confirmPilot": lambda record, wire: operations.confirm_pilot(submitted(wire)),
    "exportPilots": lambda record, wire: operations.export_pilots(),
    "getOpenapi": lambda record, wire: operations.get_openapi(),
    "getDocs": lambda record, wire: operations.get_docs(),
    "getDocsMetadata": lambda record, wire: operations.get_docs_metadata(),
}


class TestService:
    @pytest.mark.parametrize("operation", OPERATIONS)
    def test_the_service_answers_what_the_document_says(
        self, wire: Wire, record: dict[str, Any], operation: str
    ) -> None:
        call = ROUND_TRIPS[operation](record, wire)
        answer = wire.send(call)
        path, method, _ = DESCRIBED[operation]
        media, *_ = SERVED["paths"][path][method]["responses"][str(answer.status)]["content"].values()
        schema = {**media["schema"], "components": SERVED["components"]}
        jsonschema.Draft202012Validator(schema).validate(answer.body)
        assert answer.status == (201 if operation.startswith(("report", "resolve")) else GOOD.get(operation, 200))
        assert answer.request_id == call.headers.get("x-request-id", answer.request_id)

    def test_a_page_is_answered_as_text(self, wire: Wire) -> None:
        migration_id = migrated(wire)
        page = wire.send(operations.get_migration_report_markdown(migration_id))
        assert page.body.startswith("# Migration ")
        assert page.headers["content-type"] == "text/markdown; charset=utf-8"
        page = wire.send(operations.get_migration_report_html(migration_id))
        assert page.body.startswith("<!doctype html>")

    def test_one_that_is_asked_for_is_answered_alone(self, wire: Wire) -> None:
        bundles = wire.send(operations.list_policy_bundles()).body["policy_bundles"]
        one = wire.send(operations.list_policy_bundles(hash=bundles[0]["policy_hash"])).body
        assert one == {"policy_bundle_entry": bundles[0]}
        patterns = wire.send(operations.list_policy_patterns()).body["patterns"]
        alone = wire.send(operations.list_policy_patterns(pattern_id=patterns[0]["pattern_id"])).body
        assert alone == {"policy_pattern": patterns[0]}

    def test_a_call_that_is_sent_twice_is_answered_once(self, wire: Wire, record: dict[str, Any]) -> None:
        decision_id = record["decision_id"]
        for call in (
            operations.decide(sample_request()),
            operations.report_execution(decision_id, EXECUTED),
            operations.report_outcome(decision_id, SUCCEEDED),
            operations.report_crm_sync(decision_id, {"sync_status": "written"}),
        ):
            first, again = wire.send(call), wire.send(call)
            assert (first.replayed, again.replayed, again.body) == (False, True, first.body)

    def test_what_was_answered_verifies(self, wire: Wire, record: dict[str, Any]) -> None:
        decision_id = record["decision_id"]
        packet = wire.send(operations.export_packet(decision_id, include_input=True)).body
        for call in (
            operations.verify_stored_decision(decision_id),
            operations.verify_supplied_record(decision_id),
            operations.verify_supplied_record(decision_id, {"record": record, "input": sample_request()}),
            operations.verify_exported_record(record),
            operations.verify_exported_packet(packet),
        ):
            assert wire.send(call).body["verified"] is True

    def test_pages_are_followed_by_their_cursor(self, wire: Wire, record: dict[str, Any]) -> None:
        wire.send(operations.decide(sample_request()))
        first = wire.send(operations.find_decisions(limit=1)).body
        second = wire.send(operations.find_decisions(limit=1, cursor=first["next_cursor"])).body
        assert [page["count"] for page in (first, second)] == [1, 1]
        assert second["decisions"][0]["decision_id"] == record["decision_id"]

    def test_a_packet_leaves_out_what_was_not_asked_for(self, wire: Wire, record: dict[str, Any]) -> None:
        export = operations.export_packet(record["decision_id"], include_chain=False, include_intelligence=False)
        packet = wire.send(export).body
        assert not {"audit_chain", "policy_intelligence", "input"} & packet.keys()

    def test_an_endpoint_that_needs_a_credential_is_not_answered_without(self, wire: Wire) -> None:
        bare = Wire(wire.client, {credential: {} for credential in wire.secrets}, wire.instance)
        for operation in OPERATIONS:
            call = function(operation)(*needed(operation))
            # A help desk may ask without a key, and then hears what the policy says.
            if call.credential is not None and operation != "askRefundWorkflow":
                with pytest.raises(GateError, match="UNAUTHORIZED"):
                    bare.send(call)
