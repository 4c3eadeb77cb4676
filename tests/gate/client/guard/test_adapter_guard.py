"""Guards over the facts of a trusted adapter: what is asked for, what of an answer is believed, what is refused."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from flask.testing import FlaskClient

from gate.client import (
    AlreadyStarted,
    AsyncClient,
    AsyncPermit,
    Blocked,
    Client,
    Conflict,
    GateUnavailable,
    Guard,
    HeldForReview,
    Permit,
    Refused,
    ServiceFailed,
    SqliteStore,
    State,
    Undecidable,
)
from gate.clock import utc_now
from gate.encoding.canonical import content_hash
from gate.errors import MaterialRefused, RequestRefused
from gate.ids import timestamp
from gate.instance.instance import Instance
from gate.ledger.access.authority import Scope
from gate.proof import chain
from gate.proof.chain import link_material
from gate.proof.signing import Ed25519Signer
from gate.records.attestation import registration
from gate.records.envelope import input_material
from gate.records.record import Identity, build_record
from gate.records.request import read_request
from gate.rulebooks.facts import Facts, dependency_of
from gate.rulebooks.rulebook import load
from tests.gate.client.conftest import Rewrite, Service
from tests.gate.client.guarding import dying_in
from tests.support.adapters import (
    FAILING,
    LastingWorkers,
    equip,
    invocation_of,
    make_adapter,
    registered_as,
    rulebook_over,
)
from tests.support.tampering import Forger

SOLANA: Final = registered_as("solana_execution_gate@1.0.0")
RULEBOOK: Final = rulebook_over("treasury_transfer", "decision_score", "integer", 57)
YES: Final = {
    "sol_amount": 9,
    "risk_level": "low",
    "evidence_level": "strong",
    "quorum_signed": True,
    "budget_within_policy": True,
    "recipient_verified": True,
}
NO: Final = YES | {"quorum_signed": False, "recipient_verified": False, "evidence_level": "thin"}
FACTS: Final = {"decision_score": 99}
NAMED: Final[dict[str, Any]] = {
    "action": "transfer",
    "target": ("treasury", "transfer-7"),
    "outcome_action": "approve_it",
}


def transfer(given: dict[str, Any] = YES, **changes: Any) -> dict[str, Any]:
    """The invocation that scores a transfer."""
    return invocation_of(SOLANA, given) | changes


def guarding(client: Client, adapter: dict[str, Any] | None = None, **said: Any) -> Guard:
    return client.guard(**{"rulebook": RULEBOOK, "adapter": adapter or transfer(), **NAMED, **said})


def runs(client: Client, adapter: dict[str, Any] | None = None, **said: Any) -> Permit:
    with guarding(client, adapter, **said) as permit:
        pass
    return permit


def failing(name: str) -> dict[str, Any]:
    """The invocation of an adapter that makes no facts."""
    return invocation_of(FAILING[name], {})


PICKY: Final = make_adapter("picky", "def facts(given):\n    return {'decision_score': 100 // given['divisor']}\n")


def picky(divisor: int) -> dict[str, Any]:
    """The invocation of an adapter that fails with some inputs."""
    return invocation_of(PICKY, {"divisor": divisor})


ONE_OF_EACH: Final = ("it raises", "it imports what it may not", "it has no end", "its facts are no object")


EVERY: Final = (SOLANA, PICKY, *(FAILING[name] for name in ONE_OF_EACH))


@pytest.fixture(scope="module")
def workers() -> Iterator[LastingWorkers]:
    """What runs these adapters."""
    workers = LastingWorkers(EVERY)
    yield workers
    workers.end()


@pytest.fixture
def instance(instance: Instance, workers: LastingWorkers) -> Instance:
    """An instance with adapters that fail beside those of the release."""
    return equip(instance, EVERY, workers=workers)


Lie = Callable[[httpx.Request, dict[str, Any], dict[str, Any] | None], Any]


@pytest.fixture
def lie(instance: Instance, scope: Scope) -> Lie:
    """Makes records of a service that signs, with its own keys, other facts and another adapter than it was asked
    for.
    """

    def made(request: httpx.Request, facts: dict[str, Any], told: Any) -> Any:
        body = json.loads(request.content)
        read = read_request(body, content_hash(input_material(body)))
        rulebook, signers, now = load(read.rulebook), instance.signers(), timestamp(utc_now())
        dependency = None if told is None else dependency_of(told)
        registered = registration(
            rulebook.reference, scope.scope_id, now, signers.registry, adapter_dependency=dependency
        )
        identity = Identity(f"dec_{'0' * 32}", "req_0", request.headers["x-idempotency-key"], now)
        over = Facts(facts, plain=False, trusted_adapter=told)
        explained = rulebook.evaluator.explain(facts)
        record = build_record(
            read, rulebook, registered, over, explained, identity, signers, schema_url=instance.settings.schema_url
        )
        return {**record, "audit_chain": chain.record_link(chain.append(chain.Head("lies"), link_material(record)))}

    return made


@pytest.fixture
def make_async(client: FlaskClient, instance: Instance, key: str, store: SqliteStore) -> Callable[..., AsyncClient]:
    """Makes clients for asyncio."""

    def make(rewrite: Rewrite | None = None) -> AsyncClient:
        return AsyncClient(
            "http://gate.example",
            key=key,
            registry=instance.trust().receipt_keys.to_dict(),  # type: ignore[union-attr]
            store=store,
            tries=1,
            transport=InLoop(client, rewrite),
            delivery_transport=httpx.WSGITransport(client.application),
        )

    return make


class InLoop(httpx.AsyncBaseTransport):
    """The application, asked in a thread of the loop's."""

    def __init__(self, client: FlaskClient, rewrite: Rewrite | None) -> None:
        self._service = Service(client)
        if rewrite is not None:
            self._service.rewrite = rewrite

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await request.aread()
        sent = httpx.Request(request.method, request.url, headers=request.headers, content=request.content)
        answer = await asyncio.to_thread(self._service.handle_request, sent)
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)


