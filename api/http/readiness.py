"""Readiness: tests whether everything that a decision needs is usable now, by using it.

`GET /api/decision/status`, `/readyz` and `gate status` show the same report.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Final, NotRequired, TypedDict, cast

from structlog.typing import FilteringBoundLogger

from api.http.metrics import DIRECTORY_VARIABLE
from api.keeper import KeeperState, state_of
from api.workers.roster import WorkersPart, read_facts, workers_part
from gate import __version__, labels
from gate.adapters.containment import BASELINE
from gate.adapters.worker import WAIT_SECONDS
from gate.clock import utc_now
from gate.contract.published import GoldenCase, golden_cases
from gate.encoding.canonical import content_hash
from gate.errors import GateError, ServiceUnavailable, StorageUnavailable
from gate.ids import timestamp
from gate.instance.advisory import advisory_state
from gate.instance.instance import Instance
from gate.instance.keys import KeyRing
from gate.instance.settings import Settings
from gate.proof.signing import ED25519
from gate.records.attestation import rulebook_attestation
from gate.records.record import RULEBOOK_SCHEMA_HASH, runtime_binding_of
from gate.rulebooks.rulebook import load


class Part(TypedDict):
    """The readiness of a part. Each part has more fields of its own."""

    ready: bool
    reason: NotRequired[str]


class AdaptersPart(Part):
    """The registered adapters, the isolation measures they need, and the active measures once they are known."""

    registered: list[str]
    required: list[str]
    in_force: NotRequired[list[str]]


class CheckpointsPart(Part):
    """Whether checkpoints are kept, when all chains were last checked, and how many contradict a checkpoint."""

    kept: bool
    looked_at: str | None
    refused: int
    note: NotRequired[str]


class TablePart(TypedDict):
    """An active policy table, and the fault if the operator's file is broken."""

    service: str
    origin: str
    hash: str
    entries: int
    fault: NotRequired[str]


class PolicyTablesPart(Part):
    """The active policy tables."""

    tables: NotRequired[list[TablePart]]


class Report(TypedDict):
    """The report on readiness, as the service returns it."""

    ok: bool
    status: str
    version: str
    interface_version: str
    signing: Part
    rulebook_runtime: Part
    ledger: Part
    idempotency: Part
    registries: Part
    auth: Part
    backends: Part
    disk: Part
    checkpoints: CheckpointsPart
    workers: NotRequired[WorkersPart]
    trusted_adapters: AdaptersPart
    policy_tables: PolicyTablesPart
    contracts: dict[str, str]


MIN_FREE_DISK: Final = 64 * 1024 * 1024
"""The number of bytes that must be free on the ledger's disk. Its write-ahead log alone may take a quarter of them."""

NOTHING_KEPT: Final = (
    "No checkpoints are kept: receipt signing is off, or the service runs without `gate serve`. A history that was "
    "rewritten in the database would not show."
)
"""The note of the part `checkpoints` if no checkpoints are kept."""

_FRESH_SECONDS: Final = 1.0
# The parts without which the service is ready all the same.
_APART: Final = frozenset(("trusted_adapters", "policy_tables"))

CONTRACTS: Final = {
    "interface": labels.INTERFACE_VERSION,
    "protocol": labels.PROTOCOL,
    "record": labels.RECORD,
    "packet": labels.PACKET,
    "rulebook": labels.RULEBOOK_SCHEMA,
    "execution": labels.EXECUTION,
    "outcome": labels.OUTCOME,
    "crm_sync": labels.CRM_SYNC,
    "confidence": labels.CONFIDENCE,
    "counterfactuals": labels.COUNTERFACTUALS,
    "rulebook_registry": labels.RULEBOOK_REGISTRY,
    "registry_attestation": labels.REGISTRY_ATTESTATION,
    "application_binding": labels.APPLICATION_BINDING,
    "compatibility_policy": labels.COMPATIBILITY_POLICY,
    "golden_replay": labels.GOLDEN_REPLAY,
    "historical_replay": labels.HISTORICAL_REPLAY,
    "migration": labels.MIGRATION,
    "rulebook_attestation": labels.RULEBOOK_ATTESTATION,
    "chain": labels.CHAIN,
    "checkpoint": labels.CHECKPOINT,
}
"""Every label of the specification's versioning table, and those of the chain."""


class Readiness:
    """Makes reports on demand, but at most once a second, because a report writes to the ledger."""

    def __init__(self, make: Callable[[], Report], log: FilteringBoundLogger) -> None:
        """Takes the function that makes the report, and the log for changes of readiness."""
        self._make = make
        self._log = log
        self._lock = Lock()
        self._report: Report | None = None
        self._until = 0.0

    def report(self) -> Report:
        """Returns the current report.

        It has the fields `ok`, `status`, `version`, `interface_version`, `signing`, `rulebook_runtime`, `ledger`,
        `idempotency`, `registries`, `auth`, `backends`, `disk`, `checkpoints`, `workers`, `trusted_adapters`,
        `policy_tables`, and `contracts`. Each part has `ready`, and `reason` if it is not ready. `trusted_adapters` and
        `policy_tables` do not affect `ok`. Only `gate serve` has `workers`.
        """
        with self._lock:
            if self._report is None or time.monotonic() >= self._until:
                before, self._report = self._report, self._make()
                # From its end, for a probe that is given up takes longer than a report stays fresh.
                self._until = time.monotonic() + _FRESH_SECONDS
                self._tell(before)
            return self._report

    def _tell(self, before: Report | None) -> None:
        if self._report is None or (before or {"ok": True})["ok"] == self._report["ok"]:
            return
        if self._report["ok"]:
            self._log.info("ready")
        else:
            # Missing adapters do not affect the rest, and have a log line of their own after the start.
            counting = {name: part for name, part in self._report.items() if name not in _APART}
            self._log.warning("degraded", parts=reasons(counting))


