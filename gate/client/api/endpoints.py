"""Every endpoint as a method: the operations of `gate.client.operations`, sent and awaited.

Each operation is told once. What it needs and answers, its signature, types and description, holds for both clients.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Generic, ParamSpec, Protocol, TypeVar

from gate.client import operations
from gate.client.transport.calls import Answer, Call

P = ParamSpec("P")
T = TypeVar("T")


class _Sends(Protocol):
    def send(self, call: Call[T]) -> Answer[T]: ...


class _SendsAsync(Protocol):
    async def send(self, call: Call[T]) -> Answer[T]: ...


class Endpoint(Generic[P, T]):
    """An operation as a method that gives the answer's body."""

    def __init__(self, operation: Callable[P, Call[T]]) -> None:
        """Takes the operation."""
        self._operation = operation
        self.__doc__ = operation.__doc__
        self.__wrapped__ = operation

    def __get__(self, client: _Sends | None, owner: Any = None) -> Callable[P, T]:
        """The method of a client."""

        @wraps(self._operation)
        def method(*args: P.args, **kwargs: P.kwargs) -> T:
            if client is None:
                raise TypeError(f"{self._operation.__name__} is a method of a client; make one first.")
            return client.send(self._operation(*args, **kwargs)).body

        return method


class AsyncEndpoint(Generic[P, T]):
    """An operation as a method that is awaited and gives the answer's body."""

    def __init__(self, operation: Callable[P, Call[T]]) -> None:
        """Takes the operation."""
        self._operation = operation
        self.__doc__ = operation.__doc__
        self.__wrapped__ = operation

    def __get__(self, client: _SendsAsync | None, owner: Any = None) -> Callable[P, Coroutine[Any, Any, T]]:
        """The method of a client."""

        @wraps(self._operation)
        async def method(*args: P.args, **kwargs: P.kwargs) -> T:
            if client is None:
                raise TypeError(f"{self._operation.__name__} is a method of a client; make one first.")
            return (await client.send(self._operation(*args, **kwargs))).body

        return method


class Endpoints:
    """Every endpoint, for threads."""

    decide = Endpoint(operations.decide)
    find_decisions = Endpoint(operations.find_decisions)
    get_decision = Endpoint(operations.get_decision)
    verify_stored_decision = Endpoint(operations.verify_stored_decision)
    verify_supplied_record = Endpoint(operations.verify_supplied_record)
    describe_verification = Endpoint(operations.describe_verification)
    verify_exported_record = Endpoint(operations.verify_exported_record)
    describe_packet_verification = Endpoint(operations.describe_packet_verification)
    verify_exported_packet = Endpoint(operations.verify_exported_packet)
    export_packet = Endpoint(operations.export_packet)
    replay_decision = Endpoint(operations.replay_decision)
    diff_decision = Endpoint(operations.diff_decision)
    simulate_counterfactuals = Endpoint(operations.simulate_counterfactuals)
    report_execution = Endpoint(operations.report_execution)
    list_executions = Endpoint(operations.list_executions)
    report_outcome = Endpoint(operations.report_outcome)
    list_outcomes = Endpoint(operations.list_outcomes)
    report_crm_sync = Endpoint(operations.report_crm_sync)
    list_crm_syncs = Endpoint(operations.list_crm_syncs)
    get_chain = Endpoint(operations.get_chain)
    get_checkpoint = Endpoint(operations.get_checkpoint)
    get_policy_confidence = Endpoint(operations.get_policy_confidence)
    get_policy_effectiveness = Endpoint(operations.get_policy_effectiveness)
    get_policy_benchmarks = Endpoint(operations.get_policy_benchmarks)
    get_policy_anomalies = Endpoint(operations.get_policy_anomalies)
    get_policy_alerts = Endpoint(operations.get_policy_alerts)
    get_status = Endpoint(operations.get_status)
    list_receipt_keys = Endpoint(operations.list_receipt_keys)
    list_attestation_keys = Endpoint(operations.list_attestation_keys)
    list_policy_bundles = Endpoint(operations.list_policy_bundles)
    get_rulebook = Endpoint(operations.get_rulebook)
    list_policy_patterns = Endpoint(operations.list_policy_patterns)
    list_trusted_adapters = Endpoint(operations.list_trusted_adapters)
    list_policy_sources = Endpoint(operations.list_policy_sources)
    get_policy_source = Endpoint(operations.get_policy_source)
    list_schemas = Endpoint(operations.list_schemas)
    get_schema = Endpoint(operations.get_schema)
    list_conformance_fixtures = Endpoint(operations.list_conformance_fixtures)
    get_conformance_fixture = Endpoint(operations.get_conformance_fixture)
    list_golden_replays = Endpoint(operations.list_golden_replays)
    get_golden_replays = Endpoint(operations.get_golden_replays)
    get_livez = Endpoint(operations.get_livez)
    get_readyz = Endpoint(operations.get_readyz)
    get_metrics = Endpoint(operations.get_metrics)
    get_runtime_config = Endpoint(operations.get_runtime_config)
    get_proof_metrics = Endpoint(operations.get_proof_metrics)
    get_openapi = Endpoint(operations.get_openapi)
    get_docs = Endpoint(operations.get_docs)
    get_docs_metadata = Endpoint(operations.get_docs_metadata)