class TestAYes:
    def test_the_adapter_makes_the_facts_that_it_is_about(self, gate: Client) -> None:
        (listed,) = (
            each for each in gate.list_trusted_adapters()["adapters"] if each["adapter_id"] == "solana_execution_gate"
        )
        asked = {
            "adapter_id": listed["adapter_id"],
            "version": listed["version"],
            "manifest_hash": listed["manifest_hash"],
        }
        permit = runs(gate, {**asked, "input": YES})
        assert permit.record["adapter_facts"] == {
            **YES,
            "decision_score": 99,
            "decision_edge_points": 42,
            "confidence_pct": 94,
        }
        assert permit.intent.request["adapter"] == {**asked, "input": YES}
        assert "inputs" not in permit.intent.request["context"]
        assert gate.verify(permit.record, request=permit.intent.request).verified

    def test_its_run_is_reported_with_the_binding_that_was_decided(self, gate: Client, store: SqliteStore) -> None:
        permit = runs(gate)
        gate.flush()
        (receipt,) = gate.list_executions(permit.decision_id)["executions"]
        assert receipt["execution_status"] == "executed"
        assert receipt["action_binding_match"] is True
        kept = store.find(permit.intent_id)
        assert kept is not None
        assert kept.state is State.REPORTED

    def test_a_number_that_json_writes_alike_is_the_same_input(self, gate: Client) -> None:
        permit = runs(gate, transfer(YES | {"sol_amount": 9.0}))
        assert permit.record["adapter_facts"]["decision_score"] == 99

    def test_what_the_caller_changes_after_making_the_guard_is_not_what_is_asked(self, gate: Client) -> None:
        asked = transfer(dict(YES))
        guard = guarding(gate, asked)
        asked["input"]["quorum_signed"] = False
        asked["adapter_id"] = "another"
        with guard as permit:
            assert permit.intent.request["adapter"] == transfer(YES)

    def test_a_no_blocks_and_a_review_holds(self, gate: Client) -> None:
        with pytest.raises(Blocked) as blocked, guarding(gate, transfer(NO)):
            raise AssertionError("the body ran")
        assert blocked.value.record is not None
        assert blocked.value.record["adapter_facts"]["quorum_signed"] is False
        over_more = rulebook_over("treasury_claims", "claim", "number", 1)
        with (
            pytest.raises(HeldForReview, match=r"claim \(missing\).*the adapter omits a field that the rulebook needs"),
            gate.guard(over_more, adapter=transfer(), **NAMED),
        ):
            raise AssertionError("the body ran")


