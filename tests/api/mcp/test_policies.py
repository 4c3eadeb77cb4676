"""The policy services over HTTP: a verdict whatever is sent, and one line in the log where a table is refused."""

from __future__ import annotations

import json
from io import BytesIO
from typing import Any

import jsonschema
import pytest
from flask.testing import FlaskClient

from api.app import create_app
from api.http.logs import open_log
from api.mcp.policies import policy_server
from gate.instance.instance import Instance
from gate.services.policies import in_force
from gate.services.policies.questions import QUESTIONS, Question
from tests.support.samples import CASES


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are looked at whenever somebody asks."""
    monkeypatch.setattr(in_force, "LOOK_SECONDS", 0.0)


def ask(client: FlaskClient, question: Question, arguments: Any) -> dict[str, Any]:
    params = {"name": question.tool, "arguments": arguments}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    result = client.post(f"/{question.service}/api/mcp", json=message).get_json()["result"]
    assert result["isError"] is False
    answer: dict[str, Any] = result["structuredContent"]
    jsonschema.Draft202012Validator(policy_server(question.service).by_name[question.tool].output_schema).validate(
        answer
    )
    assert json.loads(result["content"][0]["text"]) == answer
    assert result["content"][1]["text"] == answer["message"]
    return answer


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.tool)
@pytest.mark.parametrize(
    ("arguments", "code", "begins"),
    [
        ({}, "VENDOR_UNKNOWN", "Send vendor. The table has "),
        ({"vendor": "nobody", "pln": "final-sale"}, "ARGUMENT_UNKNOWN", "{} has no argument 'pln'. It has vendor, "),
        ({"vendor": ["nobody"]}, "VENDOR_UNKNOWN", "vendor must be text"),
        ({"vendor": "nobody"}, "VENDOR_UNKNOWN", "The policy table of "),
    ],
)
def test_whatever_the_arguments_are_the_answer_says_what_to_send(
    client: FlaskClient, question: Question, arguments: Any, code: str, begins: str
) -> None:
    answer = ask(client, question, arguments)
    assert (answer["verdict"], answer["code"]) == ("UNKNOWN", code)
    assert answer["message"].startswith(begins.format(question.tool))


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.tool)
def test_the_arguments_that_a_tool_lists_are_those_that_it_knows(question: Question) -> None:
    schema: Any = policy_server(question.service).by_name[question.tool].input_schema
    assert set(schema["properties"]) == set(question.arguments)


def test_a_refused_table_has_one_line_in_the_log_whatever_is_asked(instance: Instance) -> None:
    stream = BytesIO()
    client = create_app(instance, log=open_log("warning", stream)).test_client()
    file = instance.settings.policy_tables_directory / "refund.json"
    file.parent.mkdir(exist_ok=True)
    refund = QUESTIONS[0]

    def logged() -> list[dict[str, Any]]:
        return [json.loads(line) for line in stream.getvalue().splitlines()]

    file.write_text("{")
    for _ in range(3):
        ask(client, refund, {"vendor": "north-books", "days_since_purchase": 1})
        file.touch()
    (line,) = logged()
    assert (line["event"], line["level"], line["service"]) == ("policy_table_refused", "warning", "refund")
    assert line["reason"].startswith("refund.json is not active. The file is not a policy table. It is not JSON")
    file.write_bytes((CASES / "policy_tables" / "refund.json").read_bytes())
    assert ask(client, refund, {"vendor": "north-books", "days_since_purchase": 1})["verdict"] == "ALLOWED"
    assert len(logged()) == 1
    file.write_text("{")
    assert ask(client, refund, {"vendor": "north-books", "days_since_purchase": 1})["verdict"] == "ALLOWED"
    assert len(logged()) == 2
