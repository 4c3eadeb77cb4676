"""What stands beside an answer or in a refusal, for a model that may have overlooked something."""

from __future__ import annotations

from typing import Any, Final

import pytest
from flask.testing import FlaskClient

from api.mcp.agents.server import agents_server
from gate.clock import utc_now
from gate.instance.instance import Instance
from gate.ledger.access.authority import Scope
from tests.api.deciding import chain_size
from tests.api.mcp.messages import call, notes, send
from tests.support.samples import sample_request

REPLAYED: Final = (
    "The idempotency key was used before with this request, and this is the record from that time. Its action may have "
    "been performed already: find out before you act."
)
NO_TARGET: Final = (
    "This yes has no target, so it allows no specific action: do not act on it. Send a request with "
    "context.target_system and context.target_object_id."
)
BREACH: Final = (
    "The decision was not a binding yes. If its action was performed, this is a breach: tell the owner of the action."
)
ANOTHER_TARGET: Final = (
    "The report states another target or action than the decision, so the decision does not allow it. If it was "
    "performed, tell the owner of the action."
)
ANOTHER_ACTION: Final = (
    "action_taken is not the action of the decision, so the decision does not allow it. If it was performed, tell "
    "the owner of the action."
)
UNNAMED: Final = (
    "The report does not state its target, so action_binding_match is false. Send action_binding, or target_system and "
    "target_object_id, with a report."
)
TARGET: Final = {"target_system": "crm", "target_object_id": "deal-1042"}


def message(client: FlaskClient, key: str, tool: str, arguments: dict[str, Any]) -> str:
    """What a refusal says."""
    found: str = call(client, key, tool, arguments, refused=True)["message"]
    return found


class TestDecide:
    def without_target(self, **context: object) -> dict[str, Any]:
        request = sample_request()
        for name in TARGET:
            del request["context"][name]
        request["context"] |= context
        return {"request": request}

    def test_a_usual_yes_has_no_notes(self, client: FlaskClient, key: str) -> None:
        assert notes(client, key, "decide", {"request": sample_request()}) == []

    def test_the_same_record_again_is_no_fresh_yes(self, client: FlaskClient, key: str) -> None:
        arguments = {"request": sample_request(), "idempotency_key": "order-1"}
        assert notes(client, key, "decide", arguments) == []
        assert notes(client, key, "decide", arguments) == [REPLAYED]

    def test_a_misspelt_target_is_named(self, client: FlaskClient, key: str) -> None:
        arguments = self.without_target(target_sytem="crm", target_objectid="deal-1042")
        assert call(client, key, "decide", arguments)["verdict"] == "yes"
        assert notes(client, key, "decide", arguments) == [
            "context.target_sytem is not part of the action binding; did you mean target_system? "
            "context.target_objectid is not part of the action binding; did you mean target_object_id?",
            NO_TARGET,
        ]

    def test_a_yes_without_a_target_says_so(self, client: FlaskClient, key: str) -> None:
        assert notes(client, key, "decide", self.without_target()) == [NO_TARGET]
        assert notes(client, key, "decide", self.without_target(target_system="", target_object_id="")) == [NO_TARGET]
        assert notes(client, key, "decide", self.without_target(target_object_id="deal-1042")) == []

    def test_what_is_no_yes_needs_no_target(self, client: FlaskClient, key: str) -> None:
        request = sample_request(margin_percent=9, discount_percent=10)
        for name in TARGET:
            del request["context"][name]
        assert notes(client, key, "decide", {"request": request}) == []


class TestReports:
    def decided(self, client: FlaskClient, key: str, **facts: object) -> str:
        request = sample_request(**facts) if facts else sample_request()
        decision_id: str = call(client, key, "decide", {"request": request})["decision_id"]
        return decision_id

    def test_a_report_in_order_has_no_notes(self, client: FlaskClient, key: str) -> None:
        arguments = {"decision_id": self.decided(client, key), "report": {"execution_status": "executed", **TARGET}}
        assert call(client, key, "report_execution", arguments)["action_binding_match"] is True
        assert notes(client, key, "report_execution", arguments) == []

    @pytest.mark.parametrize(
        ("facts", "report", "expected"),
        [
            ({"margin_percent": 9, "discount_percent": 10}, TARGET, [BREACH]),
            ({"margin_percent": 22, "discount_percent": 40}, TARGET, [BREACH]),
            ({}, {**TARGET, "target_object_id": "deal-1"}, [ANOTHER_TARGET]),
            ({}, {**TARGET, "action_taken": "wire_money"}, [ANOTHER_ACTION]),
            ({}, {}, [UNNAMED]),
            ({"margin_percent": 9, "discount_percent": 10}, {"action_taken": "x"}, [BREACH, ANOTHER_ACTION, UNNAMED]),
        ],
    )
    def test_each_flag_of_a_receipt_is_a_sentence(
        self, client: FlaskClient, key: str, facts: dict[str, Any], report: dict[str, Any], expected: list[str]
    ) -> None:
        decision_id = self.decided(client, key, **facts)
        arguments = {"decision_id": decision_id, "report": {"execution_status": "executed", **report}}
        assert notes(client, key, "report_execution", arguments) == expected

    def test_every_flag_that_a_receipt_can_have_has_a_sentence(self) -> None:
        from api.mcp.agents.tools import _FLAGS
        from gate.encoding import resources

        flags = resources.schema("execution-receipt")["properties"]["flags"]["items"]["enum"]
        assert list(_FLAGS) == flags


