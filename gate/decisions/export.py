"""The export of Decision Packets. Record, reports, and links come from one moment of the ledger, and each is checked.

The outcomes of the policy are read afterward, so their report can count an outcome that the packet lacks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

from gate.decisions.reviews.standing import stored_resolution
from gate.decisions.stored import decision_not_found, stored_record, stored_report, stored_request
from gate.encoding.strict_json import MAX_VALUES, exceeds_values
from gate.errors import OperatorError, RequestRefused, ServiceUnavailable
from gate.ids import timestamp
from gate.ledger import Ledger
from gate.ledger.chain.entries import History
from gate.policy.questions import (
    AnomaliesQuestion,
    BenchmarksQuestion,
    ConfidenceQuestion,
    EffectivenessQuestion,
    Reports,
)
from gate.policy.reports import confidence_report
from gate.proof import chain
from gate.proof.chain import Head
from gate.proof.checkpoint import Checkpoint
from gate.records.advisory import is_advisory
from gate.records.documents import Packet, PolicyIntelligence, Record
from gate.records.packet import build_packet, links_to_retain
from gate.records.record import Signers
from gate.records.reports.receipts import EXECUTIONS, OUTCOMES
from gate.rulebooks.patterns import patterns
from gate.verify import Trust, verify_packet

MAX_BYTES: Final = 16 * 1024 * 1024
"""The largest packet, in bytes: what is verified at a time."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts that a packet should have.

    Attributes:
        executions: How many of the newest execution receipts.
        outcomes: How many of the newest outcome records.
        links: How many of the chain's links, from the decision's own on; None for no `audit_chain`.
        intelligence: Whether `policy_intelligence`, which the packet of an advisory decision never has.
        with_input: Whether `input`.
    """

    executions: int = 20
    outcomes: int = 20
    links: int | None = 20
    intelligence: bool = True
    with_input: bool = False


class SignsCheckpoints(Protocol):
    """Signs checkpoints of chains; `gate.instance.checkpoints` does."""

    def sign(self, scope_id: str, head: Head, issued_at: str) -> Checkpoint | None:
        """A signed checkpoint; None where signing is off.

        Raises:
            ServiceUnavailable: The chain contradicts a kept checkpoint, or it cannot be signed now.
        """


class PacketExport:
    """Exports the decisions of a ledger."""

    def __init__(
        self,
        ledger: Ledger,
        signing: Callable[[], tuple[Signers, datetime]],
        trust: Callable[[], Trust],
        reports: Reports,
        checkpoints: SignsCheckpoints,
    ) -> None:
        """Composes an export.

        Args:
            ledger: Where records are kept.
            signing: What signs now, and the moment; raises `ServiceUnavailable` where that cannot be said.
            trust: What the instance trusts when it verifies.
            reports: Answers what is counted elsewhere.
            checkpoints: Signs the checkpoint of the retained links.
        """
        self._checkpoints = checkpoints
        self._reports = reports
        self._ledger = ledger
        self._signing = signing
        self._trust = trust

    def packet(self, scope_id: str, decision_id: str, parts: Parts) -> Packet:
        """The packet of a decision.

        Args:
            scope_id: The decision's scope.
            decision_id: The decision.
            parts: The parts that the packet should have.

        Raises:
            NotFound: `SVC_DECISION_NOT_FOUND`.
            RequestRefused: `SVC_API_QUERY_INVALID`: the reports are larger than `MAX_BYTES`, or hold too many values.
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`: a part cannot be read, or is not as it was made; or
                `SVC_SIGNING_UNAVAILABLE`, or `SVC_REPORT_UNAVAILABLE`. There is no partial proof.
        """
        history = self._ledger.entries.history(
            scope_id,
            decision_id,
            executions=parts.executions,
            outcomes=parts.outcomes,
            links=parts.links or 0,
            room=MAX_BYTES,
        )
        if history is None:
            raise decision_not_found()
        if not history.whole:
            raise _too_large()
        try:
            packet = self._built(scope_id, history, parts)
        except (KeyError, TypeError, AttributeError) as error:
            raise _damaged("its fields are not those of a record") from error
        self._require_sound(packet)
        return packet

    def _built(self, scope_id: str, history: History, parts: Parts) -> Packet:
        reports = [*history.resolutions, *history.executions, *history.outcomes]
        # Counted before they are read, which takes fifty times the memory.
        if exceeds_values(history.decision.body, *(report.body for report in reports)):
            raise _too_large()
        record = stored_record(history.decision)
        _, now = self._signing()
        exported_at = timestamp(now)
        resolutions = [stored_resolution(report) for report in history.resolutions]
        executions = [stored_report(EXECUTIONS, report) for report in history.executions]
        outcomes = [stored_report(OUTCOMES, report) for report in history.outcomes]
        links = None if parts.links is None else links_to_retain(history.links, executions, outcomes)
        # Reports are not signed; through the links up to the last one, the checkpoint's signature covers them (ADR 7).
        checkpoint = None
        if links is not None:
            checkpoint = self._checkpoints.sign(scope_id, chain.head_of(links[-1]), exported_at)
        return build_packet(
            record,
            executions,
            outcomes,
            exported_at=exported_at,
            resolution=resolutions[0] if resolutions else None,
            intelligence=self._intelligence(scope_id, record) if parts.intelligence else None,
            links=links,
            checkpoint=checkpoint,
            with_input=parts.with_input,
            request_body=stored_request(self._ledger, scope_id, history.decision) if parts.with_input else None,
        )

    def _intelligence(self, scope_id: str, record: Record) -> PolicyIntelligence | None:
        if is_advisory(record):
            # No policy gave advice, and a rulebook that has its policy_id made other decisions.
            return None
        effectiveness, confidence, anomalies, benchmarks = _questions(record)
        coverage = self._ledger.outcomes.cover(scope_id, confidence)
        return {
            "effectiveness": self._reports.answer(scope_id, effectiveness),
            "confidence": confidence_report(coverage, confidence),
            "anomalies": self._reports.answer(scope_id, anomalies),
            "benchmarks": self._reports.answer(scope_id, benchmarks),
            "patterns": [pattern for pattern in patterns() if pattern["policy_id"] == record["policy_id"]],
        }

    def _require_sound(self, packet: Packet) -> None:
        """Requires that what is stored still verifies, as it did when it was stored; the state of keys is no matter of
        the export.
        """
        result = verify_packet(packet, self._trust())
        signed = "receipt_signature" in packet["decision_record"]
        if result.changed or (signed and result.checks.get("record.receipt_signature") is False):
            failed = [name for step in result.steps.values() for name in step.failed]
            raise _damaged(", ".join(failed[:3]))


def _questions(
    record: Record,
) -> tuple[EffectivenessQuestion, ConfidenceQuestion, AnomaliesQuestion, BenchmarksQuestion]:
    """What a packet asks about the policy of its decision."""
    policy_id, version = record["policy_id"], record["policy_version"]
    try:
        return (
            EffectivenessQuestion(policy_id, policy_version=version),
            ConfidenceQuestion(policy_id, policy_version=version, verdict=record["verdict"], action=record["action"]),
            # Both of all versions: a change of one of them shows only next to the others.
            AnomaliesQuestion(policy_id),
            BenchmarksQuestion(policy_id),
        )
    except OperatorError as error:
        raise _damaged("its fields are not those of a record") from error


def require_verifiable(text: bytes) -> None:
    """Requires that a packet, as it is sent, can be verified at once, as every verifier here reads it.

    Raises:
        RequestRefused: `SVC_API_QUERY_INVALID`: it is larger than `MAX_BYTES`, or holds more commas and brackets than
            `strict_json.MAX_VALUES`.
    """
    if len(text) > MAX_BYTES or exceeds_values(text):
        raise _too_large()


def _too_large() -> RequestRefused:
    return RequestRefused(
        "SVC_API_QUERY_INVALID",
        f"The packet is larger than the verify endpoint accepts ({MAX_BYTES} bytes with {MAX_VALUES} commas and "
        "brackets). Request fewer receipts, outcomes or links.",
    )


def _damaged(where: str) -> ServiceUnavailable:
    return ServiceUnavailable(
        "SVC_STORAGE_UNAVAILABLE",
        f"The stored decision was changed after it was made ({where}), so it cannot be exported. The operator "
        "must run `gate chain check`.",
    )