class TestTheIntent:
    def test_it_is_the_same_whatever_makes_the_facts(self, gate: Client) -> None:
        ids = {
            guarding(gate).intent_id,
            guarding(gate, transfer(NO)).intent_id,
            guarding(gate, transfer(version="9.9.9")).intent_id,
            gate.guard(RULEBOOK, FACTS, **NAMED).intent_id,
        }
        assert len(ids) == 1

    def test_it_is_not_begun_twice_over_another_input_or_over_facts(self, gate: Client, service: Service) -> None:
        permit = runs(gate)
        for again in (guarding(gate), guarding(gate, transfer(NO)), gate.guard(RULEBOOK, FACTS, **NAMED)):
            with pytest.raises(AlreadyStarted) as already, again:
                raise AssertionError("the body ran")
            assert already.value.record == permit.record
        assert service.asked("/api/decide") == 1

    def test_another_input_is_decided_anew(self, gate: Client) -> None:
        with pytest.raises(Blocked) as blocked, guarding(gate, transfer(NO)):
            raise AssertionError("the body ran")
        permit = runs(gate)
        assert (permit.intent_id, permit.intent.attempt) == (blocked.value.intent_id, 2)

    @pytest.mark.parametrize(
        ("method", "after"),
        [("hold", False), ("hold", True), ("answer", False), ("answer", True), ("start", False)],
    )
    def test_a_process_that_died_before_the_body_is_gone_on_from_with_one_decision(
        self, gate: Client, store: SqliteStore, monkeypatch: pytest.MonkeyPatch, method: str, after: bool
    ) -> None:
        with dying_in(store, method, monkeypatch, after=after), guarding(gate):
            raise AssertionError("the body ran")
        permit = runs(gate)
        assert permit.intent.attempt == 1
        assert gate.find_decisions(policy_id="treasury_transfer")["count"] == 1


class TestTheArguments:
    @pytest.mark.parametrize(
        ("said", "field", "sentence"),
        [
            ({"facts": FACTS, "adapter": transfer()}, "adapter", "remove either adapter or facts"),
            ({"facts": {}, "adapter": transfer()}, "adapter", "remove either adapter or facts"),
            ({}, "facts", "pass facts, or adapter= to let an adapter compute them"),
            ({"facts": None, "adapter": None}, "facts", "pass facts, or"),
            ({"adapter": {}}, "adapter", "adapter_id, version, manifest_hash, input"),
            ({"adapter": "solana_execution_gate@1.0.0"}, "adapter", "adapter_id, version, manifest_hash, input"),
            ({"adapter": transfer() | {"verdict": "yes"}}, "adapter", "and nothing else"),
            ({"adapter": {**transfer(), "manifest_hash": None}}, "adapter.manifest_hash", "must be a string"),
            ({"adapter": {**transfer(), "version": 1}}, "adapter.version", "must be a string"),
            ({"adapter": {**transfer(), "input": [1]}}, "adapter.input", "must be a mapping"),
            ({"adapter": transfer({"x": "y" * 1_100_000})}, "adapter.input", "refer to large data by id"),
        ],
    )
    def test_what_cannot_be_asked_is_refused_before_it_is_with_what_to_do(
        self, gate: Client, service: Service, said: dict[str, Any], field: str, sentence: str
    ) -> None:
        with pytest.raises(RequestRefused, match=sentence) as refused:
            gate.guard(RULEBOOK, **said, **NAMED)
        assert refused.value.code == "SVC_API_REQUEST_INVALID"
        assert [fault.field for fault in refused.value.errors] == [field]
        assert service.requests == []

    def test_what_is_no_json_in_an_input_is_named_by_its_path(self, gate: Client) -> None:
        with pytest.raises(MaterialRefused) as refused:
            guarding(gate, transfer({"scores": [1, float("nan")]}))
        assert [fault.field for fault in refused.value.errors] == ["adapter.input.scores[1]"]

    def test_the_adapter_is_the_guards_to_say_and_no_member_of_the_context(self, gate: Client) -> None:
        with pytest.raises(RequestRefused, match=r"context\.inputs"):
            guarding(gate, context={"inputs": FACTS})


