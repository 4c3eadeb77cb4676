"""Adapters for tests: those of the cases, and made ones."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, Final

from hypothesis import strategies as st

from gate.adapters.invocation import TrustedAdapters
from gate.adapters.manifest import Adapter, manifest_hash
from gate.adapters.registry import find_adapter, registered
from gate.adapters.worker import Workers
from gate.instance.instance import Instance
from tests.support.samples import cases


def cases_of(kind: str) -> list[dict[str, Any]]:
    """The cases of tests/cases/adapters.json of a kind: frozen, facts, refused or failing."""
    return [case for case in cases("adapters") if case["kind"] == kind]


def registered_as(name: str) -> Adapter:
    """The adapter of this release that records name so."""
    found = find_adapter(registered(), *name.split("@"))
    assert found is not None
    return found


OBJECT: Final = {"type": "object"}

ECHO: Final = "def facts(given):\n    return given\n"

CONSTANT: Final = "def facts(given):\n    return {facts}\n"

PATIENT_MS: Final = 10_000
"""How long a call that should succeed may take on however slow a machine."""


def make_adapter(
    adapter_id: str,
    source: str,
    *,
    version: str = "1.0.0",
    timeout_ms: int = PATIENT_MS,
    input_schema: Mapping[str, Any] = OBJECT,
    output_schema: Mapping[str, Any] = OBJECT,
) -> Adapter:
    """An adapter of that source, with the manifest that it would be registered with."""
    manifest: Any = {
        **registered()[0].manifest,
        "adapter_id": adapter_id,
        "version": version,
        "implementation_hash": hashlib.sha256(source.encode()).hexdigest(),
        "limits": {"timeout_ms": timeout_ms, "memory_bytes": 64 << 20, "output_bytes": 64 << 10},
        "input_schema": input_schema,
        "output_schema": output_schema,
    }
    return Adapter(manifest | {"manifest_hash": manifest_hash(manifest)}, source.encode())


def emitting(adapter_id: str, facts: str, **named: Any) -> Adapter:
    """An adapter that emits what a Python expression says."""
    return make_adapter(adapter_id, CONSTANT.replace("{facts}", facts), **named)


def make_failing(case: dict[str, Any]) -> Adapter:
    """The adapter of a case of the kind failing."""
    named = {name: case[name] for name in ("timeout_ms", "output_schema") if name in case}
    number = [told["name"] for told in cases_of("failing")].index(case["name"])
    return make_adapter(f"failing_{number}", case["source"], **named)


def invocation_of(adapter: Adapter, given: Mapping[str, Any]) -> dict[str, Any]:
    """What a request sends to invoke an adapter."""
    return {
        "adapter_id": adapter.adapter_id,
        "version": adapter.version,
        "manifest_hash": adapter.manifest_hash,
        "input": given,
    }


_IDS = st.one_of(st.sampled_from(["a", "b", "c", "A"]), st.text(min_size=1, max_size=5).filter(bool))

_DAYS = st.one_of(st.dates(), st.dates(date(2024, 1, 1), date(2026, 12, 31))).map(date.isoformat)

_MINOR = st.one_of(st.integers(0, 2**53 - 1), st.integers(0, 100_000), st.integers(0, 3))

_CURRENCIES = st.one_of(
    st.sampled_from(["EUR", "JPY", "KWD", "CLF", "UYI", "UYW", "XPF", "XAU"]),
    st.from_regex(r"[A-Z]{3}", fullmatch=True),
)

_KINDS = st.one_of(st.sampled_from(["photo", "invoice", "\uff61", "\U0001f600"]), _IDS)

_LINES = st.fixed_dictionaries(
    {"line_id": _IDS},
    optional={
        "paid_minor": _MINOR,
        "refunded_minor": _MINOR,
        "final_sale": st.booleans(),
        "returned": st.booleans(),
    },
)

CLAIMS = st.fixed_dictionaries(
    {
        "as_of": _DAYS,
        "order": st.fixed_dictionaries(
            {},
            optional={
                "order_id": _IDS,
                "placed_on": _DAYS,
                "lines": st.lists(_LINES, max_size=5),
                "customer_refunds_on": st.lists(_DAYS, max_size=5),
            },
        ),
        "payment": st.fixed_dictionaries(
            {},
            optional={
                "order_id": _IDS,
                "currency": _CURRENCIES,
                "captured_minor": _MINOR,
                "refunded_minor": _MINOR,
                "method_id": _IDS,
                "fraud_flag": st.booleans(),
                "dispute_statuses": st.lists(st.sampled_from(["open", "won", "lost"]), max_size=4),
            },
        ),
        "claim": st.fixed_dictionaries(
            {},
            optional={
                "amount_minor": _MINOR,
                "reason": _IDS,
                "line_ids": st.lists(_IDS, max_size=4),
                "payout_method_id": _IDS,
                "evidence": st.lists(_KINDS, max_size=6),
            },
        ),
    }
)


def outcome(decision: str, verdict: str, reason: str) -> dict[str, str]:
    return {"decision": decision, "verdict": verdict, "action": f"{verdict.lower()}_it", "reason_code": reason}


def rulebook_over(rulebook_id: str, field: str, type_: str, least: float) -> dict[str, Any]:
    """A rulebook that approves from a value of one fact on, and blocks below."""
    rule = {"rule_id": "enough", "priority": 10, "condition": {"field": field, "operator": "gte", "value": least}}
    return {
        "schema_version": "rulebook_v1",
        "rulebook_id": rulebook_id,
        "version": "1",
        "input_schema": {"required": [field], "properties": {field: {"type": type_}}},
        "rules": [rule | {"outcome": outcome("yes", "APPROVE", "ENOUGH")}],
        "default_outcome": outcome("no", "BLOCK", "TOO_LITTLE"),
    }


FAILING: Final = {case["name"]: make_failing(case) for case in cases_of("failing")}


class LastingWorkers(Workers):
    """Workers that outlive the instances whose adapters they run: what forks them takes a while to start."""

    def close(self) -> None:
        """Nothing: `end` ends them."""

    def end(self) -> None:
        """Ends them."""
        super().close()


def equip(
    instance: Instance, adapters: Sequence[Adapter], damaged: Sequence[str] = (), workers: Workers | None = None
) -> Instance:
    """Gives an instance other adapters, before it is served, and workers that were made for these."""
    instance.__dict__["adapters"] = TrustedAdapters(adapters, workers or Workers(adapters), damaged=damaged)
    return instance
