"""Held actions whose owners answer: guards that are entered again, that wait, and that are resumed."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from flask.testing import FlaskClient
from sqlalchemy import create_engine
from sqlalchemy.orm import Session

from gate.client import (
    AlreadyStarted,
    AsyncClient,
    Blocked,
    Client,
    GateUnavailable,
    HeldForReview,
    Permit,
    Recovery,
    SqliteStore,
    State,
)
from gate.client.guard import attempts, entering, reporting
from gate.client.guard.held import review
from gate.client.guard.recovery import settle
from gate.client.store.sqlalchemy import SqlAlchemyStore
from gate.clock import utc_now
from gate.errors import OperatorError
from gate.instance.instance import Instance
from gate.ledger.access.authority import Scope
from gate.ledger.chain.reviews import Terms
from tests.gate.client.conftest import Service
from tests.gate.client.guarding import YES, dying_in, guarding, runs
from tests.support.samples import sample_rulebook

REVIEW: Final = {"discount_percent": 40, "margin_percent": 22}
OTHER_REVIEW: Final = {"discount_percent": 41, "margin_percent": 22}
HOUR: Final = timedelta(hours=1)

Resolve = Callable[..., Any]


@pytest.fixture
def resolve(client: FlaskClient, instance: Instance, scope: Scope) -> Iterator[Resolve]:
    """The owner answers the review of a refusal."""
    key = instance.ledger.directory.create_key(scope, frozenset({"resolve"}), None, utc_now())[0]
    owner = Client("http://gate.example", key=key, transport=httpx.WSGITransport(client.application))

    def answer(held: HeldForReview, resolution: str = "granted", **more: Any) -> Any:
        said = {"resolution": resolution, "resolved_by": "Maya Lindqvist", **more}
        return owner.resolve_decision(str(held.decision_id), said)

    yield answer
    owner.close()


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(review, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(review, "LONGEST_PAUSE", 0.02)


@contextmanager
def later(by: timedelta, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The caller's clock is that much further while the block runs."""
    with monkeypatch.context() as patch:
        for module in (attempts, entering, review):
            patch.setattr(module, "utc_now", lambda: utc_now() + by)
        yield


def held(gate: Client, facts: dict[str, Any] = REVIEW, **said: Any) -> HeldForReview:
    """Has an action held."""
    with pytest.raises(HeldForReview) as refusal, guarding(gate, facts, **said):
        raise AssertionError("the body ran")
    assert refusal.value.code == "ACTION_HELD"
    return refusal.value


def resumes(gate: Client, of: HeldForReview, **said: Any) -> Permit:
    with gate.resume(of.intent_id, **said) as permit:
        pass
    return permit


def refuses(error: type[Exception], code: str, guard: Any) -> Any:
    """Requires that a guard does not let its body run."""
    with pytest.raises(error) as refusal, guard:
        raise AssertionError("the body ran")
    assert getattr(refusal.value, "code", None) == code
    return refusal.value