def rewriting(change: Callable[[Any, httpx.Request], Any]) -> Rewrite:
    """Changes the records that the service decides."""

    def rewrite(request: httpx.Request, response: httpx.Response) -> httpx.Response:
        if request.url.path != "/api/decide" or response.status_code != 200:
            return response
        return httpx.Response(200, json=change(response.json(), request))

    return rewrite


def signed_anew(record: Any, edits: list[dict[str, Any]], signer: Ed25519Signer) -> Any:
    """A record with edits, every hash computed again, under a signature."""
    forger = Forger({"decision_record": record})
    for edit in edits:
        forger.edit({name: ("decision_record", *path) if name != "to" else path for name, path in edit.items()})
    forger.recompute(["record", "receipt"], signer)
    return forger.packet["decision_record"]


OTHER_HASH: Final = "0" * 64
EDITS: Final[dict[str, list[dict[str, Any]]]] = {
    "no adapter": [{"remove": ["trusted_adapter"]}],
    "another adapter": [{"set": ["trusted_adapter", "adapter_id"], "to": "lenient_gate"}],
    "another version": [{"set": ["trusted_adapter", "version"], "to": "1.0.1"}],
    "another manifest": [{"set": ["trusted_adapter", "manifest_hash"], "to": OTHER_HASH}],
    "another source": [{"set": ["trusted_adapter", "implementation_hash"], "to": OTHER_HASH}],
    "another input": [{"set": ["trusted_adapter", "input_hash"], "to": OTHER_HASH}],
    "another output": [{"set": ["trusted_adapter", "output_hash"], "to": OTHER_HASH}],
    "no facts": [{"remove": ["adapter_facts"]}],
    "other facts": [{"set": ["adapter_facts", "decision_score"], "to": 58}],
    "facts that were erased": [{"set": ["adapter_facts"], "to": None}],
    "the other binding": [{"set": ["runtime_binding", "binding_mode"], "to": "direct_declarative_rulebook"}],
    "no authority": [{"remove": ["runtime_binding", "adapter_authority"]}],
    "more authority": [{"set": ["runtime_binding", "adapter_authority"], "to": "verdict"}],
    "no dependency": [{"remove": ["rulebook_registry", "adapter_dependency"]}],
    "another dependency": [{"set": ["rulebook_registry", "adapter_dependency", "version"], "to": "1.0.1"}],
}


