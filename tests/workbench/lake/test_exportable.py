"""Whatever the service accepts can be exported: each request member left out or extreme, each fact any JSON value."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gate.clock import utc_now
from gate.encoding.canonical import compact, content_hash
from gate.encoding.strict_json import MAX_REQUEST_DEPTH, parse
from gate.errors import MaterialRefused, RequestRefused
from gate.instance.instance import Instance
from gate.ledger import Ledger
from gate.ledger.access.authority import FULL_ACCESS
from gate.records.reports.receipts import CRM_SYNCS, EXECUTIONS, OUTCOMES, Kind
from tests.reference.strategies import facts as any_facts
from tests.reference.strategies import json_numbers, json_texts, json_values, rulebooks
from tests.support.samples import sample_rulebook
from tests.support.tiers import examples
from tests.support.torture import size
from tests.workbench.support import claim_request
from workbench.engines.counterfactuals import counterfactuals
from workbench.engines.effectiveness import effectiveness
from workbench.lake.compaction import Compactor
from workbench.lake.entries import Personal
from workbench.lake.export import Exporter
from workbench.lake.fresh import fresh
from workbench.lake.manifest import load
from workbench.lake.reader import Snapshot, open_lake
from workbench.lake.verify import verify

MARKS: Final = ("inputs.customer.email", "target_object_id", "observed_metrics")
EMAIL: Final = "ada@example.com"
# Members that hold the request, its context and its facts.
_ABOVE: Final = 3
_serial = itertools.count()

Body = dict[str, Any]


def nested(levels: int) -> Any:
    """A value that nests so deep, of arrays and objects by turns."""
    value: Any = "\U0001f600"
    for level in range(levels):
        value = [value] if level % 2 else {"a": value}
    return value


def wide_rulebook() -> Body:
    """A rulebook over facts that lie deep, may be withheld, or are large numbers."""
    tests = [
        ("tags", "contains", 1e16),
        ("tags", "eq", [1e16]),
        ("amount", "in", [1e20, -0.0, 5e-324, "\u0000"]),
        ("amount", "gt", 1e308),
        ("customer.email", "contains", "@"),
        ("customer", "eq", {"email": EMAIL}),
        ("customer.name", "neq", "\U0001f600"),
        ("order", "not_in", [{"total": 1e16}, [1e21]]),
        ("owner.address.geo.marks", "not_contains", {"a": [1e16]}),
    ]
    body = sample_rulebook()
    outcome = body["rules"][1]["outcome"]
    rules = [
        {
            "rule_id": f"rule_{number}",
            "condition": {"field": field, "operator": operator, "value": value},
            "outcome": {**outcome, "decision": ("no", "review", "yes")[number % 3]},
        }
        for number, (field, operator, value) in enumerate(tests)
    ]
    return {**body, "rulebook_id": "wide", "input_schema": {"required": [], "properties": {}}, "rules": rules}


WIDE: Final = wide_rulebook()
RULEBOOKS: Final = (WIDE, {**WIDE, "version": "\u00e9 2"}, sample_rulebook())


def asked(**members: Any) -> Body:
    """A Decision Request over the wide rulebook."""
    return {"mode": "rulebook", "rulebook": WIDE, **members}


NUMBERS: Final[Sequence[float]] = (1e16, 1e20, 1e21, 1e308, 5e-324, -0.0, 2**53 - 1, -(2**53) + 1, float(2**53), 1e-7)
FACTS: Final[Sequence[Body]] = (
    {},
    *({"amount": number, "tags": [number], "order": {"total": number}} for number in NUMBERS),
    {"tags": [1e16], "owner": {"address": {"geo": {"marks": [{"a": [1e16]}]}}}, "customer": {"email": 1e16}},
    {"deep": nested(MAX_REQUEST_DEPTH - _ABOVE)},
    {"customer": nested(MAX_REQUEST_DEPTH - _ABOVE)},
    {"\u0000": "\u0000", "\U0001f600": {"\ue000": "\uffff", "\u00e9": 1e16}, "": ""},
    {"customer": {"email": EMAIL, "name": "Ada"}},
    {"customer": [{"email": EMAIL}]},
    {"customer.email": EMAIL, "customer": EMAIL.partition("@")[0], "customer.name": 1},
    {"customer": {"email": {"home": [EMAIL]}, "email.home": EMAIL, "n": 1e20}},
    {"customer": None, "amount": {"value": 1}, "tags": "text"},
)
AMOUNTS: Final[Sequence[Any]] = (*NUMBERS, True, None, "12", {"value": 1e16}, [])
CURRENCIES: Final[Sequence[Any]] = ("", "\u0000", {"code": "EUR"}, 1, None, ["EUR"])
ACTORS: Final[Sequence[Any]] = (1e16, ["\u0000"], None, "", {}, -0.0, "\U0001f600", False)
CONTEXTS: Final[Sequence[Body]] = (
    {},
    {"inputs": {}},
    *({"amount": amount} for amount in AMOUNTS),
    *({"currency": currency} for currency in CURRENCIES),
    *({"actor": actor, "subject": actor} for actor in ACTORS),
    {"target_system": "\u0000", "target_object_id": "\U0001f600", "requested_action": "", "mutation": "\u2028"},
    {"workflow": "", "actor": nested(MAX_REQUEST_DEPTH - 2), "more": nested(MAX_REQUEST_DEPTH - 2)},
)


def requests() -> Iterator[Body]:
    """Decision Requests at the limits of what is accepted."""
    yield from (asked(context={"inputs": facts}) for facts in FACTS)
    yield from (asked(context=context) for context in CONTEXTS)
    for rulebook in RULEBOOKS:
        yield {"mode": "rulebook", "rulebook": rulebook}
        yield {"mode": "rulebook", "rulebook_ref": {"hash": content_hash(rulebook)}}
        known = {name: rulebook[name] for name in ("rulebook_id", "version")}
        yield {"mode": "rulebook", "rulebook_ref": known, "context": {"inputs": {"amount": 1e16}}}
    yield claim_request()
    for amount in (0, 2**53 - 1):
        yield claim_request({"captured_minor": 2**53 - 1, "refunded_minor": amount}, {"amount_minor": amount})
    for text in ("\u0000", "\U0001f600", "x" * 80):
        yield claim_request({"currency": None}, {"reason": text, "evidence": [text, "\ue000", "\uffff"]})
    yield asked(question="\u0000", binding_mode="direct_declarative_rulebook", response_view="minimal")


_MOMENTS: Final = st.sampled_from(
    (
        "2026-01-31T12:00:00Z",
        "2026-01-31T12:00:00.5+14:00",
        "0001-01-02T00:00:00Z",
        "9999-12-31T11:59:59.999-12:00",
    )
)


def _texts(most: int = 200) -> st.SearchStrategy[str]:
    return json_texts().filter(bool) | st.sampled_from(("x" * most, "\U0001f600" * most, "\u0000"))


_TARGET: Final[dict[str, st.SearchStrategy[Any]]] = {
    "action_taken": _texts(),
    "target_system": _texts(2000),
    "target_object_id": _texts(2000),
    "mutation": _texts(2000),
    "external_ref": _texts(),
    "evidence_refs": st.lists(_texts(500), min_size=1, max_size=3),
    "executed_at": _MOMENTS,
}
_FULL: Final = st.dictionaries(
    _texts(20),
    json_values(2).map(compact).filter(lambda value: value not in ("", None, [], {})),
    min_size=1,
    max_size=3,
)
EXECUTION: Final = st.fixed_dictionaries(
    {
        "execution_status": st.sampled_from(
            ("executed", "queued", "skipped", "failed", "blocked", "reviewed", "reverted")
        )
    },
    optional=_TARGET
    | {
        "execution_result": _texts(2000),
        "execution_id": _texts(),
        "executor": st.fixed_dictionaries({"type": _texts(), "id": _texts()}),
        "action_binding": st.dictionaries(json_texts(), json_values(2), min_size=1, max_size=3),
        "state_before_hash": _texts(),
        "state_after_hash": _texts(),
        "state_before_ref": _texts(500),
        "state_after_ref": _texts(500),
    },
)
OUTCOME: Final = st.fixed_dictionaries(
    {"outcome_status": st.sampled_from(("succeeded", "failed", "partial", "reverted", "pending", "review"))},
    optional=_TARGET
    | {
        "action_executed": st.booleans(),
        "observed_metrics": st.dictionaries(
            _texts(120), json_numbers() | st.sampled_from(NUMBERS), min_size=1, max_size=4
        ),
    },
)
CRM_SYNC: Final = st.fixed_dictionaries(
    {"sync_status": st.sampled_from(("written", "pending", "failed", "skipped"))},
    optional={
        "sync_direction": st.sampled_from(("writeback", "inbound")),
        "crm_provider": _texts(),
        "crm_object_type": _texts(),
        "crm_object_id": _texts(),
        "crm_record_url": st.sampled_from(("https://crm.example/1", "http://\U0001f600\u0000")),
        "mapped_fields": _FULL,
    },
)
REPORTS: Final = st.one_of(
    st.tuples(st.just(EXECUTIONS), EXECUTION),
    st.tuples(st.just(OUTCOMES), OUTCOME),
    st.tuples(st.just(CRM_SYNCS), CRM_SYNC),
)

_CUSTOMERS: Final = st.one_of(
    json_values(1),
    st.fixed_dictionaries({}, optional={"email": st.just(EMAIL), "email.home": st.just(EMAIL), "name": json_values(1)}),
    st.just([{"email": EMAIL}]),
)
_INPUTS: Final = st.builds(
    lambda facts, more: facts | more,
    any_facts(),
    st.fixed_dictionaries(
        {},
        optional={"customer": _CUSTOMERS, "customer.email": st.just(EMAIL), "amount": st.sampled_from(NUMBERS)},
    ),
)
_CONTEXTS: Final = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(
            ("workflow", "source_record_id", "requested_action", "target_system", "target_object_id", "mutation"),
            json_texts(),
        ),
        **dict.fromkeys(("actor", "subject", "amount", "currency", "more"), json_values(2)),
        "inputs": _INPUTS,
    },
)
REQUESTS: Final = st.builds(
    lambda rulebook, members: {"mode": "rulebook", "rulebook": rulebook, **members},
    st.sampled_from(RULEBOOKS) | rulebooks(),
    st.fixed_dictionaries({}, optional={"question": json_texts(), "context": _CONTEXTS}),
)
HISTORIES: Final = st.lists(st.tuples(REQUESTS, st.lists(REPORTS, max_size=3)), min_size=6, max_size=16)


class Author:
    """Appends to a chain of its own what is sent, as the service reads it."""

    def __init__(self, instance: Instance) -> None:
        """Makes the scope."""
        ledger = instance.ledger
        self.scope = ledger.directory.create_scope(f"scope-{next(_serial)}", "unlimited", utc_now())
        key = ledger.directory.create_key(self.scope, FULL_ACCESS, None, utc_now())[0]
        self.decided: list[str] = []
        self.policies: set[str] = set()
        self._authority = ledger.directory.authenticate(key, utc_now())
        self._now = utc_now() + timedelta(minutes=1)
        self._gate = instance.gate(self._clock)
        self._lifecycle = instance.lifecycle(self._clock)

    def _clock(self) -> datetime:
        self._now += timedelta(hours=12)
        return self._now

    def decide(self, body: Body) -> str:
        """Appends a decision; its id."""
        request_id = f"req_{len(self.decided):032x}"
        record = self._gate.decide(self._authority, _read(body), request_id=request_id).record
        self.policies.add(record["policy_id"])
        self.decided.append(record["decision_id"])
        return self.decided[-1]

    def report(self, kind: Kind, decision_id: str, body: Body) -> None:
        """Appends a report."""
        self._lifecycle.report(self._authority, kind, decision_id, _read(body))


def _read(body: Body) -> Any:
    return parse(json.dumps(body).encode())


def brought_up(ledger: Ledger, lake: Path, author: Author, marks: Sequence[str]) -> None:
    """Exports a chain in several parts, and compacts them; nothing is then wrong with the lake."""
    scope = ledger.tail.scope(author.scope.scope_id)
    assert scope is not None
    for _ in Exporter(ledger, lake, Personal.of(marks), batch=40).export(scope):
        pass
    exported = load(lake, scope.scope_id)
    assert exported is not None
    assert exported.position == scope.head.size
    compacted = list(Compactor(lake).compact(exported))[-1]
    assert list(verify(lake, compacted, ledger, scope)) == []


def assert_reported(snapshot: Snapshot, author: Author, *, whole: bool) -> None:
    """Requires that every policy has its reports, and that decided again each decision is what it was."""
    decisions = 0
    for policy_id in author.policies:
        decisions += effectiveness(snapshot, policy_id).to_dict()["coverage"]["decisions"]
        again = counterfactuals(snapshot, policy_id).to_dict()
        assert again["changed"] == 0
        assert again["unknown"] == 0 or not whole
    assert decisions == len(author.decided)


def assert_exportable(instance: Instance, directory: Path, author: Author) -> None:
    """Requires that a chain can be exported, with everything and without what is personal, and be reported on."""
    ledger, scope = instance.ledger, author.scope
    for part, marks in (("whole", ()), ("less", MARKS)):
        lake = directory / part
        lake.mkdir(exist_ok=True)
        tail = fresh(ledger, lake, scope.scope_id, Personal.of(marks))
        assert tail.facts(["customer"]).collect().height == len(author.decided)
        brought_up(ledger, lake, author, marks)
        snapshot = open_lake(lake).scope(scope.name)
        assert_reported(snapshot, author, whole=not marks)
        if marks:
            assert_left_out(snapshot)


def assert_left_out(snapshot: Snapshot) -> None:
    """Requires that nothing is left of what is personal."""
    facts = snapshot.facts(["customer", "customer.email", "customer.name"]).collect()
    assert EMAIL not in str(facts.rows())
    for table, column in (("decisions", "target_object_id"), ("outcomes", "observed_metrics")):
        kept = snapshot.table(table).select(pl.col(column).is_not_null().any()).collect()
        assert kept.item() is not True


@pytest.fixture
def lakes(tmp_path: Path) -> Path:
    """Where lakes are made."""
    directory = tmp_path / "lakes"
    directory.mkdir()
    return directory


@pytest.mark.heavy
def test_requests_at_the_limits_can_be_exported(instance: Instance, lakes: Path) -> None:
    author = Author(instance)
    for number, body in enumerate(requests()):
        decision_id = author.decide(body)
        author.report(OUTCOMES, decision_id, {"outcome_status": "succeeded"})
        if number % 3 == 0:
            metrics = {"\u0000": NUMBERS[number % len(NUMBERS)], "\U0001f600": -0.0}
            author.report(OUTCOMES, decision_id, {"outcome_status": "failed", "observed_metrics": metrics})
            author.report(EXECUTIONS, decision_id, {"execution_status": "executed"})
            author.report(CRM_SYNCS, decision_id, {"sync_status": "written", "mapped_fields": {"n": [1e16, -0.0]}})
    assert_exportable(instance, lakes, author)


@settings(max_examples=examples(size(2, 5)), suppress_health_check=list(HealthCheck))
@given(HISTORIES)
def test_whatever_is_accepted_can_be_exported(
    instance: Instance, lakes: Path, history: list[tuple[Body, list[tuple[Kind, Body]]]]
) -> None:
    author = Author(instance)
    author.decide(asked())
    # What is refused, such as a name that only an answer may have, was never anybody's to export.
    for number, (request, reports) in enumerate(history):
        body = dict(request)
        if body["rulebook"] not in RULEBOOKS:
            body["rulebook"] = {**body["rulebook"], "rulebook_id": "drawn", "version": str(number)}
        with suppress(RequestRefused, MaterialRefused):
            decision_id = author.decide(body)
            for kind, report in reports:
                with suppress(RequestRefused, MaterialRefused):
                    author.report(kind, decision_id, report)
    assert_exportable(instance, lakes, author)