class TestEnteredAgain:
    def test_a_guard_that_is_entered_after_the_grant_runs_its_body(
        self, gate: Client, service: Service, store: SqliteStore, resolve: Resolve
    ) -> None:
        refusal = held(gate)
        assert f'continue with client.resume("{refusal.intent_id}").' in refusal.message
        assert service.asked("/resolution") == 0
        grant = resolve(refusal, note="Agreed.")
        permit = runs(gate, REVIEW)
        assert service.asked("/api/decide") == 1
        assert service.asked("/resolution") == 1
        assert permit.record == refusal.record
        assert permit.resolution == grant
        kept = store.find(permit.intent_id)
        assert kept is not None
        assert kept.resolution == grant
        gate.flush()
        (receipt,) = gate.list_executions(permit.decision_id)["executions"]
        assert (receipt["execution_status"], receipt["flags"]) == ("executed", [])
        assert receipt["action_taken"] == "approve_discount"
        refuses(AlreadyStarted, "ACTION_ALREADY_STARTED", guarding(gate, REVIEW))

    def test_the_granted_action_is_the_proposed_one_whatever_the_outcome_of_the_review_is_called(
        self, gate: Client, resolve: Resolve
    ) -> None:
        resolve(held(gate, outcome_action="some_other_label"))
        permit = runs(gate, REVIEW, outcome_action="some_other_label")
        assert permit.action == "approve_discount" != permit.record["action"]
        permit.outcome("succeeded")
        gate.flush()
        (outcome,) = gate.list_outcomes(permit.decision_id)["outcomes"]
        assert outcome["action_taken"] == "approve_discount"

    def test_an_action_with_a_long_name_is_reported_by_its_binding(self, gate: Client, resolve: Resolve) -> None:
        action = "approve_discount" * 20
        resolve(held(gate, action=action))
        permit = runs(gate, REVIEW, action=action)
        assert gate.flush().refused == 0
        (receipt,) = gate.list_executions(permit.decision_id)["executions"]
        assert (receipt["action_binding"]["proposed_action"], receipt["flags"]) == (action, [])

    @pytest.mark.parametrize("hours", [1, 23])
    def test_a_review_is_not_asked_anew_because_of_its_age_and_a_grant_opens_it_until_it_ends(
        self, gate: Client, service: Service, resolve: Resolve, monkeypatch: pytest.MonkeyPatch, hours: int
    ) -> None:
        refusal = held(gate)
        with later(HOUR, monkeypatch):
            assert held(gate).decision_id == refusal.decision_id
        resolve(refusal)
        with later(hours * HOUR, monkeypatch):
            permit = runs(gate, REVIEW)
        assert permit.decision_id == refusal.decision_id
        assert service.asked("/api/decide") == 1

    def test_a_grant_that_has_ended_is_asked_anew(
        self, gate: Client, resolve: Resolve, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        refusal = held(gate)
        resolve(refusal)
        with later(25 * HOUR, monkeypatch):
            error = refuses(HeldForReview, "GRANT_EXPIRED", gate.resume(refusal.intent_id))
            assert "client.guard() again" in error.message
            assert held(gate).decision_id != refusal.decision_id

    def test_a_caller_who_allows_grants_less_time_is_refused_and_asks_nothing_anew(
        self, gate: Client, service: Service, resolve: Resolve, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        refusal = held(gate)
        resolve(refusal)
        with later(HOUR, monkeypatch):
            for guard in (guarding(gate, REVIEW, max_age=600), gate.resume(refusal.intent_id, max_age=600)):
                assert "Allow a greater max_age" in refuses(HeldForReview, "GRANT_EXPIRED", guard).message
            runs(gate, REVIEW, max_age=7200)
        assert service.asked("/api/decide") == 1

    def test_what_its_owner_refused_stays_refused_without_asking_anybody(
        self, gate: Client, service: Service, resolve: Resolve, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        refusal = held(gate)
        resolve(refusal, "refused", note="Not for this customer.\nNever.")
        blocked = refuses(Blocked, "ACTION_REFUSED", guarding(gate, REVIEW))
        assert "Maya Lindqvist refused the action" in blocked.message
        assert '"Not for this customer. Never."' in blocked.message
        assert blocked.resolution["note"] == "Not for this customer.\nNever."
        asked = len(service.requests)
        with later(1000 * HOUR, monkeypatch):
            for guard in (guarding(gate, REVIEW), gate.resume(refusal.intent_id)):
                refuses(Blocked, "ACTION_REFUSED", guard)
        assert len(service.requests) == asked

    def test_other_facts_than_those_that_were_refused_are_a_new_question(self, gate: Client, resolve: Resolve) -> None:
        refusal = held(gate)
        resolve(refusal, "refused")
        refuses(Blocked, "ACTION_REFUSED", guarding(gate, REVIEW))
        permit = runs(gate, YES)
        assert (permit.intent_id, permit.intent.attempt) == (refusal.intent_id, 2)

    def test_a_review_that_expired_is_asked_anew(self, gate: Client, resolve: Resolve) -> None:
        refusal = held(gate)
        resolve(refusal, "expired", note="Sold elsewhere.")
        error = refuses(HeldForReview, "REVIEW_EXPIRED", gate.resume(refusal.intent_id))
        assert "was closed by Maya Lindqvist at " in error.message
        assert f': "Sold elsewhere." (decision {refusal.decision_id}). Enter client.guard() again' in error.message
        again = held(gate)
        assert again.decision_id != refusal.decision_id
        resolve(again)
        assert runs(gate, REVIEW).decision_id == again.decision_id

    def test_a_grant_of_other_facts_opens_nothing(self, gate: Client, resolve: Resolve) -> None:
        resolve(held(gate))
        assert held(gate, OTHER_REVIEW)
        refuses(HeldForReview, "ACTION_HELD", guarding(gate, OTHER_REVIEW))

    def test_whether_there_is_a_grant_is_not_known_while_the_service_is_down(
        self, gate: Client, service: Service, resolve: Resolve
    ) -> None:
        refusal = held(gate)
        resolve(refusal)

        def down(request: httpx.Request, response: httpx.Response) -> httpx.Response:
            raise httpx.ConnectError("refused")

        service.rewrite = down
        for guard in (guarding(gate, REVIEW), gate.resume(refusal.intent_id)):
            error = refuses(GateUnavailable, "GATE_UNREACHABLE", guard)
            assert "cannot find out" in error.message
        service.rewrite = lambda request, response: response
        assert runs(gate, REVIEW).decision_id == refusal.decision_id

    @pytest.mark.parametrize("hours", [0, 1])
    def test_a_service_that_knows_no_reviews_holds_as_ever(
        self, gate: Client, service: Service, monkeypatch: pytest.MonkeyPatch, hours: int
    ) -> None:
        """The client may be newer than the service."""
        refusal = held(gate)

        def unknown(request: httpx.Request, response: httpx.Response) -> httpx.Response:
            if not request.url.path.endswith("/resolution"):
                return response
            told = {"error": "SVC_API_NOT_FOUND", "message": "No such path; /docs lists the endpoints."}
            return httpx.Response(404, json=told)

        service.rewrite = unknown
        with later(hours * HOUR, monkeypatch):
            refuses(HeldForReview, "ACTION_HELD", gate.resume(refusal.intent_id))
            with pytest.raises((HeldForReview, GateUnavailable)), guarding(gate, REVIEW, on_review="wait"):
                raise AssertionError("the body ran")
        assert service.asked("/api/decide") == 1 + hours


class TestWaiting:
    def test_it_runs_the_body_once_the_owner_has_granted(
        self, gate: Client, service: Service, resolve: Resolve
    ) -> None:
        def answer(request: httpx.Request, response: httpx.Response) -> httpx.Response:
            if service.asked("/resolution") == 3 and request.method == "GET":
                service.rewrite = lambda request, response: response
                decision_id = request.url.path.split("/")[-2]
                resolve(HeldForReview("", "", record={"decision_id": decision_id}))
            return response

        service.rewrite = answer
        permit = runs(gate, REVIEW, on_review="wait")
        assert permit.resolution is not None
        assert service.asked("/api/decide") == 1

    @pytest.mark.parametrize("again", ["guard", "resume", "resume and wait"])
    def test_when_its_time_is_over_the_action_is_held_and_a_later_call_goes_on(
        self, gate: Client, service: Service, resolve: Resolve, again: str
    ) -> None:
        refusal = refuses(HeldForReview, "ACTION_HELD", guarding(gate, REVIEW, on_review="wait", review_seconds=0.1))
        assert service.asked("/resolution") > 2
        refuses(HeldForReview, "ACTION_HELD", gate.resume(refusal.intent_id, on_review="wait", review_seconds=0.05))
        resolve(refusal)
        if again == "guard":
            permit = runs(gate, REVIEW, on_review="wait")
        else:
            permit = resumes(gate, refusal, on_review="wait" if "wait" in again else "raise")
        assert permit.decision_id == refusal.decision_id
        assert service.asked("/api/decide") == 1

    @pytest.mark.parametrize(
        ("resolution", "error", "code"),
        [("refused", Blocked, "ACTION_REFUSED"), ("expired", HeldForReview, "REVIEW_EXPIRED")],
    )
    def test_an_answer_that_is_no_grant_ends_it_and_nothing_is_asked_anew(
        self,
        gate: Client,
        service: Service,
        resolve: Resolve,
        resolution: str,
        error: type[Exception],
        code: str,
    ) -> None:
        refusal = held(gate)
        looked = service.asked("/resolution")

        def answer(request: httpx.Request, response: httpx.Response) -> httpx.Response:
            if service.asked("/resolution") == looked + 2:
                service.rewrite = lambda request, response: response
                resolve(refusal, resolution)
            return response

        service.rewrite = answer
        refuses(error, code, guarding(gate, REVIEW, on_review="wait"))
        assert service.asked("/api/decide") == 1

    @pytest.mark.parametrize("trouble", ["down", "limited", "failing", "nonsense"])
    def test_a_service_that_comes_back_in_time_is_waited_for(
        self, gate: Client, service: Service, resolve: Resolve, trouble: str
    ) -> None:
        refusal = held(gate)
        resolve(refusal)
        looked = service.asked("/resolution")

        def strike(request: httpx.Request, response: httpx.Response) -> httpx.Response:
            if service.asked("/resolution") > looked + 3:
                return response
            if trouble == "down":
                raise httpx.ConnectError("refused")
            return {
                "limited": httpx.Response(429, headers={"retry-after": "0"}),
                "failing": httpx.Response(503),
                "nonsense": httpx.Response(200, text="<h1>soon</h1>"),
            }[trouble]

        service.rewrite = strike
        assert runs(gate, REVIEW, on_review="wait").decision_id == refusal.decision_id

    @pytest.mark.parametrize("status", [401, 403, 404])
    def test_a_refusal_that_will_not_pass_is_told_at_once(self, gate: Client, service: Service, status: int) -> None:
        held(gate)
        service.rewrite = lambda request, response: httpx.Response(status)
        refuses(GateUnavailable, f"HTTP_{status}", guarding(gate, REVIEW, on_review="wait"))

    def test_a_service_that_stays_down_leaves_the_answer_unknown(self, gate: Client, service: Service) -> None:
        held(gate)
        service.rewrite = lambda request, response: httpx.Response(503)
        refuses(GateUnavailable, "HTTP_503", guarding(gate, REVIEW, on_review="wait", review_seconds=0.05))

    def test_of_two_that_wait_for_one_action_one_runs_it(
        self, make: Callable[..., Client], gate: Client, resolve: Resolve
    ) -> None:
        refusal, ran, refused = held(gate), [], []
        waiting = threading.Barrier(3)

        def wait(client: Client) -> None:
            guard = client.resume(refusal.intent_id, on_review="wait", review_seconds=30)
            waiting.wait()
            try:
                with guard as permit:
                    ran.append(permit.decision_id)
            except AlreadyStarted as error:
                refused.append(error.code)

        threads = [threading.Thread(target=wait, args=(make(),)) for _ in range(2)]
        for thread in threads:
            thread.start()
        waiting.wait()
        resolve(refusal)
        for thread in threads:
            thread.join()
        assert (ran, refused) == ([refusal.decision_id], ["ACTION_ALREADY_STARTED"])

    def test_a_guarded_function_waits_too(self, gate: Client, resolve: Resolve) -> None:
        refusal = held(gate)
        resolve(refusal)
        done = []

        @gate.guarded(
            sample_rulebook(),
            facts=lambda deal: REVIEW,
            action="approve_discount",
            target=lambda deal: ("crm", deal),
            on_review="wait",
            review_seconds=0.05,
        )
        def grant(deal: str, permit: Permit | None = None) -> None:
            assert permit is not None
            done.append(permit.decision_id)

        grant("deal-1042")
        assert done == [refusal.decision_id]
        with pytest.raises(HeldForReview):
            grant("deal-1043")
        assert len(done) == 1


class TestResuming:
    def test_another_process_with_the_store_goes_on_without_the_facts(
        self, make: Callable[..., Client], gate: Client, resolve: Resolve, tmp_path: Path
    ) -> None:
        refusal = held(gate, context={"amount": 12.5, "workflow": "pricing"})
        grant = resolve(refusal)
        with SqliteStore(tmp_path / "intents.db") as store:
            permit = resumes(make(store=store), refusal)
        assert permit.record == refusal.record
        assert permit.resolution == grant

    def test_a_grant_that_is_kept_opens_the_action_although_the_service_is_down(
        self, gate: Client, store: SqliteStore, service: Service, resolve: Resolve, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        refusal = held(gate)
        resolve(refusal)
        with dying_in(store, "start", monkeypatch, after=False), gate.resume(refusal.intent_id):
            raise AssertionError("the body ran")
        kept = store.find(refusal.intent_id)
        assert kept is not None
        assert kept.state is State.PERMITTED
        assert kept.resolution is not None
        asked = len(service.requests)
        assert resumes(gate, refusal).decision_id == refusal.decision_id
        assert [request.url.path for request in service.requests[asked:] if request.method == "GET"] == []

    @pytest.mark.parametrize(
        ("method", "after", "state"),
        [
            ("resolve", False, State.HELD),
            ("resolve", True, State.PERMITTED),
            ("start", False, State.PERMITTED),
            ("start", True, State.STARTED),
        ],
    )
    @pytest.mark.parametrize("entry", ["guard", "resume"])
    def test_a_death_before_the_start_is_gone_on_from_and_one_after_it_is_a_persons(
        self,
        gate: Client,
        store: SqliteStore,
        resolve: Resolve,
        monkeypatch: pytest.MonkeyPatch,
        method: str,
        after: bool,
        state: State,
        entry: str,
    ) -> None:
        refusal = held(gate)
        resolve(refusal)

        def enter() -> Any:
            return guarding(gate, REVIEW) if entry == "guard" else gate.resume(refusal.intent_id)

        with dying_in(store, method, monkeypatch, after=after), enter():
            raise AssertionError("the body ran")
        kept = store.find(refusal.intent_id)
        assert kept is not None
        assert kept.state is state
        if state is State.STARTED:
            refuses(AlreadyStarted, "ACTION_ALREADY_STARTED", enter())
            settle(store, refusal.intent_id, executed=False)
            # A grant opens its action once.
            assert held(gate).decision_id != refusal.decision_id
            return
        with enter() as permit:
            assert permit.decision_id == refusal.decision_id
        refuses(AlreadyStarted, "ACTION_ALREADY_STARTED", enter())

    def test_what_is_found_out_after_the_grant_ended_was_done_when_it_began(
        self, gate: Client, store: SqliteStore, resolve: Resolve, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        refusal = held(gate)
        grant = resolve(refusal)
        with dying_in(store, "start", monkeypatch, after=True), gate.resume(refusal.intent_id):
            raise AssertionError("the body ran")
        begun = store.find(refusal.intent_id)
        with monkeypatch.context() as patch:
            patch.setattr(reporting, "utc_now", lambda: utc_now() + 100 * HOUR)
            settle(store, refusal.intent_id, executed=True)
        gate.flush()
        (receipt,) = gate.list_executions(str(refusal.decision_id))["executions"]
        assert begun is not None
        assert receipt["executed_at"] == begun.started_at < grant["expires_at"]

    def test_a_kept_grant_whose_key_is_retired_meanwhile_opens_nothing_and_is_asked_anew(
        self,
        make: Callable[..., Client],
        gate: Client,
        instance: Instance,
        store: SqliteStore,
        resolve: Resolve,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        refusal = held(gate)
        resolve(refusal)
        with dying_in(store, "start", monkeypatch, after=False), gate.resume(refusal.intent_id):
            raise AssertionError("the body ran")
        keys = instance.trust().receipt_keys
        assert keys is not None
        document: Any = keys.to_dict()
        for key in document["keys"]:
            key |= {"status": "retired", "not_after": "2999-01-01T00:00:00.000Z"}
        document["active_key_id"] = None
        retired = make(registry=document)
        error = refuses(HeldForReview, "GRANT_KEY_RETIRED", retired.resume(refusal.intent_id))
        assert "client.guard() again for a new review" in error.message
        anew = held(retired)
        assert anew.decision_id != refusal.decision_id
        # From there the old grant opens nothing, not even for who pinned the keys before.
        for guard in (gate.resume(refusal.intent_id), guarding(gate, REVIEW)):
            assert refuses(HeldForReview, "ACTION_HELD", guard).decision_id == anew.decision_id
        resolve(anew)
        assert resumes(gate, refusal).decision_id == anew.decision_id

    def test_a_kept_grant_that_has_ended_is_asked_anew(
        self, gate: Client, store: SqliteStore, resolve: Resolve, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        refusal = held(gate)
        resolve(refusal)
        with dying_in(store, "start", monkeypatch, after=False), guarding(gate, REVIEW):
            raise AssertionError("the body ran")
        with later(25 * HOUR, monkeypatch):
            refuses(HeldForReview, "GRANT_EXPIRED", gate.resume(refusal.intent_id))
            assert held(gate).decision_id != refusal.decision_id
        first, second = reversed(store.attempts(refusal.intent_id, 9))
        assert (first.state, first.resolution is not None) == (State.SUPERSEDED, True)
        assert (second.state, second.resolution) == (State.HELD, None)

    def test_a_grant_that_ends_while_the_store_keeps_the_guard_waiting_starts_nothing(
        self, gate: Client, store: SqliteStore, resolve: Resolve, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        refusal = held(gate)
        resolve(refusal)
        real = store.start

        def start(*said: Any) -> bool:
            for module in (attempts, entering, review):
                monkeypatch.setattr(module, "utc_now", lambda: utc_now() + 25 * HOUR)
            return real(*said)

        monkeypatch.setattr(store, "start", start)
        refuses(HeldForReview, "GRANT_EXPIRED", gate.resume(refusal.intent_id))
        kept = store.find(refusal.intent_id)
        assert kept is not None
        assert (kept.state, kept.started_at) == (State.PERMITTED, None)

    def test_only_an_intent_that_is_held_for_review_is_resumed(
        self, gate: Client, store: SqliteStore, service: Service, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        refuses(OperatorError, "INTENT_UNKNOWN", gate.resume("int_0"))
        with pytest.raises(OperatorError, match="INTENT_UNKNOWN"):
            gate.resume(7)  # type: ignore[arg-type]
        with dying_in(store, "start", monkeypatch, after=False), guarding(gate, target=("crm", "yes")) as permit:
            raise AssertionError(permit)
        (permitted,) = store.listed([State.PERMITTED], 9)
        assert (
            "the gate says yes" in refuses(OperatorError, "INTENT_NOT_HELD", gate.resume(permitted.intent_id)).message
        )
        service.rewrite = lambda request, response: httpx.Response(503)
        with suppress(GateUnavailable), guarding(gate, target=("crm", "unasked")):
            raise AssertionError("the body ran")
        (unasked,) = store.listed([State.HELD], 9)
        refuses(OperatorError, "INTENT_NOT_HELD", gate.resume(unasked.intent_id))
        service.rewrite = lambda request, response: response
        runs(gate, target=("crm", "done"))
        started = next(each for each in store.listed(list(State), 9) if each.told is not None)
        refuses(AlreadyStarted, "ACTION_ALREADY_STARTED", gate.resume(started.intent_id))

    def test_a_no_is_told_as_one(self, gate: Client) -> None:
        blocked = refuses(Blocked, "ACTION_BLOCKED", guarding(gate, {"discount_percent": 10, "margin_percent": 9}))
        refuses(Blocked, "ACTION_BLOCKED", gate.resume(blocked.intent_id))

    def test_arguments_that_mean_nothing_are_refused(self, gate: Client) -> None:
        unusable: list[dict[str, Any]] = [
            {"on_review": "later"},
            {"on_review": "wait", "review_seconds": 0},
            {"on_review": "wait", "review_seconds": "300"},
            {"on_review": "wait", "review_seconds": True},
            {"review_seconds": 300},
            {"on_review": "raise", "review_seconds": 300},
        ]
        for said in unusable:
            with pytest.raises(OperatorError, match="ON_REVIEW_INVALID"):
                guarding(gate, **said)
            with pytest.raises(OperatorError, match="ON_REVIEW_INVALID"):
                gate.resume("int_0", **said)
        with pytest.raises(OperatorError, match="pass on_review='wait' with it"):
            guarding(gate, review_seconds=300.0)

    @pytest.mark.parametrize("said", [None, Recovery.HOLD, Recovery.EXECUTED, Recovery.NOT_EXECUTED])
    def test_an_older_copy_of_the_store_does_not_begin_a_granted_action_again(
        self, make: Callable[..., Client], gate: Client, resolve: Resolve, tmp_path: Path, said: Recovery | None
    ) -> None:
        refusal = held(gate)
        resolve(refusal)
        with sqlite3.connect(tmp_path / "intents.db") as whole, sqlite3.connect(tmp_path / "copy.db") as copied:
            whole.backup(copied)
        whole.close()
        copied.close()
        resumes(gate, refusal)
        gate.flush()
        with SqliteStore(tmp_path / "copy.db") as store:
            copy = make(store=store)
            for guard in (copy.resume(refusal.intent_id), guarding(copy, REVIEW)):
                error = refuses(AlreadyStarted, "ACTION_ALREADY_STARTED", guard)
                assert error.elsewhere
                assert "this store is an older copy" in error.message
                assert f'client.list_executions("{refusal.decision_id}")' in error.message
            if said is Recovery.NOT_EXECUTED:
                again = refuses(HeldForReview, "ACTION_HELD", guarding(copy, REVIEW, recover=lambda error: said))
                assert again.decision_id != refusal.decision_id
            elif said is not None:
                refuses(AlreadyStarted, "ACTION_ALREADY_STARTED", guarding(copy, REVIEW, recover=lambda error: said))

    def test_the_receipt_of_a_key_that_may_not_report_waits_for_one_that_may(
        self, make: Callable[..., Client], gate: Client, instance: Instance, scope: Scope, resolve: Resolve
    ) -> None:
        refusal = held(gate)
        resolve(refusal)
        key = instance.ledger.directory.create_key(scope, frozenset({"resolve"}), None, utc_now())[0]
        owner = make(key=key)
        permit = resumes(owner, refusal)
        failure = owner.flush().failure
        assert failure is not None
        assert failure.code == "SVC_EXECUTION_UNAUTHORIZED"
        assert gate.flush().delivered == 1
        (receipt,) = gate.list_executions(permit.decision_id)["executions"]
        assert receipt["flags"] == []

    def test_a_receipt_of_somebody_else_closes_the_action_if_it_is_about_its_target(
        self, gate: Client, resolve: Resolve
    ) -> None:
        refusal = held(gate)
        grant = resolve(refusal)
        said: Any = {"execution_status": "executed", "target_object_id": "deal-7"}
        assert gate.report_execution(grant["decision_id"], said)["flags"] == ["ACTION_BINDING_MISMATCH"]
        assert resumes(gate, refusal).decision_id == refusal.decision_id
        other = held(gate, target=("crm", "deal-1043"))
        resolve(other)
        said = {"execution_status": "executed", "action_taken": "approve_rebate"}
        gate.report_execution(str(other.decision_id), said)
        error = refuses(AlreadyStarted, "ACTION_ALREADY_STARTED", gate.resume(other.intent_id))
        assert "Either someone else reported it" in error.message

    def test_an_action_that_somebody_executed_before_its_grant_is_not_executed_again_unless_it_was_reverted(
        self, gate: Client, resolve: Resolve
    ) -> None:
        refusal = held(gate)
        receipt = gate.report_execution(str(refusal.decision_id), {"execution_status": "executed"})
        assert receipt["flags"] == ["DECISION_NOT_APPROVED"]
        assert gate.get_resolution(str(refusal.decision_id))["executed_at"] == receipt["reported_at"]
        resolve(refusal)
        for guard in (gate.resume(refusal.intent_id), guarding(gate, REVIEW)):
            error = refuses(AlreadyStarted, "ACTION_ALREADY_STARTED", guard)
            assert error.elsewhere
            assert "before its owner granted it" in error.message
        gate.report_execution(str(refusal.decision_id), {"execution_status": "reverted"})
        assert gate.get_resolution(str(refusal.decision_id))["executed_at"] is None
        assert resumes(gate, refusal).decision_id == refusal.decision_id

    def test_an_outcome_is_told_days_later(self, gate: Client, resolve: Resolve) -> None:
        refusal = held(gate)
        resolve(refusal)
        resumes(gate, refusal)
        permit = gate.recall(refusal.intent_id)
        assert (permit.action, permit.resolution is not None) == ("approve_discount", True)
        permit.outcome("reverted")
        gate.flush()
        (outcome,) = gate.list_outcomes(permit.decision_id)["outcomes"]
        assert outcome["outcome_status"] == "reverted"

    def test_what_a_session_rolls_back_is_granted_still(
        self, make: Callable[..., Client], resolve: Resolve, tmp_path: Path
    ) -> None:
        engine = create_engine(f"sqlite:///{tmp_path}/shop.db")
        store = SqlAlchemyStore(engine)
        store.create_tables()
        gate = make(store=store)
        refusal = held(gate)
        resolve(refusal)
        with Session(engine) as session:
            with gate.resume(refusal.intent_id, session=session):
                pass
            session.rollback()
        kept = store.find(refusal.intent_id)
        assert kept is not None
        assert (kept.state, kept.resolution is not None) == (State.PERMITTED, True)
        with Session(engine) as session:
            with gate.resume(refusal.intent_id, session=session):
                pass
            session.commit()
        refuses(AlreadyStarted, "ACTION_ALREADY_STARTED", gate.resume(refusal.intent_id))
        engine.dispose()

    def test_a_time_limit_that_the_owner_missed_is_told(self, gate: Client, instance: Instance, scope: Scope) -> None:
        instance.ledger.review_owners.set(scope, "pricing_exception", "", Terms("pricing desk", 1, 600), utc_now())
        refusal = held(gate)
        late = instance.resolutions(lambda: utc_now() + timedelta(seconds=5))
        assert late.expire_due(lambda row, error: pytest.fail(str(error))) == 1
        error = refuses(HeldForReview, "REVIEW_EXPIRED", gate.resume(refusal.intent_id))
        assert error.resolution["actor"] == {"type": "service", "id": "gate"}
        assert f"expired at {error.resolution['recorded_at']} without an answer" in error.message


class TestInALoop:
    def test_it_waits_is_cancelled_and_goes_on(
        self, client: FlaskClient, instance: Instance, key: str, store: SqliteStore, resolve: Resolve
    ) -> None:
        class Line(httpx.AsyncBaseTransport):
            """The application, asked in a thread of the loop's."""

            def __init__(self) -> None:
                self.looked = asyncio.Event()
                self._app = httpx.WSGITransport(client.application)

            async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
                asked = httpx.Request(request.method, request.url, headers=request.headers, content=request.read())
                answer = await asyncio.to_thread(self._app.handle_request, asked)
                if request.url.path.endswith("/resolution"):
                    self.looked.set()
                return httpx.Response(answer.status_code, headers=answer.headers, content=answer.read())

        ran: list[str] = []

        async def story() -> None:
            line = Line()
            gate = AsyncClient(
                "http://gate.example",
                key=key,
                registry=instance.trust().receipt_keys.to_dict(),  # type: ignore[union-attr]
                store=store,
                transport=line,
                delivery_transport=httpx.WSGITransport(client.application),
            )

            async def wait() -> None:
                async with gate.guard(
                    sample_rulebook(),
                    REVIEW,
                    action="approve_discount",
                    target=("crm", "deal-1042"),
                    on_review="wait",
                    review_seconds=30,
                ) as permit:
                    ran.append(permit.decision_id)

            task = asyncio.create_task(wait())
            await line.looked.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            (kept,) = await asyncio.to_thread(store.listed, [State.HELD], 9)
            assert kept.record is not None
            line.looked.clear()
            task = asyncio.create_task(wait())
            await line.looked.wait()
            refusal = HeldForReview("", "", record={"decision_id": kept.record["decision_id"]})
            await asyncio.to_thread(resolve, refusal)
            await task
            assert ran == [kept.record["decision_id"]]
            with pytest.raises(AlreadyStarted):
                async with gate.resume(kept.intent_id):
                    raise AssertionError("the body ran")
            await gate.close()

        asyncio.run(story())