class TestAnAnswerThatWasChanged:
    @pytest.mark.parametrize("edits", EDITS.values(), ids=EDITS)
    @pytest.mark.parametrize("signed", [False, True], ids=["as it is", "signed by the service"])
    def test_whatever_it_says_of_the_adapter_permits_nothing_and_the_true_one_does(
        self,
        gate: Client,
        service: Service,
        instance: Instance,
        edits: list[dict[str, Any]],
        signed: bool,
    ) -> None:
        signer = instance.signers().receipt if signed else Ed25519Signer("receipt_of_a_stranger", bytes(range(32)))
        assert isinstance(signer, Ed25519Signer)
        service.rewrite = rewriting(lambda record, _: signed_anew(record, edits, signer))
        with pytest.raises(GateUnavailable) as unavailable, guarding(gate):
            raise AssertionError("the body ran")
        assert unavailable.value.code == "RECORD_UNVERIFIED"
        service.rewrite = lambda request, response: response
        assert runs(gate).intent.attempt == 1

    @pytest.mark.parametrize(
        ("changes", "why"),
        [
            (
                {"adapter_id": "lenient_gate"},
                "the adapter_id of its adapter is lenient_gate, but you asked for solana_execution_gate",
            ),
            ({"version": "1.0.1"}, "the version of its adapter is 1.0.1, but you asked for 1.0.0"),
            ({"version": None}, "the version of its adapter is None"),
            ({"manifest_hash": OTHER_HASH}, f"the manifest_hash of its adapter is {OTHER_HASH}"),
        ],
    )
    def test_another_adapter_that_the_service_vouches_for_is_not_the_one_that_was_asked_for(
        self, gate: Client, service: Service, lie: Lie, changes: dict[str, Any], why: str
    ) -> None:
        def of_another(record: Any, request: httpx.Request) -> Any:
            told = {name: value for name, value in (record["trusted_adapter"] | changes).items() if value is not None}
            return lie(request, record["adapter_facts"], told)

        service.rewrite = rewriting(of_another)
        with pytest.raises(GateUnavailable, match=why) as foreign, guarding(gate):
            raise AssertionError("the body ran")
        assert foreign.value.code == "RECORD_FOREIGN"
        assert gate.verify(foreign.value.record).verified

    def test_what_the_service_vouches_for_is_believed_where_it_is_what_was_asked_for(
        self, gate: Client, service: Service, lie: Lie
    ) -> None:
        service.rewrite = rewriting(
            lambda record, request: lie(request, record["adapter_facts"], record["trusted_adapter"])
        )
        assert runs(gate).record["trusted_adapter"]["adapter_id"] == "solana_execution_gate"

    def test_facts_that_the_adapter_did_not_make_do_not_verify(self, gate: Client, service: Service, lie: Lie) -> None:
        service.rewrite = rewriting(lambda record, request: lie(request, FACTS, record["trusted_adapter"]))
        with pytest.raises(GateUnavailable) as unavailable, guarding(gate):
            raise AssertionError("the body ran")
        assert unavailable.value.code == "RECORD_UNVERIFIED"

    def test_a_genuine_yes_over_another_input_is_not_one_over_this(self, gate: Client, service: Service) -> None:
        genuine = runs(gate, target=("treasury", "transfer-6")).record
        service.rewrite = rewriting(lambda record, _: genuine)
        with pytest.raises(GateUnavailable) as unavailable, guarding(gate, transfer(NO)):
            raise AssertionError("the body ran")
        assert unavailable.value.code == "RECORD_UNVERIFIED"
        assert unavailable.value.verification is not None
        assert unavailable.value.verification.checks["adapter_input_hash"] is False

    def test_a_record_over_facts_from_nowhere_is_not_one_over_an_adapters(
        self, gate: Client, service: Service, lie: Lie
    ) -> None:
        always = RULEBOOK | {
            "default_outcome": RULEBOOK["rules"][0]["outcome"],
            "input_schema": {"required": [], "properties": {}},
        }
        service.rewrite = rewriting(lambda record, request: lie(request, {}, None))
        with (
            pytest.raises(GateUnavailable, match="no adapter computed its facts") as foreign,
            gate.guard(always, adapter=transfer(), **NAMED),
        ):
            raise AssertionError("the body ran")
        assert foreign.value.code == "RECORD_FOREIGN"
        assert foreign.value.record is not None
        assert foreign.value.record["verdict"] == "yes"

    def test_a_record_over_an_adapters_facts_is_not_one_over_facts_that_were_given(
        self, gate: Client, service: Service, lie: Lie
    ) -> None:
        # No request has such an input: what verification compares with it is what a request without an adapter has.
        told = {**SOLANA.dependency, "input_hash": content_hash(None), "output_hash": content_hash(FACTS)}
        service.rewrite = rewriting(lambda record, request: lie(request, FACTS, told))
        with (
            pytest.raises(GateUnavailable, match="computed its facts, but you passed the facts yourself") as foreign,
            gate.guard(RULEBOOK, FACTS, **NAMED),
        ):
            raise AssertionError("the body ran")
        assert foreign.value.code == "RECORD_FOREIGN"


