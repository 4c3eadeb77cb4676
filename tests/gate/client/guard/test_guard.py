"""The guard: when a body runs, how often, and what is told of it."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import CheckConstraint, Engine, String, create_engine
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, scoped_session, sessionmaker

from gate.client import (
    AlreadyStarted,
    AsyncClient,
    Blocked,
    Client,
    GateUnavailable,
    HeldForReview,
    Intent,
    Permit,
    Recovery,
    Report,
    SqliteStore,
    State,
    StoreUnavailable,
    Target,
    Undecidable,
)
from gate.client.guard import attempts, entering
from gate.client.guard.recovery import settle
from gate.client.store import sqlalchemy as sqlalchemy_module
from gate.client.store.sqlalchemy import SqlAlchemyStore
from gate.clock import utc_now
from gate.encoding import canonical
from gate.errors import MaterialRefused, OperatorError, RequestRefused
from tests.gate.client.conftest import Service
from tests.gate.client.guarding import YES, dying_in, executions, guarding, runs
from tests.support.samples import sample_rulebook
from tests.support.torture import size

NO = {"discount_percent": 10, "margin_percent": 9}
REVIEW = {"discount_percent": 40, "margin_percent": 40}
FORBIDDEN = YES | {"verdict": "yes", "action": "approve_discount"}


class Base(DeclarativeBase):
    """A shop's tables."""


class Broken(Base):
    """What a database refuses."""

    __tablename__ = "broken"

    name: Mapped[str | None] = mapped_column(String, CheckConstraint("name IS NOT NULL"), primary_key=False)
    number: Mapped[int] = mapped_column(primary_key=True)


