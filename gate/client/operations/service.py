"""The service itself: whether it can decide, what it is set to, what it counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gate.client.transport.building import READINESS, asked, readiness
from gate.client.transport.calls import Call, text

if TYPE_CHECKING:
    from gate.client.types import Probe, ProofMetrics, RuntimeConfig, Status


def get_status(*, request_id: str | None = None) -> Call[Status]:
    """Readiness, part by part; the status is 503 where something is missing, and the answer tells what."""
    path = "/api/decision/status"
    return asked("getStatus", path, request_id=request_id, credential=None, accepts=READINESS, read=readiness)


def get_livez(*, request_id: str | None = None) -> Call[Probe]:
    """That a process answers."""
    return asked("getLivez", "/livez", request_id=request_id, credential=None)


def get_readyz(*, request_id: str | None = None) -> Call[Probe]:
    """Readiness in a word; the status is 503 where something is missing."""
    return asked("getReadyz", "/readyz", request_id=request_id, credential=None, accepts=READINESS, read=readiness)


def get_metrics(*, request_id: str | None = None) -> Call[str]:
    """Counters and histograms in the Prometheus text format; takes the metrics token."""
    return asked(
        "getMetrics", "/metrics", request_id=request_id, credential="metrics", read=text, media_type="text/plain"
    )


def get_runtime_config(*, request_id: str | None = None) -> Call[RuntimeConfig]:
    """What the instance is set to."""
    return asked("getRuntimeConfig", "/api/runtime-config", request_id=request_id, credential=None)


def get_proof_metrics(*, request_id: str | None = None) -> Call[ProofMetrics]:
    """How much proof the instance holds; takes the metrics token."""
    return asked("getProofMetrics", "/api/proof-metrics", request_id=request_id, credential="metrics")