def reasons(report: Mapping[str, object]) -> dict[str, str]:
    """The reason of each part that is not ready."""
    return {
        name: part["reason"] for name, part in report.items() if isinstance(part, dict) and not part.get("ready", True)
    }


REPORTS_UNKNOWN: Final = "unknown"
"""The state of the reporting process in a report without a running server."""


def readiness(
    instance: Instance,
    *,
    wait: float = WAIT_SECONDS,
    reports: str = REPORTS_UNKNOWN,
    keeper: KeeperState | None = None,
) -> Report:
    """The report on an open instance. It writes to the ledger, and waits until the write is durable.

    Args:
        instance: The instance.
        wait: How many seconds to wait for the test whether adapters can run.
        reports: The state of the reporting process.
        keeper: The checkpoint state of a running service; None compares the kept checkpoints with the chains now.
    """
    ledger, settings = instance.ledger, instance.settings
    return _report(
        settings,
        {
            "trusted_adapters": _adapters(instance, wait),
            "signing": _part("A signing key", lambda: _require_keys(settings), instance.gate().signing),
            "rulebook_runtime": _part("The evaluator", _evaluates),
            "ledger": _part("The ledger", ledger.store.probe),
            "idempotency": _part("The table of idempotency keys", ledger.entries.probe_claims),
            "registries": _part(
                "A registry",
                instance.receipt_keys.registry,
                instance.registry_keys.registry,
                ledger.rulebooks.probe,
            ),
            "auth": _part("The tables of API keys and rate limits", ledger.directory.probe, instance.limiter.probe),
            "backends": {"ready": True},
            "disk": _part("The ledger's disk", lambda: _require_room(ledger.store.disk_left())),
            "checkpoints": _checkpoints(instance, keeper),
            "policy_tables": _policy_tables(instance),
        },
        reports,
    )


def closed(settings: Settings | None, reason: str) -> Report:
    """The report on an instance that cannot be opened.

    Args:
        settings: Its settings; None if they cannot be read.
        reason: Why it cannot be opened.
    """
    unknown: Part = {"ready": False, "reason": "Unknown while the ledger cannot be opened."}
    parts = dict.fromkeys(
        ("signing", "idempotency", "registries", "auth", "disk", "checkpoints", "trusted_adapters", "policy_tables"),
        unknown,
    )
    if settings is not None:
        parts["signing"] = _part("A signing key", lambda: _require_keys(settings))
    return _report(
        settings,
        {
            **parts,
            "rulebook_runtime": _part("The evaluator", _evaluates),
            "ledger": {"ready": False, "reason": reason},
            "backends": {"ready": True},
        },
        REPORTS_UNKNOWN,
    )


def _workers() -> WorkersPart | None:
    """The workers of the `gate serve` of this process; None without one."""
    directory = os.environ.get(DIRECTORY_VARIABLE)
    facts = read_facts(Path(directory)) if directory else None
    return None if facts is None else workers_part(facts, time.monotonic())


def _report(settings: Settings | None, found: dict[str, Part], reports: str) -> Report:
    workers = _workers()
    # Callers that send facts need no adapter, and those that need one get its own error code.
    ready = all(part["ready"] for name, part in found.items() if name not in _APART)
    ready = ready and (workers is None or workers["ready"])
    backend = None if settings is None else settings.ledger_url.partition(":")[0].partition("+")[0]
    about: dict[str, Mapping[str, object]] = {
        "signing": {
            "receipt_signing": settings and settings.receipt_signing,
            "registry_signing": settings and settings.registry_signing,
        },
        "rulebook_runtime": {
            "schema_version": labels.RULEBOOK_SCHEMA,
            "schema_url": settings and settings.schema_url,
            "schema_hash": RULEBOOK_SCHEMA_HASH,
            "evaluator_version": labels.EVALUATOR,
            "binding_modes": list(labels.BINDING_MODES),
        },
        "ledger": {"backend": backend},
        "idempotency": {"header": "x-idempotency-key"},
        "registries": {
            "receipt_keys_url": "/api/decision/receipt-keys",
            "attestation_keys_url": "/.well-known/rulebook-attestation-keys.json",
            "policy_bundles_url": "/api/decision/policy-bundles",
            "policy_patterns_url": "/api/decision/policy-patterns",
        },
        "auth": {"header": "x-api-key"},
        # Unwired parts answer with their own code and do not affect the rest.
        "backends": {
            "ledger": backend,
            "advisory": "unconfigured" if settings is None else advisory_state(settings)[0],
            "trusted_adapters": "ready" if found["trusted_adapters"]["ready"] else "unavailable",
            "reports": reports,
        },
        "disk": {},
        "checkpoints": {},
        "trusted_adapters": {"adapters_url": "/api/decision/adapters"},
        "policy_tables": {},
    }
    parts = {name: {**found[name], **facts} for name, facts in about.items()}
    whole = {
        "ok": ready,
        "status": "ready" if ready else "degraded",
        "version": __version__,
        "interface_version": labels.INTERFACE_VERSION,
        **parts,
        **({} if workers is None else {"workers": workers}),
        "contracts": dict(CONTRACTS),
    }
    # The parts of a report, by their names in it.
    return cast("Report", whole)