class TestARefusal:
    @pytest.mark.parametrize(
        ("adapter", "code", "status"),
        [
            (transfer(manifest_hash="x"), "TRUSTED_ADAPTER_INVALID", 422),
            (transfer(version="9.9.9"), "TRUSTED_ADAPTER_NOT_REGISTERED", 422),
            (transfer(manifest_hash=OTHER_HASH), "TRUSTED_ADAPTER_MANIFEST_MISMATCH", 422),
            (transfer(YES | {"sol_amount": "nine"}), "TRUSTED_ADAPTER_INPUT_INVALID", 422),
            (transfer(YES | {"action": "transfer"}), "RULEBOOK_OUTPUT_MATERIAL_FORBIDDEN", 422),
            (failing("it raises"), "TRUSTED_ADAPTER_EXECUTION_FAILED", 502),
            (failing("it imports what it may not"), "TRUSTED_ADAPTER_CAPABILITY_DENIED", 502),
            (failing("it has no end"), "TRUSTED_ADAPTER_EXECUTION_TIMEOUT", 502),
            (failing("its facts are no object"), "TRUSTED_ADAPTER_OUTPUT_INVALID", 502),
        ],
        ids=lambda value: value if isinstance(value, str) else "",
    )
    def test_it_keeps_the_code_and_sentence_of_the_service_and_the_action_is_held_until_the_input_is_mended(
        self, gate: Client, service: Service, store: SqliteStore, adapter: dict[str, Any], code: str, status: int
    ) -> None:
        # A rulebook is bound to the adapter that its first request invokes, also to one that fails.
        with pytest.raises(GateUnavailable) as refused, guarding(gate, adapter, rulebook=RULEBOOK | {"version": "0"}):
            raise AssertionError("the body ran")
        failure = refused.value.failure
        assert type(failure) is (Refused if status == 422 else ServiceFailed)
        assert type(refused.value) is (Undecidable if status == 422 else GateUnavailable)
        assert (refused.value.code, failure.code, failure.status) == (code, code, status)
        assert failure.message in refused.value.message
        assert (refused.value.errors, refused.value.details) == (failure.errors, failure.details)
        assert refused.value.record is None
        kept = store.find(refused.value.intent_id)
        assert kept is not None
        assert (kept.state, kept.answered) == (State.HELD, None)
        assert runs(gate).intent_id == refused.value.intent_id

    def test_it_names_the_members_of_the_input_at_fault(self, gate: Client) -> None:
        with pytest.raises(GateUnavailable) as refused, guarding(gate, transfer(YES | {"sol_amount": "nine"})):
            raise AssertionError("the body ran")
        assert [fault.field for fault in refused.value.errors] == ["adapter.input.sol_amount"]

    def test_a_rulebook_keeps_its_source_of_facts(self, gate: Client) -> None:
        runs(gate, target=("treasury", "transfer-6"))
        with pytest.raises(Undecidable) as refused, gate.guard(RULEBOOK, FACTS, **NAMED):
            raise AssertionError("the body ran")
        assert isinstance(refused.value.failure, Conflict)
        assert refused.value.code == "RULEBOOK_VERSION_CONFLICT"
        assert "is registered with facts from the adapter solana_execution_gate@1.0.0" in refused.value.message
        assert refused.value.details["registered_adapter_dependency"] == SOLANA.dependency
        assert runs(gate).intent_id == refused.value.intent_id

    def test_facts_and_an_adapter_that_something_in_between_puts_together_are_refused_by_the_service(
        self, gate: Client, service: Service, client: FlaskClient
    ) -> None:
        def of_both(request: httpx.Request, _: httpx.Response) -> httpx.Response:
            body = json.loads(request.content)
            body["context"]["inputs"] = FACTS
            answer = client.post("/api/decide", json=body, headers={"x-api-key": request.headers["x-api-key"]})
            return httpx.Response(answer.status_code, content=answer.data)

        service.rewrite = of_both
        with pytest.raises(Undecidable) as refused, guarding(gate):
            raise AssertionError("the body ran")
        assert refused.value.code == "TRUSTED_ADAPTER_INPUT_CONFLICT"

    def test_an_adapter_that_failed_and_makes_facts_later_is_asked_again_as_it_was(
        self, gate: Client, service: Service
    ) -> None:
        failure = {"error": "TRUSTED_ADAPTER_EXECUTION_FAILED", "message": "No worker can run here."}
        sent, answer = [], service.handle_request

        def failed(request: httpx.Request) -> httpx.Response:
            sent.append(request.content)
            return httpx.Response(502, json=failure) if len(sent) == 1 else answer(request)

        service.handle_request = failed  # type: ignore[method-assign]
        with pytest.raises(GateUnavailable), guarding(gate):
            raise AssertionError("the body ran")
        assert runs(gate).intent.attempt == 1
        assert sent[0] == sent[1]

    def test_what_ran_after_an_adapter_had_failed_is_not_given_to_another_store_either(
        self, gate: Client, make: Callable[..., Client], tmp_path: Path
    ) -> None:
        with pytest.raises(GateUnavailable, match="ZeroDivisionError"), guarding(gate, picky(0)):
            raise AssertionError("the body ran")
        permit = runs(gate, picky(1))
        assert permit.intent.attempt == 2
        with SqliteStore(tmp_path / "other.db") as other:
            with pytest.raises(AlreadyStarted) as already, guarding(make(store=other), picky(1)):
                raise AssertionError("the body ran")
            assert already.value.record == permit.record

    def test_what_is_decided_late_for_a_store_is_not_taken_for_another_stores(
        self, gate: Client, service: Service, store: SqliteStore
    ) -> None:
        """The first request is on its way for so long that it is given up, and is decided then."""
        late: list[httpx.Request] = []
        answer, busy = service.handle_request, {"error": "TRUSTED_ADAPTER_EXECUTION_TIMEOUT", "message": "Busy."}

        def slow(request: httpx.Request) -> httpx.Response:
            if request.url.path != "/api/decide":
                return answer(request)
            if json.loads(request.content)["adapter"]["input"] == NO and len(late) < 2:
                late.append(request)
                if len(late) == 1:
                    raise httpx.ReadTimeout("It is on its way.", request=request)
                return httpx.Response(502, json=busy)
            if len(late) == 2:
                assert answer(late[0]).status_code == 200
                late.append(request)
            return answer(request)

        service.handle_request = slow  # type: ignore[method-assign]
        with pytest.raises(GateUnavailable), guarding(gate, transfer(NO)):
            raise AssertionError("the body ran")
        permit = runs(gate)
        assert (permit.intent.attempt, permit.record["verdict"]) == (3, "yes")
        with pytest.raises(AlreadyStarted), guarding(gate):
            raise AssertionError("the body ran")

    def test_that_it_was_decided_for_this_store_is_believed_only_with_the_record(
        self, gate: Client, make: Callable[..., Client], service: Service, tmp_path: Path
    ) -> None:
        with pytest.raises(GateUnavailable), guarding(gate, failing("it raises")):
            raise AssertionError("the body ran")
        given_up = service.requests[-1].content
        with pytest.raises(GateUnavailable), guarding(gate, picky(0)):
            raise AssertionError("the body ran")
        with SqliteStore(tmp_path / "other.db") as other:
            runs(make(store=other))

        def lie(request: httpx.Request, response: httpx.Response) -> httpx.Response:
            if response.status_code != 409:
                return response
            body = response.json() | {"existing_input_hash": content_hash(input_material(json.loads(given_up)))}
            return httpx.Response(409, json=body)

        service.rewrite = lie
        with pytest.raises(GateUnavailable) as unavailable, guarding(gate, picky(0)):
            raise AssertionError("the body ran")
        assert unavailable.value.code == "SVC_API_IDEMPOTENCY_CONFLICT"
        service.rewrite = lambda request, response: response
        with pytest.raises(AlreadyStarted), guarding(gate, picky(0)):
            raise AssertionError("the body ran")

    def test_what_the_key_may_not_register_holds_up_no_other_rulebook(
        self, gate: Client, make: Callable[..., Client], instance: Instance, scope: Scope
    ) -> None:
        runs(gate, target=("treasury", "another"))
        key = instance.ledger.directory.create_key(scope, ("decide", "report"), None, utc_now())[0]
        deciding = make(key=key)
        newer = {**RULEBOOK, "version": "2099-01-01"}
        with pytest.raises(GateUnavailable, match="lacks the access"), guarding(deciding, rulebook=newer):
            raise AssertionError("the body ran")
        named = f"{RULEBOOK['rulebook_id']}@{RULEBOOK['version']}"
        assert runs(deciding, rulebook=named).intent.attempt == 2

    def test_a_failure_whose_words_a_proxy_replaces_holds_up_no_other_input(
        self, gate: Client, service: Service
    ) -> None:
        def replaced(_: httpx.Request, response: httpx.Response) -> httpx.Response:
            return httpx.Response(502, html="<h1>Bad Gateway</h1>") if response.status_code == 502 else response

        service.rewrite = replaced
        with pytest.raises(GateUnavailable, match="502"), guarding(gate, picky(0)):
            raise AssertionError("the body ran")
        assert runs(gate, picky(1)).intent.attempt == 2

    def test_an_adapter_that_fails_is_tried_again_under_the_same_key(
        self, make: Callable[..., Client], service: Service
    ) -> None:
        with pytest.raises(GateUnavailable), guarding(make(tries=2), failing("it raises")):
            raise AssertionError("the body ran")
        assert service.asked("/api/decide") == 2
        assert len({request.headers["x-idempotency-key"] for request in service.requests}) == 1
        assert len({request.content for request in service.requests}) == 1