@contextmanager
def at(moment: datetime, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        for module in (attempts, entering):
            patch.setattr(module, "utc_now", lambda: moment)
        yield


class TestAYes:
    def test_it_lets_the_body_run_with_the_whole_record_in_the_store(self, gate: Client, store: SqliteStore) -> None:
        with guarding(gate) as permit:
            kept = store.find(permit.intent_id)
            assert kept is not None
            assert kept.state is State.STARTED
            assert kept.record == permit.record
        assert gate.verify(permit.record, request=permit.intent.request).verified
        assert permit.action == "approve_discount"

    def test_its_request_has_the_action_the_target_and_the_facts(self, gate: Client) -> None:
        permit = runs(
            gate, target=Target("crm", "deal-7", "discount.update"), context={"amount": 12.5, "workflow": "pricing"}
        )
        context = permit.intent.request["context"]
        assert context["inputs"] == YES
        assert context["workflow"] == "pricing"
        assert permit.record["action_binding"] == {
            "system": "crm",
            "resource": "deal-7",
            "proposed_action": "approve_discount",
            "mutation": "discount.update",
            "amount": 12.5,
        }

    def test_its_run_is_reported_with_the_binding_that_was_decided(self, gate: Client, store: SqliteStore) -> None:
        permit = runs(gate)
        (receipt,) = executions(gate, permit)
        assert receipt["execution_status"] == "executed"
        assert receipt["action_binding_match"] is True
        assert receipt["decision_record_hash"] == permit.record["record_hash"]
        kept = store.find(permit.intent_id)
        assert kept is not None
        assert kept.state is State.REPORTED

    def test_what_the_body_says_of_itself_is_in_the_receipt(self, gate: Client) -> None:
        with guarding(gate) as permit:
            permit.describe(
                status="queued",
                result="sent to the printer",
                action_taken="queue_discount",
                external_ref="tx-1",
                state_before_hash="sha256:0",
                state_after_hash="sha256:1",
                state_before_ref="s3://before",
                state_after_ref="s3://after",
                evidence_refs=["log-1"],
                executor={"type": "service", "id": "billing"},
            )
        (receipt,) = executions(gate, permit)
        assert receipt["execution_status"] == "queued"
        assert receipt["execution_result"] == "sent to the printer"
        assert receipt["action_taken"] == "queue_discount"
        assert receipt["external_ref"] == "tx-1"
        assert receipt["state_before_hash"] == "sha256:0"
        assert receipt["state_after_hash"] == "sha256:1"
        assert receipt["state_before_ref"] == "s3://before"
        assert receipt["state_after_ref"] == "s3://after"
        assert receipt["evidence_refs"] == ["log-1"]
        assert receipt["executor"] == {"type": "service", "id": "billing"}

    @pytest.mark.parametrize(
        "said",
        [
            {"status": "done"},
            {"result": ""},
            {"result": "x" * 2001},
            {"action_taken": "x" * 201},
            {"external_ref": ""},
            {"external_ref": 7},
            {"evidence_refs": []},
            {"evidence_refs": "abc"},
            {"executor": "billing"},
            {"evidence_refs": ["x"] * 65},
            {"evidence_refs": [""]},
            {"executor": {"type": "service"}},
            {"executor": {"type": "service", "id": ""}},
            {"state_after_ref": "x" * 501},
            {"state_after_hash": "\ud800"},
        ],
    )
    def test_what_the_service_would_refuse_of_a_receipt_is_refused_at_once(
        self, gate: Client, said: dict[str, Any]
    ) -> None:
        with guarding(gate) as permit:
            with pytest.raises(RequestRefused) as refused:
                permit.describe(**said)
            assert [fault.field.partition("[")[0] for fault in refused.value.errors]
        assert executions(gate, permit)[0]["execution_status"] == "executed"

    def test_a_body_that_fails_is_reported_by_the_type_of_its_error_and_the_error_goes_on(self, gate: Client) -> None:
        with pytest.raises(ZeroDivisionError), guarding(gate) as permit:
            raise ZeroDivisionError("the card of Mrs Smith was refused")
        (receipt,) = executions(gate, permit)
        assert receipt["execution_status"] == "failed"
        assert receipt["execution_result"] == "raised ZeroDivisionError"
        assert "Smith" not in json.dumps(receipt)

    @pytest.mark.parametrize("name", ["E" * 2500, "E\ud800"])
    def test_the_name_of_an_error_spoils_no_receipt(self, gate: Client, name: str) -> None:
        kind = type("E", (Exception,), {})
        kind.__qualname__ = name
        with pytest.raises(kind), guarding(gate) as permit:
            raise kind
        assert executions(gate, permit)[0]["execution_status"] == "failed"

    def test_ctrl_c_in_the_body_is_reported_as_well(self, gate: Client) -> None:
        with pytest.raises(KeyboardInterrupt), guarding(gate) as permit:
            raise KeyboardInterrupt
        assert executions(gate, permit)[0]["execution_result"] == "raised KeyboardInterrupt"

    def test_outcomes_follow_in_the_order_in_which_they_were_told(self, gate: Client) -> None:
        permit = runs(gate)
        permit.outcome("pending")
        permit.outcome(
            "succeeded",
            metrics={"refund_eur": 49.9, "hours": 2},
            executed=True,
            external_ref="r-1",
            evidence_refs=["e"],
        )
        gate.flush()
        latest, first = gate.list_outcomes(permit.decision_id)["outcomes"]
        assert [first["outcome_status"], latest["outcome_status"]] == ["pending", "succeeded"]
        assert latest["observed_metrics"] == {"refund_eur": 49.9, "hours": 2}
        assert latest["action_executed"] is True

    def test_once_the_body_has_ended_nothing_more_is_said_of_it(self, gate: Client) -> None:
        permit = runs(gate)
        for ended in (permit, gate.recall(permit.intent_id)):
            with pytest.raises(RuntimeError, match="has ended"):
                ended.describe(external_ref="tx-1")

    def test_its_intent_is_the_started_attempt_as_it_is_kept(self, gate: Client, store: SqliteStore) -> None:
        with guarding(gate) as permit:
            assert permit.intent == store.find(permit.intent_id)

    @pytest.mark.parametrize(
        "said",
        [
            {"status": "great"},
            {"executed": "yes"},
            {"evidence_refs": "abc"},
            {"metrics": ["x"]},
            {"metrics": {"x": "1"}},
            {"metrics": {"x": True}},
            {"metrics": {"x" * 121: 1}},
            {"metrics": {str(number): 1 for number in range(65)}},
            {"external_ref": ""},
            {"reference": "r-1"},
        ],
    )
    def test_an_outcome_that_the_service_would_refuse_is_refused_at_once(
        self, gate: Client, said: dict[str, Any]
    ) -> None:
        permit = runs(gate)
        with pytest.raises(RequestRefused):
            permit.outcome(**({"status": "succeeded"} | said))

    def test_a_metric_that_is_not_finite_is_refused(self, gate: Client) -> None:
        permit = runs(gate)
        with pytest.raises(RequestRefused, match=r"metrics\.x must be a finite number"):
            permit.outcome("succeeded", metrics={"x": float("inf")})

    def test_what_the_body_does_to_what_it_was_given_changes_no_receipt(self, gate: Client) -> None:
        refs: list[Any] = ["case-1"]
        with guarding(gate) as permit:
            record_hash = permit.record["record_hash"]
            permit.describe(evidence_refs=refs)
            refs.append(object())
            vars(permit)["record"].clear()
        (receipt,) = executions(gate, permit)
        assert receipt["evidence_refs"] == ["case-1"]
        assert receipt["decision_record_hash"] == record_hash

    @pytest.mark.parametrize(
        ("said", "named"),
        [
            ({"result": "Authorization: Bearer abcdefgh12345678"}, "result"),
            ({"external_ref": "https://user:secret@bank.example/7"}, "external_ref"),
            ({"evidence_refs": ["case-1", "https://me@bank.example"]}, "evidence_refs[1]"),
            ({"executor": {"type": "worker", "id": "password=hunter2"}}, "executor.id"),
        ],
    )
    def test_what_looks_like_a_credential_is_not_taken_into_a_report(
        self, gate: Client, said: dict[str, Any], named: str
    ) -> None:
        with guarding(gate) as permit:
            with pytest.raises(RequestRefused, match="looks like a credential") as refused:
                permit.describe(**said)
            assert [fault.field for fault in refused.value.errors] == [named]
        with pytest.raises(RequestRefused, match="looks like a credential"):
            permit.outcome("succeeded", external_ref="https://user:secret@bank.example/7")
        (receipt,) = executions(gate, permit)
        assert receipt["execution_status"] == "executed"

    def test_a_guard_is_entered_once(self, gate: Client) -> None:
        once = guarding(gate)
        with once:
            pass
        with pytest.raises(RuntimeError, match="entered only once"), once:
            pass


class TestAnythingElse:
    def test_a_no_blocks_with_the_record(self, gate: Client, store: SqliteStore) -> None:
        with pytest.raises(Blocked) as blocked, guarding(gate, NO):
            raise AssertionError("the body ran")
        assert blocked.value.record is not None
        assert blocked.value.record["reason_code"] == "MARGIN_FLOOR_BREACH"
        kept = store.find(blocked.value.intent_id)
        assert kept is not None
        assert (kept.state, kept.record) == (State.HELD, blocked.value.record)
        assert gate.list_executions(str(blocked.value.decision_id))["executions"] == []

    def test_a_review_holds_with_the_record(self, gate: Client) -> None:
        with pytest.raises(HeldForReview) as held, guarding(gate, REVIEW):
            raise AssertionError("the body ran")
        assert held.value.record is not None
        assert held.value.record["verdict"] == "review"

    def test_a_review_for_want_of_facts_names_them(self, gate: Client) -> None:
        with pytest.raises(HeldForReview, match="margin_percent"), guarding(gate, {"discount_percent": 10}):
            raise AssertionError("the body ran")

    def test_asking_the_same_again_makes_no_second_decision(self, gate: Client, service: Service) -> None:
        ids = set()
        for _ in range(3):
            with pytest.raises(Blocked) as blocked, guarding(gate, NO):
                pass
            ids.add(blocked.value.decision_id)
        assert len(ids) == 1
        assert service.asked("/api/decide") == 1

    def test_other_facts_are_decided_anew(self, gate: Client, store: SqliteStore) -> None:
        with pytest.raises(HeldForReview) as held, guarding(gate, REVIEW):
            pass
        permit = runs(gate)
        assert permit.intent_id == held.value.intent_id
        assert permit.intent.attempt == 2
        assert permit.decision_id != held.value.decision_id

    @pytest.mark.parametrize(
        ("said", "expected"),
        [
            ({"action": "issue_refund"}, "'issue_refund'"),
            ({"outcome_action": "approve_everything"}, "'approve_everything'"),
            ({"outcome_action": ["b", "a"]}, "'a' or 'b'"),
        ],
    )
    def test_a_yes_whose_outcome_approves_another_action_runs_nothing(
        self, gate: Client, said: dict[str, Any], expected: str
    ) -> None:
        for _ in range(2):
            with pytest.raises(GateUnavailable) as refused, guarding(gate, **said):
                raise AssertionError("the body ran")
            assert refused.value.code == "ACTION_UNEXPECTED"
            assert f"The gate approves 'approve_discount', but this guard is for {expected};" in refused.value.message
            assert "pass outcome_action='approve_discount'" in refused.value.message
        assert gate.flush().delivered == 0

    def test_an_action_that_the_rulebook_names_otherwise_runs_under_both_names(self, gate: Client) -> None:
        permit = runs(gate, action="discount", outcome_action=["approve_discount", "other"])
        assert permit.action == "approve_discount"
        assert permit.record["action_binding"]["proposed_action"] == "discount"

    def test_without_a_store_or_a_pinned_key_there_is_no_guard(self, make: Callable[..., Client]) -> None:
        with pytest.raises(OperatorError, match="INTENTS_MISSING"):
            guarding(make(store=None))
        with pytest.raises(OperatorError, match="KEY_REGISTRY_MISSING"):
            guarding(make(registry=None))
        for said in ({"max_age": 0}, {"max_age": "5m"}, {"timeout": 0}, {"timeout": "5"}, {"recover": "x"}):
            with pytest.raises(OperatorError, match="_INVALID"):
                guarding(make(), **said)

    def test_what_the_service_refuses_to_decide_is_told_apart_from_a_service_that_cannot_answer(
        self, gate: Client, service: Service
    ) -> None:
        with pytest.raises(Undecidable, match="forbidden_fields") as refused, guarding(gate, FORBIDDEN):
            raise AssertionError("the body ran")
        assert refused.value.code == "RULEBOOK_OUTPUT_MATERIAL_FORBIDDEN"
        assert refused.value.details == {"forbidden_fields": ["context.inputs.action"]}
        for status, code in ((422, None), (400, "SVC_API_JSON_INVALID"), (503, "SVC_STORAGE_UNAVAILABLE")):
            told = {} if code is None else {"error": code, "message": "It is so."}
            service.rewrite = partial(lambda told, status, *_: httpx.Response(status, json=told), told, status)
            with pytest.raises(GateUnavailable) as unavailable, guarding(gate, target=("crm", f"deal-{status}")):
                raise AssertionError("the body ran")
            assert type(unavailable.value) is GateUnavailable

    def test_an_unusable_key_makes_the_gate_unavailable(self, make: Callable[..., Client]) -> None:
        with pytest.raises(GateUnavailable) as unavailable, guarding(make(key="dgk_ffffffffffff_unknown")):
            raise AssertionError("the body ran")
        assert unavailable.value.code == "SVC_API_UNAUTHORIZED"

    def test_the_refusal_says_when_to_come_again(self, gate: Client, service: Service) -> None:
        service.rewrite = lambda request, response: httpx.Response(
            429, json={"error": "SVC_API_RATE_LIMITED", "message": "Slower."}, headers={"retry-after": "17"}
        )
        with pytest.raises(GateUnavailable) as unavailable, guarding(gate):
            raise AssertionError("the body ran")
        assert unavailable.value.retry_after == 17


class TestOnce:
    def test_a_second_run_of_an_intent_is_refused_with_the_record_and_what_is_known(self, gate: Client) -> None:
        permit = runs(gate)
        with pytest.raises(AlreadyStarted) as already, guarding(gate):
            raise AssertionError("the body ran")
        assert already.value.record == permit.record
        assert already.value.execution is not None
        assert already.value.execution["execution_status"] == "executed"
        assert not already.value.elsewhere

    def test_other_facts_and_the_next_version_of_the_rulebook_are_the_same_intent(self, gate: Client) -> None:
        runs(gate)
        later = {**sample_rulebook(), "version": "2026-07-01"}
        with pytest.raises(AlreadyStarted), guarding(gate, {"discount_percent": 9, "margin_percent": 30}):
            raise AssertionError("the body ran")
        with (
            pytest.raises(AlreadyStarted),
            gate.guard(later, YES, action="approve_discount", target=("crm", "deal-1042")),
        ):
            raise AssertionError("the body ran")

    def test_another_target_action_or_intent_is_another(self, gate: Client) -> None:
        ids = {
            runs(gate).intent_id,
            runs(gate, target=("crm", "deal-1043")).intent_id,
            runs(gate, target=("erp", "deal-1042")).intent_id,
            runs(gate, target=("crm", "deal-1042", "discount.update")).intent_id,
            runs(gate, intent="renewal").intent_id,
            runs(gate, action="approve_other_discount", outcome_action="approve_discount").intent_id,
        }
        assert len(ids) == 6

    @pytest.mark.parametrize(
        ("method", "after"),
        [("hold", False), ("hold", True), ("answer", False), ("answer", True), ("start", False)],
    )
    def test_a_process_that_dies_before_the_body_is_retried(
        self, gate: Client, store: SqliteStore, monkeypatch: pytest.MonkeyPatch, method: str, after: bool
    ) -> None:
        with dying_in(store, method, monkeypatch, after=after), guarding(gate):
            raise AssertionError("the body ran")
        permit = runs(gate)
        assert len(executions(gate, permit)) == 1
        assert permit.intent.attempt == 1

    def test_a_process_that_dies_once_it_was_started_is_not_retried(
        self, gate: Client, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with dying_in(store, "start", monkeypatch, after=True), guarding(gate):
            raise AssertionError("the body ran")
        with pytest.raises(AlreadyStarted) as already, guarding(gate):
            raise AssertionError("the body ran")
        assert already.value.execution is None
        assert "gate client settle" in already.value.message

    def test_a_hook_that_knows_it_was_done_has_it_reported(
        self, gate: Client, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with dying_in(store, "finish", monkeypatch, after=False), guarding(gate):
            pass
        with pytest.raises(AlreadyStarted) as already, guarding(gate, recover=lambda found: Recovery.EXECUTED):
            raise AssertionError("the body ran")
        assert already.value.execution is not None
        assert already.value.execution["execution_status"] == "executed"
        gate.flush()
        (receipt,) = gate.list_executions(str(already.value.decision_id))["executions"]
        assert receipt["execution_status"] == "executed"

    def test_a_hook_is_not_asked_about_what_is_known_to_be_done(self, gate: Client) -> None:
        runs(gate)
        asked: list[AlreadyStarted] = []

        def not_done(already: AlreadyStarted) -> Recovery:
            asked.append(already)
            return Recovery.NOT_EXECUTED

        with pytest.raises(AlreadyStarted), guarding(gate, recover=not_done):
            raise AssertionError("the body ran")
        assert asked == []

    def test_a_body_that_failed_after_its_effect_is_reported_as_executed_where_the_hook_finds_it(
        self, gate: Client
    ) -> None:
        with pytest.raises(TimeoutError), guarding(gate) as permit:
            raise TimeoutError
        for _ in range(2):
            with pytest.raises(AlreadyStarted) as already, guarding(gate, recover=lambda found: Recovery.EXECUTED):
                raise AssertionError("the body ran")
            assert already.value.execution is not None
            assert already.value.execution["execution_status"] == "executed"
        assert [each["execution_status"] for each in executions(gate, permit)] == ["executed", "failed"]

    def test_a_body_that_failed_runs_again_where_the_hook_says_that_it_did_nothing(self, gate: Client) -> None:
        with pytest.raises(ZeroDivisionError), guarding(gate):
            raise ZeroDivisionError
        with pytest.raises(AlreadyStarted) as already, guarding(gate):
            raise AssertionError("the body ran")
        assert already.value.execution is not None
        assert already.value.execution["execution_result"] == "raised ZeroDivisionError"
        assert runs(gate, recover=lambda found: Recovery.NOT_EXECUTED).intent.attempt == 2

    def test_a_hook_that_knows_it_was_not_done_lets_it_run_and_both_are_reported(
        self, make: Callable[..., Client], gate: Client, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # Closed, or what it still delivers in the background could come between, and the hook would be asked again.
        with make() as gone, dying_in(store, "start", monkeypatch, after=True), guarding(gone):
            raise AssertionError("the body ran")
        found: list[AlreadyStarted] = []

        def not_done(already: AlreadyStarted) -> Recovery:
            found.append(already)
            return Recovery.NOT_EXECUTED

        permit = runs(gate, recover=not_done)
        assert permit.intent.attempt == 2
        assert [receipt["execution_status"] for receipt in executions(gate, permit)] == ["executed"]
        (skipped,) = gate.list_executions(str(found[0].decision_id))["executions"]
        assert skipped["execution_status"] == "skipped"
        assert len(found) == 1

    def test_what_was_found_done_while_the_hook_looked_is_not_done_again(
        self, gate: Client, store: SqliteStore
    ) -> None:
        def too_late(already: AlreadyStarted) -> Recovery:
            settle(store, already.intent_id, executed=True)
            return Recovery.NOT_EXECUTED

        with pytest.raises(ZeroDivisionError), guarding(gate) as permit:
            raise ZeroDivisionError
        with pytest.raises(AlreadyStarted) as already, guarding(gate, recover=too_late):
            raise AssertionError("the body ran")
        assert already.value.execution is not None
        assert already.value.execution["execution_status"] == "executed"
        assert [each["execution_status"] for each in executions(gate, permit)] == ["executed", "failed"]

    def test_what_was_found_done_while_a_person_says_that_it_was_not_is_not_done_again(
        self, gate: Client, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with pytest.raises(ZeroDivisionError), guarding(gate) as permit:
            raise ZeroDivisionError
        find = store.find

        def find_then_settle(intent_id: str) -> Intent | None:
            found = find(intent_id)
            monkeypatch.setattr(store, "find", find)
            settle(store, intent_id, executed=True)
            return found

        monkeypatch.setattr(store, "find", find_then_settle)
        with pytest.raises(OperatorError, match="INTENT_SETTLED"):
            settle(store, permit.intent_id, executed=False)
        with pytest.raises(AlreadyStarted), guarding(gate):
            raise AssertionError("the body ran")

    def test_a_result_that_looks_like_a_credential_settles_nothing(self, gate: Client, store: SqliteStore) -> None:
        permit = guarding(gate).__enter__()
        with pytest.raises(OperatorError, match="RESULT_INVALID"):
            settle(store, permit.intent_id, executed=True, result="the portal says so, api_key=k123abc")
        settle(store, permit.intent_id, executed=True, result="the portal says so")
        assert [each["execution_status"] for each in executions(gate, permit)] == ["executed"]

    def test_a_child_that_is_forked_in_the_body_does_not_end_it(self, gate: Client, store: SqliteStore) -> None:
        parent = os.getpid()
        try:
            with guarding(gate) as permit:
                child = os.fork()
                if child == 0:
                    sys.exit(3)
                os.waitpid(child, 0)
        finally:
            if os.getpid() != parent:
                os._exit(0)
        assert [each["execution_status"] for each in executions(gate, permit)] == ["executed"]

    def test_a_hook_of_the_other_kind_is_refused_at_once(self, gate: Client) -> None:
        async def later(already: AlreadyStarted) -> Recovery:
            return Recovery.HOLD

        with pytest.raises(OperatorError, match="RECOVER_INVALID"):
            guarding(gate, recover=later)

    def test_a_hook_must_say_one_of_three_things(self, gate: Client) -> None:
        with pytest.raises(ZeroDivisionError), guarding(gate):
            raise ZeroDivisionError
        with pytest.raises(TypeError, match="must return a Recovery"), guarding(gate, recover=lambda found: True):
            raise AssertionError("the body ran")

    def test_a_store_that_does_not_know_the_intent_is_not_given_it_again(
        self, gate: Client, make: Callable[..., Client], tmp_path: Any
    ) -> None:
        permit = runs(gate)
        with SqliteStore(tmp_path / "other.db") as other:
            stranger = make(store=other)
            for facts in (YES, {"discount_percent": 5, "margin_percent": 50}):
                with pytest.raises(AlreadyStarted) as already, guarding(stranger, facts):
                    raise AssertionError("the body ran")
                assert already.value.elsewhere
                assert already.value.record is not None
                assert already.value.record["decision_id"] == permit.decision_id
            with guarding(stranger, recover=lambda found: Recovery.NOT_EXECUTED) as again:
                assert again.decision_id != permit.decision_id

    def test_what_ran_after_the_service_had_refused_to_decide_is_not_given_to_another_store_either(
        self, gate: Client, make: Callable[..., Client], tmp_path: Any
    ) -> None:
        for _ in range(2):
            with pytest.raises(Undecidable, match="RULEBOOK_OUTPUT_MATERIAL_FORBIDDEN"):
                guarding(gate, FORBIDDEN).__enter__()
        with pytest.raises(GateUnavailable, match="RULEBOOK_OUTPUT_MATERIAL_FORBIDDEN"):
            guarding(gate, FORBIDDEN | {"discount_percent": 11}).__enter__()
        permit = runs(gate)
        assert permit.intent.attempt == 3
        with SqliteStore(tmp_path / "other.db") as other:
            with pytest.raises(AlreadyStarted) as already, guarding(make(store=other)):
                raise AssertionError("the body ran")
            assert already.value.elsewhere
            assert already.value.record == permit.record

    def test_what_the_service_refused_before_another_store_asked_is_not_begun_by_both(
        self, gate: Client, make: Callable[..., Client], tmp_path: Any
    ) -> None:
        with pytest.raises(GateUnavailable):
            guarding(gate, FORBIDDEN).__enter__()
        with SqliteStore(tmp_path / "other.db") as other:
            permit = runs(make(store=other))
        with pytest.raises(AlreadyStarted) as already, guarding(gate):
            raise AssertionError("the body ran")
        assert already.value.elsewhere
        assert already.value.record == permit.record

    def test_an_attempt_after_a_refused_one_begins_again_once_somebody_said_that_nothing_was_done(
        self, gate: Client, store: SqliteStore
    ) -> None:
        with pytest.raises(GateUnavailable):
            guarding(gate, FORBIDDEN).__enter__()
        with pytest.raises(ZeroDivisionError), guarding(gate) as permit:
            raise ZeroDivisionError
        settle(store, permit.intent_id, executed=False)
        again = runs(gate)
        assert (again.intent.attempt, again.decision_id != permit.decision_id) == (3, True)

    def test_a_process_that_asked_what_another_of_its_store_has_given_up_goes_on_with_what_that_one_asks(
        self, gate: Client, service: Service
    ) -> None:
        with pytest.raises(GateUnavailable):
            guarding(gate, FORBIDDEN).__enter__()

        def meanwhile(request: httpx.Request, response: httpx.Response) -> httpx.Response:
            service.rewrite = lambda request, response: response
            with pytest.raises(Blocked):
                guarding(gate, NO).__enter__()
            # What was on its way all along arrives after it.
            return service.handle_request(request)

        service.rewrite = meanwhile
        assert runs(gate).intent.attempt == 3

    def test_a_store_that_was_set_back_does_not_run_it_again(
        self, gate: Client, store: SqliteStore, make: Callable[..., Client], tmp_path: Any
    ) -> None:
        assert store.identity
        store.close()
        copy = tmp_path / "copy.db"
        copy.write_bytes((tmp_path / "intents.db").read_bytes())
        runs(gate)
        with SqliteStore(copy) as older:
            assert older.identity == store.identity
            with pytest.raises(AlreadyStarted) as already, guarding(make(store=older)):
                raise AssertionError("the body ran")
            assert already.value.elsewhere

    def test_a_start_of_which_nobody_knows_whether_it_was_made_is_not_undone(
        self, gate: Client, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        real = store.start

        def interrupted(*arguments: Any) -> bool:
            real(*arguments)
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(store, "start", interrupted)
            with pytest.raises(KeyboardInterrupt), guarding(gate):
                raise AssertionError("the body ran")
        with pytest.raises(AlreadyStarted), guarding(gate):
            raise AssertionError("the body ran")


class TestAge:
    @pytest.mark.parametrize(("max_age", "attempt"), [(3600, 1), (300, 2)])
    def test_a_permit_that_waited_too_long_is_asked_for_anew(
        self, gate: Client, store: SqliteStore, monkeypatch: pytest.MonkeyPatch, max_age: float, attempt: int
    ) -> None:
        # It waits for a process that died, whose clock was behind by as much.
        with (
            at(utc_now() - timedelta(seconds=301), monkeypatch),
            dying_in(store, "start", monkeypatch, after=False),
            guarding(gate, max_age=3600),
        ):
            raise AssertionError("the body ran")
        assert runs(gate, max_age=max_age).intent.attempt == attempt

    @pytest.mark.parametrize("hours", [-1, 1])
    def test_a_clock_that_is_wrong_permits_nothing_and_is_named(
        self, gate: Client, monkeypatch: pytest.MonkeyPatch, hours: int
    ) -> None:
        with (
            at(utc_now() + timedelta(hours=hours), monkeypatch),
            pytest.raises(GateUnavailable) as refused,
            guarding(gate),
        ):
            raise AssertionError("the body ran")
        assert refused.value.code == "PERMIT_EXPIRED"
        assert "clock" in refused.value.message

    def test_a_yes_that_grew_old_while_the_store_kept_it_waiting_is_asked_for_anew(
        self, gate: Client, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        real, moments = store.start, [utc_now()]

        def slow(*arguments: Any) -> bool:
            if len(moments) == 1:
                moments.append(moments[0] + timedelta(hours=1))
            return real(*arguments)

        monkeypatch.setattr(store, "start", slow)
        for module in (attempts, entering):
            monkeypatch.setattr(module, "utc_now", lambda: moments[-1])
        with pytest.raises(GateUnavailable) as refused, guarding(gate):
            raise AssertionError("the body ran")
        # The clock of this test is ahead of the service's from then on.
        assert refused.value.code == "PERMIT_EXPIRED"


class TestTheStore:
    def test_a_store_that_fails_before_the_body_holds_the_action(
        self, gate: Client, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*arguments: Any, **named: Any) -> None:
            raise StoreUnavailable("INTENTS_UNAVAILABLE", "The disk is full.")

        for method in ("find", "hold", "answer", "start"):
            with monkeypatch.context() as patch:
                patch.setattr(store, method, fail)
                with pytest.raises(GateUnavailable) as unavailable, guarding(gate, intent=method):
                    raise AssertionError("the body ran")
                assert isinstance(unavailable.value.failure, StoreUnavailable)

    def test_a_store_that_fails_after_the_body_has_the_service_told_at_once(
        self, gate: Client, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*arguments: Any, **named: Any) -> None:
            raise StoreUnavailable("INTENTS_UNAVAILABLE", "The disk is full.")

        with guarding(gate) as permit:
            monkeypatch.setattr(store, "finish", fail)
        (receipt,) = gate.list_executions(permit.decision_id)["executions"]
        assert receipt["execution_status"] == "executed"
        with pytest.raises(AlreadyStarted), guarding(gate):
            raise AssertionError("the body ran")

    def test_where_neither_takes_it_the_caller_is_told_and_the_body_never_runs_again(
        self, gate: Client, service: Service, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*arguments: Any, **named: Any) -> None:
            raise StoreUnavailable("INTENTS_UNAVAILABLE", "The disk is full.")

        def cut(request: httpx.Request, response: httpx.Response) -> httpx.Response:
            raise httpx.ReadError("cut")

        def run() -> None:
            with guarding(gate):
                monkeypatch.setattr(store, "finish", fail)
                service.rewrite = cut

        with pytest.raises(StoreUnavailable):
            run()
        with pytest.raises(AlreadyStarted), guarding(gate):
            raise AssertionError("the body ran")

    def test_a_signal_while_the_end_is_kept_does_not_lose_it(
        self, gate: Client, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        finish = store.finish
        interrupted: list[bool] = []

        def interrupt(intent: Intent, report: Report) -> bool:
            if not interrupted:
                interrupted.append(True)
                raise KeyboardInterrupt
            return finish(intent, report)

        monkeypatch.setattr(store, "finish", interrupt)
        with pytest.raises(KeyboardInterrupt), guarding(gate) as permit:
            pass
        assert [each["execution_status"] for each in executions(gate, permit)] == ["executed"]

    @pytest.mark.parametrize(
        "damage",
        [
            "UPDATE gate_intents SET state = 'x'",
            "UPDATE gate_intents SET asked_at = 'x'",
            "UPDATE gate_intents SET asked = 'x'",
            "UPDATE gate_intents SET answered = 'x'",
            "UPDATE gate_intents SET answered = CAST('{' AS BLOB)",
            "UPDATE gate_intents SET told = CAST('{' AS BLOB)",
        ],
    )
    def test_a_store_that_is_damaged_lets_nothing_run(
        self, gate: Client, store: SqliteStore, tmp_path: Path, damage: str
    ) -> None:
        with suppress(ZeroDivisionError), guarding(gate):
            raise ZeroDivisionError
        gate.close()
        store.close()
        with closing(sqlite3.connect(tmp_path / "intents.db")) as connection, connection:
            connection.execute(damage)
        with pytest.raises(GateUnavailable) as refused, guarding(gate, recover=lambda found: Recovery.NOT_EXECUTED):
            raise AssertionError("the body ran")
        assert refused.value.code == "INTENTS_DAMAGED"

    def test_a_run_that_was_settled_while_it_ran_is_told_as_it_ended(self, gate: Client, store: SqliteStore) -> None:
        settling = guarding(gate, recover=lambda found: Recovery.EXECUTED)
        with guarding(gate) as permit, pytest.raises(AlreadyStarted), settling:
            raise AssertionError("the body ran")
        assert [receipt["execution_status"] for receipt in executions(gate, permit)] == ["executed", "executed"]


class TestLater:
    def test_an_outcome_is_told_by_whoever_has_the_store(self, gate: Client, make: Callable[..., Client]) -> None:
        permit = runs(gate)
        gate.close()
        later = make().recall(permit.intent_id)
        assert (later.record, later.intent_id) == (permit.record, permit.intent_id)
        later.outcome("reverted")
        gate.flush()
        (outcome,) = gate.list_outcomes(permit.decision_id)["outcomes"]
        assert outcome["outcome_status"] == "reverted"

    def test_what_was_not_begun_has_no_permit(self, gate: Client) -> None:
        with pytest.raises(OperatorError, match="INTENT_UNKNOWN"):
            gate.recall("int_unknown")
        with pytest.raises(Blocked) as blocked, guarding(gate, NO):
            pass
        with pytest.raises(OperatorError, match="INTENT_NOT_STARTED"):
            gate.recall(blocked.value.intent_id)


class TestWithinASession:
    @pytest.fixture
    def engine(self, tmp_path: Path) -> Engine:
        return create_engine(f"sqlite:///{tmp_path / 'shop.db'}")

    @pytest.fixture
    def shop(self, engine: Engine, make: Callable[..., Client]) -> Client:
        store = SqlAlchemyStore(engine)
        store.create_tables()
        return make(store=store)

    def test_what_is_committed_was_run_once_and_is_reported_by_itself(self, shop: Client, engine: Engine) -> None:
        with Session(engine) as session, session.begin(), guarding(shop, session=session) as permit:
            pass
        shop.close()
        (receipt,) = shop.list_executions(permit.decision_id)["executions"]
        assert receipt["execution_status"] == "executed"
        with Session(engine) as session, pytest.raises(AlreadyStarted), guarding(shop, session=session):
            raise AssertionError("the body ran")

    def test_what_is_rolled_back_did_not_run_and_runs_again_under_the_same_verdict(
        self, shop: Client, engine: Engine
    ) -> None:
        with Session(engine) as session:
            with guarding(shop, session=session) as first:
                pass
            session.rollback()
        with Session(engine) as session, session.begin(), guarding(shop, session=session) as second:
            pass
        assert second.decision_id == first.decision_id
        assert len(executions(shop, second)) == 1

    def test_a_body_that_fails_and_is_rolled_back_leaves_nothing(self, shop: Client, engine: Engine) -> None:
        with Session(engine) as session:
            with pytest.raises(ZeroDivisionError), guarding(shop, session=session) as permit:
                raise ZeroDivisionError
            session.rollback()
        assert executions(shop, permit) == []
        with Session(engine) as session, session.begin(), guarding(shop, session=session):
            pass
        assert [each["execution_status"] for each in executions(shop, permit)] == ["executed"]

    def test_a_session_that_is_rolled_back_in_the_body_is_not_to_be_committed(
        self, shop: Client, engine: Engine
    ) -> None:
        with Session(engine) as session:
            with pytest.raises(StoreUnavailable, match="START_LOST"), guarding(shop, session=session) as permit:
                session.rollback()
            session.rollback()
        assert executions(shop, permit) == []

    def test_what_is_committed_in_the_body_is_reported_all_the_same(self, shop: Client, engine: Engine) -> None:
        Broken.metadata.create_all(engine)
        with Session(engine) as session, guarding(shop, session=session) as permit:
            session.add(Broken(name="kept"))
            session.commit()
        assert [each["execution_status"] for each in executions(shop, permit)] == ["executed"]
        with Session(engine) as session, pytest.raises(AlreadyStarted), guarding(shop, session=session):
            raise AssertionError("the body ran")

    def test_what_is_written_after_a_commit_in_the_body_does_not_lose_its_end(
        self, make: Callable[..., Client], tmp_path: Path
    ) -> None:
        # The store and the session wait for each other, until this has passed.
        engine = create_engine(f"sqlite:///{tmp_path / 'shop.db'}", connect_args={"timeout": 0.5})
        store = SqlAlchemyStore(engine)
        store.create_tables()
        shop = make(store=store)
        Broken.metadata.create_all(engine)
        with Session(engine) as session:
            with guarding(shop, session=session) as permit:
                session.add(Broken(name="committed"))
                session.commit()
                session.add(Broken(name="not yet"))
                session.flush()
            session.commit()
        assert [each["execution_status"] for each in executions(shop, permit)] == ["executed"]

    @pytest.mark.parametrize("said", [Recovery.EXECUTED, Recovery.NOT_EXECUTED])
    def test_what_a_hook_says_is_kept_whatever_becomes_of_the_session(
        self, shop: Client, engine: Engine, said: Recovery
    ) -> None:
        permit = guarding(shop).__enter__()
        asked: list[AlreadyStarted] = []

        def hook(already: AlreadyStarted) -> Recovery:
            asked.append(already)
            return said

        with Session(engine) as session:
            with suppress(AlreadyStarted), guarding(shop, session=session, recover=hook):
                assert said is Recovery.NOT_EXECUTED
            session.rollback()
        told = "executed" if said is Recovery.EXECUTED else "skipped"
        assert [each["execution_status"] for each in executions(shop, permit)] == [told]
        assert len(asked) == 1

    def test_an_interrupt_keeps_an_end_with_its_receipt_or_neither(
        self, shop: Client, engine: Engine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        executed = sqlalchemy_module._executed
        interrupted: list[str] = []

        def interrupting(connection: Any) -> Callable[[str, Any], int]:
            def execute(sql: str, values: Any) -> int:
                if "INSERT INTO gate_reports" in sql and not interrupted:
                    interrupted.append(sql)
                    raise KeyboardInterrupt
                return executed(connection)(sql, values)

            return execute

        monkeypatch.setattr(sqlalchemy_module, "_executed", interrupting)
        with Session(engine) as session:
            with pytest.raises(KeyboardInterrupt), guarding(shop, session=session) as permit:
                pass
            session.commit()
        assert [each["execution_status"] for each in executions(shop, permit)] == ["executed"]

    def test_a_session_that_was_kept_waiting_for_too_long_is_to_be_rolled_back(
        self, shop: Client, engine: Engine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        start, later = SqlAlchemyStore.start, utc_now() + timedelta(hours=1)

        def slow(store: SqlAlchemyStore, *arguments: Any) -> bool:
            monkeypatch.setattr(entering, "utc_now", lambda: later)
            return start(store, *arguments)

        monkeypatch.setattr(SqlAlchemyStore, "start", slow)
        with Session(engine) as session:
            with pytest.raises(GateUnavailable, match="Roll back the session"), guarding(shop, session=session):
                raise AssertionError("the body ran")
            session.rollback()

    def test_a_registry_of_sessions_is_as_good_as_its_session(self, shop: Client, engine: Engine) -> None:
        registry = scoped_session(sessionmaker(engine))
        with guarding(shop, session=registry) as permit:
            pass
        registry.rollback()
        with guarding(shop, session=registry) as again:
            pass
        registry.commit()
        assert again.decision_id == permit.decision_id
        assert len(executions(shop, permit)) == 1
        registry.remove()

    def test_what_is_no_session_is_refused(self, shop: Client, engine: Engine) -> None:
        for session in (engine, "a session"):
            with pytest.raises(OperatorError, match="STORE_SEPARATE"):
                guarding(shop, session=session)

    def test_who_rolled_back_does_not_end_the_run_that_another_began_meanwhile(
        self, shop: Client, engine: Engine
    ) -> None:
        with Session(engine) as session:
            mine, other = guarding(shop, session=session), guarding(shop)
            mine.__enter__()
            session.rollback()
            permit = other.__enter__()
            with pytest.raises(StoreUnavailable, match="START_LOST"):
                mine.__exit__(None, None, None)
            session.rollback()
        assert executions(shop, permit) == []
        other.__exit__(None, None, None)
        assert [each["execution_status"] for each in executions(shop, permit)] == ["executed"]

    def test_the_service_is_not_told_of_what_cannot_be_committed(self, shop: Client, engine: Engine) -> None:
        def run(session: Session) -> None:
            with guarding(shop, session=session) as permit:
                seen.append(permit)
                with suppress(SQLAlchemyError):
                    session.add(Broken(name=None))
                    session.flush()

        seen: list[Permit] = []
        Broken.metadata.create_all(engine)
        with Session(engine) as session:
            with pytest.raises(StoreUnavailable):
                run(session)
            session.rollback()
        assert executions(shop, seen[0]) == []

    def test_a_savepoint_that_is_released_is_no_commit(self, shop: Client, engine: Engine) -> None:
        with Session(engine) as session, session.begin():
            with guarding(shop, session=session) as permit:
                pass
            with session.begin_nested():
                pass
        shop.close()
        assert len(shop.list_executions(permit.decision_id)["executions"]) == 1

    def test_an_outcome_is_told_in_the_block_or_after_the_commit(self, shop: Client, engine: Engine) -> None:
        with Session(engine) as session, session.begin(), guarding(shop, session=session) as permit:
            permit.outcome("pending")
        permit.outcome("succeeded")
        shop.flush()
        told = [each["outcome_status"] for each in shop.list_outcomes(permit.decision_id)["outcomes"]]
        assert told == ["succeeded", "pending"]
        with Session(engine) as session:
            with guarding(shop, session=session, intent="other") as other:
                pass
            with pytest.raises(RuntimeError, match="may not be committed yet"):
                other.outcome("succeeded")
            session.rollback()
        with pytest.raises(RuntimeError, match="may not be committed yet"):
            other.outcome("succeeded")

    def test_a_store_in_a_file_of_its_own_has_no_part_in_a_session(self, gate: Client, engine: Engine) -> None:
        with Session(engine) as session, pytest.raises(OperatorError, match="STORE_SEPARATE"):
            guarding(gate, session=session)


class TestArguments:
    @pytest.mark.parametrize(
        ("field", "said"),
        [
            ("action", {"action": ""}),
            ("action", {"action": 7}),
            ("intent", {"intent": 7}),
            ("intent", {"intent": ""}),
            ("context", {"context": ["x"]}),
            ("outcome_action", {"outcome_action": 7}),
            ("outcome_action", {"outcome_action": []}),
            ("outcome_action", {"outcome_action": ["a", ""]}),
            ("target", {"target": "crm"}),
            ("target", {"target": ("crm",)}),
            ("target", {"target": ("crm", "")}),
            ("target", {"target": ("", "deal")}),
            ("target", {"target": ("crm", 7)}),
            ("target", {"target": ("crm", "x" * 2001)}),
            ("target", {"target": ("a", "b", "c", "d")}),
            ("context.inputs", {"context": {"inputs": {}}}),
            ("context.guard", {"context": {"guard": {}}}),
            ("context.application_verdict", {"context": {"application_verdict": "APPROVE"}}),
        ],
    )
    def test_an_unusable_argument_is_named(self, gate: Client, field: str, said: dict[str, Any]) -> None:
        with pytest.raises(RequestRefused) as refused:
            guarding(gate, **said)
        assert [fault.field for fault in refused.value.errors] == [field]

    @pytest.mark.parametrize("rulebook", ["", "@1", "pricing_exception@", 7, {}, {"version": "1"}, {"hash": "0" * 64}])
    def test_an_unusable_rulebook_is_named(self, gate: Client, rulebook: Any) -> None:
        with pytest.raises(RequestRefused) as refused:
            gate.guard(rulebook, YES, action="a", target=("crm", "deal"))
        assert [fault.field for fault in refused.value.errors] == ["rulebook"]

    @pytest.mark.parametrize("value", [float("nan"), 2**53, {1}, datetime(2026, 1, 1), "\ud800", Decimal(1)])  # noqa: DTZ001
    def test_a_fact_that_is_no_json_is_refused_by_its_place(self, gate: Client, value: Any) -> None:
        with pytest.raises(MaterialRefused, match=r"facts\.deals\[1\]\.percent") as refused:
            guarding(gate, {"margin_percent": 22, "deals": [{}, {"percent": value}]})
        assert [fault.field for fault in refused.value.errors] == ["facts.deals[1].percent"]
        with pytest.raises(MaterialRefused, match=r"context\.note"):
            guarding(gate, context={"note": value})

    def test_facts_that_hold_themselves_are_refused(self, gate: Client, monkeypatch: pytest.MonkeyPatch) -> None:
        # They are walked through until the bound.
        monkeypatch.setattr(canonical, "_MOST_CONTAINERS", size(20_000, canonical._MOST_CONTAINERS))
        facts: dict[str, Any] = {}
        facts["facts"] = facts
        items: list[Any] = []
        items.append(items)
        for endless in (facts, {"items": items}):
            with pytest.raises(MaterialRefused):
                guarding(gate, endless)

    @pytest.mark.parametrize(
        ("said", "named"),
        [
            ({"context": {"actor": {"id": "u1", "session_id": "s-77"}}}, "context.actor.session_id"),
            ({"context": {"subject": "https://user@example.com/x"}}, "context.subject"),
            ({"target": ("crm", "Bearer abcdefghij1234")}, "target"),
            ({"target": Target("crm", "deal-7", "authorization: bearer abc123")}, "target"),
            ({"action": "https://user:secret@bank.example"}, "action"),
        ],
    )
    def test_what_the_receipt_would_be_refused_for_is_refused_before_the_body(
        self, gate: Client, service: Service, said: dict[str, Any], named: str
    ) -> None:
        with pytest.raises(RequestRefused, match="looks like a credential") as refused:
            guarding(gate, **said)
        assert [fault.field for fault in refused.value.errors] == [named]
        assert service.requests == []

    def test_what_the_receipt_repeats_is_bounded_so_that_it_is_taken(self, gate: Client) -> None:
        with guarding(gate, context={"subject": ",\u0001" * 9_000}) as permit:
            permit.describe(
                evidence_refs=[f"{number},{',' * 490}" for number in range(64)],
                result="," * 2000,
                external_ref="x" * 200,
            )
        assert len(executions(gate, permit)) == 1
        with pytest.raises(RequestRefused, match="65536 bytes"):
            guarding(gate, context={"subject": "x" * 70_000})

    def test_facts_that_are_nested_too_deep_or_too_large_are_refused(self, gate: Client) -> None:
        deep: Any = 1
        for _ in range(100_000):
            deep = [deep]
        with pytest.raises(MaterialRefused):
            guarding(gate, {"discount_percent": deep})
        with pytest.raises(RequestRefused, match="correct facts"):
            guarding(gate, {"discount_percent": "x" * 2_000_000})

    def test_facts_that_are_changed_afterwards_are_not_what_was_asked(self, gate: Client) -> None:
        facts: dict[str, Any] = {"discount_percent": 10, "margin_percent": 22, "tags": []}
        made = guarding(gate, facts)
        facts["margin_percent"] = 1
        facts["tags"].append("late")
        with made as permit:
            assert permit.intent.request["context"]["inputs"]["margin_percent"] == 22
            assert permit.intent.request["context"]["inputs"]["tags"] == []

    def test_a_reference_decides_as_its_rulebook_does(self, gate: Client) -> None:
        first = runs(gate)
        by_text = gate.guard(
            "pricing_exception@2026-06-11", YES, action="approve_discount", target=("crm", "by-reference")
        )
        with by_text as permit:
            assert permit.record["policy_hash"] == first.record["policy_hash"]
        by_hash = {"rulebook_id": "pricing_exception", "hash": first.record["policy_hash"]}
        with gate.guard(by_hash, YES, action="approve_discount", target=("crm", "by-hash")) as permit:
            assert permit.record["policy_id"] == "pricing_exception"
        # Its id alone names the version that its route leads to, and there is no route yet.
        with (
            pytest.raises(GateUnavailable) as refused,
            gate.guard("pricing_exception", YES, action="approve_discount", target=("crm", "by-route")),
        ):
            raise AssertionError("the body ran")
        assert refused.value.code == "RULEBOOK_REF_UNKNOWN"
        wrong = {"rulebook_id": "price_exception"}, {"version": "2026-06-12"}
        for named in wrong:
            with (
                pytest.raises(GateUnavailable) as refused,
                gate.guard(by_hash | named, YES, action="approve_discount", target=("crm", "by-hash-2")),
            ):
                raise AssertionError("the body ran")
            assert refused.value.code == "RECORD_FOREIGN"
            (name,) = named
            assert f"a rulebook with {name}" in refused.value.message
        with (
            pytest.raises(AlreadyStarted),
            gate.guard(
                {"rulebook_id": "pricing_exception", "version": "2026-06-11"},
                YES,
                action="approve_discount",
                target=("crm", "by-reference"),
            ),
        ):
            raise AssertionError("the body ran")


class TestDecorator:
    def test_it_guards_each_call_by_its_own_arguments(self, gate: Client) -> None:
        granted: list[tuple[str, str]] = []

        @gate.guarded(
            sample_rulebook(),
            facts=lambda deal, margin: {"discount_percent": 10, "margin_percent": margin},
            action="approve_discount",
            target=lambda deal, margin: ("crm", deal),
        )
        def grant(deal: str, margin: int, *, permit: Permit | None = None) -> str:
            """Grants a discount."""
            assert permit is not None
            granted.append((deal, permit.decision_id))
            return f"{deal} granted"

        assert grant("deal-1", 22) == "deal-1 granted"
        with pytest.raises(Blocked):
            grant("deal-2", margin=9)
        with pytest.raises(AlreadyStarted):
            grant("deal-1", 22)
        assert [deal for deal, _ in granted] == ["deal-1"]
        assert grant.__doc__ == "Grants a discount."

    def test_a_call_that_does_not_fit_asks_nothing_and_uses_nothing_up(self, gate: Client, service: Service) -> None:
        @gate.guarded(
            sample_rulebook(), facts=lambda *args: YES, action="approve_discount", target=lambda *args: ("crm", "deal")
        )
        def grant(deal: str, permit: Permit | None = None) -> str:
            return deal

        unfit: Any = grant
        for arguments in ((), ("deal", None), ("deal", 1, 2)):
            with pytest.raises(TypeError, match=r"grant\(\) was called with the wrong arguments"):
                unfit(*arguments)
        assert service.asked("/api/decide") == 0
        assert grant("deal") == "deal"

    def test_what_has_no_name_is_guarded_as_well(self, gate: Client) -> None:
        def grant(deal: str, *, percent: int) -> str:
            return f"{deal}: {percent}"

        guard = gate.guarded(
            sample_rulebook(), facts=lambda deal: YES, action="approve_discount", target=lambda deal: ("crm", deal)
        )
        assert guard(partial(grant, percent=3))("deal") == "deal: 3"

    def test_what_would_run_outside_of_the_guard_cannot_be_decorated(self, gate: Client) -> None:
        decorate = gate.guarded(sample_rulebook(), facts=dict, action="a", target=("crm", "deal"))

        async def coroutine() -> None: ...

        def generator() -> Iterator[None]:
            yield

        async def async_generator() -> Any:
            yield

        with pytest.raises(TypeError, match="intnet"):
            gate.guarded(sample_rulebook(), facts=dict, action="a", target=("crm", "deal"), intnet="z")  # type: ignore[call-arg]
        functions: list[Any] = [coroutine, generator, async_generator, staticmethod(dict)]
        for function in functions:
            with pytest.raises(TypeError):
                decorate(function)

    @pytest.mark.parametrize("kind", ["coroutine", "generator", "map"])
    def test_what_gives_back_something_that_has_yet_to_run_is_refused_and_reported_as_failed(
        self, gate: Client, kind: str
    ) -> None:
        seen: list[Permit] = []

        async def later() -> None:
            raise AssertionError("it ran")

        def iter_later() -> Iterator[None]:
            yield

        def function(permit: Permit | None = None) -> Any:
            assert permit is not None
            seen.append(permit)
            if kind == "map":
                return map(pytest.fail, ["it ran"])
            return later() if kind == "coroutine" else iter_later()

        guarded = gate.guarded(sample_rulebook(), facts=lambda: YES, action="approve_discount", target=("crm", "deal"))(
            function
        )
        with pytest.raises(TypeError, match="returned"):
            guarded()
        assert executions(gate, seen[0])[0]["execution_status"] == "failed"

    def test_a_task_that_a_function_gives_back_is_cancelled(self, gate: Client) -> None:
        ran: list[str] = []

        async def later() -> None:
            ran.append("it ran")

        def function() -> Any:
            return asyncio.ensure_future(later())

        guarded = gate.guarded(sample_rulebook(), facts=lambda: YES, action="approve_discount", target=("crm", "deal"))(
            function
        )

        async def main() -> None:
            with pytest.raises(TypeError, match="returned a Task"):
                guarded()
            await asyncio.sleep(0)

        asyncio.run(main())
        assert ran == []

    def test_the_async_one_takes_coroutine_functions_alone(self, store: SqliteStore) -> None:
        client = AsyncClient("http://gate.example", key="dgk_1_2", registry={"keys": []}, store=store)
        with pytest.raises(TypeError, match="is not a coroutine function"):
            client.guarded(sample_rulebook(), facts=dict, action="a", target=("crm", "deal"))(lambda: None)  # type: ignore[arg-type, return-value]
        asyncio.run(client.close())