class TestRefusals:
    @pytest.mark.parametrize(
        ("tool", "arguments", "expected"),
        [
            (
                "decide",
                {"reqest": {}},
                "reqest: It is unknown here; check its spelling or remove it. request: It is missing; add it.",
            ),
            ("decide", sample_request(), "move mode, rulebook and context into request."),
            ("decide", {"request": {}, "mode": "rulebook"}, "move mode into request."),
            (
                "report_execution",
                {"decision_id": "dec_1", "execution_status": "executed", "target_system": "crm"},
                "move execution_status and target_system into report.",
            ),
            (
                "report_outcome",
                {"decision_id": "dec_1", "outcome_status": "failed"},
                "move outcome_status into report.",
            ),
            ("explain", {}, "decision_id: It is missing; add it."),
            ("verify", {}, "send decision_id, record, or both."),
            ("verify", {"input": sample_request()}, "send decision_id, record, or both."),
            (
                "list_rulebooks",
                {"a": 1, "b": 1, "c": 1, "d": 1, "e": 1},
                "a: It is unknown here; check its spelling or remove it. "
                "b: It is unknown here; check its spelling or remove it. "
                "c: It is unknown here; check its spelling or remove it. 2 more are in errors.",
            ),
        ],
    )
    def test_arguments_that_do_not_fit_are_refused_with_what_to_change(
        self, client: FlaskClient, key: str, tool: str, arguments: dict[str, Any], expected: str
    ) -> None:
        assert message(client, key, tool, arguments) == f"The arguments do not fit this tool: {expected}"

    @pytest.mark.parametrize(
        "handle", ["", "x" * 301, "caf\u00e9", "order-1\n"], ids=["empty", "long", "no ASCII", "line"]
    )
    def test_an_idempotency_key_is_named_as_the_tool_names_it(
        self, client: FlaskClient, key: str, instance: Instance, scope: Scope, handle: str
    ) -> None:
        expected = (
            "The arguments do not fit this tool: idempotency_key: It must be 1 to 300 printable ASCII characters; use "
            "a simpler key."
        )
        assert message(client, key, "decide", {"request": sample_request(), "idempotency_key": handle}) == expected
        assert chain_size(instance, scope) == 0
        decision_id = call(client, key, "decide", {"request": sample_request()})["decision_id"]
        report = {"decision_id": decision_id, "report": {"execution_status": "executed"}, "idempotency_key": handle}
        assert message(client, key, "report_execution", report) == expected
        assert chain_size(instance, scope) == 1

    def test_a_key_that_may_not_register_is_not_asked_for_a_stronger_one(
        self, client: FlaskClient, instance: Instance, scope: Scope
    ) -> None:
        key, made = instance.ledger.directory.create_key(scope, frozenset({"decide"}), None, utc_now())
        assert message(client, key, "decide", {"request": sample_request()}) == (
            f"The key {made.key_id} lacks the access 'register' and may not register rulebooks; cite a "
            "registered one in rulebook_ref, or ask the operator."
        )

    @pytest.mark.parametrize(
        ("params", "expected"),
        [
            ({}, "params.name is missing; send the name of a tool from tools/list."),
            ({"name": ["decide"]}, "params.name must be a string; send the name of a tool from tools/list."),
            ({"name": "approve"}, "There is no tool 'approve'; tools/list lists the tools."),
        ],
    )
    def test_a_call_of_no_tool_says_why(
        self, client: FlaskClient, key: str, params: dict[str, Any], expected: str
    ) -> None:
        answer = send(client, key, {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        assert answer.get_json()["error"]["message"] == expected


def test_decide_says_how_a_registered_rulebook_is_named(client: FlaskClient, key: str) -> None:
    description = agents_server().by_name["decide"].description
    assert "rulebook_ref with rulebook_id and version of a registered rulebook (see list_rulebooks)" in description