class TestAFunction:
    def test_its_adapter_is_a_function_of_its_arguments(self, gate: Client) -> None:
        def adapter(transfer_id: str, amount: float) -> dict[str, Any]:
            return transfer(YES | {"sol_amount": amount})

        @gate.guarded(
            RULEBOOK,
            adapter=adapter,
            action="transfer",
            outcome_action="approve_it",
            target=lambda transfer_id, amount: ("treasury", transfer_id),
        )
        def send(transfer_id: str, amount: float, permit: Permit | None = None) -> Any:
            assert permit
            return permit.record["adapter_facts"]["sol_amount"]

        assert send("transfer-1", 9) == 9
        assert send("transfer-2", amount=12.5) == 12.5
        with pytest.raises(AlreadyStarted):
            send("transfer-1", 10)

    def test_it_does_not_run_where_the_adapter_refuses_its_arguments(self, gate: Client) -> None:
        @gate.guarded(RULEBOOK, adapter=lambda given: transfer(given), **NAMED)
        def send(given: Any) -> None:
            raise AssertionError("the body ran")

        with pytest.raises(GateUnavailable) as refused:
            send({})
        assert refused.value.code == "TRUSTED_ADAPTER_INPUT_INVALID"

    def test_what_gives_it_no_facts_or_gives_them_twice_is_refused_when_it_is_decorated(
        self, gate: Client, store: SqliteStore
    ) -> None:
        client = AsyncClient("http://gate.example", key="dgk_1_2", registry={"keys": []}, store=store)
        for guarded in (gate.guarded, client.guarded):
            with pytest.raises(RequestRefused, match="remove either adapter or facts"):
                guarded(RULEBOOK, facts=dict, adapter=transfer, **NAMED)
            with pytest.raises(RequestRefused, match="pass facts, or adapter="):
                guarded(RULEBOOK, **NAMED)