def _part(what: str, *probes: Callable[[], object]) -> Part:
    try:
        for probe in probes:
            probe()
    except StorageUnavailable as error:
        return {"ready": False, "reason": f"{what} cannot be used: {error.why}."}
    except OSError as error:
        return {"ready": False, "reason": f"{what} cannot be used: {error.strerror}."}
    except GateError as error:
        return {"ready": False, "reason": error.message}
    return {"ready": True}


def _adapters(instance: Instance, wait: float) -> AdaptersPart:
    """What can be invoked, and what holds a worker on this machine, found out by trying."""
    measures, damaged = instance.adapters.measures(wait=wait), instance.adapters.damaged
    part: AdaptersPart = {
        "ready": measures.reason is None and not damaged,
        "registered": [adapter.name for adapter in instance.adapters.adapters],
        "required": [*BASELINE, *(name for name in instance.settings.adapter_isolation if name not in BASELINE)],
    }
    if measures.known:
        part["in_force"] = list(measures.in_force)
    if measures.reason is not None:
        part["reason"] = f"No adapter can run: {measures.reason}."
    elif damaged:
        part["reason"] = f"These adapters are damaged: {', '.join(damaged)}. The others run. Install the release again."
    return part


def _policy_tables(instance: Instance) -> PolicyTablesPart:
    """The policy tables in force; one that the operator got wrong is not, and answers go on from the last good one."""
    tables: list[TablePart] = []
    for found in instance.policy_tables.all():
        table: TablePart = {
            "service": found.table.service,
            "origin": found.origin,
            "hash": found.table.hash,
            "entries": len(found.table.entries),
        }
        if found.fault is not None:
            table["fault"] = found.fault
        tables.append(table)
    faults = [table["fault"] for table in tables if "fault" in table]
    part: PolicyTablesPart = {"ready": not faults, "tables": tables}
    if faults:
        part["reason"] = f"The last good tables stay active. {' '.join(faults)}"
    return part


def _checkpoints(instance: Instance, keeper: KeeperState | None) -> CheckpointsPart:
    state = keeper
    if state is None:
        try:
            state = state_of(instance.checkpoints.look(utc_now()), timestamp(utc_now()))
        except GateError as error:
            state = {"kept": True, "looked_at": None, "refused": 0, "reason": error.message}
    part: CheckpointsPart = {
        "ready": "reason" not in state,
        "kept": state["kept"],
        "looked_at": state["looked_at"],
        "refused": state["refused"],
    }
    if "reason" in state:
        part["reason"] = state["reason"]
    if not state["kept"]:
        part["note"] = NOTHING_KEPT
    return part


def _require_keys(settings: Settings) -> None:
    """Requires that the private keys are there for the next worker that is started."""
    for purpose, algorithm in (("receipt", settings.receipt_signing), ("registry", settings.registry_signing)):
        if algorithm == ED25519:
            KeyRing(settings.home / "keys", purpose).probe()


def _evaluates() -> None:
    """Requires that this process decides the golden replay corpus as it was frozen. It is replayed once: code does not
    change while it runs.
    """
    failing = _golden_failures()
    if failing:
        raise ServiceUnavailable(
            "SVC_INTERNAL_ERROR",
            (
                f"{len(failing)} golden cases give another decision than the frozen one, the first is {failing[0]}; "
                "the installation is damaged, so install the release again."
            ),
        )


@cache
def _golden_failures() -> list[str]:
    return [golden.case["case_id"] for golden in golden_cases() if not _decides_as_frozen(golden)]


def _decides_as_frozen(golden: GoldenCase) -> bool:
    rulebook, facts = load(golden.rulebook), golden.facts
    outcome = rulebook.evaluator.decide(facts.values)
    binding = runtime_binding_of(facts.binding_mode)
    attested = rulebook_attestation(
        rulebook.reference, content_hash(facts.values), outcome, binding, None, trusted_adapter=facts.trusted_adapter
    )
    return bool(attested["bundle_hash"] == golden.case["frozen"]["bundle_hash"])


def _require_room(left: int | None) -> None:
    if left is not None and left < MIN_FREE_DISK:
        raise ServiceUnavailable(
            "SVC_STORAGE_UNAVAILABLE",
            f"Less than {MIN_FREE_DISK // 2**20} MiB are free on the ledger's disk; free some space.",
        )
