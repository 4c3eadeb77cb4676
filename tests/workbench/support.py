"""What several tests of the workbench need: a chain with some of everything."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from gate.adapters.registry import find_adapter, registered
from gate.clock import utc_now
from gate.decisions.erasure import erase
from gate.instance.instance import Instance, create_instance, open_instance
from gate.instance.settings import load_settings
from gate.ledger.access.authority import FULL_ACCESS, Authority, Scope
from gate.records.documents import Resolution
from gate.records.reports.receipts import CRM_SYNCS, EXECUTIONS, OUTCOMES
from tests.support.advice import Advice, advice
from tests.support.migrations import candidate, desk
from tests.support.samples import sample_request, sample_rulebook
from workbench.lake.compaction import Compactor
from workbench.lake.entries import Personal
from workbench.lake.export import Exporter
from workbench.lake.manifest import Manifest, load

SYNCED: Final[dict[str, Any]] = {
    "sync_status": "written",
    "sync_direction": "writeback",
    "crm_provider": "hubspot",
    "crm_object_type": "deal",
    "crm_object_id": "deal-1042",
    "crm_record_url": "https://crm.example/deals/1042",
    "mapped_fields": {"owner": {"name": "Ada"}, "stage": "won"},
}


def claim_rulebook(rulebook_id: str = "claims", version: str = "1") -> dict[str, Any]:
    """A rulebook over what refund_facts makes: it pays small claims, blocks shares over 100, holds the rest."""
    blocked, paid = (rule["outcome"] for rule in sample_rulebook()["rules"])
    return {
        **sample_rulebook(),
        "rulebook_id": rulebook_id,
        "version": version,
        "input_schema": {
            "required": ["amount", "share_of_payment_percent"],
            "properties": {
                "amount": {"type": "number"},
                "reason": {"type": "string"},
                "share_of_payment_percent": {"type": "number"},
            },
        },
        "rules": [
            {
                "rule_id": "block_more_than_was_paid",
                "priority": 100,
                "condition": {"field": "share_of_payment_percent", "operator": "gt", "value": 100},
                "outcome": blocked,
            },
            {
                "rule_id": "pay_small",
                "priority": 50,
                "condition": {
                    "all": [
                        {"field": "amount", "operator": "lte", "value": 50},
                        {"field": "evidence", "operator": "not_contains", "value": "forged"},
                    ]
                },
                "outcome": paid,
            },
        ],
    }


def claim_request(
    payment: dict[str, Any] | None = None, claim: dict[str, Any] | None = None, rulebook: dict[str, Any] | None = None
) -> dict[str, Any]:
    """A Decision Request whose facts refund_facts makes; by default a claim of 45 EUR, half of the payment, is paid.

    Args:
        payment: Members of the payment instead of those that it has, or more of them; null takes one away.
        claim: Of the claim likewise.
        rulebook: The rulebook; by default `claim_rulebook`.
    """
    adapter = find_adapter(registered(), "refund_facts", "1.0.0")
    assert adapter is not None
    context = {name: value for name, value in sample_request()["context"].items() if name != "inputs"}
    given = {
        "order": {},
        "payment": {"currency": "EUR", "captured_minor": 9000, "refunded_minor": 0, **(payment or {})},
        "claim": {"amount_minor": 4500, "reason": "defective", "evidence": ["photo"], **(claim or {})},
    }
    return {
        "mode": "rulebook",
        "rulebook": claim_rulebook() if rulebook is None else rulebook,
        "context": context,
        "adapter": {
            "adapter_id": adapter.adapter_id,
            "version": adapter.version,
            "manifest_hash": adapter.manifest_hash,
            "input": {"as_of": "2026-06-11"} | {of: _without_null(members) for of, members in given.items()},
        },
    }


def _without_null(members: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


def bring_up(
    instance: Instance, lake: Path, scope: Scope, *, batch: int = 20_000, personal: Personal | None = None
) -> Manifest:
    """Brings a lake up to a scope's chain, in batches of some entries, and says what it holds then."""
    followed = instance.ledger.tail.scope(scope.scope_id)
    assert followed is not None
    for _ in Exporter(instance.ledger, lake, personal, batch=batch).export(followed):
        pass
    found = load(lake, scope.scope_id)
    assert found is not None
    return found


def bring_together(lake: Path, scope: Scope, *, many: int = 1, behind: int = 0) -> Manifest:
    """Compacts what a lake holds of a scope, and says what it holds then."""
    found = load(lake, scope.scope_id)
    assert found is not None
    for manifest in Compactor(lake).compact(found, many=many, behind=behind):
        found = manifest
    return found


@dataclass(frozen=True, slots=True)
class Shared:
    """An instance with a scope and a lake, made once for tests that change none of them."""

    instance: Instance
    scope: Scope
    authority: Authority
    lake: Path