class TestInAnEventLoop:
    def test_a_block_and_a_function_are_guarded_alike(self, make_async: Callable[[], AsyncClient]) -> None:
        async def main() -> None:
            async with make_async() as gate:
                async with gate.guard(RULEBOOK, adapter=transfer(), **NAMED) as permit:
                    assert permit.record["adapter_facts"]["decision_score"] == 99

                @gate.guarded(
                    RULEBOOK,
                    adapter=lambda name: transfer(),
                    **{**NAMED, "target": lambda name: ("treasury", name)},
                )
                async def send(name: str, permit: AsyncPermit | None = None) -> str:
                    assert permit
                    return permit.action

                assert await send("transfer-2") == "approve_it"
                with pytest.raises(AlreadyStarted):
                    await send("transfer-7")

        asyncio.run(main())

    def test_refusals_and_unusable_arguments_are_the_same(self, make_async: Callable[[], AsyncClient]) -> None:
        async def main() -> None:
            async with make_async() as gate:
                with pytest.raises(RequestRefused, match="remove either adapter or facts"):
                    gate.guard(RULEBOOK, FACTS, adapter=transfer(), **NAMED)
                for adapter, code in (
                    (transfer({}), "TRUSTED_ADAPTER_INPUT_INVALID"),
                    (failing("it raises"), "TRUSTED_ADAPTER_EXECUTION_FAILED"),
                ):
                    with pytest.raises(GateUnavailable) as refused:
                        async with gate.guard(RULEBOOK, adapter=adapter, **NAMED):
                            raise AssertionError("the body ran")
                    assert refused.value.code == code

        asyncio.run(main())

    def test_an_answer_that_was_changed_permits_nothing(self, make_async: Callable[..., AsyncClient]) -> None:
        def changed(record: Any, _: httpx.Request) -> Any:
            return signed_anew(record, EDITS["another manifest"], Ed25519Signer("stranger", bytes(range(32))))

        async def main() -> None:
            async with make_async(rewriting(changed)) as gate:
                with pytest.raises(GateUnavailable) as unavailable:
                    async with gate.guard(RULEBOOK, adapter=transfer(), **NAMED):
                        raise AssertionError("the body ran")
                assert unavailable.value.code == "RECORD_UNVERIFIED"

        asyncio.run(main())