class AsyncEndpoints:
    """Every endpoint, for asyncio."""

    decide = AsyncEndpoint(operations.decide)
    find_decisions = AsyncEndpoint(operations.find_decisions)
    get_decision = AsyncEndpoint(operations.get_decision)
    verify_stored_decision = AsyncEndpoint(operations.verify_stored_decision)
    verify_supplied_record = AsyncEndpoint(operations.verify_supplied_record)
    describe_verification = AsyncEndpoint(operations.describe_verification)
    verify_exported_record = AsyncEndpoint(operations.verify_exported_record)
    describe_packet_verification = AsyncEndpoint(operations.describe_packet_verification)
    verify_exported_packet = AsyncEndpoint(operations.verify_exported_packet)
    export_packet = AsyncEndpoint(operations.export_packet)
    replay_decision = AsyncEndpoint(operations.replay_decision)
    diff_decision = AsyncEndpoint(operations.diff_decision)
    simulate_counterfactuals = AsyncEndpoint(operations.simulate_counterfactuals)
    report_execution = AsyncEndpoint(operations.report_execution)
    list_executions = AsyncEndpoint(operations.list_executions)
    report_outcome = AsyncEndpoint(operations.report_outcome)
    list_outcomes = AsyncEndpoint(operations.list_outcomes)
    report_crm_sync = AsyncEndpoint(operations.report_crm_sync)
    list_crm_syncs = AsyncEndpoint(operations.list_crm_syncs)
    get_chain = AsyncEndpoint(operations.get_chain)
    get_checkpoint = AsyncEndpoint(operations.get_checkpoint)
    get_policy_benchmarks = AsyncEndpoint(operations.get_policy_benchmarks)
    get_policy_confidence = AsyncEndpoint(operations.get_policy_confidence)
    get_policy_effectiveness = AsyncEndpoint(operations.get_policy_effectiveness)
    get_policy_anomalies = AsyncEndpoint(operations.get_policy_anomalies)
    get_policy_alerts = AsyncEndpoint(operations.get_policy_alerts)
    get_status = AsyncEndpoint(operations.get_status)
    list_receipt_keys = AsyncEndpoint(operations.list_receipt_keys)
    list_attestation_keys = AsyncEndpoint(operations.list_attestation_keys)
    list_policy_bundles = AsyncEndpoint(operations.list_policy_bundles)
    get_rulebook = AsyncEndpoint(operations.get_rulebook)
    list_policy_patterns = AsyncEndpoint(operations.list_policy_patterns)
    list_trusted_adapters = AsyncEndpoint(operations.list_trusted_adapters)
    list_policy_sources = AsyncEndpoint(operations.list_policy_sources)
    get_policy_source = AsyncEndpoint(operations.get_policy_source)
    list_schemas = AsyncEndpoint(operations.list_schemas)
    get_schema = AsyncEndpoint(operations.get_schema)
    list_conformance_fixtures = AsyncEndpoint(operations.list_conformance_fixtures)
    get_conformance_fixture = AsyncEndpoint(operations.get_conformance_fixture)
    list_golden_replays = AsyncEndpoint(operations.list_golden_replays)
    get_golden_replays = AsyncEndpoint(operations.get_golden_replays)
    get_livez = AsyncEndpoint(operations.get_livez)
    get_readyz = AsyncEndpoint(operations.get_readyz)
    get_metrics = AsyncEndpoint(operations.get_metrics)
    get_runtime_config = AsyncEndpoint(operations.get_runtime_config)
    get_proof_metrics = AsyncEndpoint(operations.get_proof_metrics)
    get_openapi = AsyncEndpoint(operations.get_openapi)
    get_docs = AsyncEndpoint(operations.get_docs)
    get_docs_metadata = AsyncEndpoint(operations.get_docs_metadata)