@contextmanager
def shared(directory: Path) -> Iterator[Shared]:
    """Makes one in a directory; its chain and its lake are still empty."""
    create_instance(directory, base_url="http://gate.example")
    instance = open_instance(load_settings(directory))
    scope = instance.ledger.directory.create_scope("acme", "unlimited", utc_now())
    key, _ = instance.ledger.directory.create_key(scope, FULL_ACCESS, None, utc_now())
    instance.settings.lake_directory.mkdir()
    authority = instance.ledger.directory.authenticate(key, utc_now())
    yield Shared(instance, scope, authority, instance.settings.lake_directory)
    instance.close()


class Chain:
    """Appends to a scope's chain, an hour apart, so that entries come to lie in several months."""

    def __init__(self, instance: Instance, authority: Authority, *, step: timedelta = timedelta(hours=1)) -> None:
        """Begins a little in the future, for no record is older than the key that signs it."""
        self.now = datetime(2090, 3, 5, 12, 1, tzinfo=UTC)
        self.decided: list[str] = []
        self._instance = instance
        self._authority = authority
        self._step = step
        self._gate = instance.gate(self._clock)
        self._lifecycle = instance.lifecycle(self._clock)
        self._resolutions = instance.resolutions(self._clock)
        self._owner: Authority | None = None

    def _clock(self) -> datetime:
        return self.now

    def decide(self, body: dict[str, Any] | None = None, **inputs: Any) -> str:
        """Appends a decision; its id."""
        self.now += self._step
        request = sample_request(**inputs) if body is None else body
        decision = self._gate.decide(self._authority, request, request_id=f"req_{len(self.decided):032x}")
        self.decided.append(decision.record["decision_id"])
        return self.decided[-1]

    def execution(self, decision_id: str, status: str = "executed", **more: Any) -> None:
        """Appends an execution receipt."""
        self.now += self._step
        self._lifecycle.report(self._authority, EXECUTIONS, decision_id, {"execution_status": status, **more})

    def outcome(self, decision_id: str, status: str = "succeeded", **more: Any) -> None:
        """Appends an outcome."""
        self.now += self._step
        self._lifecycle.report(self._authority, OUTCOMES, decision_id, {"outcome_status": status, **more})

    def crm_sync(self, decision_id: str) -> None:
        """Appends a CRM sync."""
        self.now += self._step
        self._lifecycle.report(self._authority, CRM_SYNCS, decision_id, SYNCED)

    def resolve(self, decision_id: str, answer: str = "granted", **more: Any) -> Resolution:
        """Appends the resolution of a held decision."""
        self.now += self._step
        if self._owner is None:
            directory = self._instance.ledger.directory
            scope = next(of for of in directory.scopes() if of.scope_id == self._authority.scope_id)
            key, _ = directory.create_key(scope, frozenset({"resolve"}), None, utc_now())
            self._owner = directory.authenticate(key, utc_now())
        body = {"resolution": answer, "resolved_by": "risk desk", **more}
        return self._resolutions.resolve(self._owner, decision_id, body).resolution

    def hold(self) -> str:
        """Appends a held decision; its id."""
        return self.decide(discount_percent=20, margin_percent=22)

    def review(self) -> dict[str, str]:
        """Appends held decisions that end in every way, with receipts before and after their resolutions; by name."""
        named = {name: self.hold() for name in ("open", "granted", "early", "refused", "before", "expired", "unused")}
        for name in ("early", "before", "open"):
            self.execution(named[name])
        for name, answer in (
            ("granted", "granted"),
            ("early", "granted"),
            ("unused", "granted"),
            ("expired", "expired"),
        ):
            self.resolve(named[name], answer)
        for name in ("refused", "before"):
            self.resolve(named[name], "refused", note="Too dear.", evidence=["ticket-7"])
        for name in ("granted", "early", "refused", "expired"):
            self.execution(named[name])
        self.outcome(named["granted"], action_executed=True)
        return named

    def erase(self, decision_id: str) -> None:
        """Erases a decision's facts."""
        self.now += self._step
        erase(self._instance.ledger, decision_id, "asked for", self.now)

    def route(self, scope: Scope, version: str) -> None:
        """Proposes, approves and applies a version of the sample rulebook: three entries."""
        desk(self._instance, scope).route(f"prices_{version}", candidate(version))

    def grow(self, decisions: int = 12) -> None:
        """Appends so many decisions with some of everything: reports at once, and late ones about the first half."""
        for number in range(decisions):
            decision_id = self.decide(discount_percent=number % 20, margin_percent=5 + 3 * (number % 8))
            if number % 3:
                self.execution(decision_id)
            if number % 4:
                self.outcome(decision_id, "pending", observed_metrics={"margin": number / 4})
            if number % 5 == 0:
                self.crm_sync(decision_id)
        for number, decision_id in enumerate(self.decided[: decisions // 2]):
            self.outcome(decision_id, ("succeeded", "failed", "partial", "reverted")[number % 4], action_executed=True)


@contextmanager
def advised(directory: Path) -> Iterator[tuple[Shared, Advice]]:
    """Makes an instance in a directory, whose scope acme has binding and advisory decisions in its chain, all reported
    about.
    """
    with shared(directory) as made:
        key, _ = made.instance.ledger.directory.create_key(made.scope, FULL_ACCESS, None, utc_now())
        with advice(made.instance, key) as found:
            yield made, found
